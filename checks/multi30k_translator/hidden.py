"""Hidden tests of chapter 10."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    call,
    expect_close,
    expect_device,
    expect_matches,
    expect_not_calling,
    expect_number,
    expect_raises,
    expect_tensor,
    place,
    rand_mask,
    randint,
    randn,
    randomise,
    unchanged,
)
from checks.formulas import linear, multi_head_attention
from checks.multi30k_translator.visible import Pair, Step, expect_merges, expect_step

Tokens = list[int]


# ---- the loss


def _loss(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> Tensor:
    count = int((targets != pad_id).sum())
    flat, right = logits.flatten(0, 1), targets.flatten()
    total = F.cross_entropy(flat, right, ignore_index=pad_id, label_smoothing=smoothing, reduction="sum")
    return total / max(count, 1)


def _each(logits: Tensor, targets: Tensor, on: float | Tensor, off: float | Tensor) -> Tensor:
    """The loss of each token when the smoothed target is `on` for the right token and `off` for the others."""
    hot = F.one_hot(targets, logits.shape[-1]).double()
    return -((on * hot + off * (1 - hot)) * logits.log_softmax(-1)).sum(-1)


def _usual(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    vocab = logits.shape[-1]
    return _each(logits, targets, 1 - smoothing + smoothing / vocab, smoothing / vocab)


def _over_real(each: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    return each[targets != pad_id].mean()


def _no_weight_for_padding(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> Tensor:
    vocab = logits.shape[-1]
    off = torch.full((vocab,), smoothing / (vocab - 2), dtype=torch.float64)
    off[pad_id] = 0.0
    return _over_real(_each(logits, targets, 1 - smoothing, off), targets, pad_id)


_LOSS_MISTAKES: dict[str, Callable[[Tensor, Tensor, float, int], Tensor]] = {
    "padding counts: leave the positions out whose target is `pad_id`": lambda x, t, s, p: _usual(x, t, s).mean(),
    "padding is zeroed but still counted: divide by the number of real tokens": lambda x, t, s, p: (
        _usual(x, t, s).masked_fill(t == p, 0.0).mean()
    ),
    "a sum: divide it by the number of real tokens": lambda x, t, s, p: _usual(x, t, s)[t != p].sum(),
    "the sum is divided by the number of sentences, not of real tokens": lambda x, t, s, p: (
        _usual(x, t, s)[t != p].sum() / len(t)
    ),
    "a mean for each sentence, then the mean of those: every real token counts alike": lambda x, t, s, p: torch.stack(
        [_over_real(e, row, p) for e, row in zip(_usual(x, t, s), t, strict=True)]
    ).mean(),
    "`smoothing` is not used": lambda x, t, s, p: _over_real(_usual(x, t, 0.0), t, p),
    "the minus is missing": lambda x, t, s, p: -_over_real(_usual(x, t, s), t, p),
    "`smoothing` and `1 - smoothing` are exchanged": lambda x, t, s, p: _over_real(_usual(x, t, 1 - s), t, p),
    "`smoothing` is divided by V - 1 and goes to the wrong tokens only": lambda x, t, s, p: _over_real(
        _each(x, t, 1 - s, s / (x.shape[-1] - 1)), t, p
    ),
    "the right token gets 1 - smoothing alone: a share of smoothing/V is lost": lambda x, t, s, p: _over_real(
        _each(x, t, 1 - s, s / x.shape[-1]), t, p
    ),
    "the right token keeps the weight 1, so that the target sums to more than 1": lambda x, t, s, p: _over_real(
        _each(x, t, 1.0, s / x.shape[-1]), t, p
    ),
    "each other token gets smoothing, not smoothing/V": lambda x, t, s, p: _over_real(_each(x, t, 1 - s, s), t, p),
    "the sum over all tokens of -log p gets `smoothing`: take their mean": lambda x, t, s, p: _over_real(
        _each(x, t, 1.0, s), t, p
    ),
    "`smoothing` is divided by V - 2: padding is left out of the share, too": _no_weight_for_padding,
    "log-probabilities over the wrong dimension: softmax over the vocabulary, the last one": lambda x, t, s, p: (
        _over_real(_wrong_dimension(x, t, s), t, p)
    ),
    "probabilities without a log": lambda x, t, s, p: _over_real(
        -(1 - s) * x.softmax(-1).gather(-1, t.unsqueeze(-1)).squeeze(-1) - s / x.shape[-1], t, p
    ),
    "`pad_id` is taken to be 1: use the argument": lambda x, t, s, p: _over_real(_usual(x, t, s), t, 1),
    "`pad_id` is taken to be 0: use the argument": lambda x, t, s, p: _over_real(_usual(x, t, s), t, 0),
}


def _wrong_dimension(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    log_probs = logits.log_softmax(1)
    right = log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return -(1 - smoothing) * right - smoothing * log_probs.mean(-1)


def _loss_case(batch: int, n: int, vocab: int, smoothing: float, pad_id: int, scale: float = 2.0) -> dict[str, Any]:
    """Targets with `pad_id` behind each sentence; the first sentence has none, the last one token."""
    targets = randint(0, vocab - 1, (batch, n))
    targets += targets >= pad_id  # every token but padding
    for row, length in zip(targets[1:], torch.linspace(n - 1, 1, batch - 1).long().tolist(), strict=True):
        row[length:] = pad_id
    return {"logits": scale * randn(batch, n, vocab), "targets": targets, "smoothing": smoothing, "pad_id": pad_id}


def check_label_smoothed_loss(function: Callable) -> None:
    """Values, gradients, large scores, nothing but padding, and no ready-made loss."""
    cases = [
        _loss_case(4, 4, 4, 0.1, 2),
        _loss_case(3, 5, 7, 0.3, 5),
        _loss_case(2, 6, 5, 0.0, 0),
        _loss_case(3, 2, 9, 1.0, 1),
        _loss_case(1, 1, 3, 0.1, 0),
    ]
    for case in cases[:2]:
        case["targets"][0, :2] = torch.tensor([0, 1])  # tokens that are padding elsewhere
    expect_matches(function, _loss, cases, _LOSS_MISTAKES, "the loss")
    large = _loss_case(2, 3, 5, 0.1, 1, scale=1e4)
    large["logits"] = large["logits"].float()
    value = call(function, *large.values())
    expect_tensor(value, (), name="the loss")
    assert value.isfinite(), (
        "logits of 10,000 make the loss infinite or NaN: `log_softmax`, not the log of a softmax or of a sum of `exp`"
    )
    large["logits"] = large["logits"].double()
    expect_close(value, _loss(**large), "the loss of logits of 10,000")
    _expect_padding_alone(function)
    expect_not_calling(
        function,
        list(cases[0].values()),
        {"cross_entropy", "nll_loss", "kl_div"},
        "this loss is to be written by hand, from `log_softmax`",
    )


def _expect_padding_alone(function: Callable) -> None:
    logits = randn(2, 3, 5).requires_grad_()
    value = call(function, logits, torch.full((2, 3), 4), 0.1, 4)
    expect_tensor(value, (), name="the loss of nothing but padding")
    assert value.detach() == 0, (
        f"the loss of nothing but padding should be 0, got {value.item():.6g}: there is no real token, so 0 is divided "
        "by 0; divide by at least 1"
    )
    if value.requires_grad:
        (gradient,) = torch.autograd.grad(value, [logits])
        expect_close(gradient, torch.zeros_like(gradient), "the gradient of nothing but padding")


# ---- the learning rate

_RATE_MISTAKES: dict[str, Callable[[int, int, int], float]] = {
    "the larger of the two is taken: it has to be the smaller": lambda s, d, w: d**-0.5 * max(s**-0.5, s * w**-1.5),
    "√dim multiplies: it has to divide": lambda s, d, w: d**0.5 * min(s**-0.5, s * w**-1.5),
    "`dim` is not used": lambda s, d, w: min(s**-0.5, s * w**-1.5),
    "it divides by dim, not by √dim": lambda s, d, w: min(s**-0.5, s * w**-1.5) / d,
    "the warm-up divides by √warmup, not by warmup·√warmup": lambda s, d, w: d**-0.5 * min(s**-0.5, s * w**-0.5),
    "the warm-up divides by warmup, so that the two curves do not meet": lambda s, d, w: d**-0.5 * min(s**-0.5, s / w),
    "there is no warm-up": lambda s, d, w: d**-0.5 * s**-0.5,
    "it only ever grows: after the warm-up it should fall like 1/√step": lambda s, d, w: d**-0.5 * s * w**-1.5,
    "after the warm-up it stays the same: it should fall like 1/√step": lambda s, d, w: (
        d**-0.5 * min(w**-0.5, s * w**-1.5)
    ),
    "it falls like 1/step: it should fall like 1/√step": lambda s, d, w: d**-0.5 * min(w**0.5 / s, s * w**-1.5),
    "the steps are counted from 0: the first one is 1": lambda s, d, w: (
        d**-0.5 * min((s - 1) ** -0.5, (s - 1) * w**-1.5)
    ),
    "1 is added to `step`, which already begins with 1": lambda s, d, w: (
        d**-0.5 * min((s + 1) ** -0.5, (s + 1) * w**-1.5)
    ),
    "it is scaled to be 1 at its highest: the formula's factor is (dim · warmup)^-½ there": lambda s, d, w: (
        min(s**-0.5, s * w**-1.5) * w**0.5
    ),
}


def check_noam_factor(function: Callable) -> None:
    """Each part of the curve, for models and warm-ups of several sizes."""
    for dim, warmup in ((512, 4000), (128, 25), (7, 10), (16, 1), (1, 3)):
        for step in {
            1,
            2,
            3,
            max(warmup // 2, 1),
            warmup,
            warmup + 1,
            4 * warmup,
            100_000,
            random.randrange(1, 20_000),
        }:
            expected = 1 / math.sqrt(dim * step) if step >= warmup else step / math.sqrt(dim * warmup**3)
            causes = {cause: lambda f=f, given=(step, dim, warmup): f(*given) for cause, f in _RATE_MISTAKES.items()}
            name = f"the factor of step {step} for dim={dim}, warmup={warmup}"
            expect_number(call(function, step, dim, warmup), expected, name, causes)


# ---- decoding: a toy translator and what it should say


class Toy(nn.Module):
    """Scores the next token by looking up everything it has been told: source, memory and all target tokens."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)  # (rows, V)
        self.encoded, self.decoded, self.longest = 0, 0, 0
        self.recorded = False

    def encode(self, source):
        self.encoded += 1
        self.recorded = self.recorded or torch.is_grad_enabled()
        return 3.0 * source.unsqueeze(-1)  # (B, m, 1)

    def decode(self, target, memory, source):
        if not len(target) == len(memory) == len(source):
            raise ValueError(
                f"target, memory and source have {len(target)}, {len(memory)} and {len(source)} rows: "
                "they should have as many"
            )
        self.decoded += 1
        self.longest = max(self.longest, target.shape[1])
        self.recorded = self.recorded or torch.is_grad_enabled()
        place = torch.arange(1, target.shape[1] + 1, device=target.device)
        told = source.sum(1) * 7 + memory.sum((1, 2)).long() * 5  # (B,)
        state = ((target + 1) * (place**2 + 3)).cumsum(1) + told.unsqueeze(1)  # (B, n)
        return self.table[state % len(self.table)]


