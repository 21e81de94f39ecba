"""What one more method changes in the average ranks of the others."""

from __future__ import annotations

import pandas as pd

from multilab.metrics import METRICS
from multilab.statistics import average_ranks

__all__ = ["rank_changes"]


def rank_changes(committed: pd.DataFrame, submitted: pd.DataFrame) -> pd.DataFrame:
    """Return average ranks before and after a method joins.

    Parameters
    ----------
    committed, submitted : DataFrame
        Rows (dataset, split, method, metric, value) of the methods there are, and of the one that joins. Only the data
        sets and splits of ``submitted`` count; rows of its name in ``committed`` do not. A method without a value on
        one of these splits is last on that data set.

    Returns
    -------
    DataFrame
        By method, the best first: ``before`` (NaN for the new one) and ``after``, the mean over all metrics of the
        average rank over the data sets; and ``after_<metric>`` for each metric that both tables have.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import rank_changes
    >>> columns = ["dataset", "split", "method", "metric", "value"]
    >>> old = pd.DataFrame([("x", 0, "a", "macro_f1", 0.5), ("x", 0, "b", "macro_f1", 0.7)], columns=columns)
    >>> new = pd.DataFrame([("x", 0, "mine", "macro_f1", 0.6)], columns=columns)
    >>> rank_changes(old, new)[["before", "after"]]
            before  after
    method
    b          1.0    1.0
    mine       NaN    2.0
    a          2.0    3.0
    """
    name = submitted["method"].iloc[0]
    splits = submitted[["dataset", "split"]].drop_duplicates()
    old = committed[committed["method"] != name].merge(splits, on=["dataset", "split"])
    both = pd.concat([old, submitted], ignore_index=True)
    shared = set(old["metric"]) & set(submitted["metric"])
    metrics = [metric for metric in METRICS if metric in shared]
    before = {metric: _ranks(old, metric, splits) for metric in metrics}
    after = {metric: _ranks(both, metric, splits) for metric in metrics}
    table = pd.DataFrame({f"after_{metric}": ranks for metric, ranks in after.items()})
    table.insert(0, "after", table.mean(axis=1))
    table.insert(0, "before", pd.DataFrame(before).mean(axis=1).reindex(table.index))
    return table.rename_axis("method").sort_values("after", kind="stable")


def _ranks(scores: pd.DataFrame, metric: str, splits: pd.DataFrame) -> pd.Series:
    """Return the average ranks of methods on the means over splits; a missing split makes a mean missing."""
    rows = scores[scores["metric"] == metric]
    values = rows.pivot_table(index=["dataset", "split"], columns="method", values="value", dropna=False)
    complete = values.reindex(pd.MultiIndex.from_frame(splits)).groupby(level="dataset", sort=False)
    return average_ranks(complete.agg(lambda column: column.mean(skipna=False)), METRICS[metric].direction)
