"""What chapter 12's body reads, how its reading goes on, and how it is tuned: small and on text made here."""

from scripts import run_code

READING = """
import tempfile, numpy as np, pytest, torch
from pathlib import Path
import pretraining as p
from stopping import equal_states, interrupted

chance = np.random.default_rng(0)
rows = [chance.integers(5, 50, chance.integers(3, 40)).astype(np.int16) for _ in range(60)]

# Texts one after another, each with its end, nothing lost but the rest.
blocks = p.pack(rows, 16, p.EOS)
joined = [number for row in rows for number in [*row.tolist(), p.EOS]]
assert blocks.flatten().tolist() == joined[: len(joined) // 16 * 16]

# Of 100,000 tokens 15 % are chosen, 80 % of these hidden, 10 % another token; no special one, none else changed.
tokens = torch.from_numpy(chance.integers(0, 1000, (100, 1000)))
read, chosen = p.mask_tokens(tokens, p.MASK, 1000, 5, 0.15, torch.Generator().manual_seed(0))
assert not chosen[tokens < 5].any() and torch.equal(read[~chosen], tokens[~chosen])
assert abs(chosen[tokens >= 5].float().mean() - 0.15) < 0.01
hidden, same = (read[chosen] == p.MASK).float().mean(), (read[chosen] == tokens[chosen]).float().mean()
assert abs(hidden - 0.8) < 0.02 and abs(same - 0.1) < 0.02

# A masked body sees both sides of a token, the other only what is before it; neither sees padding.
sizes = {"dim": 8, "heads": 2, "depth": 2, "hidden": 12, "max_len": 16}
text = torch.randint(5, 50, (1, 9))
changed = text.clone()
changed[0, 5] = 50
for objective in p.OBJECTIVES:
    torch.manual_seed(0)
    body = p.new_body(objective, sizes).eval()
    moved = (body(text) - body(changed)).abs().amax(-1)[0] > 1e-6
    assert moved[5:].all() and moved[:5].all() == (objective == "masked") and moved[:5].any() == moved[:5].all()
    longer = torch.cat([text, torch.full((1, 3), p.PAD)], dim=1)
    torch.testing.assert_close(body(longer)[:, :9], body(text))

# Stopped and gone on with, in the middle of an epoch and past its end, it ends bit for bit where it would have ended.
settings = p.READING | {"blocks_in_a_batch": 8, "warmup": 3}
with tempfile.TemporaryDirectory() as folder:

    def read(state, steps, path):
        p.read_on(state, rows, blocks[:4], settings, lambda n, _: n / steps, path, False)

    for objective in p.OBJECTIVES:
        ends = []
        for stops in ([14], [2, 12]):
            path = Path(folder, f"{objective}{len(stops)}.pt")
            state = p.first_state(objective, sizes, 0)
            for steps in stops:
                read(state, steps, path)
                state = torch.load(path, weights_only=True)
            ends.append(state)
        assert ends[0]["epoch"] >= 1 and len(ends[1]["history"]) == 2
        passing = dict.fromkeys(("history", "processor_seconds"))  # each stop has a row of its own
        assert equal_states(ends[0] | passing, ends[1] | passing)

    # What an interruption takes away is read again.
    p.SAVED_EVERY, path = 0, Path(folder, "interrupted.pt")  # a row for each batch
    with interrupted(5):
        read(p.first_state("masked", sizes, 0), 14, path)
    state = torch.load(path, weights_only=True)
    assert (state["warm"], len(state["history"])) == (5, 5)
    read(state, 9, path)
    whole = Path(folder, "masked1.pt")
    each, state = (torch.load(file, weights_only=True) for file in (path, whole))
    assert len(each["history"]) == 14 and equal_states(each | passing, state | passing)
    p.SAVED_EVERY = 300

    # It learns: of a text that repeats itself the loss falls.
    plain = [np.arange(5, 45, dtype=np.int16)] * 30
    held, path = p.pack(plain, 16, p.EOS)[:8], Path(folder, "learns.pt")
    fast = settings | {"rate": 1e-2}
    p.read_on(p.first_state("masked", sizes, 0), plain, held, fast, lambda n, _: n / 150, path, True)
    history = torch.load(path, weights_only=True)["history"]
    assert history[-1][3] < 4.5 < np.log(p.PIECES)

    # What is committed: 16 bits or 8 of each number, and it can be read on from.
    for bits, precision in ((16, 1e-3), (8, 1e-2)):
        small = Path(folder, f"{bits}.pt")
        p.export(path, b"pieces", bits, small)
        before, after = torch.load(path, weights_only=True), p.load_export(small)
        assert after["tokens"] == before["tokens"] and after["pieces"] == b"pieces" and after["optimizer"] is None
        for name, value in before["weights"].items():
            assert (after["weights"][name] - value).abs().max() <= precision * value.abs().max(), name
        p.read_on(after, plain, held, settings, lambda n, _: n / 1, Path(folder, "on.pt"), False)
    for content in (small.read_bytes()[:1000], b"", b"text"):
        Path(folder, "bad.pt").write_bytes(content)
        with pytest.raises(ValueError, match="bad.pt is no body that --export wrote"):
            p.load_export(Path(folder, "bad.pt"))
    torch.save({"weights": {}}, Path(folder, "bad.pt"))
    with pytest.raises(ValueError, match="bad.pt is no body"):
        p.load_export(Path(folder, "bad.pt"))

    # A body from a file takes nothing's place.
    root = Path(folder, "full")
    p.begin_from(small, root, "masked")
    assert torch.load(p.state_path(root, "masked"), weights_only=True)["tokens"] == before["tokens"]
    with pytest.raises(ValueError, match="is there already"):
        p.begin_from(small, root, "masked")
    p.pieces_path(root).write_bytes(b"others")
    with pytest.raises(ValueError, match="read in other pieces"):
        p.begin_from(small, root, "another")
"""

