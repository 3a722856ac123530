"""What of a notebook a worker runs: the student's cells, and of the course's own those definitions that they need."""

import ast
import contextlib
import re
from collections.abc import Mapping
from functools import lru_cache

from nbformat import NotebookNode

from autograder.source import Statement, as_python, defined_names, definitions, statements_of, words
from autograder.submission import Part

# A cell of the course that a student has made longer than this runs as a whole: to look through it would take too long.
_MOST_TO_LOOK_THROUGH = 20_000


def texts_to_run(
    parts: list[Part], modules: Mapping[str, str], run_cells: str
) -> tuple[dict[int, str | list[str]], dict[str, str]]:
    """What the worker runs of each cell, and what of each module it may import.

    Of the course's own cells and of modules these are only the definitions that something needs, so that no worker
    imports a plotting library for a picture that nobody looks at.

    Returns:
        The text of each cell of the student's by its number, or a list of definitions; the text of each module.
    """
    texts: dict[int, str | list[str]] = {}
    optional: list[tuple[int | str, Statement]] = []
    needed: set[str] = set()
    for number, part in enumerate(parts):
        if part.role == "check":
            needed |= words(part.source)
        elif part.role == "course" and run_cells == "definitions" and len(part.cell.source) < _MOST_TO_LOOK_THROUGH:
            text = as_python(part.cell.source)
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                optional += [(number, statement) for statement in _course_statements(text)]
        elif part.cell.cell_type == "code" and not (part.role == "solution" and part.missing):
            texts[number] = as_python(part.cell.source)
            needed |= words(texts[number])
    everything = "\n".join(part.cell.source for part in parts if part.cell.cell_type == "code")
    for name, text in modules.items():
        if re.search(rf"^[ \t]*import\b.*\b{name}\b", everything, re.MULTILINE):
            needed |= words(text) | set(defined_names(text))  # which of its names are used, it does not say
        optional += [(name, statement) for statement in statements_of(text)]
    chosen = _choose([statement for _, statement in optional], needed)
    kept: dict[str, list[str]] = {name: [] for name in modules}
    for (place, statement), is_needed in zip(optional, chosen, strict=True):
        if is_needed:
            (texts.setdefault(place, []) if isinstance(place, int) else kept[place]).append(statement.text)
    return {n: text for n, text in texts.items() if text}, {name: "\n\n\n".join(kept[name]) for name in modules}


# The same for a whole class, except where a student has changed a cell of the course.
@lru_cache(maxsize=256)
def _course_statements(text: str) -> tuple[Statement, ...]:
    return statements_of(definitions([text]))


def _choose(statements: list[Statement], needed: set[str]) -> list[bool]:
    """Which statements define something that is needed, or that another chosen one needs."""
    definers: dict[str, list[int]] = {}
    for i, statement in enumerate(statements):
        for name in statement.binds:
            definers.setdefault(name, []).append(i)
    chosen = [False] * len(statements)
    to_find = [*needed, "*"]
    while to_find:
        for i in definers.pop(to_find.pop(), []):
            if not chosen[i]:
                chosen[i] = True
                to_find += statements[i].uses
    return chosen


def import_statements(source: NotebookNode) -> list[ast.stmt]:
    """The imports of the course's notebook, outside solutions and checks."""
    found = []
    for cell in source.cells:
        flags = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and not flags.get("solution") and not flags.get("grade"):
            with contextlib.suppress(SyntaxError):
                tree = ast.parse(as_python(cell.source))
                found += [s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    return found
