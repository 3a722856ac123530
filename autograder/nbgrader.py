"""The engine as nbgrader's own preprocessors, for any course of nbgrader's.

`nbgrader autograde`, formgrader's button and `autograder grade` give the same marks because all three take a mark from
the same place: the outputs of the notebook that the engine returns, read by nbgrader's `determine_grade`.
"""

import tempfile
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell
from nbgrader.api import Gradebook, Notebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Enum, Float, Integer

from autograder.job import Job, grade_job
from autograder.submission import SubmissionError, read_notebook, repair


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

    def modules(self, source: Path) -> dict[str, str]:
        """What a notebook may import beside packages, as text by name: nothing, unless a subclass knows of more."""
        return {}

    def job(self, submission: Path, source: Path) -> Job:
        """How this course grades a notebook."""
        limits = {name: getattr(self, name) for name in self.trait_names(limit=True)}
        return Job(submission, source, self.modules(source), limits, self.run_cells, self.unsafe)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "submission.ipynb")
            nbformat.write(nb, path)
            outcome = grade_job(self.job(path, self.source(resources)))
        graded = nbformat.reads(outcome.notebook, as_version=4)
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            set_checksums(graded, gradebook.find_notebook(names["notebook"], names["assignment"]))
        return graded, resources


def set_checksums(notebook: NotebookNode, released: Notebook) -> dict[str, NotebookNode]:
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
