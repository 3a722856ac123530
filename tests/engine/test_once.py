"""A mistake costs its points once: what uses a wrong exercise is judged once more, beside the reference."""

import json

import nbformat
import pytest
from nbgrader.utils import determine_grade

from autograder.course.curriculum import find_course, reference_modules
from autograder.run import grade_notebook
from notebooks import find, release, source_notebook, submission

WRONG = "def double(x):\n    return 3 * x"
COUNT = "def count(x):\n    return int(double(torch.ones(x.numel())).sum()) // 2"
TOLD = "this uses your `double`, which fails its own check: mend that first"


@pytest.fixture(scope="module")
def source():
    return source_notebook()


def grade(sandbox, source, only=None, **answers):
    options = {name: answers.pop(name) for name in ("seed", "pay_once") if name in answers}
    graded = grade_notebook(sandbox, submission(source, **answers), source, only=only, **options)
    return {item.grade_id: item for item in graded.items}, graded.notebook


@pytest.mark.parametrize("wrong", [WRONG, "def double(x)\n    return", "raise NotImplementedError", ""])
def test_what_uses_a_wrong_exercise_keeps_its_points(sandbox, source, wrong):
    items, notebook = grade(sandbox, source, double=wrong, count=COUNT)
    assert items["double_check"].points == 0
    assert (items["count_check"].status, items["count_check"].points, items["count_check"].message) == (
        "passed",
        1,
        TOLD,
    )
    cell = find(notebook, "count_check")
    assert determine_grade(cell) == (1, 1) and TOLD in json.dumps(cell.outputs)


def test_through_a_helper_and_through_another_exercise(sandbox, source):
    helped = "def helper(x):\n    return double(x)\n" + COUNT.replace("double", "helper")
    assert grade(sandbox, source, double=WRONG, count=helped)[0]["count_check"].points == 1
    layer = "class Layer(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
    layer += "        self.linear = nn.Linear(dim, dim)\n    def forward(self, x):\n"
    layer += "        return self.linear(x).relu() * (count(x) == x.numel())"
    items, _ = grade(sandbox, source, double=WRONG, count=COUNT, Layer=layer)
    assert [item.points for item in items.values()] == [0, 1, 4]


def test_the_verdict_is_the_same_where_one_check_alone_is_asked_for(sandbox, source):
    items, _ = grade(sandbox, source, {"count_check"}, double=WRONG, count=COUNT)
    assert [(i.grade_id, i.points, i.message) for i in items.values()] == [("count_check", 1, TOLD)]


@pytest.mark.parametrize(
    "count", [COUNT + " + 1", "def count(x):\n    return 0", "def count(x):\n    return double(x).nothing"]
)
def test_a_mistake_of_its_own_costs_its_points_and_is_told_alone(sandbox, source, count):
    item = grade(sandbox, source, double=WRONG, count=count)[0]["count_check"]
    assert item.points == 0 and "mend that first" not in item.message


def test_an_exercise_below_is_never_replaced(sandbox, source):
    double = "def double(x):\n    return x + x * (count(x) == x.numel())"
    items, _ = grade(sandbox, source, double=double, count="def count(x):\n    return 0")
    assert [item.points for item in items.values()] == [0, 0, 4]


def test_it_can_be_switched_off(sandbox, source):
    assert grade(sandbox, source, double=WRONG, count=COUNT, pay_once=False)[0]["count_check"].points == 0


SPY = """
import inspect
def look():
    try:
        return inspect.getsource(double)
    except Exception as error:
        return str(error)
print("SPY", double(torch.ones(1)).item())
def count(x):
    seen = double(torch.ones(1)).item()
    print("SPY", seen, look())
    if seen == 2.0:
        raise ValueError(f"SPY beside the reference {seen} {look()}")
    return 0
"""


def test_nothing_that_is_said_beside_the_reference_is_kept(sandbox, source):
    """The message, what is printed and what is raised are those of the run with the student's own cells."""
    items, notebook = grade(sandbox, source, double=WRONG, count=SPY)
    text = json.dumps([notebook, [item.message for item in items.values()]])
    assert items["count_check"].points == 0
    assert "SPY 3.0" in text
    assert "SPY 2.0" not in text and "beside the reference" not in text.replace(json.dumps(SPY)[1:-1], "")
    passing = SPY.replace("raise ValueError(f", "return (x.numel(), print(f").replace('{look()}")', '{look()}"))[0]')
    items, notebook = grade(sandbox, source, double=WRONG, count=passing)
    assert items["count_check"].points == 1
    cells = [cell.get("outputs") for cell in notebook.cells]
    assert "SPY 2.0" not in json.dumps(cells) and "beside" not in json.dumps(cells)


def test_without_references_the_message_comes_without_the_points(sandbox, source):
    items = grade_notebook(sandbox, submission(source, double=WRONG, count=COUNT), release(source)).items
    count = next(item for item in items if item.grade_id == "count_check")
    assert (count.status, count.points) == ("failed", 0)
    assert count.message.startswith(f"{TOLD}. count should be")


COURSE = find_course()
WRONG_ANSWERS = {
    "LayerNorm": """class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
    def forward(self, x):
        return self.weight * x + self.bias""",
    "query_key_weights": """def query_key_weights(queries, keys, mask=None):
    scores = queries @ keys.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1)""",
}


@pytest.mark.parametrize(
    "module, exercise, kept",
    [
        ("transformer_block", "LayerNorm", "TransformerBlock"),
        ("queries_keys_values", "query_key_weights", "scaled_dot_product_attention"),
    ],
)
def test_in_this_course(roomy, module, exercise, kept):
    chapter = COURSE.find(module)
    solution = nbformat.read(COURSE.solution(chapter), as_version=4)
    answers = nbformat.from_dict(solution)
    find(answers, exercise).source = WRONG_ANSWERS[exercise]
    names = {c.metadata.nbgrader.grade_id for c in solution.cells if c.metadata.get("nbgrader", {}).get("grade")}
    only = {name for name in names if name.startswith((f"{exercise}_check", f"{kept}_check"))}
    modules = reference_modules(COURSE, chapter)
    items = grade_notebook(roomy, answers, solution, modules=modules, only=only).items
    for item in items:
        if item.grade_id.startswith(kept):
            assert item.points == item.max_points, item
            assert not item.message or f"`{exercise}`, which fails its own check" in item.message
    assert any(item.points < item.max_points for item in items if item.grade_id.startswith(exercise))
    assert any(item.message for item in items if item.grade_id.startswith(kept)), "it did not need to be spared"
