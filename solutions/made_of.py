"""What a chapter's results are made of: its own code, and what that takes from other chapters."""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator
from functools import cache

import nbformat

from autograder.cells import flags_of
from autograder.course.curriculum import Chapter, Course, reference_modules
from autograder.source import as_python


def made_of(course: Course, chapter: Chapter) -> str:
    """A hash of the code that a chapter's results come from, comments and docstrings left out.

    Of earlier chapters and of the course's packages it takes the definitions that are imported, and
    those that they need in their turn: what else changes there does not concern the chapter.

    Args:
        course: where the chapter and what it imports are found.
        chapter: one that has a solution.

    Returns:
        16 hexadecimal digits.
    """
    imported = reference_modules(course, chapter)
    texts = {name: text for name, text in imported.items() if name not in course.stand_ins}
    own = _code(course, chapter)
    code, wanted = [own], list(_imported(own))
    for module, name in wanted:  # grows while it is read
        if f"{module}.{name}" in texts:
            module, name = f"{module}.{name}", ""
        found = _definitions(texts[module]) if module in texts else {}
        for text in [found.get(name, "")] if name else found.values():
            code.append(text)
            used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
            more = [*_imported(text), *((module, other) for other in sorted(used & found.keys()))]
            wanted += [one for one in dict.fromkeys(more) if one not in wanted]
    return hashlib.sha256("\n".join(map(_bare, code)).encode()).hexdigest()[:16]


def _code(course: Course, chapter: Chapter) -> str:
    """A chapter's code as Python, without its checks."""
    cells = nbformat.read(course.solution(chapter), as_version=4).cells
    code = (cell for cell in cells if cell.cell_type == "code")
    own = (cell.source for cell in code if flags_of(cell).get("solution", True))
    return "\n".join(map(as_python, own))


@cache
def _definitions(text: str) -> dict[str, str]:
    """A module's statements by the name that each gives, an import as one of that name alone."""
    found: dict[str, str] = {}
    for statement in ast.parse(text).body:
        own = ast.get_source_segment(text, statement) or ""
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = own
            case ast.Import(names=names):
                found |= {a.asname or a.name: ast.unparse(ast.Import([a])) for a in names}
            case ast.ImportFrom(module=module, names=names):
                found |= {
                    a.asname or a.name: ast.unparse(ast.ImportFrom(module, [a], 0)) for a in names
                }
            case _:
                nodes = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
                found |= {n.id: own for n in nodes if isinstance(n.ctx, ast.Store)}
    return found


def _imported(text: str) -> Iterator[tuple[str, str]]:
    """What a text imports: the module, and the name in it, or none for the whole."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def _bare(text: str) -> str:
    """A text without comments, docstrings and empty lines."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first, last = node.body[0].lineno - 1, node.body[0].end_lineno
            lines[first:last] = [""] * len(lines[first:last])
    return "\n".join(line.rstrip() for line in lines if line.strip())
