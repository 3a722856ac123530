"""The plumbing that chapters share: data by film, batches, checkpoints that know their code and go on."""

import copy
import shutil
import subprocess
import sys

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook
from stopping import equal_states, interrupted
from torch import nn

import autograder.course.imports  # noqa: F401  (chapters become importable)
from attention_course.data import (
    EOS,
    PAD,
    SOS,
    caption_batches,
    caption_fields,
    data_root,
    hold_out_by_number,
    load_captions,
    load_reviews,
    read_reviews,
    review_batches,
    review_fields,
)
from attention_course.fused import fuse_attention
from attention_course.training import checkpoint_path, fit, keep_training, load_state, save


def test_reviews_are_held_out_by_number(repository):
    text, label = review_fields()
    train, test = load_reviews(repository / "data/sample", text, label)
    kept, held = hold_out_by_number(train, 0.2)
    assert len(kept) + len(held) == len(train)
    assert max(e.number for e in kept) < min(e.number for e in held)
    assert {e.label for e in held} == {0, 1} == {e.label for e in test}


def test_reviews_as_they_were_written_come_in_the_same_order(repository, tmp_path):
    sample = repository / "data/sample"
    train, _ = load_reviews(sample, *review_fields())
    written = read_reviews(sample, "train")
    assert [(r.number, r.label) for r in written] == [(e.number, e.label) for e in train]
    with pytest.raises(FileNotFoundError, match=r"unsup: python data/download\.py"):
        read_reviews(sample, "train", labelled=False)

    # Unlabelled reviews are no part of the labelled ones.
    root = tmp_path / "full"
    shutil.copytree(sample / "imdb", root / "imdb")
    unsup = root / "imdb/aclImdb/train/unsup"
    unsup.mkdir()
    (unsup / "10_0.txt").write_text("Better.")
    (unsup / "9_0.txt").write_text("Good.<br /><br />Bad.")
    unlabelled = read_reviews(root, "train", labelled=False)
    assert [(r.text, r.label, r.number) for r in unlabelled] == [("Good.  Bad.", None, 9), ("Better.", None, 10)]
    assert read_reviews(root, "train") == written
    assert len(load_reviews(root, *review_fields())[0]) == len(train)


def test_a_long_review_gives_its_end(repository):
    text, label = review_fields()
    train, _ = load_reviews(repository / "data/sample", text, label)
    text.build_vocab(train)
    batches = review_batches(train, 200, max_len=7)
    assert sum(len(labels) for _, labels in batches) == len(train)
    assert max(tokens.shape[1] for tokens, _ in batches) == 7
    ends = {tuple(text.vocab.stoi[word] for word in e.text[-7:]) for e in train if len(e.text) >= 7}
    assert {tuple(row) for tokens, _ in batches for row in tokens.tolist() if PAD not in row} <= ends


def test_captions_come_in_rectangles_with_their_ends(repository):
    german, english = caption_fields()
    train, valid, _ = load_captions(repository / "data/sample", german, english)
    german.build_vocab(train)
    english.build_vocab(train)
    again = [caption_batches(valid, 100, seed=3) for _ in range(2)]
    assert all(torch.equal(a, b) for one, other in zip(*again, strict=True) for a, b in zip(one, other, strict=True))
    for source, lengths, target in again[0]:
        assert (source[:, 0] == SOS).all() and ((target == EOS).sum(dim=1) == 1).all()
        assert ((source != PAD).sum(dim=1) == lengths).all()


def test_the_sample_is_read_where_it_is_asked_for(tmp_path, monkeypatch):
    for size in ("full", "sample"):
        (tmp_path / "data" / size / "imdb").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("ATTENTION_DATA", raising=False)
    assert data_root("imdb").name == "full"
    monkeypatch.setenv("ATTENTION_DATA", "sample")
    assert data_root("imdb").name == "sample"
    monkeypatch.setenv("ATTENTION_DATA", "ful")
    with pytest.raises(ValueError, match="'ful': it may be 'sample'"):
        data_root("imdb")


