"""A prediction for each metric, chosen on held-out rows."""

import numpy as np
import pytest
from scipy.special import expit

from multilab.decision import MetricStack
from multilab.decision import _label_sets as label_sets
from multilab.decision._label_sets import LabelSetModel
from multilab.methods import ScoreEnsemble
from multilab.metrics import METRICS, example_f1, example_precision, example_recall, jaccard, macro_f1_example

ENSEMBLE = ScoreEnsemble(candidates=["mean", "greedy"], cv=3)


def data(seed, n=300):
    """Return scores of two classifiers and labels that depend on each other: the second needs the first."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, 4)) - np.array([0.3, 0.8, 0.9, 1.2])
    Y = (true + 0.4 * rng.normal(size=(n, 4)) > 0).astype(int)
    Y[:, 1] *= Y[:, 0]
    return np.hstack([expit(2 * (true + s * rng.normal(size=(n, 4)))) for s in (0.5, 0.8)]), Y


X, Y = data(0)
NEW, TRUE = data(1)


@pytest.fixture(scope="module")
def model():
    return MetricStack(ENSEMBLE).fit(X, Y)


def test_every_metric_has_its_prediction(model):
    measures = model.predict_measures(NEW)
    assert set(measures) == set(METRICS) == set(model.choices_)
    for name, (scores, decisions) in measures.items():
        assert scores.shape == decisions.shape == NEW[:, :4].shape, name
        assert set(np.unique(decisions)) <= {0, 1}, name
        assert model.choices_[name][0] in model.validation_[name]


def test_the_choice_is_the_best_on_held_out_rows(model):
    for name, values in model.validation_.items():
        best = max(values.values()) if METRICS[name].direction == "max" else min(values.values())
        assert values[model.choices_[name][0]] == best, name


def test_predictions_for_metrics_beat_one_threshold_on_new_rows(model):
    measures, plain = model.predict_measures(NEW), model.predict(NEW)
    for name in ("macro_f1", "micro_f1", "example_recall", "macro_f1_example"):
        function = METRICS[name].function
        assert function(TRUE, measures[name][1]) > function(TRUE, plain), name


def test_what_is_chosen_does_not_see_the_rows_it_is_validated_on():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (120, 4))
    noise = MetricStack(ENSEMBLE).fit(rng.random((120, 8)), labels)
    for name in ("macro_auc", "subset_accuracy"):  # in-sample values would be far from chance
        assert max(noise.validation_[name].values()) < {"macro_auc": 0.6, "subset_accuracy": 0.2}[name]


def test_posterior_of_label_sets_is_bayes_rule():
    labels = np.array([[1, 1], [1, 1], [1, 0], [0, 0]])
    sets = LabelSetModel.of(labels)
    P = np.array([[0.8, 0.4]])
    direct = np.array([(0.2 * 0.6), (0.8 * 0.6), (0.8 * 0.4)])  # 00, 10, 11
    assert sets.posterior(P, 0.0)[0] == pytest.approx(direct / direct.sum())
    share = (labels.sum(axis=0) + 1) / 6
    independent = np.prod(np.where(sets.sets > 0, share, 1 - share), axis=1)
    weighted = direct * np.array([1, 1, 2]) / 4 / independent
    assert sets.posterior(P, 1.0)[0] == pytest.approx(weighted / weighted.sum())


@pytest.mark.parametrize(
    ("utility", "metric"),
    [
        (label_sets.set_jaccard, jaccard),
        (label_sets.set_f1, example_f1),
        (label_sets.set_f1_zero, macro_f1_example),
        (label_sets.set_precision, example_precision),
        (label_sets.set_recall, example_recall),
        (label_sets.equal_sets, METRICS["subset_accuracy"].function),
    ],
)
def test_utilities_are_the_metrics_of_one_row(utility, metric):
    sets = np.array([[int(bit) for bit in f"{number:03b}"] for number in range(8)])
    table = utility(sets.astype(float), sets.astype(float))
    for predicted in range(8):
        for true in range(8):
            assert table[predicted, true] == metric(sets[[true]], sets[[predicted]]), (sets[predicted], sets[true])


def test_the_most_frequent_label_sets_are_kept(monkeypatch):
    monkeypatch.setattr(label_sets, "_MOST_SETS", 2)
    labels = np.array([[1, 0]] * 3 + [[0, 1]] + [[1, 1]] * 2)
    assert LabelSetModel.of(labels).sets.tolist() == [[1, 0], [1, 1]]
