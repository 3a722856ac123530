"""The hidden tests of chapter 01."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checks import (
    expect_matches,
    expect_no_loop,
    rand_weights,
    randn,
    record_calls,
)

# (B, n, m, d): equal lengths first, where a transposed matrix gives a wrong value instead of a crash.
_SIZES = [(2, 4, 4, 3), (2, 3, 5, 4), (3, 5, 2, 7), (1, 4, 3, 1), (4, 1, 6, 2), (2, 3, 1, 5)]
_MISTAKES = {
    "the weights are transposed: `weights[b, i, j]` is how much output i takes from position j": lambda x, w: w.mT @ x,
    "only the first sequence's weights are used, for the whole batch": lambda x, w: w[:1] @ x,
    "only the first sequence is averaged, for the whole batch": lambda x, w: w @ x[:1].expand_as(x),
    "the batch is summed over: sequences must not mix": lambda x, w: (
        (w @ x).sum(0, keepdim=True).expand(len(x), -1, -1)
    ),
    "the products are averaged instead of summed: the weights already sum to 1": lambda x, w: (w @ x) / x.shape[1],
    "the weights are normalised again: use them as they are": lambda x, w: (w / w.sum(-1, keepdim=True)) @ x,
    "the weights go through a softmax again: use them as they are": lambda x, w: w.softmax(-1) @ x,
    "the last position is left out": lambda x, w: w[..., :-1] @ x[:, :-1],
    "the weights are ignored: this is the plain mean": lambda x, w: x.mean(1, keepdim=True).expand(-1, w.shape[1], -1),
    "the last output is never filled in": lambda x, w: torch.cat(
        [(w @ x)[:, :-1], torch.zeros_like((w @ x)[:, -1:])], 1
    ),
}


def _oracle(x: Tensor, weights: Tensor) -> Tensor:
    # The formula, written out.
    rows = [sum(weights[:, i, j, None] * x[:, j] for j in range(x.shape[1])) for i in range(weights.shape[1])]
    return torch.stack(rows, dim=1)


def _inputs(sizes: tuple[int, int, int, int]) -> dict[str, Tensor]:
    batch, n, m, dim = sizes
    return {"x": randn(batch, m, dim), "weights": rand_weights(batch, n, m)}


def _check_values(function: Callable) -> None:
    # Weights that sum to 2 show code that normalises what it should take as it is.
    cases = [_inputs(sizes) for sizes in _SIZES]
    cases.append({"x": cases[1]["x"], "weights": 2 * cases[1]["weights"]})
    expect_matches(function, _oracle, cases, _MISTAKES, "the average")


def check_weighted_avg_loop(function: Callable) -> None:
    """Values, and that at most one of the sizes is looped over in Python."""
    _check_values(function)
    base = (2, 3, 4, 5)
    calls = len(record_calls(function, *_inputs(base).values()))
    growing = []
    for position, size in enumerate(("batch", "n", "m", "d")):
        larger = tuple(value + 4 * (position == index) for index, value in enumerate(base))
        if len(record_calls(function, *_inputs(larger).values())) > calls:
            growing.append(size)
    assert len(growing) <= 1, (
        f"at most one Python loop, please: the number of torch calls grows with {' and with '.join(growing)}; "
        "keep one loop and let broadcasting do the others"
    )


def check_weighted_avg(function: Callable) -> None:
    """Values, and that there is no loop."""
    _check_values(function)
    small, large = _inputs((2, 3, 4, 5)).values(), _inputs((5, 7, 9, 8)).values()
    expect_no_loop(function, [*small], [*large], over="positions, outputs or batch items")


def check_weighted_avg_einsum(function: Callable) -> None:
    """Values, no loop, and one einsum that does the work alone."""
    check_weighted_avg(function)
    calls = record_calls(function, *_inputs((2, 3, 4, 5)).values())
    count = calls.count("einsum")
    assert count == 1, f"use exactly one torch.einsum: the code calls it {count} times"
    others = sorted(set(calls) & {"matmul", "__matmul__", "bmm", "baddbmm", "mul", "sum", "tensordot", "mean"})
    assert not others, f"the einsum should do the whole work: the code also calls `{others[0]}`"
