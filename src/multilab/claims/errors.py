"""The errors of the claims room."""

from multilab.ground import MultilabError


class ClaimsError(MultilabError, ValueError):
    """A paper, a printed cell, an erratum or a claim that is not there or not well formed."""


class NotYet(ClaimsError):
    """What a claim is checked on has not been computed; the message says what is missing."""
