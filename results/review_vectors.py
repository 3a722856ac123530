"""A vector for each review, close to those of the n-grams that it holds (Thongtan and Phienthrakul, 2019)."""

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from report import watched
from torch import Tensor


def step_on_sphere(table: Tensor, past: Tensor, rows: Tensor, gradient: Tensor, rate: float) -> None:
    """Move some rows of length 1 against their gradient, by Adagrad with one step size for all numbers of a row.

    `torch.optim.Adagrad` has a step size for each number, and lets rows grow. With rows cut back to length 1 by
    `nn.Embedding` it took three times as long here, and its vectors were no better.
    """
    before = table[rows]
    gradient = gradient - (gradient * before).sum(dim=1, keepdim=True) * before
    past[rows] += gradient.square().mean(dim=1)
    table[rows] = F.normalize(before - rate * gradient / (past[rows] + 1e-8).sqrt().unsqueeze(1), dim=1)


def review_vectors(
    weights: scipy.sparse.csr_matrix, settings: dict, seed: int, grams: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Vectors of length 1 of the reviews, `(reviews, dim)`, and of the n-grams, `(n-grams, dim)`.

    From each review some of its n-grams are drawn, and others from all reviews. The cosine of a review's vector and an
    n-gram's, times `scale`, is the log-odds that the n-gram is the review's own.

    Args:
        weights: `(reviews, n-grams)`, at least 0: how often to draw an n-gram from a review, in proportion.
        settings: `dim`, `rate` and `epochs`, `scale`; how many of its own n-grams are `drawn` for a review, how many
            `others` for all reviews of a batch of size `batch`, and how many of these count `against` one of its own.
        seed: of the first vectors and of what is drawn.
        grams: vectors of the n-grams that other reviews gave, and that these leave as they are.
    """
    torch.manual_seed(seed)
    chance = np.random.default_rng(seed)
    ends = np.cumsum(weights.data)
    starts, stops = (np.append(0, ends)[weights.indptr[side]] for side in (slice(None, -1), slice(1, None)))
    of_all = np.cumsum(weights.sum(axis=0).A1 ** 0.75)
    size, drawn, others, scale = (settings[name] for name in ("batch", "drawn", "others", "scale"))
    fixed = grams is not None
    own = F.normalize(torch.randn(weights.shape[0], settings["dim"]), dim=1)
    if grams is None:
        grams = F.normalize(torch.randn(weights.shape[1], settings["dim"]), dim=1)
    past_own, past_grams = torch.zeros(len(own)), torch.zeros(len(grams))
    batches = [
        rows
        for _ in range(settings["epochs"])
        for rows in np.array_split(chance.permutation(len(own)), -(-len(own) // size))
    ]
    for number, rows in enumerate(watched(batches, "review vectors")):
        places = starts[rows, None] + chance.random((len(rows), drawn)) * (stops - starts)[rows, None]
        held = weights.indices[np.searchsorted(ends, places, side="right").clip(max=len(ends) - 1)]
        other = np.searchsorted(of_all, chance.random(others) * of_all[-1]).clip(max=len(of_all) - 1)
        which, place = np.unique(np.concatenate([held.ravel(), other]), return_inverse=True)
        here, there = torch.from_numpy(rows), torch.from_numpy(which)
        mine, met = own[here].requires_grad_(), grams[there].requires_grad_(not fixed)
        its, chances = met[torch.from_numpy(place)].split([held.size, others])
        close = (its.view(*held.shape, -1) @ mine.unsqueeze(2)).squeeze(2)
        loss = -F.logsigmoid(scale * close).sum()
        loss = loss - settings["against"] * drawn / others * F.logsigmoid(-scale * mine @ chances.T).sum()
        loss.backward()
        assert mine.grad is not None
        rate = settings["rate"] * (1 - number / len(batches))
        step_on_sphere(own, past_own, here, mine.grad, rate)
        if met.grad is not None:
            step_on_sphere(grams, past_grams, there, met.grad, rate)
    return own, grams
