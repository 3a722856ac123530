"""Where the marks of a course in this layout go: nbgrader's gradebook."""

import os
from collections.abc import Collection
from pathlib import Path

from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry, Student
from nbgrader.apps.baseapp import NbGrader
from sqlalchemy.exc import SQLAlchemyError

from autograder.course.curriculum import CLASS, Chapter, Course, CourseError
from autograder.nbgrader import set_checksums


def configure(course: Course) -> NbGrader:
    """nbgrader, configured by the course's `nbgrader_config.py`.

    Args:
        course: the course that is graded.

    Returns:
        nbgrader's application object; `.coursedir` tells the folders of the class and its gradebook's address.

    Raises:
        CourseError: there is no such class, or its gradebook would be that of all.
    """
    app = NbGrader()
    app.log_level = "ERROR"
    outside = os.environ.get(CLASS)
    os.environ[CLASS] = course.class_name
    try:
        app.initialize([], root=str(course.root))
    except SystemExit as error:  # what `nbgrader_config.py` refuses
        raise CourseError(str(error)) from None
    finally:
        del os.environ[CLASS]
        if outside is not None:
            os.environ[CLASS] = outside
    return app


def open_gradebook(app: NbGrader) -> Gradebook:
    """The gradebook that `nbgrader_config.py` names; its folder is made if need be."""
    url = app.coursedir.db_url
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    return Gradebook(url, app.coursedir.course_id or "default_course")


def has_students(app: NbGrader) -> bool:
    """Whether anybody is in the gradebook that `nbgrader_config.py` names; one that is not there is not made."""
    url = app.coursedir.db_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
        return False
    try:
        with open_gradebook(app) as book:
            return bool(book.students)
    except SQLAlchemyError:  # no such database on the server
        return False


def full_name(student: Student) -> str:
    """A student's first and last name, as far as the gradebook knows them; empty if it knows neither."""
    return " ".join(filter(None, (student.first_name, student.last_name)))


def record(
    gradebook: Gradebook,
    student: str,
    chapter: Chapter,
    notebook: NotebookNode,
    handed_in_at: str | None = None,
    forget_time: bool = False,
    faulty: Collection[str] = (),
    unchanged: Collection[str] = (),
    unread: bool = False,
) -> dict[str, tuple[float | None, float]]:
    """Write the marks of one graded notebook; the marks that they replace are gone, those given by hand stay.

    A mark given by hand is flagged for review where what it was given for has changed.

    The marks of a notebook are one transaction, so that an interrupt leaves all of them or none. Penalties for handing
    in late are worked out later, for all at once (`standing.refresh_penalties`).

    Args:
        gradebook: the open gradebook.
        student: who handed in.
        chapter: what was handed in.
        notebook: the graded notebook; the checksums in its metadata are set to those of the release.
        handed_in_at: when it was handed in, if that is known.
        forget_time: what the gradebook knows is the time of an earlier hand-in.
        faulty: checks that are at fault themselves: their former marks stay, and where there is none it waits for one.
        unchanged: cells whose answer and rubric are what they were when their mark was written.
        unread: the notebook could not be graded at all: nobody knows whether an answer was there.

    Returns:
        Each cell's mark before, None if it had none, and after, without penalties.
    """
    when = {"timestamp": handed_in_at} if handed_in_at or forget_time else {}
    with gradebook.db.no_autoflush:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission(chapter.folder, student, **when)
    submitted = gradebook.find_submission_notebook(chapter.module, chapter.folder, student)
    cells = set_checksums(notebook, submitted.notebook)
    before = {g.name: None if g.auto_score is None and g.manual_score is None else g.score for g in submitted.grades}
    for grade in submitted.grades:
        cell = cells.get(grade.name)
        if grade.name not in faulty:
            grade.auto_score = utils.determine_grade(cell)[0] if cell and cell.source.strip() else 0.0
        if grade.manual_score is None:
            grade.needs_manual_grade = grade.auto_score is None
        elif grade.name not in unchanged:
            grade.needs_manual_grade = True
    for comment in submitted.comments:
        cell = cells.get(comment.name)
        left_out = cell is not None and not unread and _is_unanswered(cell)
        comment.auto_comment = "No response." if left_out else None
    gradebook.db.commit()
    return {grade.name: (before[grade.name], grade.score) for grade in submitted.grades}


def set_time(gradebook: Gradebook, student: str, chapter: Chapter, handed_in_at: str) -> None:
    """Note when something was handed in that keeps its marks."""
    submission = gradebook.find_submission(chapter.folder, student)
    if submission.timestamp != (when := utils.parse_utc(handed_in_at)):
        submission.timestamp = when
        gradebook.db.commit()


def _is_unanswered(cell: NotebookNode) -> bool:
    """Whether an answer is empty, or as it was handed out."""
    return not cell.source.strip() or cell.metadata.nbgrader["checksum"] == utils.compute_checksum(cell)


def is_recorded(gradebook: Gradebook, student: str, chapter: Chapter) -> bool:
    """Whether the gradebook holds a mark for each check cell of a student's notebook."""
    try:
        submitted = gradebook.find_submission_notebook(chapter.module, chapter.folder, student)
    except MissingEntry:
        return False
    return all(grade.auto_score is not None for grade in submitted.grades if grade.cell_type == "code")
