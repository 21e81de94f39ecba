"""A compact model that learns what a stack predicts."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge

from multilab.methods import MLWSE, BinaryRelevance, DistilledStack, MLkNN, PortfolioStack, ScoreEnsemble
from multilab.methods.base import MethodError
from multilab.methods.forests.compact_forest import PackedForest
from multilab.methods.stacking.distilled_stack import KernelRegression, _between_neighbours
from multilab.metrics import log_loss, macro_average_precision
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

X, Y = make_multilabel_classification(n_samples=160, n_features=8, n_classes=3, random_state=0)
LINEAR = ("linear", BinaryRelevance(LogisticRegression(max_iter=1000), calibration="none"))
STACK = PortfolioStack([LINEAR, ("mlknn", MLkNN(k=7))], ScoreEnsemble(candidates=["greedy"], cv=2), cv=2)
FOREST = ExtraTreesRegressor(n_estimators=20, min_samples_leaf=2)


def test_the_student_learns_out_of_fold_scores_and_labels():
    model = DistilledStack(STACK, FOREST, label_share=0.25, n_copies=1, random_state=0).fit(X[:100], Y[:100])
    teacher = model.teacher_scores_
    assert model.targets_ == pytest.approx(0.25 * Y[:100] + 0.75 * teacher)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    stack = clone(STACK).set_params(random_state=seed).fit(X[:100], Y[:100])
    assert np.array_equal(teacher, np.clip(stack.out_of_fold_scores_, 0, 1))
    assert np.abs(stack.predict_proba(X[:100]) - teacher).max() > 0.01  # in-sample scores are others
    P = model.predict_proba(X[100:])
    assert ((P >= 0) & (P <= 1)).all()
    assert macro_average_precision(Y[100:], P) > macro_average_precision(Y[100:], np.zeros((60, 3))) + 0.1


def test_the_weight_of_the_kernel_regression_is_the_best_of_both_on_held_out_rows():
    model = DistilledStack(STACK, Ridge(), n_copies=0).fit(X, Y)
    share = model.kernel_share_
    forest = logit(np.clip(Ridge().fit(X, Y).predict(X), 0.01, 0.99))
    (regression,) = KernelRegression.fit(X, model.targets_, len(X), model.width_, [model.ridge_])
    kernel = regression(X)
    assert model.predict_proba(X) == pytest.approx(expit((1 - share) * forest + share * kernel))
    flat = DistilledStack(STACK, DummyRegressor(strategy="mean"), n_copies=0).fit(X, Y)
    assert flat.kernel_share_ == 0.8
    rng = np.random.default_rng(0)  # large noise is in all distances, but in no split
    rows = np.column_stack([Y + 0.1 * rng.normal(size=Y.shape), 20 * rng.normal(size=(len(X), 5))])
    assert DistilledStack(STACK, FOREST, n_copies=0).fit(rows, Y).kernel_share_ <= 0.2


def test_weight_width_and_ridge_have_the_least_log_loss_in_three_folds():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(150, 5))
    both = (rows[:, 1] > 0) & (rows[:, 2] > -0.5)
    labels = np.column_stack([rows[:, 0] > 0.3, both, rows[:, :3].sum(axis=1) + rng.normal(size=150) > 0]).astype(int)
    trees = ExtraTreesRegressor(n_estimators=20, random_state=0)  # right on every row it has learnt
    forest, kernels = np.empty(labels.shape), {}
    for train, test in IterativeStratifiedKFold(3, random_state=0).split(rows, labels):
        forest[test] = np.clip(clone(trees).fit(rows[train], labels[train]).predict(rows[test]), 0.01, 0.99)
        for width in (1.0, 0.3, 0.1):
            models = KernelRegression.fit(rows[train], labels[train], len(train), width, [1.0, 0.1, 0.01])
            for ridge, model in zip((1.0, 0.1, 0.01), models, strict=True):
                kernels.setdefault((width, ridge), np.empty(labels.shape))[test] = model(rows[test])
    losses = {
        (share, *choice): log_loss(labels, expit((1 - share) * logit(forest) + share * kernel))
        for share in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
        for choice, kernel in kernels.items()
    }
    model = DistilledStack(STACK, trees, n_copies=0).fit(rows, labels)
    assert (model.kernel_share_, model.width_, model.ridge_) == min(losses, key=losses.get) == (0.4, 0.3, 0.1)


def test_synthetic_rows_are_learnt_with_the_scores_that_the_stack_of_all_rows_gives_them():
    model = DistilledStack(STACK, Ridge(), n_copies=2).fit(X, Y)
    synthetic = _between_neighbours(X, 2, np.random.RandomState(0))
    targets = np.vstack([model.targets_, clone(STACK).fit(X, Y).predict_proba(synthetic)])
    (kernel,) = KernelRegression.fit(np.vstack([X, synthetic]), targets, len(X), model.width_, [model.ridge_])
    forest = logit(np.clip(Ridge().fit(X, Y).predict(X), 0.01, 0.99))
    share = model.kernel_share_
    assert share > 0
    assert model.predict_proba(X) == pytest.approx(expit((1 - share) * forest + share * kernel(X)))


def test_a_label_of_one_class_keeps_it():
    constant = Y.copy()
    constant[:, 0], constant[:, 1] = 0, 1
    P = DistilledStack(STACK, FOREST, n_copies=1, random_state=0).fit(X, constant).predict_proba(X)
    assert np.array_equal(P[:, :2], constant[:, :2])
    assert ((P[:, 2] > 0) & (P[:, 2] < 1)).all()


def test_kernel_regression_is_ridge_regression_of_log_odds():
    targets = np.random.default_rng(2).random((len(X), 3))
    margins = logit(np.clip(targets, 0.02, 0.98))
    bound = logit(0.99)
    for width in (1.0, 0.1):
        gamma = width / (X.shape[1] * X.var())
        models = KernelRegression.fit(X, targets, len(X), width, [1.0, 0.01])
        for alpha, model in zip((1.0, 0.01), models, strict=True):
            expected = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(X, margins - margins.mean(axis=0))
            reference = np.clip(expected.predict(X + 0.5) + margins.mean(axis=0), -bound, bound)
            assert model(X + 0.5) == pytest.approx(reference, abs=1e-4)
        rows = sp.csr_array(X)
        for sparse, dense in zip(KernelRegression.fit(rows, targets, len(X), width, [1.0, 0.01]), models, strict=True):
            assert sparse(rows) == pytest.approx(dense(X), abs=1e-6)
    (constant,) = KernelRegression.fit(np.zeros((4, 2)), targets[:4], 4, 1.0, [1.0])
    assert np.isfinite(constant(np.zeros((1, 2)))).all()


def test_trees_do_not_depend_on_the_order_of_the_labels_or_on_the_storage_of_x():
    rows = np.where(X > 3, X, 0)
    model, other, sparse = (
        DistilledStack(STACK, FOREST, n_copies=2, random_state=3).fit(x, y)
        for x, y in [(rows, Y), (rows, Y[:, [2, 0, 1]]), (sp.csr_array(rows), Y)]
    )
    assert other.predict_proba(rows) == pytest.approx(model.predict_proba(rows)[:, [2, 0, 1]], abs=1e-6)
    assert sparse.predict_proba(sp.csr_array(rows)) == pytest.approx(model.predict_proba(rows), abs=1e-6)


@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestRegressor])
def test_a_packed_forest_predicts_what_scikit_learn_predicts(kind):
    targets = np.random.default_rng(0).random((len(X), 3))
    forest = kind(15, min_samples_leaf=2, random_state=0).fit(X, targets)
    packed = PackedForest.of(forest)
    unseen = X + np.random.default_rng(1).normal(size=X.shape)
    for rows in (X, unseen, unseen[:1], X.astype(np.float32)):
        assert packed.predict(rows) == pytest.approx(forest.predict(rows), abs=1e-12)
        assert packed.predict(sp.csr_array(rows)) == pytest.approx(forest.predict(rows), abs=1e-12)
    assert packed.predict(X[:0]).shape == (0, 3)
    stump = kind(3, max_depth=1, random_state=0).fit(X, targets[:, 0])
    assert PackedForest.of(stump).predict(X)[:, 0] == pytest.approx(stump.predict(X), abs=1e-12)
    root = kind(2, random_state=0).fit(X, np.ones((len(X), 2)))
    assert np.array_equal(PackedForest.of(root).predict(X), np.ones((len(X), 2)))


def test_synthetic_rows_are_between_a_row_and_a_neighbour_and_the_same_for_sparse_x():
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    dense = _between_neighbours(rows, 3, np.random.RandomState(0))
    sparse = _between_neighbours(sp.csr_array(rows), 3, np.random.RandomState(0))
    assert dense == pytest.approx(sparse.toarray())
    assert dense.shape == (12, 2)
    moved = np.linalg.norm(dense - np.tile(rows, (3, 1)), axis=1)
    assert (moved > 0).all()
    assert (moved[:3] <= np.sqrt(2) * 5).all()


def test_the_same_seed_gives_the_same_student_for_dense_and_sparse_x():
    first, second = (DistilledStack(STACK, FOREST, random_state=3).fit(X, Y).predict_proba(X) for _ in range(2))
    assert np.array_equal(first, second)
    assert DistilledStack(STACK, FOREST, random_state=3).fit(sp.csr_array(X), Y).predict_proba(X).shape == Y.shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label_share": 1.5}, "label_share=1.5"),
        ({"n_copies": -1}, "n_copies=-1"),
        ({"stack": PortfolioStack([LINEAR], MLWSE(), cv=2)}, "MLWSE has no out_of_fold_scores_"),
    ],
)
def test_wrong_arguments_of_a_distilled_stack_are_refused(arguments, message):
    with pytest.raises(MethodError, match=message):
        DistilledStack(**{"stack": STACK, **arguments}).fit(X, Y)


def test_width_and_ridge_follow_the_data():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 6))
    linear = (rows @ rng.normal(size=(6, 3)) > 0).astype(int)  # a wide kernel is nearly linear
    chess = ((np.floor(1.5 * rows[:, :2]).sum(axis=1) % 2) == 0).astype(int)[:, None]
    wide = DistilledStack(STACK, DummyRegressor(), n_copies=0).fit(rows, linear)
    narrow = DistilledStack(STACK, DummyRegressor(), n_copies=0).fit(rows[:, :2], np.hstack([chess, 1 - chess]))
    assert wide.width_ < 1
    assert (narrow.width_, narrow.ridge_) == (1.0, 0.01)
    noise = rng.integers(2, size=(150, 2))
    assert DistilledStack(STACK, DummyRegressor(), n_copies=0).fit(rows, noise).kernel_share_ == 0.0
