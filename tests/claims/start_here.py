"""Chapter 00: what its sentences say of the executed outputs."""

import re

from attention_course.ambiguous import ambiguous
from claims import Claim


def lines(outputs: dict[str, str], cell: str) -> list[str]:
    """What a cell printed, without empty lines."""
    return [line for line in outputs[cell].splitlines() if line.strip()]


def looked(outputs: dict[str, str]) -> dict[str, str]:
    """The German word that each English one looked most at."""
    found = (line.split() for line in lines(outputs, "looked-most"))
    return {words[0]: words[4] for words in found}


def apart(outputs: dict[str, str]) -> list[int]:
    """How far apart the two vectors are at each stage, in per cent."""
    return [int(line.split()[2].rstrip("%")) for line in lines(outputs, "apart")]


def sentences(outputs: dict[str, str], cell: str) -> list[tuple[str, str]]:
    """The two translations of each line that `exchange` printed."""
    found = []
    for line in lines(outputs, cell):
        first, second = line.partition(":")[2].strip(" .").split(". ")
        found.append((first, second))
    return found


def kinds(outputs: dict[str, str]) -> dict[str, dict[str, str]]:
    """For each of the seven things that one does, what those who do it find."""
    found = {}
    for cell in ("which-word-all", "which-word-others"):
        head, *rows = lines(outputs, cell)
        for row in rows:
            found.setdefault(row[:16].strip(), {}).update(zip(head.split(), row[16:].split(), strict=True))
    return found


def became(outputs: dict[str, str], cell: str) -> dict[tuple[str, str], tuple[int, int]]:
    """For each kind of word and meaning how many sentences took the meaning on, and of how many."""
    found = re.findall(r"(.+), from a \w+: (\d+) of (\d+) become a (\w+)", outputs[cell])
    return {(role, meaning): (int(changed), int(tried)) for role, changed, tried, meaning in found}


def most(counts: dict[tuple[str, str], tuple[int, int]], meaning: str) -> tuple[str, tuple[int, int]]:
    """The kind of word with whose vector the largest share of sentences took this meaning on, and of how many."""
    found = {role: pair for (role, kind), pair in counts.items() if kind == meaning}
    return max(found.items(), key=lambda item: item[1][0] / item[1][1])


def stayed(outputs: dict[str, str], cell: str) -> list[tuple[str, int]]:
    """Which meaning stayed in each direction, and in how many, line by line."""
    return [(kind, int(n)) for n, kind in re.findall(r"(\d+)(?: of \d+)? stay a (\w+)", outputs[cell])]


def meanings_stay(outputs: dict[str, str]) -> bool:
    return all("goal" in first and "gate" in second for first, second in sentences(outputs, "exchange-control"))


