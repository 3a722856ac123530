"""What chapter 08's check cells call: small networks by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Complaint,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_accepted,
    expect_close,
    expect_parameters,
    expect_tensor,
    explaining,
    nearest,
    outcome_of,
    place,
    said,
    unchanged,
)
from autograder.course.card import visible
from checks.seq2seq_attention import mistakes as m


def _load(module: nn.Module, shapes: Mapping[str, tuple[int, ...]], weights: Mapping[str, list]) -> None:
    """Give a module these weights, and zeros where nothing is said."""
    state = {name: torch.zeros(shape) for name, shape in shapes.items()}
    state |= {name: torch.tensor(value) for name, value in weights.items()}
    module.load_state_dict(state, strict=False)  # it may hold them under further names


def several(result: Any, count: int, otherwise: Mistake = Unexplained.SHAPE) -> tuple:
    """A result of so many parts, or the mistake."""
    expect(result is not None, Common.NO_RETURN)
    expect(isinstance(result, tuple | list) and len(result) == count, otherwise)
    return tuple(result)


def _expect_shape(
    value: Any, shape: tuple[int, ...], what: str, mistakes: Mapping[tuple[int, ...], Mistake], asked: str = ""
) -> None:
    expect_tensor(value, name=what, asked=asked)
    got = tuple(value.shape)
    mistake = mistakes.get(got, Unexplained.SHAPE)
    expect(got == shape, mistake, what, asked=asked, expected=f"of shape {shape}", got=f"shape {got}")


def _lazy(wrong: Mapping[Mistake, Any]) -> dict[Mistake, Callable[[], Tensor]]:
    """What each mistake gives, as `expect_close` wants it."""
    return {mistake: lambda value=value: torch.as_tensor(value) for mistake, value in wrong.items()}


def encoder_shapes(vocab: int, embed: int, hidden: int, decoder: int) -> dict[str, tuple[int, ...]]:
    """The parameters of a GRUEncoder."""
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (vocab, embed)}
    for ends in ("_l0", "_l0_reverse"):
        shapes |= {f"gru.weight_ih{ends}": (3 * hidden, embed), f"gru.weight_hh{ends}": (3 * hidden, hidden)}
        shapes |= {f"gru.bias_ih{ends}": (3 * hidden,), f"gru.bias_hh{ends}": (3 * hidden,)}
    return shapes | {"fc.weight": (decoder, 2 * hidden), "fc.bias": (decoder,)}


# Words 2 and 4 are worth 1, words 3 and 5 are worth -1, padding is worth 1. Each step of these GRUs goes half the way
# from the state to the word's worth, so that forward 2 4 3 gives 0.5, 0.75, -0.125.
_TOKENS = torch.tensor([[2, 4, 3, 1], [5, 2, 1, 1], [4, 3, 5, 1], [3, 2, 1, 1]])
_LENGTHS = torch.tensor([3, 2, 3, 1])
_READ = torch.tensor(
    [
        [[0.5, 0.625], [0.75, 0.25], [-0.125, -0.5], [0, 0]],
        [[-0.5, -0.25], [0.25, 0.5], [0, 0], [0, 0]],
        [[0.5, 0.125], [-0.25, -0.75], [-0.625, -0.5], [0, 0]],
        [[-0.5, -0.5], [0, 0], [0, 0], [0, 0]],
    ]
)
_FORWARD, _BACKWARD = torch.tensor([-0.125, 0.25, -0.625, -0.5]), torch.tensor([0.625, -0.25, 0.125, -0.5])
_BY_LENGTH = [0, 2, 1, 3], [2, 0, 1, 3]
_WORTHS = torch.tensor([1.0, 1.0, 1.0, -1.0, 1.0, -1.0])[_TOKENS]


def _read_by_halves(worths: Tensor, lengths: Tensor) -> Tensor:
    """What these GRUs make of sentences of these lengths: `(B, m, 2)`, zeros behind each."""
    outputs = torch.zeros(*worths.shape, 2)
    for row, length in enumerate(lengths.tolist()):
        for direction, places in enumerate([range(length), range(length)[::-1]]):
            state = 0.0
            for j in places:
                outputs[row, j, direction] = state = (state + worths[row, j].item()) / 2
    return outputs


def _misread(outputs: Tensor) -> dict[Mistake, Tensor]:
    """The outputs that a mistake with padding, lengths or dimensions gives, for all sentences."""
    everywhere = torch.full_like(_LENGTHS, 4)
    real = torch.arange(4) < _LENGTHS[:, None]
    read = _read_by_halves(_WORTHS, everywhere)
    longer = _read_by_halves(_WORTHS, _LENGTHS + 1)
    of_one = [_LENGTHS[:1].expand(4), _LENGTHS[1:2].expand(4), _LENGTHS[-1:].expand(4)]
    first = _read_by_halves(_WORTHS.T, _LENGTHS)
    return {
        # Read as they are, as vectors of zeros, or only the first of them.
        m.GRUEncoder.READS_PADDING: nearest(outputs, read, _read_by_halves(_WORTHS * real, everywhere), longer),
        m.GRUEncoder.ZEROED_AFTERWARDS: read * real[..., None],
        m.GRUEncoder.TOKEN_LOST: _read_by_halves(_WORTHS, (_LENGTHS - 1).clamp(1)),
        m.GRUEncoder.FIRST_LENGTH: nearest(outputs, *(_read_by_halves(_WORTHS, length) for length in of_one)),
        # Packed so; unpacked so; both; and not packed at all, where the GRU has the batch second.
        m.GRUEncoder.PACKED_TIME_FIRST: first,
        m.GRUEncoder.UNPACKED_TIME_FIRST: _READ.transpose(0, 1),
        m.GRUEncoder.TIME_FIRST: nearest(
            outputs, first.transpose(0, 1), _read_by_halves(_WORTHS.T, everywhere).transpose(0, 1)
        ),
        m.GRUEncoder.BACKWARD_OUTPUTS_FIRST: _READ.flip(-1),
        m.GRUEncoder.STAY_SORTED: nearest(outputs, *(_READ[order] for order in _BY_LENGTH)),
        m.GRUEncoder.PADDING_BY_NUMBER: _read_by_halves(_WORTHS, (_TOKENS != 1).sum(1)),
    }


@visible(
    "the parts and their sizes, both directions by hand, no padding read, the decoder's first state",
    graded="other cases, sizes of 1, gradients, dtypes and dropout",
)
def GRUEncoder(cls: Callable) -> None:
    """Four sentences of 3, 2, 3 and 1 tokens, read by GRUs that go half the way at each step."""
    module = call(cls, 10, 4, 3, 5, 0.0)
    names = {name for name, _ in module.named_parameters()}
    expect("gru.weight_ih_l1" not in names, m.GRUEncoder.TWO_LAYERS)
    hints = {"_reverse": m.GRUEncoder.ONE_DIRECTION, "gru.": m.GRUEncoder.OTHER_GRU}
    hints |= {"embedding": m.GRUEncoder.EMBEDDING, "fc.": m.GRUEncoder.FC}
    expect_parameters(module, encoder_shapes(10, 4, 3, 5), hints)
    encoder = call(cls, 6, 1, 1, 1, 0.0)
    to_the_worth = [[0.0], [0.0], [20.0]]
    weights = {
        "embedding.weight": [[1.0], [1.0], [1.0], [-1.0], [1.0], [-1.0]],
        "gru.weight_ih_l0": to_the_worth,
        "gru.weight_ih_l0_reverse": to_the_worth,
        "fc.weight": [[4.0, 2.0]],
    }
    _load(encoder, encoder_shapes(6, 1, 1, 1), weights)
    tokens, lengths = _TOKENS.clone(), _LENGTHS.clone()
    asked = "tokens (4, 4) and lengths 3, 2, 3, 1"
    # One feature meets `fc`, in a row for each sentence or for each sentence and direction.
    with explaining(asked, {r"\([48]x1 and 2x1\)": m.GRUEncoder.ONE_HALF}), unchanged(tokens=tokens, lengths=lengths):
        result = call(encoder, tokens, lengths)
    outputs, hidden = several(result, 2, m.GRUEncoder.NOT_TWO)
    shapes = {(4, 3, 2): m.GRUEncoder.NO_TOTAL_LENGTH, (4, 1): m.GRUEncoder.EXCHANGED}
    expect_tensor(outputs, name="the outputs", asked=asked)
    if outputs.shape == (4, 4, 1) and (outputs - _READ.sum(-1, keepdim=True)).abs().max() < 1e-5:
        shapes[4, 4, 1] = m.GRUEncoder.ADDED
    _expect_shape(outputs, (4, 4, 2), "the outputs", shapes, asked)
    wrong = _misread(outputs)
    alike = {mistake: value[0] for mistake, value in wrong.items() if (outputs - value).abs().max() < 1e-5}
    expect_close(outputs[0], _READ[0], "the outputs for the tokens 2 4 3", _lazy(alike))
    expect_close(outputs, _READ, "the outputs", _lazy(wrong), asked=asked)
    _expect_first_state(hidden)


def _expect_first_state(hidden: Any) -> None:
    """`fc` adds four times the forward state at the end and twice the backward one."""
    one_too_many = m.GRUEncoder.DIMENSION_TOO_MANY
    shapes = {(4, 2): m.GRUEncoder.NO_FC, (1, 4, 1): one_too_many, (4, 1, 1): one_too_many}
    _expect_shape(hidden, (4, 1), "the first state", shapes)
    fc, both = torch.tensor([4.0, 2]), 4 * _FORWARD + 2 * _BACKWARD
    end = _READ[torch.arange(4), _LENGTHS - 1]
    wrong = {
        m.GRUEncoder.NO_TANH: both,
        m.GRUEncoder.RELU: both.relu(),
        m.GRUEncoder.SIGMOID: both.sigmoid(),
        m.GRUEncoder.TANH_BEFORE: 4 * _FORWARD.tanh() + 2 * _BACKWARD.tanh(),
        m.GRUEncoder.BACKWARD_FIRST: (4 * _BACKWARD + 2 * _FORWARD).tanh(),
        m.GRUEncoder.FORWARD_TWICE: (6 * _FORWARD).tanh(),
        m.GRUEncoder.BACKWARD_TWICE: (6 * _BACKWARD).tanh(),
        # Of both directions, or of the forward one alone.
        m.GRUEncoder.LAST_POSITION: nearest(hidden[:, 0], 0 * _FORWARD, (2 * _BACKWARD).tanh()),
        m.GRUEncoder.LAST_TOKEN: (end @ fc).tanh(),
        m.GRUEncoder.FIRST_TOKEN: (_READ[:, 0] @ fc).tanh(),
        # Of the real tokens, or of all positions.
        m.GRUEncoder.MEAN: nearest(
            hidden[:, 0], (_READ.sum(1) / _LENGTHS[:, None] @ fc).tanh(), (_READ.mean(1) @ fc).tanh()
        ),
        m.GRUEncoder.STAY_SORTED: nearest(hidden[:, 0], *(both.tanh()[order] for order in _BY_LENGTH)),
        m.GRUEncoder.RESHAPED: (torch.cat([_FORWARD, _BACKWARD]).view(4, 2) @ fc).tanh(),
    }
    expect_close(hidden[:, 0], both.tanh(), "the first state", _lazy(wrong))


def attention_shapes(encoder: int, decoder: int) -> dict[str, tuple[int, ...]]:
    """The parameters of an AdditiveAttention."""
    return {"fc1.weight": (decoder, decoder + 2 * encoder), "fc1.bias": (decoder,), "fc2.weight": (1, decoder)}


@visible(
    "the parts and their sizes, two sentences by hand, padding exactly 0",
    graded="other cases, large numbers, rows with nothing to attend to, gradients, dtypes and devices",
)
def AdditiveAttention(cls: Callable) -> None:
    """Scores 0 and log 3 for the first sentence, which make the weights 1/4 and 3/4."""
    module = call(cls, 3, 5)
    expect("fc2.bias" not in {name for name, _ in module.named_parameters()}, m.AdditiveAttention.BIAS)
    hints = {"fc1": m.AdditiveAttention.FC1, "fc2": m.AdditiveAttention.FC2}
    expect_parameters(module, attention_shapes(3, 5), hints)
    # fc1 adds the state and the output's first feature. For the first sentence that gives 0, 1 (and 6 for padding).
    attention = call(cls, 1, 1)
    v = (torch.tensor(3.0).log() / torch.tensor(1.0).tanh()).item()
    _load(attention, attention_shapes(1, 1), {"fc1.weight": [[1.0, 1.0, 0.0]], "fc2.weight": [[v]]})
    state = torch.tensor([[2.0], [0.5]])
    outputs = torch.tensor([[[-2.0, 7], [-1, -7], [4, 0]], [[0.5, 3], [-1.5, 3], [-0.5, -3]]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    with unchanged(hidden=state, encoder_outputs=outputs, mask=mask):
        weights = call(attention, state, outputs, mask)
    shapes = {(2, 3, 1): m.AdditiveAttention.COLUMN, (2, 1, 3): m.AdditiveAttention.ROW}
    _expect_shape(weights, (2, 3), "the weights", shapes, "hidden (2, 1), encoder_outputs (2, 3, 2) and mask (2, 3)")
    right = torch.tensor([[1 / 4, 3 / 4, 0], [9 / 13, 1 / 13, 3 / 13]])
    expect_close(weights, right, "the weights", _lazy(_attention_mistakes(state, outputs, mask, v, weights, right)))
    expect(weights[0, 2] == 0, m.AdditiveAttention.PADDING_NOT_ZERO, got=weights[0, 2].item())


def _attention_mistakes(
    state: Tensor, outputs: Tensor, mask: Tensor, v: float, weights: Tensor, right: Tensor
) -> dict[Mistake, Tensor]:
    first = outputs[..., 0]
    sums = state + first
    scores = v * sums.tanh()
    mixed = first + torch.tensor([[2, 0.5, 2], [0.5, 2, 0.5]])

    def masked(scores: Tensor, dim: int = -1) -> Tensor:
        return scores.masked_fill(~mask, -1e9).softmax(dim)

    return {
        m.AdditiveAttention.MASK_IGNORED: scores.softmax(-1),
        # Where all tokens are real nothing is left: zeros, or equal weights. At last: the padding set to 0 by ~mask.
        m.AdditiveAttention.MASK_INVERTED: nearest(
            weights, torch.eye(3)[2] * ~mask, turned := scores.masked_fill(mask, -1e9).softmax(-1), turned * mask
        ),
        # As it is, or with exact zeros afterwards.
        m.AdditiveAttention.FILLED_WITH_ZERO: nearest(
            weights, filled := scores.masked_fill(~mask, 0).softmax(-1), filled * mask
        ),
        m.AdditiveAttention.MASKED_AFTERWARDS: scores.softmax(-1) * mask,
        m.AdditiveAttention.FIRST_MASK: torch.tensor([[1 / 4, 3 / 4, 0], [9 / 10, 1 / 10, 0]]),
        m.AdditiveAttention.NO_TANH: masked(v * sums),
        m.AdditiveAttention.RELU: masked(v * sums.relu()),
        m.AdditiveAttention.SIGMOID: masked(v * sums.sigmoid()),
        m.AdditiveAttention.TANH_AFTER: masked((v * sums).tanh()),
        m.AdditiveAttention.SECOND_TANH: masked(scores.tanh()),
        m.AdditiveAttention.OUTPUT_FIRST: masked(v * outputs.sum(-1).tanh()),
        m.AdditiveAttention.NO_SOFTMAX: nearest(weights, scores, scores * mask),
        m.AdditiveAttention.SOFTMAX_OVER_BATCH: masked(scores, 0),
        m.AdditiveAttention.SOFTMAX_OVER_ONE: nearest(weights, mask.float(), torch.ones(2, 3)),
        m.AdditiveAttention.LOG_SOFTMAX: masked(scores).log().masked_fill(~mask, 0.0),
        m.AdditiveAttention.SIGMOID_WEIGHTS: scores.sigmoid() * mask,
        m.AdditiveAttention.STATES_MIXED: masked(v * mixed.tanh()),
        m.AdditiveAttention.FIRST_STATE: masked(v * (state[:1] + first).tanh()),
        m.AdditiveAttention.FIRST_WEIGHTS: right[:1].expand(2, 3),
        m.AdditiveAttention.STATE_UNUSED: masked(v * first.tanh()),
    }


def make_equal_weights():
    """An attention that gives each real token the same weight."""

    class Equal(nn.Module):
        def forward(self, hidden, encoder_outputs, mask):
            self.given = tuple(hidden.shape), tuple(encoder_outputs.shape)
            return mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)

    return Equal()


def decoder_shapes(vocab: int, embed: int, encoder: int, decoder: int) -> dict[str, tuple[int, ...]]:
    """The parameters of a GRUDecoder but for those of its attention."""
    return {
        "embedding.weight": (vocab, embed),
        "gru.weight_ih": (3 * decoder, embed + 2 * encoder),
        "gru.weight_hh": (3 * decoder, decoder),
        "gru.bias_ih": (3 * decoder,),
        "gru.bias_hh": (3 * decoder,),
        "fc.weight": (vocab, decoder + 2 * encoder + embed),
        "fc.bias": (vocab,),
    }


def replace_attention(decoder, attention):
    """Put another attention in the place of a decoder's own, under each of its names."""
    own = getattr(decoder, "attention", None)
    for module in list(decoder.modules()):
        for name, part in module.named_children():
            if part is own:
                setattr(module, name, attention)
    decoder.attention = attention


