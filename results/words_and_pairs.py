"""A vector for each pair of neighbouring words, beside those of the words."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.words import FIRST_WORD


class WordsAndPairs(nn.Module):
    """An embedding of words, to which each pair of neighbours adds a vector that belongs to the pair.

    Args:
        words: the embedding of words.
        reviews: the token numbers of the training reviews.
        pairs_from: the number of reviews that a pair must occur in to have a vector; it begins at 0.
    """

    def __init__(self, words: nn.Embedding, reviews: list[np.ndarray], pairs_from: int) -> None:
        super().__init__()
        self.words, self.size = words, words.num_embeddings
        each = np.concatenate([np.unique(review[:-1] * self.size + review[1:]) for review in reviews])
        codes, count = np.unique(each, return_counts=True)
        words_only = (codes // self.size >= FIRST_WORD) & (codes % self.size >= FIRST_WORD)
        codes = codes[(count >= pairs_from) & words_only]
        self.register_buffer("codes", torch.from_numpy(codes))  # in rising order
        self.pairs = nn.Embedding(len(codes), words.embedding_dim)
        nn.init.zeros_(self.pairs.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors of the words, each but the first with that of the pair which it ends, `(B, n, d)`."""
        code = tokens[:, :-1] * self.size + tokens[:, 1:]
        place = torch.searchsorted(self.codes, code).clamp(max=len(self.codes) - 1)
        known = (self.codes[place] == code).unsqueeze(-1)
        return self.words(tokens) + F.pad(self.pairs(place) * known, (0, 0, 1, 0))
