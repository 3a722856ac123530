"""The hidden tests of chapter 00."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checks import (
    draw_size,
    expect_gradients,
    expect_half,
    expect_matches,
    expect_no_loop,
    expect_no_python_loop,
    expect_not_calling,
    naming,
    randint,
    randn,
)
from checks.chance import drawn_medium
from checks.start_here import mistakes as m

# Equal sizes first, where a mix-up gives a wrong value instead of a crash.
_DOT_SIZES = [(4, 4), (3, 5), (5, 2), (6, 1), (1, 4), (1, 1)]  # (B, d)
_MORE_DIMENSIONS = [(3, 3, 3), (2, 5, 4), (4, 1, 3), (2, 3, 1, 5), (3, 2, 4, 2, 6), (7,), (1,)]
_PAIR_SIZES = [
    (3, 3, 3, 3),
    (2, 3, 5, 4),
    (3, 5, 2, 7),
    (1, 4, 3, 1),
    (4, 1, 6, 2),
    (2, 3, 1, 5),
    (1, 1, 1, 1),
]  # B, n, m, d
# Steps of Python in which larger inputs may differ without a loop.
_SLACK = 300


def _middle() -> int:
    """A size between those above and those that are drawn as long."""
    return draw_size(7, 60)


def _whole(*shape: int, most: int = 300, times: float = 1.0) -> Tensor:
    """Whole numbers: where they are large, float32 is then as good as float64."""
    return times * randint(-most, most + 1, shape).double()


def _dot_oracle(a: Tensor, b: Tensor) -> Tensor:
    return sum(a[..., k] * b[..., k] for k in range(a.shape[-1]))


def check_batch_dot(function: Callable) -> None:
    """Values in tables, long, large and of large numbers too, and with other numbers of dimensions; no loop."""
    squeezed = {m.batch_dot.SQUEEZED: lambda a, b: (a * b).sum(-1).squeeze()}
    long = [(3, draw_size()), (draw_size(), 3), (_middle(), draw_size(7, 600)), (draw_size(7, 600), _middle())]
    more = [
        *_MORE_DIMENSIONS,
        *((2, draw_size(), 3), (draw_size(), 2, 3), (2, 3, draw_size()), (_middle(), 9, _middle())),
        tuple(draw_size(1, 3) for _ in range(draw_size(6, 8))),
    ]
    times = 2.0 ** draw_size(2, 12)
    for graph in (True, False):  # the same sizes again, with other numbers
        tables = [{"a": randn(*s), "b": randn(*s)} for s in _DOT_SIZES]
        # Small numbers where many are added up.
        tables += [{"a": 0.1 * randn(*s), "b": 0.1 * randn(*s)} for s in long]
        tables.append({"a": _whole(9, 5, times=times), "b": _whole(9, 5, times=times)})
        others = [{"a": 0.1 * randn(*s), "b": 0.1 * randn(*s)} for s in more]
        with torch.set_grad_enabled(graph):
            expect_matches(function, _dot_oracle, tables, squeezed, "batch_dot(a, b)")
            with naming(m.batch_dot.TWO_DIMENSIONS):
                expect_matches(function, _dot_oracle, others, None, "batch_dot(a, b)")
    for shape in ((_middle(), _middle()), (2, _middle(), 9), (2, 3, 2, _middle())):
        expect_gradients(function, _dot_oracle, {"a": randn(*shape), "b": randn(*shape)})
    expect_half(function, _dot_oracle, {"a": _whole(4, 3, most=3), "b": _whole(4, 3, most=3)}, "batch_dot(a, b)")
    for few, many in (((2, 3), (7, 9)), ((2, 2, 3), (4, 7, 9))):
        small, large = (randn(*few), randn(*few)), (randn(*many), randn(*many))
        expect_no_loop(function, small, large, over="the batch or the dimension")
    few, many = ((randn(*shape), randn(*shape)) for shape in ((2, 3), (80, 90)))
    expect_no_python_loop(function, few, many, over="the batch or the dimension", slack=_SLACK)


def _pair_oracle(x: Tensor, y: Tensor) -> Tensor:
    columns = [torch.stack([(x[:, i] * y[:, j]).sum(-1) for i in range(x.shape[1])], 1) for j in range(y.shape[1])]
    return torch.stack(columns, dim=2)


def check_pairwise_dots(function: Callable) -> None:
    """Values, of long vectors and sequences, large batches and large numbers too; no loop, and no einsum."""
    long = [(2, draw_size(), 3, 4), (2, 3, draw_size(), 4), (2, 3, 4, draw_size()), (draw_size(), 2, 3, 2)]
    long += [tuple(draw_size(10, 20) for _ in range(4)), (2, _middle(), 3, _middle()), (_middle(), 2, _middle(), 3)]
    squeezed = {m.pairwise_dots.SQUEEZED: lambda x, y: (x @ y.mT).squeeze()}
    times = 2.0 ** draw_size(2, 12)
    for graph in (True, False):  # the same sizes again, with other numbers
        cases = [{"x": randn(b, n, d), "y": randn(b, m, d)} for b, n, m, d in _PAIR_SIZES]
        medium = [(2, drawn_medium(), 3, 4), (2, 3, drawn_medium(), 4), (drawn_medium(), 2, 3, drawn_medium())]
        cases += [{"x": 0.1 * randn(b, n, d), "y": 0.1 * randn(b, m, d)} for b, n, m, d in (*long, *medium)]
        cases.append({"x": _whole(2, 4, 5, times=times), "y": _whole(2, 3, 5, times=times)})
        with torch.set_grad_enabled(graph):
            expect_matches(function, _pair_oracle, cases, squeezed, "pairwise_dots(x, y)")
    for b, n, k, d in ((9, 7, 8, 5), (2, _middle(), 3, 4), (2, 3, _middle(), _middle())):
        expect_gradients(function, _pair_oracle, {"x": randn(b, n, d), "y": randn(b, k, d)})
    few = {"x": _whole(2, 3, 3, most=3), "y": _whole(2, 4, 3, most=3)}
    expect_half(function, _pair_oracle, few, "pairwise_dots(x, y)")
    small, large = (randn(2, 3, 4), randn(2, 5, 4)), (randn(5, 7, 6), randn(5, 9, 6))
    expect_no_loop(function, small, large, over="vectors or batch items")
    many = (randn(30, 20, 6), randn(30, 40, 6))
    expect_no_python_loop(function, small, many, over="vectors or batch items", slack=_SLACK)
    expect_not_calling(function, large, {"einsum"}, m.pairwise_dots.EINSUM)
