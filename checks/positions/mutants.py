"""Chapter 05: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import Answer, edit, edited_variant, mutant, variant
from checks.forgers import OF_TENSORS, forging_answers, forging_class, forging_function


def _equivariance(title: str, says: str, body: str) -> Answer:
    return mutant(
        "is_permutation_equivariant", title, says, f"def is_permutation_equivariant(function, x, permutation):\n{body}"
    )


_EQUIVARIANCE_MUTANTS = [
    _equivariance("nothing returned", "is there a `return`?", "    torch.allclose(function(x[:, permutation]), x)"),
    _equivariance(
        "invariance instead",
        "the same permutation on both sides",
        "    return torch.allclose(function(x[:, permutation]), function(x))",
    ),
    _equivariance(
        "the batch is reordered",
        "by the given permutation, and compare every number",
        "    return torch.allclose(function(x[permutation]), function(x)[permutation], atol=1e-5)",
    ),
    _equivariance(
        "the features are reordered",
        "by the given permutation, and compare every number",
        "    return torch.allclose(function(x[..., permutation]), function(x)[..., permutation], atol=1e-5)",
    ),
    _equivariance(
        "the inverse on one side",
        "the same permutation on both sides",
        "    return torch.allclose(function(x[:, permutation]), function(x)[:, permutation.argsort()], atol=1e-5)",
    ),
    _equivariance(
        "reordered on one side, compared with the input",
        "the same permutation on both sides",
        "    return torch.allclose(function(x[:, permutation]), x[:, permutation], atol=1e-5)",
    ),
    _equivariance(
        "to the last bit",
        "up to rounding",
        "    return torch.equal(function(x[:, permutation]), function(x)[:, permutation])",
    ),
    _equivariance(
        "to the last bit, with ==",
        "up to rounding",
        "    return bool((function(x[:, permutation]) == function(x)[:, permutation]).all())",
    ),
    _equivariance(
        "a tensor of booleans",
        "a Python bool",
        "    return (function(x[:, permutation]) - function(x)[:, permutation]).abs() < 1e-4",
    ),
    _equivariance(
        "a tensor with one boolean",
        "a Python bool",
        "    return ((function(x[:, permutation]) - function(x)[:, permutation]).abs() < 1e-4).all()",
    ),
    _equivariance(
        "any instead of all",
        "the results differ in the last feature only",
        "    return bool(((function(x[:, permutation]) - function(x)[:, permutation]).abs() < 1e-4).any())",
    ),
    _equivariance(
        "mean of the differences",
        "by the given permutation, and compare every number",
        "    return abs(float((function(x[:, permutation]) - function(x)[:, permutation]).mean())) < 1e-4",
    ),
    _equivariance(
        "sums over the positions",
        "by the given permutation, and compare every number",
        "    return torch.allclose(function(x[:, permutation]).sum(1), function(x)[:, permutation].sum(1), atol=1e-5)",
    ),
    _equivariance(
        "far too tolerant",
        "the results differ by 0.05 and more",
        "    return torch.allclose(function(x[:, permutation]), function(x)[:, permutation], atol=0.5)",
    ),
    _equivariance(
        "the first sequence only",
        "the results differ in the last sequence only",
        "    return torch.allclose(function(x[:, permutation])[0], function(x)[0, permutation], atol=1e-5)",
    ),
    _equivariance(
        "the first feature only",
        "the results differ in the last feature only",
        "    return torch.allclose(function(x[:, permutation])[..., 0], function(x)[:, permutation, 0], atol=1e-5)",
    ),
    _equivariance(
        "a permutation of its own",
        "by the given permutation, and compare every number",
        "    permutation = torch.arange(x.shape[1] - 1, -1, -1)\n"
        "    return torch.allclose(function(x[:, permutation]), function(x)[:, permutation], atol=1e-5)",
    ),
    _equivariance(
        "reorders x in place",
        "`x` was changed in place",
        "    after = function(x)[:, permutation]\n"
        "    x[:] = x[:, permutation]\n"
        "    return torch.allclose(function(x), after, atol=1e-5)",
    ),
    _equivariance(
        "the largest difference without its absolute value",
        "all differences of the two sides",
        "    return bool((function(x[:, permutation]) - function(x)[:, permutation]).max() < 1e-3)",
    ),
    _equivariance(
        "the other way round, without its absolute value",
        "all differences of the two sides",
        "    return ((function(x)[:, permutation] - function(x[:, permutation])).max() < 1e-3).item()",
    ),
    _equivariance("always True", "by the given permutation, and compare every number", "    return True"),
    _equivariance("always False", "the same permutation on both sides", "    return False"),
]

_EQUIVARIANCE_VARIANTS = [
    variant(
        "is_permutation_equivariant",
        "default tolerance",
        """
        def is_permutation_equivariant(function, x, permutation):
            return torch.allclose(function(x[:, permutation]), function(x)[:, permutation])
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


