"""Marks as files: nbgrader's own CSV, and what Canvas and Moodle import."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, Student
from nbgrader.plugins import CsvExportPlugin, ExportPlugin

from autograder.course import gradebook
from autograder.course.batch import outdated
from autograder.course.curriculum import Course
from autograder.course.files import replace_table
from autograder.course.standing import Standing, refresh_penalties, standings
from autograder.course.students import sections
from autograder.plain import cell, plain

_NAMED = 5  # how many cases a line names


def run(course: Course, to: Path | None) -> None:
    """Write `grades.csv`, `canvas.csv` and `moodle.csv`; say which marks have changed since the last time.

    Args:
        course: the course, with its solutions.
        to: the folder for them; the class's own by default.
    """
    nbgrader = gradebook.configure(course)
    folder = to or course.classroom
    folder.mkdir(parents=True, exist_ok=True)
    plugins = {"grades.csv": CsvExportPlugin, "canvas.csv": CanvasExport, "moodle.csv": MoodleExport}
    former = _exported(folder / "canvas.csv")
    with gradebook.open_gradebook(nbgrader) as book:
        refresh_penalties(nbgrader, book)
        for name, plugin in plugins.items():
            plugin(parent=nbgrader, to=str(folder / name)).export(book)
            _disarm(folder / name)
            print(folder / name)
        standing = standings(book)
        _add_columns(folder / "grades.csv", standing, sections(nbgrader))
        waiting = sum(one.to_mark > 0 for one in standing.values())
    if waiting:
        print(
            f"autograder: answers to mark by hand are left in {waiting} submission{'s' * (waiting != 1)}",
            file=sys.stderr,
        )
    now = {(str(cell(student)), chapter): one.mark for (student, chapter), one in standing.items()}
    changes = [
        f"{student} {chapter} {former[student, chapter]:g} → {mark:g}"
        for (student, chapter), mark in sorted(now.items())
        if former.get((student, chapter), mark) != mark
    ]
    _tell("marks that differ from the last export", changes)
    left = [f"{plain(one.student)} {one.chapter.folder}" for one in outdated(course, nbgrader)]
    _tell("submissions that are not graded as they or their checks are now; `autograder grade` does it", left)


def _tell(what: str, cases: list[str]) -> None:
    if cases:
        more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
        print(f"autograder: {what} ({len(cases)}): {', '.join(cases[:_NAMED])}{more}", file=sys.stderr)


def _exported(file: Path) -> dict[tuple[str, str], float]:
    """The marks of an earlier `canvas.csv`, by student and chapter; none if there is no such table."""
    try:
        with file.open(newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        columns = list(rows[0])[5:] if rows else []
        return {(row["SIS User ID"], name): float(row[name]) for row in rows[1:] for name in columns if row[name]}
    except (OSError, ValueError, KeyError, TypeError, csv.Error):  # or a spreadsheet has saved it in its own way
        return {}


def _add_columns(file: Path, standing: dict[tuple[str, str], Standing], section: dict[str, str]) -> None:
    """Add to nbgrader's table sections, whether each submission was late, and how many of its answers wait."""
    with file.open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    if not rows:
        return
    for row in rows:
        one = standing.get((row["student_id"], row["assignment"]))
        late = "yes" if one and one.late else "unknown" if one and one.undated else ""
        row |= {"late": late, "to_mark": one.to_mark if one else ""}
        if section:
            row["section"] = cell(section.get(row["student_id"], ""))
    replace_table(file, [list(rows[0]), *(row.values() for row in rows)])


def _disarm(file: Path) -> None:
    """Rewrite a table so that no cell of it is a formula to a spreadsheet."""
    with file.open(newline="", encoding="utf-8") as table:
        rows = [[cell(value) for value in row] for row in csv.reader(table)]
    replace_table(file, rows)


class _TableExport(ExportPlugin):
    """A row for each student, a column for each chapter; no mark where nothing was handed in."""

    def chapters(self, book: Gradebook) -> list[Assignment]:
        wanted = [a for a in book.assignments if not self.assignment or a.name in self.assignment]
        return sorted(wanted, key=lambda assignment: assignment.name)

    def write(self, book: Gradebook, header: list[list[object]], identity: Callable[[Student], list[str]]) -> None:
        standing = standings(book)
        with open(self.to, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows(header)
            for student in sorted(book.students, key=lambda student: student.id):
                if not self.student or student.id in self.student:
                    found = [standing.get((student.id, chapter.name)) for chapter in self.chapters(book)]
                    marks = ["" if one is None else one.mark for one in found]
                    writer.writerow([*identity(student), *marks])


class CanvasExport(_TableExport):
    """Canvas's gradebook import: its five identity columns, a column for each chapter, the row of points possible."""

    def export(self, gradebook: Gradebook) -> None:
        chapters = self.chapters(gradebook)
        columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *(c.name for c in chapters)]
        possible = ["Points Possible", "", "", "", "", *(c.max_score for c in chapters)]

        section = sections(self.parent)

        def identity(student: Student) -> list[str]:
            known = section.get(student.id, "")
            return [_name(student), student.lms_user_id or "", student.id, student.id, known]

        self.write(gradebook, [columns, possible], identity)


class MoodleExport(_TableExport):
    """Moodle's grade import: columns that identify the user, then a column for each chapter."""

    def export(self, gradebook: Gradebook) -> None:
        columns = ["Username", "ID number", "First name", "Last name", "Email address"]

        def identity(student: Student) -> list[str]:
            known = (student.lms_user_id, student.first_name, student.last_name, student.email)
            return [student.id, *(value or "" for value in known)]

        self.write(gradebook, [[*columns, *(c.name for c in self.chapters(gradebook))]], identity)


def _name(student: Student) -> str:
    return f"{student.last_name}, {student.first_name}" if student.last_name and student.first_name else student.id
