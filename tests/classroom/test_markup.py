"""What a student wrote is shown, and never acts: on pages, in a terminal, in a spreadsheet."""

from html.parser import HTMLParser

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from traitlets.config import Config

from autograder.course import feedback, insights
from autograder.pages import _MATHML, _TAGS, markdown, of_a_student
from autograder.plain import cell, plain
from autograder.submission import as_notebook, lay_over

ACTING = {
    "a script": ("<script>alert(1)</script>", "<script>alert(1)"),
    "an image's handler": ("<img src=x onerror=alert(1)>", " onerror="),
    "a handler of details": ("<details open ontoggle=alert(1)>x</details>", " ontoggle="),
    "a frame": ('<iframe srcdoc="<script>alert(1)</script>"></iframe>', "<iframe srcdoc"),
    "a link that runs": ("[x](javascript:alert(1))", 'href="javascript:'),
    "a link that runs, in HTML": ('<a href="javascript:alert(1)">x</a>', 'href="javascript:'),
    "a picture that runs": ("![x](javascript:alert(1))", 'src="javascript:'),
    "a style": ('<p style="background:url(//evil)">x</p>', "url(//evil)"),
    "a form": ('<form action="//evil"><button>x</button></form>', "<form action"),
    "a picture that tells who looks": ("![x](https://evil/seen.png)", 'src="https://evil'),
    "SVG": ("<svg onload=alert(1)><script>alert(1)</script></svg>", "<svg onload"),
    "a class": ('<p class="navbar-fixed-top">x</p>', '"navbar-fixed-top"'),
    "an id": ('<p id="statusmessage">x</p>', 'id="statusmessage"'),
    "a heading's id": ("# statusmessage", 'id="statusmessage"'),
    "a size": ('<img width="9999" src="data:image/png;base64,AA=="/>', "9999"),
    "a table's style": ('<table><tr><td style="text-align:right" colspan="9999">x</td></tr></table>', "9999"),
    "a picture without a scheme": ('<img src="//evil/seen.png"/>', 'src="//evil'),
    "a picture beside it": ("![x](../../files/x.png)", 'src="../../files'),
    "a picture that is a program": ('<img src="data:image/svg+xml;base64,AA=="/>', "svg+xml"),
    "a link": ("[x](https://evil.example)", 'href="https://evil'),
    "an address by itself": ("<https://evil.example>", 'href="https://evil'),
    "a link in a heading": ("# <a href='https://evil'>x", 'href="https://evil'),
    "a link in a link": ("<a href='https://evil'><a href='https://evil'>x</a>", 'href="https://evil'),
    "an address that breaks out": ('[x](<https://evil/"><img src=//evil>)', "href"),
}
# What MathJax, or a formula's own HTML, would make of a formula: none of it is in the page, which MathJax skips.
FORMULAS = {
    r"$\href{javascript:alert(1)}{x}$": "href",
    r"$\style{position:fixed}{x}$": "style=",
    r"$\class{navbar-fixed-top}{x}$": 'class="navbar',
    r"$\text{<img src=//evil>}$": "<img",
    r"$\color{red}{x}$": "mathcolor",
    r"$\hspace{100000px}x$": "width=",
    "$" + "{" * 450 + "x" + "}" * 450 + "$": 500 * "<mrow>",
}
KEPT = {
    "**bold** and `a < b`": ("<strong>bold</strong>", "<code>a &lt; b</code>"),
    "$a < b$ and $$x^2$$": ("<mo>&lt;</mo>", '<math display="block">', "<msup><mi>x</mi><mn>2</mn></msup>"),
    "## Why $\\sqrt{d}$": ("<h2", "<msqrt>"),
    "$x$ &#57344;0&#57345; &#57344;7&#57345;.": ("<mi>x</mi>", "."),
    "`$a$` costs \\$5 or $6": ("<code>$a$</code>", "$5 or $6"),
    "| a | b |\n|:-:|---|\n| 1 | 2 |": ("<table>", "<td>2</td>"),
    "```python\nx = 1\n```": ("<pre>", "x"),
    "[site](https://example.org)": ("site (https://example.org)",),
    "<https://example.org>": ("https://example.org",),
    "<details><summary>more</summary>text</details>": ("<details>", "<summary>more</summary>"),
}


def page(text: str, kind: str = "markdown", filters: dict | None = None) -> str:
    """The body of a page that shows a cell."""
    make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_raw_cell
    notebook = nbformat.v4.new_notebook(cells=[make(text)])
    config = Config()
    config.HTMLExporter.filters = {"markdown2html": markdown} if filters is None else filters
    html, _ = HTMLExporter(config=config).from_notebook_node(notebook)
    return html[html.index("<body") :]


@pytest.mark.parametrize("name", ACTING)
def test_markup_of_a_student_does_nothing_on_a_page(name):
    text, sign = ACTING[name]
    assert sign not in page(text)
    assert sign in page(text, filters={})  # nbconvert's own filter lets it through


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_of_a_student_does_nothing_either(formula):
    html = page(f"Because {formula}.")
    assert FORMULAS[formula] not in html and '<div class="tex2jax_ignore">' in html


@given(st.lists(st.sampled_from(list(ACTING) + list(FORMULAS)) | st.text(max_size=4), max_size=6))
@settings(max_examples=100, deadline=None)
def test_no_mixture_has_an_attribute_that_acts(pieces):
    text = "".join(ACTING[p][0] if p in ACTING else p for p in pieces)
    html = of_a_student(text, {"x.png": {"image/svg+xml": "AA==", "image/png": "AA=="}})
    found = Attributes()
    found.feed(html.removeprefix('<div class="tex2jax_ignore">'))
    harmless = {"alt", "accent", "display", "fence", "form", "mathvariant", "movablelimits", "separator", "stretchy"}
    assert {name for name, _ in found.all} <= harmless | {"src"}
    assert all(value.startswith("data:image/") and "svg" not in value for name, value in found.all if name == "src")
    assert found.tags <= {*_TAGS, *_MATHML} - {"a"}


