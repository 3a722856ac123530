"""How wrong and right answers are written down, and what is said of a line that means nothing."""

import sys

import pytest

from autograder.answers import AnswerError, read_answers
from autograder.mistakes import Common

REFERENCE = "def double(x):\n    y = x + x\n    return y"
MISTAKES = """
from autograder.mistakes import Mistake

class double(Mistake):
    SQUARED = "it is squared"

class other(Mistake):
    HALVED = "it is halved"
"""
WRITTEN = """[double]
def double(x):
    y = x

* squared, see: above: SQUARED
    return y * y
* cut off: CUT_OFF
> with `.detach()`
- return y
+ return y.detach()
* halved: other.HALVED
-     y = x + x
-     return y
+     return x / 2
* left out: NO_RETURN
- return y
+
* whole
def double(x):
    return 2 * x
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """What is read of a text that lies beside a chapter's mistakes."""
    (tmp_path / "its_mistakes.py").write_text(MISTAKES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "its_mistakes", raising=False)

    def read(text):
        import its_mistakes

        (tmp_path / "mutants.txt").write_text(text)
        return read_answers(its_mistakes)

    return read


def test_each_way_to_write_an_answer(read):
    wrong, right = read(WRITTEN)
    assert [(a.title, a.mistake.id, a.cell(REFERENCE)) for a in wrong] == [
        ("squared, see: above", "squared", "def double(x):\n    y = x\n    return y * y"),
        ("cut off", "cut-off", "def double(x):\n    y = x + x\n    return y.detach()"),
        ("halved", "halved", "def double(x):\n    return x / 2"),
        ("left out", "no-return", "def double(x):\n    y = x + x\n    "),
    ]
    assert wrong[1].published == "with `.detach()`" and wrong[3].mistake is Common.NO_RETURN
    assert [(a.exercise, a.title, a.cell(REFERENCE)) for a in right] == [
        ("double", "whole", "def double(x):\n    return 2 * x")
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (": SQUARED", ": CUBED", "mutants.txt: double, 'squared, see: above: CUBED': there is no mistake CUBED"),
        (": other.HALVED", ": another.HALVED", "there is no mistake another.HALVED: mistakes.py lists them"),
        ("- return y\n+\n", "- return y\n", "each edit is what goes, `-`, and what comes in its place, `+`"),
    ],
)
def test_what_means_nothing_is_named(read, old, new, said):
    with pytest.raises(AnswerError) as raised:
        read(WRITTEN.replace(old, new))
    assert said in str(raised.value)


def test_an_edit_that_fits_nowhere_is_named(read):
    (_, cut, *_), _ = read(WRITTEN)
    with pytest.raises(AnswerError, match="double, 'cut off': 'return y' occurs 0 times"):
        cut.cell("def double(x):\n    return 2 * x")
