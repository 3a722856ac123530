"""Chapter 11: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import edited_variant, edits, variant
from autograder.checks import Common, Unexplained
from checks.forgers import forging_answers
from checks.language_model.mistakes import CausalSelfAttention as Attention
from checks.language_model.mistakes import LanguageModel as Model
from checks.language_model.mistakes import RMSNorm, SwiGLU, generate, induction_score, perplexity, sample_next

# ---- RMSNorm

_SQUARE = "mean_square = x.pow(2).mean(dim=-1, keepdim=True)"
_DIVIDED = "return self.weight * x / torch.sqrt(mean_square + self.eps)"
_ROOT = "torch.sqrt(mean_square + self.eps)"


_RMS_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_DIVIDED, _DIVIDED.removeprefix("return "))),
    ("mean subtracted", RMSNorm.CENTRED, (_SQUARE, f"x = x - x.mean(-1, keepdim=True)\n        {_SQUARE}")),
    ("the variance", RMSNorm.DEVIATION, (_SQUARE, "mean_square = x.var(-1, keepdim=True, correction=0)")),
    ("the unbiased variance", RMSNorm.UNBIASED_DEVIATION, (_SQUARE, "mean_square = x.var(-1, keepdim=True)")),
    ("the sum of squares", RMSNorm.SUM, (".mean(dim=-1", ".sum(dim=-1")),
    ("no root", RMSNorm.NO_ROOT, (_ROOT, "(mean_square + self.eps)")),
    ("weight unused", RMSNorm.WEIGHT_UNUSED, ("self.weight * x", "x")),
    ("1 + weight", RMSNorm.ONE_PLUS_WEIGHT, ("self.weight * x", "(1 + self.weight) * x")),
    ("eps outside", RMSNorm.EPS_OUTSIDE, (_ROOT, "(torch.sqrt(mean_square) + self.eps)")),
    ("eps fixed", RMSNorm.EPS_IGNORED, ("self.eps = eps", "self.eps = 1e-6")),
    ("LayerNorm's default", RMSNorm.EPS_DEFAULT, ("eps=1e-6", "eps=1e-5")),
    ("no eps", RMSNorm.NO_EPS, ("mean_square + self.eps", "mean_square")),
    ("over the positions", RMSNorm.POSITIONS, (".mean(dim=-1", ".mean(dim=-2")),
    ("over the whole tensor", RMSNorm.WHOLE, (".mean(dim=-1, keepdim=True)", ".mean()")),
    ("over dimension 2", RMSNorm.DIMENSION_2, (".mean(dim=-1", ".mean(dim=min(2, x.dim() - 1)")),
    ("over the batch", RMSNorm.BATCH, (".mean(dim=-1", ".mean(dim=0")),
    ("the mean of absolute values", RMSNorm.ABSOLUTE, (_SQUARE, "mean_square = x.abs().mean(-1, keepdim=True) ** 2")),
    (
        "a bias too",
        Common.PARAMETER_TOO_MANY,
        ("self.eps = eps", "self.eps = eps\n        self.bias = nn.Parameter(torch.zeros(dim))"),
    ),
    ("no parameter", Common.PARAMETER_MISSING, ("nn.Parameter(torch.ones(dim))", "torch.ones(dim)")),
    ("starts as zeros", RMSNorm.START, ("torch.ones(dim)", "torch.zeros(dim)")),
    (
        "in place",
        Common.CHANGED_IN_PLACE,
        (_DIVIDED, "x /= torch.sqrt(mean_square + self.eps)\n        return self.weight * x"),
    ),
    (
        "float32 only",
        Common.WRONG_DTYPE,
        ("x.pow(2)", "x.float().pow(2)"),
        ("self.weight * x /", "self.weight.float() * x.float() /"),
    ),
    ("cut off", RMSNorm.CUT, ("x.pow(2)", "x.detach().pow(2)")),
    ("torch's own", RMSNorm.LIBRARY, (_DIVIDED, "return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)")),
]

_RMS_VARIANTS = [
    edited_variant(
        "RMSNorm",
        "in float32, as Llama's own code",
        ("x.pow(2)", "x.float().pow(2)"),
        (
            "self.weight * x / torch.sqrt(mean_square + self.eps)",
            "self.weight * (x.float() * torch.rsqrt(mean_square + self.eps)).type_as(x)",
        ),
    ),
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


_SWIGLU_BODIES = [
    ("nothing returned", Common.NO_RETURN, _GATED.removeprefix("return ")),
    ("silu on up", SwiGLU.ON_UP, "return self.down(self.gate(x) * F.silu(self.up(x)))"),
    ("silu on both", SwiGLU.ON_BOTH, "return self.down(F.silu(self.gate(x)) * F.silu(self.up(x)))"),
    ("no silu", SwiGLU.NO_SILU, "return self.down(self.gate(x) * self.up(x))"),
    ("silu of the product", SwiGLU.AFTER_PRODUCT, "return self.down(F.silu(self.gate(x) * self.up(x)))"),
    ("silu twice", SwiGLU.TWICE, "return self.down(F.silu(F.silu(self.gate(x)) * self.up(x)))"),
    ("GLU", SwiGLU.SIGMOID, "return self.down(torch.sigmoid(self.gate(x)) * self.up(x))"),
    ("GeGLU", SwiGLU.GELU, "return self.down(F.gelu(self.gate(x)) * self.up(x))"),
    ("ReGLU", SwiGLU.RELU, "return self.down(F.relu(self.gate(x)) * self.up(x))"),
    ("added", SwiGLU.ADDED, "return self.down(F.silu(self.gate(x)) + self.up(x))"),
    ("up unused", SwiGLU.UP_UNUSED, "return self.down(F.silu(self.gate(x)))"),
    ("gate unused", SwiGLU.GATE_UNUSED, "return self.down(self.up(x))"),
    ("gate twice", SwiGLU.GATE_TWICE, "return self.down(F.silu(self.gate(x)) * self.gate(x))"),
    ("residual inside", SwiGLU.RESIDUAL, "return x + self.down(F.silu(self.gate(x)) * self.up(x))"),
    ("cut off", Common.INPUT_CUT_OFF, "return self.down(F.silu(self.gate(x)).detach() * self.up(x).detach())"),
    (
        "float32 only",
        Common.WRONG_DTYPE,
        "return self.down.float()(F.silu(self.gate.float()(x.float())) * self.up.float()(x.float()))",
    ),
    (
        "in place",
        Common.CHANGED_IN_PLACE,
        "y = self.down(F.silu(self.gate(x)) * self.up(x))\n        x += y\n        return y",
    ),
    (
        "only the first sequence",
        SwiGLU.FIRST_SEQUENCE,
        "y = self.down(F.silu(self.gate(x)) * self.up(x))\n        return y[:1].expand_as(y)",
    ),
]
_SWIGLU_MUTANTS = [
    (
        "a bias",
        Common.PARAMETER_TOO_MANY,
        ("self.down = nn.Linear(hidden, dim, bias=False)", "self.down = nn.Linear(hidden, dim)"),
    ),
    (
        "up as wide as the input",
        Common.PARAMETER_SHAPE,
        ("self.up = nn.Linear(dim, hidden, bias=False)", "self.up = nn.Linear(dim, dim, bias=False)"),
    ),
    ("shared map", Common.PARAMETER_MISSING, ("self.up = nn.Linear(dim, hidden, bias=False)", "self.up = self.gate")),
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
_WEIGHTS = "weights = query_key_weights(queries, read[0], mask)"
_KEPT = "keys = torch.cat((cache[0], keys), dim=2)"
_RETURNED = "return self.WO(merge_heads(weights @ read[1])), (keys, values)"
_SEES, _MADE, _ASKED = "positions.unsqueeze(1) >=", "in (self.Wk, self.Wv)", "split_heads(self.Wq(x), self.heads)"
_MERGED, _JOINED = "merge_heads(weights @ read[1])", "torch.cat((cache[1], values), dim=2)"
_PLACES = "torch.arange(past, past + x.shape[1], device=x.device)"
_HALVES = """
        def turn(z):
            mixed = torch.stack(z.chunk(2, dim=-1), dim=-1).flatten(-2)
            mixed = rotate(mixed, positions)
            return torch.cat((mixed[..., 0::2], mixed[..., 1::2]), dim=-1)
        queries, keys = turn(queries), turn(keys)"""


_ATTENTION_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_RETURNED, _RETURNED.removeprefix("return "))),
    ("no cache returned", Attention.NO_PAIR, (", (keys, values)", "")),
    ("no causal mask", Attention.NO_MASK, (_MASK, "mask = None")),
    ("a mask turned round", Attention.TURNED_ROUND, (_SEES, "positions.unsqueeze(1) <=")),
    ("blind to itself", Attention.NOT_ITSELF, (_SEES, "positions.unsqueeze(1) >")),
    ("one too many", Attention.NEXT_TOO, (_SEES, "positions.unsqueeze(1) + 1 >=")),
    ("mask only without a cache", Attention.NO_MASK_WITH_CACHE, (_MASK, f"{_MASK} if cache is None else None")),
    ("mask over the oldest keys", Attention.MASK_OVER_OLDEST, (_SEES, "(positions - past).unsqueeze(1) >=")),
    ("nothing turned", Attention.UNROTATED_KEYS, (_TURNED, "pass")),
    ("only queries turned", Attention.UNROTATED_KEYS, (_TURNED, "queries = rotate(queries, positions)")),
    ("only keys turned", Attention.UNROTATED_QUERIES, (_TURNED, "keys = rotate(keys, positions)")),
    ("values turned", Attention.ROTATED_VALUES, (_TURNED, _TURNED + "\n        values = rotate(values, positions)")),
    (
        "turned before splitting",
        Attention.BEFORE_SPLITTING,
        (_ASKED, "split_heads(rotate(self.Wq(x), positions), self.heads)"),
        (
            "split_heads(W(x), self.kv_heads)",
            "split_heads(rotate(W(x), positions) if W is self.Wk else W(x), self.kv_heads)",
        ),
        (_TURNED, "pass"),
    ),
    ("halves turned together", Attention.HALVES, (_TURNED, _HALVES.strip())),
    (
        "turned backwards",
        Attention.WRONG_WAY,
        (_TURNED, "queries, keys = rotate(queries, -positions), rotate(keys, -positions)"),
    ),
    (
        "opposite turns",
        Attention.OPPOSITE,
        (_TURNED, "queries, keys = rotate(queries, -positions), rotate(keys, positions)"),
    ),
    (
        "positions from 0 with a cache",
        Attention.FROM_0_AGAIN,
        (
            "positions = torch.arange(past, past + x.shape[1], device=x.device)",
            "positions = torch.arange(x.shape[1], device=x.device)",
        ),
        (_MASK, "mask = (positions + past).unsqueeze(1) >= torch.arange(keys.shape[2], device=x.device)"),
    ),
    (
        "positions from 1",
        Attention.FROM_1,
        (_PLACES, "torch.arange(past + 1, past + 1 + x.shape[1], device=x.device)"),
        (_SEES, "positions.unsqueeze(1) >"),
    ),
    (
        "cache not used",
        Attention.CACHE_UNUSED,
        ("if cache is not None:", "if False:"),
        (
            "positions.unsqueeze(1) >= torch.arange(keys.shape[2], device=x.device)",
            "positions.unsqueeze(1) >= positions",
        ),
    ),
    (
        "only the new ones kept",
        Attention.OLD_LOST,
        (
            _RETURNED,
            "return self.WO(merge_heads(weights @ read[1])), (keys[:, :, past:].clone(), values[:, :, past:].clone())",
        ),
    ),
    (
        "newest first",
        Attention.NEWEST_FIRST,
        (_KEPT, "keys = torch.cat((keys, cache[0]), dim=2)"),
        (_JOINED, "torch.cat((values, cache[1]), dim=2)"),
    ),
    (
        "keys kept before the turn",
        Attention.UNROTATED_KEYS,
        (_TURNED, "plain = keys"),
        (
            _MASK,
            "plain = keys\n        queries = rotate(queries, positions)\n"
            "        keys = rotate(keys, torch.arange(keys.shape[2], device=x.device))\n        " + _MASK,
        ),
        (_RETURNED, _RETURNED.replace("(keys, values)", "(plain, values)")),
    ),
    ("the cache changed in place", Common.CHANGED_IN_PLACE, (_KEPT, _KEPT + "\n            cache[0].zero_()")),
    (
        "scores not scaled",
        Attention.NOT_SCALED,
        (_WEIGHTS, "weights = query_key_weights(queries * queries.shape[-1] ** 0.5, read[0], mask)"),
    ),
    (
        "scaled by √d",
        Attention.ALL_FEATURES,
        (_WEIGHTS, "weights = query_key_weights(queries * self.heads**-0.5, read[0], mask)"),
    ),
    ("no WO", Attention.NO_WO, ("self.WO(merge_heads(weights @ read[1]))", "merge_heads(weights @ read[1])")),
    ("one head", Attention.ONE_HEAD, ("self.heads, self.kv_heads = heads, kv_heads", "self.heads = self.kv_heads = 1")),
    ("keys for queries", Attention.QUERIES_BY_WK, (_ASKED, "split_heads(self.Wk(x), self.heads)")),
    (
        "biases",
        Common.PARAMETER_TOO_MANY,
        ("self.Wv = nn.Linear(dim, shared, bias=False)", "self.Wv = nn.Linear(dim, shared)"),
    ),
    (
        "a cache cut off",
        Attention.CACHE_CUT_OFF,
        (_KEPT, "keys = torch.cat((cache[0].detach(), keys), dim=2)"),
        (_JOINED, "torch.cat((cache[1].detach(), values), dim=2)"),
    ),
    (
        "positions on the CPU",
        Common.MADE_ON_CPU,
        (_PLACES, "torch.arange(past, past + x.shape[1])"),
        ("torch.arange(keys.shape[2], device=x.device)", "torch.arange(keys.shape[2])"),
    ),
]

_SHARE = "part.repeat_interleave(times, dim=1)"
_ATTENTION_MUTANTS += [
    (
        "heads that lie apart share",
        Attention.SHARED_APART,
        (_SHARE, "part.repeat(1, times, 1, 1)"),
    ),
    ("copies in the cache", Attention.COPIES_KEPT, ("), (keys, values)\n", "), tuple(read)\n")),
    ("keys and values of full width", Attention.SHARED_WIDTH, ("shared = dim // heads * kv_heads", "shared = dim")),
    ("one shared head by default", Attention.SHARED_WIDTH, ("heads if kv_heads is None", "1 if kv_heads is None")),
    ("no error for the heads", Common.NO_ERROR, ("if dim % heads or heads % kv_heads:", "if dim % heads:")),
    ("no error for the features", Common.NO_ERROR, ("if dim % heads or heads % kv_heads:", "if heads % kv_heads:")),
    ("the keys alone kept", Attention.NO_PAIR, ("(keys, values)\n", "keys\n"), ("cache[1]", "cache")),
    (
        "heads merged in the cache",
        Attention.MERGED_CACHE,
        (", (keys, values)\n", ", (merge_heads(keys), merge_heads(values))\n"),
    ),
    (
        "heads split by view",
        Attention.MIXED_BY_VIEW,
        (_ASKED, "self.Wq(x).view(len(x), self.heads, x.shape[1], -1)"),
        ("split_heads(W(x), self.kv_heads)", "W(x).view(len(x), self.kv_heads, x.shape[1], -1)"),
        (_MERGED, "(weights @ read[1]).reshape(x.shape)"),
    ),
    ("heads merged by view", Attention.MERGED_BY_VIEW, (_MERGED, "(weights @ read[1]).reshape(x.shape)")),
    ("keys and values exchanged", Attention.EXCHANGED, (_MADE, "in (self.Wv, self.Wk)")),
    ("queries for keys", Attention.KEYS_BY_WQ, (_MADE, "in (self.Wq, self.Wv)")),
    ("residual inside", Attention.RESIDUAL, ("return self.WO(", "return x + self.WO(")),
]

_ATTENTION_VARIANTS = [
    edited_variant(
        "CausalSelfAttention", "rows of a square mask", (_MASK, "mask = causal_mask(keys.shape[2]).to(x.device)[past:]")
    ),
    edited_variant(
        "CausalSelfAttention",
        "torch's own attention",
        (_WEIGHTS, "attended = F.scaled_dot_product_attention(queries, *read, attn_mask=mask)"),
        (_MERGED, "merge_heads(attended)"),
    ),
    edited_variant(
        "CausalSelfAttention",
        "softmax by hand",
        (
            _WEIGHTS,
            "scores = torch.einsum('bhid,bhjd->bhij', queries, read[0]) / math.sqrt(queries.shape[-1])\n"
            "        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)",
        ),
    ),
    variant(
        "CausalSelfAttention",
        "view and permute",
        """
        class CausalSelfAttention(nn.Module):
            def __init__(self, dim, heads, kv_heads=None):
                super().__init__()
                self.kv = kv_heads or heads
                if heads % self.kv != 0 or dim % heads != 0:
                    raise ValueError("sizes")
                self.h, self.size = heads, dim // heads
                for name in ("WO", "Wv", "Wk", "Wq"):
                    width = self.kv * self.size if name in ("Wv", "Wk") else dim
                    self.add_module(name, nn.Linear(dim, width, bias=False))

            def forward(self, x, cache=None):
                B, n, d = x.shape
                old = cache or (x.new_zeros(B, self.kv, 0, self.size),) * 2
                t = old[0].size(2)
                where = torch.arange(t, t + n, device=x.device)
                q = self.Wq(x).view(B, n, self.h, self.size).permute(0, 2, 1, 3)
                k = self.Wk(x).view(B, n, self.kv, self.size).permute(0, 2, 1, 3)
                v = self.Wv(x).view(B, n, self.kv, self.size).permute(0, 2, 1, 3)
                k = torch.cat([old[0], rotate(k, where)], dim=-2)
                v = torch.cat([old[1], v], dim=-2)
                q = rotate(q, where).unflatten(1, (self.kv, -1))  # (B, kv, h / kv, n, size)
                s = q @ k.transpose(-1, -2).unsqueeze(2) * self.size**-0.5
                s = s + torch.full((n, t + n), -math.inf, device=x.device, dtype=x.dtype).triu(t + 1)
                y = (s.softmax(-1) @ v.unsqueeze(2)).flatten(1, 2).permute(0, 2, 1, 3).reshape(B, n, d)
                return self.WO(y), (k, v)
        """,
    ),
]

# ---- the model

_LOOP = "for layer, cache in zip(self.layers, caches, strict=True):"
_CALL = "x, cache = layer(x, cache)"
_LOGITS = "return self.norm(x) @ self.embedding.weight.T, following"
_LAST, _EMBEDDED, _NORM = "self.norm(x) @", "x = self.embedding(tokens)", "self.norm = RMSNorm(dim)"
_LAYERS = "nn.ModuleList(Layer(dim, heads, hidden, kv_heads) for _ in range(depth))"


_MODEL_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_LOGITS, _LOGITS.removeprefix("return "))),
    ("no caches returned", Model.NO_PAIR, (", following", "")),
    ("no last norm", Model.NO_LAST_NORM, (_LAST, "x @")),
    ("norm first", Model.NORM_FIRST, (_EMBEDDED, "x = self.norm(self.embedding(tokens))"), (_LAST, "x @")),
    (
        "an output of its own",
        Model.NOT_TIED,
        (_NORM, _NORM + "\n        self.output = nn.Linear(dim, vocab_size, bias=False)"),
        ("self.norm(x) @ self.embedding.weight.T", "self.output(self.norm(x))"),
    ),
    (
        "a bias of the output",
        Model.NOT_TIED,
        (_NORM, _NORM + "\n        self.bias = nn.Parameter(torch.zeros(vocab_size))"),
        ("self.embedding.weight.T", "self.embedding.weight.T + self.bias"),
    ),
    (
        "scaled embeddings",
        Model.SCALED_EMBEDDINGS,
        (_EMBEDDED, "x = self.embedding(tokens) * self.embedding.weight.shape[1] ** 0.5"),
    ),
    (
        "one layer, many times",
        Model.SHARED_LAYER,
        (_LAYERS, "nn.ModuleList([Layer(dim, heads, hidden, kv_heads)] * depth)"),
    ),
    ("a plain list", Model.NO_LAYERS, (_LAYERS, "[Layer(dim, heads, hidden, kv_heads) for _ in range(depth)]")),
    ("depth ignored", Model.DEPTH_IGNORED, ("range(depth)", "range(2)")),
    (
        "layers reversed",
        Model.REVERSED,
        (_LOOP, "for layer, cache in zip(reversed(self.layers), caches, strict=True):"),
    ),
    (
        "last layer unused",
        Model.CACHES,
        (_LOOP, "for layer, cache in list(zip(self.layers, caches, strict=True))[:-1]:"),
    ),
    ("caches ignored", Model.CACHES_UNUSED, (_CALL, "x, cache = layer(x)")),
    ("the first layer's cache for all", Model.ANOTHER_CACHE, (_CALL, "x, cache = layer(x, caches[0])")),
    (
        "the list changed",
        Model.LIST_CHANGED,
        (
            "following = []",
            "following = caches if caches[0] is not None else []\n        caches = list(caches)\n"
            "        following.append(None)\n        following.pop()\n        old = len(following)",
        ),
        ("following.append(cache)", "following.append(cache)"),
        (_LOGITS, "return self.norm(x) @ self.embedding.weight.T, following[old:]"),
    ),
    ("last position only", Model.LAST_ONLY, (_LAST, "self.norm(x[:, -1:]) @")),
    (
        "probabilities",
        Model.SOFTMAX,
        ("self.embedding.weight.T, following", "self.embedding.weight.T).softmax(-1), following"),
        ("return self.norm(x)", "return (self.norm(x)"),
    ),
    (
        "log-probabilities",
        Model.LOG_SOFTMAX,
        ("self.embedding.weight.T, following", "self.embedding.weight.T).log_softmax(-1), following"),
        ("return self.norm(x)", "return (self.norm(x)"),
    ),
    ("logits divided", Model.SCALED_LOGITS, ("return self.norm(x)", "return x.shape[-1] ** -0.5 * self.norm(x)")),
    ("torch's start", Model.EMBEDDING_START, ("nn.init.normal_(self.embedding.weight, std=0.02)", "pass")),
    ("one head", Model.HEADS_IGNORED, ("Layer(dim, heads, hidden, kv_heads)", "Layer(dim, 1, hidden)")),
    (
        "hidden ignored",
        Model.HIDDEN_IGNORED,
        ("Layer(dim, heads, hidden, kv_heads)", "Layer(dim, heads, 4 * dim, kv_heads)"),
    ),
    (
        "embedding cut off",
        Common.PARAMETER_UNUSED,
        ("self.norm(x) @ self.embedding.weight.T", "self.norm(x.detach()) @ self.embedding.weight.T"),
    ),
    (
        "the future seen",
        Model.SEES_FUTURE,
        (_EMBEDDED, "x = self.embedding(tokens)\n        x = x + x.mean(dim=1, keepdim=True)"),
    ),
    (
        "shared heads not passed on",
        Model.KV_HEADS_IGNORED,
        ("Layer(dim, heads, hidden, kv_heads)", "Layer(dim, heads, hidden)"),
    ),
    ("the first layer, again and again", Model.FIRST_LAYER_AGAIN, (_CALL, _CALL.replace("layer(", "self.layers[0]("))),
    ("norms that start at 0", Model.NORM_START, (_NORM, _NORM + "\n        nn.init.zeros_(self.norm.weight)")),
    (
        "every parameter starts small",
        Model.NORM_START,
        (
            _NORM,
            _NORM + "\n        for parameter in self.parameters():\n            nn.init.normal_(parameter, std=0.02)",
        ),
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
        (_LAYERS, "nn.ModuleList([Layer(dim, heads, hidden, kv_heads) for _ in range(depth)])"),
        (", following\n", ", tuple(following)\n"),
    ),
    variant(
        "LanguageModel",
        "by index",
        """
        class LanguageModel(nn.Module):
            def __init__(self, vocab_size, dim, heads, depth, hidden, kv_heads=None):
                super().__init__()
                self.norm = RMSNorm(dim)
                self.layers = nn.ModuleList()
                for _ in range(depth):
                    self.layers.append(Layer(dim, heads, hidden, kv_heads))
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


