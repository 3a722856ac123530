"""What chapter 04 says of its runs."""

import re

from claims import Claim


def _shares(text: str, start: str) -> list[int]:
    """The percentages on the lines that begin so."""
    lines = [line for line in text.splitlines() if line.startswith(start)]
    assert lines, f"no line begins with {start!r}"
    return [int(share) for line in lines for share in re.findall(r"(\d+)%", line.partition(":")[2])]


def _ends(shares: list[int]) -> tuple[int, int]:
    return min(shares), max(shares)


def _weights(text: str, start: str) -> list[tuple[float, float]]:
    lines = [line for line in text.splitlines() if line.startswith(start)]
    return [tuple(map(float, re.search(r"first ([\d.]+), second ([\d.]+)", line).groups())) for line in lines]


def _heads_share_the_work(text: str) -> bool:
    runs = [sorted(_weights(text, f"two heads of 8, seed {seed}")) for seed in range(4)]
    return all(a[0] < 0.2 < 0.8 < a[1] and b[1] < 0.2 < 0.8 < b[0] for a, b in runs)


def _parameters(o: dict[str, str], name: str) -> int:
    """How many parameters 4.7 counts."""
    (count,) = re.findall(rf"^{name} +([\d,]+) parameters", o["size-layers"], re.MULTILINE)
    return int(count.replace(",", ""))


def _narrow_times(o: dict[str, str]) -> list[int]:
    """The narrow layer's time as a share (%) of the wide one's, short sequences first."""
    return [int(share) for share in re.findall(r"time: narrow (\d+)%", o["time-measure"])]


def _narrow_counts(o: dict[str, str]) -> list[int]:
    """The narrow layer's multiplications as a share (%) of the wide one's, short sequences first."""
    return [int(share) for share in re.findall(r"narrow has (\d+)% of", o["time-measure"])]


def _sharing(o: dict[str, str]) -> dict[str, tuple[int, int, list[int]]]:
    """By what is shared: parameters, bytes a guest, and right answers (%) of each seed."""
    rows = re.findall(
        r"^(\S.*?) +([\d,]+) parameters, +(\d+) bytes a guest; right answers \(%\), by seed: (.*)$",
        o["long-dinner-runs"],
        re.MULTILINE,
    )
    return {n: (int(p.replace(",", "")), int(kept), [int(s) for s in by.split()]) for n, p, kept, by in rows}


def _careless(o: dict[str, str]) -> list[tuple[int, ...]]:
    """Right answers (%) of each seed: of all guests, of those who need their own half of the seats, of the others."""
    shares = [int(share) for share in re.findall(r"(\d+)%", o["careless-train"])]
    return [tuple(shares[column::3]) for column in range(3)]


def _cache(o: dict[str, str]) -> list[tuple[int, float]]:
    """MiB for the text, and million parameters, for 32, 8 and 1 heads of keys and values."""
    rows = re.findall(r"([\d,]+) MiB in all; ([\d.]+) million", o["sharing-cost"])
    return [(int(size.replace(",", "")), float(maps)) for size, maps in rows]