_After = Callable[[Tokens], list[float]]  # what a toy says for one sentence: target tokens to log-probabilities


def _say(table: Tensor, row: Tensor) -> _After:
    """The log-probabilities of a `Toy` for one sentence, in float64 and without torch, which is quicker for one."""
    rows, told = table.double().log_softmax(-1).tolist(), 22 * int(row.sum())

    def after(tokens: Tokens) -> list[float]:
        return rows[(told + sum((token + 1) * (place**2 + 3) for place, token in enumerate(tokens, 1))) % len(rows)]

    return after


def _greedy(after: _After, max_len: int, bos_id: int, eos_id: int) -> tuple[Tokens, float]:
    """One sentence's translation, and how narrow the narrowest choice was."""
    tokens, margin = [bos_id], math.inf
    while len(tokens) <= max_len:
        (best, token), (second, _) = sorted(((v, t) for t, v in enumerate(after(tokens))), reverse=True)[:2]
        margin = min(margin, best - second)
        if token == eos_id:
            break
        tokens.append(token)
    return tokens[1:], margin


def _toy_batch(
    vocab: int, lengths: Sequence[int], solve: Callable[[_After], tuple[Tokens, float]]
) -> tuple[Tensor, Tensor, list[Tokens]]:
    """A table and sources for which `solve` has no close call, and what it says for each sentence.

    Sums of float32 differ by rounding between right answers, so choices that hang on it are not asked for.
    """
    while True:
        table = 2 * randn(509, vocab, dtype=torch.float32)
        source = randint(4, 40, (len(lengths), max(lengths)))
        for row, length in zip(source, lengths, strict=True):
            row[length:] = 1
        solved = [solve(_say(table, row)) for row in source]
        if min(margin for _, margin in solved) > 1e-3:
            return table, source, [tokens for tokens, _ in solved]


def _expect_translations(
    value: Any,
    expected: list[Tokens],
    name: str,
    bos_id: int,
    eos_id: int,
    mistakes: Callable[[], Mapping[str, list[Tokens]]],
) -> None:
    """A list of lists of numbers; the message shows the first that is wrong and names the mistake, if it is known."""
    assert value is not None, f"{name} returned None: is there a `return`?"
    assert not isinstance(value, Tensor), f"{name} should return a list of lists, got a tensor: `.tolist()`"
    assert isinstance(value, list), f"{name} should return a list, got a {value.__class__.__name__}"
    assert all(isinstance(tokens, list) for tokens in value), (
        f"{name} should return a list of lists: one list of token numbers for each sentence"
    )
    assert not any(isinstance(token, Tensor) for tokens in value for token in tokens), (
        f"{name} should return token numbers as Python integers, got tensors: `.tolist()` or `.item()`"
    )
    assert len(value) == len(expected), f"{name} should give {len(expected)} translations, gave {len(value)}"
    if value == expected:
        return
    cause = next((f". Likely cause: {c}" for c, wrong in mistakes().items() if value == wrong != expected), "")
    i = next(i for i, (got, right) in enumerate(zip(value, expected, strict=True)) if got != right)
    got, right = value[i], expected[i]
    if not cause and eos_id in got and eos_id not in right:
        cause = ". Likely cause: `eos_id` is still there: cut each translation at the first one"
    if not cause and got[:1] == [bos_id] and right[:1] != [bos_id]:
        cause = ". Likely cause: `bos_id` is still there: leave the first token out"
    assert got == right, f"{name}, sentence {i + 1} of {len(value)}: expected {right}, got {got}{cause}"


def _greedy_mistakes(
    sentences: list[_After], expected: list[Tokens], max_len: int, bos_id: int, eos_id: int
) -> dict[str, list[Tokens]]:
    steps = min(max_len, 1 + max(map(len, expected)))
    uncut = [_greedy(after, steps, bos_id, -1)[0] for after in sentences]
    first_end = min(map(len, expected))

    def again(**changed: int) -> list[Tokens]:
        settings = {"max_len": max_len, "bos_id": bos_id, "eos_id": eos_id} | changed
        return [_greedy(after, **settings)[0] for after in sentences]

    def seeing(see: Callable[[Tokens], Tokens]) -> list[Tokens]:
        return [_greedy(lambda tokens, a=after: a(see(tokens)), max_len, bos_id, eos_id)[0] for after in sentences]

    return {
        "nothing ends a translation: cut each at its first `eos_id`": uncut,
        "`eos_id` is taken out, but what comes after it stays: cut there": [
            [t for t in tokens if t != eos_id] for tokens in uncut
        ],
        "decoding stops when the *first* sentence has ended: wait for all": [
            tokens[: first_end + 1] for tokens in expected
        ],
        "one token too few: a translation may have `max_len` tokens without `bos_id`": again(max_len=max_len - 1),
        "one token too many: at most `max_len`": again(max_len=max_len + 1),
        "the target begins with `eos_id`: it begins with `bos_id`": again(bos_id=eos_id),
        "the target begins with 0: it begins with `bos_id`": again(bos_id=0),
        "the target begins with 2: use the argument `bos_id`": again(bos_id=2),
        "`eos_id` is taken to be 3: use the argument": again(eos_id=3),
        "`bos_id` is still there: leave the first token out": [[bos_id, *tokens] for tokens in expected],
        "`eos_id` is still there: cut each translation before it": [
            [*tokens, eos_id] if len(tokens) < max_len else tokens for tokens in expected
        ],
        "the scores of the first position are read: those of the *last* one belong to the next token": seeing(
            lambda tokens: tokens[:1]
        ),
        "only the newest token is given to `decode`: it needs all of them": seeing(lambda tokens: tokens[-1:]),
        "the least likely token is taken": [
            _greedy(lambda tokens, a=after: [-v for v in a(tokens)], max_len, bos_id, eos_id)[0] for after in sentences
        ],
    }


