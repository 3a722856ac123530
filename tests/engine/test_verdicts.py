"""Verdicts that can be had again, checks that are at fault themselves, and files that cost little."""

import json
import math
import resource
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from conftest import LIMITS
from unprotected import happens

import checks
from autograder.checks import expect_no_python_loop
from autograder.isolation import sandbox as sandboxes
from autograder.isolation.sandbox import Sandbox, SandboxError
from autograder.job import Job, grade_job
from autograder.mistakes import Complaint, Unexplained, found
from autograder.run import grade_notebook
from autograder.source import defined_names
from autograder.submission import SubmissionError, read_notebook
from autograder.wire.proxy import Link
from notebooks import find, source_notebook, submission

DRAWS = "x = torch.randn(3)\nassert double(x).sum() > 1e9, f'drew {x.tolist()}, student {noise().item()}'"
NOISE = "import torch\ndef noise():\n    return torch.rand(())\n"


@pytest.fixture(scope="module")
def short(sandboxed):
    """A sandbox whose checks may run for two seconds."""
    with Sandbox(
        replace(LIMITS, check_seconds=2.0, cell_seconds=60.0, submission_seconds=300.0), preload=()
    ) as sandbox:
        sandbox.worker().kill()
        yield sandbox


def first(graded):
    return graded.items[0]


def test_the_same_seed_gives_the_same_verdict(sandbox):
    source = source_notebook(double_check=DRAWS)
    answers = submission(source, double=NOISE + "def double(x):\n    return 2 * x")
    once = grade_notebook(sandbox, answers, source)
    again = grade_notebook(sandbox, answers, source, seed=once.seed)
    alone = grade_notebook(sandbox, answers, source, seed=once.seed, only={"double_check"})
    other = grade_notebook(sandbox, answers, source)
    assert first(once).message == first(again).message == first(alone).message
    assert first(other).message != first(once).message


def test_a_replay_shows_the_failing_case(sandbox):
    source = source_notebook(
        double_check="wanted = torch.full((2,), 8.0)\nassert torch.equal(double(wanted), wanted), 'no'"
    )
    graded = grade_notebook(sandbox, submission(source), source, explain=True)
    assert "wanted = tensor of shape (2,): tensor([8., 8.])" in first(graded).message
    assert "wanted" not in first(grade_notebook(sandbox, submission(source), source)).message


@pytest.mark.parametrize(
    "check",
    [
        "while True:\n    pass",
        "while True:\n    try:\n        double(torch.ones(1))\n    except BaseException:\n        pass",
        "while True:\n    try:\n        pass\n    except Exception:\n        pass",
        "import contextlib\ndef ask():\n    with contextlib.suppress(BaseException):\n        double(torch.ones(1))\n"
        "while True:\n    ask()",
    ],
)
def test_a_check_that_hangs_costs_its_item_and_is_the_courses_fault(short, check):
    source = source_notebook(double_check=check)
    graded = grade_notebook(short, submission(source), source, only={"double_check", "count_check"})
    assert first(graded).status == "course fault"
    assert "a fault of the course, not of your answer" in first(graded).message
    assert graded.items[1].status == "passed"


def test_after_a_check_that_hangs_calls_can_still_be_counted(short):
    """A process in which one has been stopped judges the next hundred, some by each step of Python."""
    source = source_notebook(double_check="while True:\n    pass")
    grade_notebook(short, submission(source), source, only={"double_check"})
    arguments = [torch.ones(2)], [torch.ones(2000)]
    assert happens(lambda: expect_no_python_loop(lambda x: x.sum(), *arguments, "numbers"), seconds=20) == "done"


@pytest.mark.parametrize(
    "check, told",
    [
        ("double(torch.ones(1))\nfrom checks import nowhere", "ImportError"),
        ("double(torch.ones(1))\nundefined_helper.x = 1", "`undefined_helper` is not defined"),
        ("import math\ndouble(torch.ones(1))\nmath.nan", "nan points"),
        ("import math\ndouble(torch.ones(1))\nmath.inf", "inf points"),
    ],
)
def test_a_check_that_dies_is_the_courses_fault(sandbox, check, told):
    source = source_notebook(double_check=check)
    item = first(grade_notebook(sandbox, submission(source), source))
    assert item.points == 0
    assert math.isfinite(item.points)
    assert told in item.message


