"""Chance alone takes no points: where a check samples, it judges a right answer wrongly less than once in a million.

Each row names a check and computes the bound from the constants that the check itself uses.
"""

import math

import pytest
from scipy.stats import binom, norm

from autograder.checks import DROPOUT_ENTRIES, DROPOUT_LUCK
from checks.imdb_classification import hidden as classification
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
    """Two of twelve heads with the same 60 weights dropped, on average over the probabilities, in two looks."""
    same = sum((p**2 + (1 - p) ** 2) ** 60 for p in PROBABILITIES) / len(PROBABILITIES)
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
    found = 0.0
    for share in (0.025, 0.975):
        margin = classification.LUCK * (share * (1 - share) / classification.DRAWS) ** 0.5
        reached = share * classification.DRAWS
        found += binom.cdf(reached, classification.DRAWS, min(share + margin, 1.0))
        found += binom.sf(reached - 2, classification.DRAWS, max(share - margin, 0.0))
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

    A percentile of so many draws is off by a normal number, and the ends are multiples of one example: they agree at
    most as often as one step is high in the density of the difference.
    """
    gap = (classification._FIRST_ALONE, classification._SECOND_ALONE)
    spread = (sum(gap) - (gap[0] - gap[1]) ** 2) ** 0.5 * classification.AMONG**0.5  # of a draw, in examples
    error = (0.025 * 0.975) ** 0.5 / norm.pdf(norm.ppf(0.025)) * spread
    apart = error * (1 / (classification.FEW[1] - 1) - 1 / classification.MANY[0]) ** 0.5
    return (1 / (apart * math.sqrt(2 * math.pi))) ** (2 * classification.SEEDS)


BOUNDS = [
    dropped_singly,
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
