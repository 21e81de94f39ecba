"""Groups of metrics that a leaderboard can be ordered by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from multilab.arena.errors import ArenaError
from multilab.core.messages import unknown_name
from multilab.metrics import METRICS

_EXAMPLE = ("hamming_loss", "subset_accuracy", "jaccard", "example_precision", "example_recall", "example_f1")
_VARIANTS = ("accuracy_1mHL", "f1_of_means", "macro_f1_example")
_LABEL = ("macro_f1", "micro_f1", "macro_auc", "micro_auc")
_RANKING = ("average_precision", "ranking_loss", "one_error", "coverage", "coverage_1based", "coverage_normalised")

METRIC_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "overall": (*_EXAMPLE, *_VARIANTS, *_LABEL, *_RANKING),
        "example": (*_EXAMPLE, *_VARIANTS),
        "label": _LABEL,
        "ranking": _RANKING,
    }
)
"""Metrics by group: all, example-based decisions, label-based, and example-based ranking.

The groups are those of M.-L. Zhang and Z.-H. Zhou, A review on multi-label learning algorithms, TKDE 26(8), 2014,
figure 1; the variants of a metric are in its group. None of the metrics that every study computes measures calibration.
"""

GROUP_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "overall": "All metrics",
        "example": "Example-based decisions",
        "label": "Label-based",
        "ranking": "Example-based ranking",
    }
)
"""Display names of the groups."""

ORDERED_LIKE: Mapping[str, str] = MappingProxyType(
    {"accuracy_1mHL": "hamming_loss", "coverage_1based": "coverage", "coverage_normalised": "coverage"}
)
"""Metrics that order the methods of any dataset as another metric does; a group counts such a pair once."""


def metrics_of(name: str) -> tuple[str, ...]:
    """Return the metrics that a board is computed from: of a group without those that repeat another, or the metric.

    Parameters
    ----------
    name : str
        A group of :data:`METRIC_GROUPS` or a metric.

    Raises
    ------
    ArenaError
        If there is neither.
    """
    if name in METRIC_GROUPS:
        return tuple(metric for metric in METRIC_GROUPS[name] if metric not in ORDERED_LIKE)
    if name not in METRICS:
        raise ArenaError(unknown_name("metric or group", name, [*METRIC_GROUPS, *METRICS]))
    return (name,)


def boards_of(metrics: Sequence[str]) -> list[str]:
    """Return the names of the boards of a suite with these metrics: the groups that have one, then the metrics."""
    groups = [group for group, members in METRIC_GROUPS.items() if set(members) & set(metrics)]
    return [*groups, *(metric for metric in METRICS if metric in metrics)]
