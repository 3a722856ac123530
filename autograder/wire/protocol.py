"""What crosses between the grader and a worker: a JSON header and raw bytes, never pickle.

A message is two lengths, the header as JSON, then the bytes of the tensors, and of numpy's arrays, which travel like
them. Numbers, strings and None stand for themselves in the header; anything else is a list whose first item tells its
kind, for example `["tuple", 1, 2]` or `["tensor", 0]`. Objects that are not plain data stay where they are:
`["object", 7, ...]` names one. torch and numpy may be missing: then nothing is a tensor, or an array.

The grader decodes what an untrusted worker wrote, so `receive` and `Reader` believe nothing: lengths are capped before
memory is taken, and whatever does not fit raises `ProtocolError`.
"""

import importlib
import json
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

try:
    import numpy as np
except ModuleNotFoundError:
    np = None  # type: ignore[assignment]  # a module has no type of its own that could be optional
try:
    import torch
    from torch import Tensor, nn
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.weak import WeakTensorKeyDictionary
except ModuleNotFoundError:
    torch = nn = None  # type: ignore[assignment]  # as above
    Tensor = type("Tensor", (), {})  # type: ignore[misc,assignment]  # stand-ins, here and below
    TorchFunctionMode = TorchDispatchMode = object  # type: ignore[misc,assignment]

_COMMON = (
    "float64",
    "float32",
    "float16",
    "complex64",
    "complex128",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)
DTYPES = {name: getattr(torch, name) for name in (*_COMMON, "bfloat16")} if torch else {}
ARRAY_DTYPES = {name: np.dtype(name) for name in (*_COMMON, "uint16", "uint32", "uint64")} if np else {}
# Of a library that is missing, nothing is an instance.
_ARRAY, _SCALAR = (np.ndarray, np.generic) if np else ((), ())
_SIZE, _SYMBOL = (torch.Size, torch.SymInt) if torch else ((), ())
MAX_DEPTH = 64
MAX_RANGE = 1_000_000
# Keys and members other than strings, whose hashes anybody can make collide: looking up n of them takes n² steps.
MAX_KEYS = 10_000
# What a number counts for in what a message may take, whatever its dtype: checks widen numbers to float64.
WIDEST = 8

_TOO_LARGE = "its tensors take more memory than the limit allows"
_LENGTHS = struct.Struct(">IQ")
# Up to so many bytes it takes less time to copy them than to wake the other side once more for what it waits for.
_TOGETHER = 1 << 18
_CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class ProtocolError(Exception):
    """The other side sent something that is not a message."""


def send(
    connection: socket.socket, header: dict, blobs: Sequence[bytes] = (), left: Callable[[], float] | None = None
) -> None:
    """Send one message.

    Args:
        connection: a connected stream socket.
        header: JSON data.
        blobs: the bytes that the header's tensors lie in, in order.
        left: for how many seconds to wait until it is asked again; it raises TimeoutError to give up. None: for ever.
    """
    text = json.dumps(header, separators=(",", ":")).encode()
    length = sum(map(len, blobs))
    parts = [_LENGTHS.pack(len(text), length), text, *blobs]
    if length <= _TOGETHER:
        parts = [b"".join(parts)]
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[_patiently(connection, left, partial(connection.send, rest)) :]


def receive(
    connection: socket.socket, max_bytes: int, header_bytes: int = 4 << 20, left: Callable[[], float] | None = None
) -> tuple[dict, bytearray]:
    """Receive one message.

    Args:
        connection: a connected stream socket.
        max_bytes: the most that header and bytes together may take.
        header_bytes: the most that the header may take.
        left: for how many seconds to wait until it is asked again; it raises TimeoutError to give up. None: for ever.

    Returns:
        The header and the bytes.

    Raises:
        ProtocolError: the message is too long or not a message.
        EOFError: the other side is gone.
        TimeoutError: `left` gave up.
    """
    text_length, data_length = _LENGTHS.unpack(_read(connection, _LENGTHS.size, left))
    if text_length > header_bytes or text_length + data_length > max_bytes:
        raise ProtocolError(f"a message of {text_length + data_length} bytes is too long")
    if data_length <= _TOGETHER:
        both = _read(connection, text_length + data_length, left)
        text, data = both[:text_length], both[text_length:]
    else:
        text, data = (_read(connection, length, left) for length in (text_length, data_length))
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the header is not JSON: {type(error).__name__}") from error
    if not isinstance(header, dict):
        raise ProtocolError("the header is not an object")
    return header, data