def _encoding(title: str, says: str, body: str) -> Answer:
    return mutant("sinusoidal_encoding", title, says, f"def sinusoidal_encoding(max_len, dim):\n{body}")


def _waves(angle: str, *, position: str = "torch.arange(max_len)[:, None]", even: str = "sin", odd: str = "cos") -> str:
    return (
        f"    position = {position}\n"
        "    two_k = torch.arange(0, dim, 2)\n"
        f"    angle = {angle}\n"
        "    pe = torch.zeros(max_len, dim)\n"
        f"    pe[:, 0::2] = angle.{even}()\n"
        f"    pe[:, 1::2] = angle[:, : dim // 2].{odd}()\n"
        "    return pe"
    )


_RIGHT_ANGLE = "position / 10_000 ** (two_k / dim)"
_ENCODING_MUTANTS = [
    _encoding("nothing returned", "is there a `return`?", _waves(_RIGHT_ANGLE).removesuffix("\n    return pe")),
    _encoding("transposed", "(max_len, dim)", _waves(_RIGHT_ANGLE).replace("return pe", "return pe.T")),
    _encoding(
        "sines first, then cosines",
        "all sines come before all cosines",
        "    position = torch.arange(max_len)[:, None]\n"
        "    angle = position / 10_000 ** (torch.arange(0, dim, 2) / dim)\n"
        "    return torch.cat([angle.sin(), angle[:, : dim // 2].cos()], dim=1)",
    ),
    _encoding(
        "sine and cosine swapped",
        "sine and cosine are swapped",
        _waves(_RIGHT_ANGLE, even="cos", odd="sin"),
    ),
    _encoding(
        "a frequency for each column",
        "another frequency than the sine beside it",
        "    angle = torch.arange(max_len)[:, None] / 10_000 ** (torch.arange(dim) / dim)\n"
        "    return torch.where(torch.arange(dim) % 2 == 0, angle.sin(), angle.cos())",
    ),
    _encoding(
        "k / dim", "the exponent is k / dim", _waves("position / 10_000 ** (torch.arange((dim + 1) // 2) / dim)")
    ),
    _encoding("4k / dim", "the exponent is doubled", _waves("position / 10_000 ** (2 * two_k / dim)")),
    _encoding(
        "counted from 1",
        "positions are counted from 1",
        _waves(_RIGHT_ANGLE, position="torch.arange(1, max_len + 1)[:, None]"),
    ),
    _encoding("multiplied", "the frequency rises", _waves("position * 10_000 ** (two_k / dim)")),
    _encoding("integer division", "does an integer division", _waves("position / 10_000 ** (two_k // dim)")),
    _encoding(
        "log10",
        "needs the natural logarithm",
        _waves("position * torch.exp(-two_k / dim * torch.tensor(10_000.0).log10())"),
    ),
    _encoding("base 1000", "the base is 1000", _waves("position / 1_000 ** (two_k / dim)")),
    _encoding(
        "divided by dim + 1 if odd", "divided by dim + 1", _waves("position / 10_000 ** (two_k / (dim + dim % 2))")
    ),
    _encoding(
        "even dims only",
        "an odd `dim` has one sine more than it has cosines",
        _waves(_RIGHT_ANGLE).replace("angle[:, : dim // 2].cos()", "angle.cos()"),
    ),
    _encoding(
        "an odd dim loses a column",
        "an odd dim loses its last column",
        "    angle = torch.arange(max_len)[:, None] / 10_000 ** (torch.arange(0, dim - 1, 2) / dim)\n"
        "    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
    ),
    _encoding(
        "an odd dim gains a column",
        "a column too many",
        "    angle = torch.arange(max_len)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)\n"
        "    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
    ),
    _encoding(
        "the last column of an odd dim is empty",
        "the last column of an odd dim",
        "    angle = torch.arange(max_len)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)\n"
        "    pe = torch.zeros(max_len, dim)\n"
        "    pairs = dim // 2\n"
        "    pe[:, 0 : 2 * pairs : 2], pe[:, 1::2] = angle[:, :pairs].sin(), angle[:, :pairs].cos()\n"
        "    return pe",
    ),
    _encoding("float64", "torch.float32", _waves(_RIGHT_ANGLE).replace("return pe", "return pe.double()")),
    _encoding(
        "requires a gradient",
        "should not require a gradient",
        _waves(_RIGHT_ANGLE).replace("return pe", "return nn.Parameter(pe)"),
    ),
    _encoding("base 9999", "the base is 9999", _waves("position / 9_999 ** (two_k / dim)")),
    _encoding(
        "row 0 left zero",
        "row 0 was never filled in",
        _waves(_RIGHT_ANGLE).replace("return pe", "pe[0] = 0\n    return pe"),
    ),
    _encoding(
        "the last position left out",
        "the last row was never filled in",
        "    pe = torch.zeros(max_len, dim)\n"
        "    angle = torch.arange(max_len)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)\n"
        "    for p in range(max_len - 1):\n"
        "        pe[p, 0::2], pe[p, 1::2] = angle[p].sin(), angle[p, : dim // 2].cos()\n"
        "    return pe",
    ),
    _encoding(
        "cosines over the sines",
        "the cosines were written over the sines",
        _waves(_RIGHT_ANGLE).replace("pe[:, 1::2] = angle[:, : dim // 2].cos()", "pe[:, 0::2] = angle.cos()"),
    ),
    _encoding("one dimension too many", "(max_len, dim)", _waves(_RIGHT_ANGLE).replace("return pe", "return pe[None]")),
    _encoding(
        "hard-coded to the visible example",
        "an odd dim loses its last column",
        "    angle = torch.arange(3)[:, None] / torch.tensor([1.0, 100.0])\n"
        "    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
    ),
]

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


