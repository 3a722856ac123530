"""The archive for students, in an empty folder: nothing secret in it, and a chapter can be worked through."""

import errno
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from autograder.course.curriculum import CourseError, find_course
from autograder.course.release import write_zip

pytestmark = pytest.mark.xdist_group("zip")
CHAPTER = "02"  # it imports an answer of chapter 01
MINE = (".2026-03-01-120000.bak", "notes.txt", "solved.ipynb")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """The repository as an instructor's, whose own work lies about: a solved notebook kept aside, and notes."""
    root, here = tmp_path_factory.mktemp("workshop"), find_course().root
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=here, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (here / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here / name, root / name)
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    course = find_course(root)
    chapter = course.find(CHAPTER)
    for place in (course.notebook(chapter).parent, course.solution(chapter).parent):
        for name in (f"{chapter.module}.ipynb{MINE[0]}", *MINE[1:]):
            shutil.copy(course.solution(chapter), place / name)
    return course


@pytest.fixture(scope="module")
def copy(tmp_path_factory, workshop):
    """A student's copy, unpacked: one chapter alone, as if the course started with it."""
    folder = tmp_path_factory.mktemp("student")
    answered = write_zip(workshop, [workshop.find(CHAPTER)], folder / "attention.zip")
    assert [chapter.number for chapter in answered] == ["00", "01"]
    with zipfile.ZipFile(folder / "attention.zip") as archive:
        archive.extractall(folder)
    return folder / "attention"


@pytest.fixture(scope="module")
def environment(copy):
    """The copy's own package first, installed libraries after it: what `make lab` sets up, without the download."""
    return os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}


def test_it_holds_what_students_need_and_nothing_else(copy):
    names = {str(path.relative_to(copy)) for path in copy.rglob("*")}
    assert {"Makefile", "pyproject.toml", "environment/course.lock", "data/download.py", "docs/student.md"} <= names
    assert {"notebooks/10_multi30k_translator/translator.pt", "attention_course/translator.py"} <= names
    assert "originals/02_normalized_dot_products/normalized_dot_products.ipynb" in names
    assert not any(name.startswith(("solutions", "tests", "classroom", "book", ".git")) for name in names)
    assert not any(name.endswith(("hidden.py", "mutants.py", "mutants.txt", "checks/formulas.py")) for name in names)
    assert not any(name.endswith(MINE) for name in names)
    assert (copy / "README.md").read_text().startswith("# For students")
    for notebook in copy.rglob("*.ipynb"):
        text = notebook.read_text()
        assert ".hidden import" not in text and "BEGIN SOLUTION" not in text


def test_its_makefile_has_no_target_that_cannot_work(copy):
    shown = subprocess.run(["make"], cwd=copy, capture_output=True, text=True, check=True).stdout
    assert [line.split()[1] for line in shown.splitlines()] == ["lab"]
    assert subprocess.run(["make", "test"], cwd=copy, capture_output=True).returncode == 2


def test_it_opens_and_speaks_of_the_chapter_that_is_in_it(copy):
    shown = subprocess.run(["make", "-n", "lab"], cwd=copy, capture_output=True, text=True, check=True).stdout
    assert "default_url=/lab/tree/notebooks/02_normalized_dot_products/normalized_dot_products.ipynb " in shown
    text = (copy / "README.md").read_text()
    assert text.startswith("# For students\n\nThis copy holds:\n- `notebooks/02_normalized_dot_products/")
    assert "Those of 0 (Start here), 1 (Weighted averages) are in `notebooks/reference`" in text
    assert "autograder check 02 --repair" in text and "autograder check 01" not in text
    mentioned = re.findall(r"notebooks/[\w/.]*\w", text)
    assert len(mentioned) >= 4 and [name for name in mentioned if not (copy / name).exists()] == []


def test_earlier_chapters_go_along_as_answers_without_checks(copy):
    [_, weighted_averages] = sorted((copy / "notebooks/reference").iterdir())
    notebook = nbformat.read(weighted_averages, as_version=4)
    nbformat.validate(notebook)
    assert any(cell.source.startswith("def weighted_avg(x, weights)") for cell in notebook.cells)
    assert not any("check." in cell.source for cell in notebook.cells)


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
    count = sum(exercise.kind == "code" for exercise in chapter.exercises)
    assert f"{count} of {count} exercises pass their visible checks" in done.stdout
    assert "The notebook is intact." in done.stdout


def test_on_a_full_disk_no_part_of_an_archive_is_left(repository, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    course = find_course(repository)
    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(CourseError, match=r"course\.zip cannot be written: No space left on device: "):
        write_zip(course, course.select(["01"]), tmp_path / "course.zip")
    assert list(tmp_path.iterdir()) == []
