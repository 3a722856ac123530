"""Chapters 08 to 10 on the full data: translators from German to English, Multi30k, test_2016_flickr.

    python data/download.py
    python results/multi30k.py [--models gru gru_attention words subwords words_mean … consensus] [--seeds 0 1 2]
    python results/multi30k.py --validate --models subwords --set epochs=3 dropout=0.2
    python results/multi30k.py --checkpoint

The GRUs are trained with the first seed, the transformers with each; the means are those of all seeds together.

Models, data, decoding and the loss are the chapters'. `--validate` reads the validation captions only: it is how the
settings below were chosen. Without it, each finished model also reads the test captions, once. A run goes on from its
last epoch when it was stopped, and one on record is not run again: delete its file in `results/runs/` for that.
`--checkpoint` writes the small file with which chapter 10 translates without training.
"""

import argparse
import ctypes
import hashlib
import io
import os
import random
import sys
from pathlib import Path

import sentencepiece
import torch
from report import clocks, cost_together, parse_settings, precision_of, read_answers, run_path, watched, write_run
from sacrebleu.metrics import BLEU
from torch import Tensor, nn
from torchtext import data

HERE = Path(__file__).resolve().parent
os.chdir(HERE.parent / "solutions" / "10_multi30k_translator")  # where chapters find each other

import autograder.chapters  # noqa: E402, F401, I001
import encoder_decoder as chapter_09  # noqa: E402
import imdb_classification as chapter_07  # noqa: E402
import multi30k_translator as chapter_10  # noqa: E402
import seq2seq_attention as chapter_08  # noqa: E402
import transformer_block as chapter_06  # noqa: E402

EXPERIMENT = "German captions to English (Multi30k)"
METRIC = "BLEU on test_2016_flickr, read once by each model after training; settings were chosen on validation captions"
CONSENSUS = (
    "consensus: of the translations (beam 5) by each transformer and each mean, the one with the highest mean sentence "
    "BLEU against all of them, in lower-cased tokens."
)
UNK, PAD, SOS, EOS = range(4)
BEAM = 5
FILES = {"valid": "val", "test": "test2016"}
TRANSFORMER = {"units": "subwords", "vocabulary": 3000} | chapter_10.FULL | {"epochs": 26}
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
RECIPES = {
    "gru": GRU | {"attention": False},
    "gru_attention": GRU,
    "words": TRANSFORMER | {"units": "words", "epochs": chapter_10.FULL["epochs"]},
    "subwords": TRANSFORMER,
}
ENSEMBLES = {"words_mean": "words", "subwords_mean": "subwords"}
TITLES = {
    "gru": "GRU without attention, words",
    "gru_attention": "GRU with attention, words",
    "words": "transformer, words",
    "subwords": "transformer, subwords",
    "words_mean": "mean of the word transformers' probabilities",
    "subwords_mean": "mean of the subword transformers' probabilities",
    "consensus": "consensus of all transformers and both means",
}


