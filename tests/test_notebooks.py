"""The chapters as a reader meets them: executed, clean, complete."""

import ast
import re

import nbformat
import pytest

from autograder.course.curriculum import find_course
from autograder.source import definitions

COURSE = find_course()
CHAPTERS = [pytest.param(c, id=c.folder) for c in COURSE.chapters]
ALL = pytest.mark.parametrize("chapter", CHAPTERS)


def read(chapter):
    return nbformat.read(COURSE.solution(chapter), as_version=4)


def code(notebook):
    return [c for c in notebook.cells if c.cell_type == "code"]


@ALL
def test_every_cell_was_executed_in_order_without_an_error(chapter):
    counts = [c.execution_count for c in code(read(chapter)) if c.source.strip()]
    assert counts == list(range(1, len(counts) + 1))
    kinds = [(c.id, o.output_type) for c in code(read(chapter)) for o in c.outputs]
    assert [k for k in kinds if k[1] == "error"] == []
    assert [c.id for c in code(read(chapter)) for o in c.outputs if o.get("name") == "stderr"] == []


@ALL
def test_no_path_of_a_machine_in_text_or_output(chapter):
    text = nbformat.writes(read(chapter))
    assert re.findall(r"/(?:home|root|work|tmp|Users)/[\w./-]*", text) == []


@ALL
def test_images_exist_and_have_alt_text(chapter):
    folder = COURSE.solution(chapter).parent
    for cell in read(chapter).cells:
        if cell.cell_type == "markdown":
            for alt, target in re.findall(r"!\[(.*?)\]\((.*?)\)", cell.source, flags=re.DOTALL):
                assert (folder / target).is_file(), f"{cell.id}: {target} is missing"
                assert len(alt) > 15, f"{cell.id}: {target} has no alt text"


@ALL
def test_every_exercise_has_a_list_of_checks_and_hints(chapter):
    text = "\n".join(c.source for c in read(chapter).cells if c.cell_type == "markdown")
    machine = [e for e in chapter.exercises if e.kind == "code"]
    assert len(re.findall(r"\*\*What the checks cover", text)) == len(machine)
    assert text.count("<details>") == text.count("</details>") >= 2 * len(machine)
    for exercise in chapter.exercises:
        points = f"{exercise.points:g} point"
        assert re.search(rf"### Exercise \d+\.\d+ · `{exercise.name}` — {points}", text), exercise.name


@ALL
def test_cells_are_small(chapter):
    lengths = sorted(c.source.count("\n") + 1 for c in code(read(chapter)) if not c.metadata.get("nbgrader"))
    assert 1 <= lengths[len(lengths) // 2] <= 12
    assert lengths[-1] <= 40


@ALL
def test_every_exercise_has_a_docstring_outside_the_solution(chapter):
    released = nbformat.read(COURSE.notebook(chapter), as_version=4)
    for cell in code(released):
        about = cell.metadata.get("nbgrader", {})
        if about.get("solution") and not about.get("grade"):
            found = {node.name: node for node in ast.parse(cell.source).body if hasattr(node, "name")}
            assert ast.get_docstring(found[about["grade_id"]]), about["grade_id"]


@ALL
def test_a_chapter_defines_each_of_its_exercises_for_the_later_ones(chapter):
    defined = definitions([c.source for c in code(read(chapter))])
    for exercise in chapter.exercises:
        if exercise.kind == "code":
            assert re.search(rf"^(def|class) {exercise.name}\b", defined, flags=re.MULTILINE), exercise.name


CALLED_IN_ONE_LINE = [p for p in CHAPTERS if (COURSE.root / "checks" / p.values[0].module / "visible.py").is_file()]


@pytest.mark.parametrize("chapter", CALLED_IN_ONE_LINE)
def test_a_check_cell_calls_the_visible_check_and_the_hidden_one(chapter):
    names = "|".join(exercise.name for exercise in chapter.exercises)
    visible, hidden = rf"check\.(?:{names})\w*\(.*\)", rf"from checks\.{chapter.module}\.hidden import \w+\n+\w+\(.*\)"
    cell = re.compile(rf"{visible}\n+### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS")
    checks = [c for c in code(read(chapter)) if c.metadata.get("nbgrader", {}).get("grade")]
    assert [c.metadata.nbgrader.grade_id for c in checks if not cell.fullmatch(c.source)] == []


@ALL
def test_the_readme_knows_the_chapter(chapter):
    rows = (COURSE.root / "README.md").read_text(encoding="utf-8").splitlines()
    link = f"[{chapter.title}](notebooks/{chapter.folder}/{chapter.module}.ipynb)"
    row = next(row for row in rows if row.startswith(f"| {chapter.number} | {link} |"))
    assert row.split("|")[4].strip() == f"{chapter.points:g}"
