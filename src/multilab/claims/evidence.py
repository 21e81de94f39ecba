"""Evidence and findings: a check is a function of evidence (results or published cells) that returns a finding."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isfunction, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pandas as pd

from multilab.claims.errors import ClaimsError, NotYet
from multilab.core.text import first_few
from multilab.metrics import find_metric
from multilab.statistics import rank_rows
from multilab.statistics.result_files import method_of_column
from multilab.statistics.summary import exact_mean

if TYPE_CHECKING:
    import numpy as np

TIE = 1e-12
"""Values that differ by less are equal: processors differ in the last bits."""

_PRINTED_DIRECTIONS = {"accuracy": "max"}


def direction_of(metric: str) -> str:
    """Return "min" or "max" for one of our metrics, with or without a preset, or one that a paper prints.

    Raises
    ------
    ClaimsError
        If the direction is not known.
    """
    name = metric.partition(".")[0]
    if known := find_metric(name):
        return known.direction
    if name in _PRINTED_DIRECTIONS:
        return _PRINTED_DIRECTIONS[name]
    raise ClaimsError(f"nothing says whether small or large values of {metric!r} are good")


def sign_of(metric: str) -> int:
    """Return 1 if large values of a metric are good, else -1."""
    return 1 if direction_of(metric) == "max" else -1


OUTCOMES = (
    "holds",
    "holds in part",
    "fails",
    "depends on the reading",
    "depends on the limit",
    "open",
    "not testable",
)
"""Outcomes of a check, see ``docs/decisions/0026-rules-of-judging.md``."""


@dataclass(frozen=True)
class Missing:
    """Results that would decide an open claim: ``splits`` more of a column on a dataset, or of a table."""

    column: str
    dataset: str
    splits: int
    seconds: float | None = None
    """Estimated processor seconds of one split; None if nothing like it was run."""


@dataclass(frozen=True)
class Finding:
    """Outcome of a check.

    Attributes
    ----------
    outcome : str
        One of :data:`OUTCOMES`.
    numbers : dict
        What the outcome depends on.
    reason : str
        Why it is open or not testable.
    share : tuple of int, optional
        How many parts of the statement hold, of how many.
    sentence : str
        What was required, of what: built by the check with its arguments.
    holds_for : str
        The limits for which the statement holds, where the paper gives none: "factors of 2.574 and more".
    so_far : str
        What an open check comes to on the results there are.
    missing : tuple of Missing
        What would decide an open check.
    """

    outcome: str
    numbers: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    share: tuple[int, int] | None = None
    sentence: str = ""
    holds_for: str = ""
    so_far: str = ""
    missing: tuple[Missing, ...] = ()

    @classmethod
    def of(cls, holds: bool | Iterable[bool], numbers: Mapping[str, Any], sentence: str = "") -> Finding:
        """Return a finding that holds or fails; given its parts (per metric, say), it may hold in part.

        Without a part it is not testable.

        Examples
        --------
        >>> from multilab.claims.evidence import Finding
        >>> Finding.of([True, False], {"won": 1}, "Wins on both sets.").outcome
        'holds in part'
        """
        if isinstance(holds, Iterable):
            parts = [bool(part) for part in holds]
            if not parts:
                return cls("not testable", dict(numbers), "there is nothing to check", sentence=sentence)
            kept = sum(parts), len(parts)
            share = kept if len(parts) > 1 else None
            return cls(_outcome(*kept), dict(numbers), share=share, sentence=sentence)
        return cls("holds" if holds else "fails", dict(numbers), sentence=sentence)

    @classmethod
    def at_most(
        cls,
        values: Mapping[str, float],
        limit: float | None,
        numbers: Mapping[str, Any],
        sentence: str = "",
        of: str = "limits",
    ) -> Finding:
        """Return whether all values are at most a limit; without one, for which limits they are.

        ``limit`` is a number of the paper's sentence or tables. Where it gives none, pass None: a number of our own
        would be one that our result passes or fails by choice.

        Examples
        --------
        >>> from multilab.claims.evidence import Finding
        >>> Finding.at_most({"slashdot": 2.5736, "reuters": 2.1}, None, {}, of="factors").holds_for
        'factors of 2.574 and more'
        """
        return cls._limited(values, limit, numbers, sentence, of, 1)

    @classmethod
    def at_least(
        cls,
        values: Mapping[str, float],
        limit: float | None,
        numbers: Mapping[str, Any],
        sentence: str = "",
        of: str = "limits",
    ) -> Finding:
        """Return whether all values are at least a limit; without one, for which limits they are, see ``at_most``."""
        return cls._limited(values, limit, numbers, sentence, of, -1)

    @classmethod
    def _limited(
        cls,
        values: Mapping[str, float],
        limit: float | None,
        numbers: Mapping[str, Any],
        sentence: str,
        of: str,
        sign: int,
    ) -> Finding:
        signed = [sign * float(value) for value in values.values()]
        if limit is not None:
            return cls.of([value <= sign * limit for value in signed], numbers, sentence)
        if not signed or any(math.isnan(value) for value in signed):
            return cls("not testable", dict(numbers), "there is no value to compare", sentence=sentence)
        bound = f"{sign * _rounded_up(max(signed)):.10g} and {'more' if sign > 0 else 'less'}"
        return cls("depends on the limit", dict(numbers), sentence=sentence, holds_for=f"{of} of {bound}")


def _outcome(kept: int, parts: int) -> str:
    return "holds" if kept == parts else "holds in part" if kept else "fails"


def _rounded_up(value: float) -> float:
    """Return the next larger number of four significant digits, so that what is said of the limit is true."""
    if value == 0 or math.isinf(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return math.ceil(round(value / unit, 6)) * unit


@dataclass(frozen=True, eq=False)
class Evidence:
    """Results that a check may use.

    Attributes
    ----------
    scores : DataFrame
        Columns dataset, split, method, metric, value; for our results ``key``, for published cells ``table``, ``std``
        and ``printed``, the number as text. Costs are metrics too.
    learned : mapping of (method, dataset) to mapping of name to array
        Fitted attributes on the first split.
    tables : mapping of str to DataFrame
        Further tables of the study by name: ``sensitivity`` (method, dataset, one column per parameter, metric, value),
        ``convergence`` (method, dataset, iteration, gap), ``affinity`` (method, dataset, beta, correlation),
        ``sweeps`` (method, dataset, sweep, hamming_loss, gap).
    alpha : float
        Level of the tests.
    published : DataFrame, optional
        The published cells of the paper, see :func:`~multilab.claims.published.read_cells`, for checks that compare
        with them.
    splits : mapping of str to int, optional
        How many splits the paper has: by name of a metric, a dataset or a table, else ``default``. A check that uses
        fewer is open. None for published cells, to which nothing can be added.
    table_splits : mapping of str to int
        How many splits the rows of a table are of.
    all_datasets : bool
        Whether a check that names no datasets is about all that any column has results of, so that a column with fewer
        makes it open; otherwise it is about those of the columns it names.
    missing : list of Missing
        What checks found missing; they add to it.
    """

    scores: pd.DataFrame
    learned: Mapping[tuple[str, str], Mapping[str, np.ndarray]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    alpha: float = 0.05
    published: pd.DataFrame | None = None
    splits: Mapping[str, int] | None = field(default_factory=dict)
    table_splits: Mapping[str, int] = field(default_factory=dict)
    all_datasets: bool = False
    missing: list[Missing] = field(default_factory=list)

    @functools.cached_property
    def _by_metric(self) -> dict[str, pd.DataFrame]:
        return {str(name): rows for name, rows in self.scores.groupby("metric", sort=False)}

    @functools.cached_property
    def _pivots(self) -> dict[str, tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]]:
        return {}

    def _of_metric(self, metric: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Return the rows of a metric, their values by (dataset, split) and column, and which of these there are."""
        if metric not in self._pivots:
            rows = self._by_metric.get(metric, self.scores.iloc[:0])
            table = rows.set_index(["dataset", "split", "method"])["value"]
            present = pd.Series(True, index=table.index, dtype=bool).unstack(fill_value=False)
            self._pivots[metric] = rows, table.unstack(), present
        return self._pivots[metric]

    @functools.cached_property
    def _seconds(self) -> dict[tuple[str, str], float]:
        """Mean processor seconds of a split, by column and dataset."""
        rows = self._by_metric.get("total_seconds")
        return {} if rows is None else rows.groupby(["method", "dataset"])["value"].mean().to_dict()

    def _lacks(self, column: str, dataset: str, splits: int) -> None:
        """Note that a column lacks splits; of one that was not run, the cost is that of its method elsewhere."""
        seconds = self._seconds.get((column, dataset))
        if seconds is None:
            method = method_of_column(column)
            of_method = [
                own for (name, at), own in self._seconds.items() if at == dataset and method_of_column(name) == method
            ]
            seconds = max(of_method, default=None)
        self.missing.append(Missing(column, dataset, splits, seconds))

    def _needed(self, *names: str) -> int:
        known = self.splits or {}
        return next((known[name] for name in (*names, "default") if name in known), 0)

    def runs(self, metric: str, methods: Iterable[str], datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return one row per (dataset, split) and one column per method.

        Splits that one of the methods was not run on are left out, so that means are of the same splits.

        Parameters
        ----------
        metric : str
            Name of the metric.
        methods : iterable of str
            All must be there. One that is named twice, as a program has one column for two methods, is one column.
        datasets : iterable of str, optional
            Default: those with a value of the metric for any of the methods, see ``all_datasets``.

        Raises
        ------
        NotYet
            If a method or a dataset was not run.
        """
        wanted = list(dict.fromkeys(methods))
        rows, values, present = self._of_metric(metric)
        of_them = rows["dataset"] if self.all_datasets else rows.loc[rows["method"].isin(wanted), "dataset"]
        listed = list(dict.fromkeys(of_them)) if datasets is None else list(datasets)
        shown = present.reindex(columns=wanted, fill_value=False)
        have = shown.groupby(level="dataset").sum().reindex(listed, fill_value=0)
        for dataset, counts in zip(listed, have.to_numpy(), strict=True):
            for method, own in zip(shown.columns, counts, strict=True):
                needed = self._needed(metric, dataset) or (0 if own else max(1, *counts))
                if self.splits is not None and own < needed:
                    self._lacks(method, dataset, int(needed - own))
        absent = [method for method in wanted if method not in present.columns]
        if absent:
            raise NotYet(f"not run, or not measured by {metric}: {', '.join(absent)}")
        lacks = [f"{method} on {dataset}" for dataset in listed for method in wanted if not have.at[dataset, method]]
        if lacks:
            raise NotYet(f"not run: {first_few(lacks, 5)}")
        return values.loc[shown.all(axis=1), wanted].reindex(listed, level="dataset")

    def rows(self, metric: str, method: str, datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the rows of one metric and method, of the datasets named or of all it has.

        Raises
        ------
        NotYet
            If it was not run on one of them.
        """
        self.runs(metric, [method], datasets)
        rows = self.scores[(self.scores["metric"] == metric) & (self.scores["method"] == method)]
        return rows if datasets is None else rows[rows["dataset"].isin(list(datasets))]

    def means(self, metric: str, methods: Iterable[str], datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the means over splits, datasets x methods; NaN where a method did not finish. Raises as ``runs``."""
        runs = self.runs(metric, methods, datasets)
        order = list(dict.fromkeys(runs.index.get_level_values("dataset")))
        return runs.groupby(level="dataset").agg(exact_mean).reindex(order)

    def gain(self, metric: str, method: str, other: str, datasets: Iterable[str] | None = None) -> pd.Series:
        """Return by how much a method's mean is better than another's, per dataset; positive is better."""
        table = self.means(metric, [method, other], datasets)
        return (table[method] - table[other]) * sign_of(metric)

    def won_and_lost(
        self, metrics: Iterable[str], method: str, other: str, datasets: Iterable[str] | None = None
    ) -> tuple[int, int, int]:
        """Return in how many cells (datasets x metrics) a method is better and worse than another, and of how many.

        Ties and cells without a value on either side count for neither.
        """
        gains = pd.concat([self.gain(metric, method, other, datasets) for metric in metrics])
        return int((gains > TIE).sum()), int((gains < -TIE).sum()), len(gains)

    def ranks(self, metric: str, methods: Iterable[str], datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the ranks of the methods on each dataset; 1 is the best."""
        return rank_rows(self.means(metric, methods, datasets), direction_of(metric))

    def places(
        self, metrics: Iterable[str], method: str, methods: Sequence[str], datasets: Iterable[str] | None = None
    ) -> pd.DataFrame:
        """Return the place of a method among others in each cell (datasets x metrics), and whether it is alone first.

        Of equal values all have the better place.
        """
        cells = []
        for metric in metrics:
            table = self.means(metric, methods, datasets)
            places = table.rank(axis=1, method="min", ascending=direction_of(metric) == "min")
            alone = (places[method] == 1) & ((places == 1).sum(axis=1) == 1)
            cells.append(pd.DataFrame({"place": places[method], "alone": alone}))
        return pd.concat(cells)

    def printed(self, method: str, metric: str, datasets: Iterable[str]) -> pd.DataFrame:
        """Return the published cells of one method and metric, by dataset and in its order.

        Raises
        ------
        NotYet
            If the paper has no number for one of them.
        """
        listed = list(datasets)
        if self.published is None:
            raise NotYet("published cells are not part of this evidence")
        cells = self.published.dropna(subset="mean")
        cells = cells[(cells["method"] == method) & (cells["metric"] == metric)].drop_duplicates("dataset")
        cells = cells.set_index("dataset")
        lacking = [dataset for dataset in listed if dataset not in cells.index]
        if lacking:
            raise NotYet(f"not printed: {metric} of {method} on {', '.join(lacking)}")
        return cells.loc[listed]

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
        have = self.table_splits.get(name)
        needed = (self.splits or {}).get(name, 0)
        if have is not None and have < needed:
            self.missing.append(Missing(f"{name}.csv", "each dataset", needed - have))
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
        arrays = {
            dataset: [kept[name] for name in names]
            for (who, dataset), kept in self.learned.items()
            if who == method and (wanted is None or dataset in wanted) and all(name in kept for name in names)
        }
        if not arrays:
            raise NotYet(f"{method} kept no {', '.join(names)}")
        return arrays


def published_evidence(cells: pd.DataFrame, alpha: float = 0.05) -> Evidence:
    """Return the published cells of a paper as evidence, to check its claims on its own numbers.

    Parameters
    ----------
    cells : DataFrame
        Cells of :class:`~multilab.claims.published.PublishedTables`; one without a number (DNF) did not finish.
    alpha : float
        Level of the tests.
    """
    named = cells.rename(columns={"mean": "value", "printed_mean": "printed"})
    rows = named[["table", "dataset", "method", "metric", "value", "std", "printed"]].assign(split=0)
    rows = rows.drop_duplicates(["dataset", "method", "metric"])
    return Evidence(rows, alpha=alpha, published=cells, splits=None)


Check = Callable[..., Finding]
"""A check: ``function(evidence, **arguments) -> Finding``, whose sentence says what it requires."""


def checks_in(module: ModuleType) -> dict[str, Check]:
    """Return the checks that a module defines, by name: its public functions whose first parameter is ``evidence``."""
    own = {name: value for name, value in vars(module).items() if not name.startswith("_") and isfunction(value)}
    return {
        name: function
        for name, function in own.items()
        if function.__module__ == module.__name__ and next(iter(signature(function).parameters), "") == "evidence"
    }


def words(value: Any, none: str = "all datasets") -> str:
    """Return an argument as part of a sentence: metrics by their titles, lists and mappings with commas.

    Examples
    --------
    >>> from multilab.claims.evidence import words
    >>> words(["micro_f1", "jaccard"]), words(None), words({"emotions": 0.5})
    ('Micro F1, Jaccard', 'all datasets', 'emotions 0.5')
    """
    if value is None:
        return none
    if isinstance(value, Mapping):
        return ", ".join(f"{words(key)} {words(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(words, value))
    if isinstance(value, str):
        known = find_metric(value)
        return known.title if known else value
    return f"{value:g}" if isinstance(value, float) else str(value)
