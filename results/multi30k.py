"""Chapters 08 to 10 on the full data: translators from German to English, Multi30k, test_2016_flickr.

    python data/download.py
    python results/multi30k.py [--models small_gru small_gru_attention subwords … consensus] [--seeds 0 1 2]
    python results/multi30k.py --validate --models small --set epochs=3 dropout=0.2
    python results/multi30k.py --validate --models distilled --set "way='-rewarded'"
    python results/multi30k.py --compare
    python results/multi30k.py --checkpoint small
    python results/multi30k.py --alignments

The GRUs on all words are trained with the first seed, everything else with each; the means are those of all seeds
together.

Models, decoding and the measures are the chapters'. `--validate` reads the validation captions only: it is how the
settings below were chosen. Without it, each finished model also reads the test captions, once. A run goes on from its
last epoch when it was stopped, and one on record is not run again: delete its file in `results/runs/` for that.
`--compare` gives the differences between finished models on the same captions, `--checkpoint` writes the small file
with which chapter 10 translates without training, and `--alignments` what chapter 08 shows of both GRUs.
"""

import argparse
import hashlib
import os
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from report import (
    clocks,
    cost_so_far,
    cost_together,
    full_data,
    on_record,
    parse_settings,
    precision_of,
    read_answers,
    watched,
    write_comparison,
    write_rows,
    write_run,
)
from sacrebleu.metrics import BLEU
from subwords import EOS, PAD, SOS, train_subwords
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchtext import data

from attention_course.bleu import TOKENS, bleu_counts, bleu_difference, bleu_interval
from attention_course.data import (
    cache_folder,
    caption_batches,
    caption_fields,
    caption_lines,
    cut_english,
    load_captions,
)
from attention_course.training import keep_training, load_state, mixed_precision, save, share_of

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "10_multi30k_translator")  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import encoder_decoder as chapter_09  # noqa: E402
import multi30k_translator as chapter_10  # noqa: E402
import seq2seq_attention as chapter_08  # noqa: E402
from quick import keep_freed_memory, quicken  # noqa: E402

EXPERIMENT = "German captions to English (Multi30k)"
METRIC = "BLEU on test_2016_flickr, read once by each model after training; settings were chosen on validation captions"
CONSENSUS = (
    "consensus: of the translations (beam 5) by each transformer and each mean, the one with the highest mean sentence "
    "BLEU against all of them, in lower-cased tokens."
)
TAUGHT = (
    "taught: in each epoch half of the captions, drawn anew, have the translation by the teacher's first seed (beam 5) "
    "in place of the reference; what the teacher and its translations cost is not counted."
)
BEAM = 5
GREEDY, REWARDED = "-greedy", "-rewarded"  # mark the answers of a model that translates in several ways
# For each token, in place of the length penalty: 0.8 is the best of 0.4, 0.6 … 1.2 for the small one that ships
# (beams.py), 0.6 for the wide one, on the validation captions; with it they are as long as the references.
REWARDS = {"words": 0.8, "subwords": 0.8, "small": 0.8, "distilled": 0.8, "big": 0.6}
FILES = {"valid": "val", "test": "test2016"}
TRANSFORMER = {
    "units": "subwords",
    "vocabulary": 3000,
    "dim": 128,
    "heads": 4,
    "depth": 3,
    "hidden": 512,
    "dropout": 0.15,
    "smoothing": 0.1,
    "rate": 3e-3,
    "warmup": 400,
    "tokens_in_a_batch": 2500,
    "epochs": 26,
}
GRU = {
    "units": "words",
    "attention": True,
    "dim": 128,
    "encoder_hidden": 128,
    "decoder_hidden": 256,
    "dropout": 0.3,
    "smoothing": 0.1,
    "rate": 2e-3,
    "warmup": 400,
    "tokens_in_a_batch": 2500,
    "epochs": 10,
}
SMALL_GRU = GRU | {"min_freq": 3, "epochs": 8}
# What takes a model further at no cost to its reader. The rate stays up until the last epochs, so that a shorter or a
# longer training has the same beginning. BPE-dropout, `--set bpe_dropout=0.1`, would take much longer to pay back: with
# it a validation token costs `small` 2.56 nats after six epochs, without it 2.48 after three.
AVERAGED = {"rate": 2e-3, "cool": 10, "average": 0.998, "epochs": 36}
WIDE = {"vocabulary": 8000, "dim": 256, "heads": 8, "hidden": 1024, "dropout": 0.25}
BIG = TRANSFORMER | AVERAGED | WIDE | {"rate": 1e-3, "epochs": 22}
RECIPES = {
    "gru": GRU | {"attention": False},
    "gru_attention": GRU,
    "small_gru": SMALL_GRU | {"attention": False},
    "small_gru_attention": SMALL_GRU,
    "words": TRANSFORMER | {"units": "words", "epochs": 14},
    "subwords": TRANSFORMER,
    "small": TRANSFORMER | AVERAGED,
    "big": BIG,
    # By translations that its teacher chose with the reward, `--set "way='-rewarded'"`, it is taught no better: 40.33
    # without a beam and 41.48 with the reward (validation captions, sacreBLEU in lower case, one seed), the shipped one
    # 40.03 and 42.04.
    "distilled": TRANSFORMER | AVERAGED | {"teacher": "big", "epochs": 28},
}
ONE_SEED = ("gru", "gru_attention")
COMPARED = [
    ("small_gru_attention", "small_gru"),
    ("subwords-greedy", "small_gru_attention"),
    ("big", "subwords"),
    ("small", "subwords"),
    ("distilled", "subwords"),
    ("distilled-greedy", "subwords-greedy"),
    ("big", "small"),
    ("big", "distilled"),
    ("distilled", "small"),
    ("distilled-greedy", "small-greedy"),
    *((name, name + GREEDY) for name in ("subwords", "small", "distilled", "big")),
    *((name + REWARDED, name) for name in ("subwords", "small", "distilled", "big")),
]
ENSEMBLES = {"words_mean": "words", "subwords_mean": "subwords"}
TITLES = {
    "gru": "GRU without attention, words",
    "gru_attention": "GRU with attention, words",
    "small_gru": "GRU without attention, words that occur three times",
    "small_gru_attention": "GRU with attention, words that occur three times",
    "words": "transformer, words",
    "subwords": "transformer, subwords",
    "small": "transformer, subwords, averaged weights",
    "big": "transformer twice as wide, 8,000 subwords, averaged weights",
    "distilled": "transformer, subwords, averaged weights, taught by the one twice as wide",
    "words_mean": "mean of the word transformers' probabilities",
    "subwords_mean": "mean of the subword transformers' probabilities",
    "consensus": "consensus of all transformers and both means",
}


