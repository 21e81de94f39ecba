"""A good model from one call: fit a portfolio on a table within a time limit."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, has_fit_parameter

from multilab.comparison.errors import ComparisonError
from multilab.core.messages import unknown_name
from multilab.core.parallel import workers
from multilab.datasets.embeddings import embedded_frame
from multilab.datasets.errors import DatasetWarning
from multilab.datasets.rows_and_labels import columns_named, is_path, labels_by_name, names_columns, rows_of
from multilab.methods.base import MultiLabelClassifier, refuse_cell_weights
from multilab.methods.labels import binary_classes, check_labels, has_unobserved, label_names, with_tag_columns
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import ALL_METRICS, by_name, defined
from multilab.model_selection.group_kfold import group_matrix
from multilab.models.prediction import predict_rows

if TYPE_CHECKING:
    from multilab.comparison.plan import MethodRun
    from multilab.comparison.training_set import Judged, TrainingSet
    from multilab.datasets import TableEncoder
    from multilab.models.final_fit import CrossValidated
    from multilab.models.saved_model import SavedModel
    from multilab.statistics import Leaderboard

__all__ = ["AutoMultiLabel"]

_SHARE_OF_FITS = 0.85
"""Share of the time for the fits; the rest is for the stack."""
_SHARE_OF_FIRST = 0.92
"""Share of the time until the end of the first model; with all of it used, nothing but loading the model follows."""
_STACKED = 8
"""Methods of a stack; with more the second level takes longer than they do."""
_FEW_ROWS = 200
"""Rows of the first fit of a search, which is sure to end; of large tables a sixteenth of the rows."""
_GRACE = 60.0
"""Seconds that the first fit has even if the time is up, so that there is a model: a linear method on 200 rows takes
less than one, unless the machine is very busy."""
_MARGIN = 1.2
"""Fits and their metrics take up to this many times what the fit before makes one expect."""


class AutoMultiLabel(MultiLabelClassifier):
    """Multi-label classifier chosen from a portfolio within a time limit.

    It accepts ordinary tables: a file or a data frame with numbers, dates, categories and free text. The labels are a
    column of tags or 0/1 columns of the table, or a separate matrix or list of tags. It fits the methods of
    ``conf/portfolio.yaml`` (cheap methods first; on text, linear methods first), stacks their out-of-fold scores, tunes
    decisions for the metric, and keeps the best model. `multilab compare`, and `multilab fit` without a method, use the
    same portfolio, plan, decisions and choice.

    Parameters
    ----------
    time_limit : float or None, default=60.0
        Seconds for ``fit``, which ends within 1.1 times the limit plus two seconds, or earlier if all methods are
        fitted. Methods that still run then are stopped. If the limit is too short to encode the table and fit a linear
        method to 200 rows, these two steps exceed it, so that there is a model. None means no limit.
    metric : str or callable, default="macro_f1"
        Metric to choose by: a name of `multilab.metrics`, a scorer, or a function of your own (guide page *your own
        metric*). Decisions are tuned for macro F1, micro F1, Hamming loss, example F1 and subset accuracy.
    budget_fits : int or None, default=None
        Maximal number of fits. A method takes six fits, on five folds and on all rows; the first method is always
        tried. With ``time_limit=None``, the result is then the same on every run.
    columns : mapping of str to str, optional
        Kinds of columns of a frame that are not to be recognised: ``{"zip": "category"}``, see `FrameEncoder`.
    drop : sequence of str, optional
        Columns of a frame that are not used, such as an identifier; new rows may have them. `multilab predict` copies
        them from the file to the predictions.
    n_jobs : int, optional
        Number of parallel fits, each in a process; 1 when None, the number of cores for -1.
    random_state : int or RandomState, optional
        Seed of the folds and methods; 0 when None.

    Attributes
    ----------
    leaderboard_ : DataFrame
        One row per method, and one per method with tuned thresholds, best first: ``score`` (mean of the metric over
        five folds, each scored by models that have not seen it), ``seconds``, ``state`` ("done", "left out", "stopped"
        or "failed") and ``reason``.
    best_ : str
        Name of the row of ``leaderboard_`` whose model predicts.
    recommendation_ : Recommendation
        Reasons and certainty of the choice, and the effect of tuned thresholds on other metrics.
    estimator_ : MethodPipeline
        The fitted model.
    label_names_ : ndarray of shape (q,)
        Tags, or names of the label columns. Missing if the labels have no names.
    n_labels_, classes_
        See `multilab.methods.MultiLabelClassifier`.
    n_features_in_ : int
        Number of features, or of columns of a frame.
    feature_names_in_ : ndarray of str
        Names of the columns of a frame.

    Notes
    -----
    **Labels.** In ``fit(frame, "tags")``, the labels are a column with lists of tags or with texts such as
    ``red|blue``. In ``fit(frame, ["happy", "sad"])`` they are columns; patterns such as ``mood_*`` are allowed. In
    ``fit(X, y)``, ``y`` is a matrix, a data frame of labels, or the tags of each row as lists or texts, see
    `multilab.methods.MultiLabelClassifier`. Instead of a pandas frame you can pass the path of a file, or a frame of
    polars or Arrow. `score` takes the same arguments. NaN, and -1 in an int8 ``y``, mean that a label was not observed;
    methods that cannot learn from such labels are left out.

    **The choice** follows `multilab.comparison.recommend`: the model has the best mean over the folds among the methods
    that assign no label far too often. Tuned thresholds are guarded as in `guarded_thresholds`; if their gain is not
    significant, macro, micro and example F1 must not lose more than that gain. If no method is significantly better
    than the label frequencies, the best one is kept and `recommendation_` says so.

    **Scores.** `predict_proba` returns probabilities. For a method with margins, they come from a calibration on its
    out-of-fold scores; decisions do not depend on this calibration.

    **Weights and groups.** With ``sample_weight``, the stack and the methods that take no weights are left out;
    decisions, calibration and the metric are weighted. With ``groups``, no group has rows on both sides of a fold, and
    the stack is scored by a second level that has not seen the group. Methods that split rows into folds inside their
    own ``fit`` (deep forests, calibrated support vector machines) ignore groups there.

    **The training rows** stay in the fitted object, since `save` summarises them for monitoring. The folder that `save`
    writes contains no training rows, except those that the method itself keeps.

    Saving needs skops: ``pip install skops``.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab import AutoMultiLabel
    >>> remarks = ["a quiet song of the sea", "a loud song", "quiet waves of the sea", "too loud"] * 10
    >>> songs = pd.DataFrame({"remark": remarks, "tags": ["calm|sea", "noise", "calm|sea", "noise"] * 10})
    >>> model = AutoMultiLabel(time_limit=None, budget_fits=12, columns={"remark": "text"}).fit(songs, "tags")
    >>> model.leaderboard_.loc[["br_linear_svm", "mldf"], "state"].tolist()
    ['done', 'left out']
    >>> model.predict_frame(pd.DataFrame({"remark": ["the quiet sea", "a very loud song"]}))
       calm  noise  sea
    0     1      0    1
    1     0      1    0
    """

    _accepts_missing_labels = True

    def __init__(
        self,
        time_limit: float | None = 60.0,
        metric: MetricLike = "macro_f1",
        *,
        budget_fits: int | None = None,
        columns: Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.time_limit = time_limit
        self.metric = metric
        self.budget_fits = budget_fits
        self.columns = columns
        self.drop = drop
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the portfolio and keep the best model.

        Parameters
        ----------
        X : path-like, data frame of shape (n, m), array-like or sparse matrix of shape (n, d)
            Rows: a table as a file, or as a data frame of pandas, polars or Arrow, which may hold the labels; or a
            matrix.
        y : str, list of str, array-like or sparse matrix of shape (n, q), or n collections of tags
            See the notes of the class.
        sample_weight : str or array-like of shape (n,), optional
            Weights of the rows, >= 0, or the column of X that holds them. A row of weight 0 is absent.
        groups : str or array-like of shape (n,), optional
            Group of each row, such as a patient, or the column of X that holds it.

        Returns
        -------
        self

        Raises
        ------
        ComparisonError
            If an argument is wrong, or no model could be fitted.
        DatasetError
            If a column of the frame is neither a label nor a feature, or can be read in several ways, or if a group is
            missing.
        MethodError
            If y is not a label matrix.
        """
        from multilab.comparison.scores import metric_values
        from multilab.comparison.training_set import TrainingSet

        began = time.monotonic()
        self._check_arguments()
        X = rows_of(X, [y, groups], self.columns)
        X, named, others = columns_named(X, sample_weight=sample_weight, groups=groups)
        weights, groups = named["sample_weight"], named["groups"]
        X, dropped = _without(X, self.drop)
        X, y, weights, groups = self._present_rows(X, y, weights, groups)
        X, Y, self._tags_column = self._rows_and_labels(X, y)
        self._dropped = [*dropped, *filter(None, [self._tags_column]), *others]
        if Y.shape[0] < 2:
            raise ComparisonError(f"a model needs at least two rows, got n_samples = {Y.shape[0]}")
        if has_unobserved(Y):
            some = np.array([[1.0, np.nan], [0.0, 1.0]])
            metric_values(some, np.eye(2), np.eye(2), [self.metric])  # refuses a function of complete labels
        names = self._names
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        columns: Any = self.columns
        if isinstance(X, pd.DataFrame):  # here, since libraries of networks must not run before and after a fork
            X, columns, self._embeddings = embedded_frame(X, columns, "X")
        with tempfile.TemporaryDirectory(prefix="multilab-") as folder:
            rows = TrainingSet(X, Y, names, columns, self._metrics(), seed, Path(folder), weights, groups)
            search = Search(self, rows, began)
            try:
                search.run()
            finally:
                search.say("")
            self._folds = rows.parts
        self._training, self._seed = (X, Y, names), seed
        if isinstance(X, pd.DataFrame):
            _warn_of_columns(X, self.encoder_)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose labels are all predicted correctly.

        Parameters
        ----------
        X : path-like, data frame of shape (n, m), array-like or sparse matrix of shape (n, d)
            Rows as `fit` takes them; a file or a frame may hold the labels.
        y : str, list of str, array-like or sparse matrix of shape (n, q), or n collections of tags
            Labels as `fit` takes them. Tags that `fit` has not seen cannot be predicted; they are left out, and one
            warning counts them.
        sample_weight : str or array-like of shape (n,), optional
            Weights of the rows, or the column of X that holds them.

        Raises
        ------
        DatasetError
            If a column does not exist, or its cells are not labels.
        MethodError
            If y is not a label matrix, or is a data frame with the columns of ``label_names_`` in another order.
        """
        check_is_fitted(self, "n_labels_")
        X = self.encoder_.rows_of(X, y) if is_path(X) and self.encoder_ is not None else rows_of(X, [y])
        X, named, _ = columns_named(X, sample_weight=sample_weight)
        if names_columns(X, y):
            if not hasattr(self, "label_names_"):
                raise ComparisonError("the labels of the model have no names: pass y as an array")
            X, y, _ = labels_by_name(X, y, self._names)
        return super().score(X, y, named["sample_weight"])

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the model into a folder that `multilab predict`, `serve`, `card` and `monitor` read; return its path.

        Parameters
        ----------
        folder : path-like
            The folder is created; a model in it is replaced.

        Raises
        ------
        DeploymentError
            If the model contains an object that cannot be saved without pickle.
        """
        check_is_fitted(self, "estimator_")
        return _saved(self, Path(folder).name).save(folder)

    def _check_arguments(self) -> None:
        if isinstance(self.metric, str) and self.metric not in ALL_METRICS:
            raise ComparisonError(f"metric: {unknown_name('metric', self.metric, ALL_METRICS)}")
        defined(self.metric)
        for name in ("time_limit", "budget_fits"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise ComparisonError(f"`{name}` must be a number > 0 or None, got {value!r}")

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in getattr(self, "label_names_", [f"label{k}" for k in range(self.n_labels_)])]

    def _metrics(self) -> tuple[MetricLike, ...]:
        from multilab.comparison.portfolio import load_portfolio

        return tuple(by_name([self.metric, *load_portfolio().metrics]).values())

    def _present_rows(self, X: Any, y: Any, weights: Any, groups: Any) -> tuple[Any, Any, Any, Any]:
        """Return rows, labels, weights and groups without the rows of weight 0, from which nothing may be learned."""
        from multilab.comparison.scores import metric_values

        if groups is not None:
            groups = np.asarray(groups)
            group_matrix(groups, _num_samples(X))  # refuses other lengths and missing values
        if weights is not None:
            refuse_cell_weights(weights, type(self).__name__)
            try:
                weights = _check_sample_weight(np.asarray(weights), X, dtype=np.float64, ensure_non_negative=True)
                if not weights.any():
                    raise ValueError("all are zero")
            except (TypeError, ValueError) as error:
                wanted = f"{_num_samples(X)} finite numbers >= 0, not all of them zero"
                raise ComparisonError(f"`sample_weight` must hold {wanted}: {error}") from None
            metric_values(np.eye(2), np.eye(2), np.eye(2), [self.metric], np.ones(2))  # refuses one without weights
            if not weights.all():
                rows = np.flatnonzero(weights)
                if not names_columns(X, y):
                    check_consistent_length(X, y)
                    y = _safe_indexing(y, rows)
                X, weights = _safe_indexing(X, rows), weights[rows]
                groups = None if groups is None else groups[rows]
        if groups is not None and len(np.unique(groups)) < 2:
            raise ComparisonError("`groups` needs two groups or more: a model is scored on groups that it has not seen")
        return X, y, weights, groups

    def _rows_and_labels(self, X: Any, y: Any) -> tuple[Any, np.ndarray, str]:
        """Return features (a frame, or a validated matrix), labels, and the column of tags of X, empty without one."""
        tags = ""
        if names_columns(X, y):
            X, y, tags = labels_by_name(X, y)
        if isinstance(X, pd.DataFrame) and not X.shape[1]:
            raise ComparisonError("X has no feature: every column is a label, a weight or a group")
        if not isinstance(X, pd.DataFrame):
            X, Y = self._validate_fit(X, y)
            self.encoder_ = None
            return X, Y, tags
        y = with_tag_columns(y)
        names = label_names(y)
        classes, y = binary_classes(y)
        Y = check_labels(y, missing=True, owner=type(self).__name__)
        if len(Y) != len(X):
            raise ComparisonError(f"X has {len(X)} rows and y has {len(Y)}")
        self._set_labels(Y.shape[1], classes, names)
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        return X, Y, tags

    def _validate_features(self, X: Any, **options: Any) -> Any:
        encoder = getattr(self, "encoder_", None)
        if encoder is None and is_path(X):
            raise ComparisonError("the model was fitted to a matrix: pass a matrix, not a file")
        if options.get("reset", True) or encoder is None:
            return super()._validate_features(X, **options)
        X = encoder.read(X) if is_path(X) else rows_of(X)
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(np.asarray(X), columns=self.feature_names_in_)
        return encoder.encode(X).X

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores, decisions = predict_rows(self.estimator_, X)
        return scores, decisions

    def _scores(self, X: Any) -> np.ndarray:
        return predict_rows(self.estimator_, X)[0]


