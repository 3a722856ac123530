"""Sentences in which the rest decides what an ambiguous word means, for chapters 00 to 03.

They were written for this course, 174 of them, and 124 were kept: those in which the shipped translator gives the word
the meaning that was meant, so that whatever is counted on them is about sentences that it understands. Of the others it
took 30 otherwise, 11 leave the meaning open, and 9 were left aside so that both meanings of a word have as many.
"""

import re
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from attention_course.translator import load_translator, read, scores_after, translate, word_of_each

ROLES = {
    "A": "the subject's article",
    "J": "the subject's adjective",
    "S": "the subject",
    "V": "the verb",
    "P": "the preposition",
    "D": "its article",
    "Q": "its adjective",
    "W": "the word itself",
    "X": "a particle of the verb",
    "O": "another noun",
    "N": "another noun's article",
    "R": "another noun's preposition",
    ".": "the full stop",
}
"""What the letters behind the words stand for; *im*, a preposition with its article, counts as a preposition."""

_ENGLISH = {"Tor": ("goal", "gate"), "Bahn": ("train", "track"), "Schläger": ("racket", "bat")}


@dataclass(frozen=True)
class Sentence:
    """A German sentence with an ambiguous word."""

    words: list[str]
    """its words, the full stop last"""
    roles: list[str]
    """what each of them is, one of the values of `ROLES`"""
    meaning: str
    """the English word that the ambiguous one stands for here"""

    @property
    def text(self) -> str:
        """The sentence as one writes it."""
        return " ".join(self.words).removesuffix(" .") + "."

    def places(self, role: str, pieces: list[str]) -> list[int]:
        """Where the pieces of a word are.

        Args:
            role: what the word is, one of the values of `ROLES`.
            pieces: the translator's pieces of the sentence, with the marks of both ends.

        Returns:
            The places of its pieces, or of all such words'; none if the sentence has no such word.
        """
        words = [number for number, own in enumerate(self.roles, start=1) if own == role]  # word 0 is the mark
        return [place for place, word in enumerate(word_of_each(pieces).tolist()) if word in words]

    def by_word(self, shares: Tensor, pieces: list[str]) -> Tensor:
        """Add up what the pieces of each word have.

        Args:
            shares: a number for each piece, `(m,)`.
            pieces: the translator's pieces of the sentence, with the marks of both ends, `m`.

        Returns:
            A number for each of `words`, so without the two marks.
        """
        numbers = word_of_each(pieces)
        return torch.zeros(len(self.words) + 2).index_add(0, numbers, shares)[1:-1]


def ambiguous(word: str) -> list[Sentence]:
    """The sentences with a word, first those of its first meaning, then as many of the other.

    Args:
        word: "Tor" (goal, gate), "Bahn" (train, track) or "Schläger" (racket, bat).
    """
    sentences = []
    for meaning, lines in zip(_ENGLISH[word], _TAGGED[word], strict=True):
        for line in lines.strip().splitlines():
            words, letters = zip(*(tagged.rsplit("/", 1) for tagged in line.split()), strict=True)
            sentences.append(Sentence(list(words), [ROLES[letter] for letter in letters], meaning))
    return sentences


def meaning_in(english: str, word: str) -> str | None:
    """Which of a word's two meanings a translation has, or None: neither.

    Args:
        english: the translation.
        word: the ambiguous German word.
    """
    return next((m for m in _ENGLISH[word] if re.search(rf"\b{m}s?\b", english)), None)


def leaning(sentence: Sentence, vectors: Tensor | None = None) -> float:
    """How far the translator leans to what the ambiguous word means in a sentence, and not to its other meaning.

    The sentence is translated as it stands, up to the English word; there the two meanings are compared.

    Args:
        sentence: one that the translator takes as it was meant.
        vectors: what the encoder made of it, `(m, d)`, from which the English word is chosen; as it is read, if none.

    Returns:
        The log-odds of the two meanings' first pieces: 0 is a tie, one more is a factor of 2.7.
    """
    pair = next(meanings for meanings in _ENGLISH.values() if sentence.meaning in meanings)
    other = pair[1 - pair.index(sentence.meaning)]
    pieces = load_translator().pieces
    right, wrong = (pieces.encode(word)[0] for word in (sentence.meaning, other))
    memory = read(sentence.text)[1][-1] if vectors is None else vectors
    scores = scores_after(_up_to_the_word(sentence.text, sentence.meaning), memory)
    return (scores[right] - scores[wrong]).item()


