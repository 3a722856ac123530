"""What chapter 08's check cells call: small networks by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import call, expect_close, expect_tensor, place, unchanged
from autograder.course.card import visible


def _expect_parameters(module: nn.Module, wanted: Mapping[str, tuple[tuple[int, ...], str]]) -> None:
    """Fail unless there is a parameter of each name and shape; `wanted` also has what to say where there is none."""
    shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
    for name, (shape, advice) in wanted.items():
        assert name in shapes, f"the parameter `{name}` is missing among {sorted(shapes)}: {advice}"
        assert shapes[name] == shape, f"`{name}` should have shape {shape}, it has {shapes[name]}: {advice}"


def _load(module: nn.Module, shapes: Mapping[str, tuple[int, ...]], weights: Mapping[str, list]) -> None:
    """Give a module these weights, and zeros where nothing is said."""
    state = {name: torch.zeros(shape) for name, shape in shapes.items()}
    module.load_state_dict(state | {name: torch.tensor(value) for name, value in weights.items()})


def _several(result: Any, count: int, names: str) -> tuple:
    assert result is not None, "nothing is returned: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == count, f"return {count} things: {names}"
    return tuple(result)


def _expect_shape(value: Any, shape: tuple[int, ...], what: str, causes: Mapping[tuple[int, ...], str]) -> None:
    expect_tensor(value, name=what)
    found = tuple(value.shape)
    assert found == shape, f"{what} should have shape {shape}, got {found}" + (
        f". Likely cause: {causes[found]}" if found in causes else ""
    )


def _lazy(wrong: Mapping[str, Any]) -> dict[str, Callable[[], Tensor]]:
    """What each mistake gives, as `expect_close` wants it."""
    return {cause: lambda value=value: torch.as_tensor(value) for cause, value in wrong.items()}


# Words 2 and 4 are worth 1, words 3 and 5 are worth -1, padding is worth 1. Each step of these GRUs goes half the way
# from the state to the word's worth, so that forward 2 4 3 gives 0.5, 0.75, -0.125.
_TOKENS = torch.tensor([[2, 4, 3, 1], [5, 2, 1, 1], [4, 3, 5, 1], [3, 1, 1, 1]])
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


@visible("the parts and their sizes, both directions by hand, no padding read, the decoder's first state")
def GRUEncoder(cls: Callable) -> None:
    """Four sentences of 3, 2, 3 and 1 tokens, read by GRUs that go half the way at each step."""
    one_layer = "`gru` is an nn.GRU(embed_dim, encoder_hidden) of one layer"
    wanted = {
        "embedding.weight": ((10, 4), "`embedding` is nn.Embedding(vocab_size, embed_dim)"),
        "gru.weight_ih_l0": ((9, 4), one_layer),
        "gru.weight_hh_l0": ((9, 3), one_layer),
        "gru.weight_hh_l0_reverse": ((9, 3), "the sentence is read in both directions, `bidirectional=True`"),
        "fc.weight": ((5, 6), "`fc` is nn.Linear(2 * encoder_hidden, decoder_hidden)"),
    }
    module = call(cls, 10, 4, 3, 5, 0.0)
    _expect_parameters(module, wanted)
    names = {name for name, _ in module.named_parameters()}
    assert "gru.weight_ih_l1" not in names, f"`gru` has two layers: {one_layer}"
    encoder = call(cls, 6, 1, 1, 1, 0.0)
    shapes = {"embedding.weight": (6, 1), "fc.weight": (1, 2), "fc.bias": (1,)}
    for end in ("_l0", "_l0_reverse"):
        shapes |= {f"gru.weight_ih{end}": (3, 1), f"gru.weight_hh{end}": (3, 1)}
        shapes |= {f"gru.bias_ih{end}": (3,), f"gru.bias_hh{end}": (3,)}
    to_the_worth = [[0.0], [0.0], [20.0]]
    weights = {
        "embedding.weight": [[1.0], [1.0], [1.0], [-1.0], [1.0], [-1.0]],
        "gru.weight_ih_l0": to_the_worth,
        "gru.weight_ih_l0_reverse": to_the_worth,
        "fc.weight": [[4.0, 2.0]],
    }
    _load(encoder, shapes, weights)
    tokens, lengths = _TOKENS.clone(), _LENGTHS.clone()
    with unchanged(tokens=tokens, lengths=lengths):
        result = call(encoder, tokens, lengths)
    outputs, hidden = _several(result, 2, "(outputs, hidden)")
    causes = {
        (4, 3, 2): "they are only as long as the longest sentence: give `pad_packed_sequence` a `total_length`",
        (4, 4, 1): "the two directions are added up, not put side by side",
        (4, 1): "hidden and outputs are exchanged: return (outputs, hidden)",
    }
    _expect_shape(outputs, (4, 4, 2), "the outputs", causes)
    read = [[0.5, 0.6875], [0.75, 0.375], [-0.125, -0.25]]  # the backward state starts in the padding
    wrong = {
        "the GRU reads the padding too: pack the sequence with `pack_padded_sequence`": [*read, [0.4375, 0.5]],
        "the GRU reads the padding too (zeroing the outputs afterwards is too late, the backward direction starts in "
        "the padding)": [*read, [0.0, 0]],
        "the lengths are off by one: each sentence loses its last token": [[0.5, 0.75], [0.75, 0.5], [0, 0], [0, 0]],
        "batch and positions are exchanged: `pack_padded_sequence` needs `batch_first=True`": [
            [0.5, 0.375],
            [-0.25, -0.25],
            [0.375, 0.5],
            [0, 0],
        ],
        "batch and positions are exchanged: `pad_packed_sequence` needs `batch_first=True` too": [
            [0.5, 0.625],
            [-0.5, -0.25],
            [0.5, 0.125],
            [-0.5, -0.5],
        ],
        "the backward direction comes first: the forward states go first": _READ[0].flip(-1),
    }
    expect_close(outputs[0], _READ[0], "the outputs for the tokens 2 4 3", _lazy(wrong))
    assert not outputs[3, 1:].any(), (
        "the last sentence has one token, and more of it were read: the length of the first sentence is used for all, "
        "or padding is told by its number, not by `lengths`"
    )
    expect_close(outputs, _READ, "the outputs")
    _expect_first_state(hidden)


def _expect_first_state(hidden: Any) -> None:
    """`fc` adds four times the forward state at the end and twice the backward one."""
    one_too_many = "there is one dimension too many: the decoder wants (B, decoder_hidden)"
    causes = {(4, 2): "`fc` is left out", (1, 4, 1): one_too_many, (4, 1, 1): one_too_many}
    _expect_shape(hidden, (4, 1), "the first state", causes)
    fc, both = torch.tensor([4.0, 2]), 4 * _FORWARD + 2 * _BACKWARD
    end = _READ[torch.arange(4), _LENGTHS - 1]
    wrong = {
        "the tanh is missing": both,
        "a ReLU stands where the tanh should": both.relu(),
        "a sigmoid stands where the tanh should": both.sigmoid(),
        "the tanh comes before `fc`, it belongs after": 4 * _FORWARD.tanh() + 2 * _BACKWARD.tanh(),
        "the backward state comes first: [forward; backward]": (4 * _BACKWARD + 2 * _FORWARD).tanh(),
        "the forward state stands there twice": (6 * _FORWARD).tanh(),
        "the backward state stands there twice": (6 * _BACKWARD).tanh(),
        "the outputs at the last position are used, which is padding for the shorter sentences": 0 * _FORWARD,
        "at the last real token, whose output is used, the backward direction has read one token only": (
            end @ fc
        ).tanh(),
        "at the first token, whose output is used, the forward direction has read one token only": (
            _READ[:, 0] @ fc
        ).tanh(),
        "the mean of the outputs is used, not the last states": (_READ.sum(1) / _LENGTHS[:, None] @ fc).tanh(),
        "the states of different sentences are mixed: (2, B, encoder_hidden) must not be reshaped to (B, ...), "
        "put `last[0]` and `last[1]` side by side": (torch.cat([_FORWARD, _BACKWARD]).view(4, 2) @ fc).tanh(),
    }
    expect_close(hidden[:, 0], both.tanh(), "the first state", _lazy(wrong))


@visible("the parts and their sizes, two sentences by hand, padding exactly 0")
def AdditiveAttention(cls: Callable) -> None:
    """Scores 0 and log 3 for the first sentence, which make the weights 1/4 and 3/4."""
    wanted = {
        "fc1.weight": ((5, 11), "`fc1` is nn.Linear(decoder_hidden + 2 * encoder_hidden, decoder_hidden)"),
        "fc2.weight": ((1, 5), "`fc2` is nn.Linear(decoder_hidden, 1, bias=False)"),
    }
    module = call(cls, 3, 5)
    _expect_parameters(module, wanted)
    names = {name for name, _ in module.named_parameters()}
    assert "fc2.bias" not in names, "`fc2.bias` should not be there: it would change no weight"
    # fc1 adds the state and the output's first feature. For the first sentence that gives 0, 1 (and 6 for padding).
    attention = call(cls, 1, 1)
    v = (torch.tensor(3.0).log() / torch.tensor(1.0).tanh()).item()
    shapes = {"fc1.weight": (1, 3), "fc1.bias": (1,), "fc2.weight": (1, 1)}
    _load(attention, shapes, {"fc1.weight": [[1.0, 1.0, 0.0]], "fc2.weight": [[v]]})
    state = torch.tensor([[2.0], [0.5]])
    outputs = torch.tensor([[[-2.0, 7], [-1, -7], [4, 0]], [[0.5, 3], [-1.5, 3], [-0.5, -3]]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    with unchanged(hidden=state, encoder_outputs=outputs, mask=mask):
        weights = call(attention, state, outputs, mask)
    causes = {
        (2, 3, 1): "they come as (B, m, 1): take the last dimension away before the softmax",
        (2, 1, 3): "they come as (B, 1, m): the decoder wants (B, m)",
    }
    _expect_shape(weights, (2, 3), "the weights", causes)
    right = torch.tensor([[1 / 4, 3 / 4, 0], [9 / 13, 1 / 13, 3 / 13]])
    expect_close(weights, right, "the weights", _lazy(_attention_mistakes(state, outputs, mask, v, right)))
    assert weights[0, 2] == 0, "the weight of padding should be exactly 0, not only small"


def _attention_mistakes(state: Tensor, outputs: Tensor, mask: Tensor, v: float, right: Tensor) -> dict[str, Tensor]:
    first = outputs[..., 0]
    sums = state + first
    scores = v * sums.tanh()
    mixed = first + torch.tensor([[2, 0.5, 2], [0.5, 2, 0.5]])

    def masked(scores: Tensor, dim: int = -1) -> Tensor:
        return scores.masked_fill(~mask, -1e9).softmax(dim)

    return {
        "the mask is ignored: padding gets weight": scores.softmax(-1),
        "the mask has the wrong sign: True means a real token": torch.eye(3)[2] * ~mask,
        "masked scores are set to 0 before the softmax, and exp(0) is 1, not 0": scores.masked_fill(~mask, 0).softmax(
            -1
        ),
        "the mask is applied after the softmax, so that the rows no longer sum to 1": scores.softmax(-1) * mask,
        "the mask of the first sentence is used for all": torch.tensor([[1 / 4, 3 / 4, 0], [9 / 10, 1 / 10, 0]]),
        "the tanh is missing: without it two linear layers are only one": masked(v * sums),
        "a ReLU stands where the tanh should": masked(v * sums.relu()),
        "the tanh comes after `fc2`, it belongs between the layers": masked((v * sums).tanh()),
        "the output comes first: `fc1` takes [hidden; output], in this order": masked(v * outputs.sum(-1).tanh()),
        "these are the scores: the softmax is missing": scores,
        "these are masked scores: the softmax is missing": scores * mask,
        "the softmax runs over the batch: it belongs over the source tokens": masked(scores, 0),
        "the softmax runs over the last dimension of (B, m, 1), where there is one number only": mask.float(),
        "these are log-weights: use `softmax`": masked(scores).log().masked_fill(~mask, 0.0),
        "each score has a sigmoid of its own: use a softmax over them": scores.sigmoid() * mask,
        "the states of different sentences are mixed: use `hidden.unsqueeze(1).expand(-1, m, -1)`": masked(
            v * mixed.tanh()
        ),
        "the decoder's state of the first sentence is used for all": masked(v * (state[:1] + first).tanh()),
        "the weights of the first sentence are used for all": right[:1].expand(2, 3),
        "the decoder's state is not used: the weights would never move": masked(v * first.tanh()),
    }


def make_equal_weights():
    """An attention that gives each real token the same weight."""

    class Equal(nn.Module):
        def forward(self, hidden, outputs, mask):
            return mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)

    return Equal()


@visible("the parts and their sizes, and one step of two sentences by hand: weights, state, logits")
def GRUDecoder(cls: Callable, attention: Callable) -> None:
    """One step with an attention of the checks, which takes the mean of the real outputs, (3, 1) and (-3, 3)."""
    wanted = {
        "embedding.weight": ((10, 4), "`embedding` is nn.Embedding(vocab_size, embed_dim)"),
        "gru.weight_ih": ((15, 10), "`gru` is nn.GRUCell(embed_dim + 2 * encoder_hidden, decoder_hidden)"),
        "fc.weight": ((10, 15), "`fc` is nn.Linear(decoder_hidden + 2 * encoder_hidden + embed_dim, vocab_size)"),
    }
    for name, value in call(attention, 3, 5).named_parameters():
        advice = "`attention` is AdditiveAttention(encoder_hidden, decoder_hidden)"
        wanted[f"attention.{name}"] = (tuple(value.shape), advice)
    _expect_parameters(call(cls, 10, 4, 3, 5, 0.0), wanted)
    # Tokens 1 and 0 have the vectors -10 and 10; the GRU goes half the way from the state to the sign of the vector:
    # from 0.8 to -0.1, and from 0.4 to 0.7. Token 0 gets the score state + context[0], token 1 context[1] + vector.
    decoder = call(cls, 2, 1, 1, 1, 0.0)
    decoder.attention = place(make_equal_weights, beside=cls)()
    shapes = {"embedding.weight": (2, 1), "fc.weight": (2, 4), "fc.bias": (2,)}
    shapes |= {"gru.weight_ih": (3, 3), "gru.weight_hh": (3, 1), "gru.bias_ih": (3,), "gru.bias_hh": (3,)}
    weights = {
        "embedding.weight": [[10.0], [-10.0]],
        "gru.weight_ih": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [20.0, 0.0, 0.0]],
        "fc.weight": [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]],
    }
    _load(decoder, shapes, weights)
    token, state = torch.tensor([1, 0]), torch.tensor([[0.8], [0.4]])
    outputs = torch.tensor([[[2.0, 0], [4, 2], [100, 100]], [[-1, 1], [-3, 3], [-5, 5]]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    with unchanged(hidden=state, encoder_outputs=outputs, mask=mask):
        result = call(decoder, token, state, outputs, mask)
    logits, hidden, weights = _several(result, 3, "(logits, hidden, weights)")
    promised = {
        "the logits": (logits, (2, 2), "the logits are (B, vocab_size)"),
        "the state": (hidden, (2, 1), "the state is (B, decoder_hidden)"),
        "the weights": (weights, (2, 3), "the weights are (B, m)"),
    }
    order = "the results are in another order: return (logits, hidden, weights)"
    for what, (value, shape, sizes) in promised.items():
        expect_tensor(value, name=what)
        found = tuple(value.shape)
        others = {other for _, other, _ in promised.values()}
        _expect_shape(value, shape, what, {found: order if found in others else f"{sizes}, and no more dimensions"})
    own = torch.tensor([[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])
    wrong = {
        "the mask does not reach the attention": own[[1, 1]],
        "the mask reaches the attention with the wrong sign": torch.eye(3)[2] * ~mask,
    }
    expect_close(weights, own, "the weights of the attention", _lazy(wrong))
    wrong = {
        "the context comes before the token vector: the GRU takes [vector; context]": [[0.9], [-0.3]],
        "the GRU starts from zeros: give it `hidden`, or it forgets what was written": [[-0.5], [0.5]],
        "this is the state that came in: return the one after the GRU": [[0.8], [0.4]],
    }
    new = torch.tensor([[-0.1], [0.7]])
    expect_close(hidden, new, "the new state", _lazy(wrong))
    _expect_logits(logits, state, new, own, outputs)


def _expect_logits(logits: Tensor, state: Tensor, new: Tensor, own: Tensor, outputs: Tensor) -> None:
    vector, context = torch.tensor([[-10.0], [10]]), torch.tensor([[3.0, 1], [-3, 3]])
    fc = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]])

    def speak(*parts: Tensor) -> Tensor:
        return torch.cat(parts, dim=-1) @ fc.T

    right = speak(new, context, vector)
    wrong = {"`fc` sees the old state: give it the one after the GRU": speak(state, context, vector)}
    orders = [(new, vector, context), (vector, new, context), (vector, context, new)]
    orders += [(context, new, vector), (context, vector, new)]
    # A space at the end makes each a cause of its own.
    wrong |= {
        "`fc` takes [new hidden; context; vector], in this order" + " " * i: speak(*o) for i, o in enumerate(orders)
    }
    contexts = {
        "the plain mean of the encoder outputs: the weights are not used": outputs.mean(1),
        "the plain sum of the encoder outputs: the weights are not used": outputs.sum(1),
        "the encoder's last output": outputs[:, -1],
        "the encoder output with the largest weight, not the weighted average": outputs[
            torch.arange(2), own.argmax(-1)
        ],
        "the mean of the weighted outputs: their sum is the average already, the weights sum to 1": context / 3,
        "made with the weights of the first sentence for all": torch.einsum("m,bmd->bd", own[0], outputs),
        "made from the outputs of the first sentence for all": own @ outputs[0],
        "made from weights that went through a second softmax": torch.einsum("bm,bmd->bd", own.softmax(-1), outputs),
    }
    wrong |= {f"the context is {what}": speak(new, value, vector) for what, value in contexts.items()}
    wrong |= {
        "probabilities are returned: leave out the softmax": right.softmax(-1),
        "log-probabilities are returned: the loss takes the log-softmax": right.log_softmax(-1),
        "a tanh follows `fc`": right.tanh(),
        "a ReLU follows `fc`": right.relu(),
    }
    expect_close(logits, right, "the logits", _lazy(wrong))


def make_guard():
    """What looks at the tokens that a decoder is fed: one for each sentence."""

    class OneEach(nn.Module):
        def forward(self, token, sentences, positions, vocabulary):
            shape = tuple(token.shape)
            wrong = f"the decoder was fed tokens of shape {shape} for {sentences} sentences: "
            assert shape != (), wrong + "`argmax()` without `dim` gives one number for the whole batch"
            assert shape != (positions,), wrong + (
                "this is a row of `target`, one sentence with all its positions; "
                "position t of every sentence is the column `target[:, t]`"
            )
            assert shape != (vocabulary,), wrong + (
                "the largest logit is looked for over the batch, it belongs over the vocabulary, `argmax(dim=-1)`"
            )
            assert shape == (sentences,), wrong + "a step takes one for each sentence, (B,)"
            return token

    return OneEach()


def make_counting_parts(guard):
    """An encoder, and a decoder that asks for the number after the token that it is fed.

    Logit 6 is the sum of the source tokens that the mask lets through; logit 7 counts steps, beginning with the
    sentence's length.
    """

    class Encoder(nn.Module):
        def forward(self, tokens, lengths):
            return tokens.unsqueeze(-1).float(), lengths.unsqueeze(-1).float()

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.guard = guard

        def forward(self, token, hidden, outputs, mask):
            token = self.guard(token, len(hidden), 4, 8)
            hidden = hidden + 1
            seen = (outputs * mask.unsqueeze(-1)).sum(dim=1)
            scores = 1000.0 * torch.eye(6)[(token + 1) % 6]
            return torch.cat([scores, seen, hidden], dim=-1), hidden, mask

    return Encoder(), Decoder()


_TARGET = torch.tensor([[0, 3, 1, 4], [0, 2, 4, 1]])
_TRUE, _OWN, _SOS = [[1, 4, 2], [1, 3, 5]], [[1, 2, 3], [1, 2, 3]], [[1, 1, 1], [1, 1, 1]]
_SCORED = "position 0 is scored, so that `<sos>` is fed twice: the loop starts at 1"


def _expect_tokens(forced: Any, free: Any) -> None:
    """Shapes, and the tokens predicted with always the true token fed, and with always the decoder's own."""
    causes = {
        (2, 4, 8): _SCORED,
        (3, 2, 8): "they come as (n - 1, B, vocab_size): stack them along dimension 1",
        (2, 8, 3): "they come as (B, vocab_size, n - 1): stack them along dimension 1",
        (6, 8): "the steps are put end to end: `stack` them along a new dimension, `cat` makes none",
        (2, 24): "the steps are put side by side: `stack` them along a new dimension, `cat` makes none",
        (2, 8): "only the last step is returned",
        (2, 3): "tokens are returned, not their logits",
        (2, 2, 8): "a step is missing: a target of n tokens takes n - 1 steps",
    }
    expect_tensor(forced, name="the result")
    if tuple(forced.shape) == (2, 4, 8) and not forced[:, 0].any():
        causes[2, 4, 8] = "there is a step too many in front, with logits of zeros: return positions 1 to n - 1"
    for value in (forced, free):
        _expect_shape(value, (2, 3, 8), "the logits", causes)
    assert (forced > 0).any(), "log-probabilities are returned, not logits"
    assert forced.max() > 1, "probabilities are returned, not logits"
    said = forced.argmax(-1).tolist(), free.argmax(-1).tolist()
    unused = "`teacher_forcing` is not used"
    for pair, cause in [
        ((_OWN, _TRUE), "the choice is reversed: teacher_forcing=1.0 always feeds the decoder's own"),
        ((_OWN, _OWN), f"{unused}: the decoder's own is always fed"),
        ((_TRUE, _TRUE), f"{unused}: the true token is always fed"),
        ((_TRUE, _SOS), "the decoder's own token is the least likely one: `argmax`, not `argmin`"),
        ((_SOS, _SOS), "`<sos>` is fed at every step"),
    ]:
        assert said != pair, cause
    assert said[0] != [[4, 2, 5], [3, 5, 2]], (
        "with teacher_forcing=1.0 the token that a step is asked for is fed to it, so that the decoder has only to "
        "copy: the choice comes after the step"
    )
    assert said[0] != [[1, 1, 4], [1, 1, 3]], _SCORED
    assert said[0] == _TRUE, (
        "with teacher_forcing=1.0 the first sentence's true tokens 0, 3, 1 are fed, so 1, 4, 2 should be predicted, "
        f"got {said[0][0]}"
    )


