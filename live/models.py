"""Trained models as the live figures read them: settings, subwords or words, and weights in one compressed file."""

import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from live.words import word_rules

# The trained models, each with its files: weights and subwords, or one file of weights and subwords or words.
FILES = {
    "translator": ("translator.pt", "translator.model"),
    "language_model": ("language_model.pt", "pieces.model"),
    "body": ("body.pt",),
    "classifier": ("classifier.pt",),
}
# The figures that need one beside their data.
MODELS = {
    "translator": "translator",
    "beam": "translator",
    "sampling": "language_model",
    "gap": "body",
    "review": "classifier",
}


def find_model(name: str) -> tuple[Path, ...]:
    """Where a shipped model lies: in the chapter that makes it, as the course has it or as students get it.

    Args:
        name: of the model, one of `FILES`.

    Returns:
        The paths of its weights and of its subwords, or of the one file of both.

    Raises:
        FileNotFoundError: it is in neither.
    """
    course, (weights, *others) = Path(__file__).resolve().parents[1], FILES[name]
    for folder in ("solutions", "notebooks"):
        for path in sorted(course.glob(f"{folder}/*/{weights}")):
            return path, *map(path.with_name, others)
    raise FileNotFoundError(f"this figure needs {weights}, which is in no chapter's folder of {course}")


def pack_model(weights: Path, subwords: Path | None = None) -> bytes:
    """Pack a shipped model for the page, unchanged: the weights stay the numbers of the file, of 16 bits or of 8.

    Args:
        weights: a file of `{"settings": dict, "state": {name: float16 tensor}}`. Without `subwords` it has `words` as
            well, joined by line breaks and compressed; or it is an export of chapter 12's body: `sizes` and `weights`,
            some of them pairs of an int8 tensor and a float32 factor for each of its rows, and `pieces`.
        subwords: a SentencePiece model file.

    Returns:
        Compressed by zlib: the length of the header (four bytes, little-endian), the header in JSON, the subwords or
        the words with the rules that cut them, in JSON, then the low bytes of all halves and their high bytes, then for
        each tensor in 8 bits its factors and its integers.
        `live/lib/weights.js` reads it.

    Raises:
        ValueError: a weight is in another precision.
    """
    saved = torch.load(weights, weights_only=True, map_location="cpu")
    if "sizes" in saved:
        settings, state = saved["sizes"], saved["weights"]
    else:
        settings, state = saved["settings"], saved["state"]
    if "words" in saved:
        words = zlib.decompress(saved["words"]).decode().split("\n")
        pieces = json.dumps(word_rules() | {"words": words}).encode()
    else:
        pieces = subwords.read_bytes() if subwords else saved["pieces"]
    # The attention to the source has had two names.
    state = {key.replace("source_attention", "cross_attention"): value for key, value in state.items()}
    small = {key: value for key, value in state.items() if isinstance(value, tuple)}
    halves = {key: value for key, value in state.items() if key not in small}
    for key, value in halves.items():
        if value.dtype != torch.float16:
            raise ValueError(f"{weights}: {key} is {value.dtype}, but the page reads torch.float16")
    header = {
        "settings": settings,
        "tensors": [[key, value.numel()] for key, value in halves.items()],
        "rows": [[key, *integers.shape] for key, (integers, _) in small.items()],
        "words" if "words" in saved else "subwords": len(pieces),
    }
    head = json.dumps(header).encode()
    planes = _bytes(halves.values(), "<f2")
    scaled = b"".join(_bytes([factors], "<f4") + _bytes([integers], "i1") for integers, factors in small.values())
    return zlib.compress(struct.pack("<I", len(head)) + head + pieces + planes[0::2] + planes[1::2] + scaled, 9)


def _bytes(tensors: Iterable[Tensor], kind: str) -> bytes:
    """All numbers of some tensors, one after another."""
    return torch.cat([tensor.flatten() for tensor in tensors]).numpy().astype(kind).tobytes()
