"""Chapter 07 on the full data: three seeds of the transformer, against simple models.

    python data/download.py
    python results/imdb.py [--models logistic bigrams bag transformer ensemble] [--seeds 0 1 2]
    python results/imdb.py --validate [--models …] [--set epochs=4 …]

The definitions and the settings are those of chapter 07's solution. `--validate` holds a tenth of the training reviews
back, reports on these and reads no test review: it is how settings were chosen. Without it, models are trained on all
25,000 training reviews, and each reads the test reviews once, at the end. A run on record is not run again: delete its
file in `results/runs/` for that.
"""

import argparse
import ast
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import torch
from report import clocks, run_path, write_run
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "07_imdb_classification")  # where chapters find each other

import autograder.chapters  # noqa: E402, F401, I001
import imdb_classification as chapter  # noqa: E402

EXPERIMENT = "Film reviews (IMDB)"
METRIC = "Accuracy in percent on the official test set"
# Each chosen on the validation reviews; the transformer's are the chapter's.
REGRESSIONS = {
    "logistic": {"longest": 1, "min_df": 2, "C": 10.0},
    "bigrams": {"longest": 2, "min_df": 2, "C": 30.0},
}
TRANSFORMER = chapter.RECIPES["full"] | {"max_len": chapter.MAX_LEN, "words": 30_000}
NETWORKS = {
    "transformer": TRANSFORMER,
    "bag": TRANSFORMER | {"rate": TRANSFORMER["bag_rate"]},
}
TITLES = {
    "logistic": "logistic regression, tf–idf of words",
    "bigrams": "logistic regression, tf–idf of words and pairs",
    "bag": "bag of embeddings",
    "transformer": "transformer, one block",
    "ensemble": "mean of the transformers' probabilities",
}


def watched(batches: list, title: str) -> Iterator:
    """The batches, telling on stderr how long they will still take."""
    start = time.perf_counter()
    for number, batch in enumerate(batches, start=1):
        yield batch
        left = (time.perf_counter() - start) / number * (len(batches) - number)
        print(f"\r{title}, {left:.0f} s left ", end="", file=sys.stderr, flush=True)


def one_cycle(optimizer: torch.optim.Optimizer, total: int) -> torch.optim.lr_scheduler.LambdaLR:
    """Warm-up over a tenth of the steps, then linearly to 0."""
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: chapter.warmup_factor(step + 1, total // 10) * max(0.0, 1 - step / total)
    )


def new_network(name: str, words: int, settings: dict) -> nn.Module:
    """A transformer, or the bag of embeddings: the transformer without positions and blocks."""
    if name == "bag":
        model = chapter.BagOfEmbeddings(words, 2, settings["dim"])
    else:
        sizes = [settings[key] for key in ("dim", "heads", "depth", "max_len", "dropout")]
        model = chapter.TransformerClassifier(words, 2, *sizes)
    nn.init.normal_(model.embedding.weight, std=settings["std"])
    return model


def train_network(model: nn.Module, dataset, settings: dict, seed: int) -> None:
    """Train a classifier as the chapter does."""
    optimizer = torch.optim.AdamW(model.parameters(), settings["rate"], weight_decay=0.01, fused=True)
    scheduler = None
    for epoch in range(settings["epochs"]):
        batches = chapter.make_batches(dataset, settings["tokens_in_a_batch"], 1000 * seed + epoch, settings["max_len"])
        scheduler = scheduler or one_cycle(optimizer, settings["epochs"] * len(batches))
        bar = watched(batches, f"seed {seed}, epoch {epoch + 1}")
        with chapter.mixed_precision():
            chapter.train_epoch(model, chapter.drop_words(bar, settings["word_dropout"]), optimizer, scheduler)


@torch.no_grad()
def predict(model: nn.Module, dataset, settings: dict) -> tuple[Tensor, Tensor]:
    """Log-probabilities and labels of all reviews, in an order that depends on the reviews alone."""
    model.eval()
    batches = chapter.make_batches(dataset, settings["tokens_in_a_batch"], max_len=settings["max_len"])
    with chapter.mixed_precision():
        return torch.cat([model(tokens) for tokens, _ in batches]), torch.cat([labels for _, labels in batches])


