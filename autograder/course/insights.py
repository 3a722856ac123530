"""What a class got wrong: one page for the instructor, and the same as JSON and CSV.

It reads the verdicts that `autograder grade` recorded beside the graded notebooks, and times and marks by hand from the
gradebook. Nobody's name stands beside an answer. What students wrote is text on the page, whatever it holds.
"""

import ast
import json
import os
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from nbgrader.api import Assignment, BaseCell, Grade, Gradebook, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.apps.baseapp import NbGrader

from autograder.cells import exercise_of
from autograder.course import gradebook
from autograder.course.curriculum import Chapter, Course, CourseError, Exercise
from autograder.course.files import replace_file, replace_table
from autograder.course.prose import first_hint, folded_hints, formatted, with_code
from autograder.course.receipts import read_receipts
from autograder.course.standing import hand_in_times
from autograder.mistakes import Unexplained
from autograder.plain import cell, shown
from autograder.verdict import Finding, Item, Status

# So many answers with a mistake are looked through for the one that occurs most often.
_LOOKED_THROUGH = 20
_LONGEST_ANSWER = 4_000
# So many mistakes of an exercise are on the page, each with an answer; the rarer ones are in the tables.
SHOWN = 8
# Below this correlation with the rest of a student's marks an exercise tells nobody apart: the customary threshold.
_LEAST_DISCRIMINATION = 0.2
_FEWEST_TO_JUDGE_BY = 10
# Whose last two chapters lie this far below the ones before has fallen behind.
_FALL = 0.25
_BEFORE = (
    ("more than a week before", 7 * 24),
    ("two to seven days before", 48),
    ("the day before last", 24),
    ("the last day", 1),
    ("the last hour", 0),
)


@dataclass
class MadeMistake:
    """A mistake in a class: how many students made it, and an answer that makes it.

    Attributes:
        id: the exercise and the id of the mistake, which stay when its sentence is reworded.
        name: its sentence; where the mistake is not known, what one of those who made it was told.
        named: whether the check knew the mistake.
        says: a fact that students were shown.
        count: how many students.
        share: of those who handed the chapter in.
        answer: the commonest answer, without comments and docstrings.
    """

    id: str
    name: str
    named: bool
    says: str
    count: int = 0
    share: float = 0.0
    answer: str = ""


@dataclass
class ExerciseInsight:
    """One exercise in a class.

    Attributes:
        solved: share of those who handed in that got all points; None for an answer that is marked by hand.
        mean: the mean share of its points; of an answer that is marked by hand over the marks given so far.
        statuses: how many verdicts of each kind, `passed` and `not attempted` among them.
        discrimination: correlation with the rest of the student's marks; None where it cannot be told.
        remark: why it tells nobody apart, if it does not.
        to_mark: answers that wait for a mark by hand.
        marked: answers that were given one.
        unanswered: what has 0 points without anybody's mark: empty, as handed out, or in a notebook that is unreadable.
        hint: the nudge that the chapter itself gives, as Markdown.
    """

    name: str
    points: float
    kind: str
    solved: float | None = None
    mean: float | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    discrimination: float | None = None
    remark: str = ""
    to_mark: int = 0
    marked: int = 0
    unanswered: int = 0
    hint: str = ""
    mistakes: list[MadeMistake] = field(default_factory=list)


@dataclass
class ChapterInsight:
    """One chapter in a class: how many handed it in, when, its exercises, and of whom nothing is there."""

    folder: str
    title: str
    handed_in: int
    late: int
    times: list[tuple[str, int, float]]
    """(when, how many, their mean share of the points)"""
    exercises: list[ExerciseInsight]
    missing: list[str]
    """who is in the gradebook, and without a graded hand-in"""


@dataclass
class Line:
    """A student's way through the chapters: the share of the points in each, None where nothing was handed in."""

    student: str
    shares: list[float | None]
    mean: float
    behind: bool


