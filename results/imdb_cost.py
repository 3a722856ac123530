"""What a token costs in chapter 07's training loop, against the same model from torch's own fused layers.

python results/imdb_cost.py
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

os.chdir(Path(__file__).resolve().parent.parent / "solutions" / "07_imdb_classification")

import autograder.chapters  # noqa: E402, F401, I001
import imdb_classification as chapter  # noqa: E402

WORDS, DIM, HEADS, DEPTH, LENGTH, DROPOUT = 30_000, 128, 4, 1, 400, 0.1


class FusedClassifier(nn.Module):
    """The same model from `nn.TransformerEncoderLayer` and torch's norm."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, DIM)
        self.positions = nn.Parameter(0.1 * torch.randn(LENGTH, DIM))
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, DROPOUT, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(DIM)
        self.classes = nn.Linear(DIM, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Log-probabilities, `(B, 2)`."""
        padding = tokens == 1
        x = F.dropout(self.embedding(tokens) + self.positions[: tokens.shape[1]], DROPOUT, self.training)
        x = self.norm(self.blocks(x, src_key_padding_mask=padding))
        return F.log_softmax(self.classes(chapter.masked_mean(x, ~padding)), dim=-1)


def microseconds(model: nn.Module, batches: list, optimizer: torch.optim.Optimizer) -> float:
    """Time of one pass of `train_epoch` for each token."""
    start = time.perf_counter()
    chapter.train_epoch(model, batches, optimizer)
    return 1e6 * (time.perf_counter() - start) / sum(tokens.numel() for tokens, _ in batches)


def main() -> None:
    """Time both in turns and print medians."""
    parser = argparse.ArgumentParser(description="Time chapter 07's training loop.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    lengths = (120, 200, 280, 400)
    batches = [(torch.randint(2, WORDS, (8000 // n, n)), torch.randint(0, 2, (8000 // n,))) for n in lengths]
    ours = chapter.TransformerClassifier(WORDS, 2, DIM, HEADS, DEPTH, LENGTH, dropout=DROPOUT)
    models = {"chapter 07": ours, "torch's layers": FusedClassifier()}
    optimizers = {name: torch.optim.AdamW(model.parameters()) for name, model in models.items()}
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(given.rounds + 1):  # the first round warms up
        for name, model in models.items():
            times[name].append(microseconds(model, batches, optimizers[name]))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name}: {value:.1f} µs a token")
    mine, torchs = medians.values()
    print(f"ratio: {mine / torchs:.2f} (load {os.getloadavg()[0]:.1f})")


if __name__ == "__main__":
    main()