def _read(connection: socket.socket, length: int, left: Callable[[], float] | None) -> bytearray:
    data = bytearray()
    while len(data) < length:
        wanted = min(length - len(data), 1 << 20)
        chunk = _patiently(connection, left, partial(connection.recv, wanted))
        if not chunk:
            raise EOFError("the connection was closed")
        data += chunk
    return data


def _patiently(connection: socket.socket, left: Callable[[], float] | None, step: Callable[[], Any]) -> Any:
    if left is None:
        return step()
    while True:
        connection.settimeout(left())
        try:
            return step()
        except TimeoutError:
            continue  # whether to go on is for `left` to say


def until(deadline: float) -> Callable[[], float]:
    """What `send` and `receive` ask for how long to wait: until `time.monotonic()` is so late."""

    def left() -> float:
        if (seconds := deadline - time.monotonic()) <= 0:
            raise TimeoutError
        return seconds

    return left


class Writer:
    """Encodes values into one message.

    Args:
        export: called with an object that is not plain data and this writer; returns what stands for it, or raises
            TypeError.
        extra: called with a tensor and this writer; returns what else to tell about the tensor.
        known: what stands for tensors that the other side has already, by `id`.
        max_bytes: the most that the tensors may take, in float64 at least.
    """

    def __init__(
        self,
        export: Callable[[Any, "Writer"], list],
        extra: Callable[[Tensor, "Writer"], dict] = lambda tensor, writer: {},
        known: dict[int, list] | None = None,
        max_bytes: int = 1 << 30,
    ) -> None:
        self.tensors: list[Any] = []
        self.described: list[dict] = []
        self.blobs: list[bytes] = []
        self.generators: list[torch.Generator] = []
        self._export = export
        self._extra = extra
        self._known = known or {}
        self._left = max_bytes
        self._seen: dict[int, int] = {}

    def encode(self, value: Any, depth: int = 0) -> Any:
        """What stands for `value` in the header.

        Raises:
            TypeError: the value cannot cross.
            ValueError: it is nested too deep or too large.
        """
        if depth > MAX_DEPTH:
            raise ValueError(f"data nested more than {MAX_DEPTH} deep, or inside itself, cannot leave the process")
        if value is None or value is True or value is False:
            return value
        # Subclasses of plain types cross as the plain type, so that no method of theirs is ever asked anything.
        if isinstance(value, int) and not isinstance(value, _SYMBOL):
            return int.__index__(value)
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, _SCALAR):
            return self.encode(value.item(), depth + 1)
        if isinstance(value, Tensor):
            return self._known.get(id(value)) or ["tensor", self.tensor(value)]
        if isinstance(value, _ARRAY) and value.dtype.name in ARRAY_DTYPES:
            return self._known.get(id(value)) or ["tensor", self.array(value)]
        if isinstance(value, _SIZE):
            return ["size", *map(int, value)]
        for kind, container in _CONTAINERS.items():
            if isinstance(value, container):
                return [kind, *(self.encode(item, depth + 1) for item in container.__iter__(value))]
        # A class of the student's own with a dictionary inside is an object to work with, not data.
        if isinstance(value, dict) and type.__getattribute__(type(value), "__module__") != "__main__":
            items = list(dict.items(value))
            return ["dict", *([self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in items)]
        return self._other(value, depth)

    def _other(self, value: Any, depth: int) -> list:
        if type(value) is complex:
            return ["complex", value.real, value.imag]
        if type(value) is bytes:
            return ["bytes", value.hex()]
        if type(value) is slice or type(value) is range:
            return [type(value).__name__, *(self.encode(v, depth + 1) for v in (value.start, value.stop, value.step))]
        if value is Ellipsis:
            return ["ellipsis"]
        if torch is not None and type(value) is torch.dtype:
            return ["dtype", str(value).removeprefix("torch.")]
        if torch is not None and type(value) is torch.device:
            return ["device", str(value)]
        if torch is not None and type(value) is torch.Generator:
            if value not in self.generators:
                self.generators.append(value)
            return ["generator", self.generators.index(value), ["tensor", self.tensor(value.get_state())]]
        return self._export(value, self)

    def tensor(self, tensor: Tensor) -> int:
        """The index of a tensor in the message, to which it is added unless it is there."""
        if id(tensor) in self._seen:
            return self._seen[id(tensor)]
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            described, blob = describe(tensor, self._left)
        index = self._add(tensor, described, blob)
        described.update(self._extra(tensor, self))
        return index

    def array(self, array: Any) -> int:
        """The index of a numpy array in the message, to which it is added unless it is there."""
        if id(array) in self._seen:
            return self._seen[id(array)]
        return self._add(array, *describe_array(array, self._left))

    def _add(self, value: Any, described: dict, blob: bytes) -> int:
        self._left -= _widened(value)
        index = self._seen[id(value)] = len(self.tensors)
        self.tensors.append(value)  # keeps it alive, so that its id stays its own
        self.described.append(described)
        self.blobs.append(blob)
        return index


def describe(tensor: Tensor, max_bytes: int = 1 << 62) -> tuple[dict, bytes]:
    """A tensor's dtype and shape, and its bytes.

    Raises:
        TypeError: its kind (sparse, quantised, ...) cannot cross.
        ValueError: it takes more than `max_bytes`, in float64 at least; nothing has been built then.
    """
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES or tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "meta"):
        raise TypeError(f"a tensor of {tensor.dtype}, {tensor.layout}, on {tensor.device} cannot leave the process")
    described = {"dtype": name, "shape": list(tensor.shape)}
    if tensor.device.type == "meta":
        return described | {"meta": True}, b""
    if _widened(tensor) > max_bytes:
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} takes more memory than the limit allows")
    return described, raw_bytes(tensor)


