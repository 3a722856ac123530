"""Chapter 12 on the full data: what reviews teach whose labels are not told, once somebody judges them.

    python results/self_training.py [--labels 100 1000] [--seeds 0 1 2] [--body FILE]
    python results/self_training.py --validate [--set share=0.3 …]

A teacher learns from the labelled reviews of a draw, the same draws as in `reading.py`, and judges all the other
training reviews, whose labels it is not told. A student learns from the draw and from all of these, half of them on
either side. Teachers are regressions on what a frozen body says, on NB-weighted n-grams and on a vector for each
review; students are the latter two. Several judge by the mean of their log-odds. The controls leave the body out.
Settings are chosen with `--validate`, on held-out training reviews.
"""

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from imdb import REGRESSIONS, right_of, scored, write_difference
from pretraining import HERE, load_rows
from quick import keep_freed_memory
from reading import EXPERIMENT, HELD_OUT, TUNING, about_data, ask, draw, first_model, judge_frozen
from reading import WAYS as READING_WAYS
from report import STARTED_IN, clocks, full_data, parse_settings, write_run
from review_vectors import review_vectors
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from attention_course.bodies import load_export
from attention_course.data import cache_folder, cut_review, load_reviews, read_reviews, review_fields
from attention_course.training import save
from attention_course.words import LogCountRatios, log_count_ratios

SHIPPED = HERE.parent / "solutions" / "12_pretraining" / "body.pt"
GRAMS, BODY = "NB-weighted words, pairs and triples", "a frozen body that has read"
PAIR = f"{GRAMS} and a vector for each review"
# Each way's title, its teachers and its students; the teachers answer themselves where there is no student.
WAYS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "body": (f"{GRAMS}, taught by {BODY}", ("frozen",), ("regression",)),
    "both": (f"{GRAMS}, taught by {BODY} and by themselves", ("frozen", "regression"), ("regression",)),
    "themselves": (f"{GRAMS}, taught by themselves", ("regression",), ("regression",)),
    "vectors": ("logistic regression, a vector for each review", ("vectors",), ()),
    "pair": (f"{PAIR}, taught by themselves", ("regression", "vectors"), ("regression", "vectors")),
    "all": (
        f"{PAIR}, taught by {BODY} and by themselves",
        ("frozen", "regression", "vectors"),
        ("regression", "vectors"),
    ),
}
TAUGHT_BY_NOBODY = {name: READING_WAYS[name] for name in ("frozen", "regression")}
TITLES = {way: title for way, (title, _, _) in WAYS.items()} | TAUGHT_BY_NOBODY
COMPARED = [
    ("body", "frozen"),
    ("body", "regression"),
    ("body", "themselves"),
    ("both", "frozen"),
    ("both", "regression"),
    ("both", "themselves"),
    ("both", "body"),
    ("vectors", "frozen"),
    ("vectors", "regression"),
    ("all", "both"),
    ("all", "body"),
    ("all", "vectors"),
    ("all", "pair"),
]
VECTORS: dict[str, Any] = REGRESSIONS["vectors"] | {
    "min_df": 5,
    "epochs": 20,
    "weights": "log of reviews / reviews with the n-gram",
    "C": 0.005,  # of numbers with spread 1, as of what the body says
}
SETTINGS = {"share": 0.5}  # of the reviews, on either side, that the student is told of: all; chosen by --validate
NOTE = (
    "taught by: the teachers learnt from the labels of the draw; they judged the other training reviews, whose labels "
    "they were not told, half as positive and half as negative; the students learnt from all. The seconds are the "
    "students'."
)
VECTORS_NOTE = (
    "a vector for each review: fitted, like those of the n-grams, on the 75,000 reviews to read and on no label; "
    "afterwards those of the test reviews were, with the n-grams' as they were."
)


def read_all(root: Path, state: dict, split: str) -> np.ndarray:
    """What a frozen body says of each labelled review of a split, `(reviews, dim)`; cached."""
    path = cache_folder(root) / f"reading-said-{split}-{state['tokens']}.pt"
    if not path.exists():
        model = first_model("frozen", state, TUNING)
        rows, _ = load_rows(root, state["pieces"], split)
        save(ask(model.summary, model, rows, TUNING).half(), path)
    return torch.load(path, weights_only=True).float().numpy()


