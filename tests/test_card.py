"""What a check shows in a notebook: a green line, a card in place of a traceback, one line for what is not begun."""

import nbclient
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

CHECK = """
from autograder.course.card import visible
from autograder.checks import Mistake, call, expect_close

class known(Mistake):
    TWICE = "everything is <twice> as large"

@visible("the values by hand")
def weighted_avg(function):
    x, w = torch.arange(6.0).view(1, 3, 2), torch.tensor([[[1.0, 0.0, 0.0], [0.25, 0.25, 0.5]]])
    expect_close(call(function, x, w), w @ x, "the result", {known.TWICE: lambda: 2 * w @ x})

@visible("two <values>", graded="loops, gradients")
def doubled(function):
    expect_close(call(function, torch.ones(2)), torch.full((2,), 2.0), "the result")

@visible("a part")
def einsum_values(function):
    expect_close(call(function, torch.eye(2)), torch.eye(2), "the result")
"""
CELLS = [
    "import sys, torch\nsys.path.insert(0, '.')\nfrom checks.weighted_averages import visible as check",
    "check.weighted_avg(lambda x, w: w @ x)",
    "check.weighted_avg(lambda x, w: 2 * w @ x)",
    "def transposed(x, w):\n    y = x @ w\n    return y.no_such_name\ncheck.weighted_avg(transposed)",
    "def todo(x, w):\n    raise NotImplementedError()\ncheck.weighted_avg(todo)",
    "[].no_such_name",
    "def check(x):\n    return x\ncheck.weighted_avg(check)",
    "from checks.weighted_averages import visible as check\ncheck.einsum_values(lambda x: x)",
    "import autograder.course.imports\nfrom early import softmax\ncheck.einsum_values(lambda x: softmax(x))",
    "def einsum(x):\n    raise NotImplementedError()\ncheck.weighted_avg(lambda x, w: einsum(x))",
    "def doubled(x):\n    return 3 * x\ncheck.doubled(doubled)",
    "def helper(x):\n    return doubled(x)\nclass Twice:\n"
    "    def forward(self, x, w):\n        return helper(w @ x) / 2\ncheck.weighted_avg(Twice().forward)",
    "def doubled(x):\n    return 2.5 * x",
    "check.weighted_avg(lambda x, w: doubled(w @ x))",
    "def doubled(x):\n    return 2 * x\ncheck.doubled(doubled)",
    "check.weighted_avg(lambda x, w: 2 * doubled(w @ x))",
]
EARLY = "def softmax(z):\n    raise NotImplementedError()"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    (root / "solutions").mkdir()
    (root / "solutions/curriculum.toml").write_text(
        '[[chapter]]\nfolder = "01_weighted_averages"\nmodule = "weighted_averages"\ntitle = ""\n'
        'exercises = [{ name = "weighted_avg", points = 2 }, { name = "einsum", points = 1 }]'
    )
    (root / "00_early").mkdir()
    nbformat.write(new_notebook(cells=[new_code_cell(EARLY)]), root / "00_early/early.ipynb")
    package = root / "checks/weighted_averages"
    package.mkdir(parents=True)
    (root / "checks/__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "visible.py").write_text("import torch\n" + CHECK)
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, allow_errors=True, resources={"metadata": {"path": str(root)}}).execute()
    return [cell.outputs for cell in notebook.cells]


def text(output):
    return "\n".join(output.traceback)


def test_a_pass_is_one_line_with_what_was_shown_and_no_points(outputs):
    (shown,) = outputs[1]
    assert shown.data["text/plain"] == "✓ weighted_avg: the values by hand"
    assert "✓ weighted_avg</b>: the values by hand" in shown.data["text/html"]


def test_a_pass_says_what_only_grading_checks(outputs):
    (shown,) = outputs[14]
    assert shown.data["text/plain"] == "✓ doubled: two <values>; loops, gradients: when graded"
    assert "</b>: two &lt;values&gt;; loops, gradients: when graded" in shown.data["text/html"]


def test_what_uses_a_wrong_exercise_says_so_until_that_one_is_changed(outputs):
    told = "this uses your `doubled`, which fails its own check: mend that first"
    errors = [next(o for o in outputs[number] if o.output_type == "error") for number in (11, 13, 15)]
    assert [error.traceback[1] == told for error in errors] == [True, False, False]


def test_a_wrong_value_is_a_card_with_heat_maps_and_the_likely_mistake(outputs):
    maps, error = outputs[2]
    assert maps.data["text/html"].count("<table") == 2
    assert error.ename == "CheckFailed"
    assert error.traceback[0].startswith("\x1b[1m✗ "), "in the page's own colour, which reads in light and dark"
    assert error.traceback[1] == "\x1b[1meverything is <twice> as large\x1b[0m"
    assert error.traceback[2].startswith("the result should be ")
    assert "visible.py" not in text(error) and "checks.py" not in text(error)


def test_an_exception_shows_the_students_own_frames_alone(outputs):
    (error,) = outputs[3]
    assert "in transposed, line 2: y = x @ w" in text(error) or "in transposed, line 3" in text(error)
    assert "visible.py" not in text(error) and "/" not in text(error)


def test_an_exercise_that_nobody_has_begun_stops_in_one_line(outputs):
    (error,) = outputs[4]
    assert error.traceback == ["weighted_avg is not written yet: fill it in above, run its cell, then this one."]


def test_a_part_of_a_check_is_named_after_its_exercise(outputs):
    shown = outputs[7][-1]
    assert shown.data["text/plain"] == "✓ einsum (values): a part"


def test_what_is_not_written_in_an_earlier_chapter_is_named_with_it(outputs):
    (error,) = outputs[8]
    assert error.traceback == [
        "einsum needs softmax of early, which is not written yet: write it there, save, then restart this kernel."
    ]


def test_what_is_not_written_in_an_exercise_before_is_named(outputs):
    (error,) = outputs[9]
    assert error.traceback == [
        "weighted_avg needs einsum, which is not written yet: fill it in, run its cell, then this one."
    ]


def test_another_attribute_error_has_its_traceback(outputs):
    (error,) = outputs[5]
    assert error.ename == "AttributeError"
    assert "[].no_such_name" in text(error) and "'list' object has no attribute" in text(error)


def test_a_name_that_hides_the_checks_is_said_in_one_line(outputs):
    (error,) = outputs[6]
    assert error.ename == "CheckHidden"
    assert len(error.traceback) == 1 and "rename that" in text(error)
