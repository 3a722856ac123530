"""A whole class: what of it is to be graded, and what came of it written down.

A worker reads one notebook, grades it in its own warm sandbox and sends back items and the graded notebook. This
process alone writes: the marks in one transaction, then the graded notebook under its final name, then the receipt that
lets the next run skip what has not changed. Whatever is interrupted in between is graded again.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps.baseapp import NbGrader

from autograder.cells import exercise_of, flags_of
from autograder.course import gradebook
from autograder.course.chapter_grader import GradeChapter
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.files import replace_file
from autograder.course.generate import synchronise
from autograder.course.hand_ins import HandIn, find_hand_ins, is_plain_file, read_timestamp, submitted_folder
from autograder.course.receipts import Receipt, folder_of, read_receipt, read_receipts, write_receipt
from autograder.course.spread import grade_jobs
from autograder.isolation.sandbox import refusal, why_not_sandboxed
from autograder.job import Job, Outcome, ungraded
from autograder.plain import plain
from autograder.verdict import Item, Status

_LONGEST_ANSWER = 20_000
# The modules beside those in `course/` that have no part in a verdict.
_NOT_JUDGING = ("__init__", "answers", "cli", "heatmap", "nbgrader", "pages", "plain")


@dataclass(frozen=True)
class Marked:
    """What a hand-in came to: the verdict on each check cell, and why it could not be graded, if it could not."""

    student: str
    chapter: Chapter
    items: list[Item]
    ungradable: str = ""
    in_doubt: dict[str, str] = field(default_factory=dict)
    """why the machine may be to blame for a verdict, by cell: the next run judges the notebook again"""
    changed: dict[str, tuple[float, float]] = field(default_factory=dict)
    """each mark that this run changed, before and after, by cell"""


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
    models = _models(course, nbgrader, hand_ins, scheduler, unsafe)
    versions = {c: _version(course, c, model) for c, model in models.items()}
    with gradebook.open_gradebook(nbgrader) as book:
        todo, refused = {}, []
        for hand_in in hand_ins:
            if hand_in.refused:
                refused.append(hand_in)
                continue
            fingerprint = _fingerprint(versions[hand_in.chapter], hand_in.path)
            marked = None if force else _kept(nbgrader, hand_in, fingerprint)
            if marked and gradebook.is_recorded(book, hand_in.student, hand_in.chapter):
                if handed_in_at := read_timestamp(hand_in.path.parent):
                    gradebook.set_time(book, hand_in.student, hand_in.chapter, handed_in_at)
                yield marked
            else:
                todo[hand_in] = fingerprint
        # Whatever changes a chapter's cells changes its fingerprint: with nothing to write, the gradebook knows them.
        for chapter in sorted({h.chapter for h in (*todo, *refused)}, key=lambda chapter: chapter.folder):
            synchronise(nbgrader, chapter)
        for hand_in in refused:
            yield _refuse(course, nbgrader, book, hand_in)
        jobs = {h: replace(models[h.chapter], submission=h.path) for h in todo}
        for hand_in, outcome in grade_jobs(jobs, workers, scheduler):
            yield _write(nbgrader, book, hand_in, outcome, todo[hand_in], course.solution(hand_in.chapter))


def grade_apart(
    course: Course,
    nbgrader: NbGrader,
    hand_ins: Mapping[HandIn, int],
    counts: Callable[[HandIn, Outcome], HandIn | None],
    *,
    workers: int = 1,
    scheduler: str | None = None,
    unsafe: bool = False,
) -> Iterator[tuple[HandIn, Outcome]]:
    """Grade notebooks that lie apart from the class's folder; only of those that count are marks written.

    Args:
        course: the course, with its solutions.
        nbgrader: nbgrader, configured (`gradebook.configure`).
        hand_ins: what to grade, each with the seed of its random numbers.
        counts: is told what came out; it puts what counts into the class's folder and returns where it lies there,
            None if it does not count.
        workers: see `grade_class`.
        scheduler: see `grade_class`.
        unsafe: see `grade_class`.

    Returns:
        An iterator over what came out, in no fixed order, once it is written.
    """
    models = _models(course, nbgrader, hand_ins, scheduler, unsafe)
    versions = {c: _version(course, c, model) for c, model in models.items()}
    for chapter in models:
        _synchronise_once(nbgrader, chapter, versions[chapter])
    jobs = {h: replace(models[h.chapter], submission=h.path, seed=seed) for h, seed in hand_ins.items()}
    with gradebook.open_gradebook(nbgrader) as book:
        for hand_in, outcome in grade_jobs(jobs, workers, scheduler):
            if counted := counts(hand_in, outcome):
                fingerprint = _fingerprint(versions[counted.chapter], counted.path)
                _write(nbgrader, book, counted, outcome, fingerprint, course.solution(counted.chapter))
            yield hand_in, outcome


# What this process has told a gradebook: a chapter takes a second, and a server grades one notebook at a time.
_synchronised: dict[tuple[str, Chapter], str] = {}


def _synchronise_once(nbgrader: NbGrader, chapter: Chapter, version: str) -> None:
    key = (nbgrader.coursedir.db_url, chapter)
    if _synchronised.get(key) != version:
        synchronise(nbgrader, chapter)
        _synchronised[key] = version


def _models(
    course: Course, nbgrader: NbGrader, hand_ins: Iterable[HandIn], scheduler: str | None, unsafe: bool
) -> dict[Chapter, Job]:
    """For each chapter in order the job that a notebook of it is, but for the notebook.

    Raises:
        CourseError: there is no sandbox.
    """
    settings = GradeChapter(parent=nbgrader)
    settings.unsafe = settings.unsafe or unsafe
    if scheduler is None and not settings.unsafe:
        require_sandbox()
    chapters = sorted({h.chapter for h in hand_ins}, key=lambda chapter: chapter.folder)
    return {c: settings.job(course.solution(c), course.solution(c)) for c in chapters}


def outdated(course: Course, nbgrader: NbGrader) -> list[HandIn]:
    """The hand-ins whose marks `autograder grade` would not keep: new or changed ones, and those whose checks changed.

    Each is looked for where it lay when it was graded; new ones where `nbgrader_config.py` says.
    """
    settings = GradeChapter(parent=nbgrader)
    found = []
    for chapter in course.chapters:
        graded = {student: receipt.submitted for student, receipt in read_receipts(nbgrader, chapter)}
        version = _version(course, chapter, settings.job(course.solution(chapter), course.solution(chapter)))
        default = str(submitted_folder(nbgrader).resolve())
        for folder in filter(Path.is_dir, map(Path, sorted({default, *filter(None, graded.values())}))):
            for one in find_hand_ins(folder, [chapter]):
                here = (graded.get(one.student) or default) == str(folder)
                judged = _digest(one.refused.encode()) if one.refused else _fingerprint(version, one.path)
                if here and not _kept(nbgrader, one, judged):
                    found.append(one)
    return found


def _refuse(course: Course, nbgrader: NbGrader, book: Gradebook, hand_in: HandIn) -> Marked:
    outcome = ungraded(course.solution(hand_in.chapter), hand_in.refused)
    if plain(hand_in.student) != hand_in.student:  # a name that no gradebook and no page should have to show
        return Marked(hand_in.student, hand_in.chapter, outcome.items, hand_in.refused)
    fingerprint = _digest(hand_in.refused.encode())
    return _write(nbgrader, book, hand_in, outcome, fingerprint, course.solution(hand_in.chapter))


def require_sandbox() -> None:
    """See to it that there is a sandbox, before any worker is started and without importing torch.

    Raises:
        CourseError: there is none.
    """
    if missing := why_not_sandboxed():
        raise CourseError(refusal(missing))


def _judging() -> list[Path]:
    """The modules of this package that have a part in a verdict."""
    package = Path(__file__).parents[1]
    modules = [*package.glob("*.py"), *package.glob("isolation/*.py"), *package.glob("wire/*.py")]
    return sorted(module for module in modules if module.stem not in _NOT_JUDGING)


def _version(course: Course, chapter: Chapter, model: Job) -> str:
    """A fingerprint of all that a mark depends on besides the submission: code that judges, checks, torch itself."""
    checks = course.root / "checks"
    tests = [
        *sorted(checks.glob("*.py")),
        *(checks / chapter.module / f"{name}.py" for name in ("mistakes", "visible", "hidden")),
    ]
    files = [*_judging(), *tests, course.solution(chapter)]
    parts = [file.read_bytes() for file in files if file.is_file()]
    used = [sys.version, *(version(name) for name in ("torch", "numpy"))]
    return _digest(*parts, repr((model.modules, model.limits, model.run_cells, model.pay_once, used)).encode())


def _fingerprint(version: str, path: Path) -> str:
    content = b"no plain file"
    if is_plain_file(path):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
    return _digest(version.encode(), content)


def _digest(*parts: bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def _kept(nbgrader: NbGrader, hand_in: HandIn, fingerprint: str) -> Marked | None:
    """What an earlier run came to, if nothing has changed since."""
    folder = folder_of(nbgrader, hand_in.student, hand_in.chapter)
    receipt = read_receipt(folder)
    if (
        receipt is None
        or receipt.in_doubt
        or receipt.fingerprint != fingerprint
        or not (folder / hand_in.path.name).is_file()
    ):
        return None
    return Marked(hand_in.student, hand_in.chapter, receipt.items, receipt.ungradable)


def _write(
    nbgrader: NbGrader, book: Gradebook, hand_in: HandIn, outcome: Outcome, fingerprint: str, solution: Path
) -> Marked:
    notebook = nbformat.reads(outcome.notebook, as_version=4)
    handed_in_at = None if hand_in.refused else read_timestamp(hand_in.path.parent)
    folder = folder_of(nbgrader, hand_in.student, hand_in.chapter)
    forget_time = handed_in_at is None and read_timestamp(folder) is not None
    faulty = {item.grade_id for item in outcome.items if item.status == Status.COURSE_FAULT}
    former = read_receipt(folder)
    marked = _marked_for(notebook, solution)
    unchanged = {name for name, digest in marked.items() if former and former.marked.get(name) == digest}
    how = (handed_in_at, forget_time, faulty, unchanged, bool(outcome.ungradable))
    marks = gradebook.record(book, hand_in.student, hand_in.chapter, notebook, *how)
    changed = {name: (was, now) for name, (was, now) in marks.items() if was is not None and was != now}
    items = [replace(i, points=marks[i.grade_id][1]) if i.grade_id in faulty else i for i in outcome.items]
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / hand_in.path.name, nbformat.writes(notebook).encode())
    if handed_in_at:
        replace_file(folder / "timestamp.txt", handed_in_at.encode())
    elif forget_time:
        (folder / "timestamp.txt").unlink()
    told = (outcome.ungradable, outcome.seed, fingerprint, outcome.in_doubt, str(hand_in.path.parents[2]))
    write_receipt(folder, Receipt(items, _answers(notebook), *told, marked))
    return Marked(hand_in.student, hand_in.chapter, items, outcome.ungradable, outcome.in_doubt, changed)


def _marked_for(notebook: NotebookNode, solution: Path) -> dict[str, str]:
    """A digest of what each mark is given for: the answer, its points, and of an answer in words the rubric."""
    rubrics = _rubrics(solution, solution.stat().st_mtime_ns)
    texts = {flags_of(cell).get("grade_id"): cell.source for cell in notebook.cells}
    found = {}
    for cell in notebook.cells:
        about = flags_of(cell)
        if about.get("grade") or about.get("task"):
            name = about["grade_id"]
            answer = texts.get(exercise_of(name), "") if cell.cell_type == "code" else cell.source
            found[name] = _digest(answer.encode(), rubrics.get(name, "").encode(), str(about.get("points")).encode())
    return found


@lru_cache(maxsize=32)
def _rubrics(solution: Path, changed: int) -> dict[str, str]:
    """What the course says of each answer in words, by name; `changed` is when the file was."""
    cells = nbformat.read(solution, as_version=4).cells
    return {flags_of(cell).get("grade_id", ""): cell.source for cell in cells if cell.cell_type == "markdown"}


def _answers(notebook: NotebookNode) -> dict[str, str]:
    """The text of each answer in code: kept beside the verdicts, so that a class is looked through in seconds."""
    cells = [(cell, flags_of(cell)) for cell in notebook.cells if cell.cell_type == "code"]
    return {about["grade_id"]: cell.source[:_LONGEST_ANSWER] for cell, about in cells if about.get("solution")}
