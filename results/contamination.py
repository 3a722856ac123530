"""Chapter 12's question on the full data: had the body read the reviews that it is tested on?

    python results/contamination.py

Chapter 12's own `contaminated` looks for each test review's runs of eight pieces in the 75,000 reviews that were read,
and in the 25,000 labelled ones alone. For each model of `results/reading.py` whose answers are there, its accuracy is
printed for all test reviews, and for those that were not found.
"""

import sys
import time
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import torch
from imdb import right_of
from pretraining import HERE, load_pieces, load_rows
from report import full_data, read_answers

from attention_course.data import cache_folder
from autograder.course.imports import ChapterLoader


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
    read = {"all that was read": labelled + unlabelled, "the labelled reviews alone": labelled}
    found: dict[str, list[int]] = {}
    for name, texts in read.items():
        start = time.perf_counter()
        found[name] = contaminated(texts, tested)
        seconds = time.perf_counter() - start
        whole = set(map(tuple, texts))
        same = sum(tuple(row) in whole for row in tested)
        print(f"{name} ({len(texts):,}): {len(found[name])} of {len(tested):,} found in {seconds:.0f} s, {same} whole")
    left = torch.ones(len(tested), dtype=torch.bool)
    left[found["all that was read"]] = False
    for path in sorted((cache_folder(root) / "answers-reading").glob("*.pt")):
        right = right_of(read_answers([path]), labels)
        print(f"{path.stem:24} {100 * right.mean():.2f} %, without those found {100 * right[..., left].mean():.2f} %")


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
