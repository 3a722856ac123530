"""Grades one notebook: the student's cells run in a worker, the check cells here.

Cells run in the notebook's order. A check cell is executed from the course's notebook with this process's own torch;
the names that it takes from the student's notebook are proxies. When a worker is lost, another one takes up where the
culprit left off, so that one endless loop costs its own exercise only.
"""

import ast
import builtins
import contextlib
import ctypes
import hashlib
import io
import linecache
import math
import random
import re
import secrets
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch
from nbformat import NotebookNode

from autograder import checks
from autograder.checks import Credit
from autograder.isolation.sandbox import Limits, Sandbox
from autograder.submission import Part, Repaired, SubmissionError, as_notebook, defined_names, lay_over, read_notebook
from autograder.wire.proxy import Link, WorkerLost, clean

__all__ = ["Graded", "Item", "Limits", "Sandbox", "grade_notebook"]

# A chapter switches its loader on by this import, which has nothing to do in the worker; nor have figures that move.
_LOADER = {
    "autograder": "",
    "autograder.course": "",
    "autograder.course.imports": "",
    "live": "def show(*args, **kwargs):\n    pass\n",
}
# The package of the checks: no worker imports it.
_CHECKS = "checks"
# A cell of the course that a student has made longer than this runs as a whole: to look through it would take too long.
_MOST_TO_LOOK_THROUGH = 20_000
_COURSE_FAULT = "a fault of the course, not of your answer; please tell your instructor"
_HARMLESS_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


@dataclass(frozen=True)
class Item:
    """The verdict on one check cell.

    `status` is passed, failed, not attempted, error (the student's code raised), timeout, crashed or missing.
    """

    grade_id: str
    status: str
    points: float
    max_points: float
    message: str


@dataclass
class Graded:
    """A graded notebook.

    Attributes:
        items: one for each check cell, in order.
        notebook: what the student gets back: no solution, no hidden test, an error output on each check that failed.
        problems: what was found when the notebook was repaired, by cell name.
        ungradable: why nothing could be graded; empty otherwise.
        seed: what all random numbers came from; the same one gives the same verdicts.
    """

    items: list[Item]
    notebook: NotebookNode
    problems: list[str] = field(default_factory=list)
    ungradable: str = ""
    seed: int | None = None


@dataclass(frozen=True)
class _Failure:
    """Why a cell did not do what it should."""

    status: str
    message: str
    traceback: str = ""
    maps: str = ""
    """expected beside got, as HTML that the check drew"""


def grade_notebook(
    sandbox: Sandbox,
    submission: Path | NotebookNode,
    source: Path | NotebookNode,
    *,
    modules: Mapping[str, str] | None = None,
    only: set[str] | None = None,
    run_cells: str = "definitions",
    seed: int | None = None,
    explain: bool = False,
) -> Graded:
    """Grade one submission, whatever it holds.

    Args:
        sandbox: where the student's code runs.
        submission: the notebook that was handed in.
        source: the course's notebook, with its hidden tests.
        modules: for each earlier notebook that may be imported, its name and the text of its definitions.
        only: grade these check cells only.
        run_cells: what runs of the course's own cells that earn no points: only the "definitions" (imports, functions,
            classes, constants) that something needs, or "all".
        seed: what the random numbers of checks and of student code come from; a new one by default.
        explain: add to each message where the check failed, and what its variables held: for the instructor, since it
            shows hidden tests.

    Returns:
        The verdicts and the graded notebook.

    Raises:
        SandboxError: the sandbox cannot be started.
    """
    if isinstance(source, Path):
        source = _read_source(source, source.stat().st_mtime_ns)
    ungradable = ""
    try:
        read = (
            as_notebook(submission)
            if isinstance(submission, dict)
            else read_notebook(submission, sandbox.limits.notebook_mb)
        )
    except SubmissionError as error:
        ungradable, read = str(error), NotebookNode(cells=[])
    repaired = lay_over(read, source)
    if ungradable:
        failure = _Failure("missing", f"the notebook could not be graded: {ungradable}")
        items = [_conclude(part, failure) for part in _checks(repaired, only)]
        return Graded(items, repaired.notebook, [], ungradable)
    torch.set_num_threads(1)  # checks are small: threads cost them more than they give, above all on a busy machine
    seed = secrets.randbits(62) if seed is None else seed
    run = _Run(sandbox, repaired, source, dict(modules or {}), run_cells, seed, explain)
    try:
        items = run.grade(only)
    finally:
        run.close()
    return Graded(items, repaired.notebook, repaired.problems, seed=seed)


