"""What nbgrader's cells are called and marked by."""

import re
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode

CODE_STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")


TEXT_STUB = ("YOUR ANSWER HERE",)


def released(cell: NotebookNode) -> str:
    """The text of a cell as students get it: without solution and hidden tests.

    Args:
        cell: a cell of the course's notebook, or of a released one.
    """
    stub = CODE_STUB if cell.cell_type == "code" else TEXT_STUB
    kept, skipping, replaced = [], False, False
    for line in cell.source.split("\n"):
        if "BEGIN SOLUTION" in line:
            indent = line[: len(line) - len(line.lstrip())]
            kept += [indent + text for text in stub]
            skipping = replaced = True
        elif "BEGIN HIDDEN TESTS" in line:
            skipping = True
        elif "END SOLUTION" in line or "END HIDDEN TESTS" in line:
            skipping = False
        elif not skipping:
            kept.append(line)
    if flags_of(cell).get("solution") and not replaced:
        is_released = "checksum" in flags_of(cell) and any(line.strip() == stub[0] for line in kept)
        return "\n".join(kept if is_released else stub)
    return "\n".join(kept)


def flags_of(cell: Mapping[str, Any]) -> dict:
    """What nbgrader notes of a cell, opened by nbformat or plain JSON; empty for an ordinary one."""
    return cell.get("metadata", {}).get("nbgrader", {})


def exercise_of(grade_id: str) -> str:
    """The exercise of a check cell: NAME of `NAME_check`, `NAME_check_2`, …; empty for a cell of another name."""
    found = re.fullmatch(r"(.+)_check(?:_\d+)?", grade_id)
    return found[1] if found else ""
