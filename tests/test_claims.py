"""Each sentence that quotes a result is in its chapter, and the executed outputs bear it out."""

import importlib.util

import nbformat
import pytest
from claims import outputs

from autograder.course.curriculum import find_course

COURSE = find_course()
TABLES = {
    chapter: importlib.import_module(f"claims.{chapter.module}").CLAIMS
    for chapter in COURSE.chapters
    if importlib.util.find_spec(f"claims.{chapter.module}")
}
CASES = [
    pytest.param(chapter, claim, id=f"{chapter.number}-{claim.cell}") for chapter in TABLES for claim in TABLES[chapter]
]


@pytest.mark.parametrize(("chapter", "claim"), CASES)
def test_claim(chapter, claim):
    notebook = nbformat.read(COURSE.solution(chapter), as_version=4)
    text = next(cell.source for cell in notebook.cells if cell.id == claim.cell)
    assert " ".join(claim.phrase.split()) in " ".join(text.split())
    assert claim.holds(outputs(notebook))
