"""What chapter 05 says of its runs."""

import re

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
    """By the sizes of words and table: how far two words are apart (%), and the step at which 90 % were passed."""
    rows = re.findall(
        r"words (\S+), table +(\S+): two words are (\d+)% apart, 90 %: step (\d+)", o["larger-start-runs"]
    )
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


def _clamped(o: dict[str, str]) -> list[tuple[int, int, int]]:
    """Each rotary reader's accuracy (%) at length 60: as it is, with clamped distances, and balanced as well."""
    rows = re.findall(r"length 60: (\d+)%, clamped (\d+)%, balanced (\d+)%", o["longer-clamped"])
    return [(int(before), int(after), int(balanced)) for before, after, balanced in rows]


def _more_readers(o: dict[str, str], kind: str = "distances, expanded") -> list[dict[str, int]]:
    """The accuracy (%) of five more readers of a kind, by length."""
    lines = [line for line in o["longer-seeds"].splitlines() if line.startswith(kind)]
    return [{n: int(share) for n, share in re.findall(r"(\d+): (\d+)%", line)} for line in lines]


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
        "at a scale of 0.1 neither frozen table gets there in 240 steps",
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
        "to 90 % at step 50 or 60, one ten\ntimes as large at step 120 or 180",
        lambda o: [step for _, step in _starts(o).values()] == [50, 120, 60, 180],
    ),
    Claim(
        "larger-start-reading",
        "two different words at one place are then 14 % of their size apart, in place of 101 %",
        lambda o: [apart for apart, _ in _starts(o).values()] == [101, 14, 101, 14],
    ),
    Claim(
        "longer-reading",
        "with positions added are no better than a coin, and the\nother three are right in 64 to 69 %",
        lambda o: (
            max(_at(o, f"{kind}, added", 60) for kind in ("learned", "sinusoidal")) < 55
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
        "The readers of clamped distances stay at 100 %",
        lambda o: (
            min(_numbers(o["longer-table"], "distances, expanded")) >= 99
            and all(_at(o, reader, 60) < 80 for reader in ("rotary", "sinusoidal, added", "sinusoidal, beside"))
        ),
    ),
    Claim(
        "longer-control-reading",
        "Clamping helps seven of the nine rotary readers, by 3 to 21 points, and brings four of them to 90 % or more",
        lambda o: (
            len(_clamped(o)) == 9
            and sorted(after - before for before, after, _ in _clamped(o))[:3] == [0, 0, 3]
            and max(after - before for before, after, _ in _clamped(o)) == 21
            and sum(after >= 90 for _, after, _ in _clamped(o)) == 4
        ),
    ),
    Claim(
        "longer-control-reading",
        "seven of the nine are right in 94 % or more",
        lambda o: sorted(balanced >= 94 for _, _, balanced in _clamped(o)) == [False] * 2 + [True] * 7,
    ),
    Claim(
        "longer-control-reading",
        "balanced, it is right in 99 % at 15",
        lambda o: (
            [
                line.rpartition("; ")[2]
                for line in o["longer-seeds"].splitlines()
                if line.startswith("distances, expanded") and ", 15: 52%" in line
            ]
            == ["balanced 99% at 15"]
        ),
    ),
    Claim(
        "longer-control-reading",
        "balanced, they are still no better than a coin at 60",
        lambda o: max(_numbers(o["longer-seeds"], "sinusoidal, added, balanced at 60:")) < 55,
    ),
    Claim(
        "longer-control-reading",
        "one of the five more readers, as good as the rest at length\n10, is no better than a coin at 15",
        lambda o: (
            sorted(reader["15"] < 60 for reader in _more_readers(o)) == [False] * 4 + [True]
            and min(reader["10"] for reader in _more_readers(o)) >= 99
            and min(reader["5"] for reader in _more_readers(o)) < 80
        ),
    ),
    Claim(
        "longer-predict",
        "It is. The 0 can see the 1 only if the 1 stands before it",
        lambda o: set(re.findall(r"mask alone.*: (.*)", o["longer-causal"])) == {"100% 100% 100%"},
    ),
    Claim(
        "longer-reading",
        "So does the mask alone",
        lambda o: min(_numbers(o["longer-table"], "mask alone")) >= 99,
    ),
    Claim(
        "longer-reading",
        "ALiBi's penalty makes it worse on long\nsequences, 67 % at 60",
        lambda o: _at(o, "mask and ALiBi", 60) == 67,
    ),
    Claim(
        "longer-control-reading",
        "The mask\nalone holds in all five more runs, the clamped distances in four",
        lambda o: (
            len(_more_readers(o, "mask alone")) == 5
            and min(min(reader.values()) for reader in _more_readers(o, "mask alone")) >= 99
        ),
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
        "The learned table of positions is the slowest of these: it\ntakes until step 150, added waves until step 50",
        lambda o: (
            (_learned(o)["learned, added"], _learned(o)["sinusoidal, added"]) == (150, 50)
            and min(_learned(o), key=_learned(o).get) == "sinusoidal, beside"
            and max(_learned(o).values()) == 150
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
        "Attention with positions added reads nine reviews in ten, or more",
        lambda o: min(_before(o, "attention, positions added", 600, "bag-longer")) >= 90,
    ),
    Claim(
        "bag-reading",
        "Attention that is given distances reads\nevery one",
        lambda o: min(_before(o, "attention, distances", 600, "bag-longer")) == 100,
    ),
]
