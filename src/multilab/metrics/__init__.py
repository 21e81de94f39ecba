"""Multi-label metrics under the conventions of other systems.

Every metric is one function decorated by :func:`multilab.metrics.registry.metric`; its name is imported from here.

Examples
--------
>>> from multilab.metrics import ranking_loss, score_all
>>> score_all([[1, 0, 1]], [[0.9, 0.2, 0.7]])["ranking_loss"]
0.0
>>> ranking_loss([[1, 0, 1]], [[0.9, 0.8, 0.7]])
0.5
"""

from __future__ import annotations

from collections.abc import Callable

# ruff: isort: off
# The modules that define metrics, in the order in which tables list them.
from multilab.metrics import decision_metrics, auc, ranking_metrics, top_labels, probability_metrics  # noqa: F401

# ruff: isort: on
from multilab.core.lazy import renamed
from multilab.metrics.bootstrap_intervals import (
    BootstrapDifference,
    BootstrapInterval,
    bootstrap,
    bootstrap_difference,
)
from multilab.metrics.conventions import PRESETS, Conventions, preset
from multilab.metrics.errors import MetricError
from multilab.metrics.label_table import OverAssigned, confusion_counts, over_assigned, per_label
from multilab.metrics.registry import ALL_METRICS, METRICS, Metric, find_metric, metric
from multilab.metrics.scorers import get_scorer, get_scorer_names
from multilab.metrics.scoring import score_all
from multilab.metrics.top_labels import label_propensities
from multilab.metrics.value_bounds import Bounds, bounds

__all__ = [
    "METRICS",
    "PRESETS",
    "BootstrapDifference",
    "BootstrapInterval",
    "Bounds",
    "Conventions",
    "Metric",
    "MetricError",
    "OverAssigned",
    "bootstrap",
    "bootstrap_difference",
    "bounds",
    "confusion_counts",
    "find_metric",
    "get_scorer",
    "get_scorer_names",
    "label_propensities",
    "metric",
    "over_assigned",
    "per_label",
    "preset",
    "score_all",
]
__all__ += sorted(ALL_METRICS)


def __getattr__(name: str) -> Callable[..., float]:
    if name in ALL_METRICS:
        return ALL_METRICS[name].function
    return renamed(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
