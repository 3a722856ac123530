"""What chapter 10's check cells call: small cases by hand, and the commonest mistakes by name."""

import math
from collections.abc import Callable, Mapping, Sequence
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
    expect_close,
    expect_number,
    expect_tensor,
    explaining,
    place,
    unchanged,
)
from autograder.course.card import visible
from checks.multi30k_translator import mistakes as m

# Three real tokens and three of padding (token 3). The right token has 0.6, padding 0.2, the other two 0.1 each.
_SURE, _OTHER, _PADDED = [0.6, 0.1, 0.1, 0.2], [0.1, 0.1, 0.6, 0.2], [0.2, 0.3, 0.3, 0.2]
_TARGETS = [[0, 2, 3], [2, 3, 3]]


def _token_loss(right: float, other: float, padding: float) -> float:
    """The loss of a real token whose smoothed target gives these shares to the right token, the others, padding."""
    return -(right * math.log(0.6) + 2 * other * math.log(0.1) + padding * math.log(0.2))


@visible(
    "three real tokens and three of padding by hand, with a smoothing of 0.2",
    graded="other cases, sizes of 1, large numbers, library functions, inputs unchanged, gradients, dtypes and devices",
)
def label_smoothed_loss(function: Callable) -> None:
    """Each real token has the same loss, so that every way to average shows."""
    logits = torch.tensor([[_SURE, _OTHER, _PADDED], [_OTHER, _PADDED, _PADDED]]).log() + 1  # 1 changes no softmax
    loss = call(function, logits, torch.tensor(_TARGETS), 0.2, 3)
    right = _token_loss(0.85, 0.05, 0.05)
    padding = -0.9 * math.log(0.2) - 0.1 * math.log(0.3)
    over_positions = logits.log_softmax(1)
    picked = torch.stack([over_positions[0, 0], over_positions[0, 1], over_positions[1, 0]])
    known = m.label_smoothed_loss
    wrong = {
        known.NO_SMOOTHING: _token_loss(1, 0, 0),
        known.NO_MINUS: -right,
        known.NO_LOG: -0.8 * 0.6 - 0.2 * 0.25,
        known.SUM: 3 * right,
        known.BY_SENTENCES: 3 / 2 * right,
        known.PADDING_ZEROED: right / 2,
        known.PADDING: (right + padding) / 2,
        known.TOO_LITTLE: _token_loss(0.8, 0.05, 0.05),
        known.TOO_MUCH: _token_loss(1, 0.05, 0.05),
        known.SHARE_TWICE: _token_loss(0.9, 0.05, 0.05),
        known.WRONG_TOKENS_ONLY: _token_loss(0.8, 0.2 / 3, 0.2 / 3),
        known.NOT_TO_PADDING: _token_loss(0.8, 0.1, 0),
        known.SUM_OVER_TOKENS: _token_loss(1, 0.2, 0.2),
        known.EXCHANGED: _token_loss(0.4, 0.2, 0.2),
        known.NO_SOFTMAX: right - 1,
        known.KL: right + 0.85 * math.log(0.85) + 3 * 0.05 * math.log(0.05),
        known.OVER_POSITIONS: -(0.8 * picked[[0, 1, 2], [0, 2, 2]] + 0.2 * picked.mean(-1)).mean().item(),
    }
    mistakes = {mistake: lambda value=value: torch.tensor(value) for mistake, value in wrong.items()}
    expect_close(loss, torch.tensor(right), "the loss by hand", mistakes, tolerance=1e-4)
    # Means of sentences, of columns, and without the columns that hold padding are three numbers.
    targets = [[0, 0, 1], [0, 3, 3]]
    loss = call(function, torch.tensor([[_SURE] * 3] * 2).log(), torch.tensor(targets), 0.0, 3)
    sure, other = -math.log(0.6), -math.log(0.1)
    mistakes = {known.MEAN_OF_MEANS: lambda: torch.tensor((5 * sure + other) / 6)}
    right, asked = torch.tensor((3 * sure + other) / 4), f"targets {targets} and a smoothing of 0"
    expect_close(loss, right, "the loss of four tokens", mistakes, tolerance=1e-4, asked=asked)


