"""The recall of approximate neighbours: recorded with a cell that uses them, and only with such a cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from multilab.experiments import running
from multilab.experiments.cells import Cell, split_refs
from multilab.experiments.evaluation import measurements
from multilab.experiments.measuring import neighbour_recall
from multilab.experiments.method import load_method
from multilab.experiments.running import run_cell
from multilab.experiments.store import Store
from multilab.methods import MLkNN


@pytest.fixture
def cells():
    refs = split_refs("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})[:2]
    return [Cell("train", ref, load_method("mlknn")) for ref in refs]


def approximate_model(recall: float) -> MLkNN:
    model = MLkNN(neighbours="hnsw")
    model.neighbour_recall_ = recall
    return model


def test_recall_is_that_of_approximate_neighbours_in_any_step():
    assert neighbour_recall(approximate_model(0.97)) == 0.97
    steps = make_pipeline(FunctionTransformer(), approximate_model(0.97))
    assert neighbour_recall(steps) == 0.97
    exact = MLkNN()
    exact.neighbour_recall_ = 1.0
    assert neighbour_recall(exact) is None
    assert neighbour_recall(FunctionTransformer()) is None


def test_a_study_of_exact_neighbours_measures_no_recall(cells, tmp_path):
    store = Store(tmp_path)
    assert run_cell(cells[0], store) is None
    assert "neighbour_recall" not in store.record(cells[0].key)
    assert "neighbour_recall" not in measurements(cells[:1], store)


def test_the_recall_of_a_cell_is_measured(cells, tmp_path, monkeypatch):
    store, (exact, other) = Store(tmp_path), cells
    assert run_cell(exact, store) is None
    monkeypatch.setattr(running, "neighbour_recall", lambda estimator: 0.93)  # Faiss is in the extra `ann`
    assert run_cell(other, store) is None
    table = measurements(cells, store)
    assert table["neighbour_recall"].isna().tolist() == [True, False]
    assert table["neighbour_recall"][1] == 0.93


def test_faiss_neighbours_are_measured(cells, tmp_path):
    pytest.importorskip("faiss", reason="faiss-cpu is in the extra `ann`")
    store = Store(tmp_path)
    cell = replace(cells[0], method=cells[0].method.with_params({"neighbours": "hnsw"}))
    assert run_cell(cell, store) is None
    assert 0 < measurements([cell], store)["neighbour_recall"][0] <= 1
