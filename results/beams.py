"""Chapter 10: what the shipped translator makes of real captions with wider beams, other conventions and rewards.

    python data/download.py
    python results/beams.py
    python results/beams.py --shown
    python results/beams.py --told
    python results/beams.py --drawn

One run for each way of decoding, and its difference to a beam of 5 with chapter 10's convention. Ways are compared on
the validation captions; the test captions are read greedily, with chapter 10's beam, and with the reward chosen here.
`--shown` writes what chapter 10 reads errors in. `--told` scores what the model guesses where it is told how the
reference begins, and translations by length and by how rare their German words are. `--drawn` draws each piece
at random in place of a search, and decodes the sample's training captions, which the shipped translator never saw.
"""

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from report import clocks, full_data, write_comparison, write_rows, write_run
from sacrebleu.metrics import BLEU, CHRF, TER
from torch import Tensor

from attention_course.bleu import TOKENS, bleu_counts, bleu_difference, bleu_interval, bleu_of
from attention_course.data import EOS, PAD, SOS, caption_lines, cut_english, cut_german

os.chdir(
    Path(__file__).resolve().parent.parent / "solutions" / "10_multi30k_translator"
)  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import multi30k_translator as chapter_10  # noqa: E402
import sentencepiece  # noqa: E402
from encoder_decoder import Translator, source_mask  # noqa: E402

METRIC = (
    "BLEU in lower-cased tokens; how many of these a translation has, and what part of them its reference has, too; "
    "chrF of lower-cased text; TER, the edits for each 100 words of the reference: of all figures the only one that is "
    "better when it is smaller"
)
AT_ONCE, MOST = 20, 60
BASE: dict[str, Any] = {"beam": 5}
GREEDY: dict[str, Any] = {"beam": 1}
REWARDED = BASE | {"length_penalty": 0.0, "reward": 0.8}  # the best reward on the validation captions
DRAWN: dict[str, Any] = {"drawn": True}  # nothing is searched for
WIDE_REWARDED = REWARDED | {"beam": 50}
WAYS = [
    BASE,
    GREEDY,
    *(BASE | {"ended": ended} for ended in ("keep their places", "are set aside", "end the search")),
    *({"beam": beam} for beam in (20, 50)),
    *({"beam": beam, "length_penalty": 0.0} for beam in (5, 50)),
    *(REWARDED | {"reward": reward} for reward in (0.4, 0.6, 0.8, 1.0, 1.2)),
    WIDE_REWARDED,
    *(BASE | {"length_penalty": penalty} for penalty in (2.0, 3.0, 4.0)),
    BASE | {"filler": "on the street"},
]
COMPARED = [(WIDE_REWARDED, REWARDED), (REWARDED, BASE | {"length_penalty": 3.0})]  # beside all with BASE
SHOWN = 40
EXPERIMENTS: list[tuple[str, str, str, list[dict]]] = [
    ("Decoding with the shipped translator (chapter 10)", "val", "All 1,014 validation captions", WAYS),
    (
        "The shipped translator as it ships (chapter 10)",
        "test2016",
        "1,000 captions, test_2016_flickr",
        [BASE, GREEDY, REWARDED],
    ),
]


def title_of(way: dict) -> str:
    """What a way of decoding is called."""
    name = f"beam of {way['beam']}"
    if "reward" in way:
        name += f", a reward of {way['reward']}"
    elif "length_penalty" in way:
        name += f", a length penalty of {way['length_penalty']}" if way["length_penalty"] else ", no length penalty"
    if "filler" in way:
        name += f", “{way['filler']}” added to every fourth caption"
    return name + (f", ended hypotheses {way['ended']}" if "ended" in way else "")


def load_shipped() -> tuple[Translator, sentencepiece.SentencePieceProcessor]:
    """The translator that lies beside chapter 10, and its subwords."""
    shipped = torch.load("translator.pt", weights_only=True)
    model = Translator(**shipped["settings"])
    model.encoder.embedder = model.decoder.embedder  # one vocabulary, one table
    model.load_state_dict(shipped["state"], strict=False)
    return model.eval(), sentencepiece.SentencePieceProcessor(model_file="translator.model")


