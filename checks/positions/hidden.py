"""The hidden tests of chapter 05."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    call,
    expect_close,
    expect_device,
    expect_gradients,
    expect_parameter_gradients,
    expect_raises,
    expect_same_in_eval,
    expect_tensor,
    place,
    randint,
    randn,
    set_weights,
    unchanged,
)
from checks.positions.visible import call_encoding

# The functions that `is_permutation_equivariant` is tried on. They use nothing but torch, so that they can be placed
# where the student's code lives.


def attention(x):
    return (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1) @ x


def centred(x):
    return x - x.mean(1, keepdim=True)


def with_the_mean_beside(x):
    return torch.cat([x, x.mean(1, keepdim=True).expand_as(x)], -1)


def shifted_by_one(x):
    return x.roll(1, 1)


def reversed_order(x):
    return x.flip(1)


def sorted_positions(x):
    return x.sort(1).values


def running_sum(x):
    return x.cumsum(1)


def with_a_slope(x):
    return x + 0.05 * torch.arange(x.shape[1], dtype=x.dtype)[:, None]


def last_sequence_reversed(x):
    return torch.cat([x[:-1], x[-1:].flip(1)])


def last_feature_numbered(x):
    numbers = torch.zeros(x.shape[1], x.shape[2], dtype=x.dtype)
    numbers[:, -1] = torch.arange(x.shape[1])
    return x + numbers


def first_added(x):
    return x + x[:, :1]


def square(x):
    return x * x


def lowered_by_descents(x):
    return x - (x[:, 1:, :1] < x[:, :-1, :1]).sum(1, keepdim=True).to(x.dtype)


def raised_by_descents(x):
    return x + (x[:, 1:, :1] < x[:, :-1, :1]).sum(1, keepdim=True).to(x.dtype)


_SHUFFLE = [4, 0, 3, 1, 5, 2]
_SHIFT = [5, 0, 1, 2, 3, 4]
# (function, permutation, answer, what is likely wrong)
_EQUIVARIANCE_CASES = [
    (square, _SHUFFLE, True, "each position is treated alone; use the same permutation on both sides"),
    (attention, _SHUFFLE, True, "up to rounding: sums in another order differ in the last digits"),
    (centred, _SHUFFLE, True, "up to rounding: sums in another order differ in the last digits"),
    (with_the_mean_beside, _SHUFFLE, True, "the function may return another number of features than it was given"),
    (running_sum, _SHUFFLE, False, "compare the results at every position"),
    (with_a_slope, _SHUFFLE, False, "the results differ by 0.05 and more: compare every number, not sums or means"),
    (
        sorted_positions,
        _SHUFFLE,
        False,
        "its result stays the same when the positions are reordered, which is invariance: compare function(x[:, "
        "permutation]) with function(x)[:, permutation], not with function(x)",
    ),
    (last_feature_numbered, _SHUFFLE, False, "the results differ in the last feature only: compare every feature"),
    (last_sequence_reversed, _SHUFFLE, False, "the results differ in the last sequence only: compare every sequence"),
    (reversed_order, [5, 4, 3, 2, 1, 0], True, "reversing twice is the same both ways: use the permutation given"),
    (shifted_by_one, _SHIFT, True, "shifts commute: use the permutation given, not one of your own"),
    (shifted_by_one, [5, 0, 2, 1, 3, 4], False, "use the permutation given, not one of your own"),
    (first_added, [0, 3, 1, 5, 2, 4], True, "the first position stays where it is: use the permutation given"),
    (first_added, _SHUFFLE, False, "the first position moves"),
]


def check_is_permutation_equivariant(function: Callable) -> None:
    """The answer for functions that are equivariant, are not, and are for some permutations only."""
    for helper, order, expected, hint in _EQUIVARIANCE_CASES:
        x, permutation = randn(3, 6, 5), torch.tensor(order)
        with unchanged(x=x, permutation=permutation):
            answer = call(function, place(helper, beside=function), x, permutation)
        told = f"for the function {helper.__name__} and the permutation {order} the answer"
        assert isinstance(answer, bool), f"{told} should be a Python bool, got a {type(answer).__name__}"
        assert answer == expected, f"{told} should be {expected}, got {answer}: {hint}"
    # Sorted sequences have no descents and shuffled ones have, so that all differences have the same sign.
    for helper in (lowered_by_descents, raised_by_descents):
        x, permutation = randn(3, 6, 5).sort(1).values, torch.tensor(_SHUFFLE)
        answer = call(function, place(helper, beside=function), x, permutation)
        assert answer is False, (
            f"for the function {helper.__name__} the answer should be False, got {answer!r}: all differences of the "
            "two sides are 1 and more, but of the same sign. Take the absolute value of a difference before the largest"
        )
    for batch, n, dim in [(1, 1, 1), (1, 7, 2), (2, 64, 3), (5, 2, 9)]:
        for dtype in (torch.float32, torch.float64):
            x, permutation = randn(batch, n, dim, dtype=dtype), randn(n).argsort()
            answer = call(function, place(square, beside=function), x, permutation)
            assert answer is True, (
                f"squaring is equivariant at every size, got {answer!r} for {tuple(x.shape)}, {dtype}"
            )
    for _ in range(3):  # 64 summands in another order never give the very same digits in every output
        answer = call(function, place(attention, beside=function), randn(2, 64, 6), randn(64).argsort())
        assert answer is True, (
            "attention is equivariant, but the answer is False: sums in another order differ in the last digits, so "
            "compare up to rounding, as `torch.allclose` does"
        )


def encoding_oracle(max_len: int, dim: int) -> Tensor:
    """The encoding, written out number by number."""
    rows = []
    for p in range(max_len):
        waves = (math.sin, math.cos)
        rows.append([waves[c % 2](p / 10_000 ** ((c - c % 2) / dim)) for c in range(dim)])
    return torch.tensor(rows, dtype=torch.float64)


def _encoding_like(
    max_len: int, dim: int, exponent: Callable[[int], float], base: float = 10_000, start: int = 0, swap: int = 0
) -> Tensor:
    columns = torch.arange(dim)
    angle = torch.arange(start, start + max_len).double()[:, None] / torch.tensor(
        [base ** exponent(int(c)) for c in columns], dtype=torch.float64
    )
    return torch.where((columns + swap) % 2 == 0, angle.sin(), angle.cos())


def _halves(max_len: int, dim: int) -> Tensor:
    right = encoding_oracle(max_len, dim)
    return torch.cat([right[:, 0::2], right[:, 1::2]], 1)


def _row_left_out(max_len: int, dim: int, row: int) -> Tensor:
    right = encoding_oracle(max_len, dim)
    right[row] = 0
    return right


_ENCODING_MISTAKES: dict[str, Callable[[int, int], Tensor]] = {
    "row 0 was never filled in: position 0 has the sine 0 and the cosine 1": lambda m, d: _row_left_out(m, d, 0),
    "the last row was never filled in: the positions are 0 to max_len - 1, which is range(max_len)": lambda m, d: (
        _row_left_out(m, d, -1)
    ),
    "the table is transposed: one row for each position": lambda m, d: encoding_oracle(m, d).T,
    "all sines come before all cosines: even columns are sines, odd columns cosines": _halves,
    "sine and cosine are swapped: even columns are sines": lambda m, d: _encoding_like(
        m, d, lambda c: (c - c % 2) / d, swap=1
    ),
    "a cosine has another frequency than the sine beside it: columns 2k and 2k + 1 share 10000**(2k / dim)": (
        lambda m, d: _encoding_like(m, d, lambda c: c / d)
    ),
    "the exponent is k / dim: it should be 2k / dim, with 2k the number of the pair's first column": (
        lambda m, d: _encoding_like(m, d, lambda c: (c // 2) / d)
    ),
    "the exponent is doubled: 2k is already the number of the pair's first column": lambda m, d: _encoding_like(
        m, d, lambda c: 2 * (c - c % 2) / d
    ),
    "positions are counted from 1: the first is 0": lambda m, d: _encoding_like(
        m, d, lambda c: (c - c % 2) / d, start=1
    ),
    "the frequency rises: divide the position by 10000**(2k / dim), do not multiply": lambda m, d: _encoding_like(
        m, d, lambda c: -(c - c % 2) / d
    ),
    "all columns have the same frequency: does an integer division make the exponent 0?": lambda m, d: _encoding_like(
        m, d, lambda c: 0.0
    ),
    "the base is e**4, which comes from log10(10000): use the natural logarithm with exp": lambda m, d: _encoding_like(
        m, d, lambda c: (c - c % 2) / d, base=math.exp(4)
    ),
    "the base is 1000, not 10000": lambda m, d: _encoding_like(m, d, lambda c: (c - c % 2) / d, base=1000),
    "the base is 9999, not 10000": lambda m, d: _encoding_like(m, d, lambda c: (c - c % 2) / d, base=9999),
    "the base is 100, not 10000": lambda m, d: _encoding_like(m, d, lambda c: (c - c % 2) / d, base=100),
    "the exponent of an odd dim is divided by dim + 1: divide by dim": lambda m, d: _encoding_like(
        m, d, lambda c: (c - c % 2) / (d + d % 2)
    ),
    "the exponent of an odd dim is divided by dim - 1: divide by dim": lambda m, d: _encoding_like(
        m, d, lambda c: (c - c % 2) / (d - d % 2)
    ),
    "the last column of an odd dim is not filled in": lambda m, d: torch.cat(
        [encoding_oracle(m, d)[:, :-1], torch.zeros(m, 1, dtype=torch.float64)], 1
    ),
    "an odd dim gets a column too many: its last sine has no cosine": lambda m, d: _encoding_like(
        m, d + d % 2, lambda c: (c - c % 2) / d
    ),
    "an odd dim loses its last column": lambda m, d: encoding_oracle(m, d)[:, : d - d % 2],
}


def check_sinusoidal_encoding(function: Callable) -> None:
    """Values, shape and dtype for even and odd sizes."""
    for max_len, dim in [
        (6, 6),
        (5, 8),
        (40, 16),
        (7, 2),
        (200, 10),
        (1, 4),
        (9, 5),
        (11, 7),
        (3, 1),
        (1, 1),
        (5, 3),
        (5000, 6),
    ]:
        value = call_encoding(function, max_len, dim)
        wrong = {cause: lambda f=f, m=max_len, d=dim: f(m, d) for cause, f in _ENCODING_MISTAKES.items()}
        # float32 holds the angle of position 200 to about 1e-5, and its logarithm to less; of position 5000 to 1e-3
        name = f"the encoding of {max_len} positions with dim {dim}"
        expect_close(value, encoding_oracle(max_len, dim), name, wrong, tolerance=4e-3 if max_len > 1000 else 1e-3)
        expect_tensor(value, None, torch.float32, name)
        assert not value.requires_grad, "the encoding is a table of constants: it should not require a gradient"


# Both classes join a table of positions to x; what follows is common to them. (B, n, d, max_len): the batch as large as
# n first, where a row for each sequence fits the shapes.
_SIZES = [(4, 4, 6, 9), (2, 5, 4, 5), (3, 2, 7, 8), (1, 6, 3, 11), (5, 1, 2, 3), (2, 3, 1, 4), (4, 1, 1, 1)]


def _joined(x: Tensor, p: Tensor, mode: str) -> Tensor:
    return x + p if mode == "add" else torch.cat([x, p.expand_as(x)], -1)


def _rest_unchanged(x: Tensor, p: Tensor, mode: str) -> Tensor:
    return torch.cat([_joined(x[:1], p, mode), _joined(x[1:], torch.zeros_like(p), mode)])


def _joining_mistakes(x: Tensor, table: Tensor, mode: str) -> Mapping[str, Callable[[], Tensor]]:
    n = x.shape[1]
    p = table[:n]
    other = "concat" if mode == "add" else "add"
    shared: dict[str, Callable[[], Tensor]] = {
        "one row of the table for each sequence of the batch: it should be one for each position, `x.shape[1]` rows": (
            lambda: _joined(x, table[: len(x), None].expand_as(x), mode)
        ),
        "positions are counted from 1: the first position gets row 0": lambda: _joined(x, table[1 : n + 1], mode),
        "every position gets row 0": lambda: _joined(x, table[:1].expand(n, -1), mode),
        "every position gets the row of the last one": lambda: _joined(x, table[n - 1].expand(n, -1), mode),
        "every position gets row n": lambda: _joined(x, table[n].expand(n, -1), mode),
        "the last rows of the table are taken: take the first n": lambda: _joined(x, table[-n:], mode),
        "positions are counted from the end": lambda: _joined(x, p.flip(0), mode),
        "only the first sequence gets its positions": lambda: _rest_unchanged(x, p, mode),
        "the first sequence is used for the whole batch": lambda: _joined(x[:1].expand_as(x), p, mode),
        "x is scaled by the root of dim: here it should stay as it is": lambda: _joined(x * x.shape[2] ** 0.5, p, mode),
        "x has no part in it": lambda: _joined(torch.zeros_like(x), p, mode),
        "the positions have no part in it": lambda: _joined(x, torch.zeros_like(p), mode),
        f'this is what mode "{other}" should do': lambda: _joined(x, p, other),
    }
    own: dict[str, Callable[[], Tensor]] = (
        {
            "the positions are subtracted": lambda: x - p,
            "the positions are multiplied: add them": lambda: x * p,
            "the positions are added twice": lambda: x + 2 * p,
        }
        if mode == "add"
        else {
            "the positions come first: x should": lambda: torch.cat([p.expand_as(x), x], -1),
            "joined along the sequence (dim 1): join the features (dim -1)": lambda: torch.cat([x, p.expand_as(x)], 1),
            "the second half is x plus the positions: it should be the positions alone": lambda: torch.cat(
                [x, x + p], -1
            ),
        }
    )
    return own | shared


def _check_joining(make: Callable, table_of: Callable[[Any, int, int], Tensor], mode: str) -> None:
    for batch, n, dim, max_len in _SIZES:
        module = call(make, dim, max_len=max_len, mode=mode)
        table = table_of(module, max_len, dim)
        for dtype in (torch.float32, torch.float64):
            module.to(dtype)
            x = randn(batch, n, dim, dtype=dtype)
            with unchanged(x=x):
                value = call(module, x)
            expected = _joined(x.double(), table[:n], mode)
            wrong = _joining_mistakes(x.double(), table, mode)
            expect_close(value, expected, "the result", wrong, dtype, tolerance=1e-5)
        again = call(module, x)
        expect_close(again, expected, "the result of a second call with the same x", wrong, tolerance=1e-5)
        if n < max_len:  # a longer sequence after a shorter one
            x = randn(batch, max_len, dim)
            expect_close(call(module, x), _joined(x, table, mode), "the result for n = max_len", tolerance=1e-5)


def _check_errors(make: Callable, mode: str) -> None:
    module = make(4, max_len=6, mode=mode)
    expect_raises(ValueError, lambda: module(randn(2, 7, 4).float()), "a sequence of 7 positions with max_len=6")
    for wrong in (5, 3, 8):
        expect_raises(ValueError, lambda d=wrong: module(randn(2, 3, d).float()), f"x with {wrong} features and dim=4")
    what = "x with 1 feature and dim=4 (which broadcasting would hide)"
    expect_raises(ValueError, lambda: module(randn(2, 3, 1).float()), what)
    what = "x with 4 features and dim=1 (which broadcasting would hide)"
    narrow = make(1, max_len=6, mode=mode)
    expect_raises(ValueError, lambda: narrow(randn(2, 3, 4).float()), what)


def _check_dropout(
    module: Any,
    x: Tensor,
    parts: Sequence[tuple[str, Callable[[float], Sequence[Tensor]]]],
    expected: Tensor | None = None,
) -> None:
    """Dropout, with a probability of 0.25, zeroes a quarter of the result while training, and scales what stays.

    Args:
        module: made with `dropout=0.25`.
        x: its input, large enough to count.
        parts: likely mistakes: the cause, and the values that each entry could then have, given the scale.
        expected: the right result without dropout, if the check knows it.
    """
    expect_same_in_eval(module, [x], "a module with dropout=0.25", expected)
    plain = module(x)
    module.train()
    value = module(x)
    expect_tensor(value, plain.shape, plain.dtype, "the result while training with dropout")
    value, plain = value.detach(), plain.detach()
    counted = plain != 0
    dropped = ((value == 0) & counted).sum() / counted.sum()

    def is_one_of(options: Sequence[Tensor]) -> bool:
        return bool(torch.stack([torch.isclose(value, o, rtol=1e-4, atol=1e-5) for o in options]).any(0).all())

    assert not is_one_of([plain]), "dropout=0.25 does nothing while training: apply nn.Dropout to the result"
    if not is_one_of([plain / 0.75, torch.zeros_like(plain)]):
        for cause, options in parts:
            assert not is_one_of(options(1 / 0.75)), f"dropout should act on the whole result: {cause}"
        raise AssertionError(
            "while training with dropout=0.25, each number of the result should be either 0 or 1/0.75 times what it is "
            "in eval mode"
        )
    assert 0.1 < dropped < 0.4, f"dropout=0.25 should drop about a quarter of the numbers, but dropped {dropped:.0%}"


def _dropout_on_parts(x: Tensor, p: Tensor, mode: str) -> list[tuple[str, Callable[[float], Sequence[Tensor]]]]:
    zero, q = torch.zeros_like(x), p.expand_as(x)
    return [
        ("here it acts on x alone", lambda s: [_joined(zero, q, mode), _joined(s * x, q, mode)]),
        ("here it acts on the positions alone", lambda s: [_joined(x, zero, mode), _joined(x, s * q, mode)]),
        (
            "here it acts on x and on the positions before they are added",
            lambda s: [_joined(a, b, mode) for a in (zero, s * x) for b in (zero, s * q)],
        ),
    ]


def _common_checks(make: Callable, table_of: Callable[[Any, int, int], Tensor], mode: str) -> None:
    _check_joining(make, table_of, mode)
    _check_errors(make, mode)
    module = make(10, dropout=0.25, max_len=50, mode=mode)
    table, x = table_of(module, 50, 10).float(), randn(4, 40, 10, dtype=torch.float32)
    _check_dropout(module, x, _dropout_on_parts(x, table[:40], mode), _joined(x, table[:40], mode))
    module = make(3, max_len=6, mode=mode)
    table = table_of(module, 6, 3)
    module.double()
    expect_gradients(module, lambda x: _joined(x, table[: x.shape[1]], mode), {"x": randn(2, 4, 3)})
    expect_device(make(3, max_len=6, mode=mode).to("meta"), {"x": randn(2, 4, 3, dtype=torch.float32)})


def _own_encoding(function: Callable, max_len: int, dim: int) -> Tensor:
    value = call(function, max_len, dim)
    expect_tensor(value, (max_len, dim), name="what sinusoidal_encoding returns")
    return value.double()


def _checked_buffer(module: Any, max_len: int, dim: int, function: Callable) -> Tensor:
    """The buffer `pe`: it may hold what the student's own function gives, which is marked in an exercise of its own."""
    buffers, parameters = dict(module.named_buffers()), dict(module.named_parameters())
    assert not parameters, f"nothing here is trained, but `{next(iter(parameters))}` is a parameter"
    assert "pe" in buffers, "there is no buffer `pe`: use `self.register_buffer('pe', ...)`"
    pe = buffers["pe"]
    assert not pe.requires_grad, "the buffer `pe` should not require a gradient: it is not trained"
    expect_tensor(pe, (max_len, dim), name="the buffer `pe`")
    right = encoding_oracle(max_len, dim)
    if not torch.allclose(pe.double(), right, rtol=1e-3, atol=1e-3):
        expect_close(pe.double(), _own_encoding(function, max_len, dim), "the buffer `pe`", tolerance=1e-3)
        different = torch.unique(pe, dim=0).shape[0]
        assert different == max_len, (
            f"only {different} of the {max_len} rows of `pe` differ: get sinusoidal_encoding right first"
        )
    return pe.detach().double().clone()


