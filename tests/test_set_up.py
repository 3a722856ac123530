"""Setting the environment up: what is refused, what a set-up that breaks off leaves behind, and a whole one."""

import ast
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
NOBODY = 65534


@pytest.fixture
def folder(tmp_path):
    """The course's files as git has them, as far as setting up needs them."""
    root = tmp_path / "the course"  # with a blank, as in many a home
    for name in ("environment", "attention_course", "autograder", "checks", "live"):
        shutil.copytree(REPOSITORY / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "maintain.mk", "pyproject.toml", "README.md"):
        shutil.copy2(REPOSITORY / name, root)
    return root


@pytest.fixture
def set_up(folder):
    """The module that sets up that copy."""
    spec = importlib.util.spec_from_file_location("set_up", folder / "environment/set_up.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run make, without what this process has set for pip; standard error comes with the output."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=kept | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".venv*") if path.name != ".venv.log")


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 10, 13), (3, 15, 0)])
def test_another_python_is_refused_in_one_line(folder, version):
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; sys.version_info = {version}; $2"\n')
    python.chmod(0o755)
    done = make(folder, "lab", "PYTHON=./python")
    assert done.returncode == 2
    told, *rest = done.stdout.splitlines()
    assert told.startswith("Python 3.11 to 3.14 is needed, and ./python is " + ".".join(map(str, version)))
    assert all(line.startswith("make: ***") for line in rest)
    assert left_behind(folder) == []


def test_a_python_that_is_not_there_is_named(folder):
    assert make(folder, "lab", "PYTHON=python9").stdout.startswith("There is no python9: install Python 3.11 to 3.14")


def test_what_a_machine_lacks_is_said_before_anything_is_installed(set_up, monkeypatch):
    def refused() -> str:
        with pytest.raises(set_up.SetUpError) as error:
            set_up.refuse_what_cannot_work("cpu")
        assert "\n" not in str(error.value)
        return str(error.value)

    set_up.refuse_what_cannot_work("cpu")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 100, 10**9))
        assert "1.0 GB left, and 3 GB are needed" in refused()
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda _: None)
        assert "apt-get install python3-venv" in refused()
    with monkeypatch.context() as patch:
        patch.setattr(platform, "machine", lambda: "riscv64")
        assert "riscv64" in refused()
        patch.setattr(platform, "machine", lambda: "x86_64")
        patch.setattr(sys, "platform", "darwin")
        assert "Intel" in refused()


def test_without_a_network_nothing_is_left_and_what_there_was_stays(folder):
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").write_text("an older one")
    nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    done = make(folder, "lab", f"PYTHON={sys.executable}", **nowhere, HTTPS_PROXY="http://127.0.0.1:9")
    assert done.returncode == 2
    assert "pip cannot reach its package index" in done.stdout
    assert "Nothing was changed. When that is mended: make lab" in done.stdout
    assert left_behind(folder) == [".venv"]
    assert (folder / ".venv/bin/python").read_text() == "an older one"
    assert "ERROR" in (folder / ".venv.log").read_text()


def test_an_interrupted_set_up_leaves_nothing(folder):
    command = [sys.executable, "environment/set_up.py"]
    working = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.monotonic() + 60
    while not (folder / ".venv.new").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    working.send_signal(signal.SIGINT)
    told, _ = working.communicate(timeout=60)
    assert working.returncode == 1 and "Interrupted: nothing was changed" in told
    assert left_behind(folder) == [] and not (folder / ".venv.log").exists()


@pytest.fixture
def ready(folder, set_up):
    """An environment that is up to date, as far as one can tell from outside."""
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    set_up.write_state(folder / ".venv", ["course"], platform.python_version(), "cpu")
    return folder


def is_ready(set_up, *parts: str, torch: str | None = None, this_python: bool = False) -> bool:
    options = set_up.argparse.Namespace(torch=torch, this_python=this_python)
    return set_up.is_ready(set_up.read_state(), ["course", *parts], options)


