"""The regions of feature interactions, and the features they give: how deep inside, and which labels are there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from multilab.methods.forests.compact import float32_below
from multilab.methods.forests.paths import ABOVE

__all__ = ["Confidence", "LabelRepresentation", "Regions", "chosen_regions"]

Confidence = Literal["corner", "boundary"]
LabelRepresentation = Literal["aggregated", "per_interaction"]
_SUPPORT = (0.01, 0.95)
_ROWS = 5


@dataclass(frozen=True, eq=False)
class Regions:
    """Conjunctions of conditions ``x_j <= t`` or ``x_j > t``, one after another.

    Attributes
    ----------
    starts : ndarray of shape (K + 1,)
        Where the conditions of each region begin.
    columns : ndarray of int
    above : ndarray of bool
    thresholds : ndarray of float32
    units : ndarray of float32
        One over the range of the condition's column in training (0 for a constant one).
    labels : ndarray of shape (K, q), float32
        p_k, the share of the training rows inside that have each label.
    """

    starts: np.ndarray
    columns: np.ndarray
    above: np.ndarray
    thresholds: np.ndarray
    units: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def inside(self, Z: np.ndarray, confidence: Confidence = "corner") -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are in which region, and how far from its thresholds (0 outside), both (n, K).

        ``corner`` adds the distances of a row to all thresholds, in units of the columns' ranges, as the paper's
        formula does; ``boundary`` takes the least, the distance to the nearest side.
        """
        member = np.ones((len(self), len(Z)), dtype=bool)
        distance = np.full(member.shape, 0.0 if confidence == "corner" else np.inf, dtype=np.float32)
        used, place = np.unique(self.columns, return_inverse=True)
        table = np.ascontiguousarray(Z[:, used].T)
        add = np.add if confidence == "corner" else np.minimum
        for k in range(len(self)):
            for i in range(self.starts[k], self.starts[k + 1]):
                column, limit = table[place[i]], self.thresholds[i]
                member[k] &= column > limit if self.above[i] else column <= limit
                add(distance[k], np.abs(column - limit) * self.units[i], out=distance[k])
        distance[~member] = 0.0
        return member.T, distance.T

    def represent(
        self, Z: np.ndarray, confidence: Confidence | None, label_repr: LabelRepresentation | None
    ) -> np.ndarray:
        """Return the new features of rows, shape (n, K + q), (n, K + K q) or less, float32."""
        member, distance = self.inside(Z, confidence or "corner")
        parts = [distance] if confidence else []
        if label_repr == "aggregated":
            active = np.maximum(member.sum(axis=1, keepdims=True), 1)
            parts.append(member.astype(np.float32) @ self.labels / active)
        elif label_repr == "per_interaction":
            parts.append((member[:, :, None] * self.labels).reshape(len(Z), -1))
        return np.hstack(parts).astype(np.float32) if parts else np.empty((len(Z), 0), dtype=np.float32)


def chosen_regions(
    candidates: Iterable[tuple[tuple[int, ...], np.ndarray, float]], Z: np.ndarray, Y: np.ndarray, n_regions: int
) -> Regions:
    """Return the first regions that are neither nearly empty nor nearly everything.

    Parameters
    ----------
    candidates : iterable of (signs, thresholds, stability)
        The best first; a sign is ``2 column + side``.
    Z : ndarray of shape (n, d), float32
        Training rows; from 1 % of them (at least 5) to 95 % must be inside.
    Y : ndarray of shape (n, q), 0/1
    n_regions : int
        How many at most.
    """
    least, most = max(_ROWS, _SUPPORT[0] * len(Z)), _SUPPORT[1] * len(Z)
    conditions: list[tuple[np.ndarray, np.ndarray]] = []
    labels = []
    for signs, limits, _ in candidates:
        if len(conditions) == n_regions:
            break
        sides, limits = np.array(signs), float32_below(limits)
        column = Z[:, sides // 2]
        member = np.where(sides % 2 == ABOVE, column > limits, column <= limits).all(axis=1)
        if least <= member.sum() <= most:
            conditions.append((sides, limits))
            labels.append(Y[member].mean(axis=0))
    signs_ = np.concatenate([np.empty(0, dtype=np.int64), *(sides for sides, _ in conditions)])
    columns = signs_ // 2
    span = np.ptp(Z[:, columns], axis=0) if len(columns) else np.empty(0, dtype=np.float32)
    return Regions(
        np.cumsum([0, *(len(sides) for sides, _ in conditions)]),
        columns.astype(np.int32),
        signs_ % 2 == ABOVE,
        np.concatenate([np.empty(0, dtype=np.float32), *(limits for _, limits in conditions)]),
        np.divide(1.0, span, out=np.zeros_like(span), where=span > 0),
        np.array(labels, dtype=np.float32).reshape(len(labels), Y.shape[1]),
    )
