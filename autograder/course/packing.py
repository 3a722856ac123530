"""`autograder hand-in`: a notebook looked over, checked and packed under its student's name, with a receipt to keep.

The archive holds the notebook and a manifest: who packed it, when, its SHA-256, what the visible checks came to.
Anybody can write a manifest, so that nobody is marked by it: `collect` prints what it says and whether it holds.
"""

import hashlib
import html
import io
import json
import os
import platform
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console

from autograder.cells import exercise_of, flags_of
from autograder.course.check import check_job, count_passing, mend, original
from autograder.course.curriculum import Chapter, Course, CourseError, find_course
from autograder.course.files import replace_file
from autograder.course.owner import is_folder_name
from autograder.job import Outcome, grade_job
from autograder.plain import plain
from autograder.source import functions_in
from autograder.submission import Repaired, SubmissionError, TooLarge, lay_over, read_notebook

MANIFEST = "manifest.json"
# Beside notebooks/: packs, a receipt of the same name for each, and what the student called themselves last time.
HANDED_IN = "handed-in"
_NAME = ".name"
_LONGEST_MANIFEST = 100_000


@dataclass(frozen=True)
class Packed:
    """What was packed: the archive, its receipt, and what the student should know before sending it."""

    archive: Path
    receipt: str
    notes: list[str]


def run(course: Course, chapter: Chapter, *, name: str | None, repair: bool) -> int:
    """Look a notebook over, check it, pack it, and print the receipt.

    Args:
        course: a student's copy, or the repository.
        chapter: what is handed in.
        name: of the student; the one of last time by default.
        repair: first mend what is wrong with the notebook itself.

    Returns:
        The exit status, 0.

    Raises:
        CourseError: no name, no notebook that can be read, or one that is being changed.
    """
    console = Console(soft_wrap=True)
    packed = prepare(course, chapter, known_name(course, chapter, name), console, repair=repair)
    told = "Nothing was sent: upload the file where your instructor asks for it. This receipt lies beside it."
    console.print(f"{packed.receipt}{told}", markup=False, highlight=False)
    return 0


def prepare(course: Course, chapter: Chapter, name: str, console: Console, *, repair: bool) -> Packed:
    """Look a notebook over, check it and pack it; what the student should know of it is printed.

    Raises:
        CourseError: there is no notebook that can be read, or it is being changed, or nothing can be written.
    """
    if repair:
        mend(course, chapter, console)
    try:
        packed = pack(course, chapter, name)
    except OSError as error:
        raise CourseError(f"it cannot be packed: {error.strerror}: {error.filename}") from error
    for note in packed.notes:
        console.print(f"Note: {note}.", markup=False, highlight=False)
    return packed


def pack(course: Course, chapter: Chapter, name: str) -> Packed:
    """Check a notebook and pack what was checked, byte for byte.

    Args:
        course: a student's copy, or the repository.
        chapter: what is handed in.
        name: of the student.

    Raises:
        CourseError: the notebook cannot be read, or changed meanwhile.
        OSError: the archive cannot be written.
    """
    path = course.notebook(chapter)
    try:
        content = path.read_bytes() if path.is_file() else b""
        notes = look_over(course, chapter, content)
    except SubmissionError as error:
        mends = "does that too" if isinstance(error, TooLarge) else "puts it back as it was handed out"
        raise CourseError(f"{chapter.folder}: {error}; `autograder check --repair {chapter.number}` {mends}") from error
    outcome = grade_job(check_job(course, chapter))
    if not path.is_file() or path.read_bytes() != content:
        raise CourseError(f"{chapter.folder} changed while it was checked: save it, then hand in again")
    now = datetime.now(UTC).replace(microsecond=0)
    inside = f"{name}/{chapter.folder}"
    manifest = {
        "student": name,
        "chapter": chapter.folder,
        "packed_at": now.isoformat(),
        "files": {f"{chapter.module}.ipynb": hashlib.sha256(content).hexdigest()},
        "visible_checks": {item.grade_id: str(item.status) for item in outcome.items},
        "notes": notes,
        "versions": _versions(),
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
        packing.writestr(f"{inside}/{chapter.module}.ipynb", content)
        packing.writestr(f"{inside}/{MANIFEST}", json.dumps(manifest, indent=1, ensure_ascii=False))
    folder = course.root / HANDED_IN
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}-{chapter.folder}-{now:%Y%m%d-%H%M%S}.zip"
    replace_file(file, archive.getvalue())
    receipt = _receipt(chapter, name, now, outcome, file, archive.getvalue())
    replace_file(file.with_suffix(".txt"), receipt.encode())
    replace_file(folder / _NAME, name.encode())
    return Packed(file, receipt, notes)


