"""Fit and score several estimators on the same splits of one dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import joblib
import numpy as np
import pandas as pd
from joblib import delayed
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from multilab.cells.fitting import fit_on_rows
from multilab.comparison.board import board_of, summed
from multilab.comparison.errors import ComparisonError
from multilab.core.messages import printable
from multilab.core.parallel import parallel
from multilab.core.tags import tag_columns
from multilab.datasets.rows_and_labels import columns_named, labels_by_name, names_columns, rows_of
from multilab.decision import TunedThresholdClassifier
from multilab.metrics import per_label
from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import by_name, defined
from multilab.metrics.scorers import label_outputs
from multilab.metrics.scoring import score_all
from multilab.model_selection import IterativeStratifiedGroupKFold, IterativeStratifiedKFold
from multilab.statistics import Leaderboard
from multilab.statistics.result_files import CELL

__all__ = ["compare"]

METRICS = ("ranking_loss", "macro_average_precision", "macro_f1", "micro_f1", "hamming_loss")


def compare(
    estimators: Sequence[BaseEstimator] | Mapping[str, BaseEstimator],
    X: Any,
    Y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    metrics: Iterable[MetricLike] = METRICS,
    conventions: str | Conventions = "default",
    alpha: float = 0.05,
    n_jobs: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> Leaderboard:
    """Fit estimators on the same splits and compare their scores on the held-out rows.

    Parameters
    ----------
    estimators : list of estimators, or dict of str to estimator
        Multi-label classifiers, or pipelines that end in one, of this package, of scikit-learn or of any library:
        objects with ``fit`` and ``predict_proba``, ``decision_function`` or ``predict``. The estimators of a list are
        named after their last step.
    X : path-like, data frame, array-like or sparse matrix of n rows
        A table as a file, or as a data frame of pandas, polars or Arrow, or a matrix. Columns of text, categories and
        dates need an encoder as the first step of each estimator: ``make_pipeline(FrameEncoder(), MLkNN())``.
    Y : str, list of str, array-like, sparse matrix or data frame of shape (n, q), or n collections of tags
        Labels, 0/1; NaN where a label was not observed, which the metrics leave out. Tags, and names of columns of X,
        are read as by `AutoMultiLabel.fit`; the labels are then the tags of all rows.
    cv : int or splitter, default=5
        Number of iteratively stratified folds (seed 0), or any splitter of scikit-learn or `multilab.model_selection`.
        More splits, for example from ``RepeatedIterativeStratifiedKFold``, give more powerful tests.
    groups : str or array-like of shape (n,), optional
        Group of each row, such as a patient, for the splitter, or the column of X that holds it. If ``cv`` is a number,
        no group has rows on both sides of a split.
    metrics : iterable of str or callable
        Names of `multilab.metrics`, scorers, or functions of your own (guide page *your own metric*). The first one
        orders the table.
    conventions : str or Conventions, default="default"
        Preset or rules of the metrics.
    alpha : float, default=0.05
        Significance level of the tests, after Holm's correction.
    n_jobs : int, optional
        Number of parallel fits; 1 by default, so that seconds are comparable. A fit uses one thread of each numerical
        library (BLAS, OpenMP), as everywhere in this package.
    progress : callable, optional
        Called with one line after each fit.

    Returns
    -------
    Leaderboard
        An estimator that fails is listed with the reason and has no values; the others continue.

    Raises
    ------
    ComparisonError
        If there is no estimator, two have the same name, or a metric is unknown (MetricError).
    DatasetError
        If the file cannot be read, a column does not exist, or its cells are not labels.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from multilab import compare
    >>> from multilab.methods import BinaryRelevance, MLkNN
    >>> X, Y = make_multilabel_classification(n_samples=120, n_classes=4, random_state=0)
    >>> linear = BinaryRelevance(LogisticRegression(), calibration="none")
    >>> board = compare([MLkNN(), linear], X, Y, cv=3, metrics=["ranking_loss", "macro_f1"])
    >>> board.table.index.tolist()
    ['BinaryRelevance', 'MLkNN']
    """
    named = _named(estimators)
    measured = tuple(by_name(metrics).values())
    if not measured:
        raise ComparisonError("name at least one metric")
    chosen = resolve(conventions)
    X, Y, groups = _rows_and_labels(X, Y, groups)
    folds = IterativeStratifiedKFold if groups is None else IterativeStratifiedGroupKFold
    splitter = folds(cv, random_state=0) if isinstance(cv, int) else check_cv(cv)
    splits = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, Y, groups)]
    jobs = [(name, number) for name in named for number in range(len(splits))]
    results = parallel(n_jobs)(
        delayed(_run)(named[name], X, Y, *splits[number], measured, chosen)
        for name, number in _announced(jobs, progress)
    )
    rows: list[tuple[object, ...]] = []
    failed: list[tuple[object, ...]] = []
    decided = []
    for (name, number), (values, labels, reason) in zip(jobs, results, strict=True):
        rows += [("", number, name, metric, value) for metric, value in values.items()]
        if reason:
            failed.append(("", number, name, f"split {number}: {reason}"))
        else:
            decided.append(labels.assign(method=name))
    return board_of(
        pd.DataFrame(rows, columns=[*CELL, "metric", "value"]),
        measured,
        tuple(named),
        failed,
        summed(decided),
        test_to_train=float(np.mean([len(test) / len(train) for train, test in splits])),
        alpha=alpha,
        untuned=_untuned(named),
    )


def _rows_and_labels(X: Any, Y: Any, groups: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels and groups, where a file becomes a frame, and tags become a 0/1 column for each."""
    X, named, _ = columns_named(rows_of(X, [Y, groups]), groups=groups)
    if names_columns(X, Y):
        X, Y, _ = labels_by_name(X, Y)
    try:
        return X, tag_columns(Y), named["groups"]
    except ValueError as error:
        raise ComparisonError(str(error)) from None


