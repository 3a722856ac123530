"""How a class stands, by the gradebook: the one source of the table, of the exports and of feedback pages.

Marks given by hand count, penalties for handing in late are taken off. Both may change after a notebook was graded, so
penalties are worked out anew before anything is shown.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import nbformat
from nbgrader.api import Assignment, Grade, Gradebook, GradeCell, SubmittedAssignment, SubmittedNotebook
from nbgrader.apps.baseapp import NbGrader
from nbgrader.preprocessors import AssignLatePenalties


@dataclass
class Standing:
    """One student's chapter.

    Attributes:
        mark: points with all that counts: checks, marks by hand, extra credit, less the penalty.
        max_score: points there are.
        penalty: what was taken off for handing in late.
        late: whether it was handed in after the due date, extensions included.
        undated: whether it was due, and nobody knows when it was handed in.
        to_mark: answers that wait for a mark by hand.
    """

    mark: float = 0.0
    max_score: float = 0.0
    penalty: float = 0.0
    late: bool = False
    undated: bool = False
    to_mark: int = 0


def refresh_penalties(app: NbGrader, book: Gradebook) -> None:
    """Work out the penalties anew: a due date, an extension or the rule itself may have changed since grading.

    Args:
        app: nbgrader, configured.
        book: the open gradebook.
    """
    penalised = (
        book.db.query(SubmittedAssignment)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .filter(Assignment.duedate.isnot(None) | SubmittedNotebook.late_submission_penalty.isnot(None))
    )
    late = []
    for submission in penalised.distinct():
        if submission.total_seconds_late > 0:
            late += [(n.name, submission.name, submission.student_id) for n in submission.notebooks]
        else:
            for notebook in submission.notebooks:
                notebook.late_submission_penalty = None
    book.db.commit()
    for names in late:
        resources = {"nbgrader": dict(zip(("notebook", "assignment", "student"), names, strict=True))}
        resources["nbgrader"]["db_url"] = app.coursedir.db_url
        AssignLatePenalties(parent=app).preprocess(nbformat.v4.new_notebook(), resources)
    book.db.expire_all()


def penalty_for(app: NbGrader, student: str, points: float, seconds_late: float) -> float:
    """What `nbgrader_config.py` has taken off for handing in late; nothing for what is not late."""
    if seconds_late <= 0:
        return 0.0
    rule = AssignLatePenalties(parent=app)
    rule.init_plugin()
    return min(points, max(0.0, rule.plugin_inst.late_submission_penalty(student, points, seconds_late) or 0.0))


def due_date(book: Gradebook, student: str, folder: str) -> datetime | None:
    """When a student's chapter is due, extension included, in UTC; None if it is not, or nobody knows it."""
    assignment = book.db.query(Assignment).filter_by(name=folder).one_or_none()
    if assignment is None or assignment.duedate is None:
        return None
    submission = book.db.query(SubmittedAssignment).filter_by(assignment=assignment, student_id=student).one_or_none()
    return assignment.duedate + (submission.extension or timedelta()) if submission else assignment.duedate


def hand_in_times(book: Gradebook) -> Iterator[tuple[str, str, datetime | None, datetime | None]]:
    """For each submission its student, its chapter's folder, when it was handed in and when it was due to be.

    An extension is part of the due date. None where the gradebook knows no time.
    """
    submissions = book.db.query(
        SubmittedAssignment.student_id,
        Assignment.name,
        SubmittedAssignment.timestamp,
        Assignment.duedate,
        SubmittedAssignment.extension,
    ).join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
    for student, folder, timestamp, due, extension in submissions:
        yield student, folder, timestamp, due + extension if due and extension else due


def standings(book: Gradebook) -> dict[tuple[str, str], Standing]:
    """How everyone stands, by student and chapter's folder, in three questions however large the class is."""
    found: dict[tuple[str, str], Standing] = defaultdict(Standing)
    for student, folder, timestamp, due in hand_in_times(book):
        found[student, folder].late = bool(timestamp and due and timestamp > due)
        found[student, folder].undated = bool(due and not timestamp)
    grades = (
        book.db.query(
            SubmittedAssignment.student_id, Assignment.name, Grade.score, GradeCell.max_score, Grade.needs_manual_grade
        )
        .select_from(Grade)
        .join(GradeCell, Grade.cell_id == GradeCell.id)
        .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
    )
    for student, folder, score, most, waiting in grades:
        standing = found[student, folder]
        standing.mark += score
        standing.max_score += most
        standing.to_mark += bool(waiting)
    penalties = (
        book.db.query(SubmittedAssignment.student_id, Assignment.name, SubmittedNotebook.late_submission_penalty)
        .select_from(SubmittedNotebook)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .filter(SubmittedNotebook.late_submission_penalty.isnot(None))
    )
    for student, folder, penalty in penalties:
        standing = found[student, folder]
        standing.penalty += penalty
        standing.mark = max(0.0, standing.mark - penalty)
    return dict(found)
