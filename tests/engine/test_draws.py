"""What a check draws cannot be foretold from what student code has seen of it, and can be had again from its seed."""

import random

import numpy
import pytest
import torch

from autograder import checks
from autograder.draws import seed_all, seed_generator


def test_all_bits_of_a_seed_count():
    plain, ours = torch.Generator(), torch.Generator()
    drawn = {True: set(), False: set()}
    for high in range(20):
        plain.manual_seed(5 + (high << 32))
        drawn[False].add(torch.rand(1, generator=plain).item())
        seed_generator(ours, 5 + (high << 32))
        drawn[True].add(torch.rand(1, generator=ours).item())
    assert len(drawn[False]) == 1, "torch's own seeds differ in 32 bits alone: what this is for"
    assert len(drawn[True]) == 20


def test_what_was_drawn_does_not_tell_what_comes():
    """Even to who knows the generator's whole state after a draw, which a long enough one gives away."""
    checks.reseed(1)
    checks.randn(1000)
    known = torch.Generator()
    known.set_state(checks._generator.get_state())
    assert not torch.equal(checks.randn(4), torch.randn(4, generator=known, dtype=torch.float64))
    known.manual_seed(1)
    plain = torch.Generator().manual_seed(1)
    torch.randn(1000, generator=plain)
    known.set_state(plain.get_state())
    assert torch.equal(torch.randn(4, generator=plain), torch.randn(4, generator=known)), "a generator left alone tells"


@pytest.mark.parametrize("seed", [0, 1, (1 << 64) - 1])
def test_a_seed_gives_the_same_numbers_again(seed):
    def draw() -> list:
        seed_all(seed)
        checks.reseed(seed)
        here = [random.random(), torch.rand(3).tolist(), float(numpy.random.rand())]
        return [*here, checks.randn(3).tolist(), checks.randint(0, 99, (3,)).tolist()]

    assert draw() == draw()


def test_numbers_are_as_random_as_torchs_own():
    checks.reseed(7)
    assert checks.randn(100_000).std().item() == pytest.approx(1, abs=0.02)
    means = torch.stack([checks.randn(50).mean() for _ in range(2_000)])  # each from a state of its own
    assert means.std().item() == pytest.approx(50**-0.5, rel=0.1) and abs(means.mean()) < 0.02
