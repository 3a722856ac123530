"""Chapter 01: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import OF_TENSORS, forging_answers, forging_function, wrong_at_medium
from checks.weighted_averages import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(functions=["weighted_avg", "weighted_avg_einsum"]),
    *forging_answers(functions=["weighted_avg", "weighted_avg_einsum"]),
    *forging_function("window_weights", but=OF_TENSORS),
]
