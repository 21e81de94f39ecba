"""The error of the metrics room."""

from multilab.ground import MultilabError


class MetricError(MultilabError, ValueError):
    """Raised when truth, decisions, scores or conventions cannot be measured; one line says which and where."""
