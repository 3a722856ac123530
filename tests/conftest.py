"""What all tests share."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from autograder import job
from autograder.isolation.sandbox import why_not_sandboxed

# Tests run side by side, one for each core: threads of their own would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell starts jobs in the background with interrupts ignored, and programs inherit that: the tests that interrupt one
# would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A make that a test starts would say which folder it enters, were it started by another.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--everything", action="store_true", help="judge and translate all that is there, not a part")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than there are cores: some tests wait, for browsers, servers and limits on time."""
    return 1 + (yield)


@pytest.fixture(scope="session")
def sandboxed() -> None:
    """What asks for this is skipped where no sandbox can be had, with the reason."""
    if missing := why_not_sandboxed():
        pytest.skip(missing)


@pytest.fixture(scope="session")
def everything(pytestconfig: pytest.Config) -> bool:
    """Whether all of what is alike is tested: `make test-all`."""
    return pytestconfig.getoption("everything")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).parents[1]


@pytest.fixture
def asked(monkeypatch):
    """What bubblewrap is there is asked anew, in this test and in the next, and sandboxes are started anew."""
    _forget_sandboxes()
    yield monkeypatch
    _forget_sandboxes()


def _forget_sandboxes() -> None:
    why_not_sandboxed.cache_clear()
    for settings in list(job._sandboxes):
        job._forget_sandbox(settings)
