"""What chapter 11's check cells call: small cases by hand, and the commonest mistakes by name."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import call, expect_close, expect_number, expect_raises, expect_tensor, place, unchanged
from autograder.course.card import visible

Pair = tuple[Tensor, Tensor]


def expect_pair(result: Any, what: str, second: str) -> tuple[Any, Any]:
    """The two things that a call should return, such as the output and the new cache."""
    assert result is not None, f"{what} returned None: is there a `return`?"
    assert isinstance(result, tuple | list) and len(result) == 2, (
        f"{what} should return a pair, {second}, got a {result.__class__.__name__}"
    )
    return result[0], result[1]


def expect_cache(cache: Any, name: str = "the cache") -> Pair:
    """The keys and the values of a cache."""
    assert cache is not None, f"{name} is None: return the pair (keys, values)"
    assert isinstance(cache, tuple | list) and len(cache) == 2, (
        f"{name} should be a pair (keys, values), got a {cache.__class__.__name__}"
    )
    for part, which in zip(cache, ("keys", "values"), strict=True):
        expect_tensor(part, name=f"the {which} in {name}")
    return cache[0], cache[1]


def expect_weights(module: nn.Module, wanted: Mapping[str, tuple[int, ...]], hint: str) -> None:
    """Fail unless a module has these parameters, and no others."""
    shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
    for name, shape in wanted.items():
        assert name in shapes, f"the parameter `{name}` is missing among {sorted(shapes)}: {hint}"
        assert shapes[name] == shape, f"`{name}` should have shape {shape}, it has {shapes[name]}: {hint}"
    more = sorted(set(shapes) - set(wanted))
    assert not more, f"the parameter `{more[0]}` should not be there: {hint}"


def _as_causes(wrong: Mapping[str, list]) -> dict[str, Callable[[], Tensor]]:
    return {cause: lambda value=value: torch.tensor(value) for cause, value in wrong.items()}


@visible("(1, 7) divided by 5, the root of its mean square, then scaled by `weight`")
def RMSNorm(cls: Callable) -> None:
    """The features (1, 7), whose mean square is 25, and (6, 8), whose is 50."""
    norm = call(cls, 2)
    expect_weights(norm, {"weight": (2,)}, "RMSNorm has one parameter, `weight`, a number for each feature")
    norm.load_state_dict({"weight": torch.tensor([1.0, 10.0])})
    x = torch.tensor([[[1.0, 7.0], [6.0, 8.0]]])
    with unchanged(x=x):
        y = call(norm, x)
    root = 50**0.5
    wrong = {
        "`weight` is not used": [[[0.2, 1.4], [6 / root, 8 / root]]],
        "the mean is subtracted: RMSNorm leaves it in": [[[-1.0, 10.0], [-1.0, 10.0]]],
        "divided by the root of the sum of the squares, not of their mean": [[[1 / root, 70 / root], [0.6, 8.0]]],
        "divided by the mean square, not by its root": [[[0.04, 2.8], [0.12, 1.6]]],
        "the standard deviation divides: it is the root of the mean square, with the mean left in": [
            [[1 / 3, 70 / 3], [6.0, 80.0]]
        ],
        "1 + `weight` scales: `weight` starts as ones and scales alone": [[[0.4, 15.4], [12 / root, 88 / root]]],
        "normalised over the positions instead of the features": [
            [[1 / 18.5**0.5, 70 / 56.5**0.5], [6 / 18.5**0.5, 80 / 56.5**0.5]]
        ],
        "normalised over the whole tensor: each position has a mean square of its own": [
            [[1 / 37.5**0.5, 70 / 37.5**0.5], [6 / 37.5**0.5, 80 / 37.5**0.5]]
        ],
        "normalised over the batch: items of a batch must not touch each other": [[[1.0, 10.0], [1.0, 10.0]]],
        "the mean of the absolute values divides: square, mean, root": [[[0.25, 17.5], [6 / 7, 80 / 7]]],
    }
    right = torch.tensor([[[0.2, 14.0], [6 / root, 80 / root]]])
    expect_close(y, right, "the result", _as_causes(wrong), tolerance=1e-4)


@visible("the worked example of the text: gate, up and down each in its place")
def SwiGLU(cls: Callable) -> None:
    """gate takes (1, -2) to itself, up takes it to (3, -1), down adds and subtracts."""
    network = call(cls, 2, 2)
    names = ("gate", "up", "down")
    expect_weights(
        network,
        {f"{name}.weight": (2, 2) for name in names},
        "`gate`, `up` and `down` are nn.Linear layers with bias=False",
    )
    up, down = torch.tensor([[1.0, -1.0], [0.0, 0.5]]), torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    network.load_state_dict({"gate.weight": torch.eye(2), "up.weight": up, "down.weight": down})
    x = torch.tensor([[[1.0, -2.0]]])
    with unchanged(x=x):
        y = call(network, x)

    gate, passed, silu = torch.tensor([1.0, -2.0]), torch.tensor([3.0, -1.0]), F.silu
    wrong = {
        "silu is applied to `up(x)`: it belongs to `gate(x)`": gate * silu(passed),
        "silu is applied to both: only to `gate(x)`": silu(gate) * silu(passed),
        "silu is missing": gate * passed,
        "silu is applied after the product: it belongs to `gate(x)` alone": silu(gate * passed),
        "silu is applied twice, to the gate and to the product": silu(silu(gate) * passed),
        "a sigmoid takes the place of silu: silu(z) is z times sigmoid(z)": gate.sigmoid() * passed,
        "GELU takes the place of silu (that is GeGLU)": F.gelu(gate) * passed,
        "ReLU takes the place of silu (that is ReGLU)": gate.relu() * passed,
        "the two are added: multiply them": silu(gate) + passed,
        "`up` is not used": silu(gate),
        "`gate` is not used": passed,
        "`gate` is used twice, and `up` never": silu(gate) * gate,
        "`up` is used twice, and `gate` never": silu(passed) * passed,
    }
    causes = {cause: lambda hidden=hidden: (hidden @ down.T).view(1, 1, 2) for cause, hidden in wrong.items()}
    right = torch.tensor([[[2.431581, 1.954769]]])
    residual = "the input is added to the result: the residual connection belongs to the layer"
    expect_close(y, right, "the result", causes | {residual: lambda: right + x}, tolerance=1e-4)


def _attention(cls: Callable, queries: float) -> nn.Module:
    """One head of two features: every map leaves its input as it is, but for the queries' factor."""
    attention = call(cls, 2, 1)
    names = ("Wq", "Wk", "Wv", "WO")
    expect_weights(
        attention,
        {f"{name}.weight": (2, 2) for name in names},
        "`Wq`, `Wk`, `Wv` and `WO` are nn.Linear(dim, dim, bias=False)",
    )
    attention.load_state_dict({f"{n}.weight": (queries if n == "Wq" else 1.0) * torch.eye(2) for n in names})
    return attention


