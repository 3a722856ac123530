"""Import an earlier chapter: its definitions, and nothing that runs.

`import_ipynb` executes every cell of a notebook that is imported, and looks in the working directory only. A chapter
trains, plots and holds checks that fail while an exercise is unsolved, so this subclass of its loader executes only
what defines something: imports, functions, classes and constants, and in an answer's cell what is assigned to the names
that it needs. A chapter is found by its module name in the sibling chapter folders. A notebook switches it on with
`import autograder.course.imports`, then imports what it needs:

    from weighted_averages import weighted_avg

No module of the grader imports this one: a notebook that somebody handed in would be on its path.
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import import_ipynb

from autograder.course.curriculum import REFERENCE
from autograder.source import execute_definitions, read_definitions


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
