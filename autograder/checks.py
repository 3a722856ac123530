"""What hidden tests are written with: each function compares, and fails with a message that names the mistake.

The tested objects are real ones in a notebook and proxies in the grader (`autograder.wire.proxy.Remote`); the same test
serves both. Where the two differ, the difference is made here.
"""

import inspect
import math
import re
import secrets
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from autograder.draws import seed_generator
from autograder.mistakes import (
    Common,
    Complaint,
    Mistake,
    Unexplained,
    asks_about,
    complain,
    expect,
    found,
    raised,
    unwritten,
)
from autograder.rules import Rule, asks, heard
from autograder.verdict import Credit
from autograder.wire import protocol, proxy

# Checks take from here what they need of mistakes and verdicts, too.
__all__ = ["Common", "Complaint", "Credit", "Mistake", "Unexplained", "complain", "expect", "found", "raised"]

T = TypeVar("T")
# Fresh numbers at each run, without touching the random numbers of the notebook that is checked: a seed, and how many
# draws there were.
_generator = torch.Generator()
_stream = [secrets.randbits(64), 0]

# What is right to float32's precision is right, in float64 as well: a constant, or a part of the way, may have no more.
_TOLERANCE = {torch.float64: 2e-5, torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}
# Of gradients that are computed in float32.
_TRAINED = 1e-3
# A loop that goes as far for small arguments as for large ones makes more.
_MOST_CALLS, _MOST_STEPS = 500, 20_000
_METADATA = {"__get__", "size", "dim", "stride", "numel", "is_floating_point", "__len__", "__set__", "ndimension"}


def reseed(number: int) -> None:
    """Let the numbers that checks draw come from this seed, so that a verdict can be had again."""
    _stream[:] = number, 0


def _fresh() -> torch.Generator:
    """The generator in a state of its own for each draw: what student code sees of one tells nothing of the next."""
    _stream[1] += 1
    seed_generator(_generator, *_stream)
    return _generator


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers, new ones at each run."""
    # Those of float32 are drawn several times as fast; float64's have digits that float32 would lose.
    drawn_as = torch.float32 if dtype == torch.float32 else torch.float64
    return torch.randn(shape, generator=_fresh(), dtype=drawn_as).to(dtype)


def randint(low: int, high: int, shape: Sequence[int]) -> Tensor:
    """Random integers in `[low, high)`, new ones at each run."""
    return torch.randint(low, high, tuple(shape), generator=_fresh())


def draw_size(low: int = 601, high: int = 1200) -> int:
    """A size from `low` to `high` that nobody foretells, so that no answer can be right for the sizes tried alone."""
    return int(randint(low, high + 1, ()))


def rand_weights(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random attention weights: positive, the last dimension sums to 1."""
    return randn(*shape).softmax(-1).to(dtype)


def rand_mask(*shape: int, empty_row: bool = False) -> Tensor:
    """A random mask that allows and blocks something in each row of more than one key.

    Args:
        shape: the last is the number of keys.
        empty_row: let the last row allow nothing.
    """
    keys = shape[-1]
    mask = randint(0, 2, shape).bool()
    if keys > 1:
        blocked, further = randint(0, keys, (*shape[:-1], 1)), randint(1, keys, (*shape[:-1], 1))
        mask = mask.scatter(-1, blocked, False).scatter(-1, (blocked + further) % keys, True)
    if empty_row:
        mask.view(-1, keys)[-1] = False
    return mask


def randomise(
    module: nn.Module, shapes: Mapping[str, Sequence[int]], dtype: torch.dtype = torch.float64, scale: float = 0.5
) -> dict[str, Tensor]:
    """Give a module's weights random, non-trivial values (all-ones weights hide mistakes).

    Names and shapes are the ones that the exercise promises, and the values are the check's own: nothing of the module
    is read, so that nothing which its class overrides decides what the oracle computes from.

    Args:
        module: a module, or the proxy of one; it is converted to `dtype`.
        shapes: shape by name of each weight. A weight that is there under several names is given under all of them
            to `set_weights` instead.
        dtype: of the module.
        scale: the standard deviation of the values.

    Returns:
        The values in float64, for the oracle.
    """
    state = {name: (scale * randn(*shape)).to(dtype).double() for name, shape in shapes.items()}
    set_weights(module, state, dtype)
    return state


def set_weights(module: nn.Module, state: Mapping[str, Tensor], dtype: torch.dtype = torch.float64) -> None:
    """Give a module these weights; it gets copies, and weights that are not named stay as they are.

    Args:
        module: a module, or the proxy of one; it is converted to `dtype`.
        state: value by name, which `dtype` can hold exactly.
        dtype: of the module.
    """
    module.to(dtype)
    module.load_state_dict({name: value.to(dtype, copy=True) for name, value in state.items()}, strict=False)


def draw_sizes(*ranges: tuple[int, int]) -> tuple[int, ...]:
    """Sizes that nobody can foretell, pairwise different.

    Args:
        ranges: the smallest and the largest of each; what they hold together must leave room for different ones.
    """
    while True:
        sizes = tuple(draw_size(low, high) for low, high in ranges)
        if len(set(sizes)) == len(sizes):
            return sizes


def expect_tensor(
    value: Any,
    shape: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    name: str = "the result",
    asked: str = "",
) -> None:
    """Fail unless `value` is a tensor of this shape and dtype."""
    expect(value is not None, Common.NO_RETURN, name, asked=asked, expected="a torch.Tensor", got="None")
    expect(
        isinstance(value, Tensor), Common.NOT_A_TENSOR, name, asked=asked, expected="a torch.Tensor", got=_kind(value)
    )
    if shape is not None and tuple(value.shape) != tuple(shape):
        raise _wrong_shape(value, tuple(shape), Unexplained.SHAPE, name, asked)
    if dtype is not None:
        other, half = dtype.is_floating_point and dtype != torch.float32, dtype in (torch.float16, torch.bfloat16)
        asks(Rule.DTYPE, *[Rule.DTYPES] * other, *[Rule.HALF] * half)
        expect(value.dtype == dtype, Common.WRONG_DTYPE, name, asked=asked, expected=dtype, got=value.dtype)


def _wrong_shape(value: Tensor, shape: tuple[int, ...], mistake: Mistake, name: str, asked: str) -> Complaint:
    told = {"expected": f"of shape {shape}", "got": f"shape {tuple(value.shape)}"}
    squeezed = tuple(value.shape) == tuple(size for size in shape if size != 1)
    mistake = Common.ONES_SQUEEZED if squeezed and mistake is Unexplained.SHAPE else mistake
    return Complaint(found(mistake, name, asked=asked, **told))