CLAIMS = [
    Claim(
        "time-reading",
        "A quarter of the parameters, and nearly all of these in $W_O$",
        lambda o: (
            0.25 <= _parameters(o, "narrow") / _parameters(o, "wide") < 0.27
            and _parameters(o, "its WO") / _parameters(o, "narrow") > 0.95
        ),
    ),
    Claim(
        "time-reading",
        "The time saved is real for short sequences",
        lambda o: max(_narrow_times(o)[:2]) < 80 and max(_narrow_times(o)[:2]) < _narrow_times(o)[-1],
    ),
    Claim(
        "time-reading",
        "Here less is saved, at each length, than the count of\nmultiplications says",
        lambda o: all(time > counted for time, counted in zip(_narrow_times(o), _narrow_counts(o), strict=True)),
    ),
    Claim(
        "time-reading",
        "At 1,024 positions it took less time",
        lambda o: 40 <= int(re.findall(r"1024 positions:.*torch's (\d+)%", o["time-measure"])[0]) <= 62,
    ),
    Claim(
        "waiter-reading",
        "Two heads of eight features learn it completely",
        lambda o: min(_shares(o["waiter-table"], "two heads of 8")) >= 99,
    ),
    Claim(
        "waiter-reading",
        "One head does not, with the same features or with four times as many",
        lambda o: max(_shares(o["waiter-table"], "one head of")) <= 30,
    ),
    Claim(
        "waiter-heads-reading",
        "In each of the four runs the two heads have shared out the work",
        lambda o: _heads_share_the_work(o["waiter-heads-run"]),
    ),
    Claim(
        "waiter-heads-reading",
        "about half for the first and a little less for the second",
        lambda o: all(
            0.48 <= first < 0.6 and second < 0.5 for first, second in _weights(o["waiter-heads-run"], "one head of 16")
        ),
    ),
    Claim(
        "waiter-single-reading",
        "right nearly always, and in about 85 % of the dinners the\nsecond answer is the same thing once again",
        lambda o: (
            min(map(int, re.findall(r"first (\d+)% right", o["waiter-single"]))) >= 95
            and all(85 <= int(share) <= 88 for share in re.findall(r"same twice (\d+)%", o["waiter-single"]))
        ),
    ),
    Claim(
        "dinner-predict",
        "We train three layers, four times each",
        lambda o: (
            [len(_shares(o["waiter-table"], name)) for name in ("one head of 16", "one head of 64", "two")] == [4] * 3
        ),
    ),
    Claim(
        "network-reading",
        "It solves the task",
        lambda o: min(_shares(o["network-run"], "one head, then a network")) >= 99,
    ),
    Claim(
        "network-reading",
        "Without its ReLU the same network, as large and trained as long, gets 18 to 23 %",
        lambda o: _ends(_shares(o["network-run"], "one head, then the same without ReLU")) == (18, 23),
    ),
    Claim(
        "choose-reading",
        "all 124 sentences of chapters 0 to 3: head 0 gives at least 73 % of its weight to the pieces before, "
        "head 1 at least 58 %\nto those after",
        lambda o: (
            re.findall(r"head 0: .* before .*from (\d+)% .* 124 ", o["translator-heads-all"]) == ["73"]
            and re.findall(r"head 1: .* after .*from (\d+)% .* 124 ", o["translator-heads-all"]) == ["58"]
        ),
    ),
    Claim(
        "trap-modes-reading",
        "With weights asked for it is `nan`; without them",
        lambda o: o["trap-modes"].count("need_weights=True: nan") == 2,
    ),
    Claim(
        "trap-modes-reading",
        "without them, training goes on with finite numbers",
        lambda o: "training, need_weights=False: finite" in o["trap-modes"],
    ),
    Claim(
        "trap-modes-reading",
        "the first evaluation under `torch.no_grad()`, which takes\nanother way, is `nan`",
        lambda o: "evaluation, need_weights=False: nan" in o["trap-modes"],
    ),
    Claim(
        "sharing-cost-reading",
        "Two gibibytes for one text; with 8 heads a quarter of that, with 1 a thirty-second",
        lambda o: [size for size, _ in _cache(o)] == [2048, 512, 64],
    ),
    Claim(
        "sharing-cost-reading",
        "The parameters of the attention fall by no more than\na half",
        lambda o: 0.5 <= _cache(o)[-1][1] / _cache(o)[0][1] < 0.55,
    ),
    Claim(
        "sharing-equal-why",
        "With as many heads of keys and values as of queries this should be your layer",
        lambda o: float(o["sharing-equal"].split()[-1]) < 1e-6,
    ),
    Claim(
        "long-dinner-predict",
        "with them more parameters\nthan *own*",
        lambda o: _sharing(o)["shared by eight"][0] > _sharing(o)["own"][0],
    ),
    Claim(
        "long-dinner-predict",
        "each guest as with *own*. *Own, small* shares nothing, and keeps as little as *shared by four*",
        lambda o: (
            _sharing(o)["shared by four, wide"][1] == _sharing(o)["own"][1] == 256
            and _sharing(o)["own, small"][1] == _sharing(o)["shared by four"][1] == 64
        ),
    ),
    Claim(
        "long-dinner-reading",
        "*Own* answers all four questions, with each of four seeds",
        lambda o: len(_sharing(o)["own"][2]) == 4 and min(_sharing(o)["own"][2]) >= 99,
    ),
    Claim(
        "long-dinner-reading",
        "*Shared by four* ends where two are answered and two guessed, with each of these seeds",
        lambda o: len(_sharing(o)["shared by four"][2]) == 4 and set(_sharing(o)["shared by four"][2]) <= {55, 56, 57},
    ),
    Claim(
        "long-dinner-reading",
        "*Shared by two* is in between on average",
        lambda o: 60 < sum(_sharing(o)["shared by two"][2]) / 4 < 98 and min(_sharing(o)["shared by two"][2]) > 70,
    ),
    Claim(
        "long-dinner-reading",
        "the controls only *shared by four, wide* answers everything",
        lambda o: (
            min(_sharing(o)["shared by four, wide"][2]) >= 99
            and max(_sharing(o)["shared by eight"][2] + _sharing(o)["own, small"][2]) < 90
        ),
    ),
    Claim(
        "long-dinner-reading",
        "and loses about as much as *shared by four*",
        lambda o: sorted(_sharing(o)["shared by eight"][2])[2] < 60,
    ),
    Claim(
        "long-dinner-reading",
        "*Own, small* shares nothing, and loses one question or two",
        lambda o: all(55 <= share <= 80 for share in _sharing(o)["own, small"][2]),
    ),
    Claim(
        "careless-train-reading",
        "About half of them, 49 to 58 %, by seed. Where the guest on my note sits in my own half of the seats, "
        "0 to 3 or 4 to 7, the answer is right nearly always. Where not, it has only its own half to guess from: "
        "12 to 27 %.",
        lambda o: all(
            (min(column), max(column)) == limits if limits else min(column) >= 95
            for column, limits in zip(_careless(o), ((49, 58), None, (12, 27)), strict=True)
        ),
    ),
]
