"""The visible checks of chapter 01."""

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from autograder.checks import Complaint, call, complain, expect, expect_close, expect_raises, naming, record_calls
from autograder.course.card import visible
from checks.weighted_averages import mistakes as m


def _averages(function: Callable, x: Tensor, weights: Tensor) -> Tensor:
    try:
        return call(function, x, weights)
    except Complaint:
        # Weights that are not square then fit only if they are turned round beforehand.
        if _reads_columns(function, x, weights):
            complain(m.weighted_avg.TRANSPOSED)
        if _exchanges_factors(function):
            complain(m.weighted_avg.EXCHANGED)
        raise


def _reads_columns(function: Callable, x: Tensor, weights: Tensor) -> bool:
    with suppress(Exception):
        return torch.allclose(function(x, weights.mT.contiguous()), weights @ x)
    return False


def _exchanges_factors(function: Callable) -> bool:
    x, weights = torch.tensor([[[1.0, 2.0], [3.0, 5.0]]]), torch.tensor([[[0.25, 0.75], [0.5, 0.5]]])
    with suppress(Exception):
        return torch.allclose(function(x.clone(), weights.clone()), x @ weights)
    return False


def _sums_batch(function: Callable) -> bool:
    # With a batch of one, a sum over it looks as if its dimension had only been squeezed away.
    x, weights = torch.tensor([[[1.0], [2.0]], [[4.0], [8.0]]]), torch.tensor([[[0.25, 0.75]], [[0.5, 0.5]]])
    with suppress(Exception):
        return torch.allclose(function(x.clone(), weights.clone()), (weights @ x).sum(dim=0))
    return False


def _expect_averages(function: Callable) -> None:
    # The example of the text, n = 4 averages of m = 3 vectors; then two sequences at once, with d = 1.
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [4.0, 2.0]]])
    rows = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.25, 0.25, 0.5], [0.5, 0.5, 0.0]]
    expected = torch.tensor([[[1.0, 0.0], [4.0, 2.0], [2.25, 1.25], [0.5, 0.5]]])
    mistakes = {
        m.weighted_avg.AVERAGED: lambda: expected / 3,
        m.weighted_avg.PLAIN_MEAN: lambda: torch.tensor([[[5 / 3, 1.0]] * 4]),
        m.weighted_avg.BATCH_SUMMED: lambda: expected[0] if _sums_batch(function) else expected,
        m.weighted_avg.SOFTMAX: lambda: torch.tensor([rows]).softmax(-1) @ x,
    }
    expect_close(_averages(function, x, torch.tensor([rows])), expected, "the average of the text's example", mistakes)
    pair = torch.tensor([[[1.0], [0.0], [4.0]], [[2.0], [6.0], [0.0]]])
    weights = torch.tensor([rows, [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]])
    first, second = torch.tensor([[1.0], [4.0], [2.25], [0.5]]), torch.tensor([[6.0], [4.0], [2.0], [3.0]])
    mistakes = {
        m.weighted_avg.FIRST_WEIGHTS: lambda: torch.stack([first, torch.tensor([[2.0], [0.0], [2.0], [4.0]])]),
        m.weighted_avg.FIRST_SEQUENCE: lambda: torch.stack([first, torch.tensor([[0.0], [0.5], [1.0], [2.0]])]),
    }
    expect_close(call(function, pair, weights), torch.stack([first, second]), "the average of two sequences", mistakes)


@visible(
    "the example of the text, and two sequences by hand",
    graded="other cases, large numbers, loops, inputs unchanged, gradients, dtypes and devices",
)
def weighted_avg(function: Callable) -> None:
    """Values by hand."""
    _expect_averages(function)


@visible(
    "the example of the text, two sequences by hand, one einsum, and other numbers of dimensions",
    graded="other cases, large numbers, loops, inputs unchanged, gradients, dtypes and devices",
)
def weighted_avg_einsum(function: Callable) -> None:
    """Values by hand, and with an einsum; then the same in two dimensions and in four."""
    _expect_averages(function)
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 2.0]])
    weights = torch.tensor([[0.0, 0.0, 1.0], [0.25, 0.25, 0.5]])
    count = record_calls(function, x[None].clone(), weights[None].clone()).count("einsum")
    expect(count == 1, m.weighted_avg.ONE_EINSUM, "the number of its calls", expected=1, got=count)
    averages = torch.tensor([[4.0, 2.0], [2.25, 1.25]])
    for leading in ((), (1, 2)):
        more_x, more_weights = x.repeat(*leading, 1, 1), weights.repeat(*leading, 1, 1)
        asked = f"x {tuple(more_x.shape)} and weights {tuple(more_weights.shape)}"
        with naming(m.weighted_avg.THREE_DIMENSIONS):
            averaged = call(function, more_x, more_weights)
            expect_close(averaged, averages.expand(*leading, 2, 2), "the average", asked=asked)