class Captions:
    """The three splits as chapter 08 has them, in words or subwords.

    Args:
        root: the folder that holds `multi30k`.
        recipe: its `units`, and the size of the `vocabulary` of subwords.
    """

    def __init__(self, root: Path, recipe: dict) -> None:
        self.references = {split: caption_lines(root, f"{name}.en") for split, name in FILES.items()}
        self.subwords: Any = None  # sentencepiece.SentencePieceProcessor, if the units are subwords
        if recipe["units"] == "words":
            german, english = caption_fields()
            self.train, self.valid, self.test = load_captions(root, german, english)
            german.build_vocab(self.train, min_freq=recipe.get("min_freq", 2))
            english.build_vocab(self.train, min_freq=recipe.get("min_freq", 2))
            self.sizes, self.words = (len(german.vocab), len(english.vocab)), english.vocab.itos
            return
        lines = [
            (caption_lines(root, f"{name}.de"), caption_lines(root, f"{name}.en"))
            for name in ("train", "val", "test2016")
        ]
        self.model_file = train_subwords(lines[0][0] + lines[0][1], recipe["vocabulary"])
        self.subwords = sentencepiece.SentencePieceProcessor(model_proto=self.model_file)
        self.lines = lines[0]
        ends = {"use_vocab": False, "init_token": SOS, "eos_token": EOS, "pad_token": PAD, "batch_first": True}
        self.fields = [("src", data.Field(include_lengths=True, **ends)), ("trg", data.Field(is_target=True, **ends))]
        self.train, self.valid, self.test = (self.encode(pair) for pair in lines)
        self.sizes = (len(self.subwords), len(self.subwords))

    def encode(self, pair: tuple[list[str], list[str]], **sampling: object) -> data.Dataset:
        """German and English lines in subwords, as a data set."""
        numbers = zip(*(self.subwords.encode(side, num_threads=1, **sampling) for side in pair), strict=True)
        return data.Dataset([data.Example.fromlist(both, self.fields) for both in numbers], self.fields)

    def training_examples(self, dropout: float, seed: int, taught: list[str] | None) -> data.Dataset:
        """The training captions of one epoch, in subwords or words.

        Args:
            dropout: cut them anew; each merge is left out with this probability (Provilkov et al., 2020).
            seed: of what is left out, and of which captions are whose.
            taught: a teacher's translations (Kim and Rush, 2016): half of the captions, drawn anew by the seed, have
                theirs in place of the reference; or None.
        """
        if not dropout and taught is None:
            return self.train
        german, english = self.lines
        if taught is not None:
            chance = random.Random(seed)
            english = [chance.choice(both) for both in zip(english, taught, strict=True)]
        pair = german, english
        if not dropout:
            return self.encode(pair)
        sentencepiece.set_random_generator_seed(seed)
        return self.encode(pair, enable_sampling=True, alpha=dropout)

    def tokens(self, translations: list[list[int]]) -> list[list[str]]:
        """The translations in lower-cased tokens, whatever they were written in."""
        if self.subwords is None:
            return [[self.words[number] for number in numbers] for numbers in translations]
        return [cut_english(self.subwords.decode(numbers)) for numbers in translations]

    def scores(self, split: str, translations: list[list[int]], how: str) -> dict[str, float]:
        """BLEU of the translations of a split, by each definition that fits."""
        references = [cut_english(line) for line in self.references[split]]
        values = {f"tokens, lower case, {how}": chapter_10.corpus_bleu(self.tokens(translations), references)}
        if self.subwords is not None:
            texts = [self.subwords.decode(numbers) for numbers in translations]
            for title, lowercase in (("lower case", True), ("cased", False)):
                bleu = BLEU(lowercase=lowercase).corpus_score(texts, [self.references[split]])
                values[f"sacreBLEU, {title}, {how}"] = bleu.score
        return {name: round(value, 2) for name, value in values.items()}

    def intervals(self, split: str, translations: list[list[int]], how: str) -> dict[str, list[float]]:
        """The 95 % interval of the figure that the text quotes, when the captions are drawn anew."""
        if self.subwords is None:
            return {
                f"tokens, lower case, {how}": bleu_interval(
                    TOKENS, counts_of(self.references[split], self.tokens(translations))
                )
            }
        texts = [self.subwords.decode(numbers) for numbers in translations]
        metric = BLEU(lowercase=True)
        return {
            f"sacreBLEU, lower case, {how}": bleu_interval(metric, bleu_counts(metric, texts, self.references[split]))
        }


