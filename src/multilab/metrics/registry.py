"""Registry of the metrics: the decorator that defines one, and the table of all.

A metric is one decorated function in one of the modules that :mod:`multilab.metrics` imports
(``decision_metrics``, ``auc``, ``ranking_metrics``, ``top_labels``, ``probability_metrics``)::

    @metric("Is-error", "min", "scores", group="ranking", mean_over="rows", skips="rows",
            source="Crammer & Singer, JMLR 2003", conventions=("ranking_loss_ties",))
    def is_error(ranking, conventions):
        \"\"\"Return the share of rows in which at least one pair of labels is ordered wrongly.\"\"\"
        return ranking.rows.twice_wrong > 0

Nothing else has to be edited: ``multilab.metrics.is_error``, :data:`METRICS`, ``score_all``, the definitions in the
reports, the leaderboards of the arena, the reference and the completion of the shell follow. With
``standard=False`` a metric is not among :data:`METRICS`, which every study computes: it is a function, a scorer
(``get_scorer``) and a name for ``score_all(..., metrics=[...])``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from multilab.core.messages import unknown_name
from multilab.core.text import docstring
from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import DecisionCounts, count_decisions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Decisions, Scores, refuse_outside_unit_interval, without_tags
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.label_sets import LabelSets, observed_only
from multilab.metrics.own_metrics import MetricLike, Needs, own_metric

Direction = Literal["max", "min"]
Fillers = Literal["decisions", "ones"] | None
Skips = Literal["rows", "labels"] | None
Group = Literal["example", "label", "ranking", "probability"] | None
MeanOver = Literal["rows", "labels", "cells"] | None

GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "example": "Example-based decisions",
        "label": "Label-based",
        "ranking": "Example-based ranking",
        "probability": "Probabilities",
    }
)
"""Display names of the groups of metrics, in the order of tables.

The first three are those of M.-L. Zhang and Z.-H. Zhou, A review on multi-label learning algorithms, TKDE 26(8), 2014,
figure 1; the variants of a metric are in its group.
"""


class Value(NamedTuple):
    """A metric's value, the number of rows or labels that were left out of it, and whether it used weights of rows."""

    value: float
    n_skipped: int = 0
    weighted: bool = False


class Mean(NamedTuple):
    """Values of rows (or labels), of which a metric is the mean.

    Attributes
    ----------
    values : ndarray of shape (n,)
        NaN is left out; any value where undefined.
    undefined : ndarray of bool, shape (n,)
        Where there is no value.
    rule : {"skip", "zero", "one", "nan", "error"}
        What an undefined one counts.
    message : str
        Start of the error message; the index of the first undefined one follows.
    unit : float
        The mean is divided by it.
    """

    values: np.ndarray
    undefined: np.ndarray
    rule: str
    message: str
    unit: float = 1.0

    def by_rule(self) -> np.ndarray | Value:
        """Return the values with what undefined ones count, or the mean if one makes it undefined."""
        if not self.undefined.any():
            return self.values
        if self.rule == "error":
            raise MetricError(f"{self.message} {np.argmax(self.undefined)}; the conventions refuse it")
        if self.rule == "nan":
            return Value(math.nan, weighted=True)
        return np.where(self.undefined, _REPLACEMENTS[self.rule], self.values)


Formula = Callable[..., Mean | np.ndarray | Value | float]
_REPLACEMENTS = {"skip": math.nan, "zero": 0.0, "one": 1.0}


def mean_of(values: np.ndarray, *, weights: np.ndarray | None = None) -> Value:
    """Average the values that are not NaN; NaN when there is none.

    The sum is exact and rounded once, so that it depends neither on the order of rows nor on the block size.
    """
    kept = ~np.isnan(values)
    chosen = values[kept]
    n_skipped, weighted = values.size - chosen.size, weights is not None
    if not chosen.size:
        return Value(math.nan, n_skipped, weighted)
    if weights is None:
        return Value(math.fsum(chosen.tolist()) / chosen.size, n_skipped)
    weights = weights[kept]
    return Value(math.fsum((weights * chosen).tolist()) / math.fsum(weights.tolist()), n_skipped, weighted)


