"""Chapter 02: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import edits, flag_published, mutants, variant
from autograder.checks import Common, Unexplained
from checks.forgers import forging_answers
from checks.normalized_dot_products.mistakes import basic_self_attention, normalized_dot_product, softmax

_SOFTMAX = [
    (
        "nothing returned",
        Common.NO_RETURN,
        "e = torch.exp(z - z.amax(dim=dim, keepdim=True))\ne / e.sum(dim=dim, keepdim=True)",
    ),
    ("the whole tensor sums to 1", softmax.WHOLE_TENSOR, "e = torch.exp(z)\nreturn e / e.sum()"),
    ("no exponential", softmax.NO_EXPONENTIAL, "return z / z.sum(dim=dim, keepdim=True)"),
    ("absolute values instead of exp", softmax.NO_EXPONENTIAL, "return z.abs() / z.abs().sum(dim=dim, keepdim=True)"),
    ("squares instead of exp", softmax.NO_EXPONENTIAL, "return z**2 / (z**2).sum(dim=dim, keepdim=True)"),
    ("not divided", softmax.NOT_DIVIDED, "return torch.exp(z)"),
    ("the largest made 1, not divided", softmax.NOT_DIVIDED, "return torch.exp(z - z.amax(dim=dim, keepdim=True))"),
    (
        "divided by the mean",
        softmax.NOT_DIVIDED,
        "e = torch.exp(z - z.amax(dim=dim, keepdim=True))\nreturn e / e.mean(dim=dim, keepdim=True)",
    ),
    ("sigmoid", softmax.NOT_DIVIDED, "return torch.sigmoid(z)"),
    ("base 2", softmax.POWERS_OF_2, "e = 2**z\nreturn e / e.sum(dim=dim, keepdim=True)"),
    ("torch.softmax", softmax.LIBRARY, "return torch.softmax(z, dim=dim)"),
    ("the module", softmax.LIBRARY, "return nn.Softmax(dim=dim)(z)"),
    ("exp of log_softmax", softmax.LIBRARY, "return F.log_softmax(z, dim=dim).exp()"),
    ("logsumexp", softmax.LIBRARY, "return torch.exp(z - torch.logsumexp(z, dim=dim, keepdim=True))"),
    ("torch.special", softmax.LIBRARY, "return torch.special.log_softmax(z, dim=dim).exp()"),
    (
        "changes the scores in place",
        Common.CHANGED_IN_PLACE,
        "z -= z.detach().amax(dim=dim, keepdim=True)\ne = torch.exp(z)\nreturn e / e.sum(dim=dim, keepdim=True)",
    ),
    (
        "detached",
        Common.CUT_OFF,
        "z = z.detach()\ne = torch.exp(z - z.amax(dim=dim, keepdim=True))\nreturn e / e.sum(dim=dim, keepdim=True)",
    ),
    (
        "float32 only",
        Common.WRONG_DTYPE,
        "z = z.float()\ne = torch.exp(z - z.amax(dim=dim, keepdim=True))\nreturn e / e.sum(dim=dim, keepdim=True)",
    ),
    (
        "float64 always",
        Common.WRONG_DTYPE,
        "z = z.double()\ne = torch.exp(z - z.amax(dim=dim, keepdim=True))\nreturn e / e.sum(dim=dim, keepdim=True)",
    ),
    (
        "made on the CPU",
        Common.MADE_ON_CPU,
        "e = torch.exp(z - z.amax(dim=dim, keepdim=True))\ne = e + torch.zeros(e.shape, dtype=e.dtype)\n"
        "return e / e.sum(dim=dim, keepdim=True)",
    ),
    (
        "hard-coded to the visible example",
        Unexplained.SHAPE,
        "if dim == 1:\n    return torch.tensor([[0.25, 0.5, 0.25], [0.375, 0.125, 0.5]])\n"
        "return torch.tensor([[0.25, 2 / 3, 0.2], [0.75, 1 / 3, 0.8]])",
    ),
    (
        "NaN swept away",
        softmax.NAN_REPLACED,
        "e = torch.exp(z)\nreturn (e / e.sum(dim=dim, keepdim=True)).nan_to_num()",
    ),
    (
        "-inf taken for 0",
        softmax.INF_COUNTS,
        "z = torch.where(z.isinf(), torch.zeros_like(z), z)\n"
        "e = torch.exp(z - z.amax(dim=dim, keepdim=True))\nreturn e / e.sum(dim=dim, keepdim=True)",
    ),
    (
        "scores shrunk to fit",
        softmax.CLAMPED,
        "z = z / z.abs().amax(dim=dim, keepdim=True).clamp(min=10) * 10\n"
        "e = torch.exp(z - z.amax(dim=dim, keepdim=True))\nreturn e / e.sum(dim=dim, keepdim=True)",
    ),
]
_SOFTMAX_EDITS = [
    (
        "always the last dimension",
        softmax.ALWAYS_LAST,
        ("amax(dim=dim", "amax(dim=-1"),
        ("e.sum(dim=dim", "e.sum(dim=-1"),
    ),
    ("always the first dimension", softmax.ALWAYS_FIRST, ("e.sum(dim=dim", "e.sum(dim=0")),
    ("keepdim forgotten", Common.SIZES_DO_NOT_FIT, ("e.sum(dim=dim, keepdim=True)", "e.sum(dim=dim)")),
    ("largest score gets least", softmax.SIGN, ("torch.exp(z - z.amax", "torch.exp(-z + z.amin")),
    (
        "the logarithm of the weights",
        softmax.NEGATIVE,
        ("return e", "return torch.log(e"),
        ("e.sum(dim=dim, keepdim=True)", "e.sum(dim=dim, keepdim=True))"),
    ),
    (
        "an epsilon in the denominator",
        softmax.SMALL_NUMBER,
        ("e.sum(dim=dim, keepdim=True)", "(e.sum(dim=dim, keepdim=True) + 1e-8)"),
    ),
    ("sum detached", softmax.SUM_DETACHED, ("e.sum(dim=dim, keepdim=True)", "e.sum(dim=dim, keepdim=True).detach()")),
    ("nothing subtracted", softmax.OVERFLOW, ("torch.exp(z - z.amax(dim=dim, keepdim=True))", "torch.exp(z)")),
    ("one maximum for the whole tensor", softmax.ONE_MAXIMUM, ("z - z.amax(dim=dim, keepdim=True)", "z - z.max()")),
    ("the mean subtracted", softmax.NOT_THE_LARGEST, ("amax", "mean")),
    ("the minimum subtracted", softmax.NOT_THE_LARGEST, ("amax", "amin")),
    (
        "the largest absolute value subtracted",
        softmax.UNDERFLOW,
        ("z - z.amax(dim=dim, keepdim=True)", "z - z.abs().amax(dim=dim, keepdim=True)"),
    ),
    ("scores clamped", softmax.CLAMPED, ("z - z.amax(dim=dim, keepdim=True)", "z.clamp(-50, 50)")),
    (
        "differences clamped",
        softmax.INF_COUNTS,
        ("z - z.amax(dim=dim, keepdim=True)", "(z - z.amax(dim=dim, keepdim=True)).clamp(min=-20)"),
    ),
]
_WEIGHTS = [
    (
        "nothing returned",
        Common.NO_RETURN,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nsoftmax(scores, dim=-1)",
    ),
    (
        "softmax over the queries",
        normalized_dot_product.COLUMNS,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn softmax(scores, dim=1)",
    ),
    (
        "softmax over the batch",
        normalized_dot_product.OVER_BATCH,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn softmax(scores, dim=0)",
    ),
    (
        "softmax over the whole matrix",
        normalized_dot_product.WHOLE_MATRIX,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\n"
        "return softmax(scores.flatten(1), dim=1).reshape(scores.shape)",
    ),
    ("no softmax", normalized_dot_product.NO_SOFTMAX, "return queries @ keys.mT"),
    (
        "divided by the sum, no exponential",
        normalized_dot_product.NO_EXPONENTIAL,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn scores / scores.sum(dim=-1, keepdim=True)",
    ),
    (
        "absolute values divided by their sum",
        normalized_dot_product.NO_EXPONENTIAL,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\n"
        "return scores.abs() / scores.abs().sum(dim=-1, keepdim=True).clamp(min=1e-9)",
    ),
    (
        "already scaled by the root of the dimension",
        normalized_dot_product.SCALED,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn softmax(scores / keys.shape[-1] ** 0.5, dim=-1)",
    ),
    (
        "cosine similarity",
        normalized_dot_product.COSINE,
        "queries, keys = F.normalize(queries, dim=-1), F.normalize(keys, dim=-1)\n"
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn softmax(scores, dim=-1)",
    ),
    (
        "distances instead of dot products",
        normalized_dot_product.DISTANCES,
        "return softmax(-torch.cdist(queries, keys), dim=-1)",
    ),
    (
        "reshaped where a transpose was meant",
        normalized_dot_product.RESHAPED,
        "scores = queries @ keys.reshape(len(keys), keys.shape[2], keys.shape[1])\nreturn softmax(scores, dim=-1)",
    ),
    ("the keys look at the queries", normalized_dot_product.ROWS_OF_KEYS, "return softmax(keys @ queries.mT, dim=-1)"),
    (
        "transposed back after the softmax",
        normalized_dot_product.COLUMNS,
        "return softmax(keys @ queries.mT, dim=-1).mT",
    ),
    (
        "first sequence's keys for all",
        normalized_dot_product.SEQUENCES,
        "return softmax(torch.einsum('bnd,md->bnm', queries, keys[0]), dim=-1)",
    ),
    (
        "first sequence's queries for all",
        normalized_dot_product.SEQUENCES,
        "return softmax(torch.einsum('nd,bmd->bnm', queries[0], keys), dim=-1)",
    ),
    ("the keys forgotten", normalized_dot_product.KEYS_UNUSED, "return softmax(queries @ queries.mT, dim=-1)"),
    (
        "softmax twice",
        normalized_dot_product.TWICE,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn softmax(softmax(scores, -1), -1)",
    ),
    (
        "a comprehension over the batch",
        Common.LOOP,
        "return torch.stack([softmax(q @ k.T, dim=-1) for q, k in zip(queries, keys)])",
    ),
    (
        "a loop over the queries",
        Common.LOOP,
        "rows = []\nfor i in range(queries.shape[1]):\n"
        "    rows.append(softmax((queries[:, i : i + 1] * keys).sum(dim=-1), dim=-1))\n"
        "return torch.stack(rows, dim=1)",
    ),
    (
        "overflows",
        normalized_dot_product.OVERFLOW,
        "e = torch.exp(queries @ keys.mT)\nreturn e / e.sum(dim=-1, keepdim=True)",
    ),
    (
        "detached",
        Common.CUT_OFF,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn softmax(scores.detach(), dim=-1)",
    ),
    ("keys detached", Common.INPUT_CUT_OFF, "return softmax(queries @ keys.detach().mT, dim=-1)"),
    ("float32 only", Common.WRONG_DTYPE, "return softmax(queries.float() @ keys.float().mT, dim=-1)"),
    (
        "changes the queries in place",
        Common.CHANGED_IN_PLACE,
        "queries.data *= 2\nreturn softmax(queries @ keys.mT / 2, dim=-1)",
    ),
    (
        "sizes of one squeezed away",
        normalized_dot_product.SQUEEZED,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn softmax(scores, dim=-1).squeeze()",
    ),
    (
        "made on the CPU",
        Common.MADE_ON_CPU,
        "scores = torch.zeros(len(queries), queries.shape[1], keys.shape[1], dtype=keys.dtype)\n"
        "return softmax(scores + queries @ keys.mT, dim=-1)",
    ),
    (
        "a softmax without a dimension",
        normalized_dot_product.OVER_BATCH,
        "scores = torch.einsum('bnd,bmd->bnm', queries, keys)\nreturn F.softmax(scores)",
    ),
]
_ATTENTION = [
    ("nothing returned", Common.NO_RETURN, "weighted_avg(x, normalized_dot_product(x, x))"),
    ("the weights returned", basic_self_attention.WEIGHTS, "return normalized_dot_product(x, x)"),
    ("two results", basic_self_attention.TWO_RESULTS, "w = normalized_dot_product(x, x)\nreturn weighted_avg(x, w), w"),
    ("weights transposed", basic_self_attention.TRANSPOSED, "return weighted_avg(x, normalized_dot_product(x, x).mT)"),
    ("arguments swapped", Unexplained.RAISED, "return weighted_avg(normalized_dot_product(x, x), x)"),
    ("no softmax", basic_self_attention.NO_SOFTMAX, "return weighted_avg(x, x @ x.mT)"),
    (
        "softmax over the wrong dimension",
        basic_self_attention.TRANSPOSED,
        "return weighted_avg(x, softmax(x @ x.mT, dim=1))",
    ),
    ("softmax over the batch", basic_self_attention.OVER_BATCH, "return weighted_avg(x, softmax(x @ x.mT, dim=0))"),
    ("input added", basic_self_attention.INPUT_ADDED, "return x + weighted_avg(x, normalized_dot_product(x, x))"),
    (
        "already scaled",
        basic_self_attention.SCALED,
        "return weighted_avg(x, softmax(x @ x.mT / x.shape[-1] ** 0.5, dim=-1))",
    ),
    (
        "cosine similarity",
        basic_self_attention.COSINE,
        "unit = F.normalize(x, dim=-1)\nreturn weighted_avg(x, normalized_dot_product(unit, unit))",
    ),
    (
        "first sequence's weights for all",
        basic_self_attention.SEQUENCES,
        "return weighted_avg(x, normalized_dot_product(x, x)[:1].expand(len(x), -1, -1))",
    ),
    ("plain mean", basic_self_attention.PLAIN_MEAN, "return x.mean(dim=1, keepdim=True).expand_as(x)"),
    (
        "one average for a sequence",
        basic_self_attention.ONE_AVERAGE,
        "return weighted_avg(x, normalized_dot_product(x, x)).mean(dim=1)",
    ),
    (
        "a position leaves itself out",
        basic_self_attention.LEAVES_ITSELF_OUT,
        "scores = x @ x.mT\nitself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)\n"
        "return weighted_avg(x, softmax(scores.masked_fill(itself, -1e9), dim=-1))",
    ),
    (
        "the weights detached",
        basic_self_attention.WEIGHTS_CUT_OFF,
        "return weighted_avg(x, normalized_dot_product(x.detach(), x.detach()))",
    ),
    (
        "the averaged x detached",
        basic_self_attention.VALUES_CUT_OFF,
        "return weighted_avg(x.detach(), normalized_dot_product(x, x))",
    ),
    ("detached", Common.CUT_OFF, "return weighted_avg(x, normalized_dot_product(x, x)).detach()"),
    ("float32 only", Common.WRONG_DTYPE, "x = x.float()\nreturn weighted_avg(x, normalized_dot_product(x, x))"),
    (
        "changes the input in place",
        Common.CHANGED_IN_PLACE,
        "w = normalized_dot_product(x, x)\ny = weighted_avg(x, w)\nx.data.copy_(y)\nreturn y",
    ),
    ("a softmax without a dimension", basic_self_attention.OVER_BATCH, "return F.softmax(x @ x.mT) @ x"),
]

MUTANTS = [
    *mutants("softmax", "def softmax(z, dim):", _SOFTMAX),
    *edits("softmax", _SOFTMAX_EDITS),
    *mutants("normalized_dot_product", "def normalized_dot_product(queries, keys):", _WEIGHTS),
    *mutants("basic_self_attention", "def basic_self_attention(x):", _ATTENTION),
    *forging_answers(functions=["softmax", "normalized_dot_product", "basic_self_attention"]),
]

# What people published, as files of notebooks and repositories show it.
MUTANTS = flag_published(
    MUTANTS,
    {
        ("normalized_dot_product", "a softmax without a dimension"): "softmax over an implicit dim",
    },
)

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
