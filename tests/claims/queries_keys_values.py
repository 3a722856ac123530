"""What chapter 03 says of its own outputs."""

import ast
import re
from itertools import pairwise

import pytest

from claims import Claim


def numbers(text):
    return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*\.?\d*(?:e[-+]\d+)?", text)]


def table(out):
    """The variance table: for each start and d its variance, the largest weight without and with the scale."""
    rows = re.findall(
        r"^(.*?)\s*, d =\s+(\d+): variance\s+(\S+), largest weight (\S+), scaled (\S+)", out["variance-table"], re.M
    )
    return {(start, int(d)): tuple(map(float, found)) for start, d, *found in rows}


def gradients(out):
    """At the queries and keys for each scale: means and medians; at d = 1024 the 5 % quantile and the few."""
    rows = re.findall(
        r"^(.*?)\s+(queries|keys)\s*: means (\[.*?\]), medians (\[.*?\])\n\s+d = 1024: 5 % below (\S+), (\d+)% below",
        out["slope-numbers"],
        re.M,
    )
    return {
        (scale, what): (ast.literal_eval(means), ast.literal_eval(medians), float(low), int(few))
        for scale, what, means, medians, low, few in rows
    }


def at_the_matrix(out):
    """For each scale how long the gradient at Wq is at four widths, and how many times as long as Wq."""
    rows = re.findall(r"^(.*?)\s+Wq\s*: (\[.*?\]), .* length (\[.*?\])", out["slope-numbers"], re.M)
    return {scale: (ast.literal_eval(lengths), ast.literal_eval(times)) for scale, lengths, times in rows}


def alike(out):
    """The four starts' correlations with the design, of the entries, then of the scores."""
    return [float(n) for n in re.findall(r"'(0\.\d+)'", out["learn-plot"])]


def before(out):
    """For each word: how often it looks most right before it, of how many, and what is there."""
    found = re.findall(r"^(\w+) looks most .* in (\d+) of (\d+):\n\s+(.*)$", out["before-run"], re.MULTILINE)
    return {word: (int(hits), int(of), dict(re.findall(r"([a-z ]+?) (\d+)", roles))) for word, hits, of, roles in found}


def odds(out):
    """For each kind of word: the mean change of the log-odds, its error, in how many it falls, of how many."""
    rows = re.findall(r"^(.*?)\s+hidden from Schläger: (\S+) ± (\S+), (\d+) of (\d+) fall", out["odds"], re.MULTILINE)
    return {role: tuple(float(n) for n in row) for role, *row in rows}


def sides(out):
    """With a subject that names a sport or not: the mean change, in how many it falls, of how many."""
    found = re.findall(r"(?:sport|not): ([+-][\d.]+) ± [\d.]+, (\d+) of (\d+) fall", out["sides-run"])
    return {names: tuple(float(n) for n in row) for names, row in zip((True, False), found, strict=True)}


def steps(out, cell):
    """For each d and scale after how many steps each start has learnt, or None."""
    rows = re.findall(r"d =\s+(\d+), (.*?)\s*: learnt after (\[.*?\]) steps", out[cell])
    return {(int(d), scale): ast.literal_eval(found) for d, scale, found in rows}


def absorbed(out):
    """For each step size and scale after how many steps each start has learnt, or None."""
    rows = re.findall(r"step size ([\d.]+), d =\s+\d+, (.*?)\s*: learnt after (\[.*?\]) steps", out["recall-absorbed"])
    return {(rate, scale): ast.literal_eval(found) for rate, scale, found in rows}


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
    """For each word and kind of word how many meanings change, in each of three ways, then of how many."""
    found, word = {}, None
    for line in out["without-table"].splitlines():
        kind, *cells = re.split(r"\s{2,}", re.sub(r" \(\d+\)", "", line.strip()))
        if cells[-1:] == ["of"]:
            word = kind
        elif cells:
            found[word, kind] = [int(cell) for cell in " ".join(cells).split()]
    return found