@cache
def _up_to_the_word(text: str, meaning: str) -> list[str]:
    """The pieces of a sentence's translation before the English word of this meaning."""
    english = translate(text).english
    begins = (n for n in range(len(english)) if re.match(rf"▁{meaning}s?\b", "".join(english[n:])))
    return english[: next(begins)]


_TAGGED = {
    "Tor": (
        """
Ein/A Junge/S schießt/V ein/D Tor/W ./.
Eine/A Frau/S schießt/V ein/D Tor/W ./.
Ein/A Fußballspieler/S steht/V im/P Tor/W ./.
Ein/A Torwart/S steht/V im/P Tor/W ./.
Ein/A Torwart/S steht/V vor/P dem/D Tor/W ./.
Ein/A Torwart/S bewacht/V das/D Tor/W ./.
Ein/A Junge/S schießt/V den/N Ball/O ins/P Tor/W ./.
Eine/A Frau/S schießt/V einen/N Ball/O auf/P das/D Tor/W ./.
Ein/A Hockeyspieler/S schießt/V auf/P das/D Tor/W ./.
Zwei/A Spieler/S laufen/V zum/P Tor/W ./.
Ein/A Mann/S wirft/V den/N Ball/O ins/P Tor/W ./.
Ein/A Kind/S tritt/V einen/N Ball/O in/P ein/D Tor/W ./.
Zwei/A Jungen/S spielen/V Fußball/O vor/P einem/D Tor/W ./.
Der/A Torwart/S springt/V vor/P dem/D Tor/W ./.
Die/A Mannschaft/S feiert/V ein/D Tor/W ./.
Ein/A Fußballspieler/S rennt/V auf/P das/D Tor/W zu/X ./.
Ein/A Hockeyspieler/S steht/V vor/P seinem/D Tor/W ./.
Zwei/A Mannschaften/S kämpfen/V vor/P dem/D Tor/W ./.
Der/A Torwart/S hält/V den/N Ball/O vor/P dem/D Tor/W ./.
Ein/A kleiner/J Junge/S zielt/V auf/P das/D Tor/W ./.
Ein/A Spieler/S schießt/V auf/P ein/D Tor/W ./.
Ein/A Fußballspieler/S schläft/V vor/P einem/D Tor/W ./.
Ein/A Hockeyspieler/S wartet/V vor/P einem/D Tor/W ./.
Zwei/A Fußballspieler/S stehen/V neben/P einem/D Tor/W ./.
Kinder/S spielen/V Fußball/O neben/P einem/D Tor/W ./.
""",
        """
Eine/A Frau/S geht/V an/P einem/D Tor/W vorbei/X ./.
Ein/A Mann/S geht/V an/P einem/D Tor/W vorbei/X ./.
Ein/A Mann/S steht/V vor/P einem/D Tor/W ./.
Ein/A Mann/S lehnt/V an/P einem/D Tor/W ./.
Eine/A alte/J Frau/S sitzt/V vor/P einem/D Tor/W ./.
Menschen/S gehen/V durch/P ein/D großes/Q Tor/W ./.
Zwei/A Frauen/S stehen/V neben/P einem/D alten/Q Tor/W ./.
Ein/A Junge/S sitzt/V auf/P einem/D Tor/W ./.
Zwei/A Polizisten/S stehen/V vor/P einem/D Tor/W ./.
Eine/A Gruppe/S wartet/V vor/P einem/D großen/Q Tor/W ./.
Ein/A Mann/S mit/R einem/N Hut/O steht/V an/P einem/D Tor/W ./.
Eine/A Frau/S sitzt/V neben/P einem/D Tor/W ./.
Ein/A Mann/S schläft/V vor/P einem/D Tor/W ./.
Ein/A Hund/S steht/V vor/P einem/D Tor/W ./.
Ein/A Mann/S sitzt/V vor/P dem/D alten/Q Tor/W ./.
Ein/A Mann/S steht/V vor/P dem/D großen/Q Tor/W ./.
Viele/A Menschen/S stehen/V vor/P einem/D Tor/W ./.
Eine/A Frau/S fotografiert/V ein/D Tor/W ./.
Ein/A Mann/S öffnet/V ein/D altes/Q Tor/W ./.
Eine/A Frau/S geht/V durch/P ein/D altes/Q Tor/W ./.
Ein/A Hund/S springt/V über/P ein/D großes/Q Tor/W ./.
Zwei/A Männer/S gehen/V durch/P ein/D altes/Q Tor/W ./.
Ein/A Soldat/S steht/V vor/P einem/D Tor/W ./.
Ein/A Mann/S verkauft/V Obst/O vor/P einem/D Tor/W ./.
Eine/A Katze/S sitzt/V auf/P einem/D Tor/W ./.
""",
    ),
    "Bahn": (
        """
Menschen/S warten/V auf/P die/D Bahn/W ./.
Eine/A Frau/S sitzt/V in/P der/D Bahn/W ./.
Ein/A Mann/S schläft/V in/P der/D Bahn/W ./.
Zwei/A Frauen/S sitzen/V in/P einer/D Bahn/W ./.
Ein/A Mann/S liest/V in/P der/D Bahn/W ./.
Eine/A Frau/S liest/V ein/N Buch/O in/P der/D Bahn/W ./.
Ein/A alter/J Mann/S sitzt/V in/P der/D Bahn/W ./.
Eine/A Frau/S wartet/V am/R Bahnhof/O auf/P die/D Bahn/W ./.
Menschen/S steigen/V in/P eine/D Bahn/W ./.
Ein/A Mädchen/S schaut/V aus/P einer/D Bahn/W ./.
Viele/A Menschen/S stehen/V in/P einer/D Bahn/W ./.
Eine/A Frau/S steht/V in/P der/D Bahn/W ./.
Leute/S sitzen/V in/P einer/D vollen/Q Bahn/W ./.
Drei/A Freunde/S warten/V auf/P eine/D Bahn/W ./.
Ein/A Mann/S mit/R einem/N Koffer/O steigt/V in/P die/D Bahn/W ./.
Ein/A Kind/S sitzt/V in/P der/D Bahn/W ./.
Ein/A Mädchen/S sitzt/V in/P der/D Bahn/W ./.
Eine/A Frau/S schläft/V in/P einer/D Bahn/W ./.
Leute/S warten/V auf/P eine/D Bahn/W ./.
Zwei/A Männer/S warten/V auf/P eine/D Bahn/W ./.
Eine/A Frau/S wartet/V auf/P die/D Bahn/W ./.
""",
        """
Ein/A Läufer/S auf/P der/D Bahn/W ./.
Ein/A Motorradfahrer/S auf/P der/D Bahn/W ./.
Ein/A Rennwagen/S fährt/V auf/P der/D Bahn/W ./.
Ein/A Läufer/S rennt/V auf/P der/D Bahn/W ./.
Drei/A Läufer/S laufen/V auf/P einer/D Bahn/W ./.
Ein/A Motorrad/S fährt/V auf/P einer/D Bahn/W ./.
Zwei/A Motorradfahrer/S fahren/V auf/P einer/D Bahn/W ./.
Eine/A Läuferin/S läuft/V auf/P der/D Bahn/W ./.
Vier/A Sportler/S rennen/V auf/P der/D Bahn/W ./.
Ein/A Radfahrer/S fährt/V auf/P der/D Bahn/W ./.
Ein/A Mädchen/S rennt/V auf/P einer/D Bahn/W ./.
Ein/A Hund/S rennt/V auf/P der/D Bahn/W ./.
Hunde/S rennen/V auf/P einer/D Bahn/W ./.
Zwei/A Rennwagen/S auf/P der/D Bahn/W ./.
Ein/A Mann/S läuft/V auf/P der/D roten/Q Bahn/W ./.
Ein/A Junge/S springt/V mit/R seinem/N Fahrrad/O auf/P der/D Bahn/W ./.
Eine/A Frau/S läuft/V auf/P der/D Bahn/W ./.
Ein/A Motorradfahrer/S fährt/V auf/P einer/D schlammigen/Q Bahn/W ./.
Ein/A Läufer/S steht/V auf/P der/D Bahn/W ./.
Ein/A Pferd/S rennt/V auf/P der/D Bahn/W ./.
Drei/A Läufer/S laufen/V in/P einer/D Bahn/W ./.
""",
    ),
    "Schläger": (
        """
Ein/A Tennisspieler/S schwingt/V seinen/D Schläger/W ./.
Ein/A Tennisspieler/S hält/V einen/D Schläger/W ./.
Eine/A Frau/S spielt/V Tennis/O mit/P einem/D Schläger/W ./.
Eine/A Tennisspielerin/S schwingt/V ihren/D Schläger/W ./.
Eine/A Tennisspielerin/S mit/P ihrem/D Schläger/W ./.
Ein/A Junge/S spielt/V Tennis/O mit/P einem/D großen/Q Schläger/W ./.
Ein/A Mädchen/S mit/P einem/D Schläger/W spielt/V Tennis/O ./.
Ein/A Mann/S mit/P einem/D Schläger/W auf/R dem/N Tennisplatz/O ./.
Der/A Tennisspieler/S hebt/V den/D Schläger/W ./.
Zwei/A Tennisspieler/S halten/V ihre/D Schläger/W ./.
Ein/A Tennisspieler/S trifft/V den/N Ball/O mit/P dem/D Schläger/W ./.
Ein/A Mann/S hält/V beim/R Tennis/O den/D Schläger/W ./.
Ein/A Mann/S schlägt/V einen/N Tennisball/O mit/P seinem/D Schläger/W ./.
Ein/A Mädchen/S schlägt/V einen/N Tennisball/O mit/P einem/D Schläger/W ./.
Ein/A Tennisspieler/S mit/P einem/D roten/Q Schläger/W ./.
Ein/A Mann/S spielt/V Tennis/O mit/P einem/D roten/Q Schläger/W ./.
""",
        """
Ein/A Baseballspieler/S schwingt/V seinen/D Schläger/W ./.
Ein/A Baseballspieler/S hält/V einen/D Schläger/W ./.
Ein/A Junge/S spielt/V Baseball/O mit/P einem/D Schläger/W ./.
Ein/A Baseballspieler/S mit/P seinem/D Schläger/W ./.
Ein/A Kind/S mit/P einem/D Schläger/W spielt/V Baseball/O ./.
Der/A Baseballspieler/S hebt/V den/D Schläger/W ./.
Zwei/A Baseballspieler/S halten/V ihre/D Schläger/W ./.
Ein/A Baseballspieler/S trifft/V den/N Ball/O mit/P dem/D Schläger/W ./.
Ein/A Mann/S hält/V beim/R Baseball/O den/D Schläger/W ./.
Ein/A Kind/S hält/V einen/D Schläger/W beim/R Baseball/O ./.
Ein/A Spieler/S beim/R Baseball/O schwingt/V den/D Schläger/W ./.
Ein/A Schlagmann/S schwingt/V den/D Schläger/W ./.
Der/A Schlagmann/S hält/V seinen/D Schläger/W ./.
Ein/A Baseballspieler/S trägt/V einen/D Schläger/W ./.
Ein/A Junge/S spielt/V Baseball/O mit/P dem/D Schläger/W ./.
Ein/A Baseballspieler/S wirft/V den/D Schläger/W ./.
""",
    ),
}