def _expect_own(free: Tensor) -> None:
    found = free.argmax(-1).tolist()
    assert found == _OWN, (
        f"with teacher_forcing=0.0 the decoder reads its own tokens, so 1, 2, 3 should be predicted, got {found[0]}"
    )


def _expect_numbers(values: Tensor, right: list, what: str, wrong: Mapping[tuple, str]) -> None:
    found = [round(number, 3) for number in values.tolist()]
    cause = wrong.get(tuple(found))
    assert found == right, f"{what} should be {right}, got {found}" + (f". Likely cause: {cause}" if cause else "")


@visible("which token is fed with teacher_forcing 1.0 and 0.0, the state handed on, the mask, (B, n - 1, vocab_size)")
def Seq2Seq(cls: Callable) -> None:
    """Two sentences, with a decoder that counts upwards from the token that it is fed."""
    guard = place(make_guard, beside=cls)()
    model = call(cls, *place(make_counting_parts, beside=cls)(guard))
    source, lengths = torch.tensor([[4, 1, 6, 1], [7, 8, 1, 1]]), torch.tensor([3, 2])
    target = _TARGET.clone()
    with unchanged(source=source, lengths=lengths, target=target):
        forced = call(model, source, lengths, target, teacher_forcing=1.0)
        free = call(model, source, lengths, target, teacher_forcing=0.0)
    _expect_tokens(forced, free)
    steps = {
        (5, 6, 7): "position 0 is scored: the first step that counts is the second one taken",
        (4, 4, 4): "the state is not handed from step to step: the decoder starts anew each time",
        (1, 2, 3): "the decoder starts from zeros: give it the encoder's hidden state",
    }
    _expect_numbers(forced[0, :, 7], [4, 5, 6], "the steps, counted in the last logit,", steps)
    _expect_own(free)
    masks = {
        (12, 17): "the mask is all True: the decoder attends to padding",
        (1, 2): "the mask has the wrong sign: True means a real token",
        (10, 15): "the mask is made of `source != 1`, but padding is what lies behind `lengths`",
        (12, 16): "the mask is off by one: positions 0 to length - 1 are real",
        (5, 7): "the mask misses the last real token: positions 0 to length - 1 are real",
        (11, 16): "the mask of the first sentence is used for all",
    }
    _expect_numbers(forced[:, 0, 6], [11, 15], "the sums of the source tokens that the mask lets through", masks)


