"""The live figures: the translator in the page says token for token what PyTorch says; every figure runs."""

import base64
import importlib
import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import sentencepiece
import torch
import torch.nn.functional as F

from attention_course.bodies import load_export
from attention_course.data import PAD, SOS, caption_lines, cut_review, read_reviews
from autograder.course.curriculum import find_course
from live.bundle import LIVE, bundle
from live.display import as_plain, figures
from live.models import find_model, pack_model
from live.words import word_rules

playwright = pytest.importorskip("playwright.sync_api")
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
playwright.expect.set_options(timeout=60_000)  # a busy machine is slow
pytestmark = [
    pytest.mark.xdist_group("live"),  # one Chromium, and one page with every figure, for all of them
    pytest.mark.flaky(reruns=1, only_rerun=["TimeoutError"]),  # on a busy machine Chromium now and then hangs for good
]

EOS, MASK = 3, 4
MOST = 60
CHROMIUM = shutil.which("chromium")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def subwords():
    return sentencepiece.SentencePieceProcessor(model_file=str(find_model("translator")[1]))


@pytest.fixture(scope="module")
def captions():
    """A thousand captions: those for validation if the full data is there, else of the sample, in several spellings."""
    full = ROOT / "data/full"
    if (full / "multi30k/val.de").is_file():
        return caption_lines(full, "val.de")
    lines = [
        line for part in ("train", "val", "test2016") for line in caption_lines(ROOT / "data/sample", f"{part}.de")
    ]
    return [*lines, *map(str.lower, lines), *(line.rstrip(".") for line in lines)][:1000]


@pytest.fixture(scope="module")
def chapters(monkeypatch_module):
    """Import a chapter by its module's name, as a notebook does."""
    monkeypatch_module.chdir(find_course().solution(find_course().find("10")).parent)
    importlib.import_module("autograder.course.imports")
    return importlib.import_module


@pytest.fixture(scope="module")
def model(chapters):
    """The shipped translator in chapter 09's classes, its half-precision weights read as float32."""
    Translator = chapters("encoder_decoder").Translator
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
def launch():
    """Start a Chromium: each page that takes long has its own, so that a hung one is not asked again."""
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        yield partial(driver.chromium.launch, executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])


@pytest.fixture(scope="module")
def page(launch, tmp_path_factory):
    """A page from a file, with the translator's modules and its weights."""
    names = {name: name for name in ("weights", "translate", "language", "sentence", "body", "classifier", "words")} | {
        "subwords": "sentencepiece"
    }
    script = bundle({name: LIVE / f"lib/{file}.js" for name, file in names.items()})
    packed = base64.b64encode(pack_model(*find_model("translator"))).decode()
    script += f'const packed = Uint8Array.from(atob("{packed}"), (c) => c.charCodeAt(0));\n'
    script += "globalThis.t = { weights, subwords, translate, language, sentence, body, classifier, words };\n"
    script += "weights.unpackModel(packed).then((m) => (globalThis.model = translate.makeTranslator(m)));\n"
    file = tmp_path_factory.mktemp("live") / "page.html"
    file.write_text(f'<!doctype html><meta charset="utf-8"><script type="module">\n{script}</script>', encoding="utf-8")
    with launch() as browser:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(file.as_uri())
        page.wait_for_function("globalThis.model")
        yield page


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
def _likeliest(model, rows: list[list[int]], said: list[list[int]]) -> list[list[int]]:
    """What PyTorch would say in each place of a translation, after all that was said before it.

    If that is the translation itself, and the end after it, then greedy decoding in PyTorch finds this translation: it
    takes the same first token, then, after the same token, the same second one, and so on. One pass is enough.
    """
    order = sorted(range(len(rows)), key=lambda i: len(said[i]))  # sentences of similar length in a batch
    found: list[list[int]] = [[]] * len(rows)
    for start in range(0, len(rows), 64):
        part = order[start : start + 64]
        source = torch.nn.utils.rnn.pad_sequence([torch.tensor(rows[i]) for i in part], True, PAD)
        target = torch.nn.utils.rnn.pad_sequence([torch.tensor([SOS, *said[i]]) for i in part], True, PAD)
        best = model(source, target).argmax(dim=-1).tolist()
        for i, row in zip(part, best, strict=True):
            found[i] = row[: min(len(said[i]) + 1, MOST)]
    return found


