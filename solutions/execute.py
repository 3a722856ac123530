"""Run chapters from top to bottom and keep their results: `make execute CHAPTER=06`.

It runs on the sample, whatever was downloaded: on the full data a chapter trains for hours. And it
runs without a page, so that a live figure leaves its picture and its data, and no widget.

`executed.json` keeps what each chapter was made of when it was executed. A test names those whose
code, or code that they import, has changed since: their results may be old, or no more to be had.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import nbformat
from made_of import made_of
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from predictions import fold_results
from tqdm import tqdm

from autograder.course.curriculum import Chapter, CourseError, find_course
from autograder.course.files import replace_file

# What would tell a notebook that a page shows its outputs, or that it is graded and may be brief.
TOLD_OTHERWISE = ("JPY_SESSION_NAME", "VSCODE_PID", "COLAB_RELEASE_TAG", "NBGRADER_EXECUTION")


def main() -> None:
    """Execute the chapters that are named."""
    parser = argparse.ArgumentParser(
        description="Execute chapters of solutions/ in place, on the sample data."
    )
    parser.add_argument("chapters", nargs="+", metavar="CHAPTER", help="such as 06")
    course = find_course(Path(__file__).parent)
    try:
        chapters = course.select(parser.parse_args().chapters)
    except CourseError as error:
        sys.exit(str(error))
    for name in TOLD_OTHERWISE:
        os.environ.pop(name, None)
    os.environ["ATTENTION_DATA"] = "sample"
    record = course.root / "solutions/executed.json"
    for chapter in chapters:
        made = made_of(course, chapter)
        execute(course.solution(chapter), chapter)
        executed = json.loads(record.read_text()) if record.exists() else {}
        text = json.dumps(executed | {chapter.folder: made}, indent=2, sort_keys=True) + "\n"
        replace_file(record, text.encode())


def execute(path: Path, chapter: Chapter) -> None:
    """Run a notebook and put it, with its results, in its own place, unless a cell fails.

    Results that a reader is to predict are folded.

    Args:
        path: the notebook.
        chapter: what it is, for messages.

    Raises:
        SystemExit: a cell raised an exception, or the kernel died.
    """
    started = time.monotonic()
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    running = ""
    with tqdm(total=len(notebook.cells), desc=chapter.folder, unit=" cells", disable=None) as bar:

        def show(cell: nbformat.NotebookNode, cell_index: int) -> None:
            nonlocal running
            running = cell.id
            bar.update(cell_index - bar.n)

        client = NotebookClient(
            notebook,
            timeout=None,
            coalesce_streams=True,
            record_timing=False,
            store_widget_state=False,
            on_cell_start=show,
            resources={"metadata": {"path": str(path.parent)}},
        )
        failure = ""
        try:
            client.execute()
        except CellExecutionError as error:
            print(error.traceback, file=sys.stderr)
            failure = f"raised {error.ename}: {error.evalue}".splitlines()[0]
        except DeadKernelError:
            failure = "ended the kernel"
    if failure:
        sys.exit(f"{chapter.folder}: the cell {running} {failure}; the notebook is as it was")
    fold_results(notebook)
    notebook.metadata = metadata  # the kernel's own description of itself is nobody's change
    unfinished = path.with_name(f".{path.name}.part")
    nbformat.write(notebook, unfinished)
    os.replace(unfinished, path)
    print(f"{chapter.folder}: executed in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
