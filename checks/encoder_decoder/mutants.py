"""Chapter 09: wrong answers that must fail with their message, right answers that must pass."""

from functools import partial

from autograder.answers import Answer, edit, edited_variant, forger, mutant, variant
from checks.forgers import forging_answers

# ---- clones

_COPIES = "nn.ModuleList(copy.deepcopy(module) for _ in range(count))"


def _clones(title: str, says: str, new: str) -> Answer:
    return edit("clones", title, says, (_COPIES, new))


_CLONES_MUTANTS = [
    _clones("the same module again and again", "share their weights", "nn.ModuleList([module] * count)"),
    _clones("one copy, many times", "share their weights", "nn.ModuleList([copy.deepcopy(module)] * count)"),
    _clones("shallow copies", "share their weights", "nn.ModuleList(copy.copy(module) for _ in range(count))"),
    _clones(
        "the original among them",
        "copy 0 is the original itself",
        "nn.ModuleList([module] + [copy.deepcopy(module) for _ in range(count - 1)])",
    ),
    _clones("a plain list", "should be in an nn.ModuleList", "[copy.deepcopy(module) for _ in range(count)]"),
    _clones(
        "a Sequential",
        "should be in an nn.ModuleList",
        "nn.Sequential(*[copy.deepcopy(module) for _ in range(count)])",
    ),
    _clones("one too few", "there are 2", "nn.ModuleList(copy.deepcopy(module) for _ in range(count - 1))"),
    _clones("one too many", "there are 4", "nn.ModuleList(copy.deepcopy(module) for _ in range(count + 1))"),
    _clones(
        "new modules",
        "do not start with the weights of the original",
        "nn.ModuleList(type(module)(module.in_features, module.out_features) for _ in range(count))",
    ),
    edit("clones", "nothing returned", "is there a `return`?", ("return nn", "nn")),
    edit(
        "clones",
        "drawn anew",
        "do not start with the weights of the original",
        (
            "return " + _COPIES,
            "copies = " + _COPIES + "\n    for p in copies.parameters():\n"
            "        nn.init.normal_(p)\n    return copies",
        ),
    ),
    edit(
        "clones",
        "detached parameters",
        "are frozen",
        (
            "return " + _COPIES,
            "copies = " + _COPIES + "\n    for p in copies.parameters():\n        p.requires_grad_(True)\n"
            "    return copies",
        ),
    ),
    edit(
        "clones",
        "in training mode",
        "the original is in eval mode",
        ("return " + _COPIES, "return " + _COPIES + ".train()"),
    ),
    _clones("always six", "there are 6", "nn.ModuleList(copy.deepcopy(module) for _ in range(6))"),
]

_CLONES_VARIANTS = [
    edited_variant(
        "clones", "a list inside", (_COPIES, "nn.ModuleList([copy.deepcopy(module) for _ in range(count)])")
    ),
    variant(
        "clones",
        "appended one by one",
        """
        def clones(module, count):
            copies = nn.ModuleList()
            while len(copies) < count:
                copies.append(copy.deepcopy(module))
            return copies
        """,
    ),
    variant(
        "clones",
        "through a buffer",
        """
        def clones(module, count):
            import io

            buffer = io.BytesIO()
            torch.save(module, buffer)
            copies = []
            for _ in range(count):
                buffer.seek(0)
                copies.append(torch.load(buffer, weights_only=False))
            return nn.ModuleList(copies)
        """,
    ),
    variant(
        "clones",
        "copies of a list",
        """
        def clones(module, count):
            return nn.ModuleList(map(copy.deepcopy, [module] * count))
        """,
    ),
]

# ---- Embedder

_TABLE = "nn.Embedding(vocab_size, dim, padding_idx=pad_id)"
_DRAWN = "self.embedding.weight.normal_(0.0, dim**-0.5)"
_ZEROED = "self.embedding.weight[pad_id] = 0.0"
_LOOKED_UP = "return self.embedding(tokens) * self.scale"

_embedder = partial(edit, "Embedder")

_EMBEDDER_MUTANTS = [
    _embedder("not scaled", "are not scaled", (_LOOKED_UP, "return self.embedding(tokens)")),
    _embedder("divided", "divided by √d", (_LOOKED_UP, "return self.embedding(tokens) / self.scale")),
    _embedder("times d", "multiplied by d", ("self.scale = math.sqrt(dim)", "self.scale = dim")),
    _embedder("times root of V", "multiplied by √V", ("math.sqrt(dim)", "math.sqrt(vocab_size)")),
    _embedder(
        "times root of n",
        "√n, the root of the sequence's length",
        (_LOOKED_UP, "return self.embedding(tokens) * tokens.shape[1] ** 0.5"),
    ),
    _embedder(
        "scaled at the start instead",
        "are not scaled",
        (_DRAWN, "self.embedding.weight.normal_(0.0, 1.0)"),
        (_LOOKED_UP, "return self.embedding(tokens)"),
    ),
    _embedder("torch's own numbers", "a standard deviation of 1/√d = 0.1", (_DRAWN, "pass")),
    _embedder(
        "spread 1/d", "this is 1/d", (_DRAWN, "self.embedding.weight.normal_(0.0, 1 / dim if dim < 100 else 0.1)")
    ),
    _embedder(
        "Xavier's numbers",
        "a standard deviation of 1/√d = 0.1",
        (_DRAWN, "nn.init.xavier_uniform_(self.embedding.weight)"),
    ),
    _embedder("pad row not zeroed again", "should start as zeros", (_ZEROED, "pass")),
    _embedder("row 0 zeroed", "should start as zeros", (_ZEROED, "self.embedding.weight[0] = 0.0")),
    _embedder("no padding_idx", "the pad row gets a gradient", (_TABLE, "nn.Embedding(vocab_size, dim)")),
    _embedder(
        "padding_idx fixed",
        "the pad row gets a gradient",
        (_TABLE, "nn.Embedding(vocab_size, dim, padding_idx=1)"),
    ),
    _embedder("sizes exchanged", "should be (V, d)", (_TABLE, "nn.Embedding(dim, vocab_size, padding_idx=pad_id)")),
    _embedder(
        "frozen",
        "no gradient reaches the embedding",
        (_LOOKED_UP, "return self.embedding(tokens.detach()).detach().requires_grad_() * self.scale"),
    ),
    _embedder("nothing returned", "is there a `return`?", (_LOOKED_UP, _LOOKED_UP.removeprefix("return "))),
    _embedder(
        "a table that is no parameter",
        "`embedding` is missing",
        ("self.embedding = " + _TABLE, "self.embedding = _Table(vocab_size, dim, padding_idx=pad_id)"),
        ("class Embedder(", "def _Table(*a, **k):\n    return [nn.Embedding(*a, **k)][0:1]\n\n\nclass Embedder("),
        (_DRAWN, "self.embedding[0].weight.normal_(0.0, dim**-0.5)"),
        (_ZEROED, "self.embedding[0].weight[pad_id] = 0.0"),
        (_LOOKED_UP, "return self.embedding[0](tokens) * self.scale"),
    ),
    _embedder(
        "everything kept positive",
        "does not start around 0",
        (_DRAWN, _DRAWN + "\n            self.embedding.weight.abs_().mul_(1.66)"),
    ),
    _embedder(
        "all on two values",
        "does not start with normal numbers",
        (_DRAWN, _DRAWN + "\n            self.embedding.weight.sign_().mul_(dim**-0.5)"),
    ),
]

