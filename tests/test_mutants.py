"""Each wrong answer fails with its message and is named for its own mistake, each right one passes.

On real objects, all of them; through the grader half of the right ones, and of the wrong ones of each exercise a tenth,
so that each way to forge meets several exercises: `make test-all` takes them all.
"""

import contextlib
import shutil
from functools import lru_cache

import nbformat
import pytest

from autograder.course import proof
from autograder.course.curriculum import find_course, reference_modules
from autograder.course.mistakes import catalogue, name_mistake
from autograder.isolation.sandbox import Limits, Sandbox

COURSE = find_course()
ONE_IN = {"right": 2, "wrong": 10}
SEED = 2017  # what comes out here is the same each time; `autograder mutants` draws anew
CASES = [
    pytest.param(chapter, exercise, id=f"{chapter.number}-{exercise.name}")
    for chapter in COURSE.chapters
    for exercise in chapter.exercises
    if exercise.kind == "code"
]


def own(chapter, exercise):
    return [a for a in proof.answers(chapter) if a.exercise == exercise.name]


@lru_cache(maxsize=2)
def read(chapter):
    """A chapter's code and what it may import, once for its exercises."""
    notebook = nbformat.read(COURSE.solution(chapter), as_version=4)
    return proof.code_of(notebook), reference_modules(COURSE, chapter)


@pytest.mark.parametrize(("chapter", "exercise"), CASES)
def test_in_a_notebook(chapter, exercise):
    notebook, _ = read(chapter)
    with contextlib.chdir(COURSE.solution(chapter).parent):
        honest = [answer for answer in own(chapter, exercise) if not answer.forged]
        verdicts = [proof.judge_in_notebook(notebook, answer, SEED) for answer in honest]
    assert [proof.complaint(v) for v in verdicts if not v.as_meant] == []
    known = catalogue(honest)[exercise.name]
    misnamed = [
        f"{v.answer.title!r} says {v.answer.says!r}, but is taken for {found.says!r}: {v.message}"
        for v in verdicts
        if v.answer.says and (found := name_mistake(v.message, known)).says != v.answer.says
    ]
    assert misnamed == []


@pytest.fixture(scope="module")
def sandbox():
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is missing: apt-get install bubblewrap")
    with Sandbox(Limits()) as sandbox:
        yield sandbox


@pytest.mark.parametrize(("chapter", "exercise"), CASES)
def test_in_the_grader(chapter, exercise, sandbox, everything):
    notebook, modules = read(chapter)
    judged = own(chapter, exercise)
    if not everything:
        first = [case.id for case in CASES].index(f"{chapter.number}-{exercise.name}")
        wrong = [a for a in judged if a.says is not None]
        right = [a for a in judged if a.says is None]
        judged = right[first % ONE_IN["right"] :: ONE_IN["right"]] + wrong[first % ONE_IN["wrong"] :: ONE_IN["wrong"]]
    verdicts = [proof.judge_in_grader(sandbox, notebook, answer, modules, SEED) for answer in judged]
    assert [proof.complaint(v) for v in verdicts if not v.as_meant] == []


@pytest.mark.parametrize(("chapter", "exercise"), CASES)
def test_there_are_enough_of_them(chapter, exercise):
    assert proof.shortfalls(exercise, own(chapter, exercise)) == []