@lru_cache(maxsize=32)
def _read_source(path: Path, changed: int) -> NotebookNode:
    import nbformat

    return nbformat.read(path, as_version=4)


def _checks(repaired: Repaired, only: set[str] | None) -> list[Part]:
    return [part for part in repaired.parts if part.role == "check" and (only is None or part.name in only)]


class _Run:
    """One submission being graded."""

    def __init__(
        self,
        sandbox: Sandbox,
        repaired: Repaired,
        source: NotebookNode,
        modules: dict[str, str],
        run_cells: str,
        seed: int,
        explain: bool,
    ) -> None:
        self.seed, self.explain = seed, explain
        self.sandbox, self.limits, self.repaired = sandbox, sandbox.limits, repaired
        # The grader imports the modules as they are, the worker what its cells need of them.
        self.modules = modules
        self.end = time.monotonic() + self.limits.submission_seconds
        self.sources: dict[str, str] = {}
        self.failures: dict[int, _Failure] = {}
        self.broken: dict[str, str] = {}  # what the course's own cells could not define, and why
        self.done: list[int] = []
        self.link: Link | None = None
        self.texts, self.worker_modules = _texts_to_run(repaired.parts, modules, run_cells)
        self.solutions = {
            name: part for part in repaired.parts if part.role == "solution" for name in defined_names(part.source)
        }
        self.imports = _import_statements(source)

    def close(self) -> None:
        if self.link is not None:
            self.link.close()

    def grade(self, only: set[str] | None) -> list[Item]:
        """The items, with the outputs of the cells written into the notebook."""
        wanted = _checks(self.repaired, only)
        items = []
        for part in self.repaired.parts:
            if part.cell.cell_type == "code":
                part.cell.outputs, part.cell.execution_count = [], None
        for number, part in enumerate(self.repaired.parts):
            if len(items) == len(wanted):
                break
            if number in self.texts:
                self._run_cell(number)
            elif any(part is check for check in wanted):
                items.append(_conclude(part, *self._check(part)))
        return items

    def _worker(self) -> Link:
        """A worker that has run the cells so far, but for those that are known to end workers."""
        while self.link is None or self.link.lost:
            self.link = Link(self.sandbox.worker(), self.limits, self.sources)
            self._set_deadline()
            self.link.seed(_seed_for(self.seed, "worker"))
            self.link.install(_LOADER | self.worker_modules)
            for number in list(self.done):
                try:
                    self._send(number)
                except WorkerLost as lost:
                    self._give_up_cell(number, lost)
                    break
                except Exception:
                    continue  # it raised the first time, too, and what it defined before is there
            if not self.link.lost:
                self.link.take_output()
            elif time.monotonic() >= self.end:
                raise self.link.lost
        return self.link

    def _set_deadline(self) -> None:
        self.link.deadline = min(time.monotonic() + self.limits.cell_seconds, self.end)

    def _send(self, number: int) -> None:
        self._set_deadline()
        part = self.repaired.parts[number]
        text, filename = self.texts[number], f"<{part.name}>"
        if isinstance(text, list):
            for index, told in self.link.define(text, filename).items():
                for name in {name for s in _module_statements(text[index]) for name in s.binds}:
                    self.broken[name] = f"the course's own `{name}` could not be defined: {told}"
        else:
            self.link.run(text, filename)

    def _give_up_cell(self, number: int, lost: WorkerLost) -> None:
        self.failures[number] = _Failure(lost.status, f"this cell was stopped: {lost}")
        if number in self.done:
            self.done.remove(number)

    def _run_cell(self, number: int) -> None:
        part = self.repaired.parts[number]
        self.sources.update(_definition_texts(self.texts[number]))
        outputs = part.cell.outputs
        if time.monotonic() >= self.end:
            self.failures[number] = _Failure("timeout", self._used_up())
            return
        try:
            link = self._worker()
            try:
                self._send(number)
                self.done.append(number)
            except WorkerLost as lost:
                self._give_up_cell(number, lost)
            except Exception as error:
                self.done.append(number)
                self.failures[number] = self._blame(_student_failure(error), error)
            if text := link.take_output():
                outputs.append(NotebookNode(output_type="stream", name="stdout", text=text))
        except WorkerLost as lost:
            self.failures[number] = _Failure(lost.status, f"this cell was stopped: {lost}")
        if number in self.failures:
            outputs.append(_error_output(self.failures[number]))

    def _check(self, part: Part) -> tuple[_Failure | None, float | None]:
        """Run one check; returns what went wrong, if anything, and the points it gave, if it gave any itself."""
        if time.monotonic() >= self.end:
            return _Failure("timeout", self._used_up()), None
        try:
            link = self._worker()
            self._set_deadline()
            tree = ast.parse(part.source)
            with _importable(self.modules):
                namespace, failure = self._namespace(tree, link)
                if failure is None:
                    seed = _seed_for(self.seed, part.name)
                    link.seed(seed)
                    failure, points, error = _execute_check(part, tree, namespace, seed, self.limits.check_seconds)
                    if failure and failure.status == "timeout" and error is None:
                        link.close()  # it was stopped in the middle of a question, perhaps
                        return failure, None
                    if link.lost:
                        raise link.lost
                    if failure and error is not None:
                        failure = self._blame(failure, error)
                        if self.explain:
                            failure = replace(failure, message=failure.message + _told_by_frames(error))
                    return failure, points
            return failure, None
        except WorkerLost as lost:
            message = self._used_up() if time.monotonic() >= self.end else f"your code was stopped: {lost}"
            return _Failure(lost.status, message), None
        except Exception as error:
            if not hasattr(error, "student_type"):
                raise
            return _student_failure(error), None  # the worker would not even hand over the object

    def _blame(self, failure: _Failure, error: BaseException) -> _Failure:
        """The same failure, unless it comes from something that the course itself could not define."""
        missing = re.search(r"name '(\w+)' is not defined|cannot import name '(\w+)'", str(error))
        name = missing and (missing[1] or missing[2])
        if name in self.broken:
            return _Failure("crashed", f"{_COURSE_FAULT}: {self.broken[name]}")
        return failure

    def _namespace(self, tree: ast.Module, link: Link) -> tuple[dict[str, Any], _Failure | None]:
        """What a check finds defined: the course's imports and the student's objects."""
        namespace: dict[str, Any] = {"__name__": "__check__"}
        bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.name}
        bound |= {name for n in ast.walk(tree) for name in _bound_by_import(n)}
        used = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        names = [name for name in dict.fromkeys(used) if name not in bound]
        for statement in self.imports:
            if set(_bound_by_import(statement)) & {*names, "*"}:
                with contextlib.suppress(ImportError):
                    exec(compile(ast.Module([statement], []), "<imports>", "exec"), namespace)
        for name in names:
            if name not in self.solutions and (name in namespace or hasattr(builtins, name)):
                continue
            try:
                namespace[name] = link.named(name)
            except LookupError:
                return namespace, self._why_undefined(name)
        return namespace, None

    def _why_undefined(self, name: str) -> _Failure:
        part = self.solutions.get(name)
        if part is None:
            return _Failure("missing", f"`{name}` is not defined in the notebook")
        number = next(i for i, other in enumerate(self.repaired.parts) if other is part)
        if failure := self.failures.get(number):
            return failure
        if part.missing:
            return _Failure("missing", f"the cell `{part.name}` is missing from the notebook")
        if part.untouched or not part.cell.source.strip():
            return _Failure("not attempted", "not attempted yet")
        return _Failure("missing", f"the cell `{part.name}` does not define `{name}`")

    def _used_up(self) -> str:
        return f"the notebook had used up its {self.limits.submission_seconds:g} seconds before this"