_EMBEDDER_VARIANTS = [
    edited_variant("Embedder", "nn.init", (_DRAWN, "nn.init.normal_(self.embedding.weight, std=dim**-0.5)")),
    edited_variant(
        "Embedder",
        "power one half",
        (_LOOKED_UP, "return self.embedding(tokens) * self.embedding.weight.shape[1] ** 0.5"),
    ),
    variant(
        "Embedder",
        "functional lookup",
        """
        class Embedder(nn.Module):
            def __init__(self, vocab_size, dim, pad_id):
                super().__init__()
                table = torch.randn(vocab_size, dim) / dim**0.5
                table[pad_id] = 0
                self.pad_id, self.dim = pad_id, dim
                self.embedding = nn.Embedding(vocab_size, dim, padding_idx=pad_id, _weight=table)

            def forward(self, tokens):
                return F.embedding(tokens, self.embedding.weight, padding_idx=self.pad_id) * math.sqrt(self.dim)
        """,
    ),
    variant(
        "Embedder",
        "the padding is masked",
        """
        class Embedder(nn.Module):
            def __init__(self, vocab_size, dim, pad_id):
                super().__init__()
                self.embedding = nn.Embedding(vocab_size, dim)
                nn.init.normal_(self.embedding.weight, 0, 1 / math.sqrt(dim))
                nn.init.zeros_(self.embedding.weight.data[pad_id])
                self.pad_id = pad_id

            def forward(self, tokens):
                x = self.embedding(tokens).masked_fill((tokens == self.pad_id).unsqueeze(-1), 0.0)
                return x * x.shape[-1] ** 0.5
        """,
    ),
]

# ---- masks


def _mask(name: str, title: str, says: str, body: str) -> Answer:
    return mutant(name, title, says, f"def {name}(tokens, pad_id):\n    {body}")


_target = partial(_mask, "target_mask")
_BOTH = "causal_mask(tokens.shape[1]).to(tokens.device)"
_TARGET_MUTANTS = [
    _target("causal alone", "the dimension of the batch is missing", f"return {_BOTH}"),
    _target(
        "causal alone, for each sentence",
        "padding is not hidden",
        f"return {_BOTH}.expand(len(tokens), -1, -1)",
    ),
    _target("padding alone", "should be (B, n, n)", "return padding_mask(tokens, pad_id)"),
    _target(
        "padding alone, for each position",
        "the future is not hidden",
        "return padding_mask(tokens, pad_id).expand(-1, tokens.shape[1], -1)",
    ),
    _target("joined by or", "the future is not hidden", f"return padding_mask(tokens, pad_id) | {_BOTH}"),
    _target("padding hides rows", "padding hides a row", f"return padding_mask(tokens, pad_id).mT & {_BOTH}"),
    _target(
        "padding hides rows and columns",
        "padding hides a row",
        f"real = padding_mask(tokens, pad_id)\n    return real & real.mT & {_BOTH}",
    ),
    _target("upside down", "upside down", f"return padding_mask(tokens, pad_id) & {_BOTH}.T"),
    _target("transposed", "upside down", f"return (padding_mask(tokens, pad_id) & {_BOTH}).mT"),
    _target("without the diagonal", "keep the diagonal", f"return padding_mask(tokens, pad_id) & {_BOTH}.tril(-1)"),
    _target(
        "one step ahead",
        "one step ahead",
        "n = tokens.shape[1]\n    ahead = torch.ones(n, n, device=tokens.device).tril(1).bool()\n"
        "    return padding_mask(tokens, pad_id) & ahead",
    ),
    _target("turned round", "the mask is turned round", f"return ~(padding_mask(tokens, pad_id) & {_BOTH})"),
    _target("padding turned round", "it is [[1, 0, 0]", f"return ~padding_mask(tokens, pad_id) & {_BOTH}"),
    _target("four dimensions", "should be (B, n, n)", f"return (padding_mask(tokens, pad_id) & {_BOTH}).unsqueeze(1)"),
    _target("integers", "should be bool", f"return padding_mask(tokens, pad_id).long() * {_BOTH}"),
    _target(
        "pad_id 1",
        "padding is not hidden",
        f"return padding_mask(tokens, 1) & {_BOTH}",
    ),
    _target("pad_id 0", "`pad_id` is ignored: the mask hides 0", f"return padding_mask(tokens, 0) & {_BOTH}"),
    _target("on the CPU", "on a GPU", "return padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1])"),
    _target(
        "first sentence's padding",
        "padding is not hidden",
        f"return padding_mask(tokens[:1], pad_id).expand(len(tokens), -1, -1) & {_BOTH}",
    ),
    _target("nothing returned", "is there a `return`?", f"padding_mask(tokens, pad_id) & {_BOTH}"),
    _target(
        "size of the batch",
        "must match the size",
        "return padding_mask(tokens, pad_id) & causal_mask(len(tokens)).to(tokens.device)",
    ),
]
_TARGET_VARIANTS = [
    variant(
        "target_mask",
        "by hand",
        """
        def target_mask(tokens, pad_id):
            n = tokens.shape[1]
            ones = torch.ones(n, n, dtype=torch.bool, device=tokens.device)
            return torch.tril(ones)[None] & (tokens != pad_id)[:, None, :]
        """,
    ),
    variant(
        "target_mask",
        "comparing positions",
        """
        def target_mask(tokens, pad_id):
            place = torch.arange(tokens.shape[1], device=tokens.device)
            return (place[:, None] >= place) & source_mask(tokens, pad_id)
        """,
    ),
    variant(
        "target_mask",
        "tril of the expanded mask",
        """
        def target_mask(tokens, pad_id):
            n = tokens.size(1)
            return (tokens != pad_id).unsqueeze(1).repeat(1, n, 1).tril()
        """,
    ),
    variant(
        "target_mask",
        "logical_and",
        """
        def target_mask(tokens, pad_id):
            causal = causal_mask(tokens.shape[-1])
            return torch.logical_and(source_mask(tokens, pad_id), causal.to(device=tokens.device))
        """,
    ),
]

# ---- EncoderLayer

_encoder_layer = partial(edit, "EncoderLayer")
_NORMED = "normed = self.norm_1(x)"
_ATTENDED = "attended, _ = self.attention(normed, normed, normed, mask)"
_ADDED = "x = x + self.dropout(attended)"
_LAST = "return x + self.dropout(self.feed_forward(self.norm_2(x)))"

