# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Errors of the methods."""

from multilab.core import MultilabError

__all__ = ["MethodError"]


class MethodError(MultilabError, ValueError):
    """An argument or an input that a method cannot work with."""
