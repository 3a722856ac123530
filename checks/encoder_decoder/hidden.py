"""The hidden tests of chapter 09."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
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
    expect_parameter_gradients,
    expect_parameters,
    expect_same_in_eval,
    expect_tensor,
    place,
    randint,
    randn,
    set_weights,
    unchanged,
)
from checks.formulas import feed_forward, layer_norm, multi_head_attention

State = dict[str, Tensor]
Mistakes = Mapping[str, Callable[..., Tensor]]


_TIED = ("decoder.embedder.embedding.weight", "output.weight")


def _randomise(module: nn.Module, shapes: Mapping[str, Sequence[int]], pad_id: int) -> State:
    """Give a module random weights, in float64, with these names and shapes; the pad row of each embedding is zero.

    Returns:
        The weights. What is tied is there under both names.
    """
    state = {name: 0.5 * randn(*shape) for name, shape in shapes.items()}
    for name, value in state.items():
        if "embedding" in name or name in _TIED:
            value[pad_id] = 0.0
    tied = [state[name] for name in _TIED if name in state]
    state |= dict.fromkeys(_TIED, tied[0]) if tied else {}
    set_weights(module, state)
    return state


def _randomise_positions(module: nn.Module, prefixes: Sequence[str], dim: int) -> State:
    """Give each PositionEncoding of a module a table of random numbers, which no sinusoids can stand for."""
    buffers = dict(module.named_buffers())
    names = [f"{prefix}positions.pe" for prefix in prefixes]
    for name in names:
        assert name in buffers, f"`{name.removesuffix('.pe')}` is missing, or is not the PositionEncoding of chapter 5"
        expect_tensor(buffers[name], (len(buffers[name]), dim), name=f"the buffer `{name}`")
    state = {name: randn(*buffers[name].shape) for name in names}
    set_weights(module, state)
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
    for count in (1, 2, 5):
        original = place(make_toy, beside=function)()
        before = original.state_dict()
        copies = call(function, original, count)
        _expect_copies(copies, before, count)
        _expect_independent(function, original, copies, count)
        _expect_to_compute(original, copies, count)
    copies = call(function, place(make_toy, beside=function)(), 0)
    assert isinstance(copies, nn.ModuleList) and len(copies) == 0, "0 copies should be an empty nn.ModuleList"
    _check_settings(function)


def _expect_copies(copies: Any, before: State, count: int) -> None:
    assert copies is not None, "clones returned None: is there a `return`?"
    assert isinstance(copies, nn.ModuleList), (
        f"the copies should be in an nn.ModuleList, got a {copies.__class__.__name__}: torch finds the parameters of "
        "modules only in its own lists"
    )
    assert len(copies) == count, f"{count} copies were asked for, there are {len(copies)}"
    for i in range(count):
        state = copies[i].state_dict()
        assert state.keys() == before.keys(), f"copy {i} has other weights: {sorted(state)}, not {sorted(before)}"
        same = all(torch.equal(value, before[name]) for name, value in state.items())
        assert same, f"copy {i} does not start with the weights of the original: copy it, do not make a new one"
    names = {name for name, _ in copies.named_parameters()}
    expected = {f"{i}.{name}" for i in range(count) for name in ("kept", "0.weight", "0.bias", "2.weight")}
    missing = sorted(expected - names)
    assert not missing, (
        f"copies share their weights (`{missing[0]}` is no parameter of its own): each needs a `copy.deepcopy` of its "
        "own"
    )


def _expect_independent(function: Callable, original: nn.Module, copies: nn.Module, count: int) -> None:
    write = place(set_first, beside=function)
    write(copies[0])
    states = [copies[i].state_dict() for i in range(count)]
    changed = [name for name, value in states[0].items() if (value == 7.0).all()]
    for i in range(1, count):
        assert not any((states[i][name] == 7.0).all() for name in changed), (
            f"writing into copy 0 changed copy {i}: they share their weights"
        )
    assert not any((original.state_dict()[name] == 7.0).all() for name in changed), (
        "writing into copy 0 changed the original: the copies must be independent of it too"
    )


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
        others = {
            f"it computes with the weights of {other}: copies must be independent of each other and of the original": (
                lambda state=state, x=x: _toy(state, x)
            )
            for other, state in states.items()
            if other != name
        }
        what = f"after new weights for all of them, the result of {name}"
        expect_close(call(module, x), _toy(states[name], x), what, others)


def _check_settings(function: Callable) -> None:
    tied = call(function, place(make_tied, beside=function)(), 2)
    names = sorted(name for name, _ in tied.named_parameters())
    assert len(names) == 6, (
        "the two layers of the module share one weight; in each copy they should share one too (copy the whole module "
        f"with `copy.deepcopy`); the parameters are {names}"
    )
    source = place(at_work, beside=function)(place(make_toy, beside=function)())
    first = call(function, source, 2)[1]
    assert not first.training, "the original is in eval mode, a copy is not: copy the whole module"
    assert not any(parameter.requires_grad for _, parameter in first.named_parameters()), (
        "the original's parameters are frozen, those of a copy are not: copy the whole module"
    )
    assert getattr(first, "note", None) == "seen", "an attribute of the original is missing in its copy"


# ---- Embedder


def check_embedder(cls: Callable) -> None:
    """Start, values, the pad row, gradients."""
    for vocab, dim, pad_id in ((6, 6, 1), (11, 4, 0), (5, 8, 4), (7, 1, 2), (9, 9, 3)):
        module = call(cls, vocab, dim, pad_id)
        hints = {"embedding": "`embedding` is nn.Embedding(vocab_size, dim, …)"}
        expect_parameters(module, {"embedding.weight": (vocab, dim)}, hints)
        row = module.state_dict()["embedding.weight"][pad_id]
        assert not row.any(), (
            f"with pad_id={pad_id} row {pad_id} of the embedding should start as zeros: pass `padding_idx=pad_id`, and "
            "if you draw new numbers afterwards, zero that row again"
        )
        for dtype in (torch.float32, torch.float64):
            _check_embedder_values(module, vocab, dim, pad_id, dtype)
    _check_embedder_start(cls)
    _check_embedder_gradient(cls)
    module = call(cls, 6, 4, 1)
    expect_device(module.to("meta"), {"tokens": randint(0, 6, (2, 3))})


def _check_embedder_values(module: nn.Module, vocab: int, dim: int, pad_id: int, dtype: torch.dtype) -> None:
    table = _randomise(module, {"embedding.weight": (vocab, dim)}, pad_id)["embedding.weight"]
    module.to(dtype)
    for shape in ((2, 3), (1, 5), (4, 1)):
        tokens = randint(0, vocab, shape)
        tokens[0, 0] = pad_id
        with unchanged(tokens=tokens):
            value = call(module, tokens)
        found = table.to(dtype).double()[tokens]
        expect_close(
            value,
            found * math.sqrt(dim),
            f"the result for tokens of shape {shape}, V={vocab}, d={dim}",
            {
                "the vectors are not scaled: multiply by √d": lambda f=found: f,
                "the vectors are divided by √d: multiply": lambda f=found: f / math.sqrt(dim),
                "the vectors are multiplied by d: √d is asked": lambda f=found: f * dim,
                "the vectors are multiplied by √V: √d is asked": lambda f=found: f * math.sqrt(vocab),
                "the vectors are scaled twice": lambda f=found: f * dim,
                "the vectors are multiplied by √n, the root of the sequence's length": lambda f=found: (
                    f * math.sqrt(f.shape[1])
                ),
            },
            dtype,
        )


def _check_embedder_start(cls: Callable) -> None:
    for dim in (16, 64):
        table = call(cls, 800, dim, 3).state_dict()["embedding.weight"]
        table = torch.cat([table[:3], table[4:]]).double()
        spread, right = table.std().item(), dim**-0.5
        about = f"with d={dim} the embedding starts with a standard deviation of {spread:.3f}, not 1/√d = {right:.3f}"
        hint = ""
        if math.isclose(spread, 1.0, rel_tol=0.1):
            hint = ": those are nn.Embedding's own numbers; draw new ones"
        elif math.isclose(spread, 1 / dim, rel_tol=0.1):
            hint = ": this is 1/d"
        assert math.isclose(spread, right, rel_tol=0.06), about + hint
        assert abs(table.mean().item()) < 0.1 * right, f"with d={dim} the embedding does not start around 0"
        outside = (table.abs() > 1.9 * right).double().mean().item()
        assert 0.02 < outside < 0.12, f"with d={dim} the embedding does not start with normal numbers"


def _check_embedder_gradient(cls: Callable) -> None:
    module = call(cls, 6, 4, 2)
    table = _randomise(module, {"embedding.weight": (6, 4)}, 2)["embedding.weight"]
    tokens = torch.tensor([[5, 2, 0], [1, 5, 2]])
    direction = randn(2, 3, 4)
    expected = torch.zeros_like(table).index_put_((tokens,), 2 * direction, accumulate=True)
    expected[2] = 0.0
    module.zero_grad()
    with torch.enable_grad():
        value = call(module, tokens)
        assert value.requires_grad, "the result is cut off from the embedding, so that it cannot learn"
        (value * direction).sum().backward()
    gradient = dict(module.named_parameters())["embedding.weight"].grad
    assert gradient is not None, "no gradient reaches the embedding, so that it cannot learn"
    assert not gradient[2].any(), (
        "the pad row gets a gradient, so that the first step of training moves it away from zero: pass "
        "`padding_idx=pad_id` to nn.Embedding"
    )
    expect_close(gradient, expected, "the embedding's gradient", tolerance=1e-7)
    after = call(module.eval(), tokens)
    expect_close(after, 2 * table[tokens], "the result after `.eval()`, where nothing should change,")


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


def _expect_mask(
    function: Callable, tokens: Tensor, pad_id: int, expected: Tensor, mistakes: Mapping[str, Tensor]
) -> None:
    for dtype in (torch.int64, torch.int32):
        given = tokens.to(dtype, copy=True)  # the cases serve the next answer too, whatever this one does to them
        with unchanged(tokens=given):
            mask = call(function, given, pad_id)
        name = f"the mask for tokens of shape {tuple(tokens.shape)} and pad_id={pad_id}"
        expect_tensor(mask, name=name)
        assert mask.dtype == torch.bool, f"{name} should be bool, got {mask.dtype}"
        if mask.shape == expected.shape and torch.equal(mask, expected):
            continue
        causes = (c for c, wrong in mistakes.items() if mask.shape == wrong.shape and torch.equal(mask, wrong))
        cause = next(causes, None)
        likely = "" if cause is None else f". Likely cause: {cause}"
        assert mask.shape == expected.shape, (
            f"{name} should have shape {tuple(expected.shape)}, got {tuple(mask.shape)}{likely}"
        )
        count = int((mask != expected).sum())
        raise AssertionError(
            f"{name} has {count} wrong entries: expected {expected.int().tolist()}, got {mask.int().tolist()}{likely}"
        )


def check_target_mask(function: Callable) -> None:
    """Values for padding anywhere, lengths that differ, other devices."""
    for tokens, pad_id in _TOKENS:
        n, real = tokens.shape[1], tokens != pad_id
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        both = real[:, None] & causal
        everywhere = causal.expand(len(tokens), -1, -1)
        mistakes = {
            "padding is not hidden: this is the causal mask alone": everywhere,
            "padding is not hidden, and the dimension of the batch is missing: this is the causal mask alone": causal,
            "the future is not hidden: this is the padding mask alone": real[:, None].expand(-1, n, -1),
            "the future is not hidden: this is the padding mask alone, (B, 1, n)": real[:, None],
            "the causal part is upside down: a position may look at itself and at what is before it": real[:, None]
            & causal.T,
            "a position may not look at itself: keep the diagonal": real[:, None] & causal.tril(-1),
            "a position may look one step ahead: the diagonal is one too high": real[:, None]
            & torch.ones(n, n, dtype=torch.bool).tril(1),
            "padding hides rows (who looks), not columns (what is looked at)": real[:, :, None] & causal,
            "the two masks are joined by `or`: a position must be allowed by both": real[:, None] | causal,
            "the mask is turned round: True means that a position may be looked at": ~both,
            "the padding mask is turned round": ~real[:, None] & causal,
            "padding hides rows as well as columns: only what is looked at counts": real[:, None]
            & real[:, :, None]
            & causal,
            "two dimensions were added: `(B, n, n)` is asked": both[:, None],
            "the first sequence's padding is used for the whole batch": both[:1].expand(len(tokens), -1, -1),
            "`pad_id` is ignored: the mask hides 1": (tokens != 1)[:, None] & causal,
            "`pad_id` is ignored: the mask hides 0": (tokens != 0)[:, None] & causal,
            "the mask is transposed": both.mT,
        }
        _expect_mask(function, tokens, pad_id, both, mistakes)
    # `causal_mask` of chapter 3 works on the CPU, so a tensor made there is no mistake; leaving it there is.
    try:
        elsewhere = function(_TOKENS[0][0].to("meta"), 1)
    except RuntimeError as error:
        raise AssertionError(
            "with tokens on a GPU the two masks meet on different devices: move the causal one, "
            f"`.to(tokens.device)` ({error})"
        ) from error
    assert elsewhere.device.type == "meta", (
        "with tokens on a GPU the mask stays on the CPU: move the causal one, `.to(tokens.device)`"
    )


# ---- the parts of the layers, in float64


def _same(x: Tensor) -> Tensor:
    return x


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

    def feed(self, x: Tensor, act: Callable = F.relu) -> Tensor:
        return feed_forward(self.state, f"{self.name}feed_forward.", x, act)


def _in_turn(
    x: Tensor, sublayers: Sequence[Callable], norms: Sequence[Callable], signs: Sequence, keep: Sequence
) -> Tensor:
    """Pre-norm: x + sublayer(norm(x)) again and again; `signs` multiplies the sublayers, `keep` the residuals."""
    for sublayer, norm, sign, kept in zip(sublayers, norms, signs, keep, strict=True):
        x = kept * x + sign * sublayer(norm(x))
    return x


def _post(x: Tensor, sublayers: Sequence[Callable], norms: Sequence[Callable]) -> Tensor:
    for sublayer, norm in zip(sublayers, norms, strict=True):
        x = norm(x + sublayer(x))
    return x


def _on_normed(x: Tensor, sublayers: Sequence[Callable], norms: Sequence[Callable], where: Sequence[bool]) -> Tensor:
    """What comes out when norm(x), not x, is added, at these sublayers."""
    for sublayer, norm, replaced in zip(sublayers, norms, where, strict=True):
        normed = norm(x)
        x = (normed if replaced else x) + sublayer(normed)
    return x


def _from_the_start(x: Tensor, sublayers: Sequence[Callable], norms: Sequence[Callable], number: int) -> Tensor:
    """What comes out when a sublayer reads the layer's input instead of the sum before it."""
    start = x
    for i, (sublayer, norm) in enumerate(zip(sublayers, norms, strict=True)):
        x = x + sublayer(norm(start if i == number else x))
    return x


