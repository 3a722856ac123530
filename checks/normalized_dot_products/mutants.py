"""Chapter 02: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, edit, mutant, variant
from checks.forgers import forging_answers


def _softmax(title: str, says: str, *lines: str) -> Answer:
    return mutant("softmax", title, says, "def softmax(z, dim):\n    " + "\n    ".join(lines))


def _weights(title: str, says: str, *lines: str) -> Answer:
    return mutant(
        "normalized_dot_product", title, says, "def normalized_dot_product(queries, keys):\n    " + "\n    ".join(lines)
    )


def _attention(title: str, says: str, *lines: str) -> Answer:
    return mutant("basic_self_attention", title, says, "def basic_self_attention(x):\n    " + "\n    ".join(lines))


_MAXIMUM = "z - z.amax(dim=dim, keepdim=True)"
_EXP = "e = torch.exp(z - z.amax(dim=dim, keepdim=True))"
_DOTS = "scores = torch.einsum('bnd,bmd->bnm', queries, keys)"

MUTANTS = [
    # softmax: the formula
    _softmax("nothing returned", "is there a `return`?", _EXP, "e / e.sum(dim=dim, keepdim=True)"),
    edit(
        "softmax",
        "always the last dimension",
        "the sum always runs over the last dimension",
        ("amax(dim=dim", "amax(dim=-1"),
        ("e.sum(dim=dim", "e.sum(dim=-1"),
    ),
    edit(
        "softmax",
        "always the first dimension",
        "the sum always runs over the first dimension",
        ("e.sum(dim=dim", "e.sum(dim=0"),
    ),
    _softmax("the whole tensor sums to 1", "the whole tensor sums to 1", "e = torch.exp(z)", "return e / e.sum()"),
    edit("softmax", "keepdim forgotten", "The size of tensor a", ("e.sum(dim=dim, keepdim=True)", "e.sum(dim=dim)")),
    _softmax(
        "no exponential",
        "is the exponential missing?",
        "return z / z.sum(dim=dim, keepdim=True)",
    ),
    _softmax(
        "absolute values instead of exp",
        "is the exponential missing?",
        "return z.abs() / z.abs().sum(dim=dim, keepdim=True)",
    ),
    _softmax(
        "squares instead of exp", "is the exponential missing?", "return z**2 / (z**2).sum(dim=dim, keepdim=True)"
    ),
    _softmax("not divided", "not divided by their sum", "return torch.exp(z)"),
    _softmax("the largest made 1, not divided", "not divided by their sum", f"return torch.exp({_MAXIMUM})"),
    _softmax(
        "divided by the mean",
        "not divided by their sum",
        _EXP,
        "return e / e.mean(dim=dim, keepdim=True)",
    ),
    _softmax("sigmoid", "not divided by their sum", "return torch.sigmoid(z)"),
    edit(
        "softmax",
        "largest score gets least",
        "the sign turned round",
        ("torch.exp(z - z.amax", "torch.exp(-z + z.amin"),
    ),
    edit(
        "softmax",
        "the logarithm of the weights",
        "is this a logarithm?",
        ("return e", "return torch.log(e"),
        ("e.sum(dim=dim, keepdim=True)", "e.sum(dim=dim, keepdim=True))"),
    ),
    _softmax("base 2", "by hand it is", "e = 2**z", "return e / e.sum(dim=dim, keepdim=True)"),
    edit(
        "softmax",
        "an epsilon in the denominator",
        "a small number is added to the denominator",
        ("e.sum(dim=dim, keepdim=True)", "(e.sum(dim=dim, keepdim=True) + 1e-8)"),
    ),
    # softmax: rules
    _softmax("torch.softmax", "the code calls `softmax`", "return torch.softmax(z, dim=dim)"),
    _softmax("the module", "the code calls `softmax`", "return nn.Softmax(dim=dim)(z)"),
    _softmax("exp of log_softmax", "the code calls `log_softmax`", "return F.log_softmax(z, dim=dim).exp()"),
    _softmax(
        "logsumexp", "the code calls `logsumexp`", "return torch.exp(z - torch.logsumexp(z, dim=dim, keepdim=True))"
    ),
    _softmax(
        "torch.special", "the code calls `special_log_softmax`", "return torch.special.log_softmax(z, dim=dim).exp()"
    ),
    # softmax: how it behaves
    _softmax(
        "changes the scores in place",
        "`z` was changed in place",
        "z -= z.detach().amax(dim=dim, keepdim=True)",
        "e = torch.exp(z)",
        "return e / e.sum(dim=dim, keepdim=True)",
    ),
    _softmax("detached", "cut off from the graph", "z = z.detach()", _EXP, "return e / e.sum(dim=dim, keepdim=True)"),
    edit(
        "softmax",
        "sum detached",
        "the sum in the denominator is detached",
        ("e.sum(dim=dim, keepdim=True)", "e.sum(dim=dim, keepdim=True).detach()"),
    ),
    _softmax(
        "float32 only",
        "keep dtype torch.float64",
        "z = z.float()",
        _EXP,
        "return e / e.sum(dim=dim, keepdim=True)",
    ),
    _softmax(
        "float64 always",
        "keep dtype torch.float32",
        "z = z.double()",
        _EXP,
        "return e / e.sum(dim=dim, keepdim=True)",
    ),
    _softmax(
        "made on the CPU",
        "fails when its inputs are on a GPU",
        _EXP,
        "e = e + torch.zeros(e.shape, dtype=e.dtype)",
        "return e / e.sum(dim=dim, keepdim=True)",
    ),
    _softmax(
        "hard-coded to the visible example",
        "should have shape",
        "if dim == 1:",
        "    return torch.tensor([[0.25, 0.5, 0.25], [0.375, 0.125, 0.5]])",
        "return torch.tensor([[0.25, 2 / 3, 0.2], [0.75, 1 / 3, 0.8]])",
    ),
    # softmax: large scores and -inf
    edit("softmax", "nothing subtracted", "exp(10000) is too large", ("torch.exp(" + _MAXIMUM + ")", "torch.exp(z)")),
    edit(
        "softmax",
        "one maximum for the whole tensor",
        "a maximum of its own",
        (_MAXIMUM, "z - z.max()"),
    ),
    edit("softmax", "the mean subtracted", "is it the largest score that you subtract", ("amax", "mean")),
    edit("softmax", "the minimum subtracted", "is it the largest score that you subtract", ("amax", "amin")),
    edit(
        "softmax",
        "the largest absolute value subtracted",
        "or the largest absolute value?",
        (_MAXIMUM, "z - z.abs().amax(dim=dim, keepdim=True)"),
    ),
    edit("softmax", "scores clamped", "the scores are clamped", (_MAXIMUM, "z.clamp(-50, 50)")),
    edit(
        "softmax",
        "differences clamped",
        "an entry of -inf should get exactly 0",
        (_MAXIMUM, f"({_MAXIMUM}).clamp(min=-20)"),
    ),
    _softmax(
        "NaN swept away",
        "nan is replaced after the fact",
        "e = torch.exp(z)",
        "return (e / e.sum(dim=dim, keepdim=True)).nan_to_num()",
    ),
    _softmax(
        "-inf taken for 0",
        "an entry of -inf should get exactly 0",
        "z = torch.where(z.isinf(), torch.zeros_like(z), z)",
        _EXP,
        "return e / e.sum(dim=dim, keepdim=True)",
    ),
    _softmax(
        "scores shrunk to fit",
        "the scores are clamped",
        "z = z / z.abs().amax(dim=dim, keepdim=True).clamp(min=10) * 10",
        _EXP,
        "return e / e.sum(dim=dim, keepdim=True)",
    ),
    # normalized_dot_product
    _weights("nothing returned", "is there a `return`?", _DOTS, "softmax(scores, dim=-1)"),
    _weights(
        "softmax over the queries", "each column sums to 1, but each row should", _DOTS, "return softmax(scores, dim=1)"
    ),
    _weights("softmax over the batch", "where F.softmax goes without a `dim`", _DOTS, "return softmax(scores, dim=0)"),
    _weights(
        "softmax over the whole matrix",
        "the whole matrix sums to 1",
        _DOTS,
        "return softmax(scores.flatten(1), dim=1).reshape(scores.shape)",
    ),
    _weights("no softmax", "these are the dot products", "return queries @ keys.mT"),
    _weights(
        "divided by the sum, no exponential",
        "was the exponential forgotten?",
        _DOTS,
        "return scores / scores.sum(dim=-1, keepdim=True)",
    ),
    _weights(
        "absolute values divided by their sum",
        "was the exponential forgotten?",
        _DOTS,
        "return scores.abs() / scores.abs().sum(dim=-1, keepdim=True).clamp(min=1e-9)",
    ),
    _weights(
        "already scaled by the root of the dimension",
        "divided by √d",
        _DOTS,
        "return softmax(scores / keys.shape[-1] ** 0.5, dim=-1)",
    ),
    _weights(
        "cosine similarity",
        "the vectors are scaled to length 1",
        "queries, keys = F.normalize(queries, dim=-1), F.normalize(keys, dim=-1)",
        _DOTS,
        "return softmax(scores, dim=-1)",
    ),
    _weights(
        "distances instead of dot products", "by hand it is", "return softmax(-torch.cdist(queries, keys), dim=-1)"
    ),
    _weights(
        "reshaped where a transpose was meant",
        "`reshape` or `view` where a transpose is meant",
        "scores = queries @ keys.reshape(len(keys), keys.shape[2], keys.shape[1])",
        "return softmax(scores, dim=-1)",
    ),
    _weights(
        "the keys look at the queries",
        "a row for each query, a column for each key",
        "return softmax(keys @ queries.mT, dim=-1)",
    ),
    _weights(
        "transposed back after the softmax",
        "each column sums to 1, but each row should",
        "return softmax(keys @ queries.mT, dim=-1).mT",
    ),
    _weights(
        "first sequence's keys for all",
        "each has its own queries",
        "return softmax(torch.einsum('bnd,md->bnm', queries, keys[0]), dim=-1)",
    ),
    _weights(
        "first sequence's queries for all",
        "each has its own queries",
        "return softmax(torch.einsum('nd,bmd->bnm', queries[0], keys), dim=-1)",
    ),
    _weights(
        "the keys forgotten",
        "the keys have no part in it",
        "return softmax(queries @ queries.mT, dim=-1)",
    ),
    _weights("softmax twice", "softmax is applied twice", _DOTS, "return softmax(softmax(scores, -1), -1)"),
    _weights(
        "a comprehension over the batch",
        "without a loop",
        "return torch.stack([softmax(q @ k.T, dim=-1) for q, k in zip(queries, keys)])",
    ),
    _weights(
        "a loop over the queries",
        "without a loop",
        "rows = []",
        "for i in range(queries.shape[1]):",
        "    rows.append(softmax((queries[:, i : i + 1] * keys).sum(dim=-1), dim=-1))",
        "return torch.stack(rows, dim=1)",
    ),
    _weights(
        "overflows",
        "overflows",
        "e = torch.exp(queries @ keys.mT)",
        "return e / e.sum(dim=-1, keepdim=True)",
    ),
    _weights("detached", "cut off from the graph", _DOTS, "return softmax(scores.detach(), dim=-1)"),
    _weights("keys detached", "no gradient reaches `keys`", "return softmax(queries @ keys.detach().mT, dim=-1)"),
    _weights("float32 only", "keep dtype torch.float64", "return softmax(queries.float() @ keys.float().mT, dim=-1)"),
    _weights(
        "changes the queries in place",
        "`queries` was changed in place",
        "queries.data *= 2",
        "return softmax(queries @ keys.mT / 2, dim=-1)",
    ),
    _weights(
        "sizes of one squeezed away",
        "`squeeze()`",
        _DOTS,
        "return softmax(scores, dim=-1).squeeze()",
    ),
    _weights(
        "made on the CPU",
        "fails when its inputs are on a GPU",
        "scores = torch.zeros(len(queries), queries.shape[1], keys.shape[1], dtype=keys.dtype)",
        "return softmax(scores + queries @ keys.mT, dim=-1)",
    ),
    # basic_self_attention
    _attention("nothing returned", "is there a `return`?", "weighted_avg(x, normalized_dot_product(x, x))"),
    _attention("the weights returned", "these are the weights", "return normalized_dot_product(x, x)"),
    _attention(
        "two results", "return the average alone", "w = normalized_dot_product(x, x)", "return weighted_avg(x, w), w"
    ),
    _attention(
        "weights transposed", "the weights are transposed", "return weighted_avg(x, normalized_dot_product(x, x).mT)"
    ),
    _attention("arguments swapped", "Expected size", "return weighted_avg(normalized_dot_product(x, x), x)"),
    _attention("no softmax", "the dot products are used as weights", "return weighted_avg(x, x @ x.mT)"),
    _attention(
        "softmax over the wrong dimension",
        "the weights are transposed",
        "return weighted_avg(x, softmax(x @ x.mT, dim=1))",
    ),
    _attention(
        "softmax over the batch", "the softmax runs over the batch", "return weighted_avg(x, softmax(x @ x.mT, dim=0))"
    ),
    _attention("input added", "x itself is added", "return x + weighted_avg(x, normalized_dot_product(x, x))"),
    _attention(
        "already scaled",
        "divided by √d",
        "return weighted_avg(x, softmax(x @ x.mT / x.shape[-1] ** 0.5, dim=-1))",
    ),
    _attention(
        "cosine similarity",
        "the vectors are scaled to length 1",
        "unit = F.normalize(x, dim=-1)",
        "return weighted_avg(x, normalized_dot_product(unit, unit))",
    ),
    _attention(
        "first sequence's weights for all",
        "each has its own weights",
        "return weighted_avg(x, normalized_dot_product(x, x)[:1].expand(len(x), -1, -1))",
    ),
    _attention("plain mean", "this is the plain mean", "return x.mean(dim=1, keepdim=True).expand_as(x)"),
    _attention(
        "one average for a sequence",
        "should be (B, n, d)",
        "return weighted_avg(x, normalized_dot_product(x, x)).mean(dim=1)",
    ),
    _attention(
        "a position leaves itself out",
        "each position leaves itself out",
        "scores = x @ x.mT",
        "itself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)",
        "return weighted_avg(x, softmax(scores.masked_fill(itself, -1e9), dim=-1))",
    ),
    _attention(
        "the weights detached",
        "the weights are cut off from the graph",
        "return weighted_avg(x, normalized_dot_product(x.detach(), x.detach()))",
    ),
    _attention(
        "the averaged x detached",
        "the x that is averaged is cut off from the graph",
        "return weighted_avg(x.detach(), normalized_dot_product(x, x))",
    ),
    _attention("detached", "cut off from the graph", "return weighted_avg(x, normalized_dot_product(x, x)).detach()"),
    _attention(
        "float32 only",
        "keep dtype torch.float64",
        "x = x.float()",
        "return weighted_avg(x, normalized_dot_product(x, x))",
    ),
    _attention(
        "changes the input in place",
        "`x` was changed in place",
        "w = normalized_dot_product(x, x)",
        "y = weighted_avg(x, w)",
        "x.data.copy_(y)",
        "return y",
    ),
    # what is often seen
    _weights(
        "a softmax without a dimension",
        "where F.softmax goes without a `dim`",
        _DOTS,
        "return F.softmax(scores)",
    ),
    _attention(
        "a softmax without a dimension",
        "the softmax runs over the batch",
        "return F.softmax(x @ x.mT) @ x",
    ),
    *forging_answers(functions=["softmax", "normalized_dot_product", "basic_self_attention"]),
]

VARIANTS = [
    variant(
        "softmax",
        "max instead of amax",
        """
        def softmax(z, dim):
            largest, _ = z.max(dim=dim, keepdim=True)
            e = (z - largest).exp()
            return e / e.sum(dim, keepdim=True)
        """,
    ),
    variant(
        "softmax",
        "maximum detached",
        """
        def softmax(z, dim):
            z = z - z.detach().amax(dim, keepdim=True)
            return torch.exp(z) / torch.exp(z).sum(dim, keepdim=True)
        """,
    ),
    variant(
        "softmax",
        "unsqueeze instead of keepdim",
        """
        def softmax(z, dim):
            e = torch.exp(z - torch.max(z, dim=dim).values.unsqueeze(dim))
            return e / torch.sum(e, dim=dim).unsqueeze(dim)
        """,
    ),
    variant(
        "softmax",
        "the dimension moved to the end",
        """
        def positive(z):
            return torch.exp(z - z.amax(dim=-1, keepdim=True))

        def softmax(z, dim):
            e = positive(z.transpose(dim, -1))
            return (e / e.sum(dim=-1, keepdim=True)).transpose(dim, -1)
        """,
    ),
    variant(
        "softmax",
        "through the logarithm",
        """
        def softmax(z, dim):
            z = z - z.amax(dim=dim, keepdim=True)
            return torch.exp(z - torch.log(torch.exp(z).sum(dim=dim, keepdim=True)))
        """,
    ),
    variant(
        "softmax",
        "in place on a copy",
        """
        def softmax(z, dim):
            e = z.clone()
            e -= z.detach().amax(dim=dim, keepdim=True)
            e = e.exp()
            return e.div(e.sum(dim=dim, keepdim=True))
        """,
    ),
    variant(
        "normalized_dot_product",
        "matmul",
        """
        def normalized_dot_product(queries, keys):
            return softmax(torch.matmul(queries, keys.transpose(1, 2)), dim=2)
        """,
    ),
    variant(
        "normalized_dot_product",
        "bmm and torch's softmax",
        """
        def normalized_dot_product(queries, keys):
            return F.softmax(torch.bmm(queries, keys.mT), dim=-1)
        """,
    ),
    variant(
        "normalized_dot_product",
        "broadcasting",
        """
        def normalized_dot_product(queries, keys):
            scores = (queries[:, :, None, :] * keys[:, None, :, :]).sum(dim=-1)
            return softmax(scores, -1)
        """,
    ),
    variant(
        "normalized_dot_product",
        "keys first, softmax over their dimension",
        """
        def normalized_dot_product(queries, keys):
            return softmax(keys @ queries.mT, dim=1).mT
        """,
    ),
    variant(
        "normalized_dot_product",
        "softmax written out",
        """
        def normalized_dot_product(queries, keys):
            scores = torch.einsum("bid,bjd->bij", queries, keys)
            e = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
            return e / e.sum(dim=-1, keepdim=True)
        """,
    ),
    variant(
        "basic_self_attention",
        "arguments by name",
        """
        def basic_self_attention(x):
            return weighted_avg(weights=normalized_dot_product(queries=x, keys=x), x=x)
        """,
    ),
    variant(
        "basic_self_attention",
        "written out",
        """
        def basic_self_attention(x):
            return torch.softmax(x @ x.transpose(1, 2), dim=-1) @ x
        """,
    ),
    variant(
        "basic_self_attention",
        "two einsums",
        """
        def basic_self_attention(x):
            weights = softmax(torch.einsum("bid,bjd->bij", x, x), dim=2)
            return torch.einsum("bij,bjd->bid", weights, x)
        """,
    ),
    variant(
        "basic_self_attention",
        "a helper of one's own",
        """
        def attend(queries, keys, values):
            return weighted_avg(values, normalized_dot_product(queries, keys))

        def basic_self_attention(x):
            return attend(x, x, x)
        """,
    ),
]
