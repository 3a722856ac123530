"""A course of two tiny chapters, so that these tests know every mark in advance."""

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from autograder.course import gradebook
from autograder.course.curriculum import Course, find_course

if TYPE_CHECKING:
    from serving import Room

REPOSITORY = Path(__file__).parents[2]

CURRICULUM = """
[[chapter]]
folder = "01_numbers"
module = "numbers_chapter"
title = "Numbers"
exercises = [
    { name = "double", points = 2 },
    { name = "halve", points = 1 },
    { name = "why", points = 1, kind = "written" },
]

[[chapter]]
folder = "02_words"
module = "words_chapter"
title = "Words"
exercises = [{ name = "shout", points = 3 }]
"""

RIGHT = {"double": "return 2 * x", "halve": "return x / 2", "shout": "return text.upper()"}


# What a check says by a name, and not by a text alone.
SIGNS = """from autograder.mistakes import Mistake, expect
class known(Mistake):
    SIGNS = "signs"
expect(double(-1) == -2, known.SIGNS)"""


def _cell(grade_id: str, *, solution: bool = False, points: float | None = None) -> dict:
    flags = {"grade": points is not None, "solution": solution, "locked": not solution, "task": False}
    extra = {} if points is None else {"points": points}
    return {"nbgrader": {"grade_id": grade_id, "schema_version": 3} | flags | extra}


def exercise(name: str, argument: str, visible: str, hidden: str, points: float) -> list[NotebookNode]:
    """The two cells of one exercise as they stand in solutions/."""
    answer = f"def {name}({argument}):\n    ### BEGIN SOLUTION\n    {RIGHT[name]}\n    ### END SOLUTION"
    check = f"{visible}\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"
    return [
        new_code_cell(answer, metadata=_cell(name, solution=True)),
        new_code_cell(check, metadata=_cell(f"{name}_check", points=points)),
    ]


def write_notebook(path: Path, cells: list[NotebookNode]) -> None:
    """Write a notebook with the course's kernel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=kernel), path)


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gradebook that nbgrader has just made: it takes a second, so it is made once and copied."""
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        Gradebook(f"sqlite:///{path}", "attention").close()
    return path


@pytest.fixture
def course(tmp_path: Path, empty_gradebook: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """The course, freshly made, as the working directory."""
    root = tmp_path / "course"
    numbers = [
        new_markdown_cell("# Numbers"),
        new_code_cell("import math"),
        *exercise("double", "x", "assert double(3) == 6, 'six'", SIGNS, 2),
        *exercise("halve", "x", "assert halve(4) == 2", "assert halve(1) == 0.5, 'halve(1) should be 0.5'", 1),
        new_markdown_cell("Because.", metadata=_cell("why", solution=True, points=1)),
    ]
    words = [
        new_code_cell("import math"),
        *exercise("shout", "text", "assert shout('a') == 'A', 'capitals'", "assert shout('ab') == 'AB', 'all'", 3),
    ]
    write_notebook(root / "solutions/01_numbers/numbers_chapter.ipynb", numbers)
    write_notebook(root / "solutions/02_words/words_chapter.ipynb", words)
    (root / "solutions/curriculum.toml").write_text(CURRICULUM)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    (root / "classroom").mkdir()
    shutil.copy(empty_gradebook, root / "classroom/gradebook.db")
    monkeypatch.chdir(root)
    return find_course()


@pytest.fixture
def hand_in(course: Course):
    """Hand in a chapter: `hand_in("ada", "01_numbers", double="return x + x")`; what is not given is not attempted."""

    def hand_in(student: str, folder: str, **answers: str) -> Path:
        chapter = course.find(folder)
        notebook = nbformat.read(course.solution(chapter), as_version=4)
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if name in RIGHT:
                body = answers.get(name, "# YOUR CODE HERE\n    raise NotImplementedError()")
                cell.source = f"{cell.source.splitlines()[0]}\n    {body}"
            elif name == "why":
                cell.source = answers.get("why", "YOUR ANSWER HERE")
            else:
                cell.source = cell.source.split("### BEGIN HIDDEN")[0].rstrip()
        path = course.root / "classroom/submitted" / student / folder / f"{chapter.module}.ipynb"
        write_notebook(path, notebook.cells)
        return path

    return hand_in


@pytest.fixture
def own(course, hand_in):
    """Put chapter 01 into notebooks/, answered as told."""

    def own(**answers: str) -> Path:
        path = course.notebook(course.find("01"))
        path.parent.mkdir(parents=True, exist_ok=True)
        hand_in("me", "01_numbers", **answers).rename(path)
        return path

    return own


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[tuple[str, Callable[[str], None]]]:
    """A PostgreSQL server on loopback, its data in a temporary folder: its address, and what starts and stops it."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not programs:
        pytest.skip("PostgreSQL is not installed (Debian, Ubuntu: apt install postgresql)")
    # The server refuses to run as root, so root starts it as the user that Debian's package made.
    owner = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    if owner:
        shutil.chown(folder, **owner)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    control = [str(programs[-1]), "-D", str(folder / "data"), "-l", str(folder / "log"), "-w", "-m", "immediate"]
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, **owner)

    run(str(programs[-1].with_name("initdb")), "-D", str(folder / "data"), "-U", "teacher", "-A", "trust", "-N")
    run(*control, "-o", options, "start")
    yield f"postgresql+psycopg2://teacher@127.0.0.1:{port}", lambda what: run(*control, "-o", options, what)
    run(*control, "stop")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgresql(postgresql_server: tuple[str, Callable[[str], None]]) -> str:
    """The address of a PostgreSQL server on loopback."""
    return postgresql_server[0]


@pytest.fixture
def pack(hand_in) -> Callable[..., bytes]:
    """A pack as `autograder hand-in` makes it; another `note` makes another pack of the same notebook."""

    def pack(folder: str = "01_numbers", note: str = "", **answers: str) -> bytes:
        path = hand_in("packed", folder, **answers)
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, f"Ada/{folder}/{path.name}")
            archive.writestr(f"Ada/{folder}/manifest.json", json.dumps({"note": note}))
        path.unlink()
        path.parent.rmdir()
        path.parent.parent.rmdir()
        return content.getvalue()

    return pack


@pytest.fixture
def enrolled(course, tmp_path) -> dict[str, str]:
    """Three students' tokens."""
    from serving import run

    (tmp_path / "students.csv").write_text("name,id\nAda Lovelace,ada\nBen,ben\nCem,cem\n")
    assert run("students", "add", tmp_path / "students.csv").exit_code == 0
    assert run("tokens", tmp_path / "tokens.csv").exit_code == 0
    rows = [row.split(",") for row in (tmp_path / "tokens.csv").read_text().splitlines()[1:]]
    return {student: token for student, _, token in rows}


@pytest.fixture
def room(course, enrolled, pack) -> Iterator["Room"]:
    """A class's server without a network."""
    from serving import Room

    from autograder.service import store as state

    store = state.open_store(gradebook.configure(course))
    room = Room(course, enrolled, store, None, pack)  # type: ignore[arg-type]
    room.reload()
    yield room
    store.dispose()