def counts_of(references: list[str], tokens: list[list[str]]) -> np.ndarray:
    """What BLEU of lower-cased tokens adds up over captions, `(N, 10)`."""
    wanted = [" ".join(cut_english(line)) for line in references]
    return bleu_counts(TOKENS, [" ".join(caption) for caption in tokens], wanted)


def signatures() -> list[str]:
    """What the columns mean, with sacreBLEU's own description of two of them."""
    notes = [
        "tokens, lower case: spaCy's tokens of chapter 08, lower-cased, translations and references alike: "
        "chapter 10's `corpus_bleu`, sacreBLEU's figure for `tokenize=none`, `smooth_method=none`.",
    ]
    for title, lowercase in (("lower case", True), ("cased", False)):
        metric = BLEU(lowercase=lowercase)
        metric.corpus_score(["a"], [["a"]])  # the number of references is part of the signature
        notes.append(f"sacreBLEU, {title}: `{metric.get_signature()}`, on text put together again.")
    return [
        *notes,
        f"beam {BEAM}: chapter 10's `beam_search` with its length penalty of 0.6.",
        "a reward: that beam without the length penalty; each token adds a constant to its hypothesis instead, "
        f"{REWARDS['big']} in the wide translators and {REWARDS['small']} in the small ones, chosen on the validation "
        "captions.",
        "The models are the chapters'. To save time, transformers trained and decoded with torch's layer norm and a "
        "faster dropout in place of chapter 06's norm and torch's dropout: the same functions, up to rounding.",
    ]


class EqualWeights(nn.Module):
    """No attention: each real source token has the same weight at every step."""

    def forward(self, hidden: Tensor, encoder_outputs: Tensor, mask: Tensor) -> Tensor:
        """The weights, `(B, m)`."""
        return mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)


def new_model(recipe: dict, sizes: tuple[int, int]) -> nn.Module:
    """A GRU translator of chapter 08 or a transformer of chapter 09."""
    if "encoder_hidden" in recipe:
        widths = [recipe[key] for key in ("dim", "encoder_hidden", "decoder_hidden", "dropout")]
        decoder = chapter_08.GRUDecoder(sizes[1], *widths)
        if not recipe["attention"]:
            decoder.attention = EqualWeights()
        return chapter_08.Seq2Seq(chapter_08.GRUEncoder(sizes[0], *widths), decoder)
    widths = [recipe[key] for key in ("dim", "heads", "depth", "hidden", "dropout")]
    model = chapter_09.Translator(*sizes, *widths, PAD)
    if recipe["units"] == "subwords":
        model.encoder.embedder = model.decoder.embedder  # one vocabulary, one table
    return quicken(model)


