"""Chapter 11: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import edit, edited_variant, variant
from checks.forgers import forging_answers

# ---- RMSNorm

_SQUARE = "mean_square = x.pow(2).mean(dim=-1, keepdim=True)"
_DIVIDED = "return self.weight * x / torch.sqrt(mean_square + self.eps)"


def _rms(title: str, says: str, *edits: tuple[str, str]):
    return edit("RMSNorm", title, says, *edits)


_RMS_MUTANTS = [
    _rms("nothing returned", "is there a `return`?", (_DIVIDED, _DIVIDED.removeprefix("return "))),
    _rms(
        "mean subtracted", "the mean is subtracted", (_SQUARE, f"x = x - x.mean(-1, keepdim=True)\n        {_SQUARE}")
    ),
    _rms(
        "the variance",
        "the standard deviation divides",
        (_SQUARE, "mean_square = x.var(-1, keepdim=True, correction=0)"),
    ),
    _rms("the sum of squares", "the root of the sum of the squares", (".mean(dim=-1", ".sum(dim=-1")),
    _rms(
        "no root",
        "divided by the mean square, not by its root",
        ("torch.sqrt(mean_square + self.eps)", "(mean_square + self.eps)"),
    ),
    _rms("weight unused", "`weight` is not used", ("self.weight * x", "x")),
    _rms("1 + weight", "1 + `weight`", ("self.weight * x", "(1 + self.weight) * x")),
    _rms(
        "eps outside",
        "eps is outside the root",
        ("torch.sqrt(mean_square + self.eps)", "(torch.sqrt(mean_square) + self.eps)"),
    ),
    _rms("eps fixed", "the argument `eps` is ignored", ("self.eps = eps", "self.eps = 1e-6")),
    _rms("LayerNorm's default", "the default is 1e-6", ("eps=1e-6", "eps=1e-5")),
    _rms("no eps", "eps is left out", ("mean_square + self.eps", "mean_square")),
    _rms("over the positions", "over the positions", (".mean(dim=-1", ".mean(dim=-2")),
    _rms("over the whole tensor", "over the whole tensor", (".mean(dim=-1, keepdim=True)", ".mean()")),
    _rms("over dimension 2", "over dimension 2", (".mean(dim=-1", ".mean(dim=min(2, x.dim() - 1)")),
    _rms("over the batch", "over the batch", (".mean(dim=-1", ".mean(dim=0")),
    _rms(
        "the mean of absolute values",
        "the mean of the absolute values",
        (_SQUARE, "mean_square = x.abs().mean(-1, keepdim=True) ** 2"),
    ),
    _rms(
        "a bias too",
        "`bias` should not be there",
        ("self.eps = eps", "self.eps = eps\n        self.bias = nn.Parameter(torch.zeros(dim))"),
    ),
    _rms("no parameter", "is missing", ("nn.Parameter(torch.ones(dim))", "torch.ones(dim)")),
    _rms("starts as zeros", "should start as", ("torch.ones(dim)", "torch.zeros(dim)")),
    _rms(
        "in place",
        "changed in place",
        (_DIVIDED, "x /= torch.sqrt(mean_square + self.eps)\n        return self.weight * x"),
    ),
    _rms(
        "float32 only",
        "keep dtype",
        ("x.pow(2)", "x.float().pow(2)"),
        ("self.weight * x /", "self.weight.float() * x.float() /"),
    ),
    _rms("cut off", "cut off", ("x.pow(2)", "x.detach().pow(2)")),
    _rms(
        "torch's own",
        "write this exercise with squares",
        (_DIVIDED, "return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)"),
    ),
]

_RMS_VARIANTS = [
    edited_variant(
        "RMSNorm", "rsqrt", ("x / torch.sqrt(mean_square + self.eps)", "x * torch.rsqrt(mean_square + self.eps)")
    ),
    edited_variant("RMSNorm", "x * x", ("x.pow(2)", "(x * x)")),
    edited_variant(
        "RMSNorm", "by the norm", (_SQUARE, "mean_square = x.norm(dim=-1, keepdim=True).square() / x.shape[-1]")
    ),
    variant(
        "RMSNorm",
        "einsum",
        """
        class RMSNorm(nn.Module):
            def __init__(self, dim, eps=1e-6):
                super().__init__()
                self.dim, self.eps = dim, eps
                self.weight = nn.Parameter(torch.ones(dim))

            def forward(self, x):
                square = torch.einsum("...i,...i->...", x, x) / self.dim
                return x / (square + self.eps).sqrt().unsqueeze(-1) * self.weight
        """,
    ),
]

# ---- SwiGLU

_GATED = "return self.down(F.silu(self.gate(x)) * self.up(x))"


def _gated(title: str, says: str, body: str):
    return edit("SwiGLU", title, says, (_GATED, body))


_SWIGLU_MUTANTS = [
    _gated("nothing returned", "is there a `return`?", _GATED.removeprefix("return ")),
    _gated("silu on up", "silu is applied to `up(x)`", "return self.down(self.gate(x) * F.silu(self.up(x)))"),
    _gated("silu on both", "silu is applied to both", "return self.down(F.silu(self.gate(x)) * F.silu(self.up(x)))"),
    _gated("no silu", "silu is missing", "return self.down(self.gate(x) * self.up(x))"),
    _gated(
        "silu of the product",
        "silu is applied after the product",
        "return self.down(F.silu(self.gate(x) * self.up(x)))",
    ),
    _gated("silu twice", "silu is applied twice", "return self.down(F.silu(F.silu(self.gate(x)) * self.up(x)))"),
    _gated("GLU", "a sigmoid takes the place", "return self.down(torch.sigmoid(self.gate(x)) * self.up(x))"),
    _gated("GeGLU", "GELU takes the place", "return self.down(F.gelu(self.gate(x)) * self.up(x))"),
    _gated("ReGLU", "ReLU takes the place", "return self.down(F.relu(self.gate(x)) * self.up(x))"),
    _gated("added", "the two are added", "return self.down(F.silu(self.gate(x)) + self.up(x))"),
    _gated("up unused", "`up` is not used", "return self.down(F.silu(self.gate(x)))"),
    _gated("gate unused", "`gate` is not used", "return self.down(self.up(x))"),
    _gated("gate twice", "`gate` is used twice", "return self.down(F.silu(self.gate(x)) * self.gate(x))"),
    _gated("residual inside", "the input is added", "return x + self.down(F.silu(self.gate(x)) * self.up(x))"),
    _gated("cut off", "cut off", "return self.down(F.silu(self.gate(x)).detach() * self.up(x).detach())"),
    _gated(
        "float32 only",
        "dtype",
        "return self.down.float()(F.silu(self.gate.float()(x.float())) * self.up.float()(x.float()))",
    ),
    _gated(
        "in place",
        "changed in place",
        "y = self.down(F.silu(self.gate(x)) * self.up(x))\n        x += y\n        return y",
    ),
    _gated(
        "only the first sequence",
        "wrong entries",
        "y = self.down(F.silu(self.gate(x)) * self.up(x))\n        return y[:1].expand_as(y)",
    ),
    edit(
        "SwiGLU",
        "a bias",
        "`down.bias` should not be there",
        ("self.down = nn.Linear(hidden, dim, bias=False)", "self.down = nn.Linear(hidden, dim)"),
    ),
    edit(
        "SwiGLU",
        "up as wide as the input",
        "`up.weight`",
        ("self.up = nn.Linear(dim, hidden, bias=False)", "self.up = nn.Linear(dim, dim, bias=False)"),
    ),
    edit(
        "SwiGLU", "shared map", "`up.weight`", ("self.up = nn.Linear(dim, hidden, bias=False)", "self.up = self.gate")
    ),
]

_SWIGLU_VARIANTS = [
    edited_variant("SwiGLU", "silu written out", ("F.silu(self.gate(x))", "self.gate(x) * self.gate(x).sigmoid()")),
    edited_variant("SwiGLU", "other order", ("F.silu(self.gate(x)) * self.up(x)", "self.up(x) * F.silu(self.gate(x))")),
    edited_variant(
        "SwiGLU",
        "one product for both maps",
        (
            _GATED,
            "gate, up = F.linear(x, torch.cat((self.gate.weight, self.up.weight))).chunk(2, dim=-1)\n"
            "        return self.down(F.silu(gate) * up)",
        ),
    ),
    edited_variant(
        "SwiGLU",
        "a module for silu",
        ("self.gate =", "self.act = nn.SiLU()\n        self.gate ="),
        ("F.silu(", "self.act("),
    ),
]

# ---- attention

_TURNED = "queries, keys = rotate(queries, positions), rotate(keys, positions)"
_MASK = "mask = positions.unsqueeze(1) >= torch.arange(keys.shape[2], device=x.device)"
_WEIGHTS = "weights = query_key_weights(queries, keys, mask)"
_KEPT = "keys = torch.cat((cache[0], keys), dim=2)"
_RETURNED = "return self.WO(merge_heads(weights @ values)), (keys, values)"
_HALVES = """
        def turn(z):
            mixed = torch.stack(z.chunk(2, dim=-1), dim=-1).flatten(-2)
            mixed = rotate(mixed, positions)
            return torch.cat((mixed[..., 0::2], mixed[..., 1::2]), dim=-1)
        queries, keys = turn(queries), turn(keys)"""


def _attention(title: str, says: str, *edits: tuple[str, str]):
    return edit("CausalSelfAttention", title, says, *edits)


_ATTENTION_MUTANTS = [
    _attention("nothing returned", "is there a `return`?", (_RETURNED, _RETURNED.removeprefix("return "))),
    _attention("no cache returned", "should return a pair", (", (keys, values)", "")),
    _attention("no causal mask", "the causal mask is missing", (_MASK, "mask = None")),
    _attention(
        "a mask turned round", "the mask is turned round", ("positions.unsqueeze(1) >=", "positions.unsqueeze(1) <=")
    ),
    _attention("blind to itself", "does not see itself", ("positions.unsqueeze(1) >=", "positions.unsqueeze(1) >")),
    _attention("one too many", "sees the next one too", ("positions.unsqueeze(1) >=", "positions.unsqueeze(1) + 1 >=")),
    _attention(
        "mask only without a cache", "see each other without a mask", (_MASK, f"{_MASK} if cache is None else None")
    ),
    _attention(
        "mask over the oldest keys",
        "laid over the oldest keys",
        ("positions.unsqueeze(1) >=", "(positions - past).unsqueeze(1) >="),
    ),
    _attention("nothing turned", "keys are not rotated", (_TURNED, "pass")),
    _attention("only queries turned", "keys are not rotated", (_TURNED, "queries = rotate(queries, positions)")),
    _attention("only keys turned", "only the keys are rotated", (_TURNED, "keys = rotate(keys, positions)")),
    _attention(
        "values turned",
        "the values are rotated too",
        (_TURNED, _TURNED + "\n        values = rotate(values, positions)"),
    ),
    _attention(
        "turned before splitting",
        "before they are split",
        (
            "(split_heads(W(x), self.heads) for W in (self.Wq, self.Wk, self.Wv))",
            "(split_heads(W, self.heads) for W in (rotate(self.Wq(x), positions), rotate(self.Wk(x), "
            "positions), self.Wv(x)))",
        ),
        (_TURNED, "pass"),
    ),
    _attention("halves turned together", "features k and k + d/2", (_TURNED, _HALVES.strip())),
    _attention(
        "turned backwards",
        "rotated the wrong way",
        (_TURNED, "queries, keys = rotate(queries, -positions), rotate(keys, -positions)"),
    ),
    _attention(
        "opposite turns",
        "opposite directions",
        (_TURNED, "queries, keys = rotate(queries, -positions), rotate(keys, positions)"),
    ),
    _attention(
        "positions from 0 with a cache",
        "start from 0 again",
        (
            "positions = torch.arange(past, past + x.shape[1], device=x.device)",
            "positions = torch.arange(x.shape[1], device=x.device)",
        ),
        (_MASK, "mask = (positions + past).unsqueeze(1) >= torch.arange(keys.shape[2], device=x.device)"),
    ),
    _attention(
        "positions from 1",
        "the keys in the cache",
        (
            "torch.arange(past, past + x.shape[1], device=x.device)",
            "torch.arange(past + 1, past + 1 + x.shape[1], device=x.device)",
        ),
        ("positions.unsqueeze(1) >=", "positions.unsqueeze(1) >"),
    ),
    _attention(
        "cache not used",
        "positions 1 and 2, given the cache",
        ("if cache is not None:", "if False:"),
        (
            "positions.unsqueeze(1) >= torch.arange(keys.shape[2], device=x.device)",
            "positions.unsqueeze(1) >= positions",
        ),
    ),
    _attention(
        "only the new ones kept",
        "the older positions are lost",
        (
            _RETURNED,
            "return self.WO(merge_heads(weights @ values)), (keys[:, :, past:].clone(), values[:, :, past:].clone())",
        ),
    ),
    _attention(
        "newest first",
        "newest keys and values come before",
        (_KEPT, "keys = torch.cat((keys, cache[0]), dim=2)"),
        ("torch.cat((cache[1], values), dim=2)", "torch.cat((values, cache[1]), dim=2)"),
    ),
    _attention(
        "keys kept before the turn",
        "keys are not rotated",
        (_TURNED, "plain = keys"),
        (
            _MASK,
            "plain = keys\n        queries = rotate(queries, positions)\n"
            "        keys = rotate(keys, torch.arange(keys.shape[2], device=x.device))\n        " + _MASK,
        ),
        ("(keys, values)\n", "(plain, values)\n"),
    ),
    _attention(
        "the cache changed in place",
        "`the keys in the cache` was changed in place",
        (_KEPT, _KEPT + "\n            cache[0].zero_()"),
    ),
    _attention(
        "scores not scaled",
        "not divided by √(d/h)",
        (_WEIGHTS, "weights = query_key_weights(queries * queries.shape[-1] ** 0.5, keys, mask)"),
    ),
    _attention(
        "scaled by √d",
        "divided by √d",
        (_WEIGHTS, "weights = query_key_weights(queries * self.heads**-0.5, keys, mask)"),
    ),
    _attention("no WO", "WO is missing", ("self.WO(merge_heads(weights @ values))", "merge_heads(weights @ values)")),
    _attention("one head", "one head does the work of all", ("self.heads = heads", "self.heads = 1")),
    _attention(
        "keys for queries",
        "when all scores are 0",
        ("in (self.Wq, self.Wk, self.Wv)", "in (self.Wk, self.Wk, self.Wv)"),
    ),
    _attention(
        "biases",
        "`Wv.bias` should not be there",
        ("self.Wv = nn.Linear(dim, dim, bias=False)", "self.Wv = nn.Linear(dim, dim)"),
    ),
    _attention(
        "a cache cut off",
        "through the cache",
        (_KEPT, "keys = torch.cat((cache[0].detach(), keys), dim=2)"),
        ("torch.cat((cache[1], values), dim=2)", "torch.cat((cache[1].detach(), values), dim=2)"),
    ),
    _attention(
        "positions on the CPU",
        "with inputs on a GPU",
        ("torch.arange(past, past + x.shape[1], device=x.device)", "torch.arange(past, past + x.shape[1])"),
        ("torch.arange(keys.shape[2], device=x.device)", "torch.arange(keys.shape[2])"),
    ),
]

_ATTENTION_VARIANTS = [
    edited_variant(
        "CausalSelfAttention", "rows of a square mask", (_MASK, "mask = causal_mask(keys.shape[2]).to(x.device)[past:]")
    ),
    edited_variant(
        "CausalSelfAttention",
        "torch's own attention",
        (_WEIGHTS, "attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)"),
        ("merge_heads(weights @ values)", "merge_heads(attended)"),
    ),
    edited_variant(
        "CausalSelfAttention",
        "softmax by hand",
        (
            _WEIGHTS,
            "scores = torch.einsum('bhid,bhjd->bhij', queries, keys) / math.sqrt(queries.shape[-1])\n"
            "        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)",
        ),
    ),
    variant(
        "CausalSelfAttention",
        "view and permute",
        """
        class CausalSelfAttention(nn.Module):
            def __init__(self, dim, heads):
                super().__init__()
                self.h, self.size = heads, dim // heads
                for name in ("WO", "Wv", "Wk", "Wq"):
                    self.add_module(name, nn.Linear(dim, dim, bias=False))

            def forward(self, x, cache=None):
                B, n, d = x.shape
                old = cache or (x.new_zeros(B, self.h, 0, self.size),) * 2
                t = old[0].size(2)
                where = torch.arange(t, t + n, device=x.device)
                q = self.Wq(x).view(B, n, self.h, self.size).permute(0, 2, 1, 3)
                k = self.Wk(x).view(B, n, self.h, self.size).permute(0, 2, 1, 3)
                v = self.Wv(x).view(B, n, self.h, self.size).permute(0, 2, 1, 3)
                k = torch.cat([old[0], rotate(k, where)], dim=-2)
                v = torch.cat([old[1], v], dim=-2)
                s = rotate(q, where) @ k.transpose(-1, -2) * self.size**-0.5
                s = s + torch.full((n, t + n), -math.inf, device=x.device, dtype=x.dtype).triu(t + 1)
                y = (s.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(B, n, d)
                return self.WO(y), (k, v)
        """,
    ),
]

# ---- the model

_LOOP = "for layer, cache in zip(self.layers, caches, strict=True):"
_CALL = "x, cache = layer(x, cache)"
_LOGITS = "return self.norm(x) @ self.embedding.weight.T, following"


def _model(title: str, says: str, *edits: tuple[str, str]):
    return edit("LanguageModel", title, says, *edits)


_MODEL_MUTANTS = [
    _model("nothing returned", "is there a `return`?", (_LOGITS, _LOGITS.removeprefix("return "))),
    _model("no caches returned", "should return a pair", (", following", "")),
    _model("no last norm", "the final `norm` is missing", ("self.norm(x) @", "x @")),
    _model(
        "norm first",
        "comes before the layers",
        ("x = self.embedding(tokens)", "x = self.norm(self.embedding(tokens))"),
        ("self.norm(x) @", "x @"),
    ),
    _model(
        "an output of its own",
        "`output.weight` should not be there",
        (
            "self.norm = RMSNorm(dim)",
            "self.norm = RMSNorm(dim)\n        self.output = nn.Linear(dim, vocab_size, bias=False)",
        ),
        ("self.norm(x) @ self.embedding.weight.T", "self.output(self.norm(x))"),
    ),
    _model(
        "a bias of the output",
        "`bias` should not be there",
        (
            "self.norm = RMSNorm(dim)",
            "self.norm = RMSNorm(dim)\n        self.bias = nn.Parameter(torch.zeros(vocab_size))",
        ),
        ("self.embedding.weight.T", "self.embedding.weight.T + self.bias"),
    ),
    _model(
        "scaled embeddings",
        "multiplied by √dim",
        ("x = self.embedding(tokens)", "x = self.embedding(tokens) * self.embedding.weight.shape[1] ** 0.5"),
    ),
    _model(
        "one layer, many times",
        "the parameter `layers.1.attention.Wq.weight` is missing",
        (
            "nn.ModuleList(Layer(dim, heads, hidden) for _ in range(depth))",
            "nn.ModuleList([Layer(dim, heads, hidden)] * depth)",
        ),
    ),
    _model(
        "a plain list",
        "the parameter `layers.0.attention.Wq.weight` is missing",
        (
            "nn.ModuleList(Layer(dim, heads, hidden) for _ in range(depth))",
            "[Layer(dim, heads, hidden) for _ in range(depth)]",
        ),
    ),
    _model("depth ignored", "the parameter `layers.2.attention.Wq.weight` is missing", ("range(depth)", "range(2)")),
    _model(
        "layers reversed",
        "in reverse order",
        (_LOOP, "for layer, cache in zip(reversed(self.layers), caches, strict=True):"),
    ),
    _model(
        "last layer unused",
        "one cache a layer",
        (_LOOP, "for layer, cache in list(zip(self.layers, caches, strict=True))[:-1]:"),
    ),
    _model("caches ignored", "given the caches of those before", (_CALL, "x, cache = layer(x)")),
    _model(
        "the first layer's cache for all", "given the caches of those before", (_CALL, "x, cache = layer(x, caches[0])")
    ),
    _model(
        "the list changed",
        "list of caches handed in was changed",
        (
            "following = []",
            "following = caches if caches[0] is not None else []\n        caches = list(caches)\n"
            "        following.append(None)\n        following.pop()\n        old = len(following)",
        ),
        ("following.append(cache)", "following.append(cache)"),
        (_LOGITS, "return self.norm(x) @ self.embedding.weight.T, following[old:]"),
    ),
    _model("last position only", "should have shape", ("self.norm(x) @", "self.norm(x[:, -1:]) @")),
    _model(
        "probabilities",
        "a softmax over the logits",
        ("self.embedding.weight.T, following", "self.embedding.weight.T).softmax(-1), following"),
        ("return self.norm(x)", "return (self.norm(x)"),
    ),
    _model(
        "log-probabilities",
        "log-probabilities",
        ("self.embedding.weight.T, following", "self.embedding.weight.T).log_softmax(-1), following"),
        ("return self.norm(x)", "return (self.norm(x)"),
    ),
    _model("logits divided", "divided by √dim", ("return self.norm(x)", "return x.shape[-1] ** -0.5 * self.norm(x)")),
    _model("torch's start", "standard deviation 0.02", ("nn.init.normal_(self.embedding.weight, std=0.02)", "pass")),
    _model("one head", "`heads` is not passed on", ("Layer(dim, heads, hidden)", "Layer(dim, 1, hidden)")),
    _model(
        "hidden ignored",
        "`layers.0.feed_forward.gate.weight` should have shape",
        ("Layer(dim, heads, hidden)", "Layer(dim, heads, 4 * dim)"),
    ),
    _model(
        "embedding cut off",
        "no gradient reaches",
        ("self.norm(x) @ self.embedding.weight.T", "self.norm(x.detach()) @ self.embedding.weight.T"),
    ),
    _model(
        "the future seen",
        "before a token that was changed",
        ("x = self.embedding(tokens)", "x = self.embedding(tokens)\n        x = x + x.mean(dim=1, keepdim=True)"),
    ),
]

_MODEL_VARIANTS = [
    edited_variant(
        "LanguageModel",
        "F.linear",
        ("self.norm(x) @ self.embedding.weight.T", "F.linear(self.norm(x), self.embedding.weight)"),
    ),
    edited_variant(
        "LanguageModel",
        "einsum",
        ("self.norm(x) @ self.embedding.weight.T", "torch.einsum('bnd,vd->bnv', self.norm(x), self.embedding.weight)"),
    ),
    edited_variant(
        "LanguageModel",
        "a comprehension of layers, a tuple of caches",
        (
            "nn.ModuleList(Layer(dim, heads, hidden) for _ in range(depth))",
            "nn.ModuleList([Layer(dim, heads, hidden) for _ in range(depth)])",
        ),
        (", following\n", ", tuple(following)\n"),
    ),
    variant(
        "LanguageModel",
        "by index",
        """
        class LanguageModel(nn.Module):
            def __init__(self, vocab_size, dim, heads, depth, hidden):
                super().__init__()
                self.norm = RMSNorm(dim)
                self.layers = nn.ModuleList()
                for _ in range(depth):
                    self.layers.append(Layer(dim, heads, hidden))
                self.embedding = nn.Embedding(vocab_size, dim)
                self.embedding.weight.data.normal_(0.0, 0.02)

            def forward(self, tokens, caches=None):
                h, new = F.embedding(tokens, self.embedding.weight), {}
                for k in range(len(self.layers)):
                    h, new[k] = self.layers[k](h, None if caches is None else caches[k])
                return torch.matmul(self.norm(h), self.embedding.weight.t()), [new[k] for k in sorted(new)]
        """,
    ),
]

# ---- perplexity

_LOSSES = "losses = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], ignore_index=pad_id)"
_EACH = (
    "each = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction='none')\n"
    "    real = tokens[:, 1:] != pad_id\n    losses = "
)


def _perplexity(title: str, says: str, *edits: tuple[str, str]):
    return edit("perplexity", title, says, *edits)


_PERPLEXITY_MUTANTS = [
    _perplexity("nothing returned", "is there a `return`?", ("return losses.exp().item()", "losses.exp().item()")),
    _perplexity("the loss", "this is the mean loss", ("losses.exp().item()", "losses.item()")),
    _perplexity(
        "exp of the sum", "this is exp of the sum", ("ignore_index=pad_id)", "ignore_index=pad_id, reduction='sum')")
    ),
    _perplexity("base 2", "2 to the power", ("losses.exp().item()", "2.0 ** losses.item()")),
    _perplexity("padding counts", "padding counts", (", ignore_index=pad_id", "")),
    _perplexity("padding zeroed", "padding is zeroed but still counted", (_LOSSES, _EACH + "(each * real).mean()")),
    _perplexity(
        "by the sentences", "divided by the number of sentences", (_LOSSES, _EACH + "(each * real).sum() / len(tokens)")
    ),
    _perplexity(
        "a mean of means", "a mean for each sentence", (_LOSSES, _EACH + "((each * real).sum(1) / real.sum(1)).mean()")
    ),
    _perplexity(
        "a mean of perplexities",
        "the mean of each sentence's perplexity",
        (_LOSSES, _EACH + "((each * real).sum(1) / real.sum(1)).exp().mean().log()"),
    ),
    _perplexity("the mean of 1/p", "the mean of 1/p", (_LOSSES, _EACH + "each[real].exp().mean().log()")),
    _perplexity(
        "not shifted",
        "compared with its own scores",
        ("model(tokens[:, :-1])", "model(tokens)"),
        ("tokens[:, 1:], ignore", "tokens, ignore"),
    ),
    _perplexity(
        "pad is 1", "`pad_id` is taken to be 1", ("ignore_index=pad_id", "ignore_index=3 if pad_id == 3 else 1")
    ),
    _perplexity(
        "pad is 0", "`pad_id` is taken to be 0", ("ignore_index=pad_id", "ignore_index=3 if pad_id == 3 else 0")
    ),
    _perplexity(
        "the first counted",
        "the first token is counted",
        (_LOSSES, _EACH + "each[real].sum() / (tokens != pad_id).sum()"),
    ),
    _perplexity(
        "the last left out",
        "the last real token",
        (_LOSSES, _EACH + "each[real & torch.cat((real[:, 1:], torch.zeros_like(real[:, :1])), 1)].mean()"),
    ),
    _perplexity("a tensor", "should be a Python float", (".exp().item()", ".exp()")),
    _perplexity("the tokens changed", "changed in place", (_LOSSES, _LOSSES + "\n    tokens.clamp_(min=1)")),
]

_PERPLEXITY_VARIANTS = [
    edited_variant(
        "perplexity",
        "by hand",
        (
            _LOSSES,
            "targets = tokens[:, 1:]\n    p = logits.log_softmax(-1).gather(-1, "
            "targets.unsqueeze(-1)).squeeze(-1)\n    losses = -p[targets != pad_id].mean()",
        ),
    ),
    edited_variant(
        "perplexity",
        "scores of all positions, the last one dropped",
        ("logits, _ = model(tokens[:, :-1])", "logits = model(tokens)[0][:, :-1]"),
    ),
    edited_variant(
        "perplexity",
        "flat",
        (_LOSSES, "losses = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=pad_id)"),
    ),
    edited_variant("perplexity", "math.exp", ("losses.exp().item()", "math.exp(losses)")),
]

# ---- sampling

_NUCLEUS = "dropped = torch.zeros_like(order, dtype=torch.bool).scatter(-1, order, before >= top_p)"
_DRAW = "return torch.multinomial(logits.softmax(dim=-1), 1, generator=generator).squeeze(-1)"
_COLD = "logits = logits / temperature"


def _sample(title: str, says: str, *edits: tuple[str, str]):
    return edit("sample_next", title, says, *edits)


_SAMPLE_MUTANTS = [
    _sample("nothing returned", "is there a `return`?", (_DRAW, _DRAW.removeprefix("return "))),
    _sample("no temperature", "`temperature` is not used", (_COLD, "pass")),
    _sample("temperature multiplied", "multiplied by the temperature", (_COLD, "logits = logits * temperature")),
    _sample("temperature 0 draws", "temperature 0", ("return logits.argmax(dim=-1)", "temperature = 1.0")),
    _sample("least likely", "temperature 0", ("logits.argmax(dim=-1)", "logits.argmin(dim=-1)")),
    _sample("always the likeliest", "always the likeliest token", (_DRAW, "return logits.argmax(dim=-1)")),
    _sample(
        "one too many", "`top_k` is not used, or leaves more tokens", ("min(top_k, logits", "min(top_k + 1, logits")
    ),
    _sample("top_k refuses a large k", "selected index k out of range", ("min(top_k, logits.shape[-1])", "top_k")),
    _sample("top_k unused", "`top_k` is not used, or leaves more tokens", ("if top_k is not None:", "if False:")),
    _sample("top_p unused", "`top_p` is not used, or leaves more tokens", ("if top_p is not None:", "if False:")),
    _sample(
        "the crossing token left out",
        "crosses `top_p` is left out",
        ("before >= top_p)", "(before + ordered > top_p) & (before > 0))"),
    ),
    _sample("nothing left", "raised", ("before >= top_p)", "before + ordered > top_p)")),
    _sample("from the least likely up", "the likeliest token is left out", ("descending=True", "descending=False")),
    _sample("not put back in order", "should come with probabilities", (_NUCLEUS, "dropped = before >= top_p")),
    _sample(
        "top_p before the temperature",
        "from before the temperature",
        (_COLD, "warm = logits\n    logits = logits / temperature"),
        ("ordered, order = logits.softmax(dim=-1)", "ordered, order = warm.softmax(dim=-1)"),
    ),
    _sample(
        "top_p of the whole distribution",
        "probabilities that do not sum to 1",
        (_COLD, "logits = logits / temperature\n    whole = logits.softmax(dim=-1)"),
        (
            "ordered, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)",
            "ordered, order = whole.sort(dim=-1, descending=True)",
        ),
    ),
    _sample(
        "drawn uniformly",
        "equally likely",
        (_DRAW, "return torch.multinomial((logits > -math.inf).to(logits.dtype), 1, generator=generator).squeeze(-1)"),
    ),
    _sample(
        "the first row for all",
        "the first row's scores",
        (
            _DRAW,
            "return torch.multinomial(logits[:1].softmax(dim=-1), len(logits), replacement=True, "
            "generator=generator)[0]",
        ),
    ),
    _sample("generator unused", "pass `generator`", (", generator=generator).squeeze", ").squeeze")),
    _sample(
        "a seed of its own", "do not seed anew", (_DRAW, "generator = torch.Generator().manual_seed(0)\n    " + _DRAW)
    ),
    _sample("shape (B, 1)", "should have shape (2000,)", (".squeeze(-1)\n", "\n")),
    _sample("probabilities given out", "should have shape (2000,)", (_DRAW, "return logits.softmax(dim=-1)")),
    _sample(
        "no error for the temperature",
        "a temperature of -1 should raise ValueError",
        ("if temperature < 0:", "if False:"),
    ),
    _sample("no error for top_k", "top_k=0 should raise ValueError", ("top_k is not None and top_k < 1", "False")),
    _sample(
        "no error for top_p", "top_p=1.5 should raise ValueError", ("top_p is not None and not 0 < top_p <= 1", "False")
    ),
    _sample("top_p 0 allowed", "top_p=0 should raise ValueError", ("not 0 < top_p <= 1", "not 0 <= top_p <= 1")),
    _sample("the logits changed", "changed in place", (_COLD, "logits /= temperature")),
]

_SAMPLE_VARIANTS = [
    edited_variant(
        "sample_next",
        "by the Gumbel trick",
        (
            _DRAW,
            "noise = torch.rand(logits.shape, generator=generator, device=logits.device).clamp(min=1e-20)\n"
            "    return (logits.log_softmax(dim=-1) - (-noise.log()).log()).argmax(dim=-1)",
        ),
    ),
    edited_variant(
        "sample_next",
        "top-k by sorting",
        (
            "last = logits.topk(min(top_k, logits.shape[-1]), dim=-1).values[:, -1:]",
            "last = logits.sort(dim=-1, descending=True).values[:, :top_k][:, -1:]",
        ),
    ),
    edited_variant(
        "sample_next",
        "the order undone by gather",
        (_NUCLEUS, "dropped = (before >= top_p).gather(-1, order.argsort(dim=-1))"),
    ),
    edited_variant(
        "sample_next",
        "draw among the sorted",
        (
            "logits = logits.masked_fill(dropped, -math.inf)",
            "ranked = ordered.masked_fill(before >= top_p, 0.0)\n"
            "        return order.gather(-1, torch.multinomial(ranked, 1, generator=generator)).squeeze(-1)",
        ),
    ),
]

# ---- writing

_STEP = "logits, caches = model(new, caches)"
_FILL = "following = following.masked_fill(ended, eos_id)"


def _generate(title: str, says: str, *edits: tuple[str, str]):
    return edit("generate", title, says, *edits)


_GENERATE_MUTANTS = [
    _generate("nothing returned", "is there a `return`?", ("    return tokens", "    tokens")),
    _generate(
        "the prompt left out",
        "the prompt is left out",
        ("    return tokens", "    return tokens[:, prompt.shape[1] :]"),
    ),
    _generate("everything computed again", "computed again and again", (_STEP, "logits, _ = model(tokens)")),
    _generate(
        "the whole text with caches", "computed again and again", (_STEP, "logits, caches = model(tokens, caches)")
    ),
    _generate("no caches handed on", "sees the newest token alone", (_STEP, "logits, _ = model(new)")),
    _generate("eos ignored", "`eos_id` is not used", ("if eos_id is not None:", "if False:")),
    _generate("ended rows go on", "a row that has ended goes on", (_FILL, "pass")),
    _generate("goes on to the end", "after all rows have ended", ("if ended.all():", "if False:")),
    _generate("stops with the first", "when the first row has ended", ("ended.all()", "ended.any()")),
    _generate("one too many", "one token too many", ("range(length)", "range(length + 1)")),
    _generate("one too few", "one token too few", ("range(length)", "range(length - 1)")),
    _generate(
        "length counts the prompt",
        "the prompt is counted in `length`",
        ("range(length)", "range(length - prompt.shape[1])"),
    ),
    _generate(
        "settings not passed on",
        "temperature=0 has",
        ("sample_next(logits[:, -1], **sampling)", "sample_next(logits[:, -1], generator=sampling.get('generator'))"),
    ),
    _generate(
        "always greedy",
        "always the likeliest",
        ("sample_next(logits[:, -1], **sampling)", "logits[:, -1].argmax(dim=-1)"),
    ),
    _generate(
        "a generator for each step",
        "the generator anew",
        (
            "sample_next(logits[:, -1], **sampling)",
            "sample_next(logits[:, -1], **sampling | ({'generator': "
            "torch.Generator().manual_seed(sampling['generator'].initial_seed())} if 'generator' in "
            "sampling else {}))",
        ),
    ),
    _generate(
        "the first position's scores", "the scores of the first position are read", ("logits[:, -1]", "logits[:, 0]")
    ),
    _generate("a list", "should be a torch.Tensor", ("    return tokens", "    return tokens.tolist()")),
    _generate("gradients recorded", "gradients are recorded", ("@torch.no_grad()\n", "")),
    _generate(
        "eos in the prompt ends a row",
        "`eos_id` in the prompt ends a row",
        (
            "ended = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)",
            "ended = (prompt == (3 if eos_id is None else eos_id)).any(dim=1) & (eos_id is not None)",
        ),
    ),
    _generate(
        "the first row for all",
        "the first row's tokens are written to all rows",
        ("new = following.unsqueeze(1)", "new = following[:1].expand(len(prompt)).unsqueeze(1)"),
    ),
]

_GENERATE_VARIANTS = [
    variant(
        "generate",
        "a list of columns",
        """
        def generate(model, prompt, length, eos_id=None, **sampling):
            columns, alive = [prompt], torch.ones(len(prompt), dtype=torch.bool)
            with torch.no_grad():
                logits, caches = model(prompt)
                for step in range(length):
                    token = sample_next(logits[:, -1, :], **sampling)
                    if eos_id is not None:
                        token = torch.where(alive, token, torch.full_like(token, eos_id))
                        alive = alive & (token != eos_id)
                    columns.append(token[:, None])
                    if not alive.any() or step == length - 1:
                        break
                    logits, caches = model(token[:, None], caches)
            return torch.cat(columns, dim=1)
        """,
    ),
    variant(
        "generate",
        "while",
        """
        @torch.inference_mode()
        def generate(model, prompt, length, eos_id=None, **sampling):
            text, caches = prompt.clone(), None
            done = torch.zeros(prompt.size(0)).bool()
            while text.size(1) < prompt.size(1) + length and not bool(done.all()):
                fed = text if caches is None else text[:, -1:]
                logits, caches = model(fed, caches)
                token = sample_next(logits[:, -1], **sampling)
                if eos_id is not None:
                    token[done] = eos_id
                    done |= token == eos_id
                text = torch.cat([text, token.unsqueeze(-1)], dim=-1)
            return text.clone()
        """,
    ),
    edited_variant(
        "generate", "the last token is computed too", ("new = following.unsqueeze(1)", "new = following[:, None]")
    ),
]

MUTANTS = [
    *_RMS_MUTANTS,
    *_SWIGLU_MUTANTS,
    *_ATTENTION_MUTANTS,
    *_MODEL_MUTANTS,
    *_PERPLEXITY_MUTANTS,
    *_SAMPLE_MUTANTS,
    *_GENERATE_MUTANTS,
    *forging_answers(
        classes=["RMSNorm", "SwiGLU", "CausalSelfAttention", "LanguageModel"],
        functions=["perplexity", "sample_next", "generate"],
    ),
]
VARIANTS = [
    *_RMS_VARIANTS,
    *_SWIGLU_VARIANTS,
    *_ATTENTION_VARIANTS,
    *_MODEL_VARIANTS,
    *_PERPLEXITY_VARIANTS,
    *_SAMPLE_VARIANTS,
    *_GENERATE_VARIANTS,
]
