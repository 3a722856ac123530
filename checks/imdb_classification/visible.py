"""What chapter 07's check cells call: small cases by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_close,
    expect_number,
    expect_raises,
    expect_tensor,
    given,
    learning_names,
    place,
    unchanged,
)
from autograder.course.card import visible
from checks.imdb_classification import mistakes as m


@visible(
    "three sequences by hand, one of them with nothing to average",
    graded="other cases, sizes of 1, gradients, dtypes and devices",
)
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
    with unchanged(x=x, mask=mask):
        y = call(masked_mean, x, mask)
    what = "masked_mean(x, mask)"
    expect_tensor(y, name=what)
    shape = {"expected": "of shape (B, d) = (3, 2)", "got": f"shape {tuple(y.shape)}"}
    expect(y.shape != (3, 4), m.masked_mean.OVER_FEATURES, what, **shape)
    expect(y.shape != (4, 2), m.masked_mean.OVER_BATCH, what, **shape)
    expect(y.shape != (2,), m.masked_mean.ALL_TOGETHER, what, **shape)
    expect_tensor(y, (3, 2), name=what)
    right = torch.tensor([[3.0, 2], [3, 4], [0, 0]])
    expect(not y.isnan().any(), m.masked_mean.EMPTY_ROW, what, expected=right, got=y)
    total = torch.tensor([[6.0, 4], [9, 12], [0, 0]])
    wrong = {
        m.masked_mean.MASK_UNUSED: torch.tensor([[6.0, 5.5], [4.5, 5.25], [7, 8]]),
        m.masked_mean.NOT_DIVIDED: total,
        m.masked_mean.DIVIDED_BY_N: total / 4,
        m.masked_mean.COUNT_OF_BATCH: total / 5,
        m.masked_mean.ONE_TOO_MANY: total / torch.tensor([[3.0], [4], [1]]),
        m.masked_mean.FIRST_MASK: torch.tensor([[3.0, 2], [5, 5.5], [7, 8]]),
        m.masked_mean.LARGEST: torch.tensor([[4.0, 4], [5, 6], [0, 0]]),
        m.masked_mean.TURNED_ROUND: torch.tensor([[9.0, 9], [9, 9], [7, 8]]),
    }
    filled = torch.tensor([[9.0, 9], [3, 3]])  # the sums of padding, by the counts of what counts
    silenced = torch.allclose(y[:2].float(), filled, atol=1e-4)
    expect(not silenced, m.masked_mean.TURNED_ROUND, what, expected=right, got=y)
    expect_close(y, right, what, given(wrong), tolerance=1e-4)


@visible(
    "the names of its parts, a mean and a log-softmax by hand, and that padding changes nothing",
    graded="other cases, sizes of 1, inputs unchanged, dtypes, devices, dropout and errors",
)
def TransformerClassifier(TransformerClassifier: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    model = call(TransformerClassifier, 6, 2, dim=2, heads=1, depth=2, max_len=5)
    weights = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    for part in ("embedding", "positions", "blocks.0", "blocks.1", "norm", "classes"):
        there = any(name.startswith(part + ".") for name in weights)
        renamed = any(".attention." in name and not name.startswith("blocks.") for name in weights)
        blocks = "blocks" in part and not renamed
        mistake = m.TransformerClassifier.BLOCKS if blocks else m.TransformerClassifier.PART_MISSING
        expect(there, mistake, f"no weight belongs to `{part}`")
    # Pairwise different sizes, as each other size has its own message.
    made = call(TransformerClassifier, 7, 3, dim=4, heads=2, depth=2, max_len=5).state_dict()
    shapes = {
        "embedding.weight": ((7, 4), Common.PARAMETER_SHAPE),
        "positions.weight": ((5, 4), m.TransformerClassifier.POSITIONS),
        "norm.weight": ((4,), Common.PARAMETER_SHAPE),
        "classes.weight": ((3, 4), m.TransformerClassifier.CLASSES),
        "classes.bias": ((3,), m.TransformerClassifier.CLASSES),
    }
    for name, (shape, mistake) in shapes.items():
        got = tuple(made[name].shape) if name in made else None
        told = {"expected": f"of shape {shape}", "got": "none" if got is None else f"shape {got}"}
        expect(got == shape, mistake, f"for 7 tokens, 3 classes, dim=4 and max_len=5 `{name}`", **told)
    # With these weights blocks and positions add nothing, `norm` makes each word's vector (1, -1)
    # or (-1, 1); class 0 scores 1.5 times the second number and 0.25, class 1 1.5 times the first.
    table = torch.tensor([[2.0, -2], [9, -9], [4, -4], [-3, 3], [-5, 5], [0, 0]])
    model.load_state_dict(weights)
    weights = {"embedding.weight": table, "norm.weight": torch.ones(2)}
    weights |= {f"blocks.{i}.norm_{j}.weight": torch.ones(2) for i in (0, 1) for j in (1, 2)}
    bias = torch.tensor([0.25, 0])
    weights |= {"classes.weight": torch.tensor([[0, 1.5], [1.5, 0]]), "classes.bias": bias}
    model.load_state_dict(weights, strict=False)  # it may hold them under further names
    model.eval()
    y = call(model, torch.tensor([[3, 2, 4, 1], [0, 2, 2, 3], [3, 2, 2, 2], [4, 4, 4, 4]]))  # 1 is padding
    what = "the result for four sequences"
    expect_tensor(y, name=what)
    shape = {"expected": "of shape (B, num_classes) = (4, 2)", "got": f"shape {tuple(y.shape)}"}
    expect(y.dim() != 3, m.TransformerClassifier.NO_MEAN, what, **shape)
    expect_tensor(y, (4, 2), name=what)
    expect(y.requires_grad, Common.CUT_OFF)
    means = torch.tensor([-1 / 3, 1 / 2, 1 / 2, -1])
    scores = 1.5 * torch.stack([-means, means], dim=-1) + bias
    wrong = {
        m.TransformerClassifier.SCORES: scores,
        m.TransformerClassifier.PROBABILITIES: scores.softmax(-1),
        m.TransformerClassifier.OVER_BATCH: scores.log_softmax(0),
        m.TransformerClassifier.LOG_SIGMOID: F.logsigmoid(scores),
        m.TransformerClassifier.RELU: scores.relu().log_softmax(-1),
        m.TransformerClassifier.LARGEST: (torch.tensor([[1.5, 1.5]] * 3 + [[1.5, -1.5]]) + bias).log_softmax(-1),
    }
    for mistake, read in {
        m.TransformerClassifier.MEAN_OVER_PADDING: (0, 1 / 2, 1 / 2, -1),
        m.TransformerClassifier.PADDING_ALONE: (1, 0, 0, 0),
        m.TransformerClassifier.PAD_IS_0: (0, 1 / 3, 1 / 2, -1),
        m.TransformerClassifier.DIVIDED_BY_N: (-1 / 4, 1 / 2, 1 / 2, -1),
        m.TransformerClassifier.SUM: (-1, 2, 2, -4),
        m.TransformerClassifier.FIRST_POSITION: (-1, 1, -1, -1),
        m.TransformerClassifier.LAST_POSITION: (1, -1, 1, -1),
        m.TransformerClassifier.NORM_UNUSED: (-4 / 3, 7 / 4, 9 / 4, -5),
        m.TransformerClassifier.NORM_AFTER_MEAN: (-1, 1, 1, -1),
    }.items():
        wrong[mistake] = (torch.tensor([[-1.5 * mean, 1.5 * mean] for mean in read]) + bias).log_softmax(-1)
    expect_close(y, scores.log_softmax(-1), what, given(wrong), tolerance=1e-3)
    # Random weights, and the same sequence without and with padding behind it, which is token 1 and then token 4.
    for pad_id, mistake in (
        (1, m.TransformerClassifier.ATTENDS_TO_PADDING),
        (4, m.TransformerClassifier.PAD_ID_IGNORED),
    ):
        options = {} if pad_id == 1 else {"pad_id": pad_id}
        model = TransformerClassifier(6, 2, dim=4, heads=2, depth=2, max_len=5, **options)
        model.eval()
        tokens = torch.tensor([[2, 3], [5 - pad_id, 5], [5, 2], [3, 3], [0, 5 - pad_id]])
        alone, padded = call(model, tokens), call(model, F.pad(tokens, (0, 2), value=pad_id))
        what = f"the result after two pads are put behind, with {pad_id=},"
        expect_close(padded, alone.detach(), what, tolerance=1e-5, otherwise=mistake)


@visible(
    "three right answers of five, and one of five", graded="other cases, sizes of 1, large numbers and inputs unchanged"
)
def accuracy(accuracy: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    # With two rows of labels each common mistake gives a pair of shares that no other one gives.
    counts = torch.tensor([[1.0, 4, 10, 2, 1], [6, 2, 5, 1, 4], [7, 1, 1, 1, 8], [6, 1, 5, 1, 5], [4, 3, 6, 1, 4]])
    # Likeliest are 2, 0, 4, 0 and 2.
    found = [call(accuracy, (counts / 18).log(), torch.tensor(labels)) for labels in ([2, 0, 0, 0, 1], [1, 1, 2, 4, 2])]
    for value, right in zip(found, ("three", "one"), strict=True):
        expect_number(value, value, f"the accuracy of {right} right among five")  # a number
    wrong = {
        m.accuracy.COUNTED: (3, 1),
        m.accuracy.PERCENTAGE: (60, 20),
        m.accuracy.WRONG_ANSWERS: (0.4, 0.8),
        m.accuracy.OVER_EXAMPLES: (0.8, 0.2),
        m.accuracy.OF_ALL: (0.2, 0.4),
        m.accuracy.MEAN_PROBABILITY: (32 / 90, 18 / 90),
        m.accuracy.ZERO: (0, 0),
        m.accuracy.FIRST_EXAMPLE: (1, 0),
        m.accuracy.ABOVE_ONE_HALF: (0.6, 0),
    }
    seen = {"expected": "0.6 and 0.2", "got": " and ".join(f"{value:.6g}" for value in found)}
    for mistake, shares in wrong.items():
        made = all(abs(value - share) < 1e-5 for value, share in zip(found, shares, strict=True))
        expect(not made, mistake, "the accuracies of three right answers among five, and of one,", **seen)
    expect_number(found[0], 0.6, "the accuracy of three right answers among five")
    expect_number(found[1], 0.2, "the accuracy of one right answer among five")


@visible("a mean weighted by counts, asked for twice, and that the mean of nothing is an error", graded="other cases")
def AccumulatingMetric(AccumulatingMetric: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    empty, metric = call(AccumulatingMetric), call(AccumulatingMetric)
    for value, count in ((1.8, 90), (1.4, 10), (1.2, 20)):
        call(metric.add, value, count)
    wrong = {
        m.AccumulatingMetric.COUNT_UNUSED: 4.4 / 3,
        m.AccumulatingMetric.SUM: 200,
        m.AccumulatingMetric.NUMBER_OF_CALLS: 200 / 3,
        m.AccumulatingMetric.NOT_WEIGHTED: 4.4 / 120,
        m.AccumulatingMetric.LAST_VALUE: 1.2,
        m.AccumulatingMetric.FADES: 1.4,
        m.AccumulatingMetric.WHOLE_NUMBERS: 1,
        m.AccumulatingMetric.ROUNDED: 2,
    }
    asked = "1.8 with count 90, 1.4 with 10 and 1.2 with 20"
    first = call(metric.avg)
    expect_number(first, 5 / 3, "the mean", given(wrong), asked)
    call(metric.add, 0.26)
    second = call(metric.avg)
    expect_number(second, second, "the mean after `add(0.26)`")  # a number
    default = abs(second - first) < 1e-9  # nothing is added
    otherwise = Unexplained.NUMBER if default else m.AccumulatingMetric.SECOND_TIME
    cut = {m.AccumulatingMetric.WHOLE_NUMBERS: 200 / 121}
    expect_number(second, 200.26 / 121, "the mean after `add(0.26)`, of one example,", given(cut), "", otherwise)
    try:
        mean = empty.avg()
    except (ZeroDivisionError, AssertionError):
        complain(m.AccumulatingMetric.NOT_VALUE_ERROR)
    except Exception:
        expect_raises(ValueError, empty.avg, "the mean of nothing")
        return
    shared = m.AccumulatingMetric.SHARED if mean == second else m.AccumulatingMetric.NOTHING_RAISED
    complain(shared, "the mean of nothing", got=mean)


@visible("steps before, at and after the end of a warm-up of ten", graded="other cases")
def warmup_factor(warmup_factor: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    steps = {3: 0.3, 30: 1, 1: 0.1, 9: 0.9, 10: 1, 11: 1}
    found = {step: call(warmup_factor, step, 10) for step in steps}
    for step, value in found.items():
        expect_number(value, value, f"the factor of step {step}")  # a number
    wrong = {
        m.warmup_factor.NEVER_STOPS: (0.3, 3),
        m.warmup_factor.ZERO_AFTERWARDS: (0.3, 0),
        m.warmup_factor.MAX_FOR_MIN: (1, 3),
        m.warmup_factor.NO_WARMUP: (1, 1),
        m.warmup_factor.LATE: (3 / 11, 1),
        m.warmup_factor.ONE_AHEAD: (0.4, 1),
        m.warmup_factor.ONE_BEHIND: (0.2, 1),
        m.warmup_factor.INTEGER_DIVISION: (0, 1),
        m.warmup_factor.SQUARE: (0.09, 1),
        m.warmup_factor.ROOT: (0.3**0.5, 1),
        m.warmup_factor.TURNED_ROUND: (1, 1 / 3),
        m.warmup_factor.FALLING: (0.7, 0),
    }
    further = ((m.warmup_factor.ONE_AHEAD, (4 / 11, 1)), (m.warmup_factor.ONE_BEHIND, (2 / 9, 1)))  # of another divisor
    seen = {"expected": "0.3 and 1", "got": f"{found[3]:.6g} and {found[30]:.6g}"}
    for mistake, (during, after) in (*wrong.items(), *further):
        made = abs(found[3] - during) + abs(found[30] - after) < 1e-6
        expect(not made, mistake, "the factors of steps 3 and 30 of a warm-up of 10", **seen)
    falls = found[3] < found[10] and found[30] < found[10] - 1e-6
    expect(not falls, m.warmup_factor.FALLS_AFTERWARDS, "the factor of step 30 of a warm-up of 10", got=found[30])
    for step, right in steps.items():
        expect_number(found[step], right, f"the factor of step {step} of a warm-up of 10")


def expect_pair(result: Any, name: str) -> tuple[Any, Any]:
    """Fail unless this is a pair of two Python numbers, the loss and the accuracy."""
    expect(result is not None, Common.NO_RETURN, name, expected="(loss, accuracy)", got="None")
    pair = isinstance(result, tuple | list) and len(result) == 2
    expect(pair, m.train_epoch.NO_PAIR, name, got=f"a {result.__class__.__name__}")
    for value in result:
        expect_number(value, value, f"each result of {name}")  # a number
    return result[0], result[1]


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


@visible("two batches by hand: each step, the pair that comes back, clipping and the scheduler", graded="other cases")
def train_epoch(train_epoch: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    # All scores are 0 at first, so each class has probability 1/2, and class 0 counts as most likely.
    # A batch moves the two rows that it reads by 0.025: each row's gradient is (1/2) / 2 = 0.25.
    batches = [
        (torch.tensor([[2, 3]]), torch.tensor([1])),
        (torch.tensor([[0, 1] * 3] * 2), torch.tensor([0, 0])),
    ]
    model = place(make_model_of_train_epoch, beside=train_epoch)()
    model.eval()
    optimizer = place(make_optimizer_of_train_epoch, beside=train_epoch)(model)
    result = call(train_epoch, model, batches, optimizer)
    # Whoever measures once more afterwards, in evaluation mode, has trained in training mode all the same.
    expect(all(model.modes) or sum(model.modes) >= len(batches), m.train_epoch.NOT_TRAINING)
    steps = {
        m.train_epoch.NO_STEP: (0, 0),
        m.train_epoch.GRADIENTS_KEPT: (0.05, 0.025),
        m.train_epoch.ASCENT: (-0.025, -0.025),
        m.train_epoch.SUMMED: (0.025, 0.05),
        m.train_epoch.FIRST_BATCH: (0.025, 0),
        m.train_epoch.PROBABILITIES: (0.0125, 0.0125),
    }
    what = "by how much the two batches move their rows"
    _expect_moved(model, (0.025, 0.025), steps, what)
    loss, hits = expect_pair(result, "train_epoch")
    expect(abs(loss - 2 / 3) > 1e-6, m.train_epoch.EXCHANGED, "the loss", expected=0.693147, got=loss)
    measured = {m.train_epoch.OVER_BATCHES: 0.5, m.train_epoch.LAST_BATCH: 1}
    expect_number(hits, 2 / 3, "the accuracy of two right answers among three", given(measured))
    name = "the loss, measured before each batch's step,"
    measured = {m.train_epoch.AFTER_THE_STEP: 0.66846, m.train_epoch.SUMMED: 1.15525}
    expect_number(round(loss, 5), 0.69315, name, given(measured))
    # The gradient of a batch has length 0.5: max_norm=0.1 leaves a fifth. The second step is halved.
    model = place(make_model_of_train_epoch, beside=train_epoch)()
    optimizer = place(make_optimizer_of_train_epoch, beside=train_epoch)(model)
    scheduler = place(make_scheduler_of_train_epoch, beside=train_epoch)(optimizer)
    call(train_epoch, model, batches, optimizer, scheduler, max_norm=0.1)
    steps = {
        m.train_epoch.NOT_CLIPPED: (0.025, 0.0125),
        m.train_epoch.CLIPPED_BY_VALUE: (0.01, 0.005),
        m.train_epoch.SCHEDULER: (0.005, 0.005),
        m.train_epoch.SCHEDULER_FIRST: (0.0025, 0.00125),
    }
    _expect_moved(model, (0.005, 0.0025), steps, f"with max_norm=0.1 and a halving scheduler, {what}")


def _expect_moved(
    model: nn.Module, right: tuple[float, float], wrong: Mapping[Mistake, tuple[float, float]], what: str
) -> None:
    """Fail unless the rows of two batches have moved by so much."""
    rows = dict(model.named_parameters())["table"].detach()
    moved = round(rows[2, 1].item(), 5), round(rows[0, 0].item(), 5)
    mistake = next((mistake for mistake, steps in wrong.items() if steps == moved), Unexplained.VALUES)
    expect(moved == right, mistake, what, expected=right, got=moved)


def make_model_of_evaluate():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.tensor([[0.0, 2], [0, 0], [0, 0], [2, 0]]))
            self.dropout = nn.Dropout(1.0)  # leaves nothing in training mode

        def forward(self, tokens):
            return F.log_softmax(self.dropout(self.table[tokens].mean(1)), -1)

    return Model()


def records_after(function, model, batches):
    """Whether torch still records a graph after a call."""
    torch.set_grad_enabled(True)
    function(model, batches)
    records = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return records


@visible("two batches by hand, nothing trained, and the mode as it was", graded="other cases and no graph")
def evaluate(evaluate: Callable) -> None:
    """The exercise on numbers that can be worked out by hand."""
    # The scores are (0, 2) for the first batch and (2, 0) for the second.
    batches = [
        (torch.tensor([[0, 0]]), torch.tensor([0])),
        (torch.tensor([[3, 3, 3]] * 3), torch.tensor([0, 0, 1])),
    ]
    model = place(make_model_of_evaluate, beside=evaluate)()
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    learning = place(learning_names, beside=evaluate)(model)
    loss, hits = expect_pair(call(evaluate, model, batches), "evaluate")
    # Two examples lose log(1 + e^2) = 2.1269 each, two lose log(1 + e^-2) = 0.1269.
    wrong = {m.evaluate.TRAINING: 0.693147, m.train_epoch.EXCHANGED: 0.5, m.train_epoch.SUMMED: 2.317320}
    wrong[m.train_epoch.PROBABILITIES] = -0.5
    measured = {m.train_epoch.OVER_BATCHES: 1 / 3, m.train_epoch.LAST_BATCH: 2 / 3, m.evaluate.PERCENTAGE: 50}
    for mistake, value in wrong.items():
        expect(abs(loss - value) > 1e-4, mistake, "the loss of four examples", expected=1.126928, got=loss)
    expect_number(hits, 0.5, "the accuracy of two right answers among four", given(measured))
    expect_number(round(loss, 4), 1.1269, "the loss of four examples")
    expect(model.training, m.evaluate.MODE, "afterwards", expected="in training mode", got="evaluation mode")
    for name, value in model.state_dict().items():
        expect(torch.equal(value, before[name]), m.evaluate.PARAMETERS, f"it is `{name}` that has changed")
    expect(place(learning_names, beside=evaluate)(model) == learning, m.evaluate.FROZEN)
    model.eval()
    call(evaluate, model, batches)
    expect(not model.training, m.evaluate.MODE, "afterwards", expected="in evaluation mode", got="training mode")
    expect(place(records_after, beside=evaluate)(evaluate, model, batches), m.evaluate.LEFT_OFF)


@visible(
    "the difference by hand, an interval that two equal models leave no room for, and the two errors",
    graded="other cases and inputs unchanged",
)
def paired_bootstrap(paired_bootstrap: Callable) -> None:
    """Eight examples, one of which the first model alone gets right."""
    a, b = torch.tensor([True] * 6 + [False] * 2), torch.tensor([False] + [True] * 5 + [False] * 2)
    result = call(paired_bootstrap, a.clone(), b.clone(), generator=torch.Generator().manual_seed(0))
    difference, low, high = expect_triple(result)
    wrong = {m.paired_bootstrap.TURNED_ROUND: -1 / 8, m.paired_bootstrap.COUNTED: 1}
    near = abs(difference - 1 / 8) < 0.03  # the mean of some draws is near by chance
    drawn = m.paired_bootstrap.MEAN_OF_DRAWS if near else Unexplained.NUMBER
    expect_number(difference, 1 / 8, "the difference of 6 right answers and 5, among 8,", given(wrong), otherwise=drawn)
    interval = f"the interval {low:.4g} to {high:.4g}"
    expect(low <= difference <= high, m.paired_bootstrap.OUTSIDE, interval, expected=f"around {difference}")
    # b is never right where a is wrong, so that no paired draw can favour b.
    below = m.paired_bootstrap.PERMUTED if abs(low + high) < 1 / 16 else m.paired_bootstrap.NOT_PAIRED
    # Percentiles of eight examples' differences are eighths; what lies as far on both sides and is none was computed.
    eighths = all(abs(8 * end - round(8 * end)) < 1e-3 for end in (low, high))
    if abs(low + high - 2 * difference) < 1 / 50 and not eighths:
        below = m.paired_bootstrap.STANDARD_ERROR
    if abs(low + 1 / 8) < 1e-6 and abs(high - 1 / 4) < 1e-6:  # the right ends, 0 and 3/8, mirrored or moved by 1/8
        below = m.paired_bootstrap.MOVED
    expect(low > -1e-6, below, interval, expected="at 0 or above")
    if low == high:
        # Without replacement each draw is all the examples, with the difference between them; a single draw moves.
        seeds = [torch.Generator().manual_seed(seed) for seed in range(10)]
        ends = [expect_triple(call(paired_bootstrap, a.clone(), b.clone(), generator=seed))[1] for seed in seeds]
        moves = max(ends) - min(ends) > 1e-6
        complain(m.paired_bootstrap.ONE_DRAW if moves else m.paired_bootstrap.NO_WIDTH, interval)
    expect(high <= 1, m.paired_bootstrap.COUNTED, interval, expected="at 1 or below")  # no mean is above 1
    expect(high < 1, m.paired_bootstrap.OTHER_COUNT, interval)  # the same example eight times
    same = call(paired_bootstrap, b.clone(), b.clone(), generator=torch.Generator().manual_seed(0))
    apart = max(map(abs, same)) < 1e-9
    expect(apart, m.paired_bootstrap.NOT_PAIRED, "for two models with the same answers the result", got=same)
    turned, _, _ = expect_triple(call(paired_bootstrap, b.clone(), a.clone()))
    lost = m.paired_bootstrap.SIGN_LOST if turned > 0 else Unexplained.NUMBER
    expect(abs(turned + 1 / 8) < 1e-6, lost, "the difference with the two exchanged", expected=-1 / 8, got=turned)
    for shorter, what in ((a[:5], "different lengths"), (a[:0], "no examples")):
        other = b[:0] if what == "no examples" else b
        expect_raises(ValueError, lambda s=shorter, o=other: paired_bootstrap(s.clone(), o.clone()), what)


def expect_triple(result: Any) -> tuple[float, float, float]:
    """Fail unless these are three Python floats: the difference, and the ends of its interval."""
    what = "paired_bootstrap"
    expect(result is not None, Common.NO_RETURN, what, expected="(difference, low, high)", got="None")
    triple = isinstance(result, tuple | list) and len(result) == 3
    expect(triple, m.paired_bootstrap.NO_TRIPLE, what, got=f"a {result.__class__.__name__}")
    for value in result:
        number = isinstance(value, float) and not isinstance(value, Tensor)
        expect(number, Common.NOT_A_NUMBER, "each of the three", got=f"a {value.__class__.__name__}")
    return result[0], result[1], result[2]
