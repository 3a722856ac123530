"""The web book: built without a warning, read without a network, and silent about what is folded."""

import base64
import importlib.util
import io
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import sphinxcontrib.katex
from PIL import Image

from autograder.course.curriculum import find_course

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.xdist_group("book")  # built once for all of them


@pytest.fixture(scope="module")
def site(repository, tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    command = [sys.executable, repository / "book/build.py", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@pytest.fixture(scope="module")
def build(repository):
    spec = importlib.util.spec_from_file_location("book_build", repository / "book/build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_chapter_has_a_page_without_hidden_tests(site):
    for chapter in find_course().chapters:
        text = (site / "chapters" / chapter.folder / f"{chapter.module}.html").read_text()
        assert ".hidden import" not in text
        assert "HIDDEN TESTS" not in text


def test_nothing_is_fetched_and_no_source_is_published(site):
    for page in site.glob("**/*.html"):
        fetched = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text())
        assert fetched == [], page
    assert not list(site.glob("_sources/**/*.*"))


def test_the_fonts_are_of_the_katex_that_the_extension_brings(repository):
    style = (repository / "book/_static/katex/katex.min.css").read_text()
    assert f'content:"{sphinxcontrib.katex.katex_version}"' in style


def test_a_page_shows_the_exercise_and_folds_its_solution(build):
    course = find_course()
    notebook = nbformat.read(course.solution(course.find("01")), as_version=4)
    before = nbformat.writes(notebook)
    page = build.as_page(notebook)
    assert nbformat.writes(notebook) == before
    answers = [c for c in page.cells if "return torch.einsum(" in c.source]
    assert [c.metadata.mystnb.code_prompt_show for c in answers] == ["Show the solution"]
    asked = [c for c in page.cells if "def weighted_avg_einsum" in c.source and "NotImplementedError" in c.source]
    assert len(asked) == 1 and not asked[0].metadata
    assert page.cells.index(asked[0]) < page.cells.index(answers[0])
    assert any(c.source.startswith("<details><summary>Show the model answer") for c in page.cells)


@pytest.mark.parametrize("chapter", [pytest.param(c, id=c.folder) for c in find_course().chapters])
def test_solutions_come_after_checks_and_hints_and_figures_are_described(build, chapter):
    page = build.as_page(nbformat.read(find_course().solution(chapter), as_version=4))
    for before, cell in zip(page.cells, page.cells[1:], strict=False):
        about = cell.metadata.get("mystnb", {})
        if about.get("code_prompt_show") == "Show the solution":
            assert before.source.startswith("<details>"), cell.source
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
            assert about.image.alt != "Figure: what the code above draws", f"give a title to the figure of {cell.id}"


def test_a_broken_link_and_a_missing_image_fail(build, repository, tmp_path):
    (tmp_path / "source").mkdir()
    shutil.copy(repository / "book/conf.py", tmp_path / "source")
    shutil.copytree(repository / "book/_static", tmp_path / "source/_static")
    for text in ("[gone](gone.ipynb)", "![gone](gone.svg)"):
        (tmp_path / "source/index.md").write_text(f"# Title\n\n{text}\n")
        command = ["-q", "-W", "-E", "-b", "html", str(tmp_path / "source"), str(tmp_path / "html")]
        assert subprocess.run([sys.executable, "-m", "sphinx", *command], capture_output=True).returncode != 0


def test_chapters_are_linked_outside_code_and_headings(build):
    course = find_course()
    text = build.link_chapters("```{glossary}\nchapter 1\n```", course, "")
    assert "](01_weighted_averages/" in text
    text = build.link_chapters("# Chapter 1\n\nIn chapter 1, `chapter 1` and [chapter 1](x).", course, "../")
    link = "[chapter 1](../01_weighted_averages/weighted_averages.ipynb)"
    assert text == f"# Chapter 1\n\nIn {link}, `chapter 1` and [chapter 1](x)."


def test_what_is_folded_in_the_notebook_is_folded_in_the_book(build):
    cell = nbformat.v4.new_code_cell("a + 1", outputs=[nbformat.v4.new_output("execute_result", {"text/plain": "2"})])

    def page() -> nbformat.NotebookNode:
        return build.as_page(nbformat.v4.new_notebook(cells=[cell])).cells[0].metadata

    assert "tags" not in page()
    cell.metadata["collapsed"] = True
    assert page().tags == ["hide-output"]
    assert page().mystnb.code_prompt_show == "Show the result"
    cell.metadata["jupyter"] = {"source_hidden": True}
    assert page().tags == ["hide-input", "hide-output"]
    assert page().mystnb.code_prompt_show == "Show the {type}"  # of each what it is


def test_a_live_figure_has_its_place_and_its_picture(build):
    shown = {"figure": "temperature", "data": {"words": ["</script>", "b"], "scores": [1, 2]}, "alt": "Two bars"}
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
    bundled = {build.MIME: shown, "text/plain": "Two bars", "image/png": "iVBORw0KGgo="} | widget
    cell = nbformat.v4.new_code_cell("show()", outputs=[nbformat.v4.new_output("display_data", bundled)])
    page = build.as_page(nbformat.v4.new_notebook(cells=[cell]))
    picture, place = page.cells[0].outputs
    assert list(picture.data) == ["image/png"] and page.cells[0].metadata.mystnb.image.alt == "Two bars"
    assert list(place.data) == ["text/html"] and 'data-figure="temperature"' in place.data["text/html"]
    assert place.data["text/html"].count("</script>") == 1  # that of the place itself


def test_no_page_is_heavy(site):
    for page in site.glob("chapters/*/*.html"):
        shown = re.findall(r'<img[^>]*src="([^"]*)"', page.read_text())
        files = {(page.parent / name).resolve() for name in shown}
        assert page.stat().st_size + sum(file.stat().st_size for file in files) <= 3 << 20, page
    assert (site / "_static/translator.js").stat().st_size <= 4 << 20


@pytest.mark.parametrize(("width", "classes"), [(800, None), (801, "wide"), (1001, "wide very-wide")])
def test_a_wide_figure_is_told_apart(build, width, classes):
    file = io.BytesIO()
    Image.new("L", (width, 10)).save(file, "PNG")
    output = nbformat.v4.new_output("display_data", {"image/png": base64.b64encode(file.getvalue()).decode()})
    page = build.as_page(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("draw()", outputs=[output])]))
    assert page.cells[0].metadata.mystnb.image.get("classes") == classes


