"""Candidates for the combination of base scores, and the choice between them."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import Lasso, LogisticRegression

from multilab.methods import ScoreEnsemble
from multilab.methods.base import MethodError
from multilab.methods.stacking._combinations import Calibration, corrections, fit_logistic, greedy_weights, softened
from multilab.methods.transformation._binary import fit_sigmoid
from multilab.metrics import log_loss, ranking_loss
from multilab.metrics.errors import MetricError
from multilab.metrics.registry import defined


def scores_and_labels(n=240, q=3, seed=0):
    """Return scores (4 n, q) of two good classifiers, a margin and noise, and labels."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, q))
    Y = (true + 0.5 * rng.normal(size=(n, q)) > 0.3).astype(int)
    good, fair = (expit(2 * (true + s * rng.normal(size=(n, q)))) for s in (0.6, 0.8))
    return np.stack([good, fair, 5 * true + 9 * rng.normal(size=(n, q)), rng.random((n, q))]), Y


S, Y = scores_and_labels()
X = np.hstack(list(S))


@pytest.fixture(scope="module")
def model():
    return ScoreEnsemble(cv=3).fit(X, Y)


def test_calibration_is_platts_sigmoid_of_log_odds_and_of_margins():
    calibration = Calibration.fit(S, Y)
    assert calibration.probability.tolist() == [True, True, False, True]
    for k, margins in enumerate([logit(np.clip(S[0], 1e-3, 1 - 1e-3)), None, S[2]]):
        if margins is not None:
            expected = [fit_sigmoid(margins[:, j], Y[:, j])(margins[:, j]) for j in range(3)]
            assert expit(calibration(S)[k]) == pytest.approx(np.column_stack(expected), abs=1e-5)
    warm = Calibration.fit(S[:, :100], Y[:100], calibration)
    assert warm(S) == pytest.approx(Calibration.fit(S[:, :100], Y[:100])(S), abs=1e-3)


def test_logistic_regressions_of_all_labels_are_those_of_scikit_learn():
    F = np.random.default_rng(1).normal(size=(60, 2))
    expected = [LogisticRegression(C=0.5, tol=1e-10, fit_intercept=False).fit(F, y).coef_[0] for y in Y[:60].T]
    own = fit_logistic(np.stack([F.T] * 3), Y[:60].astype(float), np.zeros((3, 2)), 2.0)
    assert own == pytest.approx(np.array(expected), abs=1e-5)


def test_corrections_of_the_mean_are_lasso_regressions_of_what_it_leaves():
    P, start = expit(Calibration.fit(S, Y)(S)), np.full((4, 1, 1), 0.25) * np.eye(3)
    columns = np.hstack(list(P))
    rest = Y - P.mean(axis=0)
    centred = columns - columns.mean(axis=0)
    largest = np.abs(centred.T @ (rest - rest.mean(axis=0))).max()
    for share, change in corrections("l1", P, Y, start):
        W = change.reshape(12, 3)

        def objective(W, strength=share * largest):
            return 0.5 * ((rest - rest.mean(axis=0) - centred @ W) ** 2).sum() + strength * np.abs(W).sum()

        lasso = Lasso(alpha=share * largest / len(Y), tol=1e-8).fit(columns, rest)
        assert objective(W) == pytest.approx(objective(lasso.coef_.T), rel=2e-3)
        assert np.abs(W).sum() > 0


def test_corrections_use_what_other_labels_say():
    rng = np.random.default_rng(5)
    first, labels = scores_and_labels(n=300, q=3, seed=5)
    labels[:, 2] = labels[:, 0]  # as if its own scores knew nothing
    first[:, :, 2] = rng.random(first.shape[:2])
    model = ScoreEnsemble(cv=3).fit(np.hstack(list(first)), labels)
    assert model.combination_.startswith("l")
    known = log_loss(labels[:, [0]], model.out_of_fold_["greedy"][:, [0]])
    unknown, corrected = (
        log_loss(labels[:, [2]], model.out_of_fold_[name][:, [2]]) for name in ("greedy", model.combination_)
    )
    assert corrected < (known + unknown) / 2  # of the two equal labels, one has scores


