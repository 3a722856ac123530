"""Honest answers in unusual styles, written from the exercises' text alone: each is right, and passes in the grader.

`honest/CHAPTER.txt` holds them. An answer begins with a line `=== EXERCISE: its style`; what follows is the text of the
solution cell, or, below `--- above`, a cell that the student added above it, below `--- imports`, lines that the
student added to the chapter's first cell, and below `--- answer` the solution cell after these.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.course import proof
from autograder.course.curriculum import Chapter, find_course, reference_modules
from autograder.run import grade_notebook

COURSE = find_course()
FOLDER = Path(__file__).with_name("honest")
ONE_IN = 3


@dataclass(frozen=True)
class Honest:
    """One honest answer: the exercise, its style, and the text of the cells by where they stand."""

    exercise: str
    style: str
    cells: dict[str, str]


@cache
def read_honest(chapter: Chapter) -> list[Honest]:
    """The honest answers of a chapter."""
    found = []
    for block in (FOLDER / f"{chapter.module}.txt").read_text("utf-8").split("=== ")[1:]:
        head, _, text = block.partition("\n")
        exercise, _, style = head.partition(": ")
        first, *more = re.split(r"^--- (\w+)\n", text, flags=re.MULTILINE)
        cells = {"answer": first} | dict(zip(more[::2], more[1::2], strict=True))
        found.append(Honest(exercise, style, {where: cell.strip("\n") for where, cell in cells.items()}))
    return found


def of_student(answers: list[Honest], number: int) -> dict[str, Honest]:
    """What one student answered: the answer of this number to each exercise that has so many."""
    own: dict[str, list[Honest]] = {}
    for answer in answers:
        own.setdefault(answer.exercise, []).append(answer)
    return {exercise: some[number] for exercise, some in own.items() if number < len(some)}


def handed_in(notebook: NotebookNode, answers: dict[str, Honest]) -> NotebookNode:
    """The chapter's solution with these answers in place of its own."""
    cells = []
    for cell in notebook.cells:
        if answer := answers.get(proof.flags_of(cell).get("grade_id", "")):
            if "above" in answer.cells:
                cells.append(nbformat.v4.new_code_cell(answer.cells["above"]))
            cell = NotebookNode(cell | {"source": answer.cells["answer"]})
        cells.append(cell)
    if more := "\n".join(answer.cells["imports"] for answer in answers.values() if "imports" in answer.cells):
        cells[0] = NotebookNode(cells[0] | {"source": f"{cells[0].source}\n{more}"})
    return NotebookNode(notebook | {"cells": cells})


def students_of(chapter: Chapter) -> int:
    """How many students it takes to give all of a chapter's answers."""
    return max(Counter(answer.exercise for answer in read_honest(chapter)).values())


STUDENTS = [(chapter, number) for chapter in COURSE.chapters for number in range(students_of(chapter))]


def test_there_are_enough_and_each_answers_an_exercise():
    assert sum(len(read_honest(chapter)) for chapter in COURSE.chapters) >= 200
    for chapter in COURSE.chapters:
        exercises = {exercise.name for exercise in chapter.exercises if exercise.kind == "code"}
        assert {answer.exercise for answer in read_honest(chapter)} <= exercises
        styles = [(answer.exercise, answer.style) for answer in read_honest(chapter)]
        assert len(set(styles)) == len(styles)


@pytest.mark.parametrize("chapter, number", STUDENTS, ids=[f"{c.number}-{n}" for c, n in STUDENTS])
def test_honest_answers_pass(chapter, number, roomy, everything):
    if not everything and (int(chapter.number) + number) % ONE_IN:
        pytest.skip("`make test-all` takes all")
    notebook = proof.code_of(nbformat.read(COURSE.solution(chapter), as_version=4))
    answers = of_student(read_honest(chapter), number)
    checks = {c.metadata.nbgrader.grade_id: name for name in answers for c in proof.check_cells(notebook, name)}
    student = handed_in(notebook, answers)
    graded = grade_notebook(roomy, student, notebook, modules=reference_modules(COURSE, chapter), only=set(checks))
    failed = [i for i in graded.items if i.points < i.max_points]
    assert [f"{answers[checks[i.grade_id]].style}: {i.grade_id} {i.status}: {i.message}" for i in failed] == []
