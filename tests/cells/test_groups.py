"""Rows with groups: no group is on both sides in any fold that a command makes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.cells import running
from multilab.cells.cell import Cell, scores_cell, split_refs
from multilab.cells.loaded_data import forget_loaded
from multilab.cells.method import load_method
from multilab.cells.rows import _encoded, encoded_rows, indices, inner_cells
from multilab.cells.running import ensure, estimator_of_cell, gather, inner_rows
from multilab.cells.settings import ObservedShare, Tuning
from multilab.cells.store import Store
from multilab.cli.main import main
from multilab.core import data_dir
from multilab.datasets import add_dataset, load
from multilab.decision import TunedThresholdClassifier
from multilab.models import load_model
from multilab.models.final_fit import decided

KFOLD = {"kfold": 3, "stratify": 1, "seed": 0}


def visits(n=120, patients=20, seed=0):
    """Rows whose only signal is the patient: a model is no better than chance on patients that it has not seen."""
    rng = np.random.default_rng(seed)
    patient = rng.permutation(np.arange(n) % patients)
    labels = rng.random((patients, 2)) < 0.5
    words = np.array([f"name{k}" for k in range(patients)])
    remark = [f"{words[k]} came for a visit today" for k in patient]
    frame = pd.DataFrame({"patient": [f"p{k}" for k in patient], "remark": remark, "x": rng.normal(size=n)})
    return frame.assign(y=labels[patient, 0].astype(int), z=labels[patient, 1].astype(int))


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    _encoded.cache_clear()
    forget_loaded()
    visits().to_csv("visits.csv", index=False)
    add_dataset("visits.csv", labels_last=2, groups="patient", columns={"remark": "text"})
    return Store()


def cell_of(method="br_logistic", **options):
    return Cell("train", split_refs("visits", KFOLD)[0], load_method(method), **options)


def test_inner_folds_of_a_search(store):
    cell, of = cell_of(), load("visits").groups
    train, _ = indices(cell.split_ref)
    inner = inner_cells(cell, Tuning(n_trials=2, folds=3))
    rows = [indices(one.split_ref) for one in inner]
    assert sorted(np.concatenate([test for _, test in rows]).tolist()) == train.tolist()
    assert all(not set(of[fit]) & set(of[test]) for fit, test in rows)
    folds = inner_rows(cell, Tuning(n_trials=2, folds=3), store)
    encoder, _ = encoded_rows(cell.split_ref, store)
    assert [fold.X_train.shape[1] for fold in folds] == [encoder.width] * 3  # of the outer training rows
    assert inner[2].label.endswith("inner fold 2")
    every = inner_cells(Cell("train", cell.split_ref, cell.method), Tuning(n_trials=2, folds=2))
    assert len({one.key for one in every}) == 2


def test_a_search_sees_no_hidden_label(store):
    cell = cell_of("mlknn", observed=ObservedShare(0.5))
    _, rows = indices(cell.split_ref)
    assert (gather(cell, store).Y_test == load("visits").Y[rows]).all()  # those of a test are complete
    hidden = [fold.Y_test == -1 for fold in inner_rows(cell, Tuning(n_trials=2, folds=3), store)]
    assert 0.3 < np.mean(np.concatenate(hidden)) < 0.7  # 160 draws: .5 within five standard errors


def test_out_of_fold_scores_and_the_decisions_of_a_cell(store, monkeypatch):
    of, seen = load("visits").groups, []
    whole = running.score_out_of_fold

    def watched(model, X, Y, folds):
        seen.extend(folds)
        return whole(model, X, Y, folds)

    monkeypatch.setattr(running, "score_out_of_fold", watched)
    cell = cell_of("mlwse_l1")
    gather(cell, store)  # the scores of its base methods
    train, _ = indices(cell.split_ref)
    assert len(seen) == 5 * len(cell.method.base_scores)
    assert all(not set(of[train[fit]]) & set(of[train[test]]) for fit, test in seen)

    method = decided(load_method("br_logistic"), "macro_f1")
    one = Cell("train", cell.split_ref, method)
    rows = gather(one, store)
    model = estimator_of_cell(one).fit(rows.X_train, rows.Y_train, groups=rows.groups).classifier
    assert isinstance(model, TunedThresholdClassifier)
    assert all(not set(of[train[fit]]) & set(of[train[test]]) for fit, test in model.folds_)


def test_a_search_over_tuned_decisions(store):
    method = decided(load_method("br_logistic"), "macro_f1")
    cell = Cell("train", split_refs("visits", KFOLD)[0], method, tune=Tuning(n_trials=2, folds=2))
    ensure(cell, store)
    assert "estimator__estimator__C" in store.record(cell.key)["tuned"]


def test_keys_of_data_without_groups_are_as_before(store):
    cell = cell_of()
    assert cell.identity["groups"]
    assert "groups" not in Cell("train", split_refs("genes-toy", KFOLD)[0], cell.method).identity


@pytest.mark.slow
def test_every_command_keeps_patients_together(store, capsys):
    """A patient's name tells the labels, so that a score above chance would come from the other side."""
    assert main(["train", "dataset=visits", "method=br_logistic", "protocol=kfold3", "publish=false"]) == 0
    assert main(["tune", "dataset=visits", "method=br_logistic", "tune.n_trials=2", "publish=false"]) == 0
    options = ["--method", "br_logistic", "--cv", "3"]
    assert main(["compare", "--dataset", "visits", "--budget", "60s", *options]) == 0
    arguments = ["--dataset", "visits", *options, "--decision", "macro_f1", "-o", "model"]
    assert main(["fit", *arguments]) == 0
    of, files = load("visits").groups, list((data_dir() / "splits").glob("visits-*/splits-*.npz"))
    assert len(files) > 3  # folds, inner folds of the search, shares of the learning curve
    for file in files:
        with np.load(file) as rows:
            numbers = {name.partition("/")[0] for name in rows}
            assert all(not set(of[rows[f"{k}/train"]]) & set(of[rows[f"{k}/test"]]) for k in numbers)
    new = visits(4, 4).drop(columns=["y", "z"])
    assert load_model("model").predict_frame(new).shape[0] == 4
    assert main(["explain", "model", "visits.csv"]) == 0
    capsys.readouterr()
    visits().drop(columns="patient").to_csv("rows.csv", index=False)
    add_dataset("rows.csv", labels_last=2, columns={"remark": "text"})
    by_row = Cell("train", split_refs("rows", KFOLD)[0], load_method("br_logistic"))
    right = {}
    for cell in (cell_of(), by_row):
        ensure(cell, store)
        _, test = indices(cell.split_ref)
        decisions = store.arrays(cell.key)["decisions"]
        right[cell.split_ref.dataset] = (decisions == load(cell.split_ref.dataset).Y[test]).mean()
    assert right["rows"] > right["visits"] + 0.2


def test_the_inner_cells_are_kept_under_other_keys_than_those_of_rows(store):
    scores = scores_cell(cell_of(), {"folds": 3, "order": 1})
    assert scores.key != cell_of().key
    ensure(scores, store)
    assert store.arrays(scores.key)["scores"].shape == (len(indices(scores.split_ref)[0]), 2)
