"""What of a notebook defines something: imports, functions, classes and constants, and nothing that runs.

Graders read chapters by this. That makes no notebook importable: `autograder.course.imports` does, for notebooks alone.
"""

import ast
import contextlib
import json
import linecache
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

from autograder.cells import flags_of

T = TypeVar("T")

_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# A course's cells are shorter; students' may have any length.
_LONG = 10_000


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Keep what a function says of texts: the course's own come again with each submission.

    Of long ones, which only a student can have written, it keeps a few: they come again in the same submission.
    """
    of_short, of_long = lru_cache(maxsize=1_000)(function), lru_cache(maxsize=8)(function)

    @wraps(function)
    def ask(text: str) -> T:
        return (of_short if len(text) <= _LONG else of_long)(text)

    return ask


@lru_cache(maxsize=1)
def parsed(text: str) -> ast.Module:
    """The tree of some code, which nobody changes; of the same text as before, the same tree.

    Each step on a cell's way asks for it, and to parse a long text costs more than all that is done with its tree.
    """
    return ast.parse(text)


def definitions(cells: list[str]) -> str:
    """The part of some code cells that defines things and runs nothing.

    Args:
        cells: the sources of code cells; IPython magics are allowed and dropped.

    Returns:
        Python source with only the imports, `def` and `class` statements and assignments of literal constants, in
        order. A cell that is not valid Python contributes nothing.
    """
    return _joined(text for cell in cells for text in _defining(cell))


def _joined(texts: Iterable[str]) -> str:
    return "\n\n\n".join(texts) + "\n"


def _defining(cell: str, answered: str = "") -> list[str]:
    """The statements of a cell that define something, and what else the answer to an exercise of some name needs."""
    source = as_python(cell)
    try:
        statements = parsed(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    kept = {statement for statement in statements if _defines(statement)}
    if answered:
        needed = {answered}.union(*(words_in(statement) for statement in kept))
        for statement in reversed(statements):
            if needed & set(_assigned(statement)):
                kept.add(statement)
                needed |= words_in(statement)
    return [_text(source, statement) for statement in statements if statement in kept]


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None and _assigned(statement):
        try:
            ast.literal_eval(statement.value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return False
        return True
    return False


def _assigned(statement: ast.stmt) -> list[str]:
    """The names that an assignment gives a value; none where it changes something, such as `x[0] = 1`, too."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return []
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if len(names) == len(targets) else []


def _text(source: str, statement: ast.stmt) -> str:
    # A segment leaves out the decorators, which stand on lines of their own above the definition.
    if decorators := getattr(statement, "decorator_list", []):
        return "\n".join(source.splitlines()[decorators[0].lineno - 1 : statement.end_lineno])
    return ast.get_source_segment(source, statement) or ""  # never empty: the statement was read from this source


def read_definitions(notebook: Path) -> str:
    """`definitions` of a notebook file; of a solution cell also what is assigned to a name that its answer needs.

    Raises:
        ImportError: the file is not a notebook.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = [("".join(cell["source"]), _answered(cell)) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImportError(f"{notebook} is not a readable notebook: {error!r}", path=str(notebook)) from error
    return _joined(text for source, name in sources for text in _defining(source, name))


def _answered(cell: Mapping[str, Any]) -> str:
    """The exercise that a solution cell answers, which has its `grade_id`; empty for other cells."""
    flags = flags_of(cell)
    return flags.get("grade_id", "") if flags.get("solution") else ""


def execute_definitions(source: str, filename: str, namespace: dict) -> None:
    """Execute definitions one by one; one that raises is skipped with a warning, so that the others can be imported."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    for number, compiled in _compiled(source, filename):
        try:
            if isinstance(compiled, Exception):
                raise compiled
            exec(compiled, namespace)
        except Exception as error:
            told = f"{filename}: `{lines[number - 1].strip()}` raised {error!r} and is left out"
            warnings.warn(told, stacklevel=2)


@lru_cache(maxsize=256)  # wrong answers are judged one after another, each among the same other cells
def _compiled(source: str, filename: str) -> list[tuple[int, CodeType | Exception]]:
    """Each statement as code, or why it cannot be compiled, with the number of its line."""
    found: list[tuple[int, CodeType | Exception]] = []
    for statement in ast.parse(source).body:
        compiled: CodeType | Exception
        try:
            compiled = compile(ast.Module([statement], []), filename, "exec")
        except Exception as error:
            compiled = error
        found.append((statement.lineno, compiled))
    return found


