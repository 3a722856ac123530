"""What `autograder grade` shows: progress while it runs, a table of marks, the verdicts as JSON."""

import dataclasses
import json
import os
import sqlite3
import sys
import time
from collections import defaultdict
from pathlib import Path

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
from autograder.course.batch import (
    Marked,
    count_workers,
    find_hand_ins,
    grade_class,
    only_one,
    read_verdicts,
    start_forkserver,
)
from autograder.course.collect import strays
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.standing import Standing, refresh_penalties, standings
from autograder.job import grade_job
from autograder.plain import plain

GRADED, UNGRADABLE, INTERRUPTED = 0, 3, 130


def run(
    course: Course,
    chapters: list[Chapter],
    *,
    submitted: Path | None,
    student: str | None,
    json_file: Path | None,
    workers: int | None,
    scheduler: str | None,
    unsafe: bool,
    force: bool = False,
    nbgrader: NbGrader | None = None,
) -> int:
    """Grade what was handed in and show the marks.

    Args:
        course: the course, with its solutions.
        chapters: the chapters to grade.
        submitted: holds a folder for each student; the one that `nbgrader_config.py` names by default.
        student: only this student's notebooks.
        json_file: where to write the verdicts.
        workers: processes on this machine; by default as many as pay, at most one for each core.
        scheduler: the address of a Dask scheduler to use instead.
        unsafe: run students' code without a sandbox.
        force: grade anew what has not changed, too.
        nbgrader: nbgrader configured otherwise than by `nbgrader_config.py`.

    Returns:
        The exit status: 0 graded, 3 when something could not be graded at all, 130 when interrupted.

    Raises:
        CourseError: there is nothing to grade, or no sandbox.
    """
    started = time.monotonic()
    nbgrader = nbgrader or gradebook.configure(course)
    submitted = submitted or Path(nbgrader.coursedir.format_path(nbgrader.coursedir.submitted_directory, ".", "."))
    if not submitted.is_dir():
        raise CourseError(f"there is no folder {submitted}; it should hold STUDENT/CHAPTER/NOTEBOOK.ipynb")
    hand_ins = find_hand_ins(submitted.resolve(), chapters, student)
    left = strays(submitted.resolve(), course.chapters, student)
    for one in left:
        told = f"autograder: not graded: {plain(str(one.place))}: {one.why}; `autograder collect` sorts a download"
        print(told, file=sys.stderr)
    if not hand_ins:
        wanted = f"{student or 'STUDENT'}/{chapters[0].folder}/{chapters[0].module}.ipynb"
        raise CourseError(f"there is nothing to grade in {submitted}; it should hold {wanted}")
    if scheduler:
        workers = count_workers(scheduler)
    else:
        # A worker takes longer to start than ten notebooks to grade.
        workers = workers or min(os.cpu_count() or 1, 1 + len(hand_ins) // 10)
        if workers > 1:
            start_forkserver()
    marked: list[Marked] = []
    status = GRADED
    try:
        with only_one(nbgrader), _progress() as progress:
            bar = progress.add_task("grading", total=len(hand_ins))
            options = {"workers": workers, "scheduler": scheduler, "unsafe": unsafe, "force": force}
            for one in grade_class(course, nbgrader, hand_ins, **options):
                marked.append(one)
                progress.advance(bar)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except (OSError, sqlite3.Error, SQLAlchemyError) as error:
        raise CourseError(
            f"{_reason(error)}; {len(marked)} of {len(hand_ins)} are graded and written down: mend this and run it "
            "again to go on"
        ) from error
    marked.sort(key=lambda m: (m.student, m.chapter.folder))
    if json_file:
        _write_json(json_file, marked, time.monotonic() - started, workers)
    with gradebook.open_gradebook(nbgrader) as book:
        refresh_penalties(nbgrader, book)
        table = marks_table(marked, standings(book))
    console = Console()
    # A mark is never cut short: on a narrow screen lines wrap instead.
    console.width = max(console.width, Measurement.get(console, console.options.update(width=1000), table).maximum)
    console.print(table)
    for one in marked:
        if one.ungradable:
            where = f"{plain(one.student)}, {one.chapter.folder}"
            print(f"autograder: {where}: {plain(one.ungradable)}", file=sys.stderr)
    if status == INTERRUPTED:
        left = len(hand_ins) - len(marked)
        print(f"autograder: stopped, {left} of {len(hand_ins)} still to grade; run it again to go on", file=sys.stderr)
    elif left or any(one.ungradable for one in marked):
        status = UNGRADABLE
    if status != INTERRUPTED:
        from autograder.course import insights  # only now: workers were not to wait for it

        print(f"What the class got wrong: {insights.run(course, course.chapters, nbgrader).as_uri()}")
    return status


def _reason(error: Exception) -> str:
    """Why something could not be written, in one line."""
    cause = getattr(error, "orig", None) or error
    told = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause).split("\n")[0]
    place = getattr(cause, "filename", None)
    return f"the marks cannot be written: {told}{f': {place}' if place else ''}"


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{60 * task.speed:.0f}/min" if task.speed else "–/min")


