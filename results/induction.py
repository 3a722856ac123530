"""Chapter 11: small language models that have learnt to copy, one for each seed.

    python results/induction.py
    python results/induction.py --one-layer
    python results/induction.py --apart

Two layers of two heads, trained by the chapter's own loop on random rows that repeat themselves until they copy nearly
all of it. What ships with the chapter are their weights, in half precision: the chapter looks for heads in them.

`--one-layer` records how much one layer copies after the chapter's 500 steps, and what it copies where its queries and
keys see no tokens, or are not rotated; and the first two after 3,000 steps.

`--apart` records what the shipped models copy while one map of the second layer alone reads a stream without one head
of the first.
"""

import argparse
import os
import sys
from pathlib import Path

import torch
from report import clocks, write_run
from torch import Tensor

from attention_course.training import save

os.chdir(Path(__file__).resolve().parent.parent / "solutions" / "11_language_model")  # where chapters find each other

import autograder.course.imports  # noqa: E402, F401, I001
import language_model as chapter_11  # noqa: E402

SEEDS, STEPS, RATE = range(8), 1200, 3e-3
SIZES = {"vocab_size": 32, "dim": 64, "heads": 2, "depth": 2, "hidden": 128}
LENGTH, FIRST = 33, 3  # of a row; the first tokens are special ones


