"""Wrong answers and right ones: what the checks are proven with.

A chapter's `checks/<chapter>/mutants.py` defines two lists, `MUTANTS` and `VARIANTS`. Each entry is the text of a
solution cell, written out or made by editing the reference solution.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from textwrap import dedent, indent

from autograder.mistakes import Mistake


class AnswerError(ValueError):
    """An answer that is not what its author meant; the message says what to mend."""


@dataclass(frozen=True)
class Answer:
    """One answer to one exercise.

    `mistake` is the one that its check must name; None marks a right answer, or a forger, which need not be told what
    gave it away. `published` is what people published, if it was found. The text of the cell is `source`, or the
    reference solution after replacing each `old` of `edits`, which must occur exactly once, by its `new`, and with
    `after` behind it. An answer that is `forged` attacks its check: it is judged in the grader alone, since it would
    spoil the process that runs it.
    """

    exercise: str
    title: str
    mistake: Mistake | None
    source: str | None = None
    edits: tuple[tuple[str, str], ...] = ()
    after: str = ""
    forged: bool = False
    published: str = ""

    @property
    def right(self) -> bool:
        """Whether it must pass."""
        return self.mistake is None and not self.forged

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


def mutant(exercise: str, title: str, mistake: Mistake, source: str, published: str = "") -> Answer:
    """A wrong answer, written out."""
    return Answer(exercise, title, mistake, source=dedent(source).strip("\n"), published=published)


def edit(exercise: str, title: str, mistake: Mistake, *edits: tuple[str, str], published: str = "") -> Answer:
    """A wrong answer that differs from the reference by a few edits `(old, new)`."""
    return Answer(exercise, title, mistake, edits=edits, published=published)


def mutants(exercise: str, head: str, rows: Iterable[tuple[str, Mistake, str]]) -> list[Answer]:
    """A table of wrong answers that begin alike.

    Args:
        exercise: its name.
        head: what each begins with, such as "def softmax(z, dim):"; empty where the rows hold whole answers.
        rows: title, mistake, and the lines below the head, which are indented for it.
    """

    def text(body: str) -> str:
        body = dedent(body).strip("\n")
        return f"{head}\n{indent(body, '    ')}" if head else body

    return [Answer(exercise, title, mistake, source=text(body)) for title, mistake, body in rows]


def edits(exercise: str, rows: Iterable[tuple]) -> list[Answer]:
    """A table of wrong answers that differ from the reference: title, mistake, then its edits `(old, new)`."""
    return [Answer(exercise, title, mistake, edits=tuple(changes)) for title, mistake, *changes in rows]


def forger(exercise: str, title: str, after: str, mistake: Mistake | None = None) -> Answer:
    """A wrong answer that attacks its check: the reference solution, and code behind it that turns it into a fraud."""
    return Answer(exercise, title, mistake, after=dedent(after).strip("\n"), forged=True)


def flag_published(wrong: Iterable[Answer], published: Mapping[tuple[str, str], str]) -> list[Answer]:
    """The same wrong answers, those that people published flagged as such.

    Args:
        wrong: a chapter's.
        published: by exercise and title, what was published.

    Raises:
        AnswerError: a wrong answer that there is not.
    """
    wrong = list(wrong)
    unknown = sorted(set(published) - {(answer.exercise, answer.title) for answer in wrong})
    if unknown:
        raise AnswerError(f"{unknown[0][0]} has no wrong answer {unknown[0][1]!r} to flag as published")
    return [
        replace(answer, published=published.get((answer.exercise, answer.title), answer.published)) for answer in wrong
    ]


def variant(exercise: str, title: str, source: str) -> Answer:
    """A right answer written differently."""
    return Answer(exercise, title, None, source=dedent(source).strip("\n"))


def edited_variant(exercise: str, title: str, *edits: tuple[str, str]) -> Answer:
    """A right answer that differs from the reference by a few edits `(old, new)`."""
    return Answer(exercise, title, None, edits=edits)
