"""`autograder check`: verdicts on one's own notebook, the state it is in, and its repair."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from autograder import cli


def check(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(cli.app, ["check", *arguments], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == status, done.output
    return done.output


@pytest.fixture
def own(course, hand_in):
    """Put a chapter into notebooks/, answered as told."""

    def own(folder: str, **answers: str) -> Path:
        path = course.notebook(course.find(folder))
        path.parent.mkdir(parents=True, exist_ok=True)
        hand_in("me", folder, **answers).rename(path)
        return path

    return own


def test_each_exercise_has_its_verdict_and_message(own):
    own("01_numbers", double="return 6", halve="return x / 2")
    shown = check("01")
    assert "1 of 3 points" in shown
    rows = {line.split("│")[1].strip(): line for line in shown.splitlines() if line.startswith("│")}
    assert "failed" in rows["double"] and "0/2" in rows["double"] and "signs" in rows["double"]
    assert "passed" in rows["halve"] and "1/1" in rows["halve"]
    assert "by hand" in rows["why"]
    assert "intact" in shown


@pytest.fixture
def hand_out(course):
    """Make the course a student's copy: `hand_out()`."""

    def hand_out() -> None:
        (course.root / "solutions/curriculum.toml").rename(course.root / "notebooks/curriculum.toml")
        (course.root / "solutions").rename(course.root.parent / "elsewhere")

    return hand_out


def test_a_students_copy_has_the_visible_checks_only(course, own, hand_out):
    path = own("01_numbers", double="return 6")
    hand_out()
    shown = check("01")
    assert "1 of 2 exercises pass their visible checks" in shown, "the visible check of `double` is satisfied with 6"
    assert "2/2" not in shown, "nothing is earned before it is graded"
    assert "cannot be told" in shown
    shutil.copytree(course.root / "notebooks", course.root / "originals")
    path.write_text(path.read_text().replace("assert double(3) == 6, 'six'", "pass"))
    assert "`double_check` is locked" in check("01")


def test_an_unreadable_notebook_is_named(own):
    own("01_numbers").write_text("{")
    assert "not JSON" in check("01", status=3)


def test_a_damaged_notebook_is_reported_and_mended(own):
    path = own("01_numbers", double="return 2 * x", halve="return x / 2")
    whole = nbformat.read(path, as_version=4)
    damaged = json.loads(path.read_text())
    cells = {c["metadata"].get("nbgrader", {}).get("grade_id"): c for c in damaged["cells"]}
    cells["double_check"]["source"] = "pass"
    cells["double"]["metadata"] = {}
    damaged["cells"].remove(cells["halve_check"])
    damaged["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "my notes", "id": "notes"})
    path.write_text(json.dumps(damaged))
    before = path.read_bytes()

    shown = check("01")
    assert "3 of 3 points" in shown, "damage costs nothing"
    assert "not intact" in shown and "--repair" in shown
    assert "`double_check` is locked" in shown and "`halve_check` is missing" in shown
    assert path.read_bytes() == before, "only --repair changes the notebook"

    assert "mended" in check("01", "--repair")
    mended = nbformat.read(path, as_version=4)
    nbformat.validate(mended)
    assert [c.source for c in mended.cells] == [*(c.source for c in whole.cells), "my notes"]
    assert "HIDDEN" not in path.read_text() and "signs" not in path.read_text()
    assert [c.metadata.get("nbgrader", {}).get("grade_id") for c in mended.cells[:-1]] == [
        c.metadata.get("nbgrader", {}).get("grade_id") for c in whole.cells
    ]
    [backup] = path.parent.glob("*.bak")
    assert backup.read_bytes() == before
    assert "The notebook is intact" in check("01")


def test_a_notebook_that_is_none_is_put_back_as_it_was_handed_out(course, own, hand_out):
    path = own("01_numbers", double="return 2 * x")
    shutil.copytree(course.root / "notebooks", course.root / "originals")
    whole = path.read_bytes()
    hand_out()
    path.write_bytes(whole[:100])
    assert "--repair 01" in check("01", status=3)
    assert "as it was handed out" in check("01", "--repair")
    assert path.read_bytes() == whole
    [backup] = path.parent.glob("*.bak")
    assert backup.read_bytes() == whole[:100]

    shutil.rmtree(path.parent)
    assert "there is no notebook" in check("01", status=3)
    assert "as it was handed out" in check("01", "--repair")
    assert path.read_bytes() == whole


def test_an_intact_notebook_is_not_touched_by_repair(own):
    path = own("01_numbers")
    before = path.read_bytes()
    check("01", "--repair")
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.bak"))


def test_repair_keeps_the_outputs(own):
    path = own("01_numbers", double="return 2 * x")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="kept")]
    del notebook.cells[-1]
    nbformat.write(notebook, path)
    check("01", "--repair")
    assert nbformat.read(path, as_version=4).cells[2].outputs[0].text == "kept"


def test_without_bubblewrap_ones_own_code_runs_all_the_same(own, asked):
    own("01_numbers", double="return 2 * x")
    asked.setenv("PATH", "/nowhere")
    assert "2 of 3 points" in check("01")


def test_where_processes_cannot_fork_one_line_says_what_to_do(own, monkeypatch, capsys):
    own("01_numbers")
    monkeypatch.delattr("os.fork")
    monkeypatch.setattr(sys, "argv", ["autograder", "check", "01"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr().err
    assert ended.value.code == 2 and told.count("\n") == 1 and "WSL" in told


def test_watching_checks_again_within_a_moment_of_a_save(own, tmp_path):
    path = own("01_numbers", double="return 6")
    told = tmp_path / "told.txt"

    def wait_for(text: str) -> None:
        end = time.monotonic() + 60
        while text not in told.read_text():
            assert time.monotonic() < end, told.read_text()
            time.sleep(0.05)

    command = [sys.executable, "-u", "-c", "from autograder.cli import main; main()", "check", "01", "--watch"]
    with told.open("w") as output:
        watching = subprocess.Popen(command, stdout=output)
    try:
        wait_for("Waiting")
        path.write_text(path.read_text().replace("return 6", "return 2 * x"))
        wait_for("2 of 3 points")
    finally:
        watching.send_signal(signal.SIGINT)
    assert watching.wait(30) == 0
