"""What chapter 08 says of its own runs, on the invented sample, and of what two models wrote for real captions."""

import json
import math
import re
from functools import cache
from statistics import mean, stdev

from autograder.course.curriculum import find_course
from claims import Claim, records


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.\d+", text)]


def rows(text: str) -> dict[str, list[float]]:
    """The numbers of each line after its colon, by what stands before it."""
    parts = [line.rpartition(":") for line in text.splitlines() if ":" in line]
    return {name.strip(): numbers(values) for name, _, values in parts}


def last_losses(outputs: dict[str, str]) -> tuple[float, float]:
    """The validation loss of one vector, and of attention."""
    return numbers(outputs["train-without"])[-1], numbers(outputs["train-with"])[-1]


def exposure(outputs: dict[str, str]) -> list[float]:
    """The loss with the true token always fed, in half of the steps, and never."""
    return [values[-1] for name, values in rows(outputs["exposure"]).items() if name.startswith("the true token")]


def translations(outputs: dict[str, str]) -> dict[str, list[str]]:
    """Each kind of line that the chapter prints of its first validation captions."""
    kinds = ("German", "reference", "with attention", "one vector")
    lines = outputs["translate-run"].splitlines()
    return {kind: [line[15:].strip() for line in lines if line.startswith(kind.ljust(15))] for kind in kinds}


def of_seeds(kind: str) -> str:
    """The recorded BLEU of a kind of model, as the text says it: the mean over seeds and the standard deviation."""
    found = records(f"German_captions*-{kind}__words_that_occur_three_times-[0-9]")
    scores = [record["values"]["tokens, lower case, greedy"] for record in found]
    assert len(scores) == 3
    return f"{mean(scores):.1f} ± {stdev(scores):.1f}"


def by_length(outputs: dict[str, str]) -> list[float]:
    """What attention saves in each third, short captions first."""
    losses = rows(outputs["by-length"])
    pairs = zip(losses["one vector"], losses["with attention"], strict=True)
    return [one - other for one, other in pairs]


def misses(outputs: dict[str, str]) -> list[int]:
    """How often the most missed word is the one looked at, at the same place, and the other model's, in per cent."""
    return [int(share) for share in re.findall(r": (\d+)%", outputs["erasing-count"])]


@cache
def real_captions() -> list[dict]:
    """The test captions, as the file beside the chapter has them."""
    path = find_course().root / "solutions" / "08_seq2seq_attention" / "alignments.json"
    return json.loads(path.read_text(encoding="utf-8"))


def looked(beginning: str, english: str, german: str) -> int:
    """How much of a German word went into an English one, in thousandths; the caption by how its German begins."""
    caption = next(c for c in real_captions() if " ".join(c["source"]).startswith(beginning))
    row = caption["weights"][caption["attention"].index(english)]
    return row[1 + caption["source"].index(german)]


def darkest(caption: dict) -> list[int]:
    """Which source position each English word looked at most, by its number."""
    return [max(range(len(row)), key=row.__getitem__) for row in caption["weights"]]


VERBS = {
    "standing": ("steht", "stehen"),
    "sitting": ("sitzt", "sitzen"),
    "holding": ("hält", "halten"),
    "wearing": ("trägt", "tragen"),
    "playing": ("spielt", "spielen"),
    "walking": ("geht", "gehen", "läuft", "laufen"),
}


def looks_of_verbs() -> list[tuple[bool, bool]]:
    """Of each common verb of the real captions: whether it ends a relative clause; whether it looked at itself.

    Only verbs whose English and German forms occur once in their caption.
    """
    found = []
    for caption in (c for c in real_captions() if "weights" in c):
        source, written = caption["source"], caption["attention"]
        for word, place in zip(written, darkest(caption), strict=True):
            own = [i for i, german in enumerate(source) if german in VERBS.get(word, ())]
            if written.count(word) == len(own) == 1:
                before = " ".join(source[: own[0]])
                clause = re.search(r", (der|die|das) [^,]*$", before)
                found.append((bool(clause) and source[own[0] + 1] in (",", "."), place - 1 == own[0]))
    return found


def repeating(captions: list[dict]) -> list[int]:
    """In how many captions some three words stand twice: without attention, with it, in the references."""

    def repeats(words: list[str]) -> bool:
        runs = list(zip(words, words[1:], words[2:], strict=False))
        return len(set(runs)) < len(runs)

    return [sum(repeats(caption[kind]) for caption in captions) for kind in ("without", "attention", "reference")]