def _progress() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), _RateColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}"), *columns, console=Console(stderr=True))


def marks_table(marked: list[Marked], standings: dict[tuple[str, str], Standing]) -> Table:
    """The marks as the gradebook has them, a row for each student, a column for each chapter headed by its points.

    Args:
        marked: what was graded.
        standings: how everyone stands; who is not in the gradebook is shown with the points of the checks.
    """
    rows: dict[str, dict[Chapter, Standing]] = defaultdict(dict)
    for one in marked:
        earned, possible = (sum(item[key] for item in one.items) for key in ("points", "max_points"))
        standing = standings.get((one.student, one.chapter.folder), Standing(earned, possible))
        rows[one.student][one.chapter] = standing
    most = {one.chapter: rows[one.student][one.chapter].max_score for one in marked}
    chapters = sorted(most, key=lambda chapter: chapter.folder)
    table = Table(title="Marks", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("student", no_wrap=True)
    for chapter in chapters:
        table.add_column(f"{chapter.number}\n/{most[chapter]:g}", justify="right", no_wrap=True)
    for head in (f"total\n/{sum(most.values()):g}", "late", "to mark"):
        table.add_column(head, justify="right", no_wrap=True)
    for student, row in rows.items():
        cells = [f"{row[c].mark:g}" if c in row else "–" for c in chapters]
        total = sum(standing.mark for standing in row.values())
        late, waiting = (sum(getattr(standing, of) for standing in row.values()) for of in ("late", "to_mark"))
        table.add_row(Text(plain(student)), *cells, f"{total:g}", f"{late or ''}", f"{waiting or ''}")
    return table


def replay(course: Course, student: str, chapter: Chapter, exercise: str, *, submitted: Path | None = None) -> int:
    """Give the verdict on one exercise again, from its recorded seed, and show the case that failed.

    Args:
        course: the course, with its solutions.
        student: whose notebook.
        chapter: which one.
        exercise: which of its exercises.
        submitted: holds a folder for each student; the one that `nbgrader_config.py` names by default.

    Returns:
        The exit status: 0 when the verdict is the recorded one, 3 when it is another, or the notebook cannot be read.

    Raises:
        CourseError: there is no such notebook, exercise or recorded verdict.
    """
    if exercise not in [e.name for e in chapter.exercises if e.kind == "code"]:
        known = ", ".join(e.name for e in chapter.exercises if e.kind == "code")
        raise CourseError(f"{chapter.folder} has no exercise {exercise!r} with checks; it has {known}")
    nbgrader = gradebook.configure(course)
    submitted = submitted or Path(nbgrader.coursedir.format_path(nbgrader.coursedir.submitted_directory, ".", "."))
    found = find_hand_ins(submitted.resolve(), [chapter], student) if submitted.is_dir() else []
    if not found:
        raise CourseError(f"{student} handed in no {chapter.folder} in {submitted}")
    seed, recorded = read_verdicts(nbgrader, found[0])
    if seed is None:
        raise CourseError(f"no verdict on {student}'s {chapter.folder} is recorded; run `autograder grade` first")
    settings = gradebook.GradeChapter(parent=nbgrader)
    job = settings.job(found[0].path, course.solution(chapter))
    recorded = [item for item in recorded if exercise_of(item["grade_id"]) == exercise]
    only = frozenset(item["grade_id"] for item in recorded)
    outcome = grade_job(dataclasses.replace(job, seed=seed, only=only, explain=True))
    if outcome.ungradable:
        print(f"autograder: {plain(student)}, {chapter.folder}: {plain(outcome.ungradable)}", file=sys.stderr)
        return UNGRADABLE
    status = GRADED
    for before, now in zip(recorded, outcome.items, strict=True):
        print(f"{now['grade_id']}: {now['status']}, {now['points']:g} of {now['max_points']:g} points, seed {seed}")
        for line in now["message"].splitlines():
            print(f"    {plain(line)}")
        if (before["status"], before["points"]) != (now["status"], now["points"]):
            told = f"recorded was: {before['status']}, {before['points']:g} points: {plain(before['message'])}"
            print(f"autograder: {told}; has the notebook or a check changed since?", file=sys.stderr)
            status = UNGRADABLE
    return status


def _write_json(file: Path, marked: list[Marked], seconds: float, workers: int) -> None:
    items = [{"student": m.student, "chapter": m.chapter.folder} | item for m in marked for item in m.items]
    text = json.dumps({"items": items, "seconds": round(seconds, 3), "workers": workers}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")
