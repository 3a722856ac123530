"""How sure an accuracy is: 95 % intervals, and differences between two models on the same examples."""

import math
from collections.abc import Iterator

import numpy as np

from attention_course.bleu import SAMPLES


def accuracy_interval(percent: float, count: int) -> list[float]:
    """The 95 % interval of an accuracy measured on so many examples, `[low, high]` in percent (Wilson, 1927)."""
    share, z = percent / 100, 1.96
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    reach = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return [round(100 * (centre - reach), 2), round(100 * (centre + reach), 2)]


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


def _chosen(count: int) -> Iterator[np.ndarray]:
    """The samples as positions, one at a time: 25,000 examples would fill the memory as a table."""
    chance = np.random.default_rng(0)
    for _ in range(SAMPLES):
        yield chance.integers(0, count, count)
