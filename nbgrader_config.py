"""nbgrader for this course: where its folders are, and the grading engine in place of nbgrader's own execution."""

import os
import sys
from pathlib import Path

from autograder.course.curriculum import CourseError, class_folder
from autograder.nbgrader import use_engine

c = get_config()  # noqa: F821 (traitlets defines it)
root = Path(__file__).resolve().parent

# nbgrader starts `alembic` by name when it makes a gradebook, and would find it only in an activated environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# Folders. A chapter is an assignment: `solutions/01_…/` is released to `notebooks/01_…/`.
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
# With several classes AUTOGRADER_CLASS, or `--class`, says which: each has folders and a gradebook of its own.
name = os.environ.get("AUTOGRADER_CLASS", "")
try:
    classroom = class_folder(root, name)
except CourseError as error:
    sys.exit(f"nbgrader_config.py: {error}")
classroom.mkdir(exist_ok=True)
# nbgrader's exchange, and a JupyterHub's groups, tell classes apart by this.
c.CourseDirectory.course_id = f"attention-{name}" if name else "attention"
for kind in ("submitted", "autograded", "feedback"):
    c.CourseDirectory[f"{kind}_directory"] = str(classroom.relative_to(root) / kind)
# What nbgrader never copies, to students either: what was kept aside in `notebooks/` may hold the instructor's answers.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", ".autograder.json", "*.bak"]

# The gradebook: a file, or PostgreSQL by its URL, such as postgresql+psycopg2://user:password@host/gradebook{class}.
url = os.environ.get("GRADEBOOK_URL", f"sqlite:///{classroom / 'gradebook.db'}")
if name and "GRADEBOOK_URL" in os.environ and "{class}" not in url:
    sys.exit("nbgrader_config.py: GRADEBOOK_URL leads all classes to one gradebook: let its name hold {class}")
c.CourseDirectory.db_url = url.replace("{class}", name)

# The engine. Students' code runs in a sandboxed process of its own, the checks in another.
use_engine(c, grade="autograder.course.chapter_grader.GradeChapter")

# Limits on a submission; the values are the defaults.
c.GradeSubmission.cell_seconds = 20
c.GradeSubmission.submission_seconds = 180

# Feedback shows what students were given: not the hidden part of a check.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# As the engine shows what students wrote, and in formgrader the rubric below an answer that is marked by hand.
c.HTMLExporter.filters = {"markdown2html": "autograder.course.rubric.markdown"}
