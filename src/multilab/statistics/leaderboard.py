"""The results of methods as one table, with comparisons on one dataset and over many.

Studies, `multilab compare` and the arena have one such table each. What differs between them is what a comparison is
paired over: the splits of one dataset (:meth:`Leaderboard.tests`, corrected for overlapping training sets), or data
sets (:meth:`Leaderboard.compare`, tests of ranks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from multilab.core.messages import unknown_name
from multilab.core.text import BETTER, latex, listed
from multilab.statistics.comparison import Comparison, compare_methods
from multilab.statistics.errors import StatisticsError
from multilab.statistics.ranks import pareto_front, rank_rows
from multilab.statistics.resampled_t import corrected_resampled_interval, corrected_resampled_p
from multilab.statistics.result_files import CELL
from multilab.statistics.signed_rank import holm, holm_levels
from multilab.statistics.summary import Summary, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS = ("fit_seconds", "predict_seconds")
"""Measurements that a table of scores may hold besides metrics."""

NAMED = 4
"""Sentences name at most this many methods or labels and count the others."""


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Results of methods on the splits of one or several datasets.

    Parameters
    ----------
    scores : DataFrame
        Columns dataset, split, method, metric, value; further columns are kept. A cell (dataset, split, method) with
        any row is finished; a value of NaN is a metric that is undefined there. ``fit_seconds`` and
        ``predict_seconds`` are metrics too.
    directions : dict of str to {"min", "max"}
        Direction of each metric; the first metric orders the tables. Other metrics of ``scores`` are ignored.
    datasets, methods : tuple of str, optional
        Datasets and methods in order; by default those of ``scores`` and ``unfinished`` in the order of their first
        row. A dataset without a score is included only if it is named.
    unfinished : DataFrame, optional
        Columns dataset, split, method, reason: cells without a result. Those that are in neither table are missing.
    alpha : float, default=0.05
        Level of the tests.
    test_to_train : float, optional
        Mean ratio of test rows to training rows, for tests over splits.
    decided : DataFrame, optional
        Columns method, label, observed, count, predicted: for each label, the number of test rows of all splits where
        it was observed, that have it, and that the method assigns it to.
    over_assigned : dict of str to sequence, optional
        The labels that a method assigns far too often, by method: see `multilab.metrics.over_assigned`.
    untuned : dict of str to str, optional
        For a method with tuned thresholds, the name of the same method with its own decisions.
    ranges : dict of str to (float, float), optional
        Smallest and largest value of a metric, which no interval of a mean exceeds.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.statistics import Leaderboard
    >>> columns = ["dataset", "split", "method", "metric", "value"]
    >>> means = {"a": (0.8, 0.7, 0.9), "b": (0.7, 0.6, 0.5), "c": (0.6, 0.8, 0.4)}
    >>> rows = [(f"set{i}", 0, m, "macro_f1", v) for m, values in means.items() for i, v in enumerate(values)]
    >>> board = Leaderboard(pd.DataFrame(rows, columns=columns), {"macro_f1": "max"})
    >>> board.compare("macro_f1").ranks["a"]
    1.3333333333333333
    >>> board.on("set0").table["macro_f1"].to_dict()
    {'a': 0.8, 'b': 0.7, 'c': 0.6}
    """

    scores: pd.DataFrame
    directions: Mapping[str, str]
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    unfinished: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*CELL, "reason"]))
    alpha: float = 0.05
    test_to_train: float | None = None
    decided: pd.DataFrame = field(default_factory=pd.DataFrame)
    over_assigned: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    untuned: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {
            "datasets": self.scores["dataset"],
            "methods": [*self.scores["method"].unique(), *self.unfinished["method"].unique()],
        }
        for name, values in known.items():
            names = getattr(self, name) or dict.fromkeys(values)
            object.__setattr__(self, name, tuple(map(str, names)))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics; the first one orders the tables."""
        return tuple(self.directions)

    @property
    def headline(self) -> str:
        """The first metric."""
        return self.metrics[0]

    def on(self, datasets: str | Sequence[str]) -> Leaderboard:
        """Return the results on some of the datasets, in their order.

        Raises
        ------
        StatisticsError
            If one is not there.
        """
        names = (datasets,) if isinstance(datasets, str) else tuple(datasets)
        for name in names:
            if name not in self.datasets:
                raise StatisticsError(unknown_name("dataset of these results", name, self.datasets))
        scores, unfinished = (each[each["dataset"].isin(names)] for each in (self.scores, self.unfinished))
        return replace(self, scores=scores, unfinished=unfinished, datasets=names)

    def only(self, splits: Mapping[str, Sequence[int]]) -> Leaderboard:
        """Return the results on some splits of each dataset; datasets that are not named keep all splits.

        Raises
        ------
        StatisticsError
            If there is no such dataset, or it has no such split.
        """
        for name, numbers in splits.items():
            if name not in self.datasets:
                raise StatisticsError(unknown_name("dataset of these results", name, self.datasets))
            if absent := set(numbers) - set(self.splits_of[name]):
                there = ", ".join(map(str, self.splits_of[name]))
                raise StatisticsError(f"{name} has no split {min(absent)}; there are {there}")
        kept = pd.MultiIndex.from_tuples(
            [(name, number) for name in self.datasets for number in splits.get(name, self.splits_of[name])]
        )
        tables = [
            each[pd.MultiIndex.from_frame(each[["dataset", "split"]]).isin(kept)] if len(each) else each
            for each in (self.scores, self.unfinished)
        ]
        return replace(self, scores=tables[0], unfinished=tables[1])

    # over datasets

    def summary(self, metric: str) -> Summary:
        """Return mean and standard deviation of a metric over the splits of each dataset and method.

        A split on which the metric is undefined for all methods is left out, see :func:`summarise`.
        """
        return summarise(self.scores, metric, self.datasets, self.methods)

    def compare(
        self, metric: str, control: str | None = None, *, rope: float | None = None, seed: int = 0
    ) -> Comparison:
        """Return the methods compared over the datasets by their means, see :func:`compare_methods`."""
        means, direction = self.summary(metric).mean, self.directions[metric]
        return compare_methods(means, direction, self.alpha, control, metric=metric, rope=rope, seed=seed)

    # as arrays, for ranks by several metrics at once

    @cached_property
    def splits_of(self) -> dict[str, tuple[int, ...]]:
        """Numbers of the splits of each dataset, finished or not."""
        both = pd.concat([each[["dataset", "split"]] for each in (self.scores, self.unfinished)]).drop_duplicates()
        numbers = {str(name): tuple(sorted(map(int, each))) for name, each in both.groupby("dataset")["split"]}
        return {name: numbers.get(name, ()) for name in self.datasets}

    @cached_property
    def values_of(self) -> dict[str, np.ndarray]:
        """By dataset the values, of shape (n_metrics, n_splits, n_methods); NaN where there is none."""
        return {name: values for name, (values, _) in self._arrays.items()}

    @cached_property
    def finished(self) -> dict[str, np.ndarray]:
        """By dataset which cells have a result, of shape (n_splits, n_methods)."""
        return {name: finished for name, (_, finished) in self._arrays.items()}

    @cached_property
    def _arrays(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        groups, arrays = dict(iter(self.scores.groupby("dataset", sort=False))), {}
        for name in self.datasets:
            numbers = self.splits_of[name]
            values = np.full((len(self.metrics), len(numbers), len(self.methods)), np.nan)
            finished = np.zeros(values.shape[1:], dtype=bool)
            if (rows := groups.get(name)) is not None:
                axes = ((self.metrics, "metric"), (numbers, "split"), (self.methods, "method"))
                at = np.stack([pd.Index(names).get_indexer(rows[column]) for names, column in axes])
                cells = at[:, (at[2] >= 0)]
                finished[tuple(cells[1:])] = True
                known = (at >= 0).all(axis=0)
                values[tuple(at[:, known])] = rows["value"].to_numpy(dtype=float)[known]
            arrays[name] = values, finished
        return arrays

    @cached_property
    def incomplete(self) -> np.ndarray:
        """Whether a method lacks a split of a dataset, of shape (n_datasets, n_methods)."""
        lacking = [~self.finished[name].all(axis=0) | (not self.splits_of[name]) for name in self.datasets]
        return np.array(lacking, dtype=bool).reshape(len(self.datasets), len(self.methods))

    @cached_property
    def undefined(self) -> np.ndarray:
        """Whether a metric does not count on a dataset, of shape (n_metrics, n_datasets).

        It does not count where a finished cell has no value of it, or where no method finished all splits.
        """
        empty = np.asarray(self.incomplete.all(axis=1))
        gaps = [
            (np.isnan(self.values_of[name]) & self.finished[name]).any(axis=(1, 2)) | empty[at]
            for at, name in enumerate(self.datasets)
        ]
        return np.array(gaps, dtype=bool).reshape(len(self.datasets), len(self.metrics)).T

    @cached_property
    def values(self) -> np.ndarray:
        """Means over the splits, of shape (n_metrics, n_datasets, n_methods).

        NaN where the metric is undefined on the dataset or the method is incomplete.
        """
        values = np.full((len(self.metrics), *self.incomplete.shape), np.nan)
        for at, name in enumerate(self.datasets):
            absent = self.undefined[:, at, None] | self.incomplete[at]
            if not absent.all():
                values[:, at] = np.where(absent, np.nan, self.values_of[name].mean(axis=1))
        return values

    def means(self, metric: str) -> pd.DataFrame:
        """Return :attr:`values` of one metric, datasets x methods, without the datasets on which it is undefined.

        Raises
        ------
        StatisticsError
            If the metric was not computed.
        """
        if metric not in self.metrics:
            raise StatisticsError(f"{metric} was not computed; there are {', '.join(self.metrics)}")
        at = self.metrics.index(metric)
        table = pd.DataFrame(self.values[at], index=list(self.datasets), columns=list(self.methods))
        return table[~self.undefined[at]]

    @classmethod
    def of_means(
        cls, values: np.ndarray, directions: Mapping[str, str], datasets: Sequence[str], methods: Sequence[str]
    ) -> Leaderboard:
        """Return the leaderboard of means, each the result of a split 0.

        Parameters
        ----------
        values : ndarray of shape (n_metrics, n_datasets, n_methods)
            A method without any value on a dataset is incomplete there; otherwise NaN is an undefined metric.
        directions, datasets, methods
            The axes of ``values``.
        """
        there = np.broadcast_to(~np.isnan(values).all(axis=0), values.shape)
        at = np.nonzero(there)
        axes = {"metric": tuple(directions), "dataset": tuple(datasets), "method": tuple(methods)}
        names = {
            name: np.array(each, dtype=object)[index] for (name, each), index in zip(axes.items(), at, strict=True)
        }
        scores = pd.DataFrame({**names, "split": 0, "value": values[at]})[[*CELL, "metric", "value"]]
        return cls(scores, directions, tuple(datasets), tuple(methods))

    # over the splits of one dataset

    @property
    def n_splits(self) -> int:
        """Number of splits, over all datasets."""
        return sum(len(numbers) for numbers in self.splits_of.values())

    @cached_property
    def failures(self) -> dict[str, str]:
        """Reasons why methods lack a split: the first one in ``unfinished``, else ``missing``."""
        reasons = dict(self.unfinished.drop_duplicates("method")[["method", "reason"]].itertuples(index=False))
        lacking = [self.methods[at] for at in np.flatnonzero(self.incomplete.any(axis=0))]
        return {name: str(reasons.get(name, "missing")) for name in lacking}

    def splits(self, metric: str) -> pd.DataFrame:
        """Return the values of one metric, one row per split, one column per method that finished all splits.

        Raises
        ------
        StatisticsError
            If the metric was not measured, or there are several datasets: choose one by :meth:`on`.
        """
        if metric not in (*self.metrics, *SECONDS):
            raise StatisticsError(f"{metric!r} was not measured; there are {', '.join((*self.metrics, *SECONDS))}")
        if len(self.datasets) > 1:
            raise StatisticsError(f"these are results on {len(self.datasets)} datasets; choose one with on(NAME)")
        rows = self.scores[self.scores["metric"] == metric]
        table = rows.pivot(index="split", columns="method", values="value")
        return table[[name for name in self.methods if name in table and name not in self.failures]]

    @property
    def table(self) -> pd.DataFrame:
        """Mean over the splits: one row per method, the best by the first metric first; seconds are means too."""
        means = pd.DataFrame({name: self.splits(name).mean(skipna=False) for name in (*self.metrics, *SECONDS)})
        return means.sort_values(self.headline, ascending=self.directions[self.headline] == "min", kind="stable")

    @property
    def ranks(self) -> pd.DataFrame:
        """Rank within each split, averaged over the splits: one row per method, in the order of `table`."""
        ranks = {
            name: rank_rows(self.splits(name), direction).mean()
            for name, direction in self.directions.items()
            if not self.splits(name).isna().to_numpy().any()
        }
        return pd.DataFrame(ranks).reindex(self.table.index)

    def tests(self, metric: str | None = None, reference: str | None = None) -> pd.DataFrame:
        """Compare one method with each other one by the corrected resampled t test, with Holm's correction.

        Parameters
        ----------
        metric : str, optional
            The first one by default.
        reference : str, optional
            The method to compare with the others; by default the one with the best mean.

        Returns
        -------
        DataFrame
            Indexed by method, best first: ``advantage``, the mean by which the reference is better, ``low`` and
            ``high``, ``p``, ``p_holm`` and ``differs``. The interval is at the level at which Holm's procedure tests
            that method (see `multilab.statistics.holm_levels`), so that it excludes 0 exactly if the methods differ.
            Empty with a single split, from which nothing follows.
        """
        metric = metric or self.headline
        values = self.splits(metric).dropna(axis=1)
        columns = ["advantage", "low", "high", "p", "p_holm", "differs"]
        if self.n_splits < 2 or values.shape[1] < 2 or (reference is not None and reference not in values):
            return pd.DataFrame(columns=columns)
        sign, ratio = self._sign(metric), self._ratio
        means = (sign * values.mean()).sort_values(ascending=False, kind="stable")
        reference = str(means.index[0]) if reference is None else reference
        gains = {other: sign * (values[reference] - values[other]) for other in means.index.drop(reference)}
        p = [corrected_resampled_p(gain, ratio) for gain in gains.values()]
        adjusted, levels = holm(p), holm_levels(p, self.alpha)
        rows = [
            (*corrected_resampled_interval(gain, ratio, 1 - level), one, after, after <= self.alpha)
            for gain, one, after, level in zip(gains.values(), p, adjusted, levels, strict=True)
        ]
        return pd.DataFrame(rows, columns=columns, index=list(gains)).rename_axis(f"{reference} against")

    def intervals(self, metric: str | None = None, level: float = 0.95) -> pd.DataFrame:
        """Return the mean of a metric with its confidence interval, by the variance of the corrected resampled t test.

        Parameters
        ----------
        metric : str, optional
            The first one by default; seconds are possible.
        level : float, default=0.95

        Returns
        -------
        DataFrame
            Indexed by method, in the order of `table`: ``mean``, ``low``, ``high``; NaN ends with a single split. The
            intervals of two methods may overlap although the test finds a difference, since the splits are paired.
        """
        metric = metric or self.headline
        values = self.splits(metric).reindex(columns=self.table.index)
        bounds = self.ranges.get(metric, (-np.inf, np.inf))
        rows = {name: self._interval(values[name], level, bounds) for name in values}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "low", "high"])

    def difference(self, first: str, second: str, metric: str | None = None, level: float = 0.95) -> pd.Series:
        """Return the paired difference between two methods with its interval.

        Parameters
        ----------
        first, second : str
            Methods with values on all splits.
        metric : str, optional
            The first one by default.
        level : float, default=0.95

        Returns
        -------
        Series
            ``mean``, ``low``, ``high``, positive where the first is better; ``p`` without correction for several
            tests; ``wins``, the number of splits on which the first is better.
        """
        metric = metric or self.headline
        values = self.splits(metric)
        gains = self._sign(metric) * (values[first] - values[second])
        mean, low, high = self._interval(gains, level)
        p = corrected_resampled_p(gains, self._ratio) if self.n_splits > 1 else float("nan")
        return pd.Series({"mean": mean, "low": low, "high": high, "p": p, "wins": int((gains > 0).sum())})

    def _interval(
        self, values: pd.Series, level: float, bounds: tuple[float, float] = (-np.inf, np.inf)
    ) -> tuple[float, float, float]:
        if self.n_splits < 2 or values.isna().any():
            return float(values.mean(skipna=False)), float("nan"), float("nan")
        return corrected_resampled_interval(values, self._ratio, level, bounds)

    @property
    def _ratio(self) -> float:
        if self.test_to_train is None:
            raise StatisticsError("tests over splits need test_to_train, the ratio of test rows to training rows")
        return self.test_to_train

    def _sign(self, metric: str) -> int:
        return 1 if self.directions.get(metric, "min") == "max" else -1

    @property
    def seconds(self) -> pd.Series:
        """Mean seconds of a fit with its prediction, by method, in the order of `table`."""
        table = self.table
        return table["fit_seconds"] + table["predict_seconds"]

    @property
    def pareto(self) -> tuple[str, ...]:
        """Methods on the Pareto front of the first metric and time, the fastest first."""
        quality = self._sign(self.headline) * self.table[self.headline]
        return pareto_front(quality.to_dict(), self.seconds.to_dict())

    @property
    def best(self) -> tuple[str, ...]:
        """The method with the best mean of the first metric, then those that the test does not separate from it."""
        tests = self.tests()
        return (str(self.table.index[0]), *(str(name) for name in tests.index[~tests["differs"].astype(bool)]))

    # as text

    def finding(self) -> str:
        """Return the finding on the one dataset in a sentence or two."""
        if not len(self.table):
            return "No method finished."
        first, *level = self.best
        ordered_by = f"{self.headline} ({BETTER[self.directions[self.headline]]})"
        text = f"{first} has the best {ordered_by} over {self.n_splits} splits."
        if self.n_splits < 2:
            return f"{text} One split shows no difference."
        others = len(self.table) - 1
        if level:
            fastest = self.table.loc[[first, *level], "fit_seconds"].idxmin()
            text += (
                f" Not significantly worse at {self.alpha:g}, {len(level)} of {others}: {listed(level, NAMED)}; the "
                f"fastest of all these is {fastest}."
            )
        elif others:
            text += f" Every other method is significantly worse at {self.alpha:g}."
        return text

    def to_latex(self, digits: int = 4) -> str:
        """Return `table` as LaTeX, the best value of each metric in bold."""
        texts = self._formatted(digits, "\\textbf{{{}}}", latex)
        return texts.rename(columns=latex).to_latex()

    def plot(self, metric: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw one metric by method, with a dot for each split and a bar for the mean; needs matplotlib.

        Parameters
        ----------
        metric : str, optional
            The first one by default.
        ax : matplotlib Axes, optional
            By default the axes of a new figure.
        """
        import matplotlib.pyplot as plt  # of the extra `lab`

        metric = metric or self.headline
        values = self.splits(metric)[self.table.index[::-1]]
        if ax is None:
            ax = plt.subplots(figsize=(6, 0.8 + 0.35 * values.shape[1]), layout="constrained")[1]
        for height, name in enumerate(values.columns):
            ax.plot(values[name], [height] * len(values), "o", color="0.6", markersize=4)
            ax.plot([values[name].mean()], [height], "|", color="black", markersize=14, markeredgewidth=2)
        ax.set_yticks(range(values.shape[1]), list(values.columns))
        better = BETTER[self.directions.get(metric, "min")]
        ax.set_xlabel(f"{metric} ({better}), each split and the mean")
        return ax

    def _formatted(self, digits: int, bold: str, protect: Any = str) -> pd.DataFrame:
        table = self.table
        texts = table.map(lambda value: f"{value:.{digits}f}" if value == value else "–")
        for metric, direction in self.directions.items():
            best = table[metric].min() if direction == "min" else table[metric].max()
            texts[metric] = [
                bold.format(text) if value == best else text
                for value, text in zip(table[metric], texts[metric], strict=True)
            ]
        return texts.rename(index=protect).rename_axis(None)

    def _notes(self) -> list[str]:
        notes = [self.finding()]
        if flagged := self.over_assigned:
            first, labels = next(iter(flagged.items()))
            notes.append(f"{first} assigns labels far too often: {listed([*map(str, labels)], NAMED)}.")
            if len(flagged) > 1:
                notes[-1] += f" Other methods that do so: {listed(list(flagged)[1:], NAMED)}."
        return notes + [f"{name} failed: {reason}" for name, reason in self.failures.items()]

    def __repr__(self) -> str:
        if len(self.datasets) > 1:
            counts = (len(self.datasets), "datasets"), (len(self.methods), "methods"), (len(self.metrics), "metrics")
            return f"Leaderboard({', '.join(f'{count} {what}' for count, what in counts)})"
        return "\n".join([self._formatted(4, "{}").to_string(), *self._notes()])

    def _repr_html_(self) -> str:
        if len(self.datasets) > 1:
            return f"<p>{escape(repr(self))}</p>"
        table = self._formatted(4, "<b>{}</b>", lambda name: escape(str(name))).to_html(escape=False, border=0)
        return table + "".join(f"<p>{escape(note)}</p>" for note in self._notes())
