"""Feedback pages: what came of a student's notebook, as a page for a phone.

A summary, then a card for each exercise: points, verdict, what the check said, the student's own answer, the
instructor's comment and the chapter's hints; the chapter as it was handed out is folded below. A page needs no network
and holds no script. What a student wrote is text on it; what is formatted comes from `solutions/`, or is a
comment, which may hold nothing that acts.
"""

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import bleach
import nbformat
from bleach.css_sanitizer import CSSSanitizer
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.baseapp import NbGrader
from traitlets import Unicode
from traitlets.config import LoggingConfigurable

from autograder.cells import flags_of
from autograder.course import gradebook
from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.files import replace_file
from autograder.course.prose import comment_as_html, folded_hints, formatted, with_code
from autograder.course.receipts import read_receipt
from autograder.course.standing import refresh_penalties
from autograder.plain import shown
from autograder.submission import repair
from autograder.verdict import Finding, Item, in_words

# Beyond this an answer or a message is cut short: a page is read on a phone.
_LONGEST = 20_000
_MAP_TAGS = ["div", "table", "caption", "tbody", "tr", "td"]
_MAP_STYLES = CSSSanitizer(
    allowed_css_properties=[
        "background", "border-collapse", "color", "display", "flex-wrap", "font-size", "gap", "margin-top", "padding",
        "text-align", "white-space",
    ]
)  # fmt: skip


class FeedbackPages(LoggingConfigurable):
    """What an instructor can set about feedback pages."""

    book_url = Unicode("", help="address of the web book, for a link from each page").tag(config=True)


@dataclass
class Remark:
    """What one check said: its status, the mistake, the fact, the student's own frames, and heat maps of numbers."""

    status: str
    mistake: str
    fact: str
    frames: str = ""
    maps: str = ""


@dataclass
class Card:
    """One exercise on the page.

    `verdict` is passed, partly right, failed, not attempted, …, or "to be marked" while a mark by hand is missing,
    "not read" where the notebook could not be graded. Of code it is the checks', whatever mark a person gave.
    """

    name: str
    answer: str
    written: bool
    verdict: str = ""
    points: float = 0.0
    max_points: float = 0.0
    remarks: list[Remark] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    """what a person wrote about the answer, as Markdown: formgrader's box says so"""
    hints: list[Markup] = field(default_factory=list)
    by_hand: bool = False
    """whether a person gave the mark of code, in place of the checks"""


@dataclass
class Sheet:
    """All that a page shows."""

    student: str
    """their name where the gradebook knows it, else that of their folder"""
    title: str
    cards: list[Card]
    points: float
    max_points: float
    penalty: float
    chapter: Markup
    book: str
    ungradable: str = ""
    """why the notebook could not be graded, if it could not"""


def write(course: Course, chapters: list[Chapter], student: str | None = None) -> int:
    """Write the feedback pages of graded notebooks.

    Args:
        course: the course, with its solutions.
        chapters: the chapters whose graded notebooks get a page.
        student: only this student's.

    Returns:
        How many pages were written.

    Raises:
        CourseError: nothing was graded yet.
    """
    nbgrader = gradebook.configure(course)
    coursedir = nbgrader.coursedir
    settings = FeedbackPages(parent=nbgrader)
    pages = 0
    with gradebook.open_gradebook(nbgrader) as book:
        refresh_penalties(nbgrader, book)
        names = {known.id: shown(gradebook.full_name(known)) for known in book.students}
        for chapter in chapters:
            graded = list(_graded(nbgrader, chapter, student))
            if not graded:
                continue
            handed_out = _handed_out(course.solution(chapter))
            folded, hints = render_chapter(handed_out), _hints(handed_out)
            link = f"{settings.book_url.rstrip('/')}/chapters/{chapter.folder}/{chapter.module}.html"
            for name, path in graded:
                sheet = _sheet(nbgrader, book, chapter, name, path, hints)
                sheet.student = names.get(name) or name
                sheet.chapter, sheet.book = folded, link if settings.book_url else ""
                folder = Path(coursedir.format_path(coursedir.feedback_directory, name, chapter.folder))
                folder.mkdir(parents=True, exist_ok=True)
                replace_file(folder / f"{chapter.module}.html", render(sheet).encode(errors="backslashreplace"))
                pages += 1
    if not pages:
        raise CourseError("there is nothing graded to give feedback on; run `autograder grade` first")
    return pages


def _graded(nbgrader: NbGrader, chapter: Chapter, student: str | None) -> Iterator[tuple[str, Path]]:
    """The graded notebooks of a chapter, by student."""
    coursedir = nbgrader.coursedir
    root, _, rest = coursedir.format_path(coursedir.autograded_directory, "*", chapter.folder).partition("*")
    for path in sorted(Path(root).glob(f"*{rest}/{chapter.module}.ipynb")):
        name = path.relative_to(root).parts[0]
        if student in (None, name):
            yield name, path


