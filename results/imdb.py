"""Chapter 07 on the full data: the transformer's recipe, against simple models that read the same text.

    python data/download.py
    python results/imdb.py [--models logistic … transformer … mixture] [--seeds 0 1 2]
    python results/imdb.py --validate [--models …] [--set epochs=4 …]
    python results/imdb.py --compare
    python results/imdb.py --ablate [--seeds 0 1 2]
    python results/imdb.py --splits [--seeds 0 1 2 …]
    python results/imdb.py --checkpoint

Every model reads the same tokens: the last 512 of each review. The vectors for each review are fitted on all of them,
the test reviews' text included and their labels not. `--validate` holds the last tenth of the training reviews back, by
number, reports on these and reads no test review: it is how to choose settings. Without it, models are trained on all
25,000 training reviews, and each reads the test reviews once, at the end. Means combine what finished models answered,
and `--compare` asks of pairs of finished models which is better, on the same test reviews. `--ablate` takes the
transformer's recipe apart, on shorter texts and with more reviews held out, and compares each part's absence with the
whole, on these and, since of their films reviews of the other label were read, on every third test review; `--splits`
holds training reviews out at random and by number, to see what each promises. `--checkpoint` trains the transformer
with seed 0, if its state is not in the cache, and writes the file that ships with the chapter. A run goes on from its
last epoch when it was stopped, and one on record is not run again: delete its file in `results/runs/`.
"""

import argparse
import hashlib
import os
import random
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from intervals import accuracy_interval, paired_difference
from ngram_vectors import WordsAndNGrams
from report import (
    clocks,
    cost_so_far,
    cost_together,
    full_data,
    on_record,
    parse_settings,
    precision_of,
    read_answers,
    write_comparison,
    write_run,
)
from review_vectors import review_vectors
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn import functional as F
from torchtext import data

from attention_course.data import (
    cache_folder,
    hold_out_by_number,
    load_reviews,
    review_batches,
    review_fields,
)
from attention_course.training import keep_training, load_state, mixed_precision, save, share_of
from attention_course.words import LogCountRatios, word_vectors

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "07_imdb_classification")  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import imdb_classification as chapter  # noqa: E402
import transformer_block as chapter_06  # noqa: E402
from quick import keep_freed_memory, quicken  # noqa: E402

