"""Chapter 12's controls on the full data: what is it in reading that helps?

    python results/controls.py [--texts reviews shuffled captions part] [--tokens 8] [--seeds 0 1 2]
    python results/controls.py --texts shipped out-of-order table random

A new body for each text, smaller than the one that ships, reads as many tokens of it as every other, while the rate
falls to 0, and is frozen. The texts are the reviews; the same with each one's pieces in a random order; a sixteenth of
the reviews; the English captions of the translators' training data; the last two as often as it takes. What a body says
of the labelled reviews of a draw is all that a regression learns from, as in `reading.py`; beside it are a body that
has read nothing, and the one that the chapter ships: as it is, shown reviews in a random order, and without its blocks.
A table of random rows, without blocks too, is the least that a body has to beat. All are measured on training reviews
held out by number; no test review is opened. The held-out ones have been read, without their labels, as other training
reviews have. A reading that was stopped goes on.
"""

import argparse
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from imdb import right_of, scored, write_difference
from pretraining import (
    HELD_BLOCKS,
    HERE,
    PIECES,
    READING,
    cut,
    first_state,
    load_pieces,
    load_rows,
    pack,
    read_on,
    state_path,
    to_read,
)
from quick import keep_freed_memory
from reading import HELD_OUT, TUNING, ask, draw, first_model, judge_frozen
from report import clocks, full_data, precision_of, write_run
from subwords import EOS
from torch import nn

from attention_course.bodies import load_export
from attention_course.data import caption_lines, data_root
from attention_course.training import load_state, mixed_precision, save

EXPERIMENT = "Film reviews (IMDB), held out by number: what a frozen body has read"
OTHERS = {
    "nothing": "nothing",
    "random": "nothing, and without blocks: a table of random rows alone",
    "shipped": "the reviews, for hours: the body that ships",
    "out-of-order": "the reviews, for hours: the body that ships, shown each review's words in a random order",
    "table": "the reviews, for hours: the table alone of the body that ships",
}
COUNTS = (100, 1000)
TEXTS = {
    "reviews": "the reviews",
    "shuffled": "the reviews, each one's words in a random order",
    "part": "a sixteenth of the reviews, again and again",
    "captions": "captions in the place of reviews, again and again",
}
COMPARED = [("reviews", text) for text in ("nothing", "random", "shipped", "shuffled", "captions", "part")]
COMPARED += [("shipped", text) for text in ("out-of-order", "table")]
SIZES = {"dim": 128, "heads": 4, "depth": 2, "hidden": 384, "max_len": 256}
RECIPE = READING | {"blocks_in_a_batch": 8}
PART = 16


