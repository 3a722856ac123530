"""What chapter 09's check cells call: small cases by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_accepted,
    expect_close,
    expect_parameters,
    expect_tensor,
    named_buffers,
    named_parameters,
    nearest,
    outcome_of,
    place,
    said,
    unchanged,
)
from autograder.course.card import visible
from checks.encoder_decoder import mistakes as m


def _expect(y: Any, right: Tensor, wrong: Mapping[Mistake, Tensor], name: str = "the result", asked: str = "") -> None:
    """Fail with the numbers, and with the mistake's name if the result is what a mistake gives."""
    mistakes = {mistake: lambda v=value: v for mistake, value in wrong.items()}
    expect_close(y, right, name, mistakes, tolerance=1e-3, asked=asked)


def _count_parameters(module: nn.Module, start: str, end: str) -> int:
    """How many parameters have a name with this start and end; one that has several names counts once."""
    named = named_parameters(module).items()
    return len({id(parameter) for name, parameter in named if name.startswith(start) and name.endswith(end)})


def _expect_awake_alike(y: Tensor, right: Tensor, asleep: Callable[[], Tensor], mistake: Mistake) -> None:
    """Fail for a result that is wrong while training with dropout 0, and right after `.eval()`."""
    if not torch.allclose(y.to(right), right, atol=1e-3):
        told = {"asked": "dropout 0.0, while training", "expected": "as after `.eval()`", "got": "other numbers"}
        expect(not torch.allclose(asleep().to(right), right, atol=1e-3), mistake, "the result", **told)


def _expect_parts(module: nn.Module, parts: Sequence[str]) -> dict[str, Tensor]:
    """The names of a module's weights with zeros of their shapes, once each part is there with weights of its own."""
    weights = {name: torch.zeros_like(value) for name, value in module.state_dict().items()}
    parameters = named_parameters(module)
    seen: set[int] = set()
    for part in parts:
        own = {id(parameter) for name, parameter in parameters.items() if name.startswith(f"{part}.")}
        expect(bool(own), Common.PARAMETER_MISSING, f"a part with weights called `{part}`")
        expect(not own & seen, m.DecoderLayer.SHARED, f"one of the two is `{part}`")
        seen |= own
    return weights


# ---- clones


def make_layer():
    """What is to be copied."""
    return nn.Linear(3, 2)


def overwrite(layer):
    """Write into a layer."""
    with torch.no_grad():
        layer.weight.fill_(7.0)


@visible(
    "three copies that start alike, are no longer alike once one is written to, and leave the original alone",
    graded="other cases",
)
def clones(function: Callable) -> None:
    """Three copies of a linear layer."""
    original = place(make_layer, beside=function)()
    start = original.state_dict()["weight"].clone()
    copies = call(function, original, 3)
    expect(copies is not None, Common.NO_RETURN)
    expect(isinstance(copies, nn.ModuleList), m.clones.NOT_A_MODULE_LIST)
    expect(len(copies) == 3, m.clones.COUNT, "the number of copies", expected=3, got=len(copies))
    names = [name for name, _ in copies.named_parameters()]
    told = {"expected": 6, "got": len(names)}
    expect(len(names) == 6, m.clones.SHARED, "the parameters of three copies with a weight and a bias", **told)
    same = all(torch.equal(copies[i].state_dict()["weight"], start) for i in range(3))
    expect(same, m.clones.OTHER_WEIGHTS)
    place(overwrite, beside=function)(copies[0])
    expect(not (copies[1].state_dict()["weight"] == 7).any(), m.clones.SHARED, "writing into copy 0 changed copy 1")
    alone = not (original.state_dict()["weight"] == 7).any()
    expect(alone, m.clones.ORIGINAL_AMONG_THEM, "writing into copy 0 changed the original")


# ---- Embedder

_SMALL_TABLE = torch.arange(1.0, 21).reshape(5, 4).index_fill(0, torch.tensor([2]), 0.0)


