"""What comes from where students hand in: an LMS's download, a zip or a folder, put where `grade` looks.

Moodle's, Canvas's and plain layouts are told apart by their names. Nothing is unpacked: notebooks are read out of an
archive one by one, their number and size capped, and written under names made here, so that no name in an archive leads
anywhere else. A notebook that is replaced is kept. What could not be matched is named.
"""

import csv
import io
import json
import os
import re
import stat
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from nbgrader import utils
from nbgrader.api import Gradebook

from autograder.course import gradebook
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.files import replace_file
from autograder.course.gradebook import is_plain_file, read_timestamp
from autograder.plain import plain

SOMETHING_LEFT = 3
_MOST_FILES = 100_000
_MOST_BYTES = 20 * 2**20
_MOST_BYTES_TOGETHER = 4 * 2**30
_DEEPEST_ZIP = 2
# What systems and JupyterLab leave beside a hand-in.
_LEFT_BEHIND = {"__MACOSX", ".DS_Store", ".ipynb_checkpoints", "timestamp.txt", "Thumbs.db", "desktop.ini"}
_MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)")
_CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<id>\d+)_\d+_(?P<file>.+)")
# What browsers, Canvas and JupyterLab add to the name of a second copy.
_COPY = re.compile(r"([ _-]*\(\d+\)|-\d+|[ _-]+copy\d*)$", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """A file of a download: where it lay, and how to come by it."""

    place: PurePosixPath
    content: bytes
    handed_in_at: datetime | None = None


@dataclass(frozen=True)
class Taken:
    """A notebook that was put where `grade` looks; `how` is new, replaces an earlier one, or unchanged."""

    student: str
    chapter: Chapter
    place: PurePosixPath
    how: str


@dataclass(frozen=True)
class Left:
    """What was not taken, and why."""

    place: PurePosixPath
    why: str


def run(course: Course, download: Path, *, submitted: Path | None, groups: Path | None) -> int:
    """Collect a download and say what was taken for whom.

    Args:
        course: the course, with its solutions.
        download: a folder, or a zip archive.
        submitted: where hand-ins are put; the folder that `nbgrader_config.py` names by default.
        groups: a table of groups and their students.

    Returns:
        The exit status: 3 when something was left.
    """
    nbgrader = gradebook.configure(course)
    submitted = submitted or Path(nbgrader.coursedir.format_path(nbgrader.coursedir.submitted_directory, ".", "."))
    with gradebook.open_gradebook(nbgrader) as book:
        known = names_in(book)
    taken, left = collect(
        download, Path(os.path.normpath(submitted)), course.chapters, known, read_groups(groups) if groups else None
    )
    for one in taken:
        print(f"{plain(one.student)}, {one.chapter.folder}: {one.how}, from {plain(str(one.place))}")
    print(f"{len(taken)} notebooks of {len({one.student for one in taken})} students are in {submitted}")
    for one in left:
        print(f"autograder: not taken: {plain(str(one.place))}: {one.why}", file=sys.stderr)
    return SOMETHING_LEFT if left else 0


def collect(
    download: Path,
    submitted: Path,
    chapters: list[Chapter],
    known: Iterable[tuple[str, str]] = (),
    groups: dict[str, list[str]] | None = None,
) -> tuple[list[Taken], list[Left]]:
    """Put the notebooks of a download where `grade` looks.

    Args:
        download: a folder, or a zip archive.
        submitted: holds a folder for each student; what a new hand-in replaces is moved to `earlier/` beside it.
        chapters: of the course.
        known: what an LMS calls a student (name or number), and the student's folder.
        groups: for each group's name its students; a folder named `ada+ben` is a group without being listed.

    Returns:
        What was taken, and what was not.

    Raises:
        CourseError: there is no such download, or it is no archive.
    """
    left: list[Left] = []
    called = {_key(name): student for name, student in known}
    newest: dict[tuple[str, str], tuple[Found, Chapter]] = {}
    older: list[tuple[str, Chapter, Found]] = []
    for found in _files(download, left):
        who, rest = _who(found.place)
        chapter = match_chapter(rest, found.content, chapters) if who else None
        if not who or chapter is None:
            why = "no chapter has this name, and none has these exercises" if who else "it lies in no student's folder"
            left.append(Left(found.place, why))
            continue
        for student in _students(who, called, groups or {}):
            if not _is_name(student):
                left.append(Left(found.place, f"{plain(student)!r} cannot be the name of a folder"))
                continue
            key, now = (student, chapter.folder), (found, chapter)
            if key in newest:
                now, before = sorted((newest[key], now), key=lambda pair: _age(pair[0]), reverse=True)
                older.append((student, chapter, before[0]))
                left.append(Left(before[0].place, f"{now[0].place} is newer; this one is kept in earlier/"))
            newest[key] = now
    earlier = submitted.parent / "earlier"
    for student, chapter, found in older:
        _keep(earlier, student, chapter, found.content)
    taken = []
    for (student, _), (found, chapter) in sorted(newest.items(), key=lambda item: item[0]):
        taken.append(Taken(student, chapter, found.place, _put(submitted, earlier, student, chapter, found)))
    return taken, left


def _age(found: Found) -> tuple[float, int]:
    when = found.handed_in_at.timestamp() if found.handed_in_at else 0.0
    copy = re.search(r"(\d+)\)?$", found.place.stem)
    return when, int(copy[1]) if copy else 0


def _files(download: Path, left: list[Left]) -> Iterator[Found]:
    """The notebooks of a download, those in archives inside it too."""
    if download.is_dir():
        files = _in_folder(download, left)
    elif is_plain_file(download):
        files = _in_zip(io.BytesIO(download.read_bytes()), PurePosixPath(), left)
    else:
        raise CourseError(f"there is no folder or archive {download}")
    count = together = 0
    for found in files:
        count, together = count + 1, together + len(found.content)
        if count > _MOST_FILES or together > _MOST_BYTES_TOGETHER:
            raise CourseError(f"{download} holds more than {_MOST_FILES} notebooks or 4 GiB: nothing was taken")
        yield found


def _in_folder(folder: Path, left: list[Left]) -> Iterator[Found]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_BEHIND)
        here = Path(where)
        for name in [*folders, *sorted(names)]:
            path, place = here / name, PurePosixPath((here / name).relative_to(folder).as_posix())
            if path.is_symlink():
                left.append(Left(place, "a symbolic link, which is not followed"))
            elif name in names and name not in _LEFT_BEHIND:
                if not is_plain_file(path) or path.stat().st_size > _MOST_BYTES:
                    left.append(Left(place, f"no plain file of at most {_MOST_BYTES >> 20} MB"))
                    continue
                time = _told_time(path.with_name("timestamp.txt"))
                yield from _open(Found(place, path.read_bytes(), time), left, 1)


