"""The visible checks of chapter 05."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from autograder.card import visible
from autograder.checks import call, expect_close, expect_raises, expect_tensor, unchanged


def _row(*values: float) -> Callable[[], Tensor]:
    return lambda: torch.tensor([values], dtype=torch.float64)


# What [1, 0, 1, 0] becomes at position 2, when the mistake named is made.
_SIN, _COS, _SLOW_SIN, _SLOW_COS = math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)
_ROTATE_MISTAKES = {
    "features k and k + d/2 are turned together (the convention of some libraries): here the pairs are 2k and 2k + 1": (
        _row(_COS - _SIN, 0, _SIN + _COS, 0)
    ),
    "the pairs are turned backwards: the first of the two is a cos t - b sin t": _row(
        _COS, -_SIN, _SLOW_COS, -_SLOW_SIN
    ),
    "the positions given are not used: x came back as it was": _row(1, 0, 1, 0),
    "all first halves of the pairs come before all second halves: feature 2k + 1 belongs beside feature 2k": _row(
        _COS, _SLOW_COS, _SIN, _SLOW_SIN
    ),
    "the exponent is -k / d: it should be -2k / d, with 2k = 0, 2, 4, …": _row(
        _COS, _SIN, math.cos(0.2), math.sin(0.2)
    ),
    "the exponent is doubled: 2k is already the pair's first feature": _row(_COS, _SIN, math.cos(2e-4), math.sin(2e-4)),
    "the angles grow from pair to pair: the exponent of base is negative": _row(
        _COS, _SIN, math.cos(200), math.sin(200)
    ),
    "every pair is turned by the same angle: does an integer division make the exponent 0?": _row(
        _COS, _SIN, _COS, _SIN
    ),
    "the second of a pair is computed from the first after it was turned: keep the old one": _row(
        _COS, _COS * _SIN, _SLOW_COS, _SLOW_COS * _SLOW_SIN
    ),
    "sine and cosine are swapped": _row(_SIN, _COS, _SLOW_SIN, _SLOW_COS),
    "the position's vector is added: x should be turned": _row(1 + _SIN, _COS, 1 + _SLOW_SIN, _SLOW_COS),
}


@visible("the row [1, 0, 1, 0] at position 2 by hand, shapes, and the ValueError")
def rotate(rotate: Callable) -> None:
    """The worked example of the text, a batch of heads, an odd number of features."""
    x, positions = torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([2])
    with unchanged(x=x, positions=positions):
        turned = call(rotate, x, positions)
    expected = torch.tensor([[_COS, _SIN, _SLOW_COS, _SLOW_SIN]], dtype=torch.float64)
    expect_close(turned, expected, "[1, 0, 1, 0] at position 2", _ROTATE_MISTAKES, tolerance=1e-4)
    heads = torch.ones(2, 3, 3, 4)
    expect_tensor(call(rotate, heads, torch.arange(3)), heads.shape, heads.dtype, "x of shape (2, 3, 3, 4), rotated,")
    expect_raises(ValueError, lambda: rotate(torch.ones(2, 5), torch.arange(2)), "x with 5 features, an odd number,")
