"""Comparison of methods on one dataset, and a recommendation.

``from multilab import compare`` compares estimators and returns a :class:`multilab.statistics.Leaderboard`;
``from multilab import evaluate`` evaluates scores of models that were fitted elsewhere.
`multilab compare` runs the methods of a portfolio within a budget of time: ``run`` calls its parts, ``portfolio``,
``plan``, ``fits``, ``decisions``, ``curve`` and ``results``. `AutoMultiLabel` calls the same parts on rows
in memory, whose fits are in ``training_set``.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "auto": ("AutoMultiLabel",),
        "comparing": ("compare",),
        "errors": ("ComparisonError",),
        "evaluating": ("Evaluation", "evaluate"),
        "recommendation": ("Recommendation", "recommend"),
    },
)