def train_subwords(lines: list[str], vocabulary: int) -> bytes:
    """A SentencePiece model of byte pairs, German and English together, with the chapters' special tokens."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        model_type="bpe",
        vocab_size=vocabulary,
        character_coverage=1.0,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=SOS,
        eos_id=EOS,
        minloglevel=2,
    )
    return written.getvalue()


def read_lines(root: Path, name: str) -> list[str]:
    """The captions of one file, such as `train.de`."""
    return (root / "multi30k" / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


class Captions:
    """The three splits as chapter 08 has them, in words or subwords.

    Args:
        root: the folder that holds `multi30k`.
        recipe: its `units`, and the size of the `vocabulary` of subwords.
    """

    def __init__(self, root: Path, recipe: dict) -> None:
        self.references = {split: read_lines(root, f"{name}.en") for split, name in FILES.items()}
        self.subwords = None
        if recipe["units"] == "words":
            german, english = chapter_08.caption_fields()
            self.train, self.valid, self.test = chapter_08.load_captions(root, german, english)
            german.build_vocab(self.train, min_freq=2)
            english.build_vocab(self.train, min_freq=2)
            self.sizes, self.words = (len(german.vocab), len(english.vocab)), english.vocab.itos
            return
        lines = [
            (read_lines(root, f"{name}.de"), read_lines(root, f"{name}.en")) for name in ("train", "val", "test2016")
        ]
        self.model_file = train_subwords(lines[0][0] + lines[0][1], recipe["vocabulary"])
        self.subwords = sentencepiece.SentencePieceProcessor(model_proto=self.model_file)
        ends = {"use_vocab": False, "init_token": SOS, "eos_token": EOS, "pad_token": PAD, "batch_first": True}
        fields = [("src", data.Field(include_lengths=True, **ends)), ("trg", data.Field(is_target=True, **ends))]
        splits = []
        for pair in lines:
            numbers = zip(*(self.subwords.encode(side) for side in pair), strict=True)
            splits.append(data.Dataset([data.Example.fromlist(both, fields) for both in numbers], fields))
        self.train, self.valid, self.test = splits
        self.sizes = (len(self.subwords), len(self.subwords))

    def tokens(self, translations: list[list[int]]) -> list[list[str]]:
        """The translations in lower-cased tokens, whatever they were written in."""
        if self.subwords is None:
            return [[self.words[number] for number in numbers] for numbers in translations]
        return [chapter_08.cut_english(self.subwords.decode(numbers)) for numbers in translations]

    def scores(self, split: str, translations: list[list[int]], how: str) -> dict[str, float]:
        """BLEU of the translations of a split, by each definition that fits."""
        references = [chapter_08.cut_english(line) for line in self.references[split]]
        values = {f"tokens, lower case, {how}": chapter_10.corpus_bleu(self.tokens(translations), references)}
        if self.subwords is not None:
            texts = [self.subwords.decode(numbers) for numbers in translations]
            for title, lowercase in (("lower case", True), ("cased", False)):
                bleu = BLEU(lowercase=lowercase).corpus_score(texts, [self.references[split]])
                values[f"sacreBLEU, {title}, {how}"] = bleu.score
        return {name: round(value, 2) for name, value in values.items()}


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
        "The models are the chapters'. To save time, transformers trained and decoded with torch's layer norm and a "
        "faster dropout in place of chapter 06's norm and torch's dropout: the same functions, up to rounding.",
    ]


class QuickDropout(nn.Module):
    """Dropout with one random byte for a number, so that the probability is a multiple of 1/256.

    Torch draws a random number with 53 bits for each number on a CPU, which is a fifth of a training step.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.dropped = round(256 * probability)

    def forward(self, x: Tensor) -> Tensor:
        """Drop some numbers while training."""
        if not self.training or self.dropped == 0:
            return x
        eights = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        kept = eights.view(torch.uint8)[: x.numel()].view(x.shape) >= self.dropped
        return x * kept.to(x.dtype).mul_(256 / (256 - self.dropped))


def quicken(model: nn.Module) -> nn.Module:
    """Swap dropout and layer norms for faster ones that do the same; the state dict stays the chapters'."""
    for part in list(model.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Dropout):
                setattr(part, name, QuickDropout(child.p))
            elif isinstance(child, chapter_06.LayerNorm):
                setattr(part, name, nn.LayerNorm(len(child.weight), eps=child.eps))
    return model


def keep_freed_memory() -> None:
    """Tell glibc to reuse large blocks: getting them anew from the system is a tenth of a training step."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(-4, 0)  # M_MMAP_MAX
            libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def new_model(recipe: dict, sizes: tuple[int, int]) -> nn.Module:
    """A GRU translator of chapter 08 or a transformer of chapter 09."""
    if "encoder_hidden" in recipe:
        widths = [recipe[key] for key in ("dim", "encoder_hidden", "decoder_hidden", "dropout")]
        decoder = chapter_08.GRUDecoder(sizes[1], *widths)
        if not recipe["attention"]:
            decoder.attention = chapter_08.EqualWeights()
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
        self.members = nn.ModuleList(members)

    def encode(self, source: Tensor) -> Tensor:
        """The members' memories side by side, `(B, m, members · d)`."""
        return torch.cat([member.encode(source) for member in self.members], dim=-1)

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """Log-probabilities of the token that follows the target, `(B, 1, V)`: decoding asks for no others."""
        parts = memory.chunk(len(self.members), dim=-1)
        each = [m.decode(target, part, source)[:, -1:] for m, part in zip(self.members, parts, strict=True)]
        return torch.stack(each).softmax(dim=-1).mean(dim=0).log()