_PERPLEXITY_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, ("return losses.exp().item()", "losses.exp().item()")),
    ("the loss", perplexity.LOSS, ("losses.exp().item()", "losses.item()")),
    ("exp of the sum", perplexity.SUM, ("ignore_index=pad_id)", "ignore_index=pad_id, reduction='sum')")),
    ("base 2", perplexity.POWER_OF_2, ("losses.exp().item()", "2.0 ** losses.item()")),
    ("padding counts", perplexity.PADDING, (", ignore_index=pad_id", "")),
    ("padding zeroed", perplexity.PADDING_ZEROED, (_LOSSES, _EACH + "(each * real).mean()")),
    ("by the sentences", perplexity.BY_SENTENCES, (_LOSSES, _EACH + "(each * real).sum() / len(tokens)")),
    ("a mean of means", perplexity.MEAN_OF_MEANS, (_LOSSES, _EACH + "((each * real).sum(1) / real.sum(1)).mean()")),
    (
        "a mean of perplexities",
        perplexity.MEAN_OF_PERPLEXITIES,
        (_LOSSES, _EACH + "((each * real).sum(1) / real.sum(1)).exp().mean().log()"),
    ),
    ("the mean of 1/p", perplexity.MEAN_OF_INVERSES, (_LOSSES, _EACH + "each[real].exp().mean().log()")),
    (
        "not shifted",
        perplexity.NOT_SHIFTED,
        ("model(tokens[:, :-1])", "model(tokens)"),
        ("tokens[:, 1:], ignore", "tokens, ignore"),
    ),
    ("pad is 1", perplexity.PAD_IS_1, ("ignore_index=pad_id", "ignore_index=3 if pad_id == 3 else 1")),
    ("pad is 0", perplexity.PAD_IS_0, ("ignore_index=pad_id", "ignore_index=3 if pad_id == 3 else 0")),
    ("the first counted", perplexity.FIRST_COUNTED, (_LOSSES, _EACH + "each[real].sum() / (tokens != pad_id).sum()")),
    (
        "the last left out",
        perplexity.LAST_LEFT_OUT,
        (_LOSSES, _EACH + "each[real & torch.cat((real[:, 1:], torch.zeros_like(real[:, :1])), 1)].mean()"),
    ),
    ("a tensor", Common.NOT_A_NUMBER, (".exp().item()", ".exp()")),
    ("the tokens changed", Common.CHANGED_IN_PLACE, (_LOSSES, _LOSSES + "\n    tokens.clamp_(min=1)")),
    ("the sign", perplexity.SIGN, ("losses.exp()", "(-losses).exp()")),
    ("a softmax first", perplexity.SOFTMAX_FIRST, ("logits.transpose(1, 2)", "logits.softmax(-1).transpose(1, 2)")),
    ("classes last", Common.CLASSES_LAST, ("logits.transpose(1, 2)", "logits")),
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


