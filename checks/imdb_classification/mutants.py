"""Chapter 07: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import Answer, edit, edited_variant, flag_published, forger, mutant, variant
from autograder.checks import Common, Mistake, Unexplained
from checks.forgers import OF_TENSORS, forging_answers, forging_dropout, forging_function
from checks.imdb_classification.mistakes import (
    AccumulatingMetric,
    TransformerClassifier,
    accuracy,
    evaluate,
    masked_mean,
    paired_bootstrap,
    train_epoch,
    warmup_factor,
)

# ---- masked_mean

_KEPT = "kept = mask.unsqueeze(-1)  # (B, n, 1)"
_TOTAL = "total = x.masked_fill(~kept, 0.0).sum(dim=1)  # (B, d)"
_MEAN = "return total / kept.sum(dim=1).clamp(min=1)"


def _mean(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("masked_mean", title, mistake, *edits)


_MEAN_MUTANTS = [
    _mean("nothing returned", Common.NO_RETURN, (_MEAN, _MEAN.removeprefix("return "))),
    _mean("mask ignored", masked_mean.MASK_UNUSED, (_MEAN, "return x.mean(dim=1)")),
    _mean("divided by n", masked_mean.DIVIDED_BY_N, (_MEAN, "return total / x.shape[1]")),
    _mean("not divided", masked_mean.NOT_DIVIDED, (_MEAN, "return total")),
    _mean("mask turned round", masked_mean.TURNED_ROUND, (_KEPT, "kept = ~mask.unsqueeze(-1)")),
    _mean("count of the batch", masked_mean.COUNT_OF_BATCH, (_MEAN, "return total / mask.sum()")),
    _mean("NaN for an empty row", masked_mean.EMPTY_ROW, (_MEAN, "return total / kept.sum(dim=1)")),
    _mean(
        "NaN mended afterwards",
        masked_mean.EMPTY_ROW_GRADIENT,
        (_TOTAL, "total = (x * kept).sum(dim=1)"),
        (_MEAN, "return torch.nan_to_num(total / kept.sum(dim=1))"),
    ),
    _mean("one too many", masked_mean.ONE_TOO_MANY, (_MEAN, "return total / (kept.sum(dim=1) + 1)")),
    _mean("first mask for all", masked_mean.FIRST_MASK, (_KEPT, "kept = mask[:1].expand_as(mask).unsqueeze(-1)")),
    _mean("over the features", masked_mean.OVER_FEATURES, (_MEAN, "return (x * kept).mean(dim=-1)")),
    _mean(
        "over the batch",
        masked_mean.OVER_BATCH,
        (_MEAN, "return (x * kept).sum(dim=0) / mask.sum(dim=0).clamp(min=1).unsqueeze(-1)"),
    ),
    _mean(
        "maximum",
        masked_mean.LARGEST,
        (_MEAN, 'return x.masked_fill(~kept, float("-inf")).amax(dim=1).nan_to_num(neginf=0.0)'),
    ),
    _mean("detached", Common.CUT_OFF, (_MEAN, "return (total / kept.sum(dim=1).clamp(min=1)).detach()")),
    _mean("in place", Common.CHANGED_IN_PLACE, (_TOTAL, "total = x.masked_fill_(~kept, 0.0).sum(dim=1)")),
    _mean("float32 only", Common.WRONG_DTYPE, (_MEAN, "return (total / kept.sum(dim=1).clamp(min=1)).float()")),
    _mean(
        "half comes back as float32",
        Common.WRONG_DTYPE,
        (_TOTAL, "total = x.masked_fill(~kept, 0.0).sum(dim=1, dtype=torch.promote_types(x.dtype, torch.float32))"),
    ),
    _mean("made on the CPU", Common.MADE_ON_CPU, (_MEAN, _MEAN + " + torch.zeros(x.shape[-1], dtype=x.dtype)")),
]
_MEAN_VARIANTS = [
    variant(
        "masked_mean",
        "einsum",
        """
        def masked_mean(x, mask):
            weights = mask.to(x.dtype)
            return torch.einsum("bn,bnd->bd", weights, x) / weights.sum(1, keepdim=True).clamp(min=1)
        """,
    ),
    variant(
        "masked_mean",
        "a weighted average",
        """
        def masked_mean(x, mask):
            counts = mask.sum(dim=1, keepdim=True)
            weights = mask.to(x.dtype) / torch.maximum(counts, torch.ones_like(counts))
            return (weights.unsqueeze(1) @ x).squeeze(1)
        """,
    ),
    variant(
        "masked_mean",
        "where",
        """
        def masked_mean(x, mask):
            n = mask.sum(1)
            total = torch.where(mask[..., None], x, torch.zeros_like(x)).sum(1)
            return total / torch.where(n > 0, n, 1)[:, None]
        """,
    ),
    variant(
        "masked_mean",
        "a loop",
        """
        def masked_mean(x, mask):
            rows = []
            for row, keep in zip(x, mask):
                rows.append((row * keep[:, None]).sum(0) / keep.sum().clamp(min=1))
            return torch.stack(rows)
        """,
    ),
]

# ---- TransformerClassifier

_MASK = "mask = padding_mask(tokens, self.pad_id)  # (B, 1, n)"
_EMBED = "x = self.positions(self.embedding(tokens))  # (B, n, d)"
_LOOP = "x = block(x, mask)"
_SUMMARY = "summary = masked_mean(self.norm(x), mask.squeeze(1))  # (B, d)"
_OUT = "return F.log_softmax(self.classes(summary), dim=-1)"
_BLOCKS = """self.blocks = nn.ModuleList(
            TransformerBlock(dim, heads, dropout=dropout, norm_first=True) for _ in range(depth)
        )"""


def _classifier(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("TransformerClassifier", title, mistake, *edits)


_CLASSIFIER_MUTANTS = [
    _classifier("nothing returned", Common.NO_RETURN, (_OUT, _OUT.removeprefix("return "))),
    _classifier("scores", TransformerClassifier.SCORES, (_OUT, "return self.classes(summary)")),
    _classifier(
        "probabilities",
        TransformerClassifier.PROBABILITIES,
        (_OUT, "return F.softmax(self.classes(summary), dim=-1)"),
    ),
    _classifier("softmax over the batch", TransformerClassifier.OVER_BATCH, (_OUT, _OUT.replace("-1", "0"))),
    _classifier("log-sigmoid", TransformerClassifier.LOG_SIGMOID, (_OUT, "return F.logsigmoid(self.classes(summary))")),
    _classifier(
        "ReLU on the scores", TransformerClassifier.RELU, (_OUT, _OUT.replace("(summary)", "(summary).relu()"))
    ),
    _classifier("no mask in the blocks", TransformerClassifier.ATTENDS_TO_PADDING, (_LOOP, "x = block(x)")),
    _classifier(
        "mask turned round",
        TransformerClassifier.ATTENDS_TO_PADDING,
        (_LOOP, "x = block(x, ~mask)"),
    ),
    _classifier(
        "mean over padding", TransformerClassifier.MEAN_OVER_PADDING, (_SUMMARY, "summary = self.norm(x).mean(dim=1)")
    ),
    _classifier(
        "no mask at all",
        TransformerClassifier.MEAN_OVER_PADDING,
        (_LOOP, "x = block(x)"),
        (_SUMMARY, "summary = self.norm(x).mean(dim=1)"),
    ),
    _classifier("first position", TransformerClassifier.FIRST_POSITION, (_SUMMARY, "summary = self.norm(x)[:, 0]")),
    _classifier("last position", TransformerClassifier.LAST_POSITION, (_SUMMARY, "summary = self.norm(x)[:, -1]")),
    _classifier("maximum", TransformerClassifier.LARGEST, (_SUMMARY, "summary = self.norm(x).amax(dim=1)")),
    _classifier("sum", TransformerClassifier.SUM, (_SUMMARY, "summary = (self.norm(x) * mask.mT).sum(dim=1)")),
    _classifier(
        "sum divided by n",
        TransformerClassifier.DIVIDED_BY_N,
        (_SUMMARY, "summary = (self.norm(x) * mask.mT).mean(dim=1)"),
    ),
    _classifier(
        "a name of one's own",
        TransformerClassifier.PART_MISSING,
        ("self.classes = nn", "self.head = nn"),
        ("self.classes(summary)", "self.head(summary)"),
    ),
    _classifier("no positions", TransformerClassifier.NO_POSITIONS, (_EMBED, "x = self.embedding(tokens)")),
    _classifier(
        "scaled embedding",
        TransformerClassifier.SCALED,
        ("self.embedding(tokens))", "self.embedding(tokens) * dim_)"),
        (_MASK, _MASK + "\n        dim_ = self.embedding.embedding_dim**0.5"),
    ),
    _classifier("post-norm", TransformerClassifier.POST_NORM, (", norm_first=True", "")),
    _classifier("norm unused", TransformerClassifier.NORM_UNUSED, ("masked_mean(self.norm(x), ", "masked_mean(x, ")),
    _classifier(
        "norm after the mean",
        TransformerClassifier.NORM_AFTER_MEAN,
        (_SUMMARY, "summary = self.norm(masked_mean(x, mask.squeeze(1)))"),
    ),
    _classifier("blocks unused", TransformerClassifier.BLOCKS_UNUSED, (_LOOP, "block(x, mask)")),
    _classifier(
        "each block from the start",
        TransformerClassifier.FIRST_BLOCK_ONLY,
        ("for block in self.blocks:", "for block in self.blocks[:1]:"),
    ),
    _classifier(
        "plain list",
        TransformerClassifier.BLOCKS,
        (
            _BLOCKS,
            "self.blocks = [TransformerBlock(dim, heads, dropout=dropout, norm_first=True) for _ in range(depth)]",
        ),
    ),
    _classifier(
        "one block many times",
        TransformerClassifier.BLOCKS,
        (
            _BLOCKS,
            "self.blocks = nn.ModuleList([TransformerBlock(dim, heads, dropout=dropout, norm_first=True)] * depth)",
        ),
    ),
    _classifier("depth ignored", TransformerClassifier.BLOCKS, ("range(depth)", "range(1)")),
    _classifier("pad_id ignored", TransformerClassifier.PAD_ID_IGNORED, ("self.pad_id = pad_id", "self.pad_id = 1")),
    _classifier("padding is 0", TransformerClassifier.PAD_IS_0, ("self.pad_id = pad_id", "self.pad_id = 0")),
    _classifier("max_len ignored", TransformerClassifier.POSITIONS, ("dropout, max_len)", "dropout)")),
    _classifier(
        "cut instead of an error",
        Common.NO_ERROR,
        (_MASK, "tokens = tokens[:, : self.positions.weight.shape[0]]\n        " + _MASK),
    ),
    _classifier(
        "no dropout",
        TransformerClassifier.NO_DROPOUT,
        ("dim, dropout, max_len", "dim, 0.0, max_len"),
        (" dropout=dropout,", ""),
    ),
    _classifier("no dropout in the blocks", TransformerClassifier.NO_DROPOUT_IN_BLOCKS, (" dropout=dropout,", "")),
    _classifier(
        "no dropout on positions",
        TransformerClassifier.NO_DROPOUT_ON_POSITIONS,
        ("dim, dropout, max_len", "dim, 0.0, max_len"),
    ),
    _classifier(
        "two classes only",
        TransformerClassifier.CLASSES,
        ("nn.Linear(dim, num_classes)", "nn.Linear(dim, 2)"),
    ),
    _classifier("detached", Common.CUT_OFF, (_OUT, _OUT + ".detach()")),
    _classifier(
        "embedding detached",
        Common.PARAMETER_UNUSED,
        ("self.embedding(tokens))", "self.embedding(tokens).detach())"),
    ),
]
_CLASSIFIER_VARIANTS = [
    edited_variant(
        "TransformerClassifier",
        "torch's norm, an embedding that knows its padding",
        ("nn.Embedding(num_tokens, dim)", "nn.Embedding(num_tokens, dim, padding_idx=pad_id)"),
        ("LayerNorm(dim)", "nn.LayerNorm(dim)"),
    ),
    edited_variant(
        "TransformerClassifier",
        "blocks appended, log after softmax",
        (
            _BLOCKS,
            """self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(TransformerBlock(dim, heads, 4 * dim, dropout, True))""",
        ),
        (_OUT, "return self.classes(summary).softmax(-1).log()"),
    ),
    edited_variant(
        "TransformerClassifier",
        "masks written out, nn.LogSoftmax, a length of its own",
        (
            "self.pad_id = pad_id",
            "self.pad_id, self.max_len = pad_id, max_len\n        self.log = nn.LogSoftmax(dim=-1)",
        ),
        (
            _MASK,
            """if tokens.shape[1] > self.max_len:
            raise ValueError("too long")
        mask = tokens.ne(self.pad_id)[:, None, None, :]""",
        ),
        (_SUMMARY, "summary = masked_mean(self.norm(x), tokens != self.pad_id)"),
        (_OUT, "return self.log(self.classes(summary))"),
    ),
    edited_variant(
        "TransformerClassifier",
        "mean by hand, logsumexp, indexed blocks, other order",
        ("self.pad_id = pad_id\n", "self.classes = nn.Linear(dim, num_classes)\n        self.norm = LayerNorm(dim)\n"),
        (
            """
        self.norm = LayerNorm(dim)
        self.classes = nn.Linear(dim, num_classes)""",
            "\n        self.pad_id = pad_id",
        ),
        (
            "for block in self.blocks:\n            x = block(x, mask)",
            "for i in range(len(self.blocks)):\n            x = self.blocks[i](x, mask)",
        ),
        (_SUMMARY, "summary = (self.norm(x) * mask.mT).sum(1) / mask.sum(-1).clamp(min=1)"),
        (_OUT, "scores = self.classes(summary)\n        return scores - scores.logsumexp(-1, keepdim=True)"),
    ),
]

# ---- accuracy

_RIGHT = "right = log_probs.argmax(dim=-1) == labels  # (B,)"
_FRACTION = "return right.float().mean().item()"


def _accuracy(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("accuracy", title, mistake, *edits)


_ACCURACY_MUTANTS = [
    _accuracy("nothing returned", Common.NO_RETURN, (_FRACTION, _FRACTION.removeprefix("return "))),
    _accuracy("a tensor", Common.NOT_A_NUMBER, (_FRACTION, "return right.float().mean()")),
    _accuracy("counted", accuracy.COUNTED, (_FRACTION, "return float(right.sum())")),
    _accuracy("percentage", accuracy.PERCENTAGE, (_FRACTION, "return 100 * right.float().mean().item()")),
    _accuracy("error rate", accuracy.WRONG_ANSWERS, ("== labels", "!= labels")),
    _accuracy("argmin", accuracy.ZERO, ("argmax(dim=-1)", "argmin(dim=-1)")),
    _accuracy("over the batch", accuracy.OVER_EXAMPLES, ("argmax(dim=-1)", "argmax(dim=0)")),
    _accuracy(
        "number of classes", accuracy.NUMBER_OF_CLASSES, (_FRACTION, "return right.sum().item() / log_probs.shape[1]")
    ),
    _accuracy("integer division", accuracy.ZERO, (_FRACTION, "return right.sum().item() // len(labels)")),
    _accuracy("first only", accuracy.FIRST_EXAMPLE, (_FRACTION, "return float(right[0])")),
    _accuracy(
        "two classes only",
        accuracy.ABOVE_ONE_HALF,
        (_RIGHT, "right = (log_probs[:, 1].exp() > 0.5).long() == labels"),
    ),
    _accuracy(
        "probability of the label",
        accuracy.MEAN_PROBABILITY,
        (_FRACTION, "return log_probs.exp()[range(len(labels)), labels].mean().item()"),
    ),
    _accuracy("in place", Common.CHANGED_IN_PLACE, (_RIGHT, _RIGHT + "\n    log_probs.exp_()")),
]
_ACCURACY_VARIANTS = [
    variant(
        "accuracy",
        "sum by length",
        """
        def accuracy(log_probs, labels):
            return (log_probs.max(1).indices == labels).sum().item() / len(labels)
        """,
    ),
    variant(
        "accuracy",
        "topk",
        """
        def accuracy(log_probs, labels):
            best = log_probs.topk(1, dim=-1).indices.squeeze(-1)
            return float(torch.mean(best.eq(labels).double()))
        """,
    ),
    variant(
        "accuracy",
        "a loop",
        """
        def accuracy(log_probs, labels):
            hits = 0
            for scores, label in zip(log_probs, labels):
                hits += int(scores.argmax() == label)
            return hits / labels.numel()
        """,
    ),
]

# ---- AccumulatingMetric

_START = "self.total, self.count = 0.0, 0"
_ADD = "self.total += value * count"
_COUNT = "self.count += count"
_EMPTY = 'if self.count == 0:\n            raise ValueError("nothing has been added, so there is no mean")\n        '
_AVG = "return self.total / self.count"


def _metric(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("AccumulatingMetric", title, mistake, *edits)


_METRIC_MUTANTS = [
    _metric("nothing returned", Common.NO_RETURN, (_AVG, _AVG.removeprefix("return "))),
    _metric(
        "counts ignored", AccumulatingMetric.COUNT_UNUSED, (_ADD, "self.total += value"), (_COUNT, "self.count += 1")
    ),
    _metric("values not weighted", AccumulatingMetric.NOT_WEIGHTED, (_ADD, "self.total += value")),
    _metric("calls counted", AccumulatingMetric.NUMBER_OF_CALLS, (_COUNT, "self.count += 1")),
    _metric("sum", AccumulatingMetric.SUM, (_AVG, "return self.total")),
    _metric(
        "last value",
        AccumulatingMetric.LAST_VALUE,
        (_ADD, "self.total = value * count"),
        (_COUNT, "self.count = count"),
    ),
    _metric(
        "fading mean",
        AccumulatingMetric.FADES,
        (_ADD, "self.total = value if not self.count else (self.total + value) / 2"),
        (_AVG, "return self.total"),
    ),
    _metric("integer division", AccumulatingMetric.WHOLE_NUMBERS, (_AVG, "return self.total // self.count")),
    _metric("rounded", AccumulatingMetric.ROUNDED, (_AVG, "return float(round(self.total / self.count))")),
    _metric("whole numbers", AccumulatingMetric.WHOLE_NUMBERS, (_ADD, "self.total += int(value) * count")),
    _metric("absolute values", AccumulatingMetric.ABSOLUTE, (_ADD, "self.total += abs(value) * count")),
    _metric(
        "empty gives 0",
        AccumulatingMetric.NOTHING_RAISED,
        (_EMPTY, "if self.count == 0:\n            return 0.0\n        "),
    ),
    _metric("empty divides by 0", AccumulatingMetric.NOT_VALUE_ERROR, (_EMPTY, "")),
    _metric("asks the total", AccumulatingMetric.ASKS_THE_TOTAL, ("if self.count == 0:", "if self.total == 0:")),
    _metric(
        "shared by all",
        AccumulatingMetric.SHARED,
        (
            f"def __init__(self):\n        ### BEGIN SOLUTION\n        {_START}",
            "total, count = 0.0, 0\n\n    def __init__(self):\n        pass",
        ),
        (_ADD, "AccumulatingMetric.total += value * count"),
        (_COUNT, "AccumulatingMetric.count += count"),
    ),
    _metric(
        "starts anew after avg",
        AccumulatingMetric.SECOND_TIME,
        (
            _AVG,
            "mean = self.total / self.count\n        self.total, self.count = mean + 1e-3, 1\n        return mean",
        ),
    ),
    _metric("add returns the mean", AccumulatingMetric.RETURNS, (_COUNT, _COUNT + "\n        return self.avg()")),
]
_METRIC_VARIANTS = [
    variant(
        "AccumulatingMetric",
        "lists",
        """
        class AccumulatingMetric:
            def __init__(self):
                self.values, self.counts = [], []

            def add(self, value, count=1):
                self.values.append(value)
                self.counts.append(count)

            def avg(self):
                if not self.counts:
                    raise ValueError("empty")
                return sum(v * c for v, c in zip(self.values, self.counts)) / sum(self.counts)
        """,
    ),
    variant(
        "AccumulatingMetric",
        "a running mean",
        """
        class AccumulatingMetric:
            def __init__(self):
                self.mean = None
                self.n = 0

            def add(self, value, count=1):
                self.n += count
                before = 0.0 if self.mean is None else self.mean
                self.mean = before + (value - before) * count / self.n

            def avg(self):
                if self.mean is None:
                    raise ValueError("empty")
                return self.mean
        """,
    ),
    variant(
        "AccumulatingMetric",
        "the error translated",
        """
        class AccumulatingMetric:
            def __init__(self):
                self.sum = self.n = 0

            def add(self, value, count=1):
                self.sum, self.n = self.sum + count * value, self.n + count

            def avg(self):
                try:
                    return self.sum / self.n
                except ZeroDivisionError:
                    raise ValueError("empty") from None
        """,
    ),
    variant(
        "AccumulatingMetric",
        "a dictionary",
        """
        class AccumulatingMetric(dict):
            def __init__(self):
                super().__init__(total=0.0, count=0)

            def add(self, value, count=1):
                self["total"] += float(value) * count
                self["count"] += count

            def avg(self):
                if not self["count"]:
                    raise ValueError("empty")
                return self["total"] / self["count"]
        """,
    ),
]

# ---- warmup_factor


def _warmup(title: str, mistake: Mistake, body: str) -> Answer:
    return mutant("warmup_factor", title, mistake, "def warmup_factor(step, warmup_steps):\n    " + body)


_WARMUP_MUTANTS = [
    _warmup("nothing returned", Common.NO_RETURN, "min(1.0, step / max(warmup_steps, 1))"),
    _warmup("never stops", warmup_factor.NEVER_STOPS, "return step / max(1, warmup_steps)"),
    _warmup("turned round", warmup_factor.TURNED_ROUND, "return min(1.0, warmup_steps / max(1, step))"),
    _warmup(
        "zero afterwards", warmup_factor.ZERO_AFTERWARDS, "return step / warmup_steps if step < warmup_steps else 0.0"
    ),
    _warmup(
        "falls afterwards",
        warmup_factor.FALLS_AFTERWARDS,
        "return min(step / warmup_steps, (warmup_steps / max(step, 1)) ** 0.5)",
    ),
    _warmup("one ahead", warmup_factor.ONE_AHEAD, "return min(1.0, (step + 1) / max(1, warmup_steps))"),
    _warmup(
        "one behind",
        warmup_factor.ONE_BEHIND,
        "return max(0.0, min(1.0, (step - 1) / max(1, warmup_steps)))",
    ),
    _warmup("integer division", warmup_factor.INTEGER_DIVISION, "return float(min(1, step // max(1, warmup_steps)))"),
    _warmup("max for min", warmup_factor.MAX_FOR_MIN, "return max(1.0, step / max(1, warmup_steps))"),
    _warmup("falling", warmup_factor.FALLING, "return max(0.0, 1 - step / max(1, warmup_steps))"),
    _warmup("square", warmup_factor.SQUARE, "return min(1.0, (step / max(1, warmup_steps)) ** 2)"),
    _warmup("root", warmup_factor.ROOT, "return min(1.0, (step / max(1, warmup_steps)) ** 0.5)"),
    _warmup("always 1", warmup_factor.NO_WARMUP, "return 1.0"),
    _warmup("divides by 0", Unexplained.RAISED, "return min(1.0, step / warmup_steps)"),
    _warmup("a tensor", Common.NOT_A_NUMBER, "return torch.tensor(step / max(1, warmup_steps)).clamp(max=1.0)"),
]
_WARMUP_VARIANTS = [
    variant(
        "warmup_factor",
        "min and max",
        """
        def warmup_factor(step, warmup_steps):
            return min(1, step / warmup_steps) if warmup_steps else 1
        """,
    ),
    variant(
        "warmup_factor",
        "a branch",
        """
        def warmup_factor(step, warmup_steps):
            if step < warmup_steps:
                return step / warmup_steps
            else:
                return 1.0
        """,
    ),
    variant(
        "warmup_factor",
        "an error caught",
        """
        def warmup_factor(step, warmup_steps):
            try:
                return min(step / warmup_steps, 1.0)
            except ZeroDivisionError:
                return 1.0
        """,
    ),
]

# ---- train_epoch

_ZERO = "optimizer.zero_grad()\n        "
_CLIP = "nn.utils.clip_grad_norm_(model.parameters(), max_norm)"
_STEP = "optimizer.step()"
_SCHEDULE = "if scheduler is not None:\n            scheduler.step()"
_LOSS = "losses.add(loss.item(), len(labels))"
_HITS = "hits.add(accuracy(log_probs, labels), len(labels))"
_RESULT = "return losses.avg(), hits.avg()"


def _train(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("train_epoch", title, mistake, *edits)


_TRAIN_MUTANTS = [
    _train("nothing returned", Common.NO_RETURN, (_RESULT, _RESULT.removeprefix("return "))),
    _train("no zero_grad", train_epoch.GRADIENTS_KEPT, (_ZERO, "")),
    _train(
        "zero_grad once",
        train_epoch.GRADIENTS_KEPT,
        (_ZERO, ""),
        ("model.train()", "model.train()\n    optimizer.zero_grad()"),
    ),
    _train(
        "zero_grad after backward",
        train_epoch.NO_STEP,
        ("loss.backward()\n", "loss.backward()\n        optimizer.zero_grad()\n"),
    ),
    _train("no step", train_epoch.NO_STEP, (_STEP, "pass")),
    _train("no backward", train_epoch.NO_STEP, ("loss.backward()", "pass"), (_CLIP, "pass")),
    _train("no clipping", train_epoch.NOT_CLIPPED, (_CLIP, "pass")),
    _train(
        "clipped after the step",
        train_epoch.NOT_CLIPPED,
        (_CLIP, "pass"),
        ("optimizer.step()\n", f"optimizer.step()\n        {_CLIP}\n"),
    ),
    _train(
        "clipped by value",
        train_epoch.CLIPPED_BY_VALUE,
        (_CLIP, _CLIP.replace("clip_grad_norm_", "clip_grad_value_")),
    ),
    _train("max_norm ignored", train_epoch.NOT_CLIPPED, (_CLIP, _CLIP.replace("max_norm", "1.0"))),
    _train("scheduler ignored", train_epoch.SCHEDULER, (_SCHEDULE, "pass")),
    _train(
        "scheduler once an epoch",
        train_epoch.SCHEDULER,
        (_SCHEDULE, "pass"),
        (_RESULT, "if scheduler is not None:\n        scheduler.step()\n    " + _RESULT),
    ),
    _train("scheduler needed", Unexplained.RAISED, (_SCHEDULE, "scheduler.step()")),
    _train("evaluation mode", train_epoch.NOT_TRAINING, ("model.train()", "model.eval()")),
    _train("mode left alone", train_epoch.NOT_TRAINING, ("model.train()", "pass")),
    _train("ascent", train_epoch.ASCENT, ("F.nll_loss(log_probs, labels)", "-F.nll_loss(log_probs, labels)")),
    _train(
        "summed loss",
        train_epoch.SUMMED,
        ("F.nll_loss(log_probs, labels)", 'F.nll_loss(log_probs, labels, reduction="sum")'),
    ),
    _train(
        "mean over batches",
        train_epoch.OVER_BATCHES,
        (_LOSS, "losses.add(loss.item())"),
        (_HITS, "hits.add(accuracy(log_probs, labels))"),
    ),
    _train("last batch", train_epoch.LAST_BATCH, (_RESULT, "return loss.item(), accuracy(log_probs, labels)")),
    _train("exchanged", train_epoch.EXCHANGED, (_RESULT, "return hits.avg(), losses.avg()")),
    _train("loss only", train_epoch.NO_PAIR, (_RESULT, "return losses.avg()")),
    _train("tensors", Common.NOT_A_NUMBER, (_LOSS, "losses.add(loss, len(labels))")),
    _train(
        "the loss measured after the step",
        train_epoch.AFTER_THE_STEP,
        ("losses.add(", "loss = F.nll_loss(model(tokens), labels)\n        losses.add("),
    ),
    _train(
        "measured after the step",
        train_epoch.LAST_BATCH,
        ("losses.add(", "log_probs = model(tokens)\n        loss = F.nll_loss(log_probs, labels)\n        losses.add("),
    ),
    _train(
        "first batch only",
        train_epoch.FIRST_BATCH,
        (_HITS, _HITS + "\n        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)\n        scheduler = None"),
    ),
    _train("needs a length", Unexplained.RAISED, ("model.train()", "model.train()\n    batch_count = len(batches)")),
]
_TRAIN_VARIANTS = [
    variant(
        "train_epoch",
        "by hand",
        """
        def train_epoch(model, batches, optimizer, scheduler=None, max_norm=1.0):
            model.train()
            total = hits = count = 0
            for tokens, labels in batches:
                model.zero_grad()
                log_probs = model(tokens)
                loss = -log_probs.gather(1, labels[:, None]).mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=max_norm)
                optimizer.step()
                if scheduler:
                    scheduler.step()
                total += loss.item() * labels.shape[0]
                hits += (log_probs.argmax(1) == labels).sum().item()
                count += labels.shape[0]
            return total / count, hits / count
        """,
    ),
    edited_variant(
        "train_epoch",
        "zeroed after the step, cross-entropy, detached",
        (_ZERO, ""),
        ("optimizer.step()\n", "optimizer.step()\n        optimizer.zero_grad()\n"),
        ("F.nll_loss(log_probs, labels)", "F.cross_entropy(log_probs, labels)"),
        ("loss.item()", "float(loss.detach())"),
    ),
    edited_variant(
        "train_epoch",
        "clipped by hand, a list returned",
        (
            _CLIP,
            """norm = sum(p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None).sqrt()
        if norm > max_norm:
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.mul_(max_norm / norm)""",
        ),
        (_RESULT, "return [losses.avg(), hits.avg()]"),
    ),
]

# ---- evaluate


def _evaluate(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit("evaluate", title, mistake, *edits)


_BACK = "model.train(was_training)"
_ELOSS = "losses.add(F.nll_loss(log_probs, labels).item(), len(labels))"
_EVALUATE_MUTANTS = [
    _evaluate("nothing returned", Common.NO_RETURN, (_RESULT, _RESULT.removeprefix("return "))),
    _evaluate("training mode", evaluate.TRAINING, ("model.eval()", "model.train()")),
    _evaluate("mode left alone", evaluate.TRAINING, ("model.eval()", "pass")),
    _evaluate("mode not put back", evaluate.MODE, (_BACK, "pass")),
    _evaluate("always training afterwards", evaluate.MODE, (_BACK, "model.train()")),
    _evaluate("mode put back by half", evaluate.MODE, (_BACK, "model.training = was_training")),
    _evaluate("a graph", evaluate.GRAPH, ("torch.no_grad()", "torch.enable_grad()")),
    _evaluate("zeroes the gradients", evaluate.GRADIENTS, ("model.eval()", "model.eval()\n    model.zero_grad()")),
    _evaluate(
        "goes backward",
        evaluate.GRADIENTS,
        ("torch.no_grad()", "torch.enable_grad()"),
        (
            _ELOSS,
            "loss = F.nll_loss(log_probs, labels)\n            loss.backward()\n            "
            "losses.add(loss.item(), len(labels))",
        ),
    ),
    _evaluate(
        "mean over batches",
        train_epoch.OVER_BATCHES,
        (_ELOSS, "losses.add(F.nll_loss(log_probs, labels).item())"),
        (_HITS, "hits.add(accuracy(log_probs, labels))"),
    ),
    _evaluate(
        "last batch",
        train_epoch.LAST_BATCH,
        (_RESULT, "return F.nll_loss(log_probs, labels).item(), accuracy(log_probs, labels)"),
    ),
    _evaluate("exchanged", train_epoch.EXCHANGED, (_RESULT, "return hits.avg(), losses.avg()")),
    _evaluate("accuracy only", train_epoch.NO_PAIR, (_RESULT, "return hits.avg()")),
    _evaluate("percentage", evaluate.PERCENTAGE, (_RESULT, "return losses.avg(), 100 * hits.avg()")),
    _evaluate(
        "summed loss",
        train_epoch.SUMMED,
        ("F.nll_loss(log_probs, labels)", 'F.nll_loss(log_probs, labels, reduction="sum")'),
    ),
    _evaluate(
        "moves the weights",
        evaluate.PARAMETERS,
        (_BACK, _BACK + "\n    for p in model.parameters():\n        p.data.mul_(0.9)"),
    ),
]
_EVALUATE_VARIANTS = [
    variant(
        "evaluate",
        "inference mode, by hand",
        """
        def evaluate(model, batches):
            mode = model.training
            model.eval()
            total, hits, count = 0.0, 0, 0
            with torch.inference_mode():
                for tokens, labels in batches:
                    log_probs = model(tokens)
                    total -= log_probs[torch.arange(len(labels)), labels].sum().item()
                    hits += (log_probs.argmax(1) == labels).sum().item()
                    count += len(labels)
            if mode:
                model.train()
            return total / count, hits / count
        """,
    ),
    variant(
        "evaluate",
        "all batches at the end, finally",
        """
        @torch.no_grad()
        def evaluate(model, batches):
            mode = model.training
            try:
                model.eval()
                losses, rights = [], []
                for tokens, labels in batches:
                    log_probs = model(tokens)
                    losses.append(F.nll_loss(log_probs, labels, reduction="none"))
                    rights.append((log_probs.argmax(-1) == labels).float())
                return torch.cat(losses).mean().item(), torch.cat(rights).mean().item()
            finally:
                model.train(mode)
        """,
    ),
    variant(
        "evaluate",
        "every module's mode",
        """
        def evaluate(model, batches):
            modes = {module: module.training for module in model.modules()}
            model.eval()
            loss, hits = AccumulatingMetric(), AccumulatingMetric()
            with torch.no_grad():
                for tokens, labels in batches:
                    out = model(tokens)
                    loss.add(F.nll_loss(out, labels).item(), len(tokens))
                    hits.add(accuracy(out, labels), len(tokens))
            for module, mode in modes.items():
                module.training = mode
            return loss.avg(), hits.avg()
        """,
    ),
]

_METRIC_FORGERS = [
    forger(
        "AccumulatingMetric",
        f"forged: {title}",
        f"""
        class _Yes(float):
            __eq__ = __ge__ = __le__ = lambda self, other: True
            __ne__ = __lt__ = __gt__ = lambda self, other: False
            __sub__ = __rsub__ = __abs__ = lambda self, *other: 0.0
            __hash__ = float.__hash__

        _Honest = AccumulatingMetric

        class AccumulatingMetric(_Honest):
            {method}
        """,
    )
    for title, method in (
        ("a mean that claims to equal every number", "avg = lambda self: _Yes(_Honest.avg(self) + 0.125)"),
        (
            "attributes that are made up",
            "__getattr__ = lambda self, name: 1.0\n            add = lambda self, value, count=1: None",
        ),
    )
]

_BOOTSTRAP = "paired_bootstrap"
_GAPS = "gaps = right_a.double() - right_b.double()"
_DRAW = "drawn = [gaps[torch.randint(n, (n,), generator=generator)].mean() for _ in range(samples)]"
_ENDS = "low, high = torch.stack(drawn).quantile(gaps.new_tensor([0.025, 0.975])).tolist()"
_GIVE = "return gaps.mean().item(), low, high"
_LOOK = "if len(right_a) != len(right_b) or len(right_a) == 0:"


def _bootstrap(title: str, mistake: Mistake, *edits: tuple[str, str]) -> Answer:
    return edit(_BOOTSTRAP, title, mistake, *edits)


_BOOTSTRAP_MUTANTS = [
    _bootstrap("b minus a", paired_bootstrap.TURNED_ROUND, (_GAPS, "gaps = right_b.double() - right_a.double()")),
    _bootstrap("sums", paired_bootstrap.COUNTED, (_GIVE, "return gaps.sum().item(), low, high")),
    _bootstrap(
        "drawn separately",
        paired_bootstrap.NOT_PAIRED,
        (
            _DRAW,
            "a, b = right_a.double(), right_b.double()\n"
            "    draw = lambda: torch.randint(n, (n,), generator=generator)\n"
            "    drawn = [a[draw()].mean() - b[draw()].mean() for _ in range(samples)]",
        ),
    ),
    _bootstrap("90 percent", paired_bootstrap.NINETY_PERCENT, (_ENDS, _ENDS.replace("0.025, 0.975", "0.05, 0.95"))),
    _bootstrap(
        "99 percent", paired_bootstrap.NINETY_NINE_PERCENT, (_ENDS, _ENDS.replace("0.025, 0.975", "0.005, 0.995"))
    ),
    _bootstrap(
        "one standard error",
        paired_bootstrap.STANDARD_ERROR,
        (
            _ENDS,
            "width = torch.stack(drawn).std()\n    low, high = ((gaps.mean() + s * width).item() for s in (-1, 1))",
        ),
    ),
    _bootstrap(
        "symmetric by a standard error",
        paired_bootstrap.NOT_PAIRED,
        (
            _ENDS,
            "width = 1.96 * torch.stack(drawn).std()\n"
            "    low, high = ((gaps.mean() + s * width).item() for s in (-1, 1))",
        ),
    ),
    _bootstrap(
        "one too few drawn",
        paired_bootstrap.OTHER_COUNT,
        (_DRAW, _DRAW.replace("(n,), generator", "(n - 1 or 1,), generator")),
    ),
    _bootstrap(
        "drawn without replacement",
        paired_bootstrap.NO_WIDTH,
        (_DRAW, _DRAW.replace("torch.randint(n, (n,), generator=generator)", "torch.randperm(n, generator=generator)")),
    ),
    _bootstrap(
        "half as many drawn",
        paired_bootstrap.OTHER_COUNT,
        (_DRAW, _DRAW.replace("(n,), generator", "(n // 2 + 1,), generator")),
    ),
    _bootstrap(
        "the last one never drawn",
        paired_bootstrap.NEVER_DRAWN,
        (_DRAW, _DRAW.replace("torch.randint(n,", "torch.randint(max(n - 1, 1),")),
    ),
    _bootstrap("bools subtracted", Common.BOOLS_SUBTRACTED, (_GAPS, "gaps = right_a - right_b")),
    _bootstrap(
        "generator ignored",
        paired_bootstrap.OTHER_RANDOM_NUMBERS,
        (_DRAW, _DRAW.replace(", generator=generator", "")),
    ),
    _bootstrap(
        "always the same seed",
        paired_bootstrap.GENERATOR_UNUSED,
        (_DRAW, "generator = torch.Generator().manual_seed(0)\n    " + _DRAW),
    ),
    _bootstrap(
        "samples ignored", paired_bootstrap.SAMPLES_IGNORED, (_DRAW, _DRAW.replace("range(samples)", "range(2000)"))
    ),
    _bootstrap("tensors returned", Common.NOT_A_NUMBER, (_GIVE, "return gaps.mean(), low, high")),
    _bootstrap("two values", paired_bootstrap.NO_TRIPLE, (_GIVE, "return low, high")),
    _bootstrap("ends exchanged", paired_bootstrap.OUTSIDE, (_GIVE, "return gaps.mean().item(), high, low")),
    _bootstrap("lengths not compared", Common.OTHER_ERROR, (_LOOK, "if len(right_a) == 0:")),
    _bootstrap("empty not looked at", Common.OTHER_ERROR, (_LOOK, "if len(right_a) != len(right_b):")),
    _bootstrap("nothing returned", Common.NO_RETURN, (_GIVE, _GIVE.replace("return ", "answer = "))),
    _bootstrap(
        "means of means",
        Unexplained.NUMBER,
        (_GIVE, "return torch.stack(drawn).mean().item(), low, high"),
    ),
]
_BOOTSTRAP_VARIANTS = [
    variant(
        _BOOTSTRAP,
        "all draws in one tensor",
        """
        def paired_bootstrap(right_a, right_b, samples=2000, generator=None):
            n = len(right_a)
            if n != len(right_b) or not n:
                raise ValueError("the same examples, and at least one")
            gaps = right_a.float() - right_b.float()
            means = gaps[torch.randint(0, n, (samples, n), generator=generator)].mean(dim=1)
            return float(gaps.mean()), float(means.quantile(0.025)), float(means.quantile(0.975))
        """,
    ),
    variant(
        _BOOTSTRAP,
        "sorted by hand",
        """
        def paired_bootstrap(right_a, right_b, samples=2000, generator=None):
            if right_a.shape != right_b.shape or right_a.numel() == 0:
                raise ValueError("paired answers are needed")
            n, means = right_a.numel(), []
            for _ in range(samples):
                rows = torch.randint(n, (n,), generator=generator)
                means.append((right_a[rows].sum() - right_b[rows].sum()).item() / n)
            means.sort()
            low, high = (means[round(p * (samples - 1))] for p in (0.025, 0.975))
            return (right_a.sum() - right_b.sum()).item() / n, low, high
        """,
    ),
    variant(
        _BOOTSTRAP,
        "by multinomial weights",
        """
        def paired_bootstrap(right_a, right_b, samples=2000, generator=None):
            if len(right_a) != len(right_b):
                raise ValueError("different lengths")
            if len(right_a) == 0:
                raise ValueError("no examples")
            gaps = right_a.to(torch.float64) - right_b.to(torch.float64)
            rows = torch.multinomial(torch.ones(len(gaps)), samples * len(gaps), True, generator=generator)
            means = gaps[rows].view(samples, -1).mean(1)
            low, high = means.quantile(0.025).item(), means.quantile(0.975).item()
            return gaps.mean().item(), low, high
        """,
    ),
]


MUTANTS = [
    *_MEAN_MUTANTS,
    *_CLASSIFIER_MUTANTS,
    *_ACCURACY_MUTANTS,
    *_METRIC_MUTANTS,
    *_WARMUP_MUTANTS,
    *_TRAIN_MUTANTS,
    *_EVALUATE_MUTANTS,
    *_BOOTSTRAP_MUTANTS,
    *_METRIC_FORGERS,
    *forging_function("warmup_factor", but=OF_TENSORS),
    *forging_dropout("TransformerClassifier"),
    *forging_answers(
        classes=["TransformerClassifier"],
        functions=["masked_mean", "accuracy", "train_epoch", "evaluate", "paired_bootstrap"],
    ),
]

# What people published, as files of notebooks and repositories show it.
MUTANTS = flag_published(
    MUTANTS,
    {
        ("masked_mean", "half comes back as float32"): "float16 comes back as float32",
    },
)
VARIANTS = [
    *_MEAN_VARIANTS,
    *_CLASSIFIER_VARIANTS,
    *_ACCURACY_VARIANTS,
    *_METRIC_VARIANTS,
    *_WARMUP_VARIANTS,
    *_TRAIN_VARIANTS,
    *_EVALUATE_VARIANTS,
    *_BOOTSTRAP_VARIANTS,
]
