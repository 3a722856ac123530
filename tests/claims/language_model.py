"""Chapter 11: which sentences quote what its cells printed."""

import math
import re

from claims import Claim, records

Outputs = dict[str, str]


def numbers(text: str) -> list[float]:
    """All numbers in a text, in order."""
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def after(text: str, name: str) -> list[float]:
    """The numbers behind a name, up to the end of its line."""
    line = next(line for line in text.splitlines() if name in line)
    return numbers(line.split(name, 1)[1])


def means(outputs: Outputs) -> list[float]:
    """The mean perplexities of the small models."""
    return [numbers(line)[0] for line in outputs["parts-code"].splitlines()]


def counted(length: int) -> float:
    """The perplexity of n-grams of the captions that the small models read."""
    name = f"{length}-grams, modified Kneser–Ney, the first 12,000 captions"
    return next(run for run in records("A_language_model*") if run["model"] == name)["values"]["perplexity of a word"]


def perplexity_of(name: str) -> float:
    """The perplexity of a word of the record whose model's name begins so."""
    return next(
        run["values"]["perplexity of a word"]
        for run in records("A_language_model*")
        if run["model"].startswith(name) and "12,000" not in run["model"] and "values" in run
    )


def compared(name: str) -> str:
    """By how many per cent a small model is worse than the one of new parts, all seeds together, and the interval."""
    title = f"{name} − small: RMSNorm, SwiGLU, rotary positions"
    run = next(run for run in records("A_language_model*") if run["model"] == title and run["seed"] == "0+1+2")
    return "{:.1f} % [{:.1f}, {:.1f}]".format(*run["difference"]).replace("-", "−")


def passes(number: int) -> list[float]:
    """After so many passes: what the new parts reach, then what each other model has more, in per cent, best first."""
    found: dict[str, list[float]] = {}
    for run in records(f"A_language_model*passes_over_them__{number}-*"):
        found.setdefault(run["model"], []).append(run["values"]["perplexity of a word"])
    new = sum(found.pop("small: RMSNorm, SwiGLU, rotary positions"))
    names = ("LayerNorm for RMSNorm", "ReLU network for SwiGLU", "table of positions for rotary ones", "no positions")
    rows = (*names, "LayerNorm, ReLU network, table of positions")
    return [new / 3, *(round(100 * (sum(found[f"small, {name}"]) / new - 1), 1) for name in rows)]


def gate(where: str, *, read: bool = False) -> list[float]:
    """By how many per cent of a word's perplexity the ReLU network is behind: of the means, then with each seed.

    Args:
        where: what the records' names have before that of the model.
        read: on the captions that were read, in the last pass, in place of the validation captions.
    """
    nats = {}
    for part in (": RMSNorm, SwiGLU, rotary positions", ", ReLU network for SwiGLU"):
        runs = [run for run in records(f"A_language_model*{where}small*") if run["model"] == f"small{part}"]
        runs.sort(key=lambda run: run["seed"])
        pieces = 1.284  # in a word of the captions that were read
        nats[part] = [
            pieces * run["history"][-1][0] if read else math.log(run["values"]["perplexity of a word"]) for run in runs
        ]
    new, old = nats.values()
    each = [100 * math.expm1(b - a) for a, b in zip(new, old, strict=True)]
    return [100 * (sum(map(math.exp, old)) / sum(map(math.exp, new)) - 1), *each]


def in_pieces(words: str) -> list[float]:
    """Of words in several pieces: first piece unlikely, a later one, how many, and the model sure of the second."""
    found = [run["values"] for run in records("Words_that_the_language_model_of_chapter_11*") if words in run["model"]]
    names = ("the first", "a later one", "sure of the second")
    first, later, sure = (sum(each[name] for each in found) / len(found) for name in names)
    return [first, later, sum(each["words"] for each in found), sure]


def one_layer(title: str, *, longer: bool = False) -> float:
    """What one layer copies, in per cent, four seeds together: after 500 steps, or after 3,000."""
    name = "Copying_with_one_layer__six_times_as_long*" if longer else "Copying_with_one_layer__chapter_11_*"
    runs = [run for run in records(name) if run["model"] == title]
    return sum(run["values"]["copied"] for run in runs) / len(runs)


def missed(which: str, *, mean: bool = False) -> list[dict[str, float]]:
    """What each of the eight copies where one map of the second layer reads without a head of the first.

    Args:
        which: how far back the head looks: "farther" or "less far".
        mean: its mean takes its place.
    """
    title = f"without the head that looks {which} back{', its mean in its place' if mean else ''}"
    runs = [run for run in records("Copying_without_a_head*") if run["model"] == title]
    return [run["values"] for run in sorted(runs, key=lambda run: run["seed"])]


