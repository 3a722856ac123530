"""What chapter 07 says of its own runs."""

import re

from claims import Claim


def intervals(outputs: dict[str, str]) -> list[tuple[float, float, float]]:
    found = re.findall(
        r"([+-]\d\.\d+), 95 % of the draws from ([+-]\d\.\d+) to ([+-]\d\.\d+)", outputs["bootstrap-pairing"]
    )
    return [tuple(map(float, numbers)) for numbers in found]


CLAIMS = [
    Claim(
        "bootstrap-reading",
        "The same two shares, the same five points between them",
        lambda o: [gap for gap, _, _ in intervals(o)] == [0.05, 0.05],
    ),
    Claim("bootstrap-reading", "no draw can favour b", lambda o: intervals(o)[0][1] >= 0),
    Claim(
        "bootstrap-reading",
        "the interval reaches from a clear win to a loss",
        lambda o: intervals(o)[1][1] < 0 < intervals(o)[1][2],
    ),
]