@visible(
    "the factor √d on rows that you can read, the start of the table, and a pad row that gets no gradient",
    graded="other cases, dtypes and devices",
)
def Embedder(cls: Callable) -> None:
    """Five tokens of four features; token 2 is the padding."""
    embedder = call(cls, 5, 4, pad_id=2)
    expect_parameters(embedder, {"embedding.weight": (5, 4)}, {"embedding": m.Embedder.TABLE})
    row = embedder.state_dict()["embedding.weight"][2]
    expect(not row.any(), m.Embedder.PAD_ROW_START, "row 2", asked="pad_id 2", expected="all 0", got=row)
    embedder.load_state_dict({"embedding.weight": _SMALL_TABLE.clone()}, strict=False)
    tokens = torch.tensor([[3, 2, 0]])
    with unchanged(tokens=tokens):
        y = call(embedder, tokens)
    found = _SMALL_TABLE[tokens]
    wrong = {
        m.Embedder.NOT_SCALED: found,
        m.Embedder.TIMES_D: 4 * found,
        m.Embedder.DIVIDED: found / 2,
        m.Embedder.ROOT_OF_V: 5**0.5 * found,
        m.Embedder.ROOT_OF_N: 3**0.5 * found,
    }
    _expect(y, 2 * found, wrong, asked="tokens 3, 2 and 0")
    expect(y.requires_grad, Common.CUT_OFF)
    y.sum().backward()
    gradient = named_parameters(embedder)["embedding.weight"].grad
    expect(gradient is not None and gradient[3].any(), Common.PARAMETER_UNUSED, "the table")
    expect(not gradient[2].any(), m.Embedder.PAD_ROW_LEARNS)
    spread = call(cls, 1000, 100, pad_id=0).state_dict()["embedding.weight"].std().item()
    mistake = m.Embedder.OWN_NUMBERS if 0.9 < spread < 1.1 else m.Embedder.SPREAD
    expect(0.08 < spread < 0.12, mistake, "the standard deviation", asked="dim 100", expected=0.1, got=round(spread, 3))


# ---- target_mask


@visible(
    "a sentence of three words and one of two with padding, entry by entry",
    graded="other cases, sizes of 1 and devices",
)
def target_mask(function: Callable) -> None:
    """Two sentences; the third token of the second is padding."""
    tokens = torch.tensor([[2, 5, 7], [2, 6, 0]])
    with unchanged(tokens=tokens):
        mask = call(function, tokens, 0)
    expect_tensor(mask)
    asked = "tokens 2 5 7 and 2 6 0, pad_id 0"
    expect(mask.dtype == torch.bool, m.target_mask.NOT_BOOL, asked=asked, expected=torch.bool, got=mask.dtype)
    shapes = {(3, 3): m.target_mask.NO_BATCH, (2, 1, 3): m.target_mask.FUTURE_SEEN}
    got = tuple(mask.shape)
    told = {"expected": "of shape (2, 3, 3)", "got": f"shape {got}"}
    expect(got == (2, 3, 3), shapes.get(got, Unexplained.SHAPE), "the mask", asked=asked, **told)
    full = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    short = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 0]]).bool()
    wrong = [
        (m.target_mask.FUTURE_SEEN, torch.ones(3, 3).bool()),
        (m.target_mask.UPSIDE_DOWN, full.T),
        (m.target_mask.ONE_AHEAD, torch.ones(3, 3).tril(1).bool()),
        (m.target_mask.NO_DIAGONAL, full.tril(-1)),
        (m.target_mask.INVERTED, ~full),
        (m.target_mask.PADDING_INVERTED, ~full & full),
    ]
    mistake = next((mistake for mistake, value in wrong if torch.equal(mask[0], value)), Unexplained.VALUES)
    told = {"expected": full.int(), "got": mask[0].int()}
    expect(torch.equal(mask[0], full), mistake, "the mask of the sentence without padding", **told)
    told = {"expected": short.int(), "got": mask[1].int()}
    mistake = m.target_mask.PADDING_SEEN if torch.equal(mask[1], full) else m.target_mask.ROWS_HIDDEN
    mistake = mistake if torch.equal(mask[1], full) or not mask[1, 2].any() else Unexplained.VALUES
    expect(torch.equal(mask[1], short), mistake, "the mask of the sentence whose third token is padding", **told)


