"""Hidden tests of chapter 11."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Complaint,
    Mistake,
    Unexplained,
    build,
    call,
    complain,
    expect,
    expect_close,
    expect_device,
    expect_drawn_from_generator,
    expect_gradients,
    expect_matches,
    expect_not_calling,
    expect_number,
    expect_parameter_gradients,
    expect_raises,
    expect_tensor,
    explaining,
    found,
    gradients_of,
    named_parameters,
    nearest,
    place,
    rand_weights,
    randint,
    randn,
    randomise,
    unchanged,
)
from autograder.checks import draw_size as drawn
from checks.chance import FALSE, drawn_between, drawn_medium, drawn_wide, likely_counts, mean_is_likely
from checks.formulas import linear
from checks.language_model import mistakes as m
from checks.language_model.visible import UNDRAWN, expect_cache, expect_caches, expect_pair, expect_tied, listed

State = Mapping[str, Tensor]
# A norm, or the angles of `rotate`, may be computed in float32 whatever x is: float64 results are held to less there.
_NEAR = 2e-5
# Angles of some hundred radians are right to less still.
_FAR = 2e-4


# ---- RMSNorm

_LIBRARY = {"rms_norm", "_fused_rms_norm", "layer_norm", "native_layer_norm", "normalize", "group_norm", "batch_norm"}
_NORM_SHAPES = [
    (4, 4, 4),
    (2, 3, 5),
    (3, 2, 6),
    (1, 4, 3),
    (3, 1, 7),
    (2, 5, 1),
    (6, 4),
    (2, 3, 4, 5),
    (7,),
    (2, 1, 3, 2, 4),
]


def _rms(state: State, x: Tensor, eps: float = 1e-6) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], state["weight"], eps)


def _rms_mistakes(
    state: State, eps: float | None, x: Tensor, got: Any, small: bool
) -> dict[Mistake, Callable[[], Tensor]]:
    others = [_rms(state, x, other) for other in (1e-6, 1e-5, 1e-7, 1e-8)]  # what `eps` may be fixed to, or start as
    none = _rms(state, x, 0.0)
    if eps is None:
        return {m.RMSNorm.EPS_DEFAULT: lambda: nearest(got.double(), *others, none)}
    square = x.pow(2).mean(-1, keepdim=True)
    by_norm = x.shape[-1] ** 0.5 / (x.norm(dim=-1, keepdim=True) + eps)
    outside = [x * part * state["weight"] for part in (1 / (square.sqrt() + eps), by_norm)]
    unused = {m.RMSNorm.NO_EPS: lambda: none, m.RMSNorm.EPS_IGNORED: lambda: nearest(got.double(), *others)}

    def over_dimension_2() -> Tensor:
        return x / (x.pow(2).mean(2, keepdim=True) + eps).sqrt() * state["weight"]

    return {
        m.RMSNorm.EPS_OUTSIDE: lambda: nearest(got.double(), *outside),
        m.RMSNorm.DIMENSION_2: over_dimension_2,
    } | (unused if small else {})


def check_rms_norm(cls: Callable) -> None:
    """Values, small and large features, gradients, device; no library norm does the work."""
    for shape in _NORM_SHAPES:
        # An eps so large that its place matters: beside small features, where it is all there is, and beside others.
        # Then the default, which is all that is left to be wrong.
        for eps, scale in ((0.7, 1e-3), (0.7, 1.0), (None, 1e-3)):
            _check_rms_values(cls, shape, eps, scale)
    for _ in range(2):
        _check_rms_values(cls, (drawn(1, 3), drawn(2, 9), drawn(2, 9)), drawn_between(0.05, 0.4))
        _check_rms_values(cls, (drawn(1, 3), drawn(2, 9), drawn(100, 700)), drawn_between(1e-3, 0.3))
        _check_rms_values(cls, (drawn(300, 600), drawn(2, 9)), drawn_between(2.0, 99.0), drawn_between(1e3, 1e6))
        _check_rms_values(cls, (drawn(1, 3), drawn_wide(10, 300), drawn_wide(10, 99)), drawn_between(1e-3, 0.3))
        _check_rms_values(cls, (drawn(1, 3), drawn_medium(), drawn(2, 9)), drawn_between(1e-3, 0.3))
    module, state = build(lambda: cls(5), {"weight": (5,)})
    x = randn(2, 3, 5)
    expect_not_calling(module, [x], _LIBRARY, m.RMSNorm.LIBRARY)
    # A part of the way may be float32 whatever x is, as in Llama's own code.
    cut = {m.RMSNorm.CUT: lambda x: x / (x.pow(2).mean(-1, keepdim=True).detach() + 1e-6).sqrt() * state["weight"]}
    expect_gradients(module, partial(_rms, state), {"x": x}, cut, tolerance=_NEAR)
    expect_parameter_gradients(module, _rms, state, [x], tolerance=_NEAR)
    expect_close(call(module, torch.zeros(2, 5, dtype=torch.float64)), torch.zeros(2, 5), "the result for zeros")
    what = "the result after `.eval()`, where nothing should change,"
    expect_close(call(module.eval(), x), _rms(state, x), what, tolerance=_NEAR)
    expect_device(module.to(torch.float32).to("meta"), {"x": x.float()})


def _check_rms_values(cls: Callable, shape: tuple[int, ...], eps: float | None, scale: float = 1.0) -> None:
    options, value, dim = {} if eps is None else {"eps": eps}, 1e-6 if eps is None else eps, shape[-1]
    for dtype in (torch.float32, torch.float64):
        module, state = build(lambda: cls(dim, **options), {"weight": (dim,)}, dtype=dtype)
        # Squares near 1e-6 where the default counts, so that another default shows.
        x = ((randn(*shape) + torch.arange(dim)) * scale).to(dtype)
        asked = f"x {shape} and eps {value:g}" + " (features near 0.001)" * (scale == 1e-3)
        right = x.double()
        y = call(module, x)
        wrong = _rms_mistakes(state, eps, right, y, scale == 1e-3)
        expect_close(y, _rms(state, right, value), "the result", wrong, dtype, _NEAR, asked)


# ---- SwiGLU


def _gated(state: State, x: Tensor, prefix: str = "") -> Tensor:
    gate, up = (linear(state, f"{prefix}{name}", x) for name in ("gate", "up"))
    return linear(state, f"{prefix}down", F.silu(gate) * up)


_SEQUENCES = [(4, 4, 4, 4), (2, 3, 5, 7), (3, 5, 4, 2), (1, 6, 3, 8), (4, 1, 5, 3), (2, 4, 1, 6), (2, 3, 6, 1)]


def check_swiglu(cls: Callable) -> None:
    """Values, gradients, device, and that positions do not touch each other."""

    def network(dim: int, hidden: int, dtype: torch.dtype) -> tuple[nn.Module, State]:
        shapes = {"gate.weight": (hidden, dim), "up.weight": (hidden, dim), "down.weight": (dim, hidden)}
        return build(lambda: cls(dim, hidden), shapes, dtype=dtype)

    network(3, 5, torch.float32)  # unequal sizes first: they show which of the two is where
    for batch, n, dim, hidden in _SEQUENCES:
        for dtype in (torch.float32, torch.float64):
            module, state = network(dim, hidden, dtype)
            x = randn(batch, n, dim, dtype=dtype)
            right = _gated(state, x.double())
            wrong = {m.SwiGLU.FIRST_SEQUENCE: lambda right=right: right[:1].expand_as(right)}
            asked = f"x {(batch, n, dim)} and {hidden} hidden features"
            expect_close(call(module, x), right, "the result", wrong, dtype, asked=asked)
    for batch, n, dim, hidden in (
        (drawn(1, 3), drawn(520, 700), drawn(2, 9), drawn(2, 9)),
        (drawn(70, 130), drawn(2, 9), drawn(70, 200), drawn(100, 300)),
    ):
        module, state = network(dim, hidden, torch.float64)
        module.eval()
        x = randn(batch, n, dim) * drawn_between(10, 100)
        asked = f"x {(batch, n, dim)} and {hidden} hidden features"
        expect_close(call(module, x), _gated(state, x), "the result", asked=asked)
    for _ in range(2):
        batch, n, dim, hidden = drawn(5, 60), drawn_wide(9, 400), drawn_wide(9, 99), drawn_wide(10, 99)
        module, state = network(dim, hidden, torch.float32)
        x = (0.1 * randn(batch, n, dim)).float()
        asked = f"x {(batch, n, dim)} and {hidden} hidden features, while training"
        expect_close(call(module, x), _gated(state, x.double()), "the result", None, torch.float32, 1e-4, asked)
    module, state = network(4, 6, torch.float64)
    x = randn(2, 3, 4)
    expect_gradients(module, partial(_gated, state), {"x": x})
    expect_parameter_gradients(module, _gated, state, [x])
    x = randn(2, 3, 4)  # of sizes that were there before
    expect_close(call(module.eval(), x), _gated(state, x), "the result after `.eval()`, where nothing should change,")
    expect_device(module.to("meta"), {"x": x})


# ---- attention


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


def _mixed_heads(x: Tensor, heads: int) -> Tensor:
    """What `view` makes of it without a transposition."""
    return x.reshape(len(x), heads, x.shape[1], -1)


def _merged(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _attend(
    state: State,
    x: Tensor,
    heads: int,
    prefix: str = "",
    past: int = 0,
    turn: tuple[_Turn, _Turn] = (_turn, _turn),
    scale: float | None = None,
    whole: bool = False,
    split: Callable[[Tensor, int], Tensor] = _heads,
    merge: Callable[[Tensor], Tensor] = _merged,
    apart: bool = False,
    out: bool = True,
) -> Tensor:
    """What attention gives the positions from `past` on, with a switch for each mistake."""
    places = torch.arange(x.shape[1])
    q, k, v = (linear(state, f"{prefix}{name}", x) for name in ("Wq", "Wk", "Wv"))
    kept = heads * k.shape[-1] // q.shape[-1]
    if whole:  # rotated before the heads are split
        q, k = split(turn[0](q, places), heads), split(turn[1](k, places), kept)
    else:
        q, k = turn[0](split(q, heads), places), turn[1](split(k, kept), places)
    shared = torch.arange(heads) % kept if apart else torch.arange(heads) // (heads // kept)
    k, v = k[:, shared], split(v, kept)[:, shared]
    scores = q @ k.mT / (q.shape[-1] ** 0.5 if scale is None else scale)
    weights = scores.masked_fill(places.unsqueeze(1) < places, -math.inf).softmax(-1)
    merged = merge(weights @ v)[:, past:]
    return linear(state, f"{prefix}WO", merged) if out else merged


def _kept(state: State, x: Tensor, heads: int, prefix: str = "", turn: _Turn = _turn) -> _Cache:
    """The keys, rotated, and the values of all positions."""
    kept = heads * len(state[f"{prefix}Wk.weight"]) // x.shape[-1]
    keys, values = (_heads(linear(state, f"{prefix}{name}", x), kept) for name in ("Wk", "Wv"))
    return turn(keys, torch.arange(x.shape[1])), values


def _instead(state: State, **other: str) -> State:
    """The weights when one map takes the place of another."""
    return {**state, **{f"{a}.weight": state[f"{b}.weight"] for a, b in other.items()}}


def _attention_mistakes(state: State, x: Tensor, heads: int, past: int) -> dict[Mistake, Callable[[], Tensor]]:
    def wrong(state: State = state, **switches: Any) -> Callable[[], Tensor]:
        return lambda: _attend(state, x, heads, past=past, **switches)

    known = m.CausalSelfAttention
    return {
        known.UNROTATED_QUERIES: wrong(turn=(_unturned, _turn)),
        known.BEFORE_SPLITTING: wrong(whole=True),
        known.HALVES: wrong(turn=(_turn_halves, _turn_halves)),
        known.OPPOSITE: wrong(turn=(lambda q, p: _turn(q, -p), _turn)),
        known.NOT_SCALED: wrong(scale=1.0),
        known.ALL_FEATURES: wrong(scale=x.shape[-1] ** 0.5),
        known.MIXED_BY_VIEW: wrong(split=_mixed_heads, merge=lambda y: y.reshape(x.shape)),
        known.SPLIT_BY_VIEW: wrong(split=_mixed_heads),
        known.MERGED_BY_VIEW: wrong(merge=lambda y: y.reshape(x.shape)),
        known.SHARED_APART: wrong(apart=True),
        known.NO_WO: wrong(out=False),
        known.EXCHANGED: wrong(_instead(state, Wk="Wv", Wv="Wk")),
    }


_MAPS = ("Wq", "Wk", "Wv", "WO")
# (B, d, heads, kv_heads, lengths of the calls): equal sizes first.
_CALLS = [
    (4, 4, 2, None, (4,)),
    (2, 6, 3, None, (5,)),
    (3, 8, 4, 2, (2, 3)),
    (1, 4, 1, 1, (1, 1, 1, 1)),
    (2, 12, 6, 2, (3, 1, 2)),
    (2, 8, 4, None, (1, 4)),
    (2, 6, 3, 1, (4,)),
    (3, 2, 1, None, (1,)),
]


def _attention(
    cls: Callable, dim: int, heads: int, dtype: torch.dtype, kv_heads: int | None = None
) -> tuple[nn.Module, State]:
    shared = dim // heads * (kv_heads or heads)
    shapes = {f"{name}.weight": (shared if name in ("Wk", "Wv") else dim, dim) for name in _MAPS}
    return build(lambda: cls(dim, heads, **({"kv_heads": kv_heads} if kv_heads else {})), shapes, dtype=dtype)


def _wide_calls() -> Iterator[tuple[int, int, int, int | None, tuple[int, ...]]]:
    """Long texts and long caches, many heads in groups, many rows."""
    yield drawn(1, 2), 8, 2, None, (drawn(520, 600), drawn(2, 40), 1)  # beyond a mask of 512 kept ready
    kept, shared = drawn(9, 12), drawn(4, 5)
    yield drawn(1, 2), 2 * kept * shared, kept * shared, kept, (drawn(2, 9), drawn(40, 70), drawn(2, 9))
    yield drawn(70, 130), 2 * drawn(9, 16), 1, None, (drawn(2, 5),) * drawn(3, 9)


def _calls_between() -> Iterator[tuple[int, int, int, int | None, tuple[int, ...]]]:
    """Many heads of their own, wide ones, and texts of a length between the others."""
    heads = drawn(9, 16)
    yield drawn(5, 20), 2 * drawn(3, 20) * heads, heads, None, (drawn_wide(7, 40), drawn(2, 9))
    yield drawn(2, 4), 4 * drawn(2, 9), 2, 1, (drawn_wide(60, 270), drawn_wide(7, 60), 1)


def check_causal_self_attention(cls: Callable) -> None:
    """Outputs and caches in one call and in several, gradients through the cache, device."""
    for dtype in (torch.float64, torch.float32):
        for batch, dim, heads, kv_heads, lengths in _CALLS:
            _check_calls(_attention(cls, dim, heads, dtype, kv_heads), batch, dim, heads, lengths, dtype)
    for batch, dim, heads, kv_heads, lengths in _wide_calls():
        made = _attention(cls, dim, heads, torch.float64, kv_heads)
        made[0].eval()  # as a text is written
        _check_calls(made, batch, dim, heads, lengths, torch.float64, _FAR)
    for batch, dim, heads, kv_heads, lengths in _calls_between():  # as in training
        made = _attention(cls, dim, heads, torch.float32, kv_heads)
        _check_calls(made, batch, dim, heads, lengths, torch.float32, _FAR, dim**-0.5)
    for mode in (True, False):
        made = _attention(cls, 8, 4, torch.float64, 2)
        made[0].train(mode)
        _expect_given_cache(*made, 4)
    parted = drawn(4, 9)
    for sizes in ((6, 4), (9, 2, 1), (8, 4, 8), (8, 4, 3), (2 * parted, parted, parted - 1)):
        expect_raises(ValueError, lambda sizes=sizes: cls(*sizes), f"CausalSelfAttention{sizes}")
    module, state = _attention(cls, 6, 3, torch.float64)
    x = randn(2, 4, 6)

    def output(x: Tensor) -> Tensor:
        return expect_pair(call(module, x), m.CausalSelfAttention)[0]

    expect_gradients(output, lambda x: _attend(state, x, 3), {"x": x}, tolerance=_NEAR, module=module)
    expect_parameter_gradients(module, lambda s, x: _attend(s, x, 3), state, [x], _NEAR)
    grouped, theirs = _attention(cls, 12, 6, torch.float64, 2)
    x = randn(2, drawn(6, 20), 12)
    expect_parameter_gradients(grouped, lambda s, x: _attend(s, x, 6), theirs, [x], _NEAR)
    for mode in (True, False):
        module.train(mode)
        _expect_gradients_through_the_cache(module, state)
    x = randn(2, 4, 6)
    module.eval()
    expect_close(output(x), _attend(state, x, 3), "the output after `.eval()`", tolerance=_NEAR)
    module.to("meta")
    expect_elsewhere(lambda: module(x.to("meta"))[0])


def expect_elsewhere(run: Callable[[], Tensor]) -> None:
    """What is made on the CPU, as `causal_mask` does, has to be moved to where the inputs are."""
    try:
        result = run()  # on the meta device, which computes shapes only, and stands in for a GPU
    except Exception as error:
        # Code may look at values, and the meta device has none; but it may not mix devices.
        if any(hint in str(error) for hint in ("same device", "expected device")):
            raise Complaint(found(Common.MADE_ON_CPU)) from error
        return
    expect(result.device.type == "meta", Common.MADE_ON_CPU, "the result", got="on the CPU")


def _check_calls(
    made: tuple[nn.Module, State],
    batch: int,
    dim: int,
    heads: int,
    lengths: tuple[int, ...],
    dtype: torch.dtype,
    tolerance: float = _NEAR,
    scale: float = 1.0,
) -> None:
    module, state = made
    x = (scale * randn(batch, sum(lengths), dim)).to(dtype)
    cache: Any = None
    ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    for past, end in pairwise(ends):
        x_new, so_far = x[:, past:end].clone(), x[:, :end].double()
        old = {} if cache is None else dict(zip(("keys in the cache", "values in the cache"), cache, strict=True))
        with unchanged(x=x_new, **old):
            result = call(module, x_new) if cache is None else call(module, x_new, cache)
        y, following = expect_pair(result, m.CausalSelfAttention)
        shared = len(state["Wk.weight"]) * heads // dim
        asked = f"x {tuple(x_new.shape)}, heads {heads}, kv_heads {shared} and {past or 'no'} positions in the cache"
        right, wrong = _attend(state, so_far, heads, past=past), _attention_mistakes(state, so_far, heads, past)
        if past:
            _expect_counted_on(state, so_far, heads, past, expect_cache(following)[0], tolerance, asked)
        expect_close(y, right, "the output", wrong, dtype, tolerance, asked)
        (keys, values), (right_keys, right_values) = expect_cache(following), _kept(state, so_far, heads)
        # Where one position outweighs all others, the output does not show how the keys were turned.
        halves = {m.CausalSelfAttention.HALVES: lambda x=so_far: _kept(state, x, heads, turn=_turn_halves)[0]}
        expect_close(keys, right_keys, "the cached keys", halves, dtype, tolerance, asked)
        expect_close(values, right_values, "the cached values", None, dtype, tolerance, asked)
        cache = following


def _expect_counted_on(
    state: State, x: Tensor, heads: int, past: int, keys: Tensor, tolerance: float, asked: str
) -> None:
    """Name keys whose positions go on with another number than t, and old ones that are turned once more."""
    flat, right = _kept(state, x, heads, turn=_unturned)[0], _kept(state, x, heads)[0]
    if keys.shape != right.shape or torch.allclose(keys.double(), right, tolerance, tolerance):
        return
    told = {"expected": right, "got": keys, "asked": asked}
    old = _turn(right[:, :, :past], torch.arange(past))
    twice = torch.allclose(keys[:, :, :past].double(), old, tolerance, tolerance)
    expect(past == 1 or not twice, m.CausalSelfAttention.TURNED_AGAIN, "the cached keys", **told)
    for first in {2, x.shape[0], *right.shape[1::2]} - {past}:  # sizes that may be taken for t
        new = _turn(flat[:, :, past:], torch.arange(first, first + x.shape[1] - past))
        shifted = torch.allclose(keys[:, :, past:].double(), new, tolerance, tolerance)
        expect(not shifted, m.CausalSelfAttention.ANOTHER_T, "the cached keys", **told)


def _expect_given_cache(module: nn.Module, state: State, heads: int) -> None:
    """Two texts, read by turns, go on from their own caches; and one of them goes on in two ways."""
    texts = [randn(2, 5, len(state["Wq.weight"])) for _ in range(2)]
    texts.append(torch.cat((texts[0][:, :3], randn(2, 2, texts[0].shape[2])), 1))
    firsts = [expect_pair(call(module, x[:, :3]), m.CausalSelfAttention)[1] for x in texts[:2]]
    for x, cache in zip(texts, (*firsts, firsts[0]), strict=True):
        y, _ = expect_pair(call(module, x[:, 3:], expect_cache(cache)), m.CausalSelfAttention)
        what, mistake = "the output of a text that goes on after another was read", m.CausalSelfAttention.OWN_CACHE
        expect_close(y, _attend(state, x, heads, past=3), what, None, None, _NEAR, otherwise=mistake)


def _expect_gradients_through_the_cache(module: nn.Module, state: State) -> None:
    mine = randn(2, 3, 6).requires_grad_()
    theirs = mine.detach().clone().requires_grad_()
    _, cache = expect_pair(call(module, mine[:, :2]), m.CausalSelfAttention)
    y, _ = expect_pair(call(module, mine[:, 2:], expect_cache(cache)), m.CausalSelfAttention)
    direction = randn(2, 1, 6)
    expect(y.requires_grad, Common.CUT_OFF)
    (got,) = gradients_of(y, [mine], direction)
    (right,) = gradients_of(_attend(state, theirs, 3, past=2), [theirs], direction)
    got = torch.zeros_like(right) if got is None else got
    what = "the gradient that reaches the input through the cache"
    expect_close(got, right, what, tolerance=_NEAR, otherwise=m.CausalSelfAttention.CACHE_CUT_OFF)
    leaves = {name: value.clone().requires_grad_() for name, value in state.items()}
    x = theirs.detach()
    module.zero_grad()
    _, cache = expect_pair(call(module, x[:, :2]), m.CausalSelfAttention)
    y, _ = expect_pair(call(module, x[:, 2:], expect_cache(cache)), m.CausalSelfAttention)
    (y * direction).sum().backward()
    (_attend(leaves, x, 3, past=2) * direction).sum().backward()
    parameters = named_parameters(module)
    for name, leaf in leaves.items():
        what, got = f"the gradient that reaches `{name}` through the cache", parameters[name].grad
        got = torch.zeros_like(leaf) if got is None else got
        expect_close(got, leaf.grad, what, tolerance=_NEAR, otherwise=m.CausalSelfAttention.CACHE_CUT_OFF)


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
    norms: Collection[str] = ("last",),
    residual: bool = False,
    out: float = 1.0,
) -> Tensor:
    """The scores of a whole text, with a switch for each mistake.

    The final norm stands at the places `norms`: "first" or "last", "before" or "after" each layer.
    """

    def normed(x: Tensor, place: str) -> Tensor:
        return _norm(state, "norm", x) if place in norms else x

    x = normed(scale * F.embedding(tokens, state["embedding.weight"]), "first")
    for k in layers:
        y = _layer(state, k, normed(x, "before"), heads)
        x = normed(x + y if residual else y, "after")
    return out * normed(x, "last") @ state["embedding.weight"].T


def _model_mistakes(
    state: State, tokens: Tensor, heads: int, depth: int, dim: int, past: int, got: Any
) -> dict[Mistake, Callable[[], Tensor]]:
    def wrong(layers: Sequence[int] = range(depth), **switches: Any) -> Callable[[], Tensor]:
        return lambda: _logits(state, tokens, heads, layers, **switches)[:, past:]

    def normed_again() -> Tensor:
        places = (("after",), ("first", "last"), ("before", "last"), ("after", "last"))
        return nearest(got, *(wrong(norms=norms)() for norms in places))

    known = m.LanguageModel
    return {
        known.NO_LAST_NORM: wrong(norms=()),
        known.NORM_FIRST: wrong(norms=("first",)),
        known.NORM_AGAIN: normed_again,
        known.RESIDUAL: wrong(residual=True),
        known.SIDE_BY_SIDE: wrong([depth - 1]),
        known.SCALED_EMBEDDINGS: wrong(scale=dim**0.5),
        known.SCALED_LOGITS: wrong(out=dim**-0.5),
        known.REVERSED: wrong(range(depth)[::-1]),
        known.FIRST_LAYER_AGAIN: wrong([0] * depth),
        known.SOFTMAX: lambda: wrong()().softmax(-1),
        known.LOG_SOFTMAX: lambda: wrong()().log_softmax(-1),
    }


# (V, d, heads, depth, hidden, kv_heads, B, lengths of the calls)
_MODELS = [
    (6, 4, 2, 2, 4, None, 4, (4,)),
    (7, 6, 3, 3, 5, None, 2, (5,)),
    (5, 8, 4, 2, 3, 2, 3, (2, 3)),
    (9, 4, 1, 1, 7, None, 1, (1, 1, 1)),
    (4, 8, 4, 3, 6, None, 2, (1, 3, 2)),
]


def _model(
    cls: Callable, vocab: int, dim: int, heads: int, depth: int, hidden: int, kv_heads: int | None, dtype: torch.dtype
) -> tuple[nn.Module, State]:
    shared = dim // heads * (kv_heads or heads)
    shapes = {"embedding.weight": (vocab, dim), "norm.weight": (dim,)}
    for k in range(depth):
        maps = {name: shared if name in ("Wk", "Wv") else dim for name in _MAPS}
        shapes |= {f"layers.{k}.attention.{name}.weight": (size, dim) for name, size in maps.items()}
        shapes |= {f"layers.{k}.{name}.weight": (dim,) for name in ("norm_1", "norm_2")}
        shapes |= {f"layers.{k}.feed_forward.{name}.weight": (hidden, dim) for name in ("gate", "up")}
        shapes[f"layers.{k}.feed_forward.down.weight"] = (dim, hidden)
    module = call(cls, vocab, dim, heads, depth, hidden, **({"kv_heads": kv_heads} if kv_heads else {}))
    known = m.LanguageModel
    hints = {".Wk": known.KV_HEADS_IGNORED, ".Wv": known.KV_HEADS_IGNORED, "feed_forward": known.HIDDEN_IGNORED}
    expect_tied(module, shapes, hints | {"layers": known.DEPTH_IGNORED})
    return module, randomise(module, shapes, dtype)


def _wide_models() -> Iterator[tuple[int, int, int, int, int, int | None, int, tuple[int, ...]]]:
    """A wide vocabulary, long texts, many layers, many rows."""
    yield drawn(9000, 20_000), 4, 2, 1, drawn(3, 9), None, 1, (drawn(20, 40), 1)
    yield drawn(5, 30), 4, 2, 1, drawn(3, 9), None, drawn(1, 2), (drawn(520, 600), drawn(2, 20))
    yield drawn(5, 30), 8, 4, drawn(13, 16), drawn(3, 9), 2, drawn(9, 20), (drawn(2, 9), drawn(2, 9))


def _models_between() -> Iterator[tuple[int, int, int, int, int, int | None, int, tuple[int, ...]]]:
    """Many heads, wide ones, wide layers; texts of a length between the others."""
    heads = drawn(5, 10)
    yield drawn(30, 300), 2 * drawn(2, 6) * heads, heads, 2, drawn_wide(10, 200), None, 2, (drawn_wide(7, 40), 2)
    yield drawn(30, 300), 4 * drawn(3, 9), 2, 1, drawn_wide(10, 60), 1, drawn(5, 8), (drawn_wide(20, 200), drawn(2, 9))
    yield drawn(5, 30), 4, 2, 1, drawn(3, 9), None, 1, (drawn_medium(), drawn(2, 9))


def check_language_model(cls: Callable) -> None:
    """The start, logits and caches in one call and in several, gradients, device."""
    start = call(cls, drawn(500, 3000), 4 * drawn(10, 30), 2, 1, 8).state_dict()
    std = start["embedding.weight"].double().std().item()
    told = {"expected": 0.02, "got": std}
    expect(0.015 < std < 0.025, m.LanguageModel.EMBEDDING_START, "the standard deviation", **told)
    apart = start["embedding.weight"].double().std(0).mean().item()
    told = {"expected": 0.02, "got": apart}
    expect(apart > 0.015, m.LanguageModel.EMBEDDING_START, "the standard deviation of a feature over tokens", **told)
    for name in ("norm.weight", "layers.0.norm_1.weight", "layers.0.norm_2.weight"):
        ones = bool((start[name] == 1).all())
        expect(ones, m.LanguageModel.NORM_START, f"`{name}`", expected="all ones", got=start[name])
    for vocab, dim, heads, depth, hidden, kv_heads, batch, lengths in _MODELS:
        for dtype in (torch.float64, torch.float32) if dim > 4 else (torch.float64,):
            module, state = _model(cls, vocab, dim, heads, depth, hidden, kv_heads, dtype)
            _check_model_calls(module, state, (vocab, dim, heads, depth), batch, lengths, dtype)
    for vocab, dim, heads, depth, hidden, kv_heads, batch, lengths in _wide_models():
        module, state = _model(cls, vocab, dim, heads, depth, hidden, kv_heads, torch.float64)
        module.eval()  # as a text is written
        _check_model_calls(module, state, (vocab, dim, heads, depth), batch, lengths, torch.float64, 10 * _FAR)
    for vocab, dim, heads, depth, hidden, kv_heads, batch, lengths in _models_between():  # as in training
        module, state = _model(cls, vocab, dim, heads, depth, hidden, kv_heads, torch.float64)
        _check_model_calls(module, state, (vocab, dim, heads, depth), batch, lengths, torch.float64, 10 * _FAR)
    for mode in (True, False):
        module, state = _model(cls, 9, 8, 4, 2, 5, 2, torch.float64)
        _expect_given_caches(module.train(mode), state, 4, 2)
    deep = drawn(3, 6)
    module, state = _model(cls, 9, 8, 4, deep, 5, 2, torch.float64)
    layers, tokens = range(deep), randint(0, 9, (2, drawn(6, 20)))
    expect_parameter_gradients(module, lambda s, t: _logits(s, t, 4, layers), state, [tokens], 10 * _NEAR)
    module, state = _model(cls, 7, 6, 3, 2, 5, None, torch.float64)
    tokens = randint(0, 7, (2, 4))
    expect_parameter_gradients(module, lambda s, t: _logits(s, t, 3, range(2)), state, [tokens], 10 * _NEAR)
    logits, _ = expect_pair(call(module.eval(), tokens), m.LanguageModel)
    what = "the logits after `.eval()`, where nothing should change,"
    expect_close(logits, _logits(state, tokens, 3, range(2)), what, tolerance=10 * _NEAR)
    logits, _ = expect_pair(call(module, tokens.int()), m.LanguageModel)
    expect_close(logits, _logits(state, tokens, 3, range(2)), "the logits for tokens of int32", tolerance=10 * _NEAR)
    expect_device(module.to("meta"), {"tokens": tokens})


def _expect_given_caches(module: nn.Module, state: State, heads: int, depth: int) -> None:
    """Two texts, read by turns, go on from their own caches; and one of them goes on in two ways."""
    texts = [randint(0, len(state["embedding.weight"]), (2, 5)) for _ in range(2)]
    texts.append(torch.cat((texts[0][:, :3], texts[1][:, 3:].flip(1)), 1))
    firsts = [expect_pair(call(module, tokens[:, :3]), m.LanguageModel)[1] for tokens in texts[:2]]
    for tokens, caches in zip(texts, (*firsts, firsts[0]), strict=True):
        logits, _ = expect_pair(call(module, tokens[:, 3:], caches), m.LanguageModel)
        what, mistake = "the logits of a text that goes on after another was read", m.LanguageModel.OWN_CACHES
        expected = _logits(state, tokens, heads, range(depth))[:, 3:]
        expect_close(logits, expected, what, None, None, 10 * _NEAR, otherwise=mistake)


def _keeps_list(module, tokens, caches):
    """Whether a call leaves the list as it was: seen where the module runs, which in the grader gets a copy."""
    held = list(caches)
    module(tokens, caches)
    return len(caches) == len(held) and all(a is b for a, b in zip(caches, held, strict=True))


def _check_model_calls(
    module: nn.Module,
    state: State,
    sizes: tuple[int, int, int, int],
    batch: int,
    lengths: tuple[int, ...],
    dtype: torch.dtype,
    tolerance: float = 10 * _NEAR,
) -> None:
    vocab, dim, heads, depth = sizes
    tokens = randint(0, vocab, (batch, sum(lengths)))
    caches: Any = None
    for past, end in pairwise([0, *torch.tensor(lengths).cumsum(0).tolist()]):
        new, so_far = tokens[:, past:end].clone(), tokens[:, :end]
        kept = {} if caches is None else {f"caches[{k}]": cache[0] for k, cache in enumerate(caches)}
        with unchanged(tokens=new, **kept):
            result = call(module, new) if caches is None else call(module, new, list(caches))
        logits, following = expect_pair(result, m.LanguageModel)
        if caches is not None:
            keeps = place(_keeps_list, beside=module)(module, new, list(caches))
            expect(keeps, m.LanguageModel.LIST_CHANGED)
        asked = f"tokens {tuple(new.shape)}, {past} positions in the caches, dim {dim}, {heads} heads, {depth} layers"
        right = _logits(state, so_far, heads, range(depth))[:, past:]
        wrong = _model_mistakes(state, so_far, heads, depth, dim, past, logits)
        expect_close(logits, right, "the logits", wrong, dtype, tolerance, asked)
        expect_caches(following, depth)
        x = F.embedding(so_far, state["embedding.weight"])
        for k, cache in enumerate(following):
            pair = expect_cache(cache, f"the cache of layer {k}")
            kept = _kept(state, _norm(state, f"layers.{k}.norm_1", x), heads, f"layers.{k}.attention.")
            for got, right, name in zip(pair, kept, ("keys", "values"), strict=True):
                expect_close(got, right, f"the {name} in the cache of layer {k}", None, dtype, tolerance, asked)
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


def _perplexity_mistakes(losses: Tensor, tokens: Tensor, real: Tensor) -> dict[Mistake, Callable[[], float]]:
    next_real = torch.cat((real[:, 1:], torch.zeros_like(real[:, :1])), 1)
    return {
        m.perplexity.PAD_IS_1: lambda: losses[tokens[:, 1:] != 1].mean().exp().item(),
        m.perplexity.PAD_IS_0: lambda: losses[tokens[:, 1:] != 0].mean().exp().item(),
        m.perplexity.LAST_LEFT_OUT: lambda: losses[real & next_real].mean().exp().item(),
    }


def _wide_texts() -> Iterator[tuple[int, int, int, int, float]]:
    """Long texts, many sentences, a wide vocabulary and large losses, one at a time."""
    yield drawn(2, 4), drawn_wide(13, 500), drawn(5, 30), drawn(0, 4), 1.0
    yield drawn_wide(6, 130), drawn(5, 12), drawn_wide(30, 4000), drawn(0, 4), 1.0
    yield drawn(2, 4), drawn(520, 700), drawn(5, 30), drawn(0, 4), 1.0
    yield drawn(520, 700), drawn(5, 12), drawn(5, 30), drawn(0, 4), 1.0
    vocab = drawn(5000, 9000)
    yield drawn(2, 4), drawn(9, 30), vocab, drawn(vocab // 2, vocab - 1), 0.5
    yield drawn(2, 4), drawn(9, 30), drawn(5, 30), drawn(0, 4), drawn_between(6.0, 9.0)


def check_perplexity(function: Callable) -> None:
    """Several sizes and pads, a sentence without padding, one token, a large loss."""
    # The first sizes come back at the end, with other numbers.
    sizes = ((4, 5, 6, 1, 1.0), (3, 7, 5, 4, 2.0), (1, 2, 3, 0, 1.0), (5, 3, 9, 2, 3.0), (4, 5, 6, 1, 1.5))
    for number, (batch, n, vocab, pad_id, scale) in enumerate((*sizes, *_wide_texts())):
        table = scale * randn(101, vocab, dtype=torch.float32)
        table = table.double() if number % 3 == 2 else table
        tokens = randint(0, vocab - 1, (batch, n))
        tokens += tokens >= pad_id  # every token but padding
        # The shortest texts have one token, which predicts nothing, or none: they come early, so that each of the last
        # texts counts. Of some batches no text has padding.
        shortest = n if number % 4 == 3 else 0
        lengths = torch.linspace(shortest, max(n - 1, shortest), batch - 1).long()
        for row, length in zip(tokens[1:], lengths.tolist(), strict=True):
            row[length:] = pad_id
        if n > 2:  # 0 and 1 are there as real tokens, which tells a fixed pad_id from padding that counts
            tokens[0, 1:3] = torch.tensor([0, 1] if pad_id > 1 else [1 - pad_id] * 2)
        model = place(_make_reader, beside=function)(table)
        with unchanged(tokens=tokens):
            value = call(function, model, tokens, pad_id)
        losses, real = _read(table, tokens), tokens[:, 1:] != pad_id
        wrong = _perplexity_mistakes(losses, tokens, real)
        asked = f"tokens {tuple(tokens.shape)} and pad_id {pad_id}"
        expect_number(value, losses[real].mean().exp().item(), "the perplexity", wrong, asked)


# ---- sampling

# Of each row; few enough for code that goes row by row.
_DRAWS = 200


def _distribution(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    renormalise: bool = True,
) -> Tensor:
    """The probabilities of the tokens of one row, `(V,)`, in float64; with a switch for the mistake."""
    cold = logits.double() / temperature
    order = cold.argsort(descending=True)
    left = cold.masked_fill(torch.zeros(len(cold)).bool().scatter(0, order[top_k or len(cold) :], True), -math.inf)
    if top_p is not None:
        chances = (left if renormalise else cold).softmax(-1)[order]
        left[order[chances.cumsum(0) - chances >= top_p]] = -math.inf
    return left.softmax(-1)


def _unordered(logits: Tensor, settings: Mapping[str, Any]) -> Tensor:
    """What is left when as many tokens as belong to the set are kept, the first ones in place of the likeliest."""
    count = int((_distribution(logits, **settings) > 0).sum())
    return logits.masked_fill(torch.arange(len(logits)) >= count, -math.inf).softmax(-1)


def _sampling_mistakes(logits: Tensor, settings: Mapping[str, Any]) -> dict[Mistake, Callable[[], Tensor]]:
    mistakes: dict[Mistake, Callable[[], Tensor]] = {
        m.sample_next.P_OF_ALL: lambda: _distribution(logits, **settings, renormalise=False),
        m.sample_next.FIRST_ROW: lambda: _distribution(_ROW, **settings),
    }
    if "top_k" in settings or "top_p" in settings:
        mistakes[m.sample_next.UNORDERED] = lambda: _unordered(logits, settings)
    if settings.keys() == {"top_k", "top_p"}:
        mistakes[m.sample_next.TOP_P] = lambda: _distribution(logits, **{**settings, "top_p": None})
        mistakes[m.sample_next.TOP_K] = lambda: _distribution(logits, **{**settings, "top_k": None})
    return mistakes


# Probabilities far enough apart that each mistake shows, in an order that sorting has to find; no sum of the likeliest
# is a `top_p` below, where rounding would decide.
_ROW = torch.tensor([0.06, 0.34, 0.04, 0.22, 0.24, 0.10], dtype=torch.float64).log()
_OTHER = torch.tensor([0.5, 0.02, 0.13, 0.05, 0.1, 0.2], dtype=torch.float64).log()
_SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.5},
    {"temperature": 0.15},
    {"temperature": 2.0},
    {"top_k": 3},
    {"top_k": 1},
    {"top_k": 50},
    {"top_p": 0.55},
    {"top_p": 0.85},
    {"top_p": 1.0},
    {"top_p": 1e-6},
    {"temperature": 3.0, "top_p": 0.55},
    {"temperature": 0.4, "top_k": 2},
    {"top_k": 3, "top_p": 0.85},  # without `top_k` more would be left
    {"top_k": 4, "top_p": 0.61},  # without `top_p`
    {"top_k": 3, "top_p": 0.72},
    {"temperature": 0.7, "top_k": 4, "top_p": 0.8},
]


def check_sample_next(function: Callable) -> None:
    """How often each token comes, by setting; rows and calls of their own; greedy; the generator; the errors.

    A right answer is turned down less than once in a million runs: a count is outside its bounds with a probability of
    2 · FALSE, and there are about a thousand; two rows or calls agree throughout still more rarely.
    """
    _expect_greedy(function)
    for settings in _SETTINGS:
        _expect_frequencies(function, settings, torch.float32, 3)
        # A constant changes no probability, however large.
        _expect_frequencies(function, settings, torch.float64, drawn_between(1000, 9000))
    _expect_draws(function)
    for lot in (*_LOTS, *_lots_between()):
        _expect_lot(function, lot)
    _expect_generator(function)
    logits = randn(2, 5, dtype=torch.float32)
    refused = ({"top_p": 0.0}, {"top_p": -0.3}, {"top_p": 1.0 + drawn_between(0.001, 0.4)}, {"top_k": -drawn(1, 20)})
    greedy = {"temperature": 0, "top_p": 1.0 + drawn_between(0.001, 0.4)}
    for setting in (*refused, {"temperature": -drawn_between(0.001, 0.9)}, greedy):
        expect_raises(ValueError, lambda setting=setting: function(logits, **setting), listed(setting))
    for settings in ({}, {"top_k": 3, "top_p": 0.7}):
        expect_elsewhere(lambda settings=settings: function(logits.to("meta"), **settings))


def _drawn(function: Callable, logits: Tensor, **settings: Any) -> Tensor:
    with unchanged(logits=logits):
        tokens = call(function, logits, **settings)
    expect_tensor(tokens, (len(logits),), torch.int64, "what is drawn", listed(settings))
    return tokens


def _drawn_with(
    function: Callable, logits: Tensor, settings: Mapping[str, Any], generator: torch.Generator | None
) -> Tensor:
    return _drawn(function, logits, **settings, **({} if generator is None else {"generator": generator}))


def _drawn_in_calls(
    function: Callable, logits: Tensor, settings: Mapping[str, Any], calls: int, generator: torch.Generator | None
) -> Tensor:
    return torch.cat([_drawn_with(function, logits, settings, generator) for _ in range(calls)])


def _expect_greedy(function: Callable) -> None:
    sizes = ((4, 4), (3, 7), (1, 5), (6, 2), (1, drawn(60, 5000)), (drawn(100, 600), drawn(9, 90)), (2, 1))
    sizes = [(*size, torch.float32) for size in (*sizes, (24, drawn(20_000, 50_000)))]
    for batch, vocab, dtype in (*sizes, (drawn(30, 50), drawn(4000, 5000), torch.float64)):
        logits = 1e-3 * randn(batch, vocab, dtype=dtype) + 0.01 * torch.stack(
            [torch.randperm(vocab) for _ in range(batch)]
        )
        if dtype == torch.float64:
            logits += 5000  # where half precision tells neighbours apart no more
        right = logits.argmax(-1)
        for settings in ({"temperature": 0}, {"temperature": 0.0, "top_p": 0.9}, {"temperature": 0, "top_k": 2}):
            given = {"generator": torch.Generator().manual_seed(batch)} if "top_k" in settings else {}
            got, asked = _drawn(function, logits, **settings, **given), listed(settings)
            expect_close(got, right, "what is drawn", asked=asked, otherwise=m.sample_next.NOT_GREEDY)
    close = 1e-6 * torch.stack([torch.randperm(7) for _ in range(24)]).float()  # a tiny temperature is not 0
    got, asked = _drawn(function, close, temperature=0), "temperature=0, for scores that lie 1e-6 apart"
    expect_close(got, close.argmax(-1), "what is drawn", asked=asked, otherwise=m.sample_next.NOT_GREEDY)


def _expect_frequencies(function: Callable, settings: dict[str, Any], dtype: torch.dtype, constant: float) -> None:
    logits = torch.stack((_ROW, _OTHER)).repeat(_DRAWS, 1).to(dtype) + constant
    asked = listed(settings)
    signs = {UNDRAWN: m.sample_next.OVERFLOW} if constant > 1000 else {}  # smaller ones were drawn from before
    with explaining(asked, signs):
        tokens = _drawn(function, logits, **settings).view(_DRAWS, 2)
    for row, drawn_ones in ((_ROW, tokens[:, 0]), (_OTHER, tokens[:, 1])):
        counts = drawn_ones.bincount(minlength=len(row))
        right = _distribution(row, **settings)
        if not _is_likely(counts, right):
            wrong = _sampling_mistakes(row, settings)
            mistake = next((one for one, f in wrong.items() if _fits(counts, f(), right)), Unexplained.VALUES)
            told = {"expected": _rounded(right), "got": _rounded(counts / _DRAWS)}
            complain(mistake, f"the share of each token in {_DRAWS:,} draws", asked=asked, **told)


def _fits(counts: Tensor, wrong: Tensor, right: Tensor) -> bool:
    """Whether these draws are of a wrong distribution, and not of the right one."""
    return _is_likely(counts, wrong) and not _is_likely(counts, right)


def _inside(tokens: Tensor, scores: Tensor) -> bool:
    return bool(((tokens >= 0) & (tokens < len(scores))).all())


def _is_likely(counts: Tensor, chances: Tensor) -> bool:
    """Whether draws with these probabilities can have come out so often."""
    draws = int(counts.sum())
    bounds = [likely_counts(draws, chance) for chance in chances.clamp(0, 1).tolist()]
    return all(low <= count <= high for count, (low, high) in zip(counts.tolist(), bounds, strict=True))


def _rounded(chances: Tensor) -> str:
    return "[" + ", ".join(f"{p:.2f}" for p in chances.tolist()) + "]"


def _expect_draws(function: Callable) -> None:
    for kinds in ((), ("temperature", "top_k", "top_p")):
        scores, settings = _scores(drawn(9, 40), kinds)
        logits = scores.expand(60, -1).clone()

        # So many that one draw for all rows is not the likeliest token each time.
        draws = torch.stack([_drawn(function, logits, **settings) for _ in range(24)])
        asked = listed(settings)
        expect((draws != scores.argmax()).any(), m.sample_next.GREEDY, "24 draws of 60 rows", asked=asked)
        alike = torch.equal(draws, draws[:, :1].expand_as(draws))
        expect(not alike, m.sample_next.ONE_FOR_ALL, "60 rows of the same scores, in 24 draws", asked=asked)
        expect_drawn_from_generator(partial(_drawn_with, function, logits, settings), function, asked)


def _expect_generator(function: Callable) -> None:
    """Each kind of settings, and each number of rows."""
    start = drawn(0, len(_ROWS) - 1)
    for number, kinds in enumerate(_KINDS):
        rows = drawn_wide(*_ROWS[(start + number) % len(_ROWS)])
        scores, settings = _scores(drawn(9, 40), kinds)
        draw = partial(_drawn_in_calls, function, scores.expand(rows, -1).clone(), settings, -(-40 // rows))
        expect_drawn_from_generator(draw, function, f"{rows} {'rows' if rows > 1 else 'row'}; {listed(settings)}")


@dataclass(frozen=True)
class _Lot:
    """Draws of some rows in as many calls as that takes, all from one distribution: sizes are from and to."""

    draws: int
    rows: tuple[int, int]
    vocab: tuple[int, int]
    kinds: tuple[str, ...]
    shuffled: bool = False
    """whether each row has the scores in an order of its own"""
    generator: bool = False
    """whether all are drawn from a generator"""

    def sizes(self) -> tuple[int, int, int]:
        """How many rows, calls and scores."""
        rows = drawn_wide(*self.rows)
        return rows, -(-self.draws // rows), drawn_wide(*self.vocab)

    def chance(self) -> dict[str, torch.Generator]:
        """The generator, if there is one, as an argument."""
        return {"generator": torch.Generator().manual_seed(drawn(0, 10**9))} if self.generator else {}


# What needs many draws to show, or is rare: each number of rows and each vocabulary has its turn in `_lots_between`.
_LOTS = [
    _Lot(90, (3, 12), (20_001, 30_000), ("temperature",)),
    _Lot(900, (5, 100), (5, 60), ("cold",)),
    _Lot(6000, (2001, 7000), (6, 9), ("mild",)),
    _Lot(5000, (2001, 5000), (60, 100), ("near",)),
    *(_Lot(2200, (100, 2500), (30, 60), (kind,)) for kind in ("high_p", "highest_p")),
    *(_Lot(2200, (100, 2500), (6, 9), (kind,)) for kind in ("cool", "warm", "hot")),
    _Lot(6000, (40, 60), (30, 60), ()),
    _Lot(900, (5, 100), (30, 100), ("top_k",)),
    _Lot(900, (5, 100), (12, 60), ("temperature", "top_k", "top_p")),
    _Lot(400, (2, 9), (5, 30), ("top_p",), shuffled=True),
    _Lot(2200, (300, 2500), (4, 9), ("temperature",), shuffled=True),
    _Lot(600, (30, 300), (120, 400), ("warm",), generator=True),
    _Lot(900, (5, 100), (5, 60), ("top_k",), generator=True),
    _Lot(400, (2, 9), (5, 30), ("top_p",), shuffled=True, generator=True),
    _Lot(400, (130, 600), (5, 30), ("top_p",), shuffled=True, generator=True),
]
_KINDS: list[tuple[str, ...]] = [
    (),
    ("temperature",),
    ("top_k",),
    ("top_p",),
    ("temperature", "top_k"),
    ("temperature", "top_p"),
    ("top_k", "top_p"),
    ("temperature", "top_k", "top_p"),
]
_ROWS = [(1, 1), (2, 9), (10, 60), (61, 300), (301, 2000)]
_VOCABULARIES = [(12, 30), (31, 200), (201, 1500), (1501, 6000), (6001, 25_000)]
_MOST_SCORES = 5 * 10**5
_NARROWEST, _NARROW, _, _WIDE, _ = (most for _, most in _VOCABULARIES)


def _lots_between() -> Iterator[_Lot]:
    """Each kind of settings meets each size of rows and each of vocabularies, in pairs that nobody foretells."""
    for kinds in _KINDS:
        start = drawn(0, 3)
        for number, (rows, vocab) in enumerate(_pairs(_ROWS, _VOCABULARIES)):
            few = vocab > 1000 and (len(kinds) > 1 or vocab <= _WIDE)  # so a large `top_k` of the widest has its turn
            shuffled, generator = divmod((start + number) % 4, 2)
            named = _named(kinds, number + start // 2, few)
            draws = _fewest_draws(kinds, vocab)
            yield _Lot(draws, (rows, rows), (vocab, vocab), named, bool(shuffled), bool(generator))


def _fewest_draws(kinds: Collection[str], vocab: int) -> int:
    """In how many draws a setting shows that is left out: what should be taken away, or a temperature beside it.

    Where nothing is taken away, which costs most in code that goes score by score, a temperature shows in fewer. The
    fewer scores, the less far apart they lie, and the more draws it takes.
    """
    if vocab <= _NARROW:
        return 900 if vocab <= _NARROWEST else 300
    if {"top_k", "top_p"} & {*kinds}:
        return 120 if "temperature" in kinds else 70
    return 40 if vocab > _WIDE else 70


def _named(kinds: Collection[str], number: int, few: bool = False) -> tuple[str, ...]:
    """The kinds of settings with temperatures low and high by turns: each shows other mistakes at once."""
    instead = {"temperature": ("low", "high")[number % 2], "top_k": "few" if few else "top_k"}
    return tuple(instead.get(kind, kind) for kind in kinds)


def _pairs(rows: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A size of each range with one of each other, in an order of chance; their product is no more than can be had."""
    while True:
        order = randn(len(others)).argsort().tolist()
        pairs = [(drawn_wide(*one), drawn_wide(*others[place])) for one, place in zip(rows, order, strict=True)]
        if all(one * other <= _MOST_SCORES for one, other in pairs):
            return pairs


