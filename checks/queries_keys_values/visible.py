"""The visible checks of chapter 03: the worked examples of the text, and the commonest mistakes by name."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.checks import call, expect_close, expect_raises, expect_tensor, place, unchanged
from autograder.course.card import visible

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
    assert matrices is not None, "noun_finder returned None: is there a `return`?"
    assert isinstance(matrices, tuple | list) and len(matrices) == 3, "return three matrices: Wq, Wk, Wv"
    for name, matrix in zip(("Wq", "Wk", "Wv"), matrices, strict=True):
        expect_tensor(matrix, None, torch.float32, name)
        assert matrix.dim() == 2 and len(matrix) == 3 + num_words, (
            f"{name} should have 3 + num_words = {3 + num_words} rows, one for each feature of a word, "
            f"got the shape {tuple(matrix.shape)}"
        )
    wq, wk, wv = matrices
    assert wq.shape == wk.shape, (
        f"queries and keys are compared, so Wq and Wk have equally many columns: got {wq.shape[1]} and {wk.shape[1]}"
    )
    assert wv.shape[1] == num_words, (
        f"a value is a one-hot of num_words = {num_words} numbers, so Wv has {num_words} columns, got {wv.shape[1]}"
    )


def expect_nouns(matrices: Sequence[Tensor], words: Sequence[tuple[int, int]], num_words: int) -> None:
    """Fail unless each noun of a sentence hands over its own one-hot and, if it is the only one, all others its.

    Args:
        matrices: Wq, Wk, Wv.
        words: as for `sentence`.
        num_words: the size of the vocabulary.
    """
    x = sentence(words, num_words).double()
    wq, wk, wv = (m.detach().double() for m in matrices)
    outputs = ((x @ wq) @ (x @ wk).mT).softmax(-1) @ x @ wv
    assert not outputs.isnan().any(), "the output is NaN: keep the numbers finite, and not too large for a softmax"
    nouns = [number for kind, number in words if kind == 1]
    said = "[" + ", ".join(f"{KINDS[kind]} {number}" for kind, number in words[:6]) + ", …" * (len(words) > 6) + "]"
    for (kind, own), output in zip(words, outputs, strict=True):
        if kind != 1 and len(nouns) != 1:
            continue
        wanted = own if kind == 1 else nouns[0]
        right = torch.zeros(num_words, dtype=torch.float64)
        right[wanted] = 1.0
        if (output - right).abs().max() > 0.01:
            fact = f"in the sentence {said} the output of {KINDS[kind]} {own} should be the one-hot of word {wanted}"
            raise AssertionError(f"{fact}. Likely cause: {_noun_mistake(output, kind, own, wanted, len(nouns))}")


def _noun_mistake(output: Tensor, kind: int, own: int, wanted: int, nouns: int) -> str:
    top = int(output.argmax())
    if abs(output.sum() - 1) > 0.02:
        return "the values are not one-hots: Wv should pass on the last num_words features as they are, and no other"
    if top == wanted and output[wanted] < 0.99 and output[wanted] > 1.5 / max(nouns, 2):
        return (
            f"the right word leads with {output[wanted]:.3f}, which is not within 0.01 of 1. Only differences of "
            "scores count: make this one larger"
        )
    if kind == 1 and nouns > 1:
        return "every noun finds all nouns alike: what tells one noun from another is its one-hot part"
    if kind != 1 and top == own and output[own] > 0.5:
        return f"the {KINDS[kind]} finds itself: asking for `is_noun` has to win over fitting its own one-hot"
    if kind != 1 and top != wanted and output[top] > 0.5:
        return f"the {KINDS[kind]} finds word {top}, which is no noun: what does its row of Wq ask for?"
    return f"the {KINDS[kind]}'s weights are spread over the sentence: nothing makes its noun stand out"


@visible("each word of two sentences finds its noun")
def noun_finder(function: Callable) -> None:
    """The sentence of the text, and one with two nouns."""
    matrices = call(function, 5)
    expect_matrices(matrices, 5)
    expect_nouns(matrices, [(0, 3), (1, 1), (2, 4)], 5)
    expect_nouns(matrices, [(1, 1), (2, 4), (1, 2)], 5)


# -- masks


@visible("three sentences by hand, padded on either side; two pad ids")
def padding_mask(function: Callable) -> None:
    """Three sentences, the last padded on the left."""
    tokens = torch.tensor([[5, 0, 9, 1], [7, 1, 1, 1], [1, 3, 4, 8]])
    real = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [0, 1, 1, 1]]).bool()[:, None]
    mask = call(function, tokens, 1)
    assert mask is not None, "padding_mask returned None: is there a `return`?"
    expect_tensor(mask, None, None, "the mask")
    assert mask.dtype == torch.bool, f"a mask is boolean: comparing gives one; got {mask.dtype}"
    mistakes = {
        "the mask is inverted: True means `may be attended to`": lambda: ~real,
        "the shape is (B, m): a dimension of size 1 is missing for the queries": lambda: real[:, 0],
        "the dimension of size 1 stands last: it belongs in the middle, (B, 1, m)": lambda: real.mT,
        "the dimension of size 1 stands first: it belongs in the middle, (B, 1, m)": lambda: real[:, 0][None],
        "each sentence has m rows: one is enough, broadcasting does the rest": lambda: real.expand(3, 4, 4),
        "token 0 is taken for padding, and here it is a real one: padding is `pad_id`": lambda: tokens[:, None] != 0,
        "numbers below `pad_id` are blocked too: only `pad_id` itself is padding": lambda: tokens[:, None] > 1,
        "item 0's mask is used for all": lambda: real[:1].expand(3, 1, 4),
        "what follows a pad is blocked: padding may stand on the left": lambda: real.long().cumprod(-1).bool(),
        "real tokens are counted and taken from the left: padding may stand on the left": lambda: (
            torch.arange(4) < real.sum(-1, keepdim=True)
        ),
    }
    expect_close(mask, real, "the mask for pad_id 1", mistakes)
    mask = call(function, torch.tensor([[0, 1]]), 0)
    expect_close(
        mask,
        torch.tensor([[[False, True]]]),
        "the mask for pad_id 0",
        {"padding is taken to be 1, whatever `pad_id` says": lambda: torch.tensor([[[True, False]]])},
    )


@visible("the mask of four positions by hand")
def causal_mask(function: Callable) -> None:
    """Four positions."""
    past = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    mask = call(function, 4)
    assert mask is not None, "causal_mask returned None: is there a `return`?"
    expect_tensor(mask, None, None, "the mask")
    assert mask.dtype == torch.bool, f"a mask is boolean, got {mask.dtype}: pass `dtype=torch.bool`, or compare"
    mistakes = {
        "the mask is upside down: row i is the query, column j the key, and j <= i is allowed": lambda: past.mT,
        "the diagonal is blocked: each position may look at itself": lambda: past & ~past.mT,
        "the mask is inverted: True means `may be attended to`": lambda: ~past,
        "position 0 may look at position 1, its future": lambda: torch.ones(4, 4).tril(1).bool(),
        "everything is allowed, the future too": lambda: torch.ones(4, 4).bool(),
        "each position sees only itself: all that came before is allowed": lambda: torch.eye(4).bool(),
        "there is a dimension too many: the shape is (n, n)": lambda: past[None],
        "there is one row only: the shape is (n, n)": lambda: torch.ones(4).bool(),
    }
    expect_close(mask, past, "the mask of 4 positions", mistakes)


# -- weights


@visible("two items by hand: softmax over the keys, scaled by √d")
def query_key_weights(function: Callable) -> None:
    """Two items, two queries, three keys, d = 4."""
    two = [[2.0, 0, 0, 0], [0, 2, 0, 0]], [[0, 0, 2, 0], [0, 0, 0, 4]]
    queries = math.log(3) * torch.tensor(two)
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]], [[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]]])
    with unchanged(queries=queries, keys=keys):
        weights = call(function, queries, keys)
    expect_tensor(weights, None, None, "the weight matrix")
    _expect_repeatable(weights, call(function, queries, keys))
    by_hand = torch.tensor([[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]], [[3 / 7, 3 / 7, 1 / 7], [1 / 11, 9 / 11, 1 / 11]]])
    dots = queries @ keys.mT

    def divided(by: float) -> Callable[[], Tensor]:
        return lambda: (dots / by).softmax(-1)

    mistakes = {
        "the dot products are not divided: √d is missing": divided(1.0),
        "the scores are divided by d, not by its root": divided(4.0),
        "the scores are divided by the root of m, the number of keys: d is the last size of the queries": divided(
            3**0.5
        ),
        "the scores are divided by the root of n or B: d is the last size of the queries": divided(2**0.5),
        "the scores are multiplied by √d": divided(0.5),
        "each column sums to 1, but each row should: the softmax runs over the queries": lambda: (dots / 2).softmax(-2),
        "the softmax runs over the batch, where F.softmax goes without a `dim`": lambda: (dots / 2).softmax(0),
        "the softmax is missing: these are the scores": lambda: dots / 2,
        "the scale comes after the softmax": lambda: dots.softmax(-1) / 2,
        "item 0's keys are used for all": lambda: (queries @ keys[:1].mT / 2).softmax(-1),
        "item 0's weights are used for all": lambda: by_hand[:1].expand(2, 2, 3),
        "queries and keys are swapped: a row belongs to a query": lambda: (dots.mT / 2).softmax(-1),
    }
    expect_close(weights, by_hand, "the weight matrix", mistakes)


def _expect_repeatable(first: Tensor, second: Tensor) -> None:
    assert torch.equal(first, second), "two calls with the same inputs differ: is there dropout inside?"


@visible("a mask by hand, with a query that may attend to nothing, and its gradient")
def query_key_weights_masked(function: Callable) -> None:
    """One item, three queries and keys, d = 4; query 2 may attend to nothing."""
    queries = math.log(3) * torch.tensor([[[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]]]).requires_grad_()
    queries = queries.detach().requires_grad_()
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]])
    mask = torch.tensor([[False, True, True], [False, True, True], [False, False, False]])
    weights = call(function, queries, keys, mask)
    expect_tensor(weights, (1, 3, 3), None, "the weight matrix")
    scores = queries.detach() @ keys.mT / 2
    plain = scores.softmax(-1)
    allowed = torch.tensor([[[0.0, 0.5, 0.5], [0.0, 0.75, 0.25]]])
    mistakes = {
        "the mask has no effect": lambda: plain,
        "the mask is used the wrong way round: True means `may be attended to`, and masked_fill fills where it finds "
        "True": lambda: scores.masked_fill(mask, -1e9).softmax(-1),
        "the boolean mask is added to the scores: True counts as 1 there, so nothing is blocked": lambda: (
            scores + mask.float()
        ).softmax(-1),
        "blocked scores are set to a number near 0, and exp(0) = 1": lambda: scores.masked_fill(~mask, 0.0).softmax(-1),
        "the weights are set to 0 after the softmax, so that rows no longer sum to 1": lambda: plain * mask,
    }
    mistakes = {cause: lambda f=f: f()[:, :2] for cause, f in mistakes.items()}
    expect_close(weights[:, :2], allowed, "the weights of queries 0 and 1", mistakes)
    assert not weights.isnan().any(), (
        "a row that may attend to nothing is NaN. Likely cause: all its scores are -inf, and softmax divides 0 by 0"
    )
    assert not weights[:, 2].any(), (
        f"a row that may attend to nothing should be all zero, got {weights[0, 2].tolist()}. Likely cause: when every "
        "score is filled alike, with -1e10 for instance, softmax shares the weight among them"
    )
    assert weights.requires_grad, "the result is cut off from the graph (`.detach()`, `.data`?)"
    (gradient,) = torch.autograd.grad(weights[..., 1].sum(), queries)
    assert not gradient.isnan().any(), (
        "the weights are right, but the gradient is NaN where a row may attend to nothing. Likely cause: a NaN was "
        "made on the way and swept up afterwards"
    )


# -- attention


def _pair(result: Any, name: str) -> tuple[Tensor, Tensor]:
    assert result is not None, f"{name} returned None: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == 2, "return two things: the output and the weights"
    return result


@visible("output and weights by hand, without a mask and with one")
def scaled_dot_product_attention(function: Callable) -> None:
    """Two queries, three keys, values of another size than keys."""
    queries = math.log(3) * torch.tensor([[[2.0, 0, 0, 0], [0, 2, 0, 0]]])
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]])
    values = torch.tensor([[[10.0, 0], [0, 10], [5, 5]]])
    weights_by_hand = torch.tensor([[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]]])
    with unchanged(queries=queries, keys=keys, values=values):
        output, weights = _pair(call(function, queries, keys, values), "scaled_dot_product_attention")
    _expect_repeatable(output, call(function, queries, keys, values)[0])
    output_mistakes = {
        "the two are swapped: the output comes first": lambda: weights_by_hand,
        "the keys are averaged, not the values": lambda: weights_by_hand @ keys,
        "the softmax runs over the queries": lambda: (queries @ keys.mT / 2).softmax(-2) @ values,
        "the output is divided by √d once more": lambda: torch.tensor([[[3.5, 1.5], [1.5, 3.5]]]),
        "the dot products are not divided by √d": lambda: (queries @ keys.mT).softmax(-1) @ values,
    }
    expect_close(output, torch.tensor([[[7.0, 3.0], [3.0, 7.0]]]), "the output", output_mistakes)
    weight_mistakes = {
        "these are the scores": lambda: queries @ keys.mT / 2,
        "the dot products are not divided by √d": lambda: (queries @ keys.mT).softmax(-1),
    }
    expect_close(weights, weights_by_hand, "the returned weight matrix", weight_mistakes)
    # All keys are zero, and so are the scores: the allowed keys share the weight.
    mask = torch.tensor([[True, False, True], [False, False, False]])
    output, weights = _pair(call(function, queries, 0 * keys, values, mask), "scaled_dot_product_attention")
    forgotten = {
        "the mask has no effect: is it handed on?": lambda: torch.full((1, 2, 3), 1 / 3),
        "the weights are set to 0 after the softmax, so that rows no longer sum to 1": lambda: mask[None] / 3,
    }
    shared = torch.tensor([[[0.5, 0, 0.5], [0, 0, 0]]])
    expect_close(weights, shared, "with a mask, the returned weight matrix", forgotten)
    forgotten = {"the mask has no effect on the output": lambda: torch.full((1, 2, 2), 5.0)}
    expect_close(output, torch.tensor([[[7.5, 2.5], [0, 0]]]), "with a mask, the output", forgotten)


@visible("an example by hand in which each of the three faults shows")
def fix_published_attention(function: Callable) -> None:
    """Two queries, three keys, d = 4: n, m and d all differ."""
    queries = math.log(3) * torch.tensor([[[2.0, 0, 0, 0], [0, 2, 0, 0]]])
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]])
    values = torch.tensor([[[8.0, 0], [0, 8], [4, 4]]])
    mask = torch.tensor([[True, True, False], [False, True, True]])
    output, weights = _pair(call(function, queries, keys, values, mask), "fix_published_attention")
    expect_tensor(weights, (1, 2, 3), None, "the returned weight matrix")
    left = []
    if torch.allclose(weights.sum(-2), torch.ones(1, 3)):
        left.append("each column sums to 1, but each row should")
    if weights[0, 0, 2] > 0:
        left.append(f"a blocked key still gets the weight {weights[0, 0, 2]:.3f}")
    faults = " and ".join(left)
    assert not left, f"something is still wrong: {faults}. Ask of each line what it would do at other sizes or scores"
    by_hand = torch.tensor([[[0.75, 0.25, 0], [0, 0.75, 0.25]]])
    root = 3**2**0.5
    mistakes = {
        "the scores are still divided by the root of the length": lambda: (
            torch.tensor([[[root, 1, 0], [0, root, 1]]]) / (root + 1)
        ),
        "the weights of blocked keys are set to 0 after the softmax": lambda: torch.tensor(
            [[[0.6, 0.2, 0], [0, 0.6, 0.2]]]
        ),
        "the scores are no longer scaled": lambda: torch.tensor([[[0.9, 0.1, 0], [0, 0.9, 0.1]]]),
        "the scores are divided by d, not by its root": lambda: (
            torch.tensor([[[3**0.5, 1, 0], [0, 3**0.5, 1]]]) / (3**0.5 + 1)
        ),
        "the scores are divided by the root of m, the number of keys": lambda: (
            torch.tensor([[[3 ** (4 / 3) ** 0.5, 1, 0], [0, 3 ** (4 / 3) ** 0.5, 1]]]) / (3 ** (4 / 3) ** 0.5 + 1)
        ),
    }
    expect_close(weights, by_hand, "the returned weight matrix", mistakes)
    expect_close(output, torch.tensor([[[6.0, 2], [1, 7]]]), "the output")


@visible("the two tiles of the text, other tile sizes, and the error for tile 0")
def attention_in_tiles(function: Callable) -> None:
    """One query, three keys with scores 0, ln 2 and ln 5, and values 8, 4 and 8."""
    queries = torch.tensor([[[1.0]]])
    keys = torch.tensor([[[1.0], [2.0], [5.0]]]).log()
    values = torch.tensor([[[8.0], [4.0], [8.0]]])
    with unchanged(queries=queries, keys=keys, values=values):
        result = call(function, queries, keys, values, 2)
    expect_tensor(result, None, None, "the output")

    def number(value: float) -> Callable[[], Tensor]:
        return lambda: torch.tensor([[[value]]])

    mistakes = {
        "neither the sum nor the output so far is rescaled when a later tile raises the maximum": number(16 / 2.5),
        "the sum so far is not rescaled when a later tile raises the maximum": number(11.2 / 2.5),
        "the output so far is not rescaled when a later tile raises the maximum": number(16 / 1.6),
        "each tile has its own softmax, and the results are averaged: a tile with high scores must count for more": (
            number((16 / 3 + 8) / 2)
        ),
        "each tile has its own softmax, and the results are added": number(16 / 3 + 8),
        "only the last tile counts": number(8.0),
        "the last tile is dropped when it is not full": number(16 / 3),
        "the division by the sum is missing": number(11.2),
        "the scores are divided by the root of the number of keys": lambda: (
            (queries @ keys.mT / 3**0.5).softmax(-1) @ values
        ),
    }
    expect_close(result, torch.tensor([[[7.0]]]), "the output in tiles of 2", mistakes)
    for tile in (1, 3, 7):
        result = call(function, queries, keys, values, tile)
        expect_close(result, torch.tensor([[[7.0]]]), f"the output with tile {tile}", mistakes)
    expect_raises(ValueError, lambda: function(queries, keys, values, 0), "tile 0")


@visible("forty keys in tiles of 4: no tensor had more than four columns of scores")
def attention_in_tiles_memory(function: Callable) -> None:
    """Very low scores in tiles, and what was held meanwhile."""
    queries = torch.full((1, 3, 1), 100.0).double()
    keys = -100.0 - torch.arange(40.0).double().remainder(2).view(1, 40, 1)  # scores of -10 000 and -10 100
    values = torch.arange(40.0).double().view(1, 40, 1)
    result = call(function, queries, keys, values, 4)
    expect_tensor(result, (1, 3, 1), None, "the output")
    assert not result.isnan().any(), (
        "for scores near -10 000 the output is NaN. Likely cause: no maximum is subtracted, or the running maximum "
        "begins at 0, higher than every score, so that all exponentials are 0"
    )
    expect_close(result, torch.full((1, 3, 1), 19.0).double(), "the output for scores near -10 000")
    expect_few_columns(place(columns_held, function)(function, queries, keys, values, 4), 4, 40)


def columns_held(function: Callable, queries: Tensor, keys: Tensor, values: Tensor, tile: int) -> list[int]:
    """What an attention function holds of its table of scores while it works.

    It is written to be sent to where student code runs, so it uses torch and its arguments alone. To be told apart,
    the number of queries, that of keys, and the sizes of their vectors should all differ, and the vectors be no longer
    than a tile.

    Args:
        function: called with the other arguments.
        queries: `(B, n, d)`.
        keys: `(B, m, d)`.
        values: `(B, m, d_v)`.
        tile: how many columns it should hold.

    Returns:
        Two numbers of columns: of the widest single tensor with a row for each query, or with a column for each key;
        and of all tensors of queries' rows that were alive at the same time.
    """
    import weakref

    rows, n, m = queries.shape[:-1].numel(), queries.shape[-2], keys.shape[-2]
    vectors = {queries.shape[-1], values.shape[-1]}
    widest, most, alive = 0, 0, []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, called, types, args=(), kwargs=None):
            nonlocal widest, most, alive
            result = called(*args, **(kwargs or {}))
            for one in result if isinstance(result, (tuple, list)) else (result,):
                if not isinstance(one, torch.Tensor) or not one.is_floating_point():
                    continue
                sizes = list(one.shape)
                if n in sizes or rows in sizes:
                    widest = max([widest, *(s for s in sizes if s not in (n, rows, queries.shape[0]))])
                    alive.append((weakref.ref(one), one.untyped_storage().data_ptr(), one.numel() // rows))
                elif m in sizes and not vectors & set(sizes):
                    widest = max(widest, m)  # one query's row of scores over all keys
            alive = [entry for entry in alive if entry[0]() is not None]
            most = max(most, sum({storage: columns for _, storage, columns in alive}.values()))
            return result

    with torch.no_grad(), Watch():
        function(queries, keys, values, tile)
    return [widest, most]


def expect_few_columns(held: Sequence[int], tile: int, keys: int) -> None:
    """Fail if what `columns_held` saw is more than tiles need.

    One column more than a tile is allowed, for a running maximum that is joined to it.
    """
    widest, most = held
    assert widest <= tile + 1, (
        f"with tile {tile} and {keys} keys, a tensor with {widest} columns was made: more scores at once than a tile "
        "has. Multiply the queries with one slice of the keys at a time"
    )
    assert most <= max(keys // 2, 40), (
        f"with tile {tile} and {keys} keys, tensors with {most} columns in all were held at the same time. Likely "
        "cause: the scores of each tile are kept for later, in a list; keep only the running maximum, sum and output"
    )
