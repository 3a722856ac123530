"""Runs a check in this process, and makes an item of what came of it."""

import ast
import contextlib
import ctypes
import io
import linecache
import math
import secrets
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

from nbformat import NotebookNode

from autograder.draws import seed_all
from autograder.limits import Budget, OutOfTime
from autograder.mistakes import raised, unwritten
from autograder.submission import Part
from autograder.verdict import FAULT_OF_THE_COURSE, Credit, Failure, Finding, Item, Status
from autograder.wire.protocol import Tensor, torch
from autograder.wire.proxy import WorkerLost, clean

if torch is not None:
    from autograder import checks


class _CheckHangs(BaseException):
    """A check has run for longer than it may, on its own account.

    A check that catches it meets it once more at the next line that it runs, in the handler itself.
    """

    def __init__(self) -> None:
        super().__init__()
        sys.settrace(_strike_again)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not execute_check.__code__:
            if frame.f_code.co_filename != __file__:
                frame.f_trace = _strike_again
            frame = frame.f_back


def _strike_again(frame: FrameType, event: str, arg: object) -> Callable | None:
    if frame.f_code.co_filename == __file__:
        return None
    if event == "line":
        raise _CheckHangs
    return _strike_again


@contextlib.contextmanager
def _watched(budget: Budget) -> Iterator[None]:
    """Raise `_CheckHangs` in what runs inside when it takes too long, whatever it catches.

    It works in any thread, which signals would not; a single call into C is interrupted when it returns.
    """
    thread, over = threading.get_ident(), threading.Event()
    lock, traced, struck = threading.Lock(), sys.gettrace(), threading.Event()

    def watch() -> None:
        wait = budget.left()
        while not over.wait(wait):
            with contextlib.suppress(OutOfTime):
                wait = budget.left()
                continue
            with lock:
                if not over.is_set():
                    struck.set()
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_CheckHangs))
            wait = 0.1

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        while True:
            try:
                over.set()
                with lock:  # after this it strikes no more
                    pass
                if struck.is_set():
                    struck.clear()
                    # A last one, met here: Python 3.11 looks for an exception from a strike until one arrives, and not
                    # only until it is taken back. While it looks, a function traced by its opcodes never ends.
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_CheckHangs))
                    for _ in range(1_000_000):
                        pass
                sys.settrace(traced)
                break
            except _CheckHangs:  # it struck after the check had ended
                continue


def execute_check(
    part: Part, tree: ast.Module, namespace: dict, names: Any, seed: int, budget: Budget
) -> tuple[Failure | None, float | None, BaseException | None]:
    """Run a check cell in this process; a number as its last expression is partial credit, as in nbgrader.

    Args:
        part: the cell.
        tree: its text, parsed.
        namespace: what it finds defined.
        names: the same, or a `Shared` view of it.
        seed: what its random numbers come from.
        budget: the time that it may take.

    Returns:
        What went wrong, if anything; the points that it gave itself, if it gave any; the exception behind it.
    """
    filename = f"<{part.name}>"
    linecache.cache[filename] = (len(part.source), None, part.source.splitlines(keepends=True), filename)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = tree.body[:-1] if last else tree.body
    value: Any = None
    printed = io.StringIO()
    fresh_state(seed)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            warnings.simplefilter("ignore")
            with _watched(budget):
                exec(compile(ast.Module(body, []), filename, "exec"), namespace, names)
                if last:
                    value = eval(compile(ast.Expression(last.value), filename, "eval"), namespace, names)
    except (WorkerLost, KeyboardInterrupt):
        raise
    except _CheckHangs:
        told = f"{FAULT_OF_THE_COURSE}: the check did not end within its time: {budget.over()}"
        return Failure(Status.COURSE_FAULT, told), None, None
    except AssertionError as error:
        finding = _finding(error, part)
        return Failure(Status.FAILED, str(finding), _told_by_student(error), _drawn(error), finding), None, error
    except BaseException as error:
        if not hasattr(error, "student_type") and isinstance(error, NameError | ImportError | SyntaxError):
            return course_fault(error), None, error
        return student_failure(error), None, error
    finally:
        fresh_state(secrets.randbits(64))
    if type(value) not in (int, float, Credit):
        return None, None, None
    if not math.isfinite(value):
        return Failure(Status.COURSE_FAULT, f"{FAULT_OF_THE_COURSE}: the check gave {value} points"), None, None
    return None, value, None


