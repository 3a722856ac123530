"""What hidden tests are written with: each function compares, and fails with a message that names the mistake.

The tested objects are real ones in a notebook and proxies in the grader (`autograder.wire.proxy.Remote`); the same test
serves both. Where the two differ, the difference is made here.
"""

import inspect
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from autograder.heatmap import heat_maps_of
from autograder.verdict import Credit as Credit  # checks take it from here
from autograder.wire import protocol, proxy

# Fresh numbers at each run, without touching the random numbers of the notebook that is checked.
_generator = torch.Generator()
_generator.seed()

_TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}
_EXPLAINED = {
    "cannot be converted to Scalar": "`.item()` gives one number, and here is a whole batch of them",
    "Boolean value of Tensor with more than one value is ambiguous": "`if` and `while` want one truth value, and here "
    "is a whole tensor of them: `.any()` or `.all()` makes one",
}
_METADATA = {"__get__", "size", "dim", "stride", "numel", "is_floating_point", "__len__", "__set__", "ndimension"}
_LEAVES_TORCH = {"tolist", "item", "numpy", "apply_", "map_", "__array__", "__float__", "__int__"}


class Mismatch(AssertionError):
    """A tensor that is not what it should be.

    Attributes:
        got: what the student's code returned.
        expected: what it should have been.
    """

    def __init__(self, message: str, got: Tensor, expected: Tensor) -> None:
        super().__init__(message)
        self.got, self.expected = got.detach(), expected.detach()

    def heat_maps(self) -> str:
        """Expected and got side by side as HTML; empty where they cannot be shown like that."""
        return heat_maps_of(self.expected, self.got)


