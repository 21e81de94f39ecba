"""`check_multilabel_estimator`: a plain estimator passes, and each check catches the fault that it is for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.tree import DecisionTreeClassifier

from multilab.methods.base import MultiLabelClassifier
from multilab.testing import EstimatorCheckError, check_multilabel_estimator, multilabel_checks


class Ridge(MultiLabelClassifier):
    """Ridge regression of the labels, as probabilities."""

    def __init__(self, alpha: float = 1e-3, n_jobs: Any = None, random_state: Any = None) -> None:
        self.alpha = alpha
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Ridge:
        X, Y = self._validate_fit(X, y)
        X = X.toarray() if sp.issparse(X) else X
        self.means_ = X.mean(axis=0), Y.mean(axis=0)
        centred = X - self.means_[0]
        penalty = self.alpha * np.eye(X.shape[1])
        self.coef_ = np.linalg.solve(centred.T @ centred + penalty, centred.T @ (Y - self.means_[1]))
        return self

    def _scores(self, X: Any) -> np.ndarray:
        X = X.toarray() if sp.issparse(X) else X
        return expit(4 * (self.means_[1] + (X - self.means_[0]) @ self.coef_ - 0.5))


def faulty(**methods: Any) -> Any:
    """Return an instance of a subclass with other methods."""
    return type("Faulty", (Ridge,), methods)()


def after_fit(change: Any) -> Any:
    """Return a `fit` that changes something of the fitted model, of X and of y."""

    def fit(self: Any, X: Any, y: Any) -> Any:
        Ridge.fit(self, X, y)
        change(self, X, y)
        return self

    return fit


def before_fit(change: Any) -> Any:
    """Return a `fit` on changed X and y."""
    return lambda self, X, y: Ridge.fit(self, *change(self, X, y))


def scores(change: Any) -> Any:
    """Return `_scores` with the scores changed."""
    return lambda self, X: change(self, X, Ridge._scores(self, X))


def outputs(change: Any) -> Any:
    """Return `predict_with_scores` with both changed."""
    return lambda self, X: change(self, X, *Ridge.predict_with_scores(self, X))


def keep(self: Any, X: Any, y: Any) -> None:
    self.labels_ = y


def shrink_with_each_fit(self: Any, X: Any, y: Any) -> Any:
    calls = getattr(self, "calls_", 0) + 1
    Ridge.fit(self, X, y)
    self.calls_, self.coef_ = calls, self.coef_ / calls
    return self


def lose_order(self: Any, X: Any, y: Any) -> None:
    self.coef_ = self.coef_ * (1 + np.arange(self.coef_.shape[1]))


def write_into(self: Any, X: Any, y: Any) -> None:
    if isinstance(X, np.ndarray):
        X[0, 0] = 0.0


def refuse(condition: Any) -> Any:
    """Return a `fit` that refuses labels."""

    def fit(self: Any, X: Any, y: Any) -> Any:
        if condition(y):
            raise RuntimeError("cannot be learned")
        return Ridge.fit(self, X, y)

    return fit


FAULTS: dict[str, Any] = {
    "check_shapes": faulty(_scores=scores(lambda self, X, S: S * np.nan)),
    "check_one_array": faulty(predict_proba=lambda self, X: [np.column_stack([1 - s, s]) for s in self._scores(X).T]),
    "check_learns": faulty(_scores=scores(lambda self, X, S: 1 - S)),
    "check_decision_rule": faulty(_decide=lambda self, S: S >= 0.4),
    "check_probabilities": faulty(_scores=scores(lambda self, X, S: 1.5 * S - 0.25)),
    "check_type_of_decisions": faulty(
        predict_with_scores=outputs(lambda self, X, S, D: (S, D.astype(np.uint8) if self.labels_.dtype == bool else D)),
        fit=after_fit(keep),
    ),
    "check_label_permutation": faulty(fit=after_fit(lose_order)),
    "check_training_permutation": faulty(fit=before_fit(lambda self, X, y: (X[:-9], y[:-9]))),
    "check_test_permutation": faulty(_scores=scores(lambda self, X, S: np.clip(S - S.mean(axis=0) + 0.5, 0, 1))),
    "check_equal_rows": faulty(_scores=scores(lambda self, X, S: S * np.linspace(0.9, 1, len(S))[:, None])),
    "check_score": faulty(score=lambda self, X, y: float((self.predict(X) == y).mean())),
    "check_never_set_label": faulty(_scores=scores(lambda self, X, S: S + 1e-9 * np.arange(S.shape[1]))),
    "check_always_set_label": faulty(_decide=lambda self, S: (S >= 0.5) & (S.std(axis=0) > 1e-9)),
    "check_rows_without_label": faulty(fit=refuse(lambda y: not np.any(y))),
    "check_single_label": faulty(predict_with_scores=outputs(lambda self, X, S, D: (S.squeeze(), D.squeeze()))),
    "check_two_classes": faulty(predict=lambda self, X: self.predict_with_scores(X)[1]),
    "check_label_types": faulty(fit=refuse(lambda y: isinstance(y, list))),
    "check_sparse_labels": faulty(fit=refuse(sp.issparse)),
    "check_label_names": faulty(fit=before_fit(lambda self, X, y: (X, np.asarray(y)))),
    "check_feature_names": faulty(fit=before_fit(lambda self, X, y: (np.asarray(X), y))),
    "check_sparse_input": faulty(_scores=scores(lambda self, X, S: S / 2 if sp.issparse(X) else S)),
    "check_single_precision": faulty(
        fit=before_fit(lambda self, X, y: (X / 2 if getattr(X, "dtype", None) == np.float32 else X, y))
    ),
    "check_integer_features": faulty(
        fit=before_fit(lambda self, X, y: (X / 2 if getattr(X, "dtype", None) == np.int64 else X, y))
    ),
    "check_unseen_values": faulty(_scores=scores(lambda self, X, S: np.where(X[:, :1] > 1e5, np.nan, S))),
    "check_two_rows": faulty(fit=refuse(lambda y: np.shape(y) == (2, 4))),
    "check_wrong_shapes": faulty(fit=before_fit(lambda self, X, y: (X[: len(y)] if np.ndim(y) == 2 else X, y))),
    "check_wrong_labels": faulty(
        fit=before_fit(lambda self, X, y: (X, np.asarray(y) > 0 if np.ndim(y) == 2 and np.min(y) < 0 else y))
    ),
    "check_missing_values": faulty(fit=before_fit(lambda self, X, y: (np.nan_to_num(X), y))),
    "check_unfitted": faulty(predict=lambda self, X: np.zeros((len(X), 4))),
    "check_inputs_untouched": faulty(fit=after_fit(write_into)),
    "check_model_keeps_own_data": faulty(
        fit=after_fit(keep), _scores=scores(lambda self, X, S: (S + np.mean(self.labels_[:, 0])) / 2)
    ),
    "check_params": faulty(fit=after_fit(lambda self, X, y: setattr(self, "alpha", 2.0))),
    "check_set_params": faulty(set_params=lambda self, **params: self),
    "check_repeatable": faulty(_scores=scores(lambda self, X, S: S * np.random.random())),  # noqa: NPY002
    "check_refit_forgets": faulty(fit=shrink_with_each_fit),
    "check_n_jobs": faulty(_scores=scores(lambda self, X, S: S / (self.n_jobs or 1))),
    "check_pickle": faulty(__getstate__=lambda self: {**self.__dict__, "coef_": 0 * self.coef_}),
}


def test_a_plain_estimator_passes_all_checks() -> None:
    board = check_multilabel_estimator(Ridge())
    assert board.columns.tolist() == ["suite", "check", "passed", "expected", "reason"]
    assert board["passed"].all()
    assert set(multilabel_checks()) == set(board["check"][board["suite"] == "multi-label"])
    assert len(multilabel_checks()) >= 30
    assert (board["suite"] == "scikit-learn").sum() > 40
    assert all(text.endswith(".") for text in multilabel_checks().values())


def test_every_check_has_a_fault() -> None:
    assert set(FAULTS) == set(multilabel_checks())


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_is_caught(check: str) -> None:
    board = check_multilabel_estimator(FAULTS[check], scikit_learn=False, checks=[check], on_fail="return")
    assert board["check"].tolist() == [check]
    assert not board["passed"].any()
    assert 10 < len(board["reason"][0]) <= 200
    assert "\n" not in board["reason"][0]


def test_failures_are_raised_unless_expected() -> None:
    tree, names = DecisionTreeClassifier(random_state=0), ["check_one_array", "check_learns"]
    with pytest.raises(EstimatorCheckError, match=r"fails 1 of 2 checks:\n  check_one_array: predict_proba"):
        check_multilabel_estimator(tree, scikit_learn=False, checks=names)
    board = check_multilabel_estimator(
        tree, scikit_learn=False, checks=names, expected_failed_checks={"check_one_array": "a list is its convention"}
    ).set_index("check")
    assert board.loc["check_one_array"].tolist() == ["multi-label", False, True, "a list is its convention"]
    assert board.loc["check_learns"].tolist() == ["multi-label", True, False, ""]


def test_scikit_learns_failures_are_in_the_table() -> None:
    class Stubborn(Ridge):
        def __init__(self, alpha: float = 1e-3) -> None:
            super().__init__(alpha)
            self.cache = {}

    board = check_multilabel_estimator(Stubborn(), on_fail="return")
    failed = board[~board["passed"] & (board["suite"] == "scikit-learn")]
    assert "check_no_attributes_set_in_init" in set(failed["check"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": Ridge}, r"pass an object, Ridge\(\)"),
        ({"estimator": Ridge(), "on_fail": "explode"}, "no on_fail is called 'explode'"),
        ({"estimator": Ridge(), "checks": ["check_lears"]}, "did you mean 'check_learns'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EstimatorCheckError, match=message):
        check_multilabel_estimator(**arguments)


def test_an_estimator_whose_tags_cannot_be_read_fails_once() -> None:
    class Untagged(Ridge):
        def __sklearn_tags__(self) -> Any:
            raise RuntimeError("no tags")

    board = check_multilabel_estimator(Untagged(), checks=["check_score"], on_fail="return")
    assert board["check"].tolist() == ["check_estimator", "check_score"]
    assert board["reason"][0] == "RuntimeError: no tags"
