"""BLEU of a corpus from what its sentences count, so that drawing the sentences anew costs next to nothing."""

import numpy as np
from sacrebleu.metrics import BLEU

SAMPLES = 1000  # how often the sentences are drawn anew
TOKENS = BLEU(tokenize="none", smooth_method="none")  # of tokens with spaces between them: chapter 10's `corpus_bleu`


def draws(count: int, seed: int = 0) -> np.ndarray:
    """How often each of `count` sentences is in each sample, `(SAMPLES, count)`; of one seed always the same draws."""
    return np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=SAMPLES)


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
    *numbers, written, wanted = (int(value) for value in sums)
    return BLEU.compute_bleu(numbers[:n], numbers[n:], written, wanted, smooth_method=metric.smooth_method).score


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


def bleu_samples(metric: BLEU, one: np.ndarray, other: np.ndarray, seed: int = 0) -> np.ndarray:
    """BLEU of two systems on the same sentences: first as they are, then in each sample of them.

    Args:
        metric: whose BLEU.
        one: what BLEU adds up over the sentences for one system, `(N, 10)`.
        other: the same for the other system.
        seed: of the draws; sets of sentences that are to be drawn on their own get seeds of their own.

    Returns:
        `(SAMPLES + 1, 2)`.
    """
    drawn = np.vstack([np.ones(len(one), dtype=int), draws(len(one), seed)])
    return np.array([[bleu_of(metric, sums) for sums in pair] for pair in zip(drawn @ one, drawn @ other, strict=True)])
