"""What all tests share."""

import os
from pathlib import Path

import pytest

# Tests run side by side, one for each core: threads of their own would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).parents[1]
