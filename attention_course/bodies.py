"""The body that chapter 12 reads with: its file, weights in 8 or 16 bits a number, and its pieces."""

from pathlib import Path

import torch
from torch import Tensor


def restore(small: dict) -> dict[str, Tensor]:
    """The weights of an export, in float32: those in 8 bits are rows of integers, and a number for each row."""
    return {name: v[0] * v[1] if isinstance(v, tuple) else v.float() for name, v in small.items()}


def load_export(path: Path) -> dict:
    """A file that `results/pretraining.py --export` wrote: `sizes`, `weights`, `pieces`, `tokens` read, and more.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is something else, or cut short.
    """
    if not path.exists():
        raise FileNotFoundError(f"no {path}")
    try:
        state = torch.load(path, weights_only=True)
        return state | {"weights": restore(state["weights"]), "pieces": state["pieces"]}
    except Exception as error:  # a file of anything may fail in any way
        raise ValueError(f"{path} is no body that --export wrote, or is cut short: get it anew") from error
