"""The hidden tests of chapter 04."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    call,
    expect_close,
    expect_device,
    expect_gradients,
    expect_matches,
    expect_no_loop,
    expect_parameter_gradients,
    expect_parameters,
    expect_raises,
    expect_same_in_eval,
    place,
    rand_mask,
    randn,
    randomise,
    record_calls,
    set_weights,
    unchanged,
)
from checks.formulas import linear
from checks.multi_head_attention.visible import stand_in

# ---- splitting and merging

# (B, n, heads, d/h): equal sizes first, where a mix-up of two dimensions gives wrong values instead of a wrong shape.
_SPLITS = [(2, 2, 2, 2), (2, 3, 4, 5), (3, 5, 2, 4), (1, 4, 3, 1), (4, 1, 2, 3), (2, 6, 1, 5), (3, 2, 5, 1)]


def _split(x: Tensor, heads: int) -> Tensor:
    size = x.shape[-1] // heads
    return torch.stack([x[..., h * size : (h + 1) * size] for h in range(heads)], dim=1)


def _merge(x: Tensor) -> Tensor:
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


def _split_interleaved(x: Tensor, heads: int) -> Tensor:
    return torch.stack([x[..., h::heads] for h in range(heads)], dim=1)


def _split_without_transpose(x: Tensor, heads: int) -> Tensor:
    return x.reshape(len(x), heads, x.shape[1], x.shape[2] // heads)


def _merge_interleaved(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).flatten(2)


def _merge_without_transpose(x: Tensor) -> Tensor:
    return x.reshape(len(x), x.shape[2], -1)


_INTERLEAVED = (
    "the heads are interleaved: feature c went to head c % heads, but a head is a block of consecutive features "
    "(cut d into (heads, d/h), in this order)"
)
_NOT_TRANSPOSED = (
    "positions and heads are mixed up: one reshape from (B, n, d) to (B, heads, n, d/h) keeps the order in memory, so "
    "that a head holds whole positions. Reshape to (B, n, heads, d/h), then exchange dimensions 1 and 2"
)
_NOT_TRANSPOSED_BACK = (
    "positions and heads are mixed up: exchange dimensions 1 and 2, to (B, n, heads, d/h), before the reshape to "
    "(B, n, d)"
)
_SPLIT_MISTAKES = {
    _INTERLEAVED: _split_interleaved,
    _NOT_TRANSPOSED: _split_without_transpose,
    "the heads come after the positions: exchange dimensions 1 and 2": lambda x, h: _split(x, h).transpose(1, 2),
    "the heads come before the batch": lambda x, h: _split(x, h).transpose(0, 1),
    "the last two dimensions are exchanged: the positions come before a head's features": lambda x, h: _split(x, h).mT,
    "the heads are in reverse order": lambda x, h: _split(x, h).flip(1),
    "there are d/h heads of `heads` features, not `heads` heads of d/h features": lambda x, h: _split(
        x, x.shape[-1] // h
    ),
    "every head got the features of head 0": lambda x, h: _split(x, h)[:, :1].expand(-1, h, -1, -1),
    "the positions were cut into heads, not the features": lambda x, h: torch.stack(x.chunk(h, dim=1), dim=1),
    "every item of the batch got the features of item 0": lambda x, h: _split(x[:1], h).expand(len(x), -1, -1, -1),
}
_MERGE_MISTAKES = {
    _NOT_TRANSPOSED_BACK: _merge_without_transpose,
    "the heads are interleaved: all features of head 0 come first, then all of head 1, and so on": _merge_interleaved,
    "features and positions are exchanged": lambda x: _merge(x).mT,
    "the heads are added up, not put side by side": lambda x: x.sum(1),
    "the heads are averaged, not put side by side": lambda x: x.mean(1),
    "the heads are in reverse order": lambda x: _merge(x.flip(1)),
    "only head 0 was kept": lambda x: x[:, 0],
    "the heads are stacked as positions, not put side by side": lambda x: x.flatten(1, 2),
    "every item of the batch got the features of item 0": lambda x: _merge(x[:1]).expand(len(x), -1, -1),
}


def check_split_heads(function: Callable) -> None:
    """Values at many sizes, no loop, and the stated error."""
    cases = [{"x": randn(b, n, h * size), "heads": h} for b, n, h, size in _SPLITS]
    expect_matches(function, _split, cases, _SPLIT_MISTAKES, "the split")
    expect_no_loop(function, [randn(2, 3, 4), 2], [randn(4, 7, 30), 6], over="positions, batch items or heads")
    for dim, heads in ((7, 2), (4, 3), (2, 4)):
        expect_raises(ValueError, partial(function, randn(2, 12, dim), heads), f"{heads} heads for {dim} features")


def check_merge_heads(function: Callable) -> None:
    """Values at many sizes, no loop."""
    cases = [{"x": randn(b, h, n, size)} for b, n, h, size in _SPLITS]
    expect_matches(function, _merge, cases, _MERGE_MISTAKES, "the merged tensor")
    expect_no_loop(function, [randn(2, 2, 3, 2)], [randn(4, 6, 7, 5)], over="positions, batch items or heads")


# ---- attention, written out


def _softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    allowed = torch.ones_like(scores) if mask is None else mask.expand_as(scores).to(scores.dtype)
    e = (scores - scores.detach().amax(dim, keepdim=True)).exp() * allowed
    total = e.sum(dim, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)


def _for_heads(mask: Tensor | None) -> Tensor | None:
    return mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask


def _weights(q: Tensor, k: Tensor, mask: Tensor | None, scale: float | None = None) -> Tensor:
    return _softmax(q @ k.mT / (scale or q.shape[-1] ** 0.5), _for_heads(mask))


def _multi_head(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    *,
    state: Mapping[str, Tensor],
    heads: int,
    narrow: bool = False,
    split: Callable = _split,
    merge: Callable = _merge,
    weigh: Callable = _weights,
    names: tuple[str, str, str] = ("Wq", "Wk", "Wv"),
    finish: Callable | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention by the formula; each keyword after `narrow` can be replaced by a mistake."""
    if narrow:
        q, k, v = (linear(state, name, split(x, heads)) for name, x in zip(names, (queries, keys, values), strict=True))
    else:
        q, k, v = (split(linear(state, name, x), heads) for name, x in zip(names, (queries, keys, values), strict=True))
    weights = weigh(q, k, mask)
    merged = merge(weights @ v)
    return (finish(merged) if finish else linear(state, "WO", merged)), weights


