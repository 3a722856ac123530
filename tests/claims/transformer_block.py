"""What chapter 06 says of its own runs."""

import math
import re

from claims import Claim, reversal


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)]


def rows(text: str) -> dict[str, list[float]]:
    """The numbers of each line after its colon, by what stands before it."""
    parts = [line.rpartition(":") for line in text.splitlines() if ":" in line]
    return {name.partition(":")[0].strip(): numbers(values) for name, _, values in parts}


def training(outputs: dict[str, str]) -> dict[str, list[float]]:
    return rows(outputs["training-plot"])


def spreads_of_the_trained(outputs: dict[str, str]) -> list[float]:
    return [float(n) for n in re.findall(r"spread (\d\.\d+)", outputs["collapse-trained"])]


DEPTHS = [1, 2, 5, 10, 20, 50, 100]


def by_depth(text: str) -> dict[tuple[str, ...], dict[int, float]]:
    """The numbers of each row of a table by depth, of (layer, initial weights, way)."""
    lines = [line.split() for line in text.splitlines() if ", " in line]
    named = [(" ".join(words[: -len(DEPTHS)]), words[-len(DEPTHS) :]) for words in lines]
    return {tuple(name.split(", ")): dict(zip(DEPTHS, map(float, n), strict=True)) for name, n in named}


def apart(outputs: dict[str, str]) -> dict[tuple[str, ...], dict[int, float]]:
    return by_depth(outputs["collapse-numbers"])


def ordinary(outputs: dict[str, str]) -> tuple[dict, dict]:
    """Gradients and spreads of the ordinary layers: all rows that 6.2 prints."""
    gradients, _, spreads = outputs["shrinking"].partition("\nspread")
    return by_depth(gradients), by_depth(spreads)


def ends(outputs: dict[str, str]) -> tuple[dict, dict]:
    """Gradients and spreads after a hundred layers, of (layer, initial weights) and way."""
    tables = []
    for text in re.split(r"\n(?= *spread)", outputs["residual-table"]):
        head, *lines = filter(None, text.splitlines())
        ways = head.partition("layers")[2].split()
        cut = [(" ".join(line.split()[: -len(ways)]), line.split()[-len(ways) :]) for line in lines]
        read = [
            (tuple(name.split(", ")), [float(v.replace("overflow", "inf")) for v in values]) for name, values in cut
        ]
        tables.append({(*name, way): v for name, values in read for way, v in zip(ways, values, strict=True)})
    gradients, spreads = tables
    return gradients, spreads


def extremes(outputs: dict[str, str]) -> dict[str, tuple[float, float, float, float, int]]:
    """Of each way, over rows and seeds: least and largest gradient, least and largest spread, how many are sound."""
    line = re.compile(r"^ *(\S+) +(\S+) – (\S+) +(\S+) – (\S+) +(\d+) of 28$", re.MULTILINE)
    found = {}
    for way, *values, count in line.findall(outputs["sound"]):
        least, most, lowest, highest = (float(v.replace("overflow", "inf")) for v in values)
        found[way] = (least, most, lowest, highest, int(count))
    return found


def shares(outputs: dict[str, str]) -> dict[str, list[float]]:
    lines = [line.split() for line in outputs["share-added"].splitlines()]
    return {name: [*map(float, values)] for name, *values in lines}


def at_the_end(outputs: dict[str, str]) -> dict[str, list[float]]:
    """The spread after 100 layers, by way, of each seed."""
    lines = [line.partition(": spread after 100 layers") for line in outputs["share-controls"].splitlines()]
    return {name.strip(): numbers(values) for name, _, values in lines}


def step_by_step(outputs: dict[str, str]) -> dict[str, list[float]]:
    """The spread of a post-norm stack after 0, 1, 5 and 20 steps, by its depth and how it was trained."""
    found = re.findall(r"^ *(\d+ blocks, [A-Za-z', -]*[a-z]) +([\d. ]+)$", outputs["alike-by-steps"], re.MULTILINE)
    return {name: [float(v) for v in values.split()] for name, values in found}


