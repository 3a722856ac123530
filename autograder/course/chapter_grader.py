"""nbgrader's grading step for a chapter of a course in this layout."""

from pathlib import Path

from autograder.course.curriculum import find_course, reference_modules
from autograder.nbgrader import GradeSubmission


class GradeChapter(GradeSubmission):
    """Grades a chapter, which may import the reference of earlier ones; it is configured as `GradeSubmission`."""

    def modules(self, source: Path) -> dict[str, str]:
        """The earlier chapters' definitions."""
        course = find_course(source.parent)
        return reference_modules(course, course.find(source.stem))
