"""Hidden tests of chapter 07."""

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    Unexplained,
    build,
    call,
    complain,
    draw_probability,
    draw_sizes,
    expect,
    expect_close,
    expect_device,
    expect_drawn_from_generator,
    expect_dropout_anew,
    expect_gradients,
    expect_matches,
    expect_number,
    expect_parameter_gradients,
    expect_raises,
    expect_same_in_eval,
    expect_tensor,
    learning_names,
    named_parameters,
    nearest,
    place,
    randint,
    randn,
    seed,
    set_weights,
    unchanged,
)
from checks.chance import drawn_between, drawn_medium
from checks.formulas import feed_forward, layer_norm, linear, multi_head_attention
from checks.imdb_classification import mistakes as m
from checks.imdb_classification.visible import expect_pair, expect_triple

State = dict[str, Tensor]


# ---- masked_mean


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    """Written as a loop over the sequences."""
    return torch.stack([row[kept].mean(0) if kept.any() else row.sum(0) * 0 for row, kept in zip(x, mask, strict=True)])


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
    # Drawn at each judgement: long texts, many of them, many features.
    medium = [((2, 4), lengths, (5, 9)) for lengths in ((61, 200), (201, 600))]
    for ranges in (((9, 40), (17, 64), (2, 8)), ((2, 4), (600, 3000), (5, 9)), ((100, 300), (2, 9), (60, 90)), *medium):
        batch, n, dim = draw_sizes(*ranges)
        some = torch.arange(n) < randint(0, n + 1, (batch, 1))  # padded at the end, or not at all
        some[0], some[1] = True, randn(n) > 0
        cases.append({"x": randn(batch, n, dim), "mask": some})
    expect_matches(function, _mean, cases, name="the mean", gradients=False)
    expect_gradients(function, _mean, cases[0])
    some = torch.tensor([[True, False, True], [False] * 3])
    half = call(function, randn(2, 3, 4).half(), some)
    expect_tensor(half, (2, 4), torch.float16, "the mean")
    told = {"expected": "zeros", "got": half[1]}
    expect(not half[1].isnan().any(), m.masked_mean.EMPTY_ROW, "the mean of an all-False row in float16", **told)
    x = randn(2, 3, 4).requires_grad_()
    with torch.enable_grad():
        y = call(function, x, torch.tensor([[True, True, False], [False] * 3]))
        (gradient,) = torch.autograd.grad(y.sum(), [x])
    expect(gradient.isfinite().all(), m.masked_mean.EMPTY_ROW_GRADIENT)
    expect_gradients(function, _mean, cases[1])


# ---- TransformerClassifier


def _parameter_shapes(
    num_tokens: int, num_classes: int, dim: int, depth: int, max_len: int, width: tuple = ()
) -> dict[str, tuple]:
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
            f"blocks.{i}.feed_forward.inner.weight": (4 * dim, dim, *width),
            f"blocks.{i}.feed_forward.inner.bias": (4 * dim,),
            f"blocks.{i}.feed_forward.outer.weight": (dim, 4 * dim, *width),
            f"blocks.{i}.feed_forward.outer.bias": (dim,),
        }
    return shapes | {
        "norm.weight": (dim,),
        "norm.bias": (dim,),
        "classes.weight": (num_classes, dim),
        "classes.bias": (num_classes,),
    }


_HINTS = {
    "feed_forward": Common.PARAMETER_SHAPE,  # attention, which comes before, is there
    "blocks.": m.TransformerClassifier.BLOCKS,
    "positions": m.TransformerClassifier.POSITIONS,
    "classes": m.TransformerClassifier.CLASSES,
}


def _build(cls: Callable, sizes: tuple, dropout: float = 0.0, pad_id: int | None = None) -> tuple[nn.Module, State]:
    num_tokens, num_classes, dim, _, depth, max_len = sizes
    options = {} if pad_id is None else {"pad_id": pad_id}
    make = partial(cls, *sizes, dropout=dropout, **options)
    inner = named_parameters(call(make)).get("blocks.0.feed_forward.inner.weight")
    width = (1,) if inner is not None and inner.dim() == 3 else ()  # chapter 06 takes a ConvFeedForward as well
    return build(make, _parameter_shapes(num_tokens, num_classes, dim, depth, max_len, width), _HINTS)


def _classify(
    state: State,
    tokens: Tensor,
    heads: int,
    depth: int,
    pad_id: int,
    positions: str = "add",
    scale: float = 1.0,
    pre: bool = True,
    used: int | None = None,
    normed: str = "last",
    twice: str = "",
    dropped: tuple[str, ...] = (),
    counted: bool = False,
) -> Tensor:
    """The classifier from the formula, with a switch for each mistake."""
    mask = tokens != pad_id
    if counted:
        mask = torch.arange(tokens.shape[1]) < mask.sum(1, keepdim=True)
    x = scale * state["embedding.weight"][tokens]
    place_vectors = state["positions.weight"][: tokens.shape[1]]
    x = (2 if twice == "positions" else 1) * x + {"add": place_vectors, "none": 0.0}[positions]
    x = layer_norm(state, "norm", x) if normed == "first" else x
    if "positions" in dropped:
        x = torch.zeros_like(x)
    for i in range(depth if used is None else used):
        name, before = f"blocks.{i}", x

        def attend(x: Tensor, name: str = name) -> Tensor:
            allowed = mask.unsqueeze(1)
            return (
                0 * x
                if "blocks" in dropped
                else multi_head_attention(state, f"{name}.attention.", x, x, heads, allowed)
            )

        def feed(x: Tensor, name: str = name) -> Tensor:
            return 0 * x if "blocks" in dropped else feed_forward(state, f"{name}.feed_forward.", x)

        if pre:
            x = x + attend(layer_norm(state, f"{name}.norm_1", x))
            x = x + feed(layer_norm(state, f"{name}.norm_2", x))
        else:
            x = layer_norm(state, f"{name}.norm_1", x + attend(x))
            x = layer_norm(state, f"{name}.norm_2", x + feed(x))
        x = x + before if twice == "blocks" else x
        x = layer_norm(state, "norm", x) if normed == "between" else x
    kept = mask.unsqueeze(-1)
    x = layer_norm(state, "norm", x) if normed == "last" else x
    mean = (x * kept).sum(1) / kept.sum(1).clamp(min=1)
    return linear(state, "classes", mean).log_softmax(-1)


