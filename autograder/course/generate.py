"""A chapter's release, made by nbgrader's own `generate_assignment`."""

import tempfile
from pathlib import Path

from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells

from autograder.course.curriculum import Chapter, CourseError


def generate(app: NbGrader, chapter: Chapter, directory: Path, tell_gradebook: bool) -> None:
    """Write a chapter's release with nbgrader's own `generate_assignment`.

    Args:
        app: nbgrader, configured.
        chapter: the chapter whose source in `solutions/` is read.
        directory: where its folder is put.
        tell_gradebook: which cells the chapter has and what they are worth.

    Raises:
        CourseError: nbgrader refuses the chapter, for a solution cell without markers, say, or because the gradebook
            holds marks for other cells than the chapter has now.
    """
    coursedir = CourseDirectory(parent=app)
    coursedir.root, coursedir.db_url = app.coursedir.root, app.coursedir.db_url
    coursedir.release_directory, coursedir.assignment_id = str(directory), chapter.folder
    converter = GenerateAssignment(coursedir=coursedir, parent=app, force=True, no_database=not tell_gradebook)
    if not tell_gradebook:
        converter.preprocessors = [p for p in converter.preprocessors if p is not SaveCells]
    try:
        converter.start()
    except NbGraderException as error:
        raise CourseError(
            f"nbgrader cannot release {chapter.folder} as it is now: {error}. If exercises were added or removed after "
            f"a class was graded, run `nbgrader db assignment remove {chapter.folder} --force` and grade again; marks "
            "that were given by hand in that chapter are lost"
        ) from error


def synchronise(app: NbGrader, chapter: Chapter) -> None:
    """Tell the gradebook which cells a chapter has and what they are worth, without a release.

    Args:
        app: nbgrader, configured.
        chapter: the chapter whose source in `solutions/` is read.

    Raises:
        CourseError: see `generate`.
    """
    with tempfile.TemporaryDirectory() as directory:
        generate(app, chapter, Path(directory), tell_gradebook=True)