# ---- DecoderLayer. With the weights below an attention gives the mean of the positions that it may look at, and the
# feed-forward network a ReLU of what comes in.

_ONE = torch.eye(4)
_X = torch.tensor([[[1.0, 2, 4, 8], [3, 0, 1, -1], [-2, 5, 0, 1]]])  # (B=1, n=3, d=4)
_MEMORY = torch.tensor([[[4.0, 0, 0, 1], [0, 2, -2, 3], [9, 9, 9, 0]]])  # (B=1, m=3, d=4)
_FIRST_TWO = torch.tensor([[[True, True, False]]])
_BACK = torch.ones(1, 3, 3).tril().bool()


def _norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, (4,))


def _over(mask: Tensor, x: Tensor) -> Tensor:
    """The mean of the positions that each row may look at."""
    return mask / mask.sum(-1, keepdim=True).clamp(min=1) @ x


def _plain_layer(layer: nn.Module) -> nn.Module:
    """The same layer with those weights; `norm_i` multiplies by i."""
    attentions, norms = ("self_attention", "source_attention"), ("norm_1", "norm_2", "norm_3")
    weights = _expect_parts(layer, [*norms, *attentions, "feed_forward"])
    there = "feed_forward.inner.bias" in weights
    expect(there, Common.PARAMETER_MISSING, "`feed_forward` is the FeedForward of chapter 6")
    there = all(f"{part}.Wv.weight" in weights for part in attentions)
    expect(there, Common.PARAMETER_MISSING, "both attentions are the MultiHeadAttention of chapter 4")
    width = len(weights["feed_forward.inner.bias"])
    told = {"asked": "hidden 4", "expected": 4, "got": width}
    expect(width == 4, m.DecoderLayer.HIDDEN, "the features inside the network", **told)
    layer.load_state_dict(weights)
    weights = {f"{part}.{matrix}.weight": _ONE for part in attentions for matrix in ("Wv", "WO")}
    weights |= {"feed_forward.inner.weight": _ONE, "feed_forward.outer.weight": _ONE}
    weights |= {f"{norm}.weight": torch.full((4,), float(i)) for i, norm in enumerate(norms, 1)}
    layer.load_state_dict({name: value.clone() for name, value in weights.items()}, strict=False)
    return layer


def _layer_result(layer: nn.Module, x: Tensor, *more: Tensor) -> Tensor:
    given = x.clone()
    with unchanged(x=given):
        y = call(layer, given, *more)
    expect(not isinstance(y, tuple), m.DecoderLayer.WEIGHTS_TOO)
    expect_tensor(y, x.shape)
    return y