def close_batches(dataset: data.Dataset, tokens: int, seed: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Batches like those of `caption_batches`, a fifth fewer: cut from one sorted list, they hold less padding."""
    chance = random.Random(seed)
    examples = sorted(dataset, key=lambda e: (len(e.src), len(e.trg), chance.random()))
    groups = list(data.batch(examples, tokens, chapter_08.larger_rectangle))
    chance.shuffle(groups)
    german, english = dataset.fields["src"], dataset.fields["trg"]
    return [(*german.process([e.src for e in group]), english.process([e.trg for e in group])) for group in groups]


def logits_of(model: nn.Module, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    """Scores for each target token after the first, given the true ones before it."""
    with chapter_07.mixed_precision():
        if isinstance(model, chapter_08.Seq2Seq):
            return model(source, lengths, target, teacher_forcing=1.0).float()
        return model(source, target[:, :-1]).float()


@torch.no_grad()
def mean_loss(model: nn.Module, captions: Captions) -> float:
    """The cross-entropy of a validation token."""
    model.eval()
    total = count = 0
    for source, lengths, target in chapter_08.caption_batches(captions.valid, 4000):
        real = int((target[:, 1:] != PAD).sum())
        loss = chapter_10.label_smoothed_loss(logits_of(model, source, lengths, target), target[:, 1:], 0.0, PAD)
        total, count = total + real * loss.item(), count + real
    return total / count


@torch.no_grad()
def gru_decode(model: nn.Module, source: Tensor, lengths: Tensor, max_len: int) -> list[list[int]]:
    """`greedy_decode` for chapter 08's translator."""
    outputs, hidden = model.encoder(source, lengths)
    mask = torch.arange(source.shape[1]) < lengths.unsqueeze(1)
    token, written = torch.full((len(source),), SOS), []
    for _ in range(max_len):
        logits, hidden, _ = model.decoder(token, hidden, outputs, mask)
        token = logits.argmax(dim=-1)
        written.append(token)
    return [chapter_10.cut(row, EOS) for row in torch.stack(written, dim=1).tolist()]


def translate(model: nn.Module, dataset: data.Dataset, beam: int = 1) -> list[list[int]]:
    """Token numbers of the translation of each caption, in the order of the data set."""
    model.eval()
    order = sorted(range(len(dataset)), key=lambda i: len(dataset[i].src))
    found = {}
    for start in range(0, len(order), 64):
        numbers = order[start : start + 64]
        source, lengths = dataset.fields["src"].process([dataset[i].src for i in numbers])
        longest = source.shape[1] + 20
        if isinstance(model, chapter_08.Seq2Seq):
            translations = gru_decode(model, source, lengths, longest)
        elif beam == 1:
            translations = chapter_10.greedy_decode(model, source, longest, SOS, EOS)
        else:
            translations = chapter_10.beam_search(model, source, beam, longest, SOS, EOS)
        found |= dict(zip(numbers, translations, strict=True))
    return [found[i] for i in range(len(order))]


def rate_factor(step: int, warmup: int, total: int) -> float:
    """By how much to multiply the rate: up in a line, then down to 0 in a line."""
    return min((step + 1) / warmup, max(0.0, (total - step) / (total - warmup)))


def state_path(root: Path, name: str, seed: int, recipe: dict) -> Path:
    """Where the state of one training is kept; other settings, another file."""
    key = hashlib.sha256(repr(sorted(recipe.items())).encode()).hexdigest()[:8]
    return root / "cache" / f"multi30k-{name}-{seed}-{key}.pt"


def train(model: nn.Module, captions: Captions, recipe: dict, seed: int, path: Path) -> dict:
    """Train a model, or go on from its last epoch.

    Returns:
        What its record holds: the losses of each epoch, and what the training cost.
    """
    optimizer = torch.optim.AdamW(model.parameters(), recipe["rate"], betas=(0.9, 0.98), fused=True)
    history, spent = [], {"seconds": 0.0, "processor_seconds": 0.0}
    if path.exists():
        state = torch.load(path, weights_only=True)
        history, spent = state["history"], state["spent"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for epoch in range(len(history), recipe["epochs"]):
        read = clocks()
        torch.manual_seed(1000 * seed + epoch)
        batches = close_batches(captions.train, recipe["tokens_in_a_batch"], 1000 * seed + epoch)
        # Epochs differ by a batch or two: the schedule is one of epochs and their fractions.
        total = recipe["epochs"] * len(batches)
        step, losses = epoch * len(batches), 0.0
        model.train()
        for source, lengths, target in watched(batches, f"{path.stem}, epoch {epoch + 1} of {recipe['epochs']}"):
            for group in optimizer.param_groups:
                group["lr"] = recipe["rate"] * rate_factor(step, recipe["warmup"], total)
            logits = logits_of(model, source, lengths, target)
            loss = chapter_10.label_smoothed_loss(logits, target[:, 1:], recipe["smoothing"], PAD)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step, losses = step + 1, losses + loss.item()
        cost = read()
        spent = cost | {key: round(spent[key] + cost[key], 1) for key in ("seconds", "processor_seconds")}
        history.append([round(losses / len(batches), 4), round(mean_loss(model, captions), 4)])
        print(f"\nlosses {history[-1]}, {spent['processor_seconds']} processor seconds", file=sys.stderr, flush=True)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "history": history, "spent": spent}
        chapter_07.save(state, path)
    return spent | {"history": history}


def load_finished(root: Path, kind: str, seed: int, recipe: dict) -> dict:
    """The state of a training that is over.

    Raises:
        FileNotFoundError: it is not over, or has not begun.
    """
    path = state_path(root, kind, seed, recipe)
    state = torch.load(path, weights_only=True) if path.exists() else {"history": []}
    if len(state["history"]) < recipe["epochs"]:
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
        member.load_state_dict(state["model"])
    return Ensemble(members), cost_together([state["spent"] for state in states])


def answers_path(root: Path, split: str, name: str, label: str) -> Path:
    """Where the translations of a split are kept, in tokens."""
    return root / "cache" / f"captions-{split}" / f"{name}-{label}.pt"


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
    references = [chapter_08.cut_english(line) for line in read_lines(root, f"{FILES[split]}.en")]
    return cost_together([record for record, _ in answers[: len(singles)]]) | {
        "model": TITLES["consensus"],
        "epochs": "–",
        "seed": together,
        "values": {f"tokens, lower case, beam {BEAM}": round(chapter_10.corpus_bleu(chosen, references), 2)},
        "notes": [*signatures(), CONSENSUS],
    }


def run(name: str, seeds: list[int], recipe: dict, root: Path, captions: Captions, validate: bool) -> dict:
    """Train one model, or combine those of several seeds; translate with it, and say what came out."""
    if name in ENSEMBLES:
        model, spent = combine(ENSEMBLES[name], seeds, recipe, root, captions)
    else:
        torch.manual_seed(seeds[0])
        model = new_model(recipe, captions.sizes)
        spent = train(model, captions, recipe, seeds[0], state_path(root, name, seeds[0], recipe))
    values, split = {}, "valid" if validate else "test"
    for beam in (1,) if "encoder_hidden" in recipe else (1, BEAM):
        translations = translate(model, getattr(captions, split), beam)
        values |= captions.scores(split, translations, "greedy" if beam == 1 else f"beam {beam}")
    label = "+".join(map(str, seeds))
    record = {
        "experiment": EXPERIMENT,
        "data": "29,000 captions to train on, 1,014 to choose settings with, 1,000 to test with",
        "metric": METRIC,
        "model": TITLES[name],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "epochs": recipe["epochs"],
        "seed": seeds[0] if len(seeds) == 1 else label,
        "precision": precision_of(chapter_07.mixed_precision()),
        "recipe": recipe,
        "values": values,
        "notes": signatures(),
    } | spent
    chapter_07.save((record, captions.tokens(translations)), answers_path(root, split, name, label))
    return record


def write_checkpoint(root: Path, folder: Path) -> None:
    """Keep what translating needs of the finished subword training: weights in half precision, settings, subwords.

    Raises:
        FileNotFoundError: there is no such training.
    """
    recipe = RECIPES["subwords"]
    captions = Captions(root, recipe)
    state = load_finished(root, "subwords", 0, recipe)
    # The encoder's table and the output's are the decoder's, and sines need no storing.
    weights = {
        name: value.half()
        for name, value in state["model"].items()
        if not name.endswith("positions.pe") and name not in ("encoder.embedder.embedding.weight", "output.weight")
    }
    names = ("dim", "heads", "depth", "hidden", "dropout")
    settings = dict(zip(("source_vocab", "target_vocab"), captions.sizes, strict=True))
    settings |= {name: recipe[name] for name in names} | {"pad_id": PAD}
    kept = {"settings": settings, "state": weights, "history": state["history"], "lower": False}
    chapter_07.save(kept, folder / "translator.pt")
    (folder / "translator.model").write_bytes(captions.model_file)


def main() -> None:
    """Train what is asked for and keep each result."""
    parser = argparse.ArgumentParser(
        description="Measure the translators of chapters 08 to 10 on the full Multi30k data."
    )
    parser.add_argument("--models", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--validate", action="store_true", help="report on the validation captions; keep nothing")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="other settings, to validate")
    parser.add_argument("--checkpoint", action="store_true", help="write the file that chapter 10 translates with")
    given = parser.parse_args()
    if given.set and not given.validate:
        parser.error("--set goes with --validate: what is kept has the settings of this file")
    changes = parse_settings(given.set)
    root = chapter_07.data_root("multi30k")
    if root.name != "full":
        sys.exit("error: the full data are not there: python data/download.py")
    if given.checkpoint:
        write_checkpoint(root, Path.cwd())
        return
    keep_freed_memory()
    torch.set_flush_denormal(True)
    for name in given.models:
        if name == "consensus":
            recipe = captions = None  # it reads what others have written
        else:
            recipe = RECIPES[ENSEMBLES.get(name, name)] | changes
            captions = Captions(root, recipe)
        if name not in RECIPES:
            groups = [given.seeds]  # one run of them all
        else:
            groups = [[seed] for seed in (given.seeds[:1] if "encoder_hidden" in recipe else given.seeds)]
        for seeds in groups:
            label = "+".join(map(str, seeds))
            if not given.validate and run_path(EXPERIMENT, TITLES[name], label).exists():
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
