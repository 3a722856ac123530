"""What chapter 07's check cells call: small cases by hand, and the commonest mistakes by name."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from autograder.checks import call, expect_raises, place
from autograder.course.card import visible


@visible("three sequences by hand, one of them with nothing to average")
def masked_mean(masked_mean: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    x = torch.tensor(
        [
            [[2.0, 4], [4, 0], [9, 9], [9, 9]],
            [[9, 9], [1, 2], [3, 4], [5, 6]],
            [[7, 8], [7, 8], [7, 8], [7, 8]],
        ]
    )
    mask = torch.tensor([[True, True, False, False], [False, True, True, True], [False] * 4])
    kept = x.clone()
    y = masked_mean(x, mask)
    assert torch.equal(x, kept), (
        "the input `x` was changed in place: use `masked_fill`, without the underscore at its end"
    )
    assert y is not None, "masked_mean returned None: is there a `return`?"
    assert y.shape == (3, 2), f"the shape should be (B, d) = (3, 2), got {tuple(y.shape)}" + {
        (3, 4): ": the average runs over the features, not over the positions, dimension 1",
        (4, 2): ": the average runs over the batch, not over the positions, dimension 1",
    }.get(tuple(y.shape), "")
    assert not y.isnan().any(), "an all-False row gives NaN, 0 divided by 0: divide by `count.clamp(min=1)`"
    numbers, right = mask.unsqueeze(-1).float(), torch.tensor([[3.0, 2], [3, 4], [0, 0]])
    total = (x * numbers).sum(1)
    for wrong, cause in [
        (x.mean(1), "the mask is not used, every position counts"),
        (total, "the sum is not divided by the number of positions that count"),
        (total / 4, "the sum is divided by n, not by the number of positions that count"),
        (total / 5, "the sum is divided by the count of the whole batch: each sequence has its own"),
        (total / (numbers.sum(1) + 1), "1 is added to each count"),
        (x[:, :2].mean(1), "the first sequence's mask is used for the whole batch"),
        (x.masked_fill(numbers == 0, 0).amax(1), "the largest value is taken, not the mean"),
    ]:
        assert not torch.allclose(y, wrong, atol=1e-4), cause
    assert not torch.allclose(y[2], torch.tensor([7.0, 8])), (
        "the mask is turned round: True means that a position counts"
    )
    assert torch.allclose(y, right, atol=1e-4), f"by hand the averages are {right.tolist()}, got {y.tolist()}"


@visible("the names of its parts, a mean and a log-softmax by hand, and that padding changes nothing")
def TransformerClassifier(TransformerClassifier: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    model = TransformerClassifier(6, 2, dim=2, heads=1, depth=2, max_len=5)
    weights = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    for part in ("embedding", "positions", "blocks.0", "blocks.1", "norm", "classes"):
        assert any(name.startswith(part + ".") for name in weights), (
            f"no part with weights is called `{part}`: `blocks` is an nn.ModuleList of `depth` "
            "blocks, and torch does not find parameters in a plain list"
        )
    # With these weights blocks and positions add nothing, `norm` makes each word's vector (1, -1)
    # or (-1, 1); class 0 scores 1.5 times the second number and 0.25, class 1 1.5 times the first.
    table = torch.tensor([[2.0, -2], [9, -9], [4, -4], [-3, 3], [-5, 5], [0, 0]])
    weights |= {"embedding.weight": table, "norm.weight": torch.ones(2)}
    weights |= {f"blocks.{i}.norm_{j}.weight": torch.ones(2) for i in (0, 1) for j in (1, 2)}
    bias = torch.tensor([0.25, 0])
    weights |= {"classes.weight": torch.tensor([[0, 1.5], [1.5, 0]]), "classes.bias": bias}
    model.load_state_dict(weights)
    model.eval()
    y = model(torch.tensor([[3, 2, 4, 1], [0, 2, 2, 3], [3, 2, 2, 2]]))  # 1 is padding
    assert y is not None, "the classifier returned None: is there a `return`?"
    assert y.shape == (3, 2), f"the shape should be (B, num_classes) = (3, 2), got {tuple(y.shape)}"
    assert y.requires_grad, "the result is cut off from the graph, so nothing can learn"
    means = torch.tensor([-1 / 3, 1 / 2, 1 / 2])
    scores = 1.5 * torch.stack([-means, means], dim=-1) + bias
    for wrong, cause in [
        (scores, "the scores of the classes are returned: a log-softmax is missing"),
        (scores.softmax(-1), "probabilities are returned, not log-probabilities: use a log-softmax"),
        (scores.log_softmax(0), "the log-softmax runs over the batch: the classes are dimension -1"),
        (F.logsigmoid(scores), "a log-sigmoid takes the place of the log-softmax"),
        (scores.relu().log_softmax(-1), "a ReLU follows `classes`"),
        ((0 * scores + bias).log_softmax(-1), "the largest value is taken, not the mean"),
    ]:
        assert not torch.allclose(y, wrong, atol=1e-3), cause
    for wrong, cause in {
        (0, 1 / 2, 1 / 2): "the mean runs over padding too: give `masked_mean` the tokens' mask",
        (0, 1 / 3, 1 / 2): "padding is taken to be token 0: it is `pad_id`, 1 by default",
        (-1 / 4, 1 / 2, 1 / 2): "the sum is divided by n, padding included: use your masked_mean",
        (-1, 2, 2): "the sum over the tokens is taken, not the mean",
        (-1, 1, -1): "only the first position is read, not the mean of all",
        (1, -1, 1): "only the last position is read, not the mean of all",
        (-4 / 3, 7 / 4, 9 / 4): "`norm` is not used: it acts on each position, before the mean",
        (-1, 1, 1): "`norm` comes after the mean: it acts on each position, before they are averaged",
    }.items():
        wrong = torch.tensor([[-1.5 * mean, 1.5 * mean] for mean in wrong]) + bias
        assert not torch.allclose(y, wrong.log_softmax(-1), atol=1e-3), cause
    assert torch.allclose(y, scores.log_softmax(-1), atol=1e-3), (
        f"by hand the scores are {scores.tolist()}, their log_softmax "
        f"{scores.log_softmax(-1).tolist()}, got {y.tolist()}"
    )
    # Random weights, and the same sequence without and with padding behind it.
    model = TransformerClassifier(6, 2, dim=4, heads=2, depth=2, max_len=5)
    model.eval()
    alone, padded = model(torch.tensor([[2, 3]])), model(torch.tensor([[2, 3, 1, 1]]))
    assert torch.allclose(alone, padded, atol=1e-5), (
        "padding behind a sequence changes its result, so words attend to padding: "
        "the blocks do not get the mask, or it is turned round"
    )


@visible("three right answers of four")
def accuracy(accuracy: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    counts = torch.tensor([[1.0, 1, 8, 1], [7, 2, 1, 1], [3, 4, 3, 1], [5, 3, 2, 1]])
    labels = torch.tensor([2, 0, 0, 0])  # right, right, wrong, right
    value = accuracy((counts / 11).log(), labels)

    assert value is not None, "accuracy returned None: is there a `return`?"
    assert not isinstance(value, torch.Tensor), "the result should be a Python float: `.item()`"
    for wrong, cause in {
        3: "the right answers are counted, not divided by their number",
        75: "a percentage: it should be a fraction between 0 and 1",
        0.25: "the fraction of wrong answers",
        0.5: "the maximum is taken over the examples, not over the classes: use dimension -1",
        23 / 44: "the mean probability of the right class: only the most likely class is asked for",
        0: "integer division gives 0, or the least likely class is taken",
        1: "only the first example is counted",
    }.items():
        assert abs(value - wrong) > 1e-6, cause
    assert value == 0.75, f"three of four answers are right, 0.75; got {value}"


@visible("a mean weighted by counts, asked for twice, and that the mean of nothing is an error")
def AccumulatingMetric(AccumulatingMetric: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    metric = AccumulatingMetric()
    try:
        empty = metric.avg()
    except ValueError:
        empty = "ValueError"
    except ZeroDivisionError:
        empty = "ZeroDivisionError"
    assert empty != "ZeroDivisionError", (
        "an empty metric should raise ValueError, not ZeroDivisionError: look before you divide"
    )
    for value, count in ((0.8, 90), (0.4, 10), (0.2, 20)):
        metric.add(value, count)
    value = metric.avg()
    assert value is not None, "avg returned None: is there a `return`?"
    for wrong, cause in {
        1.4 / 3: "`count` is not used: each value stands for `count` examples",
        80: "the sum is returned, not the mean",
        80 / 3: "the sum is divided by the number of calls, not of examples",
        1.4 / 120: "the values are not multiplied by their counts",
        0.2: "only the last value is kept",
        0.4: "the mean of the old mean and the new value: old values would fade",
        0: "values are cut to whole numbers, or integer division",
        1: "the result is rounded",
    }.items():
        assert abs(value - wrong) > 1e-6, cause
    assert abs(value - 2 / 3) < 1e-6, f"(90 * 0.8 + 10 * 0.4 + 20 * 0.2) / 120 is 80 / 120, got {value}"
    metric.add(0.26)  # one example more, with the default count
    assert abs(metric.avg() - 80.26 / 121) < 1e-6, (
        "asked for a second time, after one more example with `add(0.26)`, "
        f"it should be 80.26 / 121, got {metric.avg()}"
    )
    assert empty == "ValueError", (
        f"the mean of nothing should raise ValueError, but nothing was raised: it gave {empty!r}"
    )


@visible("steps before, at and after the end of a warm-up of ten")
def warmup_factor(warmup_factor: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    during, after = warmup_factor(3, 10), warmup_factor(30, 10)
    assert during is not None and after is not None, "warmup_factor returned None: is there a `return`?"
    for (wrong_during, wrong_after), cause in {
        (0.3, 3): "it never stops growing: the factor is at most 1",
        (0.3, 0): "after the warm-up it should stay 1",
        (1, 3): "it is at least 1, not at most: `min` and `max` are exchanged",
        (1, 1): "there is no warm-up: always 1",
        (0.4, 1): "the first step is 1, so nothing is to be added to it",
        (0.2, 1): "one step behind: the first step is 1",
        (0, 1): "integer division: the factor is 0 all the way",
        (0.09, 1): "it grows as the square of the step, not linearly",
        (0.3**0.5, 1): "it grows as the root of the step, not linearly",
        (1, 1 / 3): "the fraction is turned round",
        (0.7, 0): "it falls during the warm-up, it should rise",
    }.items():
        assert abs(during - wrong_during) + abs(after - wrong_after) > 1e-6, cause
    assert not (abs(during - 0.3) < 1e-6 and after < 1 - 1e-6), (
        f"after the warm-up it should stay 1, not fall: step 30 of 10 gave {after}"
    )
    for step, right in {3: 0.3, 30: 1, 1: 0.1, 9: 0.9, 10: 1, 11: 1}.items():
        value = warmup_factor(step, 10)
        assert abs(value - right) < 1e-6, f"the factor of step {step} of a warm-up of 10 is {right}, got {value}"


def make_model_of_train_epoch():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.zeros(4, 2))
            self.modes = []

        def forward(self, tokens):
            self.modes.append(self.training)
            return F.log_softmax(self.table[tokens].mean(1), -1)

    return Model()


def make_optimizer_of_train_epoch(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def make_scheduler_of_train_epoch(optimizer):
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)


@visible("two batches by hand: each step, the pair that comes back, clipping and the scheduler")
def train_epoch(train_epoch: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    # All scores are 0 at first, so each class has probability 1/2, and class 0 counts as most likely.
    # A batch moves the two rows that it reads by 0.025: each row's gradient is (1/2) / 2 = 0.25.
    batches = [
        (torch.tensor([[2, 3]]), torch.tensor([1])),
        (torch.tensor([[0, 1], [0, 1]]), torch.tensor([0, 0])),
    ]
    model = place(make_model_of_train_epoch, beside=train_epoch)()
    model.eval()
    optimizer = place(make_optimizer_of_train_epoch, beside=train_epoch)(model)
    result = train_epoch(model, batches, optimizer)
    assert all(model.modes), (
        "the model is not in training mode while it trains: call `model.train()`, or dropout stays off"
    )
    rows = dict(model.named_parameters())["table"].detach()
    first, second = round(rows[2, 1].item(), 5), round(rows[0, 0].item(), 5)
    for wrong, cause in {
        (0, 0): "no step was taken: is `optimizer.step()` called after `loss.backward()`, "
        "and `zero_grad()` not between them?",
        (0.05, 0.025): "the gradients of earlier batches are still there: call `optimizer.zero_grad()` for each batch",
        (
            -0.025,
            -0.025,
        ): "the loss grows: the optimizer minimises, so give it the loss without a minus",
        (0.025, 0.05): "the loss is summed over the batch, not averaged, before `backward`",
        (0.025, 0): "only the first batch is trained on",
    }.items():
        assert (first, second) != wrong, cause
    assert (first, second) == (0.025, 0.025), (
        f"each batch should move its rows by 0.025, they moved by {first} and {second}"
    )
    assert result is not None, "train_epoch returned None: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == 2, (
        f"train_epoch should return a pair (loss, accuracy), got {result!r}"
    )
    loss, hits = result
    for value in result:
        assert isinstance(value, int | float) and not isinstance(value, torch.Tensor), (
            "each result should be a Python float: `loss.item()`"
        )
    assert abs(loss - 2 / 3) > 1e-6, "loss and accuracy are exchanged: return (loss, accuracy)"
    for wrong, cause in {
        0.5: "the mean over batches, not over examples: a batch counts as often as it has examples",
        1: "the values of the last batch, not the mean over all; or measured after the step",
    }.items():
        assert abs(hits - wrong) > 1e-6, cause
    assert abs(hits - 2 / 3) < 1e-6, f"two of three examples are right, 2/3; got {hits}"
    assert abs(loss - 0.693147) < 1e-4, (
        f"-log(1/2) = 0.6931 for each example, measured before its batch's step; got {loss}"
    )
    # The gradient of a batch has length 0.5: max_norm=0.1 leaves a fifth. The second step is halved.
    model = place(make_model_of_train_epoch, beside=train_epoch)()
    optimizer = place(make_optimizer_of_train_epoch, beside=train_epoch)(model)
    scheduler = place(make_scheduler_of_train_epoch, beside=train_epoch)(optimizer)
    train_epoch(model, batches, optimizer, scheduler, max_norm=0.1)
    rows = dict(model.named_parameters())["table"].detach()
    first, second = round(rows[2, 1].item(), 5), round(rows[0, 0].item(), 5)
    assert first != 0.025, "the gradients are not clipped before the step, or the argument `max_norm` is ignored"
    assert first != 0.01, "each number of the gradient is clipped, not its norm: use `nn.utils.clip_grad_norm`"
    assert second != first, "the scheduler is not stepped after each step of the optimizer"
    assert (first, second) == (0.005, 0.0025), (
        "with max_norm=0.1 and a halving scheduler the rows should move by 0.005 and 0.0025, "
        f"they moved by {first} and {second}"
    )


def make_model_of_evaluate():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.tensor([[0.0, 2], [0, 0], [0, 0], [2, 0]]))
            self.dropout = nn.Dropout(1.0)  # leaves nothing in training mode

        def forward(self, tokens):
            return F.log_softmax(self.dropout(self.table[tokens].mean(1)), -1)

    return Model()


@visible("two batches by hand, nothing trained, and the mode as it was")
def evaluate(evaluate: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    # The scores are (0, 2) for the first batch and (2, 0) for the second.
    batches = [
        (torch.tensor([[0, 0]]), torch.tensor([0])),
        (torch.tensor([[3, 3], [3, 3], [3, 3]]), torch.tensor([0, 0, 1])),
    ]
    model = place(make_model_of_evaluate, beside=evaluate)()
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    result = evaluate(model, batches)
    assert result is not None, "evaluate returned None: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == 2, (
        f"evaluate should return a pair (loss, accuracy), got {result!r}"
    )
    loss, hits = result
    for value in result:
        assert isinstance(value, int | float) and not isinstance(value, torch.Tensor), (
            "each result should be a Python float: `.item()`"
        )
    assert abs(loss - 0.6931) > 1e-3, (
        "the model is in training mode while it is measured, so dropout spoils the numbers: call `model.eval()`"
    )
    assert abs(loss - 0.5) > 1e-6, "loss and accuracy are exchanged: return (loss, accuracy)"
    for wrong, cause in {
        1 / 3: "the mean over batches, not over examples: one counts as often as it has examples",
        2 / 3: "the values of the last batch, not the mean over all",
        50: "a percentage: it should be a fraction",
    }.items():
        assert abs(hits - wrong) > 1e-4, cause
    # Two examples lose log(1 + e^2) = 2.1269 each, two lose log(1 + e^-2) = 0.1269.
    assert abs(loss - 2.31732) > 1e-3, "the loss is summed over each batch"
    assert abs(hits - 0.5) < 1e-6, f"two of four examples are right, 0.5; got {hits}"
    assert abs(loss - 1.126928) < 1e-4, f"the mean loss of the four is 1.1269, got {loss}"
    assert model.training, "the model was in training mode before and is not any more: put back the mode that you found"
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), "the parameters have changed: measuring must not train"
    model.eval()
    evaluate(model, batches)
    assert not model.training, (
        "the model was in evaluation mode before and is not any more: put back the mode that you found"
    )


@visible("the difference by hand, an interval that two equal models leave no room for, and the two errors")
def paired_bootstrap(paired_bootstrap: Callable) -> None:
    """Eight examples, one of which the first model alone gets right."""
    a, b = torch.tensor([True] * 6 + [False] * 2), torch.tensor([False] + [True] * 5 + [False] * 2)
    result = call(paired_bootstrap, a.clone(), b.clone(), generator=torch.Generator().manual_seed(0))
    assert result is not None, "paired_bootstrap returned None: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == 3, (
        f"paired_bootstrap should return (difference, low, high), got {result!r}"
    )
    for value in result:
        assert isinstance(value, float) and not isinstance(value, torch.Tensor), (
            f"each of the three should be a Python float, got {value!r}: `.item()`"
        )
    difference, low, high = result
    assert abs(difference + 1 / 8) > 1e-6, "the difference is turned round: it is mean of a minus mean of b"
    assert abs(difference - 1) > 1e-6, "the right answers are counted: it is a difference of two means"
    assert abs(difference - 1 / 8) < 1e-6, f"a is right 6 times of 8, b 5 times: 1/8; got {difference}"
    assert low <= difference <= high, f"the interval {low} to {high} does not hold the difference {difference}"
    assert low > -1e-6, (
        "the interval reaches below 0, but b is never right where a is wrong, so that no paired draw can favour b. "
        "Likely cause: each model's examples are drawn by themselves (draw once, and use the same examples for both), "
        "or the ends are so many standard errors away from the middle (take the percentiles)"
    )
    same = call(paired_bootstrap, b.clone(), b.clone(), generator=torch.Generator().manual_seed(0))
    assert max(map(abs, same)) < 1e-9, (
        f"two models with the same answers differ by 0, with the interval 0 to 0; got {same}. Likely cause: each "
        "model's examples are drawn by themselves"
    )
    for shorter, what in ((a[:5], "different lengths"), (a[:0], "no examples")):
        other = b[:0] if what == "no examples" else b
        expect_raises(ValueError, lambda s=shorter, o=other: paired_bootstrap(s.clone(), o.clone()), what)
