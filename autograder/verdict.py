"""What comes of a check, and of a notebook: the words for it, and the data."""

from dataclasses import dataclass, field
from enum import StrEnum

from nbformat import NotebookNode

FAULT_OF_THE_COURSE = "a fault of the course, not of your answer; please tell your instructor"


class Status(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"  # an assertion did not hold, or the check could not use what came
    NOT_ATTEMPTED = "not attempted"
    ERROR = "error"  # the student's code raised
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    MISSING = "missing"
    COURSE_FAULT = "course fault"  # the check itself raised: it costs nobody a point


_IN_WORDS: dict[str, str] = {Status.TIMEOUT: "took too long", Status.COURSE_FAULT: "a fault of the course"}


def in_words(status: str) -> str:
    """What a student reads for a status, in a terminal and on every page."""
    return _IN_WORDS.get(status, status)


@dataclass(frozen=True)
class Finding:
    """What a check found wrong: a mistake, and the fact that shows it. All of it is text; what is not known is empty.

    Attributes:
        mistake: its id, which stays the same when its sentence is reworded; unique within an exercise.
        says: its sentence, as it was when the check ran.
        what: what was looked at, such as "the result".
        asked: for which arguments.
        expected: what it should have been.
        got: what it was.
        where: which of many numbers, which argument, which parameter.
    """

    mistake: str = ""
    says: str = ""
    what: str = ""
    asked: str = ""
    expected: str = ""
    got: str = ""
    where: str = ""

    @property
    def fact(self) -> str:
        """What was seen, as one sentence without a full stop; empty where the mistake says it all."""
        subject = " ".join(filter(None, (self.what, self.asked and f"for {self.asked}")))
        told = [f"should be {self.expected}"] * bool(self.expected)
        told += [f"got {self.got}"] * bool(self.got)
        seen = f"{subject} {', '.join(told)}" if self.expected else f"{subject}: {told[0]}" if told else subject
        return f"{seen} ({self.where})".strip() if self.where else seen.strip(" :")

    def __str__(self) -> str:
        ends = "" if not self.says or self.says.endswith((".", "?", "!")) else "."
        return f"{self.says}{ends} {self.fact}".strip() if self.fact else self.says


@dataclass(frozen=True)
class Item:
    """The verdict on one check cell; `finding` is None where no check of the course's spoke."""

    grade_id: str
    status: Status
    points: float
    max_points: float
    message: str
    finding: Finding | None = None


@dataclass
class Graded:
    """A graded notebook.

    Attributes:
        items: one for each check cell, in order.
        notebook: what the student gets back: no solution, no hidden test, an error output on each check that failed.
        problems: what was found when the notebook was repaired, by cell name.
        ungradable: why nothing could be graded; empty otherwise.
        seed: what all random numbers came from; the same one gives the same verdicts.
        in_doubt: why the machine may be to blame for a verdict, by check; these are to be judged again.
    """

    items: list[Item]
    notebook: NotebookNode
    problems: list[str] = field(default_factory=list)
    ungradable: str = ""
    seed: int | None = None
    in_doubt: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Why a cell did not do what it should."""

    status: Status
    message: str
    traceback: str = ""
    maps: str = ""
    """expected beside got, as HTML that the check drew"""
    finding: Finding | None = None


class Credit(float):
    """Points for the part of an exercise that is right; a check cell's last expression.

    Attributes:
        finding: what the rest of the points went for.
    """

    finding: Finding

    def __new__(cls, points: float, finding: Finding) -> "Credit":
        """Make the number, and keep the reason with it."""
        credit = super().__new__(cls, points)
        credit.finding = finding
        return credit