def _common_mistakes(x: Tensor, sublayers: list[Callable], norms: list[Callable], names: list[str]) -> Mistakes:
    """Mistakes in putting sublayers, norms and residuals together that any pre-norm layer can have."""
    count = len(sublayers)
    plus = [1] * count

    def but(number: int, value: Any, values: Sequence = plus) -> list:
        return [value if i == number else v for i, v in enumerate(values)]

    def layer(sublayers: Sequence = sublayers, norms: Sequence = norms, signs: Sequence = plus, keep: Sequence = plus):
        return _in_turn(x, sublayers, norms, signs, keep)

    way = "add the sublayer's output to x itself, not to norm(x): the residual path goes round the norm"
    mistakes: dict[str, Callable[[], Tensor]] = {
        "the layer returns its input": lambda: x,
        "this is post-norm, norm(x + sublayer(x)): pre-norm is asked": lambda: _post(x, sublayers, norms),
        f"{way} (every time)": lambda: _on_normed(x, sublayers, norms, [True] * count),
        "all residuals are subtracted: it is x + sublayer(norm(x))": lambda: layer(signs=[-1] * count),
        "all residual connections are missing: add each sublayer's input to its output": lambda: layer(
            keep=[0] * count
        ),
        "all norms are missing": lambda: layer(norms=[_same] * count),
        "a LayerNorm acts on each sublayer's output, not on its input": lambda: layer(
            [lambda h, s=s, n=n: n(s(h)) for s, n in zip(sublayers, norms, strict=True)], [_same] * count
        ),
    }
    for i, name in enumerate(names):
        mistakes |= {
            f"{way} (around the {name})": lambda i=i: _on_normed(x, sublayers, norms, [j == i for j in range(count)]),
            f"the residual around the {name} is subtracted, not added": lambda i=i: layer(signs=but(i, -1)),
            f"the residual connection around the {name} is missing": lambda i=i: layer(keep=but(i, 0)),
            f"the {name} is missing": lambda i=i: layer(signs=but(i, 0)),
            f"`norm_{i + 1}` is missing": lambda i=i: layer(norms=but(i, _same, norms)),
            f"a norm follows the last addition (`norm_{i + 1}`): a pre-norm layer ends with the sum": lambda i=i: norms[
                i
            ](layer()),
            f"the {name} reads the layer's input: it reads the sum before it": lambda i=i: _from_the_start(
                x, sublayers, norms, i
            ),
        }
        for j in range(count):
            if i != j:
                mistakes[f"`norm_{j + 1}` takes the place of `norm_{i + 1}`"] = lambda i=i, j=j: layer(
                    norms=but(i, norms[j], norms)
                )
    for order in permutations(range(count)):
        if list(order) != list(range(count)):
            first = ", ".join(names[i] for i in order)
            mistakes[f"the norms are exchanged ({order}): norm_1 comes first"] = lambda order=order: layer(
                norms=[norms[i] for i in order]
            )
            mistakes[f"the sublayers come in the wrong order ({first}): it is {', '.join(names)}"] = (
                lambda order=order: layer([sublayers[i] for i in order])
            )
            mistakes[
                f"the sublayers come in the wrong order ({first}), each with its norm: it is {', '.join(names)}"
            ] = lambda order=order: layer([sublayers[i] for i in order], [norms[i] for i in order])
    return mistakes


