"""A class's server gives the verdicts of `autograder grade`: on the answers on record of three chapters."""

import json
import shutil
import zipfile
from dataclasses import replace

import nbformat
import pytest

pytest.importorskip("starlette", reason="the server's packages are not installed: pip install 'autograder[service]'")
from autograder.course import grade, gradebook, replay
from autograder.course.curriculum import begin_class, find_course
from autograder.course.grade import Means
from autograder.course.proof import answers_of, cell_of
from autograder.service import grading, receive, settings
from autograder.service import store as state
from autograder.submission import repair


def notebooks_of(course, chapter) -> list[str]:
    """The chapter as handed out, with the first answer on record for each exercise, with the second, …"""
    reference = nbformat.read(course.solution(chapter), as_version=4)
    on_record = {e.name: [a for a in answers_of(chapter) if a.exercise == e.name] for e in chapter.exercises}
    made = []
    for number in range(max(map(len, on_record.values()))):
        notebook, _ = repair(nbformat.v4.new_notebook(), reference)
        for exercise, answers in on_record.items():
            if answers:
                text = answers[number % len(answers)].cell(cell_of(reference, exercise).source)
                lines = [
                    line for line in text.splitlines() if "### BEGIN SOL" not in line and "### END SOL" not in line
                ]
                cell_of(notebook, exercise).source = "\n".join(lines)
        made.append(nbformat.writes(notebook))
    return made


@pytest.mark.parametrize("number", ["01", "02", "03"])
def test_a_servers_verdicts_are_those_of_grade_and_can_be_replayed(
    repository, tmp_path, monkeypatch, sandboxed, everything, number
):
    for name in ("solutions", "checks", "nbgrader_config.py"):
        source = repository / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    course = find_course()
    chapter = course.find(number)
    for name in ("served", "graded"):
        begin_class(course.root, name)
    served, graded = (replace(course, class_name=name) for name in ("served", "graded"))
    notebooks = notebooks_of(course, chapter)
    chosen = {f"s{n:02}": text for n, text in enumerate(notebooks) if everything or n % 12 == 0}

    nbgrader = gradebook.configure(served)
    store, rules = state.open_store(nbgrader), settings.read_rules(served, nbgrader)
    for student, text in chosen.items():
        place = graded.classroom / "submitted" / student / chapter.folder / f"{chapter.module}.ipynb"
        place.parent.mkdir(parents=True)
        place.write_text(text)
        with zipfile.ZipFile(tmp_path / "pack", "w") as archive:
            archive.write(place, place.name)
        received = state.home(nbgrader) / "received"
        receive.take(store, received, student, chapter, course.chapters, rules[chapter], tmp_path / "pack")
    while grading.grade_waiting(served, nbgrader, store, rules, Means(workers=1)):
        pass
    told = {
        (student, item["grade_id"]): (item["status"], item["points"])
        for student in chosen
        for item in state.counted(store, student, chapter.folder).verdict["items"]
    }
    store.dispose()
    grade.run(graded, [chapter], json_file=tmp_path / "verdicts.json", means=Means(workers=1))
    items = json.loads((tmp_path / "verdicts.json").read_text())["items"]
    assert told == {(item["student"], item["grade_id"]): (item["status"], item["points"]) for item in items}
    assert {"passed", "failed"} <= {status for status, _ in told.values()}
    wrong = next(key for key, (status, _) in told.items() if status == "failed")
    exercise = wrong[1].removesuffix("_check")
    assert replay.run(served, wrong[0], chapter, exercise) == replay.SAME