@visible(
    "one layer by hand: what each attention looks at, with which mask, first and last norm, three residuals",
    graded="other cases, dtypes and parameters",
)
def DecoderLayer(cls: Callable) -> None:
    """Three target positions and three of the memory, so that exchanged masks would fit."""
    layer = _plain_layer(call(cls, 4, 2, 4, dropout=0.0))
    y = _layer_result(layer, _X, _MEMORY, _FIRST_TWO, _BACK)
    x, memory, everything, n = _X, _MEMORY, torch.ones(1, 3, 3), _norm(_X)
    back, found = _over(_BACK, n), _over(_FIRST_TWO, memory)
    total = x + back + found  # what reaches the feed-forward network
    again = 2 * _norm(x + back)  # what the second attention's queries are made of

    def third(x: Tensor) -> Tensor:
        return x + F.relu(3 * _norm(x))

    before_the_network = {
        m.DecoderLayer.MASKS_EXCHANGED: x + _over(_FIRST_TWO, n) + _over(_BACK, memory),
        m.DecoderLayer.FUTURE_SEEN: x + _over(everything, n) + found,
        m.DecoderLayer.SOURCE_UNMASKED: x + back + _over(everything, memory),
        m.DecoderLayer.UNMASKED: x + _over(everything, n) + _over(everything, memory),
        m.DecoderLayer.SOURCE_GETS_MASK: x + back + _over(_BACK, memory),
        m.DecoderLayer.TARGET_GETS_MEMORY_MASK: x + _over(_FIRST_TWO, n) + found,
        m.DecoderLayer.MASK_INVERTED: x + _over(~_BACK, n) + found,
        m.DecoderLayer.MEMORY_MASK_INVERTED: x + back + memory[:, 2:],
        m.DecoderLayer.LOOKS_AT_MEMORY: x + 2 * found,
        m.DecoderLayer.NO_SOURCE: x + back,
        m.DecoderLayer.NO_ATTENTION: x + found,
        m.DecoderLayer.SOURCE_FIRST: x + found + _over(_BACK, _norm(x + found)),
        m.DecoderLayer.SOURCE_SUBTRACTED: x + back - found,
        m.DecoderLayer.SOURCE_ALONE: found.expand_as(x),
        m.DecoderLayer.ATTENTION_ALONE: back + found,
        m.DecoderLayer.NO_NORM_1: x + _over(_BACK, x) + found,
        m.DecoderLayer.NORMED_ADDED_1: n + back + found,
        m.DecoderLayer.NORMED_ADDED_2: again + found,
    }
    again_wrong = [x + back + _over(mask, again) for mask in (_FIRST_TWO, _BACK)]
    normed = [x + back + _over(_FIRST_TWO, i * _norm(memory)) for i in (1, 2, 3)]
    network_second = x + back + F.relu(3 * _norm(x + back))
    away = 2 * _norm(n + back) + found  # what is left when each sublayer adds to norm(x)
    post = 2 * _norm(_norm(x + _over(_BACK, x)) + found)
    wrong = {mistake: third(value) for mistake, value in before_the_network.items()} | {
        m.DecoderLayer.NETWORK_BEFORE_SOURCE: network_second + found,
        m.DecoderLayer.NORMED_ADDED: 3 * _norm(away) + F.relu(3 * _norm(away)),
        m.DecoderLayer.NORMED_ADDED_3: 3 * _norm(total) + F.relu(3 * _norm(total)),
        m.DecoderLayer.NO_RESIDUALS: F.relu(3 * _norm(found)).expand_as(x),
        m.DecoderLayer.LOOKS_AGAIN: nearest(y, *map(third, again_wrong)),
        m.DecoderLayer.MEMORY_NORMED: nearest(y, *map(third, normed)),
        m.DecoderLayer.NO_NETWORK: total,
        m.DecoderLayer.NO_RELU: total + 3 * _norm(total),
        m.DecoderLayer.NETWORK_ALONE: F.relu(3 * _norm(total)),
        m.DecoderLayer.NO_NORM_3: total + F.relu(total),
        m.DecoderLayer.NORM_2_FOR_3: total + F.relu(2 * _norm(total)),
        m.DecoderLayer.LAST_NORM: 3 * _norm(third(total)),
        m.DecoderLayer.POST_NORM: 3 * _norm(post + F.relu(post)),
    }
    right = third(total)
    _expect_awake_alike(
        y, right, lambda: _layer_result(layer.eval(), _X, _MEMORY, _FIRST_TWO, _BACK), m.DecoderLayer.DROPOUT_NOT_PASSED
    )
    _expect(y, right, wrong)