SOURCE = "numbers = {}\n{}\nassert torch.equal(double(torch.ones(2)).view(2), torch.full((2,), 2.0))"


@pytest.mark.parametrize(
    "check, told",
    [
        (SOURCE.format({}, "numbers['six']"), "double_check>, line 2: KeyError: 'six'"),
        ("double(torch.ones(1))\nraise ValueError('odd')", "double_check>, line 2: ValueError: odd"),
        ("if True print(1)", "the cell double_check, line 1: SyntaxError"),
    ],
)
def test_a_check_that_raises_for_the_reference_too_costs_nobody(sandbox, check, told):
    source = source_notebook(double_check=check)
    for answer in ("def double(x):\n    return 2 * x", "def double(x):\n    return None"):
        graded = grade_notebook(sandbox, submission(source, double=answer), source)
        assert first(graded).status == "course fault", first(graded)
        assert told in first(graded).message
        assert graded.items[1].status == "passed"


@pytest.mark.parametrize(
    "package, text, told",
    [
        ("misspelt", "def check(double):\n    if True print(1)", "misspelt/hidden.py, line 2: SyntaxError"),
        ("keyless", "numbers = {}['six']\ndef check(double): pass", "keyless/hidden.py, line 1: KeyError: 'six'"),
        ("nameless", "def check(double):\n    undefined", "nameless/hidden.py, line 2: NameError"),
        ("homeless", "from checks import nowhere", "homeless/hidden.py, line 1: ImportError"),
    ],
)
def test_a_module_of_checks_that_is_at_fault_costs_its_checks_and_nobody(
    sandbox, tmp_path, monkeypatch, package, text, told
):
    (tmp_path / package).mkdir()
    (tmp_path / package / "hidden.py").write_text(text)
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    source = source_notebook(double_check=f"from checks.{package}.hidden import check\n\ncheck(double)")
    graded = grade_notebook(sandbox, submission(source), source)
    assert first(graded).status == "course fault" and told in first(graded).message, first(graded)
    assert graded.items[1].status == "passed" and not graded.in_doubt


def test_what_a_check_cannot_use_is_the_students_where_the_reference_passes(sandbox):
    source = source_notebook(double_check=SOURCE.format({}, ""))
    item = first(grade_notebook(sandbox, submission(source, double="def double(x):\n    return None"), source))
    assert (item.status, "AttributeError" in item.message) == ("failed", True)


def test_a_sleeper_meets_the_clock_and_is_in_doubt_and_a_loop_is_not(sandboxed):
    source = source_notebook()
    limits = replace(LIMITS, cell_seconds=1.0, clock_factor=1.5)
    with Sandbox(limits, preload=()) as sandbox:
        sandbox.worker().kill()
        for code, by_clock, told in (
            ("import time\ntime.sleep(10**6)", True, "seconds by the clock"),
            ("while True: pass", False, "more than 1 seconds of processor time"),
        ):
            answers = submission(source, double=f"def double(x):\n    {code.replace(chr(10), chr(10) + '    ')}")
            graded = grade_notebook(sandbox, answers, source, only={"double_check"})
            assert first(graded).status == "timeout" and told in first(graded).message, first(graded)
            assert list(graded.in_doubt) == (["double_check"] if by_clock else [])


def test_many_calls_may_take_longer_than_one(sandboxed):
    source = source_notebook(double_check="for _ in range(4):\n    assert double(2) == 4")
    work = (
        "import time\ndef double(x):\n    end = time.process_time() + 0.5\n    while time.process_time() < end: pass\n"
    )
    answers = submission(source, double=f"{work}    return 2 * x")
    for limits, status in (({}, "passed"), ({"calls_seconds": 1.0}, "timeout"), ({"cell_seconds": 0.2}, "timeout")):
        with Sandbox(replace(LIMITS, **{"cell_seconds": 1.5} | limits), preload=()) as sandbox:
            sandbox.worker().kill()
            item = first(grade_notebook(sandbox, answers, source, only={"double_check"}))
            assert item.status == status, item


