"""The hidden tests of chapter 08."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Credit,
    Unexplained,
    alike,
    build,
    call,
    describe_call,
    expect,
    expect_accepted,
    expect_close,
    expect_device,
    expect_drawn_from_generator,
    expect_dropout_anew,
    expect_gradients,
    expect_parameter_gradients,
    expect_same_in_eval,
    expect_tensor,
    found,
    named_parameters,
    outcome_of,
    place,
    rand_mask,
    randint,
    randn,
    seed,
    set_weights,
    unchanged,
)
from autograder.checks import draw_size as drawn
from autograder.mistakes import Mistake
from checks.chance import drawn_between, drawn_medium, likely_counts
from checks.formulas import linear
from checks.seq2seq_attention import mistakes as m
from checks.seq2seq_attention.visible import (
    attention_shapes,
    decoder_shapes,
    encoder_shapes,
    replace_attention,
    several,
)

State = Mapping[str, Tensor]


def _gru_step(state: State, gru: str, ends: str, x: Tensor, h: Tensor) -> Tensor:
    """One step of a GRU, from the formula; `ends` is what torch appends to the names of its parameters."""
    weights = [f"{gru}.{part}{ends}" for part in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]
    w_x, b_x, w_h, b_h = (state[name] for name in weights)
    r_x, z_x, n_x = (x @ w_x.mT + b_x).chunk(3, dim=-1)
    r_h, z_h, n_h = (h @ w_h.mT + b_h).chunk(3, dim=-1)
    z = (z_x + z_h).sigmoid()
    return (1 - z) * (n_x + (r_x + r_h).sigmoid() * n_h).tanh() + z * h


class _Joined:
    """A module whose results count as one tensor, so that gradients of all of them are compared."""

    def __init__(self, module: nn.Module, count: int) -> None:
        self.zero_grad, self.named_parameters = module.zero_grad, module.named_parameters
        self.train, self.training = module.train, module.training
        self.to, self.load_state_dict = module.to, module.load_state_dict
        self._module, self._count = module, count

    def __call__(self, *inputs: Any) -> Tensor:
        return _join(self._module(*inputs)[: self._count])


def _join(results: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([result.flatten() for result in results])


def _expect_rows_learned(module: nn.Module, inputs: Sequence[Any], results: int, mistake: Mistake) -> None:
    """The vector of each token gets a gradient, where every token of the vocabulary is read."""
    module.zero_grad()
    with torch.enable_grad():
        _join(several(call(module, *inputs), results)[:2]).square().sum().backward()
    gradient = named_parameters(module)["embedding.weight"].grad
    still = [] if gradient is None else [row for row, of_row in enumerate(gradient) if not of_row.any()]
    expect(len(still) != 1, mistake, "the gradient of the token's vector", asked=f"token {still[:1]}", got="0")


def _as(dtype: torch.dtype, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}


# ---- GRUEncoder

# vocab_size, embed_dim, encoder_hidden, decoder_hidden; B; m. Equal sizes first, where mix-ups give wrong values.
_ENCODERS = [
    ((9, 4, 4, 8), 4, 4),
    ((11, 3, 4, 5), 3, 6),
    ((7, 5, 2, 3), 4, 5),
    ((8, 2, 3, 1), 1, 4),
    ((6, 1, 1, 2), 2, 1),
]


def _read(state: State, vectors: Tensor, ends: str) -> Tensor:
    """The states after each vector of one sentence, `(m, encoder_hidden)`."""
    h, states = vectors.new_zeros(state["gru.weight_hh_l0"].shape[1]), []
    for vector in vectors:
        h = _gru_step(state, "gru", ends, vector, h)
        states.append(h)
    return torch.stack(states)


def _encode(state: State, tokens: Tensor, lengths: Tensor, blank: bool = False) -> tuple[Tensor, Tensor]:
    """The outputs and the decoder's first state; `blank` is what a dropout of 1 makes of the vectors."""
    outputs, last = [], []
    for row, length in zip(tokens, lengths.tolist(), strict=True):
        vectors = state["embedding.weight"][row[:length]]
        vectors = vectors * 0 if blank else vectors
        forward, backward = _read(state, vectors, "_l0"), _read(state, vectors.flip(0), "_l0_reverse").flip(0)
        both = torch.cat([forward, backward], dim=-1)
        outputs.append(torch.cat([both, both.new_zeros(tokens.shape[1] - length, both.shape[1])]))
        last.append(torch.cat([forward[-1], backward[0]]))
    return torch.stack(outputs), linear(state, "fc", torch.stack(last)).tanh()


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
    long = [((drawn(50, 900), 3, 2, 3), 2, drawn(300, 600)), ((9, 2, 3, 2), 1, drawn(61, 299))]
    for sizes, batch, length in (*_ENCODERS, *long):
        for dtype in (torch.float64, torch.float32)[: 2 if length < 60 else 1]:
            module, state = build(lambda s=sizes: cls(*s, 0.0), encoder_shapes(*sizes), dtype=dtype)
            tokens, lengths = _sentences(sizes[0], batch, length, slack=int(length > 4))
            with unchanged(tokens=tokens, lengths=lengths):
                outputs, hidden = several(call(module, tokens, lengths), 2)
            right = _encode(state, tokens, lengths)
            asked = f"tokens {(batch, length)} and lengths {lengths.tolist()}"
            expect_close(outputs, right[0], "the outputs", None, dtype, asked=asked)
            expect_close(hidden, right[1], "the first state", None, dtype, asked=asked)
    sizes = (9, 4, 3, 5)
    module, state = build(lambda: cls(*sizes, 0.0), encoder_shapes(*sizes))
    every = torch.randperm(9)[None]
    _expect_rows_learned(module, [every, torch.tensor([9])], 2, m.GRUEncoder.PADDING_ROW)
    tokens, lengths = _sentences(9, 3, 5)
    expect_parameter_gradients(_Joined(module, 2), lambda s, *i: _join(_encode(s, *i)), state, [tokens, lengths])
    _expect_encoder_dropout(cls, sizes)


