"""MLWSE and StackedMLWSE as a user meets them."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from multilab.cells.method import Method, build
from multilab.methods.base import MethodError
from multilab.methods.out_of_fold import fold_seed, out_of_fold_scores, score_matrix
from multilab.methods.stacking._mean_of_scores import MeanOfScores
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.stacking.stacked_mlwse import StackedMLWSE
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.classifier_chain import ClassifierChain
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

CONF = Path(__file__).resolve().parents[2] / "conf" / "method"
n, d, q = 150, 8, 4


def data(seed=0, rows=n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d))
    Y = (X @ rng.normal(size=(d, q)) + rng.normal(size=(rows, q)) > 0.2).astype(np.uint8)
    return X, Y


def base_scores(seed=0):
    Y = data(seed)[1]
    rng = np.random.default_rng(seed + 1)
    return np.hstack([1 / (1 + np.exp(-2 * (Y - 0.5) - rng.normal(size=Y.shape))) for _ in range(3)]), Y


def fast_members():
    base = LogisticRegression()
    return [("br", BinaryRelevance(base)), ("cc", ClassifierChain(base))]


@pytest.mark.parametrize("algorithm", ["admm", "fista", "apg", "bcd"])
@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_what_a_fit_leaves_behind(penalty, algorithm):
    S, Y = base_scores()
    model = MLWSE(penalty=penalty, alpha=0.5, lam=2.0, beta=0.1, algorithm=algorithm, kkt_tol=0.0).fit(S, Y)
    assert model.W_.shape == (3 * q, q)
    assert 0 <= model.dual_gap_ <= 1e-6
    assert model.n_iter_ == len(model.objective_path_) > 0
    assert 0 < model.kkt_ < 0.01
    R = model.label_affinity_
    H = np.diag(R.sum(1)) - R
    squares = np.sum((S @ model.W_ - Y) ** 2) + 0.1 * np.trace(model.W_ @ H @ model.W_.T)
    blocks = sum(np.linalg.norm(block) for block in np.split(model.W_, 3))
    entries = np.abs(model.W_).sum()
    added = 0.5 * entries if penalty == "l1" else 0.5 * 2.0 * entries + 0.5 * 2.0 * np.sqrt(q) * blocks
    assert model.objective_path_[-1] == pytest.approx(0.5 * squares + added, rel=1e-10)
    assert np.array_equal(model.decision_function(S), S @ model.W_)
    assert np.array_equal(model.decision_function(S), S @ model.W_)
    assert np.array_equal(model.predict(S), S @ model.W_ >= 0.5)


def test_the_threshold_includes_the_tie():
    S, Y = base_scores()
    model = MLWSE().fit(S, Y)
    model.W_ = np.full_like(model.W_, 0.25)
    two = np.zeros((1, 3 * q))
    two[0, :2] = 1.0
    assert model.predict(two).all()
    assert not model.set_params(threshold=0.51).predict(two).any()


def test_largest_useful_penalties():
    S, Y = base_scores()
    alpha_max = MLWSE().fit(S, Y).alpha_max_
    assert alpha_max == pytest.approx(np.abs(S.T @ Y.astype(float)).max(), rel=1e-14)
    assert not MLWSE(alpha=1.0001 * alpha_max).fit(S, Y).W_.any()
    assert MLWSE(alpha=0.999 * alpha_max).fit(S, Y).W_.any()
    l21 = MLWSE(penalty="l21", alpha=0.2)
    lambda_max = l21.fit(S, Y).lambda_max_
    assert not clone(l21).set_params(lam=1.0001 * lambda_max).fit(S, Y).W_.any()
    assert clone(l21).set_params(lam=0.999 * lambda_max).fit(S, Y).W_.any()


def test_the_mean_loss_is_the_sum_with_other_parameters():
    S, Y = base_scores()
    exact = {"penalty": "l21", "alpha": 0.1, "tol": 0.0, "kkt_tol": 1e-11}
    mean = MLWSE(lam=0.01, beta=0.002, loss_scale="mean", **exact).fit(S, Y)
    total = MLWSE(lam=0.01 * n, beta=0.002 * n, **exact).fit(S, Y)
    assert np.abs(mean.W_ - total.W_).max() < 1e-8
    assert mean.objective_path_[-1] * n == pytest.approx(total.objective_path_[-1], rel=1e-10)


def test_the_intercept_is_the_lasso_s():
    S, Y = base_scores()
    model = MLWSE(alpha=1.0, beta=0.0, fit_intercept=True, tol=0.0, kkt_tol=1e-12).fit(S, Y)
    for j in range(q):
        lasso = Lasso(alpha=1.0 / n, tol=1e-14, max_iter=1_000_000).fit(S, Y[:, j].astype(float))
        assert np.abs(model.W_[:, j] - lasso.coef_).max() < 1e-9
        assert model.intercept_[j] == pytest.approx(lasso.intercept_, abs=1e-9)
    assert not MLWSE().fit(S, Y).intercept_.any()


def test_diagonal_weights_let_a_score_serve_its_own_label_only():
    S, Y = base_scores()
    W = MLWSE(weights="diagonal", alpha=1e-9, beta=0.0, tol=1e-12).fit(S, Y).W_
    for block in np.split(W, 3):
        assert np.array_equal(block, np.diag(np.diag(block)))
    for j in range(q):  # without penalty: one small least squares problem per label, eq. (2)
        own = S[:, j::q]
        assert np.allclose(W[j::q, j], np.linalg.lstsq(own, Y[:, j].astype(float))[0], atol=1e-5)


def test_the_cosine_distance_is_served_while_convex_and_refused_beyond():
    S, Y = base_scores()
    small = MLWSE(laplacian="cosine_distance", alpha=0.5, beta=1e-3, tol=0.0, kkt_tol=1e-10).fit(S, Y)
    H = 1 - small.label_affinity_
    gradient = S.T @ (S @ small.W_ - Y) + 1e-3 * small.W_ @ H
    away = small.W_ != 0
    assert np.abs(gradient + 0.5 * np.sign(small.W_))[away].max() < 1e-6
    assert np.abs(gradient)[~away].max(initial=0.0) <= 0.5 + 1e-6
    with pytest.raises(MethodError, match="beta = 1000"):
        MLWSE(laplacian="cosine_distance", beta=1000.0).fit(S, Y)


def test_group_sizes_can_be_named():
    S, Y = base_scores()
    S = S[:, :10]
    with pytest.raises(MethodError, match="10 columns, not a multiple of the 4 labels"):
        MLWSE(penalty="l21").fit(S, Y)
    model = MLWSE(penalty="l21", alpha=0.0, lam=15.0, groups=[4, 6], tol=1e-9).fit(S, Y)
    assert model.W_.shape == (10, q)
    assert MLWSE(penalty="l1").fit(S, Y).W_.shape == (10, q)


def test_size_weights_press_harder_than_label_weights():
    S, Y = base_scores()
    model = MLWSE(penalty="l21", alpha=0.0, beta=0.0)
    by_label = model.fit(S, Y).lambda_max_
    by_size = model.set_params(group_weight="size").fit(S, Y).lambda_max_
    assert by_label / by_size == pytest.approx(np.sqrt(q), rel=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "advice"), [("apg", "raise max_iter or use algorithm='admm'$"), ("admm", "raise max_iter$")]
)
def test_early_stopping_warns_and_says_the_gap(algorithm, advice):
    S, Y = base_scores()
    with pytest.warns(ConvergenceWarning, match=rf"relative duality gap [\d.e+-]+; {advice}"):
        MLWSE(algorithm=algorithm, max_iter=2).fit(S, Y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"penalty": "l2"}, "penalty"),
        ({"alpha": -1.0}, "alpha"),
        ({"penalty": "l21", "alpha": 1.5}, r"\[0, 1\]"),
        ({"beta": float("nan")}, "beta"),
        ({"eta": 0.0}, "eta"),
        ({"max_iter": 0}, "max_iter"),
        ({"weights": "block"}, "weights"),
        ({"algorithm": "cd"}, "algorithm"),
        ({"laplacian": "identity"}, "laplacian"),
        ({"groups": [4, 4]}, "sum to the 12"),
    ],
)
def test_parameters_out_of_range_are_named(wrong, message):
    S, Y = base_scores()
    with pytest.raises(MethodError, match=message) as error:
        MLWSE(**wrong).fit(S, Y)
    assert "\n" not in str(error.value)


def test_wrong_dimensions_are_refused():
    S, Y = base_scores()
    with pytest.raises(ValueError, match="inconsistent"):
        MLWSE().fit(S[:-1], Y)
    with pytest.raises(ValueError, match="12 features"):
        MLWSE().fit(S, Y).predict(S[:, :-1])


def test_labels_with_one_class_and_untouched_input():
    S, Y = base_scores()
    Y[:, 0], Y[:, 1] = 0, 1
    S_before, Y_before = S.copy(), Y.copy()
    model = MLWSE(tol=1e-9).fit(S, Y)
    assert not model.predict(S)[:, 0].any()
    assert np.abs(model.decision_function(S)[:, 1] - 1).mean() < 0.2
    assert np.array_equal(S, S_before)
    assert np.array_equal(Y, Y_before)


def test_out_of_fold_scores_come_from_models_without_the_row():
    X, Y = data()
    folds = list(IterativeStratifiedKFold(3).split(X, Y))
    member = BinaryRelevance(LogisticRegression())
    S = out_of_fold_scores(member, X, Y, folds)
    for train, test in folds:
        assert np.array_equal(S[test], clone(member).fit(X[train], Y[train]).predict_proba(X[test]))
    sparse = out_of_fold_scores(member, sp.csr_matrix(X), Y, folds)
    assert np.allclose(S, sparse, atol=1e-3)
    assert not hasattr(member, "n_labels_")


def test_folds_that_leak_or_forget_a_row_are_refused():
    X, Y = data()
    member = BinaryRelevance(LogisticRegression())
    everything = np.arange(n)
    with pytest.raises(MethodError, match="in-sample"):
        out_of_fold_scores(member, X, Y, [(everything, everything)])
    with pytest.raises(MethodError, match="exactly once"):
        out_of_fold_scores(member, X, Y, [(everything[50:], everything[:50])])


def test_seeds_depend_on_seed_and_fold_only():
    assert fold_seed(None, 3) is None
    assert len({fold_seed(s, k) for s in range(5) for k in range(5)}) == 25
    assert fold_seed(7, 2) == fold_seed(7, 2)
    X, Y = data()
    folds = list(IterativeStratifiedKFold(3).split(X, Y))
    forest = RandomForestClassifier(n_estimators=5)
    one, same, other = (out_of_fold_scores(forest, X, Y, folds, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_lists_of_probabilities_become_one_matrix():
    X, Y = data()
    Y[:, 2] = 1  # one class: the forest's table has a single column
    forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, Y)
    scores = score_matrix(forest, X, Y.shape[1])
    assert scores.shape == (n, q)
    assert np.array_equal(scores[:, 0], forest.predict_proba(X)[0][:, 1])
    assert (scores[:, 2] == 1).all()


def test_stacking_is_out_of_fold_scores_then_mlwse_then_refitted_members():
    X, Y = data()
    members = fast_members()
    model = StackedMLWSE(members, MLWSE(alpha=0.3, beta=0.1), cv=3).fit(X, Y)
    folds = list(IterativeStratifiedKFold(3).split(X, Y))
    S = np.hstack([out_of_fold_scores(member, X, Y, folds) for _, member in members])
    assert np.array_equal(model.base_scores_, S)
    final = MLWSE(alpha=0.3, beta=0.1).fit(S, Y)
    assert np.array_equal(model.final_estimator_.W_, final.W_)
    new = data(seed=5)[0]
    fresh = np.hstack([clone(member).fit(X, Y).predict_proba(new) for _, member in members])
    assert np.array_equal(model.decision_function(new), final.decision_function(fresh))
    assert np.array_equal(model.predict(new), model.decision_function(new) >= 0.5)
    assert not hasattr(members[0][1], "n_labels_")


def test_half_samples_are_scored_by_the_models_of_the_other_half():
    X, Y = data()
    new = data(seed=5)[0]
    members = fast_members()
    model = StackedMLWSE(members, MLWSE(alpha=0.3), cv="halves", random_state=6).fit(X, Y)
    seed = int(np.random.RandomState(6).randint(2**31 - 1))
    runs = []
    for number, (half, other) in enumerate(IterativeStratifiedKFold(2, random_state=seed).split(X, Y)):
        assert abs(len(half) - len(other)) <= 1
        models = [clone(member).fit(X[half], Y[half]) for _, member in members]
        S = np.hstack([m.predict_proba(X[other]) for m in models])
        assert np.array_equal(model.base_scores_[other], S)
        final = MLWSE(alpha=0.3).fit(S, Y[other])
        assert np.array_equal(model.final_estimators_[number].W_, final.W_)
        runs.append(final.decision_function(np.hstack([m.predict_proba(new) for m in models])))
    assert np.array_equal(model.decision_function(new), (runs[0] + runs[1]) / 2)
    assert len(model.estimators_) == 4
    single = StackedMLWSE(members, MLWSE(alpha=0.3), cv="half", random_state=6).fit(X, Y)
    assert np.array_equal(single.decision_function(new), runs[0])
    assert np.isnan(single.base_scores_).any(axis=1).sum() == n // 2
    assert len(single.estimators_) == 2
    again = clone(single).set_params(random_state=7).fit(X, Y)
    assert not np.array_equal(np.isnan(again.base_scores_), np.isnan(single.base_scores_))


def test_the_reference_code_s_third_base_classifier_is_a_chain_of_forests():
    X, Y = data()
    settings = yaml.safe_load((CONF / "mlwse_l1_literal.yaml").read_text(encoding="utf-8"))
    params = {name: settings[name] for name in ("estimators", "final_estimator", "cv")}
    model = build(Method("mlwse", settings["_target_"], params | {"random_state": 0})).fit(X, Y)
    assert model.cv == "half"
    third = model.estimators_[2]
    assert isinstance(third, ClassifierChain)
    assert third.estimator.n_estimators == 20
    assert np.array_equal(third.order_, range(q))
    assert np.array_equal(model.decision_function(X), clone(model).fit(X, Y).decision_function(X))
    assert type(model.estimators_[0]) is BinaryRelevance


@pytest.mark.parametrize(
    "option",
    [
        {"weights": "diagonal"},
        {"laplacian": "cosine_distance"},
        {"loss_scale": "mean"},
        {"penalty": "l21", "alpha": 0.1, "lam": 5.0, "group_weight": "size"},
        {"penalty": "l21", "alpha": 0.1, "lam": 5.0, "beta": 0.0},
        {"alpha": 0.0, "beta": 0.0},
    ],
)
def test_stacking_fits_a_clone_of_its_final_estimator(option):
    X, Y = data()
    one = fast_members()[:1]
    model = StackedMLWSE(one, MLWSE(**option), cv=3).fit(X, Y)
    assert np.array_equal(model.final_estimator_.W_, MLWSE(**option).fit(model.base_scores_, Y).W_)
    assert not np.array_equal(model.final_estimator_.W_, MLWSE().fit(model.base_scores_, Y).W_)
    if "laplacian" in option:  # a chain's first column repeats binary relevance's
        with pytest.raises(MethodError, match="not convex"):
            StackedMLWSE(fast_members(), MLWSE(**option), cv=3).fit(X, Y)


def test_without_penalties_the_weights_are_the_least_squares_of_least_norm():
    """Eq. (3), on scores with a repeated column, as a chain's first column repeats binary relevance's."""
    S, Y = base_scores()
    S[:, q] = S[:, 0]
    for penalty in ({"alpha": 0.0}, {"penalty": "l21", "lam": 0.0}):
        W = MLWSE(beta=0.0, **penalty).fit(S, Y).W_
        assert np.abs(W - np.linalg.pinv(S) @ Y).max() < 1e-10


def test_without_coupling_the_labels_of_l1_are_fitted_one_by_one():
    """Eq. (5): beta = 0 is a Lasso per label. Eq. (6), L21, keeps the labels together in its groups."""
    S, Y = base_scores()
    exact = {"beta": 0.0, "tol": 0.0, "kkt_tol": 1e-12}
    l1 = MLWSE(alpha=1.0, **exact).fit(S, Y)
    for j in range(q):
        lasso = Lasso(alpha=1.0 / n, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(S, Y[:, j].astype(float))
        assert np.abs(l1.W_[:, j] - lasso.coef_).max() < 1e-9
    alpha, lam = 0.3, 4.0
    l21 = MLWSE(penalty="l21", alpha=alpha, lam=lam, **exact).fit(S, Y)
    gradient = S.T @ (S @ l21.W_ - Y)
    for block, pull in zip(np.split(l21.W_, 3), np.split(gradient, 3), strict=True):
        assert block.any()
        pull = pull + (1 - alpha) * lam * np.sqrt(q) * block / np.linalg.norm(block)
        assert np.abs(pull + alpha * lam * np.sign(block))[block != 0].max() < 1e-6
        assert (np.abs(pull) <= alpha * lam + 1e-6)[block == 0].all()


def test_stacking_does_not_see_permuted_labels():
    """Labels without any relation to X must not be predictable from the scores MLWSE is trained on.

    The area of a score independent of n1 positives and n0 negatives has mean 1/2 and variance
    (n1 + n0 + 1) / (12 n1 n0); base models fitted on the other folds are slightly anti-correlated with the
    row, which lowers it. The mean over q labels lies above 1/2 + 4 sd with probability < 4e-5. In-sample
    scores, the leak that stacking must avoid, give far more.
    """
    rng = np.random.default_rng(3)
    X, Y = data(rows=400)
    Y = Y[rng.permutation(len(Y))]
    member = [("br", BinaryRelevance(LogisticRegression(C=10.0)))]
    wide = np.hstack([X, rng.normal(size=(400, 30))])
    model = StackedMLWSE(member, MLWSE(alpha=1.0)).fit(wide, Y)
    positives = Y.sum(axis=0)
    spread = np.sqrt(np.mean((401) / (12 * positives * (400 - positives))))
    area = roc_auc_score(Y, model.base_scores_, average="macro")
    assert area < 0.5 + 4 * spread
    in_sample = clone(member[0][1]).fit(wide, Y).predict_proba(wide)
    assert roc_auc_score(Y, in_sample, average="macro") > 0.5 + 4 * spread


def test_the_meta_learner_is_set_like_any_nested_estimator():
    X, Y = data()
    model = StackedMLWSE(fast_members(), MLWSE(), cv=3).set_params(final_estimator__alpha=5.0)
    fitted = clone(model).fit(X, Y)
    assert fitted.final_estimator_.alpha == 5.0
    assert not hasattr(model.final_estimator, "W_")
    model.set_params(final_estimator__threshold=0.9)
    assert model.fit(X, Y).predict(X).sum() < fitted.predict(X).sum()
    assert StackedMLWSE(fast_members(), cv=3).fit(X, Y).final_estimator_.get_params() == MLWSE().get_params()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_stacking_is_reproducible_and_independent_of_n_jobs(n_jobs):
    X, Y = data()
    member = [("forest", RandomForestClassifier(n_estimators=5))]
    first = StackedMLWSE(member, random_state=4, cv=3).fit(X, Y).decision_function(X)
    again = StackedMLWSE(member, random_state=4, cv=3, n_jobs=n_jobs).fit(X, Y).decision_function(X)
    assert np.array_equal(first, again)


def test_stacking_in_a_pipeline_on_sparse_input_with_a_constant_label():
    X, Y = data()
    Y[:, 3] = 0
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    model = make_pipeline(MaxAbsScaler(), StackedMLWSE(fast_members(), MLWSE(penalty="l21", alpha=0.05), cv=3))
    predicted = clone(model).fit(sparse, Y).predict(sparse)
    assert predicted.shape == Y.shape
    assert not predicted[:, 3].any()
    assert np.mean(predicted == Y) > 0.7


def test_default_members_are_the_three_of_the_paper():
    X, Y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = StackedMLWSE(cv=2).fit(X, Y)
    assert [type(m).__name__ for m in model.estimators_] == [
        "BinaryRelevance",
        "ClassifierChain",
        "LabelPowerset",
    ]
    assert model.final_estimator_.W_.shape == (3 * q, q)
    assert np.array_equal(model.base_scores_[:, 0], model.base_scores_[:, q])  # a chain starts as BR does


def test_stacking_refuses_too_many_folds_and_doubled_names():
    X, Y = data()
    with pytest.raises(MethodError, match="cv=200"):
        StackedMLWSE(fast_members(), cv=200).fit(X, Y)
    with pytest.raises(MethodError, match="cv='thirds'"):
        StackedMLWSE(fast_members(), cv="thirds").fit(X, Y)
    with pytest.raises(MethodError, match="final_estimator must be an MLWSE, got BinaryRelevance"):
        StackedMLWSE(fast_members(), BinaryRelevance()).fit(X, Y)
    with pytest.raises(MethodError, match="different names"):
        StackedMLWSE([fast_members()[0]] * 2).fit(X, Y)


def test_the_mean_of_scores_is_their_mean():
    S = np.random.default_rng(0).random((7, 6))
    scores = MeanOfScores(threshold=0.4).fit(S, np.eye(7, 3, dtype=int)).decision_function(S)
    np.testing.assert_allclose(scores, (S[:, :3] + S[:, 3:]) / 2)
