"""What chapter 12's check cells call: small cases by hand, and the commonest mistakes by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    Unexplained,
    call,
    complain,
    expect,
    expect_close,
    expect_parameters,
    expect_raises,
    expect_tensor,
    explaining,
    given,
    learning_names,
    named_parameters,
    place,
    unchanged,
)
from autograder.course.card import visible
from checks.pretraining import mistakes as m


def writes_to_rows(function, rows, length, eos_id):
    """Whether a function changes the lists that it is handed."""
    before = [list(row) for row in rows]
    function(rows, length, eos_id)
    return before != rows


def expect_rows_unchanged(function: Callable, rows: Sequence[Sequence[int]] = ((4, 5), (6,)), length: int = 2) -> None:
    """Fail if the lists that are handed in are changed."""
    given = [list(row) for row in rows]
    expect(not call(place(writes_to_rows, beside=function), function, given, length, 9), m.pack.ROWS_CHANGED)


@visible("three texts by hand, one of them empty, and the error", graded="other cases")
def pack(function: Callable) -> None:
    """Texts of two, no and seven tokens in blocks of five and of three; 9 ends each."""
    blocks = call(function, [[1, 2], [], [3, 4, 5, 6, 7, 8, 0]], 5, 9)
    right = torch.tensor([[1, 2, 9, 9, 3], [4, 5, 6, 7, 8]])
    wrong = {
        m.pack.NO_EOS: [[1, 2, 3, 4, 5]],
        m.pack.EOS_ONCE: [[1, 2, 3, 4, 5], [6, 7, 8, 0, 9]],
        m.pack.EOS_FIXED: [[1, 2, 3, 3, 3], [4, 5, 6, 7, 8]],
        m.pack.EMPTY_LOST: [[1, 2, 9, 3, 4], [5, 6, 7, 8, 0]],
        m.pack.TEXT_BY_TEXT: [[3, 4, 5, 6, 7]],
        m.pack.FRONT_DROPPED: [[9, 9, 3, 4, 5], [6, 7, 8, 0, 9]],
        m.pack.BLOCK_LOST: [[1, 2, 9, 9, 3]],
        m.pack.COLUMNS: [[1, 9, 3, 5, 7], [2, 9, 4, 6, 8]],
    }
    likely = given({mistake: torch.tensor(value) for mistake, value in wrong.items()})
    expect_tensor(blocks, name="the blocks")
    if blocks.tolist() == wrong[m.pack.TEXT_BY_TEXT]:  # so it is without the short texts, too, where joining is right
        long = call(function, [[1, 2, 3, 4], [5, 6, 7, 8]], 3, 9)
        joins = getattr(long, "shape", None) == (3, 3) and long.tolist() == [[1, 2, 3], [4, 9, 5], [6, 7, 8]]
        expect(not joins, m.pack.SHORT_LOST, "the blocks of five", expected=right, got=blocks)
    if blocks.dim() == 2 and blocks.shape[1] == 5:
        got = blocks[:2].long()
        early = got[:1].tolist() == [[9, 1, 2, 9, 9]]  # whether it follows the texts or not
        expect(not early, m.pack.EOS_FIRST, "the first block", expected=right[0], got=blocks[:1].flatten())
        kept = len(blocks) > 2 and torch.equal(got, right)
        told = {"expected": "of shape (2, 5)", "got": f"shape {tuple(blocks.shape)}"}
        expect(not kept, m.pack.REST_KEPT, "the blocks", **told)
        joined = torch.tensor([1, 2, 9, 9, 3, 4, 5, 6, 7, 8, 0, 9])
        overlap = any(torch.equal(got, joined.unfold(0, 5, step)[:2]) for step in range(1, 5))
        expect(not overlap, m.pack.OVERLAP, "the second block", expected=right[1], got=blocks[1:2].flatten())
    expect_close(blocks, right, "the blocks of five", likely, torch.int64)
    blocks = call(function, [[1, 2], [], [3, 4, 5, 6, 7, 8, 0]], 3, 9)
    right = torch.tensor([[1, 2, 9], [9, 3, 4], [5, 6, 7], [8, 0, 9]])
    if isinstance(blocks, Tensor) and not blocks.numel():
        other = call(function, [[1, 2], [3]], 3, 9)  # which leaves a rest, behind a block that an end fills
        likely = m.pack.FULL_LOST if isinstance(other, Tensor) and other.numel() else m.pack.END_UNASKED
        complain(likely, "the blocks of three", expected=right, got=blocks)
    expect_close(blocks, right, "the blocks of three", given({m.pack.EOS_BETWEEN: right[:3]}), torch.int64)
    expect_rows_unchanged(function)
    expect_raises(ValueError, lambda: function([[1, 2], [3]], 0, 9), "length=0")


def expect_two(result: Any) -> tuple[Tensor, Tensor]:
    """The tokens to read and the bool tensor of those to guess."""
    expect(result is not None, Common.NO_RETURN, "the result", expected="a pair", got="None")
    pair = isinstance(result, tuple | list) and len(result) == 2
    expect(pair, m.mask_tokens.NO_PAIR, "the result", expected="a pair", got=f"a {result.__class__.__name__}")
    turned = [getattr(part, "dtype", None) for part in result] == [torch.bool, torch.int64]
    expect(not turned, m.mask_tokens.OTHER_ORDER)
    if isinstance(result[1], Tensor) and result[1].dtype == torch.int64:
        labelled = bool((result[1] < 0).any() or (result[1] > 1).any())
        expect(not labelled, m.mask_tokens.LABELS, "`chosen`", expected="True and False", got=result[1].flatten())
    return result[0], result[1]


@visible(
    "10,000 tokens: which may be chosen, and about how often each of the three things happens",
    graded="other cases, sizes of 1 and the generator",
)
def mask_tokens(function: Callable) -> None:
    """Tokens 0 to 49, of which 0, 3 and 7 are special, and 7 is the mask; two fifths are to be chosen."""
    known, special = m.mask_tokens, torch.tensor([0, 3, 7])
    tokens = (torch.arange(10_000) % 50).view(50, 200)
    signs = {
        r"isin\(\).*\(Tensor, list": known.LIST_GIVEN,
        r"rand\w*\(\).*invalid combination.*NoneType\)": known.GENERATOR_BY_PLACE,
    }
    with (
        unchanged(tokens=tokens),
        explaining("`special_ids` [0, 3, 7] and no generator", signs),
    ):
        inputs, chosen = expect_two(call(function, tokens, 7, 50, [0, 3, 7], 0.4))
    expect_tensor(inputs, (50, 200), torch.int64, "the tokens to read")
    expect_tensor(chosen, (50, 200), torch.bool, "`chosen`")
    ordinary = ~torch.isin(tokens, special)
    changed, masked = inputs != tokens, inputs == 7
    hidden = masked & ordinary
    only = torch.equal(chosen & ordinary, hidden) and hidden.any() and (changed & ~masked).any()
    expect(not only, known.ONLY_MASKED, "`chosen`")
    turned = bool((changed <= ~chosen).all() and changed.any() and chosen.double().mean() > 0.5)
    expect(not turned, known.TURNED_ROUND, "`chosen`")
    expect(
        not (chosen & ~ordinary).any(),
        known.SPECIAL_CHOSEN,
        "special tokens chosen",
        got=int((chosen & ~ordinary).sum()),
    )
    expect(not (changed & ~chosen).any(), known.OTHERS_CHANGED, got=int((changed & ~chosen).sum()))
    if torch.equal(chosen, ordinary) or not chosen.any():
        again = (expect_two(call(function, tokens, 7, 50, [0, 3, 7], 0.4))[1] for _ in range(40))
        sometimes = any(part.any() != chosen.any() for part in again)
        expect(not sometimes, known.TOGETHER, "all tokens are chosen, or none")
        expect(not chosen.any(), known.SHARE, "the share of the tokens chosen", expected=0.4, got=1.0)
    expect(not (chosen == chosen[:1]).all() or not chosen.any(), known.SAME_PLACES)  # the rows are equal
    whole = (chosen == ordinary).all(1) | ~chosen.any(1)
    expect(not whole.all() or not chosen.any(), known.TOGETHER, "all tokens of a row are chosen, or none")
    low = chosen[(tokens < 7) & ordinary]
    expect(low.any() or not chosen.any(), known.FIRST_IDS, "of the tokens 1, 2, 4, 5 and 6 chosen", got="none")
    share = chosen[ordinary].double().mean().item()
    hidden = inputs[chosen] == 7
    stay = inputs[chosen] == tokens[chosen]
    shares = [part.double().mean().item() for part in (hidden, ~hidden & ~stay, stay)] if chosen.any() else [0, 0, 0]
    left_out = abs(share - 0.36) < 0.02 and shares[2] == 0 and shares[1] > 0.05
    expect(not left_out, known.STAYING_LEFT_OUT, "the share of the tokens chosen", expected=0.4, got=share)
    expect(abs(share - 0.4) < 0.05, known.SHARE, "the share of the tokens chosen", expected=0.4, got=share)
    told = {"expected": [0.8, 0.1, 0.1], "got": [round(part, 2) for part in shares]}
    what = "the shares of masked, replaced and unchanged tokens among the chosen"
    expect(shares[0] > 0, known.NEVER_MASK, what, **told)
    expect(shares[0] < 1, known.ALWAYS_MASK, what, **told)
    for dim, line in ((1, "row"), (0, "column")):
        count, of = (masked & chosen).sum(dim), chosen.sum(dim)
        together = ((count == 0) | (count == of)).all()
        expect(not together, known.FATES_TOGETHER, f"in each {line} all chosen tokens become `mask_id`, or none")
    expect(shares[2] > 0.02, known.NONE_STAYS, what, **told)
    expect(shares[1] > 0, known.NONE_ANOTHER, what, **told)
    right = zip(shares, (0.8, 0.1, 0.1), strict=True)
    expect(all(abs(got - wanted) < 0.04 for got, wanted in right), known.FATES, what, **told)
    drawn = inputs[chosen][~hidden]
    expect(
        ((drawn >= 0) & (drawn < 50)).all(), known.OUTSIDE, "the largest token", expected="at most 49", got=drawn.max()
    )
    expect(not torch.isin(drawn, special).any(), known.SPECIAL_DRAWN)


def make_table_body(vocab_size, dim):
    """A body that looks at one token at a time: the token's row of `table`, larger further on in the text."""

    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(vocab_size, dim)

        def forward(self, tokens):
            return self.table(tokens) * (1 + torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(1))

    return Body()


