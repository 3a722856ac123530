"""Training that can be interrupted: checkpoints that know their code, a progress bar, half-precision products."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn
from tqdm import tqdm


def save(state: Any, path: Path) -> None:
    """Write a file under another name and rename it, so that no half-written one is ever found.

    Args:
        state: what `torch.save` takes.
        path: where; missing folders are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    torch.save(state, unfinished)
    os.replace(unfinished, path)


def mixed_precision() -> AbstractContextManager:
    """Matrix products in bfloat16 if the processor has them; else a context that does nothing."""
    able = torch.cpu.get_capabilities()
    if able.get("avx512_bf16") or able.get("amx_bf16"):
        # Weights change between two steps: no rounded copy of them may be kept.
        return torch.autocast("cpu", torch.bfloat16, cache_enabled=False)
    return nullcontext()


def checkpoint_path(folder: Path, name: str, settings: Mapping[str, Any], model: nn.Module, *code: Callable) -> Path:
    """Where the state of one training is kept: other settings, another model or other code, another file.

    Args:
        folder: of all checkpoints.
        name: the beginning of the file's name.
        settings: of the training.
        model: as it was made; its classes and the shapes of its weights count.
        code: the functions that train it.
    """
    kinds = {type(part) for part in model.modules() if not type(part).__module__.startswith("torch.")}
    methods = [f for kind in kinds for f in vars(kind).values() if hasattr(f, "__code__")]
    written = sorted(_code(f.__code__) for f in (*methods, *code))
    shapes = [(key, tuple(value.shape)) for key, value in model.state_dict().items()]
    key = hashlib.sha256(repr([sorted(settings.items()), written, shapes]).encode()).hexdigest()[:12]
    return folder / f"{name}-{key}.pt"


def _code(code: CodeType) -> str:
    """What a function does, whatever its place in a file."""
    constants = [_code(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    return repr([code.co_name, code.co_code.hex(), code.co_names, code.co_varnames, constants])


def _constant(value: object) -> str:
    # The order of a set differs from one run of Python to the next.
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def fit(
    parts: Mapping[str, Any],
    epochs: int,
    batches_of: Callable[[int], list],
    run_epoch: Callable[[Iterable], list[float]],
    checkpoint: Path,
) -> list[list[float]]:
    """Train with a progress bar; go on from the last finished epoch if there is a checkpoint.

    Args:
        parts: what a checkpoint keeps, by name: model, optimizer, scheduler.
        epochs: how often to see the training data, from the first beginning on.
        batches_of: the batches of an epoch, by its number; the epoch's number also seeds torch.
        run_epoch: trains on the batches it is given and returns a row of numbers, such as the losses.
        checkpoint: the file that keeps everything.

    Returns:
        The rows of all finished epochs. Interrupted, it says so and returns those so far.
    """
    history = resume(parts, checkpoint)
    try:
        for epoch in range(len(history), epochs):
            torch.manual_seed(epoch)
            batches = batches_of(epoch)
            with tqdm(total=len(batches), file=sys.stdout, leave=False, mininterval=0.5) as bar:
                bar.set_description(f"epoch {epoch + 1} of {epochs}")
                history = [*history, list(run_epoch(counted(batches, bar)))]
            state = {name: part.state_dict() for name, part in parts.items()}
            save(state | {"history": history}, checkpoint)
    except KeyboardInterrupt:
        print(f"\ninterrupted in epoch {len(history) + 1}: run this cell again to go on after epoch {len(history)}")
    return history


def resume(parts: Mapping[str, Any], checkpoint: Path) -> list[list[float]]:
    """Give model, optimizer and scheduler the state of a checkpoint.

    Args:
        parts: what the checkpoint keeps, by name.
        checkpoint: its file; where there is none, the parts stay as they are.

    Returns:
        The rows of the epochs that are done.
    """
    if not checkpoint.exists():
        return []
    state = torch.load(checkpoint, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return state["history"]


def counted(batches: Iterable, bar: tqdm) -> Iterator:
    """The same batches; the bar moves on after each."""
    for batch in batches:
        yield batch
        bar.update()
