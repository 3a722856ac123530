"""What `autograder grade` shows: progress while it runs, a table of marks, the verdicts as JSON."""

import json
import os
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

from autograder import gradebook
from autograder.classroom import Marked, count_workers, find_hand_ins, grade_class, start_forkserver
from autograder.course import Chapter, Course, CourseError

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
        with _progress() as progress:
            bar = progress.add_task("grading", total=len(hand_ins))
            for one in grade_class(course, nbgrader, hand_ins, workers=workers, scheduler=scheduler, unsafe=unsafe):
                marked.append(one)
                progress.advance(bar)
    except KeyboardInterrupt:
        status = INTERRUPTED
    marked.sort(key=lambda m: (m.student, m.chapter.folder))
    if json_file:
        _write_json(json_file, marked, time.monotonic() - started, workers)
    table = marks_table(marked)
    console = Console()
    # A mark is never cut short: on a narrow screen lines wrap instead.
    console.width = max(console.width, Measurement.get(console, console.options.update(width=1000), table).maximum)
    console.print(table)
    for one in marked:
        if one.ungradable:
            print(f"autograder: {one.student}, {one.chapter.folder}: {one.ungradable}", file=sys.stderr)
    if status == INTERRUPTED:
        left = len(hand_ins) - len(marked)
        print(f"autograder: stopped, {left} of {len(hand_ins)} still to grade; run it again to go on", file=sys.stderr)
    elif any(one.ungradable for one in marked):
        status = UNGRADABLE
    return status


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{60 * task.speed:.0f}/min" if task.speed else "–/min")


def _progress() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), _RateColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}"), *columns, console=Console(stderr=True))


def marks_table(marked: list[Marked]) -> Table:
    """The marks, a row for each student, and a column for each chapter headed by its points."""
    points: dict[str, dict[Chapter, tuple[float, float]]] = defaultdict(dict)
    for one in marked:
        earned, possible = (sum(item[key] for item in one.items) for key in ("points", "max_points"))
        points[one.student][one.chapter] = (earned, possible)
    most = {chapter: possible for row in points.values() for chapter, (_, possible) in row.items()}
    chapters = sorted(most, key=lambda chapter: chapter.folder)
    table = Table(title="Marks from checks", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("student", no_wrap=True)
    for chapter in chapters:
        table.add_column(f"{chapter.number}\n/{most[chapter]:g}", justify="right", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    for student, row in points.items():
        cells = [f"{row[c][0]:g}" if c in row else "–" for c in chapters]
        total, possible = (sum(pair[i] for pair in row.values()) for i in (0, 1))
        table.add_row(student, *cells, f"{total:g}/{possible:g}")
    return table


def _write_json(file: Path, marked: list[Marked], seconds: float, workers: int) -> None:
    items = [{"student": m.student, "chapter": m.chapter.folder} | item for m in marked for item in m.items]
    text = json.dumps({"items": items, "seconds": round(seconds, 3), "workers": workers}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")
