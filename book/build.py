"""Build the book: one page a chapter, from the executed notebooks in `solutions/`.

Usage: python book/build.py [FOLDER]

The pages are made from copies, in which solutions and checks are folded and hidden tests are left out. The site,
`html` in FOLDER (by default `book/_build`), needs no network and no server: open its `index.html`.
"""

import ast
import base64
import copy
import html
import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import nbformat
from bs4 import BeautifulSoup
from latex2mathml.converter import Converter
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions
from sphinx.cmd.build import build_main

from autograder.course.curriculum import Chapter, Course, find_course
from live.bundle import LIVE, bundle
from live.display import MIME, figures
from live.models import MODELS, find_model, pack_model

BOOK = Path(__file__).resolve().parent
# A heading that says what an exercise is worth is too long for a table of contents.
EXERCISE = re.compile(r"^(### Exercise .*?) — (.*)$", re.MULTILINE)
# Everything that must stay as it is comes first, so that a chapter is found only outside of it.
MENTION = re.compile(
    r"```\{glossary\}|```.*?```|`[^`]*`|\$\$.*?\$\$|^#.*?$|<summary>.*?</summary>|!?\[[^\]]*\]\([^)]*\)"
    r"|\b[Cc]hapter (?P<number>\d+)\b(?!\.\d)",
    re.MULTILINE | re.DOTALL,
)
# A short formula in a line and the punctuation mark after it, which should not begin the next line.
INLINE_MATH = re.compile(r'<span class="math">[^<]{1,40}</span>[,.;:!?)]+')
TOGETHER = r'<span class="together">\g<0></span>'
# What the course's own functions draw, for cells in which they alone say it.
LOOKS = "the attention map of a translation: for each English word, how much it looked at each German one"
DRAWN_BY = {
    "draw_alignment(": "alignments: a row for each English word, a column for each German word that it looks at",
    "choose_head(": "the attention weights of all heads, drawn small",
    "draw_looks(": LOOKS,
    "show_map(": LOOKS,
}
WIDGET = "application/vnd.jupyter.widget-view+json"
# Signs of a formula that have a blank on both sides.
_SPACED = frozenset("=≈≡≠≤≥<>≪≫+−-±×·∈∉→←⇒∝∼∣|")
# A figure with more pixels than this beside each other has labels too small for a phone, unless it scrolls there.
WIDE, VERY_WIDE = 800, 1000


def main(folder: Path = BOOK / "_build") -> int:
    """Build the book.

    Args:
        folder: where to; its subfolders `source` and `html` are replaced.

    Returns:
        The exit status: that of Sphinx, to which a broken link, a missing image and any warning is an error.
    """
    source, site = folder / "source", folder / "html"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    write_source(find_course(BOOK), source)
    doctrees = folder / "doctrees"
    write_figures(source)
    status = build_main(["-q", "-W", "--keep-going", "-E", "-d", str(doctrees), "-b", "html", str(source), str(site)])
    for template in site.glob("_static/**/*.html"):  # the themes' own: no page of the book
        template.unlink()
    for page in site.glob("**/*.html"):
        # What is folded is called by the words that are seen on it, for those who listen to the page too.
        text = page.read_text(encoding="utf-8")
        text = text.replace(' aria-label="Toggle hidden content"', "")
        page.write_text(INLINE_MATH.sub(TOGETHER, text), encoding="utf-8")
    write_texts(site)
    if status == 0:
        print(f"The book is ready: open {site / 'index.html'}")
    return status


