"""The untrusted side: holds the student's objects, runs the student's cells and answers the grader's requests.

It runs inside the sandbox, in a process of its own for each submission. Student code can read and change everything in
this process, so nothing here is secret, and the grader believes none of its answers.
"""

import __future__

import ast
import builtins
import contextlib
import copy
import io
import linecache
import operator
import os
import random
import re
import socket
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from itertools import islice
from types import ModuleType
from typing import Any

import messages
import protocol
from protocol import Tensor, nn, torch

MESSAGE_CHARS = 20_000
MOST_TOLD = 10  # of the statements of a cell that raised


class Output(io.StringIO):
    """Standard output up to a limit; the rest is dropped."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._left = limit

    def write(self, text: str) -> int:
        if self._left > 0:
            super().write(text[: self._left])
            self._left -= len(text)
            if self._left <= 0:
                super().write("\n[the rest of the output was dropped]\n")
        return len(text)

    def fileno(self) -> int:
        return 1


class _Shell:
    """Stands for IPython's shell, whose magics do nothing here."""

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: None


class TextFinder(Loader):
    """Imports modules whose source came as text: the reference of earlier chapters."""

    def __init__(self, modules: dict[str, str]) -> None:
        self.modules = modules

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname not in self.modules:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in self.modules)
        return spec_from_loader(fullname, self, origin=f"<{fullname}>", is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        return None  # an ordinary module

    def exec_module(self, module: ModuleType) -> None:
        source, filename = self.modules[module.__name__], f"<{module.__name__}>"
        _remember(source, filename)
        for statement in ast.parse(source).body:
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([statement], []), filename, "exec"), module.__dict__)


