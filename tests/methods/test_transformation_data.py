"""Base learners on real data: the shared kernel and the shared folds change nothing but the time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from multilab.datasets import load
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.classifier_chain import ClassifierChain

pytestmark = pytest.mark.data


def test_emotions_equals_calibrated_machines_one_by_one(benchmark_data: Path) -> None:
    data = load("emotions")
    train, test = data.splits["official"]
    scaler = MinMaxScaler().fit(data.X[train])
    X, X_test, Y = scaler.transform(data.X[train]), scaler.transform(data.X[test]), data.Y[train]
    # with "scale" scikit-learn would take another width in each inner fold
    fixed = CalibratedClassifierCV(SVC(gamma=1 / (X.shape[1] * X.var())), ensemble=False, cv=5)
    expected = np.column_stack([fixed.fit(X, y).predict_proba(X_test)[:, 1] for y in Y.T])
    relevance = BinaryRelevance(SVC(), calibration="sigmoid").fit(X, Y)
    np.testing.assert_allclose(relevance.predict_proba(X_test), expected, rtol=0, atol=1e-6)
    margins = BinaryRelevance(SVC()).fit(X, Y).decision_function(X_test)
    plain = np.column_stack([SVC().fit(X, y).decision_function(X_test) for y in Y.T])
    np.testing.assert_allclose(margins, plain, rtol=0, atol=1e-8)


def test_a_chain_starts_as_binary_relevance(benchmark_data: Path) -> None:
    data = load("scene")
    train, test = data.splits["official"]
    train, test = train[::3], test[::3]
    relevance = BinaryRelevance(SVC(), calibration="sigmoid").fit(data.X[train], data.Y[train])
    chain = ClassifierChain(SVC(), calibration="sigmoid").fit(data.X[train], data.Y[train])
    first, second = relevance.predict_proba(data.X[test]), chain.predict_proba(data.X[test])
    np.testing.assert_array_equal(first[:, 0], second[:, 0])
    assert (first[:, 1:] != second[:, 1:]).any(axis=0).all()