def _loaded_buffer(module: Any, max_len: int, dim: int, function: Callable) -> Tensor:
    """The same, once the module has loaded it as from a file: that changes nothing, whether it is saved or not."""
    table = _checked_buffer(module, max_len, dim, function)
    set_weights(module, {"pe": table}, torch.float32)
    loaded = _checked_buffer(module, max_len, dim, function)
    expect_close(loaded, table, "the buffer `pe` after the module has loaded its own weights")
    return table


def check_PositionEncoding(cls: type[nn.Module], encoding: Callable) -> None:
    """The buffer, both modes, dropout and the errors."""
    _check_position_encoding_add(cls, encoding)
    _check_position_encoding_concat(cls, encoding)


def _check_position_encoding_add(cls: type[nn.Module], encoding: Callable) -> None:
    """Mode "add", which is the default, the buffer, dropout and the errors."""

    def table_of(module: Any, max_len: int, dim: int) -> Tensor:
        return _loaded_buffer(module, max_len, dim, encoding)

    for max_len, dim in [(7, 4), (3, 6), (30, 5)]:
        _checked_buffer(call(cls, dim, max_len=max_len), max_len, dim, encoding)
    default = cls(4)
    expect_tensor(dict(default.named_buffers())["pe"], (5000, 4), name="the buffer `pe` with the default max_len")
    x = randn(2, 3, 4, dtype=torch.float32)
    expected = x.double() + table_of(default, 5000, 4)[:3]
    expect_close(default(x), expected, "the result with the default mode, dropout and max_len")
    _common_checks(cls, table_of, "add")


