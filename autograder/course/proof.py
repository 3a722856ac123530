"""The kill table: every wrong answer must fail with its message, every right answer must pass."""

import ast
import contextlib
import importlib
import io
import linecache
import secrets
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import nbformat
import torch
from nbformat import NotebookNode
from rich.console import Console
from rich.progress import track
from rich.table import Table

from autograder.answers import Answer
from autograder.cells import exercise_of, flags_of
from autograder.course.curriculum import Chapter, Course, Exercise, reference_modules
from autograder.isolation.sandbox import Sandbox
from autograder.judge import fresh_state
from autograder.run import grade_notebook
from autograder.source import definitions, execute_definitions
from autograder.verdict import Status


@dataclass(frozen=True)
class Verdict:
    """What the checks said of one answer: `message` is empty when it passed."""

    answer: Answer
    message: str

    @property
    def as_meant(self) -> bool:
        """A wrong answer failed with its phrase, or a right one passed."""
        says = self.answer.says
        return not self.message if says is None else bool(self.message) and says.lower() in self.message.lower()


def answers(chapter: Chapter) -> list[Answer]:
    """The wrong and right answers of a chapter, wrong ones first."""
    module = importlib.import_module(f"checks.{chapter.module}.mutants")
    return [*module.MUTANTS, *module.VARIANTS]


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    """The cell with this `grade_id`."""
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


def code_of(notebook: NotebookNode) -> NotebookNode:
    """A notebook without prose and results, which no judgement of an answer needs to read."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in cells:
        cell.outputs = []
    return NotebookNode(notebook | {"cells": cells})


def check_cells(notebook: NotebookNode, exercise: str) -> list[NotebookNode]:
    """The check cells of one exercise."""
    return [cell for cell in notebook.cells if exercise_of(flags_of(cell).get("grade_id", "")) == exercise]


def with_answer(notebook: NotebookNode, answer: Answer) -> NotebookNode:
    """A chapter's notebook with one solution replaced; the other cells are its own."""
    old = cell_of(notebook, answer.exercise)
    new = NotebookNode(old | {"source": answer.cell(old.source)})
    return NotebookNode(notebook | {"cells": [new if cell is old else cell for cell in notebook.cells]})


def judge_in_notebook(notebook: NotebookNode, answer: Answer, seed: int | None = None) -> Verdict:
    """Run an answer and its checks on real objects in this process, as a notebook does.

    Args:
        notebook: the chapter's solution; the working directory must be its folder.
        answer: the answer in place of the reference's.
        seed: what random numbers come from; a new one by default.
    """
    torch.set_num_threads(1)  # the tensors of checks are small: threads would only wait for each other
    fresh_state(secrets.randbits(62) if seed is None else seed)
    changed = with_answer(notebook, answer)
    namespace: dict = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for number, cell in enumerate(c for c in changed.cells if c.cell_type == "code"):
                if not _is_check(cell):
                    execute_definitions(_definitions(cell.source), f"<cell {number}>", namespace)
            for cell in check_cells(changed, answer.exercise):
                credit = _execute_check(cell.source, namespace)
                if isinstance(credit, float) and credit < cell.metadata.nbgrader.points:
                    return Verdict(answer, f"{credit:g} points: {getattr(credit, 'why', '')}")
        except Exception as error:
            return Verdict(answer, f"{type(error).__name__}: {error}")
    return Verdict(answer, "")


def _execute_check(source: str, namespace: dict) -> object:
    """Run a check cell; returns the value of its last expression, which may be partial credit."""
    linecache.cache["<check>"] = (len(source), None, source.splitlines(keepends=True), "<check>")
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<check>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<check>", "eval"), namespace) if last else None