@dataclass
class Insights:
    """All that the page shows."""

    course: str
    students: int
    chapters: list[ChapterInsight]
    lines: list[Line]


@dataclass(frozen=True)
class Verdicts:
    """What was recorded of one notebook: an item for each check, and the text of each answer."""

    student: str
    folder: str
    items: list[Item]
    answers: dict[str, str]

    @cached_property
    def of_exercise(self) -> dict[str, list[Item]]:
        """The checks of each exercise."""
        found: dict[str, list[Item]] = {}
        for item in self.items:
            found.setdefault(exercise_of(item.grade_id), []).append(item)
        return found


@dataclass(frozen=True)
class Marks:
    """What the gradebook adds: who is in the class, when they handed in, due dates, answers that are marked by hand."""

    students: list[str] = field(default_factory=list)
    times: dict[tuple[str, str], datetime] = field(default_factory=dict)
    due: dict[tuple[str, str], datetime] = field(default_factory=dict)
    by_hand: dict[tuple[str, str, str], tuple[float, bool, bool]] = field(default_factory=dict)
    """(student, folder, exercise): the mark, whether it is still to be given, and whether somebody gave it"""


def run(course: Course, chapters: list[Chapter], nbgrader: NbGrader | None = None) -> Path:
    """Write `insights.html`, `insights.json` and `insights.csv` beside the gradebook's folder of graded notebooks.

    Args:
        course: the course, with its solutions.
        chapters: which to show.
        nbgrader: nbgrader configured otherwise than by `nbgrader_config.py`.

    Returns:
        The page.

    Raises:
        CourseError: nothing was graded yet.
    """
    nbgrader = nbgrader or gradebook.configure(course)
    verdicts = read_verdicts(nbgrader, chapters)
    if not verdicts:
        raise CourseError("there is nothing graded to look into; run `autograder grade` first")
    with gradebook.open_gradebook(nbgrader) as book:
        marks = read_marks(book)
    hints = {chapter.folder: read_hints(course.solution(chapter)) for chapter in chapters}
    insights = look_into(nbgrader.coursedir.course_id, chapters, verdicts, marks, hints)
    page = page_of(nbgrader)
    page.parent.mkdir(parents=True, exist_ok=True)
    replace_file(page, render(insights).encode(errors="backslashreplace"))
    data = json.dumps(insights, default=vars, ensure_ascii=False) + "\n"
    replace_file(page.with_suffix(".json"), data.encode(errors="backslashreplace"))
    _write_csv(page.with_suffix(".csv"), insights)
    return page


def page_of(nbgrader: NbGrader) -> Path:
    """Where the page lies: beside the folder of graded notebooks."""
    graded = nbgrader.coursedir.format_path(nbgrader.coursedir.autograded_directory, ".", ".")
    return Path(os.path.normpath(graded)).parent / "insights.html"


def read_verdicts(nbgrader: NbGrader, chapters: Iterable[Chapter]) -> list[Verdicts]:
    """The verdicts that `autograder grade` recorded for these chapters, students in order."""
    return [
        Verdicts(student, chapter.folder, receipt.items, receipt.answers)
        for chapter in chapters
        for student, receipt in read_receipts(nbgrader, chapter)
    ]


def read_marks(book: Gradebook) -> Marks:
    """Students, times and marks by hand, in three questions to the gradebook however large the class is."""
    marks = Marks(sorted(student for (student,) in book.db.query(Student.id)))
    for student, folder, timestamp, due in hand_in_times(book):
        if timestamp:
            marks.times[student, folder] = timestamp
        if due:
            marks.due[student, folder] = due
    written = (
        book.db.query(
            Assignment.name,
            SubmittedAssignment.student_id,
            BaseCell.name,
            Grade.score,
            Grade.needs_manual_grade,
            Grade.manual_score.isnot(None),
        )
        .select_from(Grade)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .filter(~BaseCell.name.contains("_check"))
    )
    for folder, student, name, score, waiting, given in written:
        marks.by_hand[student, folder, name] = (float(score), bool(waiting), bool(given))
    return marks


