"""What chapter 08 says of its own runs, on the invented sample."""

import re

from claims import Claim


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.\d+", text)]


def rows(text: str) -> dict[str, list[float]]:
    """The numbers of each line after its colon, by what stands before it."""
    parts = [line.rpartition(":") for line in text.splitlines() if ":" in line]
    return {name.strip(): numbers(values) for name, _, values in parts}


def last_losses(outputs: dict[str, str]) -> tuple[float, float]:
    """The validation loss of one vector, and of attention."""
    return numbers(outputs["train-without"])[-1], numbers(outputs["train-with"])[-1]


def exposure(outputs: dict[str, str]) -> list[float]:
    return [values[-1] for values in rows(outputs["exposure"]).values()]


def translations(outputs: dict[str, str]) -> dict[str, list[str]]:
    """Each kind of line that the chapter prints of its first validation captions."""
    kinds = ("German", "reference", "with attention", "one vector")
    lines = outputs["translate-run"].splitlines()
    return {kind: [line[15:].strip() for line in lines if line.startswith(kind.ljust(15))] for kind in kinds}


def by_length(outputs: dict[str, str]) -> list[float]:
    """What attention saves in each third, short captions first."""
    losses = rows(outputs["by-length"])
    pairs = zip(losses["one vector"], losses["with attention"], strict=True)
    return [round(one - other, 2) for one, other in pairs]


CLAIMS = [
    Claim("vocab-idea", "`<unk>` is 0 and `<pad>` is 1", lambda o: "['<unk>', '<pad>', '<sos>', '<eos>'" in o["vocab"]),
    Claim("bottleneck-reading", "4, 2, 1: half of it", lambda o: numbers(o["gru-cell"]) == [4.0, 2.0, 1.0]),
    Claim(
        "side-by-side-reading",
        "Both lines are the same",
        lambda o: numbers(o["side-by-side"])[:3] == numbers(o["side-by-side"])[3:],
    ),
    Claim("ex2", "Nothing: what is added", lambda o: numbers(o["no-bias"])[:3] == numbers(o["no-bias"])[3:]),
    Claim(
        "curves-reading",
        "attention has saved about a third of the loss",
        lambda o: 0.28 < 1 - last_losses(o)[1] / last_losses(o)[0] < 0.4,
    ),
    Claim("by-length-reading", "0.18, 0.30 and 0.37 nats", lambda o: by_length(o) == [0.18, 0.30, 0.37]),
    Claim("by-length-reading", "thirteen or fourteen invented captions", lambda o: "40 to validate" in o["load-run"]),
    Claim(
        "bottleneck-sound",
        "*a big dog is being carried by the river*",
        lambda o: "a big dog is being carried by the river ." in translations(o)["one vector"],
    ),
    Claim(
        "bottleneck-sound",
        "*unloading boxes in front of a shop* came through it unharmed",
        lambda o: "a woman is unloading boxes in front of a shop ." in translations(o)["one vector"],
    ),
    Claim(
        "alignment-reading",
        "the model with one vector, which cannot look anywhere, wrote the same sentence",
        lambda o: translations(o)["one vector"][4] == translations(o)["with attention"][4],
    ),
    Claim("exposure-reading", "about five times as large", lambda o: 4.5 < exposure(o)[-1] / exposure(o)[0] < 5.5),
    Claim("exposure-reading", "only half of the time, little is lost", lambda o: exposure(o)[1] < 1.3 * exposure(o)[0]),
]
