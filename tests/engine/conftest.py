"""A sandbox that all tests of the engine share."""

import os
import shutil

import pytest

from autograder.isolation.sandbox import Limits, Sandbox

LIMITS = Limits(
    cell_seconds=6,
    submission_seconds=120,
    cpu_seconds=10,
    memory_mb=512,
    file_mb=4,
    reply_mb=8,
    items=100,
    output_kb=10,
)


@pytest.fixture(scope="session")
def sandbox():
    """A warm sandbox with tight limits."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed, so there is no sandbox to test: apt-get install bubblewrap")
    os.environ["SECRET_OF_THE_GRADER"] = "hunter2"
    with Sandbox(LIMITS) as warm:
        warm.worker().kill()  # on a busy machine its start takes longer than a submission may
        yield warm
