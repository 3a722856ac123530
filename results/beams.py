"""Chapter 10: what the shipped translator makes of real captions with wider beams and with other conventions.

    python data/download.py
    python results/beams.py

The first 200 validation captions; the test set is not opened. One run for each way of decoding, and its difference to
a beam of 5 with chapter 10's convention.
"""

import os
import sys
from pathlib import Path

import torch
from report import clocks, write_run
from torch import Tensor

from attention_course.bleu import TOKENS, bleu_counts, bleu_difference, bleu_interval, bleu_of
from attention_course.data import EOS, PAD, SOS, caption_lines, cut_english, data_root

os.chdir(
    Path(__file__).resolve().parent.parent / "solutions" / "10_multi30k_translator"
)  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import multi30k_translator as chapter_10  # noqa: E402
import sentencepiece  # noqa: E402
from encoder_decoder import Translator, source_mask  # noqa: E402

EXPERIMENT = "Decoding with the shipped translator (chapter 10)"
CAPTIONS, AT_ONCE, MOST = 200, 20, 60
BASE = {"beam": 5}
WAYS = [
    *({"beam": beam} for beam in (5, 1)),
    *({"beam": 5, "ended": ended} for ended in ("keep their places", "are set aside", "end the search")),
    *({"beam": beam} for beam in (20, 50)),
    *({"beam": beam, "length_penalty": 0.0} for beam in (5, 50)),
]


def title_of(way: dict) -> str:
    """What a way of decoding is called."""
    name = f"beam of {way['beam']}"
    if "length_penalty" in way:
        name += ", no length penalty"
    return name + (f", ended hypotheses {way['ended']}" if "ended" in way else "")


def load_shipped() -> tuple[Translator, sentencepiece.SentencePieceProcessor]:
    """The translator that lies beside chapter 10, and its subwords."""
    shipped = torch.load("translator.pt", weights_only=True)
    model = Translator(**shipped["settings"])
    model.encoder.embedder = model.decoder.embedder  # one vocabulary, one table
    model.load_state_dict({name: value.float() for name, value in shipped["state"].items()}, strict=False)
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
    caches, tokens = [None] * len(layers), torch.full((len(memory), 1), SOS)
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


def main() -> None:
    """Decode in each way, and keep what came of it."""
    root = data_root("multi30k")
    if root.name != "full":
        sys.exit("error: the full data are not there: python data/download.py")
    model, pieces = load_shipped()
    texts, wanted = (caption_lines(root, f"val.{language}")[:CAPTIONS] for language in ("de", "en"))
    references = [" ".join(cut_english(text)) for text in wanted]
    numbers = [torch.tensor([SOS, *pieces.encode(text), EOS]) for text in texts]
    tables = {}
    for way in WAYS:
        read, said = clocks(), []
        for start in range(0, CAPTIONS, AT_ONCE):
            source = torch.nn.utils.rnn.pad_sequence(numbers[start : start + AT_ONCE], True, PAD)
            if "ended" in way:
                said += search(model, source, **way)
            else:
                said += chapter_10.cached_beam(model, source, max_len=MOST, bos_id=SOS, eos_id=EOS, **way)
        cost, title = read(), title_of(way)
        lines = [" ".join(cut_english(pieces.decode(row))) for row in said]
        table = tables[title] = bleu_counts(TOKENS, lines, references)
        length = sum(len(line.split()) for line in lines) / CAPTIONS
        record = {
            "experiment": EXPERIMENT,
            "data": f"The first {CAPTIONS} validation captions",
            "metric": "BLEU, and the tokens of a translation, in lower-cased tokens",
            "model": title,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "epochs": "–",
            "seed": 0,
            "precision": "float32",
            "values": {"BLEU": round(bleu_of(TOKENS, table.sum(axis=0)), 2), "tokens in a caption": round(length, 2)},
            "intervals": {"BLEU": bleu_interval(TOKENS, table)},
            "notes": ["Seconds are those of decoding.", "Where nothing is said, ended hypotheses stay in and compete."],
        } | cost
        print(f"{title}: {record['values']} in {cost['processor_seconds']} s", flush=True)
        write_run(record)
        if way != BASE:
            compare(title, table, tables[title_of(BASE)])


def compare(title: str, one: object, base: object) -> None:
    """Keep the difference of a way of decoding to a beam of 5."""
    write_run(
        {
            "experiment": EXPERIMENT,
            "kind": "comparison",
            "model": f"{title} − {title_of(BASE)}",
            "seed": 0,
            "measure": "BLEU",
            "difference": bleu_difference(TOKENS, one, base),
        }
    )


if __name__ == "__main__":
    main()
