"""The visible checks of chapter 05."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from autograder.checks import call, expect_close, expect_raises, expect_tensor, place, unchanged
from autograder.course.card import visible


def _relu(x):
    return torch.relu(x)


def _fliplr(x):
    return torch.fliplr(x)


@visible("relu, which treats each number alone, and fliplr, which reverses the positions")
def is_permutation_equivariant(is_permutation_equivariant: Callable) -> None:
    """A function that is equivariant and one that is not."""
    x, order = torch.arange(36.0).view(3, 3, 4) - 18, torch.tensor([2, 0, 1])
    with unchanged(x=x, permutation=order):
        answer = call(is_permutation_equivariant, place(_relu, beside=is_permutation_equivariant), x, order)
    assert answer is not None, "is_permutation_equivariant returned None: is there a `return`?"
    assert isinstance(answer, bool), f"the answer should be a Python bool, got {answer!r}"
    assert answer, (
        "relu treats each number alone, so the answer should be True: compare function(x[:, permutation]) with "
        "function(x)[:, permutation], the same permutation on both sides"
    )
    answer = call(is_permutation_equivariant, place(_fliplr, beside=is_permutation_equivariant), x, order)
    assert not answer, (
        "fliplr reverses dimension 1, the positions, so the answer should be False: do you reorder dimension 1, by the "
        "given permutation, and compare every number of the two results?"
    )


def call_encoding(function: Callable, max_len: int, dim: int) -> Any:
    """Call `sinusoidal_encoding`; an error that an odd `dim` raises is explained."""
    try:
        return call(function, max_len, dim)
    except AssertionError as error:
        if dim % 2 == 0 or "raised" not in str(error):
            raise
        raise AssertionError(
            f"{error}. Likely cause: an odd `dim` has one sine more than it has cosines, so the table of angles has a "
            "column too many for the cosines: there are dim // 2 of them"
        ) from error


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
    "sine and cosine are swapped: even columns are sines": _waves(
        lambda p: [math.cos(p), math.sin(p), math.cos(p / 100), math.sin(p / 100)]
    ),
    "all sines come before all cosines: even columns are sines, odd columns cosines": _waves(
        lambda p: [math.sin(p), math.sin(p / 100), math.cos(p), math.cos(p / 100)]
    ),
    "positions are counted from 1: the first is 0": _waves(
        lambda p: [math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)], start=1
    ),
    "row 0 was never filled in: position 0 has the sine 0 and the cosine 1": _without_row(0),
    "the last row was never filled in: the positions are 0 to max_len - 1, which is range(max_len)": _without_row(2),
    "the cosines were written over the sines, in the even columns, and the odd ones were left 0: they are `1::2`": (
        _waves(lambda p: [math.cos(p), 0, math.cos(p / 100), 0])
    ),
    "the cosines are missing: the odd columns were left 0": _waves(lambda p: [math.sin(p), 0, math.sin(p / 100), 0]),
    "a cosine has another frequency than the sine beside it: columns 2k and 2k + 1 are a pair": _waves(
        lambda p: [math.sin(p), math.cos(p / 10), math.sin(p / 100), math.cos(p / 1000)]
    ),
    "the exponent is k / dim: it should be 2k / dim, with 2k = 0, 2, 4, …": _second_pair(0.1),
    "the exponent is doubled: 2k is already the pair's first column": _second_pair(1e-4),
    "all frequencies are equal: does an integer division make the exponent 0?": _second_pair(1.0),
    "the frequency rises: the position should be divided by 10000**(2k / dim)": _second_pair(100.0),
    "log10 stands where exp needs the natural logarithm": _second_pair(math.exp(-2)),
    "the base is 1000: it should be 10000": _second_pair(1000**-0.5),
    "the table is transposed: it should be (max_len, dim), one row for each position": lambda: (
        torch.tensor(_BY_HAND).mT
    ),
    "there is one dimension too many: the table should be (max_len, dim)": lambda: torch.tensor(_BY_HAND)[None],
}


@visible("three positions with dim 4 by hand, and an odd dim")
def sinusoidal_encoding(sinusoidal_encoding: Callable) -> None:
    """The worked example of the text, and the shape for an odd size."""
    pe = call(sinusoidal_encoding, 3, 4)
    expected = torch.tensor(_BY_HAND, dtype=torch.float64)
    expect_close(pe, expected, "the encoding of 3 positions with dim 4", _ENCODING_MISTAKES, torch.float32, 1e-3)
    odd = call_encoding(sinusoidal_encoding, 3, 5)
    expect_tensor(odd, name="the encoding of 3 positions with dim 5")
    causes = {(3, 4): "an odd dim loses its last column", (3, 6): "an odd dim gets a column too many"}
    cause = causes.get(tuple(odd.shape), "the table should be (max_len, dim)")
    assert odd.shape == (3, 5), (
        f"the encoding of 3 positions with dim 5 should have shape (3, 5), got {tuple(odd.shape)}. "
        f"Likely cause: {cause}"
    )


def _added_mistakes(x: Tensor, table: Tensor) -> Mapping[str, Callable[[], Tensor]]:
    return {
        "there is one row for each sequence of the batch: it should be one for each position": lambda: (
            x + table[:2, None]
        ),
        "positions are counted from 1: the first one gets row 0": lambda: x + table[1:4],
        "every position gets the row of the last one": lambda: x + table[2],
        "the last rows of the table are taken: take the first n": lambda: x + table[-3:],
        "the positions are multiplied: add them": lambda: x * table[:3],
        "the positions have no part in it": lambda: x,
        "x has no part in it": lambda: table[:3].expand_as(x),
        "x is scaled by the root of dim: here it should stay as it is": lambda: 2 * x + table[:3],
        "the first sequence is used for the whole batch": lambda: (x[:1] + table[:3]).expand_as(x),
        'this is what mode "concat" should do': lambda: torch.cat([x, table[:3].expand_as(x)], -1),
    }


def _beside_mistakes(x: Tensor, table: Tensor) -> Mapping[str, Callable[[], Tensor]]:
    p = table[:3].expand_as(x)
    return {
        "the positions come first: x should": lambda: torch.cat([p, x], -1),
        "joined along the sequence (dim 1): join the features (dim -1)": lambda: torch.cat([x, p], 1),
        "the second half is x plus the positions: it should be the positions alone": lambda: torch.cat([x, x + p], -1),
        'this is what mode "add" should do': lambda: x + p,
    }


def _expect_joined(make: Callable, table_of: Callable[[Any], Tensor]) -> None:
    """Both modes on two sequences of three positions, and the two errors."""
    for mode, mistakes in (("add", _added_mistakes), ("concat", _beside_mistakes)):
        module = call(make, 4, max_len=6, mode=mode)
        table, x = table_of(module), torch.arange(24.0).view(2, 3, 4)
        with unchanged(x=x):
            value = call(module, x)
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
    buffers = dict(module.named_buffers())
    assert "pe" in buffers, (
        "`pe` should be a buffer, `self.register_buffer('pe', ...)`: not trained, moves with the module"
    )
    expect_tensor(buffers["pe"], (6, 4), torch.float32, "the buffer `pe` for max_len=6, dim=4")
    return buffers["pe"].clone()


@visible("the buffer, both modes on two sequences, and the ValueErrors")
def PositionEncoding(PositionEncoding: Callable) -> None:
    """Both modes against the module's own table."""
    _expect_joined(PositionEncoding, _buffer)
    expect_raises(ValueError, lambda: PositionEncoding(4, mode="sum"), "PositionEncoding(4, mode='sum')")


