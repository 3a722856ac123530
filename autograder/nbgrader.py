"""The engine as nbgrader's own preprocessors, for any course of nbgrader's.

`nbgrader autograde`, formgrader's button and `autograder grade` give the same marks because all three take a mark from
the same place: the outputs of the notebook that the engine returns, read by nbgrader's `determine_grade`.
"""

import os
import tempfile
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, cast

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell
from nbgrader.api import Gradebook, Notebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Bool, Enum, Float, Integer
from traitlets.config import Config

from autograder.cells import flags_of
from autograder.job import Job, grade_job
from autograder.limits import Limits
from autograder.submission import SubmissionError, read_notebook, repair


def use_engine(c: Config, grade: str = "autograder.nbgrader.GradeSubmission") -> None:
    """Configure nbgrader to grade with this engine: called in a course's `nbgrader_config.py`.

    Args:
        c: what `get_config()` gives there.
        grade: the step in the place of nbgrader's own `Execute`.
    """
    c.Autograde.exporter_class = "autograder.nbgrader.SubmissionExporter"
    c.Autograde.sanitize_preprocessors = [
        "autograder.nbgrader.RepairSubmission",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.autograde_preprocessors = [
        grade,
        "nbgrader.preprocessors.LimitOutput",
        "autograder.nbgrader.SaveMarks",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    # What students wrote is shown on pages, and does nothing there: no script of theirs, no markup that acts.
    c.HTMLExporter.filters = {"markdown2html": "autograder.pages.markdown"}
    # Formgrader's own settings win over those of a template's folder, but not over where Jupyter looks for templates.
    ours = str(Path(__file__).parent / "jupyter")
    others = [place for place in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if place not in ("", ours)]
    os.environ["JUPYTER_PATH"] = os.pathsep.join([ours, *others])


class SubmissionExporter(NotebookExporter):
    """Reads a submission whatever it is: what is not a notebook counts as an empty one, so that it gets no points."""

    def from_file(self, file_stream: IO, resources: dict | None = None, **kw: Any) -> tuple[NotebookNode, dict]:
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
    pay_once = Bool(
        True, help="a mistake costs its points once: what uses a wrong exercise is judged again beside the reference"
    ).tag(config=True)
    for _limit in fields(Limits):  # each as a setting of nbgrader's
        vars()[_limit.name] = (Integer if _limit.type is int else Float)(
            cast(Any, _limit.default), help=_limit.metadata["told"]
        ).tag(config=True, limit=True)

    def modules(self, source: Path) -> dict[str, str]:
        """What a notebook may import beside packages, as text by name: nothing, unless a subclass knows of more."""
        return {}

    def job(self, submission: Path, source: Path) -> Job:
        """How this course grades a notebook."""
        limits = {name: getattr(self, name) for name in self.trait_names(limit=True)}
        settings = (self.modules(source), limits, self.run_cells, self.unsafe)
        return Job(submission, source, *settings, pay_once=self.pay_once)

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


class SaveMarks(SaveAutoGrades):
    """nbgrader's own step, which notes what was left without an answer: not where nobody could read the notebook."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        names, coursedir = resources["nbgrader"], CourseDirectory(parent=self)
        folder = coursedir.format_path(coursedir.submitted_directory, names["student"], names["assignment"])
        self._read = True
        try:
            read_notebook(Path(folder, f"{names['notebook']}.ipynb"))
        except SubmissionError:
            self._read = False
        return super().preprocess(nb, resources)

    def _add_comment(self, cell: NotebookNode, resources: dict) -> None:
        if not self._read:
            cell = deepcopy(cell)
            cell.metadata.nbgrader.pop("checksum", None)  # by which it would be an answer that was left out
        super()._add_comment(cell, resources)


def set_checksums(notebook: NotebookNode, released: Notebook) -> dict[str, NotebookNode]:
    """Give the cells the checksums of the release, by which nbgrader knows an answer that was left as it was.

    Returns:
        The cells that nbgrader knows, by name.
    """
    checksums = {cell.name: cell.checksum for cell in released.source_cells}
    cells: dict[str, NotebookNode] = {}
    for cell in notebook.cells:
        grade_id = flags_of(cell).get("grade_id", "")
        if grade_id in checksums:
            cell.metadata.nbgrader["checksum"] = checksums[grade_id]
            cells[grade_id] = cell
    return cells
