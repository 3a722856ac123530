"""A class over several processes: the same marks however it is spread, and nothing lost when something dies."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security
from typer.testing import CliRunner

from autograder import cli
from autograder.course import spread
from autograder.course.interrupts import interrupts_held

pytestmark = pytest.mark.usefixtures("sandboxed")


@pytest.fixture
def class_of_six(course, hand_in) -> Path:
    """Six students, half of them right, each answer taking its time."""
    for number in range(6):
        hand_in(f"s{number}", "01_numbers", double=f"import time; time.sleep(0.3); return {2 + number % 2} * x")
    return course.root


@pytest.fixture
def half_never_ends(class_of_six, hand_in) -> Path:
    """The same, but s3, s4 and s5 take until something ends them: a run stops in the middle, on any machine."""
    limits = "".join(f"c.GradeSubmission.{of}_seconds = 3600\n" for of in ("cell", "check", "submission"))
    with (class_of_six / "nbgrader_config.py").open("a") as file:
        file.write(limits)
    for number in range(3, 6):
        hand_in(f"s{number}", "01_numbers", double="import time; time.sleep(3000); return 3 * x")
    return class_of_six


def items(file: Path) -> list[tuple]:
    return sorted(tuple(item.values()) for item in json.loads(file.read_text())["items"])


def wait_for(condition: Callable[[], object], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def graded(root: Path) -> int:
    return len(list((root / "classroom/autograded").glob("*/*/.autograder.json")))


def grade(*arguments: object):
    """Run `autograder grade` in this process, which has all of it imported; a refusal is part of the result."""
    return CliRunner().invoke(cli.app, ["grade", *map(str, arguments)])


def start(*arguments: str) -> subprocess.Popen:
    """Start `autograder grade` as a program, to be ended from outside."""
    program = [sys.executable, "-c", "from autograder.cli import main; main()", "grade", *arguments]
    return subprocess.Popen(program, start_new_session=True, stderr=subprocess.PIPE, text=True)


def lets_in(address: str, security: Security | None = None) -> bool:
    """Whether a scheduler runs what somebody sends who knows its address."""
    try:
        with Client(address, timeout=5, security=security) as client:
            return client.submit(sum, [1, 2]).result(10) == 3
    except OSError:
        return False


def listening():
    """The addresses at which this process and those that it started wait for somebody."""
    found = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # what an earlier test started may end meanwhile
            found |= {c.laddr for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
    return found


def test_nobody_else_is_let_in(course):
    before = listening()  # the runner of the tests has a port of its own
    with spread._client(1, None) as client:
        address = client.scheduler.address
        ports = listening() - before
        assert client.submit(sum, [1, 2]).result(30) == 3
        assert not lets_in(address.replace("tls://", "tcp://"))
        assert not lets_in(address, Security.temporary())
        assert ports
        for host, port in ports:
            assert host == "127.0.0.1"
            with pytest.raises(OSError):
                urllib.request.urlopen(f"http://{host}:{port}/info/main/workers.html", timeout=5)
    # Beside it, a cluster as Dask makes it.
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options, protocol="tcp://") as open_to_all:
        assert lets_in(open_to_all.scheduler_address)


def test_the_same_marks_however_the_class_is_spread(class_of_six, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask = [str(Path(sys.executable).with_name("dask"))]
    options = ["--no-dashboard"]
    cluster = [subprocess.Popen([*dask, "scheduler", "--host", address, *options])]
    cluster += [subprocess.Popen([*dask, "worker", address, "--nthreads", "2", *options]) for _ in range(2)]
    try:
        spreads = [("--workers", 1), ("--workers", 3), ("--scheduler", address)]
        seen, workers = [], []
        for spread in spreads:
            for receipt in (class_of_six / "classroom").rglob(".autograder.json"):
                receipt.unlink()
            assert grade("--json", tmp_path / "out.json", *spread).exit_code == 0
            seen.append(items(tmp_path / "out.json"))
            workers.append(json.loads((tmp_path / "out.json").read_text())["workers"])
    finally:
        for process in cluster:
            process.terminate()
        for process in cluster:
            process.wait(30)
    assert len(seen[0]) == 12
    assert all(one == seen[0] for one in seen)
    assert workers == [1, 3, 2]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupted_run_leaves_a_consistent_gradebook_and_goes_on(half_never_ends, hand_in, tmp_path, workers):
    root = half_never_ends
    running = start("--workers", workers)
    wait_for(lambda: graded(root) == 3)
    assert "another `autograder grade` is at work on" in str(grade("--workers", 1).exception)
    for _ in range(2):  # a second one, by who is impatient, does no harm
        os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=300)
    assert running.returncode == 130, told
    assert "Traceback" not in told
    assert "stopped, 3 of 6 still to grade" in told
    with sqlite3.connect(root / "classroom/gradebook.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        marks = db.execute("SELECT count(*) FROM grade WHERE auto_score IS NOT NULL").fetchone()[0]
    assert marks == 3 * 3, "a student's marks are there together or not at all"
    kept = {path: path.stat().st_mtime_ns for path in (root / "classroom/autograded").rglob(".autograder.json")}
    assert len(kept) == 3
    for number in range(3, 6):
        hand_in(f"s{number}", "01_numbers", double="return 3 * x")
    assert grade("--json", tmp_path / "out.json", "--workers", 1).exit_code == 0
    assert len(items(tmp_path / "out.json")) == 12
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())


# Ctrl-C at chosen moments of the main thread: in a `__del__`, where an exception would be lost, and while Dask closes.
PROGRAM = """
import signal, sys
import distributed
from autograder import run
from autograder.cli import main

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def interrupted(owner, name):
    was = getattr(owner, name)
    def wrapper(*args, **kwargs):
        setattr(owner, name, was)
        Dropped()
        return was(*args, **kwargs)
    setattr(owner, name, wrapper)