def make_mixing_body(vocab_size, dim, pad_id):
    """A body that, as the chapter's does, looks at all real tokens of a text: a token's row and the mean of theirs."""

    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(vocab_size, dim)

        def forward(self, tokens):
            rows, real = self.table(tokens), (tokens != pad_id).unsqueeze(-1)
            return rows + (rows * real).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)

    return Body()


def body_is_kept(classifier, body):
    """Whether a classifier's body is this one."""
    return classifier.body is body


def expect_body(cls: Callable, model: nn.Module, body: nn.Module) -> None:
    """Fail unless a classifier's body is the one that was handed in, and still learns."""
    known = m.ReviewClassifier
    expect(place(body_is_kept, beside=cls)(model, body), known.BODY_COPIED)
    table = named_parameters(model).get("body.table.weight")
    expect(table is not None and table.requires_grad, known.BODY_FROZEN)


@visible(
    "a body by hand: the mean over real tokens, the head, log-probabilities",
    graded="other cases, sizes of 1, gradients and dtypes",
)
def ReviewClassifier(cls: Callable) -> None:
    """Vectors of two features, the padding far from zero; five classes."""
    known = m.ReviewClassifier
    body = place(make_table_body, beside=cls)(5, 2)
    model = call(cls, body, 2, 5, 4)
    shapes = {"body.table.weight": (5, 2), "head.weight": (5, 2), "head.bias": (5,)}
    expect_parameters(model, shapes, {"body": known.BODY_LEFT_OUT})
    expect_body(cls, model, body)
    table = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [-1.0, 1.0], [5.0, -5.0]])
    head = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, -1.0], [0.0, 0.0], [-1.0, 1.0]])
    bias = torch.tensor([0.5, 0.0, 0.0, 1.0, 0.0])
    weights = {"body.table.weight": table, "head.weight": head, "head.bias": bias}
    model.load_state_dict(weights, strict=False)
    tokens = torch.tensor([[0, 1, 2, 3], [1, 0, 2, 4], [2, 3, 4, 4]])
    with unchanged(tokens=tokens):
        y = call(model, tokens)
    read = table[tokens] * torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    kept = (tokens != 4).unsqueeze(-1)
    total, count = (read * kept).sum(1), kept.sum(1)

    def judged(x: Tensor) -> Tensor:
        return x @ head.T + bias

    scores = judged(total / count)
    wrong = {
        known.SCORES: scores,
        known.PROBABILITIES: scores.softmax(-1),
        known.OVER_BATCH: scores.log_softmax(0),
        known.AVERAGED_LATE: (judged(read).log_softmax(-1) * kept).sum(1) / count,
    }
    for mistake, pooled in {
        known.MEAN_OVER_PADDING: read.mean(1),
        known.DIVIDED_BY_N: total / 4,
        known.FIRST_POSITION: read[:, 0],
        known.LAST_POSITION: read[:, -1],
        known.LARGEST: read.masked_fill(~kept, -torch.inf).amax(1),
        known.SUM: total,
        known.TURNED_ROUND: _mean_of(read, tokens == 4),
        known.PAD_IS_1: _mean_of(read, tokens != 1),
        known.PAD_IS_0: _mean_of(read, tokens != 0),
    }.items():
        wrong[mistake] = judged(pooled).log_softmax(-1)
    expect_close(y, scores.log_softmax(-1), "the result for three texts", given(wrong), tolerance=1e-4)