@torch.no_grad()
def search(model: Translator, source: Tensor, beam: int, ended: str, length_penalty: float = 0.6) -> list[list[int]]:
    """Beam search by another convention for hypotheses that have ended than chapter 10's.

    Args:
        model: in evaluation mode.
        source: the sentences, `(B, m)`.
        beam: how many places there are.
        ended: "keep their places": nothing takes the place of one that has ended, and the search is over when all are
            taken by such; "are set aside": others take their places, until `beam` have ended; "end the search": the
            first step at which one of the best `beam` continuations has ended is the last.
        length_penalty: the sum is divided by `((5 + length) / 6) ** length_penalty`.

    Returns:
        Token numbers of each translation, without its ends.
    """
    batch, layers = len(source), model.decoder.layers
    memory = model.encode(source).repeat_interleave(beam, dim=0)
    mask = source_mask(source, PAD).repeat_interleave(beam, dim=0)
    kept = [chapter_10.source_keys_values(layer.source_attention, memory) for layer in layers]
    caches: list[Any] = [None] * len(layers)
    tokens = torch.full((len(memory), 1), SOS)
    sums = torch.full((batch, beam), -torch.inf)
    sums[:, 0] = 0.0
    done: list[list[tuple[float, list[int]]]] = [[] for _ in range(batch)]
    going = set(range(batch))
    for length in range(1, MOST + 1):
        logits, caches = chapter_10.cached_logits(model, tokens[:, -1:], caches, kept, mask)
        totals = sums.unsqueeze(-1) + logits.log_softmax(dim=-1).unflatten(0, (batch, beam))
        best, places = totals.flatten(1).topk(2 * beam)
        sums, following = torch.full((batch, beam), -torch.inf), torch.full((batch, beam), EOS)
        rows = torch.arange(batch * beam).view(batch, beam).clone()
        for b in sorted(going):
            room, live = beam - (len(done[b]) if ended == "keep their places" else 0), 0
            for rank, (total, place) in enumerate(zip(best[b].tolist(), places[b].tolist(), strict=True)):
                parent, token = divmod(place, logits.shape[-1])
                if live == room or total == -torch.inf:
                    break
                if token != EOS:
                    sums[b, live], following[b, live], rows[b, live] = total, token, b * beam + parent
                    live += 1
                elif rank < beam:
                    done[b].append(
                        (total / ((5 + length) / 6) ** length_penalty, tokens[b * beam + parent, 1:].tolist())
                    )
                    room -= ended == "keep their places"
            if len(done[b]) >= (1 if ended == "end the search" else beam):
                going.remove(b)
                sums[b] = -torch.inf
        rows = rows.flatten()
        tokens = torch.cat([tokens[rows], following.flatten().unsqueeze(1)], dim=1)
        caches = [(keys[rows], values[rows]) for keys, values in caches]
        if not going:
            break
    for b in going:  # what has not ended by now counts as it is
        score = sums[b] / ((5 + MOST) / 6) ** length_penalty
        done[b] += zip(score.tolist(), tokens.unflatten(0, (batch, beam))[b, :, 1:].tolist(), strict=True)
    return [max(found)[1] for found in done]


@torch.no_grad()
def draw(model: Translator, source: Tensor) -> list[list[int]]:
    """Translations whose pieces are drawn at random, each as likely as the model thinks it."""
    mask, memory = source_mask(source, PAD), model.encode(source)
    layers = model.decoder.layers
    kept = [chapter_10.source_keys_values(layer.source_attention, memory) for layer in layers]
    caches: list[Any] = [None] * len(layers)
    tokens = torch.full((len(source), 1), SOS)
    while tokens.shape[1] <= MOST and not (tokens == EOS).any(dim=1).all():
        logits, caches = chapter_10.cached_logits(model, tokens[:, -1:], caches, kept, mask)
        tokens = torch.cat([tokens, logits.softmax(dim=-1).multinomial(1)], dim=1)
    return [chapter_10.cut(row, EOS) for row in tokens[:, 1:].tolist()]


def decode(model: Translator, pieces: sentencepiece.SentencePieceProcessor, texts: list[str], way: dict) -> list[str]:
    """The translations of German texts, in the same order.

    With `filler` in the way, every fourth ends in these words, whatever it says: about as many as a reward adds.
    """
    options = {key: value for key, value in way.items() if key != "filler"}
    said: list[list[int]] = []
    numbers = [torch.tensor([SOS, *pieces.encode(text), EOS]) for text in texts]
    for start in range(0, len(numbers), AT_ONCE):
        source = torch.nn.utils.rnn.pad_sequence(numbers[start : start + AT_ONCE], True, PAD)
        if way == DRAWN:
            said += draw(model, source)
        elif "ended" in way:
            said += search(model, source, **options)
        else:
            said += chapter_10.cached_beam(model, source, max_len=MOST, bos_id=SOS, eos_id=EOS, **options)
    written = [pieces.decode(row) for row in said]
    if "filler" in way:
        written[::4] = [f"{text.removesuffix('.').rstrip()} {way['filler']}." for text in written[::4]]
    return written


@torch.no_grad()
def guess(
    model: Translator, pieces: sentencepiece.SentencePieceProcessor, texts: list[str], wanted: list[str]
) -> list[str]:
    """The likeliest piece at each place, given the reference's beginning: what a training loop has at hand."""
    said = []
    for text, reference in zip(texts, wanted, strict=True):
        source, target = (torch.tensor([[SOS, *pieces.encode(side), EOS]]) for side in (text, reference))
        said.append(pieces.decode(model(source, target[:, :-1])[0, :-1].argmax(dim=-1).tolist()))
    return said


