"""The visible checks of chapter 04."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    call,
    expect_close,
    expect_parameters,
    expect_raises,
    expect_same_in_eval,
    expect_tensor,
    place,
    set_weights,
    unchanged,
)
from autograder.course.card import visible

# ---- splitting and merging: position 0 has the features 0 to 5, position 1 has 6 to 11

_NUMBERED = torch.arange(12.0).reshape(1, 2, 6)
_HEADS = torch.tensor([[[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]], dtype=torch.float32)
_SPLIT_MISTAKES = {
    "positions and heads are mixed up: a reshape alone moves nothing. Reshape to (B, n, heads, d/h), then exchange two "
    "dimensions": lambda: _NUMBERED.reshape(1, 3, 2, 2),
    "the heads are interleaved: feature c went to head c % heads, but a head is a block of consecutive features": (
        lambda: torch.stack([_NUMBERED[..., h::3] for h in range(3)], dim=1)
    ),
    "the heads come after the positions: exchange dimensions 1 and 2": lambda: _HEADS.transpose(1, 2),
    "the heads come before the batch": lambda: _HEADS.transpose(0, 1),
    "the last two dimensions are exchanged: positions come before a head's features": lambda: _HEADS.mT,
    "there are d/h heads of `heads` features, not `heads` heads of d/h features": lambda: torch.stack(
        [_NUMBERED[..., :3], _NUMBERED[..., 3:]], dim=1
    ),
    "every head got the features of head 0": lambda: _HEADS[:, :1].expand(1, 3, 2, 2),
}


@visible("two positions of six features, in three heads, and the ValueError")
def split_heads(split_heads: Callable) -> None:
    """Where each of twelve numbered features lands."""
    x = _NUMBERED.clone()
    with unchanged(x=x):
        heads = call(split_heads, x, 3)
    expect_close(heads, _HEADS, "two positions, numbered 0 to 11 and split into three heads,", _SPLIT_MISTAKES)
    expect_raises(ValueError, lambda: split_heads(x, 4), "6 features for 4 heads")


_MERGE_MISTAKES = {
    "positions and heads are mixed up: exchange them, to (B, n, h, d/h), before the reshape": lambda: _HEADS.reshape(
        1, 2, 6
    ),
    "the heads are interleaved: all features of head 0 come first, then all of head 1": lambda: _HEADS.permute(
        0, 2, 3, 1
    ).reshape(1, 2, 6),
    "features and positions are exchanged": lambda: _NUMBERED.mT,
    "the heads are added up, not put side by side": lambda: _HEADS.sum(1),
    "the heads are averaged, not put side by side": lambda: _HEADS.mean(1),
    "only head 0 was kept": lambda: _HEADS[:, 0],
    "the heads are stacked as positions, not put side by side": lambda: _HEADS.flatten(1, 2),
    "the heads are in reverse order": lambda: torch.tensor([[[4.0, 5, 2, 3, 0, 1], [10, 11, 8, 9, 6, 7]]]),
}


@visible("three heads side by side again")
def merge_heads(merge_heads: Callable) -> None:
    """The way back for the twelve numbers of `split_heads`."""
    heads = _HEADS.clone()
    with unchanged(x=heads):
        merged = call(merge_heads, heads)
    expect_close(merged, _NUMBERED, "three heads of two positions, merged,", _MERGE_MISTAKES)


# ---- both kinds of attention, by hand: with maps that change nothing, head 0 looks for the 1 at position 1, head 1 for
# the 1 at position 0. A is such that a scaled score between two such positions is ln 3, so that its weight is three
# times that of a score of 0.

_A = (torch.tensor(3.0).log() / 2).sqrt()
_X = _A * torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]]).repeat_interleave(4, dim=-1)
_THIRD = 1 / 3
_DIVISORS = {
    "divided by √dim": 8**0.5,
    "divided by the root of the sequence length": 3**0.5,
    "divided by √heads": 2**0.5,
    "divided by dim // heads": 4,
    "not scaled": 1,
}
_ADVICE = "divide by √(dim // heads), by the features of one head"


def _outputs(*values: float) -> Callable[[], Tensor]:
    """What head 0 and head 1 give at each of the three positions, by A, each four times."""
    return lambda: _A * torch.tensor(values).reshape(1, 3, 2).repeat_interleave(4, dim=-1)


def _divided(divisor: float) -> Callable[[], Tensor]:
    weight = 9 ** (1 / divisor) / (9 ** (1 / divisor) + 2)
    return _outputs(_THIRD, weight, weight, _THIRD, _THIRD, _THIRD)


_HIGH, _LOW = 3**0.5 / (3**0.5 + 2), 1 / (3**0.5 + 2)
_NARROW_RIGHT = _outputs(_THIRD, 3 / 5, 3 / 5, _THIRD, _THIRD, _THIRD)
_NARROW_MISTAKES = {
    **{f"the scores are {name}: {_ADVICE}": _divided(divisor) for name, divisor in _DIVISORS.items()},
    "the heads are interleaved: a head is a block of features": _outputs(_LOW, _HIGH, _HIGH, _LOW, _THIRD, _THIRD),
    "positions and heads are mixed up: use split_heads": _outputs(2 / 3, 6 / 7, 6 / 7, 0, 0, 0),
    "positions and heads are mixed up at the end: use merge_heads": _outputs(
        _THIRD, 3 / 5, _THIRD, 3 / 5, _THIRD, _THIRD
    ),
    "the softmax runs over the queries, not the last dimension": _outputs(0.2, 0.6, 0.6, 0.2, 0.2, 0.2),
    "the softmax runs over the heads, not the last dimension": _outputs(0.5, 0.75, 0.75, 0.5, 0.5, 0.5),
    "the weights of head 0 are used for every head": _outputs(_THIRD, _THIRD, 3 / 5, 1 / 5, _THIRD, _THIRD),
    "every head sees the slice of head 0": _outputs(_THIRD, _THIRD, 3 / 5, 3 / 5, _THIRD, _THIRD),
    "the heads are averaged, not put side by side": _outputs(*[7 / 15] * 4, _THIRD, _THIRD),
    "the residual comes in chapter 6: do not add x": _outputs(_THIRD, 8 / 5, 8 / 5, _THIRD, _THIRD, _THIRD),
    "the heads are put back in the wrong order: use merge_heads": lambda: (
        _A * torch.tensor([_THIRD, 3 / 5, 3 / 5, _THIRD, _THIRD, _THIRD]).reshape(1, 3, 2).repeat(1, 1, 4)
    ),
}
_NARROW_SHAPES = {"Wq.weight": (4, 4), "Wk.weight": (4, 4), "Wv.weight": (4, 4), "WO.weight": (8, 8), "WO.bias": (8,)}
_NARROW_HINTS = {
    "W": "Wq, Wk and Wv are `nn.Linear(dim // heads, dim // heads, bias=False)`, one each for all heads; WO is "
    "`nn.Linear(dim, dim)`"
}


def _unchanging(shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    return {name: torch.eye(*shape) if len(shape) == 2 else torch.zeros(shape) for name, shape in shapes.items()}


@visible("the parameters, and two heads at three positions by hand")
def NarrowSelfAttention_values(NarrowSelfAttention: Callable) -> None:
    """Parameters; the values with maps that change nothing."""
    module = call(NarrowSelfAttention, 8, 2)
    expect_parameters(module, _NARROW_SHAPES, _NARROW_HINTS)
    set_weights(module, _unchanging(_NARROW_SHAPES), torch.float32)
    x = _X.clone()
    with unchanged(x=x):
        value = call(module, x)
    expect_close(value, _NARROW_RIGHT(), "the output by hand", _NARROW_MISTAKES, torch.float32, 1e-4)


# With scores of 0 an output is the mean of what it may look at: 1, 1 and, where it is no padding, 7.
_SEVENS = torch.tensor([1.0, 1.0, 7.0])[None, :, None].repeat(2, 1, 4)
_PADDING = torch.tensor([[[True, True, False]], [[True, True, True]]])  # position 2 is padding in item 0 only
_ADDED = 1 + 6 / (2 * 2.718281828 + 1)
_MASK_MISTAKES = {  # what head 0 and head 1 give in item 0, then in item 1
    "the mask is ignored, or masked scores are set to 0, and exp(0) is 1": (3, 3, 3, 3),
    "a mask of three dimensions lined up its batch with the heads": (1, 3, 1, 3),
    "the mask is applied in head 0 only: it holds for every head": (1, 3, 3, 3),
    "the mask of batch item 0 is used for the whole batch": (1, 1, 1, 1),
    "the mask is applied after the softmax: rows no longer sum to 1": (2 / 3, 2 / 3, 3, 3),
    "the mask is added to the scores as 0 and 1: fill them instead": (_ADDED, _ADDED, 3, 3),
}


def _by_item_and_head(values: Sequence[float]) -> Callable[[], Tensor]:
    per_feature = torch.tensor(values, dtype=torch.float32).reshape(2, 1, 2).repeat_interleave(2, dim=-1)
    return lambda: per_feature.expand(2, 3, 4)


def _expect_masks(module: Any, attend: Callable[..., Any]) -> None:
    """Padding in one of two items, a causal mask, and rows that may look at nothing, of a module with 2 heads of 2."""
    mistakes: dict[str, Callable[[], Tensor]] = {
        "the mask is transposed: mask[i, j] says whether output i may look at position j": lambda: torch.cat(
            [torch.tensor([3.0, 3.0, 0.0])[None, :, None].expand(1, 3, 4), torch.full((1, 3, 4), 3.0)]
        )
    }
    mistakes |= {cause: _by_item_and_head(values) for cause, values in _MASK_MISTAKES.items()}
    value = call(attend, _PADDING.clone())
    expect_tensor(value, (2, 3, 4), name="the output with padding in item 0")
    assert not torch.allclose(value[0], torch.tensor(7.0)), (
        "item 0 looks at its padding alone: the mask has the wrong sign: True means that attention is allowed"
    )
    right = _by_item_and_head((1, 1, 3, 3))()
    expect_close(value, right, "the output with padding in item 0", mistakes, tolerance=1e-4)
    past = torch.ones(3, 3, dtype=torch.bool).tril()
    right = torch.tensor([1.0, 1.0, 3.0])[None, :, None].expand(2, 3, 4)
    expect_close(call(attend, past.clone()), right, "the output with a causal mask (n, n)", tolerance=1e-4)
    value = call(attend, past.tril(-1))[:, 0]
    nothing = "the output at position 0, which may look at nothing, so that its weights should all be 0,"
    looked = {"a row that may look at nothing looks at everything equally": lambda: torch.full((2, 4), 3.0)}
    expect_close(value, torch.zeros(2, 4), nothing, looked, tolerance=1e-4)


@visible("padding in one of two items, a causal mask, a row that may look at nothing")
def NarrowSelfAttention_masks(NarrowSelfAttention: Callable) -> None:
    """Means of what may be looked at."""
    module = call(NarrowSelfAttention, 4, 2)
    shapes = {"Wq.weight": (2, 2), "Wk.weight": (2, 2), "Wv.weight": (2, 2), "WO.weight": (4, 4), "WO.bias": (4,)}
    state = _unchanging(shapes) | {name: torch.zeros(2, 2) for name in ("Wq.weight", "Wk.weight")}
    set_weights(module, state, torch.float32)
    _expect_masks(module, lambda mask: module(_SEVENS.clone(), mask))


# ---- wide

_VALUES = torch.tensor([[[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]]).repeat_interleave(4, dim=-1)
_PARTS = torch.ones(1, 2, 3, 3)  # of the weights, before each row is divided by its sum
_PARTS[0, 0, 1, 1] = _PARTS[0, 1, 0, 0] = 3.0
_INTERLEAVED, _MIXED = torch.ones(2, 1, 2, 3, 3)
_INTERLEAVED[..., 0, 0] = _INTERLEAVED[..., 1, 1] = 3**0.5
_MIXED[0, 0, 1:, 1:] = 3.0


def _rows(parts: Tensor, dim: int = -1) -> Callable[[], Tensor]:
    return lambda: parts / parts.sum(dim=dim, keepdim=True)


_WEIGHT_MISTAKES = {
    **{f"the scores are {name}: {_ADVICE}": _rows(_PARTS ** (2 / divisor)) for name, divisor in _DIVISORS.items()},
    "the heads are interleaved: a head is a block of consecutive features": _rows(_INTERLEAVED),
    "positions and heads are mixed up: use split_heads": _rows(_MIXED),
    "the weights of head 0 are used for every head": _rows(_PARTS[:, :1].expand(1, 2, 3, 3)),
    "the softmax runs over the heads, not over the last dimension": _rows(_PARTS, 1),
    "the softmax runs over the queries, not over the last dimension": _rows(_PARTS, 2),
    "the weights are averaged over the heads: return those of each head": lambda: _rows(_PARTS)().mean(1),
    "the weights are those of one head only: return those of each head": lambda: _rows(_PARTS)()[:, 0],
}
_TABLE = torch.tensor([[[7 / 3, 18.0], [11 / 5, 70 / 3], [7 / 3, 70 / 3]]])  # [position][head]
_WIDE_RIGHT = _TABLE.repeat_interleave(4, dim=-1)
_OUTPUT_MISTAKES = {
    "positions and heads are mixed up at the end: use merge_heads": lambda: _TABLE.mT.reshape(
        1, 3, 2
    ).repeat_interleave(4, dim=-1),
    "the heads are put back in the wrong order: use merge_heads": lambda: _TABLE.repeat(1, 1, 4),
    "the keys are used as values: Wv belongs to the third argument": lambda: torch.cat(
        [_rows(_PARTS)()[:, head] @ _X[..., 4 * head : 4 * head + 4] for head in range(2)], dim=-1
    ),
    "the residual comes in chapter 6: do not add the queries": lambda: _WIDE_RIGHT + _X,
}
_WIDE_HINTS = {"W": "Wq, Wk, Wv and WO are `nn.Linear(dim, dim)`, each with its bias"}


def _wide_shapes(dim: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.{part}": (dim, dim) if part == "weight" else (dim,) for name in _MAPS for part in _KINDS}


_MAPS, _KINDS = ("Wq", "Wk", "Wv", "WO"), ("weight", "bias")


def _two(results: Any) -> tuple[Tensor, Tensor]:
    assert isinstance(results, tuple | list) and len(results) == 2, (
        "forward should return two things: `return output, weights`"
    )
    return results[0], results[1]


@visible("the parameters, the shapes for n ≠ m, and two heads at three positions by hand")
def MultiHeadAttention_values(MultiHeadAttention: Callable) -> None:
    """Parameters, shapes, then output and weights with maps that change nothing."""
    module = call(MultiHeadAttention, 8, 2).eval()
    expect_parameters(module, _wide_shapes(8), _WIDE_HINTS)
    output, weights = _two(call(module, torch.randn(3, 5, 8), torch.randn(3, 4, 8), torch.randn(3, 4, 8)))
    expect_tensor(weights, None, name="the second result, the weights,")
    assert output.shape != (3, 2, 5, 4), "the output comes first, then the weights"
    expect_tensor(output, (3, 5, 8), name="the output for 5 queries and 4 keys")
    causes = {
        (3, 5, 4): "they are averaged over the heads, or of one head only: return those of each head",
        (3, 2, 5, 5): "the queries are used as keys and values: there are three arguments",
    }
    assert weights.shape == (3, 2, 5, 4), (
        f"the weights for 5 queries and 4 keys should have shape (B, h, n, m) = (3, 2, 5, 4), got "
        f"{tuple(weights.shape)}"
        + (f". Likely cause: {causes[tuple(weights.shape)]}" if tuple(weights.shape) in causes else "")
    )
    set_weights(module, _unchanging(_wide_shapes(8)), torch.float32)
    x, values = _X.clone(), _VALUES.clone()
    with unchanged(queries=x, values=values):
        output, weights = _two(call(module, x, x, values))
    expect_close(weights, _rows(_PARTS)(), "the weights by hand", _WEIGHT_MISTAKES, torch.float32, 1e-4)
    name = "the weights are right; the output by hand"
    expect_close(output, _WIDE_RIGHT, name, _OUTPUT_MISTAKES, torch.float32, 1e-4)


@visible("padding in one of two items, a causal mask, a row that may look at nothing")
def MultiHeadAttention_masks(MultiHeadAttention: Callable) -> None:
    """Means of what may be looked at, and the weights that make them."""
    module = call(MultiHeadAttention, 4, 2).eval()
    state = {name: torch.zeros(shape) for name, shape in _wide_shapes(4).items()}
    set_weights(module, state | {"Wv.weight": torch.eye(4), "WO.weight": torch.eye(4)}, torch.float32)
    _expect_masks(module, lambda mask: module(*[_SEVENS.clone() for _ in range(3)], mask)[0])
    _, weights = _two(call(module, *[_SEVENS.clone() for _ in range(3)], _PADDING.clone()))
    right = torch.tensor([[0.5, 0.5, 0.0], [_THIRD, _THIRD, _THIRD]])[:, None, None].expand(2, 2, 3, 3)
    expect_close(weights, right, "the output is right; the weights with padding in item 0", tolerance=1e-4)


@visible("dropout acts in training only, and never on the weights returned")
def MultiHeadAttention_dropout(MultiHeadAttention: Callable) -> None:
    """Training against evaluation."""
    module = call(MultiHeadAttention, 8, 2, dropout=0.5)
    x = torch.randn(3, 6, 8)
    expect_same_in_eval(module, [x, x, x], "the module with dropout=0.5")
    _, whole = _two(call(module, x, x, x))
    module.train()
    dropped, weights = _two(call(module, x, x, x))
    again, _ = _two(call(module, x, x, x))
    assert not torch.equal(dropped, again), (
        "in training with dropout=0.5 no weight is dropped: two calls give the same result"
    )
    name = "with dropout=0.5, in training, the second result, the weights before dropout,"
    assert not (weights == 0).any(), f"{name} holds zeros. Likely cause: the weights returned are those after dropout"
    expect_close(weights, whole, name, tolerance=1e-5)


# ---- torch's


def stand_in(dim, heads, dropout):
    """What a MultiHeadAttention has, so that these checks do not need the student's."""
    attention = nn.Module()
    attention.heads = heads
    for name in ("Wq", "Wk", "Wv", "WO"):
        setattr(attention, name, nn.Linear(dim, dim))
    attention.dropout = nn.Dropout(dropout)
    return attention


