"""Whose a hand-in is, by what the LMS wrote of it.

Moodle and Canvas put the student's name and a number before the name that a student gave the file. Both are read from
the left: what a student wrote comes after, and whatever it holds decides nothing. Where a name can be read in two ways,
or two people come by one name, nobody is chosen: it is left out and named, and a line in a table of groups says whose.
"""

import csv
import io
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from autograder.course.files import replace_file
from autograder.plain import plain

# Beside a student's chapters: for each of them, what the LMS called whoever handed it in.
NOTE = ".collected.json"
_LONGEST_NAME = 200  # bytes; file systems take 255, and names made of it get a few more
# Moodle writes blanks for the underscores of a full name, so that the first one ends it. Signs it leaves out, so that
# of a name nothing may be left: such a file must still be known for Moodle's, or Canvas's fields would be looked for in
# what the student called it. The last field is there in downloads without folders, and in those that are unpacked here.
_MOODLE = re.compile(
    r"(?P<name>[^_]*)(?:_(?P<number>[1-9][0-9]*))?_assignsubmission_[a-z0-9]+(?:_(?P<file>.*))?", re.DOTALL
)
# Canvas leaves underscores in a name, and a name may end like a number: every place where the fields may start counts.
_CANVAS = re.compile(r"(?:_LATE)?_(?P<number>[1-9][0-9]*)_(?P<attachment>[0-9]+)_(?P<file>.+)", re.DOTALL)
_SHORTEST_ATTACHMENT = re.compile("[1-9][0-9]{2,}")


# What a system is called whose names an instructor's own expression reads.
PATTERN = "named_regexp"


@dataclass(frozen=True)
class Owner:
    """Who handed in, as a download says it: the name, and in an LMS the number, neither of them matched yet."""

    system: str
    """Moodle, Canvas, `PATTERN`, or empty for a folder that is named after a student"""
    name: str
    number: str = ""

    @property
    def label(self) -> str:
        """What a table of groups calls this one."""
        return f"{self.name}_{self.number}" if self.number else self.name


@dataclass(frozen=True)
class Whose:
    """Whose folders a hand-in goes to; `certain` unless a name alone says so, which students may be able to change."""

    students: list[str]
    certain: bool = True


@dataclass(frozen=True)
class Unclear:
    """Why nobody can be named, and what to do."""

    why: str


@dataclass
class Known:
    """What tells the students of a gradebook: their folders and addresses, full names, numbers."""

    anything: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    squeezed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    numbers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    numbered: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)


def known_by(pairs: Iterable[tuple[str, str]]) -> Known:
    """Sort what a gradebook says of its students.

    Args:
        pairs: a name, a number, an address or the folder's own name, and the student's folder.
    """
    known = Known()
    for said, student in pairs:
        name = _normal(said)
        known.anything[name].add(student)
        known.anything[_normal(student)].add(student)
        if re.fullmatch("[0-9]+", name):
            known.numbers[name].add(student)
            known.numbered.add(student)
        elif "@" not in name and name != _normal(student):  # what people are called by an LMS
            known.names[name].add(student)
            known.squeezed[_squeezed(name)].add(student)
            known.named.add(student)
    return known


def readings(place: PurePosixPath) -> list[tuple[Owner, PurePosixPath]]:
    """The ways to read the path of a file in a download: whose it is, and the path below.

    Returns:
        One for a name that says it; none where it lies in nobody's folder; several where a name may be forged.
    """
    first, *rest = place.parts
    found = []
    if moodle := _MOODLE.fullmatch(first):
        below = PurePosixPath(*([moodle["file"]] if moodle["file"] else []), *rest)
        found.append((Owner("Moodle", moodle["name"].strip(), moodle["number"] or ""), below))
    for underscore in re.finditer("_", first):
        name, fields = first[: underscore.start()], _CANVAS.match(first, underscore.start())
        # Canvas writes names in small letters, without blanks and signs.
        if not fields or ("_" in name and not (re.fullmatch(r"\w*", name) and name == name.lower())):
            continue
        if not any(owner.system == "Canvas" for owner, _ in found) or _SHORTEST_ATTACHMENT.fullmatch(
            fields["attachment"]
        ):
            found.append((Owner("Canvas", name, fields["number"]), PurePosixPath(fields["file"], *rest)))
    if not found and rest and "_assignsubmission_" not in first:
        found.append((Owner("", first), PurePosixPath(*rest)))
    return found