def _expect_encoder_dropout(cls: Callable, sizes: tuple[int, ...]) -> None:
    """With a dropout of 1 every token vector is zero while training, and untouched in evaluation."""
    module, state = build(lambda: cls(*sizes, 1.0), encoder_shapes(*sizes))
    tokens, lengths = _sentences(sizes[0], 3, 5)
    right = _encode(state, tokens, lengths)
    outputs, hidden = several(call(module, tokens, lengths), 2)
    blank = _encode(state, tokens, lengths, blank=True)
    mistakes = {
        m.GRUEncoder.NO_DROPOUT: lambda: right[0],
        m.GRUEncoder.DROPOUT_ON_OUTPUTS: lambda: torch.zeros_like(right[0]),
    }
    asked = "dropout 1.0, while training"
    expect_close(outputs, blank[0], "the outputs", mistakes, asked=asked)
    expect_close(hidden, blank[1], "the first state", asked=asked)
    module, state = build(lambda: cls(*sizes, 0.5), encoder_shapes(*sizes))
    right = _encode(state, tokens, lengths)
    expect_same_in_eval(module, [tokens, lengths], "GRUEncoder", right[0])
    _, hidden = several(call(module, tokens, lengths), 2)
    expect_close(hidden, right[1], "the first state", asked="dropout 0.5, in evaluation")

    module, state = build(lambda: cls(9, 2, 3, 5, 0.5), encoder_shapes(9, 2, 3, 5))
    tokens, lengths = randint(0, 9, (60, 1)), torch.ones(60, dtype=torch.long)
    outputs, _ = several(call(module, tokens, lengths), 2)
    _expect_dropped_once(
        outputs[:, 0],
        lambda scale: _encode(_scaled(state, scale), tokens, lengths)[0][:, 0],
        m.GRUEncoder.DROPOUT_TWICE,
    )
    tokens, lengths = _sentences(sizes[0], 3, 5)

    def make(rate: float) -> nn.Module:
        return build(lambda: cls(*sizes, rate), encoder_shapes(*sizes))[0]

    many = _sentences(sizes[0], 2, drawn_medium())
    expect_dropout_anew(make, [tokens[1:2].repeat(8, 1), torch.full((8,), tokens.shape[1])], many)


def _scaled(state: State, scale: Tensor) -> State:
    """Weights whose token vectors are so many times as large, in each of their numbers."""
    return {**state, "embedding.weight": state["embedding.weight"] * scale}


def _expect_dropped_once(results: Tensor, right: Callable[[Tensor], Tensor], mistake: Mistake) -> None:
    """With a dropout of 1/2 each of a token vector's two numbers is zero, or twice as large, wherever it is used."""
    asked = "dropout 0.5, while training, token vectors of two numbers"
    scales = torch.tensor([[0, 0], [2, 2], [0, 2], [2, 0]], dtype=torch.float64)
    each = torch.stack([right(scale) for scale in scales])
    expect_tensor(results, each[0].shape, name="the result", asked=asked)
    gap, nearest_one = (results - each).abs().amax(-1).min(0)
    told = {"expected": "each number 0 or twice as large", "got": "others"}
    for limit, why in ((1e-5, mistake), (1e-8, Common.WRONG_DTYPE)):  # a vector of float32 is off by a little
        expect(bool(gap.max() < limit), why, "the results", asked=asked, **told)
    together = {"expected": "one number dropped and the other kept, here or there", "got": "both or none"}
    expect(bool((nearest_one > 1).any()), Common.DROPOUT_TOGETHER, "the token vectors", asked=asked, **together)


# ---- AdditiveAttention

# encoder_hidden, decoder_hidden; B; m
_ATTENTIONS = [((2, 4), 4, 4), ((3, 5), 2, 4), ((2, 7), 5, 3), ((1, 1), 3, 6), ((4, 2), 1, 5), ((3, 4), 2, 1)]


def _softmax(scores: Tensor, mask: Tensor) -> Tensor:
    e = (scores.masked_fill(~mask, -torch.inf) - _highest(scores, mask)).exp()
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)


def _highest(scores: Tensor, mask: Tensor) -> Tensor:
    """The highest score of a real token, 0 where there is none."""
    highest = scores.detach().masked_fill(~mask, -torch.inf).amax(-1, keepdim=True)
    return torch.where(highest.isinf(), 0.0, highest)


def _scores(state: State, hidden: Tensor, outputs: Tensor) -> Tensor:
    pairs = torch.cat([hidden.unsqueeze(1).expand(-1, outputs.shape[1], -1), outputs], dim=-1)
    return linear(state, "fc2", linear(state, "fc1", pairs).tanh()).squeeze(-1)


def _attend(state: State, hidden: Tensor, outputs: Tensor, mask: Tensor) -> Tensor:
    return _softmax(_scores(state, hidden, outputs), mask)


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
    more = [((drawn(2, 4), drawn(5, 20)), drawn(9, 20), drawn(601, 3000))]
    more += [((2, 3), drawn(201, 600), drawn(61, 200)), ((3, 2), drawn(61, 200), drawn(201, 600))]
    for sizes, batch, length in (*_ATTENTIONS, *more):
        for dtype in (torch.float64, torch.float32):
            module, state = build(lambda s=sizes: cls(*s), attention_shapes(*sizes), dtype=dtype)
            given = _as(dtype, _attention_inputs(*sizes, batch, length))
            with unchanged(**given):
                weights = call(module, *given.values())
            right = _as(torch.float64, given).values()
            scaled = {
                m.AdditiveAttention.SCALED: lambda state=state, right=right: _softmax(
                    _scores(state, *[*right][:2]) / state["fc2.weight"].shape[1] ** 0.5, [*right][2]
                )
            }
            asked = describe_call(lambda: None, [], given)
            expect_close(weights, _attend(state, *right), "the weights", scaled, dtype, asked=asked)
    module, state = build(lambda: cls(2, 5), attention_shapes(2, 5))
    inputs = _attention_inputs(2, 5, 3, 4, empty=True)
    scores, mask = _scores(state, inputs["hidden"], inputs["encoder_outputs"]), inputs["mask"]
    weights, right = call(module, *inputs.values()), _softmax(scores, mask)
    # Whatever weights they are, if all other rows are right.
    wrong = {
        m.AdditiveAttention.EMPTY_ROW: lambda: torch.where(mask.any(-1, keepdim=True), right, weights.nan_to_num())
    }
    expect_close(weights, right, "the weights", wrong, asked="a row without real tokens")
    expect_gradients(module, lambda *i: _attend(state, *i), inputs)
    expect_parameter_gradients(module, _attend, state, list(inputs.values()))
    inputs = _attention_inputs(2, 5, 3, 6)
    right = _attend(state, *inputs.values())
    expect_close(call(module.eval(), *inputs.values()), right, "after `.eval()`, where nothing changes, the weights")
    _expect_far_scores(cls)
    expect_device(module.to("meta"), inputs)