@visible(
    "the parts and their sizes, and one step of two sentences by hand: weights, state, logits",
    graded="other cases, gradients, dtypes and dropout",
)
def GRUDecoder(cls: Callable, attention: Callable) -> None:
    """One step with an attention of the checks, which takes the mean of the real outputs, (3, 1) and (-3, 3)."""
    own = {f"attention.{name}": tuple(value.shape) for name, value in call(attention, 3, 5).named_parameters()}
    hints = {"attention": m.GRUDecoder.ATTENTION, "gru.": m.GRUDecoder.GRU}
    hints |= {"embedding": m.GRUDecoder.EMBEDDING, "fc.": m.GRUDecoder.FC}
    expect_parameters(call(cls, 10, 4, 3, 5, 0.0), decoder_shapes(10, 4, 3, 5) | own, hints)
    # Tokens 1 and 0 have the vectors -10 and 10; the GRU goes half the way from the state to the sign of the vector:
    # from 0.8 to -0.1, and from 0.4 to 0.7. Token 0 gets the score state + context[0], token 1 context[1] + vector.
    decoder = call(cls, 2, 1, 1, 1, 0.0)
    place(replace_attention, beside=cls)(decoder, place(make_equal_weights, beside=cls)())
    weights = {
        "embedding.weight": [[10.0], [-10.0]],
        "gru.weight_ih": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [20.0, 0.0, 0.0]],
        "fc.weight": [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]],
    }
    _load(decoder, decoder_shapes(2, 1, 1, 1), weights)
    token, state = torch.tensor([1, 0]), torch.tensor([[0.8], [0.4]])
    outputs = torch.tensor([[[2.0, 0], [4, 2], [100, 100]], [[-1, 1], [-3, 3], [-5, 5]]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    with unchanged(hidden=state, encoder_outputs=outputs, mask=mask):
        result = call(decoder, token, state, outputs, mask)
    given = getattr(decoder.attention, "given", None)
    expect(given != ((2, 3, 2), (2, 1)), m.GRUDecoder.ATTENTION_EXCHANGED)
    logits, hidden, weights = several(result, 3, m.GRUDecoder.NOT_THREE)
    promised = {
        "the logits": (logits, (2, 2), m.GRUDecoder.LOGITS_SHAPE),
        "the state": (hidden, (2, 1), m.GRUDecoder.HIDDEN_SHAPE),
        "the weights": (weights, (2, 3), m.GRUDecoder.WEIGHTS_SHAPE),
    }
    for what, (value, _, _) in promised.items():
        expect_tensor(value, name=what)
    shapes = [tuple(value.shape) for value, _, _ in promised.values()]
    mixed = sorted(shapes) == sorted(shape for _, shape, _ in promised.values())
    for what, (value, shape, mistake) in promised.items():
        otherwise = m.GRUDecoder.ORDER if mixed else mistake if value.dim() != 2 else Unexplained.SHAPE
        _expect_shape(value, shape, what, {tuple(value.shape): otherwise})
    own = torch.tensor([[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])
    wrong = {m.GRUDecoder.MASK_LOST: own[[1, 1]], m.GRUDecoder.MASK_INVERTED: torch.eye(3)[2] * ~mask}
    expect_close(weights, own, "the weights of the attention", _lazy(wrong))
    wrong = {
        m.GRUDecoder.CONTEXT_FIRST: [[0.9], [-0.3]],
        m.GRUDecoder.NO_MEMORY: [[-0.5], [0.5]],
        m.GRUDecoder.OLD_STATE_RETURNED: [[0.8], [0.4]],
    }
    new = torch.tensor([[-0.1], [0.7]])
    expect_close(hidden, new, "the new state", _lazy(wrong))
    _expect_logits(logits, state, new, own, outputs)
    one = [token[:1], state[:1], outputs[:1], mask[:1]]
    try:
        logits = call(decoder, *one)[0]
    except Complaint:
        complain(m.GRUDecoder.SQUEEZED, "the step", asked="a batch of one sentence", got="an error")
    _expect_shape(logits, (1, 2), "the logits of a single sentence", {})


def _expect_logits(logits: Tensor, state: Tensor, new: Tensor, own: Tensor, outputs: Tensor) -> None:
    vector, context = torch.tensor([[-10.0], [10]]), torch.tensor([[3.0, 1], [-3, 3]])
    fc = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]])

    def speak(*parts: Tensor) -> Tensor:
        return torch.cat(parts, dim=-1) @ fc.T

    right = speak(new, context, vector)
    orders = [(new, vector, context), (vector, new, context), (vector, context, new)]
    orders += [(context, new, vector), (context, vector, new)]
    contexts = {
        m.GRUDecoder.PLAIN_MEAN: outputs.mean(1),
        m.GRUDecoder.PLAIN_SUM: outputs.sum(1),
        m.GRUDecoder.LAST_OUTPUT: outputs[:, -1],
        m.GRUDecoder.BEST_ONLY: outputs[torch.arange(2), own.argmax(-1)],
        m.GRUDecoder.AVERAGED: context / 3,
        m.GRUDecoder.FIRST_WEIGHTS: torch.einsum("m,bmd->bd", own[0], outputs),
        m.GRUDecoder.FIRST_OUTPUTS: own @ outputs[0],
        m.GRUDecoder.SOFTMAX_TWICE: torch.einsum("bm,bmd->bd", own.softmax(-1), outputs),
    }
    wrong = {
        m.GRUDecoder.OLD_STATE_SPOKEN: speak(state, context, vector),
        m.GRUDecoder.FC_ORDER: nearest(logits, *(speak(*parts) for parts in orders)),
        **{mistake: speak(new, value, vector) for mistake, value in contexts.items()},
        m.GRUDecoder.PROBABILITIES: right.softmax(-1),
        m.GRUDecoder.LOG_PROBABILITIES: right.log_softmax(-1),
        m.GRUDecoder.TANH: right.tanh(),
        m.GRUDecoder.RELU: right.relu(),
    }
    expect_close(logits, right, "the logits", _lazy(wrong))


