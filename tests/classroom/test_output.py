"""What leaves the classroom: feedback pages, exported marks, and the example class."""

import csv
import json
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import cli
from autograder.answers import Answer
from autograder.course import example_class
from autograder.course.check import MARKS
from autograder.course.curriculum import find_course
from autograder.course.prose import first_hint, folded_hints, formatted
from autograder.verdict import Status, in_words

pytestmark = pytest.mark.usefixtures("sandboxed")

REPOSITORY = Path(__file__).parents[2]


def run(*arguments: object) -> str:
    done = CliRunner().invoke(cli.app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def graded(course, hand_in) -> Path:
    """Two students graded; returns the classroom."""
    hand_in("ada", "01_numbers", double="return x + x", halve="return x / 2", why="Because.")
    hand_in("ada", "02_words", shout="return text.upper()")
    hand_in("ben", "01_numbers", double="return 6", halve="return undefined_name")
    run("grade", "--workers", 1)
    return course.root / "classroom"


def test_feedback_shows_messages_and_nothing_that_is_hidden(course, graded):
    run("feedback")
    page = (graded / "feedback/ben/01_numbers/numbers_chapter.html").read_text()
    assert "signs" in page, "the message of the failed check"
    assert "undefined_name" in page and "NameError" in page, "the student's own error"
    for hidden in (
        "double(-1)",
        "HIDDEN",
        "return 2 * x",
        "Because.",
        str(course.root),
        str(Path.home()),
        str(REPOSITORY),
    ):
        assert hidden not in page, hidden
    assert (graded / "feedback/ada/02_words/words_chapter.html").is_file()
    assert not list((graded / "feedback").rglob("*.json"))


def test_a_feedback_page_says_first_what_came_of_it_and_then_why(course, graded):
    run("feedback")
    ben = (graded / "feedback/ben/01_numbers/numbers_chapter.html").read_text()
    assert ben.index("0 of 4 points") < ben.index('href="#double"') < ben.index('id="double"') < ben.index("return 6")
    assert ben.index("return 6") < ben.index("The chapter, as it was handed out")
    ada = (graded / "feedback/ada/01_numbers/numbers_chapter.html").read_text()
    assert "to be marked,\n– of 1" in ada and "1 answer is still to be marked" in ada
    assert "marked" not in ben, "what was left as it was is not attempted: nobody has marked it"


def test_what_a_student_wrote_is_text_on_the_feedback_page(course, hand_in):
    evil = "<script>alert(1)</script> **bold** $x^2$ [x](javascript:alert(1)) ![x](https://evil/seen.png)"
    hand_in("ada", "01_numbers", double=f"raise ValueError('''{evil}''')", why=evil)
    run("grade", "--workers", 1)
    run("feedback")
    page = (course.root / "classroom/feedback/ada/01_numbers/numbers_chapter.html").read_text()
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt; **bold** $x^2$ [x](javascript:alert(1))") >= 3
    assert not any(sign in page for sign in ("<script", "<strong>bold", "<math", 'href="javascript', "<img", "src="))


def test_comments_points_and_penalties_are_on_the_page(course, graded):
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "attention") as book:
        grade = book.find_grade("why", "numbers_chapter", "01_numbers", "ada")
        grade.manual_score, grade.needs_manual_grade = 0.5, False
        comment = book.find_comment("why", "numbers_chapter", "01_numbers", "ada")
        comment.manual_comment = (
            "Half <of> it. **Warum**? $n\\,m$ [x](javascript:alert(1)) ![a map](https://evil/seen.png)"
        )
        submission = book.find_submission("01_numbers", "ada")
        submission.assignment.duedate, submission.timestamp = datetime(2026, 1, 1), datetime(2026, 1, 2)
        book.db.commit()
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    run("feedback")
    page = (graded / "feedback/ada/01_numbers/numbers_chapter.html").read_text()
    assert "Half &lt;of&gt; it. <strong>Warum</strong>? <math" in page and "partly right" in page
    assert "$n" not in page and "<em>[picture: a map]</em>" in page
    assert not any(sign in page for sign in ("javascript:", "<img", "evil/"))
    assert "0 of 4 points" in page and "3.5 taken off for handing in late" in page


def test_a_mark_given_by_hand_stands_beside_what_the_check_said(graded, hand_in):
    """Both ways: for an answer that was never written, and against a check that passed."""
    hand_in("cem", "01_numbers", double="return 2 * x")
    run("grade", "--workers", 1)
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "attention") as book:
        for student, name, score in (("ada", "double", 1.5), ("cem", "halve", 1.0), ("ben", "double", 0.5)):
            book.find_grade(f"{name}_check", "numbers_chapter", "01_numbers", student).manual_score = score
        book.db.commit()
    run("feedback")
    ada, ben, cem = (
        " ".join((graded / f"feedback/{student}/01_numbers/numbers_chapter.html").read_text().split())
        for student in ("ada", "ben", "cem")
    )
    assert "</a>: passed, 1.5 of 2, a mark given by hand</li>" in ada
    assert "</a>: failed, 0.5 of 2, a mark given by hand</li>" in ben and "signs" in ben
    assert "– not attempted</strong> · 1 of 1, a mark given by hand</span>" in cem
    assert [page.count("given by hand") for page in (ada, ben, cem)] == [2, 2, 2], "of the one exercise"


