"""The hidden tests of chapter 02."""

from collections.abc import Callable
from math import inf

import torch
from torch import Tensor

from autograder.checks import (
    Mistake,
    call,
    draw_size,
    expect,
    expect_close,
    expect_gradients,
    expect_half,
    expect_matches,
    expect_no_loop,
    expect_no_python_loop,
    expect_not_calling,
    randint,
    randn,
)
from checks.chance import drawn_medium
from checks.normalized_dot_products import mistakes as m

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


def _softmax_mistakes() -> dict[Mistake, Callable[[Tensor, int], Tensor]]:
    def small_number(z: Tensor, dim: int) -> Tensor:
        e = (z - z.amax(dim, keepdim=True)).exp()
        return e / (e.sum(dim, keepdim=True) + 1e-8)

    def sum_detached(z: Tensor, dim: int) -> Tensor:
        e = (z - z.amax(dim, keepdim=True)).exp()
        return e / e.sum(dim, keepdim=True).detach()

    return {
        m.softmax.SMALL_NUMBER: small_number,
        m.softmax.SUM_DETACHED: sum_detached,
    }


def _expect_nothing_added(function: Callable, z: Tensor, rounding: float) -> None:
    """A number added to the denominator lessens a row's weights by the same factor; float32's rounding does not."""
    value, right = call(function, z, 1), z.softmax(1)
    less = 1 - value.double() / right
    alike = less.amax(1, keepdim=True) - less.amin(1, keepdim=True) < 0.05 * less
    if bool(((less > rounding) & alike).all()):
        what, added = "softmax(z, dim) in float64, to the last digits", m.softmax.SMALL_NUMBER
        expect_close(value, right, what, tolerance=0.1 * rounding * right.min().item(), otherwise=added)


