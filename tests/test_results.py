"""The page of results says what the runs say, and nothing else; and what the scripts compute beside the chapters."""

import importlib.util
import itertools
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import torch
from sacrebleu.metrics import BLEU
from scripts import run_code

from attention_course.bleu import bleu_counts, bleu_difference, bleu_interval, bleu_of, bleu_samples
from attention_course.words import LogCountRatios, word_vectors

ROOT = Path(__file__).resolve().parent.parent


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "results" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "results"))  # the scripts find each other in their own folder
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "results"))
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


@pytest.mark.parametrize("change", [{"epochs": 3}, {"precision": "bfloat16"}, {"parameters": 9}])
def test_other_settings_are_other_rows(report, change):
    page = report.render([run(), run(seed=1, **change)])
    assert page.count("| transformer | 80.00 |") == 2


def test_what_follows_from_a_draw_is_one_row(report):
    drawn = {"drawn": ["parameters", "epochs"]}
    page = report.render([run(**drawn), run(seed=1, parameters=1300, epochs=3, **drawn)])
    assert "| transformer | 80.00 ± 0.00 | 0, 1 |" in page
    assert "| transformer | 1,234 to 1,300 | 2 to 3 |" in page


def test_the_interval_of_seeds_is_the_mean_of_theirs(report):
    runs = [run(seed=k, intervals={"accuracy": [79.0 + k, 81.0 + k]}) for k in range(2)]
    assert "| transformer | 80.00 ± 0.00 [79.50, 81.50] | 0, 1 |" in report.render(runs)


def test_another_machine_is_another_cost_of_the_same_row(report):
    page = report.render([run(), run(seed=1, threads=2, machine="a server")])
    assert "| transformer | 80.00 ± 0.00 | 0, 1 |" in page
    assert "| 1, 2 | float32 | 1.0 ± 0.0 | a laptop, a server |" in page


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


def test_a_measure_that_should_be_low_puts_the_lowest_first(report):
    runs = [run(metric="Perplexity: lower is better"), run(metric="Perplexity: lower is better", model="other")]
    runs[1]["values"] = {"accuracy": 12.0}
    page = report.render(runs)
    assert page.index("| other |") < page.index("| transformer |")


def test_intervals_and_replaced_rows_are_shown(report):
    page = report.render([run(intervals={"accuracy": [79.5, 80.5]}, replaced="it read the first words only.")])
    assert "| transformer † | 80.00 [79.50, 80.50] | 0 |" in page
    assert page.endswith("- † transformer: it read the first words only.\n")


def test_differences_and_published_figures_have_tables_of_their_own(report):
    about = {"experiment": "Reviews", "seed": "0+1", "measure": "accuracy"}
    comparison = about | {"kind": "comparison", "model": "one − other", "difference": [1.0, -0.25, 2.25]}
    published = {
        "experiment": "Reviews",
        "kind": "published",
        "model": "big",
        "values": {"accuracy": 95.1},
        "source": "x",
    }
    page = report.render([run(), comparison, published])
    assert "| one − other | accuracy | +1.00 [-0.25, +2.25] | 0+1 |" in page
    assert "| big | 95.1 | x |" in page


@pytest.mark.parametrize("written", ['{"experiment": "Rev', '{"experiment": "Reviews"}'])
def test_a_broken_record_is_named(report, tmp_path, written):
    (tmp_path / "half.json").write_text(written, encoding="utf-8")
    with pytest.raises(ValueError, match=r"half\.json .*run the model again"):
        report.read_runs(tmp_path)


def test_n_grams_give_probabilities():
    ngrams = load("ngrams")
    chance = np.random.default_rng(0)
    text = [[0, *(1 + chance.zipf(1.5, size=6).clip(1, 39)).tolist(), 1] for _ in range(60)]
    for order in (1, 2, 3, 4):
        probability = ngrams.kneser_ney(text, order, vocabulary=40)
        for context in ([0], [0, 2], [0, 2, 3, 2], [0, 5, 5, 5, 5]):
            following = [probability([*context, token], len(context)) for token in range(1, 41)]
            assert min(following) > 0 and math.isclose(sum(following), 1.0)