def describe_array(array: Any, max_bytes: int = 1 << 62) -> tuple[dict, bytes]:
    """A numpy array's dtype and shape, and its bytes.

    Raises:
        ValueError: it takes more than `max_bytes`, in float64 at least; nothing has been built then.
    """
    if _widened(array) > max_bytes:
        raise ValueError(f"an array of shape {array.shape} takes more memory than the limit allows")
    plain = np.ascontiguousarray(array, dtype=ARRAY_DTYPES[array.dtype.name])
    return {"array": array.dtype.name, "shape": list(array.shape)}, plain.tobytes()


def _widened(value: Any) -> int:
    """The bytes that a tensor or array takes once a check has widened it: a view may show one number often."""
    if isinstance(value, Tensor):
        return 0 if value.is_meta else value.numel() * max(value.element_size(), WIDEST)
    return value.size * max(value.itemsize, WIDEST) if isinstance(value, _ARRAY) else 0


def raw_bytes(tensor: Tensor) -> bytes:
    """The bytes of a tensor's values, in order."""
    # Cloned, since a tensor of one number counts as contiguous whatever its stride, and then has no view as bytes.
    plain = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1)
    return plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def versions() -> dict[str, str | None]:
    """Which Python and torch this is; the grader and its workers must have the same."""
    return {"python": sys.version.split()[0], "torch": torch.__version__ if torch else None}


