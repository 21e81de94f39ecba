"""The arena: many methods on many data sets, compared from tables and from files of scores.

Nothing here fits a method or reads a cell.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "cell_scores": ("ScoreFile", "read_cell_scores"),
        "errors": ("ArenaError",),
        "rounding": ("rounded_in_order",),
    },
)