def _classifier_mistakes(dim: int, pad_id: int) -> dict[Mistake, dict[str, Any]]:
    mistakes: dict[Mistake, dict[str, Any]] = {
        m.TransformerClassifier.NO_POSITIONS: {"positions": "none"},
        m.TransformerClassifier.SCALED: {"scale": dim**0.5},
        m.TransformerClassifier.POST_NORM: {"pre": False},
        m.TransformerClassifier.BLOCKS_UNUSED: {"used": 0},
        m.TransformerClassifier.FIRST_BLOCK_ONLY: {"used": 1},
        m.TransformerClassifier.NORM_BETWEEN: {"normed": "between"},
        m.TransformerClassifier.NORM_FIRST: {"normed": "first"},
        m.TransformerClassifier.ADDED_TWICE: {"twice": "blocks"},
        m.TransformerClassifier.POSITIONS_TWICE: {"twice": "positions"},
    }
    if pad_id != 1:
        mistakes[m.TransformerClassifier.PAD_ID_IGNORED] = {"pad_id": 1}
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


# The earlier chapters' attention and norms may count in float32.
_FLOAT32 = 2e-5


def check_classifier(cls: Callable) -> None:
    """Parameters, values, padding, length, dropout, gradients."""
    num_tokens, num_classes, depth, max_len = draw_sizes((30, 90), (5, 12), (4, 7), (20, 60))
    drawn = [((num_tokens, num_classes, 8, 2, depth, max_len), 1)]
    num_tokens, max_len, pad_id = draw_sizes((100, 400), (520, 600), (2, 90))
    drawn.append(((num_tokens, 2, 6, 3, 1, max_len), pad_id))
    for sizes, pad in [*_MODELS, *drawn]:
        num_tokens, _, dim, heads, depth, max_len = sizes
        module, state = _build(cls, sizes, pad_id=pad)
        pad_id = 1 if pad is None else pad
        module.eval()
        medium = [(2, n) for n in draw_sizes((61, 200), (201, 519))] if max_len > 519 else []
        for batch, n in ((3, 6), (2, max_len), (1, 5), (4, 1), (int(randint(6, 15, ())), min(17, max_len)), *medium):
            n = min(n, max_len)
            tokens = _tokens(batch, n, num_tokens, pad_id)
            settings = {"heads": heads, "depth": depth, "pad_id": pad_id}
            mistakes = {
                mistake: partial(_classify, state, tokens, **(settings | switches))
                for mistake, switches in _classifier_mistakes(dim, pad_id).items()
            }
            with unchanged(tokens=tokens):
                value = call(module, tokens)
            right = _classify(state, tokens, heads, depth, pad_id)
            about = f"the result for tokens of shape {tuple(tokens.shape)}, pad_id={pad_id}, depth={depth}"
            expect_close(value, right, about, mistakes, torch.float64, tolerance=_FLOAT32)
        _check_padding(module, state, sizes, pad_id)
        too_long = _tokens(2, max_len + 1, num_tokens, pad_id)
        expect_raises(
            ValueError, partial(module, too_long), f"a sequence of {max_len + 1} tokens for max_len={max_len}"
        )
    _check_classifier_dropout(cls)
    _check_classifier_gradients(cls)


def _check_padding(module: nn.Module, state: State, sizes: tuple, pad_id: int) -> None:
    num_tokens, max_len = sizes[0], sizes[-1]
    tokens = _tokens(1, max_len - 2, num_tokens, pad_id)
    padded = F.pad(tokens, (0, 2), value=pad_id)
    expect_close(
        call(module, padded),
        call(module, tokens).detach(),
        "the result of a sequence after padding is put behind it",
        tolerance=_FLOAT32,
    )
    alone = call(module, torch.full((2, 3), pad_id))
    expect_tensor(alone, (2, sizes[1]))
    what = "the result for a sequence of nothing but padding"
    expect(alone.isfinite().all(), Common.NAN, what)
    right = state["classes.bias"].log_softmax(-1).expand(2, -1)
    wrong = {m.TransformerClassifier.CLASSES_FIRST: lambda: torch.zeros_like(right).log_softmax(-1)}
    expect_close(alone, right, what, wrong, torch.float64, tolerance=_FLOAT32)
    scattered = _tokens(1, max_len, num_tokens, pad_id)
    scattered[:, 1:-1:2] = pad_id  # as word dropout puts it
    classified = partial(_classify, state, scattered, *sizes[3:5], pad_id)
    what = "the result for a sequence with padding between its words"
    wrong = {m.TransformerClassifier.PADDING_COUNTED: lambda: classified(counted=True)}
    expect_close(call(module, scattered), classified(), what, wrong, torch.float64, tolerance=_FLOAT32)


