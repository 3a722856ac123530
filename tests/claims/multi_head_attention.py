"""What chapter 04 says of its runs."""

import re

from claims import Claim


def _shares(text: str, start: str) -> list[int]:
    """The percentages on the lines that begin so."""
    lines = [line for line in text.splitlines() if line.startswith(start)]
    assert lines, f"no line begins with {start!r}"
    return [int(share) for line in lines for share in re.findall(r"(\d+)%", line.partition(":")[2])]


def _weights(text: str, start: str) -> list[tuple[float, float]]:
    lines = [line for line in text.splitlines() if line.startswith(start)]
    return [tuple(map(float, re.search(r"first ([\d.]+), second ([\d.]+)", line).groups())) for line in lines]


def _heads_share_the_work(text: str) -> bool:
    runs = [sorted(_weights(text, f"two heads of 8, seed {seed}")) for seed in range(3)]
    return all(a[0] < 0.2 < 0.8 < a[1] and b[1] < 0.2 < 0.8 < b[0] for a, b in runs)


CLAIMS = [
    Claim(
        "map-reading",
        "*both* heads have learned the same job",
        lambda o: [int(k) for k in re.findall(r"head \d: (\d) of 8", o["party-found"])] == [8, 8],
    ),
    Claim(
        "waiter-reading",
        "Two heads of eight features learn it completely",
        lambda o: min(_shares(o["waiter-table"], "two heads of 8")) >= 99,
    ),
    Claim(
        "waiter-reading",
        "it stays far below the 50 %",
        lambda o: max(_shares(o["waiter-table"], "one head of")) <= 30,
    ),
    Claim(
        "waiter-heads-reading",
        "the two heads have shared out the work",
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
        "right nearly always, and in 85 % of the dinners and more the\nsecond answer is the same thing once again",
        lambda o: (
            min(map(int, re.findall(r"first (\d+)% right", o["waiter-single"]))) >= 95
            and min(map(int, re.findall(r"same twice (\d+)%", o["waiter-single"]))) >= 85
        ),
    ),
    Claim("network-reading", "It solves the task", lambda o: min(_shares(o["network-run"], "one head, then")) >= 99),
    Claim(
        "trap-modes-reading",
        "With weights asked for it is `nan` always",
        lambda o: o["trap-modes"].count("need_weights=True: nan") == 2,
    ),
    Claim(
        "trap-modes-reading",
        "without them, training goes on with finite numbers",
        lambda o: "training, need_weights=False: finite" in o["trap-modes"],
    ),
    Claim(
        "trap-modes-reading",
        "the first evaluation under `torch.no_grad()`, which takes\na faster way, is `nan`",
        lambda o: "evaluation, need_weights=False: nan" in o["trap-modes"],
    ),
]
