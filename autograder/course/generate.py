"""A chapter's release, made by nbgrader's own `generate_assignment`."""

import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells

from autograder.course.curriculum import Chapter, CourseError


class _Heard(logging.Handler):
    """What nbgrader caught on its way: it logs a traceback, and raises that there is one."""

    caught: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.caught = self.caught or sys.exc_info()[1]


@contextmanager
def scratch(where: Path | None = None) -> Iterator[Path]:
    """A folder to generate releases in, gone afterwards.

    Args:
        where: the folder that it is made in; the system's for such things by default.

    Raises:
        CourseError: the disk is full, or nothing can be written there.
    """
    try:
        made = tempfile.TemporaryDirectory(dir=where, prefix=".release-")
    except OSError as error:
        raise CourseError(f"no folder can be made to generate in: {error.strerror}: {error.filename}") from error
    with made as folder:
        yield Path(folder)


def generate(app: NbGrader, chapter: Chapter, directory: Path, tell_gradebook: bool) -> None:
    """Write a chapter's release with nbgrader's own `generate_assignment`.

    Args:
        app: nbgrader, configured.
        chapter: the chapter whose source in `solutions/` is read.
        directory: where its folder is put.
        tell_gradebook: which cells the chapter has and what they are worth.

    Raises:
        CourseError: nbgrader refuses the chapter, for a solution cell without markers, say, or because the gradebook
            holds marks for other cells than the chapter has now; or the disk is full.
    """
    coursedir = CourseDirectory(parent=app)
    coursedir.root, coursedir.db_url = app.coursedir.root, app.coursedir.db_url
    coursedir.release_directory, coursedir.assignment_id = str(directory), chapter.folder
    heard, log = _Heard(logging.ERROR), logging.Logger("generate")
    log.addHandler(heard)
    converter = GenerateAssignment(coursedir=coursedir, parent=app, log=log, force=True, no_database=not tell_gradebook)
    if not tell_gradebook:
        converter.preprocessors = [p for p in converter.preprocessors if p is not SaveCells]
    try:
        converter.start()
    except NbGraderException as error:
        why = heard.caught or error
        if isinstance(why, OSError):
            told = f"{why.strerror}: {why.filename or directory}"
            raise CourseError(f"the release of {chapter.folder} cannot be written: {told}") from why
        raise CourseError(
            f"nbgrader cannot release {chapter.folder} as it is now: {why}. If exercises were added or removed after "
            f"a class was graded, run `nbgrader db assignment remove {chapter.folder} --force` and grade again; marks "
            "that were given by hand in that chapter are lost"
        ) from error


def synchronise(app: NbGrader, chapter: Chapter) -> None:
    """Tell the gradebook which cells a chapter has and what they are worth, without a release.

    Args:
        app: nbgrader, configured.
        chapter: the chapter whose source in `solutions/` is read.

    Raises:
        CourseError: see `generate` and `scratch`.
    """
    with scratch() as directory:
        generate(app, chapter, directory, tell_gradebook=True)
