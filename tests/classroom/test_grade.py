"""`autograder grade`: layouts, marks, JSON, exit codes, and what a bad submission may cost."""

import json

from typer.testing import CliRunner

from autograder import cli


def run(*arguments: str):
    """Run the command line in this process."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def verdicts(file) -> dict[tuple[str, str], str]:
    return {(i["student"], i["grade_id"]): i["status"] for i in json.loads(file.read_text())["items"]}


def test_marks_come_out_as_json_and_in_the_gradebook(course, hand_in, tmp_path):
    hand_in("ada", "01_numbers", double="return x + x", halve="return x / 2")
    hand_in("ada", "02_words", shout="return text.upper()")
    hand_in("ben", "01_numbers", double="return 6")
    done = run("grade", "--json", tmp_path / "out.json", "--workers", 1)
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "out.json").read_text())
    assert set(report) == {"items", "seconds", "workers"}
    assert set(report["items"][0]) == {"student", "chapter", "grade_id", "status", "points", "max_points", "message"}
