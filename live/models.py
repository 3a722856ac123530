"""Trained models as the live figures read them: settings, subwords and weights in one compressed file."""

import json
import struct
import zlib
from pathlib import Path

import torch

# The trained models, each with its two files: weights and subwords.
FILES = {"translator": ("translator.pt", "translator.model"), "language_model": ("language_model.pt", "pieces.model")}
# The figures that need one beside their data.
MODELS = {"translator": "translator", "beam": "translator", "sampling": "language_model"}


def find_model(name: str) -> tuple[Path, Path]:
    """Where a shipped model lies: in the chapter that makes it, as the course has it or as students get it.

    Args:
        name: of the model, one of `FILES`.

    Returns:
        The paths of its weights and of its subwords.

    Raises:
        FileNotFoundError: it is in neither.
    """
    course, (weights, subwords) = Path(__file__).resolve().parents[1], FILES[name]
    for folder in ("solutions", "notebooks"):
        for path in sorted(course.glob(f"{folder}/*/{weights}")):
            return path, path.with_name(subwords)
    raise FileNotFoundError(f"this figure needs {weights}, which is in no chapter's folder of {course}")


def pack_model(weights: Path, subwords: Path) -> bytes:
    """Pack a shipped model for the page, unchanged: the weights stay the half-precision numbers of the file.

    Args:
        weights: a file of `{"settings": dict, "state": {name: float16 tensor}}`.
        subwords: a SentencePiece model file.

    Returns:
        Compressed by zlib: the length of the header (four bytes, little-endian), the header in JSON, the subwords, then
        the low bytes of all weights and the high bytes of all weights. `live/lib/weights.js` reads it.

    Raises:
        ValueError: a weight is not in half precision.
    """
    saved = torch.load(weights, weights_only=True, map_location="cpu")
    # The attention to the source has had two names.
    state = {key.replace("source_attention", "cross_attention"): value for key, value in saved["state"].items()}
    for key, value in state.items():
        if value.dtype != torch.float16:
            raise ValueError(f"{weights}: {key} is {value.dtype}, but the page reads torch.float16")
    pieces = subwords.read_bytes()
    header = {
        "settings": saved["settings"],
        "tensors": [[key, value.numel()] for key, value in state.items()],
        "subwords": len(pieces),
    }
    head = json.dumps(header).encode()
    halves = torch.cat([value.flatten() for value in state.values()]).numpy().astype("<f2").tobytes()
    return zlib.compress(struct.pack("<I", len(head)) + head + pieces + halves[0::2] + halves[1::2], 9)
