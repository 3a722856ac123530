"""Who is in a class and when a chapter is due: what an instructor enters before anything is handed in."""

import csv
import os
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path

from nbgrader.api import Student
from nbgrader.apps.baseapp import NbGrader
from sqlalchemy.exc import SQLAlchemyError

from autograder.course import gradebook
from autograder.course.curriculum import Chapter, Course, CourseError, begin_class, classes
from autograder.course.files import replace_table
from autograder.course.generate import synchronise
from autograder.course.hand_ins import submitted_folder
from autograder.course.owner import is_folder_name
from autograder.plain import plain

_COLUMNS = ("name", "id", "email", "section", "number")
# nbgrader's gradebook knows no sections: they stand beside it.
_SECTIONS = "sections.csv"


@dataclass(frozen=True)
class Person:
    """One row of the students' table; `id` names the folder, `number` is what the LMS calls the student by."""

    id: str
    name: str = ""
    email: str = ""
    section: str = ""
    number: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """First and last name, from `Ada Lovelace` or `Lovelace, Ada`."""
        last, comma, first = self.name.partition(",")
        if not comma:
            first, _, last = self.name.rpartition(" ")
        return first.strip(), last.strip()


def read_students(file: Path) -> list[Person]:
    """Read a table of students.

    Args:
        file: a CSV whose first row names its columns: id, and any of name, email, section and number.

    Raises:
        CourseError: it cannot be read, a column is unknown, an id cannot name a folder, or somebody is there twice.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as table:
            sample = table.readline()
            table.seek(0)
            comma, other = (";", ",") if sample.count(";") > sample.count(",") else (",", ";")
            rows = list(csv.reader(table, delimiter=comma))
    except (OSError, ValueError, csv.Error) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no CSV in UTF-8"
        raise CourseError(f"{file}: {told}") from error
    head = [name.strip().lower() for name in rows[0]] if rows else []
    if "id" not in head or set(head) - set(_COLUMNS) or len(set(head)) < len(head):
        raise CourseError(f"{file} should begin with a row of column names: name,id,email,section; id is needed")
    people: list[Person] = []
    seen: dict[tuple[str, str], int] = {}
    for line, row in enumerate(rows[1:], 2):
        if not any(field.strip() for field in row):
            continue
        if len(row) != len(head):
            told = f"{len(row)} column{'s' * (len(row) != 1)} where the first row names {len(head)}"
            mixed = f": it holds {other!r} where the first row has {comma!r}" if other in "".join(row) else ""
            raise CourseError(f"{file}, line {line}: {told}{mixed}")
        person = Person(**{name: field.strip() for name, field in zip(head, row, strict=True)})
        if not person.id or not is_folder_name(person.id):
            raise CourseError(f"{file}, line {line}: {plain(person.id)[:80]!r} cannot name a student's folder")
        for kind, said in (("id", person.id), ("address", person.email), ("number", person.number)):
            if said and seen.setdefault((kind, said.casefold()), line) != line:
                raise CourseError(
                    f"{file}, line {line}: the {kind} {plain(said)[:80]} is that of line {seen[kind, said.casefold()]}"
                )
        people.append(person)
    if not people:
        raise CourseError(f"{file} holds no students")
    return people


def add(course: Course, file: Path) -> str:
    """Enter a class's students into its gradebook: all of a table, or none if a line is wrong.

    Args:
        course: the course; a class that is named and not there yet is begun.
        file: the table, see `read_students`. Who is in the gradebook already gets what the table says anew.

    Returns:
        What was done, in a line.

    Raises:
        CourseError: the table is wrong, or no class is named where others were begun.
    """
    require_class(course, or_new=True)
    people = read_students(file)
    begin_class(course.root, course.class_name)
    nbgrader = gradebook.configure(course)
    with gradebook.open_gradebook(nbgrader) as book:
        known = {student.id: student for student in book.students}
        for person in people:
            student = known.get(person.id) or Student(id=person.id)
            said = dict(zip(("first_name", "last_name"), person.names, strict=True))
            said |= {"email": person.email, "lms_user_id": person.number}
            for name, value in said.items():
                if value:
                    setattr(student, name, value)
            book.db.add(student)
        try:
            book.db.commit()
        except SQLAlchemyError as error:
            book.db.rollback()
            raise CourseError(f"{file}: the gradebook refuses it: {str(error).splitlines()[0]}") from error
    _write_sections(nbgrader, sections(nbgrader) | {person.id: person.section for person in people if person.section})
    new = sum(person.id not in known for person in people)
    told = f"{new} student{'s' * (new != 1)} added" + (
        f", {len(people) - new} were there already" if new < len(people) else ""
    )
    parts = Counter(person.section for person in people if person.section)
    shown = f": {', '.join(f'{plain(name)} {count}' for name, count in sorted(parts.items()))}" if parts else ""
    return f"{told}{shown}"


def other_classes(course: Course) -> list[str]:
    """The classes that may have been meant, where none was named."""
    return [] if course.class_name else [name for name in classes(course.root) if name != "example"]  # of `make grade`


def require_class(course: Course, *, or_new: bool = False) -> None:
    """See to it that a class is named where classes were begun and nothing is in the one without a name.

    Args:
        course: the course.
        or_new: a class may be meant that is yet to be begun.

    Raises:
        CourseError: none is named.
    """
    if not (others := other_classes(course)):
        return
    nbgrader = gradebook.configure(course)
    submitted = submitted_folder(nbgrader)
    handed_in = submitted.is_dir() and any(not path.name.startswith(".") for path in submitted.iterdir())
    if not handed_in and not gradebook.has_students(nbgrader):
        new = "; a new one with --class and its name" if or_new else ""
        raise CourseError(f"nobody is in the class without a name: say which with --class: {', '.join(others)}{new}")


def _sections_file(nbgrader: NbGrader) -> Path:
    coursedir = nbgrader.coursedir
    graded = coursedir.format_path(coursedir.autograded_directory, ".", ".")
    return Path(os.path.normpath(graded)).parent / _SECTIONS


def sections(nbgrader: NbGrader) -> dict[str, str]:
    """The section of each student who has one."""
    try:
        with _sections_file(nbgrader).open(newline="", encoding="utf-8") as table:
            return {row["id"]: row["section"] for row in csv.DictReader(table)}
    except (OSError, ValueError, KeyError, csv.Error):
        return {}


def _write_sections(nbgrader: NbGrader, known: dict[str, str]) -> None:
    if known:
        replace_table(_sections_file(nbgrader), [("id", "section"), *sorted(known.items())])


def read_due(text: str) -> datetime | None:
    """When something is due, in UTC; None for `none`.

    Args:
        text: such as 2027-01-15T18:00, by this machine's clock unless it ends in an offset; a day alone is its last
            minute.

    Raises:
        CourseError: it is no such time.
    """
    if text.lower() == "none":
        return None
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            when = datetime.combine(date.fromisoformat(text), time(23, 59))
        else:
            when = datetime.fromisoformat(text)
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise CourseError(f"{text!r} is no date: write it as 2027-01-15T18:00, or none") from None


def set_due(course: Course, chapter: Chapter, text: str | None) -> str:
    """Set when a chapter is due, for everybody; what that changes about marks shows at once.

    Args:
        course: the course, with its solutions.
        chapter: one of its chapters.
        text: see `read_due`; None only shows what is set.

    Returns:
        What is set now, in a line.

    Raises:
        CourseError: it is no date.
    """
    when = read_due(text) if text is not None else None
    nbgrader = gradebook.configure(course)
    synchronise(nbgrader, chapter)
    with gradebook.open_gradebook(nbgrader) as book:
        assignment = book.find_assignment(chapter.folder)
        if text is not None:
            assignment.duedate = when.replace(tzinfo=None) if when else None  # as nbgrader keeps it
            book.db.commit()
        due = assignment.duedate
    if due is None:
        return f"{chapter.folder} has no due date"
    here = due.replace(tzinfo=UTC).astimezone()
    elsewhere = f" ({due:%Y-%m-%d %H:%M} UTC)" if here.utcoffset() else ""
    return f"{chapter.folder} is due on {here:%Y-%m-%d at %H:%M} {here.tzname()}{elsewhere}"
