"""What the engine protects from: the same code where nothing is between it and its check.

Each runs in a process forked for it, so that whatever happens there ends with it.
"""

import contextlib
import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence

import nbformat
from nbgrader.utils import determine_grade

SECONDS = 120


def happens(act: Callable[[], object], seconds: float = SECONDS, memory_mb: int | None = None) -> str:
    """What becomes of a process that does this.

    Args:
        act: what it does.
        seconds: when it is given up.
        memory_mb: what it may take beyond what it has already.

    Returns:
        "done", or "refused" for a failed assertion, the name of another exception, "hangs", or "dies".
    """
    readable, writable = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        faulthandler.disable()  # to die is what some are here for
        told = b"dies"
        try:
            if memory_mb is not None:
                with open("/proc/self/statm") as sizes:
                    used = int(sizes.read().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + (memory_mb << 20),) * 2)
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                act()
            told = b"done"
        except AssertionError:
            told = b"refused"
        except BaseException as error:
            traceback.print_exc()
            told = type(error).__name__.encode()
        finally:
            os.write(writable, told)
            os._exit(0)
    os.close(writable)
    end = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG)[0]) and time.monotonic() < end:
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # it, and whatever it has started
    if not ended:
        os.waitpid(child, 0)
    with open(readable, "rb", buffering=0) as pipe:
        return (pipe.read(100).decode() or "dies") if ended else "hangs"


def plainly(answer: str, check: str) -> Callable[[], None]:
    """An answer and its check in one namespace, for `happens`."""

    def act() -> None:
        namespace: dict = {}
        exec("import torch", namespace)
        exec(answer, namespace)
        exec(check, namespace)

    return act


def in_a_kernel(cells: Sequence[str]) -> str:
    """What becomes of a notebook whose cells run in one kernel, as nbgrader runs them.

    Returns:
        "done" if its last cell, a check, earns its point, and "refused" if not.
    """
    command = [sys.executable, __file__, json.dumps(cells)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout.split()[-1]


def _grade(cells: Sequence[str]) -> None:
    from ipykernel.inprocess.manager import InProcessKernelManager

    manager = InProcessKernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    for text in cells:
        client.execute(text)
        outputs = []
        while client.iopub_channel.msg_ready():
            message = client.get_iopub_msg(timeout=1)
            if message["msg_type"] in ("error", "stream", "execute_result", "display_data"):
                outputs.append(nbformat.v4.output_from_msg(message))
    about = {"nbgrader": {"grade": True, "solution": False, "points": 1, "grade_id": "check"}}
    cell = nbformat.v4.new_code_cell(cells[-1], metadata=about, outputs=outputs)
    sys.__stdout__.write("\ndone" if determine_grade(cell)[0] == 1 else "\nrefused")
    sys.__stdout__.flush()
    os._exit(0)


if __name__ == "__main__":
    _grade(json.loads(sys.argv[1]))
