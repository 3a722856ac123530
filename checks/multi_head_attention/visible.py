"""The visible checks of chapter 04."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Complaint,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_close,
    expect_parameters,
    expect_raises,
    expect_same_in_eval,
    expect_tensor,
    explaining,
    place,
    set_weights,
    unchanged,
)
from autograder.course.card import visible
from checks.multi_head_attention import mistakes as m

# ---- splitting and merging: position 0 has the features 0 to 5, position 1 has 6 to 11

_NUMBERED = torch.arange(12.0).reshape(1, 2, 6)
_HEADS = torch.tensor([[[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]], dtype=torch.float32)
_SPLIT_MISTAKES = {
    m.split_heads.MIXED_UP: lambda: _NUMBERED.reshape(1, 3, 2, 2),
    m.split_heads.INTERLEAVED: lambda: torch.stack([_NUMBERED[..., h::3] for h in range(3)], dim=1),
    m.split_heads.AFTER_POSITIONS: lambda: _HEADS.transpose(1, 2),
    m.split_heads.FOLDED: lambda: _HEADS.flatten(0, 1),
    m.split_heads.BEFORE_BATCH: lambda: _HEADS.transpose(0, 1),
    m.split_heads.FEATURES_FIRST: lambda: _HEADS.mT,
    m.split_heads.SIZES_EXCHANGED: lambda: torch.stack([_NUMBERED[..., :3], _NUMBERED[..., 3:]], dim=1),
    m.split_heads.HEAD_0: lambda: _HEADS[:, :1].expand(1, 3, 2, 2),
}


@visible(
    "two positions of six features, in three heads, and the ValueError",
    graded="other cases, loops, gradients, dtypes and devices",
)
def split_heads(split_heads: Callable) -> None:
    """Where each of twelve numbered features lands."""
    x = _NUMBERED.clone()
    with unchanged(x=x):
        heads = call(split_heads, x, 3)
    expect_close(heads, _HEADS, "two positions, numbered 0 to 11 and split into three heads,", _SPLIT_MISTAKES)
    expect_raises(ValueError, lambda: split_heads(x, 4), "6 features for 4 heads")


_MERGE_MISTAKES = {
    m.merge_heads.MIXED_UP: lambda: _HEADS.reshape(1, 2, 6),
    m.merge_heads.INTERLEAVED: lambda: _HEADS.permute(0, 2, 3, 1).reshape(1, 2, 6),
    m.merge_heads.EXCHANGED: lambda: _NUMBERED.mT,
    m.merge_heads.ADDED: lambda: _HEADS.sum(1),
    m.merge_heads.AVERAGED: lambda: _HEADS.mean(1),
    m.merge_heads.HEAD_0: lambda: _HEADS[:, 0],
    m.merge_heads.AS_POSITIONS: lambda: _HEADS.flatten(1, 2),
    m.merge_heads.REVERSED: lambda: torch.tensor([[[4.0, 5, 2, 3, 0, 1], [10, 11, 8, 9, 6, 7]]]),
    m.merge_heads.NO_BATCH: lambda: _NUMBERED[0],
}


@visible("three heads side by side again", graded="other cases, loops, gradients, dtypes and devices")
def merge_heads(merge_heads: Callable) -> None:
    """The way back for the twelve numbers of `split_heads`."""
    heads = _HEADS.clone()
    with unchanged(x=heads):
        merged = call(merge_heads, heads)
    expect_close(merged, _NUMBERED, "three heads of two positions, merged,", _MERGE_MISTAKES)


# ---- both kinds of attention, by hand: Wq, Wk and Wv change nothing, WO doubles. Head 0 looks for the 1 at position 1,
# head 1 for the 1 at position 0. A is such that a scaled score between two such positions is ln 3, so that its weight
# is three times that of a score of 0.

_A = (torch.tensor(3.0).log() / 2).sqrt()
_X = _A * torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]]).repeat_interleave(4, dim=-1)
_THIRD = 1 / 3
_DIVISORS: dict[Mistake, float] = {
    m.Attention.BY_ALL_FEATURES: 8**0.5,
    m.Attention.BY_LENGTH: 3**0.5,
    m.Attention.BY_NO_ROOT: 4,
    m.Attention.NOT_SCALED: 1,
}


def _outputs(*values: float) -> Callable[[], Tensor]:
    """What head 0 and head 1 give at each of the three positions, by A, each four times, and doubled."""
    return lambda: 2 * _A * torch.tensor(values).reshape(1, 3, 2).repeat_interleave(4, dim=-1)


def _divided(divisor: float) -> Callable[[], Tensor]:
    weight = 9 ** (1 / divisor) / (9 ** (1 / divisor) + 2)
    return _outputs(_THIRD, weight, weight, _THIRD, _THIRD, _THIRD)


def _among_heads() -> Tensor:
    """What comes of heads that stand after the positions."""
    slices = _X.reshape(1, 3, 2, 4)
    return 2 * ((slices @ slices.mT / 2).softmax(dim=-1) @ slices).reshape(1, 3, 8)


def _reshaped() -> Tensor:
    """What comes of heads that are cut by a reshape."""
    slices = _X.reshape(1, 2, 3, 4)
    weights = (slices @ slices.mT / 2).softmax(dim=-1)
    return 2 * (weights @ slices).transpose(1, 2).reshape(1, 3, 8)


_HIGH, _LOW = 3**0.5 / (3**0.5 + 2), 1 / (3**0.5 + 2)
_NARROW_RIGHT = _outputs(_THIRD, 3 / 5, 3 / 5, _THIRD, _THIRD, _THIRD)
_NARROW_MISTAKES: dict[Mistake, Callable[[], Tensor]] = {
    **{mistake: _divided(divisor) for mistake, divisor in _DIVISORS.items()},
    m.Attention.INTERLEAVED: _outputs(_LOW, _HIGH, _HIGH, _LOW, _THIRD, _THIRD),
    m.Attention.MIXED_UP: _outputs(2 / 3, 6 / 7, 6 / 7, 0, 0, 0),
    m.Attention.RESHAPED_IN: _reshaped,
    m.Attention.AMONG_HEADS: _among_heads,
    m.Attention.MIXED_UP_AFTER: _outputs(_THIRD, 3 / 5, _THIRD, 3 / 5, _THIRD, _THIRD),
    m.Attention.OVER_QUERIES: _outputs(0.2, 0.6, 0.6, 0.2, 0.2, 0.2),
    m.Attention.OVER_HEADS: _outputs(0.5, 0.75, 0.75, 0.5, 0.5, 0.5),
    m.Attention.WEIGHTS_OF_HEAD_0: _outputs(_THIRD, _THIRD, 3 / 5, 1 / 5, _THIRD, _THIRD),
    m.Attention.SLICE_0: _outputs(_THIRD, _THIRD, 3 / 5, 3 / 5, _THIRD, _THIRD),
    m.Attention.HEADS_AVERAGED: _outputs(*[7 / 15] * 4, _THIRD, _THIRD),
    m.Attention.RESIDUAL: lambda: _NARROW_RIGHT() + _X,
    m.Attention.NO_OUTPUT_MAP: lambda: _NARROW_RIGHT() / 2,
    m.Attention.ORDER_AFTER: lambda: (
        2 * _A * torch.tensor([_THIRD, 3 / 5, 3 / 5, _THIRD, _THIRD, _THIRD]).reshape(1, 3, 2).repeat(1, 1, 4)
    ),
}
_NARROW_SHAPES = {"Wq.weight": (4, 4), "Wk.weight": (4, 4), "Wv.weight": (4, 4), "WO.weight": (8, 8), "WO.bias": (8,)}


def _maps_fit(asked: str, batch: int, n: int, dim: int) -> AbstractContextManager[None]:
    """Of so many features in 2 heads: say which map was given features of another number than it takes."""
    size = dim // 2
    misfits: dict[str, Mistake] = {
        f"x2 and {size}x{size}": m.Attention.SIZES_EXCHANGED,
        rf"\({batch * n}x{2 * n} and {dim}x{dim}": m.Attention.WEIGHTS_AS_OUTPUT,
        f"x{dim} and {size}x{size}": m.Attention.SLICE_MAP_OF_ALL,
        f"x{size} and {dim}x{dim}": m.Attention.FULL_MAP_OF_A_SLICE,
    }
    return explaining(f"{asked}, for 2 heads", misfits)


def _unchanging(shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    return {name: torch.eye(*shape) if len(shape) == 2 else torch.zeros(shape) for name, shape in shapes.items()}


def _doubling(shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    return _unchanging(shapes) | {"WO.weight": 2 * torch.eye(*shapes["WO.weight"])}


@visible(
    "the parameters, and two heads at three positions by hand",
    graded="other cases, loops, gradients, dtypes, devices and errors",
)
def NarrowSelfAttention_values(NarrowSelfAttention: Callable) -> None:
    """Parameters; the values with maps that change nothing, and are doubled in the end."""
    module = call(NarrowSelfAttention, 8, 2)
    expect_parameters(module, _NARROW_SHAPES, {"WO": m.Attention.WO_OF_ALL, "W": m.Attention.MAPS_OF_A_SLICE})
    set_weights(module, _doubling(_NARROW_SHAPES), torch.float32)
    x = _X.clone()
    with unchanged(x=x), _maps_fit("x (1, 3, 8)", 1, 3, 8):
        value = call(module, x)
    expect_close(value, _NARROW_RIGHT(), "the output by hand", _NARROW_MISTAKES, torch.float32, 1e-4)


# With scores of 0 an output is the mean of what it may look at: 1, 1 and, where it is no padding, 7.
_SEVENS = torch.tensor([1.0, 1.0, 7.0])[None, :, None].repeat(3, 1, 4)
_PADDING = torch.tensor([[[True, True, False]], [[True, True, True]]])  # position 2 is padding in item 0 only
_ADDED = 1 + 6 / (2 * 2.718281828 + 1)
_MASK_MISTAKES = {  # what head 0 and head 1 give in item 0, then in item 1
    m.Attention.MASK_IGNORED: (3, 3, 3, 3),
    m.Attention.MASK_LINED_UP: (1, 3, 1, 3),
    m.Attention.MASK_IN_HEAD_0: (1, 3, 3, 3),
    m.Attention.MASK_OF_ITEM_0: (1, 1, 1, 1),
    m.Attention.MASK_AFTER: (2 / 3, 2 / 3, 3, 3),
    m.Attention.MASK_ADDED: (_ADDED, _ADDED, 3, 3),
}


def _by_item_and_head(values: Sequence[float]) -> Callable[[], Tensor]:
    per_feature = torch.tensor(values, dtype=torch.float32).reshape(2, 1, 2).repeat_interleave(2, dim=-1)
    return lambda: per_feature.expand(2, 3, 4)


def _expect_masks(attend: Callable[..., Any]) -> None:
    """Masks of two, three and four dimensions, and rows that may look at nothing, of a module with 2 heads of 2.

    With a mask of two dimensions there are as many items as positions: these alone tell nobody what the first is.
    """
    mistakes: dict[Mistake, Callable[[], Tensor]] = {
        m.Attention.MASK_TRANSPOSED: lambda: torch.cat(
            [torch.tensor([3.0, 3.0, 0.0])[None, :, None].expand(1, 3, 4), torch.full((1, 3, 4), 3.0)]
        )
    }
    mistakes |= {mistake: _by_item_and_head(values) for mistake, values in _MASK_MISTAKES.items()}
    name, asked = "the output where position 2 is padding in item 0,", "x (2, 3, 4) and mask (2, 1, 3)"
    with _maps_fit(asked, 2, 3, 4):
        value = call(attend, _PADDING.clone(), 2)
    expect_tensor(value, (2, 3, 4), name=name, asked=asked)
    looks = torch.allclose(value[0], torch.tensor(7.0))
    expect(not looks, m.Attention.MASK_TURNED, name, asked=asked, got="that of the padding alone")
    right = _by_item_and_head((1, 1, 3, 3))()
    expect_close(value, right, name, mistakes, tolerance=1e-4, asked=asked)
    past = torch.ones(3, 3, dtype=torch.bool).tril()
    right = torch.tensor([1.0, 1.0, 3.0])[None, :, None].expand(3, 3, 4)
    asked = "x (3, 3, 4) and mask (3, 3)"
    try:
        value = call(attend, past.clone(), 3)
    except Complaint as error:
        complain(m.Attention.MASK_OF_TWO, "the call", asked=asked, got=error.finding.got)
    expect_close(value, right, "the output with a causal mask", tolerance=1e-4, asked=asked)
    of_heads = torch.ones(2, 2, 3, 3, dtype=torch.bool)
    of_heads[:, 0, :, 2] = False
    asked = "x (2, 3, 4) and mask (2, 2, 3, 3)"
    try:
        value = call(attend, of_heads, 2)
    except Complaint as error:
        complain(m.Attention.MASK_OF_FOUR, "the call", asked=asked, got=error.finding.got)
    of_head_0 = {m.Attention.MASK_OF_HEAD_0: _by_item_and_head((1, 1, 1, 1))}
    name = "the output where head 0 alone may not look at position 2,"
    expect_close(value, _by_item_and_head((1, 3, 1, 3))(), name, of_head_0, tolerance=1e-4, asked=asked)
    asked = "x (3, 3, 4) and mask (3, 3)"
    value = call(attend, past.tril(-1), 3)[:, 0]
    looked = {m.Attention.EMPTY_ROW: lambda: torch.full((3, 4), 3.0)}
    name = "the output at position 0, which may look at nothing,"
    expect_close(value, torch.zeros(3, 4), name, looked, tolerance=1e-4, asked=asked)


@visible(
    "padding in one of two items, a causal mask, a mask for each head, a row that may look at nothing",
    graded="other cases, large numbers, gradients and dtypes",
)
def NarrowSelfAttention_masks(NarrowSelfAttention: Callable) -> None:
    """Means of what may be looked at."""
    module = call(NarrowSelfAttention, 4, 2)
    shapes = {"Wq.weight": (2, 2), "Wk.weight": (2, 2), "Wv.weight": (2, 2), "WO.weight": (4, 4), "WO.bias": (4,)}
    state = _unchanging(shapes) | {name: torch.zeros(2, 2) for name in ("Wq.weight", "Wk.weight")}
    set_weights(module, state, torch.float32)
    _expect_masks(lambda mask, items: module(_SEVENS[:items].clone(), mask))


# ---- wide

_VALUES = torch.tensor([[[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]]).repeat_interleave(4, dim=-1)
_PARTS = torch.ones(1, 2, 3, 3)  # of the weights, before each row is divided by its sum
_PARTS[0, 0, 1, 1] = _PARTS[0, 1, 0, 0] = 3.0
_INTERLEAVED, _MIXED = torch.ones(2, 1, 2, 3, 3)
_INTERLEAVED[..., 0, 0] = _INTERLEAVED[..., 1, 1] = 3**0.5
_MIXED[0, 0, 1:, 1:] = 3.0


def _rows(parts: Tensor, dim: int = -1) -> Callable[[], Tensor]:
    return lambda: parts / parts.sum(dim=dim, keepdim=True)


def _weights_of(keys: Tensor) -> Tensor:
    """The weights by hand if the keys are these."""
    q, k = (torch.stack(x.split(4, -1), 1) for x in (_X, keys))
    return (q @ k.mT / 2).softmax(-1)


_WEIGHT_MISTAKES: dict[Mistake, Callable[[], Tensor]] = {
    **{mistake: _rows(_PARTS ** (2 / divisor)) for mistake, divisor in _DIVISORS.items()},
    m.Attention.INTERLEAVED: _rows(_INTERLEAVED),
    m.Attention.MIXED_UP: _rows(_MIXED),
    m.Attention.WEIGHTS_OF_HEAD_0: _rows(_PARTS[:, :1].expand(1, 2, 3, 3)),
    m.Attention.VALUES_AS_KEYS: lambda: _weights_of(_VALUES),
    m.Attention.OVER_HEADS: _rows(_PARTS, 1),
    m.Attention.OVER_QUERIES: _rows(_PARTS, 2),
    m.Attention.WEIGHTS_AVERAGED: lambda: _rows(_PARTS)().mean(1),
    m.Attention.WEIGHTS_OF_ONE: lambda: _rows(_PARTS)()[:, 0],
}
_TABLE = 2 * torch.tensor([[[7 / 3, 18.0], [11 / 5, 70 / 3], [7 / 3, 70 / 3]]])  # [position][head]
_WIDE_RIGHT = _TABLE.repeat_interleave(4, dim=-1)
_OUTPUT_MISTAKES = {
    m.Attention.MIXED_UP_AFTER: lambda: _TABLE.mT.reshape(1, 3, 2).repeat_interleave(4, dim=-1),
    m.Attention.ORDER_AFTER: lambda: _TABLE.repeat(1, 1, 4),
    m.Attention.KEYS_AS_VALUES: lambda: (
        2 * torch.cat([_rows(_PARTS)()[:, head] @ _X[..., 4 * head : 4 * head + 4] for head in range(2)], dim=-1)
    ),
    m.Attention.RESIDUAL: lambda: _WIDE_RIGHT + _X,
    m.Attention.NO_OUTPUT_MAP: lambda: _WIDE_RIGHT / 2,
}
# Of five queries and four keys, for three items of two heads: what torch says where weights and values do not fit, and
# the shapes of other weights.
_OTHER_INPUT: dict[str, Mistake] = {
    r"to be: \[6, 5\] but got: \[6, 4\]": m.Attention.QUERIES_AS_KEYS,
    r"to be: \[6, 4\] but got: \[6, 5\]": m.Attention.QUERIES_AS_VALUES,
}
_MISSHAPEN: dict[tuple[int, ...], Mistake] = {
    (3, 2, 5, 5): m.Attention.QUERIES_ONLY,
    (3, 2, 4, 4): m.Attention.NOT_AS_QUERIES,
    (3, 2, 4, 5): m.Attention.WEIGHTS_TRANSPOSED,
    (3, 4, 5, 4): m.Attention.SIZES_EXCHANGED,
    (6, 5, 4): m.Attention.WEIGHTS_FOLDED,
}
_MAPS, _KINDS = ("Wq", "Wk", "Wv", "WO"), ("weight", "bias")


def wide_shapes(dim: int) -> dict[str, tuple[int, ...]]:
    """What parameters a MultiHeadAttention has."""
    return {f"{name}.{part}": (dim, dim) if part == "weight" else (dim,) for name in _MAPS for part in _KINDS}


def two(results: Any) -> tuple[Tensor, Tensor]:
    """The output and the weights, once two things are there."""
    expect(results is not None, Common.NO_RETURN, expected="an output and weights", got="None")
    both = isinstance(results, tuple | list) and len(results) == 2
    expect(both, m.Attention.ONE_RESULT)
    output, weights = results
    if isinstance(output, Tensor) and isinstance(weights, Tensor):
        turned = output.dim() == 4 and weights.dim() == 3
        told = {"expected": "of shape (B, n, d)", "got": f"shape {tuple(output.shape)}"}
        expect(not turned, m.Attention.WEIGHTS_FIRST, "the first result", **told)
    return output, weights


@visible(
    "the parameters, the shapes for n ≠ m, and two heads at three positions by hand",
    graded="other cases, loops, gradients, dtypes, devices and errors",
)
def MultiHeadAttention_values(MultiHeadAttention: Callable) -> None:
    """Parameters, shapes, then output and weights with maps that change nothing, and are doubled in the end."""
    module = call(MultiHeadAttention, 8, 2).eval()
    expect_parameters(module, wide_shapes(8), {"W": m.Attention.MAPS_OF_ALL})
    asked = "queries (3, 5, 8), keys (3, 4, 8) and values (3, 4, 8)"
    with explaining(asked, _OTHER_INPUT), _maps_fit(asked, 3, 5, 8):
        results = call(module, torch.randn(3, 5, 8), torch.randn(3, 4, 8), torch.randn(3, 4, 8))
    output, weights = two(results)
    expect_tensor(weights, name="the second result, the weights,", asked=asked)
    expect_tensor(output, name="the output", asked=asked)
    told = {"expected": "of shape (3, 2, 5, 4)", "got": f"shape {tuple(weights.shape)}"}
    if tuple(weights.shape) in _MISSHAPEN:
        complain(_MISSHAPEN[tuple(weights.shape)], "the weights", asked=asked, **told)
    set_weights(module, _doubling(wide_shapes(8)), torch.float32)
    x, values = _X.clone(), _VALUES.clone()
    with unchanged(queries=x, values=values), _maps_fit("three inputs (1, 3, 8)", 1, 3, 8):
        by_hand = two(call(module, x, x, values))
    expect_close(by_hand[1], _rows(_PARTS)(), "the weights by hand", _WEIGHT_MISTAKES, torch.float32, 1e-4)
    name = "the weights are right; the output by hand"
    expect_close(by_hand[0], _WIDE_RIGHT, name, _OUTPUT_MISTAKES, torch.float32, 1e-4)
    expect_tensor(output, (3, 5, 8), name="the output", asked=asked)
    expect_tensor(weights, (3, 2, 5, 4), name="the weights", asked=asked)


@visible(
    "padding in one of two items, a causal mask, a mask for each head, a row that may look at nothing",
    graded="other cases, large numbers, gradients and dtypes",
)
def MultiHeadAttention_masks(MultiHeadAttention: Callable) -> None:
    """Means of what may be looked at, and the weights that make them."""
    module = call(MultiHeadAttention, 4, 2).eval()
    state = {name: torch.zeros(shape) for name, shape in wide_shapes(4).items()}
    set_weights(module, state | {"Wv.weight": torch.eye(4), "WO.weight": torch.eye(4)}, torch.float32)
    _expect_masks(lambda mask, items: two(module(*[_SEVENS[:items].clone() for _ in range(3)], mask))[0])
    _, weights = two(call(module, *[_SEVENS[:2].clone() for _ in range(3)], _PADDING.clone()))
    right = torch.tensor([[0.5, 0.5, 0.0], [_THIRD, _THIRD, _THIRD]])[:, None, None].expand(2, 2, 3, 3)
    expect_close(weights, right, "the output is right; the weights with padding in item 0", tolerance=1e-4)


@visible("dropout acts in training only, and never on the weights returned", graded="other cases, gradients and dtypes")
def MultiHeadAttention_dropout(MultiHeadAttention: Callable) -> None:
    """Training against evaluation."""
    with _maps_fit("three inputs (3, 6, 8)", 3, 6, 8):
        expect_no_dropout(MultiHeadAttention)
    module = call(MultiHeadAttention, 8, 2, dropout=0.5)
    x = torch.randn(3, 6, 8)
    expect_same_in_eval(module, [x, x, x], "the module with dropout=0.5")
    _, whole = two(call(module, x, x, x))
    module.train()
    dropped, weights = two(call(module, x, x, x))
    again, _ = two(call(module, x, x, x))
    name = "the second result in training with dropout=0.5"
    expect(not (weights == 0).any(), m.Attention.WEIGHTS_DROPPED, f"{name} has zeros in it")
    expect(not torch.equal(dropped, again), m.Attention.NO_DROPOUT, "two calls with dropout=0.5 give the same")
    expect_close(weights, whole, name, tolerance=1e-5, otherwise=m.Attention.DROPOUT_EARLY)


def expect_no_dropout(MultiHeadAttention: Callable) -> None:
    """Fail if weights are dropped by a module that was made without `dropout`."""
    module, x = call(MultiHeadAttention, 8, 2).train(), torch.randn(3, 6, 8)
    (once, _), (again, _) = two(call(module, x, x, x)), two(call(module, x, x, x))
    expect(torch.equal(once, again), m.Attention.DROPOUT_SHARE, "two calls in training without dropout differ")


# ---- torch's


def stand_in(dim, heads, dropout):
    """What a MultiHeadAttention has, so that these checks do not need the student's."""
    attention = nn.Module()
    attention.heads = heads
    for name in ("Wq", "Wk", "Wv", "WO"):
        setattr(attention, name, nn.Linear(dim, dim))
    attention.dropout = nn.Dropout(dropout)
    return attention


