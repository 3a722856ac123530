"""`autograder grade`: marks, the JSON report, exit statuses, and what a bad submission or a second run may change."""

import csv
import dataclasses
import json
import os
import sqlite3
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner, Result

from autograder import cli
from autograder.limits import Limits
from autograder.nbgrader import GradeSubmission

pytestmark = pytest.mark.usefixtures("sandboxed")

RIGHT_NUMBERS = {"double": "return x + x", "halve": "return x / 2", "why": "Because I say so."}


def run(*arguments: object) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments], catch_exceptions=False)


def grade(file: Path, *arguments: object, status: int = 0) -> dict[tuple[str, str], dict]:
    """Grade in this process and return the items by student and check."""
    done = run("grade", "--workers", 1, "--json", file, *arguments)
    assert done.exit_code == status, done.output
    return {(item["student"], item["grade_id"]): item for item in json.loads(file.read_text())["items"]}


def auto_scores(root: Path) -> dict[tuple[str, str], float | None]:
    """What the gradebook holds, by student and cell."""
    query = (
        "SELECT sa.student_id, bc.name, g.auto_score FROM grade g JOIN base_cell bc ON g.cell_id = bc.id "
        "JOIN submitted_notebook sn ON g.notebook_id = sn.id JOIN submitted_assignment sa ON sn.assignment_id = sa.id"
    )
    with sqlite3.connect(root / "classroom/gradebook.db") as db:
        return {(student, cell): score for student, cell, score in db.execute(query)}


@pytest.fixture
def report(tmp_path) -> Path:
    return tmp_path / "report.json"


