"""What comes from where students hand in: an LMS's download, a zip or a folder, put where `grade` looks.

Moodle's, Canvas's and plain layouts are told apart by their names (`owner.py`). Nothing is unpacked: notebooks are read
out of an archive one by one, student by student, number, size and depth capped for each, and written under names made
here, so that no name in an archive leads anywhere else. A notebook that is replaced is kept. What could not be matched
is left out and named, and the class goes on.
"""

import csv
import io
import json
import os
import re
import stat
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath

from nbgrader import utils
from nbgrader.api import Gradebook

from autograder.course import gradebook
from autograder.course.curriculum import REFERENCE, Chapter, Course, CourseError, classes
from autograder.course.files import KEPT_ASIDE, replace_file
from autograder.course.hand_ins import is_plain_file, read_timestamp, submitted_folder
from autograder.course.owner import (
    NOTE,
    Owner,
    Unclear,
    Whose,
    by_pattern,
    known_by,
    may_replace,
    members,
    readings,
    students_of,
    to_type,
    write_note,
)
from autograder.course.packing import HANDED_IN, MANIFEST, is_kept_beside_packs, read_manifest
from autograder.plain import plain
from autograder.submission import SubmissionError, parse

SOMETHING_LEFT = 3
# For each student.
_MOST_FILES = 1_000
_MOST_BYTES = 20 * 2**20  # in one file
_MOST_BYTES_TOGETHER = 100 * 2**20
_DEEPEST_ZIP = 2
_DEEPEST_FOLDER = 20
# What systems and JupyterLab leave beside a hand-in; and what a copy of the whole course holds that is nobody's work.
_LEFT_BEHIND = {"__MACOSX", ".DS_Store", ".ipynb_checkpoints", "timestamp.txt", "Thumbs.db", "desktop.ini", NOTE}
_OF_THE_COURSE = {"originals", REFERENCE}
# What browsers, Canvas and JupyterLab add to the name of a second copy.
_COPY = re.compile(r"([ _-]*\(\d+\)|-\d+|[ _-]+copy\d*)$", re.IGNORECASE)
# When `autograder hand-in` packed, by the student's machine, in the name of the pack.
_PACKED_AT = re.compile(r"-(\d{8}-\d{6})(?!\d).*\.zip$", re.DOTALL)
_PACKED_AS_USUAL = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


@dataclass(frozen=True)
class File:
    """A file of a download as the LMS, or whoever made the download, put it there."""

    place: PurePosixPath
    read: Callable[[], bytes]
    """its content, cut past `_MOST_BYTES`; raises what archives and folders raise"""
    handed_in_at: datetime | None = None


@dataclass(frozen=True)
class HandedIn:
    """A notebook of a download: where it lay, that below the student's folder, and when it came, if that is known."""

    place: PurePosixPath
    below: PurePosixPath
    content: bytes
    handed_in_at: datetime | None = None
    manifest: bytes = b""
    """what the student's own says, beside it; nothing is decided by it"""


@dataclass(frozen=True)
class Taken:
    """A notebook that was put where `grade` looks; `how` is new, replaces an earlier one, or unchanged."""

    student: str
    chapter: Chapter
    place: PurePosixPath
    how: str
    handed_in_at: datetime | None = None
    said: str = ""
    """what the student's manifest says of it, and whether it holds"""
    broken: str = ""
    """why `grade` cannot read it, such as a file that was cut short"""


@dataclass(frozen=True)
class Left:
    """What was not taken, and why."""

    place: PurePosixPath
    why: str


class _TooMuch(Exception):
    """A student handed in more than one may; the message says of what."""


@dataclass
class _Budget:
    """What one student has handed in so far."""

    files: int = 0
    together: int = 0

    def count(self, place: PurePosixPath) -> None:
        self.files += 1
        if self.files > _MOST_FILES:
            raise _TooMuch(f"more than {_MOST_FILES:,} files")
        if len(place.parts) > _DEEPEST_FOLDER:
            raise _TooMuch(f"folders more than {_DEEPEST_FOLDER} deep")

    def weigh(self, content: bytes) -> None:
        self.together += len(content)
        if self.together > _MOST_BYTES_TOGETHER:
            raise _TooMuch(f"more than {_MOST_BYTES_TOGETHER >> 20} MB")


