"""All metrics of one prediction at once: `score_all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import DecisionCounts, count_decisions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import (
    Decisions,
    Scores,
    ThresholdedScores,
    refuse_outside_unit_interval,
    without_tags,
)
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.label_sets import LabelSets, observed_only
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import METRICS, Value, all_defined, values_of


def score_all(
    Y: Any,
    scores: Any,
    decisions: Any = None,
    threshold: float | None = None,
    conventions: str | Conventions = "default",
    *,
    metrics: Iterable[MetricLike] | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    y_mask: Any = None,
) -> dict[str, float]:
    """Compute every metric of :data:`METRICS`, or those that are named, for one prediction.

    Additional memory is a few blocks of 2 million cells and a few numbers per true label; true labels and decisions
    may be sparse. The values do not depend on the order of the rows.

    Parameters
    ----------
    Y : array-like or sparse, shape (n_rows, n_labels), or tags
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed.
    scores : array-like or sparse, shape (n_rows, n_labels), or None
        Finite scores, larger means more relevant. If None, the ranking metrics are computed on the decisions as scores
        0 and 1, where the tie rules decide; this requires ``decisions``.
    decisions : array-like or sparse, shape (n_rows, n_labels), or tags, optional
        Predicted labels, 0/1. If None, a label is predicted when its score is at least ``threshold`` (above it under
        the conventions ``lamda``).
    threshold : float, optional
        Used only if ``decisions`` is None. The default is 0.5, for scores in [0, 1] only. The threshold of scores from
        a ``decision_function`` is usually 0.
    conventions : str or Conventions, default "default"
        A preset (default, uniform, sklearn, mulan, meka, lamda, matlab) or single rules; see
        :class:`Conventions`.
    metrics : iterable of str or callable, optional
        Names of metrics, which have their default parameters and need not be in :data:`METRICS`; scorers; or functions
        of your own, see the guide page *your own metric*.
    sample_weight : array-like of shape (n_rows,) or (n_rows, n_labels), optional
        Weights of the rows, >= 0. A row of weight 2 counts like two rows, a row of weight 0 does not count. Weights of
        single cells are only for metrics that are sums over cells.
    labels : sequence of int or str, optional
        The labels to measure, by position, or by name if Y is a data frame. By default all.
    y_mask : array-like or sparse, shape (n_rows, n_labels), optional
        True where a label of Y was observed. Other cells count as if they did not exist.

    Returns
    -------
    dict of str to float
        Values by the names of the metrics, followed by ``n_skipped_<metric>`` for every metric that can leave out rows
        or labels; a row counts once there, whatever its weight. A metric without any row or label to average is
        ``nan``.

    Raises
    ------
    MetricError
        If an argument is not a non-empty matrix, shapes differ, Y or decisions hold anything but 0 and 1,
        scores are not finite, both scores and decisions are None, scores are outside [0, 1] without decisions or
        threshold or are measured as probabilities, a metric is unknown, weights or labels are wrong, or the conventions
        refuse a row or label.

    Examples
    --------
    >>> from multilab.metrics import score_all
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> values = score_all(Y, scores)
    >>> values["ranking_loss"], values["n_skipped_ranking_loss"]
    (0.25, 1)
    >>> values = score_all(Y, scores, conventions="mulan")
    >>> values["ranking_loss"], values["n_skipped_ranking_loss"]
    (0.0, 0)
    >>> score_all(Y, scores, metrics=["macro_f1", "brier_score"])
    {'macro_f1': 0.5555555555555555, 'brier_score': 0.15111111111111108, 'n_skipped_macro_f1': 0}
    """
    chosen = resolve(conventions)
    if scores is None and decisions is None:
        raise MetricError("score_all needs scores, decisions, or both; got neither")
    chosen_metrics = METRICS if metrics is None else all_defined(metrics)
    Y, scores, decisions = without_tags(Y, scores, decisions, names=("Y", "scores", "decisions"))
    truth = LabelSets(Y, "Y", y_mask, sample_weight, labels)
    name = "decisions" if scores is None else "scores"
    ranked = truth.chosen(Scores(decisions if scores is None else scores, name), name)
    if decisions is None and threshold is None:
        refuse_outside_unit_interval(ranked)
    elif any(metric.needs == "probabilities" for metric in chosen_metrics.values()):
        refuse_outside_unit_interval(ranked, decided=False)
    measured_truth, ranked = observed_only(truth, ranked)
    at = 0.5 if threshold is None else threshold
    given = (
        ThresholdedScores(ranked, at, chosen.decision)
        if decisions is None
        else observed_only(truth, truth.chosen(Decisions(decisions), "decisions"))[1]
    )
    ranking = Ranking(measured_truth, ranked, chosen)
    measured: dict[str, DecisionCounts | Ranking] = {
        "decisions": count_decisions(measured_truth, given),
        "scores": ranking,
        "probabilities": ranking,
    }
    counted = {name: metric for name, metric in chosen_metrics.items() if metric.counted}
    values = values_of(counted, measured, chosen)
    if len(counted) < len(chosen_metrics):  # functions of one's own get the matrices
        scored = decisions if scores is None else scores
        if decisions is None:
            matrix = Scores(scored)
            decisions = ThresholdedScores(matrix, at, chosen.decision).rows(0, matrix.shape[0])
        own = {"sample_weight": sample_weight, "labels": labels, "y_mask": y_mask}
        values |= {
            name: Value(metric.function(Y, decisions if metric.needs == "decisions" else scored, chosen, **own))
            for name, metric in chosen_metrics.items()
            if not metric.counted
        }
    result = {name: values[name].value for name in chosen_metrics}
    return result | {f"n_skipped_{name}": values[name].n_skipped for name, m in chosen_metrics.items() if m.skips}
