"""What was handed in: which notebooks lie where nbgrader looks for them, and when they came."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from nbgrader import utils
from nbgrader.apps.baseapp import NbGrader

from autograder.course.curriculum import Chapter
from autograder.plain import plain


@dataclass(frozen=True)
class HandIn:
    """One notebook to grade."""

    student: str
    chapter: Chapter
    path: Path
    refused: str = ""
    """why it is not even looked at"""


def submitted_folder(nbgrader: NbGrader) -> Path:
    """The folder of hand-ins that `nbgrader_config.py` names: it holds a folder for each student."""
    coursedir = nbgrader.coursedir
    return Path(coursedir.format_path(coursedir.submitted_directory, ".", "."))


def find_hand_ins(submitted: Path, chapters: list[Chapter], student: str | None = None) -> list[HandIn]:
    """The notebooks that lie under `submitted` as nbgrader lays them out.

    Args:
        submitted: the folder that holds a folder for each student.
        chapters: the chapters to grade.
        student: only this student's.

    Returns:
        One entry for each chapter folder that a student handed in, whether or not its notebook is there. Links are not
        followed: what lies behind one is refused, since it may be another student's, or the solution.
    """
    found = []
    for name in sorted(f.name for f in submitted.iterdir() if not f.name.startswith(".")):
        for chapter in chapters:
            folder = submitted / name / chapter.folder
            if student not in (None, name) or not os.path.lexists(folder):
                continue
            refused = _why_refused(submitted / name, folder)
            if refused or folder.is_dir():
                found.append(HandIn(name, chapter, folder / f"{chapter.module}.ipynb", refused))
    return found


def _why_refused(*path: Path) -> str:
    for folder in path:
        if folder.is_symlink():
            return f"{folder.name} is a symbolic link, which is not followed"
        if not folder.is_dir():
            return f"{folder.name} is not a folder"
    if plain(path[0].name) != path[0].name:
        return "the folder's name holds characters that steer a terminal, or bytes that are no characters: rename it"
    return ""


def is_plain_file(path: Path) -> bool:
    """Whether a path that a student may have made is a file, not a link to another's nor a pipe that never ends."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def read_timestamp(folder: Path) -> str | None:
    """When a folder was handed in, as nbgrader's `timestamp.txt` tells it; None if it does not."""
    file = folder / "timestamp.txt"
    if not is_plain_file(file) or file.stat().st_size > 100:
        return None
    try:
        text = file.read_text(encoding="utf-8").strip()
        utils.parse_utc(text)
    except (OSError, ValueError, OverflowError):
        return None
    return text
