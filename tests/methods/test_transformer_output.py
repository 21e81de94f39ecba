"""Selectors and reducers name their output features and give data frames on request, as scikit-learn's do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.expected_failures import CHECK_PARAMS
from multilab.methods import all_estimators

TRANSFORMERS = [cls for cls in all_estimators() if hasattr(cls, "transform")]


def build(cls):
    seeded = {"random_state": 0} if "random_state" in cls().get_params() else {}
    return cls(**CHECK_PARAMS.get(cls.__name__, {}), **seeded)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((60, 6)), columns=[f"sensor {k}" for k in "abcdef"], index=range(100, 160))
    return X, (rng.random((60, 3)) + X.iloc[:, :3].to_numpy() > 1).astype(int)


def test_all_kinds_of_transformers_are_there():
    names = {cls.__name__ for cls in TRANSFORMERS}
    assert {"MDDM", "KernelPCA", "OLSKernelMDDM", "NystroemLSKernelMDDM", "LWMF", "MLNBSelector", "RFML"} <= names


@pytest.mark.parametrize("cls", TRANSFORMERS)
def test_output_features_have_names(cls, data):
    X, Y = data
    plain = build(cls)
    Z = plain.fit(X, Y).transform(X)
    names = plain.get_feature_names_out()
    assert len(names) == Z.shape[1]
    if isinstance(plain, SelectorMixin):
        assert names.tolist() == X.columns[plain.get_support()].tolist()
    else:
        assert names.tolist() == [f"{cls.__name__.lower()}{k}" for k in range(Z.shape[1])]
    with pytest.raises(ValueError, match="input_features"):
        plain.get_feature_names_out(["another"] * X.shape[1])


@pytest.mark.parametrize("cls", TRANSFORMERS)
def test_set_output_gives_a_data_frame_of_the_same_numbers(cls, data):
    X, Y = data
    plain = build(cls)
    framed = clone(plain).set_output(transform="pandas")
    for made, expected in (
        (framed.fit_transform(X, Y), plain.fit_transform(X, Y)),
        (framed.transform(X[:7]), plain.transform(X[:7])),
    ):
        assert isinstance(made, pd.DataFrame)
        assert made.columns.tolist() == plain.get_feature_names_out().tolist()
        assert made.index.tolist() == X.index[: len(made)].tolist()
        np.testing.assert_array_equal(made.to_numpy(), np.asarray(expected))
    pipeline = make_pipeline(StandardScaler(), build(cls)).set_output(transform="pandas").fit(X, Y)
    assert pipeline.transform(X).columns.tolist() == pipeline.get_feature_names_out().tolist()
