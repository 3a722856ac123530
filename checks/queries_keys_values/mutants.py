"""Chapter 03: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, mutant, variant


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


def _fix(title: str, says: str, body: str) -> Answer:
    return mutant("fix_mask_fill", title, says, f"def fix_mask_fill(scores, mask):\n    {body}")


_LOWEST = "torch.finfo(scores.dtype).min"
_RIGHT_FILL = f"scores.masked_fill(~mask, {_LOWEST})"


MUTANTS = [
    # padding_mask
    _padding("nothing returned", "is there a `return`?", "(tokens != pad_id).unsqueeze(1)"),
    _padding("inverted", "the mask is inverted", "return (tokens == pad_id).unsqueeze(1)"),
    _padding("no dimension for the queries", "the shape is (B, m)", "return tokens != pad_id"),
    _padding("the dimension stands last", "the shape should be (B, 1, m)", "return (tokens != pad_id).unsqueeze(-1)"),
    _padding("the dimension stands first", "the shape should be (B, 1, m)", "return (tokens != pad_id).unsqueeze(0)"),
    _padding("floats", "a mask is boolean", "return (tokens != pad_id).unsqueeze(1).float()"),
    _padding("integers", "a mask is boolean", "return (tokens != pad_id).unsqueeze(1).int()"),
    _padding("pad is always 1", "is told by `pad_id`", "return (tokens != 1).unsqueeze(1)"),
    _padding("pad is always 0", "padding is allowed", "return (tokens != 0).unsqueeze(1)"),
    _padding("larger numbers only", "only `pad_id` is padding", "return (tokens > pad_id).unsqueeze(1)"),
    _padding(
        "item 0's mask for all",
        "each has its own",
        "return (tokens[:1] != pad_id).expand_as(tokens).unsqueeze(1)",
    ),
    _padding(
        "everything behind the first pad",
        "what follows a pad is blocked",
        "return (tokens != pad_id).long().cumprod(dim=1).bool().unsqueeze(1)",
    ),
    _padding(
        "counts the real tokens from the left",
        "each has its own",
        "lengths = (tokens != pad_id).sum(dim=1)\n"
        "    return (torch.arange(tokens.shape[1]) < lengths[:, None]).unsqueeze(1)",
    ),
    _padding(
        "square",
        "the shape should be (B, 1, m)",
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
    _causal("inverted", "upside down", "return ~torch.ones(seq_len, seq_len, dtype=torch.bool).tril()"),
    _causal("one position too far", "10 pairs are allowed", "return torch.ones(seq_len, seq_len).tril(1).bool()"),
    _causal("floats", "a mask is boolean", "return torch.ones(seq_len, seq_len).tril()"),
    _causal(
        "minus infinity, to be added",
        "a mask is boolean",
        "return torch.full((seq_len, seq_len), float('-inf')).triu(1)",
    ),
    _causal(
        "a dimension too many",
        "the shape should be (n, n)",
        "return torch.ones(1, seq_len, seq_len, dtype=torch.bool).tril()",
    ),
    _causal("one row", "the shape should be (n, n)", "return torch.ones(seq_len, dtype=torch.bool)"),
    _causal("everything allowed", "its future", "return torch.ones(seq_len, seq_len, dtype=torch.bool)"),
    _causal("only itself", "may not look at position 0", "return torch.eye(seq_len, dtype=torch.bool)"),
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
    _weights("not scaled", "divided by nothing", "queries @ keys.mT"),
    _weights("divided by d", "divided by d, not its root", "queries @ keys.mT / queries.shape[-1]"),
    _weights("multiplied by the root", "by hand it is", "queries @ keys.mT * queries.shape[-1] ** 0.5"),
    _weights("root of the number of keys", "divided by the root of m", "queries @ keys.mT / keys.shape[-2] ** 0.5"),
    _weights("root of the number of queries", "the root of n or B", "queries @ keys.mT / queries.shape[1] ** 0.5"),
    _weights("root of 4, always", "divided by 2, whatever d is", "queries @ keys.mT / 2"),
    _weights(
        "root of the size that follows the batch, with heads",
        "divided by the root of the second size",
        "queries @ keys.mT / (queries.shape[1] if queries.dim() > 3 else queries.shape[-1]) ** 0.5",
    ),
    _weights("scaled twice", "divided by d, not its root", f"{_SCORES} / queries.shape[-1] ** 0.5"),
    mutant(
        "query_key_weights",
        "softmax over the queries",
        "each column sums to 1",
        f"def query_key_weights(queries, keys, mask=None):\n    return ({_SCORES}).softmax(dim=-2)",
    ),
    mutant(
        "query_key_weights",
        "softmax over the batch",
        "each row should sum to 1",
        f"def query_key_weights(queries, keys, mask=None):\n    return ({_SCORES}).softmax(dim=0)",
    ),
    mutant(
        "query_key_weights",
        "no softmax",
        "each row should sum to 1",
        f"def query_key_weights(queries, keys, mask=None):\n    return {_SCORES}",
    ),
    mutant(
        "query_key_weights",
        "scaled after the softmax",
        "each row should sum to 1",
        """
        def query_key_weights(queries, keys, mask=None):
            return (queries @ keys.mT).softmax(dim=-1) / math.sqrt(queries.shape[-1])
        """,
    ),
    _weights(
        "queries and keys swapped", "the shape should be (B, n, m)", "keys @ queries.mT / queries.shape[-1] ** 0.5"
    ),
    _weights("item 0's keys for all", "batch item 0 is right, item 1 is not", "queries @ keys[:1].mT / 2"),
    _weights(
        "item 0's scores for all",
        "batch item 0 is right, item 1 is not",
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
        "the row no longer sums to 1",
        _SCORES,
        "return scores.softmax(dim=-1) * mask",
    ),
    _weights(
        "filled with 1e-12",
        "is its score low?",
        _SCORES,
        "return scores.masked_fill(~mask, 1e-12).softmax(dim=-1)",
    ),
    _weights(
        "NaN in empty rows",
        "is NaN: softmax of nothing but -inf",
        _SCORES,
        "return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)",
    ),
    _weights(
        "equal weights in empty rows",
        "should be all zero",
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
        "is it passed on",
        "weights = query_key_weights(queries, keys)\n    return weights @ values, weights",
    ),
    _attention(
        "mask on the output's weights only",
        "head 0: the weights should be",
        "weights = query_key_weights(queries, keys)\n"
        "    weights = weights if mask is None else weights * mask\n    return weights @ values, weights",
    ),
    _attention(
        "not scaled",
        "the weights by hand are",
        "scores = queries @ keys.mT\n    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask\n"
        f"    weights = {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 0.0)\n    return weights @ values, weights",
    ),
    _attention(
        "keys averaged",
        "the output's shape should be (B, n, d_v)",
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
        "the weights by hand are",
        "weights = query_key_weights(keys, queries, mask).mT\n    return weights @ values, weights",
    ),
    _attention(
        "scaled again",
        "output 0: by hand it is [7, 3]",
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
        "the weights by hand are",
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
        "output 0: by hand it is [7, 3]",
        "weights = query_key_weights(queries, keys, mask)\n    return F.dropout(weights, 0.5) @ values, weights",
    ),
    _attention(
        "NaN for empty queries",
        "is NaN",
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
        "head 0: (6 + 3) / 2",
        "weights = query_key_weights(queries, keys, mask)\n"
        "    return F.scaled_dot_product_attention(queries, keys, values), weights",
    ),
    # fix_mask_fill
    _fix("the leak itself", "the leak is still there", "return scores.masked_fill(~mask, 1e-12).softmax(dim=-1)"),
    _fix("filled with zero", "the leak is still there", "return scores.masked_fill(~mask, 0.0).softmax(dim=-1)"),
    _fix(
        "minus the tiny number", "the leak is still there", "return scores.masked_fill(~mask, -1e-12).softmax(dim=-1)"
    ),
    _fix("filled with -1", "the leak is still there", "return scores.masked_fill(~mask, -1.0).softmax(dim=-1)"),
    _fix(
        "filled with -10",
        "blocked weights should be exactly 0",
        "return scores.masked_fill(~mask, -10.0).softmax(dim=-1)",
    ),
    _fix("nothing returned", "is there a `return`?", f"{_RIGHT_FILL}.softmax(dim=-1)"),
    _fix("inverted", "the wrong way round", f"return scores.masked_fill(mask, {_LOWEST}).softmax(dim=-1)"),
    _fix("mask ignored", "the mask is ignored", "return scores.softmax(dim=-1)"),
    _fix(
        "filled with a high number, then zeroed",
        "rows no longer sum to 1",
        "return scores.masked_fill(~mask, 1e9).softmax(dim=-1) * mask",
    ),
    _fix("weights zeroed after the softmax", "rows no longer sum to 1", "return scores.softmax(dim=-1) * mask"),
    _fix(
        "tiny number put into the weights",
        "should be exactly 0",
        "return scores.softmax(dim=-1).masked_fill(~mask, 1e-12)",
    ),
    _fix(
        "tiny number left in the weights",
        "should be exactly 0",
        f"return {_RIGHT_FILL}.softmax(dim=-1).masked_fill(~mask, 1e-12)",
    ),
    _fix("NaN in empty rows", "is now NaN", "return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)"),
    _fix("equal weights in empty rows", "should be all zero", f"return {_RIGHT_FILL}.softmax(dim=-1)"),
    _fix(
        "NaN swept up, gradients still NaN",
        "the gradient is NaN",
        "return (scores + mask.to(scores).log()).softmax(dim=-1).nan_to_num(0.0)",
    ),
    _fix("softmax over the queries", "rows no longer sum to 1", f"return {_RIGHT_FILL}.softmax(dim=-2) * mask"),
    _fix(
        "scaled again",
        "row 0: exponentials 3 and 1",
        f"scores = scores / math.sqrt(scores.shape[-1])\n    return {_RIGHT_FILL}.softmax(dim=-1) * mask",
    ),
    _fix(
        "not low enough",
        "blocked weights must be exactly 0",
        "weights = scores.masked_fill(~mask, -1e4).softmax(dim=-1)\n"
        "    return weights * mask.any(dim=-1, keepdim=True)",
    ),
    _fix(
        "not low enough, zeroed",
        "the fill is not low enough",
        "return scores.masked_fill(~mask, -1e4).softmax(dim=-1) * mask",
    ),
    _fix(
        "too low for float16",
        "Does a number fit into every dtype?",
        "return scores.masked_fill(~mask, -1e9).softmax(dim=-1) * mask",
    ),
    _fix(
        "renormalised after the softmax",
        "when blocked scores are large",
        "weights = scores.softmax(dim=-1) * mask\n"
        "    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)",
    ),
    _fix("detached", "cut off from the graph", f"return {_RIGHT_FILL}.detach().softmax(dim=-1) * mask"),
    _fix(
        "fills the scores in place",
        "changed in place",
        f"with torch.no_grad():\n        scores.masked_fill_(~mask, {_LOWEST})\n"
        "    return scores.softmax(dim=-1) * mask",
    ),
    _fix(
        "head 0's mask for all heads",
        "the mask of head 0 is used for all heads",
        "mask = mask[:, :1] if mask.dim() == 4 else mask\n    return " + _RIGHT_FILL + ".softmax(dim=-1) * mask",
    ),
    _fix(
        "two dimensions only",
        "Count dimensions from the right",
        "n, m = scores.shape[-2:]\n"
        "    mask = mask.expand(n, m) if scores.dim() == 2 else mask.expand(len(scores), n, m)\n"
        f"    return {_RIGHT_FILL}.softmax(dim=-1) * mask",
    ),
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
        "fix_mask_fill",
        "-inf, but not in empty rows",
        """
        def fix_mask_fill(scores, mask):
            empty = ~mask.any(dim=-1, keepdim=True)
            scores = scores.masked_fill(~mask & ~empty, -math.inf)
            return scores.softmax(dim=-1).masked_fill(empty, 0.0)
        """,
    ),
    variant(
        "fix_mask_fill",
        "where",
        """
        def fix_mask_fill(scores, mask):
            weights = torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(dim=-1)
            return torch.where(mask, weights, 0.0)
        """,
    ),
    variant(
        "fix_mask_fill",
        "softmax by hand over the allowed",
        """
        def fix_mask_fill(scores, mask):
            top = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(dim=-1, keepdim=True)
            e = torch.where(mask, scores - top, torch.zeros_like(scores)).exp() * mask
            total = e.sum(dim=-1, keepdim=True)
            return e / total.masked_fill(total == 0, 1.0)
        """,
    ),
    variant(
        "fix_mask_fill",
        "multiplied by the mask",
        """
        def fix_mask_fill(scores, mask):
            scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
            return F.softmax(scores, dim=-1) * mask
        """,
    ),
]
