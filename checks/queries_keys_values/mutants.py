"""Chapter 03: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from textwrap import indent

from autograder.answers import Answer, edit, flag_published, mutant, mutants, variant
from autograder.checks import Common, Mistake, Unexplained
from checks.forgers import OF_TENSORS, forging_function
from checks.queries_keys_values.mistakes import (
    attention_in_tiles,
    causal_mask,
    diagnose,
    noun_finder,
    padding_mask,
    query_key_weights,
    scaled_dot_product_attention,
)


def _padding(title: str, mistake: Mistake, body: str) -> Answer:
    return mutant("padding_mask", title, mistake, f"def padding_mask(tokens, pad_id):\n    {body}")


def _causal(title: str, mistake: Mistake, body: str) -> Answer:
    return mutant("causal_mask", title, mistake, f"def causal_mask(seq_len):\n    {body}")


_NO_MASK = "    if mask is None:\n        return scores.softmax(dim=-1)\n"


def _weights(title: str, mistake: Mistake, scores: str, masked: str | None = None) -> Answer:
    """A wrong answer to `query_key_weights`, from a line for the scores and one for the masked weights."""
    masked = masked or (
        "return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1).masked_fill(~mask, 0.0)"
    )
    source = f"def query_key_weights(queries, keys, mask=None):\n    scores = {scores}\n{_NO_MASK}    {masked}"
    return mutant("query_key_weights", title, mistake, source)


_SCORES = "queries @ keys.mT / math.sqrt(queries.shape[-1])"


def _attention(title: str, mistake: Mistake, body: str) -> Answer:
    source = f"def scaled_dot_product_attention(queries, keys, values, mask=None):\n    {body}"
    return mutant("scaled_dot_product_attention", title, mistake, source)


def _noun(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("noun_finder", title, mistake, *edits)


def _tiles(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("attention_in_tiles", title, mistake, *edits)


# An answer to `diagnose`: inputs, then for each fault whether the weights are what it makes of them.
_INPUTS = """draw = torch.Generator().manual_seed(1)
queries, keys, values = (torch.randn(2, n, d, generator=draw) for n, d in ((3, 4), (5, 4), (5, 6)))
keys[..., 0] = keys[..., 0].abs() + 1
queries[:, 0] = torch.tensor([-600.0, 0, 0, 0])
mask = torch.tensor([True, True, False, True, True])
"""
_JUDGED = """
def weights_of(fault):
    turned = keys.reshape(2, keys.shape[2], keys.shape[1]) if fault == "view" else keys.mT
    scores = queries @ turned / (queries.shape[1] if fault == "root" else queries.shape[2]) ** 0.5
    blocked = ~mask.expand(scores.shape)
    if fault == "fill":
        return scores.masked_fill(blocked, 0.0).softmax(-1)
    scores = scores.masked_fill(blocked, torch.finfo(scores.dtype).min)
    if fault == "rows":
        e = (scores - scores.amax((1, 2), keepdim=True)).exp() * ~blocked
        return e / e.sum(-1, keepdim=True).clamp(min=1e-38)
    return scores.softmax(1 if fault == "axis" else 2).masked_fill(blocked, 0.0)

_, weights = attention(queries, keys, values, mask)
for fault in ("none", "fill", "root", "axis", "view", "rows"):
    if torch.allclose(weights, weights_of(fault), atol=1e-5):
        return fault
