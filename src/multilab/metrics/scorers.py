"""Scorers for scikit-learn: ``scoring=`` of cross-validation and search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from multilab.core.tags import tags_for_model
from multilab.metrics.conventions import PRESETS, Conventions, resolve
from multilab.metrics.errors import MetricError
from multilab.metrics.label_sets import refuse_other_order
from multilab.metrics.own_metrics import MetricLike, OwnMetric, named
from multilab.metrics.registry import ALL_METRICS, all_defined, defined

__all__ = ["get_scorer", "get_scorer_names"]

_METHODS = {
    "decisions": ("predict",),
    "probabilities": ("predict_proba",),
    "scores": ("predict_proba", "decision_function"),
}


def get_scorer_names() -> list[str]:
    """Return the names of the metrics that :func:`get_scorer` knows, sorted.

    Examples
    --------
    >>> from multilab.metrics import get_scorer_names
    >>> "ranking_loss" in get_scorer_names()
    True
    """
    return sorted(ALL_METRICS)


def get_scorer(
    name: MetricLike | Iterable[MetricLike],
    *,
    conventions: str | Conventions = "default",
    labels: Any = None,
    **parameters: Any,
) -> Callable[[Any, Any, Any], Any]:
    """Return a scorer ``scorer(estimator, X, Y, sample_weight=None)`` of a metric, for ``scoring=`` of scikit-learn.

    As in scikit-learn, a larger score is better: a metric of which smaller values are better gets a negative sign.
    Metrics of decisions call ``predict``, metrics of probabilities ``predict_proba``, and metrics of scores
    ``predict_proba``, or ``decision_function`` if there is no ``predict_proba``. Outputs are arrays of shape (n, q), or
    lists of one array per label as scikit-learn's multi-output estimators return them.

    Parameters
    ----------
    name : str, callable, or iterable of these
        A metric, see :func:`get_scorer_names`, or a function of your own. Several make one scorer that returns a dict
        and predicts once; scikit-learn accepts it as multi-metric ``scoring=`` too. A dict of single scorers is
        accepted as well.
    conventions : str or Conventions, default "default"
        A preset or your own rules.
    labels : sequence of int or str, optional
        The labels to measure, by position, or by name if Y is a data frame. By default all.
    **parameters
        Arguments of the metric, for example ``k=3``; only with a single name.

    Returns
    -------
    callable
        The scorer. Its Y may have unobserved cells (NaN, or -1 in int8). A scorer of one metric can stand for a metric
        in every function that takes the name of one: ``compare(..., metrics=[get_scorer("macro_fbeta", beta=0.5)])``.
        If metadata routing is enabled, ``set_score_request(sample_weight=True)`` requests the weights of the rows.

    Raises
    ------
    MetricError
        If a metric, a preset or a parameter does not exist; when called, if the estimator has no such method.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.multioutput import MultiOutputClassifier
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from multilab.metrics import get_scorer
    >>> X, Y = make_multilabel_classification(n_samples=60, random_state=0)
    >>> trees = MultiOutputClassifier(DecisionTreeClassifier(max_depth=2, random_state=0))
    >>> scores = cross_val_score(trees, X, Y, cv=3, scoring=get_scorer("ranking_loss", conventions="mulan"))
    >>> bool((scores <= 0).all())
    True
    """
    rules = resolve(conventions)
    if isinstance(name, str) or callable(name):
        return _Scorer((name,), rules, labels, parameters, single=True)
    return _Scorer(tuple(name), rules, labels, parameters, single=False)


class _Scorer:
    """Scorer of one metric, or of several as a dict; it can be pickled and cloned."""

    def __init__(
        self,
        metrics: tuple[MetricLike, ...],
        conventions: Conventions,
        labels: Any,
        parameters: dict[str, Any],
        single: bool,
    ) -> None:
        if not metrics:
            raise MetricError("get_scorer needs at least one metric")
        if parameters and not single:
            raise MetricError("parameters are possible for one metric only; make a dict of single scorers")
        for name, metric in all_defined(metrics).items():
            known = metric.parameters
            unknown = sorted(set(parameters) - set(known))
            if unknown:
                raise MetricError(f"{name} has no parameter {unknown[0]!r}; it has: {', '.join(known) or 'none'}")
        self.metrics, self.conventions, self.parameters, self.single = metrics, conventions, parameters, single
        self.labels = labels
        self._request: bool | str | None = None

    def set_score_request(self, *, sample_weight: bool | str | None) -> _Scorer:
        """Say whether scikit-learn passes weights of the rows on, or under which name; see its metadata routing."""
        self._request = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """Return the request of weights of the rows."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._request)
        return request

    def __repr__(self) -> str:
        names = list(all_defined(self.metrics))
        name: Any = names[0] if self.single else names
        return f"get_scorer({', '.join([repr(name), *(f'{k}={v!r}' for k, v in self.parameters.items())])})"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float | dict[str, float]:
        """Return the score of a fitted estimator on X and true labels y."""
        outputs: dict[str, Any] = {}
        values = {}
        try:
            y = tags_for_model(y, estimator)
        except ValueError as error:
            raise MetricError(str(error)) from None
        refuse_other_order(getattr(estimator, "label_names_", None), "the model", getattr(y, "columns", None), "y")
        for name, metric in all_defined(self.metrics).items():
            method = _method(estimator, _METHODS[metric.needs], name)
            if method not in outputs:
                outputs[method] = label_outputs(getattr(estimator, method)(X), estimator)
            chosen = {"sample_weight": sample_weight, "labels": self.labels}
            value = metric.function(y, outputs[method], self.conventions, **chosen, **self.parameters)
            values[name] = value if metric.direction == "max" else -value
        return next(iter(values.values())) if self.single else values

    def own_metric(self) -> OwnMetric:
        """Return the metric that this scorer is where another function than a scorer of scikit-learn takes one."""
        if not self.single:
            raise MetricError(f"{self!r} has several values; pass scorers of one metric each")
        metric = defined(self.metrics[0])
        given = dict(self.parameters)
        if self.conventions != PRESETS["default"]:
            presets = (name for name, preset in PRESETS.items() if preset == self.conventions)
            given["conventions"] = next(presets, self.conventions)
        if self.labels is not None:
            given["labels"] = self.labels
        name, title = named(metric.name, given, metric.direction == "min")
        return OwnMetric(name, title, metric.needs, self._value, plain=name == metric.name)

    def _value(
        self,
        Y: Any,
        given: Any,
        conventions: str | Conventions = "default",
        *,
        sample_weight: Any = None,
        labels: Any = None,
        y_mask: Any = None,
    ) -> float:
        """Return the score of predictions, under the conventions of this scorer."""
        if labels is not None and self.labels is not None:
            raise MetricError(f"{self!r} has its own labels, so labels={labels!r} must not be given")
        metric, chosen = defined(self.metrics[0]), self.labels if labels is None else labels
        cells = {"sample_weight": sample_weight, "labels": chosen, "y_mask": y_mask}
        value = metric.function(Y, given, self.conventions, **cells, **self.parameters)
        return value if metric.direction == "max" else -value


def _method(estimator: Any, methods: tuple[str, ...], name: str) -> str:
    """Return the first method that the estimator has."""
    for method in methods:
        if hasattr(estimator, method):
            return method
    raise MetricError(f"{type(estimator).__name__} has no {' or '.join(methods)}, which the metric {name} needs")


def label_outputs(output: Any, estimator: Any) -> Any:
    """Return the output of an estimator as a matrix (n, q); of a list of arrays per label, the columns of class 1."""
    if not isinstance(output, list) or not output or np.ndim(output[0]) == 0:
        return output
    classes = getattr(estimator, "classes_", None)
    columns = []
    for label, part in enumerate(output):
        values = np.asarray(part)
        if values.ndim == 2:
            if classes is None and values.shape[1] != 2:
                raise MetricError(
                    f"label {label}: the output has shape {values.shape} and the estimator has no classes_"
                )
            column = np.flatnonzero(np.asarray([0, 1] if classes is None else classes[label]) == 1)
            values = values[:, column[0]] if column.size else np.zeros(len(values))
        columns.append(values)
    return np.column_stack(columns)
