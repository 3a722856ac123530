"""The live figures: the translator in the page says token for token what PyTorch says; every figure runs."""

import base64
import importlib
import os
import shutil
from pathlib import Path

import pytest
import sentencepiece
import torch

from attention_course.data import PAD, SOS, caption_lines
from autograder.course import find_course
from live.bundle import LIVE, bundle
from live.display import figures
from live.models import find_model, pack_model

EOS = 3
MOST = 60
CHROMIUM = shutil.which("chromium")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def subwords():
    return sentencepiece.SentencePieceProcessor(model_file=str(find_model("translator")[1]))


@pytest.fixture(scope="module")
def captions():
    """At least 1,000 captions: those for validation if the full data is there, else the sample's in three spellings."""
    full = ROOT / "data/full"
    if (full / "multi30k/val.de").is_file():
        return caption_lines(full, "val.de")
    lines = [
        line for part in ("train", "val", "test2016") for line in caption_lines(ROOT / "data/sample", f"{part}.de")
    ]
    return [*lines, *map(str.lower, lines), *(line.rstrip(".") for line in lines)]


@pytest.fixture(scope="module")
def model(monkeypatch_module):
    """The shipped translator in chapter 09's classes, its half-precision weights read as float32."""
    monkeypatch_module.chdir(find_course().solution(find_course().find("10")).parent)
    importlib.import_module("autograder.chapters")  # makes the chapters importable
    Translator = importlib.import_module("encoder_decoder").Translator

    saved = torch.load(find_model("translator")[0], weights_only=True)
    model = Translator(**saved["settings"])
    model.encoder.embedder = model.decoder.embedder
    model.load_state_dict({name: value.float() for name, value in saved["state"].items()}, strict=False)
    return model.eval()


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page from a file, with the translator's modules and its weights."""
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: apt-get install chromium")
    names = {"weights": "weights", "subwords": "sentencepiece", "translate": "translate", "transformer": "transformer"}
    script = bundle({name: LIVE / f"lib/{file}.js" for name, file in names.items()})
    packed = base64.b64encode(pack_model(*find_model("translator"))).decode()
    script += f'const packed = Uint8Array.from(atob("{packed}"), (c) => c.charCodeAt(0));\n'
    script += "globalThis.t = { weights, subwords, translate, transformer };\n"
    script += "weights.unpackModel(packed).then((m) => (globalThis.model = translate.makeTranslator(m)));\n"
    file = tmp_path_factory.mktemp("live") / "page.html"
    file.write_text(f'<!doctype html><meta charset="utf-8"><script type="module">\n{script}</script>', encoding="utf-8")
    with pytest.importorskip("playwright.sync_api").sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(300_000)
        page.goto(file.as_uri())
        page.wait_for_function("globalThis.model")
        yield page
        browser.close()


def test_subwords_are_those_of_sentencepiece(page, subwords, captions):
    generator = torch.Generator().manual_seed(int(os.environ.get("PYTEST_SEED", "0")))
    ranges = [
        (32, 127),
        (32, 0x250),
        (0x300, 0x370),
        (0x2000, 0x2200),
        (0xAC00, 0xAD00),
        (0x1F300, 0x1F700),
        (1, 0xD800),
    ]

    def character() -> str:
        low, high = ranges[torch.randint(len(ranges), (), generator=generator)]
        return chr(torch.randint(low, high, (), generator=generator))

    strange = ["".join(character() for _ in range(12)) for _ in range(1000)]
    strange += [
        "",
        "   ",
        " a  b ",
        "a\u0308\u00e4",
        "<s> </s> <unk>",
        "▁ ▁▁x",
        "a\tb\nc\u3000d\u00a0e\u200bf",
        "ｆｕｌｌ ½ ① ﬁ",
    ]
    texts = [*captions, *strange]
    assert page.evaluate(
        "texts => texts.map((text) => t.subwords.encode(model.subwords, text))", texts
    ) == subwords.encode(texts)
    tokens = [[2, *row, 3] for row in subwords.encode(texts)]
    assert page.evaluate(
        "rows => rows.map((row) => t.subwords.decode(model.subwords, row))", tokens
    ) == subwords.decode(tokens)


