"""What a class got wrong: planted mistakes are named, and nothing that a student wrote acts on the page."""

import csv
import json
import runpy
from collections import Counter
from html.parser import HTMLParser

from typer.testing import CliRunner

from autograder import cli
from autograder.course import insights
from autograder.course.curriculum import Chapter, Exercise, find_course
from autograder.verdict import Finding, Item, Status

EVIL = "</pre><script>alert(1)</script>"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(cli.app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_mistake_keeps_its_id_when_its_sentence_is_reworded():
    exercise = Exercise("double", 1)
    chapter = Chapter("01_x", "x", "X", (exercise,))
    ids = []
    for sentence in ("the sign is lost", "a sign goes missing"):
        item = Item("double_check", Status.FAILED, 0.0, 1.0, sentence, Finding("sign", sentence))
        verdicts = [insights.Verdicts("ada", "01_x", [item], {})]
        [shown] = insights.look_into("course", [chapter], verdicts, insights.Marks(), {}).chapters
        ids += [(made.id, made.name, made.named) for made in shown.exercises[0].mistakes]
    assert ids == [("double/sign", "the sign is lost", True), ("double/sign", "a sign goes missing", True)]


def test_a_mistake_without_a_name_is_told_as_one_student_was_told_it():
    chapter = Chapter("01_x", "x", "X", (Exercise("double", 1),))
    verdicts = [
        insights.Verdicts(student, "01_x", [Item("double_check", Status.TIMEOUT, 0.0, 1.0, f"it took {seconds} s")], {})
        for student, seconds in (("ada", 20), ("ben", 21.5))
    ]
    found = insights.look_into("course", [chapter], verdicts, insights.Marks(), {})
    [made] = found.chapters[0].exercises[0].mistakes
    assert (made.id, made.name, made.count) == ("double/unnamed/it took # s", "it took 20 s", 2)


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        assert not any(name in ("src", "action") for name, _ in attributes)
        assert not any(name == "href" and not value.startswith("#") for name, value in attributes)


def test_a_class_on_one_page(sandboxed, course, hand_in):
    (course.root / "class.csv").write_text("id\nada\nzoe\n")
    run("students", "add", "class.csv")
    hand_in("ada", "01_numbers", double="return 6  # by Ada", halve="return x / 2", why="Because.")
    hand_in("ben", "01_numbers", double="return 6", halve=f"return open('''{EVIL}''')")
    hand_in("<i>cem", "01_numbers", double="return 2 * x", halve="return x / 2")
    hand_in("ada", "02_words", shout="return text.upper()")
    told = run("grade", "--workers", 1).splitlines()[-1]
    page = course.root / "classroom/insights.html"
    assert told == f"What the class got wrong: {page.as_uri()}"

    run("insights")
    shown = page.read_text()
    assert {"script", "i", "img", "link", "iframe"}.isdisjoint(_Tags(shown).tags)
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in shown and "&lt;i&gt;cem" in shown
    assert "by Ada" not in shown

    read = json.loads(page.with_suffix(".json").read_text())
    assert [chapter["missing"] for chapter in read["chapters"]] == [["zoe"], ["<i>cem", "ben", "zoe"]]
    assert "3 in the gradebook handed in nothing that is graded</strong>: &lt;i&gt;cem, ben, zoe." in shown
    double, halve, why = read["chapters"][0]["exercises"]
    assert (double["solved"], double["statuses"]) == (1 / 3, {"failed": 2, "passed": 1})
    [made] = double["mistakes"]
    assert (made["id"], made["name"], made["count"]) == ("double/signs", "signs", 2)
    assert made["answer"] == "def double(x):\n    return 6"
    assert halve["mistakes"][0]["named"] is False
    # Nobody marked anything yet: the two that are empty are no mean.
    assert (why["to_mark"], why["marked"], why["unanswered"], why["mean"]) == (1, 0, 2, None)
    assert "2 empty or unreadable: 0 points." in shown and "given by hand" not in shown
    assert [line["shares"] for line in read["lines"]] == [[1, None], [1 / 3, 1.0], [0.0, None]]

    run("answers", "01", "why", "why.csv")
    text = (course.root / "why.csv").read_text()
    (course.root / "why.csv").write_text(text.replace("Because.,,", "Because.,0.5,"))
    run("answers", "01", "why", "why.csv", "--read")
    run("insights")
    assert "Mean of 1 mark given by hand: 50\N{NO-BREAK SPACE}%." in page.read_text()

    with page.with_suffix(".csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [(r["mistake"], r["students"]) for r in rows if r["exercise"] == "double"] == [("double/signs", "2")]


def test_planted_mistakes_of_a_thousand_students_are_named(repository):
    bench = runpy.run_path(str(repository / "benchmarks/insights.py"))
    course = find_course()
    chapters = course.select(["00", "01"])
    planted = bench["plant"](chapters, bench["judge_once"](course, chapters), 1000)
    found = insights.look_into("course", chapters, [one.verdicts for one in planted], insights.Marks(), {})
    shown = {m.id: m.count for c in found.chapters for e in c.exercises for m in e.mistakes}
    assert shown == Counter(name for one in planted for name in one.planted)
    # Skill explains about 0.22 of it in such a class, give or take 0.03.
    assert all(e.discrimination > 0.1 for c in found.chapters for e in c.exercises if e.kind == "code")
    assert insights.render(found).count("<details>") > 40