_ENCODER_LAYER_MUTANTS = [
    _encoder_layer("mask not passed on", "the mask is not passed on", (_ATTENDED, _ATTENDED.replace(", mask)", ")"))),
    _encoder_layer(
        "mask turned round", "the mask is turned round", (_ATTENDED, _ATTENDED.replace(", mask", ", ~mask"))
    ),
    _encoder_layer(
        "post-norm",
        "this is post-norm",
        (_NORMED, "normed = x"),
        (_ADDED, "x = self.norm_1(x + self.dropout(attended))"),
        (_LAST, "return self.norm_2(x + self.dropout(self.feed_forward(x)))"),
    ),
    _encoder_layer("normed x added", "around the attention norm(x) is added", (_NORMED, "x = normed = self.norm_1(x)")),
    _encoder_layer(
        "normed x added, second",
        "around the feed-forward network norm(x) is added",
        (_LAST, "x = self.norm_2(x)\n        return x + self.dropout(self.feed_forward(x))"),
    ),
    _encoder_layer(
        "first residual subtracted", "around the attention is subtracted", (_ADDED, _ADDED.replace("+", "-"))
    ),
    _encoder_layer(
        "second residual subtracted",
        "around the feed-forward network is subtracted",
        (_LAST, _LAST.replace("x + ", "x - ")),
    ),
    _encoder_layer(
        "no first residual",
        "residual connection around the attention is missing",
        (_ADDED, "x = self.dropout(attended)"),
    ),
    _encoder_layer(
        "no second residual",
        "residual connection around the feed-forward network is missing",
        (_LAST, _LAST.replace("x + ", "")),
    ),
    _encoder_layer("no norm_1", "`norm_1` is missing", (_NORMED, "normed = x")),
    _encoder_layer("no norm_2", "`norm_2` is missing", (_LAST, _LAST.replace("self.norm_2(x)", "x"))),
    _encoder_layer(
        "norms exchanged",
        "`norm_1` and `norm_2` are exchanged",
        (_NORMED, "normed = self.norm_2(x)"),
        (_LAST, _LAST.replace("norm_2", "norm_1")),
    ),
    _encoder_layer("norm_1 used twice", "`norm_1` is used twice", (_LAST, _LAST.replace("norm_2", "norm_1"))),
    _encoder_layer(
        "one norm, shared",
        "is the same module as another part",
        ("self.norm_2 = LayerNorm(dim)", "self.norm_2 = self.norm_1"),
    ),
    _encoder_layer(
        "only the queries normed",
        "`norm_1` is missing",
        (_ATTENDED, "attended, _ = self.attention(normed, x, x, mask)"),
    ),
    _encoder_layer(
        "values not normed",
        "`norm_1` is missing",
        (_ATTENDED, "attended, _ = self.attention(normed, normed, x, mask)"),
    ),
    _encoder_layer(
        "keys not normed",
        "wrong entries",
        (_ATTENDED, "attended, _ = self.attention(normed, x, normed, mask)"),
    ),
    _encoder_layer("no attention", "the attention is missing", (_ADDED, "x = x + 0 * self.dropout(attended)")),
    _encoder_layer("no network", "the feed-forward network is missing", (_LAST, "return x")),
    _encoder_layer(
        "network first",
        "the network comes before the attention",
        (_NORMED, "x = x + self.dropout(self.feed_forward(self.norm_2(x)))\n        " + _NORMED),
        (_LAST, "return x"),
    ),
    _encoder_layer(
        "last norm", "a norm follows the last addition", (_LAST, _LAST.replace("return ", "return self.norm_2(") + ")")
    ),
    _encoder_layer(
        "network reads the input",
        "reads the layer's input",
        (_NORMED, "start = x\n        " + _NORMED),
        (_LAST, "return x + self.dropout(self.feed_forward(self.norm_2(start)))"),
    ),
    _encoder_layer(
        "norm on the sublayer's output",
        "a LayerNorm acts on each sublayer's output",
        (_NORMED, "normed = x"),
        (_ADDED, "x = x + self.norm_1(self.dropout(attended))"),
        (_LAST, "return x + self.norm_2(self.dropout(self.feed_forward(x)))"),
    ),
    _encoder_layer(
        "heads not passed on",
        "`heads` is not passed on",
        ("MultiHeadAttention(dim, heads,", "MultiHeadAttention(dim, 1,"),
    ),
    _encoder_layer(
        "hidden not passed on", "`hidden` is not passed on", ("FeedForward(dim, hidden,", "FeedForward(dim, 4 * dim,")
    ),
    _encoder_layer(
        "first mask for all",
        "the first sequence's mask",
        (_ATTENDED, _ATTENDED.replace(", mask)", ", mask[:1].expand_as(mask))")),
    ),
    _encoder_layer("the weights too", "without the attention's weights", (_LAST, _LAST + ", _")),
    _encoder_layer("nothing returned", "is there a `return`?", (_LAST, _LAST.removeprefix("return "))),
    _encoder_layer("x changed in place", "changed in place", (_ADDED, "x += self.dropout(attended)")),
    _encoder_layer(
        "detached", "cut off from the graph", (_LAST, f"{_LAST}".replace("return ", "return (") + ").detach()")
    ),
    _encoder_layer(
        "attention detached",
        "the gradient with respect to `x`",
        (_ADDED, _ADDED.replace("attended", "attended.detach()")),
    ),
    _encoder_layer(
        "dropout in evaluation",
        "dropout is still active in evaluation",
        (_LAST, "return x + F.dropout(self.feed_forward(self.norm_2(x)), self.dropout.p)"),
    ),
    _encoder_layer(
        "attention's output not dropped",
        "the output of the attention is not dropped",
        (_ADDED, "x = x + attended"),
    ),
    _encoder_layer(
        "network's output not dropped",
        "the output of the feed-forward network is not dropped",
        (_LAST, "return x + self.feed_forward(self.norm_2(x))"),
    ),
    _encoder_layer(
        "dropout inside only",
        "the output of the attention and the feed-forward network is not dropped",
        ("self.dropout = nn.Dropout(dropout)", "self.dropout = nn.Identity()"),
    ),
    _encoder_layer(
        "dropout on the sums",
        "dropout acts on the sum",
        (_ADDED, "x = self.dropout(x + attended)"),
        (_LAST, "return self.dropout(x + self.feed_forward(self.norm_2(x)))"),
    ),
    _encoder_layer("no dropout by default", "the default is 0.1", ("dropout=0.1", "dropout=0.0")),
    _encoder_layer("half dropped by default", "0.1 is asked", ("dropout=0.1", "dropout=0.5")),
    _encoder_layer(
        "ReLU missing",
        "has no ReLU",
        (
            _LAST,
            "h = self.feed_forward.outer(self.feed_forward.inner(self.norm_2(x)))\n        return x + self.dropout(h)",
        ),
    ),
]