def _check_position_encoding_concat(cls: type[nn.Module], encoding: Callable) -> None:
    """Mode "concat", arguments by position, and unknown modes."""

    def table_of(module: Any, max_len: int, dim: int) -> Tensor:
        return _loaded_buffer(module, max_len, dim, encoding)

    _common_checks(cls, table_of, "concat")
    x = randn(2, 3, 4, dtype=torch.float32)
    module = call(cls, 4, 0.0, 6, "concat")
    expected = _joined(x.double(), table_of(module, 6, 4)[:3], "concat")
    expect_close(module(x), expected, "the result of PositionEncoding(4, 0.0, 6, 'concat')")
    for mode in ("sum", "expand", ""):
        expect_raises(ValueError, lambda m=mode: cls(4, mode=m), f"PositionEncoding(4, mode={mode!r})")


def _given_weight(module: Any, rows: int, dim: int) -> Tensor:
    """Give `weight` random values; returns them in float64. A student may keep the parameter under a second name."""
    weight = randn(rows, dim).float().double()
    names = module.state_dict()
    assert "weight" in names, "there is no parameter `weight`: use `self.weight = nn.Parameter(...)`"
    dtype = names["weight"].dtype
    set_weights(module, {name: weight for name, value in names.items() if value.shape == weight.shape}, dtype)
    return weight