def write_source(course: Course, folder: Path) -> None:
    """Write what Sphinx reads: settings, pages, images and the chapters that are there.

    Args:
        course: the course, with its solutions.
        folder: where to; it does not exist yet.
    """
    programs = ("build.py", "gallery.py", "screenshots.py", "__pycache__")
    shutil.copytree(BOOK, folder, ignore=shutil.ignore_patterns("_build", *programs))
    shutil.copytree(course.root / "images", folder / "images", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for chapter in course.chapters:
        page = as_page(nbformat.read(course.solution(chapter), as_version=4))
        for cell in page.cells:
            if cell.cell_type == "markdown":
                cell.source = link_chapters(cell.source, course, "../", chapter)
        path = folder / _page(chapter)
        path.parent.mkdir(parents=True)
        nbformat.write(page, path)
    pages = list(map(_page, course.chapters))
    if (course.root / "RESULTS.md").is_file():
        shutil.copy(course.root / "RESULTS.md", folder)
        pages.append("RESULTS.md")
    glossary, index = folder / "glossary.md", folder / "index.md"
    glossary.write_text(link_chapters(glossary.read_text(encoding="utf-8"), course, "chapters/"), encoding="utf-8")
    text = index.read_text(encoding="utf-8").replace("<!-- chapters -->", "\n".join(map(_row, course.chapters)))
    text = text.replace("<!-- pages -->", "\n".join(pages))
    told = "A German sentence, its translation, and where each English word looked"
    film = f'<img src="_static/translator.gif" alt="{told}">'
    still = f"<noscript><p>Where JavaScript is allowed, you can type here. This is a film.</p>{film}</noscript>"
    text = text.replace("<!-- translator -->", figure_place("translator", {}, told, still))
    index.write_text(text, encoding="utf-8")


def write_figures(source: Path) -> None:
    """Write what the live figures of the book need, into its static files.

    Args:
        source: what Sphinx reads, pages included.
    """
    pages = [path.read_text(encoding="utf-8") for kind in ("md", "ipynb") for path in source.glob(f"**/*.{kind}")]
    write_scripts(source / "_static", {name for text in pages for name in re.findall(r'data-model=\\?"(\w+)', text)})
    shutil.copy(source / "images/screenshots/translator.gif", source / "_static")


def write_scripts(folder: Path, models: set[str]) -> None:
    """Write the style sheet of the live figures, their modules as one script, and trained models.

    Args:
        folder: where to; a page finds the models beside the script.
        models: those that its figures need, by name.
    """
    modules = bundle({"book": LIVE / "book.js"} | {f"figure_{name}": LIVE / f"{name}.js" for name in figures()})
    table = ", ".join(f"{name}: figure_{name}" for name in figures())
    start = 'const folder = document.currentScript.src.replace(/live\\.js.*/, "");\n'
    start += f'document.addEventListener("DOMContentLoaded", () => book.startBook({{ {table} }}, folder));\n'
    (folder / "live.js").write_text(f"(() => {{\n{modules}{start}}})();\n", encoding="utf-8")
    shutil.copy(LIVE / "live.css", folder)
    for name in models:
        # From a file a page may load scripts only, so the model is text: base85 adds a quarter, base64 a third.
        packed = base64.b85encode(pack_model(*find_model(name))).decode()
        (folder / f"{name}.js").write_text(f'liveModel("{name}", "{packed}");\n', encoding="utf-8")


def write_texts(site: Path) -> None:
    """Write the texts that the search quotes, as a script, since a page from a file may not read other pages.

    Args:
        site: the pages; the script, in its static files, has for each a list of pairs: the id of a section or of a term
            in the glossary, and its text without what has a pair of its own and without what is folded.
    """
    texts = {page.relative_to(site).as_posix(): _sections(page) for page in sorted(site.glob("**/*.html"))}
    packed = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    (site / "_static/texts.js").write_text(f"globalThis.bookTexts = {packed};\n", encoding="utf-8")


def _sections(page: Path) -> list[tuple[str, str]]:
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "lxml")
    for unseen in soup.select("details, script, style, .headerlink"):
        unseen.decompose()
    for formula in soup.select(".math"):
        formula.string = f" {spelled(formula.get_text())} "
    for box in soup.select("dt, dd, td, th, li, p"):
        box.append(" ")  # or its last word would run into what follows
    terms = [
        (str(term["id"]), f"{term.get_text()} {meaning.get_text()}")
        for term in soup.select("dl.glossary dt[id]")
        for meaning in term.find_next_siblings("dd", limit=1)
    ]
    for told in soup.select("dl.glossary"):
        told.decompose()
    inner_first = [section.extract() for section in reversed(soup.select("article section"))]
    parts = [(str(section.get("id")), section.get_text()) for section in reversed(inner_first)]
    return [(name, " ".join(text.split())) for name, text in [*parts, *terms]]


def spelled(formula: str) -> str:
    """A formula as a line of plain text, for where none can be drawn: "softmax(QK^T/√(d_k))V".

    Args:
        formula: LaTeX between its delimiters, as Sphinx writes it; what is no formula is left out.
    """
    latex = re.sub(r"^\s*\\[(\[]|\\[)\]]\s*$", "", formula)
    try:
        return " ".join(_on_one_line(Converter().convert_to_element(latex)).split())
    except Exception:  # whatever the converter raises
        return ""


