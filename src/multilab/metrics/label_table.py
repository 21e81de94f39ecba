"""Tables of one prediction: a row per label, and confusion counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from multilab.core.text import excerpt, visible
from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import DecisionCounts, count_decisions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Decisions, Scores, ThresholdedScores, refuse_outside_unit_interval, without_tags
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.label_sets import LabelSets, observed_only
from multilab.metrics.probability_metrics import calibration_gaps, log_losses, squared_errors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OverAssigned", "confusion_counts", "over_assigned", "per_label"]


def per_label(
    Y: Any,
    scores: Any = None,
    decisions: Any = None,
    threshold: Any = None,
    conventions: str | Conventions = "default",
    *,
    label_names: Any = None,
    n_bins: int = 10,
    sample_weight: Any = None,
    labels: Any = None,
    y_mask: Any = None,
) -> pd.DataFrame:
    """Return the metrics of every label as a table.

    Parameters
    ----------
    Y : array-like or sparse, shape (n_rows, n_labels), or tags
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed. The columns of a DataFrame are the names.
    scores : array-like or sparse, shape (n_rows, n_labels), optional
        Finite scores, larger means more relevant.
    decisions : array-like or sparse, shape (n_rows, n_labels), or tags, optional
        Predicted labels, 0/1. If None, a label is predicted where its score is at least the threshold.
    threshold : float or array-like of shape (n_labels,), optional
        Used only if ``decisions`` is None. The default is 0.5, for scores in [0, 1] only.
    conventions : str or Conventions, default "default"
        ``macro_both_empty``, ``one_empty``, ``auc_ties``, ``label_average_precision_ties`` and ``decision`` matter.
    label_names : sequence of str, optional
        Names of the labels, instead of the columns of Y; for tags, the labels to measure. By default the columns of Y,
        all tags, or numbers from 0.
    n_bins : int, default 10
        Number of bins of the calibration error.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, >= 0. A row of weight 2 counts like two rows, a row of weight 0 does not count.
    labels : sequence of int or str, optional
        The labels to measure, by position, or by name if Y is a data frame. By default all. ``threshold`` and
        ``label_names`` are always given for all labels.
    y_mask : array-like or sparse, shape (n_rows, n_labels), optional
        True where a label of Y was observed. Other cells count as if they did not exist.

    Returns
    -------
    DataFrame
        A row per label, in the order of ``labels``, with the columns ``label``; ``observed`` (number of observed
        cells), ``count`` (number of relevant ones) and ``prevalence`` (their share); ``threshold``; ``predicted``
        (number of predicted cells); ``precision``, ``recall``, ``f1``; ``average_precision``, ``auc``; and for
        probabilities ``log_loss``, ``brier_score`` and ``calibration_error``. Cells are counted by the weights of their
        rows. A value is NaN if it is undefined (AUC of a label with one class only), its argument was not given, or the
        scores are not probabilities.

    Raises
    ------
    MetricError
        See :func:`score_all`; also if there is not one name or threshold per label.

    Examples
    --------
    >>> from multilab.metrics import per_label
    >>> table = per_label([[1, 0], [0, 1], [1, 0]], [[0.9, 0.2], [0.6, 0.7], [0.8, 0.1]], label_names=["rain", "wind"])
    >>> table[["label", "count", "precision", "recall", "auc"]]
      label  count  precision  recall  auc
    0  rain      2   0.666667     1.0  1.0
    1  wind      1   1.000000     1.0  1.0
    """
    import pandas as pd

    chosen = resolve(conventions)
    if scores is None and decisions is None:
        raise MetricError("per_label needs scores, decisions, or both; got neither")
    arguments = ("Y", "scores", "decisions")
    Y, scores, decisions = without_tags(Y, scores, decisions, label_names=label_names, names=arguments)
    names = _names(Y, label_names)
    truth = LabelSets(Y, "Y", y_mask, sample_weight, labels)
    truth.refuse_cell_weights("per_label")
    n_labels = truth.shape[1]
    seen = np.arange(n_labels) if truth.observed is None else np.flatnonzero(truth.observed.sizes[1])
    columns: dict[str, np.ndarray] = {}
    limits = np.full(n_labels, np.nan)
    if scores is not None:
        given = truth.chosen(Scores(scores), "scores")
        probabilities = _in_unit_interval(given)
        if decisions is None:
            if threshold is None:
                refuse_outside_unit_interval(given)
            limits = _thresholds(threshold, len(names))[truth.positions]
        observed_truth, ranked = observed_only(truth, given)
        ranking = Ranking(observed_truth, ranked, chosen)
        columns |= _of_scores(ranking, n_bins, probabilities)
        cells: Any = ThresholdedScores(ranked, limits[seen], chosen.decision)
    if decisions is not None:
        observed_truth, cells = observed_only(truth, truth.chosen(Decisions(decisions), "decisions"))
    of_decisions = count_decisions(observed_truth, cells)
    columns |= _of_decisions(of_decisions, chosen)
    order = ("predicted", "precision", "recall", "f1", *_OF_SCORES)
    counts = pd.DataFrame({"observed": np.broadcast_to(observed_truth.label_lengths, seen.size)}, index=seen)
    counts["count"] = of_decisions.by_label.true
    counts = counts.reindex(range(n_labels), fill_value=0)
    measured = pd.DataFrame({name: columns.get(name, np.nan) for name in order}, index=seen).reindex(range(n_labels))
    measured["predicted"] = measured["predicted"].fillna(0).astype(of_decisions.by_label.predicted.dtype)
    table = pd.concat([counts, measured], axis=1)
    if truth.weights is not None:
        table[["observed", "count", "predicted"]] *= truth.weight_scale
    table.insert(2, "prevalence", table["count"] / table["observed"].where(table["observed"] > 0))
    table.insert(3, "threshold", limits)
    table.insert(0, "label", [names[position] for position in truth.positions])
    return table


_OF_SCORES = ("average_precision", "auc", "log_loss", "brier_score", "calibration_error")


def _of_decisions(counts: DecisionCounts, conventions: Conventions) -> dict[str, np.ndarray]:
    sizes, both, one = counts.by_label, conventions.macro_both_empty, conventions.one_empty
    return {
        "predicted": sizes.predicted,
        "precision": sizes.precision(both, one),
        "recall": sizes.recall(both, one),
        "f1": sizes.f1(both),
    }


def _of_scores(ranking: Ranking, n_bins: int, probabilities: bool) -> dict[str, np.ndarray]:
    area, one_class = ranking.label_auc
    precision, empty = ranking.label_average_precision
    columns = {"average_precision": np.where(empty, np.nan, precision), "auc": np.where(one_class, np.nan, area)}
    if not probabilities:
        return columns
    gaps, cells = calibration_gaps(ranking, n_bins)
    for name, losses in (("log_loss", log_losses), ("brier_score", squared_errors)):
        sums = np.zeros(len(cells))
        for start, stop, entries in ranking.truth.parts:
            block = losses(ranking.scores.rows(start, stop), entries)
            sums += block.sum(axis=0) if ranking.weights is None else ranking.weights[start:stop] @ block
        columns[name] = sums / cells
    return columns | {"calibration_error": np.abs(gaps).sum(axis=1) / cells}


def _in_unit_interval(scores: Scores) -> bool:
    try:
        refuse_outside_unit_interval(scores)
    except MetricError:
        return False
    return True


def _thresholds(threshold: Any, n_labels: int) -> np.ndarray:
    values = np.asarray(0.5 if threshold is None else threshold, dtype=float)
    if values.shape not in ((), (n_labels,)) or not np.isfinite(values).all():
        raise MetricError(f"threshold must be one finite number, or one per label ({n_labels}); got {threshold!r}")
    return np.broadcast_to(values, n_labels).copy()


def _names(Y: Any, label_names: Any) -> list[Any]:
    names = getattr(Y, "columns", None) if label_names is None else label_names
    n_labels = np.shape(Y)[1] if np.ndim(Y) == 2 or hasattr(Y, "tocsr") else 0
    names = list(range(n_labels) if names is None else names)
    if label_names is not None and len(names) != n_labels:
        raise MetricError(f"label_names has {len(names)} names but Y has {n_labels} labels")
    return names


def confusion_counts(
    Y: Any, decisions: Any, by: Literal["label", "row", "all"] = "label", *, label_names: Any = None, y_mask: Any = None
) -> pd.DataFrame:
    """Return true and false positives and negatives per label, per row, or of all cells.

    scikit-learn's ``multilabel_confusion_matrix`` has the same numbers as an array of shape (n_labels, 2, 2).

    Parameters
    ----------
    Y : array-like or sparse, shape (n_rows, n_labels), or tags
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed. The columns of a DataFrame are the names.
    decisions : array-like or sparse, shape (n_rows, n_labels), or tags
        Predicted labels, 0/1.
    by : {"label", "row", "all"}, default "label"
        What a row of the table stands for.
    label_names : sequence of str, optional
        Names of the labels, instead of the columns of Y; for tags, the labels to measure. By default the columns of Y,
        all tags, or numbers from 0.
    y_mask : array-like or sparse, shape (n_rows, n_labels), optional
        True where a label of Y was observed. Other cells are not counted.

    Returns
    -------
    DataFrame
        Columns ``tp``, ``fp``, ``fn``, ``tn``, indexed by label name, row number, or "all".

    Raises
    ------
    MetricError
        If an argument is not a non-empty matrix of such values, shapes differ, or ``by`` is unknown.

    Examples
    --------
    >>> from multilab.metrics import confusion_counts
    >>> confusion_counts([[1, 0], [0, 1], [1, 0]], [[1, 0], [1, 1], [1, 0]], label_names=["rain", "wind"])
           tp  fp  fn  tn
    label
    rain    2   1   0   0
    wind    1   0   0   2
    """
    import pandas as pd

    if by not in ("label", "row", "all"):
        raise MetricError(f'`by` must be "label", "row" or "all", got {by!r}')
    Y, decisions = without_tags(Y, decisions, label_names=label_names)
    truth = LabelSets(Y, y_mask=y_mask)
    names = _names(Y, label_names)
    of_rows, of_labels = (None, None) if truth.observed is None else truth.observed.sizes
    given = truth.chosen(Decisions(decisions), "decisions")
    counts = count_decisions(truth, given if truth.observed is None else given.hiding(truth.observed))
    n_rows, n_labels = truth.shape
    sizes, cells, index = {
        "label": (counts.by_label, n_rows if of_labels is None else of_labels, pd.Index(names, name="label")),
        "row": (counts.by_row, n_labels if of_rows is None else of_rows, pd.RangeIndex(n_rows, name="row")),
        "all": (counts.by_label.total(), counts.n_cells, pd.Index(["all"])),
    }[by]
    wrong = {"fp": sizes.predicted - sizes.hits, "fn": sizes.true - sizes.hits}
    table = pd.DataFrame({"tp": sizes.hits, **wrong}, index=index)
    table["tn"] = cells - sizes.hits - wrong["fp"] - wrong["fn"]
    return table


class OverAssigned(NamedTuple):
    """A label that is assigned far more often than it occurs; ``str`` gives it as text.

    Attributes
    ----------
    label : str or int
    rate : float
        Share of the rows that the decisions assign it to.
    frequency : float
        Share of the rows that have it.
    """

    label: Any
    rate: float
    frequency: float

    def __str__(self) -> str:
        name = visible(excerpt(self.label)) if isinstance(self.label, str) else f"label {self.label}"
        return f"{name} (assigned to {_percent(self.rate)}, {_percent(self.frequency)} have it)"


def over_assigned(labels: Iterable[Any], rates: Any, frequencies: Any) -> list[OverAssigned]:
    """Return the labels that decisions assign far more often than they occur.

    The rule: the share of rows with a positive decision exceeds ``max(3 * frequency, frequency + 0.2)``. Thresholds
    tuned for F1 do this to a label that the scores cannot predict, because assigning it to every row maximises its F1;
    such decisions are useless, however good the metric. `multilab compare` recommends no method with such a label;
    `multilab fit`, `multilab predict` and the model card name it.

    Parameters
    ----------
    labels : sequence
        Names or numbers of the labels.
    rates : array-like of shape (n_labels,)
        Share of the rows that each label is assigned to, on rows that the model was not fitted to.
    frequencies : array-like of shape (n_labels,)
        Share of the rows that have it; NaN where it was not observed.

    Returns
    -------
    list of OverAssigned
        The largest excess first.

    Examples
    --------
    >>> from multilab.metrics import over_assigned
    >>> [str(label) for label in over_assigned(["wet", "fog"], [0.3, 0.9], [0.2, 0.02])]
    ['fog (assigned to 90 %, 2 % have it)']
    """
    rate, frequency = np.asarray(rates, dtype=float), np.asarray(frequencies, dtype=float)
    excess = rate - np.maximum(3 * frequency, frequency + 0.2)
    each = [OverAssigned(*values) for values in zip(labels, rate.tolist(), frequency.tolist(), strict=True)]
    order = np.argsort(frequency - rate, kind="stable")
    return [each[j] for j in order if excess[j] > 1e-9]  # equal except for rounding is no excess


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"
