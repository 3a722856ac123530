"""The hidden tests of chapter 03."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from autograder.checks import (
    Common,
    Complaint,
    Credit,
    Mistake,
    call,
    describe_call,
    draw_size,
    expect,
    expect_close,
    expect_gradients,
    expect_matches,
    expect_not_calling,
    expect_raises,
    expect_tensor,
    found,
    gradients_of,
    place,
    rand_mask,
    randint,
    randn,
)
from checks.chance import drawn_between, drawn_medium, drawn_wide
from checks.queries_keys_values import mistakes as m
from checks.queries_keys_values.visible import (
    FAULTS,
    ROOTS,
    columns_held,
    expect_few_columns,
    expect_matrices,
    expect_nouns,
    mistake_of,
    sentence,
    verdict_on,
)

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


_Oracle = Callable[..., Tensor]


def _filled(scores: Tensor, mask: Tensor, number: float) -> Tensor:
    return scores.masked_fill(~mask, number).softmax(-1)


_WEIGHT_MISTAKES: dict[Mistake, _Oracle] = {
    m.query_key_weights.ALWAYS_2: lambda q, k: _rows(_scores(q, k) * q.shape[-1] ** 0.5 / 2),
    m.query_key_weights.HALF_OF_D: lambda q, k: _rows(_scores(q, k) * 2 / q.shape[-1] ** 0.5),
    m.query_key_weights.ROOT_OF_SECOND_SIZE: lambda q, k: _rows(_scores(q, k) * (q.shape[-1] / q.shape[1]) ** 0.5),
}
_MASK_MISTAKES: dict[Mistake, Callable[[Tensor, Tensor], Tensor]] = {
    m.query_key_weights.FIRST_MASK: lambda s, mask: _rows(s, _first(mask.expand(s.shape))),
    m.query_key_weights.FIRST_HEADS_MASK: lambda s, mask: _rows(s, mask[:, :1]),
    m.query_key_weights.ONE_HEAD_MASKED: lambda s, mask: torch.cat([_rows(s, mask)[:, :1], s.softmax(-1)[:, 1:]], 1),
}
_MASKED_WEIGHT_MISTAKES = {k: lambda q, k_, mask, f=f: f(_scores(q, k_), mask) for k, f in _MASK_MISTAKES.items()}
# Among scores of -1e5, every fill above them acts alike.
_LOW_MISTAKES: dict[Mistake, _Oracle] = {
    m.query_key_weights.NOT_LOW_ENOUGH: lambda q, k, mask: _filled(_scores(q, k), mask, -1e3) * mask,
}
_ATTENTION_MISTAKES: dict[Mistake, _Oracle] = {
    m.scaled_dot_product_attention.VALUES_FOR_KEYS: lambda q, k, v: _output(q, v, v),
    m.query_key_weights.FIRST_WEIGHTS: lambda q, k, v: _first(_weights(q, k)) @ v,
    m.scaled_dot_product_attention.FIRST_VALUES: lambda q, k, v: _weights(q, k) @ _first(v),
    m.scaled_dot_product_attention.FIRST_HEAD: lambda q, k, v: _weights(q, k)[:, :1] @ v,
    m.scaled_dot_product_attention.INPUT_ADDED: lambda q, k, v: _output(q, k, v) + q,
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
        (unequal, rand_mask(3, 4, 2)[..., :1]),
        (unequal, rand_mask(6)),
    ]


def _masked_between() -> list[tuple[tuple[tuple[int, ...], int, int, int], Tensor]]:
    """Sizes and a mask, each of them larger in some case than elsewhere."""
    heads, n, m, dim = draw_size(4, 9), draw_size(11, 30), draw_size(7, 30), draw_size(10, 80)
    batch, many = drawn_wide(10, 200), drawn_wide(31, 300)
    return [
        (((2, heads), n, m, dim), rand_mask(2, 1, n, m)),
        (((batch,), 3, 5, 4), rand_mask(batch, 1, 5)),
        (((2,), many, 5, 4), rand_mask(many, 5)),
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
            told = {"asked": describe_call(lambda: None, [], case), "got": f"{type(error).__name__}: {error}"}
            raise Complaint(found(m.query_key_weights.FROM_THE_LEFT, "the call", **told)) from error


def _expect_finite_gradients(function: Callable, inputs: Mapping[str, Tensor], mask: Tensor) -> None:
    """Fail if a row that may attend to nothing makes a gradient NaN. The mask is the function's last argument."""
    with torch.enable_grad():
        leaves = [value.detach().clone().requires_grad_() for value in inputs.values()]
        result = call(function, *leaves, mask)
        expect_close(result.isnan().any(), torch.tensor(False), "whether the result has NaN where a row is empty")
        if not result.requires_grad:
            return  # named by expect_gradients
        gradients = gradients_of(result, leaves, randn(*result.shape))
    for name, gradient in zip(inputs, gradients, strict=True):
        what = f"the gradient with respect to `{name}`"
        expect(gradient is None or not gradient.isnan().any(), m.query_key_weights.GRADIENT_NAN, what, got="NaN")