def _texts_to_run(
    parts: list[Part], modules: Mapping[str, str], run_cells: str
) -> tuple[dict[int, str | list[str]], dict[str, str]]:
    """What the worker runs of each cell, and what of each module it may import.

    Of the course's own cells and of modules these are only the definitions that something needs, so that no worker
    imports a plotting library for a picture that nobody looks at.

    Returns:
        The text of each cell of the student's by its number, or a list of definitions; the text of each module.
    """
    texts: dict[int, str | list[str]] = {}
    optional: list[tuple[int | str, _Statement]] = []
    needed: set[str] = set()
    for number, part in enumerate(parts):
        if part.role == "check":
            needed |= _words(part.source)
        elif part.role == "course" and run_cells == "definitions" and len(part.cell.source) < _MOST_TO_LOOK_THROUGH:
            text = _as_python(part.cell.source)
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                optional += [(number, statement) for statement in _course_statements(text)]
        elif part.cell.cell_type == "code" and not (part.role == "solution" and part.missing):
            texts[number] = _as_python(part.cell.source)
            needed |= _words(texts[number])
    everything = "\n".join(part.cell.source for part in parts if part.cell.cell_type == "code")
    for name, text in modules.items():
        if re.search(rf"^[ \t]*import\b.*\b{name}\b", everything, re.MULTILINE):
            needed |= _words(text) | set(defined_names(text))  # which of its names are used, it does not say
        optional += [(name, statement) for statement in _module_statements(text)]
    chosen = _choose([statement for _, statement in optional], needed)
    kept: dict[str, list[str]] = {name: [] for name in modules}
    for (place, statement), is_needed in zip(optional, chosen, strict=True):
        if is_needed:
            (texts.setdefault(place, []) if isinstance(place, int) else kept[place]).append(statement.text)
    return {n: text for n, text in texts.items() if text}, {name: "\n\n\n".join(kept[name]) for name in modules}