def look_over(course: Course, chapter: Chapter, content: bytes) -> list[str]:
    """What a student should know of a notebook before handing it in: damage, how it was run, no answer.

    Args:
        course: a student's copy, or the repository.
        chapter: whose notebook it is.
        content: of the notebook's file.

    Raises:
        SubmissionError: it cannot be read.
    """
    laid = lay_over(read_notebook(course.notebook(chapter)), nbformat.read(original(course, chapter), as_version=4))
    notes = []
    if laid.problems:
        notes.append(
            f"the notebook is not intact ({'; '.join(laid.problems[:3])}); this costs no marks, and --repair mends it"
        )
    answers = [part for part in laid.parts if part.role in ("solution", "written") and not part.missing]
    left = [part.name for part in answers if part.untouched]
    if amiss := _amiss_in_running(laid, content, left):
        notes.append(f"{', and '.join(amiss)}: restart the kernel, run all cells, see that it still works, save")
    if left:
        notes.append(f"{', '.join(left)}: as handed out, without an answer of yours")
    return notes


def _amiss_in_running(laid: Repaired, content: bytes, left: list[str]) -> list[str]:
    """What the numbers beside a notebook's code cells tell: run out of order, or never.

    A cell that does nothing needs no run, nor do those of an exercise that is left as it was handed out.
    """
    cells = [cell for cell in json.loads(content.decode("utf-8-sig"))["cells"] if cell.get("cell_type") == "code"]
    ran = [cell["execution_count"] for cell in cells if isinstance(cell.get("execution_count"), int)]
    amiss = ["cells were run out of order"] * (ran != sorted(ran))
    idle = {part.cell.source.strip() for part in laid.parts if part.name in left or exercise_of(part.name) in left}
    needed = [cell for cell in cells if _has_code(cell) and _source(cell).strip() not in idle]
    never = [_source(cell).strip() for cell in needed if not isinstance(cell.get("execution_count"), int)]
    if never:
        own = [part.name for part in laid.parts if part.role == "solution" and part.cell.source.strip() in never]
        told = f" (of your answers: {', '.join(own)})" if own else ""
        amiss.append(f"{len(never)} of {len(needed)} code cells ha{'ve' if len(never) > 1 else 's'} not been run{told}")
    return amiss


def _has_code(cell: dict[str, Any]) -> bool:
    """Whether there is anything to run: more than comments, and other than the hand-in that is under way."""
    lines = [line.strip() for line in _source(cell).splitlines()]
    return any(line and not line.startswith("#") for line in lines) and "hand_in(" not in _source(cell)


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else str(source)


def known_name(course: Course, chapter: Chapter, name: str | None, otherwise: Callable[[], str] | None = None) -> str:
    """What a student is called: as they say now, or said last time.

    Args:
        course: a student's copy, or the repository.
        chapter: what is handed in.
        name: what they say now.
        otherwise: where to ask if they never said.

    Raises:
        CourseError: nobody knows, or no folder can be called so.
    """
    file = course.root / HANDED_IN / _NAME
    if name is None and file.is_file():
        name = file.read_text(encoding="utf-8", errors="replace")
    if name is None and otherwise:
        name = otherwise()
    if name is None:
        raise CourseError(f'whose is it? Say so once: autograder hand-in {chapter.number} --name "Ada Lovelace"')
    if not is_folder_name(name.strip()):
        raise CourseError(f"{plain(name)[:80]!r} cannot be the name of a folder: use letters, digits and blanks")
    return name.strip()


def _versions() -> dict[str, str]:
    told = {"python": platform.python_version(), "system": platform.platform()}
    for package in ("torch", "numpy", "nbgrader"):
        try:
            told[package] = version(package)
        except PackageNotFoundError:
            told[package] = "not installed"
    return told


def _receipt(chapter: Chapter, name: str, now: datetime, outcome: Outcome, file: Path, content: bytes) -> str:
    passing = count_passing({item.grade_id: item.status for item in outcome.items})
    here = now.astimezone()
    return (
        f"{chapter.folder}, packed for {name} on {here:%Y-%m-%d at %H:%M:%S} {here.tzname()}\n"
        f"{passing} the checks that are here; written answers are marked by hand\n"
        f"hand in:  {file}\n"
        f"SHA-256:  {hashlib.sha256(content).hexdigest()}\n"
    )


