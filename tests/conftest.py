"""What all tests share."""

import os
import signal
from pathlib import Path

import pytest

# Tests run side by side, one for each core: threads of their own would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell starts jobs in the background with interrupts ignored, and programs inherit that: the tests that interrupt one
# would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).parents[1]