@dataclass(frozen=True)
class _Statement:
    """A definition: its text, the names that it binds and those that it uses."""

    text: str
    binds: tuple[str, ...]
    uses: frozenset[str]


# The same for a whole class, except where a student has changed a cell of the course.
@lru_cache(maxsize=256)
def _course_statements(text: str) -> tuple[_Statement, ...]:
    from autograder.source import definitions

    return _module_statements(definitions([text]))


@lru_cache(maxsize=256)
def _module_statements(text: str) -> tuple[_Statement, ...]:
    """The statements of some code, an import of several names as several imports."""
    found = []
    for statement, segment in _segments(text):
        texts = [segment]
        if isinstance(statement, ast.ImportFrom):
            if (statement.module or "").split(".")[0] == _CHECKS:
                continue  # what judges is imported where it judges
            texts = [ast.unparse(ast.ImportFrom(statement.module, [a], statement.level)) for a in statement.names]
        for one in texts:
            imported = [name for node in ast.parse(one).body for name in _bound_by_import(node)]
            found.append(_Statement(one, (*imported, *defined_names(one)), frozenset(_words(one))))
    return tuple(found)


def _choose(statements: list[_Statement], needed: set[str]) -> list[bool]:
    """Which statements define something that is needed, or that another chosen one needs."""
    definers: dict[str, list[int]] = {}
    for i, statement in enumerate(statements):
        for name in statement.binds:
            definers.setdefault(name, []).append(i)
    chosen = [False] * len(statements)
    to_find = [*needed, "*"]
    while to_find:
        for i in definers.pop(to_find.pop(), []):
            if not chosen[i]:
                chosen[i] = True
                to_find += statements[i].uses
    return chosen


