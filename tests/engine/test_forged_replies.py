"""A worker that takes hold of the socket to the grader and answers in place of what is to answer.

Each forged reply is sent to the grader, whose reader says why it refuses it, and to a reader that believes every word.
"""

import builtins
import importlib
import json
import os
import pickle
import re
import socket
import struct
from collections.abc import Callable

import pytest
import torch
from unprotected import SECONDS, happens

from autograder.run import grade_notebook
from autograder.wire import proxy
from notebooks import source_notebook, submission

CHECK = "got = double(torch.ones(3, dtype=torch.float64))\nassert torch.equal(got, secret * got), 'wrong'"
DEADLY = pickle.dumps(type("Act", (), {"__reduce__": lambda self: (os._exit, (0,))})()).hex()

# What is sent; what the grader's reader says of it; what becomes of a reader that believes it.
FORGERIES = {
    "random bytes": ("s.sendall(os.urandom(5000))", "is too long|not JSON", "MemoryError|OverflowError|hangs"),
    "a length of 2**60": ("s.sendall(struct.pack('>IQ', 2, 2**60) + b'{}')", "is too long", "MemoryError"),
    "a length that never comes": ("s.sendall(struct.pack('>IQ', 10, 100))", "it took too long", "hangs"),
    "an endless stream": ("while True: s.sendall(b'x' * 100_000)", "is too long", "MemoryError"),
    "JSON nested deep": ("reply('[' * 200_000)", "not JSON: RecursionError", "RecursionError"),
    "JSON that is no object": ("reply('[1, 2]')", "is not an object", "AttributeError"),
    "the answer to another question": (
        'reply(\'{"id": 999999, "value": true}\')',
        "the answer to another question",
        "done",
    ),
    "no value": ("reply(json.dumps({'id': n, 'output': ''}))", "ProtocolError", "KeyError"),
    "a pickle": (
        f"reply(json.dumps({{'id': n, 'value': ['pickle', '{DEADLY}'], 'tensors': []}} | rest))",
        "ProtocolError",
        "dies",
    ),
    "a tensor of negative shape": ("tensor('float32', [-1])", "no such shape|ProtocolError", "ValueError"),
    "a tensor of huge shape": ("tensor('float32', [2**39] * 30)", "ProtocolError", "RuntimeError|ValueError"),
    "a tensor of no shape": ("tensor('float32', None, 4)", "ProtocolError", "TypeError"),
    "a tensor longer than its bytes": ("tensor('float64', [3], 16)", "ProtocolError", "RuntimeError"),
    "bytes that belong to no tensor": ("tensor('float32', [1], 400)", "ProtocolError", "RuntimeError"),
    "a tensor of objects": ("tensor('object', [1], 8)", "ProtocolError", "AttributeError|TypeError"),
    "a tensor that changes what was not sent": (
        "tensor('float32', [1], 4, changed=[[5, 0]])",
        "IndexError",
        "IndexError",
    ),
    "an error of no kind": (
        "reply(json.dumps({'id': n, 'error': {'types': 7, 'message': [], 'name': {}}} | rest))",
        "TypeError",
        "TypeError",
    ),
    "an error that exits": (
        "reply(json.dumps({'id': n, 'error': {'types': ['SystemExit', 'exit'], 'message': 'x', 'name': 'y', "
        "'traceback': ''}} | rest))",
        "^y: y: x",
        "SystemExit",
    ),
    "an object of a forged kind": (
        "reply(json.dumps({'id': n, 'value': ['object', 5, 'function', ['builtins:eval', 'os:system']]} | rest))",
        "could not use what your code returned|wrong",
        "done",
    ),
    "keys that cannot be keys": (
        "reply(json.dumps({'id': n, 'value': ['dict', [['list'], 1]]} | rest))",
        "ProtocolError",
        "TypeError",
    ),
}
FORGE = """
import json, os, socket, struct, sys
s = socket.socket(fileno=3)
rest = {"tensors": [], "changed": [], "generators": [], "gradients_of": [], "output": "fired"}
def reply(text, data=b""):
    s.sendall(struct.pack(">IQ", len(text), len(data)) + text.encode() + data)
def tensor(dtype, shape, size=0, changed=()):
    described = [{"dtype": dtype, "shape": shape}]
    told = {"id": n, "value": ["tensor", 0], "tensors": described, "changed": changed}
    reply(json.dumps(rest | told), b"\\x07" * size)
def double(x):
    global n
    frame = sys._getframe()
    while "id" not in (frame.f_locals.get("header") or {}):
        frame = frame.f_back
    n = frame.f_locals["header"]["id"]
    FORGERY
    while True:
        pass
"""


