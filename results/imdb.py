"""Chapter 07 on the full data: three seeds of the transformer, against simple models.

    python data/download.py
    python results/imdb.py [--seeds 0 1 2] [--models transformer bag logistic bigrams]

Uses the definitions of chapter 07's solution. `--validate` trains without a validation split of the training reviews,
reports on that split and reads no test review: it is how settings are chosen. Otherwise the models are trained on all
25,000 training reviews and the test reviews are read once, at the end.
"""

import argparse
import os
import platform
import random
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from report import write_run
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "07_imdb_classification")  # where chapters find each other

import autograder.chapters  # noqa: E402, F401, I001
import imdb_classification as chapter  # noqa: E402

WORDS, DIM, HEADS, DEPTH, LENGTH = 30_000, 128, 4, 1, 400
TOKENS_IN_A_BATCH, RATE, EPOCHS, WORD_DROPOUT, DROPOUT = 8_000, 1e-3, 6, 0.3, 0.1
LABELS = {"logistic": "logistic regression, tf–idf unigrams", "bigrams": "logistic regression, tf–idf uni- and bigrams"}


class BagOfEmbeddings(nn.Module):
    """The mean of word vectors and a linear layer: the transformer without positions and blocks."""

    def __init__(self, num_tokens: int, num_classes: int, dim: int, pad_id: int = 1) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.embedding = nn.Embedding(num_tokens, dim)
        self.classes = nn.Linear(dim, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Log-probabilities, `(B, num_classes)`."""
        mean = chapter.masked_mean(self.embedding(tokens), tokens != self.pad_id)
        return F.log_softmax(self.classes(mean), dim=-1)


def machine() -> str:
    """The processor, in words, and how many threads torch uses."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    return f"{name}, {torch.get_num_threads()} threads"


def one_cycle(step: int, total: int) -> float:
    """Warm-up over a tenth of the steps, then linearly to 0."""
    return chapter.warmup_factor(step + 1, total // 10) * max(0.0, 1 - step / total)


def dropped(batches: Iterable, epoch: int, done: int, total: int) -> Iterator:
    """The batches with words dropped, telling on stderr how far it is."""
    start = time.perf_counter()
    for number, batch in enumerate(chapter.drop_words(batches, WORD_DROPOUT)):
        if number % 50 == 49:
            left = (time.perf_counter() - start) / (number + 1) * (total - done - number)
            print(f"\repoch {epoch + 1}, {left:.0f} s left ", end="", file=sys.stderr, flush=True)
        yield batch


def train_network(name: str, train, words: int, seed: int, epochs: int) -> tuple[nn.Module, float]:
    """Train the transformer or the bag of embeddings; returns it and the seconds."""
    torch.manual_seed(seed)
    if name == "transformer":
        model = chapter.TransformerClassifier(words, 2, DIM, HEADS, DEPTH, LENGTH, dropout=DROPOUT)
    else:
        model = BagOfEmbeddings(words, 2, DIM)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE if name == "transformer" else 5 * RATE, weight_decay=0.01)
    batches = chapter.make_batches(train, TOKENS_IN_A_BATCH, seed=seed)
    total = epochs * len(batches)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: one_cycle(step, total))
    start = time.perf_counter()
    for epoch in range(epochs):
        random.Random(1000 * seed + epoch).shuffle(batches)
        chapter.train_epoch(model, dropped(batches, epoch, epoch * len(batches), total), optimizer, scheduler)
    return model, time.perf_counter() - start


def train_logistic(name: str, train) -> tuple[TfidfVectorizer, LogisticRegression, float]:
    """Fit logistic regression on tf–idf of the same tokens."""
    start = time.perf_counter()
    vectorizer = TfidfVectorizer(
        tokenizer=lambda example: example.text,
        preprocessor=lambda example: example,
        token_pattern=None,
        ngram_range=(1, 2) if name == "bigrams" else (1, 1),
        min_df=2,
        sublinear_tf=True,
    )
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit(vectorizer.fit_transform(train.examples), [e.label for e in train.examples])
    return vectorizer, model, time.perf_counter() - start


def main() -> None:
    """Train what is asked for and keep each result."""
    parser = argparse.ArgumentParser(description="Measure the models of chapter 07 on the full IMDB data.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", default=["logistic", "bigrams", "bag", "transformer"])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument(
        "--validate", action="store_true", help="report on a tenth of the training reviews; keep nothing"
    )
    given = parser.parse_args()
    root = chapter.data_root("imdb")
    if root.name != "full" and not given.validate:
        sys.exit("error: the full data are not there: python data/download.py")
    text, label = chapter.make_fields()
    start = time.perf_counter()
    train, test = chapter.load_reviews(root, text, label)
    print(f"{len(train):,} + {len(test):,} reviews read in {time.perf_counter() - start:.1f} s", flush=True)
    if given.validate:
        train, test = chapter.hold_out(train, 0.1)
    text.build_vocab(train, max_size=WORDS)
    labels = [e.label for e in test.examples]
    for name in given.models:
        for seed in given.seeds if name in ("bag", "transformer") else [0]:
            if name in LABELS:
                vectorizer, model, seconds = train_logistic(name, train)
                parameters, epochs, title = model.coef_.size + 1, "", LABELS[name]
                value = model.score(vectorizer.transform(test.examples), labels)
            else:
                model, seconds = train_network(name, train, len(text.vocab), seed, given.epochs)
                _, value = chapter.evaluate(model, chapter.make_batches(test, TOKENS_IN_A_BATCH))
                parameters, epochs = sum(p.numel() for p in model.parameters()), given.epochs
                title = "transformer, one block" if name == "transformer" else "bag of embeddings"
            print(f"{title}, seed {seed}: {value:.2%} in {seconds:.0f} s", flush=True)
            run = {
                "experiment": "Film reviews (IMDB)",
                "data": f"{len(train):,} reviews to train on, {len(test):,} in the official test set",
                "metric": "Accuracy on the test set in percent, mean ± standard deviation over seeds",
                "model": title,
                "parameters": parameters,
                "epochs": epochs,
                "seconds": round(seconds, 1),
                "machine": machine(),
                "load": round(os.getloadavg()[0], 1),
                "seed": seed,
                "value": round(100 * value, 3),
            }
            if not given.validate:
                write_run(run)


if __name__ == "__main__":
    main()