def test_two_grams_are_those_of_the_formula():
    text = [[0, *row, 1] for row in ([2, 3], [2, 3], [2, 4], [3, 5], [5, 3, 4], [2, 3, 6])]
    probability = load("ngrams").kneser_ney(text, 2, vocabulary=6)
    pairs = [pair for row in text for pair in itertools.pairwise(row)]
    kinds = sorted(set(pairs))

    def taken(counts):
        n1, n2, n3, n4 = (sum(c == k for c in counts) for k in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2)
        d2 = 2 - 3 * y * n3 / n2
        return [0, 1 - 2 * y * n2 / n1, d2, 3 - 4 * y * n4 / n3 if n3 else d2]

    contexts = {word: sum(after == word for _, after in kinds) for word in range(1, 7)}  # words it follows
    below, above = taken(list(contexts.values())), taken([pairs.count(kind) for kind in kinds])
    left = sum(below[min(count, 3)] for count in contexts.values() if count) / len(kinds)
    alone = (contexts[3] - below[min(contexts[3], 3)]) / len(kinds) + left / 6
    after_2 = [pairs.count(kind) for kind in kinds if kind[0] == 2]
    given_back = sum(above[min(count, 3)] for count in after_2) / sum(after_2)
    expected = (pairs.count((2, 3)) - above[3]) / sum(after_2) + given_back * alone
    assert math.isclose(probability([0, 2, 3], 2), expected)


def test_an_interval_of_accuracy_covers_what_it_says():
    intervals, chance = load("intervals"), np.random.default_rng(1)
    shares = chance.binomial(1000, 0.9, size=400) / 10
    covered = [low <= 90 <= high for low, high in (intervals.accuracy_interval(share, 1000) for share in shares)]
    assert 0.92 <= np.mean(covered) <= 0.98


def test_a_paired_difference_ignores_what_both_models_share():
    intervals, chance = load("intervals"), np.random.default_rng(2)
    easy = chance.random(1000) < 0.8
    one, other = easy.copy(), easy.copy()
    one[:20], other[:20] = True, False
    difference, low, high = intervals.paired_difference(one, other)
    assert math.isclose(difference, 0.02) and 0.01 < low < 0.02 < high < 0.03
    assert intervals.paired_difference(one, one) == [0.0, 0.0, 0.0]


def test_bleu_from_counts_is_bleu():
    metric = BLEU(lowercase=True)
    references = ["A man in a blue shirt is standing on a ladder.", "Two dogs play in the snow.", "A girl sings."]
    worse = ["A man in a shirt stands on a ladder.", "Two dogs run through snow.", "A girl is singing."]
    one, other = (bleu_counts(metric, texts, references) for texts in (references, worse))
    assert math.isclose(bleu_of(metric, other.sum(0)), metric.corpus_score(worse, [references]).score)
    difference, low, high = bleu_difference(metric, one, other)
    assert 0 < low <= difference <= high
    low, high = bleu_interval(metric, other)
    assert low < metric.corpus_score(worse, [references]).score < high
    both = bleu_samples(metric, one, other)
    gains = both[:, 0] - both[:, 1]
    low, high = np.percentile(gains[1:], [2.5, 97.5])
    assert [round(float(value), 2) for value in (gains[0], low, high)] == bleu_difference(metric, one, other)
    assert (bleu_samples(metric, one, other, seed=1)[1:] != both[1:]).any()