def _expect_half(
    function: Callable, oracle: Callable, inputs: Mapping[str, Tensor], mask: Tensor | None, name: str
) -> None:
    """Fail unless the 16-bit dtypes work too. The mask is the function's last argument."""
    for dtype in (torch.float16, torch.bfloat16):
        rounded = [value.to(dtype) for value in inputs.values()]
        try:
            value = function(*rounded, mask)
        except (AssertionError, NotImplementedError):
            raise
        except Exception as error:
            told = {"asked": f"inputs of {dtype}", "got": f"{type(error).__name__}: {error}"}
            raise Complaint(found(m.query_key_weights.TOO_LOW, "the call", **told)) from error
        expected = oracle(*[v.double() for v in rounded], mask)
        expect_close(value, expected, f"{name} in {dtype}", dtype=dtype)


def _expect_exact_zeros(weights: Tensor, mask: Tensor, when: str) -> None:
    leaks = weights[~mask.expand(weights.shape)]
    expect(not leaks.isnan().any(), Common.NAN, f"the weights {when}")
    most = leaks.abs().max() if leaks.any() else 0.0
    expect(not leaks.any(), m.query_key_weights.NOT_LOW_ENOUGH, f"a blocked weight {when}", expected=0.0, got=most)


# -- queries and keys by hand


def check_noun_finder(function: Callable) -> None:
    """Sentences of any length and order, vocabularies of several sizes, one noun or more; each word at its hardest."""
    sizes = (6, draw_size(2, 5), draw_size(7, 14), draw_size(15, 30), drawn_wide(31, 99), draw_size(100, 200), 1)
    for num_words in sizes:
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
        _expect_hardest_sentences(matrices, num_words)


def _expect_hardest_sentences(matrices: Sequence[Tensor], num_words: int) -> None:
    """Of each word the sentence of fifty in which it is farthest from what it should find.

    That has the noun that it fits least (a noun itself), and 48 times the word of those allowed that it fits best.
    """
    words = [(kind, number) for kind in range(3) for number in range(num_words)]
    noun = torch.tensor([kind == 1 for kind, _ in words])
    wq, wk, wv = (matrix.double() for matrix in matrices)
    x = sentence(words, num_words).double()
    scores, each = (x @ wq) @ (x @ wk).mT, torch.arange(len(words))
    least = scores.masked_fill(~noun, torch.inf).argmin(-1)
    found = torch.where(noun, each, least)
    # Beside a noun may stand anything but itself, beside another word anything but a second noun.
    apart = torch.where(noun[:, None], each[:, None] == each, noun)
    crowd = scores.masked_fill(apart, -torch.inf).argmax(-1)
    parts = torch.stack((each, found, crowd), 1)
    chances = (scores.gather(1, parts) + torch.tensor([1.0, 1.0, 48.0]).double().log()).softmax(-1)
    outputs = (chances.unsqueeze(-1) * (x @ wv)[parts]).sum(1)
    off = (outputs - x[found][:, 3:]).abs().amax(-1)
    if not off.max() <= 0.01:
        i, k, o = parts[off.nan_to_num(torch.inf).argmax()].tolist()
        expect_nouns(matrices, [words[i], words[k], *[words[o]] * 48], num_words)