EXPERIMENT = "Film reviews (IMDB), the last 512 tokens of each"
TAKEN_APART = "Film reviews (IMDB), held out by number: the transformer's recipe taken apart"
OF_NEW_FILMS = "Film reviews (IMDB), test reviews: the transformer's recipe taken apart"
METRIC = "Accuracy in percent on the official test set, read once by each model after training"
PROMISED = "Film reviews (IMDB): what a held-out tenth promises"
PROMISED_BY_RARE = "Film reviews (IMDB): what a held-out tenth promises, by rare words alone"
WORDS, MAX_LEN, PAD = 30_000, 512, 1
# Settings were chosen on held-out training reviews.
REGRESSIONS = {
    "logistic": {"longest": 1, "min_df": 2, "C": 10.0, "weights": "tf-idf"},
    "bigrams": {"longest": 2, "min_df": 2, "C": 30.0, "weights": "tf-idf"},
    "trigrams": {"longest": 3, "min_df": 2, "C": 30.0, "weights": "tf-idf"},
    "bayes_words": {"longest": 1, "min_df": 1, "C": 0.03, "weights": "log-count ratios"},
    "bayes": {"longest": 3, "min_df": 1, "C": 0.3, "weights": "log-count ratios"},
    "vectors": {
        "longest": 3,
        "min_df": 1,
        "C": 1.0,
        "weights": "review vectors",
        "dim": 200,
        "rate": 0.2,
        "epochs": 30,
        "batch": 256,
        "scale": 6.0,
        "drawn": 32,
        "others": 2048,
        "against": 5,
    },
}
TRANSFORMER: dict[str, Any] = {
    "dim": 64,
    "heads": 2,
    "depth": 1,
    "dropout": 0.0,
    "word_dropout": 0.5,
    "first_vectors": True,  # made by counting which words of the training reviews stand close together
    "window": 5,  # how close
    "std": 0.1,
    "tokens_in_a_batch": 8000,
    "rate": 1e-3,
    "betas": (0.9, 0.98),
    "embedding_eps": 1e-4,  # Adam's usual 1e-8 moves a word seen once as far as one seen in each batch
    "epochs": 3,
}
NETWORKS = {
    "transformer": TRANSFORMER,
    "bag": TRANSFORMER,
    "bag_own_rate": TRANSFORMER | {"rate": 5e-3},  # at the transformer's rate it has not learned all it can
    # Nothing that was chosen for the transformer but the word dropout.
    "bag_plain": TRANSFORMER
    | {"rate": 5e-3, "norm": False, "first_vectors": False, "embedding_eps": 1e-8, "betas": (0.9, 0.999)},
    # Pairs and triples of words have a vector when so many training reviews hold them; it learns faster than a word's.
    "grams": TRANSFORMER
    | {"word_dropout": 0.0, "longest": 3, "seen_in": 2, "vector_dropouts": (0.5, 0.8), "gram_eps": 1e-5},
}
WHOLE = "the whole recipe"
PLAIN_BAG = "bag of embeddings, no norm, random first vectors, Adam's usual settings"
# The transformer with an ingredient of its recipe taken away, on shorter texts: it is the difference that counts.
ABLATIONS: dict[str, dict] = {
    WHOLE: {},
    "without first vectors": {"first_vectors": False},
    "without word dropout": {"word_dropout": 0.0},
    "with Adam's usual ε for embeddings": {"embedding_eps": 1e-8},
    "with Adam's usual β₂": {"betas": (0.9, 0.999)},
}
RARE, RARE_TENTHS = 20, 3  # a word is rare if so few reviews hold it; tenths that are judged by these words alone
ABLATION_LEN, ABLATION_SHARE = 128, 0.3  # tokens of each review; what part of the training reviews is held out
# Means of probabilities, in which each kind of model has the same say, however many seeds it has.
ENSEMBLES = {
    "mean": ["transformer"],
    "mixture": ["transformer", "bayes"],
    "grams_mixture": ["grams", "bayes"],
    "everything": ["grams", "bayes", "vectors"],
}
ANSWERS = "answers-test-last-512"  # in the cache: what finished models said of the test reviews
TITLES = {
    "logistic": "logistic regression, tf–idf of words",
    "bigrams": "logistic regression, tf–idf of words and pairs",
    "trigrams": "logistic regression, tf–idf of words, pairs and triples",
    "bayes_words": "logistic regression, NB-weighted words",
    "bayes": "logistic regression, NB-weighted words, pairs and triples",
    "vectors": "logistic regression, a vector for each review, fitted on the test reviews' text too",
    "bag": "bag of embeddings",
    "bag_own_rate": "bag of embeddings, a rate of its own",
    "transformer": "transformer, one block",
    "grams": "transformer, one block, words, pairs and triples",
    "mean": "mean of the transformers",
    "mixture": "mean of the transformers and the NB-weighted regression",
    "grams_mixture": "mean of the transformers on words, pairs and triples and the NB-weighted regression",
    "everything": "mean of the transformers and of both regressions, all on words, pairs and triples",
}
READ_AHEAD = (
    "a vector for each review: fitted on all reviews together, the test reviews' text included, their labels not; so "
    "is what it contributes to the mean of the transformers and of both regressions."
)
COMPARED = [
    ("bayes_words", "logistic"),
    ("bayes", "bayes_words"),
    ("bag_own_rate", "bag"),
    ("transformer", "bag"),
    ("transformer", "bag_own_rate"),
    ("transformer", "logistic"),
    ("transformer", "bayes_words"),
    ("transformer", "bayes"),
    ("mean", "logistic"),
    ("mean", "bayes_words"),
    ("mixture", "bayes"),
    ("grams", "transformer"),
    ("grams", "bayes"),
    ("grams_mixture", "bayes"),
    ("vectors", "bayes"),
    ("everything", "bayes"),
    ("everything", "grams_mixture"),
]


