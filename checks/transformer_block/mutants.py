"""Chapter 06: wrong answers, each with the mistake that its check must name, and right ones, which must pass."""

from autograder.answers import edit, edited_variant, edits, mutants, variant
from autograder.checks import Common
from checks.forgers import forging_answers, forging_dropout
from checks.transformer_block.mistakes import LayerNorm as L
from checks.transformer_block.mistakes import Network as N
from checks.transformer_block.mistakes import TransformerBlock as B
from checks.transformer_block.mistakes import check_layer_norm as T

_CENTRED = "centred = x - x.mean(dim=-1, keepdim=True)"
_VARIANCE = "variance = centred.pow(2).mean(dim=-1, keepdim=True)"
_NORMALISED = "return self.weight * centred / torch.sqrt(variance + self.eps) + self.bias"


def _over(dims: str) -> tuple[tuple[str, str], ...]:
    """Edits of LayerNorm that take its statistics over other dimensions."""
    return (_CENTRED, _CENTRED.replace("-1", dims)), (_VARIANCE, _VARIANCE.replace("-1", dims))


_LAYER_NORM_MUTANTS = edits(
    "LayerNorm",
    [
        ("nothing returned", Common.NO_RETURN, (_NORMALISED, _NORMALISED.removeprefix("return "))),
        ("unbiased variance", L.UNBIASED, (_VARIANCE, "variance = x.var(dim=-1, keepdim=True)")),
        (
            "eps outside the root",
            L.EPS_OUTSIDE,
            ("torch.sqrt(variance + self.eps)", "(torch.sqrt(variance) + self.eps)"),
        ),
        ("eps fixed", L.EPS_IGNORED, ("self.eps = eps", "self.eps = 1e-5")),
        ("no eps", L.NO_EPS, ("variance + self.eps", "variance")),
        ("over the positions", L.OVER_POSITIONS, *_over("-2")),
        ("over positions and features", L.OVER_BOTH, *_over("(-2, -1)")),
        ("over the batch", L.OVER_BATCH, *_over("0")),
        ("over batch and positions", L.OVER_BATCH_AND_POSITIONS, *_over("tuple(range(x.dim() - 1))")),
        ("dimension 2", L.OVER_DIMENSION_2, *_over("min(2, x.dim() - 1)")),
        ("mean not subtracted", L.NOT_CENTRED, ("self.weight * centred", "self.weight * x")),
        ("root mean square", L.NEVER_CENTRED, (_CENTRED, "centred = x")),
        ("divided by the variance", L.NO_ROOT, ("torch.sqrt(variance + self.eps)", "(variance + self.eps)")),
        ("not divided", L.NOT_DIVIDED, (" / torch.sqrt(variance + self.eps)", "")),
        ("weight unused", L.NO_WEIGHT, ("self.weight * centred", "centred")),
        ("bias unused", L.NO_BIAS, (" + self.bias", "")),
        (
            "bias before weight",
            L.BIAS_FIRST,
            (_NORMALISED, "return self.weight * (centred / torch.sqrt(variance + self.eps) + self.bias)"),
        ),
        ("weight is no parameter", L.NO_PARAMETER, ("nn.Parameter(torch.ones(dim))", "torch.ones(dim)")),
        ("weight starts random", L.START, ("nn.Parameter(torch.ones(dim))", "nn.Parameter(torch.randn(dim))")),
        ("one weight for all features", L.START, ("nn.Parameter(torch.ones(dim))", "nn.Parameter(torch.ones(1))")),
        (
            "library function",
            L.LIBRARY,
            (_NORMALISED, "return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)"),
        ),
        (
            "input changed in place",
            Common.CHANGED_IN_PLACE,
            (_CENTRED, "x -= x.mean(dim=-1, keepdim=True)\n        centred = x"),
        ),
        (
            "difference of squares",
            L.DIFFERENCE_OF_SQUARES,
            (_VARIANCE, "variance = x.pow(2).mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).pow(2)"),
        ),
        (
            "statistics detached",
            L.STATISTICS_CUT_OFF,
            (_CENTRED, _CENTRED.replace("keepdim=True)", "keepdim=True).detach()")),
            (_VARIANCE, _VARIANCE + ".detach()"),
        ),
        (
            "float32 only",
            Common.WRONG_DTYPE,
            (_CENTRED, "x = x.float()\n        " + _CENTRED),
            (_NORMALISED, "return (self.weight * centred / torch.sqrt(variance + self.eps) + self.bias).float()"),
        ),
        ("keepdim forgotten", L.KEEPDIM, (_VARIANCE, _VARIANCE.replace(", keepdim=True", ""))),
        (
            "silent in evaluation",
            L.SILENT_IN_EVAL,
            (_CENTRED, "if not self.training:\n            return x\n        " + _CENTRED),
        ),
        (
            "made on the CPU",
            Common.MADE_ON_CPU,
            (_NORMALISED, _NORMALISED + " + torch.zeros(x.shape[-1:], dtype=x.dtype)"),
        ),
    ],
)

