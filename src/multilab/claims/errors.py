"""The error of the claims room."""

from multilab.ground import MultilabError


class ClaimsError(MultilabError, ValueError):
    """A paper or a printed cell that is not there."""