# ---- EncoderLayer


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
_HINTS = {
    "attention": "it belongs to a MultiHeadAttention of chapter 4, and each attention has weights of its own",
    "norm": "each norm is a LayerNorm over `dim` features with weights of its own",
    "feed_forward": "`feed_forward` is FeedForward(dim, hidden, dropout) of chapter 6",
}


def _make_layer(
    cls: Callable,
    sizes: tuple[int, int, int],
    shapes: Callable,
    dtype: torch.dtype = torch.float64,
    dropout: float = 0.0,
) -> tuple[nn.Module, State]:
    """A layer with random weights, once its parameters are those promised; `sizes` are dim, heads and hidden."""
    return build(lambda: cls(*sizes, dropout=dropout), shapes(sizes[0], sizes[2]), _HINTS, dtype)


def _encoder_parts(p: _Layer, mask: Tensor | None) -> tuple[list[Callable], list[Callable]]:
    return [lambda h: p.attend("attention", h, h, h, mask), p.feed], [p.norm(1), p.norm(2)]


def _encoder_layer(p: _Layer, x: Tensor, mask: Tensor | None) -> Tensor:
    return _in_turn(x, *_encoder_parts(p, mask), (1, 1), (1, 1))


def _encoder_mistakes(p: _Layer, x: Tensor, mask: Tensor) -> Mistakes:
    (attend, feed), norms = sublayers, norms = _encoder_parts(p, mask)

    def layer(attend: Callable = attend, feed: Callable = feed) -> Tensor:
        return _in_turn(x, [attend, feed], norms, (1, 1), (1, 1))

    return {
        "the mask is not passed on to the attention": lambda: _encoder_layer(p, x, None),
        "the mask is turned round: True means that a position may be looked at": lambda: _encoder_layer(p, x, ~mask),
        "only the queries are normalised: keys and values come from norm_1(x) too": lambda: layer(
            lambda h: p.attend("attention", h, x, x, mask)
        ),
        "the values are not normalised: they come from norm_1(x) too": lambda: layer(
            lambda h: p.attend("attention", h, h, x, mask)
        ),
        "`heads` is not passed on: the attention has one head": lambda: _encoder_layer(replace(p, heads=1), x, mask),
        "the feed-forward network has no ReLU": lambda: layer(feed=lambda h: p.feed(h, _same)),
        "the first sequence's mask is used for the whole batch": lambda: _encoder_layer(p, x, mask[:1].expand_as(mask)),
        **_common_mistakes(x, sublayers, norms, ["attention", "feed-forward network"]),
    }


def _ends(lengths: Sequence[int], longest: int) -> Tensor:
    """A padding mask `(B, 1, m)` for sequences of these lengths."""
    return (torch.arange(longest) < torch.tensor(lengths)[:, None])[:, None]


# (B, m, d, heads, hidden): equal sizes first.
_ENCODER_SIZES = [(4, 4, 4, 4, 4), (3, 5, 6, 2, 9), (2, 4, 8, 4, 5), (1, 6, 6, 3, 7), (4, 1, 4, 1, 3)]


def check_encoder_layer(cls: Callable) -> None:
    """Parameters, values with every mask, precision, gradients, dropout."""
    for batch, m, dim, heads, hidden in _ENCODER_SIZES:
        for dtype in (torch.float64,) if dim < 8 else (torch.float32, torch.float64):
            module, state = _make_layer(cls, (dim, heads, hidden), _ENCODER_SHAPES, dtype)
            p = _Layer(state, heads)
            x = (2 * randn(batch, m, dim) + 1).to(dtype)
            lengths = [1 + (3 * i + 1) % m for i in range(batch)]
            for mask in (_ends(lengths, m), randint(0, 2, (batch, m, m)).bool() | torch.eye(m, dtype=torch.bool)):
                with unchanged(x=x, mask=mask):
                    value = call(module, x, mask)
                right = x.double()
                name = f"the layer's result for (B, m, d) = {(batch, m, dim)}, heads={heads}, mask {tuple(mask.shape)}"
                expect_close(value, _encoder_layer(p, right, mask), name, _encoder_mistakes(p, right, mask), dtype)
    _check_encoder_gradients(cls)
    _check_layer_dropout(
        cls,
        _ENCODER_SHAPES,
        lambda p: _encoder_parts(p, None),
        ["attention", "feed-forward network"],
        ["attention.WO.bias", "feed_forward.outer.bias"],
        lambda x: (x, _EVERYTHING),
    )


