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


CLAIMS = [
    Claim("one-average-reading", "The answer `[2.25, 1.25]`", lambda o: numbers(o["one-average"]) == [2.25, 1.25]),
    Claim("ex3", "Four ones", lambda o: numbers(o["einsum-rows"]) == [1, 1, 1, 1]),
    Claim(
        "windows-reading",
        "With width 1 nothing is mixed and nothing changes. From width 2 on the two vectors differ",
        lambda o: apart(o)[0] == 0 and min(apart(o)[1:]) > 0,
    ),
    Claim(
        "timing-reading",
        "four times the length is sixteen times the work, and the loop's time grows about so",
        lambda o: 8 <= numbers(o["timing-ratio"].splitlines()[-1])[-1] <= 32,
    ),
    Claim(
        "timing-control-reading",
        "Most of the time is still there",
        lambda o: numbers(o["timing-control"])[-1] > 50,
    ),
    Claim("transposed-reading", "None of the wrong ones lies there", outside),
]