def _segments(text: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of some code, each with its text, decorators included."""
    lines = text.split("\n")
    for statement in ast.parse(text).body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        yield statement, "\n".join(lines[first - 1 : statement.end_lineno])


def _words(text: str) -> set[str]:
    """The names that some code may use."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(re.findall(r"[^\W\d]\w*", text))
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return used | {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def _as_python(text: str) -> str:
    """A cell with `pass` in place of IPython's magics, help and shell commands.

    IPython's own translation would look nicer, but takes quadratic time, and students write this text.
    """
    lines = text.lstrip().split("\n")
    if lines[0].startswith("%%"):
        text = "\n".join(lines[1:]) if lines[0].split()[0] in _HARMLESS_MAGICS else ""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        text = "\n".join(map(_without_magic, text.split("\n")))
    return text


def _without_magic(line: str) -> str:
    code = line.strip()
    if code[:1] in ("%", "!", "?") or code[-1:] == "?":
        return line[: len(line) - len(line.lstrip())] + "pass"
    target, sign, value = line.partition("=")
    return f"{target}= None" if sign and value.lstrip()[:1] in ("%", "!") else line


def _definition_texts(text: str | list[str]) -> dict[str, str]:
    """The text that defines each function and class of a cell, and each other name that it assigns."""
    found = {}
    for source in [text] if isinstance(text, str) else text:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for _, segment in _segments(source):
                found |= dict.fromkeys(defined_names(segment), segment)
    return found


def _import_statements(source: NotebookNode) -> list[ast.stmt]:
    """The imports of the course's notebook, outside solutions and checks."""
    found = []
    for cell in source.cells:
        flags = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and not flags.get("solution") and not flags.get("grade"):
            with contextlib.suppress(SyntaxError):
                tree = ast.parse(_as_python(cell.source))
                found += [s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    return found


def _bound_by_import(node: ast.AST) -> list[str]:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return []
    return [alias.asname or alias.name.split(".")[0] for alias in node.names]


@lru_cache(maxsize=64)
def _module_from_text(name: str, text: str) -> ModuleType:
    from autograder.source import execute_definitions

    module = ModuleType(name)
    execute_definitions(text, f"<{name}>", module.__dict__)
    return module


class _ReferenceFinder:
    """Imports the reference of earlier chapters while a check runs."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = modules

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in self.modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _module_from_text(spec.name, self.modules[spec.name])

    def exec_module(self, module: ModuleType) -> None:
        pass  # it was executed when it was made


@contextlib.contextmanager
def _importable(modules: Mapping[str, str]) -> Iterator[None]:
    finder = _ReferenceFinder(modules)
    hidden = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    # A reference that switches its own loader on does not do so here, where it would find what students handed in.
    stands_in = [name for name in ("autograder.course.imports",) if name not in sys.modules]
    sys.modules.update({name: ModuleType(name) for name in stands_in})
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in (*modules, *stands_in):
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _seed_for(seed: int, name: str) -> int:
    """The seed of one part of a submission, so that it does not matter which other parts are graded."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:7], "big")


class _CheckHangs(BaseException):
    """A check has run for longer than it may, on its own account.

    A check that catches it meets it once more at the next line that it runs, in the handler itself.
    """

    def __init__(self) -> None:
        super().__init__()
        sys.settrace(_strike_again)
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not _execute_check.__code__:
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
def _watched(seconds: float) -> Iterator[None]:
    """Raise `_CheckHangs` in what runs inside when it takes too long, whatever it catches.

    It works in any thread, which signals would not; a single call into C is interrupted when it returns.
    """
    thread, over = threading.get_ident(), threading.Event()
    lock, traced = threading.Lock(), sys.gettrace()

    def watch() -> None:
        wait = seconds
        while not over.wait(wait):
            with lock:
                if not over.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_CheckHangs))
            wait = 1.0

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        while True:
            try:
                over.set()
                with lock:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)
                sys.settrace(traced)
                break
            except _CheckHangs:  # it struck after the check had ended
                continue