def expect_close(
    value: Any,
    expected: Tensor,
    name: str = "the result",
    mistakes: Mapping[Mistake, Callable[[], Tensor]] | None = None,
    dtype: torch.dtype | None = None,
    tolerance: float | None = None,
    asked: str = "",
    otherwise: Mistake | None = None,
) -> None:
    """Fail unless `value` is a tensor with the expected shape, dtype and values.

    Args:
        value: what the student's code returned.
        expected: the oracle's result, usually in float64.
        name: what the message calls it.
        mistakes: those that can be recognised, each with a function that computes what it would give; the first that
            matches is named. A wrong result of another shape counts too.
        dtype: the dtype that `value` must have, if it matters.
        tolerance: relative and absolute; fit to the value's dtype by default.
        asked: for which arguments.
        otherwise: the mistake to name when the values are wrong and none of `mistakes` gives them.
    """
    asks_about(*(mistakes or ()), otherwise)
    expect_tensor(value, None, None, name, asked)
    expect(not value.is_complex() or expected.is_complex(), Common.COMPLEX, name, asked=asked, got=value.dtype)
    value = value.detach()
    if value.shape != expected.shape:
        misshapen = _recognised(value, expected, mistakes, tolerance) or Unexplained.SHAPE
        raise _wrong_shape(value, tuple(expected.shape), misshapen, name, asked)
    expect_tensor(value, expected.shape, dtype, name, asked)
    if dtype is None and value.dtype in (torch.float16, torch.bfloat16):
        tolerance = tolerance or _TOLERANCE[torch.float32]  # what nobody asked to be coarse is held to what is usual
    if _close(value, expected, tolerance):
        return
    mistake = _recognised(value, expected, mistakes, tolerance) or otherwise or Unexplained.VALUES
    if value.is_floating_point() and value.isnan().any() and not expected.isnan().any():
        mistake = {Unexplained.VALUES: Common.NAN, Common.WRONG_GRADIENT: Common.NAN_GRADIENT}.get(mistake, mistake)
    right, wrong, where = _difference(value, expected, tolerance)
    finding = found(mistake, name, asked=asked, expected=right, got=wrong, where=where)
    raise Complaint(finding, expected.detach(), value)


def given(wrong: Mapping[Mistake, T]) -> dict[Mistake, Callable[[], T]]:
    """What mistakes are known to give, by hand say, as `expect_close` and `expect_number` take it."""

    def giving(value: T) -> Callable[[], T]:
        return lambda: value

    return {mistake: giving(value) for mistake, value in wrong.items()}


def _close(value: Tensor, expected: Tensor, tolerance: float | None) -> bool:
    if value.shape != expected.shape:
        return False
    limit = tolerance or _TOLERANCE.get(value.dtype, 0.0)
    value, expected = value.double(), expected.detach().double()
    # Most results are closer than the absolute tolerance alone, which shows in a tenth of `allclose`'s time.
    if value.numel() and (value - expected).abs_().max() <= limit:
        return True
    return torch.allclose(value, expected, rtol=limit, atol=limit, equal_nan=True)


def _recognised(
    value: Tensor, expected: Tensor, mistakes: Mapping[Mistake, Callable[[], Tensor]] | None, tolerance: float | None
) -> Mistake | None:
    for mistake, compute in (mistakes or {}).items():
        try:
            wrong = compute()
        except (RuntimeError, IndexError, ValueError):
            continue  # this mistake cannot be made at these sizes
        if _close(value, wrong, tolerance) and not _close(wrong, expected, tolerance):
            return mistake
    return None


def _difference(value: Tensor, expected: Tensor, tolerance: float | None) -> tuple[Any, Any, str]:
    """The entry that is farthest off: what it should be, what it is, and which one of how many."""
    if value.numel() == 1:
        return expected.item(), value.item(), ""
    gap = (value.double() - expected.detach().double()).abs().nan_to_num(nan=float("inf"))
    where = (gap == gap.max()).nonzero()[0].tolist()  # `unravel_index` would import sympy: a second
    limit = tolerance or _TOLERANCE.get(value.dtype, 0.0)
    count = int((gap > limit * (1 + expected.detach().double().abs().nan_to_num())).sum())
    place = f"at [{', '.join(map(str, where))}]"
    told = f"{place}, the only wrong one" if count == 1 else f"{place}, the farthest off of {count} wrong"
    return expected[tuple(where)].item(), value[tuple(where)].item(), f"{told} among {gap.numel()} numbers"


@contextmanager
def unchanged(**tensors: Tensor) -> Iterator[None]:
    """Fail if the code inside changes one of these tensors in place.

    In the grader these tensors never change: there the worker says which of them student code has changed.
    """
    before = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    with proxy.watch_changes() as changes:
        yield
    for name, tensor in tensors.items():
        same = torch.equal(tensor.detach().nan_to_num(), before[name].nan_to_num())
        changed = not same or any(_share_memory(tensor, other) for other, _ in changes)
        expect(not changed, Common.CHANGED_IN_PLACE, f"the input that was changed is `{name}`")


def changed_in_place(function: Callable, x: Tensor, *args: Any) -> Tensor:
    """What `x` holds after `function(x, *args)`, for an exercise that is to change it in place; `x` stays as it is."""
    given = x.detach().clone()
    with proxy.watch_changes() as changes:
        call(function, given, *args)
    return next((values for tensor, values in reversed(changes) if tensor is given), given)


@contextmanager
def naming(mistake: Mistake) -> Iterator[None]:
    """Give this mistake as the cause of whatever fails inside, where nothing but it is left to fail."""
    try:
        yield
    except Complaint as complaint:
        finding = replace(complaint.finding, mistake=mistake.id, says=mistake.says)
        raise Complaint(finding, complaint.expected, complaint.got) from complaint


@contextmanager
def explaining(asked: str, signs: Mapping[str, Mistake]) -> Iterator[None]:
    """Give the mistake behind an error that is raised inside, where its text tells more than it does elsewhere.

    Args:
        asked: for which arguments the call is made.
        signs: patterns of `re`, each with the mistake behind an error in which it is found; the first one counts.
    """
    try:
        yield
    except Complaint as complaint:
        got = str(complaint.finding.got)
        for sign, mistake in signs.items():
            if re.search(sign, got):
                complain(mistake, "the call", asked=asked, got=got)
        raise


