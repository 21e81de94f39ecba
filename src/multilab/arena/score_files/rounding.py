"""Rounding of scores to float32 that keeps their order, so that every ranking metric keeps its value."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from multilab.arena.errors import ArenaError

_ANCHORS = (0.0, 0.5, 1.0)
_LARGEST = float(np.finfo(np.float32).max)


def rounded_in_order(scores: Any) -> np.ndarray:
    """Return scores in float32: equal where they were equal, smaller where they were smaller.

    Rounding alone makes equal what differs in float64 by less than a step of float32, mostly next to 0 and 1, and a tie
    changes ranking losses and areas under curves. Such values are moved apart by steps of float32, all of them by as
    little as possible (isotonic regression of the steps). 0, 0.5 and 1 stay, and no value passes them.

    Parameters
    ----------
    scores : array-like of any shape
        Finite numbers.

    Returns
    -------
    ndarray of float32
        Of the same shape. Values beyond the range of float32 are next to its ends, in their order.

    Raises
    ------
    ArenaError
        If a score is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.arena import rounded_in_order
    >>> scores = np.array([1 - 1e-12, 1 - 1e-13, 1.0, 0.25])
    >>> scores.astype(np.float32)
    array([1.  , 1.  , 1.  , 0.25], dtype=float32)
    >>> rounded = rounded_in_order(scores)
    >>> rounded[0] < rounded[1] < rounded[2]
    np.True_
    >>> float(rounded[2] - rounded[0])
    1.1920928955078125e-07
    """
    values = np.asarray(scores, dtype=np.float64) + 0.0
    if not np.isfinite(values).all():
        raise ArenaError("a score is not a finite number")
    distinct, positions = np.unique(values, return_inverse=True)
    steps = _steps(np.clip(distinct, -_LARGEST, _LARGEST).astype(np.float32))
    bounds = [-np.inf, *_ANCHORS, np.inf]
    for low, high in itertools.pairwise(bounds):
        inside = slice(np.searchsorted(distinct, low, "right"), np.searchsorted(distinct, high, "left"))
        ends = _steps(np.array([max(low, -_LARGEST), min(high, _LARGEST)], np.float32))
        first, last = int(ends[0]) + np.isfinite(low), int(ends[1]) - np.isfinite(high)
        steps[inside] = _increasing(steps[inside], first, last)
    return _values(steps)[positions].reshape(values.shape)


def _steps(values: np.ndarray) -> np.ndarray:
    """Return the number of steps of float32 between 0 and each value, negative below 0."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _values(steps: np.ndarray) -> np.ndarray:
    values = np.abs(steps).astype(np.int32).view(np.float32)
    return np.where(steps < 0, -values, values).astype(np.float32)


def _increasing(steps: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return strictly increasing integers in [first, last], next to nondecreasing ones."""
    n = len(steps)
    if not n or (steps[0] >= first and steps[-1] <= last and (np.diff(steps) > 0).all()):
        return steps
    order = np.arange(n)
    level = isotonic_regression((steps - order).astype(float), y_min=first, y_max=last - (n - 1))
    return np.rint(level).astype(np.int64) + order
