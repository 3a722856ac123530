"""Chapter 12 on the full data: what a body that has read first makes of few labels and of many.

    python results/pretraining.py --minutes … --decay …
    python results/reading.py [--ways full lora frozen scratch regression] [--labels 100 1000 25000] [--seeds 0 1 2]
    python results/reading.py --validate [--ways …] [--labels …] [--set epochs=2 …] [--body FILE]
    python results/reading.py --longer --body results/bodies/longer.pt --device cuda --ways full
    python results/reading.py --compare
    python results/reading.py --together
    python results/reading.py --longer --compare --together --labels 25000

Each way is tried on three draws of labelled training reviews, the same for all ways; of all 25,000 there is one draw,
and a seed is that of a training. `--validate` draws from the training reviews without those of the last tenth by
number, reports on these and opens no test review: it is how to choose settings. The body has read the text of these
held-out reviews too, without their labels, as it has read that of all training reviews; it has read no test review. A
run on record is not run again: delete its file in `results/runs/`. `--longer`: the body has read longer than the one
that ships, and has rows of its own.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from imdb import ANSWERS as IMDB_ANSWERS
from imdb import REGRESSIONS, right_of, run_regression, scored, write_difference
from pretraining import Body, load_pieces, load_rows, new_body, state_path
from quick import half_precision, keep_freed_memory
from report import (
    STARTED_IN,
    clocks,
    cost_together,
    full_data,
    on_record,
    parse_settings,
    precision_of,
    read_answers,
    watched,
    write_run,
)
from sklearn.linear_model import LogisticRegression
from subwords import PAD
from torch import Tensor, nn
from torch.nn import functional as F
from torchtext import data

from attention_course.bodies import load_export
from attention_course.data import cache_folder, load_reviews, read_reviews, review_fields
from attention_course.training import save

EXPERIMENT = "Film reviews (IMDB), judged after reading"
METRIC = "Accuracy in percent on the official test set, read once by each model after training"
WAYS = {
    "full": "a body that has read, all of it fine-tuned",
    "lora": "a body that has read, fine-tuned by LoRA",
    "frozen": "a body that has read, frozen",
    "scratch": "the same body, which has read nothing",
    "regression": "logistic regression, NB-weighted words, pairs and triples",
}
TOGETHER = {
    "mean of the body that has read, fine-tuned, and the NB-weighted regression": ("full", "regression"),
    "mean of the body that has read, fine-tuned, and both regressions": ("full", "regression", "vectors"),
}
DRAWN_ONLY = {"frozen", "regression"}  # nothing else in them is drawn: with all labels, one run of them is all runs
COMPARED = [("full", "scratch"), ("full", "regression"), ("full", "lora"), ("full", "frozen"), ("frozen", "scratch")]
COMPARED_LONGER = [("full", "full"), ("full", "regression")]  # each way, longer, with another
READ_AHEAD = (
    "the mean with both regressions: the vector for each review that one of them reads "
    "was fitted on all reviews together, the test reviews' text included, their labels not."
)
READ_LONGER = (
    "a body that has read longer: 239 million pieces where the one that ships has read 149 million, 64 blocks in a "
    "batch where that had 16, on a graphics card; differences are to the one that ships tuned on the same card, which "
    "had 91.22 ± 0.03 there."
)
ALL = 25_000
HELD_OUT = 0.1  # of the training reviews, those of the last numbers, to choose settings
TUNING = {
    "longest": 512,  # pieces of a review that are read: its last
    "tokens_in_a_batch": 4000,
    "steps": 600,  # at least so many, whatever the number of labels
    "epochs": 3,  # at least
    "rate": 1e-3,  # of the head
    "layer_decay": 0.8,
    "dropout": 0.1,
    "weight_decay": 0.01,
    "rank": 8,
    "alpha": 16,
    "C": 0.01,  # of the regression on what a frozen body says
}
# Settings that differ from those by way; to be chosen by --validate.
CHANGES = {"full": {}, "lora": {"layer_decay": 1.0}, "frozen": {}, "scratch": {"layer_decay": 1.0}, "regression": {}}


class ReviewClassifier(nn.Module):
    """A body, the mean over real tokens of what it says, and a linear layer.

    A text longer than the body can take is read in windows, one after another.

    Args:
        body: `body(tokens)` is `(B, n, dim)` for tokens `(B, n)`, n at most `body.max_len`.
        dim: features of each position.
        num_classes: how many classes there are.
        pad_id: the number of the padding token.
    """

    def __init__(self, body: Body, dim: int, num_classes: int, pad_id: int) -> None:
        super().__init__()
        self.body: Body = body
        self.pad_id = pad_id
        self.dropout = nn.Dropout(0.0)
        self.head = nn.Linear(dim, num_classes)

    def summary(self, tokens: Tensor) -> Tensor:
        """The mean of what the body says of each text, `(B, dim)`."""
        rows, n = tokens.shape
        length = min(n, self.body.max_len)
        padded = F.pad(tokens, (0, -n % length), value=self.pad_id)
        windows = padded.view(-1, length)
        real = windows != self.pad_id
        some = real.any(dim=1)
        read = self.body(windows[some])  # a window of a short text's padding alone is not read
        totals = read.new_zeros(len(windows), read.shape[2])
        totals[some] = read.masked_fill(~real[some].unsqueeze(-1), 0.0).sum(dim=1)
        return totals.view(rows, -1, read.shape[2]).sum(1) / (tokens != self.pad_id).sum(1, keepdim=True).clamp(min=1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Log-probabilities, `(B, num_classes)`."""
        return F.log_softmax(self.head(self.dropout(self.summary(tokens))), dim=-1)


