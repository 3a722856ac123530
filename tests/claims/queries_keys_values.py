"""What chapter 03 says of its own outputs."""

import re

from claims import Claim


def numbers(text):
    return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*\.?\d*(?:e[-+]\d+)?", text)]


def ranking(out):
    return [line.split()[0] for line in out["similar-tor"].split("\n") if line.strip()]


def table(out):
    """The variance table: for each d its variance, the largest weight without and with the scale."""
    return {row[0]: row[1:] for row in map(numbers, out["variance-table"].strip().split("\n"))}


def slopes(out):
    return {row[0]: row[1] / row[2] for row in map(lambda s: [*numbers(s)][:3], out["slope"].strip().split("\n"))}


def verdicts(out, test):
    row = next(line for line in out["property-table"].split("\n") if line.startswith(test))
    return row.removeprefix(test).replace("FINDS IT", "FINDS").split()


def times(out):
    rows = re.findall(r"^(.*?)\s*: scores.*time\s+([\d.]+)", out["race-table"], flags=re.MULTILINE)
    return {name: float(ratio) for name, ratio in rows}


CLAIMS = [
    Claim("similar-reading", "At itself, by far", lambda out: ranking(out)[0] == "▁Tor"),
    Claim(
        "similar-reading",
        "no piece of the verb, which settles the question, gets more than *Junge* or *Ein*",
        lambda out: set(ranking(out)[1:3]) == {"▁Junge", "▁Ein"},
    ),
    Claim("roles", "Never, as promised.", lambda out: numbers(out["count"]) == [0, 0]),
    Claim("handmade", "Thousands of each", lambda out: min(numbers(out["count-qk"])) >= 2000),
    Claim(
        "variance-reading",
        "the largest of sixteen weights is 0.84 on average",
        lambda out: table(out)[64][1:] == [0.84, 0.25] and abs(table(out)[64][0] / 64 - 1) < 0.05,
    ),
    Claim(
        "variance-reading",
        "that stays the same for every $d$",
        lambda out: all(0.22 <= row[2] <= 0.26 for row in table(out).values()),
    ),
    Claim(
        "slope-reading",
        "About four times smaller at 64, more than ten times at 1024",
        lambda out: 3.5 < 1 / slopes(out)[64] < 4.5 and slopes(out)[1024] < 0.1,
    ),
    Claim(
        "causal", "Four real words in the first sentence, three", lambda out: numbers(out["padding-count"]) == [4, 3]
    ),
    Claim("both", "Fifteen", lambda out: numbers(out["causal-count"]) == [15]),
    Claim("both-reading", "`(2, 5, 5)`", lambda out: numbers(out["both-masks"]) == [2, 5, 5, 3]),
    Claim(
        "renormalise-reading",
        "$0/0$ is NaN",
        lambda out: "nan" in out["renormalise"].split("\n")[0] and "nan" not in out["renormalise"].split("\n")[1],
    ),
    Claim("hidden-nan-reading", "alive in the gradient", lambda out: "nan" in out["hidden-nan"].split("gradient")[1]),
    Claim(
        "equal-reading",
        "six or seven digits",
        lambda out: all(float(n) < 5e-6 for n in re.findall(r"difference (\S+)", out["equal-masked"])),
    ),
    Claim(
        "ex5",
        "it is the columns that sum to 1",
        lambda out: "1.0, 1.0, 1.0, 1.0, 1.0, 1.0" in out["leak-picture"].split("columns")[1],
    ),
    Claim(
        "property-reading",
        "The two tests that everybody writes find nothing",
        lambda out: all("FINDS" not in verdicts(out, test) for test in ("the shape", "weights sum to n")),
    ),
    Claim(
        "property-reading",
        "*Rows sum to 1* finds the axis and nothing else",
        lambda out: verdicts(out, "rows sum to 1") == ["passes", "passes", "passes", "FINDS"],
    ),
    Claim(
        "property-reading",
        "padding a sentence finds all three",
        lambda out: (
            verdicts(out, "padding") == ["passes", "FINDS", "FINDS", "FINDS"]
            and verdicts(out, "what is forbidden")[:2] == ["passes", "FINDS"]
        ),
    ),
    Claim("tiles-idea", "Sixteen gibibytes", lambda out: "16,384.00 MiB" in out["memory"]),
    Claim(
        "race-reading",
        "your tiles cost somewhat more than the full table",
        lambda out: all(0.8 < times(out)[f"tiles of {tile}"] < 2.5 for tile in (1024, 256, 64)),
    ),
    Claim(
        "race-reading",
        "tiny ones a few times as much",
        lambda out: times(out)["tiles of 16"] > 2 and times(out)["tiles of 16"] > times(out)["tiles of 64"],
    ),
    Claim(
        "race-reading",
        "is the fastest of all",
        lambda out: min(times(out), key=times(out).get) == "torch's fused",
    ),
    Claim(
        "captured-reading",
        "3 layers of 4 *heads* each",
        lambda out: numbers(out["captured"].split("queries")[1]) == [3, 4, 8, 32, 3, 4, 9, 32, 3, 4, 9, 32],
    ),
    Claim(
        "yours-reading", "to the last digits of a float", lambda out: float(out["yours"].split(":")[1].strip()) < 1e-6
    ),
    Claim("map-reading", "*Goal* looked at *Tor*", lambda out: looked(out)["goal"] == "Tor"),
    Claim(
        "map-reading",
        "*boy* at *Junge*, and *kicks* at *schießt*",
        lambda out: (looked(out)["boy"], looked(out)["kicks"]) == ("Junge", "schießt"),
    ),
]


def looked(out):
    """Which German word each English one looked at most."""
    return dict(re.findall(r"(\S+) looked most at (\S+)", out["show-map"]))