_SAMPLE_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_DRAW, _DRAW.removeprefix("return "))),
    ("no temperature", sample_next.NO_TEMPERATURE, (_COLD, "pass")),
    ("temperature multiplied", sample_next.MULTIPLIED, (_COLD, "logits = logits * temperature")),
    ("temperature 0 draws", sample_next.NOT_GREEDY, ("return logits.argmax(dim=-1)", "temperature = 1.0")),
    ("least likely", sample_next.NOT_GREEDY, ("logits.argmax(dim=-1)", "logits.argmin(dim=-1)")),
    ("always the likeliest", sample_next.GREEDY, (_DRAW, "return logits.argmax(dim=-1)")),
    ("one too many", sample_next.TOP_K, ("min(top_k, logits", "min(top_k + 1, logits")),
    ("top_k refuses a large k", Unexplained.RAISED, ("min(top_k, logits.shape[-1])", "top_k")),
    ("top_k unused", sample_next.TOP_K, ("if top_k is not None:", "if False:")),
    ("top_p unused", sample_next.TOP_P, ("if top_p is not None:", "if False:")),
    (
        "the crossing token left out",
        sample_next.CROSSING,
        ("before >= top_p)", "(before + ordered > top_p) & (before > 0))"),
    ),
    ("nothing left", Unexplained.RAISED, ("before >= top_p)", "before + ordered > top_p)")),
    ("from the least likely up", sample_next.LEAST_LIKELY, ("descending=True", "descending=False")),
    ("not put back in order", sample_next.UNORDERED, (_NUCLEUS, "dropped = before >= top_p")),
    (
        "top_p before the temperature",
        sample_next.WARM,
        (_COLD, "warm = logits\n    logits = logits / temperature"),
        ("ordered, order = logits.softmax(dim=-1)", "ordered, order = warm.softmax(dim=-1)"),
    ),
    (
        "top_p of the whole distribution",
        sample_next.P_OF_ALL,
        (_COLD, "logits = logits / temperature\n    whole = logits.softmax(dim=-1)"),
        (
            "ordered, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)",
            "ordered, order = whole.sort(dim=-1, descending=True)",
        ),
    ),
    (
        "drawn uniformly",
        sample_next.UNIFORM,
        (_DRAW, "return torch.multinomial((logits > -math.inf).to(logits.dtype), 1, generator=generator).squeeze(-1)"),
    ),
    (
        "the first row for all",
        sample_next.FIRST_ROW,
        (
            _DRAW,
            "return torch.multinomial(logits[:1].softmax(dim=-1), len(logits), replacement=True, "
            "generator=generator)[0]",
        ),
    ),
    ("generator unused", sample_next.NO_GENERATOR, (", generator=generator).squeeze", ").squeeze")),
    (
        "a seed of its own",
        sample_next.SEEDED_ANEW,
        (_DRAW, "generator = torch.Generator().manual_seed(0)\n    " + _DRAW),
    ),
    ("as floats", sample_next.FLOATS, (_DRAW, _DRAW + ".float()")),
    ("shape (B, 1)", Unexplained.SHAPE, (".squeeze(-1)\n", "\n")),
    ("probabilities given out", Unexplained.SHAPE, (_DRAW, "return logits.softmax(dim=-1)")),
    ("no error for the temperature", Common.NO_ERROR, ("if temperature < 0:", "if False:")),
    ("no error for top_k", Common.OTHER_ERROR, ("top_k is not None and top_k < 1", "False")),
    ("no error for top_p", Common.NO_ERROR, ("top_p is not None and not 0 < top_p <= 1", "False")),
    ("top_p 0 allowed", Common.OTHER_ERROR, ("not 0 < top_p <= 1", "not 0 <= top_p <= 1")),
    ("the logits changed", Common.CHANGED_IN_PLACE, (_COLD, "logits /= temperature")),
    (
        "few rows always the likeliest",
        sample_next.GREEDY,
        (_DRAW, f"if len(logits) < 10:\n        return logits.argmax(dim=-1)\n    {_DRAW}"),
    ),
    (
        "probabilities divided by the temperature",
        sample_next.NO_TEMPERATURE,
        (_COLD, "pass"),
        ("multinomial(logits.softmax(dim=-1)", "multinomial(logits.softmax(dim=-1) / temperature"),
    ),
    (
        "top_p before top_k",
        sample_next.P_OF_ALL,
        (_COLD, f"{_COLD}\n    warm = logits"),
        ("logits.softmax(dim=-1).sort", "warm.softmax(dim=-1).sort"),
    ),
    (
        "the first row's likeliest for all",
        sample_next.NOT_GREEDY,
        ("return logits.argmax(dim=-1)", "return logits[0].argmax().expand(len(logits))"),
    ),
    (
        "a fixed seed where no generator is given",
        sample_next.FIXED_SEED,
        (_DRAW, "generator = generator or torch.Generator().manual_seed(0)\n    " + _DRAW),
    ),
    (
        "drawn on the CPU by scores that are elsewhere",
        Common.MADE_ON_CPU,
        (_DRAW, "logits = logits + torch.zeros(logits.shape[-1])\n    " + _DRAW),
    ),
]

