"""The course as data: where it lies, its chapters, their exercises and points; and which class is at hand."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.source import read_definitions

# In notebooks/: the answers of chapters that were not handed out, for those who start at a later one.
REFERENCE = "reference"
# The environment variable that tells every command and `nbgrader_config.py` which class is at hand.
CLASS = "AUTOGRADER_CLASS"
# What lies in classroom/ when there is one class: no other can be called so.
_OF_ONE_CLASS = ("submitted", "autograded", "feedback", "earlier", "received")


class CourseError(Exception):
    """Bad input, told in one line that a reader can act on."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its name is the `grade_id` of its solution cell."""

    name: str
    points: float
    kind: str = "code"


@dataclass(frozen=True)
class Chapter:
    """One chapter: `folder` orders it and names nbgrader's assignment, `module` names its notebook."""

    folder: str
    module: str
    title: str
    exercises: tuple[Exercise, ...]

    @property
    def number(self) -> str:
        """The two digits that the folder starts with."""
        return self.folder[:2]

    @property
    def points(self) -> float:
        """The sum over the chapter's exercises."""
        return sum(exercise.points for exercise in self.exercises)


@dataclass(frozen=True)
class Course:
    """A course folder and what its curriculum promises."""

    root: Path
    curriculum: tuple[Chapter, ...]
    stand_ins: Mapping[str, str] = field(default_factory=dict, hash=False)
    """text by name: what a notebook imports while it is graded in place of packages that have no part in that"""
    packages: tuple[str, ...] = ()
    """folders of the course that notebooks import from: students' code may do so while it is graded, too"""
    class_name: str = ""
    """which class is graded, if there are several"""

    @property
    def library(self) -> dict[str, str]:
        """What students' code may import in any chapter, text by name: the course's packages, and its stand-ins."""
        files = [file for package in self.packages for file in sorted((self.root / package).rglob("*.py"))]
        parts = [file.relative_to(self.root).with_suffix("").parts for file in files]
        names = [".".join(p[:-1] if p[-1] == "__init__" else p) for p in parts]
        texts = {name: file.read_text(encoding="utf-8") for name, file in zip(names, files, strict=True)}
        return texts | dict(self.stand_ins)

    @property
    def classroom(self) -> Path:
        """The folder of the class: its hand-ins, graded notebooks, pages and marks."""
        return self.root / "classroom" / self.class_name

    @property
    def chapters(self) -> list[Chapter]:
        """The chapters that are here: in the repository those with a solution, in a student's copy those handed out."""
        folders = ["solutions"] if self.has_solutions else ["notebooks", "originals"]
        return [
            chapter
            for chapter in self.curriculum
            if any((self.root / f / chapter.folder / f"{chapter.module}.ipynb").is_file() for f in folders)
        ]

    @property
    def has_solutions(self) -> bool:
        """Whether this is the whole repository rather than the copy that students get."""
        return any((self.root / "solutions").glob("*/*.ipynb"))

    def solution(self, chapter: Chapter) -> Path:
        """The notebook that is edited by hand."""
        return self.root / "solutions" / chapter.folder / f"{chapter.module}.ipynb"

    def notebook(self, chapter: Chapter) -> Path:
        """The notebook that students get."""
        return self.root / "notebooks" / chapter.folder / f"{chapter.module}.ipynb"

    def find(self, name: str) -> Chapter:
        """The chapter with this folder, module or number.

        Args:
            name: "01", "1", "weighted_averages" or "01_weighted_averages"; a trailing slash does no harm.

        Raises:
            CourseError: no chapter is called so.
        """
        wanted = Path(name).name
        for chapter in self.chapters:
            if wanted in (chapter.folder, chapter.module, chapter.number, str(int(chapter.number))):
                return chapter
        known = ", ".join(c.folder for c in self.chapters)
        raise CourseError(f"there is no chapter {name!r}; the chapters here are {known}")

    def select(self, names: list[str] | None) -> list[Chapter]:
        """The named chapters, in the course's order; all of them when none is named."""
        if not names:
            return self.chapters
        chosen = {self.find(name).folder for name in names}
        return [c for c in self.chapters if c.folder in chosen]


def find_course(start: Path | None = None) -> Course:
    """The course that the working directory, or `start`, belongs to.

    Args:
        start: a folder inside the course; the working directory by default.

    Returns:
        The course, with the curriculum that `curriculum.toml` promises.

    Raises:
        CourseError: no folder from `start` upwards holds a course.
    """
    here = (start or Path.cwd()).resolve()
    for root in (here, *here.parents):
        for folder in ("solutions", "notebooks"):
            if (file := root / folder / "curriculum.toml").is_file():
                return _read_course(root, file)
    raise CourseError(
        f"{here} is not inside the course: no solutions/curriculum.toml here or above; change into its folder"
    )


def class_folder(root: Path, name: str) -> Path:
    """Where a class has its folders; without a name, where the only one has them.

    Args:
        root: of the course.
        name: the class's.

    Raises:
        CourseError: no class is called so.
    """
    classroom = root / "classroom"
    _require_class_name(name)
    if name and not (classroom / name).is_dir():
        begun = classes(root)
        here = f"the classes here are {', '.join(begun)}" if begun else "none was begun yet"
        raise CourseError(
            f"there is no class {name!r}: {here}; `autograder students add FILE --class {name}` begins it"
        )
    return classroom / name


def classes(root: Path) -> list[str]:
    """The names of the classes that were begun."""
    folders = (root / "classroom").glob("[!.]*/")
    return sorted(folder.name for folder in folders if folder.name not in _OF_ONE_CLASS)


def begin_class(root: Path, name: str) -> None:
    """Make the folder of a class, if it is not there yet.

    Raises:
        CourseError: no class can be called so.
    """
    _require_class_name(name)
    (root / "classroom" / name).mkdir(parents=True, exist_ok=True)


def _require_class_name(name: str) -> None:
    if name and (not re.fullmatch(r"\w[\w.-]{0,60}", name) or name.lower() in _OF_ONE_CLASS):
        raise CourseError(f"{name!r} cannot be the name of a class: letters, digits, '-', '.' and '_' can be in it")


def _read_course(root: Path, file: Path) -> Course:
    told = tomllib.loads(file.read_text(encoding="utf-8"))
    chapters = tuple(
        Chapter(c["folder"], c["module"], c["title"], tuple(Exercise(**e) for e in c["exercises"]))
        for c in told["chapter"]
    )
    return Course(root, chapters, told.get("stand_ins", {}), tuple(told.get("packages", ())))


def reference_modules(course: Course, chapter: Chapter) -> dict[str, str]:
    """The definitions of the reference solutions that a chapter may import while it is graded.

    Args:
        course: the course, with its solutions.
        chapter: the chapter that is graded.

    Returns:
        For each earlier chapter, its module name and the text of its definitions; and the course's `library`.
    """
    earlier = [c for c in course.chapters if c.folder < chapter.folder]
    return course.library | {c.module: read_definitions(course.solution(c)) for c in earlier}
