"""Bootstrap intervals of metrics over instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.numbers import whole_number
from multilab.core.tables import table_values
from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import DecisionCounts, SetSizes, count_decisions, safe_ratio
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Decisions, blocks, without_tags
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.label_sets import LabelSets, checked_weights, observed_only, refuse_other_order
from multilab.metrics.own_metrics import is_scorer
from multilab.metrics.registry import defined, measure

__all__ = ["BootstrapDifference", "BootstrapInterval", "bootstrap", "bootstrap_difference", "label_f1_intervals"]

_WEIGHT_CELLS = 1 << 22  # weights of the rows in as many draws as are counted at once


@dataclass(frozen=True)
class BootstrapInterval:
    """Value of a metric with its bootstrap interval.

    Attributes
    ----------
    value : float
        Value on all rows.
    low, high : float
        Quantiles (1 - level) / 2 and (1 + level) / 2 of the values of the draws.
    level : float
    standard_error : float
        Standard deviation of the values of the draws.
    n_draws : int
    n_undefined : int
        Draws in which the metric is nan; they are left out.
    method : str
        "percentile".
    """

    value: float
    low: float
    high: float
    level: float
    standard_error: float
    n_draws: int
    n_undefined: int
    method: str = "percentile"


@dataclass(frozen=True)
class BootstrapDifference(BootstrapInterval):
    """Difference of two predictions in a metric, with its bootstrap interval.

    The attributes of `BootstrapInterval` describe the difference.

    Attributes
    ----------
    p : float
        Two-sided p value: twice the share of draws on the rarer side of 0, so that it is at most ``1 - level`` where
        the interval excludes 0 (up to one draw). It is never below ``2 / (n_draws + 1)``.
    """

    p: float = float("nan")


def bootstrap(
    metric: str | Callable[..., float],
    Y: Any,
    given: Any,
    conventions: str | Conventions = "default",
    *,
    level: float = 0.95,
    n_draws: int = 1000,
    random_state: int | np.random.Generator | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    y_mask: Any = None,
    **parameters: Any,
) -> BootstrapInterval:
    """Return a percentile interval of a metric over resampled instances.

    Every draw takes n of the n rows with replacement; a row keeps its weight in each draw. The fitted model stays the
    same, so the interval only accounts for the choice of the test rows. Metrics of rows and of decisions need no second
    pass over the matrices, and macro AUC and macro average precision need no second sort (up to 8 million cells). The
    other metrics are computed from the rows of each draw.

    Parameters
    ----------
    metric : str or callable
        Name of a metric, a scorer, or a function ``metric(Y, given, **parameters) -> float`` of your own, which gets
        the rows of each draw, and ``sample_weight`` and ``labels`` if these are given (but neither ``conventions`` nor
        ``y_mask``).
    Y : array-like or sparse, shape (n_rows, n_labels), or tags
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed.
    given : array-like or sparse, shape (n_rows, n_labels)
        Decisions, scores or probabilities, as the metric needs them.
    conventions : str or Conventions, default "default"
        A preset or your own rules.
    level : float, default 0.95
        Nominal coverage of the interval, in (0, 1).
    n_draws : int, default 1000
        Number of draws.
    random_state : int, Generator or None
        Seed. The same integer draws the same rows for every metric and model, so that differences can be paired.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, >= 0. A row of weight 2 counts like two rows, a row of weight 0 does not count.
    labels : sequence of int or str, optional
        The labels to measure, by position, or by name if Y is a data frame. By default all.
    y_mask : array-like or sparse, shape (n_rows, n_labels), optional
        True where a label of Y was observed.
    **parameters
        Arguments of the metric.

    Returns
    -------
    BootstrapInterval

    Raises
    ------
    MetricError
        If the metric refuses its arguments, ``n_draws`` is not a whole number, or ``n_draws`` or ``level`` is out of
        range.

    References
    ----------
    B. Efron, R. Tibshirani. An Introduction to the Bootstrap, 1993, section 13.3.

    Examples
    --------
    >>> from multilab.metrics import bootstrap
    >>> Y = [[1, 0], [0, 1], [1, 1], [0, 0]] * 25
    >>> decisions = [[1, 0], [1, 1], [1, 0], [0, 0]] * 25
    >>> interval = bootstrap("hamming_loss", Y, decisions, random_state=0)
    >>> interval.value, round(interval.low, 2), round(interval.high, 2)
    (0.25, 0.2, 0.3)
    """
    Y, given = without_tags(Y, given, names=("Y", "the second argument"))
    rng = np.random.default_rng(random_state)
    drawn = _drawn_values(metric, Y, given, conventions, n_draws, rng, sample_weight, labels, y_mask, parameters, level)
    return BootstrapInterval(*_interval(*drawn, level, str(metric)))


def bootstrap_difference(
    metric: str | Callable[..., float],
    Y: Any,
    first: Any,
    second: Any,
    conventions: str | Conventions = "default",
    *,
    level: float = 0.95,
    n_draws: int = 1000,
    random_state: int | np.random.Generator | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    y_mask: Any = None,
    **parameters: Any,
) -> BootstrapDifference:
    """Return the difference of two predictions of the same rows in a metric, with interval and p value.

    Both metrics are computed on the same resampled rows, so that what makes rows easy or hard for both cancels. The
    fitted models stay the same: the function compares two given models, not two methods of fitting.

    Parameters
    ----------
    metric : str or callable
        As for `bootstrap`.
    Y : array-like or sparse, shape (n_rows, n_labels), or tags
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed.
    first, second : array-like or sparse, shape (n_rows, n_labels)
        Decisions, scores or probabilities, as the metric needs them. The difference is that of ``first`` minus that of
        ``second``, whatever the direction of the metric.
    conventions, level, n_draws, random_state, sample_weight, labels, y_mask, **parameters
        As for `bootstrap`.

    Returns
    -------
    BootstrapDifference
        A draw in which either value is nan counts as undefined.

    Raises
    ------
    MetricError
        As for `bootstrap`.

    Examples
    --------
    >>> from multilab.metrics import bootstrap_difference
    >>> Y = [[1, 0], [0, 1], [1, 1], [0, 0]] * 25
    >>> good, poor = Y, [[1, 0], [1, 1], [1, 0], [0, 0]] * 25
    >>> found = bootstrap_difference("micro_f1", Y, good, poor, random_state=0)
    >>> round(found.value, 2), found.low > 0, round(found.p, 3)
    (0.25, True, 0.002)
    """
    Y, first, second = without_tags(Y, first, second, names=("Y", "first", "second"))
    seed = int(np.random.default_rng(random_state).integers(2**63))
    values = []
    for given in (first, second):
        rng = np.random.default_rng(seed)  # the same rows for both
        values.append(
            _drawn_values(metric, Y, given, conventions, n_draws, rng, sample_weight, labels, y_mask, parameters, level)
        )
    (value, draws), (other, other_draws) = values
    differences = draws - other_draws
    interval = _interval(value - other, differences, level, str(metric))
    defined_draws = differences[~np.isnan(differences)]
    rarer = min((defined_draws <= 0).sum(), (defined_draws >= 0).sum())
    return BootstrapDifference(*interval, p=min(1.0, 2 * float(rarer + 1) / (defined_draws.size + 1)))


def label_f1_intervals(
    Y: Any,
    decisions: Any,
    conventions: str | Conventions = "default",
    *,
    level: float = 0.95,
    n_draws: int = 1000,
    random_state: int | np.random.Generator | None = None,
    labels: Any = None,
) -> np.ndarray:
    """Return percentile intervals of the F1 of each label over resampled instances.

    The draws are those of `bootstrap` with the same seed. Memory is ``n_draws`` numbers per label.

    Parameters
    ----------
    Y : array-like or sparse, shape (n_rows, n_labels)
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed.
    decisions : array-like or sparse, shape (n_rows, n_labels)
        Predicted labels, 0/1.
    conventions, level, n_draws, random_state, labels
        As for `bootstrap`.

    Returns
    -------
    ndarray of shape (n_labels, 2)
        Ends of the interval, for each of ``labels``; NaN where no cell of a label was observed. Draws without an
        observed cell of a label are left out.

    Raises
    ------
    MetricError
        As for `bootstrap`.

    Examples
    --------
    >>> from multilab.metrics.bootstrap_intervals import label_f1_intervals
    >>> Y = [[1, 0], [0, 1], [1, 1], [0, 0]] * 25
    >>> decisions = [[1, 0], [1, 1], [1, 0], [0, 0]] * 25
    >>> label_f1_intervals(Y, decisions, random_state=0).round(2)
    array([[0.71, 0.87],
           [0.53, 0.78]])
    """
    if not 0 < level < 1:
        raise MetricError(f"`level` must be in (0, 1), got {level}")
    n_draws = whole_number(n_draws, "n_draws", 2, MetricError)
    truth = LabelSets(Y, "Y", None, None, labels)
    found = np.full((truth.shape[1], 2), np.nan)
    seen = np.arange(len(found)) if truth.observed is None else np.flatnonzero(truth.observed.sizes[1])
    truth, given = observed_only(truth, truth.chosen(Decisions(decisions), "decisions"))
    parts, both_empty = _label_parts(truth, given), resolve(conventions).macro_both_empty
    drawn = []
    for _, times in _drawn_times(np.random.default_rng(random_state), truth.shape[0], n_draws):
        true, predicted, hits, *observed = ((part.T @ times.T).T for part in parts)
        f1 = safe_ratio(2 * hits, true + predicted, both_empty)
        drawn.append(np.where(observed[0] > 0, f1, np.nan) if observed else f1)
    values, ends = np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2]
    partly = np.isnan(values).any(axis=0)  # the quantile that skips NaN is slow
    for part, quantile in ((~partly, np.quantile), (partly, np.nanquantile)):
        if part.any():
            found[seen[part]] = quantile(values[:, part], ends, axis=0).T
    return found


def _drawn_values(
    metric: str | Callable[..., float],
    Y: Any,
    given: Any,
    conventions: str | Conventions,
    n_draws: int,
    rng: np.random.Generator,
    sample_weight: Any,
    labels: Any,
    y_mask: Any,
    parameters: dict[str, Any],
    level: float,
) -> tuple[float, np.ndarray]:
    """Return the value of a metric on all rows, and on those of each draw."""
    if not 0 < level < 1:
        raise MetricError(f"`level` must be in (0, 1), got {level}")
    n_draws = whole_number(n_draws, "n_draws", 2, MetricError)
    if callable(metric):
        if y_mask is not None:
            raise MetricError("y_mask is for metrics by name: mark unobserved cells in Y for a function of your own")
        if labels is not None:
            parameters["labels"] = labels
        function = defined(metric).function if is_scorer(metric) else metric
        return _values_of_function(function, Y, given, sample_weight, parameters, rng, n_draws)
    chosen, definition = resolve(conventions), defined(metric)
    truth = LabelSets(Y, "Y", y_mask, sample_weight, labels)
    truth.refuse_cell_weights("bootstrap")
    if definition.needs == "decisions":
        truth, decisions = observed_only(truth, truth.chosen(Decisions(given), "decisions"))
        sample: Any = count_decisions(truth, decisions)
        draws: Iterator[Any] = _drawn_counts(truth, decisions, sample, rng, n_draws)
    else:
        sample = measure(truth, given, definition.needs, chosen)
        draws = _drawn_rankings(sample, rng, n_draws)
    value = definition.value(sample, chosen, **parameters).value
    return value, np.array([definition.value(draw, chosen, **parameters).value for draw in draws])


def _interval(
    value: float, values: np.ndarray, level: float, name: str
) -> tuple[float, float, float, float, float, int, int]:
    """Return the fields of an interval in their order."""
    n_draws, undefined = values.size, np.isnan(values)
    if undefined.sum() > n_draws - 2:
        raise MetricError(f"{name} is nan in {undefined.sum()} of {n_draws} draws: there is no interval")
    values = values[~undefined]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return value, float(low), float(high), level, float(values.std(ddof=1)), n_draws, int(undefined.sum())


def _values_of_function(
    function: Callable[..., float],
    Y: Any,
    given: Any,
    sample_weight: Any,
    parameters: dict[str, Any],
    rng: np.random.Generator,
    n_draws: int,
) -> tuple[float, np.ndarray]:
    """Return the value of a function on all rows, and on those of each draw."""
    refuse_other_order(getattr(Y, "columns", None), "Y", getattr(given, "columns", None), "the second argument")
    Y, given = (matrix.tocsr() if sp.issparse(matrix) else table_values(matrix) for matrix in (Y, given))
    n_rows = Y.shape[0]
    if given.shape[0] != n_rows:
        raise MetricError(f"Y has {n_rows} rows but the second argument has {given.shape[0]}")
    weights = None if sample_weight is None else checked_weights(sample_weight, n_rows)
    drawn = (rng.integers(0, n_rows, n_rows) for _ in range(n_draws))

    def value(rows: Any) -> float:
        weighted = {} if weights is None else {"sample_weight": weights[rows]}
        return float(function(Y[rows], given[rows], **weighted, **parameters))

    return value(slice(None)), np.array([value(rows) for rows in drawn])


def _drawn_rankings(ranking: Ranking, rng: np.random.Generator, n_draws: int) -> Iterator[Ranking]:
    n_rows = ranking.truth.shape[0]
    for _ in range(n_draws):
        yield ranking.take(rng.integers(0, n_rows, n_rows))


def _drawn_counts(
    truth: LabelSets, decisions: Decisions, counts: DecisionCounts, rng: np.random.Generator, n_draws: int
) -> Iterator[DecisionCounts]:
    """Yield the counts of each draw: rows are selected, labels summed with the number of times that a row is drawn."""
    n_rows = truth.shape[0]
    parts = _label_parts(truth, decisions)
    lengths = np.broadcast_to(truth.row_lengths, n_rows)
    row_weights = truth.weights
    of_rows = tuple(getattr(counts.by_row, field.name) for field in fields(SetSizes))
    for lines, times in _drawn_times(rng, n_rows, n_draws):
        weights: Any = times if row_weights is None else times * row_weights
        sums = [(part.T @ weights.T).T for part in parts]
        numbers = sums if row_weights is None else [(part.T @ times.T).T for part in parts]
        for draw, drawn in enumerate(lines):
            rows = SetSizes(*(sizes[drawn] for sizes in of_rows))
            kept = sums[3][draw] > 0 if len(sums) > 3 else slice(None)
            true, predicted, hits = (part[draw][kept] for part in sums[:3])
            whole = sums[3][draw][kept] if len(sums) > 3 else weights[draw].sum()
            n_whole = numbers[3][draw][kept] if len(sums) > 3 else n_rows
            # where no cell is left, a difference of two sums of weights would be a rounding error
            others = [
                np.where(numbers[k][draw][kept] == n_whole, 0, np.maximum(whole - size, 0))
                for k, size in enumerate((true, predicted))
            ]
            of_labels = SetSizes(true, predicted, hits, *others)
            shape, cells = (n_rows, of_labels.true.size), lengths[drawn]
            if row_weights is None:
                yield DecisionCounts(shape, rows, of_labels, int(cells.sum()))
            else:
                yield DecisionCounts(shape, rows, of_labels, row_weights[drawn] @ cells, row_weights[drawn])


def _label_parts(truth: LabelSets, decisions: Decisions) -> list[Any]:
    """Return the cells that are true, predicted and both, and those that were observed unless all were."""
    n_rows, n_labels = truth.shape
    labels = truth.to_csr().astype(np.int64)
    predicted = sp.vstack([sp.csr_array(decisions.rows(*part)) for part in blocks(n_rows, n_labels)], format="csr")
    predicted = predicted.astype(np.int64)
    parts = [labels, predicted, labels.multiply(predicted).tocsr()]
    if truth.observed is not None:
        seen = [sp.csr_array(truth.observed.rows(*part)) for part in blocks(n_rows, n_labels)]
        parts.append(sp.vstack(seen, format="csr").astype(np.int64))
    return parts


def _drawn_times(rng: np.random.Generator, n_rows: int, n_draws: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of some draws, and how often each row is drawn: a line per draw."""
    step = max(1, _WEIGHT_CELLS // n_rows)
    for first in range(0, n_draws, step):
        lines = rng.integers(0, n_rows, (min(step, n_draws - first), n_rows))
        yield lines, np.stack([np.bincount(drawn, minlength=n_rows) for drawn in lines])