def test_no_line_begins_with_the_comma_after_a_formula(build):
    text = 'If <span class="math">\\(a\\)</span>, then <span class="math">\\(b\\)</span> too.'
    kept = '<span class="together"><span class="math">\\(a\\)</span>,</span>'
    assert build.INLINE_MATH.sub(build.TOGETHER, text) == f'If {kept} then <span class="math">\\(b\\)</span> too.'


def test_the_search_quotes_formulas_as_text(build, site):
    attention = r"\(\operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right) V, \quad x_{ij} \ge 0\)"
    assert build.spelled(attention) == "softmax((QK^⊤)/(√d_k))V, x_ij ≥ 0"
    assert build.spelled(r"\[\begin{aligned} a &= b \\ c &= d \end{aligned}\]") == "a = b c = d"
    assert "operatorname" not in (site / "_static/texts.js").read_text()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: apt-get install chromium")
    with pytest.importorskip("playwright.sync_api").sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_reading_it_in_a_browser_without_a_network(site: Path, browser, width):
    sync_api = pytest.importorskip("playwright.sync_api")
    with browser.new_context(viewport={"width": width, "height": 900}, offline=True) as context:
        page = context.new_page()
        failed = []
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator(".live-english button").first.wait_for(timeout=60_000)  # the translator has come, too
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("article").get_by_role("link", name="Weighted averages", exact=True).click()
        page.locator(".katex").first.wait_for()
        assert page.evaluate("document.querySelectorAll('.katex-error').length") == 0
        sync_api.expect(page.locator("[data-figure=triangle] .live")).to_be_visible()
        sync_api.expect(page.get_by_alt_text("Three words as corners of a triangle, y inside")).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= width

        solution = page.locator("details", has_text="Show the solution").filter(has_text="torch.einsum")
        code = solution.locator("pre")
        sync_api.expect(code).not_to_be_visible()
        solution.locator("summary").click()
        sync_api.expect(code).to_be_visible()
        assert failed == []

        page.goto((site / "search.html").as_uri() + "?q=softmax")
        sync_api.expect(page.locator("#search-results")).to_contain_text("Normalized dot products")


