"""Set up `.venv`, in which everything in the Makefile runs; where it is there and up to date, this returns at once.

A new environment is built in a folder of its own and then swapped in: one that works stays until the next one does, and
nothing half-done is left behind. What is installed is what the lock says (`lock.py`), checked by its hashes.
`.venv/ready` records what was set up.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENV, NEW, OLD, LOG = (ROOT / f".venv{suffix}" for suffix in ("", ".new", ".old", ".log"))
LOCKS = {"course": ("torch.lock", "torch-cpu.lock", "course.lock"), "book": ("book.lock",), "test": ("test.lock",)}
# What is installed from this repository itself.
PROJECTS = (ROOT, ROOT / "autograder")
TITLES = {"course": "the course", "book": "what the book needs", "test": "what the tests need"}
FREE_GB = {"cpu": 3, "cuda": 10}  # on the disk, downloads included
CPU_ONLY = sys.platform != "linux"  # elsewhere torch has no build with CUDA, or none that pip would take
TELLTALES = {
    r"No space left on device|Errno 28": "the disk is full",
    r"DO NOT MATCH THE HASHES": "a file that was downloaded is not the one that environment/*.lock names",
    r"ConnectionError|NameResolutionError|name resolution|Connection refused|timed out|Network is unreachable"
    r"|ProxyError|SSLError|ConnectionResetError|from versions: none": "pip cannot reach its package index",
}


class SetUpError(Exception):
    """The environment cannot be set up; the message says why and what to do, in one line."""


def main() -> None:
    """Set up what is asked for, unless it is there."""
    parser = argparse.ArgumentParser(description="Set up .venv.")
    parser.add_argument("parts", nargs="*", help="what is needed beside the course: book, test")
    parser.add_argument("--torch", choices=("cpu", "cuda"), help="which build of torch  [default: as before, else cpu]")
    parser.add_argument("--this-python", action="store_true", help="set up anew if .venv has another Python than this")
    parser.add_argument("--target", default="lab", help="what to tell the reader to make")
    options = parser.parse_args()
    parts = ["course", *options.parts]
    sys.stdout.reconfigure(line_buffering=True)
    if is_ready(read_state(), parts, options):
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with alone() as log:
            set_up(parts, options, log)
    except SetUpError as error:
        sys.exit(f"{error}\nNothing was changed. When that is mended: make {options.target}")
    except KeyboardInterrupt:
        sys.exit(f"\nInterrupted: nothing was changed. To start again: make {options.target}")


def set_up(parts: list[str], options: argparse.Namespace, log: TextIO) -> None:
    """Bring `.venv` up to date.

    Args:
        parts: what is needed.
        options: the command line's.
        log: takes what pip says.

    Raises:
        SetUpError: it cannot be done; `.venv` is as it was.
    """
    if OLD.exists() and not VENV.exists():  # a swap was cut short
        OLD.rename(VENV)
    state = read_state()
    if is_ready(state, parts, options):  # another set-up has just done it
        return
    started = time.monotonic()
    if state is None or not is_usable(state, options):
        build(parts, options.torch or (state or {}).get("torch", "cpu"), log)
    else:
        missing = [part for part in parts if part not in state["parts"]]
        for part in missing:
            install(VENV, part, log)
        if missing:
            compile_all(VENV, log)
        install_projects(VENV, log)
        write_state(VENV, [*state["parts"], *missing], state["python"], state["torch"])
    print(f"Ready after {clock(time.monotonic() - started)}")


def read_state() -> dict | None:
    """What `.venv` was set up with; None when there is none that works."""
    if not os.access(VENV / "bin/python", os.X_OK):  # not there, or the Python that it was made of is gone
        return None
    try:
        state = json.loads((VENV / "ready").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and {"python", "torch", "project", "parts"} <= state.keys() else None


def write_state(venv: Path, parts: list[str], python: str, torch: str) -> None:
    """Record what an environment was set up with."""
    state = {"python": python, "torch": torch, "project": project_digest(), "parts": {p: digest(p) for p in parts}}
    temporary = venv / "ready.part"
    temporary.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, venv / "ready")


def is_usable(state: dict, options: argparse.Namespace) -> bool:
    """Whether what is installed is what the lock says, with the Python and the torch that are asked for."""
    if any(told != digest(part) for part, told in state["parts"].items()):
        return False
    if options.this_python and state["python"] != platform.python_version():
        return False
    return options.torch in (None, state["torch"])


def is_ready(state: dict | None, parts: list[str], options: argparse.Namespace) -> bool:
    """Whether there is nothing to do."""
    if state is None or not is_usable(state, options):
        return False
    return state["project"] == project_digest() and all(part in state["parts"] for part in parts)


def digest(part: str) -> str:
    """A part of the lock as one short text; empty for a part that there is not."""
    files = [(HERE / file).read_bytes() for file in LOCKS.get(part, ())]
    return hashlib.sha256(b"".join(files)).hexdigest() if files else ""


def project_digest() -> str:
    """What the installation of the projects depends on, as one short text."""
    told = []
    for project in PROJECTS:
        settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
        told.append([settings["project"], settings["build-system"], settings["tool"]["setuptools"]])
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@contextmanager
def alone() -> Iterator[TextIO]:
    """Hold the log, so that a second set-up waits for this one; it is kept only if something goes wrong.

    The first to end takes the file away; the second still holds it, and finds nothing to take away.
    """
    with LOG.open("a+", encoding="utf-8") as log:
        with suppress(OSError):  # some network drives cannot lock
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("Another set-up is at work in this folder: waiting for it")
                fcntl.flock(log, fcntl.LOCK_EX)
        log.truncate(0)
        try:
            yield log
        except SetUpError:
            if log.tell():
                raise
            LOG.unlink(missing_ok=True)
            raise
        except KeyboardInterrupt:
            LOG.unlink(missing_ok=True)
            raise
        LOG.unlink(missing_ok=True)


def build(parts: list[str], torch: str, log: TextIO) -> None:
    """Build a new environment and swap it in.

    Args:
        parts: what is needed.
        torch: "cpu" or "cuda".
        log: takes what pip says.

    Raises:
        SetUpError: it cannot be done; `.venv` is as it was.
    """
    refuse_what_cannot_work(torch)
    size = "6 GB" if torch == "cuda" and not CPU_ONLY else "1.9 GB"
    print(f"Setting up .venv with Python {platform.python_version()}, once: some minutes and about {size}")
    try:
        remove(NEW)
        run([sys.executable, "-m", "venv", "--prompt", "attention", str(NEW)], "the virtual environment", log)
        for part in parts:
            if part == "course":
                install_torch(torch, log)
            install(NEW, part, log)
        install_projects(NEW, log)
        compile_all(NEW, log)
        write_state(NEW, parts, platform.python_version(), torch)
        move_paths()
        remove(OLD)
        if VENV.exists() or VENV.is_symlink():
            VENV.rename(OLD)
        NEW.rename(VENV)
        remove(OLD)
    finally:
        remove(NEW)


def refuse_what_cannot_work(torch: str) -> None:
    """Say what this machine lacks, before anything is downloaded.

    Raises:
        SetUpError: it lacks something.
    """
    machine = platform.machine()
    if sys.platform == "darwin" and machine == "x86_64":
        raise SetUpError(
            "PyTorch has no build for Macs with an Intel processor, or for a Python that runs under Rosetta: "
            "use a Python for Apple silicon, or another machine"
        )
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SetUpError(f"{sys.executable} is not the usual Python: name another, such as: make PYTHON=python3.12 lab")
    if machine not in ("x86_64", "aarch64", "arm64"):
        raise SetUpError(f"PyTorch has no build for this machine's processor, {machine}: use another machine")
    if importlib.util.find_spec("ensurepip") is None:
        raise SetUpError(
            f"{sys.executable} cannot make virtual environments here: sudo apt-get install python3-venv, "
            "or without sudo the way by conda in docs/student.md"
        )
    require_space(FREE_GB["cpu" if CPU_ONLY else torch])


def require_space(gigabytes: int) -> None:
    """Raise SetUpError if the disk has less than that left."""
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < gigabytes:
        raise SetUpError(f"{ROOT} is on a disk with {free:.1f} GB left, and {gigabytes} GB are needed: make room")


def install_torch(build: str, log: TextIO) -> None:
    """Install torch: without CUDA, for which PyTorch has an index of its own, unless CUDA is asked for."""
    if build == "cpu" and not CPU_ONLY:
        try:
            # Two attempts of a few seconds: an index that is not reached is no reason to wait for long.
            patience = ["--retries", "1", "--timeout", "10"]
            pip(NEW, ["--requirement", str(HERE / "torch-cpu.lock"), *patience], "torch, its build without CUDA", log)
            return
        except SetUpError:
            require_space(FREE_GB["cuda"])
            print("  download.pytorch.org cannot be reached: torch comes with CUDA instead, 4 GB more")
    pip(NEW, ["--requirement", str(HERE / "torch.lock")], "torch", log)


def install(venv: Path, part: str, log: TextIO) -> None:
    """Install a part of the lock into an environment."""
    pip(venv, ["--requirement", str(HERE / f"{part}.lock")], TITLES[part], log)


def install_projects(venv: Path, log: TextIO) -> None:
    """Install what this repository itself holds, as it stands; all that it needs is there already."""
    editable = [option for project in PROJECTS for option in ("--editable", str(project))]
    command = [str(venv / "bin/python"), "-m", "pip", "install", "--no-deps", "--no-build-isolation", *editable]
    run(command, "the course's own package", log)


def compile_all(venv: Path, log: TextIO) -> None:
    """Compile what was installed, on all cores: pip takes one, and a third of the time that setting up takes."""
    program = "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2, workers=0)"  # some is no Python 3
    run([str(venv / "bin/python"), "-c", program, str(venv / "lib")], "all of it compiled", log)


def pip(venv: Path, options: list[str], title: str, log: TextIO) -> None:
    """Install from the lock: what it names and nothing else, checked by its hashes, ready-made, not yet compiled."""
    command = [str(venv / "bin/python"), "-m", "pip", "install", "--no-compile", "--no-deps", "--require-hashes"]
    run([*command, "--only-binary", ":all:", *options], title, log)


def run(command: list[str], title: str, log: TextIO) -> None:
    """Run a command and show how far it is.

    Args:
        command: what to run.
        title: what it does.
        log: takes its output.

    Raises:
        SetUpError: it failed.
    """
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX")
    }
    environment |= {"PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    begin, started = log.tell(), time.monotonic()
    # A session of its own, so that whatever it starts can be ended with it.
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    show_next = 0.0
    try:
        while process.poll() is None:
            seconds = time.monotonic() - started
            if sys.stdout.isatty():
                print(f"\r\x1b[K  {title}{progress(begin)} {clock(seconds)}", end="", flush=True)
            elif seconds >= show_next:
                print(f"  {title}{progress(begin)} {clock(seconds)}", flush=True)
                show_next += 20
            time.sleep(0.2)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if sys.stdout.isatty():
            print("\r\x1b[K", end="")
    told = read_from(begin)
    if process.returncode:
        raise SetUpError(f"{title}: {reason(told)}; all that was said is in {LOG.name}")
    log.seek(0, os.SEEK_END)
    print(f"  {title}: {clock(time.monotonic() - started)}")


def read_from(begin: int) -> str:
    """What the log holds from there on."""
    with LOG.open("rb") as log:
        log.seek(begin)
        return log.read().decode(errors="replace")


def progress(begin: int) -> str:
    """How far pip is, from what it has said so far."""
    told = read_from(begin)
    if "Installing collected packages" in told:
        return ": installing"
    fetched = re.findall(r"^Collecting ([\w.-]+)", told, re.M)
    return f": {len(fetched)} fetched, {fetched[-1]}" if fetched else ""


def reason(told: str) -> str:
    """Why a command failed, in one line, from what it said."""
    for telltale, meaning in TELLTALES.items():
        if re.search(telltale, told):
            return meaning
    errors = [line.removeprefix("ERROR: ") for line in told.splitlines() if line.startswith("ERROR: ")]
    lines = errors or told.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it failed and said nothing")


def move_paths() -> None:
    """Let the new environment's scripts name the folder that it is going to be in."""
    for file in [*(NEW / "bin").iterdir(), NEW / "pyvenv.cfg"]:
        if file.is_symlink() or not file.is_file():
            continue
        data = file.read_bytes()
        if str(NEW).encode() in data and b"\0" not in data:
            file.write_bytes(data.replace(str(NEW).encode(), str(VENV).encode()))


def remove(folder: Path) -> None:
    """Remove a folder, if it is there; of a link, the link."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds: 2:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


if __name__ == "__main__":
    main()
