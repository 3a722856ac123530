"""What chapter 09's check cells call: small cases by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import call, expect_close, expect_tensor, place, unchanged
from autograder.course.card import visible


def _expect(y: Any, right: Tensor, wrong: Mapping[str, Tensor], name: str = "the result") -> None:
    """Fail with the numbers, and with the mistake's name if the result is what a mistake gives."""
    expect_close(y, right, name, {cause: lambda v=value: v for cause, value in wrong.items()}, tolerance=1e-3)


def _expect_parts(module: nn.Module, parts: Sequence[str], owner: str) -> dict[str, Tensor]:
    """The names of a module's weights with zeros of their shapes, once each part is there with weights of its own."""
    weights = {name: torch.zeros_like(value) for name, value in module.state_dict().items()}
    own = {name for name, _ in module.named_parameters()}
    for part in parts:
        assert any(name.startswith(f"{part}.") for name in weights), (
            f"{owner} has no part with weights called `{part}`: see the docstring for the parts and their names"
        )
        assert any(name.startswith(f"{part}.") for name in own), (
            f"`{part}` is the same module as another part: each needs weights of its own"
        )
    return weights


# ---- clones


def make_layer():
    """What is to be copied."""
    return nn.Linear(3, 2)


def overwrite(layer):
    """Write into a layer."""
    with torch.no_grad():
        layer.weight.fill_(7.0)


@visible("three copies that start alike, are no longer alike once one is written to, and leave the original alone")
def clones(function: Callable) -> None:
    """Three copies of a linear layer."""
    original = place(make_layer, beside=function)()
    start = original.state_dict()["weight"].clone()
    copies = call(function, original, 3)
    assert copies is not None, "clones returned None: is there a `return`?"
    assert isinstance(copies, nn.ModuleList), (
        "the copies should be in an nn.ModuleList: torch finds parameters only in its own lists"
    )
    assert len(copies) == 3, f"three copies were asked for, there are {len(copies)}"
    names = [name for name, _ in copies.named_parameters()]
    assert len(names) == 6, (
        "three copies of a layer with a weight and a bias have 6 parameters of their own, these have "
        f"{len(names)}: they share their weights"
    )
    assert all(torch.equal(copies[i].state_dict()["weight"], start) for i in range(3)), (
        "the copies do not start with the weights of the original: copy it, do not make new ones"
    )
    place(overwrite, beside=function)(copies[0])
    assert not (copies[1].state_dict()["weight"] == 7).any(), (
        "writing into copy 0 changed copy 1: they share their weights"
    )
    assert not (original.state_dict()["weight"] == 7).any(), (
        "writing into copy 0 changed the original: copy 0 is the original itself"
    )


# ---- Embedder

_SMALL_TABLE = torch.arange(1.0, 21).reshape(5, 4).index_fill(0, torch.tensor([2]), 0.0)