# The factors of steps 1, 4 and 16 for dim 25 and a warm-up of 4: 25 is neither 4² nor 4³, so that a root around one of
# the two arguments alone is none of these.
_FACTORS = {
    m.noam_factor.LARGER: (1 / 5, 1 / 10, 2 / 5),
    m.noam_factor.TIMES_ROOT: (5 / 8, 5 / 2, 5 / 4),
    m.noam_factor.NO_DIM: (1 / 8, 1 / 2, 1 / 4),
    m.noam_factor.BY_DIM: (1 / 200, 1 / 50, 1 / 100),
    m.noam_factor.DIM_FIXED: tuple(right * (25 / 512) ** 0.5 for right in (1 / 40, 1 / 10, 1 / 20)),
    m.noam_factor.NOT_STRAIGHT: (1 / 20, 1 / 10, 1 / 20),
    m.noam_factor.BY_ROOT_WARMUP: (1 / 10, 1 / 10, 1 / 20),
    m.noam_factor.EXPONENTS: (1 / 10, 1 / 40, 1 / 320),
    m.noam_factor.NO_WARMUP: (1 / 5, 1 / 10, 1 / 20),
    m.noam_factor.ONLY_WARMUP: (1 / 40, 1 / 10, 2 / 5),
    m.noam_factor.CONSTANT: (1 / 40, 1 / 10, 1 / 10),
    m.noam_factor.BY_STEP: (1 / 40, 1 / 10, 1 / 40),
    m.noam_factor.ONE_STEP_ON: (1 / 20, 1 / (5 * 5**0.5), 1 / (5 * 17**0.5)),
    m.noam_factor.SCALED: (1 / 4, 1, 1 / 2),
}


@visible("a point of the warm-up, the peak and a point after it", graded="other cases")
def noam_factor(function: Callable) -> None:
    """Steps 1, 4 and 16 with a warm-up of 4: 1/40, 1/10, 1/20."""
    got = [call(function, step, 25, 4) for step in (1, 4, 16)]
    numbers = all(isinstance(value, int | float) for value in got)
    near = (one for one, wrong in _FACTORS.items() if numbers and all(map(math.isclose, got, wrong)))
    mistake = next(near, Unexplained.NUMBER)
    for step, value, right in zip((1, 4, 16), got, (1 / 40, 1 / 10, 1 / 20), strict=True):
        asked = f"step {step}, dim 25 and warmup 4"
        expect_number(value, right, "the factor", asked=asked, otherwise=mistake)


def make_echo():
    class Echo(nn.Module):
        """Says the source again; its next token is the source's token at the same place."""

        def __init__(self):
            super().__init__()
            self.begun = self.still_begun = True
            self.exchanged = False
            self.longest = 0

        def encode(self, source):
            return source.unsqueeze(-1)

        def decode(self, target, memory, source):
            if (target.dim(), memory.dim(), source.dim()) != (2, 3, 2):
                raise ValueError("decode takes target (B, n), memory (B, m, d) and source (B, m), in this order")
            self.exchanged = self.exchanged or bool((source[:, 0] == 10).all() and (target[:, 0] != 10).all())
            self.still_begun = self.still_begun and bool((target[:, 0] == 10).all())
            self.begun = self.still_begun if self.longest == 0 else self.begun
            self.longest = max(self.longest, target.shape[1])
            return F.one_hot(source[:, : target.shape[1]], 12).float()

    return Echo()


def expect_lists(value: Any, count: int) -> None:
    """Fail unless there is a list of numbers for each sentence."""
    expect(value is not None, Common.NO_RETURN, "the result", expected="a list of lists", got="None")
    expect(isinstance(value, list), m.decoding.NOT_LISTS, "the result", got=f"a {value.__class__.__name__}")
    other = next((row for row in value if not isinstance(row, list)), None)
    expect(other is None, m.decoding.NOT_LISTS, "one of its items", got=f"a {other.__class__.__name__}")
    other = next((token for row in value for token in row if not isinstance(token, int)), None)
    deeper = m.beam_search.ALL_HYPOTHESES if isinstance(other, list) else m.decoding.NOT_LISTS
    expect(other is None, deeper, "one of its tokens", got=f"a {other.__class__.__name__}")
    expect(len(value) == count, m.decoding.NOT_LISTS, "the number of its lists", expected=count, got=len(value))


