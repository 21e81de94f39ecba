"""All metrics of one prediction at once."""

from __future__ import annotations

from typing import Any

from multilab.metrics.auc import macro_auc_value, micro_auc_value
from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import FROM_COUNTS, count_decisions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import (
    Decisions,
    LabelSets,
    Scores,
    ThresholdedScores,
    refuse_other_shape,
    refuse_outside_unit_interval,
)
from multilab.metrics.registry import METRICS
from multilab.metrics.row_ranks import FROM_RANKS, rank_rows
from multilab.metrics.values import Value


def score_all(
    Y: Any,
    scores: Any,
    decisions: Any = None,
    threshold: float | None = None,
    conventions: str | Conventions = "default",
) -> dict[str, float]:
    """Measure one prediction by every metric of :data:`METRICS`.

    Memory beyond the arguments stays at a few blocks of 2 million cells and a few numbers per true label;
    truth and decisions may be sparse. The values do not depend on the order of the rows.

    Parameters
    ----------
    Y : array-like or sparse, shape (n_rows, n_labels)
        Truth, 0/1.
    scores : array-like or sparse, shape (n_rows, n_labels), or None
        Finite scores, larger = more relevant. With None the ranking metrics are computed on the decisions as
        crisp scores 0 and 1, where ties rule; that needs ``decisions``.
    decisions : array-like or sparse, shape (n_rows, n_labels), optional
        Predicted labels, 0/1. None: a label is predicted when its score is at least ``threshold`` (above it
        where the conventions say so: preset ``lamda``).
    threshold : float, optional
        Used only when ``decisions`` is None. None: 0.5, for scores in [0, 1] only. The threshold of scores from a
        ``decision_function`` is 0, as a rule.
    conventions : str or Conventions, default "default"
        A preset (default, uniform, sklearn, mulan, meka, lamda, matlab) or single rules; see
        :class:`Conventions`.

    Returns
    -------
    dict of str to float
        The keys of :data:`METRICS`, then ``n_skipped_<metric>`` for every metric that can leave out rows or
        labels (0 where it left out none). A metric without any row or label to average is ``nan``.

    Raises
    ------
    MetricError
        If an argument is not a non-empty matrix, shapes differ, Y or decisions hold anything but 0 and 1,
        scores are not finite, both scores and decisions are None, scores are outside [0, 1] without decisions or
        threshold, or the conventions refuse a row or label.
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
    counts = count_decisions(truth, given)
    ranks = rank_rows(truth, ranked, chosen)
    values: dict[str, Value] = {name: of(counts, chosen) for name, of in FROM_COUNTS.items()}
    values |= {name: of(ranks, chosen) for name, of in FROM_RANKS.items()}
    values["macro_auc"] = macro_auc_value(truth, ranked, chosen)
    values["micro_auc"] = micro_auc_value(truth, ranked, chosen)
    result: dict[str, float] = {name: values[name].value for name in METRICS}
    result |= {f"n_skipped_{m.name}": values[m.name].n_skipped for m in METRICS.values() if m.skips}
    return result