class Scaled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_other_code_or_settings_have_another_checkpoint(tmp_path):
    def step(x):
        return x + 1

    def other_step(x):
        return x + 2

    model = Scaled(2, 3)
    path = checkpoint_path(tmp_path, "a", {"rate": 1}, model, step)
    assert path == checkpoint_path(tmp_path, "a", {"rate": 1}, Scaled(2, 3), step)
    class_before = Scaled.forward
    try:
        Scaled.forward = lambda self, x: 3 * nn.Linear.forward(self, x)
        changed = checkpoint_path(tmp_path, "a", {"rate": 1}, model, step)
    finally:
        Scaled.forward = class_before
    others = {
        changed,
        checkpoint_path(tmp_path, "a", {"rate": 2}, model, step),
        checkpoint_path(tmp_path, "a", {"rate": 1}, Scaled(2, 4), step),
        checkpoint_path(tmp_path, "a", {"rate": 1}, model, other_step),
    }
    assert path not in others and len(others) == 4


def test_an_interrupted_training_goes_on_after_its_last_epoch(tmp_path, capsys):
    model = nn.Linear(1, 1)
    seen = []

    def run_epoch(batches):
        for batch in batches:
            if batch == interrupt_at:
                raise KeyboardInterrupt
            seen.append(batch)
        return [float(len(seen))]

    parts, path = {"model": model}, tmp_path / "checkpoint.pt"
    interrupt_at = 21
    assert fit(parts, 4, lambda epoch: [10 * epoch, 10 * epoch + 1], run_epoch, path) == [[2.0], [4.0]]
    assert "interrupted in epoch 3" in capsys.readouterr().out
    interrupt_at = None
    assert len(fit(parts, 4, lambda epoch: [10 * epoch, 10 * epoch + 1], run_epoch, path)) == 4
    assert seen == [0, 1, 10, 11, 20, 20, 21, 30, 31]


