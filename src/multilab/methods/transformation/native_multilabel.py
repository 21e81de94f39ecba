"""Wrapper of any classifier that learns all labels at once."""

import inspect
import os
from collections.abc import Iterable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.neural_network import MLPClassifier
from sklearn.utils import check_random_state

from multilab.methods.base import BatchClassifier, MethodError

__all__ = ["NativeMultiLabel"]


class NativeMultiLabel(BatchClassifier):
    """Classifier of another library that learns all labels at once, behind one interface.

    The libraries differ in what they return (one table of probabilities, or one per label), and several refuse a label
    that all training rows have, or none. Such a label is left out of the fit here: its score is 1 or 0.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        A classifier with ``predict_proba`` whose ``fit`` takes y of shape (n, q); `MLPClassifier` when None.
    random_state : int or RandomState, optional
        Seed of the classifier; None leaves its own.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on the labels that vary; None if there is none.
    varying_ : ndarray of shape (r,)
        The labels that have both values in training.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned iff its probability is >= 0.5, whatever ``predict`` of the classifier does.

    If one label varies, the classifier is fitted on two equal columns, so that no library takes the problem for a
    binary one with other shapes.

    **Batches of rows** need an ``XGBClassifier``. It learns through its external memory, quantised pages in a temporary
    folder, in four passes or more; the result is that of ``fit`` up to its sketch of quantiles.

    Examples
    --------
    >>> from multilab.methods import NativeMultiLabel
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> y[:, 1] = 1
    >>> model = NativeMultiLabel(RandomForestClassifier(n_estimators=10), random_state=0).fit(X, y)
    >>> model.varying_
    array([0, 2])
    >>> model.predict_proba(X[:2])[:, 1]
    array([1., 1.])
    """

    def __init__(self, estimator: BaseEstimator | None = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        model = MLPClassifier() if self.estimator is None else clone(self.estimator)
        if not hasattr(model, "predict_proba"):
            raise MethodError(f"{type(model).__name__} has no predict_proba; give a classifier with probabilities")
        columns = self._columns(Y.sum(axis=0), Y.shape[0])
        if len(columns):
            self._seed(model)
            self.estimator_ = model.fit(_as_matrix(X), np.ascontiguousarray(Y[:, columns]))

    def _columns(self, positive: np.ndarray, n: int) -> np.ndarray:
        """Keep which labels vary, and return their columns; one of them twice if it is the only one."""
        self._constant = (positive == n).astype(np.float64)
        self.varying_ = np.flatnonzero((positive > 0) & (positive < n))
        self.estimator_ = None
        return np.repeat(self.varying_, 2) if len(self.varying_) == 1 else self.varying_

    def _batches_fault(self) -> str | None:
        kinds = type(self.estimator).mro()
        if any(kind.__name__ == "XGBClassifier" and kind.__module__ == "xgboost.sklearn" for kind in kinds):
            return None
        return "NativeMultiLabel cannot learn from batches of rows, except on an XGBClassifier"

    def _fit_batches(self, batches: Iterable[tuple[Any, Any]], n_rows: int | None) -> None:
        import xgboost

        self._check_repeatable(batches)
        n, positive = 0, np.zeros(0)
        for X, Y in self._validated(batches):
            n, positive = n + X.shape[0], (positive if n else 0) + Y.sum(axis=0)
        columns = self._columns(positive, n)
        if not len(columns):
            return
        model: Any = clone(self.estimator)
        self._seed(model)
        stream = self._validated

        class Pages(xgboost.DataIter):
            """The batches as XGBoost asks for them."""

            def next(self, input_data: Any) -> bool:
                for X, Y in self.batches:
                    input_data(data=_as_matrix(X), label=np.ascontiguousarray(Y[:, columns]))
                    return True
                return False

            def reset(self) -> None:
                self.batches = stream(batches)

        with TemporaryDirectory(prefix="multilab-xgboost-") as folder:
            pages = Pages(cache_prefix=os.path.join(folder, "pages"))
            pages.reset()
            bins = {} if model.max_bin is None else {"max_bin": model.max_bin}
            rows = xgboost.ExtMemQuantileDMatrix(pages, missing=model.missing, nthread=model.n_jobs, **bins)
            params = {name: value for name, value in model.get_xgb_params().items() if value is not None}
            booster = xgboost.train(params, rows, model.get_num_boosting_rounds())
            del rows
        model.load_model(booster.save_raw())
        self.estimator_ = model

    def _seed(self, model: BaseEstimator) -> None:
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            names = {name for name in model.get_params() if name.endswith("__random_state")}
            names |= {"random_state"} & {*model.get_params(), *inspect.signature(type(model).__init__).parameters}
            model.set_params(**dict.fromkeys(sorted(names), seed))  # CatBoost lists only arguments with a value

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.tile(self._constant, (X.shape[0], 1))
        if self.estimator_ is not None and X.shape[0]:
            scores[:, self.varying_] = self._probabilities(X)[:, : len(self.varying_)]
        return scores

    def _probabilities(self, X: Any) -> np.ndarray:
        """Return the probabilities of the labels that vary, shape (n, r) or (n, 2)."""
        probabilities = self.estimator_.predict_proba(_as_matrix(X))
        if isinstance(probabilities, list):  # one table per label, a column per class
            return np.column_stack([table[:, 1] for table in probabilities])
        return np.asarray(probabilities, dtype=np.float64)


def _as_matrix(X: Any) -> Any:
    """Return a sparse array as a sparse matrix, the only sparse form that CatBoost takes."""
    return sp.csr_matrix(X) if sp.issparse(X) else X