_LAYER_NORM_PUBLISHED = [
    edit(
        "LayerNorm",
        "the published std",
        L.UNBIASED,
        (_NORMALISED, "return self.weight * centred / (x.std(-1, keepdim=True) + self.eps) + self.bias"),
        published="the unbiased std, undefined for a dim of 1",
    ),
    edit(
        "LayerNorm",
        "over the whole tensor",
        L.OVER_ALL,
        *_over("tuple(range(x.dim()))"),
        published="one mean for the whole batch",
    ),
]

_FEED = "return self.outer(self.dropout(F.relu(self.inner(x))))"


_FED = [
    ("no ReLU", N.NO_RELU, "self.outer(self.dropout(self.inner(x)))"),
    ("ReLU last", N.RELU_LAST, "F.relu(self.outer(self.dropout(self.inner(x))))"),
    ("ReLU first", N.RELU_FIRST, "self.outer(self.dropout(self.inner(F.relu(x))))"),
    ("a ReLU too many before", N.RELU_BEFORE, "self.outer(self.dropout(F.relu(self.inner(F.relu(x)))))"),
    ("GELU", N.GELU, "self.outer(self.dropout(F.gelu(self.inner(x))))"),
    ("sigmoid", N.SIGMOID, "self.outer(self.dropout(torch.sigmoid(self.inner(x))))"),
    ("dropout in evaluation", Common.DROPOUT_IN_EVAL, "self.outer(F.dropout(F.relu(self.inner(x)), self.dropout.p))"),
    ("dropout unused", N.NO_DROPOUT, "self.outer(F.relu(self.inner(x)))"),
    ("dropout on the result", N.DROPOUT_ON_RESULT, "self.dropout(self.outer(F.relu(self.inner(x))))"),
    ("dropout on the input", N.DROPOUT_ON_INPUT, "self.outer(F.relu(self.inner(self.dropout(x))))"),
    ("detached", Common.CUT_OFF, "self.outer(self.dropout(F.relu(self.inner(x)))).detach()"),
    ("hidden detached", Common.INPUT_CUT_OFF, "self.outer(self.dropout(F.relu(self.inner(x))).detach())"),
    ("first sequence only", N.FIRST_SEQUENCE, "self.outer(self.dropout(F.relu(self.inner(x[:1])))).expand_as(x)"),
]
_FEED_FORWARD_MUTANTS = [
    *edits(
        "FeedForward",
        [
            ("nothing returned", Common.NO_RETURN, (_FEED, _FEED.removeprefix("return "))),
            *((title, mistake, (_FEED, f"return {to}")) for title, mistake, to in _FED),
            ("second ReLU", N.RELU_TWICE, (_FEED, f"return F.relu({_FEED.removeprefix('return ')})")),
            ("residual inside", N.RESIDUAL, (_FEED, f"return x + {_FEED.removeprefix('return ')}")),
            (
                "dropout without scaling",
                N.DROPOUT_SCALE,
                (
                    _FEED,
                    """h = F.relu(self.inner(x))
        if self.training:
            h = h * (torch.rand_like(h) >= self.dropout.p)
        return self.outer(h)""",
                ),
            ),
            (
                "input changed in place",
                Common.CHANGED_IN_PLACE,
                (
                    _FEED,
                    "y = self.outer(self.dropout(F.relu(self.inner(x))))\n        x.data.mul_(0.5)\n        return y",
                ),
            ),
        ],
    ),
    *edits(
        "FeedForward",
        [
            (
                "hidden ignored",
                Common.PARAMETER_SHAPE,
                ("nn.Linear(dim, hidden)", "nn.Linear(dim, 4 * dim)"),
                ("nn.Linear(hidden, dim)", "nn.Linear(4 * dim, dim)"),
            ),
            ("no bias", Common.PARAMETER_MISSING, ("nn.Linear(dim, hidden)", "nn.Linear(dim, hidden, bias=False)")),
        ],
    ),
    *mutants(
        "FeedForward",
        "",
        [
            (
                "other names",
                Common.PARAMETER_MISSING,
                """
        class FeedForward(nn.Module):
            def __init__(self, dim, hidden, dropout=0.0):
                super().__init__()
                self.layers = nn.Sequential(
                    nn.Linear(dim, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, dim)
                )

            def forward(self, x):
                return self.layers(x)
        """,
            )
        ],
    ),
]

_CONV = "return self.outer(F.relu(self.inner(channels_first))).transpose(1, 2)"
_TURN = "channels_first = x.transpose(1, 2)  # (B, d, n)"


