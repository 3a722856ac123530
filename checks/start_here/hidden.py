"""The hidden tests of chapter 00."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checks import draw_size, expect_matches, expect_no_loop, randint, randn
from checks.start_here import mistakes as m

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


def _dot_oracle(a: Tensor, b: Tensor) -> Tensor:
    return sum(a[:, k] * b[:, k] for k in range(a.shape[1]))


def check_batch_dot(function: Callable) -> None:
    """Values, of long vectors, large batches and large numbers too, and that there is no loop."""
    cases = [{"a": randn(*sizes), "b": randn(*sizes)} for sizes in _DOT_SIZES]
    # Small numbers where many are added up, and whole ones where they are large: float32 is then as good as float64.
    cases += [{"a": 0.1 * randn(*s), "b": 0.1 * randn(*s)} for s in ((3, draw_size()), (draw_size(), 3))]
    cases.append({"a": randint(-300, 301, (9, 5)).double(), "b": randint(-300, 301, (9, 5)).double()})
    squeezed = {m.batch_dot.SQUEEZED: lambda a, b: (a * b).sum(-1).squeeze()}
    expect_matches(function, _dot_oracle, cases, squeezed, "batch_dot(a, b)")
    small, large = (randn(2, 3), randn(2, 3)), (randn(7, 9), randn(7, 9))
    expect_no_loop(function, small, large, over="the batch or the dimension")


def _pair_oracle(x: Tensor, y: Tensor) -> Tensor:
    columns = [torch.stack([(x[:, i] * y[:, j]).sum(-1) for i in range(x.shape[1])], 1) for j in range(y.shape[1])]
    return torch.stack(columns, dim=2)


def check_pairwise_dots(function: Callable) -> None:
    """Values, of long vectors and sequences, large batches and large numbers too, and that there is no loop."""
    cases = [{"x": randn(b, n, d), "y": randn(b, m, d)} for b, n, m, d in _PAIR_SIZES]
    long = [(2, draw_size(), 3, 4), (2, 3, draw_size(), 4), (2, 3, 4, draw_size()), (draw_size(), 2, 3, 2)]
    cases += [{"x": 0.1 * randn(b, n, d), "y": 0.1 * randn(b, m, d)} for b, n, m, d in long]
    cases.append({"x": randint(-300, 301, (2, 4, 5)).double(), "y": randint(-300, 301, (2, 3, 5)).double()})
    squeezed = {m.pairwise_dots.SQUEEZED: lambda x, y: (x @ y.mT).squeeze()}
    expect_matches(function, _pair_oracle, cases, squeezed, "pairwise_dots(x, y)")
    small, large = (randn(2, 3, 4), randn(2, 5, 4)), (randn(5, 7, 6), randn(5, 9, 6))
    expect_no_loop(function, small, large, over="vectors or batch items")