# -- masks


def check_padding_mask(function: Callable) -> None:
    """Shape, dtype and values, for several pad ids."""
    cases = []
    for batch, length, pad in [(4, 4, 1), (3, 5, 0), (1, 4, 7), (2, 1, 3), (5, 3, 30_000)]:
        tokens = pad + randint(-2, 3, (batch, length))
        tokens[0, 0], tokens[-1, -1] = pad, pad + 1
        tokens[batch // 2] = pad
        # The same sizes again, with words where there was padding: two that are drawn may have it in the same places.
        exchanged = pad + (tokens == pad).long()
        cases += [{"tokens": given, "pad_id": pad} for given in (tokens, tokens.int(), exchanged)]
    # Near a number that float32 has not, and far from one: as many times 256 as it may be.
    pad = 2 ** draw_size(25, 29) + 1
    cases.append({"tokens": pad + randint(-1, 2, (2, draw_size())), "pad_id": pad})
    tokens = 3 + 2 ** randint(8, 30, (draw_size(), 9))
    cases.append({"tokens": tokens.masked_fill(randint(0, 2, tokens.shape).bool(), 3), "pad_id": 3})
    more = [(drawn_wide(6, 600), 3), (2, drawn_wide(6, 600)), (draw_size(6, 30), draw_size(6, 30))]
    for batch, length in (*more, (drawn_medium(), 2), (2, draw_size(61, 200)), (2, draw_size(201, 600))):
        tokens = randint(0, 4, (batch, length))
        cases += [{"tokens": tokens.to(dtype), "pad_id": 2} for dtype in (torch.uint8, torch.int16, torch.int64)]
        pad = -draw_size(1, 120)
        cases += [{"tokens": (tokens + pad).to(dtype), "pad_id": pad} for dtype in (torch.int8, torch.int64)]
    expect_matches(function, _loop_padding_mask, cases, name="the mask", gradients=False)


def _loop_padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    return torch.tensor([[[token != pad_id for token in row]] for row in tokens.tolist()])


def check_causal_mask(function: Callable) -> None:
    """Shape, dtype and values, for several lengths."""
    for n in (5, *range(1, 25), drawn_wide(25, 160), drawn_wide(161, 500), draw_size(520, 600)):
        positions = torch.arange(n)
        expected = positions.unsqueeze(1) >= positions
        with torch.set_grad_enabled(n % 2 == 1):
            expect_close(call(function, n), expected, f"the mask of {n} positions", dtype=torch.bool)


# -- weights

# Of scores in the thousands and near -1e5 float32 keeps some digits behind the point, and no more: what adds a
# logarithm to a score loses the others. Of scores in the millions it keeps none: two equal weights may come out as 0.3.
_FAR = 0.02
_FARTHER = 0.4


def check_query_key_weights(function: Callable) -> None:
    """Values without a mask, for any number of leading dimensions."""
    expect_matches(function, _weights, [_queries_keys(s) for s in _BATCHES], _WEIGHT_MISTAKES, "the weight matrix")
    others = [_queries_keys(s) for s in _OTHER_RANKS]
    _expect_any_rank(function, others)
    expect_matches(function, _weights, others, _WEIGHT_MISTAKES, "the weight matrix", gradients=False)
    _expect_beyond(function, _weights, _queries_keys, "the weight matrix")
    _expect_many_heads(function, _weights, _queries_keys, "the weight matrix")
    for factor, size, tolerance in ((100, "thousands", _FAR), (2**12, "millions", _FARTHER)):  # exact in float32
        large = {name: factor * value.round() for name, value in _queries_keys(_BATCHES[1]).items()}
        what = f"the weight matrix for scores in the {size}"
        weights = call(function, *(value.float() for value in large.values()))
        expect(not weights.isnan().any(), m.query_key_weights.OVERFLOW, what, got="NaN")
        expect_matches(function, _weights, [large], name=what, gradients=False, tolerance=tolerance)


def _expect_beyond(function: Callable, oracle: Callable, draw: Callable, name: str) -> None:
    """Fail unless a function is right for each d, be it no square, and for many queries, keys, features and heads.

    The tolerance is that of float32: a root may be taken in it.
    """
    roots = [draw(((2,), 3, 4, dim)) for dim in (2, 3, 5, draw_size(6, 8), draw_size(10, 15))]
    long = [
        ((2,), draw_size(300, 600), 3, 5),
        ((2,), 3, draw_size(300, 600), 5),
        ((2,), 3, 4, draw_size(300, 600)),
        ((draw_size(300, 600),), 1, 2, 3),
        ((2,), drawn_wide(6, 299), 3, 5),
        ((2,), 3, drawn_wide(7, 299), 5),
        ((2,), 3, 4, drawn_wide(16, 299)),
        ((drawn_wide(5, 299),), 1, 2, 3),
    ]
    cases = roots + [{part: 0.3 * value for part, value in draw(sizes).items()} for sizes in long]
    expect_matches(function, oracle, cases, name=name, gradients=False, device=False, tolerance=2e-5)
    between = draw(((2,), draw_size(20, 60), draw_size(20, 60), drawn_wide(4, 60)))
    for gradient in (roots[-1], between):
        expect_gradients(function, oracle, {part: value.double() for part, value in gradient.items()}, tolerance=2e-5)


def _expect_many_heads(function: Callable, oracle: Callable, draw: Callable, name: str) -> None:
    """Fail unless a function that is right for two and three heads is right for many, their gradients too."""
    sizes = [((2, draw_size(4, 40)), 2, 3, 6), ((draw_size(4, 9), draw_size(2, 9)), 2, 11, draw_size(16, 80))]
    cases = [{part: 0.3 * value for part, value in draw(one).items()} for one in sizes]
    expect_matches(function, oracle, cases, name=name, gradients=False, device=False, tolerance=2e-5)
    expect_gradients(function, oracle, draw(((2, draw_size(2, 9)), 3, 4, 5)), tolerance=2e-5)


def check_query_key_weights_masked(function: Callable) -> None:
    """Values with a mask: exact zeros, empty rows, gradients, half precision."""
    _check_masked_weights(function, _weights, _queries_keys, _MASKED_WEIGHT_MISTAKES)
    _expect_mask_by_name(function, ["queries", "keys"], _weights)
    keys = draw_size(300, 600)
    long = {**_queries_keys(((2,), 3, keys, 4)), "mask": rand_mask(2, 1, keys)}
    expect_matches(function, _weights, [long], name="the weight matrix of many keys", gradients=False)
    between = [{**_queries_keys(sizes), "mask": mask} for sizes, mask in _masked_between()]
    between.append({**_queries_keys(((2,), 3, 4, draw_size(300, 600))), "mask": rand_mask(3, 4)})
    expect_matches(function, _weights, between, name="the weight matrix", gradients=False, tolerance=2e-5)
    # Scores of -1e5 for the allowed keys, exact in every dtype that is tried.
    low = {"queries": torch.full((2, 3, 4), -200.0), "keys": torch.full((2, 5, 4), 250.0) + randint(0, 3, (2, 5, 1))}
    mask = rand_mask(2, 3, 5)
    _expect_exact_zeros(call(function, *low.values(), mask), mask, "when the scores of the allowed keys are near -1e5")
    what = "the weight matrix for very low scores"
    expect_matches(function, _weights, [{**low, "mask": mask}], _LOW_MISTAKES, what, gradients=False, tolerance=_FAR)
    for half in (rand_mask(3, 4, 6, empty_row=True), None):
        _expect_half(function, _weights, _queries_keys(((3,), 4, 6, 9)), half, "the weight matrix")


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
    for sizes, mask in filter(lambda case: case[1].any(), (*_masked_cases(False), *_masked_cases(True))):
        expect_gradients(function, oracle, {**inputs(sizes), "mask": mask}, mistakes)


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


def _parts(function: Callable) -> tuple[Callable, Callable]:
    """The function's output alone, and its weights alone."""
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
    expect_matches(weights_of, _drop_values(_weights), cases, name="the returned weight matrix")
    _expect_beyond(output_of, _output, _attention_inputs, "the output")
    _expect_beyond(weights_of, _drop_values(_weights), _attention_inputs, "the returned weight matrix")
    wide = _attention_inputs(_BATCHES[1], drawn_wide(13, 299))
    expect_matches(output_of, _output, [wide], name="the output of wide values", tolerance=2e-5)
    case = _attention_inputs(_BATCHES[1])
    case["values"] = 1000 * case["values"]
    expect_close(call(output_of, *case.values()), _output(*case.values()), "the output of long values", tolerance=1e-3)


def _check_attention_masked(function: Callable) -> None:
    output_of, weights_of = _parts(function)
    with_heads = [_attention_inputs(((2, 3), 5, 5, 4), 4), *(_attention_inputs(s) for s in _OTHER_RANKS[:4])]
    _expect_any_rank(output_of, with_heads)
    expect_matches(output_of, _output, with_heads, _ATTENTION_MISTAKES, "the output with heads", gradients=False)
    _expect_many_heads(output_of, _output, _attention_inputs, "the output")
    _expect_many_heads(weights_of, _drop_values(_weights), _attention_inputs, "the returned weight matrix")
    for heads in (False, True):
        cases = [{**_attention_inputs(sizes), "mask": mask} for sizes, mask in _masked_cases(heads)]
        expect_matches(output_of, _output, cases, name="the output")
        expect_matches(weights_of, _drop_values(_weights), cases, name="the returned weight matrix")
    _expect_mask_by_name(output_of, ["queries", "keys", "values"], _output)
    sizes, mask = _masked_cases(False)[5]
    empty = _attention_inputs(sizes)
    _expect_finite_gradients(output_of, empty, mask)
    expect_gradients(output_of, _output, {**empty, "mask": mask})
    for sizes, mask in filter(lambda case: case[1].any(), (*_masked_cases(False), *_masked_cases(True))):
        expect_gradients(output_of, _output, {**_attention_inputs(sizes), "mask": mask})
    # What a blocked position holds has no influence.
    inputs, mask = _attention_inputs(((2,), 3, 5, 4)), torch.tensor([True, True, False, True, True])
    output = call(output_of, *inputs.values(), mask)
    changed = {name: value.clone() for name, value in inputs.items()}
    changed["keys"][:, 2] *= 1e4
    changed["values"][:, 2] += 1e4
    moved = call(output_of, *changed.values(), mask)
    expect_close(moved, output.detach(), "the output when a blocked position holds large numbers")
    for half in (rand_mask(3, 4, 6, empty_row=True), None):
        _expect_half(output_of, _output, _attention_inputs(((3,), 4, 6, 9)), half, "the output")
    between = [{**_attention_inputs(sizes), "mask": mask} for sizes, mask in _masked_between()]
    expect_matches(output_of, _output, between, name="the output", gradients=False, tolerance=2e-5)


# -- diagnose


def check_diagnose(function: Callable, points: float = 2.0) -> Credit:
    """Two attention functions of each kind, two right ones more and the root of each wrong size, in random order.

    A kind counts if all of its functions are named rightly and nothing else is taken for it, so that one word for all
    earns nothing, nor does the root of one size.

    Args:
        function: the reader's; it is called with an attention function.
        points: for one that names them all.

    Returns:
        The points, with a fault that was not named rightly.
    """
    boxes = [(fault, root) for fault in FAULTS for root in (ROOTS if fault == "root" else "nn")]
    boxes = [*boxes, ("none", "n"), ("none", "n")]
    boxes = [boxes[i] for i in randn(len(boxes)).argsort().tolist()]
    kinds = [fault for fault, _ in boxes]
    # Small on either side of 0, and 0 itself: what published code has filled with.
    numbers = [float(randint(-1, 2, ())) * drawn_between(1e-14, 1e-7) for _ in boxes]
    told = [
        verdict_on(function, fault, number, root, int(randint(2, 9, ())))
        for (fault, root), number in zip(boxes, numbers, strict=True)
    ]
    wrong = [(kind, said) for kind, said in zip(kinds, told, strict=True) if kind != said]
    spoilt = {name for pair in wrong for name in pair}
    if not wrong:
        return Credit(points, found(m.diagnose.CONFUSES))
    wrong.sort(key=lambda pair: FAULTS.index(pair[0]))
    kind, said = wrong[0]
    named = len(FAULTS) - len(spoilt)
    what = f"{named} of {len(FAULTS)} kinds are always named rightly; one attention"
    finding = found(mistake_of(kind, said), what, expected=f"called {kind}", got=said)
    return Credit(round(points * named / len(FAULTS), 2), finding)


# -- tiles


def _drop_tile(oracle: Callable) -> Callable:
    return lambda q, k, v, tile: oracle(q, k, v)


def check_attention_in_tiles(function: Callable) -> None:
    """The output of full attention, whatever the tiles, their remainder, and the order in which large scores come."""
    scaled = {m.query_key_weights.NOT_SCALED: lambda q, k, v, t: _output(q * q.shape[-1] ** 0.5, k, v)}
    cases = [{**_attention_inputs(_BATCHES[0], 4), "tile": 2}]
    cases += [{**_attention_inputs(sizes), "tile": tile} for sizes in _BATCHES for tile in (1, 2, 3, 4)]
    cases += [{**_attention_inputs(((2,), 3, 11, 4)), "tile": tile} for tile in (5, 11, 12, 100)]
    for rising in (False, True):  # the maximum comes first, or moves at every tile
        ramp = torch.linspace(-3, 3, 10).double()
        case = _attention_inputs(((2,), 3, 10, 4))
        case["queries"] = case["queries"].abs() + 0.5
        case["keys"] = case["keys"].abs() * (ramp if rising else -ramp)[:, None]
        cases.append({**case, "tile": 3})
    expect_matches(function, _drop_tile(_output), cases, scaled, "the output")
    tile = draw_size(2, 7)
    _expect_beyond(
        lambda *inputs: function(*inputs, tile), _output, _attention_inputs, f"the output in tiles of {tile}"
    )
    others = [{**_attention_inputs(sizes), "tile": 2} for sizes in _OTHER_RANKS]
    _expect_any_rank(function, others)
    expect_matches(function, _drop_tile(_output), others, name="the output", gradients=False)
    _expect_many_heads(lambda *inputs: function(*inputs, tile), _output, _attention_inputs, f"in tiles of {tile}")
    tiles = (draw_size(8, 30), draw_size(31, 99), draw_size(100, 199))
    between = [{**_attention_inputs(((2,), 3, draw_size(200, 300), 4)), "tile": tile} for tile in tiles]
    expect_matches(function, _drop_tile(_output), between, name="the output", gradients=False, tolerance=2e-5)
    for tile in (0, -1, -draw_size(2, 60)):
        inputs = _attention_inputs(_BATCHES[1])
        expect_raises(ValueError, lambda tile=tile, inputs=inputs: function(*inputs.values(), tile), f"tile {tile}")
    for dtype in (torch.float16, torch.bfloat16):
        inputs = {name: value.to(dtype) for name, value in _attention_inputs(((3,), 4, 6, 9)).items()}
        expected = _output(*[value.double() for value in inputs.values()])
        value = call(function, *inputs.values(), 4)
        expect_close(value, expected, f"the output in {dtype}", dtype=dtype, tolerance=8 * torch.finfo(dtype).eps)


def _expect_stable_in_tiles(function: Callable, case: dict[str, Tensor], when: str, mistake: Mistake) -> None:
    """The output of few, some and all keys at a time; NaN is this mistake, unless scores of 0 give it, too."""
    for tile in (1, 4, 11):
        value, what = call(function, *case.values(), tile), f"the output for scores {when}, in tiles of {tile}"
        expect_tensor(value, name=what)
        equal = {**case, "queries": 0 * case["queries"]}
        spoilt = value.isnan().any() and not call(function, *equal.values(), tile).isnan().any()
        expect_close(value, _output(*case.values()), what, otherwise=mistake if spoilt else None)


def check_attention_in_tiles_memory(function: Callable) -> None:
    """Stable at very low and very high scores, and no more than a tile of scores at a time."""
    low = _attention_inputs(((2,), 3, 11, 4))
    low["queries"][..., -1], low["keys"][..., -1] = 1.0, -2e5  # scores of -100 000
    _expect_stable_in_tiles(function, low, "near -100 000", m.attention_in_tiles.MAXIMUM_AT_0)
    sides = torch.tensor([[1.0], [-1.0], [1.0]]).double()  # one query's scores are as high as the others' are low
    for shift, when in ((-1e4, "near -10 000 and 10 000"), (1e4, "near 10 000 and -10 000")):
        case = _attention_inputs(((2,), 3, 11, 4))
        case["queries"] = torch.cat([case["queries"][..., :3], sides.expand(2, 3, 1)], -1)
        case["keys"] = torch.cat([case["keys"][..., :3], torch.full((2, 11, 1), 2.0 * shift).double()], -1)
        _expect_stable_in_tiles(function, case, when, m.attention_in_tiles.WHOLE_TENSOR)
    keys = draw_size(300, 600)  # the scores rise, or fall, all the way from -10 000 to 10 000
    case, ramp = _attention_inputs(((2,), 3, keys, 4)), torch.linspace(-2e4, 2e4, keys).double()[:, None]
    case["queries"] = torch.cat([case["queries"][..., :3], sides.expand(2, 3, 1)], -1)
    case["keys"] = torch.cat([case["keys"][..., :3], ramp.expand(2, keys, 1)], -1)
    value, right = call(function, *case.values(), 7), _output(*case.values())
    expect_close(value, right, "the output for scores that rise to 10 000 over many tiles", tolerance=2e-5)
    fused = {"scaled_dot_product_attention", "multi_head_attention_forward"}
    inputs = _attention_inputs(((2,), 13, 401, 3), 4)
    expect_not_calling(function, [*inputs.values(), 5], fused, m.attention_in_tiles.FUSED)
    expect_few_columns(place(columns_held, function)(function, *inputs.values(), 5), 5, 401)
    # More queries and wider tiles; and more tiles, of which the last holds the largest scores.
    for tile, keys in ((draw_size(9, 30), draw_size(500, 700)), (draw_size(31, 90), draw_size(800, 900))):
        inputs = _attention_inputs(((2,), draw_size(40, 80), keys, 3), 4)
        expect_few_columns(place(columns_held, function)(function, *inputs.values(), tile), tile, keys)
    # Fewer keys, without a batch and with many leading dimensions; wide tiles.
    for leading, tile, keys in (
        ((), draw_size(5, 9), draw_size(60, 99)),
        ((2,), draw_size(5, 9), draw_size(100, 180)),
        ((1, 2, 2), draw_size(5, 9), draw_size(60, 180)),
        ((2,), draw_size(91, 180), draw_size(900, 999)),
    ):
        n = draw_size(20, 40)
        keys += keys == math.prod(leading) * n  # as many as there are rows could not be told from them
        few = _attention_inputs((leading, n, keys, 3), 4)
        expect_few_columns(place(columns_held, function)(function, *few.values(), tile), tile, keys)
    # With heads, in both precisions, and as in training, where what is held tells nothing: the graph keeps it.
    tile, keys, heads, n = draw_size(7, 30), draw_size(200, 400), draw_size(2, 5), draw_size(40, 80)
    keys += keys == 2 * heads * n
    with_heads = _attention_inputs(((2, heads), n, keys, 3), 4)
    for dtype in (torch.float32, torch.float64):
        given = [value.to(dtype) for value in with_heads.values()]
        expect_few_columns(place(columns_held, function)(function, *given, tile), tile, keys)
    widest, *_ = place(columns_held, function)(function, *inputs.values(), tile, True)
    expect_few_columns((widest, 0, 0), tile, inputs["keys"].shape[1])
    case = _attention_inputs(((1,), 3, draw_size(2100, 2600), 4))
    case["keys"] = case["keys"].abs() * torch.linspace(0, 9000, case["keys"].shape[1]).double()[:, None]
    case["queries"] = case["queries"].abs() + 0.5
    value = call(function, *case.values(), tile)
    expect_close(value, _output(*case.values()), f"the output of {case['keys'].shape[1]} keys in tiles of {tile}")
