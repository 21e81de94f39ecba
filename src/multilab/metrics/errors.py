# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Exception of the metrics."""

from multilab.core import MultilabError


class MetricError(MultilabError, ValueError):
    """Truth, decisions, scores or conventions that cannot be measured; one line says which and where."""