def _expect_manners(toy: nn.Module, steps: int, max_len: int) -> None:
    """What a decoder may ask of the model."""
    assert not toy.recorded, "a graph is recorded, which costs memory: decode inside `torch.no_grad()`"
    assert toy.encoded == 1, f"`encode` was called {toy.encoded} times: once is enough, the source does not change"
    assert toy.longest <= max_len, (
        f"`decode` was given {toy.longest} tokens for max_len={max_len}: the last token need not be read again"
    )
    assert toy.decoded <= max_len, (
        f"`decode` was called {toy.decoded} times for max_len={max_len}: decode all sentences together, "
        "with one call for each step"
    )
    assert toy.decoded <= steps, (
        f"`decode` was called {toy.decoded} times where {steps} would do: stop when every translation has ended"
    )


def check_greedy_decode(function: Callable) -> None:
    """Equals the sentence by sentence translation; one batch, one call for each step, an early end."""
    cases = [
        (6, [3, 5, 2, 4], 12, 2, 3),
        (8, [4, 1, 6], 9, 5, 6),
        (5, [2], 7, 4, 0),
        (7, [3, 3], 1, 2, 3),
        (40, [5, 2, 3], 4, 2, 3),
        (6, [1, 2, 1, 3, 4], 30, 3, 1),
        (6, [2, 3], 5, 2, 50),  # a token that no score belongs to: nothing ever ends
    ]
    for number, (vocab, lengths, max_len, bos_id, eos_id) in enumerate(cases):
        settings = {"max_len": max_len, "bos_id": bos_id, "eos_id": eos_id}
        while True:
            table, source, expected = _toy_batch(vocab, lengths, lambda after, s=settings: _greedy(after, **s))
            mistakes = _greedy_mistakes([_say(table, row) for row in source], expected, **settings)
            # The first two tell every mistake from the right answer and from the others; 2 and 3 are usual in one.
            if number > 1 or _different(mistakes | {"": expected}) == len(mistakes) + 1 - (0 if number else 2):
                break
        toy = place(Toy, beside=function)(table)
        toy.eval()
        with unchanged(source=source):
            value = call(function, toy, source, max_len, bos_id, eos_id)
        name = f"greedy_decode with max_len={max_len}, bos_id={bos_id}, eos_id={eos_id}"
        _expect_translations(value, expected, name, bos_id, eos_id, lambda m=mistakes: m)
        _expect_manners(toy, min(max_len, 1 + max(map(len, expected))), max_len)
    _expect_on_its_device(function)


# ---- beam search


_Hypothesis = tuple[float, Tokens]
_Final = Callable[[float, int, float], float]


def _penalised(total: float, length: int, alpha: float) -> float:
    return total / ((5 + length) / 6) ** alpha


def _search(
    after: _After,
    beam: int,
    max_len: int,
    bos_id: int,
    eos_id: int,
    *,
    scores: Callable[[float], float] = lambda log_prob: log_prob,
    accumulate: bool = True,
    ended: str = "competes",
    family: bool = False,
) -> tuple[list[_Hypothesis], float, int]:
    """The last hypotheses of one sentence by the rule of the exercise, the narrowest choice, and the steps it took.

    The options make other searches: for `ended` also "keeps its place" and "gives its place", which are published,
    "is lost" and "stops all"; with `family` each hypothesis is continued with its own best token alone.
    """
    live, done, margin, steps = [(0.0, [bos_id])], [], math.inf, 0
    while live and steps < max_len:
        steps += 1
        following = []
        for total, tokens in live:
            values = enumerate(map(scores, after(tokens)))
            each = [((total if accumulate else 0.0) + value, [*tokens, token]) for token, value in values]
            following += [max(each)] if family and steps > 1 else each
        if ended not in ("keeps its place", "gives its place"):
            following, done = following + done, []
        following.sort(reverse=True)
        places = beam - (len(done) if ended == "keeps its place" else 0)
        if places < len(following):
            margin = min(margin, following[places - 1][0] - following[places][0])
        live = [h for h in following[:places] if h[1][-1] != eos_id]
        done += [h for h in following[:places] if h[1][-1] == eos_id]
        if ended == "is lost":
            done = [h for h in done if len(h[1]) == steps + 1]
        if (ended == "stops all" and done) or len(done) >= beam:
            break
    return live + done, margin, steps


def _choose(
    hypotheses: list[_Hypothesis], eos_id: int, alpha: float, final: _Final = _penalised
) -> tuple[Tokens, float]:
    """The best translation, and by how much."""
    ranked = sorted(((final(total, len(tokens) - 1, alpha), tokens) for total, tokens in hypotheses), reverse=True)
    margin = ranked[0][0] - ranked[1][0] if len(ranked) > 1 else math.inf
    return [t for t in ranked[0][1][1:] if t != eos_id], margin


def _best_of_all(after: _After, max_len: int, bos_id: int, eos_id: int, alpha: float) -> tuple[Tokens, float]:
    """The best of all translations there are, and by how much."""

    def grow(total: float, tokens: Tokens) -> Iterator[tuple[float, Tokens]]:
        if tokens[-1] == eos_id or len(tokens) > max_len:
            yield _penalised(total, len(tokens) - 1, alpha), tokens
            return
        for token, value in enumerate(after(tokens)):
            yield from grow(total + value, [*tokens, token])

    (first, tokens), (second, _) = sorted(grow(0.0, [bos_id]), reverse=True)[:2]
    return [t for t in tokens[1:] if t != eos_id], first - second


_SEARCH_MISTAKES: dict[str, dict[str, Any]] = {
    "this is what greedy decoding finds. Do the hypotheses of a sentence differ? At the start all but one need the sum "
    "-inf, or they stay copies of each other": {"beam": 1},
    "a hypothesis that has ended keeps its place whatever comes. That is another published convention; here it "
    "competes with the others, as `beam_step` lets it": {"ended": "keeps its place"},
    "hypotheses that have ended are lost: they stay, and the best may be one of them": {"ended": "is lost"},
    "the search stops when the *first* hypothesis has ended: go on until all have": {"ended": "stops all"},
    "a hypothesis that has ended is set aside and another takes its place. That is another published convention; here "
    "it stays and competes, as `beam_step` lets it": {"ended": "gives its place"},
    "each hypothesis is continued with its own best token alone: all continuations of all hypotheses compete": {
        "family": True
    },
    "the log-probabilities of earlier tokens are forgotten: add them up": {"accumulate": False},
    "probabilities are added up: take their logarithms": {"scores": math.exp},
}
_CHOICE_MISTAKES: dict[str, _Final] = {
    "`length_penalty` is not used": lambda total, length, alpha: total,
    "`length_penalty` is taken to be 0.6: use the argument": lambda total, length, alpha: _penalised(
        total, length, 0.6
    ),
    "the sum is multiplied by the penalty: divide": lambda total, length, alpha: total * ((5 + length) / 6) ** alpha,
    "the sum is divided by length ** length_penalty: here it is ((5 + length) / 6) ** length_penalty": (
        lambda total, length, alpha: total / length**alpha
    ),
    "the sum is divided by the length, whatever `length_penalty`": lambda total, length, alpha: total / length,
    "the hypothesis with the lowest score is taken": lambda total, length, alpha: -_penalised(total, length, alpha),
}
_EOS_NOT_COUNTED = "`eos_id` is not counted in the length"
_PREFERS_ENDED = "a hypothesis that has ended is preferred to all that have not: the highest score wins, ended or not"
_GOES_ON = "a hypothesis goes on past its `eos_id`, and the tokens behind it are counted: it has ended there"
_DEFAULT = "the default of `length_penalty` is not 0.6"


