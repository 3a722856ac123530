"""Chapter 03: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, edit, mutant, variant
from checks.forgers import OF_TENSORS, forging_function


def _padding(title: str, says: str, body: str) -> Answer:
    return mutant("padding_mask", title, says, f"def padding_mask(tokens, pad_id):\n    {body}")


def _causal(title: str, says: str, body: str) -> Answer:
    return mutant("causal_mask", title, says, f"def causal_mask(seq_len):\n    {body}")


_NO_MASK = "    if mask is None:\n        return scores.softmax(dim=-1)\n"


def _weights(title: str, says: str, scores: str, masked: str | None = None) -> Answer:
    """A wrong answer to `query_key_weights`, from a line for the scores and one for the masked weights."""
    masked = masked or (
        "return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1).masked_fill(~mask, 0.0)"
    )
    source = f"def query_key_weights(queries, keys, mask=None):\n    scores = {scores}\n{_NO_MASK}    {masked}"
    return mutant("query_key_weights", title, says, source)


_SCORES = "queries @ keys.mT / math.sqrt(queries.shape[-1])"


def _attention(title: str, says: str, body: str) -> Answer:
    source = f"def scaled_dot_product_attention(queries, keys, values, mask=None):\n    {body}"
    return mutant("scaled_dot_product_attention", title, says, source)


_PUBLISHED = "\n    ".join(
    (
        "length = queries.shape[1]",
        "scores = torch.bmm(queries, keys.transpose(1, 2))",
        "scores = scores / math.sqrt(length)",
        "scores = scores.masked_fill(~mask, 1e-12)",
        "weights = F.softmax(scores, dim=1)",
        "return torch.bmm(weights, values), weights",
    )
)
_MENDED = "\n    ".join(
    (
        "scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[2])",
        "lowest = torch.finfo(scores.dtype).min",
        "weights = F.softmax(scores.masked_fill(~mask, lowest), dim=2).masked_fill(~mask, 0.0)",
        "return torch.bmm(weights, values), weights",
    )
)


def _fix(title: str, says: str, body: str = _MENDED, *edits: tuple[str, str]) -> Answer:
    for old, new in sorted(edits):
        assert body.count(old) == 1, (title, old)
        body = body.replace(old, new)
    source = f"def fix_published_attention(queries, keys, values, mask):\n    {body}"
    return mutant("fix_published_attention", title, says, source)


def _noun(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("noun_finder", title, says, *edits)


def _tiles(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("attention_in_tiles", title, says, *edits)


_LOWEST = "torch.finfo(scores.dtype).min"
_RIGHT_FILL = f"scores.masked_fill(~mask, {_LOWEST})"


MUTANTS = [
    # padding_mask
    _padding("nothing returned", "is there a `return`?", "(tokens != pad_id).unsqueeze(1)"),
    _padding("inverted", "the mask is inverted", "return (tokens == pad_id).unsqueeze(1)"),
    _padding("no dimension for the queries", "the shape is (B, m)", "return tokens != pad_id"),
    _padding(
        "the dimension stands last", "stands last: it belongs in the middle", "return (tokens != pad_id).unsqueeze(-1)"
    ),
    _padding(
        "the dimension stands first", "stands first: it belongs in the middle", "return (tokens != pad_id).unsqueeze(0)"
    ),
    _padding("floats", "a mask is boolean", "return (tokens != pad_id).unsqueeze(1).float()"),
    _padding("integers", "a mask is boolean", "return (tokens != pad_id).unsqueeze(1).int()"),
    _padding("pad is always 1", "padding is taken to be 1", "return (tokens != 1).unsqueeze(1)"),
    _padding("pad is always 0", "token 0 is taken for padding", "return (tokens != 0).unsqueeze(1)"),
    _padding("larger numbers only", "numbers below `pad_id` are blocked too", "return (tokens > pad_id).unsqueeze(1)"),
    _padding(
        "item 0's mask for all",
        "item 0's mask is used for all",
        "return (tokens[:1] != pad_id).expand_as(tokens).unsqueeze(1)",
    ),
    _padding(
        "everything behind the first pad",
        "what follows a pad is blocked",
        "return (tokens != pad_id).long().cumprod(dim=1).bool().unsqueeze(1)",
    ),
    _padding(
        "counts the real tokens from the left",
        "real tokens are counted",
        "lengths = (tokens != pad_id).sum(dim=1)\n"
        "    return (torch.arange(tokens.shape[1]) < lengths[:, None]).unsqueeze(1)",
    ),
    _padding(
        "square",
        "each sentence has m rows",
        "return (tokens != pad_id).unsqueeze(1).expand(-1, tokens.shape[1], -1)",
    ),
    _padding(
        "changes the tokens",
        "`tokens` was changed in place",
        "mask = (tokens != pad_id).unsqueeze(1)\n    tokens[tokens == pad_id] = 0\n    return mask",
    ),
    _padding(
        "made on the CPU",
        "fails when its inputs are on a GPU",
        "mask = torch.ones(tokens.shape, dtype=torch.bool)\n    return (mask & (tokens != pad_id)).unsqueeze(1)",
    ),
    _padding(
        "hard-coded to the visible examples",
        "the mask should have shape",
        "if pad_id == 0:\n        return torch.tensor([[[False, True]]])\n"
        "    return torch.tensor([[[True, True, True, False]], [[True, False, False, False]], "
        "[[False, True, True, True]]])",
    ),
    # causal_mask
    _causal("nothing returned", "is there a `return`?", "torch.ones(seq_len, seq_len, dtype=torch.bool).tril()"),
    _causal("upper triangle", "upside down", "return torch.ones(seq_len, seq_len, dtype=torch.bool).triu()"),
    _causal(
        "diagonal blocked", "diagonal is blocked", "return torch.ones(seq_len, seq_len, dtype=torch.bool).tril(-1)"
    ),
    _causal("inverted", "the mask is inverted", "return ~torch.ones(seq_len, seq_len, dtype=torch.bool).tril()"),
    _causal(
        "one position too far",
        "position 0 may look at position 1",
        "return torch.ones(seq_len, seq_len).tril(1).bool()",
    ),
    _causal("floats", "a mask is boolean", "return torch.ones(seq_len, seq_len).tril()"),
    _causal(
        "minus infinity, to be added",
        "a mask is boolean",
        "return torch.full((seq_len, seq_len), float('-inf')).triu(1)",
    ),
    _causal(
        "a dimension too many",
        "a dimension too many",
        "return torch.ones(1, seq_len, seq_len, dtype=torch.bool).tril()",
    ),
    _causal("one row", "there is one row only", "return torch.ones(seq_len, dtype=torch.bool)"),
    _causal("everything allowed", "the future too", "return torch.ones(seq_len, seq_len, dtype=torch.bool)"),
    _causal("only itself", "each position sees only itself", "return torch.eye(seq_len, dtype=torch.bool)"),
    _causal("a list", "should be a torch.Tensor", "return [[j <= i for j in range(seq_len)] for i in range(seq_len)]"),
    _causal(
        "always four positions",
        "the mask of 5 positions should have shape (5, 5)",
        "return torch.ones(4, 4, dtype=torch.bool).tril()",
    ),
    _causal(
        "looks back three positions only",
        "wrong entries",
        "full = torch.ones(seq_len, seq_len, dtype=torch.bool)\n    return full.tril() & full.triu(-3)",
    ),
    # query_key_weights without a mask
    mutant(
        "query_key_weights",
        "nothing returned",
        "is there a `return`?",
        f"def query_key_weights(queries, keys, mask=None):\n    weights = ({_SCORES}).softmax(dim=-1)",
    ),
    _weights("not scaled", "√d is missing", "queries @ keys.mT"),
    _weights("divided by d", "divided by d, not by its root", "queries @ keys.mT / queries.shape[-1]"),
    _weights("multiplied by the root", "multiplied by √d", "queries @ keys.mT * queries.shape[-1] ** 0.5"),
    _weights("root of the number of keys", "divided by the root of m", "queries @ keys.mT / keys.shape[-2] ** 0.5"),
    _weights("root of the number of queries", "the root of n or B", "queries @ keys.mT / queries.shape[1] ** 0.5"),
    _weights("root of 4, always", "divided by 2, whatever d is", "queries @ keys.mT / 2"),
    _weights(
        "root of the size that follows the batch, with heads",
        "divided by the root of the second size",
        "queries @ keys.mT / (queries.shape[1] if queries.dim() > 3 else queries.shape[-1]) ** 0.5",
    ),
    _weights("scaled twice", "divided by d, not by its root", f"{_SCORES} / queries.shape[-1] ** 0.5"),
    mutant(
        "query_key_weights",
        "softmax over the queries",
        "each column sums to 1",
        f"def query_key_weights(queries, keys, mask=None):\n    return ({_SCORES}).softmax(dim=-2)",
    ),
    mutant(
        "query_key_weights",
        "softmax over the batch",
        "the softmax runs over the batch",
        f"def query_key_weights(queries, keys, mask=None):\n    return ({_SCORES}).softmax(dim=0)",
    ),
    mutant(
        "query_key_weights",
        "no softmax",
        "the softmax is missing",
        f"def query_key_weights(queries, keys, mask=None):\n    return {_SCORES}",
    ),
    mutant(
        "query_key_weights",
        "scaled after the softmax",
        "the scale comes after the softmax",
        """
        def query_key_weights(queries, keys, mask=None):
            return (queries @ keys.mT).softmax(dim=-1) / math.sqrt(queries.shape[-1])
        """,
    ),
    _weights(
        "queries and keys swapped", "queries and keys are swapped", "keys @ queries.mT / queries.shape[-1] ** 0.5"
    ),
    _weights("item 0's keys for all", "item 0's keys are used for all", "queries @ keys[:1].mT / 2"),
    _weights(
        "item 0's scores for all",
        "item 0's weights are used for all",
        "(queries[:1] @ keys[:1].mT).expand(len(queries), -1, -1) / 2",
    ),
    _weights(
        "three dimensions only",
        "Count dimensions from the right",
        "torch.bmm(queries, keys.mT) / queries.shape[-1] ** 0.5",
    ),
    _weights(
        "transposed from the left",
        "Count dimensions from the right",
        "queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5",
    ),
    _weights("detached", "cut off from the graph", "(queries @ keys.mT).detach() / queries.shape[-1] ** 0.5"),
    _weights("keys detached", "no gradient reaches `keys`", "queries @ keys.detach().mT / queries.shape[-1] ** 0.5"),
    _weights(
        "float32 only", "keep dtype torch.float64", "queries.float() @ keys.float().mT / queries.shape[-1] ** 0.5"
    ),
    _weights(
        "scales the queries in place",
        "`queries` was changed in place",
        "(queries.div_(queries.shape[-1] ** 0.5)) @ keys.mT",
    ),
    mutant(
        "query_key_weights",
        "softmax that overflows",
        "for scores in the thousands",
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
    _weights("mask ignored", "the mask has no effect", _SCORES, "return scores.softmax(dim=-1)"),
    _weights(
        "inverted mask",
        "the wrong way round",
        _SCORES,
        f"return scores.masked_fill(mask, {_LOWEST}).softmax(dim=-1).masked_fill(mask, 0.0)",
    ),
    _weights(
        "masked after the softmax",
        "rows no longer sum to 1",
        _SCORES,
        "return scores.softmax(dim=-1) * mask",
    ),
    _weights(
        "filled with 1e-12",
        "a number near 0, and exp(0) = 1",
        _SCORES,
        "return scores.masked_fill(~mask, 1e-12).softmax(dim=-1)",
    ),
    _weights(
        "NaN in empty rows",
        "all its scores are -inf",
        _SCORES,
        "return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)",
    ),
    _weights(
        "equal weights in empty rows",
        "with -1e10 for instance",
        _SCORES,
        f"return {_RIGHT_FILL}.softmax(dim=-1)",
    ),
    _weights(
        "NaN swept up, gradients still NaN",
        "the gradient is NaN",
        _SCORES,
        "bias = torch.zeros_like(scores).masked_fill(~mask, -math.inf)\n"
        "    return (scores + bias).softmax(dim=-1).nan_to_num(0.0)",
    ),
    _weights(
        "the logarithm of the mask, gradients NaN",
        "the gradient is NaN",
        _SCORES,
        "return (scores + mask.to(scores).log()).softmax(dim=-1).nan_to_num(0.0)",
    ),
    _weights(
        "masked after the softmax, renormalised",
        "a blocked key changes the weights of the others when it is large",
        _SCORES,
        "weights = scores.softmax(dim=-1) * mask\n"
        "    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)",
    ),
    _weights(
        "a fill that is not low enough",
        "blocked weights must be exactly 0",
        _SCORES,
        "weights = scores.masked_fill(~mask, -1e4).softmax(dim=-1)\n"
        "    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)",
    ),
    _weights(
        "a fill that is not low enough, zeroed",
        "the fill is not low enough",
        _SCORES,
        "return scores.masked_fill(~mask, -1e4).softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "a fill too low for float16",
        "Does a number fit into every dtype?",
        _SCORES,
        "return scores.masked_fill(~mask, -1e9).softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "item 0's mask for all",
        "batch item 0's mask is used for all",
        _SCORES,
        "mask = mask.expand(scores.shape)[:1] if scores.dim() > 2 else mask\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "head 0's mask for all heads",
        "the mask of head 0 is used for all heads",
        _SCORES,
        "mask = mask[:, :1] if mask.dim() == 4 else mask\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "the mask acts on one head only",
        "the mask acts on head 0 only",
        _SCORES,
        "allowed = mask.expand(scores.shape).clone()\n    if scores.dim() == 4:\n        allowed[:, 1:] = True\n"
        f"    return scores.masked_fill(~allowed, {_LOWEST}).softmax(dim=-1).masked_fill(~allowed, 0.0)",
    ),
    _weights(
        "masks of three dimensions only",
        "Count dimensions from the right",
        _SCORES,
        "b, n, m = mask.shape if mask.dim() == 3 else mask.expand(scores.shape).shape\n"
        "    mask = mask.expand(b, n, m)\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "empty rows spoil the whole item",
        "wrong entries",
        _SCORES,
        "mask = mask.expand(scores.shape)\n"
        "    mask = mask & mask.any(dim=-1, keepdim=True).all(dim=-2, keepdim=True) if scores.shape[-1] > 3 else mask\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    _weights(
        "changes the mask",
        "`mask` was changed in place",
        _SCORES,
        "mask.logical_not_()\n    scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)\n"
        "    weights = scores.softmax(dim=-1).masked_fill(mask, 0.0)\n    return weights",
    ),
    _weights(
        "a bias made on the CPU",
        "fails when its inputs are on a GPU",
        _SCORES,
        f"bias = torch.zeros(scores.shape, dtype=scores.dtype) + {_LOWEST}\n"
        "    return torch.where(mask, scores, bias).softmax(dim=-1).masked_fill(~mask, 0.0)",
    ),
    mutant(
        "query_key_weights",
        "the mask has another name",
        "unexpected keyword argument",
        f"""
        def query_key_weights(queries, keys, allowed=None):
            scores = {_SCORES}
            if allowed is None:
                return scores.softmax(dim=-1)
            return scores.masked_fill(~allowed, {_LOWEST}).softmax(dim=-1).masked_fill(~allowed, 0.0)
        """,
    ),
    # scaled_dot_product_attention
    _attention("nothing returned", "is there a `return`?", "query_key_weights(queries, keys, mask) @ values"),
    _attention("output only", "return two things", "return query_key_weights(queries, keys, mask) @ values"),
    _attention(
        "swapped pair",
        "the two are swapped",
        "weights = query_key_weights(queries, keys, mask)\n    return weights, weights @ values",
    ),
    _attention(
        "mask not passed on",
        "the mask has no effect",
        "weights = query_key_weights(queries, keys)\n    return weights @ values, weights",
    ),
    _attention(
        "mask on the output's weights only",
        "set to 0 after the softmax",
        "weights = query_key_weights(queries, keys)\n"
        "    weights = weights if mask is None else weights * mask\n    return weights @ values, weights",
    ),
    _attention(
        "not scaled",
        "not divided by √d",
        "scores = queries @ keys.mT\n    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask\n"
        f"    weights = {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)\n    return weights @ values, weights",
    ),
    _attention(
        "keys averaged",
        "the keys are averaged",
        "weights = query_key_weights(queries, keys, mask)\n    return weights @ keys, weights",
    ),
    _attention(
        "values looked at when they fit",
        "the values take the place of the keys",
        "keys = values if values.shape == keys.shape else keys\n"
        "    weights = query_key_weights(queries, keys, mask)\n    return weights @ values, weights",
    ),
    _attention(
        "the input added",
        "the input is added to the output",
        "weights = query_key_weights(queries, keys, mask)\n    y = weights @ values\n"
        "    return (y + queries if y.shape == queries.shape else y), weights",
    ),
    _attention(
        "transposed weights",
        "the softmax runs over the queries",
        "weights = query_key_weights(keys, queries, mask).mT\n    return weights @ values, weights",
    ),
    _attention(
        "scaled again",
        "divided by √d once more",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return weights @ values / math.sqrt(queries.shape[-1]), weights",
    ),
    _attention(
        "three dimensions only",
        "batch1 must be a 3D tensor",
        "weights = query_key_weights(queries, keys, mask)\n    return torch.bmm(weights, values), weights",
    ),
    _attention(
        "item 0's weights for all",
        "batch item 0's weights are used for all",
        "weights = query_key_weights(queries, keys, mask)\n    return weights[:1] @ values, weights",
    ),
    _attention(
        "item 0's values for all",
        "batch item 0's values are used for all",
        "weights = query_key_weights(queries, keys, mask)\n    return weights @ values[:1], weights",
    ),
    _attention(
        "head 0's weights for all heads",
        "head 0's weights are used for all heads",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return (weights[:, :1] if weights.dim() == 4 and mask is None else weights) @ values, weights",
    ),
    _attention(
        "heads mixed",
        "with heads, the output",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    y = weights @ values\n    return (y.flip(1) if y.dim() == 4 and mask is None else y), weights",
    ),
    _attention(
        "output detached",
        "cut off from the graph",
        "weights = query_key_weights(queries, keys, mask)\n    return weights.detach() @ values.detach(), weights",
    ),
    _attention(
        "weights detached",
        "no gradient reaches `queries`",
        "weights = query_key_weights(queries, keys, mask)\n    return weights.detach() @ values, weights",
    ),
    _attention(
        "returned weights are the scores",
        "these are the scores",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return weights @ values, queries @ keys.mT / math.sqrt(queries.shape[-1])",
    ),
    _attention(
        "returned weights without the mask",
        "the mask has no effect",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return weights @ values, query_key_weights(queries, keys)",
    ),
    _attention(
        "dropout",
        "is there dropout inside?",
        "weights = query_key_weights(queries, keys, mask)\n    return F.dropout(weights, 0.5) @ values, weights",
    ),
    _attention(
        "NaN for empty queries",
        "contains NaN",
        f"scores = {_SCORES}\n    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)\n"
        "    weights = scores.softmax(dim=-1)\n    return weights @ values, weights",
    ),
    _attention(
        "NaN in the gradients for empty queries",
        "a NaN was made on the way and swept up",
        f"scores = {_SCORES}\n    if mask is not None:\n        scores = scores + mask.to(scores).log()\n"
        "    weights = scores.softmax(dim=-1).nan_to_num(0.0)\n    return weights @ values, weights",
    ),
    _attention(
        "values scaled in place",
        "`values` was changed in place",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    values.mul_(2)\n    return weights @ values / 2, weights",
    ),
    _attention(
        "torch's function with the mask forgotten",
        "the mask has no effect on the output",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return F.scaled_dot_product_attention(queries, keys, values), weights",
    ),
    # fix_published_attention
    _fix("nothing mended", "but each row should and a blocked key still gets the weight", _PUBLISHED),
    _fix(
        "the fill left",
        "a blocked key still gets the weight",
        _MENDED,
        ("lowest)", "1e-12)"),
        (".masked_fill(~mask, 0.0)", ""),
    ),
    _fix("the root left", "still divided by the root of the length", _MENDED, ("queries.shape[2]", "queries.shape[1]")),
    _fix("the axis left", "each column sums to 1", _PUBLISHED, ("1e-12", "-math.inf"), ("shape[1]", "shape[2]")),
    _fix(
        "the fill and the axis mended, the root not",
        "still divided by the root of the length",
        _MENDED,
        ("queries.shape[2]", "queries.shape[-2]"),
    ),
    _fix("root of the number of keys", "divided by the root of m", _MENDED, ("queries.shape[2]", "keys.shape[1]")),
    _fix(
        "divided by d",
        "divided by d, not by its root",
        _MENDED,
        ("math.sqrt(queries.shape[2])", "queries.shape[2]"),
    ),
    _fix("not scaled", "no longer scaled", _MENDED, (" / math.sqrt(queries.shape[2])", "")),
    _fix(
        "filled with zero",
        "a blocked key still gets the weight",
        _MENDED,
        ("lowest)", "0.0)"),
        (".masked_fill(~mask, 0.0)", ""),
    ),
    _fix(
        "filled with minus the tiny number",
        "a blocked key still gets the weight",
        _MENDED,
        ("lowest)", "-1e-12)"),
        (".masked_fill(~mask, 0.0)", ""),
    ),
    _fix(
        "weights zeroed after the softmax",
        "set to 0 after the softmax",
        "scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[2])\n"
        "    weights = F.softmax(scores, dim=2) * mask\n    return torch.bmm(weights, values), weights",
    ),
    _fix(
        "NaN in empty rows",
        "softmax of a row of nothing but -inf is 0/0",
        _MENDED,
        ("lowest)", "-math.inf)"),
        (".masked_fill(~mask, 0.0)", ""),
    ),
    _fix("equal weights in empty rows", "should be all zero", _MENDED, (".masked_fill(~mask, 0.0)", "")),
    _fix(
        "the boolean mask added",
        "a blocked key still gets the weight",
        _MENDED,
        ("scores.masked_fill(~mask, lowest)", "scores + mask"),
        (".masked_fill(~mask, 0.0)", ""),
    ),
    _fix("not low enough", "the fill is not low enough", _MENDED, ("lowest)", "-1e4)")),
    _fix("too low for float16", "Does a number fit into every dtype?", _MENDED, ("lowest)", "-1e9)")),
    _fix(
        "NaN swept up, gradients still NaN",
        "a NaN was made on the way and swept up",
        "scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[2])\n"
        "    weights = F.softmax(scores + mask.to(scores).log(), dim=2).nan_to_num(0.0)\n"
        "    return torch.bmm(weights, values), weights",
    ),
    _fix(
        "inverted mask",
        "a blocked key still gets the weight",
        _MENDED,
        ("~mask, lowest", "mask, lowest"),
        ("~mask, 0.0", "mask, 0.0"),
    ),
    _fix(
        "output only",
        "return two things",
        _MENDED,
        ("torch.bmm(weights, values), weights", "torch.bmm(weights, values)"),
    ),
    _fix(
        "output detached",
        "cut off from the graph",
        _MENDED,
        ("torch.bmm(weights, values), weights", "torch.bmm(weights, values).detach(), weights"),
    ),
    _fix(
        "item 0's mask for all",
        "batch item 0's mask is used for all",
        _MENDED,
        ("~mask, lowest", "~mask.expand(scores.shape)[:1], lowest"),
        ("~mask, 0.0", "~mask.expand(scores.shape)[:1], 0.0"),
    ),
    *forging_function("fix_published_attention"),
    # noun_finder
    mutant(
        "noun_finder",
        "nothing returned",
        "is there a `return`?",
        "def noun_finder(num_words):\n    torch.zeros(3 + num_words, 2)",
    ),
    _noun("two matrices", "return three matrices", ("return Wq, Wk, Wv", "return Wq, Wk")),
    _noun(
        "values are whole words",
        "Wv has 5 columns",
        ("Wv = torch.cat([torch.zeros(3, num_words), torch.eye(num_words)])", "Wv = torch.eye(3 + num_words)"),
    ),
    _noun("transposed", "should have 3 + num_words", ("return Wq, Wk, Wv", "return Wq.mT, Wk.mT, Wv.mT")),
    _noun("float64", "float32", ("return Wq, Wk, Wv", "return Wq.double(), Wk.double(), Wv.double()")),
    _noun(
        "queries and keys of different size", "equally many columns", ("return Wq, Wk, Wv", "return Wq, Wk[:, :-1], Wv")
    ),
    _noun(
        "x · x",
        "the adjective finds itself",
        ("return Wq, Wk, Wv", "I = 10 * torch.eye(3 + num_words)\n    return I, I, Wv"),
    ),
    _noun("too soft", "the right word leads with", ("40.0", "4.0"), ("20.0", "2.0")),
    _noun("soft enough for short sentences only", "the right word leads with", ("40.0", "12.0"), ("20.0", "6.0")),
    _noun(
        "nouns find all nouns alike",
        "every noun finds all nouns alike",
        ("Wq[0, 0] = Wq[2, 0]", "Wq[0, 0] = Wq[1, 0] = Wq[2, 0]"),
        ("Wq[3:, 1:] = 20.0 * torch.eye(num_words)", "pass"),
    ),
    _noun("verbs forgotten", "the verb finds itself", ("Wq[0, 0] = Wq[2, 0]", "Wq[0, 0]")),
    _noun("adjectives forgotten", "the adjective finds itself", ("Wq[0, 0] = Wq[2, 0]", "Wq[2, 0]")),
    _noun("the word's own fit wins", "the adjective finds itself", ("40.0", "20.0"), ("20.0 * torch", "40.0 * torch")),
    _noun("a tie between the noun and the word itself", "spread over the sentence", ("40.0", "20.0")),
    _noun(
        "verbs look for adjectives",
        "the adjective finds itself",
        ("Wk[1, 0] = 1.0", "Wk[0, 0] = 1.0"),
        ("Wq[3:, 1:] = 20.0", "Wq[3:, 1:] = 5.0"),
    ),
    _noun(
        "adjectives find the verb",
        "which is no noun",
        ("Wk[1, 0] = 1.0", "Wk[2, 0] = 1.0"),
        ("Wq[0, 0] = Wq[2, 0] = 40.0", "Wq[0, 0] = 80.0"),
    ),
    _noun("queries and keys swapped", "the adjective finds itself", ("return Wq, Wk, Wv", "return Wk, Wq, Wv")),
    _noun("values twice as large", "not one-hots", ("torch.eye(num_words)])", "2 * torch.eye(num_words)])")),
    _noun("values say adjective too", "not one-hots", ("torch.zeros(3, num_words)", "torch.ones(3, num_words)")),
    _noun(
        "right for five words only",
        "should have 3 + num_words",
        (
            "return Wq, Wk, Wv",
            "return (Wq, Wk, Wv) if num_words == 5 else (torch.zeros(8, 1), torch.zeros(8, 1), torch.zeros(8, 5))",
        ),
    ),
    _noun("only the first five words", "not one-hots", ("return Wq, Wk, Wv", "Wv[:, 5:] = 0.0\n    return Wq, Wk, Wv")),
    _noun("not a number", "NaN", ("return Wq, Wk, Wv", "return Wq * torch.inf, Wk, Wv")),
    # attention_in_tiles
    _tiles("nothing returned", "is there a `return`?", ("return output / total", "output / total")),
    _tiles(
        "nothing rescaled", "neither the sum nor the output", ("total * factor", "total"), ("output * factor", "output")
    ),
    _tiles("the sum not rescaled", "the sum so far is not rescaled", ("total * factor", "total")),
    _tiles("the output not rescaled", "the output so far is not rescaled", ("output * factor", "output")),
    _tiles("not divided", "the division by the sum is missing", ("return output / total", "return output")),
    _tiles("not scaled", "the scores are not scaled", (" / math.sqrt(queries.shape[-1])", "")),
    _tiles(
        "root of the length",
        "divided by the root of the number of keys",
        ("math.sqrt(queries.shape[-1])", "math.sqrt(keys.shape[-2])"),
    ),
    _tiles("root of the tile", "with tile 1", ("math.sqrt(queries.shape[-1])", "math.sqrt(min(tile, 2) / 2)")),
    _tiles(
        "the last tile dropped",
        "the last tile is dropped",
        ("range(0, keys.shape[-2], tile)", "range(0, keys.shape[-2] - tile + 1, tile)"),
    ),
    _tiles(
        "only the last tile",
        "only the last tile counts",
        ("total = total * factor + ", "total = "),
        ("output = output * factor + ", "output = "),
    ),
    mutant(
        "attention_in_tiles",
        "each tile its own softmax, averaged",
        "each tile has its own softmax",
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            parts = zip(keys.split(tile, dim=-2), values.split(tile, dim=-2))
            return torch.stack([scaled_dot_product_attention(queries, k, v)[0] for k, v in parts]).mean(dim=0)
        """,
    ),
    _tiles("no error", "should raise ValueError", ("tile < 1", "tile < -5")),
    _tiles(
        "the maximum begins at 0",
        "the running maximum begins at 0",
        ("top, total, output = -math.inf", "top, total, output = 0.0"),
    ),
    _tiles(
        "no maximum at all",
        "the running maximum begins at 0",
        ("torch.exp(top - highest)", "1.0"),
        ("torch.exp(scores - highest)", "torch.exp(scores)"),
    ),
    _tiles("the maximum of the whole tensor", "NaN", ("scores.amax(dim=-1, keepdim=True)", "scores.amax()")),
    _tiles("detached", "cut off from the graph", ("return output / total", "return (output / total).detach()")),
    _tiles(
        "three dimensions only",
        "Count dimensions from the right",
        ("keys[..., part, :].mT", "keys[:, part].transpose(1, 2)"),
    ),
    _tiles(
        "float32 only",
        "keep dtype torch.float64",
        ("scores = queries @", "scores = queries.float() @"),
        ("part, :].mT", "part, :].float().mT"),
        ("values[..., part, :]", "values[..., part, :].float()"),
    ),
    _tiles(
        "scales the queries in place",
        "`queries` was changed in place",
        (
            "top, total, output = -math.inf, 0.0, 0.0",
            "top, total, output = -math.inf, 0.0, 0.0\n    queries.data.mul_(1.0).add_(1e-3)",
        ),
    ),
    mutant(
        "attention_in_tiles",
        "the full table",
        "a tensor with 40 columns was made",
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
        "a tensor with 40 columns was made",
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
        "were held at the same time",
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
        "a tensor with 401 columns was made",
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
        "the tiles are to be your own",
        """
        def attention_in_tiles(queries, keys, values, tile):
            if tile < 1:
                raise ValueError("tile")
            return F.scaled_dot_product_attention(queries, keys, values)
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
        "the softmax runs over the batch",
        f"def query_key_weights(queries, keys, mask=None):\n    return F.softmax({_SCORES})",
    ),
    _weights(
        "the boolean mask added",
        "the boolean mask is added to the scores",
        _SCORES,
        "return (scores + mask).softmax(dim=-1)",
    ),
    _weights(
        "the scores multiplied by the mask",
        "a number near 0, and exp(0) = 1",
        _SCORES,
        "return (scores * mask).softmax(dim=-1)",
    ),
    _weights(
        "-1e10 added where it is blocked",
        "with -1e10 for instance",
        _SCORES,
        "return (scores + (1.0 - mask.to(scores)) * -1e10).softmax(dim=-1)",
    ),
    _weights(
        "filled with -1e10",
        "with -1e10 for instance",
        _SCORES,
        "return scores.masked_fill(~mask, -1e10).softmax(dim=-1)",
    ),
    _weights("dropout inside", "is there dropout inside?", f"F.dropout({_SCORES}, 0.5)"),
]

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
    variant(
        "fix_published_attention",
        "empty rows undone before the softmax",
        """
        def fix_published_attention(queries, keys, values, mask):
            scores = torch.bmm(queries, keys.transpose(1, 2)) * keys.shape[-1] ** -0.5
            empty = ~mask.any(dim=-1, keepdim=True)
            scores = scores.masked_fill(~mask & ~empty, -math.inf)
            weights = scores.softmax(-1).masked_fill(empty, 0.0)
            return torch.bmm(weights, values), weights
        """,
    ),
    variant(
        "fix_published_attention",
        "nan_to_num behind masked_fill, einsum",
        """
        def fix_published_attention(queries, keys, values, mask):
            scores = torch.einsum("bnd,bmd->bnm", queries, keys) / math.sqrt(queries.size(-1))
            weights = F.softmax(scores.masked_fill(mask.logical_not(), float("-inf")), dim=-1).nan_to_num(0.0)
            return torch.einsum("bnm,bmv->bnv", weights, values), weights
        """,
    ),
    variant(
        "fix_published_attention",
        "where, and a product with the mask",
        """
        def fix_published_attention(queries, keys, values, mask):
            scores = queries @ keys.mT / math.sqrt(queries.shape[2])
            weights = torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(dim=2) * mask
            return weights @ values, weights
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
        "two passes, the first for the maximum alone",
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
