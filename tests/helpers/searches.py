"""A search in a test: inner folds and trials in one call."""

from __future__ import annotations

from multilab.cells.running import inner_rows
from multilab.experiments.search import search


def run_search(cell, tuning, store, journal, name=None):
    """Search on the inner folds of a cell; return the best arguments and the trials as CSV."""
    result = search(cell, tuning, inner_rows(cell, tuning, store), journal, name=name)
    return result.best, result.trials
