"""XGBoost from batches of rows, through its external memory: quantised pages in a temporary folder on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from multilab.methods.base import MethodError
from multilab.methods.transformation.native_multilabel import NativeMultiLabel, _as_matrix

Stream = Callable[[], Iterable[tuple[Any, np.ndarray]]]


def is_xgboost(estimator: Any) -> bool:
    """Return whether a classifier is XGBoost's."""
    return any(cls.__name__ == "XGBClassifier" and cls.__module__ == "xgboost.sklearn" for cls in type(estimator).mro())


def fit_boosted(estimator: NativeMultiLabel, stream: Stream) -> None:
    """Fit XGBoost as `NativeMultiLabel` fits it to all rows.

    Parameters
    ----------
    estimator : NativeMultiLabel
        On an ``XGBClassifier``.
    stream : callable
        Returns validated batches from the first on: one pass counts the labels, XGBoost makes two or more.
    """
    import xgboost

    n, positive = 0, np.zeros(0)
    for X, Y in stream():
        n, positive = n + X.shape[0], (positive if n else 0) + Y.sum(axis=0)
    if not n:
        raise MethodError("there is no row to learn from")
    estimator._constant = (positive == n).astype(np.float64)
    estimator.varying_ = np.flatnonzero((positive > 0) & (positive < n))
    estimator.estimator_ = None
    if not len(estimator.varying_):
        return
    columns = np.repeat(estimator.varying_, 2) if len(estimator.varying_) == 1 else estimator.varying_
    model: Any = clone(estimator.estimator)
    estimator._seed(model)

    class Pages(xgboost.DataIter):
        """The batches as XGBoost asks for them."""

        def next(self, input_data: Any) -> bool:
            for X, Y in self.batches:
                input_data(data=_as_matrix(X), label=np.ascontiguousarray(Y[:, columns]))
                return True
            return False

        def reset(self) -> None:
            self.batches = iter(stream())

    with TemporaryDirectory(prefix="multilab-xgboost-") as folder:
        pages = Pages(cache_prefix=os.path.join(folder, "pages"))
        pages.reset()
        bins = {} if model.max_bin is None else {"max_bin": model.max_bin}
        rows = xgboost.ExtMemQuantileDMatrix(pages, missing=model.missing, nthread=model.n_jobs, **bins)
        params = {name: value for name, value in model.get_xgb_params().items() if value is not None}
        booster = xgboost.train(params, rows, model.get_num_boosting_rounds())
        del rows
    model.load_model(booster.save_raw())
    estimator.estimator_ = model
