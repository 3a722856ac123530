"""The hidden tests of chapter 06."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Credit,
    build,
    call,
    expect_close,
    expect_device,
    expect_gradients,
    expect_not_calling,
    expect_parameter_gradients,
    expect_same_in_eval,
    place,
    rand_mask,
    randn,
    randomise,
    set_weights,
    unchanged,
)
from checks.formulas import feed_forward, layer_norm, multi_head_attention

State = dict[str, Tensor]


def _expect_values(
    module: nn.Module,
    oracle: Callable[[Tensor], Tensor],
    x: Tensor,
    mistakes: Mapping[str, Callable[[Tensor], Tensor]],
    name: str,
    more: tuple = (),
) -> None:
    """The module equals the oracle on `x`, in the dtype of `x`, and leaves `x` and `more` alone."""
    tensors = {name: value for name, value in zip(("mask",), more, strict=False) if isinstance(value, Tensor)}
    with unchanged(x=x, **tensors):
        value = call(module, x, *more)
    right = x.double()
    expect_close(value, oracle(right), name, {c: lambda f=f: f(right) for c, f in mistakes.items()}, x.dtype)


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


def _norm(
    state: State,
    x: Tensor,
    eps: float,
    dims: tuple[int, ...] = (-1,),
    centre: bool = True,
    power: float = 0.5,
    correction: int = 0,
    inside: bool = True,
    weight: bool = True,
    bias: bool = True,
    shift_first: bool = False,
    cut: bool = False,
) -> Tensor:
    """A layer norm written from the formula, with a switch for each mistake."""
    mean = x.mean(dims, keepdim=True)
    variance = x.var(dims, keepdim=True, correction=correction)
    if cut:
        mean, variance = mean.detach(), variance.detach()
    scale = (variance + eps) ** power if inside else variance**power + eps
    y = (x - mean if centre else x) / scale
    w = state["weight"] if weight else torch.ones_like(state["weight"])
    b = state["bias"] if bias else torch.zeros_like(state["bias"])
    return (y + b) * w if shift_first else y * w + b


def _torch_norm(state: State, x: Tensor, eps: float = 1e-5) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], state["weight"], state["bias"], eps)


def _norm_mistakes(state: State, eps: float) -> dict[str, Callable[[Tensor], Tensor]]:
    def wrong(eps: float = eps, **switches: Any) -> Callable[[Tensor], Tensor]:
        return lambda x: _norm(state, x, eps, **switches)

    return {
        "the variance is the unbiased one, divided by d - 1: use `correction=0`, or the mean of the squares": wrong(
            correction=1
        ),
        "eps is outside the root: it belongs inside, `sqrt(variance + eps)`": wrong(inside=False),
        "the variance is unbiased (divided by d - 1) and eps is outside the root": wrong(correction=1, inside=False),
        "the argument `eps` is ignored": wrong(1e-5),
        "eps is left out": wrong(0.0),
        "eps is squared": wrong(eps**2),
        "normalised over dimension 2: right only for three dimensions, use `dim=-1`": wrong(dims=(2,)),
        "normalised over the positions instead of the features: the statistics belong to the last dimension": wrong(
            dims=(-2,)
        ),
        "normalised over positions and features together: each position has statistics of its own": wrong(
            dims=(-2, -1)
        ),
        "normalised over the batch: items of a batch must not touch each other": wrong(dims=(0,)),
        "normalised over batch and positions, as a batch norm does: use the last dimension": lambda x: _norm(
            state, x, eps, tuple(range(x.dim() - 1))
        ),
        "normalised over the whole tensor: each position has statistics of its own": lambda x: _norm(
            state, x, eps, tuple(range(x.dim()))
        ),
        "the mean is not subtracted": wrong(centre=False),
        "the root is missing: divide by the standard deviation, not by the variance": wrong(power=1.0),
        "nothing is divided by the standard deviation": wrong(power=0.0),
        "`weight` is not used": wrong(weight=False),
        "`bias` is not used": wrong(bias=False),
        "neither `weight` nor `bias` is used": wrong(weight=False, bias=False),
        "`bias` is added before the multiplication by `weight`: multiply first": wrong(shift_first=True),
        "the mean of the squares is used as the variance, without subtracting the mean first": lambda x: (
            state["weight"] * (x - x.mean(-1, keepdim=True)) / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
            + state["bias"]
        ),
        "x itself is divided by its root mean square: subtract the mean first": lambda x: (
            state["weight"] * x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() + state["bias"]
        ),
    }


def check_layer_norm_class(cls: Callable) -> None:
    """Parameters, values, precision, gradients, device, and that no library norm does the work."""
    parameters = dict(call(cls, 3).named_parameters())
    for name, value in (("weight", 1.0), ("bias", 0.0)):
        assert name in parameters, f"`{name}` is not a parameter, so nothing can learn it: wrap it in nn.Parameter"
        start = parameters[name].detach()
        assert torch.equal(start, torch.full((3,), value)), (
            f"`{name}` should start as {[value] * 3}, one number for each feature, so that a fresh layer only "
            f"normalises; it starts as {start.tolist()}"
        )
    for shape in _NORM_SHAPES:
        for eps in (None, 0.7):  # the default, and one so large that its place matters
            _check_norm_values(cls, shape, eps)

    module, state = build(lambda: cls(5), {"weight": (5,), "bias": (5,)})
    x = randn(2, 3, 5)
    expect_not_calling(module, [x], _LIBRARY, "write this exercise with means, squares and roots")
    cut = (
        "mean and variance are cut off from the graph: they depend on x, and gradients must flow through them "
        "(no `detach`, no `torch.no_grad()`)"
    )
    expect_gradients(module, partial(_torch_norm, state), {"x": x}, {cut: lambda x: _norm(state, x, 1e-5, cut=True)})
    expect_parameter_gradients(module, _torch_norm, state, [x])
    _check_norm_extremes(module.to(torch.float32), state)
    module.eval()
    after = call(module, x.float())
    expect_close(after, _torch_norm(state, x), "the result after `.eval()`, where nothing should change,")
    expect_device(module.to("meta"), {"x": x.float()})


def _check_norm_values(cls: Callable, shape: tuple[int, ...], eps: float | None) -> None:
    options, value, dim = {} if eps is None else {"eps": eps}, 1e-5 if eps is None else eps, shape[-1]
    for dtype in (torch.float32, torch.float64):
        module, state = build(lambda: cls(dim, **options), {"weight": (dim,), "bias": (dim,)}, dtype=dtype)
        # Features far enough apart that rounding in float32 stays small against their variance.
        x = (randn(*shape) + 2 * torch.arange(dim)).to(dtype)
        _expect_values(
            module,
            partial(_torch_norm, state, eps=value),
            x,
            _norm_mistakes(state, value),
            f"the result for x of shape {shape} and eps={value:g}",
        )


def _check_norm_extremes(module: nn.Module, state: State) -> None:
    level = torch.full((2, 5), 3.0)
    expect_close(call(module, level), state["bias"].expand(2, 5), "the result for five equal features (their `bias`)")
    # Here the mean of the squares and the square of the mean agree in all the digits that float32 has.
    far = (4000 + randn(4, 3, 5) + 2 * torch.arange(5)).float()
    name = "the result far from zero (features near 4000; subtract the mean before you square)"
    expect_close(call(module, far), _torch_norm(state, far.double()), name, tolerance=1e-2)


# ---- the feed-forward networks


def _same(x: Tensor) -> Tensor:
    return x


def _feed_mistakes(state: State) -> dict[str, Callable[[Tensor], Tensor]]:
    def network(x: Tensor, act: Callable[[Tensor], Tensor] = F.relu) -> Tensor:
        return feed_forward(state, "", x, act)

    def without_bias(x: Tensor) -> Tensor:
        return network(x) - state["outer.bias"]

    return {
        "the ReLU is missing, and two linear maps without it are one": lambda x: network(x, _same),
        "a second ReLU follows `outer`: only the hidden features go through one": lambda x: F.relu(network(x)),
        "the ReLU comes after `outer`, not between the two": lambda x: F.relu(network(x, _same)),
        "the ReLU comes before `inner`, not between the two": lambda x: network(F.relu(x), _same),
        "a ReLU comes before `inner` too: the input goes into `inner` as it is": lambda x: network(F.relu(x)),
        "GELU takes the place of ReLU": lambda x: network(x, F.gelu),
        "tanh takes the place of ReLU": lambda x: network(x, torch.tanh),
        "a sigmoid takes the place of ReLU": lambda x: network(x, torch.sigmoid),
        "leaky ReLU takes the place of ReLU": lambda x: network(x, F.leaky_relu),
        "the hidden features go through a softmax": lambda x: network(x, lambda h: F.relu(h).softmax(-1)),
        "the input is added to the result: the residual connection belongs to the block": lambda x: x + network(x),
        "`outer`'s bias is left out": without_bias,
    }


def _turned(state: State, into: str, out: str) -> Callable[[Tensor], Tensor]:
    """The convolutional network when positions and features are swapped in a wrong way.

    A "view" does to equal sizes what leaving the swap out does.
    """

    def network(x: Tensor) -> Tensor:
        batch, n, dim = x.shape
        first = x.reshape(batch, dim, n) if into == "view" else x.mT
        y = feed_forward(state, "", first.mT).mT  # positions are the last dimension for a convolution
        return y.reshape(batch, n, dim) if out == "view" else y.mT

    return network


_VIEW = " (`view` and `reshape` do not swap dimensions, they cut the same numbers up anew)"
_SEQUENCES = [(4, 4, 4, 4), (2, 3, 5, 7), (3, 5, 4, 2), (1, 6, 3, 8), (4, 1, 5, 3), (2, 4, 1, 6), (2, 3, 6, 1)]


def _feed_shapes(dim: int, hidden: int, width: tuple[int, ...] = ()) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"inner.weight": (hidden, dim, *width), "inner.bias": (hidden,)}
    return shapes | {"outer.weight": (dim, hidden, *width), "outer.bias": (dim,)}


def _check_feed_forward(cls: Callable, width: tuple[int, ...], hints: Mapping[str, str], mistakes: Callable) -> None:
    """Values, gradients, device, and that positions do not touch each other."""

    def network(dim: int, hidden: int, dtype: torch.dtype) -> tuple[nn.Module, State]:
        return build(lambda: cls(dim, hidden), _feed_shapes(dim, hidden, width), hints, dtype)

    network(3, 5, torch.float32)  # unequal sizes first: they show which of the two is where
    for batch, n, dim, hidden in _SEQUENCES:
        for dtype in (torch.float32, torch.float64):
            module, state = network(dim, hidden, dtype)
            x = randn(batch, n, dim, dtype=dtype)
            name = f"the result for (B, n, d) = {(batch, n, dim)} and {hidden} hidden features"
            _expect_values(module, lambda x, s=state: feed_forward(s, "", x), x, mistakes(state), name)
    module, state = network(4, 6, torch.float64)
    x = randn(2, 3, 4)
    expect_gradients(module, lambda x: feed_forward(state, "", x), {"x": x}, mistakes(state))
    expect_parameter_gradients(module, lambda s, x: feed_forward(s, "", x), state, [x])
    x = randn(2, 3, 4)  # the same sizes, another input
    name = "the result after `.eval()`, where nothing changes without dropout,"
    expect_close(call(module.eval(), x), feed_forward(state, "", x), name)
    expect_device(module.to("meta"), {"x": x})


def check_feed_forward(cls: Callable) -> None:
    """Values, and dropout between ReLU and `outer`."""
    hints = {"inner.weight": "`inner` is nn.Linear(dim, hidden)", "outer.weight": "`outer` is nn.Linear(hidden, dim)"}
    _check_feed_forward(cls, (), hints, _feed_mistakes)
    _check_feed_forward_dropout(cls)


def _check_feed_forward_dropout(cls: Callable) -> None:
    module = call(cls, 4, 6, dropout=0.5)
    state = randomise(module, _feed_shapes(4, 6))
    x = randn(2, 3, 4)
    expect_same_in_eval(module, [x], "the network", feed_forward(state, "", x))

    module = call(cls, 4, 6, dropout=1.0)
    state = randomise(module, _feed_shapes(4, 6))
    expect_close(
        call(module.train(), x),
        state["outer.bias"].expand(2, 3, 4),
        "while training with dropout=1.0 nothing hidden survives, so that only `outer`'s bias is left: the result",
        {
            "the argument `dropout` has no effect": lambda: feed_forward(state, "", x),
            "dropout acts on the result: it belongs between ReLU and `outer`": lambda: torch.zeros_like(x),
            "dropout acts on the input: it belongs between ReLU and `outer`": lambda: feed_forward(
                state, "", torch.zeros_like(x)
            ),
        },
    )
    # One hidden feature that is always 1, passed on as it is: what comes out is what dropout makes of it.
    module = call(cls, 1, 1, dropout=0.5)
    ones, zeros = torch.ones(1, 1), torch.zeros(1)
    weights = {"inner.weight": 0 * ones, "inner.bias": 1 + zeros, "outer.weight": ones, "outer.bias": zeros}
    set_weights(module, weights, torch.float32)
    seen = set(call(module.train(), torch.zeros(2, 100, 1)).flatten().tolist())
    assert seen == {0.0, 2.0}, (
        "with dropout=0.5 a hidden feature of 1 should become 0 or, to make up for those, 2 while training; "
        f"here it becomes {sorted(seen)[:4]}: use nn.Dropout or F.dropout, and pass `dropout` on"
    )


def check_conv_feed_forward(cls: Callable) -> None:
    """Values, and that the convolutions run along the positions."""

    def mistakes(state: State) -> dict[str, Callable[[Tensor], Tensor]]:
        return _feed_mistakes(state) | {
            f"Conv1d wants `(B, d, n)`: turn x with `transpose(1, 2)` before, and back after{_VIEW}": (
                _turned(state, "view", "view")
            ),
            f"x is not turned to `(B, d, n)` before `inner`: use `transpose(1, 2)`{_VIEW}": (
                _turned(state, "view", "transpose")
            ),
            f"the result is not turned back after `outer`: use `transpose(1, 2)`{_VIEW}": (
                _turned(state, "transpose", "view")
            ),
        }

    hints = {
        "inner.weight": "`inner` is nn.Conv1d(dim, hidden, kernel_size=1)",
        "outer.weight": "`outer` is nn.Conv1d(hidden, dim, kernel_size=1)",
    }
    _check_feed_forward(cls, (1,), hints, mistakes)


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

    def attend(self, queries: Tensor, others: Tensor | None = None) -> Tensor:
        return self._attend(queries, others, self.heads, self.mask)

    def unmasked(self, x: Tensor) -> Tensor:
        return self._attend(x, None, self.heads, None)

    def opposite(self, x: Tensor) -> Tensor:
        return self._attend(x, None, self.heads, None if self.mask is None else ~self.mask)

    def one_head(self, x: Tensor) -> Tensor:
        return self._attend(x, None, 1, self.mask)

    def feed(self, x: Tensor) -> Tensor:
        return feed_forward(self.state, "feed_forward.", x)

    def linear_feed(self, x: Tensor) -> Tensor:
        return feed_forward(self.state, "feed_forward.", x, _same)

    def _attend(self, queries: Tensor, others: Tensor | None, heads: int, mask: Tensor | None) -> Tensor:
        others = queries if others is None else others
        return multi_head_attention(self.state, "attention.", queries, others, heads, mask)


def _post(p: _Parts, x: Tensor, sign: tuple = (1, 1), keep: tuple = (1, 1), **other: Callable) -> Tensor:
    """The block as published; `sign` multiplies the sublayers, `keep` the residuals, `other` replaces parts."""
    attend, feed, norm_1, norm_2 = (other.get(n, getattr(p, n)) for n in ("attend", "feed", "norm_1", "norm_2"))
    x = norm_1(keep[0] * x + sign[0] * attend(x))
    return norm_2(keep[1] * x + sign[1] * feed(x))


def _pre(p: _Parts, x: Tensor, sign: tuple = (1, 1), keep: tuple = (1, 1), **other: Callable) -> Tensor:
    """The block with its norms before the sublayers; the arguments are those of `_post`."""
    attend, feed, norm_1, norm_2 = (other.get(n, getattr(p, n)) for n in ("attend", "feed", "norm_1", "norm_2"))
    x = keep[0] * x + sign[0] * attend(norm_1(x))
    return keep[1] * x + sign[1] * feed(norm_2(x))


_Mistakes = dict[str, Callable[[_Parts, Tensor], Tensor]]


def _shared_mistakes(block: Callable) -> _Mistakes:
    """Mistakes that can be made in either order."""
    return {
        "the mask is not passed on to the attention": lambda p, x: block(p, x, attend=p.unmasked),
        "the mask is turned round: True means that a position may be attended to": lambda p, x: block(
            p, x, attend=p.opposite
        ),
        "both residuals are subtracted: it is x + sublayer(x)": lambda p, x: block(p, x, sign=(-1, -1)),
        "both residuals are subtracted (sublayer(x) - x): it is x + sublayer(x)": lambda p, x: block(
            p, x, keep=(-1, -1)
        ),
        "the residual around the attention is subtracted, not added": lambda p, x: block(p, x, sign=(-1, 1)),
        "the residual around the feed-forward network is subtracted, not added": lambda p, x: block(p, x, sign=(1, -1)),
        "both residual connections are missing: add each sublayer's input to its output": lambda p, x: block(
            p, x, keep=(0, 0)
        ),
        "the residual connection around the attention is missing": lambda p, x: block(p, x, keep=(0, 1)),
        "the residual connection around the feed-forward network is missing": lambda p, x: block(p, x, keep=(1, 0)),
        "`norm_1` is used twice, and `norm_2` never": lambda p, x: block(p, x, norm_2=p.norm_1),
        "`norm_2` is used twice, and `norm_1` never": lambda p, x: block(p, x, norm_1=p.norm_2),
        "`norm_1` and `norm_2` are exchanged: `norm_1` belongs to the attention": lambda p, x: block(
            p, x, norm_1=p.norm_2, norm_2=p.norm_1
        ),
        "the feed-forward network has no ReLU": lambda p, x: block(p, x, feed=p.linear_feed),
        "the attention is missing": lambda p, x: block(p, x, attend=torch.zeros_like),
        "the feed-forward network is missing": lambda p, x: block(p, x, feed=torch.zeros_like),
        "`norm_1` is missing": lambda p, x: block(p, x, norm_1=_same),
        "`norm_2` is missing": lambda p, x: block(p, x, norm_2=_same),
        "both norms are missing": lambda p, x: block(p, x, norm_1=_same, norm_2=_same),
        "the feed-forward network comes first: attention is the first sublayer": lambda p, x: block(
            p, x, attend=p.feed, feed=p.attend
        ),
        "`heads` is not passed on: the attention has one head": lambda p, x: block(p, x, attend=p.one_head),
        "the block returns only a LayerNorm of its input: attention and feed-forward network are missing": (
            lambda p, x: p.norm_2(p.norm_1(x))
        ),
        "the block returns only a LayerNorm of its input (`norm_1(x)`)": lambda p, x: p.norm_1(x),
        "the block returns only a LayerNorm of its input (`norm_2(x)`)": lambda p, x: p.norm_2(x),
        "the block returns its input": lambda p, x: x,
        "a LayerNorm acts on each sublayer's output before it is added: x + norm(sublayer(x)) is neither order": (
            lambda p, x: _pre(
                p,
                x,
                attend=lambda h: p.norm_1(p.attend(h)),
                norm_1=_same,
                norm_2=_same,
                feed=lambda h: p.norm_2(p.feed(h)),
            )
        ),
        "`norm_2` is applied to the feed-forward network's output before it is added": lambda p, x: block(
            p, x, feed=lambda h: p.norm_2(p.feed(h)), norm_2=_same
        ),
    }


def _post_mistakes() -> _Mistakes:
    def from_the_input(p: _Parts, x: Tensor) -> Tensor:
        return p.norm_2(x + p.feed(p.norm_1(x + p.attend(x))))

    return {
        "the order of the norms is swapped: this is pre-norm, but post-norm is asked": _pre,
        **_shared_mistakes(_post),
        "the second residual adds the block's input: add what went into the feed-forward network": from_the_input,
        "the feed-forward network reads the block's input: it reads the result of the first sublayer": lambda p, x: (
            _post(p, x, feed=lambda _: p.feed(x))
        ),
        "the sublayers run side by side: the second reads what the first one made": lambda p, x: p.norm_2(
            p.norm_1(x + p.attend(x) + p.feed(x))
        ),
        "the norms act both before and after the sublayers": lambda p, x: _post(
            p, x, attend=lambda h: p.attend(p.norm_1(h)), feed=lambda h: p.feed(p.norm_2(h))
        ),
    }


def _pre_mistakes() -> _Mistakes:
    def on_normed(p: _Parts, x: Tensor) -> Tensor:
        x = p.norm_1(x)
        x = p.norm_2(x + p.attend(x))
        return x + p.feed(x)

    def first_on_normed(p: _Parts, x: Tensor) -> Tensor:
        x = p.norm_1(x)
        x = x + p.attend(x)
        return x + p.feed(p.norm_2(x))

    def second_on_normed(p: _Parts, x: Tensor) -> Tensor:
        x = p.norm_2(x + p.attend(p.norm_1(x)))
        return x + p.feed(x)

    def only_queries(p: _Parts, x: Tensor) -> Tensor:
        x = x + p.attend(p.norm_1(x), x)
        return x + p.feed(p.norm_2(x))

    way = "add the sublayer's output to x itself, not to norm(x): the residual path goes round the norm"
    return {
        "`norm_first=True` has no effect: this is post-norm": _post,
        f"{way} (both times)": on_normed,
        f"{way} (around the attention)": first_on_normed,
        f"{way} (around the feed-forward network)": second_on_normed,
        "only the queries are normalised: keys and values come from norm_1(x) too": only_queries,
        **_shared_mistakes(_pre),
        "a norm follows the last addition too: in pre-norm the block ends with the sum": lambda p, x: p.norm_2(
            _pre(p, x)
        ),
        "the second residual adds the block's input: add the sum that the attention made": lambda p, x: (
            x + p.feed(p.norm_2(x + p.attend(p.norm_1(x))))
        ),
        "the feed-forward network reads the block's input: it reads the sum that the attention made": lambda p, x: (
            x + p.attend(p.norm_1(x)) + p.feed(p.norm_2(x))
        ),
    }


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
    names, parameters = set(module.state_dict()), dict(module.named_parameters())
    for one, other in (("norm_1", "norm_2"), ("norm_2", "norm_1")):
        assert f"{one}.weight" in parameters or f"{one}.weight" not in names, (
            f"one LayerNorm is used twice: `{one}` and `{other}` are the same module, so they share their weights; "
            "make two"
        )
    inner = parameters.get("feed_forward.inner.weight")
    if inner is not None and hidden is None:
        assert len(inner) == 4 * dim, (
            f"when `hidden` is not given, the feed-forward network should have 4 * dim = {4 * dim} hidden features, "
            f"it has {len(inner)}"
        )
    if inner is not None and hidden is not None:
        assert len(inner) == hidden, (
            f"`hidden` is not passed on: with hidden={hidden} the feed-forward network has {len(inner)} hidden features"
        )
    width = (1,) if inner is not None and inner.dim() == 3 else ()  # a ConvFeedForward does as well
    hidden = 4 * dim if hidden is None else hidden
    shapes = {f"attention.{name}.weight": (dim, dim) for name in ("Wq", "Wk", "Wv", "WO")}
    shapes |= {f"attention.{name}.bias": (dim,) for name in ("Wq", "Wk", "Wv", "WO")}
    shapes |= {f"{norm}.{name}": (dim,) for norm in ("norm_1", "norm_2") for name in ("weight", "bias")}
    shapes |= {"feed_forward.inner.weight": (hidden, dim, *width), "feed_forward.inner.bias": (hidden,)}
    shapes |= {"feed_forward.outer.weight": (dim, hidden, *width), "feed_forward.outer.bias": (dim,)}
    hints = {
        "attention": "`attention` is the MultiHeadAttention of chapter 4",
        "norm_": "`norm_1` and `norm_2` are two LayerNorms over `dim` features",
        "feed_forward": "`feed_forward` is the FeedForward of exercise 6.2",
    }
    return build(lambda: module, shapes, hints, dtype)


def _check_block(cls: Callable, norm_first: bool, right: Callable, mistakes: _Mistakes) -> None:
    """Values with each kind of mask, gradients and dropout, in one of the two orders."""
    order = "norm_first=True" if norm_first else "norm_first=False"
    for batch, n, dim, heads, hidden, kind in _BLOCKS:
        # In float32 a norm over very few features can magnify rounding beyond any tolerance.
        for dtype in (torch.float64,) if dim < 8 else (torch.float32, torch.float64):
            module, state = _block(cls, dim, heads, hidden, norm_first, dtype)
            mask = _mask(kind, batch, n, heads)
            p = _Parts(state, heads, mask)
            # Values of several sizes, so that a norm too many or too few shows.
            x = (2 * randn(batch, n, dim) + 1).to(dtype)
            about = "" if mask is None else f" and a mask of shape {tuple(mask.shape)}"
            _expect_values(
                module,
                lambda x, p=p: right(p, x),
                x,
                {cause: lambda x, f=f, p=p: f(p, x) for cause, f in mistakes.items()},
                f"the block's result for {order}, (B, n, d) = {(batch, n, dim)}, heads={heads}{about}",
                () if mask is None else (mask,),
            )
    module, state = _block(cls, 6, 2, 5, norm_first, torch.float64)
    x = randn(2, 3, 6)
    expect_gradients(module, lambda x: right(_Parts(state, 2), x), {"x": x})
    expect_parameter_gradients(module, lambda s, x: right(_Parts(s, 2), x), state, [x])
    _check_block_dropout(cls, norm_first, right)


def _check_block_dropout(cls: Callable, norm_first: bool, right: Callable) -> None:
    x = randn(2, 3, 6)
    module, state = _block(cls, 6, 2, 5, norm_first, torch.float64, dropout=0.5)
    expect_same_in_eval(module, [x], "the block", right(_Parts(state, 2), x))

    # With dropout 1 nothing of a sublayer's output survives, wherever else the block drops something.
    module, state = _block(cls, 6, 2, 5, norm_first, torch.float64, dropout=1.0)
    p = _Parts(state, 2)

    def bias_of(name: str) -> Callable[[Tensor], Tensor]:
        return lambda h: state[name].expand_as(h)

    # What is left of a sublayer whose output is not dropped depends on what else the block drops.
    attention = {"": p.attend, " (its weights are)": bias_of("attention.WO.bias")}
    network = {"": p.feed, " (its hidden features are)": bias_of("feed_forward.outer.bias")}
    none = torch.zeros_like
    left = {f"the attention's output is not dropped{how}": (a, none) for how, a in attention.items()}
    left |= {f"the feed-forward network's output is not dropped{how}": (none, f) for how, f in network.items()}
    for (how_a, a), (how_f, f) in product(attention.items(), network.items()):
        left[f"neither sublayer's output is dropped{how_a}{how_f}"] = a, f
    mistakes = {cause: lambda a=a, f=f: right(p, x, attend=a, feed=f) for cause, (a, f) in left.items()}
    after = "dropout is applied after the residual is added: it must act on the sublayer's output alone"
    mistakes[after] = lambda: torch.zeros_like(x)
    mistakes[after + ", before the sum"] = lambda: p.norm_2(torch.zeros_like(x))
    expect_close(
        call(module.train(), x),
        right(p, x, attend=none, feed=none),
        "while training with dropout=1.0 only the residual path is left: the block's result",
        mistakes,
    )


def check_transformer_block(cls: Callable) -> None:
    """Post-norm, the order of the paper."""
    _check_block(cls, False, _post, _post_mistakes())


def check_transformer_block_pre(cls: Callable) -> None:
    """Pre-norm."""
    _check_block(cls, True, _pre, _pre_mistakes())


# ---- the reader's own test


def make_layer(**changes):
    """A class that is made and called like nn.LayerNorm."""
    settings = {
        "dims": [-1],
        "first": False,
        "centre": True,
        "power": 0.5,
        "less": 0,
        "outside": False,
        "eps": None,
        "usual": 1e-5,
        "weight": "each",
        "bias": True,
        "early": False,
        "start": [1.0, 0.0],
        "learned": True,
        "keep": True,
        "cut": False,
        "always": True,
        "fused": False,
        "wide": False,
    } | changes

    class Layer(nn.Module):
        def __init__(self, dim, eps=settings["usual"]):
            super().__init__()
            self.eps = eps if settings["eps"] is None else settings["eps"]
            weight, bias = (torch.full((dim,), value) for value in settings["start"])
            if settings["learned"]:
                self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
            else:
                self.register_buffer("weight", weight)
                self.register_buffer("bias", bias)

        def forward(self, x):
            if settings["fused"]:
                return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
            y = self.normalise(x.double()).to(x.dtype) if settings["wide"] else self.normalise(x)
            weight = {"each": self.weight, "first": self.weight[:1], "none": 1.0}[settings["weight"]]
            bias = self.bias if settings["bias"] else 0.0
            return (y + bias) * weight if settings["early"] else y * weight + bias

        def normalise(self, x):
            if not (self.training or settings["always"]):
                return x
            dims = sorted({d % x.dim() for d in settings["dims"]})
            count = x.numel() // x.sum(dims).numel()
            mean = x.mean(dims, keepdim=True) if settings["centre"] else x.new_zeros(())
            spread = (x - mean).pow(2).sum(dims, keepdim=True) / max(count - settings["less"], 1)
            if settings["first"]:
                mean, spread = mean[:1], spread[:1]
            if settings["cut"]:
                mean, spread = mean.detach(), spread.detach()
            eps, power = self.eps, settings["power"]
            scale = spread**power + eps if settings["outside"] else (spread + eps) ** power
            y = (x - mean) / scale
            if not settings["keep"]:
                x.data.sub_(mean.data)
            return y

    return Layer


_RIGHT = {
    "torch's own nn.LayerNorm": None,
    "a LayerNorm written by hand": {},
    "a LayerNorm that calls F.layer_norm": {"fused": True},
    "a LayerNorm that calculates in float64": {"wide": True},
}
_BROKEN = {
    "does not subtract the mean": {"centre": False},
    "does not divide by the standard deviation": {"power": 0.0},
    "divides by the variance instead of its root": {"power": 1.0},
    "uses the unbiased variance, divided by d - 1": {"less": 1},
    "adds eps outside the root (pass an eps so large that its place matters)": {"outside": True},
    "ignores the argument eps (pass one, and make it large)": {"eps": 1e-5},
    "has another default eps, 1e-3 (without an eps of your own, try inputs of small variance)": {"usual": 1e-3},
    "normalises over the positions instead of the features": {"dims": [-2]},
    "normalises over positions and features together": {"dims": [-2, -1]},
    "normalises over the batch": {"dims": [0]},
    "normalises over batch and features together (test more than one sequence)": {"dims": [0, -1]},
    "normalises over the whole tensor": {"dims": [0, 1, 2, 3]},
    "uses the first sequence's mean and variance for the whole batch (test more than one sequence)": {"first": True},
    "normalises over dimension 2, which is the last only in three dimensions (test other numbers of dimensions)": {
        "dims": [2]
    },
    "does not use its weight (set one, it starts as ones)": {"weight": "none"},
    "does not use its bias (set one, it starts as zeros)": {"bias": False},
    "scales all features by the first entry of its weight (set entries that differ)": {"weight": "first"},
    "adds the bias before it multiplies by the weight (set both)": {"early": True},
    "starts with a weight of zeros": {"start": [0.0, 0.0]},
    "starts with a bias of ones": {"start": [1.0, 1.0]},
    "has a weight and a bias that are no parameters, so that no optimizer trains them": {"learned": False},
    "changes its input in place (compare the input with a copy made before the call)": {"keep": False},
    "cuts mean and variance off from the graph, so that values are right and gradients wrong (compare gradients)": {
        "cut": True
    },
    "does not normalise after `.eval()`": {"always": False},
}


def _try(test: Callable, layer_class: Any) -> tuple[Any, Exception | None]:
    """What the reader's test returned, or the exception that it raised."""
    try:
        return test(layer_class), None
    except NotImplementedError:
        raise
    except Exception as error:
        return None, error


