"""A class that hands in within one minute: how long a receipt takes, and how long until all have a verdict.

    python benchmarks/service.py [--students N] [--seconds S] [--clients N] [--chapter NN]

A real `autograder serve` on loopback, with a course and a class of its own in a temporary folder; each student's pack
is sent once, at a moment drawn evenly from the S seconds, by N threads. Memory is the proportional set size of the
server, and of the process that grades with all that it starts; their peaks are of different moments. Meanwhile an
instructor's page is loaded every two seconds. With --seconds 600 it is ten minutes of steady hand-ins: memory in the
second and in the last quarter tells whether it grows.
"""

import argparse
import io
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import requests

from autograder.course import example_class
from autograder.course.curriculum import Chapter, Course, find_course
from autograder.service import sending

AUTOGRADER = [sys.executable, "-c", "from autograder.cli import main; main()"]
KINDS = ("all_right", "all_wrong", "half_done")
LONGEST = 1800  # seconds until all have to be graded


def set_up(course: Course, root: Path, students: int) -> dict[str, str]:
    """A copy of the course with an enrolled class; returns each student's token."""
    for name in ("solutions", "checks", "nbgrader_config.py"):
        source = course.root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, root / name)
    (root / "students.csv").write_text("id\n" + "".join(f"s{number:04}\n" for number in range(students)))
    for command in (["students", "add", "students.csv"], ["tokens", "tokens.csv"]):
        subprocess.run([*AUTOGRADER, *command], cwd=root, check=True, stdout=subprocess.DEVNULL)
    command = ["tokens", "teacher.csv", "--instructor", "ines"]
    subprocess.run([*AUTOGRADER, *command], cwd=root, check=True, stdout=subprocess.DEVNULL)
    rows = [row.split(",") for row in (root / "tokens.csv").read_text().splitlines()[1:]]
    return {student: token for student, _, token in rows}


def pack(course: Course, chapter: Chapter, kind: str, student: str) -> bytes:
    """What `autograder hand-in` would send."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        text = example_class.STUDENTS[kind](course, chapter)
        archive.writestr(f"{student}/{chapter.folder}/{chapter.module}.ipynb", text)
    return content.getvalue()


def watch(pid: int, done: threading.Event, sizes: dict[str, list[float]]) -> None:
    """Keep the memory in MB, of the server and of what it started, twice a second."""
    while not done.wait(0.5):
        for name, processes in (("server", [pid]), ("grading", [p.pid for p in _below(pid)])):
            sizes[name].append(sum(map(_size, processes)))


def look(address: str, token: str, done: threading.Event, waits: list[float]) -> None:
    """Load the instructor's page again and again; how long each took, in seconds."""
    browser = requests.Session()
    browser.post(f"{address}/sign-in", {"token": token}, headers={"Sec-Fetch-Site": "same-origin"})
    while not done.wait(2):
        begin = time.monotonic()
        page = browser.get(f"{address}/")
        waits.append(time.monotonic() - begin)
        assert "The class now" in page.text, page.text


def _quarter(sizes: list[float], number: int) -> float:
    """The median of one quarter of the measurements."""
    length = len(sizes) // 4
    return statistics.median(sizes[(number - 1) * length : number * length])


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _size(pid: int) -> float:
    try:
        return psutil.Process(pid).memory_full_info().pss / 2**20
    except psutil.Error:  # it has ended meanwhile
        return 0.0


def main() -> None:
    """Measure, and print a line for each figure; fails if a hand-in has no receipt or no verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--chapter", default="01")
    options = parser.parse_args()
    course = find_course(Path(__file__).parent)
    chapter = course.find(options.chapter)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        tokens = set_up(course, root, options.students)
        texts = {kind: pack(course, chapter, kind, "s") for kind in KINDS}
        command = [*AUTOGRADER, "serve", "--port", "0"]
        server = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, start_new_session=True)
        done, sizes, pages = threading.Event(), {"server": [], "grading": []}, []
        try:
            said = server.stdout.readline()
            url = re.search(r"http://\S+(?=;)", said)[0]
            address = sending._read_address(url)
            teacher = (root / "teacher.csv").read_text().split(",")[-1].strip()
            threading.Thread(target=watch, args=(server.pid, done, sizes), daemon=True).start()
            threading.Thread(target=look, args=(url, teacher, done, pages), daemon=True).start()
            begin = time.monotonic()
            draws = random.Random(0)
            moments = {student: begin + draws.uniform(0, options.seconds) for student in tokens}

            def hand_in(student: str) -> tuple[float, str]:
                time.sleep(max(0.0, moments[student] - time.monotonic()))
                sent = time.monotonic()
                text = texts[KINDS[int(student[1:]) % len(KINDS)]]
                told = sending._ask(address, tokens[student], "POST", f"/api/hand-ins/{chapter.folder}", text)
                return time.monotonic() - sent, told["id"]

            with ThreadPoolExecutor(options.clients) as clients:
                in_turn = sorted(tokens, key=moments.__getitem__)
                receipts = dict(zip(in_turn, clients.map(hand_in, in_turn), strict=True))
            handed_in = time.monotonic() - begin
            for student, (_, id) in receipts.items():
                while not sending._ask(address, tokens[student], "GET", f"/api/receipts/{id}")["graded"]:
                    if time.monotonic() - begin > LONGEST:
                        sys.exit(f"{student} has no verdict after {LONGEST} s")
                    time.sleep(0.5)
            graded = time.monotonic() - begin
        finally:
            done.set()
            server.terminate()
            server.wait(60)
        waits = sorted(seconds for seconds, _ in receipts.values())
        hundredths = statistics.quantiles(waits, n=100, method="inclusive")
        p50, p99 = 1000 * hundredths[49], 1000 * hundredths[98]
        print(f"{len(waits)} students handed in {chapter.folder} within {handed_in:.0f} s, {options.clients} at once")
        print(f"receipt: p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {1000 * waits[-1]:.0f} ms")
        print(f"all graded after {graded:.0f} s, {60 * len(waits) / graded:.0f} a minute")
        print(f"instructor's page: p50 {1000 * statistics.median(pages):.0f} ms, longest {1000 * max(pages):.0f} ms")
        for name, one in sizes.items():
            quarters = f"{_quarter(one, 2):.0f} in the second quarter, {_quarter(one, 4):.0f} in the last"
            print(f"memory of {name}: peak {max(one):.0f} MB; {quarters}")


if __name__ == "__main__":
    main()