_LIKELIEST = 0.5  # no token of a lot is likelier


_TEMPERATURES = {
    "temperature": ((0.08, 0.35), (3.5, 9.0)),
    "low": ((0.08, 0.35),),
    "high": ((3.5, 9.0),),
    "cold": ((0.003, 0.04),),
    "cool": ((0.4, 0.49), (0.51, 0.6)),
    "mild": ((0.6, 0.8), (1.25, 1.7)),
    "near": ((0.85, 0.9), (1.12, 1.2)),
    "warm": ((2.1, 2.9),),
    "hot": ((20.0, 90.0),),
}
_TOP_P = {"top_p": (0.0, 0.9), "high_p": (0.91, 0.97), "highest_p": (0.971, 0.985)}


def _scores(vocab: int, kinds: Collection[str]) -> tuple[Tensor, dict[str, Any]]:
    """Scores of one row and settings, which decide without a close call which tokens are left, two or more of them.

    A temperature is one of `_TEMPERATURES`. What `top_k`, "few" of a wide vocabulary too, and `top_p` take away each
    would come in a tenth of the draws, of "high_p" in a thirtieth, and of "highest_p" in a seventieth. Of more than
    `_WIDE` scores a `top_k` beside a temperature has to be "few": another takes too little away.
    """
    while True:
        settings: dict[str, Any] = {}
        if ranges := next((_TEMPERATURES[kind] for kind in kinds if kind in _TEMPERATURES), None):
            settings["temperature"] = drawn_between(*ranges[drawn(0, len(ranges) - 1)])
        temperature = settings.get("temperature", 1.0)
        # The wider, the sooner a temperature shows.
        spreads = (0.7, 2.5)
        if {"near", "temperature", "low", "high"} & {*kinds}:
            spreads = (2.5, 3.0) if vocab > _WIDE else (2.0, 2.5)
        scores = (randn(vocab) * drawn_between(*spreads) * temperature).float()
        if temperature > 1 and scores.softmax(0).max() > 0.7:
            continue  # without the temperature it would nearly always be the likeliest, as if nothing were drawn
        chances = _distribution(scores, **settings)
        if "top_k" in kinds or "few" in kinds:
            settings["top_k"] = drawn(10, 90) if "few" in kinds else drawn_wide(max(2, vocab // 6), vocab - 1)
            ordered = scores.sort(descending=True).values
            close = ordered[settings["top_k"] - 1] - ordered[settings["top_k"]] < 1e-4 * ordered.abs().max()
            kept = _distribution(scores, **settings)
            if close or chances[kept == 0].sum() < 0.1:
                continue
            chances = kept
        if limits := next((_TOP_P[kind] for kind in kinds if kind in _TOP_P), None):
            ordered = chances.sort(descending=True).values
            sums = ordered.cumsum(0)
            count = int((sums < limits[0] + (limits[1] - limits[0]) * drawn(0, 10**6) / 10**6).sum())
            before, crossing = sums[count - 1].item(), ordered[count].item()
            if count == 0 or before < limits[0] or before + crossing > limits[1] or crossing < 1e-3:
                continue
            settings["top_p"] = before + crossing / 2
            chances = _distribution(scores, **settings)
        if chances.max() < _LIKELIEST:
            return scores, settings


def _expect_lot(function: Callable, lot: _Lot) -> None:
    """Rows and calls are drawn on their own, and each token comes as often as it should."""
    rows, calls, vocab = lot.sizes()
    scores, settings = _scores(vocab, lot.kinds)
    order = torch.arange(vocab).expand(rows, -1)
    if lot.shuffled:  # a sort for each row of a wide vocabulary would take longer than the draws
        order = (randn(vocab).argsort() + randint(0, vocab, (rows, 1))) % vocab
    logits = scores[order]
    chance = lot.chance()
    tokens = torch.stack([_drawn(function, logits, **settings, **chance) for _ in range(calls)])
    inside = _inside(tokens, scores)
    expect(inside, Unexplained.VALUES, "the tokens", expected=f"from 0 to {vocab - 1}", got=tokens.flatten())
    tokens = order.gather(1, tokens.T).T  # as if none were shuffled
    asked = f"{calls} times {rows} rows of {vocab} scores; {listed(settings)}"
    asked += ", and a generator" * lot.generator
    expect((tokens != scores.argmax()).any(), m.sample_next.GREEDY, asked=asked)
    right = _distribution(scores, **settings)
    # Where wrong scores leave a token or two, rows and calls agree that have nothing to do with each other.
    rows_agree, calls_agree = (_share_alike(one) for one in (tokens.T, tokens))
    if calls > 1 and rows_agree < 1 and right.max() ** (rows * (calls - 1)) < FALSE:
        expect((tokens != tokens[:1]).any(), Common.FIXED_SEED, asked=asked)
    agree = _agreement(right)
    if calls > 1 and not _may_agree(max(agree, rows_agree), calls, rows):
        different = len(tokens.unique(dim=0))
        told = {"expected": f"{calls}", "got": f"{different}"}
        expect(different == calls, Common.FIXED_SEED, "different calls", asked=asked, **told)
    if rows > 1 and not _may_agree(max(agree, calls_agree), rows, calls):
        alike = len(tokens.T.unique(dim=0)) < rows
        expect(not alike, m.sample_next.ONE_FOR_ALL, "two rows that agree in every call", asked=asked)
    _expect_counts(tokens.flatten(), scores, settings, asked)


def _agreement(chances: Tensor) -> float:
    """How likely two draws agree."""
    return float(chances.square().sum())


def _share_alike(tokens: Tensor) -> float:
    """How often one row of a table has what the row before it has; 0 if less than half, as few rows do by chance."""
    share = (tokens[1:] == tokens[:-1]).double().mean().nan_to_num().item()
    return share if share >= 0.5 else 0.0


def _may_agree(agree: float, among: int, draws: int) -> bool:
    """Whether two of some rows or calls, which agree in so many of their draws, can well do so in each of them."""
    return among**2 * agree**draws > FALSE


def _expect_counts(
    tokens: Tensor, scores: Tensor, settings: Mapping[str, Any], asked: str, otherwise: Mistake | None = None
) -> None:
    """How often tokens came that should not, each of the commonest ones, and all others together.

    Args:
        tokens: what was drawn.
        scores: of one row.
        settings: of the draws.
        asked: for the message.
        otherwise: the mistake to name whatever is found, if what draws is not `sample_next` itself.
    """
    inside = _inside(tokens, scores)
    expect(inside, Unexplained.VALUES, "the tokens", expected=f"from 0 to {len(scores) - 1}", got=tokens.flatten())
    right = _distribution(scores, **settings)
    left_out = tokens[right[tokens] == 0]
    if len(left_out):
        places = scores.argsort(descending=True).argsort()
        beyond = "top_k" in settings and bool((places[left_out] >= settings["top_k"]).any())
        mistake = m.sample_next.TOP_K if beyond else m.sample_next.TOP_P
        told = {"expected": "none", "got": f"{len(left_out)} of {len(tokens)}"}
        complain(otherwise or mistake, "draws of tokens that the settings leave out", asked=asked, **told)
    common = right.argsort(descending=True)[:_COMMONEST]
    counts = tokens.bincount(minlength=len(right))[common]
    counts = torch.cat((counts, (len(tokens) - counts.sum()).view(1)))
    chances = torch.cat((right[common], (1 - right[common].sum()).clamp(min=0).view(1)))
    if not _is_likely(counts, chances):
        told = {"expected": _rounded(chances), "got": _rounded(counts / len(tokens))}
        what = f"the shares of the {len(common)} likeliest tokens, and of all others,"
        complain(otherwise or Unexplained.VALUES, what, asked=asked, **told)
    # Of a wide vocabulary the likeliest are a few: does each quarter of it get what it should?
    quarters = 4 * torch.arange(len(right)) // len(right)
    counts, chances = quarters[tokens].bincount(minlength=4), torch.zeros(4).double().index_add(0, quarters, right)
    if not _is_likely(counts, chances):
        told = {"expected": _rounded(chances), "got": _rounded(counts / len(tokens))}
        complain(otherwise or Unexplained.VALUES, "the shares of the quarters of the vocabulary", asked=asked, **told)
    # Nothing shows a temperature in fewer draws than their mean score.
    mean, expected = scores[tokens].double().mean().item(), (right @ scores.double()).item()
    if not mean_is_likely(mean, len(tokens), scores, right):
        told = {"expected": f"about {expected:.3g}", "got": f"{mean:.3g}"}
        complain(otherwise or Unexplained.VALUES, "the mean of the scores that are drawn", asked=asked, **told)


_COMMONEST = 8


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


def _write(
    table: Tensor,
    prompt: list[int],
    length: int,
    eos_id: int | None,
    see: Callable[[list[int]], list[int]] = lambda tokens: tokens,
    begun: Callable[[list[int]], bool] = lambda prompt: True,
) -> list[int]:
    """One row, greedily: the prompt and `length` tokens, `eos_id` again and again once it has come."""
    tokens, ended = list(prompt), not begun(prompt)
    for _ in range(length):
        state = sum((token + 1) * (number**2 + 3) for number, token in enumerate(see(tokens), 1))
        token = eos_id if ended else int(table[state % len(table)].argmax())
        ended = ended or token == eos_id
        tokens.append(token)
    return tokens


def _cut(rows: list[list[int]], n: int, eos_id: int | None) -> list[list[int]]:
    """The rows up to where all of them have ended."""
    if eos_id is None:
        return rows
    ends = [row.index(eos_id, n) + 1 if eos_id in row[n:] else len(row) for row in rows]
    return [row[: max(ends)] for row in rows]


# (B, n, length, eos_id, V); the first with an end has so many rows that no two mistakes give the same.
_PROMPTS = [
    (4, 4, 6, None, 6),
    (24, 4, 9, 2, 6),
    (3, 2, 9, 1, 5),
    (2, 5, 12, 3, 4),
    (1, 1, 5, None, 7),
    (1, 3, 14, 0, 4),
    (5, 2, 1, 2, 6),
]


def check_generate(function: Callable) -> None:
    """Greedy texts of a toy that tires when positions are computed again; settings and generator passed on.

    A right answer is turned down less than once in a million runs: of about a thousand counts each is outside its
    bounds with a probability of 2 · FALSE, and two rows agree throughout still more rarely.
    """
    _expect_sampling(function)
    for batch, n, length, eos_id, vocab in _PROMPTS:
        for _ in range(3):
            _check_text(function, batch, n, length, eos_id, vocab)
    vocab = drawn(40, 2000)
    _check_text(function, drawn(2, 4), drawn(250, 400), drawn(80, 150), None, vocab)
    _check_text(function, drawn(260, 400), drawn(7, 12), drawn(5, 9), drawn(10, vocab - 1), vocab)
    _check_text(function, drawn(6, 9), drawn(7, 12), drawn(60, 90), drawn(10, 13), 14)
    _check_text(function, 1, drawn(1, 9), drawn(520, 640), None, drawn(3, 9))
    _check_text(function, drawn(10, 40), drawn_wide(13, 200), drawn_wide(13, 60), None, vocab)
    _check_text(function, drawn_wide(10, 200), drawn(2, 9), drawn(5, 12), drawn(0, 4), 5)
    for lot, n in _text_lots():
        _expect_text_lot(function, lot, n)
    for eos_id in (0, drawn(1, 7)):
        _expect_ends(function, eos_id)
    for kinds in (("top_k",), ("temperature", "top_p")):
        for generator in (False, True):
            _expect_settings_beside_ends(function, kinds, generator)
    prompt = randint(0, 5, (2, 3))
    model = place(_make_toy, beside=function)(randn(97, 5, dtype=torch.float32), 100)
    expect_close(call(function, model, prompt, 0, temperature=0), prompt, "the result for length 0, the prompt itself,")
    recorded = place(_make_toy, beside=function)(randn(97, 5, dtype=torch.float32), 100)
    call(function, recorded, prompt, 4, temperature=0)
    expect(not recorded.recorded, m.generate.GRADIENTS)


def _check_text(function: Callable, batch: int, n: int, length: int, eos_id: int | None, vocab: int) -> None:
    table = randn(97, vocab, dtype=torch.float32)
    prompt = randint(0, vocab, (batch, n))
    rows = prompt.tolist()

    def written(**changes: Any) -> list[list[int]]:
        return _cut([_write(table, row, length, eos_id, **changes) for row in rows], n, eos_id)

    def without_end(got: Tensor) -> Tensor:
        # Beyond the end the toy is tired, and what it says there is of no use: the length tells.
        goes_on = len(right[0]) < n + length == got.shape[1]
        return got if goes_on else torch.tensor([_write(table, row, length, None) for row in rows])

    def anywhere() -> Tensor:
        """The end looked for in the prompt too, once a token is written."""
        ends = [n if eos_id in row[:n] else row.index(eos_id, n) if eos_id in row[n:] else n + length for row in right]
        found = [[*row[: end + 1], *[eos_id] * (len(row) - end - 1)] for row, end in zip(right, ends, strict=True)]
        return torch.tensor(found)[:, : max(ends) + 1]

    right = written()
    # Computing the last token too is no mistake.
    model = place(_make_toy, beside=function)(table, batch * len(right[0]))
    with unchanged(prompt=prompt):
        tokens = call(function, model, prompt, length, eos_id=eos_id, temperature=0)
    begun = (lambda row: eos_id not in row, lambda row: row[-1] != eos_id)  # an end anywhere, or as the newest token
    wrong = {
        m.generate.NO_CACHES: lambda: torch.tensor(written(see=lambda t: t if len(t) == n else t[-1:])),
        m.generate.PROMPT_UNREAD: lambda: torch.tensor(written(see=lambda t: t[n - 1 :])),
        m.generate.OLD_CACHES: lambda: torch.tensor(written(see=lambda t: t[:n] + t[n:][-1:])),
        m.generate.LAST_AGAIN: lambda: torch.tensor(written(see=lambda t: t[:n] + t[n - 1 :])),
        m.generate.EOS_IN_PROMPT: lambda: nearest(
            tokens, anywhere(), *(torch.tensor(written(begun=one)) for one in begun)
        ),
    }
    if eos_id == 0:
        wrong[m.generate.EOS_OF_0] = lambda: without_end(tokens)
    asked = f"a prompt {(batch, n)}, length {length}, eos_id {eos_id} and temperature 0"
    expect_close(tokens, torch.tensor(right), "what is written", wrong, torch.int64, asked=asked)


_TEXT_LOTS = [
    _Lot(4000, (90, 120), (9, 12), ()),  # where a softmax too many looks like nothing else
    _Lot(1800, (30, 60), (5, 12), ("top_k",)),
    _Lot(1800, (30, 60), (5, 12), ("temperature",)),
]
_TEXT_ROWS = [(1, 1), (2, 20), (21, 90)]  # fewer than are drawn: there are two steps or more
_TEXT_LENGTHS = [(1, 1), (2, 9), (10, 60)]
_TEXT_DRAWS = (100, 150)


def _text_lots() -> Iterator[tuple[_Lot, int]]:
    """Each kind of settings, with a generator and without, for one row and many; and how long the prompts are."""
    for lot in _TEXT_LOTS:
        yield lot, drawn_wide(1, 60)
    for kinds in _KINDS:
        start, draws = drawn(0, 3), _TEXT_DRAWS["temperature" in kinds]
        for number, (rows, n) in enumerate(_pairs(_TEXT_ROWS, _TEXT_LENGTHS)):
            vocab = (20, 60) if "temperature" in kinds else (12, 1000)
            named, generator = _named(kinds, number + start // 2), (start + number) % 2 == 1
            yield _Lot(draws, (rows, rows), vocab, named, generator=generator), n


def _expect_text_lot(function: Callable, lot: _Lot, n: int) -> None:
    """Of a toy with the same scores everywhere: each step draws, for each row on its own, by the settings."""
    rows, length, vocab = lot.sizes()
    scores, settings = _scores(vocab, lot.kinds)
    level = place(_make_toy, beside=function)(scores.expand(97, -1).clone(), 10**6)
    prompt = randint(0, len(scores), (rows, n))
    asked = f"a prompt {(rows, n)}, length {length}, {listed(settings)}" + ", and a generator" * lot.generator
    text = call(function, level, prompt, length, **settings, **lot.chance())
    expect_tensor(text, (rows, n + length), torch.int64, "what is written", asked)
    expect(level.computed <= rows * (n + length), m.generate.COMPUTED_AGAIN, asked=asked)
    expect(not level.recorded, m.generate.GRADIENTS, asked=asked)
    steps = text[:, n:].T
    right, shown = _distribution(scores, **settings), steps.unique(return_counts=True)
    counts = torch.zeros(len(scores), dtype=torch.long).scatter_add(0, *shown) if _inside(steps, scores) else None
    same = rows - len(steps.T.unique(dim=0))
    off: Complaint | None = None
    try:
        _expect_counts(steps.flatten(), scores, settings, asked, m.generate.SETTINGS)
    except Complaint as complaint:
        off = complaint
    for mistake, wrong in (
        (m.generate.SOFTMAX, _distribution(scores.softmax(-1), **settings)),
        (m.generate.TEMPERATURE_TWICE, _distribution(scores / settings.get("temperature", 1.0), **settings)),
        (m.generate.SETTINGS, _distribution(scores)),
    ):
        # Rows that agree at every step are no draws of their own, whatever their shares look like.
        if mistake is m.generate.SOFTMAX and "temperature" in settings:
            continue  # which flattens as another one would
        possible = not same or _may_agree(_agreement(wrong), rows, length)
        if off and counts is not None and possible and _fits(counts, wrong, right):
            told = {"expected": _rounded(right), "got": _rounded(counts / counts.sum())}
            complain(mistake, "the share of each token", asked=asked, **told)
    expect((steps != scores.argmax()).any(), m.generate.GREEDY, asked=asked)
    expect((steps != steps[:1]).any(), m.generate.STEPS_ALIKE, asked=asked)
    expect(not same or _may_agree(_agreement(right), rows, length), m.generate.ONE_FOR_ALL, asked=asked)
    if off:
        raise off


def _expect_ends(function: Callable, eos_id: int) -> None:
    """Rows end where the token is drawn, and no other: of a toy with the same scores everywhere."""
    scores = 0.4 * randn(8)
    scores[eos_id] = scores.max()
    scores, settings = scores.float(), {"temperature": drawn_between(1.5, 2.5)}
    level = place(_make_toy, beside=function)(scores.expand(97, -1).clone(), 10**6)
    prompt, length = randint(0, 8, (drawn(500, 700), drawn_wide(1, 60))), drawn(4, 7)
    asked = f"a prompt {tuple(prompt.shape)}, length {length}, eos_id {eos_id}, {listed(settings)}"
    chance = {"generator": torch.Generator().manual_seed(eos_id)} if eos_id else {}
    text = call(function, level, prompt, length, eos_id=eos_id, **settings, **chance)
    expect_tensor(text, (len(prompt), prompt.shape[1] + length), torch.int64, "what is written", asked)
    steps = text[:, prompt.shape[1] :]
    ended = ((steps == eos_id).cumsum(1) - (steps == eos_id).long()) > 0
    expect((steps[ended] == eos_id).all(), m.generate.ENDED_GOES_ON, asked=asked)
    # Of those that have not ended, each step is a draw of its own.
    for step in range(3):
        _expect_counts(
            steps[:, step][~ended[:, step]], scores, settings, f"{asked}, step {step + 1}", m.generate.SETTINGS
        )


def _expect_settings_beside_ends(function: Callable, kinds: Collection[str], generator: bool) -> None:
    """Rows that end, which few do at each step, draw by the settings until then; the token that ends them is rare."""
    rarest = 1.0
    while rarest > 0.1:
        scores, settings = _scores(drawn(20, 30), kinds)
        right = _distribution(scores, **settings)
        rarest, eos_id = right.masked_fill(right == 0, math.inf).min(0)
    level = place(_make_toy, beside=function)(scores.expand(97, -1).clone(), 10**6)
    prompt, length = randint(0, len(scores), (drawn(500, 700), drawn_wide(1, 60))), drawn(12, 20)
    asked = f"a prompt {tuple(prompt.shape)}, length {length}, eos_id {int(eos_id)}, {listed(settings)}"
    asked += ", and a generator" * generator
    chance = {"generator": torch.Generator().manual_seed(length)} if generator else {}
    text = call(function, level, prompt, length, eos_id=int(eos_id), **settings, **chance)
    expect_tensor(text, (len(prompt), prompt.shape[1] + length), torch.int64, "what is written", asked)
    steps = text[:, prompt.shape[1] :]
    ended = ((steps == eos_id).cumsum(1) - (steps == eos_id).long()) > 0
    for step in (0, length - 1):
        on = f"{asked}, step {step + 1}"
        _expect_counts(steps[:, step][~ended[:, step]], scores, settings, on, m.generate.SETTINGS)
    expect(not level.recorded, m.generate.GRADIENTS, asked=asked)


def _expect_sampling(function: Callable) -> None:
    """Settings reach the draw, and the generator decides it."""
    # The scores of each place lie 1/4 apart: at a temperature of 1e-4 the second never comes.
    table = 0.25 * randn(97, 8, dtype=torch.float32).argsort(dim=1).float()
    prompt = randint(0, 8, (40, drawn_wide(1, 60)))

    def run(**settings: Any) -> Tensor:
        return call(function, place(_make_toy, beside=function)(table, 10**6), prompt, 5, **settings)

    greedy = run(temperature=0)
    for settings in ({"temperature": 0}, {"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        text, asked = run(**settings), listed(settings)
        expect_close(text, greedy, "what is written", asked=asked, otherwise=m.generate.SETTINGS)
    expect(not torch.equal(run(), greedy), m.generate.GREEDY)
    # With the same scores everywhere only the noise differs from step to step.
    level = place(_make_toy, beside=function)(table[:1].expand(97, 8).clone(), 10**6)
    steps = call(function, level, prompt, 5, generator=torch.Generator().manual_seed(5))[:, prompt.shape[1] :]
    expect(not (steps == steps[:, :1]).all(), m.generate.STEPS_ALIKE)
    for kinds in ((), ("top_k", "top_p")):  # a low temperature, taken twice, would leave one token
        scores, settings = _scores(drawn(9, 40), kinds)
        level = place(_make_toy, beside=function)(scores.expand(97, -1).clone(), 10**6)
        run_again = partial(_written_with, function, level, randint(0, 9, (40, drawn_wide(1, 60))), settings)
        expect_drawn_from_generator(run_again, function, listed(settings))


def _written_with(
    function: Callable, model: Any, prompt: Tensor, settings: Mapping[str, Any], generator: torch.Generator | None
) -> Tensor:
    options = {} if generator is None else {"generator": generator}
    text = call(function, model, prompt, 15, **settings, **options)
    expect_tensor(text, (40, prompt.shape[1] + 15), torch.int64, "what is written", listed(settings))
    return text


# ---- a head that copies


def _induction(weights: Tensor, tokens: Tensor, rows: Callable[[int], int] = lambda b: b, least: int = 1) -> Tensor:
    """The formula, position by position; `rows` says whose tokens decide for a row, a copy lies `least` places back."""
    found = [weights.new_zeros(weights.shape[1])]
    for b in range(len(tokens)):
        row = tokens[rows(b)].tolist()
        for i, token in enumerate(row):
            copies = [j for j in range(i + 1 - least) if row[j] == token]
            if copies:
                latest = copies[-1]
                found.append(weights[b, :, i, latest + 1])
    return torch.stack(found).sum(0) / max(len(found) - 1, 1)


def _row_by_row(weights: Tensor, tokens: Tensor) -> Tensor:
    return torch.stack([_induction(w.unsqueeze(0), t.unsqueeze(0)) for w, t in zip(weights, tokens, strict=True)]).mean(
        0
    )


def _without_zeros(weights: Tensor, tokens: Tensor) -> Tensor:
    """The wrong score that is the mean of those weights alone that are not 0."""
    counted = _induction((weights != 0).to(weights.dtype), tokens)
    return torch.where(counted > 0, _induction(weights, tokens) / counted, 0.0)


def check_induction_score(function: Callable) -> None:
    """Values for rows with many repetitions and with few, gradients; a batch in which nothing comes back."""
    # In the second row 1, 0 and 2 are new, and who has not forgotten the first one finds them there, but for the last.
    apart = torch.tensor([[0, 1, 2, 3], [1, 0, 2, 4]])
    weights = rand_weights(2, 3, 4, 4)
    value = call(function, weights, apart)
    joined = torch.stack([weights[1, :, i, j] for i, j in ((0, 2), (1, 1), (2, 3))]).mean(0)
    expect_tensor(value, (3,), name="the scores")
    found_there = torch.allclose(value.double(), joined)
    told = {"asked": "tokens [[0, 1, 2, 3], [1, 0, 2, 4]]", "expected": [0.0, 0.0, 0.0], "got": value}
    expect(not found_there, m.induction_score.ROWS_JOINED, "the scores", **told)
    fresh = torch.stack([torch.randperm(9) for _ in range(3)])
    value = call(function, rand_weights(3, 2, 9, 9), fresh)
    told = {"expected": [0.0, 0.0], "got": value}
    expect_tensor(value, (2,), name="the scores")
    expect(not value.isnan().any(), m.induction_score.NOTHING_REPEATED, "the scores", **told)
    expect_close(value, torch.zeros(2).double(), "the scores where no token comes back")
    cases = []
    for batch, heads, n, vocab in (
        (4, 4, 4, 3),
        (3, 2, 9, 4),
        (2, 3, 12, 20),
        (1, 5, 7, 2),
        (5, 1, 6, 5),
        (2, 2, 1, 3),
    ):
        tokens = randint(0, vocab, (batch, n))
        tokens[0] = torch.arange(n) % 3  # every row has repetitions of its own, and one of them for sure
        cases.append({"weights": rand_weights(batch, heads, n, n), "tokens": tokens})
    # Long texts, wide vocabularies and many rows; in the first a token comes back after a hundred positions or so.
    for batch, heads, n, vocab in (
        (drawn(1, 2), drawn(1, 3), drawn(520, 600), drawn(10_000, 30_000)),
        (drawn(40, 70), drawn(13, 20), drawn(20, 30), drawn(5, 60)),
    ):
        tokens = randint(0, vocab, (batch, n))
        tokens[:, -30:] = tokens[:, :30]
        # Of sizes about 1: means of 1/n lie so near to each other that one mistake passes for another.
        cases.append({"weights": n * rand_weights(batch, heads, n, n), "tokens": tokens})
    # Lengths between the others, and a row in which nothing comes back.
    for batch, heads, n in ((2, drawn(1, 3), drawn_medium()), (drawn(6, 9), drawn(6, 12), drawn_wide(31, 160))):
        tokens = randint(0, drawn(5, 60), (batch, n))
        tokens[0, :2], tokens[1] = 0, torch.arange(n)
        between = {"weights": n * rand_weights(batch, heads, n, n), "tokens": tokens}
        cases.append(between)
    # Every second position looks at itself alone, so that some of the weights that count are 0.
    tokens = (torch.arange(10) % 3).expand(2, 10)
    weights = rand_weights(2, 2, 10, 10)
    weights[..., ::2, :] = torch.eye(10, dtype=weights.dtype)[::2]
    cases.append({"weights": weights, "tokens": tokens.clone()})
    wrong = {
        m.induction_score.NOT_0_ALONE: _without_zeros,
        m.induction_score.FIRST_ROW: lambda w, t: _induction(w, t, lambda b: 0),
        m.induction_score.FIRST_ROW_ALONE: lambda w, t: _induction(w[:1], t[:1]),
        m.induction_score.LAST_ROW_ALONE: lambda w, t: _induction(w[-1:], t[-1:]),
        m.induction_score.ROW_BY_ROW: _row_by_row,
        m.induction_score.ADJACENT: lambda w, t: _induction(w, t, least=2),
    }
    expect_matches(function, _induction, cases[1:] + cases[:1], wrong, "the scores", device=False)
    expect_gradients(function, _induction, between)
    inputs = [tensor.to("meta") for tensor in cases[0].values()]
    expect_elsewhere(lambda: function(*inputs))