def _handed_out(source: Path) -> NotebookNode:
    notebook, _ = repair(nbformat.v4.new_notebook(), nbformat.read(source, as_version=4))
    return notebook


def _hints(handed_out: NotebookNode) -> dict[str, list[Markup]]:
    return {name: [formatted(text) for text in texts] for name, texts in folded_hints(handed_out.cells).items()}


def render_chapter(handed_out: NotebookNode) -> Markup:
    """A chapter as it was handed out, pictures as their descriptions; links to other cells and files are text."""
    parts = []
    for cell in handed_out.cells:
        if cell.cell_type == "code":
            parts.append(f'<pre tabindex="0">{html.escape(cell.source)}</pre>')
        elif cell.cell_type == "markdown":
            parts.append(formatted(cell.source))
    return Markup("\n".join(parts))


def _sheet(
    nbgrader: NbGrader, book: Gradebook, chapter: Chapter, student: str, path: Path, hints: dict[str, list[Markup]]
) -> Sheet:
    notebook = nbformat.read(path, as_version=4)
    receipt = read_receipt(path.parent)
    told = {item.grade_id: item for item in receipt.items} if receipt else {}
    ungradable = receipt.ungradable if receipt else ""
    grades, comments, penalty = {}, {}, 0.0
    try:
        submitted = book.find_submission_notebook(chapter.module, chapter.folder, student)
        grades = {grade.name: grade for grade in submitted.grades}
        # What a person wrote: nbgrader's own "No response." is nobody's word.
        comments = {comment.name: comment.manual_comment for comment in submitted.comments}
        penalty = submitted.late_submission_penalty or 0.0
    except MissingEntry:
        pass  # graded, and taken out of the gradebook since
    cards: list[Card] = []
    earned: dict[str, float] = {}  # by the checks alone, where there are any
    for cell in notebook.cells:
        about = flags_of(cell)
        name = about.get("grade_id", "")
        if about.get("solution"):
            # Of a notebook that could not be read, what stands here was handed out and not written by the student.
            answer = "" if ungradable else shown(cell.source[:_LONGEST])
            cards.append(Card(name, answer, cell.cell_type != "code", hints=hints.get(name, [])))
        if not cards or not (about.get("grade") or about.get("solution")):
            continue
        card = cards[-1]
        if comments.get(name):
            card.comments.append(shown(comments[name]))
        if about.get("grade"):
            grade = grades.get(name)
            card.points += grade.score if grade else 0.0
            if grade is not None and not card.written:
                card.by_hand |= grade.manual_score is not None or bool(grade.extra_credit)
                earned[card.name] = earned.get(card.name, 0.0) + (grade.auto_score or 0.0)
            card.max_points += grade.max_score if grade else float(about.get("points", 0))
            if grade is not None and grade.needs_manual_grade:
                card.verdict = "to be marked"
            elif grade is not None and card.written and grade.manual_score is None:
                card.verdict = "not attempted"  # nbgrader itself marks what was left as it was
            if cell.cell_type == "code" and not ungradable:
                card.remarks += _remarks(cell, told.get(name))
    for card in cards:
        card.verdict = "not read" if ungradable else card.verdict or _verdict(card, earned.get(card.name, card.points))
    points, most = sum(c.points for c in cards), sum(c.max_points for c in cards)
    return Sheet(
        student, chapter.title, cards, max(0.0, points - penalty), most, penalty, Markup(""), "", shown(ungradable)
    )


def _verdict(card: Card, earned: float) -> str:
    if card.max_points and earned >= card.max_points:
        return "passed"
    wrong = next((in_words(r.status) for r in card.remarks if r.status != "passed"), "")
    return "partly right" if earned else wrong or ("marked" if card.written else "failed")


def _remarks(cell: NotebookNode, item: Item | None) -> list[Remark]:
    """What a check cell says: the recorded finding, and what its outputs show of it."""
    if item is None or not item.message:
        return []
    maps = "".join(
        output.data["text/html"]
        for output in cell.outputs
        if output.output_type == "display_data" and isinstance(output.data.get("text/html"), str)
    )
    frames = "\n".join(line for o in cell.outputs if o.output_type == "error" for line in o.traceback[1:])
    finding = item.finding or Finding(what=item.message)
    drawn = Markup(bleach.clean(maps, tags=_MAP_TAGS, attributes={"*": ["style"]}, css_sanitizer=_MAP_STYLES))
    says, fact, where = (shown(text[:_LONGEST]) for text in (finding.says, finding.fact, frames))
    return [Remark(item.status, says, fact, where, drawn)]


def render(sheet: Sheet) -> str:
    """The page."""
    here = Path(__file__).parent
    templates = Environment(loader=FileSystemLoader(here), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates.filters["number"] = lambda points: f"{round(points, 2):g}"
    templates.filters["with_code"] = with_code
    templates.filters["comment_as_html"] = comment_as_html
    style = Markup((here / "page.css").read_text(encoding="utf-8"))
    return templates.get_template("feedback.html").render(sheet=sheet, style=style)
