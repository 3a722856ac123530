"""Chapter 11 on the full data: language models of English captions, Multi30k.

    python data/download.py
    python results/caption_models.py [--models modern layer_norm … shipped] [--seeds 0 1 2]
    python results/caption_models.py --epochs 5 [--captions 29000] [--models modern …]
    python results/caption_models.py --compare
    python results/caption_models.py --pieces
    python results/caption_models.py --checkpoint

The model is the chapter's. Each small model differs from the one called modern in the part that its name says, and has
the same data, steps and, but for a few per cent, parameters; each is trained with every seed, and `--compare` compares
it with the modern one caption by caption. `--epochs` trains them for fewer or more passes than twelve, with the whole
schedule in these, `--captions` on more text, and each is kept as an experiment of its own. The large one ships with
the chapter: `--checkpoint` writes its files, `--pieces` says how unlikely the pieces are of words that it writes. A run
on record is not run again: delete its file in `results/runs/`.
"""

import argparse
import itertools
import math
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from intervals import paired_difference
from report import clocks, full_data, on_record, precision_of, read_runs, watched, write_comparison, write_run
from subwords import EOS, PAD, SOS, train_subwords
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from attention_course.data import caption_lines
from attention_course.training import mixed_precision, save

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "11_language_model")  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import language_model as chapter_11  # noqa: E402
import multi_head_attention as chapter_04  # noqa: E402
import queries_keys_values as chapter_03  # noqa: E402

EXPERIMENT = "A language model of English captions (Multi30k)"
METRIC = "Perplexity of the 1,014 validation captions, the end of each included: lower is better"
SMALL: dict[str, Any] = {
    "captions": 12_000,
    "dim": 64,
    "heads": 4,
    "depth": 2,
    "hidden": 172,
    "rate": 5e-3,
    "warmup": 30,
    "tokens_in_a_batch": 1000,
    "epochs": 12,
    "dropout": 0.0,
}
LARGE = SMALL | {
    "captions": 29_000,
    "dim": 160,
    "depth": 4,
    "hidden": 432,
    "rate": 2.5e-3,
    "warmup": 200,
    "epochs": 10,
    "dropout": 0.1,
}
RECIPES = {
    "modern": SMALL,
    "layer_norm": SMALL,
    "relu": SMALL,
    "learned_positions": SMALL,
    "no_positions": SMALL,
    "as_in_2019": SMALL,
    "shipped": LARGE,
}
TITLES = {
    "modern": "small: RMSNorm, SwiGLU, rotary positions",
    "layer_norm": "small, LayerNorm for RMSNorm",
    "relu": "small, ReLU network for SwiGLU",
    "learned_positions": "small, table of positions for rotary ones",
    "no_positions": "small, no positions",
    "as_in_2019": "small, LayerNorm, ReLU network, table of positions",
    "shipped": "large: RMSNorm, SwiGLU, rotary positions",
}
PIECES = 2000
SAMPLINGS = [{"temperature": 0.7, "top_p": 0.9}, {"temperature": 0.7}, {"top_p": 0.9}, {}]
WRITTEN = 2000  # captions that the shipped model writes with each setting
UNLIKELY, SURE = 0.05, 0.5
LONGEST = 128  # rows of a table of positions


class Unturned(chapter_11.CausalSelfAttention):
    """The chapter's attention without rotary positions and without a cache."""

    def forward(self, x: Tensor, cache: None = None) -> tuple[Tensor, None]:
        """Attend from each position to itself and to those before it."""
        q, k, v = (chapter_04.split_heads(W(x), self.heads) for W in (self.Wq, self.Wk, self.Wv))
        weights = chapter_03.query_key_weights(q, k, chapter_03.causal_mask(x.shape[1]))
        return self.WO(chapter_04.merge_heads(weights @ v)), None