def test_marks_reach_the_report_and_the_gradebook(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    hand_in("ada", "02_words", shout="return text.upper()")
    hand_in("ben", "01_numbers", double="return 6")
    items = grade(report)
    written = json.loads(report.read_text())
    assert set(written) == {"items", "seconds", "workers"}
    assert set(written["items"][0]) == {"student", "chapter", "grade_id", "status", "points", "max_points", "message"}
    assert {key: (item["status"], item["points"]) for key, item in items.items()} == {
        ("ada", "double_check"): ("passed", 2),
        ("ada", "halve_check"): ("passed", 1),
        ("ada", "shout_check"): ("passed", 3),
        ("ben", "double_check"): ("failed", 0),
        ("ben", "halve_check"): ("not attempted", 0),
    }
    assert "signs" in items["ben", "double_check"]["message"]
    assert items["ben", "double_check"]["chapter"] == "01_numbers"
    assert auto_scores(course.root) == {
        ("ada", "double_check"): 2,
        ("ada", "halve_check"): 1,
        ("ada", "why"): None,
        ("ada", "shout_check"): 3,
        ("ben", "double_check"): 0,
        ("ben", "halve_check"): 0,
        ("ben", "why"): 0,
    }


@pytest.mark.parametrize("content", ["{ broken", "", "[]", '{"cells": 3}', b"\xff\xfe\x00"])
def test_an_unreadable_notebook_costs_itself_alone(course, hand_in, report, content):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    path = hand_in("ben", "01_numbers", **RIGHT_NUMBERS)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    items = grade(report, status=3)
    assert items["ada", "double_check"]["points"] == 2
    assert items["ben", "double_check"]["points"] == 0
    assert auto_scores(course.root)["ben", "double_check"] == 0


def test_a_notebook_that_is_not_there_is_named(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS).rename(course.root / "classroom/submitted/ada/01_numbers/mine.ipynb")
    done = run("grade", "--workers", 1, "--json", report)
    assert done.exit_code == 3
    assert "ada, 01_numbers" in done.stderr


def test_a_pipe_a_link_and_a_strange_timestamp_hold_nothing_up(course, hand_in, report):
    ada = hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    ada.with_name("timestamp.txt").write_text("99999999999999999999999")
    pipe, link = hand_in("ben", "01_numbers"), hand_in("cem", "01_numbers")
    for path in (pipe, link):
        path.unlink()
    os.mkfifo(pipe)
    os.mkfifo(pipe.with_name("timestamp.txt"))
    link.symlink_to(ada)
    items = grade(report, status=3)
    assert items["ada", "double_check"]["points"] == 2
    assert items["ben", "double_check"]["points"] == items["cem", "double_check"]["points"] == 0


def test_a_second_run_grades_only_what_changed(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    hand_in("ben", "01_numbers", double="return 6")
    grade(report)
    graded = course.root / "classroom/autograded"
    before = {path: path.stat().st_mtime_ns for path in graded.rglob("*.ipynb")}
    hand_in("ben", "01_numbers", double="return 2 * x")
    items = grade(report)
    assert items["ben", "double_check"]["points"] == 2
    assert items["ada", "double_check"]["points"] == 2
    changed = {path for path in graded.rglob("*.ipynb") if path.stat().st_mtime_ns != before[path]}
    assert changed == {graded / "ben/01_numbers/numbers_chapter.ipynb"}


def test_changed_checks_are_run_again(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    source = course.solution(course.find("01"))
    source.write_text(source.read_text().replace("double(-1) == -2", "double(-1) == -3"))
    assert grade(report)["ada", "double_check"]["points"] == 0
    assert auto_scores(course.root)["ada", "double_check"] == 0


def test_a_lost_gradebook_is_filled_again(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    (course.root / "classroom/gradebook.db").unlink()
    grade(report)
    assert auto_scores(course.root)["ada", "double_check"] == 2


def test_a_regrade_clears_what_it_replaces(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    hand_in("ada", "01_numbers").write_text("not a notebook any more")
    grade(report, status=3)
    assert auto_scores(course.root)["ada", "double_check"] == 0


def test_a_mark_given_by_hand_stays_and_is_flagged(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        db.execute("UPDATE grade SET manual_score = 0.5, needs_manual_grade = 0")
    hand_in("ada", "01_numbers", double="return 2 * x")
    grade(report)
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        assert db.execute("SELECT DISTINCT manual_score, needs_manual_grade FROM grade").fetchall() == [(0.5, 1)]


def test_a_mark_given_by_hand_is_flagged_only_where_what_it_was_given_for_has_changed(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        db.execute("UPDATE grade SET manual_score = 0.5, needs_manual_grade = 0")

    def flagged():
        query = "SELECT bc.name FROM grade g JOIN base_cell bc ON g.cell_id = bc.id WHERE g.needs_manual_grade"
        with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
            assert db.execute("SELECT DISTINCT manual_score FROM grade").fetchall() == [(0.5,)]
            return {name for (name,) in db.execute(query)}

    grade(report, "--force")
    assert flagged() == set()
    source = course.solution(course.find("01"))
    source.write_text(source.read_text().replace("double(-1) == -2", "double(-1) == -3"))
    grade(report)
    assert flagged() == set(), "a check has changed, and neither an answer nor a rubric"
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS | {"halve": "return 0.5 * x"})
    grade(report)
    assert flagged() == {"halve_check"}
    source.write_text(source.read_text().replace("Because.", "Because. 1 point for a reason."))
    grade(report)
    assert flagged() == {"halve_check", "why"}, "a flag that nobody has looked at stays"


def test_a_regrade_shows_each_mark_that_it_changed(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    hand_in("ben", "01_numbers", double="return 6")
    assert "Marks that changed" not in run("grade", "--workers", 1).stdout
    source = course.solution(course.find("01"))
    source.write_text(source.read_text().replace("double(-1) == -2", "double(-1) == -3"))
    told = run("grade", "--workers", 1).stdout
    rows = [line.split() for line in told.partition("Marks that changed")[2].splitlines() if "double" in line]
    assert rows == [["ada", "01", "double", "2", "0"]]
    assert "Marks that changed" not in run("grade", "--workers", 1).stdout


def test_a_warning_on_stderr_costs_nothing(course, hand_in, report):
    noisy = "import sys, warnings; warnings.warn('old'); print('hm', file=sys.stderr); return 2 * x"
    hand_in("ada", "01_numbers", double=noisy)
    assert grade(report)["ada", "double_check"]["points"] == 2
    assert auto_scores(course.root)["ada", "double_check"] == 2


def test_malformed_attachments_cost_nothing(course, hand_in, report):
    path = hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["attachments"] = {"picture.png": 5}
    path.write_text(json.dumps(notebook))
    assert grade(report)["ada", "double_check"]["points"] == 2


def test_tags_and_metadata_in_a_submission_do_nothing(course, hand_in, report):
    path = hand_in("ada", "01_numbers", double="return 7")
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]
        if cell.metadata.get("nbgrader", {}).get("points"):
            cell.metadata.nbgrader.points = 100
    nbformat.write(notebook, path)
    item = grade(report)["ada", "double_check"]
    assert (item["points"], item["max_points"]) == (0, 2)


def test_one_student_and_one_chapter(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    hand_in("ada", "02_words")
    hand_in("ben", "01_numbers")
    assert {key[0] for key in grade(report, "--student", "ben")} == {"ben"}
    assert {item["chapter"] for item in grade(report, "2").values()} == {"02_words"}


def test_another_folder_of_submissions(course, hand_in, report, tmp_path):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    (course.root / "classroom/submitted").rename(tmp_path / "inbox")
    assert grade(report, "--submitted", tmp_path / "inbox")["ada", "double_check"]["points"] == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["grade", "99"], "no chapter '99'"),
        (["grade", "--submitted", "nowhere"], "no folder"),
        (["grade", "--student", "zoe"], "nothing to grade"),
        (["grade", "--workers", "0"], "workers"),
        (["grade", "--scheduler", "nonsense://here"], "no Dask workers at nonsense"),
        (["grade", "--no-such-option"], "no-such-option"),
        (["feedback"], "autograder grade"),
    ],
)
def test_bad_usage_is_told_in_one_line_and_ends_with_2(course, hand_in, monkeypatch, capfd, arguments, says):
    hand_in("ada", "01_numbers")
    monkeypatch.setattr("sys.argv", ["autograder", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert says in capfd.readouterr().err


def test_without_bubblewrap_grade_refuses(course, hand_in, asked, capfd):
    hand_in("ada", "01_numbers")
    asked.setenv("PATH", "/nowhere")
    asked.setattr("sys.argv", ["autograder", "grade"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "--unsafe-no-sandbox" in capfd.readouterr().err


def test_a_late_submission_is_penalised_as_nbgrader_is_told_to(course, hand_in, report):
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    path = hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        db.execute("UPDATE assignment SET duedate = '2026-01-01 00:00:00.000000'")
    path.with_name("timestamp.txt").write_text("2026-01-02 00:00:00 UTC")
    hand_in("ada", "01_numbers", double="return 2 * x")
    grade(report)
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        assert db.execute("SELECT late_submission_penalty FROM submitted_notebook").fetchall() == [(2.0,)]


def test_a_due_date_set_after_grading_takes_effect_everywhere_at_once(course, hand_in, report):
    path = hand_in("ada", "01_numbers", double="return 2 * x", why="Because.")
    path.with_name("timestamp.txt").write_text("2026-01-02 00:00:00 UTC")
    assert "late" in run("grade", "--workers", 1).stdout
    graded = course.root / "classroom/autograded/ada/01_numbers/.autograder.json"
    before = graded.stat().st_mtime_ns

    def shown() -> tuple[str, ...]:
        """The mark, late and to-mark of ada: in the table, for Moodle, and in nbgrader's own CSV."""
        [row] = [line for line in run("grade", "--workers", 1).stdout.splitlines() if " ada " in line]
        run("export")
        moodle = (course.root / "classroom/moodle.csv").read_text().splitlines()[1].split(",")[-1]
        with (course.root / "classroom/grades.csv").open(newline="") as file:
            [line] = [one for one in csv.DictReader(file) if one["assignment"] == "01_numbers"]
        return (*row.split()[1:], float(moodle), float(line["score"]), line["late"], line["to_mark"])

    assert shown() == ("2", "2", "1", 2, 2, "", "1")
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        db.execute("UPDATE assignment SET duedate = '2026-01-01 00:00:00.000000'")
    assert shown() == ("2", "2", "1", "1", 2, 2, "yes", "1")
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    assert shown() == ("0", "0", "1", "1", 0, 0, "yes", "1")
    path.with_name("timestamp.txt").write_text("2025-12-31 00:00:00 UTC")
    assert shown() == ("2", "2", "1", 2, 2, "", "1")
    assert graded.stat().st_mtime_ns == before, "nothing was graded again"
    run("grade", "--workers", 1, "--force")
    assert graded.stat().st_mtime_ns > before


def test_an_empty_written_answer_is_no_answer(course, hand_in, report):
    hand_in("ada", "01_numbers", why="  ")
    grade(report)
    assert auto_scores(course.root)["ada", "why"] == 0


def test_an_exercise_added_after_grading_is_refused_with_what_to_do(course, hand_in, report, monkeypatch, capfd):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    source = course.solution(course.find("01"))
    notebook = nbformat.read(source, as_version=4)
    added = nbformat.from_dict(notebook.cells[3])
    added.id, added.metadata.nbgrader.grade_id = "another", "double_check_2"
    notebook.cells.insert(4, added)
    nbformat.write(notebook, source)
    monkeypatch.setattr("sys.argv", ["autograder", "grade"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "nbgrader db assignment remove 01_numbers" in capfd.readouterr().err


def test_limits_are_the_engines_own_by_default_and_can_be_set(course, hand_in, report):
    source = course.solution(course.find("01"))
    assert GradeSubmission().job(source, source).limits == dataclasses.asdict(Limits())
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text().replace("cell_seconds = 20", "cell_seconds = 0.5"))
    hand_in("ada", "01_numbers", double="while True: pass", halve="return x / 2")
    items = grade(report)
    assert items["ada", "double_check"]["status"] == "timeout"
    assert items["ada", "halve_check"]["status"] == "passed"


def test_a_faulty_check_costs_nobody_and_is_named(course, hand_in, report):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    grade(report)
    source = course.solution(course.find("01"))
    right = source.read_text()
    faulty = "assert double(-1) < 0\\n{}['no such key']"
    source.write_text(right.replace("expect(double(-1) == -2, known.SIGNS)", faulty))
    hand_in("ben", "01_numbers", **RIGHT_NUMBERS)
    hand_in("cem", "01_numbers", **RIGHT_NUMBERS | {"double": "return x + 3"})  # fails above the faulty line
    done = run("grade", "--workers", 1, "--json", report)
    assert done.exit_code == 4
    [line] = [line for line in done.stderr.splitlines() if "double" in line]
    assert line.startswith("autograder: 01_numbers, double: ") and "double_check>, line 7: KeyError" in line
    assert "a fault of the course, met by 2 of 3 hand-ins: what they had before is kept" in line
    items = {(i["student"], i["grade_id"]): i for i in json.loads(report.read_text())["items"]}
    assert items["ada", "double_check"]["status"] == "course fault" and items["ada", "double_check"]["points"] == 2
    assert auto_scores(course.root)["ada", "double_check"] == 2
    assert auto_scores(course.root)["ben", "double_check"] is None, "there is no mark yet, and none is lost"
    assert auto_scores(course.root)["ben", "halve_check"] == 1
    assert items["cem", "double_check"]["status"] == "failed" and auto_scores(course.root)["cem", "double_check"] == 0
    source.write_text(right)
    assert grade(report)["ben", "double_check"]["points"] == 2


def test_what_the_machine_may_have_done_is_judged_again(course, hand_in, report, monkeypatch):
    hand_in("ada", "01_numbers", **RIGHT_NUMBERS)
    with monkeypatch.context() as patch:
        patch.setattr("autograder.run.grade_notebook", lambda *args, **kwargs: 1 / 0)
        done = run("grade", "--workers", 1)
    assert done.exit_code == 3 and "the next run judges it again" in done.stderr
    assert grade(report)["ada", "double_check"]["points"] == 2
