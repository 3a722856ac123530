"""Chapter 12: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import OF_TENSORS, forging_answers, forging_function, forging_learning, wrong_at_medium
from checks.pretraining import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["ReviewClassifier", "LowRank"]),
    *forging_function("pack", but=OF_TENSORS),
    *forging_function("contaminated", but=OF_TENSORS),
    *forging_answers(classes=["ReviewClassifier", "LowRank"], functions=["mask_tokens"]),
    *forging_learning("ReviewClassifier", "LowRank"),
]