def test_everybody_can_use_every_page(site, browser, everything):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with browser.new_context(offline=True, color_scheme="dark") as context:
        page = context.new_page()
        page.set_default_timeout(120_000)
        bad = []
        for number, file in enumerate(sorted(site.glob("**/*.html"))):
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.dataset.theme") == "dark"  # as the reader's system is
            page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            small = file.stat().st_size < 50_000
            for theme, width in (("dark", 390), ("light", 1280)):
                page.set_viewport_size({"width": width, "height": 900})
                page.wait_for_function(REACHED)
                page.evaluate("theme => (document.documentElement.dataset.theme = theme)", theme)
                wide = page.evaluate("document.documentElement.scrollWidth")
                bad += [(file.name, f"{wide} pixels wide")] * (wide > width)
                bad += [(file.name, theme, text) for text in page.evaluate(FAINT)]
                if small or (theme == "dark" and (everything or number % 3 == 0)):
                    # For contrast axe asks what lies behind each word: minutes for a page with much code. FAINT adds up
                    # backgrounds in a second; on small pages both have their say.
                    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": small}}}
                    found = axe.run(page, options=options).response["violations"]
                    found = [one for one in found if one["impact"] in ("serious", "critical")]
                    bad += [(file.name, theme, one["id"], one["nodes"][0]["html"]) for one in found]
        assert bad == []