def _wrong_translations(after: _After, alpha: float, **settings: int) -> dict[str, Tokens]:
    """What each mistake says for one sentence."""
    eos_id, max_len = settings["eos_id"], settings["max_len"]
    hypotheses, _, _ = _search(after, **settings)
    wrong = {cause: _choose(hypotheses, eos_id, alpha, final)[0] for cause, final in _CHOICE_MISTAKES.items()}
    shorter = [(total, tokens[: -1 if tokens[-1] == eos_id else None]) for total, tokens in hypotheses]
    wrong[_EOS_NOT_COUNTED] = _choose(shorter, eos_id, alpha)[0]
    whole = [h for h in hypotheses if h[1][-1] == eos_id]
    wrong[_PREFERS_ENDED] = _choose(whole or hypotheses, eos_id, alpha)[0]
    wrong[_GOES_ON] = _past_the_end(after, alpha, **settings)
    switches = {
        **_SEARCH_MISTAKES,
        "one token too many: at most `max_len`": {"max_len": max_len + 1},
        "one token too few: a translation may have `max_len` tokens": {"max_len": max_len - 1},
        "`bos_id` is taken to be 2: use the argument": {"bos_id": 2},
        "`eos_id` is taken to be 3: use the argument": {"eos_id": 3},
    }
    for cause, switch in switches.items():
        found, _, _ = _search(after, **settings | switch)
        wrong[cause] = _choose(found, (settings | switch)["eos_id"], alpha)[0]
    return wrong


def _past_the_end(after: _After, alpha: float, **settings: int) -> Tokens:
    """What a search says in which nothing ends until all its hypotheses say `eos_id` in one step."""
    eos_id, live = settings["eos_id"], [(0.0, [settings["bos_id"]])]
    for _ in range(settings["max_len"]):
        live = [(total + v, [*tokens, t]) for total, tokens in live for t, v in enumerate(after(tokens))]
        live = sorted(live, reverse=True)[: settings["beam"]]
        if all(tokens[-1] == eos_id for _, tokens in live):
            break

    def score(hypothesis: _Hypothesis) -> float:
        total, tokens = hypothesis
        said = sum(t != eos_id for t in tokens[1:]) + (tokens[-1] == eos_id)
        return _penalised(total, said, alpha)

    best = max(live, key=score)[1][1:]
    return best[: best.index(eos_id)] if eos_id in best else best


def _telling_batch(vocab: int, alpha: float, **settings: int) -> tuple[Tensor, list[tuple[Tensor, Tokens]]]:
    """A table, and sentences that tell every mistake from the right answer and from the others."""
    while True:
        table = 2 * randn(509, vocab, dtype=torch.float32)
        kept, outcomes = [], {}
        for _ in range(40):
            row = randint(4, 40, (4,))
            after = _say(table, row)
            hypotheses, margin, _ = _search(after, **settings)
            right, narrow = _choose(hypotheses, settings["eos_id"], alpha)
            if min(margin, narrow) < 1e-3:
                continue
            wrong = _wrong_translations(after, alpha, **settings) | {"": right}
            longer = {cause: [*outcomes.get(cause, []), tokens] for cause, tokens in wrong.items()}
            if _different(longer) > _different(outcomes):
                kept, outcomes = [*kept, (row, right)], longer
            # Without a penalty four of them are none; `bos_id` and `eos_id` are usual here.
            if _different(outcomes) == len(outcomes) - (2 if alpha else 6):
                return table, kept


def _different(outcomes: Mapping[str, list[Tokens]]) -> int:
    return len({str(outcome) for outcome in outcomes.values()})


def _expect_beam(
    function: Callable, table: Tensor, source: Tensor, expected: list[Tokens], alpha: float | None, **settings: int
) -> nn.Module:
    """Fail unless a batch is translated as expected; `alpha` None is the default."""
    toy = place(Toy, beside=function)(table)
    toy.eval()
    args = [source, *(settings[name] for name in ("beam", "max_len", "bos_id", "eos_id"))]
    penalty = {} if alpha is None else {"length_penalty": alpha}
    with unchanged(source=source):
        value = call(function, toy, *args, **penalty)
    name = f"beam_search with beam={settings['beam']}, max_len={settings['max_len']} and "
    name += "no length_penalty given" if alpha is None else f"length_penalty={alpha}"

    def mistakes() -> dict[str, list[Tokens]]:
        alone = [value]
        if len(source) > 1:
            alone = [call(function, toy, row.unsqueeze(0), *args[1:], **penalty) for row in source]
            if alone == [[tokens] for tokens in expected]:
                cause = (
                    "each sentence alone is right, so the sentences of a batch are mixed up: "
                    "`repeat_interleave` keeps the copies of a sentence together, `repeat` does not"
                )
                return {cause: value}
        if alpha is None:
            found = [_search(_say(table, row), **settings)[0] for row in source]
            for other in _OTHER_PENALTIES:
                if value == [_choose(hypotheses, settings["eos_id"], other)[0] for hypotheses in found]:
                    return {_DEFAULT: value}
        each = [_wrong_translations(_say(table, row), 0.6 if alpha is None else alpha, **settings) for row in source]
        wrong = {cause: [said[cause] for said in each] for cause in each[0]}
        # In a batch a sentence may go on, by the same mistake, for as long as the others do.
        return {cause: value if alone == [[one] for one in said] else said for cause, said in wrong.items()}

    _expect_translations(value, expected, name, settings["bos_id"], settings["eos_id"], mistakes)
    return toy


def _check_beam(function: Callable, vocab: int, lengths: Sequence[int], alpha: float | None, **settings: int) -> None:
    """One batch of random sentences, and what is asked of the model."""

    def solve(after: _After) -> tuple[Tokens, float]:
        hypotheses, margin, _ = _search(after, **settings)
        tokens, narrow = _choose(hypotheses, settings["eos_id"], 0.6 if alpha is None else alpha)
        return tokens, min(margin, narrow)

    table, source, expected = _toy_batch(vocab, lengths, solve)
    toy = _expect_beam(function, table, source, expected, alpha, **settings)
    steps = max(_search(_say(table, row), **settings)[2] for row in source)
    _expect_manners(toy, steps, settings["max_len"])


def check_beam_search(function: Callable) -> None:
    """Equals the rule of the exercise, greedy decoding for a beam of 1, the best of all for a beam of everything."""
    usual = {"bos_id": 2, "eos_id": 3}
    for alpha, settings in ((0.0, {"beam": 3, "max_len": 6} | usual), (1.5, {"beam": 4, "max_len": 7} | usual)):
        table, rows = _telling_batch(5, alpha, **settings)
        _expect_beam(function, table, torch.stack([row for row, _ in rows]), [t for _, t in rows], alpha, **settings)
    _check_beam(function, 6, [3, 5, 2], 0.0, beam=2, max_len=8, **usual)
    _check_beam(function, 5, [4, 2, 3, 5], 1.0, beam=3, max_len=7, bos_id=4, eos_id=0)
    _expect_default(function, beam=6, max_len=12, **usual)
    _check_beam(function, 7, [1, 3, 2], 0.6, beam=1, max_len=9, **usual)
    _check_beam(function, 4, [3, 1], 2.0, beam=7, max_len=5, bos_id=0, eos_id=1)
    _check_beam(function, 6, [3, 2], 0.6, beam=2, max_len=1, **usual)
    _check_beam(function, 5, [2, 3], 0.6, beam=2, max_len=60, **usual)
    _expect_greedy_and_best(function)
    _expect_on_its_device(function, 3)


_OTHER_PENALTIES = (0.0, 0.5, 0.7, 0.75, 0.8, 1.0)


def _expect_default(function: Callable, **settings: int) -> None:
    """Sentences that every other usual penalty translates otherwise."""
    while True:
        table, kept, left = 2 * randn(509, 5, dtype=torch.float32), [], set(_OTHER_PENALTIES)
        for _ in range(300):
            row = randint(4, 40, (4,))
            hypotheses, margin, _ = _search(_say(table, row), **settings)
            right, narrow = _choose(hypotheses, settings["eos_id"], 0.6)
            told = {p for p in left if _choose(hypotheses, settings["eos_id"], p)[0] != right}
            if told and min(margin, narrow) > 1e-3:
                kept, left = [*kept, (row, right)], left - told
            if not left:
                source, expected = torch.stack([row for row, _ in kept]), [tokens for _, tokens in kept]
                _expect_beam(function, table, source, expected, None, **settings)
                return


def _make_distant_toy():
    class Distant(nn.Module):
        """A model and a source elsewhere than on the CPU: torch's "meta" device, which holds no values."""

        def __init__(self):
            super().__init__()
            self.strange = ""

        def encode(self, source):
            return torch.zeros(*source.shape, 1, device="meta")

        def decode(self, target, memory, source):
            self.strange = self.strange or ("" if target.device == source.device else str(target.device))
            return torch.zeros(*target.shape, 6, device="meta")

    return Distant()