@visible("the factor √d on rows that you can read, the start of the table, and a pad row that gets no gradient")
def Embedder(cls: Callable) -> None:
    """Five tokens of four features; token 2 is the padding."""
    embedder = call(cls, 5, 4, pad_id=2)
    weights = embedder.state_dict()
    assert "embedding.weight" in weights, "`embedding` is missing: an nn.Embedding(vocab_size, dim, …)"
    assert weights["embedding.weight"].shape == (5, 4), (
        f"the embedding should be (V, d) = (5, 4), got {tuple(weights['embedding.weight'].shape)}"
    )
    assert not weights["embedding.weight"][2].any(), (
        "row 2, the padding's, should start as zeros: pass `padding_idx=pad_id`, and if you draw new numbers "
        "afterwards, zero that row again"
    )
    embedder.load_state_dict({"embedding.weight": _SMALL_TABLE.clone()})
    tokens = torch.tensor([[3, 2, 0]])
    with unchanged(tokens=tokens):
        y = call(embedder, tokens)
    found = _SMALL_TABLE[tokens]
    wrong = {
        "the vectors are not scaled: multiply by √d": found,
        "the vectors are multiplied by d, not by √d": 4 * found,
        "the vectors are divided by √d: multiply": found / 2,
        "the vectors are multiplied by √V, not by √d": 5**0.5 * found,
        "the vectors are multiplied by √n, the root of the sequence's length, not by √d": 3**0.5 * found,
    }
    _expect(y, 2 * found, wrong, "the result for tokens 3, 2 and 0")
    y.sum().backward()
    gradient = dict(embedder.named_parameters())["embedding.weight"].grad
    assert gradient is not None and gradient[3].any(), "no gradient reaches the embedding"
    assert not gradient[2].any(), (
        "the pad row gets a gradient, so that it does not stay zero: pass `padding_idx=pad_id`"
    )
    spread = call(cls, 1000, 100, pad_id=0).state_dict()["embedding.weight"].std().item()
    assert 0.08 < spread < 0.12, (
        f"for d = 100 the embedding should start with a standard deviation of 1/√d = 0.1, not {spread:.2f}"
    )


# ---- target_mask


@visible("a sentence of three words and one of two with padding, entry by entry")
def target_mask(function: Callable) -> None:
    """Two sentences; the third token of the second is padding."""
    tokens = torch.tensor([[2, 5, 7], [2, 6, 0]])
    with unchanged(tokens=tokens):
        mask = call(function, tokens, 0)
    expect_tensor(mask)
    assert mask.dtype == torch.bool, f"the mask should be bool, got {mask.dtype}"
    full = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    short = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 0]]).bool()
    assert mask.shape != (3, 3), (
        "the dimension of the batch is missing: each sentence has its own padding, so the shape is (B, n, n)"
    )
    assert mask.shape == (2, 3, 3), f"the shape should be (B, n, n) = (2, 3, 3), got {tuple(mask.shape)}"
    assert not mask[0].all(), "the future is not hidden: a position may not look at later ones"
    wrong = {
        "the causal part is upside down: a position may look at itself and at what is before it": full.T,
        "a position may look one step ahead: the diagonal is one too high": torch.ones(3, 3).tril(1).bool(),
        "a position may not look at itself: keep the diagonal": full.tril(-1),
        "the mask is turned round: True means that a position may be looked at": ~full,
    }
    for cause, value in wrong.items():
        assert not torch.equal(mask[0], value), cause
    assert torch.equal(mask[0], full), f"without padding it is {full.int().tolist()}, got {mask[0].int().tolist()}"
    assert not torch.equal(mask[1], full), "padding is not hidden: this is the causal mask alone"
    assert mask[1, 2].any(), "padding hides a row (who looks); it should hide a column (what is looked at)"
    assert torch.equal(mask[1], short), (
        f"when the third token is padding it is {short.int().tolist()}, got {mask[1].int().tolist()}"
    )


# ---- the layers. With the weights below an attention gives the mean of the positions that it may look at, and the
# feed-forward network a ReLU of what comes in.

_ONE = torch.eye(4)
_X = torch.tensor([[[1.0, 2, 4, 8], [3, 0, 1, -1], [-2, 5, 0, 1]]])  # (B=1, n=3, d=4)
_MEMORY = torch.tensor([[[4.0, 0, 0, 1], [0, 2, -2, 3], [9, 9, 9, 0]]])  # (B=1, m=3, d=4)
_FIRST_TWO = torch.tensor([[[True, True, False]]])
_BACK = torch.ones(1, 3, 3).tril().bool()
_AROUND = "norm(x) is added, not x itself: the residual path goes round the norm"


def _norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, (4,))


def _over(mask: Tensor, x: Tensor) -> Tensor:
    """The mean of the positions that each row may look at."""
    return mask / mask.sum(-1, keepdim=True).clamp(min=1) @ x


