"""Errors of the checks of estimators."""

from multilab.core import MultilabError


class EstimatorCheckError(MultilabError, AssertionError):
    """An estimator fails checks that it was not expected to fail."""
