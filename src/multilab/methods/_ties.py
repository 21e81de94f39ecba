"""Ties by rule: numbers that differ by rounding errors only become equal."""

import numpy as np

_BITS = 30  # the tolerance is 2^-30, about 1e-9: far above rounding errors, far below what a metric should see
_SUBNORMAL = -1034  # numbers with a smaller exponent keep few bits: their tolerance is 2^-1064


def merge_ties(scores: np.ndarray) -> np.ndarray:
    """Make scores equal that differ by rounding errors only.

    Parameters
    ----------
    scores : ndarray of shape (m, q)
        Finite margins computed by matrix products, whose last bits depend on the processor.

    Returns
    -------
    ndarray of shape (m, q)
        In each row, sorted neighbours (0 among them) that are apart by less than 2^-30 of the row's largest magnitude
        are equal, and every score is rounded to that grid, so that equal rows of other instances tie too.

    Notes
    -----
    Metrics that rank compare scores for equality, and decisions compare them with 0. Where a kernel is close to the
    identity, or two labels share all training rows that matter, scores are equal in exact arithmetic, and the last bits
    of another BLAS kernel would rank them in another order.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods._ties import merge_ties
    >>> a, b = merge_ties(np.array([[0.1 + 0.2, 0.3, -1.0]]))[0, :2]
    >>> bool(a == b)
    True
    """
    if not scores.size:
        return scores
    rows = np.hstack([scores, np.zeros((len(scores), 1))])
    order = np.argsort(rows, axis=1, kind="stable")
    values = np.take_along_axis(rows, order, axis=1)
    largest = np.abs(scores).max(axis=1, keepdims=True)
    exponent = np.maximum(np.frexp(largest)[1], _SUBNORMAL)
    apart = np.ldexp(np.diff(values, axis=1), _BITS - exponent) > 1.0  # in units of the tolerance
    group = np.hstack([np.zeros((len(rows), 1), dtype=np.intp), np.cumsum(apart, axis=1)])
    first = np.maximum.accumulate(np.where(np.diff(group, axis=1, prepend=-1) > 0, np.arange(rows.shape[1]), 0), axis=1)
    merged = np.take_along_axis(values, first, axis=1)
    zero = np.take_along_axis(group, np.argmax(order == rows.shape[1] - 1, axis=1)[:, None], axis=1)
    merged[group == zero] = 0.0
    np.put_along_axis(rows, order, merged, axis=1)
    return np.ldexp(np.rint(np.ldexp(rows[:, :-1], _BITS - exponent)), exponent - _BITS)