def _share_memory(one: Tensor, other: Tensor) -> bool:
    if "meta" in (one.device.type, other.device.type):
        return one is other
    if one.numel() == 0 or other.numel() == 0:
        return one is other
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _each_mode(module: nn.Module) -> Iterator[str]:
    """A module in training and in evaluation, and what a message says of it; afterwards as it was."""
    before = bool(module.training)
    for mode in (True, False):
        module.train(mode)
        yield "" if mode else "a call after `.eval()`"
    module.train(before)


def expect_gradients(
    function: Callable[..., Tensor],
    oracle: Callable[..., Tensor],
    inputs: Mapping[str, Tensor],
    mistakes: Mapping[Mistake, Callable[..., Tensor]] | None = None,
    tolerance: float = _TOLERANCE[torch.float64],
    module: nn.Module | None = None,
) -> None:
    """Fail unless gradients flow from the result to each floating-point input and equal the oracle's.

    Args:
        function: the student's function, called with `inputs` in order, in float64; it returns one tensor. One that is
            no module's is called in float32 too, as in training, and once where no gradients are recorded.
        oracle: the same, right.
        inputs: name and value of each argument; names are used in messages.
        mistakes: those that can be recognised, each with a function that computes what is differentiated then (see
            `expect_close`), called with the same inputs as the oracle.
        tolerance: relative and absolute; float32's by default.
        module: the module in the function, if it is not the function itself: gradients are asked for in both its modes.
    """
    if module is None and isinstance(function, nn.Module):
        module = function
    for asked in [""] if module is None else _each_mode(module):
        _expect_gradients(function, oracle, inputs, mistakes, tolerance, asked)
    if module is None:
        _expect_gradients(function, oracle, inputs, mistakes, _TRAINED, "float32 throughout", torch.float32)
        _expect_same_unrecorded(function, oracle, inputs, "the result", tolerance)


def _expect_gradients(
    function: Callable[..., Tensor],
    oracle: Callable[..., Tensor],
    inputs: Mapping[str, Tensor],
    mistakes: Mapping[Mistake, Callable[..., Tensor]] | None,
    tolerance: float,
    asked: str,
    dtype: torch.dtype = torch.float64,
) -> None:
    with torch.enable_grad():
        mine, theirs = _leaves(inputs, dtype), _leaves(inputs)
        result, expected = function(*mine), oracle(*theirs)
        expect_tensor(result, expected.shape, asked=asked)
        expect(result.requires_grad, Common.CUT_OFF, asked=asked)
        direction = randn(*expected.shape, dtype=torch.float64)
        floats = [(name, a, b) for name, a, b in zip(inputs, mine, theirs, strict=True) if _is_float(a)]
        got = gradients_of(result, [a for _, a, _ in floats], direction)
        wanted = gradients_of(expected, [b for _, _, b in floats], direction)
    for (name, a, _), gradient, right in zip(floats, got, wanted, strict=True):
        right = torch.zeros_like(a) if right is None else right
        arrived, what = gradient is not None or not right.any(), f"the input without gradient is `{name}`"
        expect(arrived, Common.INPUT_CUT_OFF, what, asked=asked)
        gradient = torch.zeros_like(a) if gradient is None else gradient
        wrong = {m: lambda f=f, name=name: _gradient(f, inputs, direction, name) for m, f in (mistakes or {}).items()}
        what = f"the gradient with respect to `{name}`"
        expect_close(gradient, right, what, wrong, None, tolerance, asked, Common.WRONG_GRADIENT)
    expect_close(result, expected, "the result for inputs that want a gradient", None, None, tolerance, asked)