def _on_one_line(element: Element) -> str:
    inside = [_on_one_line(child) for child in element]
    whole = html.unescape(element.text or "").replace("&", "") + "".join(inside)  # which aligns lines
    match element.tag:
        case "mo":
            return f" {whole} " if whole in _SPACED else whole.replace(",", ", ")
        case "mspace":
            return "" if element.get("width", "").startswith(("-", "negative")) else " "
        case "mfrac":
            return "/".join(map(_grouped, inside))
        case "msqrt":
            return f"√{_grouped(whole)}"
        case "msub" | "munder":
            return f"{inside[0]}_{_grouped(inside[1])}"
        case "msup" | "mover":
            return f"{inside[0]}^{_grouped(inside[1])}"
        case "msubsup" | "munderover":
            return f"{inside[0]}_{_grouped(inside[1])}^{_grouped(inside[2])}"
        case "mtd" | "mtr":
            return f"{whole} "
        case _:
            return whole


def _grouped(part: str) -> str:
    return part if re.fullmatch(r".|\w+|\([^()]*\)", part) else f"({part.strip()})"


def figure_place(figure: str, data: dict, alt: str, still: str = "") -> str:
    """The place of a live figure on a page, in HTML.

    Args:
        figure: its name.
        data: what it shows.
        alt: what it shows in a sentence.
        still: HTML that stands for it without JavaScript; or "before", if the element before it does.
    """
    attributes = {"data-figure": figure, "data-alt": alt, "data-model": MODELS.get(figure)}
    if still == "before":
        attributes, still = attributes | {"data-still": still}, ""
    told = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items() if value)
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    inner = f'<div class="live-still">{still}</div>' if still else ""
    return f'<div {told}><script type="application/json">{packed}</script>{inner}</div>'


def link_chapters(text: str, course: Course, chapters: str, here: Chapter | None = None) -> str:
    """Make links of the chapters that a text mentions, such as "chapter 3", outside code, headings and other links.

    Args:
        text: markdown.
        course: a chapter that is not there yet gets no link.
        chapters: the folder of the chapters, seen from the text.
        here: the chapter that the text is in, which needs no link to itself.
    """
    pages = {int(c.number): f"{chapters}{c.folder}/{c.module}.ipynb" for c in course.chapters if c != here}

    def link(mention: re.Match) -> str:
        number = int(mention["number"] or -1)
        return f"[{mention[0]}]({pages[number]})" if number in pages else mention[0]

    return MENTION.sub(link, text)


def _page(chapter: Chapter) -> str:
    return f"chapters/{chapter.folder}/{chapter.module}.ipynb"


def _row(chapter: Chapter) -> str:
    exercises = ", ".join(f"`{exercise.name}`" for exercise in chapter.exercises)
    return f"| {int(chapter.number)} | [{chapter.title}]({_page(chapter)}) | {exercises} |"


def as_page(notebook: NotebookNode) -> NotebookNode:
    """The page of a chapter: its notebook without hidden tests, with solutions and checks folded.

    Args:
        notebook: the solved chapter; it is left as it is.

    Returns:
        A notebook whose exercises come twice: as handed out, and then, below the hints, solved and behind a button.
        What is folded in the notebook is folded here.
    """
    solved, _ = ClearHiddenTests().preprocess(copy.deepcopy(notebook), {})
    unsolved, _ = ClearSolutions().preprocess(copy.deepcopy(solved), {})
    cells: list[dict] = []
    solutions: list[dict] = []
    for cell, handed_out in zip(solved.cells, unsolved.cells, strict=True):
        about = cell.metadata.get("nbgrader", {})
        heading = cell.cell_type == "markdown" and cell.source.startswith("#")
        if about.get("solution") or heading:  # an exercise without hints ends here
            cells += solutions
            solutions = []
        if cell.cell_type == "code":
            cells.append(_code(cell, about, handed_out))
            if about.get("solution"):
                solutions.append(_solution(cell))
        else:
            cells.append(_markdown(cell, about))
            if cell.source.startswith("<details>"):
                cells += solutions
                solutions = []
    solved.cells = nbformat.from_dict(cells + solutions)
    solved.metadata.pop("widgets", None)
    return solved