@visible(
    "an echo repeats three sentences: one ends early, one never ends",
    graded="other cases, sizes of 1, inputs unchanged, no graph, devices and how often parts are called",
)
def greedy_decode(function: Callable) -> None:
    """A model that says the source again."""
    echo = place(make_echo, beside=function)()
    source = torch.tensor([[5, 6, 7, 11], [8, 11, 1, 1], [9, 4, 6, 7]])
    result = call(function, echo, source, 4, 10, 11)
    expect(not echo.exchanged, m.decoding.EXCHANGED)
    expect(echo.begun, m.decoding.BOS_IGNORED)
    expect_lists(result, 3)
    right = [[5, 6, 7], [8], [9, 4, 6, 7]]
    whole = {
        m.decoding.ONE_TOO_FEW: [[5, 6, 7], [8], [9, 4, 6]],
        m.decoding.ONE_TOO_MANY: [[5, 6, 7], [8], [9, 4, 6, 7, 7]],
        m.decoding.FIRST_ENDED: [[5, 6], [8], [9, 4]],
        m.decoding.LEAST_LIKELY: [[0] * 4] * 3,
        m.decoding.FIRST_POSITION: [[5] * 4, [8] * 4, [9] * 4],
    }
    begun = all(row[:1] == [10] for row in result)  # in each, for one may begin so by chance
    of_a_row = {
        m.decoding.EOS_KEPT: lambda row: 11 in row,
        m.decoding.BOS_KEPT: lambda row: begun,
        m.decoding.AFTER_EOS: lambda row: row[:2] == [8, 1],
    }
    if result != right:
        newest = echo.longest == 1 and not echo.still_begun
        likely = [m.decoding.NEWEST_ONLY] * newest + [one for one, given in whole.items() if given == result]
        likely += [one for one, shows in of_a_row.items() if any(map(shows, result))]
        complain([*likely, Unexplained.VALUES][0], "what is said again", expected=right, got=result)
    expect(echo.still_begun, m.decoding.BOS_IGNORED)


Step = tuple[Tensor, Tensor, Tensor]


def expect_step(
    value: Any,
    sums: Tensor,
    expected: Step,
    asked: str,
    mistakes: Mapping[Mistake, Callable[[], Step]],
    of_one_sentence: Sequence[tuple[Mistake, int, list[float]]] = (),
) -> None:
    """Fail unless a step of the beam is the triple that is expected; the message names the mistake, if it is known.

    Args:
        value: what the student's code returned.
        sums: what it was given, `(B, k)`.
        expected: the right sums, parents and tokens, `(B, k)` each.
        asked: for which arguments.
        mistakes: those that can be recognised, each with what it would give.
        of_one_sentence: those that one sentence's sums show: the mistake, its number and those sums, of either sign.
    """
    expect(value is not None, Common.NO_RETURN, "beam_step", expected="three tensors", got="None")
    three = isinstance(value, tuple | list) and len(value) == 3
    expect(three, m.beam_step.NOT_THREE, "the result", got=f"a {value.__class__.__name__}")
    for part, got in zip(("sums", "parents", "tokens"), value, strict=True):
        expect_tensor(got, sums.shape, name=part, asked=asked)
    whole = (value[0], *(part.floor() for part in value[1:]))
    if _same(whole, expected):
        floats = [part.is_floating_point() for part in value[1:]]
        expect(not any(floats), m.beam_step.NOT_INTEGERS, "their dtypes", got=[str(part.dtype) for part in value[1:]])
        return
    found = (one for one, give in mistakes.items() if _same(value, give()) and not _same(give(), expected))
    for one, sentence, values in of_one_sentence:
        got = value[0][sentence].double()
        if any(torch.allclose(sign * got, torch.tensor(values).double(), atol=1e-3) for sign in (1, -1)):
            found = iter([next(found, one)])
    mistake = next(found, None)
    for part, got, right in zip(("sums", "parents", "tokens"), value, expected, strict=True):
        expect_close(got.double(), right.double(), part, tolerance=1e-4, asked=asked, otherwise=mistake)