def layer_rates(model: ReviewClassifier, rate: float, decay: float) -> list[dict]:
    """Groups for an optimizer: the head at `rate`, each layer below at `decay` times the one above, tables lowest."""
    body = model.body
    layers = [model.head, body.norm, *reversed(body.blocks)]
    powers = [0, 0, *range(1, len(body.blocks) + 1)]
    groups = [
        {"params": [p for p in layer.parameters() if p.requires_grad], "lr": rate * decay**power}
        for layer, power in zip(layers, powers, strict=True)
    ]
    lowest = [p for name, p in body.named_parameters() if not name.startswith(("blocks.", "norm.")) and p.requires_grad]
    groups.append({"params": lowest, "lr": rate * decay ** (len(body.blocks) + 1)})
    return [group for group in groups if group["params"]]


class LowRank(nn.Module):
    """A frozen linear layer with a learned change of low rank beside it (Hu et al., 2022).

    Args:
        linear: stays as it is.
        rank: of the change.
        alpha: the change is multiplied by `alpha / rank`.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output and the change."""
        return self.linear(x) + self.scale * F.linear(F.linear(x, self.A), self.B)


def add_low_rank(body: Body, rank: int, alpha: float) -> None:
    """Freeze a body, with a `LowRank` in the place of each query's and each value's map."""
    body.requires_grad_(False)
    for block in body.blocks:
        for name in ("Wq", "Wv"):
            setattr(block.attention, name, LowRank(getattr(block.attention, name), rank, alpha))


# ---- reviews


def batches(rows: list[np.ndarray], longest: int, tokens: int, chance: np.random.Generator | None) -> list[list]:
    """Positions of reviews of similar length, about so many tokens together; in random order if there is a chance."""
    noise = chance.random(len(rows)) if chance else np.zeros(len(rows))
    lengths = np.array([min(len(row), longest) for row in rows])
    order = np.argsort(lengths * (1 + 0.1 * noise), kind="stable")
    groups: list[list] = []
    group: list = []
    widest = 0
    for i in order:
        widest = max(widest, lengths[i])
        if group and widest * (len(group) + 1) > tokens:
            groups.append(group)
            group, widest = [], lengths[i]
        group.append(i)
    groups.append(group)
    if chance:
        chance.shuffle(groups)
    return groups


def padded(rows: list[np.ndarray], chosen: list[int], longest: int) -> Tensor:
    """The last pieces of the chosen reviews, `(B, n)`, padding behind."""
    ends = [torch.from_numpy(rows[i][-longest:].astype(np.int64)) for i in chosen]
    return nn.utils.rnn.pad_sequence(ends, batch_first=True, padding_value=PAD)


