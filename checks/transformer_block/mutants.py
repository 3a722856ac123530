"""Chapter 06: wrong answers that must fail with their message, right answers that must pass."""

from autograder.answers import edit, edited_variant, mutant, variant
from checks.forgers import forging_answers

_CENTRED = "centred = x - x.mean(dim=-1, keepdim=True)"
_VARIANCE = "variance = centred.pow(2).mean(dim=-1, keepdim=True)"
_NORMALISED = "return self.weight * centred / torch.sqrt(variance + self.eps) + self.bias"


def _over(dims: str) -> tuple[tuple[str, str], ...]:
    """Edits of LayerNorm that take its statistics over other dimensions."""
    return (_CENTRED, _CENTRED.replace("-1", dims)), (_VARIANCE, _VARIANCE.replace("-1", dims))


_LAYER_NORM_MUTANTS = [
    edit("LayerNorm", "nothing returned", "is there a `return`?", (_NORMALISED, _NORMALISED.removeprefix("return "))),
    edit(
        "LayerNorm",
        "unbiased variance",
        "divides by d - 1",
        (_VARIANCE, "variance = x.var(dim=-1, keepdim=True)"),
    ),
    edit(
        "LayerNorm",
        "eps outside the root",
        "eps is outside the root",
        ("torch.sqrt(variance + self.eps)", "(torch.sqrt(variance) + self.eps)"),
    ),
    edit("LayerNorm", "eps fixed", "the argument `eps` is ignored", ("self.eps = eps", "self.eps = 1e-5")),
    edit("LayerNorm", "no eps", "contains NaN: divide by sqrt(variance + eps)", ("variance + self.eps", "variance")),
    edit(
        "LayerNorm",
        "the published std",
        "divides by d - 1",
        (_NORMALISED, "return self.weight * centred / (x.std(-1, keepdim=True) + self.eps) + self.bias"),
    ),
    edit("LayerNorm", "over the positions", "over the positions instead of the features", *_over("-2")),
    edit("LayerNorm", "over positions and features", "over positions and features together", *_over("(-2, -1)")),
    edit("LayerNorm", "over the batch", "over the batch", *_over("0")),
    edit("LayerNorm", "over batch and positions", "as a batch norm does", *_over("tuple(range(x.dim() - 1))")),
    edit("LayerNorm", "over the whole tensor", "over the whole tensor", *_over("tuple(range(x.dim()))")),
    edit("LayerNorm", "dimension 2", "over dimension 2", *_over("min(2, x.dim() - 1)")),
    edit(
        "LayerNorm", "mean not subtracted", "the mean is not subtracted", ("self.weight * centred", "self.weight * x")
    ),
    edit("LayerNorm", "root mean square", "the mean is not subtracted", (_CENTRED, "centred = x")),
    edit(
        "LayerNorm",
        "divided by the variance",
        "divided by the variance, not by its root",
        ("torch.sqrt(variance + self.eps)", "(variance + self.eps)"),
    ),
    edit("LayerNorm", "not divided", "nothing is divided", (" / torch.sqrt(variance + self.eps)", "")),
    edit("LayerNorm", "weight unused", "`weight` is not used", ("self.weight * centred", "centred")),
    edit("LayerNorm", "bias unused", "`bias` is not used", (" + self.bias", "")),
    edit(
        "LayerNorm",
        "bias before weight",
        "`bias` is added before",
        (_NORMALISED, "return self.weight * (centred / torch.sqrt(variance + self.eps) + self.bias)"),
    ),
    edit(
        "LayerNorm",
        "weight is no parameter",
        "`weight` is not a parameter",
        ("nn.Parameter(torch.ones(dim))", "torch.ones(dim)"),
    ),
    edit(
        "LayerNorm",
        "weight starts random",
        "one number for each feature",
        ("nn.Parameter(torch.ones(dim))", "nn.Parameter(torch.randn(dim))"),
    ),
    edit(
        "LayerNorm",
        "one weight for all features",
        "one number for each feature",
        ("nn.Parameter(torch.ones(dim))", "nn.Parameter(torch.ones(1))"),
    ),
    edit(
        "LayerNorm",
        "library function",
        "the code calls `layer_norm`",
        (_NORMALISED, "return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)"),
    ),
    edit(
        "LayerNorm",
        "input changed in place",
        "`x` was changed in place",
        (_CENTRED, "x -= x.mean(dim=-1, keepdim=True)\n        centred = x"),
    ),
    edit(
        "LayerNorm",
        "difference of squares",
        "far from zero",
        (_VARIANCE, "variance = x.pow(2).mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).pow(2)"),
    ),
    edit(
        "LayerNorm",
        "statistics detached",
        "mean and variance are cut off",
        (_CENTRED, _CENTRED.replace("keepdim=True)", "keepdim=True).detach()")),
        (_VARIANCE, _VARIANCE + ".detach()"),
    ),
    edit(
        "LayerNorm",
        "float32 only",
        "keep dtype torch.float64",
        (_CENTRED, "x = x.float()\n        " + _CENTRED),
        (_NORMALISED, "return (self.weight * centred / torch.sqrt(variance + self.eps) + self.bias).float()"),
    ),
    edit(
        "LayerNorm",
        "keepdim forgotten",
        "must match the size",
        (_VARIANCE, _VARIANCE.replace(", keepdim=True", "")),
    ),
    edit(
        "LayerNorm",
        "silent in evaluation",
        "after `.eval()`",
        (_CENTRED, "if not self.training:\n            return x\n        " + _CENTRED),
    ),
    edit(
        "LayerNorm",
        "made on the CPU",
        "fails when its inputs are on a GPU",
        (_NORMALISED, _NORMALISED + " + torch.zeros(x.shape[-1:], dtype=x.dtype)"),
    ),
]

