"""What chapter 02 says of its own outputs."""

import re

from claims import Claim, by_chance


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)]


def fits(out, cell, start):
    """The words that a line lists as the nearest."""
    line = next(line for line in out[cell].split("\n") if line.startswith(start))
    return re.split(r", ", re.split(r"fits |:\s+", line)[-1])


def pieces(out):
    """For each of the two sentences, how much Tor looked at each piece."""
    rows = re.findall(r"^    (\S.*)$", out["two-sentences"], flags=re.MULTILINE)
    return [{piece: float(weight) for piece, weight in re.findall(r"(\S+) (\d\.\d\d)", row)} for row in rows]


def shares(out):
    """For each kind of word, the largest first, how much Tor looked at it in the mean of the sentences."""
    return {kind.strip(): float(w) for kind, w in re.findall(r"^(.+?)\s+(\d\.\d\d) ", out["all-looks"], re.MULTILINE)}


def kept(out):
    """For each temperature how many meanings stay: of Tor, of Schläger, of Bahn, of all."""
    rows = re.findall(
        r"^temperature (\S+) *: (\d+) of 50, (\d+) of 32, (\d+) of 42; of all (\d+)$", out["likeness-run"], re.M
    )
    return {name: list(map(int, counts)) for name, *counts in rows}


def ends(out, name):
    """Where the three groups of points are, six numbers."""
    return numbers(next(line for line in out["drift-control"].splitlines() if line.startswith(name)))


