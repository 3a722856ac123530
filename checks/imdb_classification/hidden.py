"""Hidden tests of chapter 07."""

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    build,
    call,
    expect_close,
    expect_device,
    expect_matches,
    expect_number,
    expect_parameter_gradients,
    expect_raises,
    expect_same_in_eval,
    expect_tensor,
    place,
    randint,
    randn,
    unchanged,
)
from checks.formulas import feed_forward, layer_norm, linear, multi_head_attention

State = dict[str, Tensor]


# ---- masked_mean


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    """Written as a loop over the sequences."""
    return torch.stack([row[kept].mean(0) if kept.any() else row.sum(0) * 0 for row, kept in zip(x, mask, strict=True)])


def _total(x: Tensor, mask: Tensor) -> Tensor:
    return (x * mask.unsqueeze(-1)).sum(1)


_MEAN_MISTAKES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "the mask is not used, every position counts": lambda x, mask: x.mean(1),
    "the sum is divided by n, not by the number of positions that count": lambda x, mask: _total(x, mask) / x.shape[1],
    "the sum is not divided by the number of positions that count": _total,
    "the mask is turned round: True means that a position counts": lambda x, mask: _mean(x, ~mask),
    "the first sequence's mask is used for the whole batch": lambda x, mask: _mean(x, mask[:1].expand_as(mask)),
    "the sum is divided by the count of the whole batch: each sequence has its own": lambda x, mask: (
        _total(x, mask) / mask.sum()
    ),
    "1 is added to each count": lambda x, mask: _total(x, mask) / (mask.sum(1, keepdim=True) + 1),
    "the largest value is taken, not the mean": lambda x, mask: x.masked_fill(~mask.unsqueeze(-1), -math.inf).amax(1),
    "a softmax or another weighting over the features": lambda x, mask: _mean(x.softmax(-1), mask),
    "the last position that counts is taken, not the mean of all": lambda x, mask: torch.stack(
        [row[kept][-1] for row, kept in zip(x, mask, strict=True)]
    ),
    "the average runs over the features, not over the positions": lambda x, mask: (x * mask.unsqueeze(-1)).mean(-1),
    "the average runs over the batch, not over the positions": lambda x, mask: (
        (x * mask.unsqueeze(-1)).sum(0) / mask.sum(0).unsqueeze(-1)
    ),
    "an all-False row should give zeros; divide by at least 1": lambda x, mask: (
        _total(x, mask) / mask.sum(1, keepdim=True)
    ),
}


def check_masked_mean(function: Callable) -> None:
    """Values, all-False rows, gradients."""
    square = torch.tensor([[True, False, True], [False, True, False], [True, True, True]])
    ragged = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [True] + [False] * 4, [False] * 5])
    cases = [
        {"x": randn(3, 3, 3), "mask": square},
        {"x": randn(4, 5, 2), "mask": ragged},
        {"x": randn(2, 6, 3), "mask": torch.tensor([[False, True, False, True, False, False], [True] * 6])},
        {"x": randn(1, 4, 3), "mask": torch.tensor([[True, True, True, False]])},
        {"x": randn(3, 1, 4), "mask": torch.tensor([[True], [False], [True]])},
        {"x": randn(2, 3, 1), "mask": square[:2]},
    ]
    expect_matches(function, _mean, cases, _MEAN_MISTAKES, "the mean")
    expect_tensor(call(function, randn(2, 3, 4).half(), square[:2]), (2, 4), torch.float16, "the mean")
    x = randn(2, 3, 4).requires_grad_()
    with torch.enable_grad():
        y = call(function, x, torch.tensor([[True, True, False], [False] * 3]))
        (gradient,) = torch.autograd.grad(y.sum(), [x])
    assert gradient.isfinite().all(), (
        "an all-False row has NaN gradients, which would spoil every weight of a model: dividing by 0 and replacing "
        "the NaN afterwards mends the value only; divide by `count.clamp(min=1)` instead"
    )


# ---- TransformerClassifier


def _parameter_shapes(num_tokens: int, num_classes: int, dim: int, depth: int, max_len: int) -> dict[str, tuple]:
    shapes: dict[str, tuple] = {"embedding.weight": (num_tokens, dim), "positions.weight": (max_len, dim)}
    for i in range(depth):
        for name in ("Wq", "Wk", "Wv", "WO"):
            shapes |= {
                f"blocks.{i}.attention.{name}.weight": (dim, dim),
                f"blocks.{i}.attention.{name}.bias": (dim,),
            }
        for name in ("norm_1", "norm_2"):
            shapes |= {f"blocks.{i}.{name}.weight": (dim,), f"blocks.{i}.{name}.bias": (dim,)}
        shapes |= {
            f"blocks.{i}.feed_forward.inner.weight": (4 * dim, dim),
            f"blocks.{i}.feed_forward.inner.bias": (4 * dim,),
            f"blocks.{i}.feed_forward.outer.weight": (dim, 4 * dim),
            f"blocks.{i}.feed_forward.outer.bias": (dim,),
        }
    return shapes | {
        "norm.weight": (dim,),
        "norm.bias": (dim,),
        "classes.weight": (num_classes, dim),
        "classes.bias": (num_classes,),
    }


