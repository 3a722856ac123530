"""nbgrader's own ways into the engine give the marks that `autograder grade` gives, on SQLite and on PostgreSQL."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from nbgrader.apps.api import NbGraderAPI
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from autograder import cli
from autograder.course import gradebook

pytestmark = pytest.mark.usefixtures("sandboxed")

MARKS = """
    SELECT sa.student_id, bc.name, g.auto_score, g.needs_manual_grade
    FROM grade g JOIN base_cell bc ON g.cell_id = bc.id
    JOIN submitted_notebook sn ON g.notebook_id = sn.id JOIN submitted_assignment sa ON sn.assignment_id = sa.id
"""
COMMENTS = """
    SELECT sa.student_id, bc.name, c.auto_comment FROM comment c JOIN base_cell bc ON c.cell_id = bc.id
    JOIN submitted_notebook sn ON c.notebook_id = sn.id JOIN submitted_assignment sa ON sn.assignment_id = sa.id
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, course, monkeypatch) -> str:
    """The address of an empty gradebook, which `nbgrader_config.py` uses."""
    if request.param == "sqlite":
        return f"sqlite:///{course.root}/classroom/gradebook.db"
    server = request.getfixturevalue("postgresql")
    with create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT").connect() as db:
        db.execute(text("DROP DATABASE IF EXISTS marks"))
        db.execute(text("CREATE DATABASE marks"))
    monkeypatch.setenv("GRADEBOOK_URL", f"{server}/marks")
    return f"{server}/marks"


def marks(url: str) -> list[tuple]:
    engine = create_engine(url)
    with engine.connect() as db:
        found = sorted((*row[:3], bool(row[3])) for row in db.execute(text(MARKS)))
    engine.dispose()
    return found


def comments(url: str) -> dict[tuple[str, str], str]:
    engine = create_engine(url)
    with engine.connect() as db:
        found = {(student, cell): told for student, cell, told in db.execute(text(COMMENTS))}
    engine.dispose()
    return found


def forget_marks(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as db:
        db.execute(text("UPDATE grade SET auto_score = 99"))
        db.execute(text("UPDATE comment SET auto_comment = 'Anything.'"))
    engine.dispose()


@pytest.fixture
def mixed_class(hand_in) -> list[str]:
    """A right, a wrong, an untouched, a broken, a naked and a maimed submission."""
    right = {"double": "return x + x", "halve": "return x / 2", "why": "Because."}
    hand_in("ada", "01_numbers", **right)
    hand_in("ben", "01_numbers", double="return 6", halve="return x / 2", why="So.")
    hand_in("cem", "01_numbers")
    hand_in("dan", "01_numbers", **right).write_text("no notebook")
    naked = hand_in("eve", "01_numbers", **right)
    notebook = nbformat.read(naked, as_version=4)
    for cell in notebook.cells:
        cell.metadata = {}
    nbformat.write(notebook, naked)
    maimed = hand_in("fay", "01_numbers", **right)
    notebook = json.loads(maimed.read_text())
    notebook["cells"] = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") != "double"]
    notebook["cells"].append(notebook["cells"][-1])
    maimed.write_text(json.dumps(notebook))
    return ["ada", "ben", "cem", "dan", "eve", "fay"]


def test_all_ways_give_the_same_marks(course, url, mixed_class):
    assert CliRunner().invoke(cli.app, ["grade", "--workers", "1"]).exit_code == 3, "dan's is no notebook"
    expected = marks(url)
    scores = {(student, cell): score for student, cell, score, _ in expected}
    assert scores["ada", "double_check"] == scores["eve", "double_check"] == 2
    assert scores["ben", "double_check"] == scores["dan", "double_check"] == scores["fay", "double_check"] == 0
    assert len(expected) == 3 * len(mixed_class)
    told = comments(url)
    assert told["cem", "why"] == told["fay", "double"] == "No response." and told["ada", "why"] is None
    assert {told["dan", name] for name in ("double", "halve", "why")} == {None}, "nobody has read dan's"

    forget_marks(url)
    subprocess.run([sys.executable, "-m", "nbgrader", "autograde", "01_numbers", "--force"], check=True)
    assert (marks(url), comments(url)) == (expected, told)

    forget_marks(url)
    app = gradebook.configure(course)
    api = NbGraderAPI(coursedir=app.coursedir, parent=app)
    for student in mixed_class:
        assert api.autograde("01_numbers", student)["success"]
    assert (marks(url), comments(url)) == (expected, told)
    for student in mixed_class:
        graded = course.root / "classroom/autograded" / student / "01_numbers/numbers_chapter.ipynb"
        nbformat.validate(nbformat.read(graded, as_version=4))


def test_nbgraders_feedback_shows_formulas_and_fetches_nothing(course, hand_in):
    solution = course.solution(course.find("01"))
    notebook = nbformat.read(solution, as_version=4)
    prose = next(cell for cell in notebook.cells if cell.cell_type == "markdown" and "nbgrader" not in cell.metadata)
    prose.source = "# Numbers with $\\sqrt{d}$"
    nbformat.write(notebook, solution)
    hand_in("ada", "01_numbers", why="Because $\\frac{x}{2}$.")
    assert CliRunner().invoke(cli.app, ["grade", "01", "--workers", "1"]).exit_code == 0
    subprocess.run([sys.executable, "-m", "nbgrader", "generate_feedback", "01_numbers"], check=True)
    page = (course.root / "classroom/feedback/ada/01_numbers/numbers_chapter.html").read_text()
    assert "<msqrt>" in page and "<mfrac>" in page
    assert re.findall(r"""(?:src|import)\b[^\n]{0,10}http[^\s"']*""", page) == []
