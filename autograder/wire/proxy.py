"""The grader's side of the objects that live in a worker.

A check is written for real objects and meets a `Remote` in their place. Calls, attributes, items and gradients are
forwarded; tensors and plain data cross as copies, in both directions, so that nothing that student code does changes
what the grader holds. What the worker answers is the student's word: it can be any value, but it is always data, in
the grader's own clean torch. In particular `==` is never forwarded, so that no object can claim to equal what a check
expects.
"""

import ast
import builtins
import ctypes
import re
import sys
import types
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, SupportsIndex

from autograder.limits import HEADER_BYTES, Budget, Limits, OutOfTime
from autograder.verdict import Status
from autograder.wire import messages, protocol
from autograder.wire.process import WorkerProcess
from autograder.wire.protocol import Tensor, nn, torch

# Attributes with double underscores that may be read; any other would let Python or torch believe the worker.
_READABLE = {"__name__", "__qualname__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__", "__init__"}
NO_RESULT = "it sent back something that is not a result"
_KINDS = {"function": types.FunctionType, "method": types.MethodType, "generator": types.GeneratorType}
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[^\S\n\t ]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OWN_PATHS = sorted({str(Path.home()), str(Path(__file__).resolve().parents[2]), sys.prefix, sys.base_prefix}, key=len)


# Those who want to know which tensors student code changes in place: see `watch_changes`.
_watches: list[list[tuple[Tensor, Tensor]]] = []


class WorkerLost(BaseException):
    """The worker is gone, so that this check cannot go on; no check can catch this by accident.

    Attributes:
        status: TIMEOUT or CRASHED.
        by_machine: the machine may be to blame: the clock ran out, or something from outside ended the worker.
    """

    def __init__(self, status: Status, message: str, by_machine: bool = False) -> None:
        super().__init__(message)
        self.status, self.by_machine = status, by_machine