# ---- mistakes: for each cause, the keyword of _multi_head that makes it


def _weigh_head(number: int) -> Callable:
    def weigh(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        return _weights(q, k, mask)[:, number : number + 1].expand(-1, q.shape[1], -1, -1)

    return weigh


def _weigh_swapped(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    return _weights(k, q, mask)


def _weigh_item_0(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    return _weights(q, k, mask)[:1].expand(len(q), -1, -1, -1)


def _weigh_average_heads(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    return _weights(q, k, mask).mean(1, keepdim=True).expand(-1, q.shape[1], -1, -1)


def _mask_changed(change: Callable[[Tensor], Tensor | None]) -> Callable:
    """Attention whose mask, as `(B or 1, h or 1, n or 1, m)`, is changed first."""

    def weigh(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            return _weights(q, k, None)
        shape = (len(q), q.shape[1], q.shape[2], k.shape[2])
        mask = _for_heads(mask).expand(shape)
        return _weights(q, k, change(mask))

    return weigh


def _only_first(mask: Tensor, dim: int) -> Tensor:
    changed = torch.ones_like(mask)
    changed.select(dim, 0).copy_(mask.select(dim, 0))
    return changed


def _weigh_mask_lined_up_with_heads(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None or mask.dim() != 3:
        return _weights(q, k, mask)
    return _weights(q, k, mask.unsqueeze(0))


def _weigh_mask_after_softmax(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    weights = _weights(q, k, None)
    return weights if mask is None else weights * _for_heads(mask)


def _weigh_mask_added(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return _softmax(scores if mask is None else scores + _for_heads(mask), None)


def _weigh_filled(value: float) -> Callable:
    def weigh(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return (scores if mask is None else scores.masked_fill(~_for_heads(mask), value)).softmax(-1)

    return weigh


_MASK_MISTAKES = {
    "the mask is ignored": {"weigh": _mask_changed(lambda mask: None)},
    "the mask has the wrong sign: True means that attention is allowed": {"weigh": _mask_changed(lambda mask: ~mask)},
    "the mask is applied in head 0 only: it holds for every head": {
        "weigh": _mask_changed(lambda mask: _only_first(mask, 1))
    },
    "a mask of three dimensions (B, n, m) lined up its batch with the heads: give it a dimension for the heads, "
    "(B, 1, n, m)": {"weigh": _weigh_mask_lined_up_with_heads},
    "the mask of batch item 0 is used for the whole batch": {
        "weigh": _mask_changed(lambda mask: mask[:1].expand_as(mask))
    },
    "the mask of head 0 is used for every head": {"weigh": _mask_changed(lambda mask: mask[:, :1].expand_as(mask))},
    "the mask is transposed: mask[i, j] says whether output i may look at position j": {
        "weigh": _mask_changed(lambda mask: mask.mT)
    },
    "the mask is applied after the softmax, so that the rows no longer sum to 1": {"weigh": _weigh_mask_after_softmax},
    "the mask is added to the scores as 0 and 1: fill the masked scores before the softmax": {
        "weigh": _weigh_mask_added
    },
    "the scores are filled, so that a row that may attend to nothing attends to everything equally: its weights should "
    "all be 0": {"weigh": _weigh_filled(-1e30)},
    "masked scores are set to 0 before the softmax, and exp(0) is 1, not 0": {"weigh": _weigh_filled(0.0)},
}


def _mistakes(state: Mapping[str, Tensor], heads: int, dim: int) -> dict[str, dict[str, Any]]:
    """The mistakes that both kinds of attention share."""
    return {
        _INTERLEAVED: {"split": _split_interleaved, "merge": _merge_interleaved},
        _NOT_TRANSPOSED: {"split": _split_without_transpose, "merge": _merge_without_transpose},
        _NOT_TRANSPOSED + ".": {"split": _split_without_transpose},
        _NOT_TRANSPOSED_BACK: {"merge": _merge_without_transpose},
        "the heads are put back in the wrong order: all features of head 0 come first, then all of head 1": {
            "merge": _merge_interleaved
        },
        _INTERLEAVED + ".": {"split": _split_interleaved},
        "the scores are divided by √dim: a head's dot product has only dim // heads terms; divide by its root": {
            "weigh": lambda q, k, mask: _weights(q, k, mask, dim**0.5)
        },
        "the scores are divided by the root of the sequence length: divide by √(dim // heads)": {
            "weigh": lambda q, k, mask: _weights(q, k, mask, k.shape[-2] ** 0.5)
        },
        "the scores are divided by the root of the number of queries: divide by √(dim // heads)": {
            "weigh": lambda q, k, mask: _weights(q, k, mask, q.shape[-2] ** 0.5)
        },
        "the scores are divided by the root of the number of heads: divide by √(dim // heads)": {
            "weigh": lambda q, k, mask: _weights(q, k, mask, heads**0.5)
        },
        "the scores are divided by dim // heads: divide by its root": {
            "weigh": lambda q, k, mask: _weights(q, k, mask, dim // heads)
        },
        "the scores are not scaled: divide by √(dim // heads)": {"weigh": lambda q, k, mask: _weights(q, k, mask, 1.0)},
        "queries and keys are swapped: Wq belongs to the queries, Wk to the keys": {"names": ("Wk", "Wq", "Wv")},
        "queries and keys are swapped: row i of the weights belongs to query i": {"weigh": _weigh_swapped},
        "Wq is used for the keys too": {"names": ("Wq", "Wq", "Wv")},
        "Wk is used for the values too": {"names": ("Wq", "Wk", "Wk")},
        "Wq is used for queries, keys and values": {"names": ("Wq", "Wq", "Wq")},
        "the weights of batch item 0 are used for the whole batch": {"weigh": _weigh_item_0},
        "the weights of head 0 are used for every head": {"weigh": _weigh_head(0)},
        "the weights are averaged over the heads: each head has weights of its own": {"weigh": _weigh_average_heads},
        "the softmax runs over the heads: it belongs over the positions looked at, the last dimension": {
            "weigh": lambda q, k, mask: _softmax(q @ k.mT / q.shape[-1] ** 0.5, _for_heads(mask), dim=1)
        },
        "the softmax runs over the queries: it belongs over the positions looked at, the last dimension": {
            "weigh": lambda q, k, mask: _softmax(q @ k.mT / q.shape[-1] ** 0.5, _for_heads(mask), dim=2)
        },
        "the heads' outputs are not mapped by WO at the end": {"finish": lambda merged: merged},
        "WO's bias is left out": {"finish": lambda merged: merged @ state["WO.weight"].mT},
        "the heads' outputs are averaged, not put side by side": {
            "merge": lambda x: _merge(x.mean(1, keepdim=True).expand_as(x))
        },
        **_MASK_MISTAKES,
    }


def _extended(mistakes: dict[str, dict[str, Any]], oracle: Callable) -> dict[str, Callable]:
    return {cause: partial(oracle, **wrong) for cause, wrong in mistakes.items()}


# ---- what both modules are held to


class _Copies:
    """A student's module in float32, in float64 and on the meta device, with the same random weights."""

    def __init__(self, cls: Callable, dim: int, heads: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.single, self.double = call(cls, dim, heads), call(cls, dim, heads)
        # float32 numbers in both, so that they compute the same.
        self.state = randomise(self.single, shapes, torch.float32)
        set_weights(self.double, self.state)
        self.elsewhere = call(cls, dim, heads).double().to("meta")

    def __call__(self, first: Tensor, *others: Any) -> Any:
        if first.device.type == "meta":
            return self.elsewhere(first, *others)
        return (self.single if first.dtype == torch.float32 else self.double)(first, *others)


def _expect_gradients_of_copy(copies: _Copies, oracle: Callable, *inputs: Tensor) -> None:
    expect_parameter_gradients(copies.double, lambda state, *inputs: oracle(*inputs, state=state), copies.state, inputs)


def _expect_same_calls(small: nn.Module, few: tuple[Any, ...], large: nn.Module, many: tuple[Any, ...]) -> None:
    """Fail if a module with more heads makes more calls to torch."""
    counts = len(record_calls(small, *few)), len(record_calls(large, *many))
    assert counts[0] == counts[1], (
        "this exercise is to be solved without a loop over the heads (or positions, or batch items): the code makes "
        f"{counts[0]} calls to torch with few and {counts[1]} with more: is a `for`, comprehension or ModuleList there?"
    )


def _masks(batch: int, heads: int, n: int, m: int) -> list[Tensor]:
    """A mask of each allowed shape, and one with rows that may attend to nothing."""
    empty = rand_mask(batch, n, m)
    empty[-1, 0] = False
    empty[0, -1] = False
    return [
        rand_mask(batch, n, m),
        rand_mask(n, m),
        rand_mask(batch, 1, m),
        rand_mask(batch, heads, n, m),
        empty,
    ]


# ---- narrow

# (B, n, heads, d/h): batch, length and heads equal first, so that dimensions can be mixed up without a crash.
_NARROW_SIZES = [(2, 2, 2, 3), (2, 5, 3, 4), (3, 4, 2, 5), (1, 6, 4, 2), (4, 1, 3, 2), (2, 3, 1, 5), (2, 4, 3, 1)]
_NARROW_HINTS = {
    "W": "Wq, Wk and Wv are `nn.Linear(dim // heads, dim // heads, bias=False)`, one each for all heads; WO is "
    "`nn.Linear(dim, dim)`"
}


def _narrow(x: Tensor, mask: Tensor | None = None, *, state: Mapping[str, Tensor], heads: int, **wrong: Any) -> Tensor:
    return _multi_head(x, x, x, mask, state=state, heads=heads, narrow=True, **wrong)[0]


def _narrow_mistakes(state: Mapping[str, Tensor], heads: int, dim: int) -> dict[str, Callable]:
    oracle = partial(_narrow, state=state, heads=heads)
    return {
        **_extended(_mistakes(state, heads, dim), oracle),
        "the values are not mapped by Wv": lambda x, mask: oracle(
            x, mask, state={**state, "Wv.weight": torch.eye(dim // heads, dtype=x.dtype)}
        ),
        "every head sees the slice of head 0": lambda x, mask: oracle(
            x, mask, split=lambda x, h: _split(x, h)[:, :1].expand(-1, h, -1, -1)
        ),
        "the input is added to the output: the residual comes in chapter 6": lambda x, mask: oracle(x, mask) + x,
    }


def _narrow_copies(cls: Callable, dim: int, heads: int) -> _Copies:
    slice_ = (dim // heads, dim // heads)
    shapes = {"Wq.weight": slice_, "Wk.weight": slice_, "Wv.weight": slice_}
    shapes |= {"WO.weight": (dim, dim), "WO.bias": (dim,)}
    expect_parameters(call(cls, dim, heads), shapes, _NARROW_HINTS)
    return _Copies(cls, dim, heads, shapes)


def check_NarrowSelfAttention_values(cls: Callable) -> None:
    """Parameters, values without a mask, gradients, no loop, the stated error."""
    for batch, n, heads, size in _NARROW_SIZES:
        dim = heads * size
        copies = _narrow_copies(cls, dim, heads)
        oracle = partial(_narrow, state=copies.state, heads=heads)
        case = {"x": randn(batch, n, dim, dtype=torch.float32), "mask": None}
        mistakes = _narrow_mistakes(copies.state, heads, dim)
        expect_matches(copies, oracle, [case], mistakes, "the output", gradients=False, device=False)
        x = case["x"].double()
        expect_device(copies.elsewhere, {"x": x})
        _expect_gradients_of_copy(copies, partial(_narrow, heads=heads), x)
        expect_gradients(copies, oracle, case, mistakes)
        expect_close(call(copies.single.eval(), case["x"]), oracle(x), "the output after `.eval()`")
    small, large = call(cls, 4, 2), call(cls, 15, 5)
    _expect_same_calls(small, (randn(2, 3, 4, dtype=torch.float32),), large, (randn(4, 6, 15, dtype=torch.float32),))
    for dim, heads in ((7, 2), (4, 3), (2, 4)):
        expect_raises(ValueError, partial(cls, dim, heads), f"NarrowSelfAttention({dim}, {heads})")


def check_NarrowSelfAttention_masks(cls: Callable) -> None:
    """Masks of every shape, in values and gradients."""
    for batch, n, heads, size in ((2, 5, 2, 3), (2, 5, 3, 4), (3, 4, 2, 3)):
        dim = heads * size
        copies = _narrow_copies(cls, dim, heads)
        cases = [{"x": randn(batch, n, dim, dtype=torch.float32), "mask": mask} for mask in _masks(batch, heads, n, n)]
        oracle = partial(_narrow, state=copies.state, heads=heads)
        mistakes = _narrow_mistakes(copies.state, heads, dim)
        what = "the output with a mask"
        expect_matches(copies, oracle, cases, mistakes, what, gradients=False, device=False)
        expect_gradients(copies, oracle, cases[-1])


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
_WIDE_HINTS = {"W": "Wq, Wk, Wv and WO are `nn.Linear(dim, dim)`, each with its bias"}


def _wide(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    *,
    state: Mapping[str, Tensor],
    heads: int,
    part: int = 0,
    **wrong: Any,
) -> Tensor:
    return _multi_head(queries, keys, values, mask, state=state, heads=heads, **wrong)[part]


def _wide_mistakes(state: Mapping[str, Tensor], heads: int, dim: int, part: int) -> dict[str, Callable]:
    oracle = partial(_wide, state=state, heads=heads, part=part)
    mistakes = _extended(_mistakes(state, heads, dim), oracle)
    unmapped = {"Wv.weight": torch.eye(dim, dtype=torch.float64), "Wv.bias": torch.zeros(dim, dtype=torch.float64)}
    mistakes |= {
        "the keys are used as values: Wv belongs to the third argument": lambda q, k, v, mask: oracle(q, k, k, mask),
        "the values are used as keys: Wk belongs to the second argument": lambda q, k, v, mask: oracle(q, v, v, mask),
        "the values are not mapped by Wv": lambda q, k, v, mask: oracle(q, k, v, mask, state={**state, **unmapped}),
        "the queries are used as keys and values: there are three arguments": lambda q, k, v, mask: oracle(
            q, q, q, mask
        ),
        "the arguments `queries` and `keys` are swapped": lambda q, k, v, mask: oracle(k, q, v, mask),
        "the queries are added to the output: the residual comes in chapter 6": lambda q, k, v, mask: (
            oracle(q, k, v, mask) + q
        ),
    }
    if part == 1:
        mistakes |= {
            "the weights returned are averaged over the heads: return those of each head, (B, h, n, m)": (
                lambda q, k, v, mask: oracle(q, k, v, mask).mean(1)
            ),
            "the weights returned are added up over the heads: return those of each head, (B, h, n, m)": (
                lambda q, k, v, mask: oracle(q, k, v, mask).sum(1)
            ),
            "only head 0's weights are returned: return those of each head, (B, h, n, m)": (
                lambda q, k, v, mask: oracle(q, k, v, mask)[:, 0]
            ),
            "the scores are returned, not the weights": lambda q, k, v, mask: oracle(
                q, k, v, mask, weigh=lambda q, k, mask: q @ k.mT / q.shape[-1] ** 0.5
            ),
            "the weights are returned as (B, n, h, m): the heads come before the queries": (
                lambda q, k, v, mask: oracle(q, k, v, mask).transpose(1, 2)
            ),
        }
    return mistakes


def _wide_shapes(dim: int) -> dict[str, tuple[int, ...]]:
    weights = {f"{name}.weight": (dim, dim) for name in ("Wq", "Wk", "Wv", "WO")}
    return weights | {f"{name}.bias": (dim,) for name in ("Wq", "Wk", "Wv", "WO")}


def _wide_copies(cls: Callable, dim: int, heads: int) -> _Copies:
    shapes = _wide_shapes(dim)
    expect_parameters(call(cls, dim, heads), shapes, _WIDE_HINTS)
    return _Copies(cls, dim, heads, shapes)


def _part(copies: _Copies, part: int) -> Callable:
    def function(*args: Any) -> Tensor:
        result = copies(*args)
        assert isinstance(result, tuple | list) and len(result) == 2, (
            "forward should return two things, `return output, weights`"
        )
        return result[part]

    return function


def _wide_cases(copies: _Copies, heads: int, dim: int, cases: list[dict[str, Any]], what: str) -> None:
    for part, name in ((0, "the output"), (1, "the second result, the weights")):
        oracle = partial(_wide, state=copies.state, heads=heads, part=part)
        expect_matches(
            _part(copies, part),
            oracle,
            cases,
            _wide_mistakes(copies.state, heads, dim, part),
            name + what,
            gradients=False,
            device=False,
        )


def _wide_inputs(batch: int, n: int, m: int, dim: int) -> dict[str, Tensor]:
    return {
        "queries": randn(batch, n, dim, dtype=torch.float32),
        "keys": randn(batch, m, dim, dtype=torch.float32),
        "values": randn(batch, m, dim, dtype=torch.float32),
    }


def check_MultiHeadAttention_values(cls: Callable) -> None:
    """Parameters, values and weights without a mask, gradients, no loop, the stated error."""
    for batch, n, m, heads, size in _WIDE_SIZES:
        dim = heads * size
        copies = _wide_copies(cls, dim, heads)
        inputs = _wide_inputs(batch, n, m, dim)
        _wide_cases(copies, heads, dim, [{**inputs, "mask": None}], "")
        expect_device(copies.elsewhere, {name: value.double() for name, value in inputs.items()})
        doubles = [value.double() for value in inputs.values()]
        _expect_gradients_of_copy(copies, partial(_wide, heads=heads), *doubles)
        for part in (0, 1):
            oracle = partial(_wide, state=copies.state, heads=heads, part=part)
            expect_gradients(_part(copies, part), oracle, {**inputs, "mask": None})
    _expect_same_calls(
        call(cls, 4, 2), (*_wide_inputs(2, 3, 2, 4).values(),), call(cls, 15, 5), (*_wide_inputs(4, 6, 7, 15).values(),)
    )
    for dim, heads in ((7, 2), (4, 3), (2, 4)):
        expect_raises(ValueError, partial(cls, dim, heads), f"MultiHeadAttention({dim}, {heads})")


def check_MultiHeadAttention_masks(cls: Callable) -> None:
    """Masks of every shape, in values, weights and gradients."""
    for batch, n, m, heads, size in ((2, 5, 5, 2, 3), (2, 3, 5, 4, 2), (3, 5, 4, 2, 3)):
        dim = heads * size
        copies = _wide_copies(cls, dim, heads)
        cases = [{**_wide_inputs(batch, n, m, dim), "mask": mask} for mask in _masks(batch, heads, n, m)]
        _wide_cases(copies, heads, dim, cases, " with a mask")
        expect_gradients(_part(copies, 0), partial(_wide, state=copies.state, heads=heads), cases[-1])


def check_MultiHeadAttention_dropout(cls: Callable) -> None:
    """Dropout acts on the weights that meet the values, in training only; the weights returned are whole."""
    for probability in (0.2, 0.6):
        _check_dropout(cls, probability)
    module = call(cls, 6, 3).train()
    state = randomise(module, _wide_shapes(6))
    x = randn(2, 4, 6)
    expect_close(
        call(module, x, x, x)[0], _wide(x, x, x, state=state, heads=3), "the output in training mode, without dropout"
    )


def _check_dropout(cls: Callable, probability: float) -> None:
    """Values are chosen so that the output *is* the weights after dropout, each of them twice."""
    batch, n, m, heads = 3, 12, 5, 4
    dim = heads * 2 * m
    module = call(cls, dim, heads, probability)
    state = randomise(module, _wide_shapes(dim))
    identity = {"weight": torch.eye(dim, dtype=torch.float64), "bias": torch.zeros(dim, dtype=torch.float64)}
    for name in ("Wv", "WO"):
        state |= {f"{name}.{part}": value for part, value in identity.items()}
    for name in ("Wq", "Wk"):
        state |= {f"{name}.weight": state[f"{name}.weight"] * 0.1}
    set_weights(module, state)
    queries, keys = randn(batch, n, dim), randn(batch, m, dim)
    values = torch.eye(m, dtype=torch.float64).repeat(1, 2 * heads).expand(batch, -1, -1).contiguous()
    inputs = {"queries": queries, "keys": keys, "values": values}
    right, weights = _multi_head(queries, keys, values, None, state=state, heads=heads)

    expect_same_in_eval(module, [*inputs.values()], f"the module with dropout={probability}", right)
    _, returned = call(module, *inputs.values())
    expect_close(returned, weights, "the weights in eval mode")

    module.train()
    with unchanged(**inputs):
        output, returned = call(module, *inputs.values())
    expect_close(
        returned,
        weights,
        f"with dropout={probability}, in training, the second result",
        {
            "the weights returned are those after dropout; return them as they were before it": lambda: (
                output.unflatten(-1, (heads, 2, m))[..., 0, :].transpose(1, 2)
            )
        },
    )
    dropped = output.unflatten(-1, (heads, 2, m)).permute(3, 0, 2, 1, 4)  # (2, B, h, n, m)
    assert not torch.allclose(output, right, atol=1e-9), (
        f"with dropout={probability}, in training, no weight is dropped: apply dropout to the weights before they meet "
        "the values"
    )
    assert torch.allclose(dropped[0], dropped[1], atol=1e-9), (
        "dropout acts on the output, the values or the features, not on the weights: when a weight is dropped, all "
        "features of that value go with it"
    )
    kept = dropped[0].abs() > 1e-12
    assert torch.allclose(dropped[0][kept], weights[kept] / (1 - probability), atol=1e-9), (
        f"with dropout={probability}, in training, a weight should meet the values either as 0 or multiplied by "
        f"1 / (1 - {probability}): dropout belongs after the softmax, once, with nothing normalised again"
    )
    share = 1 - kept.double().mean().item()
    assert abs(share - probability) < 0.12, (
        f"with dropout={probability}, in training, about {probability:.0%} of the weights should be dropped, but "
        f"{share:.0%} are: does the rate reach `nn.Dropout`?"
    )
    patterns = {tuple(pattern.flatten().tolist()) for pattern in kept.flatten(0, 1)}
    assert len(patterns) == batch * heads, (
        "the same weights are dropped in several heads or items: drop each on its own"
    )
    assert module.heads == heads, f"keep the number of heads as `self.heads`, {heads} here, got {module.heads}"
    assert isinstance(module.dropout, nn.Dropout) and module.dropout.p == probability, (
        "keep the dropout as `self.dropout = nn.Dropout(dropout)`: copy_into_torch reads its rate"
    )


# ---- torch's


def check_copy_into_torch(function: Callable) -> None:
    """Outputs and weights in both dtypes, settings, independence of the original."""
    build = place(stand_in, beside=function)
    for dim, heads, dropout, dtype in (
        (4, 2, 0.0, torch.float32),
        (6, 3, 0.3, torch.float64),
        (10, 1, 0.1, torch.float32),
    ):
        attention = build(dim, heads, dropout)
        state = randomise(attention, _wide_shapes(dim), dtype)
        attention.eval()
        copy = call(function, attention)
        _expect_copy(copy, dim, heads, dropout, dtype)
        assert not copy.training, "the original is in eval mode, the copy is not: `copy.train(attention.training)`"
        _expect_copied_values(copy, state, dim, heads, dtype)
        _expect_independent(copy, attention, state, dim, dtype)
    training = build(4, 2, 0.0).train()
    copy = call(function, training)
    assert copy.training and training.training, (
        "the original was in training mode, the copy (or the original afterwards) is not: "
        "`copy.train(attention.training)`"
    )
    _expect_same_device(function, build(4, 2, 0.0).to("meta"))


def _expect_copy(copy: Any, dim: int, heads: int, dropout: float, dtype: torch.dtype) -> None:
    assert copy is not None, "copy_into_torch returned None: is there a `return`?"
    assert isinstance(copy, nn.MultiheadAttention), f"the copy should be an nn.MultiheadAttention, got {copy!r}"
    assert copy.batch_first, "the copy should have batch_first=True: without it torch takes (seq_len, batch, dim)"
    assert copy.embed_dim == dim, f"the copy's embed_dim should be {dim}, got {copy.embed_dim}"
    assert copy.num_heads == heads, f"the copy should have {heads} heads, got {copy.num_heads}"
    assert copy.dropout == dropout, f"the copy's dropout should be {dropout}, the original's, got {copy.dropout}"
    names = {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}
    found = dict(copy.named_parameters())
    assert set(found) == names, f"the copy's parameters should be {sorted(names)}, got {sorted(found)}"
    for name, parameter in found.items():
        assert parameter.dtype == dtype, f"the original's weights are {dtype}, the copy's `{name}` is {parameter.dtype}"
        assert parameter.requires_grad, f"the copy's `{name}` does not learn any more: requires_grad should stay True"


def _expect_same_device(function: Callable, elsewhere: nn.Module) -> None:
    """Fail unless the copy of an original on torch's "meta" device, which stands in for a GPU, is there too."""
    try:
        devices = {value.device.type for value in function(elsewhere).state_dict().values()}
    except Exception:  # copying from "meta" to the CPU: NotImplementedError, or RuntimeError from load_state_dict
        devices = {"cpu"}
    assert devices == {"meta"}, (
        "the copy is on the CPU when the original is on a GPU: pass `device=attention.WO.weight.device`"
    )


def _expect_copied_values(
    copy: nn.Module, state: Mapping[str, Tensor], dim: int, heads: int, dtype: torch.dtype
) -> None:
    def renamed(**pairs: str) -> dict[str, Tensor]:
        return {f"{name}.{part}": state[f"{pairs.get(name, name)}.{part}"] for name in _MAPS for part in _PARTS}

    def without(*names: str) -> dict[str, Tensor]:
        return {name: torch.zeros_like(value) if name in names else value for name, value in state.items()}

    def transposed(*names: str) -> dict[str, Tensor]:
        return {name: value.mT if name.removesuffix(".weight") in names else value for name, value in state.items()}

    expected = torch.cat([state[f"{name}.weight"] for name in _MAPS[:3]])
    got = copy.state_dict()
    at_start = "it still has the values that torch started it with"
    wrong_states = {
        "the order is wrong: in_proj_weight and in_proj_bias hold first the queries, then the keys, then the values": [
            renamed(Wq="Wk", Wk="Wq"),
            renamed(Wk="Wv", Wv="Wk"),
            renamed(Wq="Wv", Wv="Wq"),
            renamed(Wq="Wk", Wk="Wv", Wv="Wq"),
            renamed(Wq="Wv", Wk="Wq", Wv="Wk"),
        ],
        "the weights are transposed: nn.Linear and nn.MultiheadAttention both store (out, in)": [
            transposed("Wq", "Wk", "Wv", "WO"),
            transposed("Wq", "Wk", "Wv"),
            transposed("WO"),
        ],
        f"the biases of the projections were not copied: in_proj_bias, {at_start}": [
            without("Wq.bias", "Wk.bias", "Wv.bias"),
        ],
        f"out_proj.bias was not copied: {at_start}": [without("WO.bias")],
        f"no bias was copied: {at_start}": [without("Wq.bias", "Wk.bias", "Wv.bias", "WO.bias")],
    }
    q, k, v = randn(2, 3, dim, dtype=dtype), randn(2, 5, dim, dtype=dtype), randn(2, 5, dim, dtype=dtype)
    doubles = q.double(), k.double(), v.double()
    output, weights = call(copy, q, k, v, average_attn_weights=False)
    mistakes = {
        cause + " " * number: lambda wrong=wrong: _wide(*doubles, state=wrong, heads=heads)
        for cause, states in wrong_states.items()
        for number, wrong in enumerate(states)
    }
    started = {**state, "WO.weight": got["out_proj.weight"].double()}
    mistakes[f"out_proj.weight was not copied from WO: {at_start}"] = lambda: _wide(
        *doubles, state=started, heads=heads
    )
    started_too = {**started, "WO.bias": torch.zeros(dim, dtype=torch.float64)}
    mistakes[f"out_proj was not copied from WO: {at_start}"] = lambda: _wide(*doubles, state=started_too, heads=heads)
    expect_close(output, _wide(*doubles, state=state, heads=heads), "the copy's output", mistakes)
    expect_close(weights, _wide(*doubles, state=state, heads=heads, part=1), "the copy's weights")
    # The bias of the keys never changes an output, so it is looked at directly.
    biases = torch.cat([state[f"{name}.bias"] for name in _MAPS[:3]])
    for name, right in (("in_proj_weight", expected), ("in_proj_bias", biases)):
        expect_close(got[name], right, f"the copy's `{name}`")


_MAPS = ("Wq", "Wk", "Wv", "WO")
_PARTS = ("weight", "bias")


def _expect_independent(
    copy: nn.Module, attention: nn.Module, state: Mapping[str, Tensor], dim: int, dtype: torch.dtype
) -> None:
    for name, value in attention.state_dict().items():
        assert torch.equal(value.double(), state[name].to(value.dtype).double()), (
            f"copying changed the original's `{name}`: copy from ours into torch's, not the other way"
        )
    shapes = {"in_proj_weight": (3 * dim, dim), "in_proj_bias": (3 * dim,)}
    randomise(copy, shapes | {"out_proj.weight": (dim, dim), "out_proj.bias": (dim,)}, dtype)
    for name, value in attention.state_dict().items():
        assert torch.equal(value.double(), state[name].to(value.dtype).double()), (
            f"the copy shares memory with the original's `{name}`: when one trains, the other changes. Copy the numbers"
        )


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
    model.offset = nn.Parameter(torch.tensor(1.0))
    return model


def _nothing_to_learn():
    return nn.ReLU()


def check_count_parameters(function: Callable) -> None:
    """Modules of many kinds, and that the module stays as it is."""
    cases = [
        (_layer, 24, "nn.Linear(7, 3), whose weight has 21 numbers and whose bias has 3,"),
        (_nested, 32, "modules inside modules: nn.Linear(5, 4) and nn.Linear(4, 2, bias=False)"),
        (_own_parameter, 34, "nn.Linear(2, 3), a parameter of shape (2, 3, 4) and one of shape (), a single number,"),
        (_frozen, 26, "nn.Linear(3, 4), frozen, and nn.Linear(4, 2); frozen parameters count too, and together"),
        (_shared, 36, "an embedding and a linear layer that share one (6, 5) weight, which counts once,"),
        (_with_buffers, 24, "nn.Linear(3, 4) and nn.BatchNorm1d(4), whose buffers do not count,"),
        (_nothing_to_learn, 0, "nn.ReLU(), without parameters,"),
    ]
    for build, expected, what in cases:
        module = place(build, beside=function)()
        flags = {name: parameter.requires_grad for name, parameter in module.named_parameters()}
        count = call(function, module)
        assert count is not None, "count_parameters returned None: is there a `return`?"
        assert isinstance(count, int) and not isinstance(count, bool), (
            f"the count should be a Python int, got {count!r}"
        )
        assert count == expected, f"{what} have {expected} parameters, got {count}"
        assert flags == {name: parameter.requires_grad for name, parameter in module.named_parameters()}, (
            "counting changed requires_grad: leave the module as it is"
        )