def _plain_layer(layer: nn.Module, attentions: Sequence[str], norms: int) -> nn.Module:
    """The same layer with those weights; `norm_i` multiplies by i."""
    parts = [f"norm_{i}" for i in range(1, norms + 1)]
    weights = _expect_parts(layer, [*parts, *attentions, "feed_forward"], "the layer")
    assert "feed_forward.inner.bias" in weights, "`feed_forward` is the FeedForward of chapter 6"
    assert weights["feed_forward.inner.bias"].shape == (4,), "`hidden` is not passed on"
    weights |= {f"{part}.{matrix}.weight": _ONE for part in attentions for matrix in ("Wv", "WO")}
    weights |= {"feed_forward.inner.weight": _ONE, "feed_forward.outer.weight": _ONE}
    weights |= {f"norm_{i}.weight": torch.full((4,), float(i)) for i in range(1, norms + 1)}
    layer.load_state_dict({name: value.clone() for name, value in weights.items()})
    return layer


def _layer_result(layer: nn.Module, x: Tensor, *more: Tensor) -> Tensor:
    given = x.clone()
    with unchanged(x=given):
        y = call(layer, given, *more)
    assert y is not None, "forward returned None: is there a `return`?"
    assert isinstance(y, Tensor), "forward should return x alone, without the attention's weights"
    expect_tensor(y, x.shape)
    return y


@visible("one layer by hand: two norms, two residuals, the mask, and that the path goes round the norms")
def EncoderLayer(cls: Callable) -> None:
    """Three positions, the last of them padding."""
    layer = _plain_layer(call(cls, 4, 2, 4, dropout=0.0), ["attention"], 2)
    y = _layer_result(layer, _X, _FIRST_TWO)
    x, everything = _X, torch.ones(1, 1, 3)

    def second(x: Tensor, scale: float = 2) -> Tensor:
        return x + F.relu(scale * _norm(x))

    n, seen = _norm(x), _over(_FIRST_TWO, _norm(x))
    a, b = x + seen, x + _norm(_over(_FIRST_TWO, x))  # after the first half; b: a norm on the sublayer's output
    post = _norm(x + _over(_FIRST_TWO, x))
    wrong = {
        "the mask is not passed on to the attention": second(x + _over(everything, n)),
        "the mask is turned round on its way to the attention": second(x + n[:, 2:]),
        "`norm_1` is missing, or keys and values are not normalised": second(x + _over(_FIRST_TWO, x)),
        "this is post-norm, not pre-norm": 2 * _norm(post + F.relu(post)),
        f"around the attention {_AROUND}": second(n + seen),
        f"around the feed-forward network {_AROUND}": 2 * _norm(a) + F.relu(2 * _norm(a)),
        "the residual around the attention is subtracted, not added": second(x - seen),
        "the residual around the feed-forward network is subtracted, not added": a - F.relu(2 * _norm(a)),
        "the residual connection around the attention is missing": second(seen.expand(1, 3, 4)),
        "the residual connection around the feed-forward network is missing": F.relu(2 * _norm(a)),
        "`norm_2` is missing": a + F.relu(a),
        "the network reads the layer's input, not the sum before it": a + F.relu(2 * n),
        "a LayerNorm acts on each sublayer's output, not on its input": b + 2 * _norm(F.relu(b)),
        "`norm_1` and `norm_2` are exchanged": second(x + 2 * seen, 1),
        "`norm_1` is used twice, and `norm_2` never": second(a, 1),
        "the feed-forward network has no ReLU": a + 2 * _norm(a),
        "the attention is missing": second(x),
        "the feed-forward network is missing": a,
        "the network comes before the attention": second(x) + _over(_FIRST_TWO, _norm(second(x))),
        "a norm follows the last addition: a pre-norm layer ends with the sum": 2 * _norm(second(a)),
    }
    _expect(y, second(a), wrong)