class Reader:
    """Decodes one message.

    Args:
        described: what the message says of its tensors.
        data: their bytes.
        resolve: called with what stands for an object that is not plain data and with this reader; returns the object.
        max_bytes: the most that the tensors may take, in float64 at least, each as often as it occurs in the value.

    Attributes:
        plain: the message's tensors and arrays.
        tensors: the same; what replaces one of these before `decode` is what `decode` returns.
        generators: the generators decoded so far, by index.
    """

    def __init__(
        self, described: list, data: bytearray, resolve: Callable[[list, "Reader"], Any], max_bytes: int = 1 << 62
    ) -> None:
        self.resolve = resolve
        self._keys, self._left = 0, max_bytes
        self.generators: dict[int, torch.Generator] = {}
        try:
            self.plain = list(_rebuild(described, data, max_bytes))
            self.tensors = list(self.plain)
        except ProtocolError:
            raise
        except Exception as error:
            raise ProtocolError(f"a tensor is malformed: {type(error).__name__}") from error

    def decode(self, value: Any) -> Any:
        """The value that stands in the header as `value`.

        Raises:
            ProtocolError: it stands for nothing.
        """
        try:
            return self._decode(value)
        except ProtocolError:
            raise
        except Exception as error:
            raise ProtocolError(f"a value is malformed: {type(error).__name__}") from error

    def _decode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if not isinstance(value, list):
            raise ProtocolError("a value is of no known kind")
        kind, *rest = value
        if kind == "tensor":
            (index,) = rest
            if type(index) is not int or index < 0:
                raise ProtocolError("a tensor is named by no index")
            return self._counted(self.tensors[index])
        if kind in _CONTAINERS:
            if kind in ("set", "frozenset"):
                self._count_keys(rest)
            return _CONTAINERS[kind]([self._decode(item) for item in rest])
        if kind == "dict":
            self._count_keys([k for k, _ in rest])
            return {self._decode(k): self._decode(v) for k, v in rest}
        if kind == "size":
            return torch.Size(rest)
        if kind == "complex":
            return complex(*rest)
        if kind == "bytes":
            return bytes.fromhex(rest[0])
        if kind == "slice":
            return slice(*(self._decode(v) for v in rest))
        if kind == "range":
            if len(numbers := range(*rest)) > MAX_RANGE:
                raise ProtocolError("a range is too long")
            return numbers
        if kind == "ellipsis":
            return Ellipsis
        if kind == "dtype":
            return DTYPES[rest[0]]
        if kind == "device":
            return torch.device(rest[0])
        if kind == "generator":
            index, state = rest
            if index not in self.generators:
                generator = torch.Generator()
                generator.set_state(self._decode(state))
                self.generators[index] = generator
            return self.generators[index]
        return self._counted(self.resolve(value, self))

    def _counted(self, value: Any) -> Any:
        """The same value; a tensor counts each time that it occurs, since a check may make something of each."""
        self._left -= _widened(value)
        if self._left < 0:
            raise ProtocolError(_TOO_LARGE)
        return value

    def _count_keys(self, keys: list) -> None:
        self._keys += sum(type(key) is not str for key in keys)
        if self._keys > MAX_KEYS:
            raise ProtocolError(f"it holds more than {MAX_KEYS} keys that are not strings")


def _rebuild(described: list, data: bytearray, max_bytes: int) -> Iterator[Any]:
    start, left = 0, max_bytes
    for entry in described:
        dtype: Any = ARRAY_DTYPES[entry["array"]] if "array" in entry else DTYPES[entry["dtype"]]
        shape = entry["shape"]
        if len(shape) > 32 or any(type(n) is not int or not 0 <= n < 1 << 40 for n in shape):
            raise ProtocolError("a tensor has no such shape")
        count = 1
        for n in shape:
            count *= n
        if entry.get("meta"):
            yield torch.empty(shape, dtype=dtype, device="meta")
            continue
        left -= count * max(dtype.itemsize, WIDEST)
        if left < 0:
            raise ProtocolError(_TOO_LARGE)
        size = count * dtype.itemsize
        if start + size > len(data):
            raise ProtocolError("a tensor is longer than its bytes")
        if "array" in entry and count:
            array = np.frombuffer(data, dtype=np.uint8, count=size, offset=start)
            yield (array != 0 if dtype.kind == "b" else array.copy().view(dtype)).reshape(shape)
            start += size
            continue
        if count == 0:
            yield np.empty(shape, dtype) if "array" in entry else torch.empty(shape, dtype=dtype)
            continue
        raw = torch.frombuffer(data, dtype=torch.uint8, count=size, offset=start).clone()
        # Any byte but 0 and 1 is no bool: torch would compute with it all the same, and differently in each kernel.
        yield (raw != 0 if dtype is torch.bool else raw.view(dtype)).reshape(shape)
        start += size
    if start != len(data):
        raise ProtocolError("there are bytes that belong to no tensor")