class Ensemble(nn.Module):
    """Translators that write together: the next token's probability is the mean of theirs."""

    def __init__(self, members: list[nn.Module]) -> None:
        super().__init__()
        self.members: Any = nn.ModuleList(members)

    def encode(self, source: Tensor) -> Tensor:
        """The members' memories side by side, `(B, m, members · d)`."""
        return torch.cat([member.encode(source) for member in self.members], dim=-1)

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """Log-probabilities of the token that follows the target, `(B, 1, V)`: decoding asks for no others."""
        parts = memory.chunk(len(self.members), dim=-1)
        each = [m.decode(target, part, source)[:, -1:] for m, part in zip(self.members, parts, strict=True)]
        return torch.stack(each).softmax(dim=-1).mean(dim=0).log()


def larger_rectangle(new: data.Example, count: int, so_far: float) -> float:
    """Tokens of a batch, padding included, in its longer language, with `new` as the last pair."""
    longest_before = so_far / max(count - 1, 1)
    return count * max(longest_before, len(new.src) + 2, len(new.trg) + 2)


def close_batches(dataset: data.Dataset, tokens: int, seed: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Batches like those of `caption_batches`, a fifth fewer: cut from one sorted list, they hold less padding."""
    chance = random.Random(seed)
    examples = sorted(dataset, key=lambda e: (len(e.src), len(e.trg), chance.random()))
    groups = list(data.batch(examples, tokens, larger_rectangle))
    chance.shuffle(groups)
    german, english = dataset.fields["src"], dataset.fields["trg"]
    return [(*german.process([e.src for e in group]), english.process([e.trg for e in group])) for group in groups]


def forced(model: chapter_08.Seq2Seq, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    """What chapter 08's `Seq2Seq` returns with `teacher_forcing=1.0`, several times as fast.

    Whatever does not depend on the step before is computed for all steps at once: the vectors of the true tokens, what
    the attention's first layer makes of the source, and the scores of all words.
    """
    outputs, hidden = model.encoder(source, lengths)
    mask = torch.arange(source.shape[1]) < lengths.unsqueeze(1)
    decoder = model.decoder
    attention = decoder.attention
    vectors = decoder.dropout(decoder.embedding(target[:, :-1]))
    learned = isinstance(attention, chapter_08.AdditiveAttention)
    if learned:
        of_hidden, of_output = attention.fc1.weight.split([hidden.shape[-1], outputs.shape[-1]], dim=1)
        seen = F.linear(outputs, of_output, attention.fc1.bias)
    else:
        context = (attention(hidden, outputs, mask).unsqueeze(1) @ outputs).squeeze(1)
    states, contexts = [], []
    for t in range(vectors.shape[1]):
        if learned:
            scores = attention.fc2(torch.tanh(F.linear(hidden, of_hidden).unsqueeze(1) + seen)).squeeze(-1)
            weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
            context = (weights.unsqueeze(1).to(outputs.dtype) @ outputs).squeeze(1)
        hidden = decoder.gru(torch.cat([vectors[:, t], context], dim=-1), hidden)
        states.append(hidden)
        contexts.append(context)
    return decoder.fc(torch.cat([torch.stack(states, dim=1), torch.stack(contexts, dim=1), vectors], dim=-1))


def logits_of(model: nn.Module, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    """Scores for each target token after the first, given the true ones before it."""
    with mixed_precision():
        if isinstance(model, chapter_08.Seq2Seq):
            return forced(model, source, lengths, target).float()
        return model(source, target[:, :-1]).float()


@torch.no_grad()
def mean_loss(model: nn.Module, captions: Captions) -> float:
    """The cross-entropy of a validation token."""
    model.eval()
    total = count = 0
    for source, lengths, target in caption_batches(captions.valid, 4000):
        real = int((target[:, 1:] != PAD).sum())
        loss = chapter_10.label_smoothed_loss(logits_of(model, source, lengths, target), target[:, 1:], 0.0, PAD)
        total, count = total + real * loss.item(), count + real
    return total / count


def cut(numbers: list[int]) -> list[int]:
    """A translation without its end and what follows it."""
    return numbers[: numbers.index(EOS)] if EOS in numbers else numbers


@torch.no_grad()
def gru_decode(
    model: chapter_08.Seq2Seq, source: Tensor, lengths: Tensor, max_len: int
) -> tuple[list[list[int]], list[Tensor]]:
    """`greedy_decode` for chapter 08's translator; and where each token looked, `(n, m)` for each sentence."""
    outputs, hidden = model.encoder(source, lengths)
    mask = torch.arange(source.shape[1]) < lengths.unsqueeze(1)
    token = torch.full((len(source),), SOS)
    written: list[Tensor] = []
    looked: list[Tensor] = []
    ended = torch.zeros(len(source), dtype=torch.bool)
    while len(written) < max_len and not ended.all():
        logits, hidden, weights = model.decoder(token, hidden, outputs, mask)
        token = logits.argmax(dim=-1)
        ended |= token == EOS
        written.append(token)
        looked.append(weights)
    translations = [cut(row) for row in torch.stack(written, dim=1).tolist()]
    each = zip(torch.stack(looked, dim=1), translations, lengths.tolist(), strict=True)
    return translations, [weights[: len(tokens), :length] for weights, tokens, length in each]


def ways_of(name: str) -> dict[str, tuple[str, dict]]:
    """How a model translates: what marks its answers, what their columns are called, and the beam's settings."""
    greedy: tuple[str, dict] = "greedy", {"beam": 1}
    if name not in REWARDS and name not in ENSEMBLES:  # a GRU
        return {"": greedy}
    ways = {GREEDY: greedy, "": (f"beam {BEAM}", {"beam": BEAM})}
    if name in REWARDS:
        ways[REWARDED] = f"beam {BEAM}, a reward", {"beam": BEAM, "length_penalty": 0.0, "reward": REWARDS[name]}
    return ways


def translate(model: nn.Module, dataset: data.Dataset, beam: int = 1, **options: float) -> list[list[int]]:
    """Token numbers of the translation of each caption, in the order of the data set; the options are the beam's."""
    model.eval()
    search, greedy = chapter_10.beam_search, chapter_10.greedy_decode
    if isinstance(model, chapter_09.Translator):
        search, greedy = chapter_10.cached_beam, chapter_10.cached_decode
    order = sorted(range(len(dataset)), key=lambda i: len(dataset[i].src))
    found: dict[int, list[int]] = {}
    groups = [order[start : start + 64] for start in range(0, len(order), 64)]
    for numbers in watched(groups, f"{len(order)} captions, beam {beam}"):
        source, lengths = dataset.fields["src"].process([dataset[i].src for i in numbers])
        longest = source.shape[1] + 20
        if isinstance(model, chapter_08.Seq2Seq):
            translations, _ = gru_decode(model, source, lengths, longest)
        elif beam == 1:
            translations = greedy(model, source, longest, SOS, EOS)
        else:
            translations = search(model, source, beam, longest, SOS, EOS, **options)
        found |= dict(zip(numbers, translations, strict=True))
    return [found[i] for i in range(len(order))]


def rate_factor(step: int, warmup: int, cool: int, total: int) -> float:
    """By how much to multiply the rate: up in a line, then 1, then in the last `cool` steps down to 0 in a line."""
    return min((step + 1) / warmup, 1.0, max(0.0, (total - step) / cool))


def state_path(root: Path, name: str, seed: int, recipe: dict) -> Path:
    """Where the state of one training is kept; other settings, another file."""
    key = hashlib.sha256(repr(sorted(recipe.items())).encode()).hexdigest()[:8]
    return cache_folder(root) / f"multi30k-{name}-{seed}-{key}.pt"


def train(model: nn.Module, captions: Captions, recipe: dict, seed: int, path: Path, taught: list[str] | None) -> dict:
    """Train a model, or go on from its last epoch; afterwards it has its averaged weights, if the recipe averages.

    Args:
        taught: a teacher's translations of the training captions, to learn from as well.

    Returns:
        What its record holds: the losses of each epoch, and what the training cost.
    """
    optimizer = torch.optim.AdamW(model.parameters(), recipe["rate"], betas=(0.9, 0.98), fused=True)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer}
    averaged = None
    if "average" in recipe:
        averaged = parts["averaged"] = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(recipe["average"]))
    state = load_state(path)

    def batches_of(epoch: int) -> list[tuple[float, tuple[Tensor, Tensor, Tensor]]]:
        """Each batch with its rate."""
        cooling = epoch >= recipe["epochs"] - recipe.get("cool", recipe["epochs"])
        dropout = 0.0 if cooling else recipe.get("bpe_dropout", 0.0)
        examples = captions.training_examples(dropout, 1 + 1000 * seed + epoch, taught)
        batches = close_batches(examples, recipe["tokens_in_a_batch"], 1000 * seed + epoch)
        # Epochs differ by a batch or two: the schedule is one of epochs and their fractions.
        total = recipe["epochs"] * len(batches)
        cool = recipe["cool"] * len(batches) if "cool" in recipe else total - recipe["warmup"]
        steps = range(epoch * len(batches), (epoch + 1) * len(batches))
        rates = [recipe["rate"] * rate_factor(step, recipe["warmup"], cool, total) for step in steps]
        return list(zip(rates, batches, strict=True))

    def run_epoch(batches: Iterable[tuple[float, tuple[Tensor, Tensor, Tensor]]]) -> list[float]:
        read, steps, losses = clocks(), 0, 0.0
        model.train()
        for rate, (source, lengths, target) in batches:
            for group in optimizer.param_groups:
                group["lr"] = rate
            logits = logits_of(model, source, lengths, target)
            # Chapter 10's `label_smoothed_loss`, in one pass over the logits.
            wanted = target[:, 1:].flatten()
            loss = F.cross_entropy(logits.flatten(0, 1), wanted, ignore_index=PAD, label_smoothing=recipe["smoothing"])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if averaged is not None:
                averaged.update_parameters(model)
            steps, losses = steps + 1, losses + loss.item()
        state["spent"] = cost_so_far(state, read())
        row = [round(losses / steps, 4), round(mean_loss(averaged or model, captions), 4)]
        print(f"\nlosses {row}, {state['spent']['processor_seconds']} processor seconds", file=sys.stderr, flush=True)
        return row

    share = share_of(recipe["epochs"])
    keep_training(parts, state, batches_of, run_epoch, path, share, title=path.stem, seed=1000 * seed)
    if averaged is not None:
        model.load_state_dict(averaged.module.state_dict())
    return state["spent"] | {"history": state["history"]}


