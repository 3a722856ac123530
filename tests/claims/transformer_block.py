"""What chapter 06 says of its own runs."""

import re

from claims import Claim


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)]


def rows(text: str) -> dict[str, list[float]]:
    """The numbers of each line after its colon, by what stands before it."""
    parts = [line.rpartition(":") for line in text.splitlines() if ":" in line]
    return {name.partition(":")[0].strip(): numbers(values) for name, _, values in parts}


def percents(text: str) -> dict[int, tuple[int, int]]:
    found = re.findall(r"^ *(\d+) +(\d+)% +(\d+)%", text, re.MULTILINE)
    return {int(depth): (int(post), int(pre)) for depth, post, pre in found}


def training(outputs: dict[str, str]) -> dict[str, list[float]]:
    return rows(outputs["training-plot"])


def spreads_of_the_trained(outputs: dict[str, str]) -> list[float]:
    return [float(n) for n in re.findall(r"spread (\d\.\d+)", outputs["collapse-trained"])]


def grid(outputs: dict[str, str]) -> dict[tuple[str, str], tuple[list[float], list[float]]]:
    """Gradients and spreads by depth, for each kind of initial weights and of stack."""
    found = {}
    for line in filter(None, outputs["residual-table"].splitlines()):
        start, kind, gradients, spreads = line.split("|")
        found[start.strip(), kind.strip()] = [*map(float, gradients.split())], [*map(float, spreads.split())]
    return found


def untrained(outputs: dict[str, str]) -> dict[str, list[float]]:
    return {name: [float(n) for n in values] for name, values in rows(outputs["collapse-numbers"]).items()}


def only_both_stay(outputs: dict[str, str]) -> bool:
    good = {}
    for (_, kind), (gradients, spreads) in grid(outputs).items():
        stays = min(spreads) > 0.5 and all(1 / 20 < g < 20 for g in gradients)
        good[kind] = good.get(kind, True) and stays
    return good == {"plain": False, "norm": False, "residual": False, "both": True}


MARKS = ("<s>", ".", "</s>")


def off_by(outputs: dict[str, str]) -> list[float]:
    """How far the reader's states are from the translator's, by layer."""
    return [float(n) for n in re.findall(r"off by (\S+)", outputs["real-weights-run"])]


def on_and_off(outputs: dict[str, str]) -> list[list[float]]:
    """The shares of pieces nearest to their own vector, by layer: on the stream, and off it."""
    return [[*map(float, re.findall(r"([\d.]+)%", line))] for line in outputs["still-themselves"].splitlines()[1:]]


def beginnings(outputs: dict[str, str]) -> dict[str, list[float]]:
    """Each piece's cosine with its own beginning, by layer."""
    lines = [line.split() for line in outputs["own-beginning"].splitlines()]
    return {piece: [*map(float, values)] for piece, *values in lines}


CLAIMS = [
    Claim(
        "collapse-reading",
        "With torch's default all nine are the same vector after two layers",
        lambda o: untrained(o)["alone, torch's default"][2] < 0.01,
    ),
    Claim(
        "collapse-reading",
        "with the two usual kinds of weights the words stay apart much longer",
        lambda o: all(
            untrained(o)[f"added, {name}"][8] > 0.3 > untrained(o)[f"alone, {name}"][8]
            for name in ("torch's default", "Xavier")
        ),
    ),
    Claim(
        "collapse-reading",
        "With the largest weights the sum helps little",
        lambda o: (
            abs(untrained(o)["added, larger (variance 4/d)"][8] - untrained(o)["alone, larger (variance 4/d)"][8]) < 0.1
        ),
    ),
    Claim(
        "collapse-reading",
        "the average is four times as large as the word that it is added to",
        lambda o: 3.5 < float(re.findall(r"is ([\d.]+) times", o["swamped"])[-1]) < 4.5,
    ),
    Claim(
        "collapse-reading",
        "keeps its words as far apart at the end as they were at the beginning",
        lambda o: abs(spreads_of_the_trained(o)[-1] - spreads_of_the_trained(o)[0]) < 0.05,
    ),
    Claim(
        "gradient-grid-reading",
        "with torch's default the gradient is gone after twenty layers",
        lambda o: grid(o)["torch's default", "plain"][0][4] < 1e-9,
    ),
    Claim(
        "gradient-grid-reading",
        "with He's weights, made for ReLU, it has grown a thousandfold",
        lambda o: 300 < grid(o)["He", "plain"][0][4] < 5000,
    ),
    Claim(
        "gradient-grid-reading",
        "keeps it within a factor of a hundred at every depth",
        lambda o: all(0.01 < g < 100 for (_, kind), (gs, _) in grid(o).items() if kind in ("norm", "both") for g in gs),
    ),
    Claim(
        "gradient-grid-reading",
        "the gradient never vanishes; but nothing stops it from growing",
        lambda o: (
            all(min(gs) > 0.5 for (_, kind), (gs, _) in grid(o).items() if kind == "residual")
            and max(grid(o)["He", "residual"][0]) > 1e6
        ),
    ),
    Claim(
        "residual-reading",
        "after fifty layers forty different inputs have become nearly the same, for all three kinds of weights",
        lambda o: all(s[-1] < 0.1 for (_, kind), (_, s) in grid(o).items() if kind == "norm"),
    ),
    Claim(
        "residual-reading",
        "with **both**, and only with both, the gradient stays within a factor of twenty",
        only_both_stay,
    ),
    Claim(
        "first-step-reading",
        "with 32 blocks its output moves by more than its own size",
        lambda o: percents(o["first-step-run"])[32][0] > 100,
    ),
    Claim(
        "training-reading",
        "Pre-norm learns the task with all three seeds",
        lambda o: max(training(o)["pre-norm"]) < 0.1,
    ),
    Claim(
        "training-reading",
        "Post-norm at the same rate stays near the loss of guessing",
        lambda o: min(training(o)["post-norm"]) > 2.15,
    ),
    Claim(
        "training-reading",
        "a third of the rate from the first step on does just as well",
        lambda o: (
            abs(sum(training(o)["post-norm, warm-up"]) - sum(training(o)["post-norm, a third of the rate"])) / 3 < 0.1
            and max(training(o)["post-norm, warm-up"]) < 2.15
        ),
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
        lambda o: [round(share) for share in on_and_off(o)[0]][2:] == [99, 94],
    ),
    Claim(
        "still-themselves-reading",
        "Off the stream it is one in a hundred, from the first layer on",
        lambda o: all(share < 2 for share in on_and_off(o)[1][1:]),
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