def test_a_feedback_page_says_whose_it_is_and_what_came_of_it_in_the_words_of_check(course, graded, hand_in):
    words = (REPOSITORY / "docs/student.md").read_text()
    assert all(f"\n| {in_words(status)} |" in words and in_words(status) in MARKS[status] for status in Status)
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text().replace("cell_seconds = 20", "cell_seconds = 0.5"))
    hand_in("ben", "01_numbers", double="while True: pass")
    run("grade", "--workers", 1)
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "attention") as book:
        book.update_or_create_student("ben", first_name="Ben", last_name="Braun <i>")
    run("feedback")
    ben = (graded / "feedback/ben/01_numbers/numbers_chapter.html").read_text()
    assert "✗ took too long</strong>" in ben and "timeout" not in ben
    assert "Feedback for Ben Braun &lt;i&gt;<" in ben
    assert "Feedback for ada<" in (graded / "feedback/ada/01_numbers/numbers_chapter.html").read_text()


def test_the_courses_own_text_needs_nothing_beside_it():
    text = "# A\n\n$d$ and `$d$` ![a map](x.svg) [there](02.ipynb) [site](https://example.org)\n\n$$x^2$$"
    page = formatted(text)
    assert page.count("<math") == 2 and "<code>$d$</code>" in page
    assert "[picture: a map]" in page and "<img" not in page
    assert "02.ipynb" not in page and 'href="https://example.org"' in page


def test_a_card_ends_with_the_hints_of_its_exercise():
    """In every chapter: no answer to a prediction, nothing that the text goes on with, and no hint is lost."""
    course = find_course(REPOSITORY)
    for chapter in course.curriculum:
        cells = json.loads(course.solution(chapter).read_bytes())["cells"]
        hints = folded_hints(cells)
        assert set(hints) == {e.name for e in chapter.exercises if e.kind != "written"}, chapter.folder
        for name, folds in hints.items():
            for fold in folds:
                assert fold.startswith(("<details><summary>Hint", "<details><summary>I'm getting")), (name, fold[:80])
                assert fold.endswith("</details>") and fold.count("<details>") == 1, (name, fold[-80:])
            assert first_hint(folds), name
        text = "".join("".join(cell["source"]) for cell in cells)
        for kind in ("Hint", "I'm getting"):
            kept = [fold for folds in hints.values() for fold in folds if f"<summary>{kind}" in fold]
            assert len(kept) == text.count(f"<summary>{kind}"), (chapter.folder, kind)


def test_feedback_for_one_student_and_chapter(graded):
    run("feedback", "1", "--student", "ada")
    assert {p.parts[-3:] for p in (graded / "feedback").rglob("*.html")} == {
        ("ada", "01_numbers", "numbers_chapter.html")
    }


def test_feedback_follows_a_regrade(course, graded, hand_in):
    run("feedback")
    hand_in("ben", "01_numbers", double="return 2 * x")
    run("grade", "--workers", 1)
    run("feedback")
    assert "signs" not in (graded / "feedback/ben/01_numbers/numbers_chapter.html").read_text()