def finished_weights(state: dict) -> dict[str, Tensor]:
    """The weights to translate with: the averaged ones if there are some."""
    averaged = state.get("averaged")
    if averaged is None:
        return state["model"]
    return {name.removeprefix("module."): value for name, value in averaged.items() if name != "n_averaged"}


def load_finished(root: Path, kind: str, seed: int, recipe: dict) -> dict:
    """The state of a training that is over.

    Raises:
        FileNotFoundError: it is not over, or has not begun.
    """
    path = state_path(root, kind, seed, recipe)
    state = load_state(path)
    if len(state.get("history", [])) < recipe["epochs"]:
        raise FileNotFoundError(f"{kind}, seed {seed}, is not trained yet: run --models {kind} --seeds {seed} first")
    return state


def combine(kind: str, seeds: list[int], recipe: dict, root: Path, captions: Captions) -> tuple[nn.Module, dict]:
    """The finished transformers of this kind and these seeds as one model, and what they cost together.

    Raises:
        FileNotFoundError: one of them has not been trained.
    """
    states = [load_finished(root, kind, seed, recipe) for seed in seeds]
    members = [new_model(recipe, captions.sizes) for _ in seeds]
    for member, state in zip(members, states, strict=True):
        member.load_state_dict(finished_weights(state))
    return Ensemble(members), cost_together([state["spent"] for state in states])