def run(course: Course, download: Path, *, submitted: Path | None, groups: Path | None) -> int:
    """Collect a download and say what was taken for whom.

    Args:
        course: the course, with its solutions.
        download: a folder, or a zip archive.
        submitted: where hand-ins are put; the folder that `nbgrader_config.py` names by default.
        groups: a table of groups and their students.

    Returns:
        The exit status: 3 when something was left.

    Raises:
        CourseError: there is no such download, or nobody in it is in the class.
    """
    nbgrader = gradebook.configure(course)
    submitted = submitted or Path(nbgrader.coursedir.format_path(nbgrader.coursedir.submitted_directory, ".", "."))
    with gradebook.open_gradebook(nbgrader) as book:
        known = names_in(book)
    submitted = Path(os.path.normpath(submitted))
    listed = read_groups(groups) if groups else None
    pattern = nbgrader.config.get("FileNameCollectorPlugin", {}).get("named_regexp", "")
    if known:
        _refuse_strangers(course, download, submitted, known, listed or {}, pattern)
    taken, left = collect(download, submitted, course.chapters, known, listed, pattern)
    for one in taken:
        when = f"{one.handed_in_at:%Y-%m-%d %H:%M} UTC" if one.handed_in_at else "at an unknown time"
        where = f"{plain(one.student)}, {one.chapter.folder}"
        print(f"{where}: {one.how}, handed in {when}, from {_shown(one.place)}{f'; {one.said}' * bool(one.said)}")
    students = {one.student for one in taken}
    counts = f"{len(taken)} notebook{'s' * (len(taken) != 1)} of {len(students)} student{'s' * (len(students) != 1)}"
    print(f"{counts}: in {submitted}")
    for one in taken:
        if one.broken:
            told = f"{one.broken}; it is kept and gets no points: ask for it anew"
            print(f"autograder: {plain(one.student)}, {one.chapter.folder}: {told}", file=sys.stderr)
    if strangers := sorted(students - {student for _, student in known}) if known else []:
        print(
            f"autograder: not in the gradebook so far: {', '.join(map(plain, strangers))}; who is there under another "
            f"name goes into a table for --groups, and the folder made now out of {submitted}",
            file=sys.stderr,
        )
    for other in left:
        print(f"autograder: not taken: {_shown(other.place)}: {other.why}", file=sys.stderr)
    return SOMETHING_LEFT if left else 0


def _refuse_strangers(
    course: Course,
    download: Path,
    submitted: Path,
    known: list[tuple[str, str]],
    groups: dict[str, list[str]],
    pattern: str,
) -> None:
    """Refuse a download of nobody whom the class knows: it is another's, and would become students of this one.

    Raises:
        CourseError: it is such a download.
    """
    files = _by_owner(download, [], pattern)
    people = members(files, known, groups, submitted)
    if not people or any(people.values()):
        return
    here = f"the gradebook of class {course.class_name}" if course.class_name else "this gradebook"
    labels = sorted(plain(owner.label)[:80] for owner in people)
    names = ", ".join(labels[:3]) + ", …" * (len(labels) > 3)
    who = f"none of the {len(people)} people in it is" if len(people) > 1 else "the one person in it is not"
    told = f"{download} was not collected: {who} in {here} ({names})"
    count, other = max(_known_elsewhere(course, files, groups), default=(0, ""))
    if count:
        add = f"class {other}: add --class {other}" if other else "the class without a name: leave out --class"
        raise CourseError(f"{told}; {count} of them {'are' if count > 1 else 'is'} in {add}")
    add = f"autograder students add FILE{f' --class {course.class_name}' * bool(course.class_name)}"
    raise CourseError(
        f"{told}; another class is named with --class; whoever is new enters by `{add}`, and who is there under "
        "another name by a table for --groups"
    )


