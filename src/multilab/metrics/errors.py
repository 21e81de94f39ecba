"""Exception of the metrics."""

from multilab.core import MultilabError


class MetricError(MultilabError, ValueError):
    """Truth, decisions, scores or conventions that cannot be measured. The message says which, and where."""