_CONV_MUTANTS = edits(
    "ConvFeedForward",
    [
        ("nothing returned", Common.NO_RETURN, (_CONV, _CONV.removeprefix("return "))),
        ("not turned", N.NEVER_TURNED, (_TURN, "channels_first = x"), (_CONV, _CONV[:-16])),
        ("not turned back", N.NOT_TURNED_BACK, (_CONV, _CONV[:-16])),
        (
            "reshaped both times",
            N.NEVER_TURNED,
            (_TURN, "channels_first = x.reshape(x.shape[0], x.shape[2], x.shape[1])"),
            (_CONV, _CONV[:-16] + ".reshape(x.shape)"),
        ),
        ("reshaped before", N.NOT_TURNED, (_TURN, "channels_first = x.reshape(x.shape[0], x.shape[2], x.shape[1])")),
        ("reshaped after", N.NOT_TURNED_BACK, (_CONV, _CONV[:-16] + ".reshape(x.shape)")),
        ("no ReLU", N.NO_RELU, ("F.relu(self.inner(channels_first))", "self.inner(channels_first)")),
        ("ReLU last", N.RELU_LAST, (_CONV, "return F.relu(self.outer(self.inner(channels_first))).mT")),
        ("GELU", N.GELU, ("F.relu", "F.gelu")),
        ("residual inside", N.RESIDUAL, (_CONV, _CONV.replace("return ", "return x + "))),
        (
            "a norm of its own",
            Common.PARAMETER_TOO_MANY,
            ("self.inner = nn", "self.norm = nn.LayerNorm(dim)\n        self.inner = nn"),
            (_TURN, "channels_first = self.norm(x).transpose(1, 2)"),
        ),
        (
            "width 3",
            N.NO_CONVOLUTION,
            ("nn.Conv1d(dim, hidden, kernel_size=1)", "nn.Conv1d(dim, hidden, kernel_size=3, padding=1)"),
        ),
        (
            "linear layers",
            N.NO_CONVOLUTION,
            ("nn.Conv1d(dim, hidden, kernel_size=1)", "nn.Linear(dim, hidden)"),
            ("nn.Conv1d(hidden, dim, kernel_size=1)", "nn.Linear(hidden, dim)"),
            (_TURN, "channels_first = x"),
            (_CONV, _CONV[:-16]),
        ),
        (
            "no bias",
            Common.PARAMETER_MISSING,
            ("nn.Conv1d(hidden, dim, kernel_size=1)", "nn.Conv1d(hidden, dim, kernel_size=1, bias=False)"),
        ),
        (
            "hidden ignored",
            N.NO_CONVOLUTION,
            ("nn.Conv1d(dim, hidden, kernel_size=1)", "nn.Conv1d(dim, 4 * dim, kernel_size=1)"),
            ("nn.Conv1d(hidden, dim, kernel_size=1)", "nn.Conv1d(4 * dim, dim, kernel_size=1)"),
        ),
        ("detached", Common.CUT_OFF, (_CONV, _CONV + ".detach()")),
        ("squeezed", N.NO_BATCH, (_CONV, _CONV + ".squeeze()")),
        (
            "input turned in place",
            Common.CHANGED_IN_PLACE,
            (_CONV, "y = " + _CONV.removeprefix("return ") + "\n        x.data.zero_()\n        return y"),
        ),
    ],
)

_PRE = "            return x + self.dropout(self.feed_forward(self.norm_2(x)))"
_POST = "        return self.norm_2(x + self.dropout(self.feed_forward(x)))"
_PRE_1 = "            x = x + self.dropout(attended)"
_POST_1 = "        x = self.norm_1(x + self.dropout(attended))"
_FIRST = "        if self.norm_first:"
_POST_ATTENTION = "attended, _ = self.attention(x, x, x, mask)"
_PRE_ATTENTION = "attended, _ = self.attention(normed, normed, normed, mask)"


