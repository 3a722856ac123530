"""What chapter 10's check cells call: small cases by hand, and the commonest mistakes by name."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import call, place, unchanged
from autograder.course.card import visible

# Three real tokens and three of padding (token 3). The right token has 0.6, padding 0.2, the other two 0.1 each.
_SURE, _OTHER, _PADDED = [0.6, 0.1, 0.1, 0.2], [0.1, 0.1, 0.6, 0.2], [0.2, 0.3, 0.3, 0.2]
_TARGETS = [[0, 2, 3], [2, 3, 3]]


def _token_loss(right: float, other: float, padding: float) -> float:
    """The loss of a real token whose smoothed target gives these shares to the right token, the others, padding."""
    return -(right * math.log(0.6) + 2 * other * math.log(0.1) + padding * math.log(0.2))


@visible("three real tokens and three of padding by hand, with a smoothing of 0.2")
def label_smoothed_loss(function: Callable) -> None:
    """Each real token has the same loss, so that every way to average shows."""
    logits = torch.tensor([[_SURE, _OTHER, _PADDED], [_OTHER, _PADDED, _PADDED]]).log()
    loss = call(function, logits, torch.tensor(_TARGETS), 0.2, 3)
    assert loss is not None, "label_smoothed_loss returned None: is there a `return`?"
    assert isinstance(loss, Tensor), "return a tensor, so that `backward` can be called on it"
    assert loss.shape == (), f"the loss should be one number, a scalar tensor, got {tuple(loss.shape)}"
    right = _token_loss(0.85, 0.05, 0.05)
    padding = -0.9 * math.log(0.2) - 0.1 * math.log(0.3)
    wrong = {
        "smoothing is not used": _token_loss(1, 0, 0),
        "the minus is missing": -right,
        "a sum: divide by the number of real tokens": 3 * right,
        "a sum divided by the number of sentences, not of real tokens": 3 / 2 * right,
        "padding is zeroed but still counted": right / 2,
        "padding counts": (right + padding) / 2,
        "the right token gets 1 - smoothing alone: a share of smoothing/V is lost": _token_loss(0.8, 0.05, 0.05),
        "the right token keeps the weight 1, so that the target sums to more than 1": _token_loss(1, 0.05, 0.05),
        "smoothing is divided by V - 1 and goes to the wrong tokens only": _token_loss(0.8, 0.2 / 3, 0.2 / 3),
        "smoothing is divided by V - 2: padding is left out of the share, too": _token_loss(0.8, 0.1, 0),
        "smoothing and 1 - smoothing are exchanged": _token_loss(0.4, 0.2, 0.2),
    }
    got = loss.item()
    for cause, value in wrong.items():
        assert abs(got - value) > 1e-4, f"the loss is {got:.4f}, by hand it is {right:.4f}. Likely cause: {cause}"
    # What is NaN here is told apart by the hidden checks.
    assert abs(got - right) < 1e-4 or math.isnan(got), f"by hand the loss is {right:.4f}, got {got:.4f}"


@visible("a point of the warm-up, the peak and a point after it")
def noam_factor(function: Callable) -> None:
    """Steps 1, 4 and 16 with a warm-up of 4: 1/64, 1/16, 1/32."""
    got = [call(function, step, 64, 4) for step in (1, 4, 16)]
    assert got[0] is not None, "noam_factor returned None: is there a `return`?"
    wrong = {
        "1 is added to `step`, which already begins with 1": [1 / 32, 1 / (8 * 5**0.5), 1 / (8 * 17**0.5)],
        "after the warm-up it stays the same: it should fall like 1/√step": [1 / 64, 1 / 16, 1 / 16],
        "the steps are counted from 0: the first one is 1": [0, 3 / 64, 1 / (8 * 15**0.5)],
    }
    for cause, values in wrong.items():
        assert any(abs(a - b) > 1e-9 for a, b in zip(got, values, strict=True)), (
            f"the factors of steps 1, 4, 16 should be 0.015625, 0.0625, 0.03125. Likely cause: {cause}"
        )
    first, highest, later = got
    assert highest > first, "it should grow up to step `warmup`: min or max?"
    assert later < highest, "after step `warmup` it should fall"
    assert abs(highest - 1 / 16) < 1e-9, (
        f"at its highest it is 1/√(dim · warmup) = 1/16 for dim=64, warmup=4, got {highest:.6g}"
    )
    assert abs(first - highest / 4) < 1e-9, "up to step `warmup` it grows in a straight line from 0"
    assert abs(later - highest / 2) < 1e-9, "it falls like 1/√step: half as high after 4 times the steps"


def make_echo():
    class Echo(nn.Module):
        """Says the source again; its next token is the source's token at the same place."""

        def encode(self, source):
            return source.unsqueeze(-1)

        def decode(self, target, memory, source):
            if (target[:, 0] != 10).any():
                raise ValueError("every target should begin with bos_id")
            return F.one_hot(source[:, : target.shape[1]], 12).float()

    return Echo()