_HINTS = {
    "blocks.": ": `blocks` is an nn.ModuleList of `depth` TransformerBlocks, each made anew; torch does not find "
    "parameters in a plain list",
    "positions": ": `positions` is PositionEmbedding(dim, dropout, max_len)",
    "norm": ": `norm` is LayerNorm(dim), the norm after the last block",
    "embedding": ": `embedding` is nn.Embedding(num_tokens, dim)",
    "classes": ": `classes` is nn.Linear(dim, num_classes)",
}


def _build(cls: Callable, sizes: tuple, dropout: float = 0.0, pad_id: int | None = None) -> tuple[nn.Module, State]:
    num_tokens, num_classes, dim, _, depth, max_len = sizes
    options = {} if pad_id is None else {"pad_id": pad_id}
    shapes = _parameter_shapes(num_tokens, num_classes, dim, depth, max_len)
    return build(partial(cls, *sizes, dropout=dropout, **options), shapes, _HINTS)


def _classify(
    state: State,
    tokens: Tensor,
    heads: int,
    depth: int,
    pad_id: int,
    positions: str = "add",
    scale: float = 1.0,
    block_mask: bool = True,
    turned: bool = False,
    pre: bool = True,
    used: int | None = None,
    pool: str = "mean",
    norm: str = "before",
    out: str = "log_softmax",
    dropped: tuple[str, ...] = (),
) -> Tensor:
    """The classifier from the formula, with a switch for each mistake."""
    mask = tokens != pad_id
    x = scale * state["embedding.weight"][tokens]
    place_vectors = state["positions.weight"][: tokens.shape[1]]
    x = x + {"add": place_vectors, "none": 0.0, "first": place_vectors[:1]}[positions]
    if "positions" in dropped:
        x = torch.zeros_like(x)
    for i in range(depth if used is None else used):
        name = f"blocks.{i}"
        attention_mask = (~mask if turned else mask).unsqueeze(1) if block_mask else None

        def attend(x: Tensor, name: str = name, m: Tensor | None = attention_mask) -> Tensor:
            return 0 * x if "blocks" in dropped else multi_head_attention(state, f"{name}.attention.", x, x, heads, m)

        def feed(x: Tensor, name: str = name) -> Tensor:
            return 0 * x if "blocks" in dropped else feed_forward(state, f"{name}.feed_forward.", x)

        if pre:
            x = x + attend(layer_norm(state, f"{name}.norm_1", x))
            x = x + feed(layer_norm(state, f"{name}.norm_2", x))
        else:
            x = layer_norm(state, f"{name}.norm_1", x + attend(x))
            x = layer_norm(state, f"{name}.norm_2", x + feed(x))
    x = layer_norm(state, "norm", x) if norm == "before" else x
    kept = mask.unsqueeze(-1)
    x = {
        "mean": lambda: (x * kept).sum(1) / kept.sum(1).clamp(min=1),
        "all": lambda: x.mean(1),
        "first": lambda: x[:, 0],
        "last": lambda: x[:, -1],
        "max": lambda: x.amax(1),
        "masked max": lambda: x.masked_fill(~kept, -math.inf).amax(1),
        "sum": lambda: (x * kept).sum(1),
        "over n": lambda: (x * kept).mean(1),
    }[pool]()
    x = layer_norm(state, "norm", x) if norm == "after" else x
    scores = linear(state, "classes", x)
    return {
        "log_softmax": lambda: scores.log_softmax(-1),
        "softmax": lambda: scores.softmax(-1),
        "logits": lambda: scores,
        "batch": lambda: scores.log_softmax(0),
        "sigmoid": scores.sigmoid,
        "logsigmoid": lambda: F.logsigmoid(scores),
        "relu": lambda: scores.relu().log_softmax(-1),
    }[out]()


def _classifier_mistakes(dim: int, pad_id: int) -> dict[str, dict[str, Any]]:
    mistakes: dict[str, dict[str, Any]] = {
        "the scores of the classes are returned: a log-softmax is missing": {"out": "logits"},
        "probabilities are returned, not log-probabilities: use a log-softmax": {"out": "softmax"},
        "the log-softmax runs over the batch: the classes are the last dimension": {"out": "batch"},
        "a sigmoid takes the place of the log-softmax": {"out": "sigmoid"},
        "a log-sigmoid takes the place of the log-softmax": {"out": "logsigmoid"},
        "a ReLU follows `classes`": {"out": "relu"},
        "the blocks do not get the mask, so that words attend to padding": {"block_mask": False},
        "neither the blocks nor the mean get the mask": {"block_mask": False, "pool": "all"},
        "the blocks' mask is turned round: True means that a token may be attended to": {"turned": True},
        "the mean runs over padding too": {"pool": "all"},
        "the sum is divided by n, padding included: use your masked_mean": {"pool": "over n"},
        "the sum over the tokens is taken, not the mean": {"pool": "sum"},
        "only the first position is read, not the mean of all": {"pool": "first"},
        "only the last position is read, not the mean of all": {"pool": "last"},
        "the largest value over the positions is taken, not the mean": {"pool": "max"},
        "the largest value over the tokens is taken, not the mean": {"pool": "masked max"},
        "no positions are added, so that the order of words is lost": {"positions": "none"},
        "every token gets the first position": {"positions": "first"},
        "the embedding is scaled by the root of dim": {"scale": dim**0.5},
        "the blocks are post-norm: pass norm_first=True": {"pre": False},
        "`norm` is not used": {"norm": "none"},
        "`norm` comes after the mean: it acts on each position, before they are averaged": {"norm": "after"},
        "the blocks are not used": {"used": 0},
        "only the first block is used: each one reads what the one before returned": {"used": 1},
    }
    if pad_id != 1:
        mistakes["the argument `pad_id` is ignored"] = {"pad_id": 1}
    if pad_id != 0:
        mistakes["padding is taken to be token 0"] = {"pad_id": 0}
    return mistakes


