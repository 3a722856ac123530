"""What chapter 06's check cells call: small cases by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    call,
    complain,
    expect,
    expect_close,
    expect_parameters,
    expect_tensor,
    explaining,
    named_parameters,
    place,
    unchanged,
)
from autograder.course.card import visible
from checks.transformer_block import mistakes as m

# The features of section 6.2, and what is left of them once they are normalized.
FEATURES = [2.0, 4, 4, 4, 5, 5, 7, 9]
NORMALISED = torch.tensor([-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2])


def _result(module: nn.Module, x: Tensor, *more: Tensor) -> Tensor:
    """What the module makes of a copy of `x`, which it leaves as it is."""
    given = x.clone()
    with unchanged(x=given):
        y = call(module, given, *more)
    expect_tensor(y)
    return y


def _expect(
    y: Tensor, wrong: Mapping[Mistake, Tensor], right: Tensor, tolerance: float = 1e-3, name: str = "the result"
) -> None:
    """Fail if the result is not right, with the name of the first mistake that gives it."""
    mistakes = {mistake: lambda value=value: value for mistake, value in wrong.items()}
    expect_close(y, right, name, mistakes, tolerance=tolerance)


@visible(
    "mean and variance of each position by hand, the place of weight and bias, equal features without NaN",
    graded="other cases, sizes of 1, large numbers, library functions, gradients, dtypes, devices and parameters",
)
def LayerNorm(cls: Callable) -> None:
    """The features of section 6.2 in several positions, with fresh weights and then with others."""
    norm = call(cls, 8)
    parameters = dict(norm.named_parameters())
    for name, start in {"weight": torch.ones(8), "bias": torch.zeros(8)}.items():
        expect(name in parameters, m.LayerNorm.NO_PARAMETER, f"what is missing is `{name}`")
        there = parameters[name].detach()
        expect(torch.equal(there, start), m.LayerNorm.START, f"`{name}` at the start", expected=start, got=there)
    x = torch.tensor(
        [[FEATURES, [3] * 8, [0, 8] * 4], [[1, 2, 3, 4, 5, 6, 7, 8], [9, 1] * 4, [0, 0, 0, 7, 1, 1, 1, 1]]]
    )
    with explaining("x (2, 3, 8)", {"must match the size of tensor": m.LayerNorm.KEEPDIM}):
        y = _result(norm, x)
    expect(not y.isnan().any(), m.LayerNorm.NO_EPS, "the result has NaN in it")
    right = F.layer_norm(x, (8,))
    over: dict[Mistake, tuple[int, ...]] = {
        m.LayerNorm.OVER_POSITIONS: (1,),
        m.LayerNorm.OVER_BOTH: (1, 2),
        m.LayerNorm.OVER_BATCH: (0,),
        m.LayerNorm.OVER_BATCH_AND_POSITIONS: (0, 1),
        m.LayerNorm.OVER_ALL: (0, 1, 2),
    }
    whole: dict[Mistake, Tensor] = {}
    for mistake, dims in over.items():
        variance = x.var(dims, keepdim=True, correction=0)
        whole[mistake] = (x - x.mean(dims, keepdim=True)) / (variance + 1e-5).sqrt()
    first = {mistake: value[0, 0] for mistake, value in whole.items()} | {
        m.LayerNorm.UNBIASED: NORMALISED * (7 / 8) ** 0.5,
        m.LayerNorm.SUMMED: NORMALISED / 8**0.5,
        m.LayerNorm.NO_ROOT: NORMALISED / 2,
        m.LayerNorm.NOT_DIVIDED: NORMALISED * 2,
        m.LayerNorm.DIVIDED_MEAN: x[0, 0] - 5 / 2,
        m.LayerNorm.NOT_CENTRED: x[0, 0] / 2,
        m.LayerNorm.NEVER_CENTRED: x[0, 0] / 29**0.5,
    }
    expect_tensor(y, x.shape)
    twice = torch.allclose(y, 2 * right, atol=1e-3)
    expect(not twice, m.LayerNorm.ONE_ADDED, "the result of a fresh layer", expected=right[0, 0], got=y[0, 0])
    _expect(y[0, 0], first, NORMALISED, name="the result for 2, 4, 4, 4, 5, 5, 7, 9")
    _expect(y, whole, right, tolerance=1e-5)
    weight, bias = torch.arange(1.0, 9), torch.arange(8.0) / 2
    norm.load_state_dict({"weight": weight, "bias": bias}, strict=False)
    scaled = {
        m.LayerNorm.NO_WEIGHT: NORMALISED + bias,
        m.LayerNorm.NO_BIAS: NORMALISED * weight,
        m.LayerNorm.BIAS_FIRST: (NORMALISED + bias) * weight,
    }
    name = "the result with weight 1 to 8 and bias 0 to 3.5"
    _expect(_result(norm, x)[0, 0], scaled, NORMALISED * weight + bias, 1e-2, name)
    level = torch.full((2, 3, 8), 3.0, requires_grad=True)
    y = call(norm, level)
    if y.requires_grad:  # if not, grading tells
        y.sum().backward()
        there = level.grad is not None and level.grad.isnan().any()
        expect(not there, m.LayerNorm.ROOT_OF_VARIANCE, "the gradient of eight features of 3")


# inner takes (a, b) to (a, b, a - b); outer takes (p, q, r) to (p + q + r, 2p + r - 10).
_INNER, _OUTER = torch.tensor([[1.0, 0], [0, 1], [1, -1]]), torch.tensor([[1.0, 1, 1], [2, 0, 1]])
_BIAS = torch.tensor([0.0, -10])


def _network(cls: Callable, width: tuple[int, ...], hints: Mapping[str, Mistake]) -> nn.Module:
    """A network with these weights, once its parameters are there; those of convolutions have a width."""
    network = call(cls, 2, 3)
    weights = {"inner.weight": _INNER.reshape(3, 2, *width), "inner.bias": torch.zeros(3)}
    weights |= {"outer.weight": _OUTER.reshape(2, 3, *width), "outer.bias": _BIAS}
    expect_parameters(network, {name: tuple(value.shape) for name, value in weights.items()}, hints)
    network.load_state_dict({name: value.clone() for name, value in weights.items()}, strict=False)
    return network


def _network_mistakes(x: Tensor, right: Tensor) -> dict[Mistake, Tensor]:
    linear = x @ _INNER.T @ _OUTER.T + _BIAS
    return {
        m.Network.NO_RELU: linear,
        m.Network.RELU_LAST: linear.relu(),
        m.Network.RELU_TWICE: right.relu(),
        m.Network.RELU_FIRST: x.relu() @ _INNER.T @ _OUTER.T + _BIAS,
        m.Network.RELU_BEFORE: (x.relu() @ _INNER.T).relu() @ _OUTER.T + _BIAS,
        m.Network.GELU: F.gelu(x @ _INNER.T) @ _OUTER.T + _BIAS,
        m.Network.SIGMOID: (x @ _INNER.T).sigmoid() @ _OUTER.T + _BIAS,
        m.Network.RESIDUAL: x + right,
    }


@visible(
    "names and shapes of the parameters, and two positions by hand",
    graded="other cases, large numbers, gradients, dtypes, devices and dropout",
)
def FeedForward(cls: Callable) -> None:
    """Two sequences of one position each: (1, 2) becomes (1, 2, 0) in the middle, then (3, -8)."""
    network = _network(cls, (), {})
    x = torch.tensor([[[1.0, 2]], [[1, -2]]])  # (B=2, n=1, d=2)
    right = torch.tensor([[[3.0, -8]], [[4, -5]]])
    wrong = _network_mistakes(x, right) | {m.Network.FIRST_SEQUENCE: right[:1].expand(2, 1, 2)}
    y = _result(network, x)
    expect_tensor(y, right.shape)
    # In evaluation nothing is dropped: a wrong result that comes right then had lost something in training.
    dropped = not torch.allclose(y, right, atol=1e-4) and torch.allclose(_result(network.eval(), x), right, atol=1e-4)
    expect(not dropped, m.Network.DROPOUT_BY_DEFAULT, "the result in training", expected=right, got=y)
    _expect(y, wrong, right, tolerance=1e-4)


@visible(
    "the third dimension of the weights, and that features, not positions, are the channels",
    graded="other cases, large numbers, gradients, dtypes and devices",
)
def ConvFeedForward(cls: Callable) -> None:
    """The weights of `FeedForward`'s check, as convolutions of width 1."""
    network = _network(cls, (1,), {"weight": m.Network.NO_CONVOLUTION})
    # (B=1, n=2, d=2): equal sizes, so that a mix-up of the two does not crash, but shows.
    x = torch.tensor([[[1.0, 2], [1, -2]]])
    right = torch.tensor([[[3.0, -8], [4, -5]]])
    turned = ((x.mT @ _INNER.T).relu() @ _OUTER.T + _BIAS).mT  # features and positions exchanged
    wrong = _network_mistakes(x, right) | {
        m.Network.NOT_TURNED_BACK: right.mT,
        m.Network.NOT_TURNED: turned.mT,
        m.Network.NEVER_TURNED: turned,
        m.Network.NO_BATCH: right[0],
    }
    _expect(_result(network, x), wrong, right, tolerance=1e-4)


