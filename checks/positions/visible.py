"""The visible checks of chapter 05."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from autograder.checks import (
    Common,
    Complaint,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_close,
    expect_raises,
    expect_tensor,
    explaining,
    place,
    unchanged,
)
from autograder.course.card import visible
from checks.positions import mistakes as m

_Mistakes = Mapping[Mistake, Callable[[], Tensor]]


def _relu(x):
    return torch.relu(x)


def _fliplr(x):
    return torch.fliplr(x)


@visible(
    "relu, which treats each number alone, and fliplr, which reverses the positions",
    graded="other cases and sizes of 1",
)
def is_permutation_equivariant(is_permutation_equivariant: Callable) -> None:
    """A function that is equivariant and one that is not."""
    x, order = torch.arange(36.0).view(3, 3, 4) - 18, torch.tensor([2, 0, 1])
    asked = "function torch.relu, x (3, 3, 4) and permutation [2, 0, 1]"
    with unchanged(x=x, permutation=order):
        answer = call(is_permutation_equivariant, place(_relu, beside=is_permutation_equivariant), x, order)
    told = {"asked": asked, "expected": "True", "got": str(answer)}
    expect(answer is not None, Common.NO_RETURN, "the answer", **told)
    expect(isinstance(answer, bool), m.is_permutation_equivariant.NO_BOOL, "the answer", **told)
    expect(answer, m.is_permutation_equivariant.UNLIKE_SIDES, "the answer", **told)
    answer = call(is_permutation_equivariant, place(_fliplr, beside=is_permutation_equivariant), x, order)
    told = {"asked": asked.replace("relu", "fliplr"), "expected": "False", "got": str(answer)}
    expect(not answer, m.is_permutation_equivariant.NOT_NOTICED, "the answer", **told)


def _waves(columns: Callable[[int], list[float]], start: int = 0) -> Callable[[], Tensor]:
    return lambda: torch.tensor([columns(p) for p in range(start, start + 3)], dtype=torch.float64)


def _second_pair(frequency: float) -> Callable[[], Tensor]:
    return _waves(lambda p: [math.sin(p), math.cos(p), math.sin(p * frequency), math.cos(p * frequency)])


def _without_row(row: int) -> Callable[[], Tensor]:
    def table() -> Tensor:
        rows = torch.tensor(_BY_HAND, dtype=torch.float64)
        rows[row] = 0
        return rows

    return table


_BY_HAND = [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0], [0.9093, -0.4161, 0.0200, 0.9998]]
# Three positions, dim 4: what comes of each mistake.
_ENCODING_MISTAKES = {
    m.sinusoidal_encoding.SWAPPED: _waves(lambda p: [math.cos(p), math.sin(p), math.cos(p / 100), math.sin(p / 100)]),
    m.sinusoidal_encoding.HALVES: _waves(lambda p: [math.sin(p), math.sin(p / 100), math.cos(p), math.cos(p / 100)]),
    m.sinusoidal_encoding.FROM_1: _waves(
        lambda p: [math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)], start=1
    ),
    m.sinusoidal_encoding.ROW_0: _without_row(0),
    m.sinusoidal_encoding.LAST_ROW: _without_row(2),
    m.sinusoidal_encoding.OVERWRITTEN: (_waves(lambda p: [math.cos(p), 0, math.cos(p / 100), 0])),
    m.sinusoidal_encoding.NO_COSINES: _waves(lambda p: [math.sin(p), 0, math.sin(p / 100), 0]),
    m.sinusoidal_encoding.SINES_TWICE: _waves(
        lambda p: [math.sin(p), math.sin(p), math.sin(p / 100), math.sin(p / 100)]
    ),
    m.sinusoidal_encoding.OWN_FREQUENCY: _waves(
        lambda p: [math.sin(p), math.cos(p / 10), math.sin(p / 100), math.cos(p / 1000)]
    ),
    m.sinusoidal_encoding.OWN_DOUBLED: _waves(
        lambda p: [math.sin(p), math.cos(p / 100), math.sin(p * 1e-4), math.cos(p * 1e-6)]
    ),
    m.sinusoidal_encoding.HALVED: _second_pair(0.1),
    m.sinusoidal_encoding.DOUBLED: _second_pair(1e-4),
    m.sinusoidal_encoding.DIVIDED: _waves(lambda p: [math.sin(p / 4), math.cos(p / 4), 0, 1]),
    m.sinusoidal_encoding.POWER_DIVIDED: _waves(
        lambda p: [math.sin(4 * p), math.cos(4 * p), math.sin(4e-8 * p), math.cos(4e-8 * p)]
    ),
    m.sinusoidal_encoding.K_FROM_1: _waves(
        lambda p: [math.sin(p / 100), math.cos(p / 100), math.sin(p * 1e-4), math.cos(p * 1e-4)]
    ),
    m.sinusoidal_encoding.EQUAL: _second_pair(1.0),
    m.sinusoidal_encoding.RISES: _second_pair(100.0),
    m.sinusoidal_encoding.LOG10: _second_pair(math.exp(-2)),
    m.sinusoidal_encoding.BASE_1000: _second_pair(1000**-0.5),
    m.sinusoidal_encoding.TRANSPOSED: lambda: torch.tensor(_BY_HAND).mT,
    m.sinusoidal_encoding.EXTRA_DIMENSION: lambda: torch.tensor(_BY_HAND)[None],
}


@visible("three positions with dim 4 by hand, and an odd dim", graded="other cases")
def sinusoidal_encoding(sinusoidal_encoding: Callable) -> None:
    """The worked example of the text, and the shape for an odd size."""
    pe = call(sinusoidal_encoding, 3, 4)
    expected = torch.tensor(_BY_HAND, dtype=torch.float64)
    expect_close(pe, expected, "the encoding of 3 positions with dim 4", _ENCODING_MISTAKES, torch.float32, 1e-3)
    asked = "max_len 3 and dim 5"
    try:
        odd = call(sinusoidal_encoding, 3, 5)
    except Complaint as error:
        complain(m.sinusoidal_encoding.ODD_ERROR, "the call", asked=asked, got=error.finding.got)
    expect_tensor(odd, name="the encoding", asked=asked)
    wrong = {(3, 4): m.sinusoidal_encoding.ODD_LOSES, (3, 6): m.sinusoidal_encoding.ODD_GAINS}
    told = {"asked": asked, "expected": "of shape (3, 5)", "got": f"shape {tuple(odd.shape)}"}
    expect(odd.shape == (3, 5), wrong.get(tuple(odd.shape), Unexplained.SHAPE), "the encoding", **told)


def _added_mistakes(x: Tensor, table: Tensor) -> _Mistakes:
    return {
        m.Positions.ROW_PER_SEQUENCE: lambda: x + table[:2, None],
        m.Positions.FROM_1: lambda: x + table[1:4],
        m.Positions.LAST_FOR_ALL: lambda: x + table[2],
        m.Positions.LAST_ROWS: lambda: x + table[-3:],
        m.Positions.MULTIPLIED: lambda: x * table[:3],
        m.Positions.NO_POSITIONS: lambda: x,
        m.Positions.NO_X: lambda: table[:3].expand_as(x),
        m.Positions.X_SCALED: lambda: 2 * x + table[:3],
        m.Positions.FIRST_SEQUENCE: lambda: (x[:1] + table[:3]).expand_as(x),
    }


def _beside_mistakes(x: Tensor, table: Tensor) -> _Mistakes:
    p = table[:3].expand_as(x)
    return {
        m.Positions.POSITIONS_FIRST: lambda: torch.cat([p, x], -1),
        m.Positions.ALONG_SEQUENCE: lambda: torch.cat([x, p], 1),
        m.Positions.SUM_BESIDE: lambda: torch.cat([x, x + p], -1),
        m.Positions.LIKE_ADD: lambda: x + p,
    }


def _joined(module: Any, x: Tensor) -> Tensor:
    """The result for two sequences of three positions; where two rows meet them, the mistake behind it."""
    met: dict[str, Mistake] = {r"\(3\) must match .*\(2\) at non-singleton dimension 1": m.Positions.ROW_PER_SEQUENCE}
    with explaining("two sequences of three positions", met):
        return call(module, x)


def _expect_joined(make: Callable, table_of: Callable[[Any], Tensor]) -> None:
    """Both modes on two sequences of three positions, and the two errors."""
    for mode, mistakes in (("add", _added_mistakes), ("concat", _beside_mistakes)):
        module = call(make, 4, max_len=6, mode=mode)
        table, x = table_of(module), torch.arange(24.0).view(2, 3, 4)
        with unchanged(x=x):
            value = _joined(module, x)
        expect_tensor(value)
        same = all(torch.equal(call(module, x), value) for _ in range(8))
        expect(same, m.Positions.DEFAULT_DROPOUT, f'mode "{mode}", in training', got="other results for the same x")
        p = table[:3].expand_as(x)
        expected = x + p if mode == "add" else torch.cat([x, p], -1)
        name = f'mode "{mode}", the result for two sequences of three positions'
        expect_close(value, expected, name, mistakes(x, table), torch.float32)
        for wrong, what in (
            (torch.zeros(2, 7, 4), "a sequence of 7 positions, max_len=6,"),
            (x[..., :3], "3 features, dim=4,"),
        ):
            expect_raises(ValueError, lambda m=module, w=wrong: m(w), what)


def _buffer(module: Any) -> Tensor:
    table = dict(module.named_buffers()).get("pe")
    expect(table is not None, m.Positions.NO_BUFFER)
    told = {"expected": "of shape (6, 4)", "got": f"shape {tuple(table.shape)}"}
    expect(table.dim() == 2, m.Positions.BATCH_IN_TABLE, "`pe` for max_len=6 and dim=4", **told)
    expect_tensor(table, (6, 4), torch.float32, "the buffer `pe` for max_len=6 and dim=4")
    return table.clone()


@visible(
    "the buffer, both modes on two sequences, and the ValueErrors",
    graded="other cases, sizes of 1, gradients, dtypes, devices, parameters and dropout",
)
def PositionEncoding(PositionEncoding: Callable) -> None:
    """Both modes against the module's own table."""
    _expect_joined(PositionEncoding, _buffer)
    expect_raises(ValueError, lambda: PositionEncoding(4, mode="sum"), "PositionEncoding(4, mode='sum')")


