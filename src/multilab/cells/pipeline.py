"""A method as one estimator: columns, scaling, selection or reduction, classifier, calibration, decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.metaestimators import _BaseComposition, available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from multilab.cells.features import Columns, Scaling
from multilab.methods.errors import MethodError
from multilab.methods.labels import check_labels, label_names, with_tag_columns
from multilab.methods.out_of_fold import out_of_fold_scores, score_matrix
from multilab.model_selection import IterativeStratifiedGroupKFold, IterativeStratifiedKFold

__all__ = ["MemberScores", "MethodPipeline", "out_of_fold", "predict_with_scores", "training_folds"]

Steps = list[tuple[str, Any]]
Folds = Iterable[tuple[np.ndarray, np.ndarray]]

_FOLDS = 5


class MethodPipeline(ClassifierMixin, _BaseComposition):
    """Steps of a method, each of which gets the weights, the groups and the observed labels that its `fit` takes.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers, then a multi-label classifier. What follows it is fitted on out-of-fold scores of the training
        rows: ``"calibration"``, whose ``predict_proba`` gives the probabilities, and ``"decisions"``, whose ``predict``
        gives the decisions; both read the probabilities of the classifier, or its margins after the logistic function.
        The calibration "passthrough" leaves these as they are.

    Attributes
    ----------
    steps_ : list of (str, estimator)
        The fitted steps.
    n_labels_ : int
    classes_
        Those of the classifier.

    Notes
    -----
    It differs from `sklearn.pipeline.Pipeline` in three ways. ``sample_weight``, ``groups`` and ``y_mask`` go to every
    step whose `fit` has an argument of that name, whether scikit-learn's metadata routing is on or off. A classifier
    may be followed by steps that read its scores. ``steps`` stay as they were given, and a fit is a fit of copies.

    Columns and scales read no label: with folds (of decisions, of out-of-fold scores) they are learned once, from all
    training rows, and all other steps once per fold.

    Examples
    --------
    >>> from multilab.cells import MethodPipeline, Scaling
    >>> from multilab.methods import MLkNN
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MethodPipeline([("scale", Scaling("minmax")), ("classifier", MLkNN(k=5))]).fit(X, y)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 1, 0]])
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    @classmethod
    def of_fitted(cls, steps: Steps, n_labels: int) -> Self:
        """Return the pipeline of steps that are fitted; ``clone`` of it can be fitted like any other."""
        model = cls([(name, step if isinstance(step, str) else clone(step)) for name, step in steps])
        model.steps_, model.n_labels_ = list(steps), n_labels
        return model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the steps and, with ``deep``, their arguments as ``<step>__<argument>``."""
        params: dict[str, Any] = self._get_params("steps", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set steps by name, or their arguments as ``<step>__<argument>``."""
        self._set_params("steps", **params)
        return self

    def set_output(self, *, transform: Any = None) -> Self:
        """Set the container that the transformers return, see `sklearn.pipeline.Pipeline.set_output`."""
        for _, step in (*self.steps, *getattr(self, "steps_", ())):
            if hasattr(step, "transform") and hasattr(step, "set_output"):
                step.set_output(transform=transform)
        return self

    @property
    def named_steps(self) -> dict[str, Any]:
        """The fitted steps by name, those of ``steps`` before a fit."""
        return dict(getattr(self, "steps_", self.steps))

    @property
    def classifier(self) -> Any:
        """The classifier among `named_steps`."""
        steps = list(self.named_steps.items())
        return steps[_classifier_at(steps)][1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not hasattr(self.classifier, "__sklearn_tags__"):  # of another library
            return tags
        of_classifier = get_tags(self.classifier)
        tags.classifier_tags, tags.target_tags = of_classifier.classifier_tags, of_classifier.target_tags
        first = get_tags(self.steps[0][1]).input_tags
        tags.input_tags.sparse = first.sparse and of_classifier.input_tags.sparse
        tags.input_tags.allow_nan = of_classifier.input_tags.allow_nan
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "steps_")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, y_mask: Any = None) -> Self:
        """Fit copies of the steps.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
        y : array-like or sparse matrix of shape (n, q)
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            Rows of one group are on one side of every fold that a step makes.
        y_mask : array-like or sparse matrix of shape (n, q), optional
            True where a label is observed.

        Raises
        ------
        MethodError
            Weights or a mask are given and the classifier does not take them, or a step refuses its arguments.
        """
        y = with_tag_columns(y)
        self.__dict__.pop("label_names_", None)  # of an earlier fit
        if (names := label_names(y)) is not None:
            self.label_names_ = names.tolist()
        given = {"sample_weight": sample_weight, "groups": groups, "y_mask": y_mask}
        given = {name: value for name, value in given.items() if value is not None}
        steps: Steps = [(name, step if isinstance(step, str) else clone(step)) for name, step in self.steps]
        at = _classifier_at(steps)
        for name in ("sample_weight", "y_mask"):  # that a transformer takes them is not enough
            if name in given and not has_fit_parameter(steps[at][1], name):
                raise MethodError(f"{type(steps[at][1]).__name__}.fit takes no {name}")
        for _, step in steps[:at]:
            X = _fit_transform(step, X, y, given)
        classifier, after = steps[at][1], [step for _, step in steps[at + 1 :] if step != "passthrough"]
        if after:
            self._fit_on_scores(after, clone(classifier), X, y, given)
        _fit(classifier, X, y, given)
        self.steps_, self.n_labels_ = steps, _n_labels(y)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose labels are all predicted right."""
        return float(super().score(X, with_tag_columns(y, model=self), sample_weight))

    def _fit_on_scores(self, after: list[Any], classifier: Any, X: Any, y: Any, given: dict[str, Any]) -> None:
        Y = check_labels(y, given.get("y_mask"), missing=True, owner=type(self).__name__)
        folds = training_folds(Y, _FOLDS, groups=given.get("groups"))
        probabilities = hasattr(classifier, "predict_proba")
        weight = given.get("sample_weight")
        scores = out_of_fold_scores(
            classifier, X, Y, folds, sample_weight=None if weight is None else np.asarray(weight)
        )
        for step in after:
            _fit(step, scores if probabilities else expit(scores), Y, {**given, "y_mask": None})

    def fit_batches(
        self, batches: Iterable[tuple[Any, Any]], sample: Callable[[], Any], *, n_rows: int | None = None
    ) -> Self:
        """Fit copies of the steps to rows that are not held in memory together.

        Parameters
        ----------
        batches : iterable of (X, Y)
            See `multilab.methods.base.BatchClassifier`, by whose method the classifier learns.
        sample : callable
            Returns the rows that columns and scales learn from: a sample, or a first pass.
        n_rows : int, optional
            Of all batches.
        """
        steps = [(name, clone(step)) for name, step in self.steps]
        before, last = steps[:-1], steps[-1][1]
        if not all(isinstance(step, Columns | Scaling) for _, step in before):
            raise MethodError(
                f"{' + '.join(name for name, _ in before)}: steps that read labels cannot learn from batches"
            )
        if before:
            X = sample()
            for _, step in before:
                X = step.fit(X).transform(X)
            del X  # as large as a batch, or larger
        last.fit_batches(_Transformed(batches, [step for _, step in before]), n_rows=n_rows)
        self.steps_, self.n_labels_ = steps, last.n_labels_
        return self

    def label_free(self) -> tuple[Steps, Self]:
        """Return the leading steps that read no label, and a pipeline of the others; all unfitted."""
        steps: Steps = [(name, step if isinstance(step, str) else clone(step)) for name, step in self.steps]
        cut = 0
        while isinstance(steps[cut][1], Columns | Scaling):
            cut += 1
        return steps[:cut], type(self)(steps[cut:])

    @property
    def thresholds_(self) -> np.ndarray | None:
        """Threshold of the score of each label, shape (q,); None for other decision rules."""
        self._check_fitted()
        steps = self.named_steps
        last = self.classifier
        if "calibration" in steps or "decisions" in steps:
            if steps.get("calibration", "passthrough") != "passthrough":  # decisions are those of scores before it
                return None
            last = steps.get("decisions", None)
        own = getattr(last, "thresholds_", None)
        if own is not None and np.shape(own) == (self.n_labels_,):
            return np.asarray(own, dtype=float)
        if last is None or getattr(last, "policy", None) in ("top_k", "expected") or not hasattr(last, "_threshold"):
            return None
        if not last._decides_by_threshold():
            return None
        return np.full(self.n_labels_, float(last._threshold()))

    def learned(self, name: str) -> Any:
        """Return a fitted attribute of the classifier, or of the step in ``<step>__<attribute>``; None: it has none."""
        step, _, attribute = name.partition("__")
        if attribute and step in self.named_steps:
            return getattr(self.named_steps[step], attribute, None)
        return getattr(self.classifier, name, None)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        self._check_fitted()
        return int(self.steps_[0][1].n_features_in_)

    @property
    def classes_(self) -> Any:
        """The classes of the labels, as the classifier has them."""
        return self.classifier.classes_

    def transform_rows(self, X: Any) -> Any:
        """Return X after the steps before the classifier."""
        self._check_fitted()
        for _, step in self.steps_[: _classifier_at(self.steps_)]:
            X = step.transform(X)
        return X

    def predict_with_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (float64) and decisions (uint8), both of shape (n, q)."""
        X = self.transform_rows(X)
        at = _classifier_at(self.steps_)
        classifier, after = self.steps_[at][1], dict(self.steps_[at + 1 :])
        scores, decisions = predict_with_scores(classifier, X, self.n_labels_)
        if after and not hasattr(classifier, "predict_proba"):
            scores = expit(scores)
        if "decisions" in after:
            decisions = np.asarray(after["decisions"].predict(scores), dtype=np.uint8).reshape(scores.shape)
        if after.get("calibration", "passthrough") != "passthrough":
            scores = after["calibration"].predict_proba(scores)
        return scores, decisions

    def predict(self, X: Any) -> np.ndarray:
        """Return the decisions as the last step gives them: 0 and 1 of shape (n, q)."""
        self._check_fitted()
        if len(self.steps_) - 1 > _classifier_at(self.steps_):
            return self.predict_with_scores(X)[1]
        decisions: np.ndarray = self.classifier.predict(self.transform_rows(X))
        return decisions

    @available_if(lambda self: self._has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities of shape (n, q)."""
        return self.predict_with_scores(X)[0]

    @available_if(lambda self: not self._has_probabilities)
    def decision_function(self, X: Any) -> np.ndarray:
        """Return margins of shape (n, q)."""
        return self.predict_with_scores(X)[0]

    @available_if(lambda self: hasattr(self.classifier, "predict_measures"))
    def predict_measures(self, X: Any) -> Any:
        """Return scores and decisions by metric, of a classifier that has different ones for each."""
        return self.classifier.predict_measures(self.transform_rows(X))

    def _check_fitted(self) -> None:
        if not hasattr(self, "steps_"):  # scikit-learn's own check asks for tags, which steps of others may not have
            raise NotFittedError("this MethodPipeline is not fitted yet: call fit")

    @property
    def _has_probabilities(self) -> bool:
        return hasattr(self.classifier, "predict_proba") or self.classifier is not list(self.named_steps.values())[-1]


class _Transformed:
    """Batches after some transformers; iterated over as often as the batches can be."""

    def __init__(self, batches: Iterable[tuple[Any, Any]], steps: Sequence[Any]) -> None:
        self.batches = batches
        self.steps = steps

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for X, Y in self.batches:
            for step in self.steps:
                X = step.transform(X)
            yield X, Y


class MemberScores(TransformerMixin, BaseEstimator):
    """Scores of other methods, side by side: the input of a method on base scores.

    Parameters
    ----------
    members : list of estimators
        Methods on the same rows.
    folds, order : int
        Folds of the out-of-fold scores that the next step learns from, and the order of their stratification.
    random_state : int
        Seed of the folds.

    Attributes
    ----------
    members_ : list of estimators
        Fitted on all training rows.

    Notes
    -----
    `fit_transform` returns out-of-fold scores: those of rows that a member was fitted on would overfit. `transform`
    returns the scores of ``members_``.
    """

    def __init__(self, members: Sequence[Any], folds: int = 5, order: int = 1, random_state: int = 0) -> None:
        self.members = members
        self.folds = folds
        self.order = order
        self.random_state = random_state

    @classmethod
    def of_fitted(cls, members: Sequence[Any], **params: Any) -> Self:
        """Return the step of members that are fitted."""
        step = cls([clone(member) for member in members], **params)
        step.members_ = list(members)
        return step

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, y_mask: Any = None) -> Self:
        """Fit the members on all rows."""
        given = {"sample_weight": sample_weight, "groups": groups, "y_mask": y_mask}
        given = {name: value for name, value in given.items() if value is not None}
        self.members_ = [_fit(clone(member), X, y, given) for member in self.members]
        return self

    def fit_transform(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, y_mask: Any = None
    ) -> np.ndarray:
        """Fit the members on all rows, and return the scores of the rows by models that have not seen them."""
        self.fit(X, y, sample_weight, groups=groups, y_mask=y_mask)
        Y = check_labels(y, y_mask, missing=True, owner=type(self).__name__)
        folds = training_folds(Y, self.folds, self.order, self.random_state, groups)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        return np.hstack([out_of_fold(member, X, Y, folds, weight) for member in self.members])

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of the members, shape (n, m q)."""
        check_is_fitted(self)
        n_labels = self.members_[0].n_labels_
        return np.hstack([predict_with_scores(member, X, n_labels)[0] for member in self.members_])


def training_folds(
    Y: np.ndarray, folds: int, order: int = 1, seed: int = 0, groups: Any = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return stratified folds of a training set, or of its groups: positions within it."""
    if groups is None:
        splitter: Any = IterativeStratifiedKFold(n_splits=folds, order=order, random_state=seed)
    else:
        splitter = IterativeStratifiedGroupKFold(folds, order=order, random_state=seed)
    return list(splitter.split(np.zeros((len(Y), 1)), Y, groups))


def out_of_fold(model: Any, X: Any, Y: np.ndarray, folds: Folds, sample_weight: Any = None) -> np.ndarray:
    """Return scores of shape (n, q): of each row by a copy of the model that never saw it.

    Columns and scales of a `MethodPipeline` are learned once, from all rows.
    """
    if isinstance(model, MethodPipeline):
        before, model = model.label_free()
        for _, step in before:
            X = step.fit(X).transform(X)
    return out_of_fold_scores(model, X, Y, folds, sample_weight=sample_weight)


def predict_with_scores(estimator: Any, X: Any, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (float64) and decisions (uint8) of an estimator, computed together if it supports that.

    For a pipeline of scikit-learn, transform X with the first steps and predict with the last.
    """
    if isinstance(estimator, Pipeline) and hasattr(estimator[-1], "predict_with_scores"):
        X, estimator = estimator[:-1].transform(X), estimator[-1]
    if hasattr(estimator, "predict_with_scores"):
        scores, decisions = estimator.predict_with_scores(X)
    else:
        scores, decisions = score_matrix(estimator, X, n_labels), estimator.predict(X)
    decisions = decisions.toarray() if hasattr(decisions, "toarray") else decisions
    return scores, np.asarray(decisions, dtype=np.uint8).reshape(scores.shape)


def _classifier_at(steps: Steps) -> int:
    """Return the number of the first step that predicts, else that of the last."""
    for position, (_, step) in enumerate(steps):
        if hasattr(step, "predict") or hasattr(step, "predict_with_scores"):
            return position
    return len(steps) - 1


def _fit(step: Any, X: Any, y: Any, given: dict[str, Any]) -> Any:
    return step.fit(X, y, **_taken(step, given))


def _fit_transform(step: Any, X: Any, y: Any, given: dict[str, Any]) -> Any:
    taken = _taken(step, given)
    if hasattr(step, "fit_transform"):
        return step.fit_transform(X, y, **taken)
    return step.fit(X, y, **taken).transform(X)


def _taken(step: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return what the `fit` of a step takes, and let the estimators inside it ask for the same."""
    taken = {name: value for name, value in given.items() if has_fit_parameter(step, name) and value is not None}
    if taken and _routing_enabled():  # then a step passes on only what the estimator in it requests
        for part in step.get_params().values():
            names = [name for name in taken if hasattr(part, "set_fit_request") and has_fit_parameter(part, name)]
            if names:
                part.set_fit_request(**dict.fromkeys(names, True))
    return taken


def _n_labels(y: Any) -> int:
    shape = np.shape(y) if not hasattr(y, "shape") else y.shape
    return int(shape[1]) if len(shape) > 1 else 1
