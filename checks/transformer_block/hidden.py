"""The hidden tests of chapter 06."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Credit,
    Mistake,
    alike,
    build,
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
    expect_not_calling,
    expect_parameter_gradients,
    expect_same_in_eval,
    expect_tensor,
    found,
    gradients_of,
    named_parameters,
    outcome_of,
    place,
    rand_mask,
    randint,
    randn,
    randomise,
    set_weights,
    unchanged,
)
from autograder.verdict import Finding
from checks.chance import drawn_medium
from checks.formulas import feed_forward, layer_norm, multi_head_attention
from checks.transformer_block import mistakes as m

State = dict[str, Tensor]


def _expect_values(
    module: nn.Module,
    oracle: Callable[[Tensor], Tensor],
    x: Tensor,
    mistakes: Mapping[Mistake, Callable[[Tensor], Tensor]],
    asked: str,
    mask: Tensor | None = None,
    tolerance: float | None = None,
    modes: tuple[bool, ...] = (True, False),
) -> None:
    """The module equals the oracle on `x`, in the dtype of `x` and in both modes, and leaves `x` and `mask` alone."""
    more = {} if mask is None else {"mask": mask}
    right = x.double()
    wrong = {mistake: lambda f=f: f(right) for mistake, f in mistakes.items()}
    for training in modes:
        module.train(training)
        with unchanged(x=x, **more):
            value = call(module, x, *more.values())
        told = asked if training else f"{asked}, after `.eval()`"
        expect_close(value, oracle(right), "the result", wrong, x.dtype, tolerance, told)
    module.train()


# ---- LayerNorm

_LIBRARY = {
    "layer_norm",
    "native_layer_norm",
    "group_norm",
    "batch_norm",
    "instance_norm",
    "rms_norm",
    "normalize",
    "standardize",
}
_NORM_SHAPES = [(4, 4, 4), (2, 3, 5), (3, 2, 6), (1, 4, 3), (3, 1, 7), (2, 5, 1), (6, 4), (2, 3, 4, 5)]


# Statistics may be taken in float32, whatever the dtype of x: what is right to the precision of float32 is right.
_FLOAT32 = 2e-5


def _norm(state: State, x: Tensor, eps: float, dim: int = -1, inside: bool = True, cut: bool = False) -> Tensor:
    """A layer norm written from the formula, with a switch for each mistake that small cases do not show."""
    mean, variance = x.mean(dim, keepdim=True), x.var(dim, keepdim=True, correction=0)
    if cut:
        mean, variance = mean.detach(), variance.detach()
    scale = (variance + eps).sqrt() if inside else variance.sqrt() + eps
    return state["weight"] * (x - mean) / scale + state["bias"]


def _torch_norm(state: State, x: Tensor, eps: float = 1e-5) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], state["weight"], state["bias"], eps)


def _norm_mistakes(state: State, eps: float) -> dict[Mistake, Callable[[Tensor], Tensor]]:
    return {
        m.LayerNorm.EPS_OUTSIDE: lambda x: _norm(state, x, eps, inside=False),
        m.LayerNorm.EPS_IGNORED: lambda x: _norm(state, x, 1e-5),
        m.LayerNorm.OVER_DIMENSION_2: lambda x: _norm(state, x, eps, dim=2),
    }


def check_layer_norm_class(cls: Callable) -> None:
    """Parameters, values, precision, gradients, device, and that no library norm does the work."""
    drawn = [
        (*draw_sizes((6, 20), (17, 100)), 3),
        draw_sizes((2, 5), (2, 9), (601, 1200)),
        (*draw_sizes((601, 1200), (2, 9)), 3),
        (2, drawn_medium(), 3),
        (drawn_medium(), 2, 3),
        draw_sizes(*[(2, 8)] * 5),
        (*(draw_size(1, 4) for _ in range(draw_size(5, 7))), 3),
    ]
    for shape in [*_NORM_SHAPES, *drawn]:
        for eps in (None, 0.7, _drawn_eps()):  # the default, one so large that its place matters, and any
            _check_norm_values(cls, shape, eps)
    _check_small_norms(cls)

    module, state = build(lambda: cls(5), {"weight": (5,), "bias": (5,)})
    x = randn(2, 3, 5)
    expect_not_calling(module, [x], _LIBRARY, m.LayerNorm.LIBRARY)
    after = call(module.eval(), x)
    expect_close(after, _torch_norm(state, x), "the result after `.eval()`", otherwise=m.LayerNorm.SILENT_IN_EVAL)
    module.train()
    cut = {m.LayerNorm.STATISTICS_CUT_OFF: lambda x: _norm(state, x, 1e-5, cut=True)}
    expect_gradients(module, partial(_torch_norm, state), {"x": x}, cut, tolerance=_FLOAT32)
    expect_parameter_gradients(module, _torch_norm, state, [x], tolerance=_FLOAT32)
    level = torch.full((2, 5), 3.0, dtype=torch.float64)  # where a root of the variance alone has no gradient
    rooted = {m.LayerNorm.ROOT_OF_VARIANCE: lambda x: _norm(state, x, 1e-5, inside=False)}
    expect_gradients(module, partial(_torch_norm, state), {"x": level}, rooted, tolerance=_FLOAT32)
    _check_norm_extremes(module.to(torch.float32), state)
    for dim in (draw_size(6, 60), draw_size(61, 600)):
        wide, state = build(lambda d=dim: cls(d), {"weight": (dim,), "bias": (dim,)}, dtype=torch.float32)
        _expect_norm_far_from_zero(wide, state, (2, 3, dim))
    for shape in drawn:
        _check_norm_values(cls, shape, _drawn_eps(), training=False)
    _check_small_norms(cls, training=False)
    expect_device(module.to("meta"), {"x": x.float()})


def _drawn_eps() -> float:
    return 10 ** (-randint(1, 400, ()).item() / 100)


def _check_small_norms(cls: Callable, training: bool = True) -> None:
    """Numbers so small that `eps` decides, and an `eps` smaller than the default."""
    for eps in (None, 10.0 ** -int(randint(8, 11, ()))):
        options, value = ({}, 1e-5) if eps is None else ({"eps": eps}, eps)
        module, state = build(lambda o=options: cls(6, **o), {"weight": (6,), "bias": (6,)})
        for power in (-2, -4, -6):
            x = (randn(4, 6) + 2 * torch.arange(6)) * 10.0**power
            asked = f"x (4, 6) of size 1e{power} and eps={value:g}"
            right, wrong = partial(_torch_norm, state, eps=value), _norm_mistakes(state, value)
            _expect_values(module, right, x, wrong, asked, tolerance=_FLOAT32, modes=(training,))


def _check_norm_values(cls: Callable, shape: tuple[int, ...], eps: float | None, training: bool = True) -> None:
    options, value, dim = {} if eps is None else {"eps": eps}, 1e-5 if eps is None else eps, shape[-1]
    for dtype in (torch.float64, torch.float32):  # first where no rounding hides which mistake it is
        module, state = build(lambda: cls(dim, **options), {"weight": (dim,), "bias": (dim,)}, dtype=dtype)
        # Features around 3 and at least 1 apart, so that rounding in float32 stays small against their variance,
        # whichever way that is calculated; what is far from 0 has a check of its own.
        x = (randn(*shape).clamp(-0.5, 0.5) + 2 * (torch.arange(dim) - dim // 2) + 3).to(dtype)
        asked = f"x {shape} and eps={value:g}"
        right, wrong = partial(_torch_norm, state, eps=value), _norm_mistakes(state, value)
        _expect_values(module, right, x, wrong, asked, tolerance=_FLOAT32, modes=(training,))


def _check_norm_extremes(module: nn.Module, state: State) -> None:
    level = torch.full((2, 5), 3.0)
    expect_close(call(module, level), state["bias"].expand(2, 5), "the result for five equal features (their `bias`)")
    for power in (3, 5, 8):  # far apart, and around 0
        apart = (10.0**power * (randn(4, 5) + 2 * torch.arange(5) - 4)).float()
        right, name = _torch_norm(state, apart.double()), f"the result for features of size 1e{power}"
        expect_close(call(module, apart), right, name, tolerance=1e-3)
    for shape in ((4, 3, 5), (4, 5)):
        for training in (True, False):
            _expect_norm_far_from_zero(module.train(training), state, shape)
    module.train()


def _expect_norm_far_from_zero(module: nn.Module, state: State, shape: tuple[int, ...]) -> None:
    """Where the mean of the squares and the square of the mean agree in all the digits that float32 has.

    Rounding moves the mean by about a ten-millionth of it, far less than the spread.
    """
    size = 10.0 ** float(randint(100, 900, ()) / 100)
    for mean in (4000.0, 4000 * size, -4000 * size):
        apart = randn(*shape) + 2 * (torch.arange(shape[-1]) % 5)
        far = (mean * (1 + apart / 4000)).float()
        lost = m.LayerNorm.DIFFERENCE_OF_SQUARES
        right, name = _torch_norm(state, far.double()), f"the result for {shape} features near {mean:.4g}"
        expect_close(call(module, far), right, name, tolerance=1e-2, otherwise=lost)


# ---- the feed-forward networks


def _same(x: Tensor) -> Tensor:
    return x


def _at_most_6(x: Tensor) -> Tensor:
    return x.clamp(0, 6)


_SEQUENCES = [(4, 4, 4, 4), (2, 3, 5, 7), (3, 5, 4, 2), (1, 6, 3, 8), (4, 1, 5, 3), (2, 4, 1, 6), (2, 3, 6, 1)]


def _feed_shapes(dim: int, hidden: int, width: tuple[int, ...] = ()) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"inner.weight": (hidden, dim, *width), "inner.bias": (hidden,)}
    return shapes | {"outer.weight": (dim, hidden, *width), "outer.bias": (dim,)}


def _check_feed_forward(cls: Callable, width: tuple[int, ...] = ()) -> None:
    """Values, gradients, device, and that positions do not touch each other."""

    def network(dim: int, hidden: int, dtype: torch.dtype) -> tuple[nn.Module, State]:
        return build(lambda: cls(dim, hidden), _feed_shapes(dim, hidden, width), dtype=dtype)

    drawn = [draw_sizes((201, 400), (17, 60), (2, 9), (61, 90)), draw_sizes((2, 4), (601, 900), (17, 40), (5, 12))]
    drawn += [draw_sizes((2, 4), lengths, (5, 12), (5, 12)) for lengths in ((61, 200), (201, 600))]
    for batch, n, dim, hidden in [*_SEQUENCES, *drawn]:
        # In float32 rounding grows with the number of summands.
        for dtype in (torch.float32, torch.float64) if n < 17 else (torch.float64,):
            module, state = network(dim, hidden, dtype)
            x = randn(batch, n, dim, dtype=dtype)
            asked = f"x {tuple(x.shape)} and {hidden} hidden features"
            wrong = {m.Network.BOUNDED: lambda x, s=state: feed_forward(s, "", x, _at_most_6)}
            _expect_values(module, lambda x, s=state: feed_forward(s, "", x), x, wrong, asked)
    module, state = network(4, 6, torch.float64)
    for size in (1e-3, 1e2, 1e5):  # what is positive goes through as it is, however large
        x = size * randn(2, 3, 4)
        value, right = call(module, x), feed_forward(state, "", x)
        expect_close(value, right, f"the result for x of size {size:g}", otherwise=m.Network.BOUNDED)
    x = randn(2, 3, 4)
    expect_gradients(module, lambda x: feed_forward(state, "", x), {"x": x})
    expect_parameter_gradients(module, lambda s, x: feed_forward(s, "", x), state, [x])
    x = randn(2, 3, 4)  # the same sizes, another input
    expect_close(call(module.eval(), x), feed_forward(state, "", x), "the result after `.eval()`")
    expect_device(module.to("meta"), {"x": x})


def check_feed_forward(cls: Callable) -> None:
    """Values, and dropout between ReLU and `outer`."""
    _check_feed_forward(cls)
    _check_feed_forward_dropout(cls)


def _check_feed_forward_dropout(cls: Callable) -> None:
    module = call(cls, 4, 6, dropout=0.5)
    state = randomise(module, _feed_shapes(4, 6))
    x = randn(2, 3, 4)
    expect_same_in_eval(module, [x], "the network", feed_forward(state, "", x))

    module = call(cls, 4, 6, dropout=1.0)
    state = randomise(module, _feed_shapes(4, 6))
    state["inner.bias"] = state["inner.bias"].abs() + 0.1  # an input of zeros leaves hidden features that are not 0
    set_weights(module, state)
    expect_close(
        call(module.train(), x),
        state["outer.bias"].expand(2, 3, 4),
        "the result in training, with dropout=1.0, when nothing hidden is left,",
        {
            m.Network.NO_DROPOUT: lambda: feed_forward(state, "", x),
            m.Network.DROPOUT_ON_RESULT: lambda: torch.zeros_like(x),
            m.Network.DROPOUT_ON_INPUT: lambda: feed_forward(state, "", torch.zeros_like(x)),
        },
    )
    # Hidden features that are always 1, passed on as it is: what comes out is what dropout makes of it.
    rate = draw_probability()
    module = call(cls, 6, 6, dropout=rate)
    ones, zeros = torch.eye(6), torch.zeros(6)
    weights = {"inner.weight": 0 * ones, "inner.bias": 1 + zeros, "outer.weight": ones, "outer.bias": zeros}
    set_weights(module, weights, torch.float32)
    y, what = call(module.train(), torch.zeros(8, 200, 6)), f"in training, with dropout={rate},"
    expect_tensor(y, (8, 200, 6))
    told = {"expected": f"0 or {1 / (1 - rate):.4g}", "got": ", ".join(f"{v:.4g}" for v in y.unique().tolist()[:4])}
    scaled = torch.allclose(y, (y != 0) / (1 - rate), rtol=1e-5)
    expect(scaled and (y == 0).any(), m.Network.DROPOUT_SCALE, f"a hidden feature of 1 {what}", **told)
    expect_dropped_singly(y == 0, rate, m.Network.DROPOUT_SHARE, f"dropout={rate}")
    # The same hidden features, now made of an input of ones: what is dropped there changes them.
    set_weights(module, weights | {"inner.weight": torch.full((6, 6), 1 / 6), "inner.bias": zeros}, torch.float32)
    y = call(module, torch.ones(8, 200, 6))
    expect_tensor(y, (8, 200, 6))
    kept = torch.allclose(y, (y != 0) / (1 - rate), rtol=1e-5)
    expect(kept, m.Network.DROPOUT_ON_INPUT, f"a hidden feature of 1 {what}", expected=told["expected"])

    def make(rate: float) -> nn.Module:
        module = call(cls, 4, 6, dropout=rate)
        randomise(module, _feed_shapes(4, 6))
        return module

    expect_dropout_anew(make, [randn(1, 9, 4).repeat(6, 1, 1)], [randn(2, drawn_medium(), 4)])


def check_conv_feed_forward(cls: Callable) -> None:
    """The same values, from convolutions that run along the positions."""
    _check_feed_forward(cls, (1,))


# ---- the block


@dataclass(frozen=True)
class _Parts:
    """What a block is put together from, in float64, with the weights of the tested one."""

    state: State
    heads: int
    mask: Tensor | None = None

    def norm_1(self, x: Tensor) -> Tensor:
        return layer_norm(self.state, "norm_1", x)

    def norm_2(self, x: Tensor) -> Tensor:
        return layer_norm(self.state, "norm_2", x)

    def attend(self, x: Tensor) -> Tensor:
        return multi_head_attention(self.state, "attention.", x, x, self.heads, self.mask)

    def one_head(self, x: Tensor) -> Tensor:
        return multi_head_attention(self.state, "attention.", x, x, 1, self.mask)

    def feed(self, x: Tensor) -> Tensor:
        return feed_forward(self.state, "feed_forward.", x)

    def linear_feed(self, x: Tensor) -> Tensor:
        return feed_forward(self.state, "feed_forward.", x, _same)


def _post(p: _Parts, x: Tensor, **other: Callable) -> Tensor:
    """The block as published; `other` replaces its sublayers."""
    attend, feed = other.get("attend", p.attend), other.get("feed", p.feed)
    x = p.norm_1(x + attend(x))
    return p.norm_2(x + feed(x))


def _pre(p: _Parts, x: Tensor, **other: Callable) -> Tensor:
    """The block with its norms before the sublayers; `other` replaces these."""
    attend, feed = other.get("attend", p.attend), other.get("feed", p.feed)
    x = x + attend(p.norm_1(x))
    return x + feed(p.norm_2(x))


# (B, n, d, heads, hidden, mask): equal sizes first. `hidden` None asks for the default.
_BLOCKS = [
    (4, 4, 4, 4, 4, None),
    (2, 5, 6, 3, None, None),
    (3, 4, 8, 2, 5, "square"),
    (2, 6, 6, 2, 7, "causal"),
    (3, 5, 4, 2, None, "padding"),
    (2, 3, 6, 3, 9, "items"),
    (2, 4, 8, 4, 3, "heads"),
    (1, 3, 9, 1, None, "square"),
    (5, 1, 6, 2, 4, None),
]


def _mask(kind: str | None, batch: int, n: int, heads: int) -> Tensor | None:
    """A mask that lets each position attend to something."""
    if kind is None:
        return None
    if kind == "causal":
        return torch.ones(n, n, dtype=torch.bool).tril()
    shape = {"square": (n, n), "padding": (batch, 1, n), "items": (batch, n, n), "heads": (batch, heads, n, n)}[kind]
    return rand_mask(*shape)


def _block(
    cls: Callable, dim: int, heads: int, hidden: int | None, norm_first: bool, dtype: torch.dtype, **more: Any
) -> tuple[nn.Module, State]:
    """A block with random weights: parts that are missing, shared or of the wrong size are named."""

    def make() -> nn.Module:
        options = more if hidden is None else {"hidden": hidden} | more
        return cls(dim, heads, norm_first=True, **options) if norm_first else cls(dim, heads, **options)

    module = call(make)
    inner = named_parameters(module).get("feed_forward.inner.weight")
    if inner is not None and hidden is not None:
        told = {"asked": f"hidden={hidden}", "expected": hidden, "got": len(inner)}
        expect(len(inner) == hidden, m.TransformerBlock.HIDDEN_IGNORED, "the number of hidden features", **told)
    width = (1,) if inner is not None and inner.dim() == 3 else ()  # a ConvFeedForward does as well
    hidden = 4 * dim if hidden is None else hidden
    shapes = {f"attention.{name}.weight": (dim, dim) for name in ("Wq", "Wk", "Wv", "WO")}
    shapes |= {f"attention.{name}.bias": (dim,) for name in ("Wq", "Wk", "Wv", "WO")}
    shapes |= {f"{norm}.{name}": (dim,) for norm in ("norm_1", "norm_2") for name in ("weight", "bias")}
    shapes |= {"feed_forward.inner.weight": (hidden, dim, *width), "feed_forward.inner.bias": (hidden,)}
    shapes |= {"feed_forward.outer.weight": (dim, hidden, *width), "feed_forward.outer.bias": (dim,)}
    return build(lambda: module, shapes, dtype=dtype)


def _wrong_inputs(p: _Parts, norm_first: bool) -> dict[Mistake, Callable[[Tensor], Tensor]]:
    """A feed-forward network that is given something else than it should be."""
    if not norm_first:
        return {m.TransformerBlock.NETWORK_ON_INPUT: lambda x: p.norm_2(p.norm_1(x + p.attend(x)) + p.feed(x))}

    def fed(given: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def block(x: Tensor) -> Tensor:
            first = x + p.attend(p.norm_1(x))
            return first + p.feed(given(x, first))

        return block

    return {
        m.TransformerBlock.NETWORK_NOT_NORMALIZED: fed(lambda x, first: first),
        m.TransformerBlock.NETWORK_ON_NORM_1: fed(lambda x, first: p.norm_1(first)),
        m.TransformerBlock.NETWORK_ON_INPUT: fed(lambda x, first: p.norm_2(x)),
    }


def _check_block(cls: Callable, norm_first: bool, right: Callable) -> None:
    """Values with each kind of mask, gradients and dropout, in one of the two orders."""
    kinds = ("causal", "padding", "items", "heads", "square", None)
    drawn: list[tuple[int, int, int, int, int | None, str | None]] = []
    for ranges in (((6, 16), (17, 40), (2, 5), (9, 13)), ((2, 3), (201, 400), (4, 9), (2, 4))):
        batch, n, heads, size = draw_sizes(*ranges)
        drawn.append((batch, n, heads * size, heads, int(randint(17, 40, ())), kinds[int(randint(0, 6, ()))]))
    for batch, n, dim, heads, hidden, kind in [*_BLOCKS, *drawn]:
        # In float32 a norm over very few features can magnify rounding beyond any tolerance.
        for dtype in (torch.float64,) if dim < 8 or n >= 17 else (torch.float32, torch.float64):
            module, state = _block(cls, dim, heads, hidden, norm_first, dtype)
            mask = _mask(kind, batch, n, heads)
            p = _Parts(state, heads, mask)
            # Values of several sizes, so that a norm too many or too few shows.
            x = (2 * randn(batch, n, dim) + 1).to(dtype)
            about = "no mask" if mask is None else f"mask {tuple(mask.shape)}"
            asked = f"x {tuple(x.shape)}, {heads} head{'s' * (heads > 1)}, norm_first={norm_first} and {about}"
            wrong = {
                m.TransformerBlock.NETWORK_WITHOUT_RELU: lambda x, p=p: right(p, x, feed=p.linear_feed),
                m.TransformerBlock.ONE_HEAD: lambda x, p=p: right(p, x, attend=p.one_head),
                **_wrong_inputs(p, norm_first),
            }
            _expect_values(module, lambda x, p=p: right(p, x), x, wrong, asked, mask, _FLOAT32)
    module, state = _block(cls, 6, 2, 5, norm_first, torch.float64)
    x = randn(2, 3, 6)
    expect_gradients(module, lambda x: right(_Parts(state, 2), x), {"x": x}, tolerance=_FLOAT32)
    expect_parameter_gradients(module, lambda s, x: right(_Parts(s, 2), x), state, [x], tolerance=_FLOAT32)
    _check_block_dropout(cls, norm_first, right)


def _check_block_dropout(cls: Callable, norm_first: bool, right: Callable) -> None:
    x = randn(2, 3, 6)
    module, state = _block(cls, 6, 2, 5, norm_first, torch.float64, dropout=0.5)
    expect_same_in_eval(module, [x], "the block", right(_Parts(state, 2), x), _FLOAT32)

    # With dropout 1 nothing of a sublayer's output survives, wherever else the block drops something.
    module, state = _block(cls, 6, 2, 5, norm_first, torch.float64, dropout=1.0)
    p = _Parts(state, 2)

    def bias_of(name: str) -> Callable[[Tensor], Tensor]:
        return lambda h: state[name].expand_as(h)

    # What is left of a sublayer whose output is not dropped depends on what else the block drops.
    attention, network = (p.attend, bias_of("attention.WO.bias")), (p.feed, bias_of("feed_forward.outer.bias"))
    none = torch.zeros_like
    wrong: list[tuple[Mistake, Tensor]] = [
        *((m.TransformerBlock.ATTENTION_NOT_DROPPED, right(p, x, attend=a, feed=none)) for a in attention),
        *((m.TransformerBlock.NETWORK_NOT_DROPPED, right(p, x, attend=none, feed=f)) for f in network),
        *((m.TransformerBlock.NEITHER_DROPPED, right(p, x, attend=a, feed=f)) for a in attention for f in network),
        (m.TransformerBlock.DROPOUT_AFTER, none(x)),
        (m.TransformerBlock.DROPOUT_AFTER, p.norm_2(none(x))),
    ]
    y, name = call(module.train(), x), "the result in training with dropout=1.0"
    for mistake, value in wrong:
        expect(y.shape != value.shape or not torch.allclose(y, value, atol=1e-9), mistake, f"it was seen in {name}")
    expect_close(y, right(p, x, attend=none, feed=none), name, tolerance=_FLOAT32)

    def make(rate: float) -> nn.Module:
        return _block(cls, 6, 2, 5, norm_first, torch.float64, dropout=rate)[0]

    expect_dropout_anew(make, [x[:1].repeat(6, 1, 1)], [randn(2, drawn_medium(), 6)])
    for first in (True, False):
        _check_single_drops(cls, norm_first, first)
    for first in (True, False):
        _check_given_whole(cls, norm_first, right, first)
    _check_masks_beside_dropout(cls, norm_first, right)


def _check_given_whole(cls: Callable, norm_first: bool, right: Callable, first: bool) -> None:
    """While training, what a sublayer is given arrives whole: its result is one of those that dropout can make of it.

    There are few of these. One head weighs two positions, and the network has one hidden feature: each of the weights,
    or the hidden feature, is dropped, scaled up or left as it is. Each number that comes out is kept or dropped.

    Args:
        cls: the class.
        norm_first: which of the two orders.
        right: the block of that order.
        first: whether the attention is looked at, or the network; the other gives zeros.
    """
    rate, dim = draw_probability(), 6
    module, state = _block(cls, dim, 1, 1, norm_first, torch.float64, dropout=rate)
    silent = "feed_forward.outer." if first else "attention.WO."
    state |= {name: torch.zeros_like(value) for name, value in state.items() if name.startswith(silent)}
    # The hidden feature lies about 1, on the open side of the ReLU, and moves with what goes in.
    state["feed_forward.inner.bias"] = torch.ones_like(state["feed_forward.inner.bias"])
    state["feed_forward.inner.weight"] *= 0.2 / state["feed_forward.inner.weight"].abs().sum()
    set_weights(module, state)
    scale = 1 / (1 - rate)
    kept = torch.cartesian_prod(*[torch.tensor([0, scale], dtype=torch.float64)] * dim)
    some = torch.tensor([[1, 1], [0, 0], [0, scale], [scale, 0], [scale, scale]], dtype=torch.float64)

    def attend(h: Tensor) -> Tensor:
        """`(outcomes, 2, d)`."""
        query, key, value = (F.linear(h, *(state[f"attention.{w}.{p}"] for p in ("weight", "bias"))) for w in _QKV)
        weights = (query @ key.mT / dim**0.5).softmax(dim=-1) * some[:, None, None]
        output = F.linear(weights @ value, state["attention.WO.weight"], state["attention.WO.bias"])
        return (output * kept[:, None]).flatten(0, 1)

    def feed(h: Tensor) -> Tensor:
        bias = state["feed_forward.outer.bias"]
        output = bias + some[[0, 1, 4], 1][:, None, None] * (_Parts(state, 1).feed(h) - bias)
        return (output[:, None] * kept[:, None]).flatten(0, 1)

    x = 2 * randn(1, 2, dim) + 1
    parts = (attend, torch.zeros_like) if first else (torch.zeros_like, feed)
    possible = right(_Parts(state, 1), x, attend=parts[0], feed=parts[1])
    y = call(module.train(), x.repeat(40, 1, 1))
    expect_tensor(y, (40, 2, dim))
    off = (y[:, None] - possible).abs().amax(-1).amin(1)  # of each position, from the nearest outcome
    sublayer = "attention" if first else "feed-forward network"
    what = f"the number of positions that dropout={rate} on what comes out of the {sublayer} can explain"
    told = {"expected": off.numel(), "got": int((off < 1e-3).sum())}
    expect(told["got"] == told["expected"], m.TransformerBlock.DROPOUT_ON_INPUT, what, **told)


def _check_masks_beside_dropout(cls: Callable, norm_first: bool, right: Callable) -> None:
    """A block with dropout heeds the mask, in values after `.eval()` and in what a position sees while training."""
    for batch, n, heads, size in ((2, 5, 2, 3), draw_sizes((2, 3), (201, 400), (4, 6), (2, 3))):
        rate, dim = draw_probability(), heads * size
        module, state = _block(cls, dim, heads, 5, norm_first, torch.float64, dropout=rate)
        for kind in ("causal", "padding", "heads"):
            mask, x = _mask(kind, batch, n, heads), 2 * randn(batch, n, dim) + 1
            p, asked = _Parts(state, heads, mask), f"x {tuple(x.shape)}, a mask and dropout={rate}"
            _expect_values(module, lambda x, p=p: right(p, x), x, {}, asked, mask, _FLOAT32, modes=(False,))
    module, state = _block(cls, 6, 2, 5, norm_first, torch.float64, dropout=draw_probability())
    x = randn(2, 4, 6)
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        value = call(module.train(), leaf, _mask("causal", 2, 4, 2))
        expect_tensor(value, (2, 4, 6))
        expect(value.requires_grad, Common.CUT_OFF)
        (gradient,) = gradients_of(value[:, :2], [leaf], randn(2, 2, 6))
    expect(gradient is not None, Common.INPUT_CUT_OFF, "the input without gradient is `x`")
    what = "while training with dropout and a causal mask, the gradient of positions 0 and 1 in positions 2 and 3"
    expect_close(gradient[:, 2:], torch.zeros_like(gradient[:, 2:]), what, otherwise=m.TransformerBlock.UNMASKED)


_QKV = ("Wq", "Wk", "Wv")
# (B, n, d), with so many features that chance alone keeps all those of a position once in 10⁹ judgements at most.
DROPPED_SIZES = (4, 4, 160)


def _check_single_drops(cls: Callable, norm_first: bool, first: bool) -> None:
    """Of a sublayer that gives ones, the other giving zeros, the larger numbers of each position are those kept.

    Before a norm, each number is 0 or 1 / (1 - rate); the norm keeps their order. A position that is kept or dropped as
    a whole has equal features.

    Args:
        cls: the class.
        norm_first: which of the two orders.
        first: whether the attention gives the ones, or the network.
    """
    rate = draw_probability()
    module, state = _block(cls, DROPPED_SIZES[-1], 2, 5, norm_first, torch.float64, dropout=rate)
    ones = {"norm_1.weight", "norm_2.weight", "attention.WO.bias" if first else "feed_forward.outer.bias"}
    set_weights(module, {name: torch.full_like(value, float(name in ones)) for name, value in state.items()})
    y = call(module.train(), torch.zeros(DROPPED_SIZES, dtype=torch.float64))
    expect_tensor(y, DROPPED_SIZES)
    least, most = y.amin(-1, keepdim=True), y.amax(-1, keepdim=True)
    asked = f"dropout={rate}, norm_first={norm_first}"
    what = f"what is left of the {'attention' if first else 'network'}'s output"
    expect(bool((most - least > 1e-6).all()), Common.DROPOUT_TOGETHER, what, asked=asked, got="equal features")
    expect_dropped_singly(y < (least + most) / 2, rate, m.TransformerBlock.DROPOUT_SHARE, asked)


def check_transformer_block(cls: Callable) -> None:
    """Post-norm, the order of the paper."""
    _check_block(cls, False, _post)


def check_transformer_block_pre(cls: Callable) -> None:
    """Pre-norm."""
    _check_block(cls, True, _pre)


# ---- the reader's own test


def make_layers(picks, alike):
    """Classes that are made and called like nn.LayerNorm.

    They are sent to where student code runs: no name in them tells what is wrong with them, nor does anything that
    they hold.

    Args:
        picks: for each class a number for each task: how it does it. The ways that come first are right.
        alike: see `autograder.checks.alike`.
    """

    def squares(x, dims, mean, less):
        count = x.numel() // x.sum(dims).numel()
        return (x - mean).pow(2).sum(dims, keepdim=True) / max(count - less, 1)

    def over(x, *dims):
        return sorted({d % x.dim() for d in dims})

    ways = [
        # the dimensions
        [
            lambda x, over: over(x, -1),
            lambda x, over: [x.dim() - 1],
            lambda x, over: over(x, -2),
            lambda x, over: over(x, -2, -1),
            lambda x, over: over(x, 0),
            lambda x, over: over(x, 0, -1),
            lambda x, over: over(x, 0, 1, 2, 3),
            lambda x, over: over(x, 2),
        ],
        # the mean
        [
            lambda x, dims: x.mean(dims, keepdim=True),
            lambda x, dims: x.sum(dims, keepdim=True) / (x.numel() // x.sum(dims).numel()),
            lambda x, dims: x.new_zeros(()),
        ],
        # the variance
        [
            lambda x, dims, mean, squares: squares(x, dims, mean, 0),
            lambda x, dims, mean, squares: (x - mean).square().mean(dims, keepdim=True),
            lambda x, dims, mean, squares: squares(x, dims, mean, 1),
        ],
        # what it divides by
        [
            lambda spread, eps: (spread + eps).sqrt(),
            lambda spread, eps: (spread + eps) ** 0.5,
            lambda spread, eps: torch.ones_like(spread),
            lambda spread, eps: spread + eps,
            lambda spread, eps: spread.sqrt() + eps,
        ],
        # the eps that it is given, and the one that it has else
        [lambda eps: eps, lambda eps: 1 * eps, lambda eps: 1e-5],
        [1e-5, 1e-3],
        # what it makes of mean and variance before it uses them
        [lambda value: value, lambda value: 1 * value, lambda value: value[:1], lambda value: value.detach()],
        # weight and bias
        [
            lambda y, weight, bias: y * weight + bias,
            lambda y, weight, bias: torch.addcmul(bias, y, weight),
            lambda y, weight, bias: y + bias,
            lambda y, weight, bias: y * weight[:1] + bias,
            lambda y, weight, bias: (y + bias) * weight,
            lambda y, weight, bias: y * weight,
        ],
        # how they start, and how it keeps them
        [lambda: (1.0, 0.0), lambda: [1.0, 0.0], lambda: (0.0, 0.0), lambda: (1.0, 1.0)],
        [
            lambda layer, name, value: setattr(layer, name, nn.Parameter(value)),
            lambda layer, name, value: layer.register_parameter(name, nn.Parameter(value)),
            lambda layer, name, value: layer.register_buffer(name, value),
        ],
        # what becomes of its input
        [lambda x, mean: None, lambda x, mean: x, lambda x, mean: x.data.sub_(mean.data)],
        # when it normalizes
        [lambda layer: True, lambda layer: not None, lambda layer: layer.training],
        # the numbers that it counts with
        [lambda layer, x: layer.work(x), lambda layer, x: layer.work(x.double()).to(x.dtype)],
    ]

    def make(pick):
        if not pick:

            class Layer(nn.LayerNorm):
                def forward(self, x):
                    return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)

            return Layer

        where, middle, spread_of, scale, take, usual, hand_on, finish, start, keep, leave, awake, count = (
            way[i] for way, i in zip(ways, pick, strict=True)
        )

        class Layer(nn.Module):
            def __init__(self, dim, eps=usual):
                super().__init__()
                self.eps = take(eps)
                for name, value in zip(("weight", "bias"), start(), strict=True):
                    keep(self, name, torch.full((dim,), value))

            def forward(self, x):
                return count(self, x)

            def work(self, x):
                return finish(self.spread(x) if awake(self) else x, self.weight, self.bias)

            def spread(self, x):
                dims = where(x, over)
                mean = middle(x, dims)
                spread = hand_on(spread_of(x, dims, mean, squares))
                y = (x - hand_on(mean)) / scale(spread, self.eps)
                leave(x, mean)
                return y

        return Layer

    return [alike(make(pick)) for pick in picks]


_T = m.check_layer_norm
_RIGHT_WAYS = (2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2)  # of each task in `make_layers`, those that come first
_DIMENSIONS, _MEAN, _VARIANCE, _SCALE, _EPS, _USUAL, _STATISTICS, _FINISH, _START, _KEPT, _INPUT, _AWAKE, _NUMBERS = (
    range(len(_RIGHT_WAYS))
)
_RIGHT = (
    "torch's own nn.LayerNorm",
    "a LayerNorm that calls F.layer_norm",
    "a LayerNorm written by hand",
    "a LayerNorm that calculates in float64",
)
# (what is wrong with it, the mistake of a test that accepts it, the task and which way after the right ones)
_BROKEN: list[tuple[str, Mistake, int, int]] = [
    ("does not subtract the mean", _T.FORMULA, _MEAN, 0),
    ("does not divide by the standard deviation", _T.FORMULA, _SCALE, 0),
    ("divides by the variance instead of its root", _T.FORMULA, _SCALE, 1),
    ("uses the unbiased variance, divided by d - 1", _T.FORMULA, _VARIANCE, 0),
    ("adds eps outside the root", _T.EPS_IGNORED, _SCALE, 2),
    ("ignores the argument eps", _T.EPS_IGNORED, _EPS, 0),
    ("has another default eps, 1e-3", _T.EPS_DEFAULT, _USUAL, 0),
    ("normalizes over the positions instead of the features", _T.OTHER_DIMENSIONS, _DIMENSIONS, 0),
    ("normalizes over positions and features together", _T.OTHER_DIMENSIONS, _DIMENSIONS, 1),
    ("normalizes over the batch", _T.OTHER_DIMENSIONS, _DIMENSIONS, 2),
    ("normalizes over batch and features together", _T.SEQUENCES, _DIMENSIONS, 3),
    ("normalizes over the whole tensor", _T.OTHER_DIMENSIONS, _DIMENSIONS, 4),
    ("uses the first sequence's mean and variance for the whole batch", _T.SEQUENCES, _STATISTICS, 0),
    ("normalizes over dimension 2, which is the last in three dimensions alone", _T.DIMENSION_2, _DIMENSIONS, 5),
    ("does not use its weight", _T.WEIGHT, _FINISH, 0),
    ("does not use its bias", _T.BIAS, _FINISH, 3),
    ("scales all features by the first entry of its weight", _T.WEIGHT, _FINISH, 1),
    ("adds the bias before it multiplies by the weight", _T.WEIGHT, _FINISH, 2),
    ("starts with a weight of zeros", _T.START, _START, 0),
    ("starts with a bias of ones", _T.START, _START, 1),
    ("has a weight and a bias that are no parameters", _T.NO_PARAMETERS, _KEPT, 0),
    ("changes its input in place", _T.IN_PLACE, _INPUT, 0),
    ("cuts mean and variance off from the graph", _T.GRADIENTS, _STATISTICS, 1),
    ("does not normalize after `.eval()`", _T.EVAL, _AWAKE, 0),
]


def _right_pick(numbers: int) -> list[int]:
    return [*(int(randint(0, count, ())) for count in _RIGHT_WAYS[:-1]), numbers]


def _layer_picks() -> Iterator[tuple[str, list[int]]]:
    """A title and a pick for each layer but torch's own; what is right in a broken one is done in a drawn way."""
    for numbers, title in enumerate(_RIGHT[2:]):
        for _ in range(int(randint(2, 5, ()))):  # a tolerance that is too tight may pass once by luck
            yield title, _right_pick(numbers)
    for _ in range(2):
        yield _RIGHT[1], []
    for title, _, task, way in _BROKEN:
        # In place on a copy in float64 would be no change of the input.
        pick = _right_pick(0 if task == _INPUT else int(randint(0, 2, ())))
        pick[task] = _RIGHT_WAYS[task] + way
        yield title, pick


