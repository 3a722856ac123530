"""Which results a reader is asked to predict.

    python solutions/predictions.py

folds them in all chapters, after a change of text; `make execute` does it for what it executes.
"""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.cells import flags_of
from autograder.course.curriculum import find_course

ASKED = "**Predict"
_ANSWER = re.compile(r"<summary>(?:The answer|Answer|The table)")


def fold_results(notebook: NotebookNode) -> None:
    """Fold what cells give where a reader is asked to predict it, and unfold all other results.

    They are folded as far as the cell with the answer. Where there is none before the next
    prediction, or the prediction's own cell answers it, they are folded as far as the first text
    after a result, heading or exercise. What an exercise's own cells print is never folded.

    Args:
        notebook: a chapter; its cells' `collapsed`, which JupyterLab and the book follow, is set.
    """
    cells = notebook.cells
    folded: set[str] = set()
    for place, cell in enumerate(cells):
        if _asks(cell):
            folded |= _results_of(cell, cells[place + 1 :])
    for cell in cells:
        cell.metadata.pop("collapsed", None)
        if cell.id in folded:
            cell.metadata["collapsed"] = True


def _results_of(prediction: NotebookNode, below: list[NotebookNode]) -> set[str]:
    """The ids of the cells whose results this prediction asks for."""
    own = "<details>" in prediction.source.rpartition(ASKED)[2]
    stops = (place for place, cell in enumerate(below) if _asks(cell) or _answers(cell))
    end = next(stops, len(below))
    if own or end == len(below) or not _answers(below[end]):
        end = _first_pause(below)
    return {c.id for c in below[:end] if c.cell_type == "code" and c.outputs and not flags_of(c)}


def _first_pause(below: list[NotebookNode]) -> int:
    """The place of the first text after a result, or of a heading, prediction or exercise."""
    shown = False
    for place, cell in enumerate(below):
        if cell.cell_type == "code":
            shown = shown or bool(cell.outputs)
        heading = cell.cell_type == "markdown" and cell.source.startswith("#")
        after = cell.cell_type == "markdown" and shown
        if flags_of(cell) or heading or after or _asks(cell):
            return place
    return len(below)


def _asks(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" and ASKED in cell.source


def _answers(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" and bool(_ANSWER.search(cell.source))


if __name__ == "__main__":
    course = find_course(Path(__file__).parent)
    for chapter in course.chapters:
        notebook = nbformat.read(course.solution(chapter), as_version=4)
        fold_results(notebook)
        nbformat.write(notebook, course.solution(chapter))
