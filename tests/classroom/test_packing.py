"""`autograder hand-in`: what students see, what `collect` makes of it, and notebooks that are lost or broken."""

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner, Result

from autograder import cli
from autograder.course import packing

RIGHT = {"double": "return x + x", "halve": "return x / 2"}
IN_A_NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for text in (*{0!r}, "from autograder.course.packing import hand_in\\nhand_in('Ada', '01')"):
    shell.run_cell(text, store_history=True)
"""


def run(*arguments: object) -> Result:
    """Run the command line in this process; a message for bad input is its exception."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments], env={"COLUMNS": "200"})


def full(*_, **__):
    """A disk without room: what is raised names no file."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def edit(path: Path, change) -> None:
    notebook = json.loads(path.read_text())
    change([cell for cell in notebook["cells"] if cell["cell_type"] == "code"])
    path.write_text(json.dumps(notebook))


def test_a_chapter_is_checked_and_packed_with_a_receipt(course, own):
    path = own(**RIGHT)
    assert 'autograder hand-in 01 --name "Ada' in str(run("hand-in", "01").exception)
    done = run("hand-in", "1", "--name", "Ada Lovelace")
    assert done.exit_code == 0, done.output
    [archive] = (course.root / "handed-in").glob("Ada Lovelace-01_numbers-*.zip")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert (
        str(archive) in done.output
        and digest in done.output
        and "2 of 2 exercises pass the checks that are here;" in done.output
    )
    assert archive.with_suffix(".txt").read_text() in done.output
    with zipfile.ZipFile(archive) as packed:
        inside = "Ada Lovelace/01_numbers"
        assert set(packed.namelist()) == {f"{inside}/numbers_chapter.ipynb", f"{inside}/manifest.json"}
        assert packed.read(f"{inside}/numbers_chapter.ipynb") == path.read_bytes()
        told = json.loads(packed.read(f"{inside}/manifest.json"))
    assert told["files"] == {"numbers_chapter.ipynb": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert told["visible_checks"] == {"double_check": "passed", "halve_check": "passed"}
    assert "torch" in told["versions"]
    assert "packed for Ada Lovelace" in run("hand-in", "01").output  # the name is remembered


def test_damage_and_an_odd_order_are_noted_and_mended_if_asked(own):
    path = own(**RIGHT)

    def spoil(cells: list[dict]) -> None:
        for cell, count in zip(cells, (1, 5, 4, None, 6), strict=False):
            cell["execution_count"] = count
        cells[2]["source"] = "assert True"

    edit(path, spoil)
    odd = "Note: cells were run out of order, and 1 of 5 code cells has not been run (of your answers: halve): restart"
    shown = run("hand-in", "01", "--name", "Ada").output
    assert "`double_check` is locked" in shown and odd in shown
    shown = run("hand-in", "01", "--repair").output
    assert "mended" in shown and "not intact" not in shown
    assert odd in shown  # what the notebook said of that is kept


def test_code_cells_that_were_never_run_are_counted_where_it_matters(own):
    """Not the cells of an exercise without an answer, nor those that do nothing, nor the one that hands in."""
    path = own(double=RIGHT["double"])
    idle = ["", "# a thought", "from autograder.course.packing import hand_in\n\nhand_in()"]

    def run_some(count: int) -> str:
        notebook = json.loads(path.read_text())
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(code[:3]):
            cell["execution_count"] = number + 1 if number < count else None
        if len(code) == 5:
            new = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
            notebook["cells"] += [new | {"id": f"own{n}", "source": source} for n, source in enumerate(idle)]
        path.write_text(json.dumps(notebook))
        return run("hand-in", "01", "--name", "Ada").output

    left = "Note: halve, why: as handed out"
    assert "Note: 3 of 3 code cells have not been run (of your answers: double): restart" in (shown := run_some(0))
    assert left in shown and "packed for Ada" in shown
    assert "Note: 1 of 3 code cells has not been run: restart the kernel" in run_some(2)
    assert "not been run" not in (shown := run_some(3)) and left in shown


def test_an_exercise_without_an_answer_is_named(own):
    own(double=RIGHT["double"])
    shown = run("hand-in", "01", "--name", "Ada").output
    assert "Note: halve, why: as handed out, without an answer of yours." in shown and "1 of 2 exercises pass" in shown


def test_exercises_are_counted_as_check_counts_them(course, own):
    """An exercise with two checks is one, and passes if both do; what the manifest says is counted so too."""
    source = course.solution(course.find("01"))
    notebook = nbformat.read(source, as_version=4)
    first = next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "double_check")
    second = nbformat.from_dict(first)
    second.id, second.metadata.nbgrader.grade_id, second.source = "second", "double_check_2", "assert double(0) == 1"
    notebook.cells.insert(notebook.cells.index(first) + 1, second)
    nbformat.write(notebook, source)
    path = own(**RIGHT)
    (course.root / "solutions/curriculum.toml").rename(course.root / "notebooks/curriculum.toml")
    (course.root / "solutions").rename(course.root.parent / "elsewhere")
    assert "1 of 2 exercises pass their visible checks" in run("check", "01").output
    assert "1 of 2 exercises pass the checks that are here;" in run("hand-in", "01", "--name", "Ada").output
    [archive] = (course.root / "handed-in").glob("*.zip")
    with zipfile.ZipFile(archive) as packed:
        manifest = packed.read("Ada/01_numbers/manifest.json")
    said = packing.read_manifest(manifest, path.read_bytes(), path.name, course.find("01"))
    assert said.endswith("by Ada, 1 of 2 exercises pass their visible checks"), said


def test_what_cannot_be_packed_is_told_in_one_line(course, own, monkeypatch):
    path = own(**RIGHT)

    def grade_slowly(job):
        path.write_text(path.read_text() + "\n")
        return graded(job)

    graded = packing.grade_job
    with monkeypatch.context() as patch:
        patch.setattr(packing, "grade_job", grade_slowly)
        assert "changed while it was checked" in str(run("hand-in", "01", "--name", "Ada").exception)
    with monkeypatch.context() as patch:
        patch.setattr("autograder.course.files.os.replace", full)
        told = str(run("hand-in", "01", "--name", "Ada").exception)
        assert "No space left on device: " in told and told.endswith(".zip")
    (course.root / "handed-in").rmdir()
    path.write_text("{ broken")
    assert "check --repair 01" in str(run("hand-in", "01", "--name", "Ada").exception)
    assert "cannot be the name" in str(run("hand-in", "01", "--name", "../Ada").exception)
    assert not (course.root / "handed-in").exists()


SAVED = "def double(x):\n    return x + x"
ABOVE = "import functools\n# mine\n@functools.cache\n"


@pytest.mark.parametrize(
    ("ran", "packed"),
    [
        ([SAVED], True),
        ([SAVED.replace("x + x", "5")], False),
        ([ABOVE + SAVED], False),  # defined below an import, a comment and a decorator
        (["%matplotlib inline\n" + SAVED], False),
        ([SAVED, "print(double(3))", "double = 5", "def double(x"], True),  # no other version of it
        (["assert double(3) == 6, 'six'", SAVED, "def halve(x):\n    return x / 2"], True),
    ],
)
def test_in_a_notebook_what_was_not_saved_is_noticed(course, own, ran, packed):
    own(**RIGHT)
    command = [sys.executable, "-c", IN_A_NOTEBOOK.format(ran)]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=course.root).stdout
    assert ("packed for Ada" in shown) == packed
    assert ("double changed since the notebook was saved" in shown) != packed


def test_collect_believes_the_lms_and_not_the_manifest(course, own, tmp_path):
    path = own(**RIGHT)
    run("hand-in", "01", "--name", "Ada")
    [archive] = (course.root / "handed-in").glob("*.zip")
    content = io.BytesIO()
    with zipfile.ZipFile(archive) as honest, zipfile.ZipFile(content, "w") as lying:
        for name in honest.namelist():
            lying.writestr(name, honest.read(name).replace(b"x + x", b"2 * x"))
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as download:
        download.write(archive, "Ben Babbage_101_assignsubmission_file_/Ada.zip")
        download.writestr("Eve_102_assignsubmission_file_/Eve.zip", content.getvalue())
        for name, manifest in (("Fay_103", b"[1]"), ("Gus_104", b"{" * 10_000)):
            download.writestr(f"{name}_assignsubmission_file_/numbers_chapter.ipynb", path.read_bytes())
            download.writestr(f"{name}_assignsubmission_file_/manifest.json", manifest)
    done = run("collect", tmp_path / "download.zip")
    assert done.exit_code == 0, done.output
    told = {line.split(",")[0]: line for line in done.output.splitlines()}
    assert "its manifest says: packed" in told["Ben Babbage"] and "by Ada, 2 of 2" in told["Ben Babbage"]
    assert "its manifest is of another notebook" in told["Eve"]
    assert "its manifest cannot be read" in told["Fay"] and "its manifest cannot be read" in told["Gus"]
    assert not (course.root / "classroom/submitted/Ada").exists()
    collected = course.root / "classroom/submitted/Ben Babbage/01_numbers"
    assert {file.name for file in collected.iterdir()} == {"numbers_chapter.ipynb", "timestamp.txt"}


@pytest.mark.parametrize("content", [None, "{ broken"])
def test_repair_brings_a_notebook_back_in_a_clone(course, own, content):
    path = own(**RIGHT)
    path.unlink() if content is None else path.write_text(content)
    shown = run("check", "01", "--repair").output
    assert "as it was handed out" in shown and "not attempted" in shown and "intact" in shown
    assert "SOLUTION" not in path.read_text() and "HIDDEN" not in path.read_text()
    assert [kept.read_text() for kept in path.parent.glob("*.bak")] == [content] * (content is not None)


def test_repair_on_a_full_disk_is_one_line_and_changes_nothing(own, monkeypatch):
    path = own(**RIGHT)
    edit(path, lambda cells: cells[2].update(source="assert True"))
    before = path.read_bytes()
    monkeypatch.setattr("autograder.course.files.os.replace", full)
    told = str(run("check", "01", "--repair").exception)
    assert "No space left on device; nothing was changed" in told
    assert path.read_bytes() == before and [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_notebook_too_large_by_its_outputs_keeps_its_answers(own, course):
    """The line says what to do, and repair does it: nobody's answers go because a picture was large."""
    path = own(**RIGHT)
    picture = {"output_type": "stream", "name": "stdout", "text": "x" * (21 * 2**20)}
    edit(path, lambda cells: cells[0].update(outputs=[picture]))
    before = path.read_bytes()
    told = str(run("hand-in", "01", "--name", "Ada").exception)
    assert "larger than 20 MB: clear its outputs" in told and "handed out" not in told and "\n" not in told
    assert "handed out" not in run("check", "01").output
    shown = run("check", "01", "--repair").output
    assert "its outputs are cleared" in shown and "2/2" in shown and "as it was handed out" not in shown
    assert "return x + x" in path.read_text() and len(path.read_bytes()) < 20_000
    assert [kept.read_bytes() for kept in path.parent.glob("*.bak")] == [before]


def test_the_card_in_a_notebook_holds_no_colours(own, course):
    """Kernels tell the programs that they start to write in colours."""
    own(double=RIGHT["double"])
    command = [sys.executable, "-c", IN_A_NOTEBOOK.format("x + x")]
    environment = os.environ | {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-color"}
    shown = subprocess.run(command, capture_output=True, text=True, cwd=course.root, env=environment).stdout
    assert "of your answers: double" in shown and "x1b" not in shown and "\x1b[1m1" not in shown, shown


def test_on_a_full_disk_a_lost_notebook_is_not_made_and_one_line_says_why(course, monkeypatch, capfd):
    monkeypatch.setattr("nbconvert.writers.files.FilesWriter.write", full)
    told = str(run("check", "01", "--repair").exception)
    assert told.startswith("the release of 01_numbers cannot be written: No space left on device: ")
    assert capfd.readouterr().err == "" and not course.notebook(course.find("01")).exists()
    monkeypatch.setattr("tempfile.mkdtemp", full)
    assert "can be made to generate in: No space left on device" in str(run("check", "01", "--repair").exception)
