"""Chapter 10's BLEU, and the one its hidden tests compare with, equal sacreBLEU's."""

import random

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.course.curriculum import find_course
from autograder.source import read_definitions
from checks.multi30k_translator.hidden import _FIXED_CORPORA, _bleu, _corpus

_tokens = st.lists(st.sampled_from(["a", "b", "c", "the", "."]), max_size=9)
_pairs = st.lists(st.tuples(_tokens, _tokens.filter(bool)), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def corpus_bleu():
    """The function of the solved chapter."""
    course = find_course()
    (chapter,) = course.select(["10"])
    names = ("import math", "from collections", "def ngrams", "def corpus_bleu")
    parts = [p for p in read_definitions(course.solution(chapter)).split("\n\n\n") if p.startswith(names)]
    namespace: dict = {}
    exec("\n\n\n".join(parts), namespace)
    return namespace["corpus_bleu"]


def reference_bleu(hypotheses: list[list[str]], references: list[list[str]]) -> float:
    lines = [" ".join(tokens) for tokens in hypotheses]
    right = [" ".join(tokens) for tokens in references]
    return sacrebleu.corpus_bleu(lines, [right], tokenize="none", smooth_method="none", force=True).score


def expect_equal(corpus_bleu, hypotheses: list[list[str]], references: list[list[str]]) -> None:
    expected = reference_bleu(hypotheses, references)
    assert corpus_bleu(hypotheses, references) == pytest.approx(expected, abs=1e-6)
    assert _bleu(hypotheses, references) == pytest.approx(expected, abs=1e-6)


@settings(max_examples=1000, deadline=None)
@given(pairs=_pairs)
def test_any_corpus(corpus_bleu, pairs):
    hypotheses, references = map(list, zip(*pairs, strict=True))
    expect_equal(corpus_bleu, hypotheses, references)


def test_corpora_like_translations(corpus_bleu):
    random.seed(0)
    for number in range(2000):
        words, longest = (("ab", 7), ("abcde", 12), ("abcdefghijklmnopqrst", 25))[number % 3]
        expect_equal(corpus_bleu, *_corpus(1 + number % 7, words, longest, (0.1, 0.3, 0.7)[number // 3 % 3]))


@pytest.mark.parametrize("name", list(_FIXED_CORPORA))
def test_one_difficulty(corpus_bleu, name):
    expect_equal(corpus_bleu, *_FIXED_CORPORA[name])
