"""Faults around a class run: links, odd files, a second grader, a full disk, and an appeal."""

import csv
import errno
import json
import os

import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.course import batch, gradebook
from autograder.course.batch import only_one
from autograder.course.curriculum import CourseError

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


def test_a_second_grader_is_turned_away(course, hand_in):
    hand_in("ada", "01_numbers", **RIGHT)
    with only_one(gradebook.configure(course)):
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