class Worker:
    """One submission's objects, and the answers to requests about them."""

    def __init__(self, tensor_bytes: int, output_bytes: int, items: int) -> None:
        self.tensor_bytes, self.output_bytes, self.items = tensor_bytes, output_bytes, items
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.graphs: dict[int, tuple[list[Tensor], dict[int, Tensor]]] = {}
        self.gradients: dict[int, tuple | None] = {}
        self.generators: dict[int, torch.Generator] = {}
        self.count = 0
        self.flags = 0  # what cells imported from `__future__`, which holds for later cells, too, as in a notebook
        self.main = ModuleType("__main__")
        self.main.__dict__.update(display=print, get_ipython=_Shell)
        sys.modules["__main__"] = self.main
        self.operations: dict[str, Callable] = {
            "call": lambda function, *args, **kwargs: function(*args, **kwargs),
            "record": protocol.record_calls,
            "getattr": getattr,
            "setattr": setattr,
            "delattr": delattr,
            "len": len,
            "bool": bool,
            "getitem": operator.getitem,
            "setitem": operator.setitem,
            "iter": self._list,
            "next": next,
            "deepcopy": copy.deepcopy,
            "run": self._run,
            "define": self._define,
            "global": self._global,
            "bind": self.main.__dict__.__setitem__,
            "unbind": self.main.__dict__.__delitem__,
            "place": self._place,
            "backward": self._backward,
            "seed": _seed,
            "install": lambda modules: sys.meta_path.insert(0, TextFinder(modules)),
        }

    def answer(self, request: messages.Request, data: bytearray) -> tuple[messages.Reply, list[bytes]]:
        """The reply to one request: a value, or the exception that was raised."""
        for number in request.forget:
            self.graphs.pop(number, None)
        output = sys.stdout = sys.stderr = Output(self.output_bytes)
        try:
            with warnings.catch_warnings():
                reader = protocol.Reader(request.tensors, data, self._resolve)
                self._set_parameters(request, reader)
                for number in request.release:
                    self.numbers.pop(id(self.objects.pop(number, None)), None)
                    self.gradients.pop(number, None)
                reply, writer = self._apply(request, reader)
                reply.gradients_of = self._new_gradients(writer)
                reply.tensors, blobs = writer.described, writer.blobs
        except BaseException as error:
            reply, blobs = messages.Reply(error=_describe_error(error)), []
        reply.id, reply.output = request.id, output.getvalue()
        return reply, blobs

    def _set_parameters(self, request: messages.Request, reader: protocol.Reader) -> None:
        """Take over what a check did to the parameters that it holds."""
        for number, index, gradient in request.parameters:
            parameter = self.objects[number]
            with torch.no_grad():
                parameter.copy_(reader.plain[index])
            parameter.grad = None if gradient is None else reader.plain[gradient]
            self.gradients[number] = self._gradient_contents(parameter)

    def _new_gradients(self, writer: protocol.Writer) -> list[list]:
        """The gradients that have changed of the parameters that the grader holds."""
        changed = []
        for number in list(self.gradients):
            parameter = self.objects[number]
            if (now := self._gradient_contents(parameter)) != self.gradients[number]:
                self.gradients[number] = now
                changed.append([number, None if parameter.grad is None else writer.tensor(parameter.grad)])
        return changed

    def _apply(self, request: messages.Request, reader: protocol.Reader) -> tuple[messages.Reply, protocol.Writer]:
        leaves: dict[int, Tensor] = {}
        for index, entry in enumerate(request.tensors):
            if "array" not in entry:
                reader.tensors[index] = _as_sent(reader.tensors[index], entry, index, leaves)
        for index, (number, is_new) in enumerate(request.generators):
            if not is_new:
                reader.generators[index] = self.generators[number]
        args, kwargs = reader.decode(request.args), reader.decode(request.kwargs)
        for index, (number, _) in enumerate(request.generators):
            self.generators[number] = reader.generators[index]
        tensors = list(reader.tensors)
        before = [self._contents(tensor) for tensor in tensors]
        with torch.set_grad_enabled(request.grad) if torch else contextlib.nullcontext():
            result = self.operations[request.op](*args, **kwargs)

        changed = [i for i, tensor in enumerate(tensors) if self._contents(tensor) != before[i]]
        known = {id(tensor): ["argument", i] for i, tensor in enumerate(tensors) if i not in changed}
        outputs: list[Tensor] = []
        writer = protocol.Writer(
            self._export, lambda tensor, writer: self._extra(tensor, writer, outputs), known, self.tensor_bytes
        )
        reply = messages.Reply(value=writer.encode(result))
        reply.changed = [[i, _written(writer, tensors[i])] for i in changed]
        if outputs:
            self.count += 1
            self.graphs[self.count] = outputs, leaves
            reply.graph = self.count
        return reply, writer

    def _backward(self, graph: int, indices: list[int], gradients: list[Tensor]) -> dict[int, Tensor]:
        """The gradients of a call's arguments, by their index, given those of its outputs."""
        outputs, leaves = self.graphs[graph]
        for leaf in leaves.values():
            leaf.grad = None
        with torch.enable_grad():
            # Were the gradients given as such, torch would import sympy to compare sizes: half a second.
            sums = [(outputs[i] * gradient).sum() for i, gradient in zip(indices, gradients, strict=True)]
            torch.autograd.backward(sums, retain_graph=True)
        return {index: leaf.grad for index, leaf in leaves.items() if leaf.grad is not None}

    def _extra(self, tensor: Tensor, writer: protocol.Writer, outputs: list[Tensor]) -> dict:
        if isinstance(tensor, nn.Parameter) or (tensor.requires_grad and tensor.is_leaf):
            extra = {"leaf": tensor.requires_grad}
            if isinstance(tensor, nn.Parameter):
                extra["parameter"] = number = self._number(tensor)
                self.gradients[number] = self._gradient_contents(tensor)
            if tensor.grad is not None:
                extra["gradient"] = writer.tensor(tensor.grad)
            return extra
        if tensor.requires_grad:
            outputs.append(tensor)
            return {"output": len(outputs) - 1}
        return {}

    def _contents(self, tensor: Any) -> tuple:
        if not isinstance(tensor, Tensor):
            return protocol.describe_array(tensor, self.tensor_bytes)
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            described, blob = protocol.describe(tensor, self.tensor_bytes)
        return described["dtype"], described["shape"], blob

    def _gradient_contents(self, parameter: Tensor) -> tuple | None:
        return None if parameter.grad is None else self._contents(parameter.grad)

    def _export(self, value: Any, writer: protocol.Writer) -> list:
        names = [protocol.name_of(kind) for kind in type(value).__mro__]
        return ["object", self._number(value), type(value).__name__, [name for name in names if name]]

    def _number(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.count += 1
            self.objects[self.count] = value
            self.numbers[id(value)] = self.count
        return self.numbers[id(value)]

    def _resolve(self, stands: list, reader: protocol.Reader) -> Any:
        kind, *rest = stands
        if kind == "object":
            return self.objects[rest[0]]
        if kind == "name":
            return protocol.find_name(rest[0])
        if kind == "module":
            module = (kind := protocol.find_name(rest[0])).__new__(kind)
            module.__dict__.update(reader.decode(rest[1]))
            return module
        raise protocol.ProtocolError(f"{kind} is unknown")

    def _list(self, value: Any) -> list:
        items = list(islice(iter(value), self.items + 1))
        if len(items) > self.items:
            raise ValueError(f"it yields more than {self.items} items")
        return items

    def _run(self, source: str, filename: str, go_on: bool) -> list:
        """Run a cell, and tell what it raised, with the line of the statement.

        Args:
            source: its text.
            filename: what tracebacks call it.
            go_on: run the statements below one that raised, too.
        """
        _remember(source, filename)
        try:
            tree = ast.parse(source, filename)
        except BaseException as error:
            return [[0, _describe_error(error)]]
        units = [(s.lineno, ast.Module([s], [])) for s in tree.body] if go_on else [(0, tree)]
        failed: list[list] = []
        for line, unit in units:
            try:
                self._execute(unit, filename)
            except BaseException as error:  # `exit()` is no end either
                if len(failed) < MOST_TOLD:
                    failed.append([line, _describe_error(error)])
        return failed

    def _define(self, definitions: list[str], filename: str) -> list:
        """Run some statements; one that fails, an import that is not to be had above all, does not cost the others."""
        _remember("\n".join(definitions), filename)
        failed = []
        line = 0
        for number, source in enumerate(definitions):
            try:
                self._execute(ast.increment_lineno(ast.parse(source, filename), line), filename)
            except Exception as error:
                failed.append([number, f"{type(error).__name__}: {error}"[:MESSAGE_CHARS]])
            line += source.count("\n") + 1
        return failed

    def _execute(self, tree: ast.Module, filename: str) -> None:
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                for alias in statement.names:
                    self.flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
        exec(compile(tree, filename, "exec", self.flags, dont_inherit=True), self.main.__dict__)

    def _global(self, name: str) -> list:
        return [self.main.__dict__[name]] if name in self.main.__dict__ else []

    def _place(self, source: str, name: str) -> Any:
        namespace = {"__name__": "helpers"}
        if torch is not None:
            namespace |= {"torch": torch, "nn": nn, "F": nn.functional, "Tensor": Tensor}
        # Annotations may name what is not imported here.
        code = compile(source, f"<helper {name}>", "exec", __future__.annotations.compiler_flag, True)
        exec(code, namespace)
        return namespace[name]


def serve(connection: socket.socket, settings: dict) -> None:
    """Answer requests until the grader hangs up.

    Args:
        connection: the socket to the grader.
        settings: `tensor_bytes`, `output_bytes` and `items`, the limits that an honest submission is held to here.
    """
    _seed(int.from_bytes(os.urandom(7), "big"))
    worker = Worker(settings["tensor_bytes"], settings["output_bytes"], settings["items"])
    protocol.send(connection, {"ready": True})
    while True:
        try:
            header, data = protocol.receive(connection, 1 << 40, 1 << 40)
        except EOFError:
            return
        reply, blobs = worker.answer(messages.read(messages.Request, header), data)
        try:
            protocol.send(connection, vars(reply), blobs)
        except (ValueError, TypeError) as error:
            told = messages.Reply(id=reply.id, error=_describe_error(error), output=reply.output)
            protocol.send(connection, vars(told))


def _as_sent(tensor: Tensor, entry: dict, index: int, leaves: dict[int, Tensor]) -> Tensor:
    """The tensor as the grader has it: a parameter, a leaf, or the result of something."""
    if entry.get("parameter"):
        tensor = nn.Parameter(tensor, requires_grad=bool(entry.get("requires_grad")))
    if not entry.get("requires_grad"):
        return tensor
    leaves[index] = tensor.requires_grad_()
    with torch.enable_grad():
        return tensor if entry["leaf"] else tensor.clone()


def _written(writer: protocol.Writer, value: Any) -> int:
    if not isinstance(value, Tensor):
        return writer.array(value)
    with torch.no_grad():
        return writer.tensor(value.detach())


def _seed(number: int) -> None:
    if torch is not None:
        torch.manual_seed(number)
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % (1 << 32))


def _remember(source: str, filename: str) -> None:
    """Let tracebacks and `inspect.getsource` find a text; `torch.jit.script` compiles what that gives."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def _describe_error(error: BaseException) -> dict:
    try:
        message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    except BaseException:
        message = "(its message cannot be shown)"
    return {
        "types": [kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind],
        "name": type(error).__name__,
        "message": message[:MESSAGE_CHARS],
        "traceback": _format_traceback(error)[-MESSAGE_CHARS:],
        "raised_in": _raised_in(error),
    }


def _raised_in(error: BaseException) -> str:
    """The file whose own line raised an exception."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].f_code.co_filename if frames else ""


def _format_traceback(error: BaseException) -> str:
    try:
        told = traceback.TracebackException.from_exception(error, limit=-30)
        told.stack[:] = [frame for frame in told.stack if frame.filename not in (__file__, protocol.__file__)]
        for frame in told.stack:
            frame.filename = re.sub(r"^.*/(?:site-packages|dist-packages|python3\.\d+|env/\d+)/", "", frame.filename)
        return "".join(told.format(chain=False))
    except BaseException:
        return ""