def test_the_page_translates_captions_token_for_token(page, model, subwords, captions, everything):
    captions = captions if everything else captions[::10]
    rows = [[SOS, *row, EOS] for row in subwords.encode(captions)]
    assert len(rows) >= (1000 if everything else 100)
    said = page.evaluate(
        "([rows, most]) => rows.map((row) => t.translate.greedyDecode(model, row, most))", [rows, MOST]
    )
    ended = [row if len(row) == MOST else [*row, EOS] for row in said]
    pairs = zip(captions, ended, _likeliest(model, rows, said), strict=True)
    assert [(text, got, want) for text, got, want in pairs if got != want] == []


@torch.no_grad()
def _beam(model, row: list[int], beam: int, penalty: float, reward: float) -> list[int]:
    """Beam search in PyTorch for one sentence; what has ended goes on with the end alone, at no cost."""
    source = torch.tensor([row]).expand(beam, -1)
    memory, tokens = model.encode(source), torch.full((beam, 1), SOS)
    sums = torch.tensor([0.0] + [-torch.inf] * (beam - 1))
    for _ in range(MOST):
        log_probs = model.decode(tokens, memory, source)[:, -1].log_softmax(dim=-1) + reward
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


def test_the_page_searches_with_a_beam_as_pytorch_does(page, model, subwords, captions, everything):
    rows = [[SOS, *row, EOS] for row in subwords.encode(captions[: 12 if everything else 6])]
    search = "t.translate.beamSearch(model, row, beam, most, penalty, reward)"
    script = f"([rows, beam, most, penalty, reward]) => rows.map((row) => {search}.best.tokens)"
    for beam, *rest in ((4, 0.6, 0.0), (3, 0.0, 0.0), (3, 0.0, 0.8)):
        said = page.evaluate(script, [rows, beam, MOST, *rest])
        want = [_beam(model, row, beam, *rest) for row in rows]
        assert [[token for token in row if token != EOS] for row in said] == want, (beam, *rest)


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


# ---- the figures


def _softmax(*shape: int) -> torch.Tensor:
    return (3 * torch.randn(*shape, generator=torch.Generator().manual_seed(0))).softmax(-1)


@pytest.fixture(scope="module")
def classifier(chapters) -> tuple[Callable[[str], torch.Tensor], torch.nn.Module]:
    """Chapter 07's shipped classifier, and what makes of a review the numbers of its words."""
    kept = torch.load(find_model("classifier")[0], weights_only=True)
    model = chapters("imdb_classification").TransformerClassifier(**kept["settings"]).eval()
    model.load_state_dict({name: value.float() for name, value in kept["state"].items()})
    words = zlib.decompress(kept["words"]).decode().split("\n")
    numbers = {word: number for number, word in enumerate(words)}

    def read(review: str) -> torch.Tensor:
        return torch.tensor([numbers.get(word, 0) for word in cut_review(review)[-kept["settings"]["max_len"] :]])

    return read, model


ENGLISH, GERMAN = ["two", "dogs", "run", "</s>"], ["<s>", "Zwei", "Hunde", "rennen", "</s>"]
CASES = [
    {
        "layers": "attention",
        "initialisation": i,
        "residual": r,
        "norm": n,
        "gradients": [1.0, 1e-3, 10.0 ** (d - 12)],
        "spreads": [0.9, 0.5, 0.1],
    }
    for d, i in enumerate(("torch's", "He"))
    for r in ("without", "with")
    for n in ("none", "pre-norm")
]
DATA = {
    "alignments": {"sentences": [{"german": GERMAN, "english": ENGLISH, "weights": _softmax(4, 5)}] * 2},
    "beam": {},
    "gap": {},
    "gradients": {"depths": [1, 5, 50], "cases": CASES},
    "heads": {"rows": ENGLISH, "columns": GERMAN, "weights": _softmax(2, 3, 4, 5)},
    "journey": {},
    "mask": {},
    "review": {},
    "rotation": {},
    "sampling": {},
    "temperature": {},
    "translator": {},
    "triangle": {},
}


def _language_model(path: Path) -> dict[str, torch.Tensor]:
    """Write a small caption model with random weights, as chapter 11 names them; returns the weights as float32."""
    settings = {"vocab_size": 3000, "dim": 16, "heads": 2, "depth": 2, "hidden": 24}
    generator = torch.Generator().manual_seed(2)
    shapes = {"embedding.weight": (3000, 16), "norm.weight": (16,)}
    for i in range(2):
        shapes |= {f"layers.{i}.norm_1.weight": (16,), f"layers.{i}.norm_2.weight": (16,)}
        shapes |= {f"layers.{i}.attention.{name}.weight": (16, 16) for name in ("Wq", "Wk", "Wv", "WO")}
        shapes |= {f"layers.{i}.feed_forward.{name}.weight": (24, 16) for name in ("gate", "up")}
        shapes[f"layers.{i}.feed_forward.down.weight"] = (16, 24)
    state = {name: (torch.randn(*shape, generator=generator) / 2).half() for name, shape in shapes.items()}
    torch.save({"settings": settings, "state": state}, path)
    return {name: value.float() for name, value in state.items()}


