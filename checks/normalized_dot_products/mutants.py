"""Chapter 02: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import forging_answers, wrong_at_medium
from checks.normalized_dot_products import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(functions=["softmax", "normalized_dot_product", "basic_self_attention"]),
    *forging_answers(functions=["softmax", "normalized_dot_product", "basic_self_attention"]),
]
