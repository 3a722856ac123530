"""What chapter 07 says of its own runs, and of the records."""

import re
from math import log
from statistics import mean, stdev

import torch
from torch import nn

from claims import Claim, records, reversal

ALL = "Film reviews (IMDB), the last 512 tokens of each"
PROMISED = "Film reviews (IMDB): what a held-out tenth promises"
PROMISED_BY_RARE = f"{PROMISED}, by rare words alone"
OF_NEW_FILMS = "Film reviews (IMDB), test reviews: the transformer's recipe taken apart"
TAKEN_APART = "Film reviews (IMDB), held out by number: the transformer's recipe taken apart"
WHOLE = "the whole recipe"
TRANSFORMER = "transformer, one block"
GRAMS = "transformer, one block, words, pairs and triples"
PLAIN_BAG = "bag of embeddings, no norm, random first vectors, Adam's usual settings"
OWN_RATE = "bag of embeddings, a rate of its own"


READ_FIRST = "Film reviews (IMDB), judged after reading"


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"[+−-]?\d+\.\d+", text.replace("−", "-"))]


def runs_of(experiment: str) -> list[dict]:
    runs = records("Film_reviews*")
    return [run for run in runs if run["experiment"] == experiment]


def by_seed(model: str, experiment: str = ALL) -> dict[int | str, float]:
    """The accuracies of a model's runs, in percent, by seed."""
    runs = [run for run in runs_of(experiment) if run["model"] == model and "kind" not in run]
    return {run["seed"]: run["values"]["accuracy"] for run in runs}


def recorded(model: str, experiment: str = ALL) -> list[float]:
    """The accuracies of a model's runs, in percent."""
    return [*by_seed(model, experiment).values()]


def difference(one: str, other: str, experiment: str = ALL) -> list[float]:
    """How far one model is ahead of another, and the interval; of several seeds the first. It is kept one way round."""
    found = {run["model"]: run["difference"] for run in reversed(runs_of(experiment)) if "kind" in run}
    if f"{one} − {other}" in found:
        return found[f"{one} − {other}"]
    value, low, high = found[f"{other} − {one}"]
    return [-value, -high, -low]


def near(said: list[float], wanted: list[float]) -> bool:
    return len(said) == len(wanted) and all(abs(a - b) <= 0.0501 for a, b in zip(said, wanted, strict=True))


def measured(cell: str, phrase: str, model: str, *ahead: str) -> Claim:
    """A row of a table: the mean of the recorded runs, and how far the first of two models is ahead of the second."""

    def holds(_: dict[str, str]) -> bool:
        found = difference(*ahead) if ahead else []
        return near(numbers(phrase), [mean(recorded(model)), *found])

    return Claim(cell, phrase, holds)


def row(phrase: str, model: str, against: bool = True) -> Claim:
    """A row of the table of all models: how far the transformer is ahead of this one."""
    return measured("records", phrase, model, *((TRANSFORMER, model) if against else ()))


def cost_of(model: str) -> tuple[int, float]:
    """The parameters of a model, and the mean of its runs' processor seconds."""
    runs = [run for run in runs_of(ALL) if run["model"] == model and "kind" not in run]
    return runs[0]["parameters"], mean(run["processor_seconds"] for run in runs)


def ablated(phrase: str, model: str, experiment: str = TAKEN_APART, cell: str = "ablation") -> Claim:
    """A row of an ablation: mean accuracy, paired difference from the whole recipe, and that of each seed."""

    def holds(_: dict[str, str]) -> bool:
        each, whole = by_seed(model, experiment), by_seed(WHOLE, experiment)
        apart = [] if model == NB_WORDS else [each[seed] - whole[seed] for seed in sorted(each)]
        return near(numbers(phrase), [mean(each.values()), *difference(model, WHOLE, experiment), *apart])

    return Claim(cell, phrase, holds)


def of_new_films(phrase: str, model: str) -> Claim:
    """A row of the ablation on test reviews."""
    return ablated(phrase, model, OF_NEW_FILMS, "ablation-reading")


