"""Ranks of methods before and after one more joins."""

from __future__ import annotations

import pandas as pd

from multilab.arena.boards import rank_methods
from multilab.arena.errors import ArenaError
from multilab.arena.metric_groups import METRIC_GROUPS, metrics_of
from multilab.arena.tracks import track_results

__all__ = ["rank_changes"]


def rank_changes(committed: pd.DataFrame, submitted: pd.DataFrame) -> pd.DataFrame:
    """Return the ranks of methods before and after one more joins.

    Parameters
    ----------
    committed, submitted : DataFrame
        Rows (dataset, split, method, metric, value) of the methods there are, and of the one that joins. Only the data
        sets and splits of ``submitted`` count; rows of its name in ``committed`` do not. A method without results on
        one of these splits is last on that data set.

    Returns
    -------
    DataFrame
        By method, the best first: ``before`` (NaN for the new one) and ``after``, ranks by all metrics
        (``rank_methods(means, "overall")``), then the ranks after by each other group of ``METRIC_GROUPS``, NaN if no
        metric of the group is defined on these data sets.

    Raises
    ------
    ArenaError
        If no committed method has results on these splits, or no metric is defined on them for all methods.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import rank_changes
    >>> columns = ["dataset", "split", "method", "metric", "value"]
    >>> old = pd.DataFrame([("x", 0, "a", "macro_f1", 0.5), ("x", 0, "b", "macro_f1", 0.7)], columns=columns)
    >>> new = pd.DataFrame([("x", 0, "mine", "macro_f1", 0.6)], columns=columns)
    >>> rank_changes(old, new)[["before", "after"]]
          before  after
    b        1.0    1.0
    mine     NaN    2.0
    a        2.0    3.0
    """
    name = submitted["method"].iloc[0]
    columns = list(submitted.columns)
    splits = submitted[["dataset", "split"]].drop_duplicates()
    old = committed[committed["method"] != name].merge(splits, on=["dataset", "split"])[columns]
    old = old[old["metric"].isin(submitted["metric"])]
    if old.empty:
        raise ArenaError("no committed method has results on these data sets and splits")
    both = pd.concat([old, submitted[submitted["metric"].isin(old["metric"])]], ignore_index=True)
    table = pd.DataFrame({"before": _ranks(old, "overall"), "after": _ranks(both, "overall")})
    if table["after"].isna().all():
        raise ArenaError("no metric is defined on these data sets and splits for all methods")
    groups = {group: _ranks(both, group) for group in METRIC_GROUPS if group != "overall"}
    return table.assign(**groups).sort_values("after", kind="stable")


def _ranks(scores: pd.DataFrame, group: str) -> pd.Series:
    """Return the ranks by a group of metrics; empty if none of them was computed or is defined on a data set."""
    means = track_results("default", scores).means()
    positions = [means.metrics.index(metric) for metric in metrics_of(group) if metric in means.metrics]
    if means.undefined[positions].all():
        return pd.Series(dtype=float)
    return rank_methods(means, group).table["rank"]
