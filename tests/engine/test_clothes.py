"""Right answers in unusual clothes: what works in a notebook works in the grader."""

from dataclasses import replace

import nbformat
import pytest
import torch
from conftest import LIMITS
from graded import statuses
from torch import nn

from autograder.checks import expect_device, expect_parameters
from autograder.isolation.sandbox import Sandbox
from autograder.mistakes import Complaint
from autograder.run import grade_notebook
from notebooks import IMPORTS, find, source_notebook, submission

NOISE = """def double(x):
    generator = torch.Generator(device=x.device).manual_seed(0)
    noise = torch.randn(x.shape, generator=generator, device=generator.device, dtype=x.dtype)
    return 2 * x + 0 * noise"""
RIGHT = "def double(x):\n    return 2 * x"
BY_HELPER = "def double(x):\n    return twice(x)"
TWICE = "def twice(x):\n    return 2 * x"
# The course's own cell, which no worker runs.
DATA = "data = torch.arange(6.0).reshape(2, 3)"
CONSTANTS = """
EPS = torch.finfo(torch.float32).eps
device = torch.device("cpu")
torch.set_printoptions(precision=3)
rng = torch.Generator().manual_seed(0)
"""
BY_CONSTANTS = """def double(x):
    return (2 * x + 0 * EPS + 0 * torch.rand(1, generator=rng, dtype=x.dtype)).to(device)"""
SEQUENTIAL = """class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.whole = nn.Sequential(nn.Linear(dim, dim), nn.ReLU())
        self.linear = self.whole[0]

    def forward(self, x):
        return self.whole(x)"""


@pytest.fixture
def source():
    """The tiny course, with a cell that computes something."""
    source = source_notebook()
    source.cells.insert(2, nbformat.v4.new_code_cell(DATA, id="data"))
    return source


def handed_in(source, *added, changed=None, **answers):
    """A submission with cells added above the first answer, and cells of the course changed: new text by old text."""
    notebook = submission(source, **answers)
    at = notebook.cells.index(find(notebook, "double"))
    notebook.cells[at:at] = [nbformat.v4.new_code_cell(text) for text in added]
    for old, new in (changed or {}).items():
        (cell,) = (cell for cell in notebook.cells if cell.source == old)
        cell.source = new
    return notebook


def told(graded):
    """All that the cells of a graded notebook printed."""
    return "".join(o.get("text", "") for cell in graded.notebook.cells for o in cell.get("outputs", []))


CLOTHES = {
    "noise on the generator's device": {"double": NOISE},
    "torch.jit.script": {"double": f"@torch.jit.script\n{RIGHT}"},
    "a print of the course's data above the answer": {"double": f"print(data.shape)\n{RIGHT}"},
    "a print of the course's data below the answer": {"double": f"{RIGHT}\nprint(double(data))"},
    "a raise of one's own": {"double": f"{RIGHT}\nassert double(torch.ones(1)) == 3"},
    "an answer below an exit": {"double": f"import sys\nsys.exit()\n{RIGHT}"},
    "annotations that name nothing": {"double": "from __future__ import annotations\ndef double(x: Any): return 2 * x"},
    "an nn.Sequential kept beside its layers": {"Layer": SEQUENTIAL},
}


@pytest.mark.parametrize("name", CLOTHES)
def test_an_answer(sandbox, source, name):
    graded = grade_notebook(sandbox, submission(source, **CLOTHES[name]), source)
    assert set(statuses(graded).values()) == {"passed"}, graded.items
    assert not any(o.output_type == "error" for cell in graded.notebook.cells for o in cell.get("outputs", []))


def test_a_helper_below_a_print_in_a_cell_of_ones_own(sandbox, source):
    answers = handed_in(source, f"print(data.mean())\n{TWICE}\nshape = data.shape", double=BY_HELPER)
    graded = grade_notebook(sandbox, answers, source)
    assert set(statuses(graded).values()) == {"passed"}, graded.items
    assert told(graded) == "[line 1 was left out while grading: NameError: name 'data' is not defined]\n"


def test_constants_made_by_calls_in_the_import_cell(sandbox, source):
    answers = handed_in(source, changed={IMPORTS: IMPORTS + CONSTANTS}, double=BY_CONSTANTS)
    assert set(statuses(grade_notebook(sandbox, answers, source)).values()) == {"passed"}


def test_a_changed_cell_of_the_course_runs_in_full(sandbox, source):
    changed = {DATA: f"{DATA}\nscale = data.max() / 2.5\nprint('mine')"}
    graded = grade_notebook(
        sandbox, handed_in(source, changed=changed, double="def double(x): return scale * x"), source
    )
    assert set(statuses(graded).values()) == {"passed"}, graded.items
    assert told(graded) == "mine\n"


def test_of_a_changed_cell_the_courses_own_statements_run_as_far_as_they_are_needed(sandbox, source):
    source.cells[1].source = text = (
        f"{IMPORTS}\nfrom checks.tiny import visible as check\nprint('slow'); limit = max(2, 1)"
    )
    for answer, expected in (("def double(x): return limit * x", "slow\n"), (RIGHT, "")):
        changed = {text: f"{text}\nimport math"}
        graded = grade_notebook(sandbox, handed_in(source, changed=changed, double=answer), source)
        assert set(statuses(graded).values()) == {"passed"}, graded.items
        assert told(graded) == expected


def test_torch_jit_script_finds_the_text_of_the_courses_helpers(sandbox, source):
    source.cells[1].source = f"{IMPORTS}\n\n\n{TWICE}\n\n\ndef thrice(x):\n    return twice(x) + x"
    answer = "def half(x):\n    return thrice(x) - x\n\n\ndouble = torch.jit.script(half)"
    graded = grade_notebook(sandbox, submission(source, double=answer), source)
    assert set(statuses(graded).values()) == {"passed"}, graded.items


