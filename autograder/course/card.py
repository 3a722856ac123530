"""What a check shows in a notebook: one green line when it passed, a card of a few lines when it failed.

A chapter's `checks/<chapter>/visible.py` marks its functions with `visible`. In a notebook a failed one shows what was
asked, what came and the likely mistake, with small heat maps of expected beside got where it is a tensor, in place of
a traceback. Anywhere else (the grader, a plain Python) the exceptions pass as they are.
"""

import functools
import html
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from autograder.course.curriculum import CourseError, find_course
from autograder.mistakes import Complaint, raised, unwritten
from autograder.verdict import Finding

# White on green reads on a light page and on a dark one.
_GREEN = "background:#1a7f37;color:#fff;padding:0 .4em;border-radius:3px"


class CheckFailed(AssertionError):
    """A failed check: in place of a traceback IPython shows its card, a few lines that begin with the exercise."""

    def __init__(self, exercise: str, error: Exception, first: str = "") -> None:
        finding = _finding(error)
        super().__init__(f"{exercise}: {finding}")
        self.finding = finding
        told = [first] * bool(first)
        told += [f"\x1b[1m{finding.says}\x1b[0m"] * bool(finding.says) + [finding.fact] * bool(finding.fact)
        # Bold and not red: on what JupyterLab lays behind an error, red cannot be read in the dark.
        self._card = [f"\x1b[1m✗ {exercise}\x1b[0m", *told, *_own_frames(error)]

    def _render_traceback_(self) -> list[str]:
        return self._card


def _finding(error: Exception) -> Finding:
    if isinstance(error, Complaint):
        return error.finding
    if isinstance(error, AssertionError):
        return Finding(what=str(error))
    return raised(error)


class NotAttempted(NotImplementedError):
    """An exercise that nobody has begun: Run All stops here, in one line."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class CheckHidden(AttributeError):
    """A cell gave the name `check` to something else: said in one line, where Python speaks of a missing attribute."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


# The objects that each exercise's check has failed in this kernel, until it passes.
_failed: dict[str, tuple[Any, ...]] = {}


def visible(shown: str, *, graded: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a visible check, named as its exercise, so that a notebook shows its verdict as a line or a card.

    Args:
        shown: what a pass has shown, such as "the shape, and both sequences by hand".
        graded: what only grading checks, such as "loops, gradients".

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
            name, left = _title(check, exercises), f"; {graded}: when graded" if graded else ""
            try:
                check(*objects)
            except Exception as error:
                if unwritten(error):
                    raise NotAttempted(_not_written(name, exercises, error)) from None
                if isinstance(error, Complaint) and (maps := error.heat_maps()):
                    _show(maps, f"{name}: expected {error.expected.tolist()}, got {error.got.tolist()}")
                first = _mend_first(name, objects)
                _failed[name] = objects
                raise CheckFailed(name, error, first) from None
            _failed.pop(name, None)
            _show(
                f'<div role="status"><b style="{_GREEN}">✓ {name}</b>: {html.escape(shown + left)}</div>',
                f"✓ {name}: {shown}{left}",
            )

        run.graded = graded  # type: ignore[attr-defined]
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


def _mend_first(title: str, objects: tuple[Any, ...]) -> str:
    """That a failed exercise uses one whose own check failed before, and which has not changed since; else nothing."""
    namespace = sys.modules["IPython"].get_ipython().user_ns
    used: set[str] = set()
    to_look: list[Any] = list(objects)
    while to_look:
        for name in _names_in(to_look.pop()) - used:
            used.add(name)
            value = namespace.get(name)
            if getattr(value, "__module__", None) == "__main__":
                to_look.append(value)
    exercise = title.partition(" (")[0]
    wrong = [name for name in _failed if name in used and name != exercise]
    wrong = [name for name in wrong if any(namespace.get(name) is one for one in _failed[name])]
    told = " and ".join(f"`{name}`" for name in wrong)
    own = "fails its" if len(wrong) == 1 else "fail their"
    return f"this uses your {told}, which {own} own check: mend that first" if wrong else ""


def _names_in(value: Any) -> set[str]:
    """The global names that a function, or the methods of a class, may use."""
    members = list(vars(value).values()) if isinstance(value, type) else [value]
    codes = [m.__code__ for m in map(inspect.unwrap, filter(callable, members)) if hasattr(m, "__code__")]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return names


def _exercises(check: Callable) -> set[str]:
    """The exercises of a check's chapter; none outside a course."""
    chapter = check.__module__.split(".")[-2]
    try:
        return {e.name for c in find_course().curriculum if c.module == chapter for e in c.exercises}
    except CourseError:
        return set()


def _title(check: Callable, exercises: set[str]) -> str:
    """The exercise of a check; that of a part, such as `TransformerBlock_pre`, with the part in brackets."""
    name = check.__name__
    whole = next((e for e in exercises if name.startswith(f"{e}_")), name)
    return name if name in exercises or whole == name else f"{whole} ({name[len(whole) + 1 :]})"


def _not_written(title: str, exercises: set[str], error: Exception) -> str:
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
