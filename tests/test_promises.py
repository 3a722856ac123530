"""What checks ask for is promised, what is promised is asked for, and a pass says what only grading checks."""

import importlib
import re
from enum import EnumType

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder import checks
from autograder.course.curriculum import find_course
from autograder.course.promises import Asked, differences, unkept
from autograder.mistakes import EXPLAINED, Common
from autograder.rules import Rule, listening

COURSE = find_course()


@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.number)
def test_checks_keep_to_what_is_promised(chapter):
    assert unkept(COURSE, chapter) == []


def written(covers, docstring="Double x."):
    heading = new_markdown_cell("### Exercise 1.1 · `double` — 1 point, easy, 5 minutes")
    solution = new_code_cell(f'def double(x):\n    """{docstring}"""\n    return 2 * x')
    solution.metadata["nbgrader"] = {"grade_id": "double", "solution": True}
    return new_notebook(cells=[heading, solution, new_markdown_cell(f"**What the checks cover**\n- {covers}.")])


def compared(covers, *hidden, docstring="", graded="other cases and gradients", partial=False):
    asked = Asked("double", "double", frozenset({Rule.LOOPS}), frozenset(hidden), partial)
    return differences(written(covers, docstring), [asked], {"double": graded})


def test_what_differs_is_named():
    assert compared("no loop; gradients", Rule.GRADIENTS) == []
    assert compared("no loop", Rule.GRADIENTS, docstring="Gradients flow: the gradient of x.") == []
    (line,) = compared("no loop", Rule.GRADIENTS)
    assert line == "double: the checks ask for GRADIENTS, which nothing promises"
    (line,) = compared("no loop; gradients; the device is kept", Rule.GRADIENTS)
    assert line == "double: 'device' is promised, and no check asks for DEVICE"
    (line,) = compared("no loop; gradients", Rule.GRADIENTS, graded="")
    assert line == 'visible.py: double should say graded="other cases and gradients"'
    assert compared("no loop; gradients; the device is kept", Rule.GRADIENTS, partial=True) == []


@pytest.mark.parametrize(
    "words, rule, promised",
    [
        ("rows sum to 1", Rule.ONES, False),
        ("shares from 0 to 1", Rule.ONES, False),
        ("with a probability of 1", Rule.ONES, False),
        ("a single continuation", Rule.ONES, False),
        ("for several sizes, 1 too", Rule.ONES, True),
        ("a single row", Rule.ONES, True),
        ("gradients reach every parameter", Rule.PARAMETERS, False),
        ("names and shapes of the parameters", Rule.PARAMETERS, True),
        ("the only parameter", Rule.PARAMETERS, True),
    ],
)
def test_words_that_mean_something_else_promise_nothing(words, rule, promised):
    told = differences(
        written(words), [Asked("double", "double", frozenset(), frozenset({rule}), False)], {"double": ""}
    )
    assert (f"double: the checks ask for {rule.name}, which nothing promises" in told) != promised


def test_helpers_say_what_they_ask_for():
    x = torch.ones(2, 3)
    with listening() as rules:
        checks.expect_matches(lambda x: 2 * x, lambda x: 2 * x, [{"x": x}])
        assert rules == {Rule.UNCHANGED, Rule.GRADIENTS, Rule.DTYPE, Rule.DTYPES, Rule.DEVICE}
        checks.expect_no_loop(torch.relu, [x], [x], "x")
        checks.call(torch.relu, 1000 * x[:1])
    assert rules >= {Rule.LOOPS, Rule.ONES, Rule.LARGE}
    with listening() as rules:
        checks.call(lambda x, mask: x, x, mask=torch.zeros(2, 3, dtype=torch.bool))
        checks.expect_raises(ValueError, lambda: int("x"), "x")
    assert rules == {Rule.MASKS, Rule.EMPTY, Rule.ERRORS}


# What Python and torch say and no mistake explains, as far as the chapters quote it.
ELSEWHERE = (
    "should be ",  # the fact behind a mistake
    "The size of tensor a",
    "Expected size for first two dimensions of batch2",
    "'Tensor' and 'torch.return_types.max'",
    "value cannot be converted to type c10::Half",
    "bad operand type for unary ~",
    "batch1 must be a 3D tensor",
    "cannot assign module before Module",
    "attribute 'pe' already exists",
    "`lengths` array must be sorted in decreasing order",
    "'lengths' argument should be a 1D CPU int64 tensor",
    "Index tensor must have the same number of dimensions",
    "quantile() input tensor must be either float or double dtype",
    "unhashable type: 'list'",
)


@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.number)
def test_messages_that_hints_quote_are_given(chapter):
    """Each message that a fold "I'm getting …" quotes is one of the checks', of Python's or of torch's."""
    kinds = [Common, *vars(importlib.import_module(f"checks.{chapter.module}.mistakes")).values()]
    said = [str(mistake.value) for kind in kinds if isinstance(kind, EnumType) for mistake in kind]
    signs = [*EXPLAINED, *ELSEWHERE]
    hints = [c.source for c in nbformat.read(COURSE.solution(chapter), 4).cells if "I'm getting …" in c.source]
    quotes = [" ".join(quote.split()) for hint in hints for quote in re.findall(r'\*"([^*]+)"\*', hint)]
    own = [quote for quote in quotes if not any(sign in quote for sign in signs)]
    parts = {quote: [part.strip(" ,") for part in quote.split("…")] for quote in own}
    assert [quote for quote in own if not any(all(p in message for p in parts[quote]) for message in said)] == []