_SAMPLE_VARIANTS = [
    edited_variant(
        "sample_next",
        "as the best-known libraries do it",
        (
            "ordered, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)",
            "ordered, order = logits.sort(dim=-1, descending=True)",
        ),
        ("before = ordered.cumsum(dim=-1) - ordered", "before = ordered.softmax(dim=-1).cumsum(dim=-1)"),
        (
            _NUCLEUS,
            "above = before > top_p\n        above[..., 1:] = above[..., :-1].clone()\n        above[..., 0] = False\n"
            "        dropped = above.scatter(-1, order, above)",
        ),
    ),
    variant(
        "sample_next",
        "row by row",
        """
        def sample_next(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
            if temperature < 0 or (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
                raise ValueError("settings")
            if temperature == 0:
                return logits.argmax(-1)
            drawn = []
            for row in logits / temperature:
                values, order = row.sort(descending=True)
                chances = values[:top_k].softmax(-1)
                if top_p is not None:
                    kept = 1 + int((chances.cumsum(-1)[:-1] < top_p).sum())
                    chances = chances[:kept]
                drawn.append(order[torch.multinomial(chances, 1, generator=generator)])
            return torch.cat(drawn)
        """,
    ),
    edited_variant(
        "sample_next",
        "noise drawn on the CPU, then moved",
        (
            _DRAW,
            "noise = -torch.rand(logits.shape, generator=generator).clamp(min=1e-20).log()\n"
            "    return (logits.softmax(dim=-1) / noise.to(logits.device)).argmax(dim=-1)",
        ),
    ),
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


_GENERATE_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, ("    return tokens", "    tokens")),
    ("the prompt left out", generate.NO_PROMPT, ("    return tokens", "    return tokens[:, prompt.shape[1] :]")),
    ("everything computed again", generate.COMPUTED_AGAIN, (_STEP, "logits, _ = model(tokens)")),
    ("the whole text with caches", generate.COMPUTED_AGAIN, (_STEP, "logits, caches = model(tokens, caches)")),
    ("no caches handed on", generate.NO_CACHES, (_STEP, "logits, _ = model(new)")),
    ("eos ignored", generate.NO_EOS, ("if eos_id is not None:", "if False:")),
    ("ended rows go on", generate.ENDED_GOES_ON, (_FILL, "pass")),
    ("goes on to the end", generate.ALL_ENDED, ("if ended.all():", "if False:")),
    ("stops with the first", generate.FIRST_ENDED, ("ended.all()", "ended.any()")),
    ("one too many", generate.ONE_TOO_MANY, ("range(length)", "range(length + 1)")),
    ("one too few", generate.ONE_TOO_FEW, ("range(length)", "range(length - 1)")),
    ("length counts the prompt", generate.PROMPT_COUNTED, ("range(length)", "range(length - prompt.shape[1])")),
    (
        "settings not passed on",
        generate.SETTINGS,
        ("sample_next(logits[:, -1], **sampling)", "sample_next(logits[:, -1], generator=sampling.get('generator'))"),
    ),
    ("always greedy", generate.GREEDY, ("sample_next(logits[:, -1], **sampling)", "logits[:, -1].argmax(dim=-1)")),
    (
        "a generator for each step",
        generate.SEEDED_ANEW,
        (
            "sample_next(logits[:, -1], **sampling)",
            "sample_next(logits[:, -1], **sampling | ({'generator': "
            "torch.Generator().manual_seed(sampling['generator'].initial_seed())} if 'generator' in "
            "sampling else {}))",
        ),
    ),
    ("the first position's scores", generate.FIRST_POSITION, ("logits[:, -1]", "logits[:, 0]")),
    ("a list", Common.NOT_A_TENSOR, ("    return tokens", "    return tokens.tolist()")),
    ("gradients recorded", generate.GRADIENTS, ("@torch.no_grad()\n", "")),
    (
        "eos in the prompt ends a row",
        generate.EOS_IN_PROMPT,
        (
            "ended = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)",
            "ended = (prompt == (3 if eos_id is None else eos_id)).any(dim=1) & (eos_id is not None)",
        ),
    ),
    (
        "the first row for all",
        generate.FIRST_ROW,
        ("new = following.unsqueeze(1)", "new = following[:1].expand(len(prompt)).unsqueeze(1)"),
    ),
    (
        "stops before the last token is written",
        generate.LAST_END_LOST,
        ("        if ended.all():\n            break\n", ""),
        ("        new = following", "        if ended.all():\n            break\n        new = following"),
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

# ---- a head that copies

_EARLIER = "earlier = (tokens.unsqueeze(2) == tokens.unsqueeze(1)).tril(-1)  # (B, n, n)"
_LATEST = "latest = torch.where(earlier, place, -1).amax(dim=-1)"
_BEHIND = "behind = (latest + 1)[:, None, :, None].expand(*weights.shape[:-1], 1)"
_MEAN = "return looked.sum(dim=(0, -1)) / repeated.sum().clamp(min=1)"
_INDUCTION_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_MEAN, _MEAN.removeprefix("return "))),
    ("at the copy", induction_score.AT_THE_COPY, (_BEHIND, _BEHIND.replace("latest + 1", "latest.clamp(min=0)"))),
    ("before the copy", induction_score.BEFORE_THE_COPY, (_BEHIND, _BEHIND.replace("latest + 1", "(latest - 1) % 6"))),
    (
        "the first copy",
        induction_score.FIRST_COPY,
        (_LATEST, "latest = torch.where(earlier.any(-1), earlier.float().argmax(dim=-1), -1)"),
    ),
    ("all positions", induction_score.ALL_POSITIONS, ("repeated.sum().clamp(min=1)", "tokens.numel()")),
    ("transposed", induction_score.TRANSPOSED, ("weights.gather(-1, behind)", "weights.mT.gather(-1, behind)")),
    ("a sum", induction_score.SUM, (" / repeated.sum().clamp(min=1)", "")),
    (
        "row by row",
        induction_score.ROW_BY_ROW,
        (_MEAN, "return (looked.sum(dim=-1) / repeated.sum(dim=-1, keepdim=True).clamp(min=1)).mean(dim=0)"),
    ),
    (
        "the first row's tokens",
        induction_score.FIRST_ROW,
        (_EARLIER, f"tokens = tokens[:1].expand_as(tokens)\n    {_EARLIER}"),
    ),
    ("a score for each row", induction_score.NOT_OVER_BATCH, ("sum(dim=(0, -1))", "sum(dim=-1)")),
    ("over the heads", induction_score.OVER_HEADS, (_MEAN, f"return ({_MEAN.removeprefix('return ')}).mean()")),
    ("nothing repeated", induction_score.NOTHING_REPEATED, (".clamp(min=1)", "")),
    ("its own copy", Unexplained.RAISED, (".tril(-1)", ".tril()")),
    ("later copies too", Unexplained.RAISED, (".tril(-1)", " & ~torch.eye(tokens.shape[1], dtype=torch.bool)")),
    ("float32 only", Common.WRONG_DTYPE, ("weights.gather", "weights.float().gather")),
    ("cut off", Common.CUT_OFF, ("weights.gather", "weights.detach().gather")),
    (
        "places made on the CPU",
        Common.MADE_ON_CPU,
        ("torch.arange(tokens.shape[1], device=tokens.device)", "torch.arange(tokens.shape[1])"),
    ),
    ("changes the weights", Common.CHANGED_IN_PLACE, (_MEAN, f"weights.mul_(0.5)\n    {_MEAN}")),
]