def run_network(name: str, seed: int, settings: dict, train, test, cache: Path | None) -> dict:
    """Train one network and measure it; its answers are kept for the ensemble when there is a cache."""
    torch.manual_seed(seed)
    model = new_network(name, len(train.fields["text"].vocab), settings)
    read = clocks()
    train_network(model, train, settings, seed)
    cost = read()
    log_probs, labels = predict(model, test, settings)
    if cache:
        chapter.save({"log_probs": log_probs, "labels": labels}, cache / f"answers-{name}-{seed}.pt")
    return cost | {
        "parameters": sum(p.numel() for p in model.parameters()),
        "epochs": settings["epochs"],
        "precision": "float32" if isinstance(chapter.mixed_precision(), nullcontext) else "bfloat16",
        "settings": settings,
        "values": {"accuracy": round(100 * chapter.accuracy(log_probs, labels), 3)},
    }


def run_regression(settings: dict, train, test) -> dict:
    """Fit logistic regression on tf–idf of the same tokens and measure it."""
    read = clocks()
    vectorizer = TfidfVectorizer(
        tokenizer=lambda example: example.text,
        preprocessor=lambda example: example,
        token_pattern=None,
        ngram_range=(1, settings["longest"]),
        min_df=settings["min_df"],
        sublinear_tf=True,
    )
    model = LogisticRegression(C=settings["C"], solver="liblinear", dual=True, max_iter=1000)
    model.fit(vectorizer.fit_transform(train.examples), [e.label for e in train.examples])
    cost = read()
    value = model.score(vectorizer.transform(test.examples), [e.label for e in test.examples])
    return cost | {
        "parameters": model.coef_.size + 1,
        "epochs": "–",
        "precision": "float64",
        "settings": settings,
        "values": {"accuracy": round(100 * value, 3)},
    }


def combine(member: str, seeds: list[int], cache: Path) -> dict:
    """Measure the mean of the probabilities that finished runs gave to the test reviews."""
    answers = [torch.load(cache / f"answers-{member}-{seed}.pt", weights_only=True) for seed in seeds]
    runs = [json.loads(run_path(EXPERIMENT, TITLES[member], seed).read_text(encoding="utf-8")) for seed in seeds]
    mean = torch.stack([answer["log_probs"].exp() for answer in answers]).mean(dim=0)
    return runs[0] | {
        "parameters": sum(run["parameters"] for run in runs),
        "seconds": sum(run["seconds"] for run in runs),
        "processor_seconds": sum(run["processor_seconds"] for run in runs),
        "values": {"accuracy": round(100 * chapter.accuracy(mean, answers[0]["labels"]), 3)},
    }


def main() -> None:
    """Train what is asked for and keep each result."""
    parser = argparse.ArgumentParser(description="Measure the models of chapter 07 on the full IMDB data.")
    parser.add_argument("--models", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--validate", action="store_true", help="report on held-out training reviews")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings, with --validate")
    given = parser.parse_args()
    if given.set and not given.validate:
        parser.error("settings are chosen with --validate")
    other = {name: ast.literal_eval(value) for name, _, value in (pair.partition("=") for pair in given.set)}
    torch.set_num_threads(given.threads)
    root = chapter.data_root("imdb")
    if root.name != "full":
        sys.exit("error: the full data are not there: python data/download.py")
    text, label = chapter.make_fields()
    train, test = chapter.load_reviews(root, text, label)
    if given.validate:
        train, test = chapter.hold_out(train, 0.1)
    text.build_vocab(train, max_size=TRANSFORMER["words"])
    cache = root / "cache"
    for name in given.models:
        for seed in given.seeds if name in NETWORKS else given.seeds[:1]:
            if run_path(EXPERIMENT, TITLES[name], seed).exists() and not given.validate:
                print(f"{TITLES[name]}, seed {seed}: on record", flush=True)
                continue
            if name in REGRESSIONS:
                run = run_regression(REGRESSIONS[name] | other, train, test)
            elif name in NETWORKS:
                settings = NETWORKS[name] | other
                run = run_network(name, seed, settings, train, test, None if given.validate else cache)
            else:
                run = combine("transformer", given.seeds, cache)
            print(f"\n{TITLES[name]}, seed {seed}: {run['values']} in {run['processor_seconds']:.0f} s", flush=True)
            if not given.validate:
                data = f"{len(train):,} reviews to train on, {len(test):,} to test with"
                record = {"experiment": EXPERIMENT, "data": data, "metric": METRIC, "model": TITLES[name], "seed": seed}
                write_run(record | run)


if __name__ == "__main__":
    main()