def make_watch():
    """What notes the shapes of the tokens and of the masks that a decoder is given."""

    class Watch(nn.Module):
        def __init__(self):
            super().__init__()
            self.shapes, self.masks = [], []

        def forward(self, token, mask):
            self.shapes.append(list(token.shape))
            self.masks.append(list(mask.shape))
            return token

    return Watch()


def make_counting_parts(watch):
    """An encoder, and a decoder that asks for the number after the token that it is fed, and least for two before it.

    Logit 6 is the sum of the source tokens that the mask lets through; logit 7 counts steps, beginning with the
    sentence's length.
    """

    class Encoder(nn.Module):
        def forward(self, tokens, lengths):
            return tokens.unsqueeze(-1).float(), lengths.unsqueeze(-1).float()

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.watch = watch

        def forward(self, token, hidden, encoder_outputs, mask):
            hidden, token = hidden + 1, self.watch(token, mask)
            seen = (encoder_outputs * mask.unsqueeze(-1)).sum(dim=1)
            scores = 1000.0 * torch.eye(6)[(token + 1) % 6] - torch.eye(6)[(token + 4) % 6]
            return torch.cat([scores, seen, hidden], dim=-1), hidden, mask

    return Encoder(), Decoder()


_TARGET = torch.tensor([[0, 3, 1, 4], [0, 2, 4, 1]])
_TRUE, _OWN, _SOS = [[1, 4, 2], [1, 3, 5]], [[1, 2, 3], [1, 2, 3]], [[1, 1, 1], [1, 1, 1]]
_FED = {(): m.Seq2Seq.BEST_OF_ALL, (4,): m.Seq2Seq.ROW_OF_TARGET, (8,): m.Seq2Seq.BEST_OVER_BATCH}