def check_softmax(function: Callable) -> None:
    """Values, dimensions, dtypes and gradients for scores of ordinary size, and that no library function does it."""
    many = tuple(draw_size(1, 3) for _ in range(draw_size(5, 7)))
    more = [(many, dim) for dim in (0, len(many) // 2, -1 - len(many) // 2, -1)]
    more += [((3, draw_size()), 1), ((draw_size(), 2), 0), ((2, draw_size(), 3), 1), ((3, 2, draw_size()), -1)]
    more += [((draw_size(7, 60), draw_size(7, 600)), 1), ((draw_size(7, 60), 9, draw_size(7, 60)), -2)]
    for graph in (True, False):  # the same sizes again, with other numbers
        medium = [((2, drawn_medium(), 3), 1), ((drawn_medium(), 2, 3), 0), ((2, drawn_medium(), 3), -1)]
        cases = [{"z": randn(*shape), "dim": dim} for shape, dim in (*_SLICES, *more, *medium)]
        with torch.set_grad_enabled(graph):
            expect_matches(function, torch.softmax, cases, _softmax_mistakes(), "softmax(z, dim)")
    for shape, dim in (((2, 5, 3), 1), ((3, draw_size(7, 60)), 1), ((draw_size(7, 60), 4), -2), more[1]):
        expect_gradients(function, torch.softmax, {"z": randn(*shape), "dim": dim}, _softmax_mistakes())
    for dtype in (torch.float16, torch.bfloat16):
        z = randn(3, 4, dtype=dtype)
        expect_close(function(z, 1), z.double().softmax(1), f"softmax of {dtype} scores", dtype=dtype)
    _expect_nothing_added(function, randn(4, 3), 1e-14)
    for size in (draw_size(7, 600), draw_size()):
        _expect_nothing_added(function, randn(4, size), 1e-12)
    expect_not_calling(function, [randn(3, 4), 1], _LIBRARY, m.softmax.LIBRARY)


def check_softmax_stable(function: Callable) -> None:
    """Scores of ±1e4 and of -inf, values and gradients."""
    steps = randint(-3, 4, (3, 4, 5)).double()
    base = torch.tensor([1e4, 0.0, -1e4]).double()
    between = torch.tensor([1.0, 0.0, -1.0]).double() * draw_size(1000, 9900)
    holes = randn(3, 4, 5)
    holes[0, 1, 2] = holes[1, :, 0] = holes[1, 3, 1:] = holes[2, :3, 3] = -inf
    holes[1, 3, 4] = holes[0, 0, 0] = 1.0
    huge_holes = base[:, None, None] + steps
    huge_holes[:, 1, 3] = huge_holes[0, 2, :4] = -inf
    of_inf = call(function, huge_holes.float(), 2)[huge_holes == -inf]
    what = "the weights of -inf beside scores around ±1e4"
    expect(not (of_inf > 0).any(), m.softmax.INF_COUNTS, what, expected="all 0", got=of_inf)
    cases = [
        {"z": base[:, None, None] + steps, "dim": 2},  # all scores of a slice far from 0
        {"z": base[:, None, None] + steps, "dim": 0},  # far from one another
        {"z": base[None, :, None] + steps[:, :3], "dim": -1},
        {"z": huge_holes, "dim": 2},
        {"z": between[:, None, None] + steps, "dim": 2},
    ]
    what = "softmax(z, dim) of scores around ±1e4"
    # float32 has three digits behind the point there: a logarithm of the sum that is added to a score has no more.
    expect_matches(function, torch.softmax, cases, name=what, tolerance=2e-3)
    expect_matches(function, torch.softmax, [{"z": holes, "dim": 2}], name="softmax(z, dim) with entries of -inf")
    expect_gradients(function, torch.softmax, {"z": huge_holes, "dim": 2})
    for low, high in ((20, 90), (90, 300), (300, 1000)):  # where exp overflows in some dtypes, and below
        far = draw_size(low, high) * torch.tensor([1.0, 0.0, -1.0]).double()[:, None] + randint(-3, 4, (3, 5))
        sizes = [{"z": far, "dim": 1}, {"z": far, "dim": 0}]
        expect_matches(function, torch.softmax, sizes, name=f"softmax(z, dim) of scores around ±{low} to ±{high}")
    # Next to 1e4 these are neighbours in half precision. No two are equal: a logarithm of 2 would be lost there.
    unequal = (randn(3, 4, 5).argsort(-1) - 2).double()
    for dtype, apart in ((torch.float16, 8), (torch.bfloat16, 64)):
        z = (base[:, None, None] + apart * unequal).to(dtype)
        z[1, :, 2] = -inf
        z[1] /= apart
        for dim in (2, 0):
            expect_close(call(function, z, dim), z.double().softmax(dim), f"{what}, in {dtype}", dtype=dtype)
    halves = {"z": randint(-40, 41, (5, 4)) / 2.0, "dim": 1}  # differences of up to 40, none of which is cut short
    halves["z"][:, :2] = torch.tensor([20.0, -20.0])  # the largest difference is there in each row
    expect_matches(function, torch.softmax, [halves], name="softmax(z, dim) of scores from -20 to 20", gradients=False)
    z = torch.as_tensor(halves["z"]).double()
    shares, what = call(function, z, 1) / z.softmax(1), "softmax(z, dim) in float64, divided by the right weights,"
    expect_close(shares, torch.ones_like(shares), what, tolerance=1e-4, otherwise=m.softmax.CUT_SHORT)
    for size in (3, draw_size(7, 600), draw_size(601, 1200)):
        _expect_nothing_added(function, draw_size(100, 9900) + randn(4, size), 1e-9)


# ---- normalized_dot_product

# (B, n, m, d): equal sizes first.
_SIZES = [(3, 3, 3, 3), (2, 3, 5, 4), (3, 5, 2, 7), (1, 4, 3, 1), (4, 1, 6, 2), (2, 3, 1, 5), (1, 1, 1, 1)]


def _dots(queries: Tensor, keys: Tensor) -> Tensor:
    return (queries.unsqueeze(2) * keys.unsqueeze(1)).sum(-1)


def _weights(queries: Tensor, keys: Tensor) -> Tensor:
    return _dots(queries, keys).softmax(-1)


def check_normalized_dot_product(function: Callable) -> None:
    """Values, also for large dot products, and that there is no loop."""
    long = [(2, draw_size(), 3, 4), (2, 3, draw_size(), 4), (2, 3, 4, draw_size()), (draw_size(), 2, 3, 2)]
    long += [tuple(draw_size(10, 20) for _ in range(4)), (2, draw_size(7, 60), 3, 9), (2, 9, draw_size(7, 60), 3)]
    squeezed = {m.normalized_dot_product.SQUEEZED: lambda q, k: _weights(q, k).squeeze()}
    for graph in (True, False):  # the same sizes again, with other numbers
        cases = [{"queries": randn(b, n, d), "keys": randn(b, m, d)} for b, n, m, d in _SIZES]
        medium = [(2, drawn_medium(), 3, 4), (2, 3, drawn_medium(), 4), (drawn_medium(), 2, 3, drawn_medium())]
        sizes = (*long, *medium)
        cases += [{"queries": 0.3 * randn(b, n, d), "keys": 0.3 * randn(b, m, d)} for b, n, m, d in sizes]
        with torch.set_grad_enabled(graph):
            expect_matches(function, _weights, cases, squeezed, "the weight matrix")
    for b, n, k, d in ((9, 7, 8, 5), (2, draw_size(7, 60), 3, 4), (2, 3, draw_size(7, 60), 9)):
        expect_gradients(function, _weights, {"queries": 0.5 * randn(b, n, d), "keys": 0.5 * randn(b, k, d)})
    few = {"queries": randint(-1, 2, (2, 3, 4)).double(), "keys": randint(-1, 2, (2, 5, 4)).double()}
    expect_half(function, _weights, few, "the weight matrix")
    # Whole numbers, so that float32 has the large dot products exactly.
    large = {"queries": randint(-90, 91, (2, 3, 4)).double(), "keys": randint(-90, 91, (2, 5, 4)).double()}
    nan = call(function, *(v.float() for v in large.values())).isnan().any()
    what = "the weight matrix of long vectors (dot products in the thousands)"
    expect(not nan, m.normalized_dot_product.OVERFLOW, what, got="NaN")
    expect_matches(function, _weights, [large], name=what, gradients=False)
    # As many features: a loop over those is none of the loops that are ruled out.
    small, more = (randn(2, 3, 6), randn(2, 5, 6)), (randn(5, 7, 6), randn(5, 9, 6))
    expect_no_loop(function, small, more, over="queries, keys or batch items")
    many = (randn(30, 20, 6), randn(30, 40, 6))
    expect_no_python_loop(function, small, many, over="queries, keys or batch items", slack=300)


# ---- basic_self_attention


def _self_attention(x: Tensor) -> Tensor:
    return (_weights(x, x).unsqueeze(-1) * x.unsqueeze(1)).sum(2)


def check_basic_self_attention(function: Callable) -> None:
    """Values, gradients through the weights and through what they average."""
    sizes = [(3, 3, 3), (2, 5, 4), (3, 2, 7), (1, 4, 1), (4, 1, 3), (1, 1, 1)]
    long = [(2, draw_size(), 3), (2, 3, draw_size()), (draw_size(), 3, 2), (2, draw_size(7, 60), 9)]
    long.append(tuple(draw_size(7, 20) for _ in range(3)))
    cut_off = {
        m.basic_self_attention.WEIGHTS_CUT_OFF: lambda x: _weights(x.detach(), x.detach()) @ x,
        m.basic_self_attention.VALUES_CUT_OFF: lambda x: _weights(x, x) @ x.detach(),
    }
    for graph in (True, False):  # the same sizes again, with other numbers
        medium = [(2, drawn_medium(), 3), (drawn_medium(), 2, 9)]
        cases = [{"x": randn(*s)} for s in sizes] + [{"x": 0.3 * randn(*s)} for s in (*long, *medium)]
        cases.append({"x": randint(5, 10, (2, 4, 5)).double()})  # dot products of more than 100, exact in float32
        with torch.set_grad_enabled(graph):
            expect_matches(function, _self_attention, cases, cut_off, "the output")
    for shape in ((9, 7, 8), (2, draw_size(7, 60), 3), (2, 3, draw_size(7, 60))):
        expect_gradients(function, _self_attention, {"x": 0.5 * randn(*shape)}, cut_off)
    expect_half(function, _self_attention, {"x": randint(-1, 2, (2, 4, 3)).double()}, "the output")