@visible("an echo repeats three sentences: one ends early, one never ends")
def greedy_decode(function: Callable) -> None:
    """A model that says the source again."""
    echo = place(make_echo, beside=function)()
    source = torch.tensor([[5, 6, 7, 11], [8, 11, 1, 1], [9, 4, 6, 7]])
    result = call(function, echo, source, 4, 10, 11)
    assert result is not None, "greedy_decode returned None: is there a `return`?"
    assert isinstance(result, list) and all(isinstance(row, list) for row in result), (
        "return a list of lists of numbers: one list for each sentence"
    )
    assert not any(11 in row for row in result), "eos_id is still there: cut before the first one"
    assert not any(row[:1] == [10] for row in result), "bos_id is still there: leave it out"
    assert not any(row[:2] == [8, 1] for row in result), (
        "nothing counts after eos_id: cut there, do not just take it out"
    )
    causes = {
        "one step too few: up to `max_len` tokens are written": [[5, 6, 7], [8], [9, 4, 6]],
        "it stops when the first sentence has ended: go on until all have": [[5, 6], [8], [9, 4]],
        "the least likely token is taken: `argmax`": [[0] * 4] * 3,
    }
    cause = next((f". Likely cause: {why}" for why, given in causes.items() if result == given), "")
    assert result == [[5, 6, 7], [8], [9, 4, 6, 7]], f"an echo should repeat the source, got {result}{cause}"


Step = tuple[Tensor, Tensor, Tensor]


def expect_step(
    value: Any,
    sums: Tensor,
    expected: Step,
    name: str,
    mistakes: Mapping[str, Callable[[], Step]],
    of_one_sentence: Mapping[str, tuple[int, list[float]]] | None = None,
) -> None:
    """Fail unless a step of the beam is the triple that is expected; the message names the mistake, if it is known.

    Args:
        value: what the student's code returned.
        sums: what it was given, `(B, k)`.
        expected: the right sums, parents and tokens, `(B, k)` each.
        name: what the message calls the call.
        mistakes: typical causes, each with what that mistake would give.
        of_one_sentence: causes that one sentence's sums show: its number and those sums, of either sign.
    """
    assert value is not None, "beam_step returned None: is there a `return`?"
    assert isinstance(value, tuple | list) and len(value) == 3, (
        "beam_step should return three tensors: sums, parents and tokens"
    )
    for part, got in zip(("sums", "parents", "tokens"), value, strict=True):
        assert isinstance(got, Tensor), f"{part} should be a tensor, got a {got.__class__.__name__}"
        assert got.shape == sums.shape, f"{part} should have shape (B, k) = {tuple(sums.shape)}, got {tuple(got.shape)}"
    if _same(value, expected):
        kinds = [part.is_floating_point() for part in value]
        assert kinds == [True, False, False], "parents and tokens should be integers, sums floats: `//`, not `/`"
        return
    for cause, compute in mistakes.items():
        wrong = compute()
        if _same(value, wrong) and not _same(wrong, expected):
            raise AssertionError(f"{name}: the continuations are not the best ones. Likely cause: {cause}")
    for cause, (sentence, values) in (of_one_sentence or {}).items():
        got = value[0][sentence].double()
        if any(torch.allclose(sign * got, torch.tensor(values).double(), atol=1e-3) for sign in (1, -1)):
            raise AssertionError(f"{name}: the continuations are not the best ones. Likely cause: {cause}")
    for part, got, right in zip(("sums", "parents", "tokens"), value, expected, strict=True):
        assert torch.allclose(got.double(), right.double(), atol=1e-4), (
            f"{name}: {part} should be {_short(right)}, got {_short(got)}"
        )


