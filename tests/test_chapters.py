"""Importing an earlier chapter: definitions only, from the folders beside, whatever state the chapter is in."""

import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.source import definitions


def write(folder, name, *cells):
    folder.mkdir(parents=True, exist_ok=True)
    cells = [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    notebook = new_notebook(cells=[new_markdown_cell("# text"), *cells])
    nbformat.write(notebook, folder / f"{name}.ipynb")


def answer(exercise, text):
    return new_code_cell(text, metadata={"nbgrader": {"grade_id": exercise, "solution": True}})


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """A student's two chapters, the first in every kind of trouble."""
    root = tmp_path_factory.mktemp("course")
    write(
        root / "01_first",
        "first",
        "import math\nfrom os import path",
        "RATE = 0.1\nNAMES = ['a', 'b']\nstarted = open('/nowhere')",
        "def solved(x):\n    return RATE * math.sqrt(x)",
        "def unsolved(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
        "class Net:\n    size = 3\n\n    def area(self):\n        return self.size**2",
        "import time\nwhile True:\n    time.sleep(60)",
        "assert unsolved(1) == 1, 'a failing check'",
        "%matplotlib inline\n!false\nraise SystemExit",
        "def broken(:\n",
        "def wrong_default(x=undefined_name):\n    pass",
        "@undefined_decorator\ndef decorated():\n    pass",
        "def later():\n    return solved(4)",
        answer(
            "answered",
            "import functools\ntwice = lambda x: 2 * x\nTWO = twice(1)\ntried = open('/nowhere')\n"
            "def scaled(by, x):\n    return by * x\n"
            "answered = functools.partial(scaled, TWO)\nprint(answered(3))",
        ),
    )
    return root


def run(cwd, code):
    cwd.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import autograder.course.imports\n" + code],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip() + done.stderr.strip()[-300:]


def test_a_chapter_in_trouble_imports_at_once(student):
    code = """
import time; start = time.perf_counter()
from first import solved, later, Net, RATE, NAMES
print(solved(4), later(), Net().area(), RATE, NAMES, time.perf_counter() - start < 1)
"""
    assert run(student / "02_second", code) == "0.2 0.2 9 0.1 ['a', 'b'] True"


def test_an_unsolved_exercise_raises_only_when_it_is_called(student):
    code = """
from first import unsolved
try: unsolved(1)
except NotImplementedError: print("raised when called")
"""
    assert run(student / "02_second", code) == "raised when called"


def test_an_answer_has_what_it_needs_and_nothing_else_of_its_cell_runs(student):
    code = "import first; print(first.answered(4), hasattr(first, 'tried'))"
    assert run(student / "02_second", code) == "8 False"


def test_nothing_that_runs_is_executed(student):
    assert (
        run(student / "02_second", "import first; print(hasattr(first, 'started'), hasattr(first, 'time'))")
        == "False True"
    )


def test_the_source_of_an_imported_function_can_be_read(student):
    code = "import inspect, first; print(inspect.getsource(first.later))"
    assert run(student / "02_second", code) == "def later():\n    return solved(4)"


def test_an_unknown_chapter_is_an_ordinary_import_error(student):
    assert "No module named 'first_and_last'" in run(student / "02_second", "import first_and_last")


def test_a_file_that_is_no_notebook_says_so(tmp_path):
    (tmp_path / "01_first").mkdir()
    (tmp_path / "01_first/first.ipynb").write_text("{not json")
    assert "is not a readable notebook" in run(tmp_path / "02_second", "import first")


def test_definitions_keep_comments_and_decorators_and_drop_what_runs():
    cell = (
        "import os; os.getcwd()\nx = 1; y = f(2); z[0] = 3; z.a = 4\n@a\n@b(1)\ndef f(x):\n    # why\n    return x\n"
        "for i in range(3): pass"
    )
    assert definitions([cell]).split("\n\n\n") == [
        "import os",
        "x = 1",
        "@a\n@b(1)\ndef f(x):\n    # why\n    return x\n",
    ]


def test_the_real_chapters_import_quickly(repository):
    start = time.perf_counter()
    code = "from weighted_averages import weighted_avg, show_weights; print(weighted_avg.__name__)"
    assert run(repository / "solutions/02_normalized_dot_products", code) == "weighted_avg"
    assert time.perf_counter() - start < 30
