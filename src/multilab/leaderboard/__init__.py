"""Comparison of estimators on one dataset of one's own.

``from multilab import compare`` is the way in; :class:`Leaderboard` is what it returns.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "comparing": ("compare",),
        "errors": ("ComparisonError",),
        "leaderboard": ("Leaderboard",),
        "recommendation": ("Recommendation", "recommend"),
    },
)
