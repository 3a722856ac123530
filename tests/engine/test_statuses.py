"""What a check can end in, and what the student gets to read."""

import json

import pytest

from autograder.run import grade_notebook
from notebooks import find, release, source_notebook, submission


@pytest.fixture(scope="module")
def source():
    return source_notebook()


def grade(sandbox, source, **answers):
    return {item.grade_id: item for item in grade_notebook(sandbox, submission(source, **answers), source).items}


def test_right_answers_pass(sandbox, source):
    graded = grade_notebook(sandbox, submission(source), source)
    assert [(i.grade_id, i.status, i.points, i.max_points) for i in graded.items] == [
        ("double_check", "passed", 2, 2),
        ("count_check", "passed", 1, 1),
        ("Layer_check", "passed", 4, 4),
    ]
    assert all(cell.outputs == [] for cell in graded.notebook.cells if cell.cell_type == "code")


def test_an_untouched_notebook_is_not_attempted(sandbox, source):
    graded = grade_notebook(sandbox, release(source), source)
    assert {item.status for item in graded.items} == {"not attempted"}
    assert graded.problems == []


STATUSES = {
    "def double(x):\n    return x": ("failed", "double(1) should be 2"),
    "def double(x):\n    return None": ("failed", "TypeError"),
    "def double(x):\n    return x.nothing": ("error", "AttributeError: 'Tensor' object has no attribute 'nothing'"),
    "def double(x):\n    retrun x": ("error", "SyntaxError"),
    "def double(y):\n    return undefined": ("error", "NameError: name 'undefined' is not defined"),
    "def dubble(x):\n    return x": ("missing", "does not define `double`"),
    "": ("not attempted", ""),
    "raise NotImplementedError": ("not attempted", ""),
    "def double(x):\n    raise NotImplementedError": ("not attempted", "not attempted yet"),
    "import torch\ndef double(x):\n    return torch.ones(2).long().softmax(0)": ("error", "not implemented for 'Long'"),
    "import torch\ndef double(x):\n    return torch.cdist(*[torch.ones(2, 2).half()] * 2)": ("error", "for 'Half'"),
    "from torch import nn\ndouble = nn.ModuleList()": ("error", "missing the required"),
    "import nowhere": ("error", "ModuleNotFoundError: No module named 'nowhere'"),
    "def double(x):\n    assert False, 'my own'": ("failed", "my own"),
    "import warnings\nwarnings.warn('w')\ndef double(x):\n    warnings.warn('w')\n    return 2 * x": ("passed", ""),
    "import sys\nprint('e', file=sys.stderr)\ndef double(x):\n    return 2 * x": ("passed", ""),
    "class E(LookupError): pass\ndef double(x):\n    raise E('odd')": ("error", "E: odd"),
}


@pytest.mark.parametrize("answer", STATUSES)
def test_each_status(sandbox, source, answer):
    status, message = STATUSES[answer]
    item = grade(sandbox, source, double=answer)["double_check"]
    assert (item.status, message in item.message) == (status, True), item
    assert (item.points == 2) == (status == "passed")


def test_the_students_traceback_is_shown_without_the_engine(sandbox, source):
    graded = grade_notebook(sandbox, submission(source, double="def double(x):\n    return x.view(7, 7)"), source)
    (output,) = find(graded.notebook, "double_check").outputs
    text = "\n".join(output.traceback)
    assert "return x.view(7, 7)" in text
    assert 'File "<double>", line 2' in text
    for word in ("worker.py", "zygote.py", "/env", "/engine", "secret_of_the_check"):
        assert word not in text


def test_an_assertion_without_message_shows_itself_if_visible(sandbox):
    visible = source_notebook(double_check="assert double(1) == 2")
    assert "double(1) == 2" in grade(sandbox, visible, double="def double(x): return x")["double_check"].message
    hidden = source_notebook(double_check="### BEGIN HIDDEN TESTS\nassert double(1) == 2\n### END HIDDEN TESTS")
    assert grade(sandbox, hidden, double="def double(x): return x")["double_check"].message == "a check failed"


def test_partial_credit_as_in_nbgrader(sandbox):
    source = source_notebook(double_check="score = 0.5 if double(1) == 2 else 0\nscore")
    assert grade(sandbox, source)["double_check"].points == 0.5
    graded = grade_notebook(sandbox, submission(source), source)
    assert find(graded.notebook, "double_check").outputs[0].data == {"text/plain": "0.5"}
    for value in ("99", "-3"):
        source = source_notebook(double_check=f"double(1)\n{value}")
        assert grade(sandbox, source)["double_check"].points in (0, 2)


def test_marks_are_those_that_nbgrader_reads_from_the_notebook(sandbox, source):
    from nbgrader.utils import determine_grade

    answers = {"double": "def double(x): return x", "count": "import os; os._exit(0)"}
    graded = grade_notebook(sandbox, submission(source, **answers), source)
    for item in graded.items:
        assert determine_grade(find(graded.notebook, item.grade_id)) == (item.points, item.max_points)


def test_only_some_checks(sandbox, source):
    graded = grade_notebook(sandbox, submission(source), source, only={"count_check"})
    assert [item.grade_id for item in graded.items] == ["count_check"]


def test_printed_text_is_kept_up_to_a_limit(sandbox, source):
    graded = grade_notebook(
        sandbox, submission(source, double="print('hello\\n' * 10**6)\ndef double(x): return 2*x"), source
    )
    (output,) = find(graded.notebook, "double").outputs
    assert output.text.startswith("hello")
    assert len(output.text) < 20_000
    assert graded.items[0].status == "passed"


def test_the_courses_own_cells_run_as_definitions_or_in_full(sandbox):
    source = source_notebook(double_check="assert double(constant) == 6 and helper() == 1")
    source.cells[1].source += "\nconstant = 3\ndef helper():\n    return 1\nprint('ran')\nwhile slow: pass"
    assert grade(sandbox, source)["double_check"].status == "passed"
    source.cells[1].source = source.cells[1].source.replace("while slow: pass", "total = constant + 1")
    source.cells[4].source = "assert double(total) == 8" if "double_check" in str(source.cells[4].metadata) else ""
    graded = grade_notebook(sandbox, submission(source), source, run_cells="all")
    assert graded.items[0].status == "passed"
    assert "ran" in json.dumps(graded.notebook.cells[1])


def test_a_check_leaves_nothing_behind(sandbox):
    import torch

    mess = "torch.manual_seed(1)\ntorch.set_grad_enabled(False)\ntorch.set_default_dtype(torch.float64)\ndouble(1)"
    clean = "assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32\ncount(torch.ones(1))"
    source = source_notebook(double_check=mess, count_check=clean)
    assert grade(sandbox, source)["count_check"].status == "passed"
    first = torch.rand(1)
    grade(sandbox, source)
    assert not torch.equal(torch.rand(1), first)


def test_reference_modules_serve_both_sides(sandbox):
    modules = {
        "first": "def one(x):\n    return x + 1\n",
        "second": "import nowhere_at_all\nfrom first import one\ndef two(x):\n    return one(one(x))\n",
    }
    source = source_notebook(double_check="from second import two\nassert double(1) == two(1)")
    source.cells[1].source += "\nimport autograder.course.imports\nfrom second import two"
    answer = "def double(x):\n    return two(x)"
    graded = grade_notebook(sandbox, submission(source, double=answer), source, modules=modules)
    assert graded.items[0].status == "passed", graded.items[0]
    import sys

    assert "second" not in sys.modules