def _code(cell: NotebookNode, about: NotebookNode, handed_out: NotebookNode) -> dict:
    if about.get("solution"):
        return handed_out | {"outputs": [], "metadata": {}}
    if about.get("grade"):
        return _folded(cell, "check")
    outputs = [shown for output in cell.outputs for shown in _output(output)]
    live = [output.data[MIME]["alt"] for output in cell.outputs if MIME in output.get("data", {})]
    image = {"alt": live[0] if live else f"Figure: {alt_text(cell.source)}"}
    if classes := _classes(cell.outputs):
        image["classes"] = classes
    metadata: dict[str, Any] = {"mystnb": {"image": image}}
    folded = {  # as in the notebook
        "hide-input": cell.metadata.get("jupyter", {}).get("source_hidden", False),
        "hide-output": cell.metadata.get("collapsed", False),
    }
    if tags := [tag for tag, holds in folded.items() if holds]:
        what = {"hide-input": "code", "hide-output": "result"}[tags[0]] if len(tags) == 1 else "{type}"
        metadata["tags"] = tags
        metadata["mystnb"] |= {"code_prompt_show": f"Show the {what}", "code_prompt_hide": f"Hide the {what}"}
    return cell | {"outputs": outputs, "metadata": metadata}


def _classes(outputs: list[NotebookNode]) -> str:
    """What the style sheet calls a cell whose figures are wide."""
    pictures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    width = max((int.from_bytes(base64.b64decode(picture[:32])[16:20]) for picture in pictures), default=0)
    return " ".join(name for name, least in (("wide", WIDE), ("very-wide", VERY_WIDE)) if width > least)


def _output(output: NotebookNode) -> list[NotebookNode]:
    """What the book shows of an output: of a live figure its picture, if it has one, and its place."""
    data = output.get("data", {})
    if MIME not in data:
        return [] if WIDGET in data else [output]  # a widget needs a kernel: what is shown with it stands for it
    picture = {"image/png": data["image/png"]} if "image/png" in data else {}
    still = "before" if picture else f"<p>{html.escape(data[MIME]['alt'])}. It moves where JavaScript is allowed.</p>"
    place = figure_place(data[MIME]["figure"], data[MIME]["data"], data[MIME]["alt"], still)
    return [nbformat.v4.new_output("display_data", data=shown) for shown in (picture, {"text/html": place}) if shown]


def alt_text(source: str) -> str:
    """What a figure shows, for those who cannot see it: its titles, or else the phrases in the code that draws it.

    Args:
        source: the code of the cell.
    """
    if titles := re.findall(r"title\w*(?:=|\()\s*f?\"([^\"{}]+)\"", source):
        return "; ".join(titles)
    for call, shown in DRAWN_BY.items():
        if call in source:
            return shown
    parts = [part for node in ast.walk(ast.parse(source)) for part in _parts(node)]
    told = [part for part in parts if isinstance(part, ast.JoinedStr | ast.Constant)]
    phrases = dict.fromkeys(filter(None, map(_phrase, told)))
    map_shown = "a map of attention weights: a row for each output, a column for each position that it looks at"
    return "; ".join(phrases) or (map_shown if "show_weights(" in source else "what the code above draws")


def _parts(node: ast.AST) -> Sequence[ast.expr | None]:
    """The places in the code where a figure's words may stand."""
    match node:
        case ast.Assign(targets=[ast.Name(id="title")], value=value):
            return [value]
        case ast.Call(args=args, keywords=keywords):  # of named arguments the title alone: the others label axes
            return [*args, *(keyword.value for keyword in keywords if keyword.arg == "title")]
        case ast.Dict(keys=keys, values=values):
            return [*keys, *values]
        case ast.Tuple(elts=elements):
            return elements
        case _:
            return []


def _phrase(text: ast.expr) -> str:
    """A string of several words, with "…" for what is put in when it runs; empty for anything else."""
    values = text.values if isinstance(text, ast.JoinedStr) else [text]
    words = "".join(v.value if isinstance(v, ast.Constant) and isinstance(v.value, str) else "…" for v in values)
    return words if " " in words else ""


def _markdown(cell: NotebookNode, about: NotebookNode) -> dict:
    source = EXERCISE.sub(r"\1\n\n*\2*", cell.source)
    if about.get("solution"):
        source = f"<details><summary>Show the model answer</summary>\n\n{source}\n</details>"
    return cell | {"source": source}


def _solution(cell: NotebookNode) -> dict:
    source = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", cell.source)
    return _folded(cell | {"source": source, "id": f"{cell.id}-solved"[-64:]}, "solution")


def _folded(cell: dict, what: str) -> dict:
    prompts = {"code_prompt_show": f"Show the {what}", "code_prompt_hide": f"Hide the {what}"}
    return cell | {"metadata": {"tags": ["hide-input"], "mystnb": prompts}}


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
