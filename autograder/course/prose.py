"""Prose on pages that need nothing beside them: hints, formulas and pictures of `solutions/`, and what people wrote."""

import base64
import html
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from markupsafe import Markup

from autograder.cells import flags_of
from autograder.pages import FORMULA, of_a_student, of_the_course

_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".gif": "image/gif"}
_HINT = re.compile(r"<details>\s*<summary>(?:Hint|I'm getting).*?</details>", re.DOTALL)


def folded_hints(cells: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The Markdown of the folded hints below each exercise of a chapter, up to the next heading.

    A hint is known by its name: the answer to a prediction and what the text goes on with may stand there too, in folds
    of their own, beside a hint or before the next heading.

    Args:
        cells: of the chapter in `solutions/`; a source may be a list of lines, as it is in the file.

    Returns:
        For each exercise's `grade_id` its hints and "I'm getting …", each with its fold, in order.
    """
    hints: dict[str, list[str]] = {}
    current = ""
    for cell in cells:
        about = flags_of(cell)
        source = "".join(cell["source"])
        if about.get("solution"):
            current = about["grade_id"]
        elif current and cell["cell_type"] == "markdown":
            if source.lstrip().startswith("#"):
                current = ""
            elif found := _HINT.findall(source):
                hints.setdefault(current, []).extend(found)
    return hints


def first_hint(folded: Iterable[str]) -> str:
    """The Markdown inside the first of some folded hints; empty if there is none.

    Args:
        folded: as `folded_hints` gives them, errors and their causes among them.
    """
    inside = re.search(r"<summary>Hint[^<]*</summary>(.*?)</details>", "\n".join(folded), re.DOTALL)
    return inside[1].strip() if inside else ""


def formatted(source: str, folder: Path | None = None) -> Markup:
    """The course's own Markdown as HTML that needs nothing beside it: formulas as MathML, pictures as their text.

    Args:
        source: of a cell in `solutions/`, never of a student's.
        folder: where the paths of pictures start, to have these on the page.
    """
    formulas: list[str] = []

    def keep(found: re.Match) -> str:
        if found["code"]:
            return found[0]
        block = found["block"]
        math = convert(block or found["inline"], display="block" if block else "inline")
        formulas.append(f'<div class="scroll" tabindex="0">{math}</div>' if block else math)
        return f"\ue000{len(formulas) - 1}\ue001"

    page = of_the_course(FORMULA.sub(keep, source))
    page = re.sub(r'<a class="anchor-link".*?</a>', "", page)
    page = re.sub(r'<a href="(?!https?:)[^"]*"[^>]*>(.*?)</a>', r"\1", page, flags=re.DOTALL)
    page = re.sub(r"<img\b[^>]*>", lambda image: _drawn(image, folder) or _described(image), page)
    return Markup(re.sub("\ue000(\\d+)\ue001", lambda found: formulas[int(found[1])], _fitted(page)))


def comment_as_html(comment: str) -> Markup:
    """A person's comment, Markdown with formulas, as HTML that only reads; a picture is its text."""
    page = re.sub(r'<img(?: \w+="[^"]*")*>', _described, of_a_student(comment))
    wide = re.compile(r'<table>.*?</table>|<math display="block">.*?</math>', re.DOTALL)
    return Markup(_fitted(wide.sub(r'<div class="scroll" tabindex="0">\g<0></div>', page)))


def _fitted(page: str) -> str:
    """HTML that fits into a page with headings of its own, and can be scrolled by keys."""
    page = re.sub(r"<(/?)h(\d)[^>]*>", lambda found: f"<{found[1]}h{min(int(found[2]) + 2, 6)}>", page)
    return page.replace("<pre>", '<pre tabindex="0">').replace("<th></th>", "<td></td>")


def with_code(sentence: str) -> Markup:
    """A sentence, whoever wrote it, as HTML: what stands between backticks is code, and nothing else is markup."""
    return Markup(re.sub("`([^`\n]+)`", r"<code>\1</code>", html.escape(sentence)))


def _drawn(image: re.Match, folder: Path | None) -> str:
    """A picture of the course as data; empty if it is not one of its files."""
    named = re.search(r'src="([^":]*)"', image[0])
    if folder is None or named is None:
        return ""
    path = folder / html.unescape(named[1])
    if path.suffix not in _TYPES or not path.is_file():
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    return re.sub(r'src="[^"]*"', lambda _: f'src="data:{_TYPES[path.suffix]};base64,{data}"', image[0])


def _described(image: re.Match) -> str:
    alt = re.search(r'alt="([^"]*)"', image[0])
    return f"<em>[picture: {alt[1]}]</em>" if alt and alt[1] else "<em>[picture]</em>"
