"""Formgrader's manual grading, with the rubric beside the answer.

`nbgrader_config.py` has nbconvert render Markdown by `markdown`. On formgrader's page of a submission, and only there,
each written answer is followed by what `solutions/` says of it: the model answer and the rubric.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import pass_context

from autograder import pages
from autograder.course.curriculum import Course, CourseError, find_course


@pass_context
def markdown(context: Mapping[str, Any], source: str) -> str:
    """Markdown as HTML that does nothing, and in formgrader the rubric below an answer that is marked by hand."""
    html = pages.markdown(context, source)
    resources = context.get("resources", {})
    about = context.get("cell", {}).get("metadata", {}).get("nbgrader", {})
    if "submission_id" not in resources or not (about.get("grade") and about.get("solution")):
        return html
    try:
        rubric = read_rubric(find_course(), resources["assignment_id"], resources["notebook_id"], about["grade_id"])
    except CourseError:
        return html
    if not rubric:
        return html
    shown = pages.markdown({}, rubric)
    return f'{html}<details class="rubric" open><summary><b>What solutions/ says</b></summary>{shown}</details>'


def read_rubric(course: Course, assignment: str, notebook: str, name: str) -> str:
    """The model answer and the rubric of a written answer, as `solutions/` has them; empty if there is none.

    Args:
        course: the course.
        assignment: the chapter's folder.
        notebook: the chapter's module.
        name: the `grade_id` of the answer.
    """
    path = Path(course.root, "solutions", assignment, f"{notebook}.ipynb")
    if not path.is_file():
        return ""
    cells = nbformat.read(path, as_version=4).cells
    return next((c.source for c in cells if c.metadata.get("nbgrader", {}).get("grade_id") == name), "")