@dataclass(frozen=True)
class Metric:
    """Definition of one metric.

    Attributes
    ----------
    name : str
        Key in ``score_all`` and in every results file.
    title : str
        Display name.
    direction : {"max", "min"}
        Which values are better.
    low, high : float
        Range of the value under the conventions ``default``; ``inf`` where it grows with the number of
        labels.
    needs : {"scores", "probabilities", "decisions"}
        What it compares with the true labels; probabilities are scores in [0, 1].
    skips : {"rows", "labels", None}
        What some conventions leave out of its mean; then ``score_all`` has a key ``n_skipped_<name>``.
    conventions : tuple of str
        The fields of :class:`Conventions` that can change its value for given scores or decisions.
    parameters : dict of str to object
        Its own keyword arguments with their defaults.
    group : {"example", "label", "ranking", "probability", None}
        What it measures: decisions row by row, labels, the order of a row's labels, or probabilities. A leaderboard of
        the arena ranks methods by all metrics of a group. None: it has a board of its own and counts in no group.
    ordered_like : str or None
        Another metric that orders the methods of any dataset in the same way; a group counts such a pair once.
    mean_over : {"rows", "labels", "cells", None}
        What the value is a mean over; if labels are missing, rows and labels are measured on their observed cells.
        "cells" means that it is computed from the list of all observed cells, None that it is none of these.
    filler : {"decisions", "ones", None}
        What unobserved labels are in the best case: the decisions (the worst case are their opposites), or all
        relevant. None: ``bounds`` refuses the metric.
    definition : str
        One line: the summary of its docstring without "Return the".
    source : str
        Publication or program that defines it.
    function : callable
        ``function(Y, scores or decisions, conventions, *, sample_weight, labels, y_mask, **parameters)``.
    formula : callable
        ``formula(ranking or counts, conventions, **parameters)``, the decorated function.
    cell_weights : bool
        Whether it is a sum over cells, of which each may have a weight: computed from ``counts.by_label`` alone.
    counted : bool
        Whether the formula is one of counts or ranks. False for a function of one's own, which has no other than
        ``function``.
    """

    name: str
    title: str
    direction: Direction
    low: float
    high: float
    needs: Needs
    skips: Skips
    conventions: tuple[str, ...]
    parameters: Mapping[str, Any]
    filler: Fillers
    group: Group
    ordered_like: str | None
    mean_over: MeanOver
    definition: str
    source: str
    function: Callable[..., float]
    formula: Formula
    cell_weights: bool = False
    counted: bool = True

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        return self.low, self.high

    def better(self, a: float, b: float) -> bool:
        """Return whether ``a`` is strictly better than ``b``."""
        return a > b if self.direction == "max" else a < b

    def value(self, counts_or_ranking: DecisionCounts | Ranking, conventions: Conventions, **parameters: Any) -> Value:
        """Return the value, and the number of rows or labels left out of it.

        Raises
        ------
        MetricError
            If rows have weights, which the formula of a mean over rows did not use, or cells have weights and it is no
            sum over cells.
        """
        truth = counts_or_ranking.truth
        if truth is not None and not self.cell_weights:
            truth.refuse_cell_weights(self.name)
        result = self.formula(counts_or_ranking, conventions, **parameters)
        weights, unit = counts_or_ranking.weights, 1.0
        if isinstance(result, Mean):
            unit = result.unit
            result = result.by_rule()
        if isinstance(result, np.ndarray):
            result = mean_of(result, weights=weights if self.mean_over == "rows" else None)
        value = result._replace(value=result.value / unit) if isinstance(result, Value) else Value(float(result))
        if self.mean_over in ("rows", None) and weights is not None and not value.weighted:
            raise MetricError(f"{self.name} takes no sample_weight: its formula returns no value of each row")
        return value


def values_of(
    metrics: Mapping[str, Metric], measured: Mapping[str, DecisionCounts | Ranking], conventions: Conventions
) -> dict[str, Value]:
    """Return the values of metrics from what each needs."""
    return {name: metric.value(measured[metric.needs], conventions) for name, metric in metrics.items()}


_ALL: dict[str, Metric] = {}
_STANDARD: dict[str, Metric] = {}
_OF_PAPERS: dict[str, Metric] = {}

