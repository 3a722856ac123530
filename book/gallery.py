"""One page with every live figure and the data that the executed chapters give it: `make figures`.

It is for whoever changes a module of `live/`: the whole book takes minutes to build, this takes seconds. What is shown
is what the book shows, by the same scripts, from a file; one page in light colours, one in dark.
"""

import html
import sys
import webbrowser
from pathlib import Path
from typing import NamedTuple

import nbformat
from build import BOOK, figure_place, write_scripts

from autograder.course.curriculum import Course, find_course
from live.display import MIME, figures
from live.models import MODELS

PAPER = {"light": "#fff", "dark": "#14191f"}
INK = {"light": "#16202c", "dark": "#e8eef5"}
LAYOUT = "margin: 0 auto; max-width: 60rem; font-family: system-ui"


class Shown(NamedTuple):
    """A figure with its data, as `live.show` leaves them in a notebook."""

    figure: str
    data: dict
    alt: str
    where: str


def main(folder: Path = BOOK / "_build/figures") -> None:
    """Write the gallery and open it.

    Args:
        folder: where to.
    """
    found = shown_in(find_course(BOOK))
    # Last, since one that cannot do without data stops what comes after it.
    new = [
        Shown(name, {}, name, "no chapter shows it yet, so without data")
        for name in figures()
        if name not in {one.figure for one in found}
    ]
    write_gallery([*found, *new], folder)
    page = folder / "light.html"
    print(f"{len(found) + len(new)} figures: {page}")
    webbrowser.open(page.resolve().as_uri())


def shown_in(course: Course) -> list[Shown]:
    """The live figures in the outputs of the executed chapters, in the course's order.

    Args:
        course: the course, with its solutions.
    """
    found = []
    for chapter in course.chapters:
        for cell in nbformat.read(course.solution(chapter), as_version=4).cells:
            for output in cell.get("outputs", []):
                if left := output.get("data", {}).get(MIME):
                    found.append(Shown(left["figure"], left["data"], left["alt"], f"chapter {chapter.number}"))
    return found


def write_gallery(shown: list[Shown], folder: Path) -> None:
    """Write `light.html` and `dark.html`, and the scripts that they need.

    Args:
        shown: the figures, in the order of the page.
        folder: where to; it is made if it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_scripts(folder, {MODELS[one.figure] for one in shown if one.figure in MODELS})
    places = "".join(
        f'<h2 id="{one.figure}-{k}">{one.figure} <small>· {html.escape(one.where)}</small></h2>'
        + figure_place(one.figure, one.data, one.alt)
        for k, one in enumerate(shown)
    )
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Live figures</title>'
    head += '<link rel="stylesheet" href="live.css"><script src="live.js"></script>'
    for scheme, other in (("light", "dark"), ("dark", "light")):
        colours = f"background: {PAPER[scheme]}; color: {INK[scheme]}"
        link = f'<p><a href="{other}.html" style="color: inherit">The same in {other} colours</a></p>'
        main = f'<main style="{LAYOUT}"><h1>Live figures</h1>{link}{places}</main>'
        page = f'<html lang="en" data-theme="{scheme}" style="{colours}"><head>{head}</head><body>{main}</body></html>'
        (folder / f"{scheme}.html").write_text(f"<!doctype html>{page}", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