def _weight(module: Any, rows: int, what: str) -> Tensor:
    weight = dict(module.named_parameters()).get("weight")
    expect(weight is not None, m.Positions.NO_PARAMETER)
    expect(weight.requires_grad, m.Positions.NOT_TRAINED)
    told = {"asked": what, "expected": f"of shape {(rows, 4)}", "got": f"shape {tuple(weight.shape)}"}
    expect(weight.shape == (rows, 4), m.Positions.ROWS, "`weight`", **told)
    expect_tensor(weight, None, torch.float32, "`weight`", what)
    weight = weight.detach().clone()
    expect(not torch.equal(weight[0], weight[1]), m.Positions.EQUAL_ROWS, "rows 0 and 1", asked=what)
    return weight


def _expect_start(make: Callable) -> None:
    """Normal numbers of standard deviation 0.1, as many as settle it: about 13 standard errors to each side."""
    weight = dict(call(make, 64).named_parameters())["weight"].detach().flatten().double()
    told = {"expected": "0 ± 0.1", "got": f"{weight.mean():.3f} ± {weight.std():.3f}"}
    normal = weight.mean().abs() < 0.007 and (weight.std() - 0.1).abs() < 0.005
    tails = ((weight / weight.std()) ** 4).mean()  # 3 of normal numbers, 1.8 of uniform ones
    expect(normal and (tails - 3).abs() < 0.6, m.Positions.START, "its mean and standard deviation", **told)


