"""Chapter 07 on the full data: three seeds of the transformer, against simple models.

    python data/download.py
    python results/imdb.py [--models logistic … bag transformer pairs mean mixture] [--seeds 0 1 2]
    python results/imdb.py --validate [--models …] [--set epochs=4 …]

The definitions and the settings are those of chapter 07's solution; the model called `pairs` is its transformer, given
more to read, and started from what the training reviews say about words. `--validate` holds the reviews of a tenth of
the training films back, reports on these and reads no test review: it is how to choose settings. Without it, models
are trained on all 25,000 training reviews, and each reads the test reviews once, at the end. The means combine what
finished models answered. A run on record is not run again: delete its file in `results/runs/` for that.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
from report import clocks, cost_together, parse_settings, precision_of, read_answers, run_path, watched, write_run
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torchtext import data
from words_and_pairs import WordsAndPairs, word_vectors

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "07_imdb_classification")  # where chapters find each other

import autograder.chapters  # noqa: E402, F401, I001
import imdb_classification as chapter  # noqa: E402

EXPERIMENT = "Film reviews (IMDB)"
METRIC = "Accuracy in percent on the official test set"
# The regressions' settings were chosen on the validation reviews; the networks' are the chapter's.
REGRESSIONS = {
    "logistic": {"longest": 1, "min_df": 2, "C": 10.0},
    "bigrams": {"longest": 2, "min_df": 2, "C": 30.0},
    "trigrams": {"longest": 3, "min_df": 2, "C": 30.0},
}
TRANSFORMER = chapter.RECIPES["full"] | {
    "max_len": chapter.MAX_LEN,
    "words": 30_000,
    "betas": (0.9, 0.999),
    "embedding_eps": 1e-8,
}
NETWORKS = {
    "transformer": TRANSFORMER,
    "bag": TRANSFORMER | {"rate": TRANSFORMER["bag_rate"]},
    "pairs": TRANSFORMER
    | {
        "pairs_from": 2,  # pairs of words have a vector when as many training reviews hold them
        "window": 5,  # words that stand as close together share what their first vectors know
        "betas": (0.9, 0.98),
        "embedding_eps": 1e-4,  # Adam's usual 1e-8 moves a word seen once as far as one seen in each batch
        "word_dropout": 0.5,
    },
}
# Means of probabilities, in which each kind of model has the same say, however many seeds it has.
ENSEMBLES = {"mean": ["pairs"], "mixture": ["pairs", "trigrams"]}
TITLES = {
    "logistic": "logistic regression, tf–idf of words",
    "bigrams": "logistic regression, tf–idf of words and pairs",
    "bag": "bag of embeddings",
    "trigrams": "logistic regression, tf–idf of words, pairs and triples",
    "transformer": "transformer, one block",
    "pairs": "transformer, one block, words and pairs",
    "mean": "mean of the transformers on words and pairs",
    "mixture": "mean of the transformers on words and pairs and the regression on triples",
}


def hold_out_films(train, root: Path):
    """The training reviews without those of the last tenth of the films, and those.

    Training and test set share no film, so that a split which does is too kind. Reviews of one film have neighbouring
    numbers in their files' names (at most 30 of them; two reviews a thousand apart hardly ever share a rare name).
    """
    late = set()
    for file in (root / "imdb" / "aclImdb" / "train").glob("*/*.txt"):
        if int(file.name.partition("_")[0]) >= 11_250:  # of 12,500 for each class
            late.add(tuple(chapter.tokenize(file.read_text(encoding="utf-8"))))
    fields = list(train.fields.items())
    parts = [[e for e in train.examples if (tuple(e.text) in late) == held] for held in (False, True)]
    return tuple(data.Dataset(part, fields) for part in parts)


def one_cycle(optimizer: torch.optim.Optimizer, total: int) -> torch.optim.lr_scheduler.LambdaLR:
    """Warm-up over a tenth of the steps, then linearly to 0."""
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: chapter.warmup_factor(step + 1, total // 10) * max(0.0, 1 - step / total)
    )


def numbered(dataset) -> list[np.ndarray]:
    """The token numbers of each review."""
    numbers = dataset.fields["text"].vocab.stoi
    return [np.array([numbers[word] for word in example.text], dtype=np.int64) for example in dataset.examples]


def new_network(name: str, train, settings: dict) -> nn.Module:
    """A transformer, or the bag of embeddings: the transformer without positions and blocks."""
    words = len(train.fields["text"].vocab)
    if name == "bag":
        model = chapter.BagOfEmbeddings(words, 2, settings["dim"])
    else:
        sizes = [settings[key] for key in ("dim", "heads", "depth", "max_len", "dropout")]
        model = chapter.TransformerClassifier(words, 2, *sizes)
    nn.init.normal_(model.embedding.weight, std=settings["std"])
    if name == "pairs":
        reviews = numbered(train)
        vectors = word_vectors(reviews, words, settings["dim"], settings["window"])
        with torch.no_grad():
            model.embedding.weight.copy_(vectors * settings["std"] / vectors.std())
        model.embedding = WordsAndPairs(model.embedding, reviews, settings["pairs_from"])
    return model


def ends(dataset, longest: int):
    """The reviews with their last tokens only: long ones keep their verdict for the end."""
    kept = []
    for whole in dataset.examples:
        example = data.Example()
        example.text, example.label = whole.text[-longest:], whole.label
        kept.append(example)
    return data.Dataset(kept, list(dataset.fields.items()))


def train_network(model: nn.Module, dataset, settings: dict, seed: int) -> None:
    """Train a classifier as the chapter does."""
    embedding = list(model.embedding.parameters())
    rest = [p for name, p in model.named_parameters() if not name.startswith("embedding.")]
    groups = [{"params": embedding, "eps": settings["embedding_eps"]}, {"params": rest}]
    optimizer = torch.optim.AdamW(groups, settings["rate"], settings["betas"], weight_decay=0.01, fused=True)
    scheduler = None
    for epoch in range(settings["epochs"]):
        batches = chapter.make_batches(dataset, settings["tokens_in_a_batch"], 1000 * seed + epoch, settings["max_len"])
        scheduler = scheduler or one_cycle(optimizer, settings["epochs"] * len(batches))
        bar = watched(batches, f"seed {seed}, epoch {epoch + 1}")
        with chapter.mixed_precision():
            chapter.train_epoch(model, chapter.drop_words(bar, settings["word_dropout"]), optimizer, scheduler)


@torch.no_grad()
def predict(model: nn.Module, dataset, settings: dict) -> Tensor:
    """The probabilities of the two classes for each review, `(N, 2)`, in the order of the data set."""
    model.eval()
    texts = [example.text[: settings["max_len"]] for example in dataset.examples]
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    probabilities = torch.zeros(len(texts), 2)
    with chapter.mixed_precision():
        for start in range(0, len(order), 32):
            numbers = order[start : start + 32]  # of similar length: little padding
            tokens = dataset.fields["text"].process([texts[i] for i in numbers])
            probabilities[numbers] = model(tokens).float().exp()
    return probabilities


def run_network(name: str, seed: int, settings: dict, train, test) -> tuple[dict, Tensor]:
    """Train one network; what its record holds, and its probabilities for the reviews to measure with."""
    torch.manual_seed(seed)
    if name == "pairs":
        train, test = (ends(reviews, settings["max_len"]) for reviews in (train, test))
    read = clocks()
    model = new_network(name, train, settings)
    train_network(model, train, settings, seed)
    cost = read() | {
        "parameters": sum(p.numel() for p in model.parameters()),
        "epochs": settings["epochs"],
        "precision": precision_of(chapter.mixed_precision()),
        "settings": settings,
    }
    return cost, predict(model, test, settings)


def run_regression(settings: dict, train, test) -> tuple[dict, Tensor]:
    """Fit logistic regression on tf–idf of the same tokens; its record and its probabilities."""
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
    cost = read() | {
        "parameters": model.coef_.size + 1,
        "epochs": "–",
        "precision": "float64",
        "settings": settings,
    }
    return cost, torch.from_numpy(model.predict_proba(vectorizer.transform(test.examples)))


def combine(kinds: list[str], seeds: list[int], answers: Path) -> tuple[dict, Tensor]:
    """The mean of the probabilities that finished runs gave; what they cost together.

    Raises:
        FileNotFoundError: one of these models has not been run.
    """
    paths = [[answers / f"{kind}-{seed}.pt" for seed in (seeds if kind in NETWORKS else [0])] for kind in kinds]
    kept = [read_answers(one_kind) for one_kind in paths]
    records = [record for kind in kept for record, _ in kind]
    means = [torch.stack([probabilities for _, probabilities in kind]).double().mean(dim=0) for kind in kept]
    return cost_together(records), torch.stack(means).mean(dim=0)


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
    other = parse_settings(given.set)
    torch.set_num_threads(given.threads)
    root = chapter.data_root("imdb")
    if root.name != "full":
        sys.exit("error: the full data are not there: python data/download.py")
    text, label = chapter.make_fields()
    train, test = chapter.load_reviews(root, text, label)
    if given.validate:
        train, test = hold_out_films(train, root)
    text.build_vocab(train, max_size=TRANSFORMER["words"])
    together = "+".join(map(str, given.seeds))
    labels = torch.tensor([example.label for example in test.examples])
    answers = root / "cache" / ("answers-validation" if given.validate else "answers-test")
    for name in given.models:
        for seed in given.seeds if name in NETWORKS else [together if name in ENSEMBLES else 0]:
            if run_path(EXPERIMENT, TITLES[name], seed).exists() and not given.validate:
                print(f"{TITLES[name]}, seed {seed}: on record", flush=True)
                continue
            if name in ENSEMBLES:
                run, probabilities = combine(ENSEMBLES[name], given.seeds, answers)
            else:
                if name in REGRESSIONS:
                    run, probabilities = run_regression(REGRESSIONS[name] | other, train, test)
                else:
                    run, probabilities = run_network(name, seed, NETWORKS[name] | other, train, test)
                chapter.save((run, probabilities), answers / f"{name}-{seed}.pt")
            value = 100 * chapter.accuracy(probabilities, labels)
            print(f"\n{TITLES[name]}, seed {seed}: {value:.2f} in {run['processor_seconds']:.0f} s", flush=True)
            if not given.validate:
                about = {
                    "experiment": EXPERIMENT,
                    "data": f"{len(train):,} reviews to train on, {len(test):,} to test with",
                    "metric": METRIC,
                    "model": TITLES[name],
                    "seed": seed,
                    "values": {"accuracy": round(value, 3)},
                }
                write_run(about | run)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:  # a model that others build on
        sys.exit(f"error: {error}")
