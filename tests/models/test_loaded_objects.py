"""Crafted arrays in a loaded model are refused before compiled code follows them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from multilab.methods import IMLDF, MLDF, RFPCT, BinaryRelevance, MLkNN
from multilab.models import DeploymentError
from multilab.models.loaded_objects import check_objects
from multilab.models.skops_files import dump_model, load_skops

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
Y = (X[:, :3] + 0.3 * RNG.normal(size=(60, 3)) > 0).astype(int)
y = Y[:, 0]


def of_tree(field, value):
    """Return a change of the first node of a tree: its state is set again, as skops does."""

    def change(model):
        state = model.tree_.__getstate__()
        state["nodes"][field][0] = value
        model.tree_.__setstate__(state)

    return change


def of_depth(depth):
    """Return a change of the depth that a tree says it has."""

    def change(model):
        model.tree_.__setstate__({**model.tree_.__getstate__(), "max_depth": depth})

    return change


def of_field(*path, value=None, position=None):
    """Return a change of an attribute, or of an element of an array that is one."""

    def change(model):
        *owners, last = path
        for name in owners:
            model = model[name] if isinstance(name, int) else getattr(model, name)
        if position is not None:
            array = getattr(model, last).copy()
            array[position] = value
            value_now = array
        else:
            value_now = value(getattr(model, last)) if callable(value) else value
        object.__setattr__(model, last, value_now)

    return change


def of_nodes(*path, field, value):
    """Return a change of a field of the first node of an array of nodes."""

    def change(model):
        for name in path:
            model = model[name] if isinstance(name, int) else getattr(model, name)
        model[field][0] = value

    return change


def wide(forest):
    """Let a forest split on a column that its input does not have."""
    nodes = np.array(forest.nodes)  # the one of the forest may be mapped from a file
    nodes["feature"][0] = 10**6 - 1
    object.__setattr__(forest, "n_features", 10**6)
    object.__setattr__(forest, "nodes", nodes)


TREE, HIST = DecisionTreeClassifier(random_state=0), HistGradientBoostingClassifier(max_iter=2)
SPARSE = sp.csr_array(X * (X > 0))
NODES = ("_predictors", 0, 0, "nodes")
CRAFTED = {
    "tree, child out of range": (TREE, of_tree("left_child", 2**30)),
    "tree, negative child": (TREE, of_tree("right_child", -9)),
    "tree, cycle": (TREE, of_tree("left_child", 0)),
    "tree, two parents": (TREE, of_tree("left_child", 2)),
    "tree, feature": (TREE, of_tree("feature", 10**9)),
    "tree, negative feature": (TREE, of_tree("feature", -5)),
    "tree, fewer features than it says": (TREE, of_field("n_features_in_", value=2)),
    "tree, another depth": (TREE, of_field("tree_", "max_depth", value=0)),
    "forest, other features": (RandomForestClassifier(n_estimators=2), of_field("n_features_in_", value=3)),
    "forest, a method hidden": (TREE, of_field("_validate_X_predict", value=1)),
    "boosting, child": (HIST, of_nodes(*NODES, field="left", value=2**30)),
    "boosting, cycle": (HIST, of_nodes(*NODES, field="right", value=0)),
    "boosting, feature": (HIST, of_nodes(*NODES, field="feature_idx", value=77)),
    "boosting, categories": (HIST, of_nodes(*NODES, field="is_categorical", value=1)),
    "boosting, no node": (HIST, of_field("_predictors", 0, 0, "nodes", value=lambda nodes: nodes[:0])),
    "boosting, category": (
        HIST,
        lambda m: (
            of_field("_bin_mapper", "is_categorical_", value=np.ones(6, dtype=np.uint8))(m),
            of_field("_bin_mapper", "bin_thresholds_", value=[np.array([1e6])] * 6)(m),
        ),
    ),
    "gradient boosting, columns": (
        GradientBoostingClassifier(n_estimators=4),
        lambda m: m.__dict__.update(estimators_=m.estimators_.reshape(1, 4), n_classes_=4, n_trees_per_iteration_=4),
    ),
    "machine, counts": (SVC(), of_field("_n_support", value=np.array([10**6, 5 - 10**6], dtype=np.int32))),
    "machine, coefficients": (SVC(), of_field("_dual_coef_", value=lambda coef: coef[:, :1])),
    "machine, probabilities": (SVC(), of_field("_probA", value=np.zeros(9))),
    "machine, intercepts": (SVC(), of_field("_intercept_", value=np.zeros(0))),
    "boosting, an encoder of other columns": (HIST, lambda m: setattr(m, "_preprocessor", PCA(1).fit(X))),
    "machine, offsets among sparse values": (
        SVC(kernel="linear"),
        lambda m: (
            m.fit(SPARSE, y),
            m.__dict__.update(kernel="precomputed", shape_fit_=(6, 6), support_=m.support_ * 0),
        ),
    ),
    "neighbours, more than rows": (
        KNeighborsClassifier(algorithm="brute"),
        lambda m: m.__dict__.update(n_neighbors=61, n_samples_fit_=10**7),
    ),
    "neighbours, too many classes": (
        KNeighborsClassifier(algorithm="brute"),
        of_field("classes_", value=np.arange(10**6)),
    ),
    "constant, columns": (DummyClassifier(), of_field("n_classes_", value=2**24)),
    "forest, columns": (RandomForestClassifier(n_estimators=2), of_field("n_classes_", value=2**24)),
    "tree, endless depth": (TREE, of_depth(2**63 - 1)),
    "categories, columns": (OneHotEncoder(), of_field("_n_features_outs", value=lambda n: [*n[:-1], n[-1] - 1])),
    "categories, dropped": (OneHotEncoder(drop="first"), of_field("_drop_idx_after_grouping", position=0, value=-5)),
    "categories, groups": (
        OneHotEncoder(min_frequency=2),
        of_field("_default_to_infrequent_mappings", value=lambda groups: [group + 10**6 for group in groups]),
    ),
    "neighbours, classes": (KNeighborsClassifier(algorithm="brute"), of_field("_y", value=lambda c: c * 10**8)),
    "neighbours, features": (KNeighborsClassifier(algorithm="brute"), of_field("_fit_X", value=lambda Z: Z[:, :2])),
    "compact forest, child": (RFPCT(n_estimators=2), of_nodes("forest_", "nodes", field="left", value=2**30)),
    "compact forest, feature": (RFPCT(n_estimators=2), of_nodes("forest_", "nodes", field="feature", value=9)),
    "compact forest, width": (RFPCT(n_estimators=2), lambda m: wide(m.forest_)),
    "compact forest, offsets": (
        RFPCT(n_estimators=2),
        of_field("forest_", "starts", value=lambda starts: starts + np.arange(len(starts)) * 10**6),
    ),
    "compact forest, leaf": (
        RFPCT(n_estimators=2),
        lambda m: m.forest_.nodes["feature"].__setitem__(m.forest_.nodes["left"] < 0, 10**6),
    ),
    "cascade, width of a later layer": (
        MLDF(n_layers=2, n_forests=2, n_trees=2, random_state=0, early_stopping=False),
        lambda m: wide(m._first.forests[0][0]),
    ),
    "cascade of regions, width": (
        IMLDF(n_layers=2, n_forests=2, n_trees=2, random_state=0, early_stopping=False),
        lambda m: wide(next(iter(m._last.values())).forests[0][0]),
    ),
    "loose forest": (MLkNN(k=3), lambda m: setattr(m, "note", RFPCT(n_estimators=2).fit(X, Y).forest_)),
    "loose tree": (MLkNN(k=3), lambda m: setattr(m, "note", [DecisionTreeClassifier().fit(X, y).tree_])),
    "count": (MLkNN(k=3), of_field("n_labels_", value=10**12)),
    "processes": (MLkNN(k=3), lambda m: setattr(m, "n_jobs", "all")),
    "cache": (MLkNN(k=3), lambda m: setattr(m, "memory", "a/folder")),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_array_is_refused(name):
    estimator, change = CRAFTED[name]
    multi = type(estimator).__module__.startswith("multilab.")
    model = type(estimator)(**estimator.get_params()).fit(X, Y if multi else y)
    check_objects(model)
    change(model)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        check_objects(model)


@pytest.mark.parametrize(
    "options", [{}, {"drop": "first"}, {"min_frequency": 9}, {"drop": "if_binary", "min_frequency": 9}]
)
def test_categories_are_loaded(options):
    encoder = OneHotEncoder(**options).fit(np.round(X))
    expected = encoder.transform(np.round(X)).toarray()
    check_objects(encoder)
    np.testing.assert_array_equal(encoder.transform(np.round(X)).toarray(), expected)


@pytest.mark.parametrize("kind", [sp.bsr_array, sp.dia_matrix, sp.coo_array])
def test_a_sparse_matrix_of_another_form_is_refused(kind):
    with pytest.raises(ValueError, match=r"\w"):
        check_objects([kind(X)])


SPARSE_DAMAGE = {
    "column out of range": lambda rows: rows.indices.fill(10**6),
    "negative column": lambda rows: rows.indices.fill(-3),
    "rows that fall": lambda rows: rows.indptr.__setitem__(3, 10**6),
    "negative rows": lambda rows: rows.indptr.__setitem__(3, -2),
}


@pytest.mark.parametrize("damage", SPARSE_DAMAGE)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
def test_a_sparse_matrix_out_of_range_is_refused(damage, kind):
    rows = kind(X * (X > 0))
    check_objects([rows])
    SPARSE_DAMAGE[damage](rows)
    with pytest.raises(ValueError, match=r"\w"):
        check_objects([rows])


def test_a_crafted_file_is_refused_in_one_line_and_does_not_end_the_process(tmp_path):
    model = BinaryRelevance(DecisionTreeClassifier(random_state=0)).fit(X, Y)
    dump_model(model, tmp_path / "model.skops")
    loaded = load_skops(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_with_scores(X)[0], model.predict_proba(X))
    of_tree("left_child", 2**30)(model._labels[0].model)
    dump_model(model, tmp_path / "model.skops")
    with pytest.raises(DeploymentError, match=r"^[^\n]+child out of range[^\n]+$"):
        load_skops(tmp_path / "model.skops")


def test_jobs_are_those_of_this_machine():
    model = RandomForestClassifier(n_estimators=2).fit(X, y)
    model.n_jobs = 10**6
    check_objects(model)
    assert model.n_jobs == os.cpu_count()
    model.n_jobs = -1
    check_objects(model)
    assert model.n_jobs == -1


@pytest.mark.parametrize("name", ["tree, child out of range", "boosting, child"])
@pytest.mark.slow
def test_the_arrays_that_are_refused_would_end_the_process(name):
    """What is refused is no false alarm: without the check the process dies."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from models.test_loaded_objects import CRAFTED, X, y\n"
        "estimator, change = CRAFTED[sys.argv[2]]\n"
        "model = estimator.fit(X, y); change(model); model.predict(X)\n"
    )
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    assert subprocess.run([sys.executable, "-c", code, folder, name], check=False).returncode < 0
