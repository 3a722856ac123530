"""`autograder tokens`: what students hand in with."""

import os
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from autograder.course import gradebook
from autograder.course.curriculum import Course, CourseError
from autograder.course.files import replace_table
from autograder.course.owner import is_folder_name
from autograder.plain import cell, plain
from autograder.service import store as state


def run(course: Course, table: Path, students: list[str] | None, days: int) -> str:
    """Make tokens and write them into a table that this account alone can read.

    Args:
        course: the course, with its solutions, and which class of it.
        table: the CSV to write: student, email, token. It must not be there yet.
        students: who gets a new one in place of the one they have; by default who has none that is still good.
        days: how long they are good for.

    Returns:
        What was done, in a line.

    Raises:
        CourseError: the table is there already or cannot be written, or somebody is not in the class.
    """
    nbgrader = gradebook.configure(course)
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
    try:
        os.close(os.open(table, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise CourseError(
            f"{table} is there already: it may hold the only copy of other tokens; name another"
        ) from None
    except OSError as error:
        raise CourseError(f"{table} cannot be written: {error.strerror}") from error
    try:
        made = state.make_tokens(store, wanted, days, lambda made: _write(table, made, emails))
    except (OSError, SQLAlchemyError) as error:
        table.unlink(missing_ok=True)
        raise CourseError(f"no token was made: {' '.join(str(error).split())[:200]}") from error
    return f"{len(made)} tokens, good for {days} days, are in {table}: each is told to its student alone"


def _write(table: Path, made: dict[str, str], emails: dict[str, str]) -> None:
    before = os.umask(0o077)
    try:
        replace_table(table, [("student", "email", "token"), *((cell(s), cell(emails[s]), t) for s, t in made.items())])
    finally:
        os.umask(before)
