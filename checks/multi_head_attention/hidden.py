"""The hidden tests of chapter 04."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    Unexplained,
    call,
    draw_probability,
    draw_size,
    draw_sizes,
    expect,
    expect_close,
    expect_device,
    expect_dropout_anew,
    expect_dropped_singly,
    expect_gradients,
    expect_matches,
    expect_no_loop,
    expect_not_dropped_together,
    expect_parameter_gradients,
    expect_parameters,
    expect_raises,
    expect_same_in_eval,
    expect_tensor,
    place,
    rand_mask,
    randint,
    randn,
    randomise,
    record_calls,
    set_weights,
    unchanged,
    within_luck,
)
from checks.chance import drawn_medium
from checks.formulas import linear
from checks.multi_head_attention import mistakes as m
from checks.multi_head_attention.visible import expect_no_dropout, expect_settings, stand_in, two, wide_shapes

# ---- splitting and merging

# (B, n, heads, d/h): equal sizes first, where a mix-up of two dimensions gives wrong values instead of a wrong shape.
_SPLITS = [(2, 2, 2, 2), (2, 3, 4, 5), (3, 5, 2, 4), (1, 4, 3, 1), (4, 1, 2, 3), (2, 6, 1, 5), (3, 2, 5, 1)]


def _split(x: Tensor, heads: int) -> Tensor:
    size = x.shape[-1] // heads
    return torch.stack([x[..., h * size : (h + 1) * size] for h in range(heads)], dim=1)


def _merge(x: Tensor) -> Tensor:
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


def _drawn_splits() -> list[tuple[int, ...]]:
    """Sizes like those of `_SPLITS`, drawn anew: nobody can be right for the tried ones alone."""
    return [
        draw_sizes((6, 40), (2, 30), (2, 8), (2, 30)),
        (3, draw_size(61, 200), 2, 4),
        (3, draw_size(201, 600), 2, 4),
        (drawn_medium(), 3, 4, 2),
        draw_sizes((2, 5), (2, 9), (65, 400), (2, 12)),
        draw_sizes((2, 4), (601, 2000), (2, 8), (2, 8)),
        draw_sizes((601, 2000), (2, 9), (2, 8), (2, 8)),
    ]


def _uneven() -> list[tuple[int, int]]:
    """Numbers of features that a number of heads does not divide: few, and drawn ones."""
    heads, more = draw_sizes((3, 20), (3, 40))
    return [(7, 2), (4, 3), (2, 4), (heads * int(randint(4, 30, ())) + int(randint(1, heads, ())), heads), (1, more)]


def check_split_heads(function: Callable) -> None:
    """Values at many sizes, no loop, and the stated error."""
    cases = [{"x": randn(b, n, h * size), "heads": h} for b, n, h, size in [*_SPLITS, *_drawn_splits()]]
    wrong = {
        m.split_heads.ITEM_0: lambda x, h: _split(x[:1], h).expand(len(x), -1, -1, -1),
        m.split_heads.FOLDED: lambda x, h: _split(x, h).flatten(0, 1),
    }
    expect_matches(function, _split, cases, wrong, "the split")
    expect_no_loop(function, [randn(2, 3, 4), 2], [randn(4, 7, 30), 6], over="positions, batch items or heads")
    for dim, heads in _uneven():
        expect_raises(ValueError, partial(function, randn(2, 12, dim), heads), f"{heads} heads for {dim} features")


def check_merge_heads(function: Callable) -> None:
    """Values at many sizes, no loop."""
    cases = [{"x": randn(b, h, n, size)} for b, n, h, size in [*_SPLITS, *_drawn_splits()]]
    wrong = {m.merge_heads.ITEM_0: lambda x: _merge(x[:1]).expand(len(x), -1, -1)}
    expect_matches(function, _merge, cases, wrong, "the merged tensor")
    expect_no_loop(function, [randn(2, 2, 3, 2)], [randn(4, 6, 7, 5)], over="positions, batch items or heads")


# ---- attention, written out


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    scores = q @ k.mT / q.shape[-1] ** 0.5
    mask = mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    top = scores.detach().masked_fill(~allowed, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    e = (scores - top).masked_fill(~allowed, 0.0).exp() * allowed
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)


def _multi_head(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    *,
    state: Mapping[str, Tensor],
    heads: int,
    narrow: bool = False,
    weigh: Callable = _weights,
    names: tuple[str, str, str] = ("Wq", "Wk", "Wv"),
) -> tuple[Tensor, Tensor]:
    """Attention by the formula; `weigh` and `names` can be replaced by a mistake."""
    inputs = zip(names, (queries, keys, values), strict=True)
    if narrow:
        q, k, v = (linear(state, name, _split(x, heads)) for name, x in inputs)
    else:
        q, k, v = (_split(linear(state, name, x), heads) for name, x in inputs)
    weights = weigh(q, k, mask)
    return linear(state, "WO", _merge(weights @ v)), weights


# ---- the mistakes of both kinds of attention that small cases do not show


def _weigh_item_0(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    return _weights(q, k, mask)[:1].expand(len(q), -1, -1, -1)


def _weigh_mask_of_head_0(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    return _weights(q, k, mask[:, :1] if mask is not None and mask.dim() == 4 else mask)


def _mistakes(state: Mapping[str, Tensor], oracle: Callable) -> dict[Mistake, Callable]:
    size = state["Wv.weight"].shape[0]
    unmapped = {"Wv.weight": torch.eye(size, dtype=torch.float64), "Wv.bias": torch.zeros(size, dtype=torch.float64)}
    return {
        m.Attention.MAPS_SWAPPED: partial(oracle, names=("Wk", "Wq", "Wv")),
        m.Attention.ROWS_SWAPPED: partial(oracle, weigh=lambda q, k, mask: _weights(k, q, mask)),
        m.Attention.KEYS_AND_VALUES_SWAPPED: partial(oracle, names=("Wq", "Wv", "Wk")),
        m.Attention.KEYS_BY_WQ: partial(oracle, names=("Wq", "Wq", "Wv")),
        m.Attention.VALUES_BY_WK: partial(oracle, names=("Wq", "Wk", "Wk")),
        m.Attention.NO_VALUE_MAP: partial(oracle, state={**state, **unmapped}),
        m.Attention.WEIGHTS_OF_ITEM_0: partial(oracle, weigh=_weigh_item_0),
        m.Attention.MASK_OF_HEAD_0: partial(oracle, weigh=_weigh_mask_of_head_0),
    }


# ---- what both modules are held to

# The root of a head's size may be taken in float32, whatever the dtype of the rest: what is right to the precision of
# float32 is right.
_FLOAT32 = 2e-5


class _Copies:
    """A student's module in float32, in float64 and on the meta device, with the same random weights."""

    def __init__(self, cls: Callable, dim: int, heads: int, shapes: Mapping[str, tuple[int, ...]], *more: Any) -> None:
        self.single, self.double = call(cls, dim, heads, *more), call(cls, dim, heads, *more)
        expect_parameters(self.single, shapes)
        # float32 numbers in both, so that they compute the same; and scores of many features stay small: where they are
        # large, float32's rounding of them is seen in the output.
        self.state = randomise(self.single, shapes, torch.float32, scale=min(0.5, dim**-0.5))
        set_weights(self.double, self.state)
        self.elsewhere = call(cls, dim, heads, *more).double().to("meta")

    def eval(self) -> "_Copies":
        self.single.eval()
        self.double.eval()
        return self

    def __call__(self, first: Tensor, *others: Any) -> Any:
        if first.device.type == "meta":
            return self.elsewhere(first, *others)
        return call(self.single if first.dtype == torch.float32 else self.double, first, *others)


