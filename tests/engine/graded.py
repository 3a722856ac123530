"""What a graded notebook holds."""

import json

import nbformat

from autograder.run import grade_notebook
from notebooks import submission


def statuses(graded):
    return {item.grade_id: item.status for item in graded.items}


def points(graded):
    return {item.grade_id: item.points for item in graded.items}


def assert_unharmed(sandbox, source):
    """An honest submission that comes next gets all it deserves."""
    graded = grade_notebook(sandbox, submission(source), source)
    assert set(statuses(graded).values()) == {"passed"}, graded.items


def assert_fit_to_show(graded):
    nbformat.validate(graded.notebook)
    text = json.dumps(graded.notebook, ensure_ascii=False)
    text.encode()
    for word in ("secret_of_the_check", "/root/", "hunter2", "\\u001b", "\\u0000"):
        assert word not in text
    assert len(text) < 100_000