# With all weights 0 but these, attention gives (3, 0, 0, 0) and the feed-forward network (0, 0, 5, 0),
# whatever comes in.
_ATTENDED, _FED = torch.tensor([3.0, 0, 0, 0]), torch.tensor([0.0, 0, 5, 0])
_X = torch.tensor([[[1.0, 2, 4, 8], [3, 0, 1, -1], [-2, 5, 0, 1]]])  # (B=1, n=3, d=4)


def _constant_block(block: nn.Module, **weights: Tensor) -> nn.Module:
    """The same block with those weights, and with `weights` of the attention, once its parts are there."""
    parameters = named_parameters(block)
    shapes = {name: tuple(value.shape) for name, value in parameters.items()}
    norms = {id(parameters[name]) for name in ("norm_1.weight", "norm_2.weight") if name in parameters}
    expect(len(norms) != 1, m.TransformerBlock.SHARED_NORM)
    for part in ("attention", "norm_1", "norm_2", "feed_forward"):
        there = any(name.startswith(part + ".") for name in shapes)
        expect(there, m.TransformerBlock.NO_PART, f"what is missing is `{part}`")
    expect("attention.WO.bias" in shapes, m.TransformerBlock.NOT_ATTENTION)
    expect("feed_forward.inner.bias" in shapes, m.TransformerBlock.NO_FEED_FORWARD)
    (hidden,) = shapes["feed_forward.inner.bias"]
    told = {"asked": "dim 4 and no `hidden`", "expected": 16, "got": hidden}
    expect(hidden == 16, m.TransformerBlock.HIDDEN_DEFAULT, "the number of hidden features", **told)
    for name in ("norm_1.weight", "norm_2.weight", "attention.WO.bias", "feed_forward.outer.bias"):
        shape = shapes.get(name, (4,))
        sizes = {"expected": "of shape (4,)", "got": f"shape {shape}"}
        expect(shape == (4,), m.TransformerBlock.SIZE, f"the parameter `{name}`", **sizes)
    block.load_state_dict({name: torch.zeros(shape) for name, shape in shapes.items()}, strict=False)
    state = {"attention.WO.bias": _ATTENDED, "feed_forward.outer.bias": _FED}
    state |= {"norm_1.weight": torch.ones(4), "norm_2.weight": torch.full((4,), 2.0)}
    state |= {f"attention.{name}.weight": value for name, value in weights.items()}
    block.load_state_dict(state, strict=False)  # it may hold them under further names
    return block