_FEED = "return self.outer(self.dropout(F.relu(self.inner(x))))"


def _feed(title: str, says: str, body: str) -> object:
    """FeedForward with another last line."""
    return edit("FeedForward", title, says, (_FEED, body))


_FEED_FORWARD_MUTANTS = [
    _feed("nothing returned", "is there a `return`?", _FEED.removeprefix("return ")),
    _feed("no ReLU", "the ReLU is missing", "return self.outer(self.dropout(self.inner(x)))"),
    _feed("second ReLU", "a second ReLU follows `outer`", f"return F.relu({_FEED.removeprefix('return ')})"),
    _feed("ReLU last", "the ReLU comes after `outer`", "return F.relu(self.outer(self.dropout(self.inner(x))))"),
    _feed("ReLU first", "the ReLU comes before `inner`", "return self.outer(self.dropout(self.inner(F.relu(x))))"),
    _feed(
        "a ReLU too many before",
        "a ReLU comes before `inner` too",
        "return self.outer(self.dropout(F.relu(self.inner(F.relu(x)))))",
    ),
    _feed("GELU", "GELU takes the place", "return self.outer(self.dropout(F.gelu(self.inner(x))))"),
    _feed("sigmoid", "a sigmoid takes the place", "return self.outer(self.dropout(torch.sigmoid(self.inner(x))))"),
    _feed("residual inside", "the input is added", f"return x + {_FEED.removeprefix('return ')}"),
    _feed(
        "dropout in evaluation",
        "dropout is still active in evaluation",
        "return self.outer(F.dropout(F.relu(self.inner(x)), self.dropout.p))",
    ),
    _feed("dropout unused", "`dropout` has no effect", "return self.outer(F.relu(self.inner(x)))"),
    _feed(
        "dropout on the result", "dropout acts on the result", "return self.dropout(self.outer(F.relu(self.inner(x))))"
    ),
    _feed(
        "dropout on the input",
        "dropout acts on the input",
        "return self.outer(F.relu(self.inner(self.dropout(x))))",
    ),
    _feed(
        "dropout without scaling",
        "to make up for those",
        """h = F.relu(self.inner(x))
        if self.training:
            h = h * (torch.rand_like(h) >= self.dropout.p)
        return self.outer(h)""",
    ),
    _feed("detached", "cut off from the graph", "return self.outer(self.dropout(F.relu(self.inner(x)))).detach()"),
    _feed("hidden detached", "no gradient reaches", "return self.outer(self.dropout(F.relu(self.inner(x))).detach())"),
    _feed(
        "input changed in place",
        "`x` was changed in place",
        "y = self.outer(self.dropout(F.relu(self.inner(x))))\n        x.data.mul_(0.5)\n        return y",
    ),
    _feed(
        "first sequence only",
        "the second sequence",
        "return self.outer(self.dropout(F.relu(self.inner(x[:1])))).expand_as(x)",
    ),
    edit(
        "FeedForward",
        "hidden ignored",
        "`inner` is nn.Linear(dim, hidden)",
        ("nn.Linear(dim, hidden)", "nn.Linear(dim, 4 * dim)"),
        ("nn.Linear(hidden, dim)", "nn.Linear(4 * dim, dim)"),
    ),
    edit(
        "FeedForward",
        "no bias",
        "the parameter `inner.bias` is missing",
        ("nn.Linear(dim, hidden)", "nn.Linear(dim, hidden, bias=False)"),
    ),
    mutant(
        "FeedForward",
        "other names",
        "the parameter `inner.weight` is missing",
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
    ),
]