@visible("the settings, and every weight in its place")
def copy_into_torch(copy_into_torch: Callable) -> None:
    """A copy of three heads of two features."""
    attention = place(stand_in, beside=copy_into_torch)(6, 3, 0.1)
    ours = {name: torch.randn(shape) for name, shape in _wide_shapes(6).items()}
    set_weights(attention, ours, torch.float32)
    copy = call(copy_into_torch, attention)
    assert copy is not None, "copy_into_torch returned None: is there a `return`?"
    assert isinstance(copy, nn.MultiheadAttention), "the result should be an nn.MultiheadAttention"
    assert copy.batch_first, "pass batch_first=True: without it torch takes (seq_len, batch, dim)"
    assert copy.num_heads == 3, f"the copy should have 3 heads, got {copy.num_heads}"
    assert copy.dropout == 0.1, f"the copy's dropout should be 0.1, the original's, got {copy.dropout}"
    for name, value in attention.state_dict().items():
        assert torch.equal(value, ours[name]), f"copying changed the original's `{name}`: copy from ours into torch's"
    theirs = copy.state_dict()
    for part in _KINDS:
        assert f"in_proj_{part}" in theirs, f"the copy has no `in_proj_{part}`: leave torch's options for it alone"
        blocks = dict(zip(_MAPS, theirs[f"in_proj_{part}"].split(6), strict=False))
        _expect_blocks(blocks, ours, part)
    out = theirs["out_proj.weight"]
    wrong = {"WO.weight is transposed: torch stores (out, in) in both places": lambda: ours["WO.weight"].T}
    expect_close(out, ours["WO.weight"], "out_proj.weight, which should hold WO's weight,", wrong)
    expect_close(theirs["out_proj.bias"], ours["WO.bias"], "out_proj.bias, which should hold WO's bias,")


