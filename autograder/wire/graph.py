"""Gradients through a call that was made in a worker: a graph here whose backward asks the worker for its part."""

from typing import TYPE_CHECKING

import torch
from torch.autograd.function import once_differentiable

from autograder.verdict import Status

if TYPE_CHECKING:
    from autograder.wire.proxy import Link


class Kept:
    """A graph that the worker keeps for as long as the grader may go backward through it."""

    def __init__(self, link: "Link", number: int) -> None:
        self.link, self.number = link, number

    def __del__(self) -> None:
        self.link.forget(self.number)


class RemoteGraph(torch.autograd.Function):
    """Outputs of a call in the worker: going backward asks the worker."""

    @staticmethod
    def forward(ctx, kept, outputs, inputs, results, anchor, *tensors):
        ctx.kept, ctx.outputs, ctx.inputs = kept, outputs, inputs
        ctx.like = [(tensor.shape, tensor.dtype) for tensor in tensors]
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        used = [(o, g) for o, g in zip(ctx.outputs, gradients, strict=True) if g is not None]
        link = ctx.kept.link
        found = link.backward(ctx.kept.number, [o for o, _ in used], [g for _, g in used])
        results = [found.get(index) for index in ctx.inputs]
        for result, like in zip(results, ctx.like, strict=True):
            if result is not None and (result.shape, result.dtype) != like:
                raise link.lose(
                    Status.CRASHED, "it sent back something that is not a result: a gradient of the wrong kind"
                )
        return (None, None, None, None, None, *results)