def _next_logits(w: dict[str, torch.Tensor], tokens: list[int]) -> torch.Tensor:
    """Chapter 11's model, written out over whole sequences: RMSNorm, rotary positions, SwiGLU, tied output."""

    def norm(x, name):
        return F.rms_norm(x, (16,), w[f"{name}.weight"], eps=1e-6)

    x = w["embedding.weight"][torch.tensor(tokens)]
    for i in range(2):
        at, ff = f"layers.{i}.attention", f"layers.{i}.feed_forward"
        y = norm(x, f"layers.{i}.norm_1")
        q, k = (_rotated(y @ w[f"{at}.{name}.weight"].T) for name in ("Wq", "Wk"))
        v = (y @ w[f"{at}.Wv.weight"].T).unflatten(-1, (2, 8)).transpose(0, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1)
        x = x + y @ w[f"{at}.WO.weight"].T
        y = norm(x, f"layers.{i}.norm_2")
        x = x + (F.silu(y @ w[f"{ff}.gate.weight"].T) * (y @ w[f"{ff}.up.weight"].T)) @ w[f"{ff}.down.weight"].T
    return (norm(x, "norm") @ w["embedding.weight"].T)[-1]


def _rotated(x: torch.Tensor) -> torch.Tensor:
    """`(n, 16)` to two heads `(2, n, 8)`, each pair of features turned by its angle."""
    pairs = torch.view_as_complex(x.unflatten(-1, (2, 4, 2)).contiguous())  # (n, heads, pairs)
    angles = torch.arange(len(x))[:, None] * 10000.0 ** (-torch.arange(4) / 4)
    turned = pairs * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.view_as_real(turned).flatten(2).transpose(0, 1)


@pytest.fixture(scope="module")
def gallery(monkeypatch_module, tmp_path_factory):
    """A page with every figure, as `make figures` and the book have them; the larger caption model is a small one."""
    monkeypatch_module.syspath_prepend(ROOT / "book")
    build, gallery = importlib.import_module("build"), importlib.import_module("gallery")
    folder = tmp_path_factory.mktemp("gallery")
    _language_model(folder / "language_model.pt")
    found = find_model
    small = (folder / "language_model.pt", find_model("translator")[1])
    monkeypatch_module.setattr(build, "find_model", lambda name: small if name == "language_model" else found(name))
    assert sorted(DATA) == figures()
    shown = [gallery.Shown(name, as_plain(name, data), name, "here") for name, data in DATA.items()]
    gallery.write_gallery(shown, folder)
    return folder


def test_a_chapter_shows_each_figure(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book")
    shown = importlib.import_module("gallery").shown_in(find_course())
    assert sorted({one.figure for one in shown}) == figures()
    assert {one.where for one in shown} == {f"chapter {chapter.number}" for chapter in find_course().chapters}


@contextmanager
def _opened(launch, gallery, width, scheme):
    """The page with every figure, open; its errors."""
    errors = []
    with launch() as browser:
        page = browser.new_context(viewport={"width": width, "height": 900}, offline=True).new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("requestfailed", lambda request: errors.append(request.url))
        page.goto((gallery / f"{scheme}.html").as_uri())
        for name in ("beam", "translator", "sampling", "gap", "review"):  # a model is loaded when its figure comes near
            place = page.locator(f"[data-figure={name}]")
            place.scroll_into_view_if_needed()
            place.locator("li").first.wait_for()
        yield page, errors


@pytest.fixture(scope="module")
def light(launch, gallery):
    with _opened(launch, gallery, 1280, "light") as opened:
        yield opened


def _is_clean(page, width, errors):
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".live").count() == len(DATA)
    assert errors == []
    found = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")] == []
    errors.clear()  # axe asks for the style sheet itself, and from a file it does not get it


def test_every_figure_fits_and_can_be_used_by_all(light):
    page, errors = light
    _is_clean(page, 1280, errors)


