"""Chapter 06: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import forging_answers, forging_dropout
from checks.transformer_block import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *forging_dropout("FeedForward"),
    *forging_dropout("TransformerBlock", named=True),
    *forging_answers(classes=["LayerNorm", "FeedForward", "ConvFeedForward", "TransformerBlock"]),
]
