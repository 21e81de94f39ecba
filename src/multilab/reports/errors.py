"""What can be wrong with the files a report is made of."""

from __future__ import annotations

from multilab.ground.errors import MultilabError

__all__ = ["ReportError"]


class ReportError(MultilabError, ValueError):
    """A file of a study that is missing, unreadable, or contradicts another; the message names the file."""