def _same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return all(
        a.shape == b.shape and torch.allclose(a.double(), b.double(), atol=1e-4, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def _step(sums: list, parents: list, tokens: list) -> Callable[[], Step]:
    return lambda: (torch.tensor(sums), torch.tensor(parents), torch.tensor(tokens))


@visible(
    "two sentences by hand: one hypothesis has ended, two continuations share a parent",
    graded="other cases, sizes of 1, large numbers, gradients, dtypes and devices",
)
def beam_step(function: Callable) -> None:
    """The example of section 10.6."""
    sums = torch.tensor([[-1.0, -0.5], [-0.2, -2.0]])
    chances = [[[0.5, 0.25, 0.125, 0.125], [0.1, 0.7, 0.1, 0.1]], [[0.4, 0.3, 0.2, 0.1], [0.02, 0.9, 0.04, 0.04]]]
    log_probs = torch.tensor(chances).log()
    ended = torch.tensor([[False, True], [False, False]])
    given = {"sums": sums, "log_probs": log_probs, "ended": ended}
    with unchanged(**given):
        value = call(function, *given.values(), 3)
    half, tenth, second = -1.6931, -1.1163, -1.4040  # -1 + log 0.5, -0.2 + log 0.4, -0.2 + log 0.3
    best = [[-0.5, half], [tenth, second]]
    known = m.beam_step
    wrong = {
        known.EXCHANGED: _step(best, [[3, 0], [0, 1]], [[1, 0], [0, 0]]),
        known.GOES_ON: _step([[-0.5, -0.5], best[1]], [[1, 1], [0, 0]], [[3, 3], [0, 1]]),  # ends twice
        known.PAID_OR_LOST: _step([[half, -2.3863], best[1]], [[0, 0], [0, 0]], [[0, 1], [0, 1]]),
        known.END_FREE: _step([[-0.5, -1.0], [-0.2, tenth]], [[1, 0], [0, 0]], [[3, 3], [3, 0]]),
        known.BY_K: _step(best, [[3, 0], [0, 0]], [[1, 0], [0, 1]]),
        known.PLACES: _step(best, [[7, 0], [0, 1]], [[3, 0], [0, 1]]),
        known.ROWS: _step(best, [[1, 0], [2, 2]], [[3, 0], [0, 1]]),
        known.SUMS_FORGOTTEN: _step([[0.0, -0.6931], [-0.1054, -0.9163]], [[1, 0], [1, 0]], [[3, 0], [1, 0]]),
        known.OWN_BEST: _step([best[0], [tenth, -2.1054]], [[1, 0], [0, 1]], [[3, 0], [0, 1]]),
        known.WHOLE_BATCH: _step([[-0.5, tenth], [second, half]], [[1, 0], [0, 0]], [[3, 0], [1, 0]]),
    }
    of_one_sentence = [
        (known.PROBABILITIES, 1, [0.2, 0.1]),
        (known.MULTIPLIED, 1, [7.824, 6.438]),
        (known.WORST, 1, [5.912, 5.219]),
        (known.ANY_TOKEN, 0, [-0.5, -0.5]),
        (known.GOES_ON, 0, [-0.8567, half]),
        (known.GOES_ON, 0, [-0.5, -0.8567]),  # its `eos_id` is free, but other tokens are not forbidden
    ]
    right = _step(best, [[1, 0], [0, 0]], [[3, 0], [0, 1]])
    expect_step(value, sums, right(), "the example of the text", wrong, of_one_sentence)


def make_chain():
    class Chain(nn.Module):
        """The next token depends on the last one alone."""

        def __init__(self):
            super().__init__()
            self.alike = True

        def encode(self, source):
            return source.unsqueeze(-1).float()

        def decode(self, target, memory, source):
            self.alike = self.alike and bool((target == target[:1]).all())  # are all hypotheses copies?
            table = torch.full((7, 7), 1e-12)  # from token (row) to token (column); 0 bos, 1 eos
            table[0, 2:5] = torch.tensor([0.57, 0.4, 0.03])  # a sentence begins with 2 or 3, seldom with 4
            table[2, 4:7] = torch.tensor([0.4, 0.25, 0.35])  # 2 is followed by 4, 5 or 6
            table[3, 5] = 1.0  # 3 is always followed by 5
            table[4:, 1] = torch.tensor([1.0, 0.95, 1.0])  # and then it ends
            table[5, 6] = 0.05  # nearly always: who forgets the sums likes best what has ended already, 4
            return table.log()[target]

    return Chain()


def make_countdown():
    # How many tokens a translation has, its end included, and how likely it is.
    countdowns = {1: 0.21, 2: 0.25, 3: 0.23, 4: 0.18, 6: 0.06, 8: 0.05, 10: 0.02}

    class Countdown(nn.Module):
        """Counts down to 2, then ends: the source [1] begins with any of `countdowns`, [0] always with 5."""

        def __init__(self):
            super().__init__()
            self.decoded = 0

        def encode(self, source):
            return source.unsqueeze(-1).float()

        def decode(self, target, memory, source):
            self.decoded += 1
            table = torch.full((3, 11, 11), 1e-12)  # a source, from token (row) to token (column); 0 bos, 1 eos
            table[0, 0, 5] = table[1, 0, 1] = 1.0  # 1: the memory is not that of the source
            table[2, 0, list(countdowns)] = torch.tensor(list(countdowns.values()))
            table[:, range(2, 11), range(1, 10)] = 1.0
            kind = torch.stack([memory[:, 0, 0].long(), source[:, 0]]).sum(0)
            return table.log()[kind.unsqueeze(1), target]

    return Countdown()


@visible(
    "a beam of 1 is greedy, a beam of 3 finds what greedy decoding misses",
    graded="other cases, inputs unchanged, no graph, devices and how often parts are called",
)
def beam_search(function: Callable) -> None:
    """Greedy decoding says 2 4, of probability 0.23; the best sentence is 3 5, of probability 0.38."""
    chain = place(make_chain, beside=function)()
    source = torch.tensor([[9, 9], [9, 1]])
    greedy = call(function, chain, source, 1, 5, 0, 1)
    expect_lists(greedy, 2)
    expect(not any(1 in row for row in greedy), m.decoding.EOS_KEPT, "with a beam of 1", got=greedy)
    expect(not any(0 in row for row in greedy), m.decoding.BOS_KEPT, "with a beam of 1", got=greedy)
    told = {"expected": [[2, 4]] * 2, "got": greedy}
    likely = m.decoding.FIRST_POSITION if greedy == [[2] * 5] * 2 else Unexplained.VALUES
    expect(greedy == [[2, 4]] * 2, likely, "with a beam of 1, which is greedy decoding, it", **told)
    chain = place(make_chain, beside=function)()
    result = call(function, chain, source, 3, 5, 0, 1, length_penalty=0.0)
    expect_lists(result, 2)
    known = m.beam_search
    if result != [[3, 5]] * 2:
        wrong = {
            "[2, 5]": known.NO_PARENTS,
            "[2, 6]": m.decoding.LEAST_LIKELY,
            "[4]": known.SUMS_FORGOTTEN,
            "[3, 5, 6]": known.PROBABILITIES,
        }
        likely = wrong.get(str(result[0]), Unexplained.VALUES)
        if result[0] != result[1]:  # the model does not look at its source
            likely = known.MIXED_UP
        elif result[0] == [2, 4] and chain.alike:
            likely = known.COPIES
        complain(likely, "with a beam of 3 it", expected=[[3, 5]] * 2, got=result)
    countdown = place(make_countdown, beside=function)()
    result = call(function, countdown, torch.tensor([[1], [0]]), 8, 12, 0, 1, length_penalty=0.0)
    expect_lists(result, 2)
    right = [[2], [5, 4, 3, 2]]
    if result != right:
        early = countdown.decoded < 10  # it would have to be 10
        lengths = {8: known.BY_LENGTH, 3: known.PENALTY_FIXED}
        likely = lengths.get(len(result[0]) + 1, Unexplained.VALUES)
        if likely in lengths.values():
            other = call(function, countdown, torch.tensor([[1], [0]]), 8, 12, 0, 1, length_penalty=3.0)
            likely = likely if other == result else Unexplained.VALUES
        if early and (result[1] == [5] or result[0] == []):
            likely = m.decoding.FIRST_ENDED
        elif result[1] in ([2], []):
            likely = known.MIXED_UP
        elif len(result[1]) > 10:  # it never ends
            likely = known.ENDED_LOST
        asked = "a beam of 8 and a length_penalty of 0"
        complain(likely, "what is said to two sources", asked=asked, expected=right, got=result)


def make_attention():
    from multi_head_attention import MultiHeadAttention

    return MultiHeadAttention(6, heads=2)


_MAPS = ("Wq", "Wk", "Wv", "WO")


def _last_output(
    state: Mapping[str, Tensor], x: Tensor, scale: float = 3**-0.5, seen: slice = slice(None), **other: str
) -> Tensor:
    """What attention of two heads gives the last position; `other` names maps that stand in for others."""
    q, k, v = (F.linear(x, *(state[f"{other.get(name, name)}.{p}"] for p in ("weight", "bias"))) for name in _MAPS[:3])
    q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (q, k, v))
    weights = (scale * q[:, :, -1:] @ k[:, :, seen].mT).softmax(-1)
    merged = (weights @ v[:, :, seen]).transpose(1, 2).flatten(2)
    return F.linear(merged, state["WO.weight"], state["WO.bias"]) if "WO" not in other else merged


def expect_pair(value: Any, what: str = "the result") -> tuple[Any, Any]:
    """The output and the cache, or the keys and the values."""
    expect(value is not None, Common.NO_RETURN, what, expected="a pair", got="None")
    pair = isinstance(value, tuple | list) and len(value) == 2
    expect(pair, m.cached_attention.NO_PAIR, what, expected="a pair", got=f"a {value.__class__.__name__}")
    return value[0], value[1]


def _same_cache_after(function, attention, x):
    """Whether a list that is the cache still holds what it held: seen where the function runs."""
    cache = function(attention, x[:, :1], None)[1]
    held = [*cache]
    function(attention, x[:, 1:2], cache)
    return len(held) == len(cache) and all(old is now for old, now in zip(held, cache, strict=True))


# What errors of the second step say, of 3 sentences, 2 heads and 3 features, if something is joined the wrong way.
_JOINS = {
    r"\[6, (2\] but got: \[6, 1|1\] but got: \[6, 2)\]": m.cached_attention.ONE_JOINED,
    # Twice as many sentences, heads or features; or a dimension too many, as `torch.stack` makes it.
    r"\(3\).*\(6\).*dimension 0|\(2\).*\(4\).*dimension 1"
    r"|\[6, 3\] but got: \[6, 6\]|\(3\).*\(2\).*dimension 1": m.cached_attention.JOINED_ELSEWHERE,
}


@visible(
    "four steps: the shapes of output and cache, and the full attention's result at the last position",
    graded="other cases, masks, rows with nothing to attend to, inputs unchanged, gradients, dtypes and dropout",
)
def cached_attention(function: Callable) -> None:
    """Step by step: what the fourth position gets is what full attention gives the last of four."""
    known = m.cached_attention
    attention = place(make_attention, beside=function)()
    state = {f"{name}.weight": torch.randn(6, 6) for name in _MAPS} | {f"{name}.bias": torch.randn(6) for name in _MAPS}
    attention.load_state_dict(state, strict=False)  # it may hold them under further names
    x, cache = torch.randn(3, 4, 6), None
    for t in range(4):
        with explaining(f"position {t + 1} of x (3, 4, 6) and two heads", _JOINS if t == 1 else {}):
            output, cache = expect_pair(call(function, attention, x[:, t : t + 1], cache))
        expect_tensor(output, (3, 1, 6), name="the output")
        for part in expect_pair(cache, "the cache"):
            expect_tensor(part, name="a part of the cache")
            told = {"expected": f"of shape {(3, 2, t + 1, 3)}", "got": f"shape {tuple(part.shape)}"}
            shorter = any(part.shape == (3, 2, n, 3) for n in range(1, t + 1))
            mistake = known.NO_HEADS if part.dim() == 3 else known.NOT_GROWN if shorter else Unexplained.SHAPE
            expect(part.shape == (3, 2, t + 1, 3), mistake, f"a part of the cache after {t + 1} positions", **told)
        so_far = x[:, : t + 1]
        keys, values = (
            F.linear(so_far, state[f"{name}.weight"], state[f"{name}.bias"]).unflatten(-1, (2, 3)).transpose(1, 2)
            for name in ("Wk", "Wv")
        )
        exchanged = _same(cache, (values, keys))
        for got, right, other, what in zip(cache, (keys, values), (values, keys), ("keys", "values"), strict=True):
            wrong = {known.NEWEST_FIRST: right.roll(1, 2)}
            if exchanged or what == "values":
                wrong[known.EXCHANGED if exchanged else known.VALUES_BY_WK] = other
            mistakes = {one: lambda given=given: given for one, given in wrong.items()}
            expect_close(got, right, f"the cached {what}", mistakes, tolerance=1e-4, asked=f"position {t + 1}")
    wrong = {
        known.NOT_SCALED: lambda: _last_output(state, x, 1.0),
        known.ALL_FEATURES: lambda: _last_output(state, x, 6**-0.5),
        known.QUERY_BY_WK: lambda: _last_output(state, x, Wq="Wk"),
        known.VALUES_BY_WK: lambda: _last_output(state, x, Wv="Wk"),
        known.NO_WO: lambda: _last_output(state, x, WO=""),
        known.NOT_ITSELF: lambda: _last_output(state, x, seen=slice(-1)),
        known.ITSELF_ALONE: lambda: _last_output(state, x, seen=slice(-1, None)),
        known.FIRST_ALONE: lambda: _last_output(state, x, seen=slice(1)),
    }
    expect_close(output, _last_output(state, x), "the fourth output", wrong, tolerance=1e-4)
    if not place(_same_cache_after, beside=function)(function, attention, x):
        complain(Common.CHANGED_IN_PLACE, "the cache of the first position, after the call for the second")


@visible(
    "a word of eight wrong, words missing and too many, two sentences, and no match at all, by hand",
    graded="other cases, inputs unchanged and errors",
)
def corpus_bleu(function: Callable) -> None:
    """A sentence of eight words, and what can happen to it."""
    known = m.corpus_bleu
    right = ["a", "black", "dog", "runs", "across", "the", "green", "grass"]
    other = ["a", "black", "dog", "runs", "over", "the", "green", "grass"]
    value = call(function, [right, other], [right, other])
    expect_number(value, 100, "the BLEU of a perfect translation", {known.FRACTION: lambda: 1})
    precisions = [7 / 8, 5 / 7, 3 / 6, 1 / 5]
    wrong = {
        known.ONE_BAG: 16 / 26,
        known.ADD_ONE_TO_ALL: (8 / 9 * 6 / 8 * 4 / 7 * 2 / 6) ** (1 / 4),
        known.ADD_ONE: (7 / 8 * 6 / 8 * 4 / 7 * 2 / 6) ** (1 / 4),
        known.UP_TO_3: math.prod(precisions[:3]) ** (1 / 3),
        known.UP_TO_5: 0.0,
        known.ARITHMETIC: sum(precisions) / 4,
        known.NO_ROOT: math.prod(precisions),
        known.PLACE_BY_PLACE: 7 / 8,
    }
    _expect_bleu(function, other, right, math.prod(precisions) ** (1 / 4), wrong, "with one word of eight wrong")
    wrong = {
        known.NO_BREVITY: 1.0,
        known.RATIO: 6 / 8,
        known.RECALL: (6 / 8 * 5 / 7 * 4 / 6 * 3 / 5) ** (1 / 4) * math.exp(1 - 8 / 6),
    }
    _expect_bleu(function, right[:6], right, math.exp(1 - 8 / 6), wrong, "of six right words of eight")
    longer = [*right, "the", "the", "cat"]
    value = (8 / 11 * 7 / 10 * 6 / 9 * 5 / 8) ** (1 / 4)
    wrong = {
        known.NOT_CLIPPED: (10 / 11 * 7 / 10 * 6 / 9 * 5 / 8) ** (1 / 4),
        known.SETS: (8 / 9 * 7 / 10 * 6 / 9 * 5 / 8) ** (1 / 4),
        known.ABOVE_1: value * math.exp(1 - 8 / 11),
    }
    _expect_bleu(function, longer, right, value, wrong, "with three words too many, two of them repeated")
    short = right[:5]
    brevity, of_each = math.exp(1 - 16 / 13), math.exp(1 - 8 / 5)
    pooled = 100 * (12 / 13 * 9 / 11 * 6 / 9 * 3 / 7) ** (1 / 4)
    each = {
        known.BY_SENTENCE: lambda: 50 * (math.prod(precisions) ** (1 / 4) + of_each),
        known.PRECISIONS_BY_SENTENCE: lambda: 100 * math.prod((1 + p) / 2 for p in precisions) ** (1 / 4) * brevity,
        known.BREVITY_BY_SENTENCE: lambda: pooled * (1 + of_each) / 2,
        known.JOINED: lambda: 100 * (12 / 13 * 10 / 12 * 8 / 11 * 6 / 10) ** (1 / 4) * brevity,
    }
    value = call(function, [other, short], [right, right])
    expect_number(value, pooled * brevity, "the BLEU of two sentences, of eight words and of five", each)
    value = call(function, [["cat"]], [right])
    small = isinstance(value, float) and 0 < value < 0.05  # 100 times the brevity penalty is 0.09
    likely = known.SMALL_FOR_ZERO if small else Unexplained.NUMBER
    expect_number(value, 0, "the BLEU without a match", otherwise=likely)
    expect(value == 0, known.SMALL_FOR_ZERO, "the BLEU without a match", expected=0, got=value)


def _expect_bleu(
    function: Callable, one: list[str], other: list[str], right: float, wrong: Mapping[Mistake, float], what: str
) -> None:
    mistakes = {mistake: lambda value=value: 100 * value for mistake, value in wrong.items()}
    expect_number(call(function, [one], [other]), 100 * right, f"the BLEU {what}", mistakes)


Pair = tuple[str, str]


def expect_merges(
    value: Any, expected: list[Pair], asked: str, mistakes: Mapping[Mistake, list], letters: str = ""
) -> None:
    """Fail unless `value` is the list of pairs that is expected; the message names the mistake, if it is known.

    Args:
        value: what the student's code returned.
        expected: the right merges.
        asked: for which words, and for how many merges.
        mistakes: those that can be recognised, each with the merges that it would give.
        letters: all letters of the words, to recognise pieces that have others.
    """
    expect(value is not None, Common.NO_RETURN, "learn_merges", expected="a list of pairs", got="None")
    expect(isinstance(value, list), m.learn_merges.NOT_A_LIST, "the result", got=f"a {value.__class__.__name__}")
    got = [tuple(pair) if isinstance(pair, list) else pair for pair in value]
    if got == expected:
        return
    mistake = next((one for one, wrong in mistakes.items() if got == wrong != expected), None)
    pairs = all(isinstance(pair, tuple) and [*map(type, pair)] == [str, str] for pair in got)
    marked = pairs and letters and not set("".join(map("".join, got))) <= set(letters)
    otherwise = m.learn_merges.MARK if marked else Unexplained.RESULT if pairs else m.learn_merges.NOT_A_LIST
    mistake = mistake or otherwise
    n = next((i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), min(len(got), len(expected)))
    said, wanted = (str(merges[n]) if n < len(merges) else "nothing" for merges in (got, expected))
    complain(mistake, f"merge {n + 1}", asked=asked, expected=wanted, got=said)


@visible(
    "the example by hand: a tie, pieces that grow, an early end; and words that occur more than once",
    graded="other cases",
)
def learn_merges(function: Callable) -> None:
    """Three words: her (4 times), here (twice), there (3 times)."""
    known = m.learn_merges
    words = {"her": 4, "here": 2, "there": 3}
    value = call(function, words, 10)
    expected = [("e", "r"), ("h", "er"), ("her", "e"), ("t", "here")]
    wrong = {
        known.TIES: [("h", "e"), ("he", "r"), ("her", "e"), ("t", "here")],
        known.NOT_GROWN: [("e", "r"), ("h", "e"), ("r", "e"), ("t", "h")],
        known.NOT_JOINED: [("e", "r")] * 10,
        known.RAREST: [
            ("t", "h"), ("th", "e"), ("the", "r"), ("r", "e"), ("e", "re"),
            ("h", "ere"), ("ther", "e"), ("e", "r"), ("h", "er"),
        ],
        known.PIECES: ["er", "her", "here", "there"],
    }  # fmt: skip
    shown = "her (4), here (2), there (3)"
    expect_merges(value, expected, shown, wrong, letters="ehrt")
    expect(words == {"her": 4, "here": 2, "there": 3}, known.CHANGED)
    wrong = {known.TOO_FEW: expected[:1], known.TOO_MANY: expected[:3]}
    expect_merges(call(function, words, 2), expected[:2], f"{shown} and count 2", wrong)
    often = {"banana": 2, "low": 3, "net": 1, "new": 1, "ned": 1}
    told_apart = {known.WORD_ONCE: [("n", "e")], known.PAIR_ONCE: [("l", "o")]}
    shown = "banana (2), low (3), net, new and ned (1 each)"
    expect_merges(call(function, often, 1), [("a", "n")], shown, told_apart)