class ReLUNetwork(nn.Module):
    """Chapter 06's network without biases, as wide as makes it as large as a SwiGLU."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, 3 * hidden // 2, bias=False)
        self.outer = nn.Linear(3 * hidden // 2, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """`(B, n, d)` to the same shape."""
        return self.outer(F.relu(self.inner(x)))


class WithTable(nn.Module):
    """Token embeddings with a learned table of positions added, each with the same spread at the start."""

    def __init__(self, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = nn.Parameter(0.02 * torch.randn(LONGEST, tokens.embedding_dim))

    @property
    def weight(self) -> Tensor:
        """The table of tokens: the output is tied to it."""
        return self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """`(B, n)` to `(B, n, d)`."""
        return self.tokens(tokens) + self.positions[: tokens.shape[1]]


def swap(model: nn.Module, kind: type, new: Callable[[nn.Module], nn.Module]) -> None:
    """Put `new(part)` in the place of each part of this kind."""
    for part in list(model.modules()):
        for name, child in list(part.named_children()):
            if type(child) is kind:
                setattr(part, name, new(child))


def new_model(name: str, pieces: int) -> nn.Module:
    """The chapter's model, with older parts where the name asks for them."""
    recipe = RECIPES[name]
    dim, heads, hidden = recipe["dim"], recipe["heads"], recipe["hidden"]
    model = chapter_11.LanguageModel(pieces, dim, heads, recipe["depth"], hidden)
    if name in ("layer_norm", "as_in_2019"):
        swap(model, chapter_11.RMSNorm, lambda _: nn.LayerNorm(dim))
    if name in ("relu", "as_in_2019"):
        swap(model, chapter_11.SwiGLU, lambda _: ReLUNetwork(dim, hidden))
    if name in ("learned_positions", "no_positions", "as_in_2019"):
        swap(model, chapter_11.CausalSelfAttention, lambda _: Unturned(dim, heads))
    if name in ("learned_positions", "as_in_2019"):
        model.embedding = WithTable(model.embedding)
    return model


def drop_while_training(model: nn.Module, p: float) -> None:
    """Let dropout follow the embedding and each part of a layer: the chapter's classes, which ship, have none."""

    def dropped(part: nn.Module, _: object, output: Any) -> Any:
        whole = isinstance(output, Tensor)  # attention returns its cache, too
        kept = F.dropout(output if whole else output[0], p, part.training)
        return kept if whole else (kept, *output[1:])

    names = ("attention", "feed_forward")
    parts = [layer.get_submodule(name) for layer in model.get_submodule("layers").children() for name in names]
    for part in (model.get_submodule("embedding"), *parts):
        part.register_forward_hook(dropped)


def batches(rows: list[list[int]], tokens: int, seed: int) -> list[Tensor]:
    """Batches of rows of similar length, padded, in random order."""
    chance = random.Random(seed)
    ordered = sorted(rows, key=lambda row: (len(row), chance.random()))
    groups, start = [], 0
    while start < len(ordered):
        end = start + max(1, tokens // len(ordered[start]))
        groups.append([torch.tensor(row) for row in ordered[start:end]])
        start = end
    chance.shuffle(groups)
    return [pad_sequence(group, batch_first=True, padding_value=PAD) for group in groups]


@torch.no_grad()
def surprises(model: nn.Module, rows: list[list[int]]) -> np.ndarray:
    """For each row the negative log-probability of all its tokens but the first, in nats."""
    model.eval()
    found = np.zeros(len(rows))
    ordered = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for some in (ordered[start : start + 200] for start in range(0, len(rows), 200)):
        tokens = pad_sequence([torch.tensor(rows[i]) for i in some], batch_first=True, padding_value=PAD)
        logits, _ = model(tokens[:, :-1])
        losses = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], ignore_index=PAD, reduction="none")
        found[some] = losses.double().sum(dim=1)
    return found


def rates(recipe: dict, total: int) -> Iterator[float]:
    """The learning rate of each step: up in a line, then down to 0 in a line."""
    for step in range(total):
        yield recipe["rate"] * min((step + 1) / recipe["warmup"], (total - step) / (total - recipe["warmup"]))


