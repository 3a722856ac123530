"""What of a notebook a worker runs: the student's cells, and of the course's own those definitions that they need."""

import ast
import contextlib
import importlib.util
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from nbformat import NotebookNode

from autograder.cells import exercise_of, flags_of
from autograder.source import (
    CHECKS,
    Statement,
    as_python,
    bound_in,
    defined_names,
    definitions,
    in_package,
    parsed,
    remembered,
    statements_of,
    words,
    words_in,
)
from autograder.submission import Part

# A cell of the course that a student has made longer than this runs as a whole: to look through it would take too long.
_MOST_TO_LOOK_THROUGH = 20_000


def texts_to_run(
    parts: list[Part], modules: Mapping[str, str], run_cells: str
) -> tuple[dict[int, str | list[str]], dict[str, str]]:
    """What the worker runs of each cell, and what of each module it may import.

    Of the course's own cells and of modules these are only the definitions that something needs, so that no worker
    imports a plotting library for a picture that nobody looks at; packages come whole, since they run when they are
    imported, and no sooner. A cell of the course that a student has changed is
    the student's, and runs as it stands there, but for those of the course's own statements that nothing needs.

    Returns:
        The text of each cell of the student's by its number, or a list of definitions; the text of each module.
    """
    texts: dict[int, str] = {}
    changed: dict[int, _Changed] = {}
    optional: list[tuple[int | str, Statement]] = []
    needed: set[str] = set()
    for number, part in enumerate(parts):
        if part.role == "check":
            needed |= words(part.source)
        elif part.role == "course" and run_cells == "definitions" and len(part.cell.source) < _MOST_TO_LOOK_THROUGH:
            text = as_python(part.cell.source)
            if _is_changed(part):
                texts[number] = text
                with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    changed[number] = _Changed(text, as_python(part.source))
                    needed |= changed[number].needed
                    optional += [(number, statement) for statement in changed[number].optional]
                continue
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                optional += [(number, statement) for statement in _course_statements(text)]
        elif part.cell.cell_type == "code" and not (part.role == "solution" and part.missing):
            texts[number] = as_python(part.cell.source)
            needed |= words(texts[number])
    everything = "\n".join(part.cell.source for part in parts if part.cell.cell_type == "code")
    needed |= {name for module in _checks_modules(parts) for name in _needs_of(module, tuple(modules))}
    notebooks = {name: text for name, text in modules.items() if not in_package(name, modules)}
    for name, text in notebooks.items():
        if re.search(rf"^[ \t]*import\b.*\b{name}\b", everything, re.MULTILINE):
            needed |= words(text) | set(defined_names(text))  # which of its names are used, it does not say
        optional += [(name, statement) for statement in statements_of(text)]
    chosen = _choose([statement for _, statement in optional], needed)
    kept: dict[int | str, list[str]] = {name: [] for name in notebooks}
    for (place, statement), is_needed in zip(optional, chosen, strict=True):
        if is_needed and place not in changed:
            kept.setdefault(place, []).append(statement.text)
    for number, cell in changed.items():
        texts[number] = cell.text(
            [is_needed for (at, _), is_needed in zip(optional, chosen, strict=True) if at == number]
        )
    cells: dict[int, str | list[str]] = {number: text for number, text in texts.items() if text.strip()}
    cells |= {place: definitions for place, definitions in kept.items() if isinstance(place, int)}
    return cells, dict(modules) | {name: "\n\n\n".join(kept[name]) for name in notebooks}


def _is_changed(part: Part) -> bool:
    """Whether a cell of the course's own has become a student's; of a locked one the course's text counts."""
    return not (part.missing or part.untouched or flags_of(part.cell).get("locked"))