def fit_vectors(root: Path, pool: list, measured: list, name: str) -> tuple[np.ndarray, int]:
    """Vectors of the pool and of the reviews to measure with, `(reviews, dim)`; how many numbers were fitted; cached.

    Those of the pool and the unlabelled reviews are fitted together, and from the n-grams' vectors that this gives
    those of the measured reviews.
    """
    path = cache_folder(root) / f"review-vectors-{name}.pt"
    kept = torch.load(path, weights_only=True) if path.exists() else {}
    if kept.get("settings") != VECTORS:
        unlabelled = [SimpleNamespace(text=cut_review(r.text)) for r in read_reviews(root, "train", labelled=False)]
        counter = LogCountRatios(VECTORS["longest"], VECTORS["min_df"]).counter
        present = counter.fit_transform([*pool, *unlabelled]).astype(np.float64)
        rare = scipy.sparse.diags(np.log(present.shape[0] / present.sum(axis=0).A1))
        own, grams = review_vectors((present @ rare).tocsr(), VECTORS, seed=0)
        weights = (counter.transform(measured).astype(np.float64) @ rare).tocsr()
        vectors = torch.cat([own[: len(pool)], review_vectors(weights, VECTORS, seed=1, grams=grams)[0]])
        kept = {"settings": VECTORS, "vectors": vectors.half(), "fitted": own.numel() + grams.numel()}
        save(kept, path)
    return kept["vectors"].float().numpy(), kept["fitted"]


def log_odds(probabilities: Tensor, known: int) -> np.ndarray:
    """Of the second class, to mean 0 and spread 1 over the first `known` reviews."""
    odds = torch.logit(probabilities[:, 1].double(), eps=1e-9).numpy()
    return (odds - odds[:known].mean()) / odds[:known].std()


def judge_grams(present: scipy.sparse.csr_matrix, told: np.ndarray, labels: np.ndarray) -> tuple[int, Tensor]:
    """The regression of chapter 07 on NB-weighted n-grams: its parameters, and its probabilities for all reviews.

    Args:
        present: `(reviews, n-grams)`, 1 where a review holds an n-gram.
        told: the rows to learn from.
        labels: theirs.
    """
    present = present[:, present[told].getnnz(axis=0) > 0]
    weighted = present @ scipy.sparse.diags(log_count_ratios(present[told], labels))
    model = LogisticRegression(C=REGRESSIONS["bayes"]["C"], solver="liblinear", dual=True, max_iter=1000)
    model.fit(weighted[told], labels)
    return model.coef_.size + 1, torch.from_numpy(model.predict_proba(weighted))