def read_hints(source: Path) -> dict[str, str]:
    """The first hint below each exercise of a chapter, as Markdown."""
    folded = folded_hints(json.loads(source.read_bytes())["cells"])
    return {name: first_hint(texts) for name, texts in folded.items()}


def look_into(
    course: str,
    chapters: Iterable[Chapter],
    verdicts: Iterable[Verdicts],
    marks: Marks,
    hints: Mapping[str, Mapping[str, str]],
) -> Insights:
    """Work out what the class got wrong.

    Args:
        course: its name.
        chapters: which to show.
        verdicts: what was recorded of each notebook.
        marks: what the gradebook adds.
        hints: for each chapter's folder and exercise, the chapter's first hint.

    Returns:
        All that the page shows.
    """
    of_chapter: dict[str, list[Verdicts]] = defaultdict(list)
    for one in verdicts:
        of_chapter[one.folder].append(one)
    shares = _shares(of_chapter)
    totals: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for (student, _, _), (earned, most) in shares.items():
        before = totals[student]
        totals[student] = (before[0] + earned, before[1] + most)
    shown = []
    for chapter in chapters:
        handed_in = of_chapter.get(chapter.folder, [])
        if not handed_in:
            continue
        exercises = []
        for exercise in chapter.exercises:
            insight = ExerciseInsight(exercise.name, exercise.points, exercise.kind)
            insight.hint = hints.get(chapter.folder, {}).get(exercise.name, "")
            if exercise.kind == "written":
                _look_into_written(insight, chapter, handed_in, marks)
            else:
                own = {v.student: shares[v.student, chapter.folder, exercise.name] for v in handed_in}
                _look_into_code(insight, exercise, handed_in)
                _discriminate(insight, own, totals)
            exercises.append(insight)
        times = _times(chapter, handed_in, marks)
        late = sum(
            marks.times[key] > marks.due[key] for key in _keys(handed_in) if key in marks.due.keys() & marks.times
        )
        there = {v.student for v in handed_in}
        missing = [student for student in marks.students if student not in there]
        shown.append(ChapterInsight(chapter.folder, chapter.title, len(handed_in), late, times, exercises, missing))
    return Insights(course, len(totals), shown, _lines([c.folder for c in shown], of_chapter))


def _keys(verdicts: list[Verdicts]) -> list[tuple[str, str]]:
    return [(v.student, v.folder) for v in verdicts]


