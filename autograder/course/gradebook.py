"""Where the marks of a course in this layout go: nbgrader's gradebook."""

import stat
import tempfile
from pathlib import Path

from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells

from autograder.course.curriculum import Chapter, Course, CourseError, find_course, reference_modules
from autograder.nbgrader import GradeSubmission, set_checksums


def configure(course: Course) -> NbGrader:
    """nbgrader, configured by the course's `nbgrader_config.py`.

    Args:
        course: the course that is graded.

    Returns:
        nbgrader's application object; `.coursedir` tells its folders and the gradebook's address.
    """
    app = NbGrader()
    app.log_level = "ERROR"
    app.initialize([], root=str(course.root))
    return app


def open_gradebook(app: NbGrader) -> Gradebook:
    """The gradebook that `nbgrader_config.py` names; its folder is made if need be."""
    url = app.coursedir.db_url
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    return Gradebook(url, app.coursedir.course_id or "default_course")


def generate(app: NbGrader, chapter: Chapter, directory: Path, tell_gradebook: bool) -> None:
    """Write a chapter's release with nbgrader's own `generate_assignment`.

    Args:
        app: nbgrader, configured.
        chapter: the chapter whose source in `solutions/` is read.
        directory: where its folder is put.
        tell_gradebook: which cells the chapter has and what they are worth.

    Raises:
        CourseError: nbgrader refuses the chapter, for a solution cell without markers, say, or because the gradebook
            holds marks for other cells than the chapter has now.
    """
    coursedir = CourseDirectory(parent=app)
    coursedir.root, coursedir.db_url = app.coursedir.root, app.coursedir.db_url
    coursedir.release_directory, coursedir.assignment_id = str(directory), chapter.folder
    converter = GenerateAssignment(coursedir=coursedir, parent=app, force=True, no_database=not tell_gradebook)
    if not tell_gradebook:
        converter.preprocessors = [p for p in converter.preprocessors if p is not SaveCells]
    try:
        converter.start()
    except NbGraderException as error:
        raise CourseError(
            f"nbgrader cannot release {chapter.folder} as it is now: {error}. If exercises were added or removed after "
            f"a class was graded, run `nbgrader db assignment remove {chapter.folder} --force` and grade again; marks "
            "that were given by hand in that chapter are lost"
        ) from error


def synchronise(app: NbGrader, chapter: Chapter) -> None:
    """Tell the gradebook which cells a chapter has and what they are worth, without a release.

    Args:
        app: nbgrader, configured.
        chapter: the chapter whose source in `solutions/` is read.

    Raises:
        CourseError: see `generate`.
    """
    with tempfile.TemporaryDirectory() as directory:
        generate(app, chapter, Path(directory), tell_gradebook=True)


def record(
    gradebook: Gradebook,
    student: str,
    chapter: Chapter,
    notebook: NotebookNode,
    handed_in_at: str | None = None,
) -> None:
    """Write the marks of one graded notebook; the marks that they replace are gone, those given by hand stay.

    The marks of a notebook are one transaction, so that an interrupt leaves all of them or none. Penalties for handing
    in late are worked out later, for all at once (`standing.refresh_penalties`).

    Args:
        gradebook: the open gradebook.
        student: who handed in.
        chapter: what was handed in.
        notebook: the graded notebook; the checksums in its metadata are set to those of the release.
        handed_in_at: when it was handed in, if that is known.
    """
    when = {"timestamp": handed_in_at} if handed_in_at else {}
    with gradebook.db.no_autoflush:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission(chapter.folder, student, **when)
    submitted = gradebook.find_submission_notebook(chapter.module, chapter.folder, student)
    cells = set_checksums(notebook, submitted.notebook)
    for grade in submitted.grades:
        cell = cells.get(grade.name)
        grade.auto_score = utils.determine_grade(cell)[0] if cell and cell.source.strip() else 0.0
        grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
    for comment in submitted.comments:
        cell = cells.get(comment.name)
        comment.auto_comment = "No response." if cell is not None and _is_unanswered(cell) else None
    gradebook.db.commit()


def set_time(gradebook: Gradebook, student: str, chapter: Chapter, handed_in_at: str) -> None:
    """Note when something was handed in that keeps its marks."""
    submission = gradebook.find_submission(chapter.folder, student)
    if submission.timestamp != (when := utils.parse_utc(handed_in_at)):
        submission.timestamp = when
        gradebook.db.commit()


def _is_unanswered(cell: NotebookNode) -> bool:
    """Whether an answer is empty, or as it was handed out."""
    return not cell.source.strip() or cell.metadata.nbgrader["checksum"] == utils.compute_checksum(cell)


def is_plain_file(path: Path) -> bool:
    """Whether a path that a student may have made is a file, not a link to another's nor a pipe that never ends."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def read_timestamp(folder: Path) -> str | None:
    """When a folder was handed in, as nbgrader's `timestamp.txt` tells it; None if it does not."""
    file = folder / "timestamp.txt"
    if not is_plain_file(file) or file.stat().st_size > 100:
        return None
    try:
        text = file.read_text(encoding="utf-8").strip()
        utils.parse_utc(text)
    except (OSError, ValueError, OverflowError):
        return None
    return text


def is_recorded(gradebook: Gradebook, student: str, chapter: Chapter) -> bool:
    """Whether the gradebook holds a mark for each check cell of a student's notebook."""
    try:
        submitted = gradebook.find_submission_notebook(chapter.module, chapter.folder, student)
    except MissingEntry:
        return False
    return all(grade.auto_score is not None for grade in submitted.grades if grade.cell_type == "code")


class GradeChapter(GradeSubmission):
    """Grades a chapter, which may import the reference of earlier ones; it is configured as `GradeSubmission`."""

    def modules(self, source: Path) -> dict[str, str]:
        """The earlier chapters' definitions."""
        course = find_course(source.parent)
        return reference_modules(course, course.find(source.stem))