def answers_path(root: Path, split: str, name: str, label: str) -> Path:
    """Where the translations of a split are kept, in tokens."""
    return cache_folder(root) / f"captions-{split}" / f"{name}-{label}.pt"


def most_alike(candidates: list[list[str]]) -> list[str]:
    """Of several translations of a sentence the one most like all of them, by sentence BLEU (Kumar and Byrne, 2004)."""
    texts = [" ".join(tokens) for tokens in candidates]
    bleu = BLEU(tokenize="none", effective_order=True)
    likeness = [sum(bleu.sentence_score(text, [other]).score for other in texts) for text in texts]
    return candidates[likeness.index(max(likeness))]


def vote(seeds: list[int], root: Path, split: str) -> dict:
    """Let all transformers and their means translate, and choose the translation of each caption by consensus.

    Raises:
        FileNotFoundError: one of them has not translated yet.
    """
    together = "+".join(map(str, seeds))
    singles = [answers_path(root, split, kind, str(seed)) for kind in ENSEMBLES.values() for seed in seeds]
    paths = singles + [answers_path(root, split, name, together) for name in ENSEMBLES]
    answers = read_answers(paths)
    chosen = [most_alike(list(candidates)) for candidates in zip(*(tokens for _, tokens in answers), strict=True)]
    references = [cut_english(line) for line in caption_lines(root, f"{FILES[split]}.en")]
    return cost_together([record for record, _ in answers[: len(singles)]]) | {
        "model": TITLES["consensus"],
        "epochs": "–",
        "seed": together,
        "values": {f"tokens, lower case, beam {BEAM}": round(chapter_10.corpus_bleu(chosen, references), 2)},
        "notes": [*signatures(), CONSENSUS],
    }


