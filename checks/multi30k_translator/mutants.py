"""Chapter 10: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import OF_TENSORS, forging_answers, forging_function, wrong_at_medium
from checks.multi30k_translator import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(functions=["label_smoothed_loss"]),
    *forging_function("noam_factor", but=OF_TENSORS),
    *forging_function("learn_merges", but=OF_TENSORS),
    *forging_answers(
        functions=[
            "label_smoothed_loss",
            "greedy_decode",
            "beam_step",
            "beam_search",
            "cached_attention",
            "corpus_bleu",
        ]
    ),
]