@visible("the running mean of the text, rotated keys in the cache, and the same output in one go and in two")
def CausalSelfAttention(cls: Callable) -> None:
    """Without a preference each position averages those so far; then rotation, then the cache."""
    attention = _attention(cls, 0.0)
    x = torch.tensor([[[2.0, 0.0], [4.0, 6.0], [0.0, 3.0]]])
    with unchanged(x=x):
        y, cache = expect_pair(call(attention, x), "CausalSelfAttention", "(y, cache)")
    cos, sin = math.cos(1), math.sin(1)
    one, two = [4 * cos - 6 * sin, 4 * sin + 6 * cos], [-3 * math.sin(2), 3 * math.cos(2)]
    wrong = {
        "the causal mask is missing: a position sees those after it": [[[2.0, 3.0]] * 3],
        "a position does not see itself: it attends to itself and to those before it": [
            [[0.0, 0.0], [2.0, 0.0], [3.0, 3.0]]
        ],
        "the mask is turned round: positions see those after them": [[[2.0, 3.0], [2.0, 4.5], [0.0, 3.0]]],
        "each position sees the next one too: it sees itself and those before it": [
            [[3.0, 3.0], [2.0, 3.0], [2.0, 3.0]]
        ],
        "the values are rotated too: they carry content, not position": [
            [[2.0, 0.0], [1 + one[0] / 2, one[1] / 2], [(2 + one[0] + two[0]) / 3, (one[1] + two[1]) / 3]]
        ],
    }
    name = "the output when all scores are 0, the running mean of the positions,"
    expect_close(y, torch.tensor([[[2.0, 0.0], [3.0, 3.0], [2.0, 3.0]]]), name, _as_causes(wrong), tolerance=1e-4)

    keys, values = expect_cache(cache)
    turned = torch.tensor([[[[2.0, 0.0], one, two]]])
    back = [[2.0, 0.0], [4 * cos + 6 * sin, 6 * cos - 4 * sin], [3 * math.sin(2), 3 * math.cos(2)]]
    wrong = {
        "keys are not rotated": [[x[0].tolist()]],
        "keys are rotated the wrong way": [[back]],
    }
    expect_close(keys, turned, "the keys in the cache", _as_causes(wrong), tolerance=1e-4)
    expect_close(values, x.unsqueeze(1), "the values in the cache", tolerance=1e-4)

    rest, new = _in_two(attention, x)
    wrong = {
        "the cache is not used: the new positions see only themselves": [[[4.0, 6.0], [2.0, 4.5]]],
        "the new positions see each other without a mask: each sees itself and those before it": [[[2.0, 3.0]] * 2],
        "the new positions' mask is laid over the oldest keys: new position i sees the keys up to t + i": [
            [[2.0, 0.0], [3.0, 3.0]]
        ],
        "the newest keys and values come before the older ones: join them behind": [[[2.0, 4.5], [2.0, 3.0]]],
    }
    name = "the running mean of positions 1 and 2, given the cache of position 0,"
    expect_close(rest, torch.tensor([[[3.0, 3.0], [2.0, 3.0]]]), name, _as_causes(wrong), tolerance=1e-4)
    causes = {
        "the older positions are lost: join the new ones to the cache": lambda: turned[:, :, 1:],
        "the positions start from 0 again: with a cache of t positions they go on with t": lambda: torch.tensor(
            [[[[2.0, 0.0], [4.0, 6.0], [-3 * sin, 3 * cos]]]]
        ),
        "the newest come first: join them behind the older ones": lambda: turned.roll(-1, 2),
    }
    expect_close(new[0], turned, "the keys in the new cache", causes, tolerance=1e-4)

    attention = _attention(cls, 1.0)
    whole, _ = expect_pair(call(attention, x), "CausalSelfAttention", "(y, cache)")
    rest, _ = _in_two(attention, x)
    expect_close(rest, whole[:, 1:], "the output of positions 1 and 2, given the cache of position 0,", tolerance=1e-4)


