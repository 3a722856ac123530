"""Wrong answers and right ones: what the checks are proven with.

A chapter's `checks/<chapter>/mutants.py` defines two lists, `MUTANTS` and `VARIANTS`. Each entry is the text of a
solution cell, written out or made by editing the reference solution.
"""

from dataclasses import dataclass
from textwrap import dedent


class AnswerError(ValueError):
    """An answer that is not what its author meant; the message says what to mend."""


@dataclass(frozen=True)
class Answer:
    """One answer to one exercise.

    `says` is the phrase that the failure message must contain; None marks a right answer. The text of the cell is
    `source`, or the reference solution after replacing each `old` of `edits`, which must occur exactly once, by its
    `new`, and with `after` behind it. An answer that is `forged` attacks its check: it is judged in the grader alone,
    since it would spoil the process that runs it.
    """

    exercise: str
    title: str
    says: str | None
    source: str | None = None
    edits: tuple[tuple[str, str], ...] = ()
    after: str = ""
    forged: bool = False

    def cell(self, reference: str) -> str:
        """The text of the solution cell.

        Args:
            reference: the text of the reference solution's cell.

        Raises:
            AnswerError: an edit's `old` does not occur exactly once, so that the answer would not be the one meant.
        """
        if self.source is not None:
            return self.source
        for old, new in self.edits:
            if (count := reference.count(old)) != 1:
                raise AnswerError(
                    f"{self.exercise}, {self.title!r}: {old!r} occurs {count} times in the reference, not once: "
                    "mend the edit"
                )
            reference = reference.replace(old, new)
        return f"{reference}\n\n\n{self.after}" if self.after else reference


def mutant(exercise: str, title: str, says: str, source: str) -> Answer:
    """A wrong answer, written out."""
    return Answer(exercise, title, says, source=dedent(source).strip("\n"))


def edit(exercise: str, title: str, says: str, *edits: tuple[str, str]) -> Answer:
    """A wrong answer that differs from the reference by a few edits `(old, new)`."""
    return Answer(exercise, title, says, edits=edits)


def forger(exercise: str, title: str, after: str, says: str = "") -> Answer:
    """A wrong answer that attacks its check: the reference solution, and code behind it that turns it into a fraud."""
    return Answer(exercise, title, says, after=dedent(after).strip("\n"), forged=True)


def variant(exercise: str, title: str, source: str) -> Answer:
    """A right answer written differently."""
    return Answer(exercise, title, None, source=dedent(source).strip("\n"))


def edited_variant(exercise: str, title: str, *edits: tuple[str, str]) -> Answer:
    """A right answer that differs from the reference by a few edits `(old, new)`."""
    return Answer(exercise, title, None, edits=edits)
