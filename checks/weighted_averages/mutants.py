"""Chapter 01: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from textwrap import indent

from autograder.answers import Answer, mutants, variant
from autograder.checks import Common, Unexplained
from checks.forgers import OF_TENSORS, forging_answers, forging_function
from checks.weighted_averages.mistakes import weighted_avg, window_weights


def _shared_mutants(name: str) -> list[Answer]:
    """The wrong answers to both exercises."""
    einsum = "torch.einsum('bij,bjk->bik', weights, x)"
    made = f"y = torch.zeros(len(x), weights.shape[1], x.shape[2], dtype=x.dtype)\nreturn y + {einsum}"
    rows = [
        ("nothing returned", Common.NO_RETURN, einsum),
        (
            "transposed weights",
            weighted_avg.TRANSPOSED,
            "w = weights.mT if weights.shape[1] == weights.shape[2] else weights\n"
            "return torch.einsum('bij,bjk->bik', w, x)",
        ),
        ("transposed, whatever the sizes", weighted_avg.TRANSPOSED, "return weights.mT @ x"),
        (
            "first sequence's weights for all",
            weighted_avg.FIRST_WEIGHTS,
            "return torch.einsum('ij,bjk->bik', weights[0], x)",
        ),
        (
            "first sequence's inputs for all",
            weighted_avg.FIRST_SEQUENCE,
            "return torch.einsum('bij,jk->bik', weights, x[0])",
        ),
        ("plain mean", weighted_avg.PLAIN_MEAN, "return x.mean(1, keepdim=True).expand(-1, weights.shape[1], -1)"),
        ("the mean of the products", weighted_avg.AVERAGED, "return (weights[..., None] * x[:, None]).mean(2)"),
        ("batch summed away", weighted_avg.BATCH_SUMMED, "return torch.einsum('bij,bjk->ik', weights, x)"),
        (
            "normalised again",
            weighted_avg.NORMALISED_AGAIN,
            "return torch.einsum('bij,bjk->bik', weights / weights.sum(-1, keepdim=True), x)",
        ),
        ("detached", Common.CUT_OFF, f"return {einsum}.detach()"),
        ("weights detached", Common.INPUT_CUT_OFF, "return torch.einsum('bij,bjk->bik', weights.data, x)"),
        ("float32 only", Common.WRONG_DTYPE, "return torch.einsum('bij,bjk->bik', weights.float(), x.float())"),
        (
            "changes the weights in place",
            Common.CHANGED_IN_PLACE,
            "weights.mul_(0.5)\nreturn torch.einsum('bij,bjk->bik', 2 * weights, x)",
        ),
        ("right for square weights only", Common.SIZES_DO_NOT_FIT, f"y = torch.zeros_like(x)\ny += {einsum}\nreturn y"),
        (
            "hard-coded to the visible example",
            Unexplained.SHAPE,
            "return torch.tensor([[[1, 0], [4, 2], [2.25, 1.25], [0.5, 0.5]]])",
        ),
        ("made on the CPU", Common.MADE_ON_CPU, made),
    ]
    return mutants(name, f"def {name}(x, weights):", rows)


_BROADCAST = "return (weights.unsqueeze(-1) * x.unsqueeze(1)).sum(dim=2)"
_ERROR = "if width < 1:\n    raise ValueError('width')\n"
_BAND = "band = torch.ones(n, n).tril().triu(1 - width)\n"
_SHARE = "return band / band.sum(1, keepdim=True)\n"
_FIRST = "torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]])"
_WINDOW = [
    ("nothing returned", Common.NO_RETURN, _ERROR + _BAND),
    ("looks forward", window_weights.FORWARD, f"{_ERROR}band = torch.ones(n, n).triu().tril(width - 1)\n{_SHARE}"),
    ("divided by the width", window_weights.DIVIDED_BY_WIDTH, f"{_ERROR}{_BAND}return band / width"),
    ("one too many", window_weights.ONE_TOO_MANY, f"{_ERROR}band = torch.ones(n, n).tril().triu(-width)\n{_SHARE}"),
    (
        "one too few",
        window_weights.ONE_TOO_FEW,
        f"{_ERROR}band = torch.ones(n, n).tril().triu(min(2 - width, 0))\n{_SHARE}",
    ),
    ("not divided", window_weights.NOT_DIVIDED, f"{_ERROR}{_BAND}return band"),
    ("a boolean mask", Common.WRONG_DTYPE, f"{_ERROR}{_BAND}return band.bool()"),
    ("float64", Common.WRONG_DTYPE, f"{_ERROR}{_BAND}return (band / band.sum(1, keepdim=True)).double()"),
    ("the width ignored", window_weights.WIDTH_IGNORED, f"{_ERROR}band = torch.ones(n, n).tril()\n{_SHARE}"),
    ("columns sum to one", window_weights.COLUMNS, f"{_ERROR}{_BAND}return band / band.sum(0, keepdim=True)"),
    ("transposed", window_weights.TRANSPOSED, f"{_ERROR}{_BAND}return (band / band.sum(1, keepdim=True)).mT"),
    (
        "centred",
        window_weights.BOTH_SIDES,
        f"{_ERROR}band = torch.ones(n, n).tril(width // 2).triu(-(width // 2))\n{_SHARE}",
    ),
    ("no error", Common.NO_ERROR, f"width = max(width, 1)\n{_BAND}{_SHARE}"),
    ("an assertion instead of the error", Common.OTHER_ERROR, f"assert width >= 1, 'width'\n{_BAND}{_SHARE}"),
    (
        "a width of 1 refused",
        Unexplained.RAISED,
        f"if width <= 1:\n    raise ValueError('width')\n{_BAND}{_SHARE}",
    ),
    (
        "a wide window refused",
        Unexplained.RAISED,
        f"if not 1 <= width <= n:\n    raise ValueError('width')\n{_BAND}{_SHARE}",
    ),
    ("a softmax of the band", Unexplained.VALUES, f"{_ERROR}{_BAND}return band.softmax(1)"),
    ("the visible example only", Unexplained.SHAPE, f"{_ERROR}return {_FIRST}"),
    (
        "a loop",
        Common.LOOP,
        f"""{_ERROR}weights = torch.zeros(n, n)
