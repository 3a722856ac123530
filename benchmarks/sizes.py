"""What a small notebook may cost whoever grades it: the memory of the grader, and what it leaves on the disk.

Each notebook here is small and makes as much as it can of something: printed text, messages, statements, prose. It is
graded as a class is, by `autograder grade`, and gets its feedback page. `python benchmarks/sizes.py` prints a row for
each and fails if one costs more than it may; `--unlimited` lifts the cap of a whole notebook's output, as it was before
there was one.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

REPOSITORY = Path(__file__).resolve().parents[1]
CHAPTER, MODULE = "01_weighted_averages", "weighted_averages"
MOST_DISK_MB, MOST_MEMORY_MB = 64, 500
# Runs the command line and tells the most memory that this process had: not that of the sandbox's.
COMMAND = """
import sys
from autograder import cli
sys.argv = ["autograder", *sys.argv[1:]]
try:
    cli.main()
except SystemExit:
    pass
[peak] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print("PEAK", peak.split()[1])
"""


def printed(cells: int) -> list[NotebookNode]:
    """Cells that each print as much as one may."""
    return [new_code_cell("print('x' * 102_000)") for _ in range(cells)]


def raised(cells: int) -> list[NotebookNode]:
    """Cells that each raise the longest message, from as many frames as are told."""
    deep = "def f(n):\n    if n: f(n - 1)\n    raise ValueError('x' * 10_000)\nf(40)"
    return [new_code_cell(deep) for _ in range(cells)]


def wide(cells: int) -> list[NotebookNode]:
    """Code of as many statements as there is room for."""
    return [new_code_cell("a=1;" * (400_000 // 4 // cells)) for _ in range(cells)]


def nested(cells: int) -> list[NotebookNode]:
    """Formulas and lists in prose, nested as deeply as there is room for."""
    return [new_markdown_cell("> " * 40 + "$" + "{" * 300 + "x" + "}" * 300 + "$\n" * 3) for _ in range(cells)]


def signs(cells: int) -> list[NotebookNode]:
    """Cells that print what takes the most room when it is written down."""
    return [new_code_cell(r"print('\x00\x1b\ud83d' * 34_000, '\U0001F600' * 25_000)") for _ in range(cells)]


HOSTILE: dict[str, Callable[[], list[NotebookNode]]] = {
    "an honest notebook": list,
    "1,900 cells that print 100 KB": lambda: printed(1_900),
    "1,900 cells that print signs": lambda: signs(1_900),
    "1,900 cells that raise": lambda: raised(1_900),
    "100,000 statements": lambda: wide(50),
    "prose nested deeply": lambda: nested(400),
}


def cost(cells: list[NotebookNode], unlimited: bool) -> tuple[float, float, float, float]:
    """What one submission of chapter 01 with further cells costs: KB handed in, MB on disk, MB of memory, seconds."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "solutions").mkdir()
        shutil.copytree(REPOSITORY / "solutions" / CHAPTER, root / "solutions" / CHAPTER)
        shutil.copy(REPOSITORY / "solutions/curriculum.toml", root / "solutions")
        shutil.copy(REPOSITORY / "nbgrader_config.py", root)
        if unlimited:
            with (root / "nbgrader_config.py").open("a") as config:
                config.write("\nc.GradeSubmission.notebook_output_kb = 10**9\n")
        notebook = nbformat.read(REPOSITORY / "notebooks" / CHAPTER / f"{MODULE}.ipynb", as_version=4)
        # What comes after the last check is not run.
        notebook.cells[2:2] = cells[: 2_000 - len(notebook.cells)]
        handed_in = root / "classroom/submitted/eve" / CHAPTER / f"{MODULE}.ipynb"
        handed_in.parent.mkdir(parents=True)
        handed_in.write_text(json.dumps(notebook))
        peak, started = 0.0, time.monotonic()
        for command in (["grade", "01", "--workers", "1"], ["feedback", "01"]):
            done = subprocess.run(
                [sys.executable, "-c", COMMAND, *command],
                cwd=root,
                env=os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
            )
            assert "PEAK" in done.stdout, done.stderr
            peak = max(peak, int(done.stdout.rpartition("PEAK")[2]) / 1024)
        assert (root / "classroom/feedback/eve").is_dir(), "it was graded"
        places = [root / "classroom/autograded", root / "classroom/feedback"]
        disk = sum(path.stat().st_size for place in places for path in place.rglob("*") if path.is_file())
        return handed_in.stat().st_size / 1e3, disk / 1e6, peak, time.monotonic() - started


def main() -> None:
    unlimited = "--unlimited" in sys.argv
    print(f"{'':34}{'handed in KB':>14}{'disk MB':>10}{'memory MB':>12}{'seconds':>10}")
    wrong = []
    for name, make in HOSTILE.items():
        handed_in, disk, memory, seconds = cost(make(), unlimited)
        print(f"{name:34}{handed_in:14.0f}{disk:10.1f}{memory:12.0f}{seconds:10.1f}", flush=True)
        if disk > MOST_DISK_MB or memory > MOST_MEMORY_MB:
            wrong.append(name)
    if wrong:
        sys.exit(f"more than {MOST_DISK_MB} MB on disk or {MOST_MEMORY_MB} MB of memory: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