class _Changed:
    """A cell of the course that a student has changed.

    Args:
        text: the cell as it is.
        before: the course's own text.

    Attributes:
        needed: the names that the student's statements use.
        optional: the course's statements, as far as they stand there still.
    """

    def __init__(self, text: str, before: str) -> None:
        self._lines = text.split("\n")
        own = _dumps(before)
        self.needed: set[str] = set()
        self.optional: list[Statement] = []
        self._spans: list[range] = []
        self._students: set[int] = set()
        for statement in parsed(text).body:
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
            span = range(first, (statement.end_lineno or first) + 1)
            if ast.dump(statement) in own:
                is_check = isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == CHECKS
                binds = frozenset() if is_check else bound_in(statement)
                self.optional.append(Statement("", tuple(binds), words_in(statement)))
                self._spans.append(span)
            else:
                self.needed |= words_in(statement)
                self._students.update(span)

    def text(self, chosen: list[bool]) -> str:
        """The cell without those of the course's statements that are not chosen; lines keep their numbers."""
        kept = self._students.union(*(span for span, is_chosen in zip(self._spans, chosen, strict=True) if is_chosen))
        dropped = {line for span in self._spans for line in span} - kept
        return "\n".join("" if number in dropped else line for number, line in enumerate(self._lines, 1))


@lru_cache(maxsize=256)
def _dumps(text: str) -> frozenset[str]:
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(ast.dump(statement) for statement in parsed(text).body)
    return frozenset()


def what_defines(text: str) -> str:
    """What is left of a cell that was stopped: its definitions, unless to look for them would take too long."""
    return definitions([text]) if len(text) < _MOST_TO_LOOK_THROUGH else ""


# The same for a whole class: what a student has changed is not looked at by this.
@lru_cache(maxsize=256)
def _course_statements(text: str) -> tuple[Statement, ...]:
    return statements_of(definitions([text]))


def _checks_modules(parts: list[Part]) -> set[str]:
    """The modules of checks that the course's cells import, themselves or something out of them."""
    found = set()
    for part in parts:
        if part.role in ("check", "course"):
            for statement in _imports_of(part.source):
                package = getattr(statement, "module", None) or ""
                if package.split(".")[0] == CHECKS:
                    found |= {package, *(f"{package}.{alias.name}" for alias in statement.names)}
    return found


@lru_cache(maxsize=1_000)  # a dozen chapters of some twenty imports each, which a class's notebooks take in turn
def _needs_of(checks: str, modules: tuple[str, ...]) -> frozenset[str]:
    """What the helpers of some checks, which run where the student's objects live, import out of earlier notebooks."""
    try:
        spec = importlib.util.find_spec(checks)
        tree = ast.parse(Path(spec.origin).read_text("utf-8")) if spec and spec.has_location and spec.origin else None
    except Exception:  # it is something out of a module, or the module is at fault, as the check that imports it says
        return frozenset()
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)] if tree else []
    return frozenset(alias.name for node in imports if node.module in modules for alias in node.names)


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


def used_solutions(parts: list[Part], check: Part) -> list[Part]:
    """The other exercises' solution cells above a check that its own exercise uses, themselves or through each other.

    Args:
        parts: a repaired notebook's cells.
        check: one of them, named `NAME_check`; its exercise is the solution cell `NAME`.
    """
    own = exercise_of(check.name)
    definers: dict[str, list[tuple[Part, frozenset[str]]]] = {}
    to_find = set(words(check.source))
    for part in parts[: next(i for i, part in enumerate(parts) if part is check)]:
        if part.cell.cell_type != "code" or part.role == "check":
            continue
        text = as_python(part.cell.source)
        if part.role == "solution":
            for name in defined_names(part.source):  # whatever a student made of it
                definers.setdefault(name, []).append((part, frozenset()))
            if part.name == own:
                to_find |= words(text)
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for statement in statements_of(text):
                for name in statement.binds:
                    definers.setdefault(name, []).append((part, statement.uses))
    used: list[Part] = []
    while to_find:
        for part, uses in definers.pop(to_find.pop(), []):
            to_find |= uses & definers.keys()
            if part.role == "solution" and part.name != own and part not in used:
                used.append(part)
    return [part for part in parts if any(part is other for other in used)]


def import_statements(source: NotebookNode) -> list[ast.stmt]:
    """The imports of the course's notebook, outside solutions and checks."""
    found: list[ast.stmt] = []
    for cell in source.cells:
        flags = flags_of(cell)
        if cell.cell_type == "code" and not flags.get("solution") and not flags.get("grade"):
            found += _imports_of(cell.source)
    return found


@remembered
def _imports_of(cell: str) -> list[ast.Import | ast.ImportFrom]:
    with contextlib.suppress(SyntaxError):
        return [s for s in parsed(as_python(cell)).body if isinstance(s, ast.Import | ast.ImportFrom)]
    return []
