"""An example class: six students whose notebooks are made from the right and wrong answers on record.

It has a classroom of its own, `classroom/example/`, so that no real gradebook meets its students.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.course import grade, gradebook
from autograder.course.curriculum import Chapter, Course
from autograder.course.proof import answers_of, cell_of
from autograder.submission import repair


def _all_right(course: Course, chapter: Chapter) -> str:
    return nbformat.writes(_answered(course, chapter, right=True))


def _all_wrong(course: Course, chapter: Chapter) -> str:
    return nbformat.writes(_answered(course, chapter, right=False))


def _half_done(course: Course, chapter: Chapter) -> str:
    count = sum(exercise.kind == "code" for exercise in chapter.exercises)
    return nbformat.writes(_answered(course, chapter, right=True, first=(count + 1) // 2))


def _untouched(course: Course, chapter: Chapter) -> str:
    return nbformat.writes(_answered(course, chapter, right=True, first=0))


def _broken_notebook(course: Course, chapter: Chapter) -> str:
    text = _all_right(course, chapter)
    return text[: len(text) // 2]


def _lost_metadata(course: Course, chapter: Chapter) -> str:
    notebook = json.loads(_all_right(course, chapter))
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        cell.pop("id", None)
    return json.dumps(notebook | {"metadata": {}, "nbformat_minor": 4})


STUDENTS: dict[str, Callable[[Course, Chapter], str]] = {
    "all_right": _all_right,
    "all_wrong": _all_wrong,
    "broken_notebook": _broken_notebook,
    "half_done": _half_done,
    "lost_metadata": _lost_metadata,
    "untouched": _untouched,
}


def _answered(course: Course, chapter: Chapter, *, right: bool, first: int | None = None) -> NotebookNode:
    """The released notebook with the first so many exercises answered, differently from the reference."""
    reference = nbformat.read(course.solution(chapter), as_version=4)
    notebook, _ = repair(nbformat.v4.new_notebook(), reference)  # as it is handed out
    on_record = answers_of(chapter)
    exercises = [exercise for exercise in chapter.exercises if exercise.kind == "code"][:first]
    for number, exercise in enumerate(exercises):
        choice = [a for a in on_record if a.exercise == exercise.name and a.right == right]
        text = choice[number % len(choice)].cell(cell_of(reference, exercise.name).source)
        cell_of(notebook, exercise.name).source = "\n".join(
            line for line in text.splitlines() if "### BEGIN SOLUTION" not in line and "### END SOLUTION" not in line
        )
    return notebook


def build(course: Course, chapters: list[Chapter], submitted: Path) -> None:
    """Hand in the example class.

    Args:
        course: the course, with its solutions.
        chapters: the chapters to hand in.
        submitted: the folder for the students' folders; what is in it already is removed.
    """
    shutil.rmtree(submitted, ignore_errors=True)
    for student, write in STUDENTS.items():
        for chapter in chapters:
            path = submitted / student / chapter.folder / f"{chapter.module}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(write(course, chapter), encoding="utf-8")


def run(course: Course, chapters: list[Chapter]) -> int:
    """Build the example class and grade it, apart from any real class.

    Args:
        course: the course, with its solutions.
        chapters: the chapters to hand in.

    Returns:
        The exit status: 0 when all went as meant; that `broken_notebook` cannot be graded is meant.
    """
    folder = course.root / "classroom" / "example"
    build(course, chapters, folder / "submitted")
    nbgrader = gradebook.configure(course)
    nbgrader.coursedir.submitted_directory = "classroom/example/submitted"
    nbgrader.coursedir.autograded_directory = "classroom/example/autograded"
    nbgrader.coursedir.db_url = f"sqlite:///{folder / 'gradebook.db'}"
    status = grade.run(course, chapters, nbgrader=nbgrader)
    return grade.GRADED if status == grade.UNGRADABLE else status
