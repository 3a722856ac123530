"""When there is a sandbox, and what it is made of."""

import sys
import time

import pytest
from conftest import LIMITS

from autograder.isolation import sandbox as module
from autograder.isolation.sandbox import Sandbox, SandboxError
from autograder.run import grade_notebook
from notebooks import source_notebook, submission


def test_without_bubblewrap_nothing_runs(asked):
    asked.setattr(module.shutil, "which", lambda name: None)
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        Sandbox(LIMITS)


def test_without_bubblewrap_one_can_insist(asked):
    asked.setattr(module.shutil, "which", lambda name: None)
    source = source_notebook()
    with Sandbox(LIMITS, unsafe=True, preload=()) as sandbox:
        assert not sandbox.sandboxed
        graded = grade_notebook(sandbox, submission(source, count="import os; os._exit(0)"), source)
        assert [item.status for item in graded.items] == ["passed", "crashed", "passed"]
        bomb = "def double(x):\n    return bytearray(10**10)"
        graded = grade_notebook(sandbox, submission(source, double=bomb), source)
        assert graded.items[0].message.startswith("MemoryError")


def test_a_sandbox_that_cannot_start_says_why(monkeypatch, sandbox):
    monkeypatch.setattr(module, "ENGINE", ("isolation/worker.py", "wire/protocol.py"))
    with pytest.raises(SandboxError, match=r"zygote\.py"), Sandbox(LIMITS, preload=()) as broken:
        broken.worker()


def test_folders_inside_the_installation_can_be_hidden(sandbox, tmp_path):
    inside = next(p for p in sys.path if p.endswith("site-packages"))
    with Sandbox(LIMITS, preload=(), hide=[f"{inside}/nbgrader"]) as hiding:
        source = source_notebook()
        peek = "import os\nprint(os.listdir('/env/0/nbgrader'), os.path.exists('/env/0/torch'))\n"
        graded = grade_notebook(hiding, submission(source, double=peek), source)
        assert "[] True" in str(graded.notebook)


def test_a_worker_dies_with_its_leash(sandbox):
    worker = sandbox.worker()
    worker.leash.close()
    worker.connection.settimeout(5)
    assert worker.connection.recv(1) == b""


def test_a_worker_is_forked_faster_than_a_sandbox_starts(sandbox):
    sandbox.worker().kill()
    started = time.monotonic()
    with Sandbox(LIMITS, preload=()) as another:
        another.worker().kill()
    ready = time.monotonic()
    for _ in range(5):
        sandbox.worker().kill()
    assert time.monotonic() - ready < ready - started


def test_where_namespaces_are_restricted_it_says_so(monkeypatch, sandbox):
    command = Sandbox._sandboxed_command
    monkeypatch.setattr(Sandbox, "_sandboxed_command", lambda self: ["bwrap", "--disable-userns", *command(self)[1:]])
    with pytest.raises(SandboxError, match="unshare"), Sandbox(LIMITS, preload=()) as restricted:
        restricted.worker()