def rarest_words(root: Path, texts: list[str]) -> list[int]:
    """How often the rarest German word of each text stands in the training captions."""
    counts = Counter(word for text in caption_lines(root, "train.de") for word in cut_german(text))
    return [min(counts[word] for word in cut_german(text)) for text in texts]


def thirds(lengths: list[int], of: str = "") -> dict[str, np.ndarray]:
    """The rows of the shortest third, of the middle one and of the longest."""
    rows = np.array_split(np.argsort(lengths, kind="stable"), 3)
    return {
        f", the {name} third{of}": third for name, third in zip(("shortest", "middle", "longest"), rows, strict=True)
    }


def keep(model: Translator, about: dict, table: np.ndarray, cost: dict) -> None:
    """Keep the record of a way of decoding, with what all of them say alike."""
    alike = {
        "metric": METRIC,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "epochs": "–",
        "precision": "float32",
        "intervals": {"BLEU": bleu_interval(TOKENS, table)},
    }
    write_run(about | alike | cost)


def write_told(root: Path) -> None:
    """Keep what validation captions score when told how the reference begins, by length, and by rare words."""
    experiment, told = "The shipped translator on parts of the captions (chapter 10)", "told how the reference begins"
    model, pieces = load_shipped()
    texts, wanted = (caption_lines(root, f"val.{language}") for language in ("de", "en"))
    references, known = tokens_of(wanted), set(" ".join(tokens_of(caption_lines(root, "train.en"))).split())
    rarest = np.array(rarest_words(root, texts))
    by_length = thirds([len(text.split()) for text in references])
    by_german = thirds([len(cut_german(text)) for text in texts], " of the German")
    times = {"0 times": (0, 0), "1 to 5 times": (1, 5), "6 to 20 times": (6, 20), "21 times or more": (21, 10**9)}
    by_rarity = {
        f", the rarest word read {name}": np.flatnonzero((low <= rarest) & (rarest <= high))
        for name, (low, high) in times.items()
    }
    whole = {"": np.arange(len(texts))}
    tables = {}
    for way, parts in ((GREEDY, whole | by_length | by_german | by_rarity), (REWARDED, whole | by_length), ({}, whole)):
        read, title = clocks(), title_of(way) if way else told
        said = decode(model, pieces, texts, way) if way else guess(model, pieces, texts, wanted)
        cost = read()
        written = tokens_of(said)
        tables[title] = bleu_counts(TOKENS, written, references)
        for part, rows in parts.items():
            table = tables[title][rows]
            values = measure([said[i] for i in rows], [wanted[i] for i in rows], table)
            values["tokens in a reference"] = round(float(table[:, -1].mean()), 2)
            values["captions with a word that no training caption has"] = sum(
                not known.issuperset(written[i].split()) for i in rows
            )
            record = {
                "experiment": experiment,
                "data": "The 1,014 validation captions, and parts of them",
                "model": title + part,
                "seed": 0,
                "values": values,
                "notes": [
                    "Seconds are those of decoding all captions.",
                    "Thirds are by the length of the reference. "
                    "A word counts as often as the training captions have it.",
                    *(["Thirds of the German are by the length of the German captions."] if part in by_german else ()),
                ],
            }
            print(f"{title}{part}: {len(rows)} captions, {values}", flush=True)
            keep(model, record, table, cost)
    difference = bleu_difference(TOKENS, tables[told], tables[title_of(GREEDY)])
    write_comparison(experiment, f"{told} − {title_of(GREEDY)}", 0, "BLEU", difference)


def write_drawn(root: Path) -> None:
    """Keep how long translations are that nothing searched for, and what a beam is worth on the sample's captions."""
    model, pieces = load_shipped()
    texts, wanted = (caption_lines(root, f"val.{language}") for language in ("de", "en"))
    for seed in range(4):
        torch.manual_seed(seed)
        read = clocks()
        said = decode(model, pieces, texts, DRAWN)
        cost = read()
        table = bleu_counts(TOKENS, tokens_of(said), tokens_of(wanted))
        record = {
            "experiment": EXPERIMENTS[0][0],
            "data": EXPERIMENTS[0][2],
            "model": "each piece drawn at random, as likely as the model thinks it",
            "seed": seed,
            "values": measure(said, wanted, table),
            "notes": ["Seconds are those of decoding."],
        }
        keep(model, record, table, cost)
    sample = root.parent / "sample"
    texts, wanted = (caption_lines(sample, f"train.{language}") for language in ("de", "en"))
    experiment, tables = "The shipped translator on the sample's captions (chapter 10)", {}
    for way in (BASE, GREEDY):
        read, title = clocks(), title_of(way)
        said = decode(model, pieces, texts, way)
        cost = read()
        table = tables[title] = bleu_counts(TOKENS, tokens_of(said), tokens_of(wanted))
        record = {
            "experiment": experiment,
            "data": "The sample's 373 training captions, which it never saw",
            "model": title,
            "seed": 0,
            "values": measure(said, wanted, table),
            "notes": ["Seconds are those of decoding."],
        }
        keep(model, record, table, cost)
    compare(experiment, tables, [(BASE, GREEDY)])


