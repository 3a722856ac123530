"""What chapter 10 says of its own runs, of the shipped translator and of the records."""

import itertools
import math
import re

from claims import Claim, records


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.\d+", text)]


def always(_: dict[str, str]) -> bool:
    """For a phrase that is made from the records: that it stands in its cell is all there is to hold."""
    return True


def recorded(model: str, decoding: str) -> list[float]:
    """BLEU on the test captions in lower-case tokens, of each run of a model."""
    runs = records("German_captions*")
    name = f"tokens, lower case, {decoding}"
    return [run["values"][name] for run in runs if run["model"] == model and name in run.get("values", ())]


GRUS = [f"GRU {kind} attention, words that occur three times" for kind in ("without", "with")]
MORE_WORDS = "GRU with attention, words"
WIDE = "transformer twice as wide, 8,000 subwords, averaged weights"
AVERAGED = "transformer, subwords, averaged weights"
TAUGHT = "transformer, subwords, averaged weights, taught by the one twice as wide"
RUNGS = {
    "| two GRUs with one vector between them (chapter 8) |": (GRUS[0], "greedy", None),
    "| attention between them (chapter 8) |": (GRUS[1], "greedy", f"{GRUS[1]} − {GRUS[0]}"),
    "| a transformer in their place, and pieces of words for words (chapters 9 and 10) |": (
        "transformer, subwords",
        "greedy",
        f"transformer, subwords, greedy − {GRUS[1]}",
    ),
    "| a beam of 5 in place of the likeliest token (section 10.6) |": (
        "transformer, subwords",
        "beam 5",
        "transformer, subwords − transformer, subwords, greedy",
    ),
    "| the same transformer, trained longer, and the mean of its weights over the last steps |": (
        AVERAGED,
        "beam 5",
        f"{AVERAGED} − transformer, subwords",
    ),
    "| twice the width, 8,000 pieces in place of 3,000, and such a mean |": (WIDE, "beam 5", f"{WIDE} − {AVERAGED}"),
    "| a reward for each token of its beam (section 10.10), in a second training of the wide one, which has 42.1 "
    "without |": (WIDE, "beam 5, a reward", f"{WIDE}, rewarded − {WIDE}"),
}


def first(model: str, files: str = "German_captions*") -> dict:
    """The first record of a model, of a way of decoding, or of a difference of two."""
    return next(run for run in records(files) if run["model"] == model)


def difference(title: str) -> list[float]:
    """How much better one model translates the test captions than another, and the interval."""
    return first(title)["difference"]


def signed(difference: list[float]) -> str:
    """A difference and its interval as the text writes them."""
    return "{:+.2f} [{:+.2f}, {:+.2f}]".format(*difference).replace("-", "−")


def decoding(title: str) -> list[float]:
    """How a way of decoding with the shipped translator differs from a beam of 5, and the interval."""
    return decoded(title)["difference"]


def rung(name: str) -> Claim:
    """A row of the ladder: its figure is that of the first recorded run, its difference the recorded one."""
    model, decoding, against = RUNGS[name]
    phrase = f"{name} {recorded(model, decoding)[0]:.1f} |"
    if against:
        phrase += f" {signed(difference(against))} |"
    return Claim("ladder", phrase, always)


def translations(outputs: dict[str, str]) -> dict[str, tuple[str, str]]:
    """What the shipped translator says of each German caption, greedily and with a beam of 5."""
    rows = re.findall(r"German +(.+)\nreference +.+\ngreedy +(.+)\nbeam of 5 +(.+)", outputs["imperfect"])
    return {german.strip(): (greedy.strip(), beam.strip()) for german, greedy, beam in rows}


def says(quoted: str, beam: bool = False) -> Claim:
    """The model answer quotes a translation that the shipped model really makes."""
    words = " ".join(quoted.split())
    return Claim("error_analysis", quoted, lambda o: any(words in row[beam] for row in translations(o).values()))


