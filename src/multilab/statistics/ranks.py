"""Ranks of methods within datasets, on which the rank tests depend."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from multilab.statistics.errors import StatisticsError


def check_table(table: pd.DataFrame, direction: str) -> pd.DataFrame:
    """Validate a results table and return it as float64 with names as strings.

    Parameters
    ----------
    table : DataFrame of shape (n datasets, k methods)
        Unrounded mean values of one metric; NaN = the method did not finish on the dataset. Infinities are
        refused.
    direction : {"min", "max"}
        Whether small or large values are good.

    Raises
    ------
    StatisticsError
        If the direction is unknown, a name occurs twice, or a value is neither a finite number nor NaN.
    """
    if direction not in ("min", "max"):
        raise StatisticsError(f"direction must be 'min' or 'max', got {direction!r}")
    plain = table.set_axis([str(i) for i in table.index], axis=0).set_axis([str(c) for c in table.columns], axis=1)
    for names, what in ((plain.columns, "method"), (plain.index, "dataset")):
        twice = list(names[names.duplicated()])
        if twice:
            raise StatisticsError(f"{what} {twice[0]!r} occurs more than once in the results table")
    try:
        plain = plain.astype(float)
    except (TypeError, ValueError) as error:
        raise StatisticsError(f"the results table holds something that is not a number: {error}") from error
    infinite = np.argwhere(np.isinf(plain.to_numpy()))
    if len(infinite):
        row, column = infinite[0]
        raise StatisticsError(
            f"the value of method {plain.columns[column]!r} on dataset {plain.index[row]!r} is infinite; "
            "use NaN for a method that did not finish"
        )
    return plain


def rank_rows(table: pd.DataFrame, direction: str) -> pd.DataFrame:
    """Return the rank of each method within each dataset: 1 is best, ties averaged, NaN last.

    Parameters
    ----------
    table : DataFrame of shape (n datasets, k methods)
        Unrounded means. Ranking printed (rounded) values invents ties: the MLWSE paper's Hamming loss gives
        F_F = 6.348 from three decimals and 5.914 from four.
    direction : {"min", "max"}
        Whether small or large values are good.

    Returns
    -------
    DataFrame of shape (n, k)
        Every row sums to k (k + 1) / 2.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.4], "c": [0.3, 0.3, 0.5]}, ["x", "y", "z"])
    >>> from multilab.statistics import rank_rows
    >>> rank_rows(table, "min").loc["y"].to_dict()
    {'a': 1.0, 'b': 3.0, 'c': 2.0}
    """
    plain = check_table(table, direction)
    return plain.rank(axis=1, method="average", ascending=direction == "min", na_option="bottom")


def average_ranks(table: pd.DataFrame, direction: str) -> pd.Series:
    """Return the mean over datasets of :func:`rank_rows`, per method, in column order.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.4], "c": [0.3, 0.3, 0.5]}, ["x", "y", "z"])
    >>> from multilab.statistics import average_ranks
    >>> average_ranks(table, "min").round(2).to_dict()
    {'a': 1.0, 'b': 2.33, 'c': 2.67}
    """
    return rank_rows(table, direction).mean(axis=0)


def pareto_front(quality: Mapping[str, float], cost: Mapping[str, float]) -> tuple[str, ...]:
    """Return the Pareto front of quality and cost, the cheapest first.

    Parameters
    ----------
    quality : mapping of str to float
        The larger the better, such as Elo.
    cost : mapping of str to float
        The smaller the better. Names with a cost or quality that is missing or NaN are left out.

    Examples
    --------
    >>> from multilab.statistics import pareto_front
    >>> pareto_front({"a": 1000, "b": 1200, "c": 1100}, {"a": 0.1, "b": 3.0, "c": 4.0})
    ('a', 'b')
    """
    both = [name for name in quality if np.isfinite(quality[name]) and np.isfinite(cost.get(name, np.nan))]
    front: list[str] = []
    for name in sorted(both, key=lambda each: (cost[each], -quality[each], each)):
        if not front or quality[name] > quality[front[-1]]:
            front.append(name)
    return tuple(front)
