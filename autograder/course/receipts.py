"""Receipts: what came of each notebook, kept beside its graded copy.

One lets the next run skip what has not changed, replay give a verdict again, and pages be written without grading. It
is JSON that people can read; everywhere else a verdict is an `Item`.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from nbgrader.apps.baseapp import NbGrader

from autograder.course.curriculum import Chapter, CourseError
from autograder.course.files import replace_file
from autograder.verdict import Item, Status

RECEIPT = ".autograder.json"
_ROOM = 4 << 20  # bytes on the disk without which nothing is begun


@dataclass(frozen=True)
class Receipt:
    """What came of one notebook.

    Attributes:
        items: the verdict on each check cell.
        answers: the text of each answer in code, by exercise.
        ungradable: why it could not be graded, if it could not.
        seed: what all random numbers came from.
        fingerprint: of all that the verdicts depend on; with another one they are to be had anew.
        in_doubt: why the machine may be to blame for a verdict: then all are to be had anew as well.
        submitted: the folder of hand-ins that it lay in.
        marked: a digest of what each mark is given for, answer and rubric, by cell.
    """

    items: list[Item]
    answers: dict[str, str] = field(default_factory=dict)
    ungradable: str = ""
    seed: int | None = None
    fingerprint: str = ""
    in_doubt: dict[str, str] = field(default_factory=dict)
    submitted: str = ""
    marked: dict[str, str] = field(default_factory=dict)


def folder_of(nbgrader: NbGrader, student: str, chapter: Chapter) -> Path:
    """Where a student's graded chapter lies, and its receipt."""
    coursedir = nbgrader.coursedir
    return Path(coursedir.format_path(coursedir.autograded_directory, student, chapter.folder))


def write_receipt(folder: Path, receipt: Receipt) -> None:
    """Write a receipt down, whole or not at all."""
    replace_file(folder / RECEIPT, json.dumps(asdict(receipt)).encode())


def read_receipt(folder: Path) -> Receipt | None:
    """The receipt in a folder; None if there is none that can be read."""
    try:
        return _read(Receipt, json.loads((folder / RECEIPT).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # half gone, or of another version: the next run of `grade` writes it anew


def graded_from(folder: Path) -> str | None:
    """Which folder of hand-ins the graded notebook in a folder came from; None if there is none, or no receipt of it.

    Of a whole class this is asked for all chapters: the verdicts are not read.
    """
    try:
        return str(json.loads((folder / RECEIPT).read_bytes())["submitted"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def read_items(told: list[dict[str, Any]]) -> list[Item]:
    """Verdicts on checks out of what `dataclasses.asdict` made of them."""
    return [_read(Item, one) for one in told]


def read_receipts(nbgrader: NbGrader, chapter: Chapter) -> Iterator[tuple[str, Receipt]]:
    """The receipts of a chapter with the student whose they are, students in order."""
    root, _, rest = str(folder_of(nbgrader, "*", chapter)).partition("*")
    for path in sorted(Path(root).glob(f"*{rest}/{RECEIPT}")):
        if receipt := read_receipt(path.parent):
            yield path.relative_to(root).parts[0], receipt


def _read(kind: type, told: dict[str, Any]) -> Any:
    """A dataclass out of its dictionary, with those that it holds; what it does not know is left out."""
    hints = _hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in told.items() if name in hints})


# What does not change is worked out once: a class's page reads thousands of these.
_hints = lru_cache(get_type_hints)


@lru_cache
def _dataclass_in(hint: Any) -> type | None:
    kinds = [one for one in (hint, *get_args(hint)) if isinstance(one, type)]
    return next(filter(is_dataclass, kinds), None)


def _value(hint: Any, value: Any) -> Any:
    inside = _dataclass_in(hint)
    if isinstance(value, list):
        return [_value(inside, one) for one in value] if inside else value
    if inside and value is not None:
        return _read(inside, value)
    return Status(value) if hint is Status else value


@contextmanager
def only_one(nbgrader: NbGrader) -> Iterator[None]:
    """See to it that one process at a time writes into a course's folder of graded notebooks.

    Raises:
        CourseError: another one does.
        OSError: the folder cannot be written to, or its disk is full.
    """
    folder = Path(nbgrader.coursedir.format_path(nbgrader.coursedir.autograded_directory, ".", "."))
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < _ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(f"another `autograder grade` is at work on {folder}: wait until it has ended") from None
        yield