def test_a_workers_time_counts_all_its_threads_and_is_read_from_outside(sandbox):
    worker = sandbox.worker()
    before = worker.seconds()
    link = Link(worker, LIMITS)
    spin = "import threading, time\ndef spin():\n    while time.thread_time() < 0.2: pass\n"
    link.run(spin + "a = [threading.Thread(target=spin) for _ in range(2)]\nfor t in a: t.start()", "<x>")
    link.run("for t in a: t.join()\nspent = time.process_time()", "<y>")
    spent = link.named("spent")
    assert spent >= 0.4 and worker.seconds() - before >= 0.39
    link.close()
    assert worker.seconds() >= spent, "what it had spent stays known"


def test_a_broken_helper_of_the_course_is_not_the_students_fault(sandbox):
    source = source_notebook()
    source.cells[1].source += "\nfrom torch import no_such_function as helper\ndef other(): return helper()"
    answers = submission(source, double="def double(x):\n    return helper(x)")
    item = first(grade_notebook(sandbox, answers, source))
    assert item.status == "course fault"
    assert "a fault of the course" in item.message
    assert "no_such_function" in item.message
    own = submission(source, double="def double(x):\n    return helpful(x)")
    assert first(grade_notebook(sandbox, own, source)).status == "error"


HELPER = (
    "from autograder.wire.proxy import place\nplace('def help(f):\\n    {}\\n    return f(1)', 'help', double)(double)"
)


@pytest.mark.parametrize(
    "body, told",
    [("import no_such_package", "No module named 'no_such_package'"), ("math.sqrt(2)", "name 'math' is not defined")],
)
def test_a_helper_that_a_check_placed_is_the_courses(sandbox, body, told):
    item = first(
        grade_notebook(sandbox, submission(source := source_notebook(double_check=HELPER.format(body))), source)
    )
    assert item.status == "course fault"
    assert "a fault of the course" in item.message and "helper help" in item.message and told in item.message


@pytest.mark.parametrize("check", ["double(1)", "from autograder.checks import call\ncall(double, 1)"])
def test_an_earlier_chapter_that_is_broken_is_the_courses(sandbox, check):
    source, earlier = (
        source_notebook(double_check=check),
        "import no_such_package\ndef twice(x):\n    return no_such_package.f(x)",
    )
    answers = submission(source, double="from earlier import twice\ndef double(x):\n    return twice(x)")
    item = first(grade_notebook(sandbox, answers, source, modules={"earlier": earlier}))
    assert item.status == "course fault"
    assert "a fault of the course" in item.message and "earlier: NameError" in item.message
    own = submission(source, double="from earlier import twice\ndef double(x):\n    return no_such_package.f(x)")
    item = first(grade_notebook(sandbox, own, source, modules={"earlier": earlier}))
    assert item.status in ("error", "failed") and "a fault of the course" not in item.message


def test_names_are_not_to_be_changed():
    assert defined_names("a = 1") == ("a",)


# ---- the sandbox itself


