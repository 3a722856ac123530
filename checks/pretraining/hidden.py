"""Hidden tests of chapter 12."""

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.checks import (
    Common,
    Mistake,
    call,
    complain,
    draw_size,
    expect,
    expect_close,
    expect_device,
    expect_drawn_from_generator,
    expect_gradients,
    expect_parameter_gradients,
    expect_parameters,
    expect_raises,
    expect_tensor,
    expect_trained,
    named_parameters,
    place,
    randint,
    randn,
    randomise,
    set_weights,
    unchanged,
)
from checks.chance import drawn_between, drawn_medium, drawn_wide, likely_counts
from checks.pretraining import mistakes as m
from checks.pretraining.visible import (
    expect_body,
    expect_frozen,
    expect_groups,
    expect_indices,
    expect_merged,
    expect_rows_unchanged,
    expect_two,
    expect_zeros,
    linear_is_kept,
    make_linear,
    make_mixing_body,
    make_table_body,
)

# ---- pack


def _packed(rows: list[list[int]], length: int, eos_id: int) -> Tensor:
    joined = [token for row in rows for token in [*row, eos_id]]
    blocks = [joined[k : k + length] for k in range(0, len(joined) - length + 1, length)]
    return torch.tensor(blocks, dtype=torch.int64).reshape(-1, length)


def check_pack(function: Callable) -> None:
    """Texts of many lengths, blocks longer and shorter than they, nothing left over and nearly a block left over."""
    expect_rows_unchanged(function)
    rows = [randint(0, 50, (length,)).tolist() for length in (draw_size(3, 60), 0, draw_size(3, 60), 2)]
    expect_rows_unchanged(function, rows, draw_size(2, 20))
    # A text may end in that number, and be the same as the one before it; with 14 tokens no block is lost by these.
    rows = [[7, 8, 60], [9, 8], [9, 8], [60], [int(randint(0, 50, ()))]]
    expect_close(call(function, rows, 5, 60), _packed(rows, 5, 60), "the blocks", dtype=torch.int64, asked=f"{rows}")
    for texts, longest, length, eos_id in (
        (5, 9, 4, 2),
        (1, 6, 1, 0),
        (7, 3, 20, 11),
        (3, 0, 2, 5),
        (0, 3, 4, 1),
        (draw_size(40, 90), draw_size(10, 250), draw_size(3, 40), draw_size(100, 30_000)),
        (drawn_wide(12, 39), draw_size(400, 600), draw_size(41, 99), draw_size(100, 30_000)),
        (draw_size(150, 300), draw_size(300, 600), draw_size(401, 1000), draw_size(30_000, 10**6)),
        (draw_size(3200, 9000), draw_size(5, 12), draw_size(100, 400), draw_size(100, 30_000)),
        (draw_size(2, 4), 20_000, draw_size(1000, 2000), draw_size(30_000, 10**6)),
    ):
        # Numbers that neither float32 nor int32 has, where texts are long.
        most = 50 if texts < 40 and longest < 10 else 2 ** draw_size(34, 60)
        drawn, lengths = randint(0, most, (texts, longest)).tolist(), randint(0, longest + 1, (texts,)).tolist()
        rows = [row[:end] for row, end in zip(drawn, lengths, strict=True)]
        for row in rows[: longest and 1]:
            row.insert(0, eos_id)  # which may stand within a text, too
        asked = f"{len(rows)} texts, {sum(map(len, rows))} tokens together, length {length} and eos_id {eos_id}"
        right = _packed(rows, length, eos_id)
        blocks = call(function, rows, length, eos_id)
        told = {"expected": torch.int64, "got": getattr(blocks, "dtype", None)}
        expect(told["got"] != torch.float32 or right.numel(), m.pack.EMPTY_FLOAT, "the blocks", asked=asked, **told)
        expect_close(blocks, right, "the blocks", dtype=torch.int64, asked=asked)
    for surplus in (0, 1, 6):  # of one token more or less than fills blocks of 7
        rows = [randint(0, 50, (14 + surplus - 2,)).tolist(), [], randint(0, 50, (6,)).tolist()]
        total = sum(map(len, rows)) + 3
        asked = f"{total} tokens with the ends, and length 7"
        expect_close(call(function, rows, 7, 60), _packed(rows, 7, 60), "the blocks", dtype=torch.int64, asked=asked)
    for length in (0, -draw_size(1, 60)):
        expect_raises(ValueError, partial(function, [[1, 2]], length, 9), f"length={length}")


# ---- mask_tokens


# (B, n, vocabulary, special tokens): special numbers in the middle, at the end, at the beginning.
_VOCABULARIES = ((200, 300, 900, 4), (300, 150, 700, 7), (1, 40_000, 800, 1), (40_000, 1, 600, 12))
# Replaced tokens in places of one row that are the same by chance, of hundreds of pairs in a vocabulary of thousands.
_FEW = 8
# Calls in which as many are chosen, or have one fate, in fewer than 1 of 10^15 runs.
_DEALT = 16


def _given_generator() -> dict[str, torch.Generator]:
    """A generator as an argument."""
    return {"generator": torch.Generator().manual_seed(draw_size(0, 10**9))}


