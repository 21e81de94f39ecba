"""Grow a forest of predictive clustering trees with scikit-learn's trees."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from multilab.methods.forests.compact import CompactForest

__all__ = ["Kind", "grow_forest", "seed_at", "single_precision"]

Kind = Literal["random", "extra"]
_KINDS = {"random": RandomForestRegressor, "extra": ExtraTreesRegressor}


def grow_forest(
    kind: Kind, X: np.ndarray, Y: np.ndarray, seed: int, n_jobs: int | None = 1, **settings: Any
) -> tuple[CompactForest, np.ndarray]:
    """Grow a forest and return it in its compact form, with the importances of the features (summing to 1, or 0).

    scikit-learn's regression trees reduce the mean of the outputs' variances, which is what defines a predictive
    clustering tree; its classification trees order splits alike (the Gini index of a 0/1 output is twice its variance)
    and take up to three times as long with many labels. A label with one class adds nothing to any split, so it is left
    out and its score is that class.

    Parameters
    ----------
    kind : {"random", "extra"}
        Bootstrap samples and best thresholds, or all rows and one random threshold per candidate feature.
    X : ndarray of shape (n, d), float32, C-contiguous
    Y : ndarray of shape (n, q), 0/1
    seed : int
    n_jobs : int, optional
        Trees grown at the same time; does not change the result.
    **settings
        Arguments of scikit-learn's forest; the square root of the features is tried per split where they do not say.
    """
    varied = np.flatnonzero(Y.min(axis=0) != Y.max(axis=0))
    constant = Y[0].astype(np.float64)
    if not len(varied):
        return CompactForest.of((), varied, constant, X.shape[1]), np.zeros(X.shape[1])
    forest = _KINDS[kind](random_state=seed, n_jobs=n_jobs, **{"max_features": "sqrt", **settings})
    forest.fit(X, Y[:, varied[0]] if len(varied) == 1 else Y[:, varied])
    trees = [one.tree_ for one in forest.estimators_]
    return CompactForest.of(trees, varied, constant, X.shape[1]), forest.feature_importances_


def single_precision(X: Any) -> np.ndarray:
    """Return X dense, float32 and C-contiguous: what the trees compare with their thresholds."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def seed_at(root: int, *place: int) -> int:
    """Return the seed of one part of a cascade, whatever is computed beside or before it."""
    return int(np.random.SeedSequence(root, spawn_key=place).generate_state(1)[0])
