"""The visible checks of chapter 02: the worked examples of the text, and the commonest mistakes by name."""

from collections.abc import Callable

import torch

from autograder.course.card import visible


@visible("the formula along both dimensions of a small table")
def softmax(function: Callable) -> None:
    """Two rows of three scores, along each dimension."""
    scores = torch.tensor([[1.0, 2.0, 1.0], [3.0, 1.0, 4.0]]).log()  # so that exp gives whole numbers
    z = scores.clone()
    w = function(z, dim=1)

    assert w is not None, "softmax returned None: is there a `return`?"
    assert torch.equal(z, scores), (
        "the input `z` was changed in place: `z = z - …` makes a new tensor, `z -= …` does not"
    )
    assert w.shape == (2, 3), f"the shape should stay (2, 3), got {tuple(w.shape)}"
    assert w.dtype == z.dtype, f"the weights should keep dtype {z.dtype}, got {w.dtype}"
    assert (w >= 0).all(), "some weights are negative: is exp missing, or is this a logarithm?"
    assert not torch.isclose(w.sum(), torch.tensor(1.0)), "the whole tensor sums to 1: each row should, sum along `dim`"
    assert not torch.allclose(w.sum(dim=0), torch.ones(3)), (
        "asked for dim=1, the columns sum to 1: the sum always runs over the first dimension, use `dim`"
    )
    assert torch.allclose(w.sum(dim=1), torch.ones(2)), (
        f"with dim=1 each row should sum to 1, got {w.sum(dim=1)}: the exponentials are not divided by their sum"
    )
    assert torch.allclose(function(z + 1, dim=1), w), (
        "adding 1 to every score should change no weight, and here it does: is the exponential missing?"
    )
    assert w[1, 2] > w[1, 1], "the largest score should get the largest weight: is the sign turned round?"
    rows = torch.tensor([[0.25, 0.5, 0.25], [0.375, 0.125, 0.5]])
    assert torch.allclose(w, rows), f"exp gives [[1, 2, 1], [3, 1, 4]], so by hand it is\n{rows}, got\n{w}"

    w = function(z, dim=0)
    assert not torch.allclose(w, rows), (
        "asked for dim=0, the rows sum to 1: the sum always runs over the last dimension, use `dim`"
    )
    assert torch.allclose(w[:, 0], torch.tensor([0.25, 0.75])), (
        f"with dim=0 the first column is by hand [0.25, 0.75], got {w[:, 0]}"
    )


@visible("scores of ±10 000 and of -inf")
def softmax_stable(function: Callable) -> None:
    """Scores of ±10 000, alone and together, and of -inf."""
    top = torch.tensor([10000.0, 9999.0, 9998.0])
    bottom = torch.tensor([-9999.0, -10000.0, -10001.0])
    w = function(top, dim=0)

    assert w is not None, "softmax returned None: is there a `return`?"
    assert not w.isnan().any(), (
        f"scores near 10000 give {w}: exp(10000) is too large for a float, it becomes inf, and inf / inf is nan"
    )
    assert w.sum() > 0, f"scores near 10000 give {w}: nan is replaced after the fact, prevent it instead"
    assert w[0] > 0.5, (
        f"scores near 10000 give {w}, nearly alike: the scores are clamped or scaled down, "
        "but their differences must stay"
    )
    assert torch.allclose(w, function(torch.tensor([2.0, 1.0, 0.0]), dim=0), atol=1e-6), (
        "the scores 10000, 9999, 9998 have the differences of 2, 1, 0, so the same weights"
    )
    assert not function(bottom, dim=0).isnan().any(), (
        "scores near -10000 give nan: all exp are 0, and 0 / 0 is nan; "
        "is it the largest score itself that you subtract, or the largest absolute value?"
    )
    both = function(torch.stack([top, bottom]), dim=1)
    assert torch.allclose(both, w.expand(2, 3), atol=1e-6), (
        "each row alone is right, both in one tensor are not: give each slice a maximum of its own"
    )

    w = function(torch.tensor([0.0, -float("inf"), 0.0]), dim=0)
    assert not w.isnan().any(), (
        "an entry of -inf gives nan: is it the largest score that you subtract? "
        "-inf minus a mean or a smallest score of -inf is nan"
    )
    assert w[1] == 0, f"an entry of -inf should get exactly 0, got {w}"
    assert torch.allclose(w, torch.tensor([0.5, 0.0, 0.5])), (
        f"of 0, -inf, 0 the weights are by hand 0.5, 0, 0.5, got {w}"
    )


