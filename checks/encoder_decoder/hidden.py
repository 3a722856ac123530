"""The hidden tests of chapter 09."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Credit,
    Unexplained,
    alike,
    build,
    call,
    complain,
    describe_call,
    expect,
    expect_accepted,
    expect_close,
    expect_device,
    expect_dropout_anew,
    expect_gradients,
    expect_parameter_gradients,
    expect_parameters,
    expect_same_in_eval,
    expect_tensor,
    expect_trained,
    found,
    named_buffers,
    named_parameters,
    outcome_of,
    place,
    randint,
    randn,
    said,
    set_weights,
    unchanged,
)
from autograder.checks import draw_size as drawn
from checks.chance import drawn_medium
from checks.encoder_decoder import mistakes as m
from checks.formulas import feed_forward, layer_norm, multi_head_attention

State = dict[str, Tensor]

# √d may be a float32 number, and so may what the earlier chapters' attention and norms divide by: that is right to its
# own precision.
_FLOAT32 = 2e-5


_TIED = ("decoder.embedder.embedding.weight", "output.weight")


def _randomise(module: nn.Module, shapes: Mapping[str, Sequence[int]], pad_id: int) -> State:
    """Give a module random weights, in float64, with these names and shapes; the pad row of each embedding is zero.

    Returns:
        The weights. What is tied is there under both names.
    """
    state = {name: 0.5 * randn(*shape) for name, shape in shapes.items()}
    for name, value in state.items():
        if "embedding" in name:
            value[pad_id] = 0.0
    table, output = _TIED
    state |= {output: state[table]} if table in state else {}
    set_weights(module, state)
    return state


def _randomise_positions(module: nn.Module, prefixes: Sequence[str], dim: int) -> State:
    """Give each PositionEncoding of a module a table of random numbers, which no sinusoids can stand for."""
    buffers = named_buffers(module)
    names = [f"{prefix}positions.pe" for prefix in prefixes]
    for name in names:
        expect(name in buffers, Common.PARAMETER_MISSING, f"the buffer `{name}`")
        expect_tensor(buffers[name], (len(buffers[name]), dim), name=f"the buffer `{name}`")
    state = {name: randn(*buffers[name].shape) for name in names}
    set_weights(module, state)
    buffers, saved = named_buffers(module), module.state_dict()
    for name in names:
        if name not in saved:  # chapter 05 does not ask that the table be saved
            buffers[name].copy_(state[name])
    return state


# ---- clones


def make_toy():
    """A module with parameters of several kinds and a buffer."""
    toy = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.BatchNorm1d(4)), nn.Linear(4, 2, bias=False))
    toy.kept = nn.Parameter(torch.randn(2, 3))
    return toy


def make_tied():
    """Two layers that share one weight."""
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return nn.Sequential(first, second)


def at_work(module):
    """Frozen, in evaluation mode, and with a value that no constructor gives."""
    module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    module.note = "seen"
    return module


def set_first(module):
    """Write into the first parameter."""
    with torch.no_grad():
        next(module.parameters()).fill_(7.0)


def check_clones(function: Callable) -> None:
    """Counts, equal starts, independence of each other and of the original, settings kept."""
    for count in (1, 2, 5, drawn(41, 70)):
        original = place(make_toy, beside=function)()
        before = original.state_dict()
        copies = call(function, original, count)
        _expect_copies(copies, before, count)
        _expect_to_compute(original, copies, count)
    copies = call(function, place(make_toy, beside=function)(), 0)
    empty = isinstance(copies, nn.ModuleList) and len(copies) == 0
    expect(empty, Unexplained.NUMBER, "the result", asked="count 0", expected="an empty nn.ModuleList")
    _check_settings(function)


def _expect_copies(copies: Any, before: State, count: int) -> None:
    asked = f"count {count}"
    told = {"asked": asked, "expected": count, "got": len(copies) if isinstance(copies, nn.ModuleList) else "no list"}
    expect(told["got"] == count, Unexplained.NUMBER, "the number of copies", **told)
    for i in range(count):
        state = copies[i].state_dict()
        same = state.keys() == before.keys() and all(torch.equal(value, before[name]) for name, value in state.items())
        expect(same, Unexplained.VALUES, f"the weights with which copy {i} starts", asked=asked)
    names = {name for name, _ in copies.named_parameters()}
    wanted = {f"{i}.{name}" for i in range(count) for name in ("kept", "0.weight", "0.bias", "2.weight")}
    missing = sorted(wanted - names)
    expect(not missing, Unexplained.NUMBER, f"`{missing[0]}` is no parameter of its own" if missing else "")


_TOY_SHAPES = {
    "kept": (2, 3),
    "0.weight": (4, 3),
    "0.bias": (4,),
    "1.1.weight": (4,),
    "1.1.bias": (4,),
    "1.1.running_mean": (4,),
    "1.1.running_var": (4,),
    "2.weight": (2, 4),
}


def _toy(state: State, x: Tensor) -> Tensor:
    """What `make_toy`'s module computes in evaluation mode."""
    parts = (state[f"1.1.{name}"] for name in ("running_mean", "running_var", "weight", "bias"))
    return F.batch_norm(F.linear(x, state["0.weight"], state["0.bias"]).relu(), *parts) @ state["2.weight"].mT


def _expect_to_compute(original: nn.Module, copies: nn.Module, count: int) -> None:
    """Each copy and the original get weights, one after the other; then each computes with its own."""
    modules = {f"copy {i}": copies[i] for i in range(count)} | {"the original": original}
    states = {}
    for name, module in modules.items():
        states[name] = {part: 0.5 * randn(*shape) for part, shape in _TOY_SHAPES.items()}
        states[name]["1.1.running_var"].abs_().add_(0.1)
        set_weights(module.eval(), states[name])
    # Looked up anew: what was written into a copy is there when one looks again.
    for name, module in zip(modules, [*(copies[i] for i in range(count)), original], strict=True):
        x = randn(5, 3)
        expect_close(call(module, x), _toy(states[name], x), f"after new weights for all of them, the result of {name}")


def _check_settings(function: Callable) -> None:
    tied = call(function, place(make_tied, beside=function)(), 2)
    names = sorted(name for name, _ in tied.named_parameters())
    what = "the parameters of two copies of two layers that share a weight"
    expect(len(names) == 6, m.clones.NOT_WHOLE, what, expected=6, got=len(names))
    source = place(at_work, beside=function)(place(make_toy, beside=function)())
    first = call(function, source, 2)[1]
    expect(not first.training, m.clones.NOT_WHOLE, "the original is in eval mode, the copy is not")
    frozen = not any(parameter.requires_grad for _, parameter in first.named_parameters())
    expect(frozen, m.clones.NOT_WHOLE, "the original's parameters are frozen, those of the copy are not")
    noted = getattr(first, "note", None) == "seen"
    expect(noted, m.clones.NOT_WHOLE, "an attribute of the original is missing in its copy")


# ---- Embedder


