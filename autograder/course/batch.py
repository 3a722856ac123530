"""A whole class: which notebooks were handed in, graded side by side on Dask workers, written down by one process.

A worker reads one notebook, grades it in its own warm sandbox and sends back items and the graded notebook. This
process alone writes: the marks in one transaction, then the graded notebook under its final name, then the receipt that
lets the next run skip what has not changed. Whatever is interrupted in between is graded again.
"""

import errno
import fcntl
import hashlib
import json
import logging
import multiprocessing
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import islice
from multiprocessing import forkserver
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps.baseapp import NbGrader

from autograder.course import gradebook
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.files import replace_file
from autograder.course.interrupts import Interrupts, interrupts_held, interrupts_ignored
from autograder.isolation.sandbox import SandboxError, refusal, why_not_sandboxed
from autograder.job import Job, Outcome, grade_job, ungraded
from autograder.plain import plain

if TYPE_CHECKING:
    from distributed import Future

RECEIPT = ".autograder.json"
_LONGEST_ANSWER = 20_000
_ROOM = 4 << 20  # bytes on the disk without which nothing is begun
# Dask's own pages, which ask nobody for a key, have no content.
_LOCAL = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
# The modules of this package that have a part in a verdict.
_JUDGING = (
    "cells",
    "checks",
    "isolation/sandbox",
    "isolation/worker",
    "isolation/zygote",
    "job",
    "judge",
    "references",
    "run",
    "selection",
    "source",
    "submission",
    "verdict",
    "wire/graph",
    "wire/messages",
    "wire/protocol",
    "wire/proxy",
)


@dataclass(frozen=True)
class HandIn:
    """One notebook to grade."""

    student: str
    chapter: Chapter
    path: Path
    refused: str = ""
    """why it is not even looked at"""


@dataclass(frozen=True)
class Marked:
    """What a hand-in came to: a dictionary for each check cell, and why it could not be graded, if it could not."""

    student: str
    chapter: Chapter
    items: list[dict]
    ungradable: str = ""


def find_hand_ins(submitted: Path, chapters: list[Chapter], student: str | None = None) -> list[HandIn]:
    """The notebooks that lie under `submitted` as nbgrader lays them out.

    Args:
        submitted: the folder that holds a folder for each student.
        chapters: the chapters to grade.
        student: only this student's.

    Returns:
        One entry for each chapter folder that a student handed in, whether or not its notebook is there. Links are not
        followed: what lies behind one is refused, since it may be another student's, or the solution.
    """
    found = []
    for name in sorted(f.name for f in submitted.iterdir() if not f.name.startswith(".")):
        for chapter in chapters:
            folder = submitted / name / chapter.folder
            if student not in (None, name) or not os.path.lexists(folder):
                continue
            refused = _why_refused(submitted / name, folder)
            if refused or folder.is_dir():
                found.append(HandIn(name, chapter, folder / f"{chapter.module}.ipynb", refused))
    return found


def _why_refused(*path: Path) -> str:
    for folder in path:
        if folder.is_symlink():
            return f"{folder.name} is a symbolic link, which is not followed"
        if not folder.is_dir():
            return f"{folder.name} is not a folder"
    if plain(path[0].name) != path[0].name:
        return "the folder's name holds characters that steer a terminal, or bytes that are no characters: rename it"
    return ""


def grade_class(
    course: Course,
    nbgrader: NbGrader,
    hand_ins: list[HandIn],
    *,
    workers: int = 1,
    scheduler: str | None = None,
    unsafe: bool = False,
    force: bool = False,
) -> Iterator[Marked]:
    """Grade hand-ins, write their marks and graded notebooks, and tell of each as soon as it is written.

    Args:
        course: the course, with its solutions.
        nbgrader: nbgrader, configured (`gradebook.configure`).
        hand_ins: what to grade; one that was graded before and has not changed since keeps its marks.
        workers: how many processes grade on this machine; 1 is this process itself.
        scheduler: the address of a Dask scheduler whose workers grade instead.
        unsafe: run students' code without a sandbox.
        force: grade anew what has not changed, too.

    Returns:
        An iterator over the results, in no fixed order.
    """
    settings = gradebook.GradeChapter(parent=nbgrader)
    chapters = sorted({h.chapter for h in hand_ins}, key=lambda chapter: chapter.folder)
    settings.unsafe = settings.unsafe or unsafe
    if scheduler is None and not settings.unsafe:
        _require_sandbox()
    models = {c: settings.job(course.solution(c), course.solution(c)) for c in chapters}
    versions = {c: _version(course, c, models[c]) for c in chapters}
    with gradebook.open_gradebook(nbgrader) as book:
        for chapter in chapters:
            gradebook.synchronise(nbgrader, chapter)
        todo = {}
        for hand_in in hand_ins:
            if hand_in.refused:
                yield _refuse(course, nbgrader, book, hand_in)
                continue
            fingerprint = _fingerprint(versions[hand_in.chapter], hand_in.path)
            marked = None if force else _read_receipt(nbgrader, hand_in, fingerprint)
            if marked and gradebook.is_recorded(book, hand_in.student, hand_in.chapter):
                if handed_in_at := gradebook.read_timestamp(hand_in.path.parent):
                    gradebook.set_time(book, hand_in.student, hand_in.chapter, handed_in_at)
                yield marked
            else:
                todo[hand_in] = fingerprint
        jobs = {h: replace(models[h.chapter], submission=h.path) for h in todo}
        for hand_in, outcome in _run(jobs, workers, scheduler):
            yield _write(nbgrader, book, hand_in, outcome, todo[hand_in])


