"""The visible checks of chapter 03: the worked examples of the text, and the commonest mistakes by name."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.checks import (
    Common,
    Mistake,
    alike,
    call,
    expect,
    expect_close,
    expect_device,
    expect_raises,
    expect_tensor,
    given,
    place,
    randint,
    unchanged,
)
from autograder.course.card import visible
from checks.queries_keys_values import mistakes as m

KINDS = ("adjective", "noun", "verb")


# -- noun_finder


def sentence(words: Sequence[tuple[int, int]], num_words: int) -> Tensor:
    """A sentence as chapter 03 describes words, `(n, 3 + num_words)`.

    Args:
        words: for each its kind (0 adjective, 1 noun, 2 verb) and its number, below `num_words`.
        num_words: the size of the vocabulary.
    """
    x = torch.zeros(len(words), 3 + num_words)
    for i, (kind, number) in enumerate(words):
        x[i, kind] = x[i, 3 + number] = 1.0
    return x


def expect_matrices(matrices: Any, num_words: int) -> None:
    """Fail unless this is a triple of matrices whose sizes fit each other."""
    expect(matrices is not None, Common.NO_RETURN, "noun_finder", expected="three matrices", got="None")
    three = isinstance(matrices, tuple | list) and len(matrices) == 3
    expect(three, m.noun_finder.NOT_THREE, "noun_finder", got=f"a {type(matrices).__name__}")
    for name, matrix in zip(("Wq", "Wk", "Wv"), matrices, strict=True):
        expect_tensor(matrix, None, torch.float32, name)
        rows = {"expected": f"of {3 + num_words} rows", "got": f"shape {tuple(matrix.shape)}"}
        expect(matrix.dim() == 2 and len(matrix) == 3 + num_words, m.noun_finder.ROWS, name, **rows)
    wq, wk, wv = matrices
    columns = f"{wq.shape[1]} columns in Wq and {wk.shape[1]} in Wk"
    expect(wq.shape == wk.shape, m.noun_finder.UNEQUAL_COLUMNS, "there are", got=columns)
    told = {"expected": f"of {num_words} columns", "got": wv.shape[1]}
    expect(wv.shape[1] == num_words, m.noun_finder.VALUE_COLUMNS, "Wv", **told)


def expect_nouns(matrices: Sequence[Tensor], words: Sequence[tuple[int, int]], num_words: int) -> None:
    """Fail unless each noun of a sentence hands over its own one-hot and, if it is the only one, all others its.

    Args:
        matrices: Wq, Wk, Wv.
        words: as for `sentence`.
        num_words: the size of the vocabulary.
    """
    x = sentence(words, num_words).double()
    outputs = _outputs(x, *matrices)
    expect(not outputs.isnan().any(), m.noun_finder.NOT_FINITE)
    wrong = _wrong_words(outputs, words, num_words)
    if wrong is None:
        return
    said = "[" + ", ".join(f"{KINDS[kind]} {number}" for kind, number in words[:6]) + ", …" * (len(words) > 6) + "]"
    i, wanted = wrong
    kind, own = words[i]
    wq, wk, wv = matrices
    if outputs[i][wanted] < 0.5 and _wrong_words(_outputs(x, wk, wq, wv), words, num_words) is None:
        mistake = m.noun_finder.EXCHANGED
    elif _wrong_words(_outputs(x, 30 * wq, wk, wv), words, num_words) is None:
        mistake = m.noun_finder.TOO_SMALL
    else:
        mistake = _noun_mistake(outputs[i], kind, own, wanted, {number for kind, number in words if kind == 1})
    told = {"expected": f"the one-hot of word {wanted}", "got": outputs[i]}
    expect(False, mistake, f"the output of {KINDS[kind]} {own} in the sentence {said}", **told)


def _outputs(x: Tensor, *matrices: Tensor) -> Tensor:
    wq, wk, wv = (matrix.detach().double() for matrix in matrices)
    return ((x @ wq) @ (x @ wk).mT).softmax(-1) @ x @ wv


def _wrong_words(outputs: Tensor, words: Sequence[tuple[int, int]], num_words: int) -> tuple[int, int] | None:
    """The first word whose output is not what it should be: its place, and the word that it should find."""
    nouns = [number for kind, number in words if kind == 1]
    for i, (kind, own) in enumerate(words):
        if kind != 1 and len(nouns) != 1:
            continue
        wanted = own if kind == 1 else nouns[0]
        right = torch.zeros(num_words, dtype=torch.float64)
        right[wanted] = 1.0
        if not (outputs[i] - right).abs().max() <= 0.01:
            return i, wanted
    return None


def _noun_mistake(output: Tensor, kind: int, own: int, wanted: int, nouns: set[int]) -> Mistake:
    top = int(output.argmax())
    if abs(output.sum() - 1) > 0.02:
        return m.noun_finder.NOT_ONE_HOT
    if kind == 1:
        return m.noun_finder.NOUNS_ALIKE if output[list(nouns)].sum() > 0.98 else m.noun_finder.NOUN_LOST
    if top in (own, wanted) and output[own] > 0.25 and output[[own, wanted]].sum() > 0.98 and output[own] < 0.75:
        return m.noun_finder.TIED
    if top == own and output[own] > 0.5:
        return m.noun_finder.FINDS_ITSELF
    if top != wanted and output[top] > 0.5:
        return m.noun_finder.FINDS_NO_NOUN
    return m.noun_finder.SPREAD


@visible("each word of two sentences finds its noun", graded="other cases")
def noun_finder(function: Callable) -> None:
    """The sentence of the text, and one with two nouns."""
    matrices = call(function, 5)
    expect_matrices(matrices, 5)
    expect_nouns(matrices, [(0, 3), (1, 1), (2, 4)], 5)
    expect_nouns(matrices, [(1, 1), (2, 4), (1, 2)], 5)


# -- masks


@visible(
    "three sentences by hand, padded on either side; two pad ids",
    graded="other cases, inputs unchanged and devices",
)
def padding_mask(function: Callable) -> None:
    """Three sentences, the last padded on the left."""
    tokens = torch.tensor([[5, 0, 9, 1], [7, 1, 1, 1], [1, 3, 4, 8]])
    real = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [0, 1, 1, 1]]).bool()[:, None]
    mask = call(function, tokens, 1)
    expect_tensor(mask, name="the mask")
    expect(mask.dtype == torch.bool, m.padding_mask.NOT_BOOLEAN, "the dtype", expected=torch.bool, got=mask.dtype)
    wrong = {
        m.padding_mask.INVERTED: ~real,
        m.padding_mask.NO_DIMENSION: real[:, 0],
        m.padding_mask.LAST: real.mT,
        m.padding_mask.FIRST: real[:, 0][None],
        m.padding_mask.ROW_FOR_EACH: real.expand(3, 4, 4),
        m.padding_mask.QUERIES_TOO: real & real.mT,
        m.padding_mask.TOO_MANY_DIMENSIONS: real[:, None],
        m.padding_mask.ZERO: tokens[:, None] != 0,
        m.padding_mask.BELOW: tokens[:, None] > 1,
        m.padding_mask.FIRST_ITEM: real[:1].expand(3, 1, 4),
        m.padding_mask.BEHIND_A_PAD: real.long().cumprod(-1).bool(),
        m.padding_mask.COUNTED: torch.arange(4) < real.sum(-1, keepdim=True),
    }
    expect_close(mask, real, "the mask for pad_id 1", given(wrong))
    mask, right = call(function, torch.tensor([[0, 1]]), 0), torch.tensor([[[False, True]]])
    expect_close(mask, right, "the mask for pad_id 0", given({m.padding_mask.ONE: ~right}))


@visible("the mask of four positions by hand", graded="other cases")
def causal_mask(function: Callable) -> None:
    """Four positions."""
    past = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    mask = call(function, 4)
    expect_tensor(mask, name="the mask")
    expect(mask.dtype == torch.bool, m.causal_mask.NOT_BOOLEAN, "the dtype", expected=torch.bool, got=mask.dtype)
    wrong = {
        m.causal_mask.UPSIDE_DOWN: past.mT,
        m.causal_mask.NO_DIAGONAL: past & ~past.mT,
        m.causal_mask.INVERTED: ~past,
        m.causal_mask.ONE_TOO_FAR: torch.ones(4, 4).tril(1).bool(),
        m.causal_mask.EVERYTHING: torch.ones(4, 4).bool(),
        m.causal_mask.ONLY_ITSELF: torch.eye(4).bool(),
        m.causal_mask.TOO_MANY_DIMENSIONS: past[None],
        m.causal_mask.ONE_ROW: torch.ones(4).bool(),
    }
    expect_close(mask, past, "the mask of 4 positions", given(wrong))


# -- weights


@visible("two items by hand: softmax over the keys, scaled by √d", graded="other cases and dtypes")
def query_key_weights(function: Callable) -> None:
    """Two items, two queries, three keys, d = 4."""
    two = [[2.0, 0, 0, 0], [0, 2, 0, 0]], [[0, 0, 2, 0], [0, 0, 0, 4]]
    queries = math.log(3) * torch.tensor(two)
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]], [[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]]])
    with unchanged(queries=queries, keys=keys):
        weights = call(function, queries, keys)
    expect_tensor(weights, None, None, "the weight matrix")
    _expect_repeatable(lambda *wide: call(function, *wide[:2]))
    by_hand = torch.tensor([[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]], [[3 / 7, 3 / 7, 1 / 7], [1 / 11, 9 / 11, 1 / 11]]])
    dots = queries @ keys.mT

    wrong = {
        m.query_key_weights.NOT_SCALED: dots.softmax(-1),
        m.query_key_weights.DIVIDED_BY_D: (dots / 4).softmax(-1),
        m.query_key_weights.ROOT_OF_KEYS: (dots / 3**0.5).softmax(-1),
        m.query_key_weights.ROOT_OF_QUERIES: (dots / 2**0.5).softmax(-1),
        m.query_key_weights.MULTIPLIED: (dots * 2).softmax(-1),
        m.query_key_weights.COLUMNS: (dots / 2).softmax(-2),
        m.query_key_weights.OVER_BATCH: (dots / 2).softmax(0),
        m.query_key_weights.NO_SOFTMAX: dots / 2,
        m.query_key_weights.SCALED_LATER: dots.softmax(-1) / 2,
        m.query_key_weights.FIRST_KEYS: (queries @ keys[:1].mT / 2).softmax(-1),
        m.query_key_weights.FIRST_WEIGHTS: by_hand[:1].expand(2, 2, 3),
        m.query_key_weights.SWAPPED: (dots.mT / 2).softmax(-1),
        m.query_key_weights.RESHAPED: (queries @ keys.reshape(2, 4, 3) / 2).softmax(-1),
    }
    expect_close(weights, by_hand, "the weight matrix", given(wrong))
    expect_device(function, {"queries": queries, "keys": keys})


def _expect_repeatable(attend: Callable) -> None:
    """Attention over so many scores that two draws of dropout are never the same."""
    wide = torch.randn(4, 8, 16), torch.randn(4, 9, 16), torch.randn(4, 9, 16)
    expect(torch.equal(attend(*wide), attend(*wide)), m.query_key_weights.DROPOUT)


@visible(
    "a mask by hand, with a query that may attend to nothing, and its gradient",
    graded="other cases and dtypes",
)
def query_key_weights_masked(function: Callable) -> None:
    """One item, three queries and keys, d = 4; query 2 may attend to nothing."""
    queries = math.log(3) * torch.tensor([[[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]]]).requires_grad_()
    queries = queries.detach().requires_grad_()
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]])
    mask = torch.tensor([[False, True, True], [False, True, True], [False, False, False]])
    with unchanged(mask=mask):
        weights = call(function, queries, keys, mask)
    expect_tensor(weights, (1, 3, 3), None, "the weight matrix")
    scores = queries.detach() @ keys.mT / 2
    plain = scores.softmax(-1)
    allowed = torch.tensor([[[0.0, 0.5, 0.5], [0.0, 0.75, 0.25]]])
    wrong = {
        m.query_key_weights.MASK_UNUSED: plain,
        m.query_key_weights.MASK_INVERTED: scores.masked_fill(mask, -1e9).softmax(-1),
        m.query_key_weights.MASK_ADDED: (scores + mask.float()).softmax(-1),
        m.query_key_weights.FILL_NEAR_ZERO: scores.masked_fill(~mask, 0.0).softmax(-1),
        m.query_key_weights.AFTER_SOFTMAX: plain * mask,
        m.query_key_weights.COLUMNS: scores.masked_fill(~mask, -1e9).softmax(-2) * mask,
        m.query_key_weights.NOT_SCALED: (2 * scores).masked_fill(~mask, -1e9).softmax(-1),
        m.query_key_weights.DIVIDED_BY_D: (scores / 2).masked_fill(~mask, -1e9).softmax(-1),
    }
    wrong = {mistake: value[:, :2] for mistake, value in wrong.items()}
    few = not weights[:, :2, 0].any() and weights[:, :2, 1:].all() and (weights[:, :2].sum(-1) < 0.99).any()
    filled = torch.allclose(
        weights[:, :2].float(), (scores.masked_fill(~mask, 0.0).softmax(-1) * mask)[:, :2], atol=0.02
    )
    short = (m.query_key_weights.FILL_NEAR_ZERO if filled else m.query_key_weights.AFTER_SOFTMAX) if few else None
    expect_close(weights[:, :2], allowed, "the weights of queries 0 and 1", given(wrong), otherwise=short)
    fair, large = (
        call(function, queries.detach(), keys * torch.tensor([[size], [1], [1]]), mask)[:, :1] for size in (1e2, 1e4)
    )
    lowered = torch.allclose(fair.float(), allowed[:, :1], atol=1e-4)
    what = "the weights of query 0 when the blocked key is large"
    expect_close(
        large,
        allowed[:, :1],
        what,
        otherwise=m.query_key_weights.LOWERED if lowered else m.query_key_weights.RENORMALISED,
    )
    what, zeros = "the weights of a query that may attend to nothing", torch.zeros(3)
    expect(not weights.isnan().any(), m.query_key_weights.EMPTY_ROW_NAN, what, expected=zeros, got=weights[0, 2])
    expect(not weights[:, 2].any(), m.query_key_weights.EMPTY_ROW_EQUAL, what, expected=zeros, got=weights[0, 2])
    expect(weights.requires_grad, Common.CUT_OFF)
    (gradient,) = torch.autograd.grad(weights[..., 1].sum(), queries)
    expect(not gradient.isnan().any(), m.query_key_weights.GRADIENT_NAN)
    expect_device(function, {"queries": queries.detach(), "keys": keys, "mask": mask})


# -- attention


def _pair(result: Any, name: str) -> tuple[Tensor, Tensor]:
    expect(result is not None, Common.NO_RETURN, name, expected="(output, weights)", got="None")
    two = isinstance(result, tuple | list) and len(result) == 2
    expect(two, m.scaled_dot_product_attention.NOT_TWO, name, got=f"a {type(result).__name__}")
    return result


@visible(
    "output and weights by hand, without a mask and with one",
    graded="other cases, large numbers, gradients, dtypes and devices",
)
def scaled_dot_product_attention(function: Callable) -> None:
    """Two queries, three keys, values of another size than keys."""
    queries = math.log(3) * torch.tensor([[[2.0, 0, 0, 0], [0, 2, 0, 0]]])
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]])
    values = torch.tensor([[[10.0, 0], [0, 10], [5, 5]]])
    weights_by_hand = torch.tensor([[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]]])
    with unchanged(queries=queries, keys=keys, values=values):
        output, weights = _pair(call(function, queries, keys, values), "scaled_dot_product_attention")
    _expect_repeatable(lambda *wide: call(function, *wide)[0])
    known = m.scaled_dot_product_attention
    dots, w = queries @ keys.mT, weights_by_hand
    wrong = {
        known.EXCHANGED: w,
        known.KEYS_AVERAGED: w @ keys,
        known.OVER_QUERIES: (dots / 2).softmax(-2) @ values,
        known.SCALED_AGAIN: torch.tensor([[[3.5, 1.5], [1.5, 3.5]]]),
        m.query_key_weights.NOT_SCALED: dots.softmax(-1) @ values,
    }
    expect_close(output, torch.tensor([[[7.0, 3.0], [3.0, 7.0]]]), "the output", given(wrong))
    wrong = {known.SCORES_RETURNED: dots / 2}
    expect_close(weights, w, "the returned weight matrix", given(wrong))
    # All keys are zero, and so are the scores: the allowed keys share the weight.
    mask = torch.tensor([[True, False, True], [False, False, False]])
    output, weights = _pair(call(function, queries, 0 * keys, values, mask), "scaled_dot_product_attention")
    shared = torch.tensor([[[0.5, 0, 0.5], [0, 0, 0]]])
    wrong = {
        m.query_key_weights.MASK_UNUSED: torch.full((1, 2, 3), 1 / 3),
        m.query_key_weights.AFTER_SOFTMAX: mask[None] / 3,
    }
    expect_close(weights, shared, "with a mask, the returned weight matrix", given(wrong))
    wrong = {known.OUTPUT_UNMASKED: torch.full((1, 2, 2), 5.0)}
    expect_close(output, torch.tensor([[[7.5, 2.5], [0, 0]]]), "with a mask, the output", given(wrong))


# -- diagnose

FAULTS = ("none", "fill", "root", "axis", "view", "rows")
ROOTS = ("n", "m", "d_v", "B", "h d")


def make_attention(pick, number, heads, alike):
    """An attention function that does each of its tasks in the way that `pick` says by number.

    It is sent to where student code runs: no name in it tells what is wrong with it, nor does anything that it holds.

    Args:
        pick: a number for each task: `WAYS` says what each number is.
        number: what scores are filled with where that is wrong, near 0.
        heads: by how much d is too large where it counts all heads' features.
        alike: see `autograder.checks.alike`.
    """

    def shares(e):
        return e / e.sum(-1, keepdim=True).clamp(min=torch.finfo(e.dtype).tiny)

    ways = [
        [
            lambda keys: keys.mT,
            lambda keys: keys.transpose(-2, -1),
            lambda keys: keys.reshape(*keys.shape[:-2], keys.shape[-1], keys.shape[-2]),
        ],
        [
            lambda queries, keys, values, heads: queries.shape[-1],
            lambda queries, keys, values, heads: keys.shape[-1],
            lambda queries, keys, values, heads: queries.shape[-2],
            lambda queries, keys, values, heads: keys.shape[-2],
            lambda queries, keys, values, heads: values.shape[-1],
            lambda queries, keys, values, heads: queries.shape[0],
            lambda queries, keys, values, heads: queries.shape[-1] * heads,
        ],
        [
            lambda scores, low, allowed, shares, number: low.softmax(-1).masked_fill(~allowed, 0.0),
            lambda scores, low, allowed, shares, number: shares((low - low.amax(-1, True)).exp() * allowed),
            lambda scores, low, allowed, shares, number: scores.masked_fill(~allowed, number).softmax(-1),
            lambda scores, low, allowed, shares, number: low.softmax(-2).masked_fill(~allowed, 0.0),
            lambda scores, low, allowed, shares, number: shares((low - low.amax((-2, -1), True)).exp() * allowed),
        ],
    ]
    turn, size, weigh = (way[i] for way, i in zip(ways, pick, strict=True))

    def attention(queries, keys, values, mask=None):
        scores = queries @ turn(keys) / size(queries, keys, values, heads) ** 0.5
        allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
        low = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        weights = weigh(scores, low, allowed, shares, number)
        return weights @ values, weights

    return alike(attention)


RIGHT_WAYS = (2, 2, 2)  # of each task in `make_attention`, those that come first
# For each fault its task, and the way in which that is done; the root has a way for each of `ROOTS`.
WAYS = {"view": (0, 2), "root": (1, 2), "fill": (2, 2), "axis": (2, 3), "rows": (2, 4)}


def verdict_on(diagnose: Callable, fault: str, number: float, root: str = "n", heads: int = 2) -> str:
    """What the reader's `diagnose` says of one attention function.

    Args:
        diagnose: the reader's.
        fault: one of `FAULTS`; what is right in it is done in a way that is drawn.
        number: what a fault of "fill" fills with, near 0.
        root: one of `ROOTS`, the size whose root a fault of "root" takes.
        heads: the h of "h d".
    """
    pick = [int(randint(0, count, ())) for count in RIGHT_WAYS]
    if fault != "none":
        task, way = WAYS[fault]
        pick[task] = way + (ROOTS.index(root) if fault == "root" else 0)
    told = call(diagnose, place(make_attention, beside=diagnose)(pick, number, heads, place(alike, beside=diagnose)))
    expect(told is not None, Common.NO_RETURN, "diagnose", expected=f"one of {', '.join(FAULTS)}", got="None")
    known = isinstance(told, str) and told in FAULTS
    expect(known, m.diagnose.NO_NAME, "diagnose", expected=f"one of {', '.join(FAULTS)}", got=repr(told)[:40])
    return told


MISSES = {
    "fill": m.diagnose.MISSES_FILL,
    "root": m.diagnose.MISSES_ROOT,
    "axis": m.diagnose.MISSES_AXIS,
    "view": m.diagnose.MISSES_VIEW,
    "rows": m.diagnose.MISSES_ROWS,
}


def mistake_of(fault: str, told: str) -> Mistake:
    """The mistake in a wrong verdict."""
    if fault == "none":
        return m.diagnose.ACCUSES
    return MISSES[fault] if told == "none" else m.diagnose.CONFUSES


@visible("one right attention, and one with its softmax over the wrong axis", graded="other cases")
def diagnose(function: Callable) -> None:
    """The two boxes of the text."""
    for fault in ("none", "axis"):
        told = verdict_on(function, fault, 0.0)
        expect(told == fault, mistake_of(fault, told), "diagnose", expected=fault, got=told)


# -- tiles


@visible(
    "the two tiles of the text, other tile sizes, and the error for tile 0",
    graded="other cases, gradients and dtypes",
)
def attention_in_tiles(function: Callable) -> None:
    """One query, three keys with scores 0, ln 2 and ln 5, and values 8, 4 and 8; d = 4."""
    queries = torch.tensor([[[2.0, 0, 0, 0]]])
    keys = torch.zeros(1, 3, 4)
    keys[0, :, 0] = torch.tensor([1.0, 2.0, 5.0]).log()
    values = torch.tensor([[[8.0], [4.0], [8.0]]])
    with unchanged(queries=queries, keys=keys, values=values):
        result = call(function, queries, keys, values, 2)
    expect_tensor(result, name="the output")
    numbers = {
        m.attention_in_tiles.NOTHING_RESCALED: 16 / 2.5,
        m.attention_in_tiles.SUM_NOT_RESCALED: 11.2 / 2.5,
        m.attention_in_tiles.OUTPUT_NOT_RESCALED: 16 / 1.6,
        m.attention_in_tiles.RESCALED_UP: 28 / 4.75,
        m.attention_in_tiles.AVERAGED: (16 / 3 + 8) / 2,
        m.attention_in_tiles.ADDED: 16 / 3 + 8,
        m.attention_in_tiles.ONLY_LAST: 8.0,
        m.attention_in_tiles.LAST_DROPPED: 16 / 3,
        m.attention_in_tiles.NOT_DIVIDED: 11.2,
    }
    wrong = {mistake: torch.tensor([[[value]]]) for mistake, value in numbers.items()}

    def divided_by_root(size: int) -> Tensor:
        return (queries @ keys.mT / size**0.5).softmax(-1) @ values

    for mistake, size in {
        m.query_key_weights.NOT_SCALED: 1,
        m.query_key_weights.DIVIDED_BY_D: 16,
        m.query_key_weights.ROOT_OF_KEYS: 3,
        m.attention_in_tiles.ROOT_OF_TILE: 2,
    }.items():
        wrong[mistake] = divided_by_root(size)
    right = torch.tensor([[[7.0]]])
    if result.shape == right.shape and torch.allclose(result.double(), divided_by_root(1).double(), atol=1e-4):
        # No root at all, or that of a size that is 1 here: copies tell.
        copies = call(function, queries.repeat(5, 5, 1), keys.repeat(5, 1, 1), values.repeat(5, 1, 7), 2)
        expect_tensor(copies, (5, 5, 7), None, "the output for copies of the example")
        for mistake, size in {m.query_key_weights.ROOT_OF_QUERIES: 5, m.attention_in_tiles.ROOT_OF_VALUES: 7}.items():
            alike = torch.allclose(copies.double(), divided_by_root(size).double().expand(5, 5, 7), atol=1e-4)
            expect(not alike, mistake, "the output in tiles of 2", expected=7, got=f"{result.item():g}")
    expect_close(result, right, "the output in tiles of 2", given(wrong))
    for tile in (1, 3, 7):
        result = call(function, queries, keys, values, tile)
        expect_close(result, right, f"the output with tile {tile}", otherwise=m.attention_in_tiles.ROOT_OF_TILE)
    expect_raises(ValueError, lambda: function(queries, keys, values, 0), "tile 0")
    expect_device(function, {"queries": queries, "keys": keys, "values": values, "tile": 2})


@visible(
    "forty keys in tiles of 4: no tensor had more than four columns of scores, and each key was read once",
    graded="other cases, large numbers and library functions",
)
def attention_in_tiles_memory(function: Callable) -> None:
    """Very low scores in tiles, high ones followed by low ones, and what was held meanwhile."""
    queries = torch.full((1, 3, 1), 100.0).double()
    keys = -100.0 - torch.arange(40.0).double().remainder(2).view(1, 40, 1)  # scores of -10 000 and -10 100
    values = torch.arange(40.0).double().view(1, 40, 1)
    result = call(function, queries, keys, values, 4)
    expect_tensor(result, (1, 3, 1), None, "the output")
    what, right = "the output for scores near -10 000", torch.full((1, 3, 1), 19.0).double()
    spoilt = result.isnan().any() and not call(function, 0 * queries, keys, values, 4).isnan().any()  # by low scores
    expect_close(result, right, what, otherwise=m.attention_in_tiles.MAXIMUM_AT_0 if spoilt else None)
    falling = torch.cat([torch.full((1, 4, 1), 10.0), torch.zeros(1, 36, 1)], 1).double()  # scores of 1000, then of 0
    what, right = "the output for scores of 1000, then of 0", torch.full((1, 3, 1), 1.5).double()
    result = call(function, queries, falling, values, 4)
    expect_tensor(result, (1, 3, 1), None, "the output")
    expect(not result.isnan().any(), m.attention_in_tiles.OWN_MAXIMUM, what, expected=1.5, got="NaN")
    expect_close(result, right, what, given({m.attention_in_tiles.AVERAGED: right + 18.0}))
    held = place(columns_held, function)(function, queries, keys, values, 4)
    if held[0] == 10:  # forty keys in four pieces, or what ten tiles came to: asked for forty, there is one key a piece
        widest, *_ = place(columns_held, function)(function, queries, keys, values, 40)
        told = {"asked": "tile 4 and 40 keys", "expected": "of at most 4 columns", "got": held[0]}
        expect(widest >= 10, m.attention_in_tiles.TILES_COUNTED, "the widest tensor of scores", **told)
    expect_few_columns(held, 4, 40)


def columns_held(
    function: Callable, queries: Tensor, keys: Tensor, values: Tensor, tile: int, record: bool = False
) -> list[int]:
    """What an attention function holds of its table of scores while it works.

    It is written to be sent to where student code runs, so it uses torch and its arguments alone. To be told apart,
    the number of queries, of an item and in all, that of keys, and the sizes of their vectors should all differ, and
    the vectors be no longer than a tile.

    Args:
        function: called with the other arguments.
        queries: `(..., n, d)`, with no more than `tile` items or heads.
        keys: `(..., m, d)`.
        values: `(..., m, d_v)`.
        tile: how many columns it should hold.
        record: whether gradients of the queries are recorded, whose graph holds more.

    Returns:
        Three numbers of columns: of the widest single tensor with a row for each query, or with a column for each key;
        of all tensors of queries' rows that were alive at the same time; and how many keys were read, each as often as
        something was computed from it. What is made of keys and as large, such as scaled ones, may be read once, too:
        what is read again counts as keys.
    """
    import weakref

    rows, n, length = queries.shape[:-1].numel(), queries.shape[-2], keys.shape[-2]
    vectors = {queries.shape[-1], values.shape[-1]}
    one_key, with_ones = keys[..., :1, :].numel(), [length, values.shape[-1] + 1]  # values that count as they add up
    widest, most, alive = 0, 0, []
    queries = queries.detach().clone().requires_grad_(record)

    def where(x: Tensor) -> int:
        return x.untyped_storage().data_ptr()

    given = [where(x) for x in (keys, values, queries)]  # what is given is not held
    read, again = 0.0, 0.0  # numbers of the keys, and of what is made of them, beyond once
    made_of_keys: dict[int, list[float]] = {}  # by storage: its size, the numbers of keys in it, how many were read

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, called, types, args=(), kwargs=None):
            nonlocal widest, most, read, again, alive
            taken = [t for a in args for t in (a if isinstance(a, (tuple, list)) else (a,)) if torch.is_tensor(t)]
            places = [where(t) for t in taken]
            result = called(*args, **(kwargs or {}))
            made = [r for r in (result if isinstance(result, (tuple, list)) else (result,)) if torch.is_tensor(r)]
            new = [r for r in made if r.is_floating_point() and where(r) not in given]
            filled = getattr(called, "__name__", "").startswith(("new_", "zeros", "ones", "full", "empty"))
            computed = [r for r in new if where(r) not in places or any(r is t for t in taken)]  # and no view
            if computed and not filled:
                size = of_keys = 0.0
                for part, place in zip(taken, places, strict=True):
                    if place == given[0]:
                        read, size, of_keys = read + part.numel(), size + part.numel(), of_keys + part.numel()
                    elif place in made_of_keys:
                        whole, worth, before = made_of_keys[place]
                        made_of_keys[place][2] = before + part.numel()
                        again += max(0.0, min(part.numel(), before + part.numel() - whole)) * worth / whole
                        size, of_keys = size + part.numel(), of_keys + part.numel() * worth / whole
                for one in computed:
                    made_of_keys.pop(where(one), None)  # what was there is gone, or has been computed anew
                    if of_keys and one.numel() >= size and not {n, rows} & set(one.shape):
                        made_of_keys[where(one)] = [one.numel(), of_keys, 0.0]
            for one in new:
                sizes = list(one.shape)
                if n in sizes or rows in sizes:
                    widest = max([widest, *(s for s in sizes if s not in (n, rows, queries.shape[0]))])
                    alive.append((weakref.ref(one), where(one), one.numel() // rows))
                elif where(one) in made_of_keys or filled or sizes[-2:] == with_ones:
                    pass  # keys, numbers to begin with, values
                elif length in sizes and not vectors & set(sizes):
                    widest = max(widest, length)  # one query's row of scores over all keys
            alive = [entry for entry in alive if entry[0]() is not None]
            most = max(most, sum({storage: columns for _, storage, columns in alive}.values()))
            return result

    with torch.set_grad_enabled(record), Watch():
        function(queries, keys, values, tile)
    return [widest, most, round((read + again) / one_key)]


def expect_few_columns(held: Sequence[int], tile: int, keys: int) -> None:
    """Fail if what `columns_held` saw is more than tiles need.

    One column more than a tile is allowed for a single tensor, for a running maximum that is joined to it; and six
    tiles' worth and the output so far at the same time: scores, their exponentials, and what is between them.
    """
    widest, most, read = held
    asked = f"tile {tile} and {keys} keys"
    told = {"asked": asked, "expected": f"of at most {tile} columns", "got": widest}
    one_a_tile = widest == -(-keys // tile)  # no scores, but what each tile came to, put side by side
    mistake = m.attention_in_tiles.KEPT if one_a_tile else m.attention_in_tiles.TABLE
    expect(widest <= tile + 1, mistake, "the widest tensor of scores", **told)
    told = {"asked": asked, "expected": f"of at most {6 * tile + 20} columns", "got": most}
    expect(most <= 6 * tile + 20, m.attention_in_tiles.KEPT, "all that is held at the same time", **told)
    told = {"asked": asked, "expected": keys, "got": read}
    expect(read <= keys, m.attention_in_tiles.READ_TWICE, "the number of keys that were read", **told)