def _mean_of(x: Tensor, kept: Tensor) -> Tensor:
    kept = kept.unsqueeze(-1)
    return (x * kept).sum(1) / kept.sum(1).clamp(min=1)


def make_layered(depth, dim, tables, frozen=False):
    """A classifier of the right names: a body with `embedding`, `blocks` and `norm`, and perhaps further tables.

    If `frozen`, only its head learns.
    """

    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(7, dim)
            for name in tables:
                setattr(self, name, nn.Embedding(5, dim))
            self.blocks = nn.ModuleList(
                nn.ModuleDict({"first": nn.Linear(dim, dim), "norm": nn.LayerNorm(dim)}) for _ in range(depth)
            )
            self.norm = nn.LayerNorm(dim)

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = Body().requires_grad_(not frozen)
            self.head = nn.Linear(dim, 2)

    return Classifier()


def named_groups(function, model, rate, decay):
    """What a function gives for a model: for each group its rate and its parameters' names; None if it is no group."""
    groups = function(model, rate, decay)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    if not isinstance(groups, (list, tuple)):
        return None
    told = []
    for group in groups:
        if not isinstance(group, dict) or "params" not in group or "lr" not in group:
            return None
        params = group["params"]
        params = [params] if isinstance(params, torch.Tensor) else list(params)
        told.append([float(group["lr"]), [names.get(id(parameter), "?") for parameter in params]])
    return told


