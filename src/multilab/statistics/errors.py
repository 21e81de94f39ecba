"""What can be wrong with a results table or a question asked of it."""

from __future__ import annotations

from multilab.ground.errors import MultilabError

__all__ = ["StatisticsError"]


class StatisticsError(MultilabError, ValueError):
    """A results table or an option that no comparison can be made with; the message names it.

    Too few datasets or methods is not an error: the result then holds ``None`` and says so in its notes.
    """
