"""The hidden tests of chapter 05."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    call,
    complain,
    draw_probability,
    draw_sizes,
    expect,
    expect_close,
    expect_device,
    expect_dropout_anew,
    expect_dropped_singly,
    expect_gradients,
    expect_parameter_gradients,
    expect_parameters,
    expect_raises,
    expect_same_in_eval,
    expect_tensor,
    gradients_of,
    place,
    randint,
    randn,
    set_weights,
    unchanged,
)
from checks.chance import drawn_between, drawn_medium
from checks.positions import mistakes as m

# The functions that `is_permutation_equivariant` is tried on. They use nothing but torch, so that they can be placed
# where the student's code lives.


def attention(x):
    return (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1) @ x


def averaging(x):
    return (0.1 * x @ x.mT / x.shape[-1] ** 0.5).softmax(-1) @ x


def averaging_above_1(x):
    return 1 + (0.1 * x @ x.mT / x.shape[-1] ** 0.5).softmax(-1) @ x


def centred(x):
    return x - x.mean(1, keepdim=True)


def with_the_mean_beside(x):
    return torch.cat([x, x.mean(1, keepdim=True).expand_as(x)], -1)


def shifted_by_one(x):
    return x.roll(1, 1)


def reversed_order(x):
    return x.flip(1)


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


def position_3_raised(x):
    return x + (torch.arange(x.shape[1]) == 3).to(x.dtype)[:, None]


def square(x):
    return x * x


def with_nearly_nothing_beside(x):
    return torch.cat([x, (x - x.mean(1, keepdim=True)).sum(1, keepdim=True).expand_as(x)], -1)


def make_bump(sequence, position, feature, height):
    """A function that treats one number of one sequence otherwise, by so much, and all else alike."""

    def with_a_bump(x):
        bump = torch.zeros_like(x)
        bump[sequence, position, feature] = height
        return x + bump

    return with_a_bump


def lowered_by_descents(x):
    return x - (x[:, 1:, :1] < x[:, :-1, :1]).sum(1, keepdim=True).to(x.dtype)


def raised_by_descents(x):
    return x + (x[:, 1:, :1] < x[:, :-1, :1]).sum(1, keepdim=True).to(x.dtype)


_SHUFFLE = [4, 0, 3, 1, 5, 2]
_SHIFT = [5, 0, 1, 2, 3, 4]
_EXACT, _OWN = m.is_permutation_equivariant.EXACT, m.is_permutation_equivariant.OWN_PERMUTATION
# (function, permutation, answer, the mistake behind another one)
_EQUIVARIANCE_CASES = [
    (attention, _SHUFFLE, True, _EXACT),
    (centred, _SHUFFLE, True, _EXACT),
    (with_the_mean_beside, _SHUFFLE, True, _EXACT),
    (with_a_slope, _SHUFFLE, False, m.is_permutation_equivariant.TOO_TOLERANT),
    (last_feature_numbered, _SHUFFLE, False, m.is_permutation_equivariant.ONE_FEATURE),
    (last_sequence_reversed, _SHUFFLE, False, m.is_permutation_equivariant.ONE_SEQUENCE),
    # The two sides differ at positions 2 and 3 alone.
    (position_3_raised, _SHUFFLE, False, m.is_permutation_equivariant.ONE_POSITION),
    (reversed_order, [5, 4, 3, 2, 1, 0], True, _OWN),
    (shifted_by_one, _SHIFT, True, _OWN),
    (shifted_by_one, [5, 0, 2, 1, 3, 4], False, _OWN),
    (first_added, [0, 3, 1, 5, 2, 4], True, _OWN),
    (first_added, _SHUFFLE, False, _OWN),
]


def check_is_permutation_equivariant(function: Callable) -> None:
    """The answer for functions that are equivariant, are not, and are for some permutations only."""

    def ask(helper: Callable, x: Tensor, permutation: Tensor, expected: bool, mistake: Mistake) -> None:
        judge(place(helper, beside=function), helper.__name__, x, permutation, expected, mistake)

    def judge(helper: Any, name: str, x: Tensor, permutation: Tensor, expected: bool, mistake: Mistake) -> None:
        with unchanged(x=x, permutation=permutation):
            answer = call(function, helper, x, permutation)
        asked = f"function {name} and x {tuple(x.shape)}, {x.dtype}"
        expect(answer is expected, mistake, "the answer", asked=asked, expected=str(expected), got=str(answer))

    for helper, order, expected, mistake in _EQUIVARIANCE_CASES:
        ask(helper, randn(3, 6, 5), torch.tensor(order), expected, mistake)
    for _ in range(3):  # 64 summands in another order never give the very same digits in every output
        ask(attention, randn(2, 64, 6), randn(64).argsort(), True, _EXACT)
    # None of these numbers is near 0, so that any relative tolerance covers their rounding.
    strict = m.is_permutation_equivariant.TOO_STRICT
    ask(averaging_above_1, randn(32, 50, 64, dtype=torch.float32), randn(50).argsort(), True, strict)
    # In float32 some of so many sums come so near 0 that their rounding is relatively large.
    relative = m.is_permutation_equivariant.RELATIVE_ONLY
    ask(averaging, randn(4, 50, 64, dtype=torch.float32), randn(50).argsort(), True, relative)
    # Sorted sequences have no descents and shuffled ones have, so that all differences have the same sign.
    for helper in (lowered_by_descents, raised_by_descents):
        x = randn(3, 6, 5).sort(1).values
        ask(helper, x, torch.tensor(_SHUFFLE), False, m.is_permutation_equivariant.NO_ABSOLUTE)
    # One number among many, anywhere, in sequences of drawn sizes; each position moves.
    for ranges in (((2, 12), (3, 40), (2, 40)), ((2, 4), (601, 900), (64, 99)), ((201, 400), (3, 19), (2, 60))):
        batch, n, dim = draw_sizes(*ranges)
        x, order = randn(batch, n, dim), (torch.arange(n) + int(randint(1, n, ()))) % n
        # Of the whole, and of the ends of each dimension: what looks at the first ones alone misses the last.
        places = [[int(randint(0, size, ())) for size in x.shape], [batch - 1, n - 1, dim - 1], [0, 0, 0]]
        for at in places:
            for moved in (order, _neighbours_exchanged(n)):
                bump = place(make_bump, beside=function)(*at, drawn_between(0.002, 0.01))
                judge(bump, "with_a_bump", x, moved, False, m.is_permutation_equivariant.ONE_NUMBER_DIFFERS)
        ask(square, x, order, True, m.is_permutation_equivariant.ONE_NUMBER)
    for batch, n, dim in [(1, 1, 1), (1, 7, 2), (2, 64, 3), (5, 2, 9)]:
        for dtype in (torch.float32, torch.float64):
            x, permutation = randn(batch, n, dim, dtype=dtype), randn(n).argsort()
            ask(square, x, permutation, True, m.is_permutation_equivariant.ONE_NUMBER)
    # Half of the numbers are nothing but rounding, which no relative tolerance covers.
    ask(with_nearly_nothing_beside, 0.1 * randn(4, 7, 64, dtype=torch.float32), randn(7).argsort(), True, relative)


def _neighbours_exchanged(n: int) -> Tensor:
    """An order in which each position moves, by two places at most."""
    order = torch.arange(n) ^ 1
    if n % 2:
        order[-3:] = torch.tensor([n - 2, n - 1, n - 3])
    return order


@lru_cache(maxsize=64)
def encoding_oracle(max_len: int, dim: int) -> Tensor:
    """The encoding, written out column by column."""
    positions, waves = torch.arange(max_len, dtype=torch.float64), (torch.sin, torch.cos)
    return torch.stack([waves[c % 2](positions / 10_000 ** ((c - c % 2) / dim)) for c in range(dim)], dim=1)


def _with(max_len: int, dim: int, base: float = 10_000, over: int | None = None) -> Tensor:
    """The encoding with another base, or with exponents divided by another number than `dim`."""
    columns = torch.arange(dim)
    angle = torch.arange(max_len)[:, None] / base ** ((columns - columns % 2).double() / (over or dim))
    return torch.where(columns % 2 == 0, angle.sin(), angle.cos())


def _odd_divisor(max_len: int, dim: int) -> Tensor:
    return encoding_oracle(max_len, dim + dim % 2)[:, :dim]


def _last_empty(max_len: int, dim: int) -> Tensor:
    return torch.cat([encoding_oracle(max_len, dim)[:, :-1], torch.zeros(max_len, 1, dtype=torch.float64)], 1)


def _angles_rounding(position: float) -> float:
    """How far a number made in float32 may be off: an angle that grows with the position has 24 binary digits, and so
    have the frequency and the exponent that it comes from."""
    return 2e-5 + 4e-7 * position


# What belongs to positions below each is held to the rounding of such angles.
_BANDS = (100, 1000, 5000, 30_000, 60_000)


def _expect_encoding(
    value: Any,
    expected: Tensor,
    name: str,
    otherwise: Mistake | None = None,
    mistakes: Mapping[Mistake, Callable[[], Tensor]] | None = None,
) -> None:
    """Fail unless a table is the encoding to the precision of float32, which is less for far positions."""
    coarsest = max(1e-2, _angles_rounding(len(expected)))
    expect_close(value, expected, name, mistakes, tolerance=coarsest, otherwise=otherwise)
    low = 0
    for high in _BANDS:
        rows, right = value[low:high], expected[low:high]
        if len(right):
            wrong = {mistake: lambda f=f, part=slice(low, high): f()[part] for mistake, f in (mistakes or {}).items()}
            coarse = otherwise or m.sinusoidal_encoding.COARSE
            expect_close(rows, right, name, wrong, tolerance=_angles_rounding(high), otherwise=coarse)
        low = high


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
        draw_sizes((17, 200), (301, 1200)),
        draw_sizes((201, 2000), (5, 40)),
        draw_sizes((5001, 20_000), (2, 7)),
        draw_sizes((20_001, 60_000), (2, 5)),
    ]:
        value = call(function, max_len, dim)
        wrong = {
            m.sinusoidal_encoding.BASE_9999: lambda size=(max_len, dim): _with(*size, base=9999),
            m.sinusoidal_encoding.ODD_DIVISOR: lambda size=(max_len, dim): _odd_divisor(*size),
            m.sinusoidal_encoding.ODD_HALVED: lambda size=(max_len, dim): _with(*size, over=size[1] // 2 * 2),
            m.sinusoidal_encoding.ODD_EMPTY: lambda size=(max_len, dim): _last_empty(*size),
        }
        name = f"the encoding of {max_len} positions with dim {dim}"
        expect_tensor(value, (max_len, dim), torch.float32, name)
        _expect_encoding(value.detach(), encoding_oracle(max_len, dim), name, None, wrong)
        expect(not value.requires_grad, m.sinusoidal_encoding.LEARNS)


# Both classes join a table of positions to x; what follows is common to them. (B, n, d, max_len): the batch as large as
# n first, where a row for each sequence fits the shapes.
def _drawn_sizes() -> list[tuple[int, ...]]:
    """Sizes like those of `_SIZES`, drawn at each judgement; the longest sequence has room for the others."""
    return [
        draw_sizes((201, 400), (10, 40), (17, 64), (65, 100)),
        draw_sizes((2, 3), (61, 200), (4, 12), (201, 600)),
        draw_sizes((2, 3), (601, 1200), (4, 12), (1201, 1300)),
        draw_sizes((2, 3), (4, 9), (130, 200), (10, 20)),
    ]


_SIZES = [(4, 4, 6, 9), (2, 5, 4, 5), (3, 2, 7, 8), (1, 6, 3, 11), (5, 1, 2, 3), (2, 3, 1, 4), (4, 1, 1, 1)]


def _joined(x: Tensor, p: Tensor, mode: str) -> Tensor:
    return x + p if mode == "add" else torch.cat([x, p.expand_as(x)], -1)


def _check_joining(make: Callable, table_of: Callable[[Any, int, int], Tensor], mode: str) -> None:
    for batch, n, dim, max_len in [*_SIZES, *_drawn_sizes()]:
        module = call(make, dim, max_len=max_len, mode=mode)
        table = table_of(module, max_len, dim)
        for dtype in (torch.float32, torch.float64):
            module.to(dtype)
            x = randn(batch, n, dim, dtype=dtype)
            with unchanged(x=x):
                value = call(module, x)
            expected = _joined(x.double(), table[:n], mode)
            expect_close(value, expected, "the result", dtype=dtype, tolerance=1e-5)
        again = call(module, x)
        expect_close(again, expected, "the result of a second call with the same x", tolerance=1e-5)
        if n < max_len:  # a longer sequence after a shorter one
            x = randn(batch, max_len, dim)
            expect_close(call(module, x), _joined(x, table, mode), "the result for n = max_len", tolerance=1e-5)


def _check_joining_in_eval(make: Callable, table_of: Callable[[Any, int, int], Tensor], mode: str) -> None:
    for batch, n, dim, max_len in [*_SIZES[:3], *_drawn_sizes()]:
        for rate in (0.0, draw_probability()):
            module = call(make, dim, dropout=rate, max_len=max_len, mode=mode)
            table = table_of(module, max_len, dim)
            module.eval()
            for length in (n, max_len):
                x = randn(batch, length, dim, dtype=torch.float32)
                told = f"the result for x {tuple(x.shape)}, with dropout={rate}, after `.eval()`"
                expected = _joined(x.double(), table[:length], mode)
                expect_close(call(module, x), expected, told, dtype=torch.float32, tolerance=1e-5)


def _check_errors(make: Callable, mode: str, training: bool = True) -> None:
    module = make(4, max_len=6, mode=mode).train(training)
    expect_raises(ValueError, lambda: module(randn(2, 7, 4).float()), "a sequence of 7 positions with max_len=6")
    for wrong in (5, 3, 8):
        expect_raises(ValueError, lambda d=wrong: module(randn(2, 3, d).float()), f"x with {wrong} features and dim=4")
    what = "x with 1 feature and dim=4 (which broadcasting would hide)"
    expect_raises(ValueError, lambda: module(randn(2, 3, 1).float()), what)
    what = "x with 4 features and dim=1 (which broadcasting would hide)"
    narrow = make(1, max_len=6, mode=mode).train(training)
    expect_raises(ValueError, lambda: narrow(randn(2, 3, 4).float()), what)


def _check_dropout(
    module: Any,
    rate: float,
    x: Tensor,
    parts: Sequence[tuple[Mistake, Callable[[float], Sequence[Tensor]]]],
    expected: Tensor | None = None,
) -> None:
    """Dropout zeroes its share of the result while training, and scales what stays.

    Args:
        module: made with `dropout=rate`.
        rate: its share.
        x: its input, large enough to count.
        parts: likely mistakes, each with the values that each entry could then have, given the scale.
        expected: the right result without dropout, if the check knows it.
    """
    expect_same_in_eval(module, [x], f"a module with dropout={rate}", expected)
    plain = module(x)
    module.train()
    value = module(x)
    expect_tensor(value, plain.shape, plain.dtype, "the result while training with dropout")
    value, plain = value.detach(), plain.detach()

    def is_one_of(options: Sequence[Tensor]) -> bool:
        return bool(torch.stack([torch.isclose(value, o, rtol=1e-4, atol=1e-5) for o in options]).any(0).all())

    scale = 1 / (1 - rate)
    what = f"a number of the result in training, with dropout={rate},"
    told = {"what": what, "expected": f"0 or {scale:.4g} times as large"}
    expect(not is_one_of([plain]), m.Positions.NO_DROPOUT, **told, got="what it is in eval mode")
    if not is_one_of([plain * scale, torch.zeros_like(plain)]):
        mistakes = [mistake for mistake, options in parts if is_one_of(options(scale))]
        complain(mistakes[0] if mistakes else m.Positions.DROPOUT_RATE, **told)
    dropped = (value == 0)[:, 1:]  # in the first position the table of sines has zeros of its own
    expect_dropped_singly(dropped, rate, m.Positions.DROPOUT_RATE, f"dropout={rate}")


def _dropout_on_parts(x: Tensor, p: Tensor, mode: str) -> list[tuple[Mistake, Callable[[float], Sequence[Tensor]]]]:
    zero, q = torch.zeros_like(x), p.expand_as(x)
    return [
        (m.Positions.DROPOUT_ON_X, lambda s: [_joined(zero, q, mode), _joined(s * x, q, mode)]),
        (m.Positions.DROPOUT_ON_POSITIONS, lambda s: [_joined(x, zero, mode), _joined(x, s * q, mode)]),
        (m.Positions.DROPOUT_BEFORE, lambda s: [_joined(a, b, mode) for a in (zero, s * x) for b in (zero, s * q)]),
    ]


def _common_checks(make: Callable, table_of: Callable[[Any, int, int], Tensor], mode: str) -> None:
    _check_joining(make, table_of, mode)
    _check_errors(make, mode)
    _check_errors(make, mode, training=False)
    rate = draw_probability()
    module = make(10, dropout=rate, max_len=50, mode=mode)
    table, x = table_of(module, 50, 10).float(), randn(8, 40, 10, dtype=torch.float32)
    _check_dropout(module, rate, x, _dropout_on_parts(x, table[:40], mode), _joined(x, table[:40], mode))
    x = randn(1, 9, 10, dtype=torch.float32).repeat(6, 1, 1)
    many = randn(2, drawn_medium(), 10)
    expect_dropout_anew(lambda rate: call(make, 10, dropout=rate, max_len=600, mode=mode), [x], [many])
    _check_joining_in_eval(make, table_of, mode)
    module = make(3, max_len=6, mode=mode)
    table = table_of(module, 6, 3)
    for training in (True, False):
        module.train(training)
        expect_gradients(
            lambda x: module.to(x.dtype)(x), lambda x: _joined(x, table[: x.shape[1]], mode), {"x": randn(2, 4, 3)}
        )
    expect_device(make(3, max_len=6, mode=mode).to("meta"), {"x": randn(2, 4, 3, dtype=torch.float32)})


def _expect_default_max_len(table: Tensor, rows: int) -> None:
    expect(len(table) == rows, m.Positions.DEFAULT_MAX_LEN, "the number of rows", expected=rows, got=len(table))


def _expect_default_mode(module: Any, x: Tensor, expected: Tensor) -> None:
    value = call(module, x)
    told = {"expected": f"of shape {tuple(x.shape)}", "got": f"shape {tuple(value.shape)}"}
    joined = value.shape[-1] == 2 * x.shape[-1]
    expect(not joined, m.Positions.DEFAULT_MODE, "the result with the default mode", **told)
    expect_close(value, expected, "the result with the default mode, dropout and max_len")


def _checked_buffer(module: Any, max_len: int, dim: int) -> Tensor:
    """The buffer `pe`, which holds the encoding; one that a wrong `sinusoidal_encoding` fills costs nothing here, since
    it is judged again with the right one."""
    expect(not dict(module.named_parameters()), Common.PARAMETER_TOO_MANY, "nothing here is trained")
    pe = dict(module.named_buffers())["pe"]
    expect_tensor(pe, (max_len, dim), name="the buffer `pe`")
    _expect_encoding(pe.detach(), encoding_oracle(max_len, dim), "`pe`", m.Positions.OTHER_TABLE)
    return pe.detach().double().clone()


def _loaded_buffer(module: Any, max_len: int, dim: int) -> Tensor:
    """The same, once the module has loaded it as from a file: that changes nothing, whether it is saved or not."""
    table = _checked_buffer(module, max_len, dim)
    set_weights(module, {"pe": table}, torch.float32)
    loaded = _checked_buffer(module, max_len, dim)
    expect_close(loaded, table, "the buffer `pe` after the module has loaded its own weights")
    return table


def check_PositionEncoding(cls: type[nn.Module], encoding: Callable) -> None:
    """The buffer, both modes, dropout and the errors.

    Args:
        cls: the class.
        encoding: the student's function, which the class may use; that the check cell names both shows whose mistake
            it is when the function is wrong.
    """
    _check_position_encoding_add(cls)
    _check_position_encoding_concat(cls)


def _check_position_encoding_add(cls: type[nn.Module]) -> None:
    """Mode "add", which is the default, the buffer, dropout and the errors."""

    for max_len, dim in [(7, 4), (3, 6), (30, 5), draw_sizes((65, 600), (17, 64))]:
        _checked_buffer(call(cls, dim, max_len=max_len), max_len, dim)
    default = cls(4)
    _expect_default_max_len(dict(default.named_buffers())["pe"], 5000)
    x = randn(2, 3, 4, dtype=torch.float32)
    _expect_default_mode(default, x, x.double() + _loaded_buffer(default, 5000, 4)[:3])
    _common_checks(cls, _loaded_buffer, "add")


def _check_position_encoding_concat(cls: type[nn.Module]) -> None:
    """Mode "concat", arguments by position, and unknown modes."""

    _common_checks(cls, _loaded_buffer, "concat")
    x = randn(2, 3, 4, dtype=torch.float32)
    module = call(cls, 4, 0.0, 6, "concat")
    expected = _joined(x.double(), _loaded_buffer(module, 6, 4)[:3], "concat")
    expect_close(module(x), expected, "the result of PositionEncoding(4, 0.0, 6, 'concat')")
    for mode in ("sum", "expand", ""):
        expect_raises(ValueError, lambda m=mode: cls(4, mode=m), f"PositionEncoding(4, mode={mode!r})")


def _given_weight(module: Any, rows: int, dim: int) -> Tensor:
    """Give `weight` random values; returns them in float64. A student may keep the parameter under a second name."""
    weight = randn(rows, dim).float().double()
    names = module.state_dict()
    dtype = names["weight"].dtype
    set_weights(module, {name: weight for name, value in names.items() if value.shape == weight.shape}, dtype)
    return weight


def _expect_weight_learns(module: Any, oracle: Callable[[Tensor, Tensor], Tensor], weight: Tensor, x: Tensor) -> None:
    expect_parameter_gradients(module, lambda state, x: oracle(state["weight"], x), {"weight": weight}, [x])


def check_PositionEmbedding_join(cls: type[nn.Module]) -> None:
    """Modes "add" and "concat": the weight, the values, its gradient, dropout and the errors."""
    for mode in ("add", "concat"):
        for max_len, dim in [(7, 4), (3, 6), (1, 2)]:
            expect_parameters(call(cls, dim, max_len=max_len, mode=mode), {"weight": (max_len, dim)})
        _common_checks(cls, _given_weight, mode)
        module = cls(3, max_len=6, mode=mode)
        weight = _given_weight(module, 6, 3)
        module.double()
        x = randn(2, 4, 3)
        _expect_weight_learns(module, lambda weight, x, mode=mode: _joined(x, weight[:4], mode), weight, x)
    default, x = cls(3), randn(2, 4, 3, dtype=torch.float32)
    _expect_default_max_len(default.state_dict()["weight"], 512)
    _expect_default_mode(default, x, _joined(x.double(), _given_weight(default, 512, 3)[:4], "add"))
    for mode in ("sum", "relative", ""):
        expect_raises(ValueError, lambda m=mode: cls(4, mode=m), f"PositionEmbedding(4, mode={mode!r})")


def _looked_up(x: Tensor, weight: Tensor) -> Tensor:
    # Row by row, as the definition says.
    largest = len(weight) // 2
    rows = [max(-largest, min(largest, distance)) + largest for distance in x.flatten().tolist()]
    return torch.stack([weight[row] for row in rows]).reshape(*x.shape, weight.shape[1])


def check_PositionEmbedding_expand(cls: type[nn.Module]) -> None:
    """Mode "expand": rows for distances near and far, any shape, the gradient of the weight, dropout."""
    for max_len, dim in [(3, 4), (1, 5), (6, 1)]:
        expect_parameters(call(cls, dim, max_len=max_len, mode="expand"), {"weight": (2 * max_len + 1, dim)})
    for max_len, dim in [(3, 4), (1, 5), (6, 1), (4, 7), draw_sizes((17, 60), (9, 40)), draw_sizes((90, 600), (2, 8))]:
        module = call(cls, dim, max_len=max_len, mode="expand")
        weight = _given_weight(module, 2 * max_len + 1, dim)
        every = torch.arange(-max_len, max_len + 1)
        far = torch.cat([every, torch.tensor([-50, -max_len - 1, max_len + 1, 50])])
        cases = [every, far, torch.arange(5)[None, :] - torch.arange(5)[:, None]]
        beyond = randint(max_len + 1, 1_000_000, (40,))
        cases += [torch.cat([beyond, -beyond]), randint(-2 * max_len, 2 * max_len + 1, draw_sizes((10, 30), (31, 60)))]
        cases += [
            randint(-2 * max_len, 2 * max_len + 1, shape)
            for shape in [(2, 3, 4), (2, 3, 1, 5), (2, 1, 3, 2, 2), (1,), ()]
        ]
        for x in cases:
            name = f"the result for distances of shape {tuple(x.shape)} with max_len={max_len}"
            with unchanged(x=x):
                value = call(module, x)
            expect_close(value, _looked_up(x, weight), name, dtype=torch.float32)
        if max_len > 60:
            x = randint(-2 * max_len, 2 * max_len + 1, draw_sizes((70, 100), (101, 130)))
            name, right = f"the result for {x.numel()} distances", _looked_up(x, weight)
            for training in (True, False):
                expect_close(call(module.train(training), x), right, name)
        module.double()
        expect_tensor(module(every), dtype=torch.float64, name="the result of a module in float64")
    module = cls(3, max_len=2, mode="expand").double()
    weight = _given_weight(module, 5, 3)
    x = randint(-5, 6, (3, 4))
    _expect_weight_learns(module, lambda weight, x: _looked_up(x, weight), weight, x)

    def make(rate: float) -> tuple[Any, Tensor]:
        module = call(cls, 10, dropout=rate, max_len=5, mode="expand")
        return module, _given_weight(module, 11, 10)

    expect_dropout_anew(lambda rate: make(rate)[0], [randint(-9, 10, (1, 9)).repeat(6, 1)])
    rate, distances = draw_probability(), randint(-9, 10, (8, 40))
    module, weight = make(rate)
    _check_dropout(module, rate, distances, [], _looked_up(distances, weight))
    expect_device(cls(3, max_len=2, mode="expand").to("meta"), {"x": x})


# ---- rotary positions


def _rotated(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    # One pair at a time, as the definition says.
    d = x.shape[-1]
    result = torch.empty_like(x)
    for k in range(d // 2):
        t = positions.to(x.dtype) * base ** (-2 * k / d)
        a, b = x[..., 2 * k], x[..., 2 * k + 1]
        result[..., 2 * k] = a * t.cos() - b * t.sin()
        result[..., 2 * k + 1] = a * t.sin() + b * t.cos()
    return result


def _added_up(x: Tensor, positions: Tensor, base: float) -> Tensor:
    first = _reflected(x, positions, base)[..., 0::2]
    return torch.stack([first, _rotated(x, positions, base)[..., 1::2]], -1).flatten(-2)


def _subtracted(x: Tensor, positions: Tensor, base: float) -> Tensor:
    first = _rotated(x, positions, base)[..., 0::2]
    return torch.stack([first, _reflected(x, positions, base)[..., 1::2]], -1).flatten(-2)


def _reflected(x: Tensor, positions: Tensor, base: float) -> Tensor:
    return _rotated(torch.stack([x[..., 0::2], -x[..., 1::2]], -1).flatten(-2), positions, base)


_ROTATION_MISTAKES: dict[Mistake, Callable[[Tensor, Tensor, float], Tensor]] = {
    m.rotate.BASE: lambda x, p, base: _rotated(x, p),
    m.rotate.MIRRORED: _reflected,
    m.rotate.NO_MINUS: _added_up,
    m.rotate.TWO_MINUSES: _subtracted,
    m.rotate.WRONG_DIMENSION: lambda x, p, base: _rotated(x.transpose(-3, -2), p, base).transpose(-3, -2),
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
            wrong = {mistake: lambda f=f, args=args: f(*args) for mistake, f in _ROTATION_MISTAKES.items()}
            _expect_rotated(value, _rotated(*args), name, 5e-4, wrong, dtype)
    _check_rotation_at_drawn_sizes(function)
    _check_rotation_of_other_positions(function)
    for dtype, tolerance, far in ((torch.bfloat16, 4e-2, [259, 301, 1003]), (torch.float16, 1e-2, [2501, 4003, 9001])):
        x, positions = randn(5, 4, dtype=dtype), torch.tensor([0, 3, *far])
        value, right = call(function, x, positions), _rotated(x.double(), positions)
        name = f"x of dtype {str(dtype).removeprefix('torch.')}, rotated,"
        expect_close(value, right, name, None, dtype, tolerance, f"positions up to {far[-1]}", m.rotate.HALF_ANGLES)
    for odd in (1, 3, 5):
        what = f"x with {odd} feature{'s' * (odd > 1)}, an odd number,"
        expect_raises(ValueError, lambda d=odd: function(randn(2, 4, d), torch.arange(4)), what)
    for lead in ((2,), (), (2, 3), (3, 1, 2)):
        _check_rotation_gradient(function, lead)
    expect_device(function, {"x": randn(2, 3, 4, dtype=torch.float32), "positions": torch.arange(3)})


def _check_rotation_at_drawn_sizes(function: Callable) -> None:
    """Many positions, features and bases, drawn anew; what is near to the precision of float32, what is far to less."""
    for lead, n, half, far in (
        ((), draw_sizes((17, 60))[0], draw_sizes((9, 64))[0], 100),
        ((), 3, draw_sizes((65, 90))[0], 100),
        (draw_sizes((21, 400)), 3, 2, 100),
        (draw_sizes((2, 5), (2, 5), (2, 5), (2, 5)), 3, 2, 100),
        (draw_sizes((6, 12), (2, 5)), draw_sizes((20, 60))[0], draw_sizes((2, 20))[0], 1000),
        (draw_sizes((2, 3)), draw_sizes((61, 200))[0], draw_sizes((2, 6))[0], 1000),
        (draw_sizes((2, 3)), draw_sizes((201, 600))[0], draw_sizes((2, 6))[0], 20_000),
    ):
        shape, positions = (*lead, n, 2 * half), randint(0, far, (n,))
        # A small base first: it turns the last pairs far enough for a wrong number not to pass as a coarse one.
        bases = float(randint(2, 100, ())), float(randint(20, 1_000_000, ())), float(randint(1_000_000, 10**9, ()))
        for base in (bases[0], 10_000.0, *bases[1:]):
            x = randn(*shape, dtype=torch.float32)
            value = call(function, x, positions, base)
            name = f"x of shape {shape} at positions to {far}, rotated with base {base:g},"
            expect_tensor(value, shape, torch.float32, name)
            right = _rotated(x.double(), positions, base)
            _expect_rotated(value, right, name, 3 * _angles_rounding(far))


def _expect_rotated(
    value: Any,
    right: Tensor,
    name: str,
    tolerance: float,
    mistakes: Mapping[Mistake, Callable[[], Tensor]] | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    expect_tensor(value, right.shape, name=name)
    nearly = torch.allclose(value.detach().double(), right, rtol=0.02, atol=0.02)
    expect_close(value, right, name, mistakes, dtype, tolerance, otherwise=m.rotate.COARSE if nearly else None)


def _check_rotation_of_other_positions(function: Callable) -> None:
    for what, positions in (
        ("negative positions", torch.tensor([-3, 0, -1, 7])),
        ("positions far below 0", -_positions(4, 900)),
        ("drawn positions that are not whole numbers", 40 * randn(4).float()),
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


def _check_rotation_gradient(function: Callable, lead: tuple[int, ...]) -> None:
    positions = _positions(5)
    for dtype in (torch.float64, torch.float32):
        direction, asked = randn(*lead, 5, 6, dtype=dtype), f"x of {dtype}"
        with torch.enable_grad():
            x = randn(*lead, 5, 6, dtype=dtype).requires_grad_()
            value = call(function, x, positions)
            expect(value.requires_grad, Common.CUT_OFF, asked=asked)
            (gradient,) = gradients_of(value, [x], direction)
        expect(gradient is not None, Common.INPUT_CUT_OFF, "the input without gradient is `x`", asked=asked)
        # The transpose of a rotation is the rotation back.
        name, right = "the gradient with respect to `x`", _rotated(direction.double(), -positions)
        expect_close(gradient, right, name, None, None, 5e-4, asked, Common.WRONG_GRADIENT)
        with torch.no_grad():
            name, right = "the result where no gradients are recorded", _rotated(x.detach().double(), positions)
            expect_close(call(function, x.detach(), positions), right, name, tolerance=5e-4, asked=asked)
