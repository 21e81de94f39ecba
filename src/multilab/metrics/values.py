# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Means over rows or labels, with rules for those that have no value."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from multilab.metrics.errors import MetricError

_REPLACEMENTS = {"zero": 0.0, "one": 1.0, "minus_one": -1.0}


class Value(NamedTuple):
    """A metric's value and the number of rows or labels that were left out of it."""

    value: float
    n_skipped: int = 0


def mean_of(values: np.ndarray, kept: np.ndarray | None = None) -> Value:
    """Average the kept values; ``nan`` when none is kept.

    The sum is exact and rounded once, so that it depends neither on the order of rows nor on the block size.
    """
    chosen = values if kept is None else values[kept]
    if not chosen.size:
        return Value(math.nan, values.size)
    return Value(math.fsum(chosen.tolist()) / chosen.size, values.size - chosen.size)


def mean_where_defined(values: np.ndarray) -> Value:
    """Average the values that are not ``nan``."""
    return mean_of(values, ~np.isnan(values))


def mean_with_rule(
    values: np.ndarray, degenerate: np.ndarray, rule: str, message: str, also_skip: np.ndarray | None = None
) -> Value:
    """Average the values of rows (or labels) after applying the rule for the degenerate ones.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Any finite value where degenerate.
    degenerate : ndarray of bool, shape (n,)
        Rows without a value.
    rule : {"skip", "zero", "one", "minus_one", "nan", "error"}
        Value of these rows.
    message : str
        Start of the error message; the index of the first degenerate row follows.
    also_skip : ndarray of bool, optional
        Rows left out under any rule.

    Returns
    -------
    Value

    Raises
    ------
    MetricError
        If the rule is ``error`` and a row is degenerate.
    """
    kept = np.ones(values.size, dtype=bool) if also_skip is None else ~also_skip
    if degenerate.any():
        if rule == "error":
            raise MetricError(f"{message} {np.argmax(degenerate)}; the conventions refuse it")
        if rule == "nan":
            return Value(math.nan)
        if rule == "skip":
            kept &= ~degenerate
        else:
            values = np.where(degenerate, _REPLACEMENTS[rule], values)
    return mean_of(values, kept)
