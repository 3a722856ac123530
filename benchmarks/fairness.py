"""Does a busy machine cost anybody a point, and does what never ends still end?

`python benchmarks/fairness.py --loops 16 --every 10` keeps 16 endless loops running beside the grader, grades every
tenth right answer on record as a submission is graded, and names those that lose a point: there should be none. Then it
times an endless loop, a sleeper and threads that are all busy against the limits that end them. Exit status 1 when a
right answer lost a point, or something took more than twice its limit.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import nbformat

from autograder.course import proof
from autograder.course.curriculum import Course, find_course, reference_modules
from autograder.isolation.sandbox import Sandbox
from autograder.limits import Limits, busyness
from autograder.run import grade_notebook

SHORT = 4.0
ENDLESS = {
    "an endless loop": "while True:\n    pass",
    "a sleeper": "import time\ntime.sleep(10**6)",
    "busy threads": "import threading\ndef spin():\n    while True: sum(range(10**6))\n"
    "for _ in range(8): threading.Thread(target=spin).start()\nspin()",
}


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that want a core each, for as long as the context lasts."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def lost_points(course: Course, every: int) -> tuple[int, list[str]]:
    """Grade every so many right answers on record; returns how many, and what was said of those that lost a point."""
    graded, lost, slowest = 0, [], (0.0, "")
    with Sandbox(Limits()) as sandbox:
        for chapter in course.chapters:
            notebook = proof.code_of(nbformat.read(course.solution(chapter), as_version=4))
            modules = reference_modules(course, chapter)
            right = [answer for answer in proof.answers_of(chapter) if answer.right]
            with contextlib.chdir(course.solution(chapter).parent):
                for answer in right[::every]:
                    started = time.monotonic()
                    verdict = proof.judge_in_grader(sandbox, notebook, answer, modules)
                    slowest = max(slowest, (time.monotonic() - started, f"{answer.exercise}, {answer.title!r}"))
                    graded += 1
                    if verdict.message:
                        lost.append(f"{chapter.folder}, {answer.exercise}, {answer.title!r}: {verdict.message}")
    print(f"the slowest took {slowest[0]:.0f} s by the clock: {slowest[1]}")
    return graded, lost


def time_endless(code: str) -> tuple[float, float, float, str]:
    """Grade what never ends: seconds of the clock, the limit that should end it, and what was said."""
    flags = {"grade": False, "solution": True, "locked": False, "task": False, "schema_version": 3}
    cell = nbformat.v4.new_code_cell(f"def f(): pass\n{code}", metadata={"nbgrader": flags | {"grade_id": "f"}})
    check = nbformat.v4.new_code_cell("f()", metadata={"nbgrader": flags | {"grade_id": "f_check", "points": 1}})
    check.metadata.nbgrader |= {"grade": True, "solution": False, "locked": True}
    notebook = nbformat.v4.new_notebook(cells=[cell, check])
    limits = Limits(cell_seconds=SHORT)
    with Sandbox(limits, preload=()) as sandbox:
        sandbox.worker().kill()
        started = time.monotonic()
        graded = grade_notebook(sandbox, notebook, notebook, run_cells="all")
        waited = time.monotonic() - started
    return waited, SHORT * limits.clock_factor * busyness(), graded.items[0].points, graded.items[0].message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loops", type=int, default=16, help="how many endless loops run beside the grader")
    parser.add_argument("--every", type=int, default=10, help="grade every so many right answers; 1 for all")
    options = parser.parse_args()
    with busy_loops(options.loops):
        graded, lost = lost_points(find_course(), options.every)
        print(
            f"{options.loops} loops, load {os.getloadavg()[0]:.1f}: {len(lost)} of {graded} right answers lost points"
        )
        print("\n".join(lost))
        late = 0
        for name, code in ENDLESS.items():
            waited, limit, points, told = time_endless(code)
            print(f"{name}: {waited:.1f} s by the clock, at most {limit:.0f} s, {points:g} points: {told}")
            late += waited > 2 * limit
    return 1 if lost or late else 0


if __name__ == "__main__":
    sys.exit(main())
