"""Errors of the arena."""

from multilab.core import MultilabError


class ArenaError(MultilabError, ValueError):
    """Results or arguments of the arena that cannot be used; the message names them."""