def _known_elsewhere(
    course: Course, owners: Iterable[Owner], groups: dict[str, list[str]]
) -> Iterator[tuple[int, str]]:
    """For each other class how many of a download's people it knows, and its name."""
    for name in {"", *classes(course.root)} - {course.class_name}:
        try:
            nbgrader = gradebook.configure(replace(course, class_name=name))
        except CourseError:  # a folder that is no class, or one whose gradebook has no place of its own
            continue
        if gradebook.has_students(nbgrader):
            with gradebook.open_gradebook(nbgrader) as book:
                people = members(owners, names_in(book), groups, submitted_folder(nbgrader))
            yield sum(people.values()), name


def _shown(place: PurePosixPath) -> str:
    return plain(str(place))[:300]


def collect(
    download: Path,
    submitted: Path,
    chapters: list[Chapter],
    known: Iterable[tuple[str, str]] = (),
    groups: dict[str, list[str]] | None = None,
    pattern: str = "",
) -> tuple[list[Taken], list[Left]]:
    """Put the notebooks of a download where `grade` looks.

    Args:
        download: a folder, or a zip archive.
        submitted: holds a folder for each student; what a new hand-in replaces is moved to `earlier/` beside it.
        chapters: of the course.
        known: what an LMS calls a student (name or number), and the student's folder.
        groups: for each group's name its students; a folder named `ada+ben` is a group without being listed. A hand-in
            that could not be matched is listed in the same way, by the name and number that the LMS gave it.
        pattern: nbgrader's `FileNameCollectorPlugin.named_regexp`, for names that neither Moodle nor Canvas wrote.

    Returns:
        What was taken, and what was not.

    Raises:
        CourseError: there is no such download, or it is no archive.
    """
    left: list[Left] = []
    files = _by_owner(download, left, pattern)
    whose = students_of(files, known_by(known), groups or {}, submitted)
    certain = {owner for owner, one in whose.items() if isinstance(one, Whose) and one.certain}
    owners: dict[str, list[Owner]] = defaultdict(list)
    for owner, one in whose.items():
        if isinstance(one, Unclear):
            left += [Left(file.place, one.why) for file, _ in files[owner]]
        else:
            for student in one.students:
                owners[student].append(owner)
    taken: list[Taken] = []
    for student in sorted(owners):  # one after the other: what all have handed in may not fit into memory
        of: dict[Chapter, list[tuple[HandedIn, Owner]]] = defaultdict(list)
        for owner in owners[student]:
            for found in _notebooks_of(owner, files[owner], left):
                chapter = match_chapter(found.below, found.content, chapters)
                if chapter is None:
                    left.append(Left(found.place, "no chapter has this name, and none has these exercises"))
                elif not may_replace(submitted, student, chapter.folder, owner, owner in certain):
                    why = f"{plain(student)}'s {chapter.folder} did not come by this number before: {to_type(owner)}"
                    left.append(Left(found.place, why))
                else:
                    of[chapter].append((found, owner))
        newest: dict[Chapter, tuple[HandedIn, Owner]] = {}
        older: list[tuple[Chapter, HandedIn]] = []
        for chapter, several in of.items():
            newest[chapter], others = _newest(several)
            older += [(chapter, found) for found in others]
            left += [Left(found.place, _why_not(found, newest[chapter][0])) for found in others]
        try:
            for chapter, found in older:
                keep_aside(submitted.parent / "earlier", student, chapter, found.content)
            for chapter, (found, owner) in sorted(newest.items(), key=lambda item: item[0].folder):
                how, when = _put(submitted, student, chapter, found)
                write_note(submitted, student, chapter.folder, owner)
                said = found.manifest and read_manifest(found.manifest, found.content, found.place.name, chapter)
                taken.append(Taken(student, chapter, found.place, how, when, said or "", _broken(found.content)))
        except OSError as error:
            told = f"it cannot be written: {error.strerror}: {error.filename}"
            done = {one.place for one in taken}
            left += [Left(found.place, told) for found, _ in newest.values() if found.place not in done]
    return taken, list(dict.fromkeys(left))


