"""The reviews and the captions as tokens in batches.

The one place that touches torchtext, which is no longer maintained: whoever replaces it changes this file alone. Texts
are cut into tokens once, by spaCy's rules; from then on they come from a cache in `data/full/cache`, which git ignores.
"""

import hashlib
import os
import random
from dataclasses import dataclass
from functools import cache
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torchtext import data, datasets

from attention_course.training import save

if TYPE_CHECKING:
    from spacy.tokenizer import Tokenizer

UNK, PAD, SOS, EOS = range(4)  # the first numbers of a captions' vocabulary


def in_a_hurry() -> bool:
    """Whether nbgrader runs this notebook, to validate it or to grade it: then little is read and trained."""
    return "NBGRADER_EXECUTION" in os.environ


def data_root(name: str) -> Path:
    """The folder that holds a data set, `data/full` if it is there, else `data/sample`.

    With `sample` in the environment variable `ATTENTION_DATA` it is always the sample.

    Args:
        name: "imdb" or "multi30k".

    Raises:
        FileNotFoundError: the working directory is not inside the course.
        ValueError: the environment variable says something else.
    """
    asked = os.environ.get("ATTENTION_DATA", "")
    if asked not in ("", "sample"):
        raise ValueError(f"ATTENTION_DATA is {asked!r}: it may be 'sample', or not be set")
    small = asked == "sample" or in_a_hurry()
    here = Path.cwd()
    for folder in (here, *here.parents):
        sample, full = folder / "data" / "sample", folder / "data" / "full"
        if (sample / name).is_dir():
            return full if (full / name).is_dir() and not small else sample
    raise FileNotFoundError(f"no data/sample/{name} in {here} or above: open the course's folder")


def cache_folder(root: Path) -> Path:
    """Where what takes long to make is kept, beside the full data; git ignores it."""
    return root.parent / "full" / "cache"


# ---- tokens


@cache
def _rules(language: str) -> "Tokenizer":
    import spacy  # takes a second, and where all texts are cut already nobody needs it

    return spacy.blank(language).tokenizer


def cut_german(text: str) -> list[str]:
    """The lower-case tokens of a German text, such as `["wie", "geht", "'s", "?"]`."""
    return [token.lower_ for token in _rules("de")(text)]


def cut_english(text: str) -> list[str]:
    """The lower-case tokens of an English text, such as `["is", "n't", "it", "?"]`."""
    return [token.lower_ for token in _rules("en")(text)]


@cache
def _cut_chunk(chunk: str) -> list[str]:
    return cut_english(chunk)


def cut_review(text: str) -> list[str]:
    """The lower-case tokens of a review, without the line breaks of web pages."""
    return [token for chunk in text.replace("<br />", " ").split() for token in _cut_chunk(chunk)]


# ---- reviews


def review_fields() -> tuple[data.Field, data.Field]:
    """How the columns of the reviews are treated: text, and label (0 is negative, 1 positive)."""
    text = data.Field(tokenize=cut_review, batch_first=True)
    label = data.Field(sequential=False, use_vocab=False, is_target=True)
    return text, label


def load_reviews(root: Path, text: data.Field, label: data.Field) -> tuple[data.Dataset, data.Dataset]:
    """The training and the test reviews.

    Args:
        root: the folder that holds `imdb`.
        text: field of the tokens.
        label: field of the labels.

    Returns:
        Two data sets. Each example has `text` (tokens), `label` (0 or 1) and `number`, its file's in its class: reviews
        of one film have neighbouring numbers.
    """
    kinds = [f"imdb/aclImdb/{split}/{kind}/*.txt" for split in ("train", "test") for kind in ("neg", "pos")]
    names = sorted(name for kind in kinds for name in glob(kind, root_dir=root))
    listing = [(Path(name).as_posix(), os.path.getsize(root / name)) for name in names]
    recipe = cut_review("Isn't it good?<br />No.")  # another tokenizer, another cache
    path = cache_folder(root) / f"reviews-{_key(listing, recipe)}.pt"
    if not path.exists():
        save(_pack_reviews(root, names), path)
    packed = torch.load(path, weights_only=True)
    return tuple(_unpack_reviews(packed, split, text, label) for split in ("train", "test"))


