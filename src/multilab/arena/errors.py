"""Errors of the arena."""

from multilab.core import MultilabError


class ArenaError(MultilabError, ValueError):
    """A score file, a submission or arguments of the arena that cannot be used."""
