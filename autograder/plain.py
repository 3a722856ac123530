"""Text that a student may have written, fit for a terminal or a spreadsheet: it is shown, and never acts."""

import re

_ACTING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def plain(text: str) -> str:
    """A text with what would steer a terminal written out: escape sequences, line ends, changes of direction."""
    return _ACTING.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def cell(value: object) -> object:
    """A value for a table: text that a spreadsheet would take for a formula gets an apostrophe, numbers stay."""
    if not isinstance(value, str):
        return value
    try:
        float(value)
    except ValueError:
        text = plain(value)
        return f"'{text}" if value.lstrip().startswith(_FORMULA) else text
    return value


def shown(text: str) -> str:
    """A text of several lines for a page: as `plain`, but for line ends and tabs."""
    return "\n".join(plain(line.expandtabs(4)) for line in text.split("\n"))
