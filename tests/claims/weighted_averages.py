"""Chapter 01: what its sentences say of the executed outputs."""

import re

from attention_course.ambiguous import ambiguous, meaning_in
from attention_course.translator import translate
from autograder.course.curriculum import find_course
from claims import Claim, by_chance


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
        if counts := re.findall(r"(\d+) of (\d+) right, (\d+) wrong, (\d+) the same", line):
            found[line[:10].strip()] = [
                (int(right), int(of), int(wrong), int(same)) for right, of, wrong, same in counts
            ]
    return found


def totals(outputs: dict[str, str], cell: str) -> dict[str, list[int]]:
    """For each design, over all three words: right, of how many, wrong, the same translation."""
    return {name: [sum(counts) for counts in zip(*words, strict=True)] for name, words in kept(outputs, cell).items()}


def paired(outputs: dict[str, str], cell: str = "own-paired") -> dict[str, list[int]]:
    """For each design in how many sentences it alone is right, and in how many the other alone."""
    lines = outputs[cell].strip().splitlines()
    return {line[:10].strip(): [int(n) for n in re.findall(r": (\d+)", line)] for line in lines if " where " in line}


def changes(outputs: dict[str, str], word: int) -> list[int]:
    """How many more are right with everyone's mean than with width 1, and how many more are wrong, of one word."""
    after, before = kept(outputs, "means-run")["everyone's"][word], kept(outputs, "own-all")["width 1"][word]
    return [after[0] - before[0], after[2] - before[2]]


def tracks(outputs: dict[str, str]) -> dict[str, int]:
    """For each design how many translations have a train track."""
    found = re.findall(r"^(.{10}).*train tracks: (\d+)$", outputs["own-all"], re.MULTILINE)
    return {name.strip(): int(n) for name, n in found}


def windows(outputs: dict[str, str]) -> dict[str, list[int]]:
    """How far apart two goals are, two gates, and one of each, with each window and in the translator, in per cent."""
    lines = outputs["windows-gaps"].strip().splitlines()
    return {line[:14].strip(): [int(n) for n in re.findall(r"(\d+)%", line)] for line in lines}


def gates(outputs: dict[str, str]) -> tuple[list[int], list[int]]:
    """For each adjective how many goals become gates: in front of Tor, and in front of the subject."""
    found = re.findall(r"(\d+) before Tor, (\d+) before the subject", outputs["large"])
    tor, subject = zip(*found, strict=True)
    return [int(n) for n in tor], [int(n) for n in subject]


def adjectives() -> list[str | None]:
    """The meanings of Tor in the training captions with an adjective right before it; none without the full data."""
    german, english = (find_course().root / f"data/full/multi30k/train.{language}" for language in ("de", "en"))
    if not german.is_file():
        return []
    pairs = zip(*(file.read_text(encoding="utf-8").splitlines() for file in (german, english)), strict=True)
    others = "dem|dieses|einem|seine|ihre|neben|ihrem|seinem"
    before = rf"\b(?!(?:{others}) Tor\b)[a-zäöüß]+(?:e|es|en) Tor\b"
    return [meaning_in(caption, "Tor") for text, caption in pairs if re.search(before, text)]


def times(outputs: dict[str, str]) -> list[float]:
    """The loop's time in those of the product, and in those of broadcasting."""
    return [numbers(line)[-1] for line in outputs["timing-ratio"].splitlines()[:2]]


def slices(outputs: dict[str, str]) -> list[float]:
    """Broadcasting's time in those of the product: all at once, into memory that is there, and in slices."""
    return [numbers(line)[0] for line in outputs["timing-slices"].strip().splitlines()]


