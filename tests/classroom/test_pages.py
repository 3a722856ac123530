"""Feedback and insights as they are read: on a phone and on a screen, in light and in dark, by everybody."""

import shutil
from pathlib import Path

import nbformat
import nbgrader.server_extensions.formgrader as formgrader
import pytest
import torch
from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from traitlets.config import Config

from autograder.course import feedback, insights
from autograder.course.prose import formatted
from autograder.heatmap import heat_maps_of
from autograder.nbgrader import use_engine

playwright = pytest.importorskip("playwright.sync_api")
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")

HINT = (
    "<details><summary>Hint 1: a nudge</summary>\n\nDivide by $\\sqrt{d}$:\n\n```python\nscores / d ** 0.5\n```\n\n"
    "| shape | of |\n|---|---|\n| `(B, n, m)` | the weights |\n</details>"
)
COMMENT = (
    f"# Well begun.\n\nSee 3.2,\n**both** parts:\n\n$${'x + ' * 60}x$$\n\n| {'a column | ' * 30}\n{'|---' * 30}|\n\n"
    f"```python\nscores / d ** 0.5  # {'x' * 90}\n```\n\n![a map](x.png)"
)
ANSWER = "def attend(queries, keys):\n    return (queries @ keys.mT).softmax(dim=-1)  # " + "x" * 90


def a_feedback_page() -> str:
    expected, got = torch.eye(3), torch.full((3, 3), 1 / 3)
    wrong = feedback.Remark(
        "failed",
        "the scores are not divided by √d",
        f"the weights should be 0.5, got 0.3 (at [0, 0]{'.' * 200})",
        "in attend, line 2: return (queries @ keys.mT).softmax(dim=-1)" + " " * 90 + "#",
        Markup(heat_maps_of(expected, got)),
    )
    cards = [
        feedback.Card("double", ANSWER, False, "passed", 2, 2),
        feedback.Card("attend", ANSWER, False, "failed", 0, 3, [wrong], [COMMENT], [formatted(HINT)]),
        feedback.Card("split", ANSWER, False, "partly right", 1, 3, [feedback.Remark("failed", "", "1 of 3")]),
        feedback.Card("halve", ANSWER, False, "not attempted", 0.5, 1, by_hand=True),
        feedback.Card("why", "Because.", True, "to be marked", 0, 1),
        feedback.Card("how", "So.", True, "marked", 0.5, 1, comments=["Half of it."]),
    ]
    chapter = formatted("# A title\n\n## A part\n\nProse with $$\\frac{QK^T}{\\sqrt{d}}$$\n\n![a picture](x.svg)")
    return feedback.render(feedback.Sheet("ada", "Attention", cards, 4, 11, 0.5, chapter, ""))


def an_insights_page() -> str:
    found = [
        insights.MadeMistake(
            "attend/a-root", "the root is forgotten", True, "the weights should be 0.5 " * 9, 4, 0.4, ANSWER
        ),
        insights.MadeMistake("attend/unnamed/x", "NameError: name #", False, "NameError: name 'x'", 1, 0.1, ANSWER),
    ]
    exercises = [
        insights.ExerciseInsight(
            "attend", 3, "code", 0.5, 0.5, {"passed": 5, "failed": 5}, 0.1, "who solved it did hardly better",
            hint=insights.first_hint([HINT]), mistakes=found,
        ),
        insights.ExerciseInsight("why", 1, "written", mean=0.7, to_mark=3, marked=6, unanswered=1),
    ]  # fmt: skip
    times = [("the last day", 7, 0.8), ("late", 3, 0.4)]
    chapters = [
        insights.ChapterInsight(f"0{n}_x", f"Chapter {n}", 10, 3, times, exercises, ["ben"] * 40) for n in range(12)
    ]
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


OVERLAY = """
<div class="navbar-fixed-top" style="position:fixed;inset:0;background:white">Full credit: 99 of 99</div>
<img src="//example.org/seen.png"/> $\\style{position:fixed;top:0}{x}$ <p id="statusmessage">Saved</p>
"""