_POSTS = [
    ("no residual around the network", B.NO_NETWORK_RESIDUAL, "self.norm_2(self.dropout(self.feed_forward(x)))"),
    (
        "dropout in evaluation",
        Common.DROPOUT_IN_EVAL,
        "self.norm_2(x + F.dropout(self.feed_forward(x), self.dropout.p))",
    ),
    ("network's output not dropped", B.NETWORK_NOT_DROPPED, "self.norm_2(x + self.feed_forward(x))"),
    ("no network", B.NO_NETWORK, "self.norm_2(x)"),
    (
        "network without ReLU",
        B.NETWORK_WITHOUT_RELU,
        "self.norm_2(x + self.dropout(self.feed_forward.outer(self.feed_forward.inner(x))))",
    ),
    ("no second norm", B.NO_NORM_2, "x + self.dropout(self.feed_forward(x))"),
]
_PRES = [
    (
        "no residual around the network in pre-norm",
        B.NO_NETWORK_RESIDUAL,
        "self.dropout(self.feed_forward(self.norm_2(x)))",
    ),
    ("a last norm in pre-norm", B.LAST_NORM, "self.norm_2(x + self.dropout(self.feed_forward(self.norm_2(x))))"),
]
_POST_1S = [
    ("no residual around the attention", B.NO_ATTENTION_RESIDUAL, "self.norm_1(self.dropout(attended))"),
    ("attention's output not dropped", B.ATTENTION_NOT_DROPPED, "self.norm_1(x + attended)"),
    ("no first norm", B.NO_NORM_1, "x + self.dropout(attended)"),
    ("no attention", B.NO_ATTENTION, "self.norm_1(x)"),
]
_BLOCK_MUTANTS = edits(
    "TransformerBlock",
    [
        ("nothing returned", Common.NO_RETURN, (_POST, _POST.replace("return ", ""))),
        ("returns the weights too", B.WEIGHTS_TOO, (_POST, _POST + ", _")),
        ("only a LayerNorm", B.ONLY_A_NORM, (_FIRST, "        return self.norm_1(x)\n" + _FIRST)),
        ("only two LayerNorms", B.ONLY_NORMS, (_FIRST, "        return self.norm_2(self.norm_1(x))\n" + _FIRST)),
        (
            "residuals subtracted",
            B.BOTH_SUBTRACTED,
            (_POST_1, _POST_1.replace("+", "-")),
            (_POST, _POST.replace("+", "-")),
        ),
        ("first residual subtracted", B.ATTENTION_SUBTRACTED, (_POST_1, _POST_1.replace("+", "-"))),
        ("second residual subtracted", B.NETWORK_SUBTRACTED, (_POST, _POST.replace("+", "-"))),
        (
            "pre-norm residuals subtracted",
            B.BOTH_SUBTRACTED,
            (_PRE_1, _PRE_1.replace("+", "-")),
            (_PRE, _PRE.replace("+", "-")),
        ),
        ("one LayerNorm, used twice", B.SHARED_NORM, ("self.norm_2 = LayerNorm(dim)", "self.norm_2 = self.norm_1")),
        ("norm_1 used twice", B.NORM_1_TWICE, (_POST, _POST.replace("norm_2", "norm_1"))),
        ("norm_2 used twice", B.NORM_2_TWICE, (_POST_1, _POST_1.replace("norm_1", "norm_2"))),
        (
            "norms exchanged",
            B.NORMS_EXCHANGED,
            (_POST, _POST.replace("norm_2", "norm_1")),
            (_POST_1, _POST_1.replace("norm_1", "norm_2")),
        ),
        *((title, mistake, (_POST_1, f"        x = {to}")) for title, mistake, to in _POST_1S),
        *((title, mistake, (_POST, f"        return {to}")) for title, mistake, to in _POSTS),
        (
            "no residuals",
            B.NO_NETWORK_RESIDUAL,
            (_POST_1, "        x = self.norm_1(self.dropout(attended))"),
            (_POST, "        return self.norm_2(self.dropout(self.feed_forward(x)))"),
        ),
        ("order swapped", B.ORDER_SWAPPED, (_FIRST, "        if not self.norm_first:")),
        ("norm_first ignored", B.NO_EFFECT, (_FIRST, "        if False:")),
        ("default is pre-norm", B.ORDER_SWAPPED, ("norm_first=False", "norm_first=True")),
        ("mask not passed on", B.UNMASKED, (_POST_ATTENTION, "attended, _ = self.attention(x, x, x)")),
        (
            "mask not passed on in pre-norm",
            B.UNMASKED,
            (_PRE_ATTENTION, "attended, _ = self.attention(normed, normed, normed)"),
        ),
        (
            "mask turned round",
            B.MASK_TURNED,
            (_POST_ATTENTION, "attended, _ = self.attention(x, x, x, None if mask is None else ~mask)"),
        ),
        (
            "dropout after the residual",
            B.DROPOUT_AFTER,
            (_POST_1, "        x = self.norm_1(self.dropout(x + attended))"),
            (_POST, "        return self.norm_2(self.dropout(x + self.feed_forward(x)))"),
        ),
        (
            "dropout after the residual in pre-norm",
            B.DROPOUT_AFTER,
            (_PRE_1, "            x = self.dropout(x + attended)"),
            (_PRE, "            return self.dropout(x + self.feed_forward(self.norm_2(x)))"),
        ),
        (
            "dropout inside the sublayers only",
            B.NEITHER_DROPPED,
            ("self.dropout = nn.Dropout(dropout)", "self.dropout = nn.Identity()"),
        ),
        ("dropout by default", B.DROPOUT_BY_DEFAULT, ("dropout=0.0", "dropout=0.1")),
        (
            "the network under another name",
            B.NO_PART,
            ("self.feed_forward = ", "self.network = "),
            (_PRE, _PRE.replace("feed_forward", "network")),
            (_POST, _POST.replace("feed_forward", "network")),
        ),
        (
            "layers in a row for the network",
            B.NO_FEED_FORWARD,
            (
                "FeedForward(dim, 4 * dim if hidden is None else hidden, dropout)",
                "nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))",
            ),
        ),
        (
            "no residual around the attention in pre-norm",
            B.NO_ATTENTION_RESIDUAL,
            (_PRE_1, "            x = self.dropout(attended)"),
        ),
        *((title, mistake, (_PRE, f"            return {to}")) for title, mistake, to in _PRES),
        (
            "second residual from the input in pre-norm",
            B.SECOND_ADDS_INPUT,
            (_PRE_1, "            h = x + self.dropout(attended)"),
            (_PRE, "            return x + self.dropout(self.feed_forward(self.norm_2(h)))"),
        ),
        ("hidden is dim by default", B.HIDDEN_DEFAULT, ("4 * dim if hidden is None", "dim if hidden is None")),
        ("hidden not passed on", B.HIDDEN_IGNORED, ("4 * dim if hidden is None else hidden", "4 * dim")),
        (
            "second residual from the input",
            B.SECOND_ADDS_INPUT,
            (_POST_1, "        h = self.norm_1(x + self.dropout(attended))"),
            (_POST, "        return self.norm_2(x + self.dropout(self.feed_forward(h)))"),
        ),
        (
            "norm on the sublayer's output",
            B.NORM_ON_OUTPUT,
            (_POST_1, "        x = x + self.norm_1(self.dropout(attended))"),
            (_POST, "        return x + self.norm_2(self.dropout(self.feed_forward(x)))"),
        ),
        (
            "network first",
            B.NETWORK_FIRST,
            (_POST_ATTENTION, "x = self.norm_1(x + self.dropout(self.feed_forward(x)))\n        " + _POST_ATTENTION),
            (_POST_1, "        return self.norm_2(x + self.dropout(attended))"),
            (_POST, ""),
        ),
        ("heads not passed on", B.ONE_HEAD, ("MultiHeadAttention(dim, heads,", "MultiHeadAttention(dim, 1,")),
        (
            "pre-norm adds the normalised x",
            B.NORMED_AROUND_ATTENTION,
            ("            normed = self.norm_1(x)", "            x = normed = self.norm_1(x)"),
        ),
        (
            "pre-norm adds the normalised x, second",
            B.NORMED_AROUND_NETWORK,
            (_PRE, "            x = self.norm_2(x)\n            return x + self.dropout(self.feed_forward(x))"),
        ),
        (
            "only queries normalised",
            B.ONLY_QUERIES,
            (_PRE_ATTENTION, "attended, _ = self.attention(normed, x, x, mask)"),
        ),
        ("x changed in place", Common.CHANGED_IN_PLACE, (_PRE_1, "            x += self.dropout(attended)")),
        ("detached", Common.CUT_OFF, (_POST, _POST + ".detach()")),
        ("attention detached", Common.WRONG_GRADIENT, (_POST_1, _POST_1.replace("attended", "attended.detach()"))),
    ],
)

