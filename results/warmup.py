"""Chapter 06's reversal task for longer than the chapter has time for: does a warm-up help a deep post-norm stack?

    python results/warmup.py

Twelve blocks, 500 steps, three seeds; the same model, batches and optimizer as in the chapter.
"""

import os
from pathlib import Path
from typing import Any

from report import clocks, write_run

os.chdir(Path(__file__).resolve().parent.parent / "solutions" / "06_transformer_block")

import autograder.course.imports  # noqa: E402, F401, I001
import transformer_block as chapter  # noqa: E402

DEPTH, STEPS, SEEDS = 12, 500, 3
MOMENTS = (120, 250, 500)  # the chapter stops at the first
RUNS: dict[str, dict[str, Any]] = {
    "post-norm, no warm-up": {"norm_first": False},
    "post-norm, warm-up of 60 steps": {"norm_first": False, "warmup": 60},
    "post-norm, warm-up of 250 steps": {"norm_first": False, "warmup": 250},
    "post-norm, a third of the rate": {"norm_first": False, "rate": 1e-3},
}


def keep_run(name: str, seed: int) -> None:
    """Train once and keep the loss at the end and on the way."""
    read = clocks()
    losses = chapter.train_to_reverse(DEPTH, seed=seed, steps=STEPS, **RUNS[name])
    values = {f"step {step}": round(sum(losses[step - 10 : step]) / 10, 3) for step in MOMENTS}
    print(f"{name}, seed {seed}: {values}", flush=True)
    run = {
        "experiment": "Reversing eight digits (chapter 06)",
        "data": "Random digits, 32 rows of eight at each step; twelve blocks of width 32",
        "metric": "Loss for each digit, mean of the last ten steps (guessing: 2.303)",
        "model": name,
        "seed": seed,
        "parameters": sum(p.numel() for p in chapter.Stack(DEPTH, norm_first=False).parameters()),
        "epochs": "–",
        "precision": "float32",
        "values": values,
    }
    write_run(read() | run)


if __name__ == "__main__":
    for seed in range(SEEDS):
        for name in RUNS:
            keep_run(name, seed)
