"""Hidden tests of chapter 11."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    build,
    call,
    expect_close,
    expect_device,
    expect_gradients,
    expect_not_calling,
    expect_number,
    expect_parameter_gradients,
    expect_raises,
    expect_tensor,
    place,
    randint,
    randn,
    unchanged,
)
from checks.formulas import linear
from checks.language_model.visible import expect_cache, expect_pair

State = Mapping[str, Tensor]


def _expect_values(
    module: nn.Module,
    oracle: Callable[[Tensor], Tensor],
    x: Tensor,
    mistakes: Mapping[str, Callable[[Tensor], Tensor]],
    name: str,
) -> None:
    """The module equals the oracle on `x`, in the dtype of `x`, and leaves `x` alone."""
    with unchanged(x=x):
        value = call(module, x)
    right = x.double()
    expect_close(value, oracle(right), name, {c: lambda f=f: f(right) for c, f in mistakes.items()}, x.dtype)


# ---- RMSNorm

_LIBRARY = {"rms_norm", "_fused_rms_norm", "layer_norm", "native_layer_norm", "normalize", "group_norm", "batch_norm"}
_NORM_SHAPES = [(4, 4, 4), (2, 3, 5), (3, 2, 6), (1, 4, 3), (3, 1, 7), (2, 5, 1), (6, 4), (2, 3, 4, 5)]


def _torch_rms(state: State, x: Tensor, eps: float = 1e-6) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], state["weight"], eps)


def _rms(
    state: State,
    x: Tensor,
    eps: float,
    dims: tuple[int, ...] = (-1,),
    centre: bool = False,
    power: float = 0.5,
    inside: bool = True,
    weight: float = 1.0,
    add: float = 0.0,
    total: bool = False,
    cut: bool = False,
) -> Tensor:
    """The norm written from the formula, with a switch for each mistake."""
    x = x - x.mean(dims, keepdim=True) if centre else x
    square = x.pow(2).sum(dims, keepdim=True) if total else x.pow(2).mean(dims, keepdim=True)
    square = square.detach() if cut else square
    scale = (square + eps) ** power if inside else square**power + eps
    return x / scale * (state["weight"] * weight + add)


def _rms_mistakes(state: State, eps: float) -> dict[str, Callable[[Tensor], Tensor]]:
    def wrong(eps: float = eps, **switches: Any) -> Callable[[Tensor], Tensor]:
        return lambda x: _rms(state, x, eps, **switches)

    return {
        "the mean is subtracted, as in a LayerNorm: RMSNorm leaves it in": wrong(centre=True),
        "the standard deviation divides: it is the root of the mean square, with the mean left in": lambda x: (
            x / (x.var(-1, keepdim=True, correction=0) + eps).sqrt() * state["weight"]
        ),
        "the sum of the squares is taken, not their mean": wrong(total=True),
        "eps is outside the root: it belongs inside, `sqrt(mean square + eps)`": wrong(inside=False),
        "the argument `eps` is ignored": wrong(1e-6),
        "`eps` is 1e-5 when none is given: the default is 1e-6": wrong(1e-5),
        "`eps` is 1e-8 when none is given: the default is 1e-6": wrong(1e-8),
        "eps is left out": wrong(0.0),
        "the root is missing: divide by the root of the mean square": wrong(power=1.0),
        "nothing is divided": wrong(power=0.0),
        "`weight` is not used": wrong(weight=0.0, add=1.0),
        "1 + `weight` scales: `weight` starts as ones and scales alone": wrong(add=1.0),
        "normalised over dimension 2: right only for three dimensions, use `dim=-1`": wrong(dims=(2,)),
        "normalised over the positions instead of the features": wrong(dims=(-2,)),
        "normalised over positions and features together: each position has a mean square of its own": wrong(
            dims=(-2, -1)
        ),
        "normalised over the batch: items of a batch must not touch each other": wrong(dims=(0,)),
        "normalised over the whole tensor: each position has a mean square of its own": lambda x: _rms(
            state, x, eps, tuple(range(x.dim()))
        ),
        "`weight` scales before the norm, which undoes a part of it: scale afterwards": lambda x: _rms(
            {"weight": torch.ones_like(state["weight"])}, x * state["weight"], eps
        ),
        "the mean of the absolute values divides: square, mean, root": lambda x: (
            x / (x.abs().mean(-1, keepdim=True) + eps) * state["weight"]
        ),
    }


def check_rms_norm(cls: Callable) -> None:
    """The parameter, values, small and large features, gradients, device; no library norm does the work."""
    parameters = dict(call(cls, 3).named_parameters())
    assert "weight" in parameters, "`weight` is not a parameter, so nothing can learn it: wrap it in nn.Parameter"
    assert "bias" not in parameters, "there is a `bias`: RMSNorm only scales"
    start = parameters["weight"].detach()
    assert torch.equal(start, torch.ones(3)), (
        f"`weight` should start as [1.0, 1.0, 1.0], one number for each feature; it starts as {start.tolist()}"
    )
    for shape in _NORM_SHAPES:
        for eps in (None, 0.7):  # the default, and one so large that its place matters
            _check_rms_values(cls, shape, eps)
    module, state = build(lambda: cls(5), {"weight": (5,)})
    x = randn(2, 3, 5)
    expect_not_calling(module, [x], _LIBRARY, "write this exercise with squares, a mean and a root")
    cut = "the mean square is cut off from the graph: it depends on x (no `detach`, no `torch.no_grad()`)"
    expect_gradients(module, partial(_torch_rms, state), {"x": x}, {cut: lambda x: _rms(state, x, 1e-6, cut=True)})
    expect_parameter_gradients(module, _torch_rms, state, [x])
    expect_close(call(module, torch.zeros(2, 5, dtype=torch.float64)), torch.zeros(2, 5), "the result for zeros")
    expect_close(
        call(module.eval(), x), _torch_rms(state, x), "the result after `.eval()`, where nothing should change,"
    )
    expect_device(module.to(torch.float32).to("meta"), {"x": x.float()})


def _check_rms_values(cls: Callable, shape: tuple[int, ...], eps: float | None) -> None:
    options, value, dim = {} if eps is None else {"eps": eps}, 1e-6 if eps is None else eps, shape[-1]
    for dtype in (torch.float32, torch.float64):
        module, state = build(lambda: cls(dim, **options), {"weight": (dim,)}, dtype=dtype)
        # Squares near 1e-6 where the default counts, so that another default shows.
        x = ((randn(*shape) + torch.arange(dim)) * (1e-3 if eps is None else 1)).to(dtype)
        name = f"the result for x of shape {shape} and eps={value:g}" + " (features near 0.001)" * (eps is None)
        _expect_values(module, partial(_torch_rms, state, eps=value), x, _rms_mistakes(state, value), name)


# ---- SwiGLU


def _gated(
    state: State,
    x: Tensor,
    prefix: str = "",
    act: Callable[[Tensor], Tensor] = F.silu,
    other: Callable[[Tensor], Tensor] = lambda z: z,
    after: Callable[[Tensor], Tensor] = lambda z: z,
    join: Callable[[Tensor, Tensor], Tensor] = torch.mul,
    names: tuple[str, str] = ("gate", "up"),
) -> Tensor:
    gate, up = (linear(state, f"{prefix}{name}", x) for name in names)
    return linear(state, f"{prefix}down", after(join(act(gate), other(up))))


def _same(z: Tensor) -> Tensor:
    return z


def _gated_mistakes(state: State) -> dict[str, Callable[[Tensor], Tensor]]:
    def wrong(**switches: Any) -> Callable[[Tensor], Tensor]:
        return lambda x: _gated(state, x, **switches)

    return {
        "silu is applied to `up(x)`: it belongs to `gate(x)`": wrong(act=_same, other=F.silu),
        "silu is applied to both: only to `gate(x)`": wrong(other=F.silu),
        "silu is missing": wrong(act=_same),
        "silu is applied after the product: it belongs to `gate(x)` alone": wrong(act=_same, after=F.silu),
        "silu is applied twice, to the gate and to the product": wrong(after=F.silu),
        "a sigmoid takes the place of silu (that is GLU): silu(z) is z times sigmoid(z)": wrong(act=torch.sigmoid),
        "GELU takes the place of silu (that is GeGLU)": wrong(act=F.gelu),
        "ReLU takes the place of silu (that is ReGLU)": wrong(act=F.relu),
        "tanh takes the place of silu": wrong(act=torch.tanh),
        "softplus takes the place of silu": wrong(act=F.softplus),
        "the two are added: multiply them": wrong(join=torch.add),
        "`up` is not used": wrong(join=lambda gate, up: gate),
        "`gate` is not used": wrong(join=lambda gate, up: up),
        "`gate` is used twice, and `up` never": wrong(names=("gate", "gate")),
        "`up` is used twice, and `gate` never": wrong(names=("up", "up")),
        "the input is added to the result: the residual connection belongs to the layer": lambda x: (
            x + _gated(state, x)
        ),
        "silu follows `down`": lambda x: F.silu(_gated(state, x)),
        "the hidden features go through a softmax": wrong(act=lambda z: z.softmax(-1)),
    }


_SEQUENCES = [(4, 4, 4, 4), (2, 3, 5, 7), (3, 5, 4, 2), (1, 6, 3, 8), (4, 1, 5, 3), (2, 4, 1, 6), (2, 3, 6, 1)]


def check_swiglu(cls: Callable) -> None:
    """Values, gradients, device, and that positions do not touch each other."""
    hints = {
        "bias": "the three layers have `bias=False`",
        "gate": "`gate` is nn.Linear(dim, hidden, bias=False)",
        "up": "`up` is nn.Linear(dim, hidden, bias=False)",
        "down": "`down` is nn.Linear(hidden, dim, bias=False)",
    }

    def network(dim: int, hidden: int, dtype: torch.dtype) -> tuple[nn.Module, State]:
        shapes = {"gate.weight": (hidden, dim), "up.weight": (hidden, dim), "down.weight": (dim, hidden)}
        return build(lambda: cls(dim, hidden), shapes, hints, dtype)

    _expect_no_bias(call(cls, 3, 5), ("gate", "up", "down"))
    network(3, 5, torch.float32)  # unequal sizes first: they show which of the two is where
    for batch, n, dim, hidden in _SEQUENCES:
        for dtype in (torch.float32, torch.float64):
            module, state = network(dim, hidden, dtype)
            x = randn(batch, n, dim, dtype=dtype)
            name = f"the result for (B, n, d) = {(batch, n, dim)} and {hidden} hidden features"
            _expect_values(module, partial(_gated, state), x, _gated_mistakes(state), name)
    module, state = network(4, 6, torch.float64)
    x = randn(2, 3, 4)
    expect_gradients(module, partial(_gated, state), {"x": x}, _gated_mistakes(state))
    expect_parameter_gradients(module, _gated, state, [x])
    x = randn(2, 3, 4)  # of sizes that were there before
    expect_close(call(module.eval(), x), _gated(state, x), "the result after `.eval()`, where nothing should change,")
    expect_device(module.to("meta"), {"x": x})


def _expect_no_bias(module: nn.Module, names: Sequence[str]) -> None:
    parameters = dict(module.named_parameters())
    for name in names:
        assert f"{name}.bias" not in parameters, f"`{name}` has a bias: make it with `bias=False`"


# ---- attention

# `rotate` may compute its angles in float32 whatever x is, so that float64 results are held to less.
_NEAR = 2e-5


def _turn(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary positions by complex numbers: features 2k and 2k + 1 are one number, turned by an angle."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    count = pairs.shape[-1]
    speed = 10000.0 ** (-torch.arange(count, dtype=torch.float64) / count)
    turned = pairs * torch.polar(torch.ones(()).double(), positions.double().unsqueeze(-1) * speed)
    return torch.view_as_real(turned).flatten(-2)


def _turn_halves(x: Tensor, positions: Tensor) -> Tensor:
    """The other convention: feature k goes with feature k + d/2."""
    mixed = torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)
    turned = _turn(mixed, positions)
    return torch.cat((turned[..., 0::2], turned[..., 1::2]), dim=-1)


def _unturned(x: Tensor, positions: Tensor) -> Tensor:
    return x


_Turn = Callable[[Tensor, Tensor], Tensor]
_Cache = tuple[Tensor, Tensor]


def _heads(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _attend(
    state: State,
    x: Tensor,
    heads: int,
    prefix: str = "",
    past: int = 0,
    mask: Callable[[Tensor, Tensor], Tensor] = torch.ge,
    turn: tuple[_Turn, _Turn, _Turn] = (_turn, _turn, _unturned),
    scale: float | None = None,
    restart: bool = False,
    whole: bool = False,
    forget: bool = False,
    out: bool = True,
) -> Tensor:
    """What attention gives the positions from `past` on, with a switch for each mistake."""
    n = x.shape[1]
    places = torch.arange(n)
    counted = torch.cat((places[:past], places[: n - past])) if restart else places
    parts = [linear(state, f"{prefix}{name}", x) for name in ("Wq", "Wk", "Wv")]
    if whole:  # rotated before the heads are split
        q, k, v = (_heads(f(part, counted), heads) for f, part in zip(turn, parts, strict=True))
    else:
        q, k, v = (f(_heads(part, heads), counted) for f, part in zip(turn, parts, strict=True))
    scores = q @ k.mT / (q.shape[-1] ** 0.5 if scale is None else scale)
    allowed = mask(places.unsqueeze(1), places)
    allowed = allowed & (places >= past) if forget else allowed
    weights = scores.masked_fill(~allowed, -math.inf).softmax(-1).nan_to_num(0.0)
    merged = (weights @ v).transpose(1, 2).flatten(2)[:, past:]
    return linear(state, f"{prefix}WO", merged) if out else merged


def _kept(state: State, x: Tensor, heads: int, prefix: str = "") -> _Cache:
    """The keys, rotated, and the values of all positions."""
    keys, values = (_heads(linear(state, f"{prefix}{name}", x), heads) for name in ("Wk", "Wv"))
    return _turn(keys, torch.arange(x.shape[1])), values


def _everything(i: Tensor, j: Tensor) -> Tensor:
    return (i >= j) | True


def _instead(state: State, **other: str) -> State:
    """The weights when one map takes the place of another."""
    return {**state, **{f"{a}.weight": state[f"{b}.weight"] for a, b in other.items()}}


def _attention_mistakes(state: State, x: Tensor, heads: int, past: int) -> dict[str, Callable[[], Tensor]]:
    def wrong(state: State = state, heads: int = heads, **switches: Any) -> Callable[[], Tensor]:
        return lambda: _attend(state, x, heads, past=past, **switches)

    dim = x.shape[-1]
    cached = {
        "the positions start from 0 again: with a cache of t positions they go on with t": wrong(restart=True),
        "the cache is not used: the new positions see only themselves": wrong(forget=True),
        "the cache is not used, and positions start from 0 again": wrong(forget=True, restart=True),
        "the new positions see each other without a mask: each sees itself and those before it": wrong(
            mask=lambda i, j: (i >= j) | ((i >= past) & (j >= past))
        ),
        "the new positions' mask is laid over the oldest keys: new position i sees the keys up to t + i": wrong(
            mask=lambda i, j: i - past >= j
        ),
    }
    return (cached if past else {}) | {
        "the causal mask is missing: a position sees those after it": wrong(mask=_everything),
        "a position does not see itself: it sees itself and those before it": wrong(mask=torch.gt),
        "the mask is turned round: positions see those after them": wrong(mask=torch.le),
        "each position sees the next one too: it sees itself and those before it": wrong(mask=lambda i, j: i + 1 >= j),
        "nothing is rotated: queries and keys go through `rotate`": wrong(turn=(_unturned, _unturned, _unturned)),
        "only the queries are rotated": wrong(turn=(_turn, _unturned, _unturned)),
        "only the keys are rotated": wrong(turn=(_unturned, _turn, _unturned)),
        "the values are rotated too: they carry content, not position": wrong(turn=(_turn, _turn, _turn)),
        "queries and keys are rotated before they are split into heads: every head turns its own features": wrong(
            whole=True
        ),
        "features k and k + d/2 are turned together: here it is 2k and 2k + 1": wrong(
            turn=(_turn_halves, _turn_halves, _unturned)
        ),
        "queries and keys are turned in opposite directions: both by their positions": wrong(
            turn=(lambda q, p: _turn(q, -p), _turn, _unturned)
        ),
        "the scores are not divided by √(d/h)": wrong(scale=1.0),
        "the scores are divided by √d: in a head it is √(d/h)": wrong(scale=dim**0.5),
        "one head does the work of all: split into heads": wrong(heads=1),
        "WO is missing": wrong(out=False),
        "the queries are made with Wk: use Wq": wrong(_instead(state, Wq="Wk")),
        "the keys are made with Wq: use Wk": wrong(_instead(state, Wk="Wq")),
        "keys and values are exchanged": wrong(_instead(state, Wk="Wv", Wv="Wk")),
        "the input is added to the result: the residual connection belongs to the layer": lambda: (
            x[:, past:] + _attend(state, x, heads, past=past)
        ),
    }


_MAPS = ("Wq", "Wk", "Wv", "WO")
# (B, d, heads, lengths of the calls): equal sizes first.
_CALLS = [
    (4, 4, 2, (4,)),
    (2, 6, 3, (5,)),
    (3, 8, 2, (2, 3)),
    (1, 4, 1, (1, 1, 1, 1)),
    (2, 6, 1, (3, 1, 2)),
    (2, 8, 4, (1, 4)),
    (3, 2, 1, (1,)),
]


def _attention(cls: Callable, dim: int, heads: int, dtype: torch.dtype) -> tuple[nn.Module, State]:
    shapes = {f"{name}.weight": (dim, dim) for name in _MAPS}
    hints = {name: f"`{name}` is nn.Linear(dim, dim, bias=False)" for name in _MAPS}
    return build(lambda: cls(dim, heads), shapes, hints, dtype)


def check_causal_self_attention(cls: Callable) -> None:
    """Outputs and caches in one call and in several, gradients through the cache, device."""
    _expect_no_bias(call(cls, 4, 2), _MAPS)
    for dtype in (torch.float64, torch.float32):
        for batch, dim, heads, lengths in _CALLS:
            _check_calls(cls, batch, dim, heads, lengths, dtype)
    module, state = _attention(cls, 6, 3, torch.float64)
    x = randn(2, 4, 6)

    def output(x: Tensor) -> Tensor:
        return expect_pair(call(module, x), "CausalSelfAttention", "(y, cache)")[0]

    expect_gradients(output, lambda x: _attend(state, x, 3), {"x": x}, tolerance=_NEAR)
    expect_parameter_gradients(module, lambda s, x: _attend(s, x, 3), state, [x], _NEAR)
    _expect_gradients_through_the_cache(module, state)
    x = randn(2, 4, 6)
    module.eval()
    expect_close(output(x), _attend(state, x, 3), "the output after `.eval()`", tolerance=_NEAR)
    _expect_elsewhere(module, x)


def _expect_elsewhere(module: nn.Module, x: Tensor) -> None:
    """Positions and masks may be made on the CPU, as `causal_mask` does, but have to be moved to where x is."""
    try:
        y, _ = module.to("meta")(x.to("meta"))  # computes shapes only, and stands in for a GPU
    except Exception as error:
        raise AssertionError(
            "with inputs on a GPU, positions or mask stay on the CPU and the two meet: pass `device=x.device` where "
            f"they are made, or move them with `.to(x.device)` ({error})"
        ) from error
    assert y.device.type == "meta", "with inputs on a GPU the output is on the CPU"


def _check_calls(cls: Callable, batch: int, dim: int, heads: int, lengths: tuple[int, ...], dtype: torch.dtype) -> None:
    module, state = _attention(cls, dim, heads, dtype)
    x = randn(batch, sum(lengths), dim, dtype=dtype)
    cache: Any = None
    ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    for past, end in pairwise(ends):
        x_new, so_far = x[:, past:end].clone(), x[:, :end].double()
        old = {} if cache is None else dict(zip(("keys in the cache", "values in the cache"), cache, strict=True))
        with unchanged(x=x_new, **old):
            result = call(module, x_new) if cache is None else call(module, x_new, cache)
        y, following = expect_pair(result, "CausalSelfAttention", "(y, cache)")
        where = f" of {end - past} new positions after {past} in the cache" if past else f" of {end} positions"
        where += f", d={dim}, {heads} heads"
        expect_close(
            y,
            _attend(state, so_far, heads, past=past),
            "the output" + where,
            _attention_mistakes(state, so_far, heads, past),
            dtype,
            _NEAR,
        )
        following = expect_cache(following)
        keys, values = _kept(state, so_far, heads)
        for number, (got, right, name) in enumerate(zip(following, (keys, values), ("keys", "values"), strict=True)):
            mistakes = _cache_mistakes(state, so_far, heads, past, number)
            expect_close(got, right, f"the cached {name}{where}", mistakes, dtype, _NEAR)
        cache = following


def _cache_mistakes(state: State, x: Tensor, heads: int, past: int, number: int) -> dict[str, Callable[[], Tensor]]:
    """What mistakes leave in the cache; `number` is 0 for the keys and 1 for the values."""
    pair, plain = _kept(state, x, heads), _heads(linear(state, "Wk", x), heads)
    right, other, places = pair[number], pair[1 - number], torch.arange(x.shape[1])
    return {
        "the keys are kept before their rotation: keep them rotated": lambda: plain,
        "the values are rotated too: they carry content, not position": lambda: _turn(right, places),
        "keys and values are exchanged": lambda: other,
        "the older positions are lost: join the new ones to the cache": lambda: right[:, :, past:],
        "the newest come first: join them behind the older ones": lambda: torch.cat(
            (right[:, :, past:], right[:, :, :past]), 2
        ),
        "the heads are merged again: keep (B, h, t, d/h)": lambda: right.transpose(1, 2).flatten(2),
        "the heads are not split: keep (B, h, t, d/h)": lambda: linear(state, ("Wk", "Wv")[number], x),
        "positions are counted from 1: the first one is 0": lambda: _turn(plain, places + 1),
        "the positions start from 0 again: with a cache of t positions they go on with t": lambda: _turn(
            plain, torch.cat((places[:past], places[: x.shape[1] - past]))
        ),
    }


def _expect_gradients_through_the_cache(module: nn.Module, state: State) -> None:
    mine = randn(2, 3, 6).requires_grad_()
    theirs = mine.detach().clone().requires_grad_()
    _, cache = expect_pair(call(module, mine[:, :2]), "CausalSelfAttention", "(y, cache)")
    y, _ = expect_pair(call(module, mine[:, 2:], expect_cache(cache)), "CausalSelfAttention", "(y, cache)")
    direction = randn(2, 1, 6)
    assert y.requires_grad, "the output is cut off from the graph: remove `.detach()`, `.data` or `torch.no_grad()`"
    (got,) = torch.autograd.grad(y, [mine], direction)
    (right,) = torch.autograd.grad(_attend(state, theirs, 3, past=2), [theirs], direction)
    expect_close(got, right, "the gradient that reaches earlier positions through the cache", tolerance=_NEAR)


# ---- the model


def _norm(state: State, name: str, x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], state[f"{name}.weight"], 1e-6)


def _layer(state: State, k: int, x: Tensor, heads: int) -> Tensor:
    x = x + _attend(state, _norm(state, f"layers.{k}.norm_1", x), heads, f"layers.{k}.attention.")
    return x + _gated(state, _norm(state, f"layers.{k}.norm_2", x), f"layers.{k}.feed_forward.")


def _logits(
    state: State,
    tokens: Tensor,
    heads: int,
    layers: Sequence[int],
    scale: float = 1.0,
    norm: bool = True,
    out: float = 1.0,
) -> Tensor:
    """The scores of a whole text, with a switch for each mistake."""
    x = scale * F.embedding(tokens, state["embedding.weight"])
    for k in layers:
        x = _layer(state, k, x, heads)
    x = _norm(state, "norm", x) if norm else x
    return out * x @ state["embedding.weight"].T


def _model_mistakes(
    state: State, tokens: Tensor, heads: int, depth: int, dim: int, past: int
) -> dict[str, Callable[[], Tensor]]:
    def wrong(layers: Sequence[int] = range(depth), heads: int = heads, **switches: Any) -> Callable[[], Tensor]:
        return lambda: _logits(state, tokens, heads, layers, **switches)[:, past:]

    def final_norm_first() -> Tensor:
        x = _norm(state, "norm", F.embedding(tokens, state["embedding.weight"]))
        for k in range(depth):
            x = _layer(state, k, x, heads)
        return (x @ state["embedding.weight"].T)[:, past:]

    alone = _logits(state, tokens[:, past:], heads, range(depth))
    return {
        "the final `norm` is missing": wrong(norm=False),
        "the final `norm` comes before the layers: it follows the last one": final_norm_first,
        "the embeddings are multiplied by √dim: here they go in as they are": wrong(scale=dim**0.5),
        "the logits are divided by √dim": wrong(out=dim**-0.5),
        "the layers run in reverse order": wrong(range(depth)[::-1]),
        "the first layer is used again and again: each runs once": wrong([0] * depth),
        "the last layer is missing": wrong(range(depth - 1)),
        "the first layer is missing": wrong(range(1, depth)),
        "the layers are not used": wrong([]),
        "`heads` is not passed on: there is one head": wrong(heads=1),
        "a softmax over the logits: return scores": lambda: wrong()().softmax(-1),
        "log-probabilities: return scores": lambda: wrong()().log_softmax(-1),
        "the caches are not used: hand each layer its own": lambda: alone,
        "scores for the last position only: return them for each": lambda: wrong()()[:, -1:],
        "scores for the last position only, without its dimension": lambda: wrong()()[:, -1],
    }


# (V, d, heads, depth, hidden, B, lengths of the calls)
_MODELS = [
    (6, 4, 2, 2, 4, 4, (4,)),
    (7, 6, 3, 3, 5, 2, (5,)),
    (5, 8, 2, 2, 3, 3, (2, 3)),
    (9, 4, 1, 1, 7, 1, (1, 1, 1)),
    (4, 8, 4, 3, 6, 2, (1, 3, 2)),
]


def _model(
    cls: Callable, vocab: int, dim: int, heads: int, depth: int, hidden: int, dtype: torch.dtype
) -> tuple[nn.Module, State]:
    shapes = {"embedding.weight": (vocab, dim), "norm.weight": (dim,)}
    for k in range(depth):
        shapes |= {f"layers.{k}.attention.{name}.weight": (dim, dim) for name in _MAPS}
        shapes |= {f"layers.{k}.{name}.weight": (dim,) for name in ("norm_1", "norm_2")}
        shapes |= {f"layers.{k}.feed_forward.{name}.weight": (hidden, dim) for name in ("gate", "up")}
        shapes[f"layers.{k}.feed_forward.down.weight"] = (dim, hidden)
    hints = {
        "layers.1": "`layers` holds `depth` Layers, each with weights of its own",
        "layers": "`layers` is an nn.ModuleList of Layers",
        "embedding": "`embedding` is nn.Embedding(vocab_size, dim)",
        "norm": "`norm` is an RMSNorm over `dim` features",
    }

    def make() -> nn.Module:
        module = cls(vocab, dim, heads, depth, hidden)
        names = {name for name, _ in module.named_parameters()}
        more = sorted(name for name in names - set(shapes) if not name.startswith("layers."))
        assert not more or "norm.weight" not in names, (
            f"the parameter `{more[0]}` should not be there: the output is tied to the embedding, so that it needs no "
            "weights and no bias of its own"
        )
        return module

    return build(make, shapes, hints, dtype)


def check_language_model(cls: Callable) -> None:
    """The start, logits and caches in one call and in several, gradients, device."""
    torch_std = call(cls, 500, 40, 2, 1, 8).state_dict()["embedding.weight"].double().std().item()
    assert 0.015 < torch_std < 0.025, (
        f"the embedding should start with the standard deviation 0.02, it has {torch_std:.3g}: "
        "`nn.init.normal_(…, std=0.02)`"
    )
    for vocab, dim, heads, depth, hidden, batch, lengths in _MODELS:
        for dtype in (torch.float64, torch.float32) if dim > 4 else (torch.float64,):
            module, state = _model(cls, vocab, dim, heads, depth, hidden, dtype)
            _check_model_calls(module, state, (vocab, dim, heads, depth), batch, lengths, dtype)
    module, state = _model(cls, 7, 6, 3, 2, 5, torch.float64)
    tokens = randint(0, 7, (2, 4))
    expect_parameter_gradients(module, lambda s, t: _logits(s, t, 3, range(2)), state, [tokens], 10 * _NEAR)
    logits, _ = expect_pair(call(module.eval(), tokens), "LanguageModel", "(logits, caches)")
    expect_close(
        logits,
        _logits(state, tokens, 3, range(2)),
        "the logits after `.eval()`, where nothing should change,",
        tolerance=10 * _NEAR,
    )
    expect_device(module.to("meta"), {"tokens": tokens})


def _caches_after(module, tokens, caches):
    """How many caches the list holds after the call: seen where the module runs, which in the grader gets a copy."""
    module(tokens, caches)
    return len(caches)


def _check_model_calls(
    module: nn.Module,
    state: State,
    sizes: tuple[int, int, int, int],
    batch: int,
    lengths: tuple[int, ...],
    dtype: torch.dtype,
) -> None:
    vocab, dim, heads, depth = sizes
    tokens = randint(0, vocab, (batch, sum(lengths)))
    caches: Any = None
    for past, end in pairwise([0, *torch.tensor(lengths).cumsum(0).tolist()]):
        new, so_far = tokens[:, past:end].clone(), tokens[:, :end]
        kept = {} if caches is None else {f"caches[{k}]": cache[0] for k, cache in enumerate(caches)}
        count = None if caches is None else len(caches)
        with unchanged(tokens=new, **kept):
            result = call(module, new) if caches is None else call(module, new, caches)
        logits, following = expect_pair(result, "LanguageModel", "(logits, caches)")
        if count is not None:
            # In a notebook the list is at hand; in the grader the module has had a copy of it.
            same = len(caches) == count and place(_caches_after, beside=module)(module, new, caches) == count
            assert same, "the list of caches handed in was changed: make a new one"
        where = f" of {end - past} new positions after {past} in the caches" if past else f" of {end} positions"
        expect_close(
            logits,
            _logits(state, so_far, heads, range(depth))[:, past:],
            f"the logits{where}, with V={vocab}, d={dim}, {heads} heads, {depth} layers",
            _model_mistakes(state, so_far, heads, depth, dim, past),
            dtype,
            10 * _NEAR,
        )
        assert isinstance(following, list | tuple) and len(following) == depth, (
            f"`caches` should be a list with one cache for each of the {depth} layers, "
            f"got {len(following) if isinstance(following, list | tuple) else following.__class__.__name__}"
        )
        x = F.embedding(so_far, state["embedding.weight"])
        for k, cache in enumerate(following):
            keys, values = expect_cache(cache, f"the cache of layer {k}")
            right = _kept(state, _norm(state, f"layers.{k}.norm_1", x), heads, f"layers.{k}.attention.")
            expect_close(keys, right[0], f"the keys in the cache of layer {k}{where}", None, dtype, 10 * _NEAR)
            expect_close(values, right[1], f"the values in the cache of layer {k}{where}", None, dtype, 10 * _NEAR)
            x = _layer(state, k, x, heads)
        caches = following


# ---- perplexity


def _make_reader(table):
    """A model whose scores depend on all tokens so far."""

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", table)

        def forward(self, tokens, caches=None):
            place = torch.arange(1, tokens.shape[1] + 1)
            return self.table[((tokens + 1) * (place**2 + 3)).cumsum(1) % len(self.table)], caches

    return Reader()


def _read(table: Tensor, tokens: Tensor) -> Tensor:
    """The negative log-probability of each token after the first, `(B, n - 1)`, in float64."""
    state = torch.zeros(len(tokens), dtype=torch.long)
    losses = []
    for number, (token, following) in enumerate(pairwise(tokens.T), start=1):
        state = state + (token + 1) * (number**2 + 3)
        log_probs = table.double()[state % len(table)].log_softmax(-1)
        losses.append(-log_probs.gather(1, following.unsqueeze(1)).squeeze(1))
    return torch.stack(losses, 1)


def _perplexity_mistakes(table: Tensor, tokens: Tensor, pad_id: int) -> dict[str, Callable[[], float]]:
    losses, real = _read(table, tokens), tokens[:, 1:] != pad_id
    mean = losses[real].mean()
    same = table.double()[(((tokens + 1) * (torch.arange(1, tokens.shape[1] + 1) ** 2 + 3)).cumsum(1)) % len(table)]
    itself = -same.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)

    def figure(value: Tensor) -> Callable[[], float]:
        return lambda: value.item()

    each = [row[keep].mean() for row, keep in zip(losses, real, strict=True) if keep.any()]
    return {
        "this is the mean loss: perplexity is exp of it": figure(mean),
        "this is exp of the sum: take the mean over the real tokens first": figure(losses[real].sum().exp()),
        "2 to the power of a loss in natural logarithms: use exp": figure(2**mean),
        "the sign is turned round: exp of the mean of -log p": figure((-mean).exp()),
        "padding counts: leave out the positions whose target is `pad_id`": figure(losses.mean().exp()),
        "padding is zeroed but still counted: divide by the number of real tokens": figure(
            (losses * real).mean().exp()
        ),
        "the sum is divided by the number of sentences, not of real tokens": figure(
            (losses[real].sum() / len(tokens)).exp()
        ),
        "a mean for each sentence, then the mean of those: every real token counts alike": figure(
            torch.stack(each).mean().exp()
        ),
        "the mean of each sentence's perplexity: take the mean of the losses of all tokens, then exp": figure(
            torch.stack(each).exp().mean()
        ),
        "the mean of 1/p: perplexity is exp of the mean of -log p": figure(losses[real].exp().mean()),
        "each token is compared with its own scores, not with those of the position before it": figure(
            itself[tokens != pad_id].mean().exp()
        ),
        "`pad_id` is taken to be 1: use the argument": figure(losses[tokens[:, 1:] != 1].mean().exp()),
        "`pad_id` is taken to be 0: use the argument": figure(losses[tokens[:, 1:] != 0].mean().exp()),
        "the first token is counted among those predicted: nothing predicts it": figure(
            (losses[real].sum() / (tokens != pad_id).sum()).exp()
        ),
        "the last real token of each sentence is left out: it is predicted too": figure(
            losses[real & torch.cat((real[:, 1:], torch.zeros_like(real[:, :1])), 1)].mean().exp()
        ),
    }


def check_perplexity(function: Callable) -> None:
    """Several sizes and pads, a sentence without padding, one token, a large loss."""
    # The first sizes come back at the end, with other numbers.
    sizes = ((4, 5, 6, 1, 1.0), (3, 7, 5, 4, 2.0), (1, 2, 3, 0, 1.0), (5, 3, 9, 2, 3.0), (4, 5, 6, 1, 1.5))
    for batch, n, vocab, pad_id, scale in sizes:
        table = scale * randn(101, vocab, dtype=torch.float32)
        tokens = randint(0, vocab - 1, (batch, n))
        tokens += tokens >= pad_id  # every token but padding
        for row, length in zip(tokens[1:], torch.linspace(n - 1, 2, batch - 1).long().tolist(), strict=True):
            row[length:] = pad_id
        if n > 2:  # 0 and 1 are there as real tokens, which tells a fixed pad_id from padding that counts
            tokens[0, 1:3] = torch.tensor([0, 1] if pad_id > 1 else [1 - pad_id] * 2)
        model = place(_make_reader, beside=function)(table)
        with unchanged(tokens=tokens):
            value = call(function, model, tokens, pad_id)
        losses = _read(table, tokens)[tokens[:, 1:] != pad_id]
        name = f"the perplexity of {batch} sentences of up to {n} tokens, {pad_id} being padding,"
        expect_number(value, losses.mean().exp().item(), name, _perplexity_mistakes(table, tokens, pad_id))


# ---- sampling

_DRAWS = 20_000


def _distribution(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    cold_first: bool = True,
    k_first: bool = True,
    crossing: bool = True,
    renormalise: bool = True,
    ascending: bool = False,
) -> Tensor:
    """The probabilities of the tokens of one row, `(V,)`, in float64, by sorting; with a switch for each mistake."""
    warm = logits.double()
    cold = warm / temperature
    source = cold if cold_first else warm
    keep = torch.ones(len(cold), dtype=torch.bool)

    def most_likely() -> None:
        if top_k is not None:
            keep[cold.argsort(descending=True)[top_k:]] = False

    def nucleus() -> None:
        if top_p is None:
            return
        shown = source.masked_fill(~keep, -math.inf) if renormalise else source
        chances = shown.softmax(-1)
        total = 0.0
        for token in chances.argsort(descending=not ascending).tolist():
            before, total = total, total + chances[token].item()
            if (before if crossing else total) >= top_p and (crossing or before > 0):
                keep[token] = False

    for step in (most_likely, nucleus) if k_first else (nucleus, most_likely):
        step()
    return cold.masked_fill(~keep, -math.inf).softmax(-1)


def _sampling_mistakes(logits: Tensor, settings: Mapping[str, Any]) -> dict[str, Callable[[], Tensor]]:
    def wrong(**changes: Any) -> Callable[[], Tensor]:
        return lambda: _distribution(logits, **{**settings, **changes})

    temperature = settings.get("temperature", 1.0)
    return {
        "`temperature` is not used": wrong(temperature=1.0),
        "the logits are multiplied by the temperature: divide": wrong(temperature=1 / temperature),
        "the temperature divides the probabilities, which changes nothing once they sum to 1": wrong(temperature=1.0),
        "`top_p` reads probabilities that do not sum to 1 after `top_k`: it reads what is left, renormalised": wrong(
            renormalise=False
        ),
        "`top_k` is not used": wrong(top_k=None),
        "`top_k` keeps one token too many": wrong(top_k=settings.get("top_k", 99) + 1),
        "`top_k` keeps one token too few": wrong(top_k=max(settings.get("top_k", 99) - 1, 1)),
        "`top_k` keeps the least likely tokens": lambda: _distribution(
            logits.masked_fill(
                torch.zeros(len(logits)).bool().scatter(0, logits.argsort(descending=True)[: -settings["top_k"]], True),
                -math.inf,
            ),
            temperature,
        ),
        "`top_p` is not used": wrong(top_p=None),
        "`top_p` leaves out the token that reaches it: the set's probability has to reach `top_p`": wrong(
            crossing=False
        ),
        "`top_p` fills its set from the least likely token up": wrong(ascending=True),
        "`top_p` reads the probabilities before the temperature": wrong(cold_first=False),
        "`top_p` comes before `top_k`: it reads what `top_k` has left": wrong(k_first=False),
        "all tokens that are left are equally likely: draw by their probabilities": lambda: (
            ((p := _distribution(logits, **settings)) > 0).double() / (p > 0).sum()
        ),
        "always the likeliest token: draw": lambda: F.one_hot(logits.argmax(), len(logits)).double(),
        "the tokens are drawn uniformly": lambda: torch.full((len(logits),), 1 / len(logits)).double(),
    }


# Probabilities far enough apart that each mistake shows, in an order that sorting has to find.
_ROW = torch.tensor([0.06, 0.34, 0.04, 0.22, 0.24, 0.10], dtype=torch.float64).log()
_OTHER = torch.tensor([0.5, 0.02, 0.13, 0.05, 0.1, 0.2], dtype=torch.float64).log()
_SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.0},
    {"top_k": 3},
    {"top_k": 1},
    {"top_k": 50},
    {"top_p": 0.5},
    {"top_p": 0.85},
    {"top_p": 1.0},
    {"top_p": 1e-6},
    {"temperature": 3.0, "top_p": 0.5},
    {"temperature": 0.4, "top_k": 2},
    {"top_k": 3, "top_p": 0.72},
    {"temperature": 0.7, "top_k": 4, "top_p": 0.8},
]


def check_sample_next(function: Callable) -> None:
    """How often each token comes, by setting; rows of their own; greedy; the generator; the errors."""
    _expect_greedy(function)
    for settings in _SETTINGS:
        _expect_frequencies(function, settings)
    _expect_generator(function)
    logits = randn(2, 5, dtype=torch.float32)
    for setting, what in (
        ({"temperature": -0.5}, "a negative temperature"),
        ({"top_k": 0}, "top_k=0"),
        ({"top_k": -1}, "a negative top_k"),
        ({"top_p": 0.0}, "top_p=0"),
        ({"top_p": 1.2}, "top_p above 1"),
        ({"top_p": -0.3}, "a negative top_p"),
    ):
        expect_raises(ValueError, lambda setting=setting: function(logits, **setting), what)
    expect_device(function, {"logits": logits}, chance=True)


def _drawn(function: Callable, logits: Tensor, **settings: Any) -> Tensor:
    with unchanged(logits=logits):
        tokens = call(function, logits, **settings)
    name = "the tokens drawn with " + (
        ", ".join(f"{k}={v}" for k, v in settings.items() if k != "generator") or "no setting"
    )
    expect_tensor(tokens, (len(logits),), torch.int64, name)
    return tokens


def _expect_greedy(function: Callable) -> None:
    for batch, vocab in ((4, 4), (3, 7), (1, 5), (6, 2)):
        logits = 1e-3 * randn(batch, vocab, dtype=torch.float32) + 0.01 * torch.stack(
            [torch.randperm(vocab) for _ in range(batch)]
        )
        right = logits.argmax(-1)
        for settings in ({"temperature": 0}, {"temperature": 0.0, "top_p": 0.9}, {"temperature": 0, "top_k": 2}):
            expect_close(
                _drawn(function, logits, **settings),
                right,
                f"the tokens at temperature 0 for logits of shape {(batch, vocab)}",
                {"temperature 0 gives the least likely token": lambda x=logits: x.argmin(-1)},
            )


def _expect_frequencies(function: Callable, settings: dict[str, Any]) -> None:
    for dtype in (torch.float32, torch.float64):
        logits = torch.stack((_ROW, _OTHER)).repeat(_DRAWS, 1).to(dtype) + 3  # a constant changes no probability
        tokens = _drawn(function, logits, **settings).view(_DRAWS, 2)
        for row, drawn in ((_ROW, tokens[:, 0]), (_OTHER, tokens[:, 1])):
            share = drawn.bincount(minlength=len(row)).double() / _DRAWS
            if _is_share(share, _distribution(row, **settings)):
                continue
            causes = _sampling_mistakes(row, settings) | {
                "the first row's scores are used for all rows": lambda: _distribution(_ROW, **settings)
            }
            right = _distribution(row, **settings)
            cause = next((f". Likely cause: {c}" for c, f in causes.items() if _fits(share, f, right)), "")
            shown = ", ".join(f"{k}={v}" for k, v in settings.items()) or "no setting"
            raise AssertionError(
                f"with {shown} the tokens should come with probabilities {_rounded(right)}; in {_DRAWS:,} draws their "
                f"shares are {_rounded(share)}{cause}"
            )


def _fits(share: Tensor, mistake: Callable[[], Tensor], right: Tensor) -> bool:
    try:
        wrong = mistake()
    except (RuntimeError, IndexError, ValueError, KeyError):
        return False  # this mistake cannot be made with these settings
    return _is_share(share, wrong) and not _is_share(wrong, right)


def _is_share(share: Tensor, chances: Tensor) -> bool:
    """Whether these shares can come of so many draws: a right answer is turned down once in a hundred million."""
    spread = (chances * (1 - chances) / _DRAWS).sqrt()
    return bool(((share - chances).abs() <= 6.5 * spread + 1e-9).all())


def _rounded(chances: Tensor) -> str:
    return "[" + ", ".join(f"{p:.2f}" for p in chances.tolist()) + "]"


def _expect_generator(function: Callable) -> None:
    logits = randn(200, 9, dtype=torch.float32)

    def run(number: int | None) -> Tensor:
        options = {} if number is None else {"generator": torch.Generator().manual_seed(number)}
        return _drawn(function, logits, **options)

    assert torch.equal(run(7), run(7)), (
        "two draws with generators of the same seed differ: pass `generator=generator` where you draw"
    )
    assert not torch.equal(run(7), run(8)), (
        "generators of different seeds gave the same tokens: draw from `generator`, do not seed anew"
    )
    assert not torch.equal(run(None), run(None)), (
        "without a generator two draws gave the same tokens: is there a fixed seed inside?"
    )


# ---- generation


def _make_toy(table, most):
    """A model that knows what came before through its caches alone, and tires of computing positions again."""

    class Toy(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", table)
            self.computed = 0
            self.recorded = False

        def forward(self, tokens, caches=None):
            self.computed += tokens.numel()
            self.recorded = self.recorded or torch.is_grad_enabled()
            past, told = (0, 0) if caches is None else caches[0]
            place = torch.arange(past + 1, past + tokens.shape[1] + 1)
            state = told + ((tokens + 1) * (place**2 + 3)).cumsum(1)
            logits = self.table[state % len(self.table)]
            if self.computed > most:
                logits = -logits
            return logits, [(past + tokens.shape[1], state[:, -1:])]

    return Toy()


_Choice = Callable[[Tensor], int]


def _write(
    table: Tensor,
    prompt: list[int],
    length: int,
    eos_id: int | None,
    see: Callable[[list[int]], list[int]] = lambda tokens: tokens,
    tired: Callable[[int], bool] = lambda steps: False,
    stop: bool = True,
    begun: Callable[[list[int]], bool] = lambda prompt: True,
) -> list[int]:
    """One row, greedily: the prompt and `length` tokens, `eos_id` again and again once it has come."""
    tokens, ended = list(prompt), not begun(prompt)
    for step in range(length):
        told = see(tokens)
        state = sum((token + 1) * (number**2 + 3) for number, token in enumerate(told, 1))
        scores = table[state % len(table)]
        token = int((-scores if tired(step) else scores).argmax())
        if ended and stop:
            token = eos_id
        ended = ended or token == eos_id
        tokens.append(token)
    return tokens


def _cut(rows: list[list[int]], n: int, eos_id: int | None, which: Callable = max) -> list[list[int]]:
    """The rows up to where all of them have ended."""
    ends = [row.index(eos_id, n) + 1 if eos_id in row[n:] else len(row) for row in rows]
    return [row[: which(ends)] for row in rows]


# (B, n, length, eos_id, V)
_PROMPTS = [
    (4, 4, 6, None, 6),
    (3, 2, 9, 1, 5),
    (2, 5, 12, 3, 4),
    (1, 1, 5, None, 7),
    (1, 3, 14, 0, 4),
    (5, 2, 1, 2, 6),
]


def check_generate(function: Callable) -> None:
    """Greedy texts of a toy that tires when positions are computed again; settings and generator passed on."""
    for batch, n, length, eos_id, vocab in _PROMPTS:
        for _ in range(3):
            _check_text(function, batch, n, length, eos_id, vocab)
    prompt = randint(0, 5, (2, 3))
    model = place(_make_toy, beside=function)(randn(97, 5, dtype=torch.float32), 100)
    expect_close(call(function, model, prompt, 0, temperature=0), prompt, "the result for length 0, the prompt itself,")
    _expect_sampling(function)
    recorded = place(_make_toy, beside=function)(randn(97, 5, dtype=torch.float32), 100)
    call(function, recorded, prompt, 4, temperature=0)
    assert not recorded.recorded, (
        "the model is called while gradients are recorded, which keeps every step in memory: use `torch.no_grad()`"
    )


def _check_text(function: Callable, batch: int, n: int, length: int, eos_id: int | None, vocab: int) -> None:
    table = randn(97, vocab, dtype=torch.float32)
    prompt = randint(0, vocab, (batch, n))
    rows = prompt.tolist()

    def written(which: Callable = max, cut: bool = True, **changes: Any) -> list[list[int]]:
        texts = [_write(table, row, length, eos_id, **changes) for row in rows]
        return _cut(texts, n, eos_id, which) if cut and eos_id is not None else texts

    right = written()
    steps = len(right[0]) - n
    # Computing the last token too is no mistake.
    model = place(_make_toy, beside=function)(table, batch * (n + steps))
    with unchanged(prompt=prompt):
        tokens = call(function, model, prompt, length, eos_id=eos_id, temperature=0)
    expect_tensor(tokens, name="the result of generate")
    again = [step for step in range(length) if batch * sum(range(n, n + step + 1)) > batch * (n + steps)]

    def tensor(texts: list[list[int]], first: int = 0) -> Callable[[], Tensor]:
        return lambda: torch.tensor(texts)[:, first:]

    wrong = {
        "the prompt is left out: the result begins with it": tensor(right, n),
        "positions are computed again and again: hand the caches on, and with them the newest token alone": tensor(
            written(tired=lambda step: bool(again) and step >= again[0])
        ),
        "the model sees the newest token alone: hand the caches on too": tensor(
            written(see=lambda t: t if len(t) == n else t[-1:])
        ),
        "`eos_id` is not used: a row that has ended is filled with it, and writing stops when all have": tensor(
            written(cut=False, stop=False)
        ),
        "a row that has ended goes on: fill it with `eos_id`": tensor(written(stop=False)),
        "it goes on after all rows have ended": tensor(written(cut=False)),
        "it stops when the first row has ended: go on until all have": tensor(written(min)),
        "`eos_id` in the prompt ends a row: only a token that was written does": tensor(
            written(begun=lambda row: eos_id not in row)
        ),
        "one token too many": tensor([_write(table, row, length + 1, eos_id) for row in rows]),
        "one token too few": tensor([text[:-1] for text in right]),
        "the last token of the prompt is computed twice, and changes its place": tensor(
            written(see=lambda t: [*t[:n], *t[n - 1 :]])
        ),
    }
    name = f"the tokens for a prompt of shape {(batch, n)}, length={length}, eos_id={eos_id}, temperature=0"
    expect_close(tokens, torch.tensor(right), name, wrong, torch.int64)


def _expect_sampling(function: Callable) -> None:
    """Settings reach the draw, and the generator decides it."""
    # The scores of each place lie 1/4 apart: at a temperature of 1e-4 the second never comes.
    table = 0.25 * randn(97, 8, dtype=torch.float32).argsort(dim=1).float()
    prompt = randint(0, 8, (40, 2))

    def run(**settings: Any) -> Tensor:
        return call(function, place(_make_toy, beside=function)(table, 10**6), prompt, 5, **settings)

    greedy = run(temperature=0)
    for settings in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        expect_close(run(**settings), greedy, f"the tokens with {settings}, the likeliest ones,")
    assert not torch.equal(run(), greedy), "without settings tokens should be drawn; they are always the likeliest ones"
    two = [run(generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*two), "two runs with generators of the same seed differ: pass `generator` on"
    other = run(generator=torch.Generator().manual_seed(4))
    assert not torch.equal(two[0], other), "generators of different seeds gave the same text"
    # With the same scores everywhere only the noise differs from step to step.
    level = place(_make_toy, beside=function)(table[:1].expand(97, 8).clone(), 10**6)
    steps = call(function, level, prompt, 5, generator=torch.Generator().manual_seed(5))[:, 2:]
    assert not (steps == steps[:, :1]).all(), "every step draws the same tokens: do not seed the generator anew"
