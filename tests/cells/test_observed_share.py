"""The setting `observed`: hidden training labels, the same for all methods, and complete test labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from multilab.cells.cell import Cell, split_refs
from multilab.cells.errors import ExperimentError
from multilab.cells.inventory import Inventory, base_method, protocol_text
from multilab.cells.method import load_method
from multilab.cells.rows import indices, observed_labels, rows_of
from multilab.cells.running import gather, inner_rows, run_cell
from multilab.cells.settings import ObservedShare, Tuning
from multilab.cells.store import Store
from multilab.datasets import load
from multilab.experiments.plan import all_cells
from multilab.experiments.study import study_from
from multilab.experiments.study_results import described

HALF = ObservedShare(0.5)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


def toy_cell(method: str = "mlknn", observed: ObservedShare | None = HALF, seed: int = 0, split: int = 0) -> Cell:
    ref = split_refs("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})[split]
    return Cell("train", ref, load_method(method), seed, observed=observed)


def test_half_of_the_training_labels_and_no_test_label_is_hidden(store):
    cell = toy_cell()
    inputs, complete = gather(cell, store), rows_of(cell, store)
    hidden = inputs.Y_train == -1
    assert inputs.Y_train.dtype == np.int8
    assert abs(hidden.mean() - 0.5) < 4 * 0.5 / hidden.size**0.5
    np.testing.assert_array_equal(inputs.Y_train[~hidden], complete.Y_train[~hidden])
    np.testing.assert_array_equal(inputs.Y_test, complete.Y_test)
    np.testing.assert_array_equal(inputs.X_train, complete.X_train)


def test_hidden_labels_that_count_as_absent_are_the_same_ones(store):
    missing = gather(toy_cell(), store).Y_train
    absent = gather(toy_cell(observed=replace(HALF, hidden="absent")), store).Y_train
    np.testing.assert_array_equal(absent, np.maximum(missing, 0))
    assert absent.dtype == load("genes-toy").Y.dtype


def test_methods_see_the_same_labels_and_seeds_and_larger_shares_follow_the_rules(store):
    def observed(**changes):
        return gather(toy_cell(**changes), store).Y_train >= 0

    np.testing.assert_array_equal(observed(), observed(method="br_logistic"))
    assert (observed() != observed(seed=1)).any()
    assert (observed() <= observed(observed=ObservedShare(0.7))).all()


def test_a_row_has_the_same_hidden_labels_in_every_split(store):
    seen = np.full(load("genes-toy").Y.shape, -2)
    for split in range(3):
        cell = toy_cell(split=split)
        train, _ = indices(cell.split_ref)
        labels = gather(cell, store).Y_train
        known = seen[train] > -2
        np.testing.assert_array_equal(seen[train][known], labels[known])
        seen[train] = labels


def test_a_search_sees_no_hidden_label_of_the_training_set(store):
    cell = toy_cell()
    n_hidden = int((gather(cell, store).Y_train == -1).sum())
    folds = inner_rows(cell, Tuning(folds=2), store)  # each row is once in a training set and once in a test set
    assert n_hidden > 0
    assert sum(int((fold.Y_test == -1).sum()) for fold in folds) == n_hidden
    assert sum(int((fold.Y_train == -1).sum()) for fold in folds) == n_hidden


def test_base_learners_see_the_same_labels_as_the_method_that_reads_their_scores(store):
    stack = toy_cell("mlwse_l1")
    method = stack.method.with_params({"base_scores": ["br_logistic", "mlknn"]})
    stack = replace(stack, method=method)
    assert {read.observed for read in stack.reads} == {HALF}
    assert run_cell(stack, store) is None
    complete = replace(stack, observed=None)
    assert run_cell(complete, store) is None
    assert (store.arrays(stack.key)["scores"] != store.arrays(complete.key)["scores"]).any()


def test_decisions_are_tuned_on_the_observed_labels(store):
    cell = toy_cell("decide_macro_f1")
    assert run_cell(cell, store) is None
    complete = replace(cell, observed=None)
    assert run_cell(complete, store) is None
    assert (store.arrays(cell.key)["decisions"] != store.arrays(complete.key)["decisions"]).any()


@pytest.mark.parametrize("method", ["lp", "erf_pct", "rf_ml"])
def test_a_method_that_needs_complete_labels_refuses_hidden_ones(method, store):
    reason = run_cell(toy_cell(method), store)
    assert reason is not None
    assert "cannot learn from partially observed labels" in reason


def test_a_stored_cell_is_listed_and_rebuilt_with_its_share(store):
    cell = toy_cell(observed=replace(HALF, hidden="absent"))
    assert run_cell(cell, store) is None
    inventory = Inventory(store)
    stored = inventory.read(cell.key)
    assert inventory.settings(stored) == ["observed={share:0.5,hidden:absent}"]
    assert inventory.rebuilt(stored).key == cell.key
    assert cell.label.endswith("observed {share:0.5,hidden:absent}")


def test_a_stored_cell_on_several_base_scores_is_rebuilt_with_all_of_them(store):
    stack = toy_cell("mlwse_l1", observed=None)
    stack = replace(stack, method=stack.method.with_params({"base_scores": ["br_logistic", "mlknn", "mlrbf"]}))
    assert run_cell(stack, store) is None
    inventory = Inventory(store)
    rebuilt = inventory.rebuilt(inventory.read(stack.key))
    assert rebuilt.method.base_scores == ("br_logistic", "mlknn", "mlrbf")
    assert rebuilt.key == stack.key


@pytest.mark.parametrize(
    ("column", "method"),
    [("mlknn", "mlknn"), ("elm[n_hidden=5]", "elm"), ("mlknn-wide-tuned", "mlknn"), ("mine-wide", "mine-wide")],
)
def test_the_method_behind_a_column(column, method):
    assert base_method(column) == method


def test_cells_of_a_column_are_listed_by_the_column_and_by_its_method(store):
    cell = toy_cell(observed=None)
    assert run_cell(replace(cell, method=replace(cell.method, name="mlknn-wide")), store) is None
    for pattern, found in (("mlknn", 1), ("mlknn-wide", 1), ("mlknn-*", 1), ("mlknn-narrow", 0), ("ebr", 0)):
        assert len(list(Inventory(store).cells(method=pattern))) == found, pattern


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        (None, "?"),
        ({"kfold": 4, "seed": 7}, "4 folds (seed 7)"),
        ({"holdout": 0.35, "seed": 7}, "hold-out 0.35 (seed 7)"),
        ({"split": "published"}, "split published"),
    ],
)
def test_a_protocol_without_a_name_is_told_by_its_settings(protocol, text):
    assert protocol_text(protocol) == text


def test_no_rows_have_no_labels():
    assert observed_labels(np.array([], dtype=np.int64), 3, 0.5, 0, "digest").shape == (0, 3)


def test_all_labels_observed_is_the_cell_without_the_setting():
    for setting in (1, 1.0, {"share": 1.0}, None):
        assert ObservedShare.from_setting(setting) is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (0, r"observed: the share of observed labels must be in \(0, 1\], got 0"),
        (1.5, "must be in"),
        (True, "got True"),
        ("half", "got 'half'"),
        ({"hidden": "absent"}, "got None"),
        ({"share": 0.5, "hidden": "asbent"}, "did you mean 'absent'"),
        ({"shares": 0.5}, "did you mean 'share'"),
    ],
)
def test_a_wrong_share_is_one_clear_line(setting, message):
    with pytest.raises(ExperimentError, match=message) as caught:
        ObservedShare.from_setting(setting)
    assert "\n" not in str(caught.value)


def test_a_study_and_its_variants_have_shares():
    settings = {
        "datasets": ["genes-toy"],
        "methods": ["mlknn"],
        "protocol": {"kfold": 3},
        "observed": 0.9,
        "variants": {
            "low": {"observed": 0.1},
            "zero": {"observed": {"share": 0.1, "hidden": "absent"}},
            "all": {"observed": 1},
            "same": {},
        },
    }
    study = study_from("toy", settings)
    shares = {cell.method.name: cell.observed for cell in all_cells(study)}
    assert shares == {
        "mlknn": ObservedShare(0.9),
        "mlknn-low": ObservedShare(0.1),
        "mlknn-zero": ObservedShare(0.1, "absent"),
        "mlknn-all": None,
        "mlknn-same": ObservedShare(0.9),
    }
    description = described(study)
    assert description["observed"] == {"share": 0.9, "hidden": "missing"}
    assert "observed" not in description["variants"]["all"]
    with pytest.raises(ExperimentError, match=r"variants\.low: observed: the share"):
        study_from("toy", settings | {"variants": {"low": {"observed": 2}}})