def _write_both(write: Callable[[float], Any], watch: Any) -> tuple[Any, Any]:
    """What is written with always the true token fed, and with always the decoder's own; two sentences."""
    failure = None
    try:
        results = write(1.0), write(0.0)
    except Complaint as complaint:
        failure = complaint
    for shape in map(tuple, watch.shapes):
        told = {"expected": "of shape (2,)", "got": f"shape {shape}"}
        expect(shape == (2,), _FED.get(shape, m.Seq2Seq.OTHER_TOKENS), "what the decoder was fed", **told)
    short = {"expected": "of shape (2, 5)", "got": "shape (2, 3)"}
    expect((2, 3) not in map(tuple, watch.masks), m.Seq2Seq.MASK_SHORTER_THAN_SOURCE, "the mask", **short)
    if failure is not None:
        raise failure
    return results


def _expect_tokens(forced: Any, free: Any) -> None:
    """Shapes, and the tokens predicted with always the true token fed, and with always the decoder's own."""
    shapes = {
        (2, 4, 8): m.Seq2Seq.SOS_SCORED,
        (3, 2, 8): m.Seq2Seq.STACKED_FIRST,
        (2, 8, 3): m.Seq2Seq.STACKED_LAST,
        (6, 8): m.Seq2Seq.END_TO_END,
        (2, 24): m.Seq2Seq.SIDE_BY_SIDE,
        (2, 8): m.Seq2Seq.LAST_STEP_ONLY,
        (2, 3): m.Seq2Seq.TOKENS,
        (2, 2, 8): m.Seq2Seq.STEP_MISSING,
    }
    expect_tensor(forced, name="the result")
    if tuple(forced.shape) == (2, 4, 8) and not forced[:, 0].any():
        shapes[2, 4, 8] = m.Seq2Seq.ZEROS_IN_FRONT
    elif tuple(forced.shape) == (2, 4, 8) and forced[:, :3].argmax(-1).tolist() == _TRUE:
        shapes[2, 4, 8] = m.Seq2Seq.STEP_TOO_MANY
    asked = "target (2, 4)"
    for value in (forced, free):
        _expect_shape(value, (2, 3, 8), "the result", shapes, asked)
    expect((forced > 0).any(), m.Seq2Seq.LOG_PROBABILITIES, "the largest number", got=forced.max().item())
    expect(forced.max() > 1, m.Seq2Seq.PROBABILITIES, "the largest number", got=forced.max().item())
    said = forced.argmax(-1).tolist(), free.argmax(-1).tolist()
    wrong = [
        ((_OWN, _TRUE), m.Seq2Seq.REVERSED),
        ((_OWN, _OWN), m.Seq2Seq.ALWAYS_OWN),
        ((_TRUE, _TRUE), m.Seq2Seq.ALWAYS_TRUTH),
        ((_TRUE, [[1, 5, 3], [1, 5, 3]]), m.Seq2Seq.LEAST_LIKELY),
        ((_TRUE, _SOS), m.Seq2Seq.OWN_NEVER_FED),
        ((_SOS, _SOS), m.Seq2Seq.ALWAYS_SOS),
    ]
    what = "the tokens predicted for the first sentence"
    for pair, mistake in wrong:
        expect(said != pair, mistake, what, **_told(*said))
    told = _told(said[0], _OWN)
    copied = [[4, 2, 5], [3, 5, 2]], [[1, 2, 5], [1, 5, 2]]  # at every step, and at every step after the first
    expect(said[0] not in copied, m.Seq2Seq.FED_THE_ANSWER, what, **told)
    expect(said[0] != [[1, 1, 4], [1, 1, 3]], m.Seq2Seq.LATE, what, **told)
    expect(said[0] == _TRUE, Unexplained.VALUES, what, **told)