def lessons(teacher: str, way: str, root: Path) -> list[str]:
    """What a translator's first seed makes of the German training captions; kept once made.

    Args:
        teacher: its name in `RECIPES`.
        way: how it translates, one of its `ways_of`.
        root: the folder that holds `multi30k`.

    Raises:
        FileNotFoundError: the teacher has not been trained.
    """
    recipe = RECIPES[teacher]
    path = answers_path(root, "train", teacher + way, "0")
    if not path.exists():
        captions = Captions(root, recipe)
        model = new_model(recipe, captions.sizes)
        model.load_state_dict(finished_weights(load_finished(root, teacher, 0, recipe)))
        with mixed_precision():
            translations = translate(model, captions.train, **ways_of(teacher)[way][1])
        save([captions.subwords.decode(numbers) for numbers in translations], path)
    return torch.load(path, weights_only=True)


def run(name: str, seeds: list[int], recipe: dict, root: Path, captions: Captions, validate: bool) -> dict:
    """Train one model, or combine those of several seeds; translate with it, and say what came out."""
    if name in ENSEMBLES:
        model, spent = combine(ENSEMBLES[name], seeds, recipe, root, captions)
    else:
        torch.manual_seed(seeds[0])
        model = new_model(recipe, captions.sizes)
        taught = lessons(recipe["teacher"], recipe.get("way", ""), root) if "teacher" in recipe else None
        spent = train(model, captions, recipe, seeds[0], state_path(root, name, seeds[0], recipe), taught)
    values: dict[str, float] = {}
    intervals: dict[str, list[float]] = {}
    said, split = {}, "valid" if validate else "test"
    for ending, (how, way) in ways_of(name).items():
        translations = translate(model, getattr(captions, split), **way)
        values |= captions.scores(split, translations, how)
        intervals |= captions.intervals(split, translations, how)
        said[ending] = captions.tokens(translations)
    label = "+".join(map(str, seeds))
    record = {
        "experiment": EXPERIMENT,
        "data": "29,000 captions to train on, 1,014 to choose settings with, 1,000 to test with",
        "metric": METRIC,
        "model": TITLES[name],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "epochs": recipe["epochs"],
        "seed": seeds[0] if len(seeds) == 1 else label,
        "precision": precision_of(mixed_precision()),
        "recipe": recipe,
        "values": values,
        "intervals": intervals,
        "notes": [*signatures(), *([TAUGHT] if "teacher" in recipe else [])],
    } | spent
    for ending, tokens in said.items():
        save((record, tokens), answers_path(root, split, name + ending, label))
    return record


def answers_title(name: str) -> str:
    """What to call the answers kept under this name."""
    model, _, way = name.partition("-")
    return TITLES[model] + (f", {way}" if way else "")


def compare(pairs: list[tuple[str, str]], seeds: list[int], root: Path) -> None:
    """How much better one finished model translates the test captions than another, by lower-cased tokens.

    A pair is compared in the first of these seeds in which both have translated; one that has not is named on stderr.
    """
    references = caption_lines(root, "test2016.en")
    for one, other in pairs:
        both = [(seed, [answers_path(root, "test", name, str(seed)) for name in (one, other)]) for seed in seeds]
        seed, paths = next((pair for pair in both if all(path.exists() for path in pair[1])), both[0])
        try:
            answers = read_answers(paths)
        except FileNotFoundError as error:
            print(f"{answers_title(one)} against {answers_title(other)}: {error}", file=sys.stderr)
            continue
        title = f"{answers_title(one)} − {answers_title(other)}"
        difference = bleu_difference(TOKENS, *(counts_of(references, tokens) for _, tokens in answers))
        print(f"{title}: {difference}", flush=True)
        write_comparison(EXPERIMENT, title, seed, "BLEU, tokens, lower case", difference)


