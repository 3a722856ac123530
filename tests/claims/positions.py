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


def _last(o: dict[str, str], model: str) -> list[float]:
    return _numbers(o["bag-table"], f"{model:28} accuracy in the last 50 of 300 steps, by seed:")


def _at(o: dict[str, str], reader: str, length: int) -> float:
    lengths = _numbers(o["longer-table"], "length")
    return _numbers(o["longer-table"], reader)[lengths.index(length)]


CLAIMS = [
    Claim(
        "ex5",
        "Both times the cosine of the angle between them",
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
        "Beside words of size 1 it is learned from at step 60, beside words of 0.1 at step 120",
        lambda o: (_starts(o)["1.0", "1.0"][1], _starts(o)["0.1", "1.0"][1]) == (60, 120),
    ),
    Claim(
        "larger-start-reading",
        "to 90 % at step 50 or 60, ten times as large at step 120 or 180",
        lambda o: [step for _, step in _starts(o).values()] == [50, 120, 60, 180],
    ),
    Claim(
        "larger-start-reading",
        "two different words at one place are then 14 % of their size apart, in place of 101 %",
        lambda o: [apart for apart, _ in _starts(o).values()] == [101, 14, 101, 14],
    ),
    Claim("longer-reading", "89 % at twice the length", lambda o: _at(o, "rotary", 20) == 89),
    Claim(
        "longer-reading",
        "Only the reader of clamped distances is at home everywhere",
        lambda o: _at(o, "distances, expanded", 60) >= 99 and _at(o, "rotary", 60) < 80,
    ),
    Claim(
        "bag-reading",
        "The bag tosses a coin",
        lambda o: all(45 < a < 55 for m in ("bag of words", "bag, positions added") for a in _last(o, m)),
    ),
    Claim(
        "bag-reading",
        "attention reads nearly every review right",
        lambda o: min(_last(o, "attention, positions added")) >= 98,
    ),
    Claim(
        "bag-reading",
        "two of the three runs have begun to learn it",
        lambda o: sum(a > 60 for a in _last(o, "bag, a network on each word")) == 2,
    ),
]
