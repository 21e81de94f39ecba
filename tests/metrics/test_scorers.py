"""Scorers: every kind of output of scikit-learn's multi-label estimators, signs, several metrics, search."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from helpers.multilabel_checks import make_data
from multilab import metrics
from multilab.methods import BinaryRelevance
from multilab.metrics import MetricError, get_scorer, get_scorer_names

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
ESTIMATORS = {
    "list of arrays, meta-estimator": MultiOutputClassifier(TREE),
    "list of arrays, forest": RandomForestClassifier(5, random_state=0),
    "list of arrays, neighbours": KNeighborsClassifier(3),
    "list of arrays, tree in a pipeline": make_pipeline(StandardScaler(), TREE),
    "array": OneVsRestClassifier(LogisticRegression()),
    "array, chain": ClassifierChain(LogisticRegression()),
    "array, network": MLPClassifier((4,), max_iter=20, random_state=0),
    "margins": OneVsRestClassifier(LinearSVC()),
    "multilab": BinaryRelevance(TREE),
}


@pytest.fixture(scope="module")
def data():
    X, Y, _ = make_data()
    return X, Y.astype(int)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_scores_are_those_of_the_functions(kind, data):
    X, Y = data
    model = clone(ESTIMATORS[kind]).fit(X, Y)
    if hasattr(model, "predict_proba"):
        output = model.predict_proba(X)
        scores = np.column_stack([part[:, 1] for part in output]) if isinstance(output, list) else output
        assert get_scorer("brier_score")(model, X, Y) == -metrics.brier_score(Y, scores)
    else:
        scores = model.decision_function(X)
        with pytest.raises(MetricError, match="OneVsRestClassifier has no predict_proba, which the metric log_loss"):
            get_scorer("log_loss")(model, X, Y)
    assert get_scorer("macro_auc")(model, X, Y) == metrics.macro_auc(Y, scores)
    loss = get_scorer("ranking_loss", conventions="mulan")
    assert loss(model, X, sp.csr_array(Y)) == -metrics.ranking_loss(Y, scores, "mulan")
    assert get_scorer("example_f1")(model, X, Y) == metrics.example_f1(Y, model.predict(X))
    assert get_scorer("precision_at_k", k=1)(model, X, Y) == metrics.precision_at_k(Y, scores, k=1)


def test_every_name_gives_a_scorer_that_is_larger_for_a_better_model(data):
    X, Y = data
    assert set(get_scorer_names()) == set(metrics.registry.ALL_METRICS)
    model = MultiOutputClassifier(DecisionTreeClassifier(random_state=0)).fit(X, Y)
    several = get_scorer(get_scorer_names())(model, X, Y)
    worse = get_scorer(get_scorer_names())(model, X[::-1], Y)
    for name in get_scorer_names():
        scorer = pickle.loads(pickle.dumps(get_scorer(name)))
        assert scorer(model, X, Y) == several[name]
        assert several[name] >= worse[name]
    assert several["hamming_loss"] == 0
    assert worse["hamming_loss"] < 0


def test_a_label_with_one_class_in_training(data):
    X, Y = data
    for value in (0, 1):
        constant = Y.copy()
        constant[:, 1] = value
        model = RandomForestClassifier(5, random_state=0).fit(X, constant)
        assert get_scorer("brier_score")(model, X, constant) > -0.25
        at_label = metrics.scorers.label_outputs(model.predict_proba(X), model)[:, 1]
        assert (at_label == value).all()


def test_cross_validation_and_search(data):
    X, Y = data
    trees = MultiOutputClassifier(DecisionTreeClassifier(random_state=0))
    scoring = {"loss": get_scorer("ranking_loss"), "p1": get_scorer("precision_at_k", k=1)}
    folds = KFold(3)
    result = cross_validate(trees, X, Y, cv=folds, scoring=scoring)
    assert (result["test_loss"] <= 0).all()
    assert (result["test_p1"] > 0).all()
    together = cross_validate(trees, X, Y, cv=folds, scoring=get_scorer(["ranking_loss", "brier_score"]))
    np.testing.assert_array_equal(together["test_ranking_loss"], result["test_loss"])
    alone = cross_val_score(trees, X, Y, cv=folds, scoring=get_scorer("brier_score"))
    np.testing.assert_array_equal(together["test_brier_score"], alone)
    grid = {"estimator__max_depth": [1, 4]}
    scoring = {"a": get_scorer("macro_f1"), "b": get_scorer("log_loss")}
    search = clone(GridSearchCV(trees, grid, cv=folds, scoring=scoring, refit="b")).fit(X, Y)
    assert search.best_score_ == max(search.cv_results_["mean_test_b"]) < 0
    assert search.score(X, Y) == get_scorer("log_loss")(search, X, Y)


def test_unobserved_labels_are_left_out_of_the_score(data):
    X, Y = data
    model = BinaryRelevance(TREE).fit(X, Y)
    hidden = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, math.nan, Y)
    assert get_scorer("hamming_loss")(model, X, hidden) == -metrics.hamming_loss(hidden, model.predict(X))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get_scorer("macro_F1"), "macro_f1"),
        (lambda: get_scorer("macro_f1", k=3), "macro_f1 has no parameter 'k'; it has: none"),
        (lambda: get_scorer("ndcg_at_k", n=3), "has no parameter 'n'; it has: k, propensities"),
        (lambda: get_scorer(["ndcg_at_k", "macro_f1"], k=3), "make a dict of single scorers"),
        (lambda: get_scorer([]), "at least one metric"),
        (lambda: get_scorer("macro_f1", conventions="weka"), "'weka' are unknown"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(MetricError, match=message):
        call()


def test_the_text_of_a_scorer_names_it():
    assert repr(get_scorer("precision_at_k", k=3)) == "get_scorer('precision_at_k', k=3)"
    assert repr(get_scorer(["macro_f1"])) == "get_scorer(['macro_f1'])"