def _told_time(file: Path) -> datetime | None:
    told = read_timestamp(file.parent)
    return utils.parse_utc(told).replace(tzinfo=UTC) if told else None


def _in_zip(archive: io.BytesIO, inside: PurePosixPath, left: list[Left], depth: int = 0) -> Iterator[Found]:
    try:
        opened = zipfile.ZipFile(archive)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        if depth == 0:
            raise CourseError(f"this is no zip archive: {error}") from error
        left.append(Left(inside, "no zip archive, whatever it is called"))
        return
    with opened:
        for info in opened.infolist()[: _MOST_FILES + 1]:
            place = inside / info.filename.replace("\\", "/")
            if info.is_dir() or _LEFT_BEHIND & set(place.parts):
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                left.append(Left(place, "a symbolic link, which is not followed"))
                continue
            try:
                with opened.open(info) as file:
                    content = file.read(_MOST_BYTES + 1)
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError, ValueError) as error:
                left.append(Left(place, f"it cannot be read: {error}"))
                continue
            if len(content) > _MOST_BYTES:
                left.append(Left(place, f"unpacked it is larger than {_MOST_BYTES >> 20} MB"))
                continue
            yield from _open(Found(place, content, _zip_time(info)), left, depth + 1)


def _zip_time(info: zipfile.ZipInfo) -> datetime | None:
    """When a file of an archive was last changed, by this machine's clock; archives tell no time zone."""
    try:
        return datetime(*info.date_time).astimezone(UTC) if info.date_time[0] > 1980 else None
    except ValueError:
        return None


def _open(found: Found, left: list[Left], depth: int) -> Iterator[Found]:
    ending = found.place.suffix.lower()
    if ending == ".ipynb":
        yield found
    elif ending == ".zip" and depth <= _DEEPEST_ZIP:
        for inner in _in_zip(io.BytesIO(found.content), found.place, left, depth):
            yield replace(inner, handed_in_at=found.handed_in_at or inner.handed_in_at)
    else:
        left.append(Left(found.place, "not a notebook" if ending != ".zip" else "an archive too deep in archives"))


def _who(place: PurePosixPath) -> tuple[tuple[str, ...], PurePosixPath]:
    """What the first part of a path says of who handed in, by name or number, and the path below it."""
    first, *rest = place.parts
    if moodle := _MOODLE.fullmatch(first):
        below = PurePosixPath(*([moodle["file"]] if moodle["file"] else []), *rest)
        return (moodle["name"], moodle["id"]), below
    if not rest and (canvas := _CANVAS.fullmatch(first)):
        return (canvas["name"], canvas["id"]), PurePosixPath(canvas["file"])
    if canvas := _CANVAS.fullmatch(first):
        return (canvas["name"], canvas["id"]), PurePosixPath(canvas["file"], *rest)
    return ((first,), PurePosixPath(*rest)) if rest else ((), place)


