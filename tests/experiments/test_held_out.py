"""What a cell does around its estimator: scaling of sparse X, and a search that is scored on held-out rows."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import scipy.sparse as sp

from multilab.cells.cell import Cell, split_refs
from multilab.cells.method import Method
from multilab.cells.rows import indices
from multilab.cells.running import run_cell, scaled_rows
from multilab.cells.settings import Tuning
from multilab.cells.store import Store
from multilab.datasets import load

NEIGHBOURS = "sklearn.neighbors.KNeighborsClassifier"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


def topics_cell(preprocessing: str) -> Cell:
    (part,) = split_refs("topics-toy", {"split": "official"})
    return Cell("train", part, Method("neighbours", NEIGHBOURS, preprocessing=preprocessing))


def test_a_sparse_x_is_divided_by_the_maxima_of_the_training_rows(store):
    cell = topics_cell("minmax")
    inputs = scaled_rows(cell, store)
    train, test = indices(cell.split_ref)
    raw = load("topics-toy").X.toarray()
    maxima = raw[train].max(axis=0)
    assert (maxima > 1).sum() > 100  # so that a missing division shows
    assert sp.issparse(inputs.X_train)
    assert sp.issparse(inputs.X_test)
    divisor = np.where(maxima > 0, maxima, 1.0)
    np.testing.assert_allclose(inputs.X_train.toarray(), raw[train] / divisor)
    np.testing.assert_allclose(inputs.X_test.toarray(), raw[test] / divisor)


def test_a_standardised_sparse_x_keeps_its_zeros(store):
    cell = topics_cell("standard")
    inputs = scaled_rows(cell, store)
    raw = load("topics-toy").X.toarray()[indices(cell.split_ref)[0]]
    deviations = raw.std(axis=0)
    np.testing.assert_allclose(inputs.X_train.toarray(), raw / np.where(deviations > 0, deviations, 1.0))


def test_an_unscaled_sparse_x_is_left_alone(store):
    inputs = scaled_rows(topics_cell("none"), store)
    assert inputs.X_train.max() > 1


def test_a_search_is_not_won_by_learning_the_training_rows_by_heart(store):
    """One neighbour makes no error on the rows it was fitted on; on held-out rows five neighbours make fewer."""
    space = {"n_neighbors": {"type": "categorical", "choices": [1, 5]}}
    plan = Tuning(n_trials=2, metric="hamming_loss", sampler="GridSampler")
    part = split_refs("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})[0]
    method = Method("neighbours", NEIGHBOURS, {"n_neighbors": 1}, search=space)
    cell = Cell("train", part, method, tune=plan)
    assert run_cell(cell, store) is None
    with (store.path(cell.key) / "trials.csv").open(newline="") as file:
        values = {row["n_neighbors"]: float(row["hamming_loss"]) for row in csv.DictReader(file)}
    assert values["1"] > 0.1
    assert values["5"] < values["1"]
    assert store.record(cell.key)["tuned"] == {"n_neighbors": 5}
