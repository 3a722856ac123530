"""The hidden tests of chapter 08."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    build,
    call,
    expect_close,
    expect_device,
    expect_gradients,
    expect_parameter_gradients,
    expect_same_in_eval,
    expect_tensor,
    place,
    rand_mask,
    randint,
    randn,
    set_weights,
    unchanged,
)
from checks.formulas import linear

State = Mapping[str, Tensor]


def _gru_step(state: State, gru: str, ends: str, x: Tensor, h: Tensor) -> Tensor:
    """One step of a GRU, from the formula; `ends` is what torch appends to the names of its parameters."""
    weights = [f"{gru}.{part}{ends}" for part in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]
    w_x, b_x, w_h, b_h = (state[name] for name in weights)
    r_x, z_x, n_x = (x @ w_x.mT + b_x).chunk(3, dim=-1)
    r_h, z_h, n_h = (h @ w_h.mT + b_h).chunk(3, dim=-1)
    z = (z_x + z_h).sigmoid()
    return (1 - z) * (n_x + (r_x + r_h).sigmoid() * n_h).tanh() + z * h


def _expect_several(result: Any, count: int, names: str) -> tuple:
    assert result is not None, "nothing is returned: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == count, f"return {count} things: {names}"
    return tuple(result)


class _Joined:
    """A module whose results count as one tensor, so that gradients of all of them are compared."""

    def __init__(self, module: nn.Module, count: int) -> None:
        self.zero_grad, self.named_parameters = module.zero_grad, module.named_parameters
        self._module, self._count = module, count

    def __call__(self, *inputs: Any) -> Tensor:
        return _join(self._module(*inputs)[: self._count])


def _join(results: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([result.flatten() for result in results])


# ---- GRUEncoder

# vocab_size, embed_dim, encoder_hidden, decoder_hidden; B; m. Equal sizes first, where mix-ups give wrong values.
_ENCODERS = [
    ((9, 4, 4, 8), 4, 4),
    ((11, 3, 4, 5), 3, 6),
    ((7, 5, 2, 3), 4, 5),
    ((8, 2, 3, 1), 1, 4),
    ((6, 1, 1, 2), 2, 1),
]
_ENCODER_HINTS = {
    "_reverse": "the sentence should be read in both directions, `bidirectional=True`",
    "gru.": "`gru` is an nn.GRU(embed_dim, encoder_hidden) of one layer",
    "embedding": "`embedding` is nn.Embedding(vocab_size, embed_dim)",
    "fc.": "`fc` is nn.Linear(2 * encoder_hidden, decoder_hidden): both directions in, the decoder's state out",
}


def _encoder_shapes(vocab: int, embed: int, hidden: int, decoder: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (vocab, embed)}
    for ends in ("_l0", "_l0_reverse"):
        shapes |= {f"gru.weight_ih{ends}": (3 * hidden, embed), f"gru.weight_hh{ends}": (3 * hidden, hidden)}
        shapes |= {f"gru.bias_ih{ends}": (3 * hidden,), f"gru.bias_hh{ends}": (3 * hidden,)}
    return shapes | {"fc.weight": (decoder, 2 * hidden), "fc.bias": (decoder,)}


def _read(state: State, vectors: Tensor, ends: str) -> Tensor:
    """The states after each vector of one sentence, `(m, encoder_hidden)`."""
    h, states = vectors.new_zeros(state["gru.weight_hh_l0"].shape[1]), []
    for vector in vectors:
        h = _gru_step(state, "gru", ends, vector, h)
        states.append(h)
    return torch.stack(states)


def _read_both(state: State, tokens: Tensor, lengths: Tensor, blank: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs, and each direction's last state; `blank` is what a dropout of 1 makes of the vectors."""
    outputs, last = [], []
    for row, length in zip(tokens, lengths.tolist(), strict=True):
        vectors = state["embedding.weight"][row[:length]]
        vectors = vectors * 0 if blank else vectors
        forward, backward = _read(state, vectors, "_l0"), _read(state, vectors.flip(0), "_l0_reverse").flip(0)
        both = torch.cat([forward, backward], dim=-1)
        outputs.append(torch.cat([both, both.new_zeros(tokens.shape[1] - length, both.shape[1])]))
        last.append(torch.stack([forward[-1], backward[0]]))
    forward, backward = torch.stack(last, dim=1)
    return torch.stack(outputs), forward, backward


def _encode(state: State, tokens: Tensor, lengths: Tensor, blank: bool = False) -> tuple[Tensor, Tensor]:
    outputs, forward, backward = _read_both(state, tokens, lengths, blank)
    return outputs, linear(state, "fc", torch.cat([forward, backward], dim=-1)).tanh()


def _output_mistakes(state: State, tokens: Tensor, lengths: Tensor) -> dict[str, Callable[[], Tensor]]:
    full = torch.full_like(lengths, tokens.shape[1])

    def outputs(tokens: Tensor, lengths: Tensor) -> Tensor:
        return _read_both(state, tokens, lengths)[0]

    def real(result: Tensor) -> Tensor:
        return result * (torch.arange(tokens.shape[1]) < lengths[:, None])[..., None]

    def swapped() -> Tensor:
        return torch.cat(outputs(tokens, lengths).chunk(2, -1)[::-1], -1)

    def at_most_one(lengths: Tensor) -> Tensor:
        return outputs(tokens, lengths.clamp(1, tokens.shape[1]))

    padding = "the GRU reads the padding too: pack the sequence with `pack_padded_sequence`"
    return {
        padding: lambda: outputs(tokens, full),
        padding + " (zeroing the outputs afterwards is too late, the backward direction starts in the padding)": (
            lambda: real(outputs(tokens, full))
        ),
        "the outputs are as long as the longest sentence of the batch, not as the tokens: give `pad_packed_sequence` "
        "a `total_length`": lambda: outputs(tokens, lengths)[:, : int(lengths.max())],
        "padding is recognised by token 1, but `lengths` says what is real": lambda: at_most_one((tokens != 1).sum(1)),
        "the lengths are off by one: each sentence loses its last token": lambda: at_most_one(lengths - 1),
        "batch and positions are exchanged: `pack_padded_sequence` needs `batch_first=True`": lambda: outputs(
            tokens.T, lengths
        ),
        "the outputs come as (m, B, features): `pad_packed_sequence` needs `batch_first=True` too": (
            lambda: outputs(tokens, lengths).transpose(0, 1)
        ),
        "the backward direction comes first": swapped,
        "the two directions are added up, not put side by side": lambda: sum(outputs(tokens, lengths).chunk(2, -1)),
        "the length of the first sentence is used for all": lambda: outputs(tokens, lengths[:1].expand_as(lengths)),
        "hidden and outputs are exchanged: return (outputs, hidden)": lambda: _encode(state, tokens, lengths)[1],
        "the sentence is read in reverse": lambda: outputs(
            torch.stack([torch.cat([t[:n].flip(0), t[n:]]) for t, n in zip(tokens, lengths.tolist(), strict=True)]),
            lengths,
        ),
    }


