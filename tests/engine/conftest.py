"""A sandbox that all tests of the engine share."""

import os

import pytest

from autograder.isolation.sandbox import Sandbox
from autograder.limits import Limits

LIMITS = Limits(
    cell_seconds=6,
    clock_factor=1.3,
    submission_seconds=120,
    cpu_seconds=10,
    memory_mb=512,
    file_mb=4,
    reply_mb=8,
    items=100,
    output_kb=10,
    notebook_output_kb=100,
)


@pytest.fixture(scope="session")
def sandbox(sandboxed):
    """A warm sandbox with tight limits."""
    os.environ["SECRET_OF_THE_GRADER"] = "hunter2"
    with Sandbox(LIMITS) as warm:
        warm.worker().kill()  # on a busy machine its start takes longer than a submission may
        yield warm


@pytest.fixture(scope="session")
def roomy(sandboxed):
    """A warm sandbox with the limits that a class has."""
    with Sandbox() as warm:
        warm.worker().kill()
        yield warm
