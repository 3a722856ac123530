"""Right answers in unusual clothes: what works in a notebook works in the grader."""

import pytest

from autograder.run import grade_notebook
from notebooks import source_notebook, submission

NOISE = """def double(x):
    generator = torch.Generator(device=x.device).manual_seed(0)
    noise = torch.rand(x.shape, generator=generator, device=x.device, dtype=x.dtype)
    return 2 * x + 0 * noise"""


@pytest.mark.parametrize(
    "answers",
    [
        {"double": NOISE},
        {"double": "@torch.jit.script\ndef double(x):\n    return 2 * x"},
    ],
    ids=["noise on the generator's device", "torch.jit.script"],
)
def test_an_answer(sandbox, answers):
    source = source_notebook()
    items = grade_notebook(sandbox, submission(source, **answers), source).items
    assert {item.status for item in items} == {"passed"}, items
