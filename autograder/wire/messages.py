"""The messages between the grader and a worker, each declared once: on the wire a field has the name that it has here.

Where a field names a tensor, it does so by the tensor's index in the message, whose bytes follow the header.
"""

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar


@dataclass
class Request:
    """What the grader asks a worker to do."""

    id: int
    op: str
    args: Any
    """encoded by a `protocol.Writer`, like `kwargs`"""
    kwargs: Any
    tensors: list[dict]
    """what each tensor of the message is"""
    generators: list[list]
    """for each random generator what the worker calls it, and whether it starts anew"""
    parameters: list[list]
    """those that a check has changed: number, the tensor that holds the values, the gradient's or None"""
    release: list[int]
    """objects that the grader has let go of"""
    forget: list[int]
    """graphs through which the grader goes backward no more"""
    grad: bool
    """whether gradients are recorded"""


@dataclass
class Reply:
    """What a worker says: student code may have written it, so that no field need be of its kind."""

    id: Any = None
    output: Any = ""
    """what student code printed"""
    error: Any = None
    """the exception that was raised, if one was: `types`, `name`, `message`, `traceback`, `raised_in`"""
    value: Any = field(default_factory=lambda: ["nothing"])
    """encoded; by default what no value is encoded as"""
    tensors: Any = field(default_factory=list)
    """what each tensor of the message is, and what it belongs to: a parameter, a leaf, an output of the graph"""
    changed: Any = field(default_factory=list)
    """for each tensor among the arguments that was changed in place its index, and the tensor that holds its values"""
    gradients_of: Any = field(default_factory=list)
    """parameters whose gradients have changed: number, the gradient or None"""
    graph: Any = None
    """the graph that the outputs belong to"""


Message = TypeVar("Message", Request, Reply)


def read(kind: type[Message], header: dict) -> Message:
    """A message out of its header; what it does not know is left out."""
    known = {f.name for f in fields(kind)}
    return kind(**{name: value for name, value in header.items() if name in known})
