"""What a check is: a function of evidence (results of a study, or published cells) that returns a finding."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pandas as pd

from multilab.claims.errors import ClaimsError, NotYet
from multilab.metrics import find_metric
from multilab.statistics import rank_rows
from multilab.statistics.summary import exact_mean

if TYPE_CHECKING:
    import numpy as np

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


@dataclass(frozen=True)
class Finding:
    """Outcome of a check.

    Attributes
    ----------
    outcome : {"holds", "holds in part", "fails", "not testable"}
        "not testable": results are missing, or they cannot decide.
    numbers : dict
        What the outcome depends on.
    reason : str
        Why it is not testable.
    share : tuple of int, optional
        How many parts of the statement hold, of how many.
    """

    outcome: str
    numbers: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    share: tuple[int, int] | None = None

    @classmethod
    def of(cls, holds: bool | Iterable[bool], numbers: Mapping[str, Any]) -> Finding:
        """Return a finding that holds or fails; given its parts (per metric, say), it may hold in part.

        Without a part it is not testable.
        """
        if isinstance(holds, Iterable):
            parts = [bool(part) for part in holds]
            if not parts:
                return cls("not testable", dict(numbers), "there is nothing to check")
            share = sum(parts), len(parts)
            return cls(_outcome(*share), dict(numbers), share=share if len(parts) > 1 else None)
        return cls("holds" if holds else "fails", dict(numbers))


def _outcome(kept: int, parts: int) -> str:
    return "holds" if kept == parts else "holds in part" if kept else "fails"


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
    """

    scores: pd.DataFrame
    learned: Mapping[tuple[str, str], Mapping[str, np.ndarray]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    alpha: float = 0.05
    published: pd.DataFrame | None = None

    def runs(self, metric: str, methods: Iterable[str], datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return one row per (dataset, split) and one column per method.

        Splits that one of the methods was not run on are left out, so that means are of the same splits.

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
        rows = rows[rows.groupby(["dataset", "split"])["method"].transform("nunique") == len(set(wanted))]
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

    def ranks(self, metric: str, methods: Iterable[str], datasets: Iterable[str] | None = None) -> pd.DataFrame:
        """Return the ranks of the methods on each dataset; 1 is the best."""
        return rank_rows(self.means(metric, methods, datasets), direction_of(metric))

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
    return Evidence(rows.drop_duplicates(["dataset", "method", "metric"]), alpha=alpha, published=cells)


_DEFAULTS = {
    "datasets": "all datasets with results",
    "against": "every other one",
    "alpha": "the study's level",
    "at_least": "0",
    "at_most": "infinity",
    "low": "minus infinity",
    "high": "infinity",
}


@dataclass(frozen=True)
class Check:
    """A check.

    Attributes
    ----------
    function : callable
        ``function(evidence, **arguments) -> Finding``.
    sentence : str
        What the check requires, with the names of its arguments and of ``parts`` in braces.
    parts : mapping of str to callable
        Parts of the sentence that depend on the values of arguments: functions of all arguments.
    """

    function: Callable[..., Finding]
    sentence: str
    parts: Mapping[str, Callable[[Mapping[str, Any]], str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the check: that of its function."""
        return self.function.__name__

    def bind(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that the check does not take.

        Raises
        ------
        ClaimsError
        """
        try:
            inspect.signature(self.function).bind(None, **arguments)
        except TypeError as error:
            raise ClaimsError(f"check {self.name}: {error}") from None

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """Return the sentence with these arguments."""
        parameters = inspect.signature(self.function).parameters
        values = {name: parameter.default for name, parameter in parameters.items()} | dict(arguments)
        texts = {name: text_of(value, name) for name, value in values.items()}
        return self.sentence.format_map({**texts, **{name: part(values) for name, part in self.parts.items()}})


def check(sentence: str, **parts: Callable[[Mapping[str, Any]], str]) -> Callable[[Callable[..., Finding]], Check]:
    """Make a check of a function; ``sentence`` says what it requires, see :class:`Check`."""
    return lambda function: Check(function, sentence, parts)


def checks_in(module: ModuleType) -> dict[str, Check]:
    """Return the checks that a module defines, by name."""
    return {value.name: value for value in vars(module).values() if isinstance(value, Check)}


def text_of(value: Any, name: str = "") -> str:
    """Return an argument of a check as text; ``name`` is its name."""
    if value is None:
        return _DEFAULTS.get(name, "")
    if isinstance(value, Mapping) and name == "metrics":
        return ", ".join(f"{key} (our {text_of(one, name)})" for key, one in value.items())
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text_of(one)}" for key, one in value.items())
    if name == "best" and not isinstance(value, str) and len(value) > 1:
        return f"the best of {text_of(value)}"
    if isinstance(value, list | tuple):
        return ", ".join(text_of(one, name) for one in value)
    if name in ("metric", "metrics"):
        known = find_metric(value)
        return known.title if known else str(value).replace("_", " ")
    return f"{value:g}" if isinstance(value, float) else str(value)