def looked(out):
    """Which German word each English one looked at most."""
    return dict(re.findall(r"(\S+) looked most at (\S+)", out["show-map"]))


CLAIMS = [
    Claim("similar-reading", "In all seven", lambda out: numbers(out["similar-tor"]) == [7, 7]),
    Claim("roles", "Never, as promised.", lambda out: numbers(out["count"]) == [0, 0]),
    Claim("handmade", "Thousands of each", lambda out: min(numbers(out["count-qk"])) >= 2000),
    Claim(
        "learn-reading",
        "On random sentences all four starts arrive",
        lambda out: len(found := numbers(out["learn-run"].splitlines()[0])) == 5 and max(found) < 0.01,
    ),
    Claim(
        "learn-reading",
        "there they err by 0.02 to 0.03, the design by nothing",
        lambda out: (
            (found := numbers(out["learn-run"].splitlines()[1].partition(":")[2]))[0] == 0
            and all(0.015 < one < 0.035 for one in found[1:])
        ),
    ),
    Claim(
        "variance-reading",
        "the largest of sixteen weights is 0.84 on average",
        lambda out: (row := table(out)["variance 1", 64])[1:] == (0.84, 0.25) and abs(row[0] / 64 - 1) < 0.05,
    ),
    Claim(
        "variance-reading",
        "With the scale it is 0.25, and nearly that at every $d$",
        lambda out: all(0.22 <= row[2] <= 0.26 for (start, _), row in table(out).items() if start == "variance 1"),
    ),
    Claim(
        "variance-reading",
        "From $d = 16$ on, their numbers have a variance of about ⅓, the scores one of about $d/9$: the largest "
        "weight is 0.57 without a scale at 64, 0.88 at 1,024, and with it 0.10 or 0.11",
        lambda out: (
            [(o := table(out))["nn.Linear", d][1] for d in (64, 1024)] == [0.57, 0.88]
            and all(o["nn.Linear", d][2] in (0.10, 0.11) for d in (16, 64, 256, 1024))
            and all(abs(o["nn.Linear", d][0] * 9 / d - 1) < 0.1 for d in (16, 64, 256, 1024))
        ),
    ),
    Claim(
        "learn-reading",
        "With our design the entries correlate by about 0.6, the scores by about 0.9",
        lambda out: (
            len(found := alike(out)) == 8
            and all(0.55 < one < 0.65 for one in found[:4])
            and all(0.85 < one < 0.95 for one in found[4:])
        ),
    ),
    Claim(
        "slope-reading",
        "the mean of the gradients does not shrink at all; it grows",
        lambda out: (means := gradients(out)["no scale", "queries"][0]) == sorted(means) and means[-1] > 2 * means[0],
    ),
    Claim(
        "slope-reading",
        "the queries' median is far below the mean, one query in four",
        lambda out: (row := gradients(out)["no scale", "queries"])[1][-1] / row[0][-1] < 0.3 and 22 <= row[3] <= 28,
    ),
    Claim(
        "slope-reading",
        "Keys, which add up what sixteen queries send, are less uneven: 7 in 100",
        lambda out: (row := gradients(out)["no scale", "keys"])[3] == 7 and row[1][-1] / row[0][-1] > 0.4,
    ),
    Claim(
        "slope-reading",
        "With $\\sqrt d$ both are as even at 1024 as at 16, and of the same size at every width",
        lambda out: all(
            all(abs(size - 0.14) < 0.01 for size in means + medians) and low > 0.6 * medians[-1]
            for (scale, _), (means, medians, low, _) in gradients(out).items()
            if scale == "√d"
        ),
    ),
    Claim(
        "slope-reading",
        "half as large with each step",
        lambda out: all(
            0.4 < b / a < 0.6 for what in ("queries", "keys") for a, b in pairwise(gradients(out)["d", what][0])
        ),
    ),
    Claim(
        "slope-reading",
        "So with $\\sqrt d$ it grows from 15 to 118; it is with $d$ that its length stays the same",
        lambda out: (
            [round((o := at_the_matrix(out))["√d"][0][n]) for n in (0, -1)] == [15, 118]
            and max(o["d"][0]) < 1.05 * min(o["d"][0])
        ),
    ),
    Claim(
        "slope-reading",
        "its gradient is about 6.4 times as long as the weights at every width, without a scale 32 to 173 times",
        lambda out: (
            (o := at_the_matrix(out))["√d"][1] == pytest.approx([6.4] * 4, abs=0.1)
            and [round(o["no scale"][1][n]) for n in (0, -1)] == [32, 173]
            and (round(o["d"][1][0], 1), round(o["d"][1][-1], 2)) == (1.5, 0.19)
        ),
    ),
    Claim(
        "why_scale",
        "(a quarter, in our runs with 1024) the softmax is saturated",
        lambda out: 22 <= gradients(out)["no scale", "queries"][3] <= 28,
    ),
    Claim(
        "why_scale",
        "(that of $W_q$ grows like $\\sqrt d$, as $W_q$ itself does)",
        lambda out: all(1.9 < b / a < 2.1 for a, b in pairwise(at_the_matrix(out)["√d"][0])),
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
        "With 64 its absence costs these four starts two to three times as many steps, and with 256 none of them",
        lambda out: (
            2 < sum((o := steps(out, "recall-run"))[64, "no scale"]) / sum(o[64, "√d"]) < 3
            and o[256, "no scale"] == 4 * [None]
        ),
    ),
    Claim(
        "recall-reading",
        "though later than with $\\sqrt d$, at all three widths",
        lambda out: all(
            min(steps(out, "recall-run")[d, "d"]) > max(steps(out, "recall-run")[d, "√d"]) for d in (16, 64, 256)
        ),
    ),
    Claim(
        "recall-small-reading",
        "all four starts learn it without a scale, too, but after hundreds of steps in place of about forty",
        lambda out: (
            all_learn((o := steps(out, "recall-small"))[256, "no scale"])
            and min(o[256, "no scale"]) > 100
            and max(o[256, "√d"]) < 60
        ),
    ),
    Claim(
        "recall-absorbed-reading",
        "A smaller start alone is enough only with the small steps: there it takes dozens of them, in place of "
        "hundreds. With the steps of the table none of the four starts learns it",
        lambda out: (
            (o := absorbed(out))["0.003", "in Wq"] == 4 * [None]
            and all_learn(o["0.0003", "in Wq"])
            and max(o["0.0003", "in Wq"]) < 100 < min(steps(out, "recall-small")[256, "no scale"])
        ),
    ),
    Claim(
        "recall-absorbed-reading",
        "each start takes the same number of steps as with $\\sqrt d$",
        lambda out: all(
            absorbed(out)[rate, "in Wq and its steps"] == absorbed(out)[rate, "√d"] for rate in ("0.003", "0.0003")
        ),
    ),
    Claim(
        "dem-reading",
        "Hidden from *Tor* it still makes 10 goals, and 12 when only the decoder goes without it. When both",
        lambda out: re.findall(r": (\d+) of 15 are goals", out["dem"])[:4] == ["15", "10", "12", "0"],
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
        "ex4",
        "NaN in the first number, 0.5 in the second",
        lambda out: all("[[nan, 0.5]]" in line for line in out["blocked-inf"].splitlines()),
    ),
    Claim(
        "hide-reading",
        "The rows are `1 1 1 1`, `0 1 1 0`, `0 1 1 0`, `1 1 1 1`",
        lambda out: numbers(out["hide-run"])[:16] == [1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1],
    ),
    Claim(
        "equal-reading",
        "six or seven digits",
        lambda out: all(float(n) < 5e-6 for n in re.findall(r"difference (\S+)", out["equal-masked"])),
    ),
    Claim(
        "row-reading",
        "On average *Tor* looks more at its article than at itself, more still at its adjective, where it has one",
        lambda out: (
            list(shares(out)["Tor"])[:3] == ["its adjective", "its article", "the word itself"]
            and shares(out)["Tor"]["the verb"][-1] == 0.04
        ),
    ),
    Claim(
        "row-reading",
        "Of the kinds in its table *Schläger* looks most at its article, after itself",
        lambda out: list(shares(out)["Schläger"])[:2] == ["the word itself", "its article"],
    ),
    Claim(
        "before-reading",
        "In all fifty sentences *Tor* looks most at the word right before it: the article in 36, an adjective in 9, a",
        lambda out: (
            before(out)["Tor"] == (50, 50, {"its article": "36", " its adjective": "9", " the preposition": "5"})
        ),
    ),
    Claim(
        "before-reading",
        "*Schläger* does so in 22 of 32",
        lambda out: before(out)["Schläger"][:2] == (22, 32),
    ),
    Claim(
        "without-reading",
        "the subject, in 6, 8 and 9 of 32, and a further noun where there is one, in 3, 2 and 4 of 16",
        lambda out: (
            (o := hidden(out))["Schläger", "the subject"] == [6, 8, 9, 32]
            and o["Schläger", "another noun"] == [3, 2, 4, 16]
        ),
    ),
    Claim(
        "without-reading",
        "The article, at which it looks most, changes 1, 2 and 2, the verb at most 1, the controls none",
        lambda out: (
            (o := hidden(out))["Schläger", "its article"] == [1, 2, 2, 32]
            and max(o["Schläger", "the verb"][:3]) == 1
            and all(o["Schläger", kind] == [0, 0, 0, 32] for kind in ("the full stop", "the subject's article"))
        ),
    ),
    Claim(
        "without-reading",
        "Its adjective, at which it looks most, changes 7 of 9, where no other single word changes any",
        lambda out: (
            hidden(out)["Tor", "its adjective"][1:] == [7, 7, 9]
            and ast.literal_eval(out["without-table"].rpartition(":")[2].strip()) == [7, *7 * [0]]
        ),
    ),
    Claim(
        "without-reading",
        "But hidden from *Tor* alone it changes 1",
        lambda out: hidden(out)["Tor", "its adjective"][0] == 1,
    ),
    Claim(
        "without-reading",
        "the subject changes 7 of 50, the article 6 of 45, but the subject's article, a control, 7 of 48",
        lambda out: (
            [hidden(out)["Tor", kind][2:] for kind in ("the subject", "its article", "the subject's article")]
            == [[7, 50], [6, 45], [7, 48]]
        ),
    ),
    Claim(
        "sides-reading",
        "Hidden from *Tor*, the article changes 2 of 45",
        lambda out: hidden(out)["Tor", "its article"][0] == 2,
    ),
    Claim(
        "odds-reading",
        "Without the subject the log-odds fall by 0.50, without another noun by about as much",
        lambda out: odds(out)["the subject"][0] == -0.50 and abs(odds(out)["another noun"][0] + 0.50) < 0.1,
    ),
    Claim(
        "odds-reading",
        "they fall about as often as they rise, and the mean is within two standard errors of 0",
        lambda out: abs((row := odds(out)["its article"])[0]) < 2 * row[1] and abs(row[2] / row[3] - 0.5) < 0.12,
    ),
    Claim(
        "sides-reading",
        "hiding it takes 0.95, in 18 of 18 sentences; where it does not, nothing is taken",
        lambda out: sides(out)[True] == (-0.95, 18, 18) and sides(out)[False][0] > 0,
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
    Claim("yours-reading", "The model's own numbers", lambda out: float(out["yours"].split(":")[1].strip()) < 1e-6),
    Claim("map-reading", "*Goal* looked at *Tor*", lambda out: looked(out)["goal"] == "Tor"),
    Claim(
        "map-reading",
        "*boy* at *Junge*, and *kicks* at *schießt*",
        lambda out: (looked(out)["boy"], looked(out)["kicks"]) == ("Junge", "schießt"),
    ),
]
