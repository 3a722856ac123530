"""What a classifier trained on few reviews can be given: weights of n-grams, vectors of words and of pairs."""

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor, nn

FIRST_WORD = 2  # the numbers below are <unk> and <pad>


def word_vectors(reviews: list[np.ndarray], words: int, dim: int, window: int) -> Tensor:
    """Vectors of length 1, `(words, dim)`, close for words that stand in the same company.

    How much more often than by chance do two words stand within a window, the nearer the more? The logarithm of that,
    where it is positive, in `dim` singular vectors (Levy, Goldberg and Dagan, 2015). It reads no label.
    """
    apart = np.zeros(window, dtype=np.int64)  # <unk> between reviews
    text = np.concatenate([part for review in reviews for part in (review, apart)])
    counts = scipy.sparse.csr_matrix((words, words))
    for distance in range(1, window + 1):
        weight = np.full(len(text) - distance, 1 / distance)
        counts += scipy.sparse.csr_matrix((weight, (text[:-distance], text[distance:])), shape=(words, words))
    counts = (counts + counts.T).tocoo()
    real = (counts.row >= FIRST_WORD) & (counts.col >= FIRST_WORD)
    row, column, count = counts.row[real], counts.col[real], counts.data[real]
    of_row, of_column = np.bincount(row, count, words), np.bincount(column, count, words) ** 0.75
    surprise = np.log(count / (of_row[row] * of_column[column] / of_column.sum()))
    kept = surprise > 0
    matrix = scipy.sparse.csr_matrix((surprise[kept], (row[kept], column[kept])), shape=(words, words))
    svd = TruncatedSVD(dim, n_iter=4, random_state=0)
    vectors = svd.fit_transform(matrix) / svd.singular_values_**0.5
    return F.normalize(torch.from_numpy(vectors).float(), dim=-1)


class LogCountRatios:
    """Whether a review holds an n-gram, times how much more often positive reviews do (Wang and Manning, 2012).

    Args:
        longest: the longest n-gram.
        min_df: the fewest training reviews that hold it.
    """

    def __init__(self, longest: int, min_df: int) -> None:
        self.counter = CountVectorizer(
            analyzer=lambda example: [
                " ".join(example.text[i : i + n])
                for n in range(1, longest + 1)
                for i in range(len(example.text) - n + 1)
            ],
            min_df=min_df,
            binary=True,
        )

    def fit_transform(self, examples: list, labels: list[int]) -> scipy.sparse.csr_matrix:
        """Learn the ratios, and weight the training reviews with them."""
        present, positive = self.counter.fit_transform(examples).astype(np.float64), np.array(labels) == 1
        of_positive, of_negative = (1.0 + np.asarray(present[rows].sum(axis=0)) for rows in (positive, ~positive))
        ratios = np.log(of_positive / of_positive.sum()) - np.log(of_negative / of_negative.sum())
        self.ratios = scipy.sparse.diags(ratios.ravel())
        return present @ self.ratios

    def transform(self, examples: list) -> scipy.sparse.csr_matrix:
        """Weight other reviews with them."""
        return self.counter.transform(examples).astype(np.float64) @ self.ratios


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
