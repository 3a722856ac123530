"""The hidden tests of chapter 01."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checks import (
    call,
    draw_size,
    draw_sizes,
    expect,
    expect_close,
    expect_gradients,
    expect_half,
    expect_matches,
    expect_no_loop,
    expect_no_python_loop,
    expect_raises,
    naming,
    rand_weights,
    randint,
    randn,
    record_calls,
)
from checks.chance import drawn_medium
from checks.weighted_averages import mistakes as m

# (B, n, m, d): equal lengths first, where a transposed matrix gives a wrong value instead of a crash.
_SIZES = [(2, 4, 4, 3), (2, 3, 5, 4), (3, 5, 2, 7), (1, 4, 3, 1), (4, 1, 6, 2), (2, 3, 1, 5)]
_LEADING = [(), (2, 3), (3, 1, 2)]
# What could do the work beside an einsum.
_WORK = {"matmul", "__matmul__", "__rmatmul__", "linalg_matmul", "mm", "bmm", "mv", "baddbmm", "addmm", "addbmm"}
_WORK |= {"mul", "multiply", "__mul__", "__rmul__", "addcmul", "sum", "nansum", "mean", "cumsum", "tensordot", "inner"}
_WORK |= {"linear", "bilinear", "conv1d", "linalg_multi_dot", "chain_matmul", "linalg_vecdot", "vecdot", "dot", "vdot"}


def _middle() -> int:
    """A size between those above and those that are drawn as long."""
    return draw_size(7, 60)


def _oracle(x: Tensor, weights: Tensor) -> Tensor:
    # The formula, written out.
    n, m = weights.shape[-2:]
    rows = [sum(weights[..., i, j, None] * x[..., j, :] for j in range(m)) for i in range(n)]
    return torch.stack(rows, dim=-2)


def _inputs(sizes: tuple[int, int, int, int]) -> dict[str, Tensor]:
    batch, n, m, dim = sizes
    return {"x": randn(batch, m, dim), "weights": rand_weights(batch, n, m)}


def _check_values(function: Callable) -> None:
    # Weights that sum to 2 show code that normalizes what it should take as it is.
    long = [(2, 3, draw_size(), 4), (2, draw_size(), 3, 2), (2, 3, 4, draw_size()), (draw_size(), 2, 3, 2)]
    long += [tuple(draw_size(10, 20) for _ in range(4)), (2, _middle(), 3, _middle()), (_middle(), 2, _middle(), 3)]
    mistakes = {
        m.weighted_avg.TRANSPOSED: lambda x, w: w.mT @ x,  # turned round where the sizes allow it
        m.weighted_avg.NORMALISED_AGAIN: lambda x, w: (w / w.sum(-1, keepdim=True)) @ x,
    }
    times = 2.0 ** draw_size(2, 12)
    for graph in (True, False):  # the same sizes again, with other numbers
        cases = [_inputs(sizes) for sizes in _SIZES]
        cases.append({"x": cases[1]["x"], "weights": 2 * cases[1]["weights"]})
        medium = [(2, drawn_medium(), 3, 4), (2, 3, drawn_medium(), 4), (drawn_medium(), 2, 3, drawn_medium())]
        cases += [_inputs(sizes) for sizes in (*long, *medium)]
        # Whole and half numbers of both signs: float32 holds them, and what comes of them, exactly.
        halves = randint(-8, 9, (2, 3, 5)).double() / 2
        cases.append({"x": times * randint(-400, 401, (2, 5, 4)), "weights": halves})
        with torch.set_grad_enabled(graph):
            expect_matches(function, _oracle, cases, mistakes, "the average")
    for sizes in ((9, 7, 8, 5), (2, _middle(), 3, 4), (2, 3, _middle(), _middle())):
        expect_gradients(function, _oracle, _inputs(sizes))
    few = {"x": randint(-3, 4, (2, 3, 4)).double(), "weights": randint(-2, 3, (2, 5, 3)).double()}
    expect_half(function, _oracle, few, "the average")


def check_weighted_avg(function: Callable) -> None:
    """Values, and that there is no loop."""
    small, large = _inputs((2, 3, 4, 5)).values(), _inputs((5, 7, 9, 8)).values()
    many = [*_inputs((30, 20, 40, 6)).values()]
    # First, for the loop of the text loses dtypes as well.
    expect_no_python_loop(function, [*small], many, over="positions, outputs or batch items", slack=300)
    _check_values(function)
    expect_no_loop(function, [*small], [*large], over="positions, outputs or batch items")


def check_weighted_avg_einsum(function: Callable) -> None:
    """Values in any number of dimensions, no loop, and one einsum that does the work alone."""
    check_weighted_avg(function)
    many = tuple(draw_size(1, 3) for _ in range(draw_size(4, 6)))
    for graph in (True, False):
        cases = [
            {"x": randn(*more, 4, 5), "weights": rand_weights(*more, 3, 4)}
            for more in (*_LEADING, many, (_middle(), 2), (2, _middle(), 1))
        ]
        with torch.set_grad_enabled(graph), naming(m.weighted_avg.THREE_DIMENSIONS):
            expect_matches(function, _oracle, cases, None, "the average")
    for more in ((2, _middle()), (3, 1, 2), many):
        inputs = {"x": randn(*more, 4, 5), "weights": rand_weights(*more, 3, 4)}
        expect_gradients(function, _oracle, inputs)
    small, large = ({"x": randn(*more, 4, 5), "weights": rand_weights(*more, 3, 4)} for more in ((2, 2), (3, 5)))
    expect_no_loop(function, [*small.values()], [*large.values()], over="batch items")
    for inputs in (*cases, _inputs((2, 3, 4, 5))):
        calls = record_calls(function, *inputs.values())
        count = calls.count("einsum")
        expect(count == 1, m.weighted_avg.ONE_EINSUM, "the number of its calls", expected=1, got=count)
        others = sorted(set(calls) & _WORK)
        expect(not others, m.weighted_avg.MORE_THAN_EINSUM, f"the code also calls `{others[0]}`" if others else "")


def _window(n: int, width: int) -> Tensor:
    weights = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        first = max(0, i - width + 1)
        weights[i, first : i + 1] = 1 / (i + 1 - first)
    return weights


def _expect_windows(function: Callable, sizes: list[tuple[int, int]]) -> None:
    for size, width in sizes:
        name = f"window_weights({size}, {width})"
        expect_close(call(function, size, width), _window(size, width), name, dtype=torch.float32)


def check_window_weights(function: Callable) -> None:
    """Values for narrow and wide windows, errors, and no loop."""
    n = int(randint(7, 12, ()))
    long, (middle, other) = draw_size(), draw_sizes((25, 600), (61, 80))
    sizes = [(n, 3), (n, 1), (n, n), (n, n + 4), (5, 4), (1, 1), (1, 3), (n + 13, 6)]
    sizes += [(middle, draw_size(7, 24)), (middle, draw_size(2, middle)), (_middle(), draw_size(2, 6))]
    _expect_windows(function, [*sizes, (n, draw_size())])
    narrow = [(n, 0), (n, -1), (n, -n), (n, -draw_size()), (1, 0), (middle, 0), (_middle(), -draw_size(2, 60))]
    for size, width in narrow:
        what = f"window_weights({size}, {width})"
        expect_raises(ValueError, lambda size=size, width=width: function(size, width), what)
    # Sizes that were not asked for before, so that nothing of it is remembered.
    expect_no_loop(function, (5, 2), (17, 7), over="positions")
    expect_no_python_loop(function, (6, 3), (other, draw_size(25, 40)), over="positions", first=(6, 2))
    # Last, for here what calls itself reaches Python's limit, and it has been told of its recursion above.
    sizes = [(long, draw_size(150, 299)), (long, draw_size(300, 600)), (long, 2), (long, long - 1)]
    _expect_windows(function, sizes)