def _expect_on_its_device(function: Callable, *beam: int) -> None:
    """Fail if the target is made on the CPU when the source is elsewhere."""
    toy = place(_make_distant_toy, beside=function)()
    trouble = ""
    try:
        function(toy, torch.zeros(2, 3, dtype=torch.long, device="meta"), *beam, 4, 2, 3)
    except Exception as error:  # there are no values to decide by: whatever comes after the first step may fail
        trouble = str(error)
    mixed = toy.strange or any(hint in trouble for hint in ("same device", "expected device"))
    assert not mixed, (
        "tensors are made on the CPU and meet a source that is on a GPU: pass `device=source.device` when you make them"
    )


def _expect_greedy_and_best(function: Callable) -> None:
    table, source, expected = _toy_batch(6, [3, 2, 4], lambda after: _greedy(after, 7, 2, 3))
    toy = place(Toy, beside=function)(table)
    value = call(function, toy, source, 1, 7, 2, 3)
    assert value == expected, f"a beam of 1 should say what greedy decoding says: expected {expected}, got {value}"
    for alpha in (0.0, 1.0):
        table, source, expected = _toy_batch(4, [2, 3], lambda after, a=alpha: _best_of_all(after, 3, 2, 3, a))
        toy = place(Toy, beside=function)(table)
        value = call(function, toy, source, 64, 3, 2, 3, length_penalty=alpha)
        assert value == expected, (
            f"a beam of 64 holds every translation of up to three of four tokens, so it should find the best of all, "
            f"{expected} for length_penalty={alpha}; got {value}"
        )


# ---- attention with a cache


def _make_attention(dim, heads, dropout, dtype):
    from multi_head_attention import MultiHeadAttention

    return MultiHeadAttention(dim, heads, dropout).to(dtype)


def _attention_with_weights(beside: Callable, dim: int, heads: int, dropout: float, dtype: torch.dtype) -> tuple:
    """The attention of chapter 04, where student code lives, and its weights."""
    shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": (dim, dim) for name in ("Wq", "Wk", "Wv", "WO")}
    shapes |= {f"{name}.bias": (dim,) for name in ("Wq", "Wk", "Wv", "WO")}
    attention = place(_make_attention, beside=beside)(dim, heads, dropout, dtype)
    return attention, randomise(attention, shapes, dtype)


_Cache = tuple[Tensor, Tensor]
_State = Mapping[str, Tensor]


def _newest(state: _State, x: Tensor, heads: int, mask: Tensor | None = None) -> Tensor:
    """What full self-attention gives the last position."""
    return multi_head_attention(state, "", x[:, -1:], x, heads, mask)


def _kept(state: _State, x: Tensor, heads: int) -> _Cache:
    """The keys and values of all positions."""
    keys, values = (linear(state, name, x).unflatten(-1, (heads, -1)).transpose(1, 2) for name in ("Wk", "Wv"))
    return keys, values


def _instead(state: _State, **other: str) -> _State:
    """The weights when a map takes the place of another: `Wq="Wk"` uses the keys' map for the queries."""
    return {**state, **{f"{a}.{part}": state[f"{b}.{part}"] for a, b in other.items() for part in ("weight", "bias")}}


def _times(state: _State, name: str, factor: float) -> _State:
    return {**state, **{f"{name}.{part}": factor * state[f"{name}.{part}"] for part in ("weight", "bias")}}


def _expect_step(result: Any) -> tuple[Tensor, _Cache]:
    assert result is not None, "cached_attention returned None: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == 2, (
        f"cached_attention should return a pair (output, cache), got a {result.__class__.__name__}"
    )
    output, cache = result
    assert isinstance(cache, tuple | list) and len(cache) == 2, (
        f"the cache should be a pair (keys, values), got a {cache.__class__.__name__}"
    )
    return output, (cache[0], cache[1])


def _masks(kind: str, batch: int, heads: int, t: int) -> Tensor | None:
    if kind == "none":
        return None
    shape = {"(1, t)": (1, t), "(B, 1, t)": (batch, 1, t), "(B, h, 1, t)": (batch, heads, 1, t)}[kind]
    # A first position that may not see even itself would hide the difference between a mask turned round and none.
    return torch.ones(shape, dtype=torch.bool) if t == 1 else rand_mask(*shape, empty_row=t == 4)


def _attention_mistakes(x: Tensor, state: _State, heads: int, mask: Tensor | None) -> dict[str, Callable[[], Tensor]]:
    dim, last = x.shape[-1], x[:, -1:]
    no_map = {**state, "WO.weight": torch.eye(dim, dtype=torch.float64), "WO.bias": 0 * state["WO.bias"]}
    turned = None if mask is None else ~mask
    rolled = None if mask is None else mask.roll(-1, -1)
    return {
        "the mask is not used": lambda: _newest(state, x, heads),
        "the mask is turned round: True means that a position may be attended to": lambda: _newest(
            state, x, heads, turned
        ),
        "the cache is not used: the new position sees only itself": lambda: _newest(state, last, heads),
        "the new position does not see itself: join its key and value to the cache first": lambda: multi_head_attention(
            state, "", last, x[:, :-1], heads
        ),
        "the new position does not see the oldest one": lambda: multi_head_attention(state, "", last, x[:, 1:], heads),
        "the query is made with Wk: use Wq": lambda: _newest(_instead(state, Wq="Wk"), x, heads, mask),
        "keys and values are exchanged": lambda: _newest(_instead(state, Wk="Wv", Wv="Wk"), x, heads, mask),
        "the scores are not divided by √(d/h)": lambda: _newest(
            _times(state, "Wq", (dim / heads) ** 0.5), x, heads, mask
        ),
        "the scores are divided by √d: in a head it is √(d/h)": lambda: _newest(
            _times(state, "Wq", heads**-0.5), x, heads, mask
        ),
        "one head does the work of all: split into heads": lambda: _newest(state, x, 1, mask),
        "WO is missing": lambda: _newest(no_map, x, heads, mask),
        "the newest keys and values come before the older ones: the mask then meets other positions": lambda: _newest(
            state, x, heads, rolled
        ),
    }


def check_cached_attention(function: Callable) -> None:
    """Step by step as the full attention: outputs, caches, masks, gradients, dropout; the old cache is left alone."""
    for kind in ("none", "(B, 1, t)", "(1, t)", "(B, h, 1, t)"):
        _check_steps(function, 2, 4, 2, kind, torch.float64)
    for batch, dim, heads, kind in (
        (3, 6, 2, "(B, h, 1, t)"),
        (1, 6, 3, "(1, t)"),
        (2, 5, 1, "(B, 1, t)"),
        (2, 3, 3, "none"),
    ):
        _check_steps(function, batch, dim, heads, kind, torch.float32)
    _expect_nothing_allowed(function)
    _expect_gradients_through_the_cache(function)
    _expect_dropout(function)


def _check_steps(function: Callable, batch: int, dim: int, heads: int, kind: str, dtype: torch.dtype) -> None:
    attention, state = _attention_with_weights(function, dim, heads, 0.0, dtype)
    x = randn(batch, 4, dim)
    cache = None
    for t in range(1, 5):
        mask = _masks(kind, batch, heads, t)
        x_t = x[:, t - 1 : t].to(dtype)
        kept = {} if cache is None else {"cache[0]": cache[0], "cache[1]": cache[1]}
        with unchanged(x_t=x_t, **kept):
            output, following = _expect_step(call(function, attention, x_t, cache, mask))
        keys, values = _kept(state, x[:, :t], heads)
        where = f"at position {t} with a mask {kind}" if mask is not None else f"at position {t}"
        # The cache first: a mistake in it shows in the outputs only later.
        for number, (got, right, name) in enumerate(zip(following, (keys, values), ("keys", "values"), strict=True)):
            expect_close(
                got,
                right,
                f"the cached {name} {where}",
                {
                    "the newest comes first: join it behind the older ones": lambda right=right: right.roll(1, 2),
                    "keys and values are exchanged": lambda n=number, kv=(values, keys): kv[n],
                    "the older positions are lost": lambda right=right: right[:, :, -1:],
                    "the heads are merged again: keep (B, h, t, d/h)": lambda right=right: right.transpose(
                        1, 2
                    ).flatten(2),
                    "the inputs are kept, not their keys and values": lambda x=x, t=t: x[:, :t],
                },
                dtype,
            )
        mistakes = _attention_mistakes(x[:, :t], state, heads, mask)
        expect_close(output, _newest(state, x[:, :t], heads, mask), f"the output {where}", mistakes, dtype)
        cache = following


