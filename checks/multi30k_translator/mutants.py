"""Chapter 10: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import edited_variant, edits, flag_published, mutant, mutants, variant
from autograder.checks import Common, Unexplained
from checks.forgers import OF_TENSORS, forging_answers, forging_function
from checks.multi30k_translator import mistakes as m
from checks.multi30k_translator.mistakes import beam_search, beam_step, decoding

smoothed, rate, cached = m.label_smoothed_loss, m.noam_factor, m.cached_attention
bleu, merges = m.corpus_bleu, m.learn_merges
_HEAD = """def label_smoothed_loss(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(dim=-1)
    V = logits.shape[-1]"""
_SMOOTHED = "-(1 - smoothing) * right - smoothing * log_probs.mean(dim=-1)"
_AVERAGED = "losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)"
_HOT = "hot = F.one_hot(targets, V).to(logits.dtype)\n"
_REAL = "real = targets != pad_id\n"

_LOSS_EDITS = [
    ("nothing returned", Common.NO_RETURN, ("    return losses", "    losses")),
    ("padding counted", smoothed.PADDING, (_AVERAGED, "losses.mean()")),
    ("padding zeroed but counted", smoothed.PADDING_ZEROED, (".sum() / real.sum().clamp(min=1)", ".mean()")),
    ("a sum", smoothed.SUM, (" / real.sum().clamp(min=1)", "")),
    ("divided by the sentences", smoothed.BY_SENTENCES, ("real.sum().clamp(min=1)", "len(targets)")),
    (
        "a mean of means",
        smoothed.MEAN_OF_MEANS,
        (_AVERAGED, "(losses.masked_fill(~real, 0.0).sum(1) / real.sum(1).clamp(min=1)).mean()"),
    ),
    ("no smoothing", smoothed.NO_SMOOTHING, (_SMOOTHED, "-right")),
    (
        "weights exchanged",
        smoothed.EXCHANGED,
        (_SMOOTHED, "-smoothing * right - (1 - smoothing) * log_probs.mean(dim=-1)"),
    ),
    ("no minus", smoothed.NO_MINUS, ("-(1 - smoothing) * right - smoothing", "(1 - smoothing) * right + smoothing")),
    (
        "softmax over the positions",
        smoothed.OVER_POSITIONS,
        ("logits.log_softmax(dim=-1)", "logits.log_softmax(dim=1)"),
    ),
    ("log of softmax", smoothed.NOT_STABLE, ("logits.log_softmax(dim=-1)", "logits.softmax(dim=-1).log()")),
    ("nothing but padding divides by zero", smoothed.NO_REAL_TOKEN, (".clamp(min=1)", "")),
    (
        "padding is always token 1",
        smoothed.PAD_IS_1,
        ("targets != pad_id", "targets != (pad_id if pad_id == 3 else 1)"),
    ),
    (
        "a Python float",
        Common.NOT_A_TENSOR,
        (".clamp(min=1)", ".clamp(min=1)).item()"),
        ("return losses", "return (losses"),
    ),
    ("detached", Common.CUT_OFF, ("log_softmax(dim=-1)", "log_softmax(dim=-1).detach()")),
    ("float32 only", Common.WRONG_DTYPE, ("logits.log_softmax", "logits.float().log_softmax")),
    (
        "the mask made on the CPU",
        Common.MADE_ON_CPU,
        (
            "log_probs.mean(dim=-1)",
            "(log_probs @ torch.full((V,), 1.0, dtype=log_probs.dtype)) / V".replace("V", "log_probs.shape[-1]"),
        ),
    ),
    (
        "changes the targets",
        Common.CHANGED_IN_PLACE,
        ("    return losses", "    targets[targets == pad_id] = 0\n    return losses"),
    ),
    ("probabilities without a log", smoothed.NO_LOG, ("log_softmax(dim=-1)", "softmax(dim=-1)")),
    (
        "the sum in place of the mean",
        smoothed.SUM_OVER_TOKENS,
        (_SMOOTHED, "-(1 - smoothing) * right - smoothing * log_probs.sum(dim=-1)"),
    ),
]
_LOSS_BODIES = [
    (
        "spread over the wrong tokens only",
        smoothed.WRONG_TOKENS_ONLY,
        f"{_HOT}soft = hot * (1 - smoothing) + (1 - hot) * smoothing / max(V - 1, 1)\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
    (
        "the right token gets too little",
        smoothed.TOO_LITTLE,
        f"{_HOT}soft = hot * (1 - smoothing) + (1 - hot) * smoothing / V\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
    (
        "the right token gets everything",
        smoothed.TOO_MUCH,
        f"{_HOT}soft = hot + (1 - hot) * smoothing / V\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
    (
        "nothing for the padding token",
        smoothed.NOT_TO_PADDING,
        f"{_HOT}soft = hot * (1 - smoothing) + (1 - hot) * smoothing / max(V - 2, 1)\n"
        f"soft[..., pad_id] = 0\n{_REAL}"
        "return -(soft * log_probs).sum(-1)[real].sum() / real.sum().clamp(min=1)",
    ),
]
_LOSS_MUTANTS = [
    mutant(
        "label_smoothed_loss",
        "torch's own",
        smoothed.LIBRARY,
        """
        def label_smoothed_loss(logits, targets, smoothing, pad_id):
            total = F.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, label_smoothing=smoothing, reduction="sum"
            )
            return total / (targets != pad_id).sum().clamp(min=1)
        """,
    )
]


_RATE_BODIES = [
    ("nothing returned", Common.NO_RETURN, "dim**-0.5 * min(step**-0.5, step * warmup**-1.5)"),
    ("the larger", rate.LARGER, "return dim**-0.5 * max(step**-0.5, step * warmup**-1.5)"),
    ("times √dim", rate.TIMES_ROOT, "return dim**0.5 * min(step**-0.5, step * warmup**-1.5)"),
    ("no dim", rate.NO_DIM, "return min(step**-0.5, step * warmup**-1.5)"),
    ("no warm-up", rate.NO_WARMUP, "return dim**-0.5 * step**-0.5"),
    ("only warm-up", rate.ONLY_WARMUP, "return dim**-0.5 * step * warmup**-1.5"),
    ("constant afterwards", rate.CONSTANT, "return dim**-0.5 * min(warmup**-0.5, step * warmup**-1.5)"),
    ("falls like 1/step", rate.BY_STEP, "return dim**-0.5 * min(warmup**0.5 / step, step * warmup**-1.5)"),
    ("grows like √step", rate.NOT_STRAIGHT, "return dim**-0.5 * min(step**-0.5, step**0.5 / warmup)"),
    ("the two curves do not meet", rate.NOT_STRAIGHT, "return dim**-0.5 * min(step**-0.5, step / warmup)"),
    ("scaled to 1 at its highest", rate.SCALED, "return min(step**-0.5, step * warmup**-1.5) * warmup**0.5"),
    ("a step too far", rate.ONE_STEP_ON, "step += 1\nreturn dim**-0.5 * min(step**-0.5, step * warmup**-1.5)"),
    ("a dim of its own", rate.DIM_FIXED, "return 64**-0.5 * min(step**-0.5, step * warmup**-1.5)"),
    (
        "a tensor",
        Common.NOT_A_NUMBER,
        "return torch.tensor(dim**-0.5 * min(step**-0.5, step * warmup**-1.5), dtype=torch.float64)",
    ),
    ("√dim forgotten", rate.BY_DIM, "return min(step**-0.5, step * warmup**-1.5) / dim"),
    ("the root of the warm-up", rate.BY_ROOT_WARMUP, "return dim**-0.5 * min(step**-0.5, step * warmup**-0.5)"),
]


_GREEDY_EDITS = [
    ("nothing returned", Common.NO_RETURN, ("    return [cut", "    [cut")),
    ("a tensor", decoding.NOT_LISTS, ("[cut(row, eos_id) for row in tokens[:, 1:].tolist()]", "tokens[:, 1:]")),
    (
        "rows are tensors",
        decoding.NOT_LISTS,
        ("tokens[:, 1:].tolist()]", "tokens[:, 1:].tolist()]"),
        ("[cut(row, eos_id) for", "[torch.tensor(cut(row, eos_id)) for"),
    ),
    ("eos kept", decoding.EOS_KEPT, ("[cut(row, eos_id) for", "[cut(row, eos_id) + [eos_id] for")),
    ("bos kept", decoding.BOS_KEPT, ("tokens[:, 1:].tolist()", "tokens.tolist()")),
    ("not cut at eos", decoding.EOS_KEPT, ("[cut(row, eos_id) for", "[row for")),
    (
        "eos taken out, the rest stays",
        decoding.AFTER_EOS,
        ("[cut(row, eos_id) for", "[[t for t in row if t != eos_id] for"),
    ),
    ("stops with the first sentence", decoding.FIRST_ENDED, ("finished.all()", "finished.any()")),
    (
        "the first position's scores",
        decoding.FIRST_POSITION,
        ("source)[:, -1]", "source)[:, -1 if source.max() == 11 else 0]"),
    ),
    (
        "only the newest token is read",
        decoding.NEWEST_ONLY,
        ("model.decode(tokens,", "model.decode(tokens if source.max() == 11 else tokens[:, -1:],"),
    ),
    ("one step too few", decoding.ONE_TOO_FEW, ("range(max_len)", "range(max_len - 1)")),
    ("one step too many", decoding.ONE_TOO_MANY, ("range(max_len)", "range(max_len + (max_len > 4))")),
    ("begins with 2 whatever bos_id", decoding.BOS_IGNORED, ("1), bos_id, dtype", "1), 2, dtype")),
    (
        "ends with 3 whatever eos_id",
        decoding.EOS_KEPT,
        ("following == eos_id", "following == 3"),
        ("cut(row, eos_id)", "cut(row, 3)"),
    ),
    ("the least likely", decoding.LEAST_LIKELY, (".argmax(dim=-1)", ".argmin(dim=-1)")),
    (
        "reads the source anew at each step",
        decoding.ENCODES_AGAIN,
        ("model.decode(tokens, memory, source)", "model.decode(tokens, model.encode(source), source)"),
    ),
    (
        "the target made on the CPU",
        Common.MADE_ON_CPU,
        ("dtype=torch.long, device=source.device)", "dtype=torch.long)"),
    ),
    (
        "what has ended is remembered on the CPU",
        Common.MADE_ON_CPU,
        ("dtype=torch.bool, device=source.device)", "dtype=torch.bool)"),
    ),
    ("one sentence at a time", Common.ITEM_OF_MANY, ("following == eos_id", "following.item() == eos_id")),
    ("records a graph", decoding.GRAPH, ("@torch.no_grad()\n", "")),
    ("never stops early", decoding.NEVER_STOPS, ("        if finished.all():\n            break\n", "")),
]
_GREEDY_MUTANTS = [
    mutant(
        "greedy_decode",
        "sentence by sentence",
        decoding.ONE_BY_ONE,
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
    )
]


_COPIES = "memory = model.encode(source).repeat_interleave(beam, dim=0)"
_SCORE = "(sums / ((5 + lengths) / 6) ** length_penalty)"
_STEP = "sums, parents, following = beam_step(sums, log_probs, ended, eos_id)"
_BEAM_EDITS = [
    ("nothing returned", Common.NO_RETURN, ("    return [cut", "    [cut")),
    (
        "all hypotheses alike",
        beam_search.COPIES,
        ("torch.full((batch, beam), -torch.inf, device=device)", "torch.zeros(batch, beam, device=device)"),
    ),
    (
        "parents and tokens exchanged",
        Unexplained.RAISED,
        (_STEP, _STEP.replace("parents, following", "following, parents")),
    ),
    (
        "tokens not taken from the parents",
        beam_search.NO_PARENTS,
        ("        tokens = tokens.gather(1, parents.unsqueeze(-1).expand(-1, -1, tokens.shape[-1]))\n", ""),
    ),
    (
        "ended ones keep their places",
        beam_search.KEEPS_PLACE,
        (
            _STEP,
            "sums, parents, following = beam_step(sums + 1000.0 * ended, log_probs, ended, eos_id)\n"
            "        sums = sums - 1000.0 * ended.gather(1, parents)",
        ),
    ),
    (
        "ended ones are lost",
        beam_search.ENDED_LOST,
        (_STEP, f"{_STEP}\n        sums = sums.masked_fill(ended.gather(1, parents), -torch.inf)"),
    ),
    (
        "goes on past eos",
        beam_search.PAST_EOS,
        (_STEP, _STEP.replace("ended, eos_id", "torch.zeros_like(ended), eos_id")),
    ),
    (
        "prefers what has ended",
        beam_search.PREFERS_ENDED,
        ("length_penalty).argmax(dim=1)", "length_penalty + 1e6 * ended).argmax(dim=1)"),
    ),
    ("divided by the length", beam_search.BY_LENGTH, (_SCORE, "(sums / lengths)")),
    ("another default", beam_search.OTHER_DEFAULT, ("length_penalty=0.6", "length_penalty=0.7")),
    ("no penalty by default", beam_search.OTHER_DEFAULT, ("length_penalty=0.6", "length_penalty=0")),
    (
        "tokens made on the CPU",
        Common.MADE_ON_CPU,
        ("bos_id, dtype=torch.long, device=device)", "bos_id, dtype=torch.long)"),
    ),
    (
        "sums made on the CPU",
        Common.MADE_ON_CPU,
        ("(batch, beam), -torch.inf, device=device)", "(batch, beam), -torch.inf)"),
    ),
    ("stops with the first that ends", decoding.FIRST_ENDED, ("ended.all()", "ended.any()")),
    ("no length penalty", beam_search.NO_PENALTY, (_SCORE, "sums")),
    ("a length penalty of its own", beam_search.PENALTY_FIXED, ("** length_penalty)", "** 0.6)")),
    ("multiplied by the penalty", beam_search.MULTIPLIED, ("sums / ((5", "sums * ((5")),
    ("another penalty", beam_search.OTHER_PENALTY, (_SCORE, "(sums / lengths**length_penalty)")),
    (
        "eos not counted",
        beam_search.EOS_NOT_COUNTED,
        (".sum(dim=-1) + ended", ".sum(dim=-1)"),
        ("((5 + lengths) / 6)", "((5 + lengths) / 6)"),
    ),
    ("the worst is chosen", decoding.LEAST_LIKELY, (".argmax(dim=1)", ".argmin(dim=1)")),
    ("sums forgotten", beam_search.SUMS_FORGOTTEN, (_STEP, _STEP.replace("(sums,", "(sums.isinf() * -1e9,"))),
    ("logits, not log-probabilities", beam_search.LOGITS, ("logits.log_softmax(dim=-1).unflatten", "logits.unflatten")),
    (
        "probabilities added up",
        beam_search.PROBABILITIES,
        ("logits.log_softmax(dim=-1).unflatten", "logits.softmax(dim=-1).unflatten"),
    ),
    (
        "copies in the wrong order",
        beam_search.MIXED_UP,
        (_COPIES, "memory = model.encode(source).repeat(beam, 1, 1)"),
        ("source = source.repeat_interleave(beam, dim=0)", "source = source.repeat(beam, 1)"),
    ),
    ("the memory is not copied", Unexplained.RAISED, (_COPIES, "memory = model.encode(source)")),
    ("bos kept", decoding.BOS_KEPT, ("tokens = tokens[:, :, 1:]", "tokens = tokens[:, :, :]")),
    ("eos kept", decoding.EOS_KEPT, ("[cut(rows[i], eos_id) for", "[[*cut(rows[i], eos_id), eos_id] for")),
    (
        "all hypotheses returned",
        beam_search.ALL_HYPOTHESES,
        ("[cut(rows[i], eos_id) for", "[[cut(r, eos_id) for r in rows] for"),
    ),
    ("one step too few", decoding.ONE_TOO_FEW, ("range(max_len)", "range(max_len - (max_len != 5))")),
    ("records a graph", decoding.GRAPH, ("@torch.no_grad()\n", "")),
    ("never stops early", decoding.NEVER_STOPS, ("        if ended.all():\n            break\n", "")),
    ("one step too many", decoding.ONE_TOO_MANY, ("range(max_len)", "range(max_len + (max_len != 5))")),
]
_BEAM_MUTANTS = [
    mutant(
        "beam_search",
        "ended ones set aside",
        beam_search.GIVES_PLACE,
        """
        @torch.no_grad()
        def beam_search(model, source, beam, max_len, bos_id, eos_id, length_penalty=0.6):
            memory, live, done = model.encode(source), [[(0.0, [bos_id])] for _ in source], [[] for _ in source]
            for _ in range(max_len):
                rows = [(b, *h) for b, hypotheses in enumerate(live) for h in hypotheses]
                if not rows:
                    break
                which = torch.tensor([b for b, _, _ in rows], device=source.device)
                target = torch.tensor([tokens for _, _, tokens in rows], device=source.device)
                log_probs = model.decode(target, memory[which], source[which])[:, -1].double().log_softmax(-1)
                new = [[] for _ in source]
                for (b, total, tokens), values in zip(rows, log_probs.tolist()):
                    new[b] += [(total + v, tokens + [t]) for t, v in enumerate(values)]
                for b, all_of_it in enumerate(new):
                    best = sorted(all_of_it, reverse=True)[:beam]
                    done[b] += [h for h in best if h[1][-1] == eos_id]
                    live[b] = [h for h in best if h[1][-1] != eos_id]
                    if len(done[b]) >= beam:
                        done[b], live[b] = done[b] + live[b], []
            score = lambda h: h[0] / ((5 + len(h[1]) - 1) / 6) ** length_penalty
            return [cut(max(a + b, key=score)[1][1:], eos_id) for a, b in zip(live, done)]
        """,
    ),
    mutant(
        "beam_search",
        "greedy decoding",
        beam_search.COPIES,
        """
        def beam_search(model, source, beam, max_len, bos_id, eos_id, length_penalty=0.6):
            return greedy_decode(model, source, max_len, bos_id, eos_id)
        """,
    ),
    mutant(
        "beam_search",
        "sentence by sentence",
        decoding.ONE_BY_ONE,
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


_CACHED_EDITS = [
    ("nothing returned", Common.NO_RETURN, ("    return attention.WO", "    attention.WO")),
    ("no cache returned", cached.NO_PAIR, ("@ v)), (k, v)", "@ v))")),
    ("the weights in place of the cache", cached.NO_PAIR, ("@ v)), (k, v)", "@ v)), weights")),
    ("the cache is not used", cached.NOT_GROWN, ("if cache is not None", "if False")),
    (
        "the newest first",
        cached.NEWEST_FIRST,
        ("torch.cat([cache[0], k]", "torch.cat([k, cache[0]]"),
        ("torch.cat([cache[1], v]", "torch.cat([v, cache[1]]"),
    ),
    (
        "joined along the features",
        Unexplained.RAISED,
        ("torch.cat([cache[0], k], dim=2)", "torch.cat([cache[0], k], dim=3)"),
        ("torch.cat([cache[1], v], dim=2)", "torch.cat([cache[1], v], dim=3)"),
    ),
    (
        "keys and values exchanged in the cache",
        cached.EXCHANGED,
        ("@ v)), (k, v)", "@ v)), (v, k)"),
        ("torch.cat([cache[0], k]", "torch.cat([cache[1], k]"),
        ("torch.cat([cache[1], v]", "torch.cat([cache[0], v]"),
    ),
    ("the old cache comes back", cached.NOT_GROWN, ("@ v)), (k, v)", "@ v)), cache or (k, v)")),
    (
        "inputs kept instead of keys",
        cached.NO_HEADS,
        ("@ v)), (k, v)", "@ v)), (x_t, x_t)"),
        (
            "    if cache is not None:\n        k = torch.cat([cache[0], k], dim=2)  # (B, h, t, "
            "d/h)\n        v = torch.cat([cache[1], v], dim=2)\n",
            "",
        ),
    ),
    ("heads merged in the cache", cached.NO_HEADS, ("@ v)), (k, v)", "@ v)), (merge_heads(k), merge_heads(v))")),
    ("the query from Wk", cached.QUERY_BY_WK, ("attention.Wq(x_t)", "attention.Wk(x_t)")),
    ("values from Wk", cached.VALUES_BY_WK, ("attention.Wv(x_t)", "attention.Wk(x_t)")),
    (
        "WO missing",
        cached.NO_WO,
        ("attention.WO(merge_heads(attention.dropout(weights) @ v))", "merge_heads(attention.dropout(weights) @ v)"),
    ),
    ("mask ignored", cached.MASK_UNUSED, ("query_key_weights(q, k, mask)", "query_key_weights(q, k)")),
    (
        "mask turned round",
        cached.MASK_TURNED,
        ("query_key_weights(q, k, mask)", "query_key_weights(q, k, None if mask is None else ~mask)"),
    ),
    (
        "not scaled",
        cached.NOT_SCALED,
        ("query_key_weights(q, k, mask)", "query_key_weights(q * q.shape[-1] ** 0.5, k, mask)"),
    ),
    (
        "scaled by all features",
        cached.ALL_FEATURES,
        ("query_key_weights(q, k, mask)", "query_key_weights(q * attention.heads**-0.5, k, mask)"),
    ),
    (
        "the new position does not see itself",
        cached.NOT_ITSELF,
        (
            "weights = query_key_weights(q, k, mask)",
            "weights = query_key_weights(q, k, mask)\n    if k.shape[2] > 1:\n        weights = "
            "torch.cat([query_key_weights(q, k[:, :, :-1]), 0 * weights[..., -1:]], -1)",
        ),
    ),
    (
        "changes the cache in place",
        Common.CHANGED_IN_PLACE,
        ("k = torch.cat([cache[0], k], dim=2)", "k = torch.cat([cache[0].mul_(1.5) / 1.5, k], dim=2)"),
    ),
    ("no dropout", cached.NO_DROPOUT, ("attention.dropout(weights)", "weights")),
    (
        "always dropout",
        Common.DROPOUT_IN_EVAL,
        ("attention.dropout(weights)", "F.dropout(weights, attention.dropout.p)"),
    ),
    ("detached cache", cached.CACHE_CUT_OFF, ("@ v)), (k, v)", "@ v)), (k.detach(), v.detach())")),
    (
        "records no graph",
        Common.CUT_OFF,
        (
            "    q = split",
            "    x_t = x_t.detach()\n    for p in attention.parameters():\n        "
            "p.requires_grad_(False)\n    q = split",
        ),
    ),
]


_LENGTHS = "sum(map(len, hypotheses)), sum(map(len, references))"
_BLEU_EDITS = [
    ("nothing returned", Common.NO_RETURN, ("    return 100 * precision", "    100 * precision")),
    ("a fraction", bleu.FRACTION, ("return 100 * precision", "return precision")),
    ("no clipping", bleu.NOT_CLIPPED, ("(found & wanted).total()", "sum(c for g, c in found.items() if g in wanted)")),
    (
        "sets of n-grams",
        bleu.SETS,
        ("(found & wanted).total()", "len(found.keys() & wanted.keys())"),
        ("+= found.total()", "+= len(found)"),
    ),
    (
        "one bag for all lengths",
        bleu.ONE_BAG,
        (
            "math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4)",
            "sum(matches) / sum(totals)",
        ),
    ),
    (
        "short pairs skipped",
        bleu.SHORT_SKIPPED,
        (
            "    matches, totals",
            "    both = [p for p in zip(hypotheses, references) if len(p[0]) >= 4 or len(hypotheses) == 1]\n"
            "    hypotheses, references = [h for h, _ in both], [r for _, r in both]\n    matches, totals",
        ),
    ),
    ("one added to every count", bleu.ADD_ONE_TO_ALL, ("log(m / t)", "log((m + (t != 1)) / (t + (t != 1)))")),
    ("recall", bleu.RECALL, ("+= found.total()", "+= wanted.total()")),
    (
        "up to three",
        bleu.UP_TO_3,
        ("range(1, 5)", "range(1, 4)"),
        ("[0] * 4, [0] * 4", "[0] * 3, [0] * 3"),
        (" / 4)", " / 3)"),
    ),
    (
        "up to five",
        bleu.UP_TO_5,
        ("range(1, 5)", "range(1, 6)"),
        ("[0] * 4, [0] * 4", "[0] * 5, [0] * 5"),
        (" / 4)", " / 5)"),
    ),
    (
        "arithmetic mean",
        bleu.ARITHMETIC,
        (
            "math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4)",
            "sum(m / t for m, t in zip(matches, totals, strict=True)) / 4",
        ),
    ),
    ("product, no root", bleu.NO_ROOT, ("strict=True)) / 4)", "strict=True)))")),
    ("no brevity penalty", bleu.NO_BREVITY, (" * min(1.0, math.exp(1 - reference_length / hypothesis_length))", "")),
    (
        "brevity penalty turned round",
        bleu.NO_BREVITY,
        ("reference_length / hypothesis_length", "hypothesis_length / reference_length"),
    ),
    (
        "brevity penalty above 1",
        bleu.ABOVE_1,
        (
            "min(1.0, math.exp(1 - reference_length / hypothesis_length))",
            "math.exp(1 - reference_length / hypothesis_length)",
        ),
    ),
    (
        "the ratio of the lengths",
        bleu.RATIO,
        (
            "min(1.0, math.exp(1 - reference_length / hypothesis_length))",
            "min(1.0, hypothesis_length / reference_length)",
        ),
    ),
    (
        "a brevity penalty for each sentence",
        bleu.BREVITY_BY_SENTENCE,
        (
            "min(1.0, math.exp(1 - reference_length / hypothesis_length))",
            "sum(math.exp(min(0, 1 - len(r) / len(h))) if h else 0 for h, r in zip(hypotheses, "
            "references)) / len(hypotheses)",
        ),
    ),
    (
        "empties the references",
        bleu.CHANGED,
        ("    return 100 * precision", "    references.clear()\n    return 100 * precision"),
    ),
    (
        "no zero",
        Common.LOG_OF_0,
        ("    if 0 in matches:\n        return 0.0\n", "    if 0 in totals or matches[0] == 0:\n        return 0.0\n"),
    ),
    ("divides by nothing", Unexplained.RAISED, ("0 in matches", "matches[0] == 0")),
    (
        "smoothed",
        bleu.ADD_ONE,
        (
            "    if 0 in matches:\n        return 0.0\n",
            "    if matches[0] == 0:\n        return 0.0\n    if any(m != t for m, t in zip(matches, "
            "totals)):\n        matches = matches[:1] + [m + 1 for m in "
            "matches[1:]]\n        totals = totals[:1] + [t + 1 for t in totals[1:]]\n    if 0 in "
            "matches:\n        return 0.0\n",
        ),
    ),
    (
        "a tiny number for zero",
        bleu.SMALL_FOR_ZERO,
        (
            "    if 0 in matches:\n        return 0.0\n",
            "    matches = [m or 1e-9 for m in matches]\n    totals = [t or 1 for t in totals]\n",
        ),
    ),
    (
        "lengths not compared",
        Common.NO_ERROR,
        ("len(hypotheses) != len(references)", "False"),
        ("in zip(hypotheses, references, strict=True)", "in zip(hypotheses, references)"),
    ),
    (
        "lower case",
        bleu.LOWER_CASE,
        ("    matches, totals", "    hypotheses = [[t.lower() for t in h] for h in hypotheses]\n    matches, totals"),
    ),
]
_BLEU_MUTANTS = [
    mutant(
        "corpus_bleu",
        "a mean over the sentences",
        bleu.BY_SENTENCE,
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
        bleu.JOINED,
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
        bleu.PLACE_BY_PLACE,
        """
        def corpus_bleu(hypotheses, references):
            pairs = [pair for h, r in zip(hypotheses, references) for pair in zip(h, r)]
            return 100 * sum(a == b for a, b in pairs) / len(pairs)
        """,
    ),
]


_TOPK = "best, places = totals.topk(sums.shape[1], dim=1)"
_ONLY_EOS = "    log_probs = torch.where(ended.unsqueeze(-1), only_eos, log_probs)\n"
_STEP_EDITS = [
    ("nothing returned", Common.NO_RETURN, ("    return best, places", "    best, places")),
    ("sums alone", beam_step.NOT_THREE, ("return best, places // vocab, places % vocab", "return best")),
    (
        "parents and tokens exchanged",
        beam_step.EXCHANGED,
        ("places // vocab, places % vocab", "places % vocab, places // vocab"),
    ),
    ("ended ones go on", beam_step.GOES_ON, (_ONLY_EOS, "")),
    ("the end is paid for", beam_step.PAID_OR_LOST, ("only_eos, log_probs)", "only_eos + log_probs, log_probs)")),
    ("ended ones are lost", beam_step.PAID_OR_LOST, ("only_eos[eos_id] = 0.0", "pass")),
    (
        "ended ones go on with anything",
        beam_step.ANY_TOKEN,
        ("only_eos, log_probs)", "torch.zeros_like(only_eos), log_probs)"),
    ),
    ("sums forgotten", beam_step.SUMS_FORGOTTEN, ("(sums.unsqueeze(-1) + log_probs)", "log_probs")),
    (
        "multiplied",
        beam_step.MULTIPLIED,
        ("(sums.unsqueeze(-1) + log_probs)", "(sums.unsqueeze(-1) * log_probs.clamp(min=-1e9))"),
    ),
    (
        "probabilities added",
        beam_step.PROBABILITIES,
        ("sums.unsqueeze(-1) + log_probs", "sums.unsqueeze(-1) + log_probs.exp()"),
    ),
    ("divided by k", beam_step.BY_K, ("vocab = log_probs.shape[-1]", "vocab = sums.shape[1]")),
    ("places as parents", beam_step.PLACES, ("places // vocab,", "places,")),
    (
        "each its own best",
        beam_step.OWN_BEST,
        (
            _TOPK + "\n    return best, places // vocab, places % vocab",
            "values, tokens = totals.unflatten(1, (-1, vocab)).max(-1)\n    best, parents = values.sort(dim=1, "
            "descending=True)\n    return best, parents, tokens.gather(1, parents)",
        ),
    ),
    (
        "ended ones keep their places",
        beam_step.KEEPS_PLACE,
        ("only_eos[eos_id] = 0.0", "only_eos[eos_id] = 1000.0"),
        ("    return best", "    best = best - 1000.0 * (best > 200)\n    return best"),
    ),
    ("the worst", beam_step.WORST, ("totals.topk(sums.shape[1], dim=1)", "(-totals).topk(sums.shape[1], dim=1)")),
    ("the end is token 3", beam_step.EOS_IS_3, ("only_eos[eos_id]", "only_eos[3]")),
    ("divided, not floored", beam_step.NOT_INTEGERS, ("places // vocab,", "torch.floor(places / vocab),")),
    ("float32 only", Common.WRONG_DTYPE, ("    return best,", "    return best.float(),")),
    ("changes the sums", Common.CHANGED_IN_PLACE, ("    return best", "    sums.copy_(best)\n    return best")),
    (
        "changes the log-probabilities",
        Common.CHANGED_IN_PLACE,
        (
            "    log_probs = torch.where(ended.unsqueeze(-1), only_eos, log_probs)\n",
            "    log_probs[ended] = only_eos\n",
        ),
    ),
    ("detached", Common.CUT_OFF, ("    return best", "    best = best.detach()\n    return best")),
    (
        "made on the CPU",
        Common.MADE_ON_CPU,
        ("torch.full_like(log_probs[0, 0], -torch.inf)", "torch.full((vocab,), -torch.inf, dtype=log_probs.dtype)"),
    ),
    (
        "all sentences compete",
        beam_step.WHOLE_BATCH,
        (
            _TOPK,
            "best, places = (x.view(sums.shape) for x in totals.flatten().topk(sums.numel()))\n"
            "    places = places % totals.shape[1]",
        ),
    ),
]
_STEP_MUTANTS = [
    mutant(
        "beam_step",
        "the whole batch competes",
        beam_step.WHOLE_BATCH,
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
    )
]

_PAIRS = "for pair in itertools.pairwise(parts):"
_BEST = "min(counts, key=lambda pair: (-counts[pair], pair))"


_MERGE_EDITS = [
    ("nothing returned", Common.NO_RETURN, ("    return merges", "    merges")),
    ("a tuple", merges.NOT_A_LIST, ("    return merges", "    return tuple(merges)")),
    ("pieces returned", merges.PIECES, ("merges.append(best)", "merges.append(''.join(best))")),
    ("words count once", merges.WORD_ONCE, ("+= words[word]", "+= 1")),
    ("pairs count once in a word", merges.PAIR_ONCE, (_PAIRS, "for pair in set(itertools.pairwise(parts)):")),
    ("ties to the first met", merges.TIES, (_BEST, "max(counts, key=counts.get)")),
    ("ties to the last", merges.TIES, (_BEST, "max(counts, key=lambda pair: (counts[pair], pair))")),
    (
        "ties by the joined pieces",
        merges.TIES_JOINED,
        (_BEST, 'min(counts, key=lambda pair: (-counts[pair], "".join(pair)))'),
    ),
    ("the rarest", merges.RAREST, (_BEST, "min(counts, key=lambda pair: (counts[pair], pair))")),
    (
        "joined as text",
        merges.AS_TEXT,
        ("join_pair(parts, best)", "' '.join(parts).replace(' '.join(best), ''.join(best)).split()"),
    ),
    (
        "stops at pairs that occur once",
        merges.LEAVES_SINGLE,
        ("if not counts:", "if max(counts.values(), default=0) < 2:"),
    ),
    ("a mark at the end of words", merges.MARK, ("list(word) for", "[*word, '</w>'] for")),
    ("lower case", merges.LOWER_CASE, ("list(word) for", "list(word.lower()) for")),
    ("one too few", merges.TOO_FEW, ("range(count)", "range(count - 1)")),
    ("one too many", merges.TOO_MANY, ("range(count)", "range(count + 1)")),
    ("no early stop", Common.OF_NOTHING, ("        if not counts:\n            break\n", "")),
    ("empties the words", merges.CHANGED, ("    return merges", "    words.clear()\n    return merges")),
]
_MERGE_MUTANTS = [
    mutant(
        "learn_merges",
        "counted once",
        merges.NOT_GROWN,
        """
        def learn_merges(words, count):
            counts = Counter()
            for word, n in words.items():
                for pair in itertools.pairwise(word):
                    counts[pair] += n
            return sorted(counts, key=lambda pair: (-counts[pair], pair))[:count]
        """,
    )
]

# What of this people published, and in which words of theirs.
_PUBLISHED = {
    ("label_smoothed_loss", "spread over the wrong tokens only"): "ε/(V - 1)",
    ("label_smoothed_loss", "nothing for the padding token"): "ε/(V - 2)",
    ("noam_factor", "a step too far"): "step + 1",
    ("noam_factor", "constant afterwards"): "constant after the warm-up",
    ("greedy_decode", "one sentence at a time"): "`.item()` on a batch",
    ("greedy_decode", "the target made on the CPU"): "the device lost",
    ("beam_search", "tokens made on the CPU"): "the device lost",
    ("beam_search", "another penalty"): "sum / length ** 0.7",
    ("beam_search", "divided by the length"): "sum / length",
    ("beam_search", "another default"): "another default penalty",
    ("beam_search", "goes on past eos"): "goes on past the end",
    ("beam_search", "prefers what has ended"): "prefers what has ended",
    ("beam_search", "probabilities added up"): "probabilities added",
    ("cached_attention", "scaled by all features"): "√dim for √(dim / heads)",
    ("corpus_bleu", "one bag for all lengths"): "one bag for all n",
    ("corpus_bleu", "one added to every count"): "1 added to each count",
    ("corpus_bleu", "short pairs skipped"): "short pairs skipped",
    ("corpus_bleu", "sets of n-grams"): "sets of n-grams",
}
_ANSWERS = [
    *edits("label_smoothed_loss", _LOSS_EDITS),
    *mutants("label_smoothed_loss", _HEAD, _LOSS_BODIES),
    *_LOSS_MUTANTS,
    *mutants("noam_factor", "def noam_factor(step, dim, warmup):", _RATE_BODIES),
    *edits("greedy_decode", _GREEDY_EDITS),
    *_GREEDY_MUTANTS,
    *edits("beam_search", _BEAM_EDITS),
    *_BEAM_MUTANTS,
    *edits("cached_attention", _CACHED_EDITS),
    *edits("corpus_bleu", _BLEU_EDITS),
    *_BLEU_MUTANTS,
    *edits("beam_step", _STEP_EDITS),
    *_STEP_MUTANTS,
    *edits("learn_merges", _MERGE_EDITS),
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
MUTANTS = flag_published(_ANSWERS, _PUBLISHED)

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