TUNING = """
import numpy as np, torch
import pretraining as p, reading as r

sizes = {"dim": 8, "heads": 2, "depth": 2, "hidden": 12, "max_len": 16}
state = p.first_state("masked", sizes, 0)
chance = np.random.default_rng(0)

# Long texts are read in windows: the summary is the mean over all of them, padding left out.
model = r.first_model("full", state, r.TUNING).eval()
long, short = torch.randint(5, 50, (1, 37)), torch.randint(5, 50, (1, 6))
said = torch.cat([model.body(part) for part in long.split(16, dim=1)], dim=1).mean(1)
torch.testing.assert_close(model.summary(long), said)
both = r.padded([long[0].numpy(), short[0].numpy()], [0, 1], 64)
torch.testing.assert_close(model.summary(both), torch.cat([said, model.body(short).mean(1)]))

# What the body has read is what it says.
state["weights"]["blocks.0.norm_1.weight"] *= 2
doubled = r.first_model("full", state, r.TUNING).eval()
assert torch.equal(doubled.body.state_dict()["blocks.0.norm_1.weight"], state["weights"]["blocks.0.norm_1.weight"])
state["weights"]["blocks.0.norm_1.weight"] /= 2

# Each parameter has one rate: the head's the highest, the embedding's the lowest.
groups = r.layer_rates(model, 1.0, 0.5)
assert sum(len(g["params"]) for g in groups) == len(list(model.parameters()))
rates = {id(q): g["lr"] for g in groups for q in g["params"]}
assert rates[id(model.head.weight)] == 1.0 and rates[id(model.body.embedding.weight)] == 0.125
assert [rates[id(b.norm_1.weight)] for b in model.body.blocks] == [0.25, 0.5]

# LoRA begins as the body it changes, and trains nothing of it.
lora = r.first_model("lora", state, r.TUNING).eval()
lora.head.load_state_dict(model.head.state_dict())
torch.testing.assert_close(lora(long), model(long))
assert {n.rpartition(".")[2] for n, q in lora.body.named_parameters() if q.requires_grad} == {"A", "B"}

# Every review is in one batch, and answers come in the order of the reviews.
rows = [chance.integers(5, 50, chance.integers(3, 60)).astype(np.int16) for _ in range(50)]
groups = r.batches(rows, 40, 200, np.random.default_rng(0))
assert sorted(i for group in groups for i in group) == list(range(50))
assert all(len(g) == 1 or len(g) * max(min(len(rows[i]), 40) for i in g) <= 200 for g in groups)
settings = r.TUNING | {"longest": 40}
lengths = r.ask(lambda tokens: (tokens != p.PAD).sum(1), model, rows, settings)
assert lengths.tolist() == [min(len(row), 40) for row in rows]

# A draw has as many of each label, and is the same each time.
labels = torch.arange(40) % 2
drawn = r.draw(labels, 10, 0)
assert labels[drawn].sum() == 5 and len(set(drawn)) == 10 and (drawn == r.draw(labels, 10, 0)).all()
assert len(r.draw(labels, 40, 0)) == 40

# Each way learns what one token decides, of texts half of which hold it.
for row in rows[::2]:
    row[-1] = 7
labels = torch.tensor([7 in row[-40:] for row in rows]).long()
for row, label in zip(rows, labels):
    row[row == 9] = 10
for way in ("full", "scratch", "lora", "frozen"):
    fast = settings | {"steps": 150, "rate": 3e-2, "dropout": 0.0, "tokens_in_a_batch": 400, "C": 100.0}
    run, probabilities = r.run_way(way, 0, state, fast, (rows, labels), rows, way)
    right = (probabilities.argmax(1) == labels).float().mean()
    assert right > (0.6 if way == "frozen" else 0.9), (way, right)  # a frozen body has 8 numbers to say it with
"""