_TEST = "check_layer_norm"


_SHAPES = "((3, dim), (2, 3, dim), (2, 3, 4, dim))"
_VALUES = 'assert_close(y, expected, msg=f"wrong values for {shape}, {options}, {training=}")'
_UNCHANGED = 'assert torch.equal(given, x), "the input was changed in place"'
_PARAMETERS = 'assert names == {"weight", "bias"}, f"weight and bias should be parameters, got {names}"'
_STATE = 'state = {"weight": torch.randn(dim).double(), "bias": torch.randn(dim).double()}'

_TEST_MUTANTS = [
    *edits(
        _TEST,
        [
            ("compares exactly", T.REJECTS_RIGHT, (_VALUES, "assert torch.equal(y, expected)")),
            ("no eps of its own", T.EPS_IGNORED, ('({}, {"eps": 0.5})', "({}, {})")),
            ("always its own eps", T.EPS_DEFAULT, ('({}, {"eps": 0.5})', '({"eps": 0.5}, {"eps": 0.1})')),
            ("one vector only", T.OTHER_DIMENSIONS, (_SHAPES, "((dim,),)")),
            ("three dimensions only", T.DIMENSION_2, (_SHAPES, "((2, 3, dim),)")),
            ("one sequence only", T.SEQUENCES, (_SHAPES, "((1, 3, dim), (1, 3, 4, dim))")),
            ("weights as they start", T.ACCEPTS_UNWEIGHTED, (_STATE, "state = right.state_dict()")),
            (
                "equal weights",
                T.WEIGHT,
                ('"weight": torch.randn(dim).double()', '"weight": torch.full((dim,), 2.0).double()'),
            ),
            ("no bias set", T.BIAS, ('"bias": torch.randn(dim).double()', '"bias": torch.zeros(dim).double()')),
            (
                "start not looked at",
                T.START,
                ("assert torch.equal(layer.weight, right.weight)", "assert True"),
                ("assert torch.equal(layer.bias, right.bias)", "assert True"),
            ),
            ("bias's start not looked at", T.START, ("assert torch.equal(layer.bias, right.bias)", "assert True")),
            (
                "a crash where there are no parameters",
                T.CRASHES,
                (_PARAMETERS, 'assert dict(layer.named_parameters())["bias"].shape == (dim,)'),
            ),
            ("parameters not looked at", T.NO_PARAMETERS, (_PARAMETERS, "")),
            ("input not looked at", T.IN_PLACE, (_UNCHANGED, "")),
            (
                "gradients not looked at",
                T.GRADIENTS,
                ('assert_close(given.grad, copy.grad, msg="wrong gradients of x")', ""),
            ),
            ("evaluation not looked at", T.EVAL, ("(True, False)", "(True, True)")),
            (
                "a crash for a failure",
                T.CRASHES,
                (_VALUES, "if not torch.allclose(y, expected): raise RuntimeError('wrong')"),
            ),
        ],
    ),
    *mutants(
        _TEST,
        "",
        [
            (
                "asserts nothing",
                T.ACCEPTS_UNCHANGED,
                """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            torch.allclose(layer_class(5)(x), nn.LayerNorm(5)(x))
        """,
            ),
            (
                "returns a bool",
                T.RETURNS,
                """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            return torch.allclose(layer_class(5)(x), nn.LayerNorm(5)(x), atol=1e-5)
        """,
            ),
            (
                "always fails",
                T.REJECTS_RIGHT,
                """
        def check_layer_norm(layer_class):
            raise AssertionError("something is wrong")
        """,
            ),
            (
                "unbiased oracle",
                T.REJECTS_RIGHT,
                """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            expected = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
            torch.testing.assert_close(layer_class(5)(x), expected)
        """,
            ),
            (
                "tests its own layer",
                T.ACCEPTS_UNCHANGED,
                """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            torch.testing.assert_close(LayerNorm(5)(x), nn.LayerNorm(5)(x))
        """,
            ),
            (
                "swallows its own failure",
                T.ACCEPTS_UNCHANGED,
                """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            try:
                torch.testing.assert_close(layer_class(5)(x), nn.LayerNorm(5)(x))
            except AssertionError as error:
                print(error)
        """,
            ),
            (
                "only the mean",
                T.ACCEPTS_TWICE,
                """
            def check_layer_norm(layer_class):
                layer = layer_class(5)
                assert layer(torch.randn(2, 3, 5)).mean(-1).abs().max() < 1e-4
            """,
            ),
            (
                "forgives nearly everything",
                T.FORMULA,
                """
            def check_layer_norm(layer_class):
                layer, right, x = layer_class(5), nn.LayerNorm(5), torch.randn(40, 3, 5) + 1
                state = {"weight": 1 + torch.arange(5.0), "bias": torch.arange(5.0)}
                layer.load_state_dict(state)
                right.load_state_dict(state)
                assert (layer(x) - right(x)).abs().mean() < 0.4
            """,
            ),
            (
                "only the shape",
                T.ACCEPTS_UNCHANGED,
                """
        def check_layer_norm(layer_class):
            assert layer_class(5)(torch.randn(2, 3, 5)).shape == (2, 3, 5)
        """,
            ),
            (
                "only mean and spread, roughly",
                T.ACCEPTS_UNWEIGHTED,
                """
        def check_layer_norm(layer_class):
            y = layer_class(64)(3 * torch.randn(2, 3, 64) + 1)
            assert y.mean(-1).abs().max() < 0.1
            assert (y.var(-1) - 1).abs().max() < 0.2
        """,
            ),
            (
                "by name",
                T.REJECTS_RIGHT,
                """
        def check_layer_norm(layer_class):
            assert layer_class is nn.LayerNorm
        """,
            ),
        ],
    ),
]