def gradients_of(value: Tensor, leaves: Sequence[Tensor], direction: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of `(value * direction).sum()`, None for a leaf that `value` does not depend on.

    `torch.autograd.grad` gives the same for a direction, but imports sympy to compare sizes: half a second.
    """
    return torch.autograd.grad((value * direction.to(value.dtype)).sum(), leaves, allow_unused=True)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _leaves(inputs: Mapping[str, Any], dtype: torch.dtype = torch.float64) -> list[Any]:
    return [v.detach().to(dtype, copy=True).requires_grad_() if _is_float(v) else v for v in inputs.values()]


def _gradient(function: Callable[..., Tensor], inputs: Mapping[str, Any], direction: Tensor, name: str) -> Tensor:
    with torch.enable_grad():
        leaves = _leaves(inputs)
        leaf = leaves[list(inputs).index(name)]
        (gradient,) = gradients_of(function(*leaves), [leaf], direction)
    return torch.zeros_like(leaf) if gradient is None else gradient


def expect_parameters(
    module: nn.Module, shapes: Mapping[str, Sequence[int]], hints: Mapping[str, Mistake] | None = None
) -> None:
    """Fail unless a module has exactly these parameters.

    Args:
        module: a module, or the proxy of one.
        shapes: shape by name.
        hints: the mistake behind a parameter that is missing or has another shape, by a part of its name; the first
            that fits is named.
    """
    parameters = named_parameters(module)
    names = {id(parameters[name]): name for name in reversed(list(shapes)) if name in parameters}
    shared = {name for name in shapes if name in parameters and names[id(parameters[name])] != name}
    there = {name: tuple(parameter.shape) for name, parameter in parameters.items() if name not in shared}
    for name, shape in shapes.items():
        mistake = next((m for part, m in (hints or {}).items() if part in name), None)
        what = f"the parameter `{name}`"
        if name not in there:
            given = f"only {', '.join(there) or 'none'}"
            complain(mistake or Common.PARAMETER_MISSING, what, expected=f"there, of shape {tuple(shape)}", got=given)
        told = {"expected": f"of shape {tuple(shape)}", "got": f"shape {there[name]}"}
        expect(there[name] == tuple(shape), mistake or Common.PARAMETER_SHAPE, what, **told)
    promised = {id(parameters[name]) for name in shapes}
    more = sorted(name for name, parameter in parameters.items() if id(parameter) not in promised)
    expect(not more, Common.PARAMETER_TOO_MANY, f"the one too many is `{more[0]}`" if more else "")


def named_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of a module by name, by each of its names: an `nn.Sequential` may hold the same layers again."""
    return dict(module.named_parameters(remove_duplicate=False))


def named_buffers(module: nn.Module) -> dict[str, Tensor]:
    """The buffers of a module by name, by each of its names."""
    return dict(module.named_buffers(remove_duplicate=False))


def learning_names(module: nn.Module) -> list[str]:
    """The names of a module's parameters that learn; to be placed beside it."""
    return sorted(name for name, parameter in module.named_parameters() if parameter.requires_grad)


def build(
    make: Callable[[], nn.Module],
    shapes: Mapping[str, Sequence[int]],
    hints: Mapping[str, Mistake] | None = None,
    dtype: torch.dtype = torch.float64,
) -> tuple[nn.Module, dict[str, Tensor]]:
    """A student's module with random weights, once its parameters are the ones promised.

    Args:
        make: makes it.
        shapes: shape by name of each parameter.
        hints: a mistake by a part of the name, see `expect_parameters`.
        dtype: of the module.

    Returns:
        The module and its parameters' values in float64, for the oracle.
    """
    module = call(make)
    expect_parameters(module, shapes, hints)
    return module, randomise(module, shapes, dtype)


def expect_parameter_gradients(
    module: nn.Module,
    oracle: Callable[..., Tensor],
    state: Mapping[str, Tensor],
    inputs: Sequence[Any],
    tolerance: float = _TOLERANCE[torch.float64],
) -> None:
    """Fail unless each parameter receives the gradient that it receives in the oracle, and learns by it.

    Args:
        module: a module in float64, or the proxy of one; the first counts if it returns several things.
        oracle: called with a state and the inputs, returns the right result.
        state: the module's weights.
        inputs: what the module is called with, in both its modes: without dropout it computes the same.
        tolerance: relative and absolute; float32's by default.
    """
    for asked in _each_mode(module):
        _expect_parameter_gradients(module, oracle, state, inputs, tolerance, asked)
    expect_trained(module, oracle, state, inputs)


def _expect_parameter_gradients(
    module: nn.Module,
    oracle: Callable[..., Tensor],
    state: Mapping[str, Tensor],
    inputs: Sequence[Any],
    tolerance: float,
    asked: str,
) -> None:
    with torch.enable_grad():
        leaves = {name: value.detach().clone().requires_grad_() for name, value in state.items()}
        expected = oracle(leaves, *inputs)
        direction = randn(*expected.shape)
        module.zero_grad()
        result = call(module, *inputs)
        result = result[0] if isinstance(result, tuple | list) else result
        expect(result.requires_grad, Common.CUT_OFF, asked=asked)
        (result * direction).sum().backward()
        wanted = gradients_of(expected, [*leaves.values()], direction)
    parameters = named_parameters(module)
    missing = [name for name in leaves if name not in parameters]
    expect(not missing, Common.PARAMETER_MISSING, f"after a call, the parameter `{missing[0]}`" if missing else "")
    given = {name: parameters[name].grad for name in leaves}
    for name, right in zip(leaves, wanted, strict=True):
        # The bias of the keys moves all scores of a row alike, so that its gradient is zero but for rounding.
        learns = right is not None and right.abs().max() > 1e-9
        gradient = given[name]
        arrived = gradient is not None and gradient.any()
        what = f"the parameter without gradient is `{name}`"
        expect(not learns or arrived, Common.PARAMETER_UNUSED, what, asked=asked)
    for name, right in zip(leaves, wanted, strict=True):
        zeros = torch.zeros_like(leaves[name])
        got = zeros if given[name] is None else given[name]
        right = zeros if right is None else right
        what = f"the gradient of the parameter `{name}`"
        expect_close(got, right, what, None, None, tolerance, asked, Common.WRONG_GRADIENT)


def expect_trained(
    module: nn.Module,
    oracle: Callable[..., Tensor],
    state: Mapping[str, Tensor],
    inputs: Sequence[Any],
) -> None:
    """Fail unless a module learns as it is trained: in float32, by steps that change its parameters in place.

    Its gradients are the oracle's; what it gives is the same where none are recorded; and after a step along them it
    computes with the new parameters. It is left in float64, with the weights that it had.

    Args:
        module: a module without dropout, or the proxy of one; the first counts if it returns several things.
        oracle: called with a state and the inputs, returns the right result.
        state: the module's weights; those that are named here are trained.
        inputs: what the module is called with.
    """
    asked = "float32 throughout"
    module.zero_grad()
    set_weights(module, state, torch.float32)
    given = [x.float() if _is_float(x) else x for x in inputs]
    right_inputs = [x.double() if _is_float(x) else x for x in given]

    def result() -> Tensor:
        value = call(module, *given)
        return value[0] if isinstance(value, tuple | list) else value

    with torch.enable_grad():
        leaves = {name: value.detach().float().double().requires_grad_() for name, value in state.items()}
        expected = oracle(leaves, *right_inputs)
        direction = randn(*expected.shape)
        module.zero_grad()
        value = result()
        expect_tensor(value, expected.shape, torch.float32, asked=asked)
        expect(value.requires_grad, Common.CUT_OFF, asked=asked)
        (value * direction.float()).sum().backward()
        slopes = gradients_of(expected, [*leaves.values()], direction)
    parameters, stepped = named_parameters(module), {}
    # Where the right gradient is zero, as that of the keys' bias, there is float32's rounding of larger ones.
    least = 0.01 * max(slope.abs().max().item() for slope in slopes if slope is not None)
    for (name, leaf), wanted in zip(leaves.items(), slopes, strict=True):
        right = torch.zeros_like(leaf) if wanted is None else wanted
        largest = max(right.abs().max().item(), least)
        gradient = parameters[name].grad
        got = torch.zeros_like(right) if gradient is None else gradient.double() / largest
        what = f"the gradient of the parameter `{name}`"
        otherwise = Common.WRONG_GRADIENT if got.any() else Common.PARAMETER_UNUSED
        expect_close(got, right / largest, what, None, None, _TRAINED, asked, otherwise)
        stepped[name] = leaf.detach() - 0.1 * right / largest
    with torch.no_grad():
        what = "the result where no gradients are recorded"
        expect_close(result(), expected, what, tolerance=_TRAINED, asked=asked)
        for name, new in stepped.items():
            parameters[name].copy_(new)
        what = "the result after a step of an optimizer"
        expect_close(result(), oracle(stepped, *right_inputs), what, None, None, _TRAINED, asked, Common.WEIGHTS_KEPT)
    module.zero_grad()  # none of float32 is there when the parameters become float64
    del parameters
    set_weights(module, state)


def expect_same_in_eval(
    module: nn.Module,
    inputs: Sequence[Any],
    name: str,
    expected: Tensor | None = None,
    tolerance: float | None = None,
) -> None:
    """Fail unless `.eval()` switches dropout off.

    Args:
        module: a module made with dropout, or the proxy of one; the first counts if it returns several things. It is
            left in evaluation mode.
        inputs: what it is called with.
        name: what the message calls it.
        expected: the right result.
        tolerance: relative and absolute; fit to the result's dtype by default.
    """
    module.eval()
    first, second = (call(module, *inputs) for _ in range(2))
    first, second = (r[0] if isinstance(r, tuple | list) else r for r in (first, second))
    expect_tensor(first)
    expect(torch.equal(first, second), Common.DROPOUT_IN_EVAL, f"it was seen in {name}")
    if expected is not None:
        expect_close(first, expected, f"the result of {name} with dropout, after `.eval()`,", tolerance=tolerance)


def nearest(value: Any, *wrong: Tensor) -> Tensor:
    """What a mistake gives that can be made in several ways: the nearest to what came."""
    alike = [w for w in wrong if isinstance(value, Tensor) and value.shape == w.shape]
    return min(alike, key=lambda w: (value - w).abs().max().item()) if alike else wrong[0]


def draw_probability(low: float = 0.15, high: float = 0.6) -> float:
    """A probability for dropout that nobody can foretell; by default neither near 0 nor near 1."""
    return round(low + (high - low) * torch.rand((), generator=_fresh()).item(), 3)


# Dropout is to be awake at a probability of each of these, in one of so many calls.
_PROBABILITIES = ((0.03, 0.1), (0.1, 0.3), (0.3, 0.45), (0.45, 0.65), (0.65, 0.95))
_CALLS = 9


def expect_dropout_anew(make: Callable[[float], nn.Module], inputs: Sequence[Any], many: Sequence[Any] = ()) -> None:
    """Fail unless dropout is awake at probabilities that the check draws, and draws anew for each call and item.

    A gradient reaches each input and parameter that it reaches in evaluation.

    With 150 numbers to drop or more, chance alone makes a right answer fail less than once in a million judgements.

    Args:
        make: makes a module with this probability, whose weights are not zero; the first counts if it returns several
            things.
        inputs: what it is called with: a batch whose items are all equal, and so large that they are not all dropped
            alike by chance.
        many: the same for many positions, where it is looked whether dropout is awake; nothing if there are none.
    """
    probability = draw_probability()
    module, asked = make(probability), f"dropout {probability:g}, while training"

    def learning() -> tuple[Tensor, set[str], set[int]]:
        """The result, the parameters that a gradient reaches, and the places of the inputs that it reaches."""
        module.zero_grad()
        leaves = [x.detach().clone().requires_grad_() if _is_float(x) else x for x in inputs]
        with torch.enable_grad():
            value = _first_result(module, leaves)
            if value.requires_grad:
                (value * randn(*value.shape)).sum().backward()
        gradients = {name: parameter.grad for name, parameter in named_parameters(module).items()}
        reached = {name for name, grad in gradients.items() if grad is not None and grad.abs().max() > 1e-9}
        given = {i for i, x in enumerate(leaves) if _is_float(x) and x.grad is not None and x.grad.abs().max() > 1e-9}
        return value.detach().double(), reached, given

    module.eval()
    plain, learns, depends = learning()
    module.train()
    first, learns_too, depends_too = learning()
    later = [_first_result(module, inputs).detach().double() for _ in range(4)]
    # Before the gradients: what drops the same in each item may drop everything in all of them.
    awake = first.shape == plain.shape and not _close(first, plain, 1e-5)
    alike = awake and _close(first, first[:1].expand_as(first), 1e-5)
    expect(not alike, Common.DROPOUT_ONE_FOR_ALL, "the result for a batch of equal items", asked=asked)
    cut = sorted(learns - learns_too)
    expect(not cut, Common.PARAMETER_UNUSED, f"the parameter without gradient is `{(cut or [''])[0]}`", asked=asked)
    lost = sorted(depends - depends_too)
    what = f"the input without gradient is number {lost[0] + 1}" if lost else ""
    expect(not lost, Common.INPUT_CUT_OFF, what, asked=asked)
    for value in (first, *later):
        expect_tensor(value, plain.shape, asked=asked)
        expect(not _close(value, plain, 1e-5), Common.DROPOUT_ASLEEP, "the result", asked=asked)
    repeated = any(_close(one, other, 1e-5) for one, other in combinations((first, *later), 2))
    expect(not repeated, Common.DROPOUT_REPEATED, "the result", asked=asked)
    for limits in _PROBABILITIES:
        probability = draw_probability(*limits)
        _expect_awake(make(probability), inputs, f"dropout {probability:g}, while training")
    if many:
        _expect_awake(make(draw_probability()), many, "many positions, while training")


def _expect_awake(module: nn.Module, inputs: Sequence[Any], asked: str) -> None:
    """Fail unless a module drops something in one of so many calls while it trains, in float32."""
    module.to(torch.float32).eval()
    given = [x.to(torch.float32) if _is_float(x) else x for x in inputs]
    plain = _first_result(module, given).detach().double()
    module.train()
    awake = any(not _close(_first_result(module, given).detach().double(), plain, 1e-5) for _ in range(_CALLS))
    expect(awake, Common.DROPOUT_ASLEEP, "the result", asked=asked)


def _first_result(module: nn.Module, inputs: Sequence[Any]) -> Tensor:
    """What a module returns, or the first thing that it does."""
    value = call(module, *inputs)
    value = value[0] if isinstance(value, tuple | list) else value
    expect_tensor(value)
    return value


# Standard deviations within which a count of what is dropped must stay.
DROPOUT_LUCK = 7.0
# The least entries that tell: with fewer, what is dropped together would not show beside chance.
DROPOUT_ENTRIES = 2500  # half the probability shows in these beyond chance, too


def expect_dropped_singly(dropped: Tensor, probability: float, share: Mistake, asked: str = "") -> None:
    """Fail unless each entry was dropped by itself, with this probability.

    How many are dropped is a binomial number, and so is along each dimension how many entries of the first half share
    the lot of their partner in the second half. A right answer fails by chance less than once in a million judgements,
    each of which looks at fewer than a hundred such numbers: `tests/test_chance.py` computes it.

    Args:
        dropped: bool, True where an entry was dropped; at least `DROPOUT_ENTRIES` of them.
        probability: between those that `draw_probability` draws.
        share: the mistake to name if another share is dropped.
        asked: for which arguments.
    """
    assert dropped.numel() >= DROPOUT_ENTRIES, "too few entries to tell chance from a mistake"
    expect_not_dropped_together(dropped, range(dropped.dim()))
    got = dropped.double().mean().item()
    alike = got**2 + (1 - got) ** 2  # of the share that was dropped, right or wrong: that is judged next
    for dim, size in enumerate(dropped.shape):
        if size > 1:
            same = _same_as_partner(dropped, dim)
            told = {"expected": f"about {alike:.2f}", "got": f"{same.double().mean():.2f}"}
            what = f"the share of entries along dimension {dim} with the same lot"
            expect(within_luck(int(same.sum()), same.numel(), alike), Common.DROPOUT_TOGETHER, what, **told)
    near = within_luck(int(dropped.sum()), dropped.numel(), probability)
    told = {"asked": asked, "expected": f"about {probability:g}", "got": f"{got:.2f}"}
    expect(near, share, "the share that is dropped", **told)


def expect_not_dropped_together(dropped: Tensor, dims: Iterable[int]) -> None:
    """Fail if along one of these dimensions all is dropped or nothing.

    Args:
        dropped: bool, True where an entry was dropped; so many that chance does not make them alike.
        dims: the dimensions.
    """
    for dim in dims:
        alike = dropped.shape[dim] > 1 and bool(_same_as_partner(dropped, dim).all())
        mistake = Common.DROPOUT_TOGETHER if dim else Common.DROPOUT_ONE_FOR_ALL
        expect(not alike, mistake, f"all or nothing is dropped along dimension {dim} of the result")


def _same_as_partner(dropped: Tensor, dim: int) -> Tensor:
    """Whether entries of the first half have the lot of those as far on in the second: pairs without an overlap."""
    half = dropped.shape[dim] // 2
    return dropped.narrow(dim, 0, half) == dropped.narrow(dim, half, half)


def within_luck(count: int, of: int, probability: float) -> bool:
    """Whether so many of so many can be chance, when each is one with this probability."""
    return abs(count - of * probability) <= DROPOUT_LUCK * (of * probability * (1 - probability)) ** 0.5


def expect_number(
    value: Any,
    expected: float,
    name: str = "the result",
    mistakes: Mapping[Mistake, Callable[[], float]] | None = None,
    asked: str = "",
    otherwise: Mistake = Unexplained.NUMBER,
) -> None:
    """Fail unless `value` is a Python number with this value.

    Args:
        value: what the student's code returned.
        expected: the oracle's result.
        name: what the message calls it.
        mistakes: those that can be recognised, each with a function that computes what it would give; the first that
            matches is named.
        asked: for which arguments.
        otherwise: the mistake to name when the number is wrong and none of `mistakes` gives it.
    """
    asks_about(*(mistakes or ()), otherwise)
    expect(value is not None, Common.NO_RETURN, name, asked=asked, expected="a Python float", got="None")
    number = isinstance(value, int | float) and not isinstance(value, Tensor)
    expect(number, Common.NOT_A_NUMBER, name, asked=asked, expected="a Python float", got=_kind(value))
    if math.isclose(value, expected, rel_tol=1e-5, abs_tol=1e-6):
        return
    mistake = otherwise
    for likely, compute in (mistakes or {}).items():
        try:
            wrong = compute()
        except (ArithmeticError, ValueError, IndexError, RuntimeError):
            continue  # this mistake cannot be made with these numbers
        if math.isclose(value, wrong, rel_tol=1e-5, abs_tol=1e-6) and not math.isclose(wrong, expected, abs_tol=1e-6):
            mistake = likely
            break
    complain(mistake, name, asked=asked, expected=float(expected), got=float(value))


def call(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a student's function; an exception becomes a failure that says for which arguments it was raised."""
    if heard():
        _look_at(function, args, kwargs)
    try:
        return function(*args, **kwargs)
    except Complaint:
        raise
    except Exception as error:
        if unwritten(error):
            raise
        raise Complaint(raised(error, describe_call(function, args, kwargs))) from error


def _look_at(function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Say which rules the arguments of a call ask for."""
    names = [*_parameter_names(function), *["mask"] * len(args)]  # a method in the grader has no names
    for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
        if isinstance(value, torch.Generator):
            asks(Rule.CHANCE)
        if not isinstance(value, Tensor) or value.device.type == "meta":
            continue
        if value.dtype == torch.bool:
            if "mask" in name:
                asks(Rule.MASKS, *[Rule.EMPTY] * (not value.any(-1).all()))
        elif 1 in value.shape:
            asks(Rule.ONES)
        if value.is_floating_point() and (value.nan_to_num().abs() > 500).any():
            asks(Rule.LARGE)


def describe_call(function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> str:
    """The arguments of a call by name, tensors by their shape: "queries (2, 2, 4), keys (2, 3, 4) and mask None"."""
    names = [*_parameter_names(function), *["argument"] * len(args)]
    told = [_describe(name, value) for name, value in zip(names, args, strict=False)]
    told += [_describe(name, value) for name, value in (kwargs or {}).items()]
    return " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:])))


def _parameter_names(function: Any) -> list[str]:
    """What a student's function, class or module calls its arguments; asked only when something went wrong."""
    if type(function) is proxy.Remote:
        return proxy.parameter_names(function)
    for owner in ("__init__",) if isinstance(function, type) else ("", "forward", "__init__"):
        with suppress(Exception):
            code = inspect.unwrap(getattr(function, owner) if owner else function).__code__
            names = [str(name)[:40] for name in code.co_varnames[: code.co_argcount]]
            return [name for name in names if name != "self"]
    return []


def _describe(name: str, value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{name} {tuple(value.shape)}"
    return f"{name} {value!r}" if isinstance(value, bool | int | float | str | None) else f"{name} ({_kind(value)})"


def expect_matches(
    function: Callable[..., Tensor],
    oracle: Callable[..., Tensor],
    cases: Sequence[Mapping[str, Any]],
    mistakes: Mapping[Mistake, Callable[..., Tensor]] | None = None,
    name: str = "the result",
    gradients: bool = True,
    device: bool = True,
    tolerance: float | None = None,
) -> None:
    """Fail unless a function equals its oracle on every case, and behaves.

    Checked in float32 and float64: shape, dtype, values, inputs left unchanged; then, on the first two cases, the
    gradients, and that recording none changes nothing; and that results stay on the device of the inputs.

    Args:
        function: the student's function; it returns one tensor.
        oracle: the same, right; called in float64.
        cases: arguments by name, in the order of the signature. Put a case with equal sizes first, where a mix-up of
            two sizes gives a wrong value that can be diagnosed, then the unequal ones.
        mistakes: those that can be recognised, each with the function that makes it, called like the oracle.
        name: what the message calls the result.
        gradients: whether the result is differentiable.
        device: whether nothing but the inputs has a device; a module's parameters have one, too.
        tolerance: of the values, relative and absolute; fit to each dtype by default.
    """
    for case in cases:
        right = {n: v.double() if _is_float(v) else v for n, v in case.items()}
        wrong = {m: lambda f=f, right=right: f(*right.values()) for m, f in (mistakes or {}).items()}
        asked, expected = describe_call(lambda: None, [], case), oracle(*right.values())
        for dtype in (torch.float32, torch.float64):
            inputs = {n: v.to(dtype) if _is_float(v) else v for n, v in case.items()}
            with unchanged(**{n: v for n, v in inputs.items() if isinstance(v, Tensor)}):
                value = call(function, *inputs.values())
            kept = dtype if expected.is_floating_point() else expected.dtype
            expect_close(value, expected, name, wrong, kept, tolerance, asked)
    for case in cases[:2] if gradients else ():
        expect_gradients(function, oracle, case, mistakes)
    if not gradients:
        _expect_same_unrecorded(function, oracle, cases[0], name, tolerance)
    if device:
        expect_device(function, cases[0])


def _expect_same_unrecorded(
    function: Callable, oracle: Callable, case: Mapping[str, Any], name: str, tolerance: float | None
) -> None:
    inputs = [v.double() if _is_float(v) else v for v in case.values()]
    with torch.no_grad():
        value = call(function, *inputs)
    expect_close(value, oracle(*inputs), f"{name} where no gradients are recorded", tolerance=tolerance)


def expect_half(
    function: Callable[..., Tensor], oracle: Callable[..., Tensor], inputs: Mapping[str, Any], name: str = "the result"
) -> None:
    """Fail unless a function gives float16 for float16 and bfloat16 for bfloat16, as right as these can be.

    Args:
        function: the student's function; it returns one tensor. It is called without a graph.
        oracle: the same, right; called in float64.
        inputs: arguments by name; whole numbers, so few and so small that half precision has all sums of their
            products exactly: a right answer may take any way to them.
        name: what the message calls the result.
    """
    right = oracle(*(v.double() if _is_float(v) else v for v in inputs.values()))
    for dtype in (torch.float16, torch.bfloat16):
        given = [v.to(dtype) if _is_float(v) else v for v in inputs.values()]
        with torch.no_grad():
            value = call(function, *given)
        asked = f"{describe_call(lambda: None, [], inputs)} in {str(dtype).removeprefix('torch.')}"
        expect_close(value, right, name, dtype=dtype, asked=asked)


def expect_device(function: Callable[..., Tensor], inputs: Mapping[str, Any]) -> None:
    """Fail if a function makes new tensors on the CPU, and leaves them there, rather than where its inputs are.

    Torch's "meta" device, which computes shapes only, stands in for a GPU.

    Args:
        function: a function already known to work on the CPU.
        inputs: its arguments by name.
    """
    elsewhere = [v.to("meta") if isinstance(v, Tensor) else v for v in inputs.values()]
    try:
        calls = _record(function, elsewhere)
    except Exception as error:
        # Code may look at values, and the meta device has none; but it may not mix devices.
        mixed = any(hint in str(error) for hint in ("same device", "expected device", "Cannot copy out of meta"))
        calls = ["…@cpu"] if mixed else []
    made = [_plain_name(c) for c in calls if c.endswith("@cpu")]
    by = f"it is made by `{made[0]}`" if made and made[0] != "…" else ""
    expect(not made, Common.MADE_ON_CPU, by)


def _record(function: Callable, args: Sequence[Any]) -> list[str]:
    if type(function) is proxy.Remote:
        return proxy.record_calls(function, args, {})
    return protocol.record_calls(function, args, {})


def record_calls(function: Callable, *args: Any) -> list[str]:
    """The torch functions and tensor methods that a call uses, in order, but for those that only read sizes."""
    names = [_plain_name(call) for call in _record(function, args)]
    return [name for name in names if name not in _METADATA]


def _plain_name(noted: str) -> str:
    """A function's name without the device of its result and without the overload (`softmax.int@cpu`)."""
    return noted.partition("@")[0].partition(".")[0]


def expect_no_loop(function: Callable, small: Sequence[Any], large: Sequence[Any], over: str) -> None:
    """Fail if the work is done in a Python loop: the number of torch calls must not grow with the input.

    Args:
        function: the student's function.
        small: arguments.
        large: the same arguments with each size larger.
        over: what a loop could run over, for the message: "positions, batch items or heads".
    """
    few, many = record_calls(function, *small), record_calls(function, *large)
    constant = {"expected": f"at most {_MOST_CALLS}", "got": len(few)}
    expect(len(few) <= _MOST_CALLS, Common.LOOP, "the number of calls to torch on a small input", **constant)
    told = f"{len(few)} calls to torch on a small input and {len(many)} on a larger one: a loop over {over}"
    expect(len(few) == len(many), Common.LOOP, "the code makes", got=told)


def expect_no_python_loop(
    function: Callable,
    small: Sequence[Any],
    large: Sequence[Any],
    over: str,
    first: Sequence[Any] | None = None,
    slack: int = 0,
) -> None:
    """Fail if Python works longer on larger arguments, in the function or in what it calls: in a loop of any kind.

    Args:
        function: the student's function.
        small: arguments.
        large: larger ones, for which the function takes the same way.
        over: what a loop could run over, for the message.
        first: other arguments, for the call that does what is done but once, such as an import; `small` by default. An
            answer may remember what it gave: `small` and `large` are then best ones that it has not met.
        slack: how many steps more are no loop, such as those of printing what a size is.
    """
    count = place(_steps, beside=function)
    count(function, *(small if first is None else first))
    few, many = count(function, *small), count(function, *large)
    told = f"{few} steps for {describe_call(function, small)}, {many} for {describe_call(function, large)}"
    alike = abs(many - few) <= slack and few <= _MOST_STEPS
    expect(alike, Common.LOOP, "the work in Python", got=f"{told}: a loop over {over}")


def _steps(function: Callable, *args: Any) -> int:
    import sys

    steps = 0

    def count(frame: Any, event: str, arg: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return steps


def expect_not_calling(function: Callable, args: Sequence[Any], forbidden: set[str], mistake: Mistake) -> None:
    """Fail for a mistake if a call uses one of these functions of torch."""
    asks(Rule.LIBRARY)
    private = {f"_{name}" for name in forbidden}
    used = sorted(set(record_calls(function, *args)) & (forbidden | private))
    expect(not used, mistake, f"the code calls `{used[0]}`" if used else "")


def expect_raises(
    error: type[Exception], call: Callable[[], Any], what: str, mistake: Mistake = Common.NO_ERROR
) -> None:
    """Fail unless `call()` raises this error: for `mistake` when it raises none."""
    asks(Rule.ERRORS)
    asks_about(mistake)
    try:
        call()
    except error:
        return
    except Exception as other:
        if unwritten(other):
            raise
        name = getattr(other, "student_type", type(other).__name__)
        told = {"expected": f"answered by {error.__name__}", "got": f"{name}: {other}"}
        raise Complaint(found(Common.OTHER_ERROR, what, **told)) from other
    complain(mistake, what, expected=f"answered by {error.__name__}", got="a result")


def outcome_of(test: Callable, subject: Any, *more: Any) -> tuple[Any, Exception | None]:
    """What a reader's own test returned for what it was to judge, or the exception that it raised."""
    try:
        return test(subject, *more), None
    except Exception as error:
        if unwritten(error):
            raise
        return None, error


def said(error: Exception | None) -> str:
    """An exception in a line; empty for none."""
    name = getattr(error, "student_type", type(error).__name__)
    return "" if error is None else f"{name}: {error}".splitlines()[0]


def expect_accepted(error: Exception | None, rejects: Mistake, stops: Mistake, what: str) -> None:
    """Fail unless a reader's own test accepts what is right.

    Args:
        error: what the test raised, see `outcome_of`.
        rejects: the mistake of a test that says it is broken.
        stops: the mistake of a test that stops by an error of its own.
        what: what the message calls what the test says.
    """
    expect(error is None, rejects if isinstance(error, AssertionError) else stops, what, got=said(error))


def place(helper: Callable, beside: Any) -> Any:
    """A helper that student code is to receive, in the process where that code lives.

    Args:
        helper: a function or class that uses nothing but its arguments, `torch`, `nn` and `F`. Student code can read
            it, so it must hold no expected value.
        beside: the student's object that it will meet.

    Returns:
        The helper itself in a notebook, a proxy in the grader.
    """
    if type(beside) is proxy.Remote:
        return proxy.place(textwrap.dedent(inspect.getsource(helper)), helper.__name__, beside=beside)
    return helper


def alike(made: Any) -> Any:
    """A function or class made in one of several ways, so that nothing in it tells in which but what it does.

    All code in it is built anew: its own in each, of one name, from no line of the text; and so is what it closes over.
    What differs is bytecode with its names and numbers, and what else it closes over: give all ways the same. It is
    written to be placed beside student code, and handed to a placed helper, which returns what this returns.

    Args:
        made: a function, or a class whose methods are rebuilt in place.

    Returns:
        A new function, or the class.
    """
    import types

    rebuilt: dict[int, types.FunctionType] = {}

    def code_of(code: types.CodeType, name: str = "way") -> types.CodeType:
        parts = tuple(code_of(part) if isinstance(part, types.CodeType) else part for part in code.co_consts)
        steps = len(code.co_code) // 2
        one_line = b"".join(bytes([0xE8 + min(steps - i, 8) - 1, 0]) for i in range(0, steps, 8))  # and no columns
        return code.replace(co_consts=parts, co_firstlineno=1, co_linetable=one_line, co_name=name, co_qualname=name)

    def function_of(old: types.FunctionType, name: str = "way") -> types.FunctionType:
        if id(old) not in rebuilt:
            cells = tuple(types.CellType() for _ in old.__closure__ or ())
            new = types.FunctionType(code_of(old.__code__, name), old.__globals__, name, old.__defaults__, cells)
            rebuilt[id(old)], new.__kwdefaults__ = new, old.__kwdefaults__
            for mine, theirs in zip(cells, old.__closure__ or (), strict=True):
                held = theirs.cell_contents
                mine.cell_contents = function_of(held) if isinstance(held, types.FunctionType) else held
        return rebuilt[id(old)]

    if isinstance(made, types.FunctionType):
        return function_of(made, made.__name__)
    for name, value in list(vars(made).items()):
        if isinstance(value, types.FunctionType):
            setattr(made, name, function_of(value, name))
    return made


def seed(number: int, beside: Any) -> None:
    """Seed torch's default generator where the student's object lives."""
    if type(beside) is proxy.Remote:
        proxy.seed(number, beside=beside)
    else:
        torch.manual_seed(number)


def expect_drawn_from_generator(run: Callable[[torch.Generator | None], Any], beside: Any, asked: str = "") -> None:
    """Fail unless all that is drawn comes from the generator that is given, or from torch's own where none is.

    One seed gives one result and another seed another; a generator goes on from where it stands, and is neither begun
    anew from its first seed nor left where it was. In the grader, too, one that is handed over twice goes on from where
    student code has left it.

    Args:
        run: what draws, called with a generator or None; it returns tensors, numbers or tuples and lists of them, of
            which two agree by chance less than once in 10¹⁰ times.
        beside: the student's object, where torch's own generator is seeded.
        asked: for which arguments.
    """
    number = draw_size(0, 10**9)

    def given(seed_of: int) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of)

    first = run(given(number))
    expect(_alike(first, run(given(number))), Common.NO_GENERATOR, asked=asked)
    # What begins again with the first seed may come to the same for two of them, and is told so below; not for five.
    same = _alike(first, run(given(number + 1)))
    anew = same and all(_alike(first, run(given(number + more))) for more in range(2, 5))
    expect(not anew, Common.SEEDED_ANEW, asked=asked)
    used = given(number)
    torch.rand(draw_size(1, 99), generator=used)
    expect(not _alike(first, run(used)), Common.SEEDED_AGAIN, asked=asked)
    kept = given(number)
    expect(not _alike(run(kept), run(kept)), Common.SEEDED_AGAIN, "two runs with one generator", asked=asked)
    expect(not same, Common.SEEDED_ANEW, asked=asked)
    seed(number, beside=beside)
    one, other = run(None), run(None)
    expect(not _alike(one, other), Common.FIXED_SEED, asked=asked)
    seed(number, beside=beside)
    expect(_alike(one, run(None)), Common.OTHER_CHANCE, asked=asked)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one.detach().nan_to_num(), other.detach().nan_to_num())
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(_alike(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and one == other


def source_of(function: Any) -> str:
    """The text of the definition of a student's function or class."""
    if type(function) is proxy.Remote:
        return proxy.source_of(function)
    return textwrap.dedent(inspect.getsource(function))


def _kind(value: Any) -> str:
    name = getattr(value, "__class__", type(value)).__name__
    return f"{name} ({value!r})" if isinstance(value, bool | int | float | str) else f"a {name}"