def _in_two(attention: nn.Module, x: Tensor) -> tuple[Tensor, Pair]:
    """What two calls give, the first with one position: the output of the others, and the cache of all."""
    _, cache = expect_pair(call(attention, x[:, :1]), "CausalSelfAttention", "(y, cache)")
    old = expect_cache(cache)
    with unchanged(**{"the keys in the cache": old[0], "the values in the cache": old[1]}):
        rest, new = expect_pair(call(attention, x[:, 1:], cache), "CausalSelfAttention", "(y, cache)")
    return rest, expect_cache(new)


@visible("parameters and shapes, that the future changes nothing, and the same scores in one go and in two")
def LanguageModel(cls: Callable) -> None:
    """A small model: shapes, causality, caches."""
    model = call(cls, 7, 4, 2, 2, 5)
    shapes = {"embedding.weight": (7, 4), "norm.weight": (4,)}
    for layer in ("layers.0", "layers.1"):
        shapes |= {f"{layer}.attention.{name}.weight": (4, 4) for name in ("Wq", "Wk", "Wv", "WO")}
        shapes |= {f"{layer}.{name}.weight": (4,) for name in ("norm_1", "norm_2")}
        shapes |= {f"{layer}.feed_forward.{name}.weight": (5, 4) for name in ("gate", "up")}
        shapes |= {f"{layer}.feed_forward.down.weight": (4, 5)}
    hint = "`embedding`, `layers` (an nn.ModuleList of `depth` Layers), `norm`; the output uses the embedding's weight"
    expect_weights(model, shapes, hint)
    tokens = torch.tensor([[3, 1, 4, 1], [5, 6, 2, 0]])
    with unchanged(tokens=tokens):
        logits, caches = expect_pair(call(model, tokens), "LanguageModel", "(logits, caches)")
    expect_tensor(logits, (2, 4, 7), name="the logits")
    assert isinstance(caches, list | tuple) and len(caches) == 2, "`caches` should be a list with one cache a layer"
    other = torch.cat((tokens[:, :3], (tokens[:, 3:] + 1) % 7), dim=1)
    changed, _ = expect_pair(call(model, other), "LanguageModel", "(logits, caches)")
    expect_close(changed[:, :3], logits[:, :3], "the logits before a token that was changed", tolerance=1e-4)
    _, caches = expect_pair(call(model, tokens[:, :2]), "LanguageModel", "(logits, caches)")
    rest, _ = expect_pair(call(model, tokens[:, 2:], caches), "LanguageModel", "(logits, caches)")
    expect_close(rest, logits[:, 2:], "the logits of two positions, given the caches of those before,", tolerance=1e-4)


