"""Random numbers that nobody foretells: of a seed all bits count, whoever draws.

`torch.manual_seed` uses 32 bits of its seed, and numpy takes no more. Some numbers that a check draws go to student
code, which may hold a table of what follows them, if there are only 2³² things that can. Here a generator's whole
state comes from the seed.
"""

import hashlib
import random
import sys

from autograder.wire.protocol import torch

_WORDS, _HEAD, _SIZE = 624, 24, 5056  # of the state of torch's generator: a Mersenne twister, and what stands before it


def seed_all(seed: int) -> None:
    """Let the random numbers of Python, torch and numpy in this process come from a seed, of up to any size."""
    random.seed(seed)
    if torch is not None:
        seed_generator(torch.default_generator, seed)
    if "numpy" in sys.modules:
        words = memoryview(_bytes(seed, "numpy", 32)).cast("I").tolist()
        sys.modules["numpy"].random.seed(words)


def seed_generator(generator: "torch.Generator", *seed: int) -> None:
    """Give a generator of torch's on the CPU a state of its own for each seed.

    Args:
        generator: the generator.
        seed: one number or more, of any size; streams of different numbers have nothing to do with each other.
    """
    generator.manual_seed(int.from_bytes(_bytes(seed, "torch", 8)))  # what it tells as its seed leads nowhere else
    state = generator.get_state()
    if len(state) != _SIZE:
        raise RuntimeError(f"torch's generator keeps {len(state)} bytes, not {_SIZE}: autograder/draws.py is to follow")
    words = torch.frombuffer(bytearray(_bytes(seed, "state", 4 * _WORDS)), dtype=torch.int32).long() & 0xFFFFFFFF
    state[_HEAD : _HEAD + 8 * _WORDS] = words.view(torch.uint8)
    generator.set_state(state)


def _bytes(seed: object, use: str, length: int) -> bytes:
    return hashlib.shake_256(f"{use} {seed}".encode()).digest(length)
