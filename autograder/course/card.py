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
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from autograder.course.curriculum import CourseError, find_course

# A heat map larger than this says nothing in a card: its first rows and columns are shown.
_MOST_CELLS = 12
# White on green reads on a light page and on a dark one.
_GREEN = "background:#1a7f37;color:#fff;padding:0 .4em;border-radius:3px"


class Mismatch(AssertionError):
    """A tensor that is not what it should be.

    Attributes:
        got: what the student's code returned.
        expected: what it should have been.
    """

    def __init__(self, message: str, got: Tensor, expected: Tensor) -> None:
        super().__init__(message)
        self.got, self.expected = got.detach(), expected.detach()

    def heat_maps(self) -> str:
        """Expected and got side by side as HTML; empty where they cannot be shown like that."""
        return _heat_maps(self.expected, self.got)


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
            name, points = check.__name__, _points(check)
            try:
                check(*objects)
            except NotImplementedError:
                raise NotAttempted(
                    f"{name} is not written yet: fill it in above, run its cell, then this one."
                ) from None
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


def _points(check: Callable) -> str:
    """What the exercise of a check is worth, for its green line; nothing outside a course, or for a part."""
    if any(name.startswith(f"{check.__name__}_") for name in vars(sys.modules[check.__module__])):
        return ""
    chapter = check.__module__.split(".")[-2]
    try:
        exercises = [e for c in find_course().curriculum if c.module == chapter for e in c.exercises]
    except CourseError:
        return ""
    return next((f" · {e.points:g} point{'s' * (e.points != 1)}" for e in exercises if e.name == check.__name__), "")


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


def _heat_maps(expected: Tensor, got: Tensor) -> str:
    """Expected and got side by side as tables of shaded numbers: of more than two dimensions the matrix most off."""
    if expected.shape != got.shape or expected.dim() < 1 or expected.dtype == torch.bool or not expected.numel():
        return ""
    wrong = (expected.double() - got.double()).abs().nan_to_num(nan=torch.inf)
    item = torch.unravel_index(wrong.argmax(), wrong.shape)[:-2] if wrong.dim() > 2 else ()
    two = [t.double()[item].reshape(-1, t.shape[-1])[:_MOST_CELLS, :_MOST_CELLS] for t in (expected, got)]
    top = max(float(t.nan_to_num(0, 0, 0).abs().max()) for t in two) or 1.0
    place = f" (item {', '.join(str(int(i)) for i in item)})" if item else ""
    tables = "".join(_table(name + place, t, top) for name, t in zip(("expected", "got"), two, strict=True))
    return f'<div style="display:flex;gap:1.5em;flex-wrap:wrap;margin-top:.5em">{tables}</div>'


def _table(title: str, values: Tensor, top: float) -> str:
    rows = ""
    for row in values.tolist():
        cells = "".join(f'<td style="{_shade(v / top)}">{v:.2g}</td>' for v in row)
        rows += f"<tr>{cells}</tr>"
    caption = f'<caption style="text-align:left">{title}</caption>'
    return f'<table style="border-collapse:collapse;font-size:85%">{caption}{rows}</table>'


def _shade(share: float) -> str:
    """Blue for positive, orange for negative, the paler the smaller; the text keeps its contrast."""
    strength = min(abs(share), 1.0) if share == share else 0.0
    red, green, blue = (8, 81, 156) if share >= 0 else (166, 54, 3)
    mixed = [round(255 + strength * (c - 255)) for c in (red, green, blue)]
    channels = [(c / 3294.6) if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in mixed]
    light = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True))
    ink = "#fff" if light < 0.179 else "#000"  # the one of the two that stands out more, by WCAG's luminance
    return f"background:rgb({mixed[0]},{mixed[1]},{mixed[2]});color:{ink};text-align:right;padding:1px 5px"
