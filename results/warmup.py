"""Chapter 06's reversal task for longer than the chapter has time for: what does a deep post-norm stack need?

    python results/warmup.py

500 steps; the same model, batches and optimizer as in the chapter. With Xavier's weights twelve blocks, three seeds;
with torch's smaller ones twelve blocks, ten seeds, and twenty-four, three. As controls twelve blocks that keep the
words apart, and whose queries and keys stay as they were drawn; twelve that keep them apart and add as much as without,
and twelve that do not, but add as little; and twenty-four in which both sublayers add only what differs from position
to position.
"""

import os
from pathlib import Path
from typing import Any

from report import clocks, on_record, write_run

os.chdir(Path(__file__).resolve().parent.parent / "solutions" / "06_transformer_block")

import autograder.course.imports  # noqa: E402, F401, I001
import torch  # noqa: E402
import transformer_block as chapter  # noqa: E402


class Apart(chapter.TransformerBlock):
    """A post-norm block in which attention adds only what differs from position to position."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        attended, _ = self.attention(x, x, x, mask)
        x = self.norm_1(x + attended - attended.mean(dim=1, keepdim=True))
        return self.norm_2(x + self.feed_forward(x))


class Undirected(Apart):
    """A block that keeps words apart, and whose queries and keys stay as they were drawn."""

    def __init__(self, dim: int, heads: int, **more: Any) -> None:
        super().__init__(dim, heads, **more)
        for layer in (self.attention.Wq, self.attention.Wk):
            layer.requires_grad_(False)


class AsLarge(chapter.TransformerBlock):
    """An `Apart` block in which attention adds as much as it would if it added everything."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        attended, _ = self.attention(x, x, x, mask)
        x = self.norm_1(x + self.added(attended, attended - attended.mean(dim=1, keepdim=True)))
        return self.norm_2(x + self.feed_forward(x))

    def added(self, attended: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """What differs from position to position, made as large as everything."""
        return own * (attended.norm() / own.norm()).detach()


class AsSmall(AsLarge):
    """A post-norm block in which attention adds everything, but no more of it than an `Apart` block adds."""

    def added(self, attended: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Everything, made as small as what differs from position to position."""
        return super().added(own, attended)


class BothApart(chapter.TransformerBlock):
    """A post-norm block in which both sublayers add only what differs from position to position."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        attended, _ = self.attention(x, x, x, mask)
        x = self.norm_1(x + attended - attended.mean(dim=1, keepdim=True))
        fed = self.feed_forward(x)
        return self.norm_2(x + fed - fed.mean(dim=1, keepdim=True))


STEPS = 500
MOMENTS = (120, 250, 500)  # the chapter stops at the first
POST: dict[str, Any] = {"norm_first": False}
SMALLER = POST | {"start": None}  # as torch draws them
THIRD, TENTH = POST | {"rate": 1e-3}, POST | {"rate": 3e-4}
THIRD_UNDIRECTED = THIRD | {"block": Undirected}
XAVIER, SMALL = "Reversing eight digits (chapter 06)", "Reversing eight digits, torch's weights (chapter 06)"
# experiment, model, blocks, seeds, settings
RUNS = [
    (XAVIER, "post-norm, no warm-up", 12, 3, POST),
    (XAVIER, "post-norm, warm-up of 60 steps", 12, 3, POST | {"warmup": 60}),
    (XAVIER, "post-norm, warm-up of 250 steps", 12, 3, POST | {"warmup": 250}),
    (XAVIER, "post-norm, a third of the rate", 12, 3, THIRD),
    (XAVIER, "post-norm, a tenth of the rate", 12, 3, TENTH),
    (XAVIER, "post-norm, a third of the rate, words apart, queries and keys as drawn", 12, 3, THIRD_UNDIRECTED),
    (XAVIER, "post-norm, a third of the rate, words apart, added as much", 12, 3, THIRD | {"block": AsLarge}),
    (XAVIER, "post-norm, a tenth of the rate, words apart, added as much", 12, 3, TENTH | {"block": AsLarge}),
    (XAVIER, "post-norm, a third of the rate, added as little", 12, 3, THIRD | {"block": AsSmall}),
    (SMALL, "12 blocks, post-norm, no warm-up", 12, 10, SMALLER),
    (SMALL, "24 blocks, post-norm, no warm-up", 24, 3, SMALLER),
    (SMALL, "24 blocks, post-norm, warm-up of 60 steps", 24, 3, SMALLER | {"warmup": 60}),
    (SMALL, "24 blocks, post-norm, a third of the rate", 24, 3, SMALLER | {"rate": 1e-3}),
    (SMALL, "24 blocks, post-norm, no warm-up, words apart", 24, 3, SMALLER | {"block": BothApart}),
    (SMALL, "24 blocks, pre-norm, no warm-up", 24, 3, SMALLER | {"norm_first": True}),
]
DATA = {
    XAVIER: "Random digits, 32 rows of eight at each step; twelve blocks of width 32",
    SMALL: "Random digits, 32 rows of eight at each step; blocks of width 32 with torch's default weights",
}


def keep_run(experiment: str, name: str, depth: int, seed: int, settings: dict[str, Any]) -> None:
    """Train once and keep the loss at the end and on the way."""
    read = clocks()
    losses = chapter.train_to_reverse(depth, seed=seed, steps=STEPS, **settings)
    values = {f"step {step}": round(sum(losses[step - 10 : step]) / 10, 3) for step in MOMENTS}
    print(f"{name}, seed {seed}: {values}", flush=True)
    run = {
        "experiment": experiment,
        "data": DATA[experiment],
        "metric": "Loss for each digit, mean of the last ten steps (guessing: 2.303)",
        "model": name,
        "seed": seed,
        "parameters": sum(p.numel() for p in chapter.Stack(depth, norm_first=settings["norm_first"]).parameters()),
        "epochs": "–",
        "precision": "float32",
        "values": values,
    }
    write_run(read() | run)


if __name__ == "__main__":
    for experiment, name, depth, seeds, settings in RUNS:
        for seed in range(seeds):
            if not on_record(experiment, name, seed):
                keep_run(experiment, name, depth, seed, settings)
