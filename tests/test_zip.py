"""The archive for students, in an empty folder: nothing secret in it, and a chapter can be worked through."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from autograder.course import find_course
from autograder.release import write_zip

CHAPTER = "01"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A student's copy: the first two chapters, unpacked."""
    folder = tmp_path_factory.mktemp("student")
    course = find_course()
    write_zip(course, [course.find("00"), course.find(CHAPTER)], folder / "attention.zip")
    with zipfile.ZipFile(folder / "attention.zip") as archive:
        archive.extractall(folder)
    return folder / "attention"


@pytest.fixture(scope="module")
def environment(copy):
    """The copy's own package first, installed libraries after it: what `make lab` sets up, without the download."""
    return os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}


def test_it_holds_what_students_need_and_nothing_else(copy):
    names = {str(path.relative_to(copy)) for path in copy.rglob("*")}
    assert {"Makefile", "pyproject.toml", "requirements.lock", "data/download.py", "docs/student.md"} <= names
    assert {"notebooks/10_multi30k_translator/translator.pt", "attention_course/translator.py"} <= names
    assert "originals/01_weighted_averages/weighted_averages.ipynb" in names
    assert not any(name.startswith(("solutions", "tests", "classroom", "book", ".git")) for name in names)
    assert not any(name.endswith(("hidden.py", "mutants.py", "checks/formulas.py")) for name in names)
    assert (copy / "README.md").read_text().startswith("# For students")
    for notebook in copy.rglob("*.ipynb"):
        text = notebook.read_text()
        assert ".hidden import" not in text and "BEGIN SOLUTION" not in text


def test_a_chapter_is_worked_through(copy, environment):
    course = find_course()
    chapter = course.find(CHAPTER)
    path = copy / "notebooks" / chapter.folder / f"{chapter.module}.ipynb"
    notebook, solved = (nbformat.read(p, as_version=4) for p in (path, course.solution(chapter)))
    answers = {c.metadata.nbgrader.grade_id: c.source for c in solved.cells if c.metadata.get("nbgrader")}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("solution") and cell.cell_type == "code":
            cell.source = answers[about.grade_id]
    nbformat.write(notebook, path)

    run = [sys.executable, "-m", "jupyter", "execute", "--inplace", path.name]
    done = subprocess.run(run, cwd=path.parent, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]

    script = "import autograder, sys; print(autograder.__file__); from autograder.cli import main; main()"
    run = [sys.executable, "-c", script, "check", CHAPTER]
    done = subprocess.run(run, cwd=copy, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.splitlines()[0]).is_relative_to(copy)
    assert "4 of 4 points" in done.stdout
    assert "The notebook is intact." in done.stdout