def reseed(number: int) -> None:
    """Let the numbers that checks draw come from this seed, so that a verdict can be had again."""
    _generator.manual_seed(number)


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers, new ones at each run."""
    return torch.randn(shape, generator=_generator, dtype=torch.float64).to(dtype)


def randint(low: int, high: int, shape: Sequence[int]) -> Tensor:
    """Random integers in `[low, high)`, new ones at each run."""
    return torch.randint(low, high, tuple(shape), generator=_generator)


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
    module: nn.Module, shapes: Mapping[str, Sequence[int]], dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    """Give a module's weights random, non-trivial values (all-ones weights hide mistakes).

    Names and shapes are the ones that the exercise promises, and the values are the check's own: nothing of the module
    is read, so that nothing which its class overrides decides what the oracle computes from.

    Args:
        module: a module, or the proxy of one; it is converted to `dtype`.
        shapes: shape by name of each weight. A weight that is there under several names is given under all of them
            to `set_weights` instead.
        dtype: of the module.

    Returns:
        The values in float64, for the oracle.
    """
    state = {name: (0.5 * randn(*shape)).to(dtype).double() for name, shape in shapes.items()}
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


def expect_tensor(
    value: Any, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None, name: str = "the result"
) -> None:
    """Fail unless `value` is a tensor of this shape and dtype."""
    assert value is not None, f"{name} is None: is there a `return`?"
    assert isinstance(value, Tensor), f"{name} should be a torch.Tensor, got {_kind(value)}"
    if shape is not None:
        assert tuple(value.shape) == tuple(shape), f"{name} should have shape {tuple(shape)}, got {tuple(value.shape)}"
    if dtype is not None:
        assert value.dtype == dtype, f"{name} should keep dtype {dtype}, got {value.dtype}"


def expect_close(
    value: Any,
    expected: Tensor,
    name: str = "the result",
    mistakes: Mapping[str, Callable[[], Tensor]] | None = None,
    dtype: torch.dtype | None = None,
    tolerance: float | None = None,
) -> None:
    """Fail unless `value` is a tensor with the expected shape, dtype and values.

    Args:
        value: what the student's code returned.
        expected: the oracle's result, usually in float64.
        name: what the message calls it.
        mistakes: typical causes, each with a function that computes what that mistake would give; the first that
            matches is named in the message. A wrong result of another shape counts too.
        dtype: the dtype that `value` must have, if it matters.
        tolerance: relative and absolute; fit to the value's dtype by default.
    """
    expect_tensor(value, None, None, name)
    assert not value.is_complex() or expected.is_complex(), f"{name} should be real, got {value.dtype}"
    value = value.detach()
    if value.shape != expected.shape:
        cause = _cause(value, expected, mistakes, tolerance)
        message = f"{name} should have shape {tuple(expected.shape)}, got {tuple(value.shape)}{cause}"
        raise Mismatch(message, value, expected)
    expect_tensor(value, expected.shape, dtype, name)
    if dtype is None and value.dtype in (torch.float16, torch.bfloat16):
        tolerance = tolerance or _TOLERANCE[torch.float32]  # what nobody asked to be coarse is held to what is usual
    if _close(value, expected, tolerance):
        return
    if value.is_floating_point() and value.isnan().any() and not expected.isnan().any():
        raise Mismatch(f"{name} contains NaN{_cause(value, expected, mistakes, tolerance)}", value, expected)
    message = f"{name} {_difference(value, expected)}{_cause(value, expected, mistakes, tolerance)}"
    raise Mismatch(message, value, expected)


def _close(value: Tensor, expected: Tensor, tolerance: float | None) -> bool:
    if value.shape != expected.shape:
        return False
    limit = tolerance or _TOLERANCE.get(value.dtype, 0.0)
    return torch.allclose(value.double(), expected.detach().double(), rtol=limit, atol=limit, equal_nan=True)


def _cause(value: Tensor, expected: Tensor, mistakes: Mapping | None, tolerance: float | None) -> str:
    for cause, compute in (mistakes or {}).items():
        try:
            wrong = compute()
        except (RuntimeError, IndexError, ValueError):
            continue  # this mistake cannot be made at these sizes
        if _close(value, wrong, tolerance) and not _close(wrong, expected, tolerance):
            return f". Likely cause: {cause}"
    return ""


def _difference(value: Tensor, expected: Tensor) -> str:
    if value.numel() == 1:
        return f"should be {expected.item():.6g}, got {value.item():.6g}"
    gap = (value.double() - expected.detach().double()).abs().nan_to_num(nan=float("inf"))
    where = (gap == gap.max()).nonzero()[0].tolist()  # `unravel_index` would import sympy: a second
    index = ", ".join(map(str, where))
    count = int((gap > _TOLERANCE.get(value.dtype, 0.0)).sum())
    return (
        f"has {count} wrong entries of {gap.numel()}; the farthest off is [{index}]: "
        f"expected {expected[tuple(where)].item():.6g}, got {value[tuple(where)].item():.6g}"
    )


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
        assert same and not any(_share_memory(tensor, changed) for changed, _ in changes), (
            f"the input `{name}` was changed in place: work on a copy, or avoid `+=`, `[...] =` and `op_()` on it"
        )


def changed_in_place(function: Callable, x: Tensor, *args: Any) -> Tensor:
    """What `x` holds after `function(x, *args)`, for an exercise that is to change it in place; `x` stays as it is."""
    given = x.detach().clone()
    with proxy.watch_changes() as changes:
        call(function, given, *args)
    return next((values for tensor, values in reversed(changes) if tensor is given), given)


def _share_memory(one: Tensor, other: Tensor) -> bool:
    if "meta" in (one.device.type, other.device.type):
        return one is other
    if one.numel() == 0 or other.numel() == 0:
        return one is other
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def expect_gradients(
    function: Callable[..., Tensor],
    oracle: Callable[..., Tensor],
    inputs: Mapping[str, Tensor],
    mistakes: Mapping[str, Callable[..., Tensor]] | None = None,
    tolerance: float = 1e-7,
) -> None:
    """Fail unless gradients flow from the result to each floating-point input and equal the oracle's.

    Args:
        function: the student's function, called with `inputs` in order, in float64; it returns one tensor.
        oracle: the same, right.
        inputs: name and value of each argument; names are used in messages.
        mistakes: typical causes, each with a function that computes the gradients' wrong value (see `expect_close`),
            called with the same inputs as the oracle.
        tolerance: relative and absolute; larger where a part of the way is float32 for a good reason.
    """
    with torch.enable_grad():
        mine, theirs = _leaves(inputs), _leaves(inputs)
        result, expected = function(*mine), oracle(*theirs)
        expect_tensor(result, expected.shape)
        assert result.requires_grad, (
            "the result is cut off from the graph, so nothing can learn through it: "
            "remove `.detach()`, `.data`, `.item()`, `torch.tensor(...)` or `torch.no_grad()`"
        )
        direction = randn(*expected.shape, dtype=torch.float64)
        floats = [(name, a, b) for name, a, b in zip(inputs, mine, theirs, strict=True) if _is_float(a)]
        got = torch.autograd.grad(result, [a for _, a, _ in floats], direction.to(result.dtype), allow_unused=True)
        wanted = torch.autograd.grad(expected, [b for _, _, b in floats], direction, allow_unused=True)
    for (name, a, _), gradient, right in zip(floats, got, wanted, strict=True):
        right = torch.zeros_like(a) if right is None else right
        if gradient is None and right.any():
            raise AssertionError(
                f"no gradient reaches `{name}`: the result is cut off from it "
                "(`.detach()`, `.data`, `torch.no_grad()`?)"
            )
        gradient = torch.zeros_like(a) if gradient is None else gradient
        wrong = {
            cause: lambda f=f, name=name: _gradient(f, inputs, direction, name) for cause, f in (mistakes or {}).items()
        }
        expect_close(gradient, right, f"the gradient with respect to `{name}`", wrong, tolerance=tolerance)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _leaves(inputs: Mapping[str, Any]) -> list[Any]:
    return [v.detach().double().clone().requires_grad_() if _is_float(v) else v for v in inputs.values()]


def _gradient(function: Callable[..., Tensor], inputs: Mapping[str, Any], direction: Tensor, name: str) -> Tensor:
    with torch.enable_grad():
        leaves = _leaves(inputs)
        leaf = leaves[list(inputs).index(name)]
        (gradient,) = torch.autograd.grad(function(*leaves), [leaf], direction, allow_unused=True)
    return torch.zeros_like(leaf) if gradient is None else gradient


def expect_parameters(
    module: nn.Module, shapes: Mapping[str, Sequence[int]], hints: Mapping[str, str] | None = None
) -> None:
    """Fail unless a module has exactly these parameters.

    Args:
        module: a module, or the proxy of one.
        shapes: shape by name.
        hints: advice by a part of the name; the first that fits is added to the message.
    """
    found = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    for name, shape in shapes.items():
        hint = next((f": {advice}" for part, advice in (hints or {}).items() if part in name), "")
        assert name in found, f"the parameter `{name}` is missing (there are: {', '.join(found) or 'none'}){hint}"
        assert found[name] == tuple(shape), (
            f"the parameter `{name}` should have shape {tuple(shape)}, it has {found[name]}{hint}"
        )
    more = sorted(set(found) - set(shapes))
    assert not more, f"the parameter `{more[0]}` should not be there: the exercise names all that are needed"


def build(
    make: Callable[[], nn.Module],
    shapes: Mapping[str, Sequence[int]],
    hints: Mapping[str, str] | None = None,
    dtype: torch.dtype = torch.float64,
) -> tuple[nn.Module, dict[str, Tensor]]:
    """A student's module with random weights, once its parameters are the ones promised.

    Args:
        make: makes it.
        shapes: shape by name of each parameter.
        hints: advice by a part of the name, see `expect_parameters`.
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
    tolerance: float = 1e-7,
) -> None:
    """Fail unless each parameter receives the gradient that it receives in the oracle.

    Args:
        module: a module in float64, or the proxy of one; the first counts if it returns several things.
        oracle: called with a state and the inputs, returns the right result.
        state: the module's weights.
        inputs: what the module is called with.
        tolerance: relative and absolute; larger where a part of the way is float32 for a good reason.
    """
    with torch.enable_grad():
        leaves = {name: value.detach().clone().requires_grad_() for name, value in state.items()}
        expected = oracle(leaves, *inputs)
        direction = randn(*expected.shape)
        module.zero_grad()
        result = call(module, *inputs)
        result = result[0] if isinstance(result, tuple | list) else result
        assert result.requires_grad, (
            "the result is cut off from the graph, so that nothing can learn: remove `.detach()`, `.data` or "
            "`torch.no_grad()`"
        )
        (result * direction).sum().backward()
        wanted = torch.autograd.grad(expected, [*leaves.values()], direction, allow_unused=True)
    parameters = dict(module.named_parameters())
    missing = [name for name in leaves if name not in parameters]
    assert not missing, f"the parameter `{missing[0]}` is gone after a call of the module"
    found = {name: parameters[name].grad for name in leaves}
    for name, right in zip(leaves, wanted, strict=True):
        # The bias of the keys moves all scores of a row alike, so that its gradient is zero but for rounding.
        learns = right is not None and right.abs().max() > 1e-9
        assert not learns or (found[name] is not None and found[name].any()), (
            f"no gradient reaches the parameter `{name}`: it is not used, or cut off from the result "
            "(`.detach()`, `.data`, `torch.no_grad()`?)"
        )
    for name, right in zip(leaves, wanted, strict=True):
        zeros = torch.zeros_like(leaves[name])
        got = zeros if found[name] is None else found[name]
        right = zeros if right is None else right
        expect_close(got, right, f"the gradient of the parameter `{name}`", tolerance=tolerance)