def write_checkpoint(name: str, root: Path, folder: Path) -> None:
    """Keep what translating needs of a finished subword training: weights in half precision, settings, subwords.

    Raises:
        FileNotFoundError: there is no such training.
    """
    recipe = RECIPES[name]
    captions = Captions(root, recipe)
    state = load_finished(root, name, 0, recipe)
    # The encoder's table and the output's are the decoder's, and sines need no storing.
    weights = {
        name: value.half()
        for name, value in finished_weights(state).items()
        if not name.endswith("positions.pe") and name not in ("encoder.embedder.embedding.weight", "output.weight")
    }
    names = ("dim", "heads", "depth", "hidden", "dropout")
    settings: dict[str, object] = dict(zip(("source_vocab", "target_vocab"), captions.sizes, strict=True))
    settings |= {name: recipe[name] for name in names} | {"pad_id": PAD}
    kept = {"settings": settings, "state": weights, "history": state["history"], "lower": False}
    save(kept, folder / "translator.pt")
    (folder / "translator.model").write_bytes(captions.model_file)


def write_alignments(root: Path, path: Path) -> None:
    """Keep what both GRUs made of the test captions, and where the one with attention looked while it wrote some.

    The file is JSON, a list in the order of the test captions. Each has `source` and `reference`, lower-cased tokens,
    `attention` and `without`, what the models wrote, and, among the first 60, `weights`: for each word written with
    attention, how much of each source token went into it, `<sos>` and `<eos>` at the ends included, in thousandths.

    Raises:
        FileNotFoundError: one of the models has not been trained, or has not read the test captions.
    """
    name = "small_gru_attention"
    (_, attended), (_, without) = read_answers([answers_path(root, "test", kind, "0") for kind in (name, "small_gru")])
    captions = Captions(root, RECIPES[name])
    model = new_model(RECIPES[name], captions.sizes)
    model.load_state_dict(finished_weights(load_finished(root, name, 0, RECIPES[name])))
    model.eval()
    rows = []
    for example, one, other in zip(captions.test, attended, without, strict=True):
        rows.append({"source": example.src, "reference": example.trg, "attention": one, "without": other})
    for row, example in zip(rows[:60], captions.test, strict=False):
        source, lengths = captions.test.fields["src"].process([example.src])
        written, [looked] = gru_decode(model, source, lengths, source.shape[1] + 20)
        row["attention"] = captions.tokens(written)[0]
        row["weights"] = (1000 * looked).round().int().tolist()
    write_rows(rows, path)


def main() -> None:
    """Train what is asked for and keep each result."""
    parser = argparse.ArgumentParser(
        description="Measure the translators of chapters 08 to 10 on the full Multi30k data."
    )
    parser.add_argument("--models", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--validate", action="store_true", help="report on the validation captions; keep nothing")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="other settings, to validate")
    parser.add_argument("--compare", action="store_true", help="paired differences between finished models")
    parser.add_argument(
        "--checkpoint", choices=("subwords", "small", "distilled"), help="write chapter 10's translator"
    )
    parser.add_argument("--alignments", action="store_true", help="write what chapter 08 shows of both GRUs")
    given = parser.parse_args()
    if given.set and not given.validate:
        parser.error("--set goes with --validate: what is kept has the settings of this file")
    changes = parse_settings(given.set)
    root = full_data("multi30k")
    if given.checkpoint:
        write_checkpoint(given.checkpoint, root, Path.cwd())
        return
    if given.alignments:
        write_alignments(root, HERE.parent / "solutions" / "08_seq2seq_attention" / "alignments.json")
        return
    if given.compare:
        compare(COMPARED, given.seeds, root)
        return
    keep_freed_memory()
    torch.set_flush_denormal(True)
    for name in given.models:
        recipe: dict = {}
        captions: Any = None  # the consensus reads what others have written
        if name != "consensus":
            recipe = RECIPES[ENSEMBLES.get(name, name)] | changes
            captions = Captions(root, recipe)
        if name not in RECIPES:
            groups = [given.seeds]  # one run of them all
        else:
            groups = [[seed] for seed in (given.seeds[:1] if name in ONE_SEED else given.seeds)]
        for seeds in groups:
            label = "+".join(map(str, seeds))
            if not given.validate and on_record(EXPERIMENT, TITLES[name], label):
                continue
            if name == "consensus":
                result = vote(seeds, root, "valid" if given.validate else "test")
            else:
                result = run(name, seeds, recipe, root, captions, given.validate)
            print(
                f"{TITLES[name]}, seed {label}, {changes}: {result['values']} in {result['processor_seconds']} s",
                flush=True,
            )
            if not given.validate:
                write_run(result)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:  # a model that others build on
        sys.exit(f"error: {error}")
