"""The chapters as a reader meets them: executed, clean, complete."""

import ast
import json
import re
import runpy
from dataclasses import replace

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


@pytest.fixture(scope="module")
def made_of(repository):
    return runpy.run_path(str(repository / "solutions/made_of.py"))["made_of"]


@ALL
def test_the_results_are_those_of_the_code(chapter, repository, made_of):
    executed = json.loads((repository / "solutions/executed.json").read_text())
    why = "its code, or code that it imports, has changed since it was executed: make execute CHAPTER="
    assert made_of(COURSE, chapter) == executed.get(chapter.folder), f"{why}{chapter.number}"


@pytest.fixture(scope="module")
def fold_results(repository):
    return runpy.run_path(str(repository / "solutions/predictions.py"))["fold_results"]


@ALL
def test_results_to_be_predicted_are_folded(chapter, fold_results):
    notebook = read(chapter)
    before = folded(notebook)
    fold_results(notebook)
    assert folded(notebook) == before, "python solutions/predictions.py folds what a changed text asks for"


def folded(notebook):
    return [cell.id for cell in notebook.cells if cell.metadata.get("collapsed")]


def test_a_result_is_folded_as_far_as_its_answer(fold_results):
    def cell(number, **about):
        shown = nbformat.v4.new_output("execute_result", {"text/plain": "2"})
        return nbformat.v4.new_code_cell("1 + 1", id=f"code-{number}", outputs=[shown], metadata=about)

    asked, answer = "**Predict** the sum.", "<details>\n<summary>The answer</summary>\n2\n</details>"
    told, remark, heading = asked + answer.replace("The answer", "Thought through"), "It is 2.", "## Next"
    exercise = {"nbgrader": {"grade_id": "add", "solution": True}}
    for cells, expected in (
        ([asked, cell(1), remark, cell(2), answer, cell(3)], [1, 2]),
        ([asked, heading, cell(1, **exercise), cell(2), answer], [2]),  # the exercise prints what it likes
        ([asked, remark, cell(1), cell(2), remark, cell(3)], [1, 2]),  # no answer: to the first text after a result
        ([asked, cell(1), heading, cell(2), asked, answer], [1]),  # the answer is another's
        ([told, cell(1), remark, cell(2), answer], [1]),  # answered where it is asked
        ([cell(1, collapsed=True)], []),
    ):
        texts = (nbformat.v4.new_markdown_cell(one) if isinstance(one, str) else one for one in cells)
        notebook = nbformat.v4.new_notebook(cells=list(texts))
        fold_results(notebook)
        assert folded(notebook) == [f"code-{number}" for number in expected]


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


def numbered_twice(chapter, text):
    """What is wrong with the numbers of a chapter's exercises, a line for each."""
    headings = re.findall(r"^### Exercise (\d+\.\d+) · `(\w+)`", text, flags=re.MULTILINE)
    wanted = [f"{int(chapter.number)}.{k}" for k in range(1, len(headings) + 1)]
    return [
        f"{chapter.folder}: the exercise `{name}` is numbered {number}: make it {right}"
        for (number, name), right in zip(headings, wanted, strict=True)
        if number != right
    ]


def lacking(chapter):
    """What a chapter lacks outside its notebook, a line for each that says what to add and where."""
    root, number = COURSE.root, int(chapter.number)
    link = f"[{chapter.title}](notebooks/{chapter.folder}/{chapter.module}.ipynb)"
    told = {file: (root / file).read_text(encoding="utf-8") for file in ("README.md", "book/glossary.md")}
    drawn = (root / "images/course_map.svg").read_text(encoding="utf-8")
    lines = []
    rows = [row.split("|") for row in told["README.md"].splitlines() if row.startswith(f"| {chapter.number} |")]
    if not rows or link not in rows[0][2]:
        lines.append(f"README.md: add to the table of chapters: | {chapter.number} | {link} | … | {chapter.points:g} |")
    elif rows[0][4].strip() != f"{chapter.points:g}":
        lines.append(f"README.md: make chapter {chapter.number}'s points {chapter.points:g}, as in the curriculum")
    if not re.search(rf"\bchapters? (?:\d+(?:, | and ))*{number}\b", told["book/glossary.md"]):
        lines.append(f"book/glossary.md: add the terms that the chapter introduces, each with “(chapter {number})”")
    if f">{chapter.number}</text>" not in drawn:
        lines.append("images/draw.py: add the chapter's stop to course_map, then run `python images/draw.py`")
    if not (root / f"tests/claims/{chapter.module}.py").is_file():
        lines.append(f"tests/claims/{chapter.module}.py: add the table of what the chapter's sentences claim, CLAIMS")
    return [f"{chapter.folder} · {line}" for line in lines]


@ALL
def test_exercises_are_numbered_in_their_order(chapter):
    assert numbered_twice(chapter, "\n".join(c.source for c in read(chapter).cells)) == []


def test_two_exercises_with_one_number_are_named():
    text = "### Exercise 1.1 · `a` — 1 point\n### Exercise 1.1 · `b` — 1 point\n### Exercise 1.3 · `c` — 1 point"
    wrong = numbered_twice(COURSE.find("01"), text)
    assert wrong == ["01_weighted_averages: the exercise `b` is numbered 1.1: make it 1.2"]


@ALL
def test_the_rest_of_the_course_knows_the_chapter(chapter):
    assert lacking(chapter) == []


def test_a_chapter_that_nothing_knows_is_told_what_to_add():
    first = COURSE.chapters[0]
    unknown = lacking(replace(first, folder="99_new", module="new", title="New"))
    assert [line.split(": add ")[0] for line in unknown] == [
        f"99_new · {file}" for file in ("README.md", "book/glossary.md", "images/draw.py", "tests/claims/new.py")
    ]
    assert lacking(replace(first, exercises=()))[0].endswith(
        "README.md: make chapter 00's points 0, as in the curriculum"
    )