# num_tokens, num_classes, dim, heads, depth, max_len
_MODELS = [((7, 3, 6, 2, 2, 9), None), ((11, 2, 4, 1, 3, 6), 4), ((5, 4, 6, 3, 1, 8), 0)]


def _tokens(batch: int, n: int, num_tokens: int, pad_id: int) -> Tensor:
    """Sequences of different lengths, padded at the end."""
    tokens = randint(0, num_tokens - 1, (batch, n))
    tokens = tokens + (tokens >= pad_id)  # no padding among them
    # Tokens that a wrong pad_id would take for padding.
    tokens[0, 0] = 0 if pad_id else 1
    tokens[0, -1] = 1 if pad_id != 1 else 0
    for b in range(1, batch):
        tokens[b, n - b * (n // batch) :] = pad_id
    return tokens


def check_classifier(cls: Callable) -> None:
    """Parameters, values, padding, length, dropout, gradients."""
    for sizes, pad in _MODELS:
        num_tokens, _, dim, heads, depth, max_len = sizes
        module, state = _build(cls, sizes, pad_id=pad)
        pad_id = 1 if pad is None else pad
        module.eval()
        for batch, n in ((3, 6), (2, max_len), (1, 5), (4, 1)):
            n = min(n, max_len)
            tokens = _tokens(batch, n, num_tokens, pad_id)
            settings = {"heads": heads, "depth": depth, "pad_id": pad_id}
            mistakes = {
                cause: partial(_classify, state, tokens, **(settings | switches))
                for cause, switches in _classifier_mistakes(dim, pad_id).items()
            }
            with unchanged(tokens=tokens):
                value = call(module, tokens)
            right = _classify(state, tokens, heads, depth, pad_id)
            about = f"the result for tokens of shape {tuple(tokens.shape)}, pad_id={pad_id}, depth={depth}"
            expect_close(value, right, about, mistakes, torch.float64, tolerance=1e-7)
        _check_padding(module, sizes, pad_id)
        too_long = _tokens(2, max_len + 1, num_tokens, pad_id)
        expect_raises(
            ValueError, partial(module, too_long), f"a sequence of {max_len + 1} tokens for max_len={max_len}"
        )
    _check_classifier_dropout(cls)
    _check_classifier_gradients(cls)


def _check_padding(module: nn.Module, sizes: tuple, pad_id: int) -> None:
    num_tokens, max_len = sizes[0], sizes[-1]
    tokens = _tokens(1, max_len - 2, num_tokens, pad_id)
    padded = F.pad(tokens, (0, 2), value=pad_id)
    expect_close(
        call(module, padded), call(module, tokens).detach(), "the result of a sequence after padding is put behind it"
    )
    alone = call(module, torch.full((2, 3), pad_id))
    expect_tensor(alone, (2, sizes[1]))
    assert alone.isfinite().all(), "a sequence of nothing but padding gives NaN: its mean should be zeros"


def _check_classifier_dropout(cls: Callable) -> None:
    sizes = (7, 3, 6, 2, 2, 9)
    tokens = _tokens(3, 6, 7, 1)
    module, state = _build(cls, sizes, dropout=0.5)
    expect_same_in_eval(module, [tokens], "the classifier", _classify(state, tokens, 2, 2, 1))
    module, state = _build(cls, sizes, dropout=1.0)
    right = partial(_classify, state, tokens, 2, 2, 1)
    module.train()
    expect_close(
        call(module, tokens),
        right(dropped=("positions", "blocks")),
        "while training with dropout=1.0 nothing should be left: the result",
        {
            "`dropout` has no effect: pass it to `positions` and to the blocks": right,
            "`dropout` is not passed to `positions`": lambda: right(dropped=("blocks",)),
            "`dropout` is not passed to the blocks": lambda: right(dropped=("positions",)),
        },
    )


def _check_classifier_gradients(cls: Callable) -> None:
    sizes = (7, 3, 6, 2, 2, 9)
    module, state = _build(cls, sizes)
    tokens = torch.cat([_tokens(3, 6, 7, 1), torch.ones(1, 6, dtype=torch.long)])
    oracle = partial(_classify, heads=2, depth=2, pad_id=1)
    expect_parameter_gradients(module, oracle, state, [tokens])
    expect_device(module.to("meta"), {"tokens": tokens})


# ---- accuracy


def _accuracy_mistakes(scores: Tensor, labels: Tensor) -> dict[str, Callable[[], float]]:
    right = (scores.argmax(-1) == labels).double()
    one = (scores[:, 1:2].exp() > 0.5).squeeze(-1).long()
    return {
        "the right answers are counted, not divided by their number": lambda: right.sum().item(),
        "a percentage: it should be a fraction between 0 and 1": lambda: 100 * right.mean().item(),
        "the fraction of wrong answers": lambda: 1 - right.mean().item(),
        "the least likely class is taken": lambda: (scores.argmin(-1) == labels).double().mean().item(),
        "the maximum is taken over the examples, not over the classes": lambda: (
            (scores.argmax(0) == labels).double().mean().item()
        ),
        "only the first example is counted": lambda: right[0].item(),
        "integer division gives 0": lambda: right.sum().item() // len(labels),
        "class 1 is taken where its probability is above one half, whatever the others have": lambda: (
            (one == labels).double().mean().item()
        ),
        "the mean probability of the right class": lambda: scores.exp()[range(len(labels)), labels].mean().item(),
        "the sum is divided by the number of classes": lambda: right.sum().item() / scores.shape[1],
    }


def _examples(batch: int, classes: int, telling: bool) -> tuple[Tensor, Tensor]:
    """Log-probabilities and labels; `telling`: such that each mistake but the last gives another number."""
    while True:
        scores = (3 * randn(batch, classes)).log_softmax(-1)
        labels = randint(0, classes, (batch,))
        some, few = batch // 2 + 1, batch // 4
        labels[:some] = scores.argmax(-1)[:some]
        labels[some : some + few] = scores.argmin(-1)[some : some + few]
        if not telling:
            return scores, labels
        found = [round(mistake(), 5) for mistake in list(_accuracy_mistakes(scores, labels).values())[:-1]]
        if len({*found}) == len(found):
            return scores, labels


def check_accuracy(function: Callable) -> None:
    """Values for any number of classes and examples, a Python float."""
    for batch, classes in ((24, 24), (6, 2), (7, 3), (5, 9), (1, 3), (4, 1)):
        scores, labels = _examples(batch, classes, telling=batch == classes)
        for dtype in (torch.float64, torch.float32):
            for shift in (0.0, 20.0):  # any scores will do, whether below 0 or above
                given = (scores + shift).to(dtype)
                with unchanged(log_probs=given, labels=labels):
                    value = call(function, given, labels)
                hits = [int(row.index(max(row)) == y) for row, y in zip(given.tolist(), labels.tolist(), strict=True)]
                name = f"the accuracy of {batch} examples with {classes} classes"
                expect_number(value, sum(hits) / batch, name, _accuracy_mistakes(given.double(), labels))
    scores, _ = _examples(7, 3, telling=False)
    right, wrong = scores.argmax(-1), scores.argmin(-1)
    for labels, share in ((right, 1.0), (wrong, 0.0), (right, 1.0)):
        name = f"the accuracy when {'every' if share else 'no'} answer is right"
        expect_number(call(function, scores, labels), share, name, _accuracy_mistakes(scores, labels))


# ---- AccumulatingMetric


def check_metric(cls: Callable) -> None:
    """Weighted means, several metrics at once, no state lost, the error when empty."""
    first, second = call(cls), call(cls)
    assert first.add(1.0, 2) is None, "`add` should return nothing: it takes in, `avg` says the mean"
    before = [call(first.avg), call(first.avg)]
    second.add(5.0, 1)
    if before[0] == before[1]:
        assert first.avg() == before[0], (
            "two metrics share what they count: set it in `__init__`, on `self`, not on the class"
        )
    metric, (values, counts) = call(cls), _telling_values()
    for value, count in zip(values, counts, strict=True):
        metric.add(value, count)
    for again in ("", " when it is asked for a second time"):
        _expect_mean(metric, values, counts, again)
    for with_count in (False, True):
        metric, values, counts = call(cls), [], []
        for _ in range(4):
            value, count = random.uniform(-3, 3), random.randint(2, 9) if with_count else 1
            metric.add(value, count) if with_count else metric.add(value)
            values.append(value)
            counts.append(count)
            _expect_mean(metric, values, counts, "")
    zero = call(cls)
    zero.add(0.0, 3)
    try:
        mean = zero.avg()
    except ValueError:
        raise AssertionError(
            "the mean of zeros is 0, not an error: ask whether the count is 0, not the total"
        ) from None
    expect_number(mean, 0.0, "the mean of three zeros", {})
    try:
        mean = call(cls).avg()
    except ValueError:
        return
    except ZeroDivisionError:
        raise AssertionError(
            "an empty metric should raise ValueError, not ZeroDivisionError: look before you divide"
        ) from None
    raise AssertionError(f"the mean of nothing should raise ValueError, but nothing was raised: it gave {mean!r}")


def _telling_values() -> tuple[list[float], list[int]]:
    """Values and counts for which each mistake gives another number."""
    while True:
        values = [random.uniform(-3, 3) for _ in range(4)]
        counts = random.sample(range(2, 9), 4)
        right = sum(v * c for v, c in zip(values, counts, strict=True)) / sum(counts)
        found = [right, *(mistake() for mistake in _metric_mistakes(values, counts).values())]
        if len({round(value, 4) for value in found}) == len(found):
            return values, counts


def _expect_mean(metric: Any, values: list[float], counts: list[int], again: str) -> None:
    total = sum(v * c for v, c in zip(values, counts, strict=True))
    name = f"the mean after {len(values)} values{again}"
    expect_number(call(metric.avg), total / sum(counts), name, _metric_mistakes(values, counts))


def _metric_mistakes(values: list[float], counts: list[int]) -> dict[str, Callable[[], float]]:
    total = sum(v * c for v, c in zip(values, counts, strict=True))

    def running() -> float:
        mean = values[0]
        for value in values[1:]:
            mean = (mean + value) / 2
        return mean

    return {
        "`count` is not used: each value stands for `count` examples": lambda: sum(values) / len(values),
        "the values are not multiplied by their counts": lambda: sum(values) / sum(counts),
        "the sum is divided by the number of calls, not of examples": lambda: total / len(values),
        "the sum is returned, not the mean": lambda: total,
        "only the last value is kept": lambda: values[-1],
        "the mean of the old mean and the new value: old values would fade": running,
        "integer division": lambda: float(total // sum(counts)),
        "the result is rounded": lambda: float(round(total / sum(counts))),
        "values are cut to whole numbers": lambda: (
            sum(int(v) * c for v, c in zip(values, counts, strict=True)) / sum(counts)
        ),
        "the largest value is kept": lambda: max(values),
        "absolute values are added up": lambda: (
            sum(abs(v) * c for v, c in zip(values, counts, strict=True)) / sum(counts)
        ),
    }


# ---- warmup_factor


_WARMUP_MISTAKES: dict[str, Callable[[int, int], float]] = {
    "it never stops growing: the factor is at most 1": lambda s, w: s / w,
    "the fraction is turned round": lambda s, w: min(1.0, w / s),
    "after the warm-up it should stay 1": lambda s, w: s / w if s < w else 0.0,
    "after the warm-up it should stay 1, not fall": lambda s, w: min(s / w, (w / s) ** 0.5),
    "the first step is 1, so nothing is to be added to it": lambda s, w: min(1.0, (s + 1) / w),
    "one step behind: the first step is 1": lambda s, w: max(0.0, min(1.0, (s - 1) / w)),
    "integer division: the factor is 0 all the way": lambda s, w: float(min(1, s // w)),
    "it is at least 1, not at most: `min` and `max` are exchanged": lambda s, w: max(1.0, s / w),
    "it falls during the warm-up, it should rise": lambda s, w: max(0.0, 1 - s / w),
    "it grows as the square of the step, not linearly": lambda s, w: min(1.0, (s / w) ** 2),
    "it grows as the root of the step, not linearly": lambda s, w: min(1.0, (s / w) ** 0.5),
    "there is no warm-up: always 1": lambda s, w: 1.0,
}


def check_warmup(function: Callable) -> None:
    """Every step of short and long warm-ups, and none at all."""
    # One step before the end of the warm-up and one after it tell all these mistakes apart.
    during, after = call(function, 3, 10), call(function, 30, 10)
    mistakes = {
        cause: mistake
        for cause, mistake in _WARMUP_MISTAKES.items()
        if (during, after) == (mistake(3, 10), mistake(30, 10))
    }
    for warmup in (10, 1, 4, 1000, 0):
        for step in (3, 30, 0, 1, 2, 4, 5, 9, 10, 11, 500, 999, 1000, 1001, 100_000):
            expect_number(
                call(function, step, warmup),
                1.0 if step >= warmup else step / warmup,
                f"the factor of step {step} of a warm-up of {warmup}",
                {cause: lambda f=mistake, s=step, w=warmup: f(s, w) for cause, mistake in mistakes.items()},
            )


# ---- train_epoch and evaluate


def make_model(table, dropout):
    """A classifier of one table, which notes how it is used."""

    class Inner(nn.Module):
        def forward(self, x):
            return x

    class Toy(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(table.clone())
            self.inner = Inner()
            self.dropout = nn.Dropout(dropout)
            self.modes = []

        def forward(self, tokens):
            self.modes.append([self.inner.training, torch.is_grad_enabled()])
            return F.log_softmax(self.dropout(self.inner(4 * self.table[tokens].mean(1))), -1)

    return Toy()


def make_optimizer(model, rate):
    """Plain gradient descent."""
    return torch.optim.SGD(model.parameters(), lr=rate)


def make_scheduler(optimizer, factor):
    """The rate times `factor` after each step."""
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, factor)


def make_stream(batches):
    """The batches, once and in order, as a loader gives them: no length, no second pass."""
    return iter(batches)


def leave_gradient(model):
    """Let a gradient stand in the model, as an interrupted step would."""
    model.table.grad = torch.ones_like(model.table)


_Batches = list[tuple[Tensor, Tensor]]


def _batches() -> _Batches:
    """Of different sizes and lengths, so that means over batches and over examples differ."""
    return [(randint(0, 5, (b, n)), randint(0, 3, (b,))) for b, n in ((5, 3), (2, 4), (1, 6), (4, 2))]


def _simulate(
    table: Tensor,
    batches: _Batches,
    rate: float = 0.0,
    factor: float = 1.0,
    max_norm: float = math.inf,
    zero: bool = True,
    clip: str = "norm",
    schedule: str = "batch",
    step: bool = True,
    weigh: str = "examples",
    sign: float = 1.0,
    reduce: str = "mean",
    before: bool = True,
    once: bool = False,
) -> tuple[Tensor, float, float]:
    """An epoch of gradient descent written out, with a switch for each mistake: table, loss and accuracy."""
    table, kept = table.double().clone(), torch.zeros_like(table).double()
    losses, hits, counts = [], [], []
    for number, (tokens, labels) in enumerate(batches):
        with torch.enable_grad():
            leaf = table.clone().requires_grad_()
            log_probs = (4 * leaf[tokens].mean(1)).log_softmax(-1)
            each = -log_probs[range(len(labels)), labels]
            loss = each.sum() if reduce == "sum" else each.mean()
            (gradient,) = torch.autograd.grad(sign * loss, [leaf])
        gradient = gradient if zero else gradient + kept
        if clip == "norm" and gradient.norm() > max_norm:
            gradient = gradient * max_norm / gradient.norm()
        elif clip == "value":
            gradient = gradient.clamp(-max_norm, max_norm)
        kept = gradient
        if step and (not once or number == 0):
            table = table - rate * gradient
        if schedule == "batch":
            rate *= factor
        if not before:
            log_probs = (4 * table[tokens].mean(1)).log_softmax(-1)
            loss = -log_probs[range(len(labels)), labels].mean()
        losses.append(loss.item())
        hits.append((log_probs.argmax(-1) == labels).double().mean().item())
        counts.append(len(labels))
    weights = counts if weigh == "examples" else [1] * len(counts)
    if weigh == "last":
        return table, losses[-1], hits[-1]
    divisor = {"examples": sum(counts), "batches": len(counts), "none": 1, "calls": len(counts)}[weigh]
    if weigh == "calls":
        weights = counts
    return (
        table,
        sum(a * w for a, w in zip(losses, weights, strict=True)) / divisor,
        sum(a * w for a, w in zip(hits, weights, strict=True)) / divisor,
    )


_WEIGHINGS = {
    "the mean over batches, not over examples: a batch counts as many times as it has examples": "batches",
    "the values of the last batch, not the mean over all": "last",
    "the values are added up and not divided": "none",
    "the sum over examples is divided by the number of batches": "calls",
}


def _expect_pair(result: Any, name: str) -> tuple[Any, Any]:
    assert result is not None, f"{name} returned None: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == 2, (
        f"{name} should return a pair (loss, accuracy), got a {result.__class__.__name__}"
    )
    return result[0], result[1]


def _expect_results(result: Any, name: str, right: tuple, wrong: dict[str, tuple]) -> None:
    """The loss and the accuracy; `right` and each of `wrong` are (table, loss, accuracy)."""
    loss, hits = _expect_pair(result, name)
    exchanged = {"loss and accuracy are exchanged: return (loss, accuracy)": lambda: right[2]}
    expect_number(loss, right[1], f"{name}: the loss", {c: lambda w=w: w[1] for c, w in wrong.items()} | exchanged)
    percentage = {"a percentage: it should be a fraction": lambda: 100 * right[2]}
    expect_number(hits, right[2], f"{name}: the accuracy", {c: lambda w=w: w[2] for c, w in wrong.items()} | percentage)


def _toy(beside: Any, table: Tensor, dropout: float = 0.0) -> nn.Module:
    return place(make_model, beside=beside)(table, dropout)


_TRAINING = {
    "no step was taken: is `optimizer.step()` called?": {"step": False},
    "the gradients of earlier batches are still there: call `optimizer.zero_grad()` for each batch": {"zero": False},
    "the loss grows: the optimizer minimises, so give it the loss without a minus": {"sign": -1.0},
    "the gradients are not clipped before the step": {"clip": "none"},
    "each number of the gradient is clipped, not its norm: use `nn.utils.clip_grad_norm_`": {"clip": "value"},
    "the argument `max_norm` is ignored": {"max_norm": 1.0},
    "the scheduler is not stepped": {"schedule": "none"},
    "the loss is summed over the batch, not averaged, before `backward`": {"reduce": "sum"},
    "only the first batch is trained on": {"once": True},
}


def check_train_epoch(function: Callable) -> None:
    """The weights afterwards, with and without clipping and a schedule; the numbers returned; the mode."""
    for rate, factor, max_norm in ((0.3, 1.0, 100.0), (0.4, 1.0, 0.05), (0.3, 0.5, 100.0), (0.3, 0.6, None)):
        for dtype in (torch.float64, torch.float32):
            _check_training(function, rate, factor, max_norm, dtype)
    model = _toy(function, randn(5, 3), dropout=0.5)
    model.eval()
    call(function, model, _batches(), place(make_optimizer, beside=function)(model, 0.1))
    assert all(training for training, _ in model.modes), (
        "the model is not in training mode while it trains: call `model.train()`, or dropout stays off"
    )


def _check_training(function: Callable, rate: float, factor: float, max_norm: float | None, dtype: torch.dtype) -> None:
    batches = _batches()
    table = randn(5, 3).to(dtype)
    model = _toy(function, table)
    optimizer = place(make_optimizer, beside=function)(model, rate)
    scheduler = place(make_scheduler, beside=function)(optimizer, factor) if factor != 1.0 else None
    stream = place(make_stream, beside=function)(batches)
    options = {} if max_norm is None else {"max_norm": max_norm}
    if max_norm is None:
        result = call(function, model, stream, optimizer, scheduler)
    else:
        result = call(function, model, stream, optimizer, scheduler=scheduler, **options)
    settings = {"rate": rate, "factor": factor, "max_norm": max_norm or 1.0}
    right = _simulate(table, batches, **settings)
    wrong = {cause: _simulate(table, batches, **(settings | switch)) for cause, switch in _TRAINING.items()}
    wrong = {c: w for c, w in wrong.items() if not torch.allclose(w[0], right[0], rtol=1e-3, atol=1e-3)}
    after = dict(model.named_parameters())["table"].detach()
    name = f"training with max_norm={settings['max_norm']} and {'a' if scheduler is not None else 'no'} scheduler"
    causes = {cause: lambda w=w: w[0] for cause, w in wrong.items()}
    # torch adds 1e-6 to the norm before it divides.
    expect_close(after, right[0], f"{name}: the weights afterwards", causes, tolerance=1e-4)
    later = _simulate(table, batches, **settings, before=False)
    weighings = {c: _simulate(table, batches, **settings, weigh=weigh) for c, weigh in _WEIGHINGS.items()}
    _expect_results(
        result,
        name,
        right,
        weighings | {"the batch is measured after the step: use the loss that was trained on": later},
    )


def check_evaluate(function: Callable) -> None:
    """The numbers returned, call after call; nothing about the model changed, its mode neither."""
    for training in (True, False) * 3:
        batches = _batches()
        table = randn(5, 3)
        model = _toy(function, table, dropout=0.5)
        model.train(training)
        place(leave_gradient, beside=function)(model)
        result = call(function, model, place(make_stream, beside=function)(batches))
        assert not any(inside for inside, _ in model.modes), (
            "the model is in training mode while it is measured, so dropout spoils the numbers: call `model.eval()`"
        )
        right = _simulate(table, batches)
        weighings = {c: _simulate(table, batches, weigh=weigh) for c, weigh in _WEIGHINGS.items()}
        weighings["the loss is summed over each batch"] = _simulate(table, batches, reduce="sum")
        _expect_results(result, "evaluate", right, weighings)
        mode = "training" if training else "evaluation"
        assert model.training == training and model.inner.training == training, (
            f"the model was in {mode} mode before and is not any more: put back the mode that you found"
        )
        parameter = dict(model.named_parameters())["table"]
        assert torch.equal(parameter.detach(), table), "the parameters have changed: measuring must not train"
        assert parameter.grad is not None and torch.equal(parameter.grad, torch.ones_like(table)), (
            "the gradients have changed: no `backward` and no `zero_grad` while measuring"
        )
        assert not any(recording for _, recording in model.modes), (
            "a graph is recorded for gradients that nobody wants, which costs memory: work inside `torch.no_grad()`"
        )


# ---- is it better?

_BOTH, _FIRST_ALONE, _SECOND_ALONE = 0.45, 0.15, 0.05  # of all examples; neither is right on the rest
_LUCK = 7.5  # standard deviations: chance alone goes beyond them once in 10¹⁰ checks


def _answers(count: int) -> tuple[Tensor, Tensor]:
    """Two models that agree on four of five examples, so that what pairing brings shows; only their order is chance."""
    place_of = randn(count).argsort()
    both, first, second = (round(share * count) for share in (_BOTH, _FIRST_ALONE, _SECOND_ALONE))
    a = place_of < both + first
    return a, (place_of < both) | ((place_of >= both + first) & (place_of < both + first + second))


def _call_bootstrap(function: Callable, a: Tensor, b: Tensor, samples: int, seed: int) -> tuple[float, float, float]:
    with unchanged(right_a=a, right_b=b):
        result = call(function, a, b, samples, torch.Generator().manual_seed(seed))
    assert isinstance(result, tuple | list) and len(result) == 3, (
        f"paired_bootstrap should return (difference, low, high), got {result!r}"
    )
    for value in result:
        assert isinstance(value, float) and not isinstance(value, Tensor), (
            f"each of the three should be a Python float, got {value!r}: `.item()`"
        )
    return tuple(result)


def check_paired_bootstrap(function: Callable) -> None:
    """Single draws, both ends against the exact distribution, ten examples, one, errors."""
    _check_single_draws(function)
    _check_both_ends(function)
    _check_bootstrap_of_few(function)
    one = torch.tensor([True])
    assert _call_bootstrap(function, one, ~one, 50, 0) == (1.0, 1.0, 1.0), "of one example every draw is the same"
    for shorter, what in ((3, "different lengths"), (0, "no examples")):
        a, b = torch.ones(shorter).bool(), torch.ones(5 if shorter else 0).bool()
        expect_raises(ValueError, lambda a=a, b=b: function(a, b), what)


def _check_single_draws(function: Callable) -> None:
    """What holds of every draw, whatever chance does; a prime number of examples, so that others show."""
    count = 499
    a, b = _answers(count)
    _, low, high = _call_bootstrap(function, a, b, 50, 0)
    assert low != high, "the interval has no width: are the examples drawn with replacement, as many as there are?"
    once = [_call_bootstrap(function, a, b, 1, seed) for seed in range(10)]
    again = [_call_bootstrap(function, a, b, 1, seed) for seed in range(10)]
    if any(math.isnan(end) for result in once for end in result):
        return  # a standard error of one draw: the check of both ends says so
    assert all(low == high for _, low, high in once), (
        "with samples=1 there is one difference, and both percentiles are it: `samples` is ignored"
    )
    assert once == again, "the same generator gives two results: pass `generator` on to whatever draws the examples"
    assert len(set(once)) > 1, "another generator gives the same result: `generator` is not used"
    assert all(abs(count * low - round(count * low)) < 1e-3 for _, low, _ in once), (
        f"one draw of {count} examples gives a difference that is no multiple of 1/{count}: draw as many examples as "
        "there are"
    )


def _check_both_ends(function: Callable) -> None:
    """As many draws as it takes to tell 2.5 percent from 5, and the exact distribution that they come from."""
    count, samples = 601, 16_000
    a, b = _answers(count)
    difference, low, high = _call_bootstrap(function, a.clone(), b.clone(), samples, 3)
    gap = a.double() - b.double()
    mean, width = float(gap.mean()), float(gap.std(correction=0)) / count**0.5
    expect_number(difference, mean, "the difference", {"b minus a": lambda: -mean})
    allowed = [_ends_of(gap, share, samples) for share in (0.025, 0.975)]
    if all(least - 1e-6 <= end <= most + 1e-6 for end, (least, most) in zip((low, high), allowed, strict=True)):
        return
    apart = float(((a.double().var() + b.double().var()) / count) ** 0.5) / width
    causes = {
        "each model's examples are drawn by themselves, which makes the interval too wide: draw the same examples for "
        "both": 1.96 * apart,
        "the percentiles are 5 and 95, which is an interval of 90 %": 1.645,
        "the percentiles are 0.5 and 99.5, which is an interval of 99 %": 2.576,
        "the ends are one standard error away, not the 2.5 and 97.5 percentiles": 1.0,
    }
    named = [
        f". Likely cause: {cause}"
        for cause, errors in causes.items()
        if abs((high - low) / 2 / width - errors) < 0.2 and abs((high + low) / 2 - mean) < 0.3 * width
    ]
    raise AssertionError(
        f"the interval is {low:.4f} to {high:.4f}, it should be near {mean - 1.96 * width:.4f} to "
        f"{mean + 1.96 * width:.4f}: the 2.5 and 97.5 percentiles of the difference when the examples are drawn anew"
        + "".join(named[:1])
    )


def _ends_of(gap: Tensor, share: float, samples: int) -> tuple[float, float]:
    """Between what numbers the percentile of so many draws lies, from the exact distribution of a draw's mean."""
    count = len(gap)
    one = torch.stack([(gap == value).double().mean() for value in (0, 1, -1)])
    circle = torch.zeros(2 * count + 1, dtype=torch.float64)  # a sum of -1 is the last, one of 1 the second
    circle[[0, 1, -1]] = one
    sums = torch.fft.ifft(torch.fft.fft(circle) ** count).real.roll(count)  # from -count to count
    reached = sums.cumsum(0)
    luck = _LUCK * (share * (1 - share) / samples) ** 0.5
    least, most = (int((reached >= share + s * luck).nonzero()[0]) - count for s in (-1, 1))
    return least / count, most / count


def _check_bootstrap_of_few(function: Callable) -> None:
    """Ten examples, one in favour of a: the means are a tenth of a binomial, from 0 to 3/10, and nothing is normal."""
    a, b = torch.zeros(10).bool(), torch.zeros(10).bool()
    a[int(randint(0, 10, (1,)))] = True
    _, low, high = _call_bootstrap(function, a, b, 10_000, 5)
    assert abs(low) < 1e-6, (
        f"with ten examples, of which one favours a, the low end is 0, got {low:.4f}. Likely cause: the interval is "
        "made symmetric by a standard error: take the percentiles of the differences that were drawn"
    )
    assert abs(high - 0.3) < 1e-6, (
        f"with ten examples, of which one favours a, the 97.5 percentile is 0.3, got {high:.4f}"
    )
