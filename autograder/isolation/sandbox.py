"""Where student code runs: bubblewrap, and in it a process that forks one worker for each submission.

The sandbox holds the system's libraries, Python and its packages read-only, and of this project only the files that
the untrusted side is made of (`ENGINE`). It has no network, no home, no environment variables and a hostname of its
own. Each worker gets further namespaces, a private `/tmp` and limits (`zygote.py`).
"""

import json
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from autograder.limits import Limits
from autograder.wire.process import WorkerProcess, ask_for_sender, sender

PACKAGE = Path(__file__).resolve().parents[1]
START = "isolation/zygote.py"
ENGINE = (START, "isolation/worker.py", "wire/messages.py", "wire/protocol.py")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")
START_SECONDS = 120
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x8000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
PRELOAD = ("numpy",)
# What torch imports at its first optimizer, or at its first comparison on the "meta" device: more than a second, which
# each worker of a class would spend.
PRELOAD_FOR_MANY = ("torch._dynamo",)


class SandboxError(Exception):
    """The sandbox cannot be had; the message says what to do."""


def refusal(missing: str) -> str:
    """What to tell an instructor who has no sandbox; `missing` says why."""
    return (
        f"there is no sandbox, and without it student code could read and change this machine's files: {missing}; "
        "or accept that risk with `--unsafe-no-sandbox`"
    )


@cache
def why_not_sandboxed() -> str:
    """Why no sandbox can be had on this machine, with the remedy; empty where bubblewrap starts.

    What is tried is what each worker needs: bubblewrap, and in it a process that makes namespaces of its own.
    """
    if sys.platform != "linux":
        return "bubblewrap is for Linux only: grade on a Linux machine, or in a Linux virtual machine"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed: install it (`sudo apt-get install bubblewrap`)"
    flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
    program = f"import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); sys.exit(c.unshare({flags}) and "
    program += "f'a process in it may make no namespaces (error {ctypes.get_errno()})')"
    command = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"]
    command += ["--proc", "/proc", "--", sys.executable, "-I", "-S", "-c", program]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap is installed, but does not start: {error}"
    if tried.returncode == 0:
        return ""
    told = (tried.stderr.strip().splitlines() or [f"it ended with status {tried.returncode}"])[-1]
    return f"bubblewrap is installed, but does not start: {told}; {_remedy()}"


