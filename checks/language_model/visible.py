"""What chapter 11's check cells call: small cases by hand, and the commonest mistakes by name."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Complaint,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_close,
    expect_number,
    expect_parameters,
    expect_raises,
    expect_tensor,
    explaining,
    named_parameters,
    nearest,
    place,
    unchanged,
)
from autograder.course.card import visible
from checks.language_model import mistakes as m

Pair = tuple[Tensor, Tensor]


def expect_pair(result: Any, known: type[Mistake], what: str = "the result") -> tuple[Any, Any]:
    """The two things that there should be, such as the output and the new cache."""
    expect(result is not None, Common.NO_RETURN, what, expected="a pair", got="None")
    pair = isinstance(result, tuple | list) and len(result) == 2
    expect(pair, known["NO_PAIR"], what, expected="a pair", got=f"a {result.__class__.__name__}")
    return result[0], result[1]


def expect_cache(cache: Any, name: str = "the cache") -> Pair:
    """The keys and the values of a cache."""
    keys, values = expect_pair(cache, m.CausalSelfAttention, name)
    expect_tensor(keys, name=f"the keys in {name}")
    expect_tensor(values, name=f"the values in {name}")
    return keys, values


def _tensors(wrong: Mapping[Mistake, Any]) -> dict[Mistake, Callable[[], Tensor]]:
    return {mistake: lambda value=value: torch.as_tensor(value) for mistake, value in wrong.items()}


@visible(
    "(1, 7) divided by 5, the root of its mean square, then scaled by `weight`",
    graded="other cases, large numbers, library functions, gradients, dtypes and devices",
)
def RMSNorm(cls: Callable) -> None:
    """The features (1, 7), whose mean square is 25, and (-6, 8), whose is 50."""
    norm = call(cls, 2)
    expect_parameters(norm, {"weight": (2,)})
    start = dict(norm.named_parameters())["weight"].detach()
    expect(torch.equal(start, torch.ones(2)), m.RMSNorm.START, "the start", expected=[1.0, 1.0], got=start)
    norm.load_state_dict({"weight": torch.tensor([1.0, 10.0])}, strict=False)
    x = torch.tensor([[[1.0, 7.0], [-6.0, 8.0]]])
    with unchanged(x=x):
        y = call(norm, x)
    root = 50**0.5
    wrong = {
        m.RMSNorm.WEIGHT_UNUSED: [[[0.2, 1.4], [-6 / root, 8 / root]]],
        m.RMSNorm.CENTRED: [[[-1.0, 10.0], [-1.0, 10.0]]],
        m.RMSNorm.SUM: [[[1 / root, 70 / root], [-0.6, 8.0]]],
        m.RMSNorm.NO_ROOT: [[[0.04, 2.8], [-0.12, 1.6]]],
        m.RMSNorm.MULTIPLIED: [[[5.0, 350.0], [-6 * root, 80 * root]]],
        m.RMSNorm.DEVIATION: [[[1 / 3, 70 / 3], [-6 / 7, 80 / 7]]],
        m.RMSNorm.UNBIASED_DEVIATION: [[[1 / 18**0.5, 70 / 18**0.5], [-6 / 98**0.5, 80 / 98**0.5]]],
        m.RMSNorm.ONE_PLUS_WEIGHT: [[[0.4, 15.4], [-12 / root, 88 / root]]],
        m.RMSNorm.POSITIONS: [[[1 / 18.5**0.5, 70 / 56.5**0.5], [-6 / 18.5**0.5, 80 / 56.5**0.5]]],
        m.RMSNorm.WHOLE: [[[1 / 37.5**0.5, 70 / 37.5**0.5], [-6 / 37.5**0.5, 80 / 37.5**0.5]]],
        m.RMSNorm.BATCH: [[[1.0, 10.0], [-1.0, 10.0]]],
        m.RMSNorm.KEEPDIM: [[[0.2, 70 / root], [-1.2, 80 / root]]],
        m.RMSNorm.VARIANCE_KEEPDIM: [[[1 / 18**0.5, 70 / 98**0.5], [-6 / 18**0.5, 80 / 98**0.5]]],
        m.RMSNorm.ABSOLUTE: [[[0.25, 17.5], [-6 / 7, 80 / 7]]],
        m.RMSNorm.SQUARE_OF_MEAN: [[[0.25, 17.5], [-6.0, 80.0]]],
    }
    right = torch.tensor([[[0.2, 14.0], [-6 / root, 80 / root]]])
    expect_close(y, right, "the result", _tensors(wrong), tolerance=1e-4)


@visible(
    "the shapes of the three maps, and the worked example of the text: gate, up and down each in its place",
    graded="other cases, gradients, dtypes and devices",
)
def SwiGLU(cls: Callable) -> None:
    """gate takes (1, -2) to itself, up takes it to (3, -1), down adds and subtracts; (0, 1) goes its own way."""
    network = call(cls, 2, 2)
    expect_parameters(network, {f"{name}.weight": (2, 2) for name in ("gate", "up", "down")})
    shapes = {"gate.weight": (5, 3), "up.weight": (5, 3), "down.weight": (3, 5)}
    expect_parameters(call(cls, 3, 5), shapes)
    into = torch.tensor([[2.0, 0.5], [0.0, 1.0]])
    up, down = torch.tensor([[1.0, -1.0], [0.0, 0.5]]), torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    weights = {"gate.weight": into, "up.weight": up, "down.weight": down}
    network.load_state_dict(weights, strict=False)  # it may hold them under further names
    x = torch.tensor([[[1.0, -2.0], [0.0, 1.0]]])
    with unchanged(x=x):
        y = call(network, x)

    gate, passed, silu = torch.tensor([[1.0, -2.0], [0.5, 1.0]]), torch.tensor([[3.0, -1.0], [-1.0, 0.5]]), F.silu
    hidden = {
        m.SwiGLU.ON_UP: gate * silu(passed),
        m.SwiGLU.ON_BOTH: silu(gate) * silu(passed),
        m.SwiGLU.NO_SILU: gate * passed,
        m.SwiGLU.AFTER_PRODUCT: silu(gate * passed),
        m.SwiGLU.TWICE: silu(silu(gate) * passed),
        m.SwiGLU.SIGMOID: gate.sigmoid() * passed,
        m.SwiGLU.GELU: F.gelu(gate) * passed,
        m.SwiGLU.RELU: gate.relu() * passed,
        m.SwiGLU.ADDED: silu(gate) + passed,
        m.SwiGLU.GATE_UNUSED: passed,
        m.SwiGLU.GATE_TWICE: silu(gate) * gate,
    }
    right = torch.tensor([[[2.431581, 1.954769], [0.054300, -0.676759]]])
    wrong = {mistake: (value @ down.T).unsqueeze(0) for mistake, value in hidden.items()}
    wrong[m.SwiGLU.RESIDUAL] = right + x
    wrong[m.SwiGLU.DOWN_UNUSED] = (silu(gate) * passed).unsqueeze(0)
    ones = [(silu(gate) @ down.T) * passed, silu(gate) * (passed @ down.T), silu(gate @ down.T) * passed]
    several = {
        m.SwiGLU.UP_UNUSED: lambda: nearest(y, *(one.expand_as(x) @ down.T for one in (silu(gate), silu(gate) * x))),
        m.SwiGLU.DOWN_FIRST: lambda: nearest(y, *(one.unsqueeze(0) for one in ones)),
    }
    expect_close(y, right, "the result", _tensors(wrong) | several, tolerance=1e-4)


# What torch and `rotate` say of four heads of queries and two of keys.
_UNEQUAL = {
    r"\((4\) .* \(2|2\) .* \(4)\) at non-singleton dimension 1": m.CausalSelfAttention.HEADS_UNEQUAL,
    "1 features do not make pairs": m.CausalSelfAttention.SPLIT_INTO_HEADS,
}


def _expect_heads(cls: Callable) -> None:
    """Four heads of queries, and as many of keys and values or two."""
    known = m.CausalSelfAttention
    for options, kept in ({}, 4), ({"kv_heads": 2}, 2):
        attention = call(cls, 8, 4, **options)
        shapes = {"Wq.weight": (8, 8), "Wk.weight": (2 * kept, 8), "Wv.weight": (2 * kept, 8), "WO.weight": (8, 8)}
        turned = any(
            p.shape == (8, 4) for name, p in named_parameters(attention).items() if name in ("Wk.weight", "Wv.weight")
        )
        expect_parameters(attention, shapes, {} if turned else {"Wk": known.SHARED_WIDTH, "Wv": known.SHARED_WIDTH})
        with explaining(f"three positions, dim 8, heads 4 and kv_heads {kept}", _UNEQUAL):
            result = call(attention, torch.zeros(1, 3, 8))
        _, cache = expect_pair(result, known)
        shape = tuple(expect_cache(cache)[0].shape)
        told = {"asked": f"dim 8, heads 4 and kv_heads {kept}", "expected": (1, kept, 3, 2), "got": shape}
        mistake = known.ONE_HEAD if shape[1] == 1 else known.COPIES_KEPT
        expect(shape == (1, kept, 3, 2), mistake, "the shape of the cached keys", **told)
    expect_raises(ValueError, lambda: cls(8, 4, 3), "kv_heads=3 for 4 heads")


def _attention(cls: Callable, queries: float, keys: float = 1.0) -> nn.Module:
    """One head of two features: every map leaves its input as it is, but for the queries' factor and the keys'."""
    attention = call(cls, 2, 1)
    names = ("Wq", "Wk", "Wv", "WO")
    expect_parameters(attention, {f"{name}.weight": (2, 2) for name in names})
    factors = {"Wq": queries, "Wk": keys}
    weights = {f"{n}.weight": factors.get(n, 1.0) * torch.eye(2) for n in names}
    attention.load_state_dict(weights, strict=False)
    return attention


def _turned(x: Tensor, first: int = 0) -> Tensor:
    """Two features turned by the angles first, first + 1, …"""
    angles = torch.arange(first, first + x.shape[1])
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((x[..., 0] * cos - x[..., 1] * sin, x[..., 0] * sin + x[..., 1] * cos), -1)


def _running(values: Tensor, scores: Tensor | None = None) -> Tensor:
    """What each position gets when it attends to itself and those before it, by scores that are 0 unless given."""
    n = values.shape[1]
    scores = torch.zeros(n, n) if scores is None else scores
    return scores.masked_fill(~torch.ones(n, n).tril().bool(), -math.inf).softmax(-1) @ values


@visible(
    "the running mean of the text, rotated keys in the cache, and the same output in one go and in two",
    graded="other cases, gradients, dtypes and devices",
)
def CausalSelfAttention(cls: Callable) -> None:
    """Without a preference each position averages those so far; then rotation, then the cache."""
    known = m.CausalSelfAttention
    attention = _attention(cls, 0.0)
    x = torch.tensor([[[2.0, 0.0], [4.0, 6.0], [0.0, 3.0]]])
    with unchanged(x=x):
        y, cache = expect_pair(call(attention, x), known)
    turned, mean = _turned(x), torch.tensor([[[2.0, 0.0], [3.0, 3.0], [2.0, 3.0]]])
    name = "the output when all scores are 0, the running mean of the positions,"
    expect_tensor(y, name=name)
    every, averaged, below = torch.tensor([[[2.0, 3.0]] * 3]), _running(turned), torch.ones(3, 3).tril()
    if _alike(y, averaged):  # with larger keys it shows what was averaged
        larger, _ = expect_pair(call(_attention(cls, 0.0, 2.0), x), known)
        expect(not _alike(larger, 2 * averaged), known.KEYS_AVERAGED, name, expected=mean, got=y)
    if _alike(y, every):  # with other scores it shows what the mask does
        scored, _ = expect_pair(call(_attention(cls, 1.0), x), known)
        filled = (turned @ turned.mT / 2**0.5).tril().softmax(-1) @ x
        expect(not _alike(scored, filled), known.MASKED_BY_0, name, expected=mean, got=y)
    wrong = {
        known.NO_MASK: every,
        known.NOT_ITSELF: [[[0.0, 0.0], [2.0, 0.0], [3.0, 3.0]]],
        known.NEXT_TOO: [[[3.0, 3.0], [2.0, 3.0], [2.0, 3.0]]],
        known.ROTATED_VALUES: averaged,
        known.MASKED_AFTER: below @ x / 3,
        known.OVER_QUERIES: below / below.sum(0) @ x,
        known.QUERIES_BY_WK: _running(x, turned @ turned.mT / 2**0.5),
        known.RESIDUAL: mean + x,
    }
    if _alike(y, torch.tensor(wrong[known.NEXT_TOO])):  # the keys show whether it is the mask or what it is made of
        keys, _ = expect_cache(cache)
        counted = _alike(keys, _turned(x, 1).unsqueeze(1))
        expect(not counted, known.FROM_1, "the keys in the cache", expected=turned, got=keys)
    # A mask turned round shows the later positions, and itself or not; the last one then sees nothing, or all alike.
    for later in (
        ([2.0, 3.0], [2.0, 4.5], [0.0, 3.0]),
        ([2.0, 4.5], [0.0, 3.0], [0.0, 0.0]),
        ([2.0, 4.5], [0.0, 3.0], [2.0, 3.0]),
    ):
        seen = _alike(y.nan_to_num(), torch.tensor([later]))
        expect(not seen, known.TURNED_ROUND, name, expected=mean, got=y)
    expect_close(y, mean, name, _tensors(wrong), tolerance=1e-4)

    keys, values = expect_cache(cache)
    exchanged = _alike(keys, x.unsqueeze(1)) and _alike(values, turned.unsqueeze(1))
    expect(not exchanged, known.VALUES_FIRST, "the keys in the cache", expected=turned, got=keys)
    wrong = {
        known.UNROTATED_KEYS: x.unsqueeze(1),
        known.WRONG_WAY: _turned(x * torch.tensor([1, -1])).unsqueeze(1) * torch.tensor([1, -1]),
        known.FROM_1: _turned(x, 1).unsqueeze(1),
        known.KEYS_BY_WQ: torch.zeros(1, 1, 3, 2),
        known.TURNED_AGAIN: _turned(turned).unsqueeze(1),
        known.MERGED_CACHE: turned,
    }
    turned = turned.unsqueeze(1)
    expect_close(keys, turned, "the keys in the cache", _tensors(wrong), tolerance=1e-4)
    expect_close(values, x.unsqueeze(1), "the values in the cache", tolerance=1e-4)

    # Three positions, then two more: the other sizes of the cache are 1 and 2.
    x = torch.cat((x, torch.tensor([[[2.0, -1.0], [7.0, 2.0]]])), 1)
    mean, turned = torch.tensor([[[2.0, 2.0], [3.0, 2.0]]]), _turned(x).unsqueeze(1)
    rest, new = _in_two(attention, x)
    old, latest = turned[:, :, :3], turned[:, :, 3:]

    def joined(old: Tensor, latest: Tensor) -> Tensor:
        return torch.cat((old, latest), 2)

    for first in (0, 1, 2, 4, 5):
        counted = _alike(new[0], joined(old, _turned(x[:, 3:], first).unsqueeze(1)))
        mistake = known.ANOTHER_T if first else known.FROM_0_AGAIN
        expect(not counted, mistake, "the keys in the new cache", expected=turned, got=new[0])
    wrong = {
        known.CACHE_UNUSED: [[[2.0, -1.0], [4.5, 0.5]]],
        known.NO_MASK_WITH_CACHE: [[[3.0, 2.0]] * 2],
        known.MASK_OVER_OLDEST: [[[2.0, 0.0], [3.0, 3.0]]],
        known.NEWEST_FIRST: [[[3.75, 1.75], [3.0, 2.0]]],
        known.JOINED_CROSSWISE: _running(torch.cat((old.squeeze(1), x[:, 3:]), 1))[:, 3:],
    }
    name = "the running mean of positions 3 and 4, given the cache of those before,"
    expect_close(rest, mean, name, _tensors(wrong), tolerance=1e-4)
    again = _turned(turned.squeeze(1)).unsqueeze(1)
    wrong = {
        known.OLD_LOST: lambda: latest,
        known.JOINED_CROSSWISE: lambda: joined(x[:, :3].unsqueeze(1), latest),
        known.UNROTATED_KEYS: lambda: joined(old, x[:, 3:].unsqueeze(1)),
        known.TURNED_AGAIN: lambda: nearest(new[0], again, joined(again[:, :, :3], latest)),
    }
    expect_close(new[0], turned, "the keys in the new cache", wrong, tolerance=1e-4)

    attention = _attention(cls, 1.0)
    whole, _ = expect_pair(call(attention, x), known)
    rest, _ = _in_two(attention, x)
    scores = F.pad(_turned(x[:, 3:]), (0, 0, 3, 0)) @ turned.squeeze(1).mT / 2**0.5  # only the queries from 0 again
    wrong = {known.FROM_0_AGAIN: lambda: _running(x, scores)[:, 3:]}
    name = "the output of positions 3 and 4, given the cache of those before,"
    expect_close(rest, whole[:, 3:], name, wrong, tolerance=1e-4)
    _expect_heads(cls)


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a.float(), b, atol=1e-4)


# What torch says of sizes where two positions follow three; without a cache all went well before.
_UNFIT = {
    r"\((2\) must match .*\(5|5\) must match .*\(2)\) at non-singleton": m.CausalSelfAttention.NEW_OR_ALL,
    r"batch2 tensor to be: \[1, (5\] but got: \[1, 2|2\] but got: \[1, 5)\]": m.CausalSelfAttention.NEW_OR_ALL,
    r"Sizes of tensors must match except in dimension [013]": m.CausalSelfAttention.JOINED_ASIDE,
}


def _in_two(attention: nn.Module, x: Tensor) -> tuple[Tensor, Pair]:
    """What two calls give, the first with three positions: the output of the others, and the cache of all."""
    _, cache = expect_pair(call(attention, x[:, :3]), m.CausalSelfAttention)
    old = expect_cache(cache)
    kept = unchanged(**{"the keys in the cache": old[0], "the values in the cache": old[1]})
    with kept, explaining("two more positions and a cache of three", _UNFIT):
        rest, new = expect_pair(call(attention, x[:, 3:], cache), m.CausalSelfAttention)
    return rest, expect_cache(new)


def expect_tied(module: nn.Module, shapes: Mapping[str, tuple[int, ...]], hints: Mapping[str, Mistake]) -> None:
    """Fail unless a language model has these parameters, and none for its output."""
    parameters = named_parameters(module)
    known = {id(parameter) for name, parameter in parameters.items() if name in shapes or name.startswith("layers.")}
    vocab = shapes["embedding.weight"][0]
    wide = [name for name, parameter in parameters.items() if id(parameter) not in known and vocab in parameter.shape]
    expect(not wide, m.LanguageModel.NOT_TIED, f"the one too many is `{min(wide)}`" if wide else "")
    expect_parameters(module, shapes, hints)


@visible(
    "parameters and shapes, that the future changes nothing, and the same scores in one go and in two",
    graded="other cases, sizes of 1, gradients, dtypes, devices and start values",
)
def LanguageModel(cls: Callable) -> None:
    """A small model: shapes, causality, caches."""
    known = m.LanguageModel
    try:
        model = call(cls, 7, 4, 2, 2, 5)
    except Complaint as complaint:
        if complaint.finding.mistake != Common.REFUSED.id:
            raise
        complain(known.LAYER_ARGUMENTS, "the call", asked="dim 4, heads 2, hidden 5", got=str(complaint.finding.got))
    shapes = {"embedding.weight": (7, 4), "norm.weight": (4,)}
    for layer in ("layers.0", "layers.1"):
        shapes |= {f"{layer}.attention.{name}.weight": (4, 4) for name in ("Wq", "Wk", "Wv", "WO")}
        shapes |= {f"{layer}.{name}.weight": (4,) for name in ("norm_1", "norm_2")}
        shapes |= {f"{layer}.feed_forward.{name}.weight": (5, 4) for name in ("gate", "up")}
        shapes |= {f"{layer}.feed_forward.down.weight": (4, 5)}
    listed_plainly = set(named_parameters(model)) == {"embedding.weight", "norm.weight"}
    kept = {".Wk": known.KV_HEADS_IGNORED, ".Wv": known.KV_HEADS_IGNORED}  # the first name of a layer is another
    hints = kept | {"feed_forward": known.HIDDEN_IGNORED} | ({"layers.0": known.NO_LAYERS} if listed_plainly else {})
    one = any(name.startswith("layers.0.") for name in named_parameters(model))
    hints |= {"layers.1": known.SHARED_LAYER} if one else {}
    expect_tied(model, shapes, hints)
    tokens = torch.tensor([[3, 1, 4, 1], [5, 6, 2, 0]])
    looked_up = {"'indices' to have one of the following scalar types: .* got torch.Float": known.CALLED_FOR_LOGITS}
    with unchanged(tokens=tokens), explaining("the tokens", looked_up):
        logits, caches = expect_pair(call(model, tokens), known)
    expect_tensor(logits, name="the logits")
    shape = tuple(logits.shape)
    expect(shape not in ((2, 1, 7), (2, 7)), known.LAST_ONLY, "the logits", expected="of shape (2, 4, 7)", got=shape)
    expect_tensor(logits, (2, 4, 7), name="the logits")
    expect_caches(caches, 2)
    heads = expect_cache(caches[0])[0].shape[1]
    expect(heads == 2, known.HEADS_IGNORED, "the number of heads in a cache", expected=2, got=heads)
    held = [expect_cache(cache)[0].shape[2] for cache in caches]
    expect(held == [4, 4], known.ANOTHER_CACHE, "the numbers of positions in the caches", expected=[4, 4], got=held)
    again, _ = expect_pair(call(model, tokens), known)
    expect_close(again, logits, "the logits of a second call for the same tokens", tolerance=1e-4)
    other = torch.cat((tokens[:, :3], (tokens[:, 3:] + 1) % 7), dim=1)
    changed, _ = expect_pair(call(model, other), known)
    what = "the logits before a token that was changed"
    expect_close(changed[:, :3], logits[:, :3], what, tolerance=1e-4, otherwise=known.SEES_FUTURE)
    _, caches = expect_pair(call(model, tokens[:, :2]), known)
    rest, _ = expect_pair(call(model, tokens[:, 2:], caches), known)
    wrong = {known.CACHES_UNUSED: lambda: model(tokens[:, 2:])[0]}
    # With one layer there is no other cache to take.
    single = call(cls, 7, 4, 2, 1, 5)
    whole, first = (expect_pair(call(single, part), known) for part in (tokens, tokens[:, :2]))
    alone, _ = expect_pair(call(single, tokens[:, 2:], first[1]), known)
    mixed = known.ANOTHER_CACHE if _alike(alone, whole[0][:, 2:]) else None
    what = "the logits of two positions, given the caches of those before,"
    expect_close(rest, logits[:, 2:], what, wrong, tolerance=1e-4, otherwise=mixed)
    shared = {name: (2, 4) for name in shapes if name.endswith(("Wk.weight", "Wv.weight"))}
    expect_tied(call(cls, 7, 4, 2, 2, 5, 1), shapes | shared, {"attention": known.KV_HEADS_IGNORED})


def expect_caches(caches: Any, depth: int) -> None:
    """Fail unless there is a cache for each layer."""
    got = len(caches) if isinstance(caches, list | tuple) else f"a {caches.__class__.__name__}"
    expect(got == depth, m.LanguageModel.CACHES, "the number of caches", expected=depth, got=got)
    for cache in caches:
        pair, got = isinstance(cache, list | tuple), "None" if cache is None else f"a {cache.__class__.__name__}"
        expect(pair, m.LanguageModel.CACHES, "the cache of a layer", expected="a pair", got=got)


def make_table_model(table):
    """A model whose scores depend on the last token alone: row `token` of the table."""

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", table)

        def forward(self, tokens, caches=None):
            return self.table[tokens], caches

    return Table()


@visible(
    "the worked example: probabilities 1/2, 1/4 and 1/8 have the perplexity 4", graded="other cases and sizes of 1"
)
def perplexity(function: Callable) -> None:
    """Three real predictions with probabilities 1/2, 1/4 and 1/8."""
    # Numbers, and so much padding, that hardly two mistakes give the same.
    chances = torch.tensor([[6.0, 4, 1, 5], [9, 1, 2, 4], [8, 2, 3, 3], [3, 5, 1, 7]]) / 16
    table = chances.log() + 1.5  # scores: a softmax makes the probabilities of them
    model = place(make_table_model, beside=function)(table)
    tokens = torch.tensor([[0, 1, 2, 3, 3, 3, 3], [2, 0, 3, 3, 3, 3, 3]])  # 3 is padding
    turned = {"log_softmax.* not implemented for 'Long'": m.perplexity.TARGETS_FIRST}
    with unchanged(tokens=tokens), explaining("the tokens", turned):
        value = call(function, model, tokens, 3)
    logs = [math.log(4), math.log(8), math.log(2)]  # 0 then 1, 1 then 2; 2 then 0
    twice = -chances.log_softmax(-1)[[0, 1, 2], [1, 2, 0]].mean()
    scores, inputs, targets = table[tokens[:, :-1]], tokens[:, :-1], tokens[:, 1:]
    behind = F.cross_entropy(scores.mT, targets, reduction="none")  # of padding too
    own = F.cross_entropy(table[tokens].mT, tokens, reduction="none")

    def nearest_number(*numbers: float) -> float:
        return min(numbers, key=lambda number: abs(number - value) if isinstance(value, float) else 0.0)

    def first_left_out() -> float:
        # The sum of all, divided by the sentences, is log 8, too; that of the first sentence alone is log 32.
        alone = call(function, model, tokens[:1], 3) if math.isclose(value, 8, rel_tol=1e-5) else math.nan
        return 8.0 if isinstance(alone, float) and math.isclose(alone, 8, rel_tol=1e-5) else math.nan

    known = m.perplexity
    wrong = {
        known.LOSS: sum(logs) / 3,
        known.SUM: math.exp(sum(logs)),
        known.SIGN: 1 / 4,
        known.SOFTMAX_FIRST: twice.exp().item(),
        known.NO_SOFTMAX: math.exp(sum(logs) / 3 - 1.5),
        known.PADDING: behind.mean().exp().item(),
        known.PADDING_ZEROED: math.exp(sum(logs) / 12),
        known.MEAN_OF_INVERSES: nearest_number((4 + 8 + 2) / 3, (4 + 8 + 2 + 9) / 12),  # without padding, and with
        known.POWER_OF_2: 2 ** (sum(logs) / 3),
        known.BY_SENTENCES: math.exp(sum(logs) / 2),
        # The first token counted, and not.
        known.NOT_SHIFTED: nearest_number(*(own[:, k:][tokens[:, k:] != 3].mean().exp().item() for k in range(2))),
        known.SHIFTED_BACK: F.cross_entropy(table[targets].mT, inputs, ignore_index=3).exp().item(),
        known.RESHAPED: F.cross_entropy(scores.reshape(2, 4, 6), targets, ignore_index=3).exp().item(),
        known.OF_REAL_ONES: behind[inputs != 3].mean().exp().item(),
        known.FIRST_COUNTED: math.exp(sum(logs) / 5),
        known.MEAN_OF_PERPLEXITIES: 32**0.5 / 2 + 1,
        known.MEAN_OF_MEANS: math.exp(((logs[0] + logs[1]) / 2 + logs[2]) / 2),
    }
    mistakes = {mistake: lambda number=number: number for mistake, number in wrong.items()}
    expect_number(value, 4.0, "the perplexity", {known.FIRST_LEFT_OUT: first_left_out, **mistakes})


def _why_drawn(settings: dict[str, Any], wanted: set[int], found: set[int]) -> Mistake:
    """The mistake behind tokens that are not those that the settings leave."""
    if 0 not in found:
        return m.sample_next.LEAST_LIKELY
    if found < wanted and "top_k" in settings:
        return m.sample_next.TOP_K_FEW
    if found > wanted:
        return m.sample_next.TOP_K if "top_k" in settings else m.sample_next.TOP_P
    if "top_p" not in settings or not found < wanted:
        return Unexplained.VALUES
    return m.sample_next.WARM if "temperature" in settings else m.sample_next.CROSSING


# What torch says of numbers that it cannot draw from.
UNDRAWN = "probability tensor contains|sum of probabilities"


def _never_drawn(function: Callable, logits: Tensor) -> bool:
    """Whether nothing can be drawn with any of these settings; what leaves too few tokens can with one or another."""

    def undrawn(scores: Tensor, **settings: Any) -> bool:
        try:
            call(function, scores, **settings)
        except Complaint as complaint:
            return bool(re.search(UNDRAWN, str(complaint.finding.got)))
        return False

    by_p = all(undrawn(logits, top_p=p) for p in (0.45, 0.7))
    return by_p or (undrawn(logits, top_k=2) and undrawn(logits + 100, top_k=2))


@visible(
    "greedy at temperature 0, the sets that top_k and top_p leave, and a generator that decides the draw",
    graded="other cases, sizes of 1, large numbers and devices",
)
def sample_next(function: Callable) -> None:
    """Probabilities 1/2, 1/4, 1/8, 1/8."""
    known = m.sample_next
    # Below 0, so that sums of scores never reach a `top_p`.
    logits = (torch.tensor([4.0, 2.0, 1.0, 1.0]).log() - 2).expand(2000, 4).clone()

    def drawn(**settings: Any) -> Tensor:
        with unchanged(logits=logits):
            tokens = call(function, logits, **settings)
        expect_tensor(tokens, (2000,), name="what is drawn", asked=listed(settings))
        expect(not tokens.is_floating_point(), known.FLOATS, "their dtype", got=tokens.dtype)
        return tokens

    with explaining("temperature=0", {UNDRAWN: known.NOT_GREEDY}):
        found = sorted(set(drawn(temperature=0).tolist()))
    expect(found == [0], known.NOT_GREEDY, "the tokens drawn", expected=[0], got=found)
    what = "the share of the likeliest token"
    signs = {UNDRAWN: known.NO_SOFTMAX, "argument 'replacement'": known.BY_POSITION}
    with explaining("no setting", signs):
        tokens = torch.stack([drawn() for _ in range(4)])  # with 2,000 alone chance decides now and then
    plain = (tokens == 0).double().mean().item()  # of probabilities taken for logits 0.317, of all alike 0.25
    expect(abs(plain - 0.317) > 0.034, known.SOFTMAX_TWICE, what, asked="no setting", expected=0.5, got=plain)
    if (tokens == tokens[:, :1]).all():  # one draw for all rows gives now this token, now that one
        alike = all(drawn().unique().tolist() == [0] for _ in range(20))
        told = {"expected": 0.5, "got": plain}
        complain(known.GREEDY if alike else known.ONE_FOR_ALL, what, asked="no setting", **told)
    share = (drawn(temperature=0.5) == 0).double().mean().item()
    # At temperature 1/2 the weights are squared: 16 of 22.
    shares = {1.0: known.GREEDY, 0.25: known.UNIFORM, 0.5: known.NO_TEMPERATURE, 0.37: known.MULTIPLIED}
    mistake = next((likely for value, likely in shares.items() if abs(share - value) < 0.05), Unexplained.NUMBER)
    expect(abs(share - 16 / 22) < 0.07, mistake, what, asked="temperature 0.5", expected=16 / 22, got=share)
    signs = {UNDRAWN: known.MINUS_INF} if _never_drawn(function, logits[:2].clone()) else {}
    for settings, wanted in (
        ({}, {0, 1, 2, 3}),
        ({"top_k": 2}, {0, 1}),
        ({"top_k": 9}, {0, 1, 2, 3}),
        ({"top_p": 0.45}, {0}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 0.9}, {0, 1, 2, 3}),  # a share of the tokens in place of the probability would leave three
        ({"top_p": 0.45, "temperature": 2.0}, {0, 1}),
    ):
        with explaining(listed(settings), signs):
            found = set(drawn(**settings).tolist())
        if found != wanted:
            asked = {"expected": sorted(wanted), "got": sorted(found)}
            complain(_why_drawn(settings, wanted, found), "what 2,000 draws give", asked=listed(settings), **asked)
    mixed = logits[:, [2, 0, 3, 1]].contiguous()  # 1/8, 1/2, 1/8, 1/4: sorting has work to do
    for settings in ({"top_p": 0.7}, {"top_k": 2}):
        found = sorted(set(call(function, mixed, **settings).tolist()))
        asked = f"{listed(settings)}, for the probabilities 1/8, 1/2, 1/8 and 1/4"
        # Unsorted, the sums before the tokens are 0, 1/8, 5/8 and 3/4: three are below 0.7.
        mistake = known.UNSORTED if "top_p" in settings and found == [0, 1, 2] else known.UNORDERED
        expect(found == [1, 3], mistake, "what 2,000 draws give", asked=asked, expected=[1, 3], got=found)
    first, again = (drawn(generator=torch.Generator().manual_seed(1)) for _ in range(2))
    expect(torch.equal(first, again), Common.NO_GENERATOR)
    expect_raises(ValueError, lambda: function(logits, temperature=-1.0), "a temperature of -1")
    expect_raises(ValueError, lambda: function(logits, top_k=0), "top_k=0")
    expect_raises(ValueError, lambda: function(logits, temperature=0, top_k=0), "top_k=0 at a temperature of 0")
    expect_raises(ValueError, lambda: function(logits, top_p=1.5), "top_p=1.5")


def listed(settings: Mapping[str, Any]) -> str:
    """Settings of a draw, for a message."""
    return ", ".join(f"{name}={value}" for name, value in settings.items() if name != "generator") or "no setting"


def make_counting_model(size, most):
    """A model that counts: after token t comes t + 1, and after size - 1 comes 0. It counts positions computed too."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.computed = 0

        def forward(self, tokens, caches=None):
            self.computed += tokens.numel()
            if tokens.dim() == 1:
                raise ValueError(f"the model was called with tokens of shape {tuple(tokens.shape)}: it takes (B, n)")
            if caches is not None and len(caches) == 0:
                raise ValueError("the caches are an empty list: before the first call there are none, which is None")
            past = 0 if caches is None else caches[0]
            if self.computed > most:  # tired: whoever computes positions twice gets another answer
                tokens = tokens + 1
            return F.one_hot((tokens + 1) % size, size).float() * 50.0, [past + tokens.shape[1]]

    return Counting()


