"""What students get: `notebooks/`, generated from `solutions/` by nbgrader, and the proof that nothing leaks."""

import importlib
import importlib.util
import os
import re
import subprocess
import time
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from rich.console import Console

from autograder.cells import CODE_STUB, TEXT_STUB, exercise_of, flags_of
from autograder.course import gradebook
from autograder.course.curriculum import REFERENCE, Chapter, Course, CourseError
from autograder.course.files import KEPT_ASIDE, replace_file
from autograder.course.generate import generate, scratch
from autograder.source import definitions

# A line of a solution shorter than this may well stand elsewhere: `return x`, `else:`.
_TELLING = 16
_STUDENTS_PAGE = "docs/student.md"
# What students get beside the notebooks: the environment, the package that checks and imports, data and pictures.
_FOR_STUDENTS = (
    "Makefile",
    "README.md",
    "environment.yml",
    "pyproject.toml",
    "environment",
    "attention_course",
    "autograder",
    "checks",
    "data",
    _STUDENTS_PAGE,
    "images",
    "live",
    "notebooks/10_multi30k_translator/translator.*",  # the first chapters show it at work
)
_NOT_FOR_STUDENTS = ("environment/lock.py", "environment/book.lock", "environment/test.lock")
# Of the checks, students get the visible ones: the others tell answers.
_CHECKS_FOR_STUDENTS = ("__init__.py", "mistakes.py", "visible.py")
_TELLTALES = (".hidden import", "BEGIN HIDDEN")
_MARKERS = (("### BEGIN SOLUTION", "### END SOLUTION"), ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"))


def run(course: Course, chapters: list[Chapter], check: bool) -> int:
    """Release chapters, or check that they are released as they should be.

    Args:
        course: the course, with its solutions.
        chapters: the chapters to release.
        check: change nothing, and name what is wrong.

    Returns:
        The exit status: 1 when something is wrong.
    """
    console = Console(stderr=True, soft_wrap=True)
    app = gradebook.configure(course)
    complaints = []
    with scratch(course.root) as folder:
        for chapter in chapters:
            generate(app, chapter, folder, tell_gradebook=not check)
            source = nbformat.read(course.solution(chapter), as_version=4)
            released = nbformat.read(folder / chapter.folder / f"{chapter.module}.ipynb", as_version=4)
            wrong = [*against_curriculum(chapter, source), *leaks(source, released), *broken_checks(chapter)]
            if check and not wrong:
                wrong = _drift(folder / chapter.folder, course.notebook(chapter).parent)
            complaints += [f"{chapter.folder}: {complaint}" for complaint in wrong]
            if not check and not wrong:
                _replace(folder / chapter.folder, course.notebook(chapter).parent, console)
                console.print(f"{chapter.folder} released")
    if check:
        complaints += _drift_of_curriculum(course)
    else:
        replace_file(
            course.root / "notebooks/curriculum.toml", (course.root / "solutions/curriculum.toml").read_bytes()
        )
    for complaint in complaints:
        console.print(complaint, markup=False, highlight=False)
    return 1 if complaints else 0


def released_text(course: Course, chapter: Chapter) -> str:
    """A chapter's notebook as students would get it now."""
    with scratch() as folder:
        generate(gradebook.configure(course), chapter, folder, tell_gradebook=False)
        return (folder / chapter.folder / f"{chapter.module}.ipynb").read_text(encoding="utf-8")


def broken_checks(chapter: Chapter) -> list[str]:
    """Why a chapter's visible checks do not even import, if they do not: a line with file and line."""
    name = f"checks.{chapter.module}.visible"
    try:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name.startswith(f"{error.name}"):
            return []  # the course keeps its checks elsewhere
        return [f"{name} does not import: {error}"]
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        file, line = getattr(error, "filename", None) or frame.filename, getattr(error, "lineno", None) or frame.lineno
        return [f"{name} does not import: {file}, line {line}: {type(error).__name__}: {error}"]
    return []


def write_zip(course: Course, chapters: list[Chapter], file: Path) -> list[Chapter]:
    """Pack what an instructor hands to students: no hidden test or wrong answer on record is in it, and no solution.

    Earlier chapters that are not handed out are the exception: later ones import from them, so their answers go along.

    Args:
        course: the course, with its solutions; the rest comes from what git tracks, so that no stray file goes along.
        chapters: the chapters to hand out; they are generated anew, and what lies in `notebooks/` stays there.
        file: the archive; an old one is replaced.

    Returns:
        The chapters whose answers are in it.

    Raises:
        CourseError: a chapter gives something away, the course is not in a git repository, or the disk is full.
    """
    tracked = _tracked(course, *_FOR_STUDENTS)
    names = {name for name in tracked if name.as_posix() not in _NOT_FOR_STUDENTS}
    names = {name for name in names if name.parts[0] != "checks" or name.name in _CHECKS_FOR_STUDENTS}
    answered = [c for c in course.chapters if c not in chapters and c.folder < chapters[-1].folder]
    file.parent.mkdir(parents=True, exist_ok=True)
    # The course's own README speaks of what students do not get.
    about = students_page((course.root / _STUDENTS_PAGE).read_text(encoding="utf-8"), chapters, answered)
    pages = {Path("README.md"), Path(_STUDENTS_PAGE)}
    unfinished = file.with_name(f".{file.name}.part")
    try:
        with (
            scratch(course.root) as folder,
            zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name in sorted(names):
                if name in pages:
                    archive.writestr(f"attention/{name}", about)
                elif (course.root / name).is_file():
                    archive.write(course.root / name, Path("attention") / name)
            archive.write(course.root / "solutions/curriculum.toml", "attention/notebooks/curriculum.toml")
            for name, path in _generate(course, chapters, folder):
                if Path("notebooks") / name not in names:
                    archive.write(path, Path("attention/notebooks") / name)
                if name.suffix == ".ipynb":  # a second copy, by which `autograder check` sees what was damaged
                    archive.write(path, Path("attention/originals") / name)
            for chapter in answered:
                answers = nbformat.writes(reference(nbformat.read(course.solution(chapter), as_version=4)))
                archive.writestr(f"attention/notebooks/{REFERENCE}/{chapter.module}.ipynb", answers)
        os.replace(unfinished, file)
    except OSError as error:
        raise CourseError(f"{file} cannot be written: {error.strerror}: {error.filename or file}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return answered


def students_page(text: str, chapters: list[Chapter], answered: list[Chapter]) -> str:
    """The page for students, saying what is in their copy; its example is the first chapter that they get.

    Args:
        text: the page as the course has it, with a chapter 01 as its example.
        chapters: those that are handed out.
        answered: those whose answers go along.
    """
    first = chapters[0]
    example = re.compile(r"\b(notebooks/|autograder (?:check|hand-in) )01(_\w+)?(/\w+\.ipynb)?(?!\w)")

    def renamed(told: re.Match) -> str:
        name = first.folder if told[2] else first.number
        return f"{told[1]}{name}" + (f"/{first.module}.ipynb" if told[3] else "")

    text = example.sub(renamed, text)
    title, _, rest = text.partition("\n\n")
    here = "".join(f"- `notebooks/{c.folder}/{c.module}.ipynb`: {c.title}\n" for c in chapters)
    if answered:
        names = ", ".join(f"{int(c.number)} ({c.title})" for c in answered)
        here += f"\nLater chapters import answers from earlier ones. Those of {names} are in `notebooks/{REFERENCE}`.\n"
    return f"{title}\n\nThis copy holds:\n{here}\n{rest}"


def _tracked(course: Course, *places: str) -> set[Path]:
    """The files below some places of the course that git tracks: none that merely lies there."""
    done = subprocess.run(["git", "ls-files", "-z", *places], cwd=course.root, capture_output=True, text=True)
    if done.returncode or not done.stdout:
        raise CourseError(f"git does not know {course.root}: the archive is made of the files that git tracks")
    return {Path(name) for name in done.stdout.split("\0") if name}


def _generate(course: Course, chapters: list[Chapter], folder: Path) -> Iterator[tuple[Path, Path]]:
    """What chapters release, freshly generated: for each file its name in `notebooks/`, and where it lies.

    nbgrader copies whatever lies beside a chapter's notebook in `solutions/`: of that, only what git tracks is taken.
    """
    app = gradebook.configure(course)
    for chapter in chapters:
        generate(app, chapter, folder, tell_gradebook=False)
        notebook = Path(chapter.folder, f"{chapter.module}.ipynb")
        source, fresh = (nbformat.read(p, as_version=4) for p in (course.solution(chapter), folder / notebook))
        if wrong := leaks(source, fresh):
            raise CourseError(f"{chapter.folder} is not packed, nor anything else: {wrong[0]}")
        tracked = {name.relative_to("solutions") for name in _tracked(course, f"solutions/{chapter.folder}")}
        for name in sorted(tracked | {notebook}):
            if (folder / name).is_file():
                yield name, folder / name


def reference(notebook: NotebookNode) -> NotebookNode:
    """What a chapter defines, for a later one to import: its answers, without text, checks and results.

    Args:
        notebook: the chapter's, from `solutions/`.
    """
    cells = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and not flags_of(cell).get("grade"):
            lines = definitions([cell.source]).strip().splitlines()
            source = "\n".join(line for line in lines if not line.strip().startswith(_MARKERS[0]))
            if source:
                cells.append(nbformat.v4.new_code_cell(source, id=f"cell-{number}"))
    return nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)


def against_curriculum(chapter: Chapter, source: NotebookNode) -> list[str]:
    """How a chapter's cells differ from what the curriculum promises: names, kinds and points.

    Args:
        chapter: as the curriculum has it.
        source: its notebook in `solutions/`.
    """
    solutions, unknown = set(), []
    points: dict[str, float] = {}
    names = {exercise.name: exercise for exercise in chapter.exercises}
    for cell in source.cells:
        about = flags_of(cell)
        if not (about.get("grade") or about.get("solution")):
            continue
        grade_id = about["grade_id"]
        name = grade_id if about["solution"] else exercise_of(grade_id)
        if name not in names:
            unknown.append(grade_id)
            continue
        if about["solution"]:
            solutions.add((name, "written" if about["grade"] else "code"))
        if about["grade"]:
            points[name] = points.get(name, 0) + about["points"]
            if not about["solution"] and f"from checks.{chapter.module}.hidden import" not in cell.source:
                unknown.append(f"{grade_id} (no hidden test from checks.{chapter.module}.hidden)")
    complaints = [f"the curriculum knows no cell {grade_id}" for grade_id in unknown]
    for exercise in chapter.exercises:
        if (exercise.name, exercise.kind) not in solutions:
            complaints.append(f"there is no {exercise.kind} cell with the grade_id {exercise.name}")
        elif points.get(exercise.name, 0) != exercise.points:
            complaints.append(
                f"{exercise.name} is worth {points.get(exercise.name, 0):g} points, "
                f"not the {exercise.points:g} of the curriculum"
            )
    return complaints


def leaks(source: NotebookNode, released: NotebookNode) -> list[str]:
    """What a released notebook gives away: solutions, hidden tests, model answers, results.

    Args:
        source: the notebook in `solutions/`.
        released: the same after release.
    """
    public, secret = _split(source)
    text = "\n".join(cell.source for cell in released.cells)
    lines = {line.strip() for line in text.splitlines()}
    complaints = [f"{name}: the line {line!r} is in the release" for name, line in secret if line in lines - public]
    complaints += [f"the release contains {word!r}" for word in _TELLTALES if word in text]
    for cell in released.cells:
        about = flags_of(cell)
        if cell.get("outputs"):
            complaints.append(f"the cell {cell.id} still has its output")
        if about.get("solution") and cell.cell_type == "code" and "raise NotImplementedError()" not in cell.source:
            complaints.append(f"{about['grade_id']}: nothing is left for the student to do")
    return complaints


def _split(source: NotebookNode) -> tuple[set[str], list[tuple[str, str]]]:
    """The public lines of a source notebook, and its telling secret ones with the cell they are from."""
    public, secret = set(), []
    for cell in source.cells:
        about = flags_of(cell)
        end = None
        for line in map(str.strip, cell.source.splitlines()):
            starts = [stop for start, stop in _MARKERS if line.startswith(start)]
            if starts:
                end = starts[0]
            elif end and line.startswith(end):
                end = None
            elif end or (about.get("solution") and about.get("grade")):
                if len(line) >= _TELLING:
                    secret.append((about.get("grade_id", cell.id), line))
            else:
                public.add(line)
    return public, secret


def _drift(fresh: Path, kept: Path) -> list[str]:
    names = {p.relative_to(root) for root in (fresh, kept) for p in root.rglob("*") if p.is_file()}
    names = {name for name in names if ".ipynb_checkpoints" not in name.parts and name.suffix != KEPT_ASIDE}
    return [
        f"notebooks/{kept.name}/{name} is not what solutions/ gives: run `autograder release {kept.name}`"
        for name in sorted(names)
        if not _same(fresh / name, kept / name)
    ]


def _drift_of_curriculum(course: Course) -> list[str]:
    if _same(course.root / "solutions/curriculum.toml", course.root / "notebooks/curriculum.toml"):
        return []
    return ["notebooks/curriculum.toml is not that of solutions/: run `autograder release`"]


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def _replace(fresh: Path, kept: Path, console: Console) -> None:
    """Put the released files into a chapter's folder; what a reader has done there is kept aside, never lost."""
    kept.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    for path in sorted(kept.iterdir()):
        if path.name == ".ipynb_checkpoints" or path.suffix == KEPT_ASIDE:
            continue
        released = fresh / path.name
        if not released.is_file() or (not _same(released, path) and _has_work(path)):
            aside = path.with_name(f"{path.name}.{stamp}{KEPT_ASIDE}")
            path.rename(aside)
            console.print(f"{kept.name}: kept aside as {aside.name}", markup=False)
    for released in fresh.iterdir():
        os.replace(released, kept / released.name)


def _has_work(path: Path) -> bool:
    """Whether a notebook holds an answer, so that replacing it would lose something; a damaged one may."""
    if path.suffix != ".ipynb":
        return False
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception:
        return True
    answers = [c for c in notebook.cells if flags_of(c).get("solution")]
    return any(CODE_STUB[-1] not in cell.source and TEXT_STUB[0] not in cell.source for cell in answers)
