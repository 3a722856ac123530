"""Chapter 04: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, edit, edited_variant, mutant, variant
from checks.forgers import OF_TENSORS, forging_answers, forging_function

_VALID = "    if x.shape[-1] % heads:\n        raise ValueError('heads must divide the features')\n"


def _split(body: str) -> str:
    return f"def split_heads(x, heads):\n    B, n, d = x.shape\n{_VALID}    {body}"


def _merge(body: str) -> str:
    return f"def merge_heads(x):\n    B, h, n, k = x.shape\n    {body}"


_SPLIT_MUTANTS = [
    mutant("split_heads", "nothing returned", "is there a `return`?", _split("x.reshape(B, n, heads, d // heads)")),
    mutant(
        "split_heads",
        "one reshape, no transpose",
        "positions and heads are mixed up",
        _split("return x.reshape(B, heads, n, d // heads)"),
    ),
    mutant(
        "split_heads",
        "heads interleaved",
        "the heads are interleaved",
        _split("return x.reshape(B, n, d // heads, heads).permute(0, 3, 1, 2)"),
    ),
    mutant(
        "split_heads",
        "heads interleaved by slices",
        "the heads are interleaved",
        _split("return torch.stack([x[..., h::heads] for h in range(heads)], dim=1)"),
    ),
    mutant(
        "split_heads",
        "not transposed",
        "the heads come after the positions",
        _split("return x.reshape(B, n, heads, d // heads)"),
    ),
    mutant(
        "split_heads",
        "heads before the batch",
        "the heads come before the batch",
        _split("return torch.stack(x.chunk(heads, dim=-1))"),
    ),
    mutant(
        "split_heads",
        "features before positions",
        "the last two dimensions are exchanged",
        _split("return x.reshape(B, n, heads, d // heads).permute(0, 2, 3, 1)"),
    ),
    mutant(
        "split_heads",
        "d/h heads of h features",
        "not `heads` heads of d/h features",
        _split("return x.reshape(B, n, d // heads, heads).transpose(1, 2)"),
    ),
    mutant(
        "split_heads",
        "head 0 for all",
        "every head got the features of head 0",
        _split("return x[:, None, :, : d // heads].expand(B, heads, n, d // heads)"),
    ),
    mutant(
        "split_heads",
        "last head forgotten, zeros there",
        "wrong entries",
        _split(
            "y = x.new_zeros(B, heads, n, d // heads)\n"
            "    y[:, :-1] = x.reshape(B, n, heads, d // heads).transpose(1, 2)[:, :-1]\n"
            "    return y"
        ),
    ),
    mutant(
        "split_heads",
        "heads in a loop",
        "without a loop",
        _split("return torch.stack([x[..., h * (d // heads):(h + 1) * (d // heads)] for h in range(heads)], dim=1)"),
    ),
    mutant(
        "split_heads",
        "no error, torch's own instead",
        "should raise ValueError, but raised RuntimeError",
        """
        def split_heads(x, heads):
            B, n, d = x.shape
            return x.reshape(B, n, heads, d // heads).transpose(1, 2)
        """,
    ),
    mutant(
        "split_heads",
        "an assert for an error",
        "should raise ValueError",
        """
        def split_heads(x, heads):
            B, n, d = x.shape
            assert d % heads == 0
            return x.reshape(B, n, heads, d // heads).transpose(1, 2)
        """,
    ),
    mutant(
        "split_heads",
        "the remainder is dropped",
        "should raise ValueError",
        """
        def split_heads(x, heads):
            B, n, d = x.shape
            k = d // heads
            return x[..., : heads * k].reshape(B, n, heads, k).transpose(1, 2)
        """,
    ),
    mutant(
        "split_heads",
        "the error the wrong way round",
        "ValueError",
        """
        def split_heads(x, heads):
            B, n, d = x.shape
            if heads % d:
                raise ValueError
            return x.reshape(B, n, heads, d // heads).transpose(1, 2)
        """,
    ),
    mutant(
        "split_heads",
        "item 0 for the whole batch",
        "every item of the batch got the features of item 0",
        _split("return x[:1].expand(B, n, d).reshape(B, n, heads, d // heads).transpose(1, 2)"),
    ),
    mutant(
        "split_heads",
        "detached",
        "cut off from the graph",
        _split("return x.detach().reshape(B, n, heads, d // heads).transpose(1, 2)"),
    ),
    mutant(
        "split_heads",
        "float32 only",
        "keep dtype torch.float64",
        _split("return x.float().reshape(B, n, heads, d // heads).transpose(1, 2)"),
    ),
    mutant(
        "split_heads",
        "made on the CPU",
        "fails when its inputs are on a GPU",
        _split(
            "y = torch.zeros(B, heads, n, d // heads, dtype=x.dtype)\n"
            "    return y + x.reshape(B, n, heads, d // heads).transpose(1, 2)"
        ),
    ),
    mutant(
        "split_heads",
        "hard-coded to the visible example",
        "raised RuntimeError: shape",
        _split("return x.reshape(1, 2, 3, 2).transpose(1, 2) if x.numel() == 12 else x.reshape(-1, 2, 3, 2)"),
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

_MERGE_MUTANTS = [
    mutant("merge_heads", "nothing returned", "is there a `return`?", _merge("x.transpose(1, 2).flatten(2)")),
    mutant(
        "merge_heads",
        "one reshape, no transpose",
        "positions and heads are mixed up",
        _merge("return x.reshape(B, n, h * k)"),
    ),
    mutant(
        "merge_heads",
        "heads interleaved",
        "the heads are interleaved",
        _merge("return x.permute(0, 2, 3, 1).reshape(B, n, h * k)"),
    ),
    mutant(
        "merge_heads",
        "features before positions",
        "features and positions are exchanged",
        _merge("return x.transpose(2, 3).reshape(B, h * k, n)"),
    ),
    mutant("merge_heads", "heads added up", "the heads are added up", _merge("return x.sum(dim=1)")),
    mutant("merge_heads", "heads averaged", "the heads are averaged", _merge("return x.mean(dim=1)")),
    mutant("merge_heads", "only head 0", "only head 0 was kept", _merge("return x[:, 0]")),
    mutant(
        "merge_heads",
        "heads in reverse order",
        "the heads are in reverse order",
        _merge("return x.flip(1).transpose(1, 2).flatten(2)"),
    ),
    mutant("merge_heads", "heads as positions", "the heads are stacked as positions", _merge("return x.flatten(1, 2)")),
    mutant(
        "merge_heads",
        "item 0 for the whole batch",
        "every item of the batch got the features of item 0",
        _merge("return x[:1].expand_as(x).transpose(1, 2).flatten(2)"),
    ),
    mutant(
        "merge_heads",
        "view after transpose",
        "view size is not compatible",
        _merge("return x.transpose(1, 2).view(B, n, h * k)"),
    ),
    mutant(
        "merge_heads",
        "squeezed",
        "should have shape (1, 2, 6)",
        _merge("return x.transpose(1, 2).flatten(2).squeeze()"),
    ),
    mutant(
        "merge_heads",
        "heads in a loop",
        "without a loop",
        _merge("return torch.cat([x[:, i] for i in range(h)], dim=-1)"),
    ),
    mutant("merge_heads", "detached", "cut off from the graph", _merge("return x.data.transpose(1, 2).flatten(2)")),
    mutant(
        "merge_heads", "float32 only", "keep dtype torch.float64", _merge("return x.float().transpose(1, 2).flatten(2)")
    ),
    mutant(
        "merge_heads",
        "made on the CPU",
        "fails when its inputs are on a GPU",
        _merge("return torch.zeros(B, n, h * k, dtype=x.dtype) + x.transpose(1, 2).flatten(2)"),
    ),
    mutant(
        "merge_heads",
        "changes the input in place",
        "`x` was changed in place",
        _merge("y = x.transpose(1, 2).flatten(2)\n    x.zero_()\n    return y"),
    ),
]

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
    return [
        edit(name, "mask ignored", "the mask is ignored", (attend, attend_with.format("None"))),
        edit(
            name,
            "mask for head 0 only",
            "in head 0 only",
            (
                attend,
                "if mask is not None:\n"
                "            shape = (len(q), self.heads, q.shape[2], k.shape[2])\n"
                "            mask = mask.expand(shape).clone()\n"
                "            mask[:, 1:] = True\n        " + attend,
            ),
        ),
        edit(
            name,
            "mask with the wrong sign",
            "wrong sign",
            (attend, attend_with.format("None if mask is None else ~mask")),
        ),
        edit(name, "mask lined up with the heads", "its batch with the heads", (unsqueeze, "mask = mask")),
        edit(
            name,
            "mask of item 0 for all",
            "the mask of batch item 0 is used for the whole batch",
            (unsqueeze, "mask = mask[:1].unsqueeze(1)"),
        ),
        edit(
            name,
            "mask of head 0 for all heads",
            "the mask of head 0 is used for every head",
            (attend, attend_with.format("mask if mask is None or mask.dim() < 4 else mask[:, :1]")),
        ),
        edit(
            name,
            "mask transposed",
            "the mask is transposed",
            (
                attend,
                "if mask is not None:\n"
                "            mask = mask.expand(len(q), self.heads, q.shape[2], k.shape[2])\n"
                "            mask = mask.mT if q.shape[2] == k.shape[2] else mask\n        " + attend,
            ),
        ),
        edit(
            name,
            "three dimensions of mask only",
            "must match the size",
            (condition, "if mask is not None:"),
        ),
    ]


def _scores_mutants(name: str, attend: str, own: str) -> list[Answer]:
    """Attention computed by oneself, wrongly.

    Args:
        name: the class.
        attend: the text of its reference that computes the weights.
        own: what follows once `weights` is computed, if anything.
    """

    def wrong(title: str, says: str, lines: list[str]) -> Answer:
        return edit(name, title, says, (attend, "\n        ".join([*lines, own]).rstrip()))

    filled = "scores = scores if mask is None else scores.masked_fill(~mask, {})"
    softmax = "weights = scores.softmax(dim=-1)"
    zeroed = "weights = weights if mask is None else weights * mask"
    lowest = filled.format("-1e30")
    return [
        wrong(
            "scaled by the root of the full dim",
            "divided by √dim",
            ["scores = q @ k.mT / (q.shape[-1] * self.heads) ** 0.5", lowest, softmax, zeroed],
        ),
        wrong(
            "scaled by the root of the sequence length",
            "root of the sequence length",
            ["scores = q @ k.mT / k.shape[-2] ** 0.5", lowest, softmax, zeroed],
        ),
        wrong("not scaled", "not scaled", ["scores = q @ k.mT", lowest, softmax, zeroed]),
        wrong(
            "scaled by d/h, not its root",
            "divided by dim // heads",
            ["scores = q @ k.mT / q.shape[-1]", lowest, softmax, zeroed],
        ),
        wrong(
            "softmax over the heads",
            "the softmax runs over the heads",
            ["scores = q @ k.mT / q.shape[-1] ** 0.5", lowest, "weights = scores.softmax(dim=1)", zeroed],
        ),
        wrong(
            "softmax over the queries",
            "the softmax runs over the queries",
            ["scores = q @ k.mT / q.shape[-1] ** 0.5", lowest, "weights = scores.softmax(dim=-2)", zeroed],
        ),
        wrong(
            "mask after the softmax",
            "the mask is applied after the softmax",
            ["scores = q @ k.mT / q.shape[-1] ** 0.5", softmax, zeroed],
        ),
        wrong(
            "a row without anything to attend to is uniform",
            "its weights should all be 0",
            ["scores = q @ k.mT / q.shape[-1] ** 0.5", lowest, softmax],
        ),
        wrong(
            "a row without anything to attend to is NaN",
            "should all be 0, contains NaN",
            ["scores = q @ k.mT / q.shape[-1] ** 0.5", filled.format("float('-inf')"), softmax],
        ),
        wrong(
            "the mask is added",
            "the mask is added to the scores",
            [
                "scores = q @ k.mT / q.shape[-1] ** 0.5",
                "scores = scores if mask is None else scores + mask",
                softmax,
            ],
        ),
        wrong(
            "weights of item 0 for all",
            "the weights of batch item 0 are used for the whole batch",
            ["weights = query_key_weights(q, k, mask)[:1].expand(len(q), -1, -1, -1)"],
        ),
        wrong(
            "weights of head 0 for all",
            "the weights of head 0 are used for every head",
            ["weights = query_key_weights(q, k, mask)[:, :1].expand(-1, self.heads, -1, -1)"],
        ),
        wrong(
            "weights detached",
            "no gradient reaches the parameter `Wq.weight`",
            ["weights = query_key_weights(q, k, mask).detach()"],
        ),
    ]


_NARROW = "NarrowSelfAttention"
_NARROW_ATTEND = "output, _ = scaled_dot_product_attention(q, k, v, mask)"
_NARROW_QKV = "q, k, v = self.Wq(slices), self.Wk(slices), self.Wv(slices)"
_NARROW_OUTPUT = "return self.WO(merge_heads(output))"
_NARROW_MAPS = "nn.Linear(dim // heads, dim // heads, bias=False)"


_NARROW_MUTANTS = [
    edit(_NARROW, "nothing returned", "is there a `return`?", (_NARROW_OUTPUT, "self.WO(merge_heads(output))")),
    edit(
        _NARROW,
        "weights returned too",
        "got a tuple",
        (_NARROW_ATTEND, _NARROW_ATTEND.replace("output, _", "output, weights")),
        (_NARROW_OUTPUT, _NARROW_OUTPUT + ", weights"),
    ),
    edit(
        _NARROW,
        "heads interleaved",
        "the heads are interleaved",
        ("split_heads(x, self.heads)", "x.unflatten(-1, (-1, self.heads)).permute(0, 3, 1, 2)"),
        ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
    ),
    edit(
        _NARROW,
        "one reshape in, one reshape out",
        "positions and heads are mixed up",
        ("split_heads(x, self.heads)", "x.reshape(len(x), self.heads, x.shape[1], -1)"),
        ("merge_heads(output)", "output.reshape(x.shape)"),
    ),
    edit(
        _NARROW,
        "merged without the transpose",
        "positions and heads are mixed up",
        ("merge_heads(output)", "output.reshape(x.shape)"),
    ),
    edit(
        _NARROW,
        "merged in the wrong order",
        "the heads are put back in the wrong order",
        ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
    ),
    edit(
        _NARROW,
        "queries and keys swapped",
        "queries and keys are swapped",
        (_NARROW_ATTEND, "output, _ = scaled_dot_product_attention(k, q, v, mask)"),
    ),
    edit(
        _NARROW,
        "values not mapped",
        "the values are not mapped by Wv",
        ("self.Wv(slices)", "slices"),
    ),
    edit(
        _NARROW,
        "Wq used for the keys",
        "Wq is used for the keys too",
        ("self.Wk(slices)", "self.Wq(slices)"),
    ),
    edit(
        _NARROW,
        "WO left out",
        "not mapped by WO",
        ("return self.WO(merge_heads(output))", "return merge_heads(output)"),
    ),
    edit(
        _NARROW,
        "every head sees slice 0",
        "every head sees the slice of head 0",
        ("split_heads(x, self.heads)", "split_heads(x, self.heads)[:, :1].expand(-1, self.heads, -1, -1)"),
    ),
    edit(
        _NARROW,
        "heads averaged",
        "averaged, not put side by side",
        ("merge_heads(output)", "merge_heads(output.mean(dim=1, keepdim=True).expand_as(output))"),
    ),
    edit(
        _NARROW,
        "wide maps",
        "`Wq.weight` should have shape",
        (f"self.Wq = {_NARROW_MAPS}", "self.Wq = nn.Linear(dim, dim, bias=False)"),
        (f"self.Wk = {_NARROW_MAPS}", "self.Wk = nn.Linear(dim, dim, bias=False)"),
        (f"self.Wv = {_NARROW_MAPS}", "self.Wv = nn.Linear(dim, dim, bias=False)"),
        (_NARROW_QKV, "q, k, v = (split_heads(W(x), self.heads) for W in (self.Wq, self.Wk, self.Wv))"),
    ),
    edit(
        _NARROW,
        "a bias too many",
        "the parameter `Wq.bias` should not be there",
        (f"self.Wq = {_NARROW_MAPS}", "self.Wq = nn.Linear(dim // heads, dim // heads)"),
    ),
    edit(
        _NARROW,
        "maps for each head",
        "the parameter `Wq.weight` is missing",
        (f"self.Wq = {_NARROW_MAPS}", f"self.Wq = nn.ModuleList({_NARROW_MAPS} for _ in range(heads))"),
        ("self.Wq(slices)", "torch.stack([W(s) for W, s in zip(self.Wq, slices.unbind(1))], dim=1)"),
    ),
    edit(
        _NARROW,
        "a loop over the heads",
        "without a loop over the heads",
        (
            _NARROW_ATTEND,
            "masks = [None if mask is None else mask.expand(len(x), self.heads, x.shape[1], x.shape[1])[:, h]"
            " for h in range(self.heads)]\n"
            "        output = torch.stack([scaled_dot_product_attention(q[:, h], k[:, h], v[:, h], m)[0]"
            " for h, m in enumerate(masks)], dim=1)",
        ),
    ),
    edit(
        _NARROW,
        "no error",
        "should raise ValueError",
        ("if dim % heads != 0:", "if dim < 0:"),
    ),
    edit(
        _NARROW,
        "detached",
        "cut off from",
        ("return self.WO(merge_heads(output))", "return self.WO(merge_heads(output)).detach()"),
    ),
    edit(
        _NARROW,
        "input detached",
        "no gradient reaches `x`",
        ("split_heads(x, self.heads)", "split_heads(x.detach(), self.heads)"),
    ),
    edit(
        _NARROW,
        "queries cut off",
        "no gradient reaches the parameter `Wq.weight`",
        ("self.Wq(slices)", "self.Wq(slices).detach()"),
    ),
    edit(
        _NARROW,
        "residual",
        "the residual comes in chapter 6",
        (_NARROW_OUTPUT, "return self.WO(merge_heads(output)) + x"),
    ),
    edit(
        _NARROW,
        "made on the CPU",
        "on a GPU",
        (_NARROW_OUTPUT, "return self.WO(merge_heads(output)) + torch.zeros(x.shape[1], 1, dtype=x.dtype)"),
    ),
    edit(
        _NARROW,
        "changes the input in place",
        "`x` was changed in place",
        (_NARROW_OUTPUT, "y = self.WO(merge_heads(output))\n        x.data.mul_(0.5)\n        return y"),
    ),
    edit(
        _NARROW,
        "float32 only",
        "keep dtype torch.float64",
        (_NARROW_OUTPUT, "return self.WO(merge_heads(output)).float()"),
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

_WIDE_MUTANTS = [
    edit(_WIDE, "nothing returned", "return output, weights", (_WIDE_RETURN, "self.WO(merge_heads(output)), weights")),
    edit(_WIDE, "no weights returned", "return output, weights", (_WIDE_RETURN, "return self.WO(merge_heads(output))")),
    edit(
        _WIDE, "weights first", "the output comes first", (_WIDE_RETURN, "return weights, self.WO(merge_heads(output))")
    ),
    edit(
        _WIDE,
        "weights averaged over the heads",
        "averaged over the heads",
        (_WIDE_RETURN, "return self.WO(merge_heads(output)), weights.mean(dim=1)"),
    ),
    edit(
        _WIDE,
        "returned weights detached",
        "cut off from the graph",
        (_WIDE_RETURN, "return self.WO(merge_heads(output)), weights.detach()"),
    ),
    edit(
        _WIDE,
        "heads interleaved",
        "the heads are interleaved",
        *(
            (
                f"split_heads(self.W{n}({x}), self.heads)",
                f"self.W{n}({x}).unflatten(-1, (-1, self.heads)).permute(0, 3, 1, 2)",
            )
            for n, x in (("q", "queries"), ("k", "keys"), ("v", "values"))
        ),
        ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
    ),
    edit(
        _WIDE,
        "one reshape in, one reshape out",
        "positions and heads are mixed up",
        *(
            (
                f"split_heads(self.W{n}({x}), self.heads)",
                f"self.W{n}({x}).reshape(len({x}), self.heads, {x}.shape[1], -1)",
            )
            for n, x in (("q", "queries"), ("k", "keys"), ("v", "values"))
        ),
        ("merge_heads(output)", "output.reshape(queries.shape)"),
    ),
    edit(
        _WIDE,
        "merged without the transpose",
        "positions and heads are mixed up",
        ("merge_heads(output)", "output.reshape(queries.shape)"),
    ),
    edit(
        _WIDE,
        "merged in the wrong order",
        "the heads are put back in the wrong order",
        ("merge_heads(output)", "output.permute(0, 2, 3, 1).flatten(2)"),
    ),
    edit(
        _WIDE,
        "Wq and Wk swapped",
        "queries and keys are swapped: Wq belongs to the queries",
        ("self.Wq(queries)", "self.Wk(queries)"),
        ("self.Wk(keys)", "self.Wq(keys)"),
    ),
    edit(
        _WIDE,
        "weights of the keys",
        "row i of the weights belongs to query i",
        (
            _WIDE_ATTEND,
            "same = q.shape == k.shape and mask is None\n"
            "        weights = query_key_weights(k, q, mask) if same else query_key_weights(q, k, mask)",
        ),
    ),
    edit(_WIDE, "keys used as values", "the keys are used as values", ("self.Wv(values)", "self.Wv(keys)")),
    edit(
        _WIDE,
        "self-attention only",
        "the queries are used as keys and values",
        ("self.Wk(keys)", "self.Wk(queries)"),
        ("self.Wv(values)", "self.Wv(queries)"),
    ),
    edit(_WIDE, "values not mapped", "the values are not mapped by Wv", ("self.Wv(values)", "values")),
    edit(_WIDE, "Wq used for the keys", "Wq is used for the keys too", ("self.Wk(keys)", "self.Wq(keys)")),
    edit(
        _WIDE, "WO left out", "not mapped by WO", ("return self.WO(merge_heads(output))", "return merge_heads(output)")
    ),
    edit(
        _WIDE,
        "WO's bias left out",
        "the parameter `WO.bias` is missing",
        ("self.WO = nn.Linear(dim, dim)", "self.WO = nn.Linear(dim, dim, bias=False)"),
    ),
    edit(
        _WIDE,
        "narrow maps",
        "`Wq.weight` should have shape",
        *((f"self.W{n} = nn.Linear(dim, dim)", f"self.W{n} = nn.Linear(dim // heads, dim // heads)") for n in "qkv"),
        *(
            (f"split_heads(self.W{n}({x}), self.heads)", f"self.W{n}(split_heads({x}, self.heads))")
            for n, x in (("q", "queries"), ("k", "keys"), ("v", "values"))
        ),
    ),
    edit(
        _WIDE,
        "a loop over the heads",
        "without a loop over the heads",
        (
            _WIDE_ATTEND,
            "full = None if mask is None else mask.expand(len(q), self.heads, q.shape[2], k.shape[2])\n"
            "        weights = torch.stack([query_key_weights(q[:, h], k[:, h], None if mask is None else full[:, h])"
            " for h in range(self.heads)], dim=1)",
        ),
    ),
    edit(_WIDE, "no error", "should raise ValueError", ("if dim % heads != 0:", "if dim < 0:")),
    edit(
        _WIDE,
        "sequences of one length only",
        "is invalid for input of size",
        (_K, "k = self.Wk(keys).view(*queries.shape[:2], self.heads, -1).transpose(1, 2)"),
    ),
    edit(
        _WIDE,
        "output detached",
        "cut off from the graph",
        (_WIDE_RETURN, "return self.WO(merge_heads(output)).detach(), weights"),
    ),
    edit(_WIDE, "keys detached", "no gradient reaches `keys`", ("self.Wk(keys)", "self.Wk(keys.detach())")),
    edit(
        _WIDE,
        "values cut off",
        "no gradient reaches the parameter `Wv.weight`",
        ("self.Wv(values)", "F.linear(values, self.Wv.weight.data, self.Wv.bias.data)"),
    ),
    edit(
        _WIDE,
        "residual",
        "the residual comes in chapter 6",
        (_WIDE_RETURN, "return queries + self.WO(merge_heads(output)), weights"),
    ),
    edit(
        _WIDE,
        "made on the CPU",
        "on a GPU",
        (_WIDE_RETURN, "return self.WO(merge_heads(output)) + torch.zeros(output.shape[2], 1, dtype=v.dtype), weights"),
    ),
    edit(
        _WIDE,
        "changes the input in place",
        "`values` was changed in place",
        (
            _WIDE_RETURN,
            "result = self.WO(merge_heads(output))\n        values.data.zero_()\n        return result, weights",
        ),
    ),
    edit(
        _WIDE,
        "dropout active in eval",
        "dropout is still active in evaluation",
        (_WIDE_OUTPUT, "output = F.dropout(weights, self.dropout.p) @ v"),
    ),
    edit(
        _WIDE,
        "dropout on the returned weights too",
        "the weights returned are those after dropout",
        (_WIDE_OUTPUT, "weights = self.dropout(weights)\n        output = weights @ v"),
    ),
    edit(
        _WIDE,
        "dropout in place",
        "the weights returned are those after dropout",
        (_WIDE_OUTPUT, "output = F.dropout(weights, self.dropout.p, self.training, inplace=True) @ v"),
    ),
    edit(_WIDE, "no dropout", "no weight is dropped", (_WIDE_OUTPUT, "output = weights @ v")),
    edit(
        _WIDE,
        "dropout on the output",
        "dropout acts on the output, the values",
        (_WIDE_OUTPUT, "output = self.dropout(weights @ v)"),
    ),
    edit(
        _WIDE,
        "dropout on the values",
        "dropout acts on the output, the values",
        (_WIDE_OUTPUT, "output = weights @ self.dropout(v)"),
    ),
    edit(
        _WIDE,
        "dropout on the scores",
        "dropout belongs after the softmax",
        (
            _WIDE_OUTPUT,
            "scores = weights.clamp(min=1e-30).log()\n"
            "        output = self.dropout(scores).softmax(dim=-1) @ v if self.dropout.p else weights @ v",
        ),
    ),
    edit(
        _WIDE,
        "normalised again after dropout",
        "dropout belongs after the softmax",
        (
            _WIDE_OUTPUT,
            "kept = self.dropout(weights)\n"
            "        if self.dropout.p:\n"
            "            kept = kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9)\n"
            "        output = kept @ v",
        ),
    ),
    edit(
        _WIDE,
        "a rate of its own",
        "dropout belongs after the softmax",
        ("nn.Dropout(dropout)", "nn.Dropout(0.5 if dropout else 0.0)"),
    ),
    edit(
        _WIDE,
        "the same dropout in every head",
        "drop each on its own",
        (_WIDE_OUTPUT, "output = (weights * self.dropout(torch.ones_like(weights[:, :1]))) @ v"),
    ),
    edit(
        _WIDE,
        "number of heads not kept",
        "heads",
        ("self.heads = heads", "self.number_of_heads = heads"),
        *((f"({x}), self.heads)", f"({x}), self.number_of_heads)") for x in ("queries", "keys", "values")),
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

_COPY_MUTANTS = [
    edit(_COPY, "nothing returned", "is there a `return`?", (_RETURN, "copy.train(attention.training)")),
    edit(_COPY, "the original returned", "should be an nn.MultiheadAttention", (_RETURN, "return attention")),
    edit(_COPY, "not batch first", "batch_first=True", ("batch_first=True, ", "")),
    edit(_COPY, "one head", "heads", ("attention.heads, dropout", "1, dropout")),
    edit(
        _COPY,
        "dim and heads swapped",
        "embed_dim must be divisible",
        ("len(weight), attention.heads", "attention.heads, len(weight)"),
    ),
    edit(
        _COPY,
        "nothing copied",
        "the part of in_proj_weight which should hold",
        (_IN_WEIGHT, "pass"),
        (_IN_BIAS, "pass"),
        (_OUT_WEIGHT, "pass"),
        (_OUT_BIAS, "pass"),
    ),
    edit(
        _COPY,
        "keys first",
        "first the queries, then the keys, then the values",
        (_MAPS, "maps = [attention.Wk, attention.Wq, attention.Wv]"),
    ),
    edit(
        _COPY,
        "values before keys",
        "first the queries, then the keys, then the values",
        (_MAPS, "maps = [attention.Wq, attention.Wv, attention.Wk]"),
    ),
    edit(_COPY, "projections transposed", "transposed", ("[m.weight for", "[m.weight.T for")),
    edit(
        _COPY,
        "projections side by side",
        "must match the size",
        (_IN_WEIGHT, _IN_WEIGHT.replace("maps])", "maps], dim=1)")),
    ),
    edit(
        _COPY,
        "WO transposed",
        "WO.weight is transposed",
        (_OUT_WEIGHT, "copy.out_proj.weight.copy_(attention.WO.weight.T)"),
    ),
    edit(_COPY, "WO forgotten", "out_proj", (_OUT_WEIGHT, "pass"), (_OUT_BIAS, "pass")),
    edit(_COPY, "biases forgotten", "in_proj_bias", (_IN_BIAS, "pass")),
    edit(
        _COPY,
        "bias of the keys forgotten",
        "in_proj_bias",
        (_IN_BIAS, _IN_BIAS.replace("[m.bias for m in maps]", "[m.bias * (m is not attention.Wk) for m in maps]")),
    ),
    edit(_COPY, "WO's bias forgotten", "out_proj.bias", (_OUT_BIAS, "pass")),
    edit(
        _COPY,
        "no biases",
        "in_proj_bias",
        ("batch_first=True, ", "batch_first=True, bias=False, "),
        (_IN_BIAS, "pass"),
        (_OUT_BIAS, "pass"),
    ),
    edit(
        _COPY,
        "WO shared",
        "shares memory",
        (_RETURN, "copy.out_proj.weight = attention.WO.weight\n    return copy.train(attention.training)"),
    ),
    edit(
        _COPY,
        "WO's bias shared through data",
        "shares memory",
        (_OUT_BIAS, "copy.out_proj.bias.data = attention.WO.bias.data"),
    ),
    edit(
        _COPY,
        "the wrong way round",
        "copy from ours into torch's",
        (_OUT_WEIGHT, "attention.WO.weight.copy_(copy.out_proj.weight)"),
    ),
    edit(_COPY, "dropout forgotten", "dropout should be", ("attention.heads, dropout", "attention.heads")),
    edit(_COPY, "always training", "the copy is not", (_RETURN, "return copy")),
    edit(_COPY, "always in eval", "was in training mode", (_RETURN, "return copy.eval()")),
    edit(_COPY, "original left in eval", "was in training mode", (_RETURN, "attention.eval()\n    " + _RETURN)),
    edit(_COPY, "float32 only", "the copy's `in_proj_weight` is torch.float32", ('"dtype": weight.dtype, ', "")),
    edit(_COPY, "on the CPU only", "on a GPU", (', "device": weight.device', "")),
    edit(
        _COPY,
        "frozen",
        "does not learn any more",
        (_RETURN, "return copy.train(attention.training).requires_grad_(False)"),
    ),
    edit(
        _COPY,
        "a gradient is recorded",
        "a leaf Variable",
        ("with torch.no_grad():", "if True:"),
    ),
]

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


def _count(body: str) -> str:
    return f"def count_parameters(module):\n    {body}"


_COUNT_MUTANTS = [
    mutant(_COUNT, "nothing returned", "is there a `return`?", _count("sum(p.numel() for p in module.parameters())")),
    mutant(_COUNT, "tensors counted", "tensors, not numbers", _count("return len(list(module.parameters()))")),
    mutant(
        _COUNT,
        "biases left out",
        "biases count too",
        _count("return sum(p.numel() for p in module.parameters() if p.dim() > 1)"),
    ),
    mutant(
        _COUNT,
        "only one level deep",
        "modules inside modules",
        _count("return sum(p.numel() for p in module.parameters(recurse=False))"),
    ),
    mutant(
        _COUNT,
        "two levels deep",
        "modules inside modules",
        _count("return sum(p.numel() for m in [module, *module.children()] for p in m.parameters(recurse=False))"),
    ),
    mutant(
        _COUNT,
        "the state dict counted",
        "weight, which counts once",
        _count("return sum(p.numel() for p in module.state_dict().values())"),
    ),
    mutant(
        _COUNT,
        "buffers counted",
        "buffers do not count",
        _count("return sum(p.numel() for p in [*module.parameters(), *module.buffers()])"),
    ),
    mutant(
        _COUNT,
        "shared ones counted twice",
        "weight, which counts once",
        _count("return sum(p.numel() for _, p in module.named_parameters(remove_duplicate=False))"),
    ),
    mutant(
        _COUNT,
        "frozen ones left out",
        "frozen parameters count too",
        _count("return sum(p.numel() for p in module.parameters() if p.requires_grad)"),
    ),
    mutant(
        _COUNT, "first dimension only", "all their entries", _count("return sum(len(p) for p in module.parameters())")
    ),
    mutant(
        _COUNT,
        "matrices and vectors only",
        "a parameter of shape (2, 3, 4)",
        _count("return sum(len(p) * (p.shape[1] if p.dim() > 1 else 1) for p in module.parameters() if p.dim())"),
    ),
    mutant(_COUNT, "bytes", "bytes", _count("return sum(p.numel() * p.element_size() for p in module.parameters())")),
    mutant(
        _COUNT,
        "a tensor",
        "should be a Python int",
        _count("return torch.tensor([p.numel() for p in module.parameters()]).sum()"),
    ),
    mutant(
        _COUNT, "a float", "should be a Python int", _count("return float(sum(p.numel() for p in module.parameters()))")
    ),
    mutant(
        _COUNT,
        "hard-coded to the visible example",
        "parameters, got",
        _count("n = len(list(module.parameters()))\n    return 24 if n == 3 else 0"),
    ),
    mutant(
        _COUNT,
        "thaws what it counts",
        "counting changed requires_grad",
        _count("return sum(p.requires_grad_().numel() for p in module.parameters())"),
    ),
]

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
    *forging_answers(
        classes=["NarrowSelfAttention", "MultiHeadAttention"],
        functions=["split_heads", "merge_heads", "copy_into_torch"],
    ),
]
VARIANTS = [
    *_SPLIT_VARIANTS,
    *_MERGE_VARIANTS,
    *_NARROW_VARIANTS,
    *_WIDE_VARIANTS,
    *_COPY_VARIANTS,
    *_COUNT_VARIANTS,
]