def _by_owner(download: Path, left: list[Left], pattern: str) -> dict[Owner, list[tuple[File, PurePosixPath]]]:
    """The files of a download by whose they are, each with its place below that; none is read yet."""
    files: dict[Owner, list[tuple[File, PurePosixPath]]] = defaultdict(list)
    for file in _files(download, left):
        _sort_in(file, files, left, pattern)
    return files


def _sort_in(file: File, files: dict[Owner, list[tuple[File, PurePosixPath]]], left: list[Left], pattern: str) -> None:
    """Put a file to what its owner handed in, or say why nobody can be named."""
    read = by_pattern(file.place, pattern) if pattern else []
    found = [(owner, below) for owner, below, _ in read] or readings(file.place)
    if len(found) == 1:
        when = _time_in(read[0][2]) if read else None
        files[found[0][0]].append((replace(file, handed_in_at=when or file.handed_in_at), found[0][1]))
    elif not found:
        why = (
            "it does not say whose it is: put it into a folder named after its student, and collect the folder of that"
        )
        left.append(Left(file.place, why))
    else:
        could = " or ".join(plain(owner.label)[:100] for owner, _ in found)
        why = f"its name may say {could}: put it into a folder named after its student, and collect that"
        left.append(Left(file.place, why))


def _came(found: HandedIn) -> float:
    return found.handed_in_at.timestamp() if found.handed_in_at else 0.0


def _newest(several: list[tuple[HandedIn, Owner]]) -> tuple[tuple[HandedIn, Owner], list[HandedIn]]:
    """Which of a student's notebooks of a chapter counts, and the others, but for what is the same again."""
    notebooks = [found for found, _ in several]
    *before, newest = sorted(several, key=lambda one: _rank(one[0], notebooks))
    first = newest[0]
    return newest, [one for one, _ in before if one.content != first.content or _came(one) < _came(first)]


def _why_not(found: HandedIn, newest: HandedIn) -> str:
    packed = _home_of_pack(found) is not None and _home_of_pack(newest) is None
    why = f"lies outside {HANDED_IN}/" if packed else "is newer"
    return f"{_shown(newest.place)} {why}; this one is kept in earlier/"


def _rank(found: HandedIn, notebooks: list[HandedIn]) -> tuple[bool, float, bool, str, int]:
    """What a student's notebooks of a chapter are sorted by; the last one counts.

    When they came decides, as the LMS says it. But a pack is never newer than the notebook in the same course's folder,
    which it was made of, whatever an unpacked folder's times say. Where the LMS knows one time for all of an archive,
    the student's own word will do: it chooses among their own work alone, and changes no time.
    """
    home = _home_of_pack(found)
    beside = home is not None and any(home in o.place.parents and _home_of_pack(o) is None for o in notebooks)
    packed_at = [match[1] for part in found.place.parts if (match := _PACKED_AT.search(part))]
    copy = re.search(r"([0-9]{1,9})\)?$", found.place.stem)
    return not beside, _came(found), home is None, max(packed_at, default=""), int(copy[1]) if copy else 0


def _home_of_pack(found: HandedIn) -> PurePosixPath | None:
    """The course's folder in whose `handed-in/` something lies; None if it lies elsewhere."""
    if HANDED_IN not in (folders := found.below.parts[:-1]):
        return None
    above = len(found.place.parts) - len(found.below.parts)
    return PurePosixPath(*found.place.parts[: above + folders.index(HANDED_IN)])


def _files(download: Path, left: list[Left]) -> Iterator[File]:
    """The files of a download, as the LMS put them there: nothing in it is read yet.

    Raises:
        CourseError: there is no such download, or it is no archive, or a single notebook.
    """
    if download.is_dir():
        yield from _in_folder(download, left)
    elif download.is_file():
        if download.suffix.lower() == ".ipynb":
            raise CourseError(f"{download} does not say whose it is: put it into FOLDER/STUDENT/ and collect FOLDER")
        try:
            archive = zipfile.ZipFile(download)  # open as long as there is a file of it to read
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise CourseError(f"{download} is no zip archive: {error}") from error
        yield from _entries(archive, PurePosixPath(), left)
    else:
        raise CourseError(f"there is no folder or archive {download}")