def _joining_mutants(name: str, rows: str, whole: str) -> list[Answer]:
    """The wrong answers to both classes: `rows` is how the reference takes its rows from the table `whole`."""
    no_graph = "the result is cut off from the graph"
    learns = name == "PositionEmbedding"  # there a gradient is missed by the name of what it does not reach
    return [
        edit(name, "nothing returned", "of three positions is None: is there a `return`?", (_ADD, "return None")),
        edit(
            name,
            "a row for each sequence",
            "one row for each sequence",
            (rows, f"p = {whole}[: x.shape[0]].unsqueeze(1).expand_as(x)"),
        ),
        edit(name, "counted from 1", "counted from 1", (rows, f"p = {whole}[1 : x.shape[1] + 1]")),
        edit(
            name,
            "the row of the last position for all",
            "the row of the last one",
            (rows, f"p = {whole}[x.shape[1] - 1]"),
        ),
        edit(name, "the last rows", "the last rows of the table", (rows, f"p = {whole}[-x.shape[1] :]")),
        edit(name, "no positions added", "the positions have no part in it", (_ADD, "return self.dropout(x)")),
        edit(name, "x left out", "x has no part in it", (_ADD, "return self.dropout(p.expand_as(x))")),
        edit(name, "multiplied", "the positions are multiplied", (_ADD, "return self.dropout(x * p)")),
        edit(
            name,
            "x scaled by the root of dim",
            "x is scaled by the root of dim",
            (_ADD, "return self.dropout(x * x.shape[2] ** 0.5 + p)"),
        ),
        edit(
            name, "x changed in place", "`x` was changed in place", (_ADD, "x += p\n            return self.dropout(x)")
        ),
        edit(
            name,
            "the first sequence for all",
            "the first sequence is used for the whole batch",
            (_ADD, "return self.dropout((x[0] + p).expand_as(x))"),
        ),
        edit(
            name,
            "detached",
            "no gradient reaches `weight`" if learns else no_graph,
            (_ADD, "return self.dropout(x + p).detach()"),
        ),
        edit(
            name,
            "x detached",
            "no gradient reaches `x`" if learns else no_graph,
            (_ADD, "return self.dropout(x.detach() + p)"),
        ),
        edit(
            name,
            "dropout in eval mode",
            "dropout is still active in evaluation",
            (_ADD, "return F.dropout(x + p, self.dropout.p)"),
        ),
        edit(name, "no dropout", "dropout=0.25 does nothing while training", (_ADD, "return x + p")),
        edit(name, "dropout on x alone", "here it acts on x alone", (_ADD, "return self.dropout(x) + p")),
        edit(
            name,
            "dropout on the positions alone",
            "here it acts on the positions alone",
            (_ADD, "return x + self.dropout(p.expand_as(x))"),
        ),
        edit(
            name,
            "dropout keeps a quarter",
            "should be either 0 or 1/0.75 times",
            ("nn.Dropout(dropout)", "nn.Dropout(1 - dropout if dropout else 0.0)"),
        ),
        edit(name, "a sequence too long is cut", "a sequence of 7 positions", (_TOO_LONG, "x = x[:, :max_len]")),
        edit(
            name,
            "max_len itself refused",
            "a sequence of",
            ("if x.shape[1] > max_len", "if x.shape[1] >= max_len"),
        ),
        edit(
            name,
            "too long: another error",
            "should raise ValueError, but raised IndexError",
            (_TOO_LONG, 'raise IndexError("too long")'),
        ),
        edit(name, "dim is not checked", "3 features, dim=4, should raise ValueError", (_WRONG_DIM, "pass")),
        edit(
            name,
            "concat: positions first",
            "the positions come first",
            (_CONCAT, "return self.dropout(torch.cat([p.expand_as(x), x], dim=-1))"),
        ),
        edit(
            name,
            "concat: along the sequence",
            "joined along the sequence",
            (_CONCAT, "return self.dropout(torch.cat([x, p.expand_as(x)], dim=1))"),
        ),
        edit(
            name,
            "concat: x plus positions in the second half",
            "x plus the positions",
            (_CONCAT, "return self.dropout(torch.cat([x, x + p], dim=-1))"),
        ),
        edit(
            name,
            "concat adds",
            'this is what mode "add" should do',
            (_CONCAT, "return self.dropout(x + p)  # concat"),
        ),
        edit(
            name,
            "concat: the batch is not expanded",
            "Sizes of tensors must match",
            (_CONCAT, "return self.dropout(torch.cat([x, p[None]], dim=-1))"),
        ),
        edit(
            name,
            "concat: no dropout on the positions",
            "here it acts on x alone",
            (_CONCAT, "return torch.cat([self.dropout(x), p.expand_as(x)], dim=-1)"),
        ),
        edit(
            name,
            "concat: no dropout",
            "dropout=0.25 does nothing while training",
            (_CONCAT, "return torch.cat([x, p.expand_as(x)], dim=-1)"),
        ),
        edit(
            name,
            "concat: detached",
            no_graph,
            (_CONCAT, "return self.dropout(torch.cat([x.data, p.expand_as(x).data], dim=-1))"),
        ),
    ]


