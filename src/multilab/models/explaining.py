"""Explanations of a saved model: importance of raw columns, and coefficients or feature importances if it has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.multioutput import MultiOutputClassifier

from multilab.core.messages import unknown_name
from multilab.core.text import excerpt
from multilab.datasets.table_cells import cell_texts
from multilab.methods import BinaryRelevance
from multilab.metrics import METRICS, Metric
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import defined
from multilab.models.errors import DeploymentError
from multilab.models.saved_model import SavedModel

__all__ = ["coefficient_table", "labels_of_rows", "permutation_table"]

_TRUTH = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "true": 1, "false": 0}


def labels_of_rows(rows: pd.DataFrame, labels: Sequence[str], tags: str = "") -> np.ndarray:
    """Return the labels of rows as a matrix of shape (n, q): 0, 1, or -1 where a label is missing.

    The message of a missing label names the column of ``tags`` that the file of the rows would have.

    Raises
    ------
    DeploymentError
        If a label is not in the rows, or is not 0, 1 or missing.
    """
    absent = [name for name in labels if name not in rows.columns]
    if absent:
        raise DeploymentError(
            f"permutation importance needs the labels; the rows have no column {(tags or absent[0])!r}"
        )
    columns = []
    for name in labels:
        texts = cell_texts(rows[name])
        codes = [-1 if text is None else _TRUTH.get(text.lower()) for text in texts]
        if None in codes:
            row = codes.index(None)
            raise DeploymentError(f"label {name!r}, row {row + 1}: {excerpt(repr(texts[row]))} is not 0 or 1")
        columns.append(codes)
    return np.array(columns, dtype=np.int8).T


def permutation_table(
    model: SavedModel,
    rows: pd.DataFrame,
    label: str | None = None,
    *,
    metric: MetricLike | None = None,
    n_repeats: int = 10,
    seed: int = 0,
    progress: Callable[..., Any] | None = None,
) -> pd.DataFrame:
    """Return how much a metric gets worse when the values of one raw column are permuted.

    Parameters
    ----------
    model : SavedModel
    rows : DataFrame
        Labelled rows, with the columns of the training file. Rows that the model was fitted on show which columns it
        uses; new rows show which columns help its predictions.
    label : str, optional
        The label to explain; default: all labels.
    metric : str or callable, optional
        A name of :data:`multilab.metrics.METRICS`, a scorer, or a function of your own. Default ``macro_auc``.
    n_repeats : int
        Number of permutations per column.
    seed : int
    progress : callable, optional
        Wraps the columns.

    Returns
    -------
    DataFrame
        A row per raw column, the most important first: ``column``, ``importance`` (mean loss over the permutations, in
        units of the metric; positive: the column helps) and ``std``. All 0/1 columns of a text column are permuted
        together. ``attrs`` has ``metric``, ``value`` (the metric of the unchanged rows) and ``rows`` (the number of
        rows with a label; rows without one are left out).

    Raises
    ------
    DeploymentError
        If there is no such label or metric, a column of labels is missing, or the metric is undefined on the rows.
    """
    names = model.label_names
    if label is not None and label not in names:
        raise DeploymentError(unknown_name("label", label, names))
    chosen = [names.index(label)] if label is not None else list(range(len(names)))
    metric = metric or "macro_auc"
    if isinstance(metric, str) and metric not in METRICS:
        raise DeploymentError(f"metric: {unknown_name('metric', metric, METRICS)}")
    chosen_metric = defined(metric)
    if n_repeats < 1:
        raise DeploymentError(f"repeats={n_repeats}: give at least 1")
    Y = labels_of_rows(rows, [names[j] for j in chosen], model.encoder.reading.get("tags", ""))
    labelled = (Y >= 0).any(axis=1)
    rows, Y = rows[labelled], Y[labelled]
    if not len(rows):
        raise DeploymentError("no row has a label, which permutation importance needs")
    X = model.encode(rows).X
    value = _value(model, X, Y, chosen, chosen_metric)
    if not np.isfinite(value):
        raise DeploymentError(
            f"{chosen_metric.name} is undefined on these {len(Y)} rows; a label may be 0 or 1 in all of them"
        )
    sign = 1 if chosen_metric.direction == "max" else -1
    rng = np.random.default_rng(seed)
    table, start = [], 0
    columns = model.encoder.columns
    for column in progress(columns, len(columns)) if progress else columns:
        losses = []
        for _ in range(n_repeats):
            changed = _permuted(X, start, start + column.width, rng.permutation(X.shape[0]))
            losses.append(sign * (value - _value(model, changed, Y, chosen, chosen_metric)))
        table.append((column.name, float(np.mean(losses)), float(np.std(losses))))
        start += column.width
    result = pd.DataFrame(table, columns=["column", "importance", "std"])
    result = result.sort_values("importance", ascending=False, kind="stable", ignore_index=True)
    result.attrs = {"metric": chosen_metric.name, "value": value, "rows": len(Y)}
    return result


def _value(model: SavedModel, X: Any, Y: np.ndarray, labels: Sequence[int], metric: Metric) -> float:
    scores, decisions = model.predict_encoded(X)
    predicted = decisions if metric.needs == "decisions" else scores
    return float(metric.function(Y, predicted[:, labels], "default"))


def _permuted(X: Any, start: int, stop: int, order: np.ndarray) -> Any:
    """Return X with the rows of some columns in another order."""
    if hasattr(X, "tolil"):
        changed = X.tocsc(copy=True).tolil()
        changed[:, start:stop] = X.tocsc()[:, start:stop][order]
        return X.__class__(changed.tocsr())
    changed = X.copy()
    changed[:, start:stop] = X[order, start:stop]
    return changed


def coefficient_table(model: SavedModel, label: str) -> pd.DataFrame | None:
    """Return the coefficients of a label's linear model, or the importances of its trees, None if there are none.

    Parameters
    ----------
    model : SavedModel
    label : str

    Returns
    -------
    DataFrame or None
        ``feature`` (columns of the encoded and scaled matrix), ``coefficient`` or ``importance``; the largest first.
        None for chains and for methods on scores of base methods, as their inputs are not columns of the table.
    """
    names = model.label_names
    if label not in names:
        raise DeploymentError(unknown_name("label", label, names))
    steps, features = model.estimator.named_steps, model.encoder.feature_names
    if "members" in steps:
        return None
    estimator = _label_estimator(model.estimator.classifier, names.index(label))
    if "columns" in steps:
        features = [features[k] for k in steps["columns"].columns]
    for attribute, kind in (("coef_", "coefficient"), ("feature_importances_", "importance")):
        values = getattr(estimator, attribute, None)
        if values is None:
            continue
        values = np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float)
        values = values[names.index(label)] if values.ndim == 2 and len(values) == len(names) > 1 else values.ravel()
        if values.shape == (len(features),):
            order = np.argsort(-np.abs(values), kind="stable")
            return pd.DataFrame({"feature": [features[j] for j in order], kind: values[order]})
    return None


def _label_estimator(estimator: Any, j: int) -> Any:
    """Return the fitted estimator of label ``j`` inside decision layers and binary relevance, or the estimator."""
    if hasattr(estimator, "estimator_"):  # tuned decisions, calibration
        return _label_estimator(estimator.estimator_, j)
    if isinstance(estimator, BinaryRelevance):
        return getattr(estimator._labels[j], "model", None)
    if isinstance(estimator, MultiOutputClassifier):
        return estimator.estimators_[j]
    return estimator