def _expect_nothing_allowed(function: Callable) -> None:
    attention, state = _attention_with_weights(function, 4, 2, 0.0, torch.float64)
    output, _ = _expect_step(call(function, attention, randn(2, 1, 4), None, torch.zeros(2, 1, 1, dtype=torch.bool)))
    expect_close(output, state["WO.bias"].expand(2, 1, 4), "the output of a position that may attend to nothing")


def _expect_gradients_through_the_cache(function: Callable) -> None:
    attention, state = _attention_with_weights(function, 4, 2, 0.0, torch.float64)
    mine = randn(2, 3, 4).requires_grad_()
    theirs = mine.detach().clone().requires_grad_()
    outputs, expected, cache = [], [], None
    for t in range(1, 4):
        output, cache = _expect_step(call(function, attention, mine[:, t - 1 : t], cache))
        outputs.append(output)
        expected.append(_newest(state, theirs[:, :t], 2))
    direction = randn(2, 3, 4)
    result = torch.cat(outputs, 1)
    assert result.requires_grad, (
        "the result is cut off from the graph, so nothing can learn through it: remove `.detach()`, `.data` or no_grad"
    )
    (got,) = torch.autograd.grad(result, [mine], direction)
    (right,) = torch.autograd.grad(torch.cat(expected, 1), [theirs], direction)
    expect_close(got, right, "the gradient that reaches earlier positions through the cache")


def _expect_dropout(function: Callable) -> None:
    attention, state = _attention_with_weights(function, 4, 2, 1.0, torch.float64)
    x = randn(2, 1, 4)
    attention.train()
    output, _ = _expect_step(call(function, attention, x, None))
    expect_close(
        output,
        state["WO.bias"].expand(2, 1, 4),
        "the output in training when every weight is dropped",
        {"`attention.dropout` is not used on the weights": lambda: _newest(state, x, 2)},
    )
    attention.eval()
    output, _ = _expect_step(call(function, attention, x, None))
    expect_close(output, _newest(state, x, 2), "the output in evaluation mode, where nothing is dropped")


# ---- BLEU


def _ngrams(tokens: Sequence[str], n: int) -> Counter:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def _bleu(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    orders: int = 4,
    clip: bool = True,
    once: bool = False,
    recall: bool = False,
    arithmetic: bool = False,
    add: int = 0,
    zero_as: float | None = None,
    brevity: Callable[[int, int], float] = lambda h, r: 1.0 if h >= r else math.exp(1 - r / h),
) -> float:
    """BLEU in its own words; the options make mistakes."""
    precisions = []
    for n in range(1, orders + 1):
        matches = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            found, wanted = _ngrams(hypothesis, n), _ngrams(reference, n)
            if once:
                found, wanted = Counter(dict.fromkeys(found, 1)), Counter(dict.fromkeys(wanted, 1))
            matches += sum(min(c, wanted[g]) if clip else c * (g in wanted) for g, c in found.items())
            total += sum((wanted if recall else found).values())
        add_here = add if n > 1 else 0
        precisions.append((matches + add_here) / (total + add_here) if total + add_here else 0.0)
    h, r = sum(map(len, hypotheses)), sum(map(len, references))
    if zero_as is not None:
        precisions = [p or zero_as for p in precisions]
    if not all(precisions) and not arithmetic:
        return 0.0
    mean = sum(precisions) / orders if arithmetic else math.exp(sum(map(math.log, precisions)) / orders)
    return 100 * brevity(h, r) * mean