@lru_cache(maxsize=1)  # it is read, and then its frequencies are asked for
def texts_of(text: str, root: Path, pieces: bytes) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What is read, by its name in `TEXTS`, and texts of the same kind that the loss is measured on."""
    if text == "captions":
        read, held = (cut(pieces, caption_lines(data_root("multi30k"), f"{part}.en")) for part in ("train", "val"))
        return read, held
    (read, held), chance = to_read(root, pieces), np.random.default_rng(0)
    if text == "shuffled":
        return [chance.permutation(row) for row in read], [chance.permutation(row) for row in held]
    if text == "part":
        read = [read[i] for i in chance.permutation(len(read))[: len(read) // PART]]
    return read, held


def read_anew(text: str, tokens: float, root: Path) -> dict:
    """The state of a new body after it has read so many tokens of a text of `TEXTS`, while the rate fell to 0."""
    path = state_path(root, f"{text}-{tokens / 1e6:g}")
    if not path.exists():
        save(first_state("masked", SIZES, seed=0), path)
    state = load_state(path)
    if state["tokens"] < tokens:
        read, held = texts_of(text, root, load_pieces(root))
        blocks = pack(held, SIZES["max_len"], EOS)[:HELD_BLOCKS]
        read_on(state, read, blocks, RECIPE, lambda _, now: state["tokens"] / tokens, path, decay=True)
    return state


def unigram_loss(text: str, root: Path) -> float:
    """The loss on what is kept back of a text of somebody who knows only how frequent each piece is."""
    read, held = (np.concatenate(part).astype(np.int64) for part in texts_of(text, root, load_pieces(root)))
    frequent = np.bincount(read, minlength=PIECES) + 1.0
    return float(-np.log(frequent / frequent.sum())[held].mean())


def title_of(text: str, count: int) -> str:
    """What a row is called."""
    return f"{(TEXTS | OTHERS)[text]}, {count:,} labels"


def main() -> None:
    """Let bodies read, and keep what they are worth."""
    parser = argparse.ArgumentParser(
        description="Measure what reading other texts brings, on held-out training reviews."
    )
    parser.add_argument("--texts", nargs="+", choices=OTHERS | TEXTS, default=[*OTHERS, *TEXTS])
    parser.add_argument("--tokens", type=float, default=8.0, metavar="MILLIONS", help="that each body reads")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the draws of labelled reviews")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    root = full_data("imdb")
    keep_freed_memory()
    rows, about = load_rows(root, load_pieces(root), "train")
    held = about["numbers"] > (1 - HELD_OUT) * about["numbers"].max()
    outside, inside = (part.nonzero().squeeze(1).numpy() for part in (held, ~held))
    labels = about["labels"]
    drawn = {(n, seed): inside[draw(labels[inside], n, seed)] for n in COUNTS for seed in given.seeds}
    asked = np.unique(np.concatenate([outside, *drawn.values()]))
    right: dict[tuple[str, int], torch.Tensor] = {}
    for text in given.texts:
        if text in TEXTS:
            state = read_anew(text, given.tokens * 1e6, root)
        elif text in ("nothing", "random"):
            state = first_state("masked", SIZES, seed=0)
        else:
            state = load_export(HERE.parent / "solutions" / "12_pretraining" / "body.pt")
        model = first_model("frozen", state, TUNING)
        if text in ("table", "random"):
            model.body.blocks, model.body.norm = nn.ModuleList(), nn.Identity()
        alone = {"loss of frequencies alone": round(unigram_loss(text, root), 4)} if text in TEXTS else {}
        read = clocks()
        shown = [rows[i] for i in asked]
        if text == "out-of-order":
            chance = np.random.default_rng(0)
            shown = [chance.permutation(row) for row in shown]
        said = ask(model.summary, model, shown, TUNING).numpy()
        for count in COUNTS:
            answers: list[tuple[dict, torch.Tensor]] = []
            for seed in given.seeds:
                chosen = drawn[count, seed]
                here, there = (said[np.searchsorted(asked, part)] for part in (chosen, outside))
                regression, probabilities = judge_frozen(here, there, labels[chosen].numpy(), TUNING["C"])
                answers.append(({}, probabilities))
                where = {
                    "experiment": EXPERIMENT,
                    "data": f"{len(inside):,} labelled reviews to draw from, {len(outside):,} held out by number to "
                    f"measure with; new bodies read {given.tokens:g} million tokens",
                    "metric": "Accuracy in percent on the held-out reviews of a regression on what a frozen body says",
                    "parameters": sum(p.numel() for p in model.parameters()),
                    "trained": regression.coef_.size + 1,
                    "epochs": "–",
                    "precision": precision_of(mixed_precision()),
                    "read": state["tokens"],
                    "loss": state["history"][-1][3] if state["history"] else None,
                } | alone
                write_run(where | scored(title_of(text, count), seed, probabilities, labels[outside]) | read())
            right[text, count] = right_of(answers, labels[outside])
    together = "+".join(map(str, given.seeds))
    for one, other in COMPARED:
        for count in COUNTS:
            if (one, count) in right and (other, count) in right:
                title = f"{title_of(one, count)} − {(TEXTS | OTHERS)[other]}"
                write_difference(EXPERIMENT, title, together, right[one, count], right[other, count])


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
