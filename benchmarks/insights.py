"""What a class of a thousand got wrong: how long does the page take?

Each answer on record is judged once; students with more or less skill then draw right and wrong ones, so that for
each of them it is known which mistake was planted. `python benchmarks/insights.py 1000` prints the time of
the processor from the recorded verdicts to the finished page.
"""

import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.course import gradebook, insights, proof
from autograder.course.curriculum import Chapter, Course, find_course
from autograder.course.receipts import Receipt, write_receipt
from autograder.verdict import Item, Status


@dataclass(frozen=True)
class Recorded:
    """An answer on record, its text, and what the checks said of it."""

    judged: proof.Judged
    source: str


@dataclass(frozen=True)
class Planted:
    """A student's chapter as `grade` records it, and the mistakes in it by exercise and id."""

    verdicts: insights.Verdicts
    planted: list[str]


def judge_once(course: Course, chapters: Iterable[Chapter], seed: int = 2017) -> list[Recorded]:
    """The verdicts on all answers of some chapters, forgers apart."""
    recorded = []
    for chapter in chapters:
        path = course.solution(chapter)
        notebook = nbformat.read(path, as_version=4)
        with contextlib.chdir(path.parent):
            for answer in proof.answers_of(chapter):
                if not answer.forged:
                    text = answer.cell(proof.cell_of(notebook, answer.exercise).source)
                    recorded.append(Recorded(proof.judge_in_notebook(notebook, answer, seed), text))
    return recorded


def plant(chapters: Iterable[Chapter], recorded: Iterable[Recorded], students: int, seed: int = 0) -> list[Planted]:
    """A class whose mistakes are known."""
    draw = random.Random(seed)
    answers: dict[tuple[str, bool], list[Recorded]] = {}
    for one in recorded:
        answers.setdefault((one.judged.answer.exercise, one.judged.answer.right), []).append(one)
    planted = []
    for number in range(students):
        skill = draw.betavariate(4, 2)
        for chapter in chapters:
            items, sources, mistakes = [], {}, []
            for exercise in chapter.exercises:
                if exercise.kind == "written":
                    continue
                one = draw.choice(answers[exercise.name, draw.random() < skill])
                sources[exercise.name], told = one.source, one.judged
                if told.answer.mistake:
                    mistakes.append(f"{exercise.name}/{told.answer.mistake.id}")
                status, points = (Status.FAILED, 0.0) if told.message else (Status.PASSED, exercise.points)
                item = Item(f"{exercise.name}_check", status, points, exercise.points, told.message, told.finding)
                items.append(item)
            planted.append(Planted(insights.Verdicts(f"s{number:04}", chapter.folder, items, sources), mistakes))
    return planted


def time_the_page(course: Course, chapters: list[Chapter], planted: Iterable[Planted]) -> tuple[float, int]:
    """Seconds of processor from the files of verdicts to the finished page, and its size in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        nbgrader = gradebook.configure(course)
        nbgrader.coursedir.autograded_directory = f"{folder}/autograded"
        nbgrader.coursedir.db_url = f"sqlite:///{folder}/gradebook.db"
        for one in planted:
            place = Path(folder, "autograded", one.verdicts.student, one.verdicts.folder)
            place.mkdir(parents=True)
            write_receipt(place, Receipt(one.verdicts.items, one.verdicts.answers))
        with gradebook.open_gradebook(nbgrader):
            pass  # an empty one takes a second to make, which an instructor's is not
        started = time.process_time()
        page = insights.run(course, chapters, nbgrader)
        return time.process_time() - started, page.stat().st_size


if __name__ == "__main__":
    course = find_course()
    chapters = course.chapters
    planted = plant(chapters, judge_once(course, chapters), int(sys.argv[1]))
    seconds, size = time_the_page(course, chapters, planted)
    print(f"the page of {len(planted)} notebooks took {seconds:.1f} s of processor and has {size / 1e6:.1f} MB")
