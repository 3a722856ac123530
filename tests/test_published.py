"""Wrong answers that people published, as files of notebooks and repositories show them: each has its true cause named.

Each is a mutant of its chapter, so that `tests/test_mutants.py` proves on it that the message says what stands here.
"""

import pytest

from autograder.course import proof
from autograder.course.curriculum import find_course

COURSE = find_course()
# (exercise, what was published, the title of the mutant, the cause that the message names)
PUBLISHED = [
    ("normalized_dot_product", "softmax over an implicit dim", "a softmax without a dimension", "without a `dim`"),
    ("query_key_weights", "softmax over an implicit dim", "softmax without a dimension", "runs over the batch"),
    ("query_key_weights", "a boolean mask added to the scores", "the boolean mask added", "mask is added"),
    ("query_key_weights", "-1e10 where a row is empty", "filled with -1e10", "-1e10"),
    ("query_key_weights", "-1e10 added where a row is empty", "-1e10 added where it is blocked", "-1e10"),
    ("query_key_weights", "dropout inside the weights", "dropout inside", "dropout inside"),
    ("scaled_dot_product_attention", "dropout inside attention", "dropout", "dropout inside"),
    (
        "is_permutation_equivariant",
        "`(a - b).max() < 1e-3`",
        "the largest difference without its absolute value",
        "all differences of the two sides",
    ),
    ("sinusoidal_encoding", "row 0 left at zero", "row 0 left zero", "row 0 was never filled in"),
    ("sinusoidal_encoding", "the cosine written to `0::2` again", "cosines over the sines", "written over the sines"),
    ("sinusoidal_encoding", "code for an even `dim` alone", "even dims only", "one sine more than it has cosines"),
    ("sinusoidal_encoding", "base 1000", "base 1000", "the base is 1000"),
    ("sinusoidal_encoding", "base 9999", "base 9999", "the base is 9999"),
    ("sinusoidal_encoding", "`range(max_len - 1)`", "the last position left out", "the last row was never filled in"),
    ("LayerNorm", "the unbiased std, undefined for a dim of 1", "the published std", "divides by d - 1"),
    ("LayerNorm", "one mean for the whole batch", "over the whole tensor", "over the whole tensor"),
    ("masked_mean", "float16 comes back as float32", "half comes back as float32", "torch.float16"),
    ("Seq2Seq", "`target[0]` for the first tokens", "a sentence for the first tokens", "a row of `target`"),
    ("Seq2Seq", "`target[t]` for the true tokens", "a sentence for the true tokens", "a row of `target`"),
    ("label_smoothed_loss", "ε/(V - 1)", "spread over the wrong tokens only", "divided by V - 1"),
    ("label_smoothed_loss", "ε/(V - 2)", "nothing for the padding token", "divided by V - 2"),
    ("noam_factor", "step + 1", "a step too far", "1 is added to `step`"),
    ("noam_factor", "constant after the warm-up", "constant afterwards", "it stays the same"),
    ("greedy_decode", "`.item()` on a batch", "one sentence at a time", "a whole batch of them"),
    ("greedy_decode", "the device lost", "the target made on the CPU", "made on the CPU"),
    ("beam_search", "the device lost", "tokens made on the CPU", "made on the CPU"),
    ("beam_search", "sum / length ** 0.7", "another penalty", "divided by length ** length_penalty"),
    ("beam_search", "sum / length", "divided by the length", "divided by the length"),
    ("beam_search", "another default penalty", "another default", "the default of `length_penalty`"),
    ("beam_search", "goes on past the end", "goes on past eos", "goes on past its `eos_id`"),
    ("beam_search", "prefers what has ended", "prefers what has ended", "is preferred to all that have not"),
    ("beam_search", "probabilities added", "probabilities added up", "probabilities are added up"),
    ("cached_attention", "√dim for √(dim / heads)", "scaled by all features", "divided by √d: in a head"),
    ("corpus_bleu", "one bag for all n", "one bag for all lengths", "in one bag"),
    ("corpus_bleu", "1 added to each count", "one added to every count", "1 is added to all counts"),
    ("corpus_bleu", "short pairs skipped", "short pairs skipped", "fewer than four tokens are skipped"),
    ("corpus_bleu", "sets of n-grams", "sets of n-grams", "each different n-gram counts once"),
]


@pytest.mark.parametrize(("exercise", "published", "title", "cause"), PUBLISHED)
def test_the_true_cause_is_on_record(exercise, published, title, cause):
    [chapter] = [c for c in COURSE.chapters if exercise in {e.name for e in c.exercises}]
    says = [a.says for a in proof.answers(chapter) if (a.exercise, a.title) == (exercise, title)]
    assert says and all(one and cause in one for one in says), published
