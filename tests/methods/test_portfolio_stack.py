"""A portfolio with a second level on its out-of-fold scores."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression

from multilab.decision import MetricStack, TunedThresholdClassifier
from multilab.methods import MLWSE, BinaryRelevance, MLkNN, PortfolioStack, ScoreEnsemble
from multilab.methods.base import MethodError
from multilab.metrics import log_loss, macro_average_precision

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


class Columns(ClassifierMixin, BaseEstimator):
    def __init__(self, columns=(0,)):
        self.columns = columns

    def fit(self, X, y):
        self.model_ = BinaryRelevance(LogisticRegression(), calibration="none").fit(X[:, self.columns], y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, self.columns])


GREEDY = ScoreEnsemble(candidates=["greedy"], cv=3)


@pytest.fixture(scope="module")
def model():
    return PortfolioStack([LINEAR, ("noise", Noise()), ("mlknn", MLkNN(k=7))], cv=3, random_state=0).fit(X, Y)


def test_one_label_is_a_column_without_a_warning():
    forest = ExtraTreesClassifier(5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataConversionWarning)
        stack = PortfolioStack([("forest", forest)], GREEDY, cv=3, random_state=0).fit(X, Y[:, :1])
        tuned = TunedThresholdClassifier(forest, cv=3).fit(X, Y[:, :1])
    assert stack.predict(X).shape == tuned.predict(X).shape == (120, 1)


def test_a_perfect_memory_of_the_training_rows_gets_little_weight(model):
    linear, noise, _ = model.final_estimator_.member_validation_
    assert linear < noise  # log loss
    greedy = PortfolioStack([LINEAR, ("noise", Noise())], GREEDY, cv=3, random_state=0).fit(X, Y)
    weights = greedy.final_estimator_.greedy_weights_
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] < 0.5


def test_scores_of_the_training_rows_are_those_of_the_second_level(model):
    assert log_loss(Y, model.out_of_fold_scores_) == min(model.final_estimator_.validation_.values())
    assert model.base_scores_.shape == (120, 12)


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


def test_unused_classifiers_are_not_fitted_again():
    once = ScoreEnsemble(candidates=["greedy"], n_rounds=1, cv=3)
    greedy = PortfolioStack([LINEAR, ("noise", Noise())], once, cv=3).fit(X, Y)
    assert list(greedy.estimators_) == ["linear"]
    assert greedy.predict_proba(X[:5]).shape == (5, 4)


def test_the_same_seed_gives_the_same_model(model):
    again = PortfolioStack([LINEAR, ("noise", Noise()), ("mlknn", MLkNN(k=7))], cv=3, random_state=0).fit(X, Y)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_second_level_with_a_prediction_per_metric_passes_it_on(model):
    stack = PortfolioStack([LINEAR, ("mlknn", MLkNN(k=7))], MetricStack(GREEDY), cv=3).fit(X, Y)
    assert stack.predict_measures(X[:5])["example_recall"][1].all()
    assert not hasattr(model, "predict_measures")


def test_another_second_level_decides_by_its_own_threshold():
    stack = PortfolioStack([LINEAR, ("mlknn", MLkNN(k=7))], MLWSE(threshold=0.3), cv=3).fit(X, Y)
    scores = stack.decision_function(X)
    assert np.array_equal(stack.predict(X), scores >= 0.3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimators": []}, "estimators needs at least one entry"),
        ({"estimators": [LINEAR, LINEAR]}, "different names"),
        ({"cv": 1}, "cv=1"),
        ({"cv": 500}, "n_samples = 120"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(MethodError, match=message):
        PortfolioStack(**{"estimators": [LINEAR], **arguments}).fit(X, Y)