def tokens_of(texts: list[str]) -> list[str]:
    """Texts as lower-cased tokens with spaces between them."""
    return [" ".join(cut_english(text)) for text in texts]


def measure(said: list[str], wanted: list[str], table: np.ndarray) -> dict[str, float]:
    """What the translations are worth by several measures; the table is what BLEU of their tokens adds up."""
    values = {"BLEU": bleu_of(TOKENS, table.sum(axis=0))}
    for title, lowercase in (("lower case", True), ("cased", False)):
        values[f"sacreBLEU, {title}"] = BLEU(lowercase=lowercase).corpus_score(said, [wanted]).score
    values["chrF"] = CHRF(lowercase=True).corpus_score(said, [wanted]).score
    values["TER"] = TER().corpus_score(said, [wanted]).score
    values["tokens in a caption"] = table[:, -2].mean()
    values["of them in the reference, %"] = 100 * table[:, 0].sum() / table[:, -2].sum()
    return {name: round(float(value), 2) for name, value in values.items()}


def write_shown(root: Path, path: Path) -> None:
    """Keep what the shipped translator makes of the first test captions, which chapter 08 shows already.

    The file is JSON, a list of objects: `source` and `reference` as lower-cased tokens with spaces between them, and
    `greedy` and `beam`, what the translator wrote, as text.
    """
    model, pieces = load_shipped()
    texts, wanted = (caption_lines(root, f"test2016.{language}")[:SHOWN] for language in ("de", "en"))
    columns = {
        "source": [" ".join(token.text.lower() for token in spacy.blank("de").tokenizer(text)) for text in texts],
        "reference": tokens_of(wanted),
        "greedy": decode(model, pieces, texts, GREEDY),
        "beam": decode(model, pieces, texts, BASE),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_rows(rows, path)


def main() -> None:
    """Decode in each way, and keep what came of it."""
    parser = argparse.ArgumentParser(description="Decode real captions with the shipped translator in many ways.")
    parser.add_argument("--shown", action="store_true", help="write the translations that chapter 10 shows")
    parser.add_argument("--told", action="store_true", help="score guesses after true beginnings, lengths, rare words")
    parser.add_argument("--drawn", action="store_true", help="draw pieces at random; decode the sample's captions")
    given = parser.parse_args()
    root = full_data("multi30k")
    if given.shown:
        write_shown(root, Path("captions.json"))
        return
    if given.told:
        write_told(root)
        return
    if given.drawn:
        write_drawn(root)
        return
    model, pieces = load_shipped()
    for experiment, split, data, ways in EXPERIMENTS:
        texts, wanted = (caption_lines(root, f"{split}.{language}") for language in ("de", "en"))
        references, tables = tokens_of(wanted), {}
        for way in ways:
            read, title = clocks(), title_of(way)
            said = decode(model, pieces, texts, way)
            cost = read()
            table = tables[title] = bleu_counts(TOKENS, tokens_of(said), references)
            record = {
                "experiment": experiment,
                "data": data,
                "model": title,
                "seed": 0,
                "values": measure(said, wanted, table),
                "notes": [
                    "Seconds are those of decoding.",
                    "Where nothing is said, ended hypotheses stay in and compete.",
                    "A reward is added to a hypothesis for each token, in place of the length penalty.",
                    f"The references of the {data.removeprefix('All ')} have {table[:, -1].mean():.2f} tokens in a "
                    "caption.",
                ],
            }
            print(f"{title}: {record['values']} in {cost['processor_seconds']} s", flush=True)
            keep(model, record, table, cost)
        pairs = [(way, BASE) for way in ways if way != BASE]
        compare(experiment, tables, [*pairs, *(pair for pair in COMPARED if all(way in ways for way in pair))])


def compare(experiment: str, tables: dict[str, np.ndarray], pairs: list[tuple[dict, dict]]) -> None:
    """Keep the difference of ways of decoding the same captions, from what BLEU of each adds up."""
    for pair in pairs:
        one, other = map(title_of, pair)
        difference = bleu_difference(TOKENS, tables[one], tables[other])
        write_comparison(experiment, f"{one} − {other}", 0, "BLEU", difference)


if __name__ == "__main__":
    main()
