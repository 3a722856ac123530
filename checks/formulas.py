"""The published formulas, computed from a state dict in float64: what the tests hold modules to.

Each takes the state dict of a whole module and where in it the part's weights are: `linear` and `layer_norm` the part's
name ("blocks.0.norm_1"), the others what their parts' names begin with ("blocks.0.attention.", or "" when the module is
the part).
"""

import math
from collections.abc import Callable, Mapping

import torch.nn.functional as F
from torch import Tensor


def linear(state: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """`x W^T + b`; a convolution of width 1 counts as a linear map, and the bias may be missing."""
    return F.linear(x, state[f"{name}.weight"].flatten(1), state.get(f"{name}.bias"))


def layer_norm(state: Mapping[str, Tensor], name: str, x: Tensor, eps: float = 1e-5) -> Tensor:
    """Layer normalization over the last dimension."""
    return F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"], eps)


def feed_forward(
    state: Mapping[str, Tensor], prefix: str, x: Tensor, activation: Callable[[Tensor], Tensor] = F.relu
) -> Tensor:
    """Two linear maps, `inner` and `outer`, with an activation between."""
    return linear(state, f"{prefix}outer", activation(linear(state, f"{prefix}inner", x)))


def multi_head_attention(
    state: Mapping[str, Tensor],
    prefix: str,
    queries: Tensor,
    others: Tensor,
    heads: int,
    mask: Tensor | None = None,
    values: Tensor | None = None,
) -> Tensor:
    """Attention with the maps `Wq`, `Wk`, `Wv` and `WO`.

    Args:
        state: the weights.
        prefix: what the names of the four maps begin with.
        queries: `(B, n, d)`.
        others: `(B, m, d)`, what keys and values are made from.
        heads: how many.
        mask: boolean, `(m,)`, `(n, m)`, `(B, 1 or n, m)` or `(B, 1 or h, 1 or n, m)`, True where allowed. A row that
            may attend to nothing averages nothing, so that only the bias of `WO` is left of it.
        values: `(B, m, d)`, what the values are made from, if not from `others`.

    Returns:
        `(B, n, d)`.
    """
    q, k, v = (
        linear(state, f"{prefix}{part}", x).unflatten(-1, (heads, -1)).transpose(1, 2)
        for part, x in (("Wq", queries), ("Wk", others), ("Wv", others if values is None else values))
    )
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~(mask.unsqueeze(1) if mask.dim() == 3 else mask), -math.inf)
    # The gradients of an empty row are those of the filled scores, none, so that no NaN gets out.
    merged = (scores.softmax(-1).nan_to_num(0.0) @ v).transpose(1, 2).flatten(2)
    return linear(state, f"{prefix}WO", merged)
