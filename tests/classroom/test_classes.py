"""Several classes, their students and due dates: through the commands, as an instructor types them."""

import csv
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from autograder import cli

RIGHT = {"double": "return x + x", "halve": "return x / 2"}


def run(*arguments: object) -> Result:
    """Run the command line in this process; a message for bad input is its exception."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def refusal(*arguments: object) -> str:
    """The one line by which a command refuses."""
    told = str(run(*arguments).exception)
    assert "\n" not in told
    return told


@pytest.fixture
def table(tmp_path):
    """Write a table of students."""

    def write(*rows: str) -> Path:
        file = tmp_path / "students.csv"
        file.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return file

    return write


def marks(classroom: Path) -> dict[tuple[str, str], float]:
    with (classroom / "grades.csv").open(newline="") as rows:
        return {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(rows)}


@pytest.mark.usefixtures("sandboxed")
def test_two_classes_keep_apart_what_they_have_under_the_same_names(course, hand_in, table, monkeypatch):
    people = table("name,id,email,section", "Ada Lovelace,ada,ada@example.org,A", '"Babbage, Ben",ben,,B')
    for name in ("monday", "friday"):
        assert "2 students added: A 1, B 1" in run("students", "add", people, "--class", name).output
    classroom = course.root / "classroom"
    hand_in("ada", "01_numbers", **RIGHT)
    shutil.move(classroom / "submitted", classroom / "monday/submitted")
    hand_in("ada", "01_numbers", double="return 6")
    shutil.move(classroom / "submitted", classroom / "friday/submitted")
    graded = run("grade", "01", "--workers", 1, "--class", "monday")
    assert graded.exit_code == 0, graded.output
    assert "section" in graded.output and "monday/insights.html" in graded.output
    monkeypatch.setenv("AUTOGRADER_CLASS", "friday")
    assert run("grade", "01", "--workers", 1).exit_code == 0
    for name in ("monday", "friday"):
        assert run("feedback", "--class", name).exit_code == run("export", "--class", name).exit_code == 0
        assert (classroom / name / "feedback/ada/01_numbers/numbers_chapter.html").is_file()
        canvas = (classroom / name / "canvas.csv").read_text()
        assert '"Lovelace, Ada",,ada,ada,A,' in canvas and '"Babbage, Ben",,ben,ben,B,' in canvas
    assert marks(classroom / "monday")["ada", "01_numbers"] == 3
    assert marks(classroom / "friday")["ada", "01_numbers"] == 0
    assert not (classroom / "autograded").exists()
    # nbgrader's own commands work on the class that is named.
    nbgrader = [str(Path(sys.executable).with_name("nbgrader")), "db", "student", "list"]
    for name, known in (("monday", True), ("", False)):
        listed = subprocess.run(nbgrader, env=os.environ | {"AUTOGRADER_CLASS": name}, capture_output=True, text=True)
        assert ("Lovelace, Ada" in listed.stdout + listed.stderr) == known
    unknown = subprocess.run(nbgrader, env=os.environ | {"AUTOGRADER_CLASS": "x"}, capture_output=True, text=True)
    assert unknown.returncode and "there is no class 'x'" in unknown.stderr and "Traceback" not in unknown.stderr


def test_a_forgotten_class_is_asked_for(course, table, tmp_path):
    assert "--class" not in refusal("grade", "01")
    (course.root / "classroom/example").mkdir(parents=True)
    assert "2027-01-14" in run("due", "01", "2027-01-14").output
    shutil.rmtree(course.root / "classroom/example")
    run("students", "add", table("id", "ada"), "--class", "monday")
    made = set((course.root / "classroom").rglob("*"))
    (download := tmp_path / "in/ada/numbers_chapter.ipynb").parent.mkdir(parents=True)
    download.write_bytes(course.solution(course.find("01")).read_bytes())
    commands = (
        "grade 01",
        f"collect {tmp_path / 'in'}",
        "export",
        "feedback",
        "insights",
        "replay ada 01 double",
        "serve",
    )
    for command in (*commands, "due 01 2027-01-15", "answers 01 why why.csv", f"tokens {tmp_path / 'tokens.csv'}"):
        assert refusal(*command.split()).endswith("say which with --class: monday"), command
    told = refusal("students", "add", table("id", "ben"))
    assert told.endswith("say which with --class: monday; a new one with --class and its name")
    assert set((course.root / "classroom").rglob("*")) == made
    assert "say which" not in refusal("grade", "01", "--class", "monday")
    assert "2027-01-15" in run("due", "01", "2027-01-15", "--class", "monday").output
    # There is a class without a name, too, if somebody is in it.
    shutil.move(course.root / "classroom/monday", tmp_path)
    assert "1 student added" in run("students", "add", table("id", "ben")).output
    shutil.move(tmp_path / "monday", course.root / "classroom")
    assert "1 student added" in run("students", "add", table("id", "cem")).output
    assert "2027-01-16" in run("due", "01", "2027-01-16").output
    assert refusal("grade", "01").endswith("; or say which class with --class: monday")


@pytest.mark.usefixtures("sandboxed")
def test_other_peoples_work_under_known_names_is_refused(course, hand_in, tmp_path):
    notebook = hand_in("ada", "01_numbers", **RIGHT)
    assert run("grade", "01", "--workers", 1).exit_code == 0
    shutil.copytree(course.root / "classroom/submitted", tmp_path / "other")
    assert run("grade", "01", "--workers", 1, "--submitted", tmp_path / "other").exit_code == 0  # the same work
    other = tmp_path / "other" / notebook.relative_to(course.root / "classroom/submitted")
    other.write_text(notebook.read_text().replace("return x + x", "return 6"))
    told = refusal("grade", "01", "--workers", 1, "--submitted", tmp_path / "other")
    assert "ada" in told and "--class NAME" in told
    # Nor chapter by chapter: what was graded of another one tells whose the name is.
    shout = hand_in("ada", "02_words", shout="return text.upper()")
    (tmp_path / "other/ada/02_words").mkdir()
    shutil.move(shout, tmp_path / "other/ada/02_words")
    assert "work of ada from " in refusal("grade", "02", "--submitted", tmp_path / "other")
    shutil.copytree(course.root / "classroom/submitted/ada/01_numbers", tmp_path / "moved/ada/01_numbers")
    shutil.copytree(tmp_path / "other/ada/02_words", tmp_path / "moved/ada/02_words")
    moved = run("grade", "02", "--workers", 1, "--submitted", tmp_path / "moved")
    assert moved.exit_code == 0, moved.output  # chapter 01 is ada's there, too
    run("export")
    assert marks(course.root / "classroom")["ada", "01_numbers"] == 3
    same = run("grade", "01", "--workers", 1, "--submitted", tmp_path / "other", "--same-students")
    assert same.exit_code == 0, same.output
    run("export")
    assert marks(course.root / "classroom")["ada", "01_numbers"] == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["grade", "--class", "nobody"], "there is no class 'nobody'"),
        (["export", "--class", "../x"], "cannot be the name of a class"),
        (["insights", "--class", "submitted"], "cannot be the name of a class"),
        (["students", "add", "nowhere.csv"], "No such file"),
        (["due", "01", "tomorrow"], "'tomorrow' is no date"),
        (["due", "01", "2027-02-30T18:00"], "is no date"),
        (["due", "09", "2027-01-15T18:00"], "there is no chapter"),
    ],
)
def test_bad_input_is_told_in_one_line(course, arguments, told):
    assert told in refusal(*arguments)


def test_one_gradebook_for_all_classes_is_refused(course, table, monkeypatch):
    monkeypatch.setenv("GRADEBOOK_URL", f"sqlite:///{course.root}/all.db")
    assert "hold {class}" in refusal("students", "add", table("id", "ada"), "--class", "monday")
    monkeypatch.setenv("GRADEBOOK_URL", f"sqlite:///{course.root}/of-{{class}}.db")
    assert run("students", "add", table("id", "ada"), "--class", "monday").exit_code == 0
    assert (course.root / "of-monday.db").is_file()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["name,id", "Ada,ada", "Ada L,ada"], "line 3: the id ada is that of line 2"),
        (["id,email", "ada,a@b.c", "ben,A@b.c"], "line 3: the address A@b.c is that of line 2"),
        (["name,id", "Ada,../ada"], "cannot name a student's folder"),
        (["name,id", "Ada"], "line 2: 1 column where the first row names 2"),
        (["name,id", "Ada,ada", "Ben;ben"], "line 3: 1 column where the first row names 2: it holds ';' where the "),
        (["id;name;email", "ada,Ada"], "line 2: 1 column where the first row names 3: it holds ',' where the "),
        (["name,email", "Ada,a@b.c"], "id is needed"),
        (["id"], "holds no students"),
    ],
)
def test_a_wrong_table_of_students_enters_nobody(course, table, rows, told):
    assert told in refusal("students", "add", table(*rows), "--class", "monday")
    assert not (course.root / "classroom/monday").exists()


def test_students_that_are_known_are_brought_up_to_date(course, table):
    run("students", "add", table("id;name;section", "ada;Ada Byron;A", "ben;Ben;A"))
    done = run("students", "add", table("name,id,section", "Ada Lovelace,ada,B"))
    assert "0 students added, 1 were there already: B 1" in done.output
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        assert db.execute("SELECT id, first_name, last_name FROM student ORDER BY id").fetchall() == [
            ("ada", "Ada", "Lovelace"),
            ("ben", None, "Ben"),
        ]
    assert (course.root / "classroom/sections.csv").read_text().split() == ["id,section", "ada,B", "ben,A"]


def test_a_due_date_is_of_this_machines_clock(course, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    assert "is due on 2027-01-15 at 18:00 CET (2027-01-15 17:00 UTC)" in run("due", "01", "2027-01-15T18:00").output
    assert "(2027-07-01 21:59 UTC)" in run("due", "02", "2027-07-01").output
    assert "has no due date" in run("due", "02", "none").output
    assert "17:00 UTC" in run("due", "1").output
    monkeypatch.undo()
    time.tzset()
