"""The hidden tests of chapter 02."""

from collections.abc import Callable, Mapping
from math import inf

import torch
from torch import Tensor

from autograder.checks import (
    call,
    expect_close,
    expect_gradients,
    expect_matches,
    expect_no_loop,
    expect_not_calling,
    randint,
    randn,
)

# ---- softmax

# The first is a cube, where a sum over another dimension, or one without `keepdim`, gives a wrong value, not a crash.
_SLICES = [((3, 3, 3), 1), ((3, 4), 0), ((4, 2), -1), ((2, 5, 3), 1), ((5, 2, 3), -3), ((2, 3, 4, 5), -2), ((6,), 0)]
_SLICES += [((1, 4), 0), ((4, 1), 0), ((2, 1, 3), 1)]
_LIBRARY = {
    *("softmax", "_softmax", "log_softmax", "_log_softmax", "softmin", "gumbel_softmax", "logsumexp"),
    *("special_softmax", "special_log_softmax", "special_logsumexp"),
    *("scaled_dot_product_attention", "cross_entropy", "multi_head_attention_forward"),
}


def _share(e: Tensor, dim: int) -> Tensor:
    return e / e.sum(dim=dim, keepdim=True)


def _softmax_mistakes() -> dict[str, Callable[[Tensor, int], Tensor]]:
    missing = "the exponential is missing: the weights are shares of exp(z), not of z"
    mistakes = {
        "the sum always runs over the last dimension: use `dim`": lambda z, dim: z.softmax(-1),
        "the sum always runs over the first dimension: use `dim`": lambda z, dim: z.softmax(0),
        "the whole tensor sums to 1: sum along `dim` only": lambda z, dim: z.flatten().softmax(0).reshape(z.shape),
        "the sum has lost its dimension, and is lined up with the wrong one: use `keepdim=True`": lambda z, dim: (
            z.exp() / z.exp().sum(dim)
        ),
        missing: lambda z, dim: _share(z, dim),
        f"{missing} or of |z|": lambda z, dim: _share(z.abs(), dim),
        f"{missing} or of z²": lambda z, dim: _share(z**2, dim),
        "the exponentials are not divided by their sum": lambda z, dim: z.exp(),
        "the exponentials are not divided by their sum, only by the largest": lambda z, dim: (
            z.exp() / z.exp().amax(dim, keepdim=True)
        ),
        "the exponentials are divided by their mean, not by their sum": lambda z, dim: (
            z.exp() / z.exp().mean(dim, keepdim=True)
        ),
        "this is a sigmoid: the weights are not divided by their sum": lambda z, dim: z.sigmoid(),
        "the sign is turned round: the largest score should get the largest weight": lambda z, dim: (-z).softmax(dim),
        "this is the logarithm of the weights": lambda z, dim: z.log_softmax(dim),
        "these are powers of 2, not of e": lambda z, dim: _share(2**z, dim),
        "the sum in the denominator is detached, so its gradient is lost": lambda z, dim: (
            (e := (z - z.amax(dim, keepdim=True)).exp()) / e.sum(dim, keepdim=True).detach()
        ),
        "the sum in the denominator is detached: its gradient is lost": lambda z, dim: (
            (e := z.exp()) / e.sum(dim, keepdim=True).detach()
        ),
    }
    for power in range(4, 10):
        cause = f"a small number is added to the denominator (1e-{power}?): the sum is never near 0 once the largest "
        cause += "score of each slice is subtracted, so leave it out"
        mistakes[cause] = lambda z, dim, e=10.0**-power: (
            (s := (z - z.amax(dim, keepdim=True)).exp()) / (s.sum(dim, keepdim=True) + e)
        )
    return mistakes


def check_softmax(function: Callable) -> None:
    """Values, dimensions, dtypes and gradients for scores of ordinary size, and that no library function does it."""
    cases = [{"z": randn(*shape), "dim": dim} for shape, dim in _SLICES]
    expect_matches(function, torch.softmax, cases, _softmax_mistakes(), "softmax(z, dim)")
    for dtype in (torch.float16, torch.bfloat16):
        z = randn(3, 4, dtype=dtype)
        expect_close(function(z, 1), z.double().softmax(1), f"softmax of {dtype} scores", dtype=dtype)
    advice = "in this exercise softmax is written by hand, with exp, sum and a division"
    expect_not_calling(function, [randn(3, 4), 1], _LIBRARY, advice)


def _clamped(bound: float, low: float) -> Callable[[Tensor, int], Tensor]:
    return lambda z, dim: z.clamp(low, bound).softmax(dim)