def expect_groups(
    function: Callable,
    sizes: tuple[int, int, list[str]],
    rate: float,
    decay: float,
    rates: Sequence[float],
    rivals: Mapping[Mistake, Sequence[float]],
    frozen: bool = False,
) -> None:
    """Fail unless each parameter is in one group, with the rate of its layer.

    Args:
        function: the student's.
        sizes: blocks of the body, its features, and the names of its further tables.
        rate: of the head.
        decay: from layer to layer.
        rates: of head, norm, each block from the last to the first, and tables.
        rivals: what rates mistakes give, in the same order.
        frozen: whether the body is frozen.
    """
    depth, known = sizes[0], m.layer_rates
    asked = f"a body of {depth} {'blocks' if depth > 1 else 'block'}, rate={rate:g} and decay={decay:g}"
    asked += ", the body frozen" if frozen else ""
    model = place(make_layered, beside=function)(*sizes, frozen)
    with explaining(asked, {"must match the size of tensor|more than one value is ambiguous": known.COMPARED}):
        groups = call(place(named_groups, beside=function), function, model, rate, decay)
    expect(groups is not None, known.NO_GROUPS, asked=asked)
    got: dict[str, float] = {}
    for lr, names in groups:
        expect("?" not in names, known.NO_PARAMETERS, asked=asked)
        for name in names:
            expect(name not in got, known.TWICE, f"the parameter `{name}`", asked=asked)
            got[name] = lr
    names = [*named_parameters(model)]
    missing = [name for name in names if name not in got]
    left_out = known.FROZEN_LEFT_OUT if frozen else known.MISSING
    expect(not missing, left_out, f"the parameter `{missing[0]}`" if missing else "", asked=asked)

    def layer(name: str) -> int:
        kinds = ["head.", "body.norm.", *(f"body.blocks.{i}." for i in reversed(range(depth)))]
        return next((k for k, kind in enumerate(kinds) if name.startswith(kind)), depth + 2)

    def fits(row: Sequence[float]) -> bool:
        return all(_same(got[name], row[layer(name)]) for name in names)

    if fits(rates):
        return
    off = [name for name in names if not _same(got[name], rates[layer(name)])]
    layers = {layer(name) for name in off}
    inner = all(".norm." in name and _same(got[name], rates[0]) for name in off) and min(layers) > 1
    # All blocks have the rate of the layer above, and the embedding its own, so that it is two layers below them.
    late = layers == {*range(2, depth + 2)} and all(_same(got[name], rates[layer(name) - 1]) for name in off)
    alone = (
        known.LAST_BLOCK if late else known.NORM if layers == {1} else known.HEAD if 0 in layers else Unexplained.NUMBER
    )
    likely = next((mistake for mistake, row in rivals.items() if fits(row)), known.INNER_NORMS if inner else alone)
    worst = min(off, key=layer)
    complain(likely, f"the rate of `{worst}`", asked=asked, expected=rates[layer(worst)], got=got[worst])


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * abs(other)


