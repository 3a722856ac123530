"""How fast a class is graded: plain `nbgrader autograde` against `autograder grade`, on the same generated submissions.

    python benchmarks/throughput.py [N ...] [--plain-up-to N] [--workers N]

Half of each N are of chapter 01, half of chapter 02: right, wrong and half-done notebooks in turn. Each figure is the
wall time of the whole command, start-up included. Plain nbgrader also executes the chapters' own demonstrations, which
is part of what it costs; the engine runs only what checks need. On a busy machine compare processor seconds.
"""

import argparse
import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from autograder.course import example_class
from autograder.course.curriculum import Course, find_course

PR_SET_CHILD_SUBREAPER = 36
KINDS = ("all_right", "all_wrong", "half_done")
PLAIN = """
c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.submitted_directory = "classroom/submitted"
c.CourseDirectory.autograded_directory = "classroom/autograded"
c.CourseDirectory.course_id = "attention"
# On a busy machine a kernel may take longer to start and to answer than nbgrader waits; it would give up.
c.Execute.startup_timeout = c.Execute.timeout = c.Execute.iopub_timeout = 600
"""


def set_up(course: Course, root: Path, number: int) -> None:
    """A copy of the course with so many submissions."""
    for name in ("solutions", "nbgrader_config.py"):
        source = course.root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, root / name)
    chapters = [course.find("01"), course.find("02")]
    for chapter in chapters:
        texts = [example_class.STUDENTS[kind](course, chapter) for kind in KINDS]
        for student in range(number // 2):
            path = root / f"classroom/submitted/s{student:04}/{chapter.folder}/{chapter.module}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(texts[student % len(texts)], encoding="utf-8")


def measure(commands: list[list[str]], root: Path) -> tuple[float, float, float]:
    """Run commands one after the other; returns their wall time and processor time in seconds, and their peak memory.

    Memory, in MB, is the proportional set size of all their processes together: what forks share counts once.
    """
    peak, seconds, before = 0.0, 0.0, resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in commands:
        started = time.perf_counter()
        running = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ended = threading.Event()
        sizes = []
        watcher = threading.Thread(target=_watch, args=(running.pid, ended, sizes))
        watcher.start()
        status = running.wait()
        seconds += time.perf_counter() - started
        ended.set()
        watcher.join()
        peak = max(peak, *sizes)
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {status}")
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()  # the orphans that a command left
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def _watch(pid: int, ended: threading.Event, sizes: list[float]) -> None:
    while not ended.wait(0.5):
        total = 0
        try:
            parent = psutil.Process(pid)
            for process in [parent, *parent.children(recursive=True)]:
                rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        except (psutil.Error, OSError, StopIteration):
            continue
        sizes.append(total / 1024)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", metavar="N", type=int, nargs="*", default=[10, 40, 160])
    parser.add_argument(
        "--plain-up-to", type=int, default=40, help="plain nbgrader takes its time: the largest N for it"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    course = find_course()
    names = [course.find("01").folder, course.find("02").folder]
    nbgrader = [sys.executable, "-m", "nbgrader"]
    engine = [sys.executable, "-c", "from autograder.cli import main; main()", "grade", *names]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # Orphans become this process's children, so that their processor time is counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    print(f"{os.cpu_count()} cores, {arguments.workers} workers")
    print("submissions a minute / wall seconds / processor seconds / peak MB")
    print(f"{'N':>4}  {'plain nbgrader autograde':>35}  {'autograder grade':>35}  ratio (of processor time)")
    for number in arguments.numbers:
        plain = None
        if number <= arguments.plain_up_to:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                set_up(course, root, number)
                (root / "nbgrader_config.py").write_text(PLAIN)
                for name in names:
                    made = [*nbgrader, "generate_assignment", name]
                    subprocess.run(made, cwd=root, check=True, capture_output=True)
                plain = measure([[*nbgrader, "autograde", name] for name in names], root)
        with tempfile.TemporaryDirectory() as folder:
            set_up(course, Path(folder), number)
            ours = measure([[*engine, "--workers", str(arguments.workers)]], Path(folder))
        ratio = f"{plain[0] / ours[0]:5.1f} ({plain[1] / ours[1]:.1f})" if plain else "    –"
        print(f"{number:>4}  {_row(number, plain):>35}  {_row(number, ours):>35}  {ratio}", flush=True)


def _row(number: int, measured: tuple[float, float, float] | None) -> str:
    if measured is None:
        return "not measured"
    seconds, processor, memory = measured
    return f"{60 * number / seconds:7.1f} / {seconds:6.1f} / {processor:6.1f} / {memory:6.0f}"


if __name__ == "__main__":
    main()
