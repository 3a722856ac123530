"""The translator that chapter 00 opens with is the one that the chapters arrive at."""

import pytest
import torch

import autograder.course.imports  # noqa: F401  (chapters become importable)
from attention_course import ambiguous, translator
from autograder.course.curriculum import CourseError, find_course

SENTENCES = [translator.GOAL, translator.GATE, "Eine Bergsteigerin klettert."]


@pytest.fixture
def chapter_10(monkeypatch):
    monkeypatch.chdir(find_course().root / "solutions/10_multi30k_translator")


@pytest.fixture
def reference(chapter_10):
    from encoder_decoder import Translator

    shipped = torch.load("translator.pt", weights_only=True)
    model = Translator(**shipped["settings"])
    model.encoder.embedder = model.decoder.embedder
    model.load_state_dict({name: value.float() for name, value in shipped["state"].items()}, strict=False)
    return model.eval()


@pytest.mark.parametrize("sentence", SENTENCES)
def test_it_translates_as_the_reference_classes_do(reference, sentence):
    from multi30k_translator import greedy_decode

    pieces = translator.load_translator().pieces
    source = torch.tensor([[translator.BOS, *pieces.encode(sentence), translator.EOS]])
    (expected,) = greedy_decode(reference, source, 60, translator.BOS, translator.EOS)
    assert translator.translate(sentence).text == pieces.decode(expected)
    assert torch.allclose(translator.read(sentence)[1][-1], reference.encode(source)[0], atol=1e-4)


@torch.no_grad()
def test_the_attention_is_that_of_the_reference_classes(reference):
    result = translator.translate(translator.GOAL)
    pieces = translator.load_translator().pieces
    seen = []
    for layer in reference.decoder.layers:
        layer.source_attention.register_forward_hook(lambda _, args, output: seen.append(output[1][0]))
    target = [translator.BOS, *(pieces.piece_to_id(piece) for piece in result.english[:-1])]
    reference(torch.tensor([[pieces.piece_to_id(p) for p in result.german]]), torch.tensor([target]))
    assert torch.allclose(result.weights, torch.stack(seen), atol=1e-5)


def test_queries_keys_and_values_give_the_weights(chapter_10):
    result = translator.translate(translator.GATE)
    scores = result.queries @ result.keys.mT / result.queries.shape[-1] ** 0.5
    assert torch.allclose(scores.softmax(-1), result.weights, atol=1e-6)
    assert result.values.shape == result.keys.shape
    assert result.weights.shape[2:] == (len(result.english), len(result.german))


@pytest.mark.parametrize("sentence", [*SENTENCES, "Hund", "„Zwei“ Hunde,"])
def test_words_share_the_weights_of_their_pieces(chapter_10, sentence):
    english, german, weights = translator.translate(sentence).by_word()
    assert "".join(german[1:-1]) == sentence.replace(" ", "")
    assert weights.shape == (len(english), len(german))
    assert torch.allclose(weights.sum(1), torch.ones(len(english)))


def test_another_attention_can_read(chapter_10):
    from queries_keys_values import scaled_dot_product_attention

    seen = []

    def watched(queries, keys, values):
        output, weights = scaled_dot_product_attention(queries, keys, values)
        seen.append(weights)
        return output, weights

    pieces, states = translator.read(translator.GOAL, attention=watched)
    torch.testing.assert_close(states, translator.read(translator.GOAL)[1], rtol=0, atol=1e-5)
    assert [weights.shape for weights in seen] == 3 * [(4, len(pieces), len(pieces))]


def test_what_may_not_be_seen_changes_nothing(chapter_10):
    def alone(queries, keys, values):  # each piece sees itself only
        return values, torch.eye(values.shape[1]).expand(len(values), -1, -1)

    (pieces, first), (_, second) = (translator.read(text, alone) for text in (translator.GOAL, "Ein Hund und ein Tor."))
    assert pieces[1] == "▁Ein" and torch.equal(first[-1][1], second[-1][1])