def test_one_answer_of_the_class_is_marked_in_a_table(course, graded, hand_in, tmp_path):
    hand_in("cem", "01_numbers", why="=1+1")
    hand_in("dua", "01_numbers", why="Because.")
    run("grade", "--workers", 1)
    file = tmp_path / "why.csv"
    assert "4 answers" in run("answers", "1", "why", file)
    heads, *rows = table(file)
    assert heads == ["student", "answer", "points", "comment"]
    assert rows == [
        ["cem", "'=1+1", "", ""],
        ["ada", "Because.", "", ""],
        ["dua", "Because.", "", ""],
        ["ben", "YOUR ANSWER HERE", "0", ""],
    ]
    rows[0][2:], rows[1][2:], rows[2][2:] = ["0,5", "Half."], ["1", "Yes, why?"], ["1", "Yes, why?"]

    def read_back() -> str:
        with file.open("w", newline="") as out:
            csv.writer(out).writerows([heads, *rows])
        done = CliRunner().invoke(cli.app, ["answers", "1", "why", str(file), "--read"])
        return str(done.exception) if done.exception else done.output

    rows[2][2] = "2"
    assert "line 4: 2 points of 1" in read_back()
    rows[2][2] = "1"
    assert "3 marks" in read_back()  # ben's was there, and nobody gave it
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "attention") as book:
        found = [book.find_grade("why", "numbers_chapter", "01_numbers", s) for s in ("ada", "ben", "cem", "dua")]
        assert [(g.score, g.needs_manual_grade) for g in found] == [(1, False), (0, False), (0.5, False), (1, False)]
        assert found[1].manual_score is None
        assert book.find_comment("why", "numbers_chapter", "01_numbers", "dua").comment == "Yes, why?"
    hand_in("ben", "01_numbers", why="Late, but here.")
    run("grade", "--workers", 1)
    run("answers", "1", "why", file)
    assert ["ben", "Late, but here.", "", ""] in table(file)  # it waits, as if no table had been read


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_export_writes_what_lmss_import(graded, tmp_path):
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "attention") as book:
        book.update_or_create_student("ben", lms_user_id="4711")
    shown = run("export", "--to", tmp_path / "marks")
    assert "mark by hand" in shown, "ada's written answer has no mark yet"
    nbgraders = table(tmp_path / "marks/grades.csv")
    assert ["01_numbers", "ada", "3.0"] in [[row[0], row[3], row[7]] for row in nbgraders]
    assert table(tmp_path / "marks/canvas.csv") == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_numbers", "02_words"],
        ["Points Possible", "", "", "", "", "4.0", "3.0"],
        ["ada", "", "ada", "ada", "", "3.0", "3.0"],
        ["ben", "4711", "ben", "ben", "", "0.0", ""],
    ]
    assert table(tmp_path / "marks/moodle.csv") == [
        ["Username", "ID number", "First name", "Last name", "Email address", "01_numbers", "02_words"],
        ["ada", "", "", "", "", "3.0", "3.0"],
        ["ben", "4711", "", "", "", "0.0", ""],
    ]


def test_export_says_what_has_changed_and_what_is_not_graded(course, graded, hand_in):
    shown = run("export")
    assert "differ" not in shown and "not graded" not in shown
    hand_in("ben", "01_numbers", double="return 2 * x", halve="return x / 2")
    hand_in("cem", "02_words", shout="return text")
    shown = run("export")
    assert "not graded" in shown and "(2): ben 01_numbers, cem 02_words\n" in shown
    run("grade", "--workers", 1)
    shown = run("export")
    assert "differ from the last export (1): ben 01_numbers 0 → 3\n" in shown and "not graded" not in shown
    assert "differ" not in run("export")

    solution = course.solution(course.find("02"))
    solution.write_text(solution.read_text().replace("'capitals'", "'capital letters'"))  # a check has changed
    assert ": ada 02_words, cem 02_words\n" in run("export")


def test_the_example_class_gets_the_marks_that_it_should(course, monkeypatch):
    on_record = {
        "01_numbers": [
            Answer("double", "six", "signs", source="def double(x):\n    return 6"),
            Answer("double", "sum", None, source="def double(x):\n    return x + x"),
            Answer("halve", "whole", "0.5", source="def halve(x):\n    return x // 2"),
            Answer("halve", "times", None, edits=(("x / 2", "x * 0.5"),)),
        ],
        "02_words": [
            Answer("shout", "title", "all", source="def shout(text):\n    return text.title()"),
            Answer("shout", "swap", None, source="def shout(text):\n    return text.swapcase()"),
        ],
    }
    monkeypatch.setattr(example_class, "answers_of", lambda chapter: on_record[chapter.folder])
    run("example-class")
    total: dict[str, float] = {}
    receipts = list((course.root / "classroom/example/autograded").rglob(".autograder.json"))
    for receipt in receipts:
        student = receipt.parts[-3]
        total[student] = total.get(student, 0) + sum(i["points"] for i in json.loads(receipt.read_text())["items"])
    assert total == {
        "all_right": 6,
        "all_wrong": 0,
        "broken_notebook": 0,
        "half_done": 5,
        "lost_metadata": 6,
        "untouched": 0,
    }
    assert not (course.root / "classroom/submitted").exists()


def test_the_page_of_an_unreadable_notebook_says_so_and_shows_no_answer(course, hand_in):
    hand_in("ada", "01_numbers").write_text("{ broken")
    hand_in("ben", "01_numbers", double="return 6")
    CliRunner().invoke(cli.app, ["grade", "--workers", "1"])
    run("feedback")
    ada, ben = (
        (course.root / f"classroom/feedback/{s}/01_numbers/numbers_chapter.html").read_text() for s in ("ada", "ben")
    )
    assert "could not be graded: it is not a notebook" in ada and "Your answer" not in ada
    assert "could not be graded" not in ben and "Your answer" in ben
    assert "No response" not in ada + ben, "a comment that nobody wrote"
