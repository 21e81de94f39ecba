"""What a claim is checked on: scores, learned arrays and further tables of a study, or a paper's printed cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from multilab.claims.errors import ClaimsError, NotYet
from multilab.statistics.summary import exact_mean

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Evidence", "Finding", "printed_evidence"]


@dataclass(frozen=True)
class Finding:
    """What came of a check: holds, fails or inconclusive, the numbers it rests on, and why where they do not speak."""

    outcome: str
    numbers: dict[str, Any] = field(default_factory=dict)
    reason: str = ""

    @classmethod
    def of(cls, holds: bool, numbers: Mapping[str, Any], reason: str = "") -> Finding:
        """Return a finding that holds or fails."""
        return cls("holds" if holds else "fails", dict(numbers), reason)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything a check may look at.

    Attributes
    ----------
    scores : DataFrame
        Columns dataset, split, method, metric, value, of our results ``key``, of the print ``std``; costs among them.
    learned : mapping of (method, dataset) to mapping of name to array
        Fitted attributes on the first split.
    tables : mapping of str to DataFrame
        Further tables of the study by name: ``sensitivity`` (method, dataset, one column per parameter, metric, value),
        ``convergence`` (method, dataset, iteration, gap), ``affinity`` (method, dataset, beta, correlation),
        ``sweeps`` (method, dataset, sweep, hamming_loss, gap).
    alpha : float
        Level of the tests.
    """

    scores: pd.DataFrame
    learned: Mapping[tuple[str, str], Mapping[str, np.ndarray]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    alpha: float = 0.05

    def runs(self, metric: str, methods: Iterable[str], datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return one row per (dataset, split) and one column per method.

        Parameters
        ----------
        metric : str
            Name of the metric.
        methods : iterable of str
            All must be there.
        datasets : iterable of str, optional
            Default: those with a value of the metric for any of the methods.

        Raises
        ------
        NotYet
            If a method or a dataset was not run.
        """
        wanted = list(methods)
        rows = self.scores[(self.scores["metric"] == metric) & self.scores["method"].isin(wanted)]
        absent = [method for method in wanted if method not in set(rows["method"])]
        if absent:
            raise NotYet(f"not run, or not measured by {metric}: {', '.join(absent)}")
        listed = list(datasets) if datasets is not None else list(dict.fromkeys(rows["dataset"]))
        rows = rows[rows["dataset"].isin(listed)]
        have = set(zip(rows["dataset"], rows["method"], strict=True))
        lacking = [f"{method} on {dataset}" for dataset in listed for method in wanted if (dataset, method) not in have]
        if lacking:
            raise NotYet(f"not run: {', '.join(lacking[:5])}" + (f" and {len(lacking) - 5} more" * (len(lacking) > 5)))
        table = rows.set_index(["dataset", "split", "method"])["value"].unstack()
        return table.reindex(columns=wanted).reindex(listed, level="dataset")

    def rows(self, metric: str, method: str, datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the rows of one metric and method, of the datasets named or of all it has.

        Raises
        ------
        NotYet
            If it was not run on one of them.
        """
        self.runs(metric, [method], datasets)
        found = self.scores[(self.scores["metric"] == metric) & (self.scores["method"] == method)]
        return found if datasets is None else found[found["dataset"].isin(list(datasets))]

    def means(self, metric: str, methods: Iterable[str], datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the means over splits, datasets x methods; NaN where a method did not finish. Raises as ``runs``."""
        runs = self.runs(metric, methods, datasets)
        order = list(dict.fromkeys(runs.index.get_level_values("dataset")))
        return runs.groupby(level="dataset").agg(exact_mean).reindex(order)

    def table(self, name: str, **chosen: Any) -> pd.DataFrame:
        """Return the rows of a further table whose columns have the chosen values.

        Raises
        ------
        NotYet
            If the table or such rows are not there.
        ClaimsError
            If it lacks a column.
        """
        if name not in self.tables:
            raise NotYet(f"{name}.csv is not among the study's results")
        rows = self.tables[name]
        for column, value in chosen.items():
            if column not in rows:
                raise ClaimsError(f"{name}.csv has no column {column!r}")
            rows = rows[rows[column].isin(value if isinstance(value, list | tuple) else [value])]
        if rows.empty:
            raise NotYet(f"{name}.csv has no rows with {', '.join(f'{k} {v}' for k, v in chosen.items())}")
        return rows

    def arrays(
        self, method: str, names: Sequence[str], datasets: Iterable[str] | None = None
    ) -> dict[str, list[np.ndarray]]:
        """Return, per dataset, the named arrays a method learned.

        Raises
        ------
        NotYet
            If there are none.
        """
        wanted = None if datasets is None else set(datasets)
        found = {
            dataset: [kept[name] for name in names]
            for (who, dataset), kept in self.learned.items()
            if who == method and (wanted is None or dataset in wanted) and all(name in kept for name in names)
        }
        if not found:
            raise NotYet(f"{method} kept no {', '.join(names)}")
        return found


def printed_evidence(cells: pd.DataFrame, alpha: float = 0.05) -> Evidence:
    """Return a paper's printed cells as evidence: what the checks say of the print itself.

    Parameters
    ----------
    cells : DataFrame
        From :func:`multilab.claims.published`; a cell without a number (DNF) counts as run and not finished.
    alpha : float
        Level of the tests.
    """
    rows = cells.rename(columns={"mean": "value"})[["dataset", "method", "metric", "value", "std"]].assign(split=0)
    return Evidence(rows.drop_duplicates(["dataset", "method", "metric"]), alpha=alpha)
