"""Calibration of base scores, and the ways to combine them into one probability per row and label.

Base scores have shape (m, n, q): classifier, row, label. Log-odds of calibrated scores have the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from multilab.methods.solvers.solve import solve
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.stacking.objective import StackingLoss, cosine_affinity, label_coupling
from multilab.methods.ties import round_to_grid
from multilab.metrics.registry import Metric

CANDIDATES = ("mean", "greedy", "l1", "l21")
_LEAST = 1e-3  # probabilities of classifiers are moved into [.001, .999] before logarithms: votes are often 0 or 1
_SMALL = 1e-6  # least probability before a logarithm, and ridge of an intercept
_SLOPE_RIDGE = 5.0  # of the slope of a recalibration, around 1
_GREEDY_CELLS = 200_000  # greedy selection computes the metric on evenly spaced rows with about this many cells
_GAP, _KKT, _STEPS = 1e-3, 1e-6, 200  # of MLWSE's solver
_MLWSE = {"l1": MLWSE(penalty="l1", beta=1e-3), "l21": MLWSE(penalty="l21", alpha=0.05, beta=1e-2)}
_STRENGTHS = (0.8, 0.5, 0.2)  # of MLWSE's penalty: shares of the least one that leaves the weighted mean as it is


def log_odds(probabilities: np.ndarray, least: float = _SMALL) -> np.ndarray:
    """Return log(p / (1 - p)) of probabilities moved into [least, 1 - least]."""
    return logit(np.clip(probabilities, least, 1.0 - least))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Platt's sigmoid per classifier and label, of log-odds where the scores of a classifier are in [0, 1].

    Attributes
    ----------
    probability : ndarray of shape (m,), bool
    slope, offset : ndarray of shape (m, 1, q)
    """

    probability: np.ndarray
    slope: np.ndarray
    offset: np.ndarray

    @classmethod
    def fit(cls, scores: np.ndarray, Y: np.ndarray, first: Calibration | None = None) -> Calibration:
        """Fit to out-of-fold scores; Newton's method starts at ``first``, a calibration on more rows."""
        targets = softened(Y)
        if first is None:
            inside = np.array([one.min() >= 0 and one.max() <= 1 for one in scores])
            share = np.broadcast_to(log_odds(targets.mean(axis=0)), (len(scores), 1, Y.shape[1]))
            first = cls(inside, np.zeros(share.shape), share)
        slope, offset = np.empty(first.slope.shape), np.empty(first.slope.shape)
        for k, margins in enumerate(first.margins(scores)):
            scale = float(np.abs(margins).max()) or 1.0
            design = np.stack([margins.T / scale, np.ones_like(margins.T)], axis=1)
            start = np.column_stack([first.slope[k, 0] * scale, first.offset[k, 0]])
            weights = fit_logistic(design, targets, start, 1e-6)
            slope[k, 0], offset[k, 0] = weights[:, 0] / scale, weights[:, 1]
        return cls(first.probability, slope, offset)

    def margins(self, scores: np.ndarray) -> np.ndarray:
        """Return the inputs of the sigmoids: log-odds of probabilities, and other scores unchanged."""
        kinds = zip(scores, self.probability, strict=True)
        return np.stack([log_odds(one, _LEAST) if kind else one for one, kind in kinds])

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-odds of the calibrated scores."""
        return self.slope * self.margins(scores) + self.offset


def constant_labels(Y: np.ndarray) -> np.ndarray:
    """Return 1 for labels that every row has, 0 for labels that no row has, NaN for the others, shape (q,)."""
    return np.where(Y.all(axis=0), 1.0, np.where(Y.any(axis=0), np.nan, 0.0))


def with_constants(P: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return probabilities (n, q) with those of `constant_labels` where they are not NaN."""
    return np.where(np.isnan(constant), P, constant)


@dataclass(frozen=True, eq=False)
class Combination:
    """Weighted sums of probabilities, their log-odds recalibrated per label.

    Attributes
    ----------
    weights : ndarray of shape (m, q, q)
        Weight of each classifier's probability of a label (axis 1) in the sum of a label (axis 2).
    line : ndarray of shape (q, 2)
        Slope and offset per label.
    """

    weights: np.ndarray
    line: np.ndarray

    @classmethod
    def fit(cls, weights: np.ndarray, P: np.ndarray, Y: np.ndarray) -> Combination:
        """Fit the recalibration, with a ridge around the identity."""
        return cls(weights, _fit_lines(_sum_margins(weights, P), Y))

    @property
    def used(self) -> np.ndarray:
        """Whether the probabilities depend on a classifier, shape (m,)."""
        return np.asarray(self.weights.any(axis=(1, 2)))

    def __call__(self, L: np.ndarray) -> np.ndarray:
        """Return probabilities (n, q) of log-odds (m, n, q)."""
        return expit(round_to_grid(self.line[:, 0] * _sum_margins(self.weights, expit(L)) + self.line[:, 1]))


def fit_combinations(
    names: Sequence[str], L: np.ndarray, Y: np.ndarray, metric: Metric, n_rounds: int
) -> dict[str, Combination]:
    """Fit combinations to the log-odds (m, n, q) of calibrated out-of-fold scores.

    Returns
    -------
    dict of str to Combination
        By name; with its strength behind it for a penalty, as ``"l21_0.8"``.
    """
    P, own = expit(L), np.eye(Y.shape[1])
    weights: dict[str, np.ndarray] = {}
    if "mean" in names:
        weights["mean"] = np.full(len(P), 1.0 / len(P))[:, None, None] * own
    if set(names) - {"mean"}:
        greedy = greedy_weights(P, Y, metric, n_rounds)[:, None, None] * own
        if "greedy" in names:
            weights["greedy"] = greedy
        for name in names:
            if name in _MLWSE:
                weights |= {f"{name}_{share:g}": greedy + change for share, change in corrections(name, P, Y, greedy)}
    return {name: Combination.fit(W, P, Y) for name, W in weights.items()}


