"""What counting the training reviews says of their words: first vectors, and weights for a regression."""

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor

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


def log_count_ratios(present: scipy.sparse.csr_matrix, labels: np.ndarray) -> np.ndarray:
    """How much more often positive reviews hold each n-gram, as a logarithm (Wang and Manning, 2012).

    Args:
        present: `(reviews, n-grams)`, 1 where a review holds an n-gram.
        labels: of the reviews, 0 or 1.
    """
    positive = labels == 1
    of_positive, of_negative = (1.0 + np.asarray(present[rows].sum(axis=0)) for rows in (positive, ~positive))
    return (np.log(of_positive / of_positive.sum()) - np.log(of_negative / of_negative.sum())).ravel()


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
        present = self.counter.fit_transform(examples).astype(np.float64)
        self.ratios = scipy.sparse.diags(log_count_ratios(present, np.array(labels)))
        return present @ self.ratios

    def transform(self, examples: list) -> scipy.sparse.csr_matrix:
        """Weight other reviews with them."""
        return self.counter.transform(examples).astype(np.float64) @ self.ratios