def _weight(module: Any, rows: int, what: str) -> Tensor:
    parameters = dict(module.named_parameters())
    assert "weight" in parameters, (
        "`weight` should be a parameter, `self.weight = nn.Parameter(...)`: or no optimizer finds it"
    )
    weight = parameters["weight"]
    assert weight.requires_grad, "`weight` does not require a gradient: it should be trained"
    expect_tensor(weight, (rows, 4), torch.float32, f"the weight for {what}")
    weight = weight.detach().clone()
    assert not torch.equal(weight[0], weight[1]), "`weight` should start with random numbers, each row others"
    return weight


@visible('the weight, "add" and "concat" on two sequences, and the ValueErrors')
def PositionEmbedding_join(PositionEmbedding: Callable) -> None:
    """Both modes against the module's own table."""
    _expect_joined(PositionEmbedding, lambda module: _weight(module, 6, "max_len=6, dim=4"))
    assert call(PositionEmbedding(4, max_len=6), torch.zeros(2, 3, 4)).requires_grad, (
        "no gradient reaches `weight`: the result is cut off from it (`.detach()`, `.data`?)"
    )


def _near_mistakes(w: Tensor, near: Tensor) -> Mapping[str, Callable[[], Tensor]]:
    return {
        "`max_len` is not added: distance 0 should get row max_len, the middle one": lambda: w[near],
        "the sign is lost: 1 and -1 should get different rows": lambda: w[near.abs() + 3],
        "the sign is lost, and distance 0 should get the middle row": lambda: w[near.abs()],
        "the sign is reversed: distance -max_len should get row 0": lambda: w[3 - near],
        "negative distances are all treated as 0": lambda: w[near.clamp(min=0) + 3],
        "clamped to max_len after it was added, which loses the positive ones": lambda: w[(near + 3).clamp(max=3)],
        "the rows are shifted by one: distance 0 should get row max_len": lambda: w[near + 2],
        "x holds distances already: do not subtract again": lambda: w[(near[None] - near[:, None]).clamp(-3, 3) + 3],
    }


