"""The steps around an estimator that decide a result: rows, scaling, seeds, fitting, scores and decisions.

This module and what it imports are part of the key of every cell (see ``laboratory_code`` in ``cells``). Code that
does not decide a result (the store, records, measurement) is therefore kept elsewhere.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multilab.experiments.errors import ExperimentError
from multilab.experiments.seeds import seed_estimator, seed_for
from multilab.experiments.threads import one_thread

if TYPE_CHECKING:  # a stage with nothing to do needs no NumPy, and a worker imports it beside the others
    import numpy as np

    from multilab.experiments.cells import Cell, Part
    from multilab.experiments.settings import Method

__all__ = [
    "Inputs",
    "base_score_inputs",
    "build",
    "feature_inputs",
    "fit_and_score",
    "indices",
    "inner_folds",
    "learned",
    "out_of_fold",
    "predict_both",
    "seeded_estimator",
]


@dataclass
class Inputs:
    """What an estimator is fitted on and asked about: for a method on base scores, X is the score matrix."""

    X_train: Any
    Y_train: np.ndarray
    X_test: Any
    Y_test: np.ndarray


@functools.lru_cache(maxsize=2)
def _dataset(name: str) -> Any:
    from multilab import datasets

    return datasets.load(name)


@functools.lru_cache(maxsize=2)
def _splits(dataset: str, protocol: str) -> list[Any]:
    from multilab import datasets

    return datasets.splits(dataset, json.loads(protocol))


def indices(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows of a part."""
    if part.split < 0:
        import numpy as np

        every = np.arange(len(_dataset(part.dataset).Y))
        train, test = every, every[:0]
    else:
        splits = _splits(part.dataset, part.protocol)
        split = splits[part.split % len(splits)]
        train, test = split.train, split.test
    if part.inner is None:
        return train, test
    folds, order, seed, index = part.inner
    inner = inner_folds(_dataset(part.dataset).Y[train], folds, order, seed)[index]
    return train[inner[0]], train[inner[1]]


def inner_folds(Y: np.ndarray, folds: int, order: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return stratified folds of a training part: positions within it."""
    import numpy as np

    from multilab.datasets.folds import IterativeStratifiedKFold

    splitter = IterativeStratifiedKFold(n_splits=folds, order=order, random_state=seed)
    return list(splitter.split(np.zeros((len(Y), 1)), Y))


def build(method: Method) -> Any:
    """Build the estimator of a method from its settings, nested ``_target_`` entries first.

    Arguments in scikit-learn's nested form (``estimator__C``) are set on the estimator that was built.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    own = {name: value for name, value in method.identity().items() if "__" not in name}
    nested = {name: value for name, value in method.params.items() if "__" in name}
    try:
        return instantiate(own, _convert_="all").set_params(**nested)
    except (InstantiationException, ValueError) as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise ExperimentError(f"conf/method/{method.name}.yaml: cannot build {method.target}: {reason}") from None


def seeded_estimator(method: Method, cell: Cell) -> Any:
    """Build the estimator of a method with the seeds of a cell."""
    return seed_estimator(build(method), cell.seed, cell.part.dataset_digest, cell.part.digest, method.target)


def _scaled(method: Method, X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Scale as the method asks, fitted on the training rows only."""
    if method.preprocessing == "none":
        return X_train, X_test
    from scipy.sparse import issparse
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if method.preprocessing == "minmax":  # a sparse X keeps its zeros: divided by the largest absolute value
        scaler = MaxAbsScaler() if issparse(X_train) else MinMaxScaler()
    else:
        scaler = StandardScaler(with_mean=not issparse(X_train))
    train = scaler.fit_transform(X_train)
    return train, (scaler.transform(X_test) if X_test.shape[0] else X_test)


def feature_inputs(cell: Cell) -> Inputs:
    """Return the scaled features and the labels of a cell's rows."""
    train, test = indices(cell.part)
    data = _dataset(cell.part.dataset)
    X_train, X_test = _scaled(cell.method, data.X[train], data.X[test])
    return Inputs(X_train, data.Y[train], X_test, data.Y[test])


def base_score_inputs(cell: Cell, scores: Sequence[np.ndarray]) -> Inputs:
    """Return the base scores and the labels of a cell's rows.

    ``scores`` are those of the cells it reads, in their order: per member the out-of-fold scores of the training rows,
    then the scores of the test rows.
    """
    import numpy as np

    train, test = indices(cell.part)
    Y = _dataset(cell.part.dataset).Y
    return Inputs(np.hstack(scores[0::2]), Y[train], np.hstack(scores[1::2]), Y[test])


def fit_and_score(
    cell: Cell,
    method: Method,
    inputs: Inputs,
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
    import numpy as np

    estimator = seeded_estimator(method, cell)
    with one_thread(), fit:  # again: building may have loaded another BLAS
        estimator.fit(inputs.X_train, inputs.Y_train)
    with one_thread(), predict:
        scores, decisions = predict_both(estimator, inputs.X_test, inputs.Y_train.shape[1])
    arrays = {"scores": scores, "decisions": decisions}
    if hasattr(estimator, "predict_measures"):
        for measure, (scores, decisions) in estimator.predict_measures(inputs.X_test).items():
            arrays[f"scores.{measure}"], arrays[f"decisions.{measure}"] = scores, decisions.astype(np.uint8)
    for name in method.keep:
        value = learned(estimator, name)
        if value is not None:
            arrays[f"learned_{name}"] = np.asarray(value)
    return estimator, arrays


def out_of_fold(cell: Cell, inputs: Inputs, fit: AbstractContextManager[Any]) -> np.ndarray:
    """Score every training row with a model that never saw it; the work runs inside ``fit``."""
    from multilab.methods.stacking.out_of_fold import out_of_fold_scores

    inner = cell.method.inner
    seed = seed_for(cell.seed, cell.part.dataset_digest, cell.part.digest, "inner folds")
    folds = inner_folds(inputs.Y_train, inner["folds"], inner["order"], seed)
    estimator = seeded_estimator(cell.method, cell)
    with one_thread(), fit:
        return out_of_fold_scores(estimator, inputs.X_train, inputs.Y_train, folds)


def learned(estimator: Any, name: str) -> Any:
    """Return a fitted attribute, of a pipeline's step by scikit-learn's nested name (``select__ranking_``)."""
    step, _, attribute = name.partition("__")
    if attribute and hasattr(estimator, "named_steps"):
        return getattr(estimator.named_steps[step], attribute, None)
    return getattr(estimator, name, None)


def predict_both(estimator: Any, X: Any, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (float64) and decisions (uint8) of an estimator, computed once where it offers that.

    Of a pipeline the last step is asked, about what the others made of X.
    """
    import numpy as np

    from multilab.methods.stacking.out_of_fold import score_matrix

    if hasattr(estimator, "named_steps") and hasattr(estimator[-1], "predict_both"):
        X, estimator = estimator[:-1].transform(X), estimator[-1]
    if hasattr(estimator, "predict_both"):
        scores, decisions = estimator.predict_both(X)
    else:
        scores, decisions = score_matrix(estimator, X, n_labels), estimator.predict(X)
    decisions = decisions.toarray() if hasattr(decisions, "toarray") else decisions
    return scores, np.asarray(decisions, dtype=np.uint8).reshape(scores.shape)
