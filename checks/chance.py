"""What chance may do: how often each thing can come when right answers draw, and sizes that nobody can foretell."""

import math

import torch
from torch import Tensor

from autograder.checks import randint

# How often a right answer may be outside the bounds of one count, on each side. `tests/test_chance.py` adds up what
# that makes for each check.
FALSE = 1e-11


def drawn_between(low: float, high: float) -> float:
    """A number of three digits between two others, small ones as likely as large ones."""
    share = int(randint(0, 10**6, ())) / 10**6
    return float(f"{low * (high / low) ** share:.3g}")


def drawn_wide(low: int, high: int) -> int:
    """A whole number from `low` to `high`, small ones as likely as large ones: a size among those that lie between."""
    return min(int(drawn_between(low, high + 1)), high)


def drawn_medium() -> int:
    """A size between those of a few dozen, which checks write out, and the long ones of `draw_size()`."""
    return drawn_wide(61, 600)


def likely_counts(draws: int, chance: float, false: float = FALSE) -> tuple[int, int]:
    """The fewest and the most of so many draws that may come out, each missed with a probability of `false` or less.

    Args:
        draws: how many, each on its own.
        chance: of each one to come out, from 0 to 1.
        false: how often a right answer may have fewer, and how often it may have more.
    """
    at_least, at_most = _tails(draws, chance)
    return int((at_most > false).nonzero()[0]), int((at_least > false).nonzero()[-1])


def chance_outside(draws: int, chance: float, low: int, high: int) -> float:
    """How likely it is that of so many draws fewer than `low` or more than `high` come out."""
    at_least, at_most = _tails(draws, chance)
    below = at_most[low - 1].item() if low > 0 else 0.0
    return below + (at_least[high + 1].item() if high < draws else 0.0)


def mean_is_likely(mean: float, draws: int, values: Tensor, chances: Tensor, false: float = FALSE) -> bool:
    """Whether the mean of so many draws can be this; as low, or as high, it is with a probability of `false` or less.

    By Chernoff's bound: for each t > 0 the mean is `mean` or more with a probability of E[exp(t (x - mean))]^draws or
    less, and the other way round for t < 0.

    Args:
        mean: what came out.
        draws: how many, each on its own.
        values: what is drawn from, `(n,)`.
        chances: of each value, `(n,)`, with a sum of 1.
        false: how often a right answer may have a lower mean, and how often it may have a higher one.
    """
    away, chances = values.double() - mean, chances.double()
    spread = (chances @ away.square()).sqrt().clamp(min=1e-300)
    tilts = (2 ** torch.arange(-6, 4.5, 0.5, dtype=torch.float64) / spread).unsqueeze(1)
    bounds = [torch.logsumexp(tilt * away + chances.log(), 1) for tilt in (tilts, -tilts)]
    return bool((draws * torch.cat(bounds) > math.log(false)).all())


def _tails(draws: int, chance: float) -> tuple[Tensor, Tensor]:
    """Of each count the probability that so many or more come out, and that so many or fewer do."""
    counts = torch.arange(draws + 1, dtype=torch.float64)
    rest = draws - counts
    ways = torch.lgamma(torch.tensor(draws + 1.0).double()) - torch.lgamma(counts + 1) - torch.lgamma(rest + 1)
    share = torch.tensor(chance, dtype=torch.float64)
    exactly = (ways + torch.special.xlogy(counts, share) + torch.special.xlog1py(rest, -share)).exp()
    return exactly.flip(0).cumsum(0).flip(0), exactly.cumsum(0)