def _shares(of_chapter: Mapping[str, list[Verdicts]]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """For each student, chapter and exercise with checks: the points earned, and those there were."""
    shares: dict[tuple[str, str, str], tuple[float, float]] = {}
    for folder, verdicts in of_chapter.items():
        for one in verdicts:
            for exercise, items in one.of_exercise.items():
                earned, most = sum(item.points for item in items), sum(item.max_points for item in items)
                shares[one.student, folder, exercise] = (earned, most)
    return shares


def _look_into_written(insight: ExerciseInsight, chapter: Chapter, handed_in: list[Verdicts], marks: Marks) -> None:
    marked = [marks.by_hand.get((v.student, chapter.folder, insight.name)) for v in handed_in]
    found = [mark for mark in marked if mark is not None]
    insight.to_mark = sum(waiting for _, waiting, _ in found)
    # What is empty or unreadable has 0 points at once: before the first mark the mean would be theirs alone.
    given = [score / insight.points for score, waiting, by_hand in found if by_hand and not waiting]
    insight.marked = len(given)
    insight.unanswered = len(found) - insight.to_mark - insight.marked
    insight.mean = statistics.fmean(given) if given else None


def _look_into_code(insight: ExerciseInsight, exercise: Exercise, handed_in: list[Verdicts]) -> None:
    statuses: Counter[str] = Counter()
    made: dict[str, MadeMistake] = {}
    answers: dict[str, list[str]] = defaultdict(list)
    solved, earned, most = 0, 0.0, 0.0
    for one in handed_in:
        items = one.of_exercise.get(exercise.name, [])
        wrong = [item for item in items if item.status != Status.PASSED]
        statuses[wrong[0].status if wrong else Status.PASSED] += 1
        solved += not wrong
        earned, most = earned + sum(i.points for i in items), most + sum(i.max_points for i in items)
        told = [i for i in wrong if i.status not in (Status.NOT_ATTEMPTED, Status.MISSING)]
        mistakes = {mistake.id: mistake for mistake in (_made(exercise.name, item) for item in told)}
        for key, mistake in mistakes.items():
            made.setdefault(key, mistake).count += 1
            if len(answers[key]) < _LOOKED_THROUGH and (answer := one.answers.get(exercise.name)):
                answers[key].append(answer)
    insight.solved = solved / len(handed_in)
    insight.mean = earned / most if most else None
    insight.statuses = dict(statuses)
    insight.mistakes = sorted(made.values(), key=lambda mistake: (-mistake.count, mistake.id))
    for number, mistake in enumerate(insight.mistakes):
        mistake.share = mistake.count / len(handed_in)
        if number < SHOWN:
            mistake.answer = _typical(answers[mistake.id])


def _made(exercise: str, item: Item) -> MadeMistake:
    """The mistake that a verdict tells of; where the check knew none, the first line of what it said."""
    finding = item.finding or Finding(what=item.message)
    if finding.mistake:
        named = finding.mistake not in {mistake.id for mistake in Unexplained}
        return MadeMistake(f"{exercise}/{finding.mistake}", finding.says, named, finding.fact)
    first = item.message.strip().split("\n")[0][:200] or str(item.status)
    return MadeMistake(f"{exercise}/unnamed/{_kind(first)}", first, False, item.message)


def _kind(told: str) -> str:
    """What the messages of a mistake that has no name have in common: all but the numbers."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", told)


def _typical(answers: list[str]) -> str:
    """The commonest of some answers, reduced to its code, so that no comment names anybody."""
    if not answers:
        return ""
    alike: dict[str, list[str]] = defaultdict(list)
    for answer in answers:
        alike[re.sub(r"#.*|\s+", "", answer)].append(answer)
    commonest = max(map(len, alike.values()))
    typical = min((texts[0] for texts in alike.values() if len(texts) == commonest), key=len)
    return _code_of(typical)[:_LONGEST_ANSWER]


def _code_of(answer: str) -> str:
    try:
        tree = ast.parse(answer)
        for node in _definitions(tree.body):
            if _is_docstring(node.body[0]):
                node.body = node.body[1:] or [ast.Pass()]
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "\n".join(line for line in answer.splitlines() if not line.lstrip().startswith("#"))


def _definitions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
            yield from _definitions(node.body)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def _discriminate(
    insight: ExerciseInsight, own: Mapping[str, tuple[float, float]], totals: Mapping[str, tuple[float, float]]
) -> None:
    """How well an exercise tells apart those who did well in all the rest from those who did not."""
    if len(own) < _FEWEST_TO_JUDGE_BY:
        return
    if insight.solved in (0, 1):
        insight.remark = "nobody solved it" if insight.solved == 0 else "everyone solved it"
        return
    pairs = [
        (earned / most, (totals[student][0] - earned) / (totals[student][1] - most))
        for student, (earned, most) in own.items()
        if most and totals[student][1] > most
    ]
    this, rest = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(this)) < 2 or len(set(rest)) < 2:
        return
    insight.discrimination = statistics.correlation(this, rest)
    if insight.discrimination < _LEAST_DISCRIMINATION:
        insight.remark = "who solved it did hardly better elsewhere than who did not"


def _times(chapter: Chapter, handed_in: list[Verdicts], marks: Marks) -> list[tuple[str, int, float]]:
    """When a chapter was handed in: against the due date, or by days where there is none."""
    groups: dict[str, list[float]] = {}
    share = {v.student: sum(i.points for i in v.items) / (sum(i.max_points for i in v.items) or 1) for v in handed_in}
    timed = sorted((marks.times[key], key) for key in _keys(handed_in) if key in marks.times)
    with_due = any(key in marks.due for _, key in timed)
    if with_due:
        groups = {label: [] for label in (*dict(_BEFORE), "late")}
    for when, key in timed:
        groups.setdefault(_when(when, marks.due.get(key)), []).append(share[key[0]])
    return [(label, len(group), statistics.fmean(group) if group else 0.0) for label, group in groups.items()]


def _when(when: datetime, due: datetime | None) -> str:
    if due is None:
        return f"{when:%Y-%m-%d}"
    hours = (due - when).total_seconds() / 3600
    return next((label for label, least in _BEFORE if hours >= least), "late")


def _lines(folders: list[str], of_chapter: Mapping[str, list[Verdicts]]) -> list[Line]:
    points: dict[str, dict[str, float]] = defaultdict(dict)
    for folder in folders:
        for one in of_chapter[folder]:
            most = sum(item.max_points for item in one.items) or 1
            points[one.student][folder] = sum(item.points for item in one.items) / most
    lines = []
    for student, of in sorted(points.items()):
        shares = [of.get(folder) for folder in folders]
        there = [share for share in shares if share is not None]
        before, last = there[:-2], there[-2:]
        behind = len(before) >= 2 and statistics.fmean(before) - statistics.fmean(last) >= _FALL
        lines.append(Line(student, shares, statistics.fmean(there), behind))
    return lines


def render(insights: Insights) -> str:
    """The page: no script, nothing from the network, and everything that came from a student as text."""
    here = Path(__file__).parent
    templates = Environment(
        loader=FileSystemLoader(here), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    templates.filters |= {"percent": _percent, "points_of": _points_of, "formatted": formatted}
    templates.filters["with_code"] = lambda sentence: with_code(shown(sentence))
    style = Markup((here / "page.css").read_text(encoding="utf-8"))
    return templates.get_template("insights.html").render(insights=insights, style=style, most=SHOWN)


def _shown(value: object) -> object:
    """Text with what would steer a reader's eye or terminal written out; line ends stay."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return shown(value)
    return value


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def _points_of(line: Line) -> list[str]:
    """A student's line as the points of polylines, one for each run of chapters that were handed in."""
    runs: list[list[str]] = [[]]
    for number, share in enumerate(line.shares):
        if share is None:
            runs.append([])
        else:
            runs[-1].append(f"{4 + 12 * number},{20 - 16 * share:.1f}")
    return [" ".join(run) for run in runs if run]


def _write_csv(file: Path, insights: Insights) -> None:
    """A row for each mistake, and one for each exercise without any."""
    heads = ("chapter", "exercise", "handed in", "solved", "discrimination", "to mark")
    rows: list[list[object]] = [[*heads, "mistake", "name", "on record", "students", "share"]]
    for chapter in insights.chapters:
        for exercise in chapter.exercises:
            told = [chapter.folder, exercise.name, chapter.handed_in, _rounded(exercise.solved)]
            told += [_rounded(exercise.discrimination), exercise.to_mark]
            for mistake in exercise.mistakes:
                made = ["yes" if mistake.named else "no", mistake.count, _rounded(mistake.share)]
                rows.append([*told, mistake.id, mistake.name, *made])
            if not exercise.mistakes:
                rows.append([*told, "", "", "", "", ""])
    replace_table(file, [[cell(value) for value in row] for row in rows])


def _rounded(value: float | None) -> float | str:
    return "" if value is None else round(value, 4)