def expect_same_in_eval(module: nn.Module, inputs: Sequence[Any], name: str, expected: Tensor | None = None) -> None:
    """Fail unless `.eval()` switches dropout off.

    Args:
        module: a module made with dropout, or the proxy of one; the first counts if it returns several things. It is
            left in evaluation mode.
        inputs: what it is called with.
        name: what the message calls it.
        expected: the right result.
    """
    module.eval()
    first, second = (call(module, *inputs) for _ in range(2))
    first, second = (r[0] if isinstance(r, tuple | list) else r for r in (first, second))
    expect_tensor(first)
    assert torch.equal(first, second), (
        f"{name} gives two results for the same input after `.eval()`: dropout is still active in evaluation; "
        "use an `nn.Dropout`, or pass `training=self.training`"
    )
    if expected is not None:
        expect_close(first, expected, f"the result of {name} with dropout, after `.eval()`,")


def expect_number(
    value: Any, expected: float, name: str = "the result", mistakes: Mapping[str, Callable[[], float]] | None = None
) -> None:
    """Fail unless `value` is a Python number with this value.

    Args:
        value: what the student's code returned.
        expected: the oracle's result.
        name: what the message calls it.
        mistakes: typical causes, each with a function that computes what that mistake would give; the first that
            matches is named in the message.
    """
    assert value is not None, f"{name} is None: is there a `return`?"
    assert isinstance(value, int | float) and not isinstance(value, Tensor), (
        f"{name} should be a Python float, got a {value.__class__.__name__} ({value!r}); `.item()` makes one"
    )
    if math.isclose(value, expected, rel_tol=1e-5, abs_tol=1e-6):
        return
    cause = ""
    for likely, compute in (mistakes or {}).items():
        try:
            wrong = compute()
        except (ArithmeticError, ValueError, IndexError, RuntimeError):
            continue  # this mistake cannot be made with these numbers
        if math.isclose(value, wrong, rel_tol=1e-5, abs_tol=1e-6) and not math.isclose(wrong, expected, abs_tol=1e-6):
            cause = f". Likely cause: {likely}"
            break
    raise AssertionError(f"{name} should be {expected:.6g}, got {value:.6g}{cause}")


