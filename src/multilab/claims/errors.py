"""Errors of the package."""

from __future__ import annotations

from multilab.core import MultilabError


class ClaimsError(MultilabError, ValueError):
    """A paper, a published cell, an erratum or a claim that does not exist or is not well formed."""


class NotYet(ClaimsError):
    """Missing results for the check of a claim; the message says which."""