_ENCODER_LAYER_VARIANTS = [
    edited_variant(
        "EncoderLayer", "torch's LayerNorm", ("self.norm_1 = LayerNorm(dim)", "self.norm_1 = nn.LayerNorm(dim)")
    ),
    edited_variant(
        "EncoderLayer",
        "dropout on the outputs alone",
        ("MultiHeadAttention(dim, heads, dropout)", "MultiHeadAttention(dim, heads)"),
        ("FeedForward(dim, hidden, dropout)", "FeedForward(dim, hidden)"),
    ),
    variant(
        "EncoderLayer",
        "a helper for both sublayers",
        """
        class EncoderLayer(nn.Module):
            def __init__(self, dim, heads, hidden, dropout=0.1):
                super().__init__()
                self.feed_forward = FeedForward(dim, hidden, dropout)
                self.attention = MultiHeadAttention(dim, heads, dropout)
                self.norm_2, self.norm_1 = LayerNorm(dim), LayerNorm(dim)
                self.dropout = nn.Dropout(dropout)

            def add(self, x, norm, sublayer):
                return x + self.dropout(sublayer(norm(x)))

            def forward(self, x, mask):
                x = self.add(x, self.norm_1, lambda h: self.attention(h, h, h, mask=mask)[0])
                return self.add(x, self.norm_2, self.feed_forward)
        """,
    ),
    variant(
        "EncoderLayer",
        "functional dropout, in place on what is its own",
        """
        class EncoderLayer(nn.Module):
            def __init__(self, dim, heads, hidden, dropout=0.1):
                super().__init__()
                self.p = dropout
                self.norm_1 = LayerNorm(dim)
                self.norm_2 = LayerNorm(dim)
                self.attention = MultiHeadAttention(dim, heads)
                self.feed_forward = FeedForward(dim, hidden)

            def forward(self, x, mask):
                h = self.norm_1(x)
                y = F.dropout(self.attention(h, h, h, mask)[0], self.p, self.training) + x
                z = F.dropout(self.feed_forward(self.norm_2(y)), self.p, self.training)
                z += y
                return z
        """,
    ),
]

# ---- DecoderLayer

_decoder_layer = partial(edit, "DecoderLayer")
_BACK = "attended, _ = self.self_attention(normed, normed, normed, mask)"
_OVER = "found, _ = self.source_attention(self.norm_2(x), memory, memory, memory_mask)"
_FOUND = "x = x + self.dropout(found)"
_THIRD = "return x + self.dropout(self.feed_forward(self.norm_3(x)))"


def _over(title: str, says: str, queries: str, keys: str, values: str, mask: str) -> Answer:
    """The attention to the source with other arguments; `h` is the normed x."""
    new = f"h = self.norm_2(x)\n        found, _ = self.source_attention({queries}, {keys}, {values}, {mask})"
    return _decoder_layer(title, says, (_OVER, new))


