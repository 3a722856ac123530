"""What chapter 06's check cells call: small cases by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import call, expect_close, expect_tensor, place, unchanged
from autograder.course.card import visible

# The features of section 6.2, and what is left of them once they are normalised.
FEATURES = [2.0, 4, 4, 4, 5, 5, 7, 9]
NORMALISED = torch.tensor([-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2])


def _expect_shapes(module: nn.Module, wanted: Mapping[str, tuple[int, ...]], hint: str) -> None:
    shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
    for name, shape in wanted.items():
        assert name in shapes, f"the parameter `{name}` is missing among {sorted(shapes)}: {hint}"
        assert shapes[name] == shape, f"`{name}` should have shape {shape}, it has {shapes[name]}: {hint}"


def _result(module: nn.Module, x: Tensor) -> Tensor:
    """What the module makes of a copy of `x`, which it leaves as it is; always of the same shape."""
    given = x.clone()
    with unchanged(x=given):
        y = call(module, given)
    expect_tensor(y, x.shape)
    return y


def _expect(y: Tensor, wrong: Mapping[str, Tensor], right: Tensor, tolerance: float = 1e-3) -> None:
    """Fail if the result is not right, with the name of the first mistake that gives it."""
    mistakes = {mistake: lambda value=value: value for mistake, value in wrong.items()}
    expect_close(y, right, mistakes=mistakes, tolerance=tolerance)


@visible("mean and variance of each position by hand, the place of weight and bias, equal features without NaN")
def LayerNorm(cls: Callable) -> None:
    """The features of section 6.2 in several positions, with fresh weights and then with others."""
    norm = call(cls, 8)
    parameters = dict(norm.named_parameters())
    for name, start in {"weight": torch.ones(8), "bias": torch.zeros(8)}.items():
        assert name in parameters, f"`{name}` is not a parameter, so nothing can learn it: wrap it in nn.Parameter"
        assert torch.equal(parameters[name], start), (
            f"`{name}` should start as {start.tolist()}, one number for each feature"
        )
    x = torch.tensor(
        [
            [FEATURES, [3] * 8, [0, 8] * 4],
            [[1, 2, 3, 4, 5, 6, 7, 8], [9, 1] * 4, [0, 0, 0, 7, 1, 1, 1, 1]],
        ]
    )
    y = _result(norm, x)
    assert not y.isnan().any(), (
        "the result contains NaN: divide by sqrt(variance + eps), so that equal features do no harm"
    )
    right = F.layer_norm(x, (8,))
    over = {
        (1,): "the positions instead of the features",
        (1, 2): "positions and features together",
        (0,): "the batch",
        (0, 1): "batch and positions, as a batch norm does",
        (0, 1, 2): "the whole tensor",
    }
    first, whole = {}, {}
    for dims, what in over.items():
        variance = x.var(dims, keepdim=True, correction=0)
        mistake = f"normalised over {what}: take mean and variance of each position, over its features"
        whole[mistake] = (x - x.mean(dims, keepdim=True)) / (variance + 1e-5).sqrt()
        first[mistake] = whole[mistake][0, 0]
    first |= {
        "the variance divides by d - 1, it should divide by d": NORMALISED * (7 / 8) ** 0.5,
        "the deviations are divided by the variance, not by its root": NORMALISED / 2,
        "nothing is divided by the standard deviation": NORMALISED * 2,
        "the mean is not subtracted": x[0, 0] / 2,
        "the mean is not subtracted, neither from x nor before squaring": x[0, 0] / 29**0.5,
    }
    _expect(y[0, 0], first, NORMALISED)
    _expect(y, whole, right, tolerance=1e-5)
    weight, bias = torch.arange(1.0, 9), torch.arange(8.0) / 2
    norm.load_state_dict({"weight": weight, "bias": bias})
    scaled = {
        "`weight` is not used": NORMALISED + bias,
        "`bias` is not used": NORMALISED * weight,
        "`bias` is added before the multiplication by `weight`: multiply first": (NORMALISED + bias) * weight,
    }
    _expect(_result(norm, x)[0, 0], scaled, NORMALISED * weight + bias, tolerance=1e-2)


# inner takes (a, b) to (a, b, a - b); outer takes (p, q, r) to (p + q + r, 2p + r - 10).
_INNER, _OUTER = torch.tensor([[1.0, 0], [0, 1], [1, -1]]), torch.tensor([[1.0, 1, 1], [2, 0, 1]])
_BIAS = torch.tensor([0.0, -10])


def _network_mistakes(x: Tensor, right: Tensor) -> dict[str, Tensor]:
    linear = x @ _INNER.T @ _OUTER.T + _BIAS
    return {
        "the ReLU is missing, and two linear maps without it are one": linear,
        "the ReLU comes after `outer`, not between the two": linear.relu(),
        "a second ReLU follows `outer`: only the hidden features go through one": right.relu(),
        "the ReLU comes before `inner`, not between the two": x.relu() @ _INNER.T @ _OUTER.T + _BIAS,
        "a ReLU comes before `inner` too": (x.relu() @ _INNER.T).relu() @ _OUTER.T + _BIAS,
        "GELU takes the place of ReLU": F.gelu(x @ _INNER.T) @ _OUTER.T + _BIAS,
        "a sigmoid takes the place of ReLU": (x @ _INNER.T).sigmoid() @ _OUTER.T + _BIAS,
        "the input is added to the result: the residual connection belongs to the block": x + right,
    }


@visible("names and shapes of the parameters, and two positions by hand")
def FeedForward(cls: Callable) -> None:
    """Two sequences of one position each: (1, 2) becomes (1, 2, 0) in the middle, then (3, -8)."""
    network = call(cls, 2, 3)
    shapes = {"inner.weight": (3, 2), "inner.bias": (3,), "outer.weight": (2, 3), "outer.bias": (2,)}
    _expect_shapes(
        network, shapes, "`inner` is nn.Linear(dim, hidden), `outer` is nn.Linear(hidden, dim), both with a bias"
    )
    weights = {"inner.weight": _INNER, "inner.bias": torch.zeros(3), "outer.weight": _OUTER, "outer.bias": _BIAS}
    network.load_state_dict({name: value.clone() for name, value in weights.items()})
    x = torch.tensor([[[1.0, 2]], [[1, -2]]])  # (B=2, n=1, d=2)
    right = torch.tensor([[[3.0, -8]], [[4, -5]]])
    wrong = _network_mistakes(x, right)
    wrong["the second sequence has the first one's result"] = right[:1].expand(2, 1, 2)
    _expect(_result(network, x), wrong, right, tolerance=1e-4)


@visible("the third dimension of the weights, and that features, not positions, are the channels")
def ConvFeedForward(cls: Callable) -> None:
    """The weights of `FeedForward`'s check, as convolutions of width 1."""
    network = call(cls, 2, 3)
    shapes = {"inner.weight": (3, 2, 1), "inner.bias": (3,), "outer.weight": (2, 3, 1), "outer.bias": (2,)}
    _expect_shapes(network, shapes, "`inner` is nn.Conv1d(dim, hidden, kernel_size=1), and `outer` is the way back")
    weights = {"inner.weight": _INNER[..., None], "inner.bias": torch.zeros(3)}
    weights |= {"outer.weight": _OUTER[..., None], "outer.bias": _BIAS}
    network.load_state_dict({name: value.clone() for name, value in weights.items()})
    # (B=1, n=2, d=2): equal sizes, so that a mix-up of the two does not crash, but shows.
    x = torch.tensor([[[1.0, 2], [1, -2]]])
    right = torch.tensor([[[3.0, -8], [4, -5]]])
    turned = ((x.mT @ _INNER.T).relu() @ _OUTER.T + _BIAS).mT  # features and positions exchanged
    how = " (to turn is `transpose(1, 2)`; `view` and `reshape` do not swap dimensions)"
    wrong = _network_mistakes(x, right) | {
        f"the result is not turned back after `outer`{how}": right.mT,
        f"x is not turned to `(B, d, n)` before `inner`{how}": turned.mT,
        f"Conv1d wants `(B, d, n)`: turn x before, and the result back after{how}": turned,
    }
    _expect(_result(network, x), wrong, right, tolerance=1e-4)


