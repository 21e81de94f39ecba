"""Estimators inside `parallel_config(backend="dask")`: spread unless told otherwise, with equal results."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression

pytest.importorskip("distributed", reason="the engine dask: pip install distributed")

import distributed

from multilab.core.parallel import workers
from multilab.methods import ECC, BinaryRelevance

THREADS: list[str] = []


class Noting(LogisticRegression):
    """Notes in which thread it is fitted."""

    def fit(self, X, y, sample_weight=None):
        THREADS.append(threading.current_thread().name)
        return super().fit(X, y, sample_weight)


@pytest.fixture(scope="module")
def client():
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None, set_as_default=False
    ) as client:
        yield client


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, (X @ rng.normal(size=(4, 3)) + rng.normal(size=(60, 3)) > 0).astype(int)


@pytest.mark.parametrize(("given", "spread"), [({}, True), ({"n_jobs": 2}, True), ({"n_jobs": 1}, False)])
def test_labels_are_spread_unless_there_is_one_job(given, spread, client, data):
    X, Y = data
    expected = BinaryRelevance(LogisticRegression()).fit(X, Y).predict_proba(X)
    here, THREADS[:] = threading.current_thread().name, []
    with parallel_config(backend="dask", client=client):
        model = BinaryRelevance(Noting(), **given).fit(X, Y)
    assert len(THREADS) == 3
    assert {name != here for name in THREADS} == {spread}
    assert np.array_equal(model.predict_proba(X), expected)


def test_an_ensemble_is_that_of_one_machine(client, data):
    X, Y = data
    ensemble = ECC(LogisticRegression(), n_estimators=3, random_state=0)
    expected = ensemble.fit(X, Y).predict_proba(X)
    with parallel_config(backend="dask", client=client):
        assert np.array_equal(ensemble.fit(X, Y).predict_proba(X), expected)
        assert (workers(1), workers(None)) == (1, 2)