# What the model answer found wrong with the first ten: German's first words, greedy's errors, the beam's.
TEN: tuple[tuple[str, set[str], set[str]], ...] = (
    ("ein mann mit einem orangefarbenen", {"right"}, {"right"}),
    ("ein boston terrier", {"wrong word"}, {"wrong word", "left out", "repeated"}),
    ("ein mädchen in einem karateanzug", {"wrong word", "no word"}, {"wrong word", "no word"}),
    ("fünf leute in winterjacken", {"wrong word", "repeated"}, {"wrong word", "repeated"}),
    ("leute reparieren", {"wrong word"}, {"wrong word"}),
    ("ein hell gekleideter", {"left out", "form"}, {"left out", "form"}),
    ("eine gruppe von menschen", {"no word"}, {"no word"}),
    ("ein junge in einem roten", {"wrong word", "left out"}, {"wrong word", "left out"}),
    ("ein typ arbeitet", {"right"}, {"right"}),
    ("ein mann in einer weste", {"form"}, {"form"}),
)
COUNTED = (
    {
        "wrong word": "five of greedy's translations have one",
        "no word": "Two write a word that does not exist",
        "left out": "two leave something out",
        "form": "two have a wrong form",
        "repeated": "one repeats itself",
        "right": "Two are right",
    },
    {
        "wrong word": "*wrong word* 5",
        "left out": "*left out* 3",
        "no word": "*no word* 2",
        "form": "*form* 2",
        "repeated": "*repeated* 2",
        "right": "two are right",
    },
)
NUMBERS = {"one": 1, "two": 2, "five": 5}


def counted(words: str, kind: str, beam: bool) -> Claim:
    """The model answer counts a kind of error as often as its labels of the ten captions shown first have it."""

    def holds(outputs: dict[str, str]) -> bool:
        first_ten = zip(list(translations(outputs))[:10], TEN, strict=True)
        said = int(words.split()[-1]) if words[0] == "*" else NUMBERS[words.lower().split()[0]]
        shown = all(german.startswith(row[0]) for german, row in first_ten)
        return shown and said == sum(kind in row[1 + beam] for row in TEN)

    return Claim("error_analysis", words, holds)


def by_beam(text: str) -> dict[int, list[float]]:
    return {int(beam): numbers(rest) for beam, rest in re.findall(r"beam of +(\d+)[^:]*: (.*)", text)}


def decoded(way: str) -> dict:
    """The record of a way of decoding with the shipped translator, or of its difference to another."""
    return first(way, "Decoding*")


def falling(ways: list[str]) -> bool:
    """Whether captions get shorter from each of these ways of decoding to the next."""
    return all(one > other for one, other in itertools.pairwise(map(tokens, ways)))


WIDTHS = {
    "| 1 | | 40.3 |": "beam of 1",
    "| 5 | 0.6 | 40.9 |": "beam of 5",
    "| 20 | 0.6 | 40.9 |": "beam of 20",
    "| 50 | 0.6 | 40.9 |": "beam of 50",
    "| 5 | none | 40.6 |": "beam of 5, no length penalty",
    "| 50 | none | 40.2 |": "beam of 50, no length penalty",
}
REWARDED = "beam of 5, a reward of 0.8"
FILLED = "beam of 5, “on the street” added to every fourth caption"
LATE = "beam of 5, a length penalty of 3.0"
REWARDS = {
    "a length penalty of 0.6": "beam of 5",
    "the same, *on the street* in every fourth": FILLED,
    "a length penalty of 3": LATE,
    "**a reward of 0.8**": REWARDED,
}


def width(row: str) -> Claim:
    """A row of the table of widths: its BLEU is the recorded one, rounded."""
    holds = f"| {decoded(WIDTHS[row])['values']['BLEU']:.1f} |"
    return Claim("shipped-beam-reading", row, lambda _: row.endswith(holds))


def rewarded(name: str) -> Claim:
    """A row of the table of rewards, as recorded."""
    way = REWARDS[name]
    values = decoded(way)["values"]
    against = "" if way == "beam of 5" else signed(decoding(f"{way} − beam of 5")) + " "
    others = " | ".join(f"{values[name]:.1f}" for name in ("chrF", "TER", "tokens in a caption"))
    return Claim("rewards-reading", f"| {name} | {values['BLEU']:.1f} | {against}| {others} |", always)


