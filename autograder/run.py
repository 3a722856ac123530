"""Grades one notebook: the student's cells run in a worker, the check cells here.

Cells run in the notebook's order. A check cell is executed from the course's notebook with this process's own torch;
the names that it takes from the student's notebook are proxies. When a worker is lost, another one takes up where the
culprit left off, so that one endless loop costs its own exercise only.
"""

import ast
import builtins
import contextlib
import hashlib
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.isolation.sandbox import Sandbox
from autograder.judge import (
    COURSE_FAULT,
    conclude,
    error_output,
    execute_check,
    student_failure,
    told_by_frames,
)
from autograder.references import importable
from autograder.selection import import_statements, texts_to_run
from autograder.source import bound_by_import, defined_names, definition_texts, statements_of
from autograder.submission import Part, Repaired, SubmissionError, as_notebook, lay_over, read_notebook
from autograder.verdict import Failure, Graded, Item, Status
from autograder.wire.protocol import torch
from autograder.wire.proxy import Link, Shared, WorkerLost

# A notebook of a course in this layout switches its loader on by this import, which has nothing to do in a worker.
_LOADER = dict.fromkeys(("autograder", "autograder.course", "autograder.course.imports"), "")


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
        failure = Failure(Status.MISSING, f"the notebook could not be graded: {ungradable}")
        items = [conclude(part, failure) for part in _checks(repaired, only)]
        return Graded(items, repaired.notebook, [], ungradable)
    if torch is not None:
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
        self.failures: dict[int, Failure] = {}
        self.broken: dict[str, str] = {}  # what the course's own cells could not define, and why
        self.done: list[int] = []
        self.link: Link | None = None
        self.texts, self.worker_modules = texts_to_run(repaired.parts, modules, run_cells)
        self.solutions = {
            name: part for part in repaired.parts if part.role == "solution" for name in defined_names(part.source)
        }
        self.imports = import_statements(source)

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
                items.append(conclude(part, *self._check(part)))
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
                for name in {name for s in statements_of(text[index]) for name in s.binds}:
                    self.broken[name] = f"the course's own `{name}` could not be defined: {told}"
        else:
            self.link.run(text, filename)

    def _give_up_cell(self, number: int, lost: WorkerLost) -> None:
        self.failures[number] = Failure(lost.status, f"this cell was stopped: {lost}")
        if number in self.done:
            self.done.remove(number)

    def _run_cell(self, number: int) -> None:
        part = self.repaired.parts[number]
        self.sources.update(definition_texts(self.texts[number]))
        outputs = part.cell.outputs
        if time.monotonic() >= self.end:
            self.failures[number] = Failure(Status.TIMEOUT, self._used_up())
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
                self.failures[number] = self._blame(student_failure(error), error)
            if text := link.take_output():
                outputs.append(NotebookNode(output_type="stream", name="stdout", text=text))
        except WorkerLost as lost:
            self.failures[number] = Failure(lost.status, f"this cell was stopped: {lost}")
        if number in self.failures:
            outputs.append(error_output(self.failures[number]))

    def _check(self, part: Part) -> tuple[Failure | None, float | None]:
        """Run one check; returns what went wrong, if anything, and the points it gave, if it gave any itself."""
        if time.monotonic() >= self.end:
            return Failure(Status.TIMEOUT, self._used_up()), None
        try:
            link = self._worker()
            self._set_deadline()
            tree = ast.parse(part.source)
            with importable(self.modules):
                namespace, failure = self._namespace(tree, link)
                if failure is None:
                    seed = _seed_for(self.seed, part.name)
                    # Another seed than the check's, from which student code could tell all that the check will draw.
                    link.seed(_seed_for(self.seed, f"{part.name}, the worker"))
                    shared = self._deleted(tree)
                    names = Shared(namespace, shared, link) if shared else namespace
                    failure, points, error = execute_check(
                        part, tree, namespace, names, seed, self.limits.check_seconds
                    )
                    if failure and failure.status == Status.TIMEOUT and error is None:
                        link.close()  # it was stopped in the middle of a question, perhaps
                        return failure, None
                    if link.lost:
                        raise link.lost
                    if failure and error is not None:
                        failure = self._blame(failure, error)
                        if self.explain:
                            failure = replace(failure, message=failure.message + told_by_frames(error))
                    return failure, points
            return failure, None
        except WorkerLost as lost:
            message = self._used_up() if time.monotonic() >= self.end else f"your code was stopped: {lost}"
            return Failure(lost.status, message), None
        except Exception as error:
            if not hasattr(error, "student_type"):
                raise
            return student_failure(error), None  # the worker would not even hand over the object

    def _blame(self, failure: Failure, error: BaseException) -> Failure:
        """The same failure, unless it comes from something that the course itself could not define."""
        missing = re.search(r"name '(\w+)' is not defined|cannot import name '(\w+)'", str(error))
        name = missing and (missing[1] or missing[2])
        if name in self.broken:
            return Failure(Status.CRASHED, f"{COURSE_FAULT}: {self.broken[name]}")
        # Neither a helper that the check placed nor an earlier chapter is the student's text.
        raised = error if hasattr(error, "student_place") else error.__cause__
        place = getattr(raised, "student_place", "")[1:-1]
        if isinstance(raised, NameError | ImportError) and (place.startswith("helper ") or place in self.modules):
            return Failure(Status.CRASHED, f"{COURSE_FAULT}: {place}: {type(raised).__name__}: {raised}")
        return failure

    def _namespace(self, tree: ast.Module, link: Link) -> tuple[dict[str, Any], Failure | None]:
        """What a check finds defined: the course's imports and the student's objects."""
        namespace: dict[str, Any] = {"__name__": "__check__"}
        bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.name}
        bound |= {name for n in ast.walk(tree) for name in bound_by_import(n)}
        bound -= self._deleted(tree)
        used = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        names = [name for name in dict.fromkeys(used) if name not in bound]
        for statement in self.imports:
            if set(bound_by_import(statement)) & {*names, "*"}:
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

    def _deleted(self, tree: ast.Module) -> set[str]:
        """The student's names that a check deletes, to see what happens without them."""
        deleted = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
        return deleted & set(self.solutions)

    def _why_undefined(self, name: str) -> Failure:
        part = self.solutions.get(name)
        if part is None:
            return Failure(Status.MISSING, f"`{name}` is not defined in the notebook")
        number = next(i for i, other in enumerate(self.repaired.parts) if other is part)
        if failure := self.failures.get(number):
            return failure
        if part.missing:
            return Failure(Status.MISSING, f"the cell `{part.name}` is missing from the notebook")
        if part.untouched or not part.cell.source.strip():
            return Failure(Status.NOT_ATTEMPTED, "not attempted yet")
        return Failure(Status.MISSING, f"the cell `{part.name}` does not define `{name}`")

    def _used_up(self) -> str:
        return f"the notebook had used up its {self.limits.submission_seconds:g} seconds before this"


def _seed_for(seed: int, name: str) -> int:
    """The seed of one part of a submission, so that it does not matter which other parts are graded."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:7], "big")
