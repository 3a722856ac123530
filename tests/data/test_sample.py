"""The shipped sample: torchtext reads it, its splits are clean, and small models can learn from it."""

import re
from collections import Counter
from pathlib import Path

import pytest
from torchtext import data, datasets

from attention_course.data import cut_english, cut_german

DATA = Path(__file__).parents[2] / "data"
SAMPLE = DATA / "sample"
SPLITS = ("train", "val", "test2016")


def lines(split: str, language: str) -> list[str]:
    return (SAMPLE / "multi30k" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()


def reviews(split: str) -> list[tuple[str, str]]:
    folder = SAMPLE / "imdb" / "aclImdb" / split
    return [(path.read_text(encoding="utf-8"), path.parent.name) for path in sorted(folder.glob("*/*.txt"))]


@pytest.fixture(scope="module")
def tokens():
    """Each split's captions in lower-case tokens."""
    cuts = {"de": cut_german, "en": cut_english}
    return {(split, key): [cut(line) for line in lines(split, key)] for key, cut in cuts.items() for split in SPLITS}


def test_torchtext_reads_the_captions():
    german, english = data.Field(tokenize=str.split), data.Field(tokenize=str.split)
    splits = datasets.Multi30k.splits((".de", ".en"), (german, english), root=str(SAMPLE))
    assert [len(split) for split in splits] == [373, 40, 40]


def test_torchtext_reads_the_reviews():
    text, label = data.Field(tokenize=str.split), data.Field(sequential=False)
    train, test = datasets.IMDB.splits(text, label, root=str(SAMPLE))
    assert Counter(example.label for example in train) == {"pos": 150, "neg": 150}
    assert Counter(example.label for example in test) == {"pos": 50, "neg": 50}


def test_captions_are_pairs_and_the_splits_share_none():
    everything = {language: [line for split in SPLITS for line in lines(split, language)] for language in ("de", "en")}
    assert len(everything["de"]) == len(everything["en"])
    for sentences in everything.values():
        assert len(set(sentences)) == len(sentences)
        assert all(re.fullmatch(r"[A-ZÄÖÜ][A-Za-zÄÖÜäöüßé ,]+\.", sentence) for sentence in sentences)


@pytest.mark.parametrize("language", ["de", "en"])
def test_vocabulary_is_small_and_recurs(tokens, language):
    seen = Counter(token for sentence in tokens["train", language] for token in sentence)
    assert 300 <= len(seen) <= 450
    assert sum(count >= 3 for count in seen.values()) >= 0.98 * len(seen)
    held_out = tokens["val", language] + tokens["test2016", language]
    assert {token for sentence in held_out for token in sentence} <= set(seen)


def test_reviews_are_short_distinct_and_labelled_by_their_rating():
    for split in ("train", "test"):
        for path in (SAMPLE / "imdb" / "aclImdb" / split).glob("*/*.txt"):
            rating = int(re.fullmatch(r"\d+_(\d+)", path.stem)[1])
            assert rating in (range(7, 11) if path.parent.name == "pos" else range(1, 5))
            assert 25 <= len(path.read_text(encoding="utf-8").split()) <= 70
    texts = [text for split in ("train", "test") for text, _ in reviews(split)]
    assert len(set(texts)) == len(texts)
    assert not any("\n" in text for text in texts)  # torchtext reads the first line only


def test_reviews_can_be_learned():
    # Imported here, as every process that runs tests reads this file.
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    train, test = reviews("train"), reviews("test")
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(*zip(*train, strict=True))
    assert 0.8 <= model.score(*zip(*test, strict=True)) <= 0.9


@pytest.mark.skipif(not (DATA / "full" / "multi30k").is_dir(), reason="the full data have not been downloaded")
@pytest.mark.parametrize("language", ["de", "en"])
def test_no_caption_is_taken_from_multi30k(language):
    def normal(sentence: str) -> str:
        return " ".join(re.findall(r"\w+", sentence.lower()))

    full = {
        normal(sentence)
        for path in (DATA / "full" / "multi30k").glob(f"*.{language}")
        for sentence in path.read_text(encoding="utf-8").splitlines()
    }
    assert not full & {normal(line) for split in SPLITS for line in lines(split, language)}