CLAIMS = [
    Claim("one-average-reading", "The answer `[2.25, 1.25]`", lambda o: numbers(o["one-average"]) == [2.25, 1.25]),
    Claim(
        "ex3",
        "Four ones, the sums of the rows; and `(5, 4)`",
        lambda o: numbers(o["einsum-rows"]) == [1, 1, 1, 1, 5, 4],
    ),
    Claim("ex2", "`(1, 4, 2)`", lambda o: numbers(o["loop-run"]) == [1, 4, 2]),
    Claim("bmm", "`W @ x` gives them all at once", lambda o: "the loop's averages: True" in o["matmul"]),
    Claim("bmm", "`x @ W` does not exist", lambda o: "cannot be multiplied" in o["matmul"]),
    Claim(
        "windows-reading",
        "With width 1 nothing is mixed and nothing changes. From width 2 on the two vectors differ",
        lambda o: apart(o)[0] == 0 and min(apart(o)[1:]) > 0,
    ),
    Claim(
        "windows-which",
        "with width 2 two goals are 60% apart, like a goal and a gate, and with width 3 it is 79% and 78%. "
        "(Two gates are 36% and 64% apart.",
        lambda o: [windows(o)[f"width {width}"] for width in (2, 3)] == [[60, 36, 60], [79, 64, 78]],
    ),
    Claim(
        "windows-which",
        "In the translator a goal and a gate are 52% apart, and two goals 47%",
        lambda o: windows(o)["the translator"][::2] == [47, 52],
    ),
    Claim(
        "windows-which",
        "Fifteen of the twenty-five have the same word, *einem*, right before *Tor*",
        lambda _: sum(" einem Tor" in s.text for s in ambiguous("Tor")[25:]) == 15,
    ),
    Claim(
        "real",
        "each of the ten makes gates, of 4 to 17 of the twenty-five",
        lambda o: (len(gates(o)[0]), min(gates(o)[0]), max(gates(o)[0])) == (10, 4, 17),
    ),
    Claim("real", "*großes* makes 14 gates, *leeres* 4", lambda o: (gates(o)[0][0], gates(o)[0][6]) == (14, 4)),
    Claim(
        "real",
        "In front of the subject, where the sentence is as long, none, one or two",
        lambda o: set(gates(o)[1]) == {0, 1, 2},
    ),
    Claim(
        "real",
        "in seven of the 29,000 captions an adjective stands right before *Tor*, and it is a gate in all seven",
        lambda _: adjectives() in ([], 7 * ["gate"]),
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
        "That is not guessing: 5 are wrong, and the other 16 have neither word",
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
        "own-paired-reading",
        "In thirteen, against twenty-seven. A fair coin is as uneven in 4 of 100 tries, and as uneven as width 2, "
        "25 to 13, in 7",
        lambda o: (
            paired(o)["width 3"] == [27, 13]
            and paired(o)["width 2"] == [25, 13]
            and [round(by_chance(*paired(o)[f"width {width}"])) for width in (3, 2)] == [4, 7]
        ),
    ),
    Claim(
        "own-paired-reading",
        "57 and 69 of the 124, where width 1 keeps 17",
        lambda o: [totals(o, "own-all")[f"width {width}"][3] for width in (2, 3, 1)] == [57, 69, 17],
    ),
    Claim(
        "own-paired-reading",
        "With them more are wrong, too, 32 and 29, where width 1 has 16, or 22 with the train tracks, and 25 with",
        lambda o: (
            [totals(o, "own-all")[f"width {width}"][2] for width in (2, 3, 1)] == [32, 29, 16]
            and totals(o, "own-all")["width 1"][:3] == [83, 124, 16]
            and tracks(o)["width 1"] == 22 - 16
        ),
    ),
    Claim(
        "own-all-reading",
        "six of the 83 are one, where *Bahn* meant a train",
        lambda o: tracks(o)["width 1"] == 6 and kept(o, "own-all")["width 1"][2][:3] == (30, 42, 10),
    ),
    Claim(
        "own-all-reading",
        "width 3 is now right in fourteen sentences more than width 1",
        lambda o: paired(o)["width 3"][0] - paired(o)["width 3"][1] == 14,
    ),
    Claim(
        "own-all-predict",
        "The translator's own weights get all of them right (one by a *train track*)",
        lambda _: sum("train track" in translate(s.text).text for s in ambiguous("Bahn")[:21]) == 1,
    ),
    Claim(
        "own-paired-reading",
        "The plain mean wins 36 and loses 4, and only 6 are wrong, or 7",
        lambda o: (
            paired(o)["all alike"] == [36, 4]
            and totals(o, "own-all")["all alike"][2] == 6
            and tracks(o)["all alike"] == 1
        ),
    ),
    Claim(
        "both-sides-reading",
        "105 are right, where width 3 has 92 and the plain mean 110",
        lambda o: (
            totals(o, "both-sides")["both sides"][0] == 105
            and [totals(o, "own-all")[name][0] for name in ("width 3", "all alike")] == [92, 110]
        ),
    ),
    Claim(
        "both-sides-reading",
        "It seems so, 18 sentences against 7 (a coin: 4 of 100)",
        lambda o: paired(o, "both-sides")["both sides"] == [18, 7] and round(by_chance(18, 7)) == 4,
    ),
    Claim("both-sides-reading", "brought 36 meanings back", lambda o: paired(o)["all alike"][0] == 36),
    Claim(
        "both-sides-reading",
        "Without mixing it was 83, with the sentence's own mean 110",
        lambda o: [totals(o, "own-all")[name][0] for name in ("width 1", "all alike")] == [83, 110],
    ),
    Claim(
        "means-reading",
        "With everyone's mean 97, with a mean of the same meaning 113, with one of the other meaning 58",
        lambda o: [counts[0] for counts in totals(o, "means-run").values()] == [97, 113, 58],
    ),
    Claim(
        "means-reading",
        "Of the fifty *Tor* alone it is 31, 47 and 17; in the last run 32 of the fifty",
        lambda o: (
            [words[0][0] for words in kept(o, "means-run").values()] == [31, 47, 17]
            and kept(o, "means-run")["other"][0][2] == 32
        ),
    ),
    Claim(
        "means-reading",
        "everyone's mean, with 38 of 42, does no worse than its own sentence's, with 34",
        lambda o: [kept(o, "means-run")["everyone's"][2][0], kept(o, "own-all")["all alike"][2][0]] == [38, 34],
    ),
    Claim(
        "means-paired-reading",
        "right in 36 where width 1 is not, and the other way round in 17",
        lambda o: paired(o, "means-paired")["everyone's"] == [36, 17],
    ),
    Claim(
        "means-paired-reading",
        "the sentence's own mean against everyone's, in 20 and 7. A coin is as uneven in one or two of 100 tries",
        lambda o: (
            paired(o, "means-paired")["all alike"] == [20, 7]
            and [round(by_chance(*found)) for found in paired(o, "means-paired").values()] == [1, 2]
        ),
    ),
    Claim(
        "means-paired-reading",
        "24 of the 25 goals are right and 7 of the 25 gates: most gates become goals",
        lambda o: (
            "everyone's right of the 25 goals: 24, of the 25 gates: 7" in o["means-paired"]
            and kept(o, "means-run")["everyone's"][0][2] - 1 > 25 / 2
        ),
    ),
    Claim(
        "means-paired-reading",
        "2 more are right than with width 1, and 13 more are wrong",
        lambda o: changes(o, 0) == [2, 13],
    ),
    Claim("means-paired-reading", "at least 8 more right and 8 fewer wrong", lambda o: changes(o, 2) == [8, -8]),
    Claim(
        "means-paired-reading",
        "What the sentence's own mean adds for *Tor*, 45 right and 4 wrong",
        lambda o: kept(o, "own-all")["all alike"][0][:3] == (45, 50, 4),
    ),
    Claim(
        "means-paired-reading",
        "77 were right and 22 wrong, where guesses would be wrong as often as right, so many",
        lambda o: totals(o, "own-all")["width 1"][:3] == [83, 124, 16] and tracks(o)["width 1"] == 83 - 77 == 22 - 16,
    ),
    Claim(
        "own-all-reading",
        "The plain mean keeps 45, with the whole translation unchanged in 32; of the other two words 31 of 32 and",
        lambda o: (
            kept(o, "own-all")["all alike"][0] == (45, 50, 4, 32)
            and [found[:2] for found in kept(o, "own-all")["all alike"][1:]] == [(31, 32), (34, 42)]
        ),
    ),
    Claim(
        "writing-reading", "Of the fifty *Tor* 3 are right", lambda o: kept(o, "writing-run")["all alike"][0][0] == 3
    ),
    Claim(
        "writing-reading",
        "25 of the fifty are right, 14 wrong, and 11 have neither word. (*Bahn* fares better, 35 of 42.)",
        lambda o: [found[:3] for found in kept(o, "writing-run")["same place"][::2]] == [(25, 50, 14), (35, 42, 2)],
    ),
    Claim(
        "writing-reading",
        "Of all 124 translations the plain mean had left 76 as they were while *reading*, and width 1, which is the "
        "same place there, 17",
        lambda o: (
            totals(o, "own-all")["all alike"][1::2] == [124, 76] and totals(o, "own-all")["width 1"][1::2] == [124, 17]
        ),
    ),
    Claim(
        "writing-reading",
        "While *writing* the plain mean leaves none, and the same place 16",
        lambda o: [counts[3] for counts in totals(o, "writing-run").values()] == [0, 16],
    ),
    Claim(
        "writing-reading",
        "Here the plain mean fails. The same place gets 76 of the 124 right, and width 1, while reading, 77",
        lambda o: (
            [counts[0] for counts in totals(o, "writing-run").values()] == [31, 76]
            and totals(o, "own-all")["width 1"][:2] == [83, 124]
            and tracks(o)["width 1"] == 83 - 77
        ),
    ),
    Claim(
        "further",
        "with all weight on the same place more than half survive in both, but few whole translations",
        lambda o: all(
            found[0] > 124 / 2 and found[3] < 124 / 6
            for found in (totals(o, "own-all")["width 1"], totals(o, "writing-run")["same place"])
        ),
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
        "In about half; and the best rule, although it has seen the answers, misses a third",
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
        "four times the length is sixteen times the work, and in nine runs, beside other work, the loop's time grew "
        "10 to 21 times",
        lambda o: 8 <= numbers(o["timing-ratio"].splitlines()[-1])[-1] <= 24,
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
    Claim(
        "timing-slices-reading",
        "It does, both times; in slices it takes a fraction of the time, with more calls",
        lambda o: slices(o)[1] < 0.8 * slices(o)[0] and slices(o)[2] < slices(o)[0] / 2,
    ),
    Claim("timing-slices-reading", "It is still several times slower than the product", lambda o: slices(o)[2] > 2),
    Claim("transposed-reading", "None of the wrong outputs lies between 1 and 3", outside),
]