def _expect_weight_learns(module: Any, oracle: Callable[[Tensor, Tensor], Tensor], weight: Tensor, x: Tensor) -> None:
    expect_parameter_gradients(module, lambda state, x: oracle(state["weight"], x), {"weight": weight}, [x])


def _check_weight(module: Any, rows: int, dim: int, what: str) -> None:
    parameters = dict(module.named_parameters())
    assert "weight" in parameters, (
        "`weight` should be a parameter, `self.weight = nn.Parameter(...)`: otherwise no optimizer finds it"
    )
    weight = parameters["weight"]
    expect_tensor(weight, (rows, dim), name=f"the weight of {what}")
    assert weight.requires_grad, "`weight` should be trained: it does not require a gradient"
    assert weight.isfinite().all(), "`weight` starts with numbers that are not finite: was it never filled in?"
    if rows > 1:
        different = torch.unique(weight.detach(), dim=0).shape[0]
        assert different == rows, (
            f"`weight` should start with random numbers, but only {different} of its {rows} rows differ"
        )
    fixed = encoding_oracle(rows, dim)
    assert rows == 1 or not torch.allclose(weight.detach().double(), fixed, atol=1e-3), (
        "`weight` should start with random numbers: here it is the sinusoidal encoding"
    )


def check_PositionEmbedding_join(cls: type[nn.Module]) -> None:
    """Modes "add" and "concat": the weight, the values, its gradient, dropout and the errors."""
    for mode in ("add", "concat"):
        for max_len, dim in [(7, 4), (3, 6), (1, 2)]:
            _check_weight(call(cls, dim, max_len=max_len, mode=mode), max_len, dim, f'max_len={max_len}, mode "{mode}"')
        _common_checks(cls, _given_weight, mode)
        module = cls(3, max_len=6, mode=mode)
        weight = _given_weight(module, 6, 3)
        module.double()
        x = randn(2, 4, 3)
        _expect_weight_learns(module, lambda weight, x, mode=mode: _joined(x, weight[:4], mode), weight, x)
    _check_weight(cls(3), 512, 3, "the default max_len")
    default, x = cls(3), randn(2, 4, 3, dtype=torch.float32)
    expected = _joined(x.double(), _given_weight(default, 512, 3)[:4], "add")
    expect_close(default(x), expected, "the result with the default mode, dropout and max_len")
    for mode in ("sum", "relative", ""):
        expect_raises(ValueError, lambda m=mode: cls(4, mode=m), f"PositionEmbedding(4, mode={mode!r})")


