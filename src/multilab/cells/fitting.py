"""A method as an estimator, and a fit on rows: the one place where methods, and estimators of others, are fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells.features import Columns, Scaling
from multilab.cells.fit_costs import RECALL, Meter, model_bytes, neighbour_recall, one_thread
from multilab.cells.method import Method, build, load_method, makes_dense
from multilab.cells.pipeline import MethodPipeline, out_of_fold
from multilab.cells.seeds import seed_estimator
from multilab.methods.labels import check_learns_from_missing, has_unobserved

if TYPE_CHECKING:
    from multilab.datasets import TableEncoder

__all__ = ["Fit", "dense_columns", "estimator_of", "fit_on_rows", "score_out_of_fold"]


def estimator_of(
    method: Method | str, *seeds: Any, encoder: TableEncoder | None = None, columns: np.ndarray | None = None
) -> MethodPipeline:
    """Return the estimator of a method: its columns, its scaling, and what its file names.

    Parameters
    ----------
    method : Method or str
        Or the name of a file in ``conf/method``.
    *seeds : int, then str
        Root and axes of the seeds of random arguments that are None, see `multilab.cells.seeds.seed_for`; without
        them they stay None.
    encoder : TableEncoder, optional
        What encoded the rows of a table: it knows which columns are words.
    columns : ndarray of int, optional
        Columns of the rows to choose from; None: all.

    Returns
    -------
    MethodPipeline
        Unfitted. Steps of a pipeline in the method's file are steps of it, under their names.
    """
    method = load_method(method) if isinstance(method, str) else method
    estimator = build(method)
    if seeds:
        estimator = seed_estimator(estimator, *seeds, method.seed_name)
    words = None
    if encoder is not None:
        columns = dense_columns(method, encoder, columns)
        words = np.flatnonzero(np.isin(np.arange(encoder.width) if columns is None else columns, encoder.unscaled))
    steps: list[tuple[str, Any]] = [] if columns is None else [("columns", Columns(columns))]
    if method.preprocessing != "none" and not method.base_scores:  # scores stay as they are
        steps.append(("scale", Scaling(method.preprocessing, words)))
    is_pipeline = method.target == "sklearn.pipeline.Pipeline"
    return MethodPipeline([*steps, *(estimator.steps if is_pipeline else [("classifier", estimator)])])


def dense_columns(method: Method, encoder: TableEncoder, columns: np.ndarray | None = None) -> np.ndarray | None:
    """Return the columns that a method gets: only frequent words of a text if it makes its features dense.

    None: all columns. 5,000 rows of 50,000 words take 2 GB when they are dense.
    """
    frequent = encoder.dense_columns
    if frequent is None or not makes_dense(method):
        return columns
    return frequent if columns is None else np.intersect1d(frequent, columns)


@dataclass
class Fit:
    """A fitted estimator, what it predicts, and what that cost.

    Attributes
    ----------
    model : estimator
    arrays : dict
        ``scores`` (unless the estimator has decisions only) and ``decisions`` of the new rows, ``scores.<metric>`` and
        ``decisions.<metric>`` of a method that has different ones for each, and ``learned_<name>`` for each learned
        attribute that was asked for.
    fitting, predicting : Meter
        Seconds and memory.
    """

    model: Any
    arrays: dict[str, np.ndarray]
    fitting: Meter
    predicting: Meter

    @property
    def scores(self) -> np.ndarray:
        """Scores of the new rows, float64 of shape (n, q)."""
        return self.arrays["scores"]

    @property
    def decisions(self) -> np.ndarray:
        """Decisions on the new rows, uint8 of shape (n, q)."""
        return self.arrays["decisions"]

    def costs(self) -> dict[str, Any]:
        """Return what a record says of the costs; the size of the model is that of its pickle."""
        costs: dict[str, Any] = {
            "fit_seconds": self.fitting.seconds,
            "predict_seconds": self.predicting.seconds,
            "peak_mb": max(self.fitting.peak_mb, self.predicting.peak_mb),
            "memory_method": self.fitting.method,
            "model_bytes": model_bytes(self.model),
        }
        recall = neighbour_recall(self.model)
        return costs if recall is None else costs | {RECALL: recall}


def fit_on_rows(
    model: Any,
    X: Any,
    Y: Any,
    X_new: Any = None,
    *,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    attributes: Iterable[str] = (),
    predict: Callable[[Any, Any], tuple[Any, Any]] | None = None,
) -> Fit:
    """Fit an estimator and score new rows, with one thread of each numerical library.

    Parameters
    ----------
    model : estimator
        A `MethodPipeline`, see `estimator_of`, or with ``predict`` anybody's.
    X : ndarray or CSR of shape (n, d)
        Training rows: features, or base scores; of others whatever their `fit` takes.
    Y : ndarray of shape (n, q)
        Their labels, -1 where not observed.
    X_new : ndarray or CSR of shape (m, d), optional
        Rows to score.
    sample_weight, groups : ndarray of shape (n,), optional
    attributes : iterable of str
        Learned attributes of a `MethodPipeline` to return, where it has them; ``<step>__<attribute>`` of a step.
    predict : callable, optional
        Returns scores, or None, and decisions of a fitted estimator and rows.

    Raises
    ------
    MethodError
        Labels are not observed, and the method cannot learn from such; or it refuses its arguments.
    """
    if isinstance(model, MethodPipeline) and has_unobserved(Y):  # a step of another package would take -1 for a class
        check_learns_from_missing(model)
    given = {"sample_weight": sample_weight, "groups": groups}
    arrays: dict[str, np.ndarray] = {}
    fitting, predicting = Meter(), Meter()
    with one_thread(), fitting:  # here: building may have loaded another BLAS
        model.fit(X, Y, **{name: value for name, value in given.items() if value is not None})
    if X_new is not None:
        with one_thread(), predicting:
            scores, arrays["decisions"] = (predict or MethodPipeline.predict_with_scores)(model, X_new)
        if scores is not None:
            arrays["scores"] = scores
        if hasattr(model, "predict_measures"):
            for metric, (scores, decisions) in model.predict_measures(X_new).items():
                arrays[f"scores.{metric}"], arrays[f"decisions.{metric}"] = scores, decisions.astype(np.uint8)
    for name in attributes:
        value = model.learned(name)
        if value is not None:
            arrays[f"learned_{name}"] = np.asarray(value)
    return Fit(model, arrays, fitting, predicting)


def score_out_of_fold(
    model: MethodPipeline, X: Any, Y: np.ndarray, folds: Any, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, Meter]:
    """Return the scores of all rows by copies that never saw them, shape (n, q), and what that cost."""
    meter = Meter()
    with one_thread(), meter:
        return out_of_fold(model, X, Y, folds, sample_weight), meter