class Link:
    """A conversation with one worker.

    Attributes:
        budget: the time that requests may take together; when it is used up the worker is killed.
        lost: why the worker is gone, if it is.
        output: what student code printed since `take_output` was called.
    """

    def __init__(self, process: WorkerProcess, limits: Limits, sources: Mapping[str, str] | None = None) -> None:
        self.lost: WorkerLost | None = None
        self._process, self._limits, self._sources = process, limits, {} if sources is None else sources
        self.allow(limits.cell_seconds)
        self._output: list[str] = []
        self._count = 0
        self._remotes: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._released: set[int] = set()
        self._forgotten: set[int] = set()
        self._parameters: dict[int, nn.Parameter] = {}
        self._synchronised: dict[int, tuple] = {}
        self._generators: weakref.WeakKeyDictionary[torch.Generator, tuple[int, bytes]] = weakref.WeakKeyDictionary()
        self._generators_seen = 0

    def allow(self, seconds: float) -> None:
        """From now on requests may take so much of the worker's processor time, and by the clock as `Limits` say.

        No single one takes more than `Limits.cell_seconds`: many calls are honest work, one that long is none.
        """
        self.budget = Budget(seconds, self._process.seconds, self._limits.clock_factor)

    @property
    def spent(self) -> float:
        """The processor time that the worker has spent; 0 where that cannot be told."""
        return self._process.seconds() or 0.0

    def close(self) -> None:
        """Kill the worker."""
        self.lost = self.lost or WorkerLost(Status.CRASHED, "the worker was ended")
        self._process.kill()

    def take_output(self) -> str:
        """What student code printed since the last time."""
        text, self._output = "".join(self._output), []
        return clean(text, (self._limits.output_kb << 10) + 100)

    def run(self, source: str, filename: str, go_on: bool = False) -> list[tuple[int, Exception]]:
        """Run a cell.

        Args:
            source: its text.
            filename: what tracebacks call it.
            go_on: run the statements below one that raised, too.

        Returns:
            What it raised, with the line of the statement, 0 for the whole cell; the worker's word.
        """
        told = self.request("run", source, filename, go_on)
        try:
            return [(int(line), _exception(dict(error), self._limits.message_chars)) for line, error in told[:100]]
        except Exception as problem:
            raise self.lose(Status.CRASHED, f"{NO_RESULT}: {type(problem).__name__}") from problem

    def define(self, definitions: Sequence[str], filename: str) -> dict[int, str]:
        """Run some statements; one that fails is left out.

        Returns:
            What those raised that failed, by their number; the worker's word, fit for a message.
        """
        told = self.request("define", list(definitions), filename)
        pairs = [pair for pair in told if isinstance(pair, list) and len(pair) == 2] if isinstance(told, list) else []
        return {n: clean(str(text), 1000) for n, text in pairs if type(n) is int and 0 <= n < len(definitions)}

    def seed(self, number: int) -> None:
        """Seed the default random generators of the worker."""
        self.request("seed", number)

    def install(self, modules: Mapping[str, str]) -> None:
        """Let the worker import these modules, given as text."""
        self.request("install", dict(modules))

    def named(self, name: str) -> Any:
        """The object of this name in the student's notebook.

        Raises:
            LookupError: there is none.
        """
        found = self.request("global", name)
        if not isinstance(found, list) or len(found) != 1:
            raise LookupError(name)
        if type(found[0]) is Remote:
            object.__setattr__(found[0], "_remote_global", name)
        return found[0]

    def bind(self, name: str, value: Any) -> None:
        """Let a name of the student's notebook stand for this value."""
        self.request("bind", name, value)

    def unbind(self, name: str) -> None:
        """Delete a name of the student's notebook."""
        self.request("unbind", name)

    def source_of(self, name: str | None) -> str:
        """The text of the student's definition of a name, from the grader's copy of the submission."""
        if name is None or name not in self._sources:
            raise LookupError("only the source of a function or class of the notebook is known")
        return self._sources[name]

    def request(self, op: str, *args: Any, **kwargs: Any) -> Any:
        """Have the worker do something; returns the result or raises what it raised.

        Raises:
            WorkerLost: it took too long, crashed, or sent what is not a reply.
            TypeError: an argument cannot cross.
        """
        writer = protocol.Writer(self._export, _extra, max_bytes=self._limits.tensor_bytes)
        encoded = {"args": writer.encode(list(args)), "kwargs": writer.encode(kwargs)}
        generators = [self._generator(generator) for generator in writer.generators]
        arguments = list(writer.tensors)
        if self.lost:
            raise self.lost.with_traceback(None)  # a check that goes on asking would make it longer each time
        self._count += 1
        request = messages.Request(
            id=self._count,
            op=op,
            generators=generators,
            parameters=self._changed_parameters(writer),
            tensors=writer.described,
            release=list(self._released),
            forget=list(self._forgotten),
            grad=torch is not None and torch.is_grad_enabled(),
            **encoded,
        )
        self._released.clear()
        self._forgotten.clear()
        return self._exchange(request, writer.blobs, arguments)

    def backward(
        self, number: int, indices: list[int], gradients: list[Tensor], inputs: Mapping[int, tuple]
    ) -> dict[int, Tensor]:
        """The gradients of a call's arguments, by their index, given those of its outputs.

        Args:
            number: of the graph in the worker.
            indices: of the outputs whose gradients are given.
            gradients: these gradients.
            inputs: by their index, shape and dtype of the arguments that gradients are wanted of, and of these.
        """
        found = self.request("backward", number, indices, gradients)
        if type(found) is not dict or not all(isinstance(gradient, Tensor) for gradient in found.values()):
            raise self.lose(Status.CRASHED, f"{NO_RESULT}: a gradient of the wrong kind")
        for index, like in inputs.items():
            if index in found and (found[index].shape, found[index].dtype) != like:
                raise self.lose(Status.CRASHED, f"{NO_RESULT}: a gradient of the wrong kind")
        return found

    def _exchange(self, request: messages.Request, blobs: list[bytes], arguments: list) -> Any:
        connection, most = self._process.connection, self._limits.reply_mb << 20
        alone = Budget(self._limits.cell_seconds, self._process.seconds, self._limits.clock_factor)

        def left() -> float:
            return min(self.budget.left(), alone.left())

        try:
            protocol.send(connection, vars(request), blobs, left)
            header, data = protocol.receive(connection, most, HEADER_BYTES, left)
        except OutOfTime as over:
            asked = "does it wait for something?" if over.by_clock else "does a loop never end?"
            raise self.lose(
                Status.TIMEOUT, f"it took too long, {over}, and was stopped: {asked}", over.by_clock
            ) from None
        except protocol.ProtocolError as error:
            raise self.lose(Status.CRASHED, f"{NO_RESULT}: {error}") from None
        except (OSError, EOFError):
            raise self.lose(*_cause_of_death(self._process.autopsy(), self._limits)) from None
        reply = messages.read(messages.Reply, header)
        if reply.id != request.id:
            raise self.lose(Status.CRASHED, f"{NO_RESULT}: the answer to another question")
        try:
            if sum(map(len, self._output)) < self._limits.output_kb << 10:
                self._output.append(str(reply.output))
            raised: Exception | None = None
            value = None
            if reply.error is not None:
                raised = _exception(reply.error, self._limits.message_chars)
                if isinstance(raised, StopIteration | StopAsyncIteration) and request.op != "next":
                    # Raised in a check's `map` or `zip`, it would end the check's loop as if all were well.
                    raised = _exception(reply.error | {"types": []}, self._limits.message_chars)
            else:
                reader = protocol.Reader(reply.tensors, data, _nothing, self._limits.tensor_bytes)
                value = self._take(reply, reader, arguments)
                # Each parameter once: it costs time and memory each time.
                for number, index in dict(reply.gradients_of).items():
                    self._set_gradient(number, None if index is None else reader.plain[_index(index)])
        except Exception as problem:
            raise self.lose(Status.CRASHED, f"{NO_RESULT}: {type(problem).__name__}") from problem
        if raised:
            raise raised
        return value

    def _changed_parameters(self, writer: protocol.Writer) -> list[list]:
        """The parameters that a check has changed in its hands since the worker last heard of them."""
        changed = []
        for number in list(self._parameters):
            parameter = self._parameters[number]
            if (now := _state(parameter)) != self._synchronised.get(number):
                self._synchronised[number] = now
                gradient = None if parameter.grad is None else writer.tensor(parameter.grad)
                changed.append([number, writer.tensor(parameter.detach()), gradient])
            del parameter
            # One that the check has let go of, so that only we refer to it, was kept for its last change to arrive.
            if _references(self._parameters, number) == _REFERENCES_OF_OURS:
                del self._parameters[number], self._synchronised[number]
                self._released.add(number)
        return changed

    def _generator(self, generator: "torch.Generator") -> list:
        """What the worker calls a generator, and whether it starts there anew.

        A generator that was handed over goes on in the worker from where student code has left it, until the check
        seeds it again. The check's own moves on by one number, whatever student code has drawn.
        """
        if generator not in self._generators:
            self._generators_seen += 1
        number, left = self._generators.get(generator, (self._generators_seen, b""))
        is_new = protocol.raw_bytes(generator.get_state()) != left
        torch.rand(1, generator=generator)
        self._generators[generator] = number, protocol.raw_bytes(generator.get_state())
        return [number, is_new]

    def _set_gradient(self, number: int, gradient: Tensor | None) -> None:
        if (parameter := self._parameters.get(number)) is not None:
            parameter.grad = gradient
            self._synchronised[number] = _state(parameter)

    def forget(self, number: int) -> None:
        """Let the worker drop a graph at the next request."""
        self._forgotten.add(number)

    def lose(self, status: Status, message: str, by_machine: bool = False) -> WorkerLost:
        self._process.kill()
        self.lost = WorkerLost(status, message, by_machine)
        return self.lost

    def _take(self, reply: messages.Reply, reader: protocol.Reader, arguments: list) -> Any:
        """The value of a reply. Nothing in it changes an argument: what came back changed is told to those who ask."""

        def resolve(stands: list, reader: protocol.Reader) -> Any:
            kind, *rest = stands
            if kind == "argument":
                return arguments[_index(rest[0])]
            if kind == "object":
                return self._remote(*rest)
            raise protocol.ProtocolError(f"{kind!r:.40} is unknown")

        plain, reader.resolve = reader.plain, resolve
        for index, entry in enumerate(reply.tensors):
            reader.tensors[index] = self._leaf(plain, index, entry)
        self._attach(reply, reader, arguments)
        value = reader.decode(reply.value)
        for index, changed in reply.changed:
            change = arguments[_index(index)], plain[_index(changed)]
            for watch in _watches:
                watch.append(change)
        return value

    def _leaf(self, plain: list[Tensor], index: int, entry: dict) -> Tensor:
        tensor = plain[index]
        if "array" in entry:
            return tensor
        gradient = plain[_index(entry["gradient"])] if "gradient" in entry else None
        if "parameter" in entry:
            number = _index(entry["parameter"])
            parameter = self._parameters.get(number)
            if parameter is None or parameter.shape != tensor.shape or parameter.dtype != tensor.dtype:
                parameter = self._parameters[number] = nn.Parameter(tensor, requires_grad=entry["leaf"] is True)
            parameter.data = tensor
            parameter.requires_grad_(entry["leaf"] is True)
            self._set_gradient(number, gradient)
            return parameter
        if entry.get("leaf") is True:
            tensor.requires_grad_().grad = gradient
        return tensor

    def _attach(self, reply: messages.Reply, reader: protocol.Reader, arguments: list) -> None:
        """Make outputs that depend on a graph in the worker depend on the arguments they were made from."""
        outputs = [(i, _index(e["output"])) for i, e in enumerate(reply.tensors) if "output" in e]
        if not outputs:
            return
        from autograder.wire.graph import Kept, RemoteGraph  # needs torch, which is there if anything has a graph

        graph = _index(reply.graph)
        inputs = [(i, t) for i, t in enumerate(arguments) if isinstance(t, Tensor) and t.requires_grad]
        like = {i: (t.shape, t.dtype) for i, t in inputs}
        kept = Kept(lambda outputs, found: self.backward(graph, outputs, found, like), lambda: self.forget(graph))
        results = RemoteGraph.apply(
            kept,
            [number for _, number in outputs],
            [i for i, _ in inputs],
            [reader.tensors[i] for i, _ in outputs],
            torch.zeros((), requires_grad=True),  # makes the outputs require grad even if no argument does
            *(tensor for _, tensor in inputs),
        )
        for (i, _), result in zip(outputs, results, strict=True):
            reader.tensors[i] = result

    def _remote(self, number: int, name: str, kinds: list[str]) -> "Remote":
        found = self._remotes.get(_index(number))
        if type(found) is not Remote:
            kind = next((_TORCH_KINDS[k] for k in kinds if k in _TORCH_KINDS), None) or _KINDS.get(name, object)
            found = Remote(self, number, kind, str(name)[:80])
            self._remember(number, found)
        return found

    def _remember(self, number: int, found: Any) -> None:
        self._remotes[number] = found
        self._released.discard(number)
        weakref.finalize(found, _release, weakref.ref(self), number, id(found)).atexit = False

    def _export(self, value: Any, writer: protocol.Writer) -> list:
        if type(value) is Remote:
            if object.__getattribute__(value, "_remote_link") is not self:
                raise TypeError("an object of a worker that is gone cannot be used again")
            return ["object", object.__getattribute__(value, "_remote_number")]
        if name := protocol.name_of(value):
            return ["name", name]
        if isinstance(value, nn.Module) and (name := protocol.name_of(type(value))):
            return ["module", name, writer.encode(value.__dict__, 1)]
        raise TypeError(
            f"{type(value).__name__} cannot be handed to student code by a check: "
            "define it with `autograder.checks.place` beside the student's object"
        )


