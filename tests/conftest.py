"""What all tests share."""

import os
import shutil
import signal
import subprocess
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


# They grade, which nothing does without a sandbox.
GRADING = ("test_collect.py", "test_grade.py", "test_nbgrader.py", "test_output.py", "test_scale.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--everything", action="store_true", help="judge and translate all that is there, not a part")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than there are cores: some tests wait, for browsers, servers and limits on time."""
    return 1 + (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a sandbox where there is none, with the reason."""
    if missing := _missing_sandbox():
        for item in items:
            if item.path.name in GRADING or "earned" in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason=missing))


def _missing_sandbox() -> str:
    if shutil.which("bwrap") is None:
        return "bubblewrap is missing: sudo apt-get install bubblewrap"
    trial = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    done = subprocess.run(trial, capture_output=True, text=True)
    return f"bubblewrap does not start here: {done.stderr.strip()}" if done.returncode else ""


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