TRANSLATORS = """
import tempfile, torch, multi30k
from attention_course.data import data_root
from pathlib import Path
from stopping import equal_states, interrupted
from torch import nn

torch.manual_seed(0)
source, lengths = torch.tensor([[2, 4, 5, 6, 3], [2, 7, 3, 1, 1]]), torch.tensor([5, 3])
target = torch.tensor([[2, 4, 6, 5, 3], [2, 8, 3, 1, 1]])
for attention in (True, False):
    recipe = {"dim": 4, "encoder_hidden": 3, "decoder_hidden": 6, "dropout": 0.0, "attention": attention}
    model = multi30k.new_model(recipe, (9, 10))
    expected = model(source, lengths, target, teacher_forcing=1.0)
    torch.testing.assert_close(multi30k.forced(model, source, lengths, target), expected)
    translations, looked = multi30k.gru_decode(model, source, lengths, 7)
    for tokens, weights, length in zip(translations, looked, lengths):
        assert weights.shape == (len(tokens), length)
        torch.testing.assert_close(weights.sum(1), torch.ones(len(tokens)))

# A reward for each token makes translations as long as they may be, a fine leaves nothing of them.
recipe = multi30k.RECIPES["small"] | {"vocabulary": 600, "dim": 8, "heads": 2, "depth": 1, "hidden": 8}
model = multi30k.new_model(recipe, (20, 20)).eval()
assert [list(multi30k.ways_of(name)) for name in ("gru", "words_mean", "big")] == [
    [""], ["-greedy", ""], ["-greedy", "", "-rewarded"]
]
for reward, lengths in ((50.0, {6, 7}), (-50.0, {0})):  # of 7 tokens the last may be the end
    said = multi30k.chapter_10.cached_beam(model, source, 20, 7, 2, 3, length_penalty=0.0, reward=reward)
    assert {len(tokens) for tokens in said} <= lengths

# Up in a line, flat, and down in a line.
factors = [multi30k.rate_factor(step, warmup=4, cool=5, total=20) for step in range(20)]
assert factors[:4] == [0.25, 0.5, 0.75, 1.0] and set(factors[4:16]) == {1.0}
assert factors[16:] == [0.8, 0.6, 0.4, 0.2]

# Averaged weights are those to translate with, under the names of the model.
model = nn.Linear(2, 1)
averaged = multi30k.AveragedModel(model)
averaged.update_parameters(model)
state = {"model": {}, "averaged": averaged.state_dict()}
assert set(multi30k.finished_weights(state)) == set(model.state_dict())

# Merges are left out anew with each seed, and put together the text is the same.
root = data_root("multi30k").parent / "sample"
captions = multi30k.Captions(root, {"units": "subwords", "vocabulary": 600})
one, same, other = (captions.training_examples(0.3, seed, None) for seed in (1, 1, 2))
assert [e.src for e in one] == [e.src for e in same] != [e.src for e in other]
assert [captions.subwords.decode(e.trg) for e in other] == [captions.subwords.decode(e.trg) for e in captions.train]

# Of what a teacher says each epoch has another half; the German is the same.
half, others = (captions.training_examples(0.0, seed, ["A man."] * len(captions.train)) for seed in (1, 2))
mans = [[captions.subwords.decode(e.trg) == "A man." for e in examples] for examples in (half, others)]
assert [e.src for e in half] == [e.src for e in captions.train]
assert 0.4 < sum(mans[0]) / len(captions.train) < 0.6 and mans[0] != mans[1]

# Stopped in its second epoch and gone on with, it ends bit for bit where it ends without a stop.
recipe |= {"epochs": 2, "cool": 1, "tokens_in_a_batch": 2000}
taught = ["A man."] * len(captions.train)
many = len(multi30k.close_batches(captions.train, 2000, 0))
with tempfile.TemporaryDirectory() as folder:

    def train(path):
        torch.manual_seed(0)
        model = multi30k.new_model(recipe, captions.sizes)
        multi30k.train(model, captions, recipe, 0, path, taught)
        return torch.load(path, weights_only=True) | {"ends": model.state_dict(), "spent": None}

    whole, path = train(Path(folder, "whole.pt")), Path(folder, "stopped.pt")
    with interrupted(many + many // 2):
        train(path)
    assert len(torch.load(path, weights_only=True)["history"]) == 1
    assert equal_states(train(path), whole) and len(whole["history"]) == 2
"""


CLASSIFIERS = """
import tempfile, torch, imdb
from pathlib import Path
from attention_course.data import data_root
from stopping import equal_states, interrupted

# Stopped in its second epoch and gone on with, a training ends bit for bit where it ends without a stop.
text, label = imdb.review_fields()
reviews, _ = imdb.load_reviews(data_root("imdb").parent / "sample", text, label)
reviews = imdb.ends(reviews, 32)
text.build_vocab(reviews, max_size=500)
settings = imdb.NETWORKS["grams"] | {"epochs": 2, "dim": 8, "word_dropout": 0.5, "dropout": 0.1}
settings["tokens_in_a_batch"] = 1000
many = len(imdb.review_batches(reviews, 1000, 32, 0))
with tempfile.TemporaryDirectory() as folder:

    def train(path):
        torch.manual_seed(0)
        model = imdb.new_network("grams", reviews, settings)
        imdb.train_network(model, reviews, settings, 0, path)
        return torch.load(path, weights_only=True) | {"ends": model.state_dict(), "spent": None}

    whole, path = train(Path(folder, "whole.pt")), Path(folder, "stopped.pt")
    with interrupted(many + many // 2):
        train(path)
    assert len(torch.load(path, weights_only=True)["history"]) == 1
    assert equal_states(train(path), whole) and len(whole["history"]) == 2
"""


def test_translators_are_trained_and_read_as_the_script_says():
    run_code(TRANSLATORS)


def test_a_classifier_that_was_stopped_ends_as_one_that_was_not():
    run_code(CLASSIFIERS)