def check_mask_tokens(function: Callable) -> None:
    """Which may be chosen, how many are, the three fates, that places are drawn one by one, the generator.

    A right answer is turned down less than once in a million runs: of some hundred counts each is outside its bounds
    with a probability of 2 · FALSE.
    """
    _check_apart(function)
    _check_many(function)
    for generator in (False, True):
        _check_alone(function, generator)
    _check_dealing(function)
    for batch, n, vocab, kinds in _VOCABULARIES:
        _check_fates(function, batch, n, vocab, kinds, drawn_between(0.1, 0.9))
    _check_fates(function, 200, 200, draw_size(3000, 30_000), draw_size(9, 40), drawn_between(0.01, 0.09))
    _check_fates(function, 200, 200, 600, 3, None)
    _check_fates(function, 200, 300, draw_size(600, 3000), draw_size(2, 9), drawn_between(0.1, 0.9), generator=True)
    _check_fates(function, 200, 200, 600, 3, None, generator=True)
    _check_fates(function, 100, 100, 600, draw_size(60, 300), drawn_between(0.92, 0.98))
    _check_fates(function, 100, 400, 600, 3, drawn_between(0.002, 0.006))
    _check_vocabulary(function)
    _check_generator(function)
    nothing = randint(5, 60, (3, 1))
    with unchanged(tokens=nothing):
        inputs, chosen = expect_two(call(function, nothing, 2, 60, [0, 1, 2], 0.0))
    asked = "a share of 0"
    expect_close(inputs, nothing, "the tokens to read", asked=asked, otherwise=m.mask_tokens.OTHERS_CHANGED)
    expect(not chosen.any(), m.mask_tokens.SHARE, asked=asked)
    special = torch.full((2, 3), 2)
    inputs, chosen = expect_two(call(function, special, 2, 60, [0, 1, 2], 1.0))
    asked = "a text of special tokens alone, and a share of 1"
    expect(not chosen.any(), m.mask_tokens.SPECIAL_CHOSEN, asked=asked)
    expect_close(inputs, special, "the tokens to read", asked=asked)


def _special(vocab: int, kinds: int) -> list[int]:
    """Special numbers from anywhere in the vocabulary."""
    return (randn(vocab).argsort()[:kinds]).tolist()


def _within(count: int, of: int, share: float) -> bool:
    low, high = likely_counts(of, share)
    return low <= count <= high


def _check_fates(
    function: Callable, batch: int, n: int, vocab: int, kinds: int, share: float | None, generator: bool = False
) -> None:
    known, special = m.mask_tokens, _special(vocab, kinds)
    tokens = randint(0, vocab, (batch, n))
    sharing = () if share is None else (share,)
    mask_id = special[int(randint(0, kinds, ()))]
    chance = _given_generator() if generator else {}
    with unchanged(tokens=tokens):
        inputs, chosen = expect_two(call(function, tokens, mask_id, vocab, special, *sharing, **chance))
    share = 0.15 if share is None else share
    asked = f"tokens {(batch, n)}, a vocabulary of {vocab}, {kinds} special tokens and share {share:g}"
    asked += ", and a generator" * generator
    expect_tensor(inputs, (batch, n), torch.int64, "the tokens to read", asked)
    expect_tensor(chosen, (batch, n), torch.bool, "`chosen`", asked)
    ordinary = ~torch.isin(tokens, torch.tensor(special))
    expect(not (chosen & ~ordinary).any(), known.SPECIAL_CHOSEN, asked=asked)
    expect(not ((inputs != tokens) & ~chosen).any(), known.OTHERS_CHANGED, asked=asked)
    count, of = int(chosen.sum()), int(ordinary.sum())
    told = {"expected": f"about {share:.3g}", "got": f"{count / of:.3g}"}
    # Numbers below the largest special one are no special tokens.
    low = ordinary & (tokens < max(special))
    skipped = share * int(low.sum()) > 100 and chosen.any() and not (chosen & low).any()
    expect(not skipped, known.FIRST_IDS, "the tokens chosen", asked=asked)
    mistake = known.SHARE if sharing else known.SHARE_DEFAULT
    expect(_within(count, of, share), mistake, "the share of the tokens chosen", asked=asked, **told)
    masked = (inputs == mask_id)[chosen]
    stays = (inputs == tokens)[chosen]
    other = ~masked & ~stays
    expect(not torch.isin(inputs[chosen][other], torch.tensor(special)).any(), known.SPECIAL_DRAWN, asked=asked)
    _expect_fates(masked, other, stays, 1 / (vocab - kinds), asked)


def _expect_fates(masked: Tensor, other: Tensor, stays: Tensor, again: float, asked: str) -> None:
    """80, 10 and 10 % of the tokens chosen have each fate; a drawn one is `again` so often the one that was there."""
    count = len(masked)
    got = [round(part.double().mean().item(), 3) for part in (masked, other, stays)]
    # The bounds of both hold: one that never draws the token that was there is right, too.
    fits = _within(int(masked.sum()), count, 0.8)
    fits &= any(_within(int(other.sum()), count, 0.1 * (1 - p)) for p in (0.0, again))
    fits &= any(_within(int(stays.sum()), count, 0.1 * (1 + p)) for p in (0.0, again))
    what = "the shares of masked, replaced and unchanged tokens among the chosen"
    expect(fits, m.mask_tokens.FATES, what, asked=asked, expected=[0.8, 0.1, 0.1], got=got)


def _check_vocabulary(function: Callable) -> None:
    """All tokens but the special ones are put in others' places, the first and last too, and about equally often."""
    known, vocab, special = m.mask_tokens, 24, [i + 1 for i in _special(22, 5)]
    tokens = torch.full((100, 400), next(i for i in range(10, vocab) if i not in special))
    inputs, chosen = expect_two(call(function, tokens, special[0], vocab, special, 1.0))
    masked, stays = (inputs == special[0])[chosen], (inputs == tokens)[chosen]
    drawn = inputs[chosen][~masked & ~stays]
    told = {"expected": f"at most {vocab - 1}", "got": drawn.max() if len(drawn) else 0}
    expect(((drawn >= 0) & (drawn < vocab)).all(), known.OUTSIDE, "the largest token", **told)
    expect(not torch.isin(drawn, torch.tensor(special)).any(), known.SPECIAL_DRAWN)
    counts = drawn.bincount(minlength=vocab)
    missing = [i for i in range(vocab) if i not in special and i != int(tokens[0, 0]) and counts[i] == 0]
    mistake = known.ONE_TOKEN if int((counts > 0).sum()) <= 1 else known.TOKENS_MISSING
    told = {"expected": f"{vocab - 6} different ones", "got": f"{int((counts > 0).sum())}"}
    expect(not missing, mistake, "the tokens put in others' places", **told)
    even = all(_within(int(counts[i]), len(drawn), 1 / (vocab - 6)) for i in range(vocab) if counts[i])
    # A draw of a special token must not be made up for by a mask, or by the token that was there.
    _expect_fates(masked, ~masked & ~stays, stays, 1 / (vocab - 5), f"a vocabulary of {vocab}, 5 of them special")
    expect(even, known.UNEVEN, "how often each token is put in another's place", got=counts[counts > 0].tolist())


