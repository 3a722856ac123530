"""What an instructor sees of a class: who handed in and when, and what the class is stuck on now."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.api import Assignment, Gradebook
from nbgrader.apps.baseapp import NbGrader

from autograder.course import gradebook, insights
from autograder.course.curriculum import Chapter, Course
from autograder.course.hand_ins import is_plain_file
from autograder.course.insights import ExerciseInsight, Verdicts
from autograder.course.receipts import read_items
from autograder.course.standing import due_date
from autograder.service import store as state
from autograder.service.store import Engine, Received

# What the class is stuck on now is read off the verdicts of so many hours.
HOURS = 2
_RECENT = 20
_MOST_IN_A_CHAPTER = 20_000


@dataclass
class ChapterRow:
    """One chapter in the class: by how many students it was handed in, how often, and how many verdicts are to come."""

    chapter: Chapter
    due: datetime | None
    students: int = 0
    hand_ins: int = 0
    waiting: int = 0


@dataclass
class Stuck:
    """An exercise that students tried within the last hours: how many have not solved it, of how many who tried."""

    chapter: Chapter
    exercise: ExerciseInsight
    wrong: int
    of: int


@dataclass
class StudentRow:
    """A student and one chapter: the hand-in that came last, the one that counts, and how many there were."""

    student: str
    name: str
    last: Received | None = None
    counted: Received | None = None
    hand_ins: int = 0


@dataclass
class Overview:
    """All that the first page shows."""

    students: int
    names: dict[str, str]
    chapters: list[ChapterRow]
    stuck: list[Stuck]
    recent: list[Received]
    waiting: int = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = sum(row.waiting for row in self.chapters)


def look_over(course: Course, nbgrader: NbGrader, store: Engine) -> Overview:
    """What the first page shows, as it is now."""
    with gradebook.open_gradebook(nbgrader) as book:
        names, due = _names(book), due_dates(book)
    tally = state.tally(store)
    rows = [ChapterRow(c, due.get(c.folder), *tally.get(c.folder, ())) for c in course.chapters]
    stuck = stuck_on(course, state.last_verdicts(store, state.now() - timedelta(hours=HOURS)))
    return Overview(len(names), names, rows, stuck, state.newest(store, _RECENT))


def due_for(nbgrader: NbGrader, student: str) -> dict[str, datetime | None]:
    """When each chapter of the gradebook is due for a student, in UTC, extensions included."""
    with gradebook.open_gradebook(nbgrader) as book:
        return {folder: due_date(book, student, folder) for folder in due_dates(book)}


def due_dates(book: Gradebook) -> dict[str, datetime]:
    """When each chapter is due, in UTC, by its folder, without extensions."""
    asked = book.db.query(Assignment.name, Assignment.duedate).filter(Assignment.duedate.isnot(None))
    return {name: due for name, due in asked}


def _names(book: Gradebook) -> dict[str, str]:
    """What each student is called, by the name of the folder."""
    return {s.id: gradebook.full_name(s) for s in book.students}


def stuck_on(course: Course, ones: list[Received]) -> list[Stuck]:
    """The exercises that were tried and not solved, those first that most students are stuck on.

    Args:
        course: the course.
        ones: of each student and chapter a hand-in with its verdict.
    """
    found = []
    for chapter in course.chapters:
        verdicts = [
            Verdicts(one.student, chapter.folder, read_items(one.verdict.get("items", [])), {})
            for one in ones
            if one.chapter == chapter.folder and not one.verdict.get("ungradable")
        ]
        seen = insights.look_into("", [chapter], verdicts, insights.Marks(), {})
        for exercise in seen.chapters[0].exercises if verdicts else []:
            statuses = Counter(exercise.statuses)
            solved, untried = statuses["passed"], statuses["not attempted"] + statuses["missing"]
            if wrong := statuses.total() - solved - untried:
                found.append(Stuck(chapter, exercise, wrong, statuses.total() - untried))
    return sorted(found, key=lambda one: (-one.wrong, one.chapter.folder, one.exercise.name))


def of_chapter(nbgrader: NbGrader, store: Engine, chapter: Chapter) -> list[StudentRow]:
    """Who is in the class, or handed a chapter in, and when."""
    with gradebook.open_gradebook(nbgrader) as book:
        names = _names(book)
    rows = {student: StudentRow(student, name) for student, name in names.items()}
    for one in state.newest(store, _MOST_IN_A_CHAPTER, chapter.folder):
        row = rows.setdefault(one.student, StudentRow(one.student, ""))
        row.last = row.last or one
        row.counted = one if one.counts else row.counted
        row.hand_ins += 1
    return [rows[student] for student in sorted(rows)]


def insights_page(course: Course, nbgrader: NbGrader, chapter: Chapter) -> str | None:
    """What the class got wrong in a chapter, as it is now; None if nothing of it is graded."""
    verdicts = insights.read_verdicts(nbgrader, [chapter])
    if not verdicts:
        return None
    with gradebook.open_gradebook(nbgrader) as book:
        marks = insights.read_marks(book)
    hints = {chapter.folder: insights.read_hints(course.solution(chapter))}
    return insights.render(insights.look_into(nbgrader.coursedir.course_id, [chapter], verdicts, marks, hints))


def feedback_file(nbgrader: NbGrader, student: str, chapter: Chapter) -> Path | None:
    """The page that was given back to a student; None if none was."""
    coursedir = nbgrader.coursedir
    folder = Path(coursedir.format_path(coursedir.feedback_directory, student, chapter.folder))
    file = folder / f"{chapter.module}.html"
    return file if is_plain_file(file) else None


def feedback_given(nbgrader: NbGrader, chapter: Chapter) -> tuple[int, datetime | None]:
    """How many feedback pages of a chapter there are, and when the newest was written, in UTC."""
    coursedir = nbgrader.coursedir
    root, _, rest = coursedir.format_path(coursedir.feedback_directory, "*", chapter.folder).partition("*")
    times = [file.stat().st_mtime for file in Path(root).glob(f"*{rest}/{chapter.module}.html")]
    return len(times), datetime.fromtimestamp(max(times), UTC).replace(tzinfo=None) if times else None
