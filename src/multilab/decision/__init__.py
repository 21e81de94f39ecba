"""From scores to decisions: thresholds, label counts, calibration and guarantees, fitted on held-out scores only.

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
        "label_thresholds": ("cost_thresholds", "macro_f1_thresholds", "micro_f1_thresholds"),
        "metric_stack": ("MetricStack",),
        "nested_decisions": ("best_k", "global_threshold"),
        "tuned_threshold": ("TunedThresholdClassifier",),
    },
)
