"""Parts that compute what the chapters' parts do, faster on a processor."""

import ctypes
import sys
from contextlib import AbstractContextManager

import torch
import transformer_block as chapter_06
from torch import Tensor, nn

from attention_course.training import mixed_precision


class QuickDropout(nn.Module):
    """Dropout with one random byte for a number, so that the probability is a multiple of 1/256.

    Torch draws a random number with 53 bits for each number on a CPU, which is a fifth of a training step.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.dropped = round(256 * probability)

    def forward(self, x: Tensor) -> Tensor:
        """Drop some numbers while training."""
        if not self.training or self.dropped == 0:
            return x
        eights = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device).random_(-(2**63), None)
        kept = eights.view(torch.uint8)[: x.numel()].view(x.shape) >= self.dropped
        return x * kept.to(x.dtype).mul_(256 / (256 - self.dropped))


class QuickNorm(nn.LayerNorm):
    """Torch's layer norm; where matrix products are in bfloat16 it rounds once what several of them read."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each position."""
        y = super().forward(x)
        return y.to(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else y


def quicken(model: nn.Module) -> nn.Module:
    """Swap dropout and layer norms for faster ones that do the same; the state dict stays the chapters'."""
    for part in list(model.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Dropout):
                setattr(part, name, QuickDropout(child.p))
            elif isinstance(child, chapter_06.LayerNorm):
                setattr(part, name, QuickNorm(len(child.weight), eps=child.eps))
    return model


def half_precision(device: str) -> AbstractContextManager:
    """Matrix products in bfloat16: on a graphics card always, on a processor if it has them."""
    return torch.autocast("cuda", torch.bfloat16) if device == "cuda" else mixed_precision()


def keep_freed_memory() -> None:
    """Tell glibc to reuse large blocks: getting them anew from the system is a tenth of a training step."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(-4, 0)  # M_MMAP_MAX
            libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
