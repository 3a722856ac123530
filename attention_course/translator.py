"""The finished translator at work: from a German sentence to an English one, with what its attention looked at.

This is inference alone, in plain torch, so that it runs before any chapter is solved. `tests/test_translator.py` holds
it to the classes of the chapters, number for number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor

from autograder.course.curriculum import CourseError, find_course

# A Tor is a goal or a gate, and the rest of the sentence decides. Chapters 00 to 03 come back to both.
GOAL = "Ein Junge schießt ein Tor."
GATE = "Eine Frau geht an einem Tor vorbei."

PAD, BOS, EOS = 1, 2, 3
_END = "</s>"
_FOLDER = "10_multi30k_translator"

# From queries `(heads, n, d)`, keys `(heads, m, d)` and values `(heads, m, d)` to the output `(heads, n, d)` and the
# weights `(heads, n, m)`.
Attention = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Shipped:
    """The weights of the translator and the subwords that it reads and writes."""

    pieces: sentencepiece.SentencePieceProcessor
    weights: dict[str, Tensor]
    depth: int
    heads: int

    @property
    def embedding(self) -> Tensor:
        """The vector of each piece, `(V, d)`, German and English in one table."""
        return self.weights["decoder.embedder.embedding.weight"]


@dataclass(frozen=True)
class Translation:
    """A translation, and what the decoder's attention to the German sentence computed on the way.

    Sizes: `L` layers, `h` heads, `n` English pieces, `m` German ones, `d` dim.
    """

    text: str
    """the English sentence"""
    english: list[str]
    """its pieces, `n`; ▁ marks where a word begins; the last is the end"""
    german: list[str]
    """the pieces that were read, `m`; the first and the last are the ends"""
    weights: Tensor
    """`(L, h, n, m)`: how much of each German piece went into the choice of each English one; rows sum to 1"""
    queries: Tensor
    """`(L, h, n, d / h)`; `weights` is the softmax of `queries · keys / √(d / h)`"""
    keys: Tensor
    """`(L, h, m, d / h)`"""
    values: Tensor
    """`(L, h, m, d / h)`"""

    def by_word(self) -> tuple[list[str], list[str], Tensor]:
        """Where each English word looked: the mean over layers and heads, between whole words.

        Returns:
            The English words, the German words between the marks of the two ends, and the weights `(English, German)`.
            The weights of a German word's pieces are added, those of an English word's pieces averaged, so that each
            row still sums to 1.
        """
        english = [piece for piece in self.english if piece != _END]
        rows, columns = (F.one_hot(word_of_each(pieces)).float() for pieces in (english, self.german))
        weights = self.weights.mean((0, 1))[: len(english)]
        weights = (rows / rows.sum(0)).mT @ weights @ columns
        return _words(english), _words(self.german), weights


@cache
def load_translator() -> Shipped:
    """The translator that ships with chapter 10, trained on the real captions.

    Raises:
        CourseError: the working directory is not inside the course, or the translator's files are not in it.
    """
    root = find_course().root
    for folder in (root / "solutions" / _FOLDER, root / "notebooks" / _FOLDER):
        if (folder / "translator.pt").is_file() and (folder / "translator.model").is_file():
            shipped = torch.load(folder / "translator.pt", weights_only=True)
            pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "translator.model"))
            weights = {name: value.float() for name, value in shipped["state"].items()}
            return Shipped(pieces, weights, shipped["settings"]["depth"], shipped["settings"]["heads"])
    raise CourseError(
        f"translator.pt and translator.model are not in {root}/notebooks/{_FOLDER}: get that folder again"
    )


def translate(text: str) -> Translation:
    """Translate a German sentence into English.

    Args:
        text: a German sentence; the model knows captions of photographs, and little else.

    Raises:
        ValueError: there is nothing to translate.
    """
    german, states = read(text)
    return write(german, states[-1])


@torch.no_grad()
def read(text: str, attention: Attention | None = None) -> tuple[list[str], Tensor]:
    """What the encoder makes of a German sentence, layer by layer.

    Args:
        text: a German sentence.
        attention: what computes the attention of each of the encoder's layers, in place of the translator's own: from
            queries, keys and values, each `(heads, m, d / heads)`, to an output of the same shape and the weights
            `(heads, m, m)`. It is called once for each layer, the first one first.

    Returns:
        Its pieces with the marks of both ends, `m`, and the vector of each, `(L + 2, m, d)`: first the embeddings with
        their positions, then what each layer made of them, last that after the final norm, which the decoder looks at.

    Raises:
        ValueError: there is nothing to read, or the output of `attention` has another shape.
    """
    shipped = load_translator()
    tokens = [BOS, *shipped.pieces.encode(text), EOS]
    if len(tokens) == 2:
        raise ValueError("there is nothing to translate: give a German sentence")
    return [shipped.pieces.id_to_piece(token) for token in tokens], _encode(shipped, torch.tensor(tokens), attention)


@torch.no_grad()
def write(german: list[str], memory: Tensor, max_len: int = 60, attention: Attention | None = None) -> Translation:
    """Write English, always with the likeliest next piece.

    Args:
        german: the pieces that were read, `m`.
        memory: what the encoder made of them, `(m, d)`.
        max_len: how many pieces to stop at.
        attention: what computes the attention of each of the decoder's layers to the German sentence, in place of the
            translator's own: from queries `(heads, n, d / heads)`, where `n` grows with what is written, keys and
            values, each `(heads, m, d / heads)`, to an output of the queries' shape and the weights `(heads, n, m)`.

    Raises:
        ValueError: the output of `attention` has another shape.
    """
    shipped = load_translator()
    written = [BOS]
    while len(written) <= max_len and written[-1] != EOS:
        logits, seen = _decode(shipped, torch.tensor(written), memory, attention)
        logits[:, PAD] = 0.0  # as in training
        written.append(int(logits[-1].argmax()))
    queries, keys, values, weights = (torch.stack(parts) for parts in zip(*seen, strict=True))
    english = [shipped.pieces.id_to_piece(token) for token in written[1:]]
    return Translation(shipped.pieces.decode(written[1:]), english, german, weights, queries, keys, values)


@torch.no_grad()
def scores_after(english: list[str], memory: Tensor) -> Tensor:
    """What the translator would write next: the logits of all its pieces, `(V,)`.

    Args:
        english: the pieces that are already written; none at the beginning.
        memory: what the encoder made of the German sentence, `(m, d)`.
    """
    pieces = load_translator().pieces
    tokens = torch.tensor([BOS, *(pieces.piece_to_id(piece) for piece in english)])
    return _decode(load_translator(), tokens, memory)[0][-1]


def word_vectors(words: list[str]) -> Tensor:
    """The vectors that the translator has learned for some words, before it reads them in any sentence.

    Args:
        words: German or English words, each a single piece of the translator's vocabulary.

    Returns:
        `(number of words, d)`.

    Raises:
        ValueError: a word is not a single piece.
    """
    shipped = load_translator()
    numbers = [shipped.pieces.encode(word) for word in words]
    for word, pieces in zip(words, numbers, strict=True):
        if len(pieces) != 1:
            raise ValueError(
                f"{word!r} is {len(pieces)} pieces for the translator, {shipped.pieces.encode(word, out_type=str)}"
            )
    return shipped.embedding[[pieces[0] for pieces in numbers]].clone()


def word_starts() -> list[str]:
    """The pieces with which a word begins, German and English, in the order of the vocabulary.

    Most of them are whole words; some only ever begin longer ones.
    """
    shipped = load_translator()
    pieces = [shipped.pieces.id_to_piece(number) for number in range(len(shipped.pieces))]
    return [piece[1:] for piece in pieces if piece.startswith("▁") and piece[1:].isalpha()]


def word_of_each(pieces: list[str]) -> Tensor:
    """For each piece the number of the word that it belongs to, `(number of pieces,)`.

    Args:
        pieces: of one sentence, with or without the marks of its ends. A mark is a word of its own, as is a full stop.
    """
    begins = [piece[0] in "▁<" or not piece[0].isalnum() for piece in pieces]
    return torch.tensor(begins).cumsum(0) - int(begins[0])


def _encode(shipped: Shipped, tokens: Tensor, attention: Attention | None) -> Tensor:
    x = _embed(shipped, tokens)
    states = [x]
    for layer in range(shipped.depth):
        name = f"encoder.layers.{layer}"
        normed = _norm(shipped, f"{name}.norm_1", x)
        x = x + _attend(shipped, f"{name}.attention", normed, normed, attention)[0]
        x = x + _feed_forward(shipped, f"{name}.feed_forward", _norm(shipped, f"{name}.norm_2", x))
        states.append(x)
    return torch.stack([*states, _norm(shipped, "encoder.norm", x)])


def _decode(
    shipped: Shipped, tokens: Tensor, memory: Tensor, attention: Attention | None = None
) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """The logits of the next pieces, `(n, V)`, and what each layer's attention to the source used and computed."""
    x = _embed(shipped, tokens)
    seen = []
    causal = partial(_softmax_attention, causal=True)
    for layer in range(shipped.depth):
        name = f"decoder.layers.{layer}"
        normed = _norm(shipped, f"{name}.norm_1", x)
        x = x + _attend(shipped, f"{name}.self_attention", normed, normed, causal)[0]
        asking = _norm(shipped, f"{name}.norm_2", x)
        found, *rest = _attend(shipped, f"{name}.source_attention", asking, memory, attention)
        seen.append(tuple(rest))
        x = x + found
        x = x + _feed_forward(shipped, f"{name}.feed_forward", _norm(shipped, f"{name}.norm_3", x))
    return _norm(shipped, "decoder.norm", x) @ shipped.embedding.mT, seen