def row(phrase: str, *runs: list[float], cell: str = "training-reading") -> Claim:
    """A row of the table of longer trainings: the loss of each seed."""
    said = [loss for found in runs for loss in found]
    return Claim(cell, phrase, lambda _: numbers(phrase) == [round(loss, 2) for loss in said])


SLOW = "post-norm, smaller, warm-up"
TENTH_FAILS = [("ordinary", start, "tenth") for start in ("Xavier", "He")]
# The loss of knowing how often each digit occurs, but not where: each of the seven others is the same with chance 0.1.
IN_NO_ORDER = math.log(8) - sum(math.comb(7, k) * 0.1**k * 0.9 ** (7 - k) * math.log(1 + k) for k in range(8))
UNDIRECTED = "post-norm, a third of the rate, words apart, queries and keys as drawn"
XAVIERS = [f"post-norm, {how}" for how in ("no warm-up", "warm-up of 60 steps", "a third of the rate")]
MARKS = ("<s>", ".", "</s>")


def off_by(outputs: dict[str, str]) -> list[float]:
    """How far the reader's states are from the translator's, by layer, as a share of the largest number."""
    found = re.findall(r"largest number (\d+), farthest off by (\S+)", outputs["real-weights-run"])
    return [float(off) / float(largest) for largest, off in found]


def on_and_off(outputs: dict[str, str]) -> dict[str, list[float]]:
    """The shares of pieces nearest to their own vector, by layer, for each thing that was asked."""
    lines = [line.partition(":") for line in outputs["still-themselves-run"].splitlines() if ":" in line]
    return {name.strip(): [*map(float, re.findall(r"([\d.]+)%", values))] for name, _, values in lines}


def beginnings(outputs: dict[str, str]) -> dict[str, list[float]]:
    """Each piece's cosine with its own beginning, by layer."""
    lines = [line.split() for line in outputs["own-beginning"].splitlines()]
    return {piece: [*map(float, values)] for piece, *values in lines}


