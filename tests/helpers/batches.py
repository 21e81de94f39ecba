"""Batches of rows, and what a classifier that learns from them exactly must give."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

__all__ = ["assert_exact", "batches_of", "make_rows"]


def make_rows() -> tuple[np.ndarray, np.ndarray]:
    """Return 300 rows with a constant column, and labels of which the last one has a class of a single row."""
    random = np.random.default_rng(0)
    X = random.random((300, 9)) * [1, 1, 1, 1, 1, 1, 1, 1, 0] + 0.5
    scores = X @ random.normal(size=(9, 4))
    Y = (scores > np.median(scores, axis=0)).astype(int)
    Y[:, 3] = 0
    Y[5, 3] = 1
    return X, Y


def batches_of(X: Any, Y: np.ndarray, sizes: tuple[int, ...] = (1, 150, 7, 142)) -> list[tuple[Any, np.ndarray]]:
    """Return the rows in batches of some sizes."""
    stops = np.cumsum(sizes)
    return [(X[stop - size : stop], Y[stop - size : stop]) for size, stop in zip(sizes, stops, strict=True)]


def assert_exact(model: Any, X: Any, Y: np.ndarray, rtol: float = 1e-8) -> None:
    """Assert that batches give the scores of a fit to all rows, and each `partial_fit` those of the rows so far."""
    whole, batches = clone(model).fit(X, Y), batches_of(X, Y)
    learned = [(clone(model).fit_batches(batches), whole)]
    if hasattr(model, "partial_fit"):
        few = clone(model)
        for rows, labels in batches[:2]:
            few.partial_fit(rows, labels)
        learned.append((few, clone(model).fit(X[:151], Y[:151])))
        every = clone(few).fit(X[:9], Y[:9])  # a fit before is forgotten
        for rows, labels in batches:
            every.partial_fit(rows, labels)
        np.testing.assert_array_equal(every.decision_function(X), learned[0][0].decision_function(X))
    for found, expected in learned:
        scores = expected.decision_function(X)
        np.testing.assert_allclose(found.decision_function(X), scores, rtol=rtol, atol=rtol * np.abs(scores).max())
