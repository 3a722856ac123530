"""Chapter 07: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, edit, edited_variant, forger, mutant, variant
from checks.forgers import OF_TENSORS, forging_answers, forging_function

# ---- masked_mean

_KEPT = "kept = mask.unsqueeze(-1)  # (B, n, 1)"
_TOTAL = "total = x.masked_fill(~kept, 0.0).sum(dim=1)  # (B, d)"
_MEAN = "return total / kept.sum(dim=1).clamp(min=1)"


def _mean(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("masked_mean", title, says, *edits)


_MEAN_MUTANTS = [
    _mean("nothing returned", "is there a `return`?", (_MEAN, _MEAN.removeprefix("return "))),
    _mean("mask ignored", "the mask is not used", (_MEAN, "return x.mean(dim=1)")),
    _mean("divided by n", "divided by n", (_MEAN, "return total / x.shape[1]")),
    _mean("not divided", "is not divided", (_MEAN, "return total")),
    _mean("mask turned round", "turned round", (_KEPT, "kept = ~mask.unsqueeze(-1)")),
    _mean("count of the batch", "count of the whole batch", (_MEAN, "return total / mask.sum()")),
    _mean("NaN for an empty row", "an all-False row", (_MEAN, "return total / kept.sum(dim=1)")),
    _mean(
        "NaN mended afterwards",
        "an all-False row has NaN gradients",
        (_TOTAL, "total = (x * kept).sum(dim=1)"),
        (_MEAN, "return torch.nan_to_num(total / kept.sum(dim=1))"),
    ),
    _mean("one too many", "1 is added to each count", (_MEAN, "return total / (kept.sum(dim=1) + 1)")),
    _mean("first mask for all", "first sequence's mask", (_KEPT, "kept = mask[:1].expand_as(mask).unsqueeze(-1)")),
    _mean("over the features", "over the features", (_MEAN, "return (x * kept).mean(dim=-1)")),
    _mean(
        "over the batch",
        "over the batch",
        (_MEAN, "return (x * kept).sum(dim=0) / mask.sum(dim=0).clamp(min=1).unsqueeze(-1)"),
    ),
    _mean(
        "maximum",
        "the largest value",
        (_MEAN, 'return x.masked_fill(~kept, float("-inf")).amax(dim=1).nan_to_num(neginf=0.0)'),
    ),
    _mean("detached", "cut off from the graph", (_MEAN, "return (total / kept.sum(dim=1).clamp(min=1)).detach()")),
    _mean("in place", "`x` was changed in place", (_TOTAL, "total = x.masked_fill_(~kept, 0.0).sum(dim=1)")),
    _mean("float32 only", "keep dtype torch.float64", (_MEAN, "return (total / kept.sum(dim=1).clamp(min=1)).float()")),
    _mean(
        "half comes back as float32",
        "keep dtype torch.float16",
        (_TOTAL, "total = x.masked_fill(~kept, 0.0).sum(dim=1, dtype=torch.promote_types(x.dtype, torch.float32))"),
    ),
    _mean("made on the CPU", "on a GPU", (_MEAN, _MEAN + " + torch.zeros(x.shape[-1], dtype=x.dtype)")),
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


def _classifier(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("TransformerClassifier", title, says, *edits)


_CLASSIFIER_MUTANTS = [
    _classifier("nothing returned", "is there a `return`?", (_OUT, _OUT.removeprefix("return "))),
    _classifier("scores", "a log-softmax is missing", (_OUT, "return self.classes(summary)")),
    _classifier(
        "probabilities", "probabilities are returned", (_OUT, "return F.softmax(self.classes(summary), dim=-1)")
    ),
    _classifier("softmax over the batch", "over the batch", (_OUT, _OUT.replace("-1", "0"))),
    _classifier("log-sigmoid", "log-sigmoid", (_OUT, "return F.logsigmoid(self.classes(summary))")),
    _classifier("ReLU on the scores", "a ReLU follows", (_OUT, _OUT.replace("(summary)", "(summary).relu()"))),
    _classifier("no mask in the blocks", "attend to padding", (_LOOP, "x = block(x)")),
    _classifier(
        "mask turned round",
        "attend to padding",
        (_LOOP, "x = block(x, ~mask)"),
    ),
    _classifier(
        "mean over padding", "the mean runs over padding too", (_SUMMARY, "summary = self.norm(x).mean(dim=1)")
    ),
    _classifier(
        "no mask at all",
        "the mean runs over padding too",
        (_LOOP, "x = block(x)"),
        (_SUMMARY, "summary = self.norm(x).mean(dim=1)"),
    ),
    _classifier("first position", "only the first position", (_SUMMARY, "summary = self.norm(x)[:, 0]")),
    _classifier("last position", "only the last position", (_SUMMARY, "summary = self.norm(x)[:, -1]")),
    _classifier("maximum", "the largest value", (_SUMMARY, "summary = self.norm(x).amax(dim=1)")),
    _classifier("sum", "the sum over the tokens", (_SUMMARY, "summary = (self.norm(x) * mask.mT).sum(dim=1)")),
    _classifier("no positions", "no positions are added", (_EMBED, "x = self.embedding(tokens)")),
    _classifier(
        "scaled embedding",
        "scaled by the root of dim",
        ("self.embedding(tokens))", "self.embedding(tokens) * dim_)"),
        (_MASK, _MASK + "\n        dim_ = self.embedding.embedding_dim**0.5"),
    ),
    _classifier("post-norm", "post-norm", (", norm_first=True", "")),
    _classifier("norm unused", "`norm` is not used", ("masked_mean(self.norm(x), ", "masked_mean(x, ")),
    _classifier(
        "norm after the mean",
        "`norm` comes after the mean",
        (_SUMMARY, "summary = self.norm(masked_mean(x, mask.squeeze(1)))"),
    ),
    _classifier("blocks unused", "the blocks are not used", (_LOOP, "block(x, mask)")),
    _classifier(
        "each block from the start",
        "only the first block is used",
        ("for block in self.blocks:", "for block in self.blocks[:1]:"),
    ),
    _classifier(
        "plain list",
        "no part with weights is called `blocks.0`",
        (
            _BLOCKS,
            "self.blocks = [TransformerBlock(dim, heads, dropout=dropout, norm_first=True) for _ in range(depth)]",
        ),
    ),
    _classifier(
        "one block many times",
        "the parameter `blocks.1.attention.Wq.weight` is missing",
        (
            _BLOCKS,
            "self.blocks = nn.ModuleList([TransformerBlock(dim, heads, dropout=dropout, norm_first=True)] * depth)",
        ),
    ),
    _classifier("depth ignored", "`blocks` is an nn.ModuleList of `depth`", ("range(depth)", "range(1)")),
    _classifier("pad_id ignored", "`pad_id` is ignored", ("self.pad_id = pad_id", "self.pad_id = 1")),
    _classifier("padding is 0", "padding is taken to be token 0", ("self.pad_id = pad_id", "self.pad_id = 0")),
    _classifier("max_len ignored", "`positions` is PositionEmbedding", ("dropout, max_len)", "dropout)")),
    _classifier(
        "cut instead of an error",
        "should raise ValueError",
        (_MASK, "tokens = tokens[:, : self.positions.weight.shape[0]]\n        " + _MASK),
    ),
    _classifier(
        "no dropout",
        "`dropout` has no effect",
        ("dim, dropout, max_len", "dim, 0.0, max_len"),
        (" dropout=dropout,", ""),
    ),
    _classifier("no dropout in the blocks", "not passed to the blocks", (" dropout=dropout,", "")),
    _classifier("no dropout on positions", "not passed to `positions`", ("dim, dropout, max_len", "dim, 0.0, max_len")),
    _classifier(
        "two classes only",
        "`classes` is nn.Linear(dim, num_classes)",
        ("nn.Linear(dim, num_classes)", "nn.Linear(dim, 2)"),
    ),
    _classifier("detached", "cut off from the graph", (_OUT, _OUT + ".detach()")),
    _classifier(
        "embedding detached",
        "no gradient reaches the parameter `embedding.weight`",
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


def _accuracy(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("accuracy", title, says, *edits)


_ACCURACY_MUTANTS = [
    _accuracy("nothing returned", "is there a `return`?", (_FRACTION, _FRACTION.removeprefix("return "))),
    _accuracy("a tensor", "should be a Python float", (_FRACTION, "return right.float().mean()")),
    _accuracy("counted", "not divided", (_FRACTION, "return float(right.sum())")),
    _accuracy("percentage", "a percentage", (_FRACTION, "return 100 * right.float().mean().item()")),
    _accuracy("error rate", "wrong answers", ("== labels", "!= labels")),
    _accuracy("argmin", "integer division", ("argmax(dim=-1)", "argmin(dim=-1)")),
    _accuracy("over the batch", "over the examples", ("argmax(dim=-1)", "argmax(dim=0)")),
    _accuracy("number of classes", "number of classes", (_FRACTION, "return right.sum().item() / log_probs.shape[1]")),
    _accuracy("integer division", "integer division", (_FRACTION, "return right.sum().item() // len(labels)")),
    _accuracy("first only", "only the first example", (_FRACTION, "return float(right[0])")),
    _accuracy("two classes only", "above one half", (_RIGHT, "right = (log_probs[:, 1].exp() > 0.5).long() == labels")),
    _accuracy(
        "probability of the label",
        "mean probability",
        (_FRACTION, "return log_probs.exp()[range(len(labels)), labels].mean().item()"),
    ),
    _accuracy("in place", "changed in place", (_RIGHT, _RIGHT + "\n    log_probs.exp_()")),
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


def _metric(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("AccumulatingMetric", title, says, *edits)


_METRIC_MUTANTS = [
    _metric("nothing returned", "is there a `return`?", (_AVG, _AVG.removeprefix("return "))),
    _metric("counts ignored", "`count` is not used", (_ADD, "self.total += value"), (_COUNT, "self.count += 1")),
    _metric("values not weighted", "not multiplied by their counts", (_ADD, "self.total += value")),
    _metric("calls counted", "number of calls", (_COUNT, "self.count += 1")),
    _metric("sum", "the sum is returned", (_AVG, "return self.total")),
    _metric("last value", "only the last value", (_ADD, "self.total = value * count"), (_COUNT, "self.count = count")),
    _metric(
        "fading mean",
        "old values would fade",
        (_ADD, "self.total = value if not self.count else (self.total + value) / 2"),
        (_AVG, "return self.total"),
    ),
    _metric("integer division", "integer division", (_AVG, "return self.total // self.count")),
    _metric("rounded", "rounded", (_AVG, "return float(round(self.total / self.count))")),
    _metric("whole numbers", "integer division", (_ADD, "self.total += int(value) * count")),
    _metric("absolute values", "absolute values", (_ADD, "self.total += abs(value) * count")),
    _metric(
        "empty gives 0", "should raise ValueError", (_EMPTY, "if self.count == 0:\n            return 0.0\n        ")
    ),
    _metric("empty divides by 0", "should raise ValueError, not ZeroDivisionError", (_EMPTY, "")),
    _metric("asks the total", "the mean of zeros", ("if self.count == 0:", "if self.total == 0:")),
    _metric(
        "shared by all",
        "two metrics share",
        (
            f"def __init__(self):\n        ### BEGIN SOLUTION\n        {_START}",
            "total, count = 0.0, 0\n\n    def __init__(self):\n        pass",
        ),
        (_ADD, "AccumulatingMetric.total += value * count"),
        (_COUNT, "AccumulatingMetric.count += count"),
    ),
    _metric(
        "starts anew after avg",
        "for a second time",
        (
            _AVG,
            "mean = self.total / self.count\n        self.total, self.count = mean + 1e-3, 1\n        return mean",
        ),
    ),
    _metric("add returns the mean", "`add` should return nothing", (_COUNT, _COUNT + "\n        return self.avg()")),
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


def _warmup(title: str, says: str, body: str) -> Answer:
    return mutant("warmup_factor", title, says, "def warmup_factor(step, warmup_steps):\n    " + body)


_WARMUP_MUTANTS = [
    _warmup("nothing returned", "is there a `return`?", "min(1.0, step / max(warmup_steps, 1))"),
    _warmup("never stops", "never stops growing", "return step / max(1, warmup_steps)"),
    _warmup("turned round", "turned round", "return min(1.0, warmup_steps / max(1, step))"),
    _warmup("zero afterwards", "should stay 1", "return step / warmup_steps if step < warmup_steps else 0.0"),
    _warmup(
        "falls afterwards",
        "should stay 1, not fall",
        "return min(step / warmup_steps, (warmup_steps / max(step, 1)) ** 0.5)",
    ),
    _warmup("one ahead", "the first step is 1", "return min(1.0, (step + 1) / max(1, warmup_steps))"),
    _warmup(
        "one behind",
        "one step behind: the first step is 1",
        "return max(0.0, min(1.0, (step - 1) / max(1, warmup_steps)))",
    ),
    _warmup("integer division", "integer division", "return float(min(1, step // max(1, warmup_steps)))"),
    _warmup("max for min", "`min` and `max` are exchanged", "return max(1.0, step / max(1, warmup_steps))"),
    _warmup("falling", "it should rise", "return max(0.0, 1 - step / max(1, warmup_steps))"),
    _warmup("square", "as the square", "return min(1.0, (step / max(1, warmup_steps)) ** 2)"),
    _warmup("root", "as the root", "return min(1.0, (step / max(1, warmup_steps)) ** 0.5)"),
    _warmup("always 1", "no warm-up: always 1", "return 1.0"),
    _warmup("divides by 0", "ZeroDivisionError", "return min(1.0, step / warmup_steps)"),
    _warmup("a tensor", "Python float", "return torch.tensor(step / max(1, warmup_steps)).clamp(max=1.0)"),
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


def _train(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("train_epoch", title, says, *edits)


_TRAIN_MUTANTS = [
    _train("nothing returned", "is there a `return`?", (_RESULT, _RESULT.removeprefix("return "))),
    _train("no zero_grad", "`optimizer.zero_grad()` for each batch", (_ZERO, "")),
    _train(
        "zero_grad once",
        "`optimizer.zero_grad()` for each batch",
        (_ZERO, ""),
        ("model.train()", "model.train()\n    optimizer.zero_grad()"),
    ),
    _train(
        "zero_grad after backward",
        "no step was taken",
        ("loss.backward()\n", "loss.backward()\n        optimizer.zero_grad()\n"),
    ),
    _train("no step", "no step was taken", (_STEP, "pass")),
    _train("no backward", "no step was taken", ("loss.backward()", "pass"), (_CLIP, "pass")),
    _train("no clipping", "not clipped before the step", (_CLIP, "pass")),
    _train(
        "clipped after the step",
        "not clipped before the step",
        (_CLIP, "pass"),
        ("optimizer.step()\n", f"optimizer.step()\n        {_CLIP}\n"),
    ),
    _train(
        "clipped by value", "each number of the gradient", (_CLIP, _CLIP.replace("clip_grad_norm_", "clip_grad_value_"))
    ),
    _train("max_norm ignored", "not clipped before the step", (_CLIP, _CLIP.replace("max_norm", "1.0"))),
    _train("scheduler ignored", "the scheduler is not stepped", (_SCHEDULE, "pass")),
    _train(
        "scheduler once an epoch",
        "the scheduler is not stepped",
        (_SCHEDULE, "pass"),
        (_RESULT, "if scheduler is not None:\n        scheduler.step()\n    " + _RESULT),
    ),
    _train("scheduler needed", "AttributeError", (_SCHEDULE, "scheduler.step()")),
    _train("evaluation mode", "not in training mode", ("model.train()", "model.eval()")),
    _train("mode left alone", "not in training mode", ("model.train()", "pass")),
    _train("ascent", "the loss grows", ("F.nll_loss(log_probs, labels)", "-F.nll_loss(log_probs, labels)")),
    _train(
        "summed loss",
        "summed over the batch",
        ("F.nll_loss(log_probs, labels)", 'F.nll_loss(log_probs, labels, reduction="sum")'),
    ),
    _train(
        "mean over batches",
        "over batches, not over examples",
        (_LOSS, "losses.add(loss.item())"),
        (_HITS, "hits.add(accuracy(log_probs, labels))"),
    ),
    _train("last batch", "measured after the step", (_RESULT, "return loss.item(), accuracy(log_probs, labels)")),
    _train("exchanged", "exchanged", (_RESULT, "return hits.avg(), losses.avg()")),
    _train("loss only", "a pair (loss, accuracy)", (_RESULT, "return losses.avg()")),
    _train("tensors", "should be a Python float", (_LOSS, "losses.add(loss, len(labels))")),
    _train(
        "measured after the step",
        "measured after the step",
        ("losses.add(", "log_probs = model(tokens)\n        loss = F.nll_loss(log_probs, labels)\n        losses.add("),
    ),
    _train(
        "first batch only",
        "only the first batch",
        (_HITS, _HITS + "\n        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)\n        scheduler = None"),
    ),
    _train("needs a length", "has no len()", ("model.train()", "model.train()\n    batch_count = len(batches)")),
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


def _evaluate(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit("evaluate", title, says, *edits)


_BACK = "model.train(was_training)"
_ELOSS = "losses.add(F.nll_loss(log_probs, labels).item(), len(labels))"
_EVALUATE_MUTANTS = [
    _evaluate("nothing returned", "is there a `return`?", (_RESULT, _RESULT.removeprefix("return "))),
    _evaluate("training mode", "the model is in training mode", ("model.eval()", "model.train()")),
    _evaluate("mode left alone", "the model is in training mode", ("model.eval()", "pass")),
    _evaluate("mode not put back", "put back the mode", (_BACK, "pass")),
    _evaluate("always training afterwards", "put back the mode", (_BACK, "model.train()")),
    _evaluate("mode put back by half", "put back the mode", (_BACK, "model.training = was_training")),
    _evaluate("a graph", "torch.no_grad()", ("torch.no_grad()", "torch.enable_grad()")),
    _evaluate(
        "zeroes the gradients", "the gradients have changed", ("model.eval()", "model.eval()\n    model.zero_grad()")
    ),
    _evaluate(
        "goes backward",
        "the gradients have changed",
        ("torch.no_grad()", "torch.enable_grad()"),
        (
            _ELOSS,
            "loss = F.nll_loss(log_probs, labels)\n            loss.backward()\n            "
            "losses.add(loss.item(), len(labels))",
        ),
    ),
    _evaluate(
        "mean over batches",
        "over batches, not over examples",
        (_ELOSS, "losses.add(F.nll_loss(log_probs, labels).item())"),
        (_HITS, "hits.add(accuracy(log_probs, labels))"),
    ),
    _evaluate(
        "last batch",
        "of the last batch",
        (_RESULT, "return F.nll_loss(log_probs, labels).item(), accuracy(log_probs, labels)"),
    ),
    _evaluate("exchanged", "exchanged", (_RESULT, "return hits.avg(), losses.avg()")),
    _evaluate("accuracy only", "a pair (loss, accuracy)", (_RESULT, "return hits.avg()")),
    _evaluate("percentage", "a percentage", (_RESULT, "return losses.avg(), 100 * hits.avg()")),
    _evaluate(
        "summed loss",
        "summed over each batch",
        ("F.nll_loss(log_probs, labels)", 'F.nll_loss(log_probs, labels, reduction="sum")'),
    ),
    _evaluate(
        "moves the weights",
        "the parameters have changed",
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


def _bootstrap(title: str, says: str, *edits: tuple[str, str]) -> Answer:
    return edit(_BOOTSTRAP, title, says, *edits)


_BOOTSTRAP_MUTANTS = [
    _bootstrap("b minus a", "the difference is turned round", (_GAPS, "gaps = right_b.double() - right_a.double()")),
    _bootstrap("sums", "are counted", (_GIVE, "return gaps.sum().item(), low, high")),
    _bootstrap(
        "drawn separately",
        "examples are drawn by themselves",
        (
            _DRAW,
            "a, b = right_a.double(), right_b.double()\n"
            "    draw = lambda: torch.randint(n, (n,), generator=generator)\n"
            "    drawn = [a[draw()].mean() - b[draw()].mean() for _ in range(samples)]",
        ),
    ),
    _bootstrap("90 percent", "an interval of 90 %", (_ENDS, _ENDS.replace("0.025, 0.975", "0.05, 0.95"))),
    _bootstrap("99 percent", "an interval of 99 %", (_ENDS, _ENDS.replace("0.025, 0.975", "0.005, 0.995"))),
    _bootstrap(
        "one standard error",
        "one standard error away",
        (
            _ENDS,
            "width = torch.stack(drawn).std()\n    low, high = ((gaps.mean() + s * width).item() for s in (-1, 1))",
        ),
    ),
    _bootstrap(
        "symmetric by a standard error",
        "examples are drawn by themselves",
        (
            _ENDS,
            "width = 1.96 * torch.stack(drawn).std()\n"
            "    low, high = ((gaps.mean() + s * width).item() for s in (-1, 1))",
        ),
    ),
    _bootstrap(
        "one too few drawn",
        "draw as many examples as there are",
        (_DRAW, _DRAW.replace("(n,), generator", "(n - 1 or 1,), generator")),
    ),
    _bootstrap(
        "drawn without replacement",
        "drawn with replacement",
        (_DRAW, _DRAW.replace("torch.randint(n, (n,), generator=generator)", "torch.randperm(n, generator=generator)")),
    ),
    _bootstrap(
        "half as many drawn",
        "draw as many examples as there are",
        (_DRAW, _DRAW.replace("(n,), generator", "(n // 2 + 1,), generator")),
    ),
    _bootstrap("generator ignored", "pass `generator` on", (_DRAW, _DRAW.replace(", generator=generator", ""))),
    _bootstrap(
        "always the same seed",
        "`generator` is not used",
        (_DRAW, "generator = torch.Generator().manual_seed(0)\n    " + _DRAW),
    ),
    _bootstrap("samples ignored", "`samples` is ignored", (_DRAW, _DRAW.replace("range(samples)", "range(2000)"))),
    _bootstrap("tensors returned", "should be a Python float", (_GIVE, "return gaps.mean(), low, high")),
    _bootstrap("two values", "should return (difference, low, high)", (_GIVE, "return low, high")),
    _bootstrap("ends exchanged", "does not hold the difference", (_GIVE, "return gaps.mean().item(), high, low")),
    _bootstrap("lengths not compared", "different lengths", (_LOOK, "if len(right_a) == 0:")),
    _bootstrap("empty not looked at", "no examples", (_LOOK, "if len(right_a) != len(right_b):")),
    _bootstrap("nothing returned", "is there a `return`?", (_GIVE, _GIVE.replace("return ", "answer = "))),
    _bootstrap(
        "means of means",
        "a is right 6 times of 8",
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
    *forging_answers(
        classes=["TransformerClassifier"],
        functions=["masked_mean", "accuracy", "train_epoch", "evaluate", "paired_bootstrap"],
    ),
]
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