# With all weights 0 but these, attention gives (3, 0, 0, 0) and the feed-forward network (0, 0, 5, 0),
# whatever comes in.
_ATTENDED, _FED = torch.tensor([3.0, 0, 0, 0]), torch.tensor([0.0, 0, 5, 0])
_X = torch.tensor([[[1.0, 2, 4, 8], [3, 0, 1, -1], [-2, 5, 0, 1]]])  # (B=1, n=3, d=4)


def _constant_block(block: nn.Module) -> nn.Module:
    """The same block with those weights, once its parts are there."""
    shapes = {name: tuple(value.shape) for name, value in block.named_parameters()}
    assert len({"norm_1.weight", "norm_2.weight"} & set(shapes)) != 1, (
        "one LayerNorm is used twice, or one is missing: `norm_1` and `norm_2` must be two, each with its own weights"
    )
    for part in ("attention", "norm_1", "norm_2", "feed_forward"):
        assert any(name.startswith(part + ".") for name in shapes), (
            f"the block has no part with weights called `{part}`"
        )
    assert "feed_forward.inner.bias" in shapes, "`feed_forward` is the FeedForward of exercise 6.2"
    (hidden,) = shapes["feed_forward.inner.bias"]
    assert hidden == 16, f"by default the network should have 4 * dim = 16 hidden features, it has {hidden}"
    weights = {name: torch.zeros(shape) for name, shape in shapes.items()}
    weights |= {"attention.WO.bias": _ATTENDED, "feed_forward.outer.bias": _FED}
    weights |= {"norm_1.weight": torch.ones(4), "norm_2.weight": torch.full((4,), 2.0)}
    block.load_state_dict({name: value.clone() for name, value in weights.items()})
    return block


