"""Scores of rows by models that have not seen them, as training data of stacking methods."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import DataConversionWarning

from multilab.core.parallel import parallel
from multilab.methods._weights import weight_arguments
from multilab.methods.base import MethodError


def out_of_fold_scores(
    estimator: BaseEstimator,
    X: Any,
    Y: np.ndarray,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    seed: int | None = None,
    n_jobs: int | None = None,
    sample_weight: np.ndarray | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Return S, row i scored by the model that was fitted without row i's fold.

    Parameters
    ----------
    estimator : multi-label classifier
        Cloned for every fold; not changed.
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray of shape (n, q)
        0/1.
    folds : iterable of (train, test)
        Row numbers; the test sets hold every row exactly once.
    seed : int, optional
        Every random argument of fold k's clone is set to ``fold_seed(seed, k)``; None leaves them alone.
    n_jobs : int, optional
        Folds fitted at the same time; does not change the result.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows in the fits.
    out : ndarray of shape (n, q), optional
        Where the scores are written, of any float type; a new float64 array when None.

    Returns
    -------
    ndarray of shape (n, q)

    Raises
    ------
    MethodError
        When a row is in no test set, in two, or in the training set of its own fold, or the estimator takes no weights.
    """
    parts = [(np.asarray(train), np.asarray(test)) for train, test in folds]
    _check_folds(parts, X.shape[0])
    scored = parallel(n_jobs)(
        delayed(_score_fold)(estimator, X, Y, train, test, fold_seed(seed, k), sample_weight)
        for k, (train, test) in enumerate(parts)
    )
    scores = np.empty(Y.shape, dtype=np.float64) if out is None else out
    for (_, test), part in zip(parts, scored, strict=True):
        scores[test] = part
    return scores


def fit_seeded(
    estimator: BaseEstimator, X: Any, Y: np.ndarray, seed: int | None, sample_weight: np.ndarray | None = None
) -> BaseEstimator:
    """Return a fitted clone with all random arguments, nested ones too, set to ``seed`` unless None."""
    model = clone(estimator)
    if seed is not None:
        names = (n for n in model.get_params() if n == "random_state" or n.endswith("__random_state"))
        model.set_params(**dict.fromkeys(names, seed))
    return quiet_column_fit(model, X, Y, **weight_arguments(model, sample_weight))


def quiet_column_fit(model: Any, X: Any, Y: np.ndarray, **params: Any) -> Any:
    """Fit a model without scikit-learn's warning about a Y with one column: a label matrix may have one label."""
    with warnings.catch_warnings():
        if Y.ndim == 2 and Y.shape[1] == 1:
            warnings.simplefilter("ignore", DataConversionWarning)
        return model.fit(X, Y, **params)


def fold_seed(seed: int | None, fold: int) -> int | None:
    """Return the seed of one fold's model, a function of the two numbers only."""
    if seed is None:
        return None
    return int(np.random.SeedSequence(seed, spawn_key=(fold,)).generate_state(1)[0] >> 1)


def score_matrix(model: Any, X: Any, n_labels: int) -> np.ndarray:
    """Return the (n, q) scores of a fitted model: probabilities where it has them, else decision values.

    scikit-learn's forests and trees give one (n, 2) table per label, (n, 1) for a label with one class; these
    are put together.
    """
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    proba = model.predict_proba(X)
    classes = model.classes_
    if not isinstance(proba, list):
        if n_labels > 1 or np.ndim(classes) != 1:
            return np.asarray(proba, dtype=np.float64)
        proba, classes = [proba], [classes]  # one label: a column per class, as of a binary classifier
    columns = [p @ np.asarray(c, dtype=np.float64) for p, c in zip(proba, classes, strict=True)]
    return np.column_stack(columns).astype(np.float64)


def _score_fold(
    estimator: BaseEstimator,
    X: Any,
    Y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    seed: int | None,
    sample_weight: np.ndarray | None,
) -> np.ndarray:
    weight = None if sample_weight is None else sample_weight[train]
    return score_matrix(fit_seeded(estimator, X[train], Y[train], seed, weight), X[test], Y.shape[1])


def _check_folds(parts: list[tuple[np.ndarray, np.ndarray]], n: int) -> None:
    tested = np.concatenate([test for _, test in parts]) if parts else np.empty(0, dtype=int)
    if not np.array_equal(np.sort(tested), np.arange(n)):
        raise MethodError(f"the test sets of the {len(parts)} folds must hold each of the {n} rows exactly once")
    for k, (train, test) in enumerate(parts):
        if np.isin(test, train).any():
            raise MethodError(f"fold {k}: a test row is also in its training set; its score would be in-sample")