return "none"
"""


def _blind(*changes: tuple[str, str]) -> str:
    """The answer with inputs that do not show a fault."""
    text = _INPUTS
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text + _JUDGED


_SQUARE = ("((3, 4), (5, 4), (5, 6))", "((4, 4), (5, 4), (5, 6))")
_DIAGNOSE = [
    ("nothing returned", Common.NO_RETURN, "attention(torch.ones(1, 2, 3), torch.ones(1, 2, 3), torch.ones(1, 2, 3))"),
    ("True for a fault", diagnose.NO_NAME, "return True"),
    ("another name", diagnose.NO_NAME, 'return "fine"'),
    ("always right", diagnose.MISSES_AXIS, 'return "none"'),
    ("always a fault", diagnose.ACCUSES, 'return "fill"'),
    (
        "columns for anything odd",
        diagnose.CONFUSES,
        (_INPUTS + _JUDGED).replace("        return fault", '        return fault if fault == "none" else "axis"'),
    ),
    ("a mask that blocks nothing", diagnose.MISSES_FILL, _blind(("[True, True, False, True, True]", "[True] * 5"))),
    ("as many queries as features", diagnose.MISSES_ROOT, _blind(_SQUARE)),
    (
        "keys that are their own transpose",
        diagnose.MISSES_VIEW,
        _blind(
            ("((3, 4), (5, 4), (5, 6))", "((3, 4), (4, 4), (4, 6))"),
            ("keys[..., 0].abs() + 1", "3.0\nkeys = keys + keys.mT"),
            ("[True, True, False, True, True]", "[True, True, False, True]"),
        ),
    ),
    ("no low row", diagnose.MISSES_ROWS, _blind(("-600.0", "-6.0"))),
    (
        "sums alone",
        diagnose.MISSES_FILL,
        """
        _, weights = attention(torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6), None)
        return "none" if torch.allclose(weights.sum(-1), torch.ones(2, 3)) else "axis"
        """,
    ),
]


_LOWEST = "torch.finfo(scores.dtype).min"
_RIGHT_FILL = f"scores.masked_fill(~mask, {_LOWEST})"


def _indented(body: str) -> str:
    return "def diagnose(attention):\n" + indent(body, "    ")


MUTANTS = [
    # padding_mask
    _padding("nothing returned", Common.NO_RETURN, "(tokens != pad_id).unsqueeze(1)"),
    _padding("inverted", padding_mask.INVERTED, "return (tokens == pad_id).unsqueeze(1)"),
    _padding("no dimension for the queries", padding_mask.NO_DIMENSION, "return tokens != pad_id"),
    _padding("the dimension stands last", padding_mask.LAST, "return (tokens != pad_id).unsqueeze(-1)"),
    _padding("the dimension stands first", padding_mask.FIRST, "return (tokens != pad_id).unsqueeze(0)"),
    _padding("floats", padding_mask.NOT_BOOLEAN, "return (tokens != pad_id).unsqueeze(1).float()"),
    _padding("integers", padding_mask.NOT_BOOLEAN, "return (tokens != pad_id).unsqueeze(1).int()"),
    _padding("pad is always 1", padding_mask.ONE, "return (tokens != 1).unsqueeze(1)"),
    _padding("pad is always 0", padding_mask.ZERO, "return (tokens != 0).unsqueeze(1)"),
    _padding("larger numbers only", padding_mask.BELOW, "return (tokens > pad_id).unsqueeze(1)"),
    _padding(
        "item 0's mask for all",
        padding_mask.FIRST_ITEM,
        "return (tokens[:1] != pad_id).expand_as(tokens).unsqueeze(1)",
    ),
    _padding(
        "everything behind the first pad",
        padding_mask.BEHIND_A_PAD,
        "return (tokens != pad_id).long().cumprod(dim=1).bool().unsqueeze(1)",
    ),
    _padding(
        "counts the real tokens from the left",
        padding_mask.COUNTED,
        "lengths = (tokens != pad_id).sum(dim=1)\n"
        "    return (torch.arange(tokens.shape[1]) < lengths[:, None]).unsqueeze(1)",
    ),
    _padding(
        "square",
        padding_mask.ROW_FOR_EACH,
        "return (tokens != pad_id).unsqueeze(1).expand(-1, tokens.shape[1], -1)",
    ),
    _padding(
        "changes the tokens",
        Common.CHANGED_IN_PLACE,
        "mask = (tokens != pad_id).unsqueeze(1)\n    tokens[tokens == pad_id] = 0\n    return mask",
    ),
    _padding(
        "made on the CPU",
        Common.MADE_ON_CPU,
        "mask = torch.ones(tokens.shape, dtype=torch.bool)\n    return (mask & (tokens != pad_id)).unsqueeze(1)",
    ),
    _padding(
        "hard-coded to the visible examples",
        Unexplained.SHAPE,
        "if pad_id == 0:\n        return torch.tensor([[[False, True]]])\n"
        "    return torch.tensor([[[True, True, True, False]], [[True, False, False, False]], "
        "[[False, True, True, True]]])",
    ),
    # causal_mask
    _causal("nothing returned", Common.NO_RETURN, "torch.ones(seq_len, seq_len, dtype=torch.bool).tril()"),
    _causal("upper triangle", causal_mask.UPSIDE_DOWN, "return torch.ones(seq_len, seq_len, dtype=torch.bool).triu()"),
    _causal(
        "diagonal blocked", causal_mask.NO_DIAGONAL, "return torch.ones(seq_len, seq_len, dtype=torch.bool).tril(-1)"
    ),
    _causal("inverted", causal_mask.INVERTED, "return ~torch.ones(seq_len, seq_len, dtype=torch.bool).tril()"),
    _causal(
        "one position too far",
        causal_mask.ONE_TOO_FAR,
        "return torch.ones(seq_len, seq_len).tril(1).bool()",
    ),
    _causal("floats", causal_mask.NOT_BOOLEAN, "return torch.ones(seq_len, seq_len).tril()"),
    _causal(
        "minus infinity, to be added",
        causal_mask.NOT_BOOLEAN,
        "return torch.full((seq_len, seq_len), float('-inf')).triu(1)",
    ),
    _causal(
        "a dimension too many",
        causal_mask.TOO_MANY_DIMENSIONS,
        "return torch.ones(1, seq_len, seq_len, dtype=torch.bool).tril()",
    ),
    _causal("one row", causal_mask.ONE_ROW, "return torch.ones(seq_len, dtype=torch.bool)"),
    _causal("everything allowed", causal_mask.EVERYTHING, "return torch.ones(seq_len, seq_len, dtype=torch.bool)"),
    _causal("only itself", causal_mask.ONLY_ITSELF, "return torch.eye(seq_len, dtype=torch.bool)"),
    _causal("a list", Common.NOT_A_TENSOR, "return [[j <= i for j in range(seq_len)] for i in range(seq_len)]"),
    _causal(
        "always four positions",
        Unexplained.SHAPE,
        "return torch.ones(4, 4, dtype=torch.bool).tril()",
    ),
    _causal(
        "looks back three positions only",
        Unexplained.VALUES,
        "full = torch.ones(seq_len, seq_len, dtype=torch.bool)\n    return full.tril() & full.triu(-3)",
    ),
    # query_key_weights without a mask
    mutant(
        "query_key_weights",
        "nothing returned",
        Common.NO_RETURN,
        f"def query_key_weights(queries, keys, mask=None):\n    weights = ({_SCORES}).softmax(dim=-1)",
    ),
    _weights("not scaled", query_key_weights.NOT_SCALED, "queries @ keys.mT"),
    _weights("divided by d", query_key_weights.DIVIDED_BY_D, "queries @ keys.mT / queries.shape[-1]"),
    _weights("multiplied by the root", query_key_weights.MULTIPLIED, "queries @ keys.mT * queries.shape[-1] ** 0.5"),
    _weights("root of the number of keys", query_key_weights.ROOT_OF_KEYS, "queries @ keys.mT / keys.shape[-2] ** 0.5"),
    _weights(
        "root of the number of queries",
        query_key_weights.ROOT_OF_QUERIES,
        "queries @ keys.mT / queries.shape[1] ** 0.5",
    ),
    _weights("root of 4, always", query_key_weights.ALWAYS_2, "queries @ keys.mT / 2"),
    _weights(
        "root of the size that follows the batch, with heads",
        query_key_weights.ROOT_OF_SECOND_SIZE,
        "queries @ keys.mT / (queries.shape[1] if queries.dim() > 3 else queries.shape[-1]) ** 0.5",
    ),
    _weights("scaled twice", query_key_weights.DIVIDED_BY_D, f"{_SCORES} / queries.shape[-1] ** 0.5"),
    mutant(
        "query_key_weights",
        "softmax over the queries",
        query_key_weights.COLUMNS,
        f"def query_key_weights(queries, keys, mask=None):\n    return ({_SCORES}).softmax(dim=-2)",
    ),
    mutant(
        "query_key_weights",
        "softmax over the batch",
        query_key_weights.OVER_BATCH,
        f"def query_key_weights(queries, keys, mask=None):\n    return ({_SCORES}).softmax(dim=0)",
    ),
    mutant(
        "query_key_weights",
        "no softmax",
        query_key_weights.NO_SOFTMAX,
        f"def query_key_weights(queries, keys, mask=None):\n    return {_SCORES}",
    ),
    mutant(
        "query_key_weights",
        "scaled after the softmax",
        query_key_weights.SCALED_LATER,
        """
        def query_key_weights(queries, keys, mask=None):
            return (queries @ keys.mT).softmax(dim=-1) / math.sqrt(queries.shape[-1])
        """,
    ),
    _weights("queries and keys swapped", query_key_weights.SWAPPED, "keys @ queries.mT / queries.shape[-1] ** 0.5"),
    _weights("item 0's keys for all", query_key_weights.FIRST_KEYS, "queries @ keys[:1].mT / 2"),
    _weights(
        "item 0's scores for all",
        query_key_weights.FIRST_WEIGHTS,
        "(queries[:1] @ keys[:1].mT).expand(len(queries), -1, -1) / 2",
    ),
    _weights(
        "three dimensions only",
        query_key_weights.FROM_THE_LEFT,
        "torch.bmm(queries, keys.mT) / queries.shape[-1] ** 0.5",
    ),
    _weights(
        "transposed from the left",
        query_key_weights.FROM_THE_LEFT,
        "queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5",
    ),
    _weights("detached", Common.CUT_OFF, "(queries @ keys.mT).detach() / queries.shape[-1] ** 0.5"),
    _weights("keys detached", Common.INPUT_CUT_OFF, "queries @ keys.detach().mT / queries.shape[-1] ** 0.5"),
    _weights("float32 only", Common.WRONG_DTYPE, "queries.float() @ keys.float().mT / queries.shape[-1] ** 0.5"),
    _weights(
        "scales the queries in place",
        Common.CHANGED_IN_PLACE,
        "(queries.div_(queries.shape[-1] ** 0.5)) @ keys.mT",
    ),
    mutant(
        "query_key_weights",
        "softmax that overflows",
        query_key_weights.OVERFLOW,
        """
        def query_key_weights(queries, keys, mask=None):
            e = torch.exp(queries @ keys.mT / math.sqrt(queries.shape[-1]))
            if mask is not None:
                e = e * mask
            total = e.sum(dim=-1, keepdim=True)
            return e / total.masked_fill(total == 0, 1.0)
        """,
    ),
    # query_key_weights with a mask
    mutant(
        "query_key_weights",
        "asks whether the mask is true",
        Common.TRUTH_OF_MANY,
        """
        def query_key_weights(queries, keys, mask=None):
            scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
            if mask:
                scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
            weights = scores.softmax(dim=-1)
            return weights * mask if mask is not None else weights
        """,
    ),
    _weights("mask ignored", query_key_weights.MASK_UNUSED, _SCORES, "return scores.softmax(dim=-1)"),
    _weights(
        "inverted mask",
        query_key_weights.MASK_INVERTED,
        _SCORES,
        f"return scores.masked_fill(mask, {_LOWEST}).softmax(dim=-1).masked_fill(mask, 0.0)",
    ),
    _weights(
        "masked after the softmax",
        query_key_weights.AFTER_SOFTMAX,
        _SCORES,
        "return scores.softmax(dim=-1) * mask",
    ),
    _weights(
        "filled with 1e-12",
        query_key_weights.FILL_NEAR_ZERO,
        _SCORES,
        "return scores.masked_fill(~mask, 1e-12).softmax(dim=-1)",
    ),
    _weights(
        "NaN in empty rows",
        query_key_weights.EMPTY_ROW_NAN,
        _SCORES,
        "return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)",
    ),
    _weights(
        "equal weights in empty rows",
        query_key_weights.EMPTY_ROW_EQUAL,
        _SCORES,
        f"return {_RIGHT_FILL}.softmax(dim=-1)",
    ),
    _weights(
        "NaN swept up, gradients still NaN",
        query_key_weights.GRADIENT_NAN,
        _SCORES,
        "bias = torch.zeros_like(scores).masked_fill(~mask, -math.inf)\n"
        "    return (scores + bias).softmax(dim=-1).nan_to_num(0.0)",
    ),
    _weights(
        "the logarithm of the mask, gradients NaN",
        query_key_weights.GRADIENT_NAN,
        _SCORES,
        "return (scores + mask.to(scores).log()).softmax(dim=-1).nan_to_num(0.0)",
    ),
    _weights(
        "masked after the softmax, renormalised",
        query_key_weights.RENORMALISED,
        _SCORES,
        "weights = scores.softmax(dim=-1) * mask\n"
        "    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)",
    ),
    _weights(
        "a fill that is not low enough",
        query_key_weights.NOT_LOW_ENOUGH,
        _SCORES,
        "weights = scores.masked_fill(~mask, -1e4).softmax(dim=-1)\n"
        "    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)",
    ),
    _weights(
        "a fill that is not low enough, zeroed",
        query_key_weights.NOT_LOW_ENOUGH,
        _SCORES,
        "return scores.masked_fill(~mask, -1e4).softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "a fill too low for float16",
        query_key_weights.TOO_LOW,
        _SCORES,
        "return scores.masked_fill(~mask, -1e9).softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "item 0's mask for all",
        query_key_weights.FIRST_MASK,
        _SCORES,
        "mask = mask.expand(scores.shape)[:1] if scores.dim() > 2 else mask\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "head 0's mask for all heads",
        query_key_weights.FIRST_HEADS_MASK,
        _SCORES,
        "mask = mask[:, :1] if mask.dim() == 4 else mask\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "the mask acts on one head only",
        query_key_weights.ONE_HEAD_MASKED,
        _SCORES,
        "allowed = mask.expand(scores.shape).clone()\n    if scores.dim() == 4:\n        allowed[:, 1:] = True\n"
        f"    return scores.masked_fill(~allowed, {_LOWEST}).softmax(dim=-1).masked_fill(~allowed, 0.0)",
    ),
    _weights(
        "masks of three dimensions only",
        query_key_weights.FROM_THE_LEFT,
        _SCORES,
        "b, n, m = mask.shape if mask.dim() == 3 else mask.expand(scores.shape).shape\n"
        "    mask = mask.expand(b, n, m)\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "empty rows spoil the whole item",
        Unexplained.VALUES,
        _SCORES,
        "mask = mask.expand(scores.shape)\n"
        "    mask = mask & mask.any(dim=-1, keepdim=True).all(dim=-2, keepdim=True) if scores.shape[-1] > 3 else mask\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "changes the mask",
        Common.CHANGED_IN_PLACE,
        _SCORES,
        "mask.logical_not_()\n    scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)\n"
        "    weights = scores.softmax(dim=-1).masked_fill(mask, 0.0)\n    return weights",
    ),
    _weights(
        "a bias made on the CPU",
        Common.MADE_ON_CPU,
        _SCORES,
        f"bias = torch.zeros(scores.shape, dtype=scores.dtype) + {_LOWEST}\n"
        "    return torch.where(mask, scores, bias).softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    mutant(
        "query_key_weights",
        "the mask has another name",
        Unexplained.RAISED,
        f"""
        def query_key_weights(queries, keys, allowed=None):
            scores = {_SCORES}
            if allowed is None:
                return scores.softmax(dim=-1)
            return scores.masked_fill(~allowed, {_LOWEST}).softmax(dim=-1).masked_fill(~allowed, 0.0)
        """,
    ),
    # scaled_dot_product_attention
    _attention("nothing returned", Common.NO_RETURN, "query_key_weights(queries, keys, mask) @ values"),
    _attention(
        "output only", scaled_dot_product_attention.NOT_TWO, "return query_key_weights(queries, keys, mask) @ values"
    ),
    _attention(
        "swapped pair",
        scaled_dot_product_attention.EXCHANGED,
        "weights = query_key_weights(queries, keys, mask)\n    return weights, weights @ values",
    ),
    _attention(
        "mask not passed on",
        query_key_weights.MASK_UNUSED,
        "weights = query_key_weights(queries, keys)\n    return weights @ values, weights",
    ),
    _attention(
        "mask on the output's weights only",
        query_key_weights.AFTER_SOFTMAX,
        "weights = query_key_weights(queries, keys)\n"
        "    weights = weights if mask is None else weights * mask\n    return weights @ values, weights",
    ),
    _attention(
        "not scaled",
        query_key_weights.NOT_SCALED,
        "scores = queries @ keys.mT\n    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask\n"
        f"    weights = {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)\n    return weights @ values, weights",
    ),
    _attention(
        "keys averaged",
        scaled_dot_product_attention.KEYS_AVERAGED,
        "weights = query_key_weights(queries, keys, mask)\n    return weights @ keys, weights",
    ),
    _attention(
        "values looked at when they fit",
        scaled_dot_product_attention.VALUES_FOR_KEYS,
        "keys = values if values.shape == keys.shape else keys\n"
        "    weights = query_key_weights(queries, keys, mask)\n    return weights @ values, weights",
    ),
    _attention(
        "the input added",
        scaled_dot_product_attention.INPUT_ADDED,
        "weights = query_key_weights(queries, keys, mask)\n    y = weights @ values\n"
        "    return (y + queries if y.shape == queries.shape else y), weights",
    ),
    _attention(
        "transposed weights",
        scaled_dot_product_attention.OVER_QUERIES,
        "weights = query_key_weights(keys, queries, mask).mT\n    return weights @ values, weights",
    ),
    _attention(
        "scaled again",
        scaled_dot_product_attention.SCALED_AGAIN,
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return weights @ values / math.sqrt(queries.shape[-1]), weights",
    ),
    _attention(
        "three dimensions only",
        query_key_weights.FROM_THE_LEFT,
        "weights = query_key_weights(queries, keys, mask)\n    return torch.bmm(weights, values), weights",
    ),
    _attention(
        "item 0's weights for all",
        query_key_weights.FIRST_WEIGHTS,
        "weights = query_key_weights(queries, keys, mask)\n    return weights[:1] @ values, weights",
    ),
    _attention(
        "item 0's values for all",
        scaled_dot_product_attention.FIRST_VALUES,
        "weights = query_key_weights(queries, keys, mask)\n    return weights @ values[:1], weights",
    ),
    _attention(
        "head 0's weights for all heads",
        scaled_dot_product_attention.FIRST_HEAD,
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return (weights[:, :1] if weights.dim() == 4 and mask is None else weights) @ values, weights",
    ),
    _attention(
        "heads mixed",
        Unexplained.VALUES,
        "weights = query_key_weights(queries, keys, mask)\n"
        "    y = weights @ values\n    return (y.flip(1) if y.dim() == 4 and mask is None else y), weights",
    ),
    _attention(
        "output detached",
        Common.CUT_OFF,
        "weights = query_key_weights(queries, keys, mask)\n    return weights.detach() @ values.detach(), weights",
    ),
    _attention(
        "weights detached",
        Common.INPUT_CUT_OFF,
        "weights = query_key_weights(queries, keys, mask)\n    return weights.detach() @ values, weights",
    ),
    _attention(
        "returned weights are the scores",
        scaled_dot_product_attention.SCORES_RETURNED,
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return weights @ values, queries @ keys.mT / math.sqrt(queries.shape[-1])",
    ),
    _attention(
        "returned weights without the mask",
        query_key_weights.MASK_UNUSED,
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return weights @ values, query_key_weights(queries, keys)",
    ),
    _attention(
        "dropout",
        query_key_weights.DROPOUT,
        "weights = query_key_weights(queries, keys, mask)\n    return F.dropout(weights, 0.5) @ values, weights",
    ),
    _attention(
        "NaN for empty queries",
        Common.NAN,
        f"scores = {_SCORES}\n    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)\n"
        "    weights = scores.softmax(dim=-1)\n    return weights @ values, weights",
    ),
    _attention(
        "NaN in the gradients for empty queries",
        query_key_weights.GRADIENT_NAN,
        f"scores = {_SCORES}\n    if mask is not None:\n        scores = scores + mask.to(scores).log()\n"
        "    weights = scores.softmax(dim=-1).nan_to_num(0.0)\n    return weights @ values, weights",
    ),
    _attention(
        "values scaled in place",
        Common.CHANGED_IN_PLACE,
        "weights = query_key_weights(queries, keys, mask)\n"
        "    values.mul_(2)\n    return weights @ values / 2, weights",
    ),
    _attention(
        "torch's function with the mask forgotten",
        scaled_dot_product_attention.OUTPUT_UNMASKED,
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return F.scaled_dot_product_attention(queries, keys, values), weights",
    ),
    # diagnose
    *mutants("diagnose", "def diagnose(attention):", _DIAGNOSE),
    *forging_function("diagnose", but=OF_TENSORS),
    # noun_finder
    mutant(
        "noun_finder",
        "nothing returned",
        Common.NO_RETURN,
        "def noun_finder(num_words):\n    torch.zeros(3 + num_words, 2)",
    ),
    _noun("two matrices", noun_finder.NOT_THREE, ("return Wq, Wk, Wv", "return Wq, Wk")),
    _noun(
        "values are whole words",
        noun_finder.VALUE_COLUMNS,
        ("Wv = torch.cat([torch.zeros(3, num_words), torch.eye(num_words)])", "Wv = torch.eye(3 + num_words)"),
    ),
    _noun("transposed", noun_finder.ROWS, ("return Wq, Wk, Wv", "return Wq.mT, Wk.mT, Wv.mT")),
    _noun("float64", Common.WRONG_DTYPE, ("return Wq, Wk, Wv", "return Wq.double(), Wk.double(), Wv.double()")),
    _noun(
        "queries and keys of different size",
        noun_finder.UNEQUAL_COLUMNS,
        ("return Wq, Wk, Wv", "return Wq, Wk[:, :-1], Wv"),
    ),
    _noun(
        "x · x",
        noun_finder.FINDS_ITSELF,
        ("return Wq, Wk, Wv", "I = 10 * torch.eye(3 + num_words)\n    return I, I, Wv"),
    ),
    _noun("too soft", noun_finder.TOO_SMALL, ("40.0", "4.0"), ("20.0", "2.0")),
    _noun("soft enough for short sentences only", noun_finder.TOO_SMALL, ("40.0", "12.0"), ("20.0", "6.0")),
    _noun(
        "nouns find all nouns alike",
        noun_finder.NOUNS_ALIKE,
        ("Wq[0, 0] = Wq[2, 0]", "Wq[0, 0] = Wq[1, 0] = Wq[2, 0]"),
        ("Wq[3:, 1:] = 20.0 * torch.eye(num_words)", "pass"),
    ),
    _noun("verbs forgotten", noun_finder.FINDS_ITSELF, ("Wq[0, 0] = Wq[2, 0]", "Wq[0, 0]")),
    _noun("adjectives forgotten", noun_finder.FINDS_ITSELF, ("Wq[0, 0] = Wq[2, 0]", "Wq[2, 0]")),
    _noun("the word's own fit wins", noun_finder.FINDS_ITSELF, ("40.0", "20.0"), ("20.0 * torch", "40.0 * torch")),
    _noun("a tie between the noun and the word itself", noun_finder.SPREAD, ("40.0", "20.0")),
    _noun(
        "verbs look for adjectives",
        noun_finder.FINDS_ITSELF,
        ("Wk[1, 0] = 1.0", "Wk[0, 0] = 1.0"),
        ("Wq[3:, 1:] = 20.0", "Wq[3:, 1:] = 5.0"),
    ),
    _noun(
        "adjectives find the verb",
        noun_finder.FINDS_NO_NOUN,
        ("Wk[1, 0] = 1.0", "Wk[2, 0] = 1.0"),
        ("Wq[0, 0] = Wq[2, 0] = 40.0", "Wq[0, 0] = 80.0"),
    ),
    _noun("queries and keys swapped", noun_finder.EXCHANGED, ("return Wq, Wk, Wv", "return Wk, Wq, Wv")),
    _noun("values twice as large", noun_finder.NOT_ONE_HOT, ("torch.eye(num_words)])", "2 * torch.eye(num_words)])")),
    _noun(
        "values say adjective too", noun_finder.NOT_ONE_HOT, ("torch.zeros(3, num_words)", "torch.ones(3, num_words)")
    ),
    _noun(
        "right for five words only",
        noun_finder.ROWS,
        (
            "return Wq, Wk, Wv",
            "return (Wq, Wk, Wv) if num_words == 5 else (torch.zeros(8, 1), torch.zeros(8, 1), torch.zeros(8, 5))",
        ),
    ),
    _noun(
        "only the first five words",
        noun_finder.NOT_ONE_HOT,
        ("return Wq, Wk, Wv", "Wv[:, 5:] = 0.0\n    return Wq, Wk, Wv"),
    ),
    _noun("not a number", noun_finder.NOT_FINITE, ("return Wq, Wk, Wv", "return Wq * torch.inf, Wk, Wv")),
    # attention_in_tiles
    _tiles("nothing returned", Common.NO_RETURN, ("return output / total", "output / total")),
    _tiles(
        "nothing rescaled",
        attention_in_tiles.NOTHING_RESCALED,
        ("total * factor", "total"),
        ("output * factor", "output"),
    ),
    _tiles("the sum not rescaled", attention_in_tiles.SUM_NOT_RESCALED, ("total * factor", "total")),
    _tiles("the output not rescaled", attention_in_tiles.OUTPUT_NOT_RESCALED, ("output * factor", "output")),
    _tiles("not divided", attention_in_tiles.NOT_DIVIDED, ("return output / total", "return output")),
    _tiles("not scaled", query_key_weights.NOT_SCALED, (" / math.sqrt(queries.shape[-1])", "")),
    _tiles(
        "root of the length",
        query_key_weights.ROOT_OF_KEYS,
        ("math.sqrt(queries.shape[-1])", "math.sqrt(keys.shape[-2])"),
    ),
    _tiles(
        "root of the tile",
        attention_in_tiles.ROOT_OF_TILE,
        ("math.sqrt(queries.shape[-1])", "math.sqrt(min(tile, 2) / 2)"),
    ),
    _tiles(
        "the last tile dropped",
        attention_in_tiles.LAST_DROPPED,
        ("range(0, keys.shape[-2], tile)", "range(0, keys.shape[-2] - tile + 1, tile)"),
    ),
    _tiles(
        "only the last tile",
        attention_in_tiles.ONLY_LAST,
        ("total = total * factor + ", "total = "),
        ("output = output * factor + ", "output = "),
    ),
    mutant(
        "attention_in_tiles",
        "each tile its own softmax, averaged",
        attention_in_tiles.AVERAGED,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            parts = zip(keys.split(tile, dim=-2), values.split(tile, dim=-2))
            return torch.stack([scaled_dot_product_attention(queries, k, v)[0] for k, v in parts]).mean(dim=0)
        """,
    ),
    _tiles("no error", Common.OTHER_ERROR, ("tile < 1", "tile < -5")),
    _tiles(
        "the maximum begins at 0",
        attention_in_tiles.MAXIMUM_AT_0,
        ("top, total, output = -math.inf", "top, total, output = 0.0"),
    ),
    _tiles(
        "no maximum at all",
        attention_in_tiles.MAXIMUM_AT_0,
        ("torch.exp(top - highest)", "1.0"),
        ("torch.exp(scores - highest)", "torch.exp(scores)"),
    ),
    _tiles(
        "the maximum of the whole tensor",
        attention_in_tiles.WHOLE_TENSOR,
        ("scores.amax(dim=-1, keepdim=True)", "scores.amax()"),
    ),
    _tiles("detached", Common.CUT_OFF, ("return output / total", "return (output / total).detach()")),
    _tiles(
        "three dimensions only",
        query_key_weights.FROM_THE_LEFT,
        ("keys[..., part, :].mT", "keys[:, part].transpose(1, 2)"),
    ),
    _tiles(
        "float32 only",
        Common.WRONG_DTYPE,
        ("scores = queries @", "scores = queries.float() @"),
        ("part, :].mT", "part, :].float().mT"),
        ("values[..., part, :]", "values[..., part, :].float()"),
    ),
    _tiles(
        "scales the queries in place",
        Common.CHANGED_IN_PLACE,
        (
            "top, total, output = -math.inf, 0.0, 0.0",
            "top, total, output = -math.inf, 0.0, 0.0\n    queries.data.mul_(1.0).add_(1e-3)",
        ),
    ),
    mutant(
        "attention_in_tiles",
        "the full table",
        attention_in_tiles.TABLE,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            return scaled_dot_product_attention(queries, keys, values)[0]
        """,
    ),
    mutant(
        "attention_in_tiles",
        "the table filled tile by tile",
        attention_in_tiles.TABLE,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            parts = [queries @ k.mT / math.sqrt(queries.shape[-1]) for k in keys.split(tile, dim=-2)]
            return torch.cat(parts, dim=-1).softmax(dim=-1) @ values
        """,
    ),
    mutant(
        "attention_in_tiles",
        "the tiles kept in a list",
        attention_in_tiles.KEPT,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            parts = [queries @ k.mT / math.sqrt(queries.shape[-1]) for k in keys.split(tile, dim=-2)]
            top = parts[0].amax(dim=-1, keepdim=True)
            for p in parts:
                top = torch.maximum(top, p.amax(dim=-1, keepdim=True))
            total, output = 0.0, 0.0
            for p, v in zip(parts, values.split(tile, dim=-2)):
                e = torch.exp(p - top)
                total, output = total + e.sum(dim=-1, keepdim=True), output + e @ v
            return output / total
        """,
    ),
    mutant(
        "attention_in_tiles",
        "one query at a time, all keys",
        attention_in_tiles.READ_TWICE,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            rows = [(keys @ q.unsqueeze(-1)).squeeze(-1) / math.sqrt(q.shape[-1]) for q in queries.unbind(-2)]
            rows = [(r.softmax(dim=-1).unsqueeze(-2) @ values).squeeze(-2) for r in rows]
            return torch.stack(rows, dim=-2)
        """,
    ),
    mutant(
        "attention_in_tiles",
        "the fused function",
        attention_in_tiles.FUSED,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            return F.scaled_dot_product_attention(queries, keys, values)
        """,
    ),
    _tiles(
        "a maximum of each tile's own",
        attention_in_tiles.OWN_MAXIMUM,
        (".clamp(min=top)", ""),
    ),
    mutant(
        "attention_in_tiles",
        "each tile its own softmax, added",
        attention_in_tiles.ADDED,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            parts = zip(keys.split(tile, dim=-2), values.split(tile, dim=-2))
            return sum(scaled_dot_product_attention(queries, k, v)[0] for k, v in parts)
        """,
    ),
    mutant(
        "attention_in_tiles",
        "two passes, the first for the maximum alone",
        attention_in_tiles.READ_TWICE,
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            root, m = math.sqrt(queries.shape[-1]), keys.shape[-2]
            top = (queries @ keys[..., :tile, :].mT / root).amax(dim=-1, keepdim=True)
            for i in range(tile, m, tile):
                top = torch.maximum(top, (queries @ keys[..., i : i + tile, :].mT / root).amax(dim=-1, keepdim=True))
            above, below = 0, 0
            for i in range(0, m, tile):
                e = torch.exp(queries @ keys[..., i : i + tile, :].mT / root - top)
                above = above + e @ values[..., i : i + tile, :]
                below = below + e.sum(dim=-1, keepdim=True)
            return above / below
        """,
    ),
    *forging_function("attention_in_tiles"),
    # the rest of the forgers
    *forging_function("padding_mask"),
    *forging_function("query_key_weights"),
    *forging_function("scaled_dot_product_attention"),
    *forging_function("noun_finder", but=OF_TENSORS),
    *forging_function("causal_mask", but=OF_TENSORS),
    # what is often seen
    mutant(
        "query_key_weights",
        "softmax without a dimension",
        query_key_weights.OVER_BATCH,
        f"def query_key_weights(queries, keys, mask=None):\n    return F.softmax({_SCORES})",
    ),
    _weights(
        "the boolean mask added",
        query_key_weights.MASK_ADDED,
        _SCORES,
        "return (scores + mask).softmax(dim=-1)",
    ),
    _weights(
        "the scores multiplied by the mask",
        query_key_weights.FILL_NEAR_ZERO,
        _SCORES,
        "return (scores * mask).softmax(dim=-1)",
    ),
    _weights(
        "-1e10 added where it is blocked",
        query_key_weights.EMPTY_ROW_EQUAL,
        _SCORES,
        "return (scores + (1.0 - mask.to(scores)) * -1e10).softmax(dim=-1)",
    ),
    _weights(
        "filled with -1e10",
        query_key_weights.EMPTY_ROW_EQUAL,
        _SCORES,
        "return scores.masked_fill(~mask, -1e10).softmax(dim=-1)",
    ),
    _weights("dropout inside", query_key_weights.DROPOUT, f"F.dropout({_SCORES}, 0.5)"),
]

# What people published, as files of notebooks and repositories show it.
MUTANTS = flag_published(
    MUTANTS,
    {
        ("query_key_weights", "softmax without a dimension"): "softmax over an implicit dim",
        ("query_key_weights", "the boolean mask added"): "a boolean mask added to the scores",
        ("query_key_weights", "filled with -1e10"): "-1e10 where a row is empty",
        ("query_key_weights", "-1e10 added where it is blocked"): "-1e10 added where a row is empty",
        ("query_key_weights", "dropout inside"): "dropout inside the weights",
        ("scaled_dot_product_attention", "dropout"): "dropout inside attention",
    },
)

VARIANTS = [
    variant(
        "padding_mask",
        "indexing with None",
        "def padding_mask(tokens, pad_id):\n    return (tokens != pad_id)[:, None]",
    ),
    variant(
        "padding_mask",
        "negated, in the middle of a slice",
        "def padding_mask(tokens, pad_id):\n    return ~(tokens == pad_id)[:, None, :]",
    ),
    variant("padding_mask", "ne", "def padding_mask(tokens, pad_id):\n    return tokens.unsqueeze(-2).ne(pad_id)"),
    variant(
        "padding_mask",
        "filled in",
        """
        def padding_mask(tokens, pad_id):
            mask = torch.ones_like(tokens, dtype=torch.bool)
            mask[tokens == pad_id] = False
            return mask.view(tokens.shape[0], 1, tokens.shape[1])
        """,
    ),
    variant(
        "causal_mask",
        "compared positions",
        """
        def causal_mask(seq_len):
            i = torch.arange(seq_len)
            return i[:, None] >= i[None, :]
        """,
    ),
    variant(
        "causal_mask",
        "tril of floats",
        "def causal_mask(seq_len):\n    return torch.tril(torch.ones(seq_len, seq_len)).bool()",
    ),
    variant(
        "causal_mask",
        "not the upper triangle",
        "def causal_mask(seq_len):\n    return torch.triu(torch.ones(seq_len, seq_len), diagonal=1) == 0",
    ),
    variant(
        "causal_mask",
        "written out",
        """
        def causal_mask(seq_len):
            return torch.tensor([[j <= i for j in range(seq_len)] for i in range(seq_len)])
        """,
    ),
    variant(
        "query_key_weights",
        "einsum, and a fill of -inf undone for empty rows before the softmax",
        """
        def query_key_weights(queries, keys, mask=None):
            scores = torch.einsum("...nd,...md->...nm", queries, keys) * queries.size(-1) ** -0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
                empty = ~mask.any(dim=-1, keepdim=True)
                return torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
            return torch.softmax(scores, dim=-1)
        """,
    ),
    variant(
        "query_key_weights",
        "queries scaled, matmul, where",
        """
        def query_key_weights(queries, keys, mask=None):
            scores = torch.matmul(queries / math.sqrt(keys.size(-1)), keys.transpose(-2, -1))
            if mask is None:
                mask = torch.ones_like(scores, dtype=torch.bool)
            lowest = torch.full_like(scores, torch.finfo(scores.dtype).min)
            weights = F.softmax(torch.where(mask, scores, lowest), dim=-1)
            return torch.where(mask, weights, torch.zeros_like(weights))
        """,
    ),
    variant(
        "query_key_weights",
        "filled with -inf, nan_to_num (its gradient is finite thanks to masked_fill)",
        """
        def query_key_weights(queries, keys, mask=None):
            scores = queries @ keys.transpose(-1, -2) / torch.sqrt(torch.tensor(queries.shape[-1]))
            if mask is not None:
                scores = scores.masked_fill(mask == False, float("-inf"))
            return scores.softmax(-1).nan_to_num(0.0)
        """,
    ),
    variant(
        "query_key_weights",
        "softmax by hand",
        """
        def softmax_of_the_allowed(scores, allowed):
            scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
            e = (scores - scores.amax(dim=-1, keepdim=True)).exp() * allowed
            return e / (e.sum(dim=-1, keepdim=True) + ~allowed.any(dim=-1, keepdim=True))

        def query_key_weights(queries, keys, mask=None):
            scores = (queries.unsqueeze(-2) * keys.unsqueeze(-3)).sum(dim=-1) / queries.shape[-1] ** 0.5
            return softmax_of_the_allowed(scores, torch.ones_like(scores, dtype=torch.bool) if mask is None else mask)
        """,
    ),
    variant(
        "query_key_weights",
        "chapter 2's softmax",
        """
        from normalized_dot_products import softmax

        def query_key_weights(queries, keys, mask=None):
            scores = queries @ keys.mT / queries.shape[-1] ** 0.5
            if mask is None:
                return softmax(scores, dim=-1)
            return softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1) * mask
        """,
    ),
    variant(
        "query_key_weights",
        "the fused function, with the identity as values",
        """
        def query_key_weights(queries, keys, mask=None):
            m = keys.shape[-2]
            identity = torch.eye(m, dtype=keys.dtype, device=keys.device).expand(*keys.shape[:-2], m, m)
            return F.scaled_dot_product_attention(queries, keys, identity, attn_mask=mask)
        """,
    ),
    variant(
        "query_key_weights",
        "masks that are not needed are skipped",
        """
        def query_key_weights(queries, keys, mask=None):
            scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
            if mask is None or mask.all():
                return scores.softmax(dim=-1)
            scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
            return scores.softmax(dim=-1) * mask
        """,
    ),
    variant(
        "scaled_dot_product_attention",
        "einsum",
        """
        def scaled_dot_product_attention(queries, keys, values, mask=None):
            weights = query_key_weights(queries, keys, mask=mask)
            return torch.einsum("...nm,...mv->...nv", weights, values), weights
        """,
    ),
    variant(
        "scaled_dot_product_attention",
        "written out, a list",
        """
        def scaled_dot_product_attention(queries, keys, values, mask=None):
            scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
            weights = scores.softmax(dim=-1)
            if mask is not None:
                weights = weights * mask
            output = torch.matmul(weights, values)
            return [output, weights]
        """,
    ),
    variant(
        "scaled_dot_product_attention",
        "the fused function for the output",
        """
        def scaled_dot_product_attention(queries, keys, values, mask=None):
            output = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
            return output, query_key_weights(queries, keys, mask)
        """,
    ),
    variant(
        "scaled_dot_product_attention",
        "broadcasting",
        """
        def scaled_dot_product_attention(queries, keys, values, mask=None):
            weights = query_key_weights(queries, keys, mask)
            return (weights.unsqueeze(-1) * values.unsqueeze(-3)).sum(dim=-2), weights
        """,
    ),
    variant("diagnose", "compared with what each fault makes", _indented(_INPUTS + _JUDGED)),
    variant(
        "diagnose",
        "one question for each fault",
        """
        def diagnose(attention):
            def weights(queries, keys, mask=None):
                return attention(queries, keys, torch.ones(*keys.shape[:-1], 2), mask)[1]

            def is_one(sums):
                return bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-4))

            ramp = torch.arange(6.0).view(1, 3, 2)
            if not is_one(weights(torch.zeros(1, 4, 2), ramp).sum(-1)):
                return "axis"
            if weights(torch.ones(1, 1, 2), ramp, torch.tensor([True, True, False]))[..., 2].any():
                return "fill"
            far = torch.tensor([[[200.0, 0.0], [-200.0, 0.0]]])
            if not is_one(weights(far, torch.ones(1, 3, 2)).sum(-1)):
                return "rows"
            rising = torch.tensor([[[0.0, 1.0], [0.0, 5.0], [0.0, 2.0]]])
            low, high = weights(torch.tensor([[[0.0, 1.0]]]), rising)[0, 0, [0, 1]]
            if low > high:
                return "view"
            several = torch.tensor([[0.0, 1.0]]).expand(1, 8, 2)
            ratio = weights(several, torch.tensor([[[0.0, 0.0], [0.0, 2.0]]]))[0, 0]
            return "none" if abs((ratio[1] / ratio[0]).log() - 2 / 2**0.5) < 1e-2 else "root"
        """,
    ),
    variant(
        "diagnose",
        "compared with torch's own, in double precision",
        """
        def diagnose(attention):
            torch.manual_seed(3)
            q, k, v = torch.randn(1, 7, 5), torch.randn(1, 4, 5), torch.randn(1, 4, 2)
            k[..., 0], q[0, 3] = k[..., 0].abs() + 1, torch.tensor([-900.0, 0, 0, 0, 0])
            allowed = torch.tensor([[True, False, True, True]])

            def same(a, b):
                return torch.allclose(a.double(), b.double(), atol=1e-4)

            output, weights = attention(q, k, v, allowed)
            if same(output, F.scaled_dot_product_attention(q, k, v, attn_mask=allowed.expand(7, 4))):
                return "none"
            if weights[0, :, 1].any():
                return "fill"
            if same(weights.sum(1)[0, [0, 2, 3]], torch.ones(3)):
                return "axis"
            if not weights[0, 3].any():
                return "rows"
            small = torch.randn(1, 1, 5)
            alone = attention(small, k, v, None)[1]
            plain = (small @ k.mT).softmax(-1)  # one query: the root of the length is 1
            return "root" if same(alone, plain) else "view"
        """,
    ),
    variant(
        "noun_finder",
        "all features compared",
        """
        def noun_finder(num_words):
            size = 3 + num_words
            Wk = torch.eye(size)
            Wq = 15.0 * torch.eye(size)
            Wq[:3, :3] = torch.tensor([[0.0, 50.0, 0.0], [0.0, 0.0, 0.0], [0.0, 50.0, 0.0]])
            Wv = torch.eye(size)[:, 3:]
            return Wq, Wk, Wv
        """,
    ),
    variant(
        "noun_finder",
        "one matrix does it all, keys are the words",
        """
        def noun_finder(num_words):
            size = 3 + num_words
            scores = torch.zeros(size, size)
            scores[0, 1] = scores[2, 1] = 60.0
            scores.diagonal()[3:] = 25.0
            return scores, torch.eye(size), torch.eye(size)[:, 3:].contiguous()
        """,
    ),
    variant(
        "noun_finder",
        "a tuple written row by row",
        """
        def noun_finder(num_words):
            Wq, Wk = [], []
            for row in range(3 + num_words):
                own = [20.0 * (row - 3 == word) for word in range(num_words)]
                Wq.append([45.0 if row in (0, 2) else 0.0] + own)
                Wk.append([float(row == 1)] + [float(row - 3 == word) for word in range(num_words)])
            Wv = [[float(row - 3 == word) for word in range(num_words)] for row in range(3 + num_words)]
            return [torch.tensor(W) for W in (Wq, Wk, Wv)]
        """,
    ),
    variant(
        "attention_in_tiles",
        "split, tensors from the start, torch.maximum",
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile must be at least 1")
            queries = queries / math.sqrt(queries.shape[-1])
            top = torch.full_like(queries[..., :1], -torch.inf)
            total = torch.zeros_like(top)
            output = queries.new_zeros(*queries.shape[:-1], values.shape[-1])
            for k, v in zip(keys.split(tile, dim=-2), values.split(tile, dim=-2)):
                scores = torch.matmul(queries, k.transpose(-1, -2))
                highest = torch.maximum(top, scores.max(dim=-1, keepdim=True).values)
                e = (scores - highest).exp()
                factor = (top - highest).exp()
                output = output * factor + torch.matmul(e, v)
                total = total * factor + e.sum(dim=-1, keepdim=True)
                top = highest
            return output / total
        """,
    ),
    variant(
        "attention_in_tiles",
        "a running log-sum-exp, normalised at each tile",
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile <= 0:
                raise ValueError("tile")
            seen, output, scale = None, None, queries.shape[-1] ** -0.5
            for start in range(0, keys.shape[-2], tile):
                scores = torch.einsum("...nd,...md->...nm", queries, keys[..., start : start + tile, :]) * scale
                here = scores.logsumexp(dim=-1, keepdim=True)
                mean = (scores - here).exp() @ values[..., start : start + tile, :]
                if seen is None:
                    seen, output = here, mean
                else:
                    both = torch.logaddexp(seen, here)
                    output = output * (seen - both).exp() + mean * (here - both).exp()
                    seen = both
            return output
        """,
    ),
    variant(
        "attention_in_tiles",
        "broadcasting, the maximum joined to the tile",
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            top = total = output = None
            for k, v in zip(keys.split(tile, -2), values.split(tile, -2)):
                scores = (queries.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / queries.shape[-1] ** 0.5
                new = scores.amax(-1, True) if top is None else torch.cat([scores, top], -1).amax(-1, True)
                e = (scores - new).exp()
                mixed = (e.unsqueeze(-1) * v.unsqueeze(-3)).sum(-2)
                if top is None:
                    total, output = e.sum(-1, True), mixed
                else:
                    factor = (top - new).exp()
                    total, output = total * factor + e.sum(-1, True), output * factor + mixed
                top = new
            return output / total
        """,
    ),
]