@visible(
    "gradients to the memory and to each parameter; dropout on each sublayer's output",
    graded="other cases, devices, parameters and dropout",
)
def DecoderLayer_training(cls: Callable) -> None:
    """What training needs: gradients everywhere, and dropout in its places; a mask that went astray still fits."""
    layer = call(cls, 8, 2, 16, dropout=0.0)
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 3, 8, requires_grad=True)
    real = torch.tensor([[[1, 1, 0]], [[1, 1, 1]]]).bool()
    mask = torch.ones(3, 3).tril().bool().expand(2, 3, 3)
    _layer_result(layer, x, memory, real, mask).pow(2).sum().backward()
    expect(memory.grad is not None and memory.grad.any(), m.DecoderLayer.MEMORY_CUT_OFF)
    for name, parameter in layer.named_parameters():
        if not name.endswith("Wk.bias"):  # this one shifts all scores alike: its gradient is 0
            learns = parameter.grad is not None and parameter.grad.any()
            expect(learns, Common.PARAMETER_UNUSED, f"the parameter without gradient is `{name}`")
    layer = call(cls, 8, 2, 16, dropout=1.0)
    y = _layer_result(layer, x, memory.detach(), real, mask)
    if not torch.allclose(y, x, atol=1e-3):  # is it dropout that is missing, or does x not come through at all?
        norms = ("norm_1.weight", "norm_2.weight", "norm_3.weight")
        start = {name: torch.full_like(v, float(name in norms)) for name, v in layer.state_dict().items()}
        layer.load_state_dict(start)
        silent = _layer_result(layer.eval(), x, memory.detach(), real, mask)
        _expect(silent, x, {}, asked="sublayers that add nothing")
    asked = "dropout 1.0, while training"
    expect(y.any(), m.DecoderLayer.DROPOUT_ON_SUM, "the result", asked=asked, expected="x itself", got="all 0")
    expect_close(y, x, "the result", otherwise=m.DecoderLayer.NOT_DROPPED, asked=asked)


# ---- Decoder: two layers of which each adds a constant and the mean of the memory that it may look at.

_ADDS = torch.tensor([[4.0, 0, 0, 0], [0, 0, 8, 0]])
_TABLE = torch.tensor([[0.0] * 4, [1, 0, 2, 0], [0, 3, 0, 1], [2, 2, 0, 0], *[[1, 1, 1, 0]] * 3])


def _plain_stack(cls: Callable) -> tuple[nn.Module, Tensor]:
    """A stack with those weights, and its table of positions."""
    stack = call(cls, 7, 4, 2, 1, 3, 0.0, 0)
    weights = {name: torch.zeros_like(v) if name.startswith("layers.") else v for name, v in stack.state_dict().items()}
    buffers = named_buffers(stack)  # the table of positions need not be saved
    for part in ("embedder.embedding.weight", "positions.pe", "norm.weight"):
        expect(part in weights or part in buffers, Common.PARAMETER_MISSING, f"`{part}`")
    expect(any(name.startswith("layers.") for name in weights), m.Decoder.LAYERS_HIDDEN)
    theirs = any(".source_attention." in name for name in weights)
    expect(theirs, m.Decoder.OTHER_LAYERS, "there is no `source_attention`")
    count = _count_parameters(stack, "", ".source_attention.Wq.weight")
    told = {"asked": "depth 2", "expected": 2, "got": count}
    expect(count == 2, m.Decoder.DEPTH, "the layers with weights of their own", **told)
    row = call(cls, 7, 4, 1, 1, 3, 0.0, 4).state_dict()["embedder.embedding.weight"][4]
    expect(not row.any(), m.Decoder.PAD_ID, "row 4 of the table", asked="pad_id 4", expected="all 0", got=row)
    stack.load_state_dict({name: value.clone() for name, value in weights.items()})
    ours = {"embedder.embedding.weight": _TABLE}
    for i in (0, 1):
        ours[f"layers.{i}.feed_forward.outer.bias"] = _ADDS[i]
        ours |= {f"layers.{i}.source_attention.{matrix}.weight": _ONE for matrix in ("Wv", "WO")}
    # It may hold them under further names, which what came before has set.
    stack.load_state_dict({name: value.clone() for name, value in ours.items()}, strict=False)
    return stack, buffers["positions.pe"] if "positions.pe" in buffers else weights["positions.pe"]


