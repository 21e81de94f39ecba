"""The steps around an estimator that affect a result: rows, scaling, seeds, fitting, scores and decisions."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from multilab import datasets, model_selection
from multilab.experiments.fit_costs import one_thread
from multilab.experiments.method import Method, build
from multilab.experiments.seeds import seed_estimator, seed_for
from multilab.methods.out_of_fold import out_of_fold_scores, score_matrix
from multilab.model_selection import indices_digest
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

if TYPE_CHECKING:  # which imports this module
    from multilab.experiments.cells import Cell, SplitRef
    from multilab.experiments.study import Tuning

__all__ = [
    "CellInputs",
    "base_score_inputs",
    "feature_inputs",
    "fit_and_score",
    "fitted_attribute",
    "fitted_scaler",
    "indices",
    "inner_cells",
    "inner_folds",
    "out_of_fold",
    "predict_with_scores",
    "seeded_estimator",
]


@dataclass
class CellInputs:
    """Training set and test set of an estimator: for a method on base scores, X is the score matrix."""

    X_train: Any
    Y_train: np.ndarray
    X_test: Any
    Y_test: np.ndarray


@functools.lru_cache(maxsize=2)
def _dataset(name: str) -> Any:
    return datasets.load(name)


@functools.lru_cache(maxsize=2)
def _splits(dataset: str, protocol: str) -> list[Any]:
    return model_selection.splits(dataset, json.loads(protocol))


def indices(ref: SplitRef) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows of a split."""
    if ref.split < 0:
        every = np.arange(_dataset(ref.dataset).Y.shape[0])
        train, test = every, every[:0]
    else:
        splits = _splits(ref.dataset, ref.protocol)
        split = splits[ref.split % len(splits)]
        train, test = split.train, split.test
    if ref.inner is None:
        return train, test
    folds, order, seed, index = ref.inner
    inner = inner_folds(_dataset(ref.dataset).Y[train], folds, order, seed)[index]
    return train[inner[0]], train[inner[1]]