def _refuse(course: Course, nbgrader: NbGrader, book: Gradebook, hand_in: HandIn) -> Marked:
    outcome = ungraded(course.solution(hand_in.chapter), hand_in.refused)
    if plain(hand_in.student) != hand_in.student:  # a name that no gradebook and no page should have to show
        return Marked(hand_in.student, hand_in.chapter, outcome.items, hand_in.refused)
    return _write(nbgrader, book, hand_in, outcome, _digest(hand_in.refused.encode()))


def _require_sandbox() -> None:
    # Asked before any worker is started, and without importing torch.
    if missing := why_not_sandboxed():
        raise CourseError(refusal(missing))


def _run(jobs: dict[HandIn, Job], workers: int, scheduler: str | None) -> Iterator[tuple[HandIn, Outcome]]:
    """Grade until all is done; Ctrl-C is answered between two results, and raises only when all is in order."""
    if not jobs:
        return
    with interrupts_held() as interrupts:
        if scheduler is None and min(workers, len(jobs)) == 1:
            yield from _grade_here(jobs, interrupts)
        else:
            yield from _spread(jobs, workers, scheduler, interrupts)
    if interrupts.came:
        raise KeyboardInterrupt


def _grade_here(jobs: dict[HandIn, Job], interrupts: Interrupts) -> Iterator[tuple[HandIn, Outcome]]:
    for hand_in, job in jobs.items():
        try:
            with interrupts.raised():
                outcome = grade_job(job)
        except KeyboardInterrupt:
            return
        yield hand_in, outcome
        if interrupts.came:
            return


def _spread(
    jobs: dict[HandIn, Job], workers: int, scheduler: str | None, interrupts: Interrupts
) -> Iterator[tuple[HandIn, Outcome]]:
    # What waits for a result waits for an interrupt, too: `put` may be called in a signal handler.
    arrived: SimpleQueue[Future | None] = SimpleQueue()
    interrupts.wake = lambda: arrived.put(None)
    with _client(min(workers, len(jobs)), scheduler) as client:
        waiting = iter(jobs.items())
        pending: dict[Future, HandIn] = {}

        def submit(most: int) -> None:
            for hand_in, job in islice(waiting, most):
                pending[future := client.submit(grade_job, job, pure=False)] = hand_in
                future.add_done_callback(arrived.put)

        # Two jobs for each thread keep every worker busy; more would only fill memory.
        submit(2 * sum(client.nthreads().values()))
        while pending and not interrupts.came:
            if (future := arrived.get()) is None:
                return
            hand_in = pending.pop(future)
            submit(1)
            if isinstance(error := future.exception(), SandboxError):
                raise error
            if error:
                yield hand_in, ungraded(jobs[hand_in].source, f"the grading process died each time: {error!r}")
            else:
                yield hand_in, future.result()


