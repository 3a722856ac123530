"""A check that draws turns a right answer down less than once in a million runs: the bound, from its own constants."""

import math

import pytest

from checks import chance
from checks.language_model import hidden as language_model
from checks.seq2seq_attention import hidden as seq2seq

ONE_IN_A_MILLION = 1e-6


# ---- chapters 08 to 11


@pytest.mark.parametrize(("draws", "share"), [(300, 0.25), (60, 0.5), (900, 0.001), (10, 0.0), (10, 1.0)])
def test_so_few_and_so_many_come_out_as_seldom_as_is_said(draws, share):
    low, high = chance.likely_counts(draws, share)
    exactly = [math.comb(draws, k) * share**k * (1 - share) ** (draws - k) for k in range(draws + 1)]
    outside = sum(p for k, p in enumerate(exactly) if not low <= k <= high)
    assert outside <= 2 * chance.FALSE
    assert math.isclose(chance.chance_outside(draws, share, low, high), outside, rel_tol=1e-6, abs_tol=1e-30)


def _of_a_lot(lot):
    """How often right draws of a lot fail: a count outside its bounds, two rows that agree throughout, all calls."""
    counts = 2 * chance.FALSE * (language_model._COMMONEST + 1)
    rows, same = lot.rows[1], language_model._LIKELIEST  # two draws agree at most as often as the likeliest comes
    alike = math.comb(rows, 2) * same**lot.calls if lot.calls > 1 else 0.0
    calls = same ** (lot.calls - 1) if lot.calls > 1 else 0.0
    return counts + alike + calls


def test_sample_next():
    fixed = 2 * chance.FALSE * sum(2 * 6 for _ in language_model._SETTINGS)
    pairs = 2 * 3 * language_model._LIKELIEST**60  # of 60 rows, without settings and with all of them
    assert fixed + pairs + sum(map(_of_a_lot, language_model._LOTS)) < ONE_IN_A_MILLION


def test_generate():
    assert sum(map(_of_a_lot, language_model._TEXT_LOTS)) < ONE_IN_A_MILLION


def test_teacher_forcing():
    steps, shares = seq2seq._STEPS, (0.08, 0.1, 0.5, 0.3, 0.7, 0.8, 0.9)
    counts = 4 * 2 * chance.FALSE + 4 * max(max(p, 1 - p) ** steps for p in shares)
    assert counts + 4 * max(_repeated(steps, p) for p in shares) + _short() < ONE_IN_A_MILLION


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
    return math.comb(10, 2) * alike**seq2seq._SHORT_CALLS + 2 * 0.5**40
