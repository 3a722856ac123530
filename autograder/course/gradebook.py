"""Where marks go: nbgrader's gradebook, and the engine as nbgrader's own preprocessors.

`nbgrader autograde`, formgrader's button and `autograder grade` give the same marks because all three take a mark from
the same place: the outputs of the notebook that the engine returns, read by nbgrader's `determine_grade`.
"""

import stat
import tempfile
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry, Notebook
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor, SaveCells
from traitlets import Bool, Enum, Float, Integer

from autograder.course.curriculum import Chapter, Course, CourseError, find_course, reference_modules
from autograder.job import Job, grade_job
from autograder.submission import SubmissionError, read_notebook, repair


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
    cells = _set_checksums(notebook, submitted.notebook)
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


def _set_checksums(notebook: NotebookNode, released: Notebook) -> dict[str, NotebookNode]:
    """Give the cells the checksums of the release, by which nbgrader knows an answer that was left as it was.

    Returns:
        The cells that nbgrader knows, by name.
    """
    checksums = {cell.name: cell.checksum for cell in released.source_cells}
    cells = {}
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in checksums:
            cell.metadata.nbgrader["checksum"] = checksums[grade_id]
            cells[grade_id] = cell
    return cells


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


class SubmissionExporter(NotebookExporter):
    """Reads a submission whatever it is: what is not a notebook counts as an empty one, so that it gets no points."""

    def from_file(self, file_stream, resources=None, **kw):
        try:
            notebook = read_notebook(Path(file_stream.name))
        except SubmissionError as error:
            self.log.error("%s: %s", file_stream.name, error)
            notebook = nbformat.v4.new_notebook()
        cells = [_plain_cell(cell) for cell in notebook.cells]
        notebook = nbformat.v4.new_notebook(cells=cells)
        return self.from_notebook_node(notebook, resources=resources, **kw)


def _plain_cell(read: NotebookNode) -> NotebookNode:
    """A valid cell with what repair goes by: type, text, id, grade_id and attachments."""
    new = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}[read.cell_type]
    cell = new(read.source)
    if read.get("id"):
        cell.id = read.id
    if read.get("grade_id"):
        cell.metadata.nbgrader = NotebookNode(grade_id=read.grade_id)
    if "attachments" in read:
        cell.attachments = read.attachments
    return cell


class _EnginePreprocessor(NbGraderPreprocessor):
    """What the two steps share: where the source of the notebook at hand lies."""

    def source(self, resources: dict) -> Path:
        names = resources["nbgrader"]
        coursedir = CourseDirectory(parent=self)
        folder = coursedir.format_path(coursedir.source_directory, ".", names["assignment"])
        return Path(folder, f"{names['notebook']}.ipynb")


class RepairSubmission(_EnginePreprocessor):
    """Puts a submission back into the shape of its source: nbgrader's sanitizing step."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        repaired, problems = repair(nb, nbformat.read(self.source(resources), as_version=4))
        for problem in problems:
            self.log.warning(problem)
        return repaired, resources


class GradeSubmission(_EnginePreprocessor):
    """Grades a repaired submission in the sandbox: the place of nbgrader's own `Execute`."""

    run_cells = Enum(
        ("definitions", "all"),
        "definitions",
        help="what of the source's ungraded cells runs: only imports, functions, classes and constants, or everything",
    ).tag(config=True)
    unsafe = Bool(False, help="run students' code without a sandbox").tag(config=True)
    cell_seconds = Float(20, help="wall time for a cell").tag(config=True, limit=True)
    check_seconds = Float(60, help="wall time for a check, the course's own part included").tag(config=True, limit=True)
    submission_seconds = Float(120, help="wall time for a submission").tag(config=True, limit=True)
    cpu_seconds = Integer(60, help="processor time for a submission").tag(config=True, limit=True)
    memory_mb = Integer(2048, help="memory beyond what Python and torch take").tag(config=True, limit=True)
    file_mb = Integer(16, help="size of a file, and of all together").tag(config=True, limit=True)
    open_files = Integer(64, help="files open at once").tag(config=True, limit=True)
    threads = Integer(64, help="threads at once").tag(config=True, limit=True)
    reply_mb = Integer(64, help="size of what a call returns").tag(config=True, limit=True)
    items = Integer(10_000, help="items that a check can read from one iterator").tag(config=True, limit=True)
    output_kb = Integer(100, help="printed text kept for a cell").tag(config=True, limit=True)
    message_chars = Integer(4_000, help="length of an error message").tag(config=True, limit=True)
    notebook_mb = Integer(20, help="size of a notebook").tag(config=True, limit=True)

    def job(self, submission: Path, source: Path) -> Job:
        """How this course grades a notebook."""
        limits = {name: getattr(self, name) for name in self.trait_names(limit=True)}
        return Job(submission, source, _earlier_chapters(source), limits, self.run_cells, self.unsafe)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "submission.ipynb")
            nbformat.write(nb, path)
            outcome = grade_job(self.job(path, self.source(resources)))
        graded = nbformat.reads(outcome.notebook, as_version=4)
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            _set_checksums(graded, gradebook.find_notebook(names["notebook"], names["assignment"]))
        return graded, resources


def _earlier_chapters(source: Path) -> dict[str, str]:
    try:
        course = find_course(source.parent)
    except CourseError:
        return {}  # another course: its notebooks import no chapters
    return reference_modules(course, course.find(source.stem))