def test_every_figure_fits_on_a_phone_in_the_dark(launch, gallery):
    with _opened(launch, gallery, 390, "dark") as (page, errors):
        _is_clean(page, 390, errors)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "Type a German sentence"),
        ("   ", "Type a German sentence"),
        pytest.param("Hund " * 500, "These are 500 words", id="500 words"),
        pytest.param("Donaudampfschifffahrt" * 60, "too long", id="a long word"),
        ("Ein Hund 😀🎉 schläft.", "never occurred"),
        ("<img src=x onerror=alert(1)><b>Hund</b>", "never occurred"),
    ],
)
def test_the_translator_answers_kindly_to_anything(light, text, line):
    page, errors = light
    place = page.locator("[data-figure=translator]")
    place.locator("input[type=text]").fill(text)
    place.get_by_role("button", name="Translate").click()
    playwright.expect(place.locator(".live-status")).to_contain_text(line)
    assert place.locator("img, b").count() == 0
    assert errors == []


@pytest.mark.parametrize(
    ("name", "button", "empty", "long"),
    [
        ("beam", "Translate", "Type a German sentence", "These are 500 words"),
        ("sampling", "Write", "", "That is a whole text"),  # a caption may begin with nothing
    ],
)
def test_beam_and_sampling_answer_kindly_too(light, name, button, empty, long):
    page, errors = light
    place = page.locator(f"[data-figure={name}]")
    strange = "never occurred"
    for text, line in {"": empty, "Hund " * 500: long, "😀🎉": strange, "<img src=x><b>Hund</b>": strange}.items():
        place.locator("input[type=text]").fill(text)
        place.get_by_role("button", name=button, exact=True).click()
        playwright.expect(place.locator(".live-status")).to_contain_text(line)
        assert place.locator("img").count() == 0 and "Hund" not in place.locator("b").all_inner_texts()
    assert errors == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "Leave a gap"),
        ("the acting was great.", "Leave a gap"),
        ("a _ b __ c ___ d ____", "These are 4 gaps"),
        pytest.param("a great film, " * 100 + "___", "the body reads 256 at once", id="300 words"),
        ("😀 <img src=x> was ___", "were in no review"),
        ("___", ""),
    ],
)
def test_the_gap_answers_kindly_to_anything(light, text, line):
    page, errors = light
    place = page.locator("[data-figure=gap]")
    place.locator("input[type=text]").fill(text)
    place.get_by_role("button", name="Fill").click()
    if line:
        playwright.expect(place.locator(".live-status")).to_contain_text(line)
    else:
        playwright.expect(place.locator("li")).to_have_count(10)
    assert place.locator("img").count() == 0
    assert errors == []


@pytest.mark.parametrize("name", ["translator", "beam"])
def test_english_is_translated_and_told_apart(light, name):
    page, errors = light
    place = page.locator(f"[data-figure={name}]")
    field, translate = place.locator("input[type=text]"), place.get_by_role("button", name="Translate")
    field.fill("Two dogs are running on a beach.")
    translate.click()
    playwright.expect(place.locator(".live-status")).to_contain_text("looks like English")
    playwright.expect(place.locator("li").first).to_be_visible()
    field.fill("Ein Hund mag The Who.")
    translate.click()
    playwright.expect(place.locator(".live-status")).to_be_empty()
    assert errors == []


def test_no_german_caption_is_taken_for_english(page):
    def taken(texts):
        return page.evaluate("texts => texts.filter(t.sentence.looksEnglish)", texts)

    captions = {language: caption_lines(ROOT / "data/sample", f"train.{language}") for language in ("de", "en")}
    assert taken(captions["de"]) == []
    assert len(taken(captions["en"])) > 0.98 * len(captions["en"])
    loans = ["Das Team trägt coole T-Shirts.", "Teenager hören The Who im Radio.", "Die Band spielt Jazz in Berlin."]
    assert taken([*loans, "Hund", "", "man in a hat", "Hello!"]) == ["man in a hat", "Hello!"]


def test_a_head_is_switched_off_by_the_reader(light, model):
    page, _ = light
    place = page.locator("[data-figure=translator]")
    place.locator("input[type=text]").fill("Zwei Hunde rennen über eine Wiese.")
    place.get_by_role("button", name="Translate").click()
    playwright.expect(place.locator(".live-translation")).to_contain_text("dogs")
    place.get_by_label("Switch its look at the German off").check()
    playwright.expect(place.locator(".live-compared")).to_contain_text(f"Off: {_heads(model)} heads")
    place.get_by_role("button", name="All heads on again").click()
    playwright.expect(place.locator(".live-compared")).to_be_empty()