def tenth(phrase: str, model: str) -> Claim:
    """A row of the table of splits: mean, lowest and highest, of all words and of rare ones."""

    def holds(_: dict[str, str]) -> bool:
        found = [recorded(model, experiment) for experiment in (PROMISED, PROMISED_BY_RARE)]
        return near(numbers(phrase), [number for runs in found for number in (mean(runs), min(runs), max(runs))])

    return Claim("split-reading", phrase, holds)


def intervals(outputs: dict[str, str]) -> list[tuple[float, float, float]]:
    found = re.findall(
        r"([+-]\d\.\d+), 95 % of the draws from ([+-]\d\.\d+) to ([+-]\d\.\d+)", outputs["bootstrap-pairing"]
    )
    return [tuple(map(float, numbers)) for numbers in found]


def epochs(text: str) -> list[tuple[float, float]]:
    """Loss in training and in validation, epoch by epoch."""
    return [tuple(numbers(line)[:2]) for line in text.splitlines() if line.startswith("epoch")]


def ahead(text: str) -> dict[str, list[float]]:
    """How far the transformer is ahead of each other model, in points, with the interval."""
    lines = [line.partition(":") for line in text.splitlines() if "ahead" in line]
    return {name.strip(): numbers(rest)[1:] for name, _, rest in lines}


def agreements(outputs: dict[str, str]) -> dict[str, list[float]]:
    lines = [line.partition(":") for line in outputs["both-code"].splitlines() if "median" in line]
    return {name: numbers(rest) for name, _, rest in lines}


def columns(outputs: dict[str, str]) -> list[float]:
    """The share of the variance between columns: of one review, then lowest, highest and median of all."""
    return [int(share) / 100 for share in re.findall(r"(\d+)%", outputs["heads-columns"])]


def changed(outputs: dict[str, str]) -> list[int]:
    """How many reviews change sides, by what is done to the weights."""
    return [int(count) for count in re.findall(r": (\d+) of", outputs["heads-averaged"])]


def order_worth(outputs: dict[str, str]) -> list[tuple[float, float]]:
    """The intervals of what the order of the words is worth: on the sample, and on the real test reviews."""
    found = re.findall(r"\[([+-][\d.]+), ([+-][\d.]+)\]", outputs["order-code"])
    return [(float(low), float(high)) for low, high in found]


def wrongly_judged(outputs: dict[str, str]) -> int:
    """How many of the eight sentences are judged wrongly."""
    said = [int(share) > 50 for share in re.findall(r"(\d+)% positive", outputs["judge"])]
    return sum(map(bool.__ne__, said, [True, False, True, False, False, True, True, True]))


def starts(outputs: dict[str, str]) -> list[tuple[float, float]]:
    """Training loss and right answers in percent: the chapter's start, the large table, all large, small words."""
    return [
        tuple(map(float, re.search(r"loss ([\d.]+) in training; ([\d.]+)%", line).groups()))
        for line in outputs["table-start-run"].splitlines()
        if "loss" in line
    ]


def readings(beta: float, eps: float) -> list[tuple[float, float]]:
    """How far one gradient after 2,000 of 0 moves a weight, at once and in all, in rates: a large one, a small one."""
    found = []
    for gradient in (1e-2, 1e-5):
        number, moved = nn.Parameter(torch.zeros(1)), []
        adam = torch.optim.Adam([number], lr=1.0, betas=(0.9, beta), eps=eps)
        for value in [0.0] * 2000 + [gradient] + [0.0] * 200:
            number.grad = torch.tensor([value])
            adam.step()
            moved.append(-number.item())
        found.append((moved[2000], moved[-1]))
    return found


def rows_read(outputs: dict[str, str]) -> list[tuple[float, int]]:
    """The root of v, and the share of a step that ε takes in percent, from rare words to common ones."""
    found = re.findall(r"√v ([\d.]+), ε takes (\d+)%", outputs["rows-run"])
    return [(float(root), int(share)) for root, share in found]


def falls(losses: list[float]) -> bool:
    return losses[-1] == min(losses)


TF_IDF, NB_WORDS, NGRAMS, BAG = (
    "logistic regression, tf–idf of words",
    "logistic regression, NB-weighted words",
    "logistic regression, NB-weighted words, pairs and triples",
    "bag of embeddings",
)

