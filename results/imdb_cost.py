"""What a token costs in chapter 07's training loop, against the same model from torch's own fused layers.

    python results/imdb_cost.py

All are timed in turns, in processor seconds, which other work on the machine lengthens least.
"""

import argparse
import copy
import os
import statistics
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
import torch.nn.functional as F
from report import clocks, write_run
from torch import Tensor, nn

from attention_course.fused import fuse_attention
from attention_course.training import mixed_precision

os.chdir(Path(__file__).resolve().parent.parent / "solutions" / "07_imdb_classification")

import autograder.course.imports  # noqa: E402, F401, I001
import imdb_classification as chapter  # noqa: E402

WORDS, LENGTH, TOKENS_IN_A_BATCH = 30_000, 512, 8000
DIM, HEADS, DEPTH, DROPOUT = 64, 2, 1, 0.0
NOTE = (
    "The chapter's attention writes its weights, batch × heads × n × n numbers, to memory at each step; torch's fused "
    "attention never holds them. `fuse_attention` lets the chapter's own attention compute with that kernel where "
    "nobody asks for the weights. In bfloat16 they are half as large, and cost little on this processor."
)


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
    """Processor time of one pass of `train_epoch` for each token."""
    start = time.process_time()
    chapter.train_epoch(model, batches, optimizer)
    return 1e6 * (time.process_time() - start) / sum(tokens.numel() for tokens, _ in batches)


def compare(rounds: int) -> list[float]:
    """Median microseconds a token of the chapter's model, of the same with fused attention, and of torch's layers."""
    lengths = [LENGTH // 4, LENGTH // 2, 3 * LENGTH // 4, LENGTH]
    rows = [TOKENS_IN_A_BATCH // n for n in lengths]
    batches = [(torch.randint(2, WORDS, (b, n)), torch.randint(2, (b,))) for b, n in zip(rows, lengths, strict=True)]
    ours = chapter.TransformerClassifier(WORDS, 2, DIM, HEADS, DEPTH, LENGTH, dropout=DROPOUT)
    models = (ours, fuse_attention(copy.deepcopy(ours)), FusedClassifier())
    optimizers = [torch.optim.AdamW(model.parameters(), fused=True) for model in models]
    times: list[list[float]] = [[] for _ in models]
    for _ in range(rounds + 1):  # the first round warms up
        for model, optimizer, values in zip(models, optimizers, times, strict=True):
            values.append(microseconds(model, batches, optimizer))
    return [statistics.median(values[1:]) for values in times]


def main() -> None:
    """Compare in each precision that the processor has."""
    parser = argparse.ArgumentParser(description="Time chapter 07's training loop.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    precisions: dict[str, AbstractContextManager] = {"float32": nullcontext(), "bfloat16": mixed_precision()}
    for name, context in precisions.items():
        if name == "bfloat16" and isinstance(context, nullcontext):
            continue
        read = clocks()
        with context:
            ours, fused, torchs = compare(given.rounds)
        values = {
            "the chapter's layers (µs)": round(ours, 2),
            "the chapter's with fused attention (µs)": round(fused, 2),
            "torch's layers (µs)": round(torchs, 2),
            "ratio": round(ours / torchs, 2),
            "ratio with fused attention": round(fused / torchs, 2),
        }
        print(f"{name}: {values}", flush=True)
        run = {
            "experiment": "What a training token costs (chapter 07)",
            "data": f"Batches of {TOKENS_IN_A_BATCH:,} random tokens, {LENGTH // 4} to {LENGTH} in a row",
            "metric": f"Median processor time of {given.rounds} passes",
            "model": f"transformer, one block, {name}",
            "seed": 0,
            "parameters": sum(p.numel() for p in FusedClassifier().parameters()),
            "epochs": "–",
            "precision": name,
            "values": values,
            "notes": [NOTE],
        }
        write_run(read() | run)


if __name__ == "__main__":
    main()