_DECODER_LAYER_MUTANTS = [
    _decoder_layer(
        "masks exchanged",
        "the two masks are exchanged",
        (_BACK, _BACK.replace(", mask", ", memory_mask")),
        (_OVER, _OVER.replace("memory_mask", "mask")),
    ),
    _decoder_layer("self-attention unmasked", "it sees the future", (_BACK, _BACK.replace(", mask)", ")"))),
    _decoder_layer(
        "cross-attention unmasked",
        "does not get `memory_mask`",
        (_OVER, _OVER.replace(", memory_mask", "")),
    ),
    _decoder_layer(
        "neither masked",
        "neither attention gets its mask",
        (_BACK, _BACK.replace(", mask)", ")")),
        (_OVER, _OVER.replace(", memory_mask", "")),
    ),
    _decoder_layer(
        "target's mask for the source",
        "the attention to the source gets `mask`",
        (_OVER, _OVER.replace("memory_mask", "mask")),
    ),
    _decoder_layer(
        "source's mask for the target",
        "the self-attention gets `memory_mask`",
        (_BACK, _BACK.replace(", mask", ", memory_mask")),
    ),
    _decoder_layer(
        "mask turned round",
        "`mask` is turned round",
        (_BACK, _BACK.replace(", mask", ", ~mask")),
    ),
    _over("memory_mask turned round", "`memory_mask` is turned round", "h", "memory", "memory", "~memory_mask"),
    _over("looks at the target again", "keys and values are the memory", "h", "h", "h", "mask"),
    _over("looks at the target again, wrong mask", "keys and values are the memory", "h", "h", "h", "memory_mask"),
    _over("values from the target", "keys and values are the memory", "h", "memory", "h", "memory_mask"),
    _over("keys from the target", "keys come from the target", "h", "h", "memory", "memory_mask"),
    _over("memory asks", "keys and values are the memory", "memory", "h", "h", "memory_mask"),
    _over("memory asks itself", "wrong entries", "memory", "memory", "memory", "memory_mask"),
    _over("memory normed again", "normalised again", "h", "self.norm_2(memory)", "self.norm_2(memory)", "memory_mask"),
    _over("memory's keys normed", "wrong entries", "h", "self.norm_2(memory)", "memory", "memory_mask"),
    _over("queries not normed", "`norm_2` is missing", "x", "memory", "memory", "memory_mask"),
    _over(
        "first memory for all",
        "the first sequence's memory",
        "h",
        "memory[:1].expand_as(memory)",
        "memory[:1].expand_as(memory)",
        "memory_mask",
    ),
    _over(
        "memory detached", "no gradient reaches the memory", "h", "memory.detach()", "memory.detach()", "memory_mask"
    ),
    _over("values detached", "the gradient with respect to `memory`", "h", "memory", "memory.detach()", "memory_mask"),
    _decoder_layer(
        "self-attention looks at the memory",
        "the self-attention looks at the memory",
        (_BACK, "attended, _ = self.self_attention(normed, memory, memory, memory_mask)"),
    ),
    _decoder_layer(
        "one attention, shared",
        "is the same module as another part",
        (
            "self.source_attention = MultiHeadAttention(dim, heads, dropout)",
            "self.source_attention = self.self_attention",
        ),
    ),
    _decoder_layer(
        "self-attention used twice",
        "`self_attention` is used for the source too",
        (_OVER, _OVER.replace("source_attention", "self_attention")),
    ),
    _decoder_layer(
        "attentions exchanged",
        "`self_attention` and `source_attention` are exchanged",
        (_OVER, _OVER.replace("source_attention", "self_attention")),
        (_BACK, _BACK.replace("self.self_attention", "self.source_attention")),
    ),
    _decoder_layer(
        "one norm, shared",
        "is the same module as another part",
        ("self.norm_3 = LayerNorm(dim)", "self.norm_3 = self.norm_2"),
    ),
    _decoder_layer(
        "norm_2 used for the network",
        "`norm_2` takes the place of `norm_3`",
        (_THIRD, _THIRD.replace("norm_3", "norm_2")),
    ),
    _decoder_layer(
        "norm_1 used for the source", "`norm_1` takes the place of `norm_2`", (_OVER, _OVER.replace("norm_2", "norm_1"))
    ),
    _decoder_layer(
        "norms 2 and 3 exchanged",
        "`norm_2` takes the place of `norm_3`",
        (_OVER, _OVER.replace("norm_2", "norm_3")),
        (_THIRD, _THIRD.replace("norm_3", "norm_2")),
    ),
    _decoder_layer("no norm_3", "`norm_3` is missing", (_THIRD, _THIRD.replace("self.norm_3(x)", "x"))),
    _decoder_layer("no norm_1", "`norm_1` is missing", (_NORMED, "normed = x")),
    _decoder_layer(
        "post-norm",
        "this is post-norm",
        (_NORMED, "normed = x"),
        (_ADDED, "x = self.norm_1(x + self.dropout(attended))"),
        (_OVER, _OVER.replace("self.norm_2(x)", "x")),
        (_FOUND, "x = self.norm_2(x + self.dropout(found))"),
        (_THIRD, "return self.norm_3(x + self.dropout(self.feed_forward(x)))"),
    ),
    _decoder_layer("normed x added", "norm(x) is added, not x itself", (_NORMED, "x = normed = self.norm_1(x)")),
    _decoder_layer(
        "normed x added, second",
        "around the second attention norm(x) is added",
        (_OVER, "x = self.norm_2(x)\n        found, _ = self.source_attention(x, memory, memory, memory_mask)"),
    ),
    _decoder_layer(
        "no residual around the source",
        "residual connection around the attention to the source is missing",
        (_FOUND, "x = self.dropout(found)"),
    ),
    _decoder_layer(
        "no residual around the self-attention",
        "residual connection around the self-attention is missing",
        (_ADDED, "x = self.dropout(attended)"),
    ),
    _decoder_layer(
        "no residual around the network",
        "residual connection around the feed-forward network is missing",
        (_THIRD, _THIRD.replace("x + ", "")),
    ),
    _decoder_layer("source subtracted", "the source is subtracted", (_FOUND, _FOUND.replace("+", "-"))),
    _decoder_layer("source left out", "the attention to the source is missing", (_FOUND, "")),
    _decoder_layer("self-attention left out", "the self-attention is missing", (_ADDED, "")),
    _decoder_layer("network left out", "the feed-forward network is missing", (_THIRD, "return x")),
    _decoder_layer(
        "source first",
        "the sublayers come in the wrong order",
        (f"        {_OVER}\n        {_FOUND}\n", ""),
        (_NORMED, f"{_OVER}\n        {_FOUND}\n        {_NORMED}"),
    ),
    _decoder_layer(
        "both attentions side by side",
        "reads the layer's input",
        (_NORMED, "start = x\n        " + _NORMED),
        (_OVER, _OVER.replace("self.norm_2(x)", "self.norm_2(start)")),
    ),
    _decoder_layer(
        "last norm",
        "a norm follows the last addition",
        (_THIRD, _THIRD.replace("return ", "return self.norm_3(") + ")"),
    ),
    _decoder_layer(
        "heads not passed on",
        "`heads` is not passed on",
        (
            "self.self_attention = MultiHeadAttention(dim, heads,",
            "heads = 1\n        self.self_attention = MultiHeadAttention(dim, heads,",
        ),
    ),
    _decoder_layer(
        "hidden not passed on", "`hidden` is not passed on", ("FeedForward(dim, hidden,", "FeedForward(dim, 4 * dim,")
    ),
    _decoder_layer("the weights too", "without the attention's weights", (_THIRD, _THIRD + ", _")),
    _decoder_layer("nothing returned", "is there a `return`?", (_THIRD, _THIRD.removeprefix("return "))),
    _decoder_layer("x changed in place", "changed in place", (_ADDED, "x += self.dropout(attended)")),
    _decoder_layer(
        "dropout in evaluation",
        "dropout is still active in evaluation",
        (_THIRD, "return x + F.dropout(self.feed_forward(self.norm_3(x)), self.dropout.p)"),
    ),
    _decoder_layer("source's output not dropped", "three sublayers is dropped", (_FOUND, "x = x + found")),
    _decoder_layer("self-attention's output not dropped", "three sublayers is dropped", (_ADDED, "x = x + attended")),
    _decoder_layer(
        "network's output not dropped",
        "three sublayers is dropped",
        (_THIRD, "return x + self.feed_forward(self.norm_3(x))"),
    ),
    _decoder_layer(
        "dropout on the sums",
        "dropout acts on the sum",
        (_ADDED, "x = self.dropout(x + attended)"),
        (_FOUND, "x = self.dropout(x + found)"),
        (_THIRD, "return self.dropout(x + self.feed_forward(self.norm_3(x)))"),
    ),
    _decoder_layer("no dropout by default", "the default is 0.1", ("dropout=0.1", "dropout=0.0")),
]

_DECODER_LAYER_VARIANTS = [
    edited_variant(
        "DecoderLayer", "torch's LayerNorm", ("self.norm_2 = LayerNorm(dim)", "self.norm_2 = nn.LayerNorm(dim)")
    ),
    edited_variant(
        "DecoderLayer",
        "dropout on the outputs alone",
        (
            "self.self_attention = MultiHeadAttention(dim, heads, dropout)",
            "self.self_attention = MultiHeadAttention(dim, heads)",
        ),
        ("FeedForward(dim, hidden, dropout)", "FeedForward(dim, hidden)"),
    ),
    variant(
        "DecoderLayer",
        "a helper for all sublayers",
        """
        class DecoderLayer(nn.Module):
            def __init__(self, dim, heads, hidden, dropout=0.1):
                super().__init__()
                self.feed_forward = FeedForward(dim, hidden, dropout)
                self.source_attention = MultiHeadAttention(dim, heads, dropout)
                self.self_attention = MultiHeadAttention(dim, heads, dropout)
                self.norm_3, self.norm_2, self.norm_1 = clones(LayerNorm(dim), 3)
                self.dropout = nn.Dropout(dropout)

            def add(self, x, norm, sublayer):
                return x + self.dropout(sublayer(norm(x)))

            def forward(self, x, memory, memory_mask, mask):
                x = self.add(x, self.norm_1, lambda h: self.self_attention(h, h, h, mask)[0])
                x = self.add(x, self.norm_2, lambda h: self.source_attention(h, memory, memory, memory_mask)[0])
                return self.add(x, self.norm_3, self.feed_forward)
        """,
    ),
    variant(
        "DecoderLayer",
        "functional dropout, masks by name",
        """
        class DecoderLayer(nn.Module):
            def __init__(self, dim, heads, hidden, dropout=0.1):
                super().__init__()
                self.p = dropout
                self.norm_1, self.norm_2, self.norm_3 = LayerNorm(dim), LayerNorm(dim), LayerNorm(dim)
                self.self_attention = MultiHeadAttention(dim, heads)
                self.source_attention = MultiHeadAttention(dim, heads)
                self.feed_forward = FeedForward(dim, hidden)

            def drop(self, x):
                return F.dropout(x, self.p, self.training)

            def forward(self, x, memory, memory_mask, mask):
                h = self.norm_1(x)
                a = x + self.drop(self.self_attention(queries=h, keys=h, values=h, mask=mask.unsqueeze(1))[0])
                b = self.source_attention(self.norm_2(a), memory, memory, mask=memory_mask[:, None])
                c = a + self.drop(b[0])
                return torch.add(c, self.drop(self.feed_forward(self.norm_3(c))))
        """,
    ),
]

