"""Base classifiers that stop early stop for each label at its own iteration, as a fit of that label by hand does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multilab.methods import ECC, BinaryRelevance, ClassifierChain

X, Y = make_multilabel_classification(300, 8, n_classes=4, n_labels=2, random_state=0)
RARE = np.column_stack([Y[:, 0], np.arange(300) == 7])  # the second label has a single row


class Staged(ClassifierMixin, BaseEstimator):
    """Gradient boosting with the early stopping of XGBoost, LightGBM and CatBoost: by an ``eval_set``."""

    def __init__(self, early_stopping_rounds: int | None = None, random_state: int | None = None) -> None:
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Staged:
        if self.early_stopping_rounds is not None and eval_set is None:
            raise ValueError("early stopping needs an eval_set")
        self.model_ = GradientBoostingClassifier(n_estimators=40, max_depth=2, random_state=0).fit(X, y, sample_weight)
        self.classes_, self.n_iter_ = self.model_.classes_, 40
        if self.early_stopping_rounds is not None:
            ((X_held, y_held),) = eval_set
            stages = self.model_.staged_predict_proba(X_held)
            losses = [log_loss(y_held, p, labels=self.classes_) for p in stages]
            self.n_iter_ = int(np.argmin(losses)) + 1
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return list(self.model_.staged_predict_proba(X))[self.n_iter_ - 1]

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def boosted(package: str) -> Any:
    """Return a classifier of a library of the extra `arena` that stops early."""
    module = pytest.importorskip(package, reason="the extra `arena` is not installed")
    common = {"n_estimators": 300, "early_stopping_rounds": 5, "random_state": 3}
    if package == "lightgbm":
        return module.LGBMClassifier(**common, verbose=-1, n_jobs=1)
    if package == "xgboost":
        return module.XGBClassifier(**common, n_jobs=1)
    return module.CatBoostClassifier(**common, verbose=False, allow_writing_files=False, thread_count=1)


def iterations(model: Any) -> int:
    """Return at which iteration a fitted classifier stopped."""
    if hasattr(model, "best_iteration"):  # of XGBoost, counted from 0
        return model.best_iteration + 1
    return model.tree_count_ if hasattr(model, "tree_count_") else model.n_iter_


def by_hand(base: Any, X: Any, y: np.ndarray, seed: int, weight: np.ndarray | None = None) -> Any:
    """Return the classifier of one label, fitted with a stratified tenth of its rows as ``eval_set``."""
    weight = np.ones(len(y)) if weight is None else weight
    X_fit, X_held, y_fit, y_held, w, _ = train_test_split(X, y, weight, test_size=0.1, stratify=y, random_state=seed)
    return clone(base).fit(X_fit, y_fit, sample_weight=w, eval_set=[(X_held, y_held)])


@pytest.mark.parametrize("package", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")  # of the fit by hand
def test_each_label_of_a_boosting_library_stops_at_its_own_iteration(package, capfd):
    base = boosted(package)
    model = BinaryRelevance(base).fit(X, Y)
    assert capfd.readouterr().out == ""
    alone = [by_hand(base, X, y, 3) for y in Y.T]
    stopped = [iterations(label.model) for label in model._labels]
    assert stopped == [iterations(one) for one in alone]
    assert len(set(stopped)) > 1
    assert max(stopped) < 300
    np.testing.assert_array_equal(
        model.predict_proba(X), np.column_stack([one.predict_proba(X)[:, 1] for one in alone])
    )
    BinaryRelevance(base).fit(X, RARE)  # one label stops, the other cannot
    BinaryRelevance(base, calibration="sigmoid").fit(X, Y)


@pytest.mark.parametrize(("random_state", "seed"), [(None, 0), (5, 5)])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_each_label_stops_at_its_own_iteration_on_a_tenth_of_its_rows(random_state, seed, layout):
    base, weight = Staged(early_stopping_rounds=5, random_state=random_state), np.arange(300) % 3 + 1.0
    model = BinaryRelevance(base).fit(layout(X), Y, sample_weight=weight)
    stopped = [label.model.n_iter_ for label in model._labels]
    assert stopped == [by_hand(base, X, y, seed, weight).n_iter_ for y in Y.T]
    assert len(set(stopped)) > 1


def test_labels_that_were_not_observed_have_no_part():
    hidden = Y.astype(np.int8)
    hidden[::3, 1] = -1
    base = Staged(early_stopping_rounds=5)
    model = BinaryRelevance(base).fit(X, hidden)
    known = hidden[:, 1] >= 0
    alone = by_hand(base, X[known], Y[known, 1], 0)
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], alone.predict_proba(X)[:, 1])


def test_links_of_a_chain_stop_with_the_labels_before_them():
    base = Staged(early_stopping_rounds=5)
    chain = ClassifierChain(base).fit(X, Y)
    alone = [by_hand(base, np.column_stack([X, Y[:, :label]]), Y[:, label], 0).n_iter_ for label in range(4)]
    assert [link.model.n_iter_ for link in chain._links] == alone
    members = ECC(base, n_estimators=2, max_samples=0.6, bootstrap=False, random_state=0).fit(X, Y).estimators_
    assert len({link.model.n_iter_ for member in members for link in member._links}) > 4


@pytest.mark.parametrize(("y", "folds"), [(Y[:, 0], 5), ((np.arange(300) < 5).astype(int), 4)], ids=["common", "rare"])
def test_a_sigmoid_is_fitted_on_the_rows_that_are_not_held_out(y, folds):
    base = Staged(early_stopping_rounds=5, random_state=1)
    model = BinaryRelevance(base, calibration="sigmoid").fit(X, y[:, None])
    X_fit, X_held, y_fit, y_held = train_test_split(X, y, test_size=0.1, stratify=y, random_state=1)
    alone = CalibratedClassifierCV(base, ensemble=False, cv=folds).fit(X_fit, y_fit, eval_set=[(X_held, y_held)])
    np.testing.assert_array_equal(model.predict_proba(X)[:, 0], alone.predict_proba(X)[:, 1])


@pytest.mark.parametrize(
    "base",
    [
        HistGradientBoostingClassifier(early_stopping=True, random_state=1),
        MLPClassifier((4,), early_stopping=True, learning_rate_init=0.05, random_state=1),
        SGDClassifier(loss="log_loss", early_stopping=True, random_state=1),
    ],
    ids=lambda base: type(base).__name__,
)
def test_classifiers_of_scikit_learn_stop_each_label_themselves(base):
    model = BinaryRelevance(base).fit(X, Y)
    stopped = [label.model.n_iter_ for label in model._labels]
    assert stopped == [clone(base).fit(X, y).n_iter_ for y in Y.T]
    assert len(set(stopped)) > 1
    pipeline = BinaryRelevance(make_pipeline(StandardScaler(), base)).fit(X, RARE)
    expected = clone(base).set_params(early_stopping=False).fit(StandardScaler().fit_transform(X), RARE[:, 1])
    assert pipeline._labels[1].model[-1].n_iter_ == expected.n_iter_


@pytest.mark.parametrize(
    ("rows", "members", "calibration"), [(300, 1, None), (300, 2, "sigmoid"), (10, 5, None)], ids=str
)
def test_a_label_with_too_few_rows_does_not_stop_early(rows, members, calibration):
    y = (np.arange(rows) < members).astype(int)[:, None]
    model = BinaryRelevance(Staged(early_stopping_rounds=5), calibration=calibration).fit(X[:rows], y)
    plain = BinaryRelevance(Staged(), calibration=calibration).fit(X[:rows], y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("base", [Staged(), HistGradientBoostingClassifier(random_state=0), LogisticRegression()])
def test_without_early_stopping_a_label_is_fitted_to_all_of_its_rows(base):
    scores = BinaryRelevance(base).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(scores, np.column_stack([clone(base).fit(X, y).predict_proba(X)[:, 1] for y in Y.T]))
