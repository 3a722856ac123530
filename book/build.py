"""Build the book: one page a chapter, from the executed notebooks in `solutions/`.

Usage: python book/build.py [FOLDER]

The pages are made from copies, in which solutions and checks are folded and hidden tests are left out. The site,
`html` in FOLDER (by default `book/_build`), needs no network and no server: open its `index.html`.
"""

import ast
import copy
import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions
from sphinx.cmd.build import build_main

from autograder.course import Chapter, Course, find_course

BOOK = Path(__file__).resolve().parent
# A heading that says what an exercise is worth is too long for a table of contents.
EXERCISE = re.compile(r"^(### Exercise .*?) — (.*)$", re.MULTILINE)
# Everything that must stay as it is comes first, so that a chapter is found only outside of it.
MENTION = re.compile(
    r"```\{glossary\}|```.*?```|`[^`]*`|\$\$.*?\$\$|^#.*?$|<summary>.*?</summary>|!?\[[^\]]*\]\([^)]*\)"
    r"|\b[Cc]hapter (?P<number>\d+)\b(?!\.\d)",
    re.MULTILINE | re.DOTALL,
)
WIDGET = "application/vnd.jupyter.widget-view+json"


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
    status = build_main(["-q", "-W", "--keep-going", "-E", "-d", str(doctrees), "-b", "html", str(source), str(site)])
    if status == 0:
        print(f"The book is ready: open {site / 'index.html'}")
    return status


def write_source(course: Course, folder: Path) -> None:
    """Write what Sphinx reads: settings, pages, images and the chapters that are there.

    Args:
        course: the course, with its solutions.
        folder: where to; it does not exist yet.
    """
    shutil.copytree(BOOK, folder, ignore=shutil.ignore_patterns("_build", "build.py", "__pycache__"))
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
    index.write_text(text, encoding="utf-8")


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
    """
    solved, _ = ClearHiddenTests().preprocess(copy.deepcopy(notebook), {})
    unsolved, _ = ClearSolutions().preprocess(copy.deepcopy(solved), {})
    cells, solutions = [], []
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


def _code(cell: NotebookNode, about: NotebookNode, handed_out: NotebookNode) -> NotebookNode:
    if about.get("solution"):
        return handed_out | {"outputs": [], "metadata": {}}
    if about.get("grade"):
        return _folded(cell, "check")
    # A widget needs a kernel: what is shown with it stands for it.
    outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    return cell | {"outputs": outputs, "metadata": {"mystnb": {"image": {"alt": f"Figure: {alt_text(cell.source)}"}}}}


def alt_text(source: str) -> str:
    """What a figure shows, for those who cannot see it: its titles, or else the phrases in the code that draws it.

    Args:
        source: the code of the cell.
    """
    if titles := re.findall(r"title\w*(?:=|\()\s*f?\"([^\"{}]+)\"", source):
        return "; ".join(titles)
    if "choose_head(" in source:
        return "the attention weights of all heads, drawn small"
    parts = [part for node in ast.walk(ast.parse(source)) for part in _parts(node)]
    told = [part for part in parts if isinstance(part, ast.JoinedStr | ast.Constant)]
    phrases = dict.fromkeys(filter(None, map(_phrase, told)))
    return "; ".join(phrases) or "what the code above draws"


def _parts(node: ast.AST) -> list[ast.expr]:
    """The places in the code where a figure's words may stand."""
    match node:
        case ast.Assign(targets=[ast.Name(id="title")], value=value):
            return [value]
        case ast.Call(args=args, keywords=keywords):  # of named arguments the title alone: the others label axes
            return args + [keyword.value for keyword in keywords if keyword.arg == "title"]
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


def _markdown(cell: NotebookNode, about: NotebookNode) -> NotebookNode:
    source = EXERCISE.sub(r"\1\n\n*\2*", cell.source)
    if about.get("solution"):
        source = f"<details><summary>Show the model answer</summary>\n\n{source}\n</details>"
    return cell | {"source": source}


def _solution(cell: NotebookNode) -> NotebookNode:
    source = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", cell.source)
    return _folded(cell | {"source": source, "id": f"{cell.id}-solved"[-64:]}, "solution")


def _folded(cell: NotebookNode, what: str) -> NotebookNode:
    prompts = {"code_prompt_show": f"Show the {what}", "code_prompt_hide": f"Hide the {what}"}
    return cell | {"metadata": {"tags": ["hide-input"], "mystnb": prompts}}


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
