"""Chapter 12's body: a small transformer reads the 75,000 reviews that are not the test set, before it judges any.

    python data/download.py
    python results/pretraining.py [--objective masked|next] --minutes 60
    python results/pretraining.py --decay 20
    python results/pretraining.py --export results/bodies/masked.pt [--decayed] [--bits 8]
    python results/pretraining.py --from results/bodies/masked.pt --minutes 60
    python results/pretraining.py --device cuda --name longer --minutes 5 --set blocks_in_a_batch=64

It reads at a constant rate, after a warm-up, for as long as it is told, and goes on where it was stopped: its state is
in `data/full/cache`. `--decay` lets the rate of a copy fall to 0; the state that reads on stays as it was. `--export`
writes the weights and the pieces of the state that reads on, or of the copy, in 16 bits a number or in 8. Where only
such a file is left, `--from` reads on from it, with a new state of the optimizer and a new warm-up. `--device cuda`
reads on a graphics card.

Read are the training reviews, labelled and not, without their labels, but for the labelled ones of the last hundredth
of the training films: the loss that is shown is of these. Of the test reviews nothing is read, by subwords or body.
"""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from report import STARTED_IN, clocks, full_data, parse_settings
from subwords import EOS, MASK, PAD, SOS, UNK, train_subwords
from torch import Tensor, nn
from torch.nn import functional as F

from attention_course.bodies import load_export
from attention_course.data import cache_folder, read_reviews
from attention_course.training import keep_training, load_state, save

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "07_imdb_classification")  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import multi_head_attention as chapter_04  # noqa: E402
import positions as chapter_05  # noqa: E402
import queries_keys_values as chapter_03  # noqa: E402
import transformer_block as chapter_06  # noqa: E402
from quick import half_precision, keep_freed_memory, quicken  # noqa: E402

PIECES, COVERAGE, SPECIAL = 8000, 0.9998, (UNK, PAD, SOS, EOS, MASK)
KEPT_BACK = 0.01  # of the training films: not read, for the loss that is shown
HELD_BLOCKS = 128
SIZES = {"dim": 256, "heads": 4, "depth": 4, "hidden": 768, "max_len": 256}
READING: dict[str, Any] = {
    "share": 0.15,  # of the tokens to be guessed, where that is the objective
    "blocks_in_a_batch": 16,
    "rate": 1e-3,
    "warmup": 200,  # steps, also after a new start from weights alone
    "betas": (0.9, 0.98),
    "weight_decay": 0.01,
}
OBJECTIVES = ("masked", "next")
SAVED_EVERY = 300  # seconds


class TurnedAttention(chapter_04.MultiHeadAttention):
    """Chapter 04's attention with chapter 05's rotary positions.

    With a learned table of positions in their place (and a longer warm-up, 500 steps for 200) the loss on what is kept
    back was 6.62 after 2.2 million tokens; with these it was 5.49 after 2.0 million. One training each.
    """

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As the chapter's."""
        pairs = (self.Wq, queries), (self.Wk, keys), (self.Wv, values)
        q, k, v = (chapter_04.split_heads(W(x), self.heads) for W, x in pairs)
        q, k = (chapter_05.rotate(x, torch.arange(x.shape[2], device=x.device)) for x in (q, k))
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)  # (B, 1, n, m): the same for every head
        weights = chapter_03.query_key_weights(q, k, mask)
        return self.WO(chapter_04.merge_heads(self.dropout(weights) @ v)), weights


class Body(nn.Module):
    """Chapter 07's classifier without its head, with rotary positions: a vector for each token, from those around it.

    Args:
        num_tokens: the size of the vocabulary.
        dim: features of each position, d.
        heads: heads of each block.
        depth: how many blocks there are.
        hidden: features inside the network of each block.
        max_len: the length of the blocks that it reads; longer texts are read in windows.
        causal: whether a position sees only those before it.
        dropout: the probability of the dropout in the blocks.
        pad_id: the number of the padding token.
    """

    def __init__(
        self,
        num_tokens: int,
        dim: int,
        heads: int,
        depth: int,
        hidden: int,
        max_len: int,
        causal: bool = False,
        dropout: float = 0.0,
        pad_id: int = PAD,
    ) -> None:
        super().__init__()
        self.causal, self.pad_id, self.max_len = causal, pad_id, max_len
        self.embedding = nn.Embedding(num_tokens, dim)
        self.blocks = nn.ModuleList(
            chapter_06.TransformerBlock(dim, heads, hidden, dropout, norm_first=True) for _ in range(depth)
        )
        for block in self.blocks:
            block.attention = TurnedAttention(dim, heads, dropout)
        self.norm = chapter_06.LayerNorm(dim)
        nn.init.normal_(self.embedding.weight, std=0.02)  # the output is tied to it

    def forward(self, tokens: Tensor) -> Tensor:
        """A vector for each token: `(B, n)` to `(B, n, d)`."""
        n, real = tokens.shape[1], tokens != self.pad_id
        mask = None if real.all() else real.unsqueeze(1)  # (B, 1, n)
        if self.causal:
            before = torch.ones(n, n, dtype=torch.bool, device=tokens.device).tril()
            mask = before if mask is None else before & mask
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)


