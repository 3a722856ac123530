"""`autograder grade`: progress while it runs, a table of marks, the verdicts as JSON."""

import filecmp
import json
import os
import sqlite3
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nbgrader.apps.baseapp import NbGrader
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from autograder.cells import exercise_of
from autograder.course import gradebook
from autograder.course.batch import Marked, grade_class
from autograder.course.collect import strays
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.files import replace_file
from autograder.course.hand_ins import HandIn, find_hand_ins, is_plain_file, submitted_folder
from autograder.course.receipts import folder_of, graded_from, only_one
from autograder.course.spread import count_workers, start_forkserver
from autograder.course.standing import Standing, refresh_penalties, standings
from autograder.course.students import other_classes, sections
from autograder.plain import plain
from autograder.verdict import FAULT_OF_THE_COURSE, Status

GRADED, UNGRADABLE, COURSE_FAULT, INTERRUPTED = 0, 3, 4, 130


@dataclass(frozen=True)
class Means:
    """What a class is graded with.

    Attributes:
        workers: processes on this machine; by default as many as pay, at most one for each core.
        scheduler: the address of a Dask scheduler to use instead.
        unsafe: run students' code without a sandbox.
        force: grade anew what has not changed, too.
        same_students: hand-ins of another folder are by the same people as those that were graded before.
    """

    workers: int | None = None
    scheduler: str | None = None
    unsafe: bool = False
    force: bool = False
    same_students: bool = False


@dataclass
class _Progress:
    """How far a run got."""

    marked: list[Marked] = field(default_factory=list)
    interrupted: bool = False
    started: float = field(default_factory=time.monotonic)


def run(
    course: Course,
    chapters: list[Chapter],
    *,
    submitted: Path | None = None,
    student: str | None = None,
    json_file: Path | None = None,
    means: Means = Means(),
    nbgrader: NbGrader | None = None,
) -> int:
    """Grade what was handed in and show the marks.

    Args:
        course: the course, with its solutions.
        chapters: the chapters to grade.
        submitted: holds a folder for each student; the one that `nbgrader_config.py` names by default.
        student: only this student's notebooks.
        json_file: where to write the verdicts.
        means: what the class is graded with.
        nbgrader: nbgrader configured otherwise than by `nbgrader_config.py`.

    Returns:
        The exit status: 0 graded, 3 when something could not be graded at all, 4 when a check is at fault itself,
        130 when interrupted.

    Raises:
        CourseError: there is nothing to grade, or other people's work under the same names, or no sandbox.
    """
    nbgrader = nbgrader or gradebook.configure(course)
    submitted = submitted or submitted_folder(nbgrader)
    if not submitted.is_dir():
        which = f"; or say which class with --class: {', '.join(begun)}" if (begun := other_classes(course)) else ""
        raise CourseError(f"there is no folder {submitted}; it should hold STUDENT/CHAPTER/NOTEBOOK.ipynb{which}")
    hand_ins = find_hand_ins(submitted.resolve(), chapters, student)
    astray = _tell_strays(course, submitted, student)
    if not hand_ins:
        wanted = f"{student or 'STUDENT'}/{chapters[0].folder}/{chapters[0].module}.ipynb"
        raise CourseError(f"there is nothing to grade in {submitted}; it should hold {wanted}")
    if not means.same_students:
        _refuse_others(course, nbgrader, hand_ins)
    workers = workers_for(means, len(hand_ins))
    progress = _grade(course, nbgrader, hand_ins, means, workers)
    progress.marked.sort(key=lambda m: (m.student, m.chapter.folder))
    if json_file:
        _write_json(json_file, progress, workers)
    _show(nbgrader, progress.marked)
    faults = _tell_faults(progress.marked)
    if progress.interrupted:
        left = len(hand_ins) - len(progress.marked)
        print(f"autograder: stopped, {left} of {len(hand_ins)} still to grade; run it again to go on", file=sys.stderr)
        return INTERRUPTED
    from autograder.course import insights  # only now: workers were not to wait for it

    print(f"What the class got wrong: {insights.run(course, course.chapters, nbgrader).as_uri()}")
    if faults:
        return COURSE_FAULT
    return UNGRADABLE if astray or any(one.ungradable for one in progress.marked) else GRADED


