"""The visible checks of chapter 01."""

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from autograder.checks import call, expect_close
from autograder.course.card import visible


def _averages(function: Callable, x: Tensor, weights: Tensor) -> Tensor:
    try:
        return call(function, x, weights)
    except AssertionError:
        # Weights that are not square then fit only if they are turned round beforehand.
        assert not _reads_columns(function, x, weights), (
            "the weights are transposed: `weights[b, i, j]` is how much output i takes from position j"
        )
        raise


def _reads_columns(function: Callable, x: Tensor, weights: Tensor) -> bool:
    with suppress(Exception):
        return torch.allclose(function(x, weights.mT.contiguous()), weights @ x)
    return False


def _expect_averages(function: Callable, name: str) -> None:
    # The example of the text, n = 4 averages of m = 3 vectors; then two sequences at once, with d = 1.
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [4.0, 2.0]]])
    rows = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.25, 0.25, 0.5], [0.5, 0.5, 0.0]]
    expected = torch.tensor([[[1.0, 0.0], [4.0, 2.0], [2.25, 1.25], [0.5, 0.5]]])
    mistakes = {
        "the products are averaged instead of summed: the weights already sum to 1": lambda: expected / 3,
        "the weights are ignored: this is the plain mean": lambda: torch.tensor([[[5 / 3, 1.0]] * 4]),
    }
    expect_close(_averages(function, x, torch.tensor([rows])), expected, f"{name}(x, weights)", mistakes)
    pair = torch.tensor([[[1.0], [0.0], [4.0]], [[2.0], [6.0], [0.0]]])
    weights = torch.tensor([rows, [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]])
    first, second = torch.tensor([[1.0], [4.0], [2.25], [0.5]]), torch.tensor([[6.0], [4.0], [2.0], [3.0]])
    mistakes = {
        "only the first sequence's weights are used, for the whole batch": lambda: torch.stack(
            [first, torch.tensor([[2.0], [0.0], [2.0], [4.0]])]
        ),
        "only the first sequence is averaged, for the whole batch": lambda: torch.stack(
            [first, torch.tensor([[0.0], [0.5], [1.0], [2.0]])]
        ),
    }
    expect_close(call(function, pair, weights), torch.stack([first, second]), "the average of two sequences", mistakes)


@visible("the example of the text, and two sequences by hand")
def weighted_avg(function: Callable) -> None:
    """Values by hand."""
    _expect_averages(function, "weighted_avg")


@visible("the example of the text, and two sequences by hand")
def weighted_avg_einsum(function: Callable) -> None:
    """Values by hand."""
    _expect_averages(function, "weighted_avg_einsum")


def expect_rows_sum_to_one(weights: Tensor, width: int) -> None:
    """Fail for a matrix whose beginning was divided by the whole width, a mistake with a message of its own."""
    sums = weights.double().sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5), (
        f"each row is an average, so each row should sum to 1, but row {int((sums - 1).abs().argmax())} sums to "
        f"{sums[(sums - 1).abs().argmax()].item():.3g} (width {width})"
    )


@visible("four positions, width 2, by hand")
def window_weights(function: Callable) -> None:
    """The matrix in the text."""
    expected = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]])
    third = 1 / 3
    mistakes = {
        "the window looks forward: output i takes from i and the positions *before* it": lambda: torch.tensor(
            [[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1.0]]
        ),
        "every row is divided by `width`: at the beginning there are fewer positions": lambda: torch.tensor(
            [[0.5, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]]
        ),
        "the window holds `width` positions *besides* its own": lambda: torch.tensor(
            [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [third, third, third, 0], [0, third, third, third]]
        ),
        "the window reaches to both sides: output i takes from i and the positions *before* it": lambda: torch.tensor(
            [[0.5, 0.5, 0, 0], [third, third, third, 0], [0, third, third, third], [0, 0, 0.5, 0.5]]
        ),
        "the columns sum to 1, but the rows should": lambda: torch.tensor(
            [[0.5, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 1.0]]
        ),
        "the window holds one position too few": lambda: torch.eye(4),
        "the matrix is transposed: it should have a row for each output": lambda: expected.mT,
        "the rows are not divided by anything": lambda: torch.tensor(
            [[1.0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
        ),
        "the width is ignored: this is the mean of everything so far": lambda: torch.tensor(
            [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [third, third, third, 0], [0.25, 0.25, 0.25, 0.25]]
        ),
    }
    weights = call(function, 4, 2)
    expect_close(weights, expected, "window_weights(4, 2)", mistakes, torch.float32)