def by_pattern(place: PurePosixPath, pattern: str) -> list[tuple[Owner, PurePosixPath, str]]:
    """The ways to read a path by nbgrader's `named_regexp`.

    An expression that starts with `.*` takes what stands farthest to the right, where a student's own file name is: it
    is tried from the left too, and where the two differ both are returned.

    Returns:
        For each whose it is, the path below, and the text of the group `timestamp`, if there is one.
    """
    shortest = re.sub(r"^(\^?\.\*)\??", r"\1?", pattern)
    found = {}
    for expression in (pattern, shortest):
        if match := re.match(expression, str(place)):
            said = match.groupdict()
            found[said["student_id"], said.get("timestamp")] = said
    return [
        (Owner(PATTERN, student), PurePosixPath(said.get("file_id") or place.name), said.get("timestamp") or "")
        for (student, _), said in found.items()
    ]


def students_of(
    owners: Iterable[Owner], known: Known, groups: dict[str, list[str]], submitted: Path
) -> dict[Owner, Whose | Unclear]:
    """The students' folders that each hand-in goes to, or why it goes nowhere.

    A number decides before a name, and a name only where one person alone comes by it: in the gradebook, in this
    download and in the earlier ones.

    Args:
        owners: all of a download.
        known: the gradebook's students.
        groups: for each name of a group its students; a hand-in's own label does as well.
        submitted: holds the students' folders, with the notes of earlier downloads.
    """
    owners = list(dict.fromkeys(owners))
    unnumbered = Counter((owner.system, _called(owner)) for owner in owners if owner.number not in known.numbers)
    found: dict[Owner, Whose | Unclear] = {}
    certain: dict[str, Owner] = {}
    for owner in owners:
        if listed := _listed(owner, groups, known):
            found[owner] = listed
        elif owner.system in ("", PATTERN):
            found[owner] = _of_folder(owner, known)
        elif len(by_number := known.numbers.get(owner.number, set())) == 1:
            found[owner] = _by_number(owner, min(by_number), known)
        else:
            continue
        if owner.system and isinstance(one := found[owner], Whose):
            certain |= dict.fromkeys(one.students, owner)
    for owner in owners:
        if owner not in found:
            found[owner] = _by_name(owner, known, unnumbered[owner.system, _called(owner)], certain, submitted)
    sure = {
        s: o for o, one in found.items() if o.system and isinstance(one, Whose) and one.certain for s in one.students
    }
    for owner, one in found.items():
        if isinstance(one, Whose) and not one.certain and (other := next((s for s in one.students if s in sure), "")):
            by = f"{plain(other)} handed in as {plain(sure[other].label)[:100]}"
            found[owner] = Unclear(f"{by}, and this came by a name alone: {to_type(owner)}")
        if isinstance(one, Whose) and (wrong := [student for student in one.students if not is_folder_name(student)]):
            found[owner] = Unclear(f"{plain(wrong[0])[:80]!r} cannot be the name of a folder: {to_type(owner)}")
    return {owner: found[owner] for owner in owners}


def members(
    owners: Iterable[Owner], pairs: Iterable[tuple[str, str]], groups: dict[str, list[str]], submitted: Path
) -> dict[Owner, bool]:
    """For each person of a download whether a class knows them, be it by the name or number of somebody else.

    Args:
        owners: all of a download.
        pairs: see `known_by`.
        groups: see `students_of`.
        submitted: holds a folder for each student who handed in before.
    """
    pairs = list(pairs)
    known, students = known_by(pairs), {student for _, student in pairs}
    found = {}
    for owner, one in students_of(owners, known, groups, submitted).items():
        if isinstance(one, Whose):
            found[owner] = any(name in students or (submitted / name).is_dir() for name in one.students)
        else:
            told = known.squeezed if owner.system == "Canvas" else known.anything
            found[owner] = _called(owner) in told or owner.number in known.numbers
    return found