def _short(x: Tensor) -> list:
    return [[round(v, 3) for v in row] for row in x.tolist()]


def _same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return all(
        a.shape == b.shape and torch.allclose(a.double(), b.double(), atol=1e-4, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def _step(sums: list, parents: list, tokens: list) -> Callable[[], Step]:
    return lambda: (torch.tensor(sums), torch.tensor(parents), torch.tensor(tokens))


@visible("two sentences by hand: one hypothesis has ended, two continuations share a parent")
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
    right = _step([[-0.5, half], [tenth, second]], [[1, 0], [0, 0]], [[3, 0], [0, 1]])
    wrong = {
        "parents and tokens are exchanged": _step([[-0.5, half], [tenth, second]], [[3, 0], [0, 1]], [[1, 0], [0, 0]]),
        "a hypothesis that has ended goes on past its end: it has one continuation, `eos_id`": _step(
            [[-0.8567, half], [tenth, second]], [[1, 0], [0, 0]], [[1, 0], [0, 1]]
        ),
        "the `eos_id` of a hypothesis that has ended is paid for, or the hypothesis is lost: it costs nothing": _step(
            [[half, -2.3863], [tenth, second]], [[0, 0], [0, 0]], [[0, 1], [0, 1]]
        ),
        "a place in the flattened continuations is divided by k: V continuations belong to each parent": _step(
            [[-0.5, half], [tenth, second]], [[3, 0], [0, 0]], [[1, 0], [0, 1]]
        ),
        "the parents are places in the flattened continuations: divide by V": _step(
            [[-0.5, half], [tenth, second]], [[7, 0], [0, 1]], [[3, 0], [0, 1]]
        ),
        "the sums so far are forgotten: add them": _step(
            [[0.0, -0.6931], [-0.1054, -0.9163]], [[1, 0], [1, 0]], [[3, 0], [1, 0]]
        ),
        "each hypothesis goes on with its own best token: all continuations of a sentence compete": _step(
            [[-0.5, half], [tenth, -2.1054]], [[1, 0], [0, 1]], [[3, 0], [0, 1]]
        ),
    }
    of_one_sentence = {
        "probabilities are added: add the log-probabilities as they are": (1, [0.2, 0.1]),
        "the sums are multiplied by the log-probabilities: add": (1, [7.824, 6.438]),
        "the worst continuations are kept: keep those with the highest sums": (1, [5.912, 5.219]),
        "a hypothesis that has ended may go on with any token at no cost: with `eos_id` alone": (0, [-0.5, -0.5]),
    }
    expect_step(value, sums, right(), "beam_step", wrong, of_one_sentence)


def make_chain():
    class Chain(nn.Module):
        """The next token depends on the last one alone."""

        def encode(self, source):
            return source.unsqueeze(-1).float()

        def decode(self, target, memory, source):
            table = torch.full((7, 7), 1e-12)  # from token (row) to token (column); 0 bos, 1 eos
            table[0, 2:4] = torch.tensor([0.6, 0.4])  # a sentence begins with 2 or 3
            table[2, 4:7] = torch.tensor([0.4, 0.3, 0.3])  # 2 is followed by 4, 5 or 6
            table[3, 5] = 1.0  # 3 is always followed by 5
            table[4:, 1] = 1.0  # and then it ends
            return table.log()[target]

    return Chain()


@visible("a beam of 1 is greedy, a beam of 3 finds what greedy decoding misses")
def beam_search(function: Callable) -> None:
    """Greedy decoding says 2 4, of probability 0.24; the best sentence is 3 5, of probability 0.4."""
    chain = place(make_chain, beside=function)()
    source = torch.tensor([[9, 9], [9, 1]])
    greedy = call(function, chain, source, 1, 5, 0, 1)
    assert greedy is not None, "beam_search returned None: is there a `return`?"
    result = call(function, chain, source, 3, 5, 0, 1, length_penalty=0.0)
    assert isinstance(greedy, list) and all(isinstance(row, list) for row in greedy), (
        "return a list of lists of numbers: the best translation of each sentence"
    )
    assert len(greedy) == 2, f"one translation for each of 2 sentences, got {len(greedy)}"
    assert not any(isinstance(token, list) for row in greedy for token in row), (
        "only the best hypothesis of each sentence is wanted: one list of numbers"
    )
    assert not any(1 in row or 0 in row for row in greedy), "leave bos_id and eos_id out"
    assert greedy == [[2, 4], [2, 4]], f"a beam of 1 is greedy decoding: 2 (0.6), then 4 (0.4), got {greedy}"
    assert result[0] != [2, 4], (
        "with a beam of 3 this is still what greedy decoding finds, 2 4 (0.24). Do the hypotheses of a sentence "
        "differ? At the start all but one need the sum -inf, or they stay copies"
    )
    assert result == [[3, 5], [3, 5]], f"a beam of 3 finds 3 5 (0.4 in all), got {result}"


def make_attention():
    from multi_head_attention import MultiHeadAttention

    return MultiHeadAttention(6, heads=2)


def _identity_attention(x: Tensor, scale: float) -> Tensor:
    """What the last position gets from two heads whose four maps change nothing."""
    heads = x.unflatten(-1, (2, -1)).transpose(1, 2)  # (B, h, n, d/h)
    weights = (scale * heads[:, :, -1:] @ heads.mT).softmax(-1)
    return (weights @ heads).transpose(1, 2).flatten(2)


def _expect_scale(function: Callable, x: Tensor) -> None:
    """Fail if the scores are scaled wrongly; other mistakes are left to the next comparison."""
    attention = place(make_attention, beside=function)()
    state = {f"{name}.weight": torch.eye(6) for name in ("Wq", "Wk", "Wv", "WO")}
    state |= {f"{name}.bias": torch.zeros(6) for name in ("Wq", "Wk", "Wv", "WO")}
    attention.load_state_dict(state)
    cache = None
    for t in range(4):
        output, cache = call(function, attention, x[:, t : t + 1], cache)
    for cause, scale in {
        "the scores are not divided by √(d/h)": 1.0,
        "the scores are divided by √d: in a head it is √(d/h)": 6**-0.5,
    }.items():
        assert (output - _identity_attention(x, scale)).abs().max() > 1e-4, (
            f"the fourth output differs from the full attention's. Likely cause: {cause}"
        )


@visible("four steps: the shapes of output and cache, and the full attention's result at the last position")
def cached_attention(function: Callable) -> None:
    """Step by step, beside the reader's own attention of chapter 04 with a causal mask."""
    attention = place(make_attention, beside=function)()
    x = torch.randn(3, 4, 6)
    result = call(function, attention, x[:, :1], None)
    assert result is not None, "cached_attention returned None: is there a `return`?"
    assert isinstance(result, tuple) and len(result) == 2, "return a pair: the output, the new cache"
    cache = None
    for t in range(4):
        output, cache = call(function, attention, x[:, t : t + 1], cache)
        assert output.shape == (3, 1, 6), f"the output should be (B, 1, d), got {tuple(output.shape)}"
        assert len(cache) == 2, "the cache is a pair: the keys and the values so far"
        assert cache[0].shape == (3, 2, t + 1, 3), (
            f"after {t + 1} positions the keys should be (B, h, t, d/h) = {(3, 2, t + 1, 3)}, "
            f"got {tuple(cache[0].shape)}"
        )
    _expect_scale(function, x)
    full, _ = call(attention, x, x, x, torch.ones(4, 4, dtype=torch.bool).tril())
    assert (output - full[:, 3:]).abs().max() < 1e-4, (
        "the fourth output differs from the one that the full attention gives the fourth position"
    )


@visible("one word of eight wrong, two words missing, and no match at all, by hand")
def corpus_bleu(function: Callable) -> None:
    """A sentence of eight words, and what can happen to it."""
    right = ["a", "black", "dog", "runs", "across", "the", "green", "grass"]
    other = ["a", "black", "dog", "runs", "over", "the", "green", "grass"]
    perfect = function([right, other], [right, other])
    assert perfect is not None, "corpus_bleu returned None: is there a `return`?"
    assert perfect != 1, "a fraction between 0 and 1: multiply by 100"
    assert abs(perfect - 100) < 1e-6, f"a perfect translation has BLEU 100, got {perfect:.4f}"
    value = function([other], [right])
    wrong = {
        "n-grams of all lengths are counted in one bag: each length has a precision of its own": 100 * 16 / 26,
        "1 is added to all counts, those of single tokens too: no smoothing here": (
            100 * (8 / 9 * 6 / 8 * 4 / 7 * 2 / 6) ** (1 / 4)
        ),
        "1 is added to the counts: no smoothing here": 100 * (7 / 8 * 6 / 8 * 4 / 7 * 2 / 6) ** (1 / 4),
    }
    by_hand = 100 * (7 / 8 * 5 / 7 * 3 / 6 * 1 / 5) ** (1 / 4)
    for cause, number in wrong.items():
        assert abs(value - number) > 1e-6, f"by hand it is {by_hand:.4f}, got {value:.4f}. Likely cause: {cause}"
    assert abs(value - by_hand) < 1e-6, (
        "with one word of eight wrong the precisions are 7/8, 5/7, 3/6 and 1/5, their geometric mean "
        f"{by_hand:.4f}, got {value:.4f}"
    )
    value = function([right[:6]], [right])
    assert abs(value - 100) > 1e-6, "two words are missing: where is the brevity penalty?"
    assert abs(value - 100 * math.exp(1 - 8 / 6)) < 1e-6, (
        f"six right words of eight: each precision is 1, the brevity penalty exp(1 - 8/6), got {value:.4f}"
    )
    assert function([["cat"]], [right]) == 0, "no match at all is a BLEU of 0"


Pair = tuple[str, str]


def expect_merges(value: Any, expected: list[Pair], name: str, mistakes: Mapping[str, list]) -> None:
    """Fail unless `value` is the list of pairs that is expected; the message names the mistake, if it is known."""
    assert value is not None, "learn_merges returned None: is there a `return`?"
    assert isinstance(value, list), f"learn_merges should return a list of pairs, got a {value.__class__.__name__}"
    got = [tuple(pair) if isinstance(pair, list) else pair for pair in value]
    if got == expected:
        return
    cause = next((f". Likely cause: {c}" for c, wrong in mistakes.items() if got == wrong != expected), "")
    assert cause or all(isinstance(pair, tuple) and len(pair) == 2 for pair in got), (
        f"each merge should be a pair of pieces, such as ('e', 'r'); got {value[:2]}"
    )
    n = next((i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), min(len(got), len(expected)))
    said = got[n] if n < len(got) else "nothing"
    wanted = expected[n] if n < len(expected) else "nothing"
    raise AssertionError(f"{name}: merge {n + 1} should be {wanted}, got {said}{cause}")


@visible("the example by hand: a tie, pieces that grow, and an early end")
def learn_merges(function: Callable) -> None:
    """Three words: her (4 times), here (twice), there (3 times)."""
    words = {"her": 4, "here": 2, "there": 3}
    value = call(function, words, 10)
    expected = [("e", "r"), ("h", "er"), ("her", "e"), ("t", "here")]
    wrong = {
        "a tie goes to the pair that was met first, or that is last in sorted order: it goes to the first in order": [
            ("h", "e"), ("he", "r"), ("her", "e"), ("t", "here"),
        ],
        "pieces never grow: count again after each merge, with the merged piece": [
            ("e", "r"), ("h", "e"), ("r", "e"), ("t", "h"),
        ],
        "the rarest pair is merged: merge the commonest": [
            ("t", "h"), ("th", "e"), ("the", "r"), ("r", "e"), ("e", "re"),
            ("h", "ere"), ("ther", "e"), ("e", "r"), ("h", "er"),
        ],
        "a mark is put at the end of each word: start from its characters alone": [
            ("e", "r"), ("h", "er"), ("e", "</w>"), ("her", "e</w>"), ("her", "</w>"),
            ("t", "here</w>"),
        ],
        "merged pieces are returned: return the pairs": ["er", "her", "here", "there"],
    }  # fmt: skip
    expect_merges(value, expected, "learn_merges of her (4), here (2), there (3)", wrong)
    assert words == {"her": 4, "here": 2, "there": 3}, "the dict of words was changed: work on a copy"
    two = len(call(function, words, 2))
    assert two == 2, f"{two} merges for count=2: one merge too {'few' if two < 2 else 'many'}"