def _check_encoder_gradients(cls: Callable) -> None:
    module, state = _make_layer(cls, (6, 2, 5), _ENCODER_SHAPES)
    x, mask = randn(3, 4, 6), _ends([4, 2, 1], 4)
    expect_gradients(lambda x: module(x, mask), lambda x: _encoder_layer(_Layer(state, 2), x, mask), {"x": x})
    expect_parameter_gradients(module, lambda s, *given: _encoder_layer(_Layer(s, 2), *given), state, (x, mask))
    module.to(torch.float32).to("meta")
    expect_device(module, {"x": x.float(), "mask": mask})


_EVERYTHING = torch.ones(1, 1, 1, dtype=torch.bool)  # a mask that allows all there is


def _check_layer_dropout(
    cls: Callable, shapes: Callable, parts: Callable, names: list[str], biases: list[str], given: Callable
) -> None:
    """Off in evaluation; on each sublayer's output before the sum; 0.1 when not given."""
    x = randn(2, 3, 6)
    module, state = _make_layer(cls, (6, 2, 5), shapes, dropout=0.5)
    sublayers, norms = parts(_Layer(state, 2))
    ones = [1] * len(names)
    expect_same_in_eval(module, given(x), "the layer", _in_turn(x, sublayers, norms, ones, ones))

    # With dropout 1 nothing of a sublayer's output survives, wherever else the layer drops something.
    module, state = _make_layer(cls, (6, 2, 5), shapes, dropout=1.0)
    sublayers, norms = parts(_Layer(state, 2))
    mistakes: dict[str, Callable[[], Tensor]] = {
        "dropout acts on the sum, not on the sublayer's output before it is added": lambda: torch.zeros_like(x),
        "the argument `dropout` has no effect": lambda: _in_turn(x, sublayers, norms, ones, ones),
    }

    # What is left of a sublayer whose output is not dropped depends on what else the layer drops.
    for chosen in range(1, 2 ** len(names)):
        undropped = [i for i in range(len(names)) if chosen >> i & 1]
        which = " and the ".join(names[i] for i in undropped)
        for inside in (True, False):
            mistakes[f"the output of the {which} is not dropped{' (something inside is)' if inside else ''}"] = (
                lambda undropped=undropped, inside=inside: _in_turn(
                    x,
                    [
                        (lambda h, i=i: state[biases[i]].expand_as(h)) if inside else sublayers[i]
                        for i in range(len(names))
                    ],
                    norms,
                    [float(i in undropped) for i in range(len(names))],
                    ones,
                )
            )
    value = call(module.train(), *given(x))
    expect_close(value, x, "while training with dropout=1.0 only the residual path is left: the result", mistakes)

    # Only the biases are left of each sublayer; dropped with probability 0.1, or divided by 0.9.
    module = call(cls, 1, 1, 1)
    state = {name: torch.zeros(shape) for name, shape in shapes(1, 1).items()}
    state[biases[-1]] = torch.ones(1)
    set_weights(module, state, torch.float32)
    y = call(module.train(), *given(torch.zeros(20, 100, 1)))
    share = (y == 0).double().mean().item()
    assert share > 0, "without the argument `dropout` nothing is dropped while training: the default is 0.1"
    assert abs(share - 0.1) < 0.05, f"without the argument `dropout` a share of {share:.2f} is dropped: 0.1 is asked"


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
    return _in_turn(x, *_decoder_parts(p, memory, memory_mask, mask), (1, 1, 1), (1, 1, 1))


def _decoder_mistakes(p: _Layer, x: Tensor, memory: Tensor, memory_mask: Tensor, mask: Tensor) -> Mistakes:
    sublayers, norms = _decoder_parts(p, memory, memory_mask, mask)
    back, over, feed = sublayers

    def layer(back: Callable = back, over: Callable = over, feed: Callable = feed, norms: Sequence = norms) -> Tensor:
        return _in_turn(x, [back, over, feed], norms, (1, 1, 1), (1, 1, 1))

    def attend(part: str, *who: str, mask: Tensor | None) -> Callable:
        """An attention with other queries, keys and values; "h" is the normed x."""
        given = {"x": lambda h: x, "h": lambda h: h, "memory": lambda h: memory}
        normed = {f"normed {i}": lambda h, i=i: p.norm(i)(memory) for i in (1, 2, 3)}
        return lambda h: p.attend(part, *[(given | normed)[w](h) for w in who], mask)

    def rows(m: Tensor, like: Tensor) -> Tensor:
        return m[:1].expand_as(like)

    over_with = partial(attend, "source_attention")
    back_with = partial(attend, "self_attention")
    mistakes: dict[str, Callable[[], Tensor]] = {
        "the two masks are exchanged: `mask` is for the self-attention, `memory_mask` for the attention to the "
        "source": lambda: layer(
            back_with("h", "h", "h", mask=memory_mask), over_with("h", "memory", "memory", mask=mask)
        ),
        "the self-attention does not get `mask`: it sees the future": lambda: layer(
            back_with("h", "h", "h", mask=None)
        ),
        "the attention to the source does not get `memory_mask`: it sees padding": lambda: layer(
            over=over_with("h", "memory", "memory", mask=None)
        ),
        "neither attention gets its mask": lambda: _decoder_layer(p, x, memory, None, None),
        "the attention to the source gets the target's `mask`, not `memory_mask`": lambda: layer(
            over=over_with("h", "memory", "memory", mask=mask)
        ),
        "the self-attention gets `memory_mask`, not `mask`": lambda: layer(back_with("h", "h", "h", mask=memory_mask)),
        "`mask` is turned round: True means that a position may be looked at": lambda: layer(
            back_with("h", "h", "h", mask=~mask)
        ),
        "`memory_mask` is turned round: True means that a position may be looked at": lambda: layer(
            over=over_with("h", "memory", "memory", mask=~memory_mask)
        ),
        "both masks are turned round: True means that a position may be looked at": lambda: _decoder_layer(
            p, x, memory, ~memory_mask, ~mask
        ),
        "the second attention looks at the target again: its keys and values are the memory": lambda: layer(
            over=over_with("h", "h", "h", mask=mask)
        ),
        "the second attention looks at the target again, with `memory_mask`: its keys and values are the memory": (
            lambda: layer(over=over_with("h", "h", "h", mask=memory_mask))
        ),
        "the second attention's values come from the target: they are the memory": lambda: layer(
            over=over_with("h", "memory", "h", mask=memory_mask)
        ),
        "the second attention's keys come from the target: they are the memory": lambda: layer(
            over=over_with("h", "h", "memory", mask=memory_mask)
        ),
        "queries and keys are exchanged: the target asks, the memory answers": lambda: layer(
            over=over_with("memory", "h", "h", mask=memory_mask)
        ),
        "queries and keys are exchanged, the memory asks: the target asks, the memory answers": lambda: layer(
            over=over_with("memory", "h", "memory", mask=memory_mask)
        ),
        "the self-attention looks at the memory: it looks at the target": lambda: layer(
            back_with("h", "memory", "memory", mask=mask)
        ),
        "the self-attention looks at the memory (with `memory_mask`): it looks at the target": lambda: layer(
            back_with("h", "memory", "memory", mask=memory_mask)
        ),
        "`self_attention` and `source_attention` are exchanged": lambda: layer(
            lambda h: p.attend("source_attention", h, h, h, mask),
            lambda h: p.attend("self_attention", h, memory, memory, memory_mask),
        ),
        "`self_attention` is used for the source too": lambda: layer(
            over=lambda h: p.attend("self_attention", h, memory, memory, memory_mask)
        ),
        "`source_attention` is used for the target too": lambda: layer(
            lambda h: p.attend("source_attention", h, h, h, mask)
        ),
        "only the queries of the self-attention are normalised: keys and values come from norm_1(x) too": lambda: layer(
            back_with("h", "x", "x", mask=mask)
        ),
        "`heads` is not passed on: each attention has one head": lambda: _decoder_layer(
            replace(p, heads=1), x, memory, memory_mask, mask
        ),
        "the feed-forward network has no ReLU": lambda: layer(feed=lambda h: p.feed(h, _same)),
        "the first sequence's memory is used for the whole batch": lambda: _decoder_layer(
            p, x, rows(memory, memory), memory_mask, mask
        ),
        "the first sequence's `memory_mask` is used for the whole batch": lambda: _decoder_layer(
            p, x, memory, rows(memory_mask, memory_mask), mask
        ),
        "the first sequence's `mask` is used for the whole batch": lambda: _decoder_layer(
            p, x, memory, memory_mask, rows(mask, mask)
        ),
    }
    for i in (1, 2, 3):
        mistakes[f"the memory goes through `norm_{i}`: the encoder has normalised it already"] = lambda i=i: layer(
            over=over_with("h", f"normed {i}", f"normed {i}", mask=memory_mask)
        )
    names = ["self-attention", "attention to the source", "feed-forward network"]
    return mistakes | dict(_common_mistakes(x, sublayers, norms, names))


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
    return {
        "x": 2 * randn(batch, n, dim) + 1,
        "memory": 2 * randn(batch, m, dim) - 1,
        "memory_mask": _ends([1 + (2 * i + 1) % m for i in range(batch)], m),
        "mask": _target_masks([1 + (3 * i + 2) % n for i in range(batch)], n),
    }


