"""What an instructor can set about a class's server, for all chapters and for single ones."""

from collections.abc import Mapping
from dataclasses import dataclass

from nbgrader.apps.baseapp import NbGrader
from traitlets import Bool, Dict, Enum, Integer, TraitError, Unicode
from traitlets.config import LoggingConfigurable

from autograder.course.curriculum import Chapter, Course, CourseError

_SETTINGS = ("open", "tries", "counts", "show")


class Service(LoggingConfigurable):
    """The settings in `nbgrader_config.py`."""

    open = Bool(True, help="whether hand-ins are taken").tag(config=True)
    tries = Integer(6, min=1, help="how many hand-ins of a chapter one student may send within an hour").tag(
        config=True
    )
    counts = Enum(["last", "best"], "last", help="which hand-in's marks stand in the gradebook").tag(config=True)
    show = Enum(["nothing", "points", "messages"], "messages", help="what students are told of a verdict at once").tag(
        config=True
    )
    instructors = Unicode(help="on a JupyterHub the group of the instructors  [default: formgrade-COURSE]").tag(
        config=True
    )
    chapters = Dict(help='other settings for single chapters: {"03": {"show": "points", "tries": 2}}').tag(config=True)


@dataclass(frozen=True)
class Rules:
    """The settings of one chapter, see `Service`."""

    open: bool
    tries: int
    counts: str
    show: str


def read_rules(course: Course, nbgrader: NbGrader) -> Mapping[Chapter, Rules]:
    """The settings of each chapter.

    Args:
        course: the course, with its solutions.
        nbgrader: nbgrader, configured by the course's `nbgrader_config.py`.

    Raises:
        CourseError: a setting is unknown, or has a value that it cannot have.
    """
    try:
        general = Service(parent=nbgrader)
        rules = {chapter: _rules(general) for chapter in course.chapters}
        for name, special in general.chapters.items():
            chapter = course.find(str(name))
            if unknown := sorted(set(special) - set(_SETTINGS)):
                raise CourseError(f"c.Service.chapters: {name} has no setting {unknown[0]!r}: {', '.join(_SETTINGS)}")
            one = Service(parent=nbgrader)
            for setting, value in special.items():
                setattr(one, setting, value)
            rules[chapter] = _rules(one)
    except TraitError as error:
        raise CourseError(f"nbgrader_config.py, c.Service: {' '.join(str(error).split())}") from error
    return rules


def instructors_group(nbgrader: NbGrader) -> str:
    """The group of a JupyterHub whose members are the class's instructors: the one that nbgrader itself goes by."""
    return Service(parent=nbgrader).instructors or f"formgrade-{nbgrader.coursedir.course_id}"


def _rules(service: Service) -> Rules:
    return Rules(**{setting: getattr(service, setting) for setting in _SETTINGS})