def start_forkserver() -> None:
    """Start the process that workers are forked from, which imports torch once for all of them, meanwhile."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["distributed", "autograder.run", "autograder.job"])
    with interrupts_ignored():
        forkserver.ensure_running()


def count_workers(scheduler: str) -> int:
    """How many workers a Dask scheduler has.

    Raises:
        CourseError: there is no scheduler at this address, or it has no workers.
    """
    with _client(0, scheduler) as client:
        return len(client.nthreads())


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator:
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    with ExitStack() as stack:
        address = scheduler
        if scheduler is None:
            stack.enter_context(dask.config.set(_LOCAL))
            start_forkserver()
            options = {"threads_per_worker": 1, "silence_logs": logging.CRITICAL}
            # No dashboard, and no word about its usual port where another program has that.
            options |= {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
            # Who can talk to a scheduler can have it run anything: each side has to show this run's own key, which no
            # other user of this machine has.
            try:
                options["security"] = Security.temporary()
            except ImportError:
                raise CourseError(
                    "several processes cannot talk in private without the package `cryptography`: "
                    "`pip install cryptography`, or grade with `--workers 1`"
                ) from None
            address = stack.enter_context(LocalCluster(n_workers=workers, **options))
        try:
            client = stack.enter_context(Client(address, timeout=30))
            client.wait_for_workers(1, timeout=60)
        except (OSError, TimeoutError, ValueError) as error:
            raise CourseError(f"no Dask workers at {scheduler}: {error}") from error
        yield client


def _version(course: Course, chapter: Chapter, model: Job) -> str:
    """A fingerprint of all that a mark depends on besides the submission: code that judges, checks, torch itself."""
    package = Path(__file__).parents[1]
    judging = [package / f"{name}.py" for name in _JUDGING]
    checks = course.root / "checks"
    tests = [*sorted(checks.glob("*.py")), *(checks / chapter.module / f"{name}.py" for name in ("visible", "hidden"))]
    files = [*judging, *tests, course.solution(chapter)]
    parts = [file.read_bytes() for file in files if file.is_file()]
    used = [sys.version, *(version(name) for name in ("torch", "numpy"))]
    return _digest(*parts, repr((model.modules, model.limits, model.run_cells, used)).encode())


def _fingerprint(version: str, path: Path) -> str:
    content = b"no plain file"
    if gradebook.is_plain_file(path):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
    return _digest(version.encode(), content)


def _digest(*parts: bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def _destination(nbgrader: NbGrader, hand_in: HandIn) -> Path:
    coursedir = nbgrader.coursedir
    return Path(coursedir.format_path(coursedir.autograded_directory, hand_in.student, hand_in.chapter.folder))


def read_verdicts(nbgrader: NbGrader, hand_in: HandIn) -> tuple[int | None, list[dict]]:
    """The seed that was recorded with the verdicts on a hand-in, and these; (None, []) if it was never graded."""
    try:
        receipt = json.loads((_destination(nbgrader, hand_in) / RECEIPT).read_text(encoding="utf-8"))
        return receipt.get("seed"), receipt["items"]
    except (OSError, ValueError, AttributeError, KeyError):
        return None, []


@contextmanager
def only_one(nbgrader: NbGrader) -> Iterator[None]:
    """See to it that one process at a time writes into a course's folder of graded notebooks.

    Raises:
        CourseError: another one does.
        OSError: the folder cannot be written to, or its disk is full.
    """
    folder = Path(nbgrader.coursedir.format_path(nbgrader.coursedir.autograded_directory, ".", "."))
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < _ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(f"another `autograder grade` is at work on {folder}: wait until it has ended") from None
        yield


def _read_receipt(nbgrader: NbGrader, hand_in: HandIn, fingerprint: str) -> Marked | None:
    folder = _destination(nbgrader, hand_in)
    try:
        receipt = json.loads((folder / RECEIPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if receipt["fingerprint"] != fingerprint or not (folder / hand_in.path.name).is_file():
        return None
    return Marked(hand_in.student, hand_in.chapter, receipt["items"], receipt["ungradable"])


def _write(nbgrader: NbGrader, book: Gradebook, hand_in: HandIn, outcome: Outcome, fingerprint: str) -> Marked:
    notebook = nbformat.reads(outcome.notebook, as_version=4)
    handed_in_at = None if hand_in.refused else gradebook.read_timestamp(hand_in.path.parent)
    gradebook.record(book, hand_in.student, hand_in.chapter, notebook, handed_in_at)
    folder = _destination(nbgrader, hand_in)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / hand_in.path.name, nbformat.writes(notebook).encode())
    if handed_in_at:
        replace_file(folder / "timestamp.txt", handed_in_at.encode())
    receipt = {"fingerprint": fingerprint, "items": outcome.items, "ungradable": outcome.ungradable}
    receipt |= {"seed": outcome.seed, "answers": _answers(notebook)}
    replace_file(folder / RECEIPT, json.dumps(receipt).encode())
    return Marked(hand_in.student, hand_in.chapter, outcome.items, outcome.ungradable)


def _answers(notebook: NotebookNode) -> dict[str, str]:
    """The text of each answer in code: kept beside the verdicts, so that a class is looked through in seconds."""
    cells = [(cell, cell.metadata.get("nbgrader", {})) for cell in notebook.cells if cell.cell_type == "code"]
    return {about.grade_id: cell.source[:_LONGEST_ANSWER] for cell, about in cells if about.get("solution")}
