"""For tests of trainings that are stopped and gone on with."""

import contextlib
from collections.abc import Iterator

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook


@contextlib.contextmanager
def interrupted(steps: int) -> Iterator[None]:
    """Interrupt what trains in here before the optimizer's next step after so many; it has to come to that."""
    left = steps

    def stop(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    hook = register_optimizer_step_pre_hook(stop)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        hook.remove()
    assert left < 0, "it was over before it was interrupted"


def equal_states(one: object, other: object) -> bool:
    """Whether two states are equal, bit for bit."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return (
            isinstance(other, dict) and one.keys() == other.keys() and all(equal_states(one[k], other[k]) for k in one)
        )
    if isinstance(one, list | tuple):
        return isinstance(other, type(one)) and len(one) == len(other) and all(map(equal_states, one, other))
    return one == other
