"""Faults around a class run: links, odd files, a second grader, a full disk, and an appeal."""

import ast
import csv
import errno
import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from sqlalchemy.orm import Session
from typer.testing import CliRunner

from autograder import cli, job
from autograder import run as running
from autograder.course import batch, gradebook, receipts, spread
from autograder.course.chapter_grader import GradeChapter
from autograder.course.curriculum import CourseError

pytestmark = pytest.mark.usefixtures("sandboxed")

RIGHT = {"double": "return x + x", "halve": "return x / 2"}


def run(*arguments: object):
    """Run the command line in this process; a refusal is part of the result."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def test_a_verdict_is_replayed(course, hand_in):
    path = hand_in("ada", "01_numbers", double="return 6", halve="return x / 2")
    assert run("grade", "--workers", 1).exit_code == 0
    again = run("replay", "ada", "01", "double")
    assert again.exit_code == 0, again.output
    assert "double_check: failed, 0 of 2 points, seed" in again.output
    assert "signs" in again.output
    assert run("replay", "ada", "01", "halve").exit_code == 0
    path.write_text(path.read_text().replace("return 6", "return 2 * x"))
    changed = run("replay", "ada", "01", "double")
    assert changed.exit_code == 3
    assert "recorded was: failed, 0 points" in changed.output
    for wrong, told in (
        (("ada", "01", "why"), "no exercise 'why' with checks"),
        (("zoe", "01", "double"), "zoe handed in no 01_numbers"),
    ):
        refused = run("replay", *wrong).exception
        assert isinstance(refused, CourseError) and told in str(refused)


@pytest.mark.parametrize("level", ["student", "chapter"])
def test_a_linked_folder_is_refused(course, hand_in, tmp_path, level):
    path = hand_in("ada", "01_numbers", **RIGHT)
    folder = path.parent if level == "chapter" else path.parent.parent
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    done = run("grade", "--workers", 1, "--json", tmp_path / "out.json")
    assert done.exit_code == 3
    assert f"{folder.name} is a symbolic link, which is not followed" in done.stderr
    assert {item["points"] for item in json.loads((tmp_path / "out.json").read_text())["items"]} == {0}
    folder.unlink()
    elsewhere.rename(folder)  # the same files, not behind a link, are worth their points
    assert run("grade", "--workers", 1, "--json", tmp_path / "out.json").exit_code == 0
    assert sum(item["points"] for item in json.loads((tmp_path / "out.json").read_text())["items"]) == 3


def test_odd_files_are_named_and_cost_themselves_alone(course, hand_in, tmp_path):
    hand_in("ada", "01_numbers", **RIGHT)
    folder, deep = hand_in("ben", "01_numbers"), hand_in("cem", "01_numbers")
    folder.unlink()
    folder.mkdir()
    deep.write_text("[" * 100_000)
    half = hand_in("dua", "01_numbers", double="return x + x  # \\ud800")
    half.write_text(half.read_text().replace("\\\\ud800", "\\ud800"))
    done = run("grade", "--workers", 1, "--json", tmp_path / "out.json")
    assert done.exit_code == 3
    for student in ("ben", "cem"):
        assert sum(line.startswith(f"autograder: {student}, 01_numbers: ") for line in done.stderr.splitlines()) == 1
    points = {
        (i["student"], i["grade_id"]): i["points"] for i in json.loads((tmp_path / "out.json").read_text())["items"]
    }
    assert {student: points[student, "double_check"] for student in ("ada", "ben", "cem", "dua")} == {
        "ada": 2,
        "ben": 0,
        "cem": 0,
        "dua": 2,
    }


def read_points(path: Path) -> dict[tuple[str, str], float]:
    return {(i["student"], i["grade_id"]): i["points"] for i in json.loads(path.read_text())["items"]}


def test_what_is_no_file_is_not_opened_for_long(course, hand_in, tmp_path):
    hand_in("ada", "01_numbers", **RIGHT)
    odd = {name: hand_in(name, "01_numbers") for name in ("pipe", "zero", "device", "empty")}
    for path in odd.values():
        path.unlink()
    os.mkfifo(odd["pipe"])
    odd["zero"].symlink_to("/dev/zero")
    with suppress(PermissionError):  # for those who may: then it is as if it were not there
        os.mknod(odd["device"], stat.S_IFCHR | 0o600, os.makedev(1, 5))
    odd["empty"].touch()
    done = run("grade", "--workers", 1, "--json", tmp_path / "out.json")
    assert done.exit_code == 3
    told = [line for line in done.stderr.splitlines() if line.startswith("autograder: ")]
    assert sorted(line.split(",")[0] for line in told) == [f"autograder: {name}" for name in sorted(odd)]
    points = read_points(tmp_path / "out.json")
    assert points["ada", "double_check"] == 2
    assert all(points[name, "double_check"] == 0 for name in odd)


def test_a_notebook_of_a_thousand_cells_is_graded(course, hand_in, tmp_path):
    path = hand_in("ada", "01_numbers", **RIGHT)
    notebook = nbformat.read(path, as_version=4)
    more = [new_code_cell(f"x{n} = {n}") if n % 2 else new_markdown_cell(f"note {n}") for n in range(1000)]
    notebook.cells[2:2] = more
    nbformat.write(notebook, path)
    hand_in("ben", "01_numbers", **RIGHT)
    assert run("grade", "--workers", 1, "--json", tmp_path / "out.json").exit_code == 0
    assert read_points(tmp_path / "out.json") == {
        (who, check): points for who in ("ada", "ben") for check, points in (("double_check", 2), ("halve_check", 1))
    }


def test_a_second_grader_is_turned_away(course, hand_in):
    hand_in("ada", "01_numbers", **RIGHT)
    with receipts.only_one(gradebook.configure(course)):
        refused = run("grade", "--workers", 1).exception
    assert isinstance(refused, CourseError) and "another `autograder grade` is at work" in str(refused)
    assert run("grade", "--workers", 1).exit_code == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_what_cannot_be_written_is_told_and_graded_later(course, hand_in, monkeypatch, number):
    hand_in("ada", "01_numbers", **RIGHT)
    hand_in("ben", "01_numbers", **RIGHT)
    written = []
    replace = batch.replace_file

    def full(path, content):
        written.append(path)
        if "ben" in path.parts:
            raise OSError(number, os.strerror(number), str(path))
        replace(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "replace_file", full)
        refused = run("grade", "--workers", 1).exception
    assert written
    assert isinstance(refused, CourseError)
    assert os.strerror(number) in str(refused) and "1 of 2 are graded" in str(refused)
    assert "\n" not in str(refused)
    assert run("grade", "--workers", 1).exit_code == 0
    folder = course.root / "classroom/autograded"
    assert len(list(folder.glob("*/*/.autograder.json"))) == 2
    assert not list(folder.rglob("*.part"))


# What happens to a real disk, in a namespace of its own: no room, no right to write, and all well again.
DISK = """
mv classroom kept && mkdir classroom && mount -t tmpfs -o size=16m tmpfs classroom && cp -a kept/. classroom || exit 9
head -c 16m /dev/zero > classroom/full 2>/dev/null
"$@"; echo "status $?" >&2
rm classroom/full && mount -o remount,ro classroom || exit 9
"$@"; echo "status $?" >&2
mount -o remount,rw classroom || exit 9
"$@"; echo "status $?" >&2
find classroom -name "*.part"
"""


def _may_mount() -> bool:
    tried = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(tried, capture_output=True).returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="this user may mount nothing, not even in a namespace")
def test_a_full_disk_and_a_read_only_classroom_are_told_in_one_line(course, hand_in, tmp_path):
    for name in ("ada", "ben"):
        hand_in(name, "01_numbers", **RIGHT)
    grade = [sys.executable, "-c", "from autograder.cli import main; main()", "grade", "--workers", "1"]
    grade += ["--json", tmp_path / "out.json"]
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c", DISK, "sh", *grade]
    done = subprocess.run(inside, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    full, read_only, well = done.stderr.split("status ")[:3]
    status = [part[0] for part in done.stderr.split("status ")[1:]]
    assert status == ["2", "2", "0"], done.stderr
    for told, why in ((full, ("No space left on device", "disk is full")), (read_only, ("ead-only", "readonly"))):
        assert "Traceback" not in told
        [line] = [line for line in told.splitlines() if line.startswith("autograder: ")]
        assert "the marks cannot be written" in line and any(reason in line for reason in why)
        assert "0 of 2 are graded" in line and "run it again to go on" in line
    assert "autograder: " not in well
    assert sum(read_points(tmp_path / "out.json").values()) == 2 * 3
    assert ".part" not in done.stdout


def _forked(act: Callable[[], object]) -> int:
    """What a copy of this process ends with that does this: its status, or minus the signal."""
    if (child := os.fork()) == 0:
        try:
            act()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _grade_until(moment: int) -> int:
    """Grade; this process is killed before or after something is written, counted from the start.

    Returns:
        How many such moments there were, if it lived to the end.
    """
    moments = 0

    def killing(owner: object, name: str) -> None:
        write = getattr(owner, name)

        def passes() -> None:
            nonlocal moments
            moments += 1
            if moments == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        def wrapper(*args, **kwargs):
            passes()
            result = write(*args, **kwargs)
            passes()
            return result

        patch.setattr(owner, name, wrapper)

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((os, "replace"), (Path, "write_bytes"), (Path, "mkdir"), (Session, "commit")):
            killing(owner, name)
        assert run("grade", "--workers", 1).exit_code == 0
    return moments


def test_killed_at_any_moment_a_run_goes_on(course, hand_in, empty_gradebook, tmp_path):
    classroom = course.root / "classroom"
    for name in ("ada", "ben"):
        hand_in(name, "01_numbers", **RIGHT)
    moments = _grade_until(0)
    assert moments > 20
    count = "SELECT count(*), count(DISTINCT notebook_id || ' ' || cell_id) FROM grade WHERE auto_score IS NOT NULL"
    marks, ended = [], []
    for moment in sorted(random.Random(13).sample(range(1, moments), 4)):
        shutil.rmtree(classroom / "autograded")
        shutil.copy(empty_gradebook, classroom / "gradebook.db")
        # A later run may have fewer such moments than the first, and then lives.
        ended.append(_forked(lambda moment=moment: _grade_until(moment)))
        with sqlite3.connect(classroom / "gradebook.db") as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            marks.append(db.execute(count).fetchone()[0])
        done = run("grade", "--workers", 1, "--json", tmp_path / "out.json")
        assert done.exit_code == 0, done.output
        assert sum(read_points(tmp_path / "out.json").values()) == 2 * 3
        with sqlite3.connect(classroom / "gradebook.db") as db:
            assert db.execute(count).fetchone() == (6, 6)
        assert len(list(classroom.glob("autograded/*/*/.autograder.json"))) == 2
        assert not list(classroom.rglob("*.part"))
    assert set(marks) <= {0, 3, 6}, "a student's marks are there together or not at all"
    assert -signal.SIGKILL in ended and set(ended) <= {-signal.SIGKILL, 0}


def test_a_killed_sandbox_costs_at_most_what_ran_in_it(course, hand_in, tmp_path, monkeypatch):
    for name in ("ada", "ben", "cem"):
        hand_in(name, "01_numbers", **RIGHT)
    check, grade, killed = running.execute_check, spread.grade_job, []

    def kill() -> None:
        for sandbox in job._sandboxes.values():
            sandbox._process.kill()
            killed.append(sandbox._process.wait())

    def killing_check(*args):
        if len(killed) == 0:
            kill()
        return check(*args)

    def killing_grade(given):
        outcome = grade(given)
        if len(killed) == 1:
            kill()
        return outcome

    monkeypatch.setattr(running, "execute_check", killing_check)
    monkeypatch.setattr(spread, "grade_job", killing_grade)
    assert run("grade", "--workers", 1, "--json", tmp_path / "out.json").exit_code == 0
    assert len(killed) == 2
    points = read_points(tmp_path / "out.json")
    # A worker outlives its sandbox by a moment: it is gone before the first check, in it, in the second, or in none.
    ada = points.pop(("ada", "double_check")), points.pop(("ada", "halve_check"))
    assert ada in {(2, 1), (0, 1), (2, 0)}
    assert points == {
        (who, check): points for who in ("ben", "cem") for check, points in (("double_check", 2), ("halve_check", 1))
    }


def _imported(package: Path, start: set[str]) -> set[str]:
    """The modules of this package that some of them import, and those that these import."""
    found, left = set(), set(start)
    while left:
        found.add(name := left.pop())
        for node in ast.walk(ast.parse((package / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "autograder":
                path = node.module.split(".")[1:]
                for candidate in ("/".join(path), *("/".join([*path, alias.name]) for alias in node.names)):
                    if candidate and (package / f"{candidate}.py").is_file() and candidate not in found:
                        left.add(candidate)
    return found


def test_marks_depend_on_what_judges_and_on_nothing_else(course, tmp_path, monkeypatch):
    package = tmp_path / "autograder"
    shutil.copytree(Path(batch.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(batch, "__file__", str(package / "course/batch.py"))
    chapter = course.find("01")
    settings = GradeChapter(parent=gradebook.configure(course))

    def version() -> str:
        return batch._version(course, chapter, settings.job(course.solution(chapter), course.solution(chapter)))

    before = version()
    for name in ("export", "grade", "feedback", "insights", "batch"):
        with (package / f"course/{name}.py").open("a") as file:
            file.write("# another line\n")
        assert version() == before, name
    # Pictures and the look of names earn no points; all else that a worker or a check runs may.
    judging = _imported(package, {"job", "isolation/zygote", "isolation/worker", "checks"}) - {"heatmap", "plain"}
    assert judging == {file.relative_to(package).with_suffix("").as_posix() for file in batch._judging()}
    for name in judging:
        file = package / f"{name}.py"
        text = file.read_text()
        file.write_text(f"{text}# another line\n")
        assert version() != before, name
        file.write_text(text)
    assert version() == before
    for name in ("torch", "numpy"):
        with monkeypatch.context() as patch:
            patch.setattr(batch, "version", lambda asked, name=name: "0" if asked == name else metadata.version(asked))
            assert version() != before, name
    with monkeypatch.context() as patch:
        patch.setattr(settings, "cell_seconds", 21.0)
        assert version() != before


def test_a_name_is_no_formula_in_any_table(course, hand_in):
    for name in ("=1+1", "@ada", "ben"):
        hand_in(name, "01_numbers", **RIGHT)
    assert run("grade", "--workers", 1).exit_code == 0
    assert run("export").exit_code == 0
    for table in ("grades.csv", "canvas.csv", "moodle.csv"):
        with (course.root / "classroom" / table).open(newline="", encoding="utf-8") as file:
            cells = {cell for row in csv.reader(file) for cell in row}
        assert {"'=1+1", "'@ada", "ben"} <= cells
        assert not any(cell.lstrip().startswith(("=", "@")) for cell in cells)
