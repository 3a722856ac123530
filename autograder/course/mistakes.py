"""Named mistakes: what the wrong answers on record say is wrong, found again in the message of a verdict.

Wrong answers to an exercise whose messages contain the same phrase are one mistake: a reader is told the same thing.
Its id is made of the exercise and that phrase, `weighted_avg/the-weights-are-transposed`, so that it stays when wrong
answers are added, moved or renamed, and one year can be compared with the last.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.answers import Answer

# What stands between the facts and the mistake in the messages of checks.
_CAUSE = ". likely cause: "


@dataclass(frozen=True)
class Mistake:
    """One mistake in one exercise.

    Attributes:
        id: stable, and the same in JSON, CSV and on the page.
        exercise: where it is made.
        name: what the wrong answers on record that make it are called.
        says: the phrase that the message of each of them contains.
    """

    id: str
    exercise: str
    name: str
    says: str


def catalogue(answers: Iterable[Answer]) -> dict[str, list[Mistake]]:
    """The mistakes that wrong answers on record make.

    Args:
        answers: of a chapter; right ones and forgers, which are no mistakes, are passed over.

    Returns:
        For each exercise its mistakes, in the order in which the wrong answers are listed.
    """
    titles: dict[tuple[str, str], list[str]] = {}
    for answer in answers:
        if answer.says and not answer.forged:
            titles.setdefault((answer.exercise, answer.says), []).append(answer.title)
    known: dict[str, list[Mistake]] = {}
    for (exercise, says), called in titles.items():
        known.setdefault(exercise, []).append(Mistake(_id(exercise, says), exercise, " · ".join(called), says))
    return known


def _id(exercise: str, says: str) -> str:
    words = re.sub(r"[^\w]+", "-", says.lower()).strip("-")
    return f"{exercise}/{words}"


def name_mistake(message: str, mistakes: Iterable[Mistake]) -> Mistake | None:
    """The mistake that a verdict's message tells of.

    Args:
        message: of a check that failed.
        mistakes: of its exercise.

    Returns:
        The mistake whose phrase the message contains: one in what it says is the likely cause before one in the facts,
        and the longest where there are several. None if no wrong answer on record makes it.
    """
    text = message.lower()
    told = [mistake for mistake in mistakes if mistake.says.lower() in text]
    cause = text.partition(_CAUSE)[2]
    told = [mistake for mistake in told if mistake.says.lower() in cause] or told
    return max(told, key=lambda mistake: len(mistake.says), default=None)