def check_embedder(cls: Callable) -> None:
    """Start, values, the pad row, gradients."""
    wide = (drawn(10_000, 40_000), drawn(2, 9), drawn(1000, 9999)), (drawn(9, 60), drawn(70, 600), drawn(0, 8))
    for vocab, dim, pad_id in ((6, 6, 1), (11, 4, 0), (5, 8, 4), (7, 1, 2), (9, 9, 3), *wide):
        module = call(cls, vocab, dim, pad_id)
        expect_parameters(module, {"embedding.weight": (vocab, dim)})
        row = module.state_dict()["embedding.weight"][pad_id]
        asked = f"vocab_size {vocab}, dim {dim} and pad_id {pad_id}"
        expect(not row.any(), Unexplained.VALUES, f"row {pad_id} at the start", asked=asked, expected="all 0", got=row)
        for dtype in (torch.float32, torch.float64):
            _check_embedder_values(module, vocab, dim, pad_id, dtype)
    _check_embedder_start(cls)
    _check_embedder_gradient(cls)
    module = call(cls, 6, 4, 1)
    expect_device(module.to("meta"), {"tokens": randint(0, 6, (2, 3))})


def _check_embedder_values(module: nn.Module, vocab: int, dim: int, pad_id: int, dtype: torch.dtype) -> None:
    table = _randomise(module, {"embedding.weight": (vocab, dim)}, pad_id)["embedding.weight"]
    module.to(dtype)
    for shape in ((2, 3), (1, 5), (4, 1), (2, drawn(90, 300))):
        tokens = randint(0, vocab, shape)
        tokens[0, 0] = pad_id
        with unchanged(tokens=tokens):
            value = call(module, tokens)
        right = table.to(dtype).double()[tokens] * math.sqrt(dim)
        tolerance = _FLOAT32 if dtype == torch.float64 else None
        asked = f"tokens {shape}, vocab_size {vocab} and dim {dim}"
        expect_close(value, right, "the result", None, dtype, tolerance, asked)


def _check_embedder_start(cls: Callable) -> None:
    for dim in (16, 64):
        table = call(cls, 800, dim, 3).state_dict()["embedding.weight"]
        table = torch.cat([table[:3], table[4:]]).double()
        spread, right = table.std().item(), dim**-0.5
        told = {"asked": f"dim {dim}", "expected": right, "got": spread}
        mistake = m.Embedder.ONE_OVER_D if math.isclose(spread, 1 / dim, rel_tol=0.1) else Unexplained.NUMBER
        expect(math.isclose(spread, right, rel_tol=0.06), mistake, "the standard deviation at the start", **told)
        mean = table.mean().item()
        told = {"asked": f"dim {dim}", "expected": "about 0", "got": mean}
        expect(abs(mean) < 0.1 * right, m.Embedder.NOT_AROUND_0, "the mean at the start", **told)
        outside = (table.abs() > 1.9 * right).double().mean().item()
        expect(0.02 < outside < 0.12, m.Embedder.NOT_NORMAL, asked=f"dim {dim}")


def _check_embedder_gradient(cls: Callable) -> None:
    module = call(cls, 6, 4, 2)
    table = _randomise(module, {"embedding.weight": (6, 4)}, 2)["embedding.weight"]
    tokens = torch.tensor([[5, 2, 0], [1, 5, 2]])
    direction = randn(2, 3, 4)
    expected = torch.zeros_like(table).index_put_((tokens,), 2 * direction, accumulate=True)
    expected[2] = 0.0
    for mode, asked in ((True, ""), (False, "a call after `.eval()`")):
        module.train(mode)
        module.zero_grad()
        with torch.enable_grad():
            value = call(module, tokens)
            expect(value.requires_grad, Common.CUT_OFF, asked=asked)
            (value * direction).sum().backward()
        gradient = named_parameters(module)["embedding.weight"].grad
        expect(gradient is not None, Common.PARAMETER_UNUSED, "the table", asked=asked)
        expect_close(gradient, expected, "the gradient of the table", tolerance=_FLOAT32, asked=asked)

    def look_up(state: State, tokens: Tensor) -> Tensor:
        return 2 * _without_pad_row(state, "embedding.weight", 2)["embedding.weight"][tokens]

    expect_trained(module, look_up, {"embedding.weight": table}, [tokens])
    after = call(module.eval(), tokens)
    expect_close(after, 2 * table[tokens], "after `.eval()`, where nothing changes, the result", tolerance=_FLOAT32)


# ---- masks

_TOKENS = [
    # (tokens, pad_id): an equal number of sequences and positions first.
    (torch.tensor([[5, 6, 1, 1], [7, 1, 1, 1], [4, 0, 9, 1], [2, 3, 4, 5]]), 1),
    (torch.tensor([[5, 6, 7, 0, 0], [3, 0, 0, 0, 0]]), 0),
    (torch.tensor([[9, 9, 2], [2, 9, 4], [1, 3, 5], [9, 4, 9], [4, 5, 9]]), 9),  # padding in front, and between
    (torch.tensor([[1, 0, 3, 3]]), 3),
    (torch.tensor([[4], [1], [0]]), 1),
    (torch.tensor([[1, 1, 1], [1, 4, 0]]), 1),
    (torch.tensor([[-1, 2, 3, -1], [1, 0, 5, -1]]), -1),
    (torch.tensor([[1, 5, 6, 1], [7, 3, 1, 1], [4, 1, 9, 1], [2, 3, 1, 5]]), 1),  # sizes that were there before
]


def check_target_mask(function: Callable) -> None:
    """Values for padding anywhere, lengths that differ, other devices."""
    pad_id = drawn(0, 90)
    lengths = (drawn(41, 99), drawn(61, 200), drawn(201, 600), drawn(601, 900))
    many = [_sentences(100, pad_id, (3, n), [n, drawn(1, n), n - 1]) for n in lengths]
    for tokens, pad_id in (*_TOKENS, *((tokens, pad_id) for tokens in many)):
        n, real = tokens.shape[1], tokens != pad_id
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        for dtype in (torch.int64, torch.int32):
            given = tokens.to(dtype, copy=True)  # the cases serve the next answer too, whatever this one does to them
            with unchanged(tokens=given):
                mask = call(function, given, pad_id)
            wrong = {m.target_mask.PAD_ID: lambda t=tokens, c=causal: (t != 0)[:, None] & c}
            asked = f"tokens {tuple(tokens.shape)} and pad_id {pad_id}"
            expect_close(mask, real[:, None] & causal, "the mask", wrong, torch.bool, asked=asked)
    # `causal_mask` of chapter 3 works on the CPU, so a tensor made there is no mistake; leaving it there is.
    try:
        elsewhere = function(_TOKENS[0][0].to("meta"), 1)
    except RuntimeError as error:
        complain(Common.MADE_ON_CPU, "the two masks meet", got=str(error))
    expect(elsewhere.device.type == "meta", Common.MADE_ON_CPU, "the mask")


# ---- the parts of the layers, in float64