_CONV = "return self.outer(F.relu(self.inner(channels_first))).transpose(1, 2)"
_TURN = "channels_first = x.transpose(1, 2)  # (B, d, n)"


def _conv(title: str, says: str, *edits: tuple[str, str]) -> object:
    return edit("ConvFeedForward", title, says, *edits)


_CONV_MUTANTS = [
    _conv("nothing returned", "is there a `return`?", (_CONV, _CONV.removeprefix("return "))),
    _conv("not turned", "Conv1d wants `(B, d, n)`", (_TURN, "channels_first = x"), (_CONV, _CONV[:-16])),
    _conv("not turned back", "the result is not turned back", (_CONV, _CONV[:-16])),
    _conv(
        "reshaped both times",
        "Conv1d wants `(B, d, n)`",
        (_TURN, "channels_first = x.reshape(x.shape[0], x.shape[2], x.shape[1])"),
        (_CONV, _CONV[:-16] + ".reshape(x.shape)"),
    ),
    _conv(
        "reshaped before",
        "x is not turned to `(B, d, n)` before `inner`",
        (_TURN, "channels_first = x.reshape(x.shape[0], x.shape[2], x.shape[1])"),
    ),
    _conv("reshaped after", "the result is not turned back", (_CONV, _CONV[:-16] + ".reshape(x.shape)")),
    _conv("no ReLU", "the ReLU is missing", ("F.relu(self.inner(channels_first))", "self.inner(channels_first)")),
    _conv(
        "ReLU last", "the ReLU comes after `outer`", (_CONV, "return F.relu(self.outer(self.inner(channels_first))).mT")
    ),
    _conv("GELU", "GELU takes the place", ("F.relu", "F.gelu")),
    _conv("residual inside", "the input is added", (_CONV, _CONV.replace("return ", "return x + "))),
    _conv(
        "width 3",
        "`inner` is nn.Conv1d(dim, hidden",
        ("nn.Conv1d(dim, hidden, kernel_size=1)", "nn.Conv1d(dim, hidden, kernel_size=3, padding=1)"),
    ),
    _conv(
        "linear layers",
        "`inner` is nn.Conv1d(dim, hidden",
        ("nn.Conv1d(dim, hidden, kernel_size=1)", "nn.Linear(dim, hidden)"),
        ("nn.Conv1d(hidden, dim, kernel_size=1)", "nn.Linear(hidden, dim)"),
        (_TURN, "channels_first = x"),
        (_CONV, _CONV[:-16]),
    ),
    _conv(
        "no bias",
        "the parameter `outer.bias` is missing",
        ("nn.Conv1d(hidden, dim, kernel_size=1)", "nn.Conv1d(hidden, dim, kernel_size=1, bias=False)"),
    ),
    _conv(
        "hidden ignored",
        "`inner` is nn.Conv1d(dim, hidden",
        ("nn.Conv1d(dim, hidden, kernel_size=1)", "nn.Conv1d(dim, 4 * dim, kernel_size=1)"),
        ("nn.Conv1d(hidden, dim, kernel_size=1)", "nn.Conv1d(4 * dim, dim, kernel_size=1)"),
    ),
    _conv("detached", "cut off from the graph", (_CONV, _CONV + ".detach()")),
    _conv("squeezed", "should have shape (1, 2, 2), got (2, 2)", (_CONV, _CONV + ".squeeze()")),
    _conv(
        "input turned in place",
        "`x` was changed in place",
        (_CONV, "y = " + _CONV.removeprefix("return ") + "\n        x.data.zero_()\n        return y"),
    ),
]

_PRE = "            return x + self.dropout(self.feed_forward(self.norm_2(x)))"
_POST = "        return self.norm_2(x + self.dropout(self.feed_forward(x)))"
_PRE_1 = "            x = x + self.dropout(attended)"
_POST_1 = "        x = self.norm_1(x + self.dropout(attended))"
_FIRST = "        if self.norm_first:"
_POST_ATTENTION = "attended, _ = self.attention(x, x, x, mask)"
_PRE_ATTENTION = "attended, _ = self.attention(normed, normed, normed, mask)"


