"""Chapter 05: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from textwrap import indent

from autograder.answers import Answer, edit, edited_variant, edits, mutant, mutants, variant
from autograder.checks import Common, Mistake, Unexplained
from checks.forgers import OF_TENSORS, forging_answers, forging_class, forging_dropout, forging_function
from checks.positions.mistakes import Positions as P
from checks.positions.mistakes import is_permutation_equivariant as E
from checks.positions.mistakes import rotate as R
from checks.positions.mistakes import sinusoidal_encoding as S

_EQUIVARIANCE = "def is_permutation_equivariant(function, x, permutation):"
_ENCODING = "def sinusoidal_encoding(max_len, dim):"


def _published(exercise: str, head: str, rows: list[tuple[str, Mistake, str, str]]) -> list[Answer]:
    """Wrong answers that people published: title, mistake, what was published, and the lines below the head."""
    return [
        mutant(exercise, title, mistake, f"{head}\n{indent(body, '    ')}", published=found)
        for title, mistake, found, body in rows
    ]


_SIDES = [  # what is compared with what
    ("invariance instead", E.UNLIKE_SIDES, "function(x[:, permutation]), function(x)"),
    ("the batch is reordered", E.NOT_NOTICED, "function(x[permutation]), function(x)[permutation]"),
    ("the features are reordered", E.NOT_NOTICED, "function(x[..., permutation]), function(x)[..., permutation]"),
    ("the inverse on one side", E.UNLIKE_SIDES, "function(x[:, permutation]), function(x)[:, permutation.argsort()]"),
    ("reordered once, compared with the input", E.UNLIKE_SIDES, "function(x[:, permutation]), x[:, permutation]"),
    (
        "sums over the positions",
        E.NOT_NOTICED,
        "function(x[:, permutation]).sum(1), function(x)[:, permutation].sum(1)",
    ),
    ("the first sequence only", E.ONE_SEQUENCE, "function(x[:, permutation])[0], function(x)[0, permutation]"),
    ("the first feature only", E.ONE_FEATURE, "function(x[:, permutation])[..., 0], function(x)[:, permutation, 0]"),
]
_COMPARISONS = [  # how the right sides, `before` and `after`, are compared
    ("to the last bit", E.EXACT, "torch.equal(before, after)"),
    ("to the last bit, with ==", E.EXACT, "bool((before == after).all())"),
    ("a tensor of booleans", E.NO_BOOL, "(before - after).abs() < 1e-4"),
    ("a tensor with one boolean", E.NO_BOOL, "((before - after).abs() < 1e-4).all()"),
    ("any instead of all", E.ONE_FEATURE, "bool(((before - after).abs() < 1e-4).any())"),
    ("mean of the differences", E.NOT_NOTICED, "abs(float((before - after).mean())) < 1e-4"),
    ("far too tolerant", E.TOO_TOLERANT, "torch.allclose(before, after, atol=0.5)"),
    ("default tolerance", E.RELATIVE_ONLY, "torch.allclose(before, after)"),
    ("relative to the spread", E.ONE_NUMBER, "bool((before - after).abs().max() / after.std() < 1e-4)"),
    ("the other way round, without its absolute value", E.NO_ABSOLUTE, "((after - before).max() < 1e-3).item()"),
    ("always True", E.NOT_NOTICED, "True"),
    ("always False", E.UNLIKE_SIDES, "False"),
]
_RIGHT_SIDES = "before, after = function(x[:, permutation]), function(x)[:, permutation]\nreturn "
_REORDERED = [
    ("nothing returned", Common.NO_RETURN, "torch.allclose(function(x[:, permutation]), x)"),
    (
        "a permutation of its own",
        E.NOT_NOTICED,
        "permutation = torch.arange(x.shape[1] - 1, -1, -1)\n"
        "return torch.allclose(function(x[:, permutation]), function(x)[:, permutation], atol=1e-5)",
    ),
    (
        "a shift of its own",
        E.OWN_PERMUTATION,
        "shifted = torch.arange(x.shape[1]).roll(1)\n"
        "return torch.allclose(function(x[:, shifted]), function(x)[:, shifted], atol=1e-5)",
    ),
    (
        "reorders x in place",
        Common.CHANGED_IN_PLACE,
        "after = function(x)[:, permutation]\nx[:] = x[:, permutation]\n"
        "return torch.allclose(function(x), after, atol=1e-5)",
    ),
    *[(title, mistake, f"return torch.allclose({sides}, atol=1e-5)") for title, mistake, sides in _SIDES],
    *[(title, mistake, _RIGHT_SIDES + compared) for title, mistake, compared in _COMPARISONS],
]
_EQUIVARIANCE_MUTANTS = mutants("is_permutation_equivariant", _EQUIVARIANCE, _REORDERED)

_EQUIVARIANCE_PUBLISHED = _published(
    "is_permutation_equivariant",
    _EQUIVARIANCE,
    [
        (
            "the largest difference without its absolute value",
            E.NO_ABSOLUTE,
            "`(a - b).max() < 1e-3`",
            "return bool((function(x[:, permutation]) - function(x)[:, permutation]).max() < 1e-3)",
        )
    ],
)

_EQUIVARIANCE_VARIANTS = [
    variant(
        "is_permutation_equivariant",
        "the tolerances of torch.testing",
        """
        def is_permutation_equivariant(function, x, permutation):
            try:
                torch.testing.assert_close(function(x[:, permutation]), function(x)[:, permutation])
            except AssertionError:
                return False
            return True
        """,
    ),
    variant(
        "is_permutation_equivariant",
        "largest difference",
        """
        def is_permutation_equivariant(function, x, permutation):
            difference = function(x)[:, permutation] - function(x[:, permutation])
            return difference.abs().max().item() < 1e-4
        """,
    ),
    variant(
        "is_permutation_equivariant",
        "undone afterwards",
        """
        def is_permutation_equivariant(function, x, permutation):
            with torch.no_grad():
                back = function(x.index_select(1, permutation))[:, permutation.argsort()]
                return bool(torch.isclose(back, function(x), atol=1e-6).all())
        """,
    ),
    variant(
        "is_permutation_equivariant",
        "a permutation matrix",
        """
        def reorder(x, permutation):
            return F.one_hot(permutation, len(permutation)).to(x.dtype) @ x

        def is_permutation_equivariant(function, x, permutation):
            return torch.allclose(function(reorder(x, permutation)), reorder(function(x), permutation), atol=1e-5)
        """,
    ),
    variant(
        "is_permutation_equivariant",
        "position by position",
        """
        def is_permutation_equivariant(function, x, permutation):
            y, y_reordered = function(x), function(x[:, permutation])
            for new, old in enumerate(permutation.tolist()):
                if not torch.allclose(y_reordered[:, new], y[:, old], atol=1e-3):
                    return False
            return True
        """,
    ),
]


def _waves(angle: str, *, position: str = "torch.arange(max_len)[:, None]", even: str = "sin", odd: str = "cos") -> str:
    return (
        f"position = {position}\n"
        "two_k = torch.arange(0, dim, 2)\n"
        f"angle = {angle}\n"
        "pe = torch.zeros(max_len, dim)\n"
        f"pe[:, 0::2] = angle.{even}()\n"
        f"pe[:, 1::2] = angle[:, : dim // 2].{odd}()\n"
        "return pe"
    )


_RIGHT = _waves("position / 10_000 ** (two_k / dim)")
_ANGLES = "angle = torch.arange(max_len)[:, None] / 10_000 ** ({})\n"
_STACKED = "return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)"
_BY_COLUMN = "return torch.where(torch.arange(dim) % 2 == 0, angle.sin(), angle.cos())"
_ENCODING_MUTANTS = mutants(
    "sinusoidal_encoding",
    _ENCODING,
    [
        ("nothing returned", Common.NO_RETURN, _RIGHT.removesuffix("\nreturn pe")),
        ("transposed", S.TRANSPOSED, _RIGHT.replace("return pe", "return pe.T")),
        (
            "sines first, then cosines",
            S.HALVES,
            "position = torch.arange(max_len)[:, None]\n"
            "angle = position / 10_000 ** (torch.arange(0, dim, 2) / dim)\n"
            "return torch.cat([angle.sin(), angle[:, : dim // 2].cos()], dim=1)",
        ),
        ("sine and cosine swapped", S.SWAPPED, _waves("position / 10_000 ** (two_k / dim)", even="cos", odd="sin")),
        (
            "a frequency for each column, doubled",
            S.OWN_DOUBLED,
            _ANGLES.format("2 * torch.arange(dim) / dim") + _BY_COLUMN,
        ),
        ("no cosines", S.NO_COSINES, _RIGHT.replace("pe[:, 1::2] = angle[:, : dim // 2].cos()\n", "")),
        ("a frequency for each column", S.OWN_FREQUENCY, _ANGLES.format("torch.arange(dim) / dim") + _BY_COLUMN),
        ("k / dim", S.HALVED, _waves("position / 10_000 ** (torch.arange((dim + 1) // 2) / dim)")),
        ("4k / dim", S.DOUBLED, _waves("position / 10_000 ** (2 * two_k / dim)")),
        (
            "counted from 1",
            S.FROM_1,
            _waves("position / 10_000 ** (two_k / dim)", position="torch.arange(1, max_len + 1)[:, None]"),
        ),
        ("multiplied", S.RISES, _waves("position * 10_000 ** (two_k / dim)")),
        ("integer division", S.EQUAL, _waves("position / 10_000 ** (two_k // dim)")),
        ("log10", S.LOG10, _waves("position * torch.exp(-two_k / dim * torch.tensor(10_000.0).log10())")),
        ("divided by dim + 1 if odd", S.ODD_DIVISOR, _waves("position / 10_000 ** (two_k / (dim + dim % 2))")),
        ("an odd dim loses a column", S.ODD_LOSES, _ANGLES.format("torch.arange(0, dim - 1, 2) / dim") + _STACKED),
        ("an odd dim gains a column", S.ODD_GAINS, _ANGLES.format("torch.arange(0, dim, 2) / dim") + _STACKED),
        (
            "the last column of an odd dim is empty",
            S.ODD_EMPTY,
            "angle = torch.arange(max_len)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)\n"
            "pe = torch.zeros(max_len, dim)\n"
            "pairs = dim // 2\n"
            "pe[:, 0 : 2 * pairs : 2], pe[:, 1::2] = angle[:, :pairs].sin(), angle[:, :pairs].cos()\n"
            "return pe",
        ),
        ("float64", Common.WRONG_DTYPE, _RIGHT.replace("return pe", "return pe.double()")),
        ("requires a gradient", S.LEARNS, _RIGHT.replace("return pe", "return nn.Parameter(pe)")),
        ("one dimension too many", S.EXTRA_DIMENSION, _RIGHT.replace("return pe", "return pe[None]")),
        (
            "hard-coded to the visible example",
            S.ODD_LOSES,
            "angle = torch.arange(3)[:, None] / torch.tensor([1.0, 100.0])\n"
            "return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
        ),
    ],
)

_ENCODING_PUBLISHED = _published(
    "sinusoidal_encoding",
    _ENCODING,
    [
        ("base 1000", S.BASE_1000, "base 1000", _waves("position / 1_000 ** (two_k / dim)")),
        (
            "even dims only",
            S.ODD_ERROR,
            "code for an even `dim` alone",
            _RIGHT.replace("angle[:, : dim // 2].cos()", "angle.cos()"),
        ),
        ("base 9999", S.BASE_9999, "base 9999", _waves("position / 9_999 ** (two_k / dim)")),
        ("row 0 left zero", S.ROW_0, "row 0 left at zero", _RIGHT.replace("return pe", "pe[0] = 0\nreturn pe")),
        (
            "the last position left out",
            S.LAST_ROW,
            "`range(max_len - 1)`",
            "pe = torch.zeros(max_len, dim)\n"
            "angle = torch.arange(max_len)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)\n"
            "for p in range(max_len - 1):\n"
            "    pe[p, 0::2], pe[p, 1::2] = angle[p].sin(), angle[p, : dim // 2].cos()\n"
            "return pe",
        ),
        (
            "cosines over the sines",
            S.OVERWRITTEN,
            "the cosine written to `0::2` again",
            _RIGHT.replace("pe[:, 1::2] = angle[:, : dim // 2].cos()", "pe[:, 0::2] = angle.cos()"),
        ),
    ],
)

_ENCODING_VARIANTS = [
    variant(
        "sinusoidal_encoding",
        "two loops",
        """
        import math

        def sinusoidal_encoding(max_len, dim):
            pe = torch.zeros(max_len, dim)
            for p in range(max_len):
                for c in range(dim):
                    angle = p / 10000 ** ((c - c % 2) / dim)
                    pe[p, c] = math.cos(angle) if c % 2 else math.sin(angle)
            return pe
        """,
    ),
    variant(
        "sinusoidal_encoding",
        "through exp and the natural logarithm",
        """
        import math

        def sinusoidal_encoding(max_len, dim):
            position = torch.arange(max_len, dtype=torch.float).unsqueeze(1)
            frequency = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
            pe = torch.zeros(max_len, dim)
            pe[:, 0::2] = torch.sin(position * frequency)
            pe[:, 1::2] = torch.cos(position * frequency[: dim // 2])
            return pe
        """,
    ),
    variant(
        "sinusoidal_encoding",
        "pairs stacked, then cut",
        """
        def sinusoidal_encoding(max_len, dim):
            k = torch.arange((dim + 1) // 2)
            angle = torch.outer(torch.arange(max_len).float(), 10_000 ** (-2 * k / dim))
            return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(max_len, -1)[:, :dim]
        """,
    ),
    variant(
        "sinusoidal_encoding",
        "a cosine is a sine a quarter turn on",
        """
        def sinusoidal_encoding(max_len, dim):
            column = torch.arange(dim)
            odd = column % 2
            angle = torch.arange(max_len, dtype=torch.float64)[:, None] / 10_000 ** ((column - odd) / dim)
            return torch.sin(angle + odd * torch.pi / 2).float()
        """,
    ),
    variant(
        "sinusoidal_encoding",
        "with where",
        """
        def sinusoidal_encoding(max_len, dim):
            column = torch.arange(dim)
            angle = torch.arange(max_len)[:, None] / torch.pow(10_000, (column - column % 2) / dim)
            return torch.where(column % 2 == 0, angle.sin(), angle.cos())
        """,
    ),
]

_ADD = "return self.dropout(x + p)"
_CONCAT = "return self.dropout(torch.cat([x, p.expand_as(x)], dim=-1))"
_TABLE = 'self.register_buffer("pe", sinusoidal_encoding(max_len, dim))'
_TOO_LONG = 'raise ValueError(f"a sequence of {x.shape[1]} positions, but max_len is {max_len}")'
_WRONG_DIM = 'raise ValueError(f"{x.shape[2]} features, but dim is {dim}")'


_ADDED = [
    ("nothing returned", Common.NO_RETURN, "None"),
    ("no positions added", P.NO_POSITIONS, "self.dropout(x)"),
    ("x left out", P.NO_X, "self.dropout(p.expand_as(x))"),
    ("multiplied", P.MULTIPLIED, "self.dropout(x * p)"),
    ("x scaled by the root of dim", P.X_SCALED, "self.dropout(x * x.shape[2] ** 0.5 + p)"),
    ("the first sequence for all", P.FIRST_SEQUENCE, "self.dropout((x[0] + p).expand_as(x))"),
    ("dropout in eval mode", Common.DROPOUT_IN_EVAL, "F.dropout(x + p, self.dropout.p)"),
    ("no dropout", P.NO_DROPOUT, "x + p"),
    ("dropout on x alone", P.DROPOUT_ON_X, "self.dropout(x) + p"),
    ("dropout on both before they are added", P.DROPOUT_BEFORE, "self.dropout(x) + self.dropout(p.expand_as(x))"),
    ("dropout on the positions alone", P.DROPOUT_ON_POSITIONS, "x + self.dropout(p.expand_as(x))"),
]
_BESIDE = [
    ("concat: positions first", P.POSITIONS_FIRST, "self.dropout(torch.cat([p.expand_as(x), x], dim=-1))"),
    ("concat: along the sequence", P.ALONG_SEQUENCE, "self.dropout(torch.cat([x, p.expand_as(x)], dim=1))"),
    ("concat: x plus positions in the second half", P.SUM_BESIDE, "self.dropout(torch.cat([x, x + p], dim=-1))"),
    ("concat adds", P.LIKE_ADD, "self.dropout(x + p)  # concat"),
    ("concat: the batch is not expanded", Unexplained.RAISED, "self.dropout(torch.cat([x, p[None]], dim=-1))"),
    ("concat: no dropout on the positions", P.DROPOUT_ON_X, "torch.cat([self.dropout(x), p.expand_as(x)], dim=-1)"),
    ("concat: no dropout", P.NO_DROPOUT, "torch.cat([x, p.expand_as(x)], dim=-1)"),
    ("concat: detached", Common.CUT_OFF, "self.dropout(torch.cat([x.data, p.expand_as(x).data], dim=-1))"),
]


def _joining_mutants(name: str, rows: str, whole: str) -> list[Answer]:
    """The wrong answers to both classes: `rows` is how the reference takes its rows from the table `whole`."""
    learns = name == "PositionEmbedding"  # there a gradient is missed by the name of what it does not reach
    return edits(
        name,
        [
            *((title, mistake, (_ADD, f"return {to}")) for title, mistake, to in _ADDED),
            (
                "a row for each sequence",
                P.ROW_PER_SEQUENCE,
                (rows, f"p = {whole}[: x.shape[0]].unsqueeze(1).expand_as(x)"),
            ),
            ("counted from 1", P.FROM_1, (rows, f"p = {whole}[1 : x.shape[1] + 1]")),
            ("the row of the last position for all", P.LAST_FOR_ALL, (rows, f"p = {whole}[x.shape[1] - 1]")),
            ("the last rows", P.LAST_ROWS, (rows, f"p = {whole}[-x.shape[1] :]")),
            ("x changed in place", Common.CHANGED_IN_PLACE, (_ADD, "x += p\n            return self.dropout(x)")),
            (
                "detached",
                Common.PARAMETER_UNUSED if learns else Common.CUT_OFF,
                (_ADD, "return self.dropout(x + p).detach()"),
            ),
            (
                "x detached",
                Common.INPUT_CUT_OFF if learns else Common.CUT_OFF,
                (_ADD, "return self.dropout(x.detach() + p)"),
            ),
            (
                "dropout keeps a quarter",
                P.DROPOUT_RATE,
                ("nn.Dropout(dropout)", "nn.Dropout(1 - dropout if dropout else 0.0)"),
            ),
            ("a sequence too long is cut", Common.NO_ERROR, (_TOO_LONG, "x = x[:, :max_len]")),
            ("max_len itself refused", Unexplained.RAISED, ("if x.shape[1] > max_len", "if x.shape[1] >= max_len")),
            ("too long: another error", Common.OTHER_ERROR, (_TOO_LONG, 'raise IndexError("too long")')),
            ("dim is not checked", Common.OTHER_ERROR, (_WRONG_DIM, "pass")),
            *((title, mistake, (_CONCAT, f"return {to}")) for title, mistake, to in _BESIDE),
        ],
    )


_ENCODING_CLASS_MUTANTS = [
    *_joining_mutants("PositionEncoding", "p = self.pe[: x.shape[1]]", "self.pe"),
    *edits(
        "PositionEncoding",
        [
            ("a plain attribute", P.NO_BUFFER, (_TABLE, "self.pe = sinusoidal_encoding(max_len, dim)")),
            ("a trained parameter", P.NO_BUFFER, (_TABLE, "self.pe = nn.Parameter(sinusoidal_encoding(max_len, dim))")),
            (
                "a parameter that is not trained",
                P.NO_BUFFER,
                (_TABLE, "self.pe = nn.Parameter(sinusoidal_encoding(max_len, dim), requires_grad=False)"),
            ),
            (
                "the buffer has a batch dimension",
                P.BATCH_IN_TABLE,
                (_TABLE, 'self.register_buffer("pe", sinusoidal_encoding(max_len, dim)[None])'),
                ("max_len, dim = self.pe.shape", "_, max_len, dim = self.pe.shape"),
                ("self.pe[: x.shape[1]]", "self.pe[0, : x.shape[1]]"),
            ),
            (
                "random numbers instead of the encoding",
                P.OTHER_TABLE,
                (_TABLE, 'self.register_buffer("pe", torch.randn(max_len, dim))'),
            ),
            ("any mode adds", Common.NO_ERROR, ("raise ValueError(f'mode should", "print(f'mode should")),
            (
                "expand allowed too",
                Common.NO_ERROR,
                ('mode not in ("add", "concat")', 'mode not in ("add", "concat", "expand")'),
            ),
            (
                "the mode checked by assert",
                Common.OTHER_ERROR,
                ("raise ValueError(f'mode should", "raise AssertionError(f'mode should"),
            ),
            ("concat by default", P.DEFAULT_MODE, ('mode="add"', 'mode="concat"')),
            ("another default max_len", P.DEFAULT_MAX_LEN, ("max_len=5000", "max_len=512")),
            ("dropout by default", P.DEFAULT_DROPOUT, ("dropout=0.0", "dropout=0.1")),
            (
                "a table of another size, made on the CPU in forward",
                P.NO_BUFFER,
                (_TABLE, "self.size = max_len, dim"),
                ("max_len, dim = self.pe.shape", "max_len, dim = self.size"),
                ("self.pe[: x.shape[1]]", "sinusoidal_encoding(max_len, dim)[: x.shape[1]]"),
            ),
            (
                "made on the CPU in forward, beside the buffer",
                Common.MADE_ON_CPU,
                ("self.pe[: x.shape[1]]", "sinusoidal_encoding(max_len, dim).to(x.dtype)[: x.shape[1]]"),
            ),
        ],
    ),
]

_ENCODING_CLASS_VARIANTS = [
    edited_variant(
        "PositionEncoding",
        "the buffer is not saved, concat with repeat",
        ("dim))", "dim), persistent=False)"),
        ("p.expand_as(x)", "p.unsqueeze(0).repeat(len(x), 1, 1)"),
    ),
    edited_variant(
        "PositionEncoding",
        "one expression for both modes",
        ('if self.mode == "add":\n            return self.dropout(x + p)\n        ', ""),
        (_CONCAT, 'return self.dropout(x + p if self.mode == "add" else torch.cat((x, p.repeat(len(x), 1, 1)), 2))'),
    ),
    variant(
        "PositionEncoding",
        "functional dropout and its own attributes",
        """
        class PositionEncoding(nn.Module):
            def __init__(self, dim, dropout=0.0, max_len=5000, mode="add"):
                super().__init__()
                if mode == "add":
                    self.join = self.add
                elif mode == "concat":
                    self.join = self.concat
                else:
                    raise ValueError(mode)
                self.p, self.dim, self.max_len = dropout, dim, max_len
                self.register_buffer("pe", sinusoidal_encoding(max_len, dim))

            def add(self, x, rows):
                return torch.add(x, rows)

            def concat(self, x, rows):
                return torch.cat([x, rows.broadcast_to(x.shape)], -1)

            def forward(self, x):
                batch, n, dim = x.shape
                if n > self.max_len or dim != self.dim:
                    raise ValueError("wrong size")
                return F.dropout(self.join(x, self.pe[:n]), self.p, self.training)
        """,
    ),
    variant(
        "PositionEncoding",
        "rows looked up by number, the formula written again",
        """
        class PositionEncoding(nn.Module):
            def __init__(self, dim, dropout=0.0, max_len=5000, mode="add"):
                if mode not in {"add", "concat"}:
                    raise ValueError("no such mode")
                super().__init__()
                column = torch.arange(dim)
                angle = torch.arange(max_len)[:, None] / 10_000 ** ((column - column % 2) / dim)
                self.register_buffer("pe", torch.where(column % 2 == 0, angle.sin(), angle.cos()))
                self.drop = nn.Dropout(dropout)
                self.mode = mode

            def forward(self, x):
                if x.size(1) > self.pe.size(0):
                    raise ValueError("too long")
                if x.size(-1) != self.pe.size(1):
                    raise ValueError("wrong dim")
                positions = torch.arange(x.size(1), device=x.device).expand(x.size(0), -1)
                p = self.pe[positions]
                return self.drop(x + p) if self.mode == "add" else self.drop(torch.cat([x, p], dim=2))
        """,
    ),
]

_WEIGHT = "self.weight = nn.Parameter(0.1 * torch.randn(rows, dim))"
_LOOK_UP = "return self.dropout(F.embedding(row, self.weight))"
_ROW = "row = x.clamp(-self.max_len, self.max_len) + self.max_len"


def _row(title: str, says: str, row: str) -> Answer:
    return edit("PositionEmbedding", f"expand: {title}", says, (_ROW, f"row = {row}"))


_EMBEDDING_MUTANTS = [
    *_joining_mutants("PositionEmbedding", "p = self.weight[: x.shape[1]]", "self.weight"),
    *edits(
        "PositionEmbedding",
        [
            ("a buffer", P.NO_PARAMETER, (_WEIGHT, 'self.register_buffer("weight", torch.randn(rows, dim))')),
            ("a plain tensor", P.NO_PARAMETER, (_WEIGHT, "self.weight = torch.randn(rows, dim)")),
            (
                "not trained",
                P.NOT_TRAINED,
                (_WEIGHT, "self.weight = nn.Parameter(torch.randn(rows, dim), requires_grad=False)"),
            ),
            (
                "another name",
                P.NO_PARAMETER,
                (_WEIGHT, "self.weights = nn.Parameter(torch.randn(rows, dim))"),
                ("F.embedding(row, self.weight)", "F.embedding(row, self.weights)"),
                ("max_len, dim = self.weight.shape", "max_len, dim = self.weights.shape"),
                ("p = self.weight[: x.shape[1]]", "p = self.weights[: x.shape[1]]"),
            ),
            ("starts with zeros", P.EQUAL_ROWS, (_WEIGHT, "self.weight = nn.Parameter(torch.zeros(rows, dim))")),
            (
                "starts with the same row everywhere",
                P.EQUAL_ROWS,
                (_WEIGHT, "self.weight = nn.Parameter(torch.randn(dim).repeat(rows, 1))"),
            ),
            ("starts ten times too large", P.START, (_WEIGHT, "self.weight = nn.Parameter(torch.randn(rows, dim))")),
            (
                "starts uniform",
                P.START,
                (_WEIGHT, "self.weight = nn.Parameter(0.1 * 12**0.5 * (torch.rand(rows, dim) - 0.5))"),
            ),
            (
                "starts as Xavier has it",
                P.START,
                (_WEIGHT, "self.weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(rows, dim)))"),
            ),
            (
                "starts with the sinusoidal encoding",
                P.START,
                (_WEIGHT, "self.weight = nn.Parameter(sinusoidal_encoding(rows, dim))"),
            ),
            (
                "rows for expand in every mode",
                P.ROWS,
                ('rows = 2 * max_len + 1 if mode == "expand" else max_len', "rows = 2 * max_len + 1"),
                ("max_len, dim = self.weight.shape", "max_len, dim = self.max_len, self.weight.shape[1]"),
            ),
            (
                "weight detached",
                Common.PARAMETER_UNUSED,
                ("p = self.weight[: x.shape[1]]", "p = self.weight.data[: x.shape[1]]"),
            ),
            ("any mode adds", Common.NO_ERROR, ("raise ValueError(f'mode should", "print(f'mode should")),
            ("another default max_len", P.DEFAULT_MAX_LEN, ("max_len=512", "max_len=5000")),
            ("expand: a row too few", P.ROWS, ("rows = 2 * max_len + 1 if", "rows = 2 * max_len if")),
            (
                "expand: only max_len + 1 rows, by absolute distance",
                P.ROWS,
                ("rows = 2 * max_len + 1 if", "rows = max_len + 1 if"),
                (_ROW, "row = x.abs().clamp(max=self.max_len)"),
            ),
            (
                "expand: two dimensions only",
                Unexplained.SHAPE,
                (
                    _LOOK_UP,
                    "n, m = row.shape if row.dim() == 2 else (1, len(row))\n            "
                    "return self.dropout(self.weight[row.flatten()].reshape(n, m, -1).reshape(*row.shape[:2], -1))",
                ),
            ),
            ("expand: no dropout", P.NO_DROPOUT, (_LOOK_UP, "return self.weight[row]")),
            (
                "expand: dropout in eval mode",
                Common.DROPOUT_IN_EVAL,
                (_LOOK_UP, "return F.dropout(self.weight[row], self.dropout.p)"),
            ),
            ("expand: detached", Common.CUT_OFF, (_LOOK_UP, "return self.dropout(self.weight[row].detach())")),
            (
                "expand: the same weight for every feature",
                Unexplained.VALUES,
                (
                    _LOOK_UP,
                    "return self.dropout(self.weight[row].mean(-1, keepdim=True).expand(*row.shape, dim_of(self)))",
                ),
                (
                    "class PositionEmbedding",
                    "def dim_of(module):\n    return module.weight.shape[1]\n\n\nclass PositionEmbedding",
                ),
            ),
        ],
    ),
    _row("no clamping", P.NOT_CLAMPED, "x + self.max_len"),
    _row("max_len not added", P.NO_SHIFT, "x.clamp(-self.max_len, self.max_len) % len(self.weight)"),
    _row("absolute distance", P.SIGN_LOST, "x.abs().clamp(max=self.max_len) + self.max_len"),
    _row("sign reversed", P.REVERSED, "self.max_len - x.clamp(-self.max_len, self.max_len)"),
    _row("negative distances are 0", P.NEGATIVE_0, "x.clamp(0, self.max_len) + self.max_len"),
    _row("clamped after the shift", P.CLAMPED_AFTER, "(x + self.max_len).clamp(0, self.max_len)"),
    _row("clamped one too early", P.EARLY, "x.clamp(-self.max_len, self.max_len - 1) + self.max_len"),
    _row("wrapped around", P.WRAPPED, "(x + self.max_len) % (2 * self.max_len + 1)"),
    _row("shifted by one", P.SHIFTED, "(x + self.max_len - 1).clamp(0, 2 * self.max_len)"),
    _row(
        "distances of distances", P.AGAIN, "(x[None, :] - x[:, None]).clamp(-self.max_len, self.max_len) + self.max_len"
    ),
    _row("x clamped in place", Common.CHANGED_IN_PLACE, "x.clamp_(-self.max_len, self.max_len) + self.max_len"),
]

_EMBEDDING_VARIANTS = [
    edited_variant(
        "PositionEmbedding",
        "shifted first, then clamped; indexed",
        (_ROW, "row = (x + self.max_len).clamp(min=0, max=2 * self.max_len)"),
        (_LOOK_UP, "return self.dropout(self.weight[row])"),
    ),
    edited_variant(
        "PositionEmbedding",
        "torch.min and torch.max, one-hot times weight",
        (_ROW, "row = torch.where(x > self.max_len, self.max_len, torch.where(x < -self.max_len, -self.max_len, x))"),
        (
            _LOOK_UP,
            "one_hot = F.one_hot(row + self.max_len, len(self.weight)).to(self.weight.dtype)\n            "
            "return self.dropout(one_hot @ self.weight)",
        ),
    ),
    edited_variant(
        "PositionEmbedding",
        "an nn.Embedding inside that shares its weight",
        (
            _WEIGHT,
            "self.table = nn.Embedding(rows, dim)\n        nn.init.normal_(self.table.weight, std=0.1)\n"
            "        self.weight = self.table.weight",
        ),
        ("F.embedding(row, self.weight)", "self.table(row)"),
        ("p = self.weight[: x.shape[1]]", "p = self.table(torch.arange(x.shape[1], device=x.device))"),
    ),
    variant(
        "PositionEmbedding",
        "functional dropout, a method for each mode",
        """
        class PositionEmbedding(nn.Module):
            def __init__(self, dim, dropout=0.0, max_len=512, mode="add"):
                super().__init__()
                modes = {"add": (self.add, max_len), "concat": (self.concat, max_len)}
                modes["expand"] = (self.expand, 2 * max_len + 1)
                if mode not in modes:
                    raise ValueError(f"unknown mode {mode}")
                self.join, rows = modes[mode]
                self.max_len, self.rate = max_len, dropout
                self.weight = nn.Parameter(torch.empty(rows, dim))
                nn.init.normal_(self.weight, std=0.1)

            def forward(self, x):
                return F.dropout(self.join(x), self.rate, training=self.training)

            def rows(self, x):
                if x.size(-2) > self.max_len or x.size(-1) != self.weight.size(1):
                    raise ValueError("wrong size")
                return self.weight[: x.size(-2)].unsqueeze(0)

            def add(self, x):
                return x + self.rows(x)

            def concat(self, x):
                return torch.cat([x, self.rows(x).expand(x.size(0), -1, -1)], dim=-1)

            def expand(self, x):
                bound = self.max_len
                return self.weight[torch.clip(x, -bound, bound) + bound]
        """,
    ),
    variant(
        "PositionEmbedding",
        "a kind of nn.Embedding",
        """
        class PositionEmbedding(nn.Embedding):
            def __init__(self, dim, dropout=0.0, max_len=512, mode="add"):
                if mode not in ["add", "concat", "expand"]:
                    raise ValueError("no such mode")
                super().__init__(2 * max_len + 1 if mode == "expand" else max_len, dim)
                nn.init.normal_(self.weight, 0, 0.1)
                self.mode, self.max_len, self.dropout = mode, max_len, nn.Dropout(dropout)

            def forward(self, x):
                if self.mode == "expand":
                    return self.dropout(super().forward(x.clamp(-self.max_len, self.max_len) + self.max_len))
                if x.shape[1] > self.max_len or x.shape[2] != self.embedding_dim:
                    raise ValueError("wrong size")
                p = super().forward(torch.arange(x.shape[1], device=x.device)).expand_as(x)
                return self.dropout(x + p if self.mode == "add" else torch.cat([x, p], -1))
        """,
    ),
]

_ROTATE_MUTANTS = [
    mutant(
        "rotate",
        "complex numbers not taken apart",
        Common.COMPLEX,
        """
        def rotate(x, positions, base=10000.0):
            d = x.shape[-1]
            if d % 2:
                raise ValueError("pairs")
            angle = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
            pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
            return pairs * torch.polar(torch.ones_like(angle), angle)
        """,
    ),
    *edits(
        "rotate",
        [
            ("nothing returned", Common.NO_RETURN, ("return torch.stack(", "torch.stack(")),
            (
                "halves instead of pairs",
                R.HALVES,
                ("a, b = x[..., 0::2], x[..., 1::2]", "a, b = x.chunk(2, dim=-1)"),
                (
                    "return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)",
                    "return torch.cat([turned_a, turned_b], -1)",
                ),
            ),
            (
                "pairs turned, halves returned",
                R.UNZIPPED,
                (
                    "return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)",
                    "return torch.cat([turned_a, turned_b], -1)",
                ),
            ),
            ("turned backwards", R.BACKWARDS, ("positions[:, None]", "-positions[:, None]")),
            ("k / d", R.HALVED, ("(-torch.arange(0, d, 2", "(-0.5 * torch.arange(0, d, 2")),
            ("4k / d", R.DOUBLED, ("(-torch.arange(0, d, 2", "(-2 * torch.arange(0, d, 2")),
            ("the angles grow", R.RISES, ("(-torch.arange(0, d, 2", "(torch.arange(0, d, 2")),
            (
                "integer division",
                R.EQUAL,
                ("-torch.arange(0, d, 2, device=x.device) / d", "torch.arange(0, d, 2, device=x.device) // d"),
            ),
            ("the second from the turned first", R.OVERWRITTEN, ("turned_b = a * sine", "turned_b = turned_a * sine")),
            ("both with plus", R.NO_MINUS, ("turned_a = a * cosine - b * sine", "turned_a = a * cosine + b * sine")),
            (
                "the pair mirrored",
                R.MIRRORED,
                ("turned_a = a * cosine - b * sine", "turned_a = a * cosine + b * sine"),
                ("turned_b = a * sine + b * cosine", "turned_b = a * sine - b * cosine"),
            ),
            ("sine and cosine swapped", R.SWAPPED, ("cosine, sine = ", "sine, cosine = ")),
            ("base not used", R.BASE, ("frequency = base **", "frequency = 10_000.0 **")),
            (
                "counts the positions itself",
                R.NOT_USED,
                ("positions[:, None]", "torch.arange(x.shape[-2], device=x.device)[:, None]"),
            ),
            (
                "the wrong dimension",
                R.WRONG_DIMENSION,
                ("positions[:, None]", "(positions[:, None, None] if x.dim() == 4 else positions[:, None])"),
            ),
            ("odd sizes: another error", Common.OTHER_ERROR, ("raise ValueError(", "raise AssertionError(")),
            (
                "odd sizes: the last feature left out",
                Common.NO_ERROR,
                (
                    "if d % 2:\n        raise ValueError(",
                    "if d % 2:\n        x, d = x[..., :-1], d - 1\n        print(",
                ),
            ),
            (
                "x changed in place",
                Common.CHANGED_IN_PLACE,
                (
                    "return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)",
                    "x[..., 0::2], x[..., 1::2] = turned_a, turned_b\n    return x",
                ),
            ),
            ("float64 always", Common.WRONG_DTYPE, (".flatten(-2)", ".flatten(-2).double()")),
            ("float32 always", Common.WRONG_DTYPE, (".flatten(-2)", ".flatten(-2).float()")),
            (
                "angles left in float32 for half precision",
                Common.WRONG_DTYPE,
                (
                    "cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)",
                    "cosine, sine = angle.cos(), angle.sin()",
                ),
            ),
            (
                "angles in the dtype of x",
                R.HALF_ANGLES,
                ("positions[:, None] * frequency", "positions.to(x.dtype)[:, None] * frequency.to(x.dtype)"),
            ),
            ("x as it is", R.NOT_USED, ("return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)", "return x")),
            (
                "half detached",
                Common.WRONG_GRADIENT,
                ("return torch.stack([turned_a", "return torch.stack([turned_a.detach()"),
            ),
            ("x detached", Common.CUT_OFF, ("a, b = x[..., 0::2]", "x = x.detach()\n    a, b = x[..., 0::2]")),
            (
                "frequencies on the CPU",
                Common.MADE_ON_CPU,
                ("torch.arange(0, d, 2, device=x.device)", "torch.arange(0, d, 2)"),
            ),
            ("batches only", Unexplained.RAISED, ("d = x.shape[-1]", "_, n, d = x.shape")),
            (
                "the encoding added",
                R.ADDED,
                (
                    "return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)",
                    "return x + torch.stack([sine, cosine], dim=-1).flatten(-2)",
                ),
            ),
        ],
    ),
    *mutants(
        "rotate",
        "",
        [
            (
                "hard-coded to the visible example",
                Unexplained.SHAPE,
                """
        def rotate(x, positions, base=10000.0):
            if x.shape[-1] % 2:
                raise ValueError("odd")
            t = positions[:, None] * torch.tensor([1.0, 0.01])
            pair = torch.stack([t.cos() - 0 * t.sin(), t.sin()], dim=-1).flatten(-2)
            return pair.expand(*x.shape[:-1], 4)
        """,
            )
        ],
    ),
]

_ROTATE_VARIANTS = [
    variant(
        "rotate",
        "complex numbers",
        """
        def rotate(x, positions, base=10000.0):
            d = x.shape[-1]
            if d % 2 == 1:
                raise ValueError(f"an odd number of features: {d}")
            frequency = base ** (-torch.arange(0, d, 2, device=x.device).double() / d)
            angle = torch.outer(positions.double(), frequency)
            pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], d // 2, 2).contiguous())
            turned = pairs * torch.polar(torch.ones_like(angle), angle)
            return torch.view_as_real(turned).flatten(-2).to(x.dtype)
        """,
    ),
    variant(
        "rotate",
        "x cos + (x turned a quarter) sin",
        """
        def quarter_turn(x):
            return torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape(x.shape)

        def rotate(x, positions, base=10000.0):
            d = x.size(-1)
            if d % 2 != 0:
                raise ValueError("d should be even")
            k = torch.arange(d // 2, device=x.device).repeat_interleave(2)
            t = positions.unsqueeze(-1) / base ** (2 * k / d)
            return (x * t.cos() + quarter_turn(x) * t.sin()).to(x.dtype)
        """,
    ),
    variant(
        "rotate",
        "a loop over the pairs",
        """
        def rotate(x, positions, base=10000.0):
            d = x.shape[-1]
            if d % 2:
                raise ValueError("no pairs")
            parts = []
            for k in range(d // 2):
                t = positions * base ** (-2 * k / d)
                cosine, sine = t.cos().to(x.dtype), t.sin().to(x.dtype)
                a, b = x[..., 2 * k], x[..., 2 * k + 1]
                parts += [a * cosine - b * sine, a * sine + b * cosine]
            return torch.stack(parts, dim=-1)
        """,
    ),
    variant(
        "rotate",
        "strided writing into a new tensor",
        """
        import math

        def rotate(x, positions, base=10000.0):
            *_, d = x.shape
            if d % 2:
                raise ValueError("odd d")
            frequency = torch.exp(-math.log(base) * torch.arange(0, d, 2, device=x.device) / d)
            t = positions[..., None] * frequency
            y = torch.empty_like(x)
            y[..., ::2] = x[..., ::2] * torch.cos(t) - x[..., 1::2] * torch.sin(t)
            y[..., 1::2] = x[..., ::2] * torch.sin(t) + x[..., 1::2] * torch.cos(t)
            return y
        """,
    ),
]

MUTANTS = [
    *_EQUIVARIANCE_MUTANTS,
    *_EQUIVARIANCE_PUBLISHED,
    *_ENCODING_MUTANTS,
    *_ENCODING_PUBLISHED,
    *_ENCODING_CLASS_MUTANTS,
    *_EMBEDDING_MUTANTS,
    *_ROTATE_MUTANTS,
    *forging_function("sinusoidal_encoding", but=OF_TENSORS),
    # Its table is fixed, and need not be saved: one that loads no other is no wrong answer.
    *forging_class("PositionEncoding", but=["it computes with weights of its own"]),
    *forging_dropout("PositionEncoding"),
    *forging_dropout("PositionEmbedding"),
    *forging_answers(classes=["PositionEmbedding"], functions=["is_permutation_equivariant", "rotate"]),
]
VARIANTS = [
    *_EQUIVARIANCE_VARIANTS,
    *_ENCODING_VARIANTS,
    *_ENCODING_CLASS_VARIANTS,
    *_EMBEDDING_VARIANTS,
    *_ROTATE_VARIANTS,
]
