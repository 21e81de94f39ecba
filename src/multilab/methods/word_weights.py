"""TF-IDF weights of a bag of words, with numbers beside the words scaled."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from multilab.methods.mixed_scaler import MixedScaler

__all__ = ["WordWeights", "is_bag_of_words"]

_DENSEST = 0.1
"""Largest share of cells that are not 0 in a dense matrix that counts as a bag of words: a page of a benchmark has 2 to
8 %, pictures of digits have 19 %."""
_WORDS = 0.9
"""Least share of the columns of a bag of words that are words."""


def is_bag_of_words(X: Any) -> bool:
    """Return whether nearly all columns look like words: no negative value, and 0 in most rows or nothing but 0 and 1.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
        A dense one must be nearly empty, too.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods.word_weights import is_bag_of_words
    >>> is_bag_of_words(np.eye(20)), is_bag_of_words(np.ones((20, 3)))
    (True, False)
    """
    if not sp.issparse(X) and np.count_nonzero(X) > _DENSEST * X.size:
        return False
    words = _words(_csr(X))
    return bool(words.size and words.mean() >= _WORDS)


class WordWeights:
    """TF-IDF of the words of a matrix; columns that are no words are scaled by `MixedScaler`.

    A column holds a word if it has no negative value, and is 0 in at least half of the rows or holds nothing but 0 and
    1. The words of a row have length 1 afterwards, and a year or a rating beside them is in [-1, 1], so that
    it cannot outweigh them.

    Attributes
    ----------
    words_ : ndarray of shape (d,)
        Whether a column holds a word.
    counts_ : bool
        Whether all values of words are whole numbers, which count 1 + log(value).
    idf_ : ndarray of shape (d,)
        log((1 + n) / (1 + rows with the word)) + 1, as in scikit-learn.
    numbers_ : MixedScaler

    Examples
    --------
    The last column is a year.

    >>> import numpy as np
    >>> from multilab.methods.word_weights import WordWeights
    >>> X = np.array([[2, 0, 0, 2010], [0, 1, 0, 2012], [0, 0, 1, 2020.0]])
    >>> WordWeights().fit(X).transform(X).toarray().round(2)
    array([[ 1.  ,  0.  ,  0.  , -0.31],
           [ 0.  ,  1.  ,  0.  , -0.15],
           [ 0.  ,  0.  ,  1.  ,  0.46]])
    """

    def fit(self, X: Any) -> Self:
        """Learn which columns hold words, and their frequencies, from the rows of a matrix."""
        X = _csr(X)
        self.words_ = _words(X)
        values = X.data[self.words_[X.indices]]
        self.counts_ = bool((values == np.round(values)).all())
        self.idf_ = np.log((1 + X.shape[0]) / (1 + np.bincount(X.indices, minlength=X.shape[1]))) + 1
        self.numbers_ = MixedScaler(np.flatnonzero(self.words_)).fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the weights as a CSR matrix."""
        X = self.numbers_.transform(_csr(X))
        cells = self.words_[X.indices]
        values, columns = X.data[cells], X.indices[cells]
        if self.counts_:
            values = 1 + np.log(np.maximum(values, 1))
        values = values * self.idf_[columns]
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[cells]
        lengths = np.sqrt(np.bincount(rows, values**2, minlength=X.shape[0]))
        X.data[cells] = values / np.where(lengths > 0, lengths, 1)[rows]
        return X


def _csr(X: Any) -> sp.csr_array:
    """Return a copy of a matrix that holds no zero."""
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _words(X: sp.csr_array) -> np.ndarray:
    masks = (X.data != 0, X.data == 1, X.data < 0)
    filled, ones, negative = (np.bincount(X.indices[cells], minlength=X.shape[1]) for cells in masks)
    words: np.ndarray = ((2 * filled <= X.shape[0]) | (ones == filled)) & (negative == 0)
    return words
