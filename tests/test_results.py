"""The page of results says what the runs say, and nothing else; and what the scripts compute beside the chapters."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "results" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def report():
    return load("report")


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


REVIEWS = [np.array(numbers) for numbers in ([2, 3, 4, 0, 2, 3], [3, 4, 2, 3, 1, 5], [4, 0, 5, 4], [4, 0])]


def test_repeated_pairs_of_words_have_vectors():
    embedding = load("words_and_pairs").WordsAndPairs(torch.nn.Embedding(6, 3), REVIEWS, pairs_from=2)
    tokens = torch.tensor([[2, 3, 4, 2, 5], [4, 0, 2, 3, 1]])
    assert embedding(tokens).equal(embedding.words(tokens))  # they begin at 0
    torch.nn.init.normal_(embedding.pairs.weight)
    added = embedding(tokens) - embedding.words(tokens)
    # In two reviews: (2, 3) and (3, 4). (4, 2) is in one, and (4, 0) ends with <unk>.
    expected = torch.zeros(2, 5, 3)
    expected[0, 1] = expected[1, 3] = embedding.pairs.weight[0]
    expected[0, 2] = embedding.pairs.weight[1]
    torch.testing.assert_close(added, expected)
    assert len(embedding.pairs.weight) == 2


def test_words_in_the_same_company_have_close_vectors():
    chance = np.random.default_rng(0)
    # Words 2 to 4 stand beside 8 to 11, words 5 to 7 beside 12 to 15.
    starts = chance.integers(0, 2, 400)
    reviews = [np.array([chance.integers(2, 5) + 3 * s, chance.integers(8, 12) + 4 * s]) for s in starts]
    vectors = load("words_and_pairs").word_vectors(reviews, words=16, dim=4, window=2)
    assert vectors.shape == (16, 4)
    torch.testing.assert_close(vectors[2:].norm(dim=1), torch.ones(14))
    alike = vectors[2:8] @ vectors[2:8].T
    assert alike[:3, :3].min() > 0.9 > 0.5 > alike[:3, 3:].max()