def check_reader_test(test: Callable, points: float = 2.0) -> Credit:
    """The reader's test accepts each right layer; its points are the share of the broken ones that it rejects.

    Args:
        test: the reader's, called with a class; it rejects by an AssertionError.
        points: for a test that rejects all of them.

    Returns:
        The points, with what kind of broken layer got through.
    """
    picks = list(_layer_picks())
    # Made in random order, as they are tried: where a class stands among the subclasses of nn.Module tells nothing.
    picks = [picks[i] for i in randn(len(picks)).argsort().tolist()]
    made = place(make_layers, beside=test)([pick for _, pick in picks], place(alike, beside=test))
    layers = [(_RIGHT[0], nn.LayerNorm)] * 2 + [(title, made[i]) for i, (title, _) in enumerate(picks)]
    # In random order, so that a test cannot go by counting.
    layers = [layers[i] for i in torch.argsort(randn(len(layers))).tolist()]
    verdicts: dict[str, list[tuple[Any, Exception | None]]] = {title: [] for title, _ in layers}
    for title, layer in layers:
        verdicts[title].append(outcome_of(test, layer))
    for title in _RIGHT:
        for _, error in verdicts[title]:
            expect(error is None, m.check_layer_norm.REJECTS_RIGHT, title, got=f"{type(error).__name__}: {error}")
    missed = [
        (mistake, title, error)
        for title, mistake, *_ in _BROKEN
        for _, error in verdicts[title]
        if not isinstance(error, AssertionError)
    ]
    if not missed:
        return Credit(points, Finding())
    mistake, title, error = missed[0]
    caught = len(_BROKEN) - len(missed)
    told = {"expected": len(_BROKEN), "got": caught}
    others = "; ".join(f"one that {other}" for _, other, _ in missed[:3])
    if error is not None:
        why = found(_T.CRASHES, f"a layer that {title}", got=f"{type(error).__name__}: {error}")
    else:
        why = found(mistake, "the number of broken layers that your test notices", **told, where=f"not {others}")
    return Credit(round(points * caught / len(_BROKEN), 2), why)