def _stack_mistakes(e: Tensor, p: Tensor, found: Tensor) -> dict[Mistake, Tensor]:
    """Mistakes with embeddings `e`, positions `p`, and `found`, what each layer reads from the memory."""
    first, last = _ADDS + found
    both = first + last
    return {
        m.Decoder.NO_POSITIONS: _norm(e + both),
        m.Decoder.NOT_SCALED: _norm(e / 2 + p + both),
        m.Decoder.POSITIONS_SCALED: _norm(e + 2 * p + both),
        m.Decoder.EMBEDDED_TWICE: _norm(2 * e + p + both),
        m.Decoder.LAYERS_UNUSED: _norm(e + p),
        m.Decoder.FIRST_LAYER_ONLY: _norm(e + p + first),
        m.Decoder.LAST_LAYER_ONLY: _norm(e + p + last),
        m.Decoder.FIRST_LAYER_TWICE: _norm(e + p + 2 * first),
        m.Decoder.NO_LAST_NORM: e + p + both,
        m.Decoder.NORM_EACH_TIME: _norm(_norm(e + p + first) + last),
        m.Decoder.NORM_FIRST: _norm(e + p) + both,
    }


def _stack_result(stack: nn.Module, tokens: Tensor, *more: Tensor) -> Tensor:
    with unchanged(tokens=tokens):
        y = call(stack, tokens, *more)
    expect_tensor(y, (*tokens.shape, 4))
    return y


@visible(
    "embeddings, positions, two layers that add constants and what they find in the memory, one norm at the end",
    graded="other cases, gradients, parameters and dropout",
)
def Decoder(cls: Callable) -> None:
    """V = 7, d = 4, depth = 2, heads = 1, hidden = 3, and three tokens."""
    decoder, pe = _plain_stack(cls)
    tokens = torch.tensor([[1, 3, 2]])
    y = _stack_result(decoder, tokens, _MEMORY, _FIRST_TWO, _BACK)
    e, p, found = 2 * _TABLE[tokens], pe[:3], _over(_FIRST_TWO, _MEMORY)
    added = e + p + _ADDS.sum(0)
    wrong = _stack_mistakes(e, p, found[0]) | {
        m.Decoder.SOURCE_UNMASKED: _norm(added + 2 * _MEMORY.mean(1, keepdim=True)),
        m.Decoder.MEMORY_NORMED: _norm(added + 2 * _over(_FIRST_TWO, _norm(_MEMORY))),
        m.Decoder.MASKS_EXCHANGED: _norm(added + 2 * _over(_BACK, _MEMORY)),
    }
    right = _norm(added + 2 * found)
    looked = twice = e + p
    for constant in _ADDS:
        looked = looked + constant + _over(_FIRST_TWO, looked)
        twice = 2 * twice + constant + found
    wrong |= {m.Decoder.NO_MEMORY: _norm(looked), m.Decoder.RESIDUAL_TWICE: _norm(twice)}
    _expect_awake_alike(
        y,
        right,
        lambda: _stack_result(decoder.eval(), tokens, _MEMORY, _FIRST_TWO, _BACK),
        m.Decoder.LAYERS_DROP_NOTHING,
    )
    _expect(y, right, wrong)


# ---- Translator

_SOURCE = torch.tensor([[3, 5, 8, 0], [4, 7, 0, 0]])
_TARGET = torch.tensor([[2, 6, 11], [2, 0, 4]])
_TABLES = ("encoder.embedder.embedding.weight", "decoder.embedder.embedding.weight")
_TABLES_AND_OUTPUT = (*_TABLES, "output.weight")