@visible("one layer by hand: what each attention looks at and with which mask, three norms, three residuals")
def DecoderLayer(cls: Callable) -> None:
    """Three target positions and three of the memory, so that exchanged masks would fit."""
    layer = _plain_layer(call(cls, 4, 2, 4, dropout=0.0), ["self_attention", "source_attention"], 3)
    y = _layer_result(layer, _X, _MEMORY, _FIRST_TWO, _BACK)
    x, memory, everything, n = _X, _MEMORY, torch.ones(1, 3, 3), _norm(_X)
    back, found = _over(_BACK, n), _over(_FIRST_TWO, memory)
    total = x + back + found  # what reaches the feed-forward network
    again = 2 * _norm(x + back)  # what the second attention's queries are made of
    look_again = "the second attention looks at the target again: its keys and values are the memory"
    before_the_network = {
        "the two masks are exchanged": x + _over(_FIRST_TWO, n) + _over(_BACK, memory),
        "the self-attention does not get `mask`: it sees the future": x + _over(everything, n) + found,
        "the attention to the source does not get `memory_mask`": x + back + _over(everything, memory),
        "neither attention gets its mask": x + _over(everything, n) + _over(everything, memory),
        "the attention to the source gets `mask`: it needs `memory_mask`": x + back + _over(_BACK, memory),
        "the self-attention gets `memory_mask`: it needs `mask`": x + _over(_FIRST_TWO, n) + found,
        "`mask` is turned round on its way to the attention": x + _over(~_BACK, n) + found,
        "`memory_mask` is turned round on its way to the attention": x + back + memory[:, 2:],
        "the self-attention looks at the memory": x + 2 * found,
        "the attention to the source is missing": x + back,
        "the self-attention is missing": x + found,
        "the sublayers come in the wrong order: self-attention, source, feed-forward network": (
            x + found + _over(_BACK, _norm(x + found))
        ),
        "the residual around the attention to the source is subtracted": x + back - found,
        "the residual connection around the attention to the source is missing": found.expand_as(x),
        "the residual connection around the self-attention is missing": back + found,
        "`norm_1` is missing, or keys and values are not normalised": x + _over(_BACK, x) + found,
        _AROUND: n + back + found,
        f"around the second attention {_AROUND}": again + found,
        look_again: x + back + _over(_FIRST_TWO, again),
        f"{look_again} (it gets `mask`)": x + back + _over(_BACK, again),
    }
    for i in (1, 2, 3):
        normed = x + back + _over(_FIRST_TWO, i * _norm(memory))
        before_the_network[f"the memory is normalised again, by `norm_{i}`: the encoder has done it"] = normed

    def third(x: Tensor) -> Tensor:
        return x + F.relu(3 * _norm(x))

    post = 2 * _norm(_norm(x + _over(_BACK, x)) + found)
    wrong = {cause: third(value) for cause, value in before_the_network.items()} | {
        "the feed-forward network is missing": total,
        "the feed-forward network has no ReLU": total + 3 * _norm(total),
        "the residual connection around the feed-forward network is missing": F.relu(3 * _norm(total)),
        "`norm_3` is missing": total + F.relu(total),
        "`norm_1` takes the place of `norm_3`": total + F.relu(_norm(total)),
        "`norm_2` takes the place of `norm_3`": total + F.relu(2 * _norm(total)),
        "a norm follows the last addition: a pre-norm layer ends with the sum": 3 * _norm(third(total)),
        "this is post-norm, not pre-norm": 3 * _norm(post + F.relu(post)),
    }
    _expect(y, third(total), wrong)