def _hidden_mistakes(state: State, tokens: Tensor, lengths: Tensor) -> dict[str, Callable[[], Tensor]]:
    outputs, forward, backward = _read_both(state, tokens, lengths)

    def finish(first: Tensor, second: Tensor) -> Tensor:
        return linear(state, "fc", torch.cat([first, second], -1)).tanh()

    def at(position: int) -> Tensor:
        return linear(state, "fc", outputs[:, position]).tanh()

    both = torch.cat([forward, backward], -1)
    right = linear(state, "fc", both)
    end = outputs[torch.arange(len(tokens)), lengths - 1]
    mean = outputs.sum(1) / lengths[:, None]
    padded = _read_both(state, tokens, torch.full_like(lengths, tokens.shape[1]))[1:]
    mixed = torch.stack([forward, backward]).reshape(len(tokens), -1)
    return {
        "the tanh is missing": lambda: right,
        "a ReLU stands where the tanh should": lambda: right.relu(),
        "a sigmoid stands where the tanh should": lambda: right.sigmoid(),
        "the tanh comes before `fc`, it belongs after": lambda: linear(state, "fc", both.tanh()),
        "the backward state comes first: [forward; backward]": lambda: finish(backward, forward),
        "the forward state stands there twice": lambda: finish(forward, forward),
        "the backward state stands there twice": lambda: finish(backward, backward),
        "the states of different sentences are mixed: (2, B, encoder_hidden) must not be reshaped to (B, ...), "
        "take `last[0]` and `last[1]` and put them side by side": lambda: linear(state, "fc", mixed).tanh(),
        "the outputs at the last position are used, which is padding for the shorter sentences": lambda: at(-1),
        "at the last real token, whose output is used, the backward direction has read one token only": (
            lambda: linear(state, "fc", end).tanh()
        ),
        "at the first token, whose output is used, the forward direction has read one token only": lambda: at(0),
        "the mean of the outputs is used, not the last states": lambda: linear(state, "fc", mean).tanh(),
        "the last states come from a GRU that read the padding": lambda: finish(*padded),
        "`fc` is left out": lambda: both,
        "`fc` is left out, only the tanh is there": lambda: both.tanh(),
        "the state of the first sentence is used for all": lambda: right[:1].tanh().expand_as(right),
        "there is one dimension too many: the decoder wants (B, decoder_hidden)": lambda: right.tanh().unsqueeze(0),
        "there is one dimension too many: the decoder wants (B, decoder_hidden).": lambda: right.tanh().unsqueeze(1),
    }