def _heads(model) -> int:
    return model.decoder.layers[0].self_attention.heads


def test_keys_move_what_the_mouse_moves(light):
    page, errors = light
    page.locator("[data-figure=triangle] circle.middle").focus()
    before = page.locator("[data-figure=triangle] .live-formula").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.locator("[data-figure=triangle] .live-formula").inner_text() != before

    cells = page.locator("[data-figure=mask] td button")
    cells.nth(1).focus()
    page.keyboard.press("Space")
    playwright.expect(cells.nth(1)).to_have_text("✕")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("grey may look at grey")

    words = page.locator("[data-figure=alignments] .live-pieces button")
    words.first.focus()
    page.keyboard.press("ArrowRight")
    playwright.expect(words.nth(1)).to_have_attribute("aria-pressed", "true")
    assert errors == []


def test_a_query_that_may_look_at_nothing_gets_zeros(light):
    page, _ = light
    page.locator("[data-figure=mask]").get_by_role("button", name="Nothing allowed").click()
    playwright.expect(page.locator("[data-figure=mask]")).to_contain_text("all its weights are 0")


REVIEWS = [
    "It is not wonderful.",
    "NEVER boring!!! I'd say 10/10 :) -- (isn't it?)<br /><br />Mr. Müller's café-scene… “great”",
    "ok 😀🎉 qqqqzz",
    "A film that I have seen, and that I'd rather not have seen. " * 60,
]


@torch.no_grad()
def test_the_page_judges_reviews_as_pytorch_does(page, classifier):
    read, model = classifier
    packed = base64.b64encode(pack_model(*find_model("classifier"))).decode()
    script = """async ([packed, reviews]) => {
        const judge = await t.weights.unpackModel(Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)));
        return reviews.map((review) => {
            const words = t.words.cutReview(judge.words, review).slice(-judge.settings.max_len);
            const tokens = words.map((word) => judge.words.numbers.get(word) ?? 0);
            return { tokens, ...t.classifier.classify(judge, tokens, tokens.map(() => false)) };
        });
    }"""
    for review, found in zip(REVIEWS, page.evaluate(script, [packed, REVIEWS]), strict=True):
        tokens = read(review)
        assert found["tokens"] == tokens.tolist()
        want = model(tokens[None])[0].exp()
        torch.testing.assert_close(torch.tensor(found["chances"]), want, atol=1e-4, rtol=0)
        x = model.blocks[0].norm_1(model.positions(model.embedding(tokens[None])))
        looked = model.blocks[0].attention(x, x, x)[1][0].mean(dim=(0, 1))
        torch.testing.assert_close(torch.tensor(found["looked"]), looked, atol=1e-4, rtol=0)


def test_words_are_cut_as_the_chapter_cuts_them(page):
    script = """([rules, texts]) => {
        const read = t.words.readWords(rules);
        return texts.map((text) => t.words.cutReview(read, text));
    }"""
    root = ROOT / "data/sample"
    texts = [review.text for split in ("train", "test") for review in read_reviews(root, split)]
    strange = "don't (Don't U.S.A. :) great:) well-made $5.99 5p.m. http://x.de/a?b=c me@x.org ... wait...what "
    strange += "'tis rock'n'roll 1,000 3-4 a/b (^_^) </3 C++ -- — “Hi” it’s AT&T <i>x</i> ½ ٣ end.Start"
    texts += [strange, "", "  \n\t "]
    cut = page.evaluate(script, [word_rules() | {"words": []}, texts])
    assert [(text, got) for text, got in zip(texts, cut, strict=True) if got != cut_review(text)] == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "Type a review"),
        ("  <br /> ", "Type a review"),
        ("😀 qqqqzz", "It knows none of these words"),
        pytest.param("a good film " * 400, "These are 1200 words; it reads the last 512", id="1200 words"),
        ("<img src=x onerror=alert(1)> a good film", "It does not know"),
        ("a good film", ""),
    ],
)
def test_the_review_answers_kindly_to_anything(light, text, line):
    page, errors = light
    place = page.locator("[data-figure=review]")
    place.locator("textarea").fill(text)
    if line:
        playwright.expect(place.locator(".live-status")).to_contain_text(line)
    else:
        playwright.expect(place.locator(".live-status")).to_be_empty()
        playwright.expect(place.locator("li")).to_have_count(2)
    assert place.locator("img").count() == 0
    assert errors == []


