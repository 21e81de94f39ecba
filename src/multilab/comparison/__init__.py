"""Comparison of methods on one dataset, and a recommendation.

`multilab.compare` compares estimators and returns a :class:`multilab.statistics.Leaderboard`; `multilab.evaluate`
evaluates scores of models that were fitted elsewhere. The command `multilab compare` runs the methods of a portfolio
within a time budget: the module ``run`` calls ``portfolio``, ``plan``, ``fits``, ``decisions``, ``curve`` and
``results``. `AutoMultiLabel` uses the same modules for rows in memory, and fits with ``training_set``.
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
