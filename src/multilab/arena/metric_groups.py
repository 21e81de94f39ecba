"""Groups of metrics that a leaderboard can be ordered by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from multilab.arena.errors import ArenaError
from multilab.core.messages import unknown_name
from multilab.metrics import METRICS
from multilab.metrics.registry import GROUPS

_MEMBERS = {group: tuple(name for name, metric in METRICS.items() if metric.group == group) for group in GROUPS}

METRIC_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "overall": tuple(name for members in _MEMBERS.values() for name in members),
        **{group: members for group, members in _MEMBERS.items() if members},
    }
)
"""Metrics by group, from their definitions: ``overall`` has those of all groups."""

GROUP_TITLES: Mapping[str, str] = MappingProxyType({"overall": "All metrics", **GROUPS})
"""Display names of the groups."""

ORDERED_LIKE: Mapping[str, str] = MappingProxyType(
    {name: metric.ordered_like for name, metric in METRICS.items() if metric.ordered_like}
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