def test_a_broken_constant_of_ones_own_is_no_fault_of_the_course(sandbox, source):
    changed = {IMPORTS: f"{IMPORTS}\nfrom torch import no_such_function as limit"}
    graded = grade_notebook(
        sandbox, handed_in(source, changed=changed, double="def double(x): return limit(x)"), source
    )
    assert statuses(graded)["double_check"] == "error"
    assert "line 4 of `cell 2`, which defines it, raised ImportError" in graded.items[0].message


@pytest.mark.parametrize("where", ["added", "changed"])
def test_a_cell_that_trains_leaves_the_answers_their_time(sandboxed, source, where):
    limits = replace(LIMITS, cell_seconds=1.5, aside_cell_seconds=0.3, aside_seconds=0.5, submission_seconds=6)
    training = f"limit = 2\n{TWICE}\nwhile True: pass"
    changed = {IMPORTS: f"{IMPORTS}\n{training}", DATA: f"{DATA}\n{training}"} if where == "changed" else {}
    added = [training] * 12 if where == "added" else []
    answers = handed_in(source, *added, changed=changed, double="def double(x): return limit * twice(x) / limit")
    with Sandbox(limits, preload=()) as sandbox:
        sandbox.worker().kill()
        graded = grade_notebook(sandbox, answers, source)
    assert set(statuses(graded).values()) == {"passed"}, graded.items


def test_an_answer_stays_above_what_trains_below_it(sandboxed, source):
    with Sandbox(replace(LIMITS, cell_seconds=0.5), preload=()) as sandbox:
        sandbox.worker().kill()
        for answer, status in ((f"{RIGHT}\nwhile True: pass", "passed"), ("while True: pass\ndouble = max", "timeout")):
            graded = grade_notebook(sandbox, submission(source, double=answer), source, only={"double_check"})
            assert statuses(graded) == {"double_check": status}, graded.items


def test_where_all_cells_run_a_raise_ends_its_cell_as_in_a_kernel(sandbox, source):
    answers = submission(source, double=f"1 / 0\n{RIGHT}")
    assert statuses(grade_notebook(sandbox, answers, source, run_cells="all"))["double_check"] == "error"
    assert statuses(grade_notebook(sandbox, answers, source))["double_check"] == "passed"


def test_the_error_that_counts_is_that_of_the_statement_that_defines_the_answer(sandbox, source):
    answers = submission(source, double="print(data)\n1 / 0\ndouble = nowhere.double")
    graded = grade_notebook(sandbox, answers, source)
    assert "name 'nowhere' is not defined" in graded.items[0].message
    assert find(graded.notebook, "double").outputs[-1].output_type == "error"


def test_parameters_count_once_whatever_holds_them():
    class Twice(nn.Module):
        def __init__(self, more):
            super().__init__()
            self.whole = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            self.linear = self.whole[0]
            if more:
                self.more = nn.Parameter(torch.zeros(1))

    shapes = {"linear.weight": (3, 2), "linear.bias": (3,)}
    expect_parameters(Twice(more=False), shapes)
    with pytest.raises(Complaint, match="more"):
        expect_parameters(Twice(more=True), shapes)


DRAWN = torch.Generator()
# What works where the inputs are on a GPU, though it makes tensors on the CPU.
ELSEWHERE = {
    "noise on the generator's device": lambda x: x + torch.rand(x.shape, generator=DRAWN).log().to(x.device),
    "a table moved": lambda x: torch.eye(3).to(x)[x.long()],
    "a table moved, and one left over": lambda x: (torch.eye(3).to(x), torch.ones(2).sum() * x)[1],
    "a tensor copied": lambda x: torch.empty_like(x).copy_(torch.arange(3.0)),
    "numbers read": lambda x: sum(torch.arange(3.0).tolist()) * x,
    "a coin of one": lambda x: x if torch.rand(1) < 0.5 else -x,
    "coins for several": lambda x: x if (torch.rand(4) < 0.5)[2] else -x,
    "by way of NumPy": lambda x: torch.from_numpy(x.cpu().numpy() + 1).to(x.device),
}
LEFT_THERE = {
    "made there": lambda x: x + torch.ones(3),
    "returned": lambda x: torch.ones(2, 3),
    "looked up": lambda x: torch.eye(3)[x.long()],
    "one moved, another returned": lambda x: (x + torch.ones(3).to(x.device), torch.zeros(2))[1],
    "looked up, and another moved": lambda x: (torch.eye(3)[x.long()], torch.eye(3).to(x))[0],
    "met, then moved": lambda x: (lambda places: (x.gather(1, places), places.to(x))[0])(torch.arange(6).view(2, 3)),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_leaves_the_cpu_may_be_made_there(name):
    expect_device(ELSEWHERE[name], {"x": torch.zeros(2, 3)})


@pytest.mark.parametrize("name", LEFT_THERE)
def test_what_stays_on_the_cpu_is_refused(name):
    with pytest.raises(Complaint, match="GPU"):
        expect_device(LEFT_THERE[name], {"x": torch.zeros(2, 3)})


def test_one_layer_under_two_promised_names_is_one_too_few():
    shared = nn.ModuleList([nn.Linear(1, 1, bias=False)] * 2)
    with pytest.raises(Complaint, match=r"1\.weight"):
        expect_parameters(shared, {"0.weight": (1, 1), "1.weight": (1, 1)})
