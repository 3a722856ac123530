"""What a check shows in a notebook: one green line when it passed, a card of a few lines when it failed.

A chapter's `checks/<chapter>/visible.py` marks its functions with `visible`. In a notebook a failed one shows what was
asked, what came and the likely mistake, with small heat maps of expected beside got where it is a tensor, in place of
a traceback. Anywhere else (the grader, a plain Python) the exceptions pass as they are.
"""

import functools
import html
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.checks import Mismatch
from autograder.course.curriculum import CourseError, find_course

# White on green reads on a light page and on a dark one.
_GREEN = "background:#1a7f37;color:#fff;padding:0 .4em;border-radius:3px"


class CheckFailed(AssertionError):
    """A failed check: in place of a traceback IPython shows its card, a few lines that begin with the exercise."""

    def __init__(self, exercise: str, error: Exception) -> None:
        text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        super().__init__(f"{exercise}: {text}")
        fact, cause, mistake = text.partition(". Likely cause: ")
        self._card = [f"\x1b[1;31m✗ {exercise}\x1b[0m", fact]
        self._card += [f"\x1b[1mLikely mistake:\x1b[0m {mistake}"] * bool(cause) + _own_frames(error)

    def _render_traceback_(self) -> list[str]:
        return self._card


class NotAttempted(NotImplementedError):
    """An exercise that nobody has begun: Run All stops here, in one line."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class CheckHidden(AttributeError):
    """A cell gave the name `check` to something else: said in one line, where Python speaks of a missing attribute."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def visible(shown: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a visible check, named as its exercise, so that a notebook shows its verdict as a line or a card.

    Args:
        shown: what a pass has shown, such as "the shape, and both sequences by hand".

    Returns:
        The decorator of the check, a function of the student's objects that raises AssertionError for a wrong answer.
    """

    def mark(check: Callable[..., None]) -> Callable[..., None]:
        if _in_notebook():
            sys.modules["IPython"].get_ipython().set_custom_exc((AttributeError,), _explain_hidden_check)

        @functools.wraps(check)
        def run(*objects: Any) -> None:
            if not _in_notebook():
                return check(*objects)
            exercises = _exercises(check)
            name, points = _title(check, exercises), _points(check, exercises)
            try:
                check(*objects)
            except NotImplementedError as error:
                raise NotAttempted(_not_written(name, exercises, error)) from None
            except Exception as error:
                if isinstance(error, Mismatch) and (maps := error.heat_maps()):
                    _show(maps, f"{name}: expected {error.expected.tolist()}, got {error.got.tolist()}")
                raise CheckFailed(name, error) from None
            _show(
                f'<div role="status"><b style="{_GREEN}">✓ {name}</b>{points}: {html.escape(shown)}</div>',
                f"✓ {name}{points}: {shown}",
            )

        return run

    return mark


def _in_notebook() -> bool:
    return "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None


def _explain_hidden_check(shell: Any, kind: type, error: AttributeError, tb: Any, tb_offset: int | None = None) -> None:
    """IPython's handler of an AttributeError: as ever, but for `check.EXERCISE` where `check` is not the module."""
    own = shell.user_ns.get("check")
    if error.obj is own and own is not None and not isinstance(own, ModuleType):
        kind = CheckHidden
        error = kind(
            "`check` is the name of this chapter's checks, but a cell has given it to something else: rename that, "
            "run the cell with the imports at the top again, then this one."
        )
    shell.showtraceback((kind, error, tb), tb_offset=tb_offset)


def _points(check: Callable, exercises: dict[str, float]) -> str:
    """What the exercise of a check is worth, for its green line; nothing outside a course, or for a part."""
    if any(name.startswith(f"{check.__name__}_") for name in vars(sys.modules[check.__module__])):
        return ""
    points = exercises.get(check.__name__)
    return "" if points is None else f" · {points:g} point{'s' * (points != 1)}"


def _exercises(check: Callable) -> dict[str, float]:
    """The exercises of a check's chapter and what each is worth; none outside a course."""
    chapter = check.__module__.split(".")[-2]
    try:
        return {e.name: e.points for c in find_course().curriculum if c.module == chapter for e in c.exercises}
    except CourseError:
        return {}


def _title(check: Callable, exercises: dict[str, float]) -> str:
    """The exercise of a check; that of a part, such as `TransformerBlock_pre`, with the part in brackets."""
    name = check.__name__
    whole = next((e for e in exercises if name.startswith(f"{e}_")), name)
    return name if name in exercises or whole == name else f"{whole} ({name[len(whole) + 1 :]})"


def _not_written(title: str, exercises: dict[str, float], error: NotImplementedError) -> str:
    """Which exercise is not written: that of the check, one before it, or one of a chapter that was imported."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    missing, source = frame.f_code.co_qualname.split(".")[0], Path(frame.f_code.co_filename)
    exercise = title.partition(" (")[0]
    if source.suffix == ".ipynb":
        return (
            f"{exercise} needs {missing} of {source.stem}, which is not written yet: "
            "write it there, save, then restart this kernel."
        )
    if missing != exercise and missing in exercises:
        return f"{exercise} needs {missing}, which is not written yet: fill it in, run its cell, then this one."
    return f"{exercise} is not written yet: fill it in above, run its cell, then this one."


def _show(page: str, text: str) -> None:
    from IPython.display import display  # IPython is there: we are in a notebook

    display({"text/html": page, "text/plain": text}, raw=True)


def _own_frames(error: BaseException) -> list[str]:
    """Where in the notebook's own cells an exception came from: no frame of the check or of a library."""
    cause = error.__cause__ or error
    cells = [f for f in traceback.extract_tb(cause.__traceback__) if _is_cell(f.filename) and f.name != "<module>"]
    return [f"in {frame.name}, line {frame.lineno}: {frame.line}" for frame in cells]


def _is_cell(filename: str) -> bool:
    return "ipykernel" in filename or filename.startswith("<ipython-input")
