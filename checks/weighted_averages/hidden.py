"""The hidden tests of chapter 01."""

import ast
from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checks import (
    call,
    expect_close,
    expect_matches,
    expect_no_loop,
    expect_raises,
    rand_weights,
    randint,
    randn,
    record_calls,
    source_of,
)
from checks.weighted_averages.visible import expect_rows_sum_to_one

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


_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WINDOW_MISTAKES = {
    "the window looks forward: output i takes from i and the positions *before* it": lambda n, w: _window(n, w).flip(
        0, 1
    ),
    "the rows are not divided by anything": lambda n, w: (_window(n, w) > 0).double(),
    "every row is divided by `width`: at the beginning there are fewer positions": lambda n, w: (
        (_window(n, w) > 0).double() / w
    ),
    "the window holds `width` positions *besides* its own": lambda n, w: _window(n, w + 1),
    "the window holds one position too few": lambda n, w: _window(n, w - 1),
    "the width is ignored: this is the mean of everything so far": lambda n, w: _window(n, n),
    "the matrix is transposed: a row for each output": lambda n, w: _window(n, w).mT,
    "the columns sum to 1, but the rows should": lambda n, w: (_window(n, w) > 0).double() / (_window(n, w) > 0).sum(0),
}


def _window(n: int, width: int) -> Tensor:
    weights = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        first = max(0, i - width + 1)
        weights[i, first : i + 1] = 1 / (i + 1 - first)
    return weights


def check_window_weights(function: Callable) -> None:
    """Values for narrow and wide windows, errors, and no loop."""
    n = int(randint(7, 12, ()))
    for size, width in ((n, 3), (n, 1), (n, n), (n, n + 4), (5, 4), (1, 1), (1, 3), (n + 13, 6)):
        weights = call(function, size, width)
        wrong = {cause: lambda f=f, s=size, w=width: f(s, w) for cause, f in _WINDOW_MISTAKES.items()}
        name = f"window_weights({size}, {width})"
        expect_close(weights, _window(size, width), name, wrong, torch.float32)
        expect_rows_sum_to_one(weights, width)
    for width in (0, -1, -n):
        expect_raises(ValueError, lambda width=width: function(n, width), f"window_weights({n}, {width})")
    tree = ast.parse(source_of(function))
    again = any(isinstance(node, ast.Name) and node.id in ("window_weights", "map") for node in ast.walk(tree))
    assert not again and not any(isinstance(node, _LOOPS) for node in ast.walk(tree)), (
        "this exercise is to be solved without a loop: a `for`, `while`, comprehension, `map` or recursion is there"
    )
    expect_no_loop(function, (5, 3), (17, 6), over="positions")