@visible(
    "the parts, both vocabularies, the tie, and what the three methods make of encoder and decoder",
    graded="other cases, sizes of 1, inputs unchanged, parameters and start values",
)
def Translator(cls: Callable) -> None:
    """Source vocabulary 9, target vocabulary 12, d = 8, heads = 2, depth = 4."""
    translator = call(cls, 9, 12, 8, 2, 4, 16, 0.0, 0)
    weights = translator.state_dict()
    for part in _TABLES_AND_OUTPUT:
        expect(part in weights, Common.PARAMETER_MISSING, f"`{part}`")
    expect("output.bias" not in weights, m.Translator.BIAS)
    sizes = tuple(len(weights[table]) for table in _TABLES)
    told = {"asked": "source_vocab 9 and target_vocab 12", "expected": (9, 12), "got": sizes}
    mistake = m.Translator.VOCABULARIES if sizes == (12, 9) else Unexplained.SHAPE
    expect(sizes == (9, 12), mistake, "the rows of the two tables", **told)
    depths = tuple(_count_parameters(translator, part, ".norm_1.weight") for part in ("encoder.", "decoder."))
    mistake = m.Translator.HEADS_AND_DEPTH if depths == (2, 2) else m.Translator.DEPTH
    told = {"asked": "heads 2 and depth 4", "expected": (4, 4), "got": depths}
    expect(depths == (4, 4), mistake, "the layers of encoder and decoder", **told)
    rows = len(weights["output.weight"])
    expect(rows == 12, m.Translator.TIED_TO_SOURCE, "the rows of `output`", expected=12, got=rows)
    parameters = named_parameters(translator)
    expect(parameters.get("output.weight") is parameters.get(_TABLES[1]), m.Translator.NOT_TIED)
    _expect_methods(translator, weights[_TABLES[1]])


def _expect_methods(translator: nn.Module, table: Tensor) -> None:
    """What each method makes of the translator's own encoder and decoder."""
    memory = call(translator.encode, _SOURCE)
    real, everything = (_SOURCE != 0)[:, None], torch.ones(2, 1, 4, dtype=torch.bool)
    encode = partial(call, translator.encoder, _SOURCE)
    wrong = {
        m.Translator.ENCODER_SEES_PADDING: lambda: encode(everything),
        m.Translator.ENCODER_IS_CAUSAL: lambda: encode(real & torch.ones(4, 4, dtype=torch.bool).tril()),
    }
    expect_close(memory, encode(real), "what `encode` returns", wrong, tolerance=1e-4)

    other = memory.detach().flip(1)  # a memory that `encode` would not give
    logits = call(translator.decode, _TARGET, other, _SOURCE)
    back, shown = torch.ones(3, 3, dtype=torch.bool).tril(), (_TARGET != 0)[:, None]

    def decode(memory_mask: Tensor = real, mask: Tensor = shown & back, memory: Tensor = other) -> Tensor:
        x = call(translator.decoder, _TARGET, memory, memory_mask, mask)
        return (x @ table.T).index_fill(-1, torch.tensor([0]), 0.0)

    right = decode()
    wrong = {
        m.Translator.MEMORY_UNMASKED: lambda: decode(memory_mask=everything),
        m.Translator.FUTURE_SEEN: lambda: decode(mask=shown),
        m.Translator.PADDING_SEEN: lambda: decode(mask=back.expand(2, 3, 3)),
        m.Translator.ENCODES_AGAIN: lambda: decode(memory=memory.detach()),
        m.Translator.VECTORS: lambda: call(translator.decoder, _TARGET, other, real, shown & back),
        m.Translator.PROBABILITIES: lambda: right.softmax(-1),
        m.Translator.LOG_PROBABILITIES: lambda: right.log_softmax(-1),
        m.Translator.SCALED: lambda: nearest(logits, 8**0.5 * right),
        m.Translator.ZEROS_ELSEWHERE: lambda: nearest(
            logits, *(right.index_fill(dim, torch.tensor([0]), 0.0) for dim in (0, 1))
        ),
        m.Translator.LAST_ONLY: lambda: nearest(logits, right[:, -1], right[:, -1:]),
        m.Translator.CUT_SHORT: lambda: nearest(logits, right[:, :-1], right[:, 1:]),
    }
    expect_tensor(logits, name="what `decode` returns")
    if logits.shape == right.shape:
        lowest = logits[..., 0].max().item()
        told = {"expected": 0, "got": lowest}
        expect(not lowest < -100, m.Translator.PAD_LOGIT_LOWEST, "the largest logit of padding", **told)
    expect_close(logits, right, "what `decode` returns", wrong, tolerance=1e-4)

    y = call(translator, _SOURCE, _TARGET)
    right = decode(memory=memory)
    wrong = {m.Translator.CUT_SHORT: lambda: decode(memory=memory)[:, :-1]}
    expect_close(y, right, "what `forward` returns", wrong, tolerance=1e-4)