def validated(model: AutoMultiLabel, Y: np.ndarray, conventions: str = "default") -> CrossValidated:
    """Return the metrics of a fitted model on the rows that folds or a holdout scored; NaN if none did."""
    from multilab.metrics import METRICS, score_all
    from multilab.models.final_fit import CrossValidated

    judged, parts = model._judged, model._folds
    if judged is None:  # no time: the scores of the training rows say nothing
        zeros = np.zeros(Y.shape)
        return CrossValidated([], [dict.fromkeys(METRICS, np.nan)], 1.0, Y, zeros, zeros.astype(np.uint8))
    scores, decisions = judged.scores, judged.tuned if model._tuned else judged.own
    scored = np.sort(np.concatenate([test for _, test in parts]))
    values = [
        score_all(Y[test], scores[test], decisions[test], metrics=list(METRICS), conventions=conventions)
        for _, test in parts
    ]
    return CrossValidated([], values, 1 / max(len(parts) - 1, 1), Y[scored], scores[scored], decisions[scored])


def _saved(model: AutoMultiLabel, name: str) -> SavedModel:
    """Return the model as `multilab fit` saves one, described by its out-of-fold scores."""
    from multilab.comparison.decisions import objective_of
    from multilab.datasets import FeatureColumn, TableEncoder
    from multilab.models.final_fit import described_model, method_facts

    X, Y, names = model._training
    encoder = model.encoder_
    if encoder is None:
        feature_names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(X.shape[1])])
        encoder = TableEncoder(
            tuple(FeatureColumn(str(name)) for name in feature_names), tuple(names), sparse=issparse(X)
        )
    method = (
        method_facts(model._member.method)
        if model._member
        else {
            "name": "stack",
            "title": "Stack",
            "target": "multilab.methods.PortfolioStack",
            "params": {},
            "preprocessing": "none",
            "base_scores": model._members,
            "reference": "",
            "notes": "Scores of several methods, combined in the way that held-out rows prefer.",
        }
    )
    positives = (Y == 1).sum()
    folds, judged = model._folds, model._judged
    objective = objective_of(model.metric) if model._tuned and judged is not None else None
    return described_model(
        model.estimator_,
        encoder,
        encoder.with_numbers(X) if isinstance(X, pd.DataFrame) else X,  # lists of numbers
        Y,
        names,
        validated(model, Y),
        dataset={
            "name": name,
            "title": "the table given to AutoMultiLabel",
            "digest": None,
            "card_digest": None,
            "instances": len(Y),
            "features": X.shape[1],
            "columns": encoder.width,
            "labels": Y.shape[1],
            "cardinality": float(positives / len(Y)),
            "density": float(positives / Y.size),
            "missing_values": 0,
            "licence": None,
            "citation": None,
            "notes": None,
            "reader": {},
        },
        method=method,
        evaluation={
            "protocol": {"kfold": len(folds), "stratify": 1, "seed": model._seed},
            "conventions": "default",
            "seed": model._seed,
            "cells": [],
            "settings": {},
        },
        decision={"objective": objective, "policy": judged.decisions.policy, "calibration": None} if objective else {},
        tuning={},
    )