def test_another_attention_can_write(chapter_10):
    from queries_keys_values import scaled_dot_product_attention

    own = translator.translate(translator.GATE)
    pieces, states = translator.read(translator.GATE)
    same = translator.write(pieces, states[-1], attention=scaled_dot_product_attention)
    assert same.text == own.text
    assert torch.allclose(same.weights, own.weights, atol=1e-6)
    mixed = translator.write(pieces, states[-1], attention=lambda q, k, v: (0 * q, own.weights[0]))
    assert mixed.text != own.text


def test_an_attention_of_the_wrong_shape_is_named(chapter_10):
    with pytest.raises(ValueError, match=r"shape \(4, 9, 32\), got \(4, 9, 9\)"):
        translator.read(translator.GOAL, attention=lambda q, k, v: (q @ k.mT, q @ k.mT))


@pytest.mark.parametrize(("word", "count"), [("Tor", 50), ("Bahn", 42), ("Schläger", 32)])
def test_the_ambiguous_sentences_are_translated_as_meant(chapter_10, word, count):
    sentences = ambiguous.ambiguous(word)
    assert len({sentence.text for sentence in sentences}) == count
    found = [ambiguous.meaning_in(translator.translate(sentence.text).text, word) for sentence in sentences]
    assert found == [sentence.meaning for sentence in sentences]
    assert len(set(found[: count // 2])) == len(set(found[count // 2 :])) == 1


def test_a_word_is_found_by_its_role(chapter_10):
    (sentence,) = [s for s in ambiguous.ambiguous("Tor") if s.text == "Ein Torwart steht im Tor."]
    pieces = translator.read(sentence.text)[0]
    assert "".join(pieces[place] for place in sentence.places("the subject", pieces)) == "▁Torwart"
    assert [pieces[place] for place in sentence.places("the word itself", pieces)] == ["▁Tor"]
    assert sentence.places("its adjective", pieces) == []


def test_what_the_pieces_of_a_word_have_is_added(chapter_10):
    (sentence,) = [s for s in ambiguous.ambiguous("Tor") if s.text == translator.GOAL]
    pieces = translator.read(sentence.text)[0]
    assert pieces[3:5] == ["▁schie", "ßt"]
    shares = torch.arange(len(pieces)).float()
    assert sentence.by_word(shares, pieces).tolist() == [1, 2, 3 + 4, 5, 6, 7]


def test_the_scores_are_those_that_the_translator_writes_by(chapter_10):
    german, states = translator.read(translator.GATE)
    english = translator.write(german, states[-1]).english
    for written in range(len(english)):
        best = int(translator.scores_after(english[:written], states[-1]).argmax())
        assert translator.load_translator().pieces.id_to_piece(best) == english[written]


def test_the_translator_leans_to_what_it_writes(chapter_10):
    for sentence in ambiguous.ambiguous("Schläger")[14:18]:
        leaning = ambiguous.leaning(sentence)
        assert leaning > 0
        other = next(s for s in ambiguous.ambiguous("Schläger") if s.meaning != sentence.meaning)
        swayed = ambiguous.leaning(sentence, translator.read(other.text)[1][-1])
        assert swayed < leaning


def test_vectors_of_word_starts(chapter_10):
    words = translator.word_starts()
    assert len(words) > 1000 and {"Tor", "Ball", "goal"} <= set(words)
    assert translator.word_vectors(["Tor", "goal"]).shape == (2, 128)
    with pytest.raises(ValueError, match="pieces"):
        translator.word_vectors(["Bergsteigerin"])


def test_complaints_are_clear(chapter_10, monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="nothing to translate"):
        translator.translate("  ")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/curriculum.toml").write_text("chapter = []")
    monkeypatch.chdir(tmp_path)
    translator.load_translator.cache_clear()
    with pytest.raises(CourseError, match=r"translator\.pt"):
        translator.load_translator()
    translator.load_translator.cache_clear()
