"""The hidden tests of chapter 00."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checks import expect_matches, expect_no_loop, randn

# Equal sizes first, where a mix-up gives a wrong value instead of a crash.
_DOT_SIZES = [(4, 4), (3, 5), (5, 2), (6, 1), (1, 4), (1, 1)]  # (B, d)
_PAIR_SIZES = [
    (3, 3, 3, 3),
    (2, 3, 5, 4),
    (3, 5, 2, 7),
    (1, 4, 3, 1),
    (4, 1, 6, 2),
    (2, 3, 1, 5),
    (1, 1, 1, 1),
]  # B, n, m, d

_SQUEEZED = "`squeeze()` without a dimension removes every size of 1, the batch too: name the dimension"
_DOT_MISTAKES = {
    _SQUEEZED: lambda a, b: (a * b).sum(-1).squeeze(),
    "the sum runs over the batch: it should run along d": lambda a, b: (a * b).sum(0),
    "everything is summed to one number: sum along d only": lambda a, b: (a * b).sum(),
    "the products are not summed": lambda a, b: a * b,
    "each row of a meets every row of b: row i of a should meet row i of b only": lambda a, b: a @ b.T,
    "the summed dimension is kept, with size 1": lambda a, b: (a * b).sum(-1, keepdim=True),
    "the products are averaged instead of summed": lambda a, b: (a * b).mean(-1),
    "the result is divided by the lengths of the vectors": lambda a, b: torch.cosine_similarity(a, b, dim=-1),
    "only the first row of b is used": lambda a, b: a @ b[0],
    "only the first row of a is used": lambda a, b: b @ a[0],
    "b is not used": lambda a, b: (a * a).sum(-1),
}


def _dot_oracle(a: Tensor, b: Tensor) -> Tensor:
    return sum(a[:, k] * b[:, k] for k in range(a.shape[1]))


def check_batch_dot(function: Callable) -> None:
    """Values, and that there is no loop."""
    cases = [{"a": randn(*sizes), "b": randn(*sizes)} for sizes in _DOT_SIZES]
    expect_matches(function, _dot_oracle, cases, _DOT_MISTAKES, "batch_dot(a, b)")
    small, large = (randn(2, 3), randn(2, 3)), (randn(7, 9), randn(7, 9))
    expect_no_loop(function, small, large, over="the batch or the dimension")


_PAIR_MISTAKES = {
    _SQUEEZED: lambda x, y: (x @ y.mT).squeeze(),
    "a row for each vector of y: the rows belong to x, the columns to y": lambda x, y: y @ x.mT,
    "`reshape` or `view` where a transpose is meant: it keeps the order of the numbers in memory": lambda x, y: (
        x @ y.reshape(len(y), y.shape[2], y.shape[1])
    ),
    "y is not transposed": lambda x, y: x @ y,
    "all dimensions of y are turned round, the batch too: `y.mT` turns the last two only": lambda x, y: (
        x @ y.permute(2, 1, 0)
    ),
    "only the first sequence's y is used, for the whole batch": lambda x, y: x @ y[:1].mT,
    "only the first sequence's x is used, for the whole batch": lambda x, y: x[:1] @ y.mT,
    "y is not used": lambda x, y: x @ x.mT,
    "x is not used": lambda x, y: y @ y.mT,
    "the batch is summed over: sequences must not mix": lambda x, y: torch.einsum("bnd,bmd->nm", x, y),
    "every sequence meets every other: sequences must not mix": lambda x, y: torch.einsum("bnd,cmd->bcnm", x, y),
    "the products are averaged instead of summed": lambda x, y: x @ y.mT / x.shape[-1],
    "the result is divided by √d: that comes in chapter 3": lambda x, y: x @ y.mT / x.shape[-1] ** 0.5,
    "the products are not summed": lambda x, y: x[:, :, None] * y[:, None],
}


def _pair_oracle(x: Tensor, y: Tensor) -> Tensor:
    columns = [torch.stack([(x[:, i] * y[:, j]).sum(-1) for i in range(x.shape[1])], 1) for j in range(y.shape[1])]
    return torch.stack(columns, dim=2)


def check_pairwise_dots(function: Callable) -> None:
    """Values, and that there is no loop."""
    cases = [{"x": randn(b, n, d), "y": randn(b, m, d)} for b, n, m, d in _PAIR_SIZES]
    expect_matches(function, _pair_oracle, cases, _PAIR_MISTAKES, "pairwise_dots(x, y)")
    small, large = (randn(2, 3, 4), randn(2, 5, 4)), (randn(5, 7, 6), randn(5, 9, 6))
    expect_no_loop(function, small, large, over="vectors or batch items")
