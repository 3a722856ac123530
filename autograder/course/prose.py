"""The course's own prose on pages that need nothing beside them: hints, formulas and pictures of `solutions/`."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from latex2mathml.converter import convert
from markupsafe import Markup

from autograder.pages import markdown

_FORMULA = re.compile(
    r"(?P<code>```.*?```|`[^`\n]*`)|\$\$(?P<block>.+?)\$\$|(?<![\\$])\$(?P<inline>[^$\n]+?(?:\n[^$\n]+?)*)\$", re.DOTALL
)


def folded_hints(cells: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The Markdown of the folded hints below each exercise of a chapter, up to the next heading.

    Args:
        cells: of the chapter in `solutions/`; a source may be a list of lines, as it is in the file.

    Returns:
        For each exercise's `grade_id` its cells of hints, in order.
    """
    hints: dict[str, list[str]] = {}
    current = ""
    for cell in cells:
        about = cell["metadata"].get("nbgrader", {})
        source = "".join(cell["source"])
        if about.get("solution"):
            current = about["grade_id"]
        elif current and cell["cell_type"] == "markdown":
            if source.lstrip().startswith("<details>"):
                hints.setdefault(current, []).append(source)
            elif source.lstrip().startswith("#"):
                current = ""
    return hints


def first_hint(folded: Iterable[str]) -> str:
    """The Markdown inside the first of some folded hints; empty if there is none.

    Args:
        folded: cells as `folded_hints` gives them, which hold errors and their causes too.
    """
    inside = re.search(r"<summary>Hint[^<]*</summary>(.*?)</details>", "\n".join(folded), re.DOTALL)
    return inside[1].strip() if inside else ""


def formatted(source: str) -> Markup:
    """The course's own Markdown as HTML that needs nothing beside it: formulas as MathML, pictures as their text.

    Args:
        source: of a cell in `solutions/`, never of a student's.
    """
    formulas: list[str] = []

    def keep(found: re.Match) -> str:
        if found["code"]:
            return found[0]
        block = found["block"]
        math = convert(block or found["inline"], display="block" if block else "inline")
        formulas.append(f'<div class="scroll" tabindex="0">{math}</div>' if block else math)
        return f"\ue000{len(formulas) - 1}\ue001"

    page = markdown({}, _FORMULA.sub(keep, source))
    page = re.sub(r'<a class="anchor-link".*?</a>', "", page)
    page = re.sub(r'<a href="(?!https?:)[^"]*"[^>]*>(.*?)</a>', r"\1", page, flags=re.DOTALL)
    page = re.sub(r"<img\b[^>]*>", _described, page)
    page = re.sub(r"<(/?)h(\d)[^>]*>", lambda found: f"<{found[1]}h{min(int(found[2]) + 2, 6)}>", page)
    page = page.replace("<pre>", '<pre tabindex="0">').replace("<th></th>", "<td></td>")
    return Markup(re.sub("\ue000(\\d+)\ue001", lambda found: formulas[int(found[1])], page))


def _described(image: re.Match) -> str:
    alt = re.search(r'alt="([^"]*)"', image[0])
    return f"<em>[picture: {alt[1]}]</em>" if alt and alt[1] else "<em>[picture]</em>"