# What a model that tires makes of the first text, from the last token on, from the last but one and so on.
_TIRED = [
    torch.tensor(rows)
    for rows in (
        [[2, 3, 4, 5, 0, 2], [3, 4, 5, 0, 1, 3]],
        [[2, 3, 4, 5, 1, 3], [3, 4, 5, 0, 2, 4]],
        [[2, 3, 4, 0, 2, 4], [3, 4, 5, 1, 3, 5]],
    )
]

# Prompt, length and `eos_id`, what should be written, and what each other mistake gives.
_TEXTS = (
    (
        [[2, 3], [3, 4]],
        4,
        None,
        [[2, 3, 4, 5, 0, 1], [3, 4, 5, 0, 1, 2]],
        {
            m.generate.PROMPT_AGAIN: [[2, 3, 4, 4, 4, 5], [3, 4, 5, 5, 5, 0]],
            m.generate.ONE_TOO_FEW: [[2, 3, 4, 5, 0], [3, 4, 5, 0, 1]],
            m.generate.ONE_TOO_MANY: [[2, 3, 4, 5, 0, 1, 2], [3, 4, 5, 0, 1, 2, 3]],
            m.generate.PROMPT_COUNTED: [[2, 3, 4, 5], [3, 4, 5, 0]],
            m.generate.ONE_ALONE: [[2, 3, 4], [3, 4, 5]],
            m.generate.FIRST_POSITION: [[2, 3, 3, 4, 5, 0], [3, 4, 4, 5, 0, 1]],
            m.generate.FIRST_ROW: [[2, 3, 4, 5, 0, 1], [3, 4, 4, 5, 0, 1]],
            m.generate.NO_PROMPT: [[4, 5, 0, 1], [5, 0, 1, 2]],
            m.generate.TEMPERATURE_TWICE: [[2, 3] + [0] * 4, [3, 4] + [0] * 4],  # 0 / 0, of which the first is taken
        },
    ),
    (
        [[3, 4]],
        3,
        5,
        [[3, 4, 5]],
        {
            m.generate.ALL_ENDED: [[3, 4, 5, 5, 5]],
            m.generate.LAST_END_LOST: [[3, 4]],
            m.generate.NO_EOS: [[3, 4, 5, 0, 1]],
        },
    ),
    (
        [[1, 2], [3, 4]],
        4,
        5,
        [[1, 2, 3, 4, 5], [3, 4, 5, 5, 5]],
        {
            m.generate.ENDED_GOES_ON: [[1, 2, 3, 4, 5], [3, 4, 5, 0, 1]],
            m.generate.FILLED: [[1, 2, 3, 4, 5], [3, 4, 5, 0, 0]],
            m.generate.ALL_ENDED: [[1, 2, 3, 4, 5, 5], [3, 4, 5, 5, 5, 5]],
            m.generate.FIRST_ENDED: [[1, 2, 3], [3, 4, 5]],
            m.generate.LAST_END_LOST: [[1, 2, 3, 4], [3, 4, 5, 5]],
            m.generate.ENDED_FORGOTTEN: [[1, 2, 3, 4, 5, 0], [3, 4, 5, 0, 1, 2]],
        },
    ),
)


