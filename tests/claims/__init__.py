"""Sentences of the chapters that quote a result, each with what must hold of the executed outputs for it to be true."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from nbformat import NotebookNode

from autograder.course.curriculum import find_course


@dataclass(frozen=True)
class Claim:
    """A sentence and its evidence.

    Attributes:
        cell: the id of the markdown cell that makes the claim.
        phrase: some words of the sentence as they stand there.
        holds: given the chapter's `outputs`, returns whether the sentence is true.
    """

    cell: str
    phrase: str
    holds: Callable[[dict[str, str]], bool]


def outputs(notebook: NotebookNode) -> dict[str, str]:
    """What each code cell printed or returned, as text, by the cell's id."""
    return {cell.id: "\n".join(map(_text, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"}


def _text(output: NotebookNode) -> str:
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def by_chance(first: int, second: int) -> float:
    """How often a fair coin is as uneven as this or more, in per cent: the sign test."""
    n, few = first + second, min(first, second)
    return 200 * sum(math.comb(n, k) for k in range(few + 1)) / 2**n


@cache
def records(name: str) -> list[dict]:
    """The runs in `results/runs` whose file's name fits this pattern."""
    files = sorted((find_course().root / "results/runs").glob(f"{name}.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def reversal(model: str) -> list[float]:
    """The loss after 500 steps of chapter 06's small task, seed by seed."""
    runs = [run for run in records("Reversing_eight_digits*") if run["model"] == model]
    return [run["values"]["step 500"] for run in sorted(runs, key=lambda run: run["seed"])]