def _expect_far_scores(cls: Callable) -> None:
    """Scores far below 0, where what fills the padding must be lower still; then padding far above the words."""
    module, state = build(lambda: cls(1, 3), attention_shapes(1, 3))
    state = {name: value.clone() for name, value in state.items()}
    state["fc1.bias"] += 10.0  # every tanh near 1
    state["fc2.weight"] = (1 + state["fc2.weight"].abs()) * -1e6
    set_weights(module, state)
    inputs = _attention_inputs(1, 3, 2, 4)
    mask, outputs = inputs["mask"], inputs["encoder_outputs"]
    # Padding is as low as a word: who masks after the softmax is told below, where padding is high.
    word = outputs[torch.arange(2), mask.long().argmax(-1)].unsqueeze(1)
    inputs["encoder_outputs"] = torch.where(mask.unsqueeze(-1), outputs, word)
    low = {m.AdditiveAttention.NOT_LOW_ENOUGH: lambda: inputs["mask"] * 0.0}
    right = _attend(state, *inputs.values())
    expect_close(call(module, *inputs.values()), right, "for very low scores, the weights", low)
    state["fc1.bias"] *= 0.0
    state["fc1.weight"] = torch.eye(3, 5).double()  # the state alone, but for what padding is given below
    state["fc1.weight"][:, 3:] = 1.0
    state["fc2.weight"] = 1000 + state["fc2.weight"].abs()
    set_weights(module, state)
    inputs["encoder_outputs"] = 0.01 * inputs["encoder_outputs"] + 10.0 * ~inputs["mask"][..., None]
    high = {m.AdditiveAttention.RENORMALISED: lambda: inputs["mask"] * 0.0}
    right = _attend(state, *inputs.values())
    expect_close(call(module, *inputs.values()), right, "for padding with very high scores, the weights", high)


# ---- GRUDecoder

# vocab_size, embed_dim, encoder_hidden, decoder_hidden; B; m
_DECODERS = [
    ((8, 4, 2, 4), 4, 4),
    ((9, 3, 2, 5), 2, 4),
    ((5, 6, 3, 2), 3, 5),
    ((7, 1, 1, 3), 1, 3),
    ((6, 2, 4, 1), 4, 1),
]


def make_attention():
    """A simpler attention, without parameters."""

    class Attention(nn.Module):
        def forward(self, hidden, encoder_outputs, mask):
            scores = encoder_outputs.mean(-1) * hidden.sum(-1, keepdim=True)
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
        place(replace_attention, beside=cls)(module, place(make_attention, beside=cls)())
        return module

    return build(make, decoder_shapes(*sizes), dtype=dtype)


def _step(
    state: State, weights: Tensor, token: Tensor, hidden: Tensor, outputs: Tensor, blank: bool = False
) -> tuple[Tensor, Tensor]:
    """One step of the decoder with given weights: `(logits, hidden)`; `blank` as a dropout of 1 makes the vectors."""
    vector = state["embedding.weight"][token] * (0 if blank else 1)
    context = torch.einsum("bm,bmd->bd", weights, outputs)
    new = _gru_step(state, "gru", "", torch.cat([vector, context], -1), hidden)
    return linear(state, "fc", torch.cat([new, context, vector], -1)), new


def _decoder_inputs(sizes: tuple[int, ...], batch: int, m: int) -> dict[str, Tensor]:
    vocab, _, encoder, decoder = sizes
    return {"token": randint(0, vocab, (batch,)), **_attention_inputs(encoder, decoder, batch, m)}


def check_decoder(cls: Callable) -> None:
    """Parameters, values at several sizes and dtypes, gradients, dropout."""
    wide = (drawn(100, 2000), drawn(2, 9), drawn(2, 9), drawn(2, 9)), drawn(9, 20), drawn(100, 300)
    for sizes, batch, length in (*_DECODERS, wide):
        for dtype in (torch.float64, torch.float32):
            module, state = _decoder(cls, sizes, dtype=dtype)
            _expect_step(module, state, _as(dtype, _decoder_inputs(sizes, batch, length)), dtype)
    sizes = (9, 3, 2, 4)
    every = _decoder_inputs(sizes, 9, 5) | {"token": torch.randperm(9)}
    _expect_rows_learned(_decoder(cls, sizes)[0], list(every.values()), 3, m.GRUDecoder.PADDING_ROW)
    _expect_decoder_gradients(*_decoder(cls, sizes), _decoder_inputs(sizes, 3, 5))
    _expect_decoder_dropout(cls, sizes)


def _expect_step(module: nn.Module, state: State, given: dict[str, Tensor], dtype: torch.dtype) -> None:
    with unchanged(**given):
        logits, hidden, weights = several(call(module, *given.values()), 3)
    token, before, outputs, mask = _as(torch.float64, given).values()
    own = _weigh(before, outputs, mask)
    right = _step(state, own, token, before, outputs)
    late = {m.GRUDecoder.LOOKS_TOO_LATE: lambda: _weigh(right[1], outputs, mask)}
    asked = describe_call(lambda: None, [], given)
    expect_close(weights, own, "the weights", late, dtype, asked=asked)
    expect_close(hidden, right[1], "the new state", None, dtype, asked=asked)
    expect_close(logits, right[0], "the logits", None, dtype, asked=asked)


def _expect_decoder_gradients(module: nn.Module, state: State, inputs: dict[str, Tensor]) -> None:
    """Gradients reach the state, the encoder and every parameter, and are right."""
    token, mask = inputs["token"], inputs["mask"]

    def results(outputs: Tensor, hidden: Tensor) -> Tensor:
        return _join(module(token, hidden, outputs, mask)[:2])

    def right(outputs: Tensor, hidden: Tensor, state: State = state) -> Tensor:
        return _join(_step(state, _weigh(hidden, outputs, mask), token, hidden, outputs))

    def cut(outputs: Tensor, hidden: Tensor) -> Tensor:
        return _join(_step(state, _weigh(hidden, outputs, mask).detach(), token, hidden, outputs))

    mistakes = {m.GRUDecoder.WEIGHTS_CUT_OFF: cut}
    given = {name: inputs[name] for name in ("encoder_outputs", "hidden")}
    expect_gradients(results, right, given, mistakes, module=module)
    expect_parameter_gradients(
        _Joined(module, 2), lambda s, _, hidden, outputs, __: right(outputs, hidden, s), state, list(inputs.values())
    )


