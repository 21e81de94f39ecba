"""Fits of a portfolio on one training set in memory: the units of work of `AutoMultiLabel`.

Plan, executor and decision rule are those of `multilab compare`. A cell of `multilab compare` is stored for other runs,
and scores the test rows of an outer split. A fit here belongs to one call on one machine, and scores the training rows
out of fold, so that a method is fitted six times, not thirty.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import clone

from multilab.cells import Columns, MemberScores, MethodPipeline
from multilab.cells.fit_costs import one_thread
from multilab.cells.fitting import estimator_of, fit_on_rows
from multilab.cells.method import Method
from multilab.cells.pipeline import training_folds
from multilab.comparison.decisions import guarded_decisions, objective_of
from multilab.comparison.plan import refused_grams
from multilab.comparison.scores import metric_values
from multilab.datasets import FrameEncoder, TableEncoder
from multilab.datasets.table_encoder import texts_of
from multilab.decision import CalibratedMultiLabelClassifier
from multilab.methods import ScoreEnsemble
from multilab.methods.word_weights import is_bag_of_words
from multilab.metrics.own_metrics import MetricLike
from multilab.models.final_fit import INNER_FOLDS

__all__ = ["STACK", "Fit", "Judged", "Judgement", "Preparation", "Stack", "TrainingSet", "prepared", "work"]

STACK = "stack"


@dataclass(frozen=True)
class Preparation:
    """The encoding of the rows and their folds."""

    seconds: float
    """Time for everything, of which character n-grams may take a tenth."""

    key: ClassVar[str] = "prepared"
    label: ClassVar[str] = "preparation of the rows"


@dataclass(frozen=True)
class Fit:
    """A fit of a method on all rows, or on those outside a fold, whose rows it scores; with n-grams of texts or not.

    With ``rows`` it is a fit on so many rows, drawn at random, which is used if there is no fit on all of them.
    """

    method: Method
    fold: int | None
    chars: bool = False
    rows: int | None = None

    kind: ClassVar[str] = "train"
    reads: ClassVar[tuple[Any, ...]] = ()

    @property
    def key(self) -> str:
        """Name of its file."""
        return f"{self.method.name}-{f'rows{self.rows}' if self.rows else 'all' if self.fold is None else self.fold}"

    @staticmethod
    def rows_in(key: str) -> int:
        """Return the number of rows in the key of a fit on some of them."""
        return int(key.rpartition("rows")[2])

    @property
    def label(self) -> str:
        """For messages."""
        which = f"{self.rows} rows" if self.rows else "all rows" if self.fold is None else f"fold {self.fold}"
        return f"{self.method.name}, {which}"


@dataclass(frozen=True)
class Judgement:
    """Metrics of the out-of-fold scores of a method, with its own decisions and with tuned ones.

    The tuned ones of a baseline have no ``guard``.
    """

    name: str
    guard: bool = True

    @property
    def key(self) -> str:
        """Name of its file."""
        return f"{self.name}-judged"

    @property
    def label(self) -> str:
        """For messages."""
        return f"{self.name}, metrics"


@dataclass(frozen=True)
class Stack:
    """The second level of `PortfolioStack` on the out-of-fold scores of methods."""

    names: tuple[str, ...]

    key: ClassVar[str] = f"{STACK}-all"
    label: ClassVar[str] = "stack of the methods"


@dataclass
class Judged:
    """Judgement of a method by its out-of-fold scores.

    Attributes
    ----------
    values, tuned_values : list of dict of str to float
        Metrics of each fold, with the method's own decisions and with tuned ones.
    decided, tuned_decided : DataFrame
        How often labels are assigned, see `multilab.statistics.Leaderboard.decided`.
    scores : ndarray of shape (n, q)
        Probabilities for users; if the method has margins, calibrated on the other folds.
    own, tuned : ndarray of shape (n, q)
        Decisions of the method, and those by thresholds from the other folds.
    decisions, calibration : object
        Decision rule and calibration for new rows, learned from all out-of-fold scores.
    seconds : float
        Mean seconds of a fit.
    """

    values: list[dict[str, float]]
    tuned_values: list[dict[str, float]]
    decided: pd.DataFrame
    tuned_decided: pd.DataFrame
    scores: np.ndarray
    own: np.ndarray
    tuned: np.ndarray
    decisions: Any
    calibration: Any
    seconds: float


@dataclass
class TrainingSet:
    """Rows and labels of one training set, with the folder that results are written to.

    Attributes
    ----------
    X : DataFrame, ndarray or CSR
        A frame becomes a matrix when it is prepared, and a bag of words becomes sparse.
    Y : ndarray of shape (n, q)
    label_names : list of str
    columns : mapping of str to str, or None
        Kinds of the columns of a frame; the others are recognised.
    metrics : tuple of str or callable
        The first one is what decisions are tuned for, if it depends on decisions.
    seed : int
    folder : Path
    weights, groups : ndarray of shape (n,) or None
    encoder : TableEncoder or None
        What makes a matrix of a frame.
    texts : list of str
        Columns of text that have character n-grams in addition to words, which only some methods get.
    no_grams : str
        Why there are none although there is text.
    bag : bool
        Whether X is a bag of words.
    folds : list of (train, test)
        Of the fits: five if none are given, or one if there is no time for more.
    halves : list of (others, rows)
        Two halves of the test rows of a single fold, each with the other one.
    """

    X: Any
    Y: np.ndarray
    label_names: list[str]
    columns: Mapping[str, str] | None
    metrics: tuple[MetricLike, ...]
    seed: int
    folder: Path
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    encoder: TableEncoder | None = None
    texts: Sequence[str] = ()
    no_grams: str = ""
    bag: bool = False
    folds: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    halves: Sequence[tuple[np.ndarray, np.ndarray]] = ()

    def hold_out(self) -> None:
        """Keep one fold: its test rows are held out, and no other row is scored."""
        self.folds = self.folds[:1]
        _, test = self.folds[0]
        groups = None if self.groups is None else self.groups[test]
        self.halves = [(test[others], test[rows]) for others, rows in _folds(self.Y[test], 2, self.seed, groups)]

    @property
    def parts(self) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """Rows that are judged together, each with those that their thresholds and calibration are learned from."""
        return self.halves or self.folds

    @property
    def scored(self) -> np.ndarray:
        """The rows with scores of a model that has not seen them."""
        return np.sort(np.concatenate([rows for _, rows in self.parts]))

    @property
    def objective(self) -> str:
        """Objective of the tuned decisions."""
        return objective_of(self.metrics[0])

    def weight(self, rows: Any = slice(None)) -> np.ndarray | None:
        """Return the weights of some rows, by default of all."""
        return None if self.weights is None else self.weights[rows]

    def has(self, key: str) -> bool:
        """Return whether a unit of work is done."""
        return self.path(key).is_file()

    def path(self, key: str) -> Path:
        """Return the file of a unit of work."""
        return self.folder / f"{key}.joblib"

    def read(self, key: str) -> Any:
        """Return the result of a unit of work."""
        return joblib.load(self.path(key))

    def write(self, key: str, result: Any) -> None:
        """Save the result of a unit of work; a file is complete or absent."""
        part = self.path(f".{key}")
        joblib.dump(result, part)
        part.replace(self.path(key))

    def estimator(self, method: Method, chars: bool = False) -> MethodPipeline:
        """Return the estimator of a method for these rows; words have the same columns with and without n-grams."""
        words = self.encoder.word_columns(self.texts) if self.encoder and self.texts and not chars else None
        return estimator_of(method, self.seed, "AutoMultiLabel", encoder=self.encoder, columns=words)

    def out_of_fold(self, name: str) -> tuple[np.ndarray, np.ndarray, bool, float]:
        """Return scores, decisions, whether the scores are probabilities, and the mean seconds of a fit."""
        if name == STACK:
            ensemble, seconds = self.read(Stack.key)
            scores = ensemble.out_of_fold_scores_
            return scores, (scores >= 0.5).astype(np.uint8), True, seconds
        scores, decisions = np.zeros(self.Y.shape), np.zeros(self.Y.shape, dtype=np.uint8)
        seconds = []
        for k, (_, test) in enumerate(self.folds):
            scores[test], decisions[test], probabilities, taken = self.read(f"{name}-{k}")
            seconds.append(taken)
        return scores, decisions, probabilities, float(np.mean(seconds))

    def fitted(self, name: str, judged: Judged | None, tuned: bool) -> MethodPipeline:
        """Return a method fitted on all rows, with decisions and probabilities of its out-of-fold scores.

        Without ``judged`` the decisions are its own, and probabilities those of the logistic function.
        """
        model = self._fitted(name)
        after: list[tuple[str, Any]] = []
        if not hasattr(model, "predict_proba"):
            after.append(("calibration", judged.calibration if judged and judged.calibration else "passthrough"))
        if tuned and judged:
            after.append(("decisions", judged.decisions))
        return MethodPipeline.of_fitted([*model.steps_, *after], model.n_labels_)

    def encoder_for(self, model: MethodPipeline) -> tuple[TableEncoder | None, MethodPipeline]:
        """Return the encoder of new rows, and the model for what it encodes.

        It has no n-grams if neither the model nor a member of it reads any; their columns then have other numbers.
        """
        if self.encoder is None or not self.texts:
            return self.encoder, model
        words, every = self.encoder.word_columns(self.texts), np.arange(self.encoder.width)
        methods = model.named_steps["members"].members_ if "members" in model.named_steps else [model]
        columns = [
            method.named_steps["columns"].columns if "columns" in method.named_steps else every for method in methods
        ]
        if not all(np.isin(used, words).all() for used in columns):
            return self.encoder, model
        moved = [_with_columns(method, words, used) for method, used in zip(methods, columns, strict=True)]
        if "members" in model.named_steps:
            steps = [("members", MemberScores.of_fitted(moved, random_state=self.seed)), *model.steps_[1:]]
            moved = [MethodPipeline.of_fitted(steps, model.n_labels_)]
        return self.encoder.without_grams(self.texts), moved[0]

    def _fitted(self, name: str) -> MethodPipeline:
        if name != STACK:
            keys = [path.stem for path in self.folder.glob(f"{name}-rows*[0-9].joblib")]
            most = max(keys, key=Fit.rows_in, default="")
            result: MethodPipeline = self.read(f"{name}-all" if self.has(f"{name}-all") else most)
            return result
        ensemble, _ = self.read(Stack.key)
        used = zip(self.read(f"{Stack.key}-names"), ensemble.used_, strict=True)
        members = MemberScores.of_fitted([self._fitted(name) for name, _ in used], random_state=self.seed)
        return MethodPipeline.of_fitted([("members", members), ("classifier", ensemble)], self.Y.shape[1])


def _with_columns(model: MethodPipeline, words: np.ndarray, columns: np.ndarray) -> MethodPipeline:
    """Return a fitted model whose columns are numbered among those of the words."""
    steps = [(name, step) for name, step in model.steps_ if name != "columns"]
    if len(columns) < len(words):
        steps.insert(0, ("columns", Columns(np.searchsorted(words, columns)).fit(np.empty((0, len(words))))))
    return MethodPipeline.of_fitted(steps, model.n_labels_)


def work(unit: Any, rows: TrainingSet) -> str | None:
    """Do a unit of work in a process of its own; return why it failed."""
    try:
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _WORK[type(unit)](unit, rows)
    except Exception as error:  # an estimator of anybody may raise anything; the reason is in the leaderboard
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


def prepared(rows: TrainingSet) -> None:
    """Adopt the result of the preparation from its process."""
    rows.encoder, X, rows.folds, rows.texts, rows.no_grams, rows.bag = rows.read(Preparation.key)
    rows.X = rows.X if X is None else X


def _prepare(unit: Preparation, rows: TrainingSet) -> None:
    encoder, X, texts, no_grams, bag = None, None, list[str](), "", False
    if isinstance(rows.X, pd.DataFrame):
        encoder = _encoder(rows)
        texts = texts_of(encoder.kinds)
        no_grams = refused_grams(rows.X, texts, 1, unit.seconds)
        if texts and not no_grams:
            encoder = _encoder(rows, texts)
        X = encoder.encode(rows.X.rename(columns=lambda name: str(name).strip())).X
    elif is_bag_of_words(rows.X):
        X, bag = csr_array(rows.X), True
    folds = rows.folds or _folds(rows.Y, INNER_FOLDS, rows.seed, rows.groups)
    rows.write(Preparation.key, (encoder, X, folds, [] if no_grams else texts, no_grams, bag))


def _encoder(rows: TrainingSet, with_grams_of: Sequence[str] = ()) -> TableEncoder:
    """Return the encoder of a frame, with character n-grams of some columns of text."""
    kinds = {**(rows.columns or {}), **dict.fromkeys(with_grams_of, "text:chars")}
    return FrameEncoder(kinds).fit(rows.X).encoder_


def _folds(Y: np.ndarray, n: int, seed: int, groups: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return stratified folds of rows, or of their groups: n, or fewer if there are fewer."""
    if groups is None or len(np.unique(groups)) < 2:
        return training_folds(Y, min(n, len(Y)), 1, seed)
    return training_folds(Y, min(n, len(np.unique(groups))), 1, seed, groups)