# all metrics of the library, by name
ALL_METRICS: Mapping[str, Metric] = MappingProxyType(_ALL)
# those that every study and `score_all` compute (``standard=True``)
METRICS: Mapping[str, Metric] = MappingProxyType(_STANDARD)


def defined(metric: MetricLike) -> Metric:
    """Return the metric of a name, a scorer or a function; refuse an unknown name."""
    return argument_metric(metric)


def argument_metric(metric: MetricLike) -> Metric:
    """Return what `defined` returns, for an estimator whose only metric is its argument.

    The key of a result holds the versions of the metrics that its settings name, and of those in the code of a class
    that calls `defined` (`multilab.cells.method.Method.code`). A metric of one's own is better where it is larger, as
    scikit-learn has it for scorers.
    """
    if isinstance(metric, str):
        found = _ALL.get(metric) or paper_metrics().get(metric)
        if found is None:
            raise MetricError(unknown_name("metric", metric, _ALL))
        return found
    inner = metric.func if isinstance(metric, functools.partial) else metric
    known = _ALL.get(getattr(inner, "__name__", ""))
    if known is not None and known.function is inner:
        if inner is metric:
            return known
        raise MetricError(
            f"for {known.name} with other arguments pass multilab.metrics.get_scorer({known.name!r}, ...)"
        )
    own = own_metric(metric)
    if own.name in _ALL and own.plain:
        return _ALL[own.name]
    if own.name in _ALL:
        raise MetricError(f"the function {own.name} has the name of an existing metric; rename it")
    return Metric(
        own.name,
        own.title,
        direction="max",
        low=-math.inf,
        high=math.inf,
        needs=own.needs,
        skips=None,
        conventions=(),
        parameters=MappingProxyType({}),
        filler=None,
        group=None,
        ordered_like=None,
        mean_over=None,
        definition=own.title,
        source="a scorer or function of one's own",
        function=own.function,
        formula=own.function,
        counted=False,
    )


def by_name(metrics: Iterable[MetricLike]) -> dict[str, MetricLike]:
    """Return names, scorers and functions by the names of their metrics; refuse two of one name."""
    chosen: dict[str, MetricLike] = {}
    for metric in metrics:
        found = defined(metric)
        other = chosen.setdefault(found.name, metric)
        if other is not metric and defined(other).function is not found.function:
            raise MetricError(f"two metrics are called {found.name}; rename one of the functions")
    return chosen


def all_defined(metrics: Iterable[MetricLike]) -> dict[str, Metric]:
    """Return the metrics of names, scorers and functions, by name."""
    return {name: defined(metric) for name, metric in by_name(metrics).items()}


def title_of(name: str) -> str:
    """Return the display name of a metric; that of a function of one's own, which cannot be looked up, is its name."""
    known = _ALL.get(name) or paper_metrics().get(name)
    return name if known is None else known.title


def direction_of(name: str) -> Direction:
    """Return which values of a metric are better; of a function of one's own the larger ones."""
    known = _ALL.get(name) or paper_metrics().get(name)
    return "max" if known is None else known.direction


def find_metric(name: str) -> Metric | None:
    """Return the metric of this name for scores of a study: one of :data:`METRICS`, or one of a paper."""
    return _STANDARD.get(name) or paper_metrics().get(name)


def unknown_standard(name: str) -> str:
    """Return one line for a name that is not in :data:`METRICS`."""
    if name in _ALL:
        return f"{name!r} is not computed for studies and stored results; there are: {', '.join(_STANDARD)}"
    return unknown_name("metric", name, _STANDARD)


@functools.cache
def paper_metrics() -> Mapping[str, Metric]:
    """Return the metrics that papers define in their ``metrics.py``; a study computes those that it lists.

    The packages of papers are above this one: only the names of their files are known here.
    """
    for path in sorted(Path(__file__).parents[1].glob("papers/*/metrics.py")):
        importlib.import_module(f"multilab.papers.{path.parent.name}.metrics")
    return MappingProxyType(_OF_PAPERS)