def _block(title: str, says: str, *edits: tuple[str, str]) -> object:
    return edit("TransformerBlock", title, says, *edits)


_BLOCK_MUTANTS = [
    _block("nothing returned", "is there a `return`?", (_POST, _POST.replace("return ", ""))),
    _block("returns the weights too", "got a tuple", (_POST, _POST + ", _")),
    _block("only a LayerNorm", "only a LayerNorm of its input", (_FIRST, "        return self.norm_1(x)\n" + _FIRST)),
    _block(
        "only two LayerNorms",
        "only a LayerNorm of its input",
        (_FIRST, "        return self.norm_2(self.norm_1(x))\n" + _FIRST),
    ),
    _block(
        "residuals subtracted",
        "residuals are subtracted",
        (_POST_1, _POST_1.replace("+", "-")),
        (_POST, _POST.replace("+", "-")),
    ),
    _block(
        "first residual subtracted", "residual around the attention is subtracted", (_POST_1, _POST_1.replace("+", "-"))
    ),
    _block(
        "second residual subtracted",
        "residual around the feed-forward network is subtracted",
        (_POST, _POST.replace("+", "-")),
    ),
    _block(
        "pre-norm residuals subtracted",
        "residuals are subtracted",
        (_PRE_1, _PRE_1.replace("+", "-")),
        (_PRE, _PRE.replace("+", "-")),
    ),
    _block(
        "one LayerNorm, used twice",
        "one LayerNorm is used twice",
        ("self.norm_2 = LayerNorm(dim)", "self.norm_2 = self.norm_1"),
    ),
    _block("norm_1 used twice", "`norm_1` is used twice", (_POST, _POST.replace("norm_2", "norm_1"))),
    _block("norm_2 used twice", "`norm_2` is used twice", (_POST_1, _POST_1.replace("norm_1", "norm_2"))),
    _block(
        "norms exchanged",
        "`norm_1` and `norm_2` are exchanged",
        (_POST, _POST.replace("norm_2", "norm_1")),
        (_POST_1, _POST_1.replace("norm_1", "norm_2")),
    ),
    _block(
        "no residual around the attention",
        "the residual connection around the attention is missing",
        (_POST_1, "        x = self.norm_1(self.dropout(attended))"),
    ),
    _block(
        "no residual around the network",
        "the residual connection around the network is missing",
        (_POST, "        return self.norm_2(self.dropout(self.feed_forward(x)))"),
    ),
    _block(
        "no residuals",
        "the residual connection around the network is missing",
        (_POST_1, "        x = self.norm_1(self.dropout(attended))"),
        (_POST, "        return self.norm_2(self.dropout(self.feed_forward(x)))"),
    ),
    _block("order swapped", "the order of the norms is swapped", (_FIRST, "        if not self.norm_first:")),
    _block("norm_first ignored", "`norm_first=True` has no effect", (_FIRST, "        if False:")),
    _block("default is pre-norm", "the order of the norms is swapped", ("norm_first=False", "norm_first=True")),
    _block(
        "mask not passed on",
        "the mask is not passed on",
        (_POST_ATTENTION, "attended, _ = self.attention(x, x, x)"),
    ),
    _block(
        "mask not passed on in pre-norm",
        "the mask is not passed on",
        (_PRE_ATTENTION, "attended, _ = self.attention(normed, normed, normed)"),
    ),
    _block(
        "mask turned round",
        "the mask is turned round",
        (_POST_ATTENTION, "attended, _ = self.attention(x, x, x, None if mask is None else ~mask)"),
    ),
    _block(
        "dropout in evaluation",
        "dropout is still active in evaluation",
        (_POST, "        return self.norm_2(x + F.dropout(self.feed_forward(x), self.dropout.p))"),
    ),
    _block(
        "dropout after the residual",
        "dropout is applied after the residual",
        (_POST_1, "        x = self.norm_1(self.dropout(x + attended))"),
        (_POST, "        return self.norm_2(self.dropout(x + self.feed_forward(x)))"),
    ),
    _block(
        "dropout after the residual in pre-norm",
        "dropout is applied after the residual",
        (_PRE_1, "            x = self.dropout(x + attended)"),
        (_PRE, "            return self.dropout(x + self.feed_forward(self.norm_2(x)))"),
    ),
    _block(
        "attention's output not dropped",
        "the attention's output is not dropped",
        (_POST_1, "        x = self.norm_1(x + attended)"),
    ),
    _block(
        "network's output not dropped",
        "the feed-forward network's output is not dropped",
        (_POST, "        return self.norm_2(x + self.feed_forward(x))"),
    ),
    _block(
        "dropout inside the sublayers only",
        "neither sublayer's output is dropped",
        ("self.dropout = nn.Dropout(dropout)", "self.dropout = nn.Identity()"),
    ),
    _block("dropout by default", "dropout is 0 unless it is asked for", ("dropout=0.0", "dropout=0.1")),
    _block("hidden is dim by default", "should have 4 * dim", ("4 * dim if hidden is None", "dim if hidden is None")),
    _block("hidden not passed on", "`hidden` is not passed on", ("4 * dim if hidden is None else hidden", "4 * dim")),
    _block(
        "network without ReLU",
        "the feed-forward network has no ReLU",
        (_POST, "        return self.norm_2(x + self.dropout(self.feed_forward.outer(self.feed_forward.inner(x))))"),
    ),
    _block(
        "second residual from the input",
        "the second residual adds the block's input",
        (_POST_1, "        h = self.norm_1(x + self.dropout(attended))"),
        (_POST, "        return self.norm_2(x + self.dropout(self.feed_forward(h)))"),
    ),
    _block(
        "norm on the sublayer's output",
        "LayerNorm acts on each sublayer's output",
        (_POST_1, "        x = x + self.norm_1(self.dropout(attended))"),
        (_POST, "        return x + self.norm_2(self.dropout(self.feed_forward(x)))"),
    ),
    _block(
        "network first",
        "the feed-forward network comes first",
        (_POST_ATTENTION, "x = self.norm_1(x + self.dropout(self.feed_forward(x)))\n        " + _POST_ATTENTION),
        (_POST_1, "        return self.norm_2(x + self.dropout(attended))"),
        (_POST, ""),
    ),
    _block(
        "no second norm",
        "`norm_2` is missing",
        (_POST, "        return x + self.dropout(self.feed_forward(x))"),
    ),
    _block(
        "heads not passed on",
        "`heads` is not passed on",
        ("MultiHeadAttention(dim, heads,", "MultiHeadAttention(dim, 1,"),
    ),
    _block(
        "pre-norm adds the normalised x",
        "the residual path goes round the norm",
        ("            normed = self.norm_1(x)", "            x = normed = self.norm_1(x)"),
    ),
    _block(
        "pre-norm adds the normalised x, second",
        "the residual path goes round the norm",
        (_PRE, "            x = self.norm_2(x)\n            return x + self.dropout(self.feed_forward(x))"),
    ),
    _block(
        "only queries normalised",
        "only the queries are normalised",
        (_PRE_ATTENTION, "attended, _ = self.attention(normed, x, x, mask)"),
    ),
    _block(
        "a last norm in pre-norm",
        "a norm follows the last addition too",
        (_PRE, "            return self.norm_2(x + self.dropout(self.feed_forward(self.norm_2(x))))"),
    ),
    _block("x changed in place", "`x` was changed in place", (_PRE_1, "            x += self.dropout(attended)")),
    _block("detached", "cut off from the graph", (_POST, _POST + ".detach()")),
    _block("attention detached", "the gradient", (_POST_1, _POST_1.replace("attended", "attended.detach()"))),
]