def _fit(unit: Fit, rows: TrainingSet) -> None:
    entered = time.perf_counter()
    # Columns and scales read no label: they are learned from all rows.
    before, model = rows.estimator(unit.method, unit.chars).label_free()
    X = rows.X
    for _, step in before:
        X = step.fit(X).transform(X)
    train, test = (slice(None), slice(0)) if unit.fold is None else rows.folds[unit.fold]
    if unit.rows:
        train = np.sort(np.random.default_rng(rows.seed).choice(len(rows.Y), unit.rows, replace=False))
    weight = rows.weight(train)
    if unit.fold is None:
        fit = fit_on_rows(model, X[train], rows.Y[train], sample_weight=weight)
        rows.write(f"{unit.key}.share", fit.fitting.seconds / (time.perf_counter() - entered))
        rows.write(unit.key, MethodPipeline.of_fitted([*before, *fit.model.steps_], fit.model.n_labels_))
        return
    fit = fit_on_rows(model, X[train], rows.Y[train], X[test], sample_weight=weight)
    taken = fit.fitting.seconds + fit.predicting.seconds
    rows.write(unit.key, (fit.scores, fit.decisions, hasattr(fit.model, "predict_proba"), taken))


def _stack(unit: Stack, rows: TrainingSet) -> None:
    began = time.perf_counter()
    parts = [rows.out_of_fold(name) for name in unit.names]
    bases, ensemble = np.hstack([part[0] for part in parts]), ScoreEnsemble(random_state=rows.seed)
    ensemble.fit(bases, rows.Y)
    if rows.groups is not None:  # its own folds are of rows
        for train, test in rows.folds:
            fold_ensemble = clone(ensemble).fit(bases[train], rows.Y[train])
            ensemble.out_of_fold_scores_[test] = fold_ensemble.predict_proba(bases[test])
    taken = time.perf_counter() - began + sum(part[3] for part in parts)
    rows.write(f"{unit.key}-names", unit.names)
    rows.write(unit.key, (ensemble, taken))


