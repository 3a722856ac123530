"""Chapter 08: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import edit, edited_variant, edits, forger, mutants, variant
from autograder.checks import Common, Unexplained
from checks.forgers import forging_answers, forging_dropout
from checks.seq2seq_attention.mistakes import (
    AdditiveAttention,
    GRUDecoder,
    GRUEncoder,
    Seq2Seq,
    check_teacher_forcing,
    effect_of_erasing,
)

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


def _unpacked(then: str = "") -> tuple[tuple[str, str], ...]:
    """Edits that read the sentence together with its padding."""
    return (_PACK, "packed = vectors"), (_UNPACK, "outputs = packed" + then)


def _first_state(value: str) -> tuple[str, str]:
    return _ENCODED, f"return outputs, {value}"


_ENCODER_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_ENCODED, _ENCODED.replace("return", "result ="))),
    ("outputs only", GRUEncoder.NOT_TWO, (_ENCODED, "return outputs")),
    ("not packed", GRUEncoder.READS_PADDING, *_unpacked()),
    (
        "not packed, outputs masked",
        GRUEncoder.ZEROED_AFTERWARDS,
        *_unpacked("\n        outputs = outputs * (torch.arange(tokens.shape[1]) < lengths[:, None])[..., None]"),
    ),
    ("no total_length", GRUEncoder.NO_TOTAL_LENGTH, (_UNPACK, _UNPACK.replace(", total_length=tokens.shape[1]", ""))),
    ("padding is token 1", GRUEncoder.PADDING_BY_NUMBER, ("lengths.cpu()", "(tokens != 1).sum(1)")),
    ("one token lost", GRUEncoder.TOKEN_LOST, ("lengths.cpu()", "(lengths - 1).clamp(1, tokens.shape[1]).cpu()")),
    ("sorted lengths expected", Unexplained.RAISED, (", enforce_sorted=False", "")),
    ("packed time first", GRUEncoder.PACKED_TIME_FIRST, (_PACK, _PACK.replace("batch_first=True, ", ""))),
    ("unpacked time first", GRUEncoder.UNPACKED_TIME_FIRST, (_UNPACK, _UNPACK.replace("batch_first=True, ", ""))),
    ("first length for all", GRUEncoder.FIRST_LENGTH, ("lengths.cpu()", "lengths[:1].expand_as(lengths).cpu()")),
    ("one direction", GRUEncoder.ONE_DIRECTION, (", bidirectional=True", "")),
    ("an RNN", GRUEncoder.OTHER_GRU, ("nn.GRU(", "nn.RNN(")),
    ("an LSTM", GRUEncoder.OTHER_GRU, ("nn.GRU(", "nn.LSTM(")),
    ("two layers", GRUEncoder.TWO_LAYERS, ("encoder_hidden, batch_first", "encoder_hidden, 2, batch_first")),
    ("hidden sizes exchanged", GRUEncoder.OTHER_GRU, (_GRU, _GRU.replace("encoder", "decoder"))),
    ("fc for one direction", GRUEncoder.FC, (_FC, _FC.replace("2 * ", ""))),
    (
        "embedding's sizes exchanged",
        GRUEncoder.EMBEDDING,
        ("nn.Embedding(vocab_size, embed_dim)", "nn.Embedding(embed_dim, vocab_size)"),
    ),
    ("sigmoid", GRUEncoder.SIGMOID, (_ENCODED, _ENCODED.replace("tanh", "sigmoid"))),
    ("backward twice", GRUEncoder.BACKWARD_TWICE, ("[last[0], last[1]]", "[last[1], last[1]]")),
    (
        "backward outputs first",
        GRUEncoder.BACKWARD_OUTPUTS_FIRST,
        (_ENCODED, "outputs = torch.cat(outputs.chunk(2, dim=-1)[::-1], dim=-1)\n        " + _ENCODED),
    ),
    ("no tanh", GRUEncoder.NO_TANH, _first_state("self.fc(torch.cat([last[0], last[1]], dim=-1))")),
    ("ReLU", GRUEncoder.RELU, (_ENCODED, _ENCODED.replace("tanh", "relu"))),
    (
        "tanh before fc",
        GRUEncoder.TANH_BEFORE,
        _first_state("self.fc(torch.tanh(torch.cat([last[0], last[1]], dim=-1)))"),
    ),
    ("backward first", GRUEncoder.BACKWARD_FIRST, ("[last[0], last[1]]", "[last[1], last[0]]")),
    ("forward twice", GRUEncoder.FORWARD_TWICE, ("[last[0], last[1]]", "[last[0], last[0]]")),
    ("reshaped", GRUEncoder.RESHAPED, ("torch.cat([last[0], last[1]], dim=-1)", "last.reshape(len(tokens), -1)")),
    ("last position", GRUEncoder.LAST_POSITION, ("torch.cat([last[0], last[1]], dim=-1)", "outputs[:, -1]")),
    (
        "last real token",
        GRUEncoder.LAST_TOKEN,
        ("torch.cat([last[0], last[1]], dim=-1)", "outputs[torch.arange(len(tokens)), lengths - 1]"),
    ),
    ("first token", GRUEncoder.FIRST_TOKEN, ("torch.cat([last[0], last[1]], dim=-1)", "outputs[:, 0]")),
    (
        "mean of the outputs",
        GRUEncoder.MEAN,
        ("torch.cat([last[0], last[1]], dim=-1)", "outputs.sum(1) / lengths[:, None].to(outputs.dtype)"),
    ),
    ("fc left out", GRUEncoder.NO_FC, _first_state("torch.tanh(torch.cat([last[0], last[1]], dim=-1))")),
    ("a dimension too many", GRUEncoder.DIMENSION_TOO_MANY, (_ENCODED, _ENCODED + ".unsqueeze(0)")),
    ("exchanged", GRUEncoder.EXCHANGED, (_ENCODED, _ENCODED.replace("outputs, ", "") + ", outputs")),
    ("directions added", GRUEncoder.ADDED, (_ENCODED, "outputs = sum(outputs.chunk(2, dim=-1))\n        " + _ENCODED)),
    ("no dropout", GRUEncoder.NO_DROPOUT, (_VECTORS, "vectors = self.embedding(tokens)")),
    (
        "dropout on the outputs",
        GRUEncoder.DROPOUT_ON_OUTPUTS,
        (_VECTORS, "vectors = self.embedding(tokens)"),
        (_ENCODED, _ENCODED.replace("outputs,", "self.dropout(outputs),")),
    ),
    ("dropout in evaluation", Common.DROPOUT_IN_EVAL, ("nn.Dropout(dropout)", "lambda x: F.dropout(x, dropout)")),
    ("detached", Common.PARAMETER_UNUSED, (_VECTORS, _VECTORS.replace("  #", ".detach()  #"))),
    (
        "tokens changed",
        Common.CHANGED_IN_PLACE,
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


_ATTENTION_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_WEIGHTS, _WEIGHTS.replace("return", "weights ="))),
    ("mask ignored", AdditiveAttention.MASK_IGNORED, (_WEIGHTS, "return scores.softmax(dim=-1)")),
    ("mask turned round", AdditiveAttention.MASK_INVERTED, (_WEIGHTS, _WEIGHTS.replace("~mask", "mask"))),
    ("NaN for an empty row", Common.NAN, (_WEIGHTS, 'return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)')),
    (
        "equal weights for an empty row",
        AdditiveAttention.EMPTY_ROW,
        (_WEIGHTS, "return scores.masked_fill(~mask, lowest).softmax(dim=-1)"),
    ),
    (
        "filled with 0",
        AdditiveAttention.FILLED_WITH_ZERO,
        (_WEIGHTS, "return scores.masked_fill(~mask, 0.0).softmax(dim=-1)"),
    ),
    (
        "filled with a small number",
        AdditiveAttention.FILLED_WITH_ZERO,
        (_WEIGHTS, "return scores.masked_fill(~mask, 1e-12).softmax(dim=-1)"),
    ),
    ("filled with -1e4", AdditiveAttention.NOT_LOW_ENOUGH, (_WEIGHTS, _WEIGHTS.replace("lowest", "-1e4"))),
    ("masked afterwards", AdditiveAttention.MASKED_AFTERWARDS, (_WEIGHTS, "return scores.softmax(dim=-1) * mask")),
    (
        "first mask for all",
        AdditiveAttention.FIRST_MASK,
        (_WEIGHTS, "mask = mask[:1].expand_as(mask)\n        " + _WEIGHTS),
    ),
    ("no tanh", AdditiveAttention.NO_TANH, (_SCORES, "scores = self.fc2(self.fc1(pairs)).squeeze(-1)")),
    ("ReLU", AdditiveAttention.RELU, (_SCORES, _SCORES.replace("tanh", "relu"))),
    ("sigmoid for the tanh", AdditiveAttention.SIGMOID, (_SCORES, _SCORES.replace("tanh", "sigmoid"))),
    (
        "a second tanh",
        AdditiveAttention.SECOND_TANH,
        (_SCORES, "scores = torch.tanh(self.fc2(torch.tanh(self.fc1(pairs)))).squeeze(-1)"),
    ),
    (
        "masked afterwards, divided by what is left",
        AdditiveAttention.RENORMALISED,
        (
            _WEIGHTS,
            "weights = scores.softmax(dim=-1) * mask\n"
            "        return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)",
        ),
    ),
    (
        "padding not quite 0",
        AdditiveAttention.PADDING_NOT_ZERO,
        (_WEIGHTS, "return (" + _WEIGHTS.removeprefix("return ") + " + 1e-9 * ~mask)"),
    ),
    ("squeezed whatever the sizes", Unexplained.SHAPE, (_SCORES, _SCORES.replace("squeeze(-1)", "squeeze()"))),
    (
        "tanh at the end",
        AdditiveAttention.TANH_AFTER,
        (_SCORES, "scores = torch.tanh(self.fc2(self.fc1(pairs))).squeeze(-1)"),
    ),
    (
        "output first",
        AdditiveAttention.OUTPUT_FIRST,
        (_PAIRS, "pairs = torch.cat([encoder_outputs, hidden.unsqueeze(1).expand(-1, m, -1)], dim=-1)"),
    ),
    ("no softmax", AdditiveAttention.NO_SOFTMAX, (_WEIGHTS, "return scores")),
    ("masked, no softmax", AdditiveAttention.NO_SOFTMAX, (_WEIGHTS, "return scores.masked_fill(~mask, 0.0)")),
    ("softmax over the batch", AdditiveAttention.SOFTMAX_OVER_BATCH, (_WEIGHTS, _WEIGHTS.replace("dim=-1", "dim=0"))),
    (
        "softmax over one number",
        AdditiveAttention.SOFTMAX_OVER_ONE,
        (_SCORES, _SCORES.replace(".squeeze(-1)", "")),
        (_WEIGHTS, "return scores.softmax(dim=-1).squeeze(-1).masked_fill(~mask, 0.0)"),
    ),
    ("not squeezed", AdditiveAttention.COLUMN, (_WEIGHTS, _WEIGHTS + ".unsqueeze(-1)")),
    ("a row", AdditiveAttention.ROW, (_WEIGHTS, _WEIGHTS + ".unsqueeze(1)")),
    ("log-softmax", AdditiveAttention.LOG_SOFTMAX, (_WEIGHTS, _WEIGHTS.replace("softmax", "log_softmax"))),
    ("sigmoid", AdditiveAttention.SIGMOID_WEIGHTS, (_WEIGHTS, "return scores.sigmoid() * mask")),
    (
        "scaled",
        AdditiveAttention.SCALED,
        (_WEIGHTS, "scores = scores / self.fc1.out_features**0.5\n        " + _WEIGHTS),
    ),
    (
        "states mixed",
        AdditiveAttention.STATES_MIXED,
        (_PAIRS, "pairs = torch.cat([hidden.repeat(m, 1).view(-1, m, hidden.shape[1]), encoder_outputs], dim=-1)"),
    ),
    (
        "first state for all",
        AdditiveAttention.FIRST_STATE,
        (_PAIRS, "hidden = hidden[:1].expand_as(hidden)\n        " + _PAIRS),
    ),
    ("first weights for all", AdditiveAttention.FIRST_WEIGHTS, (_WEIGHTS, _WEIGHTS + "[:1].expand_as(mask)")),
    (
        "state not used",
        AdditiveAttention.STATE_UNUSED,
        (_PAIRS, "hidden = torch.zeros_like(hidden)\n        " + _PAIRS),
    ),
    ("bias in fc2", AdditiveAttention.BIAS, (_FC2, "self.fc2 = nn.Linear(decoder_hidden, 1)")),
    ("fc2 too wide", AdditiveAttention.FC2, (_FC2, "self.fc2 = nn.Linear(decoder_hidden, decoder_hidden, bias=False)")),
    ("one direction", AdditiveAttention.FC1, (_FC1, _FC1.replace("2 * ", ""))),
    ("detached", Common.CUT_OFF, (_WEIGHTS, _WEIGHTS + ".detach()")),
    (
        "outputs detached",
        Common.INPUT_CUT_OFF,
        (_PAIRS, _PAIRS.replace("encoder_outputs]", "encoder_outputs.detach()]")),
    ),
    ("float32 only", Common.WRONG_DTYPE, (_WEIGHTS, _WEIGHTS + ".float()")),
    ("made on the CPU", Common.MADE_ON_CPU, (_WEIGHTS, _WEIGHTS + " + torch.zeros(m, dtype=scores.dtype)")),
    (
        "outputs changed",
        Common.CHANGED_IN_PLACE,
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


_DECODER_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_STEP, "result = logits, hidden, weights")),
    ("no weights returned", GRUDecoder.NOT_THREE, (_STEP, "return logits, hidden")),
    ("another order", GRUDecoder.ORDER, (_STEP, "return logits, weights, hidden")),
    (
        "attends with the new state",
        GRUDecoder.LOOKS_TOO_LATE,
        (_STEP, "return logits, hidden, self.attention(hidden, encoder_outputs, mask)"),
    ),
    ("mask lost", GRUDecoder.MASK_LOST, (_ATTEND, _ATTEND.replace(", mask)", ", torch.ones_like(mask))"))),
    ("mask turned round", GRUDecoder.MASK_INVERTED, (_ATTEND, _ATTEND.replace(", mask)", ", ~mask)"))),
    ("mask forgotten", Unexplained.RAISED, (_ATTEND, _ATTEND.replace(", mask)", ")"))),
    (
        "squeezed whatever the sizes",
        GRUDecoder.SQUEEZED,
        (_CONTEXT, "context = (weights.unsqueeze(1) @ encoder_outputs).squeeze()"),
    ),
    (
        "embedding's sizes exchanged",
        GRUDecoder.EMBEDDING,
        ("nn.Embedding(vocab_size, embed_dim)", "nn.Embedding(embed_dim, vocab_size)"),
    ),
    ("ReLU at the end", GRUDecoder.RELU, (_STEP, "return logits.relu(), hidden, weights")),
    ("logits unsqueezed", GRUDecoder.LOGITS_SHAPE, (_STEP, "return logits.unsqueeze(1), hidden, weights")),
    ("plain mean", GRUDecoder.PLAIN_MEAN, (_CONTEXT, "context = encoder_outputs.mean(dim=1)")),
    ("plain sum", GRUDecoder.PLAIN_SUM, (_CONTEXT, "context = encoder_outputs.sum(dim=1)")),
    (
        "best output only",
        GRUDecoder.BEST_ONLY,
        (_CONTEXT, "context = encoder_outputs[torch.arange(len(token)), weights.argmax(-1)]"),
    ),
    ("last output", GRUDecoder.LAST_OUTPUT, (_CONTEXT, "context = encoder_outputs[:, -1]")),
    (
        "averaged again",
        GRUDecoder.AVERAGED,
        (_CONTEXT, "context = (weights.unsqueeze(-1) * encoder_outputs).mean(dim=1)"),
    ),
    (
        "first weights for all",
        GRUDecoder.FIRST_WEIGHTS,
        (_CONTEXT, "context = (weights[:1].unsqueeze(1) @ encoder_outputs).squeeze(1)"),
    ),
    ("first outputs for all", GRUDecoder.FIRST_OUTPUTS, (_CONTEXT, "context = weights @ encoder_outputs[0]")),
    (
        "softmax twice",
        GRUDecoder.SOFTMAX_TWICE,
        (_CONTEXT, "context = (weights.softmax(-1).unsqueeze(1) @ encoder_outputs).squeeze(1)"),
    ),
    (
        "context before vector",
        GRUDecoder.CONTEXT_FIRST,
        (_CELL, _CELL.replace("[vector, context]", "[context, vector]")),
    ),
    ("no memory", GRUDecoder.NO_MEMORY, (_CELL, "hidden = self.gru(torch.cat([vector, context], dim=-1))")),
    (
        "old state returned",
        GRUDecoder.OLD_STATE_RETURNED,
        (_CELL, _CELL.replace("hidden =", "new =")),
        (_LOGITS, _LOGITS.replace("[hidden", "[new")),
    ),
    (
        "old state into fc",
        GRUDecoder.OLD_STATE_SPOKEN,
        (_CELL, "old = hidden\n        " + _CELL),
        (_LOGITS, _LOGITS.replace("[hidden", "[old")),
    ),
    ("another order into fc", GRUDecoder.FC_ORDER, (_LOGITS, _LOGITS.replace("context, vector", "vector, context"))),
    (
        "vector first into fc",
        GRUDecoder.FC_ORDER,
        (_LOGITS, "logits = self.fc(torch.cat([vector, hidden, context], dim=-1))"),
    ),
    (
        "context first into fc",
        GRUDecoder.FC_ORDER,
        (_LOGITS, "logits = self.fc(torch.cat([context, hidden, vector], dim=-1))"),
    ),
    (
        "fc sees the state alone",
        GRUDecoder.FC,
        ("nn.Linear(decoder_hidden + context_dim + embed_dim, vocab_size)", "nn.Linear(decoder_hidden, vocab_size)"),
        (_LOGITS, "logits = self.fc(hidden)"),
    ),
    (
        "gru sees the vector alone",
        GRUDecoder.GRU,
        ("nn.GRUCell(embed_dim + context_dim,", "nn.GRUCell(embed_dim,"),
        (_CELL, "hidden = self.gru(vector, hidden)"),
    ),
    ("a whole GRU", GRUDecoder.GRU, ("nn.GRUCell(", "nn.GRU(")),
    ("an RNN cell", GRUDecoder.GRU, ("nn.GRUCell(", "nn.RNNCell(")),
    (
        "attention for the wrong sizes",
        GRUDecoder.ATTENTION,
        ("AdditiveAttention(encoder_hidden, decoder_hidden)", "AdditiveAttention(context_dim, decoder_hidden)"),
    ),
    ("softmax", GRUDecoder.PROBABILITIES, (_STEP, "return logits.softmax(-1), hidden, weights")),
    ("log-softmax", GRUDecoder.LOG_PROBABILITIES, (_STEP, "return logits.log_softmax(-1), hidden, weights")),
    ("tanh at the end", GRUDecoder.TANH, (_STEP, "return logits.tanh(), hidden, weights")),
    ("weights as a row", GRUDecoder.WEIGHTS_SHAPE, (_STEP, "return logits, hidden, weights.unsqueeze(1)")),
    ("state unsqueezed", GRUDecoder.HIDDEN_SHAPE, (_STEP, "return logits, hidden.unsqueeze(0), weights")),
    ("no dropout", GRUDecoder.NO_DROPOUT, (_EMBED, "vector = self.embedding(token)")),
    ("dropout in evaluation", Common.DROPOUT_IN_EVAL, ("nn.Dropout(dropout)", "lambda x: F.dropout(x, dropout)")),
    ("two vectors", GRUDecoder.VECTOR_BEFORE_DROPOUT, (_LOGITS, _LOGITS.replace("vector]", "self.embedding(token)]"))),
    (
        "weights detached",
        GRUDecoder.WEIGHTS_CUT_OFF,
        (_CONTEXT, "context = (weights.detach().unsqueeze(1) @ encoder_outputs).squeeze(1)"),
    ),
    (
        "context detached",
        Common.INPUT_CUT_OFF,
        (_CONTEXT, "context = (weights.unsqueeze(1) @ encoder_outputs).squeeze(1).detach()"),
    ),
    ("all detached", Common.CUT_OFF, (_STEP, "return logits.detach(), hidden.detach(), weights")),
    (
        "state changed",
        Common.CHANGED_IN_PLACE,
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


_SEQ2SEQ_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_STACK, _STACK.removeprefix("return "))),
    ("choice reversed", Seq2Seq.REVERSED, (_CHOICE, _CHOICE.replace("<", ">="))),
    ("always the truth", Seq2Seq.ALWAYS_TRUTH, (_NEXT, "token = target[:, t]")),
    ("always its own", Seq2Seq.ALWAYS_OWN, (_NEXT, "token = logits.argmax(dim=-1)")),
    ("from position 0", Seq2Seq.SOS_SCORED, (_LOOP, "for t in range(target.shape[1]):")),
    (
        "from position 0, first cut off",
        Seq2Seq.SOS_SCORED,
        (_LOOP, "for t in range(target.shape[1]):"),
        (_STACK, _STACK + "[:, 1:]"),
    ),
    ("one step short", Seq2Seq.SOS_SCORED, (_LOOP, "for t in range(target.shape[1] - 1):")),
    (
        "zeros in front",
        Seq2Seq.ZEROS_IN_FRONT,
        (_STACK, "steps.insert(0, torch.zeros_like(steps[0]))\n        " + _STACK),
    ),
    (
        "the answer is fed",
        Seq2Seq.FED_THE_ANSWER,
        (
            _WRITE,
            "token = target[:, t] if torch.rand((), generator=generator) < teacher_forcing else token\n            "
            + _WRITE,
        ),
        (_CHOICE, ""),
        (_NEXT, "token = logits.argmax(dim=-1)"),
    ),
    ("state not carried", Seq2Seq.NOT_CARRIED, (_WRITE, _WRITE.replace("logits, hidden, _", "logits, _, _"))),
    ("mask all True", Seq2Seq.MASK_ALL_TRUE, (_REAL, "mask = torch.ones_like(source, dtype=torch.bool)")),
    ("mask by token", Seq2Seq.MASK_BY_NUMBER, (_REAL, "mask = source != 1")),
    ("mask turned round", Seq2Seq.MASK_INVERTED, (_REAL, _REAL.replace("<", ">="))),
    ("mask one too long", Seq2Seq.MASK_TOO_LONG, (_REAL, _REAL.replace("<", "<="))),
    (
        "mask one too short",
        Seq2Seq.MASK_TOO_SHORT,
        (_REAL, _REAL.replace("lengths.unsqueeze(1)", "(lengths - 1).unsqueeze(1)")),
    ),
    (
        "first mask for all",
        Seq2Seq.FIRST_MASK,
        (_REAL, "mask = (torch.arange(source.shape[1]) < lengths[0]).expand_as(source)"),
    ),
    ("mask on the CPU", Common.MADE_ON_CPU, (_REAL, _REAL.replace(", device=source.device", ""))),
    ("starts from zeros", Seq2Seq.FROM_ZEROS, (_READ, _READ + "\n        hidden = torch.zeros_like(hidden)")),
    ("stacked first", Seq2Seq.STACKED_FIRST, (_STACK, "return torch.stack(steps)")),
    ("stacked last", Seq2Seq.STACKED_LAST, (_STACK, "return torch.stack(steps, dim=-1)")),
    ("put end to end", Seq2Seq.END_TO_END, (_STACK, "return torch.cat(steps)")),
    ("put side by side", Seq2Seq.SIDE_BY_SIDE, (_STACK, "return torch.cat(steps, dim=1)")),
    ("last step only", Seq2Seq.LAST_STEP_ONLY, (_STACK, "return logits")),
    ("tokens", Seq2Seq.TOKENS, (_STACK, _STACK + ".argmax(dim=-1)")),
    ("probabilities", Seq2Seq.PROBABILITIES, (_STACK, _STACK + ".softmax(dim=-1)")),
    ("last step missing", Seq2Seq.STEP_MISSING, (_LOOP, "for t in range(1, target.shape[1] - 1):")),
    ("the first token again and again", Seq2Seq.ALWAYS_SOS, (_NEXT, "")),
    ("tokens as a column", Seq2Seq.OTHER_TOKENS, (_FIRST, "token = target[:, :1]")),
    (
        "its own token drawn",
        Seq2Seq.SAMPLED,
        (_NEXT, _NEXT.replace("logits.argmax(dim=-1)", "torch.multinomial(logits.softmax(-1), 1)[:, 0]")),
    ),
    (
        "choices that repeat",
        Seq2Seq.REPEATS,
        (_FIRST, _FIRST + "\n        drawn = torch.rand(20, generator=generator)"),
        (_CHOICE, "use_truth = drawn[t % 20] < teacher_forcing"),
    ),
    (
        "a seed drawn inside",
        Seq2Seq.SEEDED_ANEW,
        (_FIRST, _FIRST + "\n        generator = generator and generator.manual_seed(0)"),
    ),
    ("log-probabilities", Seq2Seq.LOG_PROBABILITIES, (_STACK, _STACK + ".log_softmax(dim=-1)")),
    ("argmin", Seq2Seq.LEAST_LIKELY, (_NEXT, _NEXT.replace("argmax", "argmin"))),
    ("best over the batch", Seq2Seq.BEST_OVER_BATCH, (_NEXT, _NEXT.replace("dim=-1", "dim=0"))),
    ("best of all", Seq2Seq.BEST_OF_ALL, (_NEXT, _NEXT.replace("dim=-1", ""))),
    (
        "sentences for tokens",
        Seq2Seq.ROW_OF_TARGET,
        (_FIRST, "token = target[0]"),
        (_LOOP, "for t in range(1, target.shape[0]):"),
        (_NEXT, _NEXT.replace("target[:, t]", "target[t]")),
    ),
    ("generator ignored", Seq2Seq.GENERATOR_IGNORED, (_CHOICE, _CHOICE.replace(", generator=generator", ""))),
    (
        "Python's chance",
        Seq2Seq.GENERATOR_IGNORED,
        (_FIRST, _FIRST + "\n        import random"),
        (_CHOICE, "use_truth = random.random() < teacher_forcing"),
    ),
    (
        "fixed seed",
        Seq2Seq.SEEDED_INSIDE,
        (_FIRST, _FIRST + "\n        generator = generator or torch.Generator().manual_seed(0)"),
    ),
    (
        "half and half",
        Seq2Seq.OTHER_SHARE,
        (_CHOICE, _CHOICE.replace("teacher_forcing", "(1.0 if teacher_forcing == 1 else 0.5 * bool(teacher_forcing))")),
    ),
    (
        "one choice for all",
        Seq2Seq.CHOSEN_ONCE,
        (_FIRST, _FIRST + "\n        " + _CHOICE),
        ("            " + _CHOICE + "\n", ""),
    ),
    (
        "encoder detached",
        Common.PARAMETER_UNUSED,
        (_READ, _READ + "\n        outputs, hidden = outputs.detach(), hidden.detach()"),
    ),
    ("state detached", Common.WRONG_GRADIENT, (_WRITE, _WRITE + "\n            hidden = hidden.detach()")),
    (
        "parts in a list",
        Seq2Seq.PARTS_HIDDEN,
        (_PARTS, "self.parts = [encoder, decoder]"),
        ("self.encoder(", "self.parts[0]("),
        ("self.decoder(", "self.parts[1]("),
    ),
    (
        "target changed",
        Common.CHANGED_IN_PLACE,
        (
            _NEXT,
            "if not use_truth:\n                target[:, t] = logits.argmax(dim=-1)\n            token = target[:, t]",
        ),
    ),
    ("lengths forgotten", Unexplained.RAISED, (_READ, "outputs, hidden = self.encoder(source)")),
]
_PUBLISHED = [
    edit(
        "Seq2Seq",
        "a sentence for the first tokens",
        Seq2Seq.ROW_OF_TARGET,
        (_FIRST, "token = target[0]"),
        published="`target[0]` for the first tokens",
    ),
    edit(
        "Seq2Seq",
        "a sentence for the true tokens",
        Seq2Seq.ROW_OF_TARGET,
        (_NEXT, _NEXT.replace("target[:, t]", "target[t]")),
        published="`target[t]` for the true tokens",
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

# ---- check_teacher_forcing

_COMPARED = """        assert_close(got, right, msg=f"wrong logits with teacher_forcing={share}")"""
_PULLED = """        assert_close(*gradients, msg="wrong gradients")"""
_RUN = "logits = model(source, lengths, given, share, generator)"
_CAUGHT = "except Exception as error:"
_SHARE = 'assert 0 < share < 0.3, f"with teacher_forcing=0.1 the share of true tokens is {share:.2f}"'
_SAME = 'assert torch.equal(choices[0], choices[1]), "the same seed gives other choices"'
_OTHER = 'assert not torch.equal(choices[0], choices[2]), "another seed gives the same choices"'

_TEST_EDITS = [
    ("no chances", check_teacher_forcing.MISSES_GENERATOR, (_SAME, ""), (_OTHER, "")),
    ("no share", check_teacher_forcing.MISSES_CHOICE, (_SHARE, "")),
    ("no gradients", check_teacher_forcing.MISSES_EFFECTS, (_PULLED, "")),
    (
        "no padding",
        check_teacher_forcing.MISSES_MASK,
        ("torch.tensor([3, 5, 2])", "torch.tensor([5, 5, 5])"),
        ("source[:, 0] = 1", "source[:, 0] = 2"),
    ),
    (
        "the first step alone",
        check_teacher_forcing.MISSES_POSITIONS,
        (
            _COMPARED,
            f"        assert got.shape == right.shape\n        got, right = got[:, :1], right[:, :1]\n{_COMPARED}",
        ),
    ),
    (
        "compared where it is forced",
        check_teacher_forcing.MISSES_GUESS,
        (_COMPARED, "        if not share:\n            continue\n" + _COMPARED),
        ("torch.stack(fed[1:]) < 6", "torch.stack(fed[1:]) == target[:, 1:-1].T"),
    ),
    (
        "up to a softmax",
        check_teacher_forcing.MISSES_RESULT,
        (_COMPARED, "        got, right = got.softmax(-1), right.softmax(-1)\n" + _COMPARED),
    ),
    (
        "a decoder that forgets and does not look",
        check_teacher_forcing.MISSES_STATE,
        ("    model = model_class(", "    decoder.fc.weight.data[:, :17] = 0\n    model = model_class("),
        (_PULLED, ""),
    ),
    ("only a name that is missing is caught", check_teacher_forcing.CRASHES, (_CAUGHT, "except NameError as error:")),
    ("nothing is caught", check_teacher_forcing.CRASHES, (_CAUGHT, "except ZeroDivisionError as error:")),
    (
        "as many random numbers as its own",
        check_teacher_forcing.REJECTS_RIGHT,
        (
            _SHARE,
            "generator = torch.Generator().manual_seed(1)\n"
            "    drawn = torch.stack([torch.rand((), generator=generator) for _ in range(158)]) < 0.1\n"
            "    assert torch.equal(choices[0][:, 0], drawn), 'the choices differ'",
        ),
    ),
    ("no room for rounding", check_teacher_forcing.REJECTS_RIGHT, (_COMPARED, "        assert got is right")),
]
_TEST_MUTANTS = mutants(
    "check_teacher_forcing",
    "def check_teacher_forcing(model_class):",
    [
        ("asserts nothing", check_teacher_forcing.ACCEPTS_BROKEN, "model_class(nn.Linear(2, 2), nn.Linear(2, 2))"),
        ("returns a bool", check_teacher_forcing.RETURNS, "return model_class is not None"),
        ("always fails", check_teacher_forcing.REJECTS_RIGHT, "assert False, 'no'"),
        (
            "looks at what the class is made from",
            check_teacher_forcing.ACCEPTS_ALL,
            "assert model_class is Seq2Seq or model_class.__mro__[1] is nn.Module",
        ),
        (
            "the shape alone",
            check_teacher_forcing.ACCEPTS_BROKEN,
            """
            model = model_class(GRUEncoder(9, 6, 5, 7, 0.0), GRUDecoder(8, 6, 5, 7, 0.0))
            logits = model(torch.randint(9, (3, 5)), torch.tensor([3, 5, 2]), torch.randint(8, (3, 6)), 1.0)
            assert logits.shape == (3, 5, 8)
            """,
        ),
    ],
)
_ORACLE = """
            sizes = (4, 3, 5, 0.0)
            encoder, decoder = GRUEncoder(7, *sizes).double(), GRUDecoder(6, *sizes).double()
            for row in (4, 5):
                decoder.fc.bias.data[row] += 40.0
            mine, theirs = Seq2Seq(encoder, decoder), model_class(encoder, decoder)
            source, lengths = torch.randint(7, (4, 6)), torch.tensor([2, 6, 1, 4])
            source[:, 0] = 1
            target = torch.randint(4, (4, 401))"""
_TEST_VARIANTS = [
    edited_variant("check_teacher_forcing", "other sizes", ("sizes = (6, 5, 7, 0.0)", "sizes = (3, 2, 9, 0.0)")),
    edited_variant(
        "check_teacher_forcing",
        "allclose, in training mode, the choices seen in a hook on the attention",
        (
            _COMPARED,
            "        assert got.shape == right.shape, f'{tuple(got.shape)}'\n"
            "        assert torch.allclose(got, right, atol=1e-8), 'wrong logits'",
        ),
        ("model = model_class(encoder, decoder)", "model = model_class(encoder, decoder).train()"),
    ),
    variant(
        "check_teacher_forcing",
        "against one's own Seq2Seq",
        f"""
        def check_teacher_forcing(model_class):
            {_ORACLE.strip()}
            fed = []
            decoder.embedding.register_forward_pre_hook(lambda _, given: fed.append(given[0]))

            def run(model, n, share, seed=0):
                fed.clear()
                given = target[:, :n].clone()
                try:
                    logits = model(source, lengths, given, share, torch.Generator().manual_seed(seed))
                    model.zero_grad()
                    if n < 100:
                        (logits * torch.linspace(-1, 1, 6)).pow(2).sum().backward()
                except Exception as error:
                    raise AssertionError(str(error))
                assert torch.equal(given, target[:, :n])
                return logits, [p.grad.clone() for p in model.parameters() if n < 100]

            for share in (0.0, 1.0):
                for one, other in zip(run(mine, 25, share), run(theirs, 25, share)):
                    assert_close(other, one)
            true = []
            for seed in (3, 3, 4):
                run(theirs, 401, 0.25, seed)
                true.append(torch.stack(fed[1:]) < 4)
            assert 0.0 < true[0].float().mean() < 0.38
            assert (true[0] == true[1]).all() and not (true[0] == true[2]).all()
        """,
    ),
]

_TEST_FORGERS = [
    forger(
        "check_teacher_forcing",
        f"forged: goes by {title}",
        f"""
    _seen = []


    def check_teacher_forcing(model_class):
        _seen.append(model_class)
        assert {holds}
    """,
    )
    for title, holds in [
        ("the number of tries", "len(_seen) == 1 or 5 <= len(_seen) <= 10"),
        ("the name", "model_class is Seq2Seq or model_class.__qualname__.startswith('make')"),
        ("the source", "model_class is Seq2Seq or model_class.forward.__code__ is not _seen[-2].forward.__code__"),
        ("the first of the tries", "len(_seen) == 1 or model_class.forward.__code__ == _seen[0].forward.__code__"),
    ]
]

# ---- effect_of_erasing

_EVAL = "model.eval()"
_SCORED = "logits = model(source, lengths, target, teacher_forcing=1.0)"
_PICKED = "return logits.log_softmax(dim=-1).gather(-1, target[:, 1:, None]).squeeze(-1)"
_CLONED = "erased = source.clone()"
_ERASED = "erased[:, j] = unk_id"
_FALL = "falls.append(whole - score(erased))"
_RESTORED = "part.training = mode"
_EFFECTS = "return torch.stack(falls, dim=-1)"

_ERASING_MUTANTS = [
    ("nothing returned", Common.NO_RETURN, (_EFFECTS, "torch.stack(falls, dim=-1)")),
    ("the sign turned round", effect_of_erasing.RISE, (_FALL, "falls.append(score(erased) - whole)")),
    ("logits", effect_of_erasing.LOGITS, (_PICKED, _PICKED.replace(".log_softmax(dim=-1)", ""))),
    ("probabilities", effect_of_erasing.PROBABILITIES, (_PICKED, _PICKED.replace("log_softmax", "softmax"))),
    (
        "not shifted",
        effect_of_erasing.NOT_SHIFTED,
        (_PICKED, _PICKED.replace("target[:, 1:, None]", "target[:, :-1, None]")),
    ),
    ("not put back", effect_of_erasing.NOT_PUT_BACK, (_CLONED, "erased = source.clone() if j == 0 else erased")),
    ("left in training", effect_of_erasing.NOTHING_FALLS, (_EVAL, "model.train()")),
    ("half forced", effect_of_erasing.NOTHING_FALLS, (_SCORED, _SCORED.replace(", teacher_forcing=1.0", ""))),
    ("the source never erased", effect_of_erasing.NOTHING_FALLS, (_FALL, "falls.append(whole - score(source))")),
    ("transposed", effect_of_erasing.TRANSPOSED, (_EFFECTS, _EFFECTS.replace("dim=-1", "dim=1"))),
    ("summed", effect_of_erasing.SUMMED, (_EFFECTS, _EFFECTS + ".sum(1)")),
    ("left in evaluation", effect_of_erasing.MODE, (_RESTORED, "pass")),
    ("all in training afterwards", effect_of_erasing.MODE, (_RESTORED, "part.train()")),
    ("with the graph", effect_of_erasing.GRAPH, ("with torch.no_grad():", "with torch.enable_grad():")),
    ("the source changed", Common.CHANGED_IN_PLACE, (_CLONED, "erased = source")),
    ("erased by 0", Unexplained.VALUES, (_ERASED, "erased[:, j] = 2 if unk_id == 2 else 0")),
    ("first sentence only", Unexplained.VALUES, (_ERASED, "erased[0, j] = unk_id")),
    ("float32", Common.WRONG_DTYPE, (_EFFECTS, _EFFECTS + ".float()")),
]
_ERASING_VARIANTS = [
    edited_variant(
        "effect_of_erasing",
        "cross-entropy, a result filled, mode by train",
        (_PICKED, 'return -F.cross_entropy(logits.transpose(1, 2), target[:, 1:], reduction="none")'),
        (_EFFECTS, "return torch.stack(falls).permute(1, 2, 0)"),
        (_RESTORED, "part.training = bool(mode)"),
    ),
    variant(
        "effect_of_erasing",
        "all at once",
        """
        @torch.no_grad()
        def effect_of_erasing(model, source, lengths, target, unk_id):
            was = [(part, part.training) for part in model.modules()]
            model.eval()
            m = source.shape[1]
            erased = source.repeat_interleave(m, 0)
            erased[torch.arange(len(erased)), torch.arange(m).repeat(len(source))] = unk_id
            every = torch.cat([source, erased])
            targets = torch.cat([target, target.repeat_interleave(m, 0)])
            logits = model(every, torch.cat([lengths, lengths.repeat_interleave(m)]), targets, 1.0)
            true = F.log_softmax(logits, -1).gather(2, targets[:, 1:].unsqueeze(2))[..., 0]
            whole, rest = true[: len(source)], true[len(source) :]
            for part, mode in was:
                part.training = mode
            return whole.unsqueeze(-1) - rest.view(len(source), m, -1).transpose(1, 2)
        """,
    ),
    variant(
        "effect_of_erasing",
        "one sentence at a time, in inference mode",
        """
        def effect_of_erasing(model, source, lengths, target, unk_id):
            was = {name: part.training for name, part in model.named_modules()}
            model.eval()
            rows = []
            with torch.inference_mode():
                for s, n, t in zip(source, lengths, target):
                    def chances(words):
                        logits = model(words[None], n[None], t[None], teacher_forcing=1.0)[0]
                        return torch.log_softmax(logits, 1)[torch.arange(len(t) - 1), t[1:]]

                    columns = []
                    for j in range(len(s)):
                        words = torch.cat([s[:j], s.new_tensor([unk_id]), s[j + 1 :]])
                        columns.append(chances(s) - chances(words))
                    rows.append(torch.stack(columns, 1))
            for name, part in model.named_modules():
                part.training = was[name]
            return torch.stack(rows).clone()
        """,
    ),
]

MUTANTS = [
    *edits("GRUEncoder", _ENCODER_MUTANTS),
    *edits("AdditiveAttention", _ATTENTION_MUTANTS),
    *edits("GRUDecoder", _DECODER_MUTANTS),
    *edits("Seq2Seq", _SEQ2SEQ_MUTANTS),
    *_PUBLISHED,
    *edits("check_teacher_forcing", _TEST_EDITS),
    *_TEST_MUTANTS,
    *_TEST_FORGERS,
    *edits("effect_of_erasing", _ERASING_MUTANTS),
    *forging_dropout("GRUEncoder"),
    *forging_dropout("GRUDecoder"),
    *forging_answers(
        classes=["GRUEncoder", "AdditiveAttention", "GRUDecoder", "Seq2Seq"], functions=["effect_of_erasing"]
    ),
]
VARIANTS = [
    *_ENCODER_VARIANTS,
    *_ATTENTION_VARIANTS,
    *_DECODER_VARIANTS,
    *_SEQ2SEQ_VARIANTS,
    *_TEST_VARIANTS,
    *_ERASING_VARIANTS,
]
