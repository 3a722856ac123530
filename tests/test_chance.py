"""Chance alone takes no points: where a check samples, it judges a right answer wrongly less than once in a million.

Each row names a check and computes the bound from the constants that the check itself uses.
"""

import math

import pytest
import torch
from scipy.stats import binom, norm

from autograder.checks import DROPOUT_ENTRIES, DROPOUT_LUCK
from checks import chance
from checks.imdb_classification import hidden as classification
from checks.language_model import hidden as language_model
from checks.pretraining import hidden as pretraining
from checks.seq2seq_attention import hidden as seq2seq
from checks.transformer_block import hidden as block

LEAST = 1e-6
# What `draw_probability` draws lies between the first and the last.
PROBABILITIES = [0.15 + 0.45 * step / 30 for step in range(31)]


def beyond_luck(count: int, probability: float) -> float:
    """How likely so many independent entries give a number outside of what `within_luck` allows."""
    margin = DROPOUT_LUCK * (count * probability * (1 - probability)) ** 0.5
    low, high = math.ceil(count * probability - margin), math.floor(count * probability + margin)
    return binom.cdf(low - 1, count, probability) + binom.sf(high, count, probability)


def dropped_singly() -> float:
    """A hundred numbers of one judgement: shares of all entries, and of pairs, at least a third as many."""
    counts = [DROPOUT_ENTRIES * step // 3 for step in (1, 2, 3, 6, 20)]
    alike = [p**2 + (1 - p) ** 2 for p in PROBABILITIES]
    shares = max(beyond_luck(n, p) for n in counts if n >= DROPOUT_ENTRIES for p in PROBABILITIES)
    pairs = max(beyond_luck(n, p) for n in counts for p in alike)
    all_alike = max(p ** (DROPOUT_ENTRIES // 3) for p in alike)
    return 100 * max(shares, pairs, all_alike)


def block_drops_whole_positions() -> float:
    """A position whose features are all kept, or all dropped: in both orders, after both sublayers."""
    batch, n, features = block.DROPPED_SIZES
    return 4 * batch * n * max(p**features + (1 - p) ** features for p in PROBABILITIES)


def attention_drops_alike() -> float:
    """Two of twelve heads with the same 240 weights dropped, in two looks."""
    same = max(p**2 + (1 - p) ** 2 for p in PROBABILITIES) ** 240
    return 2 * math.comb(12, 2) * same


def dropped_alike_twice() -> float:
    """Two calls, or six items of a batch, that drop the same; or a call that drops nothing.

    The modules drop from at least 150 numbers: half of the 6 · 9 · 6 hidden ones of a FeedForward are not 0 already.
    """
    twice = max(p**2 + (1 - p) ** 2 for p in PROBABILITIES) ** 150
    return 20 * (twice + (1 - min(PROBABILITIES)) ** 150)


def start_of_an_embedding() -> float:
    """The mean and the standard deviation of 512 rows of 64 normal numbers, for "add" and for "expand"."""
    count = 512 * 64
    return 2 * (2 * norm.sf(0.007 / (0.1 / count**0.5)) + 2 * norm.sf(0.005 / (0.1 / (2 * count) ** 0.5)))


def bootstrap_ends() -> float:
    """Either percentile beyond what the check allows of the exact distribution."""
    return _ends(classification.DRAWS) + 2 * _ends(classification.DRAWS_OF_A_WORSE)


def _ends(draws):
    found = 0.0
    for share in (0.025, 0.975):
        margin = classification.LUCK * (share * (1 - share) / draws) ** 0.5
        reached = share * draws
        found += binom.cdf(reached, draws, min(share + margin, 1.0))
        found += binom.sf(reached - 2, draws, max(share - margin, 0.0))
    return found


def bootstrap_of_few() -> float:
    """Another high end than three tenths, for three places of the one example."""
    count, draws = classification.FEW_EXAMPLES, classification.DRAWS_OF_FEW
    reached, below = (binom.cdf(k, count, 1 / count) for k in (classification.TENTHS, classification.TENTHS - 1))
    edge = 0.975 * draws
    return 3 * (binom.cdf(edge + 1, draws, reached) + binom.sf(edge - 2, draws, below))


def bootstrap_whose_turn() -> float:
    """So few draws with the one example that a percentile between them is 0, for nine examples."""
    taken = min(1 - (1 - 1 / count) ** count for count in (11, 4000))
    return 9 * binom.cdf(2, classification.DRAWS_OF_TURN, taken)


def bootstrap_more_samples() -> float:
    """The same ends of few samples and of more that begin with them, for each of the generators.

    A percentile of so many draws is off by a normal number, and the ends are multiples of one example. Whatever the few
    samples gave, the others move an end by their share: it stays at most as often as one step is high in the density.
    """
    spread = (2 * classification.DISAGREE) ** 0.5  # of a draw, in examples
    error = (0.025 * 0.975) ** 0.5 / norm.pdf(norm.ppf(0.025)) * spread
    found = 0.0
    for (_, few), (least, most) in classification.FEW_AND_MANY:
        moved = min(error * (many - few + 1) ** 0.5 / many for many in (least, most - 1))
        found += (1 / (moved * math.sqrt(2 * math.pi))) ** (2 * classification.SEEDS)
    return found


def classifier_drops_once() -> float:
    """The share of the features that may no longer be dropped, or more, dropped at a half."""
    entries = classification.DROPPED_ONCE**2
    return binom.sf(math.ceil(classification.MOST_DROPPED * entries) - 1, entries, 0.5)


BOUNDS = [
    dropped_singly,
    classifier_drops_once,
    block_drops_whole_positions,
    attention_drops_alike,
    dropped_alike_twice,
    start_of_an_embedding,
    bootstrap_ends,
    bootstrap_of_few,
    bootstrap_whose_turn,
    bootstrap_more_samples,
]


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.__name__)
def test_a_right_answer_fails_by_chance_less_than_once_in_a_million(bound):
    assert 0 <= bound() < LEAST


# ---- chapters 08 to 12


@pytest.mark.parametrize(("draws", "share"), [(300, 0.25), (60, 0.5), (900, 0.001), (10, 0.0), (10, 1.0)])
def test_so_few_and_so_many_come_out_as_seldom_as_is_said(draws, share):
    low, high = chance.likely_counts(draws, share)
    exactly = [math.comb(draws, k) * share**k * (1 - share) ** (draws - k) for k in range(draws + 1)]
    outside = sum(p for k, p in enumerate(exactly) if not low <= k <= high)
    assert outside <= 2 * chance.FALSE
    assert math.isclose(chance.chance_outside(draws, share, low, high), outside, rel_tol=1e-6, abs_tol=1e-30)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_mean_is_so_low_and_so_high_as_seldom_as_is_said(share):
    draws, false = 60, 0.01
    values, chances = torch.tensor([-3.0, 5.0]), torch.tensor([1 - share, share])
    likely = [chance.mean_is_likely(-3 + 8 * k / draws, draws, values, chances, false) for k in range(draws + 1)]
    low, high = likely.index(True), draws - likely[::-1].index(True)
    assert all(likely[low : high + 1])
    assert 0 < chance.chance_outside(draws, share, low, high) <= 2 * false


def _of_a_lot(lot):
    """How often right draws of a lot fail: a count outside its bounds, rows or calls that agree, calls all alike."""
    counts = 2 * chance.FALSE * (language_model._COMMONEST + 1 + 4 + 1)  # those, the others, quarters, the mean
    alike = 3 * chance.FALSE  # two rows, two calls, or all of the calls
    return counts + alike + language_model._LIKELIEST**lot.draws


def _over_seeds(lots):
    return max(sum(map(_of_a_lot, lots())) for _ in range(20))


def test_sample_next():
    fixed = 2 * chance.FALSE * sum(2 * 6 for _ in language_model._SETTINGS)
    pairs = 2 * 3 * language_model._LIKELIEST**60  # of 60 rows, without settings and with all of them
    lots = _over_seeds(lambda: [*language_model._LOTS, *language_model._lots_between()])
    assert fixed + pairs + lots < LEAST


def test_generate():
    assert _over_seeds(lambda: [lot for lot, _ in language_model._text_lots()]) < LEAST


def test_mask_tokens():
    fates = 4 * (len(pretraining._VOCABULARIES) + 2)  # how many are chosen, and what becomes of them
    evenly, missing = 18, 18 * (17 / 18) ** 3000  # of the tokens that are put in others' places
    assert 2 * chance.FALSE * (fates + evenly) + missing < LEAST


def test_teacher_forcing():
    shares = 0.04, 0.06, 0.5, 0.3, 0.7, 0.94, 0.96
    runs = [(seq2seq._STEPS, p) for p in shares] + [(seq2seq._STEPS // 2, 0.5)]  # fewer steps by default, in evaluation
    counts = 3 * 6 * 2 * chance.FALSE + 6 * max(max(p, 1 - p) ** steps for steps, p in runs)
    assert counts + 6 * max(_repeated(steps, p) for steps, p in runs) + _short() < LEAST


def _repeated(steps, share):
    """How often choices repeat at one of the lags: the steps that lie a lag apart have to be all alike."""
    total = 0.0
    for lag in range(1, steps - seq2seq.stretch(share)):
        long, rest = divmod(steps, lag)
        of = [share**n + (1 - share) ** n for n in (long + 1, long)]
        total += of[0] ** rest * of[1] ** (lag - rest)
    return total


def _short():
    """How often two of at most ten steps choose alike in every call with a short target, or two runs of 40 agree."""
    alike = 0.6**2 + 0.4**2
    fixed, together = 2 * 10 * 0.6**seq2seq._SHORT_CALLS, math.comb(10, 2) * alike**seq2seq._SHORT_CALLS
    return 2 * (fixed + together) + 2 * 4 * 0.5**39  # with a generator and without