def test_the_first_page_translates_from_a_file_and_can_be_filmed(site, browser, repository, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    film = runpy.run_path(str(repository / "book/screenshots.py"))["write_film"]
    with browser.new_context(offline=True, viewport={"width": 1000, "height": 900}) as context:
        page = context.new_page()
        page.goto((site / "index.html").as_uri())
        figure = page.locator("[data-figure=translator]")
        figure.scroll_into_view_if_needed()
        figure.locator("input[type=text]").fill("Ein Hund rennt über eine Wiese.")
        figure.get_by_role("button", name="Translate").click()
        sync_api.expect(figure.locator(".live-translation")).to_contain_text("dog", timeout=60_000)
        sync_api.expect(figure.locator("ol li").first).to_be_visible(timeout=60_000)
        film(page, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as pictures:
        assert pictures.n_frames >= 5
    assert (tmp_path / "film.gif").stat().st_size < 500_000


def test_the_search_quotes_from_files_and_nothing_that_is_folded(site, browser):
    with browser.new_context(offline=True) as context:
        page, errors = context.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto((site / "chapters/01_weighted_averages/weighted_averages.html").as_uri())
        folded_only = page.evaluate(FOLDED_ONLY)
        page.goto(f"{(site / 'search.html').as_uri()}?q={folded_only[0]}")
        chapter = page.get_by_role("link", name="Weighted averages")
        result = page.locator("#search-results li").filter(has=chapter)
        result.locator(".context").wait_for()
        assert len(folded_only) > 3
        assert folded_only[0] not in result.inner_text().lower()

        page.goto(f"{(site / 'search.html').as_uri()}?q=average")  # what is not folded is quoted
        result.first.locator(".context .highlighted", has_text="average").first.wait_for()
        page.locator(".search-summary", has_text="Search finished").wait_for()
        assert page.locator("#search-results li").count() == page.locator("#search-results li .context").count()

        page.set_viewport_size({"width": 390, "height": 900})
        for query in ("cross-attention", "softmax"):  # a term of the glossary; long code
            page.goto(f"{(site / 'search.html').as_uri()}?q={query}")
            page.locator(f"#search-results li:has([href$='#term-{query}']) .context").wait_for()
            page.locator(".search-summary", has_text="Search finished").wait_for()
            assert page.locator("#search-results li").count() == page.locator("#search-results li .context").count()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert errors == []


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("index.html", 390),
        ("chapters/03_queries_keys_values/queries_keys_values.html", 1280),
        ("search.html?q=softmax", 1280),
    ],
)
def test_whatever_the_tab_key_reaches_shows_it(site, browser, name, width):
    with browser.new_context(offline=True, viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{site.as_uri()}/{name}")
        if name == "index.html":
            page.locator(".live-english button").first.wait_for(timeout=60_000)  # the translator has come, too
        page.add_style_tag(content="* { transition: none !important }")
        reached = []
        for _ in range(1000):
            page.keyboard.press("Tab")
            reached.append(page.evaluate(UNSEEN))
            if reached[-1] is None:
                break
        assert len(reached) > 20 and reached.pop() is None
        assert [text for text in reached if text] == []


# Whether all that scrolls sideways can be reached by keys, which takes the page a moment after a change of its size.
REACHED = """() => {
    const boxes = "pre, div.math, .pst-scrollable-table-container, .cell_output:has(> img.wide)";
    return [...document.querySelectorAll(boxes)].every((e) => e.tabIndex === 0 || e.scrollWidth <= e.clientWidth);
}"""
# Texts whose contrast with what is behind them is below 4.5, the least that WCAG 2 asks for.
FAINT = """() => {
    document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important }</style>");
    document.querySelectorAll("article details").forEach((one) => (one.open = true));
    const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        brush.clearRect(0, 0, 1, 1);
        brush.fillStyle = colour;
        brush.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, below) => below.map((value, i) => top[i] * top[3] + value * (1 - top[3]));
    const luminance = (colour) => {
        const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const known = new Map([[null, [255, 255, 255]]]);
    const behind = (element) => {
        if (!known.has(element)) {
            known.set(element, over(rgba(getComputedStyle(element).backgroundColor), behind(element.parentElement)));
        }
        return known.get(element);
    };
    const faint = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); ) {
        const element = text.parentElement;
        if (!text.data.trim()) continue;
        if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
        if (element.closest("script, style, noscript, .katex-mathml")) continue;
        const background = behind(element);
        const [low, high] = [over(rgba(getComputedStyle(element).color), background), background]
            .map(luminance)
            .sort((a, b) => a - b);
        const contrast = (high + 0.05) / (low + 0.05);
        if (contrast < 4.5) faint.push(`${contrast.toFixed(2)} ${element.className}: ${text.data.trim().slice(0, 40)}`);
    }
    return faint;
}"""
# What has the focus, if it is not seen that it has; None at the end of the page.
UNSEEN = """() => {
    const element = document.activeElement;
    if (element === null || element === document.body) return null;
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element.closest(".bd-search") ?? element);
    const ring = (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
    const box = element.getBoundingClientRect();
    const there = box.width > 1 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    return ring && there && element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
        ? "" : element.outerHTML.slice(0, 200);
}"""
# The words of the page that stand in solutions, checks and hints only.
FOLDED_ONLY = """() => {
    const page = document.querySelector("article").cloneNode(true);
    const folded = [...page.querySelectorAll("details")];
    const words = folded.map((one) => one.textContent).join(" ").match(/\\b[a-z]{6,}\\b/g);
    folded.forEach((one) => one.remove());
    return [...new Set(words)].filter((word) => !page.textContent.toLowerCase().includes(word));
}"""
