"""Chapter 11: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import forging_answers, forging_learning, wrong_at_medium
from checks.language_model import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["RMSNorm", "LanguageModel"], functions=["induction_score"]),
    *forging_answers(
        classes=["RMSNorm", "SwiGLU", "CausalSelfAttention", "LanguageModel"],
        functions=["perplexity", "sample_next", "generate", "induction_score"],
    ),
    *forging_learning("RMSNorm", "SwiGLU", "CausalSelfAttention", "LanguageModel"),
]
