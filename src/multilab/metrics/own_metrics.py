"""Metrics that users define: scorers of scikit-learn, and functions of labels and predictions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Decisions, Scores, refuse_outside_unit_interval, without_tags
from multilab.metrics.label_sets import LabelSets

Needs = Literal["scores", "probabilities", "decisions"]
MetricLike = str | Callable[..., Any]
"""A name, a scorer, or a function whose second argument is called ``decisions``, ``scores`` or ``probabilities``."""

_NEEDS: tuple[Needs, ...] = ("decisions", "scores", "probabilities")
_LONGEST = 24  # characters of a value in a title
_OF_METHODS: dict[str, Needs] = {"predict": "decisions", "predict_proba": "probabilities"}


class OwnMetric(NamedTuple):
    """A metric that this package does not define; larger values are better.

    Attributes
    ----------
    name, title : str
        Column of tables, and how it is displayed.
    needs : {"decisions", "scores", "probabilities"}
        What it compares with the true labels.
    function : callable
        As `multilab.metrics.registry.Metric.function`.
    plain : bool
        Whether it is the metric of this package that has the name.
    """

    name: str
    title: str
    needs: Needs
    function: Callable[..., float]
    plain: bool = False


def named(function: str, parameters: dict[str, Any], negative: bool = False) -> tuple[str, str]:
    """Return the name and the title of a function with parameters: ``fbeta_score_beta_2``, ``fbeta_score(beta=2)``."""
    title = "neg_" * negative + function
    shown = {name: repr(value) for name, value in parameters.items() if value is not None}
    if shown:
        short = (
            f"{name}={text if len(text) <= _LONGEST else type(parameters[name]).__name__}"
            for name, text in shown.items()
        )
        title += f"({', '.join(short)})"
    return re.sub(r"\W+", "_", title).strip("_"), title


def is_scorer(given: Any) -> bool:
    """Return whether an object is a scorer of this package or of scikit-learn, which takes an estimator."""
    return hasattr(given, "own_metric") or (hasattr(given, "_score_func") and hasattr(given, "_response_method"))


def own_metric(given: Any) -> OwnMetric:
    """Return the metric that a scorer, or a function ``(Y, decisions)`` or ``(Y, scores)``, stands for.

    Raises
    ------
    MetricError
        If it is neither, or does not say what it takes.
    """
    if is_scorer(given):
        return given.own_metric() if hasattr(given, "own_metric") else _of_scikit_learn(given)
    if not callable(given):
        raise MetricError(f"a metric is a name, a scorer or a function, got {type(given).__name__}")
    title = getattr(given, "__name__", type(given).__name__)
    accepted = _parameters(given)
    positional = [p.name for p in accepted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    second = positional[1] if len(positional) > 1 else ""
    needs = next((kind for kind in _NEEDS if kind == second), None)
    if needs is None:
        raise MetricError(
            f"metric {title}: call the second argument decisions, scores or probabilities, so that it gets these, or "
            "pass sklearn.metrics.make_scorer(...)"
        )
    name, _ = named(title, {})
    return OwnMetric(name, title, needs, _function(given, needs, title, 1, _takes_weights(accepted)))


def _of_scikit_learn(scorer: Any) -> OwnMetric:
    """Return the metric of what ``sklearn.metrics.make_scorer`` or ``get_scorer`` returns.

    It calls a method of an estimator, but stored predictions are all that is there: only the function of labels and
    predictions in it is called, which has no public name.
    """
    function, sign, parameters = scorer._score_func, scorer._sign, scorer._kwargs
    method = scorer._response_method
    needs = _OF_METHODS.get(method, "scores") if isinstance(method, str) else "scores"
    name, title = named(getattr(function, "__name__", type(function).__name__), parameters, sign < 0)
    weighted = _takes_weights(_parameters(function))

    def value(Y: np.ndarray, given: np.ndarray, **weights: Any) -> Any:
        return function(Y, given, **parameters, **weights)

    return OwnMetric(name, title, needs, _function(value, needs, title, sign, weighted))


def _function(
    function: Callable[..., Any], needs: Needs, title: str, sign: int, weighted: bool
) -> Callable[..., float]:
    """Return a function of matrices as that of a metric, from one of two dense arrays."""

    def value(
        Y: Any,
        given: Any,
        conventions: str | Conventions = "default",
        *,
        sample_weight: Any = None,
        labels: Any = None,
        y_mask: Any = None,
    ) -> float:
        Y, given = without_tags(Y, given, names=("Y", needs))
        truth = LabelSets(Y, "Y", y_mask, sample_weight, labels)
        truth.refuse_cell_weights(title)
        if truth.observed is not None:
            raise MetricError(f"metric {title}: its function takes complete labels, and some of Y were not observed")
        if truth.weights is not None and not weighted:
            raise MetricError(f"metric {title}: its function has no argument sample_weight")
        if needs == "decisions":
            predicted = truth.chosen(Decisions(given), needs).rows(0, truth.shape[0]).astype(np.int64)
        else:
            scores = truth.chosen(Scores(given), needs)
            if needs == "probabilities":
                refuse_outside_unit_interval(scores, decided=False)
            predicted = scores.rows(0, truth.shape[0])
        weights = {} if truth.weights is None else {"sample_weight": truth.weights * truth.weight_scale}
        result = function(truth.to_csr().toarray().astype(np.int64), predicted, **weights)
        if np.ndim(result) or not isinstance(result, int | float | np.number | np.bool_):
            raise MetricError(f"metric {title}: its function must return one number, got {type(result).__name__}")
        return sign * float(result)

    return value


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # some functions in C
        return []


def _takes_weights(parameters: list[inspect.Parameter]) -> bool:
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)