def most_missed(which: str, part: str, *, mean: bool = False) -> list[int]:
    """The seeds in which a map of the second layer is the one that misses that head most."""
    rows = enumerate(missed(which, mean=mean))
    return [seed for seed, row in rows if row[part] == min(row[name] for name in ("Wq", "Wk", "Wv"))]


def always(_: Outputs) -> bool:
    """For a phrase that is made from the records: that it stands in its cell is all there is to hold."""
    return True


def copied(outputs: Outputs, name: str) -> float:
    """What share a model copied, in per cent."""
    return after(outputs["copying-score"], name)[-1]


def scores(outputs: Outputs, layer: int) -> list[list[float]]:
    """The induction scores of a layer's two heads, for each of the eight models."""
    rows = [numbers(line)[-5:] for line in outputs["score-code"].splitlines()]
    return [row[:2] if layer == 0 else row[3:] for row in rows]


def looked(outputs: Outputs) -> list[list[int]]:
    """For each of the eight: how far back the first layer's heads look, and how far behind the copy the second."""
    shape = r"look \[(\d), (\d)\] back, the sharper one of layer 1 (\d) behind"
    return [[int(place) for place in found] for found in re.findall(shape, outputs["offset-code"])]


def shifted(outputs: Outputs) -> dict[str, list[float]]:
    """Of seed 1, whole and with a head cut: how much both heads look three places behind, and what is copied."""
    return {
        line.partition(":")[0].strip(): numbers(line.partition("with ")[2])
        for line in outputs["shift-code"].splitlines()
    }


def cut_rows(outputs: Outputs) -> list[list[float]]:
    """What is copied by each of the eight without each of the four heads, then without each layer's, in per cent."""
    return [numbers(line.partition(":")[2]) for line in outputs["cuts-code"].splitlines()[1:]]


def left(outputs: Outputs) -> list[list[float]]:
    """What is copied by each of the eight without each of the four heads, in per cent."""
    return [row[:4] for row in cut_rows(outputs)]


def spared(outputs: Outputs) -> tuple[list[float], list[float]]:
    """Least and most that is left without the second layer's head of the higher score, and without the other's."""
    higher, other = [], []
    for seed, (score, share) in enumerate(zip(scores(outputs, 1), left(outputs), strict=True)):
        if seed != 1:
            best = score.index(max(score))
            higher.append(share[2 + best])
            other.append(share[3 - best])
    return [min(higher), max(higher)], [min(other), max(other)]


def validation(outputs: Outputs) -> float:
    """The perplexity of the model trained in the chapter."""
    return after(outputs["train-run"], "validation")[0]


def other_pairs_dissolve(outputs: Outputs) -> bool:
    """Whether the story with the other pairs has few of the published words in their places."""
    lines = outputs["llama-write"].splitlines()
    told = next(line for line in lines if line.startswith("Once")).split()
    other = next(line for line in lines if line.startswith("with the other pairs")).split(":", 1)[1].split()
    return sum(map(str.__eq__, told, other)) < len(told) / 4


def held(outputs: Outputs, heads: int, which: int = 1) -> float:
    """What a model with so many heads of keys and values costs: numbers a token, or parameters (-1)."""
    return numbers(next(line for line in outputs["llama-cache"].splitlines() if f"kv_heads={heads}:" in line))[which]


def apart(outputs: Outputs) -> list[list[float]]:
    """What seed 1 copies without each first head in the second layer's queries, keys and values, in per cent."""
    return [numbers(line)[1:] for line in outputs["apart-code"].splitlines()]


