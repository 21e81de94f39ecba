"""Ties by rule: numbers that differ only by rounding errors become equal."""

import numpy as np

_BITS = 30  # the tolerance is 2^-30, about 1e-9: far above rounding errors, far below what a metric should see
_SAME_VALUE = 1e-12  # of a sum of terms up to about 1
_SUBNORMAL = -1034  # numbers with a smaller exponent keep few bits: their tolerance is 2^-1064


def merge_ties(scores: np.ndarray) -> np.ndarray:
    """Make scores equal if they differ only by rounding errors.

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
    >>> from multilab.methods.ties import merge_ties
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


def round_to_grid(values: np.ndarray, largest: np.ndarray | float = 1.0) -> np.ndarray:
    """Round values to a grid of about 1e-9 of a fixed magnitude.

    Parameters
    ----------
    values : ndarray
        Scores of any rows.
    largest : float or ndarray that broadcasts with ``values``
        Magnitude of the scores in training. The step is 2^-30 times the next power of two above it.

    Returns
    -------
    ndarray

    Notes
    -----
    `merge_ties` looks at the other scores of a row. Where scores of one label are compared across rows, a gap between
    neighbours would make a prediction depend on the other rows of its batch; a fixed grid does not. Two scores that
    differ in their last bits lie on both sides of a line of the grid with a probability of about 1e-6, and are then
    apart by a step: far enough for what follows not to depend on rounding.

    Examples
    --------
    >>> from multilab.methods.ties import round_to_grid
    >>> a, b = round_to_grid(np.array([0.1 + 0.2, 0.3]))
    >>> bool(a == b)
    True
    """
    exponent = np.frexp(largest)[1]
    with np.errstate(over="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(values, _BITS - exponent)), exponent - _BITS)
    return np.where(np.isfinite(rounded), rounded, values)  # too large for a fraction on this grid


def first_largest(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the index of the largest value along an axis, the first among values equal to 1e-12."""
    best = values.max(axis=axis, keepdims=True)
    return np.argmax(values >= best - _SAME_VALUE * np.maximum(1.0, np.abs(best)), axis=axis)
