"""Formgrader's manual grading: the course's own text as it looks in a notebook, the rubric beside each answer.

`nbgrader_config.py` has nbconvert render Markdown by `markdown`. A cell whose text stands in `solutions/` is the
course's own, with its diagrams and formulas, which need no network; everything else is a student's. On formgrader's
page of a submission, and only there, each written answer is followed by what `solutions/` says of it: the model answer
and the rubric.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import pass_context

from autograder import pages
from autograder.cells import flags_of
from autograder.course.curriculum import CourseError, find_course
from autograder.course.prose import formatted


@pass_context
def markdown(context: Mapping[str, Any], source: str) -> str:
    """Markdown as HTML that does nothing, and in formgrader the rubric below an answer that is marked by hand."""
    resources = context.get("resources", {})
    about = context.get("cell", {}).get("metadata", {}).get("nbgrader", {})
    solution = _solution(resources)
    own, answers = _read(solution, solution.stat().st_mtime_ns) if solution else (frozenset(), {})
    if solution and source.strip() in own and not about.get("solution"):
        return formatted(source, solution.parent)
    html = pages.markdown(context, source)
    rubric = answers.get(about.get("grade_id", "")) if about.get("grade") and about.get("solution") else None
    if "submission_id" not in resources or not rubric or not solution:
        return html
    shown = formatted(rubric, solution.parent)
    return f'{html}<details class="rubric" open><summary><b>What solutions/ says</b></summary>{shown}</details>'


def _solution(resources: Mapping[str, Any]) -> Path | None:
    """The notebook in `solutions/` of the page at hand, by formgrader's names or nbgrader's; None if there is none."""
    names = resources.get("nbgrader", {})
    assignment = resources.get("assignment_id", names.get("assignment"))
    notebook = resources.get("notebook_id", names.get("notebook"))
    if not assignment or not notebook:
        return None
    try:
        path = Path(find_course().root, "solutions", assignment, f"{notebook}.ipynb")
    except CourseError:
        return None
    return path if path.is_file() else None


@lru_cache(maxsize=32)
def _read(solution: Path, changed: int) -> tuple[frozenset[str], dict[str, str]]:
    """The course's own Markdown cells, and what it says of each written answer; `changed` is when the file was."""
    cells = [cell for cell in nbformat.read(solution, as_version=4).cells if cell.cell_type == "markdown"]
    named = {flags_of(cell).get("grade_id"): cell for cell in cells}
    own = frozenset(cell.source.strip() for cell in cells if not flags_of(cell).get("solution"))
    return own, {name: cell.source for name, cell in named.items() if name}
