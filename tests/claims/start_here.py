"""Chapter 00: what its sentences say of the executed outputs."""

import re
from itertools import permutations

from attention_course.ambiguous import ambiguous, meaning_in
from autograder.course.curriculum import find_course
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


def taken_where(outputs: dict[str, str]) -> dict[str, tuple[int, int, int]]:
    """For gates with "an adjective" and with "none": of how many exchanges, how many became a gate, how many a goal."""
    found = re.findall(r"has (an adjective|none): of (\d+) each, (\d+) become a gate, (\d+) a goal", outputs["all-own"])
    return {kind: (int(tried), int(gate), int(goal)) for kind, tried, gate, goal in found}


def mostly_goal_unless_adjective_among_others(outputs: dict[str, str]) -> bool:
    """By the bounds that the printed counts set: those who stay are counted over both kinds of gates only."""
    kinds = [taken_where(outputs)[kind] for kind in ("an adjective", "none")]
    stay = dict(stayed(outputs, "all-run"))
    with_adjective, bare = (
        {
            # Of a kind at least those stay for which the other kind has no room.
            "Tor from the gate": (stay["goal"] - (other_tried - other_to_gate), to_gate),
            "the others from the gate": (to_goal, stay["gate"] - (other_tried - other_to_goal)),
        }
        for (_, to_gate, to_goal), (other_tried, other_to_gate, other_to_goal) in (kinds, kinds[::-1])
    )
    goals, gates = with_adjective["the others from the gate"]
    bare_goals, bare_tried = bare["the others from the gate"][0], kinds[1][0]
    return (
        all(goals > gates for goals, gates in (with_adjective["Tor from the gate"], bare["Tor from the gate"]))
        and goals < gates
        and bare_goals > bare_tried / 2
    )


def in_captions(words: str) -> list[str | None]:
    """The meanings of Tor in the training captions with these words; none where the full data is not there."""
    german, english = (find_course().root / f"data/full/multi30k/train.{language}" for language in ("de", "en"))
    if not german.is_file():
        return []
    pairs = zip(*(file.read_text(encoding="utf-8").splitlines() for file in (german, english)), strict=True)
    return [meaning_in(caption, "Tor") for text, caption in pairs if re.search(rf"\b{words}\b", text)]


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
        "With the subjects' vectors 89 of 625 gates become goals, and no goal a gate; with the articles' 82 of 500 "
        "gates. Closest to *Tor* come the prepositions, towards gates: 21 of 483, where in the same pairs *Tor* itself "
        "makes 58",
        lambda o: (
            became(o, "all-control")["the subject", "goal"] == (89, 625)
            and became(o, "all-control")["the subject", "gate"] == (0, 625)
            and became(o, "all-control")["its article", "goal"] == (82, 500)
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
        "436 against 408; and the other way, 193 against 133",
        lambda o: stayed(o, "all-run") == [("goal", 436), ("gate", 193)],
    ),
    Claim(
        "all-others-reading",
        "where the gate has no adjective, *Tor*'s own does more",
        # Who stays is counted for all pairs only; of a kind at most those that do not change can stay.
        lambda o: all(
            tried - changed < own for tried, *found in [taken_where(o)["none"]] for changed, own in permutations(found)
        ),
    ),
    Claim(
        "all-others-reading",
        "Where the two disagree, the model mostly writes\n*goal*, unless the gate's adjective is among the others",
        mostly_goal_unless_adjective_among_others,
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
        "four have *dem Tor*, a goal in all four,\nand six have *einem Tor*, a gate in all six",
        lambda _: in_captions("dem Tor") in ([], 4 * ["goal"]) and in_captions("einem Tor") in ([], 6 * ["gate"]),
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