def train(model: nn.Module, name: str, data: dict, recipe: dict, seed: int) -> dict:
    """Train a model.

    Returns:
        What its record holds: the losses of a token in each epoch, training and validation, and what it cost.
    """
    read, history = clocks(), []
    optimizer = torch.optim.AdamW(model.parameters(), recipe["rate"], betas=(0.9, 0.98), weight_decay=0.1, fused=True)
    rows = data["train"][: recipe["captions"]]
    each = [batches(rows, recipe["tokens_in_a_batch"], 1000 * seed + epoch) for epoch in range(recipe["epochs"])]
    steps = rates(recipe, sum(map(len, each)))
    for epoch, order in enumerate(each, start=1):
        model.train()
        losses = 0.0
        for tokens in watched(order, f"{name}, seed {seed}, epoch {epoch} of {recipe['epochs']}"):
            for group in optimizer.param_groups:
                group["lr"] = next(steps)
            with mixed_precision():
                logits, _ = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses += loss.item()
        valid = float(surprises(model, data["valid"]).sum()) / data["pieces"]
        history.append([round(losses / len(order), 4), round(valid, 4)])
        print(f"\nlosses {history[-1]}, {read()['processor_seconds']} processor seconds", file=sys.stderr, flush=True)
    return read() | {"history": history}


def load_data(root: Path) -> dict:
    """The captions in pieces, the subword model, and how many pieces and words the validation captions have."""
    lines = {split: caption_lines(root, f"{name}.en") for split, name in (("train", "train"), ("valid", "val"))}
    model_file = train_subwords(lines["train"], PIECES)
    subwords = sentencepiece.SentencePieceProcessor(model_proto=model_file)
    rows = {split: [[SOS, *row, EOS] for row in subwords.encode(texts)] for split, texts in lines.items()}
    return rows | {
        "model_file": model_file,
        "pieces": sum(len(row) - 1 for row in rows["valid"]),
        "words": sum(len(text.split()) + 1 for text in lines["valid"]),
    }


def state_path(root: Path, name: str, seed: int) -> Path:
    """Where the weights of one training are kept."""
    return root / "cache" / f"language_model-{name}-{seed}.pt"


def experiment_of(recipe: dict) -> str:
    """Where a record belongs: small models with more captions or another number of passes are kept apart."""
    if recipe in (SMALL, LARGE):
        return EXPERIMENT
    text = f" all {recipe['captions']:,}" if recipe["captions"] != SMALL["captions"] else " them"
    return f"{EXPERIMENT}, passes over{text}: {recipe['epochs']}"


def run(name: str, seed: int, root: Path, data: dict, recipe: dict) -> dict:
    """Train one model and say what came out."""
    torch.manual_seed(seed)
    model = new_model(name, PIECES)
    if recipe["dropout"]:
        drop_while_training(model, recipe["dropout"])
    spent = train(model, name, data, recipe, seed)
    found = surprises(model, data["valid"])
    loss = float(found.sum())
    kept = {"state": model.state_dict(), "history": spent["history"], "surprises": torch.from_numpy(found)}
    if recipe == RECIPES[name]:
        save(kept, state_path(root, name, seed))
    return {
        "experiment": experiment_of(recipe),
        "data": "29,000 captions to train on (small models: the first 12,000), 1,014 to measure with",
        "metric": METRIC,
        "model": TITLES[name],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "epochs": recipe["epochs"],
        "seed": seed,
        "precision": precision_of(mixed_precision()),
        "recipe": recipe,
        "values": {
            "perplexity of a piece": round(math.exp(loss / data["pieces"]), 2),
            "perplexity of a word": round(math.exp(loss / data["words"]), 2),
        },
        "notes": [
            f"a piece: one of {PIECES:,} SentencePiece byte pairs, trained on the same captions; "
            "a word: what stands between two spaces, and the end of a caption counts as one. Both come from the same "
            "sum of log-probabilities; the second can be compared with that of a model of other pieces, or of words."
        ],
    } | spent