def make_table_model(table):
    """A model whose scores depend on the last token alone: row `token` of the table."""

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", table)

        def forward(self, tokens, caches=None):
            return self.table[tokens], caches

    return Table()


@visible("the worked example: probabilities 1/2, 1/4 and 1/8 have the perplexity 4")
def perplexity(function: Callable) -> None:
    """Three real predictions with probabilities 1/2, 1/4 and 1/8."""
    eighths = [[2, 4, 1, 1], [4, 1, 2, 1], [1, 5, 1, 1], [1, 2, 4, 1]]
    model = place(make_table_model, beside=function)((torch.tensor(eighths) / 8).log())
    tokens = torch.tensor([[0, 1, 3, 3], [1, 2, 0, 3]])  # 3 is padding
    with unchanged(tokens=tokens):
        value = call(function, model, tokens, 3)
    logs = [math.log(2), math.log(4), math.log(8)]  # 0 then 1; 1 then 2; 2 then 0
    wrong = {
        "this is the mean loss: perplexity is exp of it": lambda: sum(logs) / 3,
        "this is exp of the sum: take the mean over the real tokens first": lambda: math.exp(sum(logs)),
        "padding counts: leave out the positions whose target is `pad_id`": lambda: math.exp(
            (sum(logs) + 3 * math.log(8)) / 6
        ),
        "padding is zeroed but still counted: divide by the number of real tokens": lambda: math.exp(sum(logs) / 6),
        "the mean of 1/p: perplexity is exp of the mean of -log p": lambda: (2 + 4 + 8) / 3,
        "2 to the power of a loss in natural logarithms: use exp": lambda: 2 ** (sum(logs) / 3),
        "the sum is divided by the number of sentences, not of real tokens": lambda: math.exp(sum(logs) / 2),
        "each token is compared with its own scores, not with those of the position before it": lambda: 2**2.6,
        "the first token is counted among those predicted: nothing predicts it": lambda: math.exp(sum(logs) / 5),
        "the mean of each sentence's perplexity: take the mean of the losses of all tokens, then exp": lambda: (
            1 + 32**0.5 / 2
        ),
        "a mean for each sentence, then the mean of those: every real token counts alike": lambda: math.exp(
            (logs[0] + (logs[1] + logs[2]) / 2) / 2
        ),
    }
    expect_number(value, 4.0, "the perplexity", wrong)


def _why_drawn(settings: dict[str, Any], wanted: set[int], found: set[int]) -> str:
    """The likely cause of drawing from these tokens."""
    if 0 not in found:
        cause = "the likeliest token is left out: sort from the likeliest down, and keep the first ones"
    elif found > wanted:
        name = "top_k" if "top_k" in settings else "top_p"
        cause = f"`{name}` is not used, or leaves more tokens than it should"
    elif "temperature" in settings:
        cause = "`top_p` reads the probabilities from before the temperature: divide first"
    elif "top_p" in settings:
        cause = "the token with which the sum crosses `top_p` is left out: it stays"
    else:
        return ""
    return f". Likely cause: {cause}"


