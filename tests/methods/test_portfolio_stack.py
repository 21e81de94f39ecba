"""A portfolio combined by greedy selection or MLWSE."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression

from multilab.methods import MLWSE, BinaryRelevance, MLkNN, PortfolioStack
from multilab.methods.base import MethodError
from multilab.methods.stacking.portfolio_stack import _greedy_weights
from multilab.metrics import macro_average_precision, ranking_loss
from multilab.metrics.errors import MetricError

X, Y = make_multilabel_classification(n_samples=120, n_features=8, n_classes=4, random_state=2)
LINEAR = ("linear", BinaryRelevance(LogisticRegression(max_iter=1000), calibration="none"))


class Noise(ClassifierMixin, BaseEstimator):
    """Scores without a relation to the labels, but right on every row seen in fit: a perfect memory."""

    def fit(self, X, y):
        self.known = {row.tobytes(): labels for row, labels in zip(np.asarray(X), np.asarray(y), strict=True)}
        self.n_labels_ = y.shape[1]
        return self

    def decision_function(self, X):
        unknown = np.random.default_rng(0).random((len(X), self.n_labels_))
        return np.array([self.known.get(row.tobytes(), other) for row, other in zip(X, unknown, strict=True)])


@pytest.fixture(scope="module")
def model():
    return PortfolioStack([LINEAR, ("noise", Noise()), ("mlknn", MLkNN(k=7))], cv=3, random_state=0).fit(X, Y)


def test_a_perfect_memory_of_the_training_rows_gets_little_weight(model):
    assert model.validation_["noise"] < model.validation_["linear"]
    greedy = PortfolioStack([LINEAR, ("noise", Noise())], final_estimators=[], cv=3, random_state=0).fit(X, Y)
    share = greedy.weights_[:, 0, 0]
    assert share.sum() == pytest.approx(1.0)
    assert share[1] < 0.5


def test_the_best_combination_by_held_out_rows_is_chosen(model):
    values = {name: model.validation_[name] for name in ("greedy", "l1", "l21")}
    assert model.combination_ == max(values, key=values.get)
    assert macro_average_precision(Y, model.out_of_fold_scores_) == values[model.combination_]


def test_the_combination_is_at_least_as_good_as_the_better_part_where_parts_complement_each_other():
    # each classifier sees half of the features, and labels need both
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(400, 4))
    labels = np.column_stack([Z[:, 0] + Z[:, 2] > 0, Z[:, 1] - Z[:, 3] > 0.3]).astype(int)
    halves = [(name, Columns(at)) for name, at in (("first", [0, 1]), ("second", [2, 3]))]
    stack = PortfolioStack(halves, cv=4, random_state=0).fit(Z[:250], labels[:250])
    single = [Columns(at).fit(Z[:250], labels[:250]) for at in ([0, 1], [2, 3])]
    own = macro_average_precision(labels[250:], stack.predict_proba(Z[250:]))
    assert own > max(macro_average_precision(labels[250:], one.predict_proba(Z[250:])) for one in single) + 0.05


class Columns(ClassifierMixin, BaseEstimator):
    def __init__(self, columns=(0,)):
        self.columns = columns

    def fit(self, X, y):
        self.model_ = BinaryRelevance(LogisticRegression(), calibration="none").fit(X[:, self.columns], y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, self.columns])


def test_greedy_selection_equals_an_exhaustive_step_by_step_search():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, (40, 3))
    P = rng.random((3, 40, 3)) * 0.5 + 0.3 * labels * rng.random((3, 1, 1))
    weights = _greedy_weights(P, labels, value=lambda Y, s: -ranking_loss(Y, s), n_rounds=4)
    chosen = []
    for _ in range(4):
        options = [ranking_loss(labels, np.mean([P[k] for k in [*chosen, one]], axis=0)) for one in range(3)]
        chosen.append(int(np.argmin(options)))
    expected = np.bincount(chosen, minlength=3) / 4
    assert np.array_equal(weights, expected[:, None, None] * np.eye(3))


def test_scores_of_new_rows_are_the_weighted_calibrated_scores(model):
    new = np.random.default_rng(1).normal(size=(5, 8)) + X[:5]
    columns = []
    for at, name in enumerate(["linear", "noise", "mlknn"]):
        one = model.estimators_.get(name)
        raw = (
            np.zeros((5, 4))
            if one is None
            else getattr(one, "predict_proba", getattr(one, "decision_function", None))(new)
        )
        slope, offset = model._calibration.slope[at], model._calibration.offset[at]
        columns.append(1 / (1 + np.exp(-(slope * raw + offset))))
    expected = np.clip(sum(part @ weights for part, weights in zip(columns, model.weights_, strict=True)), 0, 1)
    assert model.predict_proba(new) == pytest.approx(expected, abs=1e-12)


def test_unused_classifiers_are_not_fitted_again():
    greedy = PortfolioStack([LINEAR, ("noise", Noise())], final_estimators=[], n_rounds=1, cv=3).fit(X, Y)
    assert list(greedy.estimators_) == ["linear"]


def test_the_same_seed_gives_the_same_model(model):
    again = PortfolioStack([LINEAR, ("noise", Noise()), ("mlknn", MLkNN(k=7))], cv=3, random_state=0).fit(X, Y)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"estimators": []}, MethodError, "estimators needs at least one entry"),
        ({"estimators": [LINEAR, LINEAR]}, MethodError, "different names"),
        ({"metric": "macro_f1"}, MethodError, "one of decisions"),
        ({"metric": "makro"}, MetricError, "makro"),
        ({"n_rounds": 0}, MethodError, "n_rounds=0"),
        ({"cv": 1}, MethodError, "cv=1"),
        ({"cv": 500}, MethodError, "n_samples = 120"),
        ({"final_estimators": [("greedy", MLWSE())]}, MethodError, "none named 'greedy'"),
        ({"final_estimators": [("linear", LogisticRegression())]}, MethodError, "must be MLWSE"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        PortfolioStack(**{"estimators": [LINEAR], **arguments}).fit(X, Y)
