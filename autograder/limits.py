"""What one submission may take: declared here and nowhere else; and how its time is counted.

Time is what the processor spent, so that a busy machine costs nobody a point. What sleeps spends none: for that the
clock is a backstop, several times longer, and longer still the more processes wait for a core.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

HEADER_BYTES = 4 << 20  # of a reply, for what is not tensors


def _limit(default: float, told: str) -> Any:
    return field(default=default, metadata={"told": told})


@dataclass(frozen=True)
class Limits:
    """What one submission may take; what each field is stands in its metadata, for nbgrader's `--help-all` too."""

    cell_seconds: float = _limit(20.0, "processor time of the student's code for a cell, or for one call by a check")
    calls_seconds: float = _limit(120.0, "processor time of the student's code for all the calls by a check together")
    aside_cell_seconds: float = _limit(5.0, "processor time for a student's cell that holds no answer")
    aside_seconds: float = _limit(20.0, "processor time for all these cells together: of what is left, definitions run")
    check_seconds: float = _limit(60.0, "processor time of a check itself, beside the student's code")
    submission_seconds: float = _limit(180.0, "processor time of the student's code for a submission")
    clock_factor: float = _limit(3.0, "how many times longer the clock may run, on a machine that is not busy")
    cpu_seconds: int = _limit(180, "processor time for one worker: the system itself ends it then")
    memory_mb: int = _limit(2048, "memory for a worker, beyond what Python and torch take")
    file_mb: int = _limit(16, "size of a file, and of all files together")
    open_files: int = _limit(64, "files open at once")
    threads: int = _limit(64, "threads at once; there are no further processes")
    reply_mb: int = _limit(64, "size of a reply: what a call returns")
    items: int = _limit(10_000, "items that a check can read from one iterator")
    output_kb: int = _limit(100, "printed text kept for each cell")
    notebook_output_kb: int = _limit(2_000, "printed text and errors kept for all cells together, checks apart")
    message_chars: int = _limit(4_000, "length of an error message")
    notebook_mb: int = _limit(20, "size of a notebook file")

    @property
    def tensor_bytes(self) -> int:
        """What the tensors of a message may take, in float64 at least: the rest is for what is not tensors."""
        return (self.reply_mb << 20) - HEADER_BYTES


class OutOfTime(TimeoutError):
    """A limit on time was met; the message says which.

    Attributes:
        by_clock: it was the backstop: the machine may be to blame.
    """

    def __init__(self, message: str, by_clock: bool) -> None:
        super().__init__(message)
        self.by_clock = by_clock


class Budget:
    """Time that something may still take.

    Args:
        seconds: of processor time.
        spent: how much processor time it has spent so far; None where that cannot be told, and the clock alone counts.
        clock_factor: see `Limits`.
    """

    def __init__(self, seconds: float, spent: Callable[[], float | None], clock_factor: float) -> None:
        self._seconds, self._spent, self._factor = seconds, spent, clock_factor
        self._started, self._before = time.monotonic(), spent() or 0.0

    def left(self) -> float:
        """For how many seconds to wait, at most, until this is asked again.

        Raises:
            OutOfTime: there is no time left.
        """
        spent = self._spent()
        used = 0.0 if spent is None else spent - self._before
        if used >= self._seconds:
            raise OutOfTime(f"more than {self._seconds:.3g} seconds of processor time", by_clock=False)
        waited, most = time.monotonic() - self._started, self._seconds * self._factor
        if waited >= most and waited >= (most := most * busyness()):
            raise OutOfTime(f"more than {most:.0f} seconds by the clock, {used:.1f} of them at work", by_clock=True)
        # Threads on all cores at once spend time the fastest.
        return max(0.02, min((self._seconds - used) / _cores(), most - waited, 1.0))

    def over(self) -> OutOfTime | None:
        """Which limit was met; None while there is time left."""
        try:
            self.left()
        except OutOfTime as over:
            return over
        return None


def this_threads_clock() -> Callable[[], float | None]:
    """A clock of the processor time that the calling thread spends, which other threads may read."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return lambda: None
    number = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(number)


def busyness() -> float:
    """How many processes want each of this machine's cores; 1 where there are enough for all."""
    return max(1.0, os.getloadavg()[0] / _cores())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