@visible("two blocks at rates 1, 1/2, 1/4 and 1/8", graded="other cases")
def layer_rates(function: Callable) -> None:
    """Two blocks, a rate of 1 and a decay of a half: head, norm, block 1, block 0, embedding."""
    known = m.layer_rates
    rivals = {
        known.ALL_ALIKE: (1, 1, 1, 1, 1),
        known.UPSIDE_DOWN: (1 / 8, 1 / 8, 1 / 4, 1 / 2, 1),
        known.DIVIDED: (1, 1, 2, 4, 8),
        known.LINEAR: (1, 1, 1 / 2, 0, -1 / 2),
        known.STEP_TWICE: (1, 1, 1 / 4, 1 / 16, 1 / 64),
        known.BLOCKS_TURNED: (1, 1, 1 / 4, 1 / 2, 1 / 8),
        known.LAST_BLOCK: (1, 1, 1, 1 / 2, 1 / 4),
        known.EMBEDDING: (1, 1, 1 / 2, 1 / 4, 1 / 4),
        known.EMBEDDING_HIGH: (1, 1, 1 / 2, 1 / 4, 1),
        known.NORM: (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16),
    }
    expect_groups(function, (2, 3, []), 1.0, 0.5, (1, 1, 1 / 2, 1 / 4, 1 / 8), rivals)


def make_linear(inside, outside, bias):
    """A linear layer."""
    return nn.Linear(inside, outside, bias=bias)


def linear_is_kept(module, linear):
    """Whether what a module changes is this layer."""
    return module.linear is linear


def is_linear(module):
    """Whether something is an `nn.Linear`, and whether it has a bias."""
    return [isinstance(module, nn.Linear), getattr(module, "bias", None) is not None]


def dtype_of(layer):
    """What a layer's weight is made of; nothing if it has none."""
    return str(layer.weight.dtype) if hasattr(layer, "weight") else ""