TEACHING = """
from types import SimpleNamespace
import numpy as np, torch, self_training as t
from sklearn.linear_model import LogisticRegression
from attention_course.words import LogCountRatios

# Log-odds with mean 0 and spread 1, in the order of the probabilities.
chance = np.random.default_rng(0)
positive = torch.from_numpy(chance.random(40))
scores = t.log_odds(torch.stack([1 - positive, positive], dim=1), 40)
assert abs(scores.mean()) < 1e-9 and abs(scores.std() - 1) < 1e-9
assert (np.argsort(scores) == np.argsort(positive.numpy())).all()

# The surest of either side are told of, and the drawn ones with labels of their own.
drawn, own = np.argsort(scores)[[0, 20]], np.array([1, 0])
told, labels = t.tell(scores, drawn, own, 0.25)
expected = {i: k for k, part in enumerate((np.argsort(scores)[:10], np.argsort(scores)[30:])) for i in part}
assert dict(zip(told, labels)) == expected | dict(zip(drawn, own)) and len(told) == 21
assert len(t.tell(scores, drawn, own, 0.5)[0]) == 40

# The student is chapter 07's regression on the n-grams of what it is told of, and of no other.
words = ["good", "bad", "film", "not", "plot", "a"]
reviews = [SimpleNamespace(text=list(chance.choice(words, chance.integers(3, 9)))) for _ in range(40)]
present = LogCountRatios(3, 1).counter.fit_transform(reviews).astype(np.float64)
parameters, probabilities = t.judge_grams(present, told, labels)
weigher = LogCountRatios(3, 1)
weighted = weigher.fit_transform([reviews[i] for i in told], list(labels))
model = LogisticRegression(C=0.3, solver="liblinear", dual=True, max_iter=1000).fit(weighted, labels)
np.testing.assert_allclose(probabilities, model.predict_proba(weigher.transform(reviews)), atol=1e-3)
assert parameters == weighted.shape[1] + 1 < present.shape[1]
"""


def test_a_body_reads_on_as_the_script_says():
    run_code(READING)


def test_a_body_is_tuned_as_the_script_says():
    run_code(TUNING)


def test_a_student_is_taught_as_the_script_says():
    run_code(TEACHING)
