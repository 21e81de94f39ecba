"""Checks for multi-label estimators of one's own: scikit-learn's, and what only a label matrix can show."""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "checking": ("check_multilabel_estimator", "multilabel_checks"),
        "errors": ("EstimatorCheckError",),
        "trials": ("make_check_data",),
    },
)
