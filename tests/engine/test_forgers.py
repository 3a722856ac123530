"""Each forger strikes: it fools a check that trusts what student code leaves behind, and never one that does not."""

import contextlib
import os
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from autograder import checks
from autograder.wire.proxy import Link, WorkerLost
from checks.forgers import forging_class, forging_function

IMPORTS = "import torch\nfrom torch import nn\n"
LAYER = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x)
"""
TWICE = "\ndef twice(x, mask):\n    return 2 * x * mask\n"
SHAPES = {"linear.weight": (2, 3), "linear.bias": (2,)}
CLASSES = [pytest.param(a, id=a.title) for a in forging_class("Layer")]
FUNCTIONS = [pytest.param(a, id=a.title) for a in forging_function("twice")]
# What strikes the engine's own process, or another part of a check than the one here that trusts.
ELSEWHERE = {
    "forged: parameters shows none",
    "forged: the worker claims that what it was given has changed",
    "forged: it forgets its weights after the first call",
    "forged: it gives again what it gave for these sizes",
    "forged: train and eval spoil the weights",
    "forged: __deepcopy__ returns the module itself, spoilt",
    "forged: named_parameters shows others",
    "forged: it computes with weights of its own",
    "forged: it empties its arguments and returns one",
    "forged: it is honest for its first three calls",
    "forged: it gives again what it gave at first",
    "forged: torch.Tensor's conversions are patched",
}


def _layer(state: dict[str, Tensor], x: Tensor) -> Tensor:
    return F.linear(x, state["linear.weight"], state["linear.bias"])


def check_layer(cls: Callable) -> None:
    """As hidden tests are written."""
    module, state = checks.build(cls, SHAPES)
    for _ in range(2):
        x = checks.randn(4, 3)
        with checks.unchanged(x=x):
            value = checks.call(module, x)
        checks.expect_close(value, _layer(state, x))
    x = checks.randn(4, 3)
    checks.expect_parameter_gradients(module, _layer, state, [x])
    checks.expect_close(checks.call(module.eval(), x), _layer(state, x))


def trust_layer(cls: Callable) -> None:
    """As they must not be written: what the oracle computes from has been in the student's hands."""
    module = cls().double()
    state = module.state_dict()
    for name, _ in module.named_parameters():
        state[name] = torch.randn(state[name].shape, dtype=torch.float64)
    module.load_state_dict(state)
    state, x = module.state_dict(), torch.randn(4, 3, dtype=torch.float64)
    value = module(x).double()
    expected = _layer({name: v.double() for name, v in state.items()}, x)
    assert torch.allclose(value, expected, rtol=4e-2, atol=4e-2, equal_nan=True)


def _inputs() -> tuple[Tensor, Tensor]:
    return checks.randn(4, 3), checks.rand_mask(4, 3)


def check_twice(function: Callable) -> None:
    for _ in range(5):
        x, mask = _inputs()
        with checks.unchanged(x=x, mask=mask):
            value = checks.call(function, x, mask)
        checks.expect_close(value, 2 * x * mask, dtype=torch.float64)


def trust_twice(function: Callable) -> None:
    x, mask = _inputs()
    value = function(x, mask)
    assert torch.allclose(value, 2 * x * mask, rtol=4e-2, atol=4e-2, equal_nan=True)


def _fools(text: str, name: str, check: Callable) -> bool:
    """Whether an answer passes a check that runs in its own process, as in plain nbgrader."""
    if (child := os.fork()) == 0:
        status = 1
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(None):
            namespace: dict = {}
            exec(text, namespace)
            check(namespace[name])
            status = 0
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _strike(sandbox, text: str, name: str, check: Callable) -> None:
    link = Link(sandbox.worker(), sandbox.limits)
    link.allow(60)
    try:
        link.run(IMPORTS + text, "<answer>")
        link.take_output()
        with pytest.raises((AssertionError, RuntimeError, TypeError, WorkerLost)):
            check(link.named(name))
        assert link.lost or "fired" in link.take_output()
    finally:
        link.close()


@pytest.mark.parametrize("answer", CLASSES)
def test_a_class_strikes_in_vain(sandbox, answer):
    _strike(sandbox, answer.cell(LAYER), "Layer", check_layer)


@pytest.mark.parametrize("answer", FUNCTIONS)
def test_a_function_strikes_in_vain(sandbox, answer):
    _strike(sandbox, answer.cell(TWICE), "twice", check_twice)


@pytest.mark.parametrize("answer", [a for a in CLASSES if a.id not in ELSEWHERE])
def test_a_class_fools_a_check_that_trusts(answer):
    assert _fools(IMPORTS + answer.cell(LAYER), "Layer", trust_layer)


@pytest.mark.parametrize("answer", [a for a in FUNCTIONS if a.id not in ELSEWHERE])
def test_a_function_fools_a_check_that_trusts(answer):
    assert _fools(IMPORTS + answer.cell(TWICE), "twice", trust_twice)


def test_honest_answers_pass(sandbox):
    link = Link(sandbox.worker(), sandbox.limits)
    link.allow(60)
    link.run(IMPORTS + LAYER + TWICE, "<answer>")
    check_layer(link.named("Layer"))
    check_twice(link.named("twice"))
    link.close()
    assert _fools(IMPORTS + LAYER, "Layer", trust_layer)
    assert not _fools(IMPORTS + LAYER.replace("self.linear(x)", "0 * self.linear(x)"), "Layer", trust_layer)