def expect_frozen(cls: Callable, module: nn.Module) -> None:
    """Fail unless `A` and `B` learn, and nothing else."""
    names = set(place(learning_names, beside=cls)(module))
    expect(not any(name.startswith("linear.") for name in names), m.LowRank.NOT_FROZEN)
    expect(names == {"A", "B"}, m.LowRank.CHANGE_FROZEN, expected=["A", "B"], got=sorted(names))


def expect_zeros(module: nn.Module) -> None:
    """Fail unless `B` starts as zeros; where `A` does in its place, nothing is changed at first either."""
    A, B = (named_parameters(module)[name].detach() for name in ("A", "B"))
    expect(A.any() or not B.any(), m.LowRank.STARTS_TURNED)
    expect(not B.any(), m.LowRank.B_START, got=B.flatten())


@visible(
    "a layer of three features with a change of rank 2, before and after merging",
    graded="other cases, sizes of 1, gradients, dtypes and devices",
)
def LowRank(cls: Callable) -> None:
    """alpha = 6 and rank 2 make a factor of 3."""
    known = m.LowRank
    linear = place(make_linear, beside=cls)(3, 4, True)
    module = call(cls, linear, 2, 6.0)
    shapes = {"A": (2, 3), "B": (4, 2), "linear.weight": (4, 3), "linear.bias": (4,)}
    expect_parameters(module, shapes)
    expect_frozen(cls, module)
    expect_zeros(module)
    weights = {
        "A": torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]),
        "B": torch.tensor([[1.0, 0.0], [0.0, 3.0], [1.0, -1.0], [2.0, 1.0]]),
        "linear.weight": torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        "linear.bias": torch.tensor([0.5, 0.0, -1.0, 2.0]),
    }
    module.load_state_dict(weights, strict=False)
    x = torch.tensor([[1.0, 1.0, 0.0], [2.0, -1.0, 1.0]])
    with unchanged(x=x):
        y = call(module, x)
    before = torch.tensor([[1.5, 1.0, 1.0, 2.0], [2.5, -1.0, 0.0, 3.0]])
    change = torch.tensor([[3.0, 3.0, 2.0, 7.0], [0.0, -6.0, 2.0, -2.0]])
    factors = {
        known.NO_SCALE: 1.0,
        known.ALPHA_ONLY: 6.0,
        known.RANK_ONLY: 1 / 2,
        known.ROOT: 6 / 2**0.5,
        known.UPSIDE_DOWN: 1 / 3,
        known.SUBTRACTED: -3.0,
    }
    wrong = {mistake: before + factor * change for mistake, factor in factors.items()}
    wrong[known.NO_LINEAR] = 3 * change
    right = before + 3 * change
    expect_close(y, right, "the output", given(wrong), tolerance=1e-4)
    rivals = {known.MERGED_BARE: before, known.MERGED_SCALE: before + change}
    expect_merged(cls, module, x, right, given(rivals), True, 1e-4)


def expect_merged(
    cls: Callable,
    module: nn.Module,
    x: Tensor,
    right: Tensor,
    rivals: Mapping[Mistake, Callable[[], Tensor]],
    bias: bool,
    tolerance: float,
) -> None:
    """Fail unless `merged()` gives a linear layer with the same outputs, and leaves the module as it is."""
    known = m.LowRank
    merged = call(module.merged)
    expect(merged is not None, Common.NO_RETURN, "`merged()`")
    layer, has_bias = place(is_linear, beside=cls)(merged)
    expect(layer, known.MERGED_NO_LAYER)
    dtype, what = place(dtype_of, beside=cls)(merged), "the weight of the layer of `merged()`"
    expect(dtype in ("", str(x.dtype)), Common.WRONG_DTYPE, what, expected=str(x.dtype), got=dtype)
    expect(bias or not has_bias, known.BIAS_MADE_UP)
    zeros = torch.zeros_like(x)  # of which a layer gives its bias
    rivals = {**rivals, known.MERGED_NO_BIAS: lambda: right - call(module, zeros) + call(merged, zeros)}
    expect_close(call(merged, x), right, "what the layer of `merged()` gives", rivals, x.dtype, tolerance)
    with torch.no_grad():
        for parameter in merged.parameters():
            parameter.mul_(3)
    again = call(module, x)
    expect_close(again, right, "the output after `merged()`", tolerance=tolerance, otherwise=known.MERGED_IN_PLACE)


