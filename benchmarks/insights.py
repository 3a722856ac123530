"""What a class of a thousand got wrong: are the planted mistakes named, and how long does the page take?

Each answer on record is judged once; students with more or less skill then draw right and wrong ones, so that for
each of them it is known which mistake was planted. `python benchmarks/insights.py 1000` prints precision and recall of
the named mistakes over all chapters, and the processor's time from the recorded verdicts to the finished page.
"""

import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.course import gradebook, insights, proof
from autograder.course.batch import RECEIPT
from autograder.course.curriculum import Chapter, Course, find_course
from autograder.course.mistakes import name_mistake


@dataclass(frozen=True)
class Judged:
    """An answer on record, and what the checks said of it."""

    exercise: str
    says: str | None
    message: str
    source: str


@dataclass(frozen=True)
class Planted:
    """A student's chapter as `grade` records it, and for each exercise the phrase of its mistake, None if right."""

    verdicts: insights.Verdicts
    planted: dict[str, str | None]


def judge_once(course: Course, chapters: Iterable[Chapter], seed: int = 2017) -> list[Judged]:
    """The verdicts on all answers of some chapters, forgers apart."""
    judged = []
    for chapter in chapters:
        path = course.solution(chapter)
        notebook = nbformat.read(path, as_version=4)
        with contextlib.chdir(path.parent):
            for answer in proof.answers(chapter):
                if not answer.forged:
                    message = proof.judge_in_notebook(notebook, answer, seed).message
                    text = answer.cell(proof.cell_of(notebook, answer.exercise).source)
                    judged.append(Judged(answer.exercise, answer.says, message, text))
    return judged


def plant(chapters: Iterable[Chapter], judged: Iterable[Judged], students: int, seed: int = 0) -> list[Planted]:
    """A class whose mistakes are known."""
    draw = random.Random(seed)
    answers: dict[tuple[str, bool], list[Judged]] = {}
    for one in judged:
        answers.setdefault((one.exercise, one.says is None), []).append(one)
    planted = []
    for number in range(students):
        skill = draw.betavariate(4, 2)
        for chapter in chapters:
            items, sources, phrases = [], {}, {}
            for exercise in chapter.exercises:
                if exercise.kind == "written":
                    continue
                one = draw.choice(answers[exercise.name, draw.random() < skill])
                sources[exercise.name], phrases[exercise.name] = one.source, one.says
                status, points = ("failed", 0.0) if one.message else ("passed", exercise.points)
                item = {"grade_id": f"{exercise.name}_check", "status": status, "points": points}
                items.append(item | {"max_points": exercise.points, "message": one.message})
            verdicts = insights.Verdicts(f"s{number:04}", chapter.folder, items, sources)
            planted.append(Planted(verdicts, phrases))
    return planted


def precision_and_recall(chapters: Iterable[Chapter], planted: Iterable[Planted]) -> tuple[float, float]:
    """Of the mistakes that were named, the share that is the planted one; of the planted ones, the share named."""
    known = {chapter.folder: insights.mistakes_of(chapter) for chapter in chapters}
    named = right = wrong = 0
    for one in planted:
        for item in one.verdicts.items:
            exercise = item["grade_id"].rpartition("_check")[0]
            says = one.planted[exercise]
            wrong += says is not None
            if item["message"] and (found := name_mistake(item["message"], known[one.verdicts.folder][exercise])):
                named += 1
                right += found.says == says
    return right / named, right / wrong


def time_the_page(course: Course, chapters: list[Chapter], planted: Iterable[Planted]) -> tuple[float, int]:
    """Seconds of processor from the files of verdicts to the finished page, and its size in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        nbgrader = gradebook.configure(course)
        nbgrader.coursedir.autograded_directory = f"{folder}/autograded"
        nbgrader.coursedir.db_url = f"sqlite:///{folder}/gradebook.db"
        for one in planted:
            place = Path(folder, "autograded", one.verdicts.student, one.verdicts.folder)
            place.mkdir(parents=True)
            (place / RECEIPT).write_text(json.dumps({"items": one.verdicts.items, "answers": one.verdicts.answers}))
        with gradebook.open_gradebook(nbgrader):
            pass  # an empty one takes a second to make, which an instructor's is not
        started = time.process_time()
        page = insights.run(course, chapters, nbgrader)
        return time.process_time() - started, page.stat().st_size


if __name__ == "__main__":
    course = find_course()
    chapters = course.chapters
    planted = plant(chapters, judge_once(course, chapters), int(sys.argv[1]))
    precision, recall = precision_and_recall(chapters, planted)
    print(f"{len(planted)} notebooks: precision {precision:.3f}, recall {recall:.3f}")
    seconds, size = time_the_page(course, chapters, planted)
    print(f"the page took {seconds:.1f} s of processor and has {size / 1e6:.1f} MB")