def _pack_reviews(root: Path, names: list[str]) -> dict:
    """The reviews as plain tensors: each different word once, then numbers."""
    words: dict[str, int] = {}
    packed: dict[str, dict[str, Any]] = {
        split: {"tokens": [], "lengths": [], "labels": [], "numbers": []} for split in ("train", "test")
    }
    for name in names:
        *_, split, label, file = Path(name).parts
        tokens = cut_review((root / name).read_text(encoding="utf-8"))
        part = packed[split]
        part["tokens"] += [words.setdefault(word, len(words)) for word in tokens]
        part["lengths"].append(len(tokens))
        part["labels"].append(int(label == "pos"))
        part["numbers"].append(int(file.partition("_")[0]))
    for part in packed.values():
        part["tokens"] = torch.tensor(part["tokens"], dtype=torch.int32)
    return packed | {"words": list(words)}


def _unpack_reviews(packed: dict, split: str, text: data.Field, label: data.Field) -> data.Dataset:
    part, words = packed[split], packed["words"]
    tokens = [words[i] for i in part["tokens"].tolist()]
    examples, start = [], 0
    for length, y, number in zip(part["lengths"], part["labels"], part["numbers"], strict=True):
        example = data.Example()
        example.text, example.label, example.number = tokens[start : start + length], y, number
        examples.append(example)
        start += length
    # An order that depends on no machine and does not begin with all that is negative.
    examples.sort(key=lambda e: (e.number, e.label))
    return data.Dataset(examples, [("text", text), ("label", label)])


@dataclass(frozen=True)
class Review:
    """A review as it was written, for those who cut it in their own way."""

    text: str
    """on one line, without the line breaks of web pages; upper and lower case"""
    label: int | None
    """0 is negative, 1 positive, None unknown"""
    number: int
    """its file's among those of its kind: reviews of one film have neighbouring numbers"""


def read_reviews(root: Path, split: str, labelled: bool = True) -> list[Review]:
    """The reviews of one split, ordered by number, then by label.

    Args:
        root: the folder that holds `imdb`.
        split: "train" or "test".
        labelled: False for those that nobody has judged; only "train" has them, and only in the full data.

    Raises:
        FileNotFoundError: there are none.
    """
    kinds = {"neg": 0, "pos": 1} if labelled else {"unsup": None}
    folder = root / "imdb" / "aclImdb" / split
    reviews = [
        Review(path.read_text(encoding="utf-8").replace("<br />", " "), label, int(path.name.partition("_")[0]))
        for kind, label in kinds.items()
        for path in (folder / kind).glob("*.txt")
    ]
    if not reviews:
        raise FileNotFoundError(f"no reviews in {folder}/{'|'.join(kinds)}: python data/download.py")
    return sorted(reviews, key=lambda review: (review.number, review.label or 0))


def hold_out_by_number(dataset: data.Dataset, fraction: float) -> tuple[data.Dataset, data.Dataset]:
    """The reviews without those of the last numbers, and those.

    Reviews of one film with the same label have neighbouring numbers, and the official test set has, but for a few,
    other films than the training set: a split that shares films and labels is kinder than the test. In the real
    collection those with the other label have other numbers: they are mostly kept, so that the names of a held-out
    film's people mislead, and this split is less kind than the test.

    Args:
        dataset: training reviews of `load_reviews`.
        fraction: how many of the numbers to hold back, between 0 and 1.
    """
    last = max(example.number for example in dataset.examples)
    fields = list(dataset.fields.items())
    held = [example.number > (1 - fraction) * last for example in dataset.examples]
    parts = [[e for e, h in zip(dataset.examples, held, strict=True) if h == late] for late in (False, True)]
    return tuple(data.Dataset(part, fields) for part in parts)