def _block_result(block: nn.Module, *mask: Tensor) -> Tensor:
    given = _X.clone()
    with unchanged(x=given):
        y = call(block, given, *mask)
    expect(y is not None, Common.NO_RETURN, "the result", expected="a torch.Tensor", got="None")
    expect(isinstance(y, Tensor), m.TransformerBlock.WEIGHTS_TOO, "the result", expected="a tensor", got="a tuple")
    expect_tensor(y, _X.shape)
    return y


def _norm_1(x: Tensor) -> Tensor:
    return F.layer_norm(x, (4,))


def _norm_2(x: Tensor) -> Tensor:
    return 2 * F.layer_norm(x, (4,))


def _expect_masked(block: nn.Module, right: Callable[[Tensor], Tensor], wrong: Mapping[Mistake, Tensor]) -> None:
    """A causal mask, where attention adds to (3, 0, 0, 0) the mean of what may be looked at.

    Args:
        block: with weights that do so.
        right: the block's result, called with what of each position may be looked at, and how much.
        wrong: what comes of mistakes beside those with the mask.
    """
    past = torch.ones(3, 3, dtype=torch.bool).tril()
    shares = {m.TransformerBlock.UNMASKED: torch.ones(3, 3), m.TransformerBlock.MASK_TURNED: (~past).float()}
    mistakes = {mistake: right(share / share.sum(-1, keepdim=True).clamp(min=1)) for mistake, share in shares.items()}
    y = _block_result(block, past.clone())
    _expect(y, mistakes | wrong, right(past / past.sum(-1, keepdim=True)), name="the result with a causal mask")