def _in_folder(folder: Path, left: list[Left]) -> Iterator[File]:
    def unreadable(error: OSError) -> None:
        left.append(Left(PurePosixPath(os.path.relpath(error.filename, folder)), f"not readable: {error.strerror}"))

    for where, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name not in _LEFT_BEHIND)
        here = Path(where)
        for name in [*folders, *sorted(names)]:
            path, place = here / name, PurePosixPath((here / name).relative_to(folder).as_posix())
            if path.is_symlink():
                left.append(Left(place, "a symbolic link, which is not followed"))
            elif name in names and name not in _LEFT_BEHIND:
                if is_plain_file(path):
                    yield File(place, partial(_read_file, path), _sensible(path.stat().st_mtime))
                else:
                    left.append(Left(place, "no plain file"))
        if len(here.relative_to(folder).parts) > _DEEPEST_FOLDER + 1 and folders:
            left.append(Left(PurePosixPath(here.relative_to(folder)), "folders deeper than this are not looked into"))
            folders[:] = []


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)


def _entries(archive: zipfile.ZipFile, inside: PurePosixPath, left: list[Left]) -> Iterator[File]:
    for info in archive.infolist():
        place = inside / info.filename.replace("\\", "/")
        if info.is_dir() or not place.parts or _LEFT_BEHIND & set(place.parts):
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            left.append(Left(place, "a symbolic link, which is not followed"))
            continue
        try:  # archives tell no time zone: this machine's
            when = _sensible(datetime(*info.date_time).timestamp())
        except (ValueError, OverflowError, OSError):
            when = None
        yield File(place, partial(_read_entry, archive, info), when)


def _read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type not in _PACKED_AS_USUAL:  # others may take any amount of memory
        raise ValueError("it is packed in an unusual way")
    with archive.open(info) as file:
        return file.read(_MOST_BYTES + 1)


def _sensible(seconds: float) -> datetime | None:
    """When a file was handed in; None for a time that an archive without one would have, and for one to come."""
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return when if when.year > 1980 and when < datetime.now(UTC) + timedelta(days=1) else None


def _time_in(text: str) -> datetime | None:
    """The time that nbgrader's group `timestamp` tells, in UTC unless it says otherwise; None if it tells none."""
    for read in (lambda: utils.parse_utc(text), lambda: datetime.strptime(text, "%Y-%m-%d-%H-%M-%S")):
        try:
            return _sensible(read().replace(tzinfo=UTC).timestamp()) if text else None
        except (ValueError, OverflowError):
            continue
    return None


def _notebooks_of(owner: Owner, files: list[tuple[File, PurePosixPath]], left: list[Left]) -> list[HandedIn]:
    """The notebooks that one student handed in; none, if it is more than one may."""
    budget = _Budget()
    told: list[Left] = []
    try:
        found = [one for file, below in files for one in _notebooks(file, below, told, budget, 1)]
    except _TooMuch as error:
        why = f"{error} from one student: nothing of it is taken; ask for the notebooks alone"
        left.append(Left(PurePosixPath(owner.label), why))
        return []
    left += told
    manifests = {one.place.parent: one.content for one in found if one.place.name == MANIFEST}
    notebooks = [one for one in found if one.place.name != MANIFEST]
    return [replace(one, manifest=manifests.get(one.place.parent, b"")) for one in notebooks]


