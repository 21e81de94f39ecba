# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Regions of feature interactions and their features: confidence score of a row, label distribution of a region."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from multilab.methods.forests._compact import float32_below
from multilab.methods.forests._paths import ABOVE

Confidence = Literal["corner", "boundary"]
LabelRepresentation = Literal["aggregated", "per_interaction"]
_SUPPORT = (0.01, 0.95)
_ROWS = 5


@dataclass(frozen=True, eq=False)
class Regions:
    """K regions, each the conjunction of conditions ``x_j <= t`` or ``x_j > t``; C conditions in all, concatenated.

    Attributes
    ----------
    starts : ndarray of shape (K + 1,)
        Offsets of the conditions of each region.
    columns : ndarray of shape (C,), int
        Column j of each condition.
    above : ndarray of shape (C,), bool
        Whether the condition is ``x_j > t``.
    thresholds : ndarray of shape (C,), float32
    units : ndarray of shape (C,), float32
        1 / range of column j in training, 0 for a constant column.
    labels : ndarray of shape (K, q), float32
        p_k, the share of the training rows in region k that have each label.
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
        """Return the membership of rows in the regions and their confidence scores f^feature, both (n, K).

        Parameters
        ----------
        Z : ndarray of shape (n, d), float32
        confidence : {"corner", "boundary"}
            "corner" is the formula of the iMLDF paper (section 3.1), sum_j |x_j - t_j| over the conditions. Its text
            calls this the distance to the boundary, which is the smallest |x_j - t_j|: "boundary". Both are in units of
            the ranges of the columns (the paper has no scaling), and 0 outside the region.
        """
        member = np.ones((len(self), len(Z)), dtype=bool)  # (K, n)
        distance = np.full(member.shape, 0.0 if confidence == "corner" else np.inf, dtype=np.float32)
        used, index = np.unique(self.columns, return_inverse=True)
        table = np.ascontiguousarray(Z[:, used].T)  # (columns in use, n): each condition reads one contiguous row
        add = np.add if confidence == "corner" else np.minimum
        for k in range(len(self)):
            for i in range(self.starts[k], self.starts[k + 1]):
                column, limit = table[index[i]], self.thresholds[i]
                member[k] &= column > limit if self.above[i] else column <= limit
                add(distance[k], np.abs(column - limit) * self.units[i], out=distance[k])
        distance[~member] = 0.0
        return member.T, distance.T

    def represent(
        self, Z: np.ndarray, confidence: Confidence | None, label_repr: LabelRepresentation | None
    ) -> np.ndarray:
        """Return the interaction representation of rows, float32.

        Parameters
        ----------
        Z : ndarray of shape (n, d), float32
        confidence : {"corner", "boundary"} or None
            Form of f^feature, K columns; None leaves them out.
        label_repr : {"aggregated", "per_interaction"} or None
            Form of f^label: the mean of p_k over the regions of the row (q columns, 0 without a region), or p_k of each
            region (K q columns, 0 outside). None leaves it out.

        Returns
        -------
        ndarray of shape (n, K + q), (n, K + K q) or narrower
        """
        member, distance = self.inside(Z, confidence or "corner")
        parts = [distance] if confidence else []
        if label_repr == "aggregated":
            active = np.maximum(member.sum(axis=1, keepdims=True), 1)  # (n, 1) number of regions of the row
            parts.append(member.astype(np.float32) @ self.labels / active)
        elif label_repr == "per_interaction":
            parts.append((member[:, :, None] * self.labels).reshape(len(Z), -1))
        return np.hstack(parts).astype(np.float32) if parts else np.empty((len(Z), 0), dtype=np.float32)


def chosen_regions(
    candidates: Iterable[tuple[tuple[int, ...], np.ndarray, float]], Z: np.ndarray, Y: np.ndarray, n_regions: int
) -> Regions:
    """Return the first ``n_regions`` candidates that contain neither too few nor too many training rows.

    Parameters
    ----------
    candidates : iterable of (signs, thresholds, stability)
        In descending order of stability; a sign is ``2 column + side``.
    Z : ndarray of shape (n, d), float32
        Training rows. A region must contain at least 1 % of them, at least 5, and at most 95 %.
    Y : ndarray of shape (n, q), 0/1
    n_regions : int
        Upper bound of the number of regions.

    Returns
    -------
    Regions
        With the label shares p_k of the training rows. The denominator of f^label, printed equal to its numerator in
        the iMLDF paper, is the number of rows in the region.
    """
    least, most = max(_ROWS, _SUPPORT[0] * len(Z)), _SUPPORT[1] * len(Z)
    conditions: list[tuple[np.ndarray, np.ndarray]] = []
    labels = []
    for signs, limits, _ in candidates:
        if len(conditions) == n_regions:
            break
        sides, limits = np.array(signs), float32_below(limits)
        column = Z[:, sides // 2]  # (n, conditions)
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