PLACES = {
    "here": (run, "grade_notebook"),
    "starting": (distributed.Client, "wait_for_workers"),
    "result": (distributed.Future, "result"),
    "closing": (distributed.Client, "close"),
}
for where in sys.argv.pop().split():
    interrupted(*PLACES[where])
main()
"""


@pytest.mark.parametrize(
    ("workers", "where", "written"), [("1", "here", 1), ("2", "result closing", 1), ("2", "starting", 0)]
)
def test_an_interrupt_is_thrown_into_nobody_elses_code(class_of_six, workers, where, written):
    """It ends the run with the result that is at hand, whatever it falls into; a second one changes nothing."""
    command = [sys.executable, "-c", PROGRAM, "grade", "--workers", workers, where]
    stopped = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert stopped.returncode == 130, stopped.stderr
    assert "Traceback" not in stopped.stderr and "ignored" not in stopped.stderr
    assert f"stopped, {6 - written} of 6 still to grade" in stopped.stderr
    assert graded(class_of_six) == written


def test_only_the_first_interrupt_interrupts():
    before = signal.getsignal(signal.SIGINT)
    try:
        with interrupts_held() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.raised():
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                cleaned_up = True
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupts.came and cleaned_up


def test_the_work_of_a_killed_worker_is_done_again(class_of_six, tmp_path):
    running = start("--workers", "2", "--json", str(tmp_path / "out.json"))
    wait_for(lambda: graded(class_of_six))
    descendants = psutil.Process(running.pid).children(recursive=True)
    # process_iter leaves out what has ended meanwhile, as the processes of students' code do.
    forked = [p for p in psutil.process_iter(["cmdline", "ppid"]) if "forkserver" in " ".join(p.info["cmdline"] or [])]
    workers = [p for p in forked if p in descendants and p.info["ppid"] != running.pid]
    assert len(workers) == 2
    workers[-1].kill()
    _, told = running.communicate(timeout=300)
    assert running.returncode == 0, told
    assert len(items(tmp_path / "out.json")) == 12
    assert sum(item[4] for item in items(tmp_path / "out.json")) == 3 * 2


def test_a_killed_run_loses_and_doubles_nothing(half_never_ends, hand_in, tmp_path):
    running = start("--workers", "1")
    wait_for(lambda: graded(half_never_ends) == 3)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=300)
    query = "SELECT count(*), count(DISTINCT notebook_id || ' ' || cell_id) FROM grade WHERE auto_score IS NOT NULL"
    with sqlite3.connect(half_never_ends / "classroom/gradebook.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute(query).fetchone()[0] % 3 == 0, "a student's marks are there together or not at all"
    for number in range(3, 6):
        hand_in(f"s{number}", "01_numbers", double=f"return {2 + number % 2} * x")
    assert grade("--json", tmp_path / "out.json", "--workers", 1).exit_code == 0
    assert len(items(tmp_path / "out.json")) == 12
    assert sum(item[4] for item in items(tmp_path / "out.json")) == 3 * 2
    with sqlite3.connect(half_never_ends / "classroom/gradebook.db") as db:
        assert db.execute(query).fetchone() == (18, 18)
