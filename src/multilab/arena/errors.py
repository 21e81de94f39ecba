"""Errors of the arena."""

from multilab.core import MultilabError


class ArenaError(MultilabError, ValueError):
    """Results, a score file, a submission or arguments of the arena that cannot be used; the message names them."""
