"""Chapter 01: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, mutant, variant
from checks.forgers import OF_TENSORS, forging_answers, forging_function


def _shared_mutants(name: str) -> list[Answer]:
    """The wrong answers to both exercises: they differ in how the sum is written, not in what it is."""

    def wrong(title: str, says: str, body: str) -> Answer:
        return mutant(name, title, says, f"def {name}(x, weights):\n    {body}")

    return [
        wrong("nothing returned", "is there a `return`?", "torch.einsum('bij,bjk->bik', weights, x)"),
        wrong(
            "transposed weights",
            "the weights are transposed",
            "w = weights.mT if weights.shape[1] == weights.shape[2] else weights\n"
            "    return torch.einsum('bij,bjk->bik', w, x)",
        ),
        wrong("transposed, whatever the sizes", "the weights are transposed", "return weights.mT @ x"),
        wrong(
            "first sequence's weights for all",
            "only the first sequence's weights are used",
            "return torch.einsum('ij,bjk->bik', weights[0], x)",
        ),
        wrong(
            "first sequence's inputs for all",
            "only the first sequence is averaged",
            "return torch.einsum('bij,jk->bik', weights, x[0])",
        ),
        wrong("plain mean", "the plain mean", "return x.mean(1, keepdim=True).expand(-1, weights.shape[1], -1)"),
        wrong("batch summed away", "should have shape (1, 4, 2)", "return torch.einsum('bij,bjk->ik', weights, x)"),
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
            "return torch.tensor([[[1, 0], [4, 2], [2.25, 1.25], [0.5, 0.5]]])",
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


def _window(title: str, says: str, *lines: str) -> Answer:
    return mutant("window_weights", title, says, "def window_weights(n, width):\n    " + "\n    ".join(lines))


_ERROR = ("if width < 1:", "    raise ValueError('width')")
_BAND = "band = torch.ones(n, n).tril().triu(1 - width)"
_RIGHT = (*_ERROR, _BAND, "return band / band.sum(1, keepdim=True)")

MUTANTS = [
    _window("nothing returned", "is there a `return`?", *_ERROR, _BAND),
    _window(
        "looks forward",
        "looks forward",
        *_ERROR,
        "band = torch.ones(n, n).triu().tril(width - 1)",
        "return band / band.sum(1, keepdim=True)",
    ),
    _window("divided by the width", "every row is divided by `width`", *_ERROR, _BAND, "return band / width"),
    _window(
        "one too many",
        "*besides* its own",
        *_ERROR,
        "band = torch.ones(n, n).tril().triu(-width)",
        "return band / band.sum(1, keepdim=True)",
    ),
    _window(
        "one too few",
        "one position too few",
        *_ERROR,
        "band = torch.ones(n, n).tril().triu(min(2 - width, 0))",
        "return band / band.sum(1, keepdim=True)",
    ),
    _window("not divided", "not divided by anything", *_ERROR, _BAND, "return band"),
    _window("a boolean mask", "should keep dtype", *_ERROR, _BAND, "return band.bool()"),
    _window("float64", "should keep dtype", *_ERROR, _BAND, "return (band / band.sum(1, keepdim=True)).double()"),
    _window(
        "the width ignored",
        "the width is ignored",
        *_ERROR,
        "band = torch.ones(n, n).tril()",
        "return band / band.sum(1, keepdim=True)",
    ),
    _window(
        "columns sum to one",
        "the columns sum to 1, but the rows should",
        *_ERROR,
        _BAND,
        "return band / band.sum(0, keepdim=True)",
    ),
    _window("transposed", "the matrix is transposed", *_RIGHT[:-1], "return (band / band.sum(1, keepdim=True)).mT"),
    _window(
        "centred",
        "the window reaches to both sides",
        *_ERROR,
        "band = torch.ones(n, n).tril(width // 2).triu(-(width // 2))",
        "return band / band.sum(1, keepdim=True)",
    ),
    _window(
        "no error", "should raise ValueError", "width = max(width, 1)", _BAND, "return band / band.sum(1, keepdim=True)"
    ),
    _window(
        "an assertion instead of the error",
        "should raise ValueError",
        "assert width >= 1, 'width'",
        _BAND,
        "return band / band.sum(1, keepdim=True)",
    ),
    _window(
        "a width of 1 refused",
        "raised ValueError",
        "if width <= 1:",
        "    raise ValueError('width')",
        _BAND,
        "return band / band.sum(1, keepdim=True)",
    ),
    _window(
        "a wide window refused",
        "raised ValueError",
        "if not 1 <= width <= n:",
        "    raise ValueError('width')",
        _BAND,
        "return band / band.sum(1, keepdim=True)",
    ),
    _window("a softmax of the band", "wrong entries", *_ERROR, _BAND, "return band.softmax(1)"),
    _window(
        "the visible example only",
        "should have shape",
        *_ERROR,
        "return torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]])",
    ),
    _window(
        "a loop",
        "without a loop",
        *_ERROR,
        "weights = torch.zeros(n, n)",
        "for i in range(n):",
        "    first = max(0, i - width + 1)",
        "    weights[i, first : i + 1] = 1 / (i + 1 - first)",
        "return weights",
    ),
    _window(
        "nested lists",
        "without a loop",
        *_ERROR,
        "return torch.tensor([[1 / min(i + 1, width) if 0 <= i - j < width else 0.0 for j in range(n)] "
        "for i in range(n)])",
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
    *forging_answers(functions=["weighted_avg", "weighted_avg_einsum"]),
    *forging_function("window_weights", but=OF_TENSORS),
]

VARIANTS = [
    variant("window_weights", "two triangles", "def window_weights(n, width):\n    " + "\n    ".join(_RIGHT)),
    variant(
        "window_weights",
        "distances",
        """
        def window_weights(n, width):
            if width < 1:
                raise ValueError("no window")
            place = torch.arange(n)
            distance = place[:, None] - place
            inside = (distance >= 0) & (distance < width)
            return inside.float() / inside.sum(dim=1, keepdim=True)
        """,
    ),
    variant(
        "window_weights",
        "a softmax of blocked scores",
        """
        def window_weights(n, width):
            if width < 1:
                raise ValueError("no window")
            inside = torch.ones(n, n).tril() - torch.ones(n, n).tril(-width)
            return torch.zeros(n, n).masked_fill(inside == 0, float("-inf")).softmax(dim=1)
        """,
    ),
    variant(
        "window_weights",
        "divided by the positions that exist",
        """
        def window_weights(n, width):
            if width < 1:
                raise ValueError("no window")
            there = torch.arange(1, n + 1).clamp(max=width)
            return torch.ones(n, n).tril().triu(1 - width) / there[:, None]
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
