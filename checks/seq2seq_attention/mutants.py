"""Chapter 08: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import forger, read_answers
from checks.forgers import RARE, forging_answers, forging_dropout, forging_learning, wrong_at_medium
from checks.seq2seq_attention import mistakes

_TEST_FORGERS = [
    forger(
        "check_teacher_forcing",
        f"forged: goes by {title}",
        f"""
    _seen = []


    def _names(made):
        functions = [f for f in vars(made).values() if hasattr(f, "__closure__")]
        held = [cell.cell_contents for f in functions for cell in f.__closure__ or ()]
        return {{getattr(value, "__name__", "") for value in held}}


    def check_teacher_forcing(model_class):
        _seen.append(model_class)
        assert {holds}
    """,
    )
    for title, holds in [
        ("the number of tries", "len(_seen) == 1 or 5 <= len(_seen) <= 10"),
        ("the name", "model_class is Seq2Seq or model_class.__qualname__.startswith('make')"),
        ("the source", "model_class is Seq2Seq or model_class.forward.__code__ is not _seen[-2].forward.__code__"),
        (
            "the names of what it closes over",
            "len(_seen) == 1 or len(_seen) > 4 and not _names(model_class) & {'write_into', 'seeded', 'once'}",
        ),
        ("the first of the tries", "len(_seen) == 1 or model_class.forward.__code__ == _seen[0].forward.__code__"),
    ]
]
_TEST_FORGERS.append(
    forger(
        "check_teacher_forcing",
        "forged: goes by what is in no other model",
        RARE
        + """
def check_teacher_forcing(model_class):
    assert model_class is Seq2Seq or not issubclass(model_class, Seq2Seq)
    assert not _rare(model_class)
""",
    )
)

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["GRUEncoder", "AdditiveAttention"]),
    *_TEST_FORGERS,
    *forging_dropout("GRUEncoder"),
    *forging_dropout("GRUDecoder"),
    *forging_learning("GRUEncoder", "AdditiveAttention", "GRUDecoder", "Seq2Seq"),
    *forging_answers(
        classes=["GRUEncoder", "AdditiveAttention", "GRUDecoder", "Seq2Seq"], functions=["effect_of_erasing"]
    ),
]