# ---- Encoder and Decoder


def _stack_mutants(name: str, call: str, layer: str) -> list[Answer]:
    """What can go wrong in either; `call` runs a layer, `layer` is the class of its layers."""
    change = partial(edit, name)
    loop = f"for layer in self.layers:\n            x = {call}"
    made = f"clones({layer}(dim, heads, hidden, dropout), depth)"
    last, embed = "return self.norm(x)", "x = self.positions(self.embedder(tokens))"
    return [
        change("no final norm", "the final norm is missing", (last, "return x")),
        change("no positions", "no positions are added", (embed, "x = self.embedder(tokens)")),
        change(
            "embedding not scaled",
            "the embeddings are not scaled",
            (embed, "x = self.positions(self.embedder.embedding(tokens))"),
        ),
        change(
            "positions scaled too",
            "the positions are scaled by √d too",
            (embed, "x = self.positions(self.embedder.embedding(tokens)) * self.embedder.scale"),
        ),
        change("layers not used", "the layers are not used", (loop, "")),
        change("first layer only", "only the first layer is used", ("in self.layers:", "in self.layers[:1]:")),
        change("last layer only", "or each layer reads the embeddings", ("in self.layers:", "in self.layers[-1:]:")),
        change(
            "first layer again and again",
            "the first layer is used twice",
            (
                loop,
                loop.replace("for layer in self.layers:", "for _ in self.layers:\n            layer = self.layers[0]"),
            ),
        ),
        change(
            "layers reversed",
            "the layers run in reverse",
            ("in self.layers:", "in reversed(self.layers):"),
        ),
        change(
            "each layer reads the embeddings",
            "or each layer reads the embeddings",
            (loop, loop.replace("for layer", "start = x\n        for layer").replace("layer(x", "layer(start")),
        ),
        change(
            "norm after each layer",
            "the norm acts after every layer",
            (loop, loop.replace(f"x = {call}", f"x = self.norm({call})")),
            (last, "return x"),
        ),
        change(
            "norm before the layers",
            "the norm acts before the layers",
            (embed, embed + "\n        x = self.norm(x)"),
            (last, "return x"),
        ),
        change(
            "one layer, shared",
            "depth=2 asks for two layers",
            (made, f"nn.ModuleList([{layer}(dim, heads, hidden, dropout)] * depth)"),
        ),
        change(
            "a plain list of layers",
            "use `clones`",
            (made, f"[{layer}(dim, heads, hidden, dropout) for _ in range(depth)]"),
        ),
        change(
            "heads and depth exchanged",
            "depth=2 asks for two layers",
            (made, f"clones({layer}(dim, depth, hidden, dropout), heads)"),
        ),
        change("heads not passed on", "`heads` is not passed on", (made, made.replace("heads", "1"))),
        change("hidden not passed on", "should have shape", (made, made.replace("hidden", "2 * dim"))),
        change(
            "pad_id not passed on",
            "`pad_id` is not passed on",
            ("Embedder(vocab_size, dim, pad_id)", "Embedder(vocab_size, dim, 0)"),
        ),
        change(
            "layers' dropout not passed on",
            "`dropout` is not passed on to the layers",
            (made, made.replace("dropout", "0.0")),
        ),
        change(
            "positions' dropout not passed on",
            "the sum of embedding and position is not dropped",
            ("PositionEncoding(dim, dropout)", "PositionEncoding(dim)"),
        ),
        change(
            "norm shared with the embedding's place",
            "`norm.weight` is missing",
            ("self.norm = LayerNorm(dim)", ""),
            (last, "return F.layer_norm(x, x.shape[-1:])"),
        ),
        change("nothing returned", "is there a `return`?", (last, "self.norm(x)")),
        change("tokens changed", "changed in place", (embed, embed + "\n        tokens[:, :] = 1")),
        change("detached", "no gradient reaches", (last, "return self.norm(x.detach())")),
    ]


_ENCODER_CALL = "layer(x, mask)"
_ENCODER_MUTANTS = [
    *_stack_mutants("Encoder", _ENCODER_CALL, "EncoderLayer"),
    edit(
        "Encoder", "mask not used", "the layers do not get the mask", (_ENCODER_CALL, "layer(x, torch.ones_like(mask))")
    ),
    edit("Encoder", "mask turned round", "the mask is turned round", (_ENCODER_CALL, "layer(x, ~mask)")),
]

_DECODER_CALL = "layer(x, memory, memory_mask, mask)"
_DECODER_MUTANTS = [
    *_stack_mutants("Decoder", _DECODER_CALL, "DecoderLayer"),
    edit(
        "Decoder", "masks exchanged", "the masks are exchanged", (_DECODER_CALL, "layer(x, memory, mask, memory_mask)")
    ),
    edit(
        "Decoder",
        "target mask not used",
        "the layers do not get `mask`",
        (_DECODER_CALL, "layer(x, memory, memory_mask, torch.ones_like(mask))"),
    ),
    edit(
        "Decoder",
        "source mask not used",
        "the layers do not get `memory_mask`",
        (_DECODER_CALL, "layer(x, memory, torch.ones_like(memory_mask), mask)"),
    ),
    edit(
        "Decoder",
        "memory normed again",
        "the memory goes through the decoder's norm",
        (_DECODER_CALL, "layer(x, self.norm(memory), memory_mask, mask)"),
    ),
    edit(
        "Decoder",
        "memory detached",
        "no gradient reaches",
        (_DECODER_CALL, "layer(x, memory.detach(), memory_mask, mask)"),
    ),
    edit(
        "Decoder",
        "encoder's layers",
        "no `source_attention`",
        ("clones(DecoderLayer(", "clones(EncoderLayer("),
        (_DECODER_CALL, "layer(x, mask)"),
    ),
]


