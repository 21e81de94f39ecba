"""Checks for multi-label estimators: scikit-learn's, and those that need a label matrix."""

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
