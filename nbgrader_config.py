"""nbgrader for this course: where its folders are, and the grading engine in place of nbgrader's own execution."""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 (traitlets defines it)
root = Path(__file__).resolve().parent

# nbgrader starts `alembic` by name when it makes a gradebook, and would find it only in an activated environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# Folders. A chapter is an assignment: `solutions/01_…/` is released to `notebooks/01_…/`.
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.submitted_directory = "classroom/submitted"
c.CourseDirectory.autograded_directory = "classroom/autograded"
c.CourseDirectory.feedback_directory = "classroom/feedback"
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", ".autograder.json"]

# The gradebook: a file, or PostgreSQL by its URL, such as postgresql+psycopg2://user:password@host/gradebook.
(root / "classroom").mkdir(exist_ok=True)
c.CourseDirectory.db_url = os.environ.get("GRADEBOOK_URL", f"sqlite:///{root / 'classroom' / 'gradebook.db'}")

# The engine. Students' code runs in a sandboxed process of its own, the checks in another.
c.Autograde.exporter_class = "autograder.nbgrader.SubmissionExporter"
c.Autograde.sanitize_preprocessors = [
    "autograder.nbgrader.RepairSubmission",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "autograder.course.gradebook.GradeChapter",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Limits on a submission; the values are the defaults.
c.GradeSubmission.cell_seconds = 20
c.GradeSubmission.submission_seconds = 120

# Feedback shows what students were given: not the hidden part of a check.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# What students wrote is shown on pages, and does nothing there: no script of theirs, no markup that acts.
c.HTMLExporter.filters = {"markdown2html": "autograder.course.rubric.markdown"}