def judge_in_grader(
    sandbox: Sandbox, notebook: NotebookNode, answer: Answer, modules: Mapping[str, str], seed: int | None = None
) -> Verdict:
    """Grade an answer as a submission is graded: the code in the sandbox, the checks on proxies.

    Args:
        sandbox: where the answer runs.
        notebook: the chapter's solution.
        answer: the answer in place of the reference's.
        modules: the definitions of the earlier chapters.
        seed: what random numbers come from; a new one by default.
    """
    only = {cell.metadata.nbgrader.grade_id for cell in check_cells(notebook, answer.exercise)}
    graded = grade_notebook(sandbox, with_answer(notebook, answer), notebook, modules=modules, only=only, seed=seed)
    wrong = [item for item in graded.items if item.status != Status.PASSED]
    return Verdict(answer, f"{wrong[0].status}: {wrong[0].message}" if wrong else "")


@cache
def _definitions(cell: str) -> str:
    return definitions([cell])  # the same cells come again with each answer


def _is_check(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def judge_chapter(course: Course, chapter: Chapter, sandbox: Sandbox) -> Iterator[Verdict]:
    """The verdicts on all answers of a chapter: on real objects, but for those that attack the process they run in."""
    path = course.solution(chapter)
    notebook = code_of(nbformat.read(path, as_version=4))
    modules = reference_modules(course, chapter)
    with contextlib.chdir(path.parent):
        for answer in answers(chapter):
            if answer.forged:
                yield judge_in_grader(sandbox, notebook, answer, modules)
            else:
                yield judge_in_notebook(notebook, answer)


def shortfalls(exercise: Exercise, exercise_answers: list[Answer]) -> list[str]:
    """What an exercise lacks of the 8 mutants and 3 variants of a function, 12 and 4 of a class, forgers apart."""
    least_mutants, least_variants = (12, 4) if exercise.name[0].isupper() else (8, 3)
    mutants = sum(a.says is not None and not a.forged for a in exercise_answers)
    variants = sum(a.says is None for a in exercise_answers)
    lacks = []
    if mutants < least_mutants:
        lacks.append(f"{exercise.name} has {mutants} mutants, not {least_mutants}")
    if variants < least_variants:
        lacks.append(f"{exercise.name} has {variants} variants, not {least_variants}")
    return lacks


def run(course: Course, chosen: list[Chapter]) -> int:
    """Judge every answer of the chosen chapters and print the table.

    Returns:
        The exit status: 0 if every mutant died with its phrase, every variant passed, and no exercise has too few.
    """
    console = Console()
    heads = ("exercise", "mutants", "messages", "forgers", "variants")
    table = Table(*heads, caption="killed, matched, killed and accepted, of all")
    complaints = []
    # The course's own answers: without bubblewrap they do no harm.
    sandbox = Sandbox(unsafe=True)
    for chapter in chosen:
        total = len(answers(chapter))
        judged = judge_chapter(course, chapter, sandbox)
        verdicts = list(track(judged, chapter.folder, total, console=console, transient=True))
        for exercise in chapter.exercises:
            if exercise.kind == "written":
                continue
            own = [v for v in verdicts if v.answer.exercise == exercise.name]
            forged = [v for v in own if v.answer.forged]
            wrong = [v for v in own if v.answer.says is not None and not v.answer.forged]
            right = [v for v in own if v.answer.says is None]
            table.add_row(
                f"{chapter.number} {exercise.name}",
                f"{sum(bool(v.message) for v in wrong)}/{len(wrong)}",
                f"{sum(v.as_meant for v in wrong)}/{len(wrong)}",
                f"{sum(v.as_meant for v in forged)}/{len(forged)}",
                f"{sum(v.as_meant for v in right)}/{len(right)}",
            )
            complaints += shortfalls(exercise, [v.answer for v in own])
            complaints += [complaint(v) for v in own if not v.as_meant]
    sandbox.close()
    console.print(table)
    for line in complaints:
        console.print(line, markup=False, highlight=False)
    return 1 if complaints else 0


def complaint(verdict: Verdict) -> str:
    """What is wrong with a verdict that is not as it was meant."""
    answer = verdict.answer
    where = f"{answer.exercise}, {answer.title!r}"
    if answer.says is None:
        return f"{where}: a right answer, rejected: {verdict.message}"
    if not verdict.message:
        return f"{where}: a wrong answer, accepted"
    return f"{where}: should say {answer.says!r}, said: {verdict.message}"
