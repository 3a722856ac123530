"""Chapter 01: what its sentences say of the executed outputs."""

import re

from attention_course.ambiguous import ambiguous, meaning_in
from attention_course.translator import translate
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


def kept(outputs: dict[str, str], cell: str) -> dict[str, list[tuple[int, int, int, int]]]:
    """For each design, and each ambiguous word: right, of how many, wrong, the same translation."""
    found = {}
    for line in outputs[cell].splitlines():
        if counts := re.findall(r"(\d+) \(\d+ \+ \d+\) of (\d+) right, (\d+) wrong, (\d+) the same", line):
            found[line[:10].strip()] = [
                (int(right), int(of), int(wrong), int(same)) for right, of, wrong, same in counts
            ]
    return found


def halves(outputs: dict[str, str], cell: str, name: str) -> list[tuple[int, int]]:
    """For a design, and each ambiguous word: how many are right of its first meaning, and of its second."""
    line = next(line for line in outputs[cell].splitlines() if line[:10].strip() == name and " right" in line)
    return [(int(first), int(second)) for first, second in re.findall(r"\((\d+) \+ (\d+)\)", line)]


def totals(outputs: dict[str, str], cell: str) -> dict[str, list[int]]:
    """For each design, over all three words: right, of how many, wrong, the same translation."""
    return {name: [sum(counts) for counts in zip(*words, strict=True)] for name, words in kept(outputs, cell).items()}


def windows(outputs: dict[str, str]) -> dict[str, list[int]]:
    """How far apart two goals are, two gates, and one of each, with each window and in the translator, in per cent."""
    lines = outputs["windows-gaps"].strip().splitlines()
    return {line[:14].strip(): [int(n) for n in re.findall(r"(\d+)%", line)] for line in lines}


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
    Claim(
        "windows-reading",
        "With width 1 nothing is mixed and nothing changes. From width 2 on the two vectors differ",
        lambda o: apart(o)[0] == 0 and min(apart(o)[1:]) > 0,
    ),
    Claim(
        "windows-which",
        "with width 2 two goals are 60% apart, like a goal and a gate, and with width 3 it is 79% and 78%.",
        lambda o: [windows(o)[f"width {width}"][::2] for width in (2, 3)] == [[60, 60], [79, 78]],
    ),
    Claim(
        "windows-which",
        "In the translator a goal and a gate are 52% apart, and two goals 47%",
        lambda o: windows(o)["the translator"][::2] == [47, 52],
    ),
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
        "Of the others 5 are wrong, and 16 have neither word",
        lambda o: kept(o, "own-all")["width 1"][0][:3] == (29, 50, 5),
    ),
    Claim(
        "own-all-reading",
        "83 with width 1, 90 and 92 with your windows, and 110 with the plain mean",
        lambda o: (
            [totals(o, "own-all")[name][0] for name in ("width 1", "width 2", "width 3", "all alike")]
            == [83, 90, 92, 110]
        ),
    ),
    Claim(
        "own-all-reading",
        "(A *train track* counts as a train here.)",
        lambda _: meaning_in("A train track.", "Bahn") == "train",
    ),
    Claim(
        "own-all-predict",
        "The translator's own weights get all of them right",
        lambda _: all(
            meaning_in(translate(s.text).text, word) == s.meaning
            for word in ("Tor", "Schläger", "Bahn")
            for s in ambiguous(word)
        ),
    ),
    Claim(
        "means-reading",
        "With everyone's mean 97, with a mean of the same meaning 113, with one of the other meaning 58",
        lambda o: [counts[0] for counts in totals(o, "means-run").values()] == [97, 113, 58],
    ),
    Claim(
        "means-reading",
        "Wrong are 24, 6 and 58",
        lambda o: [counts[2] for counts in totals(o, "means-run").values()] == [24, 6, 58],
    ),
    Claim(
        "means-reading",
        "with everyone's mean more are right than without mixing, but more are wrong, too",
        lambda o: all(
            totals(o, "means-run")["everyone's"][which] > totals(o, "own-all")["width 1"][which] for which in (0, 2)
        ),
    ),
    Claim(
        "own-all-reading",
        "The plain mean keeps 45, with the whole translation unchanged in 32",
        lambda o: kept(o, "own-all")["all alike"][0] == (45, 50, 4, 32),
    ),
    Claim(
        "writing-reading", "Of the fifty *Tor* 3 are right", lambda o: kept(o, "writing-run")["all alike"][0][0] == 3
    ),
    Claim(
        "writing-reading",
        "25 of the fifty are right, and these are all the goals and none of the gates. Of *Schläger* they are all the "
        "bats and no racket. Only *Bahn* keeps both its meanings, 35 of 42",
        lambda o: halves(o, "writing-run", "same place") == [(25, 0), (0, 16), (18, 17)],
    ),
    Claim(
        "writing-reading",
        "Of all 124 translations the plain mean had left 76 as they were while *reading*",
        lambda o: totals(o, "own-all")["all alike"][1::2] == [124, 76],
    ),
    Claim(
        "writing-reading",
        "While *writing* it leaves none",
        lambda o: totals(o, "writing-run")["all alike"][3] == 0,
    ),
    Claim(
        "writing-reading",
        "Here the plain mean fails",
        lambda o: totals(o, "writing-run")["all alike"][:2] == [31, 124],
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
        "In about half, with the full stops counted as words; and the best rule, although it has seen the answers, "
        "misses a third",
        lambda o: (
            0.45 < numbers(o["same-number"])[0] / numbers(o["same-number"])[1] < 0.55
            and 0.3 < 1 - numbers(o["same-number"])[2] / numbers(o["same-number"])[1] < 0.36
        ),
    ),
    Claim(
        "timing-reading",
        "more than a thousand times as long as the product, and more than ten times as long as broadcasting",
        lambda o: times(o)[0] > 1000 and times(o)[1] > 10,
    ),
    Claim(
        "timing-reading",
        "four times the length is sixteen times the work, and the loop's time grows roughly as much",
        lambda o: 10 <= numbers(o["timing-ratio"].splitlines()[-1])[-1] <= 24,
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
    Claim(
        "means-reading",
        "another sentence's mean often carries that sentence's meaning over: with one of the other meaning 34 more are "
        "wrong than with everyone's",
        lambda o: totals(o, "means-run")["other"][2] - totals(o, "means-run")["everyone's"][2] == 34,
    ),
    Claim(
        "own-all-reading",
        "Without mixing it was 83, with the sentence's own mean 110",
        lambda o: [totals(o, "own-all")[name][0] for name in ("width 1", "all alike")] == [83, 110],
    ),
    Claim(
        "timing-control-reading",
        "Broadcasting first writes all $B \\cdot n \\cdot m \\cdot d$ products into memory, 67 MB here",
        lambda _: round(4 * 4 * 256 * 256 * 64 / 1e6) == 67,
    ),
]
