"""The page of results says what the runs say, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def report():
    spec = importlib.util.spec_from_file_location("report", ROOT / "results" / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(**changes) -> dict:
    return {
        "experiment": "Reviews",
        "data": "10 reviews",
        "metric": "Accuracy in percent",
        "model": "transformer",
        "parameters": 1234,
        "epochs": 2,
        "seconds": 10.0,
        "processor_seconds": 9.0,
        "threads": 1,
        "precision": "float32",
        "machine": "a laptop",
        "load": 1.0,
        "seed": 0,
        "values": {"accuracy": 80.0},
    } | changes


def test_seeds_become_one_row(report):
    simple = run(model="simple", values={"accuracy": 70.0})
    page = report.render([run(), simple, run(seed=1, values={"accuracy": 82.0}, seconds=12.0)])
    assert "| transformer | 81.00 ± 1.41 | 0, 1 |" in page
    assert "| transformer | 1,234 | 2 | 11 ± 1 | 9 ± 0 | 1 | float32 | 1.0 ± 0.0 | a laptop |" in page
    assert "| simple | 70.00 | 0 |" in page
    assert page.index("| transformer |") < page.index("| simple |")


@pytest.mark.parametrize("change", [{"epochs": 3}, {"threads": 2}, {"precision": "bfloat16"}, {"parameters": 9}])
def test_other_settings_are_other_rows(report, change):
    page = report.render([run(), run(seed=1, **change)])
    assert page.count("| transformer | 80.00 |") == 2


def test_each_measure_is_a_column(report):
    runs = [run(values={"greedy": 38.0, "beam": 39.5}), run(model="simple", values={"greedy": 30.0})]
    page = report.render(runs)
    assert "| model | greedy | beam | seeds |" in page
    assert "| transformer | 38.00 | 39.50 | 0 |" in page
    assert "| simple | 30.00 | – | 0 |" in page


def test_notes_stand_once_below(report):
    page = report.render([run(notes=["By a rule."]), run(seed=1, notes=["By a rule.", "Twice."])])
    assert page.endswith("\n\n- By a rule.\n- Twice.\n")


def test_runs_are_kept_and_read(report, tmp_path):
    report.write_run(run(), tmp_path)
    report.write_run(run(seed=1), tmp_path)
    report.write_run(run(epochs=5), tmp_path)  # the same run again takes the old one's place
    assert [r["epochs"] for r in report.read_runs(tmp_path)] == [5, 2]


def test_clocks_tell_what_a_run_cost(report):
    cost = report.clocks()()
    assert set(cost) < set(run())
    assert cost["seconds"] >= 0 and cost["threads"] >= 1


def test_the_page_is_up_to_date(report):
    runs, page = report.read_runs(), ROOT / "RESULTS.md"
    if runs:
        assert page.read_text(encoding="utf-8") == report.render(runs), "run `make results`"