def draw(labels: Tensor, count: int, seed: int) -> np.ndarray:
    """Positions of so many reviews, as many of each label; all of them if there are no more."""
    if count >= len(labels):
        return np.arange(len(labels))
    chance = np.random.default_rng(seed)
    kinds = [np.flatnonzero(labels.numpy() == label) for label in (0, 1)]
    return np.sort(np.concatenate([chance.choice(kind, count // 2, replace=False) for kind in kinds]))


# ---- ways


def first_model(way: str, state: dict, settings: dict) -> ReviewClassifier:
    """A classifier as it is before it has seen a label."""
    body = new_body(state["objective"], state["sizes"], settings["dropout"])
    if way != "scratch":
        body.load_state_dict(state["weights"])
    if way == "lora":
        add_low_rank(body, settings["rank"], settings["alpha"])
    model = ReviewClassifier(body, state["sizes"]["dim"], 2, PAD)
    model.dropout.p = settings["dropout"]
    return model


def tune(model: ReviewClassifier, rows: list[np.ndarray], labels: Tensor, settings: dict, seed: int, title: str) -> int:
    """Train what of the classifier is not frozen; how many epochs that took."""
    chance = np.random.default_rng(seed)
    sizes = settings["longest"], settings["tokens_in_a_batch"]
    groups = layer_rates(model, settings["rate"], settings["layer_decay"])
    device = model.head.weight.device
    labels = labels.to(device)
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=settings["weight_decay"], fused=True)
    epochs = max(settings["epochs"], -(-settings["steps"] // len(batches(rows, *sizes, np.random.default_rng(0)))))
    order = [batch for _ in range(epochs) for batch in batches(rows, *sizes, chance)]
    total, warm = len(order), max(1, len(order) // 10)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (total - step) / (total - warm))
    )
    model.train()
    for chosen in watched(order, title):
        tokens = padded(rows, chosen, settings["longest"]).to(device)
        with half_precision(device.type):
            loss = F.nll_loss(model(tokens).float(), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    return epochs


@torch.no_grad()
def ask(answer: Callable[[Tensor], Tensor], model: ReviewClassifier, rows: list[np.ndarray], settings: dict) -> Tensor:
    """`answer(tokens)` for each review, in order."""
    model.eval()
    device, longest = model.head.weight.device, settings["longest"]
    groups = batches(rows, longest, 8000, None)
    with half_precision(device.type):
        told = torch.cat([answer(padded(rows, chosen, longest).to(device)).float().cpu() for chosen in groups])
    return told[torch.from_numpy(np.argsort(np.concatenate(groups)))]


def judge_frozen(
    said: np.ndarray, said_of_test: np.ndarray, labels: np.ndarray, strength: float
) -> tuple[LogisticRegression, Tensor]:
    """A regression on what a frozen body says of reviews, and its probabilities for others."""
    middle, spread = said.mean(0), said.std(0) + 1e-6
    regression = LogisticRegression(C=strength, max_iter=2000).fit((said - middle) / spread, labels)
    return regression, torch.from_numpy(regression.predict_proba((said_of_test - middle) / spread))


def run_way(
    way: str,
    seed: int,
    state: dict,
    settings: dict,
    train: tuple,
    test: list[np.ndarray],
    title: str,
    device: str = "cpu",
) -> tuple[dict, Tensor]:
    """Train a classifier in one way; what its record holds, and its probabilities for the reviews to measure with."""
    rows, labels = train
    torch.manual_seed(seed)
    read = clocks(device)
    model = first_model(way, state, settings).to(device)
    epochs: int | str = "–"
    if way == "frozen":
        said, said_of_test = (ask(model.summary, model, part, settings).numpy() for part in (rows, test))
        regression, probabilities = judge_frozen(said, said_of_test, labels.numpy(), settings["C"])
        trained, cost = regression.coef_.size + 1, read()
    else:
        epochs = tune(model, rows, labels, settings, seed, title)
        cost = read()
        trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
        probabilities = ask(lambda tokens: model(tokens).exp(), model, test, settings)
    about = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "trained": trained,
        "epochs": epochs,
        "precision": precision_of(half_precision(device)),
        "settings": settings,
        "read": 0 if way == "scratch" else state["tokens"],
    }
    return cost | about, probabilities


def title_of(way: str, count: int, longer: bool = False) -> str:
    """What a way is called in tables."""
    return f"{told(WAYS[way], longer)}, {count:,} labels"


def told(title: str, longer: bool) -> str:
    """A title of the body that ships, or the same of the one that has read longer."""
    return title.replace("body that has read", "body that has read longer") if longer else title


def folder_of(folder: Path, longer: bool) -> Path:
    """Where the answers are kept of models with the body that ships, or with the one that has read longer."""
    return folder.with_name(f"{folder.name}-longer") if longer else folder


def answers_of(way: str, count: int, seeds: list[int], folder: Path) -> list[tuple[dict, Tensor]]:
    """What finished models of a way said of the test reviews."""
    numbers = [0] if count == ALL and way in DRAWN_ONLY else seeds
    return read_answers([folder / f"{way}-{count}-{number}.pt" for number in numbers])


def compare(counts: list[int], seeds: list[int], labels: Tensor, folder: Path, longer: bool) -> None:
    """Which of two ways is better on the same test reviews, each count of labels for itself."""
    for count in counts:
        for one, other in COMPARED_LONGER if longer else COMPARED:
            places = (one, folder_of(folder, longer)), (other, folder)
            try:
                right = [right_of(answers_of(way, count, seeds, place), labels) for way, place in places]
            except FileNotFoundError as error:
                print(f"{title_of(one, count, longer)} against {title_of(other, count)}: {error}", file=sys.stderr)
                continue
            title = f"{title_of(one, count, longer)} − {WAYS[other]}"
            write_difference(EXPERIMENT, title, "+".join(map(str, seeds)), *right)


def combine(seeds: list[int], labels: Tensor, folder: Path, longer: bool) -> None:
    """The mean of what finished models, taught by all labels, say of each test review: none counts more than another.

    Raises:
        FileNotFoundError: one of these models has not been run.
    """
    said = {
        "full": answers_of("full", ALL, seeds, folder_of(folder, longer)),
        "regression": answers_of("regression", ALL, seeds, folder),
        "vectors": read_answers([folder.parent / IMDB_ANSWERS / "vectors-0.pt"]),
    }
    for title, kinds in TOGETHER.items():
        kept = [said[kind] for kind in kinds]
        probabilities = torch.stack([torch.stack([p.double() for _, p in kind]).mean(0) for kind in kept]).mean(0)
        run = cost_together([record for kind in kept for record, _ in kind])
        score = scored(f"{told(title, longer)}, {ALL:,} labels", "+".join(map(str, seeds)), probabilities, labels)
        notes = {"notes": [READ_AHEAD]} if "vectors" in kinds else {}
        write_run(about_data(len(labels)) | notes | score | run)


def about_data(tested: int) -> dict[str, str]:
    """What every record says of the data and the measure."""
    told = f"75,000 reviews to read, some of them labelled, {tested:,} to test with"
    return {"experiment": EXPERIMENT, "data": told, "metric": METRIC}


def main() -> None:
    """Train what is asked for and keep each result."""
    parser = argparse.ArgumentParser(description="Measure what reading first brings, on the full IMDB data.")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 1000, ALL])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--body", type=Path, metavar="FILE", help="an exported one; else the decayed one in the cache")
    parser.add_argument("--longer", action="store_true", help="the body has read longer than the one that ships")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--validate", action="store_true", help="report on held-out training reviews; keep nothing")
    parser.add_argument("--compare", action="store_true", help="paired differences between finished models")
    parser.add_argument("--together", action="store_true", help="means of finished models that had all labels")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings, with --validate")
    given = parser.parse_args()
    if given.set and not given.validate:
        parser.error("settings are chosen with --validate")
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    root = full_data("imdb")
    keep_freed_memory()
    answers = cache_folder(root) / ("answers-reading-validation" if given.validate else "answers-reading")
    if given.compare or given.together:
        wanted = torch.tensor([review.label for review in read_reviews(root, "test")])
        if given.compare:
            compare(given.labels, given.seeds, wanted, answers, given.longer)
        if given.together:
            combine(given.seeds, wanted, answers, given.longer)
        return
    if given.body:
        state = load_export(STARTED_IN / given.body)
        pieces = state["pieces"]
    else:
        path = state_path(root, "masked", decayed=True)
        if not path.exists():
            raise FileNotFoundError(f"no {path}: python results/pretraining.py --decay MINUTES, or give --body FILE")
        state, pieces = torch.load(path, weights_only=True), load_pieces(root)
    rows, about = load_rows(root, pieces, "train")
    held = about["numbers"] > (1 - HELD_OUT) * about["numbers"].max()
    test_rows, test_about = ([], {}) if given.validate else load_rows(root, pieces, "test")
    inside = (~held if given.validate else torch.ones_like(held)).nonzero().squeeze(1).numpy()
    outside = held.nonzero().squeeze(1).numpy()
    test_labels = about["labels"][outside] if given.validate else test_about["labels"]
    if given.validate:
        test_rows = [rows[i] for i in outside]
    for count in given.labels:
        for seed in given.seeds:
            for way in given.ways:
                title = title_of(way, count, given.longer)
                if not given.validate and on_record(EXPERIMENT, title, seed):
                    continue
                chosen = inside[draw(about["labels"][inside], count, seed)]
                settings = TUNING | CHANGES[way] | parse_settings(given.set)
                if way == "regression":
                    text, label = review_fields()
                    train, test = load_reviews(root, text, label)
                    fields = list(train.fields.items())
                    part = data.Dataset([train[i] for i in chosen], fields)
                    measured = data.Dataset([train[i] for i in outside], fields) if given.validate else test
                    run, probabilities = run_regression(REGRESSIONS["bayes"], part, measured)
                else:
                    part = [rows[i] for i in chosen], about["labels"][chosen]
                    run, probabilities = run_way(way, seed, state, settings, part, test_rows, title, given.device)
                save((run, probabilities), folder_of(answers, given.longer) / f"{way}-{count}-{seed}.pt")
                score = scored(title, seed, probabilities, test_labels)
                if not given.validate:
                    drawn = ["parameters", "epochs"]  # the words of a draw, and how many steps an epoch has
                    notes = {"notes": [READ_LONGER]} if given.longer else {}
                    write_run(about_data(len(test_labels)) | {"drawn": drawn} | notes | score | run)


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