def _students(who: tuple[str, ...], called: dict[str, str], groups: dict[str, list[str]]) -> list[str]:
    if who[0] in groups:
        return groups[who[0]]
    for name in reversed(who):  # a number before a name
        if _key(name) in called:
            return [called[_key(name)]]
    return who[0].split("+") if "+" in who[0].strip("+") else [who[0]]


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _is_name(student: str) -> bool:
    return bool(student) and student == plain(student) and student[0] != "." and not set(student) & set('/\\:*?"<>|')


def match_chapter(path: PurePosixPath, content: bytes, chapters: Iterable[Chapter]) -> Chapter | None:
    """The chapter that a notebook is, by its name, by that of a folder it lies in, or by its exercises.

    Args:
        path: below the student's folder.
        content: of the file.
        chapters: of the course.
    """
    for part in (PurePosixPath(path.name).stem, *reversed(path.parts[:-1])):
        for name in (part, _COPY.sub("", PurePosixPath(part).stem if part.endswith(".zip") else part)):
            for chapter in chapters:
                if _key(name) in (_key(chapter.module), _key(chapter.folder), chapter.number):
                    return chapter
    names = _grade_ids(content)
    best = max(chapters, key=lambda c: len(names & {e.name for e in c.exercises}), default=None)
    return best if best and names & {e.name for e in best.exercises} else None


def _grade_ids(content: bytes) -> set[str]:
    try:
        cells = json.loads(content)["cells"]
        return {cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if "nbgrader" in cell.get("metadata", {})}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()


def _put(submitted: Path, earlier: Path, student: str, chapter: Chapter, found: Found) -> str:
    folder = submitted / student / chapter.folder
    if any(os.path.islink(path) for path in (folder, folder.parent)):
        raise CourseError(f"{folder} is a symbolic link, or lies in one: nothing is written there")
    target = folder / f"{chapter.module}.ipynb"
    how = "new"
    if os.path.lexists(target):
        if not is_plain_file(target):
            raise CourseError(f"{target} is no plain file: move it away")
        before = target.read_bytes()
        if before == found.content:
            return "unchanged"
        _keep(earlier, student, chapter, before)
        how = "replaces an earlier one"
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(target, found.content)
    if found.handed_in_at:
        replace_file(folder / "timestamp.txt", f"{found.handed_in_at:%Y-%m-%d %H:%M:%S} UTC\n".encode())
    else:
        (folder / "timestamp.txt").unlink(missing_ok=True)
    return how


def _keep(earlier: Path, student: str, chapter: Chapter, content: bytes) -> None:
    folder = earlier / student / chapter.folder
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 + len(list(folder.glob("*.ipynb")))
    replace_file(folder / f"{chapter.module}_{number:03}.ipynb", content)


def names_in(book: Gradebook) -> list[tuple[str, str]]:
    """What the gradebook knows its students by: full names both ways round, the LMS's number, the e-mail address."""
    known = []
    for student in book.students:
        first, last = student.first_name or "", student.last_name or ""
        names = [f"{first} {last}", f"{last} {first}"] if first and last else []
        known += [(name, student.id) for name in (*names, student.lms_user_id, student.email) if name]
    return known


def read_groups(file: Path) -> dict[str, list[str]]:
    """Groups as a table of two columns, the group's name and a student, in a row for each student.

    Raises:
        CourseError: it cannot be read, or a row has other than two columns.
    """
    groups: dict[str, list[str]] = {}
    try:
        with file.open(newline="", encoding="utf-8-sig") as table:
            for row in csv.reader(table):
                group, student = row
                groups.setdefault(group.strip(), []).append(student.strip())
    except (OSError, ValueError) as error:
        raise CourseError(f"{file} should hold two columns, group and student: {error}") from error
    return groups


def strays(submitted: Path, chapters: list[Chapter], student: str | None = None) -> list[Left]:
    """Notebooks and archives under `submitted` that `grade` does not take for anybody's chapter, and what to do.

    Args:
        submitted: the folder that holds a folder for each student.
        chapters: of the course, whichever are graded now.
        student: only this student's.
    """
    wanted = {chapter.folder: f"{chapter.module}.ipynb" for chapter in chapters}
    found = []
    for where, folders, names in os.walk(submitted):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_BEHIND)
        place = PurePosixPath(Path(where).relative_to(submitted).as_posix())
        parts = place.parts
        if len(parts) and student not in (None, parts[0]):
            folders[:] = []
            continue
        for name in sorted(names):
            ending = PurePosixPath(name).suffix.lower()
            if ending not in (".ipynb", ".zip") or name.startswith("."):
                continue
            in_chapter = len(parts) > 1 and parts[1] in wanted
            if not parts:
                why = "it lies in no student's folder"
                if student:
                    continue
            elif not in_chapter:
                why = "it should lie in STUDENT/CHAPTER/, the folder named as in notebooks/"
            elif len(parts) > 2 or (Path(where) / wanted[parts[1]]).exists():
                continue  # notes or a copy beside the notebook that is graded
            else:
                why = f"it should be called {wanted[parts[1]]}"
            found.append(Left(place / name, why))
    return found