def _looked_up(x: Tensor, weight: Tensor) -> Tensor:
    # Row by row, as the definition says.
    largest = len(weight) // 2
    rows = [max(-largest, min(largest, distance)) + largest for distance in x.flatten().tolist()]
    return torch.stack([weight[row] for row in rows]).reshape(*x.shape, weight.shape[1])


def _expand_mistakes(x: Tensor, weight: Tensor) -> Mapping[str, Callable[[], Tensor]]:
    largest = len(weight) // 2
    near = x.clamp(-largest, largest)
    return {
        "`max_len` is not added, so that negative distances count rows from the end: distance 0 is row max_len": (
            lambda: weight[near]
        ),
        "the sign is lost: distances of 2 and -2 have rows of their own": lambda: weight[near.abs() + largest],
        "the sign is lost: distances of 2 and -2 have rows of their own, and distance 0 is row max_len": (
            lambda: weight[near.abs()]
        ),
        "the sign is reversed: row 0 belongs to distance -max_len": lambda: weight[largest - near],
        "negative distances are all treated as 0": lambda: weight[near.clamp(min=0) + largest],
        "clamped to [0, max_len] after `max_len` was added, which loses the positive ones": (
            lambda: weight[(x + largest).clamp(0, largest)]
        ),
        "distances are clamped to max_len - 1, one too early": lambda: weight[
            x.clamp(-largest + 1, largest - 1) + largest
        ],
        "distances above max_len are clamped to max_len - 1, one too early": lambda: weight[
            x.clamp(-largest, largest - 1) + largest
        ],
        "far distances are wrapped around instead of clamped": lambda: weight[(x + largest).remainder(2 * largest + 1)],
        "the rows are shifted by one: distance 0 is row max_len": lambda: weight[
            (near + largest - 1).clamp(0, 2 * largest)
        ],
        "x holds distances already: do not subtract positions from each other again": lambda: weight[
            (x[None, :] - x[:, None]).clamp(-largest, largest) + largest
        ],
        "x holds distances, which are counted here as positions 0, 1, 2, …": lambda: weight[: x.shape[0]],
    }