CLAIMS = [
    tenth("| a random tenth | 89.5 % (88.7 to 90.6) | 71.3 % (70.7 to 71.7) |", "held out at random"),
    tenth("| a tenth by number | 85.8 % (85.2 to 87.0) | 49.8 % (45.4 to 53.2) |", "held out by number"),
    Claim(
        "split-reading",
        "| the test set | 88.7 % | 60.5 % |",
        lambda _: near([88.7, 60.5], [*recorded(TF_IDF), *recorded("the test set", PROMISED_BY_RARE)]),
    ),
    Claim(
        "split-reading",
        "almost a point too much on average, though the lowest of the three is level with the test set",
        lambda _: (
            0.8 < mean(found := recorded("held out at random", PROMISED)) - recorded(TF_IDF)[0] < 1
            and near([min(found)], recorded(TF_IDF))
        ),
    ),
    Claim(
        "split-reading",
        "From rare words alone they promise more than ten points too much",
        lambda _: (
            10
            < mean(recorded("held out at random", PROMISED_BY_RARE)) - recorded("the test set", PROMISED_BY_RARE)[0]
            < 11
        ),
    ),
    Claim(
        "title",
        "counting words,\nwhich takes a few seconds",
        lambda _: all(cost_of(model)[1] < 10 for model in (TF_IDF, NB_WORDS)),
    ),
    Claim(
        "tokenize-reading",
        'Six: "didn\'t" became two tokens',
        lambda o: o["tokenize-run"].split("'.'")[0].count(",") == 5,
    ),
    Claim("warm-answer", "scaled so that the highest factor is 1", lambda o: "highest factor: 1.0" in o["warm-plot"]),
    Claim(
        "bootstrap-reading",
        "The same two shares, the same five points between them",
        lambda o: [gap for gap, _, _ in intervals(o)] == [0.05, 0.05],
    ),
    Claim("bootstrap-reading", "no draw can favour b", lambda o: intervals(o)[0][1] >= 0),
    Claim(
        "bootstrap-reading",
        "disagree on five, one of them gets all five in one case of 16",
        lambda o: intervals(o)[0][0] == 0.05 and 2 * 0.5**5 == 1 / 16,
    ),
    Claim(
        "bootstrap-reading",
        "the interval reaches from a clear win to a loss",
        lambda o: intervals(o)[1][1] < 0 < intervals(o)[1][2],
    ),
    Claim(
        "first-vectors-reading",
        "*dull* finds *pointless* and *irritating*",
        lambda o: all(word in o["first-vectors-run"].splitlines()[0] for word in ("pointless", "irritating")),
    ),
    Claim(
        "table-start-reading",
        "its training loss is still 0.69, that of guessing between two classes, where the training above ended at 0.34",
        lambda o: [loss for loss, _ in starts(o)[:2]] == [0.34, round(log(2), 2)],
    ),
    Claim("table-start-reading", "the loss falls again, to 0.53", lambda o: starts(o)[2][0] == 0.53),
    Claim(
        "table-start-reading",
        "one to ten as well, the loss falls to 0.36",
        lambda o: "words 0.01, table 0.1: loss 0.36" in o["table-start-run"],
    ),
    Claim(
        "table-start-reading",
        "judged about as well as above",
        lambda o: abs(starts(o)[2][1] - starts(o)[0][1]) < 3 < 10 < starts(o)[0][1] - starts(o)[1][1],
    ),
    Claim(
        "epsilon-idea",
        "almost three learning rates at once and some 29 in all, whether $g$ is 0.01 or a thousand times smaller",
        lambda _: all(round(once, 1) == 2.9 and 28 < in_all < 30 for once, in_all in readings(0.999, 1e-8)),
    ),
    Claim(
        "epsilon-idea",
        "With β₂ = 0.98 it goes 0.7 at once and 8 in all",
        lambda _: all(round(once, 1) == 0.7 and round(in_all) == 8 for once, in_all in readings(0.98, 1e-8)),
    ),
    Claim(
        "epsilon-idea",
        "the smaller gradient carries it 0.1 in all, the larger one still 23",
        lambda _: [round(in_all, 1) for _, in_all in readings(0.999, 1e-4)] == [22.8, 0.1],
    ),
    Claim(
        "precision-idea",
        "$\\sqrt{v}$ is about 0.0002, twice this ε, which takes a third of their steps",
        lambda o: rows_read(o)[0] == (0.00022, 32),
    ),
    Claim(
        "precision-idea",
        "that sixty reviews or more hold it takes 2 %",
        lambda o: rows_read(o)[-1][1] == 2,
    ),
    Claim(
        "precision-idea",
        "Smaller in the rows of rare words",
        lambda o: rows_read(o) == sorted(rows_read(o), key=lambda row: row[0]),
    ),
    Claim(
        "curves-reading",
        "Both training losses end at their lowest",
        lambda o: all(falls([loss for loss, _ in epochs(o[cell])]) for cell in ("train", "train-bag")),
    ),
    Claim(
        "curves-reading",
        "The transformer's validation loss turns round halfway",
        lambda o: (
            falls([-loss for _, loss in epochs(o["train"])[4:]]) and not falls([v for _, v in epochs(o["train"])])
        ),
    ),
    Claim(
        "curves-reading",
        "the bag's goes on falling, slowly",
        lambda o: falls([loss for _, loss in epochs(o["train-bag"])]),
    ),
    Claim(
        "compare-reading",
        "All three intervals contain 0",
        lambda o: (
            len(ahead(o["compare"])) == 3 and all(low < 0 < high for _, low, high in ahead(o["compare"]).values())
        ),
    ),
    Claim(
        "compare-reading",
        "some twenty points wide, and a difference\nhas to be about half of that, ten points, to show",
        lambda o: all(14 < high - low < 26 for _, low, high in ahead(o["compare"]).values()),
    ),
    row("| regression, NB-weighted words, pairs and triples | 91.7 % | −2.61 [−2.92, −2.28] |", NGRAMS),
    row("| transformer | 89.1 % | |", TRANSFORMER, against=False),
    row("| regression, NB-weighted words | 89.0 % | +0.14 [−0.18, +0.44] |", NB_WORDS),
    row("| regression, tf–idf of words | 88.7 % | +0.44 [+0.15, +0.72] |", TF_IDF),
    row("| bag of embeddings, a rate of its own | 88.0 % | +1.15 [+0.93, +1.38] |", OWN_RATE),
    row("| bag of embeddings, the same recipe | 87.5 % | +1.65 [+1.39, +1.94] |", BAG),
    Claim("records", "means of three trainings", lambda _: len(recorded(TRANSFORMER)) == 3 == len(recorded(BAG))),
    measured("control", "| transformer on words | 89.1 % | |", TRANSFORMER),
    measured(
        "control",
        "| transformer on words, pairs and triples | 90.6 % | +1.52 [+1.30, +1.73],",
        GRAMS,
        GRAMS,
        TRANSFORMER,
    ),
    measured("control", "| 91.7 % | +1.10 [+0.80, +1.41], against that transformer |", NGRAMS, NGRAMS, GRAMS),
    Claim(
        "control",
        "each of the 0.9 million pairs and triples",
        lambda _: near([0.9], [(cost_of(GRAMS)[0] - cost_of(TRANSFORMER)[0]) / 64e6]),
    ),
    Claim(
        "control",
        "Of the 2.6 points between the two 1.5 are gone",
        lambda _: near(
            [-2.6, 1.5, -1.1],
            [difference(*p)[0] for p in ((TRANSFORMER, NGRAMS), (GRAMS, TRANSFORMER), (GRAMS, NGRAMS))],
        ),
    ),
    Claim("ablation", "| the whole recipe | 84.8 % | |", lambda _: near([84.8], [mean(recorded(WHOLE, TAKEN_APART))])),
    ablated("| random first vectors | 83.3 % | −1.52 [−2.04, −1.01] | −1.76, −1.41, −1.40 |", "without first vectors"),
    ablated(
        "| Adam's usual ε for the embeddings | 84.3 % | −0.55 [−0.83, −0.30] | −0.64, −0.05, −0.96 |",
        "with Adam's usual ε for embeddings",
    ),
    ablated("| Adam's usual β₂ | 84.7 % | −0.19 [−0.40, +0.04] | −0.20, −0.16, −0.20 |", "with Adam's usual β₂"),
    ablated("| no word dropout | 84.9 % | +0.02 [−0.35, +0.44] | +0.33, +0.11, −0.38 |", "without word dropout"),
    ablated(
        "| bag of embeddings, the same but at five times the rate "
        "| 83.8 % | −1.03 [−1.52, −0.58] | −0.67, −1.61, −0.82 |",
        OWN_RATE,
    ),
    ablated("| regression, NB-weighted words | 84.5 % | −0.37 [−1.05, +0.24] |", NB_WORDS),
    Claim(
        "ablation",
        "without them the transformer is the last of the table",
        lambda _: (
            mean(recorded("without first vectors", TAKEN_APART))
            == min(mean(recorded(run["model"], TAKEN_APART)) for run in runs_of(TAKEN_APART) if "kind" not in run)
        ),
    ),
    Claim(
        "ablation-reading",
        "Two of four reasons survived the first table, and one the second",
        lambda _: (
            [
                difference(without, WHOLE, TAKEN_APART)[2] < 0
                for without in (
                    "without first vectors",
                    "with Adam's usual ε for embeddings",
                    "with Adam's usual β₂",
                    "without word dropout",
                )
            ]
            == [True, True, False, False]
            and [
                difference(without, WHOLE, OF_NEW_FILMS)[2] < 0
                for without in ("without first vectors", "with Adam's usual ε for embeddings")
            ]
            == [True, False]
        ),
    ),
    Claim(
        "ablation-reading",
        "| the whole recipe | 85.7 % | |",
        lambda _: near([85.7], [mean(recorded(WHOLE, OF_NEW_FILMS))]) and len(recorded(WHOLE, OF_NEW_FILMS)) == 3,
    ),
    of_new_films(
        "| random first vectors | 84.6 % | −1.22 [−1.72, −0.77] | −1.15, −1.12, −1.14 |", "without first vectors"
    ),
    Claim(
        "ablation",
        "Adam's usual settings, is behind by 0.7",
        lambda _: near([-0.7], [difference(PLAIN_BAG, WHOLE, TAKEN_APART)[0]]),
    ),
    Claim(
        "ablation-reading",
        "nothing that can be shown against the plain one, −0.12 [−0.52, +0.30]",
        lambda _: (
            near([-0.12, -0.52, 0.3], difference(PLAIN_BAG, WHOLE, OF_NEW_FILMS))
            and mean(recorded(PLAIN_BAG, TAKEN_APART)) > mean(recorded(OWN_RATE, TAKEN_APART))
        ),
    ),
    of_new_films(
        "| Adam's usual ε for the embeddings | 85.7 % | +0.01 [−0.23, +0.26] | +0.11, −0.05, −0.02 |",
        "with Adam's usual ε for embeddings",
    ),
    of_new_films(
        "| bag of embeddings, the same but at five times the rate "
        "| 85.2 % | −0.54 [−1.00, −0.11] | −0.28, −0.74, −0.59 |",
        OWN_RATE,
    ),
    of_new_films("| regression, NB-weighted words | 85.6 % | −0.07 [−0.64, +0.61] | |", NB_WORDS),
    Claim(
        "ablation-reading",
        "Nothing of the ε; of the block half a point against the bag with a norm",
        lambda _: near(
            [0.0, 0.5],
            [
                difference("with Adam's usual ε for embeddings", WHOLE, OF_NEW_FILMS)[0],
                -difference(OWN_RATE, WHOLE, OF_NEW_FILMS)[0],
            ],
        ),
    ),
    Claim(
        "ablation",
        "The bag, with a rate of its own, is behind by a point",
        lambda _: near([-1.0], [difference(OWN_RATE, WHOLE, TAKEN_APART)[0]]),
    ),
    Claim(
        "records",
        "Learning five times as fast the bag gains half a point; the rest of the lead over this bag stays",
        lambda _: near([0.5], [difference(OWN_RATE, BAG)[0]]) and difference(TRANSFORMER, OWN_RATE)[1] > 0,
    ),
    Claim(
        "records",
        "A single transformer reaches 89.12 %, ± 0.11 over three seeds",
        lambda _: round(mean(recorded(TRANSFORMER)), 2) == 89.12 and round(stdev(recorded(TRANSFORMER)), 2) == 0.11,
    ),
    Claim(
        "records",
        "after eight and a half minutes of training",
        lambda _: 490 < mean(run["processor_seconds"] for run in runs_of(ALL) if run["model"] == TRANSFORMER) < 530,
    ),
    Claim(
        "records",
        "91.73 % in a minute and a half",
        lambda _: (
            [round(accuracy, 2) for accuracy in recorded(NGRAMS)] == [91.73]
            and all(75 < run["processor_seconds"] < 105 for run in runs_of(ALL) if run["model"] == NGRAMS)
        ),
    ),
    Claim(
        "test-reading",
        "the interval of tf–idf excludes 0",
        lambda o: ahead(o["test-code"])["regression, tf–idf"][2] < 0,
    ),
    Claim(
        "order-reading",
        "both intervals contain 0, also the one of 25,000 reviews, where a third of a point is the most",
        lambda o: all(low < 0 < high for low, high in order_worth(o)) and 0.3 < order_worth(o)[1][1] < 0.36,
    ),
    Claim("judge-reading", "Three of the eight are wrong", lambda o: wrongly_judged(o) == 3),
    Claim(
        "heads-reading",
        "three fifths of the variance",
        lambda o: 0.55 < columns(o)[0] < 0.65,
    ),
    Claim("heads-reading", "over all reviews it is about half", lambda o: 0.44 < columns(o)[3] < 0.56),
    Claim(
        "heads-reading",
        "About half of the variance would be gone with the readers alone",
        lambda o: 0.44 < 1 - columns(o)[3] < 0.56,
    ),
    Claim(
        "heads-averaged-reading",
        "None at all when each head's readers share one row of weights, and four when the heads share it, too",
        lambda o: changed(o)[:3] == [0, 0, 4],
    ),
    Claim(
        "heads-averaged-reading",
        "With all weights alike twenty-one reviews change sides, though hardly fewer are right",
        lambda o: changed(o)[3] == 21 and numbers(o["heads-averaged"])[0] - numbers(o["heads-averaged"])[-1] < 1,
    ),
    Claim("judge-not-reading", "An even chance", lambda o: "50% positive: I did like it." in o["judge-not"]),
    Claim(
        "judge-not-reading",
        "*I like it* is at 73 %. Three changes brought 99 % down to 28 %",
        lambda o: (
            re.findall(r"(\d+)% positive: I", o["judge"])[:2] == ["99", "28"]
            and "73% positive: I like it." in o["judge-not"]
        ),
    ),
    Claim(
        "judge-not-reading",
        "of the 22 words of praise that sound positive by themselves *not* turns one and *never* none;\n"
        "of the words of blame they turn none",
        lambda o: [int(n) for n in re.findall(r"(\d+) positive", o["judge-not"])] == [22, 21, 22, 0, 0, 0],
    ),
    Claim(
        "both-reading",
        "Before training the two have little to do",
        lambda o: abs(agreements(o)["before training"][0]) < 0.2,
    ),
    Claim("both-reading", "above 0 in every one of these reviews", lambda o: agreements(o)["trained"][1] > 0),
    Claim("both-reading", "0.7, the median", lambda o: abs(agreements(o)["trained"][0] - 0.7) < 0.05),
    Claim(
        "records",
        "With the same 25,000 labels it then reaches 91.1 ± 0.1 % (three trainings)",
        lambda _: (
            len(found := recorded("a body that has read, all of it fine-tuned, 25,000 labels", READ_FIRST)) == 3
            and near([91.1, 0.1], [mean(found), stdev(found)])
        ),
    ),
    Claim(
        "warm",
        "still guessing after 500 steps at the full rate, with all three seeds. With a warm-up of 60 steps all three "
        "learned.\nBut so they did at a third of the rate",
        lambda _: (
            [
                [round(loss, 2) for loss in sorted(reversal(f"24 blocks, post-norm, {how}"))]
                for how in ("no warm-up", "warm-up of 60 steps", "a third of the rate")
            ]
            == [[2.3, 2.31, 2.31], [0.0, 0.0, 0.47], [0.01, 0.01, 0.01]]
        ),
    ),
]