_SUMMARY = "Return the "
_PARAMETERS = "Parameters\n----------\n"
_EXAMPLES = "Examples\n--------"
_SECTIONS = """\
Parameters
----------
Y : array-like or sparse, shape (n_rows, n_labels), or tags
    True labels, 0/1; NaN, or -1 in int8, where a label was not observed. Tags, see the guide page *metrics*.
{given} : array-like or sparse, shape (n_rows, n_labels){or_tags}
    {what}
conventions : str or Conventions, default "default"
    A preset or your own rules, see :class:`Conventions`. {conventions}
sample_weight : array-like of shape (n_rows,){cells}, optional
    Weights of the rows, >= 0. A row of weight 2 counts like two rows, a row of weight 0 does not count.{of_cells}
labels : sequence of int or str, optional
    The labels to measure, by position, or by name if Y is a data frame. By default all.
y_mask : array-like or sparse, shape (n_rows, n_labels), optional
    True where a label of Y was observed. Other cells count as if they did not exist.
{parameters}
Returns
-------
float
    Between {low} and {high}, {better} is better.

Raises
------
MetricError
    If an argument is not a non-empty matrix of such values, shapes differ, or the conventions refuse a row or label.

Notes
-----
Source: {source}.
"""
_WHAT = {
    "decisions": "Predicted labels, 0/1.",
    "scores": "Finite scores, larger means more relevant.",
    "probabilities": "Probabilities in [0, 1].",
}


def metric(
    title: str,
    direction: Direction,
    needs: Needs,
    *,
    source: str,
    conventions: tuple[str, ...] = (),
    skips: Skips = None,
    low: float = 0.0,
    high: float = 1.0,
    filler: Fillers = None,
    group: Group = None,
    ordered_like: str | None = None,
    mean_over: MeanOver = None,
    cell_weights: bool = False,
    standard: bool = True,
    version: int = 1,
) -> Callable[[Formula], Callable[..., float]]:
    """Define a metric by its formula.

    Parameters
    ----------
    title, direction, needs, source, conventions, skips, low, high, filler, group, ordered_like, mean_over, cell_weights
        See :class:`Metric`.
    standard : bool, default True
        Whether ``score_all`` computes it, so that it is in :data:`METRICS`. A metric of a paper never is.
    version : int, default 1
        Raised when its values change: results that were chosen by it (searches, thresholds) are computed again.

    Returns
    -------
    callable
        Decorator of a function ``formula(counts, conventions)`` (decisions; see :class:`DecisionCounts`) or
        ``formula(ranking, conventions)`` (scores, probabilities; see :class:`Ranking`) that returns a number, or the
        values whose mean it is: an array with one of each row (or label), NaN where it is left out, or a :class:`Mean`
        with a rule for undefined ones. Rows are weighted where ``mean_over`` is "rows"; a formula that weighs them
        itself returns a :class:`Value`. Keyword-only arguments of the formula are arguments of the metric. The
        decorated function is that of :class:`Metric`.

    Raises
    ------
    MetricError
        If the name is taken, an argument is unknown, or the docstring does not begin with "Return the".
    """

    def define(formula: Formula) -> Callable[..., float]:
        name, doc = formula.__name__, docstring(formula)
        choices: dict[str, tuple[Any, tuple[Any, ...]]] = {
            "direction": (direction, get_args(Direction)),
            "needs": (needs, get_args(Needs)),
            "skips": (skips, ("rows", "labels", None)),
            "filler": (filler, ("decisions", "ones", None)),
            "group": (group, (*GROUPS, None)),
            "mean_over": (mean_over, ("rows", "labels", "cells", None)),
            "ordered_like": (ordered_like, (*_ALL, None)),
        }
        _check(name, doc, choices, conventions)
        function = _public_function(formula, needs)
        keyword_only = (p for p in inspect.signature(formula).parameters.values() if p.kind is p.KEYWORD_ONLY)
        parameters = MappingProxyType({p.name: p.default for p in keyword_only})
        definition = doc.partition("\n\n")[0].replace("\n", " ").removeprefix(_SUMMARY).rstrip(".")
        rules = conventions, parameters, filler, group, ordered_like, mean_over
        made = Metric(
            name, title, direction, low, high, needs, skips, *rules, definition, source, function, formula, cell_weights
        )
        function.__doc__ = _document(made, doc)
        function.results_version = formula.results_version = version  # type: ignore[attr-defined]
        if formula.__module__.startswith("multilab.papers."):
            _OF_PAPERS[name] = made
            return function
        _ALL[name] = made
        if standard:
            _STANDARD[name] = made
        return function

    return define


