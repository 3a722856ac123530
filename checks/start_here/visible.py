"""The visible checks of chapter 00."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from autograder.checks import call, expect_close, expect_tensor
from autograder.course.card import visible


def _expect_shape(value: Any, shape: tuple[int, ...], says: str, causes: Mapping[tuple[int, ...], str]) -> None:
    expect_tensor(value)
    found = tuple(value.shape)
    cause = f". Likely cause: {causes[found]}" if found in causes else ""
    assert found == shape, f"the shape should be {says} = {shape}, got {found}{cause}"


@visible("the means of two rows, by hand")
def row_means(function: Callable) -> None:
    """The exercise with which section 0.4 shows what a check says."""
    means = call(function, torch.tensor([[1.0, 3.0, 5.0], [2.0, 2.0, 8.0]]))
    _expect_shape(means, (2,), "(number of rows,)", {(3,): "the mean runs over the rows: it should run along each row"})
    mistakes = {"the numbers are added up, but not divided by how many there are": lambda: torch.tensor([9.0, 12.0])}
    expect_close(means, torch.tensor([3.0, 4.0]), "row_means(x)", mistakes)


@visible("the shape, and three dot products by hand")
def batch_dot(function: Callable) -> None:
    """The three pairs of rows in the text."""
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, -1.0]])
    b = torch.tensor([[2.0, 1.0], [2.0, 0.0], [5.0, 3.0]])
    dots = call(function, a, b)
    causes = {
        (2,): "the sum runs over the batch: it should run along d",
        (): "everything is summed to one number: sum along d only",
        (3, 2): "the products are not summed",
        (3, 2, 2): "the products are not summed, and there are too many of them",
        (3, 3): "each row of a meets every row of b: row i of a should meet row i of b only",
        (3, 1): "the summed dimension is kept, with size 1",
    }
    _expect_shape(dots, (3,), "(B,)", causes)
    mistakes = {
        "the products are averaged instead of summed": lambda: torch.tensor([2.0, 3.0, -1.5]),
        "the result is divided by the lengths of the vectors": lambda: torch.tensor([0.8, 0.6, -3 / 34**0.5]),
        "only the first row of b is used": lambda: torch.tensor([4.0, 10.0, -1.0]),
        "only the first row of a is used": lambda: torch.tensor([4.0, 2.0, 11.0]),
        "b is not used": lambda: torch.tensor([5.0, 25.0, 1.0]),
        "a sign is lost": lambda: torch.tensor([4.0, 6.0, 3.0]),
    }
    expect_close(dots, torch.tensor([4.0, 6.0, -3.0]), "batch_dot(a, b)", mistakes)


@visible("the shape, and all dot products of two sequences by hand")
def pairwise_dots(function: Callable) -> None:
    """Two sequences: the first is the one in the text."""
    x = torch.tensor([[[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]], [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]])
    first_y = [[1.0, 1.0, 1.0], [2.0, 0.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 1.0]]
    second_y = [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [4.0, 0.0, 0.0], [1.0, 1.0, -1.0]]
    dots = call(function, x, torch.tensor([first_y, second_y]))
    causes = {
        (2, 4, 2): "a row for each vector of y: the rows belong to x, the columns to y",
        (2, 2, 4, 3): "the products are not summed",
        (2, 4): "the batch is missing",
        (2, 2, 2, 4): "every sequence meets every other: sequences must not mix",
        (2, 2, 2): "y is not used",
    }
    _expect_shape(dots, (2, 2, 4), "(B, n, m)", causes)
    first = torch.tensor([[3.0, 2.0, 2.0, 2.0], [0.0, 0.0, 2.0, -1.0]])
    second = torch.tensor([[1.0, 3.0, 4.0, 1.0], [0.0, 1.0, 4.0, 1.0]])
    expected = torch.stack([first, second])
    x_lengths = torch.tensor([[5.0, 2.0], [3.0, 1.0]]).sqrt()
    y_lengths = torch.tensor([[[3.0, 4.0, 10.0, 1.0]], [[1.0, 5.0, 16.0, 3.0]]]).sqrt()
    mistakes = {
        "`reshape` or `view` where a transpose is meant: it keeps the order of the numbers in memory": lambda: (
            torch.tensor([[[3.0, 1, 1, 4], [-1, 0, 0, 2]], [[0.0, 4, 5, 0], [0, 1, 0, 1]]])
        ),
        "the products are averaged instead of summed": lambda: expected / 3,
        "the result is divided by √d: that comes in chapter 3": lambda: expected / 3**0.5,
        "the weights of chapter 2 come too early: no softmax here": lambda: expected.softmax(-1),
        "all sequences of y are summed up: sequences must not mix": lambda: torch.tensor(
            [[[3.0, 7, 6, 1], [1, -2, 2, 1]], [[4.0, 5, 8, 2], [1, 3, 4, 1]]]
        ),
        "the result is divided by the lengths of the vectors": lambda: expected / (x_lengths[..., None] * y_lengths),
        "only the first sequence's y is used, for the whole batch": lambda: torch.stack(
            [first, torch.tensor([[3.0, 2, 4, 1], [1, 2, 0, 0]])]
        ),
        "only the first sequence's x is used, for the whole batch": lambda: torch.stack(
            [first, torch.tensor([[0.0, 5, 4, -1], [1, -2, 0, 2]])]
        ),
    }
    expect_close(dots, expected, "pairwise_dots(x, y)", mistakes)