def _execute_check(
    part: Part, tree: ast.Module, namespace: dict, seed: int, seconds: float
) -> tuple[_Failure | None, float | None, BaseException | None]:
    """Run a check cell in this process; a number as its last expression is partial credit, as in nbgrader.

    Returns:
        What went wrong, if anything; the points that it gave itself, if it gave any; the exception behind it.
    """
    filename = f"<{part.name}>"
    linecache.cache[filename] = (len(part.source), None, part.source.splitlines(keepends=True), filename)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = tree.body[:-1] if last else tree.body
    value = None
    printed = io.StringIO()
    _fresh_state(seed)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            warnings.simplefilter("ignore")
            with _watched(seconds):
                exec(compile(ast.Module(body, []), filename, "exec"), namespace)
                if last:
                    value = eval(compile(ast.Expression(last.value), filename, "eval"), namespace)
    except (WorkerLost, KeyboardInterrupt):
        raise
    except _CheckHangs:
        told = f"{_COURSE_FAULT}: the check did not end within {seconds:g} seconds"
        return _Failure("timeout", told), None, None
    except AssertionError as error:
        message = clean(str(error), 4000) or _failed_line(error, part)
        return _Failure("failed", message, _told_by_student(error), _drawn(error)), None, error
    except BaseException as error:
        if not hasattr(error, "student_type") and isinstance(error, NameError | ImportError | SyntaxError):
            return (
                _Failure("crashed", f"{_COURSE_FAULT}: {type(error).__name__}: {clean(str(error), 1000)}"),
                None,
                error,
            )
        return _student_failure(error), None, error
    finally:
        _fresh_state(secrets.randbits(62))
    if type(value) not in (int, float, Credit):
        return None, None, None
    if not math.isfinite(value):
        return _Failure("crashed", f"{_COURSE_FAULT}: the check gave {value} points"), None, None
    return None, value, None


def _fresh_state(seed: int) -> None:
    """Undo what a check may have left behind, and let its random numbers come from this seed."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(seed)
    random.seed(seed)
    checks.reseed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))


def _told_by_frames(error: BaseException) -> str:
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
    text = f"tensor of shape {tuple(value.shape)}: {value}" if isinstance(value, torch.Tensor) else repr(value)
    return text if len(text) <= 500 else text[:500] + " …"


def _told_by_student(error: BaseException) -> str:
    return getattr(error, "student_traceback", "")


def _drawn(error: AssertionError) -> str:
    """The heat maps of a wrong tensor; a picture that cannot be drawn costs nothing."""
    draw = getattr(error, "heat_maps", None)
    try:
        return draw() if draw else ""
    except (RuntimeError, TypeError, ValueError):
        return ""


def _student_failure(error: BaseException) -> _Failure:
    """What an exception other than a failed assertion says about the student's code."""
    told = _told_by_student(error)
    name = getattr(error, "student_type", type(error).__name__)
    message = clean(str(error), 4000)
    if not hasattr(error, "student_type"):
        return _Failure("failed", f"the check could not use what your code returned: {name}: {message}")
    if isinstance(error, NotImplementedError):
        return _Failure("not attempted", "not attempted yet")
    return _Failure("error", f"{name}: {message}" if message else name, told)


def _failed_line(error: AssertionError, part: Part) -> str:
    """The visible assertion that failed, for want of a message."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == f"<{part.name}>"]
    line = (frames[-1].line or "").strip() if frames else ""
    return f"this does not hold: {line}" if line and line in part.cell.source else "a check failed"


def _conclude(part: Part, failure: _Failure | None, points: float | None = None) -> Item:
    """The item of a check, with its output written into the cell."""
    most = float(part.cell.metadata.nbgrader.get("points", 0))
    part.cell.outputs = []
    if failure:
        part.cell.outputs = [_error_output(failure)]
        if failure.maps:
            shown = NotebookNode({"text/html": failure.maps, "text/plain": "expected beside got"})
            part.cell.outputs.append(NotebookNode(output_type="display_data", metadata=NotebookNode(), data=shown))
        return Item(part.name, failure.status, 0.0, most, failure.message)
    if points is None:
        return Item(part.name, "passed", most, most, "")
    why = getattr(points, "why", "partly right")
    points = min(max(float(points), 0.0), most)
    data = NotebookNode({"text/plain": repr(points)})
    part.cell.outputs = [
        NotebookNode(output_type="execute_result", execution_count=None, metadata=NotebookNode(), data=data)
    ]
    if points < most:
        return Item(part.name, "failed", points, most, why)
    return Item(part.name, "passed", most, most, "")


def _error_output(failure: _Failure) -> NotebookNode:
    lines = [failure.message, *failure.traceback.splitlines()]
    return NotebookNode(output_type="error", ename=failure.status, evalue=failure.message, traceback=lines)