def review_batches(
    dataset: data.Dataset, tokens_in_a_batch: int, max_len: int, seed: int | None = None
) -> list[tuple[Tensor, Tensor]]:
    """Batches `(tokens (B, n), labels (B,))` of reviews of similar length; of a long one the last `max_len` tokens.

    Args:
        dataset: reviews whose text field has a vocabulary.
        tokens_in_a_batch: about how many, padding included.
        max_len: the longest text that is read.
        seed: shuffle with it; without one the order is always the same.
    """
    examples = []
    for e in dataset.examples:
        short = data.Example()
        short.text, short.label = e.text[-max_len:], e.label
        examples.append(short)
    random.seed(seed)
    iterator = data.BucketIterator(
        data.Dataset(examples, list(dataset.fields.items())),
        batch_size=tokens_in_a_batch,
        batch_size_fn=lambda new, count, so_far: _rectangle(len(new.text), count, so_far),
        sort_key=lambda e: len(e.text),
        train=seed is not None,
        sort_within_batch=True,
    )
    return [(tokens, labels) for tokens, labels in iterator]


# ---- captions


def caption_fields() -> tuple[data.Field, data.Field]:
    """How the two columns of the captions are treated: German, with lengths, and English."""
    ends = {"init_token": "<sos>", "eos_token": "<eos>", "batch_first": True}
    german = data.Field(tokenize=cut_german, include_lengths=True, **ends)
    english = data.Field(tokenize=cut_english, is_target=True, **ends)
    return german, english


def load_captions(root: Path, german: data.Field, english: data.Field) -> tuple[data.Dataset, ...]:
    """The captions as data sets `(train, valid, test)` of pairs `src`, `trg`, in the order of the files.

    Args:
        root: the folder that holds `multi30k`.
        german: field of the source.
        english: field of the target.
    """
    fields = [("src", german), ("trg", english)]
    texts = [(file.name, file.read_text(encoding="utf-8")) for file in sorted(root.glob("multi30k/*.[de][en]"))]
    probe = [german.preprocess("Wie geht's? Na ja."), english.preprocess("It isn't bad.")]
    path = cache_folder(root) / f"captions-{_key(texts, probe)}.pt"
    if not path.exists():
        splits = datasets.Multi30k.splits((".de", ".en"), (german, english), root=str(root))
        # A caption is one line of a file, so that no token holds a line break.
        save([[("\n".join(e.src), "\n".join(e.trg)) for e in split] for split in splits], path)
    loaded = []
    for pairs in torch.load(path, weights_only=True):
        tokens = [[side.split("\n") for side in pair] for pair in pairs]
        loaded.append(data.Dataset([data.Example.fromlist(t, fields) for t in tokens], fields))
    return tuple(loaded)


def caption_lines(root: Path, name: str) -> list[str]:
    """The captions of one file as they were written.

    Args:
        root: the folder that holds `multi30k`.
        name: such as "train.de" or "val.en".
    """
    return (root / "multi30k" / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def caption_batches(
    dataset: data.Dataset, tokens_in_a_batch: int, seed: int | None = None
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Batches `(source (B, m), lengths (B,), target (B, n))` of similar length.

    Args:
        dataset: captions whose fields have vocabularies.
        tokens_in_a_batch: about how many in the longer language, padding included.
        seed: shuffle with it; without one the order is always the same.
    """
    if seed is not None:
        random.seed(seed)
    iterator = data.BucketIterator(
        dataset,
        batch_size=tokens_in_a_batch,
        batch_size_fn=lambda new, count, so_far: _rectangle(max(len(new.src), len(new.trg)) + 2, count, so_far),
        sort_key=lambda e: (len(e.src), len(e.trg)),
        train=seed is not None,
        sort_within_batch=True,
    )
    return [(source, lengths, target) for (source, lengths), target in iterator]


def _rectangle(length: int, count: int, so_far: float) -> float:
    """Tokens of a batch, padding included, with one of this length as the last of `count`."""
    longest_before = so_far / max(count - 1, 1)
    return count * max(longest_before, length)


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