def _check_classifier_dropout(cls: Callable) -> None:
    sizes = (7, 3, 6, 2, 2, 9)
    tokens = _tokens(3, 6, 7, 1)
    module, state = _build(cls, sizes, dropout=0.5)
    expect_same_in_eval(module, [tokens], "the classifier", _classify(state, tokens, 2, 2, 1), _FLOAT32)
    module, state = _build(cls, sizes, dropout=1.0)
    right = partial(_classify, state, tokens, 2, 2, 1)
    module.train()
    expect_close(
        call(module, tokens),
        right(dropped=("positions", "blocks")),
        "while training with dropout=1.0 nothing should be left: the result",
        {
            m.TransformerClassifier.NO_DROPOUT: right,
            m.TransformerClassifier.NO_DROPOUT_ON_POSITIONS: lambda: right(dropped=("blocks",)),
            m.TransformerClassifier.NO_DROPOUT_IN_BLOCKS: lambda: right(dropped=("positions",)),
            m.TransformerClassifier.MORE_DROPOUT: lambda: state["classes.bias"].log_softmax(-1).expand(3, -1),
        },
        tolerance=_FLOAT32,
    )
    long = (*sizes[:-1], 600)
    alike, many = [randint(2, 7, (1, 6)).repeat(6, 1)], [randint(2, 7, (2, drawn_medium()))]
    expect_dropout_anew(lambda rate: _build(cls, long, dropout=rate)[0], alike, many)
    _check_dropped_once(cls)
    module, state = _build(cls, sizes, dropout=draw_probability())
    module.train()
    results = []
    for _ in range(2):  # the same is dropped, and padding has another vector
        seed(7, beside=cls)
        results.append(call(module, tokens).detach())
        set_weights(module, {"embedding.weight": state["embedding.weight"].index_fill(0, torch.tensor([1]), 9.0)})
    what = "the result while training with dropout, once the vector of padding has changed,"
    expect_close(results[1], results[0], what, tolerance=_FLOAT32)


# As many texts of one word, of as many features; and the share of these that may be dropped.
DROPPED_ONCE, MOST_DROPPED = 40, 0.6


def _check_dropped_once(cls: Callable) -> None:
    """With blocks that add nothing and a score for each feature, what was dropped is equal in a row.

    Chance fails a right answer in fewer than one of 10¹⁴ runs (tests/test_chance.py).
    """
    dim = DROPPED_ONCE
    module, state = _build(cls, (7, dim, dim, 1, 2, 5), dropout=0.5)
    silent = {name: torch.zeros_like(state[name]) for name in state if name.startswith(("blocks.", "positions."))}
    norm = {"norm.weight": torch.ones(dim), "norm.bias": torch.zeros(dim)}
    set_weights(module, silent | norm | {"classes.weight": torch.eye(dim), "classes.bias": torch.zeros(dim)})
    y = call(module.train(), torch.full((dim, 1), 2))
    share = ((y - y.mode(-1, keepdim=True).values).abs() < 1e-9).double().mean().item()
    what = "the share of a word's vector that is dropped"
    told = {"asked": "dropout 0.5, while training", "expected": "about 0.5", "got": round(share, 2)}
    expect(share < MOST_DROPPED, m.TransformerClassifier.MORE_DROPOUT, what, **told)


def _check_classifier_gradients(cls: Callable) -> None:
    sizes = (7, 3, 6, 2, 2, 9)
    for pad_id in (0, 1):
        module, state = _build(cls, sizes, pad_id=pad_id)
        tokens = torch.cat([_tokens(3, 6, 7, pad_id), torch.full((1, 6), pad_id)])
        oracle = partial(_classify, heads=2, depth=2, pad_id=pad_id)
        expect_parameter_gradients(module, oracle, state, [tokens], tolerance=_FLOAT32)
    expect_device(module.to("meta"), {"tokens": tokens})


# ---- accuracy


def _accuracy_mistakes(scores: Tensor, labels: Tensor) -> dict[Mistake, Callable[[], float]]:
    right = (scores.argmax(-1) == labels).double()
    powers = (scores.exp().argmax(-1) == labels).double()
    one = (scores[:, 1:2].exp() > 0.5).squeeze(-1).long()
    return {
        m.accuracy.EXPONENTIALS: lambda: powers.mean().item(),
        m.accuracy.ABOVE_ONE_HALF: lambda: (one == labels).double().mean().item(),
        m.accuracy.NUMBER_OF_CLASSES: lambda: right.sum().item() / scores.shape[1],
    }


def _examples(batch: int, classes: int) -> tuple[Tensor, Tensor]:
    """Log-probabilities and labels, of which half are the likeliest class, so that no share is 0 or 1 by chance.

    The likeliest is ahead of the next by more than rounding: ties have no right answer.
    """
    scores = 3 * randn(batch, classes)
    scores[range(batch), scores.argmax(-1)] += 0.1
    scores = scores.log_softmax(-1)
    labels = randint(0, classes, (batch,))
    some = batch // 2 + 1
    labels[:some] = scores.argmax(-1)[:some]
    return scores, labels


# What scores are multiplied by, what is added, since any scores will do, and whether a wrong share tells the mistake:
# around 400 float64 has the exponentials, and who fails there made none of those that are known.
_SCORES = ((1, 0.0, True), (1, 20.0, True), (1, 400.0, False), (1000, 2000.0, True), (1000, -2000.0, True))