def _told(forced: list, free: list) -> dict[str, Any]:
    """Which tokens came for the first sentence, for the share at which they are wrong."""
    if forced == _TRUE:
        return {"asked": "target 0, 3, 1, 4 and teacher_forcing 0.0", "expected": _OWN[0], "got": free[0]}
    return {"asked": "target 0, 3, 1, 4 and teacher_forcing 1.0", "expected": _TRUE[0], "got": forced[0]}


def _expect_own(free: Tensor) -> None:
    got = free.argmax(-1).tolist()
    told = _told(_TRUE, got)
    expect(got == _OWN, Unexplained.VALUES, "the tokens predicted for the first sentence", **told)


def _expect_numbers(values: Tensor, right: list, what: str, wrong: Mapping[tuple, Mistake]) -> None:
    got = [round(number, 3) for number in values.tolist()]
    expect(got == right, wrong.get(tuple(got), Unexplained.VALUES), what, expected=right, got=got)


@visible(
    "which token is fed with teacher_forcing 1.0 and 0.0, the state handed on, the mask, (B, n - 1, vocab_size)",
    graded="other cases, sizes of 1, gradients, dtypes, devices and the generator",
)
def Seq2Seq(cls: Callable) -> None:
    """Two sentences, with a decoder that counts upwards from the token that it is fed."""
    watch = place(make_watch, beside=cls)()
    model = call(cls, *place(make_counting_parts, beside=cls)(watch))
    source, lengths = torch.tensor([[4, 1, 6, 1, 1], [7, 8, 1, 1, 1]]), torch.tensor([3, 2])
    target = _TARGET.clone()
    with unchanged(source=source, lengths=lengths, target=target):
        forced, free = _write_both(lambda p: call(model, source, lengths, target, teacher_forcing=p), watch)
    _expect_tokens(forced, free)
    steps = {
        (5, 6, 7, 4, 5, 6): m.Seq2Seq.SOS_SCORED,
        (4, 4, 4, 3, 3, 3): m.Seq2Seq.NOT_CARRIED,
        (1, 2, 3, 1, 2, 3): m.Seq2Seq.FROM_ZEROS,
    }
    what = "the steps of both sentences, counted in the last logit from their lengths,"
    _expect_numbers(forced[:, :, 7].flatten(), [4, 5, 6, 3, 4, 5], what, steps)
    _expect_own(free)
    masks = {
        (13, 18): m.Seq2Seq.MASK_ALL_TRUE,
        (2, 3): m.Seq2Seq.MASK_INVERTED,
        (10, 15): m.Seq2Seq.MASK_BY_NUMBER,
        (12, 16): m.Seq2Seq.MASK_TOO_LONG,
        (5, 7): m.Seq2Seq.MASK_TOO_SHORT,
        (11, 16): m.Seq2Seq.FIRST_MASK,
    }
    _expect_numbers(forced[:, 0, 6], [11, 15], "the sums of the source tokens that the mask lets through", masks)