@dataclass(frozen=True)
class _Layer:
    """What a layer is put together from: `name` is its prefix in the state dict."""

    state: State
    heads: int
    name: str = ""

    def norm(self, number: int) -> Callable[[Tensor], Tensor]:
        return lambda x: layer_norm(self.state, f"{self.name}norm_{number}", x)

    def attend(self, part: str, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        return multi_head_attention(self.state, f"{self.name}{part}.", queries, keys, self.heads, mask, values)

    def feed(self, x: Tensor) -> Tensor:
        return feed_forward(self.state, f"{self.name}feed_forward.", x)


def _in_turn(x: Tensor, sublayers: Sequence[Callable], norms: Sequence[Callable]) -> Tensor:
    """Pre-norm: x + sublayer(norm(x)) again and again."""
    for sublayer, norm in zip(sublayers, norms, strict=True):
        x = x + sublayer(norm(x))
    return x


# ---- the layers


def _layer_shapes(dim: int, hidden: int, attentions: Sequence[str], norms: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for attention in attentions:
        shapes |= {f"{attention}.{name}.weight": (dim, dim) for name in ("Wq", "Wk", "Wv", "WO")}
        shapes |= {f"{attention}.{name}.bias": (dim,) for name in ("Wq", "Wk", "Wv", "WO")}
    for i in range(1, norms + 1):
        shapes |= {f"norm_{i}.weight": (dim,), f"norm_{i}.bias": (dim,)}
    shapes |= {"feed_forward.inner.weight": (hidden, dim), "feed_forward.inner.bias": (hidden,)}
    return shapes | {"feed_forward.outer.weight": (dim, hidden), "feed_forward.outer.bias": (dim,)}


_ENCODER_SHAPES = partial(_layer_shapes, attentions=("attention",), norms=2)
_DECODER_SHAPES = partial(_layer_shapes, attentions=("self_attention", "source_attention"), norms=3)


def _make_layer(
    cls: Callable,
    sizes: tuple[int, int, int],
    shapes: Callable,
    dtype: torch.dtype = torch.float64,
    dropout: float = 0.0,
) -> tuple[nn.Module, State]:
    """A layer with random weights, once its parameters are those promised; `sizes` are dim, heads and hidden."""
    return build(lambda: cls(*sizes, dropout=dropout), shapes(sizes[0], sizes[2]), dtype=dtype)


def _encoder_parts(p: _Layer, mask: Tensor | None) -> tuple[list[Callable], list[Callable]]:
    return [lambda h: p.attend("attention", h, h, h, mask), p.feed], [p.norm(1), p.norm(2)]


def _encoder_layer(p: _Layer, x: Tensor, mask: Tensor | None) -> Tensor:
    return _in_turn(x, *_encoder_parts(p, mask))


def _ends(lengths: Sequence[int], longest: int) -> Tensor:
    """A padding mask `(B, 1, m)` for sequences of these lengths."""
    return (torch.arange(longest) < torch.tensor(lengths)[:, None])[:, None]


_EVERYTHING = torch.ones(1, 1, 1, dtype=torch.bool)  # a mask that allows all there is


def _check_layer_dropout(
    cls: Callable, shapes: Callable, attentions: Sequence[str], given: Callable, oracle: Callable[..., Tensor]
) -> None:
    """Off in evaluation; on each sublayer's output before the sum, and inside each sublayer; 0.1 when not given."""
    x = randn(20, 3, 6)  # so many that something is left of each sublayer, and something of it dropped
    module, state = _make_layer(cls, (6, 2, 5), shapes, dropout=0.5)
    expect_same_in_eval(module, given(x), "the layer", oracle(_Layer(state, 2), *given(x)), _FLOAT32)

    # With dropout 1 nothing of a sublayer's output survives, wherever else the layer drops something.
    module, _ = _make_layer(cls, (6, 2, 5), shapes, dropout=1.0)
    y, asked = call(module.train(), *given(x)), "dropout 1.0, while training"
    expect_close(y, x, "the result", asked=asked)

    # One sublayer is left, the others give 0: what survives of it would be doubled, were nothing dropped inside.
    ends = [*(f"{attention}.WO" for attention in attentions), "feed_forward.outer"]
    for end in ends:
        module, state = _make_layer(cls, (6, 2, 5), shapes, dropout=0.5)
        silent = [name for name in state if name.startswith(tuple(set(ends) - {end}))] + [f"{end}.bias"]
        state |= {name: torch.zeros_like(state[name]) for name in silent}
        set_weights(module, state)
        added = call(module.train(), *given(x)) - x
        doubled = 2 * (oracle(_Layer(state, 2), *given(x)) - x)
        inside = not torch.allclose(added, torch.where(added == 0, 0.0, doubled), atol=1e-6)
        part = end.partition(".")[0]
        expect(
            inside, m.DecoderLayer.DROPOUT_NOT_INSIDE, f"it was seen in `{part}`", asked="dropout 0.5, while training"
        )

    alike, many = given(x[:1].repeat(6, 1, 1)), given(randn(2, drawn_medium(), 6))
    expect_dropout_anew(lambda rate: _make_layer(cls, (6, 2, 5), shapes, dropout=rate)[0], alike, many)
    _check_dropped_once(cls, shapes, ends, oracle)

    # Only the biases are left of each sublayer; dropped with probability 0.1, or divided by 0.9.
    module = call(cls, 1, 1, 1)
    state = {name: torch.zeros(shape) for name, shape in shapes(1, 1).items()}
    state["feed_forward.outer.bias"] = torch.ones(1)
    set_weights(module, state, torch.float32)
    y = call(module.train(), *given(torch.zeros(20, 100, 1)))
    share = (y == 0).double().mean().item()
    expect(abs(share - 0.1) < 0.05, m.DecoderLayer.DEFAULT, "the share that is dropped", expected=0.1, got=share)


def _check_dropped_once(cls: Callable, shapes: Callable, ends: Sequence[str], oracle: Callable[..., Tensor]) -> None:
    """With one key, head and hidden feature, what a sublayer adds is 0 or doubled twice: inside and on its output."""
    x = randn(1, 1, 6).repeat(200, 1, 1)
    given = x, randn(1, 1, 6).repeat(200, 1, 1), _EVERYTHING, _EVERYTHING
    for end in ends:
        module, state = _make_layer(cls, (6, 1, 1), shapes, dropout=0.5)
        silent = [name for name in state if name.startswith(tuple(set(ends) - {end}))] + [f"{end}.bias"]
        state |= {name: torch.zeros_like(state[name]) for name in silent}
        state["feed_forward.inner.bias"] = torch.full_like(state["feed_forward.inner.bias"], 30.0)  # above 0, as it is
        set_weights(module, state)
        added = call(module.train(), *given) - x
        twice = 4 * (oracle(_Layer(state, 1), *given) - x)
        once = torch.isclose(added, torch.where(added == 0, 0.0, twice), rtol=1e-4, atol=1e-4).all()
        part = end.partition(".")[0]
        expect(once, m.DecoderLayer.DROPPED_ELSEWHERE, f"it was seen in `{part}`", asked="dropout 0.5, while training")


# ---- DecoderLayer


def _decoder_parts(
    p: _Layer, memory: Tensor, memory_mask: Tensor | None, mask: Tensor | None
) -> tuple[list[Callable], list[Callable]]:
    def look_back(h: Tensor) -> Tensor:
        return p.attend("self_attention", h, h, h, mask)

    def look_over(h: Tensor) -> Tensor:
        return p.attend("source_attention", h, memory, memory, memory_mask)

    return [look_back, look_over, p.feed], [p.norm(1), p.norm(2), p.norm(3)]


def _decoder_layer(p: _Layer, x: Tensor, memory: Tensor, memory_mask: Tensor | None, mask: Tensor | None) -> Tensor:
    return _in_turn(x, *_decoder_parts(p, memory, memory_mask, mask))


def _decoder_mistakes(p: _Layer, x: Tensor, memory: Tensor, memory_mask: Tensor, mask: Tensor) -> dict:
    """What the small case cannot tell: there each attention gives a plain mean, and the batch is 1."""
    (back, over, feed), norms = _decoder_parts(p, memory, memory_mask, mask)

    def layer(back: Callable = back, over: Callable = over) -> Tensor:
        return _in_turn(x, [back, over, feed], norms)

    def swapped(h: Tensor) -> Tensor:
        return p.attend("self_attention", h, memory, memory, memory_mask)

    def side_by_side() -> Tensor:
        both = x + back(p.norm(1)(x)) + over(p.norm(2)(x))
        return both + feed(p.norm(3)(both))

    first = memory[:1].expand_as(memory)
    return {
        m.DecoderLayer.HEADS: lambda: _decoder_layer(replace(p, heads=1), x, memory, memory_mask, mask),
        m.DecoderLayer.KEYS_FROM_TARGET: lambda: layer(
            over=lambda h: p.attend("source_attention", h, h, memory, memory_mask)
        ),
        m.DecoderLayer.ATTENTION_TWICE: lambda: layer(over=swapped),
        m.DecoderLayer.ATTENTIONS_EXCHANGED: lambda: layer(
            lambda h: p.attend("source_attention", h, h, h, mask), swapped
        ),
        m.DecoderLayer.FIRST_MEMORY: lambda: _decoder_layer(p, x, first, memory_mask, mask),
        m.DecoderLayer.NORM_1_TWICE: lambda: _in_turn(x, [back, over, feed], [norms[0], norms[0], norms[2]]),
        m.DecoderLayer.OLD_QUERIES: lambda: layer(over=lambda _: over(norms[0](x))),
        m.DecoderLayer.NO_NORM_2: lambda: _in_turn(x, [back, over, feed], [norms[0], lambda h: h, norms[2]]),
        m.DecoderLayer.SOURCE_READS_INPUT: side_by_side,
    }


def _target_masks(lengths: Sequence[int], n: int) -> Tensor:
    return _ends(lengths, n) & torch.ones(n, n, dtype=torch.bool).tril()


# (B, n, m, d, heads, hidden): equal sizes first.
_DECODER_SIZES = [
    (4, 4, 4, 4, 4, 4),
    (3, 4, 4, 6, 2, 5),
    (3, 5, 2, 6, 3, 7),
    (2, 3, 6, 8, 2, 5),
    (1, 4, 3, 4, 2, 9),
    (3, 1, 4, 4, 1, 3),
    (2, 3, 1, 6, 2, 4),
]


def _decoder_inputs(batch: int, n: int, m: int, dim: int) -> dict[str, Tensor]:
    ends = [1 + (2 * i + 1) % m for i in range(batch)] if m < 60 else [m - i for i in range(batch)]
    return {
        "x": 2 * randn(batch, n, dim) + 1,
        "memory": 2 * randn(batch, m, dim) - 1,
        "memory_mask": _ends(ends, m),
        "mask": _target_masks([1 + (3 * i + 2) % n for i in range(batch)], n),
    }


def check_decoder_layer(cls: Callable) -> None:
    """Parameters, values, precision."""
    wide = [
        (drawn(1, 2), drawn(2, 9), drawn(100, 250), 4, 2, 5),
        (drawn(9, 20), drawn(70, 120), 3, 4, 1, drawn(65, 99)),
        (1, drawn_medium(), drawn_medium(), 4, 2, 5),
    ]
    for batch, n, length, dim, heads, hidden in (*_DECODER_SIZES, *wide):
        for dtype in (torch.float64,) if dim < 8 else (torch.float32, torch.float64):
            module, state = _make_layer(cls, (dim, heads, hidden), _DECODER_SHAPES, dtype)
            p = _Layer(state, heads)
            given = _decoder_inputs(batch, n, length, dim)
            given |= {name: given[name].to(dtype) for name in ("x", "memory")}
            with unchanged(**given):
                value = call(module, *given.values())
            right = given | {name: given[name].double() for name in ("x", "memory")}
            asked = describe_call(lambda: None, [], given | {"heads": heads})
            mistakes = _decoder_mistakes(p, **right)
            expect_close(value, _decoder_layer(p, **right), "the result", mistakes, dtype, _FLOAT32, asked)


def check_decoder_layer_training(cls: Callable) -> None:
    """Gradients, device, dropout."""
    _check_decoder_gradients(cls)
    memory = randn(1, 4, 6)
    attentions = ["self_attention", "source_attention"]
    given = lambda x: (x, memory.repeat(len(x), 1, 1) if x.shape[-1] == 6 else x, _EVERYTHING, _EVERYTHING)  # noqa: E731
    _check_layer_dropout(cls, _DECODER_SHAPES, attentions, given, _decoder_layer)


def _check_decoder_gradients(cls: Callable) -> None:
    module, state = _make_layer(cls, (6, 2, 5), _DECODER_SHAPES)
    # Masks that allow everything, and equal lengths: a mask that went astray has been paid for among the values.
    masks = torch.ones(3, 1, 4, dtype=torch.bool), torch.ones(3, 4, 4, dtype=torch.bool)
    given = _decoder_inputs(3, 4, 4, 6) | {"memory_mask": masks[0], "mask": masks[1]}
    right = _decoder_layer(_Layer(state, 2), *given.values())
    expect_close(call(module, *given.values()), right, "the result", tolerance=_FLOAT32)
    expect_gradients(
        lambda x, memory: module(x, memory, *masks),
        lambda x, memory: _decoder_layer(_Layer(state, 2), x, memory, *masks),
        {"x": given["x"], "memory": given["memory"]},
        tolerance=_FLOAT32,
        module=module,
    )
    expect_parameter_gradients(
        module, lambda s, *g: _decoder_layer(_Layer(s, 2), *g), state, [*given.values()], tolerance=_FLOAT32
    )
    module.to(torch.float32).to("meta")
    expect_device(module, {name: v.float() if v.is_floating_point() else v for name, v in given.items()})


# ---- Encoder and Decoder


@dataclass(frozen=True)
class _Stack:
    """An encoder or a decoder in float64."""

    state: State
    heads: int
    depth: int
    name: str = ""

    def embed(self, tokens: Tensor) -> Tensor:
        table = self.state[f"{self.name}embedder.embedding.weight"]
        return table[tokens] * table.shape[1] ** 0.5 + self.state[f"{self.name}positions.pe"][: tokens.shape[1]]

    def final(self, x: Tensor) -> Tensor:
        return layer_norm(self.state, f"{self.name}norm", x)

    def run(self, x: Tensor, layer: Callable[[_Layer, Tensor], Tensor], order: Sequence[int] = ()) -> Tensor:
        for i in order or range(self.depth):
            x = layer(_Layer(self.state, self.heads, f"{self.name}layers.{i}."), x)
        return self.final(x)

    def encode(self, tokens: Tensor, mask: Tensor | None, order: Sequence[int] = ()) -> Tensor:
        return self.run(self.embed(tokens), lambda p, x: _encoder_layer(p, x, mask), order)

    def decode(
        self, tokens: Tensor, memory: Tensor, memory_mask: Tensor | None, mask: Tensor | None, order: Sequence[int] = ()
    ) -> Tensor:
        return self.run(self.embed(tokens), lambda p, x: _decoder_layer(p, x, memory, memory_mask, mask), order)


def _stack_shapes(vocab: int, dim: int, depth: int, hidden: int, layer: Callable) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embedder.embedding.weight": (vocab, dim)}
    for i in range(depth):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer(dim, hidden).items()}
    return shapes | {"norm.weight": (dim,), "norm.bias": (dim,)}


def _make_stack(
    cls: Callable, sizes: tuple[int, ...], pad_id: int, shapes: Callable, dropout: float = 0.0
) -> tuple[nn.Module, State]:
    vocab, dim, depth, heads, hidden = sizes
    module = call(cls, vocab, dim, depth, heads, hidden, dropout, pad_id)
    promised = _stack_shapes(vocab, dim, depth, hidden, shapes)
    expect_parameters(module, promised)
    return module, _randomise(module, promised, pad_id) | _randomise_positions(module, [""], dim)


# (V, d, depth, heads, hidden, pad_id)
_STACK_SIZES = [((9, 6, 2, 3, 4), 1), ((7, 8, 3, 2, 5), 0), ((12, 4, 1, 1, 9), 5), ((8, 6, 4, 2, 3), 7)]


def _expect_stack(module: nn.Module, right: _Stack, way: str, given: dict[str, Tensor], mistakes: Mapping) -> None:
    """The values of a stack; `mistakes` are those in which it passes other arguments on, each with these."""

    def run(stack: _Stack = right, **other: Any) -> Tensor:
        return getattr(stack, way)(**(given | other))

    with unchanged(**given):
        value = call(module, *given.values())
    wrong = {mistake: lambda other=other: run(**other) for mistake, other in mistakes.items()}
    wrong |= {
        m.Decoder.HEADS: lambda: run(replace(right, heads=1)),
        m.Decoder.REVERSED: lambda: run(order=[*reversed(range(right.depth))]),
    }
    asked = describe_call(lambda: None, [], given | {"depth": right.depth, "heads": right.heads})
    expect_close(value, run(), "the result", wrong, tolerance=_FLOAT32, asked=asked)


def check_decoder(cls: Callable) -> None:
    """Parameters, values, gradients, dropout."""
    shapes = ((3, 4, 4), (2, 4, 3), (1, 5, 6), (4, 1, 2), (2, drawn(100, 250), drawn(70, 120)), (9, 3, 4))
    wide = [((drawn(100, 2000), 4, 1, 2, 3), drawn(9, 90)), ((9, 4, drawn(6, 8), 2, 3), 1)]
    for (sizes, pad_id), (batch, n, length) in zip((*_STACK_SIZES, *wide), shapes, strict=True):
        module, state = _make_stack(cls, sizes, pad_id, _DECODER_SHAPES)
        given = {"tokens": randint(0, sizes[0], (batch, n))} | _decoder_inputs(batch, n, length, sizes[1])
        del given["x"]
        mistakes = {m.Decoder.FUTURE_SEEN: {"mask": None}}
        _expect_stack(module, _Stack(state, sizes[3], sizes[2]), "decode", given, mistakes)
    module, state = _make_stack(cls, (7, 6, 2, 2, 5), 1, _DECODER_SHAPES)
    tokens, given = torch.tensor([[2, 3, 6, 4], [5, 2, 1, 1]]), _decoder_inputs(2, 4, 3, 6)
    masks = given["memory_mask"], given["mask"]
    expect_gradients(
        lambda memory: module(tokens, memory, *masks),
        lambda memory: _Stack(state, 2, 2).decode(tokens, memory, *masks),
        {"memory": given["memory"]},
        tolerance=_FLOAT32,
        module=module,
    )
    memory = randn(2, 4, 6)
    more = (memory, _EVERYTHING, _EVERYTHING)
    _check_stack_training(cls, _DECODER_SHAPES, lambda s, t, *_: s.decode(t, memory, None, None), more)


def _without_pad_row(state: State, name: str, pad_id: int) -> State:
    """The pad row of an embedding is held at zero, so that no gradient goes there."""
    real = (torch.arange(len(state[name])) != pad_id)[:, None]
    return state | {name: state[name] * real}


def _check_stack_training(cls: Callable, shapes: Callable, oracle: Callable, more: tuple[Tensor, ...]) -> None:
    """Gradients of every parameter, and dropout on the sums of embedding and position."""
    sizes, given = (7, 6, 2, 2, 5), (torch.tensor([[2, 3, 6, 4], [5, 2, 1, 1]]), *more)
    module, state = _make_stack(cls, sizes, 1, shapes)

    def run_oracle(leaves: State, *given: Tensor) -> Tensor:
        held = _without_pad_row(state | leaves, "embedder.embedding.weight", 1)
        return oracle(_Stack(held, sizes[3], sizes[2]), *given)

    vocab, dim, depth, _, hidden = sizes
    parameters = {name: state[name] for name in _stack_shapes(vocab, dim, depth, hidden, shapes)}
    expect_parameter_gradients(module, run_oracle, parameters, given, _FLOAT32)

    module, state = _make_stack(cls, sizes, 1, shapes, dropout=0.5)
    right = oracle(_Stack(state, sizes[3], sizes[2]), *given)
    module.eval()
    expect_close(call(module, *given), right, "after `.eval()` the result", tolerance=_FLOAT32)
    module, state = _make_stack(cls, sizes, 1, shapes, dropout=1.0)
    right = _Stack(state, sizes[3], sizes[2])
    expect_close(
        call(module.train(), *given),
        state["norm.bias"].expand(2, 4, 6),
        "the result, of which nothing survives but the last norm's bias,",
        {
            m.Decoder.SUM_NOT_DROPPED: lambda: right.final(right.embed(given[0])),
            m.Decoder.LAYERS_DROP_NOTHING: lambda: oracle(_Silent(state, sizes[3], sizes[2]), *given),
        },
        tolerance=_FLOAT32,
        asked="dropout 1.0, while training",
    )
    alike = [value[:1].repeat(6, *[1] * (value.dim() - 1)) for value in given]
    many = [randint(2, 7, (2, drawn_medium())), *more]
    expect_dropout_anew(lambda rate: _make_stack(cls, sizes, 1, shapes, dropout=rate)[0], alike, many)
    _check_sum_dropped_once(cls, shapes)


def _check_sum_dropped_once(cls: Callable, shapes: Callable) -> None:
    """With layers that add nothing, what was dropped is equal in a position, after the norm too."""
    module, state = _make_stack(cls, (7, 40, 1, 2, 5), 1, shapes, dropout=0.5)
    plain = {name: torch.zeros_like(value) for name, value in state.items() if name.startswith("layers.")}
    set_weights(module, plain | {"norm.weight": torch.ones(40), "norm.bias": torch.zeros(40)})
    given = torch.full((10, 4), 2), randn(10, 3, 40), torch.ones(10, 1, 3).bool(), torch.ones(10, 4, 4).bool()
    y = call(module.train(), *given)
    share = ((y - y.mode(-1, keepdim=True).values).abs() < 1e-9).double().mean().item()
    told = {"asked": "dropout 0.5, while training", "expected": "about 0.5", "got": round(share, 2)}
    expect(share < 0.6, m.Decoder.SUM_DROPPED_TWICE, "the share of the sum that is dropped", **told)


class _Silent(_Stack):
    """A stack that embeds everything as 0."""

    def embed(self, tokens: Tensor) -> Tensor:
        return 0 * super().embed(tokens)


# ---- Translator


def _translator_shapes(source_vocab: int, target_vocab: int, dim: int, depth: int, hidden: int) -> dict[str, tuple]:
    shapes = {}
    for part, vocab, layer in (("encoder", source_vocab, _ENCODER_SHAPES), ("decoder", target_vocab, _DECODER_SHAPES)):
        shapes |= {f"{part}.{n}": s for n, s in _stack_shapes(vocab, dim, depth, hidden, layer).items()}
    return shapes


def _make_translator(cls: Callable, sizes: tuple[int, ...], pad_id: int, dropout: float = 0.0) -> tuple:
    """A translator with random weights and these in float64, once its parts are those promised."""
    source_vocab, target_vocab, dim, heads, depth, hidden = sizes
    module = call(cls, source_vocab, target_vocab, dim, heads, depth, hidden, dropout, pad_id)
    shapes = _translator_shapes(source_vocab, target_vocab, dim, depth, hidden)
    parameters = named_parameters(module)
    for name in _TIED:
        expect(name in parameters, Common.PARAMETER_MISSING, f"`{name}`")
    table, output = (parameters[name] for name in _TIED)
    expect(table is output, m.Translator.NOT_TIED)
    expect_parameters(module, shapes)
    state = _randomise(module, shapes, pad_id)
    return module, state | _randomise_positions(module, ["encoder.", "decoder."], dim)


@dataclass(frozen=True)
class _Whole:
    """The translator in float64."""

    state: State
    heads: int
    depth: int
    pad_id: int

    def _half(self, name: str) -> _Stack:
        return _Stack(self.state, self.heads, self.depth, name)

    def encode(self, source: Tensor) -> Tensor:
        return self._half("encoder.").encode(source, (source != self.pad_id)[:, None])

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        n = target.shape[1]
        mask = (target != self.pad_id)[:, None] & torch.ones(n, n, dtype=torch.bool).tril()
        x = self._half("decoder.").decode(target, memory, (source != self.pad_id)[:, None], mask)
        return x @ self.state["decoder.embedder.embedding.weight"].T

    def __call__(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decode(target, self.encode(source), source)


# (source_vocab, target_vocab, dim, heads, depth, hidden), pad_id, (B, m, n)
_TRANSLATORS = [
    ((9, 9, 6, 2, 3, 5), 1, (4, 4, 4)),
    ((7, 11, 8, 4, 2, 5), 0, (3, 5, 3)),
    ((12, 6, 6, 3, 1, 7), 5, (2, 3, 6)),
    ((8, 10, 4, 1, 2, 3), 2, (1, 4, 1)),
]


def _sentences(vocab: int, pad_id: int, shape: tuple[int, int], lengths: Sequence[int]) -> Tensor:
    """Random tokens without padding, then padding after each sentence's end; the lowest real token comes first.

    Token 0 is thus met, which tells a `pad_id` fixed at 0 from no mask at all.
    """
    tokens = randint(0, vocab - 1, shape)
    tokens[0, 0] = 0
    tokens = tokens + (tokens >= pad_id)
    return tokens.masked_fill(torch.arange(shape[1]) >= torch.tensor(lengths)[:, None], pad_id)


def check_translator(cls: Callable) -> None:
    """Parts, start, values of the three methods, which tell each leak."""
    _check_start(cls)
    wide = (drawn(1000, 3000), drawn(1000, 3000), 4, 2, 1, 3), drawn(101, 999), (2, drawn(100, 200), drawn(66, 90))
    for sizes, pad_id, shape in (*_TRANSLATORS, wide):
        _check_methods(cls, sizes, pad_id, shape)


def _check_methods(cls: Callable, sizes: tuple[int, ...], pad_id: int, shape: tuple[int, int, int]) -> None:
    batch, length, n = shape
    module, state = _make_translator(cls, sizes, pad_id)
    right = _Whole(state, sizes[3], sizes[4], pad_id)
    wrong = replace(right, pad_id=0)
    lengths = [[1 + (2 * i + 1) % length for i in range(batch)], [1 + (3 * i + 1) % n for i in range(batch)]]
    if n > 60:
        lengths = [[length, drawn(66, length)], [n, drawn(2, n)]]
    source = _sentences(sizes[0], pad_id, (batch, length), lengths[0])
    target = _sentences(sizes[1], pad_id, (batch, n), lengths[1])
    memory = randn(batch, length, sizes[2])  # one that `encode` would never give
    for training in (True, False):  # dropout is 0, so training makes no difference
        module.train(training)
        asked = f"source {(batch, length)}, target {(batch, n)} and pad_id {pad_id}"
        ways = {
            "encode": (module.encode, (source,), right.encode, wrong.encode),
            "decode": (module.decode, (target, memory, source), right.decode, wrong.decode),
            "forward": (module, (source, target), right, wrong),
        }
        for way, (run, given, oracle, other) in ways.items():
            with unchanged(source=source, target=target, memory=memory):
                value = call(run, *given)
            mistakes = {m.Translator.PAD_ID: lambda other=other, given=given: other(*given)}
            expect_close(value, oracle(*given), f"what `{way}` returns", mistakes, tolerance=_FLOAT32, asked=asked)
    for end in range(1, n) if n < 60 else (drawn(2, n - 1),):
        step, whole = target[:, :end], right.decode(target, memory, source)
        name = f"decoding the first {end} tokens alone, the logits"
        expect_close(call(module.decode, step, memory, source), whole[:, :end], name, tolerance=_FLOAT32)


def check_translator_training(cls: Callable) -> None:
    """Gradients, the pad row under training, dropout."""
    _check_gradients(cls)
    _check_pad_row(cls)
    given = torch.tensor([[2, 5, 1], [4, 3, 6]]), torch.tensor([[2, 3, 4, 5], [2, 6, 1, 1]])
    module, state = _make_translator(cls, (8, 8, 6, 2, 2, 5), 1, dropout=0.5)
    module.train()
    source, target = given
    for way, handed in (("encode", (source,)), ("decode", (target, randn(2, 3, 6), source))):
        run = getattr(module, way)
        differ = not torch.equal(call(run, *handed), call(run, *handed))
        expect(differ, m.Translator.DROPOUT, f"what `{way}` returns", asked="dropout 0.5")
    expect_same_in_eval(module, given, "the translator")
    right = _Whole(state, 2, 2, 1)(*given)
    expect_close(call(module, *given), right, "after `.eval()` the logits", tolerance=_FLOAT32)
    alike = [tokens[:1].repeat(6, 1) for tokens in given]
    many = [randint(2, 8, (2, drawn_medium())) for _ in range(2)]
    expect_dropout_anew(lambda rate: _make_translator(cls, (8, 8, 6, 2, 2, 5), 1, dropout=rate)[0], alike, many)


def _check_start(cls: Callable) -> None:
    """Zero pad rows, embeddings as the Embedder draws them, layers that differ, matrices as Xavier draws them."""
    module = call(cls, 300, 200, 32, 4, 3, 64, 0.0, 4)
    state = {name: value.double() for name, value in module.state_dict().items()}
    for name in ("encoder.embedder.embedding.weight", "decoder.embedder.embedding.weight"):
        what = f"the parameter `{name}`"
        expect(name in state, Common.PARAMETER_MISSING, what)
        expect(not state[name][4].any(), m.Translator.PAD_ROW_START, what, asked="pad_id 4")
        told = {"asked": "dim 32", "expected": 32**-0.5, "got": state[name].std().item()}
        usual = math.isclose(told["got"], told["expected"], rel_tol=0.1)
        expect(usual, m.Translator.TABLE_START, f"the standard deviation of `{name}`", **told)
    matrices = [name for name, value in named_parameters(module).items() if "layers." in name and value.dim() == 2]
    for name in matrices:
        twin = name.replace("layers.1.", "layers.0.")
        differ = name == twin or not torch.equal(state[name], state[twin])
        expect(differ, m.Translator.LAYERS_ALIKE, f"`{name}` has the numbers of `{twin}`")
    for name in matrices:
        out_size, in_size = state[name].shape
        told = {"expected": math.sqrt(2 / (out_size + in_size)), "got": state[name].std().item()}
        usual = math.isclose(told["got"], told["expected"], rel_tol=0.15)
        expect(usual, m.Translator.OTHER_START, f"the standard deviation of `{name}`", **told)
        bound, largest = math.sqrt(6 / (out_size + in_size)), state[name].abs().max().item()
        told = {"expected": f"at most {bound:.4f}", "got": largest}
        expect(largest < 1.001 * bound, m.Translator.OTHER_START, f"the largest number of `{name}`", **told)


def _check_gradients(cls: Callable) -> None:
    pad_id, source_table, table = 1, "encoder.embedder.embedding.weight", _TIED[0]
    module, state = _make_translator(cls, (8, 9, 6, 2, 2, 5), pad_id)
    given = torch.tensor([[2, 5, 1], [4, 3, 6]]), torch.tensor([[2, 3, 4, 5], [2, 8, 1, 1]])
    parameters = {name: state[name] for name in _translator_shapes(8, 9, 6, 2, 5)}

    def oracle(leaves: State, *given: Tensor) -> Tensor:
        full = state | leaves
        for name in (source_table, table):
            full = _without_pad_row(full, name, pad_id)
        return _Whole(full, 2, 2, pad_id)(*given)

    expect_close(call(module, *given), oracle({}, *given), "the logits", tolerance=_FLOAT32)
    expect_parameter_gradients(module, oracle, parameters, given, 1e-5)

    source, target = given  # who trains through `decode` needs the constant there
    call(module.decode, target, randn(2, 3, 6), source).sum().backward()
    gradient = named_parameters(module)[table].grad
    expect(gradient is not None and gradient.any(), Common.PARAMETER_UNUSED, f"`{table}`, through `decode`")
    expect(not gradient[pad_id].any(), m.Translator.PAD_ROW_LEARNS, f"the parameter is `{table}`, through `decode`")


def train_copy(model, source, target):
    """A few steps of training on a copy, as a reader would take them."""
    import copy

    model = copy.deepcopy(model).float().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    rows = [model.encoder.embedder.embedding.weight, model.decoder.embedder.embedding.weight, model.output.weight]
    return losses, [row.detach() for row in rows]


def _check_pad_row(cls: Callable) -> None:
    """After training a copy on padded targets, loss on padding included, the pad rows are zero and the tie holds."""
    module = call(cls, 8, 9, 8, 2, 1, 8, 0.0, 1)
    start = module.state_dict()
    for table in ("encoder.embedder.embedding.weight", "decoder.embedder.embedding.weight"):
        zero = table in start and not start[table][1].any()
        expect(zero, m.Translator.PAD_ROW_START, f"the parameter `{table}`", asked="pad_id 1")
    source, target = torch.tensor([[2, 5, 1], [4, 3, 6]]), torch.tensor([[2, 3, 4, 5, 1], [2, 8, 3, 1, 1]])
    losses, (encoder, decoder, output) = place(train_copy, beside=cls)(module, source, target)
    fell = losses[-1] < losses[0]
    expect(fell, Unexplained.NUMBER, "the loss after eight steps", expected=f"below {losses[0]:.3f}", got=losses[-1])
    expect(torch.equal(decoder, output), Unexplained.VALUES, "the tie holds no longer in a copy, after training")
    for name, table in (("encoder", encoder), ("decoder", decoder)):
        expect(not table[1].any(), m.Translator.PAD_ROW_LEARNS_IN_COPY, f"the table of the {name}, after training")


# ---- the reader's own test


def make_translators(picks, words, table, places, pad_id, dtype, alike):
    """Models that are called like a Translator; each does each of its tasks in the way that `picks` says by number.

    Those ways that come before the leaks leak nothing. They are sent to where student code runs: no name in them tells
    what is wrong with them, nor does anything that they hold.
    """

    def look(x, others, allowed):
        scores = (x @ others.mT / x.shape[-1]).masked_fill(~allowed, -1e30)
        return scores.softmax(-1) @ others

    masks = [
        lambda tokens, pad: (tokens != pad)[:, None],
        lambda tokens, pad: torch.arange(tokens.shape[1]) < (tokens != pad).sum(1)[:, None, None],
        lambda tokens, pad: torch.ones_like(tokens, dtype=torch.bool)[:, None],
        lambda tokens, pad: torch.arange(tokens.shape[1]) <= (tokens != pad).sum(1)[:, None, None],
        lambda tokens, pad: (tokens != pad)[:1, None].expand(len(tokens), -1, -1),
    ]
    ways = [
        masks,
        masks,
        [
            lambda i, j, n: j <= i,
            lambda i, j, n: ~(j > i),
            lambda i, j, n: j - i < n,
            lambda i, j, n: j <= i + 1,
            lambda i, j, n: (j <= i) | (j == n - 1),
            lambda i, j, n: (j <= i) | (i > 1) & (j == i + 2),
            lambda i, j, n: (j <= i) | (i == 0) & (j == 1),
        ],
        [
            lambda logits, memory, real: logits,
            lambda logits, memory, real: 1.0 * logits,
            lambda logits, memory, real: torch.where(real, logits, logits + logits.mean(0)),
            lambda logits, memory, real: torch.where(real, logits, logits * logits.shape[1]),
            lambda logits, memory, real: logits - 0.5 * logits.mean(0),
            lambda logits, memory, real: logits + 0.3 * logits.roll(1, 0),
            lambda logits, memory, real: logits + memory.mean(1)[:, None, : logits.shape[2]],
            lambda logits, memory, real: logits / logits.shape[1],
            lambda logits, memory, real: logits + 0.3 * logits.mean(1, keepdim=True),
        ],
    ]

    def make(pick):
        source_mask, memory_mask, target_mask, finish = (way[i] for way, i in zip(ways, pick, strict=True))

        class Translator(nn.Module):
            def forward(self, source, target):
                s = words.to(dtype)[source] + places.to(dtype)[: source.shape[1]]
                s = s + look(s, s, source_mask(source, pad_id))
                t = table.to(dtype)[target] + places.to(dtype)[: target.shape[1]]
                real, i = target != pad_id, torch.arange(target.shape[1])
                t = t + look(t, t, target_mask(i[:, None], i, len(i)) & real[:, None])
                t = t + look(t, s, memory_mask(source, pad_id))
                return finish(t @ table.to(dtype).T / 4, s, real[..., None])

        return alike(Translator)()

    return [make(pick) for pick in picks]


_RIGHT_WAYS = (2, 2, 2, 4)  # of each task in `make_translators`, those that come first
_LEAKS = [
    [
        (m.check_leaks.MISSES_PADDING, "the encoder sees all padding"),
        (m.check_leaks.MISSES_PADDING, "the encoder sees the first place of the padding"),
        (m.check_leaks.MISSES_BATCH, "the encoder has the first sentence's mask for all"),
    ],
    [
        (m.check_leaks.MISSES_PADDING, "the decoder sees all of the source's padding"),
        (m.check_leaks.MISSES_PADDING, "the decoder sees the first place of the source's padding"),
        (m.check_leaks.MISSES_BATCH, "the decoder has the first sentence's source mask for all"),
    ],
    [
        (m.check_leaks.MISSES_FUTURE, "every position sees the whole target"),
        (m.check_leaks.MISSES_FUTURE, "a position sees the next one"),
        (m.check_leaks.MISSES_FUTURE, "every position sees the last one"),
        (m.check_leaks.MISSES_FUTURE, "from the third on, a position sees the one after the next"),
        (m.check_leaks.MISSES_FUTURE, "the first position sees the second"),
    ],
    [
        (m.check_leaks.MISSES_BATCH, "the mean over the batch is subtracted"),
        (m.check_leaks.MISSES_BATCH, "a share of another sentence's logits is added"),
        (m.check_leaks.MISSES_PADDING, "a mean over the memory, padding included, is added"),
        (m.check_leaks.MISSES_PADDING, "the logits are divided by the target's length, padding included"),
        (m.check_leaks.MISSES_FUTURE, "a mean over the target is added"),
    ],
]


def _right_pick() -> list[int]:
    return [int(randint(0, count, ())) for count in _RIGHT_WAYS]


def _leak_problem(pad_id: int) -> tuple[Tensor, Tensor]:
    """Four sentences of several lengths on both sides; the first one is neither the longest nor the shortest."""
    source = _sentences(12, pad_id, (4, 7), [5, 7, 3, 6])
    return source, _sentences(12, pad_id, (4, 6), [4, 6, 5, 3])


def check_reader_test(test: Callable, points: float = 2.0) -> Credit:
    """The reader's test accepts each right model; its points are the share of the leaks that it notices.

    Each leaky model has one leak; all else is done in a right way, which is drawn anew, as are weights, sentences, the
    number of padding, the order and how many right ones there are. All have one name and one source.

    Args:
        test: the reader's, called with model, source, target and pad_id; it rejects by an AssertionError.
        points: for a test that notices all of them.

    Returns:
        The points, with what kind of leak got through.
    """
    leaks = [(task, way) for task, ways in enumerate(_LEAKS) for way in range(len(ways))]
    models: list[tuple[tuple[int, int] | None, list[int]]] = [(None, _right_pick()) for _ in range(randint(6, 12, ()))]
    models[0][1][-1], models[1][1][-1] = 2, 3  # two at least whose padded positions say something else
    for task, way in leaks:
        pick = _right_pick()
        pick[task] = _RIGHT_WAYS[task] + way
        models.append(((task, way), pick))
    # Of the right ones every other is in float64, of the rest any.
    double = [i % 2 == 1 if leak is None else bool(randint(0, 2, ())) for i, (leak, _) in enumerate(models)]
    verdicts = []
    for i in torch.argsort(randn(len(models))).tolist():
        leak, pick = models[i]
        pad_id, dtype = int(randint(0, 4, ())), torch.float64 if double[i] else torch.float32
        weights = randn(12, 16), randn(12, 16), randn(40, 16)
        [model] = place(make_translators, beside=test)([pick], *weights, pad_id, dtype, place(alike, beside=test))
        source, target = _leak_problem(pad_id)
        with unchanged(source=source, target=target):
            verdicts.append((leak, outcome_of(test, model, source, target, pad_id)))
    for leak, (_, error) in verdicts:
        if leak is None:
            sound = "what it says of a model that leaks nothing"
            expect_accepted(error, m.check_leaks.REJECTS_RIGHT, m.check_leaks.CRASHES, sound)
    missed = {leak: error for leak, (_, error) in verdicts if leak and not isinstance(error, AssertionError)}
    told = {"expected": len(leaks), "got": len(leaks) - len(missed)}
    what = "the number of leaks that it notices"
    other = next((error for error in missed.values() if error), None)
    expect(told["got"], m.check_leaks.CRASHES if other else m.check_leaks.ACCEPTS_ALL, what, where=said(other), **told)
    if not missed:
        return Credit(points, found(Unexplained.NUMBER, what, **told))
    titles = [_LEAKS[task][way][1] for task, way in sorted(missed)]
    where = said(other) or "; ".join(titles[:3]) + "; …" * (len(titles) > 3)
    mistake = m.check_leaks.CRASHES if other else _worst_blind_spot(missed)
    return Credit(round(points * told["got"] / len(leaks), 2), found(mistake, what, **told, where=where))


def _worst_blind_spot(missed: Collection[tuple[int, int]]) -> m.check_leaks:
    """The kind of leak of which the largest share got through."""
    all_of = Counter(mistake for ways in _LEAKS for mistake, _ in ways)
    missed_of = Counter(_LEAKS[task][way][0] for task, way in missed)
    return max(m.check_leaks, key=lambda mistake: missed_of[mistake] / max(all_of[mistake], 1))
