"""Base class of the estimators of this package: an estimator, its scores of held-out rows, and routing."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch, _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from multilab.core.parallel import parallel
from multilab.core.tables import in_another_order, pandas_frame
from multilab.methods.base import MethodError, MultiLabelClassifier, refuse_cell_weights
from multilab.methods.labels import (
    binary_classes,
    check_labels,
    check_learns_from_missing,
    is_partial,
    label_names,
    labels_and_scores,
    learns_from_missing,
    with_tag_columns,
)
from multilab.methods.out_of_fold import fold_seed, quiet_column_fit, score_matrix
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.model_selection.group_kfold import IterativeStratifiedGroupKFold
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

Folds = list[tuple[np.ndarray, np.ndarray]]


class HeldOutScores(NamedTuple):
    """Held-out scores, labels (-1 where not observed) and weights of the training rows."""

    scores: np.ndarray
    Y: np.ndarray
    weights: np.ndarray


class HeldOutClassifier(MultiLabelClassifier):
    """Base of the estimators that learn from held-out scores of another estimator.

    A subclass has the arguments ``estimator``, ``cv``, ``n_jobs`` and ``random_state``.
    """

    # Not a request of its own: with metadata routing `groups` reach the splitter, which says whether it takes them.
    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012

    estimator: Any
    cv: Any
    n_jobs: int | None
    random_state: Any

    @property
    def _accepts_missing_labels(self) -> bool:  # type: ignore[override]
        base = self._base()
        return self._is_prefit(base) or learns_from_missing(base)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator != "precomputed":
            inner = get_tags(self._base()).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of this estimator, of the estimator that it wraps and of the splitter."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping().add(caller="fit", callee="fit")
        if self.estimator != "precomputed":
            router.add(estimator=self._base(), method_mapping=fit)
        if hasattr(self.cv, "get_metadata_routing"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    def _base(self) -> Any:
        if isinstance(self.estimator, str):
            if self.estimator != "precomputed":
                raise MethodError(f"estimator={self.estimator!r}: give a multi-label classifier or 'precomputed'")
            return _Precomputed()
        return BinaryRelevance(LogisticRegression()) if self.estimator is None else self.estimator

    def _fit_held_out(
        self, X: Any, y: Any, y_mask: Any, sample_weight: Any, groups: Any, fit_params: dict[str, Any]
    ) -> HeldOutScores:
        """Fit the estimator to all rows and return the scores of models that have not seen the row."""
        if isinstance(self.estimator, str):
            y, X = labels_and_scores(y, X, ("y", "X"))
        else:
            y, X = with_tag_columns(y), pandas_frame(X)
        names = label_names(y)
        classes, y = binary_classes(y) if y_mask is None else (None, y)
        Y, base = check_labels(y, y_mask, missing=True, owner=type(self).__name__), self._base()
        if not is_partial(Y):
            Y = Y.astype(np.int64)  # some compute 0 - 1 in it
        elif not self._is_prefit(base):
            check_learns_from_missing(base)
        target = Y if classes is None else Y[:, 0]
        X, _ = indexable(X, Y)
        if not hasattr(base, "predict_proba") and not hasattr(base, "decision_function"):
            raise MethodError(f"{type(base).__name__} has neither predict_proba nor decision_function")
        refuse_cell_weights(sample_weight, type(self).__name__)
        routed = self._routed(base, sample_weight, groups, fit_params)
        weights = np.ones(len(Y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != (len(Y),) or not (weights >= 0).all() or not (weights.any() or not len(Y)):
            raise MethodError(
                f"`sample_weight` must hold {len(Y)} numbers >= 0, not all of them zero; got shape {weights.shape}"
            )
        if self._is_prefit(base):
            check_is_fitted(base)
            self.estimator_, self.folds_ = base, None
            scores = self._base_scores(X, Y.shape[1])
        else:
            seed = None
            if self.random_state is not None:
                seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self.folds_ = self._folds(X, Y, seed, routed)
            scores = self._out_of_fold(base, X, target, routed.estimator.fit, seed)
            self.estimator_ = _fit_fold(base, X, target, routed.estimator.fit, fold_seed(seed, len(self.folds_)))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        self._set_labels(Y.shape[1], classes, names)
        return HeldOutScores(scores, Y, weights)

    def _is_prefit(self, base: Any) -> bool:
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        return prefit or isinstance(base, FrozenEstimator | _Precomputed)

    def _routed(self, base: Any, sample_weight: Any, groups: Any, fit_params: dict[str, Any]) -> Bunch:
        if groups is not None and _routing_enabled() and hasattr(self.cv, "get_metadata_routing"):
            return self._routed(base, sample_weight, None, {**fit_params, "groups": groups})
        if groups is not None:
            routed = self._routed(base, sample_weight, None, fit_params)
            routed.splitter.split = {**routed.splitter.split, "groups": groups}
            if has_fit_parameter(base, "groups"):  # it folds rows itself
                routed.estimator.fit = {**routed.estimator.fit, "groups": groups}
            return routed
        if sample_weight is None and not fit_params:  # scikit-learn's router has no answer for nothing
            return Bunch(estimator=Bunch(fit={}), splitter=Bunch(split={}))
        if _routing_enabled():
            weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, "fit", **weighted, **fit_params)
            routed.setdefault("estimator", Bunch(fit={}))
            routed.setdefault("splitter", Bunch(split={}))
            return routed
        if sample_weight is not None and has_fit_parameter(base, "sample_weight"):
            fit_params = fit_params | {"sample_weight": sample_weight}
        return Bunch(estimator=Bunch(fit=fit_params), splitter=Bunch(split={}))

    def _folds(self, X: Any, Y: np.ndarray, seed: int | None, routed: Bunch) -> Folds:
        cv, n = self.cv, len(Y)
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
            if not 2 <= cv <= n:
                raise MethodError(f"cv={cv} folds cannot be made of n_samples = {n}")
            kind = IterativeStratifiedGroupKFold if "groups" in routed.splitter.split else IterativeStratifiedKFold
            cv = kind(int(cv), random_state=seed or 0)
        if hasattr(cv, "split") and not isinstance(cv, str):
            folds = list(cv.split(X, Y, **routed.splitter.split))
        elif isinstance(cv, Iterable) and not isinstance(cv, str):
            folds = list(cv)
        else:
            raise MethodError(f"cv={cv!r}: give a number of folds, a splitter, (train, test) pairs or 'prefit'")
        folds = [(np.asarray(train), np.asarray(test)) for train, test in folds]
        for number, (train, test) in enumerate(folds):
            if np.isin(test, train).any():
                raise MethodError(f"fold {number}: a test row is also in its training set")
        if not np.array_equal(np.sort(np.concatenate([np.empty(0, int), *(t for _, t in folds)])), np.arange(n)):
            raise MethodError(f"the test sets of `cv` must hold each of the {n} rows exactly once")
        return folds

    def _out_of_fold(self, base: Any, X: Any, Y: np.ndarray, params: dict[str, Any], seed: int | None) -> np.ndarray:
        assert self.folds_ is not None
        parts = parallel(self.n_jobs)(
            delayed(_score_fold)(base, X, Y, params, fold, fold_seed(seed, number))
            for number, fold in enumerate(self.folds_)
        )
        scores = np.empty(Y.reshape(len(Y), -1).shape)
        for (_, test), part in zip(self.folds_, parts, strict=True):
            scores[test] = part
        return scores

    def _base_scores(self, X: Any, n_labels: int) -> np.ndarray:
        scores = _matrix(self.estimator_, X, n_labels)
        if not np.isfinite(scores).all():
            raise MethodError(f"{type(self.estimator_).__name__} gives scores that are NaN or infinite")
        return scores

    def _validate_predict(self, X: Any) -> Any:
        X = pandas_frame(X)
        X_names = getattr(X, "columns", None)
        if isinstance(self.estimator, str) and in_another_order(getattr(self, "label_names_", None), X_names):
            raise MethodError("X has the scores of the labels in another order: pass X[model.label_names_]")
        check_is_fitted(self, "n_labels_")
        return X if hasattr(X, "shape") else np.asarray(X)  # the estimator checks it


class _Precomputed(BaseEstimator):
    """Stand-in for an estimator whose probabilities are the input."""

    def fit(self, X: Any, y: Any) -> "_Precomputed":
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> np.ndarray:
        scores = np.asarray(X, dtype=np.float64)
        if scores.ndim != 2 or not ((scores >= 0) & (scores <= 1)).all():
            raise MethodError("estimator='precomputed': X must hold one probability in [0, 1] per row and label")
        return scores


def _matrix(model: Any, X: Any, n_labels: int) -> np.ndarray:
    """Return the (n, q) scores of a fitted model."""
    if isinstance(model, _Precomputed):
        scores = model.predict_proba(X)
    else:
        scores = score_matrix(model, X, n_labels)
        scores = scores.reshape(-1, 1) if scores.ndim == 1 else scores
    if scores.shape[1] != n_labels:
        raise MethodError(f"{type(model).__name__} gives {scores.shape[1]} scores per row for {n_labels} labels")
    return scores


def _fit_fold(base: Any, X: Any, Y: np.ndarray, params: dict[str, Any], seed: int | None) -> Any:
    model = clone(base)
    if seed is not None:
        names = (name for name in model.get_params() if name == "random_state" or name.endswith("__random_state"))
        model.set_params(**dict.fromkeys(names, seed))
    return quiet_column_fit(model, X, Y, **params)


def _score_fold(
    base: Any, X: Any, Y: np.ndarray, params: dict[str, Any], fold: tuple[np.ndarray, np.ndarray], seed: int | None
) -> np.ndarray:
    train, test = fold
    own = _check_method_params(X, params, indices=train)
    model = _fit_fold(base, _safe_indexing(X, train), Y[train], own, seed)
    return _matrix(model, _safe_indexing(X, test), Y.reshape(len(Y), -1).shape[1])