@visible("gradients to the memory and to each parameter; dropout on each sublayer's output")
def DecoderLayer_training(cls: Callable) -> None:
    """What training needs: gradients everywhere, and dropout in its places."""
    layer = call(cls, 8, 2, 16, dropout=0.0)
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 8, requires_grad=True)
    real = torch.tensor([[[1, 1, 1, 0, 0]], [[1, 1, 1, 1, 1]]]).bool()
    mask = torch.ones(3, 3).tril().bool().expand(2, 3, 3)
    _layer_result(layer, x, memory, real, mask).pow(2).sum().backward()
    assert memory.grad is not None and memory.grad.any(), (
        "no gradient reaches the memory, so that the encoder would learn nothing"
    )
    assert not memory.grad[0, 3:].any(), "the hidden part of the memory gets a gradient"
    for name, parameter in layer.named_parameters():
        if not name.endswith("Wk.bias"):  # this one shifts all scores alike: its gradient is 0
            assert parameter.grad is not None and parameter.grad.any(), (
                f"no gradient reaches `{name}`: it is not used, or cut off from the result"
            )
    y = _layer_result(call(cls, 8, 2, 16, dropout=1.0), x, memory.detach(), real, mask)
    assert y.any(), "dropout acts on the sum: it should act on a sublayer's output before it is added"
    assert torch.allclose(y, x), (
        "with dropout=1.0 in training only the residual path should be left: the output of each of the three "
        "sublayers is dropped before it is added"
    )


# ---- Encoder and Decoder: two layers of which each adds a constant to its input (the decoder's also the mean of the
# memory that it may look at), whatever comes in.

_ADDS = torch.tensor([[4.0, 0, 0, 0], [0, 0, 8, 0]])
_TABLE = torch.tensor([[0.0] * 4, [1, 0, 2, 0], [0, 3, 0, 1], [2, 2, 0, 0], *[[1, 1, 1, 0]] * 3])


def _plain_stack(stack: nn.Module, attention: str) -> tuple[nn.Module, Tensor]:
    """The same stack with those weights, and its table of positions."""
    weights = {name: torch.zeros_like(v) if name.startswith("layers.") else v for name, v in stack.state_dict().items()}
    for part in ("embedder.embedding.weight", "positions.pe", "norm.weight"):
        assert part in weights, f"`{part}` is missing: see the docstring for the parts and their names"
    assert any(name.startswith("layers.") for name in weights), (
        "`layers` is missing, or torch cannot see into it: use `clones`, which makes an nn.ModuleList"
    )
    assert any(f".{attention}." in name for name in weights), (
        f"no `{attention}` among the weights of the layers: which class are they `clones` of?"
    )
    count = sum(name.endswith(f".{attention}.Wq.weight") for name, _ in stack.named_parameters())
    assert count == 2, f"depth=2 asks for two layers with weights of their own, there are {count}"
    for i in (0, 1):
        weights[f"layers.{i}.feed_forward.outer.bias"] = _ADDS[i]
        if attention == "source_attention":
            weights |= {f"layers.{i}.{attention}.{matrix}.weight": _ONE for matrix in ("Wv", "WO")}
    weights["embedder.embedding.weight"] = _TABLE
    stack.load_state_dict({name: value.clone() for name, value in weights.items()})
    return stack, weights["positions.pe"]


def _stack_mistakes(e: Tensor, p: Tensor, found: Tensor) -> dict[str, Tensor]:
    """Mistakes of either stack: `e` embeddings, `p` positions, `found` what each layer reads from the memory."""
    first, last = _ADDS + found
    both = first + last
    return {
        "no positions are added: use PositionEncoding": _norm(e + both),
        "the embeddings are not scaled: use the Embedder": _norm(e / 2 + p + both),
        "the positions are scaled by √d too: only the embeddings are": _norm(e + 2 * p + both),
        "the layers are not used": _norm(e + p),
        "only the first layer is used": _norm(e + p + first),
        "only the last layer is used, or each layer reads the embeddings": _norm(e + p + last),
        "the first layer is used twice, the second never": _norm(e + p + 2 * first),
        "the final norm is missing: pre-norm layers end with a sum, so the stack needs one last norm": e + p + both,
        "the norm acts after every layer: it comes once, after the last": _norm(_norm(e + p + first) + last),
        "the norm acts before the layers: it comes once, after the last": _norm(e + p) + both,
    }