MUTANTS = [
    *_LAYER_NORM_MUTANTS,
    *_LAYER_NORM_PUBLISHED,
    *_FEED_FORWARD_MUTANTS,
    *_CONV_MUTANTS,
    *_BLOCK_MUTANTS,
    *_TEST_MUTANTS,
    *forging_dropout("FeedForward"),
    *forging_dropout("TransformerBlock", named=True),
    *forging_answers(classes=["LayerNorm", "FeedForward", "ConvFeedForward", "TransformerBlock"]),
]

VARIANTS = [
    edited_variant(
        "LayerNorm", "var with correction 0", (_VARIANCE, "variance = x.var(-1, correction=0, keepdim=True)")
    ),
    edited_variant(
        "LayerNorm",
        "var_mean",
        (_CENTRED, "variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)"),
        (_VARIANCE, "centred = x - mean"),
    ),
    edited_variant(
        "LayerNorm",
        "rsqrt",
        ("centred / torch.sqrt(variance + self.eps)", "centred * torch.rsqrt(variance + self.eps)"),
    ),
    edited_variant("LayerNorm", "power one half", ("torch.sqrt(variance + self.eps)", "(variance + self.eps) ** 0.5")),
    edited_variant(
        "LayerNorm",
        "einsum",
        (_VARIANCE, "variance = torch.einsum('...d,...d->...', centred, centred)[..., None] / x.shape[-1]"),
    ),
    variant(
        "LayerNorm",
        "names of its own beside",
        """
        def moments(x):
            mean = x.sum(-1, keepdim=True) / x.size(-1)
            return mean, ((x - mean) ** 2).sum(-1, keepdim=True) / x.size(-1)

        class LayerNorm(nn.Module):
            def __init__(self, dim, eps=1e-5):
                super().__init__()
                self.bias = nn.Parameter(torch.zeros(dim))
                self.weight = nn.Parameter(torch.ones(dim))
                self.dim, self.epsilon = dim, eps

            def forward(self, x):
                mean, variance = moments(x)
                return torch.addcmul(self.bias, (x - mean) / (variance + self.epsilon).sqrt(), self.weight)
        """,
    ),
    edited_variant(
        "LayerNorm",
        "statistics in float32",
        (_CENTRED, "centred = x.float() - x.float().mean(dim=-1, keepdim=True)"),
        (_NORMALISED, "return (self.weight * centred / torch.sqrt(variance + self.eps) + self.bias).to(x.dtype)"),
    ),
    edited_variant("FeedForward", "clamp", ("F.relu(self.inner(x))", "self.inner(x).clamp(min=0)")),
    edited_variant(
        "FeedForward",
        "dropout before ReLU",
        ("self.dropout(F.relu(self.inner(x)))", "F.relu(self.dropout(self.inner(x)))"),
    ),
    edited_variant(
        "FeedForward",
        "ReLU in place on the hidden features",
        (_FEED, "h = self.inner(x).relu_()\n        return self.outer(self.dropout(h))"),
    ),
    edited_variant(
        "FeedForward",
        "weights used directly",
        (
            _FEED,
            "h = torch.einsum('bnd,hd->bnh', x, self.inner.weight) + self.inner.bias\n"
            "        return self.outer(self.dropout(F.relu(h)))",
        ),
    ),
    variant(
        "FeedForward",
        "functional dropout",
        """
        class FeedForward(nn.Module):
            def __init__(self, dim, hidden, dropout=0.0):
                super().__init__()
                self.p = dropout
                self.outer, self.inner = nn.Linear(hidden, dim), nn.Linear(dim, hidden)
                self.act = nn.ReLU()

            def forward(self, x):
                return self.outer(F.dropout(self.act(self.inner(x)), self.p, self.training))
        """,
    ),
    edited_variant(
        "ConvFeedForward",
        "mT",
        ("x.transpose(1, 2)  # (B, d, n)", "x.mT"),
        (_CONV, "return self.outer(torch.relu(self.inner(channels_first))).mT"),
    ),
    edited_variant(
        "ConvFeedForward",
        "permute",
        (_TURN, "channels_first = x.permute(0, 2, 1).contiguous()"),
        (_CONV, _CONV[:-16] + ".permute(0, 2, 1)"),
    ),
    edited_variant(
        "ConvFeedForward",
        "kernel_size by position",
        ("nn.Conv1d(dim, hidden, kernel_size=1)", "nn.Conv1d(dim, hidden, 1, stride=1)"),
    ),
    edited_variant(
        "ConvFeedForward",
        "functional convolution, turned back by einsum",
        (
            _CONV,
            "h = F.relu(F.conv1d(channels_first, self.inner.weight, self.inner.bias))\n"
            "        return torch.einsum('bdn->bnd', self.outer(h))",
        ),
    ),
    edited_variant(
        "TransformerBlock",
        "torch's LayerNorm",
        ("self.norm_1 = LayerNorm(dim)", "self.norm_1 = nn.LayerNorm(dim)"),
        ("self.norm_2 = LayerNorm(dim)", "self.norm_2 = nn.LayerNorm(dim)"),
    ),
    edited_variant(
        "TransformerBlock",
        "the convolutional network",
        ("FeedForward(dim, 4 * dim if hidden is None else hidden, dropout)", "ConvFeedForward(dim, hidden or 4 * dim)"),
    ),
    edited_variant(
        "TransformerBlock",
        "dropout on the outputs alone",
        ("MultiHeadAttention(dim, heads, dropout)", "MultiHeadAttention(dim, heads)"),
        ("else hidden, dropout)", "else hidden)"),
    ),
    variant(
        "TransformerBlock",
        "a helper for both sublayers",
        """
        class TransformerBlock(nn.Module):
            def __init__(self, dim, heads, hidden=None, dropout=0.0, norm_first=False):
                super().__init__()
                self.feed_forward = FeedForward(dim, hidden or 4 * dim, dropout)
                self.attention = MultiHeadAttention(dim, heads, dropout)
                self.norm_2, self.norm_1 = LayerNorm(dim), LayerNorm(dim)
                self.drop_1, self.drop_2 = nn.Dropout(dropout), nn.Dropout(dropout)
                self.pre = norm_first

            def around(self, x, sublayer, norm, drop):
                if self.pre:
                    return x + drop(sublayer(norm(x)))
                return norm(x + drop(sublayer(x)))

            def forward(self, x, mask=None):
                x = self.around(x, lambda h: self.attention(h, h, h, mask=mask)[0], self.norm_1, self.drop_1)
                return self.around(x, self.feed_forward, self.norm_2, self.drop_2)
        """,
    ),
    variant(
        "TransformerBlock",
        "one path with conditions",
        """
        class TransformerBlock(nn.Module):
            def __init__(self, dim, heads, hidden=None, dropout=0.0, norm_first=False):
                super().__init__()
                self.attention = MultiHeadAttention(dim, heads)
                self.norm_1 = LayerNorm(dim)
                self.feed_forward = FeedForward(dim, hidden if hidden else 4 * dim)
                self.norm_2 = LayerNorm(dim)
                self.p, self.norm_first = dropout, norm_first

            def forward(self, x, mask=None):
                h = self.norm_1(x) if self.norm_first else x
                h = x + F.dropout(self.attention(h, h, h, mask)[0], self.p, self.training)
                h = h if self.norm_first else self.norm_1(h)
                y = self.norm_2(h) if self.norm_first else h
                y = h + F.dropout(self.feed_forward(y), self.p, self.training)
                return y if self.norm_first else self.norm_2(y)
        """,
    ),
    variant(
        _TEST,
        "the formula as oracle",
        """
        def formula(x, weight, bias, eps):
            mean = x.mean(-1, keepdim=True)
            variance = ((x - mean) ** 2).mean(-1, keepdim=True)
            return (x - mean) / (variance + eps) ** 0.5 * weight + bias

        def check_layer_norm(layer_class):
            for shape in [(4, 6), (3, 5, 6), (2, 3, 4, 6)]:
                for eps in (1e-5, 0.1):
                    layer = layer_class(6) if eps == 1e-5 else layer_class(6, eps)
                    assert len(list(layer.parameters())) == 2, "two parameters"
                    assert layer.weight.tolist() == [1] * 6 and layer.bias.tolist() == [0] * 6, "wrong start"
                    nn.init.normal_(layer.weight)
                    nn.init.normal_(layer.bias)
                    x = torch.randn(shape) * 0.02
                    x.requires_grad_()
                    kept = x.detach().clone()
                    for mode in (layer.train(), layer.eval()):
                        layer.train(mode.training)
                        y = layer(x)
                        expected = formula(x, layer.weight, layer.bias, eps)
                        assert torch.allclose(y, expected, atol=1e-4), "wrong values"
                        assert torch.allclose(x, kept), "input changed"
                    layer.eval()
                    assert torch.allclose(layer(x), expected, atol=1e-4), "wrong values in evaluation"
                    a, = torch.autograd.grad(y.pow(3).sum(), x)
                    b, = torch.autograd.grad(expected.pow(3).sum(), x)
                    assert torch.allclose(a, b, rtol=1e-3, atol=1e-2), "wrong gradients"
        """,
    ),
    variant(
        _TEST,
        "property by property",
        """
        def check_layer_norm(layer_class):
            fresh = layer_class(4)
            assert dict(fresh.named_parameters()).keys() == {"weight", "bias"}, "parameters"
            x = torch.tensor([[2.0, 4, 4, 10], [0, 0, 8, 8], [1, 2, 3, 5]], dtype=torch.float64).expand(2, 3, 4).clone()
            x[1] = x[1] ** 2 + 1
            fresh.double()
            y = fresh(x)
            assert y.mean(-1).abs().max() < 1e-6, "mean"
            assert (y.pow(2).mean(-1) - 1).abs().max() < 1e-4, "spread"
            one = torch.stack([torch.stack([fresh(row) for row in item]) for item in x])
            assert torch.allclose(one, y), "rows meet"
            assert torch.allclose(torch.stack([fresh(item) for item in x]), y), "items meet"
            assert torch.allclose(fresh(x[None]), y[None]), "four dimensions"
            weight, bias = torch.tensor([1.0, -2, 3, 0.5]).double(), torch.tensor([0.5, 1, -1, 2]).double()
            fresh.load_state_dict({"weight": weight, "bias": bias})
            assert torch.allclose(fresh(x), weight * y + bias), "weight and bias"
            fresh.eval()
            assert torch.allclose(fresh(x), weight * y + bias), "evaluation"
            a, b = layer_class(4, eps=3.0).double(), layer_class(4).double()
            flat = torch.tensor([0.0, 0, 2, 2]).double()  # mean 1, variance 1
            assert torch.allclose(a(flat), (flat - 1) / 2), "eps inside the root"
            small = 0.001 * (flat - 1)
            assert torch.allclose(b(small), small / (1e-6 + 1e-5) ** 0.5), "default eps"
            kept = x.clone()
            x.requires_grad_()
            out = b(x)
            assert torch.equal(x, kept), "in place"
            # Adding the same to all features changes nothing, so the gradient's features sum to zero.
            (grad,) = torch.autograd.grad((out * torch.tensor([1.0, 2, -3, 5])).sum(), x)
            assert grad.sum(-1).abs().max() < 1e-8, "gradient"
        """,
    ),
    edited_variant(_TEST, "torch.allclose", (_VALUES, 'assert torch.allclose(y, expected), "wrong values"')),
    edited_variant(_TEST, "other numbers", ("dim = 5", "dim = 7"), ('{"eps": 0.5}', '{"eps": 2.0}')),
]
