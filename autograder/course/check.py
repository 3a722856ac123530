"""`autograder check`: a reader's own notebooks, graded by the same engine, with a message for each exercise.

In the repository the checks are those of `solutions/`, hidden ones too. A student's copy of the course has only the
visible ones: there the notebook as it was handed out, in `originals/`, is what repair and checks go by.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import nbformat
from nbformat import NotebookNode
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.cells import exercise_of
from autograder.course.curriculum import REFERENCE, Chapter, Course, CourseError, reference_modules
from autograder.course.files import KEPT_ASIDE, replace_file
from autograder.isolation.sandbox import why_not_sandboxed
from autograder.job import Job, Outcome, grade_job
from autograder.source import read_definitions
from autograder.submission import SubmissionError, TooLarge, lay_over, read_notebook
from autograder.verdict import Status, in_words

_MOST_MB_TO_MEND = 500
_SIGNS = {
    Status.PASSED: ("green", "✓"),
    Status.NOT_ATTEMPTED: ("dim", "·"),
    Status.MISSING: ("yellow", "?"),
    Status.COURSE_FAULT: ("yellow", "!"),
}
MARKS = {s: "[{}]{} {}[/]".format(*_SIGNS.get(s, ("red", "✗")), in_words(s)) for s in Status}


def run(course: Course, chapters: list[Chapter], *, repair: bool, watch: bool) -> int:
    """Check notebooks and show each exercise's verdict.

    Args:
        course: the repository, or a student's copy.
        chapters: the chapters to check.
        repair: first mend what is wrong with the notebooks themselves.
        watch: go on, and check a notebook again each time it is saved, until interrupted.

    Returns:
        The exit status: 0 checked, whatever came out; 3 when a notebook cannot be read.

    Raises:
        CourseError: this system lacks what a check needs.
    """
    if not hasattr(os, "fork"):
        raise CourseError(
            "checking needs Linux or macOS: on Windows, set the course up in WSL (docs/student.md); "
            "the check cells in the notebooks work here"
        )
    console = Console(soft_wrap=True)
    if missing := why_not_sandboxed():
        console.print(f"Checking without a sandbox, with your own rights: {escape(missing)}.")
    status = 0
    seen = {}
    for chapter in chapters:
        if repair:
            mend(course, chapter, console)
        seen[chapter] = _changed(course, chapter)
        status = max(status, check(course, chapter, console))
    if watch:
        with suppress(KeyboardInterrupt):
            check_when_saved(course, seen, console)
    return status


def check(course: Course, chapter: Chapter, console: Console) -> int:
    """Check one notebook and show what came out; returns 0, or 3 when it cannot be read."""
    started = time.monotonic()
    outcome = grade_job(check_job(course, chapter))
    if outcome.ungradable:
        console.print(f"[bold]{chapter.folder}[/]: {escape(outcome.ungradable)}")
        if course.has_solutions or handed_out(course, chapter).is_file():
            console.print(f"`autograder check --repair {chapter.number}` mends it, and keeps the old file beside it.")
        return 3
    console.print(verdicts(chapter, outcome, hidden=course.has_solutions))
    if original(course, chapter) == course.notebook(chapter):
        console.print("Whether the notebook is intact cannot be told: originals/ is missing.")
    else:
        show_problems(console, chapter, outcome.problems)
    console.print(f"[dim]checked in {time.monotonic() - started:.1f} s[/]\n", highlight=False)
    return 0


def check_when_saved(course: Course, seen: dict[Chapter, int], console: Console) -> NoReturn:
    """Check each notebook again whenever its file changes; the sandbox stays warm, so that takes a moment.

    Args:
        course: the repository, or a student's copy.
        seen: when each notebook had changed last when it was checked.
        console: where to show what comes out.
    """
    console.print("Waiting for a notebook to be saved; stop with Ctrl-C.")
    while True:
        time.sleep(0.1)
        for chapter in seen:
            if (changed := _changed(course, chapter)) != seen[chapter]:
                seen[chapter] = changed
                check(course, chapter, console)


def _changed(course: Course, chapter: Chapter) -> int:
    with suppress(FileNotFoundError):
        return course.notebook(chapter).stat().st_mtime_ns
    return 0


def check_job(course: Course, chapter: Chapter) -> Job:
    """How a reader's own notebook is graded."""
    if course.has_solutions:
        modules = reference_modules(course, chapter)
    else:
        modules = course.library
        for earlier in course.curriculum:
            places = [course.notebook(earlier), course.root / "notebooks" / REFERENCE / f"{earlier.module}.ipynb"]
            place = next((place for place in places if place.is_file()), None)
            if earlier.folder < chapter.folder and place:
                with suppress(ImportError):  # a broken notebook: only what imports it fails
                    modules[earlier.module] = read_definitions(place)
    # One's own code on one's own machine: a sandbox where there is one, and no fuss where there is none.
    return Job(course.notebook(chapter), original(course, chapter), modules, unsafe=True)


def original(course: Course, chapter: Chapter) -> Path:
    """What a notebook is held against: the solution, the notebook as it was handed out, or else the notebook itself."""
    places = [course.solution(chapter), handed_out(course, chapter), course.notebook(chapter)]
    return next(place for place in places if place.is_file())


def handed_out(course: Course, chapter: Chapter) -> Path:
    """Where a student's copy keeps the notebook as it was handed out."""
    return course.root / "originals" / chapter.folder / f"{chapter.module}.ipynb"