def check_PositionEmbedding_expand(cls: type[nn.Module]) -> None:
    """Mode "expand": rows for distances near and far, any shape, the gradient of the weight, dropout."""
    for max_len, dim in [(3, 4), (1, 5), (6, 1)]:
        _check_weight(
            call(cls, dim, max_len=max_len, mode="expand"),
            2 * max_len + 1,
            dim,
            f'max_len={max_len}, mode "expand"',
        )
    for max_len, dim in [(3, 4), (1, 5), (6, 1), (4, 7)]:
        module = call(cls, dim, max_len=max_len, mode="expand")
        weight = _given_weight(module, 2 * max_len + 1, dim)
        every = torch.arange(-max_len, max_len + 1)
        far = torch.cat([every, torch.tensor([-50, -max_len - 1, max_len + 1, 50])])
        cases = [every, far, torch.arange(5)[None, :] - torch.arange(5)[:, None]]
        cases += [randint(-2 * max_len, 2 * max_len + 1, shape) for shape in [(2, 3, 4), (2, 3, 1, 5), (1,), ()]]
        for x in cases:
            name = f"the result for distances of shape {tuple(x.shape)} with max_len={max_len}"
            wrong = _expand_mistakes(x, weight)
            with unchanged(x=x):
                value = _call_far(module, x, max_len)
            expect_close(value, _looked_up(x, weight), name, wrong, torch.float32)
        module.double()
        expect_tensor(module(every), dtype=torch.float64, name="the result of a module in float64")
    module = cls(3, max_len=2, mode="expand").double()
    weight = _given_weight(module, 5, 3)
    x = randint(-5, 6, (3, 4))
    _expect_weight_learns(module, lambda weight, x: _looked_up(x, weight), weight, x)
    module = cls(10, dropout=0.25, max_len=5, mode="expand")
    _given_weight(module, 11, 10)
    _check_dropout(module, randint(-9, 10, (8, 40)), [])
    expect_device(cls(3, max_len=2, mode="expand").to("meta"), {"x": x})