def compare(root: Path, data: dict, seeds: list[int]) -> None:
    """Record by how many per cent each small model's perplexity is above the modern one's, each seed and all.

    Raises:
        FileNotFoundError: one of them has not been run.
    """

    def of(name: str, seed: int) -> np.ndarray:
        path = state_path(root, name, seed)
        if not path.exists():
            raise FileNotFoundError(f"{TITLES[name]} is not trained yet: run --models {name} --seeds {seed} first")
        return torch.load(path, weights_only=True)["surprises"].numpy()

    words = data["words"] / len(data["valid"])
    for name in TITLES:
        if name in ("modern", "shipped"):
            continue
        title = f"{TITLES[name]} − {TITLES['modern']}"
        for some in (*([seed] for seed in seeds), seeds):
            theirs, modern = (np.mean([of(each, seed) for seed in some], axis=0) for each in (name, "modern"))
            percent = [100 * math.expm1(nats / words) for nats in paired_difference(theirs, modern)]
            print(f"{title}, seeds {some}: {percent}", flush=True)
            write_comparison(EXPERIMENT, title, "+".join(map(str, some)), "perplexity of a word, %", percent)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, letters with what joins them; numbers and signs are none."""
    return re.findall(r"[^\W\d_]+(?:['-][^\W\d_]+)*", text.lower())


def known_words(root: Path) -> set[str]:
    """The words of the training captions."""
    return {word for text in caption_lines(root, "train.en") for word in words_of(text)}


def count_invented(texts: list[str], known: set[str]) -> float:
    """How many of a thousand written words are in no training caption."""
    words = [word for text in texts for word in words_of(text)]
    return 1000 * sum(word not in known for word in words) / len(words)


def measure_invented(model: nn.Module, root: Path, data: dict) -> list:
    """How many of a thousand words no training caption has: for each sampling, and for people's validation captions."""
    known = known_words(root)
    subwords = sentencepiece.SentencePieceProcessor(model_proto=data["model_file"])
    begin, found = torch.full((WRITTEN, 1), SOS), []
    for sampling in SAMPLINGS:
        chance = torch.Generator().manual_seed(0)
        written = chapter_11.generate(model.eval(), begin, 40, EOS, generator=chance, **sampling)
        found.append([sampling, round(count_invented(subwords.decode(written.tolist()), known), 2)])
    return [*found, ["people", round(count_invented(caption_lines(root, "val.en"), known), 2)]]


@torch.no_grad()
def measure_pieces(root: Path, seed: int) -> None:
    """Record how unlikely the pieces are of words that the shipped model writes in several pieces."""
    read, shipped = clocks(), torch.load("language_model.pt", weights_only=True)
    model = new_model("shipped", PIECES).eval()
    model.load_state_dict(shipped["state"])
    subwords = sentencepiece.SentencePieceProcessor(model_file="pieces.model")
    known = known_words(root)
    chance = torch.Generator().manual_seed(seed)
    written = chapter_11.generate(model, torch.full((WRITTEN, 1), SOS), 40, EOS, generator=chance)
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    sure: dict[bool, list[bool]] = {False: [], True: []}
    for some in written.split(100):
        chances = model(some[:, :-1])[0].softmax(dim=-1)
        given, likeliest = chances.gather(-1, some[:, 1:, None]).squeeze(-1), chances.amax(dim=-1)
        for row, each, best in zip(some[:, 1:].tolist(), given.tolist(), likeliest.tolist(), strict=True):
            end = row.index(EOS) if EOS in row else len(row)
            names = subwords.id_to_piece(row[:end])
            starts = [place for place, name in enumerate(names) if name.startswith("▁")]
            for start, stop in itertools.pairwise([*starts, end]):
                word = words_of("".join(names[start:stop]))
                parts = [p for name, p in zip(names[start:stop], each[start:stop], strict=True) if words_of(name)]
                if len(word) == 1 and len(parts) > 1:
                    found[word[0] in known].append(parts)
                    second = [place for place in range(start, stop) if words_of(names[place])][1]
                    sure[word[0] in known].append(best[second] > SURE)
    for is_known, words in found.items():
        first, later = ([p < UNLIKELY for p in part] for part in ([w[0] for w in words], [min(w[1:]) for w in words]))
        run = {
            "experiment": "Words that the language model of chapter 11 writes in several pieces",
            "data": f"{WRITTEN:,} captions for each seed, drawn from all of the shipped model's probabilities",
            "metric": f"Words in per cent: the first piece, or a later one, had a probability below {UNLIKELY}; after "
            f"the first, the likeliest next one had more than {SURE}",
            "model": "words of the training captions" if is_known else "words that no training caption has",
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "epochs": "–",
            "seed": seed,
            "precision": "float32",
            "values": {
                "the first": round(100 * float(np.mean(first)), 1),
                "a later one": round(100 * float(np.mean(later)), 1),
                "sure of the second": round(100 * float(np.mean(sure[is_known])), 1),
                "words": len(words),
            },
        }
        print(run["model"], run["values"], flush=True)
        write_run(run | read())


