"""Submissions whose notebooks were damaged."""

import json
import os
import time

import nbformat
import pytest

from autograder.run import grade_notebook
from autograder.submission import SubmissionError, as_notebook, lay_over, read_notebook, repair
from notebooks import ANSWERS, find, release, source_notebook, submission


@pytest.fixture
def source():
    return source_notebook()


def names(notebook):
    return [c.metadata.get("nbgrader", {}).get("grade_id") for c in notebook.cells]


def test_an_intact_submission_stays_as_it_is(source):
    handed_in = submission(source)
    mended, problems = repair(handed_in, source)
    assert problems == []
    assert [c.source for c in mended.cells] == [c.source for c in handed_in.cells]
    assert names(mended) == names(source)
    nbformat.validate(mended)


def test_repairing_twice_changes_nothing(source):
    handed_in = submission(source)
    handed_in.cells.insert(4, nbformat.v4.new_code_cell("helper = 1"))
    once, _ = repair(handed_in, source)
    twice, problems = repair(once, source)
    assert problems == []
    assert [c.source for c in twice.cells] == [c.source for c in once.cells]


def test_nothing_of_the_solution_or_the_hidden_tests_is_shown(source):
    empty = nbformat.v4.new_notebook()
    mended, problems = repair(empty, source)
    text = json.dumps(mended)
    for word in ("return 2 * x", "secret_of_the_check", "BEGIN", "The model answer"):
        assert word not in text
    assert [c.source for c in mended.cells] == [c.source for c in release(source).cells]
    assert "`double` is missing" in problems


@pytest.mark.parametrize("keep_ids", [True, False])
def test_lost_metadata_costs_nothing(sandbox, source, keep_ids):
    handed_in = submission(source)
    for i, cell in enumerate(handed_in.cells):
        cell.metadata = {"colab": {"id": "abc"}}
        if not keep_ids:
            cell.id = f"new-{i}"
    find_why = handed_in.cells[-1]
    find_why.source = "Because."
    graded = grade_notebook(sandbox, handed_in, source)
    assert [item.status for item in graded.items] == ["passed"] * 3
    assert "`double` had lost its metadata" in graded.problems
    assert names(graded.notebook) == names(source)
    assert find(graded.notebook, "why").source == "Because."
    assert "colab" not in json.dumps(graded.notebook)


def test_a_rewritten_check_is_replaced(sandbox, source):
    handed_in = submission(source, double="def double(x): return x")
    find(handed_in, "double_check").source = "pass"
    graded = grade_notebook(sandbox, handed_in, source)
    assert graded.items[0].points == 0
    assert graded.problems == ["`double_check` is locked, but was changed: the course's own text is used"]
    assert find(graded.notebook, "double_check").source == find(release(source), "double_check").source


def test_deleted_cells_are_reported_and_cost_only_themselves(sandbox, source):
    handed_in = submission(source)
    handed_in.cells = [c for c in handed_in.cells if c.metadata.get("nbgrader", {}).get("grade_id") != "double"]
    handed_in.cells = [c for c in handed_in.cells if not c.source.startswith("import torch")]
    handed_in.cells.remove(find(handed_in, "count_check"))
    graded = grade_notebook(sandbox, handed_in, source)
    assert [item.status for item in graded.items] == ["missing", "passed", "passed"]
    assert graded.items[0].message == "the cell `double` is missing from the notebook"
    assert sorted(graded.problems) == ["`count_check` is missing", "`double` is missing"]


def test_of_doubled_cells_the_last_changed_one_counts(sandbox, source):
    handed_in = submission(source, double="def double(x): return x")
    at = handed_in.cells.index(find(handed_in, "double"))
    right, stub = (nbformat.from_dict(handed_in.cells[at]) for _ in range(2))
    right.source = ANSWERS["double"]
    stub.source = find(release(source), "double").source
    handed_in.cells[at + 1 : at + 1] = [right, stub, nbformat.from_dict(find(handed_in, "double_check"))]
    graded = grade_notebook(sandbox, handed_in, source)
    assert graded.items[0].status == "passed"
    assert "`double` is there 3 times" in graded.problems
    assert names(graded.notebook).count("double") == 1
    assert names(graded.notebook).count("double_check") == 1


def test_a_cell_turned_into_markdown_is_turned_back(sandbox, source):
    handed_in = submission(source)
    for name in ("double", "double_check"):
        cell = find(handed_in, name)
        cell.cell_type = "markdown"
        for key in ("outputs", "execution_count"):
            cell.pop(key)
    graded = grade_notebook(sandbox, handed_in, source)
    assert graded.items[0].status == "passed"
    assert "`double` was turned into a markdown cell" in graded.problems
    nbformat.validate(graded.notebook)


def test_a_students_own_cells_run_where_they_are(sandbox, source):
    handed_in = submission(source, double="def double(x):\n    return helper(x)")
    at = handed_in.cells.index(find(handed_in, "double"))
    handed_in.cells.insert(at, nbformat.v4.new_code_cell("%matplotlib inline\ndef helper(x):\n    return x + x"))
    handed_in.cells.insert(at, nbformat.v4.new_code_cell("%%time\nunused = 1"))
    handed_in.cells.insert(at, nbformat.v4.new_code_cell("%%bash\nrm -rf /"))
    handed_in.cells.insert(at, nbformat.v4.new_markdown_cell("My notes"))
    graded = grade_notebook(sandbox, handed_in, source)
    assert [item.status for item in graded.items] == ["passed"] * 3
    sources = [c.source for c in graded.notebook.cells]
    assert sources.index("My notes") < sources.index("def double(x):\n    return helper(x)")


