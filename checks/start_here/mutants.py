"""Chapter 00: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import mutants, variant
from autograder.checks import Common, Unexplained
from checks.forgers import forging_answers
from checks.start_here.mistakes import batch_dot, pairwise_dots

_DOTS = [
    ("nothing returned", Common.NO_RETURN, "(a * b).sum(dim=-1)"),
    ("summed over the batch", batch_dot.OVER_BATCH, "return (a * b).sum(dim=0)"),
    ("summed over everything", batch_dot.OVER_ALL, "return (a * b).sum()"),
    ("not summed", batch_dot.NOT_SUMMED, "return a * b"),
    ("every row with every row", batch_dot.EVERY_ROW, "return a @ b.T"),
    ("the size of 1 kept", batch_dot.SIZE_KEPT, "return (a * b).sum(dim=-1, keepdim=True)"),
    ("outer products", batch_dot.NOT_SUMMED, "return torch.einsum('bd,be->bde', a, b)"),
    ("averaged", batch_dot.AVERAGED, "return (a * b).mean(dim=-1)"),
    ("cosines", batch_dot.LENGTHS, "return F.cosine_similarity(a, b, dim=-1)"),
    ("squared", batch_dot.B_UNUSED, "return (a * a).sum(dim=-1)"),
    ("first row of b for all", batch_dot.FIRST_B, "return (a * b[0]).sum(dim=-1)"),
    ("a sum of absolute values", batch_dot.SIGN_LOST, "return (a * b).abs().sum(dim=-1)"),
    ("a loop", Common.LOOP, "return torch.stack([torch.dot(a[i], b[i]) for i in range(len(a))])"),
    (
        "a loop over the dimension",
        Common.LOOP,
        "total = a.new_zeros(len(a))\nfor k in range(a.shape[1]):\n    total = total + a[:, k] * b[:, k]\nreturn total",
    ),
    (
        "Python numbers",
        Common.CUT_OFF,
        """
        rows = zip(a.tolist(), b.tolist())
        return torch.tensor([sum(p * q for p, q in zip(u, v)) for u, v in rows], dtype=a.dtype)
        """,
    ),
    ("a single row squeezed away", batch_dot.SQUEEZED, "return (a[:, None] @ b[:, :, None]).squeeze()"),
    ("detached", Common.CUT_OFF, "return (a * b).sum(dim=-1).detach()"),
    ("b detached", Common.INPUT_CUT_OFF, "return (a * b.data).sum(dim=-1)"),
    ("float32 only", Common.WRONG_DTYPE, "return (a.float() * b.float()).sum(dim=-1)"),
    ("changes a in place", Common.CHANGED_IN_PLACE, "a.data *= b.data\nreturn a.sum(dim=-1)"),
    ("made on the CPU", Common.MADE_ON_CPU, "return torch.zeros(len(a), dtype=a.dtype) + (a * b).sum(dim=-1)"),
    ("hard-coded to the visible example", Unexplained.SHAPE, "return torch.tensor([4.0, 6.0, -3.0])"),
]
_PAIRS = [
    ("nothing returned", Common.NO_RETURN, "x @ y.mT"),
    ("rows for y", pairwise_dots.ROWS_OF_Y, "return y @ x.mT"),
    ("not summed", pairwise_dots.NOT_SUMMED, "return x[:, :, None] * y[:, None]"),
    ("batch summed away", pairwise_dots.BATCH_SUMMED, "return torch.einsum('bnd,bmd->nm', x, y)"),
    ("every sequence with every other", pairwise_dots.ALL_SEQUENCES, "return torch.einsum('bnd,cmd->bcnm', x, y)"),
    (
        "reshaped where a transpose was meant",
        pairwise_dots.RESHAPED,
        "return x @ y.reshape(len(y), y.shape[2], y.shape[1])",
    ),
    ("x with itself", pairwise_dots.Y_UNUSED, "return x @ x.mT"),
    ("first sequence's y for all", pairwise_dots.FIRST_Y, "return torch.einsum('bnd,md->bnm', x, y[0])"),
    ("first sequence's x for all", pairwise_dots.FIRST_X, "return torch.einsum('nd,bmd->bnm', x[0], y)"),
    ("averaged", pairwise_dots.AVERAGED, "return (x[:, :, None] * y[:, None]).mean(dim=-1)"),
    ("divided by the root of d", pairwise_dots.SCALED, "return x @ y.mT / x.shape[-1] ** 0.5"),
    ("distances", Unexplained.VALUES, "return torch.cdist(x, y)"),
    ("all of T, the batch too", Common.SIZES_DO_NOT_FIT, "return x @ y.T"),
    ("softmax already", pairwise_dots.SOFTMAX, "return (x @ y.mT).softmax(dim=-1)"),
    ("cosines", pairwise_dots.LENGTHS, "return F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).mT"),
    ("all sequences of y summed", pairwise_dots.Y_SUMMED, "return torch.einsum('bik,cjk->bij', x, y)"),
    ("a loop over the batch", Common.LOOP, "return torch.stack([u @ v.T for u, v in zip(x, y)])"),
    (
        "a loop over the positions",
        Common.LOOP,
        """
        rows = []
        for i in range(x.shape[1]):
            rows.append((x[:, i, None] * y).sum(dim=-1))
        return torch.stack(rows, dim=1)
        """,
    ),
    ("sizes of one squeezed away", pairwise_dots.SQUEEZED, "return (x @ y.mT).squeeze()"),
    ("detached", Common.CUT_OFF, "return (x @ y.mT).detach()"),
    ("x detached", Common.INPUT_CUT_OFF, "return x.detach() @ y.mT"),
    ("float32 only", Common.WRONG_DTYPE, "return x.float() @ y.float().mT"),
    ("changes y in place", Common.CHANGED_IN_PLACE, "y.data.mul_(2)\nreturn x @ y.mT / 2"),
    (
        "made on the CPU",
        Common.MADE_ON_CPU,
        "out = torch.zeros(len(x), x.shape[1], y.shape[1], dtype=x.dtype)\nreturn out + x @ y.mT",
    ),
]

MUTANTS = [
    *mutants("batch_dot", "def batch_dot(a, b):", _DOTS),
    *mutants("pairwise_dots", "def pairwise_dots(x, y):", _PAIRS),
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
