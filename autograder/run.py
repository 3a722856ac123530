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
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.cells import CODE_STUB, exercise_of
from autograder.isolation.sandbox import Sandbox
from autograder.judge import (
    conclude,
    course_fault,
    error_output,
    execute_check,
    student_failure,
    told_by_frames,
)
from autograder.limits import Budget, Limits, this_threads_clock
from autograder.references import importable
from autograder.selection import import_statements, texts_to_run, used_solutions, what_defines
from autograder.source import (
    bound_by_import,
    bound_in,
    defined_names,
    definition_texts,
    in_package,
    parsed,
    statements_of,
)
from autograder.submission import Part, Repaired, SubmissionError, as_notebook, lay_over, read_notebook
from autograder.verdict import FAULT_OF_THE_COURSE, Credit, Failure, Finding, Graded, Item, Status
from autograder.wire.protocol import torch
from autograder.wire.proxy import Link, Shared, WorkerLost

_NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'|No module named '([\w.]+)'")
# A notebook of a course in this layout switches its loader on by this import, which has nothing to do in a worker.
_LOADER = dict.fromkeys(("autograder", "autograder.course", "autograder.course.imports"), "")


def grade_notebook(
    sandbox: Sandbox,
    submission: Path | NotebookNode,
    source: Path | NotebookNode,
    *,
    modules: Mapping[str, str] | None = None,
    only: set[str] | frozenset[str] | None = None,
    run_cells: str = "definitions",
    seed: int | None = None,
    explain: bool = False,
    pay_once: bool = True,
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
        pay_once: judge an exercise that fails while one above it that it uses is wrong once more, with the reference in
            that one's place; needs checks called `NAME_check` of solution cells called `NAME`.

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
    seed = secrets.randbits(64) if seed is None else seed
    run = _Run(sandbox, repaired, source, dict(modules or {}), run_cells, seed, explain)
    try:
        items = run.grade(only)
        run.close()
        if pay_once:
            items = run.spare(items)
    finally:
        run.close()
    in_doubt = run.in_doubt if any(item.points < item.max_points for item in items) else {}
    return Graded(items, repaired.notebook, repaired.problems, seed=seed, in_doubt=in_doubt)


@lru_cache(maxsize=32)
def _read_source(path: Path, changed: int) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def _checks(repaired: Repaired, only: set[str] | frozenset[str] | None) -> list[Part]:
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
        is_reference: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.source, self.run_cells, self.is_reference = source, run_cells, is_reference
        self.seed, self.explain = seed, explain
        self.link: Link | None = None
        self.sandbox, self.limits, self.repaired = sandbox, limits or sandbox.limits, repaired
        # The grader imports the modules as they are, the worker what its cells need of them.
        self.modules = modules
        self.before = 0.0  # processor time of workers that are gone
        self.budget = Budget(self.limits.submission_seconds, self._spent, self.limits.clock_factor)
        self.in_doubt: dict[str, str] = {}
        self.apart_seconds = self.limits.submission_seconds  # for what is judged once more, all of it together
        self.aside_seconds = self.limits.aside_seconds  # that are left for a student's cells that hold no answer
        self.reduced: set[int] = set()  # the cells of which only definitions run, since they were stopped
        self.room = self.limits.notebook_output_kb << 10  # for what students' cells print and raise, in bytes
        self.sources: dict[str, str] = {}
        self.failures: dict[int, Failure] = {}
        self.broken: dict[str, str] = {}  # what the course's own cells could not define, and why
        self.unbound: dict[str, str] = {}  # what a student's cells could not define, and why
        self.done: list[int] = []
        self.texts, self.worker_modules = texts_to_run(repaired.parts, modules, run_cells)
        self.solutions = {
            name: part for part in repaired.parts if part.role == "solution" for name in defined_names(part.source)
        }
        self.imports = import_statements(source)

    def close(self) -> None:
        if self.link is not None:
            self.link.close()

    def grade(self, only: set[str] | frozenset[str] | None) -> list[Item]:
        """The items, with the outputs of the cells written into the notebook."""
        wanted = _checks(self.repaired, only)
        items: list[Item] = []
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
                if text := self._kept(self.link.take_output() if self.link else ""):
                    part.cell.outputs.insert(0, NotebookNode(output_type="stream", name="stdout", text=text))
        return items

    def spare(self, items: list[Item]) -> list[Item]:
        """The items; what fails and uses a wrong exercise has the points that it earns beside that one's reference.

        Of what runs beside the reference only the points are kept: all else it says may hold a solution.
        """
        judged = {item.grade_id: item for item in items}
        checks = _checks(self.repaired, None)
        used = self._used_by_failed(checks, judged)
        names = {solution.name for own in used.values() for solution in own}
        if others := {part.name for part in checks if exercise_of(part.name) in names} - judged.keys():
            judged |= {item.grade_id: item for item in self._apart(others)}
            used = self._used_by_failed(checks, judged)
        for part in checks:
            wrong = [s for s in used.get(part.name, []) if _is_wrong(s, judged)]
            if not wrong:
                continue
            told = _mend_first([s.name for s in wrong])
            item = judged[part.name]
            note = NotebookNode(output_type="stream", name="stdout", text=f"{told}\n")
            if any(CODE_STUB[0] in s.source or s.source == s.cell.source for s in wrong):  # there is no reference
                judged[part.name] = replace(item, message=f"{told}. {item.message}")
                part.cell.outputs.insert(0, note)
                continue
            again = next(iter(self._apart({part.name}, {s.name for s in wrong})), item)
            if again.points <= item.points:
                continue
            finding = Finding(what=told)
            printed = [output for output in part.cell.outputs if output.output_type == "stream"]
            judged[part.name] = conclude(part, None, Credit(again.points, finding))
            judged[part.name] = replace(judged[part.name], message=told, finding=finding)
            part.cell.outputs[:0] = [note, *printed]
        return [judged[item.grade_id] for item in items]

    def _used_by_failed(self, checks: list[Part], judged: dict[str, Item]) -> dict[str, list[Part]]:
        """The solution cells that each check that may be spared uses, by its name."""
        failed = [part for part in checks if self._may_be_spared(part, judged)]
        return {part.name: used_solutions(self.repaired.parts, part) for part in failed}

    def _may_be_spared(self, check: Part, judged: dict[str, Item]) -> bool:
        """Whether a check failed an answer, rather than that there is none, or for a fault of its own."""
        item = judged.get(check.name)
        own = next((p for p in self.repaired.parts if p.role == "solution" and p.name == exercise_of(check.name)), None)
        if item is None or own is None or item.points >= item.max_points or item.status == Status.COURSE_FAULT:
            return False
        return not own.missing and not own.untouched and bool(own.cell.source.strip())

    def _apart(self, only: set[str], by_reference: Collection[str] = ()) -> list[Item]:
        """What these checks say in workers of their own, with the reference in the place of these solutions."""
        if self.apart_seconds <= 0:
            return []
        parts = []
        for part in self.repaired.parts:
            given = part.role == "solution" and part.name in by_reference
            cell = NotebookNode(part.cell | {"source": part.source if given else part.cell.source})
            missing, untouched = part.missing and not given, part.untouched and not given
            parts.append(replace(part, cell=cell, missing=missing, untouched=untouched))
        limits = replace(self.limits, submission_seconds=self.apart_seconds)
        settings = (self.source, self.modules, self.run_cells, self.seed, False)
        trial = _Run(self.sandbox, Repaired(parts, self.repaired.metadata), *settings, limits=limits)
        for number in self.reduced:
            if parts[number].name not in by_reference:
                trial._reduce(number)
        try:
            return trial.grade(only)
        finally:
            trial.close()
            self.apart_seconds -= trial._spent()
            if trial.in_doubt:  # what sleeps may not do so once more for each exercise
                self.apart_seconds = 0.0
                self.in_doubt |= dict.fromkeys(only & trial.in_doubt.keys(), "judging it once more took too long")

    def _worker(self) -> Link:
        """A worker that has run the cells so far, but for those that are known to end workers."""
        while self.link is None or self.link.lost:
            if self.link is not None:
                self.before, self.link = self._spent(), None
            self.link = Link(self.sandbox.worker(), self.limits, self.sources)
            self._set_limit(self.limits.cell_seconds)
            self.link.seed(_seed_for(self.seed, "worker"))
            self.link.install(_LOADER | self.worker_modules)
            for number in list(self.done):
                try:
                    self._send(number)
                except WorkerLost as lost:
                    self._give_up_cell(number, lost)
                    break
                except Exception:
                    continue  # it raised the first time, too
            if not self.link.lost:
                self.link.take_output()
            elif self.budget.over():
                raise self.link.lost
        return self.link

    def _spent(self) -> float:
        """The processor time that this submission's workers have spent."""
        return self.before + (self.link.spent if self.link else 0.0)

    def _set_limit(self, most: float) -> None:
        assert self.link is not None, "limits are a worker's"
        left = max(0.01, self.limits.submission_seconds - self._spent())
        self.link.allow(min(left, most))

    def _send(self, number: int) -> list[tuple[int, Exception]]:
        """Run a cell; returns what it raised, with the line of the statement."""
        if is_aside := self._is_aside(number):
            if self.aside_seconds <= 0:
                self._reduce(number)
            self._set_limit(self.limits.aside_cell_seconds)
        else:
            self._set_limit(self.limits.cell_seconds)
        assert self.link is not None, "a worker has been started"
        part = self.repaired.parts[number]
        text, filename = self.texts[number], f"<{part.name}>"
        if isinstance(text, str):
            before = self.link.spent
            try:
                return self.link.run(text, filename, go_on=self.run_cells == "definitions")
            finally:
                if is_aside:
                    self.aside_seconds -= self.link.spent - before
        for index, told in self.link.define(text, filename).items():
            for name in {name for s in statements_of(text[index]) for name in s.binds}:
                self.broken[name] = f"the course's own `{name}` could not be defined: {told}"
        return []

    def _is_aside(self, number: int) -> bool:
        """Whether a cell is the student's and holds no answer: one that trains is not to take the answers' time."""
        is_students = isinstance(self.texts[number], str) and self.run_cells == "definitions"
        return is_students and self.repaired.parts[number].role in ("added", "course")

    def _reduce(self, number: int) -> None:
        """From now on only what defines something runs of a student's cell."""
        self.reduced.add(number)
        text = self.texts[number]
        assert isinstance(text, str), "the course's cells are definitions"
        self.texts[number] = what_defines(text)

    def _give_up_cell(self, number: int, lost: WorkerLost) -> None:
        """Go on without a cell that ended its worker, or with its definitions, if it is stopped for the first time."""
        self.failures[number] = self._lose(self.repaired.parts[number].name, lost, f"this cell was stopped: {lost}")
        if number in self.done:
            self.done.remove(number)
        if self.run_cells == "definitions" and isinstance(self.texts[number], str) and number not in self.reduced:
            self._reduce(number)
            self.done = sorted([*self.done, number])

    def _run_cell(self, number: int) -> None:
        part = self.repaired.parts[number]
        self.sources.update(definition_texts(self.texts[number]))
        outputs = part.cell.outputs
        if used_up := self._used_up(part.name):
            self.failures[number] = Failure(Status.TIMEOUT, used_up)
            return
        try:
            link = self._worker()
            left_out = ""
            try:
                raised = self._send(number)
                self.done.append(number)
                left_out = self._note_raised(number, raised)
            except WorkerLost as lost:
                self._give_up_cell(number, lost)
            except Exception as error:
                self.done.append(number)
                self.failures[number] = self._blame(student_failure(error), error)
            if text := self._kept(link.take_output() + left_out):
                outputs.append(NotebookNode(output_type="stream", name="stdout", text=text))
            if left_out:
                return
        except WorkerLost as lost:
            self.failures[number] = self._lose(part.name, lost, f"this cell was stopped: {lost}")
        if failure := self.failures.get(number):
            shown = self._kept(failure.traceback), self._kept(failure.message) or failure.message[:100]
            outputs.append(error_output(replace(failure, traceback=shown[0], message=shown[1])))

    def _note_raised(self, number: int, raised: list[tuple[int, Exception]]) -> str:
        """Keep why a cell does not define what it should.

        Returns:
            Where that is not why: a line for the reader of the graded notebook. Much of what the course's own cells
            compute is not there while grading, so that a `print` of it raises.
        """
        if not raised:
            return ""
        part = self.repaired.parts[number]
        promised = set(defined_names(part.source)) if part.role == "solution" else set()
        bound: dict[int, frozenset[str]] = {}
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            bound = {statement.lineno: bound_in(statement) for statement in parsed(str(self.texts[number])).body}
        binding = {0, *(line for line, names in bound.items() if names & promised)}
        line, error = next(((at, e) for at, e in raised if at in binding), raised[0])
        for at, e in raised:
            told = f"line {at} of `{part.name}`, which defines it, raised {student_failure(e).message}"
            if lacking := self._lacking(e):
                self.broken |= dict.fromkeys(bound.get(at, ()), lacking)
            else:
                self.unbound |= dict.fromkeys(bound.get(at, ()), told + self._of_an_earlier_chapter(e))
        self.failures[number] = self._blame(student_failure(error), error)
        if line in binding:
            return ""
        return f"[line {line} was left out while grading: {student_failure(error).message[:200]}]\n"

    def _kept(self, text: str) -> str:
        """As much of an output as the notebook has room for; a cell's own cap would let many cells fill the disk."""
        if not text or not self.room:
            return ""
        data = text.encode(errors="replace")
        if len(data) <= self.room:
            self.room -= len(data)
            return text
        kept = data[: self.room].decode(errors="ignore")
        self.room = 0
        return kept + "\n[the rest of the notebook's output was dropped]\n"

    def _check(self, part: Part) -> tuple[Failure | None, float | None]:
        """Run one check; returns what went wrong, if anything, and the points it gave, if it gave any itself."""
        if used_up := self._used_up(part.name):
            return Failure(Status.TIMEOUT, used_up), None
        try:
            link = self._worker()
            self._set_limit(self.limits.calls_seconds)
            try:
                tree = ast.parse(part.source, f"the cell {part.name}")
            except SyntaxError as wrong:
                return course_fault(wrong), None
            with importable(self.modules):
                namespace, failure = self._namespace(tree, link)
                if failure is None:
                    seed = _seed_for(self.seed, part.name)
                    # Another seed than the check's, from which student code could tell all that the check will draw.
                    link.seed(_seed_for(self.seed, f"{part.name}, the worker"))
                    shared = self._deleted(tree)
                    names = Shared(namespace, shared, link) if shared else namespace
                    budget = Budget(self.limits.check_seconds, this_threads_clock(), self.limits.clock_factor)
                    failure, points, error = execute_check(part, tree, namespace, names, seed, budget)
                    if failure and failure.status == Status.COURSE_FAULT and error is None and budget.over():
                        link.close()  # it was stopped in the middle of a question, perhaps
                        if (over := budget.over()) and over.by_clock:
                            self.in_doubt[part.name] = failure.message
                        return failure, None
                    if link.lost:
                        raise link.lost
                    if failure and error is not None:
                        failure = self._blame(failure, error)
                        if self._is_unusable(failure, error) and self._fails_for_reference(part):
                            failure = course_fault(error)
                        if self.explain:
                            failure = replace(failure, message=failure.message + told_by_frames(error))
                    return failure, points
            return failure, None
        except WorkerLost as lost:
            return self._lose(part.name, lost, self._used_up(part.name) or f"your code was stopped: {lost}"), None
        except Exception as error:
            if not hasattr(error, "student_type"):
                raise
            return student_failure(error), None  # the worker would not even hand over the object

    def _blame(self, failure: Failure, error: BaseException) -> Failure:
        """The same failure, unless it comes from something that the course itself could not define."""
        missing = re.search(r"name '(\w+)' is not defined|cannot import name '(\w+)'", str(error))
        name = missing and (missing[1] or missing[2])
        if name in self.broken:
            return Failure(Status.COURSE_FAULT, f"{FAULT_OF_THE_COURSE}: {self.broken[name]}")
        raised = error if hasattr(error, "student_place") else error.__cause__
        if lacking := self._lacking(raised):
            return Failure(Status.COURSE_FAULT, f"{FAULT_OF_THE_COURSE}: {lacking}")
        if name in self.unbound:
            failure = replace(failure, message=f"{failure.message}: {self.unbound[name]}")
        elif told := self._of_an_earlier_chapter(raised):
            failure = replace(failure, message=failure.message + told)
        # Neither a helper that the check placed nor an earlier chapter is the student's text.
        place = getattr(raised, "student_place", "")[1:-1]
        if isinstance(raised, NameError | ImportError) and (place.startswith("helper ") or place in self.modules):
            return Failure(Status.COURSE_FAULT, f"{FAULT_OF_THE_COURSE}: {place}: {type(raised).__name__}: {raised}")
        return failure

    def _lacking(self, error: BaseException | None) -> str:
        """What the course's own packages lack, if that is why an import failed: a student's copy may be another one."""
        missing = _NOT_IMPORTED.search(str(error)) if isinstance(error, ImportError) else None
        packages = {n.split(".")[0] for n in self.modules if in_package(n, self.modules)}
        if not missing or (name := missing[2] or missing[3]).split(".")[0] not in packages:
            return ""
        return f"`{missing[2]}` has no `{missing[1]}`" if missing[2] else f"there is no `{name}`"

    def _of_an_earlier_chapter(self, error: BaseException | None) -> str:
        """Why a name of an earlier chapter is not there, if that is why an import failed."""
        missing = _NOT_IMPORTED.search(str(error)) if isinstance(error, ImportError) else None
        if not missing or missing[2] not in self.modules:
            return ""
        return f"; while grading, `{missing[2]}` is the course's own: define `{missing[1]}` in this notebook, too"

    def _is_unusable(self, failure: Failure, error: BaseException) -> bool:
        """Whether a check raised by itself, and did not say what is wrong: with what came, or of its own making."""
        own = not isinstance(error, AssertionError) and not hasattr(error, "student_type")
        return own and failure.status == Status.FAILED

    def _fails_for_reference(self, part: Part) -> bool:
        """Whether a check raises for the course's own answer as well: then it is the course's fault.

        What the second worker prints is dropped, as all else: it holds a solution.
        """
        if self.is_reference:
            return True
        answered = lay_over(as_notebook(self.source), self.source)
        settings = (self.modules, self.run_cells, self.seed, False)
        trial = _Run(self.sandbox, answered, self.source, *settings, is_reference=True)
        try:
            return [item.status for item in trial.grade({part.name})] == [Status.COURSE_FAULT]
        finally:
            trial.close()

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

    def _used_up(self, name: str) -> str:
        """Why neither this nor what comes later in a submission runs; empty while it may."""
        if (over := self.budget.over()) is None:
            return ""
        told = f"the notebook had used up its time before this: {over}"
        if over.by_clock:
            self.in_doubt[name] = told
        return told

    def _lose(self, name: str, lost: WorkerLost, told: str) -> Failure:
        """What a lost worker means for a cell or a check."""
        if lost.by_machine:
            self.in_doubt[name] = str(lost)
        return Failure(lost.status, told)


def _is_wrong(solution: Part, judged: Mapping[str, Item]) -> bool:
    """Whether a solution cell fails a check of its own."""
    own = [item for name, item in judged.items() if exercise_of(name) == solution.name]
    return any(item.points < item.max_points and item.status != Status.COURSE_FAULT for item in own)


def _mend_first(names: list[str]) -> str:
    told = " and ".join(f"`{name}`" for name in names)
    return f"this uses your {told}, which {'fails its' if len(names) == 1 else 'fail their'} own check: mend that first"


def _seed_for(seed: int, name: str) -> int:
    """The seed of one part of a submission, so that it does not matter which other parts are graded."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")
