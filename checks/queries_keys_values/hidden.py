"""The hidden tests of chapter 03."""

import itertools
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from autograder.checks import (
    call,
    expect_close,
    expect_gradients,
    expect_matches,
    expect_not_calling,
    expect_raises,
    place,
    rand_mask,
    randint,
    randn,
)
from checks.queries_keys_values.visible import columns_held, expect_few_columns, expect_matrices, expect_nouns

# Sizes of d are squares, so that a root taken in float32 is as good as one in float64. Equal lengths come first: there
# a mix-up of two sizes gives a wrong value, which can be diagnosed, instead of a crash.
# (leading dimensions, n, m, d)
_BATCHES = [((2,), 5, 5, 4), ((2,), 3, 5, 4), ((3,), 5, 2, 9), ((1,), 4, 3, 1), ((4,), 1, 6, 9), ((2,), 3, 1, 4)]
_OTHER_RANKS = [((), 3, 5, 4), ((2, 3), 5, 5, 4), ((2, 3), 5, 6, 4), ((3, 1), 2, 4, 9), ((2, 1, 3), 2, 5, 4)]


# -- the oracle: one row at a time, over the keys that it may attend to


def _rows(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    rows = []
    for row, allowed in zip(scores.reshape(-1, scores.shape[-1]), mask.reshape(-1, scores.shape[-1]), strict=True):
        weights = torch.zeros_like(row)
        if allowed.any():
            e = (row[allowed] - row[allowed].max().detach()).exp()
            weights = weights.index_put((allowed.nonzero().squeeze(1),), e / e.sum())
        rows.append(weights)
    return torch.stack(rows).reshape(scores.shape)


def _scores(queries: Tensor, keys: Tensor) -> Tensor:
    return (queries.unsqueeze(-2) * keys.unsqueeze(-3)).sum(-1) / queries.shape[-1] ** 0.5


def _weights(queries: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
    return _rows(_scores(queries, keys), mask)


def _output(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    return (_weights(queries, keys, mask).unsqueeze(-1) * values.unsqueeze(-3)).sum(-2)


# -- typical mistakes


def _first(tensor: Tensor) -> Tensor:
    return tensor[:1].expand_as(tensor)


_SCALE_MISTAKES = {
    "the scores are not scaled: divide them by √d before the softmax": lambda s, q, k: s * q.shape[-1] ** 0.5,
    "the scores are divided by d, not by its square root": lambda s, q, k: s / q.shape[-1] ** 0.5,
    "the scores are multiplied by √d, not divided by it": lambda s, q, k: s * q.shape[-1],
    "the scores are divided by the root of the sequence length: d is the last size of the queries": lambda s, q, k: (
        s * (q.shape[-1] / k.shape[-2]) ** 0.5
    ),
    "the scores are divided by the root of the number of queries: d is the last size": lambda s, q, k: (
        s * (q.shape[-1] / q.shape[-2]) ** 0.5
    ),
    "the scores are divided by the root of the first size: d is the last size": lambda s, q, k: (
        s * (q.shape[-1] / q.shape[0]) ** 0.5
    ),
    "the scores are divided by the root of the second size: d is the last, also when there are heads": lambda s, q, k: (
        s * (q.shape[-1] / q.shape[1]) ** 0.5
    ),
    "the scores are divided by 2, whatever d is": lambda s, q, k: s * q.shape[-1] ** 0.5 / 2,
    "the scores are scaled twice": lambda s, q, k: s / q.shape[-1] ** 0.5,
}
_WEIGHT_MISTAKES = {
    **{cause: lambda q, k, f=f: _rows(f(_scores(q, k), q, k)) for cause, f in _SCALE_MISTAKES.items()},
    "these are the scores: the softmax is missing": _scores,
    "queries and keys are swapped: row i belongs to query i": lambda q, k: _rows(_scores(k, q)),
    "each column sums to 1, but each row should: softmax over the last dimension": lambda q, k: _scores(q, k).softmax(
        -2
    ),
    "the weights are transposed: weights[..., i, j] is how much query i takes from key j": lambda q, k: (
        _weights(q, k).mT
    ),
    "the scale comes after the softmax: it belongs before": lambda q, k: (
        _rows(_scores(q, k) * q.shape[-1] ** 0.5) / q.shape[-1] ** 0.5
    ),
    "batch item 0's queries are used for all": lambda q, k: _weights(_first(q), k),
    "batch item 0's keys are used for all": lambda q, k: _weights(q, _first(k)),
    "batch item 0's weights are used for all": lambda q, k: _first(_weights(q, k)),
    "head 0's weights are used for all heads": lambda q, k: _weights(q, k)[:, :1].expand(*q.shape[:-1], k.shape[-2]),
    "the softmax runs over the batch, where F.softmax goes without a `dim`: it belongs over the keys": lambda q, k: (
        _scores(q, k).softmax(0)
    ),
    "the softmax runs over dimension 1: it belongs over the keys, the last dimension": lambda q, k: _scores(
        q, k
    ).softmax(1),
}


def _empty_rows(scores: Tensor, mask: Tensor) -> Tensor:
    """Which rows may attend to nothing, `(..., n, 1)`."""
    return ~mask.expand(scores.shape).any(-1, keepdim=True)


def _filled(scores: Tensor, mask: Tensor, number: float) -> Tensor:
    return scores.masked_fill(~mask, number).softmax(-1)


_MASK_MISTAKES = {
    "the mask has no effect": lambda s, mask: s.softmax(-1),
    "the mask is used the wrong way round: True means `may be attended to`": lambda s, mask: _rows(s, ~mask),
    "the boolean mask is added to the scores: True counts as 1 there, so nothing is blocked": lambda s, mask: (
        s + mask.to(s)
    ).softmax(-1),
    "the boolean mask is added to the scores, and the weights are set to 0 afterwards": lambda s, mask: (
        (s + mask.to(s)).softmax(-1) * mask
    ),
    "blocked scores are filled with a number near 0, and exp(0) = 1: fill with a very low number": lambda s, mask: (
        _filled(s, mask, 0.0)
    ),
    "blocked scores are filled with a number near 0, and the weights zeroed afterwards, so rows do not sum to 1": (
        lambda s, mask: _filled(s, mask, 0.0) * mask
    ),
    "blocked weights are set to 0 after the softmax, so rows no longer sum to 1: block the scores": lambda s, mask: (
        s.softmax(-1) * mask
    ),
    "softmax of a row of nothing but -inf is 0/0: a row that may attend to nothing should be all zero": (
        lambda s, mask: _filled(s, mask, -torch.inf)
    ),
    "a row that may attend to nothing gets equal weights, since all its scores are filled with one number, such as "
    "-1e10: it should be all zero": lambda s, mask: _filled(s, mask, -1e300),
    "a row that may attend to nothing is treated as if it had no mask: it should be all zero": lambda s, mask: (
        torch.where(_empty_rows(s, mask), s.softmax(-1), _rows(s, mask))
    ),
    "blocked weights get a tiny number: they should be exactly 0": lambda s, mask: _rows(s, mask).masked_fill(
        ~mask, 1e-12
    ),
    "batch item 0's mask is used for all": lambda s, mask: _rows(s, _first(mask.expand(s.shape))),
    "the mask is transposed: its rows are queries, its columns keys": lambda s, mask: _rows(s, mask.mT),
    "the mask of head 0 is used for all heads": lambda s, mask: _rows(s, mask[:, :1]),
    "the mask acts on head 0 only": lambda s, mask: torch.cat([_rows(s, mask)[:, :1], s.softmax(-1)[:, 1:]], 1),
    "the mask of query 0 is used for all queries": lambda s, mask: _rows(s, mask[..., :1, :]),
    "a key is blocked for all queries if it is blocked for one": lambda s, mask: _rows(s, mask.all(-2, keepdim=True)),
}
_MASKED_WEIGHT_MISTAKES = {cause: lambda q, k, mask, f=f: f(_scores(q, k), mask) for cause, f in _MASK_MISTAKES.items()}
_WEIGHT_MISTAKES_UNDER_A_MASK = {
    cause: lambda q, k, mask, f=f: _rows(f(_scores(q, k), q, k), mask) for cause, f in _SCALE_MISTAKES.items()
}
# Among scores of -1e5, every fill above them acts alike.
_LOW_MISTAKES = {
    "the fill is not low enough: real scores may be lower. torch.finfo(scores.dtype).min is the lowest": (
        lambda s, mask: _filled(s, mask, -1e3) * mask
    ),
}
_LOW_WEIGHT_MISTAKES = {cause: lambda q, k, mask, f=f: f(_scores(q, k), mask) for cause, f in _LOW_MISTAKES.items()}
_ATTENTION_MISTAKES = {
    "the values are not averaged: these are the weights": lambda q, k, v: _weights(q, k),
    "the keys are averaged, not the values": lambda q, k, v: _output(q, k, k),
    "the queries are averaged, not the values": lambda q, k, v: _output(q, k, q),
    "the values take the place of the keys": lambda q, k, v: _output(q, v, v),
    "queries and keys are swapped: row i belongs to query i": lambda q, k, v: _output(k, q, v),
    "the weights are transposed: weights[..., i, j] is how much query i takes from key j": lambda q, k, v: (
        _weights(q, k).mT @ v
    ),
    "the scores meet the values: the softmax is missing": lambda q, k, v: _scores(q, k) @ v,
    "the output is scaled by √d once more": lambda q, k, v: _output(q, k, v) / q.shape[-1] ** 0.5,
    "the products are averaged instead of summed: the weights already sum to 1": lambda q, k, v: (
        _output(q, k, v) / k.shape[-2]
    ),
    "batch item 0's weights are used for all": lambda q, k, v: _first(_weights(q, k)) @ v,
    "batch item 0's values are used for all": lambda q, k, v: _weights(q, k) @ _first(v),
    "head 0's weights are used for all heads": lambda q, k, v: _weights(q, k)[:, :1] @ v,
    "head 0's values are used for all heads": lambda q, k, v: _weights(q, k) @ v[:, :1],
    "the input is added to the output": lambda q, k, v: _output(q, k, v) + q,
    "the softmax runs over the queries: it belongs over the keys": lambda q, k, v: _scores(q, k).softmax(-2) @ v,
    **{cause: lambda q, k, v, f=f: _rows(f(_scores(q, k), q, k)) @ v for cause, f in _SCALE_MISTAKES.items()},
}
_MASKED_OUTPUT_MISTAKES = {
    cause: lambda q, k, v, mask, f=f: f(_scores(q, k), mask) @ v for cause, f in _MASK_MISTAKES.items()
}


# -- inputs


def _queries_keys(sizes: tuple[tuple[int, ...], int, int, int]) -> dict[str, Tensor]:
    leading, n, m, dim = sizes
    return {"queries": randn(*leading, n, dim), "keys": randn(*leading, m, dim)}


def _masked_cases(heads: bool) -> list[tuple[tuple[tuple[int, ...], int, int, int], Tensor]]:
    """Sizes and a mask for each way in which a mask broadcasts."""
    if heads:
        equal, unequal = ((2, 3), 5, 5, 4), ((2, 3), 4, 6, 9)
        return [
            (equal, rand_mask(2, 3, 5, 5)),
            (equal, rand_mask(5, 5)),
            (unequal, rand_mask(2, 1, 1, 6)),
            (unequal, rand_mask(2, 1, 4, 6)),
            (unequal, rand_mask(1, 3, 4, 6)),
            (unequal, rand_mask(4, 6)),
            (unequal, rand_mask(2, 3, 4, 6, empty_row=True)),
            (unequal, rand_mask(2, 1, 1, 6, empty_row=True)),
            (((1, 1), 1, 1, 1), torch.tensor([[True]])),
            (((), 3, 5, 4), rand_mask(3, 5, empty_row=True)),
        ]
    equal, unequal = ((2,), 5, 5, 4), ((3,), 4, 6, 9)
    return [
        (equal, rand_mask(2, 5, 5)),
        (equal, torch.ones(5, 5, dtype=torch.bool).tril()),
        (unequal, rand_mask(3, 1, 6)),
        (unequal, rand_mask(4, 6)),
        (unequal, rand_mask(3, 4, 6)),
        (unequal, rand_mask(3, 4, 6, empty_row=True)),
        (unequal, rand_mask(3, 1, 6, empty_row=True)),
        (unequal, torch.ones(1, 1, 6, dtype=torch.bool)),
        (((2,), 2, 1, 4), rand_mask(2, 2, 1)),
    ]


# -- properties


def _expect_any_rank(function: Callable, cases: list[Mapping[str, Tensor]]) -> None:
    """Fail with advice if a function that works for three dimensions raises for other numbers of them."""
    for case in cases:
        try:
            function(*case.values())
        except (AssertionError, NotImplementedError):
            raise
        except Exception as error:
            shape = tuple(next(iter(case.values())).shape)
            raise AssertionError(
                f"it works for three dimensions, but a first argument of shape {shape} raises "
                f"{type(error).__name__}: {error}. Count dimensions from the right: `[-1]`, `.mT`, `@`, `...` in einsum"
            ) from error


def _expect_finite_gradients(function: Callable, inputs: Mapping[str, Tensor], mask: Tensor) -> None:
    """Fail if a row that may attend to nothing makes a gradient NaN. The mask is the function's last argument."""
    with torch.enable_grad():
        leaves = [value.detach().clone().requires_grad_() for value in inputs.values()]
        result = call(function, *leaves, mask)
        expect_close(result.isnan().any(), torch.tensor(False), "whether the result has NaN where a row is empty")
        if not result.requires_grad:
            return  # named by expect_gradients
        gradients = torch.autograd.grad(result, leaves, randn(*result.shape), allow_unused=True)
    for name, gradient in zip(inputs, gradients, strict=True):
        assert gradient is None or not gradient.isnan().any(), (
            f"the result is right, but the gradient with respect to `{name}` is NaN where a row may attend to nothing: "
            "a NaN was made on the way and swept up; fill with torch.finfo(scores.dtype).min, so that it never arises"
        )


def _expect_half(function: Callable, oracle: Callable, inputs: Mapping[str, Tensor], mask: Tensor, name: str) -> None:
    """Fail unless the 16-bit dtypes work too. The mask is the function's last argument."""
    for dtype in (torch.float16, torch.bfloat16):
        rounded = [value.to(dtype) for value in inputs.values()]
        try:
            value = function(*rounded, mask)
        except (AssertionError, NotImplementedError):
            raise
        except Exception as error:
            raise AssertionError(
                f"with {dtype} it raises {type(error).__name__}: {error}. Does a number fit into every dtype? "
                "torch.finfo(scores.dtype).min and -inf do"
            ) from error
        expected = oracle(*[v.double() for v in rounded], mask)
        expect_close(value, expected, f"{name} in {dtype}", dtype=dtype)


def _expect_exact_zeros(weights: Tensor, mask: Tensor, when: str) -> None:
    leaks = weights[~mask.expand(weights.shape)]
    assert not leaks.isnan().any(), f"there is NaN {when}"
    assert not leaks.any(), (
        f"a blocked key gets the weight {leaks.abs().max().item():.3g} {when}; blocked weights must be exactly 0: "
        "fill the scores with torch.finfo(scores.dtype).min or -inf, nothing less low"
    )


# -- queries and keys by hand


def check_noun_finder(function: Callable) -> None:
    """Sentences of any length and order, vocabularies of several sizes, one noun or more."""
    for num_words in (6, 3, 17, 40):
        matrices = call(function, num_words)
        expect_matrices(matrices, num_words)
        matrices = [matrix.detach().clone() for matrix in matrices]
        for length in (1, 2, 3, 8, 50):
            kinds = [2 * int(kind) for kind in randint(0, 2, (length,))]  # adjectives and verbs
            numbers = randint(0, num_words, (length,)).tolist()
            words = list(zip(kinds, numbers, strict=True))
            noun = int(randint(0, length, ()))
            words[noun] = (1, numbers[noun])
            expect_nouns(matrices, words, num_words)
        for length in (3, 5, 50):
            kinds = randint(0, 3, (length,)).tolist()
            kinds[0] = kinds[-1] = 1
            words = list(zip(kinds, randint(0, num_words, (length,)).tolist(), strict=True))
            words[0], words[-1] = (1, 0), (1, num_words - 1)
            expect_nouns(matrices, words, num_words)


# -- masks


def check_padding_mask(function: Callable) -> None:
    """Shape, dtype and values, for several pad ids."""
    cases = []
    for batch, m, pad in [(4, 4, 1), (3, 5, 0), (1, 4, 7), (2, 1, 3), (5, 3, 30_000), (3, 5, 0)]:
        tokens = pad + randint(-2, 3, (batch, m))
        tokens[0, 0], tokens[-1, -1] = pad, pad + 1
        tokens[batch // 2] = pad
        cases += [{"tokens": tokens, "pad_id": pad}, {"tokens": tokens.int(), "pad_id": pad}]
    mistakes = {
        "the mask is inverted: True means `may be attended to`, so a real token": lambda t, pad: (t == pad)[:, None],
        "the shape is (B, m): insert a dimension of size 1 for the queries": lambda t, pad: t != pad,
        "the dimension of size 1 stands last: it belongs in the middle, (B, 1, m)": lambda t, pad: (t != pad)[
            ..., None
        ],
        "the dimension of size 1 stands first: it belongs in the middle, (B, 1, m)": lambda t, pad: (t != pad)[None],
        "one row is enough, (B, 1, m): broadcasting does the rest": lambda t, pad: (t != pad)[:, None].expand(
            -1, t.shape[1], -1
        ),
        "padding is taken to be 0: it is `pad_id`": lambda t, pad: (t != 0)[:, None],
        "padding is taken to be 1: it is `pad_id`": lambda t, pad: (t != 1)[:, None],
        "numbers below pad_id are real tokens too": lambda t, pad: (t > pad)[:, None],
        "numbers above pad_id are real tokens too": lambda t, pad: (t < pad)[:, None],
        "batch item 0's mask is used for all": lambda t, pad: _first((t != pad)[:, None]),
        "everything behind the first pad is blocked: padding may stand on the left as well": lambda t, pad: (
            (t != pad).long().cumprod(1).bool()[:, None]
        ),
        "only as many positions as there are real tokens are allowed, from the left: padding may stand on the left": (
            lambda t, pad: (torch.arange(t.shape[1]) < (t != pad).sum(1, keepdim=True))[:, None]
        ),
    }
    expect_matches(function, _loop_padding_mask, cases, mistakes, "the mask", gradients=False)


def _loop_padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    return torch.tensor([[[token != pad_id for token in row]] for row in tokens.tolist()])


def check_causal_mask(function: Callable) -> None:
    """Shape, dtype and values, for several lengths."""
    for n in (5, 1, 2, 3, 8, 13):
        expected = torch.tensor([[j <= i for j in range(n)] for i in range(n)])
        mistakes = {
            "the mask is transposed: row i is the query, which may look at j <= i": lambda right=expected: right.mT,
            "the diagonal is blocked: each position may look at itself": lambda right=expected: right & ~right.mT,
            "the mask is inverted: True means `may be attended to`": lambda right=expected: ~right,
            "one position of the future is visible": lambda n=n: torch.ones(n, n, dtype=torch.bool).tril(1),
            "everything is allowed": lambda right=expected: torch.ones_like(right),
            "only the diagonal is allowed": lambda right=expected: right & right.mT,
            "it has a dimension too many: the shape is (n, n)": lambda right=expected: right[None],
        }
        mask = call(function, n)
        expect_close(mask, expected, f"the mask of {n} positions", mistakes, dtype=torch.bool)


# -- weights


def check_query_key_weights(function: Callable) -> None:
    """Values without a mask, for any number of leading dimensions."""
    expect_matches(function, _weights, [_queries_keys(s) for s in _BATCHES], _WEIGHT_MISTAKES, "the weight matrix")
    others = [_queries_keys(s) for s in _OTHER_RANKS]
    _expect_any_rank(function, others)
    expect_matches(function, _weights, others, _WEIGHT_MISTAKES, "the weight matrix", gradients=False)
    large = {name: 100 * value.round() for name, value in _queries_keys(_BATCHES[1]).items()}
    expect_matches(function, _weights, [large], None, "for scores in the thousands, the weight matrix", gradients=False)


def check_query_key_weights_masked(function: Callable) -> None:
    """Values with a mask: exact zeros, empty rows, gradients, half precision."""
    _check_masked_weights(function, _weights, _queries_keys, _MASKED_WEIGHT_MISTAKES)
    _expect_mask_by_name(function, ["queries", "keys"], _weights)
    # A blocked key has no influence, however large it is.
    inputs, mask = _queries_keys(((2,), 3, 5, 4)), torch.tensor([True, True, False, True, True])
    weights = call(function, *inputs.values(), mask)
    for factor in (1e4, -1e4):
        far = inputs["keys"].clone()
        far[:, 2] *= factor
        moved = call(function, inputs["queries"], far, mask)
        assert torch.allclose(moved, weights, atol=1e-9), (
            "a blocked key changes the weights of the others when it is large: block its score before the softmax"
        )
    # Scores of -1e5 for the allowed keys, exact in every dtype that is tried.
    low = {"queries": torch.full((2, 3, 4), -200.0), "keys": torch.full((2, 5, 4), 250.0) + randint(0, 3, (2, 5, 1))}
    mask = rand_mask(2, 3, 5)
    _expect_exact_zeros(call(function, *low.values(), mask), mask, "when the scores of the allowed keys are near -1e5")
    expect_matches(
        function,
        _weights,
        [{**low, "mask": mask}],
        _LOW_WEIGHT_MISTAKES,
        "for very low scores, the weight matrix",
        False,
    )
    _expect_half(
        function, _weights, _queries_keys(((3,), 4, 6, 9)), rand_mask(3, 4, 6, empty_row=True), "the weight matrix"
    )


def _check_masked_weights(function: Callable, oracle: Callable, inputs: Callable, mistakes: Mapping) -> None:
    for heads in (False, True):
        cases = [{**inputs(sizes), "mask": mask} for sizes, mask in _masked_cases(heads)]
        if heads:
            _expect_any_rank(function, cases)
        expect_matches(function, oracle, cases, mistakes, "the weight matrix")
        for case in cases:
            mask = case["mask"]
            _expect_exact_zeros(call(function, *case.values()), mask, f"with a mask of shape {tuple(mask.shape)}")
    sizes, mask = _masked_cases(False)[5]
    empty = inputs(sizes)
    _expect_finite_gradients(function, empty, mask)
    expect_gradients(function, oracle, {**empty, "mask": mask}, mistakes)


def _expect_mask_by_name(function: Callable, names: list[str], oracle: Callable) -> None:
    inputs, mask = _queries_keys(((2,), 3, 5, 4)), rand_mask(3, 5)
    if "values" in names:
        inputs["values"] = randn(2, 5, 6)
    by_name = {name: inputs[name] for name in names}
    result = call(function, **by_name, mask=mask)
    expect_close(result, oracle(*by_name.values(), mask), "the result, all arguments passed by name,")
    expect_close(call(function, *by_name.values(), None), oracle(*by_name.values()), "the result for mask=None")


# -- attention


def _pick(attention: Callable, index: int) -> Callable:
    def picked(*args, **kwargs):
        return attention(*args, **kwargs)[index]

    return picked


def _parts(function: Callable, *mask: Tensor) -> tuple[Callable, Callable]:
    """The function's output alone, and its weights alone."""
    inputs = _attention_inputs(((2,), 3, 5, 4), 6)
    result = call(function, *inputs.values(), *mask)
    assert isinstance(result, tuple | list) and len(result) == 2, "return two things: the output and the weights"
    pick = place(_pick, function)
    return pick(function, 0), pick(function, 1)


def _attention_inputs(sizes: tuple[tuple[int, ...], int, int, int], value_dim: int | None = None) -> dict[str, Tensor]:
    leading, _, m, dim = sizes
    return {**_queries_keys(sizes), "values": randn(*leading, m, value_dim or dim + 3)}


def _drop_values(oracle: Callable) -> Callable:
    return lambda q, k, v, *mask: oracle(q, k, *mask)


def check_scaled_dot_product_attention(function: Callable) -> None:
    """Output and weights, without and with masks, for any number of leading dimensions."""
    _check_attention_plain(function)
    _check_attention_masked(function)


def _check_attention_plain(function: Callable) -> None:
    output_of, weights_of = _parts(function)
    cases = [
        _attention_inputs(_BATCHES[0], 4),
        *(_attention_inputs(s) for s in _BATCHES),
        _attention_inputs(_BATCHES[1], 1),
    ]
    expect_matches(output_of, _output, cases, _ATTENTION_MISTAKES, "the output")
    mistakes = {cause: _drop_values(f) for cause, f in _WEIGHT_MISTAKES.items()}
    expect_matches(weights_of, _drop_values(_weights), cases, mistakes, "the returned weight matrix")


def _check_attention_masked(function: Callable) -> None:
    output_of, weights_of = _parts(function)
    with_heads = [_attention_inputs(((2, 3), 5, 5, 4), 4), *(_attention_inputs(s) for s in _OTHER_RANKS[:4])]
    _expect_any_rank(output_of, with_heads)
    expect_matches(output_of, _output, with_heads, _ATTENTION_MISTAKES, "with heads, the output", gradients=False)
    weight_mistakes = {cause: _drop_values(f) for cause, f in _MASKED_WEIGHT_MISTAKES.items()}
    for heads in (False, True):
        cases = [{**_attention_inputs(sizes), "mask": mask} for sizes, mask in _masked_cases(heads)]
        expect_matches(output_of, _output, cases, _MASKED_OUTPUT_MISTAKES, "the output")
        expect_matches(weights_of, _drop_values(_weights), cases, weight_mistakes, "the returned weight matrix")
    _expect_mask_by_name(output_of, ["queries", "keys", "values"], _output)
    sizes, mask = _masked_cases(False)[5]
    empty = _attention_inputs(sizes)
    _expect_finite_gradients(output_of, empty, mask)
    expect_gradients(output_of, _output, {**empty, "mask": mask}, _MASKED_OUTPUT_MISTAKES)
    # What a blocked position holds has no influence.
    inputs, mask = _attention_inputs(((2,), 3, 5, 4)), torch.tensor([True, True, False, True, True])
    output = call(output_of, *inputs.values(), mask)
    changed = {name: value.clone() for name, value in inputs.items()}
    changed["keys"][:, 2] *= 1e4
    changed["values"][:, 2] += 1e4
    moved = call(output_of, *changed.values(), mask)
    assert torch.allclose(moved, output, atol=1e-9), (
        "a blocked position changes the output: its weight must be exactly 0"
    )
    _expect_half(
        output_of, _output, _attention_inputs(((3,), 4, 6, 9)), rand_mask(3, 4, 6, empty_row=True), "the output"
    )


# -- a bug hunt


def _published(faults: frozenset[str], queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """The weights with some of the three faults of the published lines."""
    scores = _scores(queries, keys)
    if "the scores are divided by the root of the length" in faults:
        scores = scores * (queries.shape[-1] / queries.shape[-2]) ** 0.5
    if "masked scores are filled with a tiny number, and exp(1e-12) = 1" in faults:
        scores, mask = scores.masked_fill(~mask, 1e-12), None
    if "the softmax runs over dimension 1, the queries" not in faults:
        return _rows(scores, mask)
    return (scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)).softmax(1)


_FAULTS = (
    "masked scores are filled with a tiny number, and exp(1e-12) = 1",
    "the scores are divided by the root of the length",
    "the softmax runs over dimension 1, the queries",
)
_FAULTS_LEFT = {
    f"still there: {'; '.join(faults)}": lambda *inputs, faults=frozenset(faults): _published(faults, *inputs)
    for count in (1, 2, 3)
    for faults in itertools.combinations(_FAULTS, count)
}


def check_fix_published_attention(function: Callable) -> None:
    """Output and weights of the mended lines, with masks of each shape."""
    output_of, weights_of = _parts(function, torch.ones(3, 5, dtype=torch.bool))
    weight_mistakes = _FAULTS_LEFT | {
        cause: _drop_values(f) for cause, f in (_WEIGHT_MISTAKES_UNDER_A_MASK | _MASKED_WEIGHT_MISTAKES).items()
    }
    output_mistakes = _MASKED_OUTPUT_MISTAKES | {
        cause: lambda q, k, v, mask, f=f: f(q, k, v, mask) @ v for cause, f in _FAULTS_LEFT.items()
    }
    cases = [{**_attention_inputs(sizes), "mask": mask} for sizes, mask in _masked_cases(False)]
    expect_matches(weights_of, _drop_values(_weights), cases, weight_mistakes, "the returned weight matrix")
    expect_matches(output_of, _output, cases, output_mistakes, "the output")
    for case in cases:
        mask = case["mask"]
        _expect_exact_zeros(call(weights_of, *case.values()), mask, f"with a mask of shape {tuple(mask.shape)}")
    sizes, mask = _masked_cases(False)[5]
    empty = _attention_inputs(sizes)
    _expect_finite_gradients(output_of, empty, mask)
    expect_gradients(output_of, _output, {**empty, "mask": mask}, output_mistakes)
    low = {"queries": torch.full((2, 3, 4), -200.0).double(), "keys": 250.0 + randint(0, 3, (2, 5, 1)).expand(2, 5, 4)}
    low |= {"keys": low["keys"].double(), "values": randn(2, 5, 6), "mask": rand_mask(2, 3, 5)}
    _expect_exact_zeros(
        call(weights_of, *low.values()), low["mask"], "when the scores of the allowed keys are near -1e5"
    )
    low_mistakes = {cause: _drop_values(f) for cause, f in _LOW_WEIGHT_MISTAKES.items()}
    expect_matches(weights_of, _drop_values(_weights), [low], low_mistakes, "for very low scores, the weights", False)
    _expect_half(
        output_of, _output, _attention_inputs(((3,), 4, 6, 9)), rand_mask(3, 4, 6, empty_row=True), "the output"
    )


# -- tiles


def _in_tiles(
    queries: Tensor, keys: Tensor, values: Tensor, tile: int, total_rescaled: bool, output_rescaled: bool
) -> Tensor:
    """The running softmax, with what is often forgotten."""
    scores = _scores(queries, keys)
    top = torch.full_like(scores[..., :1], -torch.inf)
    total, output = torch.zeros_like(top), 0.0
    for part, value in zip(scores.split(tile, -1), values.split(tile, -2), strict=True):
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        e, factor = (part - higher).exp(), (top - higher).exp()
        total = total * (factor if total_rescaled else 1) + e.sum(-1, keepdim=True)
        output = output * (factor if output_rescaled else 1) + e @ value
        top = higher
    return output / total


def _averaged_tiles(queries: Tensor, keys: Tensor, values: Tensor, tile: int) -> Tensor:
    parts = zip(keys.split(tile, -2), values.split(tile, -2), strict=True)
    return torch.stack([_output(queries, k, v) for k, v in parts]).mean(0)


def _full_tiles_only(queries: Tensor, keys: Tensor, values: Tensor, tile: int) -> Tensor:
    return _output(
        queries, keys[..., : keys.shape[-2] // tile * tile, :], values[..., : keys.shape[-2] // tile * tile, :]
    )


_TILE_MISTAKES = {
    "neither the sum nor the output so far is rescaled when a later tile raises the maximum": lambda q, k, v, t: (
        _in_tiles(q, k, v, t, False, False)
    ),
    "the sum so far is not rescaled when a later tile raises the maximum": lambda q, k, v, t: _in_tiles(
        q, k, v, t, False, True
    ),
    "the output so far is not rescaled when a later tile raises the maximum": lambda q, k, v, t: _in_tiles(
        q, k, v, t, True, False
    ),
    "each tile has its own softmax, and the results are averaged: a tile with high scores must count for more": (
        _averaged_tiles
    ),
    "the last tile is dropped when it is not full": _full_tiles_only,
    "only the last tile counts": lambda q, k, v, t: _output(q, k.split(t, -2)[-1], v.split(t, -2)[-1]),
    "only the first tile counts": lambda q, k, v, t: _output(q, k[..., :t, :], v[..., :t, :]),
}


def _drop_tile(oracle: Callable) -> Callable:
    return lambda q, k, v, tile: oracle(q, k, v)


def check_attention_in_tiles(function: Callable) -> None:
    """The output of full attention, whatever the tiles, their remainder, and the order in which large scores come."""
    mistakes = {**_TILE_MISTAKES, **{cause: _drop_tile(f) for cause, f in _ATTENTION_MISTAKES.items()}}
    cases = [{**_attention_inputs(_BATCHES[0], 4), "tile": 2}]
    cases += [{**_attention_inputs(sizes), "tile": tile} for sizes in _BATCHES for tile in (1, 2, 3, 4)]
    cases += [{**_attention_inputs(((2,), 3, 11, 4)), "tile": tile} for tile in (5, 11, 12, 100)]
    for rising in (False, True):  # the maximum comes first, or moves at every tile
        ramp = torch.linspace(-3, 3, 10).double()
        case = _attention_inputs(((2,), 3, 10, 4))
        case["queries"] = case["queries"].abs() + 0.5
        case["keys"] = case["keys"].abs() * (ramp if rising else -ramp)[:, None]
        cases.append({**case, "tile": 3})
    expect_matches(function, _drop_tile(_output), cases, mistakes, "the output")
    others = [{**_attention_inputs(sizes), "tile": 2} for sizes in _OTHER_RANKS]
    _expect_any_rank(function, others)
    expect_matches(function, _drop_tile(_output), others, mistakes, "the output", gradients=False)
    for tile in (0, -1):
        inputs = _attention_inputs(_BATCHES[1])
        expect_raises(ValueError, lambda tile=tile, inputs=inputs: function(*inputs.values(), tile), f"tile {tile}")
    for dtype in (torch.float16, torch.bfloat16):
        inputs = {name: value.to(dtype) for name, value in _attention_inputs(((3,), 4, 6, 9)).items()}
        expected = _output(*[value.double() for value in inputs.values()])
        value = call(function, *inputs.values(), 4)
        expect_close(value, expected, f"the output in {dtype}", dtype=dtype, tolerance=8 * torch.finfo(dtype).eps)


def check_attention_in_tiles_memory(function: Callable) -> None:
    """Stable at very low and very high scores, and no more than a tile of scores at a time."""
    sides = torch.tensor([[1.0], [-1.0], [1.0]]).double()  # one query's scores are as high as the others' are low
    for shift, when in ((-1e4, "near -10 000 and 10 000"), (1e4, "near 10 000 and -10 000")):
        case = _attention_inputs(((2,), 3, 11, 4))
        case["queries"] = torch.cat([case["queries"][..., :3], sides.expand(2, 3, 1)], -1)
        case["keys"] = torch.cat([case["keys"][..., :3], torch.full((2, 11, 1), 2.0 * shift).double()], -1)
        for tile in (1, 4, 11):
            value = call(function, *case.values(), tile)
            expect_close(value, _output(*case.values()), f"for scores {when}, in tiles of {tile}, the output")
    fused = {"scaled_dot_product_attention", "multi_head_attention_forward"}
    inputs = _attention_inputs(((2,), 13, 401, 3), 4)
    expect_not_calling(function, [*inputs.values(), 5], fused, "the tiles are to be your own")
    expect_few_columns(place(columns_held, function)(function, *inputs.values(), 5), 5, 401)
