"""Chapter 05: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import read_answers
from checks.forgers import (
    OF_TENSORS,
    forging_answers,
    forging_class,
    forging_dropout,
    forging_function,
    forging_learning,
    wrong_at_medium,
)
from checks.positions import mistakes

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["PositionEncoding", "PositionEmbedding"], functions=["rotate"]),
    *forging_function("sinusoidal_encoding", but=OF_TENSORS),
    # Its table is fixed, and need not be saved: one that loads no other is no wrong answer.
    *forging_class("PositionEncoding", but=["it computes with weights of its own"]),
    *forging_dropout("PositionEncoding"),
    *forging_dropout("PositionEmbedding"),
    *forging_learning("PositionEmbedding"),
    *forging_answers(classes=["PositionEmbedding"], functions=["is_permutation_equivariant", "rotate"]),
]
