"""Full marks travel: a later chapter works on earlier exercises that were answered rightly, but in other words.

A class has as many students as an exercise has right answers on record, at most: student number k answered every
exercise of every chapter with its variant number k, counted in a circle. On their modules each chapter's own answers
pass its checks, and those that train learn as well as on the reference.
"""

import contextlib
import io
import sys
import warnings
from functools import lru_cache
from types import ModuleType

import nbformat
import pytest
import torch

from autograder.answers import Answer
from autograder.course import proof
from autograder.course.curriculum import find_course
from autograder.source import definitions, execute_definitions

COURSE = find_course()
SEED = 2017  # what comes out here is the same each time
ONE_IN = 3


@lru_cache
def read(chapter):
    """A chapter's code."""
    return proof.code_of(nbformat.read(COURSE.solution(chapter), as_version=4))


@lru_cache
def variants(chapter):
    """The right answers of each exercise."""
    right = {}
    for answer in proof.answers_of(chapter):
        if answer.right:
            right.setdefault(answer.exercise, []).append(answer)
    return right


STUDENTS = range(max(len(answers) for chapter in COURSE.chapters for answers in variants(chapter).values()))


@lru_cache(maxsize=2)
def modules_of(student):
    """What a student's chapters define, by module name; each imports those before it."""
    modules = {name: ModuleType(name) for name in COURSE.stand_ins}
    for name, text in COURSE.stand_ins.items():
        execute_definitions(text, f"<{name}>", modules[name].__dict__)
    for chapter in COURSE.chapters:
        notebook = read(chapter)
        for answers in variants(chapter).values():
            notebook = proof.with_answer(notebook, answers[student % len(answers)])
        module = ModuleType(chapter.module)
        text = definitions([cell.source for cell in notebook.cells])
        with importable(modules), contextlib.chdir(COURSE.solution(chapter).parent):
            execute_definitions(text, f"<{chapter.module} of student {student}>", module.__dict__)
        modules[chapter.module] = module
    return modules


@contextlib.contextmanager
def importable(modules):
    """These modules are what chapters import; a definition that raises fails the test."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        yield


@pytest.mark.parametrize("student", STUDENTS)
@pytest.mark.parametrize("chapter", COURSE.chapters[1:], ids=lambda chapter: chapter.number)
def test_a_chapter_passes_its_checks_on_variants(chapter, student, everything):
    if not everything and (int(chapter.number) + student) % ONE_IN:
        pytest.skip("`make test-all` takes all")
    notebook = read(chapter)
    exercises = [exercise.name for exercise in chapter.exercises if exercise.kind == "code"]
    with importable(modules_of(student)), contextlib.chdir(COURSE.solution(chapter).parent):
        judged = [proof.judge_in_notebook(notebook, Answer(name, "the reference", None), SEED) for name in exercises]
    assert [f"{j.answer.exercise}: {j.message}" for j in judged if j.message] == []


# What chapter 07 runs until its transformer is trained: the cells that hold these lines.
NEEDED = (
    "root = data_root(",
    "hold_out_by_number(train,",
    "text.build_vocab(",
    "MAX_LEN = 512",
    "recipe = RECIPE",
    "valid_batches =",
    "history, optimizer = train_model(model,",
)


@pytest.mark.parametrize("student", STUDENTS)
def test_reviews_are_classified_as_well_on_variants(student, everything, monkeypatch, tmp_path):
    if not everything and student % ONE_IN:
        pytest.skip("`make test-all` takes all")
    monkeypatch.setenv("ATTENTION_DATA", "sample")
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    chapter = COURSE.find("07")
    torch.manual_seed(SEED)
    names = {"__name__": "__main__"}
    cells = [cell.source for cell in read(chapter).cells]
    with importable(modules_of(student)), contextlib.chdir(COURSE.solution(chapter).parent):
        execute_definitions(definitions(cells), "<chapter 07>", names)
        names["checkpoint_path"] = lambda *_: tmp_path / "training.pt"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for line in NEEDED:
                exec(next(cell for cell in cells if line in cell), names)
    losses = [row[0] for row in names["history"]]
    assert losses[-1] < 0.5 < losses[0]  # a model that learns nothing stays at 0.69
    assert names["history"][-1][3] > 0.65  # of 60 reviews; by chance 50 %