def make_practice_models(seq2seq):
    """Broken models that a reader's test meets first, made from the reader's own class."""

    class Reversed(seq2seq):
        def forward(self, source, lengths, target, teacher_forcing=0.5, generator=None):
            return super().forward(source, lengths, target, 1 - teacher_forcing, generator)

    class StepTooMany(seq2seq):
        def forward(self, *inputs, **options):
            logits = super().forward(*inputs, **options)
            return torch.cat([logits[:, :1], logits], dim=1)

    class NeverAssigned(seq2seq):
        def forward(self, source, lengths, target, teacher_forcing=0.5, generator=None):
            if teacher_forcing < 1:
                raise NameError("name 'best' is not defined")
            return super().forward(source, lengths, target, teacher_forcing, generator)

    for cls in (Reversed, StepTooMany, NeverAssigned):
        cls.__name__ = cls.__qualname__ = "Seq2Seq"
    return [Reversed, StepTooMany, NeverAssigned]


@visible("your test accepts your own Seq2Seq, and notices three models that are broken", graded="other cases")
def check_teacher_forcing(test: Callable, seq2seq: Callable) -> None:
    """The reader's test on one right model and three broken ones."""
    _, error = outcome_of(test, seq2seq)
    known = m.check_teacher_forcing
    expect_accepted(error, known.REJECTS_RIGHT, known.STOPS, "what it says of your own Seq2Seq")
    faults = ["the choice is reversed", "there is a step too many in front", "its own token was never assigned"]
    for fault, cls in zip(faults, place(make_practice_models, beside=test)(seq2seq), strict=True):
        returned, error = outcome_of(test, cls)
        if not isinstance(error, AssertionError):
            what = f"a model in which {fault}"
            expect(error is None, m.check_teacher_forcing.CRASHES, what, got=said(error))
            spoke = isinstance(returned, bool | str)
            mistake = m.check_teacher_forcing.RETURNS if spoke else m.check_teacher_forcing.ACCEPTS_BROKEN
            complain(mistake, what, expected="rejected", got=f"{returned!r}" if spoke else "accepted")