@visible("the settings, and every weight in its place", graded="other cases, dtypes and devices")
def copy_into_torch(copy_into_torch: Callable) -> None:
    """A copy of three heads of two features."""
    attention = place(stand_in, beside=copy_into_torch)(6, 3, 0.1)
    ours = {name: torch.randn(shape) for name, shape in wide_shapes(6).items()}
    set_weights(attention, ours, torch.float32)
    copy = call(copy_into_torch, attention)
    expect_settings(copy, 3, 0.1)
    for name, value in attention.state_dict().items():
        expect(torch.equal(value, ours[name]), m.copy_into_torch.ORIGINAL_CHANGED, f"what changed is `{name}`")
    theirs = copy.state_dict()
    expect("in_proj_bias" in theirs, m.copy_into_torch.NO_BIAS, "what is missing is `in_proj_bias`")
    for part in _KINDS:
        _expect_blocks(theirs[f"in_proj_{part}"].split(6), ours, part)
    _expect_part(theirs["out_proj.weight"], ours["WO.weight"], "out_proj.weight, which should hold WO's weight,")
    _expect_part(theirs["out_proj.bias"], ours["WO.bias"], "out_proj.bias, which should hold WO's bias,")


def expect_settings(copy: Any, heads: int, dropout: float) -> None:
    """Fail unless this is one of torch's, with these heads and this dropout."""
    expect(copy is not None, Common.NO_RETURN, expected="an nn.MultiheadAttention", got="None")
    expect(isinstance(copy, nn.MultiheadAttention), m.copy_into_torch.NOT_TORCHS)
    expect(copy.batch_first, m.copy_into_torch.NOT_BATCH_FIRST, "`batch_first`", expected="True", got="False")
    expect(copy.num_heads == heads, m.copy_into_torch.HEADS, "the number of heads", expected=heads, got=copy.num_heads)
    expect(copy.dropout == dropout, m.copy_into_torch.DROPOUT, "`dropout`", expected=dropout, got=copy.dropout)