def a_formgrader_page(course, answer: str, filters: dict) -> str:
    """Formgrader's page of a submission, with its own template and style, of a notebook with a student's answer."""
    source = nbformat.read(course.solution(course.find("01")), as_version=4)
    prose = next(cell for cell in source.cells if cell.cell_type == "markdown")
    prose.source = "# Numbers\n\nProse with $\\sqrt{d}$ and a diagram: ![a square](../../images/square.svg)"
    nbformat.write(source, course.solution(course.find("01")))
    (course.root / "images").mkdir()
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40"/></svg>'
    (course.root / "images/square.svg").write_text(svg)
    written = nbformat.v4.new_markdown_cell(answer)
    written.metadata.nbgrader = {"grade_id": "why", "grade": True, "solution": True, "points": 1}
    added = nbformat.v4.new_markdown_cell(answer)
    code = nbformat.v4.new_code_cell("print(1)")
    notebook = nbformat.v4.new_notebook(cells=[prose, written, added, code])
    config = Config()
    config.HTMLExporter.filters = filters
    config.HTMLExporter.template_name = "formgrade"
    place = Path(formgrader.__file__).parent
    config.HTMLExporter.extra_template_basedirs = [str(place / "templates")]
    resources = {
        "assignment_id": "01_numbers",
        "notebook_id": "numbers_chapter",
        "submission_id": "7",
        "student": "ada",
    }
    resources |= {"base_url": place.parent.as_uri(), "index": 0, "total": 1, "notebook_path": ""}
    html, _ = HTMLExporter(config=config).from_notebook_node(notebook, resources=resources)
    return html


@pytest.mark.parametrize("ours", [True, False])
def test_an_answer_draws_over_nothing_and_asks_nobody_in_formgrader(course, browser, tmp_path, monkeypatch, ours):
    """The same page with nbconvert's own filter shows that the attack would have fired."""
    monkeypatch.setenv("JUPYTER_PATH", "")
    if ours:
        use_engine(Config())
    filters = {"markdown2html": "autograder.course.rubric.markdown"} if ours else {}
    file = tmp_path / "page.html"
    file.write_text(a_formgrader_page(course, OVERLAY, filters), encoding="utf-8")
    asked = []
    with browser.new_context() as context:
        context.route("**/*", lambda route: (asked.append(route.request.url), route.abort())[1])
        context.route(file.parents[0].as_uri() + "/**", lambda route: route.continue_())
        context.route(Path(formgrader.__file__).parents[1].as_uri() + "/**", lambda route: route.continue_())
        page = context.new_page()
        page.goto(file.as_uri())
        assert page.get_by_text("Full credit: 99 of 99").count() == 2, "the answer is there"
        fixed = """() => [...document.querySelectorAll("#notebook *")]
            .filter((one) => ["fixed", "absolute", "sticky"].includes(getComputedStyle(one).position))
            .map((one) => one.textContent.slice(0, 40))"""
        on_top = "document.elementFromPoint(300, 300).textContent"
        drawn = """() => [...document.images].filter((one) => one.naturalWidth > 0).map((one) => one.alt)"""
        if ours:
            assert page.evaluate(fixed) == []
            assert [url for url in asked if not url.startswith("file:")] == [], "no MathJax from elsewhere"
            assert page.evaluate("formgrader.loaded"), "formgrader's script has come to its end: keys work"
            assert page.locator("#statusmessage").count() == 1, "formgrader's own"
            assert page.evaluate(drawn) == ["a square"]
            assert page.locator("#notebook msqrt").count() == 1
        else:
            assert page.evaluate(on_top).strip() in ("Full credit: 99 of 99", "Saved")
            assert any("example.org/seen.png" in url for url in asked)
            assert page.locator("#statusmessage").count() == 3
            assert page.evaluate(drawn) == []


def test_an_answer_does_nothing_on_the_pages_of_our_own(browser, tmp_path):
    """Feedback and insights show an answer, a message and a comment as text."""
    wrong = feedback.Remark("failed", OVERLAY, OVERLAY, OVERLAY)
    card = feedback.Card("why", OVERLAY, True, "failed", 0, 1, [wrong], [OVERLAY])
    pages = [feedback.render(feedback.Sheet("ada", "Attention", [card], 0, 1, 0, Markup(""), ""))]
    found = [insights.MadeMistake("why/x", OVERLAY, False, OVERLAY, 1, 1.0, OVERLAY)]
    exercise = insights.ExerciseInsight("why", 1, "code", 0, 0, {"failed": 1}, 0, mistakes=found)
    chapter = insights.ChapterInsight("01_x", "X", 1, 0, [], [exercise], [])
    pages.append(
        insights.render(insights.Insights("a course", 1, [chapter], [insights.Line(OVERLAY, [0.0], 0.0, True)]))
    )
    for html in pages:
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        asked = []
        with browser.new_context(bypass_csp=True) as context:
            context.route(
                "http*://**/*", lambda route, asked=asked: (asked.append(route.request.url), route.abort())[1]
            )
            page = context.new_page()
            page.goto((tmp_path / "page.html").as_uri())
            page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            assert "Full credit: 99 of 99" in page.inner_text("body"), "the answer is there"
            assert asked == [] and page.locator(".navbar-fixed-top, #statusmessage, img").count() == 0
