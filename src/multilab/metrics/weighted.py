"""Metrics of some labels only, and with weights of the rows: ``labels=`` and ``sample_weight=`` of every metric.

A weight counts a row as often as it says. The functions that metrics are defined by know neither: their code is part of
the keys of cells. Here rows are weighted by what a metric is the mean of.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multilab.core.messages import unknown_name
from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import DecisionCounts, SetSizes, count_decisions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Decisions, Scores, blocks, refuse_other_shape, refuse_outside_unit_interval
from multilab.metrics.label_ranks import DrawnLabels, Ranking
from multilab.metrics.label_sets import LabelSets, observed_only
from multilab.metrics.registry import Metric, defined

_SECTIONS = """\
sample_weight : array-like of shape (n_rows,), optional
    Weights of the rows, >= 0: a row counts as often as its weight says, one of weight 0 not at all.
labels : sequence of int or str, optional
    The labels to measure, by position, or by name where Y is a data frame. None: all.
y_mask"""


@functools.cache
def public_function(name: str) -> Callable[..., float]:
    """Return a metric as a function that also takes ``sample_weight`` and ``labels``."""
    made = defined(name)

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
        return _value(made, Y, decisions, conventions, sample_weight, labels, y_mask, parameters)

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
        return _value(made, Y, scores, conventions, sample_weight, labels, y_mask, parameters)

    function: Any = of_decisions if made.needs == "decisions" else of_scores
    signature = inspect.signature(function)
    own = [p for p in inspect.signature(made.function).parameters.values() if p.name in made.parameters]
    function.__signature__ = signature.replace(parameters=[*list(signature.parameters.values())[:-1], *own])
    function.__name__ = function.__qualname__ = name
    function.__module__ = made.function.__module__
    function.__doc__ = (made.function.__doc__ or "").replace("y_mask", _SECTIONS, 1)
    return function


def _value(
    made: Metric,
    Y: Any,
    given: Any,
    conventions: str | Conventions,
    sample_weight: Any,
    labels: Any,
    y_mask: Any,
    parameters: dict[str, Any],
) -> float:
    if labels is None and sample_weight is None:
        return made.function(Y, given, conventions, y_mask=y_mask, **parameters)
    what = "decisions" if made.needs == "decisions" else "scores"
    truth = LabelSets(Y, y_mask=y_mask)
    cells: Any = Decisions(given) if what == "decisions" else Scores(given)
    refuse_other_shape(truth, "Y", cells, what)
    if labels is not None:
        chosen = _positions(labels, truth.names, truth.shape[1])
        truth, cells = truth.take(None, chosen), cells.take(None, chosen)
    weights = None if sample_weight is None else _checked(sample_weight, truth.shape[0])
    counted = np.broadcast_to(truth.row_lengths, truth.shape[0]) > 0
    if weights is not None:
        counted = counted & (weights > 0)
    if not counted.any():
        raise MetricError("no row with an observed label has a weight above 0: there is nothing to measure")
    if not counted.all():
        rows = np.flatnonzero(counted)
        truth, cells = truth.take(rows), cells.take(rows)
        weights = None if weights is None else weights[rows]
    if made.needs == "probabilities":
        refuse_outside_unit_interval(cells, decided=False)
    rules = resolve(conventions)
    truth, cells = observed_only(truth, cells, what)
    measured = count_decisions(truth, cells) if what == "decisions" else Ranking(truth, cells, rules)
    value = made.value(measured, rules, **parameters).value  # also what the conventions refuse
    if weights is None:
        return value
    # Some formulas divide by at least 1, so that no count may be below it.
    weights = weights / weights.min()
    if made.mean_over == "rows":
        return _mean_over_rows(made, measured, rules, parameters, value, weights)
    if isinstance(measured, DecisionCounts) and made.mean_over is not None:
        return made.value(_weighted_counts(truth, cells, measured, weights), rules, **parameters).value
    if made.needs == "probabilities" and made.mean_over == "cells":
        sizes = np.broadcast_to(truth.row_lengths, weights.shape)
        return _mean_over_rows(made, measured, rules, parameters, value, weights, sizes)
    if made.mean_over == "labels":
        ranking = _WeightedRanking(truth, cells, rules, weights=weights)
        weighted = made.value(ranking, rules, **parameters).value
        if ranking.was_read:
            return weighted
    if made.name in _LISTS:
        return _of_all_cells(made, truth, cells, rules, weights, value)
    raise MetricError(_REFUSED.format(made.name))


_REFUSED = "{} takes no sample_weight with these arguments and conventions"
_LISTS = ("micro_auc", "micro_average_precision")


def _checked(sample_weight: Any, n_rows: int) -> np.ndarray:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise MetricError(f"`sample_weight` must hold {n_rows} finite numbers >= 0, got shape {weights.shape}")
    return weights


def _positions(labels: Any, names: Any, n_labels: int) -> np.ndarray:
    """Return the positions of labels that are given by position or by name."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise MetricError(f"`labels` must be a list of positions or names, got {labels!r}")
    known = [] if names is None else list(map(str, names))
    positions = []
    for label in labels:
        if isinstance(label, str):
            if label not in known:
                reason = "Y has no names: give positions" if names is None else unknown_name("label", label, known)
                raise MetricError(f"`labels`: {reason}")
            positions.append(known.index(label))
        elif isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < n_labels:
            positions.append(int(label))
        else:
            raise MetricError(f"`labels`: {label!r} is neither a position from 0 to {n_labels - 1} nor a name")
    if not positions or len(set(positions)) < len(positions):
        raise MetricError("`labels` must name at least one label, each once")
    return np.array(positions)