def longest(count: int) -> list[dict]:
    """The real captions with the most German tokens, as the chapter sorts them."""
    return sorted(real_captions(), key=lambda caption: len(caption["source"]))[-count:]


def lengths(outputs: dict[str, str]) -> list[list[float]]:
    """BLEU with and without attention, the difference and its interval, for each quarter, short captions first."""
    return [numbers(line.split(":")[1]) for line in outputs["real-by-length"].splitlines() if "tokens:" in line]


def growths(outputs: dict[str, str]) -> list[list[float]]:
    """How much the gain grows and its interval, in points and then in shares, for each cut."""
    return [numbers(line.partition("rest:")[2]) for line in outputs["real-growth"].splitlines()]


CLAIMS = [
    Claim("vocab-idea", "`<unk>` is 0 and `<pad>` is 1", lambda o: "['<unk>', '<pad>', '<sos>', '<eos>'" in o["vocab"]),
    Claim("bottleneck-reading", "4, 2, 1: half of it", lambda o: numbers(o["gru-cell"]) == [4.0, 2.0, 1.0]),
    Claim(
        "side-by-side-reading",
        "Both lines are the same",
        lambda o: numbers(o["side-by-side"])[:3] == numbers(o["side-by-side"])[3:],
    ),
    Claim("ex2", "Nothing: what is added", lambda o: numbers(o["no-bias"])[:3] == numbers(o["no-bias"])[3:]),
    Claim(
        "curves-reading",
        "attention has saved about a third of the loss",
        lambda o: 0.28 < 1 - last_losses(o)[1] / last_losses(o)[0] < 0.4,
    ),
    Claim(
        "by-length-reading",
        "about 0.2, 0.3 and 0.4 nats",
        lambda o: all(abs(saved - said) < 0.05 for saved, said in zip(by_length(o), (0.2, 0.3, 0.4), strict=True)),
    ),
    Claim("by-length-reading", "thirteen or fourteen invented captions", lambda o: "40 to validate" in o["load-run"]),
    Claim(
        "alignment-reading",
        "the model with one vector, which cannot look anywhere, wrote the same sentence",
        lambda o: translations(o)["one vector"][4] == translations(o)["with attention"][4],
    ),
    Claim("exposure-reading", "about five times as large", lambda o: 4.5 < exposure(o)[2] / exposure(o)[0] < 5.5),
    Claim(
        "exposure-reading",
        "half of the time the loss is nearly twice as large",
        lambda o: 1.6 < exposure(o)[1] / exposure(o)[0] < 2,
    ),
    Claim(
        "ex5",
        "about 0.5 and 2.7 would change places",
        lambda o: abs(exposure(o)[0] - 0.5) < 0.05 and abs(exposure(o)[2] - 2.7) < 0.1,
    ),
    Claim("real-idea", "for the first 60 also", lambda o: sum("weights" in c for c in real_captions()) == 60),
    Claim(
        "real-align-reading",
        "*stehen* gets none of its weight",
        lambda o: (
            looked("leute , die", "standing", "stehen") == 0
            and looked("leute , die", "standing", ",") + looked("leute , die", "standing", "die") > 800
        ),
    ),
    Claim(
        "real-align-reading",
        "have most of their weight on their own German word",
        lambda o: (
            min(
                looked("leute , die", "people", "leute"),
                looked("leute , die", "building", "gebäude"),
                looked("ein mann mit einem orange", "hat", "hut"),
                looked("ein mann mit einem orange", "orange", "orangefarbenen"),
                looked("frauen , die", "traditional", "traditionelle"),
            )
            > 800
        ),
    ),
    Claim(
        "real-dictionary-reading",
        "71 of 77, and 75 with the neighbours",
        lambda o: (
            "77 words" in o["real-dictionary-run"] and "in 71, that or a neighbour in 75" in o["real-dictionary-run"]
        ),
    ),
    Claim(
        "real-dictionary-reading",
        "would have found 60",
        lambda o: "along the sentence: its own German word in 60" in o["real-dictionary-run"],
    ),
    Claim(
        "real-dictionary-reading",
        "looked at 13",
        lambda o: "of the 17 that moved, it looked at 13" in o["real-dictionary-run"],
    ),
    Claim(
        "real-dictionary-reading",
        "in 15 cases of 22: in\nnone of the four where it ends a relative clause, and in 15 of the other 18",
        lambda o: (
            [sum(own for _, own in looks_of_verbs()), len(looks_of_verbs())] == [15, 22]
            and [own for last, own in looks_of_verbs() if last] == 4 * [False]
        ),
    ),
    Claim(
        "real-align-reading",
        "wrote *standing* as well",
        lambda o: any(c["without"][:2] == ["people", "standing"] and c["source"][2] == "die" for c in real_captions()),
    ),
    Claim(
        "real-bleu-reading",
        "Attention is worth 8.6 BLEU, and the interval is far from 0",
        lambda o: numbers(o["real-bleu"])[-3] == 8.6 and numbers(o["real-bleu"])[-2] > 5,
    ),
    Claim(
        "real-bleu-reading",
        "with three seeds each, 31.7 ± 0.3 with attention and 22.5 ± 0.4 without",
        lambda o: (of_seeds("GRU_with_attention"), of_seeds("GRU_without_attention")) == ("31.7 ± 0.3", "22.5 ± 0.4"),
    ),
    Claim(
        "real-growth-idea",
        "The gain is 6.4, 7.8, 10.3 and 8.7",
        lambda o: [row[2] for row in lengths(o)] == [6.4, 7.8, 10.3, 8.7],
    ),
    Claim("real-growth-idea", "Attention helps in each quarter", lambda o: min(row[3] for row in lengths(o)) > 0),
    Claim(
        "real-by-length-reading",
        "In points at one of the eight, the first: on captions of up to eight tokens attention gains 4.9 less",
        lambda o: growths(o)[0][0] == 4.9 and [row[1] > 0 for row in growths(o)] == [True] + 7 * [False],
    ),
    Claim(
        "real-by-length-reading",
        "In shares at six: on the longer side the part of the BLEU that is lost without attention is larger by 7 to 15",
        lambda o: (
            [row[4] > 0 for row in growths(o)] == 6 * [True] + 2 * [False]
            and (round(min(row[3] for row in growths(o)[:6])), round(growths(o)[0][3])) == (7, 15)
        ),
    ),
    Claim("erasing-verdict", "for nearly half of these English words", lambda o: 40 < misses(o)[0] < 50),
    Claim("erasing-verdict", "gives about four in ten", lambda o: 35 < misses(o)[1] < min(45, misses(o)[0])),
    Claim("erasing-verdict", "for about two\nthirds of them", lambda o: 60 < misses(o)[2] < 73),
    Claim(
        "ex5",
        "each loss is about that of a model that knows nothing",
        lambda o: all(abs(loss - math.log(331)) < 0.2 for loss in numbers(o["reversed-run"])),
    ),
    Claim(
        "real-by-length-reading",
        "In 60 of the 250 longest captions it writes some three words twice; with attention it is 25, and the "
        "references do so in 10",
        lambda o: repeating(longest(250)) == [60, 25, 10],
    ),
    Claim(
        "real-by-length-reading",
        "*five people in the snow with snow in the background with snow in the background*",
        lambda o: any(
            " ".join(c["without"])
            == "five people in the snow with snow in the background with snow in the background ."
            for c in real_captions()
        ),
    ),
    Claim(
        "real-align-reading",
        "*holding a* looks most at *küche*, and *kitchen* about as much at *schale* as at *küche*",
        lambda o: (
            looked("eine frau , die in einer", "holding", "küche") > 500
            and abs(looked("eine frau , die in einer", "kitchen", "küche") - 400) < 20
            and abs(looked("eine frau , die in einer", "kitchen", "schale") - 400) < 20
        ),
    ),
    Claim(
        "real-growth-idea",
        "the line is level up to 14 tokens, while the other loses four points; then both fall",
        lambda o: (
            all(last < before - 3 for before, last in zip(lengths(o)[2][:2], lengths(o)[3][:2], strict=True))
            and max(row[0] for row in lengths(o)[:3]) - min(row[0] for row in lengths(o)[:3]) < 0.5
            and round(lengths(o)[0][1] - lengths(o)[2][1]) == 4
        ),
    ),
]
