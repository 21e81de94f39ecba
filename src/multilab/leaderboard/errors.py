"""Errors of comparisons."""

from multilab.core import MultilabError


class ComparisonError(MultilabError, ValueError):
    """Estimators, data or arguments that cannot be compared."""
