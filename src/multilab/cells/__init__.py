"""Methods as estimators, and their results: what builds, fits, stores, executes and limits.

A *cell* is one (dataset, split, method): the unit that is computed once, stored, and shared by all studies. Nothing
here needs Hydra, Optuna, MLflow or DVC. Names are imported when they are first used.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "features": ("Columns", "Scaling"),
        "fitting": ("estimator_of", "fit_on_rows"),
        "pipeline": ("MemberScores", "MethodPipeline"),
    },
)