CLAIMS = [
    Claim("left-reading", "Nearly half goes", lambda o: 50 < numbers(o["left-code"])[-1] < 57),
    Claim(
        "fresh-reading",
        "Exactly 2,000 for the first, and near it for the second",
        lambda o: 1900 < numbers(o["fresh-code"])[0] < 2100,
    ),
    Claim(
        "train-reading",
        "stays behind the best of the tables",
        lambda o: 1 < validation(o) / after(o["ngram-perplexity"], "4-gram: perplexity")[0] < 1.3,
    ),
    Claim("units-reading", "Higher", lambda o: numbers(o["units-code"])[2] > numbers(o["units-code"])[1]),
    Claim(
        "units-reading",
        "Yours has a perplexity of 5.2 on the same pieces, and a table of counts has 4.8",
        lambda o: (validation(o), after(o["ngram-perplexity"], "4-gram: perplexity")[0]) == (5.2, 4.8),
    ),
    *(
        Claim("parts-reading", phrase.format(compared(name)), always)
        for phrase, name in (
            ("LayerNorm costs {}", "small, LayerNorm for RMSNorm"),
            ("network of the same size costs {}", "small, ReLU network for SwiGLU"),
            ("a table of positions {}", "small, table of positions for rotary ones"),
            ("no positions at all {}", "small, no positions"),
            ("All three old parts together cost {}", "small, LayerNorm, ReLU network, table of positions"),
        )
    ),
    Claim(
        "parts-reading",
        "Three of the six are clearly better than any n-gram",
        lambda o: sum(mean < 0.96 * min(counted(n) for n in (2, 3, 4, 5)) for mean in means(o)) == 3,
    ),
    Claim(
        "parts-reading",
        "With a table of positions, or with all three old parts, the model is about level with 4-grams, without\n"
        "positions with 3-grams",
        lambda o: (
            max(abs(mean / counted(4) - 1) for mean in means(o)[3:5]) < 0.02
            and abs(means(o)[5] / counted(3) - 1) < 0.02
            and [round(counted(n)) for n in (2, 3, 4, 5)] == [122, 87, 83, 84]
        ),
    ),
    Claim(
        "parts-reading",
        "it is {:.0f} % behind in the last of five passes and {:.0f} % in\nthe last of twelve".format(
            gate("passes_over_them__5-", read=True)[0], gate("_Multi30k_-", read=True)[0]
        ),
        always,
    ),
    Claim(
        "parts-reading",
        "the ReLU network costs {:.1f} %, and more than 2.2 % with each of the three seeds".format(
            gate("passes_over_all_29_000__5-")[0]
        ),
        lambda _: min(gate("passes_over_all_29_000__5-")[1:]) > 2.2,
    ),
    *(
        Claim(
            "parts-reading",
            "| {} | {} |".format(name, " | ".join(f"{passes(n)[row]:.{0 if row == 0 else 1}f}" for n in (1, 5))),
            always,
        )
        for row, name in enumerate(
            (
                "the new parts (perplexity)",
                "LayerNorm for RMSNorm",
                "ReLU network for SwiGLU",
                "table of positions for rotary ones",
                "no positions",
                "all three old parts",
            )
        )
    ),
    Claim(
        "baseline-reading",
        "a third less\nperplexity",
        lambda _: abs(1 - perplexity_of("large") / perplexity_of("5-grams, modified Kneser–Ney") - 1 / 3) < 0.02,
    ),
    Claim(
        "nucleus-reading",
        "From 1 to 67",
        lambda o: [numbers(line)[0] for line in o["nucleus-code"].splitlines()] == [67, 61, 1],
    ),
    Claim(
        "invented-reading",
        "more than twice as many new words as people do",
        lambda o: numbers(o["invented-code"].splitlines()[3])[0] > 2 * numbers(o["invented-code"].splitlines()[4])[0],
    ),
    Claim("invented-reading", "fewer than one in a thousand", lambda o: numbers(o["invented-code"])[0] < 1),
    Claim("write-reading", "some words do not exist, such as *totain*", lambda o: " totain " in o["write-code"]),
    Claim(
        "write-reading", "white, and red, and white, and red", lambda o: "white, and red, and white" in o["write-code"]
    ),
    *(
        Claim("pieces-reading", phrase.format(*in_pieces("no training"), *in_pieces("of the training")), always)
        for phrase in (
            "there are {2:,.0f} words in several pieces that no training caption has, and {6:,.0f} that one has",
            "| words that no training caption has | {0:.0f} % | {1:.0f} % |",
            "| words that one has | {4:.0f} % | {5:.0f} % |",
            "in {7:.0f} % of them it gives one piece a probability above one half. In an invented word it seldom does "
            "({3:.0f} %)",
        )
    ),
    Claim(
        "variety-reading",
        "302 instead of 734",
        lambda o: [numbers(line)[0] for line in o["variety-code"].splitlines()][::3] == [302, 734],
    ),
    Claim("slow-reading", "The first token costs the same both ways", lambda o: "same tokens: True" in o["slow-code"]),
    Claim(
        "copying-reading",
        "One layer gets about twice as far",
        lambda o: 1.5 < copied(o, "one layer") / copied(o, "a bag") < 2.5 and copied(o, "two layers") > 60,
    ),
    Claim(
        "copying-reading",
        "it copies as much: {:.0f} %\nboth ways, on average over four seeds. Not rotated, it copies {:.0f} %".format(
            one_layer("one layer, queries and keys see no tokens"), one_layer("one layer, not rotated")
        ),
        lambda _: round(one_layer("one layer")) == round(one_layer("one layer, queries and keys see no tokens")),
    ),
    Claim(
        "copying-reading",
        "the layer copies {:.1f} % on average over four seeds, and the one that sees no tokens {:.1f} %".format(
            one_layer("one layer", longer=True), one_layer("one layer, queries and keys see no tokens", longer=True)
        ),
        always,
    ),
    Claim(
        "score-predict",
        "All eight copy nearly everything",
        lambda o: min(numbers(o["copiers-code"])) > 90 and len(numbers(o["copiers-code"])) == 8,
    ),
    Claim(
        "score-reading",
        "In seven. The eighth, seed 1, copies 92 %, and no head of it gets more than 0.06",
        lambda o: (
            [max(row) >= 0.25 for row in scores(o, 1)] == [seed != 1 for seed in range(8)]
            and max(scores(o, 0)[1] + scores(o, 1)[1]) == 0.06
            and numbers(o["copiers-code"])[1] == 92
        ),
    ),
    Claim(
        "shift-why",
        "In seed 1 head 0 looks three places back, head 1 two, and the second layer three places behind the copy",
        lambda o: looked(o)[1] == [3, 2, 3],
    ),
    Claim(
        "shift-reading",
        "Without head 0 the second layer no longer finds the place. Without head 1 it looks there as before, and "
        "copies only 7 %",
        lambda o: (
            max(shifted(o)["without head 0"][:2]) < 0.1
            and all(
                abs(there - before) < before / 10
                for there, before in zip(shifted(o)["without head 1"][:2], shifted(o)["nothing cut"][:2], strict=True)
            )
            and shifted(o)["without head 1"][2] == 7
        ),
    ),
    Claim(
        "apart-reading",
        "in the other maps a cut costs some six points of the 92 at most",
        lambda o: (
            max(apart(o)[0][1], apart(o)[1][2]) < 40
            and min(*apart(o)[0][::2], *apart(o)[1][:2]) >= numbers(o["copiers-code"])[1] - 6
        ),
    ),
    Claim(
        "apart-reading",
        "In all seven the head that looks one place back is missed most in the keys, whether nothing takes its place "
        "or its own mean output does",
        lambda o: (
            most_missed("farther", "Wk") == most_missed("farther", "Wk", mean=True) == list(range(8))
            and [row["places back"] for row in missed("farther")] == [3 if seed == 1 else 1 for seed in range(8)]
        ),
    ),
    Claim(
        "apart-reading",
        "with nothing in its place most in the values, in one of the seven as much in the keys; with its mean in the "
        "values in three",
        lambda o: (
            [len(set(most_missed("less far", "Wv", mean=mean)) - {1}) for mean in (False, True)] == [6, 3]
            and [abs(row["Wv"] - row["Wk"]) < 2 for row in missed("less far")] == [seed == 4 for seed in range(8)]
            and [row["places back"] for row in missed("less far")] == [2 if seed == 1 else 0 for seed in range(8)]
        ),
    ),
    Claim(
        "cuts-reading",
        "In all eight neither layer's heads can be spared",
        lambda o: max(row[5] for row in cut_rows(o)) <= 4 and max(row[4] for row in cut_rows(o)) < 10,
    ),
    Claim(
        "further",
        "Of eight trainings seven look one place behind it, the eighth three",
        lambda o: [row[2] for row in looked(o)] == [3 if seed == 1 else 1 for seed in range(8)],
    ),
    Claim(
        "cuts-reading",
        "in seeds 0 and 2 a head of the first layer is missed far more, in 4 and 6 as much",
        lambda o: (
            all(min(left(o)[seed][:2]) < min(left(o)[seed][2:]) - 20 for seed in (0, 2))
            and all(abs(min(left(o)[seed][:2]) - min(left(o)[seed][2:])) <= 2 for seed in (4, 6))
            and all(min(left(o)[seed][2:]) < min(left(o)[seed][:2]) - 3 for seed in (3, 5, 7))
        ),
    ),
    Claim(
        "cuts-reading",
        "without the head with the higher score 42 to 77 % are left, without the other\n92 to 96 %",
        lambda o: spared(o) == ([42, 77], [92, 96]),
    ),
    Claim(
        "cache-reading",
        "at a quarter of the price for each token",
        lambda o: after(o["cache-table"], "7 B")[0] == 4 * after(o["cache-table"], "8 B")[0],
    ),
    Claim("llama-reading", "word for word", lambda o: "as published: True" in o["llama-write"]),
    Claim("llama-predict", "the story dissolves", other_pairs_dissolve),
    Claim(
        "llama-cache-reading",
        "Half as many heads, half the cache",
        lambda o: held(o, 8) == 2 * held(o, 4) == 8 * held(o, 1),
    ),
    Claim(
        "llama-cache-reading",
        "7 per cent fewer parameters",
        lambda o: 0.065 < 1 - held(o, 4, -1) / held(o, 8, -1) < 0.075,
    ),
    Claim("count-reading", "four layers", lambda o: numbers(o["count-model"])[0] == 1_560_480),
]