def _judge(unit: Judgement, rows: TrainingSet) -> None:
    scores, predicted, probabilities, seconds = rows.out_of_fold(unit.name)
    between = scores if probabilities else expit(scores)  # decisions depend on the order of the scores only
    shown, tuned = between.copy(), np.zeros_like(predicted)
    # The stack's scores are calibrated per label. The largest expected micro F1 of probabilities has one cut for all
    # labels, and one number follows the chance of these rows less than a number per label does. On test rows of the
    # sets of benchmarks/auto.py with the seeds 100 to 103, which it does not use, one cut gains .005 on average.
    policy = "global" if (unit.name, rows.objective) == (STACK, "micro_f1") else None
    for others, test in rows.parts:
        decisions = guarded_decisions(
            between[others], rows.Y[others], rows.objective, rows.weight(others), policy, unit.guard
        )
        tuned[test] = decisions.predict(between[test])
        if not probabilities:
            shown[test] = _calibration(between, rows, others).predict_proba(between[test])
    scored = rows.scored
    judged = Judged(
        [metric_values(rows.Y[t], shown[t], predicted[t], rows.metrics, rows.weight(t)) for _, t in rows.parts],
        [metric_values(rows.Y[t], shown[t], tuned[t], rows.metrics, rows.weight(t)) for _, t in rows.parts],
        _decided(rows, predicted, scored),
        _decided(rows, tuned, scored),
        shown,
        predicted,
        tuned,
        guarded_decisions(between[scored], rows.Y[scored], rows.objective, rows.weight(scored), policy, unit.guard),
        None if probabilities else _calibration(between, rows, scored),
        seconds,
    )
    rows.write(unit.key, judged)


def _calibration(scores: np.ndarray, rows: TrainingSet, chosen: np.ndarray) -> CalibratedMultiLabelClassifier:
    calibrated = CalibratedMultiLabelClassifier("precomputed", method="sigmoid")
    return calibrated.fit(scores[chosen], rows.Y[chosen], rows.weight(chosen))


def _decided(rows: TrainingSet, decisions: np.ndarray, scored: np.ndarray) -> pd.DataFrame:
    """Return how often labels are and should be assigned; a row counts as often as its weight says."""
    Y, decisions = rows.Y[scored], decisions[scored]
    weights = np.ones(len(Y)) if rows.weights is None else rows.weights[scored]
    observed = (Y == 0) | (Y == 1)
    counts = {"observed": observed, "count": Y == 1, "predicted": observed & (decisions == 1)}
    return pd.DataFrame({"label": rows.label_names, **{name: weights @ cells for name, cells in counts.items()}})


_WORK: dict[type, Any] = {Preparation: _prepare, Fit: _fit, Stack: _stack, Judgement: _judge}