class Search:
    """The fits of one call: plan, run, stack, choose."""

    def __init__(self, model: AutoMultiLabel, rows: TrainingSet, began: float, stacks: bool = True) -> None:
        from multilab.comparison.portfolio import load_portfolio

        self.model, self.rows, self.stacks = model, rows, stacks
        self.limit = math.inf if model.time_limit is None else float(model.time_limit)
        self.began, self.deadline = began, began + self.limit
        self.n_jobs = workers(model.n_jobs)
        self.portfolio = load_portfolio()
        self.judged: dict[str, Judged] = {}

    def run(self) -> None:
        """Fit, choose, and set the attributes of the model."""
        from multilab.comparison.fits import run_methods
        from multilab.comparison.training_set import Preparation, prepared

        self.say("AutoMultiLabel: encoding the table")
        if reason := self._do(Preparation(self.limit), math.inf):
            raise ComparisonError(reason)
        prepared(self.rows)
        entries = self._plan()
        fits_end = self.began + _SHARE_OF_FITS * self.limit
        reason, seconds = self._first_model(entries[0])
        self.first = not reason
        ratio = len(entries[0].cells) * seconds / (entries[0].seconds or math.inf)
        if _MARGIN * self._seconds_of_folds(seconds) > fits_end - time.monotonic():
            self.rows.hold_out()
        entries = self._plan()  # without the fit that is there
        run_methods(
            [entry for entry in entries if entry.status == "planned"],
            self.rows,
            self.limit,
            fits_end,
            self.n_jobs,
            self,
            _work(),
            [ratio] if ratio else [],
        )
        self.say("AutoMultiLabel: stack and choice")
        stack_reason = self._stack(entries)
        if not self.judged and reason and not self.rows.has(entries[0].cells[0].key):
            raise ComparisonError(f"no model could be fitted: {reason}")
        self._choose(entries, entries[0], stack_reason)

    def _first_model(self, floor: MethodRun) -> tuple[str, float]:
        """Fit the method that is always there: to few rows, and then to all rows, or to as many as there is time for.

        Returns
        -------
        reason : str
            Why there is no model, empty if there is one.
        seconds : float
            What a fit to all rows takes, measured or judged by the fit to few rows.
        """
        n, seconds = len(self.rows.Y), 0.0
        few = max(_FEW_ROWS, n // 16) if time.monotonic() < self.deadline else _FEW_ROWS
        while few < n and not math.isinf(self.limit):
            fit, began = self._few_rows(floor, few), time.monotonic()
            if reason := self._do(fit, 0.0 if seconds else _GRACE):
                return ("", seconds) if seconds else (reason, 0.0)
            share = self.rows.read(f"{fit.key}.share")  # of the fit; the rest does not grow
            seconds = (time.monotonic() - began) * (1 + share * (n / few - 1))
            left = self.began + _SHARE_OF_FIRST * self.limit - time.monotonic()
            if seconds <= left:
                break
            more = int(n * left / seconds / _MARGIN)
            if more < 1.5 * few:
                return "", seconds
            few = more  # the first fit may have been slow for a busy machine: this one tells more
        began = time.monotonic()
        reason = self._do(floor.cells[0], 0.0 if seconds else _GRACE)
        return ("", seconds) if reason and seconds else (reason, time.monotonic() - began)

    def _seconds_of_folds(self, seconds: float) -> float:
        """Return the seconds of the fits on all folds, judged by those of a fit to all rows."""
        folds = self.rows.folds
        return math.ceil(len(folds) / self.n_jobs) * seconds * len(folds[0][0]) / len(self.rows.Y)

    def _few_rows(self, floor: MethodRun, rows: int) -> Any:
        """Return the fit of a method to some of the rows."""
        from multilab.comparison.training_set import Fit

        return Fit(floor.member.method, None, floor.member.chars, rows)

    def refresh(self) -> None:
        """Show how far the fits are."""
        limit = "" if math.isinf(self.limit) else f" of {self.limit:g}"
        self.say(f"AutoMultiLabel: methods fitted: {len(self.judged)}, {time.monotonic() - self.began:.0f}{limit} s")

    def say(self, text: str) -> None:
        """Replace the line of progress, on a terminal."""
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def finished(self, entry: MethodRun) -> None:
        """Judge a method whose fits are there."""
        from multilab.comparison.training_set import Judgement

        if entry.status == "done" and entry.name not in self.judged:
            unit = Judgement(entry.name, guard=entry.name != self.portfolio.baseline)
            if reason := self._do(unit):
                entry.status, entry.note = "failed", reason
            else:
                self.judged[entry.name] = self.rows.read(unit.key)

    def _do(self, unit: Any, least: float = 0.0) -> str:
        """Do one unit of work before the deadline, or in at least some seconds; return why it is not done, else ""."""
        from multilab.cells.execute import run_units_within

        seconds = max(self.deadline - time.monotonic(), least)
        outcome = run_units_within([unit], self.rows, seconds, 1, None, _work())
        if outcome.stopped:
            return f"{self.limit:g} s are too short for the {unit.label}; set a longer time_limit"
        return next(iter(outcome.failures.values()), "")

    def _plan(self) -> list[MethodRun]:
        """Return the methods in running order, the linear one that is always there first."""
        from multilab.cells.method import build
        from multilab.comparison.plan import MethodRun, Sizes, in_order, plan_methods, refused_for_missing_labels
        from multilab.comparison.training_set import Fit

        X, Y, folds = self.rows.X, self.rows.Y, range(len(self.rows.folds))
        words, encoder, texts = X, self.rows.encoder, self.rows.texts
        if texts and encoder is not None:
            words = X[:, encoder.word_columns(texts)]
        (n, d), row = words.shape, [table.nnz / table.shape[0] if issparse(table) else None for table in (words, X)]
        sizes = Sizes(n, d, Y.shape[1], len(self.rows.folds[0][0]) / n, *row)
        entries = []
        text = bool(texts or self.rows.no_grams)
        sparse = issparse(X) and encoder is None
        for member in self.portfolio.select(None, sparse=sparse, text=text, bag=self.rows.bag):
            if not member.method.base_scores:  # stacks of their own
                fits = [Fit(member.method, fold, member.chars) for fold in (None, *folds)]
                entries.append(MethodRun(member, fits))  # type: ignore[arg-type]
                if member.chars and self.rows.no_grams:
                    entries[-1].status, entries[-1].note = "left out", self.rows.no_grams
        if has_unobserved(Y):
            for entry in entries:
                entry.note = entry.note or refused_for_missing_labels(entry)
                entry.status = "left out" if entry.note else entry.status
        for entry in entries if self.rows.weights is not None else []:
            estimator = build(entry.member.method)
            if entry.status == "planned" and not has_fit_parameter(estimator, "sample_weight"):
                entry.status, entry.note = "left out", f"{type(estimator).__name__} takes no sample_weight"
        entries = in_order(plan_methods(entries, sizes, self.rows), self.portfolio, sizes)  # type: ignore[arg-type]
        able = [entry.name for entry in entries if entry.status == "planned"]
        floor = self.portfolio.floor(able)
        if not floor:
            raise ComparisonError(f"no linear method of the portfolio can be fitted: {entries[0].note}")
        entries.sort(key=lambda one: one.name != floor)
        left = math.inf if self.model.budget_fits is None else self.model.budget_fits - len(entries[0].cells)
        for entry in entries[1:]:
            if entry.status == "planned":
                left -= len(entry.cells)
                if left < 0:
                    entry.status, entry.note = "left out", f"budget_fits={self.model.budget_fits} is used up"
        return entries

    def _stack(self, entries: Sequence[MethodRun]) -> str | None:
        """Stack the best methods; return why there is none, empty if there is, None if there is nothing to stack."""
        from multilab.comparison.training_set import STACK, Judgement, Stack

        board = self._board(entries)
        names = [str(name) for name in board.table.index if name in self.judged and name != self.portfolio.baseline]
        if not self.stacks or len(names) < 2 or has_unobserved(self.rows.Y) or len(self.rows.folds) == 1:
            return None
        began = time.monotonic()
        self.stack_seconds = 0.0
        if self.rows.weights is not None:
            return "the second level takes no sample_weight"
        reason = self._do(Stack(tuple(names[:_STACKED]))) or self._do(Judgement(STACK))
        self.stack_seconds = time.monotonic() - began
        if not reason:
            self.judged[STACK] = self.rows.read(Judgement(STACK).key)
        return reason

    def _board(self, entries: Sequence[MethodRun]) -> Leaderboard:
        """Return the leaderboard of judged methods, with rows for tuned thresholds if the metric depends on them."""
        from multilab.comparison.board import board_of
        from multilab.comparison.decisions import tuned_name
        from multilab.statistics.result_files import CELL

        metric = self.model.metric
        tunes = self.rows.objective == metric
        metrics = [one for one in self.rows.metrics if not tunes or defined(one).needs == "decisions"]
        rows: list[tuple[object, ...]] = []
        decided, untuned = list[pd.DataFrame](), dict[str, str]()
        for name, judged in self.judged.items():
            for title, values, labels in (
                (name, judged.values, judged.decided),
                (tuned_name(name), judged.tuned_values, judged.tuned_decided),
            ):
                if title != name and not tunes:
                    continue
                untuned |= {title: name} if title != name else {}
                decided.append(labels.assign(method=title))
                for k, of_fold in enumerate(values):
                    rows += [("", k, title, name, of_fold[name]) for name in by_name(metrics)]
                    rows += [("", k, title, "fit_seconds", judged.seconds), ("", k, title, "predict_seconds", 0.0)]
        methods = tuple(dict.fromkeys(str(row[2]) for row in rows))
        return board_of(
            pd.DataFrame(rows, columns=[*CELL, "metric", "value"]),
            metrics,
            methods,
            [("", 0, entry.name, entry.note or entry.status) for entry in entries if entry.name not in self.judged],
            pd.concat(decided) if decided else pd.DataFrame(),
            alpha=self.portfolio.alpha,
            test_to_train=1 / max(len(self.rows.parts) - 1, 1),
            untuned=untuned,
        )

    def _choose(self, entries: Sequence[MethodRun], floor: MethodRun, stack_reason: str | None) -> None:
        from multilab.comparison.decisions import tuned_name
        from multilab.comparison.recommendation import Recommendation, recommend
        from multilab.comparison.training_set import STACK

        model, baselines = self.model, (self.portfolio.baseline, tuned_name(self.portfolio.baseline))
        board = self._board(entries)
        fallback = self.rows.has(floor.cells[0].key) or self.first
        if set(self.judged) - ({self.portfolio.baseline} if fallback else set()):
            titles = {entry.name: entry.member.description for entry in entries}
            model.recommendation_ = recommend(board, baselines, certain=False, titles=titles)
            names = [str(name) for name in board.table.index]
            # a method comes before the baseline, whose tuned decisions may assign every label to every row
            best = min(names, key=lambda one: (one in baselines, one in board.over_assigned))
            model.best_ = model.recommendation_.method or best
        else:
            text = f"{self.limit:g} s were too short to score {floor.name}, which is used without a comparison."
            model.recommendation_, model.best_ = Recommendation(None, (text,)), floor.name
        chosen = board.untuned.get(model.best_, model.best_)
        judged = self.judged.get(chosen)
        tuned = model.best_ != chosen
        encoder, model.estimator_ = self.rows.encoder_for(self.rows.fitted(chosen, judged, tuned))
        if encoder is not None:  # new rows may have labels, which are ignored
            reading = {"tags": model._tags_column} if model._tags_column else {}
            labels = tuple(self.rows.label_names)
            about = {"labels": labels, "dropped": tuple(model._dropped), "reading": reading}
            encoder = replace(encoder, **about, embeddings=model._embeddings)
        model.encoder_ = encoder
        model._judged = judged
        model._member = next((entry.member for entry in entries if entry.name == chosen), None)
        model._members = [str(member) for member in self.rows.read("stack-all-names")] if chosen == STACK else []
        model._tuned = tuned
        state = {entry.name: (entry.status, entry.note, entry.spent) for entry in entries}
        if stack_reason is not None:
            kept_out = "failed" if self.rows.weights is None else "left out"
            state[STACK] = ("done" if STACK in self.judged else kept_out, stack_reason, self.stack_seconds)
        model.leaderboard_ = _table(board, state)


def _work() -> Any:
    from multilab.comparison.training_set import work

    return work


def _table(board: Leaderboard, state: dict[str, tuple[str, str, float]]) -> pd.DataFrame:
    means = board.table[board.headline] if len(board.scores) else pd.Series(dtype=float)
    rows = {
        name: (float(value), *_state(state[board.untuned.get(str(name), str(name))])) for name, value in means.items()
    }
    rows |= {name: (math.nan, *_state(method_state)) for name, method_state in state.items() if name not in rows}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["score", "seconds", "state", "reason"])
    return table.rename_axis("method")


