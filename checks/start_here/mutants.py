"""Chapter 00: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, mutant, variant
from checks.forgers import forging_answers


def _dots(title: str, says: str, *lines: str) -> Answer:
    return mutant("batch_dot", title, says, "def batch_dot(a, b):\n    " + "\n    ".join(lines))


def _pairs(title: str, says: str, *lines: str) -> Answer:
    return mutant("pairwise_dots", title, says, "def pairwise_dots(x, y):\n    " + "\n    ".join(lines))


MUTANTS = [
    _dots("nothing returned", "is there a `return`?", "(a * b).sum(dim=-1)"),
    _dots("summed over the batch", "the sum runs over the batch", "return (a * b).sum(dim=0)"),
    _dots("summed over everything", "everything is summed to one number", "return (a * b).sum()"),
    _dots("not summed", "the products are not summed", "return a * b"),
    _dots("every row with every row", "each row of a meets every row of b", "return a @ b.T"),
    _dots("the size of 1 kept", "the summed dimension is kept", "return (a * b).sum(dim=-1, keepdim=True)"),
    _dots("outer products", "the products are not summed", "return torch.einsum('bd,be->bde', a, b)"),
    _dots("averaged", "averaged instead of summed", "return (a * b).mean(dim=-1)"),
    _dots("cosines", "divided by the lengths", "return F.cosine_similarity(a, b, dim=-1)"),
    _dots("squared", "b is not used", "return (a * a).sum(dim=-1)"),
    _dots("first row of b for all", "only the first row of b", "return (a * b[0]).sum(dim=-1)"),
    _dots("a sum of absolute values", "wrong entries", "return (a * b).abs().sum(dim=-1)"),
    _dots("a loop", "without a loop", "return torch.stack([torch.dot(a[i], b[i]) for i in range(len(a))])"),
    _dots(
        "a loop over the dimension",
        "without a loop",
        "total = a.new_zeros(len(a))",
        "for k in range(a.shape[1]):",
        "    total = total + a[:, k] * b[:, k]",
        "return total",
    ),
    _dots(
        "Python numbers",
        "cut off from the graph",
        "rows = zip(a.tolist(), b.tolist())",
        "return torch.tensor([sum(p * q for p, q in zip(u, v)) for u, v in rows], dtype=a.dtype)",
    ),
    _dots("a single row squeezed away", "`squeeze()`", "return (a[:, None] @ b[:, :, None]).squeeze()"),
    _dots("detached", "cut off from the graph", "return (a * b).sum(dim=-1).detach()"),
    _dots("b detached", "no gradient reaches `b`", "return (a * b.data).sum(dim=-1)"),
    _dots("float32 only", "keep dtype torch.float64", "return (a.float() * b.float()).sum(dim=-1)"),
    _dots("changes a in place", "`a` was changed in place", "a.data *= b.data", "return a.sum(dim=-1)"),
    _dots(
        "made on the CPU",
        "fails when its inputs are on a GPU",
        "return torch.zeros(len(a), dtype=a.dtype) + (a * b).sum(dim=-1)",
    ),
    _dots("hard-coded to the visible example", "should have shape", "return torch.tensor([4.0, 6.0, -3.0])"),
    _pairs("nothing returned", "is there a `return`?", "x @ y.mT"),
    _pairs("rows for y", "a row for each vector of y", "return y @ x.mT"),
    _pairs("not summed", "the products are not summed", "return x[:, :, None] * y[:, None]"),
    _pairs("batch summed away", "the batch is missing", "return torch.einsum('bnd,bmd->nm', x, y)"),
    _pairs("every sequence with every other", "sequences must not mix", "return torch.einsum('bnd,cmd->bcnm', x, y)"),
    _pairs(
        "reshaped where a transpose was meant",
        "`reshape` or `view` where a transpose is meant",
        "return x @ y.reshape(len(y), y.shape[2], y.shape[1])",
    ),
    _pairs("x with itself", "y is not used", "return x @ x.mT"),
    _pairs("first sequence's y for all", "only the first sequence's y", "return torch.einsum('bnd,md->bnm', x, y[0])"),
    _pairs("first sequence's x for all", "only the first sequence's x", "return torch.einsum('nd,bmd->bnm', x[0], y)"),
    _pairs("averaged", "averaged instead of summed", "return (x[:, :, None] * y[:, None]).mean(dim=-1)"),
    _pairs("divided by the root of d", "divided by √d", "return x @ y.mT / x.shape[-1] ** 0.5"),
    _pairs("distances", "wrong entries", "return torch.cdist(x, y)"),
    _pairs("all of T, the batch too", "RuntimeError", "return x @ y.T"),
    _pairs("softmax already", "no softmax here", "return (x @ y.mT).softmax(dim=-1)"),
    _pairs(
        "cosines", "divided by the lengths of the vectors", "return F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).mT"
    ),
    _pairs(
        "all sequences of y summed", "all sequences of y are summed up", "return torch.einsum('bik,cjk->bij', x, y)"
    ),
    _pairs("a loop over the batch", "without a loop", "return torch.stack([u @ v.T for u, v in zip(x, y)])"),
    _pairs(
        "a loop over the positions",
        "without a loop",
        "rows = []",
        "for i in range(x.shape[1]):",
        "    rows.append((x[:, i, None] * y).sum(dim=-1))",
        "return torch.stack(rows, dim=1)",
    ),
    _pairs("sizes of one squeezed away", "`squeeze()`", "return (x @ y.mT).squeeze()"),
    _pairs("detached", "cut off from the graph", "return (x @ y.mT).detach()"),
    _pairs("x detached", "no gradient reaches `x`", "return x.detach() @ y.mT"),
    _pairs("float32 only", "keep dtype torch.float64", "return x.float() @ y.float().mT"),
    _pairs("changes y in place", "`y` was changed in place", "y.data.mul_(2)", "return x @ y.mT / 2"),
    _pairs(
        "made on the CPU",
        "fails when its inputs are on a GPU",
        "out = torch.zeros(len(x), x.shape[1], y.shape[1], dtype=x.dtype)",
        "return out + x @ y.mT",
    ),
    *forging_answers(functions=["batch_dot", "pairwise_dots"]),
]

VARIANTS = [
    variant(
        "batch_dot", "einsum with other letters", "def batch_dot(a, b):\n    return torch.einsum('ik, ik -> i', a, b)"
    ),
    variant("batch_dot", "bmm", "def batch_dot(a, b):\n    return torch.bmm(a.unsqueeze(1), b.unsqueeze(2))[:, 0, 0]"),
    variant("batch_dot", "multiplied and summed", "def batch_dot(a, b):\n    return torch.sum(a * b, dim=1)"),
    variant("batch_dot", "torch.linalg.vecdot", "def batch_dot(a, b):\n    return torch.linalg.vecdot(a, b)"),
    variant("batch_dot", "a diagonal", "def batch_dot(a, b):\n    return (a @ b.T).diagonal()"),
    variant("pairwise_dots", "matmul", "def pairwise_dots(x, y):\n    return torch.matmul(x, y.transpose(1, 2))"),
    variant("pairwise_dots", "bmm and permute", "def pairwise_dots(x, y):\n    return x.bmm(y.permute(0, 2, 1))"),
    variant(
        "pairwise_dots",
        "broadcasting",
        "def pairwise_dots(x, y):\n    return (x.unsqueeze(2) * y.unsqueeze(1)).sum(dim=-1)",
    ),
    variant("pairwise_dots", "the other way, turned", "def pairwise_dots(x, y):\n    return (y @ x.mT).mT"),
    variant(
        "pairwise_dots",
        "a helper of one's own",
        """
        PATTERN = "...nd,...md->...nm"

        def meet(pattern, *tensors):
            return torch.einsum(pattern, *tensors)

        def pairwise_dots(x, y):
            return meet(PATTERN, x, y)
        """,
    ),
]
