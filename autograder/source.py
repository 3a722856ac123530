"""What of a notebook defines something: imports, functions, classes and constants, and nothing that runs.

Graders read chapters by this. That makes no notebook importable: `autograder.course.imports` does, for notebooks alone.
"""

import ast
import json
import linecache
import warnings
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from autograder.course.curriculum import Chapter, Course

# In notebooks/: the answers of chapters that were not handed out, for those who start at a later one.
REFERENCE = "reference"


def definitions(cells: list[str]) -> str:
    """The part of some code cells that defines things and runs nothing.

    Args:
        cells: the sources of code cells; IPython magics are allowed and dropped.

    Returns:
        Python source with only the imports, `def` and `class` statements and assignments of literal constants, in
        order. A cell that is not valid Python contributes nothing.
    """
    kept = []
    for cell in cells:
        source = TransformerManager().transform_cell(cell)
        try:
            statements = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        kept += [_text(source, statement) for statement in statements if _defines(statement)]
    return "\n\n\n".join(kept) + "\n"


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if not all(isinstance(target, ast.Name) for target in targets):
            return False  # `x[0] = 1` changes something that is not there
        try:
            ast.literal_eval(statement.value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return False
        return True
    return False


def _text(source: str, statement: ast.stmt) -> str:
    # A segment leaves out the decorators, which stand on lines of their own above the definition.
    if decorators := getattr(statement, "decorator_list", []):
        return "\n".join(source.splitlines()[decorators[0].lineno - 1 : statement.end_lineno])
    return ast.get_source_segment(source, statement)


def read_definitions(notebook: Path) -> str:
    """`definitions` of a notebook file.

    Raises:
        ImportError: the file is not a notebook.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise ImportError(f"{notebook} is not a readable notebook: {error!r}", path=str(notebook)) from error
    return definitions(sources)


def execute_definitions(source: str, filename: str, namespace: dict) -> None:
    """Execute definitions one by one; one that raises is skipped with a warning, so that the others can be imported."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    for statement in ast.parse(source).body:
        try:
            exec(compile(ast.Module([statement], []), filename, "exec"), namespace)
        except Exception as error:
            first_line = ast.get_source_segment(source, statement).splitlines()[0]
            warnings.warn(f"{filename}: `{first_line}` raised {error!r} and is left out", stacklevel=2)


def reference_modules(course: Course, chapter: Chapter) -> dict[str, str]:
    """The definitions of the reference solutions that a chapter may import while it is graded.

    Args:
        course: the course, with its solutions.
        chapter: the chapter that is graded.

    Returns:
        For each earlier chapter, its module name and the text of its definitions.
    """
    earlier = [c for c in course.chapters if c.folder < chapter.folder]
    return {c.module: read_definitions(course.solution(c)) for c in earlier}