def tell(judged: np.ndarray, drawn: np.ndarray, own: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The reviews of which a teacher is surest, with its labels, and the drawn ones, with their own."""
    order, count = np.argsort(judged), round(share * len(judged))
    labels = np.full(len(judged), -1)
    labels[order[:count]], labels[order[-count:]], labels[drawn] = 0, 1, own
    told = np.flatnonzero(labels >= 0)
    return told, labels[told]


def compare(answers: dict[str, list[tuple[dict, Tensor]]], count: int, seeds: list[int], labels: Tensor) -> None:
    """Which of two is better on the same test reviews."""
    for one, other in COMPARED:
        if one in answers and other in answers:
            title = f"{TITLES[one]}, {count:,} labels − {TITLES[other]}"
            right = [right_of(answers[name], labels) for name in (one, other)]
            write_difference(EXPERIMENT, title, "+".join(map(str, seeds)), *right)


def main() -> None:
    """Teach, measure, and keep each result."""
    parser = argparse.ArgumentParser(description="Let a body that has read teach others, on the full IMDB data.")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--body", type=Path, metavar="FILE", default=SHIPPED, help="an exported one")
    parser.add_argument("--validate", action="store_true", help="report on held-out training reviews; keep nothing")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings, with --validate")
    given = parser.parse_args()
    if given.set and not given.validate:
        parser.error("settings are chosen with --validate")
    settings = SETTINGS | parse_settings(given.set)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    root = full_data("imdb")
    keep_freed_memory()
    state = load_export(STARTED_IN / given.body)
    train, test = load_reviews(root, *review_fields())
    examples, said = np.array(train.examples), read_all(root, state, "train")
    numbers = np.array([example.number for example in examples])
    held = given.validate & (numbers > (1 - HELD_OUT) * numbers.max())
    measured = list(examples[held]) if given.validate else test.examples
    said = np.concatenate([said[~held], said[held] if given.validate else read_all(root, state, "test")])
    pool = list(examples[~held])
    counter = LogCountRatios(longest=3, min_df=1).counter
    present = scipy.sparse.vstack([counter.fit_transform(pool), counter.transform(measured)], "csr").astype(np.float64)
    labels, wanted = (torch.tensor([e.label for e in part]) for part in (pool, measured))
    asked = set(TAUGHT_BY_NOBODY).union(*(WAYS[way][1] for way in given.ways))
    if "vectors" in asked:
        vectors, fitted = fit_vectors(root, pool, measured, "validated" if given.validate else "tested")

    def judge(name: str, told: np.ndarray, own: np.ndarray) -> tuple[int, Tensor]:
        """What one of them that has learnt from some reviews says of all, and its parameters."""
        if name == "regression":
            return judge_grams(present, told, own)
        seen, strength = (said, TUNING["C"]) if name == "frozen" else (vectors, VECTORS["C"])
        regression, probabilities = judge_frozen(seen[told], seen, own, strength)
        return regression.coef_.size + 1 + (fitted if name == "vectors" else 0), probabilities

    def together(found: list[tuple[int, Tensor]]) -> tuple[int, Tensor]:
        """What one has said, or the mean of what several have, and their parameters."""
        if len(found) == 1:
            return found[0]
        odds = np.mean([log_odds(probabilities, len(pool)) for _, probabilities in found], axis=0)
        positive = torch.sigmoid(torch.from_numpy(odds))
        return sum(parameters for parameters, _ in found), torch.stack([1 - positive, positive], dim=1)

    for count in given.labels:
        answers: dict[str, list[tuple[dict, Tensor]]] = {}
        for seed in given.seeds:
            drawn = draw(labels, count, seed)
            own = labels[drawn].numpy()
            taught, spent = {}, {}
            for name in sorted(asked):
                read = clocks()
                taught[name], spent[name] = judge(name, drawn, own), read()
            judged = {name: taught[name][1][len(pool) :] for name in TAUGHT_BY_NOBODY}
            for way in given.ways:
                title, teachers, students = WAYS[way]
                parameters, said_of = together([taught[name] for name in teachers])
                cost = spent[teachers[0]]
                if students:
                    told, answers_told = tell(said_of[: len(pool), 1].numpy(), drawn, own, settings["share"])
                    read = clocks()
                    parameters, said_of = together([judge(name, told, answers_told) for name in students])
                    cost = read()
                judged[way] = said_of[len(pool) :]
                run = cost | {"parameters": parameters, "epochs": "–", "precision": "float64", "settings": settings}
                score = scored(f"{title}, {count:,} labels", seed, judged[way], wanted)
                if not given.validate:
                    where = {
                        "drawn": ["parameters"],  # the n-grams of those that are told of
                        "notes": [NOTE] * bool(students) + [VECTORS_NOTE] * ("vectors" in teachers),
                        "read": state["tokens"],
                    }
                    write_run(about_data(len(wanted)) | where | score | run)
            for name, probabilities in judged.items():
                answers.setdefault(name, []).append(({}, probabilities))
        for name, kept in answers.items():
            print(f"{name}, {count:,} labels: {100 * right_of(kept, wanted).mean():.2f}", flush=True)
        if not given.validate:
            compare(answers, count, given.seeds, wanted)


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
