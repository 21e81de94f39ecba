"""From the values of rows or labels to one number, and what happens to the ones that have no value."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from multilab.metrics.errors import MetricError

_STANDS_FOR = {"zero": 0.0, "one": 1.0, "minus_one": -1.0}


class Value(NamedTuple):
    """A metric's value and the number of rows or labels that were left out of it."""

    value: float
    n_skipped: int = 0


def mean_of(values: np.ndarray, kept: np.ndarray | None = None) -> Value:
    """Average the kept values; ``nan`` when none is kept.

    The sum is exact before it is rounded once, so that neither the order of rows nor the block size shows.
    """
    chosen = values if kept is None else values[kept]
    if not chosen.size:
        return Value(math.nan, values.size)
    return Value(math.fsum(chosen.tolist()) / chosen.size, values.size - chosen.size)


def mean_where_defined(values: np.ndarray) -> Value:
    """Average the values that are not ``nan``."""
    return mean_of(values, ~np.isnan(values))


def settle(
    values: np.ndarray, degenerate: np.ndarray, rule: str, what: str, also_skip: np.ndarray | None = None
) -> Value:
    """Average the values of rows (or labels) after applying the rule for the degenerate ones.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Anything finite where degenerate.
    degenerate : ndarray of bool, shape (n,)
        Which have no value of their own.
    rule : {"skip", "zero", "one", "minus_one", "nan", "error"}
        What they count.
    what : str
        Begin of the error message; the index of the first degenerate row follows.
    also_skip : ndarray of bool, optional
        Rows left out under any rule.

    Returns
    -------
    Value

    Raises
    ------
    MetricError
        If the rule is ``error`` and something is degenerate.
    """
    kept = np.ones(values.size, dtype=bool) if also_skip is None else ~also_skip
    if degenerate.any():
        if rule == "error":
            raise MetricError(f"{what} {np.argmax(degenerate)}; the conventions refuse it")
        if rule == "nan":
            return Value(math.nan)
        if rule == "skip":
            kept &= ~degenerate
        else:
            values = np.where(degenerate, _STANDS_FOR[rule], values)
    return mean_of(values, kept)