def _sentences(vocab: int, batch: int, m: int, slack: int = 0) -> tuple[Tensor, Tensor]:
    """Tokens with random ones as padding, and lengths in no order; `slack`: padding behind the longest sentence too."""
    longest = m - slack
    lengths = randint(1, longest + 1, (batch,))
    lengths[0] = randint(1, max(longest - 1, 2), ())  # shorter by two, if it can be, so that an error of one tells
    lengths[batch // 2] = longest
    tokens = randint(0, vocab, (batch, m))
    tokens[0, 0] = 1  # a real token may have any number
    return tokens, lengths


def check_encoder(cls: Callable) -> None:
    """Parameters, values at several sizes and dtypes, padding, gradients, dropout."""
    for sizes, batch, m in _ENCODERS:
        for dtype in (torch.float64, torch.float32):
            slack = int(m > 4)
            module, state = build(lambda s=sizes: cls(*s, 0.0), _encoder_shapes(*sizes), _ENCODER_HINTS, dtype)
            tokens, lengths = _sentences(sizes[0], batch, m, slack)
            with unchanged(tokens=tokens, lengths=lengths):
                result = call(module, tokens, lengths)
            outputs, hidden = _expect_several(result, 2, "(outputs, hidden)")
            right = _encode(state, tokens, lengths)
            expect_close(outputs, right[0], "the outputs", _output_mistakes(state, tokens, lengths), dtype)
            expect_close(hidden, right[1], "the hidden state", _hidden_mistakes(state, tokens, lengths), dtype)
    sizes = (9, 4, 3, 5)
    module, state = build(lambda: cls(*sizes, 0.0), _encoder_shapes(*sizes), _ENCODER_HINTS)
    tokens, lengths = _sentences(9, 3, 5)
    expect_parameter_gradients(_Joined(module, 2), lambda s, *i: _join(_encode(s, *i)), state, [tokens, lengths])
    _expect_encoder_dropout(cls, sizes)


def _expect_encoder_dropout(cls: Callable, sizes: tuple[int, ...]) -> None:
    """With a dropout of 1 every token vector is zero while training, and untouched in evaluation."""
    module, state = build(lambda: cls(*sizes, 1.0), _encoder_shapes(*sizes), _ENCODER_HINTS)
    tokens, lengths = _sentences(sizes[0], 3, 5)
    right = _encode(state, tokens, lengths)
    outputs, hidden = call(module, tokens, lengths)
    blank = _encode(state, tokens, lengths, blank=True)
    mistakes = {
        "`dropout` has no effect: the token vectors should pass through it": lambda: right[0],
        "the dropout acts on the outputs: it belongs on the token vectors": lambda: torch.zeros_like(right[0]),
    }
    expect_close(outputs, blank[0], "with a dropout of 1, in training mode, the outputs", mistakes)
    expect_close(hidden, blank[1], "with a dropout of 1, in training mode, the hidden state")
    module, state = build(lambda: cls(*sizes, 0.5), _encoder_shapes(*sizes), _ENCODER_HINTS)
    right = _encode(state, tokens, lengths)
    expect_same_in_eval(module, [tokens, lengths], "GRUEncoder", right[0])
    expect_close(module(tokens, lengths)[1], right[1], "in evaluation mode the hidden state")


# ---- AdditiveAttention

# encoder_hidden, decoder_hidden; B; m
_ATTENTIONS = [((2, 4), 4, 4), ((3, 5), 2, 4), ((2, 7), 5, 3), ((1, 1), 3, 6), ((4, 2), 1, 5), ((3, 4), 2, 1)]
_ATTENTION_HINTS = {
    "fc1": "`fc1` is nn.Linear(decoder_hidden + 2 * encoder_hidden, decoder_hidden): state and output side by side",
    "fc2.weight": "`fc2` is nn.Linear(decoder_hidden, 1, bias=False): one score for each source token",
}


def _attention_shapes(encoder: int, decoder: int) -> dict[str, tuple[int, ...]]:
    return {"fc1.weight": (decoder, decoder + 2 * encoder), "fc1.bias": (decoder,), "fc2.weight": (1, decoder)}


def _softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    e = (scores - scores.detach().amax(dim, keepdim=True)).exp() * mask
    total = e.sum(dim, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)


def _scores(
    state: State, hidden: Tensor, outputs: Tensor, bend: Callable[[Tensor], Tensor] = torch.tanh, swap: bool = False
) -> Tensor:
    hidden = hidden.unsqueeze(1).expand(-1, outputs.shape[1], -1)
    pairs = torch.cat([outputs, hidden] if swap else [hidden, outputs], dim=-1)
    return linear(state, "fc2", bend(linear(state, "fc1", pairs))).squeeze(-1)


def _attend(state: State, hidden: Tensor, outputs: Tensor, mask: Tensor) -> Tensor:
    return _softmax(_scores(state, hidden, outputs), mask)


def _attention_mistakes(state: State) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    def changed(change: Callable[[Tensor], Tensor] = lambda s: s, **switches: Any) -> Callable:
        return lambda h, o, mask: _softmax(change(_scores(state, h, o, **switches)), mask)

    def filled(value: float) -> Callable:
        return lambda h, o, mask: _scores(state, h, o).masked_fill(~mask, value).softmax(-1)

    def mixed(h: Tensor, o: Tensor, mask: Tensor) -> Tensor:
        repeated = h.repeat(o.shape[1], 1).view(o.shape[0], o.shape[1], -1)
        pairs = torch.cat([repeated, o], -1)
        return _softmax(linear(state, "fc2", linear(state, "fc1", pairs).tanh()).squeeze(-1), mask)

    def plain(h: Tensor, o: Tensor, mask: Tensor) -> Tensor:
        return _scores(state, h, o).softmax(-1)

    empty = "a row without real tokens should be all 0"
    return {
        "the mask is ignored: padding gets weight": plain,
        "the mask has the wrong sign: True means a real token": lambda h, o, mask: _attend(state, h, o, ~mask),
        f"{empty}: after the softmax, fill the padding with 0": filled(-1e30),
        "masked scores are set to 0 before the softmax, and exp(0) is 1, not 0": filled(0.0),
        "the mask is applied after the softmax, so that the rows no longer sum to 1": lambda h, o, mask: (
            plain(h, o, mask) * mask
        ),
        "the mask of the first sentence is used for all": lambda h, o, mask: _attend(
            state, h, o, mask[:1].expand_as(mask)
        ),
        "the tanh is missing: without it two linear layers are only one": changed(bend=lambda x: x),
        "a ReLU stands where the tanh should": changed(bend=torch.relu),
        "a sigmoid stands where the tanh should": changed(bend=torch.sigmoid),
        "the tanh comes after `fc2`, it belongs between the layers": changed(torch.tanh, bend=lambda x: x),
        "there is a second tanh, after `fc2`": changed(torch.tanh),
        "the output comes first: `fc1` takes [hidden; output], in this order": changed(swap=True),
        "these are the scores: the softmax is missing": lambda h, o, mask: _scores(state, h, o),
        "these are masked scores: the softmax is missing": lambda h, o, mask: _scores(state, h, o) * mask,
        "the softmax runs over the batch: it belongs over the source tokens, the last dimension": lambda h, o, mask: (
            _softmax(_scores(state, h, o), mask, dim=0)
        ),
        "the scores are divided by their sum, without the exponential": lambda h, o, mask: (
            (_scores(state, h, o) * mask) / (_scores(state, h, o) * mask).sum(-1, keepdim=True)
        ),
        "log-weights are returned: `softmax`, not `log_softmax`": lambda h, o, mask: (
            _scores(state, h, o).masked_fill(~mask, torch.finfo(o.dtype).min).log_softmax(-1).masked_fill(~mask, 0.0)
        ),
        "each score has a weight of its own, a sigmoid: the weights of a sentence compete in a softmax": (
            lambda h, o, mask: _scores(state, h, o).sigmoid() * mask
        ),
        "the scores are divided by a root: additive attention needs no scale": changed(
            lambda s: s / state["fc2.weight"].shape[1] ** 0.5
        ),
        "the decoder's states of different sentences are mixed: repeat along a new dimension, "
        "`hidden.unsqueeze(1).expand(-1, m, -1)`": mixed,
        "the decoder's state of the first sentence is used for all": lambda h, o, mask: _attend(
            state, h[:1].expand_as(h), o, mask
        ),
        "the weights of the first sentence are used for all": lambda h, o, mask: _attend(state, h, o, mask)[
            :1
        ].expand_as(mask),
        "the decoder's state is not used, so that the weights are the same at every step": lambda h, o, mask: _attend(
            state, h * 0, o, mask
        ),
        "every source token gets the same weight": lambda h, o, mask: _softmax(o[..., 0] * 0, mask),
        "there is one dimension too many, (B, m, 1): `squeeze(-1)` the scores": lambda h, o, mask: _attend(
            state, h, o, mask
        ).unsqueeze(-1),
        "there is one dimension too many, (B, 1, m): the weights are (B, m)": lambda h, o, mask: _attend(
            state, h, o, mask
        ).unsqueeze(1),
        "the softmax runs over the last dimension of (B, m, 1), where there is one number only: every weight is 1": (
            lambda h, o, mask: mask.to(o.dtype)
        ),
    }


def _attention_inputs(encoder: int, decoder: int, batch: int, m: int, empty: bool = False) -> dict[str, Tensor]:
    mask = rand_mask(batch, m, empty_row=empty) if m > 1 else torch.ones(batch, m, dtype=torch.bool)
    mask[0, :2] = True  # with a single token there would be one possible weight
    if m > 2:
        # The first sentence has padding, and another one has other padding: no two ways to get a mask wrong agree.
        mask[0, -1] = False
        mask[1:2, 0], mask[1:2, -1] = False, True
    # States and outputs of a GRU lie between -1 and 1; larger ones tell more mistakes apart.
    return {"hidden": randn(batch, decoder), "encoder_outputs": randn(batch, m, 2 * encoder), "mask": mask}


def check_additive_attention(cls: Callable) -> None:
    """Parameters, values with and without padding, empty rows, gradients, device."""
    for sizes, batch, m in _ATTENTIONS:
        for dtype in (torch.float64, torch.float32):
            module, state = build(lambda s=sizes: cls(*s), _attention_shapes(*sizes), _ATTENTION_HINTS, dtype)
            inputs = _attention_inputs(*sizes, batch, m)
            given = {n: v.to(dtype) if v.is_floating_point() else v for n, v in inputs.items()}
            with unchanged(**given):
                weights = call(module, *given.values())
            right = [v.double() if v.is_floating_point() else v for v in given.values()]
            wrong = {c: lambda f=f, r=right: f(*r) for c, f in _attention_mistakes(state).items()}
            expect_close(weights, _attend(state, *right), "the weight matrix", wrong, dtype)
            blocked = weights[~given["mask"]]
            assert not blocked.any(), "the weights of padding should be exactly 0, not only small"
    module, state = build(lambda: cls(2, 5), _attention_shapes(2, 5), _ATTENTION_HINTS)
    inputs = _attention_inputs(2, 5, 3, 4, empty=True)
    wrong = {c: lambda f=f: f(*inputs.values()) for c, f in _attention_mistakes(state).items()}
    weights = call(module, *inputs.values())
    expect_close(weights, _attend(state, *inputs.values()), "with a row without real tokens, the weight matrix", wrong)
    expect_gradients(module, lambda *i: _attend(state, *i), inputs)
    expect_parameter_gradients(module, _attend, state, list(inputs.values()))
    inputs = _attention_inputs(2, 5, 3, 6)
    expect_close(
        call(module.eval(), *inputs.values()),
        _attend(state, *inputs.values()),
        "the weight matrix after `.eval()`, where nothing should change,",
    )
    _expect_low_scores(cls)
    expect_device(module.to("meta"), inputs)


def _expect_low_scores(cls: Callable) -> None:
    """Scores far below 0: what fills the padding must be lower still."""
    module, state = build(lambda: cls(1, 3), _attention_shapes(1, 3), _ATTENTION_HINTS)
    state = {name: value.clone() for name, value in state.items()}
    state["fc1.bias"] += 10.0  # every tanh near 1
    state["fc2.weight"] = (1 + state["fc2.weight"].abs()) * -1e6
    set_weights(module, state)
    inputs = _attention_inputs(1, 3, 2, 4)
    name = "for very low scores, the weight matrix"
    mistakes = {
        "the padding is filled with a number that is not low enough: use the lowest one, `torch.finfo(...).min`": (
            lambda: _scores(state, *list(inputs.values())[:2]).masked_fill(~inputs["mask"], -1e4).softmax(-1)
        ),
        "padding is filled with a number that is not low enough: use the lowest one, `torch.finfo(...).min`": (
            lambda: inputs["mask"] * 0.0
        ),
    }
    expect_close(call(module, *inputs.values()), _attend(state, *inputs.values()), name, mistakes)


# ---- GRUDecoder

# vocab_size, embed_dim, encoder_hidden, decoder_hidden; B; m
_DECODERS = [
    ((8, 4, 2, 4), 4, 4),
    ((9, 3, 2, 5), 2, 4),
    ((5, 6, 3, 2), 3, 5),
    ((7, 1, 1, 3), 1, 3),
    ((6, 2, 4, 1), 4, 1),
]
_DECODER_HINTS = {
    "gru.": "`gru` is nn.GRUCell(embed_dim + 2 * encoder_hidden, decoder_hidden): token vector and context in",
    "embedding": "`embedding` is nn.Embedding(vocab_size, embed_dim)",
    "fc.": "`fc` is nn.Linear(decoder_hidden + 2 * encoder_hidden + embed_dim, vocab_size): it sees the new state, the "
    "context and the token vector",
}


def _decoder_shapes(vocab: int, embed: int, encoder: int, decoder: int) -> dict[str, tuple[int, ...]]:
    return {
        "embedding.weight": (vocab, embed),
        "gru.weight_ih": (3 * decoder, embed + 2 * encoder),
        "gru.weight_hh": (3 * decoder, decoder),
        "gru.bias_ih": (3 * decoder,),
        "gru.bias_hh": (3 * decoder,),
        "fc.weight": (vocab, decoder + 2 * encoder + embed),
        "fc.bias": (vocab,),
    }


def make_attention():
    """A simpler attention, without parameters."""

    class Attention(nn.Module):
        def forward(self, hidden, outputs, mask):
            scores = outputs.mean(-1) * hidden.sum(-1, keepdim=True)
            return scores.masked_fill(~mask, -1e30).softmax(-1)  # equal weights where nothing is real

    return Attention()


def _weigh(hidden: Tensor, outputs: Tensor, mask: Tensor) -> Tensor:
    """The weights of `make_attention`."""
    scores = outputs.mean(-1) * hidden.sum(-1, keepdim=True)
    return scores.masked_fill(~mask, -1e30).softmax(-1)


def _decoder(
    cls: Callable, sizes: tuple[int, ...], dropout: float = 0.0, dtype: torch.dtype = torch.float64
) -> tuple[nn.Module, dict[str, Tensor]]:
    """A student's decoder with an attention of the checks: a mistake in the student's own costs its points once."""

    def make() -> nn.Module:
        module = cls(*sizes, dropout)
        module.attention = place(make_attention, beside=cls)()
        return module

    return build(make, _decoder_shapes(*sizes), _DECODER_HINTS, dtype)


def _step(
    state: State,
    weights: Tensor,
    token: Tensor,
    hidden: Tensor,
    outputs: Tensor,
    *,
    blank: bool = False,
    mix: Callable[[Tensor, Tensor], Tensor] = lambda w, o: torch.einsum("bm,bmd->bd", w, o),
    start: Callable[[Tensor], Tensor] = lambda h: h,
    into_gru: str = "vc",
    into_fc: str = "ncv",
) -> tuple[Tensor, Tensor]:
    """One step of the decoder with given weights: `(logits, hidden)`.

    Args:
        blank: the token vectors are zero, as a dropout of 1 makes them.
        mix: makes the context.
        start: what the GRU starts from.
        into_gru: its input; v for the token vector, c for the context.
        into_fc: the input of `fc`; n for the new state, o for the old one.
    """
    vector = state["embedding.weight"][token] * (0 if blank else 1)
    parts = {"v": vector, "c": mix(weights, outputs), "o": hidden}
    parts["n"] = _gru_step(state, "gru", "", torch.cat([parts[p] for p in into_gru], -1), start(hidden))
    return linear(state, "fc", torch.cat([parts[p] for p in into_fc], -1)), parts["n"]


def _shared_mistakes() -> dict[str, dict[str, Any]]:
    """Mistakes that change both the state and the logits."""
    return {
        "the context comes before the token vector: the GRU takes [vector; context]": {"into_gru": "cv"},
        "the context is the plain mean of the encoder outputs: the weights are not used": {
            "mix": lambda w, o: o.mean(1)
        },
        "the context is the plain sum of the encoder outputs: the weights are not used": {"mix": lambda w, o: o.sum(1)},
        "the context is the encoder output with the largest weight, not the weighted average": {
            "mix": lambda w, o: o[torch.arange(len(o)), w.argmax(-1)]
        },
        "the context is the encoder's last output": {"mix": lambda w, o: o[:, -1]},
        "the weights of the first sentence are used for all": {
            "mix": lambda w, o: torch.einsum("bm,bmd->bd", w[:1].expand_as(w), o)
        },
        "the encoder outputs of the first sentence are used for all": {
            "mix": lambda w, o: torch.einsum("bm,bmd->bd", w, o[:1].expand_as(o))
        },
        "the weighted outputs are averaged: their sum is the average already, the weights sum to 1": {
            "mix": lambda w, o: (w.unsqueeze(-1) * o).mean(1)
        },
        "the weights pass through a second softmax": {"mix": lambda w, o: torch.einsum("bm,bmd->bd", w.softmax(-1), o)},
        "the GRU starts from zeros: give it `hidden`, or it forgets what was written": {"start": torch.zeros_like},
        "the GRU gets the state of the first sentence for all": {"start": lambda h: h[:1].expand_as(h)},
        "the context is multiplied away: zeros": {"mix": lambda w, o: o[:, 0] * 0},
    }


_FC_ORDERS = {
    "`fc` sees the old state: give it the one after the GRU": "ocv",
    "`fc` takes [new hidden; context; vector], in this order": "nvc",
    "`fc` takes [new hidden; context; vector], in this order.": "vcn",
    "`fc` takes [new hidden; context; vector], in this order:": "cnv",
    "`fc` takes [new hidden; context; vector], in this order;": "cvn",
    "`fc` takes [new hidden; context; vector], in this order!": "vnc",
}


def _decoder_inputs(sizes: tuple[int, ...], batch: int, m: int) -> dict[str, Tensor]:
    vocab, _, encoder, decoder = sizes
    return {"token": randint(0, vocab, (batch,)), **_attention_inputs(encoder, decoder, batch, m)}


def _decode_step(module: nn.Module, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    result = _expect_several(call(module, *inputs.values()), 3, "(logits, hidden, weights)")
    for value, name in zip(result, ("logits", "hidden", "weights"), strict=True):
        expect_tensor(value, name=f"`{name}`")
    return result


def check_decoder(cls: Callable) -> None:
    """Parameters, values at several sizes and dtypes, gradients, dropout."""
    for sizes, batch, m in _DECODERS:
        for dtype in (torch.float64, torch.float32):
            module, state = _decoder(cls, sizes, dtype=dtype)
            _expect_step(module, state, _decoder_inputs(sizes, batch, m), dtype)
    sizes = (9, 3, 2, 4)
    _expect_decoder_gradients(*_decoder(cls, sizes), _decoder_inputs(sizes, 3, 5))
    _expect_decoder_dropout(cls, sizes)


def _expect_step(module: nn.Module, state: State, inputs: dict[str, Tensor], dtype: torch.dtype) -> None:
    given = {n: v.to(dtype) if v.is_floating_point() else v for n, v in inputs.items()}
    with unchanged(**given):
        logits, hidden, weights = _decode_step(module, given)
    token, before, outputs, mask = (v.double() if v.is_floating_point() else v for v in given.values())
    own = _weigh(before, outputs, mask)
    right = _step(state, own, token, before, outputs)
    weight_mistakes = {
        "the weights come from the state after the GRU: attend first, with the state that came in": lambda: _weigh(
            right[1], outputs, mask
        ),
        "the mask does not reach the attention": lambda: _weigh(before, outputs, torch.ones_like(mask)),
        "the mask reaches the attention with the wrong sign": lambda: _weigh(before, outputs, ~mask),
        "there is one dimension too many: the weights are (B, m)": lambda: own.unsqueeze(1),
        "the results are in another order: return (logits, hidden, weights)": lambda: right[1],
        "the results are in another order: return (logits, hidden, weights).": lambda: right[0],
        "this is the context, not the weights": lambda: torch.einsum("bm,bmd->bd", own, outputs),
        "the weights of the first sentence are returned for all": lambda: own[:1].expand_as(own),
    }
    expect_close(weights, own, "`weights`", weight_mistakes, dtype)
    shared = {c: _lazy(state, own, token, before, outputs, switch) for c, switch in _shared_mistakes().items()}
    hidden_mistakes = {c: lambda f=f: f()[1] for c, f in shared.items()} | {
        "this is the state that came in: return the one after the GRU": lambda: before,
        "the results are in another order: return (logits, hidden, weights)": lambda: right[0],
        "there is one dimension too many: the state is (B, decoder_hidden)": lambda: right[1].unsqueeze(0),
        "there is one dimension too many: the state is (B, decoder_hidden).": lambda: right[1].unsqueeze(1),
    }
    expect_close(hidden, right[1], "`hidden`", hidden_mistakes, dtype)
    orders = {c: _lazy(state, own, token, before, outputs, {"into_fc": o}) for c, o in _FC_ORDERS.items()}
    logit_mistakes = {c: lambda f=f: f()[0] for c, f in (orders | shared).items()} | {
        "probabilities are returned: leave out the softmax": lambda: right[0].softmax(-1),
        "log-probabilities are returned: leave out the log-softmax, the loss does it": lambda: right[0].log_softmax(-1),
        "a tanh follows `fc`": lambda: right[0].tanh(),
        "a ReLU follows `fc`": lambda: right[0].relu(),
        "there is one dimension too many: the logits are (B, vocab_size)": lambda: right[0].unsqueeze(1),
        "there is one dimension too many: the logits are (B, vocab_size).": lambda: right[0].unsqueeze(0),
        "this is the best token, not the logits": lambda: right[0].argmax(-1),
    }
    expect_close(logits, right[0], "`logits`", logit_mistakes, dtype)


def _lazy(
    state: State, weights: Tensor, token: Tensor, hidden: Tensor, outputs: Tensor, switches: Mapping[str, Any]
) -> Callable[[], tuple[Tensor, Tensor]]:
    return lambda: _step(state, weights, token, hidden, outputs, **switches)


def _expect_decoder_gradients(module: nn.Module, state: State, inputs: dict[str, Tensor]) -> None:
    """Gradients reach the state, the encoder and every parameter, and are right."""
    token, mask = inputs["token"], inputs["mask"]

    def results(outputs: Tensor, hidden: Tensor) -> Tensor:
        return _join(module(token, hidden, outputs, mask)[:2])

    def right(outputs: Tensor, hidden: Tensor, state: State = state) -> Tensor:
        return _join(_step(state, _weigh(hidden, outputs, mask), token, hidden, outputs))

    def cut(outputs: Tensor, hidden: Tensor) -> Tensor:
        return _join(_step(state, _weigh(hidden, outputs, mask).detach(), token, hidden, outputs))

    mistakes = {"the weights are cut off from the graph, so that the attention never learns": cut}
    expect_gradients(results, right, {name: inputs[name] for name in ("encoder_outputs", "hidden")}, mistakes)
    expect_parameter_gradients(
        _Joined(module, 2), lambda s, _, hidden, outputs, __: right(outputs, hidden, s), state, list(inputs.values())
    )


def _expect_decoder_dropout(cls: Callable, sizes: tuple[int, ...]) -> None:
    """With a dropout of 1 the token vector is zero while training, and untouched in evaluation."""
    module, state = _decoder(cls, sizes, 1.0)
    inputs = _decoder_inputs(sizes, 3, 4)
    token, before, outputs, mask = inputs.values()
    weights = _weigh(before, outputs, mask)
    right = _step(state, weights, token, before, outputs)
    blank = _step(state, weights, token, before, outputs, blank=True)
    logits, hidden, _ = _decode_step(module, inputs)
    name = "with a dropout of 1, in training mode, `{}`"
    none = {"`dropout` has no effect: the token vector should pass through it": lambda: right[1]}
    expect_close(hidden, blank[1], name.format("hidden"), none)
    bias = state["fc.bias"].expand_as(right[0])
    mistakes = {
        "the dropout acts on the input of `fc`: it belongs on the token vector": lambda: bias,
        "the dropout acts on the logits: it belongs on the token vector": lambda: torch.zeros_like(right[0]),
        "`fc` sees the token vector before the dropout": lambda: linear(
            state,
            "fc",
            torch.cat(
                [blank[1], torch.einsum("bm,bmd->bd", weights, outputs), state["embedding.weight"][token]], dim=-1
            ),
        ),
    }
    expect_close(logits, blank[0], name.format("logits"), mistakes)
    module, state = _decoder(cls, sizes, 0.5)
    right = _step(state, weights, token, before, outputs)
    expect_same_in_eval(module, list(inputs.values()), "GRUDecoder", right[0])


# ---- Seq2Seq and fix_teacher_forcing


def make_encoder(table):
    """An encoder of one table: the vectors of the tokens, and their mean over the real ones."""

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(table.clone())

        def forward(self, tokens, lengths):
            vectors = self.table[tokens]
            real = (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None])[..., None]
            return vectors, (vectors * real).sum(1) / lengths[:, None]

    return Encoder()


def make_decoder(attention, vocab, embed, source, hidden, dropout):
    """A decoder that notes the tokens that it is fed."""

    class Noting(nn.Embedding):
        def forward(self, tokens):
            if not tokens.is_meta:
                self.fed.append(tokens.tolist())
            return super().forward(tokens)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = Noting(vocab, embed)
            self.attention = attention
            self.gru = nn.GRUCell(embed + source, hidden)
            self.fc = nn.Linear(hidden + source + embed, vocab)
            self.dropout = nn.Dropout(dropout)
            self.forget()

        def forget(self):
            self.fed = self.embedding.fed = []

        def forward(self, token, hidden, outputs, mask):
            vector = self.dropout(self.embedding(token))
            weights = self.attention(hidden, outputs, mask)
            context = torch.einsum("bm,bmd->bd", weights, outputs)
            hidden = self.gru(torch.cat([vector, context], 1), hidden)
            return self.fc(torch.cat([hidden, context, vector], 1)), hidden, weights

    return Decoder().double()


def _toy_decoder(beside: Any, vocab: int, hidden: int, dropout: float = 0.0) -> nn.Module:
    attention = place(make_attention, beside=beside)()
    return place(make_decoder, beside=beside)(attention, vocab, 3, 4, hidden, dropout)


def _write(
    state: State,
    hidden: Tensor,
    outputs: Tensor,
    mask: Tensor,
    target: Tensor,
    truth: bool,
    *,
    start: int = 1,
    carry: bool = True,
    blank: bool = False,
    ahead: int = 0,
    guess: Callable[[Tensor], Tensor] = lambda logits: logits.argmax(-1),
) -> Tensor:
    """The logits when the true token, or the decoder's own, is fed at each step.

    Args:
        start: the first position that is scored.
        carry: whether the state is handed from step to step.
        blank: whether the token vectors are zero.
        ahead: how many positions later the true tokens are taken from.
        guess: how the decoder's own token is taken from the logits.
    """
    last = target.shape[1] - 1
    token, first, steps = target[:, max(ahead, 0)], hidden, []
    for t in range(start, target.shape[1]):
        before = hidden if carry else first
        logits, hidden = _step(state, _weigh(before, outputs, mask), token, before, outputs, blank=blank)
        steps.append(logits)
        token = target[:, min(max(t + ahead, 0), last)] if truth else guess(logits)
    return torch.stack(steps, dim=1)


def _writing_mistakes(write: Callable[..., Tensor], truth: bool, both: bool) -> dict[str, Callable[[], Tensor]]:
    """What wrong logits can come from.

    Args:
        write: `_write` with everything but the switches given.
        truth: whether the true token should have been fed.
        both: whether the logits are wrong for the other choice too.
    """
    scored = "position 0 is scored, so that `<sos>` is fed twice and the logits are off by one: the loop starts at 1"
    fed, other = ("the true token", "the decoder's own") if truth else ("the decoder's own", "the true token")
    mistakes = {
        f"the choice is reversed: teacher_forcing={float(truth)} always feeds {fed}"
        if both
        else f"`teacher_forcing` is not used: {other} is always fed": lambda: write(not truth),
        scored: lambda: write(truth, start=0),
        scored + ".": lambda: write(truth, start=0)[:, 1:],
        scored + ":": lambda: write(truth, start=0)[:, :-1],
        "there is a step too many in front, with logits of zeros: return positions 1 to n - 1": lambda: (
            torch.nn.functional.pad(write(truth), (0, 0, 1, 0))
        ),
        "the state is not handed from step to step: the decoder starts anew with each token": lambda: write(
            truth, carry=False
        ),
        "the logits come as (n - 1, B, vocab_size): stack them along dimension 1": lambda: write(truth).transpose(0, 1),
        "the logits come as (B, vocab_size, n - 1): stack them along dimension 1": lambda: write(truth).mT,
        "the steps are put end to end: `stack` them along a new dimension, `cat` makes none": lambda: torch.cat(
            list(write(truth).unbind(1))
        ),
        "the steps are put side by side: `stack` them along a new dimension, `cat` makes none": lambda: torch.cat(
            list(write(truth).unbind(1)), -1
        ),
        "only the last step is returned": lambda: write(truth)[:, -1],
        "tokens are returned, not their logits": lambda: write(truth).argmax(-1),
        "probabilities are returned, not logits": lambda: write(truth).softmax(-1),
        "log-probabilities are returned, not logits": lambda: write(truth).log_softmax(-1),
    }
    if truth:
        mistakes |= {
            "the token that the step is asked for is fed to it, so that it has only to copy: the choice comes after "
            "the step": lambda: write(truth, ahead=1),
            "`<sos>` is fed at every step": lambda: write(truth, ahead=-100),
        }
    else:
        mistakes |= {
            "the decoder's own token is the least likely one: `argmax`, not `argmin`": lambda: write(
                truth, guess=lambda logits: logits.argmin(-1)
            ),
            "the largest logit is looked for over the batch: it belongs over the vocabulary, `argmax(dim=-1)`": (
                lambda: write(truth, guess=lambda logits: logits.argmax(0))
            ),
        }
    return mistakes


def _problem(batch: int, n: int, m: int, vocab: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    source, lengths = _sentences(9, batch, m)
    target = randint(0, vocab - 2, (batch, n))
    target[:, 0] = vocab - 3
    return source, lengths, target


def _toy_shapes(hidden: int, prefix: str = "", vocab: int = 7, embed: int = 3, source: int = 4) -> dict[str, tuple]:
    """The shapes of the weights of `_toy_decoder`."""
    shapes = {
        "embedding.weight": (vocab, embed),
        "gru.weight_ih": (3 * hidden, embed + source),
        "gru.weight_hh": (3 * hidden, hidden),
        "gru.bias_ih": (3 * hidden,),
        "gru.bias_hh": (3 * hidden,),
        "fc.weight": (vocab, hidden + source + embed),
        "fc.bias": (vocab,),
    }
    return {prefix + name: shape for name, shape in shapes.items()}


_MODEL_SHAPES = {"encoder.table": (9, 4), **_toy_shapes(4, "decoder.")}  # of what `_model` makes


def _weights_for(module: nn.Module, shapes: Mapping[str, tuple], own: tuple[int, ...] = ()) -> dict[str, Tensor]:
    """Random weights; tokens in `own` are by far the likeliest, so that one sees whether they were fed."""
    state = {name: 0.8 * randn(*shape) for name, shape in shapes.items()}
    for name in state:
        if own and name.endswith("fc.bias"):
            state[name][list(own)] += 30.0
    set_weights(module, state)
    return state


# B, n, m; equal sizes first: B = n - 1 = vocab_size
_WRITINGS = [(7, 8, 7), (4, 5, 4), (2, 4, 5), (3, 6, 2), (1, 5, 3), (4, 2, 1), (5, 3, 6)]


def _part(state: State, prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def check_seq2seq(cls: Callable) -> None:
    """Always true tokens, always own ones, the mask, chance, gradients; with an encoder and a decoder of the checks."""
    for batch, n, m in _WRITINGS:
        model = _model(cls)
        state = _weights_for(model, _MODEL_SHAPES)
        source, lengths, target = _problem(batch, n, m)
        logits = {}
        for truth in (True, False):
            with unchanged(source=source, lengths=lengths, target=target):
                logits[truth] = call(model, source, lengths, target, teacher_forcing=float(truth))
        _expect_logits(logits, partial(_translate, state, source, lengths, target), _mask_mistakes(source, lengths))
    _expect_chance(cls)
    model = _model(cls)
    state = _weights_for(model, _MODEL_SHAPES)
    problem = _problem(3, 5, 4)
    expect_parameter_gradients(
        _Forced(model), lambda s, *inputs: _translate(s, *inputs, truth=True), state, list(problem)
    )
    model.eval()
    expect_close(
        call(model, *problem, teacher_forcing=0.0),
        _translate(state, *problem, truth=False),
        "after `.eval()`, where nothing should change, the logits with teacher_forcing=0.0",
    )
    inputs = dict(zip(("source", "lengths", "target"), problem, strict=True)) | {"teacher_forcing": 1.0}
    expect_device(model.to("meta"), inputs, chance=True)


def _expect_logits(
    logits: Mapping[bool, Any], write: Callable[..., Tensor], more: Mapping[str, Mapping[str, Any]]
) -> None:
    """The logits with always the true token, and with always the decoder's own.

    Args:
        logits: what came, by whether the true token was to be fed.
        write: the right ones, called with the same and perhaps with switches.
        more: further mistakes, each with its switches.
    """
    for truth, value in logits.items():
        expect_tensor(value, name=f"with teacher_forcing={float(truth)} the result")
    both = all(value.shape != write(t).shape or not torch.allclose(value, write(t)) for t, value in logits.items())
    for truth, value in logits.items():
        mistakes = _writing_mistakes(write, truth, both)
        mistakes |= {cause: lambda t=truth, s=switches: write(t, **s) for cause, switches in more.items()}
        expect_close(value, write(truth), f"with teacher_forcing={float(truth)} the logits", mistakes)


class _Forced:
    """A model that is always fed the true token."""

    def __init__(self, model: nn.Module) -> None:
        self.zero_grad, self.named_parameters = model.zero_grad, model.named_parameters
        self._model = model

    def __call__(self, *inputs: Tensor) -> Tensor:
        return self._model(*inputs, teacher_forcing=1.0)


def _model(cls: Callable) -> nn.Module:
    encoder = place(make_encoder, beside=cls)(randn(9, 4))
    model = call(cls, encoder, _toy_decoder(cls, 7, 4))
    found = {name.partition(".")[0] for name, _ in model.named_parameters()}
    for name in ("encoder", "decoder"):
        assert name in found, f"the attribute `{name}` is missing, so that its parameters are not trained"
    return model


def _translate(
    state: State,
    source: Tensor,
    lengths: Tensor,
    target: Tensor,
    truth: bool,
    *,
    mask: Tensor | None = None,
    first: Callable[[Tensor], Tensor] = lambda hidden: hidden,
    **switches: Any,
) -> Tensor:
    real = torch.arange(source.shape[1]) < lengths[:, None]
    outputs = state["encoder.table"][source]
    hidden = (outputs * real[..., None]).sum(1) / lengths[:, None]
    mask = real if mask is None else mask
    return _write(_part(state, "decoder."), first(hidden), outputs, mask, target, truth, **switches)


def _mask_mistakes(source: Tensor, lengths: Tensor) -> dict[str, dict[str, Any]]:
    positions = torch.arange(source.shape[1])
    real = positions < lengths[:, None]
    return {
        "the mask is all True: the decoder attends to padding": {"mask": torch.ones_like(real)},
        "the mask has the wrong sign: True means a real token": {"mask": ~real},
        "the mask is made of `source != 1`, but padding is what lies behind `lengths`": {"mask": source != 1},
        "the mask is off by one: positions 0 to length - 1 are real": {"mask": positions <= lengths[:, None]},
        "the mask misses the last real token: positions 0 to length - 1 are real": {
            "mask": positions < lengths[:, None] - 1
        },
        "the mask of the first sentence is used for all": {"mask": real[:1].expand_as(real)},
        "the decoder starts from zeros: give it the encoder's hidden state": {"first": torch.zeros_like},
    }


_OWN = (5, 6)  # of a vocabulary of 7: the decoder always writes one of these, and they occur in no target


def _fed(decoder: Any, run: Callable[[], Any]) -> Tensor:
    """Which tokens the decoder was fed after the first, `(steps, B)`."""
    decoder.forget()
    run()
    return torch.tensor([list(row) for row in decoder.fed])[1:]


def _expect_chance(cls: Callable) -> None:
    """The choices follow the probability and the generator, and differ from step to step."""
    model = _model(cls)
    _weights_for(model, _MODEL_SHAPES, _OWN)
    source, lengths, target = _problem(3, 301, 4)
    generator = torch.Generator()

    def fed(target: Tensor, probability: float | None, number: int | None) -> Tensor:
        options = {} if probability is None else {"teacher_forcing": probability}
        if number is not None:
            options["generator"] = generator.manual_seed(number)
        return _fed(model.decoder, lambda: call(model, source, lengths, target, **options))

    _expect_choices(fed, target)


def _expect_choices(fed: Callable[[Tensor, float | None, int | None], Tensor], target: Tensor) -> None:
    """`fed(target, probability, seed)` runs the student's code: the tokens fed after the first, `(steps, B)`."""
    for probability in (0.25, None, 0.75):
        tokens = fed(target, probability, int(randint(0, 2**31, ())))
        own = tokens >= min(_OWN)
        truth = target.T[1:-1]
        assert tokens.shape == truth.shape, (
            f"for {target.shape[1]} target tokens the decoder should be fed {target.shape[1] - 1}, `<sos>` first, and "
            f"was fed {len(tokens) + 1}"
        )
        assert torch.equal(tokens[~own], truth[~own]), (
            "a token that is fed should be the true one of the step before or the decoder's own best guess; here it "
            "is neither. Is the guess drawn by chance, or the true token taken from another position?"
        )
        share = 1 - own.double().mean().item()
        wanted = 0.5 if probability is None else probability
        assert 0.0 < share < 1.0 or own.shape[0] < 2, (
            f"with teacher_forcing={wanted} the choice was the same at all {len(own)} steps: choose anew at each step"
        )
        # 300 choices: a right answer is off by more than 0.16 once in twenty million runs.
        assert not abs(1 - share - wanted) < 0.1 or wanted == 0.5, (
            f"with teacher_forcing={wanted} the true token was fed in {share:.0%} of the steps: the choice is reversed"
        )
        assert abs(share - wanted) < 0.16, (
            f"with teacher_forcing={wanted} the true token was fed in {share:.0%} of the steps"
        )
    # 40 choices: two runs that choose on their own agree once in a million million.
    fed = partial(fed, target[:, :42])
    first, again = fed(0.5, 7), fed(0.5, 7)
    assert torch.equal(first, again), (
        "two runs with generators of the same seed fed different tokens: pass `generator=generator` where you draw"
    )
    assert not torch.equal(first, fed(0.5, 8)), (
        "generators of different seeds led to the same choices: draw from `generator`, do not seed anew"
    )
    free = [fed(0.5, None) for _ in range(2)]
    assert not torch.equal(*free), "without a generator two runs made the same choices: is there a fixed seed inside?"


def check_fix_teacher_forcing(function: Callable) -> None:
    """Always true tokens, always own ones, chance, dropout, gradients; with a decoder of the checks."""
    for batch, n, m in _WRITINGS:
        decoder = _toy_decoder(function, 7, 5)
        state = _weights_for(decoder, _toy_shapes(5))
        inputs = _writing_inputs(batch, n, m)
        logits = {}
        for truth in (True, False):
            with unchanged(**inputs):
                logits[truth] = call(function, decoder, *inputs.values(), teacher_forcing=float(truth))
        _expect_logits(logits, partial(_write, state, *inputs.values()), {})
    _expect_fixed_chance(function)
    _expect_fixed_dropout(function)
    decoder = _toy_decoder(function, 7, 5)
    state = _weights_for(decoder, _toy_shapes(5))
    inputs = _writing_inputs(3, 5, 4)
    mask, target = inputs["mask"], inputs["target"]
    expect_gradients(
        lambda hidden, outputs: function(decoder, hidden, outputs, mask, target, teacher_forcing=1.0),
        lambda hidden, outputs: _write(state, hidden, outputs, mask, target, True),
        {name: inputs[name] for name in ("hidden", "encoder_outputs")},
    )


def _writing_inputs(batch: int, n: int, m: int) -> dict[str, Tensor]:
    _, _, target = _problem(batch, n, m)
    return {**_attention_inputs(2, 5, batch, m), "target": target}


def _expect_fixed_chance(function: Callable) -> None:
    decoder = _toy_decoder(function, 7, 5)
    _weights_for(decoder, _toy_shapes(5), _OWN)
    inputs = _writing_inputs(3, 301, 4)

    def fed(target: Tensor, probability: float | None, number: int | None) -> Tensor:
        options = {} if probability is None else {"teacher_forcing": probability}
        if number is not None:
            options["generator"] = torch.Generator().manual_seed(number)
        return _fed(decoder, lambda: call(function, decoder, *(inputs | {"target": target}).values(), **options))

    _expect_choices(fed, inputs["target"])


def _expect_fixed_dropout(function: Callable) -> None:
    decoder = _toy_decoder(function, 7, 5, 1.0)
    state = _weights_for(decoder, _toy_shapes(5))
    inputs = _writing_inputs(3, 5, 4)
    logits = call(function, decoder, *inputs.values(), teacher_forcing=1.0)
    mistakes = {"the decoder's dropout is left out": lambda: _write(state, *inputs.values(), True)}
    right = _write(state, *inputs.values(), True, blank=True)
    expect_close(logits, right, "with a dropout of 1, in training mode, the logits", mistakes)
