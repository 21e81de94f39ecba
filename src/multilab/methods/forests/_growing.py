"""Forest of predictive clustering trees, grown with the trees of scikit-learn."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from multilab.methods.forests._compact import CompactForest

Kind = Literal["random", "extra"]
_KINDS = {"random": RandomForestRegressor, "extra": ExtraTreesRegressor}


def grow_forest(
    kind: Kind,
    X: np.ndarray,
    Y: np.ndarray,
    seed: int,
    n_jobs: int | None = 1,
    sample_weight: np.ndarray | None = None,
    **settings: Any,
) -> tuple[CompactForest, np.ndarray]:
    """Grow a forest of predictive clustering trees on all labels.

    A predictive clustering tree chooses the split that reduces the sum of the labels' variances most. The regression
    trees of scikit-learn reduce the mean of the outputs' variances, which is the same criterion up to the factor 1 / q.
    Classification trees would choose the same splits (the Gini index of a 0/1 output is twice its variance) but take up
    to three times as long with many labels. A label with one class changes no split: it is left out of the trees and
    its score is that class.

    Parameters
    ----------
    kind : {"random", "extra"}
        "random": bootstrap samples and the best threshold per candidate feature. "extra": all rows and one random
        threshold per candidate feature.
    X : ndarray of shape (n, d), float32, C-contiguous
    Y : ndarray of shape (n, q), 0/1
    seed : int
        Seed of the bootstrap samples and of the trees.
    n_jobs : int, optional
        Number of trees grown in parallel; does not change the result.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows, positive; scikit-learn draws bootstrap samples with probabilities in proportion to them.
        Weights that are all 1 are none.
    **settings
        Arguments of the scikit-learn forest. Unless they set ``max_features``, each split tries the square root of the
        number of features.

    Returns
    -------
    forest : CompactForest
    importances : ndarray of shape (d,)
        Impurity-based importances of the features; they sum to 1, or are all 0 if no tree has a split.
    """
    if sample_weight is not None and (sample_weight == 1).all():
        sample_weight = None
    varied = np.flatnonzero(Y.min(axis=0) != Y.max(axis=0))
    constant = Y[0].astype(np.float64)
    if not len(varied):
        return CompactForest.of((), varied, constant, X.shape[1]), np.zeros(X.shape[1])
    forest = _KINDS[kind](random_state=seed, n_jobs=n_jobs, **{"max_features": "sqrt", **settings})
    # one output is passed as a vector: a column would only add a warning
    forest.fit(X, Y[:, varied[0]] if len(varied) == 1 else Y[:, varied], sample_weight)
    trees = [one.tree_ for one in forest.estimators_]
    return CompactForest.of(trees, varied, constant, X.shape[1]), forest.feature_importances_


def single_precision(X: Any) -> np.ndarray:
    """Return X as a dense, C-contiguous float32 array, the type that scikit-learn trees compare with thresholds."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def seed_at(root: int, *position: int) -> int:
    """Return the seed of one component of a cascade; it depends on the root seed and its position only.

    So the result is the same in whatever order, or with how many jobs, the components are computed.
    """
    return int(np.random.SeedSequence(root, spawn_key=position).generate_state(1)[0])
