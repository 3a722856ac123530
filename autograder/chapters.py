"""Import an earlier chapter: its definitions, and nothing that runs.

`import_ipynb` executes every cell of a notebook that is imported, and looks in the working directory only. A chapter
trains, plots and holds checks that fail while an exercise is unsolved, so this subclass of its loader executes only
what defines something: imports, functions, classes and constants. A chapter is found by its module name in the
sibling chapter folders. A notebook switches it on with `import autograder.chapters`, then imports what it needs:

    from weighted_averages import weighted_avg
"""

import ast
import json
import linecache
import sys
import warnings
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import import_ipynb
from IPython.core.inputtransformer2 import TransformerManager

from autograder.course import Chapter, Course

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


class ChapterLoader(import_ipynb.NotebookLoader):
    """Executes the definitions of one notebook."""

    def __init__(self, notebook: Path) -> None:
        # Deliberately without the parent's __init__, which starts an IPython shell.
        self.notebook = notebook

    def create_module(self, spec: ModuleSpec) -> None:
        return None  # an ordinary module

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.notebook)
        execute_definitions(read_definitions(self.notebook), str(self.notebook), module.__dict__)


class ChapterFinder(import_ipynb.NotebookFinder):
    """Finds a chapter by its module name: one's own beside the working directory, else the reference handed out."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        here = Path.cwd()
        for chapter in ("[0-9][0-9]_*", REFERENCE):
            for folder in (here, here.parent):
                for notebook in sorted(folder.glob(f"{chapter}/{fullname}.ipynb")):
                    return spec_from_loader(fullname, ChapterLoader(notebook), origin=str(notebook))
        return None


# import_ipynb installs its own finder, which would run whole notebooks: ours takes its place.
sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, import_ipynb.NotebookFinder)] + [ChapterFinder()]
