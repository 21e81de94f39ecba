"""Errors of the package."""

from __future__ import annotations

from multilab.core import MultilabError


class PaperError(MultilabError, ValueError):
    """A paper, a printed number or an erratum that does not exist or is not well formed."""
