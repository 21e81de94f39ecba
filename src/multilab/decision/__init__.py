"""From scores to decisions: thresholds, label counts, calibration and guarantees, fitted only on held-out scores.

Two estimators wrap any multi-label classifier; the exact maximisers that they use are functions of labels and scores.
Names are imported when they are first used.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "calibrated": ("CalibratedMultiLabelClassifier",),
        "expected_f1": ("expected_f1_decisions",),
        "guard": ("guarded_thresholds",),
        "metric_stack": ("MetricStack",),
        "rules": ("DecisionRules",),
        "thresholds": (
            "best_k",
            "cost_thresholds",
            "expected_cost_thresholds",
            "global_threshold",
            "macro_f1_thresholds",
            "micro_f1_thresholds",
        ),
        "tuned_threshold": ("TunedThresholdClassifier",),
    },
)