def _by_sentence(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    values = [_bleu([h], [r]) for h, r in zip(hypotheses, references, strict=True)]
    return sum(values) / len(values)


def _brevity_by_sentence(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    each = [math.exp(min(0.0, 1 - len(r) / len(h))) if h else 0.0 for h, r in zip(hypotheses, references, strict=True)]
    return _bleu(hypotheses, references, brevity=lambda h, r: 1.0) * sum(each) / len(each)


def _in_places(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    pairs = [(a, b) for h, r in zip(hypotheses, references, strict=True) for a, b in zip(h, r, strict=False)]
    return 100 * sum(a == b for a, b in pairs) / len(pairs)


def _one_bag(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """One precision for the n-grams of all four lengths together."""
    matches = total = 0
    for h, r in zip(hypotheses, references, strict=True):
        for n in range(1, 5):
            matches += (_ngrams(h, n) & _ngrams(r, n)).total()
            total += _ngrams(h, n).total()
    lengths = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * matches / total * min(1.0, math.exp(1 - lengths[1] / lengths[0]))


def _without_short(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    pairs = [(h, r) for h, r in zip(hypotheses, references, strict=True) if len(h) >= 4]
    return _bleu([h for h, _ in pairs], [r for _, r in pairs]) if pairs else 0.0


def _add_one_everywhere(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    lengths = sum(map(len, hypotheses)), sum(map(len, references))
    product = 1.0
    for n in range(1, 5):
        pairs = [(_ngrams(h, n), _ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
        product *= (sum((a & b).total() for a, b in pairs) + 1) / (sum(a.total() for a, _ in pairs) + 1)
    return 100 * product**0.25 * min(1.0, math.exp(1 - lengths[1] / lengths[0]))


_BLEU_MISTAKES: dict[str, Callable[[Sequence, Sequence], float]] = {
    "n-grams of all lengths are counted in one bag: each length has a precision of its own": _one_bag,
    "pairs whose hypothesis has fewer than four tokens are skipped: they count like the others": _without_short,
    "a fraction between 0 and 1: multiply by 100": lambda h, r: _bleu(h, r) / 100,
    "a mean of the BLEUs of the sentences: count the n-grams of the whole corpus, then divide": _by_sentence,
    "matches are not clipped: an n-gram counts at most as often as the reference has it": lambda h, r: _bleu(
        h, r, clip=False
    ),
    "each different n-gram counts once: count how often it occurs": lambda h, r: _bleu(h, r, once=True),
    "recall, not precision: divide by the number of n-grams of the hypotheses": lambda h, r: _bleu(h, r, recall=True),
    "the arithmetic mean of the four precisions: take the geometric one": lambda h, r: _bleu(h, r, arithmetic=True),
    "n-grams go up to 3: up to 4": lambda h, r: _bleu(h, r, orders=3),
    "only single tokens are compared: n goes from 1 to 4": lambda h, r: _bleu(h, r, orders=1),
    "n-grams go up to 5: up to 4": lambda h, r: _bleu(h, r, orders=5),
    "there is no brevity penalty": lambda h, r: _bleu(h, r, brevity=lambda a, b: 1.0),
    "the brevity penalty is turned round: it punishes hypotheses that are too short": lambda h, r: _bleu(
        h, r, brevity=lambda a, b: min(1.0, math.exp(1 - a / b))
    ),
    "the brevity penalty exceeds 1 when the hypotheses are longer: it is at most 1": lambda h, r: _bleu(
        h, r, brevity=lambda a, b: math.exp(1 - b / a)
    ),
    "the brevity penalty is the ratio of the lengths: it is exp(1 - r/h)": lambda h, r: _bleu(
        h, r, brevity=lambda a, b: min(1.0, a / b)
    ),
    "a brevity penalty for each sentence: compare the lengths of the whole corpus": _brevity_by_sentence,
    "the sentences are joined into one, so that n-grams cross their borders": lambda h, r: _bleu(
        [list(itertools.chain(*h))], [list(itertools.chain(*r))]
    ),
    "1 is added to the counts: no smoothing here": lambda h, r: _bleu(h, r, add=1),
    "1 is added to all counts, those of single tokens too: no smoothing here": _add_one_everywhere,
    "a precision of 0 is left out of the mean: then BLEU is 0": lambda h, r: _bleu(h, r, zero_as=1.0),
    "a precision of 0 is replaced by a small number: then BLEU is 0": lambda h, r: _bleu(h, r, zero_as=1e-9),
    "tokens are compared place by place, not as n-grams": _in_places,
    "hypotheses and references are exchanged": lambda h, r: _bleu(r, h),
}


def _corpus(sentences: int, words: str, longest: int, change: float) -> tuple[list[list[str]], list[list[str]]]:
    """References of random words, and hypotheses that differ from them by dropped, doubled and other words."""
    references, hypotheses = [], []
    for _ in range(sentences):
        reference = random.choices(words, k=random.randint(1, longest))
        hypothesis = []
        for word in reference:
            draw = random.random()
            hypothesis += [[], [word, word], random.choices(words)][int(3 * draw / change)] if draw < change else [word]
        references.append(reference)
        hypotheses.append(hypothesis)
    return hypotheses, references


_FIXED_CORPORA = {
    "where one sentence is too short and the other too long": (
        [list("abcd"), list("abcdefgh")],
        [list("abcdef"), list("abcdef")],
    ),
    "of a perfect translation": ([list("abcde")], [list("abcde")]),
    "with an empty hypothesis": ([[], list("abcdef")], [list("ab"), list("abcdeg")]),
    "of nothing but empty hypotheses": ([[], []], [list("ab"), list("abcd")]),
    "of one word each": ([["a"], ["b"]], [["a"], ["b"]]),
    "of hypotheses of three words": ([list("abc")], [list("abc")]),
    "with a repeated word": ([list("aaaaaaabzbcde")], [list("aaaabcdef")]),
    "with nothing in common": ([list("abcde")], [list("fghij")]),
    "of hypotheses that are too short": ([list("abcde")], [list("abcdefgh")]),
    "of hypotheses that are too long": ([list("abcdefgh")], [list("abcde")]),
    "with upper and lower case": ([["A", "b", "c", "d", "e"]], [["a", "b", "c", "d", "e"]]),
}


def check_corpus_bleu(function: Callable) -> None:
    """Fixed corpora with one difficulty each, some hundred random ones, and the error."""
    for name, (hypotheses, references) in _FIXED_CORPORA.items():
        _expect_bleu(function, hypotheses, references, f"BLEU {name}")
    for number in range(80):
        words, longest = random.choice((("ab", 7), ("abcde", 12), ("abcdefghijklmnopqrst", 15)))
        corpus = _corpus(random.randint(1, 6), words, longest, random.choice((0.1, 0.3, 0.6)))
        _expect_bleu(function, *corpus, "BLEU of random sentences")
        if number % 10 == 0:
            _expect_bleu(function, *_long_corpus(), "BLEU of random sentences")
    two = [["a"], ["b"]]
    expect_raises(ValueError, lambda: function(two, two[:1]), "fewer references than hypotheses")
    expect_raises(ValueError, lambda: function(two[:1], two), "fewer hypotheses than references")


def _long_corpus() -> tuple[list[list[str]], list[list[str]]]:
    return _corpus(20, "abcdefghij", 20, 0.3)


def _expect_bleu(function: Callable, hypotheses: list[list[str]], references: list[list[str]], name: str) -> None:
    copies = [list(tokens) for tokens in hypotheses], [list(tokens) for tokens in references]
    value = _call_bleu(function, hypotheses, references, name)
    causes = {cause: lambda f=f: f(*copies) for cause, f in _BLEU_MISTAKES.items()}
    expect_number(value, _bleu(*copies), name, causes)
    assert (hypotheses, references) == copies, "the lists of tokens were changed: work on copies"


def _call_bleu(function: Callable, hypotheses: list[list[str]], references: list[list[str]], name: str) -> Any:
    try:
        return function(hypotheses, references)
    except (AssertionError, NotImplementedError):
        raise
    except Exception as error:
        raise AssertionError(f"{name} raised {type(error).__name__}: {error}") from error


# ---- one step of a beam


def _best(totals: Tensor, k: int) -> Step:
    best, at = totals.flatten(1).topk(k, dim=1)
    return best, at // totals.shape[-1], at % totals.shape[-1]


def _continued(log_probs: Tensor, ended: Tensor, eos_id: int, cost: float | None = 0.0) -> Tensor:
    """Log-probabilities in which what has ended goes on with `eos_id` alone, at this cost, or at the model's own."""
    alone = torch.full_like(log_probs, -torch.inf)
    alone[..., eos_id] = log_probs[..., eos_id] if cost is None else cost
    return torch.where(ended.unsqueeze(-1), alone, log_probs)


def _right_step(sums: Tensor, log_probs: Tensor, ended: Tensor, eos_id: int) -> Step:
    return _best(sums.unsqueeze(-1) + _continued(log_probs, ended, eos_id), sums.shape[1])


def _own_best(sums: Tensor, log_probs: Tensor, ended: Tensor, eos_id: int) -> Step:
    values, tokens = (sums.unsqueeze(-1) + _continued(log_probs, ended, eos_id)).max(-1)
    best, parents = values.sort(dim=1, descending=True)
    return best, parents, tokens.gather(1, parents)


def _ended_first(sums: Tensor, log_probs: Tensor, ended: Tensor, eos_id: int) -> Step:
    totals = sums.unsqueeze(-1) + _continued(log_probs, ended, eos_id)
    ahead = totals + 1e6 * (ended.unsqueeze(-1) & (totals > -torch.inf))
    _, parents, tokens = _best(ahead, sums.shape[1])
    return totals.flatten(1).gather(1, parents * log_probs.shape[-1] + tokens), parents, tokens


def _whole_batch(sums: Tensor, log_probs: Tensor, ended: Tensor, eos_id: int) -> Step:
    totals = sums.unsqueeze(-1) + _continued(log_probs, ended, eos_id)
    best, at = totals.flatten().topk(sums.numel())
    shape, vocab = sums.shape, log_probs.shape[-1]
    return best.view(shape), (at // vocab % sums.shape[1]).view(shape), (at % vocab).view(shape)


def _by_k(sums: Tensor, log_probs: Tensor, ended: Tensor, eos_id: int) -> Step:
    best, parents, tokens = _right_step(sums, log_probs, ended, eos_id)
    at, k = parents * log_probs.shape[-1] + tokens, sums.shape[1]
    return best, at // k, at % k


def _places(sums: Tensor, log_probs: Tensor, ended: Tensor, eos_id: int) -> Step:
    best, parents, tokens = _right_step(sums, log_probs, ended, eos_id)
    return best, parents * log_probs.shape[-1] + tokens, tokens


def _step_with(change: Callable[[Tensor, Tensor, Tensor, int], Tensor]) -> Callable[..., Step]:
    """A step that takes the best of other totals."""
    return lambda sums, lp, ended, eos: _best(change(sums, lp, ended, eos), sums.shape[1])


_STEP_MISTAKES: dict[str, Callable[..., Step]] = {
    "a hypothesis that has ended goes on past its end: it has one continuation, `eos_id`": _step_with(
        lambda s, x, e, eos: s.unsqueeze(-1) + x
    ),
    "the `eos_id` of a hypothesis that has ended is paid for: it costs nothing": _step_with(
        lambda s, x, e, eos: s.unsqueeze(-1) + _continued(x, e, eos, None)
    ),
    "a hypothesis that has ended is lost: it goes on with `eos_id`": _step_with(
        lambda s, x, e, eos: s.unsqueeze(-1) + _continued(x, e, eos, -torch.inf)
    ),
    "a hypothesis that has ended may go on with any token at no cost: with `eos_id` alone": _step_with(
        lambda s, x, e, eos: s.unsqueeze(-1) + x.masked_fill(e.unsqueeze(-1), 0.0)
    ),
    "the sums so far are forgotten: add them": _step_with(lambda s, x, e, eos: _continued(x, e, eos)),
    "the sums are multiplied by the log-probabilities: add": _step_with(
        lambda s, x, e, eos: s.unsqueeze(-1) * _continued(x, e, eos).clamp(min=-1e9)
    ),
    "probabilities are added: add the log-probabilities as they are": _step_with(
        lambda s, x, e, eos: s.unsqueeze(-1) + _continued(x, e, eos).exp()
    ),
    "the worst continuations are kept: keep those with the highest sums": _step_with(
        lambda s, x, e, eos: -(s.unsqueeze(-1) + _continued(x, e, eos))
    ),
    "each hypothesis goes on with its own best token: all continuations of a sentence compete": _own_best,
    "a hypothesis that has ended keeps its place whatever comes. That is another published convention; here it "
    "competes like every continuation": _ended_first,
    "the sentences of the batch compete with one another: each has a beam of its own": _whole_batch,
    "parents and tokens are exchanged": lambda *given: (lambda s, p, t: (s, t, p))(*_right_step(*given)),
    "a place in the flattened continuations is divided by k: V continuations belong to each parent": _by_k,
    "the parents are places in the flattened continuations: divide by V": _places,
    "`eos_id` is taken to be 3: use the argument": lambda s, x, e, eos: _right_step(s, x, e, 3),
    "`eos_id` is taken to be 1: use the argument": lambda s, x, e, eos: _right_step(s, x, e, 1),
}


def _step_case(batch: int, k: int, vocab: int, eos_id: int, first: bool) -> tuple[Tensor, Tensor, Tensor, int]:
    """A step without a close call: the first one of a search, or one with hypotheses that have ended."""
    while True:
        sums = -2 * randn(batch, k).abs().cumsum(1)
        if first:
            sums[:, 1:], sums[:, 0] = -torch.inf, 0.0
        log_probs = (2 * randn(batch, k, vocab)).log_softmax(-1)
        ended = torch.zeros(batch, k, dtype=torch.bool) if first else rand_mask(batch, k)
        totals = (sums.unsqueeze(-1) + _continued(log_probs, ended, eos_id)).flatten(1)
        ranked = totals.sort(dim=1, descending=True).values[:, : k + 1]
        if (ranked[:, :-1] - ranked[:, 1:]).nan_to_num(nan=0.0).min() > 1e-3:
            return sums, log_probs, ended, eos_id


def check_beam_step(function: Callable) -> None:
    """The k best continuations, by value, parent and token; what has ended; gradients, dtypes, devices."""
    sizes = [(3, 3, 5, 3), (2, 4, 7, 0), (1, 1, 4, 1), (4, 2, 6, 5), (1, 5, 5, 2), (5, 3, 4, 3)]
    for batch, k, vocab, eos_id in sizes:
        for first in (False, True) if k > 1 else (True,):
            case = _step_case(batch, k, vocab, eos_id, first)
            for dtype in (torch.float32, torch.float64):
                sums, log_probs = (x.to(dtype) for x in case[:2])
                ended = case[2].clone()
                with unchanged(sums=sums, log_probs=log_probs, ended=ended):
                    value = call(function, sums, log_probs, ended, eos_id)
                wrong = {cause: lambda f=f, case=case: f(*case) for cause, f in _STEP_MISTAKES.items()}
                name = f"beam_step of {batch} x {k} hypotheses, {vocab} tokens, eos_id={eos_id}"
                expect_step(value, sums, _right_step(*case), name, wrong)
                expect_tensor(value[0], sums.shape, dtype, "the sums")
    sums, log_probs, ended, eos_id = _step_case(2, 3, 5, 1, False)
    mine = log_probs.clone().requires_grad_()
    result = call(function, sums, mine, ended, eos_id)[0]
    assert result.requires_grad, "the sums are cut off from the graph: remove `.detach()`, `.data` or no_grad"
    (got,) = torch.autograd.grad(result.sum(), [mine])
    theirs = log_probs.clone().requires_grad_()
    (right,) = torch.autograd.grad(_right_step(sums, theirs, ended, eos_id)[0].sum(), [theirs])
    expect_close(got, right, "the gradient of the sums")
    expect_device(function, {"sums": sums, "log_probs": log_probs, "ended": ended, "eos_id": eos_id})


# ---- merges

_Words = Mapping[str, int]
_Counts = Mapping[Pair, int]


def _joined(parts: list[str], pair: Pair) -> list[str]:
    """The pieces of a word, with each occurrence of the pair, from the left, as one piece."""
    result, i = [], 0
    while i < len(parts):
        if tuple(parts[i : i + 2]) == pair:
            result.append(parts[i] + parts[i + 1])
            i += 2
        else:
            result.append(parts[i])
            i += 1
    return result


def _joined_as_text(parts: list[str], pair: Pair) -> list[str]:
    return " ".join(parts).replace(" ".join(pair), "".join(pair)).split()


def _first_in_order(counts: _Counts) -> Pair:
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _merges(
    words: _Words,
    count: int,
    *,
    choose: Callable[[_Counts], Pair] = _first_in_order,
    join: Callable[[list[str], Pair], list[str]] = _joined,
    weigh: bool = True,
    sets: bool = False,
    at_least: int = 1,
    mark: str = "",
    lower: bool = False,
) -> list[Pair]:
    """Byte-pair encoding in its own words; the options make mistakes."""
    spelled = [([*(word.lower() if lower else word), *([mark] if mark else [])], n) for word, n in words.items()]
    merges = []
    while len(merges) < count:
        counts: Counter[Pair] = Counter()
        for parts, n in spelled:
            pairs = list(itertools.pairwise(parts))
            for pair in set(pairs) if sets else pairs:
                counts[pair] += n if weigh else 1
        if not counts or max(counts.values()) < at_least:
            break
        merges.append(choose(counts))
        spelled = [(join(parts, merges[-1]), n) for parts, n in spelled]
    return merges


def _counted_once(words: _Words, count: int) -> list[Pair]:
    counts: Counter[Pair] = Counter()
    for word, n in words.items():
        for pair in itertools.pairwise(word):
            counts[pair] += n
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:count]


_MERGE_MISTAKES: dict[str, Callable[[_Words, int], list]] = {
    "a word counts once, however often it occurs: its pairs count that often": lambda w, c: _merges(w, c, weigh=False),
    "a pair counts once in a word, even if it stands there twice": lambda w, c: _merges(w, c, sets=True),
    "ties are settled by the joined pieces: compare the pairs": lambda w, c: _merges(
        w, c, choose=lambda counts: min(counts, key=lambda pair: (-counts[pair], "".join(pair)))
    ),
    "a tie goes to the pair that was met first: it goes to the first in sorted order": lambda w, c: _merges(
        w, c, choose=lambda counts: max(counts, key=counts.get)
    ),
    "a tie goes to the pair that is last in sorted order: it goes to the first": lambda w, c: _merges(
        w, c, choose=lambda counts: max(counts, key=lambda pair: (counts[pair], pair))
    ),
    "the rarest pair is merged: merge the commonest": lambda w, c: _merges(
        w, c, choose=lambda counts: min(counts, key=lambda pair: (counts[pair], pair))
    ),
    "pieces never grow: count again after each merge, with the merged piece": _counted_once,
    "pieces are joined as text, so that the end of a longer piece is taken for the pair: compare whole pieces": (
        lambda w, c: _merges(w, c, join=_joined_as_text)
    ),
    "pairs that occur only once are left: go on until nothing is left to merge": lambda w, c: _merges(w, c, at_least=2),
    "a mark is put at the end of each word: start from its characters alone": lambda w, c: _merges(w, c, mark="</w>"),
    "words are turned to lower case: leave them as they are": lambda w, c: _merges(w, c, lower=True),
    "one merge too few: `count` of them": lambda w, c: _merges(w, c - 1),
    "one merge too many: `count` of them": lambda w, c: _merges(w, c + 1),
    "merged pieces are returned: return the pairs": lambda w, c: ["".join(pair) for pair in _merges(w, c)],
}

_FIXED_WORDS: list[tuple[_Words, int]] = [
    ({"banana": 3, "bandana": 2, "cabana": 4}, 6),
    ({"aaaa": 2, "aab": 3, "baa": 1}, 9),
    ({"ab": 1, "ba": 1, "abba": 1}, 20),
    ({"abab": 2, "cab": 3, "cabab": 1, "ca": 5}, 20),
    ({"Dog": 2, "dog": 3, "Do": 1}, 20),
    ({"x": 7}, 3),
    ({}, 3),
    ({"her": 4, "here": 2}, 0),
]


def check_learn_merges(function: Callable) -> None:
    """Fixed words with one difficulty each, and random ones of few letters, where ties and repeats abound."""
    cases = list(_FIXED_WORDS)
    for letters in ("ab", "abc", "abcd", "abcAB") * 10:
        made = ("".join(random.choices(letters, k=random.randint(1, 8))) for _ in range(random.randint(3, 9)))
        cases.append(({word: random.randint(1, 4) for word in made}, random.choice((3, 6, 40))))
    for words, count in cases:
        copy = dict(words)
        value = call(function, words, count)
        wrong = {cause: f(copy, count) for cause, f in _MERGE_MISTAKES.items()}
        expect_merges(value, _merges(copy, count), f"learn_merges of {_listed(copy)}, count={count}", wrong)
        assert words == copy, "the dict of words was changed: work on a copy"
    assert place(_words_after, beside=function)(function, {"her": 4, "here": 2}, 2) == {"her": 4, "here": 2}, (
        "the dict of words was changed: work on a copy"
    )


def _words_after(function, words, count):
    """What the dict holds after the call: seen where the function runs, which in the grader gets a copy of it."""
    function(words, count)
    return words


def _listed(words: _Words) -> str:
    return ", ".join(f"{word} ({n})" for word, n in words.items()) or "no words"
