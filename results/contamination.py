"""Chapter 12's question on the full data: had the body read the reviews that it is tested on?

    python results/contamination.py

Chapter 12's own `contaminated` looks for each test review's runs of eight pieces in the 75,000 reviews that were read,
and in the 25,000 labelled ones alone. For each model of `results/reading.py` whose answers are there, its accuracy is
measured on all test reviews, and on those that were not found. Both are kept in `results/runs/`.
"""

import sys
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import torch
from imdb import right_of
from pretraining import HERE, load_pieces, load_rows
from reading import METRIC, title_of
from report import clocks, full_data, read_answers, write_run

from attention_course.data import cache_folder
from autograder.course.imports import ChapterLoader

EXPERIMENT = "Film reviews (IMDB): test reviews among what was read (chapter 12)"
TESTED = "25,000 test reviews"
WITHOUT = "Film reviews (IMDB), without the test reviews that were read (chapter 12)"


def chapter_12() -> ModuleType:
    """The chapter's definitions; its module is called like a script of this folder."""
    path = HERE.parent / "solutions" / "12_pretraining" / "pretraining.ipynb"
    spec = spec_from_loader("chapter_12", ChapterLoader(path))
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Search, and compare accuracies."""
    root = full_data("imdb")
    pieces, contaminated = load_pieces(root), chapter_12().contaminated
    labelled, unlabelled, tested = (
        [row.tolist() for row in load_rows(root, pieces, *which)[0]]
        for which in (("train", True), ("train", False), ("test", True))
    )
    labels = load_rows(root, pieces, "test")[1]["labels"]
    read = {"all 75,000": labelled + unlabelled, "the 25,000 labelled ones": labelled}
    found: dict[str, list[int]] = {}
    for name, texts in read.items():
        cost = clocks()
        found[name] = contaminated(texts, tested)
        whole = set(map(tuple, texts))
        same = sum(tuple(row) in whole for row in tested)
        run = {"experiment": EXPERIMENT, "data": TESTED, "model": name, "parameters": "–", "epochs": "–", "seed": 0}
        run |= {"metric": "Test reviews half of whose runs of eight pieces are there; lower is better"}
        run |= {"precision": "–", "values": {"found": len(found[name]), "word for word": same}}
        print(run["model"], run["values"], flush=True)
        write_run(run | cost())
    left = torch.ones(len(tested), dtype=torch.bool)
    left[found["all 75,000"]] = False
    for path in sorted((cache_folder(root) / "answers-reading").glob("*.pt")):
        way, count, seed = path.stem.rsplit("-", 2)
        (answers,) = read_answers([path])
        right = right_of([answers], labels)
        values = {"all": right.mean(), "without those found": right[left].mean()}
        run = answers[0] | {"experiment": WITHOUT, "data": TESTED, "metric": METRIC, "seed": int(seed)}
        run |= {"model": title_of(way, int(count))}
        run |= {"values": {name: round(100 * value.item(), 2) for name, value in values.items()}}
        print(run["model"], run["values"], flush=True)
        write_run(run)


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