def _state(one: tuple[str, str, float]) -> tuple[float, str, str]:
    status, note, spent = one
    return spent, status, note


def _without(X: Any, drop: Any) -> tuple[Any, list[str]]:
    """Return X without some columns, and their names."""
    from multilab.datasets.options import names_to_drop

    names = list(names_to_drop(drop))
    if names and not isinstance(X, pd.DataFrame):
        raise ComparisonError(f"drop={names} names columns: X must be a pandas.DataFrame")
    for name in names:
        if name not in X.columns:
            raise ComparisonError(f"drop: {unknown_name('column', name, list(map(str, X.columns)))}")
    return (X.drop(columns=names) if names else X), names


def _warn_of_columns(X: pd.DataFrame, encoder: TableEncoder) -> None:
    """Warn of categories that look like identifiers or free text."""
    from multilab.datasets.profiling import text_signs

    for column in encoder.columns:
        if column.kind.name != "category" or column.name not in X:
            continue
        identifier, phrases = text_signs([text for text in X[column.name].unique() if isinstance(text, str)], len(X))
        if identifier:
            advice = f"looks like a row identifier: drop=[{column.name!r}] leaves it out"
        elif phrases:
            advice = f"{phrases} values with spaces; if it is free text: columns={{{column.name!r}: 'text'}}"
        else:
            continue
        warnings.warn(f"{column.name}: {advice}", DatasetWarning, stacklevel=3)
