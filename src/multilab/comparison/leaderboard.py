"""What a comparison of estimators on one dataset found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from multilab.core.errors import MultilabError
from multilab.core.text import listed
from multilab.metrics import OverAssigned, over_assigned
from multilab.statistics import (
    corrected_resampled_interval,
    corrected_resampled_p,
    holm,
    holm_levels,
    pareto_front,
    rank_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SECONDS = ("fit_seconds", "predict_seconds")
_NAMED = 4
"""Of more methods or labels than this a sentence names the first ones and counts the others."""


DECIDED = ("method", "label", "observed", "count", "predicted")
"""Columns of `Leaderboard.decided`."""


class ComparisonError(MultilabError, ValueError):
    """Estimators, data or arguments that cannot be compared."""


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Results of several methods on the same splits of one dataset.

    Attributes
    ----------
    scores : DataFrame
        Columns split, method, metric, value; ``fit_seconds`` and ``predict_seconds`` are metrics too.
    methods : tuple of str
        In the order given.
    directions : dict of str to {"min", "max"}
        Of each metric; the first metric orders the tables.
    test_to_train : float
        Mean ratio of test rows to training rows.
    n_splits : int
    alpha : float
        Level of the tests.
    failures : dict of str to str
        Why a method has no values.
    decided : DataFrame
        Columns method, label, observed, count, predicted: of each label the test rows of all splits where it was
        observed, those that have it, and those that the method assigns it to. May be empty.
    untuned : dict of str to str
        For a method with tuned thresholds the name of the same method with its own decisions.
    """

    scores: pd.DataFrame
    methods: tuple[str, ...]
    directions: Mapping[str, str]
    test_to_train: float
    n_splits: int
    alpha: float = 0.05
    failures: Mapping[str, str] = field(default_factory=dict)
    decided: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(DECIDED)))
    untuned: Mapping[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The first metric."""
        return next(iter(self.directions))

    def splits(self, metric: str) -> pd.DataFrame:
        """Return the values of one metric, one row per split, one column per method that finished all splits."""
        if metric not in (*self.directions, *_SECONDS):
            raise ComparisonError(f"{metric!r} was not measured; there are {', '.join((*self.directions, *_SECONDS))}")
        rows = self.scores[self.scores["metric"] == metric]
        table = rows.pivot(index="split", columns="method", values="value")
        return table[[name for name in self.methods if name in table and name not in self.failures]]

    @property
    def table(self) -> pd.DataFrame:
        """Mean over the splits: one row per method, the best by the first metric first; seconds are means too."""
        means = pd.DataFrame({name: self.splits(name).mean(skipna=False) for name in (*self.directions, *_SECONDS)})
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
        """Return one method compared with each other one by the corrected resampled t test, after Holm's correction.

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
        sign = 1 if self.directions.get(metric, "min") == "max" else -1
        means = (sign * values.mean()).sort_values(ascending=False, kind="stable")
        reference = str(means.index[0]) if reference is None else reference
        gains = {other: sign * (values[reference] - values[other]) for other in means.index.drop(reference)}
        p = [corrected_resampled_p(gain, self.test_to_train) for gain in gains.values()]
        adjusted, levels = holm(p), holm_levels(p, self.alpha)
        rows = [
            (*corrected_resampled_interval(gain, self.test_to_train, 1 - level), one, after, after <= self.alpha)
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
        values = self.splits(metric or self.headline).reindex(columns=self.table.index)
        rows = {name: self._interval(values[name], level) for name in values}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "low", "high"])

    def difference(self, first: str, second: str, metric: str | None = None, level: float = 0.95) -> pd.Series:
        """Return by how much one method is better than another: the paired difference with its interval.

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
        sign = 1 if self.directions.get(metric, "min") == "max" else -1
        gains = sign * (values[first] - values[second])
        mean, low, high = self._interval(gains, level)
        p = corrected_resampled_p(gains, self.test_to_train) if self.n_splits > 1 else float("nan")
        return pd.Series({"mean": mean, "low": low, "high": high, "p": p, "wins": int((gains > 0).sum())})

    def _interval(self, values: pd.Series, level: float) -> tuple[float, float, float]:
        if self.n_splits < 2 or values.isna().any():
            return float(values.mean(skipna=False)), float("nan"), float("nan")
        return corrected_resampled_interval(values, self.test_to_train, level)

    @property
    def seconds(self) -> pd.Series:
        """Mean seconds of a fit with its prediction, by method, in the order of `table`."""
        table = self.table
        return table["fit_seconds"] + table["predict_seconds"]

    @property
    def pareto(self) -> tuple[str, ...]:
        """Methods on the Pareto front of the first metric and time, the fastest first."""
        sign = 1 if self.directions[self.headline] == "max" else -1
        return pareto_front((sign * self.table[self.headline]).to_dict(), self.seconds.to_dict())

    @property
    def best(self) -> tuple[str, ...]:
        """The method with the best mean of the first metric, then those that the test does not separate from it."""
        tests = self.tests()
        return (str(self.table.index[0]), *(str(name) for name in tests.index[~tests["differs"].astype(bool)]))

    @property
    def over_assigned(self) -> dict[str, list[OverAssigned]]:
        """The labels that a method assigns far too often, by method: see `multilab.metrics.over_assigned`."""
        flagged = {}
        for name in self.table.index:
            own = self.decided[self.decided["method"] == name]
            seen = own[own["observed"] > 0]
            rates, frequencies = seen["predicted"] / seen["observed"], seen["count"] / seen["observed"]
            if labels := over_assigned(seen["label"], rates, frequencies):
                flagged[str(name)] = labels
        return flagged

    def summary(self) -> str:
        """Return the finding in a sentence or two."""
        if not len(self.table):
            return "No method finished."
        first, *level = self.best
        ordered_by = f"{self.headline} ({'lower' if self.directions[self.headline] == 'min' else 'higher'} is better)"
        text = f"{first} has the best {ordered_by} over {self.n_splits} splits."
        if self.n_splits < 2:
            return f"{text} One split shows no difference."
        others = len(self.table) - 1
        if level:
            fastest = self.table.loc[[first, *level], "fit_seconds"].idxmin()
            text += (
                f" Not significantly worse at {self.alpha:g}, {len(level)} of {others}: {listed(level, _NAMED)}; the "
                f"fastest of all these is {fastest}."
            )
        elif others:
            text += f" Every other method is significantly worse at {self.alpha:g}."
        return text

    def to_latex(self, digits: int = 4) -> str:
        """Return `table` as LaTeX, the best value of each metric in bold."""
        texts = self._formatted(digits, "\\textbf{{{}}}", _latex)
        return texts.rename(columns=_latex).to_latex()

    def plot(self, metric: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw one metric by method: each split a dot, the mean a bar; needs matplotlib.

        Parameters
        ----------
        metric : str, optional
            The first one by default.
        ax : matplotlib Axes, optional
            Of a new figure by default.
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
        better = {"min": "lower is better", "max": "higher is better"}.get(self.directions.get(metric, "min"))
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
        notes = [self.summary()]
        if flagged := self.over_assigned:
            first, labels = next(iter(flagged.items()))
            notes.append(f"{first} assigns labels far too often: {listed([*map(str, labels)], _NAMED)}.")
            if len(flagged) > 1:
                notes[-1] += f" Other methods that do so: {listed(list(flagged)[1:], _NAMED)}."
        return notes + [f"{name} failed: {reason}" for name, reason in self.failures.items()]

    def __repr__(self) -> str:
        return "\n".join([self._formatted(4, "{}").to_string(), *self._notes()])

    def _repr_html_(self) -> str:
        table = self._formatted(4, "<b>{}</b>", lambda name: escape(str(name))).to_html(escape=False, border=0)
        return table + "".join(f"<p>{escape(note)}</p>" for note in self._notes())


def _latex(text: str) -> str:
    """Return a name with the characters that LaTeX reads as commands escaped."""
    return "".join(f"\\{letter}" if letter in "_&%$#{}" else letter for letter in str(text))
