"""An example class: six students whose notebooks are made from the right and wrong answers on record.

    python -m autograder.example_class

hands their notebooks in under `classroom/submitted/` and grades them.
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import report
from autograder.course import Chapter, Course, CourseError, find_course
from autograder.kill_table import answers, cell_of


def _all_right(course: Course, chapter: Chapter) -> str:
    return nbformat.writes(_answered(course, chapter, right=True))


def _all_wrong(course: Course, chapter: Chapter) -> str:
    return nbformat.writes(_answered(course, chapter, right=False))


def _half_done(course: Course, chapter: Chapter) -> str:
    count = sum(exercise.kind == "code" for exercise in chapter.exercises)
    return nbformat.writes(_answered(course, chapter, right=True, first=(count + 1) // 2))


def _untouched(course: Course, chapter: Chapter) -> str:
    return course.notebook(chapter).read_text(encoding="utf-8")


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
    notebook = nbformat.read(course.notebook(chapter), as_version=4)
    reference = nbformat.read(course.solution(chapter), as_version=4)
    on_record = answers(chapter)
    exercises = [exercise for exercise in chapter.exercises if exercise.kind == "code"][:first]
    for number, exercise in enumerate(exercises):
        choice = [a for a in on_record if a.exercise == exercise.name and (a.says is None) == right]
        text = choice[number % len(choice)].cell(cell_of(reference, exercise.name).source)
        cell_of(notebook, exercise.name).source = "\n".join(
            line for line in text.splitlines() if "### BEGIN SOLUTION" not in line and "### END SOLUTION" not in line
        )
    return notebook


def build(course: Course, chapters: list[Chapter], submitted: Path) -> None:
    """Hand in the example class.

    Args:
        course: the course, with its solutions and its released notebooks.
        chapters: the chapters to hand in.
        submitted: the folder for the students' folders.

    Raises:
        CourseError: the folder holds other students, whose gradebook the example must not enter.
    """
    others = {f.name for f in submitted.glob("*") if f.is_dir()} - STUDENTS.keys()
    if others:
        raise CourseError(f"{submitted} holds a class ({min(others)}, …): the example would get into its gradebook")
    for student, write in STUDENTS.items():
        shutil.rmtree(submitted / student, ignore_errors=True)
        for chapter in chapters:
            path = submitted / student / chapter.folder / f"{chapter.module}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(write(course, chapter), encoding="utf-8")


def main() -> int:
    """Build the example class in the course's own `classroom/` and grade it.

    Returns:
        The exit status: 0 when all went as meant; that `broken_notebook` cannot be graded is meant.
    """
    try:
        course = find_course()
        submitted = course.root / "classroom" / "submitted"
        build(course, course.chapters, submitted)
        options = dict.fromkeys(("submitted", "student", "json_file", "workers", "scheduler"))
        status = report.run(course, course.chapters, **options, unsafe=False)
    except CourseError as error:
        print(f"autograder: {error}", file=sys.stderr)
        return 2
    return 0 if status == report.UNGRADABLE else status


if __name__ == "__main__":
    sys.exit(main())
