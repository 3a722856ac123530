"""Following a submission never leads back up: imports run against the order of the README's list."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "autograder"


def listed(readme: str) -> list[str]:
    """The files of the README's tables in their order, by path inside the package."""
    engine, _, course = readme.partition("In `course/`")
    inside = [f"course/{name}" for row in _rows(course) for name in _files(row)]
    order = []
    for row in _rows(engine):
        folder = re.match(r"`(\w+/)`", row)
        order += (
            inside if folder and folder[1] == "course/" else [(folder[1] if folder else "") + n for n in _files(row)]
        )
    return order


def _rows(table: str) -> list[str]:
    return re.findall(r"^\| (`.*)$", table, re.MULTILINE)


def _files(row: str) -> list[str]:
    return re.findall(r"`(\w+\.py)`", row)


def imported(path: Path, names: set[str]) -> set[str]:
    """The files of the package that one of its files imports, wherever in it the import stands."""
    wanted = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            wanted |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            wanted |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    found = {name.removeprefix("autograder.").replace(".", "/") + ".py" for name in wanted if "autograder" in name}
    # What runs in the sandbox finds the others there by their bare names.
    if path.parent.name == "isolation":
        found |= {f"{folder}/{name}.py" for folder in ("isolation", "wire") for name in wanted}
    return found & names


def complaints(files: dict[str, Path], order: list[str]) -> list[str]:
    """What is out of order, a line each."""
    place = {name: number for number, name in enumerate(order) if name in files}
    lines = [f"{name} is not in the list of autograder/README.md" for name in files if name not in place]
    for name in place:
        later = [other for other in imported(files[name], set(place)) if place[other] > place[name]]
        lines += [f"{name} imports {other}, which autograder/README.md lists later" for other in later]
    return lines


def files() -> dict[str, Path]:
    found = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {name: path for name, path in found.items() if path.name != "__init__.py" and "build/" not in name}


def test_imports_run_against_the_order_of_the_list():
    assert not complaints(files(), listed((PACKAGE / "README.md").read_text()))


@pytest.mark.parametrize("one, other", list(pairwise(["verdict.py", "run.py", "nbgrader.py"])))
def test_an_import_of_a_later_file_is_named_with_both(tmp_path, one, other):
    early = tmp_path / "early.py"
    early.write_text(f"def late():\n    from autograder.{other[:-3]} import something")
    assert complaints({one: early, other: PACKAGE / other}, [one, other]) == [
        f"{one} imports {other}, which autograder/README.md lists later"
    ]
    assert complaints({one: early}, []) == [f"{one} is not in the list of autograder/README.md"]
