"""The plumbing that chapters share: data by film, batches, checkpoints that know their code and go on."""

import copy

import torch
from torch import nn

import autograder.course.imports  # noqa: F401  (chapters become importable)
from attention_course.data import (
    EOS,
    PAD,
    SOS,
    caption_batches,
    caption_fields,
    hold_out_films,
    load_captions,
    load_reviews,
    review_batches,
    review_fields,
)
from attention_course.fused import fuse_attention
from attention_course.training import checkpoint_path, fit


def test_reviews_of_a_film_stay_together(repository):
    text, label = review_fields()
    train, test = load_reviews(repository / "data/sample", text, label)
    kept, held = hold_out_films(train, 0.2)
    assert len(kept) + len(held) == len(train)
    assert max(e.number for e in kept) < min(e.number for e in held)
    assert {e.label for e in held} == {0, 1} == {e.label for e in test}


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