def _stability_mistakes() -> Mapping[str, Callable[[Tensor, int], Tensor]]:
    mistakes = {
        "exp(10000) is too large for a float: it becomes inf, and inf / inf is NaN": lambda z, dim: _share(
            z.exp(), dim
        ),
        "one maximum is subtracted from the whole tensor: give each slice a maximum of its own": lambda z, dim: _share(
            (z - z.max()).exp(), dim
        ),
        "the mean is subtracted: a score far above it still overflows": lambda z, dim: _share(
            (z - z.mean(dim, keepdim=True)).exp(), dim
        ),
        "the smallest score is subtracted, not the largest": lambda z, dim: _share(
            (z - z.amin(dim, keepdim=True)).exp(), dim
        ),
        "the largest absolute value is subtracted, not the largest score": lambda z, dim: _share(
            (z - z.abs().amax(dim, keepdim=True)).exp(), dim
        ),
        "NaN is replaced after the fact: prevent it instead": lambda z, dim: _share(z.exp(), dim).nan_to_num(),
        "an entry of -inf should get exactly 0, here it counts as a score of 0": lambda z, dim: z.where(
            z != -inf, 0.0
        ).softmax(dim),
    }
    for bound in (10, 20, 30, 50, 80, 88, 100, 500, 700):
        cause = f"the scores are clamped (to {bound}?): different large scores must keep their difference"
        mistakes[cause] = _clamped(bound, -bound)
        mistakes[f"{cause}, above"] = _clamped(bound, -inf)
    return mistakes


def check_softmax_stable(function: Callable) -> None:
    """Scores of ±1e4 and of -inf, values and gradients."""
    mistakes = _stability_mistakes()
    steps = randint(-3, 4, (3, 4, 5)).double()
    base = torch.tensor([1e4, 0.0, -1e4]).double()
    holes = randn(3, 4, 5)
    holes[0, 1, 2] = holes[1, :, 0] = holes[1, 3, 1:] = holes[2, :3, 3] = -inf
    holes[1, 3, 4] = holes[0, 0, 0] = 1.0
    huge_holes = base[:, None, None] + steps
    huge_holes[:, 1, 3] = huge_holes[0, 2, :4] = -inf
    cases = [
        {"z": base[:, None, None] + steps, "dim": 2},  # all scores of a slice far from 0
        {"z": base[:, None, None] + steps, "dim": 0},  # far from one another
        {"z": base[None, :, None] + steps[:, :3], "dim": -1},
        {"z": huge_holes, "dim": 2},
    ]
    what = "softmax(z, dim) of scores around ±1e4"
    expect_matches(function, torch.softmax, cases, mistakes, what)
    expect_matches(function, torch.softmax, [{"z": holes, "dim": 2}], mistakes, "softmax(z, dim) with entries of -inf")
    expect_gradients(function, torch.softmax, {"z": huge_holes, "dim": 2})


# ---- normalized_dot_product

# (B, n, m, d): equal sizes first.
_SIZES = [(3, 3, 3, 3), (2, 3, 5, 4), (3, 5, 2, 7), (1, 4, 3, 1), (4, 1, 6, 2), (2, 3, 1, 5), (1, 1, 1, 1)]


def _dots(queries: Tensor, keys: Tensor) -> Tensor:
    rows = [[(queries[:, i] * keys[:, j]).sum(-1) for j in range(keys.shape[1])] for i in range(queries.shape[1])]
    return torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)


def _weights(queries: Tensor, keys: Tensor) -> Tensor:
    return _dots(queries, keys).softmax(-1)


def _unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


