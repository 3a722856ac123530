"""What a command costs before it does anything for anybody: processor seconds of short runs, children included.

    python benchmarks/start.py [RUNS]

Grading one notebook the first time (the gradebook is made, too), grading it anew, a run with nothing to do, and
`check 01` in a process that has just started. The least of so many runs, since a busy machine only ever adds.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from autograder.course import example_class
from autograder.course.curriculum import find_course


def cost(root: Path, *arguments: str) -> float:
    """Processor seconds of one command, in a copy of the course."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", "from autograder.cli import main; main()", *arguments]
    subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(runs: int) -> None:
    """Print the table."""
    course = find_course(Path(__file__).parent)
    chapter = course.find("01")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("solutions", "checks", "notebooks"):
            shutil.copytree(course.root / name, root / name)
        shutil.copy(course.root / "nbgrader_config.py", root)
        notebook = root / "classroom/submitted/ada" / chapter.folder / f"{chapter.module}.ipynb"
        notebook.parent.mkdir(parents=True)
        notebook.write_text(example_class.STUDENTS["all_right"](course, chapter), encoding="utf-8")
        first = cost(root, "grade", "01")
        print(f"{'grade, one notebook, new gradebook':40}{first:6.1f} s")
        for told, arguments in (
            ("grade, one notebook", ("grade", "01", "--force")),
            ("grade, nothing to do", ("grade", "01")),
            ("check 01", ("check", "01")),
            ("--help", ("--help",)),
        ):
            print(f"{told:40}{min(cost(root, *arguments) for _ in range(runs)):6.1f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