@visible(
    "widths 1, 2 and 3 by hand, one that is wider than there are positions, and the error for 0",
    graded="other cases and loops",
)
def window_weights(function: Callable) -> None:
    """The matrices in the text, a width larger than `n`, and one that is too small."""
    half, third = 1 / 2, 1 / 3
    expected = torch.tensor([[1.0, 0, 0, 0], [half, half, 0, 0], [0, half, half, 0], [0, 0, half, half]])
    wrong = {
        m.window_weights.FORWARD: [[half, half, 0, 0], [0, half, half, 0], [0, 0, half, half], [0, 0, 0, 1]],
        m.window_weights.DIVIDED_BY_WIDTH: [
            [half, 0, 0, 0],
            [half, half, 0, 0],
            [0, half, half, 0],
            [0, 0, half, half],
        ],
        m.window_weights.ONE_TOO_MANY: [[1, 0, 0, 0], [half, half, 0, 0], [third] * 3 + [0], [0] + [third] * 3],
        m.window_weights.BOTH_SIDES: [[half, half, 0, 0], [third] * 3 + [0], [0] + [third] * 3, [0, 0, half, half]],
        m.window_weights.WRAPPED: [[half, 0, 0, half], [half, half, 0, 0], [0, half, half, 0], [0, 0, half, half]],
        m.window_weights.COLUMNS: [[half, 0, 0, 0], [half, half, 0, 0], [0, half, half, 0], [0, 0, half, 1]],
        m.window_weights.NOT_KEPT: [[1, 0, 0, 0], [1, half, 0, 0], [0, half, half, 0], [0, 0, half, half]],
        m.window_weights.ONE_TOO_FEW: torch.eye(4).tolist(),
        m.window_weights.OWN_LEFT_OUT: [[0, 0, 0, 0], [1, 0, 0, 0], [half, half, 0, 0], [0, half, half, 0]],
        m.window_weights.TRANSPOSED: expected.mT.tolist(),
        m.window_weights.NOT_DIVIDED: [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]],
        m.window_weights.WIDTH_IGNORED: [[1, 0, 0, 0], [half, half, 0, 0], [third] * 3 + [0], [1 / 4] * 4],
    }
    mistakes = {mistake: lambda rows=rows: torch.tensor(rows) for mistake, rows in wrong.items()}
    mistakes[m.window_weights.SOFTMAX] = lambda: mistakes[m.window_weights.NOT_DIVIDED]().float().softmax(-1)
    expect_close(call(function, 4, 2), expected, "window_weights(4, 2)", mistakes, torch.float32)
    threes = [
        [1.0, 0, 0, 0, 0],
        [half, half, 0, 0, 0],
        [third] * 3 + [0, 0],
        [0] + [third] * 3 + [0],
        [0, 0] + [third] * 3,
    ]
    repeated = torch.tensor([threes[0], [2 * third, third, 0, 0, 0], *threes[2:]])
    with naming(m.window_weights.WIDTH_2):
        found = call(function, 5, 3)
    mistakes = {m.window_weights.FIRST_REPEATED: lambda: repeated, m.window_weights.WIDTH_2: lambda: expected}
    asked, otherwise = "window_weights(5, 3)", m.window_weights.WIDTH_2
    expect_close(found, torch.tensor(threes), asked, mistakes, torch.float32, otherwise=otherwise)
    expect_close(call(function, 5, 1), torch.eye(5), "window_weights(5, 1)", dtype=torch.float32)
    expect_close(call(function, 2, 3), expected[:2, :2], "window_weights(2, 3)", dtype=torch.float32)
    expect_raises(ValueError, lambda: function(4, 0), "window_weights(4, 0)")
