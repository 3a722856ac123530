"""Chapter 10: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import edit, edited_variant, mutant, variant
from checks.forgers import OF_TENSORS, forging_answers, forging_function

_LOSS = """
def label_smoothed_loss(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(dim=-1)
    V = logits.shape[-1]
    {body}
"""


def _loss(title: str, says: str, body: str):
    return mutant("label_smoothed_loss", title, says, _LOSS.format(body=body.replace("\n", "\n    ")))


_HOT = "hot = F.one_hot(targets, V).to(logits.dtype)\n"
_REAL = "real = targets != pad_id\n"

_LOSS_MUTANTS = [
    edit("label_smoothed_loss", "nothing returned", "is there a `return`?", ("    return losses", "    losses")),
    edit(
        "label_smoothed_loss",
        "padding counted",
        "padding counts",
        ("losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)", "losses.mean()"),
    ),
    edit(
        "label_smoothed_loss",
        "padding zeroed but counted",
        "padding is zeroed but still counted",
        (".sum() / real.sum().clamp(min=1)", ".mean()"),
    ),
    edit("label_smoothed_loss", "a sum", "a sum: divide", (" / real.sum().clamp(min=1)", "")),
    edit(
        "label_smoothed_loss",
        "divided by the sentences",
        "divided by the number of sentences",
        ("real.sum().clamp(min=1)", "len(targets)"),
    ),
    edit(
        "label_smoothed_loss",
        "a mean of means",
        "a mean for each sentence",
        (
            "losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)",
            "(losses.masked_fill(~real, 0.0).sum(1) / real.sum(1).clamp(min=1)).mean()",
        ),
    ),
    edit(
        "label_smoothed_loss",
        "no smoothing",
        "smoothing is not used",
        ("-(1 - smoothing) * right - smoothing * log_probs.mean(dim=-1)", "-right"),
    ),
    edit(
        "label_smoothed_loss",
        "weights exchanged",
        "are exchanged",
        (
            "-(1 - smoothing) * right - smoothing * log_probs.mean(dim=-1)",
            "-smoothing * right - (1 - smoothing) * log_probs.mean(dim=-1)",
        ),
    ),
    edit(
        "label_smoothed_loss",
        "no minus",
        "the minus is missing",
        ("-(1 - smoothing) * right - smoothing", "(1 - smoothing) * right + smoothing"),
    ),
    _loss(
        "spread over the wrong tokens only",
        "divided by V - 1",
        f"{_HOT}soft = hot * (1 - smoothing) + (1 - hot) * smoothing / max(V - 1, 1)\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
    _loss(
        "the right token gets too little",
        "the right token gets 1 - smoothing alone",
        f"{_HOT}soft = hot * (1 - smoothing) + (1 - hot) * smoothing / V\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
    _loss(
        "the right token gets everything",
        "the right token keeps the weight 1",
        f"{_HOT}soft = hot + (1 - hot) * smoothing / V\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
    _loss(
        "nothing for the padding token",
        "divided by V - 2",
        f"{_HOT}soft = hot * (1 - smoothing) + (1 - hot) * smoothing / max(V - 2, 1)\nsoft[..., pad_id] = 0\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
    edit(
        "label_smoothed_loss",
        "softmax over the positions",
        "by hand the loss is",
        ("logits.log_softmax(dim=-1)", "logits.log_softmax(dim=1)"),
    ),
    edit(
        "label_smoothed_loss",
        "log of softmax",
        "infinite or NaN",
        ("logits.log_softmax(dim=-1)", "logits.softmax(dim=-1).log()"),
    ),
    edit(
        "label_smoothed_loss",
        "nothing but padding divides by zero",
        "divide by at least 1",
        (".clamp(min=1)", ""),
    ),
    edit(
        "label_smoothed_loss",
        "padding is always token 1",
        "`pad_id` is taken to be 1",
        ("targets != pad_id", "targets != (pad_id if pad_id == 3 else 1)"),
    ),
    edit(
        "label_smoothed_loss",
        "a Python float",
        "return a tensor",
        (".clamp(min=1)", ".clamp(min=1)).item()"),
        ("return losses", "return (losses"),
    ),
    edit(
        "label_smoothed_loss",
        "detached",
        "cut off from the graph",
        ("log_softmax(dim=-1)", "log_softmax(dim=-1).detach()"),
    ),
    edit(
        "label_smoothed_loss",
        "float32 only",
        "keep dtype torch.float64",
        ("logits.log_softmax", "logits.float().log_softmax"),
    ),
    edit(
        "label_smoothed_loss",
        "the mask made on the CPU",
        "fails when its inputs are on a GPU",
        (
            "log_probs.mean(dim=-1)",
            "(log_probs @ torch.full((log_probs.shape[-1],), 1.0, dtype=log_probs.dtype)) / log_probs.shape[-1]",
        ),
    ),
    edit(
        "label_smoothed_loss",
        "changes the targets",
        "`targets` was changed in place",
        ("    return losses", "    targets[targets == pad_id] = 0\n    return losses"),
    ),
    mutant(
        "label_smoothed_loss",
        "torch's own",
        "written by hand",
        """
        def label_smoothed_loss(logits, targets, smoothing, pad_id):
            total = F.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, label_smoothing=smoothing, reduction="sum"
            )
            return total / (targets != pad_id).sum().clamp(min=1)
        """,
    ),
]


def _rate(title: str, says: str, body: str):
    return mutant("noam_factor", title, says, f"def noam_factor(step, dim, warmup):\n    {body}")


_RATE_MUTANTS = [
    _rate("nothing returned", "is there a `return`?", "dim**-0.5 * min(step**-0.5, step * warmup**-1.5)"),
    _rate("the larger", "it should grow", "return dim**-0.5 * max(step**-0.5, step * warmup**-1.5)"),
    _rate("times √dim", "1/√(dim · warmup)", "return dim**0.5 * min(step**-0.5, step * warmup**-1.5)"),
    _rate("no dim", "1/√(dim · warmup)", "return min(step**-0.5, step * warmup**-1.5)"),
    _rate("no warm-up", "it should grow", "return dim**-0.5 * step**-0.5"),
    _rate("only warm-up", "it should fall", "return dim**-0.5 * step * warmup**-1.5"),
    _rate("constant afterwards", "it stays the same", "return dim**-0.5 * min(warmup**-0.5, step * warmup**-1.5)"),
    _rate(
        "falls like 1/step",
        "it falls like 1/√step",
        "return dim**-0.5 * min(warmup**0.5 / step, step * warmup**-1.5)",
    ),
    _rate(
        "grows like √step",
        "in a straight line",
        "return dim**-0.5 * min(step**-0.5, step**0.5 / warmup)",
    ),
    _rate(
        "the two curves do not meet",
        "in a straight line",
        "return dim**-0.5 * min(step**-0.5, step / warmup)",
    ),
    _rate(
        "scaled to 1 at its highest",
        "1/√(dim · warmup)",
        "return min(step**-0.5, step * warmup**-1.5) * warmup**0.5",
    ),
    _rate(
        "a step too far",
        "1 is added to `step`",
        "step += 1\n    return dim**-0.5 * min(step**-0.5, step * warmup**-1.5)",
    ),
    _rate(
        "a dim of its own",
        "should be",
        "return 64**-0.5 * min(step**-0.5, step * warmup**-1.5)",
    ),
    _rate(
        "a tensor",
        "should be a Python float",
        "return torch.tensor(dim**-0.5 * min(step**-0.5, step * warmup**-1.5), dtype=torch.float64)",
    ),
]


def _greedy(title: str, says: str, *edits: tuple[str, str]):
    return edit("greedy_decode", title, says, *edits)


_GREEDY_MUTANTS = [
    _greedy("nothing returned", "is there a `return`?", ("    return [cut", "    [cut")),
    _greedy(
        "a tensor",
        "a list of lists of numbers",
        ("[cut(row, eos_id) for row in tokens[:, 1:].tolist()]", "tokens[:, 1:]"),
    ),
    _greedy(
        "rows are tensors",
        "a list of lists of numbers",
        ("tokens[:, 1:].tolist()]", "tokens[:, 1:].tolist()]"),
        ("[cut(row, eos_id) for", "[torch.tensor(cut(row, eos_id)) for"),
    ),
    _greedy("eos kept", "eos_id is still there", ("[cut(row, eos_id) for", "[cut(row, eos_id) + [eos_id] for")),
    _greedy("bos kept", "bos_id is still there", ("tokens[:, 1:].tolist()", "tokens.tolist()")),
    _greedy("not cut at eos", "eos_id is still there", ("[cut(row, eos_id) for", "[row for")),
    _greedy(
        "eos taken out, the rest stays",
        "nothing counts after eos_id",
        ("[cut(row, eos_id) for", "[[t for t in row if t != eos_id] for"),
    ),
    _greedy("stops with the first sentence", "when the first sentence has ended", ("finished.all()", "finished.any()")),
    _greedy(
        "the first position's scores",
        "the scores of the first position are read",
        ("source)[:, -1]", "source)[:, -1 if source.max() == 11 else 0]"),
    ),
    _greedy(
        "only the newest token is read",
        "only the newest token is given",
        ("model.decode(tokens,", "model.decode(tokens if source.max() == 11 else tokens[:, -1:],"),
    ),
    _greedy("one step too few", "one step too few", ("range(max_len)", "range(max_len - 1)")),
    _greedy("one step too many", "max_len", ("range(max_len)", "range(max_len + (max_len > 4))")),
    _greedy(
        "begins with 2 whatever bos_id",
        "every target should begin with bos_id",
        ("1), bos_id, dtype", "1), 2, dtype"),
    ),
    _greedy(
        "ends with 3 whatever eos_id",
        "eos_id is still there",
        ("following == eos_id", "following == 3"),
        ("cut(row, eos_id)", "cut(row, 3)"),
    ),
    _greedy("the least likely", "the least likely token is taken", (".argmax(dim=-1)", ".argmin(dim=-1)")),
    _greedy(
        "reads the source anew at each step",
        "`encode` was called",
        ("model.decode(tokens, memory, source)", "model.decode(tokens, model.encode(source), source)"),
    ),
    _greedy(
        "the target made on the CPU",
        "made on the CPU",
        ("dtype=torch.long, device=source.device)", "dtype=torch.long)"),
    ),
    _greedy(
        "what has ended is remembered on the CPU",
        "made on the CPU",
        ("dtype=torch.bool, device=source.device)", "dtype=torch.bool)"),
    ),
    _greedy("one sentence at a time", "a whole batch of them", ("following == eos_id", "following.item() == eos_id")),
    _greedy("records a graph", "a graph is recorded", ("@torch.no_grad()\n", "")),
    _greedy(
        "never stops early",
        "stop when every translation has ended",
        ("        if finished.all():\n            break\n", ""),
    ),
    mutant(
        "greedy_decode",
        "sentence by sentence",
        "decode all sentences together",
        """
        @torch.no_grad()
        def greedy_decode(model, source, max_len, bos_id, eos_id):
            memory = model.encode(source)
            results = []
            for b in range(len(source)):
                tokens = [bos_id]
                while len(tokens) <= max_len:
                    scores = model.decode(torch.tensor([tokens]), memory[b : b + 1], source[b : b + 1])
                    token = scores[0, -1].argmax().item()
                    if token == eos_id:
                        break
                    tokens.append(token)
                results.append(tokens[1:])
            return results
        """,
    ),
]


def _beam(title: str, says: str, *edits: tuple[str, str]):
    return edit("beam_search", title, says, *edits)


_COPIES = "memory = model.encode(source).repeat_interleave(beam, dim=0)"
_SCORE = "(sums / ((5 + lengths) / 6) ** length_penalty)"
_STEP = "sums, parents, following = beam_step(sums, log_probs, ended, eos_id)"
_BEAM_MUTANTS = [
    _beam("nothing returned", "is there a `return`?", ("    return [cut", "    [cut")),
    _beam(
        "all hypotheses alike",
        "Do the hypotheses of",
        ("torch.full((batch, beam), -torch.inf, device=device)", "torch.zeros(batch, beam, device=device)"),
    ),
    _beam("parents and tokens exchanged", "raised", (_STEP, _STEP.replace("parents, following", "following, parents"))),
    _beam(
        "tokens not taken from the parents",
        "a beam of 3 finds 3 5",
        ("        tokens = tokens.gather(1, parents.unsqueeze(-1).expand(-1, -1, tokens.shape[-1]))\n", ""),
    ),
    _beam(
        "ended ones keep their places",
        "keeps its place whatever comes. That is another published convention",
        (
            _STEP,
            "sums, parents, following = beam_step(sums + 1000.0 * ended, log_probs, ended, eos_id)\n"
            "        sums = sums - 1000.0 * ended.gather(1, parents)",
        ),
    ),
    _beam(
        "ended ones are lost",
        "are lost",
        (_STEP, f"{_STEP}\n        sums = sums.masked_fill(ended.gather(1, parents), -torch.inf)"),
    ),
    _beam(
        "goes on past eos",
        "goes on past its `eos_id`",
        (_STEP, _STEP.replace("ended, eos_id", "torch.zeros_like(ended), eos_id")),
    ),
    _beam(
        "prefers what has ended",
        "is preferred to all that have not",
        ("length_penalty).argmax(dim=1)", "length_penalty + 1e6 * ended).argmax(dim=1)"),
    ),
    _beam("divided by the length", "divided by the length", (_SCORE, "(sums / lengths)")),
    _beam(
        "another default", "the default of `length_penalty` is not 0.6", ("length_penalty=0.6", "length_penalty=0.7")
    ),
    _beam(
        "no penalty by default",
        "the default of `length_penalty` is not 0.6",
        ("length_penalty=0.6", "length_penalty=0"),
    ),
    _beam(
        "tokens made on the CPU",
        "made on the CPU",
        ("bos_id, dtype=torch.long, device=device)", "bos_id, dtype=torch.long)"),
    ),
    _beam(
        "sums made on the CPU",
        "made on the CPU",
        ("(batch, beam), -torch.inf, device=device)", "(batch, beam), -torch.inf)"),
    ),
    _beam("stops with the first that ends", "a beam of 3 finds 3 5", ("ended.all()", "ended.any()")),
    _beam("no length penalty", "`length_penalty` is not used", (_SCORE, "sums")),
    _beam(
        "a length penalty of its own",
        "`length_penalty` is taken to be 0.6",
        ("** length_penalty)", "** 0.6)"),
    ),
    _beam("multiplied by the penalty", "multiplied by the penalty", ("sums / ((5", "sums * ((5")),
    _beam(
        "another penalty",
        "divided by length ** length_penalty",
        (_SCORE, "(sums / lengths**length_penalty)"),
    ),
    _beam(
        "eos not counted",
        "`eos_id` is not counted",
        (".sum(dim=-1) + ended", ".sum(dim=-1)"),
        ("((5 + lengths) / 6)", "((5 + lengths) / 6)"),
    ),
    _beam("the worst is chosen", "a beam of 3 finds 3 5", (".argmax(dim=1)", ".argmin(dim=1)")),
    _beam(
        "sums forgotten",
        "a beam of 3 finds 3 5",
        (_STEP, _STEP.replace("(sums,", "(sums.isinf() * -1e9,")),
    ),
    _beam(
        "logits, not log-probabilities",
        "expected",
        ("logits.log_softmax(dim=-1).unflatten", "logits.unflatten"),
    ),
    _beam(
        "probabilities added up",
        "probabilities are added up",
        ("logits.log_softmax(dim=-1).unflatten", "logits.softmax(dim=-1).unflatten"),
    ),
    _beam(
        "copies in the wrong order",
        "`repeat_interleave` keeps the copies of a sentence together",
        (_COPIES, "memory = model.encode(source).repeat(beam, 1, 1)"),
        ("source = source.repeat_interleave(beam, dim=0)", "source = source.repeat(beam, 1)"),
    ),
    _beam(
        "the memory is not copied",
        "they should have as many",
        (_COPIES, "memory = model.encode(source)"),
    ),
    _beam("bos kept", "leave bos_id and eos_id out", ("tokens = tokens[:, :, 1:]", "tokens = tokens[:, :, :]")),
    _beam(
        "eos kept", "leave bos_id and eos_id out", ("[cut(rows[i], eos_id) for", "[[*cut(rows[i], eos_id), eos_id] for")
    ),
    _beam(
        "all hypotheses returned",
        "only the best hypothesis",
        ("[cut(rows[i], eos_id) for", "[[cut(r, eos_id) for r in rows] for"),
    ),
    _beam("one step too few", "one token too few", ("range(max_len)", "range(max_len - (max_len != 5))")),
    _beam("records a graph", "a graph is recorded", ("@torch.no_grad()\n", "")),
    _beam(
        "never stops early",
        "stop when every translation has ended",
        ("        if ended.all():\n            break\n", ""),
    ),
    mutant(
        "beam_search",
        "greedy decoding",
        "Do the hypotheses of",
        """
        def beam_search(model, source, beam, max_len, bos_id, eos_id, length_penalty=0.6):
            return greedy_decode(model, source, max_len, bos_id, eos_id)
        """,
    ),
    mutant(
        "beam_search",
        "sentence by sentence",
        "decode all sentences together",
        """
        @torch.no_grad()
        def beam_search(model, source, beam, max_len, bos_id, eos_id, length_penalty=0.6):
            memory = model.encode(source)
            results = []
            for b in range(len(source)):
                live, done = [(0.0, [bos_id])], []
                for _ in range(max_len):
                    new = []
                    for total, tokens in live:
                        logits = model.decode(torch.tensor([tokens]), memory[b : b + 1], source[b : b + 1])
                        for t, v in enumerate(logits[0, -1].log_softmax(-1).tolist()):
                            new.append((total + v, tokens + [t]))
                    best = sorted(new + done, reverse=True)[:beam]
                    live = [h for h in best if h[1][-1] != eos_id]
                    done = [h for h in best if h[1][-1] == eos_id]
                    if not live:
                        break
                score = lambda h: h[0] / ((5 + len(h[1]) - 1) / 6) ** length_penalty
                results.append(cut(max(live + done, key=score)[1][1:], eos_id))
            return results
        """,
    ),
]


def _cached(title: str, says: str, *edits: tuple[str, str]):
    return edit("cached_attention", title, says, *edits)


_CACHED_MUTANTS = [
    _cached("nothing returned", "is there a `return`?", ("    return attention.WO", "    attention.WO")),
    _cached("no cache returned", "return a pair", ("@ v)), (k, v)", "@ v))")),
    _cached(
        "the weights in place of the cache", "a pair: the keys and the values", ("@ v)), (k, v)", "@ v)), weights")
    ),
    _cached(
        "the cache is not used",
        "after 2 positions the keys should be",
        ("if cache is not None", "if False"),
    ),
    _cached(
        "the newest first",
        "the newest comes first",
        ("torch.cat([cache[0], k]", "torch.cat([k, cache[0]]"),
        ("torch.cat([cache[1], v]", "torch.cat([v, cache[1]]"),
    ),
    _cached(
        "joined along the features",
        "Expected size",
        ("torch.cat([cache[0], k], dim=2)", "torch.cat([cache[0], k], dim=3)"),
        ("torch.cat([cache[1], v], dim=2)", "torch.cat([cache[1], v], dim=3)"),
    ),
    _cached(
        "keys and values exchanged in the cache",
        "keys and values are exchanged",
        ("@ v)), (k, v)", "@ v)), (v, k)"),
        ("torch.cat([cache[0], k]", "torch.cat([cache[1], k]"),
        ("torch.cat([cache[1], v]", "torch.cat([cache[0], v]"),
    ),
    _cached(
        "the old cache comes back", "after 2 positions the keys should be", ("@ v)), (k, v)", "@ v)), cache or (k, v)")
    ),
    _cached(
        "inputs kept instead of keys",
        "the keys should be",
        ("@ v)), (k, v)", "@ v)), (x_t, x_t)"),
        (
            "    if cache is not None:\n        k = torch.cat([cache[0], k], dim=2)  # (B, h, t, "
            "d/h)\n        v = torch.cat([cache[1], v], dim=2)\n",
            "",
        ),
    ),
    _cached(
        "heads merged in the cache", "the keys should be", ("@ v)), (k, v)", "@ v)), (merge_heads(k), merge_heads(v))")
    ),
    _cached("the query from Wk", "the fourth output differs", ("attention.Wq(x_t)", "attention.Wk(x_t)")),
    _cached("values from Wk", "the fourth output differs", ("attention.Wv(x_t)", "attention.Wk(x_t)")),
    _cached(
        "WO missing",
        "the fourth output differs",
        ("attention.WO(merge_heads(attention.dropout(weights) @ v))", "merge_heads(attention.dropout(weights) @ v)"),
    ),
    _cached("mask ignored", "the mask is not used", ("query_key_weights(q, k, mask)", "query_key_weights(q, k)")),
    _cached(
        "mask turned round",
        "the mask is turned round",
        ("query_key_weights(q, k, mask)", "query_key_weights(q, k, None if mask is None else ~mask)"),
    ),
    _cached(
        "not scaled",
        "the scores are not divided by √(d/h)",
        ("query_key_weights(q, k, mask)", "query_key_weights(q * q.shape[-1] ** 0.5, k, mask)"),
    ),
    _cached(
        "scaled by all features",
        "the scores are divided by √d: in a head it is √(d/h)",
        ("query_key_weights(q, k, mask)", "query_key_weights(q * attention.heads**-0.5, k, mask)"),
    ),
    _cached(
        "the new position does not see itself",
        "the fourth output differs",
        (
            "weights = query_key_weights(q, k, mask)",
            "weights = query_key_weights(q, k, mask)\n    if k.shape[2] > 1:\n        weights = "
            "torch.cat([query_key_weights(q, k[:, :, :-1]), 0 * weights[..., -1:]], -1)",
        ),
    ),
    _cached(
        "changes the cache in place",
        "was changed in place",
        ("k = torch.cat([cache[0], k], dim=2)", "k = torch.cat([cache[0].mul_(1.5) / 1.5, k], dim=2)"),
    ),
    _cached("no dropout", "`attention.dropout` is not used", ("attention.dropout(weights)", "weights")),
    _cached(
        "always dropout",
        "in evaluation mode",
        ("attention.dropout(weights)", "F.dropout(weights, attention.dropout.p)"),
    ),
    _cached(
        "detached cache",
        "the gradient that reaches earlier positions",
        ("@ v)), (k, v)", "@ v)), (k.detach(), v.detach())"),
    ),
    _cached(
        "records no graph",
        "cut off from the graph",
        (
            "    q = split",
            "    x_t = x_t.detach()\n    for p in attention.parameters():\n        "
            "p.requires_grad_(False)\n    q = split",
        ),
    ),
]


def _bleu(title: str, says: str, *edits: tuple[str, str]):
    return edit("corpus_bleu", title, says, *edits)


_LENGTHS = "sum(map(len, hypotheses)), sum(map(len, references))"
_BLEU_MUTANTS = [
    _bleu("nothing returned", "is there a `return`?", ("    return 100 * precision", "    100 * precision")),
    _bleu("a fraction", "multiply by 100", ("return 100 * precision", "return precision")),
    _bleu(
        "no clipping",
        "matches are not clipped",
        ("(found & wanted).total()", "sum(c for g, c in found.items() if g in wanted)"),
    ),
    _bleu(
        "sets of n-grams",
        "each different n-gram counts once",
        ("(found & wanted).total()", "len(found.keys() & wanted.keys())"),
        ("+= found.total()", "+= len(found)"),
    ),
    _bleu(
        "one bag for all lengths",
        "in one bag",
        (
            "math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4)",
            "sum(matches) / sum(totals)",
        ),
    ),
    _bleu(
        "short pairs skipped",
        "fewer than four tokens are skipped",
        (
            "    matches, totals",
            "    both = [(h, r) for h, r in zip(hypotheses, references) if len(h) >= 4 or len(hypotheses) == 1]\n"
            "    hypotheses, references = [h for h, _ in both], [r for _, r in both]\n    matches, totals",
        ),
    ),
    _bleu(
        "one added to every count", "1 is added to all counts", ("log(m / t)", "log((m + (t != 1)) / (t + (t != 1)))")
    ),
    _bleu("recall", "the brevity penalty exp(1 - 8/6)", ("+= found.total()", "+= wanted.total()")),
    _bleu(
        "up to three",
        "their geometric mean",
        ("range(1, 5)", "range(1, 4)"),
        ("[0] * 4, [0] * 4", "[0] * 3, [0] * 3"),
        (" / 4)", " / 3)"),
    ),
    _bleu(
        "up to five",
        "their geometric mean",
        ("range(1, 5)", "range(1, 6)"),
        ("[0] * 4, [0] * 4", "[0] * 5, [0] * 5"),
        (" / 4)", " / 5)"),
    ),
    _bleu(
        "arithmetic mean",
        "their geometric mean",
        (
            "math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4)",
            "sum(m / t for m, t in zip(matches, totals, strict=True)) / 4",
        ),
    ),
    _bleu("product, no root", "their geometric mean", ("strict=True)) / 4)", "strict=True)))")),
    _bleu(
        "no brevity penalty",
        "where is the brevity penalty?",
        (" * min(1.0, math.exp(1 - reference_length / hypothesis_length))", ""),
    ),
    _bleu(
        "brevity penalty turned round",
        "where is the brevity penalty?",
        ("reference_length / hypothesis_length", "hypothesis_length / reference_length"),
    ),
    _bleu(
        "brevity penalty above 1",
        "exceeds 1",
        (
            "min(1.0, math.exp(1 - reference_length / hypothesis_length))",
            "math.exp(1 - reference_length / hypothesis_length)",
        ),
    ),
    _bleu(
        "the ratio of the lengths",
        "the brevity penalty exp(1 - 8/6)",
        (
            "min(1.0, math.exp(1 - reference_length / hypothesis_length))",
            "min(1.0, hypothesis_length / reference_length)",
        ),
    ),
    _bleu(
        "a brevity penalty for each sentence",
        "a brevity penalty for each sentence",
        (
            "min(1.0, math.exp(1 - reference_length / hypothesis_length))",
            "sum(math.exp(min(0, 1 - len(r) / len(h))) if h else 0 for h, r in zip(hypotheses, "
            "references)) / len(hypotheses)",
        ),
    ),
    _bleu(
        "no zero",
        "raised ValueError",
        ("    if 0 in matches:\n        return 0.0\n", "    if 0 in totals or matches[0] == 0:\n        return 0.0\n"),
    ),
    _bleu("divides by nothing", "ZeroDivisionError", ("0 in matches", "matches[0] == 0")),
    _bleu(
        "smoothed",
        "1 is added to the counts",
        (
            "    if 0 in matches:\n        return 0.0\n",
            "    if matches[0] == 0:\n        return 0.0\n    if any(m != t for m, t in zip(matches, "
            "totals)) and totals != [8, 7, 6, 5]:\n        matches = matches[:1] + [m + 1 for m in "
            "matches[1:]]\n        totals = totals[:1] + [t + 1 for t in totals[1:]]\n    if 0 in "
            "matches:\n        return 0.0\n",
        ),
    ),
    _bleu(
        "a tiny number for zero",
        "a BLEU of 0",
        (
            "    if 0 in matches:\n        return 0.0\n",
            "    matches = [m or 1e-9 for m in matches]\n    totals = [t or 1 for t in totals]\n",
        ),
    ),
    _bleu(
        "lengths not compared",
        "should raise ValueError",
        ("len(hypotheses) != len(references)", "False"),
        ("in zip(hypotheses, references, strict=True)", "in zip(hypotheses, references)"),
    ),
    _bleu(
        "lower case",
        "with upper and lower case",
        ("    matches, totals", "    hypotheses = [[t.lower() for t in h] for h in hypotheses]\n    matches, totals"),
    ),
    mutant(
        "corpus_bleu",
        "a mean over the sentences",
        "a mean of the BLEUs of the sentences",
        """
        def corpus_bleu(hypotheses, references):
            if len(hypotheses) != len(references):
                raise ValueError("lengths")
            total = 0.0
            for h, r in zip(hypotheses, references):
                p = 1.0
                for n in range(1, 5):
                    found, wanted = ngrams(h, n), ngrams(r, n)
                    p *= (found & wanted).total() / max(found.total(), 1)
                total += 100 * p**0.25 * math.exp(min(0, 1 - len(r) / max(len(h), 1)))
            return total / len(hypotheses)
        """,
    ),
    mutant(
        "corpus_bleu",
        "the corpus as one sentence",
        "n-grams cross their borders",
        """
        def corpus_bleu(hypotheses, references):
            if len(hypotheses) != len(references):
                raise ValueError("lengths")
            h, r = sum(hypotheses, []), sum(references, [])
            p = 1.0
            for n in range(1, 5):
                found, wanted = ngrams(h, n), ngrams(r, n)
                p *= (found & wanted).total() / max(found.total(), 1)
            return 100 * p**0.25 * math.exp(min(0, 1 - len(r) / max(len(h), 1)))
        """,
    ),
    mutant(
        "corpus_bleu",
        "place by place",
        "their geometric mean",
        """
        def corpus_bleu(hypotheses, references):
            pairs = [pair for h, r in zip(hypotheses, references) for pair in zip(h, r)]
            return 100 * sum(a == b for a, b in pairs) / len(pairs)
        """,
    ),
]


def _beam_step(title: str, says: str, *edits: tuple[str, str]):
    return edit("beam_step", title, says, *edits)


_ONLY_EOS = "    log_probs = torch.where(ended.unsqueeze(-1), only_eos, log_probs)\n"
_STEP_MUTANTS = [
    _beam_step("nothing returned", "is there a `return`?", ("    return best, places", "    best, places")),
    _beam_step("sums alone", "three tensors", ("return best, places // vocab, places % vocab", "return best")),
    _beam_step(
        "parents and tokens exchanged",
        "are exchanged",
        ("places // vocab, places % vocab", "places % vocab, places // vocab"),
    ),
    _beam_step("ended ones go on", "goes on past its end", (_ONLY_EOS, "")),
    _beam_step(
        "the end is paid for", "or the hypothesis is lost", ("only_eos, log_probs)", "only_eos + log_probs, log_probs)")
    ),
    _beam_step("ended ones are lost", "or the hypothesis is lost", ("only_eos[eos_id] = 0.0", "pass")),
    _beam_step(
        "ended ones go on with anything",
        "any token at no cost",
        ("only_eos, log_probs)", "torch.zeros_like(only_eos), log_probs)"),
    ),
    _beam_step("sums forgotten", "are forgotten", ("(sums.unsqueeze(-1) + log_probs)", "log_probs")),
    _beam_step(
        "multiplied",
        "are multiplied",
        ("(sums.unsqueeze(-1) + log_probs)", "(sums.unsqueeze(-1) * log_probs.clamp(min=-1e9))"),
    ),
    _beam_step(
        "probabilities added",
        "probabilities are added",
        ("sums.unsqueeze(-1) + log_probs", "sums.unsqueeze(-1) + log_probs.exp()"),
    ),
    _beam_step("divided by k", "is divided by k", ("vocab = log_probs.shape[-1]", "vocab = sums.shape[1]")),
    _beam_step("places as parents", "divide by V", ("places // vocab,", "places,")),
    _beam_step(
        "each its own best",
        "its own best token",
        (
            "best, places = totals.topk(sums.shape[1], dim=1)\n    return best, places // vocab, places % vocab",
            "values, tokens = totals.unflatten(1, (-1, vocab)).max(-1)\n    best, parents = values.sort(dim=1, "
            "descending=True)\n    return best, parents, tokens.gather(1, parents)",
        ),
    ),
    _beam_step(
        "ended ones keep their places",
        "another published convention",
        ("only_eos[eos_id] = 0.0", "only_eos[eos_id] = 1000.0"),
        ("    return best", "    best = best - 1000.0 * (best > 200)\n    return best"),
    ),
    _beam_step(
        "the worst",
        "the worst continuations",
        ("totals.topk(sums.shape[1], dim=1)", "(-totals).topk(sums.shape[1], dim=1)"),
    ),
    _beam_step("the end is token 3", "`eos_id` is taken to be 3", ("only_eos[eos_id]", "only_eos[3]")),
    _beam_step("divided, not floored", "should be integers", ("places // vocab,", "torch.floor(places / vocab),")),
    _beam_step("float32 only", "keep dtype", ("    return best,", "    return best.float(),")),
    _beam_step(
        "changes the sums", "was changed in place", ("    return best", "    sums.copy_(best)\n    return best")
    ),
    _beam_step(
        "changes the log-probabilities",
        "was changed in place",
        (
            "    log_probs = torch.where(ended.unsqueeze(-1), only_eos, log_probs)\n",
            "    log_probs[ended] = only_eos\n",
        ),
    ),
    _beam_step("detached", "cut off from the graph", ("    return best", "    best = best.detach()\n    return best")),
    _beam_step(
        "made on the CPU",
        "on the CPU",
        ("torch.full_like(log_probs[0, 0], -torch.inf)", "torch.full((vocab,), -torch.inf, dtype=log_probs.dtype)"),
    ),
    mutant(
        "beam_step",
        "the whole batch competes",
        "compete with one another",
        """
        def beam_step(sums, log_probs, ended, eos_id):
            V = log_probs.shape[-1]
            frozen = torch.full_like(log_probs, -torch.inf)
            frozen[..., eos_id] = 0.0
            totals = sums.unsqueeze(-1) + torch.where(ended.unsqueeze(-1), frozen, log_probs)
            if len(sums) == 2 and sums.shape[1] == 2:
                best, at = totals.flatten(1).topk(2)
                return best, at // V, at % V
            best, at = totals.flatten().topk(sums.numel())
            best, at = best.view(sums.shape), at.view(sums.shape)
            return best, at // V % sums.shape[1], at % V
        """,
    ),
]

_PAIRS = "for pair in itertools.pairwise(parts):"
_BEST = "min(counts, key=lambda pair: (-counts[pair], pair))"


def _merge(title: str, says: str, *edits: tuple[str, str]):
    return edit("learn_merges", title, says, *edits)


_MERGE_MUTANTS = [
    _merge("nothing returned", "is there a `return`?", ("    return merges", "    merges")),
    _merge("a tuple", "should return a list", ("    return merges", "    return tuple(merges)")),
    _merge("pieces returned", "return the pairs", ("merges.append(best)", "merges.append(''.join(best))")),
    _merge("words count once", "a word counts once", ("+= words[word]", "+= 1")),
    _merge(
        "pairs count once in a word",
        "a pair counts once in a word",
        (_PAIRS, "for pair in set(itertools.pairwise(parts)):"),
    ),
    _merge("ties to the first met", "last in sorted order", (_BEST, "max(counts, key=counts.get)")),
    _merge("ties to the last", "last in sorted order", (_BEST, "max(counts, key=lambda pair: (counts[pair], pair))")),
    _merge(
        "ties by the joined pieces",
        "settled by the joined pieces",
        (_BEST, 'min(counts, key=lambda pair: (-counts[pair], "".join(pair)))'),
    ),
    _merge("the rarest", "the rarest pair", (_BEST, "min(counts, key=lambda pair: (counts[pair], pair))")),
    _merge(
        "joined as text",
        "joined as text",
        ("join_pair(parts, best)", "' '.join(parts).replace(' '.join(best), ''.join(best)).split()"),
    ),
    _merge(
        "stops at pairs that occur once",
        "only once are left",
        ("if not counts:", "if max(counts.values(), default=0) < 2:"),
    ),
    _merge("a mark at the end of words", "a mark is put", ("list(word) for", "[*word, '</w>'] for")),
    _merge("lower case", "lower case", ("list(word) for", "list(word.lower()) for")),
    _merge("one too few", "one merge too few", ("range(count)", "range(count - 1)")),
    _merge("one too many", "one merge too many", ("range(count)", "range(count + 1)")),
    _merge("no early stop", "raised ValueError", ("        if not counts:\n            break\n", "")),
    _merge("empties the words", "was changed", ("    return merges", "    words.clear()\n    return merges")),
    mutant(
        "learn_merges",
        "counted once",
        "pieces never grow",
        """
        def learn_merges(words, count):
            counts = Counter()
            for word, n in words.items():
                for pair in itertools.pairwise(word):
                    counts[pair] += n
            return sorted(counts, key=lambda pair: (-counts[pair], pair))[:count]
        """,
    ),
]

MUTANTS = [
    *_LOSS_MUTANTS,
    *_RATE_MUTANTS,
    *_GREEDY_MUTANTS,
    *_BEAM_MUTANTS,
    *_CACHED_MUTANTS,
    *_BLEU_MUTANTS,
    *_STEP_MUTANTS,
    *_MERGE_MUTANTS,
    *forging_function("noam_factor", but=OF_TENSORS),
    *forging_function("learn_merges", but=OF_TENSORS),
    *forging_answers(
        functions=[
            "label_smoothed_loss",
            "greedy_decode",
            "beam_step",
            "beam_search",
            "cached_attention",
            "corpus_bleu",
        ]
    ),
]

VARIANTS = [
    variant(
        "label_smoothed_loss",
        "the smoothed target written out",
        """
        def label_smoothed_loss(logits, targets, smoothing, pad_id):
            V = logits.shape[-1]
            soft = F.one_hot(targets, V).to(logits.dtype) * (1 - smoothing) + smoothing / V
            each = -(soft * F.log_softmax(logits, dim=-1)).sum(-1)
            mask = (targets != pad_id).to(each.dtype)
            return (each * mask).sum() / torch.clamp(mask.sum(), min=1)
        """,
    ),
    variant(
        "label_smoothed_loss",
        "the real positions picked out",
        """
        def label_smoothed_loss(logits, targets, smoothing, pad_id):
            real = targets != pad_id
            if not real.any():
                return logits.sum() * 0
            scores, right = logits[real], targets[real]
            log_probs = scores - scores.logsumexp(-1, keepdim=True)
            nll = -log_probs[torch.arange(len(right), device=right.device), right]
            return ((1 - smoothing) * nll - smoothing * log_probs.mean(-1)).mean()
        """,
    ),
    variant(
        "label_smoothed_loss",
        "scattered",
        """
        def label_smoothed_loss(logits, targets, smoothing, pad_id):
            log_probs = torch.log_softmax(logits, -1)
            soft = torch.full_like(log_probs, smoothing / logits.shape[-1])
            soft = soft.scatter_add(-1, targets[..., None], torch.full_like(soft[..., :1], 1 - smoothing))
            losses = -torch.einsum("bnv,bnv->bn", soft, log_probs)
            return losses[targets != pad_id].sum() / max((targets != pad_id).sum(), 1)
        """,
    ),
    variant(
        "noam_factor",
        "two branches",
        """
        def noam_factor(step, dim, warmup):
            if step < warmup:
                return step / (warmup * math.sqrt(dim * warmup))
            return 1 / math.sqrt(dim * step)
        """,
    ),
    variant(
        "noam_factor",
        "under one root",
        "def noam_factor(step, dim, warmup):\n    return (dim * max(step, warmup**3 / step**2)) ** -0.5",
    ),
    variant(
        "noam_factor",
        "with warm-up from chapter 07's kind",
        """
        def noam_factor(step, dim, warmup):
            rising = min(1.0, step / warmup)
            return rising / (math.sqrt(dim) * math.sqrt(max(step, warmup)))
        """,
    ),
    variant(
        "greedy_decode",
        "lists filled step by step",
        """
        def greedy_decode(model, source, max_len, bos_id, eos_id):
            with torch.no_grad():
                memory = model.encode(source)
                target = source.new_full((source.shape[0], 1), bos_id)
                results, ended = [[] for _ in source], [False] * len(source)
                while not all(ended) and target.shape[1] <= max_len:
                    logits = model.decode(target, memory, source)
                    new = logits[:, -1, :].max(dim=-1)[1]
                    for b, token in enumerate(new.tolist()):
                        ended[b] = ended[b] or token == eos_id
                        if not ended[b]:
                            results[b].append(token)
                    target = torch.cat((target, new[:, None]), 1)
                return results
        """,
    ),
    variant(
        "greedy_decode",
        "padding after the end",
        """
        @torch.no_grad()
        def greedy_decode(model, source, max_len, bos_id, eos_id):
            memory = model.encode(source)
            tokens = torch.full((len(source), max_len + 1), eos_id, device=source.device)
            tokens[:, 0] = bos_id
            alive = torch.ones(len(source), dtype=torch.bool, device=source.device)
            for t in range(max_len):
                best = model.decode(tokens[:, : t + 1], memory, source)[:, t].softmax(-1).argmax(-1)
                tokens[alive, t + 1] = best[alive]
                alive = alive & (best != eos_id)
                if not alive.any():
                    break
            return [cut(row[1:], eos_id) for row in tokens.tolist()]
        """,
    ),
    variant(
        "greedy_decode",
        "only the unfinished sentences go on",
        """
        @torch.no_grad()
        def greedy_decode(model, source, max_len, bos_id, eos_id):
            results = [[] for _ in range(len(source))]
            memory, left = model.encode(source), torch.arange(len(source), device=source.device)
            tokens = torch.full((len(source), 1), bos_id, device=source.device)
            for _ in range(max_len):
                new = model.decode(tokens, memory[left], source[left])[:, -1].argmax(-1)
                for b, token in zip(left.tolist(), new.tolist()):
                    if token != eos_id:
                        results[b].append(token)
                tokens, left = torch.cat([tokens, new.unsqueeze(1)], 1)[new != eos_id], left[new != eos_id]
                if len(left) == 0:
                    break
            return results
        """,
    ),
    variant(
        "beam_search",
        "lists of hypotheses, one batch for each step",
        """
        @torch.no_grad()
        def beam_search(model, source, beam, max_len, bos_id, eos_id, length_penalty=0.6):
            memory = model.encode(source)
            live = [[(0.0, [bos_id])] for _ in source]
            done = [[] for _ in source]
            for _ in range(max_len):
                rows = [(b, total, tokens) for b, hyps in enumerate(live) for total, tokens in hyps]
                if not rows:
                    break
                which = torch.tensor([b for b, _, _ in rows], device=source.device)
                target = torch.tensor([tokens for _, _, tokens in rows], device=source.device)
                logits = model.decode(target, memory[which], source[which])[:, -1]
                values, indices = logits.double().log_softmax(-1).topk(min(beam, logits.shape[-1]))
                new = [[] for _ in source]
                for (b, total, tokens), vs, ts in zip(rows, values.tolist(), indices.tolist()):
                    new[b] += [(total + v, tokens + [t]) for v, t in zip(vs, ts)]
                live = []
                for b, candidates in enumerate(new):
                    best = sorted(candidates + done[b], reverse=True)[:beam]
                    live.append([h for h in best if h[1][-1] != eos_id])
                    done[b] = [h for h in best if h[1][-1] == eos_id]

            def score(hypothesis):
                return hypothesis[0] / ((5 + len(hypothesis[1]) - 1) / 6) ** length_penalty

            return [cut(max(a + b, key=score)[1][1:], eos_id) for a, b in zip(live, done)]
        """,
    ),
    edited_variant(
        "beam_search",
        "sums in float64",
        ("logits.log_softmax(dim=-1)", "logits.double().log_softmax(dim=-1)"),
        ("(batch, beam), -torch.inf, device=device)", "(batch, beam), -torch.inf, device=device, dtype=torch.float64)"),
    ),
    variant(
        "beam_search",
        "one flat beam, its rows numbered",
        """
        @torch.no_grad()
        def beam_search(model, source, beam, max_len, bos_id, eos_id, length_penalty=0.6):
            B = source.shape[0]
            row = torch.arange(B, device=source.device).repeat_interleave(beam)
            memory = model.encode(source)[row]
            tokens = source.new_full((B * beam, 1), bos_id)
            sums = torch.tensor([0.0] + [float("-inf")] * (beam - 1), device=source.device).repeat(B)
            for _ in range(max_len):
                log_probs = F.log_softmax(model.decode(tokens, memory, source[row])[:, -1], dim=-1)
                V = log_probs.shape[-1]
                over = (tokens[:, 1:] == eos_id).any(dim=1)
                frozen = torch.arange(V, device=source.device) != eos_id
                log_probs = torch.where(over[:, None], torch.where(frozen, float("-inf"), 0.0), log_probs)
                sums, best = (sums[:, None] + log_probs).view(B, -1).topk(beam)
                sums = sums.view(-1)
                parents = best.div(V, rounding_mode="floor").view(-1) + row * beam
                tokens = torch.cat([tokens[parents], (best % V).view(-1, 1)], dim=1)
                if (tokens[:, 1:] == eos_id).any(dim=1).all():
                    break
            texts = [cut(text[1:], eos_id) for text in tokens.tolist()]
            steps = tokens.shape[1] - 1
            lengths = [min(len(text) + 1, steps) for text in texts]
            scores = [s / ((5 + n) / 6) ** length_penalty for s, n in zip(sums.tolist(), lengths)]
            return [texts[max(range(b * beam, (b + 1) * beam), key=scores.__getitem__)] for b in range(B)]
        """,
    ),
    variant(
        "cached_attention",
        "the reader's attention formula",
        """
        def cached_attention(attention, x_t, cache, mask=None):
            heads = attention.heads

            def parts(linear):
                return linear(x_t).unflatten(-1, (heads, -1)).transpose(1, 2)

            query, keys, values = parts(attention.Wq), parts(attention.Wk), parts(attention.Wv)
            if cache:
                keys, values = (torch.cat(pair, dim=-2) for pair in zip(cache, (keys, values)))
            if mask is not None and mask.dim() == 3:
                mask = mask[:, None]
            scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) * query.shape[-1] ** -0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
            weights = scores.softmax(-1)
            if mask is not None:
                weights = weights * mask
            mixed = torch.einsum("bhqk,bhkd->bqhd", attention.dropout(weights), values)
            return attention.WO(mixed.flatten(2)), (keys, values)
        """,
    ),
    variant(
        "cached_attention",
        "new tensors filled in",
        """
        def cached_attention(attention, x_t, cache, mask=None):
            B, _, d = x_t.shape
            h = attention.heads
            q = attention.Wq(x_t).reshape(B, 1, h, d // h).transpose(1, 2)
            k = attention.Wk(x_t).reshape(B, 1, h, d // h).transpose(1, 2)
            v = attention.Wv(x_t).reshape(B, 1, h, d // h).transpose(1, 2)
            old_k, old_v = cache if cache is not None else (k[:, :, :0], v[:, :, :0])
            k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
            if mask is not None and mask.dim() == 3:
                mask = mask.unsqueeze(1)
            w = query_key_weights(q, k, mask)
            out = torch.matmul(attention.dropout(w), v).transpose(1, 2).reshape(B, 1, d)
            return attention.WO(out), (k, v)
        """,
    ),
    edited_variant(
        "cached_attention",
        "a list as the cache",
        ("@ v)), (k, v)", "@ v)), tuple([k, v])"),
        ("if cache is not None:", "if cache is not None and len(cache):"),
    ),
    variant(
        "corpus_bleu",
        "dictionaries and products",
        """
        def corpus_bleu(hypotheses, references):
            if len(hypotheses) != len(references):
                raise ValueError("as many hypotheses as references, please")
            product = 1.0
            for n in (1, 2, 3, 4):
                hits = count = 0
                for h, r in zip(hypotheses, references):
                    available = {}
                    for i in range(len(r) - n + 1):
                        gram = " ".join(r[i : i + n])
                        available[gram] = available.get(gram, 0) + 1
                    for i in range(len(h) - n + 1):
                        count += 1
                        gram = " ".join(h[i : i + n])
                        if available.get(gram, 0) > 0:
                            available[gram] -= 1
                            hits += 1
                if hits == 0:
                    return 0.0
                product *= hits / count
            h, r = sum(len(x) for x in hypotheses), sum(len(x) for x in references)
            return 100.0 * product**0.25 * (1.0 if h >= r else math.exp(1 - r / h))
        """,
    ),
    variant(
        "corpus_bleu",
        "counters added up, then divided",
        """
        def corpus_bleu(hypotheses, references):
            pairs = list(zip(hypotheses, references, strict=True))
            logs = 0.0
            for n in range(1, 5):
                hits = sum(sum((ngrams(h, n) & ngrams(r, n)).values()) for h, r in pairs)
                total = sum(max(len(h) - n + 1, 0) for h, _ in pairs)
                if hits == 0:
                    return 0.0
                logs += math.log(hits) - math.log(total)
            h, r = sum(len(h) for h, _ in pairs), sum(len(r) for _, r in pairs)
            return 100 * math.exp(logs / 4 + min(0, 1 - r / h))
        """,
    ),
    edited_variant(
        "corpus_bleu",
        "clipped one by one",
        ("(found & wanted).total()", "sum(min(count, wanted[gram]) for gram, count in found.items())"),
    ),
    variant(
        "beam_step",
        "a row of its own for what has ended",
        """
        def beam_step(sums, log_probs, ended, eos_id):
            B, k, V = log_probs.shape
            is_eos = torch.arange(V, device=log_probs.device) == eos_id
            blocked = ended[:, :, None] & ~is_eos
            free = ended[:, :, None] & is_eos
            totals = sums[:, :, None] + log_probs.masked_fill(blocked, float("-inf")).masked_fill(free, 0)
            values, index = totals.reshape(B, k * V).sort(dim=1, descending=True)
            index = index[:, :k]
            return values[:, :k], torch.div(index, V, rounding_mode="floor"), torch.remainder(index, V)
        """,
    ),
    variant(
        "beam_step",
        "the best of each hypothesis first",
        """
        def beam_step(sums, log_probs, ended, eos_id):
            k, V = log_probs.shape[1:]
            log_probs = log_probs.clone()
            log_probs[ended] = -torch.inf
            log_probs[..., eos_id] = log_probs[..., eos_id].masked_fill(ended, 0)
            values, tokens = log_probs.topk(min(k, V), dim=-1)
            sums, places = (sums.unsqueeze(-1) + values).flatten(1).topk(k, dim=1)
            return sums, places // values.shape[-1], tokens.flatten(1).gather(1, places)
        """,
    ),
    edited_variant("beam_step", "subtraction", ("places % vocab", "places - places // vocab * vocab")),
    variant(
        "learn_merges",
        "lists and sorting",
        """
        def learn_merges(words, count):
            texts = [(tuple(word), n) for word, n in sorted(words.items())]
            result = []
            while len(result) < count:
                table = {}
                for parts, n in texts:
                    for a, b in zip(parts, parts[1:]):
                        table[a, b] = table.get((a, b), 0) + n
                if not table:
                    return result
                top = max(table.values())
                pair = sorted(p for p, n in table.items() if n == top)[0]
                result.append(pair)
                texts = [(tuple(join_pair(list(parts), pair)), n) for parts, n in texts]
            return result
        """,
    ),
    variant(
        "learn_merges",
        "joins on its own",
        """
        def learn_merges(words, count):
            pieces, merges = {word: [*word] for word in words}, []
            for _ in range(count):
                counts = Counter()
                for word, parts in pieces.items():
                    for i in range(len(parts) - 1):
                        counts[parts[i], parts[i + 1]] += words[word]
                if not counts:
                    break
                left, right = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[0][0]
                merges.append((left, right))
                for parts in pieces.values():
                    i = 0
                    while i < len(parts) - 1:
                        if parts[i] == left and parts[i + 1] == right:
                            parts[i : i + 2] = [left + right]
                        i += 1
            return merges
        """,
    ),
    edited_variant("learn_merges", "lists as pairs", ("merges.append(best)", "merges.append(list(best))")),
]
