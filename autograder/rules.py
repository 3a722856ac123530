"""What checks ask for besides right values: rules, each of which an exercise promises before it costs a point.

A helper that holds an answer to a rule says so by `asks`. Where somebody listens (`listening`), what a check has asked
for can be held against what its exercise promises; everywhere else nothing is kept.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Words:
    """How a rule is spoken of.

    Attributes:
        called: what a pass in a notebook calls it where only grading checks it; empty if it goes without saying.
        promise: a regular expression: the words of which a list or docstring must have some.
        only: those that promise nothing else, so that a list with them and a check that does not ask are at odds: the
            same by default, and none, "", where words do not tell.
    """

    called: str
    promise: str
    only: str | None = None


class Rule(Enum):
    """A rule, in the order in which a pass names them."""

    ONES = Words(
        "sizes of 1",
        r"(?:sizes?|(?<!probability )of|for|them|are) 1\b|1 (?:too|included)|batches of one|"
        r"one (?:sentence|example|row)|single (?:row|number|token|sequence|query|key)",
        "",
    )
    LARGE = Words("large numbers", r"thousand|10[ ,]000|10\^4|very low|far from zero|however large|-inf")
    MASKS = Words("masks", r"\bmasks?\b|padding|pad_id", "")
    EMPTY = Words(
        "rows with nothing to attend to", "(?:attend to|look at|allows) nothing|no real|without real|all-False"
    )
    LOOPS = Words("loops", r"\bloops?\b|`for`")
    LIBRARY = Words("library functions", r"\blibrary\b|fused|no `\w+`(?:, `\w+`)* or", r"\blibrary\b|fused")
    UNCHANGED = Words("inputs unchanged", "unchanged|not changed|(?:stays?|as) (?:as )?(?:it|they) ", "unchanged")
    GRADIENTS = Words("gradients", "gradient", r"(?<!no )(?<!parameters and )gradients?\b(?! are)")
    NO_GRAPH = Words("no graph", "no graph|no gradients? (?:are recorded|is asked)")
    DTYPE = Words("", "dtype|float32|int64|`int`|bool|Python", "dtype")
    DTYPES = Words("dtypes", "dtype|float64", "dtypes|dtype is kept|dtype and device")
    HALF = Words("", "float16|half precision|(?:all|every) float dtypes?")
    DEVICE = Words("devices", r"\bdevices?\b|GPU")
    PARAMETERS = Words(
        "parameters",
        r"names(?:,| and| of)|`weight`|\bparts\b|(?:the|no|only|one|trained|four) parameters?\b(?! and)",
        "names and shapes of",
    )
    START = Words("start values", r"\bstarts?\b", r"starts? (?:as|normal)|(?<!at )the start\b")
    DROPOUT = Words("dropout", "dropout", "(?<!no )dropout(?! rate)")
    ERRORS = Words("errors", r"[Ee]rrors?\b")
    CHANCE = Words("the generator", "generator", "the generator|`generator`")
    EFFORT = Words("how often parts are called", "`encode` once|computed once|read once")
    MEMORY = Words("memory", "width of every tensor|held at the same time")


_listening: list[set[Rule]] = []


def asks(*rules: Rule) -> None:
    """Say that the answer at hand is held to these rules."""
    for heard in _listening:
        heard.update(rules)


def heard() -> bool:
    """Whether somebody listens, so that what takes time to find out is worth it."""
    return bool(_listening)


@contextmanager
def listening() -> Iterator[set[Rule]]:
    """The rules that checks ask for inside, once they have."""
    met: set[Rule] = set()
    _listening.append(met)
    try:
        yield met
    finally:
        _listening.remove(met)
