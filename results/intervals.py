"""How sure a figure is: 95 % intervals, and differences between two models on the same examples."""

import math

import numpy as np
from sacrebleu.metrics import BLEU

SAMPLES = 1000  # how often the examples are drawn anew


def accuracy_interval(percent: float, count: int) -> list[float]:
    """The 95 % interval of an accuracy measured on so many examples, `[low, high]` in percent (Wilson, 1927)."""
    share, z = percent / 100, 1.96
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    reach = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return [round(100 * (centre - reach), 2), round(100 * (centre + reach), 2)]


def draws(count: int) -> np.ndarray:
    """How often each of `count` examples is in each sample, `(SAMPLES, count)`; always the same draws."""
    return np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=SAMPLES)


def paired_difference(one: np.ndarray, other: np.ndarray) -> list[float]:
    """The mean of one minus the mean of the other, and its 95 % interval when the examples are drawn anew.

    Args:
        one: a value for each example, `(N,)`.
        other: the other model's, for the same examples.

    Returns:
        `[difference, low, high]`.
    """
    differences = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    means = [differences[chosen].mean() for chosen in _chosen(len(differences))]
    return [float(differences.mean()), *map(float, np.percentile(means, [2.5, 97.5]))]


def _chosen(count: int):
    """The samples as positions, one at a time: 25,000 examples would fill the memory as a table."""
    chance = np.random.default_rng(0)
    for _ in range(SAMPLES):
        yield chance.integers(0, count, count)


def bleu_counts(metric: BLEU, hypotheses: list[str], references: list[str]) -> np.ndarray:
    """What BLEU adds up over sentences, `(N, 10)`: n-grams found and n-grams written, both lengths."""
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        score = metric.corpus_score([hypothesis], [[reference]])  # `sentence_score` warns each time
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows)


def bleu_of(metric: BLEU, sums: np.ndarray) -> float:
    """Corpus BLEU of summed counts, `(10,)`."""
    n = (len(sums) - 2) // 2
    numbers = [int(value) for value in sums]
    return BLEU.compute_bleu(
        numbers[:n], numbers[n : 2 * n], *numbers[2 * n :], smooth_method=metric.smooth_method
    ).score


def bleu_interval(metric: BLEU, counts: np.ndarray) -> list[float]:
    """The 95 % interval of corpus BLEU when the sentences are drawn anew, `[low, high]`."""
    scores = [bleu_of(metric, sums) for sums in draws(len(counts)) @ counts]
    return [round(float(value), 2) for value in np.percentile(scores, [2.5, 97.5])]


def bleu_difference(metric: BLEU, one: np.ndarray, other: np.ndarray) -> list[float]:
    """BLEU of one minus BLEU of the other, and its 95 % interval; both have the same sentences in every sample."""
    drawn = draws(len(one))
    pairs = zip(drawn @ one, drawn @ other, strict=True)
    differences = [bleu_of(metric, a) - bleu_of(metric, b) for a, b in pairs]
    whole = bleu_of(metric, one.sum(axis=0)) - bleu_of(metric, other.sum(axis=0))
    return [round(float(value), 2) for value in (whole, *np.percentile(differences, [2.5, 97.5]))]
