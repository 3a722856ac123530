"""Marking by exercise: one written answer of the whole class as a table, and marks and comments back from it.

Equal answers stand together, so that a mark and a comment that are given once can be filled down in any spreadsheet.
"""

import csv
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.baseapp import NbGrader

from autograder.cells import flags_of
from autograder.course import gradebook
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.files import replace_table
from autograder.plain import cell, shown

_COLUMNS = ("student", "answer", "points", "comment")


def write_answers(course: Course, chapter: Chapter, exercise: str, table: Path) -> int:
    """Write a table with a row for each student who handed in: the answer, and the mark and comment so far.

    Args:
        course: the course, with its solutions.
        chapter: where the exercise stands.
        exercise: its name.
        table: the CSV to write.

    Returns:
        How many rows it has.

    Raises:
        CourseError: there is no such exercise.
    """
    nbgrader = gradebook.configure(course)
    coursedir = nbgrader.coursedir
    rows = []
    with gradebook.open_gradebook(nbgrader) as book:
        _find(book, chapter, exercise)
        for submission in book.assignment_submissions(chapter.folder):
            student = submission.student_id
            folder = coursedir.format_path(coursedir.autograded_directory, student, chapter.folder)
            answer = _answer(Path(folder, f"{chapter.module}.ipynb"), exercise)
            grade = book.find_grade(exercise, chapter.module, chapter.folder, student)
            points = "" if grade.needs_manual_grade and grade.manual_score is None else f"{grade.score:g}"
            rows.append([student, shown(answer), points, _comment(book, chapter, exercise, student) or ""])
    rows.sort(key=lambda row: (" ".join(row[1].split()).casefold(), row[0]))
    # An answer keeps its lines; only what a spreadsheet would compute is quoted.
    quoted = [[cell(who), _quoted(answer), points, _quoted(told)] for who, answer, points, told in rows]
    replace_table(table, [_COLUMNS, *quoted])
    return len(rows)


def _quoted(text: str) -> str:
    return f"'{text}" if str(cell(text)).startswith("'") and not text.startswith("'") else text


def _find(book: Gradebook, chapter: Chapter, exercise: str) -> float:
    """The points of an exercise.

    Raises:
        CourseError: the gradebook has no such exercise.
    """
    try:
        return book.find_grade_cell(exercise, chapter.module, chapter.folder).max_score
    except MissingEntry:
        written = ", ".join(e.name for e in chapter.exercises if e.kind == "written")
        raise CourseError(
            f"the gradebook has no answer {exercise!r} in {chapter.folder}; to mark by hand there is "
            f"{written or 'nothing'}, once `autograder grade` has run"
        ) from None


def _answer(notebook: Path, exercise: str) -> str:
    try:
        cells = nbformat.read(notebook, as_version=4).cells
    except OSError:
        return ""
    return next((c.source for c in cells if flags_of(c).get("grade_id") == exercise), "")


def _comment(book: Gradebook, chapter: Chapter, exercise: str, student: str) -> str | None:
    try:
        return book.find_comment(exercise, chapter.module, chapter.folder, student).manual_comment  # not nbgrader's own
    except MissingEntry:
        return None


def read_marks(course: Course, chapter: Chapter, exercise: str, table: Path) -> int:
    """Put the marks and comments of a table into the gradebook: all of them, or none if a row is wrong.

    Args:
        course: the course, with its solutions.
        chapter: where the exercise stands.
        exercise: its name.
        table: as `write_answers` wrote it; a row without points is left as it is, and so is the mark that an answer has
            without anybody's doing if the row says the same.

    Returns:
        How many marks were given.

    Raises:
        CourseError: the table has no such columns, or a row names no student who handed in, or impossible points.
    """
    nbgrader: NbGrader = gradebook.configure(course)
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"{table} cannot be read: {error}") from error
    given = 0
    with gradebook.open_gradebook(nbgrader) as book:
        most = _find(book, chapter, exercise)
        for number, row in enumerate(rows, start=2):
            if not {"student", "points", "comment"} <= row.keys():
                raise CourseError(f"{table} has no columns student, points and comment")
            points, student = (row["points"] or "").strip(), (row["student"] or "").removeprefix("'")
            if not points:
                continue
            try:
                grade = book.find_grade(exercise, chapter.module, chapter.folder, student)
            except MissingEntry:
                raise CourseError(f"{table}, line {number}: {student!r} handed in no {chapter.folder}") from None
            try:
                score = float(points.replace(",", "."))
            except ValueError:
                raise CourseError(f"{table}, line {number}: {points!r} is no number") from None
            if not 0 <= score <= most:
                raise CourseError(f"{table}, line {number}: {points} points of {most:g}")
            if grade.needs_manual_grade or grade.manual_score is not None or score != grade.score:
                grade.manual_score, grade.needs_manual_grade = score, False
                given += 1
            told = (row["comment"] or "").strip()
            comment = book.find_comment(exercise, chapter.module, chapter.folder, student)
            if told != (comment.manual_comment or ""):
                comment.manual_comment = told.removeprefix("'")
        book.db.commit()
    return given
