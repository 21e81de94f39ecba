"""Errors of the methods."""

from multilab.core import MultilabError

__all__ = ["MethodError"]


class MethodError(MultilabError, ValueError):
    """An argument or an input that a method cannot work with."""
