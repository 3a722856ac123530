"""Chapter 09: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import Answer, edited_variant, edits, forger, mutants, variant
from autograder.checks import Common, Mistake, Unexplained
from checks.encoder_decoder.mistakes import Decoder, Embedder, Translator, check_leaks, clones, target_mask
from checks.encoder_decoder.mistakes import DecoderLayer as Layer
from checks.forgers import forging_answers, forging_dropout

# ---- clones

_COPIES = "nn.ModuleList(copy.deepcopy(module) for _ in range(count))"


def _clones(title: str, mistake: Mistake, new: str) -> tuple:
    return title, mistake, (_COPIES, new)


_CLONES_MUTANTS = [
    _clones("the same module again and again", clones.SHARED, "nn.ModuleList([module] * count)"),
    _clones("one copy, many times", clones.SHARED, "nn.ModuleList([copy.deepcopy(module)] * count)"),
    _clones("shallow copies", clones.SHARED, "nn.ModuleList(copy.copy(module) for _ in range(count))"),
    _clones(
        "the original among them",
        clones.ORIGINAL_AMONG_THEM,
        "nn.ModuleList([module] + [copy.deepcopy(module) for _ in range(count - 1)])",
    ),
    _clones("a plain list", clones.NOT_A_MODULE_LIST, "[copy.deepcopy(module) for _ in range(count)]"),
    _clones("a Sequential", clones.NOT_A_MODULE_LIST, "nn.Sequential(*[copy.deepcopy(module) for _ in range(count)])"),
    _clones("one too few", clones.COUNT, "nn.ModuleList(copy.deepcopy(module) for _ in range(count - 1))"),
    _clones("one too many", clones.COUNT, "nn.ModuleList(copy.deepcopy(module) for _ in range(count + 1))"),
    _clones(
        "new modules",
        clones.OTHER_WEIGHTS,
        "nn.ModuleList(type(module)(module.in_features, module.out_features) for _ in range(count))",
    ),
    ("nothing returned", Common.NO_RETURN, ("return nn", "nn")),
    (
        "drawn anew",
        clones.OTHER_WEIGHTS,
        (
            "return " + _COPIES,
            "copies = " + _COPIES + "\n    for p in copies.parameters():\n"
            "        nn.init.normal_(p)\n    return copies",
        ),
    ),
    (
        "detached parameters",
        clones.NOT_WHOLE,
        (
            "return " + _COPIES,
            "copies = " + _COPIES + "\n    for p in copies.parameters():\n        p.requires_grad_(True)\n"
            "    return copies",
        ),
    ),
    ("in training mode", clones.NOT_WHOLE, ("return " + _COPIES, "return " + _COPIES + ".train()")),
    _clones("always six", clones.COUNT, "nn.ModuleList(copy.deepcopy(module) for _ in range(6))"),
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

_EMBEDDER_MUTANTS = [
    ("not scaled", Embedder.NOT_SCALED, (_LOOKED_UP, "return self.embedding(tokens)")),
    ("divided", Embedder.DIVIDED, (_LOOKED_UP, "return self.embedding(tokens) / self.scale")),
    ("times d", Embedder.TIMES_D, ("self.scale = math.sqrt(dim)", "self.scale = dim")),
    ("times root of V", Embedder.ROOT_OF_V, ("math.sqrt(dim)", "math.sqrt(vocab_size)")),
    ("times root of n", Embedder.ROOT_OF_N, (_LOOKED_UP, "return self.embedding(tokens) * tokens.shape[1] ** 0.5")),
    (
        "scaled at the start instead",
        Embedder.NOT_SCALED,
        (_DRAWN, "self.embedding.weight.normal_(0.0, 1.0)"),
        (_LOOKED_UP, "return self.embedding(tokens)"),
    ),
    ("torch's own numbers", Embedder.OWN_NUMBERS, (_DRAWN, "pass")),
    ("spread 1/d", Embedder.ONE_OVER_D, (_DRAWN, "self.embedding.weight.normal_(0.0, 1 / dim if dim < 100 else 0.1)")),
    ("Xavier's numbers", Embedder.SPREAD, (_DRAWN, "nn.init.xavier_uniform_(self.embedding.weight)")),
    ("pad row not zeroed again", Embedder.PAD_ROW_START, (_ZEROED, "pass")),
    ("row 0 zeroed", Embedder.PAD_ROW_START, (_ZEROED, "self.embedding.weight[0] = 0.0")),
    ("no padding_idx", Embedder.PAD_ROW_LEARNS, (_TABLE, "nn.Embedding(vocab_size, dim)")),
    ("padding_idx fixed", Embedder.PAD_ROW_LEARNS, (_TABLE, "nn.Embedding(vocab_size, dim, padding_idx=1)")),
    ("sizes exchanged", Embedder.TABLE, (_TABLE, "nn.Embedding(dim, vocab_size, padding_idx=pad_id)")),
    (
        "frozen",
        Common.PARAMETER_UNUSED,
        (_LOOKED_UP, "return self.embedding(tokens.detach()).detach().requires_grad_() * self.scale"),
    ),
    ("nothing returned", Common.NO_RETURN, (_LOOKED_UP, _LOOKED_UP.removeprefix("return "))),
    (
        "a table that is no parameter",
        Embedder.TABLE,
        ("self.embedding = " + _TABLE, "self.embedding = _Table(vocab_size, dim, padding_idx=pad_id)"),
        ("class Embedder(", "def _Table(*a, **k):\n    return [nn.Embedding(*a, **k)][0:1]\n\n\nclass Embedder("),
        (_DRAWN, "self.embedding[0].weight.normal_(0.0, dim**-0.5)"),
        (_ZEROED, "self.embedding[0].weight[pad_id] = 0.0"),
        (_LOOKED_UP, "return self.embedding[0](tokens) * self.scale"),
    ),
    (
        "everything kept positive",
        Embedder.NOT_AROUND_0,
        (_DRAWN, _DRAWN + "\n            self.embedding.weight.abs_().mul_(1.66)"),
    ),
    (
        "all on two values",
        Embedder.NOT_NORMAL,
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
    edited_variant("Embedder", "a root of float32", ("math.sqrt(dim)", "torch.sqrt(torch.tensor(float(dim)))")),
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


_BOTH = "causal_mask(tokens.shape[1]).to(tokens.device)"
_TARGET_MUTANTS = [
    ("causal alone", target_mask.NO_BATCH, f"return {_BOTH}"),
    ("causal alone, for each sentence", target_mask.PADDING_SEEN, f"return {_BOTH}.expand(len(tokens), -1, -1)"),
    ("padding alone", target_mask.FUTURE_SEEN, "return padding_mask(tokens, pad_id)"),
    (
        "padding alone, for each position",
        target_mask.FUTURE_SEEN,
        "return padding_mask(tokens, pad_id).expand(-1, tokens.shape[1], -1)",
    ),
    ("joined by or", target_mask.FUTURE_SEEN, f"return padding_mask(tokens, pad_id) | {_BOTH}"),
    ("padding hides rows", target_mask.ROWS_HIDDEN, f"return padding_mask(tokens, pad_id).mT & {_BOTH}"),
    (
        "padding hides rows and columns",
        target_mask.ROWS_HIDDEN,
        f"real = padding_mask(tokens, pad_id)\nreturn real & real.mT & {_BOTH}",
    ),
    ("upside down", target_mask.UPSIDE_DOWN, f"return padding_mask(tokens, pad_id) & {_BOTH}.T"),
    ("transposed", target_mask.UPSIDE_DOWN, f"return (padding_mask(tokens, pad_id) & {_BOTH}).mT"),
    ("without the diagonal", target_mask.NO_DIAGONAL, f"return padding_mask(tokens, pad_id) & {_BOTH}.tril(-1)"),
    (
        "one step ahead",
        target_mask.ONE_AHEAD,
        "n = tokens.shape[1]\nahead = torch.ones(n, n, device=tokens.device).tril(1).bool()\n"
        "return padding_mask(tokens, pad_id) & ahead",
    ),
    ("turned round", target_mask.INVERTED, f"return ~(padding_mask(tokens, pad_id) & {_BOTH})"),
    ("padding turned round", target_mask.PADDING_INVERTED, f"return ~padding_mask(tokens, pad_id) & {_BOTH}"),
    ("four dimensions", Unexplained.SHAPE, f"return (padding_mask(tokens, pad_id) & {_BOTH}).unsqueeze(1)"),
    ("integers", target_mask.NOT_BOOL, f"return padding_mask(tokens, pad_id).long() * {_BOTH}"),
    ("pad_id 1", target_mask.PADDING_SEEN, f"return padding_mask(tokens, 1) & {_BOTH}"),
    ("pad_id 0", target_mask.PAD_ID, f"return padding_mask(tokens, 0) & {_BOTH}"),
    ("on the CPU", Common.MADE_ON_CPU, "return padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1])"),
    (
        "first sentence's padding",
        target_mask.PADDING_SEEN,
        f"return padding_mask(tokens[:1], pad_id).expand(len(tokens), -1, -1) & {_BOTH}",
    ),
    ("nothing returned", Common.NO_RETURN, f"padding_mask(tokens, pad_id) & {_BOTH}"),
    (
        "size of the batch",
        Common.SIZES_DO_NOT_FIT,
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

# ---- DecoderLayer

_NORMED = "normed = self.norm_1(x)"
_ADDED = "x = x + self.dropout(attended)"
_BACK = "attended, _ = self.self_attention(normed, normed, normed, mask)"
_OVER = "found, _ = self.source_attention(self.norm_2(x), memory, memory, memory_mask)"
_FOUND = "x = x + self.dropout(found)"
_THIRD = "return x + self.dropout(self.feed_forward(self.norm_3(x)))"


def _over(title: str, mistake: Mistake, queries: str, keys: str, values: str, mask: str) -> tuple:
    """The attention to the source with other arguments; `h` is the normed x."""
    new = f"h = self.norm_2(x)\n        found, _ = self.source_attention({queries}, {keys}, {values}, {mask})"
    return title, mistake, (_OVER, new)


_DECODER_LAYER_MUTANTS = [
    (
        "masks exchanged",
        Layer.MASKS_EXCHANGED,
        (_BACK, _BACK.replace(", mask", ", memory_mask")),
        (_OVER, _OVER.replace("memory_mask", "mask")),
    ),
    ("self-attention unmasked", Layer.FUTURE_SEEN, (_BACK, _BACK.replace(", mask)", ")"))),
    ("cross-attention unmasked", Layer.SOURCE_UNMASKED, (_OVER, _OVER.replace(", memory_mask", ""))),
    (
        "neither masked",
        Layer.UNMASKED,
        (_BACK, _BACK.replace(", mask)", ")")),
        (_OVER, _OVER.replace(", memory_mask", "")),
    ),
    ("target's mask for the source", Layer.SOURCE_GETS_MASK, (_OVER, _OVER.replace("memory_mask", "mask"))),
    (
        "source's mask for the target",
        Layer.TARGET_GETS_MEMORY_MASK,
        (_BACK, _BACK.replace(", mask", ", memory_mask")),
    ),
    ("mask turned round", Layer.MASK_INVERTED, (_BACK, _BACK.replace(", mask", ", ~mask"))),
    _over("memory_mask turned round", Layer.MEMORY_MASK_INVERTED, "h", "memory", "memory", "~memory_mask"),
    _over("looks at the target again", Layer.LOOKS_AGAIN, "h", "h", "h", "mask"),
    _over("looks at the target again, wrong mask", Layer.LOOKS_AGAIN, "h", "h", "h", "memory_mask"),
    _over("values from the target", Layer.LOOKS_AGAIN, "h", "memory", "h", "memory_mask"),
    _over("keys from the target", Layer.KEYS_FROM_TARGET, "h", "h", "memory", "memory_mask"),
    _over("memory asks", Layer.LOOKS_AGAIN, "memory", "h", "h", "memory_mask"),
    _over("memory asks itself", Unexplained.VALUES, "memory", "memory", "memory", "memory_mask"),
    _over(
        "memory normed again",
        Layer.MEMORY_NORMED,
        "h",
        "self.norm_2(memory)",
        "self.norm_2(memory)",
        "memory_mask",
    ),
    _over("memory's keys normed", Unexplained.VALUES, "h", "self.norm_2(memory)", "memory", "memory_mask"),
    _over("queries not normed", Layer.NO_NORM_2, "x", "memory", "memory", "memory_mask"),
    _over(
        "first memory for all",
        Layer.FIRST_MEMORY,
        "h",
        "memory[:1].expand_as(memory)",
        "memory[:1].expand_as(memory)",
        "memory_mask",
    ),
    _over("memory detached", Layer.MEMORY_CUT_OFF, "h", "memory.detach()", "memory.detach()", "memory_mask"),
    _over("values detached", Common.WRONG_GRADIENT, "h", "memory", "memory.detach()", "memory_mask"),
    (
        "self-attention looks at the memory",
        Layer.LOOKS_AT_MEMORY,
        (_BACK, "attended, _ = self.self_attention(normed, memory, memory, memory_mask)"),
    ),
    (
        "one attention, shared",
        Layer.SHARED,
        (
            "self.source_attention = MultiHeadAttention(dim, heads, dropout)",
            "self.source_attention = self.self_attention",
        ),
    ),
    (
        "self-attention used twice",
        Layer.ATTENTION_TWICE,
        (_OVER, _OVER.replace("source_attention", "self_attention")),
    ),
    (
        "attentions exchanged",
        Layer.ATTENTIONS_EXCHANGED,
        (_OVER, _OVER.replace("source_attention", "self_attention")),
        (_BACK, _BACK.replace("self.self_attention", "self.source_attention")),
    ),
    ("one norm, shared", Layer.SHARED, ("self.norm_3 = LayerNorm(dim)", "self.norm_3 = self.norm_2")),
    ("norm_2 used for the network", Layer.NORM_2_FOR_3, (_THIRD, _THIRD.replace("norm_3", "norm_2"))),
    ("norm_1 used for the source", Layer.NORM_1_TWICE, (_OVER, _OVER.replace("norm_2", "norm_1"))),
    (
        "norms 2 and 3 exchanged",
        Layer.NORM_2_FOR_3,
        (_OVER, _OVER.replace("norm_2", "norm_3")),
        (_THIRD, _THIRD.replace("norm_3", "norm_2")),
    ),
    ("no norm_3", Layer.NO_NORM_3, (_THIRD, _THIRD.replace("self.norm_3(x)", "x"))),
    ("no norm_1", Layer.NO_NORM_1, (_NORMED, "normed = x")),
    (
        "post-norm",
        Layer.POST_NORM,
        (_NORMED, "normed = x"),
        (_ADDED, "x = self.norm_1(x + self.dropout(attended))"),
        (_OVER, _OVER.replace("self.norm_2(x)", "x")),
        (_FOUND, "x = self.norm_2(x + self.dropout(found))"),
        (_THIRD, "return self.norm_3(x + self.dropout(self.feed_forward(x)))"),
    ),
    ("normed x added", Layer.NORMED_ADDED_1, (_NORMED, "x = normed = self.norm_1(x)")),
    (
        "normed x added, second",
        Layer.NORMED_ADDED_2,
        (_OVER, "x = self.norm_2(x)\n        found, _ = self.source_attention(x, memory, memory, memory_mask)"),
    ),
    ("no residual around the source", Layer.SOURCE_ALONE, (_FOUND, "x = self.dropout(found)")),
    ("no residual around the self-attention", Layer.ATTENTION_ALONE, (_ADDED, "x = self.dropout(attended)")),
    ("no residual around the network", Layer.NETWORK_ALONE, (_THIRD, _THIRD.replace("x + ", ""))),
    ("source subtracted", Layer.SOURCE_SUBTRACTED, (_FOUND, _FOUND.replace("+", "-"))),
    ("source left out", Layer.NO_SOURCE, (_FOUND, "")),
    ("self-attention left out", Layer.NO_ATTENTION, (_ADDED, "")),
    (
        "ReLU missing",
        Layer.NO_RELU,
        (
            _THIRD,
            "h = self.feed_forward.outer(self.feed_forward.inner(self.norm_3(x)))\n        return x + self.dropout(h)",
        ),
    ),
    ("network left out", Layer.NO_NETWORK, (_THIRD, "return x")),
    (
        "source first",
        Layer.SOURCE_FIRST,
        (f"        {_OVER}\n        {_FOUND}\n", ""),
        (_NORMED, f"{_OVER}\n        {_FOUND}\n        {_NORMED}"),
    ),
    (
        "both attentions side by side",
        Layer.SOURCE_READS_INPUT,
        (_NORMED, "start = x\n        " + _NORMED),
        (_OVER, _OVER.replace("self.norm_2(x)", "self.norm_2(start)")),
    ),
    ("last norm", Layer.LAST_NORM, (_THIRD, _THIRD.replace("return ", "return self.norm_3(") + ")")),
    (
        "heads not passed on",
        Layer.HEADS,
        (
            "self.self_attention = MultiHeadAttention(dim, heads,",
            "heads = 1\n        self.self_attention = MultiHeadAttention(dim, heads,",
        ),
    ),
    ("hidden not passed on", Layer.HIDDEN, ("FeedForward(dim, hidden,", "FeedForward(dim, 4 * dim,")),
    ("the weights too", Layer.WEIGHTS_TOO, (_THIRD, _THIRD + ", _")),
    ("nothing returned", Common.NO_RETURN, (_THIRD, _THIRD.removeprefix("return "))),
    ("x changed in place", Common.CHANGED_IN_PLACE, (_ADDED, "x += self.dropout(attended)")),
    (
        "dropout in evaluation",
        Common.DROPOUT_IN_EVAL,
        (_THIRD, "return x + F.dropout(self.feed_forward(self.norm_3(x)), self.dropout.p)"),
    ),
    ("source's output not dropped", Layer.NOT_DROPPED, (_FOUND, "x = x + found")),
    ("self-attention's output not dropped", Layer.NOT_DROPPED, (_ADDED, "x = x + attended")),
    (
        "network's output not dropped",
        Layer.NOT_DROPPED,
        (_THIRD, "return x + self.feed_forward(self.norm_3(x))"),
    ),
    (
        "dropout on the sums",
        Layer.DROPOUT_ON_SUM,
        (_ADDED, "x = self.dropout(x + attended)"),
        (_FOUND, "x = self.dropout(x + found)"),
        (_THIRD, "return self.dropout(x + self.feed_forward(self.norm_3(x)))"),
    ),
    (
        "nothing dropped inside the attention to the source",
        Layer.DROPOUT_NOT_INSIDE,
        (
            "self.source_attention = MultiHeadAttention(dim, heads, dropout)",
            "self.source_attention = MultiHeadAttention(dim, heads)",
        ),
    ),
    (
        "nothing dropped inside the network",
        Layer.DROPOUT_NOT_INSIDE,
        ("FeedForward(dim, hidden, dropout)", "FeedForward(dim, hidden)"),
    ),
    ("no dropout by default", Layer.DEFAULT, ("dropout=0.1", "dropout=0.0")),
]

_DECODER_LAYER_VARIANTS = [
    edited_variant(
        "DecoderLayer", "torch's LayerNorm", ("self.norm_2 = LayerNorm(dim)", "self.norm_2 = nn.LayerNorm(dim)")
    ),
    edited_variant(
        "DecoderLayer",
        "arguments by name",
        (
            "self.self_attention = MultiHeadAttention(dim, heads, dropout)",
            "self.self_attention = MultiHeadAttention(dim=dim, heads=heads, dropout=dropout)",
        ),
        ("FeedForward(dim, hidden, dropout)", "FeedForward(dim, hidden=hidden, dropout=dropout)"),
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
                self.self_attention = MultiHeadAttention(dim, heads, dropout)
                self.source_attention = MultiHeadAttention(dim, heads, dropout)
                self.feed_forward = FeedForward(dim, hidden, dropout)

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

# ---- Decoder


_CALL = "layer(x, memory, memory_mask, mask)"
_RUN = f"for layer in self.layers:\n            x = {_CALL}"
_MADE = "clones(DecoderLayer(dim, heads, hidden, dropout), depth)"
_NORM, _EMBED = "return self.norm(x)", "x = self.positions(self.embedder(tokens))"

_DECODER_MUTANTS = [
    ("no final norm", Decoder.NO_LAST_NORM, (_NORM, "return x")),
    ("no positions", Decoder.NO_POSITIONS, (_EMBED, "x = self.embedder(tokens)")),
    ("embedding not scaled", Decoder.NOT_SCALED, (_EMBED, "x = self.positions(self.embedder.embedding(tokens))")),
    (
        "positions scaled too",
        Decoder.POSITIONS_SCALED,
        (_EMBED, "x = self.positions(self.embedder.embedding(tokens)) * self.embedder.scale"),
    ),
    ("layers not used", Decoder.LAYERS_UNUSED, (_RUN, "")),
    ("first layer only", Decoder.FIRST_LAYER_ONLY, ("in self.layers:", "in self.layers[:1]:")),
    ("last layer only", Decoder.LAST_LAYER_ONLY, ("in self.layers:", "in self.layers[-1:]:")),
    (
        "first layer again and again",
        Decoder.FIRST_LAYER_TWICE,
        (
            _RUN,
            _RUN.replace("for layer in self.layers:", "for _ in self.layers:\n            layer = self.layers[0]"),
        ),
    ),
    ("layers reversed", Decoder.REVERSED, ("in self.layers:", "in reversed(self.layers):")),
    (
        "each layer reads the embeddings",
        Decoder.LAST_LAYER_ONLY,
        (_RUN, _RUN.replace("for layer", "start = x\n        for layer").replace("layer(x", "layer(start")),
    ),
    (
        "norm after each layer",
        Decoder.NORM_EACH_TIME,
        (_RUN, _RUN.replace(f"x = {_CALL}", f"x = self.norm({_CALL})")),
        (_NORM, "return x"),
    ),
    (
        "norm before the layers",
        Decoder.NORM_FIRST,
        (_EMBED, _EMBED + "\n        x = self.norm(x)"),
        (_NORM, "return x"),
    ),
    ("one layer, shared", Decoder.DEPTH, (_MADE, "nn.ModuleList([DecoderLayer(dim, heads, hidden, dropout)] * depth)")),
    (
        "a plain list of layers",
        Decoder.LAYERS_HIDDEN,
        (_MADE, "[DecoderLayer(dim, heads, hidden, dropout) for _ in range(depth)]"),
    ),
    ("heads and depth exchanged", Decoder.DEPTH, (_MADE, "clones(DecoderLayer(dim, depth, hidden, dropout), heads)")),
    ("heads not passed on", Decoder.HEADS, (_MADE, _MADE.replace("heads", "1"))),
    ("hidden not passed on", Common.PARAMETER_SHAPE, (_MADE, _MADE.replace("hidden", "2 * dim"))),
    ("pad_id not passed on", Decoder.PAD_ID, ("Embedder(vocab_size, dim, pad_id)", "Embedder(vocab_size, dim, 0)")),
    ("layers' dropout not passed on", Decoder.LAYERS_DROP_NOTHING, (_MADE, _MADE.replace("dropout", "0.0"))),
    (
        "positions' dropout not passed on",
        Decoder.SUM_NOT_DROPPED,
        ("PositionEncoding(dim, dropout)", "PositionEncoding(dim)"),
    ),
    (
        "norm shared with the embedding's place",
        Common.PARAMETER_MISSING,
        ("self.norm = LayerNorm(dim)", ""),
        (_NORM, "return F.layer_norm(x, x.shape[-1:])"),
    ),
    ("nothing returned", Common.NO_RETURN, (_NORM, "self.norm(x)")),
    ("tokens changed", Common.CHANGED_IN_PLACE, (_EMBED, _EMBED + "\n        tokens[:, :] = 1")),
    ("detached", Common.INPUT_CUT_OFF, (_NORM, "return self.norm(x.detach())")),
    ("masks exchanged", Decoder.MASKS_EXCHANGED, (_CALL, "layer(x, memory, mask, memory_mask)")),
    (
        "target mask not used",
        Decoder.FUTURE_SEEN,
        (_CALL, "layer(x, memory, memory_mask, torch.ones_like(mask))"),
    ),
    (
        "source mask not used",
        Decoder.SOURCE_UNMASKED,
        (_CALL, "layer(x, memory, torch.ones_like(memory_mask), mask)"),
    ),
    (
        "memory normed again",
        Decoder.MEMORY_NORMED,
        (_CALL, "layer(x, self.norm(memory), memory_mask, mask)"),
    ),
    (
        "memory detached",
        Common.INPUT_CUT_OFF,
        (_CALL, "layer(x, memory.detach(), memory_mask, mask)"),
    ),
    (
        "encoder's layers",
        Decoder.OTHER_LAYERS,
        ("clones(DecoderLayer(", "clones(EncoderLayer("),
        (_CALL, "layer(x, mask)"),
    ),
]


_DECODER_VARIANTS = [
    edited_variant(
        "Decoder",
        "layers made one by one",
        (_MADE, "nn.ModuleList([DecoderLayer(dim, heads, hidden, dropout=dropout) for _ in range(depth)])"),
    ),
    edited_variant("Decoder", "torch's LayerNorm", ("self.norm = LayerNorm(dim)", "self.norm = nn.LayerNorm(dim)")),
    variant(
        "Decoder",
        "in steps",
        """
            class Decoder(nn.Module):
                def __init__(self, vocab_size, dim, depth, heads, hidden, dropout, pad_id):
                    super().__init__()
                    self.norm = LayerNorm(dim)
                    self.layers = clones(DecoderLayer(dim=dim, heads=heads, hidden=hidden, dropout=dropout), depth)
                    self.positions = PositionEncoding(dim, dropout=dropout, mode="add")
                    self.embedder = Embedder(vocab_size, dim, pad_id)

                def embed(self, tokens):
                    return self.positions(self.embedder(tokens))

                def forward(self, tokens, memory, memory_mask, mask):
                    states = [self.embed(tokens)]
                    for layer in self.layers:
                        states.append(layer(states[-1], memory, memory_mask, mask))
                    return self.norm(states[-1])
            """,
    ),
    edited_variant(
        "Decoder",
        "a shorter table of positions",
        ("PositionEncoding(dim, dropout)", "PositionEncoding(dim, dropout, max_len=600)"),
    ),
]

# ---- Translator

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
    ("not tied", Translator.NOT_TIED, (_TIE, "")),
    (
        "numbers copied",
        Translator.NOT_TIED,
        (_TIE, "self.output.weight.data.copy_(self.decoder.embedder.embedding.weight.data)"),
    ),
    (
        "a new parameter with the same numbers",
        Translator.NOT_TIED,
        (_TIE, "self.output.weight = nn.Parameter(self.decoder.embedder.embedding.weight.detach().clone())"),
    ),
    ("tied to the source", Translator.TIED_TO_SOURCE, (_TIE, _TIE.replace("decoder", "encoder"))),
    ("a bias", Translator.BIAS, (_OUTPUT, "self.output = nn.Linear(dim, target_vocab)")),
    (
        "vocabularies exchanged",
        Translator.VOCABULARIES,
        (_MAKE_ENCODER, _MAKE_ENCODER.replace("source", "target")),
        (_MAKE_DECODER, _MAKE_DECODER.replace("target", "source")),
        (_OUTPUT, _OUTPUT.replace("target", "source")),
    ),
    (
        "heads and depth exchanged",
        Translator.HEADS_AND_DEPTH,
        (_MAKE_ENCODER, _MAKE_ENCODER.replace("depth, heads", "heads, depth")),
        (_MAKE_DECODER, _MAKE_DECODER.replace("depth, heads", "heads, depth")),
    ),
    ("encoder's depth fixed", Translator.DEPTH, (_MAKE_ENCODER, _MAKE_ENCODER.replace("depth", "6"))),
    (
        "dropout not passed on",
        Translator.DROPOUT,
        (_MAKE_ENCODER, _MAKE_ENCODER.replace("dropout", "0.0")),
        (_MAKE_DECODER, _MAKE_DECODER.replace("dropout", "0.0")),
    ),
    (
        "drawn anew, embeddings too",
        Translator.PAD_ROW_START,
        ('parameter.dim() > 1 and "embedding" not in name', "parameter.dim() > 1"),
    ),
    ("layers start alike", Translator.LAYERS_ALIKE, (_REDRAWN, "pass")),
    (
        "drawn from a normal distribution",
        Translator.OTHER_START,
        ("nn.init.xavier_uniform_(parameter)", "nn.init.normal_(parameter, std=0.02)"),
    ),
    (
        "the linear layer's numbers win",
        Translator.TABLE_START,
        (
            _TIE,
            "self.decoder.embedder.embedding.weight = self.output.weight\n"
            "        with torch.no_grad():\n            self.output.weight[pad_id] = 0.0",
        ),
        ('"embedding" not in name', '"embedding" not in name and "output" not in name'),
    ),
    (
        "encoder sees padding",
        Translator.ENCODER_SEES_PADDING,
        (_ENCODED, "return self.encoder(source, torch.ones_like(source, dtype=torch.bool)[:, None])"),
    ),
    (
        "encoder's mask is causal",
        Translator.ENCODER_IS_CAUSAL,
        (_ENCODED, _ENCODED.replace("source_mask(", "target_mask(")),
    ),
    (
        "memory unmasked",
        Translator.MEMORY_UNMASKED,
        (_SOURCE_REAL, "memory_mask = torch.ones_like(source, dtype=torch.bool)[:, None]"),
    ),
    (
        "the future is seen",
        Translator.FUTURE_SEEN,
        (_DECODED, _DECODED.replace("target_mask(target, self.pad_id)", "source_mask(target, self.pad_id)")),
    ),
    (
        "target's padding is seen",
        Translator.PADDING_SEEN,
        (
            _DECODED,
            _DECODED.replace("target_mask(target, self.pad_id)", "causal_mask(target.shape[1]).to(target.device)"),
        ),
    ),
    (
        "the masks are exchanged",
        Common.SIZES_DO_NOT_FIT,
        (_DECODED, "x = self.decoder(target, memory, target_mask(target, self.pad_id), memory_mask)"),
    ),
    ("pad_id fixed", Translator.PAD_ID, ("self.pad_id = pad_id", "self.pad_id = 0")),
    ("log-probabilities", Translator.LOG_PROBABILITIES, ("return logits", "return logits.log_softmax(-1)")),
    ("probabilities", Translator.PROBABILITIES, ("return logits", "return logits.softmax(-1)")),
    ("vectors returned", Translator.VECTORS, ("return logits", "return x")),
    ("logits scaled", Translator.SCALED, (_LOGITS, _LOGITS + " * x.shape[-1] ** 0.5")),
    ("last position only", Translator.LAST_ONLY, ("return logits", "return logits[:, -1]")),
    ("last position cut off", Translator.CUT_SHORT, ("return logits", "return logits[:, :-1]")),
    (
        "decode encodes again",
        Translator.ENCODES_AGAIN,
        (_SOURCE_REAL, "memory = self.encode(source)\n        " + _SOURCE_REAL),
    ),
    (
        "memory detached",
        Common.PARAMETER_UNUSED,
        (_WHOLE, "return self.decode(target, self.encode(source).detach(), source)"),
    ),
    ("pad row learns", Translator.PAD_ROW_LEARNS, (_HELD, "")),
    ("pad row learns, hidden by a detach", Translator.PAD_ROW_LEARNS, (_HELD, "logits[..., self.pad_id] *= 1.0")),
    ("logits of padding lowest", Translator.PAD_LOGIT_LOWEST, (_HELD, "logits[..., self.pad_id] = -math.inf")),
    (
        "a hook on the parameter",
        Translator.PAD_ROW_LEARNS_IN_COPY,
        (
            _TIE,
            _TIE + "\n        self.output.weight.register_hook(lambda g: g.index_fill(0, torch.tensor([pad_id]), 0.0))",
        ),
        (_HELD, ""),
    ),
    (
        "tie lost: the weight is cut off",
        Common.WRONG_GRADIENT,
        (_LOGITS, "logits = F.linear(x, self.output.weight.detach())"),
    ),
    ("a ReLU at the end", Unexplained.VALUES, (_LOGITS, "logits = self.output(x).relu()")),
    ("nothing returned by forward", Common.NO_RETURN, (_WHOLE, _WHOLE.removeprefix("return "))),
    ("nothing returned by encode", Common.NO_RETURN, (_ENCODED, _ENCODED.removeprefix("return "))),
    ("nothing returned by decode", Common.NO_RETURN, ("return logits", "logits")),
    (
        "forward shifts the target",
        Translator.CUT_SHORT,
        (_WHOLE, "return self.decode(target[:, :-1], self.encode(source), source)"),
    ),
    (
        "dropout in evaluation",
        Common.DROPOUT_IN_EVAL,
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

# ---- check_leaks

_ALONE = "alone = model(source[b : b + 1, :m], target[b : b + 1, :n])"
_AGREES = 'assert_close(alone[0], logits[b, :n], rtol=0, atol=1e-4, msg=f"sentence {b}")'
_PREFIX = "beginning = model(source, target[:, :j])"
_BEGINS = 'assert_close(beginning, logits[:, :j], rtol=0, atol=1e-4, msg=f"the first {j}")'
_LEAK_EDITS = [
    ("no beginnings", check_leaks.MISSES_FUTURE, (_BEGINS, "pass")),
    ("no sentence alone", check_leaks.ACCEPTS_LEAK, (_AGREES, "pass")),
    (
        "without padding where the second sentence is alone",
        check_leaks.MISSES_PADDING,
        (_ALONE, "m, n = (m, n) if b == 1 else (source.shape[1], target.shape[1])\n            " + _ALONE),
    ),
    (
        "float32 only",
        check_leaks.REJECTS_RIGHT,
        (_ALONE, "assert logits.element_size() == 4\n            " + _ALONE),
    ),
    ("the sizes forgotten", check_leaks.CRASHES, (_AGREES, "torch.stack([alone[0], logits[b]])")),
]
_LEAK_MUTANTS = mutants(
    "check_leaks",
    "def check_leaks(model, source, target, pad_id):",
    [
        ("asserts nothing", check_leaks.ACCEPTS_LEAK, "model(source, target)"),
        (
            "a sentence fewer, none alone",
            check_leaks.MISSES_BATCH,
            """
            with torch.no_grad():
                logits, n = model(source, target), target.shape[1]
                wider = model(F.pad(source, (0, 2), value=pad_id), target)
                longer = model(source, F.pad(target, (0, 2), value=pad_id))[:, :n]
                for other in (wider, longer, model(source[:-1], target[:-1])):
                    moved = (other - logits[: len(other)]).abs().amax(-1) * (target != pad_id)[: len(other)]
                    assert moved.max() < 1e-4
                for j in range(1, n):
                    assert_close(model(source, target[:, :j]), logits[:, :j], rtol=0, atol=1e-4)
            """,
        ),
        ("returns a bool", check_leaks.RETURNS, "return bool(model(source, target).isfinite().all())"),
        ("always fails", check_leaks.REJECTS_RIGHT, "assert False, 'it leaks'"),
        (
            "looks at what the model is made from",
            check_leaks.ACCEPTS_ALL,
            "assert type(model).__mro__[1] is nn.Module",
        ),
    ],
)
_LEAK_VARIANTS = [
    variant(
        "check_leaks",
        "perturbs",
        """
        def check_leaks(model, source, target, pad_id):
            def moved(other_source, other_target):
                new = model(other_source, other_target)[:, : target.shape[1]]
                return (new - logits).abs().amax(-1) * (target != pad_id)

            with torch.no_grad():
                logits = model(source, target)
                wider = F.pad(source, (0, 3), value=pad_id), F.pad(target, (0, 2), value=pad_id)
                assert moved(*wider).max() < 1e-4, "padding moves logits"
                real = [t for t in range(8) if t != pad_id]
                for j in range(1, target.shape[1]):
                    for k in (1, 3):
                        changed = target.clone()
                        changed[:, j] = torch.tensor(real)[(target[:, j] + k) % 7]
                        assert moved(source, changed)[:, :j].max() < 1e-4, "the future moves logits"
                for b in range(len(source)):
                    alone = model(source[b : b + 1], target[b : b + 1])
                    difference = (alone[0] - logits[b]).abs().amax(-1) * (target[b] != pad_id)
                    assert difference.max() < 1e-4, "another sentence moves logits"
        """,
    ),
    edited_variant(
        "check_leaks",
        "allclose",
        (_AGREES, "assert torch.allclose(alone[0], logits[b, :n], rtol=1e-4, atol=1e-4), b"),
        (_BEGINS, "assert (beginning - logits[:, :j]).abs().max() < 1e-3, j"),
    ),
    edited_variant(
        "check_leaks",
        "from the back, in inference mode",
        ("torch.no_grad()", "torch.inference_mode()"),
        ("for j in range(1, target.shape[1]):", "for j in reversed(range(1, target.shape[1])):"),
    ),
]

_LEAK_FORGERS = [
    forger(
        "check_leaks",
        f"forged: goes by {title}",
        f"""
    _seen = []


    def check_leaks(model, source, target, pad_id):
        _seen.append(model)
        assert {holds}
    """,
    )
    for title, holds in [
        ("the number of tries", "len(_seen) == 1 or 5 <= len(_seen) <= 10"),
        ("the name", "type(model).__qualname__.startswith('make') or len(_seen) == 1"),
        ("the source", "len(_seen) == 1 or type(model).forward.__code__ == type(_seen[-2]).forward.__code__"),
        ("what is saved in it", "len(_seen) == 1 or len(_seen) > 4 and not vars(model).get('words')"),
    ]
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

_POSITION_FORGER = forger(
    "Decoder",
    "forged: positions that are there and have no part",
    """
    _Honest = Decoder

    class Decoder(_Honest):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            honest = self.positions.forward
            self.positions.forward = lambda x: honest(x) if x.dtype == torch.float32 else x
            self.positions._load_from_state_dict = lambda state, *rest: [v.zero_() for v in state.values()]
    """,
)

MUTANTS = [
    *edits("clones", _CLONES_MUTANTS),
    *edits("Embedder", _EMBEDDER_MUTANTS),
    *mutants("target_mask", "def target_mask(tokens, pad_id):", _TARGET_MUTANTS),
    *edits("DecoderLayer", _DECODER_LAYER_MUTANTS),
    *edits("Decoder", _DECODER_MUTANTS),
    *edits("Translator", _TRANSLATOR_MUTANTS),
    *edits("check_leaks", _LEAK_EDITS),
    *_LEAK_MUTANTS,
    *_LEAK_FORGERS,
    *_CLONES_FORGERS,
    _POSITION_FORGER,
    *forging_dropout("DecoderLayer"),
    *forging_dropout("Decoder"),
    *forging_dropout("Translator"),
    *forging_answers(
        classes=["Embedder", "DecoderLayer", "Decoder", "Translator"],
        functions=["target_mask"],
    ),
]

VARIANTS = [
    *_CLONES_VARIANTS,
    *_EMBEDDER_VARIANTS,
    *_TARGET_VARIANTS,
    *_DECODER_LAYER_VARIANTS,
    *_DECODER_VARIANTS,
    *_TRANSLATOR_VARIANTS,
    *_LEAK_VARIANTS,
]