class Learner:
    """A training in which everything counts that a checkpoint has to keep: dropout, optimizer, rate, average."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 0.1)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step))
        self.average = torch.optim.swa_utils.AveragedModel(self.model)
        self.parts = {name: getattr(self, name) for name in ("model", "optimizer", "scheduler", "average")}

    @staticmethod
    def batches_of(epoch: int) -> list[torch.Tensor]:
        return list(torch.randn(5 + epoch % 2, 2, 3, generator=torch.Generator().manual_seed(epoch)))

    def run(self, batches) -> list[float]:
        losses = []
        for batch in batches:
            loss = self.model(batch).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.average.update_parameters(self.model)
            losses.append(loss.item())
        return losses

    def told(self, checkpoint) -> dict:
        """What the parts and the file have at the end."""
        return {name: part.state_dict() for name, part in self.parts.items()} | {"file": load_state(checkpoint)}


@pytest.mark.parametrize("pause", [None, 0.0])  # rounds of an epoch, rounds of a batch
def test_a_training_that_was_stopped_ends_as_one_that_was_not(tmp_path, pause):
    share = {"share": lambda behind: behind / 3, "pause": pause, "seed": 7}
    whole = Learner()
    keep_training(whole.parts, {}, whole.batches_of, whole.run, tmp_path / "whole.pt", **share)
    path = tmp_path / "stopped.pt"
    for steps in (0, 7, 1, 4):  # before the first is over, in the middle of epochs, once more in the same
        learner = Learner()
        with interrupted(steps):
            keep_training(learner.parts, load_state(path), learner.batches_of, learner.run, path, **share)
        torch.rand(steps + 1)  # whatever else happens before it goes on
    last = Learner()
    keep_training(last.parts, load_state(path), last.batches_of, last.run, path, **share)
    assert equal_states(last.told(path), whole.told(tmp_path / "whole.pt"))
    assert len(load_state(path)["history"]) == (3 if pause is None else 16)
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "whole.pt"]
    # What is over stays as it is.
    keep_training(last.parts, load_state(path), last.batches_of, None, path, **share)


def test_a_chapters_training_that_was_stopped_ends_as_one_that_was_not(tmp_path):
    ends = []
    for name, stops in (("whole", ()), ("stopped", (7, 4))):
        for steps in stops:
            learner = Learner()
            with interrupted(steps):
                assert len(fit(learner.parts, 3, learner.batches_of, learner.run, tmp_path / name)) == 1
        learner = Learner()
        rows = fit(learner.parts, 3, learner.batches_of, learner.run, tmp_path / name)
        ends.append(learner.told(tmp_path / name) | {"rows": rows})
    assert equal_states(*ends) and len(ends[0]["rows"]) == 3


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "state.pt"
    save({"epoch": 1}, path)
    with pytest.raises(AttributeError):
        save({"epoch": lambda: 2}, path)  # cannot be written to its end
    assert load_state(path) == {"epoch": 1} and list(tmp_path.iterdir()) == [path]


def test_fused_attention_answers_as_chapter_04s(repository, monkeypatch):
    monkeypatch.chdir(repository / "solutions/05_positions")
    from multi_head_attention import MultiHeadAttention

    torch.manual_seed(0)
    plain = MultiHeadAttention(12, 3).double()
    fused = fuse_attention(copy.deepcopy(plain))
    queries, keys = torch.randn(2, 4, 12).double(), torch.randn(2, 5, 12).double()
    nothing = torch.zeros(2, 1, 5, dtype=torch.bool)
    nothing[0, :, :3] = True
    for mask in (None, torch.rand(4, 5) > 0.3, torch.rand(2, 4, 5) > 0.3, nothing, torch.rand(2, 3, 4, 5) > 0.3):
        answers = []
        for attention in (plain, fused):
            attention.zero_grad()
            output, weights = attention(queries, keys, keys, mask)
            output.square().sum().backward()
            answers.append([output, *(p.grad for p in attention.parameters())])
        assert weights is None
        assert all(torch.allclose(a, b) for a, b in zip(*answers, strict=True))


def test_a_chapter_is_executed_on_the_sample_or_left_as_it_was(repository, tmp_path):
    """What `make execute` runs, in a course of one chapter."""
    chapter = tmp_path / "solutions/01_one/one.ipynb"
    chapter.parent.mkdir(parents=True)
    for name in ("execute.py", "made_of.py", "predictions.py"):
        shutil.copy(repository / "solutions" / name, tmp_path / "solutions")
    (tmp_path / "solutions/curriculum.toml").write_text(
        '[[chapter]]\nfolder = "01_one"\nmodule = "one"\ntitle = "One"\nexercises = []\n'
    )

    def execute(*sources):
        cells = [new_code_cell(source, id=f"cell-{k}") for k, source in enumerate(sources)]
        nbformat.write(new_notebook(cells=cells), chapter)
        before = chapter.read_bytes()
        command = [sys.executable, tmp_path / "solutions/execute.py", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert [path.name for path in chapter.parent.iterdir()] == ["one.ipynb"]
        return done, chapter.read_bytes() == before

    done, unchanged = execute("import os", "print(os.environ['ATTENTION_DATA'])")
    cells = nbformat.read(chapter, as_version=4).cells
    assert (done.returncode, unchanged) == (0, False), done.stderr
    assert [cell.execution_count for cell in cells] == [1, 2] and cells[1].outputs[0].text == "sample\n"

    done, unchanged = execute("x = 1", "x / 0")
    told = "01_one: the cell cell-1 raised ZeroDivisionError: division by zero; the notebook is as it was"
    assert (done.returncode, unchanged, done.stderr.splitlines()[-1]) == (1, True, told)