def _check_apart(function: Callable) -> None:
    """Places are drawn one by one: rows differ, and so do their counts."""
    known = m.mask_tokens
    tokens = randint(5, 600, (60, 80))
    with unchanged(tokens=tokens):
        _, chosen = expect_two(call(function, tokens, 2, 600, [0, 1, 2], 0.5))
    expect(not (chosen == chosen[:1]).all(), known.SAME_PLACES)
    expect(not (chosen == chosen[:, :1]).all(), known.TOGETHER, "all tokens of a row")
    expect(len(chosen.unique(dim=0)) == len(chosen), known.SAME_PLACES)
    counts = chosen.sum(1)
    expect(len(counts.unique()) > 1, known.ALWAYS_AS_MANY, "the number chosen in each row", got=counts)
    counts = chosen.sum(0)
    expect(len(counts.unique()) > 1, known.ALWAYS_AS_MANY, "the number chosen in each column", got=counts)


def _check_alone(function: Callable, generator: bool) -> None:
    """Each place by itself: no place and no token has a share of its own, and none has its neighbour's lot."""
    known, vocab, kinds = m.mask_tokens, draw_size(10_000, 40_000), 4
    share, special = drawn_between(0.3, 0.7), _special(vocab, kinds)
    pool = [token for token in _special(vocab, 5 + kinds) if token not in special][:5]
    tokens = torch.tensor(pool)[randint(0, len(pool), (draw_size(400, 600), draw_size(20, 40)))]
    chance = _given_generator() if generator else {}
    inputs, chosen = expect_two(call(function, tokens, special[1], vocab, special, share, **chance))
    asked = f"tokens {tuple(tokens.shape)} and share {share:g}" + ", and a generator" * generator
    expect_tensor(inputs, tokens.shape, torch.int64, "the tokens to read", asked)
    expect_tensor(chosen, tokens.shape, torch.bool, "`chosen`", asked)
    masked = inputs == special[1]
    places = [(f"in column {i}", torch.arange(tokens.shape[1]) == i) for i in range(tokens.shape[1])]
    for where, here in (*places, *((f"of the token {token}", tokens == token) for token in pool)):
        here = here.expand_as(tokens)
        count, of = int(chosen[here].sum()), int(here.sum())
        got = f"{count} of {of}"
        expect(_within(count, of, share), known.SHARE, f"the tokens chosen {where}", asked=asked, got=got)
        got = f"{int(masked[here & chosen].sum())} of {count}"
        fair = _within(int(masked[here & chosen].sum()), count, 0.8)
        expect(fair, known.FATES, f"those that become `mask_id`, of the tokens chosen {where}", asked=asked, got=got)
    for lots, all_of, chance, mistake in (
        (chosen, torch.ones_like(chosen), share, known.TOGETHER),
        (masked, chosen, 0.8, known.FATES_TOGETHER),
    ):
        for one, other in _neighbours(lots, all_of):
            alike, of = int((one == other).sum()), len(one)
            told = {"expected": f"about {chance**2 + (1 - chance) ** 2:.2f}", "got": f"{alike / max(of, 1):.2f}"}
            fair = _within(alike, of, chance**2 + (1 - chance) ** 2)
            expect(fair, mistake, "the share of pairs of neighbours with the same lot", asked=asked, **told)
    new = torch.where(chosen & ~masked & (inputs != tokens), inputs, -1 - torch.arange(tokens.shape[1])).sort(1).values
    repeated = int((new[:, 1:] == new[:, :-1]).sum())
    told = {"expected": f"at most {_FEW}", "got": f"{repeated}"}
    drawn = inputs[chosen & ~masked & (inputs != tokens)]
    own = len(drawn.unique()) > 1 and bool(torch.isin(drawn, tokens).all())  # only tokens that the texts hold
    mistake = known.TOKENS_MISSING if own else known.ONE_TOKEN
    expect(repeated <= _FEW, mistake, "tokens put into two places of one row", asked=asked, **told)
    ordinary = ~torch.isin(torch.arange(vocab), torch.tensor(special))
    for k in range(4):
        here = slice(k * vocab // 4, (k + 1) * vocab // 4)
        count = int(((drawn >= here.start) & (drawn < here.stop)).sum())
        told = {"expected": f"about {len(drawn) // 4}", "got": f"{count} of {len(drawn)}"}
        fair = _within(count, len(drawn), int(ordinary[here].sum()) / (vocab - kinds))
        what = f"the tokens from {here.start} to {here.stop - 1} put in others' places, of a vocabulary of {vocab}"
        expect(fair, known.TOKENS_MISSING, what, asked=asked, **told)


def _check_many(function: Callable) -> None:
    """Places of a text by itself, and of many texts: none is left out, and no two texts have the same lots."""
    known = m.mask_tokens
    # A text by itself: each of its places is chosen now and then.
    texts = [randint(5, 600, (1, 12)) for _ in range(99)]
    alone = torch.cat([expect_two(call(function, tokens, 2, 600, [0, 1, 2], 0.5))[1] for tokens in texts])
    expect(not (alone == alone[:1]).all(), Common.FIXED_SEED, f"the places chosen in {len(alone)} texts of 12 tokens")
    told = {"expected": "about 50 of 99", "got": alone.sum(0)}
    fair = all(_within(int(count), len(alone), 0.5) for count in alone.sum(0))
    expect(fair, known.SHARE, "how often each place of a text by itself is chosen", **told)
    # Many texts: no two get the same places, or masks where all are chosen, and no column one new token.
    share, vocab = drawn_between(0.3, 0.7), draw_size(10_000, 40_000)
    tokens = randint(5, vocab, (draw_size(400, 600), draw_size(90, 120)))
    inputs, chosen = expect_two(call(function, tokens, 2, vocab, [0, 1, 2], share))
    expect(len(chosen.unique(dim=0)) == len(chosen), known.SAME_PLACES, "two rows of many")
    inputs, chosen = expect_two(call(function, tokens, 2, vocab, [0, 1, 2], 1.0))
    expect(chosen.all(), known.SHARE, asked="a share of 1")
    expect((inputs == 2).any(), known.NEVER_MASK)
    expect(not (inputs == 2).all(), known.ALWAYS_MASK)
    expect(len((inputs == 2).unique(dim=0)) == len(inputs), known.FATES_TOGETHER, "two rows of many")
    alone = -1 - torch.arange(len(inputs))[:, None]
    new = torch.where((inputs != 2) & (inputs != tokens), inputs, alone).sort(0).values
    repeated = (new[1:] == new[:-1]).sum(0)
    told = {"expected": f"at most {_FEW}", "got": f"{int(repeated.max())}"}
    expect(repeated.max() <= _FEW, known.ONE_TOKEN, "tokens put into two places of one column", **told)


def _neighbours(lots: Tensor, kept: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The lots of pairs of places, none of which is in two pairs, beside and below each other, if both are kept."""
    for turned, among in ((lots, kept), (lots.T, kept.T)):
        for first in (0, 1):
            columns = (turned.shape[1] - first) // 2 * 2
            (one, other), (a, b) = (
                part[:, first : first + columns].unflatten(1, (-1, 2)).unbind(2) for part in (turned, among)
            )
            yield one[a & b], other[a & b]


def _check_dealing(function: Callable) -> None:
    """How many are chosen, and become `mask_id`, differs from call to call; with a share of 1 all are chosen."""
    known, tokens = m.mask_tokens, randint(5, 5000, (10, 10))
    drawn = [expect_two(call(function, tokens, 2, 5000, [4, 2, 0, 1, 3], 1.0)) for _ in range(_DEALT)]
    expect(
        all(chosen.all() for _, chosen in drawn), known.SHARE, "the share of the tokens chosen", asked="a share of 1"
    )
    expect(not all(torch.equal(inputs, drawn[0][0]) for inputs, _ in drawn), Common.FIXED_SEED)
    counts = [int((inputs == 2).sum()) for inputs, _ in drawn]
    told = {"expected": "different numbers, about 80", "got": f"{counts[0]} in each of {_DEALT} calls"}
    expect(len(set(counts)) > 1, known.DEALT, "those of 100 tokens that become `mask_id`", **told)
    halves = [expect_two(call(function, tokens, 2, 5000, [4, 2, 0, 1, 3], 0.5)) for _ in range(_DEALT)]
    counts = [int(chosen.sum()) for _, chosen in halves]
    told = {"expected": "different numbers, about 50", "got": f"{counts[0]} in each of {_DEALT} calls"}
    expect(len(set(counts)) > 1, known.ALWAYS_AS_MANY, "those of 100 tokens that are chosen", **told)


def _check_generator(function: Callable) -> None:
    tokens, vocab, special, share = randint(0, 600, (20, 50)), 600, _special(600, 4), drawn_between(0.3, 0.9)

    def run(generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        chance = {} if generator is None else {"generator": generator}
        return expect_two(call(function, tokens, special[0], vocab, special, share, **chance))

    expect_drawn_from_generator(run, function, f"tokens {tuple(tokens.shape)} and share {share:g}")


# ---- ReviewClassifier


def _judge(state: dict[str, Tensor], tokens: Tensor, pad_id: int) -> Tensor:
    read = state["body.table.weight"][tokens] * (1 + torch.arange(tokens.shape[1])).unsqueeze(1)
    kept = (tokens != pad_id).unsqueeze(-1)
    mean = (read * kept).sum(1) / kept.sum(1).clamp(min=1)
    return F.linear(mean, state["head.weight"], state["head.bias"]).log_softmax(-1)


def _judge_mixed(state: dict[str, Tensor], tokens: Tensor, pad_id: int, read: Tensor | None = None) -> Tensor:
    """What a body says that adds the mean of a text's real tokens, where it may be handed others, `read`."""
    table, read = state["body.table.weight"], tokens if read is None else read
    kept, real = (tokens != pad_id).unsqueeze(-1), (read != pad_id).unsqueeze(-1)
    around = (table[read] * real).sum(1) / real.sum(1).clamp(min=1)
    mean = (table[read] * kept).sum(1) / kept.sum(1).clamp(min=1) + around * kept.any(1)
    return F.linear(mean, state["head.weight"], state["head.bias"]).log_softmax(-1)


def _check_mixed(cls: Callable) -> None:
    """A body that looks at all real tokens of a text: what it is handed are the tokens themselves."""
    vocab, dim, classes, pad_id = 40, 6, 4, draw_size(2, 39)
    body = place(make_mixing_body, beside=cls)(vocab, dim, pad_id)
    model = call(cls, body, dim, classes, pad_id)
    state = randomise(
        model,
        {"body.table.weight": (vocab, dim), "head.weight": (classes, dim), "head.bias": (classes,)},
        torch.float64,
    )
    tokens = _texts(5, 9, vocab, pad_id)
    y, right = call(model.eval(), tokens), _judge_mixed(state, tokens, pad_id)
    asked = f"a body that looks at all real tokens, tokens (5, 9) and pad_id {pad_id}"
    read = tokens.masked_fill(tokens == pad_id, 0)
    rival = {m.ReviewClassifier.OTHER_TOKENS: partial(_judge_mixed, state, tokens, pad_id, read)}
    expect_close(y, right, "the result", rival, torch.float64, asked=asked)


def _texts(batch: int, n: int, vocab: int, pad_id: int) -> Tensor:
    """Rows of different lengths, one with nothing but padding where there are three or more."""
    tokens = randint(0, vocab - 1, (batch, n))
    tokens = tokens + (tokens >= pad_id)
    for row in range(1, batch):
        tokens[row, n - row * n // batch :] = pad_id
    if batch > 2:
        tokens[-1] = pad_id
    return tokens


def check_review_classifier(cls: Callable) -> None:
    """Parameters, values, padding, gradients; the body itself is kept, and handed the tokens as they are."""
    for vocab, dim, classes, pad_id, shapes in (
        (9, 4, 3, 5, ((3, 6), (1, 1), (5, 2))),
        (6, 3, 2, 0, ((2, 7),)),
        (30, 1, 4, 1, ((4, 3), (1, 9))),
        (30, 2, 1, 1, ((4, 3),)),
        (
            draw_size(100, 300),
            draw_size(5, 70),
            draw_size(2, 9),
            draw_size(20, 90),
            ((draw_size(6, 20), draw_size(70, 200)),),
        ),
        (
            draw_size(1000, 3000),
            draw_size(130, 260),
            drawn_wide(11, 120),
            draw_size(100, 900),
            (
                (draw_size(2, 4), draw_size(520, 640)),
                (draw_size(70, 200), draw_size(2, 9)),
                (draw_size(21, 69), draw_size(10, 69)),
                (2, draw_size(201, 519)),
                (2, draw_size(641, 3000)),
            ),
        ),
    ):
        body = place(make_table_body, beside=cls)(vocab, dim)
        model = call(cls, body, dim, classes, pad_id)
        promised = {"body.table.weight": (vocab, dim), "head.weight": (classes, dim), "head.bias": (classes,)}
        expect_parameters(model, promised, {"body": m.ReviewClassifier.BODY_LEFT_OUT})
        expect_body(cls, model, body)
        for dtype in (torch.float32, torch.float64):
            state = randomise(model, promised, dtype)
            if vocab > 300:  # whose scores would be so far apart that a softmax has zeros
                state["body.table.weight"] /= 128
                set_weights(model, state, dtype)
            model.eval()
            for batch, n in shapes:
                tokens = _texts(batch, n, vocab, pad_id)
                with unchanged(tokens=tokens):
                    y = call(model, tokens)
                asked = f"tokens {(batch, n)}, {classes} classes and pad_id {pad_id}"
                expect_tensor(y, name="the result", asked=asked)
                empty = (tokens == pad_id).all(1)
                expect(
                    not (y[empty].isnan().any() if y.shape[0] == batch else False),
                    m.ReviewClassifier.EMPTY_ROW,
                    asked=asked,
                )
                right = _judge(state, tokens, pad_id)
                bare = torch.where(empty.unsqueeze(1), -math.log(classes), right)  # scores of 0 for padding alone
                rivals = {
                    m.ReviewClassifier.SCORES_AVERAGED: partial(torch.clone, bare),
                    m.ReviewClassifier.PAD_IS_1: partial(_judge, state, tokens, 1),
                    m.ReviewClassifier.PAD_IS_0: partial(_judge, state, tokens, 0),
                }
                expect_close(y, right, "the result", rivals, dtype, asked=asked)
        tokens = _texts(3, 6, vocab, pad_id)  # the last one of padding alone
        oracle = partial(_judge, pad_id=pad_id)
        for given in (tokens[:2], tokens):
            expect_parameter_gradients(model, oracle, state, [given])
        for batch, n in shapes:
            long = _texts(batch, n, vocab, pad_id)
            what = f"the result while training, for tokens {(batch, n)} and {classes} classes,"
            expect_close(call(model.train(), long), _judge(state, long, pad_id), what)
        what, short = "the result for tokens of int32", tokens.int()
        expect_close(call(model, short), _judge(state, tokens, pad_id), what)
        what = "the result while training, where nothing should change,"
        expect_close(call(model.train(), tokens), _judge(state, tokens, pad_id), what)
    _check_mixed(cls)


# ---- layer_rates


def check_layer_rates(function: Callable) -> None:
    """Bodies of several depths, with tables of any name, rates and decays; a frozen body, too."""
    names = ["".join("aeioubdgklmnprst"[i] for i in randint(0, 16, (7,))) for _ in range(3)]
    for depth, dim, tables in (
        (3, 4, ["positions"]),
        (1, 2, []),
        (draw_size(11, 30), 3, names[:1]),
        (draw_size(7, 10), 2, names[2:3]),
        (6, 1, names),
    ):
        _check_rates(function, (depth, dim, tables), drawn_between(1e-4, 3.0), drawn_between(0.3, 0.95))
    for tenth in range(2, 10):
        decay = drawn_between(tenth / 10 + 0.01, tenth / 10 + 0.09)
        _check_rates(function, (draw_size(2, 5), 2, []), drawn_between(1e-4, 3.0), decay)
    _check_rates(function, (2, 3, ["positions"]), 0.01, 1.0)
    _check_rates(function, (4, 2, []), drawn_between(5.0, 1e4), drawn_between(0.02, 0.2))
    _check_rates(function, (4, 2, []), drawn_between(1e-9, 5e-5), 1 - drawn_between(1e-3, 0.04))
    _check_rates(function, (draw_size(2, 5), 3, ["positions"]), 0.1, drawn_between(0.3, 0.95), frozen=True)


def _check_rates(
    function: Callable, sizes: tuple[int, int, list[str]], rate: float, decay: float, frozen: bool = False
) -> None:
    known, depth = m.layer_rates, sizes[0]
    below = [0, 0, *range(1, depth + 2)]
    rivals = {
        known.ALL_ALIKE: [rate for _ in below],
        known.UPSIDE_DOWN: [rate * decay ** (depth + 1 - k) for k in below],
        known.DIVIDED: [rate / decay**k for k in below],
        known.LINEAR: [rate * (1 - (1 - decay) * k) for k in below],
        known.STEP_TWICE: [rate * decay ** (2 * k) for k in below],
        known.BLOCKS_TURNED: [rate * decay**k for k in (0, 0, *range(depth, 0, -1), depth + 1)],
        known.LAST_BLOCK: [rate * decay ** max(k - 1, 0) for k in below],
        known.EMBEDDING: [rate * decay ** min(k, depth) for k in below],
        known.EMBEDDING_HIGH: [rate * decay ** (k % (depth + 1)) for k in below],
        known.NORM: [rate * decay**k for k in range(depth + 3)],
    }
    expect_groups(function, sizes, rate, decay, [rate * decay**k for k in below], rivals, frozen)


# ---- LowRank

# `alpha / rank` may be a float32 number: what is right to the precision of float32 is right.
_FLOAT32 = 2e-5


def _low_rank(x: Tensor, state: Mapping[str, Tensor], factor: float, linear: bool = True) -> Tensor:
    """The formula, with the frozen layer or without."""
    change = factor * (x @ state["A"].T @ state["B"].T)
    return F.linear(x, state["linear.weight"], state.get("linear.bias")) + change if linear else change


def _low_rank_trained(state: dict[str, Tensor], factor: float, learning: dict[str, Tensor], x: Tensor) -> Tensor:
    return _low_rank(x, state | learning, factor)


def _low_rank_rivals(
    x: Tensor, state: Mapping[str, Tensor], rank: int, alpha: float
) -> dict[Mistake, Callable[[], Tensor]]:
    known = m.LowRank
    factors = {
        known.NO_SCALE: 1.0,
        known.ALPHA_ONLY: alpha,
        known.RANK_ONLY: 1 / rank,
        known.ROOT: alpha / rank**0.5,
        known.UPSIDE_DOWN: rank / alpha,
        known.SUBTRACTED: -alpha / rank,
    }
    found = {mistake: partial(_low_rank, x, state, factor) for mistake, factor in factors.items()}
    return found | {known.NO_LINEAR: partial(_low_rank, x, state, alpha / rank, False)}


def _merged_rivals(x: Tensor, state: Mapping[str, Tensor]) -> dict[Mistake, Callable[[], Tensor]]:
    known = m.LowRank
    return {
        known.MERGED_BARE: partial(_low_rank, x, state, 0.0),
        known.MERGED_SCALE: partial(_low_rank, x, state, 1.0),
    }


def check_low_rank(cls: Callable) -> None:
    """Parameters, starts, values, gradients, merging; layers with a bias and without."""
    for inside, outside, rank, alpha, bias in (
        (4, 3, 2, 5.0, True),
        (3, 3, 3, 1.0, True),
        (5, 6, 1, 0.25, False),
        (1, 1, 1, 3.0, True),
        (draw_size(20, 60), draw_size(61, 99), draw_size(2, 9), drawn_between(0.5, 40.0), False),
        (draw_size(150, 400), draw_size(100, 300), draw_size(20, 60), drawn_between(70.0, 900.0), True),
        (2, 3, 2, -drawn_between(2.5, 40.0), True),  # turned round it is no other mistake's factor
    ):
        # Where there are few features, as many vectors as in long texts and large batches.
        lengths = [(2, drawn_medium(), inside), (drawn_medium(), 2, inside)] if inside < 6 else []
        linear = place(make_linear, beside=cls)(inside, outside, bias)
        module = call(cls, linear, rank, alpha)
        expect(place(linear_is_kept, beside=cls)(module, linear), m.LowRank.LINEAR_COPIED)
        shapes: dict[str, tuple] = {"A": (rank, inside), "B": (outside, rank), "linear.weight": (outside, inside)}
        if bias:
            shapes["linear.bias"] = (outside,)
        expect_parameters(module, shapes)
        expect_frozen(cls, module)
        _check_starts(module, rank, inside)
        if rank * inside > 1:
            other = call(cls, place(make_linear, beside=cls)(inside, outside, bias), rank, alpha)
            same = torch.equal(*(named_parameters(one)["A"].detach() for one in (module, other)))
            expect(not same, m.LowRank.A_FIXED)
        asked = f"{inside} features to {outside}, rank {rank}, alpha {alpha:g}"
        for dtype in (torch.float32, torch.float64) if inside < 100 else (torch.float64,):
            state = randomise(module, shapes, dtype)
            module.eval()
            tolerance = 1e-4 if dtype == torch.float32 else _FLOAT32
            for shape in (
                (3, inside),
                (2, 5, inside),
                (inside,),
                (1, 1, inside),
                (2, 3, 1, 2, inside),
                (2, 1, 2, 1, 3, inside),
                *lengths,
            ):
                x = randn(*shape, dtype=dtype)
                with unchanged(x=x):
                    y = call(module, x)
                right = _low_rank(x.double(), state, alpha / rank)
                rivals = _low_rank_rivals(x.double(), state, rank, alpha)
                expect_close(y, right, "the output", rivals, dtype, tolerance, asked)
            x = randn(4, inside, dtype=dtype)
            right, rivals = _low_rank(x.double(), state, alpha / rank), _merged_rivals(x.double(), state)
            for training in (True, False):
                expect_merged(cls, module.train(training), x, right, rivals, bias, tolerance)
        x = randn(4, inside)
        right = partial(_low_rank, state=state, factor=alpha / rank)
        expect_gradients(module, right, {"x": x}, tolerance=_FLOAT32)
        for training in (False, True):
            _check_learning(module.train(training), state, x, alpha / rank)
            expect_frozen(cls, module)
        learning = {name: state[name] for name in ("A", "B")}
        for training in (False, True):  # what is merged for evaluation would be old after a step
            trained = partial(_low_rank_trained, state, alpha / rank)
            expect_trained(module.train(training), trained, learning, [x])
        what = "the output while training, where nothing should change,"
        expect_close(call(module, x), right(x), what)
    expect_device(module.to("meta"), {"x": x})


def _check_starts(module: nn.Module, rank: int, inside: int) -> None:
    start = {name: parameter.detach() for name, parameter in named_parameters(module).items()}
    expect_zeros(module)
    alike = rank * inside > 1 and len(start["A"].unique()) < 0.9 * rank * inside
    expect(start["A"].any() and not alike, m.LowRank.A_START, got=start["A"].flatten())


def _check_learning(module: nn.Module, state: dict[str, Tensor], x: Tensor, factor: float) -> None:
    """Gradients of `A` and `B` are the formula's."""
    with torch.enable_grad():
        leaves = {name: state[name].clone().requires_grad_() for name in ("A", "B")}
        expected = _low_rank(x, state | leaves, factor)
        direction = randn(*expected.shape)
        (expected * direction).sum().backward()
        module.zero_grad()
        result = call(module, x)
        expect(result.requires_grad, Common.CUT_OFF)
        (result * direction).sum().backward()
    parameters = named_parameters(module)
    for name, leaf in leaves.items():
        gradient = parameters[name].grad
        expect(gradient is not None, Common.PARAMETER_UNUSED, f"the parameter without gradient is `{name}`")
        what = f"the gradient of the parameter `{name}`"
        expect_close(gradient, leaf.grad, what, tolerance=_FLOAT32, otherwise=Common.WRONG_GRADIENT)


# ---- contaminated


_Texts = Sequence[Sequence[Any]]


def _grams(text: Sequence[Any], n: int) -> list[tuple]:
    """The n-grams of a text, one for each place."""
    return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]


def _joined(text: Sequence[Any], n: int, mark: str = "") -> list[str]:
    """The n-grams of a text, each as one piece of text in which no token ends."""
    return [mark.join(map(str, gram)) for gram in _grams(text, n)]


def _by_rule(
    read: _Texts, tested: _Texts, n: int, keep: Callable[[int, int], bool], distinct: bool = False
) -> list[int]:
    """Which texts a rule keeps, by how many of how many n-grams were read."""
    seen = {gram for text in read for gram in _grams(text, n)}
    found = []
    for i, text in enumerate(tested):
        grams: Any = _grams(text, n)
        grams = set(grams) if distinct else grams
        if grams and keep(sum(gram in seen for gram in grams), len(grams)):
            found.append(i)
    return found


def _rivals_found(read: _Texts, tested: _Texts, n: int, share: float) -> dict[Mistake, Callable[[], list[int]]]:
    """What each mistake finds."""
    known = m.contaminated

    def some(
        keep: Callable[[int, int], bool],
        n: int = n,
        read: _Texts = read,
        tested: _Texts = tested,
        distinct: bool = False,
    ) -> Callable[[], list[int]]:
        return lambda: _by_rule(read, tested, n, keep, distinct)

    def enough(hits: int, of: int) -> bool:
        return hits >= share * of

    def bags(texts: _Texts) -> list[list[tuple]]:
        return [[tuple(sorted(gram)) for gram in _grams(text, n)] for text in texts]

    def turned() -> list[int]:
        theirs = {gram for text in read for gram in _grams(text, n)}
        return [i for i, t in enumerate(tested) if len(theirs & set(_grams(t, n))) >= share * max(len(theirs), 1)]

    def one_source() -> list[int]:
        return sorted({i for text in read for i in _by_rule([text], tested, n, enough)})

    def cut_short(text: Sequence[Any]) -> list:
        return list(text[:-1])

    def cut(step: int, spared: int) -> list[int]:
        def runs(text: Sequence[Any]) -> list[tuple]:
            return [tuple(text[i : i + n]) for i in range(0, len(text) - spared, step)]

        seen = {run for text in read for run in runs(text)}
        parts = [runs(text) for text in tested]
        return [i for i, p in enumerate(parts) if p and sum(run in seen for run in p) >= share * len(p)]

    def short() -> list[int]:
        return sorted({*_by_rule(read, tested, n, enough), *(i for i, t in enumerate(tested) if len(t) < n)})

    return {
        known.ABOVE: some(lambda hits, of: hits > share * of),
        known.ANY: some(lambda hits, of: hits > 0),
        known.ALL: some(lambda hits, of: hits == of),
        known.SHARE_FIXED: some(lambda hits, of: hits >= 0.5 * of),
        known.OF_TOKENS: some(lambda hits, of: hits >= share * (of + n - 1)),
        known.ROUNDED: some(lambda hits, of: hits >= int(share * of)),
        known.N_FIXED: some(enough, 8),
        known.WORDS: some(enough, 1),
        # Of the letters a, aa and aaa a bag may be found as often as a joined text.
        known.JOINED: some(enough, read=[_joined(t, n) for t in read], tested=[_joined(t, n) for t in tested], n=1),
        known.UNORDERED: some(enough, 1, read=bags(read), tested=bags(tested)),
        known.ACROSS: some(enough, read=[[token for text in read for token in text]]),
        known.TURNED_ROUND: turned,
        known.DISTINCT: some(enough, distinct=True),
        known.LAST_LOST: some(enough, read=[cut_short(t) for t in read], tested=[cut_short(t) for t in tested]),
        known.SHORT: short,
        known.ONE_SOURCE: one_source,
        known.WHOLE: lambda: [i for i, text in enumerate(tested) if list(text) in [list(r) for r in read]],
        known.STRIDE: lambda: cut(n, n - 1),
        known.RAGGED: lambda: cut(1, 0),
    }


def _expect_found(
    function: Callable,
    read: _Texts,
    tested: _Texts,
    n: int,
    share: float,
    asked: str,
    rivals: Collection[Mistake] = tuple(m.contaminated),
) -> None:
    right = _by_rule(read, tested, n, lambda hits, of: hits >= share * of)
    value = call(function, [list(t) for t in read], [list(t) for t in tested], n, share)
    wrong = {mistake: found for mistake, found in _rivals_found(read, tested, n, share).items() if mistake in rivals}
    expect_indices(value, right, wrong, asked)


def check_contaminated(function: Callable) -> None:
    """Texts with stretches of what was read; shares on the border; both defaults; the work."""
    sizes = [(6, 14, 3, 2), (9, 30, 4, 3), (4, 12, 2, 1), (12, 40, 5, 4), (5, 30, 40, 10)]
    for texts, longest, vocab, n in (*sizes, (5, 30, 5, 6), (5, 30, 5, 7), (5, 40, 9, draw_size(8, 12))):
        # Longer n-grams come last, when each mistake has been seen: what is wrong there alone may find the same.
        rivals = tuple(m.contaminated) if n < 6 else ()
        for share in (0.5, 0.25, 0.75, 1.0, 0.125) if n < 6 else (0.5, 0.25):
            read, tested = _library(texts, longest, vocab, n)
            _expect_found(function, read, tested, n, share, f"{texts} texts read, n={n} and share={share:g}", rivals)
    read, tested = _library(draw_size(60, 120), 60, 9, 5)
    _expect_found(function, read, tested, 5, 0.375, f"{len(read)} texts read, n=5 and share=0.375")
    for tenth in range(10):
        share = tenth / 10 + draw_size(10, 89) / 997  # of so many n-grams none has just this share
        asked = f"{len(read)} texts read, n=5 and share={share:g}"
        # Here, too, each mistake has been seen, but a share that is fixed for some shares alone.
        _expect_found(function, read, tested, 5, share, asked, [m.contaminated.SHARE_FIXED])
    words = [[_word(token) for token in text] for text in read], [[_word(token) for token in text] for text in tested]
    _expect_found(function, *words, 5, 0.375, f"{len(read)} texts of words read, n=5 and share=0.375")
    read, tested = _library(20, 12, 3, 5)
    for mark in (" ", ",", ", ", "|", "_", "\0", "\t", "##"):
        _check_tokens(function, read, tested, ["a", f"a{mark}a", f"a{mark}a{mark}a"], mark)
    for kind in (["a", "aa", "aaa"], [1, 11, 111]):  # which run into each other
        letters = _spelled(read, kind), _spelled(tested, kind)
        _expect_found(function, *letters, 5, 0.5, f"{len(read)} texts of {kind} read, n=5 and share=0.5")
    for kind in ([3, -3, -33], ["a", " a", "a "], [7, 7 + 2**32, 7 + 2**40]):  # which differ by a sign, a space, far up
        _check_tokens(function, read, tested, kind)
    for limits in ((16, 36), (37, 200)):
        _check_border(function, limits)
    for empty in (([], [[1, 2, 3]]), ([[1, 2, 3]], []), ([[]], [[], [1]])):
        _expect_found(function, *empty, 2, 0.5, f"what was read {empty[0]}, tested {empty[1]}")
    _check_defaults(function)
    few, many = (place(_effort, beside=function)(function, texts) for texts in (30, 120))
    told = {"expected": "about 4 times as much", "got": f"{many / few:.0f} times as much"}
    expect(many < 8 * few, m.contaminated.SLOW, "the work for 4 times as many texts", **told)


def _check_tokens(function: Callable, read: _Texts, tested: _Texts, kind: list, mark: str = "") -> None:
    """Texts of three tokens, which may hold the mark that an answer joins them by."""
    read, tested = _spelled(read, kind), _spelled(tested, kind)

    def half_of(read: list, tested: list, n: int) -> list[int]:
        return _by_rule(read, tested, n, lambda hits, of: 2 * hits >= of)

    def joined() -> list[int]:
        return half_of(*([_joined(text, 5, mark) for text in texts] for texts in (read, tested)), 1)

    asked = f"{len(read)} texts of {kind} read, n=5, share=0.5"
    wrong = {m.contaminated.JOINED: joined} if mark else {}
    expect_indices(call(function, read, tested, 5, 0.5), half_of(read, tested, 5), wrong, asked)


def _spelled(texts: _Texts, kind: list) -> list[list]:
    """Texts of three tokens, by their numbers."""
    return [[kind[t % 3] for t in text] for text in texts]


def _word(token: int) -> str:
    """A word for each number: long ones that end differently, or differ in a capital alone."""
    return f"{'Tt'[token % 2]}oken{token // 2}"


def _library(texts: int, longest: int, vocab: int, n: int) -> tuple[list[list[int]], list[list[int]]]:
    """Texts, and others of which parts are copied from one or two of them, short ones and empty ones among both."""
    draw = random.Random(draw_size(0, 2**62))  # thousands of numbers that are handed over together

    def text(length: int, below: int) -> list[int]:
        return draw.choices(range(below), k=length)

    read = [text(draw.randrange(longest), vocab) for _ in range(texts)]
    tested: list[list[int]] = [[], list(range(n - 1))]
    for _ in range(12 * texts):
        parts: list[int] = []
        for _ in range(draw.randint(1, 3)):
            source = draw.choice(read) if draw.randrange(3) else text(n + 4, 2 * vocab)
            start = draw.randint(0, len(source))
            parts += source[start : start + draw.randint(n, 3 * n + 2)]
        tested.append(parts)
    tested += [list(one) for one in read[:2]]
    # One that repeats itself: counted at every place, or once.
    tested.append((read[-1] * 3)[: 4 * n] + [3 * vocab + token for token in text(2 * n, 2 * vocab)])
    return read, tested


def _check_border(function: Callable, limits: tuple[int, int]) -> None:
    """Long texts with one n-gram too few and with just enough of a share that none has; many texts read."""
    # With n cut to 12 the text with one too few has just enough, whatever is drawn.
    n, of, share = drawn_wide(*limits), draw_size(1000, 1500), int(randint(0, 6, ())) / 8 + draw_size(20, 100) / 997
    enough = math.ceil(share * of)
    read = [*randint(0, 9999, (draw_size(300, 500), 9)).tolist(), randint(0, 10**6, (of + n,)).tolist()]
    tested = [*randint(0, 9999, (draw_size(2000, 3000), 3)).tolist()]
    for hits in (enough - 1, enough):
        new = range(10**6, 10**6 + of - hits)
        tested += [[*read[-1][: n - 1 + hits], *new], [*new, *read[-1][-(n - 1 + hits) :]]]
    right = _by_rule(read, tested, n, lambda hits, of: hits >= share * of)
    expect_indices(call(function, read, tested, n, share), right, {}, f"{len(read)} texts read, n={n}, share={share:g}")


def _check_defaults(function: Callable) -> None:
    """Eight tokens in a row, half of them."""
    source = randint(0, 1000, (60,)).tolist()
    new = [2000 + i for i in range(40)]
    tested = [source[:7] + new[:3], source[:20] + new[:12], source[:20] + new[:14], source[:8], source[:12] + new[:30]]
    right = _by_rule([source], tested, 8, lambda hits, of: 2 * hits >= of)
    value = call(function, [source], tested)
    told: dict[str, Any] = {"expected": right, "got": value}
    if list(value) != right:
        complain(m.contaminated.DEFAULTS, "the texts found without `n` and `share`", **told)


def _effort(function, texts):
    import sys

    class Token(int):
        compared = 0

        def __eq__(self, other):
            Token.compared += 1
            return int(self) == int(other)

        __hash__ = int.__hash__

    def text(start):
        return [Token((start * 7919 + 31 * k * k) % 100003) for k in range(14)]

    read, tested = [text(i) for i in range(texts)], [text(texts + i) for i in range(texts)]
    lines = 0

    def count(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        function(read, tested)
    finally:
        sys.settrace(before)
    return lines + Token.compared