def make_spelled_out_parts(guard, attention):
    """A decoder whose parts the fixed loop calls one by one."""

    class Table(nn.Embedding):
        def forward(self, tokens):
            return super().forward(guard(tokens, 2, 4, 8))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.attention = Table(6, 6), attention
            self.gru, self.fc = nn.GRUCell(7, 1), nn.Linear(8, 8)
            self.dropout = nn.Dropout(0.0)

        def forward(self, token, hidden, outputs, mask):
            vector = self.dropout(self.embedding(token))
            weights = self.attention(hidden, outputs, mask)
            context = (weights.unsqueeze(-1) * outputs).sum(dim=1)
            hidden = self.gru(torch.cat([vector, context], dim=-1), hidden)
            return self.fc(torch.cat([hidden, context, vector], dim=-1)), hidden, weights

    return Decoder()


@visible("which token is fed with teacher_forcing 1.0 and 0.0, the state handed on, each sentence's context")
def fix_teacher_forcing(function: Callable) -> None:
    """A decoder that asks for the number after the token that it is fed.

    Logit 6 is the context; logit 7 is the state, which begins at 8 and is halved by each step.
    """
    guard, attention = place(make_guard, beside=function)(), place(make_equal_weights, beside=function)()
    decoder = place(make_spelled_out_parts, beside=function)(guard, attention)
    shapes = {"embedding.weight": (6, 6), "fc.weight": (8, 8), "fc.bias": (8,)}
    shapes |= {"gru.weight_ih": (3, 7), "gru.weight_hh": (3, 1), "gru.bias_ih": (3,), "gru.bias_hh": (3,)}
    fc = torch.zeros(8, 8)
    fc[:6, 2:] = 1000 * torch.eye(6).roll(1, dims=0)
    fc[6, 1] = fc[7, 0] = 1
    _load(decoder, shapes, {"embedding.weight": torch.eye(6).tolist(), "fc.weight": fc.tolist()})
    inputs = {
        "hidden": torch.tensor([[8.0], [8]]),
        "encoder_outputs": torch.tensor([[[4.0], [6], [99]], [[1], [2], [3]]]),
        "mask": torch.tensor([[True, True, False], [True, True, True]]),
        "target": _TARGET.clone(),
    }
    with unchanged(**inputs):
        forced = call(function, decoder, *inputs.values(), teacher_forcing=1.0)
        free = call(function, decoder, *inputs.values(), teacher_forcing=0.0)
    _expect_tokens(forced, free)
    steps = {
        (2, 1, 0.5): "position 0 is scored: the first step that counts is the second one taken",
        (4, 4, 4): "the state is not handed from step to step: the decoder starts anew each time",
    }
    _expect_numbers(forced[0, :, 7], [4, 2, 1], "the states, read off the last logit,", steps)
    _expect_own(free)
    _expect_numbers(forced[:, 0, 6], [5, 2], "the contexts, each sentence's own,", {})