@visible("greedy at temperature 0, the sets that top_k and top_p leave, and a generator that decides the draw")
def sample_next(function: Callable) -> None:
    """Probabilities 1/2, 1/4, 1/8, 1/8."""
    logits = torch.tensor([4.0, 2.0, 1.0, 1.0]).log().expand(2000, 4).clone()

    def drawn(**settings: Any) -> Tensor:
        with unchanged(logits=logits):
            tokens = call(function, logits, **settings)
        expect_tensor(tokens, (2000,), name=f"the tokens drawn with {settings or 'no setting'}")
        assert not tokens.is_floating_point(), "tokens should be integers"
        return tokens

    assert set(drawn(temperature=0).tolist()) == {0}, "temperature 0 should give the likeliest token, always"
    share = (drawn(temperature=0.5) == 0).double().mean().item()
    # At temperature 1/2 the weights are squared: 16 of 22.
    shares = {
        1.0: "always the likeliest token: draw",
        0.25: "all tokens are equally likely: draw by their probabilities",
        0.5: "`temperature` is not used",
        0.37: "the logits are multiplied by the temperature: divide",
    }
    cause = next((f". Likely cause: {c}" for value, c in shares.items() if abs(share - value) < 0.05), "")
    assert abs(share - 16 / 22) < 0.07, (
        f"at temperature 0.5 the likeliest token should come in 73 % of the draws, it came in {share:.0%}{cause}"
    )
    for settings, wanted in (
        ({}, {0, 1, 2, 3}),
        ({"top_k": 2}, {0, 1}),
        ({"top_k": 9}, {0, 1, 2, 3}),
        ({"top_p": 0.45}, {0}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 0.45, "temperature": 2.0}, {0, 1}),
    ):
        found = set(drawn(**settings).tolist())
        assert found == wanted, (
            f"2,000 draws with {settings} should give the tokens {wanted}, they gave {found}"
            f"{_why_drawn(settings, wanted, found)}"
        )
    first, again = (drawn(generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, again), "two draws with generators of the same seed differ: pass `generator` on"
    expect_raises(ValueError, lambda: function(logits, temperature=-1.0), "a temperature of -1")
    expect_raises(ValueError, lambda: function(logits, top_k=0), "top_k=0")
    expect_raises(ValueError, lambda: function(logits, top_p=1.5), "top_p=1.5")


def make_counting_model(size, most):
    """A model that counts: after token t comes t + 1, and after size - 1 comes 0. It counts positions computed too."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.computed = 0

        def forward(self, tokens, caches=None):
            self.computed += tokens.numel()
            past = 0 if caches is None else caches[0]
            if self.computed > most:  # tired: whoever computes positions twice gets another answer
                tokens = tokens + 1
            return F.one_hot((tokens + 1) % size, size).float() * 50.0, [past + tokens.shape[1]]

    return Counting()


# What each mistake gives for the prompts [2, 3] and [3, 4], with length=3: without `eos_id`, and with eos_id=5.
_GENERATED_WRONGLY = {
    None: {
        "positions are computed again and again: hand the caches on, and with them the newest token alone": (
            [[2, 3, 4, 5, 1], [3, 4, 5, 0, 2]]
        ),
        "one token too few is written": [[2, 3, 4, 5], [3, 4, 5, 0]],
        "one token too many is written": [[2, 3, 4, 5, 0, 1], [3, 4, 5, 0, 1, 2]],
        "the prompt is counted in `length`, which is the number of new tokens": [[2, 3, 4], [3, 4, 5]],
        "the scores of the first position are read: those of the last one tell of the next token": (
            [[2, 3, 3, 4, 5], [3, 4, 4, 5, 0]]
        ),
        "the first row's tokens are written to all rows": [[2, 3, 4, 5, 0], [3, 4, 4, 5, 0]],
    },
    5: {
        "a row that has ended goes on: fill it with `eos_id`": [[2, 3, 4, 5], [3, 4, 5, 0]],
        "it goes on after all rows have ended": [[2, 3, 4, 5, 5], [3, 4, 5, 5, 5]],
        "it stops when the first row has ended: go on until all have": [[2, 3, 4], [3, 4, 5]],
        "`eos_id` is not used": [[2, 3, 4, 5, 0], [3, 4, 5, 0, 1]],
    },
}


@visible("the prompt goes on as the model says, rows that have ended stay ended, each position is computed once")
def generate(function: Callable) -> None:
    """After 2 and 3 come 4, 5 and 0; the second row ends at once."""
    prompt = torch.tensor([[2, 3], [3, 4]])
    for eos_id, wanted in ((None, [[2, 3, 4, 5, 0], [3, 4, 5, 0, 1]]), (5, [[2, 3, 4, 5], [3, 4, 5, 5]])):
        model = place(make_counting_model, beside=function)(6, 10)
        with unchanged(prompt=prompt):
            tokens = call(function, model, prompt, 3, eos_id=eos_id, temperature=0)
        expect_tensor(tokens, name="the result of generate")
        wrong = {
            "the prompt is left out: the result begins with it": lambda w=wanted: torch.tensor(w)[:, 2:],
            **{why: lambda r=rows: torch.tensor(r) for why, rows in _GENERATED_WRONGLY[eos_id].items()},
        }
        expect_close(tokens, torch.tensor(wanted), f"the tokens for eos_id={eos_id}", wrong)