def _stack_result(stack: nn.Module, tokens: Tensor, *more: Tensor) -> Tensor:
    with unchanged(tokens=tokens):
        y = call(stack, tokens, *more)
    expect_tensor(y, (*tokens.shape, 4))
    return y


@visible("embeddings, positions, two layers that add constants, and one norm at the end")
def Encoder(cls: Callable) -> None:
    """V = 7, d = 4, depth = 2, heads = 1, hidden = 3, and four tokens."""
    encoder, pe = _plain_stack(call(cls, 7, 4, 2, 1, 3, 0.0, 0), "attention")
    tokens = torch.tensor([[1, 3, 2, 1]])
    y = _stack_result(encoder, tokens, torch.ones(1, 1, 4, dtype=torch.bool))
    e, p = 2 * _TABLE[tokens], pe[:4]
    _expect(y, _norm(e + p + _ADDS.sum(0)), _stack_mistakes(e, p, torch.zeros(4)), "the memory")


@visible("embeddings, positions, two layers that add constants and what they find in the memory, one norm at the end")
def Decoder(cls: Callable) -> None:
    """V = 7, d = 4, depth = 2, heads = 1, hidden = 3, and three tokens."""
    decoder, pe = _plain_stack(call(cls, 7, 4, 2, 1, 3, 0.0, 0), "source_attention")
    tokens = torch.tensor([[1, 3, 2]])
    y = _stack_result(decoder, tokens, _MEMORY, _FIRST_TWO, _BACK)
    e, p, found = 2 * _TABLE[tokens], pe[:3], _over(_FIRST_TWO, _MEMORY)
    added = e + p + _ADDS.sum(0)
    wrong = _stack_mistakes(e, p, found[0]) | {
        "the layers do not get `memory_mask`": _norm(added + 2 * _MEMORY.mean(1, keepdim=True)),
        "the memory goes through the decoder's norm: it is normed already": _norm(
            added + 2 * _over(_FIRST_TWO, _norm(_MEMORY))
        ),
        "the masks are exchanged on their way to the layers": _norm(added + 2 * _over(_BACK, _MEMORY)),
    }
    _expect(y, _norm(added + 2 * found), wrong)


# ---- Translator

_SOURCE = torch.tensor([[3, 5, 8, 0], [4, 7, 0, 0]])
_TABLES = ("encoder.embedder.embedding.weight", "decoder.embedder.embedding.weight")


@visible("the parts, both vocabularies, the tie, and the shapes that the three methods return")
def Translator(cls: Callable) -> None:
    """Source vocabulary 9, target vocabulary 12, d = 8, heads = 2, depth = 4."""
    translator = call(cls, 9, 12, 8, 2, 4, 16, 0.0, 0)
    weights = translator.state_dict()
    names = [name for name, _ in translator.named_parameters()]
    for part in (*_TABLES, "output.weight"):
        assert part in weights, f"`{part}` is missing: see the docstring for the parts and their names"
    assert "output.bias" not in weights, "`output` should have no bias: pass bias=False"
    sizes = tuple(len(weights[table]) for table in _TABLES)
    assert sizes == (9, 12), (
        f"the embeddings of encoder and decoder should have 9 and 12 rows, they have {sizes}: source_vocab is the "
        "encoder's, target_vocab the decoder's"
    )
    depths = [
        sum(name.startswith(part) and name.endswith("norm_1.weight") for name in names) for part in ("enc", "dec")
    ]
    assert depths != [2, 2], (
        "heads=2 and depth=4, yet there are [2, 2] layers: Encoder and Decoder take depth before heads, Translator "
        "takes heads before depth"
    )
    assert depths == [4, 4], (
        f"depth=4, yet encoder and decoder have {depths[0]} and {depths[1]} layers: is `depth` passed on to both?"
    )
    assert len(weights["output.weight"]) == 12, (
        f"`output` scores {len(weights['output.weight'])} tokens, the target vocabulary has 12: its weight is that of "
        "the decoder's embedding"
    )
    assert ("output.weight" in names) + (_TABLES[1] in names) == 1, (
        "`output` has a weight of its own: it should be the decoder's embedding's, one and the same parameter (assign "
        "it, do not copy its numbers)"
    )
    _expect_methods(translator, torch.tensor([[2, 6, 11], [2, 10, 4]]))