def tokens(way: str) -> float:
    """How many tokens a caption has, decoded in this way."""
    return decoded(way)["values"]["tokens in a caption"]


PARTS = "The_shipped_translator_on_parts*"
SAMPLE = "The_shipped_translator_on_the_sample*"
DRAWN = "each piece drawn at random"
BY_GERMAN = [f"beam of 1, the {name} third of the German" for name in ("shortest", "middle", "longest")]
TOLD = "told how the reference begins"


def drawn_tokens() -> list[float]:
    """How many tokens a caption has whose pieces were drawn at random, for each seed."""
    return [run["values"]["tokens in a caption"] for run in records("Decoding*") if DRAWN in run["model"]]


def on_part(name: str) -> dict[str, float]:
    """What the shipped translator scores on the real validation captions, or on a part of them."""
    return first(name, PARTS)["values"]


def unpunished(name: str) -> float:
    """BLEU on a part of the captions without its brevity penalty."""
    values = on_part(name)
    return round(
        values["BLEU"] / min(1, math.exp(1 - values["tokens in a reference"] / values["tokens in a caption"])), 1
    )


def precision(way: str) -> float:
    """BLEU without its brevity penalty: the mean of the precisions of a way of decoding the validation captions."""
    return round(decoded(way)["values"]["BLEU"] / min(1.0, math.exp(1 - wanted_tokens() / tokens(way))), 1)


def wanted_tokens() -> float:
    """How many tokens a reference of the validation captions has."""
    return next(numbers(note)[0] for note in decoded("beam of 5")["notes"] if note.startswith("The references"))


def judged() -> list[float]:
    """What the reward brings the shipped translator on the test captions, and the interval."""
    return first(f"{REWARDED} − beam of 5", "The_shipped*")["difference"]


def by_shipped_beam() -> list[float]:
    """What a beam of 5 brings the translator that ships on the test captions, and the interval."""
    middle, low, high = first("beam of 1 − beam of 5", "The_shipped_translator_as_it_ships*")["difference"]
    return [-middle, -high, -low]


def described(text: str, name: str) -> list[list[float]]:
    """Tokens of a caption, mean precision and BLEU, of each line that begins so."""
    return [numbers(line.partition(":")[2]) for line in text.splitlines() if line.startswith(name)]


def grown(rows: list[list[float]]) -> bool:
    """Whether captions get longer with each reward, and at the end their precision is lower and their BLEU higher."""
    lengths = [row[0] for row in rows]
    return lengths == sorted(lengths) and rows[-1][1] < rows[0][1] and rows[-1][2] > rows[0][2] + 2