def _block_result(block: nn.Module) -> Tensor:
    given = _X.clone()
    with unchanged(x=given):
        y = call(block, given)
    assert y is not None, "TransformerBlock returned None: is there a `return`?"
    assert isinstance(y, Tensor), (
        "forward got a tuple to return: it should give y alone, without the attention's weights"
    )
    expect_tensor(y, _X.shape)
    return y


def _norm_1(x: Tensor) -> Tensor:
    return F.layer_norm(x, (4,))


def _norm_2(x: Tensor) -> Tensor:
    return 2 * F.layer_norm(x, (4,))


@visible("post-norm with constant sublayers by hand: residuals, two norms, their order, no dropout unless asked for")
def TransformerBlock(cls: Callable) -> None:
    """Post-norm: norm_2(norm_1(x + attention) + feed-forward)."""
    block = _constant_block(call(cls, 4, 2))
    y = _block_result(block)
    assert all(torch.equal(call(block, _X.clone()), y) for _ in range(20)), (
        "one input, several results: dropout is 0 unless it is asked for"
    )
    x, a, f = _X, _ATTENDED, _FED
    n = _norm_1(x + a)  # what comes out of the first half
    only_a_norm = "the block returns only a LayerNorm of its input"
    wrong = {
        only_a_norm: _norm_1(x),
        f"{only_a_norm}, `norm_2`'s": _norm_2(x),
        f"{only_a_norm}, twice": _norm_2(_norm_1(x)),
        "the order of the norms is swapped (this is pre-norm), or both are missing": x + a + f,
        "both residuals are subtracted: it is x + sublayer(x)": _norm_2(_norm_1(x - a) - f),
        "the residual around the attention is subtracted, not added": _norm_2(_norm_1(x - a) + f),
        "the residual around the feed-forward network is subtracted, not added": _norm_2(n - f),
        "the residual connection around the network is missing, or both are": _norm_2(0 * x + f),
        "the residual connection around the attention is missing": _norm_2(_norm_1(0 * x + a) + f),
        "`norm_1` is used twice, and `norm_2` never": _norm_1(n + f),
        "`norm_2` is used twice, and `norm_1` never": _norm_2(_norm_2(x + a) + f),
        "`norm_1` and `norm_2` are exchanged": _norm_1(_norm_2(x + a) + f),
        "the feed-forward network comes first: attention does": _norm_2(_norm_1(x + f) + a),
        "the second residual adds the block's input: add the first half's result": _norm_2(x + f),
        "`norm_2` is missing": n + f,
        "`norm_1` is missing": _norm_2(x + a + f),
        "the feed-forward network is missing": _norm_2(n),
        "the attention is missing": _norm_2(_norm_1(x) + f),
        "a LayerNorm acts on each sublayer's output, not on the sum": x + _norm_1(a) + _norm_2(f),
    }
    _expect(y, wrong, _norm_2(n + f))


