"""Every estimator with every tool of scikit-learn: the table of the guide, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from helpers.estimators import params, quick_instances
from helpers.multilabel_checks import make_data
from helpers.scikit_learn_tools import CLASSIFIER_TOOLS, TRANSFORMER_TOOLS, is_multilabel, not_applicable, tools
from multilab.methods.base import MultiLabelClassifier, MultiLabelTransformer
from multilab.methods.neighbours.mlknn import MLkNN

INSTANCES = {name: estimator for name, estimator in quick_instances().items() if is_multilabel(estimator)}


@pytest.mark.parametrize(
    ("name", "title"),
    [
        pytest.param(*name.values, title, marks=name.marks)
        for name in params(MultiLabelClassifier, MultiLabelTransformer)
        for title in tools(INSTANCES[name.values[0]])
        if not not_applicable(INSTANCES[name.values[0]], title)
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tool(name: str, title: str) -> None:
    estimator = clone(INSTANCES[name])
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    tools(estimator)[title](estimator)


def test_what_does_not_apply_is_the_exception() -> None:
    cells = [not_applicable(estimator, title) for estimator in INSTANCES.values() for title in tools(estimator)]
    assert sum(cell is None for cell in cells) > 0.85 * len(cells)
    assert len(CLASSIFIER_TOOLS) == 13
    assert len(TRANSFORMER_TOOLS) == 7


@pytest.mark.parametrize("classifier", [MLkNN(k=3), KNeighborsClassifier(3)], ids=repr)
@pytest.mark.parametrize(
    "refusing",
    [
        lambda model: VotingClassifier([("a", model), ("b", model)]),
        lambda model: BaggingClassifier(model, n_estimators=2),
        lambda model: AdaBoostClassifier(model, n_estimators=2),
        lambda model: CalibratedClassifierCV(model, cv=2),
        lambda model: TunedThresholdClassifierCV(model, cv=2),
    ],
)
def test_scikit_learn_refuses_label_matrices_there_whatever_the_classifier(refusing: Any, classifier: Any) -> None:
    X, Y, _ = make_data(n=40)
    with pytest.raises((ValueError, NotImplementedError), match=r"1d array|[Oo]nly (supports )?binary"):
        refusing(classifier).fit(X, Y)


def test_one_calibrated_copy_per_label() -> None:
    X, Y, X_test = make_data(n=40)
    model = MultiOutputClassifier(CalibratedClassifierCV(MLkNN(k=3), cv=2)).fit(X, Y)
    assert [p.shape for p in model.predict_proba(X_test)] == [(len(X_test), 2)] * Y.shape[1]


def test_stacking_drops_the_first_of_exactly_two_labels() -> None:
    X, Y, X_test = make_data(n=40, q=2)
    for first in (MLkNN(k=3), MLPClassifier([3], max_iter=20, random_state=0)):  # scikit-learn's own, too
        model = StackingClassifier([("a", first)], final_estimator=MLkNN(k=3), cv=2).fit(X, Y)
        assert model.transform(X_test).shape == (len(X_test), 1)
    model = StackingClassifier([("a", MLkNN(k=3))], final_estimator=MLkNN(k=3), cv=2, stack_method="predict").fit(X, Y)
    assert model.transform(X_test).shape == (len(X_test), 2)


def test_frames_of_sparse_columns_are_sparse_matrices() -> None:
    X, Y, X_test = make_data(n=40)
    X, X_test = np.where(X > 0.5, X, 0), np.where(X_test > 0.5, X_test, 0)
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(X), columns=names)
    labels = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(Y), columns=["a", "b", "c", "d"])
    model = MLkNN(k=3).fit(frame, labels)
    assert model.feature_names_in_.tolist() == names
    test = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(X_test), columns=names)
    expected = MLkNN(k=3).fit(sp.csr_array(X), Y).predict_proba(sp.csr_array(X_test))
    np.testing.assert_array_equal(model.predict_frame(test, scores=True), expected)
    assert model.predict_frame(test).columns.tolist() == ["a", "b", "c", "d"]


def test_a_series_names_its_label() -> None:
    X, Y, X_test = make_data(n=40)
    model = MLkNN(k=3).fit(X, pd.Series(np.where(Y[:, 0] == 1, "wet", "dry"), name="weather"))
    assert model.label_names_.tolist() == ["weather"]
    frame = model.predict_frame(X_test)
    assert frame.columns.tolist() == ["weather"]
    assert set(frame["weather"]) == {"wet", "dry"}