def check_reader_test(test: Callable, points: float = 2.0) -> Credit:
    """The reader's test accepts each right layer; its points are the share of the broken ones that it rejects.

    Args:
        test: the reader's, called with a class; it rejects by an AssertionError.
        points: for a test that rejects all of them.

    Returns:
        The points, with what kind of broken layer got through.
    """
    make = place(make_layer, beside=test)
    layers = [
        (title, nn.LayerNorm if settings is None else make(**settings))
        for title, settings in [*_RIGHT.items(), *_BROKEN.items()]
        for _ in range(2 if title in _RIGHT else 1)  # a tolerance that is too tight may pass once by luck
    ]
    # In random order, so that a test cannot go by counting.
    random.shuffle(layers)
    found = {title: [] for title, _ in layers}
    for title, layer in layers:
        found[title].append(_try(test, layer))
    for title in _RIGHT:
        for _, error in found[title]:
            assert error is None, (
                f"your test rejects a right layer, {title}: {type(error).__name__}: {error}. Compare floating-point "
                "numbers with a tolerance (torch.testing.assert_close), and ask for no more than the specification does"
            )
    verdicts = {title: found[title][0] for title in _BROKEN}
    missed = {title: _why_missed(title, *verdict) for title, verdict in verdicts.items()}
    missed = {title: why for title, why in missed.items() if why}
    caught = len(_BROKEN) - len(missed)
    assert caught, f"your test notices none of {len(_BROKEN)} broken layers: {next(iter(missed.values()))}"
    why = f"your test notices {caught} of {len(_BROKEN)} broken layers; {'; '.join(list(missed.values())[:3])}"
    return Credit(round(points * caught / len(_BROKEN), 2), why)


def _why_missed(title: str, returned: Any, error: Exception | None) -> str:
    """How the reader's test failed to reject a broken layer; empty if it did reject it."""
    if isinstance(error, AssertionError):
        return ""
    if error is not None:
        return (
            f"a layer that {title} makes it stop with {type(error).__name__} ({error}): assert first what the next "
            "line relies on"
        )
    said = f" (it returned {returned!r}: a test speaks by `assert`)" if isinstance(returned, bool | str) else ""
    return f"it accepts a layer that {title}{said}"
