"""Gradients through a call that was made in a worker: a graph here whose backward asks the worker for its part."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Kept:
    """A graph that the worker keeps for as long as the grader may go backward through it.

    Args:
        ask: given the indices of outputs and the gradients of these, gives those of the call's arguments by index.
        forget: called when nobody can go backward any more.
    """

    def __init__(
        self, ask: Callable[[list[int], list[Tensor]], dict[int, Tensor]], forget: Callable[[], object]
    ) -> None:
        self.ask, self.forget = ask, forget

    def __del__(self) -> None:
        self.forget()


class RemoteGraph(torch.autograd.Function):
    """Outputs of a call in the worker: going backward asks the worker."""

    @staticmethod
    def forward(
        ctx: Any,
        kept: Kept,
        outputs: list[int],
        inputs: list[int],
        results: list[Tensor],
        anchor: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.kept, ctx.outputs, ctx.inputs = kept, outputs, inputs
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        used = [(o, g) for o, g in zip(ctx.outputs, gradients, strict=True) if g is not None]
        found = ctx.kept.ask([o for o, _ in used], [g for _, g in used])
        return (None, None, None, None, None, *(found.get(index) for index in ctx.inputs))