class Bag(nn.Module):
    """The transformer without positions and blocks: the mean of its words' vectors, a norm and a linear layer."""

    def __init__(self, words: int, dim: int, normed: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, dim)
        self.norm = chapter_06.LayerNorm(dim) if normed else nn.Identity()
        self.classes = nn.Linear(dim, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Log-probabilities, `(B, 2)`."""
        summary = chapter.masked_mean(self.norm(self.embedding(tokens)), tokens != PAD)
        return F.log_softmax(self.classes(summary), dim=-1)


def ends(dataset: data.Dataset, longest: int) -> data.Dataset:
    """The reviews with their last tokens only: long ones keep their verdict for the end."""
    kept = []
    for whole in dataset.examples:
        example = data.Example()
        example.text, example.label, example.number = whole.text[-longest:], whole.label, whole.number
        kept.append(example)
    return data.Dataset(kept, list(dataset.fields.items()))


def one_cycle(optimizer: torch.optim.Optimizer, total: int) -> torch.optim.lr_scheduler.LambdaLR:
    """Warm-up over a tenth of the steps, to nine tenths of the rate, then linearly to 0."""
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: chapter.warmup_factor(step + 1, total // 10) * max(0.0, 1 - step / total)
    )


def numbered(dataset: data.Dataset) -> list[np.ndarray]:
    """The token numbers of each review."""
    numbers = dataset.fields["text"].vocab.stoi
    return [np.array([numbers[word] for word in example.text], dtype=np.int64) for example in dataset.examples]


def new_network(name: str, train: data.Dataset, settings: dict) -> nn.Module:
    """A transformer, or the bag of embeddings, with its first vectors."""
    words = len(train.fields["text"].vocab)
    model: Any  # its embedding is replaced below
    if name.startswith("bag"):
        model = Bag(words, settings["dim"], settings.get("norm", True))
    else:
        sizes = [settings[key] for key in ("dim", "heads", "depth")]
        model = chapter.TransformerClassifier(words, 2, *sizes, MAX_LEN, settings["dropout"])
    nn.init.normal_(model.embedding.weight, std=settings["std"])
    reviews = numbered(train)
    if settings["first_vectors"]:
        vectors = word_vectors(reviews, words, settings["dim"], settings["window"])
        with torch.no_grad():
            model.embedding.weight.copy_(vectors * settings["std"] / vectors.std())
    if "longest" in settings:
        chosen = [settings[key] for key in ("longest", "seen_in", "vector_dropouts")]
        model.embedding = WordsAndNGrams(model.embedding, reviews, *chosen)
    return quicken(model)


def drop_words(batches: Iterable[tuple[Tensor, Tensor]], rate: float) -> Iterator[tuple[Tensor, Tensor]]:
    """The same batches, with a fraction of the words replaced by padding, which nobody reads."""
    for tokens, labels in batches:
        yield tokens.masked_fill(torch.rand(tokens.shape) < rate, PAD), labels


def train_network(model: nn.Module, dataset: data.Dataset, settings: dict, seed: int, path: Path) -> dict:
    """Train a classifier as the chapter does, or go on from its last epoch; what it cost."""
    kinds: dict[str, list[nn.Parameter]] = {"embedding.grams.": [], "embedding.": [], "": []}
    for name, parameter in model.named_parameters():
        kinds[next(kind for kind in kinds if name.startswith(kind))].append(parameter)
    eps = (settings.get("gram_eps"), settings["embedding_eps"], 1e-8)
    groups = [{"params": kind, "eps": e} for kind, e in zip(kinds.values(), eps, strict=True) if kind]
    optimizer = torch.optim.AdamW(groups, settings["rate"], settings["betas"], weight_decay=0.01, fused=True)

    def batches_of(epoch: int) -> list[tuple[Tensor, Tensor]]:
        return review_batches(dataset, settings["tokens_in_a_batch"], MAX_LEN, 1000 * seed + epoch)

    scheduler = one_cycle(optimizer, settings["epochs"] * len(batches_of(0)))
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    state = load_state(path)

    def run_epoch(batches: Iterable[tuple[Tensor, Tensor]]) -> list[float]:
        read = clocks()
        with mixed_precision():
            row = chapter.train_epoch(model, drop_words(batches, settings["word_dropout"]), optimizer, scheduler)
        state["spent"] = cost_so_far(state, read())
        rounded = [round(number, 4) for number in row]
        print(
            f"\nloss and accuracy {rounded}, {state['spent']['processor_seconds']} processor seconds", file=sys.stderr
        )
        return rounded

    share = share_of(settings["epochs"])
    keep_training(parts, state, batches_of, run_epoch, path, share, title=path.stem, seed=1000 * seed)
    return state["spent"] | {"history": state["history"]}


@torch.no_grad()
def predict(model: nn.Module, dataset: data.Dataset) -> Tensor:
    """The probabilities of the two classes for each review, `(N, 2)`, in the order of the data set."""
    model.eval()
    order = sorted(range(len(dataset)), key=lambda i: len(dataset[i].text))
    probabilities = torch.zeros(len(dataset), 2)
    with mixed_precision():
        for start in range(0, len(order), 32):
            numbers = order[start : start + 32]  # of similar length: little padding
            tokens = dataset.fields["text"].process([dataset[i].text for i in numbers])
            probabilities[numbers] = model(tokens).float().exp()
    return probabilities


def state_path(name: str, seed: int, settings: dict, train: data.Dataset, folder: Path) -> Path:
    """Where the state of a training is kept."""
    key = hashlib.sha256(repr([sorted(settings.items()), len(train)]).encode()).hexdigest()[:8]
    return folder / f"imdb-{name}-{seed}-{key}.pt"


def write_checkpoint(train: data.Dataset, test: data.Dataset, folder: Path, path: Path) -> None:
    """Keep what judging needs of the transformer with seed 0: weights in half precision, sizes, words; and its scores.

    They are those of the file, of the rounded weights: the accuracy on the test reviews, and what the order of the
    words is worth, in points, with its interval: the difference from the same reviews with their words shuffled.
    """
    run_network("transformer", 0, TRANSFORMER, train, test, folder)
    trained = load_state(state_path("transformer", 0, TRANSFORMER, train, folder))["model"]
    words = train.fields["text"].vocab.itos
    settings = {key: TRANSFORMER[key] for key in ("dim", "heads", "depth")}
    settings |= {"num_tokens": len(words), "num_classes": 2, "max_len": MAX_LEN}
    model = chapter.TransformerClassifier(**settings)
    state = {name: trained[name].half() for name in model.state_dict()}
    model.load_state_dict(state)
    labels = torch.tensor([example.label for example in test.examples])
    chance, mixed = random.Random(0), ends(test, MAX_LEN)  # a copy
    for example in mixed.examples:
        chance.shuffle(example.text)
    right, unordered = (predict(model, reviews).argmax(dim=1) == labels for reviews in (test, mixed))
    scores = {
        "accuracy": round(100 * right.double().mean().item(), 2),
        "order": [round(100 * value, 2) for value in paired_difference(right.numpy(), unordered.numpy())],
    }
    kept = {"settings": settings, "words": zlib.compress("\n".join(words).encode(), 9), "state": state}
    save(kept | scores, path)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, {scores}", flush=True)


def run_network(
    name: str, seed: int, settings: dict, train: data.Dataset, test: data.Dataset, folder: Path
) -> tuple[dict, Tensor]:
    """Train one network; what its record holds, and its probabilities for the reviews to measure with."""
    torch.manual_seed(seed)
    read = clocks()
    model = new_network(name, train, settings)
    prepared = read()
    cost = train_network(model, train, settings, seed, state_path(name, seed, settings, train, folder))
    for clock in ("seconds", "processor_seconds"):
        cost[clock] = round(cost[clock] + prepared[clock], 1)
    cost |= {
        "parameters": sum(p.numel() for p in model.parameters()),
        "epochs": settings["epochs"],
        "precision": precision_of(mixed_precision()),
        "settings": settings,
    }
    return cost, predict(model, test)


def vectors_for(
    train: scipy.sparse.csr_matrix, test: scipy.sparse.csr_matrix, settings: dict
) -> tuple[np.ndarray, np.ndarray, int]:
    """Vectors of the reviews to train on and to measure with, fitted together; how many numbers were fitted."""
    weights = abs(scipy.sparse.vstack([train, test], format="csr"))
    weights = weights[:, weights.getnnz(axis=0) > 1]  # an n-gram of one review says nothing of another
    vectors = review_vectors(weights, settings, seed=0)[0].numpy()
    return vectors[: train.shape[0]], vectors[train.shape[0] :], sum(weights.shape) * settings["dim"]


def run_regression(settings: dict, train: data.Dataset, test: data.Dataset) -> tuple[dict, Tensor]:
    """Fit logistic regression on n-grams of the same tokens, or on vectors; its record and its probabilities."""
    read = clocks()
    if settings["weights"] == "tf-idf":
        vectorizer = TfidfVectorizer(
            tokenizer=lambda example: example.text,
            preprocessor=lambda example: example,
            token_pattern=None,
            ngram_range=(1, settings["longest"]),
            min_df=settings["min_df"],
            max_df=settings.get("max_df", 1.0),  # a count, or a share: all of them
            sublinear_tf=True,
        )
    else:
        vectorizer = LogCountRatios(settings["longest"], settings["min_df"])
    labels = [e.label for e in train.examples]
    to_train, to_measure, fitted = vectorizer.fit_transform(train.examples, labels), None, 0
    if settings["weights"] == "review vectors":
        to_train, to_measure, fitted = vectors_for(to_train, vectorizer.transform(test.examples), settings)
    model = LogisticRegression(C=settings["C"], solver="liblinear", dual=True, max_iter=1000)
    model.fit(to_train, labels)
    cost = read() | {
        "parameters": model.coef_.size + 1 + fitted,
        "epochs": settings.get("epochs", "–"),
        "precision": "float64",
        "settings": settings,
    }
    if to_measure is None:
        to_measure = vectorizer.transform(test.examples)
    return cost, torch.from_numpy(model.predict_proba(to_measure))


def answers_of(name: str, seeds: list[int], folder: Path) -> list[tuple[dict, Tensor]]:
    """What the finished runs of one kind of model answered; a regression and a mean have one run.

    Raises:
        FileNotFoundError: one of these models has not been run.
    """
    labels = seeds if name in NETWORKS else ["+".join(map(str, seeds)) if name in ENSEMBLES else 0]
    return read_answers([folder / f"{name}-{label}.pt" for label in labels])


def combine(kinds: list[str], seeds: list[int], folder: Path) -> tuple[dict, Tensor]:
    """The mean of the probabilities that finished runs gave; what they cost together.

    Raises:
        FileNotFoundError: one of these models has not been run.
    """
    kept = [answers_of(kind, seeds, folder) for kind in kinds]
    records = [record for kind in kept for record, _ in kind]
    means = [torch.stack([probabilities for _, probabilities in kind]).double().mean(dim=0) for kind in kept]
    return cost_together(records), torch.stack(means).mean(dim=0)


def scored(title: str, seed: int | str, probabilities: Tensor, labels: Tensor) -> dict:
    """What the record of a run says of its answers."""
    value = 100 * chapter.accuracy(probabilities, labels)
    values, intervals = {"accuracy": round(value, 3)}, {"accuracy": accuracy_interval(value, len(labels))}
    print(f"\n{title}, seed {seed}: {value:.2f}", flush=True)
    return {"model": title, "seed": seed, "values": values, "intervals": intervals}


def right_of(runs: list[tuple[dict, Tensor]], labels: Tensor) -> Tensor:
    """How often each review was classified rightly, a share of the runs, `(N,)`."""
    return torch.stack([(probabilities.argmax(1) == labels).double() for _, probabilities in runs]).mean(0)


def write_difference(experiment: str, model: str, seed: int | str, one: Tensor, other: Tensor) -> None:
    """Keep the paired difference of two models, from what `right_of` says of each."""
    difference = [round(100 * value, 2) for value in paired_difference(one.numpy(), other.numpy())]
    write_comparison(experiment, model, seed, "accuracy", difference)
    print(f"{model}: {difference}", flush=True)


def compare(seeds: list[int], labels: Tensor, folder: Path) -> None:
    """Which of two models is better on the same reviews; the accuracy of one with several seeds is their mean."""
    for one, other in COMPARED:
        try:
            right = [right_of(answers_of(name, seeds, folder), labels) for name in (one, other)]
        except FileNotFoundError as error:
            print(f"{TITLES[one]} against {TITLES[other]}: {error}", file=sys.stderr)
            continue
        seed = 0 if {one, other} <= set(REGRESSIONS) else "+".join(map(str, seeds))
        write_difference(EXPERIMENT, f"{TITLES[one]} − {TITLES[other]}", seed, *right)


def ablate(seeds: list[int], train: data.Dataset, held_out: data.Dataset, test: data.Dataset, folder: Path) -> None:
    """Train the transformer with each ingredient of its recipe taken away, and simple models on the same text.

    Each is measured on held-out training reviews, and on every third test review. Of most films of the first the
    training reviews hold the other label's reviews, so that words which few reviews hold mislead; those of the test
    are new.
    """
    third = test.examples[::3]
    both = data.Dataset([*held_out.examples, *third], list(train.fields.items()))
    labels = torch.tensor([example.label for example in both.examples])
    parts = {TAKEN_APART: slice(len(held_out)), OF_NEW_FILMS: slice(len(held_out), None)}
    settings = TRANSFORMER | {"last": ABLATION_LEN}
    kinds = {TITLES["bayes_words"]: ("bayes_words", REGRESSIONS["bayes_words"])}
    kinds |= {title: ("transformer", settings | change) for title, change in ABLATIONS.items()}
    kinds[TITLES["bag_own_rate"]] = "bag_own_rate", settings | NETWORKS["bag_own_rate"]
    kinds[PLAIN_BAG] = "bag_plain", settings | NETWORKS["bag_plain"]
    right = {}
    for title, (name, chosen) in kinds.items():
        answers = []
        for seed in seeds if name in NETWORKS else [0]:
            path = folder / "answers-ablation-twice" / f"{title.replace(' ', '_')}-{seed}.pt"
            if path.exists():
                run, probabilities = torch.load(path, weights_only=True)
            else:
                if name in NETWORKS:
                    run, probabilities = run_network(name, seed, chosen, train, both, folder)
                else:
                    run, probabilities = run_regression(chosen, train, both)
                save((run, probabilities), path)
            answers.append((run, probabilities))
            for experiment, part in parts.items():
                write_ablation(experiment, title, seed, len(train), probabilities[part], labels[part], run)
        right[title] = right_of(answers, labels)
    for title in right.keys() - {WHOLE}:
        for experiment, part in parts.items():
            ends = right[title][part], right[WHOLE][part]
            write_difference(experiment, f"{title} − {WHOLE}", "+".join(map(str, seeds)), *ends)


def write_ablation(
    experiment: str, title: str, seed: int, trained_on: int, probabilities: Tensor, labels: Tensor, run: dict
) -> None:
    """Keep what one model without an ingredient reaches on the reviews of one kind."""
    of_test = experiment == OF_NEW_FILMS
    where = "test reviews, every third, to measure with" if of_test else "of other numbers to measure with"
    about = {
        "experiment": experiment,
        "data": f"{trained_on:,} reviews to train on, {len(labels):,} {where}, the last {ABLATION_LEN} tokens of each",
        "metric": f"Accuracy in percent on {'these test' if of_test else 'the held-out'} reviews",
    }
    write_run(about | scored(title, seed, probabilities, labels) | run)


def try_splits(seed: int, train: data.Dataset) -> None:
    """Measure a simple model on a tenth of the training reviews: a random one, and one of neighbouring numbers.

    The second holds out, of most of its films, the reviews of one label: those of the other have other numbers. The
    first three tenths are judged by rare words alone as well: these are the ones that tell films apart.
    """
    tenth = len(train) // 10
    at_random = set(random.Random(seed).sample(range(len(train)), tenth))
    by_number = set(range(seed * tenth, (seed + 1) * tenth))  # they are sorted by it
    for title, held in {"held out at random": at_random, "held out by number": by_number}.items():
        fields = list(train.fields.items())
        parts = [[e for i, e in enumerate(train.examples) if (i in held) == late] for late in (False, True)]
        rest, out = (data.Dataset(part, fields) for part in parts)
        judge_split(PROMISED, title, seed, rest, out)
        if seed < RARE_TENTHS:
            judge_split(PROMISED_BY_RARE, title, seed, rest, out)


def judge_split(experiment: str, title: str, seed: int, rest: data.Dataset, out: data.Dataset) -> None:
    """Train a simple model on some reviews and measure it on others, unless that is on record."""
    if on_record(experiment, title, seed):
        return
    rare = experiment == PROMISED_BY_RARE
    run, probabilities = run_regression(REGRESSIONS["logistic"] | ({"max_df": RARE} if rare else {}), rest, out)
    words = f" that 2 to {RARE} of the reviews to train on hold" if rare else ""
    about = {
        "experiment": experiment,
        "data": f"{len(rest):,} training reviews to train on, {len(out):,} to measure with",
        "metric": f"Accuracy in percent of the {TITLES['logistic']}{words}; seed: another tenth",
    }
    labels = torch.tensor([example.label for example in out.examples])
    write_run(about | scored(title, seed, probabilities, labels) | run)


def main() -> None:
    """Train what is asked for and keep each result."""
    parser = argparse.ArgumentParser(description="Measure the models of chapter 07 on the full IMDB data.")
    parser.add_argument("--models", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--validate", action="store_true", help="report on held-out training reviews; keep nothing")
    parser.add_argument("--ablate", action="store_true", help="the transformer's recipe taken apart")
    parser.add_argument("--splits", action="store_true", help="what a random tenth promises, and one by number")
    parser.add_argument("--compare", action="store_true", help="paired differences between finished models")
    parser.add_argument("--checkpoint", action="store_true", help="write the file that ships with the chapter")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings, with --validate")
    given = parser.parse_args()
    if given.set and not given.validate:
        parser.error("settings are chosen with --validate")
    other = parse_settings(given.set)
    torch.set_num_threads(given.threads)
    root = full_data("imdb")
    keep_freed_memory()
    text, label = review_fields()
    last = ABLATION_LEN if given.ablate else MAX_LEN
    train, test = (ends(reviews, last) for reviews in load_reviews(root, text, label))
    tested = test
    if given.validate or given.ablate:
        train, test = hold_out_by_number(train, ABLATION_SHARE if given.ablate else 0.1)
    text.build_vocab(train, max_size=WORDS)
    together = "+".join(map(str, given.seeds))
    labels = torch.tensor([example.label for example in test.examples])
    folder = cache_folder(root)
    answers = folder / ("answers-validation" if given.validate else ANSWERS)
    if given.compare:
        compare(given.seeds, labels, answers)
        return
    if given.checkpoint:
        write_checkpoint(train, test, folder, Path("classifier.pt"))
        return
    if given.splits:
        for seed in given.seeds:
            try_splits(seed, train)
        judge_split(PROMISED_BY_RARE, "the test set", 0, train, test)
        return
    if given.ablate:
        ablate(given.seeds, train, test, tested, folder)
        return
    for name in given.models:
        seeds: list[Any] = given.seeds if name in NETWORKS else [together if name in ENSEMBLES else 0]
        for seed in seeds:
            if not given.validate and on_record(EXPERIMENT, TITLES[name], seed):
                print(f"{TITLES[name]}, seed {seed}: on record", flush=True)
                continue
            if name in ENSEMBLES:
                run, probabilities = combine(ENSEMBLES[name], given.seeds, answers)
            elif name in REGRESSIONS:
                run, probabilities = run_regression(REGRESSIONS[name] | other, train, test)
            else:
                run, probabilities = run_network(name, seed, NETWORKS[name] | other, train, test, folder)
            save((run, probabilities), answers / f"{name}-{seed}.pt")
            score = scored(TITLES[name], seed, probabilities, labels)
            if not given.validate:
                about: dict[str, object] = {
                    "experiment": EXPERIMENT,
                    "data": f"{len(train):,} reviews to train on, {len(test):,} to test with",
                    "metric": METRIC,
                }
                if "vectors" in (name, *ENSEMBLES.get(name, [])):
                    about["notes"] = [READ_AHEAD]
                write_run(about | score | run)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:  # a model that others build on
        sys.exit(f"error: {error}")
