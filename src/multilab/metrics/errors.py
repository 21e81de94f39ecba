"""The error of the metrics room."""

from multilab.ground import MultilabError


class MetricError(MultilabError, ValueError):
    """Truth, decisions, scores or conventions that cannot be measured; one line says which and where."""