def call(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a student's function; an exception becomes a failure that says for which arguments it was raised."""
    try:
        return function(*args, **kwargs)
    except (AssertionError, NotImplementedError):
        raise
    except Exception as error:
        given = ", ".join([_describe(a) for a in args] + [f"{k}={_describe(v)}" for k, v in kwargs.items()])
        told = f"the call with {given} raised {type(error).__name__}: {error}"
        raise AssertionError(told + _explained(str(error))) from error


def _explained(error: str) -> str:
    """The mistake behind an error of torch, where there is one that is nearly always behind it."""
    return next((f". Likely cause: {cause}" for sign, cause in _EXPLAINED.items() if sign in error), "")


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return repr(value) if isinstance(value, bool | int | float | str | None) else _kind(value)


def expect_matches(
    function: Callable[..., Tensor],
    oracle: Callable[..., Tensor],
    cases: Sequence[Mapping[str, Any]],
    mistakes: Mapping[str, Callable[..., Tensor]] | None = None,
    name: str = "the result",
    gradients: bool = True,
    device: bool = True,
) -> None:
    """Fail unless a function equals its oracle on every case, and behaves.

    Checked in float32 and float64: shape, dtype, values, inputs left unchanged; then, on the first case, the gradients
    and that results stay on the device of the inputs.

    Args:
        function: the student's function; it returns one tensor.
        oracle: the same, right; called in float64.
        cases: arguments by name, in the order of the signature. Put a case with equal sizes first, where a mix-up of
            two sizes gives a wrong value that can be diagnosed, then the unequal ones.
        mistakes: typical causes, each with the function that makes that mistake, called like the oracle.
        name: what the message calls the result.
        gradients: whether the result is differentiable.
        device: whether nothing but the inputs has a device; a module's parameters have one, too.
    """
    for case in cases:
        right = {n: v.double() if _is_float(v) else v for n, v in case.items()}
        wrong = {cause: lambda f=f, right=right: f(*right.values()) for cause, f in (mistakes or {}).items()}
        for dtype in (torch.float32, torch.float64):
            inputs = {n: v.to(dtype) if _is_float(v) else v for n, v in case.items()}
            with unchanged(**{n: v for n, v in inputs.items() if isinstance(v, Tensor)}):
                value = call(function, *inputs.values())
            expected = oracle(*right.values())
            expect_close(value, expected, name, wrong, dtype if expected.is_floating_point() else expected.dtype)
    if gradients:
        expect_gradients(function, oracle, cases[0], mistakes)
    if device:
        expect_device(function, cases[0])


def expect_device(function: Callable[..., Tensor], inputs: Mapping[str, Any], chance: bool = False) -> None:
    """Fail if a function makes new tensors on the CPU rather than where its inputs are.

    Torch's "meta" device, which computes shapes only, stands in for a GPU.

    Args:
        function: a function already known to work on the CPU.
        inputs: its arguments by name.
        chance: whether it may draw random numbers on the CPU, where its generator is, and compare them.
    """
    elsewhere = [v.to("meta") if isinstance(v, Tensor) else v for v in inputs.values()]
    try:
        calls = _record(function, elsewhere)
    except Exception as error:
        # Code may look at values, and the meta device has none; but it may not mix devices.
        mixed = any(hint in str(error) for hint in ("same device", "expected device", "Cannot copy out of meta"))
        calls = ["?@cpu"] if mixed else []
    drawn = {"rand", "rand_like", "bernoulli", "lt", "__lt__", "le", "__le__", "gt", "__gt__"} if chance else set()
    made = [name for name, _, device in (c.partition("@") for c in calls) if device == "cpu" and name not in drawn]
    assert not made, (
        f"the code makes a tensor on the CPU (`{made[0]}`) and fails when its inputs are on a GPU: "
        "use `x.new_zeros(...)`, or pass `device=x.device`"
    )


def _record(function: Callable, args: Sequence[Any]) -> list[str]:
    if type(function) is proxy.Remote:
        return proxy.record_calls(function, args, {})
    return protocol.record_calls(function, args, {})


def record_calls(function: Callable, *args: Any) -> list[str]:
    """The torch functions and tensor methods that a call uses, in order, but for those that only read sizes."""
    names = [call.partition("@")[0] for call in _record(function, args)]
    return [name for name in names if name not in _METADATA]


def expect_no_loop(function: Callable, small: Sequence[Any], large: Sequence[Any], over: str) -> None:
    """Fail if the work is done in a Python loop: the number of torch calls must not grow with the input.

    Args:
        function: the student's function.
        small: arguments.
        large: the same arguments with each size larger.
        over: what a loop could run over, for the message: "positions, batch items or heads".
    """
    few, many = record_calls(function, *small), record_calls(function, *large)
    assert len(few) == len(many), (
        f"this exercise is to be solved without a loop over {over}: the code makes {len(few)} calls to torch on a "
        f"small input and {len(many)} on a larger one, so a `for`, `while`, comprehension, `map` or recursion is there"
    )
    expect_not_calling(
        function, small, _LEAVES_TORCH, "stay within torch: Python numbers need a loop and lose the gradient"
    )


def expect_not_calling(function: Callable, args: Sequence[Any], forbidden: set[str], advice: str) -> None:
    """Fail if a call uses one of these functions of torch."""
    used = sorted(set(record_calls(function, *args)) & forbidden)
    assert not used, f"the code calls `{used[0]}`: {advice}"


def expect_raises(error: type[Exception], call: Callable[[], Any], what: str) -> None:
    """Fail unless `call()` raises this error."""
    try:
        call()
    except error:
        return
    except NotImplementedError:
        raise
    except Exception as other:
        raise AssertionError(
            f"{what} should raise {error.__name__}, but raised {type(other).__name__}: {other}"
        ) from other
    raise AssertionError(f"{what} should raise {error.__name__}, but nothing was raised")


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


def seed(number: int, beside: Any) -> None:
    """Seed torch's default generator where the student's object lives."""
    if type(beside) is proxy.Remote:
        proxy.seed(number, beside=beside)
    else:
        torch.manual_seed(number)


def source_of(function: Any) -> str:
    """The text of the definition of a student's function or class."""
    if type(function) is proxy.Remote:
        return proxy.source_of(function)
    return textwrap.dedent(inspect.getsource(function))


def _kind(value: Any) -> str:
    name = getattr(value, "__class__", type(value)).__name__
    return f"{name} ({value!r})" if isinstance(value, bool | int | float | str) else f"a {name}"
