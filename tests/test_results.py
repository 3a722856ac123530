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
        "machine": "a laptop",
        "seed": 0,
        "value": 80.0,
    } | changes


def test_seeds_become_one_row(report):
    page = report.render([run(), run(seed=1, value=82.0, seconds=12.0), run(model="simple", value=70.0)])
    assert "| transformer | 1,234 | 2 | 11 ± 1 | a laptop | 0, 1 | 81.00 ± 1.41 |" in page
    assert "| simple | 1,234 | 2 | 10 | a laptop | 0 | 70.00 |" in page
    assert page.index("| transformer |") < page.index("| simple |")


def test_other_settings_are_other_rows(report):
    page = report.render([run(), run(seed=1, epochs=3)])
    assert page.count("| transformer |") == 2


def test_runs_are_kept_and_read(report, tmp_path):
    report.write_run(run(), tmp_path)
    report.write_run(run(seed=1), tmp_path)
    report.write_run(run(value=81.0), tmp_path)  # the same run again takes the old one's place
    assert [r["value"] for r in report.read_runs(tmp_path)] == [81.0, 80.0]


def test_the_page_is_up_to_date(report):
    runs, page = report.read_runs(), ROOT / "RESULTS.md"
    if runs:
        assert page.read_text(encoding="utf-8") == report.render(runs), "run `make results`"