def test_a_bubblewrap_that_does_not_start_is_told_with_its_remedy(asked, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    asked.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(SandboxError, match="does not start: bwrap: setting up uid map: Permission denied; "):
        Sandbox(LIMITS)
    with Sandbox(LIMITS, unsafe=True, preload=()) as sandbox:
        assert not sandbox.sandboxed
        source = source_notebook()
        sandbox.worker().kill()
        graded = grade_notebook(sandbox, submission(source), source, only={"double_check"})
        assert first(graded).status == "passed"


def test_where_it_starts_nothing_is_said(sandboxed, asked):
    pytest.importorskip("pyseccomp")
    assert sandboxes.why_not_sandboxed() == ""


def test_an_error_of_the_engine_ends_its_sandbox(sandboxed, tmp_path, monkeypatch):
    import nbformat

    source = source_notebook()
    for name, notebook in (("source", source), ("handed_in", submission(source))):
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    job = Job(tmp_path / "handed_in.ipynb", tmp_path / "source.ipynb")
    started = []
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr("autograder.run.grade_notebook", lambda sandbox, *a, **k: started.append(sandbox) or 1 / 0)
            outcome = grade_job(job)
        assert "ZeroDivisionError" in outcome.ungradable
    assert started[0] is not started[1]
    assert all(sandbox._process is None for sandbox in started)
    assert {item.status for item in grade_job(job).items} == {"passed"}


# ---- what is handed in costs little

_CELL = {"cell_type": "heading", "level": 3 * 10**8, "source": "x", "metadata": {}}
HEADING = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [_CELL], "metadata": {}}]}
DOTS = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "import " + ".".join("a" * 40_000), "metadata": {}}]}


@pytest.mark.parametrize("notebook, told", [(HEADING, None), (DOTS, "a name of more than 2,000 parts")])
def test_a_small_file_costs_little(tmp_path, notebook, told):
    path = tmp_path / "chapter.ipynb"
    path.write_text(json.dumps(notebook))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if told:
        with pytest.raises(SubmissionError, match=told):
            read_notebook(path)
    else:
        assert read_notebook(path).cells[0].source.startswith("#")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_rulers_of_dots_are_no_names(tmp_path):
    path = tmp_path / "chapter.ipynb"
    text = "# " + "." * 5000 + "\n" + "# A. B. C.\n" * 3000
    path.write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": text, "metadata": {}}]}))
    assert read_notebook(path).cells[0].source == text


# ---- nothing that was handed in is imported

GRADES = """
import sys, pathlib
FIRST
import autograder.course.batch, autograder.course.check, autograder.course.gradebook, autograder.course.grade
import autograder.run
import torch
try:
    import torch.backends.opt_einsum
    import opt_einsum
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "first, told", [("", "No module named 'opt_einsum'"), ("import autograder.course.imports", "fooled")]
)
def test_a_submission_is_never_on_the_graders_path(tmp_path, first, told):
    """Beside it, the same process with the notebooks' loader switched on: there it works."""
    folder = tmp_path / "01_weighted_averages"
    folder.mkdir()
    code = (
        GRADES.replace("FIRST", first)
        + "print('autograder_was_fooled' in dir(sys.modules.get('opt_einsum')) and 'fooled')"
    )
    source = "def autograder_was_fooled(): pass"
    (folder / "opt_einsum.ipynb").write_text(
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": source}]})
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told in done.stdout, done.stderr


def test_a_wrong_tensor_is_drawn_beside_the_right_one(sandbox):
    check = "from autograder.checks import expect_close\nexpect_close(double(torch.arange(3.0)), 2 * torch.arange(3.0))"
    source = source_notebook(double_check=check)
    graded = grade_notebook(sandbox, submission(source, double="def double(x):\n    return 3 * x"), source)
    error, maps = find(graded.notebook, "double_check").outputs
    assert (error.output_type, first(graded).status, first(graded).points) == ("error", "failed", 0)
    assert maps.data["text/html"].count("<table") == 2


def test_long_lists_are_shown_where_they_differ():
    for got, expected_shown, got_shown in (
        ([0, 9, *range(2, 20)], "[0, 1, 2, 3, 4, 5, 6, 7, …]", "[0, 9, 2, 3, 4, 5, 6, 7, …]"),
        ([*range(12), 14], "[…, 11, 12, 13, 14, 15, 16, 17, …]", "[…, 11, 14]"),
        (list(range(21)), "[…, 19]", "[…, 19, 20]"),
    ):
        told = str(Complaint(found(Unexplained.VALUES, "the texts", expected=list(range(20)), got=got)))
        assert f"{expected_shown}, got {got_shown}" in told
