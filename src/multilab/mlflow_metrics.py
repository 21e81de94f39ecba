"""Multi-label metrics for MLflow's evaluation, which supports only one label per row.

``mlflow.models.evaluate(model_type="classifier")`` refuses two columns of targets and a column of lists. What it can
evaluate is a table with all labels of a row in one column and metrics that read such columns: :func:`evaluation_frame`
and :func:`evaluation_metrics` make both, and :func:`evaluate_labels` calls MLflow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from multilab.core import MultilabError
from multilab.core.tags import same_columns
from multilab.metrics import METRICS, score_all
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import all_defined, by_name, defined

__all__ = ["EvaluationError", "evaluate_labels", "evaluation_frame", "evaluation_metrics"]

LABELS, DECISIONS, SCORES = "labels", "decisions", "scores"
"""The columns of an evaluation frame; each holds a list of q numbers per row."""


class EvaluationError(MultilabError, ValueError):
    """Predictions that cannot be evaluated."""


def evaluation_frame(y_true: Any, decisions: Any, scores: Any = None, features: pd.DataFrame | None = None) -> Any:
    """Return a table that MLflow can evaluate: the labels of a row in one column.

    Parameters
    ----------
    y_true : DataFrame or array-like of shape (n, q), or n collections of tags
        True labels, 0/1; NaN where a label was not observed. The columns of a DataFrame are the labels.
    decisions : DataFrame or array-like of shape (n, q), or n collections of tags
        Predicted labels. Columns of a DataFrame are put into the order of ``y_true``.
    scores : DataFrame or array-like of shape (n, q), optional
        Predicted scores or probabilities.
    features : DataFrame of shape (n, d), optional
        Columns to show next to the labels.

    Returns
    -------
    DataFrame of shape (n, d + 3)
        The features, then ``labels``, ``decisions`` and, if given, ``scores``, each a list of q numbers per row.

    Raises
    ------
    EvaluationError
        If shapes or labels differ, or a feature has the name of one of these columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.mlflow_metrics import evaluation_frame
    >>> Y = pd.DataFrame({"rain": [1, 0], "wind": [0, 0]})
    >>> evaluation_frame(Y, Y[["wind", "rain"]]).loc[0].to_dict()
    {'labels': [1, 0], 'decisions': [1, 0]}
    """
    try:
        y_true, decisions, scores = same_columns(y_true, decisions, scores, names=("y_true", DECISIONS, SCORES))
    except ValueError as error:
        raise EvaluationError(str(error)) from None
    given = {DECISIONS: decisions} | ({} if scores is None else {SCORES: scores})
    truth = _matrix(LABELS, y_true)
    columns = {LABELS: truth} | {name: _matrix(name, values, y_true) for name, values in given.items()}
    for name, values in columns.items():
        if values.shape != truth.shape:
            raise EvaluationError(f"`{name}` has shape {values.shape}, the true labels {truth.shape}")
    table = pd.DataFrame({name: values.tolist() for name, values in columns.items()})
    if features is None:
        return table
    if len(features) != len(table) or set(columns) & set(features.columns):
        raise EvaluationError(f"`features` needs {len(table)} rows and other column names than {', '.join(columns)}")
    return pd.concat([features.reset_index(drop=True), table], axis=1)


def evaluation_metrics(metrics: Iterable[MetricLike] | None = None, conventions: str = "default") -> list[Any]:
    """Return metrics for the argument ``extra_metrics`` of ``mlflow.models.evaluate``.

    They read the columns of :func:`evaluation_frame`: ``labels`` as targets, ``decisions`` as predictions, and
    ``scores`` for metrics of rankings and probabilities.

    Parameters
    ----------
    metrics : iterable of str or callable, optional
        Names of metrics of :mod:`multilab.metrics`, scorers, or functions of your own; default are those of decisions.
    conventions : str
        Preset of the metrics.

    Returns
    -------
    list of mlflow.models.EvaluationMetric

    Raises
    ------
    MetricError
        If a metric is unknown.

    Examples
    --------
    >>> from multilab.mlflow_metrics import evaluation_metrics
    >>> [(metric.name, metric.greater_is_better) for metric in evaluation_metrics(["hamming_loss", "macro_auc"])]
    [('hamming_loss', False), ('macro_auc', True)]
    """
    from mlflow.models import make_metric

    names = [key for key, metric in METRICS.items() if metric.needs == DECISIONS] if metrics is None else metrics
    chosen = by_name(names)
    return [
        make_metric(
            eval_fn=(_of_decisions if metric.needs == DECISIONS else _of_scores)(chosen[name], conventions),
            greater_is_better=metric.direction == "max",
            name=name,
            long_name=metric.title,
        )
        for name, metric in all_defined(chosen.values()).items()
    ]


def evaluate_labels(
    y_true: Any,
    decisions: Any,
    scores: Any = None,
    *,
    features: pd.DataFrame | None = None,
    metrics: Iterable[MetricLike] | None = None,
    conventions: str = "default",
    model_id: str | None = None,
    name: str | None = None,
) -> Any:
    """Evaluate multi-label predictions with MLflow and log the metrics to the active run.

    Parameters
    ----------
    y_true, decisions, scores, features
        As for :func:`evaluation_frame`.
    metrics : iterable of str or callable, optional
        As for :func:`evaluation_metrics`. By default the metrics of decisions and, with scores, all that need no
        probabilities.
    conventions : str
        Preset of the metrics.
    model_id : str, optional
        A LoggedModel to which the metrics are linked.
    name : str, optional
        Name of the dataset that the run and the model are linked to.

    Returns
    -------
    mlflow.models.EvaluationResult
        ``result.metrics`` is a dict of name to value.

    Raises
    ------
    EvaluationError
        If shapes or labels differ, or a metric needs scores and there are none.
    MetricError
        If a metric is unknown.

    Examples
    --------
    >>> import mlflow
    >>> from multilab.mlflow_metrics import evaluate_labels
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     evaluate_labels([[1, 0], [0, 1]], [[1, 0], [1, 1]], metrics=["hamming_loss"]).metrics
    {'hamming_loss': 0.25}
    """
    from mlflow.data.pandas_dataset import from_pandas
    from mlflow.models import evaluate

    kinds = (DECISIONS,) if scores is None else (DECISIONS, SCORES)
    names = [key for key, metric in METRICS.items() if metric.needs in kinds] if metrics is None else list(metrics)
    without = [key for key, metric in all_defined(names).items() if scores is None and metric.needs != DECISIONS]
    if without:
        raise EvaluationError(f"the metric {without[0]!r} needs `scores`")
    chosen = evaluation_metrics(names, conventions)
    table = evaluation_frame(y_true, decisions, scores, features)
    data = from_pandas(table, targets=LABELS, predictions=DECISIONS, name=name)
    return evaluate(data=data, evaluators="default", extra_metrics=chosen, model_id=model_id)


def _matrix(name: str, values: Any, y_true: Any = None) -> np.ndarray:
    """Return label columns as a matrix, in the order of the true labels where both have names."""
    labels = getattr(y_true, "columns", None)
    own = getattr(values, "columns", None)
    if labels is not None and own is not None:
        missing = [label for label in labels if label not in own]
        if missing or len(own) != len(labels):
            named = repr(missing[0]) if missing else f"one of {len(own)} columns"
            raise EvaluationError(f"`{name}` does not have the labels of the true labels: {named}")
        values = values[list(labels)]
    matrix = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise EvaluationError(f"`{name}` must be a table of numbers, rows x labels, got shape {matrix.shape}")
    return matrix


def _of_decisions(metric: MetricLike, conventions: str) -> Callable[..., float]:
    """Return the function of a metric that compares decisions with labels."""

    def value(predictions: Any, targets: Any) -> float:
        return _score(metric, conventions, targets, None, predictions)

    return value


def _of_scores(metric: MetricLike, conventions: str) -> Callable[..., float]:
    """Return the function of a metric that compares scores with labels."""

    def value(predictions: Any, targets: Any, scores: Any) -> float:
        return _score(metric, conventions, targets, scores, predictions)

    return value


def _score(metric: MetricLike, conventions: str, targets: Any, scores: Any, decisions: Any) -> float:
    truth, scored, decided = (
        None if column is None else np.array(list(column)) for column in (targets, scores, decisions)
    )
    return score_all(truth, scored, decided, conventions=conventions, metrics=[metric])[defined(metric).name]