def _release(link: weakref.ref, number: int, _: int) -> None:
    if (alive := link()) is not None and number not in alive._remotes:
        alive._released.add(number)


class Remote:
    """An object that lives in the worker. `type(x) is Remote` is the only way to tell it from a real one."""

    __slots__ = ("__weakref__", "_remote_global", "_remote_kind", "_remote_link", "_remote_name", "_remote_number")

    def __init__(self, link: Link, number: int, kind: type, name: str) -> None:
        for slot, value in (("link", link), ("number", number), ("kind", kind), ("name", name), ("global", None)):
            object.__setattr__(self, f"_remote_{slot}", value)

    @property  # type: ignore[misc]  # nobody is to set it
    def __class__(self) -> type:
        return self._remote_kind

    def __repr__(self) -> str:
        return f"<the student's {self._remote_global or self._remote_name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._remote_link.request("call", self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in _READABLE:
            raise AttributeError(name)
        return self._remote_link.request("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._remote_link.request("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._remote_link.request("delattr", self, name)

    def __len__(self) -> int:
        return self._remote_link.request("len", self)

    def __bool__(self) -> bool:
        return self._remote_link.request("bool", self) is True

    def __getitem__(self, key: Any) -> Any:
        return self._remote_link.request("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._remote_link.request("setitem", self, key, value)

    def __iter__(self) -> Iterator[Any]:
        items = self._remote_link.request("iter", self)
        if not isinstance(items, list):
            raise TypeError("it cannot be iterated over")
        return iter(items)

    def __next__(self) -> Any:
        return self._remote_link.request("next", self)

    def __contains__(self, item: Any) -> bool:
        return any(item is other or item == other for other in self)

    def __deepcopy__(self, memo: dict) -> Any:
        return self._remote_link.request("deepcopy", self)

    def __reduce_ex__(self, version: SupportsIndex) -> Any:
        raise TypeError("an object that lives in the worker cannot be pickled")


class Shared:
    """A check's names, some of which it shares with the student's notebook: what it deletes or sets changes there, too.

    Args:
        namespace: the check's names; the mapping writes through to it.
        shared: the names that are the student's.
        link: to the worker that holds them.
    """

    def __init__(self, namespace: dict[str, Any], shared: set[str], link: Link) -> None:
        self._namespace, self._shared, self._link = namespace, shared, link

    def __getitem__(self, name: str) -> Any:
        return self._namespace[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._namespace[name] = value
        if name in self._shared:
            self._link.bind(name, value)

    def __delitem__(self, name: str) -> None:
        del self._namespace[name]
        if name in self._shared:
            self._link.unbind(name)


@contextmanager
def watch_changes() -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Collect what student code did, in this context, to tensors that were handed over.

    Returns:
        A list that fills up: each tensor that the worker says was changed in place, and its values there. The tensor
        itself has not changed.
    """
    changes: list[tuple[Tensor, Tensor]] = []
    _watches.append(changes)
    try:
        yield changes
    finally:
        _watches[:] = [watch for watch in _watches if watch is not changes]


def record_calls(remote: Remote, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> list[str]:
    """What `protocol.record_calls` notes of a call made in the worker, in order; student code can forge it."""
    names = remote._remote_link.request("record", remote, list(args), dict(kwargs or {}))
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def place(source: str, name: str, beside: Remote) -> Any:
    """Define a helper in the worker.

    Args:
        source: its text; student code can read it.
        name: the name that the text defines.
        beside: an object that lives in the worker.

    Returns:
        The proxy of the helper.
    """
    return beside._remote_link.request("place", source, name)


def seed(number: int, beside: Remote) -> None:
    """Seed the default random generators of the worker."""
    beside._remote_link.seed(number)


def source_of(remote: Remote) -> str:
    """The text of the student's definition of a function or class, from the grader's copy of the submission.

    Raises:
        LookupError: the object was not reached by its name.
    """
    return remote._remote_link.source_of(remote._remote_global)


def parameter_names(remote: Remote) -> list[str]:
    """What the grader's copy of the submission calls the arguments of a function, a class or a class's `forward`.

    Returns:
        The names without `self`; none if there is no such definition.
    """
    by_name = remote._remote_global is not None
    try:
        defined = ast.parse(remote._remote_link.source_of(remote._remote_global or remote._remote_name)).body[0]
    except LookupError:
        return []
    if isinstance(defined, ast.ClassDef):
        method = "__init__" if by_name else "forward"  # an object of the class has no name in the notebook
        defined = next((one for one in defined.body if getattr(one, "name", "") == method), defined)
    if not isinstance(defined, ast.FunctionDef):
        return []
    names = [one.arg[:40] for one in [*defined.args.posonlyargs, *defined.args.args]]
    return [name for name in names if name != "self"]


def clean(text: str, most: int) -> str:
    """Text of student code fit to be shown: no control characters, no path of this machine, not endless."""
    if len(text) > most:
        text = text[: most // 2] + "\n[...]\n" + text[-most // 2 :]
    text = _CONTROL.sub("", text.encode("utf-8", "replace").decode())
    for path in reversed(_OWN_PATHS):
        if len(path) > 1:
            text = text.replace(path, "...")
    return text


def _extra(tensor: Tensor, writer: protocol.Writer) -> dict:
    extra = {"parameter": True} if isinstance(tensor, nn.Parameter) else {}
    return extra | ({"requires_grad": True, "leaf": tensor.is_leaf} if tensor.requires_grad else {})


def _state(parameter: Tensor) -> tuple:
    if parameter.device.type != "cpu":
        return ()
    return _held_bytes(parameter), None if parameter.grad is None else _held_bytes(parameter.grad)


def _held_bytes(tensor: Tensor) -> bytes:
    """The bytes of a tensor of this process, read where they lie if they can be: there are many, at each question."""
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return ctypes.string_at(tensor.data_ptr(), tensor.nbytes)
    return protocol.raw_bytes(tensor)


def _references(table: dict[int, Any], number: int) -> int:
    return sys.getrefcount(table[number])


# How many references to an entry Python counts when the table's is the only one: it differs between versions.
_REFERENCES_OF_OURS = _references({0: nn.Parameter(torch.zeros(1)) if torch else object()}, 0)


def _index(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise protocol.ProtocolError("an index is none")
    return value


def _nothing(stands: list, reader: protocol.Reader) -> Any:
    raise protocol.ProtocolError("an object where none can be")


def _exception(described: dict, most: int) -> Exception:
    """The nearest built-in exception to what the worker says it raised."""
    name, message = clean(str(described["name"]), 100), clean(str(described["message"]), most)
    named = [getattr(builtins, str(kind), None) for kind in described["types"]]
    kinds = [kind for kind in named if isinstance(kind, type) and issubclass(kind, Exception)]
    if not kinds:  # SystemExit and its like would end the grader
        kinds, message = [RuntimeError], f"{name}: {message}" if message else name
    for kind in [*kinds, Exception]:
        try:
            error: Any = kind(message)  # which takes further attributes
            break
        except TypeError:
            continue
    error.student_type = name
    error.student_traceback = clean(str(described["traceback"]), most)
    error.student_place = clean(str(described.get("raised_in", "")), 100)
    return error


def _cause_of_death(report: dict, limits: Limits) -> tuple[Status, str, bool]:
    """How a worker ended, as status and message, and whether something from outside may have ended it."""
    code, reason = report.get("code"), report.get("reason")
    if reason == "cpu":
        told = f"it used more than {limits.cpu_seconds} seconds of processor time in all and was stopped"
        return Status.TIMEOUT, told, False
    if reason == "threads":
        return Status.CRASHED, "it started more threads than it may and was stopped", False
    if code == -11:
        return Status.CRASHED, "it crashed (segmentation fault)", False
    if isinstance(code, int) and code < 0:
        return Status.CRASHED, f"it was killed (signal {-code})", code == -9
    # Who ends himself leaves a report; without one, the process that would have written it is gone as well.
    return Status.CRASHED, "it ended the process it runs in", code is None


def _torch_kinds() -> dict[str, type]:
    """The classes that a remote object can be an instance of, by the name that crosses."""
    found = {}
    if torch is None:
        return found
    for kind in (*vars(nn).values(), *vars(torch.optim).values(), type):
        if isinstance(kind, type) and not issubclass(kind, Tensor) and (name := protocol.name_of(kind)):
            found[name] = kind
    return found


_TORCH_KINDS = _torch_kinds()
