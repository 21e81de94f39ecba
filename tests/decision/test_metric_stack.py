"""A prediction for each metric, chosen on held-out rows."""

import numpy as np
import pytest
from scipy.special import expit

from multilab.decision import MetricStack
from multilab.decision import metric_stack as label_sets
from multilab.decision.metric_stack import _POLICIES, LabelSetModel
from multilab.methods import ScoreEnsemble
from multilab.metrics import METRICS, example_f1, example_precision, example_recall, jaccard
from multilab.papers.mlwse.metrics import macro_f1_example

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
    assert set(measures) == set(model.choices_) <= set(METRICS)
    assert len(measures) == 16  # those that the rules were written for: a new metric changes no stack
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
    for name in ("macro_f1", "micro_f1", "example_recall"):
        function = METRICS[name].function
        assert function(TRUE, measures[name][1]) > function(TRUE, plain), name


def test_what_is_chosen_does_not_see_the_rows_it_is_validated_on():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (120, 4))
    noise = MetricStack(ENSEMBLE).fit(rng.random((120, 8)), labels)
    for name in ("macro_auc", "subset_accuracy"):  # in-sample values would be far from chance
        assert max(noise.validation_[name].values()) < {"macro_auc": 0.6, "subset_accuracy": 0.2}[name]


def joined(model, predict):
    """Return predictions of the training rows: ``predict`` gets the training rows and the test rows of a fold."""
    parts = [predict(train, test) for train, test in model.ensemble_.folds_]
    result = np.empty(Y.shape)
    result[np.concatenate([test for _, test in model.ensemble_.folds_])] = np.vstack(parts)
    return result


@pytest.mark.parametrize("name", ["macro_f1_thresholds", "micro_f1_thresholds", "global_threshold_macro_f1"])
def test_policies_are_validated_with_thresholds_of_the_other_folds(model, name):
    base, fit = model.ensemble_.out_of_fold_scores_, _POLICIES[name]
    other_folds = joined(model, lambda train, test: fit(base[train], Y[train])(base[test]))
    in_sample = joined(model, lambda train, test: fit(base, Y)(base[test]))
    assert not np.array_equal(other_folds, in_sample)
    for metric, values in model.validation_.items():
        if METRICS[metric].needs == "decisions":
            assert values[name] == METRICS[metric].function(Y, other_folds.astype(int)), metric


@pytest.mark.parametrize(("kind", "strength"), [("independent", 0.0), ("dependent", 0.5)])
def test_label_sets_are_validated_with_those_of_the_other_folds(model, kind, strength):
    base, macro_auc = model.ensemble_.out_of_fold_scores_, METRICS["macro_auc"].function

    def marginals(rows, test):
        sets = LabelSetModel.of(Y[rows])
        return sets.posterior(base[test], strength) @ sets.sets

    def most_probable(rows, test):
        sets = LabelSetModel.of(Y[rows])
        return sets.sets[np.argmax(sets.posterior(base[test], strength), axis=1)]

    other_folds = joined(model, marginals)
    assert model.validation_["macro_auc"][f"{kind}_sets"] == pytest.approx(macro_auc(Y, other_folds), abs=1e-12)
    in_sample = joined(model, lambda _, test: marginals(np.arange(len(Y)), test))
    if strength:
        assert abs(macro_auc(Y, other_folds) - macro_auc(Y, in_sample)) > 1e-6
    subset_accuracy = METRICS["subset_accuracy"].function(Y, joined(model, most_probable).astype(int))
    assert model.validation_["subset_accuracy"][f"{kind}_most_probable"] == subset_accuracy


def test_scores_of_a_metric_are_the_mean_of_the_five_best(model):
    P = model.ensemble_.candidate_scores(NEW)
    scores, sets = dict(P), LabelSetModel.of(Y)
    size = sets.sets.sum(axis=1, keepdims=True)
    for kind, strength in (("independent", 0.0), ("dependent", 0.5)):
        posterior = sets.posterior(P[model.ensemble_.combination_], strength)
        marginals = posterior @ sets.sets
        pairs = posterior @ (sets.sets / np.maximum(size * (4 - size), 1))
        scores[f"{kind}_sets"] = marginals
        scores[f"{kind}_pairs"] = pairs * marginals.sum(axis=1, keepdims=True) / pairs.sum(axis=1, keepdims=True)
    measures = model.predict_measures(NEW)
    for name in ("macro_auc", "micro_auc", "ranking_loss"):
        values = model.validation_[name]
        best = sorted(values, key=values.get, reverse=METRICS[name].direction == "max")[:5]
        assert len(values) == 6
        assert model.choices_[name] == tuple(best), name
        assert measures[name][0] == pytest.approx(np.mean([scores[key] for key in best], axis=0)), name


def test_undefined_values_are_the_worst():
    stack = MetricStack()
    values = {"undefined": np.nan, "low": 0.1, "none": np.nan, "high": 0.9}
    stack.validation_ = dict.fromkeys(("macro_auc", "ranking_loss", "macro_f1", "hamming_loss"), values)
    assert stack._best("macro_auc") == ("high", "low", "undefined", "none")
    assert stack._best("ranking_loss") == ("low", "high", "undefined", "none")
    assert stack._best("macro_f1") == ("high",)
    assert stack._best("hamming_loss") == ("low",)


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


@pytest.mark.parametrize("q", [3, 5, 8])
def test_label_sets_that_are_equally_good_are_chosen_by_their_order(model, q):
    P = np.full((200, q), 0.4) + 1e-16 * np.random.default_rng(0).integers(-4, 5, (200, q))
    P[:, 0] = 0.1
    decisions = model._predictions({model.ensemble_.combination_: P}, LabelSetModel.of(np.eye(q)), {}, None)[1]
    for name in ("independent_most_probable", "independent_f1", "dependent_jaccard"):
        np.testing.assert_array_equal(decisions[name], np.tile(np.arange(q) == q - 1, (200, 1)))


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