def is_kept_beside_packs(name: str) -> bool:
    """Whether a file of `handed-in/` is a receipt or the student's name, and so nothing that is handed in."""
    return name == _NAME or name.endswith(".txt")


def read_manifest(content: bytes, notebook: bytes, name: str, chapter: Chapter) -> str:
    """What a student's manifest says, in a line, and where it does not hold; nothing is decided by it.

    Args:
        content: of the manifest.
        notebook: what came with it.
        name: what the notebook's file is called.
        chapter: which one it was taken for.
    """
    try:
        told = json.loads(content[:_LONGEST_MANIFEST])
        digest, student, folder = (told["files"][name], told["student"], told["chapter"])
        when = datetime.fromisoformat(told["packed_at"]).astimezone(UTC)
        passing = count_passing(told["visible_checks"])
        said = f"packed {when:%Y-%m-%d %H:%M} UTC by {plain(str(student))[:80]}, {passing} their visible checks"
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return "its manifest cannot be read"
    if digest != hashlib.sha256(notebook).hexdigest():
        return f"its manifest is of another notebook ({said})"
    if folder != chapter.folder:
        return f"its manifest is of another chapter, {plain(str(folder))[:80]} ({said})"
    return f"its manifest says: {said}"


def hand_in(
    name: str | None = None, chapter: str | None = None, *, repair: bool = False, server: str | None = None
) -> None:
    """Hand in the notebook that this is called from, in one line; the card is the receipt.

    Args:
        name: of the student; the one of last time by default.
        chapter: its number; that of the working directory by default.
        repair: first mend what is wrong with the notebook itself.
        server: the address of the class's server, to send it there; the one in AUTOGRADER_SERVER by default.
    """
    from IPython import get_ipython
    from IPython.display import display

    course = find_course()
    here = course.find(chapter or Path.cwd().name)
    shell = get_ipython()
    unsaved = _unsaved(course, here, list(shell.history_manager.input_hist_raw)) if shell else []
    if unsaved:
        told, done = (
            f"{', '.join(unsaved)} changed since the notebook was saved: save it, then run this again.\n",
            False,
        )
    else:
        options = [f"--name={name}"] * bool(name) + ["--repair"] * repair + [f"--server={server}"] * bool(server)
        command = [sys.executable, "-c", "from autograder.cli import main; main()", "hand-in", here.folder, *options]
        # A kernel tells what it starts to write in colours; a card shows none.
        environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"} | {"NO_COLOR": "1"}
        ran = subprocess.run(command, cwd=course.root, capture_output=True, text=True, env=environment)
        told, done = plain_lines(ran.stdout + ran.stderr), ran.returncode == 0
    colour = "#1a7f37" if done else "#b35900"
    style = f"border-left:.4em solid {colour};padding-left:.6em;white-space:pre-wrap;word-break:normal"
    page = f'<pre role="status" style="{style};overflow-wrap:anywhere">{html.escape(told)}</pre>'
    display({"text/html": page, "text/plain": told}, raw=True)


def plain_lines(text: str) -> str:
    """Lines without what steers a terminal."""
    return "\n".join(plain(line) for line in text.split("\n"))


def _unsaved(course: Course, chapter: Chapter, ran: list[str]) -> list[str]:
    """The answers in code that ran last with another text than the file has; a kernel knows nothing of those in words.

    A cell that ran is a version of an answer if it defines one of its functions or classes, and is no other cell of the
    file.
    """
    laid = lay_over(read_notebook(course.notebook(chapter)), nbformat.read(original(course, chapter), as_version=4))
    content = json.loads(course.notebook(chapter).read_bytes().decode("utf-8-sig"))
    saved = {_source(cell).strip() for cell in content["cells"]}
    changed = []
    for part in laid.parts:
        if part.role != "solution" or not flags_of(part.cell):
            continue
        text, names = part.cell.source.strip(), functions_in(part.cell.source)
        others = saved - {text}
        versions = [one.strip() for one in ran if names & functions_in(one) and one.strip() not in others]
        if versions and versions[-1] != text:
            changed.append(part.name)
    return changed