def corrections(name: str, P: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
    """Yield MLWSE's weights (m, q, q) for what a weighted mean leaves of the labels, by strength of the penalty."""
    S, start = np.hstack(list(P)), weights.reshape(-1, Y.shape[1])
    rest = Y - S @ start
    estimator, H = _MLWSE[name], label_coupling(cosine_affinity(Y), "laplacian")
    loss = StackingLoss.from_scores(S - S.mean(axis=0), rest - rest.mean(axis=0), H, estimator.beta)
    penalty, change = estimator.unit_penalty(*loss.cross.shape), np.zeros(loss.cross.shape)
    for share in _STRENGTHS:
        strength = share * penalty.alpha_max(loss.cross)
        change = solve(loss, penalty.scaled(strength), change, tol=_GAP, kkt_tol=_KKT, max_iter=_STEPS).W
        yield share, change.reshape(weights.shape)


def greedy_weights(P: np.ndarray, Y: np.ndarray, metric: Metric, n_rounds: int) -> np.ndarray:
    """Return the weights (m,) of a mean to which the best classifier is added ``n_rounds`` times, with replacement."""
    step = max(1, Y.size // _GREEDY_CELLS)
    P, Y = P[:, ::step], Y[::step]
    counts, total = np.zeros(len(P)), np.zeros(Y.shape)
    for size in range(1, n_rounds + 1):
        values = [higher_is_better(metric, Y, (total + one) / size) for one in P]
        best = int(np.argmax(values))
        counts[best] += 1
        total += P[best]
    return counts / n_rounds


def higher_is_better(metric: Metric, Y: np.ndarray, scores: np.ndarray) -> float:
    """Return the metric, negated where smaller is better; undefined values are the worst."""
    if metric.name == "log_loss":  # without the checks of its input, many times in greedy selection
        return float(np.log(np.maximum(np.where(Y > 0, scores, 1.0 - scores), _SMALL)).mean())
    value = metric.function(Y, scores)
    return -np.inf if np.isnan(value) else value if metric.direction == "max" else -value


def _sum_margins(weights: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Return the log-odds (n, q) of weighted sums of probabilities (m, n, q)."""
    return log_odds(np.hstack(list(P)) @ weights.reshape(-1, weights.shape[-1]), _LEAST)


def _fit_lines(margins: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return slope and offset per label, (q, 2), of the sigmoid of margins, with a ridge around the identity."""
    design = np.stack([margins.T, np.ones_like(margins.T)], axis=1)
    first = np.tile((1.0, 0.0), (Y.shape[1], 1))
    return fit_logistic(design, softened(Y), first, np.array([_SLOPE_RIDGE, _SMALL]))


_STEPS = 50  # Newton steps, a bound only
_HALVINGS = 30  # of a Newton step; after as many it would change nothing
_TOLERANCE = 1e-8  # of the gradient of a row, in the mean

Array = np.ndarray


def softened(Y: Array) -> Array:
    """Return Platt's targets of shape (n, q): (n1 + 1) / (n1 + 2) for ones and 1 / (n0 + 2) for zeros of a label."""
    ones = Y.sum(axis=0)
    return np.where(Y > 0, (ones + 1.0) / (ones + 2.0), 1.0 / (len(Y) - ones + 2.0))


def fit_logistic(F: Array, T: Array, start: Array, ridge: Any) -> Array:
    """Return the weights of a logistic regression per label on features of its own, by Newton's method.

    Parameters
    ----------
    F : ndarray of shape (q, k, n)
        Features of each label.
    T : ndarray of shape (n, q)
        Targets in [0, 1].
    start : ndarray of shape (q, k)
        First weights, and the centre of the ridge.
    ridge : float or ndarray of shape (k,)
        Strength of the ridge of each weight.

    Returns
    -------
    ndarray of shape (q, k)
    """
    ridge = np.broadcast_to(ridge, F.shape[1])
    smallest = np.diag(ridge + 1e-9)  # equal scores leave the slope free: keep it where it is
    T, weights = np.ascontiguousarray(T.T), start.copy()

    def loss(w: Array) -> tuple[Array, Array]:
        z = np.matmul(w[:, None], F)[:, 0]
        small = np.exp(-np.abs(z))
        cross = np.maximum(z, 0.0) + np.log1p(small) - T * z
        value = cross.sum(axis=1) + 0.5 * (ridge * (w - start) ** 2).sum(axis=1)
        return value, np.where(z >= 0, 1.0, small) / (1.0 + small)

    value, p = loss(weights)
    for _ in range(_STEPS):
        gradient = np.matmul(F, (p - T)[:, :, None])[:, :, 0] + ridge * (weights - start)
        if np.abs(gradient).max() <= _TOLERANCE * T.shape[1]:
            break
        hessian = np.matmul(F * (p * (1.0 - p))[:, None], F.transpose(0, 2, 1)) + smallest
        change = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        step = np.ones((len(weights), 1))
        for _ in range(_HALVINGS):
            tried, p = loss(weights + step * change)
            worse = tried > value + 1e-10 * np.abs(value)
            if not worse.any():
                break
            step[worse] /= 2.0
        else:
            step[worse] = 0.0
            tried, p = loss(weights + step * change)
        weights, value = weights + step * change, tried
    return weights
