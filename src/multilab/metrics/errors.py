"""Exception of the metrics."""

from multilab.core import MultilabError


class MetricError(MultilabError, ValueError):
    """Truth, decisions, scores or conventions that cannot be measured; one line says which and where."""