def _check(
    name: str, doc: str, choices: Mapping[str, tuple[Any, tuple[Any, ...]]], conventions: tuple[str, ...]
) -> None:
    if taken := _ALL.get(name) or _OF_PAPERS.get(name):
        raise MetricError(f"metric {name!r} is defined already, in {taken.function.__module__}")
    if not doc.startswith(_SUMMARY):
        raise MetricError(f"metric {name!r}: the docstring must begin with {_SUMMARY.strip()!r} and a definition")
    known = tuple(field.name for field in fields(Conventions))
    every = [*choices.items(), *(("conventions", (field, known)) for field in conventions)]
    for argument, (value, allowed) in every:
        if value not in allowed:
            raise MetricError(f"metric {name!r}: {argument} must be one of {allowed}, got {value!r}")


def measure(truth: LabelSets, given: Any, needs: str, conventions: Conventions) -> DecisionCounts | Ranking:
    """Return the inputs of a formula from the observed cells of one prediction."""
    if needs == "decisions":
        return count_decisions(*observed_only(truth, truth.chosen(Decisions(given), "decisions")))
    scores = truth.chosen(Scores(given), "scores")
    if needs == "probabilities":
        refuse_outside_unit_interval(scores, decided=False)
    return Ranking(*observed_only(truth, scores), conventions)


def _public_function(formula: Formula, needs: Needs) -> Callable[..., float]:
    """Return the function of matrices that a formula of counts or ranks amounts to."""

    def value(truth: LabelSets, given: Any, conventions: str | Conventions, parameters: dict[str, Any]) -> float:
        chosen = resolve(conventions)
        measured = measure(truth, given, needs, chosen)
        return defined(formula.__name__).value(measured, chosen, **parameters).value

    def of_decisions(
        Y: Any,
        decisions: Any,
        conventions: str | Conventions = "default",
        *,
        sample_weight: Any = None,
        labels: Any = None,
        y_mask: Any = None,
        **parameters: Any,
    ) -> float:
        Y, decisions = without_tags(Y, decisions)
        return value(LabelSets(Y, "Y", y_mask, sample_weight, labels), decisions, conventions, parameters)

    def of_scores(
        Y: Any,
        scores: Any,
        conventions: str | Conventions = "default",
        *,
        sample_weight: Any = None,
        labels: Any = None,
        y_mask: Any = None,
        **parameters: Any,
    ) -> float:
        Y, scores = without_tags(Y, scores, names=("Y", "scores"))
        return value(LabelSets(Y, "Y", y_mask, sample_weight, labels), scores, conventions, parameters)

    function: Any = of_decisions if needs == "decisions" else of_scores
    signature = inspect.signature(function)
    own = [p for p in inspect.signature(formula).parameters.values() if p.kind is p.KEYWORD_ONLY]
    function.__signature__ = signature.replace(parameters=[*list(signature.parameters.values())[:-1], *own])
    function.__name__ = function.__qualname__ = formula.__name__
    function.__module__ = formula.__module__
    return function


def _document(made: Metric, doc: str) -> str:
    """Return the docstring of the public function: that of the formula with the sections common to all metrics."""
    text, examples, code = doc.partition(_EXAMPLES)
    text, _, parameters = text.partition(_PARAMETERS)
    rules = ", ".join(f"``{field}``" for field in made.conventions)
    sections = _SECTIONS.format(
        given="decisions" if made.needs == "decisions" else "scores",
        parameters=parameters.rstrip() + "\n" if parameters else "",
        or_tags=", or tags" if made.needs == "decisions" else "",
        what=_WHAT[made.needs],
        conventions=f"Those that matter: {rules}." if rules else "The value is the same under all of them.",
        low=f"{made.low:g}",
        high="the number of labels" if made.high == float("inf") else f"{made.high:g}",
        better="larger" if made.direction == "max" else "smaller",
        source=made.source,
        cells=" or (n_rows, n_labels)" if made.cell_weights else "",
        of_cells=" Or weights of\n    the single cells; a label of weight 0 counts as not observed."
        if made.cell_weights
        else "",
    )
    return f"{text.strip()}\n\n{sections}\n{examples}{code}".rstrip() + "\n"
