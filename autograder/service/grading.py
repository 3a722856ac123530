"""The process that grades what a server takes in: oldest first, by the code of `autograder grade`.

It may be killed at any moment. A hand-in is graded with the seed that it got when it came, its marks are written before
its verdict, and each step done twice comes to the same as done once; so what has no verdict is simply begun again.
"""

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.apps.baseapp import NbGrader
from sqlalchemy import Engine

from autograder.course import gradebook
from autograder.course.batch import grade_apart
from autograder.course.collect import keep_aside
from autograder.course.curriculum import Chapter, Course, find_course
from autograder.course.files import replace_file
from autograder.course.grade import Means, workers_for
from autograder.course.hand_ins import HandIn, is_plain_file, submitted_folder
from autograder.course.receipts import only_one
from autograder.course.standing import due_date, penalty_for, refresh_penalties
from autograder.job import Outcome
from autograder.plain import plain
from autograder.service import store as state
from autograder.service.receive import Refused, place_of, read_pack
from autograder.service.settings import Rules, read_rules
from autograder.service.store import Received

_AT_ONCE = 100
_LOOK_AGAIN = 0.3  # seconds
_BUSY = 2.0  # seconds, while somebody else grades or something cannot be written


def grade_waiting(
    course: Course, nbgrader: NbGrader, store: Engine, rules: Mapping[Chapter, Rules], means: Means
) -> int:
    """Grade what waits, as much as is graded together, and write the verdicts.

    Args:
        course: the course, with its solutions.
        nbgrader: nbgrader, configured (`gradebook.configure`).
        store: the server's database.
        rules: of each chapter.
        means: what is graded with.

    Returns:
        How many hand-ins were looked at; none of them may have come to a verdict.

    Raises:
        CourseError: `autograder grade` is at work on the class, or there is no sandbox.
        OSError: something cannot be written; what has no verdict is graded again.
    """
    if not (ones := state.waiting(store, _AT_ONCE)):
        return 0
    with only_one(nbgrader), gradebook.open_gradebook(nbgrader) as book:
        state.begin_grading(store, ones)
        hand_ins = _unpack(course, nbgrader, store, ones)
        counting = set()

        def counts(hand_in: HandIn, outcome: Outcome) -> HandIn | None:
            one = hand_ins[hand_in]
            if _in_doubt(one, outcome) or not _counts(nbgrader, store, book, one, rules[hand_in.chapter], outcome):
                return None
            counting.add(hand_in)
            return _put(nbgrader, hand_in, one)

        seeds = {hand_in: one.seed for hand_in, one in hand_ins.items()}
        options: Any = {"workers": workers_for(means, len(seeds)) if seeds else 1}
        options |= {"scheduler": means.scheduler, "unsafe": means.unsafe}
        for hand_in, outcome in grade_apart(course, nbgrader, seeds, counts, **options):
            one = hand_ins[hand_in]
            if not _in_doubt(one, outcome):
                verdict = {"ungradable": outcome.ungradable, "items": [asdict(item) for item in outcome.items]}
                late = _seconds_late(book, one)
                state.write_verdict(store, one, verdict, _points(outcome), late, hand_in in counting)
        refresh_penalties(nbgrader, book)
    return len(ones)


def _unpack(course: Course, nbgrader: NbGrader, store: Engine, ones: list[Received]) -> dict[HandIn, Received]:
    """The notebooks of packs, as files; what has become unreadable gets its verdict here."""
    received = state.home(nbgrader) / "received"
    unpacked = received / ".grading"
    shutil.rmtree(unpacked, ignore_errors=True)  # of the batch before, or of a process that was killed
    unpacked.mkdir(parents=True)
    chapters = {chapter.folder: chapter for chapter in course.chapters}
    found = {}
    for one in ones:
        if (chapter := chapters.get(one.chapter)) is None:
            continue  # taken out of the course, perhaps for a moment: it waits, and soon behind the others
        try:
            content = read_pack(place_of(received, one), chapter, course.chapters)
        except (Refused, FileNotFoundError) as error:
            why = str(error) if isinstance(error, Refused) else "it is gone"  # students read this, and no paths
            told = {"ungradable": f"its pack cannot be read any more: {why}", "items": []}
            state.write_verdict(store, one, told, 0.0, 0.0, False)
            continue
        notebook = unpacked / f"{one.id}.ipynb"
        notebook.write_bytes(content)
        found[HandIn(one.student, chapter, notebook)] = one
    return found


def _in_doubt(one: Received, outcome: Outcome) -> bool:
    """Whether the machine may be to blame for a verdict, and it is worth another try."""
    return bool(outcome.in_doubt) and not state.is_last_try(one)


def _points(outcome: Outcome) -> float:
    return sum(item.points for item in outcome.items)


def _seconds_late(book: Gradebook, one: Received) -> float:
    due = due_date(book, one.student, one.chapter)
    return max(0.0, (one.received_at - due).total_seconds()) if due else 0.0


def _counts(nbgrader: NbGrader, store: Engine, book: Gradebook, one: Received, rules: Rules, outcome: Outcome) -> bool:
    """Whether a hand-in's marks stand in the gradebook: those of the last, or of the best, the later of two equal."""
    before = state.counted(store, one.student, one.chapter)
    if before is None or before.number == one.number:
        return True
    if rules.counts == "last":
        return one.number > before.number

    def mark(other: Received, points: float) -> tuple[float, int]:
        late = _seconds_late(book, other)
        return points - penalty_for(nbgrader, other.student, points, late), other.number

    return mark(one, _points(outcome)) > mark(before, before.points)


def _put(nbgrader: NbGrader, hand_in: HandIn, one: Received) -> HandIn:
    """Put a notebook where `grade` looks, with the time when it came; what lay there is kept."""
    submitted = submitted_folder(nbgrader).resolve()
    folder = submitted / hand_in.student / hand_in.chapter.folder
    target = folder / f"{hand_in.chapter.module}.ipynb"
    content = hand_in.path.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    if is_plain_file(target) and (before := target.read_bytes()) != content:
        keep_aside(submitted.parent / "earlier", hand_in.student, hand_in.chapter, before)
    replace_file(target, content)
    replace_file(folder / "timestamp.txt", f"{one.received_at:%Y-%m-%d %H:%M:%S} UTC\n".encode())
    return replace(hand_in, path=target)


def _end_with(server: int) -> None:
    """Interrupt this process as soon as the server is gone that started it."""
    while os.getppid() == server:
        time.sleep(_LOOK_AGAIN)
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Grade until the server that started this is gone, or stops it.

    Its arguments are the course's folder and, as JSON, the class, the means and the server's process.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Until here it ends this process at once, which costs nothing; from here on in good order.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    told = json.loads(sys.argv[2])
    threading.Thread(target=_end_with, args=(told["server"],), daemon=True).start()
    course = replace(find_course(Path(sys.argv[1])), class_name=told["class"])
    means = Means(told["workers"], told["scheduler"], told["unsafe"])
    nbgrader = gradebook.configure(course)
    rules, store = read_rules(course, nbgrader), None
    said = ""
    while True:
        wait = _LOOK_AGAIN
        try:
            store = store or state.open_store(nbgrader)  # it may be away at first
            if grade_waiting(course, nbgrader, store, rules, means):
                said = ""
        except Exception as error:  # somebody else grades, a full disk, a plugin's mistake: what waits goes on waiting
            wait = _BUSY
            if (line := plain(" ".join(f"{type(error).__name__}: {error}".split()))[:500]) != said:
                print(f"autograder: grading waits: {line}", file=sys.stderr, flush=True)
                said = line
        time.sleep(wait)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
