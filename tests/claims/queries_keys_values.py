"""What chapter 03 says of its own outputs."""

import ast
import re

from claims import Claim


def numbers(text):
    return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*\.?\d*(?:e[-+]\d+)?", text)]


def table(out):
    """The variance table: for each d its variance, the largest weight without and with the scale."""
    return {row[0]: row[1:] for row in map(numbers, out["variance-table"].strip().split("\n"))}


def gradients(out):
    """For each d and scale the largest weight, and of the gradients mean, median, and 5 % and 95 % quantiles."""
    rows = re.findall(r"d =\s+(\d+), (.*?)\s*: (.*)", out["slope"])
    return {(int(d), scale): numbers(rest.replace("5 to 95 %", "")) for d, scale, rest in rows}


def steps(out, cell):
    """For each d and scale after how many steps each start has learnt, or None."""
    rows = re.findall(r"d =\s+(\d+), (.*?)\s*: learnt after (\[.*?\]) steps", out[cell])
    return {(int(d), scale): ast.literal_eval(found) for d, scale, found in rows}


def all_learn(found):
    return None not in found


def shares(out):
    """For each of the two words how much it looks at each kind of word: in each layer, then the mean."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in out["row-run"].splitlines()]
    found, word = {}, None
    for kind, *values in rows:
        if values[0].startswith("layer"):
            word = found.setdefault(kind.split()[0], {})
        else:
            word[kind] = [float(value) for value in values]
    return found


def hidden(out):
    """For each kind of word how many meanings change, of how many, and how many in the control."""
    rows = re.findall(r"^(.*?)\s+hidden from Schläger: (\d+) of (\d+) .*: (\S+)$", out["without-table"], re.MULTILINE)
    return {kind: (int(changed), int(of), control) for kind, changed, of, control in rows}


def together(out):
    return {
        (kind, word): (int(changed), int(of))
        for kind, word, changed, of in re.findall(
            r"^(.*?)\s+hidden from (\w+):\s+\((\d+), (\d+)\)", out["together"], re.MULTILINE
        )
    }


def times(out):
    return {name: float(ratio) for name, ratio in re.findall(r"^(.*?)\s*:\s+([\d.]+) of", out["race"], re.MULTILINE)}


def looked(out):
    """Which German word each English one looked at most."""
    return dict(re.findall(r"(\S+) looked most at (\S+)", out["show-map"]))


CLAIMS = [
    Claim("similar-reading", "In all seven", lambda out: numbers(out["similar-tor"]) == [7, 7]),
    Claim("roles", "Never, as promised.", lambda out: numbers(out["count"]) == [0, 0]),
    Claim("handmade", "Thousands of each", lambda out: min(numbers(out["count-qk"])) >= 2000),
    Claim(
        "learn-reading",
        "All four starts arrive",
        lambda out: max(numbers(out["learn-run"])[1:]) < 0.01 and len(numbers(out["learn-run"])) == 5,
    ),
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
        "the mean of the gradients does not shrink at all; it grows",
        lambda out: (
            (means := [gradients(out)[d, "no scale"][1] for d in (16, 64, 256, 1024)]) == sorted(means)
            and means[-1] > 2 * means[0]
        ),
    ),
    Claim(
        "slope-reading",
        "the one in the middle is far below the mean, one query in twenty gets less than a ten-thousandth of it",
        lambda out: (
            (row := gradients(out)[1024, "no scale"])[2] < row[1] / 3
            and row[3] < row[1] / 10_000
            and row[4] > 4 * row[1]
        ),
    ),
    Claim(
        "slope-reading",
        "With $\\sqrt d$ they are as even at 1024 as at 16, and of the same size at every width",
        lambda out: all(
            abs(row[1] - 0.14) < 0.01 and row[4] < 3 * row[3] + 0.01
            for (_, scale), row in gradients(out).items()
            if scale == "√d"
        ),
    ),
    Claim(
        "slope-reading",
        "half as large with each row",
        lambda out: all(0.4 < gradients(out)[4 * d, "d"][1] / gradients(out)[d, "d"][1] < 0.6 for d in (16, 64, 256)),
    ),
    Claim(
        "recall-reading",
        "One. With 16 numbers the scale is not needed at all",
        lambda out: (
            [case for case, found in steps(out, "recall-run").items() if not all_learn(found)] == [(256, "no scale")]
            and max(steps(out, "recall-run")[16, "no scale"]) <= max(steps(out, "recall-run")[16, "√d"])
        ),
    ),
    Claim(
        "recall-reading",
        "With 64 its absence costs three times as many steps, and with 256 none of four starts learns the task",
        lambda out: (
            2 < sum((o := steps(out, "recall-run"))[64, "no scale"]) / sum(o[64, "√d"]) < 4
            and o[256, "no scale"] == 4 * [None]
        ),
    ),
    Claim(
        "recall-reading",
        "though later than with $\\sqrt d$, at every width",
        lambda out: all(
            min(steps(out, "recall-run")[d, "d"]) > max(steps(out, "recall-run")[d, "√d"]) for d in (16, 64, 256)
        ),
    ),
    Claim(
        "recall-plain-reading",
        "does not get there in 500 steps, from any of the four starts. With this step size the one without a scale",
        lambda out: (
            (o := steps(out, "recall-plain"))[64, "d"] == 4 * [None] and max(o[64, "no scale"]) < min(o[64, "√d"])
        ),
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
    Claim(
        "hidden-nan-reading",
        "alive in the gradient",
        lambda out: ["nan" in line.split("gradient")[1] for line in out["hidden-nan"].splitlines()] == [True, False],
    ),
    Claim(
        "equal-reading",
        "six or seven digits",
        lambda out: all(float(n) < 5e-6 for n in re.findall(r"difference (\S+)", out["equal-masked"])),
    ),
    Claim(
        "row-reading",
        "at its adjective, where it has one, and at its article, more than at itself, and hardly at the verb",
        lambda out: (
            list(shares(out)["Tor"])[:3] == ["its adjective", "its article", "the word itself"]
            and shares(out)["Tor"]["the verb"][-1] == 0.04
        ),
    ),
    Claim(
        "row-reading",
        "Not in the first layer: there it looks most at itself",
        lambda out: max(shares(out)["Tor"].items(), key=lambda row: row[1][0])[0] == "the word itself",
    ),
    Claim(
        "row-reading",
        "*Schläger*, too, looks at its article more than at any word but itself",
        lambda out: list(shares(out)["Schläger"])[:2] == ["the word itself", "its article"],
    ),
    Claim(
        "without-reading",
        "The subject, in 6 of 32, and a further noun where there is one, in 3 of 16",
        lambda out: [hidden(out)[kind][:2] for kind in ("the subject", "another noun")] == [(6, 32), (3, 16)],
    ),
    Claim(
        "without-reading",
        "The article, at which *Schläger* looks most, changes 1 of 32, and the verb none of 28",
        lambda out: [hidden(out)[kind][:2] for kind in ("its article", "the verb")] == [(1, 32), (0, 28)],
    ),
    Claim(
        "without-reading",
        "Hidden from the article instead, nothing changes anything",
        lambda out: {control for *_, control in hidden(out).values()} == {"–", "0"},
    ),
    Claim(
        "together-reading",
        "Nine of 32; and with all other words hidden only 5",
        lambda out: (
            (together(out)["subject, verb, noun", "Schläger"], together(out)["all", "Schläger"]) == ((9, 32), (5, 32))
        ),
    ),
    Claim(
        "together-reading",
        "2 for its article, 1 for the verb. The full stop changes 4",
        lambda out: (
            [together(out)[kind, "Tor"] for kind in ("its article", "the verb", "the full stop")]
            == [(2, 45), (1, 50), (4, 50)]
        ),
    ),
    Claim(
        "ways-reading",
        "Nine of 32, if nothing may look at the subject. Hidden from the part that writes alone, it changes 2",
        lambda out: re.findall(r": (\d+) of 32 change", out["ways"]) == ["6", "6", "2", "9"],
    ),
    Claim(
        "boxes-reading",
        "Only the second",
        lambda out: (
            [set(numbers(line.split("[")[1])) for line in out["boxes-run"].splitlines()] == [{0.33}] * 3 + [{0.5}]
        ),
    ),
    Claim("tiles-idea", "Sixteen gibibytes", lambda out: "16,384.00 MiB" in out["memory"]),
    Claim(
        "race-reading",
        "Tiles of 64 or more take about as long as the full table",
        lambda out: all(0.5 < times(out)[f"tiles of {tile}"] < 2.5 for tile in (1024, 256, 64)),
    ),
    Claim(
        "race-reading",
        "Tiny ones take nearly twice as long as those of 64",
        lambda out: 1.5 < times(out)["tiles of 16"] / times(out)["tiles of 64"] < 3,
    ),
    Claim(
        "race-reading",
        "Torch's function, which works in tiles in compiled code, is the fastest of all",
        lambda out: min(times(out), key=times(out).get) == "torch's fused",
    ),
    Claim(
        "race-why",
        "The same output, to the last digits of a float. The widest tensor is as wide as a tile",
        lambda out: (
            float(re.search(r"difference (\S+)", out["watchman"])[1]) < 1e-5
            and "widest  10" in out["watchman"].splitlines()[-1]
        ),
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