@visible("pre-norm with constant sublayers by hand: the residual path goes round the norms")
def TransformerBlock_pre(cls: Callable) -> None:
    """Pre-norm: with constant sublayers the norms inside the branches do not show, and the sum does."""
    block = _constant_block(call(cls, 4, 2, norm_first=True))
    y = _block_result(block)
    x, a, f = _X, _ATTENDED, _FED
    round_it = "norm(x) is added, not x itself: the residual path goes round the norm"
    wrong = {
        "`norm_first=True` has no effect: this is post-norm": _norm_2(_norm_1(x + a) + f),
        "both residuals are subtracted: it is x + sublayer(x)": x - a - f,
        f"around the attention {round_it}": _norm_1(x) + a + f,
        f"around the feed-forward network {round_it}": _norm_2(x + a) + f,
        f"both times {round_it}": _norm_2(_norm_1(x) + a) + f,
        "a norm follows the last addition too: the block ends with the sum": _norm_2(x + a + f),
        "the second residual adds the block's input (or the attention is missing)": x + f,
        "the residual connection around the feed-forward network is missing": 0 * x + f,
        "the residual connection around the attention is missing": 0 * x + a + f,
    }
    _expect(y, wrong, x + a + f)


def make_practice_layers():
    """Three broken layers that a reader's test meets first."""

    class Same(nn.LayerNorm):
        def forward(self, x):
            return x

    class Twice(nn.LayerNorm):
        def forward(self, x):
            return 2 * super().forward(x)

    class Unweighted(nn.LayerNorm):
        def forward(self, x):
            return F.layer_norm(x, x.shape[-1:], eps=self.eps)

    return [Same, Twice, Unweighted]


@visible("your test accepts torch's LayerNorm, and notices three that are broken")
def check_layer_norm(test: Callable[[Any], None]) -> None:
    """The reader's test on one right layer and three broken ones."""
    try:
        test(nn.LayerNorm)
    except AssertionError as error:
        raise AssertionError(f"your test rejects torch's own nn.LayerNorm: {error}") from None
    what = ["returns its input unchanged", "returns twice the right result", "uses neither its weight nor its bias"]
    for does, layer in zip(what, place(make_practice_layers, beside=test)(), strict=True):
        try:
            returned = test(layer)
        except AssertionError:
            continue  # the test has noticed
        except NotImplementedError:
            raise
        except Exception as error:
            crash = f"a layer that {does} makes your test stop with {type(error).__name__}"
            raise AssertionError(f"{crash}, where an `assert` should fail") from None
        said = "" if returned is None else f" It returned {returned!r}: a test speaks by `assert`."
        raise AssertionError(f"your test accepts a layer that {does}.{said}")