CLAIMS = [
    *map(rung, RUNGS),
    Claim(
        "ladder",
        "38.17, 38.59 and 39.10 with pieces of words, 38.25, 38.75 and 39.19 with words (in 14 epochs, not 26)",
        lambda _: (
            [first(f"transformer, {units}")["epochs"] for units in ("words", "subwords")] == [14, 26]
            and sorted(recorded("transformer, subwords", "greedy")) == [38.17, 38.59, 39.10]
            and sorted(recorded("transformer, words", "greedy")) == [38.25, 38.75, 39.19]
        ),
    ),
    Claim(
        "ladder",
        "With the transformer came 26 epochs in place of 8. After 10, and with more words, a GRU with attention\n"
        "has 32.9",
        lambda _: (
            [first(model)["epochs"] for model in ("transformer, subwords", GRUS[1], MORE_WORDS)] == [26, 8, 10]
            and [round(figure, 1) for figure in recorded(MORE_WORDS, "greedy")] == [32.9]
        ),
    ),
    Claim(
        "ladder",
        "36 epochs in place of 26, a lower rate and another schedule; with the width came 22 epochs, half the rate and "
        "more dropout",
        lambda _: (
            [first(model)["epochs"] for model in (AVERAGED, "transformer, subwords", WIDE)] == [36, 26, 22]
            and 2 * first(WIDE)["recipe"]["rate"] == first(AVERAGED)["recipe"]["rate"]
            and first(WIDE)["recipe"]["dropout"] > first(AVERAGED)["recipe"]["dropout"]
        ),
    ),
    Claim(
        "ladder",
        "7.6 million parameters in place of 1.8. What its first training brings may be chance",
        lambda _: (
            [round(first(model)["parameters"] / 1e6, 1) for model in (WIDE, AVERAGED)] == [7.6, 1.8]
            and difference(f"{WIDE} − {AVERAGED}")[1] < 0
        ),
    ),
    Claim("ladder", "which has 42.1 without", lambda _: round(recorded(WIDE, "beam 5")[1], 1) == 42.1),
    Claim(
        "ladder",
        f"the taught one gains {signed(difference(f'{TAUGHT}, greedy − {AVERAGED}, greedy'))} without a beam, "
        f"and {signed(difference(f'{TAUGHT} − {AVERAGED}'))} with one",
        always,
    ),
    Claim(
        "ladder",
        "36 epochs in place of its 28",
        lambda _: [first(model)["epochs"] for model in (AVERAGED, TAUGHT)] == [36, 28],
    ),
    Claim(
        "ladder",
        "nothing that cannot be chance",
        lambda _: all(
            low < 0 < high
            for _, low, high in map(difference, (f"{TAUGHT}, greedy − {AVERAGED}, greedy", f"{TAUGHT} − {AVERAGED}"))
        ),
    ),
    Claim(
        "ladder",
        "its interval does not reach 0",
        lambda _: difference("transformer, subwords − transformer, subwords, greedy")[1] > 0,
    ),
    Claim(
        "bleu-run-reading",
        "costs time, and in this training it brings nothing",
        lambda o: by_beam(o["bleu-run"])[1][0] >= max(by_beam(o["bleu-run"])[2][0], by_beam(o["bleu-run"])[4][0]),
    ),
    Claim(
        "shipped-beam-reading",
        "a beam of 5 is worth five points here, and none of the wider ones is worth more",
        lambda o: (
            4.5 < by_beam(o["beam-widths"])[5][0] - by_beam(o["beam-widths"])[1][0] < 5.5
            and max(by_beam(o["beam-widths"])[beam][0] for beam in (10, 20, 50)) <= by_beam(o["beam-widths"])[5][0]
        ),
    ),
    Claim(
        "shipped-beam-reading",
        "The interval of the five points stays clear of 0",
        lambda o: by_beam(o["beam-widths"])[5][3] > 0,
    ),
    Claim(
        "shipped-beam-reading",
        f"There a beam of 5 is worth {signed(first('beam of 5 − beam of 1', SAMPLE)['difference'])}",
        lambda _: (
            first("beam of 5 − beam of 1", SAMPLE)["difference"][1] < 0
            and "373 training captions" in first("beam of 5", SAMPLE)["data"]
        ),
    ),
    Claim("shipped-beam-reading", f"{signed(by_shipped_beam())} to this translator", always),
    Claim(
        "shipped-beam-reading",
        f"The ladder's {difference('transformer, subwords − transformer, subwords, greedy')[0]:+.2f}",
        always,
    ),
    Claim(
        "shipped-beam-reading",
        "which may be chance, too",
        lambda _: by_shipped_beam()[1] < 0 < by_shipped_beam()[0],
    ),
    *(
        Claim(cell, signed(decoding(title)), always)
        for cell, title in (
            ("ex5-beam", "beam of 5, ended hypotheses are set aside − beam of 5"),
            ("ex5-beam", "beam of 5, ended hypotheses end the search − beam of 5"),
            ("shipped-beam-reading", "beam of 1 − beam of 5"),
            ("shipped-beam-reading", "beam of 20 − beam of 5"),
            ("shipped-beam-reading", "beam of 50 − beam of 5"),
            ("shipped-beam-reading", "beam of 5, no length penalty − beam of 5"),
            ("shipped-beam-reading", "beam of 50, no length penalty − beam of 5"),
        )
    ),
    *map(width, WIDTHS),
    Claim(
        "shipped-beam-reading",
        "With ten times the work",
        lambda _: 9.5 < decoded("beam of 50")["processor_seconds"] / decoded("beam of 5")["processor_seconds"] < 10.5,
    ),
    Claim(
        "shipped-beam-reading",
        "a beam of 50 brings nothing, and without the length penalty it has a lower figure than a beam of 5 without it",
        lambda _: (
            decoding("beam of 50 − beam of 5")[0] < 0
            and decoded("beam of 50, no length penalty")["values"]["BLEU"]
            < decoded("beam of 5, no length penalty")["values"]["BLEU"]
        ),
    ),
    Claim(
        "shipped-beam-reading",
        "is 44.2 with a beam of 5 and 44.6 with one of 50",
        lambda _: [precision(f"beam of {beam}, no length penalty") for beam in (5, 50)] == [44.2, 44.6],
    ),
    Claim(
        "too-short",
        "The wider the beam, the shorter the captions, and shorter still without the length penalty",
        lambda _: (
            falling([f"beam of {beam}" for beam in (1, 5, 20, 50)])
            and all(falling([f"beam of {beam}", f"beam of {beam}, no length penalty"]) for beam in (5, 50))
            and falling([f"beam of {beam}, no length penalty" for beam in (5, 50)])
        ),
    ),
    Claim(
        "too-short",
        "all of them are too short, for the references have 13.2 tokens",
        lambda _: round(wanted_tokens(), 1) == 13.2 and max(map(tokens, WIDTHS.values())) < 13.2,
    ),
    Claim(
        "too-short",
        "takes 7 % of the beam's figure",
        lambda _: round(100 * (1 - math.exp(1 - wanted_tokens() / tokens("beam of 5")))) == 7,
    ),
    Claim(
        "filler-why",
        "The captions grow, the precisions fall a little (not at each step), and BLEU gains more than it loses",
        lambda o: grown(described(o["rewards-parts"], "reward")),
    ),
    Claim(
        "rewards-reading",
        "The captions are now as long as with a reward of 1.0, and BLEU is lower than before",
        lambda o: (
            described(o["filler"], "every third")[0][0] == described(o["rewards-parts"], "reward 1.0")[0][0]
            and described(o["filler"], "every third")[0][2] < described(o["filler"], "as they are")[0][2]
        ),
    ),
    *map(rewarded, REWARDS),
    Claim("rewards-reading", f"it brings the shipped translator {signed(judged())}", always),
    Claim(
        "rewards-reading",
        "Of the rewards from 0.4 to 1.2 that were tried, 0.8 is the best on these captions",
        lambda _: (
            max(
                (f"beam of 5, a reward of {reward}" for reward in (0.4, 0.6, 0.8, 1.0, 1.2)),
                key=lambda way: decoded(way)["values"]["BLEU"],
            )
            == REWARDED
        ),
    ),
    Claim(
        "rewards-reading",
        "Its captions are as long, so long ones were left; but their words fit less well",
        lambda _: tokens(LATE) >= tokens(REWARDED) and precision(LATE) < precision(REWARDED),
    ),
    Claim("rewards-reading", f"the reward is ahead of it by {signed(decoding(f'{REWARDED} − {LATE}'))}", always),
    Claim(
        "rewards-reading",
        "41.8 edits for each 100 words of the reference in place of 40.8",
        lambda _: [round(decoded(way)["values"]["TER"], 1) for way in (REWARDED, "beam of 5")] == [41.8, 40.8],
    ),
    Claim(
        "look-reading",
        "no head gives the end more than 14 % of its weight, and none gives the heaviest piece of a row less than 43 %",
        lambda o: (
            [
                edge(map(int, re.findall(r"(\d+)%", line)))
                for edge, line in zip((min, max), o["all-heads"].splitlines(), strict=True)
            ]
            == [43, 14]
        ),
    ),
    Claim(
        "teacher-forced-reading",
        "Higher by five points",
        lambda o: 4.5 < numbers(o["teacher-forced"])[-1] - numbers(o["cuts"])[0] < 5.5,
    ),
    Claim(
        "teacher-forced-reading",
        "40.5 in place of 40.3, and the difference may be chance, "
        + signed(first(f"{TOLD} − beam of 1", PARTS)["difference"]),
        lambda _: [round(on_part(name)["BLEU"], 1) for name in (TOLD, "beam of 1")] == [40.5, 40.3],
    ),
    Claim(
        "by-length-reading",
        "the thirds have 41.6, 42.4 and 37.7",
        lambda _: (
            [round(on_part(f"beam of 1, the {name} third")["BLEU"], 1) for name in ("shortest", "middle", "longest")]
            == [41.6, 42.4, 37.7]
        ),
    ),
    Claim(
        "by-length-reading",
        "the thirds have 44.2, 42.7 and 36.5, and without the brevity penalty 45.1, 44.1 and 39.6",
        lambda _: (
            [round(on_part(name)["BLEU"], 1) for name in BY_GERMAN] == [44.2, 42.7, 36.5]
            and [unpunished(name) for name in BY_GERMAN] == [45.1, 44.1, 39.6]
        ),
    ),
    Claim(
        "too-short",
        "these captions have 12.9 to 13.0 tokens (four seeds)",
        lambda _: len(drawn_tokens()) == 4 and [round(edge(drawn_tokens()), 1) for edge in (min, max)] == [12.9, 13.0],
    ),
    Claim(
        "too-short",
        "Greedy decoding, which takes the likeliest piece each time, writes 12.6, and the beam 12.3",
        lambda _: round(tokens("beam of 1"), 1) == 12.6 and tokens("beam of 5") == 12.35,
    ),
    Claim("unknown-reading", "that of the translations, 34.8", lambda o: numbers(o["cuts"])[0] == 34.8),
    Claim(
        "ex5-beam",
        "whatever comes | when all places are taken by such | 0.00 [0.00, 0.00]",
        lambda _: decoding("beam of 5, ended hypotheses keep their places − beam of 5") == [0.0, 0.0, 0.0],
    ),
    Claim(
        "labels-reading",
        "In these five the beam mended nothing. It wrote one differently",
        lambda o: (
            [line.split()[-2:] for line in o["labels-count"].splitlines()[1:]]
            == [["0", "1"], ["0", "0"], ["0", "0"], ["0", "0"], ["0", "1"], ["0", "0"], ["0", "0"]]
            and sum(greedy != beam for greedy, beam in list(translations(o).values())[:5]) == 1
        ),
    ),
    Claim(
        "error_analysis",
        "It wrote nine of\n   the ten as greedy did",
        lambda o: sum(greedy == beam for greedy, beam in list(translations(o).values())[:10]) == 9,
    ),
    Claim(
        "watched-reading",
        "Greedy decoding began with the wrong words, *A table*",
        lambda o: "greedy:    A table of" in o["watched-code"] and "beam of 3: There are several" in o["watched-code"],
    ),
    Claim("pieces-reading", "the text comes back as ⁇", lambda o: o["pieces-code"].count("⁇") >= 3),
    Claim("merges-reading", "The first merge is *i* and *n*", lambda o: "first: i+n" in o["merges-run"]),
    Claim("merges-reading", "falls into eight, half of them", lambda o: "p ho to g r ap h ing" in o["merges-cut"]),
    Claim("merges-reading", "still has six pieces", lambda o: "merges: photo g r ap h ing" in o["merges-cut"]),
    Claim(
        "unknown-reading",
        "The fewer words a model knows, the better it looks",
        lambda o: (
            numbers(o["cuts"])[0] < numbers(o["unknown"])[0] and sorted(numbers(o["unknown"])) == numbers(o["unknown"])
        ),
    ),
    Claim("counted-reading", "16 of these 40", lambda o: "16 of 40 sentences" in o["counted"]),
    Claim(
        "cuts-reading",
        "still have 22 beside the reference of *another* caption; with words next to nothing",
        lambda o: [round(n) for n in numbers(o["cuts"])[1::2]] == [0, 0, 0, 22],
    ),
    *map(says, ("A body of pier", "rugging the roof", "a trunch", "an ule", "in bright suit", "holding magazine")),
    *map(says, ("stand in the snow with snow", "staring at something", "A guy working on a building.")),
    *(counted(words, kind, beam) for beam in (False, True) for kind, words in COUNTED[beam].items()),
]
