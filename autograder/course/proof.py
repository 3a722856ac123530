"""The kill table: every wrong answer must fail for its mistake, every right answer must pass."""

import ast
import contextlib
import importlib
import io
import linecache
import re
import secrets
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, product
from operator import attrgetter

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
from autograder.mistakes import Common, Mistake, raised
from autograder.run import grade_notebook
from autograder.source import definitions, execute_definitions
from autograder.verdict import Credit, Finding, Status


@dataclass(frozen=True)
class Judged:
    """What the checks said of one answer: nothing when it passed."""

    answer: Answer
    finding: Finding | None = None
    message: str = ""

    @property
    def as_meant(self) -> bool:
        """A right answer passed, or a wrong one failed for its mistake."""
        if self.answer.mistake is None:
            return bool(self.message) != self.answer.right
        return self.finding is not None and self.finding.mistake == self.answer.mistake.id


def answers_of(chapter: Chapter) -> list[Answer]:
    """The wrong and right answers of a chapter, wrong ones first."""
    module = importlib.import_module(f"checks.{chapter.module}.mutants")
    return [*module.MUTANTS, *module.VARIANTS]


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    """The cell with this `grade_id`."""
    return next(c for c in notebook.cells if flags_of(c).get("grade_id") == name)


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


def judge_in_notebook(notebook: NotebookNode, answer: Answer, seed: int | None = None) -> Judged:
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
                credit = execute_check(cell.source, namespace)
                if isinstance(credit, Credit) and credit < cell.metadata.nbgrader.points:
                    return Judged(answer, credit.finding, f"{credit:g} points: {credit.finding}")
        except AssertionError as error:
            return Judged(answer, getattr(error, "finding", Finding(what=str(error))), f"it failed: {error}")
        except Exception as error:
            return Judged(answer, raised(error), f"{type(error).__name__}: {error}")
    return Judged(answer)


def execute_check(source: str, namespace: dict) -> object:
    """Run a check cell; returns the value of its last expression, which may be partial credit."""
    linecache.cache["<check>"] = (len(source), None, source.splitlines(keepends=True), "<check>")
    tree = ast.parse(source)
    last = tree.body[-1] if isinstance(tree.body[-1], ast.Expr) else None
    body = tree.body[:-1] if last else tree.body
    exec(compile(ast.Module(body, []), "<check>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<check>", "eval"), namespace) if last else None


def judge_in_grader(
    sandbox: Sandbox, notebook: NotebookNode, answer: Answer, modules: Mapping[str, str], seed: int | None = None
) -> Judged:
    """Grade an answer as a submission is graded: the code in the sandbox, the checks on proxies.

    What stands beside it is the course's own, so nothing that it uses is looked at for a mistake paid for already.

    Args:
        sandbox: where the answer runs.
        notebook: the chapter's solution.
        answer: the answer in place of the reference's.
        modules: the definitions of the earlier chapters.
        seed: what random numbers come from; a new one by default.
    """
    only = {cell.metadata.nbgrader.grade_id for cell in check_cells(notebook, answer.exercise)}
    changed = with_answer(notebook, answer)
    graded = grade_notebook(sandbox, changed, notebook, modules=modules, only=only, seed=seed, pay_once=False)
    wrong = next((item for item in graded.items if item.status != Status.PASSED), None)
    return Judged(answer, wrong.finding, f"{wrong.status}: {wrong.message}") if wrong else Judged(answer)


@cache
def _definitions(cell: str) -> str:
    return definitions([cell])  # the same cells come again with each answer


def _is_check(cell: NotebookNode) -> bool:
    return bool(flags_of(cell).get("grade"))


def judge_chapter(
    course: Course, chapter: Chapter, sandbox: Sandbox, seeds: Sequence[int | None] = (None,)
) -> Iterator[Judged]:
    """What the checks say of a chapter's answers: on real objects, but for those that attack their process.

    Args:
        course: the course.
        chapter: whose answers.
        sandbox: where the attackers run.
        seeds: what random numbers come from; each answer is judged with each, one after the other.
    """
    path = course.solution(chapter)
    notebook = code_of(nbformat.read(path, as_version=4))
    modules = reference_modules(course, chapter)
    with contextlib.chdir(path.parent):
        for answer, seed in product(answers_of(chapter), seeds):
            if answer.forged:
                yield judge_in_grader(sandbox, notebook, answer, modules, seed)
            else:
                yield judge_in_notebook(notebook, answer, seed)


def _judge_chapters(
    course: Course, chosen: list[Chapter], console: Console, seeds: Sequence[int | None] = (None,)
) -> Iterator[tuple[Chapter, Iterable[Judged]]]:
    """Each chapter with what the checks say of its answers, which shows how far it is."""
    with Sandbox(unsafe=True) as sandbox:  # the course's own answers: without bubblewrap they do no harm
        for chapter in chosen:
            judged = judge_chapter(course, chapter, sandbox, seeds)
            total = len(answers_of(chapter)) * len(seeds)
            yield chapter, track(judged, chapter.folder, total, console=console, transient=True)


def changing(judged: Iterable[Judged]) -> list[tuple[Answer, Counter[str]]]:
    """The answers whose verdict is not always the same, with how often each verdict came.

    Args:
        judged: what `judge_chapter` says; the verdicts of one answer follow each other.
    """
    found = [(answer, Counter(map(_verdict, own))) for answer, own in groupby(judged, attrgetter("answer"))]
    return [(answer, verdicts) for answer, verdicts in found if len(verdicts) > 1]


