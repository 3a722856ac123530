"""Chapter 01: what its sentences say of the executed outputs."""

import re

from claims import Claim


def numbers(text: str) -> list[float]:
    """Each number of a text, in order."""
    return [float(n) for n in re.findall(r"-?\d+\.?\d*", text)]


def outside(outputs: dict[str, str]) -> bool:
    """Whether every right output is between 1 and 3 and no wrong one is."""
    right, wrong = (numbers(line) for line in outputs["transposed"].splitlines() if line.strip())
    return all(1 <= y <= 3 for y in right) and not any(1 <= y <= 3 for y in wrong)


def apart(outputs: dict[str, str]) -> list[float]:
    """How far apart the two vectors are for each width, in per cent."""
    return [float(n) for n in re.findall(r"(\d+)% apart", outputs["windows-run"])]


def kept(outputs: dict[str, str], cell: str) -> dict[str, list[tuple[int, int, int]]]:
    """For each design, and each ambiguous word: right, of how many, the same translation."""
    found = {}
    for line in outputs[cell].splitlines():
        if counts := re.findall(r"(\d+) of (\d+) right, (\d+) the same", line):
            found[line[:10].strip()] = [(int(right), int(of), int(same)) for right, of, same in counts]
    return found


def windows(outputs: dict[str, str]) -> list[int]:
    """How far apart pairs of one meaning and of two are, for width 2, then for width 3, in per cent."""
    return [int(n) for n in re.findall(r"(\d+)% apart", outputs["windows-all"])]


def times(outputs: dict[str, str]) -> list[float]:
    """The loop's time in those of the product, and in those of broadcasting."""
    return [numbers(line)[-1] for line in outputs["timing-ratio"].splitlines()[:2]]


CLAIMS = [
    Claim("one-average-reading", "The answer `[2.25, 1.25]`", lambda o: numbers(o["one-average"]) == [2.25, 1.25]),
    Claim(
        "ex3",
        "Four ones, the sums of the rows; and `(5, 4)`",
        lambda o: numbers(o["einsum-rows"]) == [1, 1, 1, 1, 5, 4],
    ),
    Claim("ex2", "`(1, 4, 2)`", lambda o: numbers(o["loop-run"]) == [1, 4, 2]),
    Claim("bmm", "`W @ x` gives them all at once", lambda o: "the loop's averages: True" in o["matmul"]),
    Claim("bmm", "`x @ W` does not exist", lambda o: "cannot be multiplied" in o["matmul"]),
    Claim(
        "windows-reading",
        "With width 1 nothing is mixed and nothing changes. From width 2 on the two vectors differ",
        lambda o: apart(o)[0] == 0 and min(apart(o)[1:]) > 0,
    ),
    Claim(
        "windows-which",
        "two of the same meaning are 42% apart with width 2, a goal and a gate 55%; with width 3 it is 64% and 75%",
        lambda o: windows(o) == [42, 55, 64, 75],
    ),
    Claim("real", "A large *gate*", lambda o: "a large gate" in o["large"]),
    Claim(
        "own-all-predict",
        "All but width 1, and even that has the right words",
        lambda o: (
            ["Two dogs play in the snow." in line for line in o["own-run"].strip().splitlines()] == [False, *[True] * 3]
            and {"Two", "dogs", "in", "the", "snow"} <= set(o["own-run"].splitlines()[0].replace(".", "").split())
        ),
    ),
    Claim(
        "own-all-reading",
        "Your windows keep the meaning of 36 and 38 of the fifty, and with width 1, where nothing is mixed, it is 29",
        lambda o: [kept(o, "own-all")[f"width {width}"][0][0] for width in (2, 3, 1)] == [36, 38, 29],
    ),
    Claim(
        "own-all-reading",
        "The plain mean keeps 45, with the whole translation unchanged in 32; of the other two words 31 of 32 and",
        lambda o: (
            kept(o, "own-all")["all alike"][0] == (45, 50, 32)
            and [found[:2] for found in kept(o, "own-all")["all alike"][1:]] == [(31, 32), (34, 42)]
        ),
    ),
    Claim(
        "writing-reading", "Of the fifty *Tor* 3 are right", lambda o: kept(o, "writing-run")["all alike"][0][0] == 3
    ),
    Claim(
        "writing-reading",
        "25 of the fifty are right, as many as by guessing. (*Bahn* fares better, 35 of 42.)",
        lambda o: [found[:2] for found in kept(o, "writing-run")["same place"][::2]] == [(25, 50), (35, 42)],
    ),
    Claim(
        "writing-reading",
        "Of all 124 translations the plain mean had left 76 as they were while *reading*",
        lambda o: [sum(counts) for counts in zip(*kept(o, "own-all")["all alike"], strict=True)][1:] == [124, 76],
    ),
    Claim(
        "writing-reading",
        "While *writing* it leaves none, and the same place 16",
        lambda o: [sum(same for *_, same in found) for found in kept(o, "writing-run").values()] == [0, 16],
    ),
    Claim("writing-reading", "*Two dogs play in the* loses its snow", lambda o: "play in the.\n" in o["writing-run"]),
    Claim(
        "writing-reading",
        "*A man in the snow is playing in the field*",
        lambda o: "A man in the snow is playing in the field" in o["writing-run"],
    ),
    Claim(
        "writing-reading",
        "*A boy kicks a goal* survives",
        lambda o: "same place A boy kicks a goal." in o["writing-run"],
    ),
    Claim(
        "same-number-reading",
        "In fewer than half",
        lambda o: 2 * numbers(o["same-number"])[0] < numbers(o["same-number"])[1],
    ),
    Claim(
        "timing-reading",
        "More than a thousand times as long as the product, and tens of times as long as broadcasting",
        lambda o: times(o)[0] > 1000 and 10 < times(o)[1] < 100,
    ),
    Claim(
        "timing-reading",
        "four times the length is sixteen times the work, and the loop's time grows by about as much",
        lambda o: 8 <= numbers(o["timing-ratio"].splitlines()[-1])[-1] <= 32,
    ),
    Claim(
        "timing-control-reading",
        "Most of the loop's time is still there",
        lambda o: numbers(o["timing-control"].splitlines()[0])[-1] > 50,
    ),
    Claim(
        "timing-control-reading",
        "Of broadcasting's time nearly nothing is left",
        lambda o: numbers(o["timing-control"].splitlines()[1])[-1] < 10,
    ),
    Claim("transposed-reading", "None of the wrong outputs lies between 1 and 3", outside),
]
