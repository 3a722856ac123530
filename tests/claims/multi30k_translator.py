"""What chapter 10 says of its own runs, of the shipped translator and of the records."""

import json
import re
from statistics import mean

from autograder.course.curriculum import find_course
from claims import Claim

RUNS = find_course().root / "results" / "runs"


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.\d+", text)]


def recorded(model: str, decoding: str) -> list[float]:
    """BLEU on the test captions in lower-case tokens, of each run of a model."""
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(RUNS.glob("German_captions*.json"))]
    return [run["values"][f"tokens, lower case, {decoding}"] for run in runs if run["model"] == model]


LADDER = {
    "one vector between two GRUs": ("GRU without attention, words", "greedy"),
    "attention": ("GRU with attention, words", "greedy"),
    "transformer of words": ("transformer, words", "greedy"),
    "transformer of subwords": ("transformer, subwords", "greedy"),
    "beam of 5": ("transformer, words", "beam 5"),
    "mean of three": ("mean of the word transformers' probabilities", "beam 5"),
    "consensus": ("consensus of all transformers and both means", "beam 5"),
}


def steps_of_the_ladder() -> dict[str, list[float]]:
    return {name: recorded(*which) for name, which in LADDER.items()}


def rung(phrase: str, name: str) -> Claim:
    """A row of the ladder's table: its figure is the mean of the recorded runs, and its range theirs."""

    def holds(_: dict[str, str]) -> bool:
        values = steps_of_the_ladder()[name]
        said = numbers(phrase)
        wanted = [round(mean(values), 1), *([min(values), max(values)] if len(values) > 1 else [])]
        return len(said) == len(wanted) and all(abs(a - b) <= 0.0501 for a, b in zip(said, wanted, strict=True))

    return Claim("ladder", phrase, holds)


def translations(outputs: dict[str, str]) -> dict[str, tuple[str, str]]:
    """What the shipped translator says of each German caption, greedily and with a beam of 5."""
    rows = re.findall(r"German +(.+)\nreference +.+\ngreedy +(.+)\nbeam of 5 +(.+)", outputs["imperfect"])
    return {german.strip(): (greedy.strip(), beam.strip()) for german, greedy, beam in rows}


def says(quoted: str, beam: bool = False) -> Claim:
    """The model answer quotes a translation that the shipped model really makes."""
    return Claim("error_analysis", quoted, lambda o: any(quoted in row[beam] for row in translations(o).values()))


def by_beam(text: str) -> dict[int, list[float]]:
    return {int(beam): numbers(rest) for beam, rest in re.findall(r"beam of +(\d+)[^:]*: (.*)", text)}


CLAIMS = [
    rung("| two GRUs with one vector between them (chapter 8) | 22.8 |", "one vector between two GRUs"),
    rung("| attention between them (chapter 8) | 32.9 |", "attention"),
    rung("| a transformer in their place (chapter 9) | 38.7 | 38.25 to 39.19 |", "transformer of words"),
    rung("| pieces of words in place of words | 38.6 | 38.17 to 39.10 |", "transformer of subwords"),
    rung("| words again, and a beam of 5 | 39.6 | 39.15 to 39.86 |", "beam of 5"),
    rung("probabilities, an **ensemble** | 40.7 |", "mean of three"),
    rung("| a consensus of all models | 41.3 |", "consensus"),
    Claim(
        "bleu-run-reading",
        "a beam costs time and brings nothing",
        lambda o: by_beam(o["bleu-run"])[1][0] >= max(by_beam(o["bleu-run"])[2][0], by_beam(o["bleu-run"])[4][0]),
    ),
    Claim(
        "shipped-beam-reading",
        "A beam of 5 is worth five points here, and a beam of 10 is no better than one of 5",
        lambda o: (
            4.5 < by_beam(o["shipped-beam"])[5][0] - by_beam(o["shipped-beam"])[1][0] < 5.5
            and by_beam(o["shipped-beam"])[10][0] <= by_beam(o["shipped-beam"])[5][0]
        ),
    ),
    Claim(
        "watched-reading",
        "Greedy decoding began with the wrong word, *New workman*",
        lambda o: "greedy:    New workman" in o["watched-code"] and "A woman is fishing" in o["watched-code"],
    ),
    Claim("pieces-reading", "the text comes back as ⁇", lambda o: o["pieces-code"].count("⁇") >= 3),
    Claim("merges-reading", "The first merge is *i* and *n*", lambda o: "first: i+n" in o["merges-run"]),
    Claim("merges-reading", "falls into eight", lambda o: "p ho to g r ap h ing" in o["merges-cut"]),
    says("A white dog swims a white dog."),
    says("A morder selling two men on the street."),
    says("New workman a woman in a boat."),
    says("Three men wearing green jackets are shoveling in the snow."),
    says("A woman is fishing in a boat.", beam=True),
]
