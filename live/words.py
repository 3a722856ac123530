"""The rules by which chapter 07 cuts reviews into words, as the page can follow them."""

import re
from typing import Any

# Characters that a JavaScript pattern with the flag "u" lets be escaped.
_SYNTAX = set("^$\\.*+?()[]{}|/")
_WORD = r"\p{L}\p{N}_"  # what Python means by \w


def word_rules() -> dict:
    """spaCy's rules for English, which `attention_course.data.cut_english` uses.

    Returns:
        JavaScript patterns `prefix`, `suffix`, `infix` and `url`, and `exceptions`: a text and the words that it is cut
        into. `live/lib/words.js` follows them.
    """
    import spacy  # takes a second
    from spacy.symbols import ORTH

    rules: Any = spacy.blank("en").tokenizer
    found = {
        "prefix": rules.prefix_search,
        "suffix": rules.suffix_search,
        "infix": rules.infix_finditer,
        "url": rules.url_match,
    }
    patterns = {name: as_javascript(method.__self__.pattern) for name, method in found.items()}
    return patterns | {"exceptions": {text: [part[ORTH] for part in parts] for text, parts in rules.rules.items()}}


def as_javascript(pattern: str) -> str:
    """A pattern of Python's `re` that means the same in JavaScript with the flag "u".

    What differs is how characters are escaped, and that a letter of any alphabet belongs to Python's `\\w`.
    """
    written, inside, i = [], False, len("(?u)") if pattern.startswith("(?u)") else 0
    while i < len(pattern):
        one = pattern[i]
        if one == "\\":
            part, i = _escape(pattern, i, inside)
            written.append(part)
            continue
        if inside:
            inside = one != "]"
            written.append("\\[" if one == "[" else one)
        elif one == "[":
            inside, opening = True, re.match(r"\[\^?\]?", pattern[i:])
            assert opening
            written.append(opening[0].replace("]", "\\]"))
            i += len(opening[0]) - 1
        elif one == "{" and not re.match(r"\{\d*,?\d*\}", pattern[i:]):
            written.append("\\{")
        elif one == "}" and not re.search(r"\{\d*,?\d*$", pattern[:i]):
            written.append("\\}")
        else:
            written.append(one)
        i += 1
    return "".join(written)


def _escape(pattern: str, i: int, inside: bool) -> tuple[str, int]:
    """What stands for the escape at a place, inside a class of characters or not, and where it ends."""
    kind = pattern[i + 1]
    if digits := {"x": 2, "u": 4, "U": 8}.get(kind):
        return f"\\u{{{int(pattern[i + 2 : i + 2 + digits], 16):x}}}", i + 2 + digits
    if kind == "w":
        return (_WORD if inside else f"[{_WORD}]"), i + 2
    if kind == "d":
        return r"\p{Nd}", i + 2
    kept = kind in "sSbBDWnrtfv" or kind in _SYNTAX or (inside and kind == "-")
    return (f"\\{kind}" if kept else kind), i + 2