def test_what_is_there_is_set_up_again_only_if_it_is_not_what_is_asked_for(set_up, ready):
    assert is_ready(set_up) and is_ready(set_up, torch="cpu") and is_ready(set_up, this_python=True)
    assert not is_ready(set_up, "book")
    assert not is_ready(set_up, torch="cuda")
    state = json.loads((ready / ".venv/ready").read_text())
    (ready / ".venv/ready").write_text(json.dumps(state | {"python": "3.11.0"}))
    assert is_ready(set_up), "which Python `python3` is may change without a wish for another environment"
    assert not is_ready(set_up, this_python=True)


def test_other_pins_or_a_python_that_is_gone_mean_a_new_environment(set_up, ready):
    lock = ready / "environment/course.lock"
    lock.touch()
    assert is_ready(set_up), "a checkout changes times, not pins"
    lock.write_text(lock.read_text() + "# other\n")
    assert not is_ready(set_up)
    set_up.write_state(ready / ".venv", ["course"], platform.python_version(), "cpu")
    assert is_ready(set_up)
    (ready / ".venv/bin/python").unlink()
    (ready / ".venv/bin/python").symlink_to("/nowhere/python")
    assert not is_ready(set_up)


def test_a_reason_is_one_line(set_up):
    assert set_up.reason("Collecting x\nERROR: [Errno 28] No space left on device\n") == "the disk is full"
    assert (
        set_up.reason("ERROR: No matching distribution found for x\nnotice\n") == "No matching distribution found for x"
    )
    assert set_up.reason("") == "it failed and said nothing"


@pytest.mark.parametrize("target", ["lab", "test", "test-fast", "grade", "release", "book", "bench", "lock"])
def test_no_target_installs_system_packages(target):
    """What is missing is named, with the command that installs it; to run that is the reader's decision."""
    shown = subprocess.run(["make", "--dry-run", target], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert "environment/set_up.py" in shown.stdout
    assert not re.search(r"\b(sudo|apt|apt-get|dnf|brew)\b", shown.stdout)
    program = ast.parse((REPOSITORY / "environment/set_up.py").read_text())
    words = {node.value for node in ast.walk(program) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not words & {"sudo", "apt", "apt-get", "dnf", "brew"}


@pytest.mark.skipif("SET_UP_PYTHONS" not in os.environ, reason="minutes and gigabytes: `make test-set-up` runs it")
@pytest.mark.parametrize("python", os.environ.get("SET_UP_PYTHONS", "").split() or ["python3"])
def test_an_ordinary_user_sets_everything_up_from_an_empty_folder(python):
    home = Path(tempfile.mkdtemp(prefix="set-up-"))
    kept = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_"))}
    environment = kept | {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    user = {}
    if os.getuid() == 0:  # nobody sets a course up as the administrator
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **user
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    root = home / "course"
    try:
        files = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
        for name in filter(None, files.stdout.split("\0")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name)
        if user:
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", home], check=True)
        lab = ["make", f"PYTHON={python}", "lab", "LAB_OPTIONS=--version"]

        started = time.monotonic()
        first = run(*lab)
        seconds = time.monotonic() - started
        assert "Ready after" in first
        print(f"{python}: {seconds:.0f} s, {run('du', '-sm', '.venv').split()[0]} MB\n{first}")
        assert left_behind(root) == [".venv"]
        assert "Setting up" not in run(*lab), "a second call starts at once"

        environment["PATH"] = f"{root}/.venv/bin:{environment['PATH']}"
        assert run("python", "-c", "import sys; print(sys.prefix)").strip() == str(root / ".venv")
        assert "No broken requirements" in run("python", "-m", "pip", "check")
        assert "0 of 2 points" in run("autograder", "check", "00")
        run("nbgrader", "--version")
        run(
            "python",
            "-c",
            "import spacy, torch, torchtext, attention_course; torch.ones(2, requires_grad=True).sum().backward()",
        )
        scripts = [path for path in (root / ".venv/bin").iterdir() if not path.is_symlink()]
        assert not any(b".venv.new" in path.read_bytes() for path in [*scripts, root / ".venv/pyvenv.cfg"])
    finally:
        shutil.rmtree(home)