@visible(
    'the weight, "add" and "concat" on two sequences, and the ValueErrors',
    graded="other cases, sizes of 1, dtypes, devices, parameters and dropout",
)
def PositionEmbedding_join(PositionEmbedding: Callable) -> None:
    """Both modes against the module's own table."""
    _expect_joined(PositionEmbedding, lambda module: _weight(module, 6, "dim 4 and max_len 6"))
    expect_raises(ValueError, lambda: PositionEmbedding(4, mode="sum"), "PositionEmbedding(4, mode='sum')")
    learns = call(PositionEmbedding(4, max_len=6), torch.zeros(2, 3, 4)).requires_grad
    expect(learns, Common.PARAMETER_UNUSED, "the parameter without gradient is `weight`")
    _expect_start(PositionEmbedding)


def _near_mistakes(w: Tensor, near: Tensor) -> _Mistakes:
    return {
        m.Positions.NO_SHIFT: lambda: w[near],
        m.Positions.SIGN_LOST: lambda: w[near.abs() + 3],
        m.Positions.REVERSED: lambda: w[3 - near],
        m.Positions.NEGATIVE_0: lambda: w[near.clamp(min=0) + 3],
        m.Positions.CLAMPED_AFTER: lambda: w[(near + 3).clamp(max=3)],
        m.Positions.SHIFTED: lambda: w[near + 2],
        m.Positions.AGAIN: lambda: w[(near[None] - near[:, None]).clamp(-3, 3) + 3],
    }


def _looked_up(module: Any, distances: Tensor, no_row: Mistake) -> Tensor:
    """The rows of distances; where one is asked for that is not there, the mistake behind it."""
    asked = f"distances {', '.join(map(str, distances.flatten().tolist()))}"
    signs = {
        "tuple index out of range|Dimension out of range": m.Positions.SEQUENCES_ONLY,
        "index.* out of (range|bounds)|Class values": no_row,
    }
    with explaining(asked, signs):
        return call(module, distances)


