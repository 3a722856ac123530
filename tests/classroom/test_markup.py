"""What a student wrote is shown, and never acts: on pages, in a terminal, in a spreadsheet."""

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from traitlets.config import Config

from autograder.pages import markdown
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
}
KEPT = {
    "**bold** and `a < b`": ("<strong>bold</strong>", "<code>a &lt; b</code>"),
    "$a < b$ and $$x^2$$": ("a &lt; b", "x^2"),
    "| a | b |\n|:-:|---|\n| 1 | 2 |": ("<table>", "<td>2</td>"),
    "```python\nx = 1\n```": ("<pre>", "x"),
    "[site](https://example.org)": ('href="https://example.org"',),
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


@pytest.mark.parametrize("text", KEPT)
def test_what_an_answer_needs_is_kept(text):
    html = page(text)
    assert all(part in html for part in KEPT[text]), html


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