def test_n_grams_weigh_what_the_log_of_their_ratio_says():
    texts = [["good", "film"], ["good", "good"], ["bad", "film"], ["not", "good"]]
    reviews = [SimpleNamespace(text=text) for text in texts]
    weigher = LogCountRatios(longest=2, min_df=1)
    table = weigher.fit_transform(reviews, [1, 1, 0, 0]).toarray()
    number = weigher.counter.vocabulary_
    # Reviews that hold each n-gram, and one more: positive ones 3 of "good", negative ones 2; 8 n-grams.
    positive = {"good": 3, "film": 2, "good film": 2, "good good": 2, "bad": 1, "not": 1, "bad film": 1, "not good": 1}
    negative = {"good": 2, "film": 2, "good film": 1, "good good": 1, "bad": 2, "not": 2, "bad film": 2, "not good": 2}
    assert set(number) == set(positive)
    for name, column in number.items():
        ratio = math.log(positive[name] / sum(positive.values())) - math.log(negative[name] / sum(negative.values()))
        holds = [name in {*text, " ".join(text)} for text in texts]
        np.testing.assert_allclose(table[:, column], np.array(holds) * ratio)
    unseen = weigher.transform([SimpleNamespace(text=["never", "seen"])])
    assert unseen.shape == (1, len(number)) and unseen.nnz == 0


def test_repeated_pairs_and_triples_of_words_have_vectors():
    texts = ([2, 3, 4, 0, 2, 3], [3, 4, 2, 3, 1, 5], [4, 0, 5, 4], [4, 0], [5, 2, 3, 4])
    words, reviews = torch.nn.Embedding(6, 3), [np.array(numbers) for numbers in texts]
    embedding = load("ngram_vectors").WordsAndNGrams(words, reviews, longest=3, seen_in=2, dropouts=(0.0, 0.5))
    tokens = torch.tensor([[2, 3, 4, 2, 5], [4, 0, 2, 3, 1]])
    assert embedding(tokens).equal(words(tokens))  # they begin at 0
    pairs, triples = (torch.nn.init.normal_(table.weight) for table in embedding.grams)
    # In two reviews or more: (2, 3), (3, 4) and (2, 3, 4). (4, 2) is in one, and (4, 0) ends with <unk>.
    expected = torch.zeros(2, 5, 3)
    expected[0, 1] = expected[1, 3] = pairs[0]
    expected[0, 2] = pairs[1] + triples[0]
    torch.testing.assert_close(embedding.eval()(tokens) - words(tokens), expected)
    assert [len(table.weight) for table in embedding.grams] == [2, 1]
    # While training, half of the n-grams' vectors are dropped, and the others are twice as long.
    several = embedding.train()(tokens[:1].expand(400, -1)) - words(tokens[:1])
    torch.testing.assert_close(several.mean(0), expected[0], atol=0.4, rtol=0)
    assert (several[:, 1] == 0).all(-1).float().mean().sub(0.5).abs() < 0.1


def test_reviews_that_hold_the_same_n_grams_have_close_vectors():
    chance = np.random.default_rng(0)
    # Reviews 0 to 19 hold most of the n-grams 0 to 29, reviews 20 to 39 most of 30 to 59.
    holds = np.zeros((40, 60))
    for review in range(40):
        holds[review, chance.choice(30, 25, replace=False) + 30 * (review >= 20)] = 1.0
    settings = {"dim": 8, "rate": 0.2, "epochs": 100, "batch": 8, "scale": 6.0, "drawn": 8, "others": 32, "against": 5}
    review_vectors = load("review_vectors").review_vectors
    vectors, grams = review_vectors(scipy.sparse.csr_matrix(holds), settings, seed=0)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(40))
    alike = vectors @ vectors.T
    for own, others in ((slice(0, 20), slice(20, 40)), (slice(20, 40), slice(0, 20))):
        assert alike[own, own].mean(dim=1).min() > 0.5 > 0.3 > alike[own, others].mean(dim=1).max()
    # Other reviews find their place among them, and move no n-gram.
    before = grams.clone()
    later, _ = review_vectors(scipy.sparse.csr_matrix(holds[15:25]), settings, seed=1, grams=grams)
    torch.testing.assert_close(grams, before)
    assert (later @ vectors[:20].T).mean(dim=1)[:5].min() > 0.5 > 0.3 > (later @ vectors[20:].T).mean(dim=1)[:5].max()


def test_words_in_the_same_company_have_close_vectors():
    chance = np.random.default_rng(0)
    # Words 2 to 4 stand beside 8 to 11, words 5 to 7 beside 12 to 15.
    starts = chance.integers(0, 2, 400)
    reviews = [np.array([chance.integers(2, 5) + 3 * s, chance.integers(8, 12) + 4 * s]) for s in starts]
    vectors = word_vectors(reviews, words=16, dim=4, window=2)
    assert vectors.shape == (16, 4)
    torch.testing.assert_close(vectors[2:].norm(dim=1), torch.ones(14))
    alike = vectors[2:8] @ vectors[2:8].T
    assert alike[:3, :3].min() > 0.9 > 0.5 > alike[:3, 3:].max()