def check_decoder_layer(cls: Callable) -> None:
    """Parameters, values, precision."""
    for batch, n, m, dim, heads, hidden in _DECODER_SIZES:
        for dtype in (torch.float64,) if dim < 8 else (torch.float32, torch.float64):
            module, state = _make_layer(cls, (dim, heads, hidden), _DECODER_SHAPES, dtype)
            p = _Layer(state, heads)
            given = _decoder_inputs(batch, n, m, dim)
            given |= {name: given[name].to(dtype) for name in ("x", "memory")}
            with unchanged(**given):
                value = call(module, *given.values())
            right = given | {name: given[name].double() for name in ("x", "memory")}
            name = f"the layer's result for (B, n, m, d) = {(batch, n, m, dim)}, heads={heads}"
            mistakes = _decoder_mistakes(p, **right)
            expect_close(value, _decoder_layer(p, **right), name, mistakes, dtype)


def check_decoder_layer_training(cls: Callable) -> None:
    """Gradients, device, dropout."""
    _check_decoder_gradients(cls)
    memory = randn(2, 4, 6)
    _check_layer_dropout(
        cls,
        _DECODER_SHAPES,
        lambda p: _decoder_parts(p, memory, None, None),
        ["self-attention", "attention to the source", "feed-forward network"],
        ["self_attention.WO.bias", "source_attention.WO.bias", "feed_forward.outer.bias"],
        lambda x: (x, memory if x.shape[-1] == 6 else x, _EVERYTHING, _EVERYTHING),
    )


def _check_decoder_gradients(cls: Callable) -> None:
    module, state = _make_layer(cls, (6, 2, 5), _DECODER_SHAPES)
    given = _decoder_inputs(3, 4, 5, 6)
    masks = given["memory_mask"], given["mask"]
    expect_gradients(
        lambda x, memory: module(x, memory, *masks),
        lambda x, memory: _decoder_layer(_Layer(state, 2), x, memory, *masks),
        {"x": given["x"], "memory": given["memory"]},
    )
    expect_parameter_gradients(module, lambda s, *g: _decoder_layer(_Layer(s, 2), *g), state, [*given.values()])
    module.to(torch.float32).to("meta")
    expect_device(module, {name: v.float() if v.is_floating_point() else v for name, v in given.items()})


# ---- Encoder and Decoder


@dataclass(frozen=True)
class _Stack:
    """An encoder or a decoder in float64, with a switch for each mistake."""

    state: State
    heads: int
    depth: int
    name: str = ""
    scale: bool = True
    positions: str = "add"
    norm: str = "last"
    used: tuple[int, ...] | None = None
    chained: bool = True

    def embed(self, tokens: Tensor) -> Tensor:
        table = self.state[f"{self.name}embedder.embedding.weight"]
        x = table[tokens] * (table.shape[1] ** 0.5 if self.scale else 1.0)
        p = self.state[f"{self.name}positions.pe"][: tokens.shape[1]]
        if self.positions == "scaled":
            return (table[tokens] + p) * table.shape[1] ** 0.5
        return {"add": x + p, "none": x, "twice": x + 2 * p, "alone": x * 0 + p, "dropped": 0 * x}[self.positions]

    def final(self, x: Tensor) -> Tensor:
        return layer_norm(self.state, f"{self.name}norm", x)

    def run(self, x: Tensor, layer: Callable[[_Layer, Tensor], Tensor]) -> Tensor:
        start = self.final(x) if self.norm == "first" else x
        x = start
        for i in range(self.depth) if self.used is None else self.used:
            x = layer(_Layer(self.state, self.heads, f"{self.name}layers.{i}."), x if self.chained else start)
            x = self.final(x) if self.norm == "each" else x
        return self.final(x) if self.norm == "last" else x

    def encode(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        return self.run(self.embed(tokens), lambda p, x: _encoder_layer(p, x, mask))

    def decode(self, tokens: Tensor, memory: Tensor, memory_mask: Tensor | None, mask: Tensor | None) -> Tensor:
        return self.run(self.embed(tokens), lambda p, x: _decoder_layer(p, x, memory, memory_mask, mask))


def _stack_switches(depth: int) -> dict[str, dict[str, Any]]:
    return {
        "the final norm is missing": {"norm": "none"},
        "the norm acts after every layer: it comes once, after the last": {"norm": "each"},
        "the norm acts before the layers: it comes after the last": {"norm": "first"},
        "no positions are added": {"positions": "none"},
        "the positions are added twice": {"positions": "twice"},
        "the positions are scaled by √d too: only the embeddings are": {"positions": "scaled", "scale": False},
        "the embeddings are not scaled: use the Embedder": {"scale": False},
        "the tokens are not used, only their positions": {"positions": "alone"},
        "only the first layer is used": {"used": (0,)},
        "only the last layer is used": {"used": (depth - 1,)},
        "the last layer is not used": {"used": tuple(range(depth - 1))},
        "the first layer is not used": {"used": tuple(range(1, depth))},
        "the first layer is used again and again": {"used": (0,) * depth},
        "the layers run in reverse": {"used": tuple(reversed(range(depth)))},
        "no layer is used": {"used": ()},
        "every layer reads the embeddings: each reads what the one before it made": {"chained": False},
    }


def _stack_shapes(vocab: int, dim: int, depth: int, hidden: int, layer: Callable) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embedder.embedding.weight": (vocab, dim)}
    for i in range(depth):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer(dim, hidden).items()}
    return shapes | {"norm.weight": (dim,), "norm.bias": (dim,)}


