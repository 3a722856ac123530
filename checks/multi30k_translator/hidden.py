"""Hidden tests of chapter 10."""

import itertools
import math
import operator
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
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
    draw_probability,
    expect,
    expect_close,
    expect_device,
    expect_dropout_anew,
    expect_matches,
    expect_not_calling,
    expect_number,
    expect_raises,
    expect_tensor,
    gradients_of,
    place,
    rand_mask,
    randint,
    randn,
    randomise,
    unchanged,
)
from autograder.checks import draw_size as drawn
from checks.chance import drawn_between
from checks.formulas import linear, multi_head_attention
from checks.multi30k_translator import mistakes as m
from checks.multi30k_translator.visible import Pair, Step, expect_lists, expect_merges, expect_pair, expect_step

Tokens = list[int]
# What is right to float32's own precision is right: a constant, or the earlier chapters' attention, may have no more.
_FLOAT32 = 2e-5


# ---- the loss


def _loss(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> Tensor:
    count = int((targets != pad_id).sum())
    flat, right = logits.flatten(0, 1), targets.flatten()
    total = F.cross_entropy(flat, right, ignore_index=pad_id, label_smoothing=smoothing, reduction="sum")
    return total / max(count, 1)


_LOSS_MISTAKES: dict[Mistake, Callable[[Tensor, Tensor, float, int], Tensor]] = {
    m.label_smoothed_loss.MEAN_OF_MEANS: lambda x, t, s, p: torch.stack(
        [_loss(x[b : b + 1], t[b : b + 1], s, p) for b in range(len(t))]
    ).mean(),
    m.label_smoothed_loss.PAD_IS_1: lambda x, t, s, p: _loss(x, t, s, 1),
}


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
        _loss_case(4, 1, 5, 0.2, 3),
    ]
    for case in cases[:2]:
        case["targets"][0, :2] = torch.tensor([0, 1])  # tokens that are padding elsewhere
    # Long sentences, many sentences, a wide vocabulary (a unit matrix of it fits in memory); no round share is spread.
    sizes = [
        _loss_case(drawn(1, 3), drawn(401, 1200), drawn(3, 9), drawn_between(0.011, 0.049), drawn(0, 2)),
        _loss_case(drawn(101, 600), drawn(2, 9), drawn(3, 9), drawn_between(0.26, 0.29), drawn(0, 2)),
        _loss_case(drawn(1, 3), drawn(61, 200), drawn(3, 9), drawn_between(0.21, 0.25), drawn(0, 2)),
        _loss_case(drawn(1, 3), drawn(201, 400), drawn(3, 9), drawn_between(0.11, 0.19), drawn(0, 2)),
        _loss_case(drawn(2, 3), drawn(12, 20), drawn(6_000, 9_000), drawn_between(0.51, 0.94), drawn(3, 400)),
    ]
    wide = sizes[-1]["logits"]
    wide += torch.linspace(-2, 2, wide.shape[-1])  # no part of the vocabulary has the mean of all by chance
    # `smoothing` may be a float32 number.
    expect_matches(function, _loss, cases, _LOSS_MISTAKES, "the loss", tolerance=_FLOAT32)
    # A mistake that has a name has been named above.
    expect_matches(function, _loss, sizes, None, "the loss", tolerance=_FLOAT32, gradients=False, device=False)
    library = {"cross_entropy", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss_forward", "kl_div"}
    expect_not_calling(function, list(cases[0].values()), library, m.label_smoothed_loss.LIBRARY)
    large = _loss_case(2, 3, 5, 0.1, 1, scale=1e4)
    large["logits"] = large["logits"].float()
    value = call(function, *large.values())
    expect_tensor(value, (), name="the loss")
    expect(value.isfinite(), m.label_smoothed_loss.NOT_STABLE, "the loss of logits of 10,000", got=value)
    large["logits"] = large["logits"].double()
    expect_close(value, _loss(**large), "the loss of logits of 10,000")
    _expect_padding_alone(function)


def _expect_padding_alone(function: Callable) -> None:
    logits = randn(2, 3, 5).requires_grad_()
    value = call(function, logits, torch.full((2, 3), 4), 0.1, 4)
    expect_tensor(value, (), name="the loss of nothing but padding")
    what = "the loss of nothing but padding"
    expect(value.detach() == 0, m.label_smoothed_loss.NO_REAL_TOKEN, what, expected=0, got=value)
    if value.requires_grad:
        (gradient,) = torch.autograd.grad(value, [logits])
        expect_close(gradient, torch.zeros_like(gradient), "the gradient of nothing but padding")


# ---- the learning rate


def check_noam_factor(function: Callable) -> None:
    """Each part of the curve, for models and warm-ups of several sizes."""
    wide = [(drawn(600, 20_000), drawn(5_000, 50_000)), (drawn(1, 2_000), drawn(1, 9_000))]
    for dim, warmup in ((512, 4000), (128, 25), (7, 10), (16, 1), (1, 3), *wide):
        steps = {
            1,
            2,
            3,
            max(warmup // 2, 1),
            warmup,
            warmup + 1,
            4 * warmup,
            100_000,
            drawn(1, 20_000),
            drawn(200_000, 10**7),
            drawn(10**8, 10**10),
        }
        for step in steps:
            expected = 1 / math.sqrt(dim * step) if step >= warmup else step / math.sqrt(dim * warmup**3)
            asked = f"step {step}, dim {dim} and warmup {warmup}"
            expect_number(call(function, step, dim, warmup), expected, "the factor", asked=asked)


# ---- decoding: a toy translator and what it should say


class Toy(nn.Module):
    """Scores the next token by looking up everything it has been told: source, memory and all target tokens."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)  # (rows, V)
        self.encoded, self.decoded, self.longest = 0, 0, 0
        self.recorded = self.trained = False
        self.eval()

    def _look(self):
        self.recorded = self.recorded or torch.is_grad_enabled()
        self.trained = self.trained or self.training

    def encode(self, source):
        self.encoded += 1
        self._look()
        return 3.0 * source.unsqueeze(-1)  # (B, m, 1)

    def decode(self, target, memory, source):
        if not len(target) == len(memory) == len(source):
            raise ValueError(
                f"target, memory and source have {len(target)}, {len(memory)} and {len(source)} rows: "
                "they should have as many"
            )
        self.decoded += 1
        self.longest = max(self.longest, target.shape[1])
        self._look()
        place = torch.arange(1, target.shape[1] + 1, device=target.device)
        told = source.sum(1) * 7 + memory.sum((1, 2)).long() * 5  # (B,)
        state = ((target + 1) * (place**2 + 3)).cumsum(1) + told.unsqueeze(1)  # (B, n)
        return self.table[state % len(self.table)]


# By which a `Toy` multiplies what stands at each place, plus 1.
_FACTORS = [place**2 + 3 for place in range(1, 1000)]
_SUMS = [0, *itertools.accumulate(_FACTORS)]
_After = Callable[[Tokens], list[float]]  # what a toy says for one sentence: target tokens to log-probabilities


@lru_cache(maxsize=2)  # sentence after sentence is asked of one table, by its logits, too
def _rows(table: Tensor, raw: bool) -> list[list[float]]:
    return (table if raw else table.double().log_softmax(-1)).tolist()


def _say(table: Tensor, row: Tensor, raw: bool = False) -> _After:
    """The log-probabilities of a `Toy` for one sentence, or its logits, in float64 and in lists, which is quicker."""
    rows, told = _rows(table, raw), 22 * int(row.sum())

    def after(tokens: Tokens) -> list[float]:
        return rows[(told + sum(map(operator.mul, tokens, _FACTORS), _SUMS[len(tokens)])) % len(rows)]

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
    vocab: int, lengths: Sequence[int], solve: Callable[[_After], tuple[Tokens, float]], rare: int | None = None
) -> tuple[Tensor, Tensor, list[Tokens]]:
    """A table and sources for which `solve` has no close call, and what it says for each sentence.

    Sums of float32 differ by rounding between right answers, so choices that hang on it are not asked for. The token
    `rare` comes seldom.
    """
    while True:
        table = 2 * randn(509, vocab, dtype=torch.float32)
        if rare is not None:
            table[:, rare] -= 12.0
        source = randint(4, 40, (len(lengths), max(lengths)))
        for row, length in zip(source, lengths, strict=True):
            row[length:] = 1
        solved = [solve(_say(table, row)) for row in source]
        if min(margin for _, margin in solved) > 1e-3:
            return table, source, [tokens for tokens, _ in solved]


def _expect_translations(
    value: Any, expected: list[Tokens], asked: str, mistakes: Callable[[], Mapping[Mistake, list[Tokens]]]
) -> None:
    """A list of lists of numbers; the message shows the first that is wrong and names the mistake, if it is known."""
    expect_lists(value, len(expected))
    if value == expected:
        return
    mistake = next((one for one, wrong in mistakes().items() if value == wrong), Unexplained.VALUES)
    i = next(i for i, (got, right) in enumerate(zip(value, expected, strict=True)) if got != right)
    what = f"sentence {i + 1} of {len(value)}"
    complain(mistake, what, asked=asked, expected=str(expected[i]), got=str(value[i]))


def _steps_together(sentences: list[_After], max_len: int, bos_id: int, eos_id: int) -> int:
    """How many steps a batch takes that stops only when all its sentences say `eos_id` in the same one."""
    said = [_greedy(after, max_len, bos_id, eos_id=-1)[0] for after in sentences]
    return next((step for step, tokens in enumerate(zip(*said, strict=True), 1) if {*tokens} == {eos_id}), max_len)


def _greedy_mistakes(sentences: list[_After], max_len: int, bos_id: int, eos_id: int) -> dict[Mistake, list[Tokens]]:
    def seeing(see: Callable[[Tokens], Tokens], max_len: int = max_len) -> list[Tokens]:
        return [_greedy(lambda tokens, a=after: a(see(tokens)), max_len, bos_id, eos_id)[0] for after in sentences]

    return {
        m.decoding.ONE_TOO_MANY: seeing(lambda tokens: tokens, max_len + 1),
        m.decoding.FIRST_POSITION: seeing(lambda tokens: tokens[:1]),
        m.decoding.NEWEST_ONLY: seeing(lambda tokens: tokens[-1:]),
    }


def _expect_manners(toy: nn.Module, steps: int, max_len: int) -> None:
    """What a decoder may ask of the model."""
    expect(not toy.recorded, m.decoding.GRAPH)
    expect(not toy.trained, m.decoding.TRAINING)
    expect(toy.encoded == 1, m.decoding.ENCODES_AGAIN, "the number of its calls", expected=1, got=toy.encoded)
    told = {"asked": f"max_len {max_len}", "expected": steps, "got": toy.decoded}
    mistake = m.decoding.NEVER_STOPS if toy.decoded <= max_len else m.decoding.ONE_BY_ONE
    expect(toy.decoded <= steps, mistake, "the number of calls of `decode`", **told)


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
        (drawn(401, 1200), [drawn(2, 9) for _ in range(3)], drawn(5, 20), drawn(4, 50), drawn(51, 99)),
        (drawn(5, 9), [drawn(1, 9) for _ in range(drawn(41, 80))], drawn(5, 12), drawn(3, 4), drawn(0, 2)),
        (drawn(5, 9), [drawn(20, 70), drawn(40, 70)], drawn(201, 400), drawn(0, 4), drawn(10, 99)),
        (drawn(5, 9), [drawn(20, 70), drawn(300, 600)], drawn(5, 12), drawn(3, 4), drawn(0, 2)),
        (6, [2, 4, 3] * 4, 12, *[drawn(0, 5)] * 2),  # what ends a translation begins it, too; not all are empty
    ]
    for number, (vocab, lengths, max_len, bos_id, eos_id) in enumerate(cases):
        settings = {"max_len": max_len, "bos_id": bos_id, "eos_id": eos_id}
        while True:
            table, source, expected = _toy_batch(vocab, lengths, lambda after, s=settings: _greedy(after, **s))
            sentences, steps = [_say(table, row) for row in source], min(max_len, 1 + max(map(len, expected)))
            mistakes = _greedy_mistakes(sentences, **settings)
            # The first two tell every mistake from the right answer and from the others.
            told = number > 1 or _different([*mistakes.values(), expected]) == len(mistakes) + 1
            # The sixth ends long before `max_len`, and not with all its sentences at once.
            if told and (number != 5 or _steps_together(sentences, **settings) > steps):
                break
        toy = place(Toy, beside=function)(table)
        with unchanged(source=source):
            value = call(function, toy, source, max_len, bos_id, eos_id)
        asked = f"source {tuple(source.shape)}, max_len {max_len}, bos_id {bos_id} and eos_id {eos_id}"
        _expect_translations(value, expected, asked, lambda mistakes=mistakes: mistakes)
        _expect_manners(toy, steps, max_len)
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
    ended: str = "competes",
    shrinks: float = 0.0,
) -> tuple[list[_Hypothesis], float, int]:
    """The last hypotheses of one sentence by the rule of the exercise, the narrowest choice, and the steps it took.

    The options make other searches: for `ended` also "keeps its place" and "gives its place", which are published, and
    "is lost"; `shrinks` is a length penalty by which the sums are divided at each step.
    """
    live, done, margin, steps = [(0.0, [bos_id])], [], math.inf, 0
    while live and steps < max_len:
        steps += 1
        following = []
        for total, tokens in live:
            values = enumerate(map(scores, after(tokens)))
            following += [(total + value, [*tokens, token]) for token, value in values]
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
        if shrinks:
            live, done = ([(_penalised(h[0], steps, shrinks), h[1]) for h in held] for held in (live, done))
        if len(done) >= beam:
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


_SEARCH_MISTAKES: dict[Mistake, dict[str, Any]] = {
    m.beam_search.KEEPS_PLACE: {"ended": "keeps its place"},
    m.beam_search.GIVES_PLACE: {"ended": "gives its place"},
    m.beam_search.ENDED_LOST: {"ended": "is lost"},
    m.beam_search.PROBABILITIES: {"scores": math.exp},
}
_CHOICE_MISTAKES: dict[Mistake, _Final] = {
    m.beam_search.NO_PENALTY: lambda total, length, alpha: total,
    m.beam_search.PENALTY_FIXED: lambda total, length, alpha: _penalised(total, length, 0.6),
    m.beam_search.MULTIPLIED: lambda total, length, alpha: total * ((5 + length) / 6) ** alpha,
    m.beam_search.BRACKETS: lambda total, length, alpha: total / (5 + length / 6) ** alpha,
    m.beam_search.OTHER_PENALTY: lambda total, length, alpha: total / length**alpha,
    m.beam_search.BY_LENGTH: lambda total, length, alpha: total / length,
    m.beam_search.BOS_COUNTED: lambda total, length, alpha: _penalised(total, length + 1, alpha),
}


def _wrong_translations(table: Tensor, row: Tensor, alpha: float, **settings: int) -> dict[Mistake, Tokens]:
    """What each mistake says for one sentence."""
    after, eos_id, max_len = _say(table, row), settings["eos_id"], settings["max_len"]
    hypotheses, _, _ = _search(after, **settings)
    wrong = {one: _choose(hypotheses, eos_id, alpha, final)[0] for one, final in _CHOICE_MISTAKES.items()}
    shorter = [(total, tokens[: -1 if tokens[-1] == eos_id else None]) for total, tokens in hypotheses]
    wrong[m.beam_search.EOS_NOT_COUNTED] = _choose(shorter, eos_id, alpha)[0]
    longer = [(total, tokens if tokens[-1] == eos_id else [*tokens, eos_id]) for total, tokens in hypotheses]
    wrong[m.beam_search.END_ALWAYS_COUNTED] = _choose(longer, eos_id, alpha)[0]
    whole = [h for h in hypotheses if h[1][-1] == eos_id]
    wrong[m.beam_search.PREFERS_ENDED] = _choose(whole or hypotheses, eos_id, alpha)[0]
    wrong[m.beam_search.PAST_EOS] = _past_the_end(after, alpha, **settings)
    wrong[m.beam_search.ENDED_STAYS] = _ended_by_place(after, alpha, **settings)
    others = _SEARCH_MISTAKES | {
        m.decoding.ONE_TOO_MANY: {"max_len": max_len + 1},
        m.decoding.ONE_TOO_FEW: {"max_len": max_len - 1},
        m.beam_search.LOGITS: {"after": _say(table, row, raw=True)},
        m.decoding.NEWEST_ONLY: {"after": lambda tokens: after(tokens[-1:])},
    }
    for one, other in others.items():
        wrong[one] = _choose(_search(**({"after": after} | settings | other))[0], eos_id, alpha)[0]
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


def _ended_by_place(after: _After, alpha: float, **settings: int) -> Tokens:
    """What a search says that notes of a place in the beam, not of the hypothesis there, whether it has ended."""
    eos_id, beam = settings["eos_id"], settings["beam"]
    live, ended = [(0.0, [settings["bos_id"]])], [False] * beam
    for _ in range(settings["max_len"]):
        following = []
        for at, (total, tokens) in enumerate(live):
            values = [(eos_id, 0.0)] if ended[at] else enumerate(after(tokens))
            following += [(total + value, [*tokens, token]) for token, value in values]
        live = sorted(following, reverse=True)[:beam]
        ended = [was or tokens[-1] == eos_id for was, (_, tokens) in zip(ended, live, strict=False)]
        ended += [False] * (beam - len(ended))
        if all(ended):
            break

    def score(at: int) -> float:
        total, tokens = live[at]
        return _penalised(total, sum(t != eos_id for t in tokens[1:]) + ended[at], alpha)

    best = live[max(range(len(live)), key=score)][1][1:]
    return best[: best.index(eos_id)] if eos_id in best else best


def _leaders_ended(sentences: list[_After], alpha: float, leads_by: float, **settings: int) -> list[Tokens]:
    """What a search says that stops when the hypothesis that leads by this penalty has ended, in every sentence."""
    eos_id, found = settings["eos_id"], []
    for steps in range(1, settings["max_len"] + 1):
        found = [_search(after, **settings | {"max_len": steps})[0] for after in sentences]
        leaders = [max(beam, key=lambda h: _penalised(h[0], len(h[1]) - 1, leads_by)) for beam in found]
        if all(tokens[-1] == eos_id for _, tokens in leaders):
            break
    return [_choose(beam, eos_id, alpha)[0] for beam in found]


def _subtracted(total: float, length: int, alpha: float) -> float:
    """The penalty's logarithm subtracted, where the sum is to be divided by the penalty."""
    return total - alpha * math.log((5 + length) / 6)


def _telling_batch(vocab: int, alpha: float, **settings: int) -> tuple[Tensor, list[tuple[Tensor, Tokens]]]:
    """A table, and sentences that tell every mistake from the right answer and from the others; the first to end first.

    Others are added to them, so that a mistake without a name is not taken for one of these by chance.
    """
    while True:
        table = 2 * randn(509, vocab, dtype=torch.float32)
        kept, outcomes, complete = [], {}, False
        for _ in range(120):
            row = randint(4, 40, (4,))
            after = _say(table, row)
            hypotheses, margin, steps = _search(after, **settings)
            right, narrow = _choose(hypotheses, settings["eos_id"], alpha)
            # To who sees the newest token alone, the same steps in another order are worth the same.
            newest, close, _ = _search(lambda tokens, a=after: a(tokens[-1:]), **settings)
            if min(margin, narrow, close, _choose(newest, settings["eos_id"], alpha)[1]) < 1e-3:
                continue
            if complete:
                kept = [*kept, (steps, row, right)]
                if len(kept) == 30:
                    kept.sort(key=lambda sentence: sentence[0])
                    return table, [(row, right) for _, row, right in kept]
                continue
            wrong: dict[object, Tokens] = {**_wrong_translations(table, row, alpha, **settings), "right": right}
            # Without a name, for others say the same; but as small a change must not be taken for none at all.
            wrong["subtracted"] = _choose(hypotheses, settings["eos_id"], alpha, _subtracted)[0]
            wrong["divided at each step"] = _choose(
                _search(after, shrinks=alpha, **settings)[0], settings["eos_id"], 0.0
            )[0]
            longer = {one: [*outcomes.get(one, []), tokens] for one, tokens in wrong.items()}
            if _different(longer.values()) > _different(outcomes.values()):
                kept, outcomes = [*kept, (steps, row, right)], longer
            # Without a penalty nine of them are none.
            complete = _different(outcomes.values()) == len(outcomes) - (0 if alpha else 9)


def _different(outcomes: Iterable[list[Tokens]]) -> int:
    return len({str(outcome) for outcome in outcomes})


def _expect_beam(
    function: Callable,
    table: Tensor,
    source: Tensor,
    expected: list[Tokens],
    alpha: float | None,
    named: bool = True,
    **settings: int,
) -> nn.Module:
    """Fail unless a batch is translated as expected; `alpha` None is the default.

    Only of batches made to tell the mistakes apart is one `named`: a short sentence may fit one of them by chance.
    """
    toy = place(Toy, beside=function)(table)
    args = [source, *(settings[name] for name in ("beam", "max_len", "bos_id", "eos_id"))]
    penalty = {} if alpha is None else {"length_penalty": alpha}
    with unchanged(source=source):
        value = call(function, toy, *args, **penalty)
    given = {name: settings[name] for name in ("beam", "max_len", "bos_id", "eos_id")} | penalty
    asked = f"source {tuple(source.shape)}, " + ", ".join(f"{name} {value}" for name, value in given.items())

    def mistakes() -> dict[Mistake, list[Tokens]]:
        alone, used = [value], 0.6 if alpha is None else alpha
        if len(source) > 1:
            alone = [call(function, toy, row.unsqueeze(0), *args[1:], **penalty) for row in source]
            if alone == [[tokens] for tokens in expected]:
                ends = [_search(_say(table, row), **settings)[2] for row in source]
                for steps in (ends[0], min(ends)):  # when the first of the batch has ended, or the first to end
                    cut = [_search(_say(table, row), **settings | {"max_len": steps})[0] for row in source]
                    if value == [_choose(found, settings["eos_id"], used)[0] for found in cut]:
                        return {m.decoding.FIRST_ENDED: value}
                return {m.beam_search.MIXED_UP: value}
        if alpha is None:
            found = [_search(_say(table, row), **settings)[0] for row in source]
            for other in _OTHER_PENALTIES:
                if value == [_choose(hypotheses, settings["eos_id"], other)[0] for hypotheses in found]:
                    return {m.beam_search.OTHER_DEFAULT: value}
        for leads_by in (0.0, used):  # the sum alone, or with the penalty
            if value == _leaders_ended([_say(table, row) for row in source], used, leads_by, **settings):
                return {m.beam_search.LEADER_ENDED: value}
        each = [_wrong_translations(table, row, used, **settings) for row in source]
        wrong = {one: [said[one] for said in each] for one in each[0]}
        # In a batch a sentence may go on, by the same mistake, for as long as the others do.
        wrong = {one: value if alone == [[row] for row in said] else said for one, said in wrong.items()}
        return {one: said for one, said in wrong.items() if said != expected}

    _expect_translations(value, expected, asked, mistakes if named else dict)
    return toy


def _check_beam(
    function: Callable,
    vocab: int,
    lengths: Sequence[int],
    alpha: float,
    rare: bool = False,
    named: bool = True,
    **settings: int,
) -> None:
    """One batch of random sentences, and what is asked of the model; `rare` lets the end come seldom."""

    def solve(after: _After) -> tuple[Tokens, float]:
        hypotheses, margin, _ = _search(after, **settings)
        tokens, narrow = _choose(hypotheses, settings["eos_id"], alpha)
        return tokens, min(margin, narrow)

    table, source, expected = _toy_batch(vocab, lengths, solve, settings["eos_id"] if rare else None)
    toy = _expect_beam(function, table, source, expected, alpha, named, **settings)
    steps = max(_search(_say(table, row), **settings)[2] for row in source)
    _expect_manners(toy, steps, settings["max_len"])


def check_beam_search(function: Callable) -> None:
    """Equals the rule of the exercise, greedy decoding for a beam of 1, the best of all for a beam of everything."""
    usual = {"bos_id": 2, "eos_id": 3}
    for alpha, settings in ((0.0, {"beam": 3, "max_len": 6} | usual), (1.5, {"beam": 4, "max_len": 7} | usual)):
        table, rows = _telling_batch(5, alpha, **settings)
        _expect_beam(function, table, torch.stack([row for row, _ in rows]), [t for _, t in rows], alpha, **settings)
    _expect_patience(function, 1.5, beam=4, max_len=9, **usual)
    _check_beam(function, 6, [3, 5, 2], 0.0, beam=2, max_len=8, **usual)
    _check_beam(function, 5, [4, 2, 3, 5], 1.0, beam=3, max_len=7, bos_id=4, eos_id=0)
    _expect_penalty(function, None, _OTHER_PENALTIES, beam=6, max_len=12, **usual)
    _check_beam(function, 7, [1, 3, 2], 0.6, beam=1, max_len=9, **usual)
    _check_beam(function, 4, [3, 1], 2.0, beam=7, max_len=5, bos_id=0, eos_id=1)
    _check_beam(function, 6, [3, 2], 0.6, beam=2, max_len=1, **usual)
    _check_beam(function, 5, [2, 3], 0.6, beam=2, max_len=60, **usual)
    # What is left are sizes: a mistake that has a name has been named above.
    anonymous = {"named": False} | usual
    alpha = drawn_between(0.1, 3.0)
    _check_beam(function, drawn(400, 900), [3, drawn(20, 50), 4, 5], alpha, beam=3, max_len=9, **anonymous)
    _check_beam(function, drawn(5, 7), [drawn(1, 9)] * 2, 0.6, beam=drawn(10, 20), max_len=drawn(9, 15), **anonymous)
    _expect_wide_beam(function, beam=drawn(12, 20), max_len=drawn(9, 12), **usual)
    _check_beam(function, 5, [drawn(1, 9)] * 2, 0.6, beam=2, max_len=drawn(121, 200), rare=True, **usual)
    _check_beam(function, 5, [3, *(drawn(300, 600) for _ in range(3))], 0.6, beam=2, max_len=drawn(5, 9), **anonymous)
    # Three in ten translations are empty here; a batch in which all are would tell nothing.
    _check_beam(function, 5, [2, 4, 3] * 10, 0.6, beam=2, max_len=9, named=False, **dict.fromkeys(usual, drawn(0, 4)))
    _check_beam(function, 5, [2] * drawn(31, 40), 2.0, beam=2, max_len=drawn(5, 9), **usual)
    tenths = drawn(2, 17) / 10
    between = round(tenths + 0.05, 2)
    _expect_penalty(function, between, (tenths, round(tenths + 0.1, 1)), beam=6, max_len=12, **anonymous)
    _expect_penalty(function, drawn_between(2.7, 4.0), (2.0,), beam=6, max_len=12, **anonymous)
    _expect_greedy_and_best(function)
    _expect_on_its_device(function, 3)


_OTHER_PENALTIES = (0.0, 0.5, 0.7, 0.75, 0.8, 1.0)


def _expect_patience(function: Callable, alpha: float, **settings: int) -> None:
    """Fail if the search stops once the best hypothesis so far has ended, on a sentence that tells."""
    while True:
        table, row = 2 * randn(509, 5, dtype=torch.float32), randint(4, 40, (4,))
        after = _say(table, row)
        hypotheses, margin, _ = _search(after, **settings)
        right, narrow = _choose(hypotheses, settings["eos_id"], alpha)
        hasty = [_leaders_ended([after], alpha, leads_by, **settings) for leads_by in (0.0, alpha)]
        if min(margin, narrow) > 1e-3 and [right] not in hasty:
            break
    _expect_beam(function, table, row.unsqueeze(0), [right], alpha, **settings)


def _expect_penalty(
    function: Callable, alpha: float | None, others: Sequence[float], named: bool = True, **settings: int
) -> None:
    """Sentences that each of the other penalties translates otherwise; `alpha` None is the default."""
    while True:
        table, kept, left = 2 * randn(509, 5, dtype=torch.float32), [], set(others)
        for _ in range(300):
            row = randint(4, 40, (4,))
            hypotheses, margin, _ = _search(_say(table, row), **settings)
            right, narrow = _choose(hypotheses, settings["eos_id"], 0.6 if alpha is None else alpha)
            told = {p for p in left if _choose(hypotheses, settings["eos_id"], p)[0] != right}
            if told and min(margin, narrow) > 1e-3:
                kept, left = [*kept, (row, right)], left - told
            if not left:
                source, expected = torch.stack([row for row, _ in kept]), [tokens for _, tokens in kept]
                _expect_beam(function, table, source, expected, alpha, named, **settings)
                return


def _expect_wide_beam(function: Callable, beam: int, **settings: int) -> None:
    """A sentence that a beam of eight translates otherwise."""
    while True:
        table, row = 2 * randn(509, 8, dtype=torch.float32), randint(4, 40, (4,))
        hypotheses, margin, _ = _search(_say(table, row), beam=beam, **settings)
        right, narrow = _choose(hypotheses, settings["eos_id"], 0.6)
        other, _ = _choose(_search(_say(table, row), beam=8, **settings)[0], settings["eos_id"], 0.6)
        if other != right and min(margin, narrow) > 1e-3:
            _expect_beam(function, table, row.unsqueeze(0), [right], 0.6, named=False, beam=beam, **settings)
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
    expect(not mixed, Common.MADE_ON_CPU, "with a source elsewhere the target is on it" if toy.strange else "")


def _expect_greedy_and_best(function: Callable) -> None:
    table, source, expected = _toy_batch(6, [3, 2, 4], lambda after: _greedy(after, 7, 2, 3))
    toy = place(Toy, beside=function)(table)
    value = call(function, toy, source, 1, 7, 2, 3)
    _expect_translations(value, expected, "a beam of 1, which is greedy decoding", dict)
    for alpha in (0.0, 1.0):
        table, source, expected = _toy_batch(4, [2, 3], lambda after, a=alpha: _best_of_all(after, 3, 2, 3, a))
        toy = place(Toy, beside=function)(table)
        value = call(function, toy, source, 64, 3, 2, 3, length_penalty=alpha)
        # A beam of 64 holds every translation of up to three of four tokens.
        _expect_translations(value, expected, f"a beam of 64 and length_penalty {alpha}", dict)


# ---- attention with a cache

# Sentences whose weights are dropped, four of each: that a right answer drops the same in all of them, or in two calls,
# or nothing, is not to be expected in a million runs.
_DROPPED = 30


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


def _masks(kind: str, batch: int, heads: int, t: int) -> Tensor | None:
    if kind == "none":
        return None
    shape = {"(1, t)": (1, t), "(B, 1, t)": (batch, 1, t), "(B, h, 1, t)": (batch, heads, 1, t)}[kind]
    # A first position that may not see even itself would hide the difference between a mask turned round and none.
    return torch.ones(shape, dtype=torch.bool) if t == 1 else rand_mask(*shape, empty_row=t == 4)


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
    _check_steps(function, drawn(1, 3), 8, 2, "(B, 1, t)", torch.float64, drawn(61, 120))
    heads = drawn(8, 12)
    _check_steps(function, drawn(1, 9), 2 * heads, heads, "none", torch.float64)
    _expect_two_in_turns(function)
    _expect_nothing_allowed(function)
    for dtype in (torch.float64, torch.float32):
        _expect_gradients_through_the_cache(function, dtype=dtype)
    _expect_dropout(function)
    for rate in (0.0, draw_probability()):
        _check_steps(function, 2, 6, 2, "(B, 1, t)", torch.float64, rate=rate)
        _check_steps(function, 2, 6, 3, "(B, h, 1, t)", torch.float64, rate=rate)
        _expect_gradients_through_the_cache(function, rate)
    _check_steps(function, 2, 8, 2, "(1, t)", torch.float64, drawn(61, 120), draw_probability())


def _check_steps(
    function: Callable,
    batch: int,
    dim: int,
    heads: int,
    kind: str,
    dtype: torch.dtype,
    length: int = 4,
    rate: float | None = None,
) -> None:
    """The steps of one batch; with a `rate` those of attention with this dropout, after `.eval()`."""
    attention, state = _attention_with_weights(function, dim, heads, rate or 0.0, dtype)
    attention.train(rate is None)
    x = randn(batch, length, dim)
    cache = None
    for t in range(1, length + 1):
        mask = _masks(kind, batch, heads, t)
        x_t = x[:, t - 1 : t].to(dtype)
        kept = {} if cache is None else {"cache[0]": cache[0], "cache[1]": cache[1]}
        with unchanged(x_t=x_t, **kept):
            output, following = expect_pair(call(function, attention, x_t, cache, mask))
        keys, values = _kept(state, x[:, :t], heads)
        asked = f"position {t} of x {(batch, length, dim)}, {heads} heads and mask {kind}"
        asked += "" if rate is None else f", with dropout={rate}, after `.eval()`"
        # The cache first: a mistake in it shows in the outputs only later.
        pair = expect_pair(following, "the cache")
        for got, right, other, name in zip(pair, (keys, values), (values, keys), ("keys", "values"), strict=True):
            wrong = {
                m.cached_attention.NEWEST_FIRST: lambda right=right: right.roll(1, 2),
                m.cached_attention.EXCHANGED: lambda other=other: other,
            }
            expect_close(got, right, f"the cached {name}", wrong, dtype, asked=asked)
        wrong = {
            m.cached_attention.MASK_UNUSED: lambda x=x[:, :t]: _newest(state, x, heads),
            m.cached_attention.MASK_TURNED: lambda x=x[:, :t], mask=mask: _newest(state, x, heads, ~mask),
        }
        if kind == "(B, 1, t)" and batch == heads:
            wrong[m.cached_attention.MASK_BY_HEAD] = lambda x=x[:, :t], mask=mask: _newest(state, x, heads, mask[None])
        wrong = wrong if mask is not None else None
        expect_close(output, _newest(state, x[:, :t], heads, mask), "the output", wrong, dtype, _FLOAT32, asked)
        cache = pair


def _expect_two_in_turns(function: Callable) -> None:
    """Two sentences take turns, each with a cache of its own."""
    attention, state = _attention_with_weights(function, 4, 2, 0.0, torch.float64)
    sentences = [randn(1, 2, 4), randn(1, 2, 4)]
    caches = [expect_pair(call(function, attention, x[:, :1], None))[1] for x in sentences]
    for x, cache in zip(sentences, caches, strict=True):
        output, _ = expect_pair(call(function, attention, x[:, 1:], cache))
        asked = "the second position of two sentences that take turns"
        expect_close(output, _newest(state, x, 2), "the output", tolerance=_FLOAT32, asked=asked)


def _expect_nothing_allowed(function: Callable) -> None:
    attention, state = _attention_with_weights(function, 4, 2, 0.0, torch.float64)
    output, _ = expect_pair(call(function, attention, randn(2, 1, 4), None, torch.zeros(2, 1, 1, dtype=torch.bool)))
    expect_close(output, state["WO.bias"].expand(2, 1, 4), "the output of a position that may attend to nothing")


def _expect_gradients_through_the_cache(
    function: Callable, rate: float | None = None, dtype: torch.dtype = torch.float64
) -> None:
    attention, state = _attention_with_weights(function, 4, 2, rate or 0.0, dtype)
    attention.train(rate is None)
    mine = randn(2, 3, 4, dtype=dtype).requires_grad_()
    theirs = mine.detach().double().requires_grad_()
    outputs, expected, cache = [], [], None
    for t in range(1, 4):
        output, cache = expect_pair(call(function, attention, mine[:, t - 1 : t], cache))
        outputs.append(output)
        expected.append(_newest(state, theirs[:, :t], 2))
    direction, asked = randn(2, 3, 4), f"x of {dtype}"
    result = torch.cat(outputs, 1)
    expect(result.requires_grad, Common.CUT_OFF, asked=asked)
    (got,) = gradients_of(result, [mine], direction)
    (right,) = gradients_of(torch.cat(expected, 1), [theirs], direction)
    assert right is not None
    got = torch.zeros_like(right) if got is None else got
    what, cut_off = "the gradient that reaches the input through the cache", m.cached_attention.CACHE_CUT_OFF
    tolerance = _FLOAT32 if dtype == torch.float64 else 1e-3
    expect_close(got, right, what, None, None, tolerance, asked, cut_off)
    with torch.no_grad():
        output, _ = expect_pair(call(function, attention, mine[:, :1].detach(), None))
        what = "the output where no gradients are recorded"
        expect_close(output, _newest(state, theirs[:, :1].detach(), 2), what, tolerance=tolerance, asked=asked)


class _OneStep:
    """The first step as a module, whose result is its output."""

    def __init__(self, function: Callable, dropout: float) -> None:
        self._function = function
        self._attention, _ = _attention_with_weights(function, 8, 4, dropout, torch.float64)
        self.train, self.eval = self._attention.train, self._attention.eval
        self.zero_grad, self.named_parameters = self._attention.zero_grad, self._attention.named_parameters

    def to(self, dtype: torch.dtype) -> "_OneStep":
        self._attention.to(dtype)
        return self

    def __call__(self, x_t: Tensor) -> Tensor:
        return expect_pair(call(self._function, self._attention, x_t, None))[0]


def _expect_dropout(function: Callable) -> None:
    attention, state = _attention_with_weights(function, 4, 2, 1.0, torch.float64)
    x, cache = randn(2, 2, 4), None
    attention.train()
    none, elsewhere = state["WO.bias"].expand(2, 1, 4), m.cached_attention.DROPOUT_ELSEWHERE
    for t in (1, 2):
        output, cache = expect_pair(call(function, attention, x[:, t - 1 : t], cache))
        wrong = {
            m.cached_attention.NO_DROPOUT: lambda x=x[:, :t]: _newest(state, x, 2),
            elsewhere: lambda: torch.zeros_like(none),
        }
        expect_close(output, none, "the output in training when every weight is dropped", wrong, asked=f"position {t}")
        kept = _kept(state, x[:, :t], 2)
        for got, right, name in zip(expect_pair(cache, "the cache"), kept, ("keys", "values"), strict=True):
            expect_close(got, right, f"the cached {name} in training", tolerance=_FLOAT32, otherwise=elsewhere)
    x = x[:, :1]
    attention.eval()
    output, _ = expect_pair(call(function, attention, x, None))
    what, right = "the output after `.eval()`", _newest(state, x, 2)
    expect_close(output, right, what, tolerance=_FLOAT32, otherwise=Common.DROPOUT_IN_EVAL)
    expect_dropout_anew(lambda dropout: _OneStep(function, dropout), [randn(1, 1, 8).repeat(_DROPPED, 1, 1)])
    _expect_weights_dropped(function, draw_probability())


def _expect_weights_dropped(function: Callable, probability: float) -> None:
    """The first position has one weight in each head: without it nothing is left of the head's value, with it all."""
    attention, state = _attention_with_weights(function, 8, 2, probability, torch.float64)
    attention.train()
    x = randn(_DROPPED, 1, 8)
    output, _ = expect_pair(call(function, attention, x, None))
    values = linear(state, "Wv", x).unflatten(-1, (2, 4))  # (B, 1, h, d/h)

    def drops(scale: float) -> bool:
        kept = torch.tensor([*itertools.product((0.0, scale), repeat=2)]).double()  # what heads may keep
        possible = linear(state, "WO", (values.unsqueeze(1) * kept[:, None, :, None]).flatten(-2))  # (B, 4, 1, d)
        farthest = (output.double().unsqueeze(1) - possible).abs().flatten(2).amax(-1).amin(-1).max()
        return bool(farthest < 1e-3)

    scale, told = 1 / (1 - probability), f"one position in training, with dropout={probability}"
    scaled = drops(scale**2) or drops(1.0)  # dropped twice, or not scaled: of the weights all the same
    expect(drops(scale), Unexplained.VALUES if scaled else m.cached_attention.DROPOUT_ELSEWHERE, told)


# ---- BLEU


def _ngrams(tokens: Sequence[str], n: int) -> Counter:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def _bleu(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    once: bool = False,
    joined: bool = False,
    pooled: bool = False,
    negative: bool = False,
) -> float:
    """BLEU in its own words; the options make mistakes."""
    precisions = []
    for n in range(1, 5):
        matches = total = 0
        pairs = [(_ngrams(h, n), _ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
        if pooled:
            pairs = [(sum((h for h, _ in pairs), Counter()), sum((r for _, r in pairs), Counter()))]
        for found, wanted in pairs:
            if joined:
                found, wanted = (Counter("".join(gram) for gram in side.elements()) for side in (found, wanted))
            matches += len(found & wanted) if once else (found & wanted).total()
            total += found.total()
        if negative:
            total = sum(len(h) - n + 1 for h in hypotheses)
        if not matches or total <= 0:
            return 0.0
        precisions.append(matches / total)
    h, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * math.exp(min(0.0, 1 - r / h)) * math.exp(sum(map(math.log, precisions)) / 4)


def _without_short(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    pairs = [(h, r) for h, r in zip(hypotheses, references, strict=True) if len(h) >= 4]
    return _bleu([h for h, _ in pairs], [r for _, r in pairs]) if pairs else 0.0


# Those that the visible check cannot show: what it shows would be met here by chance alone.
_BLEU_MISTAKES: dict[Mistake, Callable[[Sequence, Sequence], float]] = {
    m.corpus_bleu.SHORT_SKIPPED: _without_short,
    m.corpus_bleu.NEGATIVE: lambda h, r: _bleu(h, r, negative=True),
    m.corpus_bleu.SETS: lambda h, r: _bleu(h, r, once=True),
    m.corpus_bleu.POOLED: lambda h, r: _bleu(h, r, pooled=True),
    m.corpus_bleu.CHARACTERS: lambda h, r: _bleu(h, r, joined=True),
    m.corpus_bleu.LOWER_CASE: lambda h, r: _bleu([[token.lower() for token in tokens] for tokens in h], r),
}


def _corpus(
    sentences: int, words: Sequence[str], longest: int, change: float
) -> tuple[list[list[str]], list[list[str]]]:
    """References of random words, and hypotheses that differ from them by dropped, doubled and other words."""
    references, hypotheses = [], []
    for _ in range(sentences):
        reference = random.choices(words, k=random.randint((longest + 1) // 2 if longest > 100 else 1, longest))
        hypothesis = []
        for word in reference:
            draw = random.random()
            hypothesis += [[], [word, word], random.choices(words)][int(3 * draw / change)] if draw < change else [word]
        references.append(reference)
        hypotheses.append(hypothesis)
    return hypotheses, references


_FIXED_CORPORA = {
    "where each hypothesis is the other's reference": (
        [list("abcdef"), list("ghijkl")],
        [list("ghijkl"), list("abcdef")],
    ),
    "of hypotheses that are too short": ([list("abcde")], [list("abcdefgh")]),
    "where one sentence is too short and the other too long": (
        [list("abcd"), list("abcdefgh")],
        [list("abcdef"), list("abcdef")],
    ),
    "of a perfect translation": ([list("abcde")], [list("abcde")]),
    "with a hypothesis of one word": ([["a"], list("bcdefghi")], [["a"], list("bcdefghj")]),
    "with an empty hypothesis": ([[], list("abcdef")], [list("ab"), list("abcdeg")]),
    "of nothing but empty hypotheses": ([[], []], [list("ab"), list("abcd")]),
    "of one word each": ([["a"], ["b"]], [["a"], ["b"]]),
    "of hypotheses of three words": ([list("abc")], [list("abc")]),
    "with a repeated word": ([list("aaaaaaabzbcde")], [list("aaaabcdef")]),
    "with nothing in common": ([list("abcde")], [list("fghij")]),
    "of hypotheses that are too long": ([list("abcdefgh")], [list("abcde")]),
    "with upper and lower case": ([["A", "b", "c", "d", "e"]], [["a", "b", "c", "d", "e"]]),
    "with upper case in both": ([["A", "b", "c", "d", "e"]], [["A", "b", "c", "d", "e"]]),
    "with marks between the words": ([["a", ",", "b", "c", "."]], [["a", ",", "b", "c", "!"]]),
    "with an umlaut": ([["Bär", "b", "c", "d", "e"]], [["Bar", "b", "c", "d", "e"]]),
    "with a reference that repeats itself": ([list("abcdefab")], [list("abcdefabab")]),
    "with long words": ([["x" * 60 + "y", *"bcde"]], [["x" * 60 + "z", *"bcde"]]),
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
    words = ("a", "ab", "b", "ba", "aba", "c", "ca", "bc")
    for sentences, longest in ((drawn(1, 6), 20), (drawn(121, 600), 20), (drawn(2, 4), drawn(601, 2000))):
        corpus = _corpus(sentences, words, longest, 0.3)
        corpus[0][0] += [*("ab", "c", "ba", "b"), *corpus[0][0]] * 2
        corpus[1][0] += [*("a", "bc", "b", "ab"), *corpus[1][0]] * 2
        _expect_bleu(function, *corpus, "BLEU of random sentences")
    two = [["a"], ["b"]]
    pair = [[list("abcdef")], [list("abcdeg")]]
    after = place(_lists_after, beside=function)(function, *pair)
    expect(after == [[list("abcdef")], [list("abcdeg")]], m.corpus_bleu.CHANGED)
    expect_raises(ValueError, lambda: function(two, two[:1]), "fewer references than hypotheses")
    expect_raises(ValueError, lambda: function(two[:1], two), "fewer hypotheses than references")


def _lists_after(function, hypotheses, references):
    """What the lists hold after the call: seen where the function runs, which in the grader gets copies of them."""
    function(hypotheses, references)
    return [hypotheses, references]


def _long_corpus() -> tuple[list[list[str]], list[list[str]]]:
    return _corpus(20, "abcdefghij", 20, 0.3)


def _expect_bleu(function: Callable, hypotheses: list[list[str]], references: list[list[str]], name: str) -> None:
    copies = [list(tokens) for tokens in hypotheses], [list(tokens) for tokens in references]
    value = call(function, *copies)
    wrong = {one: lambda f=f: f(hypotheses, references) for one, f in _BLEU_MISTAKES.items()}
    expect_number(value, _bleu(hypotheses, references), name, wrong)


# ---- one step of a beam


def _best(totals: Tensor, k: int) -> Step:
    best, at = totals.flatten(1).topk(k, dim=1)
    return best, at // totals.shape[-1], at % totals.shape[-1]


def _continued(log_probs: Tensor, ended: Tensor, eos_id: int) -> Tensor:
    """Log-probabilities in which what has ended goes on with `eos_id` alone, at no cost."""
    alone = torch.full_like(log_probs, -torch.inf)
    alone[..., eos_id] = 0.0
    return torch.where(ended.unsqueeze(-1), alone, log_probs)


def _right_step(sums: Tensor, log_probs: Tensor, ended: Tensor, eos_id: int) -> Step:
    return _best(sums.unsqueeze(-1) + _continued(log_probs, ended, eos_id), sums.shape[1])


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


_STEP_MISTAKES: dict[Mistake, Callable[..., Step]] = {
    m.beam_step.KEEPS_PLACE: _ended_first,
    m.beam_step.WHOLE_BATCH: _whole_batch,
    m.beam_step.EOS_IS_3: lambda s, x, e, eos: _right_step(s, x, e, 3),
}


def _step_case(batch: int, k: int, vocab: int, eos_id: int, first: bool) -> tuple[Tensor, Tensor, Tensor, int]:
    """A step without a close call: the first one of a search, or one with hypotheses that have ended."""
    while True:
        # Of many hypotheses the last are to have their chance, too.
        sums = -(2 if k < 9 else 0.1) * randn(batch, k).abs().cumsum(1)
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
    sizes += [
        (drawn(1, 3), drawn(17, 24), drawn(30, 40), drawn(0, 8)),
        (drawn(6, 9), 4, drawn(15_000, 20_000), drawn(60, 99)),
    ]
    sizes += [(drawn(61, 90), 2, drawn(5, 9), drawn(0, 4))]
    for batch, k, vocab, eos_id in sizes:
        for first in (False, True) if k > 1 else (True,):
            case = _step_case(batch, k, vocab, eos_id, first)
            for dtype in (torch.float32, torch.float64):
                sums, log_probs = (x.to(dtype) for x in case[:2])
                ended = case[2].clone()
                with unchanged(sums=sums, log_probs=log_probs, ended=ended):
                    value = call(function, sums, log_probs, ended, eos_id)
                wrong = {one: lambda f=f, case=case: f(*case) for one, f in _STEP_MISTAKES.items()}
                asked = f"log_probs {tuple(log_probs.shape)} and eos_id {eos_id}"
                expect_step(value, sums, _right_step(*case), asked, wrong)
                expect_tensor(value[0], sums.shape, dtype, "the sums")
    _expect_any_order(function)
    _expect_fewer_than_places(function)
    sums, log_probs, ended, eos_id = _step_case(2, 3, 5, 1, False)
    mine, theirs = ([x.clone().requires_grad_() for x in (sums, log_probs)] for _ in range(2))
    result = call(function, *mine, ended, eos_id)[0]
    expect(result.requires_grad, Common.CUT_OFF, "the sums")
    got = torch.autograd.grad(result.sum(), mine, allow_unused=True)
    right = torch.autograd.grad(_right_step(*theirs, ended, eos_id)[0].sum(), theirs)
    for gradient, wanted, name in zip(got, right, ("sums", "log_probs"), strict=True):
        expect(gradient is not None, Common.INPUT_CUT_OFF, f"the input without gradient is `{name}`")
        expect_close(gradient, wanted, f"the gradient of the sums with respect to `{name}`")
    expect_device(function, {"sums": sums, "log_probs": log_probs, "ended": ended, "eos_id": eos_id})


def _expect_any_order(function: Callable) -> None:
    """Hypotheses that do not stand in order, of which one sentence's have all ended, or the only one has."""
    for batch, k, vocab, eos_id in ((3, 4, 7, 2), (2, 1, 5, 4), (1, 3, 6, 0)):
        sums, log_probs, ended, _ = _step_case(batch, k, vocab, eos_id, False)
        order = torch.arange(k).roll(1)  # the best one is not the first
        ended[-1] = True
        sums = sums - 400 * torch.arange(k)  # far apart: not everything that looks low is below the worst
        case = sums[:, order], log_probs[:, order], ended[:, order], eos_id
        asked = f"log_probs {tuple(log_probs.shape)} and eos_id {eos_id}, sums in any order, a sentence that has ended"
        expect_step(call(function, *case), sums, _right_step(*case), asked, {})


def _expect_fewer_than_places(function: Callable) -> None:
    """With more places than continuations the sums of those left over are -inf; their tokens may be any."""
    batch, k, vocab, eos_id = 2, drawn(7, 9), 4, 1
    sums, log_probs, ended = torch.full((batch, k), -torch.inf).double(), randn(batch, k, vocab), torch.zeros(batch, k)
    sums[:, 0] = 0.0
    case = sums, log_probs.log_softmax(-1), ended.bool(), eos_id
    value, right = call(function, *case), _right_step(*case)
    asked = f"log_probs {tuple(log_probs.shape)}, one hypothesis alone"
    for got, wanted, name, count in zip(value, right, ("sums", "parents", "tokens"), (k, vocab, vocab), strict=True):
        expect_tensor(got, (batch, k), name=f"the {name}", asked=asked)
        expect_close(got[:, :count], wanted[:, :count], f"the {name}", asked=asked)


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
    at_least: int = 1,
    lower: bool = False,
) -> list[Pair]:
    """Byte-pair encoding in its own words; the options make mistakes."""
    spelled = [([*(word.lower() if lower else word)], n) for word, n in words.items()]
    merges = []
    while len(merges) < count:
        counts: Counter[Pair] = Counter()
        for parts, n in spelled:
            for pair in itertools.pairwise(parts):
                counts[pair] += n
        if not counts or max(counts.values()) < at_least:
            break
        merges.append(choose(counts))
        spelled = [(join(parts, merges[-1]), n) for parts, n in spelled]
    return merges


# Those that the visible check cannot show: what it shows would be met here by chance alone.
_MERGE_MISTAKES: dict[Mistake, Callable[[_Words, int], list]] = {
    m.learn_merges.TIES_JOINED: lambda w, c: _merges(
        w, c, choose=lambda counts: min(counts, key=lambda pair: (-counts[pair], "".join(pair)))
    ),
    m.learn_merges.AS_TEXT: lambda w, c: _merges(w, c, join=_joined_as_text),
    m.learn_merges.LEAVES_SINGLE: lambda w, c: _merges(w, c, at_least=2),
    m.learn_merges.LOWER_CASE: lambda w, c: _merges(w, c, lower=True),
}

_FIXED_WORDS: list[tuple[_Words, int]] = [
    ({"banana": 3, "bandana": 2, "cabana": 4}, 6),
    ({"bbbc": 4}, 4),  # pairs that tie, and that joined are in another order
    (
        {"ab": 20, "cd": 4, "cdg": 4, "ef": 1, "efh": 1, "efi": 1},
        1,
    ),  # another pair if a word counts once, or five times
    ({"bbbbb": 2, "ab": 5, "cd": 3}, 2),  # places that overlap count, too
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
    letters = "abcdefghijklmnopqrstuvwxyzäöüß"
    made = ("".join(random.choices(letters, k=random.randint(8, 40))) for _ in range(drawn(31, 60)))
    often = {word: drawn(1, (10**6, 900)[i % 2]) for i, word in enumerate(made)}
    cases.append(({"mäßig": 17, "größe": 3} | often, drawn(81, 200)))
    for words, count in cases:
        copy = dict(words)
        value = call(function, words, count)
        wrong = {one: f(copy, count) for one, f in _MERGE_MISTAKES.items()}
        expect_merges(value, _merges(copy, count), f"{_listed(copy)} and count {count}", wrong)
    same = place(_words_after, beside=function)(function, {"her": 4, "here": 2}, 2) == {"her": 4, "here": 2}
    expect(same, m.learn_merges.CHANGED)


def _words_after(function, words, count):
    """What the dict holds after the call: seen where the function runs, which in the grader gets a copy of it."""
    function(words, count)
    return words


def _listed(words: _Words) -> str:
    return ", ".join(f"{word} ({n})" for word, n in words.items()) or "no words"
