"""What the grader holds of a worker: the socket to it, the leash that ends it, and the time that it has spent."""

import contextlib
import json
import socket
import struct
import time
from dataclasses import dataclass

# The numbers of a process, its user and its group, which the system itself puts beside a message.
_CREDENTIALS = struct.Struct("3i")


@dataclass
class WorkerProcess:
    """A forked worker: the socket to it and the leash that kills it.

    Attributes:
        pid: what the grader's side calls the process; None where the system does not tell.
    """

    connection: socket.socket
    leash: socket.socket
    pid: int | None = None
    _seconds: float = 0.0

    def kill(self) -> None:
        """End the worker now, whatever it is doing."""
        self.seconds()
        self.connection.close()
        self.leash.close()

    def seconds(self) -> float | None:
        """The processor time that the worker has spent in all its threads, read from outside; None if unknown."""
        if self.pid is None:
            return None
        with contextlib.suppress(OSError):  # it is gone: what it had spent when it was last asked
            # The clock of a process: `man clock_getcpuclockid`.
            self._seconds = max(self._seconds, time.clock_gettime((~self.pid << 3) | 2))
        return self._seconds

    def autopsy(self) -> dict:
        """How the worker ended: {"code": exit status or minus the signal, "reason": what was exceeded, if anything}."""
        self.leash.settimeout(5)
        try:
            return json.loads(self.leash.recv(4096))
        except (OSError, ValueError):
            return {"code": None, "reason": None}


def ask_for_sender(leash: socket.socket) -> None:
    """Have the system tell, of what comes from now on, which process sent it."""
    if hasattr(socket, "SO_PASSCRED"):
        leash.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def sender(leash: socket.socket) -> int | None:
    """Receive the one byte by which a worker makes itself known; returns its process, as it is called on this side."""
    _, beside, _, _ = leash.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
    for level, kind, data in beside:
        if level == socket.SOL_SOCKET and kind == getattr(socket, "SCM_CREDENTIALS", None):
            return _CREDENTIALS.unpack(data)[0] or None
    return None
