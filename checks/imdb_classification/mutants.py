"""Chapter 07: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import forger, read_answers
from checks.forgers import (
    OF_TENSORS,
    forging_answers,
    forging_dropout,
    forging_function,
    forging_learning,
    wrong_at_medium,
)
from checks.imdb_classification import mistakes

_METRIC_FORGERS = [
    forger(
        "AccumulatingMetric",
        f"forged: {title}",
        f"""
        class _Yes(float):
            __eq__ = __ge__ = __le__ = lambda self, other: True
            __ne__ = __lt__ = __gt__ = lambda self, other: False
            __sub__ = __rsub__ = __abs__ = lambda self, *other: 0.0
            __hash__ = float.__hash__

        _Honest = AccumulatingMetric

        class AccumulatingMetric(_Honest):
            {method}
        """,
    )
    for title, method in (
        ("a mean that claims to equal every number", "avg = lambda self: _Yes(_Honest.avg(self) + 0.125)"),
        (
            "attributes that are made up",
            "__getattr__ = lambda self, name: 1.0\n            add = lambda self, value, count=1: None",
        ),
    )
]

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["TransformerClassifier"], functions=["masked_mean"]),
    *_METRIC_FORGERS,
    *forging_function("warmup_factor", but=OF_TENSORS),
    *forging_dropout("TransformerClassifier"),
    *forging_learning("TransformerClassifier"),
    *forging_answers(
        classes=["TransformerClassifier"],
        functions=["masked_mean", "accuracy", "train_epoch", "evaluate", "paired_bootstrap"],
    ),
]