def _stack_variants(name: str, layer: str, arguments: str) -> list[Answer]:
    given = ", ".join(["tokens", *arguments.split(", ")])
    made = f"clones({layer}(dim, heads, hidden, dropout), depth)"
    return [
        edited_variant(
            name,
            "layers made one by one",
            (made, f"nn.ModuleList([{layer}(dim, heads, hidden, dropout=dropout) for _ in range(depth)])"),
        ),
        edited_variant(name, "torch's LayerNorm", ("self.norm = LayerNorm(dim)", "self.norm = nn.LayerNorm(dim)")),
        variant(
            name,
            "in steps",
            f"""
            class {name}(nn.Module):
                def __init__(self, vocab_size, dim, depth, heads, hidden, dropout, pad_id):
                    super().__init__()
                    self.norm = LayerNorm(dim)
                    self.layers = clones({layer}(dim=dim, heads=heads, hidden=hidden, dropout=dropout), depth)
                    self.positions = PositionEncoding(dim, dropout=dropout, mode="add")
                    self.embedder = Embedder(vocab_size, dim, pad_id)

                def embed(self, tokens):
                    return self.positions(self.embedder(tokens))

                def forward(self, {given}):
                    states = [self.embed(tokens)]
                    for layer in self.layers:
                        states.append(layer(states[-1], {arguments}))
                    return self.norm(states[-1])
            """,
        ),
        edited_variant(
            name,
            "a shorter table of positions",
            ("PositionEncoding(dim, dropout)", "PositionEncoding(dim, dropout, max_len=600)"),
        ),
    ]


_STACK_VARIANTS = [
    *_stack_variants("Encoder", "EncoderLayer", "mask"),
    *_stack_variants("Decoder", "DecoderLayer", "memory, memory_mask, mask"),
]

# ---- Translator

_translator = partial(edit, "Translator")
_ENCODED = "return self.encoder(source, source_mask(source, self.pad_id))"
_SOURCE_REAL = "memory_mask = source_mask(source, self.pad_id)"
_DECODED = "x = self.decoder(target, memory, memory_mask, target_mask(target, self.pad_id))"
_LOGITS = "logits = self.output(x)"
_HELD = "logits[..., self.pad_id] = 0.0  # a constant: it sends no gradient into the pad row"
_WHOLE = "return self.decode(target, self.encode(source), source)"
_OUTPUT = "self.output = nn.Linear(dim, target_vocab, bias=False)"
_TIE = "self.output.weight = self.decoder.embedder.embedding.weight"
_REDRAWN = """for name, parameter in self.named_parameters():
            if parameter.dim() > 1 and "embedding" not in name:
                nn.init.xavier_uniform_(parameter)"""
_MAKE_ENCODER = "Encoder(source_vocab, dim, depth, heads, hidden, dropout, pad_id)"
_MAKE_DECODER = "Decoder(target_vocab, dim, depth, heads, hidden, dropout, pad_id)"

_TRANSLATOR_MUTANTS = [
    _translator("not tied", "`output` has a weight of its own", (_TIE, "")),
    _translator(
        "numbers copied",
        "`output` has a weight of its own",
        (_TIE, "self.output.weight.data.copy_(self.decoder.embedder.embedding.weight.data)"),
    ),
    _translator(
        "a new parameter with the same numbers",
        "`output` has a weight of its own",
        (_TIE, "self.output.weight = nn.Parameter(self.decoder.embedder.embedding.weight.detach().clone())"),
    ),
    _translator(
        "tied to the source", "weight is that of the decoder's embedding", (_TIE, _TIE.replace("decoder", "encoder"))
    ),
    _translator("a bias", "should have no bias", (_OUTPUT, "self.output = nn.Linear(dim, target_vocab)")),
    _translator(
        "vocabularies exchanged",
        "source_vocab is the encoder's",
        (_MAKE_ENCODER, _MAKE_ENCODER.replace("source", "target")),
        (_MAKE_DECODER, _MAKE_DECODER.replace("target", "source")),
        (_OUTPUT, _OUTPUT.replace("target", "source")),
    ),
    _translator(
        "heads and depth exchanged",
        "Translator takes heads before depth",
        (_MAKE_ENCODER, _MAKE_ENCODER.replace("depth, heads", "heads, depth")),
        (_MAKE_DECODER, _MAKE_DECODER.replace("depth, heads", "heads, depth")),
    ),
    _translator(
        "encoder's depth fixed", "is `depth` passed on to both?", (_MAKE_ENCODER, _MAKE_ENCODER.replace("depth", "6"))
    ),
    _translator(
        "dropout not passed on",
        "`dropout` is not passed on",
        (_MAKE_ENCODER, _MAKE_ENCODER.replace("dropout", "0.0")),
        (_MAKE_DECODER, _MAKE_DECODER.replace("dropout", "0.0")),
    ),
    _translator(
        "drawn anew, embeddings too",
        "the pad row of",
        ('parameter.dim() > 1 and "embedding" not in name', "parameter.dim() > 1"),
    ),
    _translator("layers start alike", "clones start alike", (_REDRAWN, "pass")),
    _translator(
        "drawn from a normal distribution",
        "draw it with nn.init.xavier_uniform_",
        ("nn.init.xavier_uniform_(parameter)", "nn.init.normal_(parameter, std=0.02)"),
    ),
    _translator(
        "the linear layer's numbers win",
        "leave the embeddings as the Embedder drew them",
        (
            _TIE,
            "self.decoder.embedder.embedding.weight = self.output.weight\n"
            "        with torch.no_grad():\n            self.output.weight[pad_id] = 0.0",
        ),
        ('"embedding" not in name', '"embedding" not in name and "output" not in name'),
    ),
    _translator(
        "encoder sees padding",
        "does not get the source mask, so that words look at padding",
        (_ENCODED, "return self.encoder(source, torch.ones_like(source, dtype=torch.bool)[:, None])"),
    ),
    _translator(
        "encoder's mask is causal",
        "the encoder's mask is causal",
        (_ENCODED, _ENCODED.replace("source_mask(", "target_mask(")),
    ),
    _translator(
        "memory unmasked",
        "the decoder does not get the source mask",
        (_SOURCE_REAL, "memory_mask = torch.ones_like(source, dtype=torch.bool)[:, None]"),
    ),
    _translator(
        "the future is seen",
        "looks into the future",
        (_DECODED, _DECODED.replace("target_mask(target, self.pad_id)", "source_mask(target, self.pad_id)")),
    ),
    _translator(
        "target's padding is seen",
        "target mask does not hide padding",
        (
            _DECODED,
            _DECODED.replace("target_mask(target, self.pad_id)", "causal_mask(target.shape[1]).to(target.device)"),
        ),
    ),
    _translator(
        "the masks are exchanged",
        "must match the size",
        (_DECODED, "x = self.decoder(target, memory, target_mask(target, self.pad_id), memory_mask)"),
    ),
    _translator(
        "pad_id fixed",
        "`pad_id` is taken to be 0",
        ("self.pad_id = pad_id", "self.pad_id = 0"),
    ),
    _translator(
        "log-probabilities", "decode returns log-probabilities", ("return logits", "return logits.log_softmax(-1)")
    ),
    _translator("probabilities", "probabilities are returned", ("return logits", "return logits.softmax(-1)")),
    _translator("vectors returned", "send them through `output`", ("return logits", "return x")),
    _translator("logits scaled", "the logits are multiplied by √d", (_LOGITS, _LOGITS + " * x.shape[-1] ** 0.5")),
    _translator("last position only", "decode should return (B, n, V)", ("return logits", "return logits[:, -1]")),
    _translator("last position cut off", "decode should return (B, n, V)", ("return logits", "return logits[:, :-1]")),
    _translator(
        "decode encodes again",
        "use the memory that it is given",
        (_SOURCE_REAL, "memory = self.encode(source)\n        " + _SOURCE_REAL),
    ),
    _translator(
        "memory detached",
        "no gradient reaches",
        (_WHOLE, "return self.decode(target, self.encode(source).detach(), source)"),
    ),
    _translator("pad row learns", "the pad row of", (_HELD, "")),
    _translator("pad row learns, hidden by a detach", "the pad row of", (_HELD, "logits[..., self.pad_id] *= 1.0")),
    _translator(
        "logits of padding lowest", "the logits of padding are -inf", (_HELD, "logits[..., self.pad_id] = -math.inf")
    ),
    _translator(
        "a hook on the parameter",
        "a hook on the parameter is lost in a copy",
        (
            _TIE,
            _TIE + "\n        self.output.weight.register_hook(lambda g: g.index_fill(0, torch.tensor([pad_id]), 0.0))",
        ),
        (_HELD, ""),
    ),
    _translator(
        "tie lost: the weight is cut off",
        "the gradient of the parameter",
        (_LOGITS, "logits = F.linear(x, self.output.weight.detach())"),
    ),
    _translator("a ReLU at the end", "what `decode` returns", (_LOGITS, "logits = self.output(x).relu()")),
    _translator("nothing returned by forward", "forward returned None", (_WHOLE, _WHOLE.removeprefix("return "))),
    _translator("nothing returned by encode", "encode returned None", (_ENCODED, _ENCODED.removeprefix("return "))),
    _translator("nothing returned by decode", "decode returned None", ("return logits", "logits")),
    _translator(
        "forward shifts the target",
        "forward should return (B, n, V)",
        (_WHOLE, "return self.decode(target[:, :-1], self.encode(source), source)"),
    ),
    _translator(
        "dropout in evaluation",
        "dropout is still active in evaluation",
        (_LOGITS, "logits = self.output(F.dropout(x, self.encoder.positions.dropout.p))"),
    ),
]