_SCALED = "the dot products are divided by √d: that comes in chapter 3"
_COSINE = "the vectors are scaled to length 1: it is the weights that are normalized here, not the vectors"
_WEIGHTS_MISTAKES = {
    "each column sums to 1, but each row should: softmax over the last dimension": lambda q, k: _dots(q, k).softmax(1),
    "the softmax runs over the batch, where F.softmax goes without a `dim`: pass `dim=-1`": lambda q, k: _dots(
        q, k
    ).softmax(0),
    "the whole matrix sums to 1, but each row should": lambda q, k: (
        _dots(q, k).flatten(1).softmax(1).reshape(len(q), q.shape[1], -1)
    ),
    "these are the dot products: they still need a softmax": _dots,
    _SCALED: lambda q, k: (_dots(q, k) / q.shape[-1] ** 0.5).softmax(-1),
    _COSINE: lambda q, k: _weights(_unit(q), _unit(k)),
    "these are distances: dot products are asked for": lambda q, k: (-torch.cdist(q, k)).softmax(-1),
    "these are squared distances: dot products are asked for": lambda q, k: (-(torch.cdist(q, k) ** 2)).softmax(-1),
    "`reshape` or `view` where a transpose is meant: it keeps the order of the numbers in memory": lambda q, k: (
        q @ k.reshape(len(k), k.shape[2], k.shape[1])
    ).softmax(-1),
    "queries and keys are swapped: a row for each query, a column for each key": lambda q, k: _weights(k, q),
    "queries and keys are swapped in the softmax: each row, one query's, should sum to 1": lambda q, k: (
        _weights(k, q).mT
    ),
    "only the first sequence's keys are used, for the whole batch": lambda q, k: _weights(q, k[:1].expand_as(k)),
    "only the first sequence's queries are used, for the whole batch": lambda q, k: _weights(q[:1].expand_as(q), k),
    "the keys are not used": lambda q, k: _weights(q, q),
    "the queries are not used": lambda q, k: _weights(k, k),
    "softmax is applied twice": lambda q, k: _weights(q, k).softmax(-1),
    "`squeeze()` without a dimension removes every size of 1, the batch too": lambda q, k: _weights(q, k).squeeze(),
}


def check_normalized_dot_product(function: Callable) -> None:
    """Values, also for large dot products, and that there is no loop."""
    cases = [{"queries": randn(b, n, d), "keys": randn(b, m, d)} for b, n, m, d in _SIZES]
    expect_matches(function, _weights, cases, _WEIGHTS_MISTAKES, "the weight matrix")
    # Whole numbers, so that float32 has the large dot products exactly.
    large = {"queries": randint(-90, 91, (2, 3, 4)).double(), "keys": randint(-90, 91, (2, 5, 4)).double()}
    assert not call(function, *(v.float() for v in large.values())).isnan().any(), (
        "dot products in the thousands give NaN, because their exp overflows: use your softmax of exercise 2.1"
    )
    what = "the weight matrix of long vectors (dot products in the thousands)"
    expect_matches(function, _weights, [large], _WEIGHTS_MISTAKES, what, gradients=False)
    small, more = (randn(2, 3, 4), randn(2, 5, 4)), (randn(5, 7, 6), randn(5, 9, 6))
    expect_no_loop(function, small, more, over="queries, keys or batch items")


# ---- basic_self_attention

_ATTENTION_MISTAKES = {
    "these are the weights: average x with them": lambda x: _weights(x, x),
    "the weights are transposed: each row of the weights sums to 1 and belongs to one output": lambda x: (
        _weights(x, x).mT @ x
    ),
    "the dot products are used as weights, without a softmax": lambda x: _dots(x, x) @ x,
    "the softmax runs over the batch: sequences must not mix": lambda x: _dots(x, x).softmax(0) @ x,
    "x itself is added: that comes in chapter 6": lambda x: x + _weights(x, x) @ x,
    _SCALED: lambda x: (_dots(x, x) / x.shape[-1] ** 0.5).softmax(-1) @ x,
    _COSINE: lambda x: _weights(_unit(x), _unit(x)) @ x,
    "only the first sequence's weights are used, for the whole batch": lambda x: _weights(x, x)[:1] @ x,
    "this is the plain mean: the weights are not used": lambda x: x.mean(1, keepdim=True).expand_as(x),
    "each position leaves itself out: it may look at itself too": lambda x: (
        _dots(x, x).masked_fill(torch.eye(x.shape[1], dtype=torch.bool), -1e9).softmax(-1) @ x
    ),
    "the weights are cut off from the graph: the gradient reaches x only through the average": lambda x: (
        _weights(x.detach(), x.detach()) @ x
    ),
    "the x that is averaged is cut off from the graph: the gradient reaches x only through the weights": lambda x: (
        _weights(x, x) @ x.detach()
    ),
}


def _self_attention(x: Tensor) -> Tensor:
    weights = _weights(x, x)
    return torch.stack([sum(w[:, j, None] * x[:, j] for j in range(x.shape[1])) for w in weights.unbind(1)], dim=1)


def check_basic_self_attention(function: Callable) -> None:
    """Values, gradients through the weights and through what they average."""
    sizes = [(3, 3, 3), (2, 5, 4), (3, 2, 7), (1, 4, 1), (4, 1, 3), (1, 1, 1)]
    expect_matches(function, _self_attention, [{"x": randn(*s)} for s in sizes], _ATTENTION_MISTAKES, "the output")