def write_checkpoint(root: Path, folder: Path, data: dict) -> None:
    """Keep what the chapter needs of the finished trainings: weights in half precision, settings, figures, subwords.

    Raises:
        FileNotFoundError: one of them has not been run.
    """
    path = state_path(root, "shipped", 0)
    if not path.exists():
        raise FileNotFoundError("the large model is not trained yet: run --models shipped --seeds 0 first")
    kept = torch.load(path, weights_only=True)
    runs = [run for run in read_runs() if run["experiment"] == EXPERIMENT and "kind" not in run]
    settings = {key: LARGE[key] for key in ("dim", "heads", "depth", "hidden")}
    state = {name: value.half() for name, value in kept["state"].items()}
    model = new_model("shipped", PIECES)
    model.load_state_dict(state)
    content = {
        "settings": {"vocab_size": PIECES} | settings,
        "state": state,
        "history": kept["history"],
        "invented": measure_invented(model, root, data),
        "measured": [[run["model"], run["seed"], run["parameters"], run["values"]] for run in runs],
    }
    save(content, folder / "language_model.pt")
    (folder / "pieces.model").write_bytes(data["model_file"])


def main() -> None:
    """Train what is asked for and keep each result."""
    parser = argparse.ArgumentParser(description="Measure the language models of chapter 11 on the full captions.")
    parser.add_argument("--models", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, help="passes of the small models over their captions; 12 by default")
    parser.add_argument("--captions", type=int, help="what the small models read; the first 12,000 by default")
    parser.add_argument("--compare", action="store_true", help="compare the small models with the modern one")
    parser.add_argument("--pieces", action="store_true", help="measure the words that the shipped model writes")
    parser.add_argument("--checkpoint", action="store_true", help="write the files that chapter 11 reads")
    given = parser.parse_args()
    root = full_data("multi30k")
    torch.set_flush_denormal(True)
    if given.pieces:
        for seed in given.seeds:
            measure_pieces(root, seed)
        return
    data = load_data(root)
    if given.compare:
        compare(root, data, given.seeds)
        return
    if given.checkpoint:
        write_checkpoint(root, Path.cwd(), data)
        return
    for seed in given.seeds:
        for name in given.models:
            asked = {"epochs": given.epochs, "captions": given.captions}
            recipe = RECIPES[name] | {key: value for key, value in asked.items() if value}
            if name == "shipped" and (given.epochs or given.captions or seed != given.seeds[0]):
                continue
            if on_record(experiment_of(recipe), TITLES[name], seed):
                continue
            result = run(name, seed, root, data, recipe)
            print(f"{TITLES[name]}, seed {seed}: {result['values']} in {result['processor_seconds']} s", flush=True)
            write_run(result)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:  # a model that the files are made from
        sys.exit(f"error: {error}")