_TRANSLATOR_VARIANTS = [
    edited_variant(
        "Translator",
        "pad logits masked",
        (
            _HELD,
            "pad = torch.arange(logits.shape[-1], device=logits.device) == self.pad_id\n"
            "        logits = logits.masked_fill(pad, 0.0)",
        ),
    ),
    edited_variant(
        "Translator",
        "the other tie",
        (
            _TIE,
            "with torch.no_grad():\n            self.output.weight.copy_(self.decoder.embedder.embedding.weight)\n"
            "        self.decoder.embedder.embedding.weight = self.output.weight",
        ),
        ('"embedding" not in name', '"embedding" not in name and "output" not in name'),
    ),
    edited_variant(
        "Translator",
        "the pad row of the matrix masked",
        (
            _LOGITS,
            "real = torch.arange(len(self.output.weight), device=x.device) != self.pad_id\n"
            "        logits = F.linear(x, self.output.weight * real[:, None])",
        ),
        (_HELD, ""),
    ),
    edited_variant(
        "Translator",
        "drawn part by part",
        (
            _REDRAWN,
            "for module in self.modules():\n"
            "            if isinstance(module, nn.Linear) and module is not self.output:\n"
            "                nn.init.xavier_uniform_(module.weight)",
        ),
    ),
    edited_variant(
        "Translator", "drawn normally", ("nn.init.xavier_uniform_(parameter)", "nn.init.xavier_normal_(parameter)")
    ),
    edited_variant(
        "Translator",
        "the decoder first",
        (
            f"self.encoder = {_MAKE_ENCODER}\n        self.decoder = {_MAKE_DECODER}",
            f"self.decoder = {_MAKE_DECODER}\n        self.encoder = {_MAKE_ENCODER}",
        ),
    ),
]

_LYING = """
class _Liar(nn.ModuleList):
    def __init__(self, made, count):
        self.__dict__["count"] = 0
        super().__init__()
        self.__dict__["count"] = count
        self._modules["0"] = made[0]

    LIE


_honest = clones


def clones(module, count):
    return _Liar([MADE], count)
"""


def _lying(title: str, lie: str, made: str = "copy.deepcopy(module)") -> Answer:
    """A container that holds one copy and says that there are more."""
    return forger("clones", f"forged: {title}", _LYING.replace("LIE", lie).replace("MADE", made))


_NAMES = """
    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self._modules["0"]

    def named_parameters(self, *args, **kwargs):
        one = dict(self._modules["0"].named_parameters())
        return [(f"{i}.{name}", value) for i in range(self.count) for name, value in one.items()]
"""
_CLONES_FORGERS = [
    _lying("a length and names that are not there", _NAMES),
    _lying(
        "a new copy each time one looks",
        _NAMES.replace('return self._modules["0"]\n', 'return copy.deepcopy(self._modules["0"])\n'),
    ),
    _lying("the original, which shows other weights", _NAMES, "module"),
]

_POSITION_FORGERS = [
    forger(
        exercise,
        "forged: positions that are there and have no part",
        f"""
        _Honest = {exercise}

        class {exercise}(_Honest):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                honest = self.positions.forward
                self.positions.forward = lambda x: honest(x) if x.dtype == torch.float32 else x
                self.positions._load_from_state_dict = lambda state, *rest: [v.zero_() for v in state.values()]
        """,
    )
    for exercise in ("Encoder", "Decoder")
]

MUTANTS = [
    *_CLONES_MUTANTS,
    *_EMBEDDER_MUTANTS,
    *_TARGET_MUTANTS,
    *_ENCODER_LAYER_MUTANTS,
    *_DECODER_LAYER_MUTANTS,
    *_ENCODER_MUTANTS,
    *_DECODER_MUTANTS,
    *_TRANSLATOR_MUTANTS,
    *_CLONES_FORGERS,
    *_POSITION_FORGERS,
    *forging_answers(
        classes=["Embedder", "EncoderLayer", "DecoderLayer", "Encoder", "Decoder", "Translator"],
        functions=["target_mask"],
    ),
]

VARIANTS = [
    *_CLONES_VARIANTS,
    *_EMBEDDER_VARIANTS,
    *_TARGET_VARIANTS,
    *_ENCODER_LAYER_VARIANTS,
    *_DECODER_LAYER_VARIANTS,
    *_STACK_VARIANTS,
    *_TRANSLATOR_VARIANTS,
]
