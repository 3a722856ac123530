"""`autograder tokens`: what students hand in with, and what instructors see the class with."""

import os
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from autograder.course import gradebook
from autograder.course.curriculum import Course, CourseError
from autograder.course.files import replace_table
from autograder.course.owner import is_folder_name
from autograder.plain import cell, plain
from autograder.service import store as state


def run(
    course: Course, table: Path, students: list[str] | None, days: int, instructors: list[str] | None = None
) -> str:
    """Make tokens and write them into a table that this account alone can read.

    Args:
        course: the course, with its solutions, and which class of it.
        table: the CSV to write: student, email, token. It must not be there yet.
        students: who gets a new one in place of the one they have; by default who has none that is still good.
        days: how long they are good for.
        instructors: who gets one that shows the class, and makes none for students that are not named.

    Returns:
        What was done, in a line.

    Raises:
        CourseError: the table is there already or cannot be written, or somebody is not in the class.
    """
    if students and instructors:
        raise CourseError("tokens for students and for instructors go into two tables: make one after the other")
    nbgrader = gradebook.configure(course)
    if instructors:
        if odd := sorted(name for name in instructors if not is_folder_name(name)):
            raise CourseError(f"{plain(odd[0])[:80]!r} cannot be an instructor's name")
        store = state.open_store(nbgrader)
        return _make(store, table, sorted(set(instructors)), days, dict.fromkeys(instructors, ""), teaches=True)
    with gradebook.open_gradebook(nbgrader) as book:
        emails = {student.id: student.email or "" for student in book.students}
    if not emails:
        raise CourseError("nobody is in the class yet: `autograder students add FILE` enters students")
    if unknown := sorted(set(students or ()) - emails.keys()):
        raise CourseError(
            f"{plain(unknown[0])[:80]!r} is not in the class: `autograder students add FILE` enters students"
        )
    if odd := sorted(name for name in emails if not is_folder_name(name)):
        raise CourseError(f"{plain(odd[0])[:80]!r} cannot name a student's folder: change it in the gradebook first")
    store = state.open_store(nbgrader)
    wanted = sorted(set(students or emails.keys() - state.with_token(store)))
    if not wanted:
        return "everybody has a token; `--student S` makes a new one in place of the old"
    return _make(store, table, wanted, days, emails, teaches=False)


def take_back(course: Course, students: list[str], instructors: list[str]) -> str:
    """Take tokens back; what was handed in with them stays.

    Args:
        course: the course, with its solutions, and which class of it.
        students: whose.
        instructors: whose.

    Returns:
        What was done, in a line.

    Raises:
        CourseError: nobody is named, or somebody has none.
    """
    if not students and not instructors:
        raise CourseError("whose token is to be taken back? Name them: --student S, or --instructor I")
    store = state.open_store(gradebook.configure(course))
    for names, teaches in ((students, False), (instructors, True)):
        for name in names:
            if not state.take_back(store, [name], teaches):
                raise CourseError(f"{plain(name)[:80]!r} has no token")
    return f"{', '.join(map(plain, [*students, *instructors]))}: no token from now on; what was handed in stays"


def _make(store: Engine, table: Path, wanted: list[str], days: int, emails: dict[str, str], *, teaches: bool) -> str:
    try:
        os.close(os.open(table, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise CourseError(
            f"{table} is there already: it may hold the only copy of other tokens; name another"
        ) from None
    except OSError as error:
        raise CourseError(f"{table} cannot be written: {error.strerror}") from error
    try:
        made = state.make_tokens(store, wanted, days, lambda made: _write(table, made, emails), teaches)
    except (OSError, SQLAlchemyError) as error:
        table.unlink(missing_ok=True)
        raise CourseError(f"no token was made: {' '.join(str(error).split())[:200]}") from error
    whom = "instructor" if teaches else "student"
    are = "tokens, good for {} days, are" if len(made) != 1 else "token, good for {} days, is"
    return f"{len(made)} {are.format(days)} in {table}: each is told to its {whom} alone"


def _write(table: Path, made: dict[str, str], emails: dict[str, str]) -> None:
    before = os.umask(0o077)
    try:
        replace_table(table, [("student", "email", "token"), *((cell(s), cell(emails[s]), t) for s, t in made.items())])
    finally:
        os.umask(before)