def verdicts(chapter: Chapter, outcome: Outcome, *, hidden: bool) -> Table:
    """A row for each exercise: what came of its checks, its points, and the first message.

    Args:
        chapter: the chapter.
        outcome: what came out of its checks.
        hidden: whether the hidden checks were there: without them nothing has been earned, and exercises are counted.
    """
    checks = defaultdict(list)
    for item in outcome.items:
        checks[exercise_of(item.grade_id)].append(item)
    if hidden:
        earned = sum(item.points for item in outcome.items)
        possible = sum(item.max_points for item in outcome.items)
        counted = f"{earned:g} of {possible:g} points"
    else:
        passing = count_passing({item.grade_id: item.status for item in outcome.items})
        counted = f"{passing} their visible checks; grading gives the points"
    table = Table(title=f"{chapter.folder}  {counted}", title_justify="left", title_style="bold")
    table.add_column("exercise", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("points" if hidden else "worth", justify="right", no_wrap=True)
    table.add_column("message", overflow="fold")
    for exercise in chapter.exercises:
        items = checks.get(exercise.name, [])
        if exercise.kind == "written":
            earned_of = "–/" if hidden else ""
            table.add_row(exercise.name, "[dim]marked by hand[/]", f"{earned_of}{exercise.points:g}", "")
            continue
        worst = next((item for item in items if item.status != Status.PASSED), None)
        verdict = MARKS[worst.status if worst else Status.PASSED if items else Status.MISSING]
        earned_of = f"{sum(item.points for item in items):g}/" if hidden else ""
        told = escape(worst.message) if worst and worst.status != Status.NOT_ATTEMPTED else ""
        table.add_row(exercise.name, verdict, f"{earned_of}{exercise.points:g}", told)
    return table


def count_passing(statuses: Mapping[str, str]) -> str:
    """How many exercises pass, as the beginning of a sentence: an exercise may have several checks.

    Args:
        statuses: of each check, by its `grade_id`.
    """
    passed: dict[str, bool] = {}
    for name, status in statuses.items():
        exercise = exercise_of(name) or name
        passed[exercise] = passed.get(exercise, True) and status == Status.PASSED
    return f"{sum(passed.values())} of {len(passed)} exercises pass"


def show_problems(console: Console, chapter: Chapter, problems: list[str]) -> None:
    """Say whether the notebook is intact."""
    if not problems:
        console.print("The notebook is intact.")
        return
    console.print("The notebook is not intact:")
    for problem in problems:
        console.print(f"  • {escape(problem)}")
    console.print(f"`autograder check --repair {chapter.number}` mends it and keeps a backup.")


def mend(course: Course, chapter: Chapter, console: Console) -> None:
    """Put a reader's notebook in order, if it is not: the course's cells back, the reader's answers kept.

    Args:
        course: the repository, or a student's copy.
        chapter: whose notebook is mended; the old file is kept beside it.
        console: where to say what was done.
    """
    path = course.notebook(chapter)
    try:
        notebook, cleared = _read_to_mend(path)
        mended = lay_over(notebook, nbformat.read(original(course, chapter), as_version=4))
    except SubmissionError as error:
        unreadable = f"[bold]{chapter.folder}[/]: {escape(str(error))}"
        fresh = _fresh(course, chapter)
        if fresh is None:
            console.print(f"{unreadable}; nothing was changed")
            return
        backup = _replace(path, fresh)
        kept = f"; the old file is {backup.name}" if backup else ""
        console.print(f"{unreadable}; it is now as it was handed out{kept}")
    else:
        if not mended.problems and not cleared:
            return
        backup = _replace(path, json.dumps(mended.notebook, indent=1, ensure_ascii=False) + "\n")
        count = len(mended.problems)
        assert backup is not None, "a notebook was there to be mended"
        told = [f"{count} thing{'s' * (count != 1)}"] * bool(count) + ["its outputs are cleared"] * cleared
        console.print(f"[bold]{chapter.folder}[/] mended, {' and '.join(told)}; the old notebook is {backup.name}")
    console.print("If it is open in JupyterLab: File, Reload Notebook from Disk.")


def _read_to_mend(path: Path) -> tuple[NotebookNode, bool]:
    """A reader's notebook, without its outputs if they make it larger than what is handed in; and whether they did.

    Raises:
        SubmissionError: it is none.
    """
    try:
        return read_notebook(path), False
    except TooLarge:
        notebook = read_notebook(path, _MOST_MB_TO_MEND)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    return notebook, True


def _fresh(course: Course, chapter: Chapter) -> str | None:
    """A chapter as it was handed out, or as it would be now; None where neither can be had."""
    if (kept := handed_out(course, chapter)).is_file():
        return kept.read_text(encoding="utf-8")
    if not course.has_solutions:
        return None
    from autograder.course.release import released_text  # nbgrader takes a second to import

    return released_text(course, chapter)


def _replace(path: Path, text: str) -> Path | None:
    """Give a notebook another text; returns where the old file is kept, if there was one.

    Raises:
        CourseError: it cannot be written; the notebook is as it was.
    """
    backup = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() or path.is_symlink():
            backup = path.with_name(f"{path.name}.{time.strftime('%Y-%m-%d-%H%M%S')}{KEPT_ASIDE}")
        replace_file(path, text.encode(), backup)
    except OSError as error:
        raise CourseError(f"{path} cannot be written: {error.strerror}; nothing was changed") from error
    return backup
