"""Scores of the best labels of each row as a sparse matrix, the form in which metrics at k take them."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from multilab.core.numbers import whole_number
from multilab.methods.errors import MethodError

__all__ = ["top_scores"]


def top_scores(model: Any, X: Any, k: int = 100) -> sp.csr_array:
    """Return the k highest scores of each row as a CSR array; no dense matrix of shape (n, q) is made.

    Parameters
    ----------
    model : MultiLabelClassifier
        Fitted.
    X : array-like or sparse matrix of shape (n, d)
    k : int, default=100
        Number of labels of each row; all of them if the model has fewer.

    Returns
    -------
    csr_array of shape (n, q)
        Canonical, float64, between 0 and 1. Probabilities are stored as they are. A margin f is stored as
        ``1/2 + f / (2 (1 + abs(f)))``, which keeps the order and is 1/2 at the threshold. So a label that is not
        stored, which counts as 0, comes after all that are.

    Raises
    ------
    MethodError
        If k is no whole number, or less than 1.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from multilab.methods import MLkNN
    >>> from multilab.methods.sparse_scores import top_scores
    >>> from multilab.metrics import precision_at_k
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=20, random_state=0)
    >>> Y = sp.csr_array(y)
    >>> scores = top_scores(MLkNN(k=5).fit(X, Y), X, k=3)
    >>> scores.nnz
    180
    >>> round(precision_at_k(Y, scores, k=1), 2)
    0.63
    """
    check_is_fitted(model, "n_labels_")
    k = whole_number(k, "k", 1, MethodError)
    if hasattr(model, "_top_scores"):  # computes no others
        return model._top_scores(X, k)
    q = model.n_labels_
    labels, scores = model.predict_top_k(X, min(k, q))
    if model._score_kind() != "probability":
        margins = scores - model._threshold()
        scores = 0.5 + margins / (2 * (1 + np.abs(margins)))
    starts = np.arange(len(labels) + 1) * labels.shape[1]
    result = sp.csr_array((scores.ravel(), labels.ravel(), starts), shape=(len(labels), q))
    result.sort_indices()
    return result
