"""Chapter 04: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import (
    OF_TENSORS,
    forging_answers,
    forging_dropout,
    forging_function,
    forging_learning,
    wrong_at_medium,
)
from checks.multi_head_attention import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(functions=["split_heads"]),
    # Rounded weights are as many as before.
    *forging_function("count_parameters", but=(*OF_TENSORS, "it rounds its arguments and works on those")),
    *forging_dropout("MultiHeadAttention"),
    *forging_learning("NarrowSelfAttention", "MultiHeadAttention"),
    *forging_answers(
        classes=["NarrowSelfAttention", "MultiHeadAttention"],
        functions=["split_heads", "merge_heads", "copy_into_torch"],
    ),
]
