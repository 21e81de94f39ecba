"""The entrants of the arena: every file composes, builds, is seeded, and fits toy sets and awkward labels."""

from __future__ import annotations

import importlib.util
import pickle

import numpy as np
import pytest

from multilab import datasets
from multilab.cells.arguments import check_method
from multilab.cells.conf import entrant_names, package_names
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method, build, load_method
from multilab.cells.pipeline import predict_with_scores
from multilab.cells.seeds import seed_estimator
from multilab.cli import main
from multilab.methods.out_of_fold import score_matrix

MODULES = {
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "xgboost_vector_leaf": "xgboost",
    "catboost": "catboost",
    "catboost_fast": "catboost",
    "boomer": "mlrl.boosting",
}
OTHERS = [name for name in entrant_names("method") if name not in MODULES and not load_method(name).base_scores]
PACKAGE = [name for name in package_names("method") if name not in entrant_names("method")]
ENTRANTS = [*MODULES, *(name for name in OTHERS if not load_method(name).requires and not name.startswith("tab"))]


def entrant(name: str) -> Method:
    """Return an entrant with arguments that make it fast; skip the test if its package is not installed."""
    if name in MODULES:
        pytest.importorskip(MODULES[name], reason="the extra `arena` is not installed")
    method = load_method(name)
    return method.with_params(method.check_params)


def fitted(name, X, Y):
    return seed_estimator(build(entrant(name)), 0, name).fit(X, Y)


@pytest.mark.parametrize("name", ENTRANTS)
def test_its_arguments_and_its_search_space_exist(name):
    check_method(entrant(name), tuned=True)


@pytest.mark.parametrize("name", ENTRANTS)
def test_its_file_has_all_facts(name):
    method = load_method(name)
    for fact in ("title", "family", "licence", "reference", "notes"):
        assert getattr(method, fact), fact
    assert "random_state" in method.params or name in ("all_zero", "top_k") or "hist" in name


@pytest.mark.parametrize("name", [*ENTRANTS, *(name for name in PACKAGE if not load_method(name).base_scores)])
def test_its_scores_out_of_fold_and_in_tests_are_on_one_scale(name):
    """A stack learns from `score_matrix` and reads `predict_with_scores` of the test rows."""
    data = datasets.load("genes-toy")
    model = fitted(name, data.X[:80, :12], data.Y[:80, :4])
    seen = score_matrix(model, data.X[80:99, :12], 4)
    np.testing.assert_array_equal(predict_with_scores(model, data.X[80:99, :12], 4)[0], seen)


@pytest.mark.parametrize("name", ENTRANTS)
@pytest.mark.parametrize("dataset", ["genes-toy", "topics-toy"])
def test_it_fits_a_toy_set(name, dataset):
    """Dense and sparse features, rare, constant and missing labels; scores and decisions agree; it can be pickled."""
    data = datasets.load(dataset)
    X, Y = data.X[:80, :12], data.Y[:80, :4].copy()
    if load_method(name).base_scores and hasattr(X, "toarray"):
        X = X.toarray()  # scores of other methods, which are dense
    Y[:, 1], Y[:, 2], Y[0, 2] = 1, 0, 1  # constant; a single row
    model = fitted(name, X, Y)
    scores, decisions = predict_with_scores(model, X[:9], 4)
    assert scores.shape == decisions.shape == (9, 4)
    assert ((scores >= 0) & (scores <= 1)).all()
    if name not in ("top_k", "all_zero"):
        np.testing.assert_array_equal(decisions, scores >= 0.5)
        assert (scores[:, 1] == 1).all()
    again = predict_with_scores(pickle.loads(pickle.dumps(model)), X[:9], 4)[0]
    np.testing.assert_array_equal(again, scores)
    np.testing.assert_array_equal(predict_with_scores(fitted(name, X, Y), X[:9], 4)[0], scores)


@pytest.mark.parametrize("name", [*MODULES, "mlp"])
@pytest.mark.parametrize("kept", [0, 1])
def test_hardly_any_label_varies(name, kept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    Y = np.zeros((40, 3), dtype=np.uint8)
    Y[:, :kept] = X[:, :1] > 0
    assert predict_with_scores(fitted(name, X, Y), X, 3)[0][:, kept:].max() == 0


@pytest.mark.parametrize("name", MODULES)
def test_its_version_is_in_the_key(name):
    distributions = entrant(name).outside.distributions
    assert len(distributions) == 1
    assert next(iter(distributions)).startswith(name.split("_")[0].replace("boomer", "mlrl-boomer"))


@pytest.mark.parametrize("name", MODULES)
def test_it_runs_on_one_thread(name):
    text = str(entrant(name).identity())
    assert any(one in text for one in ("'n_jobs': 1", "'thread_count': 1", "'parallel_rule_refinement': 'false'"))


def test_boomer_itself_decides_at_one_half():
    boosting = pytest.importorskip("mlrl.boosting")
    data = datasets.load("genes-toy")
    model = boosting.BoomerClassifier(max_rules=50).fit(data.X, data.Y)
    np.testing.assert_array_equal(model.predict(data.X), model.predict_proba(data.X) >= 0.5)


@pytest.mark.parametrize("name", MODULES)
def test_adapters_of_other_libraries_pass_the_checks(name):
    """Arguments, shapes, seeds, constant labels and types, as anybody's classifier is checked."""
    from multilab.testing import check_multilabel_estimator

    reasons = {}
    if "xgboost" in name:
        reasons["check_sparse_input"] = "zeros that a sparse X does not store are missing values"
    if name == "boomer":
        reasons["check_label_permutation"] = "of rules with equal quality that of the first label is taken"
    check_multilabel_estimator(build(entrant(name)), scikit_learn=False, expected_failed_checks=reasons)


@pytest.fixture
def without_lightgbm(monkeypatch):
    """Hide LightGBM, installed or not."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("multilab.cells.method.find_spec", lambda name: None if name == "lightgbm" else find_spec(name))


def test_a_missing_package_is_one_line(without_lightgbm, capsys):
    assert main(["train", "dataset=genes-toy", "method=lightgbm"]) == 2
    assert "pip install 'lightgbm'" in capsys.readouterr().err.strip().splitlines()[-1]
    with pytest.raises(ExperimentError, match="pip install 'lightgbm"):
        _ = load_method("lightgbm").outside


def test_list_and_show_say_what_is_needed(without_lightgbm, capsys):
    assert main(["methods", "list", "boosting"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["lightgbm"].endswith("(needs lightgbm)")
    assert lines["boomer"].endswith("(needs mlrl-boomer==0.12.3)")
    assert "needs" not in lines["br_hist_gradient_boosting"]
    assert main(["methods", "show", "lightgbm"]) == 0
    assert "pip install lightgbm" in capsys.readouterr().out


def test_display_facts_reach_no_key():
    method = load_method("all_zero")
    changed = Method.from_mapping(
        "all_zero", {"_target_": method.target, "family": "x", "licence": "y", "requires": "z", "notes": "n"}
    )
    assert changed.identity() == method.identity()
    assert changed.key_settings == method.key_settings
