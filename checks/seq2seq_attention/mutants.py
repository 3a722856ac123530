"""Chapter 08: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, edit, edited_variant, variant
from checks.forgers import forging_answers

# ---- GRUEncoder

_GRU = "self.gru = nn.GRU(embed_dim, encoder_hidden, batch_first=True, bidirectional=True)"
_FC = "self.fc = nn.Linear(2 * encoder_hidden, decoder_hidden)"
_VECTORS = "vectors = self.dropout(self.embedding(tokens))  # (B, m, embed_dim)"
_PACK = """packed = nn.utils.rnn.pack_padded_sequence(
            vectors, lengths.cpu(), batch_first=True, enforce_sorted=False
        )"""
_RUN = "packed, last = self.gru(packed)  # last: (2, B, encoder_hidden)"
_UNPACK = """outputs, _ = nn.utils.rnn.pad_packed_sequence(
            packed, batch_first=True, total_length=tokens.shape[1]
        )"""
_ENCODED = "return outputs, torch.tanh(self.fc(torch.cat([last[0], last[1]], dim=-1)))"


def _encoder(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("GRUEncoder", title, says, *edits)


def _unpacked(then: str = "") -> tuple[tuple[str, str], ...]:
    """Edits that read the sentence together with its padding."""
    return (_PACK, "packed = vectors"), (_UNPACK, "outputs = packed" + then)


def _first_state(value: str) -> tuple[str, str]:
    return _ENCODED, f"return outputs, {value}"


_ENCODER_MUTANTS = [
    _encoder("nothing returned", "is there a `return`?", (_ENCODED, _ENCODED.replace("return", "result ="))),
    _encoder("outputs only", "return 2 things", (_ENCODED, "return outputs")),
    _encoder("not packed", "reads the padding", *_unpacked()),
    _encoder(
        "not packed, outputs masked",
        "zeroing the outputs afterwards is too late",
        *_unpacked("\n        outputs = outputs * (torch.arange(tokens.shape[1]) < lengths[:, None])[..., None]"),
    ),
    _encoder("no total_length", "`total_length`", (_UNPACK, _UNPACK.replace(", total_length=tokens.shape[1]", ""))),
    _encoder("padding is token 1", "padding is recognised by token 1", ("lengths.cpu()", "(tokens != 1).sum(1)")),
    _encoder(
        "one token lost", "loses its last token", ("lengths.cpu()", "(lengths - 1).clamp(1, tokens.shape[1]).cpu()")
    ),
    _encoder("sorted lengths expected", "enforce_sorted", (", enforce_sorted=False", "")),
    _encoder(
        "packed time first",
        "`pack_padded_sequence` needs `batch_first=True`",
        (_PACK, _PACK.replace("batch_first=True, ", "")),
    ),
    _encoder(
        "unpacked time first",
        "`pad_packed_sequence` needs `batch_first=True`",
        (_UNPACK, _UNPACK.replace("batch_first=True, ", "")),
    ),
    _encoder(
        "first length for all",
        "length of the first sentence",
        ("lengths.cpu()", "lengths[:1].expand_as(lengths).cpu()"),
    ),
    _encoder("one direction", "in both directions", (", bidirectional=True", "")),
    _encoder("an RNN", "`gru` is an nn.GRU", ("nn.GRU(", "nn.RNN(")),
    _encoder("an LSTM", "`gru` is an nn.GRU", ("nn.GRU(", "nn.LSTM(")),
    _encoder("two layers", "`gru` has two layers", ("encoder_hidden, batch_first", "encoder_hidden, 2, batch_first")),
    _encoder(
        "hidden sizes exchanged",
        "`gru` is an nn.GRU",
        (_GRU, _GRU.replace("encoder", "decoder")),
    ),
    _encoder("fc for one direction", "`fc` is nn.Linear(2 * encoder_hidden", (_FC, _FC.replace("2 * ", ""))),
    _encoder("no tanh", "the tanh is missing", _first_state("self.fc(torch.cat([last[0], last[1]], dim=-1))")),
    _encoder("ReLU", "a ReLU", (_ENCODED, _ENCODED.replace("tanh", "relu"))),
    _encoder(
        "tanh before fc",
        "the tanh comes before `fc`",
        _first_state("self.fc(torch.tanh(torch.cat([last[0], last[1]], dim=-1)))"),
    ),
    _encoder("backward first", "the backward state comes first", ("[last[0], last[1]]", "[last[1], last[0]]")),
    _encoder("forward twice", "the forward state stands there twice", ("[last[0], last[1]]", "[last[0], last[0]]")),
    _encoder(
        "reshaped",
        "states of different sentences are mixed",
        ("torch.cat([last[0], last[1]], dim=-1)", "last.reshape(len(tokens), -1)"),
    ),
    _encoder(
        "last position", "which is padding for the shorter", ("torch.cat([last[0], last[1]], dim=-1)", "outputs[:, -1]")
    ),
    _encoder(
        "last real token",
        "the backward direction has read one token only",
        ("torch.cat([last[0], last[1]], dim=-1)", "outputs[torch.arange(len(tokens)), lengths - 1]"),
    ),
    _encoder(
        "first token",
        "the forward direction has read one token only",
        ("torch.cat([last[0], last[1]], dim=-1)", "outputs[:, 0]"),
    ),
    _encoder(
        "mean of the outputs",
        "the mean of the outputs",
        ("torch.cat([last[0], last[1]], dim=-1)", "outputs.sum(1) / lengths[:, None].to(outputs.dtype)"),
    ),
    _encoder("fc left out", "`fc` is left out", _first_state("torch.tanh(torch.cat([last[0], last[1]], dim=-1))")),
    _encoder("a dimension too many", "one dimension too many", (_ENCODED, _ENCODED + ".unsqueeze(0)")),
    _encoder(
        "exchanged", "hidden and outputs are exchanged", (_ENCODED, _ENCODED.replace("outputs, ", "") + ", outputs")
    ),
    _encoder(
        "directions added",
        "added up, not put side by side",
        (_ENCODED, "outputs = sum(outputs.chunk(2, dim=-1))\n        " + _ENCODED),
    ),
    _encoder("no dropout", "`dropout` has no effect", (_VECTORS, "vectors = self.embedding(tokens)")),
    _encoder(
        "dropout on the outputs",
        "the dropout acts on the outputs",
        (_VECTORS, "vectors = self.embedding(tokens)"),
        (_ENCODED, _ENCODED.replace("outputs,", "self.dropout(outputs),")),
    ),
    _encoder(
        "dropout in evaluation",
        "still active in evaluation",
        ("nn.Dropout(dropout)", "lambda x: F.dropout(x, dropout)"),
    ),
    _encoder(
        "detached",
        "no gradient reaches the parameter `embedding.weight`",
        (_VECTORS, _VECTORS.replace("  #", ".detach()  #")),
    ),
    _encoder(
        "tokens changed",
        "`tokens` was changed in place",
        (
            _VECTORS,
            "tokens[:] = tokens.masked_fill(torch.arange(tokens.shape[1]) >= lengths[:, None], 1)\n        " + _VECTORS,
        ),
    ),
]
_ENCODER_VARIANTS = [
    edited_variant(
        "GRUEncoder",
        "time first inside, hidden by view, the tanh a module",
        (_GRU, "self.gru = nn.GRU(embed_dim, encoder_hidden, bidirectional=True)\n        self.bend = nn.Tanh()"),
        (_ENCODED, "return outputs, self.bend(self.fc(last.transpose(0, 1).flatten(1)))"),
    ),
    edited_variant(
        "GRUEncoder",
        "negative indices, lengths as a list",
        ("lengths.cpu()", "lengths.tolist()"),
        (_VECTORS, "vectors = self.embedding(tokens)\n        vectors = self.dropout(vectors)"),
        ("[last[0], last[1]], dim=-1", "(last[-2], last[-1]), 1"),
    ),
    edited_variant(
        "GRUEncoder",
        "last states taken from the outputs",
        (
            _ENCODED,
            """h = self.gru.hidden_size
        forward = outputs[torch.arange(len(tokens)), lengths - 1, :h]
        backward = outputs[:, 0, h:]
        return [outputs, self.fc(torch.cat([forward, backward], dim=1)).tanh()]""",
        ),
    ),
    edited_variant(
        "GRUEncoder",
        "one sentence at a time",
        (_PACK, "states, ends = [], []"),
        (
            _RUN,
            """for row, length in zip(vectors, lengths.tolist()):
            output, end = self.gru(row[None, :length])
            states.append(F.pad(output[0], (0, 0, 0, len(row) - length)))
            ends.append(end[:, 0])""",
        ),
        (_UNPACK, "outputs, last = torch.stack(states), torch.stack(ends, dim=1)"),
    ),
]

# ---- AdditiveAttention

_FC1 = "self.fc1 = nn.Linear(decoder_hidden + 2 * encoder_hidden, decoder_hidden)"
_FC2 = "self.fc2 = nn.Linear(decoder_hidden, 1, bias=False)"
_PAIRS = "pairs = torch.cat([hidden.unsqueeze(1).expand(-1, m, -1), encoder_outputs], dim=-1)"
_SCORES = "scores = self.fc2(torch.tanh(self.fc1(pairs))).squeeze(-1)  # (B, m)"
_WEIGHTS = "return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)"


def _attention(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("AdditiveAttention", title, says, *edits)


_ATTENTION_MUTANTS = [
    _attention("nothing returned", "is there a `return`?", (_WEIGHTS, _WEIGHTS.replace("return", "weights ="))),
    _attention("mask ignored", "the mask is ignored", (_WEIGHTS, "return scores.softmax(dim=-1)")),
    _attention("mask turned round", "wrong sign", (_WEIGHTS, _WEIGHTS.replace("~mask", "mask"))),
    _attention(
        "NaN for an empty row", "NaN", (_WEIGHTS, 'return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)')
    ),
    _attention(
        "equal weights for an empty row",
        "should be all 0",
        (_WEIGHTS, "return scores.masked_fill(~mask, lowest).softmax(dim=-1)"),
    ),
    _attention("filled with 0", "exp(0) is 1", (_WEIGHTS, "return scores.masked_fill(~mask, 0.0).softmax(dim=-1)")),
    _attention(
        "filled with a small number",
        "exp(0) is 1",
        (_WEIGHTS, "return scores.masked_fill(~mask, 1e-12).softmax(dim=-1)"),
    ),
    _attention("filled with -1e4", "not low enough", (_WEIGHTS, _WEIGHTS.replace("lowest", "-1e4"))),
    _attention("masked afterwards", "no longer sum to 1", (_WEIGHTS, "return scores.softmax(dim=-1) * mask")),
    _attention(
        "first mask for all",
        "mask of the first sentence",
        (_WEIGHTS, "mask = mask[:1].expand_as(mask)\n        " + _WEIGHTS),
    ),
    _attention("no tanh", "the tanh is missing", (_SCORES, "scores = self.fc2(self.fc1(pairs)).squeeze(-1)")),
    _attention("ReLU", "a ReLU", (_SCORES, _SCORES.replace("tanh", "relu"))),
    _attention(
        "tanh at the end", "after `fc2`", (_SCORES, "scores = torch.tanh(self.fc2(self.fc1(pairs))).squeeze(-1)")
    ),
    _attention(
        "output first",
        "the output comes first",
        (_PAIRS, "pairs = torch.cat([encoder_outputs, hidden.unsqueeze(1).expand(-1, m, -1)], dim=-1)"),
    ),
    _attention("no softmax", "the softmax is missing", (_WEIGHTS, "return scores")),
    _attention("masked, no softmax", "the softmax is missing", (_WEIGHTS, "return scores.masked_fill(~mask, 0.0)")),
    _attention("softmax over the batch", "over the batch", (_WEIGHTS, _WEIGHTS.replace("dim=-1", "dim=0"))),
    _attention(
        "softmax over one number",
        "one number only",
        (_SCORES, _SCORES.replace(".squeeze(-1)", "")),
        (_WEIGHTS, "return scores.softmax(dim=-1).squeeze(-1).masked_fill(~mask, 0.0)"),
    ),
    _attention("not squeezed", "(B, m, 1)", (_WEIGHTS, _WEIGHTS + ".unsqueeze(-1)")),
    _attention("a row", "(B, 1, m)", (_WEIGHTS, _WEIGHTS + ".unsqueeze(1)")),
    _attention("log-softmax", "log-weights", (_WEIGHTS, _WEIGHTS.replace("softmax", "log_softmax"))),
    _attention("sigmoid", "a sigmoid", (_WEIGHTS, "return scores.sigmoid() * mask")),
    _attention(
        "scaled", "needs no scale", (_WEIGHTS, "scores = scores / self.fc1.out_features**0.5\n        " + _WEIGHTS)
    ),
    _attention(
        "states mixed",
        "states of different sentences are mixed",
        (_PAIRS, "pairs = torch.cat([hidden.repeat(m, 1).view(-1, m, hidden.shape[1]), encoder_outputs], dim=-1)"),
    ),
    _attention(
        "first state for all",
        "state of the first sentence",
        (_PAIRS, "hidden = hidden[:1].expand_as(hidden)\n        " + _PAIRS),
    ),
    _attention("first weights for all", "weights of the first sentence", (_WEIGHTS, _WEIGHTS + "[:1].expand_as(mask)")),
    _attention(
        "state not used",
        "the decoder's state is not used",
        (_PAIRS, "hidden = torch.zeros_like(hidden)\n        " + _PAIRS),
    ),
    _attention("bias in fc2", "`fc2.bias` should not be there", (_FC2, "self.fc2 = nn.Linear(decoder_hidden, 1)")),
    _attention(
        "fc2 too wide",
        "`fc2` is nn.Linear(decoder_hidden, 1",
        (_FC2, "self.fc2 = nn.Linear(decoder_hidden, decoder_hidden, bias=False)"),
    ),
    _attention("one direction", "`fc1` is nn.Linear(decoder_hidden + 2", (_FC1, _FC1.replace("2 * ", ""))),
    _attention("detached", "cut off", (_WEIGHTS, _WEIGHTS + ".detach()")),
    _attention(
        "outputs detached",
        "no gradient reaches `encoder_outputs`",
        (_PAIRS, _PAIRS.replace("encoder_outputs]", "encoder_outputs.detach()]")),
    ),
    _attention("float32 only", "keep dtype torch.float64", (_WEIGHTS, _WEIGHTS + ".float()")),
    _attention("made on the CPU", "on a GPU", (_WEIGHTS, _WEIGHTS + " + torch.zeros(m, dtype=scores.dtype)")),
    _attention(
        "outputs changed",
        "`encoder_outputs` was changed in place",
        (_PAIRS, "encoder_outputs.mul_(mask.unsqueeze(-1))\n        " + _PAIRS),
    ),
]
_ATTENTION_VARIANTS = [
    edited_variant(
        "AdditiveAttention",
        "-inf, and NaN mended afterwards",  # its gradient is finite: what is filled has none
        (_WEIGHTS, 'return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1).nan_to_num(0.0)'),
    ),
    edited_variant(
        "AdditiveAttention",
        "repeat, squeeze, -inf and where",
        (_PAIRS, "pairs = torch.cat((hidden[:, None].repeat(1, m, 1), encoder_outputs), 2)"),
        (
            _WEIGHTS,
            """empty = ~mask.any(dim=1, keepdim=True)
        weights = F.softmax(scores.masked_fill(~(mask | empty), float("-inf")), dim=1)
        return torch.where(empty, torch.zeros_like(weights), weights)""",
        ),
    ),
    edited_variant(
        "AdditiveAttention",
        "the linear layer split in two",
        (_PAIRS, "d = hidden.shape[1]"),
        (
            _SCORES,
            """from_hidden = F.linear(hidden, self.fc1.weight[:, :d], self.fc1.bias)  # (B, d)
        from_outputs = F.linear(encoder_outputs, self.fc1.weight[:, d:])  # (B, m, d)
        scores = (from_hidden[:, None] + from_outputs).tanh() @ self.fc2.weight[0]""",
        ),
    ),
    edited_variant(
        "AdditiveAttention",
        "chapter 3's softmax trick, einsum",
        (_SCORES, 'scores = torch.einsum("bmd,d->bm", self.fc1(pairs).tanh(), self.fc2.weight.squeeze(0))'),
        (_WEIGHTS, "return torch.softmax(torch.where(mask, scores, lowest), 1) * mask"),
    ),
    edited_variant(
        "AdditiveAttention",
        "layers made in the other order, a module for the tanh",
        (f"{_FC1}\n        {_FC2}", f"{_FC2}\n        {_FC1}\n        self.bend = nn.Tanh()"),
        (_SCORES, "scores = self.fc2(self.bend(self.fc1(pairs)))[..., 0]"),
    ),
]

# ---- GRUDecoder

_EMBED = "vector = self.dropout(self.embedding(token))  # (B, embed_dim)"
_ATTEND = "weights = self.attention(hidden, encoder_outputs, mask)  # (B, m)"
_CONTEXT = "context = (weights.unsqueeze(1) @ encoder_outputs).squeeze(1)  # (B, 2 * encoder_hidden)"
_CELL = "hidden = self.gru(torch.cat([vector, context], dim=-1), hidden)"
_LOGITS = "logits = self.fc(torch.cat([hidden, context, vector], dim=-1))"
_STEP = "return logits, hidden, weights"


def _decoder(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("GRUDecoder", title, says, *edits)


_DECODER_MUTANTS = [
    _decoder("nothing returned", "is there a `return`?", (_STEP, "result = logits, hidden, weights")),
    _decoder("no weights returned", "return 3 things", (_STEP, "return logits, hidden")),
    _decoder("another order", "the results are in another order", (_STEP, "return logits, weights, hidden")),
    _decoder(
        "attends with the new state",
        "the state after the GRU",
        (_STEP, "return logits, hidden, self.attention(hidden, encoder_outputs, mask)"),
    ),
    _decoder("mask lost", "the mask does not reach", (_ATTEND, _ATTEND.replace(", mask)", ", torch.ones_like(mask))"))),
    _decoder("mask turned round", "with the wrong sign", (_ATTEND, _ATTEND.replace(", mask)", ", ~mask)"))),
    _decoder("mask forgotten", "missing 1 required positional argument", (_ATTEND, _ATTEND.replace(", mask)", ")"))),
    _decoder("plain mean", "plain mean", (_CONTEXT, "context = encoder_outputs.mean(dim=1)")),
    _decoder("plain sum", "plain sum", (_CONTEXT, "context = encoder_outputs.sum(dim=1)")),
    _decoder(
        "best output only",
        "with the largest weight",
        (_CONTEXT, "context = encoder_outputs[torch.arange(len(token)), weights.argmax(-1)]"),
    ),
    _decoder("last output", "last output", (_CONTEXT, "context = encoder_outputs[:, -1]")),
    _decoder(
        "averaged again",
        "their sum is the average already",
        (_CONTEXT, "context = (weights.unsqueeze(-1) * encoder_outputs).mean(dim=1)"),
    ),
    _decoder(
        "first weights for all",
        "the weights of the first sentence",
        (_CONTEXT, "context = (weights[:1].unsqueeze(1) @ encoder_outputs).squeeze(1)"),
    ),
    _decoder(
        "first outputs for all", "outputs of the first sentence", (_CONTEXT, "context = weights @ encoder_outputs[0]")
    ),
    _decoder(
        "softmax twice",
        "second softmax",
        (_CONTEXT, "context = (weights.softmax(-1).unsqueeze(1) @ encoder_outputs).squeeze(1)"),
    ),
    _decoder(
        "context before vector",
        "the context comes before the token vector",
        (_CELL, _CELL.replace("[vector, context]", "[context, vector]")),
    ),
    _decoder("no memory", "starts from zeros", (_CELL, "hidden = self.gru(torch.cat([vector, context], dim=-1))")),
    _decoder(
        "old state returned",
        "the state that came in",
        (_CELL, _CELL.replace("hidden =", "new =")),
        (_LOGITS, _LOGITS.replace("[hidden", "[new")),
    ),
    _decoder(
        "old state into fc",
        "`fc` sees the old state",
        (_CELL, "old = hidden\n        " + _CELL),
        (_LOGITS, _LOGITS.replace("[hidden", "[old")),
    ),
    _decoder(
        "another order into fc",
        "[new hidden; context; vector], in this order",
        (_LOGITS, _LOGITS.replace("context, vector", "vector, context")),
    ),
    _decoder(
        "vector first into fc",
        "[new hidden; context; vector], in this order",
        (_LOGITS, "logits = self.fc(torch.cat([vector, hidden, context], dim=-1))"),
    ),
    _decoder(
        "context first into fc",
        "[new hidden; context; vector], in this order",
        (_LOGITS, "logits = self.fc(torch.cat([context, hidden, vector], dim=-1))"),
    ),
    _decoder(
        "fc sees the state alone",
        "`fc` is nn.Linear(decoder_hidden + 2",
        ("nn.Linear(decoder_hidden + context_dim + embed_dim, vocab_size)", "nn.Linear(decoder_hidden, vocab_size)"),
        (_LOGITS, "logits = self.fc(hidden)"),
    ),
    _decoder(
        "gru sees the vector alone",
        "`gru` is nn.GRUCell",
        ("nn.GRUCell(embed_dim + context_dim,", "nn.GRUCell(embed_dim,"),
        (_CELL, "hidden = self.gru(vector, hidden)"),
    ),
    _decoder("a whole GRU", "`gru` is nn.GRUCell", ("nn.GRUCell(", "nn.GRU(")),
    _decoder("an RNN cell", "`gru` is nn.GRUCell", ("nn.GRUCell(", "nn.RNNCell(")),
    _decoder(
        "attention for the wrong sizes",
        "`attention` is AdditiveAttention",
        ("AdditiveAttention(encoder_hidden, decoder_hidden)", "AdditiveAttention(context_dim, decoder_hidden)"),
    ),
    _decoder("softmax", "probabilities are returned", (_STEP, "return logits.softmax(-1), hidden, weights")),
    _decoder(
        "log-softmax", "log-probabilities are returned", (_STEP, "return logits.log_softmax(-1), hidden, weights")
    ),
    _decoder("tanh at the end", "a tanh follows", (_STEP, "return logits.tanh(), hidden, weights")),
    _decoder("weights as a row", "the weights are (B, m)", (_STEP, "return logits, hidden, weights.unsqueeze(1)")),
    _decoder(
        "state unsqueezed", "the state is (B, decoder_hidden)", (_STEP, "return logits, hidden.unsqueeze(0), weights")
    ),
    _decoder("no dropout", "`dropout` has no effect", (_EMBED, "vector = self.embedding(token)")),
    _decoder(
        "dropout in evaluation",
        "still active in evaluation",
        ("nn.Dropout(dropout)", "lambda x: F.dropout(x, dropout)"),
    ),
    _decoder("two vectors", "before the dropout", (_LOGITS, _LOGITS.replace("vector]", "self.embedding(token)]"))),
    _decoder(
        "weights detached",
        "the weights are cut off",
        (_CONTEXT, "context = (weights.detach().unsqueeze(1) @ encoder_outputs).squeeze(1)"),
    ),
    _decoder(
        "context detached",
        "no gradient reaches `encoder_outputs`",
        (_CONTEXT, "context = (weights.unsqueeze(1) @ encoder_outputs).squeeze(1).detach()"),
    ),
    _decoder("all detached", "cut off from the graph", (_STEP, "return logits.detach(), hidden.detach(), weights")),
    _decoder(
        "state changed",
        "`hidden` was changed in place",
        (
            _CELL,
            """new = self.gru(torch.cat([vector, context], dim=-1), hidden)
        hidden.detach().copy_(new)
        hidden = new""",
        ),
    ),
]
_DECODER_VARIANTS = [
    edited_variant(
        "GRUDecoder", "einsum", (_CONTEXT, 'context = torch.einsum("bm,bmd->bd", weights, encoder_outputs)')
    ),
    edited_variant(
        "GRUDecoder",
        "bmm, cat of tuples, a helper",
        (_CONTEXT, "context = torch.bmm(weights[:, None], encoder_outputs)[:, 0]"),
        (_CELL, "hidden = self.gru(torch.cat((vector, context), 1), hidden)"),
        (
            _STEP,
            """return self.out(hidden, context, vector), hidden, weights

    def out(self, *parts):
        return self.fc(torch.cat(parts, 1))""",
        ),
        (_LOGITS, ""),
    ),
    edited_variant(
        "GRUDecoder",
        "broadcasting, modules in another order, a list returned",
        (
            "        context_dim = 2 * encoder_hidden\n",
            """        context_dim = 2 * encoder_hidden
        self.dropout = nn.Dropout(p=dropout)
        self.vocab_size = vocab_size