@torch.no_grad()
def _greedy(model, rows: list[list[int]]) -> list[list[int]]:
    """Greedy decoding in PyTorch, in batches of sentences of similar length."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    said: list[list[int]] = [[]] * len(rows)
    for start in range(0, len(rows), 64):
        part = order[start : start + 64]
        source = torch.nn.utils.rnn.pad_sequence([torch.tensor(rows[i]) for i in part], True, PAD)
        memory, tokens = model.encode(source), torch.full((len(part), 1), SOS)
        for _ in range(MOST):
            following = model.decode(tokens, memory, source)[:, -1].argmax(dim=-1, keepdim=True)
            tokens = torch.cat([tokens, following], dim=1)
            if (tokens == EOS).any(dim=1).all():
                break
        for i, row in zip(part, tokens[:, 1:].tolist(), strict=True):
            said[i] = row[: row.index(EOS)] if EOS in row else row
    return said


def test_the_page_translates_captions_token_for_token(page, model, subwords, captions):
    rows = [[SOS, *row, EOS] for row in subwords.encode(captions)]
    assert len(rows) >= 1000
    said = page.evaluate(
        "([rows, most]) => rows.map((row) => t.translate.greedyDecode(model, row, most))", [rows, MOST]
    )
    pairs = zip(captions, said, _greedy(model, rows), strict=True)
    assert [(text, got, want) for text, got, want in pairs if got != want] == []


@torch.no_grad()
def _beam(model, row: list[int], beam: int, penalty: float) -> list[int]:
    """Beam search in PyTorch for one sentence; what has ended goes on with the end alone, at no cost."""
    source = torch.tensor([row]).expand(beam, -1)
    memory, tokens = model.encode(source), torch.full((beam, 1), SOS)
    sums = torch.tensor([0.0] + [-torch.inf] * (beam - 1))
    for _ in range(MOST):
        log_probs = model.decode(tokens, memory, source)[:, -1].log_softmax(dim=-1)
        ended = tokens[:, -1] == EOS
        log_probs[ended] = -torch.inf
        log_probs[ended, EOS] = 0.0
        sums, best = (sums[:, None] + log_probs).flatten().topk(beam)
        tokens = torch.cat([tokens[best // log_probs.shape[1]], (best % log_probs.shape[1])[:, None]], dim=1)
        if (tokens[:, -1] == EOS).all():
            break
    lengths = (tokens[:, 1:] != EOS).sum(dim=1) + (tokens[:, -1] == EOS)
    row = tokens[(sums / ((5 + lengths) / 6) ** penalty).argmax(), 1:].tolist()
    return [token for token in row if token != EOS]


def test_the_page_searches_with_a_beam_as_pytorch_does(page, model, subwords, captions):
    rows = [[SOS, *row, EOS] for row in subwords.encode(captions[:40])]
    search = "t.translate.beamSearch(model, row, beam, most, penalty)"
    script = f"([rows, beam, most, penalty]) => rows.map((row) => {search}.best.tokens)"
    for beam, penalty in ((1, 0.6), (4, 0.6), (3, 0.0)):
        said = page.evaluate(script, [rows, beam, MOST, penalty])
        want = [_beam(model, row, beam, penalty) for row in rows]
        assert [[token for token in row if token != EOS] for row in said] == want, (beam, penalty)


def test_a_head_that_is_switched_off_collects_nothing(page, model, subwords):
    row = [SOS, *subwords.encode("Zwei Hunde rennen über eine Wiese."), EOS]
    heads = model.decoder.layers[0].self_attention.heads
    script = "row => t.translate.decoderStep(model, t.translate.encodeSource(model, row), null, 2).logits"
    whole = page.evaluate(f"row => [...({script})(row)]", row)
    page.evaluate("heads => { model.off['cross 0'] = new Set(Array(heads).keys()); }", heads)
    without = page.evaluate(f"row => [...({script})(row)]", row)
    page.evaluate("model.off = {}")
    assert page.evaluate(f"row => [...({script})(row)]", row) == whole

    layer = model.decoder.layers[0]
    attention = getattr(layer, "cross_attention", None) or layer.source_attention
    kept = attention.WO.weight.detach().clone()
    with torch.no_grad():
        source = torch.tensor([row])
        torch.testing.assert_close(
            torch.tensor(whole), model(source, torch.tensor([[SOS]]))[0, 0], atol=1e-4, rtol=1e-4
        )
        attention.WO.weight.zero_()  # the heads' outputs go nowhere, the bias stays
        want = model(source, torch.tensor([[SOS]]))[0, 0]
        attention.WO.weight.copy_(kept)
    torch.testing.assert_close(torch.tensor(without), want, atol=1e-4, rtol=1e-4)


def test_the_packed_model_is_small_and_in_half_precision_only(tmp_path):
    assert len(pack_model(*find_model("translator"))) <= 4 << 20
    saved = torch.load(find_model("translator")[0], weights_only=True)
    name = next(iter(saved["state"]))
    saved["state"][name] = saved["state"][name].float()
    torch.save(saved, tmp_path / "translator.pt")
    with pytest.raises(ValueError, match=f"{name} is torch.float32"):
        pack_model(tmp_path / "translator.pt", find_model("translator")[1])


def test_a_form_of_import_that_the_bundle_does_not_know_is_an_error(tmp_path):
    (tmp_path / "one.js").write_text('import one from "./two.js";\n')
    with pytest.raises(ValueError, match="import one"):
        bundle({"one": tmp_path / "one.js"})


def test_every_figure_can_be_bundled():
    for name in figures():
        assert "function render(" in bundle({"figure": LIVE / f"{name}.js"})
