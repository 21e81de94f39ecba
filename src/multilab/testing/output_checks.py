"""Checks of what a classifier returns: shapes, scores, decisions, and that no row or label sways another."""

from __future__ import annotations

import numpy as np

from multilab.methods.base import MultiLabelClassifier
from multilab.testing.trials import Trial, assert_same


def check_shapes(trial: Trial) -> None:
    """Scores are finite and decisions 0/1, both of shape (n, q)."""
    _, Y, X_test = trial.data()
    scores, decisions = trial.expected
    expected = (len(X_test), Y.shape[1])
    assert decisions.shape == expected, f"decisions of shape {decisions.shape} instead of {expected}"
    assert set(np.unique(decisions)) <= {0, 1}, f"decisions are {np.unique(decisions)[:5]}"
    assert scores is not None, "neither predict_proba nor decision_function"
    assert scores.shape == expected, f"scores of shape {scores.shape} instead of {expected}"
    assert np.isfinite(scores).all(), "scores are not finite"


def check_one_array(trial: Trial) -> None:
    """``predict_proba`` and ``decision_function`` return one array of shape (n, q), no list of arrays per label."""
    _, Y, X_test = trial.data()
    names = [name for name in ("predict_proba", "decision_function") if hasattr(trial.model, name)]
    assert names, "neither predict_proba nor decision_function"
    for name in names:
        output = getattr(trial.model, name)(X_test)
        assert not isinstance(output, list), f"{name} returns a list of {len(output)} arrays"
        assert output.shape == (len(X_test), Y.shape[1]), f"{name} returns shape {output.shape}"


def check_learns(trial: Trial) -> None:
    """On the training rows the decisions are better than always giving the commoner class."""
    X, Y, _ = trial.data()
    errors = (trial.outputs(trial.model, X)[1] != Y).mean()
    constant = np.minimum(Y.mean(axis=0), 1 - Y.mean(axis=0)).mean()
    assert errors < constant, f"{errors:.3f} of the decisions are wrong, of a constant {constant:.3f}"


def check_decision_rule(trial: Trial) -> None:
    """A label is assigned iff its score reaches the threshold: .5, of margins 0, or the argument ``threshold``."""
    model, X_test = trial.model, trial.data()[2]
    decisions = trial.expected[1]
    thresholds = {
        "predict_proba": 0.5,
        "decision_function": getattr(getattr(model, "final_estimator_", model), "threshold", 0.0),
    }
    names = [name for name in thresholds if hasattr(model, name)]
    assert names, "neither predict_proba nor decision_function"
    for name in names:
        scores, threshold = trial.scores(model, name, X_test), thresholds[name]
        wrong = decisions != (scores >= threshold)
        if not isinstance(trial.estimator, MultiLabelClassifier):  # of others, a tie may mean either
            wrong &= np.abs(scores - threshold) > 1e-12
        assert not wrong.any(), f"{wrong.sum()} of {wrong.size} decisions are not {name} >= {threshold:g}"


def check_probabilities(trial: Trial) -> None:
    """What ``predict_proba`` returns is in [0, 1], for rows far from the training rows too."""
    X, Y, X_test = trial.data()
    Y[:, 3] = 1 - Y[:, 0]
    model = trial.fit(X, Y)
    if not hasattr(model, "predict_proba"):
        assert hasattr(model, "decision_function"), "neither predict_proba nor decision_function"
        return
    for rows in (X, X_test, 100 * X_test, 1 - 100 * X_test, np.zeros_like(X_test)):
        scores = trial.scores(model, "predict_proba", rows)
        assert scores.min() >= 0, f"a probability is {scores.min():g}"
        assert scores.max() <= 1, f"a probability is {scores.max():g}"


def check_type_of_decisions(trial: Trial) -> None:
    """Decisions are numbers whose differences do not wrap around, whatever the type of Y."""
    X, Y, X_test = trial.data()
    for kind in (np.uint8, bool):
        decisions = trial.outputs(trial.fit(X, Y.astype(kind)), X_test)[1]
        differences = decisions - (1 - decisions)
        assert set(np.unique(differences)) <= {-1, 1}, f"Y of {np.dtype(kind)}: decisions of type {decisions.dtype}"


def check_label_permutation(trial: Trial) -> None:
    """Another order of the labels gives the same scores in that order."""
    X, Y, X_test = trial.data()
    order = np.array([3, 2, 0, 1])
    scores, decisions = trial.expected
    expected = (None if scores is None else scores[:, order], decisions[:, order])
    assert_same(trial.fitted_outputs(X, Y[:, order], X_test), expected)


def check_training_permutation(trial: Trial) -> None:
    """Another order of the training rows gives the same scores."""
    X, Y, X_test = trial.data()
    order = np.random.default_rng(2).permutation(len(X))
    actual = trial.fitted_outputs(X[order], Y[order], X_test)
    assert_same(actual, trial.expected, atol=1e-6)  # iterative solvers take another path to the same minimum


def check_test_permutation(trial: Trial) -> None:
    """A row's outputs do not depend on the other rows: reversed rows, and a single row."""
    X_test = trial.data()[2]
    scores, decisions = trial.expected
    for rows in (slice(None, None, -1), slice(3, 4)):
        expected = (None if scores is None else scores[rows], decisions[rows])
        assert_same(trial.outputs(trial.model, X_test[rows]), expected)


def check_equal_rows(trial: Trial) -> None:
    """Equal test rows get equal outputs, and training rows may occur several times with different labels."""
    X, Y, X_test = trial.data()
    X, Y = np.vstack([X, X[:20]]), np.vstack([Y, 1 - Y[:20]])
    scores, decisions = trial.fitted_outputs(X, Y, np.vstack([X_test, X_test]))
    assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    first, second = slice(None, len(X_test)), slice(len(X_test), None)
    actual, expected = ((None if scores is None else scores[rows], decisions[rows]) for rows in (first, second))
    assert_same(actual, expected)


def check_score(trial: Trial) -> None:
    """``score`` is the subset accuracy of ``predict``, as in scikit-learn."""
    X, Y, _ = trial.data()
    expected = float((trial.outputs(trial.model, X)[1] == Y).all(axis=1).mean())
    actual = float(trial.model.score(X, Y))
    assert abs(actual - expected) <= 1e-12, f"score is {actual:.4f}, the subset accuracy {expected:.4f}"