_ENCODING_CLASS_MUTANTS = [
    *_joining_mutants("PositionEncoding", "p = self.pe[: x.shape[1]]", "self.pe"),
    edit(
        "PositionEncoding",
        "a plain attribute",
        "register_buffer",
        (_TABLE, "self.pe = sinusoidal_encoding(max_len, dim)"),
    ),
    edit(
        "PositionEncoding",
        "a trained parameter",
        "register_buffer",
        (_TABLE, "self.pe = nn.Parameter(sinusoidal_encoding(max_len, dim))"),
    ),
    edit(
        "PositionEncoding",
        "a parameter that is not trained",
        "register_buffer",
        (_TABLE, "self.pe = nn.Parameter(sinusoidal_encoding(max_len, dim), requires_grad=False)"),
    ),
    edit(
        "PositionEncoding",
        "the buffer has a batch dimension",
        "should have shape",
        (_TABLE, 'self.register_buffer("pe", sinusoidal_encoding(max_len, dim)[None])'),
        ("max_len, dim = self.pe.shape", "_, max_len, dim = self.pe.shape"),
        ("self.pe[: x.shape[1]]", "self.pe[0, : x.shape[1]]"),
    ),
    edit(
        "PositionEncoding",
        "random numbers instead of the encoding",
        "the buffer `pe`",
        (_TABLE, 'self.register_buffer("pe", torch.randn(max_len, dim))'),
    ),
    edit(
        "PositionEncoding",
        "any mode adds",
        "should raise ValueError",
        ("raise ValueError(f'mode should", "print(f'mode should"),
    ),
    edit(
        "PositionEncoding",
        "expand allowed too",
        "mode='expand') should raise ValueError",
        ('mode not in ("add", "concat")', 'mode not in ("add", "concat", "expand")'),
    ),
    edit(
        "PositionEncoding",
        "the mode checked by assert",
        "should raise ValueError, but raised AssertionError",
        ("raise ValueError(f'mode should", "raise AssertionError(f'mode should"),
    ),
    edit(
        "PositionEncoding",
        "concat by default",
        "should have shape (2, 3, 4), got (2, 3, 8)",
        ('mode="add"', 'mode="concat"'),
    ),
    edit("PositionEncoding", "another default max_len", "the default max_len", ("max_len=5000", "max_len=512")),
    edit(
        "PositionEncoding",
        "dropout by default",
        'mode "add", the result',
        ("dropout=0.0", "dropout=0.1"),
    ),
    edit(
        "PositionEncoding",
        "a table of another size, made on the CPU in forward",
        "register_buffer",
        (_TABLE, "self.size = max_len, dim"),
        ("max_len, dim = self.pe.shape", "max_len, dim = self.size"),
        ("self.pe[: x.shape[1]]", "sinusoidal_encoding(max_len, dim)[: x.shape[1]]"),
    ),
    edit(
        "PositionEncoding",
        "made on the CPU in forward, beside the buffer",
        "on a GPU",
        ("self.pe[: x.shape[1]]", "sinusoidal_encoding(max_len, dim).to(x.dtype)[: x.shape[1]]"),
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
        (
            'if self.mode == "add":\n            return self.dropout(x + p)\n        ',
            "",
        ),
        (
            _CONCAT,
            'return self.dropout(x + p if self.mode == "add" else torch.cat((x, p.repeat(len(x), 1, 1)), 2))',
        ),
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
    edit(
        "PositionEmbedding",
        "a buffer",
        "`weight` should be a parameter",
        (_WEIGHT, 'self.register_buffer("weight", torch.randn(rows, dim))'),
    ),
    edit(
        "PositionEmbedding",
        "a plain tensor",
        "`weight` should be a parameter",
        (_WEIGHT, "self.weight = torch.randn(rows, dim)"),
    ),
    edit(
        "PositionEmbedding",
        "not trained",
        "does not require a gradient",
        (_WEIGHT, "self.weight = nn.Parameter(torch.randn(rows, dim), requires_grad=False)"),
    ),
    edit(
        "PositionEmbedding",
        "another name",
        "`weight` should be a parameter",
        (_WEIGHT, "self.weights = nn.Parameter(torch.randn(rows, dim))"),
        ("F.embedding(row, self.weight)", "F.embedding(row, self.weights)"),
        ("max_len, dim = self.weight.shape", "max_len, dim = self.weights.shape"),
        ("p = self.weight[: x.shape[1]]", "p = self.weights[: x.shape[1]]"),
    ),
    edit(
        "PositionEmbedding",
        "starts with zeros",
        "random numbers",
        (_WEIGHT, "self.weight = nn.Parameter(torch.zeros(rows, dim))"),
    ),
    edit(
        "PositionEmbedding",
        "starts with the same row everywhere",
        "random numbers",
        (_WEIGHT, "self.weight = nn.Parameter(torch.randn(dim).repeat(rows, 1))"),
    ),
    edit(
        "PositionEmbedding",
        "starts with the sinusoidal encoding",
        "here it is the sinusoidal encoding",
        (_WEIGHT, "self.weight = nn.Parameter(sinusoidal_encoding(rows, dim))"),
    ),
    edit(
        "PositionEmbedding",
        "rows for expand in every mode",
        "should have shape",
        ('rows = 2 * max_len + 1 if mode == "expand" else max_len', "rows = 2 * max_len + 1"),
        ("max_len, dim = self.weight.shape", "max_len, dim = self.max_len, self.weight.shape[1]"),
    ),
    edit(
        "PositionEmbedding",
        "weight detached",
        "no gradient reaches `weight`",
        ("p = self.weight[: x.shape[1]]", "p = self.weight.data[: x.shape[1]]"),
    ),
    edit(
        "PositionEmbedding",
        "any mode adds",
        "should raise ValueError",
        ("raise ValueError(f'mode should", "print(f'mode should"),
    ),
    edit("PositionEmbedding", "another default max_len", "the default max_len", ("max_len=512", "max_len=5000")),
    edit(
        "PositionEmbedding",
        "expand: a row too few",
        "(2*max_len + 1, dim) should have shape",
        ("rows = 2 * max_len + 1 if", "rows = 2 * max_len if"),
    ),
    edit(
        "PositionEmbedding",
        "expand: only max_len + 1 rows, by absolute distance",
        "(2*max_len + 1, dim) should have shape",
        ("rows = 2 * max_len + 1 if", "rows = max_len + 1 if"),
        (_ROW, "row = x.abs().clamp(max=self.max_len)"),
    ),
    _row("no clamping", "clamp", "x + self.max_len"),
    _row("max_len not added", "`max_len` is not added", "x.clamp(-self.max_len, self.max_len) % len(self.weight)"),
    _row("absolute distance", "the sign is lost", "x.abs().clamp(max=self.max_len) + self.max_len"),
    _row("sign reversed", "the sign is reversed", "self.max_len - x.clamp(-self.max_len, self.max_len)"),
    _row(
        "negative distances are 0", "negative distances are all treated as 0", "x.clamp(0, self.max_len) + self.max_len"
    ),
    _row("clamped after the shift", "loses the positive ones", "(x + self.max_len).clamp(0, self.max_len)"),
    _row(
        "clamped one too early",
        "one too early",
        "x.clamp(-self.max_len, self.max_len - 1) + self.max_len",
    ),
    _row("wrapped around", "99 should be clamped", "(x + self.max_len) % (2 * self.max_len + 1)"),
    _row("shifted by one", "the rows are shifted by one", "(x + self.max_len - 1).clamp(0, 2 * self.max_len)"),
    _row(
        "distances of distances",
        "do not subtract again",
        "(x[None, :] - x[:, None]).clamp(-self.max_len, self.max_len) + self.max_len",
    ),
    _row("x clamped in place", "`x` was changed in place", "x.clamp_(-self.max_len, self.max_len) + self.max_len"),
    edit(
        "PositionEmbedding",
        "expand: two dimensions only",
        "distances of shape",
        (
            _LOOK_UP,
            "n, m = row.shape if row.dim() == 2 else (1, len(row))\n            "
            "return self.dropout(self.weight[row.flatten()].reshape(n, m, -1).reshape(*row.shape[:2], -1))",
        ),
    ),
    edit(
        "PositionEmbedding",
        "expand: no dropout",
        "dropout=0.25 does nothing while training",
        (_LOOK_UP, "return self.weight[row]"),
    ),
    edit(
        "PositionEmbedding",
        "expand: dropout in eval mode",
        "dropout is still active in evaluation",
        (_LOOK_UP, "return F.dropout(self.weight[row], self.dropout.p)"),
    ),
    edit(
        "PositionEmbedding",
        "expand: detached",
        "the result is cut off from the graph",
        (_LOOK_UP, "return self.dropout(self.weight[row].detach())"),
    ),
    edit(
        "PositionEmbedding",
        "expand: the same weight for every feature",
        "should get the rows 3, 4, 2, 5",
        (_LOOK_UP, "return self.dropout(self.weight[row].mean(-1, keepdim=True).expand(*row.shape, dim_of(self)))"),
        (
            "class PositionEmbedding",
            "def dim_of(module):\n    return module.weight.shape[1]\n\n\nclass PositionEmbedding",
        ),
    ),
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
        (_WEIGHT, "self.table = nn.Embedding(rows, dim)\n        self.weight = self.table.weight"),
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
                nn.init.normal_(self.weight)

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
    edit("rotate", "nothing returned", "is there a `return`?", ("return torch.stack(", "torch.stack(")),
    edit(
        "rotate",
        "halves instead of pairs",
        "features k and k + d/2 are turned together",
        ("a, b = x[..., 0::2], x[..., 1::2]", "a, b = x.chunk(2, dim=-1)"),
        ("return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)", "return torch.cat([turned_a, turned_b], -1)"),
    ),
    edit(
        "rotate",
        "pairs turned, halves returned",
        "all first halves of the pairs",
        ("return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)", "return torch.cat([turned_a, turned_b], -1)"),
    ),
    edit("rotate", "turned backwards", "turned backwards", ("positions[:, None]", "-positions[:, None]")),
    edit("rotate", "k / d", "the exponent is -k / d", ("(-torch.arange(0, d, 2", "(-0.5 * torch.arange(0, d, 2")),
    edit("rotate", "4k / d", "the exponent is doubled", ("(-torch.arange(0, d, 2", "(-2 * torch.arange(0, d, 2")),
    edit("rotate", "the angles grow", "the angles grow", ("(-torch.arange(0, d, 2", "(torch.arange(0, d, 2")),
    edit(
        "rotate",
        "integer division",
        "does an integer division",
        ("-torch.arange(0, d, 2, device=x.device) / d", "torch.arange(0, d, 2, device=x.device) // d"),
    ),
    edit(
        "rotate",
        "the second from the turned first",
        "keep the old one",
        ("turned_b = a * sine", "turned_b = turned_a * sine"),
    ),
    edit(
        "rotate",
        "both with plus",
        "wrong entries",
        ("turned_a = a * cosine - b * sine", "turned_a = a * cosine + b * sine"),
    ),
    edit(
        "rotate",
        "the pair mirrored",
        "a minus is in the wrong place",
        ("turned_a = a * cosine - b * sine", "turned_a = a * cosine + b * sine"),
        ("turned_b = a * sine + b * cosine", "turned_b = a * sine - b * cosine"),
    ),
    edit(
        "rotate",
        "sine and cosine swapped",
        "sine and cosine are swapped",
        ("cosine, sine = ", "sine, cosine = "),
    ),
    edit("rotate", "base not used", "`base` is not used", ("frequency = base **", "frequency = 10_000.0 **")),
    edit(
        "rotate",
        "counts the positions itself",
        "the positions given are not used",
        ("positions[:, None]", "torch.arange(x.shape[-2], device=x.device)[:, None]"),
    ),
    edit(
        "rotate",
        "the wrong dimension",
        "whatever stands before it",
        ("positions[:, None]", "(positions[:, None, None] if x.dim() == 4 else positions[:, None])"),
    ),
    edit("rotate", "odd sizes: another error", "raised AssertionError", ("raise ValueError(", "raise AssertionError(")),
    edit(
        "rotate",
        "odd sizes: the last feature left out",
        "should raise ValueError, but nothing was raised",
        ("if d % 2:\n        raise ValueError(", "if d % 2:\n        x, d = x[..., :-1], d - 1\n        print("),
    ),
    edit(
        "rotate",
        "x changed in place",
        "`x` was changed in place",
        (
            "return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)",
            "x[..., 0::2], x[..., 1::2] = turned_a, turned_b\n    return x",
        ),
    ),
    edit("rotate", "float64 always", "should keep dtype", (".flatten(-2)", ".flatten(-2).double()")),
    edit("rotate", "float32 always", "should keep dtype", (".flatten(-2)", ".flatten(-2).float()")),
    edit(
        "rotate",
        "angles left in float32 for half precision",
        "x of dtype bfloat16",
        ("cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)", "cosine, sine = angle.cos(), angle.sin()"),
    ),
    edit(
        "rotate",
        "half detached",
        "gradient with respect to `x`",
        ("return torch.stack([turned_a", "return torch.stack([turned_a.detach()"),
    ),
    edit("rotate", "x detached", "cut off from", ("a, b = x[..., 0::2]", "x = x.detach()\n    a, b = x[..., 0::2]")),
    edit(
        "rotate",
        "frequencies on the CPU",
        "on a GPU",
        ("torch.arange(0, d, 2, device=x.device)", "torch.arange(0, d, 2)"),
    ),
    edit(
        "rotate",
        "batches only",
        "raised",
        ("d = x.shape[-1]", "_, n, d = x.shape"),
    ),
    edit(
        "rotate",
        "the encoding added",
        "is added: x should be turned",
        (
            "return torch.stack([turned_a, turned_b], dim=-1).flatten(-2)",
            "return x + torch.stack([sine, cosine], dim=-1).flatten(-2)",
        ),
    ),
    mutant(
        "rotate",
        "hard-coded to the visible example",
        "should have shape",
        """
        def rotate(x, positions, base=10000.0):
            if x.shape[-1] % 2:
                raise ValueError("odd")
            t = positions[:, None] * torch.tensor([1.0, 0.01])
            pair = torch.stack([t.cos() - 0 * t.sin(), t.sin()], dim=-1).flatten(-2)
            return pair.expand(*x.shape[:-1], 4)
        """,
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
                t = (positions * base ** (-2 * k / d)).to(x.dtype)
                a, b = x[..., 2 * k], x[..., 2 * k + 1]
                parts += [a * t.cos() - b * t.sin(), a * t.sin() + b * t.cos()]
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
            t = (positions[..., None] * frequency).to(x.dtype)
            y = torch.empty_like(x)
            y[..., ::2] = x[..., ::2] * torch.cos(t) - x[..., 1::2] * torch.sin(t)
            y[..., 1::2] = x[..., ::2] * torch.sin(t) + x[..., 1::2] * torch.cos(t)
            return y
        """,
    ),
]

MUTANTS = [
    *_EQUIVARIANCE_MUTANTS,
    *_ENCODING_MUTANTS,
    *_ENCODING_CLASS_MUTANTS,
    *_EMBEDDING_MUTANTS,
    *_ROTATE_MUTANTS,
    *forging_function("sinusoidal_encoding", but=OF_TENSORS),
    # Its table is fixed, and need not be saved: one that loads no other is no wrong answer.
    *forging_class("PositionEncoding", but=["it computes with weights of its own"]),
    *forging_answers(classes=["PositionEmbedding"], functions=["is_permutation_equivariant", "rotate"]),
]
VARIANTS = [
    *_EQUIVARIANCE_VARIANTS,
    *_ENCODING_VARIANTS,
    *_ENCODING_CLASS_VARIANTS,
    *_EMBEDDING_VARIANTS,
    *_ROTATE_VARIANTS,
]