def expect_indices(value: Any, right: list[int], rivals: Mapping[Mistake, Callable[[], list[int]]], asked: str) -> None:
    """Fail unless these are the right indices."""
    expect(value is not None, Common.NO_RETURN, "the result", asked=asked, expected=right, got="None")
    indices = isinstance(value, list | tuple) and all(type(i) is int for i in value)
    got = value if isinstance(value, list) else f"a {value.__class__.__name__}"
    expect(indices, m.contaminated.NO_LIST, asked=asked, expected=right, got=got)
    if list(value) == right:
        return
    expect(
        sorted(value) != right, m.contaminated.ORDER, "the texts found", asked=asked, expected=right, got=list(value)
    )
    likely = next((mistake for mistake, find in rivals.items() if list(value) == find()), Unexplained.VALUES)
    complain(likely, "the texts found", asked=asked, expected=right, got=list(value))


READ = ("abcdefghij", "klmnop", "aa", "rstu", "vw")
TESTED = (
    "klmnop",
    "rstux",
    "abq",
    "efghijklm",
    "jklop",
    "ponmlk",
    "acbd",
    "aaaaaar",
    "q",
    "bcdefghij",
    "vu",
    "abqz",
    "vw",
    "abqxyzpm",
    "abcdefzzzzzz",
    "abefij",
    "opaarstuvw",
    "xefghij",
    "abcdefghijzklmnopzrstuzzzzzzzz",
    "aab",
    "abc",
    "zz",
    "zy",
    "zx",
)


@visible("the texts of the example", graded="other cases and how often parts are called")
def contaminated(function: Callable) -> None:
    """Pairs of letters, three quarters of which must have been read."""
    value = call(function, [list(text) for text in READ], [list(text) for text in TESTED], 2, 0.75)
    known = m.contaminated
    wrong = {
        known.ABOVE: [0, 3, 7, 9, 12, 17, 19, 20],
        known.ANY: [0, 1, 2, 3, 4, 7, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
        known.ALL: [0, 9, 12, 19, 20],
        known.SHARE_FIXED: [0, 1, 2, 3, 4, 7, 9, 12, 15, 16, 17, 18, 19, 20],
        known.OF_TOKENS: [0, 3, 9],
        known.ROUNDED: [0, 1, 2, 3, 7, 9, 10, 12, 15, 16, 17, 19, 20, 21, 22, 23],
        known.N_FIXED: [9],
        known.WORDS: [0, 1, 3, 4, 5, 6, 7, 9, 10, 12, 15, 16, 17, 19, 20],
        known.UNORDERED: [0, 1, 3, 5, 7, 9, 12, 17, 19, 20],
        known.ACROSS: [0, 1, 3, 4, 7, 9, 12, 16, 17, 19, 20],
        known.TURNED_ROUND: [18],
        known.DISTINCT: [0, 1, 3, 9, 12, 17, 19, 20],
        known.LAST_LOST: [0, 2, 9, 17, 20],
        known.LAST_READ_LOST: [0, 3, 9, 20],
        known.LAST_TESTED_LOST: [0, 1, 2, 3, 7, 9, 17, 19, 20],
        known.SHORT: [0, 1, 3, 7, 8, 9, 12, 17, 19, 20],
        known.ONE_SOURCE: [0, 1, 7, 9, 12, 17, 20],
        known.WHOLE: [0, 12],
        known.STRIDE: [0, 1, 2, 3, 7, 12, 15, 16, 19, 20],
        known.RAGGED: [0, 3, 9, 12, 17],
    }
    if value == wrong[known.ROUNDED]:  # so it is, with three quarters, where the share is one of one n-gram too few
        rounded = call(function, [list("ab")], [list("qyz")], 2, 0.25) == [0]
        wrong[known.ROUNDED if rounded else known.TOTAL_SHORT] = wrong.pop(known.ROUNDED)
    expect_indices(
        value, [0, 1, 3, 7, 9, 12, 17, 19, 20], given(wrong), "the letters of the example, n=2 and share=0.75"
    )