@visible(
    "the prompt goes on as the model says, rows that have ended stay ended, each position is computed once",
    graded="other cases, no graph and the generator",
)
def generate(function: Callable) -> None:
    """After 2 and 3 come 4, 5 and 0; with 5 as the end, a row alone ends at once, and beside it another one later."""
    for rows, length, eos_id, wanted, wrong in _TEXTS:
        prompt = torch.tensor(rows)
        model = place(make_counting_model, beside=function)(6, 12)
        asked = f"the prompt {rows}, length {length} and eos_id {eos_id}"
        signs = {
            "Sizes of tensors must match except in dimension 0": m.generate.JOINED_BELOW,
            "the model was called with tokens of shape": m.generate.NO_POSITIONS,
        }
        with unchanged(prompt=prompt), explaining(asked, signs):
            tokens = call(function, model, prompt, length, eos_id=eos_id, temperature=0)
        again = {m.generate.COMPUTED_AGAIN: lambda tokens=tokens: nearest(tokens, *_TIRED)}
        expect_close(tokens, torch.tensor(wanted), "what is written", again | _tensors(wrong), asked=asked)


@visible(
    "six tokens by hand, of which three have an earlier copy, and one of them two",
    graded="other cases, gradients, dtypes and devices",
)
def induction_score(function: Callable) -> None:
    """Heads that look behind the copies, at everything alike, at the first position, and at the next one."""
    known = m.induction_score
    tokens = torch.tensor([[5, 7, 5, 9, 5, 7]])
    sharp = torch.zeros(6, 6)
    rows = [
        [1.0],
        [0.5, 0.5],
        [0.1, 0.7, 0.2],
        [0.4, 0.3, 0.2, 0.1],
        [0.1, 0.2, 0.15, 0.45, 0.1],
        [0.15, 0.05, 0.65, 0.05, 0.05, 0.05],
    ]
    for i, row in enumerate(rows):
        sharp[i, : i + 1] = torch.tensor(row)
    even = torch.ones(6, 6).tril() / torch.arange(1, 7).unsqueeze(1)
    first = torch.eye(6)[:1].expand(6, 6)
    ahead = torch.eye(6).roll(1, dims=1)  # read the wrong way round it looks back
    weights = torch.stack((sharp, even, first, ahead)).unsqueeze(0)
    with unchanged(weights=weights, tokens=tokens):
        value = call(function, weights, tokens)

    def mean(*places: tuple[int, int]) -> Tensor:
        return torch.stack([weights[0, :, i, j] for i, j in places]).mean(0)

    right = mean((2, 1), (4, 3), (5, 2))
    wrong = {
        known.AT_THE_COPY: mean((2, 0), (4, 2), (5, 1)),
        known.BEFORE_THE_COPY: mean((2, 5), (4, 1), (5, 0)),
        known.FIRST_COPY: mean((2, 1), (4, 1), (5, 2)),
        known.ITSELF: mean(*((i, min(i + 1, 5)) for i in range(6))),
        known.ALL_POSITIONS: right / 2,
        known.ALL_HEADS: right / 4,
        known.COPY_AT_0: mean((4, 3), (5, 2)),
        known.NEW_ADDED: right + mean((0, 0), (1, 0), (3, 0)),
        known.TRANSPOSED: mean((1, 2), (3, 4), (2, 5)),
        known.SUM: 3 * right,
        known.NOT_OVER_BATCH: right.unsqueeze(0),
        known.OVER_HEADS: right.mean(),
    }
    # All copies of a token: their weights added up; the mean over all of them; the mean of each position's own mean.
    added = mean((2, 1), (5, 2)) * 2 / 3 + mean((4, 1), (4, 3)) * 2 / 3
    of_copies = (added, added * 3 / 4, mean((2, 1), (5, 2)) * 2 / 3 + mean((4, 1), (4, 3)) / 3)
    all_copies = {known.ALL_COPIES: lambda: nearest(value, *of_copies)}
    expect_close(value, right, "the scores of four heads", _tensors(wrong) | all_copies, tolerance=1e-4)