def _expect_gradients_of_copy(copies: _Copies, oracle: Callable, *inputs: Tensor) -> None:
    right = lambda state, *inputs: oracle(*inputs, state=state)  # noqa: E731
    expect_parameter_gradients(copies.double, right, copies.state, inputs, tolerance=_FLOAT32)


def _expect_same_calls(small: nn.Module, few: tuple[Any, ...], large: nn.Module, many: tuple[Any, ...]) -> None:
    """Fail if a module with more heads makes more calls to torch."""
    counts = len(record_calls(small, *few)), len(record_calls(large, *many))
    told = f"{counts[0]} calls to torch with few heads, positions and batch items, and {counts[1]} with more"
    expect(counts[0] == counts[1], Common.LOOP, f"the code makes {told}")


def _masks(batch: int, heads: int, n: int, keys: int) -> list[Tensor]:
    """A mask of each allowed shape, and one with rows that may attend to nothing."""
    empty = rand_mask(batch, n, keys)
    empty[-1, 0] = False
    empty[0, -1] = False
    return [
        rand_mask(batch, n, keys),
        rand_mask(n, keys),
        rand_mask(batch, 1, keys),
        rand_mask(batch, heads, n, keys),
        empty,
    ]


# ---- narrow

# (B, n, heads, d/h): batch, length and heads equal first, so that dimensions can be mixed up without a crash.
_NARROW_SIZES = [(2, 2, 2, 3), (2, 5, 3, 4), (3, 4, 2, 5), (1, 6, 4, 2), (4, 1, 3, 2), (2, 3, 1, 5), (2, 4, 3, 1)]