class Attributes(HTMLParser):
    """The tags and attributes of a page, as a browser reads them."""

    def __init__(self):
        super().__init__()
        self.all, self.tags = [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.all += attributes


def test_a_locked_cell_is_the_courses_own():
    cell = nbformat.v4.new_markdown_cell("[site](https://example.org) $\\sqrt{d}$")
    cell.metadata.nbgrader = {"locked": True, "grade_id": "text"}
    page = markdown({"cell": cell}, cell.source)
    assert 'href="https://example.org"' in page and "<msqrt>" in page
    cell.metadata.nbgrader["locked"] = False
    assert "href" not in markdown({"cell": cell}, cell.source)


@pytest.mark.parametrize("text", KEPT)
def test_what_an_answer_needs_is_kept(text):
    html = page(text)
    assert all(part in html for part in KEPT[text]), html


def test_a_heading_has_no_sign_of_the_link_to_it():
    assert of_a_student("# Why").replace("\n", "") == '<div class="tex2jax_ignore"><h1>Why</h1></div>'


@pytest.mark.parametrize("piece", ["<ul><li>", "# a\n", "a|b\n-|-\n", "<b>x</b> and more words "])
def test_what_would_take_minutes_is_shown_as_it_was_typed(piece):
    page = of_a_student(30_000 * piece)
    assert page.count("<") == 2  # of the one element around it
    assert piece.replace("<", "&lt;").replace(">", "&gt;") in page


def test_a_large_picture_makes_no_answer_long():
    data = "data:image/png;base64," + 50_000 * "A"
    page = of_a_student(f"**see** ![x]({data})")
    assert "<strong>see</strong>" in page and f'<img src="{data}"' in page


def test_a_mistake_is_shown_with_its_code_as_code():
    said = feedback.Remark("failed", "is there a `return`? `<b>`", "got None")
    card = feedback.Card("why", "x", False, "failed", 0, 1, [said])
    html = feedback.render(feedback.Sheet("ada", "Numbers", [card], 0, 1, 0, Markup(""), ""))
    assert "is there a <code>return</code>? <code>&lt;b&gt;</code></strong>" in html
    made = insights.MadeMistake("why/x", "is there a `return`?", True, "got None", 1, 1.0, "x")
    exercise = insights.ExerciseInsight("why", 1, "code", 0, 0, {"failed": 1}, 0, mistakes=[made])
    chapter = insights.ChapterInsight("01_x", "X", 1, 0, [], [exercise], [])
    html = insights.render(insights.Insights("a course", 1, [chapter], []))
    assert html.count("is there a <code>return</code>?") == 2 and "?." not in html


def test_a_raw_cell_is_quoted():
    script = "<script>alert(1)</script>"
    raw = nbformat.v4.new_notebook(cells=[nbformat.v4.new_raw_cell(script)])
    repaired = lay_over(as_notebook(raw), nbformat.v4.new_notebook()).notebook
    assert [c.cell_type for c in repaired.cells] == ["markdown"]
    assert script not in page(repaired.cells[0].source)


def test_pictures_that_are_attached_are_shown():
    given = nbformat.v4.new_markdown_cell(
        "![x](attachment:x.png)", attachments={"x.png": {"image/png": "iVBORw0KGgo="}}
    )
    config = Config()
    config.HTMLExporter.filters = {"markdown2html": "autograder.pages.markdown"}
    html, _ = HTMLExporter(config=config).from_notebook_node(nbformat.v4.new_notebook(cells=[given]))
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in html


@pytest.mark.parametrize(
    "text, shown",
    [
        ("ada", "ada"),
        ("Łukasz", "Łukasz"),
        ("\x1b[31mada", "\\x1b[31mada"),
        ("a\nb\rc", "a\\x0ab\\x0dc"),
        ("a\u202eb", "a\\x202eb"),
        ("a\udcff", "a\\xdcff"),
    ],
)
def test_a_name_does_not_steer_the_terminal(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize(
    "value, written",
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1+cmd", "'+1+cmd"),
        ("@SUM(1)", "'@SUM(1)"),
        ("  =1", "'  =1"),
        ("-2.5", "-2.5"),
        (3.5, 3.5),
        ("ada", "ada"),
        ("", ""),
    ],
)
def test_a_cell_is_no_formula(value, written):
    assert cell(value) == written


@pytest.mark.parametrize(("resources", "there"), [({}, False), ({"submission_id": "7"}, True)])
def test_the_rubric_stands_beside_the_answer_in_formgrader_alone(course, resources, there):
    answer = nbformat.v4.new_markdown_cell("I think so.")
    answer.metadata.nbgrader = {"grade_id": "why", "grade": True, "solution": True}
    config = Config()
    config.HTMLExporter.filters = {"markdown2html": "autograder.course.rubric.markdown"}
    resources = resources | {"assignment_id": "01_numbers", "notebook_id": "numbers_chapter"}
    notebook = nbformat.v4.new_notebook(cells=[answer, nbformat.v4.new_markdown_cell("Prose.")])
    html, _ = HTMLExporter(config=config).from_notebook_node(notebook, resources=resources)
    assert html.count("What solutions/ says") == there
    assert ("<p>Because.</p>" in html) == there and "I think so." in html
