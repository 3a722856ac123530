"""A vector for each pair and each triple of neighbouring words, beside those of the words."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.words import FIRST_WORD


def drop_vectors(vectors: Tensor, rate: float, training: bool) -> Tensor:
    """While training, a share of the vectors is 0, and the others are larger for it."""
    if not training or not rate:
        return vectors
    kept = torch.rand(vectors.shape[:-1]) >= rate
    return vectors * (kept / (1 - rate)).unsqueeze(-1).to(vectors.dtype)


class WordsAndNGrams(nn.Module):
    """An embedding of words, to which the pair and the triple that end with a word add vectors of their own.

    Args:
        words: the embedding of words.
        reviews: the token numbers of the training reviews.
        longest: how many words the longest n-grams have, at least 2.
        seen_in: the number of reviews that an n-gram must occur in to have a vector; it begins at 0.
        dropouts: which share of the words' vectors is dropped while training, and which of the n-grams'.
    """

    def __init__(
        self, words: nn.Embedding, reviews: list[np.ndarray], longest: int, seen_in: int, dropouts: tuple[float, float]
    ) -> None:
        super().__init__()
        self.words, self.dropouts, self.grams = words, dropouts, nn.ModuleList()
        # The place of the n-gram that ends at each word, -1 where it has none: at first the words themselves.
        places = [np.where(review >= FIRST_WORD, review, -1) for review in reviews]
        for length in range(2, longest + 1):
            each = [self.codes_of(last, review) for last, review in zip(places, reviews, strict=True)]
            codes, count = np.unique(np.concatenate([np.unique(part[part >= 0]) for part in each]), return_counts=True)
            codes = codes[count >= seen_in]
            self.register_buffer(f"codes_{length}", torch.from_numpy(codes))  # in rising order
            grams = nn.Embedding(len(codes), words.embedding_dim)
            nn.init.zeros_(grams.weight)
            self.grams.append(grams)
            at = [np.searchsorted(codes, part).clip(max=len(codes) - 1) for part in each]
            places = [np.where(codes[i] == part, i, -1) for i, part in zip(at, each, strict=True)]

    def codes_of(self, places: np.ndarray, words: np.ndarray) -> np.ndarray:
        """One number for each n-gram, from the place of all its words but the last; -1 where there is none."""
        codes = np.full(len(words), -1)
        known = (places[:-1] >= 0) & (words[1:] >= FIRST_WORD)
        codes[1:][known] = places[:-1][known] * self.words.num_embeddings + words[1:][known]
        return codes

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors of the words, to which those of the n-grams that end there are added, `(B, n, d)`."""
        of_words, of_grams = self.dropouts
        x = drop_vectors(self.words(tokens), of_words, self.training)
        places, known = tokens, tokens >= FIRST_WORD
        for length, table in enumerate(self.grams, start=2):
            codes = getattr(self, f"codes_{length}")
            wanted = places[:, :-1] * self.words.num_embeddings + tokens[:, 1:]
            found = torch.searchsorted(codes, wanted).clamp(max=len(codes) - 1)
            known = known[:, :-1] & (tokens[:, 1:] >= FIRST_WORD) & (codes[found] == wanted)
            added = drop_vectors(table(found) * known.unsqueeze(-1), of_grams, self.training)
            x = x + F.pad(added, (0, 0, 1, 0))
            places, known = F.pad(found, (1, 0)), F.pad(known, (1, 0))
        return x
