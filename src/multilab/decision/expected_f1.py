"""Exact maximiser of the expected example F1 under independent labels."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from multilab.methods.base import MethodError
from multilab.methods.ties import first_largest

__all__ = ["expected_f1_decisions"]

_BLOCK = 2**21  # numbers in the table of one block of rows: 16 MiB


def expected_f1_decisions(probabilities: Any) -> np.ndarray:
    """Return the decisions that maximise expected example F1, assuming independent labels in a row.

    Parameters
    ----------
    probabilities : array-like of shape (n, q)
        Calibrated probability of each label, in [0, 1].

    Returns
    -------
    ndarray of shape (n, q), int64
        Decisions, 0/1. Among sets of equal expectation (to 1e-12) the smallest is chosen, among labels of equal
        probability the one with the lower index.

    Raises
    ------
    MethodError
        If a value is outside [0, 1].

    Notes
    -----
    The best set of a given size holds the most probable labels (Lewis 1995), so there are q + 1 sets to compare. The
    expectation of each is a sum over the number of hits and the number of other true labels; the recurrence of Ye et
    al. (2012) gives all of them in O(q^2) steps per row (Jansche 2007: O(q^4); Dembczyński et al. 2011, without
    independence: O(q^3) from q^2 joint probabilities). The empty set counts 1 where no label is true, as in
    `multilab.metrics.example_f1`.

    References
    ----------
    D. D. Lewis. Evaluating and optimizing autonomous text classification systems. SIGIR 1995.
    M. Jansche. A maximum expected utility framework for binary sequence labeling. ACL 2007.
    K. Dembczyński, W. Waegeman, W. Cheng, E. Hüllermeier. An exact algorithm for F-measure maximization. NIPS 2011.
    N. Ye, K. M. A. Chai, W. S. Lee, H. L. Chieu. Optimizing F-measures: a tale of two approaches. ICML 2012.

    Examples
    --------
    >>> from multilab.decision import expected_f1_decisions
    >>> expected_f1_decisions([[0.9, 0.4, 0.1], [0.4, 0.3, 0.3], [0.1, 0.1, 0.1]])
    array([[1, 0, 0],
           [1, 1, 1],
           [0, 0, 0]])
    """
    P = check_array(probabilities, dtype=np.float64, input_name="probabilities")
    if P.min() < 0 or P.max() > 1:
        raise MethodError(f"`probabilities` must be in [0, 1], got {P.min():.4g} to {P.max():.4g}")
    order = np.argsort(-P, axis=1, kind="stable")
    descending = np.take_along_axis(P, order, axis=1)
    rows = max(1, _BLOCK // (P.shape[1] + 1) ** 2)
    blocks = [expected_f1_by_size(descending[start : start + rows]) for start in range(0, len(P), rows)]
    values = np.concatenate(blocks)
    sizes = first_largest(values, axis=1)
    decisions = np.zeros(P.shape, dtype=np.int64)
    np.put_along_axis(decisions, order, (np.arange(P.shape[1]) < sizes[:, None]).astype(np.int64), axis=1)
    return decisions


def expected_f1_by_size(P: np.ndarray) -> np.ndarray:
    """Return the expected F1 of assigning the first k labels, shape (n, q + 1); probabilities in descending order."""
    n, q = P.shape
    hits = np.zeros((q + 1, n, q + 1))  # [k, row, h]: probability of h true labels among the first k
    hits[0, :, 0] = 1.0
    for k in range(q):
        p = P[:, k, None]
        hits[k + 1] = (1 - p) * hits[k]
        hits[k + 1, :, 1:] += p * hits[k, :, :-1]
    values = np.empty((n, q + 1))
    # [row, s - 1]: expectation of 1 / (s + number of true labels after the first k)
    reciprocal = np.tile(1.0 / np.arange(1, 2 * q + 1), (n, 1))
    for k in range(q, 0, -1):
        h = np.arange(1, k + 1)
        values[:, k] = np.einsum("h,nh,nh->n", 2.0 * h, hits[k, :, 1 : k + 1], reciprocal[:, k : 2 * k])
        p = P[:, k - 1, None]
        reciprocal = p * reciprocal[:, 1:] + (1 - p) * reciprocal[:, :-1]
    values[:, 0] = np.prod(1 - P, axis=1)
    return values