_INDUCTION_VARIANTS = [
    variant(
        "induction_score",
        "position by position",
        """
        def induction_score(weights, tokens):
            total, count = weights.new_zeros(weights.shape[1]), 0
            for b, row in enumerate(tokens.tolist()):
                last = {}
                for i, token in enumerate(row):
                    if token in last:
                        total = total + weights[b, :, i, last[token] + 1]
                        count += 1
                    last[token] = i
            return total / max(count, 1)
        """,
    ),
    variant(
        "induction_score",
        "a mask of places",
        """
        def induction_score(weights, tokens):
            n = tokens.shape[1]
            same = torch.eq(tokens[:, :, None], tokens[:, None, :])
            earlier = same & torch.ones(n, n, dtype=torch.bool, device=tokens.device).tril(-1)
            latest = earlier & (earlier.flip(-1).cumsum(-1).flip(-1) == 1)
            behind = F.pad(latest, (1, 0))[..., :n].unsqueeze(1)
            return (weights * behind).sum(dim=(0, 2, 3)) / max(int(latest.sum()), 1)
        """,
    ),
    edited_variant(
        "induction_score",
        "an einsum over the repeated ones",
        (_MEAN, "return torch.einsum('bhn,bn->h', looked, repeated.to(looked.dtype)) / max(repeated.sum(), 1)"),
    ),
]

MUTANTS = [
    *edits("RMSNorm", _RMS_MUTANTS),
    *edits("SwiGLU", [(title, mistake, (_GATED, body)) for title, mistake, body in _SWIGLU_BODIES]),
    *edits("SwiGLU", _SWIGLU_MUTANTS),
    *edits("CausalSelfAttention", _ATTENTION_MUTANTS),
    *edits("LanguageModel", _MODEL_MUTANTS),
    *edits("perplexity", _PERPLEXITY_MUTANTS),
    *edits("sample_next", _SAMPLE_MUTANTS),
    *edits("generate", _GENERATE_MUTANTS),
    *edits("induction_score", _INDUCTION_MUTANTS),
    *forging_answers(
        classes=["RMSNorm", "SwiGLU", "CausalSelfAttention", "LanguageModel"],
        functions=["perplexity", "sample_next", "generate", "induction_score"],
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
    *_INDUCTION_VARIANTS,
]