def draw_repeated(chance: torch.Generator, count: int = 32) -> tuple[Tensor, Tensor]:
    """The chapter's random rows that repeat themselves, `(count, LENGTH)`, and their periods, `(count, 1)`."""
    tokens = torch.randint(FIRST, SIZES["vocab_size"], (count, LENGTH), generator=chance)
    periods = torch.randint(LENGTH // 4, LENGTH // 2 + 1, (count, 1), generator=chance)
    return tokens.gather(1, torch.arange(LENGTH) % periods), periods


def ship() -> None:
    """Train eight and keep their weights."""
    kept = []
    for seed in SEEDS:
        read = clocks()
        torch.manual_seed(seed)
        model = chapter_11.LanguageModel(**SIZES)
        chance = torch.Generator().manual_seed(seed)
        losses = chapter_11.fit(model, lambda chance=chance: draw_repeated(chance)[0], STEPS, RATE)
        print(f"seed {seed}: loss {losses[-1]:.2f}, {read()['processor_seconds']} processor s", file=sys.stderr)
        kept.append({name: value.half() for name, value in model.state_dict().items()})
    save({"settings": SIZES, "steps": STEPS, "states": kept}, Path("copiers.pt"))


def see_no_tokens(layer: torch.nn.Module) -> None:
    """Let queries and keys be made of the same vector everywhere: what is left to them are their positions."""
    for name in ("Wq", "Wk"):
        layer.get_submodule(f"attention.{name}").register_forward_pre_hook(lambda _, x: (torch.ones_like(x[0]),))


@torch.no_grad()
def copied(model: torch.nn.Module) -> float:
    """How many per cent of the tokens that come back are the likeliest, on 1,000 rows of their own."""
    tokens, periods = draw_repeated(torch.Generator().manual_seed(1000), 1000)
    right = model(tokens[:, :-1])[0].argmax(dim=-1) == tokens[:, 1:]
    return 100 * right[torch.arange(1, LENGTH) >= periods].float().mean().item()


WHOLE, BLIND, UNTURNED = "one layer", "one layer, queries and keys see no tokens", "one layer, not rotated"


def take_one_layer_apart(experiment: str, titles: tuple[str, ...], steps: int) -> None:
    """Record what one layer copies, whole, without tokens in its queries and keys, and without rotation."""
    rotate = chapter_11.rotate
    for title in titles:
        for seed in range(4):
            read = clocks()
            torch.manual_seed(seed)
            model = chapter_11.LanguageModel(**SIZES | {"depth": 1})
            if title == BLIND:
                see_no_tokens(model.layers[0])
            chapter_11.rotate = (lambda x, _: x) if title == UNTURNED else rotate
            chance = torch.Generator().manual_seed(seed)
            chapter_11.fit(model, lambda chance=chance: draw_repeated(chance)[0], steps, RATE)
            run = {
                "experiment": experiment,
                "data": f"Random rows that repeat themselves, {steps:,} steps of 32",
                "metric": "Of the tokens that come back, in per cent, those that are the likeliest",
                "model": title,
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                "epochs": "–",
                "seed": seed,
                "precision": "float32",
                "values": {"copied": round(copied(model), 1)},
            }
            print(title, seed, run["values"], flush=True)
            write_run(run | read())
    chapter_11.rotate = rotate


def copied_apart(model: torch.nn.Module, part: str, head: int, *, mean: bool) -> float:
    """What is copied if one map of the second layer alone reads a stream without a head of the first.

    Args:
        model: two layers.
        part: the map, such as "Wk".
        head: of the first layer.
        mean: the head's own mean takes its place; else nothing does.
    """
    size = SIZES["dim"] // SIZES["heads"]
    out, target = (model.get_submodule(f"layers.{layer}.attention.{name}") for layer, name in enumerate(("WO", part)))

    def cut(_: torch.nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        heads = inputs[0].unflatten(-1, (-1, size)).clone()
        heads[:, :, head] = heads[:, :, head].mean(dim=(0, 1)) if mean else 0
        return (heads.flatten(-2),)

    seen = []
    hooks = [out.register_forward_pre_hook(cut), target.register_forward_hook(lambda *given: seen.append(given[-1]))]
    copied(model)
    for hook in hooks:
        hook.remove()
    hook = target.register_forward_hook(lambda *_: seen[0])
    share = copied(model)
    hook.remove()
    return share


@torch.no_grad()
def looks_back(model: torch.nn.Module) -> list[int]:
    """How many places back each head of the first layer looks most."""
    tokens, _ = draw_repeated(torch.Generator().manual_seed(1000), 1000)
    weights = chapter_11.attention_maps(model, tokens)[:, 0]
    return torch.stack([weights.diagonal(-k, -2, -1).mean(dim=(0, -1)) for k in range(8)]).argmax(dim=0).tolist()


def take_circuits_apart() -> None:
    """Record, for each of the models that ship, which map of the second layer misses which head of the first."""
    for seed, state in enumerate(torch.load("copiers.pt", weights_only=True)["states"]):
        model = chapter_11.LanguageModel(**SIZES)
        model.load_state_dict({name: value.float() for name, value in state.items()}, strict=False)
        backs, whole = looks_back(model), round(copied(model), 1)
        for name, head in (("farther", backs.index(max(backs))), ("less far", backs.index(min(backs)))):
            for mean in (False, True):
                read = clocks()
                shares = {part: round(copied_apart(model, part, head, mean=mean), 1) for part in ("Wq", "Wk", "Wv")}
                run = {
                    "experiment": "Copying without a head of the first layer (chapter 11)",
                    "data": "The eight models that ship with the chapter, random rows that repeat themselves",
                    "metric": "Of the tokens that come back, in per cent, those that are the likeliest, where only the "
                    "named map of the second layer reads without the head",
                    "model": f"without the head that looks {name} back{', its mean in its place' if mean else ''}",
                    "parameters": sum(parameter.numel() for parameter in model.parameters()),
                    "epochs": "–",
                    "seed": seed,
                    "precision": "float32",
                    "values": {"copied, whole": whole, "places back": backs[head], **shares},
                }
                print(run["model"], seed, run["values"], flush=True)
                write_run(run | read())


def main() -> None:
    """Train what is asked for."""
    parser = argparse.ArgumentParser(description="Train chapter 11's models that copy.")
    parser.add_argument("--one-layer", action="store_true", help="record what one layer copies, and by what")
    parser.add_argument("--apart", action="store_true", help="record which map misses which head of the first layer")
    given = parser.parse_args()
    torch.set_num_threads(1)
    chapter_11.PAD = 0  # what `fit` leaves out: the chapter reads it from its subwords, and no row here has one
    if given.one_layer:
        take_one_layer_apart("Copying with one layer (chapter 11)", (WHOLE, BLIND, UNTURNED), 500)
        take_one_layer_apart("Copying with one layer, six times as long (chapter 11)", (WHOLE, BLIND), 3000)
    elif given.apart:
        take_circuits_apart()
    else:
        ship()


if __name__ == "__main__":
    main()
