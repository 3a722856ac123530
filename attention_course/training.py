"""Training that can be interrupted: checkpoints that know their code, a progress bar, half-precision products."""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

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
    try:
        torch.save(state, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


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
    state = load_state(checkpoint)
    try:
        keep_training(parts, state, batches_of, run_epoch, checkpoint, share_of(epochs), file=sys.stdout)
    except KeyboardInterrupt:
        done = len(state["history"])
        print(f"\ninterrupted in epoch {done + 1}: run this cell again to go on after epoch {done}")
    return state["history"]


def load_state(checkpoint: Path) -> dict[str, Any]:
    """What `keep_training` has kept in a file; empty if there is none."""
    return torch.load(checkpoint, weights_only=True) if checkpoint.exists() else {}


def share_of(epochs: int) -> Callable[[float], float]:
    """For `keep_training`: after so many epochs the way is over."""
    return lambda behind: behind / epochs if epochs else 1.0


def keep_training(
    parts: Mapping[str, Any],
    state: dict[str, Any],
    batches_of: Callable[[int], Sequence],
    run: Callable[[Iterable], list[float]],
    checkpoint: Path,
    share: Callable[[float], float],
    *,
    title: str = "",
    seed: int = 0,
    pause: float | None = None,
    file: TextIO | None = None,
) -> None:
    """Train in rounds and keep everything after each; stopped at any moment, it goes on from the last one kept.

    It ends bit for bit where it would have ended without the stop, if what is random is drawn from torch's generator,
    or depends on the epoch alone.

    Args:
        parts: model, optimizer and whatever else changes while training and has a `state_dict`, by name.
        state: what `load_state` has found, or where to begin: the parts begin with what stands there under their
            names. It is changed in place: `history` has the row of each round, `epoch` and `batch` say which batch is
            the next, and whatever else stands in it is kept too.
        batches_of: the batches of an epoch, by its number.
        run: trains on all batches that it is given, those of one round, and returns a row of numbers.
        checkpoint: the file.
        share: what part of the way is behind after so many epochs, a fraction of one included; at 1 it is over.
        title: what is trained, for the progress bar.
        seed: torch is seeded with this and the epoch's number at the beginning of each.
        pause: a round is an epoch; or else it is over after so many seconds, wherever that is.
        file: where the progress bar is shown; stderr if not given, and in a log only once a minute.

    Raises:
        KeyboardInterrupt: as it came; the file is that of the last round.
    """
    for name, part in parts.items():
        if state.get(name) is not None:
            part.load_state_dict(state[name])
    state.setdefault("history", [])
    state.setdefault("epoch", len(state["history"]))
    state.setdefault("batch", 0)
    if "random" in state:
        torch.set_rng_state(state["random"])
    seldom = file is None and not sys.stderr.isatty()
    with tqdm(
        desc=title,
        total=1.0,
        initial=min(1.0, share(state["epoch"])),
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left",
        file=file,
        leave=False,
        mininterval=60 if seldom else 0.5,
        miniters=0,
        smoothing=0,
    ) as bar:
        while share(state["epoch"]) < 1:
            batches = _round(state, batches_of, share, title, seed, pause, bar)
            row = list(run(batches))
            for _ in batches:  # what `run` has left out
                pass
            kept = {name: part.state_dict() for name, part in parts.items()}
            kept |= {"history": [*state["history"], row], "random": torch.get_rng_state()}
            save(state | kept, checkpoint)
            state |= kept


def _round(
    state: dict[str, Any],
    batches_of: Callable[[int], Sequence],
    share: Callable[[float], float],
    title: str,
    seed: int,
    pause: float | None,
    bar: tqdm,
) -> Iterator:
    """The batches of one round; the state and the bar move on when a batch has been used."""
    start, over = time.monotonic(), False
    while not over:
        epoch = state["epoch"]
        bar.set_description_str(f"{title}, epoch {epoch + 1}".removeprefix(", "), refresh=False)
        if state["batch"] == 0:
            torch.manual_seed(seed + epoch)
        batches = batches_of(epoch)
        while state["batch"] < len(batches) and not over:
            yield batches[state["batch"]]
            state["batch"] += 1
            behind = min(1.0, share(epoch + state["batch"] / len(batches)))
            bar.update(behind - bar.n)
            over = pause is not None and (behind >= 1 or time.monotonic() - start >= pause)
        if state["batch"] >= len(batches):
            state["epoch"], state["batch"] = epoch + 1, 0
            over = over or pause is None