def pairs(values):
    """The same numbers, two by two."""
    return list(zip(values[::2], values[1::2], strict=True))


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
        "*two* finds other words of quantity",
        lambda out: set(fits(out, "neighbours", "two")[1:]) <= {"three", "four", "five", "many", "several", "few"},
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
        "neighbours-reading",
        "of the ten German words only *zwei* has the English one among its ten nearest",
        lambda out: out["translations"] == "['zwei']",
    ),
    Claim(
        "average-words-reading",
        "Other colours; for the numbers, other words of quantity. For *red*, *street* and *two* it is colours again",
        lambda out: (
            set(fits(out, "average-words", "red")[3:])
            <= {"blue", "pink", "orange", "purple", "black", "white", "brown", "tan", "gray"}
            and set(fits(out, "average-words", "two")[3:])
            <= {"several", "many", "few", "some", "five", "six", "another", "both", "Two", "Three", "Four", "multiple"}
            and set(fits(out, "average-words", "red, street, two")[3:])
            <= {"gold", "green", "yellow", "gray", "blue", "pink", "orange", "purple", "black", "white", "brown", "tan"}
        ),
    ),
    Claim(
        "average-words-reading",
        "with *three* in place of *two* it is *two*, *many* and *road*",
        lambda out: fits(out, "average-words", "red, street, three")[3:] == ["two", "many", "road"],
    ),
    Claim(
        "average-words-reading",
        "keeps 84% of a colour's length, the mean of *red*, *street* and *two* two thirds",
        lambda out: (
            round(100 * (lengths := numbers(out["average-words"]))[1] / lengths[0]) == 84
            and abs(lengths[5] / lengths[4] - 2 / 3) < 0.005
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
        "*Tor* keeps 0.47 for itself in both",
        lambda out: [sentence["▁Tor"] for sentence in pieces(out)] == [0.47, 0.47],
    ),
    Claim(
        "two-sentences-reading",
        "the other pieces differ little, from 0.05 to 0.12",
        lambda out: (
            {0.47} < (weights := {w for sentence in pieces(out) for w in sentence.values()})
            and (min(weights), max(weights - {0.47})) == (0.05, 0.12)
        ),
    ),
    Claim(
        "two-sentences-reading",
        "0.09 and 0.08 make 0.17, more than *Junge* with 0.12",
        lambda out: [pieces(out)[0][piece] for piece in ("▁schie", "ßt", "▁Junge")] == [0.09, 0.08, 0.12],
    ),
    Claim(
        "two-sentences-reading",
        "*Frau* gets the most of the others, with 0.10",
        lambda out: sorted(pieces(out)[1].items(), key=lambda row: -row[1])[1] == ("▁Frau", 0.10),
    ),
    Claim(
        "two-sentences-reading",
        "Five sentences with a *Torwart*, a goalkeeper, are left out",
        lambda out: "(in 45 sentences)" in out["all-looks"].splitlines()[0],  # of fifty
    ),
    Claim(
        "all-looks-reading",
        "The word itself, 0.45 of it",
        lambda out: next(iter(shares(out).items())) == ("the word itself", 0.45),
    ),
    Claim(
        "all-looks-reading",
        "The subject gets 0.12. The article, which turned gates into goals in chapter 0, gets 0.08",
        lambda out: (shares(out)["the subject"], shares(out)["its article"]) == (0.12, 0.08),
    ),
    Claim(
        "likeness-reading",
        "40 of the fifty *Tor* keep their meaning, with the plain mean 45; of all sentences 109 and 110",
        lambda out: [(row[0], row[-1]) for row in (kept(out)["1"], kept(out)["infinite"])] == [(40, 109), (45, 110)],
    ),
    Claim(
        "likeness-reading",
        "At temperature 4, where the weights are more alike, it is 45 and 112",
        lambda out: (kept(out)["4"][0], kept(out)["4"][-1]) == (45, 112),
    ),
    Claim(
        "likeness-reading",
        "chapter 1's width 1 again: 29, and 83 of all",
        lambda out: (kept(out)["1/128"][0], kept(out)["1/128"][-1]) == (29, 83),
    ),
    Claim(
        "likeness-reading",
        "the mean alone is right in seven sentences, $x \\cdot x$ alone in two; with *Bahn* it is none and four",
        lambda out: re.findall(r"alone (\d+)", out["likeness-run"]) == ["2", "7", "4", "0"],
    ),
    Claim(
        "likeness-reading",
        "Both may be chance",
        lambda out: by_chance(7, 2) > 5 and by_chance(4, 0) > 5,
    ),
    Claim(
        "real-loud-reading",
        "By a factor of about five",
        lambda out: 4 < numbers(out["real-loud"])[1] / numbers(out["real-loud"])[0] < 6.5,
    ),
    Claim(
        "real-loud-reading",
        "Only fifty fit another one better than they fit themselves, and those are quiet",
        lambda out: (
            numbers(out["real-loud"])[3] == 50 and numbers(out["real-loud"])[5] < 0.75 * numbers(out["real-loud"])[2]
        ),
    ),
    Claim(
        "real-loud-reading",
        "Without them the factor is 2.6",
        lambda out: (
            round((lengths := numbers(out["real-loud"].splitlines()[4]))[1] / lengths[0], 1) == 2.6
            and lengths[1] == numbers(out["real-loud"])[1]
        ),
    ),
    Claim(
        "real-loud-reading",
        "*Gogg*, *coff*, *Leut* are beginnings",
        lambda out: {"gogg", "coff", "Leut"} <= set(re.findall(r"\w+", out["real-loud"].splitlines()[2])),
    ),
    Claim(
        "drift-control-reading",
        "Without loudness they end close to their centres",
        lambda out: (
            all(
                abs(a - b) < 0.25 for a, b in zip(ends(out, "at the start"), ends(out, "without loudness"), strict=True)
            )
            and all(  # along its own direction each group ends further out
                a * c + b * d > 1.1 * (a * a + b * b)
                for (a, b), (c, d) in zip(
                    pairs(ends(out, "at the start")), pairs(ends(out, "after three steps")), strict=True
                )
            )
        ),
    ),
    Claim(
        "implicit-reading",
        "All ones!",
        lambda out: set(numbers(out["implicit-run"])) == {1.0},
    ),
]
