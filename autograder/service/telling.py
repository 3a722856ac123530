"""What is told of a hand-in: its receipt, and as much of its verdict as its student may see now."""

from datetime import UTC
from typing import Any

from autograder.cells import exercise_of
from autograder.service.settings import Rules
from autograder.service.store import Received


def receipt(one: Received) -> dict[str, Any]:
    """Whose a hand-in is, of which chapter, which pack, when it came, and whether it has a verdict."""
    when = one.received_at.replace(tzinfo=UTC).isoformat()
    told = {"id": one.id, "student": one.student, "chapter": one.chapter, "sha256": one.sha256, "received_at": when}
    return told | {"graded": one.graded_at is not None}


def verdict(one: Received, rules: Rules | None) -> dict[str, Any]:
    """What of a verdict its student may see now.

    Args:
        one: the hand-in.
        rules: of its chapter; None if the course has no such chapter now.
    """
    if one.graded_at is None or rules is None:
        return {}
    told: dict[str, Any] = {"seconds_late": one.seconds_late, "ungradable": one.verdict.get("ungradable", "")}
    items = one.verdict.get("items", [])
    if rules.show != "nothing":
        told |= {"points": one.points, "max_points": sum(item["max_points"] for item in items), "counts": one.counts}
    if rules.show == "messages":
        kept = ("status", "points", "max_points", "message")
        told["checks"] = [
            {"exercise": exercise_of(i["grade_id"]) or i["grade_id"]} | {k: i[k] for k in kept} for i in items
        ]
    return told
