"""What chapter 02 says of its own outputs."""

import re

from claims import Claim


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)]


def fits(out, cell, start):
    """The words that a line lists as the nearest."""
    line = next(line for line in out[cell].split("\n") if line.startswith(start))
    return re.split(r", ", re.split(r"fits |:\s+", line)[-1])


def looked(out):
    """For each of the two sentences the pieces that Tor looked at most, in order, from the fourth on left out."""
    return [
        re.findall(r"(\S+) \d\.\d\d", line)
        for line in out["two-sentences"].split("\n")
        if "  " in line and "0." in line
    ]


CLAIMS = [
    Claim("exp", "The scores cancel, the sum is zero", lambda out: "inf" in out["divide-by-sum"]),
    Claim("overflow", "The computer says `nan`", lambda out: "nan" in out["shift"]),
    Claim(
        "neighbours-reading",
        "*Bicycle* comes right behind *bike* itself",
        lambda out: fits(out, "neighbours", "bike")[:2] == ["bike", "bicycle"],
    ),
    Claim(
        "neighbours-reading",
        "*two* finds other numbers",
        lambda out: {"three", "four"} <= set(fits(out, "neighbours", "two")),
    ),
    Claim(
        "neighbours-reading",
        "*Rot* finds its own inflected forms, not *red*",
        lambda out: (
            fits(out, "neighbours", "rot")[0] == "rot"
            and sum(word.startswith("rot") for word in fits(out, "neighbours", "rot")) >= 4
            and "red" not in fits(out, "neighbours", "rot")
        ),
    ),
    Claim(
        "average-words-reading",
        "Other colours; and for the numbers, other words of quantity",
        lambda out: (
            set(fits(out, "average-words", "red")[3:])
            <= {"blue", "pink", "orange", "purple", "black", "white", "brown", "tan", "gray"}
            and set(fits(out, "average-words", "two")[3:])
            <= {"several", "many", "few", "some", "five", "six", "another", "both", "Two", "Three", "Four", "multiple"}
        ),
    ),
    Claim(
        "temperature-reading",
        "A near-zero temperature gives all the weight to the largest score",
        lambda out: numbers(out["temperature-run"])[:4] == [1, 0, 0, 0],
    ),
    Claim(
        "underflow-reading",
        "Exactly 0 in float32",
        lambda out: (
            out["underflow"].split("\n")[0].endswith("[1.0, 0.0]") and "e-87" in out["underflow"].split("\n")[1]
        ),
    ),
    Claim(
        "two-sentences-reading",
        "in the first sentence *Junge* has moved it a little, in the second *Eine*",
        lambda out: all(
            line.count(word) == (word == own)
            for line, own in zip(re.findall(r"fits (.*)", out["two-sentences"]), ("Junge", "Eine"), strict=True)
            for word in ("Junge", "Eine")
        ),
    ),
    Claim(
        "two-sentences-reading",
        "no piece of the verb *schießt*, which makes it a goal, gets more than *Junge* or *Ein*",
        lambda out: looked(out)[0] == ["▁Tor", "▁Junge", "▁Ein", "▁schie"],
    ),
    Claim(
        "real-loud-reading",
        "By a factor of about five",
        lambda out: 4 < numbers(out["real-loud"])[1] / numbers(out["real-loud"])[0] < 6.5,
    ),
    Claim(
        "real-loud-reading",
        "Only a few of the words fit another one better than themselves, and those are quiet ones",
        lambda out: (
            numbers(out["real-loud"])[3] < 0.1 * numbers(out["real-loud"])[4]
            and numbers(out["real-loud"])[5] < 0.75 * numbers(out["real-loud"])[2]
        ),
    ),
    Claim(
        "implicit-reading",
        "All ones!",
        lambda out: set(numbers(out["implicit-run"])) == {1.0},
    ),
]