def _remedy() -> str:
    settings = {
        "kernel/apparmor_restrict_unprivileged_userns": (
            "1",
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        "kernel/unprivileged_userns_clone": ("0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
        "user/max_user_namespaces": ("0", "sudo sysctl user.max_user_namespaces=10000"),
    }
    for name, (refusing, command) in settings.items():
        try:
            found = Path("/proc/sys", name).read_text().strip()
        except OSError:
            continue
        if found == refusing:
            return f"this system lets users make no namespaces ({name.replace('/', '.')} is {found}): run `{command}`"
    return (
        "something here lets users make no namespaces; in a container, start it with "
        "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined` or `--privileged`"
    )


class Sandbox:
    """A warm sandbox: `with Sandbox() as sandbox: grade_notebook(sandbox, ...)`.

    It starts in the background, and this module does not import torch: a process that makes a sandbox first and imports
    torch then does both at once. The first worker waits for it.

    Args:
        limits: what each submission may take.
        unsafe: do without bubblewrap where it is missing or does not start. Student code can then read files and use
            the network; limits on memory, time and file size still hold.
        preload: modules that workers find imported already.
        hide: folders that must not be seen even if they lie inside Python's own.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        unsafe: bool = False,
        preload: Sequence[str] = PRELOAD,
        hide: Sequence[Path] = (),
    ) -> None:
        self.limits = limits or Limits()
        missing = why_not_sandboxed()
        self.sandboxed = not missing
        if missing and not unsafe:
            raise SandboxError(refusal(missing))
        self._preload = list(preload)
        # If this package lies in a course's folder, rather than installed among others, the course is beside it.
        own = PACKAGE if PACKAGE.parent.name in PACKAGE_FOLDERS else PACKAGE.parent
        self._hide = [own, *(Path(p).resolve() for p in hide)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None
        self._started = False
        self._lock = threading.Lock()

    def __enter__(self) -> "Sandbox":
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the sandbox and everything in it."""
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.kill()
            self._process.wait()
            self._process = None

    def worker(self) -> WorkerProcess:
        """Fork a worker; the sandbox is started again if it has died.

        Raises:
            SandboxError: it cannot be started.
        """
        from autograder.wire.protocol import ProtocolError

        with self._lock:
            for last in (False, True):
                try:
                    if self._process is None or self._process.poll() is not None:
                        self._start()
                    self._await_start()
                    return self._fork()
                except (OSError, EOFError, ProtocolError) as error:
                    self.close()
                    if last:
                        told = self._last_words() or repr(error)
                        raise SandboxError(f"the sandbox does not start a worker: {told}") from error
        raise AssertionError("unreachable")

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip().split("\n")[-1]

    def _fork(self) -> WorkerProcess:
        from autograder.wire.protocol import receive, until

        assert self._control is not None, "the sandbox has started"
        connection, theirs = socket.socketpair()
        leash, their_leash = socket.socketpair()
        ask_for_sender(leash)
        with theirs, their_leash:
            self._control.settimeout(START_SECONDS)
            socket.send_fds(self._control, [b"w"], [theirs.fileno(), their_leash.fileno()])
        receive(connection, 4096, left=until(time.monotonic() + START_SECONDS))
        leash.settimeout(START_SECONDS)
        return WorkerProcess(connection, leash, sender(leash))

    def _start(self) -> None:
        self.close()
        self._control, theirs = socket.socketpair()
        limits = self.limits
        settings = {
            "sandboxed": self.sandboxed,
            "preload": self._preload,
            "preload_for_many": PRELOAD_FOR_MANY if self._preload else (),
            "cpu_seconds": limits.cpu_seconds,
            "memory_mb": limits.memory_mb,
            "file_mb": limits.file_mb,
            "open_files": limits.open_files,
            "threads": limits.threads,
            "items": limits.items,
            "tensor_bytes": limits.tensor_bytes,
            "output_bytes": limits.output_kb << 10,
        }
        arguments = [str(theirs.fileno()), json.dumps(settings)]
        with theirs:
            command = self._sandboxed_command() if self.sandboxed else [sys.executable, "-I", str(PACKAGE / START)]
            self._process = subprocess.Popen(
                [*command, *arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
            )
        self._started = False

    def _await_start(self) -> None:
        if self._started:
            return
        assert self._control is not None and self._process is not None, "the sandbox has been started"
        from autograder.wire.protocol import receive, until, versions

        try:
            hello, _ = receive(self._control, 4096, left=until(time.monotonic() + START_SECONDS))
        except (OSError, EOFError) as error:
            self._process.kill()
            self._process.wait()
            self.close()
            raise SandboxError(f"the sandbox does not start: {self._last_words() or repr(error)}") from error
        ours = versions()
        if hello != ours:
            self.close()
            raise SandboxError(f"the sandbox runs {hello}, the grader {ours}: both must be the same installation")
        self._started = True

    def _sandboxed_command(self) -> list[str]:
        base = Path(sys.base_prefix).resolve()
        # typeshed leaves private names out
        outside = sys._base_executable if sys.prefix != sys.base_prefix else sys.executable  # type: ignore[attr-defined]
        executable = Path(outside).resolve()
        system = base == Path("/usr")
        mounts = [(base, Path("/usr" if system else "/python"))]
        packages = [Path(p).resolve() for p in sys.path if Path(p).name in PACKAGE_FOLDERS]
        packages = [p for p in dict.fromkeys(packages) if p.is_dir()]
        mounts += [(folder, Path(f"/env/{i}")) for i, folder in enumerate(packages)]
        python = executable if system else Path("/python") / executable.relative_to(base)
        libraries = base / "lib" if sysconfig.get_config_var("Py_ENABLE_SHARED") and not system else None

        command = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
        command += ["--hostname", "sandbox", "--clearenv"]
        environment = {
            "PATH": "/usr/bin:/usr/sbin",
            "HOME": "/tmp",
            "USER": "student",
            "LANG": "C.UTF-8",
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": "/tmp",
            "PYTHONPATH": ":".join(str(inside) for _, inside in mounts[1:]),
            "OMP_NUM_THREADS": "1",
        }
        if libraries is not None:
            # Python looks for its own library where it was built, and would take the system's if that has one.
            environment["LD_LIBRARY_PATH"] = "/python/lib"
        for name, value in environment.items():
            command += ["--setenv", name, value]
        command += ["--ro-bind", "/usr", "/usr"]
        for link in ("lib", "lib32", "lib64", "bin", "sbin"):
            if (folder := Path("/") / link).is_symlink():
                command += ["--symlink", f"usr/{link}", str(folder)]
            elif folder.is_dir():
                command += ["--ro-bind", str(folder), str(folder)]
        command += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
        mounts += [] if system else [(Path("/usr"), Path("/usr"))]
        for outside, inside in mounts:
            if inside != Path("/usr"):
                command += ["--ro-bind", str(outside), str(inside)]
        for outside, inside in mounts:
            for hidden in self._hide:
                if hidden.is_relative_to(outside) and hidden != outside:
                    command += ["--tmpfs", str(inside / hidden.relative_to(outside))]
        for file in ENGINE:
            command += ["--ro-bind", str(PACKAGE / file), f"/engine/{file}"]
        command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--remount-ro", "/dev", "--remount-ro", "/"]
        return [*command, "--chdir", "/tmp", "--", str(python), "-s", "-P", f"/engine/{START}"]