CLAIMS = [
    Claim(
        "looks-reading",
        "*dogs* looked at *Hunde*, *snow* at *Schnee*, and *in* at *im*",
        lambda o: looked(o).items() >= {"dogs": "Hunde", "snow": "Schnee", "in": "im"}.items(),
    ),
    Claim(
        "vectors",
        "a *goal* in one, a *gate* in the other",
        lambda o: (
            [("goal" in line, "gate" in line) for line in lines(o, "ambiguous-run")] == [(True, False), (False, True)]
        ),
    ),
    Claim(
        "vector-origin",
        "*Tor* is in the same place in both",
        lambda o: len({w for w in lines(o, "reading")[-1].split() if w.isdigit()}) == 1,
    ),
    Claim(
        "exchange-why",
        "Nothing at first, then more with each layer",
        lambda o: apart(o)[0] == 0 and apart(o)[:-1] == sorted(set(apart(o)[:-1])),
    ),
    Claim(
        "exchange-control-why",
        "The boy's goal is a gate now, and the woman's gate a goal",
        lambda o: all("gate" in a and "goal" in b for a, b in sentences(o, "exchange-run")),
    ),
    Claim(
        "exchange-control-why",
        "the model cuts it in two",
        lambda o: "'▁schie', 'ßt'" in o["reading"],
    ),
    Claim(
        "question",
        "*goal* and *gate* stay where they were in all three",
        meanings_stay,
    ),
    Claim(
        "question",
        "Who acts changes with the first control, what they do with the second, nothing with the third",
        lambda o: (
            "woman" in sentences(o, "exchange-control")[0][0]
            and "boy" in sentences(o, "exchange-control")[0][1]
            and "walk" in sentences(o, "exchange-control")[1][0]
            and "kick" in sentences(o, "exchange-control")[1][1]
            and [f"{a}. {b}" for a, b in sentences(o, "exchange-control")[2:]]
            == [". ".join(line.partition("→ ")[2].strip(".") for line in lines(o, "ambiguous-run"))]
        ),
    ),
    Claim(
        "which-word-reading",
        "For all five *ein Tor* that is scored, seen or even opened is a goal",
        lambda o: all(set(kinds(o)[does].values()) == {"goal"} for does in ("schießt ein", "sieht ein", "öffnet ein")),
    ),
    Claim(
        "which-word-reading",
        "if a man or a woman photographs it, it is a gate",
        lambda o: {kinds(o)["fotografiert ein"][who] for who in ("Mann", "Frau")} == {"gate"},
    ),
    Claim(
        "which-word-reading",
        "a man or a woman who shoots past *an einem Tor* finds a gate",
        lambda o: {kinds(o)["schießt an einem"][who] for who in ("Mann", "Frau")} == {"gate"},
    ),
    Claim(
        "which-word-reading",
        "the boy and\nthe dog stand in front of a gate, but walk past a goal",
        lambda o: all(
            [kinds(o)[does][who] for does in ("steht vor einem", "geht an einem")] == ["gate", "goal"]
            for who in ("Junge", "Hund")
        ),
    ),
    Claim(
        "which-word-reading",
        "Only the football player finds goals everywhere",
        lambda o: (
            [who for who in ("Junge", "Mann", "Frau", "Hund") if "gate" not in {row[who] for row in kinds(o).values()}]
            == []
            and {row["Fußballspieler"] for row in kinds(o).values()} == {"goal"}
        ),
    ),
    Claim(
        "which-word-others-reading",
        "The singer and the cyclist find goals everywhere, as the football player did, and the goalkeeper finds a gate "
        "in three rows of seven",
        lambda o: (
            {row[who] for row in kinds(o).values() for who in ("Sänger", "Radfahrer")} == {"goal"}
            and sorted(row["Torwart"] for row in kinds(o).values()) == 3 * ["gate"] + 4 * ["goal"]
        ),
    ),
    Claim(
        "question",
        "twenty-five of each meaning",
        lambda o: [s.meaning for s in ambiguous("Tor")] == 25 * ["goal"] + 25 * ["gate"],
    ),
    Claim(
        "all-reading",
        "With a goal's vector of *Tor* 408 of 625 gates become goals, two thirds. With a gate's vector 133 of 625",
        lambda o: (
            became(o, "all-run") == {("the word itself", "gate"): (133, 625), ("the word itself", "goal"): (408, 625)}
        ),
    ),
    Claim(
        "all-reading",
        "With the subjects' vectors 89 of 625 gates become goals, and no goal a gate. Closest to *Tor* come "
        "the prepositions, towards gates: 21 of 483, where in the same pairs *Tor* itself makes 58",
        lambda o: (
            became(o, "all-control")["the subject", "goal"] == (89, 625)
            and became(o, "all-control")["the subject", "gate"] == (0, 625)
            and most(became(o, "all-control"), "gate") == ("the preposition", (21, 483))
            and "both have a preposition: of 483 each, 58 become a gate, 323 a goal" in o["all-own"]
        ),
    ),
    Claim(
        "all-reading",
        "Every other\nword that we exchanged does less",
        lambda o: all(
            changed / tried < own[0] / own[1]
            for (_, kind), (changed, tried) in became(o, "all-control").items()
            for own in [became(o, "all-run")["the word itself", kind]]
        ),
    ),
    Claim(
        "all-reading",
        "578 of 600 goals and 562 of 600 gates",
        lambda o: stayed(o, "all-foreign") == [("goal", 578), ("gate", 562)],
    ),
    Claim(
        "all-reading",
        "both shares are larger, 40 of 151 goals become gates and 106 of 151 gates goals",
        lambda o: "in the same place: of 151 each, 40 become a gate, 106 a goal" in o["all-own"],
    ),
    Claim(
        "all-reading",
        "an old gate, 60 of 225 become goals; where it has none, 348 of 400",
        lambda o: (
            re.findall(r"has (an adjective|none): of (\d+) each, \d+ become a gate, (\d+) a goal", o["all-own"])
            == [("an adjective", "225", "60"), ("none", "400", "348")]
        ),
    ),
    Claim(
        "all-others-reading",
        "436 of those 625 stayed goals. The other way, in the second line, 193 of 625 stayed gates",
        lambda o: stayed(o, "all-run") == [("goal", 436), ("gate", 193)],
    ),
    Claim(
        "article-reading",
        "All fifteen with *dem*, none with *diesem* or *ihrem*, six with *seinem*",
        lambda o: all(
            f"einem → {word}: {n} of 15" in o["article-run"]
            for word, n in {"dem": 15, "diesem": 0, "ihrem": 0, "seinem": 6}.items()
        ),
    ),
    Claim(
        "article-reading",
        "With an adjective behind it, *dem alten*, all fifteen stay gates",
        lambda o: "einem → dem alten: 0 of 15" in o["article-run"],
    ),
    Claim(
        "article-reading",
        "backwards *einem* and *ein* do no more than *her* and *this*: 3 of 9, against 5 and 7",
        lambda o: re.findall(r"(\d) of 9 goals become a gate", o["article-run"]) == ["3", "7", "5"],
    ),
    Claim(
        "taxes-reading",
        "Nonsense: *The raision is sailing the fire.*",
        lambda o: "The raision is sailing the fire." in o["taxes"],
    ),
    Claim(
        "einsum-reading",
        "These give the numbers of the last `einsum`",
        lambda o: "[14., 32.]" in o["einsum-loops"] and "[14., 32.]" in lines(o, "einsum-examples")[-1],
    ),
    Claim("broadcast-bug-reading", "Not zero but 2.5", lambda o: "mean squared error: 2.5" in o["broadcast-bug"]),
]