""",
        ),
        ("\n        self.dropout = nn.Dropout(dropout)", ""),
        (_CONTEXT, "context = (weights.unsqueeze(2) * encoder_outputs).sum(dim=1)"),
        (_STEP, "return [logits, hidden, weights]"),
    ),
    edited_variant(
        "GRUDecoder",
        "a sequence of length one",
        (_EMBED, "vector = self.dropout(self.embedding(token.unsqueeze(1))).squeeze(1)"),
        (_CONTEXT, "context = (encoder_outputs.mT @ weights.unsqueeze(2)).squeeze(2)"),
    ),
]

# ---- Seq2Seq

_PARTS = "self.encoder = encoder\n        self.decoder = decoder"
_READ = "outputs, hidden = self.encoder(source, lengths)"
_REAL = "mask = torch.arange(source.shape[1], device=source.device) < lengths.unsqueeze(1)  # (B, m)"
_FIRST = "token = target[:, 0]"
_LOOP = "for t in range(1, target.shape[1]):"
_WRITE = "logits, hidden, _ = self.decoder(token, hidden, outputs, mask)"
_CHOICE = "use_truth = torch.rand((), generator=generator) < teacher_forcing"
_NEXT = "token = target[:, t] if use_truth else logits.argmax(dim=-1)"
_STACK = "return torch.stack(steps, dim=1)"


def _seq2seq(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("Seq2Seq", title, says, *edits)


_SEQ2SEQ_MUTANTS = [
    _seq2seq("nothing returned", "is there a `return`?", (_STACK, _STACK.removeprefix("return "))),
    _seq2seq("choice reversed", "the choice is reversed", (_CHOICE, _CHOICE.replace("<", ">="))),
    _seq2seq("always the truth", "the true token is always fed", (_NEXT, "token = target[:, t]")),
    _seq2seq("always its own", "the decoder's own is always fed", (_NEXT, "token = logits.argmax(dim=-1)")),
    _seq2seq("from position 0", "position 0 is scored", (_LOOP, "for t in range(target.shape[1]):")),
    _seq2seq(
        "from position 0, first cut off",
        "position 0 is scored",
        (_LOOP, "for t in range(target.shape[1]):"),
        (_STACK, _STACK + "[:, 1:]"),
    ),
    _seq2seq("one step short", "position 0 is scored", (_LOOP, "for t in range(target.shape[1] - 1):")),
    _seq2seq(
        "zeros in front", "logits of zeros", (_STACK, "steps.insert(0, torch.zeros_like(steps[0]))\n        " + _STACK)
    ),
    _seq2seq(
        "the answer is fed",
        "only to copy",
        (
            _WRITE,
            "token = target[:, t] if torch.rand((), generator=generator) < teacher_forcing else token\n            "
            + _WRITE,
        ),
        (_CHOICE, ""),
        (_NEXT, "token = logits.argmax(dim=-1)"),
    ),
    _seq2seq(
        "state not carried", "the state is not handed", (_WRITE, _WRITE.replace("logits, hidden, _", "logits, _, _"))
    ),
    _seq2seq("mask all True", "the mask is all True", (_REAL, "mask = torch.ones_like(source, dtype=torch.bool)")),
    _seq2seq("mask by token", "made of `source != 1`", (_REAL, "mask = source != 1")),
    _seq2seq("mask turned round", "the mask has the wrong sign", (_REAL, _REAL.replace("<", ">="))),
    _seq2seq("mask one too long", "positions 0 to length - 1", (_REAL, _REAL.replace("<", "<="))),
    _seq2seq(
        "mask one too short",
        "misses the last real token",
        (_REAL, _REAL.replace("lengths.unsqueeze(1)", "(lengths - 1).unsqueeze(1)")),
    ),
    _seq2seq(
        "first mask for all",
        "mask of the first sentence",
        (_REAL, "mask = (torch.arange(source.shape[1]) < lengths[0]).expand_as(source)"),
    ),
    _seq2seq("mask on the CPU", "on a GPU", (_REAL, _REAL.replace(", device=source.device", ""))),
    _seq2seq("starts from zeros", "starts from zeros", (_READ, _READ + "\n        hidden = torch.zeros_like(hidden)")),
    _seq2seq("stacked first", "(n - 1, B, vocab_size)", (_STACK, "return torch.stack(steps)")),
    _seq2seq("stacked last", "(B, vocab_size, n - 1)", (_STACK, "return torch.stack(steps, dim=-1)")),
    _seq2seq("put end to end", "end to end", (_STACK, "return torch.cat(steps)")),
    _seq2seq("put side by side", "side by side", (_STACK, "return torch.cat(steps, dim=1)")),
    _seq2seq("last step only", "only the last step", (_STACK, "return logits")),
    _seq2seq("tokens", "tokens are returned", (_STACK, _STACK + ".argmax(dim=-1)")),
    _seq2seq("log-probabilities", "log-probabilities", (_STACK, _STACK + ".log_softmax(dim=-1)")),
    _seq2seq("argmin", "least likely", (_NEXT, _NEXT.replace("argmax", "argmin"))),
    _seq2seq("best over the batch", "over the batch", (_NEXT, _NEXT.replace("dim=-1", "dim=0"))),
    _seq2seq("best of all", "one number for the whole batch", (_NEXT, _NEXT.replace("dim=-1", ""))),
    _seq2seq("a sentence for the first tokens", "a row of `target`", (_FIRST, "token = target[0]")),
    _seq2seq(
        "a sentence for the true tokens", "a row of `target`", (_NEXT, _NEXT.replace("target[:, t]", "target[t]"))
    ),
    _seq2seq(
        "sentences for tokens",
        "a row of `target`",
        (_FIRST, "token = target[0]"),
        (_LOOP, "for t in range(1, target.shape[0]):"),
        (_NEXT, _NEXT.replace("target[:, t]", "target[t]")),
    ),
    _seq2seq(
        "generator ignored", "pass `generator=generator`", (_CHOICE, _CHOICE.replace(", generator=generator", ""))
    ),
    _seq2seq(
        "Python's chance",
        "pass `generator=generator`",
        (_FIRST, _FIRST + "\n        import random"),
        (_CHOICE, "use_truth = random.random() < teacher_forcing"),
    ),
    _seq2seq(
        "fixed seed",
        "is there a fixed seed inside",
        (_FIRST, _FIRST + "\n        generator = generator or torch.Generator().manual_seed(0)"),
    ),
    _seq2seq(
        "half and half",
        "the true token was fed in",
        (_CHOICE, _CHOICE.replace("teacher_forcing", "(1.0 if teacher_forcing == 1 else 0.5 * bool(teacher_forcing))")),
    ),
    _seq2seq(
        "one choice for all",
        "choose anew at each step",
        (_FIRST, _FIRST + "\n        " + _CHOICE),
        ("            " + _CHOICE + "\n", ""),
    ),
    _seq2seq(
        "encoder detached",
        "no gradient reaches the parameter `encoder.table`",
        (_READ, _READ + "\n        outputs, hidden = outputs.detach(), hidden.detach()"),
    ),
    _seq2seq(
        "state detached", "the gradient of the parameter", (_WRITE, _WRITE + "\n            hidden = hidden.detach()")
    ),
    _seq2seq(
        "parts in a list",
        "the attribute `encoder` is missing",
        (_PARTS, "self.parts = [encoder, decoder]"),
        ("self.encoder(", "self.parts[0]("),
        ("self.decoder(", "self.parts[1]("),
    ),
    _seq2seq(
        "target changed",
        "`target` was changed in place",
        (
            _NEXT,
            "if not use_truth:\n                target[:, t] = logits.argmax(dim=-1)\n            token = target[:, t]",
        ),
    ),
    _seq2seq(
        "lengths forgotten", "missing 1 required positional argument", (_READ, "outputs, hidden = self.encoder(source)")
    ),
]
_SEQ2SEQ_VARIANTS = [
    edited_variant(
        "Seq2Seq",
        "a choice for each sentence at each step",
        (_CHOICE, "use_truth = torch.rand(len(target), generator=generator).to(target.device) < teacher_forcing"),
        (_NEXT, "token = torch.where(use_truth, target[:, t], logits.argmax(dim=-1))"),
    ),
    edited_variant(
        "Seq2Seq",
        "all choices first, a tensor filled",
        (
            _FIRST,
            f"""n = target.shape[1]
        chosen = (torch.rand(n, generator=generator) < teacher_forcing).tolist()
        {_FIRST}""",
        ),
        (_CHOICE + "\n            ", ""),
        ("if use_truth", "if chosen[t]"),
        (
            _STACK,
            """result = logits.new_empty(len(target), n - 1, logits.shape[-1])
        for t, step in enumerate(steps):
            result[:, t] = step
        return result""",
        ),
    ),
    edited_variant(
        "Seq2Seq",
        "cat of steps, bernoulli, max, positions counted up",
        (_REAL, "mask = torch.ones_like(source).cumsum(1) <= lengths[:, None]"),
        (_CHOICE, "use_truth = torch.bernoulli(torch.tensor(float(teacher_forcing)), generator=generator).item() == 1"),
        (_NEXT, "token = target[:, t] if use_truth else logits.max(1)[1]"),
        ("steps.append(logits)", "steps.append(logits.unsqueeze(1))"),
        (_STACK, "return torch.cat(steps, 1)"),
    ),
    edited_variant(
        "Seq2Seq",
        "targets without their first, the guess made each time",
        (_LOOP, "for truth in target.unbind(1)[1:]:"),
        (
            _NEXT,
            """guess = logits.topk(1).indices.squeeze(1)
            token = truth if bool(use_truth) else guess.detach()""",
        ),
    ),
]

# ---- fix_teacher_forcing

_FVECTOR = "vector = decoder.dropout(decoder.embedding(token)).unsqueeze(0)  # (1, B, embed_dim)"
_FCONTEXT = "context = context.permute(1, 0, 2)"
_FCELL = "hidden = decoder.gru(torch.cat([vector, context], dim=-1).squeeze(0), hidden)"
_FLOGITS = "logits = decoder.fc(torch.cat([hidden.unsqueeze(0), context, vector], dim=-1)).squeeze(0)"
_FGUESS = "guess = logits.argmax(dim=-1)"
_FCHOICE = "use_truth = torch.rand((), generator=generator) < teacher_forcing"
_FNEXT = "token = target[:, t] if use_truth else guess"
_FWEIGHTS = "weights = decoder.attention(hidden, encoder_outputs, mask)"


def _fix(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("fix_teacher_forcing", title, says, *edits)


_FIX_MUTANTS = [
    _fix("nothing returned", "is there a `return`?", (_STACK, _STACK.removeprefix("return "))),
    _fix("choice left reversed", "the choice is reversed", (_FNEXT, "token = guess if use_truth else target[:, t]")),
    _fix("guess left unassigned", "'best' is not defined", (_FNEXT, "token = target[:, t] if use_truth else best")),
    _fix(
        "cat left on a tensor",
        "has no attribute 'cat'",
        (_FCELL, _FCELL.replace("torch.cat([vector,", "vector.cat([vector,")),
    ),
    _fix("permuted context left thrown away", "Sizes of tensors must match", (_FCONTEXT, "context.permute(1, 0, 2)")),
    _fix("position 0 left scored", "position 0 is scored", (_LOOP, "for t in range(target.shape[1]):")),
    _fix(
        "position 0 scored, then cut off",
        "position 0 is scored",
        (_LOOP, "for t in range(target.shape[1]):"),
        (_STACK, _STACK + "[:, 1:]"),
    ),
    _fix("one step short", "position 0 is scored", (_LOOP, "for t in range(target.shape[1] - 1):")),
    _fix("always the truth", "the true token is always fed", (_FNEXT, "token = target[:, t]")),
    _fix("always its own", "the decoder's own is always fed", (_FNEXT, "token = guess")),
    _fix("reshaped instead of squeezed", "stack them along dimension 1", (_STACK, "return torch.stack(steps)")),
    _fix("argmin", "least likely", (_FGUESS, "guess = logits.argmin(dim=-1)")),
    _fix("guess over the batch", "over the batch", (_FGUESS, "guess = logits.argmax(dim=0)")),
    _fix("a sentence for the true tokens", "a row of `target`", (_FNEXT, _FNEXT.replace("target[:, t]", "target[t]"))),
    _fix(
        "dropout left out",
        "the decoder's dropout is left out",
        (_FVECTOR, "vector = decoder.embedding(token).unsqueeze(0)"),
    ),
    _fix(
        "state not carried",
        "the state is not handed",
        (_FCELL, _FCELL.replace("hidden = decoder", "state = decoder")),
        (_FLOGITS, _FLOGITS.replace("[hidden.", "[state.")),
    ),
    _fix("generator ignored", "pass `generator=generator`", (_FCHOICE, _FCHOICE.replace(", generator=generator", ""))),
    _fix(
        "one choice for all",
        "choose anew at each step",
        (_FIRST, _FIRST + "\n    " + _FCHOICE),
        ("        " + _FCHOICE + "\n", ""),
    ),
    _fix(
        "threshold fixed",
        "the true token was fed in",
        (
            _FCHOICE,
            _FCHOICE.replace("teacher_forcing", "(1.0 if teacher_forcing == 1 else 0.5 * bool(teacher_forcing))"),
        ),
    ),
    _fix("detached", "cut off from the graph", (_STACK, _STACK + ".detach()")),
    _fix("hidden detached", "the gradient with respect to", (_FGUESS, _FGUESS + "\n        hidden = hidden.detach()")),
]
_FIX_VARIANTS = [
    variant(
        "fix_teacher_forcing",
        "the decoder's own step",
        """
        def fix_teacher_forcing(
            decoder, hidden, encoder_outputs, mask, target, teacher_forcing=0.5, generator=None
        ):
            token, steps = target[:, 0], []
            for t in range(1, target.shape[1]):
                logits, hidden, _ = decoder(token, hidden, encoder_outputs, mask)
                steps.append(logits)
                if torch.rand(1, generator=generator).item() < teacher_forcing:
                    token = target[:, t]
                else:
                    token = logits.argmax(1)
            return torch.stack(steps, 1)
        """,
    ),
    edited_variant(
        "fix_teacher_forcing",
        "no dimension for the time",
        (_FVECTOR, "vector = decoder.dropout(decoder.embedding(token))"),
        (_FCONTEXT, "context = context.squeeze(1)"),
        (_FCELL, "hidden = decoder.gru(torch.cat([vector, context], dim=-1), hidden)"),
        (_FLOGITS, "logits = decoder.fc(torch.cat([hidden, context, vector], dim=-1))"),
    ),
    edited_variant(
        "fix_teacher_forcing",
        "transposed, positions shifted by one",
        (_FCONTEXT, "context = context.transpose(0, 1)"),
        (_LOOP, "for t in range(target.shape[1] - 1):"),
        (_FNEXT, "token = target[:, t + 1] if use_truth else guess"),
    ),
    edited_variant(
        "fix_teacher_forcing",
        "a tensor filled from position 1 on",
        (_FIRST, _FIRST + "\n    n, filled = target.shape[1], None"),
        (
            "steps.append(logits)",
            """if filled is None:
            filled = logits.new_zeros(len(logits), n, logits.shape[1])
        filled[:, t] = logits""",
        ),
        (_STACK, "return filled[:, 1:]"),
    ),
]

MUTANTS = [
    *_ENCODER_MUTANTS,
    *_ATTENTION_MUTANTS,
    *_DECODER_MUTANTS,
    *_SEQ2SEQ_MUTANTS,
    *_FIX_MUTANTS,
    *forging_answers(
        classes=["GRUEncoder", "AdditiveAttention", "GRUDecoder", "Seq2Seq"], functions=["fix_teacher_forcing"]
    ),
]
VARIANTS = [*_ENCODER_VARIANTS, *_ATTENTION_VARIANTS, *_DECODER_VARIANTS, *_SEQ2SEQ_VARIANTS, *_FIX_VARIANTS]