def _mean_over_rows(
    made: Metric,
    measured: DecisionCounts | Ranking,
    conventions: Conventions,
    parameters: dict[str, Any],
    unweighted: float,
    weights: np.ndarray,
    sizes: np.ndarray | None = None,
) -> float:
    """Return the weighted mean of the values of single rows; ``sizes`` are numbers of cells that weigh them, too."""
    single = [made.value(one, conventions, **parameters) for one in _rows(measured)]
    values = np.array([value.value for value in single])
    kept = np.array([value.n_skipped == 0 for value in single])
    within = np.ones(len(values)) if sizes is None else sizes.astype(float)
    if not kept.any():
        return unweighted
    plain = _mean(values[kept], within[kept])
    if not (plain == unweighted or abs(plain - unweighted) <= 1e-9 or plain != plain):  # no mean of rows
        raise MetricError(_REFUSED.format(made.name))
    return _mean(values[kept], (within * weights)[kept])


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    return math.fsum((values * weights).tolist()) / math.fsum(weights.tolist())


def _rows(measured: DecisionCounts | Ranking) -> list[Any]:
    """Return what is measured of each row alone; equal counts of decisions share one object."""
    if isinstance(measured, Ranking):
        return [measured.take(np.array([row])) for row in range(measured.truth.shape[0])]
    by_row = measured.by_row
    columns = np.stack([by_row.true, by_row.predicted, by_row.hits], axis=1)
    distinct, which = np.unique(columns, axis=0, return_inverse=True)
    n_labels = measured.shape[1]
    one = [SetSizes(*(np.array([size]) for size in sizes)) for sizes in distinct]
    counts = [DecisionCounts((1, n_labels), sizes, sizes, n_labels) for sizes in one]
    return [counts[group] for group in which.ravel()]


class _WeightedCounts(DecisionCounts):
    """Counts of weighted rows; the share of wrong cells must not be rounded to whole rows."""

    @property
    def share_wrong(self) -> float:
        sizes = self.by_label
        return float((sizes.true + sizes.predicted - 2 * sizes.hits).sum() / self.n_cells)


def _weighted_counts(
    truth: LabelSets, decisions: Decisions, counts: DecisionCounts, weights: np.ndarray
) -> _WeightedCounts:
    n_labels = truth.shape[1]
    true, predicted, hits = np.zeros((3, n_labels))
    for start, stop in blocks(*truth.shape):
        block, entries, w = decisions.rows(start, stop), truth.entries(start, stop), weights[start:stop]
        each = w[entries.lists]
        hit = block[entries.lists, entries.positions]
        predicted += w @ block
        true += np.bincount(entries.positions, each, n_labels)
        hits += np.bincount(entries.positions, each * hit, n_labels)
    cells = float((weights * np.broadcast_to(truth.row_lengths, weights.shape)).sum())
    return _WeightedCounts(truth.shape, counts.by_row, SetSizes(true, predicted, hits), cells)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _WeightedRanking(Ranking):
    """Ranking whose rows count as often as their weights say where a metric counts the rows of each label."""

    weights: np.ndarray = field(default_factory=lambda: np.empty(0))
    _read: list[bool] = field(default_factory=list)

    @property
    def was_read(self) -> bool:
        """Whether a formula has used the weighted counts; otherwise its value would be unweighted."""
        return bool(self._read)

    @property
    def drawn_labels(self) -> DrawnLabels:
        """Weights of the relevant and the irrelevant rows of each tie."""
        self._read.append(True)
        ordered = self.sorted_labels
        if ordered is None:
            shape = " x ".join(map(str, self.truth.shape))
            raise MetricError(
                f"sample_weight: {shape} cells are too many to keep sorted; measure some `labels` at a time"
            )
        weights = self.weights[ordered.order] * ordered.observed
        relevant = np.add.reduceat((weights * ordered.relevant).ravel(), ordered.starts)
        irrelevant = np.add.reduceat((weights * (ordered.observed & ~ordered.relevant)).ravel(), ordered.starts)
        return DrawnLabels(ordered, relevant, irrelevant)


def _of_all_cells(
    made: Metric, truth: LabelSets, scores: Scores, conventions: Conventions, weights: np.ndarray, value: float
) -> float:
    """Return a metric of the list of all observed cells, as that of a single label."""
    n_rows, n_labels = truth.shape
    if not 0 < truth.indices.size < truth.n_cells:
        return value  # one class: no weight matters
    labels, columns = truth.to_csr().toarray().ravel(), scores.rows(0, n_rows).ravel()
    seen = np.isfinite(columns)
    one = LabelSets(labels[seen, None]), Scores(columns[seen, None])
    drawn = _WeightedRanking(*one, conventions, weights=np.repeat(weights, n_labels)[seen]).drawn_labels
    if made.name == "micro_auc":
        return float(drawn.auc(round(2 * (1 - conventions.auc_ties)))[0][0])
    return float(drawn.average_precision()[0][0])