_HARMLESS_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


def in_package(name: str, modules: Iterable[str]) -> bool:
    """Whether one of some modules belongs to a package: notebooks have no dots in their names."""
    return "." in name or any(other.startswith(f"{name}.") for other in modules)


# The package that check cells import from, in any course that has one: no worker does.
CHECKS = "checks"


@dataclass(frozen=True)
class Statement:
    """A definition: its text, the names that it binds and those that it uses."""

    text: str
    binds: tuple[str, ...]
    uses: frozenset[str]


@lru_cache(maxsize=256)
def statements_of(text: str) -> tuple[Statement, ...]:
    """The statements of some code, an import of several names as several imports."""
    found = []
    for statement, segment in segments(text):
        texts = [segment]
        if isinstance(statement, ast.ImportFrom):
            if (statement.module or "").split(".")[0] == CHECKS:
                continue  # what judges is imported where it judges
            texts = [ast.unparse(ast.ImportFrom(statement.module, [a], statement.level)) for a in statement.names]
        for one in texts:
            tree = parsed(one)
            imported = [name for node in tree.body for name in bound_by_import(node)]
            found.append(Statement(one, (*imported, *_defined_in(tree)), words_in(tree)))
    return tuple(found)


def segments(text: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of some code, each with its text, decorators included."""
    lines = text.split("\n")
    for statement in parsed(text).body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        yield statement, "\n".join(lines[first - 1 : statement.end_lineno])


@remembered
def words(text: str) -> frozenset[str]:
    """The names that some code may use."""
    try:
        return words_in(parsed(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(re.findall(r"[^\W\d]\w*", text))


def words_in(tree: ast.AST) -> frozenset[str]:
    """The names that some parsed code may use."""
    nodes = list(ast.walk(tree))
    used = frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return used | {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def bound_in(tree: ast.AST) -> frozenset[str]:
    """The names that some parsed code may bind, in its functions too."""
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return frozenset(bound.union(*map(bound_by_import, nodes)))


@remembered
def as_python(text: str) -> str:
    """A cell with `pass` in place of IPython's magics, help and shell commands.

    IPython's own translation would look nicer, but takes quadratic time, and students write this text.
    """
    lines = text.lstrip().split("\n")
    if lines[0].startswith("%%"):
        text = "\n".join(lines[1:]) if lines[0].split()[0] in _HARMLESS_MAGICS else ""
    try:
        parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        text = "\n".join(map(_without_magic, text.split("\n")))
    return text


def _without_magic(line: str) -> str:
    code = line.strip()
    if code[:1] in ("%", "!", "?") or code[-1:] == "?":
        return line[: len(line) - len(line.lstrip())] + "pass"
    target, sign, value = line.partition("=")
    return f"{target}= None" if sign and value.lstrip()[:1] in ("%", "!") else line


def definition_texts(text: str | list[str]) -> dict[str, str]:
    """The text that defines each function and class of a cell, and each other name that it assigns."""
    found: dict[str, str] = {}
    for source in [text] if isinstance(text, str) else text:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for _, segment in segments(source):
                found |= dict.fromkeys(defined_names(segment), segment)
    return found


def bound_by_import(node: ast.AST) -> list[str]:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return []
    return [alias.asname or alias.name.split(".")[0] for alias in node.names]


def functions_in(text: str) -> frozenset[str]:
    """The functions and classes that a cell defines, whatever stands around them; none if it is no code."""
    try:
        return frozenset(s.name for s in parsed(as_python(text)).body if isinstance(s, _NAMED))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


@remembered
def defined_names(text: str) -> tuple[str, ...]:
    """The names that some code defines, functions and classes before what else it assigns; none if it is no code."""
    try:
        return _defined_in(parsed(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _defined_in(tree: ast.Module) -> tuple[str, ...]:
    names = [s.name for s in tree.body if isinstance(s, _NAMED)]
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        names += [target.id for target in targets if isinstance(target, ast.Name)]
    return tuple(names)
