"""What is measured of a cell: the recall of approximate neighbours where it uses them, seconds, and its metrics."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from multilab.cells import fit_costs, fitting
from multilab.cells.cell import Cell, split_refs
from multilab.cells.cell_metrics import evaluate_cell
from multilab.cells.fit_costs import Meter, neighbour_recall
from multilab.cells.method import load_method
from multilab.cells.rows import indices
from multilab.cells.running import run_cell
from multilab.cells.store import Store
from multilab.datasets import load
from multilab.experiments.evaluate import measurements
from multilab.methods import MLkNN
from multilab.metrics import macro_auc, ranking_loss


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
    monkeypatch.setattr(fitting, "neighbour_recall", lambda estimator: 0.93)  # Faiss is in the extra `ann`
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


def test_the_seconds_of_a_block_are_those_between_its_ends(monkeypatch):
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(fit_costs.time, "perf_counter", lambda: next(clock))
    with Meter() as meter:
        pass
    assert meter.seconds == 2.5


def test_where_no_peak_can_be_reset_memory_is_sampled(monkeypatch):
    def refused(*arguments):
        raise PermissionError

    resident = [100 * 2**20, 300 * 2**20, 200 * 2**20]

    def memory_info():
        return SimpleNamespace(rss=resident.pop(0) if len(resident) > 1 else resident[0])

    monkeypatch.setattr(fit_costs, "open", refused, raising=False)
    monkeypatch.setattr("psutil.Process", lambda: SimpleNamespace(memory_info=memory_info))
    with Meter() as meter:
        while len(resident) > 1:
            time.sleep(0.001)
    assert meter.method == "sampler"
    assert meter.peak_mb == 200


def test_a_metric_with_a_prediction_of_its_own_is_that_of_this_prediction(cells):
    _, test = indices(cells[0].split_ref)
    Y = load("genes-toy").Y[test]
    scores, own = np.random.default_rng(0).random((2, *Y.shape))
    arrays = {"scores": scores, "scores.ranking_loss": own}
    arrays |= {name.replace("scores", "decisions"): (table > 0.5).astype(np.uint8) for name, table in arrays.items()}
    stored = type("Stored", (), {"arrays": lambda self, key: arrays})()
    metrics = evaluate_cell(cells[0], stored)
    assert metrics["ranking_loss"] == ranking_loss(Y, own) != ranking_loss(Y, scores)
    assert metrics["macro_auc"] == macro_auc(Y, scores)
