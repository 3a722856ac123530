"""Wrong answers and right ones: what the checks are proven with.

A chapter's `checks/<chapter>/mutants.py` defines two lists, `MUTANTS` and `VARIANTS`. What can be written down is in
`mutants.txt` beside it, which `read_answers` reads:

    [weighted_avg]
    def weighted_avg(x, weights):

    * transposed: TRANSPOSED
        return weights.mT @ x
    * detached: CUT_OFF
    - return weights @ x
    + return (weights @ x).detach()
    * bmm
    def weighted_avg(x, weights):
        return torch.bmm(weights, x)

A title with a mistake is a wrong answer, which its check must name so; one without is a right answer, which must pass.
Below it stands the text of the solution cell: whole; or indented, and then it belongs below the lines that stand under
the exercise's name; or as edits of the reference solution, in which each `-` must occur exactly once and gives way to
the `+` behind it (lines that follow each other are one text; a `+` with nothing behind it leaves the text out). A line
with `>` says in what form people published a wrong answer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

from autograder.mistakes import Common, Mistake, Unexplained


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


_TITLE = re.compile(r"(.+?)(?:: ((?:\w+\.)?[A-Z][A-Z0-9_]*))?")


def read_answers(mistakes: ModuleType) -> tuple[list[Answer], list[Answer]]:
    """A chapter's wrong answers and its right ones, in the order in which `mutants.txt` has them.

    Args:
        mistakes: the chapter's `mistakes.py`, beside which the file lies. A name alone is looked up in the exercise's
            own mistakes, then in `Common` and `Unexplained`; `other.NAME` is one of another exercise's.

    Raises:
        AnswerError: a mistake that there is not, or an edit without its half; the message says where.
    """
    file = Path(str(mistakes.__file__)).with_name("mutants.txt")
    answers = []
    _, *exercises = re.split(r"^\[(\w+)\]\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for exercise, text in zip(exercises[::2], exercises[1::2], strict=True):
        head, *rows = re.split(r"^\* (.+)\n", text, flags=re.MULTILINE)
        for title, body in zip(rows[::2], rows[1::2], strict=True):
            try:
                answers.append(_read_answer(exercise, title, head.strip("\n"), body.strip("\n"), vars(mistakes)))
            except AnswerError as error:
                raise AnswerError(f"{file.parent.name}/{file.name}: {exercise}, {title!r}: {error}") from None
    return [a for a in answers if not a.right], [a for a in answers if a.right]


def _read_answer(exercise: str, title: str, head: str, body: str, known: Mapping[str, Any]) -> Answer:
    named = _TITLE.fullmatch(title)
    assert named, title  # a title is never empty
    mistake = _mistake(named[2], exercise, known) if named[2] else None
    published = ""
    if body.startswith("> "):
        published, _, body = body.removeprefix("> ").partition("\n")
    if body.startswith("-"):
        return Answer(exercise, named[1], mistake, edits=_edits(body), published=published)
    source = f"{head}\n{body}" if body.startswith(" ") else body
    return Answer(exercise, named[1], mistake, source=source, published=published)


def _mistake(name: str, exercise: str, known: Mapping[str, Any]) -> Mistake:
    kind, _, member = name.rpartition(".")
    kinds = [known.get(kind)] if kind else [known.get(exercise), Common, Unexplained]
    found = next((one[member] for one in kinds if one and member in one.__members__), None)
    if found is None:
        raise AnswerError(f"there is no mistake {name}: mistakes.py lists them")
    return found


def _edits(body: str) -> tuple[tuple[str, str], ...]:
    parts = [
        (sign, "\n".join(line[2:] for line in lines)) for sign, lines in groupby(body.split("\n"), lambda s: s[:1])
    ]
    signs = [sign for sign, _ in parts]
    if signs != ["-", "+"] * (len(parts) // 2):
        raise AnswerError("each edit is what goes, `-`, and what comes in its place, `+`")
    texts = [text for _, text in parts]
    return tuple(zip(texts[::2], texts[1::2], strict=True))


def forger(exercise: str, title: str, after: str, mistake: Mistake | None = None) -> Answer:
    """A wrong answer that attacks its check: the reference solution, and code behind it that turns it into a fraud."""
    return Answer(exercise, title, mistake, after=dedent(after).strip("\n"), forged=True)
