"""Metrics of probabilities: proper scores and the calibration error.

A label is one binary problem. Probabilities must be in [0, 1]; a margin has no value here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Entries
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.registry import metric

__all__ = ["brier_score", "expected_calibration_error", "log_loss"]


@metric(
    title="Log loss",
    direction="min",
    needs="probabilities",
    high=float(-np.log(np.finfo(float).eps)),
    group="probability",
    mean_over="cells",
    source="Good, JRSS B 14 (1952); mean over labels of scikit-learn's log_loss",
    filler="decisions",
    cell_weights=True,
    standard=False,
)
def log_loss(ranking: Ranking, conventions: Conventions) -> float:
    """Return the mean over cells of -log of the probability given to the true value of the label.

    The logarithm is natural. Probabilities are clipped to [eps, 1 - eps], with the eps of their floating-point type.

    Examples
    --------
    >>> from multilab.metrics import log_loss
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(log_loss(Y, scores), 4)
    0.4617
    """
    return _mean_over_cells(ranking, log_losses)


@metric(
    title="Brier score",
    direction="min",
    needs="probabilities",
    group="probability",
    mean_over="cells",
    source="Brier, Monthly Weather Review 78 (1950); mean over labels of scikit-learn's brier_score_loss",
    filler="decisions",
    cell_weights=True,
    standard=False,
)
def brier_score(ranking: Ranking, conventions: Conventions) -> float:
    """Return the mean over cells of the squared difference of probability and label.

    Examples
    --------
    >>> from multilab.metrics import brier_score
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(brier_score(Y, scores), 4)
    0.1511
    """
    return _mean_over_cells(ranking, squared_errors)


@metric(
    title="Expected calibration error",
    direction="min",
    needs="probabilities",
    group="probability",
    mean_over="labels",
    source="Naeini, Cooper & Hauskrecht, AAAI 2015",
    standard=False,
)
def expected_calibration_error(
    ranking: Ranking, conventions: Conventions, *, n_bins: int = 10, average: Literal["macro", "micro"] = "macro"
) -> np.ndarray | float:
    """Return the mean distance of mean probability and share of relevant cells in bins of equal width.

    A bin includes its right border, as in scikit-learn's ``calibration_curve``; bins are weighted by their cells. The
    error is not a proper score: constant probabilities equal to the prevalence have the value 0.

    Parameters
    ----------
    n_bins : int, default 10
        Number of bins of [0, 1].
    average : {"macro", "micro"}, default "macro"
        "macro" is the mean over labels, each with its own bins. "micro" has one set of bins for all cells, so that
        errors of opposite sign in different labels cancel.

    Examples
    --------
    >>> from multilab.metrics import expected_calibration_error
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(expected_calibration_error(Y, scores), 4)
    0.3333
    >>> round(expected_calibration_error(Y, scores, average="micro"), 4)
    0.2444
    """
    if average not in ("macro", "micro"):
        raise MetricError(f'`average` must be "macro" or "micro", got {average!r}')
    gaps, cells = calibration_gaps(ranking, n_bins)
    if average == "micro":
        return float(np.abs(gaps.sum(axis=0)).sum() / cells.sum())
    return np.abs(gaps).sum(axis=1) / cells


def calibration_gaps(ranking: Ranking, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of probability - label of each label in each bin, and the number of observed cells of each label.

    Cells are counted by the weights of their rows.

    Returns
    -------
    gaps : ndarray of shape (n_labels, n_bins)
    cells : ndarray of shape (n_labels,)
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise MetricError(f"`n_bins` must be an integer >= 1, got {n_bins!r}")
    truth, scores = ranking.truth, ranking.scores
    n_labels = truth.shape[1]
    borders = np.linspace(0, 1, n_bins + 1)[1:-1]
    gaps = np.zeros(n_labels * n_bins)
    for start, stop, entries in truth.parts:
        block = scores.rows(start, stop)
        bins = np.searchsorted(borders, block) + n_bins * np.arange(n_labels)
        values = np.where(np.isfinite(block), block, 0)
        weights = None if truth.weights is None else truth.weights[start:stop]
        if weights is not None:
            values = values * weights[:, None]
        gaps += np.bincount(bins.ravel(), values.ravel(), gaps.size)
        of_entries = None if weights is None else weights[entries.lists]
        gaps -= np.bincount(bins[entries.lists, entries.positions], of_entries, gaps.size)
    return gaps.reshape(n_labels, n_bins), np.broadcast_to(truth.label_lengths, n_labels)


def log_losses(scores: np.ndarray, entries: Entries) -> np.ndarray:
    """Return the log loss of each cell of a block, 0 where it is not observed."""
    eps = np.finfo(scores.dtype if scores.dtype.kind == "f" else float).eps
    p = scores.astype(np.float64)
    right = p[entries.lists, entries.positions]
    losses = -np.log(np.clip(1 - p, eps, 1 - eps))
    losses[entries.lists, entries.positions] = -np.log(np.clip(right, eps, 1 - eps))
    losses[np.isneginf(p)] = 0
    return losses


def squared_errors(scores: np.ndarray, entries: Entries) -> np.ndarray:
    """Return the squared error of each cell of a block, 0 where it is not observed."""
    errors = np.where(np.isfinite(scores), scores, 0.0).astype(np.float64, copy=False)
    errors[entries.lists, entries.positions] -= 1
    return np.square(errors, out=errors)


def _mean_over_cells(ranking: Ranking, losses: Callable[[np.ndarray, Entries], np.ndarray]) -> float:
    truth = ranking.truth
    if truth.cell_weights is not None:
        weighted = []
        for start, stop, entries in truth.parts:
            weighted += (
                (truth.cell_weights.rows(start, stop) * losses(ranking.scores.rows(start, stop), entries))
                .sum(axis=1)
                .tolist()
            )
        return math.fsum(weighted) / truth.n_cells
    sums = ranking.per_row(losses.__name__, lambda scores, entries: losses(scores, entries).sum(axis=1))
    cells = ranking.per_row("cells", lambda scores, entries: np.isfinite(scores).sum(axis=1))
    weights = ranking.weights
    if weights is None:
        return math.fsum(sums.tolist()) / int(cells.sum())
    return math.fsum((weights * sums).tolist()) / math.fsum((weights * cells).tolist())
