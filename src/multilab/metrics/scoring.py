"""All metrics of one prediction at once."""

from __future__ import annotations

from typing import Any

from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import DecisionCounts, count_decisions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import (
    Decisions,
    LabelSets,
    Scores,
    ThresholdedScores,
    refuse_other_shape,
    refuse_outside_unit_interval,
)
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.registry import METRICS


def score_all(
    Y: Any,
    scores: Any,
    decisions: Any = None,
    threshold: float | None = None,
    conventions: str | Conventions = "default",
) -> dict[str, float]:
    """Compute every metric of :data:`METRICS` for one prediction.

    Additional memory is a few blocks of 2 million cells and a few numbers per true label; true labels and decisions
    may be sparse. The values do not depend on the order of the rows.

    Parameters
    ----------
    Y : array-like or sparse, shape (n_rows, n_labels)
        True labels, 0/1.
    scores : array-like or sparse, shape (n_rows, n_labels), or None
        Finite scores, larger means more relevant. None: the ranking metrics are computed on the decisions as
        scores 0 and 1, where the tie rules decide; this requires ``decisions``.
    decisions : array-like or sparse, shape (n_rows, n_labels), optional
        Predicted labels, 0/1. None: a label is predicted when its score is at least ``threshold`` (above it
        under the conventions ``lamda``).
    threshold : float, optional
        Used only if ``decisions`` is None. None: 0.5, for scores in [0, 1] only. The threshold of scores from a
        ``decision_function`` is usually 0.
    conventions : str or Conventions, default "default"
        A preset (default, uniform, sklearn, mulan, meka, lamda, matlab) or single rules; see
        :class:`Conventions`.

    Returns
    -------
    dict of str to float
        The keys of :data:`METRICS`, then ``n_skipped_<metric>`` for every metric that can leave out rows or
        labels. A metric without any row or label to average is ``nan``.

    Raises
    ------
    MetricError
        If an argument is not a non-empty matrix, shapes differ, Y or decisions hold anything but 0 and 1,
        scores are not finite, both scores and decisions are None, scores are outside [0, 1] without decisions or
        threshold, or the conventions refuse a row or label.

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
    """
    chosen = resolve(conventions)
    if scores is None and decisions is None:
        raise MetricError("score_all needs scores, decisions, or both; got neither")
    truth = LabelSets(Y)
    ranked = Scores(decisions, "decisions") if scores is None else Scores(scores)
    refuse_other_shape(truth, "Y", ranked, "decisions" if scores is None else "scores")
    if decisions is None and threshold is None:
        refuse_outside_unit_interval(ranked)
    at = 0.5 if threshold is None else threshold
    given = ThresholdedScores(ranked, at, chosen.decision) if decisions is None else Decisions(decisions)
    measured: dict[str, DecisionCounts | Ranking] = {
        "decisions": count_decisions(truth, given),
        "scores": Ranking(truth, ranked, chosen),
    }
    values = {name: metric.value(measured[metric.needs], chosen) for name, metric in METRICS.items()}
    result = {name: value.value for name, value in values.items()}
    return result | {f"n_skipped_{name}": values[name].n_skipped for name, m in METRICS.items() if m.skips}