def _embed(shipped: Shipped, tokens: Tensor) -> Tensor:
    x = shipped.embedding[tokens]
    dim = x.shape[1]
    rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    angle = torch.arange(len(tokens))[:, None] * rate
    return x * math.sqrt(dim) + torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)


def _attend(
    shipped: Shipped, name: str, asking: Tensor, asked: Tensor, attention: Attention | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The output `(n, d)`, then queries, keys, values and weights, each `(heads, …)`."""
    parts = (("Wq", asking), ("Wk", asked), ("Wv", asked))
    queries, keys, values = (
        _linear(shipped, f"{name}.{part}", x).unflatten(1, (shipped.heads, -1)).transpose(0, 1) for part, x in parts
    )
    found, weights = (attention or _softmax_attention)(queries, keys, values)
    if found.shape != queries.shape:
        raise ValueError(f"attention should give an output of shape {tuple(queries.shape)}, got {tuple(found.shape)}")
    output = _linear(shipped, f"{name}.WO", found.transpose(0, 1).flatten(1))
    return output, queries, keys, values, weights


def _softmax_attention(queries: Tensor, keys: Tensor, values: Tensor, causal: bool = False) -> tuple[Tensor, Tensor]:
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
    weights = scores.softmax(-1)
    return weights @ values, weights


def _feed_forward(shipped: Shipped, name: str, x: Tensor) -> Tensor:
    return _linear(shipped, f"{name}.outer", _linear(shipped, f"{name}.inner", x).relu())


def _norm(shipped: Shipped, name: str, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], shipped.weights[f"{name}.weight"], shipped.weights[f"{name}.bias"])


def _linear(shipped: Shipped, name: str, x: Tensor) -> Tensor:
    return F.linear(x, shipped.weights[f"{name}.weight"], shipped.weights[f"{name}.bias"])


def _words(pieces: list[str]) -> list[str]:
    words = [""] * (int(word_of_each(pieces)[-1]) + 1)
    for piece, word in zip(pieces, word_of_each(pieces).tolist(), strict=True):
        words[word] += piece.removeprefix("▁")
    return words