def make_speaker():
    """A model that gives token 1 three times the odds of token 0 where 5 stands in the source, else even odds."""

    class Speaker(nn.Module):
        def forward(self, source, lengths, target, teacher_forcing=0.5, generator=None):
            real = torch.arange(source.shape[1]) < lengths[:, None]
            there = ((source == 5) & real).any(1, keepdim=True).float() * (teacher_forcing == 1.0)
            logit = torch.log(1 + 2 * there * (0.0 if self.training else 1.0)).expand(-1, target.shape[1] - 1)
            return torch.stack([torch.zeros_like(logit), logit], dim=-1)

    return Speaker()


@visible(
    "two sentences by hand: what falls, what rises, and what padding does",
    graded="other cases, sizes of 1, no graph and dtypes",
)
def effect_of_erasing(function: Callable) -> None:
    """The first sentence has the word that matters in second place; the second one has it as padding only."""
    model = place(make_speaker, beside=function)()
    source, lengths = torch.tensor([[4, 5, 3], [4, 3, 5]]), torch.tensor([3, 2])
    target = torch.tensor([[0, 1, 0], [0, 1, 1]])
    with unchanged(source=source, lengths=lengths, target=target):
        result = call(function, model, source, lengths, target, 2)
    falls = torch.tensor([1.5, 0.5]).log()  # of token 1, from 3/4 to 1/2, and of token 0, from 1/4 to 1/2
    right = torch.zeros(2, 2, 3)
    right[0, :, 1] = falls
    best = torch.zeros(2, 2, 3)
    best[0, :, 1] = falls[0]
    odds = torch.zeros(2, 2, 3)
    odds[0, 0, 1] = torch.tensor(3.0).log()
    shifted = torch.zeros(2, 2, 3)
    shifted[0, :, 1] = falls.flip(0)
    share = torch.zeros(2, 2, 3)
    share[0, :, 1] = torch.tensor([0.25, -0.25])
    kept = right.clone()
    kept[0, :, 2] = falls
    wrong = {
        m.effect_of_erasing.RISE: -right,
        m.effect_of_erasing.BEST_GUESS: best,
        m.effect_of_erasing.SIGN_LOST: right.abs(),
        m.effect_of_erasing.LOGITS: odds,
        m.effect_of_erasing.PROBABILITIES: share,
        m.effect_of_erasing.NOT_SHIFTED: shifted,
        m.effect_of_erasing.NOT_PUT_BACK: kept,
        m.effect_of_erasing.NOTHING_FALLS: torch.zeros(2, 2, 3),
        m.effect_of_erasing.TRANSPOSED: right.mT,
        m.effect_of_erasing.SUMMED: right.sum(1),
    }
    expect_close(result, right, "the effects", _lazy(wrong), asked="the two sentences of the text")
