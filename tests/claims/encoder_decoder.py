"""What chapter 09 says of its own runs."""

import math
import re

from claims import Claim


def numbers(text: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text)]


def repeats(outputs: dict[str, str]) -> dict[str, list[float]]:
    """Probability of the token just read and how often it is the likeliest, in %, by model."""
    parts = [line.partition(":") for line in outputs["repeat-table"].splitlines()]
    return {name.strip(): numbers(values) for name, _, values in parts}


def parts(outputs: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Parameters of the small model and of the paper's, by part."""
    rows = (re.fullmatch(r"(.+?) +([\d,]+) +([\d,]+)", line) for line in outputs["count-table"].splitlines())
    return {row[1]: (numbers(row[2])[0], numbers(row[3])[0]) for row in rows if row}


def total(outputs: dict[str, str], kind: str, model: int) -> float:
    return sum(counts[model] for part, counts in parts(outputs).items() if kind in part)


def peeking_ratios(outputs: dict[str, str]) -> list[float]:
    """The peeking model's loss, as a multiple of the honest one's, after 40 steps and after 120."""
    rows = [numbers(line) for line in outputs["peeking-run"].splitlines() if line.startswith("step")]
    return [peeking / honest for _, honest, peeking in rows]


def all_right(output: str) -> bool:
    return [line.split(" | ")[0] for line in output.strip().splitlines()] == ["right"] * 8


CLAIMS = [
    Claim("same-six-reading", "As many as one", lambda o: len(set(numbers(o["same-six"])) - {6.0}) == 1),
    Claim(
        "tied-sizes-reading",
        "its loss is 43, five times that of an even guess",
        lambda o: round(numbers(o["tied-sizes"].splitlines()[0])[-1]) == 43 and 4.5 < 43 / math.log(5000) < 5.5,
    ),
    Claim(
        "pad-trap-reading",
        "It does, through the projection",
        lambda o: any(abs(g) > 0.01 for g in numbers(o["pad-trap"])),
    ),
    Claim(
        "finished-load-reading",
        "Every weight of the file has found its place",
        lambda o: "not in the model: []" in o["finished-load"],
    ),
    Claim(
        "finished-reading",
        "Your code says *goal* in the one sentence and *gate* in the other",
        lambda o: (
            "goal" in o["finished-run"].splitlines()[0]
            and "gate" in o["finished-run"].splitlines()[1]
            and o["finished-run"].count("same words") == 2
        ),
    ),
    Claim(
        "finished-reading",
        "padding is left with almost nothing",
        lambda o: numbers(o["finished-pad"])[-1] < 0.001 and numbers(o["finished-pad"])[0] > 5,
    ),
    Claim(
        "leak-reading",
        "to the last bit",
        lambda o: numbers(o["leak-run"]) == [0.0],
    ),
    Claim(
        "leaks-reading",
        "The second runs without an error, but its logits for a sentence depend on how long",
        lambda o: ["leaks nothing" in line for line in o["leaks-run"].splitlines()] == [True, False],
    ),
    Claim(
        "repeat-reading",
        "About 36 %, where an even guess gives 2 %, and at nine positions in ten",
        lambda o: round(repeats(o)["as it is"][0]) == 36 and round(repeats(o)["as it is"][1] / 10) == 9,
    ),
    Claim(
        "repeat-reading",
        "Each control alone brings it down to 2 or 3 %",
        lambda o: all(
            round(repeats(o)[name][0]) in (2, 3) for name in ("output not tied", "no residual path", "no factor")
        ),
    ),
    Claim(
        "repeat-reading",
        "a token still moves the logits at its own position four or five times as far",
        lambda o: (
            all(round(repeats(o)[name][2]) in (4, 5) for name in ("output not tied", "no factor"))
            and 1.4 < repeats(o)["no residual path"][2] < 1.6
        ),
    ),
    Claim(
        "repeat-reading",
        "hardly ever repeats",
        lambda o: repeats(o)["finished weights"][0] < 2 and repeats(o)["finished weights"][1] == 0,
    ),
    Claim(
        "count-reading",
        "In the small model the two vocabularies outweigh everything else",
        lambda o: total(o, "embedding", 0) > 0.5 * parts(o)["sum"][0],
    ),
    Claim(
        "count-reading",
        "the feed-forward networks hold the most, 25 of 63 million",
        lambda o: round(total(o, "feed-forward", 1) / 1e6) == 25 and round(parts(o)["sum"][1] / 1e6) == 63,
    ),
    Claim(
        "count-reading",
        "weigh about the same, 19 million each",
        lambda o: round(total(o, "attention", 1) / 1e6) == round(total(o, "embedding", 1) / 1e6) == 19,
    ),
    Claim(
        "write-one",
        "Above. The fresh model bets",
        lambda o: numbers(o["overfit-run"])[1] > numbers(o["overfit-run"])[0] + 0.5,
    ),
    Claim("heart-idea", "All eight, word for word", lambda o: all_right(o["write-run"])),
    Claim("heart-idea", "the pad row is still zero", lambda o: numbers(o["pad-row-stays"]) == [0.0]),
    Claim(
        "heart-reading",
        "it writes the same caption for all\neight, as nothing tells it which is asked for, and is right once",
        lambda o: "no cross-attention" in o["heart-broken"] and o["heart-broken"].rstrip().endswith(" 1 of 8 right"),
    ),
    Claim(
        "heart-reading",
        "The one whose encoder layers do nothing writes as well as the whole model",
        lambda o: o["heart-broken"].splitlines()[0].endswith(" 8 of 8 right"),
    ),
    Claim(
        "peeking-reading",
        "a little more slowly on the way, and in the end as far",
        lambda o: [round(ratio, 1) for ratio in peeking_ratios(o)] == [1.2, 1.0],
    ),
    Claim(
        "peeking-reading",
        "names it no more often than\nchance",
        lambda o: numbers(o["peeking-copies"])[0] <= numbers(o["peeking-copies"])[1] + 1,
    ),
    Claim("peeking-reading", "it\nstammers", lambda o: o["peeking-writes"].count("WRONG") >= 5),
]