_STACK_HINTS = {
    "layers": "`layers` is an nn.ModuleList of `depth` layers, each with weights of its own: use `clones`",
    "embedder": "`embedder` is Embedder(vocab_size, dim, pad_id)",
    "norm": "`norm` is a LayerNorm(dim), the norm after the last layer",
}


def _make_stack(
    cls: Callable, sizes: tuple[int, ...], pad_id: int, shapes: Callable, dropout: float = 0.0
) -> tuple[nn.Module, State]:
    vocab, dim, depth, heads, hidden = sizes
    module = call(cls, vocab, dim, depth, heads, hidden, dropout, pad_id)
    promised = _stack_shapes(vocab, dim, depth, hidden, shapes)
    expect_parameters(module, promised, _STACK_HINTS)
    row = dict(module.named_parameters())["embedder.embedding.weight"][pad_id]
    assert not row.any(), "`pad_id` is not passed on to the Embedder: its pad row should be zero"
    return module, _randomise(module, promised, pad_id) | _randomise_positions(module, [""], dim)


# (V, d, depth, heads, hidden, pad_id)
_STACK_SIZES = [((9, 6, 2, 3, 4), 1), ((7, 8, 3, 2, 5), 0), ((12, 4, 1, 1, 9), 5), ((8, 6, 4, 2, 3), 7)]


def check_encoder(cls: Callable) -> None:
    """Parameters, values, gradients, dropout."""
    for (sizes, pad_id), (batch, m) in zip(_STACK_SIZES, ((3, 5), (2, 4), (1, 6), (4, 1)), strict=True):
        _check_encoder_values(cls, sizes, pad_id, batch, m)
    _check_stack_training(cls, _ENCODER_SHAPES, lambda s, t, *_: s.encode(t, None), (_EVERYTHING,))


def _check_encoder_values(cls: Callable, sizes: tuple[int, ...], pad_id: int, batch: int, m: int) -> None:
    module, state = _make_stack(cls, sizes, pad_id, _ENCODER_SHAPES)
    right = _Stack(state, sizes[3], sizes[2])
    tokens, mask = randint(0, sizes[0], (batch, m)), _ends([1 + (2 * i) % m for i in range(batch)], m)
    with unchanged(tokens=tokens, mask=mask):
        value = call(module, tokens, mask)
    mistakes = {
        cause: lambda switch=switch: replace(right, **switch).encode(tokens, mask)
        for cause, switch in _stack_switches(sizes[2]).items()
    }
    mistakes |= {
        "the layers do not get the mask": lambda: right.encode(tokens, None),
        "the mask is turned round": lambda: right.encode(tokens, ~mask),
        "`heads` is not passed on": lambda: replace(right, heads=1).encode(tokens, mask),
    }
    name = f"the memory for tokens {tuple(tokens.shape)}, depth={sizes[2]}"
    expect_close(value, right.encode(tokens, mask), name, mistakes)


def check_decoder(cls: Callable) -> None:
    """Parameters, values, gradients, dropout."""
    shapes = ((3, 4, 4), (2, 4, 3), (1, 5, 6), (4, 1, 2))
    for (sizes, pad_id), shape in zip(_STACK_SIZES, shapes, strict=True):
        _check_decoder_values(cls, sizes, pad_id, shape)
    module, state = _make_stack(cls, (7, 6, 2, 2, 5), 1, _DECODER_SHAPES)
    tokens, given = torch.tensor([[2, 3, 6, 4], [5, 2, 1, 1]]), _decoder_inputs(2, 4, 3, 6)
    masks = given["memory_mask"], given["mask"]
    expect_gradients(
        lambda memory: module(tokens, memory, *masks),
        lambda memory: _Stack(state, 2, 2).decode(tokens, memory, *masks),
        {"memory": given["memory"]},
    )
    memory = randn(2, 4, 6)
    more = (memory, _EVERYTHING, _EVERYTHING)
    _check_stack_training(cls, _DECODER_SHAPES, lambda s, t, *_: s.decode(t, memory, None, None), more)


def _check_decoder_values(cls: Callable, sizes: tuple[int, ...], pad_id: int, shape: tuple[int, int, int]) -> None:
    batch, n, m = shape
    module, state = _make_stack(cls, sizes, pad_id, _DECODER_SHAPES)
    right = _Stack(state, sizes[3], sizes[2])
    given = {"tokens": randint(0, sizes[0], (batch, n))} | _decoder_inputs(batch, n, m, sizes[1])
    del given["x"]
    with unchanged(**given):
        value = call(module, *given.values())

    def but(**other: Any) -> Callable[[], Tensor]:
        return lambda: right.decode(**(given | other))

    mistakes = {
        cause: lambda switch=switch: replace(right, **switch).decode(**given)
        for cause, switch in _stack_switches(sizes[2]).items()
    }
    mistakes |= {
        "the two masks are exchanged on their way to the layers": but(
            memory_mask=given["mask"], mask=given["memory_mask"]
        ),
        "the layers do not get `mask`": but(mask=None),
        "the layers do not get `memory_mask`": but(memory_mask=None),
        "`heads` is not passed on": lambda: replace(right, heads=1).decode(**given),
        "the memory goes through the decoder's norm: the encoder has normalised it already": but(
            memory=right.final(given["memory"])
        ),
    }
    name = f"the result for tokens {(batch, n)}, memory {(batch, m, sizes[1])}, depth={sizes[2]}"
    expect_close(value, right.decode(**given), name, mistakes)


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
    expect_parameter_gradients(module, run_oracle, parameters, given)

    module, state = _make_stack(cls, sizes, 1, shapes, dropout=0.5)
    expect_same_in_eval(module, given, "it", oracle(_Stack(state, sizes[3], sizes[2]), *given))
    module, state = _make_stack(cls, sizes, 1, shapes, dropout=1.0)
    right = _Stack(state, sizes[3], sizes[2])
    expect_close(
        call(module.train(), *given),
        state["norm.bias"].expand(2, 4, 6),
        "while training with dropout=1.0 nothing survives but the final norm's bias: the result",
        {
            "the sum of embedding and position is not dropped: pass `dropout` to PositionEncoding": lambda: right.final(
                right.embed(given[0])
            ),
            "`dropout` is not passed on to the layers": lambda: oracle(replace(right, positions="dropped"), *given),
            "`dropout` has no effect": lambda: oracle(right, *given),
        },
    )


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
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    assert "output.weight" in names, "`output` is missing: nn.Linear(dim, target_vocab, bias=False)"
    assert "output.bias" not in names, "`output` should have no bias"
    parameters = dict(module.named_parameters())
    both = [name for name in _TIED if name in parameters]
    assert len(both) == 1, (
        "`output.weight` is a parameter of its own: it is not tied. It should be the very same parameter as the "
        "decoder's embedding: assign one to the other"
    )
    shapes = _translator_shapes(source_vocab, target_vocab, dim, depth, hidden)
    shapes[both[0]] = shapes.pop("decoder.embedder.embedding.weight")
    for name, shape in (("encoder.embedder.embedding.weight", source_vocab), (both[0], target_vocab)):
        found = parameters[name].shape[0] if name in parameters else shape
        assert found == shape, (
            f"`{name}` has {found} rows, but {shape} are right: source_vocab={source_vocab} is the encoder's, "
            f"target_vocab={target_vocab} the decoder's"
        )
    found = sum(name.startswith("encoder.layers.") and name.endswith("norm_1.weight") for name in parameters)
    assert found == depth, (
        f"with heads={heads} and depth={depth} the encoder has {found} layers: `Encoder` and `Decoder` take depth "
        "before heads, `Translator` takes heads before depth; pass them by name"
    )
    expect_parameters(module, shapes)
    state = _randomise(module, shapes, pad_id)
    return module, state | _randomise_positions(module, ["encoder.", "decoder."], dim)


