"""Exceptions and warnings of the packages ``cells`` and ``experiments``."""

from multilab.core import MultilabError


class ExperimentError(MultilabError):
    """A setting, a study or a stored cell that cannot be used; the message says which and what to do."""


class TrackingError(ExperimentError):
    """An MLflow store that cannot be used; results are not affected and can be published later."""


class DifferentResultError(ExperimentError):
    """A stored result that the current code does not compute, though its key is the same."""

    exit_code = 1
