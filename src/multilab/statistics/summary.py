"""Means over splits: the results table from the scores of single splits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from multilab.statistics.errors import StatisticsError


@dataclass(frozen=True, eq=False)
class Summary:
    """Mean and standard deviation over splits of one quantity.

    Attributes
    ----------
    metric : str
        Name of the quantity.
    mean, std : DataFrame of shape (n datasets, k methods)
        ``std`` is the sample standard deviation (ddof = 1) over the splits, NaN for a single split, and where all
        splits have one result.
    splits : DataFrame of shape (n, k), int
        Number of splits.
    unfinished : tuple of (dataset, method)
        Pairs that lack a split another method has; their mean is NaN, since a mean over fewer splits would
        not be comparable.
    """

    metric: str
    mean: pd.DataFrame
    std: pd.DataFrame
    splits: pd.DataFrame
    unfinished: tuple[tuple[str, str], ...]


def summarise(
    scores: pd.DataFrame, metric: str, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> Summary:
    """Return mean and standard deviation of one metric over the splits of each dataset and method.

    Parameters
    ----------
    scores : DataFrame
        Long format with the columns ``dataset``, ``split``, ``method``, ``metric``, ``value``; with a column
        ``key``, rows of equal key are one result.
    metric : str
        The metric.
    datasets, methods : sequence of str, optional
        Rows and columns of the result; default is order of appearance. A name without any value has a row or column of
        NaN.

    Raises
    ------
    StatisticsError
        If a column is missing, or a (dataset, split, method) has two values.

    Notes
    -----
    A split on which the metric is undefined (NaN) for every method is left out; if it is undefined or absent for some
    methods, these are unfinished.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["dataset", "split", "method", "metric", "value"]
    >>> rows = [("x", 0, "a", "jaccard", 0.5), ("x", 1, "a", "jaccard", 0.7), ("x", 0, "b", "jaccard", 0.6)]
    >>> scores = pd.DataFrame(rows, columns=columns)
    >>> from multilab.statistics import summarise
    >>> summary = summarise(scores, "jaccard")
    >>> float(summary.mean.loc["x", "a"].round(3)), summary.unfinished
    (0.6, (('x', 'b'),))
    """
    missing = {"dataset", "split", "method", "metric", "value"} - set(scores.columns)
    if missing:
        raise StatisticsError(f"the scores lack the column {sorted(missing)[0]!r}")
    rows = scores[scores["metric"] == metric]
    repeated = rows[rows.duplicated(["dataset", "split", "method"])]
    if len(repeated):
        first = repeated.iloc[0]
        raise StatisticsError(
            f"two values of {metric} for dataset {first['dataset']}, split {first['split']}, method {first['method']}"
        )
    index = list(datasets) if datasets is not None else list(dict.fromkeys(rows["dataset"]))
    columns = list(methods) if methods is not None else list(dict.fromkeys(rows["method"]))
    rows = rows[rows["dataset"].isin(index) & rows["method"].isin(columns)].dropna(subset="value")
    cells = rows.groupby(["dataset", "method"])["value"]
    count = _spread(cells.count(), index, columns).fillna(0).astype(int)
    needed = rows.groupby("dataset")["split"].nunique().reindex(index).fillna(0)
    short = count.lt(needed, axis=0)
    results = rows.groupby(["dataset", "method"])["key" if "key" in rows else "split"].nunique()
    once = _spread(results, index, columns).eq(1)
    unfinished = tuple((d, m) for d in index for m in columns if short.loc[d, m])
    return Summary(
        metric=metric,
        mean=_spread(cells.agg(exact_mean), index, columns).mask(short),
        std=_spread(cells.std(ddof=1), index, columns).mask(short | once),
        splits=count,
        unfinished=unfinished,
    )


def rounded_means(
    scores: pd.DataFrame, metric: str, datasets: Sequence[str], methods: Sequence[str], digits: int = 4
) -> dict[str, float]:
    """Return the mean over datasets of the means over splits, by method.

    Parameters
    ----------
    scores, metric, datasets, methods
        As for :func:`summarise`.
    digits : int
        Number of decimals. Values are rounded to ten decimals first, so that rounding errors of another processor do
        not decide a tie (.12345).

    Returns
    -------
    dict of str to float
        Without methods that lack a value on a dataset; a dataset on which no method has one is left out.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["dataset", "split", "method", "metric", "value"]
    >>> rows = [("x", 0, "a", "jaccard", 0.5), ("x", 1, "a", "jaccard", 0.7), ("x", 0, "b", "jaccard", 0.6)]
    >>> scores = pd.DataFrame(rows, columns=columns)
    >>> from multilab.statistics import rounded_means
    >>> rounded_means(scores, "jaccard", ["x"], ["a", "b"])
    {'a': 0.6}
    """
    complete = summarise(scores, metric, datasets, methods).mean.dropna(how="all").dropna(axis=1)
    return {
        str(method): round(round(exact_mean(values), 10), digits) for method, values in complete.items() if len(values)
    }


def exact_mean(values: Iterable[float]) -> float:
    """Return the mean, rounded once; NaN if a value is NaN; of equal values it is that value.

    Neither the order of the rows nor their number can create or break a tie between methods.
    """
    numbers = [float(value) for value in values]
    return numbers[0] if all(one == numbers[0] for one in numbers) else math.fsum(numbers) / len(numbers)


def _spread(values: pd.Series, index: list[str], columns: list[str]) -> pd.DataFrame:
    """Return the (dataset, method) series as a table; missing cells are NaN."""
    return values.unstack().reindex(index=index, columns=columns).astype(float)