def pack(rows: list[np.ndarray], length: int, eos_id: int) -> Tensor:
    """Join texts, `eos_id` after each, and cut them into blocks `(N, length)`, int64; the rest is dropped."""
    end = np.array([eos_id])
    joined = np.concatenate([part for row in rows for part in (row, end)])
    blocks = len(joined) // length
    return torch.from_numpy(joined[: blocks * length].astype(np.int64)).view(blocks, length)


def mask_tokens(
    tokens: Tensor, mask_id: int, vocab_size: int, special: int, share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Hide some tokens (Devlin et al., 2019).

    Args:
        tokens: `(B, n)`; those below `special` are never chosen and never put in another's place.
        mask_id: what takes the place of 80 % of the chosen; 10 % become a random token, 10 % stay.
        vocab_size: the size of the vocabulary.
        special: how many special tokens there are, the first of the vocabulary.
        share: how many to choose.
        generator: of what is drawn.

    Returns:
        The tokens to read, and which of them to guess, bool; both `(B, n)`.
    """
    chosen = (torch.rand(tokens.shape, generator=generator) < share) & (tokens >= special)
    fate = torch.rand(tokens.shape, generator=generator)
    others = torch.randint(special, vocab_size, tokens.shape, generator=generator)
    changed = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, others, tokens))
    return torch.where(chosen, changed, tokens), chosen


# ---- what is read


def cut(pieces: bytes, texts: list[str]) -> list[np.ndarray]:
    """The pieces of each text, in lower case: the small vocabulary goes further."""
    subwords = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    return [np.array(row, dtype=np.int16) for row in subwords.encode([text.lower() for text in texts])]


def write_bytes(content: bytes, path: Path) -> None:
    """Write a file under another name and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def pieces_path(root: Path) -> Path:
    """Where the subword model is kept."""
    return cache_folder(root) / f"reading-pieces-{PIECES}.model"


def load_pieces(root: Path) -> bytes:
    """The subword model of the 75,000 reviews; made at the first call."""
    path = pieces_path(root)
    if not path.exists():
        reviews = read_reviews(root, "train") + read_reviews(root, "train", labelled=False)
        lines = [review.text.lower() for review in reviews]
        write_bytes(train_subwords(lines, PIECES, COVERAGE, ("<mask>",)), path)
    return path.read_bytes()


def load_rows(root: Path, pieces: bytes, split: str, labelled: bool = True) -> tuple[list[np.ndarray], dict]:
    """The reviews of a split in pieces, and tensors `labels` (-1: unknown) and `numbers`; cached."""
    key = hashlib.sha256(pieces).hexdigest()[:8]
    path = cache_folder(root) / f"reading-{split}-{'labelled' if labelled else 'unlabelled'}-{key}.pt"
    if not path.exists():
        reviews = read_reviews(root, split, labelled)
        rows = cut(pieces, [review.text for review in reviews])
        content = {
            "tokens": torch.from_numpy(np.concatenate(rows)),
            "lengths": torch.tensor([len(row) for row in rows]),
            "labels": torch.tensor([-1 if r.label is None else r.label for r in reviews]),
            "numbers": torch.tensor([r.number for r in reviews]),
        }
        save(content, path)
    content = torch.load(path, weights_only=True)
    ends = content["lengths"].cumsum(0)[:-1].numpy()
    return np.split(content["tokens"].numpy(), ends), {key: content[key] for key in ("labels", "numbers")}


def to_read(root: Path, pieces: bytes) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The texts to read, and those that the loss is measured on."""
    labelled, about = load_rows(root, pieces, "train")
    unlabelled, _ = load_rows(root, pieces, "train", labelled=False)
    numbers = about["numbers"].numpy()
    late = numbers > (1 - KEPT_BACK) * numbers.max()
    read = [row for row, held in zip(labelled, late, strict=True) if not held]
    return read + unlabelled, [row for row, held in zip(labelled, late, strict=True) if held]


def shuffled_blocks(rows: list[np.ndarray], length: int, seed: int) -> Tensor:
    """The texts in a random order as blocks, and these in a random order too."""
    chance = np.random.default_rng(seed)
    blocks = pack([rows[i] for i in chance.permutation(len(rows))], length, EOS)
    return blocks[torch.from_numpy(chance.permutation(len(blocks)))]


# ---- reading


def new_body(objective: str, sizes: dict, dropout: float = 0.0) -> Body:
    """A body that has read nothing."""
    body = Body(PIECES, **sizes, causal=objective == "next", dropout=dropout)
    quicken(body)
    return body


def guess_loss(body: Body, tokens: Tensor, objective: str, share: float, generator: torch.Generator) -> Tensor:
    """The mean of -log p of the tokens to guess; the scores come from the tied embedding."""
    device = body.embedding.weight.device
    if objective == "next":
        tokens = tokens.to(device)
        inputs, asked = tokens[:, :-1], body(tokens[:, :-1]).flatten(0, 1)
        right = tokens[:, 1:].flatten()
    else:
        inputs, chosen = mask_tokens(tokens, MASK, PIECES, len(SPECIAL), share, generator)
        places = chosen.flatten().nonzero().squeeze(1).to(device)
        asked, right = body(inputs.to(device)).flatten(0, 1)[places], tokens[chosen].to(device)
    return F.cross_entropy((asked @ body.embedding.weight.T).float(), right)


@torch.no_grad()
def held_out_loss(body: Body, blocks: Tensor, objective: str, share: float) -> float:
    """The loss on blocks that were not read, always with the same tokens hidden."""
    body.eval()
    generator, losses = torch.Generator().manual_seed(0), []
    with half_precision(body.embedding.weight.device.type):
        for batch in blocks.split(32):
            losses.append(guess_loss(body, batch, objective, share, generator).item() * len(batch))
    body.train()
    return sum(losses) / len(blocks)


def optimizer_of(body: Body, settings: dict) -> torch.optim.Optimizer:
    """AdamW; norms, biases and the embedding do not decay."""
    kinds: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, parameter in body.named_parameters():
        kinds[parameter.dim() > 1 and "blocks" in name].append(parameter)
    groups = [{"params": kinds[decays], "weight_decay": settings["weight_decay"] * decays} for decays in kinds]
    return torch.optim.AdamW(groups, settings["rate"], settings["betas"], fused=True)


def state_path(root: Path, name: str, decayed: bool = False) -> Path:
    """Where the state of a reading is kept."""
    return cache_folder(root) / f"reading-{name}{'-decayed' if decayed else ''}.pt"


def first_state(objective: str, sizes: dict, seed: int) -> dict:
    """The state of a body that has read nothing."""
    torch.manual_seed(seed)
    return {
        "objective": objective,
        "sizes": sizes,
        "weights": new_body(objective, sizes).state_dict(),
        "optimizer": None,
        "warm": 0,  # steps since the optimizer was new
        "epoch": 0,
        "batch": 0,  # of this epoch: the next one
        "tokens": 0,  # read so far
        "processor_seconds": 0.0,
        "history": [],  # tokens, processor seconds, loss since the row before, loss on what is kept back
    }


def read_on(
    state: dict,
    rows: list[np.ndarray],
    held: Tensor,
    settings: dict,
    done: Callable[[int, float], float],
    path: Path,
    decay: bool,
    device: str = "cpu",
) -> None:
    """Read on; save the state every five minutes, and at the end.

    Args:
        state: of `first_state`, or as it was saved.
        rows: the texts to read.
        held: blocks of texts that are not read, for the loss.
        settings: as `READING`.
        done: what share of the way is behind after so many steps and seconds; at 1 it stops.
        path: where the state is kept.
        decay: whether the rate falls to 0 on the way.
        device: "cpu" or "cuda".
    """
    objective, length = state["objective"], state["sizes"]["max_len"]
    body = new_body(objective, state["sizes"]).to(device)
    if device == "cuda":
        for block in body.blocks:
            block.compile()
    optimizer = optimizer_of(body, settings)
    start, first = time.monotonic(), state["warm"]

    def behind(_: float = 0.0) -> float:
        return min(1.0, done(state["warm"] - first, time.monotonic() - start))

    @lru_cache(maxsize=1)  # every five minutes the rest of an epoch is asked for
    def batches_of(epoch: int) -> list[tuple[int, Tensor]]:
        """Each batch with the seed of what is hidden in it."""
        blocks = shuffled_blocks(rows, length, epoch).split(settings["blocks_in_a_batch"])
        return [(1_000_000 * epoch + number, batch) for number, batch in enumerate(blocks)]

    def run(batches: Iterable[tuple[int, Tensor]]) -> list[float]:
        read, losses = clocks(device), []
        for seed, batch in batches:
            warm = min(1.0, (state["warm"] + 1) / settings["warmup"])
            for group in optimizer.param_groups:
                group["lr"] = settings["rate"] * warm * (1 - behind() if decay else 1.0)
            generator = torch.Generator().manual_seed(seed)
            with half_precision(device):
                loss = guess_loss(body, batch, objective, settings["share"], generator)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(body.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
            state["warm"] += 1
            state["tokens"] += batch.numel()
        outside = held_out_loss(body, held, objective, READING["share"])
        state["processor_seconds"] = round(state["processor_seconds"] + read()["processor_seconds"], 1)
        row = [state["tokens"], state["processor_seconds"], torch.stack(losses).mean().item(), outside]
        rounded = [round(number, 4) for number in row]
        print(f"{path.stem}: tokens, processor seconds, loss, loss kept back: {rounded}", flush=True)
        return rounded

    parts = {"weights": body, "optimizer": optimizer}
    keep_training(parts, state, batches_of, run, path, behind, title=path.stem, pause=SAVED_EVERY)


# ---- files that are committed


def shrink(weights: dict[str, Tensor], bits: int) -> dict:
    """The weights in 16 bits a number, or in 8: then each row of a table is a row of integers and a number."""
    if bits == 16:
        return {name: value.half() for name, value in weights.items()}
    small: dict[str, Any] = {}
    for name, value in weights.items():
        if value.dim() < 2:
            small[name] = value.half()
        else:
            scale = (value.abs().amax(dim=1, keepdim=True) / 127).clamp(min=1e-12)
            small[name] = (value / scale).round().to(torch.int8), scale
    return small


def export(source: Path, pieces: bytes, bits: int, path: Path) -> None:
    """Write what reads on, or judges, without the state of its optimizer.

    Raises:
        FileNotFoundError: there is no such state.
    """
    if not source.exists():
        raise FileNotFoundError(f"no {source}: let it be read first (--minutes, --decay)")
    state = torch.load(source, weights_only=True, map_location="cpu")
    small = shrink(state["weights"], bits)
    save(state | {"weights": small, "optimizer": None, "warm": 0, "pieces": pieces}, path)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, {state['tokens']:,} tokens read", flush=True)


def begin_from(path: Path, root: Path, name: str) -> None:
    """Make the state of a reading from an exported file.

    Raises:
        ValueError: the file is none, or what is in the cache is not to be overwritten.
    """
    target, pieces = state_path(root, name), pieces_path(root)
    state = load_export(path)
    if target.exists():
        raise ValueError(f"{target} is there already: leave --from out to go on with it, or give another --name")
    if pieces.exists() and pieces.read_bytes() != state["pieces"]:
        raise ValueError(f"{path} was read in other pieces than {pieces}: move that away first")
    write_bytes(state.pop("pieces"), pieces)
    save(state, target)


def main() -> None:
    """Read, let the rate fall, or write what is committed."""
    parser = argparse.ArgumentParser(description="Let chapter 12's body read the reviews that are not the test set.")
    parser.add_argument("--objective", choices=OBJECTIVES, default="masked")
    parser.add_argument("--name", help="of the reading; the objective's if none is given")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="begin with these weights")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long to read at the constant rate")
    parser.add_argument("--decay", type=float, default=0.0, metavar="MINUTES", help="then a copy, with a falling rate")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write the weights for a commit")
    parser.add_argument("--decayed", action="store_true", help="export those of the copy")
    parser.add_argument("--bits", type=int, choices=(8, 16), default=16, help="of an exported number")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    root = full_data("imdb")
    keep_freed_memory()
    settings, name = READING | parse_settings(given.set), given.name or given.objective
    path = state_path(root, name)
    if given.source:
        begin_from(STARTED_IN / given.source, root, name)
    if given.minutes and not path.exists():
        save(first_state(given.objective, SIZES, given.seed), path)
    for minutes, decay in ((given.minutes, False), (given.decay, True)):
        if minutes:
            if not path.exists():
                raise FileNotFoundError(f"no {path}: let it read first (--minutes)")
            rows, held = to_read(root, load_pieces(root))
            state = load_state(path)
            blocks = pack(held, state["sizes"]["max_len"], EOS)[:HELD_BLOCKS]
            end = 60 * minutes
            target = state_path(root, name, decay)

            def part(_: int, now: float, end: float = end) -> float:
                return now / end

            read_on(state, rows, blocks, settings, part, target, decay, given.device)
    if given.export:
        source = state_path(root, name, given.decayed)
        export(source, load_pieces(root), given.bits, STARTED_IN / given.export)


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
