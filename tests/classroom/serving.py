"""A class's server for tests: without a network, and as the processes that it is."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.api import MissingEntry
from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

from autograder import cli
from autograder.course import gradebook
from autograder.course.curriculum import Course, CourseError
from autograder.course.grade import Means
from autograder.service import grading, settings
from autograder.service import store as state
from autograder.service.app import Class, make_app
from autograder.service.people import by_token

RIGHT = {"double": "return x + x", "halve": "return x / 2"}
HALF = {"double": "return x + x", "halve": "return x"}
AUTOGRADER = [sys.executable, "-c", "from autograder.cli import main; main()"]


def run(*arguments: object, **environment: str) -> Result:
    """Run the command line in this process; a message for bad input is its exception."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments], env={"COLUMNS": "200"} | environment)


def line_of(result: Result) -> str:
    """The one line that bad input is told in."""
    assert isinstance(result.exception, CourseError), (result.output, result.exception)
    assert "\n" not in str(result.exception)
    return str(result.exception)


@dataclass
class Room:
    """A class's server without a network: its application, its database, and a step of the process that grades."""

    course: Course
    tokens: dict[str, str]
    store: state.Engine
    client: TestClient
    pack: Callable[..., bytes]

    def send(self, student: str, content: bytes, chapter: str = "01_numbers", token: str = ""):
        headers = {"Authorization": f"Bearer {token or self.tokens[student]}"}
        return self.client.post(f"/api/hand-ins/{chapter}", content=content, headers=headers)

    def look(self, student: str, id: str) -> dict:
        return self.client.get(
            f"/api/receipts/{id}", headers={"Authorization": f"Bearer {self.tokens[student]}"}
        ).json()

    def grade(self) -> int:
        nbgrader = gradebook.configure(self.course)
        rules = settings.read_rules(self.course, nbgrader)
        return grading.grade_waiting(self.course, nbgrader, self.store, rules, Means(workers=1))

    def reload(self, **options: Any) -> None:
        """Serve with the settings as they are now."""
        nbgrader = gradebook.configure(self.course)
        rules = settings.read_rules(self.course, nbgrader)
        received = state.home(nbgrader) / "received"
        served = Class(self.course, nbgrader, rules, received, self.store, by_token(self.store), **options)
        self.client = TestClient(make_app(served), raise_server_exceptions=False)

    def mark(self, student: str) -> float | None:
        with gradebook.open_gradebook(gradebook.configure(self.course)) as book:
            try:
                return book.find_submission_notebook("numbers_chapter", "01_numbers", student).score
            except MissingEntry:
                return None


def set_up(course: Course, line: str) -> None:
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(f"\n{line}\n")


class Server:
    """`autograder serve` in a process of its own."""

    def __init__(self, course: Course, *options: str) -> None:
        command = [*AUTOGRADER, "serve", "--port", "0", "--workers", "1", *options]
        self.process = subprocess.Popen(
            command,
            cwd=course.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.said = self.process.stdout.readline()  # type: ignore[union-attr]
        match = re.search(r"Listening at (https?://\S+?);", self.said)
        assert match, self.said + self.process.stdout.read()  # type: ignore[union-attr]
        self.url = match[1]

    def kill(self) -> None:
        """Kill the server as a power cut would, and the process that grades with it."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in (self.process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()  # type: ignore[union-attr]

    def stop(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=40)[0]


def settle(room: Room, students: dict[str, str], seconds: float = 60) -> None:
    """Wait until each student's receipt has a verdict."""
    until = time.monotonic() + seconds
    while not all(room.look(student, id)["graded"] for student, id in students.items()):
        assert time.monotonic() < until, "not all is graded"
        time.sleep(0.2)