def _call_far(module: Any, x: Tensor, max_len: int) -> Any:
    try:
        return module(x)
    except IndexError as error:
        raise AssertionError(
            f"distances {x.flatten().tolist()[:14]} with max_len={max_len} raise IndexError ({error}): "
            "clamp them to [-max_len, max_len], then add max_len, so that they count rows from 0"
        ) from error
    except NotImplementedError:
        raise
    except Exception:
        return call(lambda x: module(x), x)


# ---- rotary positions


def _turned(x: Tensor, positions: Tensor, base: float, angle: Callable, pairs: Callable | None = None) -> Tensor:
    """Each pair of features of `x` turned by `angle(position, k, d)`, one pair at a time."""
    d = x.shape[-1]
    result = torch.empty_like(x)
    for k in range(d // 2):
        first, second = (2 * k, 2 * k + 1) if pairs is None else pairs(k, d)
        t = angle(positions.to(x.dtype), k, d)
        a, b = x[..., first], x[..., second]
        result[..., first] = a * t.cos() - b * t.sin()
        result[..., second] = a * t.sin() + b * t.cos()
    return result


def _rotated(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    return _turned(x, positions, base, lambda p, k, d: p * base ** (-2 * k / d))


def _rotated_overwriting(x: Tensor, positions: Tensor, base: float) -> Tensor:
    result = x.clone()
    for k in range(x.shape[-1] // 2):
        t = positions.to(x.dtype) * base ** (-2 * k / x.shape[-1])
        result[..., 2 * k] = result[..., 2 * k] * t.cos() - result[..., 2 * k + 1] * t.sin()
        result[..., 2 * k + 1] = result[..., 2 * k] * t.sin() + result[..., 2 * k + 1] * t.cos()
    return result


def _reflected(x: Tensor, positions: Tensor, base: float) -> Tensor:
    return _rotated(torch.stack([x[..., 0::2], -x[..., 1::2]], -1).flatten(-2), positions, base)


def _unzipped(x: Tensor, positions: Tensor, base: float) -> Tensor:
    turned = _rotated(x, positions, base)
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], -1)


def _with_exponent(exponent: Callable[[int, int], float]) -> Callable[[Tensor, Tensor, float], Tensor]:
    return lambda x, p, base: _turned(x, p, base, lambda p, k, d: p * base ** exponent(k, d))


_ROTATION_MISTAKES: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "features k and k + d/2 are turned together (the convention of some libraries): here the pairs are 2k and 2k + 1": (
        lambda x, p, base: _turned(x, p, base, lambda p, k, d: p * base ** (-2 * k / d), lambda k, d: (k, k + d // 2))
    ),
    "the pairs are turned backwards: the first of the two is a cos t - b sin t": lambda x, p, base: _rotated(
        x, -p, base
    ),
    "the positions given are not used: x came back as it was": lambda x, p, base: x,
    "the positions given are not used: 0, 1, 2, … stand in their place": lambda x, p, base: _rotated(
        x, torch.arange(x.shape[-2]), base
    ),
    "`base` is not used: 10000 stands in its place": lambda x, p, base: _rotated(x, p),
    "all first halves of the pairs come before all second halves: feature 2k + 1 belongs beside feature 2k": _unzipped,
    "the exponent is -k / d: it should be -2k / d, with 2k = 0, 2, 4, …": _with_exponent(lambda k, d: -k / d),
    "the exponent is doubled: 2k is already the pair's first feature": _with_exponent(lambda k, d: -4 * k / d),
    "the angles grow from pair to pair: the exponent of base is negative": _with_exponent(lambda k, d: 2 * k / d),
    "every pair is turned by the same angle: does an integer division make the exponent 0?": _with_exponent(
        lambda k, d: 0.0
    ),
    "the second of a pair is computed from the first after it was turned: keep the old one": _rotated_overwriting,
    "a minus is in the wrong place, so that lengths change or pairs are mirrored: (a cos t - b sin t, a sin t + b cos "
    "t)": _reflected,
    "sine and cosine are swapped": lambda x, p, base: _turned(
        x, p, base, lambda p, k, d: math.pi / 2 - p * base ** (-2 * k / d)
    ),
    "the angles follow the wrong dimension: `positions` belongs to dimension -2, whatever stands before it": (
        lambda x, p, base: _rotated(x.transpose(-3, -2), p, base).transpose(-3, -2)
    ),
    "the position's vector is added: x should be turned": lambda x, p, base: (
        x + encoding_oracle(int(p.max()) + 1, x.shape[-1]).to(x.dtype)[p]
    ),
}


def _positions(n: int, high: int = 60) -> Tensor:
    """Increasing positions that do not start at 0 and leave gaps."""
    return randint(1, 4, (n,)).cumsum(0) + randint(2, high, (1,))


def check_rotate(function: Callable) -> None:
    """Values for any leading dimensions, positions and bases; what rotation promises; dtype, device, gradients."""
    # Two equal sizes first, where an angle along the wrong dimension gives wrong values instead of an error.
    cases = [((2, 4, 4, 6), None), ((3, 5, 8), None), ((7, 4), 100.0), ((2, 3, 6, 10), 500.0), ((1, 2), None)]
    cases += [((2, 1, 3, 5, 12), 10.0), ((4, 1, 2), 3.0)]
    for shape, base in cases:
        given = () if base is None else (base,)
        base = 10_000.0 if base is None else base
        positions = _positions(shape[-2])
        for dtype in (torch.float32, torch.float64):
            x = randn(*shape, dtype=dtype)
            with unchanged(x=x, positions=positions):
                value = call(function, x, positions, *given)
            name = f"x of shape {shape}, rotated with base {base:g},"
            args = (x.double(), positions, base)
            wrong = {cause: lambda f=f, args=args: f(*args) for cause, f in _ROTATION_MISTAKES.items()}
            expect_close(value, _rotated(*args), name, wrong, dtype, tolerance=5e-4)
    _check_rotation_of_other_positions(function)
    x = randn(3, 4, dtype=torch.bfloat16)
    expect_tensor(call(function, x, torch.arange(3)), (3, 4), torch.bfloat16, "x of dtype bfloat16, rotated,")
    for odd in (1, 3, 5):
        what = f"x with {odd} feature{'s' * (odd > 1)}, an odd number,"
        expect_raises(ValueError, lambda d=odd: function(randn(2, 4, d), torch.arange(4)), what)
    _check_rotation_gradient(function)
    expect_device(function, {"x": randn(2, 3, 4, dtype=torch.float32), "positions": torch.arange(3)})


def _check_rotation_of_other_positions(function: Callable) -> None:
    for what, positions in (
        ("negative positions", torch.tensor([-3, 0, -1, 7])),
        ("positions in any order", torch.tensor([9, 2, 40, 2])),
        ("positions that are not whole numbers", torch.tensor([0.5, 1.25, 2.0, 7.75])),
        ("far positions", torch.tensor([900, 901, 1000, 1003])),
    ):
        x = randn(2, 4, 8, dtype=torch.float32)
        expect_close(call(function, x, positions), _rotated(x.double(), positions), f"x at {what}", tolerance=2e-3)
    q, k = randn(1, 16, dtype=torch.float32), randn(1, 16, dtype=torch.float32)
    here, there = (
        (call(function, q, torch.tensor([p])) * call(function, k, torch.tensor([p + 5]))).sum() for p in (2, 90)
    )
    expect_close(there, here.double(), "the dot product of two rotated vectors at positions 90 and 95", tolerance=1e-3)


def _check_rotation_gradient(function: Callable) -> None:
    positions, direction = _positions(5), randn(2, 5, 6)
    with torch.enable_grad():
        x = randn(2, 5, 6).requires_grad_()
        value = call(function, x, positions)
        assert value.requires_grad, (
            "the result is cut off from the graph, so nothing can learn through it: remove `.detach()`, `.data`, "
            "`torch.tensor(...)` or `torch.no_grad()`"
        )
        (gradient,) = torch.autograd.grad(value, [x], direction, allow_unused=True)
    assert gradient is not None, "no gradient reaches `x`: the result is cut off from it (`.detach()`, `.data`?)"
    # The transpose of a rotation is the rotation back.
    expect_close(gradient, _rotated(direction, -positions), "the gradient with respect to `x`", tolerance=5e-4)