def _expect_decoder_dropout(cls: Callable, sizes: tuple[int, ...]) -> None:
    """With a dropout of 1 the token vector is zero while training, and untouched in evaluation."""
    module, state = _decoder(cls, sizes, 1.0)
    inputs = _decoder_inputs(sizes, 30, 4)
    token, before, outputs, mask = inputs.values()
    weights = _weigh(before, outputs, mask)
    right = _step(state, weights, token, before, outputs)
    blank = _step(state, weights, token, before, outputs, blank=True)
    logits, hidden, _ = several(call(module, *inputs.values()), 3)
    asked = "dropout 1.0, while training"
    no_input = before.new_zeros(len(token), sizes[1] + outputs.shape[-1])
    wrong = {
        m.GRUDecoder.NO_DROPOUT: lambda: right[1],
        m.GRUDecoder.DROPOUT_ON_MORE: lambda: _gru_step(state, "gru", "", no_input, before),
    }
    expect_close(hidden, blank[1], "the new state", wrong, asked=asked)
    parts = [blank[1], torch.einsum("bm,bmd->bd", weights, outputs), state["embedding.weight"][token]]
    wrong = {
        m.GRUDecoder.VECTOR_BEFORE_DROPOUT: lambda: linear(state, "fc", torch.cat(parts, dim=-1)),
        m.GRUDecoder.DROPOUT_ON_MORE: lambda: state["fc.bias"].expand_as(blank[0]),
    }
    expect_close(logits, blank[0], "the logits", wrong, asked=asked)
    module, state = _decoder(cls, sizes, 0.5)
    right = _step(state, weights, token, before, outputs)
    expect_same_in_eval(module, list(inputs.values()), "GRUDecoder", right[0])
    double = (sizes[0], 2, *sizes[2:])
    module, state = _decoder(cls, double, 0.5)
    inputs = _decoder_inputs(double, 60, 4)
    token, before, outputs, mask = inputs.values()
    weights = _weigh(before, outputs, mask)
    _expect_dropped_once(
        torch.cat(several(call(module, *inputs.values()), 3)[:2], -1),
        lambda scale: torch.cat(_step(_scaled(state, scale), weights, token, before, outputs), -1),
        m.GRUDecoder.VECTOR_DRAWN_TWICE,
    )
    alike = [value[:1].repeat(40, *[1] * (value.dim() - 1)) for value in inputs.values()]
    many = [*_decoder_inputs(sizes, 40, drawn_medium()).values()]
    expect_dropout_anew(lambda rate: _decoder(cls, sizes, rate)[0], alike, many)


# ---- Seq2Seq


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


def make_decoder(attention, vocab, embed, source, hidden):
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
            self.forget()

        def forget(self):
            self.fed = self.embedding.fed = []

        def forward(self, token, hidden, encoder_outputs, mask):
            vector = self.embedding(token)
            weights = self.attention(hidden, encoder_outputs, mask)
            context = torch.einsum("bm,bmd->bd", weights, encoder_outputs)
            hidden = self.gru(torch.cat([vector, context], 1), hidden)
            return self.fc(torch.cat([hidden, context, vector], 1)), hidden, weights

    return Decoder().double()


def _toy_decoder(beside: Any, vocab: int, hidden: int) -> nn.Module:
    attention = place(make_attention, beside=beside)()
    return place(make_decoder, beside=beside)(attention, vocab, 3, 4, hidden)


def _write(state: State, hidden: Tensor, outputs: Tensor, mask: Tensor, target: Tensor, truth: bool) -> Tensor:
    """The logits when the true token, or the decoder's own, is fed at each step."""
    token, steps = target[:, 0], []
    for t in range(1, target.shape[1]):
        logits, hidden = _step(state, _weigh(hidden, outputs, mask), token, hidden, outputs)
        steps.append(logits)
        token = target[:, t] if truth else logits.argmax(-1)
    return torch.stack(steps, dim=1)


