"""What checks ask for against what an exercise promises: nobody loses a point for a rule that nobody told."""

import ast
import contextlib
import importlib
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import nbformat
import torch
from nbformat import NotebookNode

from autograder.cells import exercise_of, flags_of
from autograder.course.curriculum import Chapter, Course
from autograder.course.proof import execute_check
from autograder.judge import fresh_state
from autograder.rules import Rule, listening
from autograder.source import definitions, execute_definitions
from autograder.verdict import Credit

_HIDDEN = "### BEGIN HIDDEN TESTS"
_LIST = "**What the checks cover"


@dataclass(frozen=True)
class Asked:
    """What the two parts of one check cell ask of the reference.

    Attributes:
        exercise: whose check.
        check: the name of the visible check, in `visible.py`.
        visible: the rules of the visible part.
        hidden: the rules of the hidden part.
        partial: whether the hidden part may give a part of the points: it judges a test that the reader wrote.
    """

    exercise: str
    check: str
    visible: frozenset[Rule]
    hidden: frozenset[Rule]
    partial: bool


def listed(rules: Collection[Rule]) -> str:
    """Rules in a line, behind what every hidden check has: "other cases, loops and gradients"."""
    names = ["other cases", *(rule.value.called for rule in Rule if rule in rules and rule.value.called)]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def asked_in(notebook: NotebookNode, seed: int) -> Iterator[Asked]:
    """Run both parts of each check cell of a solution on the reference, and hear what they ask for.

    Args:
        notebook: the solution; the working directory must be its folder.
        seed: what random numbers come from.
    """
    torch.set_num_threads(1)
    namespace: dict = {"__name__": "__main__"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    checks = [cell for cell in code if flags_of(cell).get("grade")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rest = [cell.source for cell in code if not flags_of(cell).get("grade")]
        execute_definitions(definitions(rest), "<solution>", namespace)
        for cell in checks:
            fresh_state(seed)
            visible, hidden = cell.source.split(_HIDDEN)
            with listening() as shown:
                execute_check(visible, namespace)
            with listening() as unseen:
                value = execute_check(hidden, namespace)
            name = re.match(r"check\.(\w+)", visible)
            assert name, visible  # tests/test_notebooks.py holds check cells to it
            exercise = exercise_of(flags_of(cell)["grade_id"])
            yield Asked(exercise, name[1], frozenset(shown), frozenset(unseen), isinstance(value, Credit))


def promised(notebook: NotebookNode, exercise: str) -> tuple[str, str, str]:
    """An exercise's list of what the checks cover, those that it refers to, and the docstrings of its solution."""
    lists: dict[str, str] = {}
    number, name, numbers = "", "", {}
    for cell in notebook.cells:
        for number, name in re.findall(r"^### Exercise (\d+\.\d+) · `(\w+)`", cell.source, flags=re.MULTILINE):
            numbers[name] = number
        if cell.cell_type == "markdown" and _LIST in cell.source:
            lists[number] = " ".join(cell.source.partition(_LIST)[2].split())
    own = lists.get(numbers[exercise], "")
    meant = [lists[other] for other in re.findall(r"(?:covered in|as in) exercise (\d+\.\d+)", own)]
    cell = next(c for c in notebook.cells if flags_of(c).get("grade_id") == exercise)
    nodes = ast.walk(ast.parse(cell.source))
    docs = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return own, " ".join(meant), " ".join(" ".join(docs).split())


def unkept(course: Course, chapter: Chapter, seed: int = 0) -> list[str]:
    """What a chapter's checks and promises differ in, a line for each.

    Args:
        course: the course.
        chapter: whose exercises.
        seed: what random numbers come from.
    """
    path = course.solution(chapter)
    notebook = nbformat.read(path, as_version=4)
    visible = importlib.import_module(f"checks.{chapter.module}.visible")
    with contextlib.chdir(path.parent):
        asked = list(asked_in(notebook, seed))
    graded = {one.check: getattr(visible, one.check).graded for one in asked}
    return [f"{chapter.folder} · {line}" for line in differences(notebook, asked, graded)]


def differences(notebook: NotebookNode, asked: Sequence[Asked], graded: Mapping[str, str]) -> list[str]:
    """A line for each rule that nothing promises, each promise that nothing asks for, and each line that says another.

    Args:
        notebook: the solution with the promises.
        asked: what its check cells ask for.
        graded: what each visible check says that only grading checks.
    """
    told = []
    for exercise in dict.fromkeys(one.exercise for one in asked):
        own = [one for one in asked if one.exercise == exercise]
        shown = frozenset[Rule]().union(*(one.visible for one in own))
        rules = shown.union(*(one.hidden for one in own))
        covers, meant, docstring = promised(notebook, exercise)
        judged = any(one.partial for one in own)  # the reader's own test: the list says what it has to find
        for rule in Rule:
            words = rule.value
            if rule in rules and not re.search(words.promise, f"{covers} {meant} {docstring}"):
                told.append(f"{exercise}: the checks ask for {rule.name}, which nothing promises")
            only = words.promise if words.only is None else words.only
            if rule not in rules and not judged and only and (said := re.search(only, covers)):
                told.append(f"{exercise}: {said[0]!r} is promised, and no check asks for {rule.name}")
        for one in own:
            if graded[one.check] != listed(one.hidden - shown):
                told.append(f'visible.py: {one.check} should say graded="{listed(one.hidden - shown)}"')
    return told