def _expect_part(value: Tensor, right: Tensor, where: str) -> None:
    wrong = {m.copy_into_torch.TRANSPOSED: lambda: right.mT} if right.dim() > 1 else {}
    expect_close(value, right, where, wrong, otherwise=m.copy_into_torch.NOT_COPIED)


def _expect_blocks(blocks: Sequence[Tensor], ours: Mapping[str, Tensor], part: str) -> None:
    for name, block in zip(_MAPS, blocks, strict=False):
        where = f"the part of in_proj_{part} which should hold {name}'s {part}"
        for other in set(_MAPS) - {name}:
            there = torch.equal(block, ours[f"{other}.{part}"])
            expect(not there, m.copy_into_torch.ORDER, where, got=f"{other}'s {part}")
        _expect_part(block, ours[f"{name}.{part}"], where)


def _two_layers():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))


_COUNTS: dict[int, Mistake] = {
    3: m.count_parameters.TENSORS,
    12: m.count_parameters.FIRST_ALONE,
    8: m.count_parameters.LAST_ALONE,
    20: m.count_parameters.NO_BIASES,
    0: m.count_parameters.NESTED,
    48: m.count_parameters.EACH_LEVEL,
    10: m.count_parameters.FIRST_DIMENSION,
    96: m.count_parameters.BYTES,
}


@visible("two layers of 16 and 8 numbers", graded="other cases")
def count_parameters(count_parameters: Callable) -> None:
    """3·4 + 4 + 4·2 = 24."""
    count = call(count_parameters, place(_two_layers, beside=count_parameters)())
    asked = "nn.Linear(3, 4) and nn.Linear(4, 2, bias=False)"
    expect(count is not None, Common.NO_RETURN, "the count", asked=asked, expected=24, got="None")
    expect(isinstance(count, int), m.count_parameters.NO_INT, "the count", asked=asked, expected=24, got=repr(count))
    expect(count == 24, _COUNTS.get(count, Unexplained.NUMBER), "the count", asked=asked, expected=24, got=count)
