"""autograder/README.md's quickstart: the package alone, in an environment of its own, on nbgrader's example course."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("quickstart")  # one environment for all of them

STUDENTS = ("bitdiddle", "hacker")
EXAMPLE = "docs/source/user_guide/submitted"  # in nbgrader's package: two students' notebooks
MARKS = """
    SELECT sa.student_id, bc.name, g.auto_score, g.needs_manual_grade
    FROM grade g JOIN base_cell bc ON g.cell_id = bc.id
    JOIN submitted_notebook sn ON g.notebook_id = sn.id JOIN submitted_assignment sa ON sn.assignment_id = sa.id
"""


@pytest.fixture(scope="module")
def environment(sandboxed, tmp_path_factory) -> Path:
    """An empty environment with `pip install "./autograder[nbgrader]"`, by uv for speed: its folder of programs."""
    try:
        urllib.request.urlopen("https://pypi.org/simple/pip/", timeout=20).close()
    except (urllib.error.URLError, TimeoutError) as error:
        pytest.skip(f"pypi.org cannot be reached: {error}")
    folder = tmp_path_factory.mktemp("quickstart")
    # A copy, so that building leaves nothing in the repository.
    shutil.copytree(REPOSITORY / "autograder", folder / "autograder", ignore=shutil.ignore_patterns("__pycache__"))
    uv = [sys.executable, "-m", "uv", "--no-config", "--quiet"]
    run(*uv, "venv", "--python", sys.executable, "venv", cwd=folder)
    install = ["pip", "install", "--python", folder / "venv/bin/python"]
    install += ["--constraint", REPOSITORY / "environment/versions.txt"]
    run(*uv, *install, f"{folder}/autograder[nbgrader]", "numpy", cwd=folder)
    shutil.rmtree(folder / "autograder")
    return folder / "venv/bin"


def run(*command: object, cwd: Path, timeout: float = 500) -> str:
    """Run a program as in a new terminal with its environment switched on; returns what it said."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JUPYTER", "IPYTHON"))}
    if "/" in str(command[0]):
        kept["PATH"] = f"{Path(command[0]).parent}:{kept['PATH']}"
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=kept, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_nbgraders_example_gets_nbgraders_marks(environment, tmp_path):
    names = "import importlib.metadata as m; print(*{found.name for found in m.distributions()})"
    listed = set(run(environment / "python", "-c", names, cwd=tmp_path).split())
    assert "torch" not in listed and {"autograder", "nbgrader"} <= listed
    run(environment / "nbgrader", "quickstart", "course101", cwd=tmp_path)
    [package] = environment.parent.glob("lib/python*/site-packages/nbgrader")
    shutil.copytree(package / EXAMPLE, tmp_path / "course101/submitted")
    run(environment / "nbgrader", "generate_assignment", "ps1", cwd=tmp_path / "course101")
    shutil.copytree(tmp_path / "course101", tmp_path / "with_the_engine")
    [settings] = re.findall(r"```python\n(.*?)```", (REPOSITORY / "autograder/README.md").read_text(), re.S)
    with (tmp_path / "with_the_engine/nbgrader_config.py").open("a") as config:
        config.write(f"\n{settings}")
    marks = {}
    for engine, course in (("nbgrader", tmp_path / "course101"), ("autograder", tmp_path / "with_the_engine")):
        run(environment / "nbgrader", "autograde", "ps1", cwd=course)
        marks[engine] = read_marks(course)
    assert marks["autograder"] == marks["nbgrader"]
    earned = {s: sum(points or 0 for student, _, points, _ in marks["autograder"] if student == s) for s in STUDENTS}
    assert earned == {"bitdiddle": 1.5, "hacker": 3.0}


def read_marks(course: Path) -> list[tuple]:
    """What the gradebook holds of each check."""
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        return sorted(book.execute(MARKS), key=repr)


ARRAYS = '''
import json
import sys
from nbformat.v4 import new_code_cell, new_notebook
from autograder.isolation.sandbox import Sandbox
from autograder.run import grade_notebook

def cell(text, grade_id, **flags):
    flags = {"grade": False, "solution": False, "locked": False, "schema_version": 3, "task": False} | flags
    return new_code_cell(text, metadata={"nbgrader": {"grade_id": grade_id} | flags})

check = """
import numpy as np
x = np.arange(6.0).reshape(2, 3)
y = double(x)
assert type(y) is np.ndarray and y.dtype == np.float64 and y.flags.writeable, type(y)
np.testing.assert_array_equal(y, 2 * np.arange(6.0).reshape(2, 3))
np.testing.assert_array_equal(x, np.arange(6.0).reshape(2, 3))
assert double(x > 2).dtype == bool and double(x[:, :0]).shape == (2, 0)
"""
right = "def double(x):\\n    return x + x"
in_place = "def double(x):\\n    x += x\\n    return x"
wrong = "def double(x):\\n    return list(x + x)"
def course(answer):
    checked = cell(check, "double_check", grade=True, locked=True, points=1)
    return new_notebook(cells=[cell(answer, "double", solution=True), checked])
with Sandbox() as sandbox:
    items = [grade_notebook(sandbox, course(a), course(right)).items[0] for a in (right, in_place, wrong)]
print(json.dumps([sandbox.sandboxed, "torch" in sys.modules, *[item.status for item in items]]))
'''


def test_arrays_cross_without_torch(environment, tmp_path):
    """In the sandbox; an array that student code changes in place stays as the check made it."""
    assert json.loads(run(environment / "python", "-c", ARRAYS, cwd=tmp_path).splitlines()[-1]) == [
        True,
        False,
        "passed",
        "passed",
        "failed",
    ]
