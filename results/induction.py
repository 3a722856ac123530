"""Chapter 11: small language models that have learnt to copy, one for each seed.

    python results/induction.py

Two layers of two heads, trained by the chapter's own loop on random rows that repeat themselves until they copy nearly
all of it. What ships with the chapter are their weights, in half precision: the chapter looks for heads in them.
"""

import os
import sys
from pathlib import Path

import torch
from report import clocks
from torch import Tensor

from attention_course.training import save

os.chdir(Path(__file__).resolve().parent.parent / "solutions" / "11_language_model")  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import language_model as chapter_11  # noqa: E402

SEEDS, STEPS, RATE = range(8), 1200, 3e-3
SIZES = {"vocab_size": 32, "dim": 64, "heads": 2, "depth": 2, "hidden": 128}
LENGTH, FIRST = 33, 3  # of a row; the first tokens are special ones


def draw_repeated(chance: torch.Generator, count: int = 32) -> Tensor:
    """The chapter's random rows that repeat themselves, `(count, LENGTH)`."""
    tokens = torch.randint(FIRST, SIZES["vocab_size"], (count, LENGTH), generator=chance)
    periods = torch.randint(LENGTH // 4, LENGTH // 2 + 1, (count, 1), generator=chance)
    return tokens.gather(1, torch.arange(LENGTH) % periods)


def main() -> None:
    """Train them and keep their weights."""
    torch.set_num_threads(1)
    kept = []
    for seed in SEEDS:
        read = clocks()
        torch.manual_seed(seed)
        model = chapter_11.LanguageModel(**SIZES)
        chance = torch.Generator().manual_seed(seed)
        losses = chapter_11.fit(model, lambda chance=chance: draw_repeated(chance), STEPS, RATE)
        print(f"seed {seed}: loss {losses[-1]:.2f}, {read()['processor_seconds']} processor s", file=sys.stderr)
        kept.append({name: value.half() for name, value in model.state_dict().items()})
    save({"settings": SIZES, "steps": STEPS, "states": kept}, Path("copiers.pt"))


if __name__ == "__main__":
    main()