_TEST = "check_layer_norm"


def _weaker(title: str, says: str, *edits: tuple[str, str]) -> object:
    """The reference test with something left out."""
    return edit(_TEST, title, says, *edits)


_SHAPES = "((3, dim), (2, 3, dim), (2, 3, 4, dim))"
_VALUES = 'assert_close(y, expected, msg=f"wrong values for {shape}, {options}, {training=}")'
_UNCHANGED = 'assert torch.equal(given, x), "the input was changed in place"'
_PARAMETERS = 'assert names == {"weight", "bias"}, f"weight and bias should be parameters, got {names}"'
_STATE = 'state = {"weight": torch.randn(dim).double(), "bias": torch.randn(dim).double()}'

_TEST_MUTANTS = [
    mutant(
        _TEST,
        "asserts nothing",
        "accepts a layer that returns",
        """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            torch.allclose(layer_class(5)(x), nn.LayerNorm(5)(x))
        """,
    ),
    mutant(
        _TEST,
        "returns a bool",
        "It returned False: a test speaks by `assert`",
        """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            return torch.allclose(layer_class(5)(x), nn.LayerNorm(5)(x), atol=1e-5)
        """,
    ),
    mutant(
        _TEST,
        "always fails",
        "rejects torch's own nn.LayerNorm",
        """
        def check_layer_norm(layer_class):
            raise AssertionError("something is wrong")
        """,
    ),
    mutant(
        _TEST,
        "unbiased oracle",
        "rejects torch's own nn.LayerNorm",
        """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            expected = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
            torch.testing.assert_close(layer_class(5)(x), expected)
        """,
    ),
    mutant(
        _TEST,
        "tests its own layer",
        "accepts a layer that returns",
        """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            torch.testing.assert_close(LayerNorm(5)(x), nn.LayerNorm(5)(x))
        """,
    ),
    mutant(
        _TEST,
        "swallows its own failure",
        "accepts a layer that returns",
        """
        def check_layer_norm(layer_class):
            x = torch.randn(2, 3, 5)
            try:
                torch.testing.assert_close(layer_class(5)(x), nn.LayerNorm(5)(x))
            except AssertionError as error:
                print(error)
        """,
    ),
    mutant(
        _TEST,
        "only the shape",
        "accepts a layer that returns",
        """
        def check_layer_norm(layer_class):
            assert layer_class(5)(torch.randn(2, 3, 5)).shape == (2, 3, 5)
        """,
    ),
    mutant(
        _TEST,
        "only mean and spread, roughly",
        "uses neither its weight nor its bias",
        """
        def check_layer_norm(layer_class):
            y = layer_class(64)(3 * torch.randn(2, 3, 64) + 1)
            assert y.mean(-1).abs().max() < 0.1
            assert (y.var(-1) - 1).abs().max() < 0.2
        """,
    ),
    mutant(
        _TEST,
        "by name",
        "rejects a right layer, a LayerNorm written by hand",
        """
        def check_layer_norm(layer_class):
            assert layer_class is nn.LayerNorm
        """,
    ),
    _weaker(
        "compares exactly",
        "rejects a right layer, a LayerNorm written by hand",
        (_VALUES, "assert torch.equal(y, expected)"),
    ),
    _weaker("no eps of its own", "ignores the argument eps", ('({}, {"eps": 0.5})', "({}, {})")),
    _weaker("always its own eps", "has another default eps", ('({}, {"eps": 0.5})', '({"eps": 0.5}, {"eps": 0.1})')),
    _weaker("one vector only", "over the positions instead of the features", (_SHAPES, "((dim,),)")),
    _weaker("three dimensions only", "normalises over dimension 2", (_SHAPES, "((2, 3, dim),)")),
    _weaker(
        "one sequence only",
        "normalises over batch and features together",
        (_SHAPES, "((1, 3, dim), (1, 3, 4, dim))"),
    ),
    _weaker("weights as they start", "uses neither its weight nor its bias", (_STATE, "state = right.state_dict()")),
    _weaker(
        "equal weights",
        "by the first entry of its weight",
        ('"weight": torch.randn(dim).double()', '"weight": torch.full((dim,), 2.0).double()'),
    ),
    _weaker(
        "no bias set",
        "does not use its bias",
        ('"bias": torch.randn(dim).double()', '"bias": torch.zeros(dim).double()'),
    ),
    _weaker(
        "start not looked at",
        "starts with a weight of zeros",
        ("assert torch.equal(layer.weight, right.weight)", "assert True"),
        ("assert torch.equal(layer.bias, right.bias)", "assert True"),
    ),
    _weaker(
        "bias's start not looked at",
        "starts with a bias of ones",
        ("assert torch.equal(layer.bias, right.bias)", "assert True"),
    ),
    _weaker("parameters not looked at", "a weight and a bias that are no parameters", (_PARAMETERS, "")),
    _weaker("input not looked at", "changes its input in place", (_UNCHANGED, "")),
    _weaker(
        "gradients not looked at",
        "cuts mean and variance off",
        ('assert_close(given.grad, copy.grad, msg="wrong gradients of x")', ""),
    ),
    _weaker("evaluation not looked at", "does not normalise after `.eval()`", ("(True, False)", "(True, True)")),
    _weaker(
        "a crash for a failure",
        "makes your test stop with RuntimeError",
        (_VALUES, "if not torch.allclose(y, expected): raise RuntimeError('wrong')"),
    ),
]

MUTANTS = [
    *_LAYER_NORM_MUTANTS,
    *_FEED_FORWARD_MUTANTS,
    *_CONV_MUTANTS,
    *_BLOCK_MUTANTS,
    *_TEST_MUTANTS,
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