def test_forged_outputs_are_dropped(sandbox, source):
    handed_in = submission(source, double="def double(x): return x")
    for cell in handed_in.cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2.0"}, execution_count=1)]
    graded = grade_notebook(sandbox, handed_in, source)
    assert graded.items[0].points == 0
    assert [o.output_type for o in find(graded.notebook, "double_check").outputs] == ["error"]
    assert find(graded.notebook, "double").outputs == []


def test_malformed_outputs_do_not_survive_repair(source):
    handed_in = submission(source)
    find(handed_in, "double").outputs = [
        {"output_type": "stream"},
        7,
        {"output_type": "stream", "name": "a", "text": "b"},
    ]
    mended, _ = repair(handed_in, source)
    nbformat.validate(mended)
    assert [o.text for o in find(mended, "double").outputs] == ["b"]


FILES = {
    "empty": b"",
    "not JSON": b"\x89PNG\r\n",
    "not a notebook": b'{"a": 1}',
    "a list": b"[]",
    "cells of no kind": b'{"cells": 7, "nbformat": 4}',
    "JSON nested deep": b"[" * 100_000,
    "too large": b'{"cells": [' + b" " * (21 << 20) + b"]}",
    "an old format that is none": b'{"nbformat": 3, "worksheets": 7}',
    "cells nested deep": b'{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": '
    + b"[" * 900
    + b"]" * 900
    + b"}]}",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_notebook_costs_itself(sandbox, source, tmp_path, name):
    path = tmp_path / "chapter.ipynb"
    path.write_bytes(FILES[name])
    graded = grade_notebook(sandbox, path, source)
    assert {item.status for item in graded.items} == {"missing"}
    assert sum(item.points for item in graded.items) == 0
    assert bool(graded.ungradable) == (name != "cells nested deep")
    nbformat.validate(graded.notebook)


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    for name in ("pipe", "link", "absent", ""):
        with pytest.raises(SubmissionError):
            read_notebook(tmp_path / name)


def test_cells_of_no_known_shape_are_left_out():
    cells = [7, None, {"cell_type": "code"}, {"cell_type": "code", "source": 7}, {"cell_type": ["code"], "source": ""}]
    cells.append({"cell_type": "code", "source": ["a", 7, "b"], "id": 7, "metadata": {"nbgrader": {"grade_id": []}}})
    assert [c.source for c in as_notebook({"nbformat": 4, "cells": cells}).cells] == ["", "ab"]


def test_half_characters_are_replaced(source):
    handed_in = json.loads(json.dumps(submission(source)).replace("return x + x", "return x + x  # \\ud800"))
    repaired = lay_over(as_notebook(handed_in), source)
    json.dumps(repaired.notebook, ensure_ascii=False).encode()


def test_a_released_notebook_serves_as_source_too(source):
    released = release(source)
    for cell in released.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader["checksum"] = "0"
    mended, problems = repair(submission(source), released)
    assert problems == []
    assert find(mended, "double").source == ANSWERS["double"]
    mended, _ = repair(nbformat.v4.new_notebook(), released)
    assert find(mended, "double").source == find(released, "double").source


HOSTILE_TEXTS = {
    "brackets": "(" * 200_000,
    "signs": "-" * 200_000 + "1",
    "attributes": "a" + ".a" * 100_000,
    "sums": "1+" * 100_000 + "1",
    "strings": '"' * 200_001,
    "blanks": " " * 400_000 + "x",
    "newlines": "\n" * 400_000,
    "short lines": "a=1\n" * 20_000,
    "magics": "%a\n" * 20_000,
    "a chain of definitions": "".join(f"def f{i}(): return f{i + 1}()\n" for i in range(5_000)),
    "bad bytes": "\x00\x0c\u2028\ufeff",
    "imports": "import " + "a," * 100_000 + "a",
}


@pytest.mark.parametrize("where", ["solution", "course", "added"])
@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_no_text_keeps_the_grader_busy(sandbox, source, name, where):
    handed_in = submission(source)
    if where == "solution":
        find(handed_in, "double").source = HOSTILE_TEXTS[name]
    elif where == "course":
        handed_in.cells[1].source += "\n" + HOSTILE_TEXTS[name]
    else:
        handed_in.cells.append(nbformat.v4.new_code_cell(HOSTILE_TEXTS[name]))
    started = time.process_time()
    graded = grade_notebook(sandbox, handed_in, source)
    assert time.process_time() - started < 5
    if name == "attributes":  # to parse it would take gigabytes
        assert "a name of more than 2,000 parts" in graded.ungradable
    elif where != "solution" and name != "bad bytes":
        assert graded.items[1].status == "passed" or where == "course", graded.items


def test_too_much_code_is_not_graded(sandbox, source):
    handed_in = submission(source, double="x = 1\n" * 100_000)
    assert "characters of code" in grade_notebook(sandbox, handed_in, source).ungradable