def _problem(batch: int, n: int, m: int, vocab: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    source, lengths = _sentences(9, batch, m)
    target = randint(0, vocab - 2, (batch, n))
    target[:, 0] = vocab - 3
    return source, lengths, target


def _toy_shapes(hidden: int, prefix: str = "") -> dict[str, tuple]:
    """The shapes of the weights of `_toy_decoder`."""
    return {prefix + name: shape for name, shape in decoder_shapes(7, 3, 2, hidden).items()}


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
    for sizes in (*_WRITINGS, (drawn(9, 20), drawn(3, 6), drawn(100, 300)), (2, drawn(90, 200), 4)):
        model = _model(cls)
        state = _weights_for(model, _MODEL_SHAPES)
        problem = dict(zip(("source", "lengths", "target"), _problem(*sizes), strict=True))
        _expect_written(partial(call, model), partial(_translate, state), problem)
    _expect_chance(cls)
    model = _model(cls)
    state = _weights_for(model, _MODEL_SHAPES)
    problem = dict(zip(("source", "lengths", "target"), _problem(3, 5, 4), strict=True))
    given = list(problem.values())
    expect_parameter_gradients(_Forced(model), partial(_translate, truth=True), state, given)
    # One token is by far the likeliest, so that no rounding makes another one its best guess.
    likely = _weights_for(model, _MODEL_SHAPES, _OWN[:1])
    expect_parameter_gradients(_Forced(model, truth=False), partial(_translate, truth=False), likely, given)
    set_weights(model, state)
    _expect_written(partial(call, model.eval()), partial(_translate, state), problem)
    expect_device(model.to("meta"), problem | {"teacher_forcing": 1.0})


def _expect_written(write: Callable, oracle: Callable[..., Tensor], inputs: Mapping[str, Tensor]) -> None:
    """The logits with always the true token, and with always the decoder's own, which is never drawn by chance."""
    asked = describe_call(lambda: None, [], inputs)
    for truth in (True, False):
        with unchanged(**inputs):
            logits = write(*inputs.values(), teacher_forcing=float(truth))
        told = f"{asked}; teacher_forcing {float(truth)}"
        expect_tensor(logits, name="the logits", asked=told)
        if not truth:
            again = write(*inputs.values(), teacher_forcing=0.0)
            expect_tensor(again, logits.shape, logits.dtype, "the logits", told)
            expect(torch.equal(again, logits), m.Seq2Seq.SAMPLED, "two runs", asked=told, got="different logits")
        expect_close(logits, oracle(*inputs.values(), truth=truth), "the logits", None, torch.float64, asked=told)


class _Forced:
    """A model that is always fed the true token, or always its own."""

    def __init__(self, model: nn.Module, truth: bool = True) -> None:
        self._share = float(truth)
        self.zero_grad, self.named_parameters = model.zero_grad, model.named_parameters
        self.train, self.training = model.train, model.training
        self.to, self.load_state_dict = model.to, model.load_state_dict
        self._model = model

    def __call__(self, *inputs: Tensor) -> Tensor:
        return self._model(*inputs, teacher_forcing=self._share)


def _model(cls: Callable) -> nn.Module:
    encoder = place(make_encoder, beside=cls)(randn(9, 4))
    model = call(cls, encoder, _toy_decoder(cls, 7, 4))
    parameters = named_parameters(model)
    there = {name.partition(".")[0] for name in parameters}
    mistake = m.Seq2Seq.PARTS_HIDDEN if len(parameters) < len(_MODEL_SHAPES) else m.Seq2Seq.PARTS_RENAMED
    for name in ("encoder", "decoder"):
        expect(name in there, mistake, f"the part `{name}`")
    return model


def _translate(state: State, source: Tensor, lengths: Tensor, target: Tensor, truth: bool) -> Tensor:
    real = torch.arange(source.shape[1]) < lengths[:, None]
    outputs = state["encoder.table"][source]
    hidden = (outputs * real[..., None]).sum(1) / lengths[:, None]
    return _write(_part(state, "decoder."), hidden, outputs, real, target, truth)


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
    source, lengths, target = _problem(3, _STEPS + 2, 4)
    generator = torch.Generator()

    def fed(target: Tensor, probability: float | None, number: int, handed: bool = True) -> Tensor:
        options = {} if probability is None else {"teacher_forcing": probability}
        if handed:
            options["generator"] = generator.manual_seed(number)
        else:
            seed(number, beside=cls)
        return _fed(model.decoder, lambda: call(model, source, lengths, target, **options))

    for training in (True, False):
        model.train(training)
        _expect_choices(fed, target, training)
    some = target[:, : drawn(40, 60)]

    def run(generator: torch.Generator | None) -> Tensor:
        options = {} if generator is None else {"generator": generator}
        return call(model, source, lengths, some, **options)

    for mode in (True, False):
        model.train(mode)
        expect_drawn_from_generator(run, model, f"target {tuple(some.shape)}, {'training' if mode else 'evaluation'}")
        _expect_half_by_default(fed, target if mode else target[:, : _STEPS // 2], mode)
    model.train()
    for handed in (True, False):
        _expect_choices_in_short_targets(fed, target, handed)
    for batch in (1, drawn(9, 60), drawn(61, 200)):
        source, lengths, target = _problem(batch, _STEPS // 4 + 2, 4)  # which `fed` reads
        own = _own_tokens(fed, target, 0.5, handed=batch % 2 == 0)
        truths, (low, high) = int((~own[:, 0]).sum()), likely_counts(len(own), 0.5)
        told = {"asked": _asked(target, 0.5, batch % 2 == 0), "expected": 0.5, "got": truths / len(own)}
        expect(low <= truths <= high, m.Seq2Seq.OTHER_SHARE, "the share of steps with the true token", **told)


_STEPS = 600  # choices in a long target
_SHORT_CALLS = 40  # with a short one, and as many without a generator
# Two stretches of choices that agree by chance are at least so long that it happens less often than this.
_AGREE = 1e-12


def stretch(probability: float) -> int:
    """How many steps two runs have to agree in, so that chance does it with a probability of `_AGREE` or less."""
    return math.ceil(math.log(_AGREE) / math.log(probability**2 + (1 - probability) ** 2))


def _expect_choices(fed: Callable[..., Tensor], target: Tensor, training: bool) -> None:
    """`fed(target, probability, seed, handed)` runs the student's code: the tokens fed after the first, `(steps, B)`.

    A right answer is turned down less than once in a million runs: of some twenty counts each is outside its bounds
    with a probability of 2 · FALSE, and of some three thousand stretches each agrees with another once in 10^12.
    """
    often = drawn_between(0.3, 0.7), drawn_between(0.04, 0.06), 1 - drawn_between(0.04, 0.06)
    for probability in often if training else often[:1]:
        asked = _asked(target, probability) + ", after `.eval()`" * (not training)
        _expect_chosen_by_chance(_own_tokens(fed, target, probability), probability, asked, training)


def _asked(target: Tensor, probability: float, handed: bool = True) -> str:
    return f"target {tuple(target.shape)} and teacher_forcing {probability}" + ", without a generator" * (not handed)


def _expect_half_by_default(fed: Callable[..., Tensor], target: Tensor, training: bool) -> None:
    """Where no generator is given, and no probability: by chance, and the very choices of a half, for equal seeds."""
    number = drawn(0, 2**31)
    asked = _asked(target, 0.5, False) + ", after `.eval()`" * (not training)
    own = _own_tokens(fed, target, None, number, handed=False)
    half = _own_tokens(fed, target, 0.5, number, handed=False)
    told = {"asked": asked, "expected": "those of a half", "got": f"{int((own != half)[:, 0].sum())} others"}
    expect(torch.equal(own, half), m.Seq2Seq.OTHER_DEFAULT, "the choices of a model that is told nothing", **told)
    _expect_chosen_by_chance(own, 0.5, asked, training)


def _expect_chosen_by_chance(own: Tensor, wanted: float, asked: str, training: bool) -> None:
    truths = int((~own[:, 0]).sum())  # one choice may serve all sentences
    told = {"asked": asked, "expected": wanted, "got": truths / len(own)}
    what = "the share of steps with the true token"
    same = m.Seq2Seq.CHOSEN_ONCE if training else m.Seq2Seq.MODE_DECIDES
    expect(0 < truths < len(own), same, what, **told)
    lags = range(1, len(own) - stretch(truths / len(own)))  # of the share that was chosen; what it is comes next
    lag = next((k for k in lags if torch.equal(own[k:], own[:-k])), 0)
    expect(lag == 0, m.Seq2Seq.REPEATS, "the choices", asked=asked, got=f"the same every {lag} steps")
    low, high = likely_counts(len(own), wanted)
    expect(low <= truths <= high, m.Seq2Seq.OTHER_SHARE, what, **told)
    _expect_unlike_the_one_before(own[:, 0], asked)


def _expect_unlike_the_one_before(own: Tensor, asked: str) -> None:
    """A choice is like the one before as often as chance makes it, in pairs of which no two share a choice."""
    share = own.double().mean().item()
    for first in (0, 1):
        one, other = own[first : first + (len(own) - first) // 2 * 2].view(-1, 2).unbind(1)
        alike, chance = int((one == other).sum()), share**2 + (1 - share) ** 2
        low, high = likely_counts(len(one), chance)
        told = {"asked": asked, "expected": f"about {chance:.2f}", "got": f"{alike / len(one):.2f}"}
        expect(low <= alike <= high, m.Seq2Seq.STICKS, "the share of choices that are like the one before", **told)


def _own_tokens(
    fed: Callable[..., Tensor],
    target: Tensor,
    probability: float | None,
    number: int | None = None,
    handed: bool = True,
) -> Tensor:
    """Where the decoder's own token was fed, `(steps, B)`, once all that was fed is either that or the true one."""
    number = drawn(0, 2**31) if number is None else number
    tokens, truth = fed(target, probability, number, handed), target.T[1:-1]
    own = tokens >= min(_OWN)
    asked = _asked(target, 0.5 if probability is None else probability, handed)
    told = {"asked": asked, "expected": len(truth), "got": len(tokens)}
    expect(tokens.shape == truth.shape, Unexplained.NUMBER, "the steps after the first", **told)
    neither = int((tokens[~own] != truth[~own]).sum())
    told = {"asked": asked, "expected": "the true ones or the decoder's own", "got": f"{neither} others"}
    expect(neither == 0, Unexplained.VALUES, "the tokens that are fed", **told)
    return own


def _expect_choices_in_short_targets(fed: Callable[..., Tensor], target: Tensor, handed: bool) -> None:
    """No two steps of a short target choose alike in every call."""
    short, probability = target[:, : drawn(6, 12)], drawn_between(0.4, 0.6)
    own = torch.stack([_own_tokens(fed, short, probability, handed=handed)[:, 0] for _ in range(_SHORT_CALLS)])
    asked = f"{_SHORT_CALLS} times {_asked(short, probability, handed)}"
    fixed = [step for step in range(own.shape[1]) if not 0 < int(own[:, step].sum()) < len(own)]
    what = f"step {fixed[0] + 1} of {own.shape[1]}" if fixed else ""
    expect(not fixed, m.Seq2Seq.NO_CHOICE, what, asked=asked, got="the same choice each time")
    alike = len(own.T.unique(dim=0)) < own.shape[1]
    expect(not alike, m.Seq2Seq.CHOSEN_ONCE, "two steps that choose alike each time", asked=asked)


# ---- the reader's own test


def make_models(picks, alike):
    """Classes that are made and called like Seq2Seq; each does each of its tasks in one way.

    They are sent to where student code runs: no name in them tells what is wrong with them, nor does anything that they
    hold.

    Args:
        picks: for each class a number for each task: how it does it. The ways that come first are right.
        alike: see `autograder.checks.alike`.
    """

    def filled(steps):
        result = steps[0].new_empty(len(steps[0]), len(steps), steps[0].shape[1])
        for t, step in enumerate(steps):
            result[:, t] = step
        return result

    def never_assigned(logits):
        return best  # noqa: F821

    ways = [
        # how it keeps its parts
        [
            lambda model, name, part: setattr(model, name, part),
            lambda model, name, part: model.add_module(name, part),
            lambda model, name, part: object.__setattr__(model, name, part),
        ],
        # what it makes of the encoder's results
        [
            lambda outputs, hidden: (outputs, hidden),
            lambda outputs, hidden: [outputs, hidden],
            lambda outputs, hidden: (outputs * 0, hidden),
            lambda outputs, hidden: (outputs, hidden * 0),
            lambda outputs, hidden: (outputs.detach(), hidden),
        ],
        # the mask
        [
            lambda source, lengths: torch.arange(source.shape[1]) < lengths[:, None],
            lambda source, lengths: torch.ones_like(source).cumsum(1) <= lengths[:, None],
            lambda source, lengths: torch.ones_like(source) == 1,
            lambda source, lengths: source != 1,
            lambda source, lengths: torch.arange(source.shape[1]) <= lengths[:, None],
            lambda source, lengths: (torch.arange(source.shape[1]) < lengths[:1, None]).expand(len(source), -1),
        ],
        # the positions that it scores
        [
            lambda n: range(1, n),
            lambda n: range(n)[1:],
            lambda n: range(n),
            lambda n: range(n - 1),
            lambda n: range(1, n - 1),
        ],
        # the choice
        [
            lambda share, generator, target: lambda t: torch.rand((), generator=generator) < share,
            lambda share, generator, target: (torch.rand(target.shape[1], generator=generator) < share).__getitem__,
            lambda share, generator, target: lambda t: torch.rand(len(target), generator=generator) < share,
            lambda share, generator, target: lambda t: torch.rand((), generator=generator) >= share,
            lambda share, generator, target: lambda t: torch.rand(()) < share,
            lambda share, generator, target: (torch.rand(1, generator=generator) < share).expand(9999).__getitem__,
            lambda share, generator, target: lambda t: torch.tensor(True),
            lambda share, generator, target: lambda t: torch.tensor(False),
            lambda share, generator, target: (
                lambda t: torch.rand((), generator=generator) < (share if share in (0, 1) else 0.5)
            ),
            lambda share, generator, target: (
                (torch.rand(target.shape[1], generator=torch.Generator().manual_seed(0)) < share).__getitem__
            ),
        ],
        # its own guess
        [
            lambda logits: logits.argmax(-1),
            lambda logits: logits.topk(1).indices[:, 0],
            lambda logits: logits.argmin(-1),
            lambda logits: logits.argmax(0),
            never_assigned,
            lambda logits: torch.multinomial(logits.softmax(-1), 1)[:, 0],
        ],
        # the token that is fed next
        [
            lambda target, t, use_truth, guess: torch.where(use_truth, target[:, t], guess),
            lambda target, t, use_truth, guess: guess.where(~use_truth, target[:, t]),
            lambda target, t, use_truth, guess: torch.where(use_truth, target[:, t + 1 : t + 2].sum(1), guess),
            lambda target, t, use_truth, guess: torch.where(use_truth, target[:, t - 1], guess),
            lambda target, t, use_truth, guess: target[:, t].copy_(torch.where(use_truth, target[:, t], guess)).clone(),
        ],
        # the state that is handed on
        [
            lambda new, first: new,
            lambda new, first: 1 * new,
            lambda new, first: first,
            lambda new, first: new.detach(),
        ],
        # what it makes of the steps
        [
            lambda steps: torch.stack(steps, 1),
            filled,
            lambda steps: torch.stack(steps),
            lambda steps: torch.stack(steps, 1).log_softmax(-1),
            lambda steps: torch.stack(steps, 1).softmax(-1),
        ],
    ]

    def make(pick):
        keep, take, mask_of, positions, toss, guess, feed, carry, finish = (
            way[i] for way, i in zip(ways, pick, strict=True)
        )

        class Seq2Seq(nn.Module):
            def __init__(self, encoder, decoder):
                super().__init__()
                keep(self, "encoder", encoder)
                keep(self, "decoder", decoder)

            def forward(self, source, lengths, target, teacher_forcing=0.5, generator=None):
                outputs, hidden = take(*self.encoder(source, lengths))
                mask, first, steps = mask_of(source, lengths), hidden, []
                use_truth = toss(teacher_forcing, generator, target)
                token = target[:, 0].clone()
                for t in positions(target.shape[1]):
                    logits, hidden, _ = self.decoder(token, hidden, outputs, mask)
                    hidden = carry(hidden, first)
                    steps.append(logits)
                    chosen = use_truth(t)
                    token = feed(target, t, chosen, target[:, t] if chosen.all() else guess(logits))
                return finish(steps)

        return Seq2Seq

    return [alike(make(pick)) for pick in picks]


_RIGHT_WAYS = (2, 2, 2, 2, 3, 2, 2, 2, 2)  # of each task in `make_models`, those that come first
# What is broken in the others, in their order: a test that lets it through, and the fault in words.
_FAULTS = [
    [(m.check_teacher_forcing.MISSES_EFFECTS, "its parts are in a plain list, so that they are not trained")],
    [
        (m.check_teacher_forcing.MISSES_STATE, "the encoder's outputs are thrown away"),
        (m.check_teacher_forcing.MISSES_STATE, "the decoder starts from zeros"),
        (m.check_teacher_forcing.MISSES_EFFECTS, "no gradient reaches the encoder's outputs"),
    ],
    [
        (m.check_teacher_forcing.MISSES_MASK, "the mask is all True"),
        (m.check_teacher_forcing.MISSES_MASK, "the mask is made of token numbers"),
        (m.check_teacher_forcing.MISSES_MASK, "the mask is one too long"),
        (m.check_teacher_forcing.MISSES_MASK, "the first sentence's mask serves for all"),
    ],
    [
        (m.check_teacher_forcing.MISSES_POSITIONS, "position 0 is scored, so that there is a step too many"),
        (m.check_teacher_forcing.MISSES_POSITIONS, "position 0 is scored, and the last one is not"),
        (m.check_teacher_forcing.MISSES_POSITIONS, "the last step is missing"),
    ],
    [
        (m.check_teacher_forcing.MISSES_CHOICE, "the choice is reversed"),
        (m.check_teacher_forcing.MISSES_GENERATOR, "the choices are not from the generator"),
        (m.check_teacher_forcing.MISSES_CHOICE, "one choice is made for all steps"),
        (m.check_teacher_forcing.MISSES_CHOICE, "the true token is always fed"),
        (m.check_teacher_forcing.MISSES_CHOICE, "its own token is always fed"),
        (m.check_teacher_forcing.MISSES_CHOICE, "every probability between 0 and 1 counts as a half"),
        (m.check_teacher_forcing.MISSES_GENERATOR, "a generator of its own is seeded at each call"),
    ],
    [
        (m.check_teacher_forcing.MISSES_GUESS, "its own token is the least likely one"),
        (m.check_teacher_forcing.MISSES_GUESS, "the largest logit is looked for over the batch"),
        (m.check_teacher_forcing.MISSES_GUESS, "its own token is taken from a name that was never assigned"),
        (m.check_teacher_forcing.MISSES_GUESS, "its own token is drawn by chance"),
    ],
    [
        (m.check_teacher_forcing.MISSES_POSITIONS, "the true token that is fed is the next one"),
        (m.check_teacher_forcing.MISSES_POSITIONS, "the true token that is fed is the one before"),
        (m.check_teacher_forcing.MISSES_EFFECTS, "its own tokens are written into the target"),
    ],
    [
        (m.check_teacher_forcing.MISSES_STATE, "the state is not handed on"),
        (m.check_teacher_forcing.MISSES_EFFECTS, "the state is handed on without its gradient"),
    ],
    [
        (m.check_teacher_forcing.MISSES_RESULT, "the logits come as (n - 1, B, vocab_size)"),
        (m.check_teacher_forcing.MISSES_RESULT, "log-probabilities are returned"),
        (m.check_teacher_forcing.MISSES_RESULT, "probabilities are returned"),
    ],
]


def _right_pick() -> list[int]:
    return [int(randint(0, count, ())) for count in _RIGHT_WAYS]


def check_reader_test(test: Callable, points: float = 2.0) -> Credit:
    """The reader's test accepts each right model; its points are the share of the broken ones that it rejects.

    Each broken one has one fault; all else is done in a right way, which is drawn anew, as are the order and how many
    right ones there are. All have one name and one source.

    Args:
        test: the reader's, called with a class; it rejects by an AssertionError.
        points: for a test that rejects all of them.

    Returns:
        The points, with what kind of broken model got through.
    """
    faults = [(task, way) for task, ways in enumerate(_FAULTS) for way in range(len(ways))]
    models: list[tuple[tuple[int, int] | None, list[int]]] = [(None, _right_pick()) for _ in range(randint(6, 12, ()))]
    for task, way in faults:
        pick = _right_pick()
        pick[task] = _RIGHT_WAYS[task] + way
        models.append(((task, way), pick))
    models = [models[i] for i in torch.argsort(randn(len(models))).tolist()]
    classes = place(make_models, beside=test)([pick for _, pick in models], place(alike, beside=test))
    verdicts = [(fault, outcome_of(test, classes[i])) for i, (fault, _) in enumerate(models)]
    for fault, (_, error) in verdicts:
        if fault is None:
            known = m.check_teacher_forcing
            expect_accepted(error, known.REJECTS_RIGHT, known.STOPS, "what it says")
    missed = {fault: error for fault, (_, error) in verdicts if fault and not isinstance(error, AssertionError)}
    told = {"expected": len(faults), "got": len(faults) - len(missed)}
    what = "the number of broken models that it notices"
    expect(told["got"], m.check_teacher_forcing.ACCEPTS_ALL, what, **told)
    if not missed:
        return Credit(points, found(Unexplained.NUMBER, what, **told))
    crashed = [fault for fault, error in missed.items() if error is not None]
    titles = [_FAULTS[task][way][1] for task, way in sorted(crashed or missed)]
    where = "; ".join(titles[:3]) + "; …" * (len(titles) > 3)
    mistake = m.check_teacher_forcing.CRASHES if crashed else _worst_blind_spot(missed)
    return Credit(round(points * told["got"] / len(faults), 2), found(mistake, what, **told, where=where))


def _worst_blind_spot(missed: Collection[tuple[int, int]]) -> m.check_teacher_forcing:
    """The kind of fault of which the largest share got through."""
    all_of = Counter(mistake for ways in _FAULTS for mistake, _ in ways)
    missed_of = Counter(_FAULTS[task][way][0] for task, way in missed)
    return max(m.check_teacher_forcing, key=lambda mistake: missed_of[mistake] / max(all_of[mistake], 1))


# ---- effect_of_erasing


def make_scorer(words, places, heard):
    """A model that is called like Seq2Seq: what it scores depends on the source, its places and the tokens before.

    Its dropout and any other teacher_forcing than 1.0 spoil what it returns.
    """

    class Scorer(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.heard = nn.Parameter(words.clone()), nn.Parameter(heard.clone())
            self.register_buffer("places", places.clone())
            self.dropout, self.idle = nn.Dropout(0.5), nn.Sequential(*[nn.Sequential(nn.Tanh()) for _ in range(5)])

        def forward(self, source, lengths, target, teacher_forcing=0.5, generator=None):
            real = torch.arange(source.shape[1]) < lengths[:, None]
            read = (self.words[source] * (self.places[: source.shape[1]] * real).unsqueeze(-1)).sum(1)
            before = self.heard[target[:, :-1]].cumsum(1)
            logits = (self.dropout(before) + read.unsqueeze(1)).tanh() * 3
            return logits + (1 - teacher_forcing) * torch.rand(logits.shape)

    return Scorer()


def set_modes(model, modes):
    """Put each part of a model into a mode of its own."""
    for part, mode in zip(model.modules(), modes, strict=True):
        part.training = mode


def modes_of(model):
    """The mode of each part of a model."""
    return [part.training for part in model.modules()]


def _score(words: Tensor, places: Tensor, heard: Tensor, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    """The log-probability of each true token after the first, `(B, n - 1)`."""
    rows = []
    for s, length, t in zip(source, lengths.tolist(), target, strict=True):
        read = sum(words[s[j]] * places[j] for j in range(length))
        steps = [(heard[t[: i + 1]].sum(0) + read).tanh() * 3 for i in range(len(t) - 1)]
        rows.append(torch.stack([step.log_softmax(-1)[t[i + 1]] for i, step in enumerate(steps)]))
    return torch.stack(rows)


def _erase(words: Tensor, places: Tensor, heard: Tensor, *problem: Tensor, unk_id: int) -> Tensor:
    source, lengths, target = problem
    whole, falls = _score(words, places, heard, *problem), []
    for j in range(source.shape[1]):
        without = source.clone()
        without[:, j] = unk_id
        falls.append(whole - _score(words, places, heard, without, lengths, target))
    return torch.stack(falls, -1)


# vocabularies of source and target; B, n, m; unk_id
_ERASURES = [((9, 7), (3, 5, 4), 0), ((8, 8), (4, 5, 4), 2), ((6, 5), (1, 3, 6), 5), ((5, 9), (2, 4, 1), 1)]


def check_effect_of_erasing(function: Callable) -> None:
    """Values at several sizes; modes and weights left as found; no graph kept."""
    long = (drawn(100, 900), drawn(5, 20)), (2, drawn(3, 5), drawn(66, 100)), drawn(64, 99)
    many = (drawn(10, 99), drawn(5, 20)), (drawn(33, 200), 3, 3), drawn(0, 9)
    for vocabularies, (batch, n, length), unk_id in (*_ERASURES, long, many):
        for dtype in (torch.float64, torch.float32)[: 2 if batch + length < 33 else 1]:
            words, heard = (0.5 * randn(size, vocabularies[1]) for size in vocabularies)
            given = [value.to(dtype) for value in (words, randn(length), heard)]
            model = place(make_scorer, beside=function)(*given)
            # Training as a whole, and the parts that do nothing as it comes.
            modes = [True, True, *(randint(0, 2, (11,)) > 0).tolist()]
            place(set_modes, beside=function)(model, modes)
            source, lengths = _sentences(vocabularies[0], batch, length, slack=int(length > 4))
            problem = {"source": source, "lengths": lengths, "target": randint(0, vocabularies[1], (batch, n))}
            before = {name: value.clone() for name, value in model.state_dict().items()}
            with unchanged(**problem):
                result = call(function, model, *problem.values(), unk_id)
            asked = describe_call(lambda: None, [], problem | {"unk_id": unk_id})
            right = _erase(*(value.double() for value in given), *problem.values(), unk_id=unk_id)
            expect_close(result, right, "the result", None, dtype, 1e-5 if dtype == torch.float32 else None, asked)
            after = [bool(mode) for mode in place(modes_of, beside=function)(model)]
            told = {"expected": modes, "got": after}
            expect(after == modes, m.effect_of_erasing.MODE, "the modes of model and parts", **told)
            same = all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
            expect(same, Unexplained.VALUES, "the weights afterwards")
            expect(not result.requires_grad, m.effect_of_erasing.GRAPH)
