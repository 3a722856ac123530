"""`autograder replay`: a verdict given again, from the seed that was recorded with it, for an appeal."""

import dataclasses
import sys
from pathlib import Path

from autograder.cells import exercise_of
from autograder.course import gradebook
from autograder.course.chapter_grader import GradeChapter
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.hand_ins import find_hand_ins, submitted_folder
from autograder.course.receipts import folder_of, read_receipt
from autograder.job import grade_job
from autograder.plain import plain
from autograder.verdict import Item

SAME, OTHER = 0, 3


def run(course: Course, student: str, chapter: Chapter, exercise: str, *, submitted: Path | None = None) -> int:
    """Give the verdict on one exercise again, from its recorded seed, and show the case that failed.

    Args:
        course: the course, with its solutions.
        student: whose notebook.
        chapter: which one.
        exercise: which of its exercises.
        submitted: holds a folder for each student; the one that `nbgrader_config.py` names by default.

    Returns:
        The exit status: 0 when the verdict is the recorded one, 3 when it is another, or the notebook cannot be read.

    Raises:
        CourseError: there is no such notebook, exercise or recorded verdict.
    """
    if exercise not in [e.name for e in chapter.exercises if e.kind == "code"]:
        known = ", ".join(e.name for e in chapter.exercises if e.kind == "code")
        raise CourseError(f"{chapter.folder} has no exercise {exercise!r} with checks; it has {known}")
    nbgrader = gradebook.configure(course)
    submitted = submitted or submitted_folder(nbgrader)
    found = find_hand_ins(submitted.resolve(), [chapter], student) if submitted.is_dir() else []
    if not found:
        raise CourseError(f"{student} handed in no {chapter.folder} in {submitted}")
    receipt = read_receipt(folder_of(nbgrader, student, chapter))
    if receipt is None or receipt.seed is None:
        raise CourseError(f"no verdict on {student}'s {chapter.folder} is recorded; run `autograder grade` first")
    recorded = [item for item in receipt.items if exercise_of(item.grade_id) == exercise]
    job = GradeChapter(parent=nbgrader).job(found[0].path, course.solution(chapter))
    only = frozenset(item.grade_id for item in recorded)
    outcome = grade_job(dataclasses.replace(job, seed=receipt.seed, only=only, explain=True))
    if outcome.ungradable:
        print(f"autograder: {plain(student)}, {chapter.folder}: {plain(outcome.ungradable)}", file=sys.stderr)
        return OTHER
    same = [_compare(before, now, receipt.seed) for before, now in zip(recorded, outcome.items, strict=True)]
    return SAME if all(same) else OTHER


def _compare(before: Item, now: Item, seed: int) -> bool:
    """Show a verdict that was given again, and whether it is the recorded one."""
    print(f"{now.grade_id}: {now.status}, {now.points:g} of {now.max_points:g} points, seed {seed}")
    for line in now.message.splitlines():
        print(f"    {plain(line)}")
    if (before.status, before.points) == (now.status, now.points):
        return True
    told = f"recorded was: {before.status}, {before.points:g} points: {plain(before.message)}"
    print(f"autograder: {told}; has the notebook or a check changed since?", file=sys.stderr)
    return False
