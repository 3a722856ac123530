"""One notebook graded in this process's warm sandbox, whatever it holds.

A sandbox takes as long to start as torch takes to import, so each process that grades keeps one. It is shared by Dask
workers, nbgrader's preprocessors and `autograder check`. A process that only hands out jobs never imports torch.
"""

import atexit
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.cells import flags_of
from autograder.isolation.sandbox import PRELOAD, Sandbox
from autograder.limits import Limits
from autograder.submission import repair
from autograder.verdict import Item, Status

# The grader's own torch has one random state: two check cells at once would disturb each other.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Job:
    """What to grade, and how."""

    submission: Path
    source: Path
    modules: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    run_cells: str = "definitions"
    unsafe: bool = False
    seed: int | None = None
    """what random numbers come from: a new seed for each notebook, unless a verdict is to be had again"""
    only: frozenset[str] | None = None
    """grade these check cells only"""
    explain: bool = False
    """tell of each check that failed where, and with which values"""
    pay_once: bool = True
    """judge what fails with a wrong exercise above it once more, beside the reference"""


@dataclass(frozen=True)
class Outcome:
    """What came out, as plain data that crosses to another process."""

    items: list[Item]
    notebook: str
    problems: list[str]
    ungradable: str = ""
    seed: int | None = None
    in_doubt: dict[str, str] = field(default_factory=dict)
    """why the machine, or the engine itself, may be to blame for a verdict; such a notebook is to be judged again"""


def grade_job(job: Job) -> Outcome:
    """Grade one notebook; an error of the engine itself costs this notebook, never the caller.

    Args:
        job: what to grade.

    Returns:
        The items, the graded notebook as text, what repair found, and why nothing could be graded, if nothing could.

    Raises:
        SandboxError: no sandbox can be started on this machine, for this notebook or any other.
    """
    limits = tuple(job.limits.items())
    with _one_at_a_time:
        settings = (limits, job.unsafe, _preload(job.source))
        sandbox = warm_sandbox(*settings)
        try:
            from autograder.run import grade_notebook  # imports torch, so it comes after the sandbox's start

            graded = grade_notebook(
                sandbox,
                job.submission,
                job.source,
                modules=job.modules,
                only=job.only,
                run_cells=job.run_cells,
                seed=job.seed,
                explain=job.explain,
                pay_once=job.pay_once,
            )
            return Outcome(
                graded.items,
                _as_text(graded.notebook),
                graded.problems,
                graded.ungradable,
                graded.seed,
                graded.in_doubt,
            )
        except Exception as error:
            _forget_sandbox(settings)
            return ungraded(job.source, f"the grader failed: {type(error).__name__}: {error}", by_machine=True)


def _as_text(notebook: NotebookNode) -> str:
    """A notebook as text that nbformat can read again: a student's attachments may be anything."""
    for cell in notebook.cells:
        if not all(isinstance(bundle, dict) for bundle in cell.get("attachments", {}).values()):
            del cell["attachments"]
    return nbformat.writes(notebook)


def ungraded(source: Path, reason: str, by_machine: bool = False) -> Outcome:
    """The outcome of a notebook that was not graded: no points, and the reason on each of its checks.

    Args:
        source: the notebook in `solutions/`.
        reason: why.
        by_machine: it may well be graded at the next try.
    """
    notebook, _ = repair(nbformat.v4.new_notebook(), nbformat.read(source, as_version=4))
    items = []
    for cell in notebook.cells:
        about = flags_of(cell)
        if cell.cell_type == "code" and about.get("grade"):
            cell.outputs = [nbformat.v4.new_output("error", ename=Status.CRASHED, evalue=reason, traceback=[reason])]
            items.append(Item(about["grade_id"], Status.CRASHED, 0.0, float(about["points"]), reason))
    in_doubt = {"the notebook": reason} if by_machine else {}
    return Outcome(items, nbformat.writes(notebook), [], reason, in_doubt=in_doubt)


@lru_cache(maxsize=64)  # a class hands in the same notebook many times
def _preload(source: Path) -> tuple[str, ...]:
    """What workers should find imported: for a notebook without torch nothing, which saves half of the start."""
    return PRELOAD if b"torch" in source.read_bytes() else ()


_sandboxes: dict[tuple, Sandbox] = {}


def _forget_sandbox(settings: tuple) -> None:
    """End a sandbox that may be in disorder; the next notebook gets a new one."""
    if (sandbox := _sandboxes.pop(settings, None)) is not None:
        atexit.unregister(sandbox.close)
        sandbox.close()


def close_sandboxes() -> None:
    """End this process's sandboxes, which hold as much memory as torch does; the next notebook starts its own."""
    with _one_at_a_time:
        for settings in list(_sandboxes):
            _forget_sandbox(settings)


def warm_sandbox(limits: tuple[tuple[str, float], ...], unsafe: bool, preload: tuple[str, ...]) -> Sandbox:
    """This process's sandbox with these settings, started on first use, closed when the process ends.

    Raises:
        SandboxError: it cannot be started.
    """
    settings = (limits, unsafe, preload)
    if settings in _sandboxes:
        return _sandboxes[settings]
    each: dict[str, Any] = dict(limits)
    sandbox = Sandbox(Limits(**each), unsafe=unsafe, preload=preload).__enter__()
    from autograder.wire.protocol import torch  # only now, while the sandbox starts in the background

    if torch is not None:
        torch.set_num_threads(1)  # processes that grade side by side would fight for the cores
    sandbox.worker().kill()
    atexit.register(sandbox.close)
    _sandboxes[settings] = sandbox
    return sandbox
