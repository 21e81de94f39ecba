"""Exception of the statistics."""

from __future__ import annotations

from multilab.core.errors import MultilabError


class StatisticsError(MultilabError, ValueError):
    """Invalid results table or option; the message names it.

    Too few datasets or methods is not an error: the result then has ``None`` and a note.
    """