def _notebooks(file: File, below: PurePosixPath, left: list[Left], budget: _Budget, depth: int) -> Iterator[HandedIn]:
    """A notebook, or those in a student's archive; they came when the archive came, whatever it says of them."""
    budget.count(below)
    ending = file.place.suffix.lower()
    for number, part in enumerate(below.parts[:-1]):
        if part in _OF_THE_COURSE:
            folder = PurePosixPath(*file.place.parts[: len(file.place.parts) - len(below.parts) + number + 1])
            left.append(Left(folder, "the course's own notebooks lie there, and nobody's work"))
            return
    if ending == KEPT_ASIDE or (HANDED_IN in below.parts[:-1] and is_kept_beside_packs(below.name)):
        return
    if ending not in (".ipynb", ".zip") and file.place.name != MANIFEST:
        left.append(Left(file.place, "not a notebook"))
        return
    if ending == ".zip" and depth > _DEEPEST_ZIP:
        left.append(Left(file.place, "an archive too deep in archives"))
        return
    try:
        content = file.read()
    except Exception as error:  # whatever a damaged archive makes Python's own reader raise
        left.append(Left(file.place, f"it cannot be read: {plain(str(error))[:200]}"))
        return
    budget.weigh(content)
    if len(content) > _MOST_BYTES:
        left.append(Left(file.place, f"it is larger than {_MOST_BYTES >> 20} MB"))
        return
    if ending != ".zip":
        yield HandedIn(file.place, below, content, file.handed_in_at)
        return
    if content.count(b"PK\x01\x02") > _MOST_FILES:  # what starts an entry of its table of contents
        raise _TooMuch(f"more than {_MOST_FILES:,} files")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except Exception:
        left.append(Left(file.place, "no zip archive, whatever it is called"))
        return
    with archive:
        for inner in _entries(archive, file.place, left):
            entry = below / inner.place.relative_to(file.place)
            yield from _notebooks(replace(inner, handed_in_at=file.handed_in_at), entry, left, budget, depth + 1)


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


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


def _put(submitted: Path, student: str, chapter: Chapter, found: HandedIn) -> tuple[str, datetime | None]:
    """Write a notebook and its time where `grade` looks; returns how that went, and which time counts."""
    folder = submitted / student / chapter.folder
    if wrong := [path for path in (folder, folder.parent) if os.path.islink(path)]:
        raise OSError(0, "a symbolic link lies in the way", str(wrong[0]))
    target, stamp, when = folder / f"{chapter.module}.ipynb", folder / "timestamp.txt", found.handed_in_at
    how = "new"
    if os.path.lexists(target):
        if not is_plain_file(target):
            raise OSError(0, "what lies there is no plain file", str(target))
        before = target.read_bytes()
        if before == found.content:
            # The very same work was there by the earlier of the two times.
            former = _time_in(read_timestamp(folder) or "")
            when = min(filter(None, (former, when)), default=None)
            if when and when != former:
                replace_file(stamp, _stamped(when))
            return "unchanged", when
        keep_aside(submitted.parent / "earlier", student, chapter, before)
        how = "replaces an earlier one"
    folder.mkdir(parents=True, exist_ok=True)
    # Without a time for a moment, rather than with that of the one before.
    stamp.unlink(missing_ok=True)
    replace_file(target, found.content)
    if when:
        replace_file(stamp, _stamped(when))
    return how, when


def _broken(content: bytes) -> str:
    """What `grade` will say of a file without JSON in it; to look at its cells, too, would take five times as long."""
    try:
        parse(content)
    except SubmissionError as error:
        return str(error)
    return ""


def _stamped(when: datetime) -> bytes:
    return f"{when:%Y-%m-%d %H:%M:%S} UTC\n".encode()


def keep_aside(earlier: Path, student: str, chapter: Chapter, content: bytes) -> None:
    """Keep a notebook beside those that were kept before, whatever they are called; once, if it is the same again."""
    folder = earlier / student / chapter.folder
    folder.mkdir(parents=True, exist_ok=True)
    if any(is_plain_file(kept) and kept.read_bytes() == content for kept in folder.glob("*.ipynb")):
        return
    number = 1
    while True:
        kept = folder / f"{chapter.module}_{number:03}.ipynb"
        try:
            file = kept.open("xb")
            break
        except FileExistsError:
            number += 1
    try:
        with file:
            file.write(content)
    except OSError:
        kept.unlink()
        raise


def names_in(book: Gradebook) -> list[tuple[str, str]]:
    """What the gradebook knows its students by: full names both ways round, number, address, the folder's own name."""
    known = []
    for student in book.students:
        first, last = student.first_name or "", student.last_name or ""
        names = [f"{first} {last}", f"{last} {first}"] if first and last else []
        known += [(name, student.id) for name in (*names, student.lms_user_id, student.email, student.id) if name]
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
