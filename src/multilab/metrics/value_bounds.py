"""Smallest and largest value of a metric over all values of the labels that were not observed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Cells, Decisions, Scores, ThresholdedScores, blocks, without_tags
from multilab.metrics.label_sets import LabelSets
from multilab.metrics.registry import ALL_METRICS, Metric, defined

__all__ = ["Bounds", "bounds"]


class Bounds(NamedTuple):
    """Smallest and largest possible value of a metric."""

    low: float
    high: float


def bounds(
    metric: str,
    Y: Any,
    given: Any,
    conventions: str | Conventions = "default",
    *,
    y_mask: Any = None,
    **parameters: Any,
) -> Bounds:
    """Return the smallest and the largest value of a metric over all values of the unobserved labels.

    The bounds are exact: the metric can reach both, without any assumption on which labels are missing. A decision
    metric is best if every unobserved label agrees with the decision, and worst if none does; the same holds for log
    loss and Brier score with a decision at 0.5. Precision at k is best if all unobserved labels are relevant.

    Parameters
    ----------
    metric : str
        Name of a metric of decisions, ``log_loss``, ``brier_score`` or ``precision_at_k``.
    Y : array-like or sparse, shape (n_rows, n_labels), or tags
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed.
    given : array-like or sparse, shape (n_rows, n_labels)
        Decisions, scores or probabilities, as the metric needs them.
    conventions : str or Conventions, default "default"
        A preset or your own rules.
    y_mask : array-like or sparse, shape (n_rows, n_labels), optional
        True where a label of Y was observed.
    **parameters
        Arguments of the metric.

    Returns
    -------
    Bounds
        ``low`` and ``high``; equal if all labels are observed.

    Raises
    ------
    MetricError
        If the bounds of the metric, or under these conventions, are not known to be exact: metrics of the ranking are
        not monotone in single labels, and a row without labels may be worth more than one with a miss.

    Examples
    --------
    >>> from multilab.metrics import bounds
    >>> bounds("hamming_loss", [[1, 0, float("nan")], [0, 1, 1]], [[1, 1, 0], [0, 1, 1]])
    Bounds(low=0.16666666666666666, high=0.3333333333333333)
    """
    chosen, definition = resolve(conventions), defined(metric)
    _refuse_inexact(definition, chosen, parameters)
    Y, given = without_tags(Y, given, names=("Y", definition.needs))
    truth = LabelSets(Y, y_mask=y_mask)
    best, worst = _extremes(definition, truth, given)
    values = [definition.function(labels, given, chosen, **parameters) for labels in (best, worst)]
    return Bounds(min(values), max(values))


def _refuse_inexact(definition: Metric, conventions: Conventions, parameters: dict[str, Any]) -> None:
    if definition.filler is None:
        known = ", ".join(name for name, metric in ALL_METRICS.items() if metric.filler)
        raise MetricError(f"exact bounds of {definition.name} are not known; metrics that have some: {known}")
    if definition.filler == "ones" and parameters.get("propensities") is not None:
        raise MetricError(f"exact bounds of {definition.name} are not known with propensities")
    for field in definition.conventions:
        value = getattr(conventions, field)
        if value != 0 and (value != 1 or field == "one_empty"):
            raise MetricError(f"exact bounds of {definition.name} are not known where {field} is {value}")


def _extremes(definition: Metric, truth: LabelSets, given: Any) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the complete labels with the best and with the worst value."""
    labels = truth.to_csr()
    cells: Cells | ThresholdedScores
    if definition.needs == "decisions":
        cells = truth.chosen(Decisions(given), definition.needs)
    else:
        limits = np.full(truth.shape[1], -np.inf if definition.filler == "ones" else 0.5)
        cells = ThresholdedScores(truth.chosen(Scores(given), definition.needs), limits, ">=")
    if truth.observed is None:
        return labels, labels
    agreeing, opposed = [], []
    for start, stop in blocks(*truth.shape):
        hidden, decided = ~truth.observed.rows(start, stop), cells.rows(start, stop)
        agreeing.append(sp.csr_array(hidden & decided))
        opposed.append(sp.csr_array(hidden & ~decided))
    return labels + sp.vstack(agreeing, format="csr"), labels + sp.vstack(opposed, format="csr")
