"""Chapter 04: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import Answer, edited_variant, edits, mutants, variant
from autograder.checks import Common, Mistake, Unexplained
from checks.forgers import OF_TENSORS, forging_answers, forging_dropout, forging_function
from checks.multi_head_attention.mistakes import Attention as A
from checks.multi_head_attention.mistakes import copy_into_torch as C
from checks.multi_head_attention.mistakes import count_parameters as N
from checks.multi_head_attention.mistakes import merge_heads as M
from checks.multi_head_attention.mistakes import split_heads as S

_SPLIT = """def split_heads(x, heads):
    B, n, d = x.shape
    if x.shape[-1] % heads:
        raise ValueError('heads must divide the features')"""
_MERGE = "def merge_heads(x):\n    B, h, n, k = x.shape"
_COUNT_HEAD = "def count_parameters(module):"


def _split(body: str) -> str:
    return f"{_SPLIT}\n    {body}"


def _merge(body: str) -> str:
    return f"{_MERGE}\n    {body}"


def _count(body: str) -> str:
    return f"{_COUNT_HEAD}\n    {body}"


_SPLIT_MUTANTS = [
    *mutants(
        "split_heads",
        _SPLIT,
        [
            ("nothing returned", Common.NO_RETURN, "x.reshape(B, n, heads, d // heads)"),
            ("one reshape, no transpose", S.MIXED_UP, "return x.reshape(B, heads, n, d // heads)"),
            ("heads interleaved", S.INTERLEAVED, "return x.reshape(B, n, d // heads, heads).permute(0, 3, 1, 2)"),
            (
                "heads interleaved by slices",
                S.INTERLEAVED,
                "return torch.stack([x[..., h::heads] for h in range(heads)], dim=1)",
            ),
            ("not transposed", S.AFTER_POSITIONS, "return x.reshape(B, n, heads, d // heads)"),
            ("heads before the batch", S.BEFORE_BATCH, "return torch.stack(x.chunk(heads, dim=-1))"),
            (
                "features before positions",
                S.FEATURES_FIRST,
                "return x.reshape(B, n, heads, d // heads).permute(0, 2, 3, 1)",
            ),
            ("d/h heads of h features", S.SIZES_EXCHANGED, "return x.reshape(B, n, d // heads, heads).transpose(1, 2)"),
            ("head 0 for all", S.HEAD_0, "return x[:, None, :, : d // heads].expand(B, heads, n, d // heads)"),
            (
                "last head forgotten, zeros there",
                Unexplained.VALUES,
                "y = x.new_zeros(B, heads, n, d // heads)\n"
                "y[:, :-1] = x.reshape(B, n, heads, d // heads).transpose(1, 2)[:, :-1]\n"
                "return y",
            ),
            (
                "heads in a loop",
                Common.LOOP,
                "return torch.stack([x[..., h * (d // heads):(h + 1) * (d // heads)] for h in range(heads)], dim=1)",
            ),
            (
                "item 0 for the whole batch",
                S.ITEM_0,
                "return x[:1].expand(B, n, d).reshape(B, n, heads, d // heads).transpose(1, 2)",
            ),
            ("detached", Common.CUT_OFF, "return x.detach().reshape(B, n, heads, d // heads).transpose(1, 2)"),
            ("float32 only", Common.WRONG_DTYPE, "return x.float().reshape(B, n, heads, d // heads).transpose(1, 2)"),
            (
                "made on the CPU",
                Common.MADE_ON_CPU,
                "y = torch.zeros(B, heads, n, d // heads, dtype=x.dtype)\n"
                "return y + x.reshape(B, n, heads, d // heads).transpose(1, 2)",
            ),
            (
                "hard-coded to the visible example",
                Unexplained.RAISED,
                "return x.reshape(1, 2, 3, 2).transpose(1, 2) if x.numel() == 12 else x.reshape(-1, 2, 3, 2)",
            ),
        ],
    ),
    *mutants(
        "split_heads",
        "",
        [
            (
                "no error, torch's own instead",
                Common.OTHER_ERROR,
                """
        def split_heads(x, heads):
            B, n, d = x.shape
            return x.reshape(B, n, heads, d // heads).transpose(1, 2)
        """,
            ),
            (
                "an assert for an error",
                Common.OTHER_ERROR,
                """
        def split_heads(x, heads):
            B, n, d = x.shape
            assert d % heads == 0
            return x.reshape(B, n, heads, d // heads).transpose(1, 2)
        """,
            ),
            (
                "the remainder is dropped",
                Common.NO_ERROR,
                """
        def split_heads(x, heads):
            B, n, d = x.shape
            k = d // heads
            return x[..., : heads * k].reshape(B, n, heads, k).transpose(1, 2)
        """,
            ),
            (
                "the error the wrong way round",
                Unexplained.RAISED,
                """
        def split_heads(x, heads):
            B, n, d = x.shape
            if heads % d:
                raise ValueError
            return x.reshape(B, n, heads, d // heads).transpose(1, 2)
        """,
            ),
        ],
    ),
]

_SPLIT_VARIANTS = [
    variant("split_heads", "view, permute", _split("return x.view(B, n, heads, -1).permute(0, 2, 1, 3)")),
    variant("split_heads", "unflatten", _split("return x.unflatten(-1, (heads, -1)).transpose(-2, -3)")),
    variant("split_heads", "chunk and stack", _split("return torch.stack(x.chunk(heads, dim=-1), dim=1)")),
    variant(
        "split_heads",
        "einsum, contiguous",
        _split("return torch.einsum('bnhk->bhnk', x.reshape(B, n, heads, d // heads)).contiguous()"),
    ),
]

_MERGE_MUTANTS = mutants(
    "merge_heads",
    _MERGE,
    [
        ("nothing returned", Common.NO_RETURN, "x.transpose(1, 2).flatten(2)"),
        ("one reshape, no transpose", M.MIXED_UP, "return x.reshape(B, n, h * k)"),
        ("heads interleaved", M.INTERLEAVED, "return x.permute(0, 2, 3, 1).reshape(B, n, h * k)"),
        ("features before positions", M.EXCHANGED, "return x.transpose(2, 3).reshape(B, h * k, n)"),
        ("heads added up", M.ADDED, "return x.sum(dim=1)"),
        ("heads averaged", M.AVERAGED, "return x.mean(dim=1)"),
        ("only head 0", M.HEAD_0, "return x[:, 0]"),
        ("heads in reverse order", M.REVERSED, "return x.flip(1).transpose(1, 2).flatten(2)"),
        ("heads as positions", M.AS_POSITIONS, "return x.flatten(1, 2)"),
        ("item 0 for the whole batch", M.ITEM_0, "return x[:1].expand_as(x).transpose(1, 2).flatten(2)"),
        ("view after transpose", Common.VIEW_OF_TRANSPOSED, "return x.transpose(1, 2).view(B, n, h * k)"),
        ("squeezed", M.NO_BATCH, "return x.transpose(1, 2).flatten(2).squeeze()"),
        ("heads in a loop", Common.LOOP, "return torch.cat([x[:, i] for i in range(h)], dim=-1)"),
        ("detached", Common.CUT_OFF, "return x.data.transpose(1, 2).flatten(2)"),
        ("float32 only", Common.WRONG_DTYPE, "return x.float().transpose(1, 2).flatten(2)"),
        (
            "made on the CPU",
            Common.MADE_ON_CPU,
            "return torch.zeros(B, n, h * k, dtype=x.dtype) + x.transpose(1, 2).flatten(2)",
        ),
        (
            "changes the input in place",
            Common.CHANGED_IN_PLACE,
            "y = x.transpose(1, 2).flatten(2)\nx.zero_()\nreturn y",
        ),
    ],
)

_MERGE_VARIANTS = [
    variant("merge_heads", "flatten", _merge("return x.transpose(1, 2).flatten(2)")),
    variant("merge_heads", "contiguous view", _merge("return x.permute(0, 2, 1, 3).contiguous().view(B, n, -1)")),
    variant("merge_heads", "unbind and cat", _merge("return torch.cat(x.unbind(dim=1), dim=-1)")),
    variant("merge_heads", "einsum", _merge("return torch.einsum('bhnk->bnhk', x).reshape(B, n, h * k)")),
]


def _mask_mutants(name: str, attend: str, attend_with: str) -> list[Answer]:
    """Mistakes with masks, as edits of lines that both classes have.

    Args:
        name: the class.
        attend: the text of its reference that calls attention with `mask`.
        attend_with: the same with `{}` in the place of the mask.
    """
    unsqueeze = "mask = mask.unsqueeze(1)"
    condition = "if mask is not None and mask.dim() == 3:"
    return edits(
        name,
        [
            ("mask ignored", A.MASK_IGNORED, (attend, attend_with.format("None"))),
            (
                "mask for head 0 only",
                A.MASK_IN_HEAD_0,
                (
                    attend,
                    "if mask is not None:\n"
                    "            shape = (len(q), self.heads, q.shape[2], k.shape[2])\n"
                    "            mask = mask.expand(shape).clone()\n"
                    "            mask[:, 1:] = True\n        " + attend,
                ),
            ),
            (
                "mask with the wrong sign",
                A.MASK_TURNED,
                (attend, attend_with.format("None if mask is None else ~mask")),
            ),
            ("mask lined up with the heads", A.MASK_LINED_UP, (unsqueeze, "mask = mask")),
            ("mask of item 0 for all", A.MASK_OF_ITEM_0, (unsqueeze, "mask = mask[:1].unsqueeze(1)")),
            (
                "mask of head 0 for all heads",
                A.MASK_OF_HEAD_0,
                (attend, attend_with.format("mask if mask is None or mask.dim() < 4 else mask[:, :1]")),
            ),
            (
                "mask transposed",
                A.MASK_TRANSPOSED,
                (
                    attend,
                    "if mask is not None:\n"
                    "            mask = mask.expand(len(q), self.heads, q.shape[2], k.shape[2])\n"
                    "            mask = mask.mT if q.shape[2] == k.shape[2] else mask\n        " + attend,
                ),
            ),
            ("three dimensions of mask only", A.MASK_OF_TWO, (condition, "if mask is not None:")),
        ],
    )


def _scores_mutants(name: str, attend: str, own: str) -> list[Answer]:
    """Attention computed by oneself, wrongly.

    Args:
        name: the class.
        attend: the text of its reference that computes the weights.
        own: what follows once `weights` is computed, if anything.
    """

    filled = "scores = scores if mask is None else scores.masked_fill(~mask, {})"
    lowest = filled.format("-1e30")
    scaled, softmax = "scores = q @ k.mT / q.shape[-1] ** 0.5", "weights = scores.softmax(dim=-1)"
    zeroed = "weights = weights if mask is None else weights * mask"
    usual = [lowest, softmax, zeroed]
    by_all = "scores = q @ k.mT / (q.shape[-1] * self.heads) ** 0.5"
    added = "scores = scores if mask is None else scores + mask"
    weights = "weights = query_key_weights(q, k, mask){}"
    head_0 = weights.format("[:, :1].expand(-1, self.heads, -1, -1)")
    rows: list[tuple[str, Mistake, list[str]]] = [
        ("scaled by the root of the full dim", A.BY_ALL_FEATURES, [by_all, *usual]),
        ("scaled by the root of the sequence length", A.BY_LENGTH, ["scores = q @ k.mT / k.shape[-2] ** 0.5", *usual]),
        ("not scaled", A.NOT_SCALED, ["scores = q @ k.mT", *usual]),
        ("scaled by d/h, not its root", A.BY_NO_ROOT, ["scores = q @ k.mT / q.shape[-1]", *usual]),
        ("softmax over the heads", A.OVER_HEADS, [scaled, lowest, "weights = scores.softmax(dim=1)", zeroed]),
        ("softmax over the queries", A.OVER_QUERIES, [scaled, lowest, "weights = scores.softmax(dim=-2)", zeroed]),
        ("mask after the softmax", A.MASK_AFTER, [scaled, softmax, zeroed]),
        ("masked scores set to 0", A.MASK_IGNORED, [scaled, filled.format("0"), softmax]),
        ("a row without anything to attend to is uniform", A.EMPTY_ROW, [scaled, lowest, softmax]),
        ("a row without anything to attend to is NaN", Common.NAN, [scaled, filled.format("float('-inf')"), softmax]),
        ("the mask is added", A.MASK_ADDED, [scaled, added, softmax]),
        ("weights of item 0 for all", A.WEIGHTS_OF_ITEM_0, [weights.format("[:1].expand(len(q), -1, -1, -1)")]),
        ("weights of head 0 for all", A.WEIGHTS_OF_HEAD_0, [head_0]),
        ("weights detached", Common.PARAMETER_UNUSED, [weights.format(".detach()")]),
    ]
    return edits(
        name, [(t, mistake, (attend, "\n        ".join([*lines, own]).rstrip())) for t, mistake, lines in rows]
    )


_NARROW = "NarrowSelfAttention"
_NARROW_ATTEND = "output, _ = scaled_dot_product_attention(q, k, v, mask)"
_NARROW_QKV = "q, k, v = self.Wq(slices), self.Wk(slices), self.Wv(slices)"
_NARROW_OUTPUT = "return self.WO(merge_heads(output))"
_NARROW_MAPS = "nn.Linear(dim // heads, dim // heads, bias=False)"


_NARROW_OUTPUTS = [
    ("residual", A.RESIDUAL, "self.WO(merge_heads(output)) + x"),
    ("made on the CPU", Common.MADE_ON_CPU, "self.WO(merge_heads(output)) + torch.zeros(x.shape[1], 1, dtype=x.dtype)"),
    ("float32 only", Common.WRONG_DTYPE, "self.WO(merge_heads(output)).float()"),
]
_NARROW_MUTANTS = [
    *edits(
        _NARROW,
        [
            ("nothing returned", Common.NO_RETURN, (_NARROW_OUTPUT, "self.WO(merge_heads(output))")),
            (
                "weights returned too",
                Common.NOT_A_TENSOR,
                (_NARROW_ATTEND, _NARROW_ATTEND.replace("output, _", "output, weights")),
                (_NARROW_OUTPUT, _NARROW_OUTPUT + ", weights"),
            ),
            (
                "heads interleaved",
                A.INTERLEAVED,
                ("split_heads(x, self.heads)", "x.unflatten(-1, (-1, self.heads)).permute(0, 3, 1, 2)"),
                ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
            ),
            (
                "one reshape in, one reshape out",
                A.MIXED_UP,
                ("split_heads(x, self.heads)", "x.reshape(len(x), self.heads, x.shape[1], -1)"),
                ("merge_heads(output)", "output.reshape(x.shape)"),
            ),
            ("merged without the transpose", A.MIXED_UP_AFTER, ("merge_heads(output)", "output.reshape(x.shape)")),
            (
                "merged in the wrong order",
                A.ORDER_AFTER,
                ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
            ),
            (
                "queries and keys swapped",
                A.MAPS_SWAPPED,
                (_NARROW_ATTEND, "output, _ = scaled_dot_product_attention(k, q, v, mask)"),
            ),
            ("values not mapped", A.NO_VALUE_MAP, ("self.Wv(slices)", "slices")),
            ("Wq used for the keys", A.KEYS_BY_WQ, ("self.Wk(slices)", "self.Wq(slices)")),
            ("Wk used for the values", A.VALUES_BY_WK, ("self.Wv(slices)", "self.Wk(slices)")),
            ("WO left out", A.NO_OUTPUT_MAP, ("return self.WO(merge_heads(output))", "return merge_heads(output)")),
            (
                "every head sees slice 0",
                A.SLICE_0,
                ("split_heads(x, self.heads)", "split_heads(x, self.heads)[:, :1].expand(-1, self.heads, -1, -1)"),
            ),
            (
                "heads averaged",
                A.HEADS_AVERAGED,
                ("merge_heads(output)", "merge_heads(output.mean(dim=1, keepdim=True).expand_as(output))"),
            ),
            (
                "wide maps",
                A.MAPS_OF_A_SLICE,
                (f"self.Wq = {_NARROW_MAPS}", "self.Wq = nn.Linear(dim, dim, bias=False)"),
                (f"self.Wk = {_NARROW_MAPS}", "self.Wk = nn.Linear(dim, dim, bias=False)"),
                (f"self.Wv = {_NARROW_MAPS}", "self.Wv = nn.Linear(dim, dim, bias=False)"),
                (_NARROW_QKV, "q, k, v = (split_heads(W(x), self.heads) for W in (self.Wq, self.Wk, self.Wv))"),
            ),
            (
                "a bias too many",
                Common.PARAMETER_TOO_MANY,
                (f"self.Wq = {_NARROW_MAPS}", "self.Wq = nn.Linear(dim // heads, dim // heads)"),
            ),
            (
                "maps for each head",
                A.MAPS_OF_A_SLICE,
                (f"self.Wq = {_NARROW_MAPS}", f"self.Wq = nn.ModuleList({_NARROW_MAPS} for _ in range(heads))"),
                ("self.Wq(slices)", "torch.stack([W(s) for W, s in zip(self.Wq, slices.unbind(1))], dim=1)"),
            ),
            (
                "a loop over the heads",
                Common.LOOP,
                (
                    _NARROW_ATTEND,
                    "masks = [None if mask is None else mask.expand(len(x), self.heads, x.shape[1], x.shape[1])[:, h]"
                    " for h in range(self.heads)]\n"
                    "        output = torch.stack([scaled_dot_product_attention(q[:, h], k[:, h], v[:, h], m)[0]"
                    " for h, m in enumerate(masks)], dim=1)",
                ),
            ),
            ("no error", Common.NO_ERROR, ("if dim % heads != 0:", "if dim < 0:")),
            (
                "detached",
                Common.CUT_OFF,
                ("return self.WO(merge_heads(output))", "return self.WO(merge_heads(output)).detach()"),
            ),
            (
                "input detached",
                Common.INPUT_CUT_OFF,
                ("split_heads(x, self.heads)", "split_heads(x.detach(), self.heads)"),
            ),
            ("queries cut off", Common.PARAMETER_UNUSED, ("self.Wq(slices)", "self.Wq(slices).detach()")),
            *((title, mistake, (_NARROW_OUTPUT, f"return {to}")) for title, mistake, to in _NARROW_OUTPUTS),
            (
                "changes the input in place",
                Common.CHANGED_IN_PLACE,
                (_NARROW_OUTPUT, "y = self.WO(merge_heads(output))\n        x.data.mul_(0.5)\n        return y"),
            ),
        ],
    ),
    *_mask_mutants(_NARROW, _NARROW_ATTEND, "output, _ = scaled_dot_product_attention(q, k, v, {})"),
    *_scores_mutants(_NARROW, _NARROW_ATTEND, "output = weights @ v"),
]

_NARROW_VARIANTS = [
    variant(
        _NARROW,
        "torch's fused function",
        """
        class NarrowSelfAttention(nn.Module):
            def __init__(self, dim, heads):
                super().__init__()
                if dim % heads:
                    raise ValueError(f"{heads} does not divide {dim}")
                self.WO = nn.Linear(dim, dim)
                self.Wv = nn.Linear(dim // heads, dim // heads, bias=False)
                self.Wk = nn.Linear(dim // heads, dim // heads, bias=False)
                self.Wq = nn.Linear(dim // heads, dim // heads, bias=False)
                self.h = heads

            def forward(self, x, mask=None):
                B, n, d = x.shape
                s = x.view(B, n, self.h, d // self.h)
                q, k, v = (W(s).transpose(1, 2) for W in (self.Wq, self.Wk, self.Wv))
                if mask is not None and mask.ndim == 3:
                    mask = mask[:, None]
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                return self.WO(y.transpose(1, 2).reshape(B, n, d))
        """,
    ),
    variant(
        _NARROW,
        "einsum throughout",
        """
        class NarrowSelfAttention(nn.Module):
            def __init__(self, dim, heads):
                super().__init__()
                if dim % heads != 0:
                    raise ValueError("heads must divide dim")
                self.heads, self.size = heads, dim // heads
                self.Wq, self.Wk, self.Wv = (nn.Linear(self.size, self.size, bias=False) for _ in range(3))
                self.WO = nn.Linear(dim, dim)

            def forward(self, x, mask=None):
                s = x.unflatten(-1, (self.heads, self.size))
                scores = torch.einsum("bihk,bjhk->bhij", self.Wq(s), self.Wk(s)) / self.size**0.5
                if mask is not None:
                    mask = mask.unsqueeze(-3) if mask.dim() == 3 else mask
                    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
                weights = scores.softmax(-1)
                if mask is not None:
                    weights = torch.where(mask, weights, torch.zeros_like(weights))
                return self.WO(torch.einsum("bhij,bjhk->bihk", weights, self.Wv(s)).flatten(2))
        """,
    ),
    variant(
        _NARROW,
        "heads folded into the batch",
        """
        class NarrowSelfAttention(nn.Module):
            def __init__(self, dim, heads):
                super().__init__()
                if dim % heads != 0:
                    raise ValueError("heads must divide dim")
                self.heads = heads
                k = dim // heads
                self.Wq = nn.Linear(k, k, bias=False)
                self.Wk = nn.Linear(k, k, bias=False)
                self.Wv = nn.Linear(k, k, bias=False)
                self.WO = nn.Linear(dim, dim)

            def forward(self, x, mask=None):
                B, n, d = x.shape
                s = split_heads(x, self.heads).reshape(B * self.heads, n, -1)
                if mask is not None:
                    if mask.dim() == 3:
                        mask = mask.unsqueeze(1)
                    mask = mask.expand(B, self.heads, n, n).reshape(B * self.heads, n, n)
                y, _ = scaled_dot_product_attention(self.Wq(s), self.Wk(s), self.Wv(s), mask)
                return self.WO(merge_heads(y.view(B, self.heads, n, -1)))
        """,
    ),
    edited_variant(
        _NARROW,
        "a helper of one's own",
        (
            "class NarrowSelfAttention(nn.Module):",
            "def for_heads(mask):\n"
            "    return mask[:, None] if mask is not None and mask.dim() == 3 else mask\n\n\n"
            "class NarrowSelfAttention(nn.Module):",
        ),
        ("if mask is not None and mask.dim() == 3:", "if True:"),
        ("mask = mask.unsqueeze(1)", "mask = for_heads(mask)"),
    ),
]

_WIDE = "MultiHeadAttention"
_WIDE_ATTEND = "weights = query_key_weights(q, k, mask)"
_WIDE_OUTPUT = "output = self.dropout(weights) @ v"
_WIDE_RETURN = "return self.WO(merge_heads(output)), weights"
_Q = "q = split_heads(self.Wq(queries), self.heads)"
_K = "k = split_heads(self.Wk(keys), self.heads)"
_V = "v = split_heads(self.Wv(values), self.heads)"

_WIDE_RETURNS = [
    ("no weights returned", A.ONE_RESULT, "self.WO(merge_heads(output))"),
    ("weights first", A.WEIGHTS_FIRST, "weights, self.WO(merge_heads(output))"),
    ("weights averaged over the heads", A.WEIGHTS_AVERAGED, "self.WO(merge_heads(output)), weights.mean(dim=1)"),
    ("weights of head 0 returned", A.WEIGHTS_OF_ONE, "self.WO(merge_heads(output)), weights[:, 0]"),
    ("returned weights detached", Common.CUT_OFF, "self.WO(merge_heads(output)), weights.detach()"),
    ("output detached", Common.CUT_OFF, "self.WO(merge_heads(output)).detach(), weights"),
    ("residual", A.RESIDUAL, "queries + self.WO(merge_heads(output)), weights"),
    (
        "made on the CPU",
        Common.MADE_ON_CPU,
        "self.WO(merge_heads(output)) + torch.zeros(output.shape[2], 1, dtype=v.dtype), weights",
    ),
]
_WIDE_OUTPUTS = [
    ("dropout active in eval", Common.DROPOUT_IN_EVAL, "F.dropout(weights, self.dropout.p) @ v"),
    ("dropout in place", A.WEIGHTS_DROPPED, "F.dropout(weights, self.dropout.p, self.training, inplace=True) @ v"),
    ("no dropout", A.NO_DROPOUT, "weights @ v"),
    ("dropout on the output", A.DROPOUT_ELSEWHERE, "self.dropout(weights @ v)"),
    ("dropout on the values", A.DROPOUT_ELSEWHERE, "weights @ self.dropout(v)"),
    (
        "the same dropout in every head",
        A.DROPOUT_SHARED,
        "(weights * self.dropout(torch.ones_like(weights[:, :1]))) @ v",
    ),
]
_WIDE_MUTANTS = [
    *edits(
        _WIDE,
        [
            ("nothing returned", Common.NO_RETURN, (_WIDE_RETURN, "self.WO(merge_heads(output)), weights")),
            *((title, mistake, (_WIDE_RETURN, f"return {to}")) for title, mistake, to in _WIDE_RETURNS),
            (
                "heads interleaved",
                A.INTERLEAVED,
                *(
                    (
                        f"split_heads(self.W{n}({x}), self.heads)",
                        f"self.W{n}({x}).unflatten(-1, (-1, self.heads)).permute(0, 3, 1, 2)",
                    )
                    for n, x in (("q", "queries"), ("k", "keys"), ("v", "values"))
                ),
                ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
            ),
            (
                "one reshape in, one reshape out",
                A.MIXED_UP,
                *(
                    (
                        f"split_heads(self.W{n}({x}), self.heads)",
                        f"self.W{n}({x}).reshape(len({x}), self.heads, {x}.shape[1], -1)",
                    )
                    for n, x in (("q", "queries"), ("k", "keys"), ("v", "values"))
                ),
                ("merge_heads(output)", "output.reshape(queries.shape)"),
            ),
            (
                "merged without the transpose",
                A.MIXED_UP_AFTER,
                ("merge_heads(output)", "output.reshape(queries.shape)"),
            ),
            (
                "merged in the wrong order",
                A.ORDER_AFTER,
                ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
            ),
            (
                "Wq and Wk swapped",
                A.MAPS_SWAPPED,
                ("self.Wq(queries)", "self.Wk(queries)"),
                ("self.Wk(keys)", "self.Wq(keys)"),
            ),
            (
                "weights of the keys",
                A.ROWS_SWAPPED,
                (
                    _WIDE_ATTEND,
                    "same = q.shape == k.shape and mask is None\n"
                    "        weights = query_key_weights(k, q, mask) if same else query_key_weights(q, k, mask)",
                ),
            ),
            ("keys used as values", A.KEYS_AS_VALUES, ("self.Wv(values)", "self.Wv(keys)")),
            (
                "self-attention only",
                A.QUERIES_ONLY,
                ("self.Wk(keys)", "self.Wk(queries)"),
                ("self.Wv(values)", "self.Wv(queries)"),
            ),
            ("values not mapped", A.NO_VALUE_MAP, ("self.Wv(values)", "values")),
            ("Wq used for the keys", A.KEYS_BY_WQ, ("self.Wk(keys)", "self.Wq(keys)")),
            ("WO left out", A.NO_OUTPUT_MAP, ("return self.WO(merge_heads(output))", "return merge_heads(output)")),
            (
                "WO's bias left out",
                A.MAPS_OF_ALL,
                ("self.WO = nn.Linear(dim, dim)", "self.WO = nn.Linear(dim, dim, bias=False)"),
            ),
            (
                "narrow maps",
                A.MAPS_OF_ALL,
                *(
                    (f"self.W{n} = nn.Linear(dim, dim)", f"self.W{n} = nn.Linear(dim // heads, dim // heads)")
                    for n in "qkv"
                ),
                *(
                    (f"split_heads(self.W{n}({x}), self.heads)", f"self.W{n}(split_heads({x}, self.heads))")
                    for n, x in (("q", "queries"), ("k", "keys"), ("v", "values"))
                ),
            ),
            (
                "a loop over the heads",
                Common.LOOP,
                (
                    _WIDE_ATTEND,
                    "full = None if mask is None else mask.expand(len(q), self.heads, q.shape[2], k.shape[2])\n"
                    "        weights = torch.stack([query_key_weights(q[:, h], k[:, h],"
                    " None if mask is None else full[:, h]) for h in range(self.heads)], dim=1)",
                ),
            ),
            ("no error", Common.NO_ERROR, ("if dim % heads != 0:", "if dim < 0:")),
            (
                "sequences of one length only",
                Unexplained.RAISED,
                (_K, "k = self.Wk(keys).view(*queries.shape[:2], self.heads, -1).transpose(1, 2)"),
            ),
            ("keys detached", Common.INPUT_CUT_OFF, ("self.Wk(keys)", "self.Wk(keys.detach())")),
            (
                "values cut off",
                Common.PARAMETER_UNUSED,
                ("self.Wv(values)", "F.linear(values, self.Wv.weight.data, self.Wv.bias.data)"),
            ),
            (
                "changes the input in place",
                Common.CHANGED_IN_PLACE,
                (
                    _WIDE_RETURN,
                    "result = self.WO(merge_heads(output))\n"
                    "        values.data.zero_()\n        return result, weights",
                ),
            ),
            *((title, mistake, (_WIDE_OUTPUT, f"output = {to}")) for title, mistake, to in _WIDE_OUTPUTS),
            (
                "dropout on the returned weights too",
                A.WEIGHTS_DROPPED,
                (_WIDE_OUTPUT, "weights = self.dropout(weights)\n        output = weights @ v"),
            ),
            (
                "half as much dropped",
                A.DROPOUT_SHARE,
                (
                    _WIDE_OUTPUT,
                    "p = self.dropout.p if self.training else 0.0\n"
                    "        output = weights * (torch.rand_like(weights) >= p / 2) / (1 - p) @ v",
                ),
            ),
            (
                "the dropout under another name",
                A.DROPOUT_NOT_KEPT,
                ("self.dropout = nn.Dropout(dropout)", "self.dropout = self.drop = nn.Sequential(nn.Dropout(dropout))"),
            ),
            (
                "dropout on the scores",
                A.DROPOUT_MISPLACED,
                (
                    _WIDE_OUTPUT,
                    "scores = weights.clamp(min=1e-30).log()\n"
                    "        output = self.dropout(scores).softmax(dim=-1) @ v if self.dropout.p else weights @ v",
                ),
            ),
            (
                "normalised again after dropout",
                A.DROPOUT_MISPLACED,
                (
                    _WIDE_OUTPUT,
                    "kept = self.dropout(weights)\n"
                    "        if self.dropout.p:\n"
                    "            kept = kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9)\n"
                    "        output = kept @ v",
                ),
            ),
            ("a rate of its own", A.DROPOUT_MISPLACED, ("nn.Dropout(dropout)", "nn.Dropout(0.5 if dropout else 0.0)")),
            (
                "number of heads not kept",
                A.HEADS_NOT_KEPT,
                ("self.heads = heads", "self.number_of_heads = heads"),
                *((f"({x}), self.heads)", f"({x}), self.number_of_heads)") for x in ("queries", "keys", "values")),
            ),
        ],
    ),
    *_mask_mutants(_WIDE, _WIDE_ATTEND, "weights = query_key_weights(q, k, {})"),
    *_scores_mutants(_WIDE, _WIDE_ATTEND, ""),
]

_WIDE_VARIANTS = [
    variant(
        _WIDE,
        "scores by einsum, own masking",
        """
        class MultiHeadAttention(nn.Module):
            def __init__(self, dim, heads, dropout=0.0):
                super().__init__()
                if dim % heads:
                    raise ValueError("heads must divide dim")
                self.dropout = nn.Dropout(p=dropout)
                self.WO = nn.Linear(dim, dim)
                self.Wv = nn.Linear(dim, dim)
                self.Wk = nn.Linear(dim, dim)
                self.Wq = nn.Linear(dim, dim)
                self.heads = heads
                self.head_dim = dim // heads

            def cut(self, x):
                return x.unflatten(-1, (self.heads, self.head_dim))

            def forward(self, queries, keys, values, mask=None):
                q, k, v = self.cut(self.Wq(queries)), self.cut(self.Wk(keys)), self.cut(self.Wv(values))
                scores = torch.einsum("bihc,bjhc->bhij", q, k) / self.head_dim**0.5
                if mask is None:
                    weights = scores.softmax(dim=-1)
                else:
                    if mask.dim() == 3:
                        mask = mask[:, None]
                    weights = scores.masked_fill(~mask, -1e30).softmax(dim=-1).masked_fill(~mask, 0.0)
                y = torch.einsum("bhij,bjhc->bihc", self.dropout(weights), v)
                return self.WO(y.flatten(2)), weights
        """,
    ),
    variant(
        _WIDE,
        "F.dropout with self.training, queries scaled",
        """
        class MultiHeadAttention(nn.Module):
            def __init__(self, dim, heads, dropout=0.0):
                super().__init__()
                if dim % heads != 0:
                    raise ValueError(f"dim {dim} is no multiple of heads {heads}")
                self.dim, self.heads = dim, heads
                self.Wq, self.Wk, self.Wv, self.WO = (nn.Linear(dim, dim) for _ in range(4))
                self.dropout = nn.Dropout(dropout)

            def forward(self, queries, keys, values, mask=None):
                B, n, m = queries.size(0), queries.size(1), keys.size(1)
                size = self.dim // self.heads
                q = (self.Wq(queries) * size**-0.5).view(B, n, self.heads, size).permute(0, 2, 1, 3)
                k = self.Wk(keys).view(B, m, self.heads, size).permute(0, 2, 3, 1)
                v = self.Wv(values).view(B, m, self.heads, size).permute(0, 2, 1, 3)
                scores = torch.matmul(q, k)
                if mask is not None:
                    if mask.dim() == 2:
                        mask = mask[None, None]
                    elif mask.dim() == 3:
                        mask = mask[:, None]
                    scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
                weights = F.softmax(scores, dim=-1)
                if mask is not None:
                    weights = weights * mask
                y = F.dropout(weights, self.dropout.p, training=self.training) @ v
                return self.WO(y.permute(0, 2, 1, 3).contiguous().view(B, n, self.dim)), weights
        """,
    ),
    variant(
        _WIDE,
        "heads folded into the batch",
        """
        class MultiHeadAttention(nn.Module):
            def __init__(self, dim, heads, dropout=0.0):
                super().__init__()
                if dim % heads != 0:
                    raise ValueError("heads must divide dim")
                self.heads = heads
                self.Wq, self.Wk, self.Wv = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
                self.WO = nn.Linear(dim, dim)
                self.dropout = nn.Dropout(dropout)

            def fold(self, x):
                return split_heads(x, self.heads).flatten(0, 1)

            def forward(self, queries, keys, values, mask=None):
                B, n, m = len(queries), queries.shape[1], keys.shape[1]
                if mask is not None:
                    mask = mask.unsqueeze(1) if mask.dim() == 3 else mask
                    mask = mask.expand(B, self.heads, n, m).reshape(-1, n, m)
                q, k, v = self.fold(self.Wq(queries)), self.fold(self.Wk(keys)), self.fold(self.Wv(values))
                weights = query_key_weights(q, k, mask)
                y = torch.bmm(self.dropout(weights), v).unflatten(0, (B, self.heads))
                return self.WO(merge_heads(y)), weights.unflatten(0, (B, self.heads))
        """,
    ),
    edited_variant(
        _WIDE,
        "attention from chapter 3, twice",
        (
            f"{_WIDE_ATTEND}\n        {_WIDE_OUTPUT}",
            "output, weights = scaled_dot_product_attention(q, k, v, mask)\n"
            "        if self.training and self.dropout.p > 0:\n"
            "            output = self.dropout(weights) @ v",
        ),
    ),
    edited_variant(
        _WIDE,
        "the root of a head's size in float32",
        (
            _WIDE_ATTEND,
            "scores = q @ k.mT / torch.sqrt(torch.tensor(q.shape[-1]))\n"
            "        scores = scores if mask is None else scores.masked_fill(~mask, -1e30)\n"
            "        weights = scores.softmax(dim=-1)\n"
            "        weights = weights if mask is None else weights * mask",
        ),
    ),
    edited_variant(
        _WIDE,
        "error left to a helper",
        (
            "class MultiHeadAttention(nn.Module):",
            "def refuse(dim, heads):\n    if dim % heads:\n        raise ValueError(dim)\n\n\n"
            "class MultiHeadAttention(nn.Module):",
        ),
        ("if dim % heads != 0:", "refuse(dim, heads)\n        if False:"),
    ),
]

_COPY = "copy_into_torch"
_IN_WEIGHT = "copy.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))"
_IN_BIAS = "copy.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))"
_OUT_WEIGHT = "copy.out_proj.weight.copy_(attention.WO.weight)"
_OUT_BIAS = "copy.out_proj.bias.copy_(attention.WO.bias)"
_MAPS = "maps = [attention.Wq, attention.Wk, attention.Wv]"
_RETURN = "return copy.train(attention.training)"

_COPY_MUTANTS = edits(
    _COPY,
    [
        ("nothing returned", Common.NO_RETURN, (_RETURN, "copy.train(attention.training)")),
        ("the original returned", C.NOT_TORCHS, (_RETURN, "return attention")),
        ("not batch first", C.NOT_BATCH_FIRST, ("batch_first=True, ", "")),
        ("one head", C.HEADS, ("attention.heads, dropout", "1, dropout")),
        ("dim and heads swapped", Unexplained.RAISED, ("len(weight), attention.heads", "attention.heads, len(weight)")),
        (
            "nothing copied",
            C.NOT_COPIED,
            (_IN_WEIGHT, "pass"),
            (_IN_BIAS, "pass"),
            (_OUT_WEIGHT, "pass"),
            (_OUT_BIAS, "pass"),
        ),
        ("keys first", C.ORDER, (_MAPS, "maps = [attention.Wk, attention.Wq, attention.Wv]")),
        ("values before keys", C.ORDER, (_MAPS, "maps = [attention.Wq, attention.Wv, attention.Wk]")),
        ("projections transposed", C.TRANSPOSED, ("[m.weight for", "[m.weight.T for")),
        (
            "projections side by side",
            Common.SIZES_DO_NOT_FIT,
            (_IN_WEIGHT, _IN_WEIGHT.replace("maps])", "maps], dim=1)")),
        ),
        ("WO transposed", C.TRANSPOSED, (_OUT_WEIGHT, "copy.out_proj.weight.copy_(attention.WO.weight.T)")),
        ("WO forgotten", C.NOT_COPIED, (_OUT_WEIGHT, "pass"), (_OUT_BIAS, "pass")),
        ("biases forgotten", C.NOT_COPIED, (_IN_BIAS, "pass")),
        (
            "bias of the keys forgotten",
            C.NOT_COPIED,
            (_IN_BIAS, _IN_BIAS.replace("[m.bias for m in maps]", "[m.bias * (m is not attention.Wk) for m in maps]")),
        ),
        ("WO's bias forgotten", C.NOT_COPIED, (_OUT_BIAS, "pass")),
        (
            "no biases",
            C.NO_BIAS,
            ("batch_first=True, ", "batch_first=True, bias=False, "),
            (_IN_BIAS, "pass"),
            (_OUT_BIAS, "pass"),
        ),
        (
            "WO shared",
            C.SHARED,
            (_RETURN, "copy.out_proj.weight = attention.WO.weight\n    return copy.train(attention.training)"),
        ),
        ("WO's bias shared through data", C.SHARED, (_OUT_BIAS, "copy.out_proj.bias.data = attention.WO.bias.data")),
        ("the wrong way round", C.ORIGINAL_CHANGED, (_OUT_WEIGHT, "attention.WO.weight.copy_(copy.out_proj.weight)")),
        ("dropout forgotten", C.DROPOUT, ("attention.heads, dropout", "attention.heads")),
        ("always training", C.MODE, (_RETURN, "return copy")),
        ("always in eval", C.MODE, (_RETURN, "return copy.eval()")),
        ("original left in eval", C.MODE, (_RETURN, "attention.eval()\n    " + _RETURN)),
        ("float32 only", Common.WRONG_DTYPE, ('"dtype": weight.dtype, ', "")),
        ("on the CPU only", Common.MADE_ON_CPU, (', "device": weight.device', "")),
        ("frozen", C.FROZEN, (_RETURN, "return copy.train(attention.training).requires_grad_(False)")),
        ("a gradient is recorded", Common.LEAF_IN_PLACE, ("with torch.no_grad():", "if True:")),
    ],
)

_COPY_VARIANTS = [
    variant(
        _COPY,
        "by state dict",
        """
        def copy_into_torch(attention):
            ours = attention.state_dict()
            dim = len(ours["WO.bias"])
            like = ours["WO.bias"]
            theirs = nn.MultiheadAttention(dim, attention.heads, attention.dropout.p, batch_first=True)
            theirs = theirs.to(like.device, like.dtype)
            theirs.load_state_dict({
                "in_proj_weight": torch.cat([ours["Wq.weight"], ours["Wk.weight"], ours["Wv.weight"]]),
                "in_proj_bias": torch.cat([ours["Wq.bias"], ours["Wk.bias"], ours["Wv.bias"]]),
                "out_proj.weight": ours["WO.weight"],
                "out_proj.bias": ours["WO.bias"],
            })
            theirs.train(attention.training)
            return theirs
        """,
    ),
    variant(
        _COPY,
        "new parameters",
        """
        def copy_into_torch(attention):
            like = {"device": attention.Wq.weight.device, "dtype": attention.Wq.weight.dtype}
            theirs = nn.MultiheadAttention(attention.Wq.in_features, attention.heads,
                                           dropout=attention.dropout.p, batch_first=True, **like)
            Wq, Wk, Wv, WO = attention.Wq, attention.Wk, attention.Wv, attention.WO
            theirs.in_proj_weight = nn.Parameter(torch.cat([Wq.weight, Wk.weight, Wv.weight]).detach())
            theirs.in_proj_bias = nn.Parameter(torch.cat([Wq.bias, Wk.bias, Wv.bias]).detach())
            theirs.out_proj.weight = nn.Parameter(WO.weight.detach().clone())
            theirs.out_proj.bias = nn.Parameter(WO.bias.detach().clone())
            theirs.training = attention.training
            return theirs
        """,
    ),
    variant(
        _COPY,
        "slice by slice, through data",
        """
        def copy_into_torch(attention):
            d = attention.Wq.out_features
            theirs = nn.MultiheadAttention(embed_dim=d, num_heads=attention.heads, dropout=attention.dropout.p,
                                           batch_first=True, dtype=attention.Wq.weight.dtype,
                                           device=attention.Wq.weight.device)
            for i, linear in enumerate((attention.Wq, attention.Wk, attention.Wv)):
                theirs.in_proj_weight.data[i * d : (i + 1) * d] = linear.weight.data
                theirs.in_proj_bias.data[i * d : (i + 1) * d] = linear.bias.data
            theirs.out_proj.load_state_dict(attention.WO.state_dict())
            return theirs if attention.training else theirs.eval()
        """,
    ),
]

_COUNT = "count_parameters"


_COUNT_MUTANTS = mutants(
    _COUNT,
    _COUNT_HEAD,
    [
        ("nothing returned", Common.NO_RETURN, "sum(p.numel() for p in module.parameters())"),
        ("tensors counted", N.TENSORS, "return len(list(module.parameters()))"),
        ("biases left out", N.NO_BIASES, "return sum(p.numel() for p in module.parameters() if p.dim() > 1)"),
        ("only one level deep", N.NESTED, "return sum(p.numel() for p in module.parameters(recurse=False))"),
        (
            "two levels deep",
            N.NESTED,
            "return sum(p.numel() for m in [module, *module.children()] for p in m.parameters(recurse=False))",
        ),
        ("the state dict counted", N.TWICE, "return sum(p.numel() for p in module.state_dict().values())"),
        ("buffers counted", N.BUFFERS, "return sum(p.numel() for p in [*module.parameters(), *module.buffers()])"),
        (
            "shared ones counted twice",
            N.TWICE,
            "return sum(p.numel() for _, p in module.named_parameters(remove_duplicate=False))",
        ),
        ("frozen ones left out", N.FROZEN, "return sum(p.numel() for p in module.parameters() if p.requires_grad)"),
        ("first dimension only", N.FIRST_DIMENSION, "return sum(len(p) for p in module.parameters())"),
        (
            "matrices and vectors only",
            N.TWO_DIMENSIONS,
            "return sum(len(p) * (p.shape[1] if p.dim() > 1 else 1) for p in module.parameters() if p.dim())",
        ),
        (
            "one long vector, of nothing too",
            Unexplained.RAISED,
            "return len(torch.cat([p.flatten() for p in module.parameters()]))",
        ),
        ("bytes", N.BYTES, "return sum(p.numel() * p.element_size() for p in module.parameters())"),
        ("a tensor", N.NO_INT, "return torch.tensor([p.numel() for p in module.parameters()]).sum()"),
        ("a float", N.NO_INT, "return float(sum(p.numel() for p in module.parameters()))"),
        (
            "hard-coded to the visible example",
            Unexplained.NUMBER,
            "n = len(list(module.parameters()))\nreturn 24 if n == 3 else 0",
        ),
        ("thaws what it counts", N.THAWED, "return sum(p.requires_grad_().numel() for p in module.parameters())"),
    ],
)

_COUNT_VARIANTS = [
    variant(
        _COUNT,
        "a loop",
        """
        def count_parameters(module):
            total = 0
            for _, parameter in module.named_parameters():
                total += parameter.nelement()
            return total
        """,
    ),
    variant(_COUNT, "map", _count("return sum(map(torch.numel, module.parameters()))")),
    variant(
        _COUNT,
        "shapes multiplied",
        """
        import math

        def count_parameters(module):
            return sum(math.prod(p.shape) for p in module.parameters())
        """,
    ),
    variant(_COUNT, "one long vector", _count("return sum(p.flatten().shape[0] for p in list(module.parameters()))")),
]

MUTANTS = [
    *_SPLIT_MUTANTS,
    *_MERGE_MUTANTS,
    *_NARROW_MUTANTS,
    *_WIDE_MUTANTS,
    *_COPY_MUTANTS,
    *_COUNT_MUTANTS,
    # Rounded weights are as many as before.
    *forging_function("count_parameters", but=(*OF_TENSORS, "it rounds its arguments and works on those")),
    *forging_dropout("MultiHeadAttention"),
    *forging_answers(
        classes=["NarrowSelfAttention", "MultiHeadAttention"],
        functions=["split_heads", "merge_heads", "copy_into_torch"],
    ),
]
VARIANTS = [*_SPLIT_VARIANTS, *_MERGE_VARIANTS, *_NARROW_VARIANTS, *_WIDE_VARIANTS, *_COPY_VARIANTS, *_COUNT_VARIANTS]
