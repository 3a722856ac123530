"""The visible checks of chapter 00."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch

from autograder.checks import (
    Complaint,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_close,
    expect_not_calling,
    expect_tensor,
    naming,
)
from autograder.course.card import visible
from checks.start_here import mistakes as m


class _Shown(Mistake):
    """Of the example with which section 0.6 shows what a check says: nobody is asked for an answer."""

    OVER_ROWS = "the mean runs over the rows: it should run along each row"
    NOT_DIVIDED = "the numbers are added up, but not divided by how many there are"


def _expect_shape(value: Any, shape: tuple[int, ...], sizes: str, causes: Mapping[tuple[int, ...], Mistake]) -> None:
    expect_tensor(value)
    came = tuple(value.shape)
    told = {"expected": f"{sizes} = {shape}", "got": came}
    expect(came == shape, causes.get(came, Unexplained.SHAPE), "the shape", **told)


def _call(
    function: Callable, first: torch.Tensor, second: torch.Tensor, *mistakes: tuple[Mistake, Callable[..., Any]]
) -> Any:
    """Call an answer; if it fails because it computes one of these, which fit equal sizes only, say so."""
    try:
        return call(function, first, second)
    except Complaint:
        for mistake, wrong in mistakes:
            if _computes(function, wrong, first.shape[:-2]):
                complain(mistake)
        raise


def _computes(function: Callable, wrong: Callable[..., Any], leading: torch.Size) -> bool:
    square = torch.tensor([[1.0, 2.0], [3.0, 5.0]]).repeat(*leading, 1, 1)
    with suppress(Exception):
        return torch.allclose(function(square.clone(), square.clone()), wrong(square, square))
    return False


def _learning(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """The same, computed from something that is learned: gradients are recorded, and NumPy refuses such tensors."""
    return [tensor.clone().requires_grad_().clone() for tensor in tensors]  # a leaf may not be changed in place


@visible("the means of two rows, by hand")
def row_means(function: Callable) -> None:
    """The exercise with which section 0.6 shows what a check says."""
    means = call(function, torch.tensor([[1.0, 3.0, 5.0], [2.0, 2.0, 8.0]]))
    _expect_shape(means, (2,), "(number of rows,)", {(3,): _Shown.OVER_ROWS})
    mistakes = {_Shown.NOT_DIVIDED: lambda: torch.tensor([9.0, 12.0])}
    expect_close(means, torch.tensor([3.0, 4.0]), "row_means(x)", mistakes)


@visible(
    "three dot products by hand, in a table, in two tables, and one alone",
    graded="other cases, sizes of 1, large numbers, loops, inputs unchanged, gradients, dtypes and devices",
)
def batch_dot(function: Callable) -> None:
    """The three pairs of rows in the text, then in more dimensions and in fewer."""
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, -1.0]])
    b = torch.tensor([[2.0, 1.0], [2.0, 0.0], [5.0, 3.0]])
    right = torch.tensor([4.0, 6.0, -3.0])
    two_tables = torch.stack([a, b]), torch.stack([b, a]), torch.stack([right, right])
    one_pair = a[0].clone(), b[0].clone(), right[0]
    dots = _call(function, a, b, (m.batch_dot.MATRIX_PRODUCT, torch.matmul))
    causes = {
        (2,): m.batch_dot.OVER_BATCH,
        (): m.batch_dot.OVER_ALL,
        (3, 2): m.batch_dot.NOT_SUMMED,
        (3, 2, 2): m.batch_dot.NOT_SUMMED,
        (3, 3): m.batch_dot.EVERY_ROW,
        (2, 2): m.batch_dot.EVERY_COLUMN,
        (3, 1): m.batch_dot.SIZE_KEPT,
        (3, 1, 1): m.batch_dot.SIZE_KEPT,
    }
    _expect_shape(dots, (3,), "(B,)", causes)
    wrong = {
        m.batch_dot.AVERAGED: [2.0, 3.0, -1.5],
        m.batch_dot.LENGTHS: [0.8, 0.6, -3 / 34**0.5],
        m.batch_dot.FIRST_B: [4.0, 10.0, -1.0],
        m.batch_dot.B_UNUSED: [5.0, 25.0, 1.0],
        m.batch_dot.SIGN_LOST: [4.0, 6.0, 3.0],
        m.batch_dot.B_SUMMED: [17.0, 43.0, -4.0],
        m.batch_dot.SUMMED_FIRST: [9.0, 14.0, -8.0],
    }
    mistakes = {mistake: lambda values=values: torch.tensor(values) for mistake, values in wrong.items()}
    expect_close(dots, right, "batch_dot(a, b)", mistakes)
    call(function, *_learning(a, b))
    for more_a, more_b, more_dots in (two_tables, one_pair):
        asked = f"a {tuple(more_a.shape)} and b {tuple(more_b.shape)}"
        with naming(m.batch_dot.TWO_DIMENSIONS):
            expect_close(call(function, more_a, more_b), more_dots, "batch_dot(a, b)", asked=asked)


@visible(
    "the shape, all dot products of two sequences by hand, and no einsum",
    graded="other cases, sizes of 1, large numbers, loops, inputs unchanged, gradients, dtypes and devices",
)
def pairwise_dots(function: Callable) -> None:
    """Two sequences: the first is the one in the text."""
    x = torch.tensor([[[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]], [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]])
    first_y = [[1.0, 1.0, 1.0], [2.0, 0.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 1.0]]
    second_y = [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [4.0, 0.0, 0.0], [1.0, 1.0, -1.0]]
    y = torch.tensor([first_y, second_y])
    lined_up = m.pairwise_dots.LINED_UP
    summed = (lined_up, lambda x, y: (x * y).sum(-1))
    all_turned = (m.pairwise_dots.T_TURNS_ALL, lambda x, y: x @ y.permute(2, 1, 0))
    untransposed = (m.pairwise_dots.NOT_TURNED, torch.matmul)
    dots = _call(function, x, y, untransposed, all_turned, summed, (lined_up, torch.mul))
    causes = {
        (2, 4, 2): m.pairwise_dots.ROWS_OF_Y,
        (2, 2, 4, 3): m.pairwise_dots.NOT_SUMMED,
        (2, 4): m.pairwise_dots.BATCH_SUMMED,
        (2, 2, 2, 4): m.pairwise_dots.ALL_SEQUENCES,
        (4, 8): m.pairwise_dots.ALL_SEQUENCES,
        (2, 2, 2): m.pairwise_dots.Y_UNUSED,
    }
    _expect_shape(dots, (2, 2, 4), "(B, n, m)", causes)
    first = torch.tensor([[3.0, 2.0, 2.0, 2.0], [0.0, 0.0, 2.0, -1.0]])
    second = torch.tensor([[1.0, 3.0, 4.0, 1.0], [0.0, 1.0, 4.0, 1.0]])
    right = torch.stack([first, second])
    x_lengths = torch.tensor([[5.0, 2.0], [3.0, 1.0]]).sqrt()
    y_lengths = torch.tensor([[[3.0, 4.0, 10.0, 1.0]], [[1.0, 5.0, 16.0, 3.0]]]).sqrt()
    wrong = {
        m.pairwise_dots.RESHAPED: torch.tensor(
            [[[3.0, 1, 1, 4], [-1, 0, 0, 2]], [[0.0, 4, 5, 0], [0, 1, 0, 1]]],
        ),
        m.pairwise_dots.RESULT_RESHAPED: right.mT.reshape(2, 2, 4),
        m.pairwise_dots.ROW_MEETS_SEQUENCE: (x[:, :, None] * y).sum(-1),
        m.pairwise_dots.AVERAGED: right / 3,
        m.pairwise_dots.SCALED: right / 3**0.5,
        m.pairwise_dots.SOFTMAX: right.softmax(-1),
        m.pairwise_dots.Y_SUMMED: torch.tensor([[[3.0, 7, 6, 1], [1, -2, 2, 1]], [[4.0, 5, 8, 2], [1, 3, 4, 1]]]),
        m.pairwise_dots.SUMMED_FIRST: x.sum(-1)[:, :, None] * y.sum(-1)[:, None],
        m.pairwise_dots.LENGTHS: right / (x_lengths[..., None] * y_lengths),
        m.pairwise_dots.FIRST_Y: torch.stack([first, torch.tensor([[3.0, 2, 4, 1], [1, 2, 0, 0]])]),
        m.pairwise_dots.FIRST_X: torch.stack([first, torch.tensor([[0.0, 5, 4, -1], [1, -2, 0, 2]])]),
    }
    mistakes = {mistake: lambda value=value: value for mistake, value in wrong.items()}
    expect_close(dots, right, "pairwise_dots(x, y)", mistakes)
    call(function, *_learning(x, y))
    expect_not_calling(function, (x, y), {"einsum"}, m.pairwise_dots.EINSUM)