def _untuned(named: Mapping[str, BaseEstimator]) -> dict[str, str]:
    """Return the names of estimators that others wrap to tune their thresholds."""
    plain = {joblib.hash(estimator): name for name, estimator in named.items()}
    wrapped = {n: e.estimator for n, e in named.items() if isinstance(e, TunedThresholdClassifier)}
    return {n: plain[joblib.hash(e)] for n, e in wrapped.items() if joblib.hash(e) in plain}


def _announced(jobs: list[tuple[str, int]], progress: Callable[[str], object] | None) -> Iterable[tuple[str, int]]:
    """Yield the jobs, and say which one begins."""
    for position, (name, number) in enumerate(jobs, start=1):
        if progress:
            progress(f"{position} of {len(jobs)}: {name}, split {number}")
        yield name, number


def _named(estimators: Sequence[BaseEstimator] | Mapping[str, BaseEstimator]) -> dict[str, BaseEstimator]:
    if isinstance(estimators, Mapping):
        named = {str(name): estimator for name, estimator in estimators.items()}
    else:
        estimator_list = [estimators] if isinstance(estimators, BaseEstimator) else list(estimators)
        titles = [_title(estimator) for estimator in estimator_list]
        totals, seen = {title: titles.count(title) for title in titles}, dict.fromkeys(titles, 0)
        named = {}
        for title, estimator in zip(titles, estimator_list, strict=True):
            seen[title] += 1
            named[title if totals[title] == 1 else f"{title} {seen[title]}"] = estimator
    for name, estimator in named.items():
        if isinstance(estimator, type) or not hasattr(estimator, "fit"):
            raise ComparisonError(f"{name} is not an estimator; pass objects with fit, for example MLkNN(), not MLkNN")
    if not named:
        raise ComparisonError("there is no estimator to compare")
    return named


def _title(estimator: Any) -> str:
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return last.__name__ if isinstance(last, type) else type(last).__name__


def _run(
    estimator: Any,
    X: Any,
    Y: Any,
    train: np.ndarray,
    test: np.ndarray,
    metrics: tuple[MetricLike, ...],
    conventions: Conventions,
) -> tuple[dict[str, float], pd.DataFrame, str]:
    """Return the metrics and seconds of one fit, how often it assigns each label, and why it failed, if it did."""
    try:
        rows = (_safe_indexing(X, train), _safe_indexing(Y, train), _safe_indexing(X, test))
        fit, truth = fit_on_rows(clone(estimator), *rows, predict=_predictions), _safe_indexing(Y, test)
        computable = metrics if hasattr(fit.model, "predict_proba") else _without_probabilities(metrics)
        scores = fit.arrays.get("scores")
        values = score_all(truth, scores, fit.decisions, conventions=conventions, metrics=computable)
        decided = per_label(truth, decisions=fit.decisions)[["label", "observed", "count", "predicted"]]
    except Exception as error:  # an estimator of anybody may raise anything; its name and reason are in the result
        return {}, pd.DataFrame(), printable(f"{type(error).__name__}: {error}")
    seconds = {"fit_seconds": fit.fitting.seconds, "predict_seconds": fit.predicting.seconds}
    return {name: values.get(name, np.nan) for name in by_name(metrics)} | seconds, decided, ""


def _without_probabilities(metrics: tuple[MetricLike, ...]) -> list[MetricLike]:
    """Return the metrics that an estimator without probabilities has."""
    return [metric for metric in metrics if defined(metric).needs != "probabilities"]


def _predictions(model: Any, X: Any) -> tuple[Any, Any]:
    """Return scores (None where the estimator has decisions only) and decisions."""
    if hasattr(model, "predict_with_scores"):
        return model.predict_with_scores(X)
    decisions = label_outputs(model.predict(X), model)
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            return label_outputs(getattr(model, name)(X), model), decisions
    return None, decisions