def name_of(value: Any) -> str | None:
    """The name of a function, class or module of torch or of Python's builtins; None if it is none of theirs."""
    if isinstance(value, ModuleType):
        full = f"{value.__name__}:"
    else:
        short = getattr(value, "__name__", None)
        full = f"{getattr(value, '__module__', None)}:{getattr(value, '__qualname__', short)}"
        for module in (torch, nn.functional) if torch else ():  # functions written in C do not say where they live
            if isinstance(short, str) and getattr(module, short, None) is value:
                full = f"{module.__name__}:{short}"
    if full.split(":")[0].split(".")[0] not in ("torch", "builtins"):
        return None
    try:
        return full if find_name(full) is value else None
    except (ImportError, AttributeError, ValueError):
        return None


def find_name(full: str) -> Any:
    """The object that `name_of` gave this name."""
    module, _, name = full.partition(":")
    found = importlib.import_module(module)
    for part in name.split(".") if name else []:
        found = getattr(found, part)
    return found


# What brings a tensor to another device, and what reads its numbers: neither fails where the rest is on a GPU.
_LEAVES = {"to", "cuda", "type_as", "copy_", "new_tensor", "tensor", "as_tensor", "_to_copy.default"}
_LEAVES |= {"item", "tolist", "numpy", "__bool__", "__float__", "__index__", "__int__"}


class CallRecorder(TorchFunctionMode):
    """Notes each call to torch's functions and tensor methods as "name", or "name@device" when it gives a tensor.

    Scalars (tensors without dimensions) mix with any device, so they count as no tensor; nor does a tensor on the CPU
    of which nothing is used but what is brought elsewhere or read.

    Attributes:
        calls: what it has noted.
        inside: whether one of these calls is under way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.inside = False
        # The places in `calls` that a tensor on the CPU comes from; those that went on, and those that met another.
        self._origins = WeakTensorKeyDictionary()
        self._left: set[int] = set()
        self._stuck: set[int] = set()

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name = getattr(func, "__name__", str(func))
        asks_for_values = name == "cpu" or (name == "to" and [a for a in args[1:2] if isinstance(a, str)] == ["cpu"])
        if asks_for_values and args[0].device.type == "meta":
            raise ValueError("there are no values to bring to the CPU")  # where there are, this works on any device
        self.inside = True
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            self.inside = False
        self.note(name, (args, kwargs), result)
        return result

    def note(self, name: str, given: Any, result: Any) -> None:
        """Note one call."""
        origins = set[int]().union(*(self._origins.get(tensor, ()) for tensor in _tensors(given)))
        stays = [tensor for tensor in _tensors(result) if tensor.dim() and tensor.device.type == "cpu"]
        for tensor in stays:
            self._origins[tensor] = origins | {len(self.calls)}
        whole = isinstance(result, Tensor) and result.dim() > 0
        if not stays and whole and name not in _LEAVES:
            self._stuck |= origins
        elif not stays and (isinstance(result, Tensor) or name in _LEAVES):
            self._left |= origins
        self.calls.append(f"{name}@{result.device.type}" if whole else name)

    def noted(self) -> list[str]:
        """All calls in order, without "@cpu" where all that came of a tensor has left the CPU or has been read."""
        gone = self._left - self._stuck
        return [call.removesuffix("@cpu") if place in gone else call for place, call in enumerate(self.calls)]


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in arguments or in a result."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


class _Noting:
    """What an `OperationRecorder` does; were the method its own, torch would import its compiler to keep out of it."""

    recorder: CallRecorder

    def __torch_dispatch__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.recorder.inside:
            self.recorder.note(getattr(func, "__name__", str(func)), (args, kwargs), result)
        return result


class OperationRecorder(_Noting, TorchDispatchMode):
    """Has a `CallRecorder` note what torch computes in no call that it sees: in a script, say, or with it switched off.

    Args:
        recorder: is in charge of all other calls.
    """

    def __init__(self, recorder: CallRecorder) -> None:
        super().__init__()
        self.recorder = recorder


def record_calls(function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """What a `CallRecorder` and an `OperationRecorder` note of one call of a function, in order."""
    with CallRecorder() as recorder, OperationRecorder(recorder):
        function(*args, **kwargs)
    return recorder.noted()
