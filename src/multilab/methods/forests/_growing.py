# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Forest of predictive clustering trees, grown with the trees of scikit-learn."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.tree._tree import Tree

from multilab.methods.forests._compact import CompactForest

Kind = Literal["random", "extra"]
_KINDS = {"random": DecisionTreeRegressor, "extra": ExtraTreeRegressor}
_MOST = np.iinfo(np.int32).max  # the seeds of the trees of a scikit-learn forest are below


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

    The trees are those of `RandomForestRegressor` and `ExtraTreesRegressor` with the same seed, bit by bit, without
    what these do around each tree, which on a hundred rows takes longer than the tree.

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
        Number of threads that grow trees; does not change the result.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows, positive; bootstrap samples are drawn with probabilities in proportion to them. Weights
        that are all 1 are none.
    **settings
        ``n_estimators``, and arguments of the trees. Unless they set ``max_features``, each split tries the square root
        of the number of features.

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
    settings = {"max_features": "sqrt", **settings}
    seeds = np.random.RandomState(seed).randint(_MOST, size=settings.pop("n_estimators", 100))
    parts = np.array_split(seeds, min(len(seeds), effective_n_jobs(n_jobs)))
    grown = Parallel(n_jobs=len(parts), prefer="threads")(
        delayed(fit_trees)(_KINDS[kind](**settings), _samples(kind, X, sample_weight, part), Y[:, varied])
        for part in parts
    )
    trees = [tree for part in grown for tree in part]
    return CompactForest.of(trees, varied, constant, X.shape[1]), _importances(trees, X.shape[1])


def fit_trees(
    tree: DecisionTreeRegressor, samples: Iterable[tuple[np.ndarray, np.ndarray | None, int]], Y: np.ndarray
) -> list[Tree]:
    """Fit one estimator to several samples and return the fitted trees; its arguments are checked once, X never.

    Parameters
    ----------
    tree : DecisionTreeRegressor
        Unfitted; its ``random_state`` is replaced.
    samples : iterable of (X, weight, seed)
        X of shape (n, d), float32 and C-contiguous, weights of shape (n,) or None, and the seed of the tree.
    Y : ndarray of shape (n, q)
    """
    random = np.random.RandomState(0)  # one for all trees: making one takes longer than growing a small tree
    tree.set_params(random_state=random)
    targets, trees = np.ascontiguousarray(Y, dtype=np.float64), []  # type: ignore[var-annotated]
    for X, weight, seed in samples:
        random.seed(seed)
        with config_context(skip_parameter_validation=bool(trees), assume_finite=True):
            trees.append(tree.fit(X, targets, weight, check_input=False).tree_)
    return trees


def _samples(
    kind: Kind, X: np.ndarray, weight: np.ndarray | None, seeds: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray | None, int]]:
    """Yield the sample of each tree of a forest: rows with how often they were drawn, or all rows."""
    random, n = np.random.RandomState(0), len(X)
    share = None if weight is None else weight / weight.sum()
    for seed in seeds:
        if kind == "random":
            random.seed(seed)
            drawn = random.randint(0, n, n) if share is None else random.choice(n, n, p=share)
            yield X, np.bincount(drawn, minlength=n).astype(np.float64), seed
        else:
            yield X, weight, seed


def _importances(trees: list[Tree], n_features: int) -> np.ndarray:
    """Return the mean of the importances of the trees that have a split, with the sum 1."""
    each = [tree.compute_feature_importances() for tree in trees if tree.node_count > 1]
    if not each:
        return np.zeros(n_features)
    mean = np.mean(each, axis=0)
    return np.asarray(mean / mean.sum())


def single_precision(X: Any) -> np.ndarray:
    """Return X as a dense, C-contiguous float32 array, the type that scikit-learn trees compare with thresholds."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def seed_at(root: int, *position: int) -> int:
    """Return the seed of one component of a cascade; it depends on the root seed and its position only.

    So the result is the same in whatever order, or with how many jobs, the components are computed.
    """
    return int(np.random.SeedSequence(root, spawn_key=position).generate_state(1)[0])