CLAIMS = [
    Claim(
        "collapse-reading",
        "a spread of 0.00 with either kind of initial weights",
        lambda o: all(row[5] < 0.005 for (*_, way), row in apart(o).items() if way == "alone"),
    ),
    Claim(
        "collapse-reading",
        "still above one half after twenty layers",
        lambda o: apart(o)["attention", "torch's default", "residual"][20] > 0.5,
    ),
    Claim(
        "collapse-reading",
        "where it is more than half as large as they are, nothing is left by then",
        lambda o: (
            apart(o)["attention", "Xavier", "residual"][20] < 0.01
            and [float(v) > 0.5 for v in re.findall(r"is ([\d.]+) times", o["swamped"])] == [False, True]
        ),
    ),
    Claim(
        "collapse-reading",
        "After a hundred layers it is gone with both",
        lambda o: all(row[100] < 0.02 for row in apart(o).values()),
    ),
    Claim(
        "company",
        "Hardly any spread is lost there. But three layers are few: after two fresh ones that add, with torch's "
        "default, 0.87 is left",
        lambda o: (
            spreads_of_the_trained(o)[0] == 0.9
            and min(spreads_of_the_trained(o)) > 0.87
            and apart(o)["attention", "torch's default", "residual"][2] == 0.87
        ),
    ),
    Claim(
        "shrinking-reading",
        "the spread and the gradient are less than a millionth",
        lambda o: max(column["ordinary", "torch's default", "alone"][20] for column in ordinary(o)) < 1e-6,
    ),
    Claim(
        "shrinking-reading",
        "keeps the spread at 0.9 for a hundred layers",
        lambda o: all(0.85 < v < 0.95 for v in ordinary(o)[1]["ordinary", "torch's default", "norm"].values()),
    ),
    Claim(
        "shrinking-reading",
        "grows by a fifth in each layer, to about 50 after twenty layers, and to more than a hundred million",
        lambda o: (
            45 < (row := ordinary(o)[0]["ordinary", "torch's default", "norm"])[20] < 55
            and row[100] > 1e8
            and 1.18 < (row[100] / row[20]) ** (1 / 80) < 1.25
        ),
    ),
    Claim(
        "shrinking-reading",
        "With He's weights the gradient stays near 1 for a hundred layers, and the spread fades slowly: 0.29 is left "
        "after twenty layers, and 0.06 after a hundred",
        lambda o: (
            all(0.5 < g < 1.5 for g in ordinary(o)[0]["ordinary", "He", "alone"].values())
            and [round(ordinary(o)[1]["ordinary", "He", "alone"][depth], 2) for depth in (20, 100)] == [0.29, 0.06]
        ),
    ),
    Claim(
        "shrinking-reading",
        "46 in twenty layers, $2 \\cdot 10^8$ in a hundred. The size of the weights does not appear in it",
        lambda o: (
            0.5 < ordinary(o)[0]["ordinary", "torch's default", "norm"][20] / 46 < 2
            and all(
                0.5 < gradient / 2e8 < 2
                for (kind, _, way), gradient in ends(o)[0].items()
                if (kind, way) == ("ordinary", "norm")
            )
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "One way is sound in all seven rows and with all four seeds: **pre-norm**",
        lambda o: [way for way, found in extremes(o).items() if found[-1] == 28] == ["pre-norm"],
    ),
    Claim(
        "gradient-grid-reading",
        "Its gradients lie between 2 and 29, its spreads between 0.1 and 0.5",
        lambda o: (
            (found := extremes(o)["pre-norm"])[0] >= 2
            and found[1] <= 29
            and 0.09 <= found[2] < 0.15
            and 0.45 < found[3] < 0.55
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "**tenth** comes nearest, with gradients between 1 and 18. It is sound in five rows, among them all four",
        lambda o: (
            (found := extremes(o)["tenth"])[-1] == 20
            and found[0] >= 0.95
            and found[1] <= 18
            and max(count for way, (*_, count) in extremes(o).items() if way not in ("tenth", "pre-norm")) < 20
            and all(ends(o)[1][row] < 0.045 for row in TENTH_FAILS)
            and all(s > 0.1 for row, s in ends(o)[1].items() if row[2] == "tenth" and row not in TENTH_FAILS)
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "**alone** is sound only for ordinary layers with the weights made for them, He's, and there with two seeds",
        lambda o: extremes(o)["alone"][-1] == 2 and ends(o)[1]["ordinary", "He", "alone"] > 0.05,
    ),
    Claim(
        "gradient-grid-reading",
        "In the other rows the spread is gone, and in all of these but one the gradient too",
        lambda o: (
            sum(s < 0.005 for (*_, way), s in ends(o)[1].items() if way == "alone") == 6
            and sum(g < 1e-12 for (*_, way), g in ends(o)[0].items() if way == "alone") == 5
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "**norm** never is. Ordinary layers keep their spread and explode",
        lambda o: (
            extremes(o)["norm"][-1] == 0
            and all(s > 0.9 for (kind, _, way), s in ends(o)[1].items() if (kind, way) == ("ordinary", "norm"))
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "With attention in the stack the gradient survives, but the nine words are one vector",
        lambda o: all(
            ends(o)[1][row] < 0.005 and 0.1 < gradient < 10
            for row, gradient in ends(o)[0].items()
            if row[0] != "ordinary" and row[2] == "norm"
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "nothing stops it from growing, in two rows until the numbers overflow",
        lambda o: (
            extremes(o)["residual"][-1] == 0
            and extremes(o)["residual"][0] > 1
            and sum(g == float("inf") for (*_, way), g in ends(o)[0].items() if way == "residual") == 2
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "With attention alone the spread is gone; for ordinary layers with larger weights the gradient grows",
        lambda o: (
            extremes(o)["post-norm"][-1] == 8
            and all(ends(o)[1]["attention", start, "post-norm"] < 0.02 for start in ("torch's default", "Xavier"))
            and all(ends(o)[0]["ordinary", start, "post-norm"] > 100 for start in ("Xavier", "He"))
        ),
    ),
    Claim(
        "gradient-grid-reading",
        "Had we asked for a spread above 0.1 or a gradient below 20, pre-norm would fail in some rows, too. But none "
        "of the other ways keeps even a spread of 0.02 in all rows",
        lambda o: (
            (found := extremes(o)).pop("pre-norm")[1] > 20
            and extremes(o)["pre-norm"][2] < 0.1
            and len(found) == 5
            and all(lowest < 0.015 for _, _, lowest, *_ in found.values())
        ),
    ),
    Claim(
        "pre_or_post_norm",
        "with attention in the stack post-norm's stay in range",
        lambda o: all(
            1 / 50 < gradient < 50
            for row, gradient in ends(o)[0].items()
            if row[0] != "ordinary" and row[2] == "post-norm"
        ),
    ),
    Claim(
        "pre-post",
        "pre-norm's spread is 0.1 or more in each row, post-norm's 0.1 or less",
        lambda o: all(
            s >= 0.095 if row[2] == "pre-norm" else s < 0.105
            for row, s in ends(o)[1].items()
            if row[0] != "ordinary" and row[2] in ("pre-norm", "post-norm")
        ),
    ),
    Claim(
        "share-reading",
        "In post-norm it grows to about 1 and stays there, in pre-norm it falls to a tenth",
        lambda o: (
            all(0.45 < shares(o)[order][0] < 0.65 for order in ("post-norm", "pre-norm"))
            and all(0.9 < share < 1.1 for share in shares(o)["post-norm"][3:])
            and 0.08 < shares(o)["pre-norm"][-1] < 0.12
        ),
    ),
    Claim(
        "share-controls-reading",
        "Pre-norm whose additions grow with the stream ends with one vector for all words, as post-norm does; "
        "post-norm whose additions become smaller keeps more of the spread than pre-norm. Most of\nall is kept where "
        "they are small from the start",
        lambda o: (
            max(at_the_end(o)["post-norm"] + at_the_end(o)["pre-norm, enlarged"]) < 0.005
            and min(at_the_end(o)["post-norm, divided"]) > max(at_the_end(o)["pre-norm"]) > 0.05
            and min(at_the_end(o)["post-norm, a tenth"]) > max(at_the_end(o)["post-norm, divided"])
        ),
    ),
    Claim(
        "stream-reading",
        "It keeps growing, slower and slower: 1.3, 2.9, 4.6",
        lambda o: re.findall(r"size ([\d.]+)", o["stream"]) == ["1.3", "2.9", "4.6"],
    ),
    Claim(
        "training-reading",
        "Pre-norm learns the task with all three seeds",
        lambda o: max(training(o)["pre-norm"]) < 0.1,
    ),
    Claim(
        "training-reading",
        "At the same rate post-norm with Xavier's weights stays near the loss of guessing",
        lambda o: min(training(o)["post-norm"]) > 2.15,
    ),
    Claim(
        "training-reading",
        "With the smaller weights it learned with one seed of three at that rate",
        lambda o: [loss < 0.1 for loss in sorted(training(o)["post-norm, smaller"])] == [True, False, False],
    ),
    Claim(
        "training-reading",
        "and with a warm-up or a third of the rate with all three",
        lambda o: max(training(o)[SLOW] + training(o)["post-norm, smaller, a third of the rate"]) < 0.2,
    ),
    row(
        "| 12 | Xavier's | 2.23 2.31 2.10 | 1.90 1.89 1.81 | 1.81 1.80 1.89 |",
        *(reversal(f"post-norm, {how}") for how in ("no warm-up", "warm-up of 60 steps", "a third of the rate")),
    ),
    Claim(
        "training-reading",
        "| 12 | torch's | 0.00 with nine seeds of ten, 2.31 with one |",
        lambda _: [round(v, 2) for v in sorted(reversal("12 blocks, post-norm, no warm-up"))] == 9 * [0.0] + [2.31],
    ),
    row(
        "| 24 | torch's | 2.31 2.31 2.30 | 0.47 0.00 0.00 | 0.01 0.01 0.01 |",
        *(
            reversal(f"24 blocks, post-norm, {how}")
            for how in ("no warm-up", "warm-up of 60 steps", "a third of the rate")
        ),
    ),
    Claim(
        "training-reading",
        "(Pre-norm ends at 0.00 with all three seeds there",
        lambda _: [round(v, 2) for v in reversal("24 blocks, pre-norm, no warm-up")] == 3 * [0.0],
    ),
    Claim(
        "alike-by-steps-reading",
        "plain post-norm ended between 1.80 and 1.89",
        lambda _: [round(v, 2) for v in sorted(reversal("post-norm, a third of the rate"))][0::2] == [1.8, 1.89],
    ),
    Claim(
        "alike-by-steps-reading",
        "a loss of 1.65, and in the table no run with Xavier's weights got below",
        lambda _: (
            round(IN_NO_ORDER, 2) == 1.65 and min(loss for how in XAVIERS for loss in reversal(how)) > IN_NO_ORDER
        ),
    ),
    row("it learned (0.01, 0.04 and 0.01)", reversal(UNDIRECTED), cell="alike-by-steps-reading"),
    row(
        "it learned with no seed (2.27, 2.27 and 2.28)",
        reversal("post-norm, a third of the rate, words apart, added as much"),
        cell="alike-by-steps-reading",
    ),
    row(
        "it learned (0.01, 0.04 and 0.02)",
        reversal("post-norm, a third of the rate, added as little"),
        cell="alike-by-steps-reading",
    ),
    Claim(
        "alike-by-steps-reading",
        "With Xavier's weights the words of a fresh stack are nearly one vector: the spread is 0.05",
        lambda o: round(step_by_step(o)["12 blocks, Xavier's, full rate"][0], 2) == 0.05,
    ),
    Claim(
        "alike-by-steps-reading",
        "one step takes the spread from 0.30 to 0.02, and after twenty steps nothing is left",
        lambda o: (
            [round(v, 2) for v in step_by_step(o)["24 blocks, full rate"][:2]] == [0.3, 0.02]
            and max(step_by_step(o)["24 blocks, full rate"][2:]) < 0.001
        ),
    ),
    Claim(
        "alike-by-steps-reading",
        "With a warm-up 0.20 is left after twenty, at a third of the rate 0.04",
        lambda o: (
            [round(step_by_step(o)[f"24 blocks, {way}"][-1], 2) for way in ("warm-up", "a third of the rate")]
            == [0.2, 0.04]
        ),
    ),
    Claim(
        "alike-by-steps-reading",
        "In twelve blocks at the full rate it is 0.01",
        lambda o: round(step_by_step(o)["12 blocks, full rate"][-1], 2) == 0.01,
    ),
    Claim(
        "real-weights-order",
        "`assert_close` allows a hundred-thousandth, and is content",
        lambda o: max(off_by(o)) < 1e-5 and len(off_by(o)) == 4,
    ),
    Claim(
        "real-weights-order-reading",
        "it writes the sentence with the goal. In the other order the same numbers make nonsense of it",
        lambda o: (
            "pre-norm: A boy kicks a goal." in o["real-weights-order-run"]
            and "goal" not in o["real-weights-order-run"].partition("post-norm:")[2]
        ),
    ),
    Claim(
        "still-themselves-reading",
        "94 % of the pieces are nearest to their own vector after all three layers, and after two it was 99 %",
        lambda o: [round(share) for share in on_and_off(o)["on the stream"]][2:] == [99, 94],
    ),
    Claim(
        "still-themselves-reading",
        "Off the stream it is one in a hundred, from the first layer on",
        lambda o: all(share < 2 for share in on_and_off(o)["off the stream"][1:]),
    ),
    Claim(
        "still-themselves-reading",
        "nearest to the word's own vector in nearly half of the pieces",
        lambda o: all(40 < share < 50 for share in on_and_off(o)["only what was added"][1:]),
    ),
    Claim(
        "still-themselves-reading",
        "fewer would stay themselves, about 79 %",
        lambda o: abs(on_and_off(o)["added at random"][-1] - 79) < 1,
    ),
    Claim(
        "still-themselves-reading",
        "each of the six pieces of words keeps a cosine of more than 0.7 with its beginning",
        lambda o: min(row[-1] for piece, row in beginnings(o).items() if piece not in MARKS) > 0.7,
    ),
    Claim(
        "still-themselves-reading",
        "What is rewritten most is the mark `<s>` at the front",
        lambda o: min(beginnings(o), key=lambda piece: beginnings(o)[piece][-1]) == "<s>",
    ),
]