@visible("near and far distances with max_len 3 by hand")
def PositionEmbedding_expand(PositionEmbedding: Callable) -> None:
    """The table of the text, against the module's own weight."""
    module = call(PositionEmbedding, 4, max_len=3, mode="expand")
    w = _weight(module, 7, 'max_len=3, dim=4, mode "expand": (2*max_len + 1, dim)')
    near = torch.tensor([[0, 1], [-1, 2]])
    with unchanged(x=near):
        value = call(module, near)
    name = "expand with max_len=3: the result for the distances 0, 1, -1, 2, which should get the rows 3, 4, 2, 5,"
    expect_close(value, w[torch.tensor([[3, 4], [2, 5]])], name, _near_mistakes(w, near), torch.float32)
    far = torch.tensor([3, -3, 4, 99, -4, -99])
    try:
        value = call(module, far)
    except AssertionError as error:
        raise AssertionError(
            f"expand: {error}. Likely cause: distances beyond max_len should be clamped first"
        ) from error
    mistakes = {
        "3 and -3 are clamped one too early: they should get the rows 6 and 0": lambda: w[[5, 1, 5, 5, 1, 1]],
        "3 is clamped one too early: it should get row 6": lambda: w[[5, 0, 5, 5, 0, 0]],
        "far distances are wrapped around: 99 should be clamped to row 6": lambda: w[(far + 3) % 7],
    }
    name = "expand with max_len=3: the result for 3, -3, 4, 99, -4, -99, which should get the rows 6, 0, 6, 6, 0, 0,"
    expect_close(value, w[[6, 0, 6, 6, 0, 0]], name, mistakes, torch.float32)


def _row(*values: float) -> Callable[[], Tensor]:
    return lambda: torch.tensor([values], dtype=torch.float64)


# What [1, 0, 1, 0] becomes at position 2, when the mistake named is made.
_SIN, _COS, _SLOW_SIN, _SLOW_COS = math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)
_ROTATE_MISTAKES = {
    "features k and k + d/2 are turned together (the convention of some libraries): here the pairs are 2k and 2k + 1": (
        _row(_COS - _SIN, 0, _SIN + _COS, 0)
    ),
    "the pairs are turned backwards: the first of the two is a cos t - b sin t": _row(
        _COS, -_SIN, _SLOW_COS, -_SLOW_SIN
    ),
    "the positions given are not used: x came back as it was": _row(1, 0, 1, 0),
    "all first halves of the pairs come before all second halves: feature 2k + 1 belongs beside feature 2k": _row(
        _COS, _SLOW_COS, _SIN, _SLOW_SIN
    ),
    "the exponent is -k / d: it should be -2k / d, with 2k = 0, 2, 4, …": _row(
        _COS, _SIN, math.cos(0.2), math.sin(0.2)
    ),
    "the exponent is doubled: 2k is already the pair's first feature": _row(_COS, _SIN, math.cos(2e-4), math.sin(2e-4)),
    "the angles grow from pair to pair: the exponent of base is negative": _row(
        _COS, _SIN, math.cos(200), math.sin(200)
    ),
    "every pair is turned by the same angle: does an integer division make the exponent 0?": _row(
        _COS, _SIN, _COS, _SIN
    ),
    "the second of a pair is computed from the first after it was turned: keep the old one": _row(
        _COS, _COS * _SIN, _SLOW_COS, _SLOW_COS * _SLOW_SIN
    ),
    "sine and cosine are swapped": _row(_SIN, _COS, _SLOW_SIN, _SLOW_COS),
    "the position's vector is added: x should be turned": _row(1 + _SIN, _COS, 1 + _SLOW_SIN, _SLOW_COS),
}


@visible("the row [1, 0, 1, 0] at position 2 by hand, shapes, and the ValueError")
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