@visible(
    "a gradient for each parameter, and none for the pad rows",
    graded="other cases, parameters, start values and dropout",
)
def Translator_training(cls: Callable) -> None:
    """One backward pass."""
    translator = call(cls, 9, 12, 8, 2, 2, 16, 0.0, 0)
    logits = call(translator, _SOURCE, _TARGET)
    F.cross_entropy(logits.flatten(0, 1), _TARGET.flatten()).backward()
    parameters = named_parameters(translator)
    for name, parameter in parameters.items():
        told = f"the parameter without gradient is `{name}`"
        expect(parameter.grad is not None, Common.PARAMETER_UNUSED, told)
    for name in _TABLES_AND_OUTPUT:
        expect(not parameters[name].grad[0].any(), m.Translator.PAD_ROW_LEARNS, f"the parameter is `{name}`")


# ---- check_leaks


def make_practice_models():
    """A model that leaks nothing, and three that leak; token 0 is the padding."""

    class Honest(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.table = torch.randn(9, 8), torch.randn(9, 8)

        def forward(self, source, target):
            real, n = source != 0, target.shape[1]
            meaning = (self.words[source] * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)
            before = self.table[target].cumsum(1) / torch.arange(1, n + 1)[:, None]
            logits = (before + meaning[:, None]) @ self.table.T
            return logits + (target == 0)[..., None] * n * logits.mean(0)  # nobody's concern: it is padding's

    class Peeks(Honest):
        def forward(self, source, target):
            logits = super().forward(source, target)
            return logits + logits.roll(-1, 1)

    class ReadsPadding(Honest):
        def forward(self, source, target):
            return super().forward(source, target) + self.words[source].mean((1, 2))[:, None, None]

    class Mixes(Honest):
        def forward(self, source, target):
            logits = super().forward(source, target)
            return logits - logits.mean(0)

    models = [Honest(), Peeks(), ReadsPadding(), Mixes()]
    for model in models:
        type(model).__name__ = type(model).__qualname__ = "Translator"
    return models


@visible("your test accepts a model that leaks nothing, and notices three that leak", graded="other cases")
def check_leaks(test: Callable) -> None:
    """The reader's test on one right model and three that leak."""
    source, target = (
        torch.tensor([[4, 5, 6, 0], [3, 7, 0, 0], [8, 2, 5, 4]]),
        torch.tensor([[2, 6, 4, 7], [2, 3, 0, 0], [2, 5, 7, 4]]),
    )
    honest, *leaky = place(make_practice_models, beside=test)()
    with unchanged(source=source, target=target):
        _, error = outcome_of(test, honest, source, target, 0)
    sound = "what it says of a model that leaks nothing"
    expect_accepted(error, m.check_leaks.REJECTS_RIGHT, m.check_leaks.CRASHES, sound)
    leaks = ["a position sees the next one", "the source's padding is read", "the batch is averaged"]
    for leak, model in zip(leaks, leaky, strict=True):
        returned, error = outcome_of(test, model, source, target, 0)
        if not isinstance(error, AssertionError):
            what = f"a model in which {leak}"
            expect(error is None, m.check_leaks.CRASHES, what, got=said(error))
            spoke = isinstance(returned, bool | str)
            mistake = m.check_leaks.RETURNS if spoke else m.check_leaks.ACCEPTS_LEAK
            complain(mistake, what, expected="rejected", got=f"{returned!r}" if spoke else "accepted")