def course_fault(error: BaseException) -> Failure:
    """What an exception of a check's own says: where it was raised, and what it is."""
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno
    else:
        frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
        own = [f for f in frames if not f[0].startswith(str(Path(__file__).parent)) and "site-packages" not in f[0]]
        file, line = (own or frames or [("the check", 0)])[-1]
    place = f"{Path(file).parent.name}/{Path(file).name}".removeprefix("/")
    told = f"{FAULT_OF_THE_COURSE}: {place}, line {line}: {type(error).__name__}: {error}"
    return Failure(Status.COURSE_FAULT, clean(told, 1500))


def fresh_state(seed: int) -> None:
    """Undo what a check may have left behind, and let its random numbers come from this seed."""
    seed_all(seed)
    if torch is not None:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        checks.reseed(seed)


def told_by_frames(error: BaseException) -> str:
    """Where an exception was raised in a check, and what its variables held there."""
    told = ["", "", "Where it failed, and with what:"]
    for frame, line in traceback.walk_tb(error.__traceback__):
        filename = frame.f_code.co_filename
        if filename.startswith(str(Path(__file__).parent)) or "site-packages" in filename:
            continue
        source = linecache.getline(filename, line).strip()
        told.append(f"{Path(filename).parent.name}/{Path(filename).name}, line {line}: {source}")
        for name, value in frame.f_locals.items():
            if not name.startswith("__") and not isinstance(value, ModuleType | FunctionType | type):
                told.append(f"    {name} = {_shown(value)}")
    return clean("\n".join(told), 20_000)


def _shown(value: Any) -> str:
    text = f"tensor of shape {tuple(value.shape)}: {value}" if isinstance(value, Tensor) else repr(value)
    return text if len(text) <= 500 else text[:500] + " …"


def _finding(error: AssertionError, part: Part) -> Finding:
    """What a failed check found, cleaned of what student code may have put into its texts."""
    if isinstance(found := getattr(error, "finding", None), Finding):
        return _cleaned(found)
    return Finding(what=clean(str(error), 4000) or _failed_line(error, part))


def _cleaned(finding: Finding) -> Finding:
    return Finding(**{f.name: clean(getattr(finding, f.name), 4000) for f in fields(finding)})


def _told_by_student(error: BaseException) -> str:
    """The student's own frames of an exception, or of the one behind a check's complaint."""
    return getattr(error, "student_traceback", "") or getattr(error.__cause__, "student_traceback", "")


def _drawn(error: AssertionError) -> str:
    """The heat maps of a wrong tensor; a picture that cannot be drawn costs nothing."""
    draw = getattr(error, "heat_maps", None)
    try:
        return draw() if draw else ""
    except (RuntimeError, TypeError, ValueError):
        return ""


def student_failure(error: BaseException) -> Failure:
    """What an exception other than a failed assertion says about the student's code."""
    told = _told_by_student(error)
    name = getattr(error, "student_type", type(error).__name__)
    message = clean(str(error), 4000)
    if not hasattr(error, "student_type"):
        return Failure(Status.FAILED, f"the check could not use what your code returned: {name}: {message}")
    if unwritten(error):
        return Failure(Status.NOT_ATTEMPTED, "not attempted yet")
    return Failure(Status.ERROR, f"{name}: {message}" if message else name, told, finding=_cleaned(raised(error)))


def _failed_line(error: AssertionError, part: Part) -> str:
    """The visible assertion that failed, for want of a message."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == f"<{part.name}>"]
    line = (frames[-1].line or "").strip() if frames else ""
    return f"this does not hold: {line}" if line and line in part.cell.source else "a check failed"


def conclude(part: Part, failure: Failure | None, points: float | None = None) -> Item:
    """The item of a check, with its output written into the cell."""
    most = float(part.cell.metadata.nbgrader.get("points", 0))
    part.cell.outputs = []
    if failure:
        part.cell.outputs = [error_output(failure)]
        if failure.maps:
            shown = NotebookNode({"text/html": failure.maps, "text/plain": "expected beside got"})
            part.cell.outputs.append(NotebookNode(output_type="display_data", metadata=NotebookNode(), data=shown))
        return Item(part.name, failure.status, 0.0, most, failure.message, failure.finding)
    if points is None:
        return Item(part.name, Status.PASSED, most, most, "")
    finding = points.finding if isinstance(points, Credit) else Finding(what="partly right")
    points = min(max(float(points), 0.0), most)
    data = NotebookNode({"text/plain": repr(points)})
    part.cell.outputs = [
        NotebookNode(output_type="execute_result", execution_count=None, metadata=NotebookNode(), data=data)
    ]
    if points < most:
        return Item(part.name, Status.FAILED, points, most, str(finding), finding)
    return Item(part.name, Status.PASSED, most, most, "")


def error_output(failure: Failure) -> NotebookNode:
    lines = [failure.message, *failure.traceback.splitlines()]
    return NotebookNode(output_type="error", ename=failure.status, evalue=failure.message, traceback=lines)