@visible("both sequences by hand")
def normalized_dot_product(function: Callable) -> None:
    """Two sequences of two queries and three keys."""
    log2 = torch.tensor(2.0).log()  # so that exp of each dot product is a power of two
    q = log2 * torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    k = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], [[-1.0, 1.0], [0.0, 1.0], [-1.0, 2.0]]])
    w = function(q, k)

    assert w is not None, "normalized_dot_product returned None: is there a `return`?"
    assert w.shape != (2, 2, 2), (
        "the shape should be (B, n, m) = (2, 2, 3), got (2, 2, 2). Likely cause: the queries are compared with each "
        "other: the keys have no part in it"
    )
    assert w.shape == (2, 2, 3), (
        f"the shape should be (B, n, m) = (2, 2, 3), a row for each query, a column for each key, got {tuple(w.shape)}"
    )
    raw = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]) * log2
    assert not torch.allclose(w[0], raw), "these are the dot products: apply a softmax"
    assert (w > 0).all(), "some weights are negative or 0, which no softmax gives: was the exponential forgotten?"
    assert not torch.allclose(w.sum(dim=0), torch.ones(2, 3)), (
        "the softmax runs over the batch, where F.softmax goes without a `dim`: pass `dim=-1`"
    )
    assert not torch.allclose(w.sum(dim=1), torch.ones(2, 3)), (
        "each column sums to 1, but each row should: softmax over the last dimension"
    )
    assert not torch.allclose(w.sum(dim=(1, 2)), torch.ones(2)), "the whole matrix sums to 1, but each row should"

    suspects = {
        0.4494: "the dot products are divided by √d: that comes in chapter 3",
        0.5761: "the vectors are scaled to length 1: normalize the weights, not the vectors",
        0.3910: "softmax is applied twice",
        0.4000: "`reshape` or `view` where a transpose is meant: it keeps the order in memory",
    }
    for value, cause in suspects.items():
        assert abs(w[0, 0, 1] - value) > 1e-4, f"w[0, 0, 1] should be 0.5, is {value}: {cause}"
    first = torch.tensor([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]])
    second = torch.tensor([[0.25, 0.25, 0.5], [0.25, 0.5, 0.25]])
    assert torch.allclose(w[0], first), f"first sequence: by hand it is\n{first}, got\n{w[0]}"
    assert torch.allclose(w[1], second), (
        "the first sequence is right, the second is not: each has its own queries and its own keys; "
        f"expected\n{second}, got\n{w[1]}"
    )


@visible("both sequences by hand")
def basic_self_attention(function: Callable) -> None:
    """Two sequences of three vectors."""
    c = torch.tensor(2.0).log().sqrt()  # c * c = log 2: exp of each dot product is a power of two
    x_first = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    x = c * torch.tensor([x_first, [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]])
    y = function(x)

    assert y is not None, "basic_self_attention returned None: is there a `return`?"
    assert isinstance(y, torch.Tensor), "return the average alone, as one tensor"
    assert y.shape != (2, 3, 3), "of shape (B, n, n): these are the weights, now average x with them"
    assert y.shape == (2, 3, 2), f"the shape should be (B, n, d) = (2, 3, 2), got {tuple(y.shape)}"

    y = y / c
    suspects = {
        0.6931: "the dot products are used as weights, without a softmax",
        1.5000: "x itself is added: that comes in chapter 6",
        0.4494: "the dot products are divided by √d: that comes in chapter 3",
        0.5761: "the vectors are scaled to length 1: use the plain dot product",
        0.3333: "this is the plain mean: the weights are not used",
        0.0000: "each position leaves itself out: it may look at itself too",
    }
    for value, cause in suspects.items():
        assert abs(y[0, 0, 0] - value) > 1e-4, f"y[0, 0, 0] / c should be 0.5, is {value}: {cause}"
    assert abs(y[0, 2, 0] - 1 / 4) > 1e-4, (
        "the weights are transposed: each row of the weights sums to 1 and belongs to one output"
    )
    assert abs(y[0, 2, 0] - 1 / 2) > 1e-4, "the softmax runs over the batch: sequences must not mix"
    first = torch.tensor([[1 / 2, 1 / 4], [1 / 4, 1 / 2], [1 / 3, 1 / 3]])
    second = torch.tensor([[4 / 5, 0], [4 / 5, 0], [2 / 3, 0]])
    assert torch.allclose(y[0], first), f"first sequence, divided by c: by hand it is\n{first}, got\n{y[0]}"
    assert torch.allclose(y[1], second), (
        f"the first sequence is right, the second is not: each has its own weights, got\n{y[1]}"
    )
