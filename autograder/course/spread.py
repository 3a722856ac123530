"""Jobs side by side: in this process, on a cluster of this machine's, or on one that is running."""

import logging
import multiprocessing
from collections.abc import Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from multiprocessing import forkserver
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from autograder.course.curriculum import CourseError
from autograder.course.interrupts import Interrupts, interrupts_held, interrupts_ignored
from autograder.isolation.sandbox import SandboxError
from autograder.job import Job, Outcome, close_sandboxes, grade_job, ungraded

if TYPE_CHECKING:
    from distributed import Future

K = TypeVar("K", bound=Hashable)
# Dask's own pages, which ask nobody for a key, have no content.
_LOCAL = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


def grade_jobs(jobs: Mapping[K, Job], workers: int, scheduler: str | None) -> Iterator[tuple[K, Outcome]]:
    """Grade until all is done; Ctrl-C is answered between two results, and raises only when all is in order.

    Args:
        jobs: what to grade, by what the caller knows it by.
        workers: how many processes grade on this machine; 1 is this process itself.
        scheduler: the address of a Dask scheduler whose workers grade instead.

    Returns:
        An iterator over the outcomes, in no fixed order.

    Raises:
        CourseError: there are no workers.
        SandboxError: there is no sandbox.
    """
    if not jobs:
        return
    with interrupts_held() as interrupts:
        if scheduler is None and min(workers, len(jobs)) == 1:
            yield from _grade_here(jobs, interrupts)
        else:
            yield from _spread(jobs, workers, scheduler, interrupts)
    if interrupts.came:
        raise KeyboardInterrupt


def _grade_here(jobs: Mapping[K, Job], interrupts: Interrupts) -> Iterator[tuple[K, Outcome]]:
    for key, job in jobs.items():
        try:
            with interrupts.raised():
                outcome = grade_job(job)
        except KeyboardInterrupt:
            return
        yield key, outcome
        if interrupts.came:
            return


def _spread(
    jobs: Mapping[K, Job], workers: int, scheduler: str | None, interrupts: Interrupts
) -> Iterator[tuple[K, Outcome]]:
    close_sandboxes()  # others grade now
    # What waits for a result waits for an interrupt, too: `put` may be called in a signal handler.
    arrived: SimpleQueue[Future | None] = SimpleQueue()
    interrupts.wake = lambda: arrived.put(None)
    with _client(min(workers, len(jobs)), scheduler) as client:
        waiting = iter(jobs.items())
        pending: dict[Future, K] = {}

        def submit(most: int) -> None:
            for key, job in islice(waiting, most):
                pending[future := client.submit(grade_job, job, pure=False)] = key
                future.add_done_callback(arrived.put)

        # Two jobs for each thread keep every worker busy; more would only fill memory.
        submit(2 * sum(client.nthreads().values()))
        while pending and not interrupts.came:
            if (future := arrived.get()) is None:
                return
            key = pending.pop(future)
            submit(1)
            if isinstance(error := future.exception(), SandboxError):
                raise error
            if error:
                # Its type alone: students read this, and the rest names processes and their addresses.
                why = f"the grading process died each time: {type(error).__name__}"
                yield key, ungraded(jobs[key].source, why, by_machine=True)
            else:
                yield key, future.result()


def start_forkserver() -> None:
    """Start the process that workers are forked from, which imports torch once for all of them, meanwhile."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["distributed", "autograder.run", "autograder.job", "autograder.course.settled"])
    with interrupts_ignored():
        forkserver.ensure_running()


def count_workers(scheduler: str) -> int:
    """How many workers a Dask scheduler has.

    Raises:
        CourseError: there is no scheduler at this address, or it has no workers.
    """
    with _client(0, scheduler) as client:
        return len(client.nthreads())


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator:
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    with ExitStack() as stack:
        address = scheduler
        if scheduler is None:
            stack.enter_context(dask.config.set(_LOCAL))
            start_forkserver()
            options: dict[str, Any] = {"threads_per_worker": 1, "silence_logs": logging.CRITICAL}
            # No dashboard, and no word about its usual port where another program has that.
            options |= {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
            # Who can talk to a scheduler can have it run anything: each side has to show this run's own key, which no
            # other user of this machine has.
            try:
                options["security"] = Security.temporary()
            except ImportError:
                raise CourseError(
                    "several processes cannot talk in private without the package `cryptography`: "
                    "`pip install cryptography`, or grade with `--workers 1`"
                ) from None
            address = stack.enter_context(LocalCluster(n_workers=workers, **options))
        try:
            client = stack.enter_context(Client(address, timeout=30))
            client.wait_for_workers(1, timeout=60)
        except (OSError, TimeoutError, ValueError) as error:
            raise CourseError(f"no Dask workers at {scheduler}: {error}") from error
        yield client
