"""Language models that count: n-grams with modified Kneser–Ney smoothing (Chen and Goodman, 1999).

    python data/download.py
    python results/ngrams.py

As a script it measures them on the English captions of Multi30k: what chapter 11's language models are compared with.
A run on record is not run again: delete its file in `results/runs/` for that.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence

import sentencepiece
from report import clocks, full_data, on_record, write_run
from subwords import EOS, PAD, SOS, train_subwords

from attention_course.data import caption_lines

EXPERIMENT = "A language model of English captions (Multi30k)"
METRIC = "Perplexity of the 1,014 validation captions, the end of each included: lower is better"
ORDERS = (2, 3, 4, 5)
SIZES = {"": 29_000, ", the first 12,000 captions": 12_000}  # all, and what the small models read
PIECES = 2000
Tokens = tuple[Hashable, ...]


def discounts(counts: Counter) -> tuple[float, float, float]:
    """What to take from n-grams seen once, twice and more often, from how many there are of each.

    Raises:
        ValueError: there are no n-grams seen once or twice: too little text for this order.
    """
    of = Counter(counts.values())
    if not of[1] or not of[2]:
        raise ValueError("too little text: no n-gram of this order occurs once, or none occurs twice")
    y = of[1] / (of[1] + 2 * of[2])
    d1, d2 = 1 - 2 * y * of[2] / of[1], 2 - 3 * y * of[3] / of[2]
    return d1, d2, 3 - 4 * y * of[4] / of[3] if of[3] else d2


def kneser_ney(
    sequences: Sequence[Sequence[Hashable]], order: int, vocabulary: int
) -> Callable[[Sequence[Hashable], int], float]:
    """Count n-grams up to an order, and interpolate them all.

    The longest n-grams count how often they occur; shorter ones in how many different contexts, unless they stand at
    the beginning of a sequence, where nothing precedes them. What is discounted goes to the next shorter n-gram, and
    at the end to all tokens alike.

    Args:
        sequences: the training text; each begins with a token that is never predicted.
        order: the length of the longest n-grams, at least 1.
        vocabulary: how many tokens may follow.

    Returns:
        A function of a sequence and a position in it, from 1: the probability of the token there, given those before.

    Raises:
        ValueError: there is too little text for this order.
    """
    counts: list[Counter[Tokens]] = [Counter() for _ in range(order + 1)]  # by length
    for sequence in sequences:
        tokens = tuple(sequence)
        for length in range(1, order + 1):
            for start in range(len(tokens) - length + 1):
                if (length == order or start == 0) and start + length > 1:  # the first token is not predicted
                    counts[length][tokens[start : start + length]] += 1
    for length in range(order - 1, 0, -1):
        counts[length].update(gram[1:] for gram in counts[length + 1])
    by_context: list[dict[Tokens, list[float]]] = [{}]
    taken: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)]
    for length in range(1, order + 1):
        taken.append(discounts(counts[length]))
        contexts: dict[Tokens, list[float]] = defaultdict(lambda: [0.0, 0.0])  # the sum, and what is taken from it
        for gram, count in counts[length].items():
            entry = contexts[gram[:-1]]
            entry[0] += count
            entry[1] += taken[length][min(count, 3) - 1]
        by_context.append(dict(contexts))

    def probability(sequence: Sequence[Hashable], position: int) -> float:
        tokens = tuple(sequence[max(0, position - order + 1) : position + 1])
        result = 1 / vocabulary
        for length in range(1, len(tokens) + 1):
            gram = tokens[len(tokens) - length :]
            total = by_context[length].get(gram[:-1])
            if total is None:
                break  # this context was never seen: nor were longer ones
            count = counts[length].get(gram, 0)
            kept = count - taken[length][min(count, 3) - 1] if count else 0.0
            result = (kept + total[1] * result) / total[0]
        return result

    return probability


def negative_log_likelihood(
    probability: Callable[[Sequence[Hashable], int], float], sequences: Sequence[Sequence[Hashable]]
) -> tuple[list[float], int]:
    """The surprise at each sequence, in nats, and the number of tokens predicted: all but the first of each."""
    sums = [-sum(math.log(probability(s, i)) for i in range(1, len(s))) for s in sequences]
    return sums, sum(len(s) - 1 for s in sequences)


def main() -> None:
    """Measure n-grams of each order."""
    root = full_data("multi30k")
    lines = {name: caption_lines(root, f"{name}.en") for name in ("train", "val")}
    subwords = sentencepiece.SentencePieceProcessor(model_proto=train_subwords(lines["train"], PIECES))
    train, valid = ([[SOS, *row, EOS] for row in subwords.encode(lines[name])] for name in ("train", "val"))
    words = sum(len(line.split()) + 1 for line in lines["val"])
    for order, (which, count) in itertools.product(ORDERS, SIZES.items()):
        title = f"{order}-grams, modified Kneser–Ney{which}"
        if on_record(EXPERIMENT, title, 0):
            continue
        read = clocks()
        read_by_it = train[:count]
        probability = kneser_ney(read_by_it, order, PIECES - len((PAD, SOS)))
        cost = read()
        grams = {
            tuple(row[i : i + n]) for row in read_by_it for n in range(1, order + 1) for i in range(len(row) - n + 1)
        }
        surprises, predicted = negative_log_likelihood(probability, valid)
        values = {
            "perplexity of a piece": round(math.exp(sum(surprises) / predicted), 2),
            "perplexity of a word": round(math.exp(sum(surprises) / words), 2),
        }
        print(f"{title}: {values} in {cost['processor_seconds']} s", flush=True)
        write_run(
            {
                "experiment": EXPERIMENT,
                "data": "29,000 captions to train on, 1,014 to measure with",
                "metric": METRIC,
                "model": title,
                "parameters": len(grams),
                "epochs": "–",
                "seed": 0,
                "precision": "float64",
                "values": values,
                "notes": [
                    "n-grams: all orders up to the longest are interpolated; parameters: the different n-grams seen."
                ],
            }
            | cost
        )


if __name__ == "__main__":
    main()
