"""What a class got wrong: planted mistakes are named, and nothing that a student wrote acts on the page."""

import csv
import json
import runpy
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.answers import Answer
from autograder.course import insights
from autograder.course.curriculum import find_course
from autograder.course.mistakes import Mistake, catalogue, name_mistake
from autograder.isolation.sandbox import why_not_sandboxed

EVIL = "</pre><script>alert(1)</script>"
on_record = [
    Answer("double", "six", "six", source="x"),
    Answer("double", "a sign lost", "signs", source="x"),
    Answer("double", "absolute", "signs", source="x"),
    Answer("double", "right", None, source="x"),
]


def run(*arguments: object) -> str:
    done = CliRunner().invoke(cli.app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_wrong_answers_with_one_message_are_one_mistake_whose_id_stays():
    both = catalogue(on_record)["double"]
    assert [(m.id, m.name) for m in both] == [("double/six", "six"), ("double/signs", "a sign lost · absolute")]
    assert catalogue(reversed(on_record))["double"][0].id == "double/signs"


def test_the_longest_phrase_in_a_message_is_the_mistake():
    known = [Mistake("e/heads", "e", "", "heads"), Mistake("e/mixed", "e", "", "the heads are mixed up")]
    assert name_mistake("wrong. Likely cause: The heads are mixed up", known).id == "e/mixed"
    assert name_mistake("something else", known) is None


def test_no_two_mistakes_of_an_exercise_share_an_id():
    course = find_course()
    for chapter in course.chapters:
        for exercise, mistakes in insights.mistakes_of(chapter).items():
            ids = [mistake.id for mistake in mistakes]
            assert len(set(ids)) == len(ids), f"{chapter.folder}, {exercise}"


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


@pytest.mark.skipif(bool(why_not_sandboxed()), reason="bubblewrap does not start here")
def test_a_class_on_one_page(course, hand_in, monkeypatch):
    monkeypatch.setattr(insights, "mistakes_of", lambda chapter: catalogue(on_record))
    hand_in("ada", "01_numbers", double="return 6  # by Ada", halve="return x / 2", why="Because.")
    hand_in("ben", "01_numbers", double="return 6", halve=f"raise ValueError('''{EVIL}''')")
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
    double, halve, why = read["chapters"][0]["exercises"]
    assert (double["solved"], double["statuses"]) == (1 / 3, {"failed": 2, "passed": 1})
    [made] = double["mistakes"]
    assert (made["id"], made["name"], made["count"]) == ("double/signs", "a sign lost · absolute", 2)
    assert made["answer"] == "def double(x):\n    return 6"
    assert halve["mistakes"][0]["named"] is False
    assert why["to_mark"] == 1
    assert [line["shares"] for line in read["lines"]] == [[1, None], [1 / 3, 1.0], [0.0, None]]

    with page.with_suffix(".csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [(r["mistake"], r["students"]) for r in rows if r["exercise"] == "double"] == [("double/signs", "2")]


def test_planted_mistakes_of_a_thousand_students_are_named(repository):
    bench = runpy.run_path(str(repository / "benchmarks/insights.py"))
    course = find_course()
    chapters = course.select(["01", "02"])
    planted = bench["plant"](chapters, bench["judge_once"](course, chapters), 1000)
    precision, recall = bench["precision_and_recall"](chapters, planted)
    assert precision >= 0.95 and recall >= 0.95, (precision, recall)
    verdicts = [one.verdicts for one in planted]
    known = {chapter.folder: insights.mistakes_of(chapter) for chapter in chapters}
    found = insights.look_into("course", chapters, verdicts, insights.Marks(), known, {})
    wrong = sum(says is not None for one in planted for says in one.planted.values())
    assert sum(m.count for c in found.chapters for e in c.exercises for m in e.mistakes) == wrong
    # Skill explains about 0.22 of it in such a class, give or take 0.03.
    assert all(e.discrimination > 0.1 for c in found.chapters for e in c.exercises if e.kind == "code")
    assert insights.render(found).count("<details>") > 40
