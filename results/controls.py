"""Chapter 12's controls on the full data: what is it in reading that helps?

    python results/controls.py [--texts reviews shuffled captions part] [--tokens 4] [--seeds 0 1 2]

A new body for each text reads as many tokens of it as every other, by the same recipe, and is frozen. What it says of
the labelled reviews of a draw is all that a regression learns from, as in `reading.py`; beside it stand a body that has
read nothing, and the one that the chapter ships. All are measured on the reviews of the held-out films; no test review
is opened. Those of the held-out films have been read, without their labels, as other training reviews have. A reading
that was stopped goes on; a row on record is not measured again until its file is deleted.
"""

import argparse
import sys

import numpy as np
import torch
from imdb import right_of, scored, write_difference
from pretraining import HERE, SIZES, TEXTS, first_state, load_pieces, load_rows, new_body, read_anew
from quick import keep_freed_memory
from reading import HELD_OUT, TUNING, ReviewClassifier, ask, draw, judge_frozen
from report import clocks, precision_of, write_run
from subwords import PAD

from attention_course.bodies import load_export
from attention_course.data import data_root
from attention_course.training import mixed_precision

EXPERIMENT = "Film reviews (IMDB), held-out films: what a frozen body has read"
OTHERS = {"nothing": "nothing", "shipped": "the reviews, for hours: the body that ships"}
COUNTS = (100, 1000)


def title_of(text: str, count: int) -> str:
    """What a row is called."""
    return f"{(TEXTS | OTHERS)[text]}, {count:,} labels"


def main() -> None:
    """Let bodies read, and keep what they are worth."""
    parser = argparse.ArgumentParser(description="Measure what reading other texts brings, on held-out films.")
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS))
    parser.add_argument("--tokens", type=float, default=4.0, metavar="MILLIONS", help="that each body reads")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the draws of labelled reviews")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    root = data_root("imdb")
    if root.name != "full":
        sys.exit("error: the full data are not there: python data/download.py")
    keep_freed_memory()
    rows, about = load_rows(root, load_pieces(root), "train")
    held = about["numbers"] > (1 - HELD_OUT) * about["numbers"].max()
    outside, inside = (part.nonzero().squeeze(1).numpy() for part in (held, ~held))
    labels = about["labels"]
    drawn = {(n, seed): inside[draw(labels[inside], n, seed)] for n in COUNTS for seed in given.seeds}
    asked = np.unique(np.concatenate([outside, *drawn.values()]))
    right: dict[tuple[str, int], torch.Tensor] = {}
    for text in (*OTHERS, *given.texts):
        if text == "shipped":
            state = load_export(HERE.parent / "solutions" / "12_pretraining" / "body.pt")
        elif text == "nothing":
            state = first_state("masked", SIZES, seed=0)
        else:
            state = read_anew(text, given.tokens * 1e6, root, seed=0)
        body = new_body(state["objective"], state["sizes"])
        body.load_state_dict(state["weights"])
        model = ReviewClassifier(body, state["sizes"]["dim"], 2, PAD)
        read = clocks()
        said = ask(model.summary, model, [rows[i] for i in asked], TUNING).numpy()
        for count in COUNTS:
            answers: list[tuple[dict, torch.Tensor]] = []
            for seed in given.seeds:
                chosen = drawn[count, seed]
                here, there = (said[np.searchsorted(asked, part)] for part in (chosen, outside))
                regression, probabilities = judge_frozen(here, there, labels[chosen].numpy(), TUNING["C"])
                answers.append(({}, probabilities))
                where = {
                    "experiment": EXPERIMENT,
                    "data": f"{len(inside):,} labelled reviews to draw from, {len(outside):,} of other films to "
                    f"measure with; new bodies read {given.tokens:g} million tokens",
                    "metric": "Accuracy in percent on the held-out films of a regression on what a frozen body says",
                    "parameters": sum(p.numel() for p in model.parameters()),
                    "trained": regression.coef_.size + 1,
                    "epochs": "–",
                    "precision": precision_of(mixed_precision()),
                    "read": state["tokens"],
                    "losses": state["history"][-1:],
                }
                write_run(where | scored(title_of(text, count), seed, probabilities, labels[outside]) | read())
            right[text, count] = right_of(answers, labels[outside])
    together = "+".join(map(str, given.seeds))
    for text, count in right:
        if text != "reviews" and ("reviews", count) in right:
            title = f"{title_of('reviews', count)} − {(TEXTS | OTHERS)[text]}"
            write_difference(EXPERIMENT, title, together, right["reviews", count], right[text, count])


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