def _tell_strays(course: Course, submitted: Path, student: str | None) -> bool:
    """Name what lies among the hand-ins and is none; returns whether there is any."""
    found = strays(submitted.resolve(), course.chapters, student)
    for one in found:
        told = f"autograder: not graded: {plain(str(one.place))}: {one.why}; `autograder collect` sorts a download"
        print(told, file=sys.stderr)
    return bool(found)


def _refuse_others(course: Course, nbgrader: NbGrader, hand_ins: list[HandIn]) -> None:
    """Refuse work from another folder than what was graded under the same names: it may be another class's.

    It is the same people's if the folders hold the same of a chapter. Where the chapter itself was not graded yet, any
    other of the student's tells.

    Raises:
        CourseError: there is some, and it differs.
    """
    others: dict[str, str] = {}
    of_all_chapters = cache(partial(_graded_from, nbgrader, course.chapters))
    for one in hand_ins:
        here, student = one.path.parents[2], one.student
        before = _graded_from(nbgrader, [one.chapter], student) or of_all_chapters(student)
        same = (folder in ("", str(here)) or _is_same(Path(folder) / at, here / at) for at, folder in before.items())
        if before and not any(same):
            others[student] = min(before.values())
    if others:
        names = sorted(plain(student) for student in others)
        told = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise CourseError(
            f"the gradebook holds work of {told} from {others[min(others)]}: grade another class with --class NAME, or "
            "add --same-students if these are the same people"
        )


def _graded_from(nbgrader: NbGrader, chapters: Iterable[Chapter], student: str) -> dict[Path, str]:
    """For each chapter of a student's that was graded its notebook's place, and the folder of hand-ins it lay in."""
    found = {
        Path(student, c.folder, f"{c.module}.ipynb"): graded_from(folder_of(nbgrader, student, c)) for c in chapters
    }
    return {place: folder for place, folder in found.items() if folder is not None}


def _is_same(before: Path, now: Path) -> bool:
    return is_plain_file(before) and is_plain_file(now) and filecmp.cmp(before, now, shallow=False)


def workers_for(means: Means, hand_ins: int) -> int:
    """How many processes grade so many notebooks side by side; they are made ready meanwhile.

    Raises:
        CourseError: there is no such Dask scheduler.
    """
    if means.scheduler:
        return count_workers(means.scheduler)
    # A worker takes longer to start than ten notebooks to grade.
    workers = means.workers or min(os.cpu_count() or 1, 1 + hand_ins // 10)
    if workers > 1:
        start_forkserver()
    return workers


def _grade(course: Course, nbgrader: NbGrader, hand_ins: list[HandIn], means: Means, workers: int) -> _Progress:
    """Grade with a progress bar, until all is done or Ctrl-C comes.

    Raises:
        CourseError: the marks cannot be written.
    """
    progress = _Progress()
    options: Any = {"workers": workers, "scheduler": means.scheduler, "unsafe": means.unsafe, "force": means.force}
    try:
        with only_one(nbgrader), _bar() as shown:
            bar = shown.add_task("grading", total=len(hand_ins))
            for one in grade_class(course, nbgrader, hand_ins, **options):
                progress.marked.append(one)
                shown.advance(bar)
    except KeyboardInterrupt:
        progress.interrupted = True
    except (OSError, sqlite3.Error, SQLAlchemyError) as error:
        raise CourseError(
            f"{_reason(error)}; {len(progress.marked)} of {len(hand_ins)} are graded and written down: mend this and "
            "run it again to go on"
        ) from error
    return progress


def _show(nbgrader: NbGrader, marked: list[Marked]) -> None:
    """The table of marks, and what could not be graded."""
    with gradebook.open_gradebook(nbgrader) as book:
        refresh_penalties(nbgrader, book)
        table = marks_table(marked, standings(book), sections(nbgrader))
    console = Console()
    # A mark is never cut short: on a narrow screen lines wrap instead.
    console.width = max(console.width, Measurement.get(console, console.options.update(width=1000), table).maximum)
    console.print(table)
    if (changes := changes_table(marked)).row_count:
        console.print(changes)
    for one in marked:
        where = f"autograder: {plain(one.student)}, {one.chapter.folder}"
        if one.ungradable:
            print(f"{where}: {plain(one.ungradable)}", file=sys.stderr)
        for name, why in one.in_doubt.items():
            told = "this may be the machine's doing: no mark to keep, the next run judges it again"
            print(f"{where}, {plain(name)}: {plain(why)}; {told}", file=sys.stderr)


def _reason(error: Exception) -> str:
    """Why something could not be written, in one line."""
    cause = getattr(error, "orig", None) or error
    told = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause).split("\n")[0]
    place = getattr(cause, "filename", None)
    return f"the marks cannot be written: {told}{f': {place}' if place else ''}"