@dataclass(frozen=True)
class _Whole:
    """The translator in float64, with a switch for each mistake."""

    state: State
    heads: int
    depth: int
    pad_id: int
    hide_source: str = "padding"
    hide_memory: str = "padding"
    hide_target: str = "both"
    out: str = "logits"
    pre_norm_memory: bool = False

    def _half(self, name: str) -> _Stack:
        return _Stack(self.state, self.heads, self.depth, name)

    def encode(self, source: Tensor) -> Tensor:
        real = (source != self.pad_id)[:, None]
        mask = {
            "padding": real,
            "nothing": None,
            "causal": real & torch.ones(2 * source.shape[1:], dtype=torch.bool).tril(),
        }[self.hide_source]
        return self._half("encoder.").encode(source, mask)

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        n = target.shape[1]
        real, causal = (target != self.pad_id)[:, None], torch.ones(n, n, dtype=torch.bool).tril()
        mask = {"both": real & causal, "padding": real, "future": causal, "nothing": None}[self.hide_target]
        memory_mask = {
            "padding": (source != self.pad_id)[:, None],
            "nothing": None,
            "target": real,
        }[self.hide_memory]
        x = self._half("decoder.").decode(target, memory, memory_mask, mask)
        logits = x @ self.state["decoder.embedder.embedding.weight"].T
        scale = x.shape[-1] ** 0.5
        return {
            "logits": lambda: logits,
            "log_softmax": lambda: logits.log_softmax(-1),
            "softmax": lambda: logits.softmax(-1),
            "hidden": lambda: x,
            "scaled": lambda: logits * scale,
            "divided": lambda: logits / scale,
            "last": lambda: logits[:, -1:],
            "shifted": lambda: logits[:, :-1],
            "lowest": lambda: logits.index_fill(-1, torch.tensor([self.pad_id]), -math.inf),
        }[self.out]()

    def __call__(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decode(target, self.encode(source), source)


_WHOLE_MISTAKES: dict[str, dict[str, Any]] = {
    "`pad_id` is taken to be 0: use the argument": {"pad_id": 0},
    "the encoder does not get the source mask, so that words look at padding": {"hide_source": "nothing"},
    "the encoder's mask is causal: the source is there as a whole, every word may look at every other": {
        "hide_source": "causal"
    },
    "the decoder does not get the source mask, so that it looks at the source's padding": {"hide_memory": "nothing"},
    "the decoder gets the target's padding as its mask of the memory: make it from `source`": {"hide_memory": "target"},
    "the decoder's target mask is not causal, so that it looks into the future": {"hide_target": "padding"},
    "the decoder's target mask does not hide padding": {"hide_target": "future"},
    "the decoder has no target mask": {"hide_target": "nothing"},
    "nothing is masked anywhere": {"hide_source": "nothing", "hide_memory": "nothing", "hide_target": "nothing"},
    "log-probabilities are returned, not logits: the loss takes the log-softmax itself": {"out": "log_softmax"},
    "probabilities are returned, not logits: the loss takes the log-softmax itself": {"out": "softmax"},
    "the decoder's vectors are returned: send them through `output`": {"out": "hidden"},
    "the logits are multiplied by √d: only what goes in is scaled": {"out": "scaled"},
    "the logits are divided by √d": {"out": "divided"},
    "only the last position's logits are returned: every position predicts": {"out": "last"},
    "the last position is cut off: the caller decides what to feed": {"out": "shifted"},
}

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
    """Parts, start, values of the three methods."""
    _check_start(cls)
    for sizes, pad_id, shape in _TRANSLATORS:
        _check_methods(cls, sizes, pad_id, shape)


def _check_methods(cls: Callable, sizes: tuple[int, ...], pad_id: int, shape: tuple[int, int, int]) -> None:
    batch, m, n = shape
    module, state = _make_translator(cls, sizes, pad_id)
    right = _Whole(state, sizes[3], sizes[4], pad_id)
    wrong = {cause: replace(right, **switch) for cause, switch in _WHOLE_MISTAKES.items()}
    source = _sentences(sizes[0], pad_id, (batch, m), [1 + (2 * i + 1) % m for i in range(batch)])
    target = _sentences(sizes[1], pad_id, (batch, n), [1 + (3 * i + 1) % n for i in range(batch)])
    about = f"(B, m, n) = {shape}, pad_id={pad_id}"
    with unchanged(source=source, target=target):
        memory = call(module.encode, source)
    mistakes = {cause: lambda w=w: w.encode(source) for cause, w in wrong.items()}
    expect_close(memory, right.encode(source), f"what `encode` returns for {about}", mistakes)

    other = randn(batch, m, sizes[2])  # a memory that `encode` would never give: `decode` must use what it is given
    with unchanged(target=target, memory=other, source=source):
        logits = call(module.decode, target, other, source)
    mistakes = {cause: lambda w=w: w.decode(target, other, source) for cause, w in wrong.items()}
    mistakes |= {
        "`decode` encodes the source itself: use the memory that it is given": lambda: right(source, target),
        "the logits of padding are -inf: they should be 0, as a zero row gives": lambda: replace(
            right, out="lowest"
        ).decode(target, other, source),
    }
    expect_close(logits, right.decode(target, other, source), f"what `decode` returns for {about}", mistakes)

    mistakes = {cause: lambda w=w: w(source, target) for cause, w in wrong.items()}
    with unchanged(source=source, target=target):
        logits = call(module, source, target)
    expect_close(logits, right(source, target), f"what `forward` returns for {about}", mistakes)


def check_translator_training(cls: Callable) -> None:
    """No leak, steps that agree, gradients, the pad row under training, dropout."""
    _check_leaks(cls)
    _check_gradients(cls)
    _check_pad_row(cls)
    given = torch.tensor([[2, 5, 1], [4, 3, 6]]), torch.tensor([[2, 3, 4, 5], [2, 6, 1, 1]])
    module, state = _make_translator(cls, (8, 8, 6, 2, 2, 5), 1, dropout=0.5)
    module.train()
    assert not torch.equal(call(module, *given), call(module, *given)), (
        "with dropout=0.5 two passes in training give the same: `dropout` is not passed on"
    )
    expect_same_in_eval(module, given, "the translator", _Whole(state, 2, 2, 1)(*given))


def _check_start(cls: Callable) -> None:
    """Zero pad rows, embeddings as the Embedder draws them, layers that differ, matrices as Xavier draws them."""
    module = call(cls, 300, 200, 32, 4, 3, 64, 0.0, 4)
    state = {name: value.double() for name, value in module.state_dict().items()}
    for name in ("encoder.embedder.embedding.weight", "decoder.embedder.embedding.weight"):
        assert name in state, f"the parameter `{name}` is missing: use Encoder and Decoder"
        assert not state[name][4].any(), (
            f"the pad row of `{name}` should start as zeros: pass `pad_id` on, and when you draw new matrices, leave "
            "the embeddings out"
        )
        spread = state[name].std().item()
        assert math.isclose(spread, 32**-0.5, rel_tol=0.1), (
            f"`{name}` starts with a standard deviation of {spread:.3f}, not 1/√d = {32**-0.5:.3f}: leave the "
            "embeddings as the Embedder drew them, and let `output` take its weight from there"
        )
    matrices = [name for name, value in state.items() if "layers." in name and value.dim() == 2]
    assert matrices, "there are no layers: use Encoder and Decoder"
    for name in matrices:
        twin = name.replace("layers.1.", "layers.0.")
        assert name == twin or not torch.equal(state[name], state[twin]), (
            f"`{name}` starts with the numbers of `{twin}`: clones start alike, so draw each matrix anew with "
            "nn.init.xavier_uniform_"
        )
    for name in matrices:
        out_size, in_size = state[name].shape
        right, spread = math.sqrt(2 / (out_size + in_size)), state[name].std().item()
        assert math.isclose(spread, right, rel_tol=0.15), (
            f"`{name}` starts with a standard deviation of {spread:.3f}, not √(2/(in + out)) = {right:.3f}: draw it "
            "with nn.init.xavier_uniform_"
        )


def _check_leaks(cls: Callable) -> None:
    """Changes of what must not be seen change nothing; what must be seen changes something."""
    module, _ = _make_translator(cls, (9, 8, 6, 2, 2, 5), 1)
    for training in (True, False):  # dropout is 0, so training makes no difference
        module.train(training)
        source = torch.tensor([[4, 5, 6, 1, 1], [7, 2, 1, 1, 1], [3, 8, 4, 5, 6]])
        target = torch.tensor([[2, 3, 4, 5], [2, 6, 7, 3], [2, 5, 1, 1]])
        logits = call(module, source, target)
        _expect_no_future(module, source, target, logits)
        _expect_no_padding(module, source, target, logits)
        for b in range(3):
            alone = call(module, source[b : b + 1], target[b : b + 1])
            assert torch.allclose(alone, logits[b : b + 1], atol=1e-9), (
                "a sentence alone gives other logits than in a batch: the items of a batch must not touch each other"
            )
        changed = source.clone()
        changed[:, 0] = torch.tensor([8, 3, 7])
        moved = (call(module, changed, target) - logits).abs().amax(-1)
        assert (moved > 1e-9).all(), "a source token changes and some logits do not: does the decoder see the memory?"


def _expect_no_future(module: nn.Module, source: Tensor, target: Tensor, logits: Tensor) -> None:
    for j in range(1, target.shape[1]):
        changed = target.clone()
        changed[:, j] = torch.tensor([6, 4, 7])
        moved = (call(module, source, changed) - logits).abs().amax(-1)
        assert (moved[:, :j] < 1e-9).all(), (
            f"changing target token {j} changes logits before position {j}: the decoder sees the future"
        )
        assert (moved[:, j] > 1e-9).all(), f"changing target token {j} does not change the logits at position {j}"
    memory = call(module.encode, source)
    for n in range(1, target.shape[1] + 1):
        step = call(module.decode, target[:, :n], memory, source)
        expect_close(
            step,
            logits[:, :n],
            f"decoding step by step, the logits for the first {n} target tokens (as in one pass over all)",
            tolerance=1e-8,
        )


def _expect_no_padding(module: nn.Module, source: Tensor, target: Tensor, logits: Tensor) -> None:
    memory = call(module.encode, source)
    spoiled = memory + 5.0 * (source == 1)[..., None] * randn(*memory.shape)
    moved = (call(module.decode, target, spoiled, source) - logits).abs().max()
    assert moved < 1e-9, "the decoder looks at the memory of padding: give it the mask made from `source`"
    longer = torch.cat([source, torch.full((3, 2), 1)], dim=1)
    same = call(module.encode, longer)[:, :5]
    real = (source != 1)[..., None]
    assert ((same - memory).abs() * real).max() < 1e-9, (
        "two more columns of padding change the memory of real tokens: the encoder needs the source mask"
    )
    assert torch.allclose(call(module, longer, target), logits, atol=1e-9), (
        "two more columns of source padding change the logits: padding must be hidden from encoder and decoder"
    )
    in_front = torch.cat([target[:, :1], torch.full((3, 1), 1), target[:, 1:]], dim=1)
    with_gap = call(module, source, in_front)
    assert torch.allclose(with_gap[:, 0], logits[:, 0], atol=1e-9), "a target token changes the logits before it"


def _check_gradients(cls: Callable) -> None:
    pad_id, source_table = 1, "encoder.embedder.embedding.weight"
    module, state = _make_translator(cls, (8, 9, 6, 2, 2, 5), pad_id)
    given = torch.tensor([[2, 5, 1], [4, 3, 6]]), torch.tensor([[2, 3, 4, 5], [2, 8, 1, 1]])
    # One of the two tied names is a parameter; which one is for the student's class to say.
    (tied,) = (name for name, _ in module.named_parameters() if name in _TIED)
    parameters = {name: state[name] for name in (*_translator_shapes(8, 9, 6, 2, 5), *_TIED) if name in state}
    del parameters[next(name for name in _TIED if name != tied)]
    with torch.enable_grad():
        module.zero_grad()
        call(module, *given).pow(2).sum().backward()
    found = {name: parameter.grad for name, parameter in module.named_parameters()}
    for name, title in ((source_table, source_table), (tied, _TIED[0])):
        assert found[name] is not None, f"no gradient reaches `{name}`"
        assert not found[name][pad_id].any(), (
            f"the pad row of `{title}` gets a gradient, so that training moves it away from zero. "
            "`padding_idx` guards the lookup only; the tied `output` sends a gradient too: make the logits of padding "
            "a constant 0"
        )

    def oracle(leaves: State, *given: Tensor) -> Tensor:
        full = state | leaves | {_TIED[0]: leaves[tied]}
        for name in (source_table, _TIED[0]):
            full = _without_pad_row(full, name, pad_id)
        return _Whole(full, 2, 2, pad_id)(*given)

    expect_parameter_gradients(module, oracle, parameters, given)


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
    source, target = torch.tensor([[2, 5, 1], [4, 3, 6]]), torch.tensor([[2, 3, 4, 5, 1], [2, 8, 3, 1, 1]])
    losses, (encoder, decoder, output) = place(train_copy, beside=cls)(module, source, target)
    assert losses[-1] < losses[0], (
        f"eight steps of AdamW do not lower the loss: it goes {losses[0]:.3f} → {losses[-1]:.3f}"
    )
    assert torch.equal(decoder, output), "in a `copy.deepcopy` of the model the tie is broken, or training broke it"
    for name, table in (("encoder", encoder), ("decoder", decoder)):
        assert not table[1].any(), (
            f"after a few steps of AdamW on a `copy.deepcopy` of the model the pad row of the {name}'s embedding is "
            "not zero: a hook on the parameter is lost in a copy; make the logits of padding a constant instead"
        )
