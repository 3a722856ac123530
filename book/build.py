"""Build the book: one page a chapter, from the executed notebooks in `solutions/`.

Usage: python book/build.py [FOLDER]

The pages are made from copies, in which solutions and checks are folded and hidden tests are left out. The site,
in FOLDER (by default `book/_build/html`), needs no network and no server: open its `index.html`.
"""

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
WIDGET = "application/vnd.jupyter.widget-view+json"


def main(site: Path = BOOK / "_build" / "html") -> int:
    """Build the book.

    Args:
        site: where the pages are put.

    Returns:
        The exit status: that of Sphinx, to which a broken link, a missing image and any warning is an error.
    """
    course = find_course(BOOK)
    source = site.parent / "source"
    write_source(course, source)
    status = build_main(["-q", "-W", "--keep-going", "-E", "-b", "html", str(source), str(site)])
    if status == 0:
        print(f"The book is ready: open {site / 'index.html'}")
    return status


def write_source(course: Course, folder: Path) -> None:
    """Write what Sphinx reads: settings, pages, images and the chapters that are there.

    Args:
        course: the course, with its solutions.
        folder: where to; what is in it already is removed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(BOOK, folder, ignore=shutil.ignore_patterns("_build", "build.py", "__pycache__"))
    shutil.copytree(course.root / "images", folder / "images", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    pages = [f"chapters/{chapter.folder}/{chapter.module}" for chapter in course.chapters]
    for chapter, name in zip(course.chapters, pages, strict=True):
        page = folder / f"{name}.ipynb"
        page.parent.mkdir(parents=True)
        nbformat.write(as_page(nbformat.read(course.solution(chapter), as_version=4)), page)
    if (course.root / "RESULTS.md").is_file():
        shutil.copy(course.root / "RESULTS.md", folder)
        pages.append("RESULTS")
    index = folder / "index.md"
    rows = [_row(chapter, page) for chapter, page in zip(course.chapters, pages, strict=False)]
    text = index.read_text(encoding="utf-8").replace("<!-- chapters -->", "\n".join(rows))
    index.write_text(text.replace("<!-- pages -->", "\n".join(pages)), encoding="utf-8")


def _row(chapter: Chapter, page: str) -> str:
    exercises = ", ".join(f"`{exercise.name}`" for exercise in chapter.exercises)
    return f"| {int(chapter.number)} | [{chapter.title}]({page}.ipynb) | {exercises} |"


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
        if about.get("solution") or cell.source.startswith("#"):  # an exercise without hints ends here
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
    # The figure's own titles, for those who cannot see it.
    titles = re.findall(r"title\w*(?:=|\()\s*f?\"([^\"{}]+)\"", cell.source)
    image = {"alt": "Figure: " + ("; ".join(titles) or "what the code above draws")}
    if about.get("grade"):
        return _folded(cell, "check")
    # A widget needs a kernel: what is shown with it stands for it.
    outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    return cell | {"outputs": outputs, "metadata": {"mystnb": {"image": image}}}


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