def _tell_faults(marked: list[Marked]) -> bool:
    """Name each check that is at fault itself, once for the class; returns whether there is any.

    A hand-in that fails before it comes to the faulty line has the mark of that failure, and does not count.
    """
    of = Counter((one.chapter.folder, item.grade_id) for one in marked for item in one.items)
    counts = Counter(
        (one.chapter.folder, item.grade_id, item.message.splitlines()[0])
        for one in marked
        for item in one.items
        if item.status == Status.COURSE_FAULT
    )
    for (folder, name, told), count in sorted(counts.items()):
        line = f"autograder: {folder}, {exercise_of(name) or name}: {plain(told.removeprefix(FAULT_OF_THE_COURSE)[2:])}"
        met = f"met by {count} of {of[folder, name]} hand-ins: what they had before is kept"
        print(f"{line}; a fault of the course, {met}", file=sys.stderr)
    return bool(counts)


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{60 * task.speed:.0f}/min" if task.speed else "–/min")


def _bar() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), _RateColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}"), *columns, console=Console(stderr=True))


def marks_table(
    marked: list[Marked], standings: dict[tuple[str, str], Standing], sections: Mapping[str, str] = MappingProxyType({})
) -> Table:
    """The marks as the gradebook has them, a row for each student, a column for each chapter headed by its points.

    Args:
        marked: what was graded.
        standings: how everyone stands; who is not in the gradebook is shown with the points of the checks.
        sections: the section of each student who has one, for a column of its own.
    """
    rows: dict[str, dict[Chapter, Standing]] = defaultdict(dict)
    for one in marked:
        earned, possible = (sum(getattr(item, of) for item in one.items) for of in ("points", "max_points"))
        standing = standings.get((one.student, one.chapter.folder), Standing(earned, possible))
        rows[one.student][one.chapter] = standing
    most = {one.chapter: rows[one.student][one.chapter].max_score for one in marked}
    chapters = sorted(most, key=lambda chapter: chapter.folder)
    table = Table(title="Marks", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("student", no_wrap=True)
    if sections:
        table.add_column("section", no_wrap=True)
    for chapter in chapters:
        table.add_column(f"{chapter.number}\n/{most[chapter]:g}", justify="right", no_wrap=True)
    for head in (f"total\n/{sum(most.values()):g}", "late", "to mark"):
        table.add_column(head, justify="right", no_wrap=True)
    for student, row in rows.items():
        cells = [f"{row[c].mark:g}" if c in row else "–" for c in chapters]
        total = sum(standing.mark for standing in row.values())
        late, waiting = (sum(getattr(standing, of) for standing in row.values()) for of in ("late", "to_mark"))
        unknown = "?" if any(standing.undated for standing in row.values()) else ""
        section = [Text(plain(sections.get(student, "")))] * bool(sections)
        table.add_row(
            Text(plain(student)), *section, *cells, f"{total:g}", f"{late or ''}{unknown}", f"{waiting or ''}"
        )
    return table


def changes_table(marked: list[Marked]) -> Table:
    """Each mark that this run changed, before and after, penalties apart; a first mark is no change."""
    table = Table(title="Marks that changed", title_justify="left", box=SIMPLE_HEAD)
    for head in ("student", "chapter", "exercise"):
        table.add_column(head, no_wrap=True)
    for head in ("before", "after"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in marked:
        for name, (before, after) in one.changed.items():
            shown = exercise_of(name) or name
            table.add_row(Text(plain(one.student)), one.chapter.number, shown, f"{before:g}", f"{after:g}")
    return table


def _write_json(file: Path, progress: _Progress, workers: int) -> None:
    items = [
        {"student": m.student, "chapter": m.chapter.folder}
        | {name: value for name, value in asdict(item).items() if name != "finding"}  # its message tells it
        for m in progress.marked
        for item in m.items
    ]
    told = {"items": items, "seconds": round(time.monotonic() - progress.started, 3), "workers": workers}
    replace_file(file, (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())
