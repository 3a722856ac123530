"""Chapter 01: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, mutant, variant


def _shared_mutants(name: str) -> list[Answer]:
    """The wrong answers to all three exercises: they differ in how the sum is written, not in what it is."""

    def wrong(title: str, says: str, body: str) -> Answer:
        return mutant(name, title, says, f"def {name}(x, weights):\n    {body}")

    return [
        wrong("nothing returned", "is there a `return`?", "torch.einsum('bij,bjk->bik', weights, x)"),
        wrong("transposed weights", "the weights are transposed", "return torch.einsum('bji,bjk->bik', weights, x)"),
        wrong(
            "first sequence's weights for all",
            "each has its own weights",
            "return torch.einsum('ij,bjk->bik', weights[0], x)",
        ),
        wrong(
            "first sequence's inputs for all",
            "each has its own weights",
            "return torch.einsum('bij,jk->bik', weights, x[0])",
        ),
        wrong("plain mean", "by hand it is", "return x.mean(1, keepdim=True).expand(-1, weights.shape[1], -1)"),
        wrong("batch summed away", "the shape should be (B, n, d)", "return torch.einsum('bij,bjk->ik', weights, x)"),
        wrong(
            "normalised again",
            "the weights are normalised again",
            "return torch.einsum('bij,bjk->bik', weights / weights.sum(-1, keepdim=True), x)",
        ),
        wrong("detached", "cut off from the graph", "return torch.einsum('bij,bjk->bik', weights, x).detach()"),
        wrong(
            "weights detached", "no gradient reaches `weights`", "return torch.einsum('bij,bjk->bik', weights.data, x)"
        ),
        wrong(
            "float32 only",
            "keep dtype torch.float64",
            "return torch.einsum('bij,bjk->bik', weights.float(), x.float())",
        ),
        wrong(
            "changes the weights in place",
            "`weights` was changed in place",
            "weights.mul_(0.5)\n    return torch.einsum('bij,bjk->bik', 2 * weights, x)",
        ),
        wrong(
            "right for square weights only",
            "raised RuntimeError",
            "y = torch.zeros_like(x)\n    y += torch.einsum('bij,bjk->bik', weights, x)\n    return y",
        ),
        wrong(
            "hard-coded to the visible example",
            "should have shape",
            "return torch.tensor([[[1, 0], [2.25, 1.25], [2, 1.5]], [[6, 0], [1, 3], [3.5, 1.5]]])",
        ),
        wrong(
            "made on the CPU",
            "fails when its inputs are on a GPU",
            "y = torch.zeros(len(x), weights.shape[1], x.shape[2], dtype=x.dtype)\n"
            "    return y + torch.einsum('bij,bjk->bik', weights, x)",
        ),
    ]


_LOOP_OVER_POSITIONS = """
def {name}(x, weights):
    y = x.new_zeros(len(x), weights.shape[1], x.shape[2])
    for j in range(x.shape[1]):
        y = y + weights[:, :, j, None] * x[:, None, j]
    return y
"""
_LOOP_OVER_THE_BATCH = """
def {name}(x, weights):
    return torch.stack([w @ one for w, one in zip(weights, x)])
"""
_BROADCAST = """
def {name}(x, weights):
    return (weights.unsqueeze(-1) * x.unsqueeze(1)).sum(dim=2)
"""

MUTANTS = [
    *_shared_mutants("weighted_avg_loop"),
    mutant(
        "weighted_avg_loop",
        "two nested loops",
        "at most one Python loop",
        """
        def weighted_avg_loop(x, weights):
            rows = []
            for i in range(weights.shape[1]):
                rows.append(sum(weights[:, i, j, None] * x[:, j] for j in range(x.shape[1])))
            return torch.stack(rows, dim=1)
        """,
    ),
    mutant(
        "weighted_avg_loop",
        "last output left out",
        "the last output is never filled in",
        """
        def weighted_avg_loop(x, weights):
            rows = [(weights[:, i, :, None] * x).sum(dim=1) for i in range(weights.shape[1] - (x.shape[1] == 4))]
            rows += [torch.zeros_like(rows[0])] * (weights.shape[1] - len(rows))
            return torch.stack(rows, dim=1)
        """,
    ),
    *_shared_mutants("weighted_avg"),
    mutant("weighted_avg", "a loop over positions", "without a loop", _LOOP_OVER_POSITIONS.format(name="weighted_avg")),
    mutant(
        "weighted_avg",
        "a comprehension over the batch",
        "without a loop",
        _LOOP_OVER_THE_BATCH.format(name="weighted_avg"),
    ),
    mutant(
        "weighted_avg",
        "a loop hidden in map",
        "without a loop",
        """
        def weighted_avg(x, weights):
            return torch.stack(list(map(torch.matmul, weights, x)))
        """,
    ),
    *_shared_mutants("weighted_avg_einsum"),
    mutant(
        "weighted_avg_einsum",
        "no einsum",
        "use exactly one torch.einsum",
        "def weighted_avg_einsum(x, weights):\n    return weights @ x",
    ),
    mutant(
        "weighted_avg_einsum",
        "sum beside the einsum",
        "the einsum should do the whole work",
        """
        def weighted_avg_einsum(x, weights):
            return torch.einsum("bij,bjk->bijk", weights, x).sum(dim=2)
        """,
    ),
    mutant(
        "weighted_avg_einsum",
        "an einsum for each sequence",
        "without a loop",
        """
        def weighted_avg_einsum(x, weights):
            return torch.stack([torch.einsum("ij,jk->ik", w, one) for w, one in zip(weights, x)])
        """,
    ),
]

VARIANTS = [
    variant("weighted_avg_loop", "over the positions", _LOOP_OVER_POSITIONS.format(name="weighted_avg_loop")),
    variant("weighted_avg_loop", "over the batch", _LOOP_OVER_THE_BATCH.format(name="weighted_avg_loop")),
    variant("weighted_avg_loop", "no loop at all", _BROADCAST.format(name="weighted_avg_loop")),
    variant(
        "weighted_avg_loop",
        "filled in place",
        """
        def weighted_avg_loop(x, weights):
            y = torch.empty(len(x), weights.shape[1], x.shape[2], dtype=x.dtype, device=x.device)
            for i in range(weights.shape[1]):
                y[:, i] = (weights[:, i : i + 1] @ x).squeeze(1)
            return y
        """,
    ),
    variant("weighted_avg", "bmm", "def weighted_avg(x, weights):\n    return torch.bmm(weights, x)"),
    variant("weighted_avg", "broadcasting", _BROADCAST.format(name="weighted_avg")),
    variant("weighted_avg", "transposed twice", "def weighted_avg(x, weights):\n    return (x.mT @ weights.mT).mT"),
    variant(
        "weighted_avg",
        "a helper of one's own",
        """
        def product(a, b):
            return torch.matmul(a, b)

        def weighted_avg(x, weights):
            return product(weights, x)
        """,
    ),
    variant(
        "weighted_avg_einsum",
        "other letters",
        "def weighted_avg_einsum(x, weights):\n    return torch.einsum('bnm, bmd -> bnd', weights, x)",
    ),
    variant(
        "weighted_avg_einsum",
        "x first",
        "def weighted_avg_einsum(x, weights):\n    return torch.einsum('zjk,zij->zik', x, weights)",
    ),
    variant(
        "weighted_avg_einsum",
        "ellipsis",
        "def weighted_avg_einsum(x, weights):\n    return torch.einsum('...ij,...jk->...ik', weights, x)",
    ),
]
