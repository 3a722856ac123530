"""Chapter 03: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check or are made from each other.
"""

from textwrap import indent

from autograder.answers import Answer, read_answers
from autograder.mistakes import Mistake
from checks.forgers import OF_TENSORS, forging_function, wrong_at_medium
from checks.queries_keys_values import mistakes
from checks.queries_keys_values.mistakes import diagnose

# An answer to `diagnose`: inputs, then for each fault whether the weights are what it makes of them.
_INPUTS = """draw = torch.Generator().manual_seed(1)
queries, keys, values = (torch.randn(2, n, d, generator=draw) for n, d in ((3, 4), (5, 4), (5, 6)))
keys[..., 0] = keys[..., 0].abs() + 1
queries[:, 0] = torch.tensor([-600.0, 0, 0, 0])
mask = torch.tensor([True, True, False, True, True])
"""
_JUDGED = """
def weights_of(fault, size=1):
    turned = keys.reshape(2, keys.shape[2], keys.shape[1]) if fault == "view" else keys.mT
    scores = queries @ turned / (size if fault == "root" else queries.shape[2]) ** 0.5
    blocked = ~mask.expand(scores.shape)
    if fault == "fill":
        return scores.masked_fill(blocked, 0.0).softmax(-1)
    scores = scores.masked_fill(blocked, torch.finfo(scores.dtype).min)
    if fault == "rows":
        e = (scores - scores.amax((1, 2), keepdim=True)).exp() * ~blocked
        return e / e.sum(-1, keepdim=True).clamp(min=1e-38)
    return scores.softmax(1 if fault == "axis" else 2).masked_fill(blocked, 0.0)

_, weights = attention(queries, keys, values, mask)
for fault in ("none", "fill", "axis", "view", "rows"):
    if torch.allclose(weights, weights_of(fault), atol=1e-5):
        return fault
sizes = [size for size in range(1, 36) if size != keys.shape[2]]
return "root" if any(torch.allclose(weights, weights_of("root", size), atol=1e-5) for size in sizes) else "none"
"""


def _blind(*changes: tuple[str, str]) -> str:
    """The answer with inputs that do not show a fault."""
    text = _INPUTS
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text + _JUDGED


# What needs no look at the weights, if a name among what the function holds tells.
_READS = """
held = [cell.cell_contents for cell in attention.__closure__ or ()]
return next((text for text in held if isinstance(text, str)), "none")
"""

# Nor what needs none, if the lines on which its parts were written tell.
_COUNTS_LINES = """
own = attention.__code__.co_firstlineno
held = dict(zip(attention.__code__.co_freevars, [cell.cell_contents for cell in attention.__closure__]))
turned, sized, weighed = (held[part].__code__.co_firstlineno - own for part in ("turn", "size", "weigh"))
if turned == -21 or -17 < sized < 0:
    return "view" if turned == -21 else "root"
return {-7: "fill", -6: "axis", -5: "rows"}.get(weighed, "none")
"""

_SQUARE = ("((3, 4), (5, 4), (5, 6))", "((4, 4), (5, 4), (5, 6))")
_ALL_SIZES = "sizes = [size for size in range(1, 36) if size != keys.shape[2]]"
_DIAGNOSES = [
    (
        "columns for anything odd",
        diagnose.CONFUSES,
        (_INPUTS + _JUDGED).replace("        return fault", '        return fault if fault == "none" else "axis"'),
    ),
    ("a mask that blocks nothing", diagnose.MISSES_FILL, _blind(("[True, True, False, True, True]", "[True] * 5"))),
    ("as many queries as features", diagnose.MISSES_ROOT, _blind(_SQUARE)),
    (
        "knows the root of n alone",
        diagnose.MISSES_ROOT,
        (_INPUTS + _JUDGED).replace(_ALL_SIZES, "sizes = [queries.shape[1]]"),
    ),
    (
        "vectors of one number, which no view can turn",
        diagnose.MISSES_VIEW,
        _blind(
            ("((3, 4), (5, 4), (5, 6))", "((3, 1), (5, 1), (5, 6))"),
            ("torch.tensor([-600.0, 0, 0, 0])", "-600.0"),
        ),
    ),
    ("no low row", diagnose.MISSES_ROWS, _blind(("-600.0", "-6.0"))),
]


def _diagnose(title: str, mistake: Mistake | None, body: str) -> Answer:
    return Answer("diagnose", title, mistake, source="def diagnose(attention):\n" + indent(body.strip("\n"), "    "))


_WRONG, _RIGHT = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *(_diagnose(*wrong) for wrong in _DIAGNOSES),
    *wrong_at_medium(functions=["padding_mask"]),
    *forging_function("diagnose", but=OF_TENSORS),
    _diagnose("reads what it closes over", diagnose.MISSES_AXIS, _READS),
    _diagnose("counts the lines of what it closes over", diagnose.MISSES_AXIS, _COUNTS_LINES),
    *forging_function("attention_in_tiles"),
    *forging_function("padding_mask"),
    *forging_function("query_key_weights"),
    *forging_function("scaled_dot_product_attention"),
    *forging_function("noun_finder", but=OF_TENSORS),
    *forging_function("causal_mask", but=OF_TENSORS),
]
VARIANTS = [*_RIGHT, _diagnose("compared with what each fault makes", None, _INPUTS + _JUDGED)]