def test_fewer_rows_than_scores_give_probabilities():
    rng = np.random.default_rng(10)
    scores, labels = rng.random((10, 15)), rng.integers(0, 2, (10, 5))
    model = ScoreEnsemble(candidates=["l1", "l21"], cv=2).fit(scores, labels)
    assert set(model.validation_) == {f"{kind}_{share}" for kind in ("l1", "l21") for share in (0.8, 0.5, 0.2)}
    assert np.isfinite(model.predict_proba(scores)).all()


def test_greedy_selection_equals_a_step_by_step_search():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, (40, 3))
    P = rng.random((3, 40, 3)) * 0.5 + 0.3 * labels * rng.random((3, 1, 1))
    for name, function in (("ranking_loss", ranking_loss), ("log_loss", log_loss)):
        chosen = []
        for _ in range(4):
            options = [function(labels, np.mean([P[k] for k in [*chosen, one]], axis=0)) for one in range(3)]
            chosen.append(int(np.argmin(options)))
        weights = greedy_weights(P, labels, defined(name), n_rounds=4)
        assert np.array_equal(weights, np.bincount(chosen, minlength=3) / 4), name


def test_the_best_candidate_on_held_out_rows_is_chosen(model):
    assert {name.partition("_")[0] for name in model.validation_} == {"mean", "greedy", "l1", "l21"}
    assert model.combination_ == min(model.validation_, key=model.validation_.get)
    assert log_loss(Y, model.out_of_fold_scores_) == model.validation_[model.combination_]
    assert model.validation_[model.combination_] < model.member_validation_.min()
    assert model.member_validation_.argmin() == 0


def test_held_out_scores_come_from_other_rows():
    train, test = ScoreEnsemble(cv=3).fit(X, Y).folds_[0]
    other = ScoreEnsemble(candidates=["greedy"], cv=3).fit(X, Y)
    alone = ScoreEnsemble(candidates=["greedy"], cv=2).fit(X[train], Y[train])
    assert other.out_of_fold_["greedy"][test] == pytest.approx(alone.predict_proba(X[test]), abs=2e-3)


def test_scores_that_differ_by_rounding_only_have_one_probability(model):
    levels = np.tile(np.linspace(0.02, 0.98, 200)[:, None], X.shape[1])
    for low, high in zip(
        model.candidate_scores(levels * (1 - 4e-16)).values(),
        model.candidate_scores(levels * (1 + 4e-16)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(low, high)


def test_candidates_predict_probabilities_and_generalise(model):
    new, labels = scores_and_labels(seed=1)
    values = model.candidate_scores(np.hstack(list(new)))
    for name, P in values.items():
        assert ((P > 0) & (P < 1)).all(), name
        assert log_loss(labels, P) < 0.6, name
    assert np.array_equal(values[model.combination_], model.predict_proba(np.hstack(list(new))))


def test_a_label_of_one_class_keeps_it():
    constant = Y.copy()
    constant[:, 0], constant[:, 1] = 0, 1
    P = ScoreEnsemble(cv=3).fit(X, constant).predict_proba(X)
    assert P[:, 0].tolist() == [0.0] * len(P)
    assert P[:, 1].tolist() == [1.0] * len(P)


def test_softened_targets_are_platts():
    assert softened(np.array([[1], [0], [0]])).ravel() == pytest.approx([2 / 3, 1 / 4, 1 / 4])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"candidates": []}, MethodError, "candidates="),
        ({"candidates": ["mean", "mean"]}, MethodError, "different ones"),
        ({"candidates": ["median"]}, MethodError, "median"),
        ({"metric": "macro_f1"}, MethodError, "one of decisions"),
        ({"metric": "makro"}, MetricError, "makro"),
        ({"n_rounds": 0}, MethodError, "n_rounds=0"),
        ({"cv": 1}, MethodError, "cv=1"),
    ],
)
def test_wrong_arguments_of_an_ensemble_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        ScoreEnsemble(**arguments).fit(X, Y)


def test_columns_that_do_not_fit_the_labels_are_refused():
    with pytest.raises(MethodError, match="not a multiple of the 3 labels"):
        ScoreEnsemble().fit(X[:, :-1], Y)