@pytest.fixture(scope="module")
def source():
    return source_notebook(double_check="secret = torch.rand(())\n" + CHECK)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_reply_earns_nothing(sandbox, source, name):
    forgery, refusal, _ = FORGERIES[name]
    cell = FORGE.replace("FORGERY", forgery)
    graded = grade_notebook(sandbox, submission(source, double=cell), source, only={"double_check"})
    (item,) = graded.items
    assert item.points == 0
    assert item.status in ("crashed", "timeout", "error", "failed")

    assert re.search(refusal, item.message), item.message
    again = grade_notebook(sandbox, submission(source_notebook()), source_notebook())
    assert {item.status for item in again.items} == {"passed"}


def test_a_well_made_lie_gets_through_and_has_to_be_right(sandbox, source):
    """The forger's harness works: what is well made reaches the check, as any wrong answer does."""
    cell = FORGE.replace("FORGERY", "tensor('float64', [3], 24)")
    for check, status in ((CHECK, "failed"), ("assert double(torch.ones(3)).shape == (3,)", "passed")):
        forged = source_notebook(double_check="secret = torch.rand(())\n" + check)
        graded = grade_notebook(sandbox, submission(forged, double=cell), forged, only={"double_check"})
        assert graded.items[0].status == status


GRADIENTS = """
frame = sys._getframe()
while "id" not in (frame.f_locals.get("header") or {}):
    frame = frame.f_back
entry = {"dtype": "float32", "shape": [100_000], "parameter": 5, "leaf": True}
told = {"id": frame.f_locals["header"]["id"], "value": ["tensor", 0], "tensors": [entry]}
told["gradients_of"] = [[5, 0]] * MANY
reply(json.dumps(rest | told), b"\\0" * 400_000)
os._exit(0)
"""


def test_a_gradient_that_is_told_often_is_taken_once(sandbox, source, monkeypatch):
    """Each time costs a copy, outside of any check and its time."""
    read, copies = proxy._state, []
    monkeypatch.setattr(proxy, "_state", lambda parameter: copies.append(parameter.grad) or read(parameter))
    seen = {}
    for many in (1, 100_000):
        copies.clear()
        cell = FORGE + GRADIENTS.replace("MANY", str(many))
        graded = grade_notebook(sandbox, submission(source, double=cell), source, only={"double_check"})
        assert graded.items[0].points == 0
        assert any(gradient is not None for gradient in copies)  # it was heard
        seen[many] = len(copies)
    assert seen[1] == seen[100_000] < 10


def _all(connection: socket.socket, length: int) -> bytes:
    return connection.recv(length, socket.MSG_WAITALL) if length else b""


def _believe(connection: socket.socket) -> object:
    """A reader of replies that believes every word."""
    length, size = struct.unpack(">IQ", _all(connection, 12))
    header, data = json.loads(_all(connection, length)), _all(connection, size)
    if "error" in header:
        for kind in header["error"]["types"]:
            raise getattr(builtins, kind)(header["error"]["message"])
    tensors = [
        torch.frombuffer(bytearray(data), dtype=getattr(torch, t["dtype"])).reshape(t["shape"])
        for t in header.get("tensors", [])
    ]
    arguments = [torch.ones(3)]
    for index, changed in header.get("changed", []):
        arguments[index] = tensors[changed]
    return _value(header["value"], tensors)


def _value(value: object, tensors: list) -> object:
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind == "pickle":
        return pickle.loads(bytes.fromhex(rest[0]))
    if kind == "dict":
        return {_value(k, tensors): _value(v, tensors) for k, v in rest}
    if kind == "object":
        module, _, found = rest[2][-1].partition(":")
        return getattr(importlib.import_module(module), found)
    return [_value(v, tensors) for v in rest] if kind == "list" else tensors[rest[0]]


def _forged(forgery: str) -> Callable[[], None]:
    """The forger and the reader that believes it, in processes of their own."""

    def act() -> None:
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            os.dup2(theirs.fileno(), 3)
            namespace: dict = {}
            exec(FORGE.replace("FORGERY", forgery), namespace)
            header = {"id": 7}  # noqa: F841
            namespace["double"](None)
        theirs.close()
        _believe(ours)

    return act


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_reply_deceives_who_believes_it(name):
    forgery, _, outcome = FORGERIES[name]
    seconds = 2 if "hangs" in outcome else SECONDS
    assert happens(_forged(forgery), seconds, memory_mb=500) in outcome.split("|")