# (B, n, heads, d/h) again, drawn at each judgement: many sequences, many heads, many positions.
def _drawn_narrow_sizes() -> list[tuple[int, ...]]:
    return [draw_sizes((6, 20), (17, 40), (2, 6), (2, 8)), draw_sizes((2, 3), (201, 300), (13, 20), (2, 4))]


def _narrow(x: Tensor, mask: Tensor | None = None, **how: Any) -> Tensor:
    return _multi_head(x, x, x, mask, narrow=True, **how)[0]


def _narrow_copies(cls: Callable, dim: int, heads: int) -> _Copies:
    slice_ = (dim // heads, dim // heads)
    shapes = {"Wq.weight": slice_, "Wk.weight": slice_, "Wv.weight": slice_}
    return _Copies(cls, dim, heads, shapes | {"WO.weight": (dim, dim), "WO.bias": (dim,)})


def check_NarrowSelfAttention_values(cls: Callable) -> None:
    """Parameters, values without a mask, gradients, no loop, the stated error."""
    for batch, n, heads, size in _NARROW_SIZES:
        dim = heads * size
        copies = _narrow_copies(cls, dim, heads)
        oracle = partial(_narrow, state=copies.state, heads=heads)
        case = {"x": randn(batch, n, dim, dtype=torch.float32), "mask": None}
        _expect_values(copies, oracle, [case], "the output")
        x = case["x"].double()
        expect_device(copies.elsewhere, {"x": x})
        _expect_gradients_of_copy(copies, partial(_narrow, heads=heads), x)
        expect_gradients(copies, oracle, case, tolerance=_FLOAT32, module=copies.double)
        expect_close(call(copies.single.eval(), case["x"]), oracle(x), "the output after `.eval()`")
    for batch, n, heads, size in _drawn_narrow_sizes():
        copies = _narrow_copies(cls, heads * size, heads)
        case = {"x": randn(batch, n, heads * size, dtype=torch.float32), "mask": None}
        oracle = partial(_narrow, state=copies.state, heads=heads)
        _expect_values(copies, oracle, [case], "the output")
        _expect_values(copies.eval(), oracle, [case], "the output after `.eval()`")
    small, large = call(cls, 4, 2), call(cls, 15, 5)
    _expect_same_calls(small, (randn(2, 3, 4, dtype=torch.float32),), large, (randn(4, 6, 15, dtype=torch.float32),))
    for dim, heads in _uneven():
        expect_raises(ValueError, partial(cls, dim, heads), f"NarrowSelfAttention({dim}, {heads})")


def _expect_values(function: Callable, oracle: Callable, cases: list[dict[str, Any]], name: str) -> None:
    wrong = _mistakes(oracle.keywords["state"], oracle)
    expect_matches(function, oracle, cases, wrong, name, gradients=False, device=False, tolerance=_FLOAT32)


def _expect_blocked_first(function: Callable, oracle: Callable, inputs: Mapping[str, Tensor]) -> None:
    """A blocked key far from zero has no part in the softmax; the last position is blocked, and not compared."""
    loud = {
        name: x.double() * torch.ones(x.shape[1], 1).double().index_fill(0, torch.tensor(x.shape[1] - 1), 1000.0)
        for name, x in inputs.items()
    }
    mask = torch.ones(len(next(iter(loud.values()))), 1, next(reversed(loud.values())).shape[1], dtype=torch.bool)
    mask[..., -1] = False
    name = "the output where a key far from zero is blocked"
    value, right = call(function, *loud.values(), mask)[:, :-1], oracle(*loud.values(), mask)[:, :-1]
    expect_close(value, right, name, None, None, _FLOAT32, otherwise=m.Attention.MASK_LATE)


def check_NarrowSelfAttention_masks(cls: Callable) -> None:
    """Masks of every shape, in values and gradients; a blocked key far from zero."""
    for batch, n, heads, size in ((2, 5, 2, 3), (2, 5, 3, 4), (3, 4, 2, 3)):
        dim = heads * size
        copies = _narrow_copies(cls, dim, heads)
        cases = [{"x": randn(batch, n, dim, dtype=torch.float32), "mask": mask} for mask in _masks(batch, heads, n, n)]
        oracle = partial(_narrow, state=copies.state, heads=heads)
        _expect_values(copies, oracle, cases, "the output with a mask")
        expect_gradients(copies, oracle, cases[-1], tolerance=_FLOAT32, module=copies.double)
        _expect_values(copies.eval(), oracle, cases, "the output with a mask after `.eval()`")
        _expect_blocked_first(copies, oracle, {"x": cases[0]["x"]})
    for batch, n, heads, size in _drawn_narrow_sizes():
        copies = _narrow_copies(cls, heads * size, heads)
        case = {"x": randn(batch, n, heads * size, dtype=torch.float32), "mask": rand_mask(batch, n, n)}
        oracle = partial(_narrow, state=copies.state, heads=heads)
        _expect_values(copies, oracle, [case], "the output with a mask")
        _expect_values(copies.eval(), oracle, [case], "the output with a mask after `.eval()`")


# ---- wide

# (B, n, m, heads, d/h)
_WIDE_SIZES = [
    (2, 2, 2, 2, 3),
    (2, 3, 5, 4, 2),
    (3, 5, 4, 2, 5),
    (1, 4, 2, 3, 4),
    (4, 1, 3, 2, 3),
    (2, 3, 1, 4, 1),
    (3, 2, 4, 1, 5),
]


# The same, drawn at each judgement.
def _drawn_wide_sizes() -> list[tuple[int, ...]]:
    return [
        draw_sizes((6, 20), (17, 40), (41, 64), (2, 5), (2, 5)),
        draw_sizes((2, 3), (41, 64), (65, 200), (13, 20), (4, 9)),
        draw_sizes((2, 3), (4, 9), (601, 900), (4, 9), (2, 4)),
        draw_sizes((2, 3), (601, 900), (4, 9), (4, 9), (2, 4)),
        draw_sizes((201, 400), (2, 6), (7, 12), (2, 4), (2, 4)),
    ]


def _wide(*inputs: Any, part: int = 0, **how: Any) -> Tensor:
    return _multi_head(*inputs, **how)[part]


def _part(copies: _Copies, part: int) -> Callable:
    return lambda *args: two(copies(*args))[part]


def _expect_wide_values(copies: _Copies, heads: int, cases: list[dict[str, Any]], what: str) -> None:
    for part, name in ((0, "the output"), (1, "the second result, the weights")):
        oracle = partial(_wide, state=copies.state, heads=heads, part=part)
        _expect_values(_part(copies, part), oracle, cases, name + what)


def _wide_inputs(batch: int, n: int, keys: int, dim: int) -> dict[str, Tensor]:
    return {
        "queries": randn(batch, n, dim, dtype=torch.float32),
        "keys": randn(batch, keys, dim, dtype=torch.float32),
        "values": randn(batch, keys, dim, dtype=torch.float32),
    }


def check_MultiHeadAttention_values(cls: Callable) -> None:
    """Parameters, values and weights without a mask, gradients, no loop, the stated error."""
    expect_no_dropout(cls)
    for batch, n, keys, heads, size in _WIDE_SIZES:
        dim = heads * size
        copies = _Copies(cls, dim, heads, wide_shapes(dim))
        inputs = _wide_inputs(batch, n, keys, dim)
        _expect_wide_values(copies, heads, [{**inputs, "mask": None}], "")
        expect_device(copies.elsewhere, {name: value.double() for name, value in inputs.items()})
        doubles = [value.double() for value in inputs.values()]
        _expect_gradients_of_copy(copies, partial(_wide, heads=heads), *doubles)
        for part in (0, 1):
            oracle = partial(_wide, state=copies.state, heads=heads, part=part)
            given = {**inputs, "mask": None}
            expect_gradients(_part(copies, part), oracle, given, tolerance=_FLOAT32, module=copies.double)
    for batch, n, keys, heads, size in _drawn_wide_sizes():
        copies = _Copies(cls, heads * size, heads, wide_shapes(heads * size))
        cases = [{**_wide_inputs(batch, n, keys, heads * size), "mask": None}]
        _expect_wide_values(copies, heads, cases, "")
        _expect_wide_values(copies.eval(), heads, cases, " after `.eval()`")
    _expect_same_calls(
        call(cls, 4, 2), (*_wide_inputs(2, 3, 2, 4).values(),), call(cls, 15, 5), (*_wide_inputs(4, 6, 7, 15).values(),)
    )
    for dim, heads in _uneven():
        expect_raises(ValueError, partial(cls, dim, heads), f"MultiHeadAttention({dim}, {heads})")


def check_MultiHeadAttention_masks(cls: Callable) -> None:
    """Masks of every shape, in values, weights and gradients."""
    for batch, n, keys, heads, size in ((2, 5, 5, 2, 3), (2, 3, 5, 4, 2), (3, 5, 4, 2, 3)):
        dim = heads * size
        copies = _Copies(cls, dim, heads, wide_shapes(dim))
        cases = [{**_wide_inputs(batch, n, keys, dim), "mask": mask} for mask in _masks(batch, heads, n, keys)]
        _expect_wide_values(copies, heads, cases, " with a mask")
        oracle = partial(_wide, state=copies.state, heads=heads)
        expect_gradients(_part(copies, 0), oracle, cases[-1], tolerance=_FLOAT32, module=copies.double)
        _expect_wide_values(copies.eval(), heads, cases, " with a mask after `.eval()`")
        _expect_blocked_first(_part(copies, 0), oracle, _wide_inputs(batch, n, keys, dim))
    for batch, n, keys, heads, size in _drawn_wide_sizes():
        copies = _Copies(cls, heads * size, heads, wide_shapes(heads * size))
        case = {**_wide_inputs(batch, n, keys, heads * size), "mask": rand_mask(batch, n, keys)}
        _expect_wide_values(copies, heads, [case], " with a mask")


def check_MultiHeadAttention_dropout(cls: Callable) -> None:
    """Dropout acts on the weights that meet the values, in training only; the weights returned are whole."""
    for _ in range(2):
        _check_dropout(cls, draw_probability())

    def make(probability: float) -> nn.Module:
        module = call(cls, 6, 3, probability)
        randomise(module, wide_shapes(6))
        return module

    expect_dropout_anew(make, [randn(1, 5, 6).repeat(6, 1, 1)] * 3, [randn(2, drawn_medium(), 6)] * 3)
    module = call(cls, 6, 3).train()
    state = randomise(module, wide_shapes(6))
    x = randn(2, 4, 6)
    right = _wide(x, x, x, state=state, heads=3)
    name = "the output in training mode, without dropout"
    expect_close(call(module, x, x, x)[0], right, name, tolerance=_FLOAT32)
    for batch, n, keys, heads, size in [(2, 5, 5, 2, 3), *_drawn_wide_sizes()]:
        rate, dim = draw_probability(), heads * size
        copies = _Copies(cls, dim, heads, wide_shapes(dim), rate).eval()
        masks = _masks(batch, heads, n, keys) if n == keys else [rand_mask(batch, n, keys)]
        cases = [{**_wide_inputs(batch, n, keys, dim), "mask": mask} for mask in masks]
        _expect_wide_values(copies, heads, cases, f" with a mask and dropout={rate}, after `.eval()`")


def _expect_no_other_rate(dropped: Tensor, weights: Tensor, probability: float, told: str) -> None:
    """Fail if another rate explains both: how many weights are dropped, and by how much the others are scaled up."""
    kept = dropped.abs() > 1e-12
    rate = 1 - (weights[kept].sum() / dropped[kept].sum()).item() if kept.any() else 1.0
    alike = torch.allclose(dropped[kept] * (1 - rate), weights[kept], atol=_FLOAT32, rtol=_FLOAT32)
    another = alike and 0 < rate <= 1 and within_luck(int((~kept).sum()), kept.numel(), rate)
    twice = abs((1 - rate) - (1 - probability) ** 2) < 1e-5  # the right rate, but not once
    name = f"the rate by which the weights are dropped and scaled {told}"
    expect(not another or twice, m.Attention.DROPOUT_SHARE, name, expected=f"{probability:g}", got=f"{rate:.3g}")


def _check_dropout(cls: Callable, probability: float) -> None:
    """Values are chosen so that the output *is* the weights after dropout, each of them twice."""
    batch, n, keys, heads = 3, 48, 5, 4
    dim = heads * 2 * keys
    module = call(cls, dim, heads, probability)
    state = randomise(module, wide_shapes(dim))
    identity = {"weight": torch.eye(dim, dtype=torch.float64), "bias": torch.zeros(dim, dtype=torch.float64)}
    for name in ("Wv", "WO"):
        state |= {f"{name}.{part}": value for part, value in identity.items()}
    for name in ("Wq", "Wk"):
        state |= {f"{name}.weight": state[f"{name}.weight"] * 0.1}
    set_weights(module, state)
    values = torch.eye(keys, dtype=torch.float64).repeat(1, 2 * heads).expand(batch, -1, -1).contiguous()
    inputs = {"queries": randn(batch, n, dim), "keys": randn(batch, keys, dim), "values": values}
    right, weights = _multi_head(*inputs.values(), state=state, heads=heads)

    expect_same_in_eval(module, [*inputs.values()], f"the module with dropout={probability}")
    for value, name in zip(two(call(module, *inputs.values())), ("the output", "the weights"), strict=True):
        expected = right if value.shape == right.shape else weights
        expect_close(value, expected, f"{name} with dropout={probability}, after `.eval()`,", tolerance=_FLOAT32)

    module.train()
    with unchanged(**inputs):
        output, returned = call(module, *inputs.values())
    told = f"in training with dropout={probability}"
    expect_close(returned, weights, f"the second result {told}", tolerance=_FLOAT32)
    dropped = output.unflatten(-1, (heads, 2, keys)).permute(3, 0, 2, 1, 4)  # (2, B, h, n, m)
    alike = torch.allclose(dropped[0], dropped[1], atol=1e-9)
    expect(alike, m.Attention.DROPOUT_ELSEWHERE, f"{told} one feature of a value is dropped and another not")
    kept = dropped[0].abs() > 1e-12
    scaled = torch.allclose(dropped[0][kept], weights[kept] / (1 - probability), atol=_FLOAT32, rtol=_FLOAT32)
    if not scaled:
        _expect_no_other_rate(dropped[0], weights, probability, told)
    expect(scaled, m.Attention.DROPOUT_MISPLACED, f"it was seen {told}")
    expect_not_dropped_together(~kept, (2, 3))
    patterns = {tuple(pattern.flatten().tolist()) for pattern in kept.flatten(0, 1)}
    expect(len(patterns) == batch * heads, m.Attention.DROPOUT_SHARED)
    expect_dropped_singly(~kept, probability, m.Attention.DROPOUT_SHARE, told)
    _expect_masked_while_dropping(module, inputs, state, heads, probability, told)
    there = getattr(module, "heads", None)
    expect(there == heads, m.Attention.HEADS_NOT_KEPT, "`heads`", expected=heads, got=there)
    dropout = module.dropout
    rate = dropout.p if isinstance(dropout, nn.Dropout) else None
    expect(rate == probability, m.Attention.DROPOUT_NOT_KEPT, "its rate", expected=probability, got=rate)


def _expect_masked_while_dropping(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    state: Mapping[str, Tensor],
    heads: int,
    probability: float,
    told: str,
) -> None:
    """The mask counts beside dropout: the output *is* the weights after it, as in `_check_dropout`."""
    batch, n, keys = len(inputs["queries"]), inputs["queries"].shape[1], inputs["keys"].shape[1]
    mask = rand_mask(batch, n, keys)
    _, weights = _multi_head(*inputs.values(), mask, state=state, heads=heads)
    output, returned = call(module, *inputs.values(), mask)
    expect_close(returned, weights, f"the second result with a mask {told}", tolerance=_FLOAT32)
    dropped = output.unflatten(-1, (heads, 2, keys))[..., 0, :].transpose(1, 2)  # (B, h, n, m)
    right = torch.where(dropped.abs() > 1e-12, weights / (1 - probability), 0.0)
    expect_close(dropped, right, f"the weights with a mask {told}, as the output shows them,", tolerance=_FLOAT32)


# ---- torch's


def check_copy_into_torch(function: Callable) -> None:
    """Outputs and weights in both dtypes, settings, independence of the original."""
    make = place(stand_in, beside=function)
    many, size = draw_sizes((13, 30), (5, 12))
    for dim, heads, dropout, dtype in (
        (4, 2, 0.0, torch.float32),
        (6, 3, 0.3, torch.float64),
        (10, 1, 0.1, torch.float32),
        (many * size, many, draw_probability(), torch.float64),
        (2 * size, 2, draw_probability(), torch.bfloat16),
    ):
        attention = make(dim, heads, dropout)
        # Small weights for many features: scores in the hundreds would show whatever float32 rounds off.
        state = randomise(attention, wide_shapes(dim), dtype, scale=min(0.5, dim**-0.5))
        attention.eval()
        copy = call(function, attention)
        expect_settings(copy, heads, dropout)
        for name, parameter in copy.named_parameters():
            expect_tensor(parameter, None, dtype, f"the copy's `{name}`")
            expect(parameter.requires_grad, m.copy_into_torch.FROZEN, f"`requires_grad` of `{name}`", got="False")
        expect(not copy.training, m.copy_into_torch.MODE, "the copy of one in eval mode", got="in training mode")
        for name, right in _torchs(state).items():
            where = f"the copy's `{name}` with {dim} features"
            expect_close(copy.state_dict()[name], right, where, otherwise=m.copy_into_torch.NOT_COPIED)
        if dtype != torch.bfloat16:
            _expect_copied_values(copy, state, dim, heads, dtype)
        for name, parameter in attention.named_parameters():
            learns, what = parameter.requires_grad, f"`requires_grad` of the original's `{name}`"
            expect(learns, m.copy_into_torch.FROZEN, what, got="False")
        _expect_independent(copy, attention, state, dim, dtype)
    training = make(4, 2, 0.0).train()
    copy = call(function, training)
    expect(copy.training and training.training, m.copy_into_torch.MODE, "one in training mode, or its copy")
    _expect_same_device(function, make(4, 2, 0.0).to("meta"))


def _expect_same_device(function: Callable, elsewhere: nn.Module) -> None:
    """Fail unless the copy of an original on torch's "meta" device, which stands in for a GPU, is there too."""
    try:
        devices = set(place(devices_of_copy, beside=function)(function, elsewhere))
    except Exception:  # computing with both devices
        devices = {"cpu"}
    expect(devices == {"meta"}, Common.MADE_ON_CPU, "the copy of an original on another device", got="on the CPU")


def devices_of_copy(function: Callable, elsewhere: nn.Module) -> list[str]:
    """Where the parameters of a copy are whose original is on torch's "meta" device.

    Nothing can be copied from there to the CPU. From a GPU it can, into a layer that moves to the GPU afterwards, or by
    `.data = …`, which moves the parameter. So the first does nothing here, and the second is noted.
    """
    moved = []

    class Copying(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, called, types, args=(), kwargs=None):
            name, given = getattr(called, "__name__", ""), [*args, *(kwargs or {}).values()]
            copies = name in ("copy_", "__setitem__", "__set__") and not given[0].is_meta
            if copies and any(torch.is_tensor(x) and x.is_meta for x in given[1:]):
                if name == "__set__":
                    moved.append(given[0])
                return given[0]
            return called(*args, **(kwargs or {}))

    with Copying():
        copy = function(elsewhere)
    return ["meta" if any(p is one for one in moved) else p.device.type for p in copy.parameters()]


def _torchs(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Where torch keeps the same weights."""
    stacked = {p: torch.cat([state[f"{name}.{p}"] for name in ("Wq", "Wk", "Wv")]) for p in ("weight", "bias")}
    kept = {f"out_proj.{part}": state[f"WO.{part}"] for part in stacked}
    return {f"in_proj_{part}": value for part, value in stacked.items()} | kept


def _expect_copied_values(
    copy: nn.Module, state: Mapping[str, Tensor], dim: int, heads: int, dtype: torch.dtype
) -> None:
    q, k, v = randn(2, 3, dim, dtype=dtype), randn(2, 5, dim, dtype=dtype), randn(2, 5, dim, dtype=dtype)
    for part, name in enumerate(("output", "weights")):
        value = call(copy, q, k, v, average_attn_weights=False)[part]
        right = _wide(q.double(), k.double(), v.double(), state=state, heads=heads, part=part)
        expect_close(value, right, f"the copy's {name}")


def _expect_independent(
    copy: nn.Module, attention: nn.Module, state: Mapping[str, Tensor], dim: int, dtype: torch.dtype
) -> None:
    shapes = {"in_proj_weight": (3 * dim, dim), "in_proj_bias": (3 * dim,)}
    randomise(copy, shapes | {"out_proj.weight": (dim, dim), "out_proj.bias": (dim,)}, dtype)
    for name, value in attention.state_dict().items():
        same = torch.equal(value.double(), state[name].to(value.dtype).double())
        expect(same, m.copy_into_torch.SHARED, f"what they share is `{name}`")


# ---- counting


def _layer():
    return nn.Linear(7, 3)


def _nested():
    return nn.Sequential(nn.Sequential(nn.Linear(5, 4), nn.ReLU()), nn.ModuleList([nn.Linear(4, 2, bias=False)]))


def _frozen():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    return model


def _shared():
    model = nn.Sequential(nn.Embedding(6, 5), nn.Linear(5, 6))
    model[1].weight = model[0].weight
    return model


def _with_buffers():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


def _own_parameter():
    model = nn.Sequential(nn.Linear(2, 3))
    model.scale = nn.Parameter(torch.ones(2, 3, 4))
    model.shift, model.offset = nn.Parameter(torch.ones(5)), nn.Parameter(torch.tensor(1.0))
    return model


def _nothing_to_learn():
    return nn.ReLU()


def make_drawn(sizes, depth, many, large):
    """Layers of many kinds, many small ones and a large one, each so deep inside others."""
    a, b, c, d = sizes
    layers = [nn.Conv3d(a, b, (2, 3, c)), nn.GRU(b, c), nn.LayerNorm((c, d)), nn.Bilinear(a, b, d), nn.Linear(d, a)]
    model = nn.ModuleDict({f"part_{number}": layer for number, layer in enumerate(layers)})
    model.tables = nn.ParameterList([torch.zeros(a, b, 2, c, 3, d), torch.zeros(0, d), torch.zeros(())])
    model.small, model.large = nn.ModuleList([nn.Linear(2, 3) for _ in range(many)]), nn.Embedding(large, 1009)
    for _ in range(depth):
        model = nn.Sequential(nn.Identity(), model)
    return model


def _drawn_count(a: int, b: int, c: int, d: int, many: int, large: int) -> int:
    """How many numbers are in the parameters of `make_drawn`."""
    convolution, bilinear = b * a * 2 * 3 * c + b, d * a * b + d
    recurrent = 3 * c * b + 3 * c * c + 6 * c
    tables = a * b * 2 * c * 3 * d + 1 + 1009 * large
    return convolution + recurrent + c * d + c * d + bilinear + d * a + a + tables + 9 * many


def _settings(module: nn.Module) -> dict[str, bool]:
    """What a count might change: the mode, and which parameters are frozen."""
    flags = {name: parameter.requires_grad for name, parameter in module.named_parameters()}
    return {"training": bool(module.training), **flags}


_TOO_MANY = (m.count_parameters.TWICE, m.count_parameters.BUFFERS)


def check_count_parameters(function: Callable) -> None:
    """Modules of many kinds, and that the module stays as it is."""
    cases = [
        (_layer, 24, Unexplained.NUMBER, "nn.Linear(7, 3)"),
        (_nested, 32, m.count_parameters.NESTED, "modules inside modules, nn.Linear(5, 4) and nn.Linear(4, 2)"),
        (_own_parameter, 39, m.count_parameters.TWO_DIMENSIONS, "nn.Linear(2, 3) beside shapes (2, 3, 4), (5,) and ()"),
        (_frozen, 26, m.count_parameters.FROZEN, "nn.Linear(3, 4), frozen, and nn.Linear(4, 2)"),
        (_shared, 36, m.count_parameters.TWICE, "an embedding and a linear layer with one (6, 5) weight"),
        (_with_buffers, 24, m.count_parameters.BUFFERS, "nn.Linear(3, 4) and nn.BatchNorm1d(4)"),
        (_nothing_to_learn, 0, Unexplained.NUMBER, "nn.ReLU(), without parameters"),
    ]
    modules = [(place(build, beside=function)(), *rest) for build, *rest in cases]
    sizes, depth = draw_sizes((2, 5), (2, 5), (2, 5), (2, 5)), int(randint(3, 9, ()))
    many, large = draw_sizes((101, 200), (1000, 2000))
    drawn = place(make_drawn, beside=function)(list(sizes), depth, many, large)
    about = f"{many + 7} layers of many kinds, inside {depth} others"
    modules.append((drawn, _drawn_count(*sizes, many, large), Unexplained.NUMBER, about))
    for number, (module, expected, mistake, asked) in enumerate(modules):
        before = _settings(module)
        count = call(function, module)
        told = {"asked": asked, "expected": expected, "got": repr(count)}
        whole = isinstance(count, int) and not isinstance(count, bool)
        expect(whole, m.count_parameters.NO_INT, "the count", **told)
        if count == {0: 0, 2: 9}.get(number):  # what is left without a module's own
            mistake = m.count_parameters.OWN
        elif (count > expected) != (mistake in _TOO_MANY):
            mistake = Unexplained.NUMBER
        expect(count == expected, mistake, "the count", **told)
        expect(_settings(module) == before, m.count_parameters.CHANGED, asked=asked)