@visible(
    "post-norm by hand: residuals, two norms, their order, a causal mask, no dropout unless asked for",
    graded="other cases, gradients, dtypes, parameters and dropout",
)
def TransformerBlock(cls: Callable) -> None:
    """Post-norm: norm_2(norm_1(x + attention) + feed-forward)."""
    block = _constant_block(call(cls, 4, 2))
    y = _block_result(block)
    several = [_block_result(block) for _ in range(20)]
    several.append(_block_result(block.eval()))  # where everything is dropped, the results in training are the same
    same = all(torch.allclose(other, y, atol=1e-6, equal_nan=True) for other in several)
    expect(same, m.TransformerBlock.DROPOUT_BY_DEFAULT)
    x, a, f = _X, _ATTENDED, _FED
    n = _norm_1(x + a)  # what comes out of the first half
    wrong = {
        m.TransformerBlock.ONLY_A_NORM: _norm_1(x),
        m.TransformerBlock.ONLY_NORMS: _norm_2(_norm_1(x)),
        m.TransformerBlock.ORDER_SWAPPED: x + a + f,
        m.TransformerBlock.BOTH_SUBTRACTED: _norm_2(_norm_1(x - a) - f),
        m.TransformerBlock.ATTENTION_SUBTRACTED: _norm_2(_norm_1(x - a) + f),
        m.TransformerBlock.NETWORK_SUBTRACTED: _norm_2(n - f),
        m.TransformerBlock.NO_NETWORK_RESIDUAL: _norm_2(0 * x + f),
        m.TransformerBlock.NO_ATTENTION_RESIDUAL: _norm_2(_norm_1(0 * x + a) + f),
        m.TransformerBlock.NORM_1_TWICE: _norm_1(n + f),
        m.TransformerBlock.NORM_2_TWICE: _norm_2(_norm_2(x + a) + f),
        m.TransformerBlock.NORMS_EXCHANGED: _norm_1(_norm_2(x + a) + f),
        m.TransformerBlock.NETWORK_FIRST: _norm_2(_norm_1(x + f) + a),
        m.TransformerBlock.SECOND_ADDS_INPUT: _norm_2(x + f),
        m.TransformerBlock.NO_NORM_2: n + f,
        m.TransformerBlock.NO_NORM_1: _norm_2(x + a + f),
        m.TransformerBlock.NO_NETWORK: _norm_2(n),
        m.TransformerBlock.NO_ATTENTION: _norm_2(_norm_1(x) + f),
        m.TransformerBlock.NORM_ON_OUTPUT: x + _norm_1(a) + _norm_2(f),
    }
    _expect(y, wrong, _norm_2(n + f))
    block = _constant_block(call(cls, 4, 2), Wv=torch.eye(4), WO=torch.eye(4))
    _expect_masked(block, lambda share: _norm_2(_norm_1(x + share @ x + a) + f), {})


