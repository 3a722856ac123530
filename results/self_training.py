"""Chapter 12 on the full data: what reviews teach whose labels are not told, once somebody judges them.

    python results/self_training.py [--labels 100 1000] [--seeds 0 1 2] [--body FILE]
    python results/self_training.py --validate [--set share=0.3 …]

A teacher learns from the labelled reviews of a draw, the same draws as in `reading.py`, and judges all the other
training reviews, whose labels it is not told. A student, the regression on NB-weighted n-grams, learns from the draw
and from all of these, half of them on either side. The teacher is a regression on what a frozen body says, or that and
the n-grams' own regression together; or, as a control, the n-grams' alone. Settings are chosen with `--validate`, on
held-out training reviews.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from imdb import REGRESSIONS, right_of, scored, write_difference
from pretraining import HERE, load_rows
from quick import keep_freed_memory
from reading import EXPERIMENT, HELD_OUT, TUNING, about_data, ask, draw, first_model, judge_frozen
from reading import WAYS as READING_WAYS
from report import STARTED_IN, clocks, full_data, parse_settings, write_run
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from attention_course.bodies import load_export
from attention_course.data import cache_folder, load_reviews, review_fields
from attention_course.training import save
from attention_course.words import LogCountRatios, log_count_ratios

SHIPPED = HERE.parent / "solutions" / "12_pretraining" / "body.pt"
STUDENT = "NB-weighted words, pairs and triples, taught by"
WAYS = {
    "body": f"{STUDENT} a frozen body that has read",
    "both": f"{STUDENT} a frozen body that has read and by themselves",
    "themselves": f"{STUDENT} themselves",
}
TEACHERS = {"body": ["frozen"], "both": ["frozen", "regression"], "themselves": ["regression"]}
TAUGHT_BY_NOBODY = {name: READING_WAYS[name] for name in ("frozen", "regression")}
COMPARED = [
    ("body", "frozen"),
    ("body", "regression"),
    ("body", "themselves"),
    ("both", "frozen"),
    ("both", "regression"),
    ("both", "themselves"),
    ("both", "body"),
]
SETTINGS = {"share": 0.5}  # of the reviews, on either side, that the student is told of: all; chosen by --validate
NOTE = (
    "taught by: the teacher learnt from the labels of the draw; it judged the other training reviews, whose labels it "
    "was not told, half as positive and half as negative; the student learnt from all. The seconds are the student's."
)


def read_all(root: Path, state: dict, split: str) -> np.ndarray:
    """What a frozen body says of each labelled review of a split, `(reviews, dim)`; cached."""
    path = cache_folder(root) / f"reading-said-{split}-{state['tokens']}.pt"
    if not path.exists():
        model = first_model("frozen", state, TUNING)
        rows, _ = load_rows(root, state["pieces"], split)
        save(ask(model.summary, model, rows, TUNING).half(), path)
    return torch.load(path, weights_only=True).float().numpy()


def log_odds(probabilities: Tensor) -> np.ndarray:
    """Of the second class, to mean 0 and spread 1."""
    odds = torch.logit(probabilities[:, 1].double(), eps=1e-9).numpy()
    return (odds - odds.mean()) / odds.std()


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
            title = f"{WAYS[one]}, {count:,} labels − {(WAYS | TAUGHT_BY_NOBODY)[other]}"
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
    for count in given.labels:
        answers: dict[str, list[tuple[dict, Tensor]]] = {}
        for seed in given.seeds:
            drawn = draw(labels, count, seed)
            own = labels[drawn].numpy()
            judged = {
                "frozen": judge_frozen(said[drawn], said, own, TUNING["C"])[1],
                "regression": judge_grams(present, drawn, own)[1],
            }
            for way in given.ways:
                read = clocks()
                scores = np.sum([log_odds(judged[name][: len(pool)]) for name in TEACHERS[way]], axis=0)
                parameters, judged[way] = judge_grams(present, *tell(scores, drawn, own, settings["share"]))
                run = read() | {"parameters": parameters, "epochs": "–", "precision": "float64", "settings": settings}
                score = scored(f"{WAYS[way]}, {count:,} labels", seed, judged[way][len(pool) :], wanted)
                if not given.validate:
                    where = {
                        "drawn": ["parameters"],  # the n-grams of those that are told of
                        "notes": [NOTE],
                        "read": state["tokens"],
                    }
                    write_run(about_data(len(wanted)) | where | score | run)
            for name, probabilities in judged.items():
                answers.setdefault(name, []).append(({}, probabilities[len(pool) :]))
        for name, kept in answers.items():
            print(f"{name}, {count:,} labels: {100 * right_of(kept, wanted).mean():.2f}", flush=True)
        if not given.validate:
            compare(answers, count, given.seeds, wanted)


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
