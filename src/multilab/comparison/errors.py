"""Errors of comparisons."""

from __future__ import annotations

from multilab.core.errors import MultilabError


class ComparisonError(MultilabError, ValueError):
    """Estimators, data or arguments that cannot be compared."""
