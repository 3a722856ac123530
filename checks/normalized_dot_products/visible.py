"""The visible checks of chapter 02: the worked examples of the text, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder.checks import Mistake, call, complain, expect, expect_close, expect_tensor, unchanged
from autograder.course.card import visible
from autograder.mistakes import Common
from checks.normalized_dot_products import mistakes as m

# Weights by hand: exp of the scores gives [[1, 2, 1], [3, 1, 4]].
_ROWS = torch.tensor([[0.25, 0.5, 0.25], [0.375, 0.125, 0.5]])


def _expect_none_of(entry: Tensor, right: float, suspects: Mapping[float, Mistake], what: str) -> None:
    """Fail if one entry is what a mistake makes of it."""
    for value, mistake in suspects.items():
        expect(not abs(entry - value) <= 1e-4, mistake, what, expected=right, got=float(entry))


def _shifted_above_only(z: Tensor, dim: int) -> Tensor:
    return (z - z.amax(dim, keepdim=True)).exp() / z.exp().sum(dim, keepdim=True)


@visible(
    "the formula along both dimensions of a small table",
    graded="other cases, sizes of 1, library functions, gradients, dtypes and devices",
)
def softmax(function: Callable) -> None:
    """Two rows of three scores, along each dimension."""
    z = torch.tensor([[1.0, 2.0, 1.0], [3.0, 1.0, 4.0]]).log()  # so that exp gives whole numbers
    with unchanged(z=z):
        w = call(function, z, dim=1)
    what, rows = "softmax(z, dim=1)", _ROWS
    expect_tensor(w, (2, 3), z.dtype, what)
    seen = {"expected": rows, "got": w}
    if w.isnan().any():  # if a fixed number is subtracted, scores around it get the right weights
        raised = (call(function, z.double() + number, dim=1) for number in (*range(0, 20001, 1000), 100_000))
        fixed = any(torch.allclose(v, rows.double(), atol=1e-4) for v in raised)
        complain(m.softmax.FIXED_NUMBER if fixed else Common.NAN, what, **seen)
    expect((w >= 0).all(), m.softmax.NEGATIVE, what, **seen)
    expect(not torch.isclose(w.sum(), torch.tensor(1.0)), m.softmax.WHOLE_TENSOR, what, **seen)
    expect(not torch.allclose(w.sum(dim=0), torch.ones(3)), m.softmax.ALWAYS_FIRST, what, **seen)
    expect(not torch.allclose(w, _shifted_above_only(z, 1)), m.softmax.SHIFTED_ABOVE_ONLY, what, **seen)
    expect(torch.allclose(w.sum(dim=1), torch.ones(2)), m.softmax.NOT_DIVIDED, what, **seen)
    expect(torch.allclose(function(z + 1, dim=1), w), m.softmax.NO_EXPONENTIAL, what, **seen)
    expect(w[1, 2] > w[1, 1], m.softmax.SIGN, what, **seen)
    likely = {
        m.softmax.POWERS_OF_2: lambda: torch.tensor([[0.2765, 0.4470, 0.2765], [0.3721, 0.1737, 0.4542]]),
        m.softmax.MAXIMUM_ELSEWHERE: lambda: F.normalize((z - z.amax(0, keepdim=True)).exp(), p=1, dim=1),
    }
    expect_close(w, rows, what, likely, tolerance=1e-4)
    w, what = call(function, z, dim=0), "softmax(z, dim=0)"
    columns = torch.tensor([[0.25, 2 / 3, 0.2], [0.75, 1 / 3, 0.8]])
    expect_tensor(w, (2, 3), z.dtype, what)
    summed = torch.allclose(w.sum(dim=1), torch.ones(2))
    expect(not summed, m.softmax.ALWAYS_LAST, what, expected=columns, got=w)
    elsewhere = {m.softmax.MAXIMUM_ELSEWHERE: lambda: F.normalize((z - z.amax(1, keepdim=True)).exp(), p=1, dim=0)}
    expect_close(w, columns, what, elsewhere, tolerance=1e-4)


@visible("scores of ±10 000 and of -inf", graded="other cases, gradients, dtypes and devices")
def softmax_stable(function: Callable) -> None:
    """Scores of ±10 000, alone and together, and of -inf."""
    top = torch.tensor([10000.0, 9999.0, 9998.0])
    bottom = torch.tensor([-9999.0, -10000.0, -10001.0])
    right = torch.tensor([0.665, 0.245, 0.090])
    w = call(function, top, dim=0)
    what, seen = "softmax of 10000, 9999 and 9998", {"expected": "as for 2, 1 and 0", "got": w}
    expect_tensor(w, (3,), name=what)
    if w.isnan().any():  # one score alone overflows, too; the sum is then that score, and subtracting it does no harm
        alone = call(function, top[:1], dim=0)
        complain(m.softmax.OVERFLOW if alone.isnan().any() else m.softmax.TOO_MUCH, what, **seen)
    small = torch.tensor([1.0, 0.0])
    shifted = torch.allclose(call(function, small, dim=0), _shifted_above_only(small, 0))
    expect(not shifted, m.softmax.SHIFTED_ABOVE_ONLY, what, **seen)
    if not w.sum() > 0:  # clamped, each exp is finite and their sum may not be: then one score alone has its weight
        alone = call(function, top[:1], dim=0)
        complain(m.softmax.CLAMPED if alone.sum() > 0 else m.softmax.NAN_REPLACED, what, **seen)
    expect(w[0] > 0.5, m.softmax.CLAMPED, what, **seen)
    expect_close(w, right, what, tolerance=1e-3)
    w_bottom, what = call(function, bottom, dim=0), "softmax of -9999, -10000 and -10001"
    seen["got"] = w_bottom
    expect(not w_bottom.isnan().any(), m.softmax.UNDERFLOW, what, **seen)
    expect(w_bottom.sum() > 0, m.softmax.NAN_REPLACED, what, **seen)
    expect(w_bottom[1] != w_bottom[2], m.softmax.CLAMPED, what, **seen)
    expect_close(w_bottom, right, what, tolerance=1e-3)
    both = call(function, torch.stack([top, bottom]), dim=1)
    expect(torch.allclose(both, w.expand(2, 3), atol=1e-6), m.softmax.ONE_MAXIMUM, "both rows in one tensor", got=both)
    w = call(function, torch.tensor([0.0, -float("inf"), 0.0]), dim=0)
    what, seen = "softmax of 0, -inf and 0", {"expected": [0.5, 0.0, 0.5], "got": w}
    expect(not w.isnan().any(), m.softmax.NOT_THE_LARGEST, what, **seen)
    expect(w.sum() > 0, m.softmax.NAN_REPLACED, what, **seen)
    expect(w[1] == 0, m.softmax.INF_COUNTS, what, **seen)
    expect_close(w, torch.tensor([0.5, 0.0, 0.5]), what)


@visible(
    "both sequences by hand",
    graded="other cases, sizes of 1, large numbers, loops, inputs unchanged, gradients, dtypes and devices",
)
def normalized_dot_product(function: Callable) -> None:
    """Two sequences of two queries and three keys."""
    log2 = torch.tensor(2.0).log()  # so that exp of each dot product is a power of two
    q = log2 * torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    k = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], [[-1.0, 1.0], [0.0, 1.0], [-1.0, 2.0]]])
    w = call(function, q, k)
    what = "normalized_dot_product(queries, keys)"
    expect_tensor(w, name=what)
    shape = {"expected": "of shape (B, n, m) = (2, 2, 3)", "got": f"shape {tuple(w.shape)}"}
    if w.shape == (2, 2, 2):
        averages = any(torch.allclose(w, (q @ k.mT * scale).softmax(-1) @ k) for scale in (1, 0.5**0.5))
        expect(not averages, m.normalized_dot_product.AVERAGES, what, **shape)
        unused = torch.allclose(w, call(function, q, k + 1))
        expect(not unused, m.normalized_dot_product.KEYS_UNUSED, what, **shape)
    expect(w.shape != (2, 3, 2), m.normalized_dot_product.ROWS_OF_KEYS, what, **shape)
    expect(w.shape != (2, 2, 3, 2), m.normalized_dot_product.NOT_SUMMED, what, **shape)
    expect_tensor(w, (2, 2, 3), name=what)
    first = torch.tensor([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]])
    second = torch.tensor([[0.25, 0.25, 0.5], [0.25, 0.5, 0.25]])
    seen = {"expected": first, "got": w[0]}
    raw = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]) * log2
    what = "the first sequence's weights"
    expect(not torch.allclose(w[0], raw), m.normalized_dot_product.NO_SOFTMAX, what, **seen)
    expect((w > 0).all(), m.normalized_dot_product.NO_EXPONENTIAL, what, **seen)
    expect(not torch.allclose(w.sum(dim=0), torch.ones(2, 3)), m.normalized_dot_product.OVER_BATCH, what, **seen)
    expect(not torch.allclose(w, q.softmax(-1) @ k.softmax(-1).mT), m.normalized_dot_product.VECTORS, what, **seen)
    expect(not torch.allclose(w.sum(dim=1), torch.ones(2, 3)), m.normalized_dot_product.COLUMNS, what, **seen)
    expect(not torch.allclose(w.sum(dim=(1, 2)), torch.ones(2)), m.normalized_dot_product.WHOLE_MATRIX, what, **seen)
    expect(not torch.isclose(w.sum(), torch.tensor(1.0)), m.normalized_dot_product.WHOLE_MATRIX, what, **seen)
    apart = (q.sum(-1).unsqueeze(2) * k.sum(-1).unsqueeze(1)).softmax(-1)
    expect(not torch.allclose(w, apart), m.normalized_dot_product.SUMMED_APART, what, **seen)
    expect(torch.allclose(w.sum(dim=2), torch.ones(2, 2)), m.normalized_dot_product.NOT_DIVIDED, what, **seen)
    suspects = {
        0.4494: m.normalized_dot_product.SCALED,
        0.4142: m.normalized_dot_product.MEANS,
        0.5761: m.normalized_dot_product.COSINE,
        0.3910: m.normalized_dot_product.TWICE,
        0.4000: m.normalized_dot_product.RESHAPED,
        0.4803: m.normalized_dot_product.DISTANCES,
        0.5183: m.normalized_dot_product.DISTANCES,  # squared
    }
    _expect_none_of(w[0, 0, 1], 0.5, suspects, "the weight at [0, 0, 1]")
    expect_close(w[0], first, what)
    shown_here = {
        m.normalized_dot_product.ABSOLUTE: lambda: (q @ k.mT).abs().softmax(-1)[1],
        m.normalized_dot_product.CUT_AT_0: lambda: (q @ k.mT).relu().softmax(-1)[1],
        m.normalized_dot_product.COSINE: lambda: (q @ F.normalize(k, dim=-1).mT).softmax(-1)[1],  # of the keys alone
    }
    what, wrong = "the second sequence's weights", m.normalized_dot_product.SEQUENCES
    expect_close(w[1], second, what, shown_here, otherwise=wrong)


@visible(
    "both sequences by hand",
    graded="other cases, sizes of 1, inputs unchanged, gradients, dtypes and devices",
)
def basic_self_attention(function: Callable) -> None:
    """Two sequences of three vectors."""
    c = torch.tensor(2.0).log().sqrt()  # c * c = log 2: exp of each dot product is a power of two
    x_first = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    x = c * torch.tensor([x_first, [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]])
    y = call(function, x)
    what = "basic_self_attention(x)"
    if isinstance(y, tuple | list):
        complain(m.basic_self_attention.TWO_RESULTS, what, got=f"a {type(y).__name__} of {len(y)}")
    expect_tensor(y, name=what)
    shape = {"expected": "of shape (B, n, d) = (2, 3, 2)", "got": f"shape {tuple(y.shape)}"}
    expect(y.shape != (2, 3, 3), m.basic_self_attention.WEIGHTS, what, **shape)
    expect(y.shape != (2, 2), m.basic_self_attention.ONE_AVERAGE, what, **shape)
    expect_tensor(y, (2, 3, 2), name=what)
    y = y / c
    first = torch.tensor([[1 / 2, 1 / 4], [1 / 4, 1 / 2], [1 / 3, 1 / 3]])
    told = {"expected": first, "got": y[0]}
    what = "the first sequence, divided by c,"
    expect(not torch.allclose(y[0], 3 * first), m.basic_self_attention.SUM_TOO_LARGE, what, **told)
    suspects = {
        0.6931: m.basic_self_attention.NO_SOFTMAX,
        0.1667: m.basic_self_attention.DIVIDED_AGAIN,
        1.5000: m.basic_self_attention.INPUT_ADDED,
        0.4494: m.basic_self_attention.SCALED,
        0.4142: m.basic_self_attention.MEANS,
        0.3910: m.basic_self_attention.TWICE,
        0.5761: m.basic_self_attention.COSINE,
        0.3333: m.basic_self_attention.PLAIN_MEAN,
        0.0000: m.basic_self_attention.LEAVES_ITSELF_OUT,
    }
    _expect_none_of(y[0, 0, 0], 0.5, suspects, "the output at [0, 0, 0], divided by c,")
    suspects = {0.25: m.basic_self_attention.TRANSPOSED, 0.5: m.basic_self_attention.OVER_BATCH}
    _expect_none_of(y[0, 2, 0], 1 / 3, suspects, "the output at [0, 2, 0], divided by c,")
    second = torch.tensor([[4 / 5, 0], [4 / 5, 0], [2 / 3, 0]])
    expect_close(y[0], first, what)
    what = "the second sequence, divided by c,"
    expect_close(y[1], second, what, otherwise=m.basic_self_attention.SEQUENCES)