def _verdict(judged: Judged) -> str:
    """Whether an answer passed, or the mistake that it failed for; of some forgers it does not matter what that is."""
    if not judged.message:
        return "passed"
    if judged.answer.forged and judged.answer.mistake is None:
        return "failed"
    return judged.finding.mistake if judged.finding and judged.finding.mistake else "failed, unnamed"


def run_with_seeds(course: Course, chosen: list[Chapter], seeds: int) -> int:
    """Judge every answer with so many seeds, and name those whose verdict changes.

    Returns:
        The exit status: 0 if none does.
    """
    console = Console()
    table = Table("chapter", "answers", "seeds", "verdicts that change")
    told = []
    drawn = [secrets.randbits(62) for _ in range(seeds)]
    for chapter, judged in _judge_chapters(course, chosen, console, drawn):
        found = changing(judged)
        table.add_row(chapter.folder, str(len(answers_of(chapter))), str(seeds), str(len(found)))
        for answer, verdicts in found:
            counts = ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common())
            told.append(f"{answer.exercise}, {answer.title!r}: {counts}")
    console.print(table)
    for line in told:
        console.print(line, markup=False, highlight=False)
    return 1 if told else 0


def shortfalls(exercise: Exercise, exercise_answers: list[Answer]) -> list[str]:
    """What an exercise lacks of the 8 mutants and 3 variants of a function, 12 and 4 of a class, forgers apart."""
    least_mutants, least_variants = (12, 4) if exercise.name[0].isupper() else (8, 3)
    mutants = sum(not a.right and not a.forged for a in exercise_answers)
    variants = sum(a.right for a in exercise_answers)
    lacks = []
    if mutants < least_mutants:
        lacks.append(f"{exercise.name} has {mutants} mutants, not {least_mutants}")
    if variants < least_variants:
        lacks.append(f"{exercise.name} has {variants} variants, not {least_variants}")
    return lacks


def run(course: Course, chosen: list[Chapter]) -> int:
    """Judge every answer of the chosen chapters and print the table.

    Returns:
        The exit status: 0 if every mutant died of its mistake, every variant passed, every mistake was made, and no
        exercise has too few.
    """
    console = Console()
    heads = ("exercise", "mutants", "named", "forgers", "variants")
    table = Table(*heads, caption="killed, named by their mistake, killed and accepted, of all")
    complaints = []
    for chapter, judged in _judge_chapters(course, chosen, console):
        verdicts = list(judged)
        for exercise in chapter.exercises:
            if exercise.kind == "written":
                continue
            own = [v for v in verdicts if v.answer.exercise == exercise.name]
            forged = [v for v in own if v.answer.forged]
            wrong = [v for v in own if not v.answer.right and not v.answer.forged]
            right = [v for v in own if v.answer.right]
            table.add_row(
                f"{chapter.number} {exercise.name}",
                f"{sum(bool(v.message) for v in wrong)}/{len(wrong)}",
                f"{sum(v.as_meant for v in wrong)}/{len(wrong)}",
                f"{sum(v.as_meant for v in forged)}/{len(forged)}",
                f"{sum(v.as_meant for v in right)}/{len(right)}",
            )
            complaints += shortfalls(exercise, [v.answer for v in own])
            complaints += [complaint(v) for v in own if not v.as_meant]
        complaints += faults(chapter, course.notebook(chapter).read_text(encoding="utf-8"))
    console.print(table)
    for line in complaints:
        console.print(line, markup=False, highlight=False)
    return 1 if complaints else 0


def complaint(judged: Judged) -> str:
    """What is wrong with a judgement that is not as it was meant."""
    answer = judged.answer
    where = f"{answer.exercise}, {answer.title!r}"
    if answer.right:
        return f"{where}: a right answer, rejected: {judged.message}"
    if not judged.message:
        return f"{where}: a wrong answer, accepted"
    assert answer.mistake is not None, "of a forger it is enough that it is rejected"
    named = judged.finding.mistake if judged.finding and judged.finding.mistake else "no mistake"
    return f"{where}: should name {answer.mistake.id}, named {named}: {judged.message}"


def mistakes_of(chapter: Chapter) -> list[type[Mistake]]:
    """What the checks of a chapter can name: the enumerations of its `mistakes.py`."""
    module = importlib.import_module(f"checks.{chapter.module}.mistakes")
    return [kind for kind in vars(module).values() if _is_of(kind, module.__name__)]


def _is_of(kind: object, module: str) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mistake) and kind.__module__ == module


def faults(chapter: Chapter, handed_out: str) -> list[str]:
    """What is wrong with a chapter's mistakes themselves.

    Args:
        chapter: whose.
        handed_out: the text of the notebook that students get.

    Returns:
        A line for each sentence that two mistakes of an enumeration share, for each id that every exercise has already,
        for each number that a sentence tells although nothing that students get does, and for each mistake that no
        wrong answer on record makes.
    """
    told = []
    common = {mistake.id for mistake in Common}
    made = {answer.mistake for answer in answers_of(chapter)}
    for kind in mistakes_of(chapter):
        for name, mistake in kind.__members__.items():
            where = f"{chapter.module}/mistakes.py: {kind.__name__}.{name}"
            if mistake.name != name:
                told.append(f"{where} has the sentence of {mistake.name}: one mistake, one name")
                continue
            if mistake.id in common:
                told.append(f"{where} has the name of a mistake that every exercise knows: find another")
            hidden = [n for n in re.findall(r"\d+\.\d+|\d{2,}", mistake.says) if n not in handed_out]
            if hidden:
                told.append(f"{where} tells {hidden[0]}, which stands nowhere in the notebook: a hidden value?")
            if mistake not in made:
                told.append(f"{where} is made by no wrong answer on record: add one, or delete it")
    return told