def to_type(owner: Owner) -> str:
    """What an instructor does about a hand-in that could not be matched."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([owner.label, "STUDENT"])
    return f"put the line {plain(line.getvalue())[:120]} into a table and add --groups TABLE"


def _listed(owner: Owner, groups: dict[str, list[str]], known: Known) -> Whose | Unclear | None:
    if owner.label in groups:
        return Whose(groups[owner.label])
    names = {(_squeezed if owner.system == "Canvas" else _normal)(group): group for group in groups}
    if (name := _called(owner)) not in names:
        return None
    students = groups[names[name]]
    if owner.system not in ("Moodle", "Canvas"):
        return Whose(students, certain=not owner.system)
    # Anybody may be called like a group. Canvas gives with it the number of one of the group; Moodle's names of groups
    # are followed by the student's.
    by_number = known.numbers.get(owner.number, set())
    if owner.system == "Canvas" and len(by_number) == 1 and by_number <= set(students):
        return Whose(students)
    return Unclear(f"it bears the name of the group {plain(owner.name)} and the number of none of it: {to_type(owner)}")


def _of_folder(owner: Owner, known: Known) -> Whose | Unclear:
    """Whose folder this is; instructors name them, after a student, a full name, or several students: `ada+ben`."""
    parts = owner.name.split("+")
    if owner.system or _normal(owner.name) in known.anything or not all(part.strip() for part in parts):
        parts = [owner.name]
    students: list[str] = []
    for part in parts:
        one = known.anything.get(_normal(part), {part})
        if len(one) > 1:
            called = " and ".join(sorted(map(plain, one)))
            return Unclear(f"the gradebook knows {called} by the name {plain(part)}: name the folder after one of them")
        students += one
    return Whose(list(dict.fromkeys(students)))


def _by_number(owner: Owner, student: str, known: Known) -> Whose | Unclear:
    # Moodle's is that of a participant in one assignment, which may by chance be somebody else's number.
    called = known.names.get(_normal(owner.name), set())
    if owner.system == "Moodle" and student not in called and (called or student in known.named):
        other = f"{plain(min(called))}'s" if called else "another"
        return Unclear(f"the number is {plain(student)}'s and the name {other}: {to_type(owner)}")
    return Whose([student])


def _by_name(owner: Owner, known: Known, people: int, certain: dict[str, Owner], submitted: Path) -> Whose | Unclear:
    name, do = plain(owner.name), to_type(owner)
    if not owner.name or not owner.number:
        return Unclear(f"{owner.system} gives no {'number' if owner.name else 'name'} with it: {do}")
    if people > 1:
        return Unclear(f"{people} people hand in by the name {name}: {do}")
    matching = (known.squeezed if owner.system == "Canvas" else known.names).get(_called(owner), set())
    if len(matching) > 1:
        return Unclear(f"the gradebook knows {' and '.join(sorted(map(plain, matching)))} by the name {name}: {do}")
    student = min(matching, default=owner.name)
    if student in certain:
        return Unclear(f"{plain(student)} handed in by another number, {certain[student].number}: {do}")
    if matching and owner.system == "Canvas" and student in known.numbered:
        return Unclear(f"the gradebook knows {plain(student)} by another number: {do}")
    if not is_folder_name(student):
        return Whose([student], certain=False)  # which `students_of` refuses
    notes = read_notes(submitted, student)
    mine = [note for note in notes.values() if (note.system, note.name) == (owner.system, owner.name)]
    if owner.system == "Canvas" and any(note.number != owner.number for note in mine):
        return Unclear(f"by the name {name} somebody of another number handed in before: {do}")
    if not matching and not mine and (_normal(student) in known.anything or (submitted / student).exists()):
        return Unclear(f"there is a student {name} already, and nothing says that it is the same one: {do}")
    return Whose([student], certain=False)


def may_replace(submitted: Path, student: str, folder: str, owner: Owner, certain: bool) -> bool:
    """Whether what came by a name may take the place of what is there: not unless somebody of that number sent it.

    Args:
        submitted: holds the students' folders.
        student: one of them.
        folder: the chapter's.
        owner: who hands in now.
        certain: a table or the gradebook's numbers say whose it is, and not the name.
    """
    if certain or not owner.system:
        return True
    if before := read_notes(submitted, student).get(folder):
        return (before.system, before.number) == (owner.system, owner.number)
    return not any((submitted / student / folder).glob("*.ipynb"))


def read_notes(submitted: Path, student: str) -> dict[str, Owner]:
    """For each chapter's folder who handed it in, as an LMS said it; empty where no LMS did."""
    try:
        notes = json.loads((submitted / student / NOTE).read_text(encoding="utf-8"))
        return {folder: Owner(*map(str, note)) for folder, note in notes.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_note(submitted: Path, student: str, folder: str, owner: Owner) -> None:
    """Remember who handed in a chapter, if an LMS said it."""
    notes = read_notes(submitted, student)
    now = {name: note for name, note in notes.items() if name != folder}
    if owner.system:
        now[folder] = owner
    if now != notes:
        table = {name: [note.system, note.name, note.number] for name, note in now.items()}
        replace_file(submitted / student / NOTE, json.dumps(table, ensure_ascii=False).encode(errors="replace"))


def _called(owner: Owner) -> str:
    return _squeezed(owner.name) if owner.system == "Canvas" else _normal(owner.name)


def _normal(name: str) -> str:
    """A name whose letters are coded in one way; blanks and capitals stay as they are."""
    return unicodedata.normalize("NFC", name.strip())


def _squeezed(name: str) -> str:
    """A name as Canvas writes it."""
    return re.sub(r"\W+", "", _normal(name).lower())


def is_folder_name(student: str) -> bool:
    """Whether a student's folder can be called so, on any system and without looking like another."""
    return (
        0 < len(student.encode(errors="replace")) <= _LONGEST_NAME
        and student == plain(student)
        and student == student.strip()
        and student[0] != "."
        and not set(student) & set('/\\:*?"<>|')
        # Such as characters without width, by which two names look the same.
        and not any(unicodedata.category(letter).startswith("C") for letter in student)
    )