@visible(
    "near and far distances with max_len 3 by hand",
    graded="other cases, sizes of 1, dtypes, devices, parameters and dropout",
)
def PositionEmbedding_expand(PositionEmbedding: Callable) -> None:
    """The table of the text, against the module's own weight."""
    module = call(PositionEmbedding, 4, max_len=3, mode="expand")
    w = _weight(module, 7, 'dim 4, max_len 3 and mode "expand"')
    near = torch.tensor([[0, 1], [-1, 2]])
    with unchanged(x=near):
        value = _looked_up(module, near, m.Positions.NO_SUCH_ROW)
    name = "expand with max_len=3: the result for the distances 0, 1, -1, 2, which should get the rows 3, 4, 2, 5,"
    expect_close(value, w[torch.tensor([[3, 4], [2, 5]])], name, _near_mistakes(w, near), torch.float32)
    far = torch.tensor([3, -3, 4, 99, -4, -99])
    value = _looked_up(module, far, m.Positions.NOT_CLAMPED)
    mistakes = {m.Positions.EARLY: lambda: w[[5, 0, 5, 5, 0, 0]], m.Positions.WRAPPED: lambda: w[(far + 3) % 7]}
    name = "expand with max_len=3: the result for 3, -3, 4, 99, -4, -99, which should get the rows 6, 0, 6, 6, 0, 0,"
    expect_close(value, w[[6, 0, 6, 6, 0, 0]], name, mistakes, torch.float32)
    _expect_start(lambda dim: PositionEmbedding(dim, mode="expand"))


def _row(*values: float) -> Callable[[], Tensor]:
    return lambda: torch.tensor([values], dtype=torch.float64)


# What [1, 0, 1, 0] becomes at position 2, when the mistake named is made.
_SIN, _COS, _SLOW_SIN, _SLOW_COS = math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)
_ROTATE_MISTAKES = {
    m.rotate.HALVES: (_row(_COS - _SIN, 0, _SIN + _COS, 0)),
    m.rotate.READ_HALVES: _row(_COS - _SIN, _SIN + _COS, 0, 0),
    m.rotate.MIXED: _row(_COS - _SIN, 0, _SLOW_COS + _SLOW_SIN, 0),
    m.rotate.REPEATED: _row(_COS, _SLOW_SIN, _COS, _SLOW_SIN),
    m.rotate.DIVIDED: _row(math.cos(0.5), math.sin(0.5), 1, 0),
    m.rotate.K_FROM_1: _row(_SLOW_COS, _SLOW_SIN, math.cos(2e-4), math.sin(2e-4)),
    m.rotate.BACKWARDS: _row(_COS, -_SIN, _SLOW_COS, -_SLOW_SIN),
    m.rotate.NOT_USED: _row(1, 0, 1, 0),
    m.rotate.UNZIPPED: _row(_COS, _SLOW_COS, _SIN, _SLOW_SIN),
    m.rotate.HALVED: _row(_COS, _SIN, math.cos(0.2), math.sin(0.2)),
    m.rotate.DOUBLED: _row(_COS, _SIN, math.cos(2e-4), math.sin(2e-4)),
    m.rotate.RISES: _row(_COS, _SIN, math.cos(200), math.sin(200)),
    m.rotate.EQUAL: _row(_COS, _SIN, _COS, _SIN),
    m.rotate.OVERWRITTEN: _row(_COS, _COS * _SIN, _SLOW_COS, _SLOW_COS * _SLOW_SIN),
    m.rotate.SWAPPED: _row(_SIN, _COS, _SLOW_SIN, _SLOW_COS),
    m.rotate.NOT_MIXED: _row(_COS + _SIN, 0, _SLOW_COS + _SLOW_SIN, 0),
    m.rotate.ADDED: _row(1 + _SIN, _COS, 1 + _SLOW_SIN, _SLOW_COS),
}


@visible(
    "the row [1, 0, 1, 0] at position 2 by hand, shapes, and the ValueError",
    graded="other cases, gradients, dtypes and devices",
)
def rotate(rotate: Callable) -> None:
    """The worked example of the text, a batch of heads, an odd number of features."""
    x, positions = torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([2])
    with unchanged(x=x, positions=positions):
        turned = call(rotate, x, positions)
    expected = torch.tensor([[_COS, _SIN, _SLOW_COS, _SLOW_SIN]], dtype=torch.float64)
    expect_close(turned, expected, "[1, 0, 1, 0] at position 2", _ROTATE_MISTAKES, tolerance=1e-4)
    heads = torch.ones(2, 3, 3, 4)
    expect_tensor(call(rotate, heads, torch.arange(3)), heads.shape, heads.dtype, "x of shape (2, 3, 3, 4), rotated,")
    expect_raises(ValueError, lambda: rotate(torch.ones(2, 5), torch.arange(2)), "x with 5 features, an odd number,")
