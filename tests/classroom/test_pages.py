"""Feedback and insights as they are read: on a phone and on a screen, in light and in dark, by everybody."""

import shutil

import pytest
import torch
from markupsafe import Markup

from autograder.course import feedback, insights
from autograder.course.prose import formatted
from autograder.heatmap import heat_maps_of

playwright = pytest.importorskip("playwright.sync_api")
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")

HINT = (
    "<details><summary>Hint 1: a nudge</summary>\n\nDivide by $\\sqrt{d}$:\n\n```python\nscores / d ** 0.5\n```\n\n"
    "| shape | of |\n|---|---|\n| `(B, n, m)` | the weights |\n</details>"
)
ANSWER = "def attend(queries, keys):\n    return (queries @ keys.mT).softmax(dim=-1)  # " + "x" * 90


def a_feedback_page() -> str:
    expected, got = torch.eye(3), torch.full((3, 3), 1 / 3)
    wrong = feedback.Verdict(
        "failed",
        f"the weights have 9 wrong entries of 9{'.' * 200}. Likely cause: the scores are not divided by √d",
        "in attend, line 2: return (queries @ keys.mT).softmax(dim=-1)" + " " * 90 + "#",
        Markup(heat_maps_of(expected, got)),
    )
    cards = [
        feedback.Card("double", ANSWER, False, "passed", 2, 2),
        feedback.Card("attend", ANSWER, False, "failed", 0, 3, [wrong], ["Well begun.\nSee 3.2."], [formatted(HINT)]),
        feedback.Card("split", ANSWER, False, "partly right", 1, 3, [feedback.Verdict("failed", "1 of 3")]),
        feedback.Card("halve", ANSWER, False, "not attempted", 0, 1),
        feedback.Card("why", "Because.", True, "to be marked", 0, 1),
        feedback.Card("how", "So.", True, "marked", 0.5, 1, comments=["Half of it."]),
    ]
    chapter = formatted("# A title\n\n## A part\n\nProse with $$\\frac{QK^T}{\\sqrt{d}}$$\n\n![a picture](x.svg)")
    return feedback.render(feedback.Sheet("ada", "Attention", cards, 3.5, 11, 0.5, chapter, ""))


def an_insights_page() -> str:
    found = [
        insights.Found(
            "attend/a-root", "the root forgotten", True, "Mismatch: " + "9 wrong entries " * 9, 4, 0.4, ANSWER
        ),
        insights.Found("attend/unnamed/x", "NameError: name #", False, "NameError: name 'x'", 1, 0.1, ANSWER),
    ]
    exercises = [
        insights.ExerciseInsight(
            "attend", 3, "code", 0.5, 0.5, {"passed": 5, "failed": 5}, 0.1, "who solved it did hardly better", 0,
            insights.first_hint([HINT]), found,
        ),
        insights.ExerciseInsight("why", 1, "written", mean=0.7, to_mark=3),
    ]  # fmt: skip
    times = [("the last day", 7, 0.8), ("late", 3, 0.4)]
    chapters = [insights.ChapterInsight(f"0{n}_x", f"Chapter {n}", 10, 3, times, exercises) for n in range(12)]
    shares: list[float | None] = [1.0, 0.9, None, 0.8, 0.2, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    lines = [insights.Line(f"student with a long name {n}", shares, 0.6, n == 0) for n in range(10)]
    return insights.render(insights.Insights("a course", 10, chapters, lines))


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize("write", [a_feedback_page, an_insights_page])
def test_everybody_can_read_a_page_without_scrolling_sideways(browser, tmp_path, write, width, scheme):
    file = tmp_path / "page.html"
    file.write_text(write(), encoding="utf-8")
    with browser.new_context(color_scheme=scheme, offline=True, bypass_csp=True) as context:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(file.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
