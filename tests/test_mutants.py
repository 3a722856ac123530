"""Each wrong answer fails for its own mistake, each right one passes, and each mistake is made by a wrong answer.

On real objects, all of them; through the grader a fourth of the right ones and a twentieth of the wrong ones, with each
way to forge among them: `make test-all` takes them all.
"""

import contextlib
from collections import defaultdict
from functools import cache, lru_cache

import nbformat
import pytest

from autograder.answers import Answer
from autograder.course import proof
from autograder.course.curriculum import find_course, reference_modules
from autograder.isolation.sandbox import Sandbox
from autograder.limits import Limits
from autograder.mistakes import Common, Unexplained

COURSE = find_course()
ONE_IN = {"right": 4, "wrong": 20}
SEED = 2017  # what comes out here is the same each time; `autograder mutants` draws anew
CASES = [
    pytest.param(chapter, exercise, id=f"{chapter.number}-{exercise.name}")
    for chapter in COURSE.chapters
    for exercise in chapter.exercises
    if exercise.kind == "code"
]


def own(chapter, exercise):
    return [a for a in proof.answers_of(chapter) if a.exercise == exercise.name]


def part(answers, one_in, first):
    """One in so many, and one at least, from another place each time."""
    return answers[first % min(one_in, max(1, len(answers))) :: one_in]


@cache
def through_the_grader():
    """The answers that are judged in the grader: of each exercise's own a part, and of each way to forge."""
    chosen, forgers = [], defaultdict(list)
    for first, case in enumerate(CASES):
        answers = own(*case.values)
        honest = [answer for answer in answers if not answer.forged]
        for right in (True, False):
            some = [answer for answer in honest if answer.right == right]
            chosen += part(some, ONE_IN["right" if right else "wrong"], first)
        for answer in answers:
            if answer.forged:
                forgers[answer.title].append(answer)
    for first, same in enumerate(forgers.values()):
        chosen += part(same, ONE_IN["wrong"], first)
    return chosen


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
        judged = [proof.judge_in_notebook(notebook, answer, SEED) for answer in honest]
    assert [proof.complaint(j) for j in judged if not j.as_meant] == []


@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.number)
def test_each_mistake_is_made_and_says_nothing_hidden(chapter):
    assert proof.faults(chapter, COURSE.notebook(chapter).read_text(encoding="utf-8")) == []


def test_each_mistake_that_every_exercise_knows_is_made_in_one():
    made = {answer.mistake for chapter in COURSE.chapters for answer in proof.answers_of(chapter)}
    assert [mistake.name for kind in (Common, Unexplained) for mistake in kind if mistake not in made] == []


def test_the_cause_is_named_of_what_people_published():
    published = [answer for chapter in COURSE.chapters for answer in proof.answers_of(chapter) if answer.published]
    assert len(published) > 30
    assert [answer.title for answer in published if isinstance(answer.mistake, Unexplained | None)] == []


@pytest.fixture(scope="module")
def sandbox(sandboxed):
    with Sandbox(Limits()) as sandbox:
        yield sandbox


@pytest.mark.parametrize(("chapter", "exercise"), CASES)
def test_in_the_grader(chapter, exercise, sandbox, everything):
    notebook, modules = read(chapter)
    judged = [answer for answer in own(chapter, exercise) if everything or answer in through_the_grader()]
    found = [proof.judge_in_grader(sandbox, notebook, answer, modules, SEED) for answer in judged]
    assert [proof.complaint(j) for j in found if not j.as_meant] == []


@pytest.mark.parametrize(("chapter", "exercise"), CASES)
def test_there_are_enough_of_them(chapter, exercise):
    assert proof.shortfalls(exercise, own(chapter, exercise)) == []


def test_an_answer_whose_verdict_depends_on_the_seed_is_named(sandbox, monkeypatch):
    chapter = COURSE.find("weighted_averages")
    right, wrong = "torch.einsum('bij,bjd->bid', w, x)", "torch.einsum('bij,bjd->bid', w.mT, x)"
    source = f"def weighted_avg(x, w):\n    return {right} if torch.rand(()) < 0.5 else {wrong}"
    chancy, steady = Answer("weighted_avg", "chancy", None, source), Answer("weighted_avg", "steady", None)
    monkeypatch.setattr(proof, "answers_of", lambda chapter: [chancy, steady])
    ((answer, verdicts),) = proof.changing(proof.judge_chapter(COURSE, chapter, sandbox, range(12)))
    assert answer is chancy and verdicts.total() == 12