@visible(
    "pre-norm by hand: the residual path goes round the norms, a causal mask",
    graded="other cases, gradients, dtypes, parameters and dropout",
)
def TransformerBlock_pre(cls: Callable) -> None:
    """Pre-norm: with constant sublayers the norms inside the branches do not show, and the sum does."""
    block = _constant_block(call(cls, 4, 2, norm_first=True))
    y = _block_result(block)
    x, a, f = _X, _ATTENDED, _FED
    wrong = {
        m.TransformerBlock.NO_EFFECT: _norm_2(_norm_1(x + a) + f),
        m.TransformerBlock.BOTH_SUBTRACTED: x - a - f,
        m.TransformerBlock.NORMED_AROUND_ATTENTION: _norm_1(x) + a + f,
        m.TransformerBlock.NORMED_AROUND_NETWORK: _norm_2(x + a) + f,
        m.TransformerBlock.NORMED_AROUND_BOTH: _norm_2(_norm_1(x) + a) + f,
        m.TransformerBlock.LAST_NORM: _norm_2(x + a + f),
        m.TransformerBlock.SECOND_ADDS_INPUT: x + f,
        m.TransformerBlock.NO_NETWORK_RESIDUAL: 0 * x + f,
        m.TransformerBlock.NO_ATTENTION_RESIDUAL: 0 * x + a + f,
    }
    _expect(y, wrong, x + a + f)
    block = _constant_block(call(cls, 4, 2, norm_first=True), Wv=torch.eye(4), WO=torch.eye(4))
    past = torch.ones(3, 3).tril()
    share = past / past.sum(-1, keepdim=True)
    given = {
        m.TransformerBlock.VALUES_NOT_NORMALIZED: x,
        m.TransformerBlock.ATTENTION_ON_NORM_2: _norm_2(x),
        m.TransformerBlock.NETWORK_FIRST: _norm_2(x + f),
    }
    wrong = {mistake: x + share @ value + a + f for mistake, value in given.items()}
    _expect_masked(block, lambda share: x + share @ _norm_1(x) + a + f, wrong)


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


@visible("your test accepts torch's LayerNorm, and notices three that are broken", graded="other cases")
def check_layer_norm(test: Callable[[Any], None]) -> None:
    """The reader's test on one right layer and three broken ones."""
    try:
        test(nn.LayerNorm)
    except AssertionError as error:
        complain(m.check_layer_norm.REJECTS_RIGHT, "torch's own nn.LayerNorm", got=f"{error}")
    accepts = [
        m.check_layer_norm.ACCEPTS_UNCHANGED,
        m.check_layer_norm.ACCEPTS_TWICE,
        m.check_layer_norm.ACCEPTS_UNWEIGHTED,
    ]
    for mistake, layer in zip(accepts, place(make_practice_layers, beside=test)(), strict=True):
        try:
            returned = test(layer)
        except AssertionError:
            continue  # the test has noticed
        except NotImplementedError:
            raise
        except Exception as error:
            complain(m.check_layer_norm.CRASHES, "the first to do it", got=f"{type(error).__name__}: {error}")
        expect(returned is None or returned is True, m.check_layer_norm.RETURNS, "what it returned", got=repr(returned))
        complain(mistake)