def _expect_blocks(blocks: Mapping[str, Tensor], ours: Mapping[str, Tensor], part: str) -> None:
    for name, block in blocks.items():
        wrong: dict[str, Callable[[], Tensor]] = {
            f"{other}'s {part} is where {name}'s belongs: first the queries, then the keys, then the values": (
                lambda other=other: ours[f"{other}.{part}"]
            )
            for other in _MAPS[:3]
            if other != name
        }
        if part == "weight":
            wrong[f"{name}.weight is transposed: torch stores (out, in) in both places"] = lambda name=name: (
                ours[f"{name}.weight"].T
            )
        where = f"the part of in_proj_{part} which should hold {name}'s {part}"
        expect_close(block, ours[f"{name}.{part}"], where, wrong)


def _two_layers():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))


_COUNTS = {
    3: "3 is the number of parameter tensors, not numbers: count the entries of each",
    20: "the 4 biases are missing: biases count too",
    0: "nothing was counted: the parameters are in modules inside modules",
    10: "only the first dimension of each parameter was counted: count all their entries",
    96: "these are bytes: 4 for each number",
}


@visible("two layers of 16 and 8 numbers")
def count_parameters(count_parameters: Callable) -> None:
    """3·4 + 4 + 4·2 = 24."""
    count = call(count_parameters, place(_two_layers, beside=count_parameters)())
    assert count is not None, "count_parameters returned None: is there a `return`?"
    assert isinstance(count, int), f"the count should be a Python int, got {count!r}"
    told = f"nn.Linear(3, 4) and nn.Linear(4, 2, bias=False) have 3·4 + 4 + 4·2 = 24, got {count}"
    assert count == 24, told + (f". Likely cause: {_COUNTS[count]}" if count in _COUNTS else "")
