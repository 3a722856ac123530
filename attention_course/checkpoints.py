"""The published checkpoint that chapter 11 reads, of llama2.c's series *tinyllamas*: its file, and its vocabulary.

The formats are those that llama2.c documents: seven integers and then tables of float32, one behind the other.
"""

import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attention_course.data import data_root

NAMES = ("dim", "hidden", "depth", "heads", "kv_heads", "vocab_size", "positions")
LARGEST = 1 << 16  # more of anything is no header of this series


class CheckpointError(ValueError):
    """A file that is not what it should be; the message says what to do, in one line."""


def find_checkpoint() -> Path | None:
    """The folder that holds the checkpoint and its vocabulary; None where nobody has fetched them."""
    folder = data_root("multi30k").parent / "full" / "tinyllamas"
    return folder if folder.is_dir() else None


def read_checkpoint(path: Path) -> tuple[dict[str, int], Tensor]:
    """The sizes in a checkpoint's header, by name, and the numbers behind it, float32, in one row.

    Args:
        path: a file like `stories260K.bin`.

    Raises:
        CheckpointError: it is short, or its header or its length are not those of such a file.
    """
    content = path.read_bytes()
    if len(content) < 4 * len(NAMES):
        raise CheckpointError(f"{path} has {len(content)} bytes, fewer than its header: fetch it again")
    sizes = dict(zip(NAMES, struct.unpack_from(f"<{len(NAMES)}i", content), strict=True))
    if not all(0 < size < LARGEST for size in sizes.values()):
        raise CheckpointError(f"{path} is another kind of checkpoint: its header says {sizes}")
    if sizes["dim"] % sizes["heads"] or sizes["heads"] % sizes["kv_heads"]:
        raise CheckpointError(f"{path} has a header that does not fit together: {sizes}")
    numbers = (len(content) - 4 * len(NAMES)) // 4
    if numbers != (needed := count(sizes)):
        what = "is cut short" if numbers < needed else "is another kind of checkpoint"
        raise CheckpointError(f"{path} {what}: {numbers:,} numbers where its header asks for {needed:,}")
    return sizes, torch.from_numpy(np.frombuffer(content, "<f4", offset=4 * len(NAMES)).copy())


def count(sizes: dict[str, int]) -> int:
    """How many numbers a checkpoint of these sizes holds, its table of angles included."""
    dim, shared = sizes["dim"], sizes["dim"] // sizes["heads"] * sizes["kv_heads"]
    layer = 2 * dim + 2 * dim * dim + 2 * shared * dim + 3 * sizes["hidden"] * dim
    angles = sizes["positions"] * (dim // sizes["heads"])
    return sizes["vocab_size"] * dim + sizes["depth"] * layer + dim + angles


def read_vocabulary(path: Path, size: int) -> list[str]:
    """The pieces of a vocabulary, by number; `<0x0A>` stands for the byte that it names.

    Args:
        path: a file like `tok512.bin`.
        size: how many pieces the checkpoint asks for.

    Raises:
        CheckpointError: it is short, or holds another number of pieces.
    """
    content, pieces, at = path.read_bytes(), [], 4
    while at < len(content):
        if at + 8 > len(content) or not 0 <= (length := struct.unpack_from("<i", content, at + 4)[0]) <= len(content):
            raise CheckpointError(f"{path} is no vocabulary of llama2.c, or cut short: fetch it again")
        piece, at = content[at + 8 : at + 8 + length], at + 8 + length
        pieces.append(piece.decode(errors="replace"))
    if at != len(content) or len(pieces) != size:
        raise CheckpointError(f"{path} has {len(pieces)} pieces, the checkpoint {size}: another model's vocabulary")
    return pieces
