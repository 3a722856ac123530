"""What chapter 05 says of its runs."""

import re
from operator import sub

from claims import Claim


def _numbers(text: str, start: str) -> list[float]:
    """The numbers after a line's beginning."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", line[len(start) :])]


def _step(text: str, setting: str) -> float:
    """The step at which a setting of the grid passed 90 %; infinity if it did not."""
    line = next(line for line in text.splitlines() if " ".join(line.split()).startswith(setting))
    return float(line.rpartition("step ")[2]) if "step " in line.partition("90 %:")[2] else float("inf")


def _grid(o: dict[str, str]) -> dict[tuple[str, str, str], float]:
    settings = [(s, c, t) for s in ("0.1", "0.71") for c in ("waves", "random") for t in ("frozen", "trained")]
    return {s: _step(o["grid-table"], "scale " + " ".join(s)) for s in settings}


def _starts(o: dict[str, str]) -> dict[tuple[str, str], tuple[int, int]]:
    """By the sizes of words and table: how much the words differ (%), and the step at which 90 % were passed."""
    rows = re.findall(r"words (\S+), table (\S+): words differ by (\d+)% .*: step (\d+)", o["larger-start-runs"])
    return {(words, table): (int(apart), int(step)) for words, table, apart, step in rows}


def _before(o: dict[str, str], model: str, step: int, cell: str = "bag-table") -> list[float]:
    return _numbers(o[cell], f"{model:28} accuracy before step {step}, by seed:")


def _learned(o: dict[str, str]) -> dict[str, int]:
    """By the reader: the step at which it passed 90 %."""
    rows = re.findall(r"(\S.*?) +90 %: step (\d+)", o["learning-steps"])
    return {reader: int(step) for reader, step in rows}


_NETWORK = "bag, a network on each word"


def _at(o: dict[str, str], reader: str, length: int) -> float:
    lengths = _numbers(o["longer-table"], "length")
    return _numbers(o["longer-table"], reader)[lengths.index(length)]


def _eight(o: dict[str, str], kind: str, what: str = "accuracy_at 60") -> list[float]:
    """The accuracy (%) of eight readers of a kind."""
    return _numbers(o["longer-seeds"], f"{kind:20} {what}:")


CLAIMS = [
    Claim(
        "shuffle-words",
        "It tells who chases whom",
        lambda o: (
            [line.partition("→ ")[2] for line in o["translator-order"].splitlines()]
            == ["A dog chases a man.", "A man chases a dog."]
        ),
    ),
    Claim(
        "translator-positions-reading",
        "The same, up to rounding",
        lambda o: float(o["translator-positions"].rpartition(" ")[2]) < 1e-5,
    ),
    Claim(
        "ex5",
        "Both times it is the cosine of the angle between them",
        lambda o: len(set(re.findall(r"-0\.\d+", o["turn-two"]))) == 1,
    ),
    Claim(
        "rotary-reading",
        "the same everywhere, up to rounding",
        lambda o: (
            len(set(_numbers(o["rotary-spread"], "rotated:"))) == 1
            and max(_numbers(o["rotary-spread"], "added:")) - min(_numbers(o["rotary-spread"], "added:")) > 0.5
        ),
    ),
    Claim(
        "grid-reading",
        "even a table of random numbers that is never trained does the job, at step 80",
        lambda o: _grid(o)["0.71", "random", "frozen"] == 80,
    ),
    Claim(
        "grid-reading",
        "at a scale of 0.1 neither frozen table gets there in 240 steps, in the mean of its three runs",
        lambda o: {_grid(o)["0.1", content, "frozen"] for content in ("waves", "random")} == {float("inf")},
    ),
    Claim(
        "grid-reading",
        "in about 120 to 130 steps, whatever the table held at the start",
        lambda o: {_grid(o)["0.1", content, "trained"] for content in ("waves", "random")} <= {120, 130},
    ),
    Claim(
        "grid-reading",
        "50 steps against 70 or 80",
        lambda o: (
            [_grid(o)["0.71", c, t] for c in ("waves", "random") for t in ("frozen", "trained")] == [50, 50, 80, 70]
        ),
    ),
    Claim(
        "larger-start-reading",
        "Beside words of size 1 its reader gets to 90 % at step 60, beside words of 0.1 at step 120",
        lambda o: (_starts(o)["1.0", "1.0"][1], _starts(o)["0.1", "1.0"][1]) == (60, 120),
    ),
    Claim(
        "larger-start-reading",
        "beside a table of 0.1 they need 50 steps",
        lambda o: _starts(o)["0.1", "0.1"][1] == 50,
    ),
    Claim(
        "larger-start-reading",
        "the words at one place then differ by\n10 % of their size, in place of 68 %",
        lambda o: (
            {setting: apart for setting, (apart, _) in _starts(o).items()}
            == {("0.1", "0.1"): 68, ("1.0", "1.0"): 68, ("0.1", "1.0"): 10, ("0.01", "0.1"): 10}
        ),
    ),
    Claim(
        "larger-start-reading",
        "Words of 0.01 beside a table of 0.1 are hidden just as much, and yet get there at step 60",
        lambda o: _starts(o)["0.01", "0.1"] == (10, 60),
    ),
    Claim(
        "longer-reading",
        "with positions added are right in 43 to 51 %, and the other three in 64 to 69 %",
        lambda o: (
            sorted(_at(o, reader, 60) for reader in ("no positions", "sinusoidal, added", "learned, added"))[::2]
            == [43, 51]
            and sorted(_at(o, reader, 60) for reader in ("rotary", "sinusoidal, beside", "mask and ALiBi"))[::2]
            == [64, 69]
        ),
    ),
    Claim(
        "dot-reading",
        "Both are 21.05",
        lambda o: {round(number, 2) for number in _numbers(o["dot-two"], "")} == {21.05},
    ),
    Claim("longer-reading", "89 % at twice the length", lambda o: _at(o, "rotary", 20) == 89),
    Claim(
        "longer-reading",
        "The three readers of expanded distances stay at 100 %",
        lambda o: (
            min(_numbers(o["longer-table"], "distances, expanded")) >= 99
            and all(_at(o, reader, 60) < 80 for reader in ("rotary", "sinusoidal, added", "sinusoidal, beside"))
        ),
    ),
    Claim(
        "longer-control-reading",
        "clamping helps six of the eight rotary readers, by 3 to 21 points, and brings three of them to 90 % or more",
        lambda o: (
            sorted(map(sub, _eight(o, "rotary, clamped"), _eight(o, "rotary")))[:3] == [0, 0, 3]
            and max(map(sub, _eight(o, "rotary, clamped"), _eight(o, "rotary"))) == 21
            and sum(after >= 90 for after in _eight(o, "rotary, clamped")) == 3
        ),
    ),
    Claim(
        "longer-control-reading",
        "six of the eight are right in 94 % or more",
        lambda o: (
            sorted(share >= 94 for share in _eight(o, "rotary, clamped", "balanced_at 60")) == [False] * 2 + [True] * 6
        ),
    ),
    Claim(
        "longer-control-reading",
        "The readers with added waves gain\nnothing",
        lambda o: (
            max(map(sub, _eight(o, "sinusoidal, added", "balanced_at 60"), _eight(o, "sinusoidal, added"))) <= 1
            and max(_eight(o, "sinusoidal, added", "balanced_at 60")) < 55
        ),
    ),
    Claim(
        "longer-control-reading",
        "one reader, as good as the rest at length 10, is no better\nthan a coin at 60",
        lambda o: (
            sorted(share < 55 for share in _eight(o, "distances, expanded")) == [False] * 7 + [True]
            and min(_eight(o, "distances, expanded", "accuracy_at 10")) >= 99
        ),
    ),
    Claim(
        "longer-predict",
        "It is. The 0 can see the 1 only if the 1 stands before it",
        lambda o: set(re.findall(r"mask alone.*: (.*)", o["longer-causal"])) == {"100% 100% 100%"},
    ),
    Claim(
        "longer-reading",
        "The mask alone stays at 100 %, too",
        lambda o: min(_numbers(o["longer-table"], "mask alone")) >= 99,
    ),
    Claim(
        "longer-reading",
        "ALiBi's penalty makes it worse on long\nsequences, 67 % at 60",
        lambda o: _at(o, "mask and ALiBi", 60) == 67,
    ),
    Claim(
        "longer-control-reading",
        "The mask\nalone holds in all eight, the expanded distances in seven",
        lambda o: min(_eight(o, "mask alone")) >= 99 and sorted(_eight(o, "distances, expanded"))[1] >= 95,
    ),
    Claim(
        "layouts-reading",
        "With the rows in the other order the score is the earlier one",
        lambda o: (
            _numbers(o["layouts-run"], "rows in the other order:") == _numbers(o["rotary-spread"], "rotated:")
            and _numbers(o["layouts-run"], "rows as they were:") != _numbers(o["rotary-spread"], "rotated:")
            and len(set(_numbers(o["layouts-run"], "rows as they were:"))) == 1
        ),
    ),
    Claim(
        "penalty-reading",
        "It notices a shuffle, but not a sentence read from the back",
        lambda o: o["penalty-tried"].splitlines() == ["shuffled: equivariant False", "reversed: equivariant True"],
    ),
    Claim(
        "learning-curves-reading",
        "The learned table of positions takes\nuntil step 150, added waves until step 50",
        lambda o: (
            (_learned(o)["learned, added"], _learned(o)["sinusoidal, added"]) == (150, 50)
            and min(_learned(o), key=_learned(o).get) == "sinusoidal, beside"
        ),
    ),
    Claim(
        "bag-longer-why",
        "The bag tosses a coin",
        lambda o: all(
            45 < a < 55
            for m in ("bag of words", "bag, positions added")
            for step in (300, 600)
            for a in _before(o, m, step)
        ),
    ),
    Claim(
        "bag-longer-why",
        "The mask alone gets about three reviews in four with one head, and every\none with four",
        lambda o: (
            all(72 < a < 78 for a in _before(o, "attention, mask, one head", 600))
            and min(_before(o, "attention, mask, four heads", 600)) == 100
        ),
    ),
    Claim(
        "bag-longer-why",
        "With positions or distances, too, attention reads every review right after 600 steps",
        lambda o: all(
            min(_before(o, model, 600)) == 100 for model in ("attention, positions added", "attention, distances")
        ),
    ),
    Claim(
        "bag-longer-why",
        "It learns later than attention, but after 600 steps it, too, reads nearly every review right",
        lambda o: (
            max(_before(o, _NETWORK, 300)) < min(_before(o, "attention, positions added", 300))
            and min(_before(o, _NETWORK, 600)) >= 98
        ),
    ),
    Claim(
        "bag-reading",
        "the bag is still a coin after 600 steps",
        lambda o: all(45 < a < 55 for a in _before(o, _NETWORK, 600, "bag-longer")),
    ),
    Claim(
        "bag-reading",
        "of eight runs four are still coins, and the other four are right in 85 % or more",
        lambda o: (
            all(45 < share < 55 for share in sorted(_before(o, "attention, positions added", 600, "bag-longer"))[:4])
            and sorted(_before(o, "attention, positions added", 600, "bag-longer"))[4] >= 85
        ),
    ),
    Claim(
        "bag-reading",
        "Attention that is given\ndistances reads every review right",
        lambda o: min(_before(o, "attention, distances", 600, "bag-longer")) == 100,
    ),
]
