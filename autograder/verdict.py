"""What comes of a check, and of a notebook: the words for it, and the data."""

from dataclasses import dataclass, field
from enum import StrEnum

from nbformat import NotebookNode


class Status(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"  # an assertion did not hold, or the check could not use what came
    NOT_ATTEMPTED = "not attempted"
    ERROR = "error"  # the student's code raised
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    MISSING = "missing"


@dataclass(frozen=True)
class Item:
    """The verdict on one check cell."""

    grade_id: str
    status: Status
    points: float
    max_points: float
    message: str


@dataclass
class Graded:
    """A graded notebook.

    Attributes:
        items: one for each check cell, in order.
        notebook: what the student gets back: no solution, no hidden test, an error output on each check that failed.
        problems: what was found when the notebook was repaired, by cell name.
        ungradable: why nothing could be graded; empty otherwise.
        seed: what all random numbers came from; the same one gives the same verdicts.
    """

    items: list[Item]
    notebook: NotebookNode
    problems: list[str] = field(default_factory=list)
    ungradable: str = ""
    seed: int | None = None


@dataclass(frozen=True)
class Failure:
    """Why a cell did not do what it should."""

    status: Status
    message: str
    traceback: str = ""
    maps: str = ""
    """expected beside got, as HTML that the check drew"""


class Credit(float):
    """Points for the part of an exercise that is right; a check cell's last expression.

    Attributes:
        why: what the rest of the points went for.
    """

    def __new__(cls, points: float, why: str) -> "Credit":
        """Make the number, and keep the reason with it."""
        credit = super().__new__(cls, points)
        credit.why = why
        return credit
