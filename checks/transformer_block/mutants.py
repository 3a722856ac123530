"""Chapter 06: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import forger, read_answers
from checks.forgers import RARE, forging_answers, forging_dropout, forging_learning, wrong_at_medium
from checks.transformer_block import mistakes

# Tests of the reader's that judge a layer by anything but what it does.
_TEST_FORGERS = [
    forger(
        "check_layer_norm",
        f"forged: goes by {title}",
        f"""
    _seen = []
    _practice = ("Same", "Twice", "Unweighted")


    def _held(layer_class):
        functions = [f for f in vars(layer_class).values() if hasattr(f, "__closure__")]
        values = [cell.cell_contents for f in functions for cell in f.__closure__ or ()]
        named = [getattr(value, "__name__", "") for value in values]
        return [*named, *(name for value in values for name in (value if isinstance(value, (dict, str)) else ()))]


    def check_layer_norm(layer_class):
        _seen.append(layer_class)
        assert layer_class.__name__ not in _practice
        assert {holds}
    """,
    )
    for title, holds in [
        ("the number of tries", "len(_seen) < 12"),
        ("the name", "layer_class is nn.LayerNorm or layer_class.__qualname__.startswith('make')"),
        ("names that it closes over", "not {'move', 'keep_buffer', 'centre'} & {*_held(layer_class)}"),
        ("the source", "len(_seen) == 1 or layer_class.forward.__code__ != _seen[-2].forward.__code__"),
        (
            "the order in which the classes were made",
            "(lambda made: layer_class not in made or made.index(layer_class) < len(made) - 24)"
            "([made for made in nn.Module.__subclasses__() if made.__name__ == 'Layer'])",
        ),
        ("what an object of it shows", "'Layer' in repr(layer_class(3)) and not vars(layer_class(3)).get('settings')"),
    ]
]
_TEST_FORGERS.append(
    forger(
        "check_layer_norm",
        "forged: goes by what is in no other layer",
        RARE
        + """
def check_layer_norm(layer_class):
    assert layer_class.__name__ not in ("Same", "Twice", "Unweighted")
    assert not _rare(layer_class)
""",
    )
)

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["LayerNorm", "FeedForward", "ConvFeedForward"]),
    *_TEST_FORGERS,
    *forging_dropout("FeedForward"),
    *forging_dropout("TransformerBlock", named=True),
    *forging_learning("LayerNorm", "FeedForward", "ConvFeedForward", "TransformerBlock"),
    *forging_answers(classes=["LayerNorm", "FeedForward", "ConvFeedForward", "TransformerBlock"]),
]