def inner_folds(Y: np.ndarray, folds: int, order: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return stratified folds of a training set: positions within it."""
    splitter = IterativeStratifiedKFold(n_splits=folds, order=order, random_state=seed)
    return list(splitter.split(np.zeros((len(Y), 1)), Y))


def inner_cells(cell: Cell, tuning: Tuning) -> list[Cell]:
    """Return the inner folds of a cell's training set, each as a cell; a search scores its trials on them."""
    train, _ = indices(cell.split_ref)
    seed = seed_for(cell.seed, cell.split_ref.dataset_digest, cell.split_ref.digest, "search folds")
    folds = inner_folds(_dataset(cell.split_ref.dataset).Y[train], tuning.folds, tuning.order, seed)
    cells = []
    for index, (fit, predict) in enumerate(folds):
        digest = indices_digest(train[fit], train[predict])
        ref = replace(cell.split_ref, digest=digest, inner=(tuning.folds, tuning.order, seed, index))
        cells.append(replace(cell, split_ref=ref, tune=None, alone=False))
    return cells


def seeded_estimator(method: Method, cell: Cell) -> Any:
    """Build the estimator of a method with the seeds of a cell."""
    return seed_estimator(
        build(method), cell.seed, cell.split_ref.dataset_digest, cell.split_ref.digest, method.seed_name
    )


def fitted_scaler(preprocessing: str, X: Any) -> Any | None:
    """Return the scaler of a method's preprocessing, fitted on the training rows X; None: X is used as it is.

    A sparse X keeps its zeros: "minmax" divides by the largest absolute value, "standard" does not centre.
    """
    if preprocessing == "none":
        return None
    if preprocessing == "minmax":
        return (MaxAbsScaler() if issparse(X) else MinMaxScaler()).fit(X)
    return StandardScaler(with_mean=not issparse(X)).fit(X)


def feature_inputs(cell: Cell) -> CellInputs:
    """Return the scaled features and the labels of a cell's rows."""
    train, test = indices(cell.split_ref)
    data = _dataset(cell.split_ref.dataset)
    X_train, X_test = data.X[train], data.X[test]
    scaler = fitted_scaler(cell.method.preprocessing, X_train)
    if scaler is not None:
        X_train, X_test = scaler.transform(X_train), (scaler.transform(X_test) if len(test) else X_test)
    return CellInputs(X_train, data.Y[train], X_test, data.Y[test])


def base_score_inputs(cell: Cell, scores: Sequence[np.ndarray]) -> CellInputs:
    """Return the base scores and the labels of a cell's rows.

    ``scores`` are those of the cells it reads, in their order: per member the out-of-fold scores of the training rows,
    then the scores of the test rows.
    """
    train, test = indices(cell.split_ref)
    Y = _dataset(cell.split_ref.dataset).Y
    return CellInputs(np.hstack(scores[0::2]), Y[train], np.hstack(scores[1::2]), Y[test])


def fit_and_score(
    cell: Cell,
    method: Method,
    inputs: CellInputs,
    fit: AbstractContextManager[Any],
    predict: AbstractContextManager[Any],
) -> tuple[Any, dict[str, np.ndarray]]:
    """Fit a method on the training rows and score the test rows; the two steps run inside ``fit`` and ``predict``.

    Returns
    -------
    estimator : object
        The fitted estimator.
    arrays : dict
        Scores, decisions and the fitted attributes the method saves.
    """
    estimator = seeded_estimator(method, cell)
    with one_thread(), fit:  # again: building may have loaded another BLAS
        estimator.fit(inputs.X_train, inputs.Y_train)
    with one_thread(), predict:
        scores, decisions = predict_with_scores(estimator, inputs.X_test, inputs.Y_train.shape[1])
    arrays = {"scores": scores, "decisions": decisions}
    if hasattr(estimator, "predict_measures"):
        for measure, (scores, decisions) in estimator.predict_measures(inputs.X_test).items():
            arrays[f"scores.{measure}"], arrays[f"decisions.{measure}"] = scores, decisions.astype(np.uint8)
    for name in method.save_attributes:
        value = fitted_attribute(estimator, name)
        if value is not None:
            arrays[f"learned_{name}"] = np.asarray(value)
    return estimator, arrays


def out_of_fold(cell: Cell, inputs: CellInputs, fit: AbstractContextManager[Any]) -> np.ndarray:
    """Score every training row with a model that never saw it; the work runs inside ``fit``."""
    inner_cv = cell.method.inner_cv
    seed = seed_for(cell.seed, cell.split_ref.dataset_digest, cell.split_ref.digest, "inner folds")
    folds = inner_folds(inputs.Y_train, inner_cv["folds"], inner_cv["order"], seed)
    estimator = seeded_estimator(cell.method, cell)
    with one_thread(), fit:
        return out_of_fold_scores(estimator, inputs.X_train, inputs.Y_train, folds)


def fitted_attribute(estimator: Any, name: str) -> Any:
    """Return a fitted attribute; for a step of a pipeline, use the nested name (``select__ranking_``)."""
    step, _, attribute = name.partition("__")
    if attribute and hasattr(estimator, "named_steps"):
        return getattr(estimator.named_steps[step], attribute, None)
    return getattr(estimator, name, None)


def predict_with_scores(estimator: Any, X: Any, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (float64) and decisions (uint8) of an estimator, computed together if it supports that.

    For a pipeline, transform X with the first steps and predict with the last.
    """
    if hasattr(estimator, "named_steps") and hasattr(estimator[-1], "predict_with_scores"):
        X, estimator = estimator[:-1].transform(X), estimator[-1]
    if hasattr(estimator, "predict_with_scores"):
        scores, decisions = estimator.predict_with_scores(X)
    else:
        scores, decisions = score_matrix(estimator, X, n_labels), estimator.predict(X)
    decisions = decisions.toarray() if hasattr(decisions, "toarray") else decisions
    return scores, np.asarray(decisions, dtype=np.uint8).reshape(scores.shape)