def check_accuracy(function: Callable) -> None:
    """Values for any number of classes and examples, a Python float."""
    written = (24, 21), (6, 2), (7, 3), (5, 9), (1, 3), (4, 1)
    drawn = [draw_sizes((1001, 6000), (2, 21)), draw_sizes((40, 99), (100, 400))]
    drawn += [draw_sizes(few, (2, 9)) for few in ((100, 250), (251, 600))]
    for batch, classes in (*written, *drawn):
        scores, labels = _examples(batch, classes)
        for dtype in (torch.float64, torch.float32):
            for times, shift, tells in _SCORES:
                given = (times * scores + shift).to(dtype)
                with unchanged(log_probs=given, labels=labels):
                    value = call(function, given, labels)
                hits = [int(row.index(max(row)) == y) for row, y in zip(given.tolist(), labels.tolist(), strict=True)]
                name = f"the accuracy of {batch} examples with {classes} classes"
                likely = _accuracy_mistakes(given, labels) if tells and (batch, classes) in written else {}
                expect_number(value, sum(hits) / batch, name, likely)
    scores, _ = _examples(7, 3)
    right, wrong = scores.argmax(-1), scores.argmin(-1)
    for labels, share in ((right, 1.0), (wrong, 0.0), (right, 1.0)):
        name = f"the accuracy when {'every' if share else 'no'} answer is right"
        expect_number(call(function, scores, labels), share, name, _accuracy_mistakes(scores, labels))


# ---- AccumulatingMetric


def add_many(metric, values, counts):
    """Add one value after the other."""
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        metric.add(value, count)


def check_metric(cls: Callable) -> None:
    """Weighted means, several metrics at once, no state lost, the error when empty."""
    first, second = call(cls), call(cls)
    added = first.add(1.0, 2)
    expect(added is None or added is first, m.AccumulatingMetric.RETURNS)  # itself, for chains of calls
    before = [call(first.avg), call(first.avg)]
    second.add(5.0, 1)
    if before[0] == before[1]:
        expect(first.avg() == before[0], m.AccumulatingMetric.SHARED)
    for with_count in (False, True):
        metric, values, counts = call(cls), [], []
        for _ in range(4):
            value, count = random.uniform(-3, 3), random.randint(2, 9) if with_count else 1
            value = values[1] if len(values) == 3 else value if values else -1 - abs(value)  # one below 0, two equal
            metric.add(value, count) if with_count else metric.add(value)
            values.append(value)
            counts.append(count)
            for again in ("", ", asked for a second time,"):
                _expect_mean(metric, values, counts, again)
    metric, many = call(cls), int(randint(1001, 30_000, ()))  # an epoch has more batches, and numbers may be large
    values = [random.uniform(-1, 1) * 10 ** random.uniform(0, 5) for _ in range(many)]
    counts = [random.randint(1, 5000) for _ in range(many)]
    place(add_many, beside=cls)(metric, torch.tensor(values, dtype=torch.float64), torch.tensor(counts))
    right = sum(v * c for v, c in zip(values, counts, strict=True)) / sum(counts)
    size = sum(abs(v) * c for v, c in zip(values, counts, strict=True)) / sum(counts)
    # Beside their size, as large numbers of both signs may cancel.
    mean = call(metric.avg)
    expect_number(mean, mean, "the mean")  # a number
    expect_number(mean / size, right / size, f"the mean after {len(values)} values, as a share of their size")
    zero = call(cls)
    call(zero.add, 0.0, 3)
    try:
        mean = zero.avg()
    except ValueError:
        complain(m.AccumulatingMetric.ASKS_THE_TOTAL)
    expect_number(mean, 0.0, "the mean of three zeros")


def _expect_mean(metric: Any, values: list[float], counts: list[int], again: str) -> None:
    right, absolute = (sum(f(v) * c for v, c in zip(values, counts, strict=True)) / sum(counts) for f in (float, abs))
    name = f"the mean after {len(values)} values{again}"
    expect_number(call(metric.avg), right, name, {m.AccumulatingMetric.ABSOLUTE: lambda: absolute})


# ---- warmup_factor


def check_warmup(function: Callable) -> None:
    """Every step of short and long warm-ups, and none at all."""
    for warmup in (10, 1, 4, 1000, 0, *randint(11, 1000, (2,)).tolist(), *randint(1001, 100_000, (3,)).tolist()):
        drawn = [*randint(1, 2 * warmup + 2, (8,)).tolist(), int(randint(100_000, 10_000_000, ()))]
        near = [step for step in (warmup - 1, warmup, warmup + 1) if step > 0]
        for step in (3, 30, 1, 2, 4, 5, 9, 10, 11, 500, 999, 1000, 1001, 100_000, *near, *drawn):
            right = 1.0 if step >= warmup else step / warmup
            expect_number(call(function, step, warmup), right, f"the factor of step {step} of a warm-up of {warmup}")


# ---- train_epoch and evaluate