def test_erasing_a_word_is_what_padding_it_is(light, classifier):
    page, _ = light
    read, model = classifier
    place = page.locator("[data-figure=review]")
    review = "The acting was good, but the story is a waste of time."
    place.locator("textarea").fill(review)
    playwright.expect(place.locator(".live-review button")).to_have_count(len(read(review)))
    for i in (1, 9, 10):
        place.locator(".live-review button").nth(i).click()
    tokens = read(review)
    whole = tokens.clone()
    tokens[[1, 9, 10]] = model.pad_id
    with torch.no_grad():
        want, before = (model(row[None]).exp()[0, 1] for row in (tokens, whole))
    assert abs(want - before) > 0.05
    playwright.expect(place.locator("p[aria-live]")).to_contain_text(
        f"3 of {len(tokens)} words erased: positive {100 * want:.0f} %"
    )


def test_the_caption_model_says_what_pytorch_says(page, tmp_path):
    weights = _language_model(tmp_path / "language_model.pt")
    packed = base64.b64encode(pack_model(tmp_path / "language_model.pt", find_model("translator")[1])).decode()
    script = """async ([packed, tokens]) => {
        const model = await t.weights.unpackModel(Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)));
        let [logits, cache] = [null, null];
        for (const token of tokens) ({ logits, cache } = t.language.languageStep(model, cache, token));
        return [...logits];
    }"""
    tokens = [2, 17, 5, 900, 2999, 17]
    logits = torch.tensor(page.evaluate(script, [packed, tokens]))
    torch.testing.assert_close(logits, _next_logits(weights, tokens), atol=1e-3, rtol=1e-3)


@torch.no_grad()
def test_the_body_fills_gaps_as_pytorch_does(page, chapters):
    shipped = load_export(find_model("body")[0])
    pieces = sentencepiece.SentencePieceProcessor(model_proto=shipped["pieces"])
    sizes = {name: shipped["sizes"][name] for name in ("dim", "heads", "depth", "hidden")}
    body = chapters("pretraining").Body(len(pieces), **sizes).eval()
    body.load_state_dict(shipped["weights"])
    packed = pack_model(*find_model("body"))
    assert len(packed) <= 5.5e6
    script = """async (packed) => {
        globalThis.reader = await t.weights.unpackModel(Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)));
    }"""
    page.evaluate(script, base64.b64encode(packed).decode())
    texts = [
        "the acting was <mask>.",
        "<mask> is a film that i have seen <mask> in my life",
        "what a <mask>",
        "über die café-szene <mask> nobody speaks. " + "it goes on and on, and " * 25,
    ]
    for text in texts:
        row = [EOS]
        for i, part in enumerate(text.split("<mask>")):
            row += [MASK] * (i > 0) + pieces.encode(part)
        row.append(EOS)
        script = "([row, mask]) => t.body.fillGaps(reader, row, mask).map((chances) => [...chances])"
        found = torch.tensor(page.evaluate(script, [row, MASK]))
        tokens = torch.tensor([row])
        chances = (body(tokens)[tokens == MASK] @ body.embedding.weight.T).softmax(-1)
        torch.testing.assert_close(found, chances, atol=1e-4, rtol=0)
    cut = "text => t.subwords.encode(reader.subwords, text)"
    assert page.evaluate(cut, texts[-1]) == pieces.encode(texts[-1])
    touching = "text => t.subwords.encode(reader.subwords, text, true)"
    for text in (".", "", ", but", "'s the worst", "! and 10/10."):  # as behind a word
        assert page.evaluate(touching, text) == pieces.encode("good" + text)[1:]


def test_which_tokens_may_be_drawn(page):
    script = "([logits, rules]) => t.language.allowedTokens(Float32Array.from(logits), rules)"
    logits = torch.tensor([1.0, 3.0, 2.0, -1.0])

    def allowed(temperature=1.0, top_k=4, top_p=1.0):
        rules = {"temperature": temperature, "topK": top_k, "topP": top_p}
        return {one["token"]: one["probability"] for one in page.evaluate(script, [logits.tolist(), rules])}

    assert allowed() == pytest.approx(dict(enumerate(logits.softmax(0).tolist())), abs=1e-5)
    assert allowed(temperature=0) == {1: 1}
    assert allowed(top_k=2) == pytest.approx(dict(zip([1, 2], logits[1:3].softmax(0).tolist(), strict=True)), abs=1e-5)
    assert list(allowed(top_p=0.5)) == [1]  # 0.64 reaches it
    assert list(allowed(top_p=0.7)) == [1, 2]
    assert list(allowed(top_p=1e-6)) == [1]  # at least one