for i in range(n):
    first = max(0, i - width + 1)
    weights[i, first : i + 1] = 1 / (i + 1 - first)
return weights""",
    ),
    (
        "nested lists",
        Common.LOOP,
        f"{_ERROR}return torch.tensor([[1 / min(i + 1, width) if 0 <= i - j < width else 0.0 for j in range(n)] "
        "for i in range(n)])",
    ),
]
_LOOPS = [
    (
        "a loop over positions",
        Common.LOOP,
        """
        y = x.new_zeros(len(x), weights.shape[1], x.shape[2])
        for j in range(x.shape[1]):
            y = y + weights[:, :, j, None] * x[:, None, j]
        return y
        """,
    ),
    (
        "a comprehension over the batch",
        Common.LOOP,
        "return torch.stack([w @ one for w, one in zip(weights, x)])",
    ),
    ("a loop hidden in map", Common.LOOP, "return torch.stack(list(map(torch.matmul, weights, x)))"),
]
_EINSUM = [
    ("no einsum", weighted_avg.ONE_EINSUM, "return weights @ x"),
    (
        "sum beside the einsum",
        weighted_avg.MORE_THAN_EINSUM,
        'return torch.einsum("bij,bjk->bijk", weights, x).sum(dim=2)',
    ),
    (
        "an einsum for each sequence",
        Common.LOOP,
        'return torch.stack([torch.einsum("ij,jk->ik", w, one) for w, one in zip(weights, x)])',
    ),
]

MUTANTS = [
    *mutants("window_weights", "def window_weights(n, width):", _WINDOW),
    *_shared_mutants("weighted_avg"),
    *mutants("weighted_avg", "def weighted_avg(x, weights):", _LOOPS),
    *_shared_mutants("weighted_avg_einsum"),
    *mutants("weighted_avg_einsum", "def weighted_avg_einsum(x, weights):", _EINSUM),
    *forging_answers(functions=["weighted_avg", "weighted_avg_einsum"]),
    *forging_function("window_weights", but=OF_TENSORS),
]

VARIANTS = [
    variant(
        "window_weights", "two triangles", "def window_weights(n, width):\n" + indent(_ERROR + _BAND + _SHARE, "    ")
    ),
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
    variant("weighted_avg", "broadcasting", "def weighted_avg(x, weights):\n    " + _BROADCAST),
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
