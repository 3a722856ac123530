"""Each question that nbgrader users ask names tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_question_has_its_tests():
    rows = [line for line in (ROOT / "docs/questions.md").read_text(encoding="utf-8").splitlines() if "::" in line]
    assert len(rows) > 25
    for row in rows:
        file = ""
        for place, test in re.findall(r"`([\w/.]*)::(\w+)`", row):
            file = place or file
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), row