def make_model(table, dropout, slope):
    """A classifier of one table, which notes how it is used."""

    class Inner(nn.Module):
        def forward(self, x):
            return x

    class Toy(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(table.clone())
            self.bias = nn.Parameter(torch.zeros(table.shape[1], dtype=table.dtype))
            self.inner = Inner()
            self.dropout = nn.Dropout(dropout)
            self.modes = []

        def forward(self, tokens):
            scores = self.dropout(self.inner(slope * self.table[tokens].mean(1)) + self.bias)
            self.modes.append([all(part.training for part in self.modules()), scores.requires_grad])
            return F.log_softmax(scores, -1)

    return Toy()


def make_optimizer(model, rate, momentum, stretch=1.0):
    """Gradient descent, with or without momentum, in steps so many times as long as the rate says.

    Each parameter is a group of its own, as where rates differ.
    """

    class Stretched(torch.optim.SGD):
        def step(self, closure=None):
            rates = [group["lr"] for group in self.param_groups]
            for group in self.param_groups:
                group["lr"] *= stretch
            super().step(closure)
            for group, before in zip(self.param_groups, rates, strict=True):
                group["lr"] = before

    groups = [{"params": [parameter]} for parameter in model.parameters()]
    return (torch.optim.SGD if stretch == 1 else Stretched)(groups, lr=rate, momentum=momentum)


def steps_of(scheduler):
    """How many steps a scheduler has taken."""
    return scheduler.last_epoch


def make_scheduler(optimizer, factors):
    """The rate times the next of the factors after each step."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factors[step])


def make_stream(batches):
    """The batches, once and in order, as a loader gives them: no length, no second pass."""
    return iter(batches)


def leave_gradient(model):
    """Let a gradient stand in the model, as an interrupted step would."""
    model.table.grad = torch.ones_like(model.table)


def freeze_bias(model):
    """Keep a part of the model from training."""
    model.bias.requires_grad_(False)


_Batches = list[tuple[Tensor, Tensor]]


def _batches(least: int = 1, most: int = 11) -> _Batches:
    """Of different sizes and lengths, so that means over batches and over examples differ; so many more are drawn."""
    sizes = [(5, 3), (2, 4), (1, 6), (4, 2), draw_sizes((9, 40), (9, 40))]
    sizes += [draw_sizes((1, 20), (1, 20)) for _ in range(int(randint(least, most + 1, ())))]
    return [(randint(0, 5, (b, n)), randint(0, 3, (b,))) for b, n in sizes]


def _together(norms: Tensor, max_norm: float) -> Tensor:
    """By how much to multiply each gradient, so that all of them together have at most this norm."""
    return (max_norm / norms.norm()).clamp(max=1).expand_as(norms)


def _apart(norms: Tensor, max_norm: float) -> Tensor:
    """So that each has at most this norm."""
    return (max_norm / norms).clamp(max=1)


def _first_alone(norms: Tensor, max_norm: float) -> Tensor:
    """So that the first has at most this norm."""
    return torch.cat([_apart(norms[:1], max_norm), torch.ones_like(norms[1:])])


def _simulate(
    table: Tensor,
    batches: _Batches,
    rate: float = 0.0,
    factors: Sequence[float] = (),
    max_norm: float = math.inf,
    momentum: float = 0.0,
    slope: float = 4.0,
    clipped: Callable[[Tensor, float], Tensor] = _together,
) -> tuple[tuple[Tensor, Tensor], float, float, float]:
    """An epoch of gradient descent written out: table and bias, loss, accuracy, and the narrowest choice of a class."""
    weights = [table.double().clone(), torch.zeros(table.shape[1], dtype=torch.float64)]
    moved = [torch.zeros_like(weight) for weight in weights]
    losses, hits, counts, margins = [], [], [], []
    for step, (tokens, labels) in enumerate(batches):
        with torch.enable_grad():
            leaves = [weight.clone().requires_grad_() for weight in weights]
            log_probs = (slope * leaves[0][tokens].mean(1) + leaves[1]).log_softmax(-1)
            loss = -log_probs[range(len(labels)), labels].mean()
            gradients = torch.autograd.grad(loss, leaves)
        scales = clipped(torch.stack([gradient.norm() for gradient in gradients]), max_norm)
        moved = [momentum * old + s * gradient for old, s, gradient in zip(moved, scales, gradients, strict=True)]
        now = rate * (factors[step] if factors else 1.0)
        weights = [weight - now * move for weight, move in zip(weights, moved, strict=True)]
        losses.append(loss.item())
        ranked = log_probs.detach().topk(2)
        hits.append((ranked.indices[:, 0] == labels).double().mean().item())
        margins.append((ranked.values[:, 0] - ranked.values[:, 1]).min().item())
        counts.append(len(labels))
    return (
        (weights[0], weights[1]),
        sum(a * w for a, w in zip(losses, counts, strict=True)) / sum(counts),
        sum(a * w for a, w in zip(hits, counts, strict=True)) / sum(counts),
        min(margins),
    )


def _expect_results(result: Any, name: str, right: tuple) -> None:
    """The loss and the accuracy; `right` is what `_simulate` returns."""
    loss, hits = expect_pair(result, name)
    expect_number(loss, right[1], f"{name}: the loss")
    expect_number(hits, right[2], f"{name}: the accuracy")


def _toy(beside: Any, table: Tensor, dropout: float = 0.0, slope: float = 4.0) -> nn.Module:
    return place(make_model, beside=beside)(table, dropout, slope)


# (rate, whether there is a scheduler, max_norm, momentum); None leaves max_norm out.
_TRAININGS = [(0.3, False, 100.0, 0.0), (0.4, False, 0.05, 0.0), (0.3, True, 100.0, 0.0), (0.3, True, None, 0.0)]


def check_train_epoch(function: Callable) -> None:
    """The weights afterwards, with and without clipping and a schedule, and the numbers returned.

    With momentum, a step that the optimizer does not take itself, or takes as two halves, ends elsewhere.
    """
    rate, norm, momentum = ((15 + int(randint(0, 35, ()))) / 100 for _ in range(3))
    drawn = [(rate / 2, False, 100.0, momentum), (rate, True, norm, momentum)]
    for how in [*_TRAININGS, *drawn]:
        for dtype in (torch.float64, torch.float32):
            _check_training(function, *how, dtype)
    long_epoch = partial(_batches, 100, 300)
    _check_training(function, rate / 9, True, norm, momentum, torch.float64, long_epoch)
    _check_two_epochs(function)
    for limit in randint(3, 60, (3,)).tolist():  # large gradients, of one step, so that no rounding grows
        _check_training(function, rate / limit, False, float(limit), 0.0, torch.float64, _one_batch, 40.0 * limit)


def _one_batch() -> _Batches:
    return [(randint(0, 5, (6, 3)), randint(0, 3, (6,)))]


def _check_training(
    function: Callable,
    rate: float,
    scheduled: bool,
    max_norm: float | None,
    momentum: float,
    dtype: torch.dtype,
    draw_batches: Callable[[], _Batches] = _batches,
    slope: float = 4.0,
) -> None:
    limit, margin = max_norm or 1.0, 0.0
    # Neither rounding nor the 1e-6 that torch adds to a norm may choose another class, which the accuracy would tell.
    while margin < (1e-3 if dtype == torch.float32 else 1e-4):
        table, batches = randn(5, 3).to(dtype), draw_batches()
        # Nobody can foretell the factor of a step from the ones before; the scheduler steps once more than it is used.
        factors = [1.0, *(0.25 + torch.rand(len(batches)) / 2).tolist()] if scheduled else []
        right = _simulate(table, batches, rate, factors, limit, momentum, slope)
        margin = right[-1]
    model = _toy(function, table, slope=slope)
    # As an evaluation in between may have left it.
    model.eval()
    model.inner.eval()
    optimizer = place(make_optimizer, beside=function)(model, rate, momentum)
    scheduler = place(make_scheduler, beside=function)(optimizer, factors) if scheduled else None
    stream = place(make_stream, beside=function)(batches)
    if max_norm is None:
        result = call(function, model, stream, optimizer, scheduler)
    else:
        result = call(function, model, stream, optimizer, scheduler=scheduler, max_norm=max_norm)
    after = dict(model.named_parameters())
    name = f"training with max_norm={limit} and {'a' if scheduler is not None else 'no'} scheduler"
    # A step that the optimizer has no part in is one without momentum.
    without = partial(_simulate, table, batches, rate, factors, limit, slope=slope)
    after_clipping = partial(without, momentum=momentum)
    wrong: dict[Mistake, Callable[[], Tensor]] = {
        m.train_epoch.CLIPPED_APART: lambda: nearest(
            after["table"].detach().double(), *(after_clipping(clipped=how)[0][0] for how in (_apart, _first_alone))
        )
    }
    if momentum:
        wrong[m.train_epoch.OTHER_OPTIMIZER] = lambda: without()[0][0]
    otherwise = m.train_epoch.OTHER_OPTIMIZER if momentum and not factors and limit > 10 else None
    # torch adds 1e-6 to the norm before it divides.
    what = f"{name}: the weights afterwards"
    expect_close(after["table"].detach(), right[0][0], what, wrong, tolerance=1e-4, otherwise=otherwise)
    expect_close(after["bias"].detach(), right[0][1], what, tolerance=1e-4, otherwise=otherwise)
    _expect_results(result, name, right)
    if scheduler is not None:
        told = {"expected": len(batches), "got": place(steps_of, beside=function)(scheduler)}
        expect(told["got"] == len(batches), m.train_epoch.SCHEDULER, f"{name}: the number of its steps", **told)
    awake = sum(training and recording for training, recording in model.modes)
    told = {"expected": len(batches), "got": awake}
    what = "the batches for which the parts of a model are in training mode, which came in evaluation mode,"
    expect(awake >= len(batches), m.train_epoch.NOT_TRAINING, what, **told)


def _check_two_epochs(function: Callable) -> None:
    """With one optimizer, which keeps its momentum, and makes of its rate what it will."""
    stretch, momentum, table = drawn_between(0.3, 0.6), drawn_between(0.2, 0.5), randn(5, 3)
    model, batches = _toy(function, table), _batches()
    optimizer = place(make_optimizer, beside=function)(model, 0.3, momentum, stretch)
    for _ in range(2):
        call(function, model, place(make_stream, beside=function)(batches), optimizer, max_norm=100.0)
    (right, _), *_ = _simulate(table, batches * 2, 0.3 * stretch, (), 100.0, momentum)
    what, mistake = "the weights after two epochs with one optimizer", m.train_epoch.OTHER_OPTIMIZER
    expect_close(dict(model.named_parameters())["table"].detach(), right, what, tolerance=1e-4, otherwise=mistake)


def check_evaluate(function: Callable) -> None:
    """The numbers returned, call after call; gradients, modes and what is frozen as before, and no graph recorded."""
    for turn, training in enumerate((True, False) * 3):
        batches = _batches() if turn < 4 else _batches(100, 400)
        table = randn(5, 3)
        model = _toy(function, table, dropout=0.5)
        model.train(training)
        place(leave_gradient, beside=function)(model)
        if turn > 1:
            place(freeze_bias, beside=function)(model)
        learning = place(learning_names, beside=function)(model)
        result = call(function, model, place(make_stream, beside=function)(batches))
        _expect_results(result, "evaluate", _simulate(table, batches))
        mode = "training" if training else "evaluation"
        same = model.training == training and model.inner.training == training
        expect(same, m.evaluate.MODE, f"before it was in {mode} mode")
        parameter = dict(model.named_parameters())["table"]
        kept = parameter.grad is not None and torch.equal(parameter.grad, torch.ones_like(table))
        expect(kept, m.evaluate.GRADIENTS)
        expect(place(learning_names, beside=function)(model) == learning, m.evaluate.FROZEN)
        expect(not any(recording for _, recording in model.modes), m.evaluate.GRAPH)


# ---- is it better?

_BOTH, _FIRST_ALONE, _SECOND_ALONE = 0.45, 0.15, 0.05  # of all examples; neither is right on the rest
# Standard deviations: chance alone goes beyond them once in 10¹⁰ checks.
LUCK = 7.5
ENDS_OF, DRAWS = 601, 16_000  # examples and samples of the check of both ends
DRAWS_OF_A_WORSE = 6000  # and samples where b is the better one
FEW_EXAMPLES, DRAWS_OF_FEW, TENTHS = 10, 10_000, 3  # and of that with ten; the high end is so many tenths
TIMES = 12  # draws that decide whether two generators give the same
TURNS, DRAWS_OF_TURN = ((11, 40), (41, 400), (1001, 4000), (8001, 30_000)), 60
# Examples, generators and pairs of two ranges of samples, by which it shows that more are drawn if more are asked for.
AMONG, SEEDS, FEW_AND_MANY = 1009, 24, (((4001, 5000), (10_000, 11_000)), ((1001, 1021), (3000, 3101)))
DISAGREE = round(0.45 * AMONG)  # of these, those that one of the two alone gets right


def _answers(count: int) -> tuple[Tensor, Tensor]:
    """Two models that agree on four of five examples, so that what pairing brings shows; only their order is chance."""
    place_of = randn(count).argsort()
    both, first, second = (round(share * count) for share in (_BOTH, _FIRST_ALONE, _SECOND_ALONE))
    a = place_of < both + first
    return a, (place_of < both) | ((place_of >= both + first) & (place_of < both + first + second))


def _disagreeing() -> tuple[Tensor, Tensor]:
    """Two models that disagree on nine of ten examples, so that the difference in a draw takes many values."""
    place_of = randn(AMONG).argsort()
    return place_of < DISAGREE, (place_of >= DISAGREE) & (place_of < 2 * DISAGREE)


def _call_bootstrap(function: Callable, a: Tensor, b: Tensor, samples: int, seed: int) -> tuple[float, float, float]:
    with unchanged(right_a=a, right_b=b):
        result = call(function, a, b, samples, torch.Generator().manual_seed(seed))
    return expect_triple(result)


def check_paired_bootstrap(function: Callable) -> None:
    """Single draws, both ends against the exact distribution, ten examples, one, errors."""
    _check_single_draws(function)
    _check_samples(function)
    _check_both_ends(function)
    _check_bootstrap_of_few(function)
    _check_whose_turn(function)
    _check_ends_of_a_worse_one(function)
    one = torch.tensor([True])
    single = _call_bootstrap(function, one, ~one, 50, 0)
    expect(single == (1.0, 1.0, 1.0), Unexplained.VALUES, "of one example", expected="1, 1 and 1", got=single)
    for shorter, what in ((3, "different lengths"), (0, "no examples")):
        a, b = torch.ones(shorter).bool(), torch.ones(5 if shorter else 0).bool()
        expect_raises(ValueError, lambda a=a, b=b: function(a, b), what)


def _check_single_draws(function: Callable) -> None:
    """What holds of every draw, whatever chance does; a prime number of examples, so that others show.

    A few draws have the ends of others in less than one of ten times: `TIMES` times in a row they never do.
    """
    count = 499
    a, b = _answers(count)
    _, low, high = _call_bootstrap(function, a, b, 50, 0)
    expect(low != high, m.paired_bootstrap.NO_WIDTH, "both ends", got=low)
    once = [_call_bootstrap(function, a, b, 1, seed) for seed in range(10)]
    if any(math.isnan(end) for result in once for end in result):
        return  # a standard error of one draw: the check of both ends says so
    for number, (difference, low, high) in enumerate(once):
        if low != high:
            ignored = len(set(once)) > 1 and once[number] == _call_bootstrap(function, a, b, 50, number)
            mistake = m.paired_bootstrap.SAMPLES_IGNORED if ignored else Unexplained.VALUES
            complain(mistake, "both ends, of one sample,", expected="equal", got=f"{low:.4f} and {high:.4f}")
        mean = float((a.double() - b.double()).mean())
        expect_number(difference, mean, "the difference", otherwise=m.paired_bootstrap.MEAN_OF_DRAWS)
    for samples in (1, int(randint(60, 120, ()))):

        def run(generator: torch.Generator | None, samples: int = samples) -> list[tuple[float, float, float]]:
            return [expect_triple(call(function, a, b, samples, generator)) for _ in range(TIMES)]

        expect_drawn_from_generator(run, function, f"{count} examples and {samples} samples, {TIMES} times")
    whole = all(abs(count * low - round(count * low)) < 1e-3 for _, low, _ in once)
    told = {"expected": f"a multiple of 1/{count}", "got": once[0][1]}
    expect(whole, m.paired_bootstrap.OTHER_COUNT, f"the difference of one draw of {count} examples", **told)


def _check_both_ends(function: Callable) -> None:
    """As many draws as it takes to tell 2.5 percent from 5, and the exact distribution that they come from."""
    count, samples = ENDS_OF, DRAWS
    a, b = _answers(count)
    difference, low, high = _call_bootstrap(function, a.clone(), b.clone(), samples, 3)
    gap = a.double() - b.double()
    mean, width = float(gap.mean()), float(gap.std(correction=0)) / count**0.5
    expect_number(difference, mean, "the difference")
    allowed = [_ends_of(gap, share, samples) for share in (0.025, 0.975)]
    if all(least - 1e-6 <= end <= most + 1e-6 for end, (least, most) in zip((low, high), allowed, strict=True)):
        return
    widths = {
        m.paired_bootstrap.NINETY_PERCENT: 1.645,
        m.paired_bootstrap.NINETY_NINE_PERCENT: 2.576,
        m.paired_bootstrap.STANDARD_ERROR: 1.0,
    }
    away = (mean - low) / width, (high - mean) / width
    fits = [k for k, errors in widths.items() if all(abs(end - errors) < 0.2 for end in away)]
    told = {
        "expected": f"near {mean - 1.96 * width:.4f} to {mean + 1.96 * width:.4f}",
        "got": f"{low:.4f} to {high:.4f}",
    }
    complain(next(iter(fits), Unexplained.VALUES), "the interval", **told)


def _check_ends_of_a_worse_one(function: Callable) -> None:
    """Both ends again for other numbers of examples, and where b is the better one."""
    for count in (int(randint(300, 580, ())), int(randint(700, 1500, ()))):
        # They disagree often, so that the difference in a draw takes many values.
        place_of = randn(count).argsort()
        a, b = place_of < round(0.35 * count), place_of >= round(0.45 * count)
        difference, low, high = _call_bootstrap(function, a, b, DRAWS_OF_A_WORSE, int(randint(0, 1000, ())))
        gap = a.double() - b.double()
        what = f"of {count} examples, of which b gets more right,"
        expect_number(difference, float(gap.mean()), f"{what} the difference")
        for end, share, name in ((low, 0.025, "low"), (high, 0.975, "high")):
            least, most = _ends_of(gap, share, DRAWS_OF_A_WORSE)
            told = {"expected": f"from {least:.4f} to {most:.4f}", "got": f"{end:.4f}"}
            expect(least - 1e-6 <= end <= most + 1e-6, Unexplained.NUMBER, f"{what} the {name} end", **told)


def _ends_of(gap: Tensor, share: float, samples: int) -> tuple[float, float]:
    """Between what numbers the percentile of so many draws lies, from the exact distribution of a draw's mean."""
    count = len(gap)
    one = torch.stack([(gap == value).double().mean() for value in (0, 1, -1)])
    circle = torch.zeros(2 * count + 1, dtype=torch.float64)  # a sum of -1 is the last, one of 1 the second
    circle[[0, 1, -1]] = one
    sums = torch.fft.ifft(torch.fft.fft(circle) ** count).real.roll(count)  # from -count to count
    reached = sums.cumsum(0)
    luck = LUCK * (share * (1 - share) / samples) ** 0.5
    least, most = (int((reached >= share + s * luck).nonzero()[0]) - count for s in (-1, 1))
    return least / count, most / count


def _check_bootstrap_of_few(function: Callable) -> None:
    """Ten examples, one in favour of a: the means are a tenth of a binomial, from 0 to 3/10, and nothing is normal.

    The one is the first, the last, or any other: what is never drawn shows.
    """
    for place_of in (0, FEW_EXAMPLES - 1, int(randint(1, FEW_EXAMPLES - 1, ()))):
        b = torch.zeros(FEW_EXAMPLES).bool()
        a = torch.arange(FEW_EXAMPLES) == place_of
        _, low, high = _call_bootstrap(function, a, b, DRAWS_OF_FEW, 5)
        what = f"of ten examples, of which number {place_of} favours a,"
        expect(abs(low) < 1e-6, m.paired_bootstrap.STANDARD_ERROR, f"{what} the low end", expected=0.0, got=low)
        never = m.paired_bootstrap.NEVER_DRAWN if high < 1e-6 else Unexplained.NUMBER
        right = TENTHS / FEW_EXAMPLES
        expect(abs(high - right) < 1e-6, never, f"{what} the high end", expected=right, got=high)


def _check_whose_turn(function: Callable) -> None:
    """Among many examples one in favour of a, which nearly two of three draws take: none may be left out.

    Of `DRAWS_OF_TURN` draws too few take it less than once in 10¹⁵ times.
    """
    for least, most in TURNS:
        (count,) = draw_sizes((least, most))
        for place_of in (0, count - 1, int(randint(0, count, ()))):
            a = torch.arange(count) == place_of
            _, _, high = _call_bootstrap(
                function, a, torch.zeros(count).bool(), DRAWS_OF_TURN, int(randint(0, 1000, ()))
            )
            what = f"of {count} examples, of which number {place_of} favours a,"
            told = {"expected": "above 0", "got": high}
            expect(high > 0.5 / count, m.paired_bootstrap.NEVER_DRAWN, f"{what} the high end", **told)


def _check_samples(function: Callable) -> None:
    """As many samples as asked for, and 2,000 by default.

    Nothing is asked of how they are drawn, one by one, all at once or by a generator seeded from this one. What is
    compared comes from equal generators, so that nothing is left to chance but one thing: that more samples, or others,
    give the same ends for each of `SEEDS` generators, which happens less than once in a million times.
    """
    a, b = _disagreeing()

    def ends(number: int, *samples: int, used: int = 0) -> tuple[float, float, float]:
        generator = torch.Generator().manual_seed(number)
        torch.rand(used, generator=generator)
        return expect_triple(call(function, a, b, *samples, generator=generator))

    seeds = randint(0, 1_000_000, (SEEDS,)).tolist()
    for ranges in FEW_AND_MANY:
        few, many = (int(randint(least, most, ())) for least, most in ranges)
        capped = all(ends(number, few) == ends(number, many) for number in seeds)
        asked = f"{few} samples and {many}, for {SEEDS} generators"
        expect(not capped, m.paired_bootstrap.SAMPLES_CAPPED, "the interval", asked=asked)
    again = all(ends(number, few) == ends(number, few, used=1 + number % 99) for number in seeds)
    expect(not again, Common.SEEDED_AGAIN, "the interval", asked=f"{few} samples, for {SEEDS} generators")
    default = all(ends(number) == ends(number, 2000) for number in seeds[:6])
    expect(default, m.paired_bootstrap.DEFAULT_SAMPLES, "the interval without `samples`")