def _expect_methods(translator: nn.Module, target: Tensor) -> None:
    memory = call(translator.encode, _SOURCE)
    assert memory is not None, "encode returned None: is there a `return`?"
    expect_tensor(memory, (2, 4, 8), name="encode should return (B, m, d): its result")
    logits = call(translator.decode, target, memory, _SOURCE)
    assert logits is not None, "decode returned None: is there a `return`?"
    assert logits.shape != (2, 3, 8), "decode returns the decoder's vectors: send them through `output`"
    assert logits.shape == (2, 3, 12), f"decode should return (B, n, V) = (2, 3, 12), got {tuple(logits.shape)}"
    sums = logits.exp().sum(-1)
    assert not torch.allclose(sums, torch.ones(2, 3)), (
        "decode returns log-probabilities, not logits: the loss takes the log-softmax itself"
    )
    y = call(translator, _SOURCE, target)
    assert y is not None, "forward returned None: is there a `return`?"
    assert y.shape == (2, 3, 12), f"forward should return (B, n, V) = (2, 3, 12), got {tuple(y.shape)}"
    assert torch.allclose(y, logits, atol=1e-5), "forward and encode-then-decode give different logits"


@visible("no future and no padding leaks, steps agree with one pass, the pad row gets no gradient")
def Translator_training(cls: Callable) -> None:
    """Perturbations of two short sentences, then one backward pass."""
    translator = call(cls, 9, 12, 8, 2, 2, 16, 0.0, 0)
    target = torch.tensor([[2, 6, 11], [2, 10, 0]])
    logits = call(translator, _SOURCE, target)
    later = torch.tensor([[2, 6, 4], [2, 10, 3]])  # another last token
    moved = (call(translator, _SOURCE, later) - logits)[:, :2].abs().max()
    assert moved < 1e-5, "changing the last target token changes earlier logits: the decoder sees the future"
    longer = torch.cat([_SOURCE, torch.zeros(2, 2, dtype=torch.long)], dim=1)
    assert torch.allclose(call(translator, longer, target), logits, atol=1e-5), (
        "two more columns of source padding change the logits: hide padding from encoder and decoder"
    )
    other = torch.tensor([[7, 5, 8, 0], [1, 7, 0, 0]])  # another first token
    assert not torch.allclose(call(translator, other, target), logits, atol=1e-5), (
        "changing the source changes nothing: the decoder does not see the memory"
    )
    memory = call(translator.encode, _SOURCE)
    for n in (1, 2, 3):
        assert torch.allclose(call(translator.decode, target[:, :n], memory, _SOURCE), logits[:, :n], atol=1e-5), (
            f"decoding the first {n} tokens gives other logits than decoding all of them at once"
        )
    held = logits[..., 0]
    assert not held.isinf().any(), "the logits of padding are -inf: they should be 0, as a zero row gives"
    assert not held.any(), "the logits of padding (pad_id=0) should be 0"
    F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    for name, parameter in translator.named_parameters():
        assert parameter.grad is not None, f"no gradient reaches `{name}`: it is not used, or cut off from the logits"
        if "embedding" in name or "output" in name:
            assert not parameter.grad[0].any(), (
                f"the pad row of `{name}` gets a gradient, so that it does not stay zero. The tied `output` sends "
                "one: make the logits of padding a constant 0"
            )
