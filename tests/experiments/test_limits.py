"""Processor time and memory of cells: one that passes a limit is a result, `unfinished`, and is not tried again."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from test_add_columns import run, study  # noqa: F401  (a fixture)

from multilab.cells import running
from multilab.cells.cell import Cell, split_refs, with_reads
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.method import load_method
from multilab.cells.process import run_cell_within
from multilab.cells.running import give_up
from multilab.cells.settings import CellLimits, Tuning
from multilab.cells.store import Store
from multilab.cli import main
from multilab.core import report_dir
from multilab.experiments import publish as publication
from multilab.experiments.plan import all_cells
from multilab.experiments.study import load_study, study_from
from multilab.statistics.result_files import KEY_DIGITS, read_keys

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a patched function reaches a forked worker only")
ONE_SECOND = CellLimits(1, 4)
MEMORY = 2**30


def spin(cell, store):
    while True:
        pass


def refuse(cell, store):
    raise AssertionError("this cell should not have been run")


def fill(cell, store):
    try:
        return str(np.ones(MEMORY).sum())
    except MemoryError as error:
        return f"MemoryError: {error}"


@pytest.fixture
def cells():
    refs = split_refs("scenario1", {"kfold": 2, "stratify": 1, "seed": 0})
    return [Cell("train", ref, load_method("mlknn")) for ref in refs]


def test_a_cell_within_its_limits_is_the_same_cell(cells, tmp_path):
    free, limited = Store(tmp_path / "free"), Store(tmp_path / "limited")
    assert run_cells(cells, free, 1) == {}
    assert run_cells(cells, limited, 1, limits=CellLimits(60, 4)) == {}
    for cell in cells:
        assert np.array_equal(free.arrays(cell.key)["scores"], limited.arrays(cell.key)["scores"])


def test_processor_time_is_limited_and_later_splits_are_not_tried(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run_cell", spin)
    store = Store(tmp_path)
    assert run_cell_within(cells[0], store, ONE_SECOND) == "more than 1 s of processor time"
    assert store.failure(cells[0].key)["seconds"] >= 0.9
    monkeypatch.setattr(running, "run_cell", refuse)
    assert run_cell_within(cells[0], store, ONE_SECOND) == "more than 1 s of processor time"
    assert run_cell_within(cells[1], store, ONE_SECOND) == "not run: on split 0 more than 1 s of processor time"
    assert run_cell_within(cells[1], store, ONE_SECOND).startswith("not run")


def test_a_wider_limit_tries_again(cells, tmp_path, monkeypatch):
    own = running.run_cell
    monkeypatch.setattr(running, "run_cell", spin)
    store = Store(tmp_path)
    assert run_cell_within(cells[0], store, ONE_SECOND)
    monkeypatch.setattr(running, "run_cell", own)
    assert run_cell_within(cells[0], store, CellLimits(60, 4)) is None
    assert run_cell_within(cells[1], store, ONE_SECOND) is None


def test_memory_is_limited_and_only_more_of_it_tries_again(cells, tmp_path, monkeypatch):
    own = running.run_cell
    monkeypatch.setattr(running, "run_cell", fill)
    store = Store(tmp_path)
    assert run_cell_within(cells[0], store, CellLimits(60, 1)) == "more than 1 GiB of memory"
    monkeypatch.setattr(running, "run_cell", refuse)
    for limits in (CellLimits(60, 1), CellLimits(30, 1), CellLimits(60, 0.5)):
        assert run_cell_within(cells[0], store, limits) == "more than 1 GiB of memory"
    monkeypatch.setattr(running, "run_cell", own)
    assert run_cell_within(cells[0], store, CellLimits(60, 4)) is None


@pytest.mark.slow
def test_the_process_has_the_time_of_all_fits_of_the_cell(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run_cell", spin)
    scores, store = replace(cells[0], kind="scores"), Store(tmp_path)  # five fits
    began = time.monotonic()
    assert run_cell_within(scores, store, CellLimits(0.4, 4)) == "more than 2 s of processor time"
    assert 1.9 <= store.failure(scores.key)["seconds"] <= time.monotonic() - began


@pytest.mark.parametrize(
    "text",
    [
        "XGBoostError: [12:00:00] io.h:362: bad_malloc: Failed to allocate 139276816 bytes. Stack trace: [bt] (0) x.so",
        "LightGBMError: std::bad_alloc",
        "CatBoostError: bad allocation",
        "MemoryError: Unable to allocate 8.00 GiB for an array with shape (1073741824,) and data type float64",
        "base scores of mlknn on scenario1, split 0, inner fold 1 failed: MemoryError: Unable to allocate 8.00 GiB",
    ],
)
def test_an_allocation_that_fails_in_a_library_or_in_an_inner_fold_is_the_limit_too(cells, tmp_path, monkeypatch, text):
    monkeypatch.setattr(running, "run_cell", lambda cell, store: text)
    store = Store(tmp_path)
    assert run_cell_within(cells[0], store, CellLimits(60, 1)) == "more than 1 GiB of memory"
    assert run_cell_within(cells[1], store, CellLimits(60, 1)) == "not run: on split 0 more than 1 GiB of memory"


def test_a_cell_that_hangs_is_killed_after_a_multiple_of_its_time_and_recorded(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run_cell", lambda cell, store: time.sleep(3600))
    monkeypatch.setattr("multilab.cells.process._WALL", 0.5)
    scores, store = replace(cells[0], kind="scores"), Store(tmp_path)  # five fits
    began = time.monotonic()
    reason = run_cell_within(scores, store, CellLimits(0.4, 4))
    assert re.fullmatch(r"no result after \d+ s", reason)
    record = store.failure(scores.key)
    assert 1 <= record["seconds"] <= time.monotonic() - began
    assert (record["reason"], record["limits"]) == (reason, {"seconds": 0.4, "gigabytes": 4})
    monkeypatch.setattr(running, "run_cell", refuse)
    assert run_cell_within(scores, store, CellLimits(0.4, 4)) == reason
    later = replace(cells[1], kind="scores")
    assert run_cell_within(later, store, CellLimits(0.4, 4)) == f"not run: on split 0 {reason}"
    assert store.failure(later.key)["seconds"] == 0


def test_an_error_is_no_limit_and_is_tried_again(cells, tmp_path):
    broken = replace(cells[0], method=cells[0].method.with_params({"k": -1}))
    store = Store(tmp_path)
    assert "k" in run_cell_within(broken, store, ONE_SECOND)
    assert "limits" not in store.failure(broken.key)


@pytest.fixture
def stacks():
    refs = split_refs("scenario1", {"kfold": 2, "stratify": 1, "seed": 0})
    method = load_method("mlwse_l1").with_params({"base_scores": ["mlknn", "relm"]})
    return [Cell("train", ref, method) for ref in refs]


@pytest.fixture
def fits(tmp_path, monkeypatch):
    """Return a function that reads the labels of the cells that were computed; ML-kNN never ends."""
    path, own = tmp_path / "fits", running.run_cell

    def logged(cell, store):
        if not store.has(cell.key):
            with path.open("a") as stream:
                stream.write(f"{cell.label}\n")
        return (spin if cell.method.name == "mlknn" and cell.kind == "train" else own)(cell, store)

    monkeypatch.setattr(running, "run_cell", logged)
    return lambda: path.read_text().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("members_first", [True, False])
def test_a_stack_whose_member_passed_its_limit_names_it(stacks, tmp_path, fits, members_first):
    cells = with_reads(stacks) if members_first else stacks
    store = Store(tmp_path / "cells")
    failed = run_cells(cells, store, 1, limits=ONE_SECOND)
    labels = [cell.label for cell in stacks]
    assert [failed[label] for label in labels] == [
        "mlknn on scenario1, split 0 failed: more than 1 s of processor time",
        "mlknn on scenario1, split 1 failed: not run: on split 0 more than 1 s of processor time",
    ]
    assert fits().count("mlknn on scenario1, split 0") == 1
    assert not set(labels) & set(fits())
    for cell in stacks:
        record = store.failure(cell.key)
        assert record["reason"] == failed[cell.label]
        assert "limits" not in record, "it used nothing"
        assert "seconds" not in record


def test_members_of_a_stack_are_not_fitted_if_one_is_known_to_pass_its_limit(stacks, tmp_path, fits):
    store = Store(tmp_path / "cells")
    member = stacks[0].reads[-1]
    give_up(member, store, "no memory", limits={"seconds": 1, "gigabytes": 4})
    assert run_cell_within(stacks[0], store, ONE_SECOND) == f"{member.label} failed: no memory"
    assert not (tmp_path / "fits").exists()


def test_a_search_and_out_of_fold_scores_have_the_time_of_all_their_fits(cells):
    assert CellLimits(10, 4).seconds_of(cells[0]) == 10
    assert CellLimits(10, 4).seconds_of(replace(cells[0], tune=Tuning(n_trials=4, folds=3))) == 130
    assert CellLimits(10, 4).seconds_of(replace(cells[0], kind="scores")) == 50


@pytest.mark.parametrize("block", [{"seconds": 60}, {"seconds": 0, "gigabytes": 4}, {"seconds": 1, "gigabytes": "4"}])
def test_limits_are_positive_numbers(block):
    with pytest.raises(ExperimentError, match=r"x\.yaml: limits"):
        study_from("x", {"datasets": ["flags"], "limits": block})


def add_with_a_slow_method(study, tmp_path, monkeypatch):  # noqa: F811
    """Compute the study `small`, in which relm passes the limit; return what runs a cell, and the keys of relm's."""
    study("{}", method="mlknn, relm")
    path = tmp_path / "conf" / "study" / "small.yaml"
    path.write_text(path.read_text().replace("paper: imldf", "limits: {seconds: 1, gigabytes: 4}"))
    own = running.run_cell
    slow = {cell.key for cell in all_cells(load_study("small")) if cell.method.name == "relm"}
    monkeypatch.setattr(running, "run_cell", lambda c, store: (spin if c.key in slow else own)(c, store))
    run("store add")
    return own, slow


@pytest.mark.slow
def test_unfinished_cells_are_rows_of_their_own_table(study, tmp_path, monkeypatch, capsys):  # noqa: F811
    own, slow = add_with_a_slow_method(study, tmp_path, monkeypatch)
    tables = report_dir("small")
    missing = pd.read_csv(tables / "unfinished.csv")
    assert list(missing["method"]) == ["relm"] * 3
    assert list(missing["reason"].str.startswith("not run")) == [False, True, True]
    keys = read_keys(tables).merge(missing, on=["dataset", "split", "method"])["key"]
    assert set(keys) == {key[:KEY_DIGITS] for key in slow}
    assert set(pd.read_csv(tables / "scores.csv.gz")["method"]) == {"mlknn"}
    records = publication.records(load_study("small"), publication.study_scores(load_study("small")))
    assert [(record.method, len(record.cells)) for record in records] == [("mlknn", 3)]
    before = {name: (tables / name).read_bytes() for name in ("scores.csv.gz", "keys.csv", "unfinished.csv")}
    monkeypatch.setattr(running, "run_cell", refuse)
    run("store add")  # nothing is tried again
    assert {name: (tables / name).read_bytes() for name in before} == before
    run("study train", "study evaluate")
    assert {name: (tables / name).read_bytes() for name in before} == before
    monkeypatch.setattr(running, "run_cell", own)
    path = tmp_path / "conf" / "study" / "small.yaml"
    path.write_text(path.read_text().replace("seconds: 1", "seconds: 60"))
    capsys.readouterr()
    assert main(["store", "add", "--study", "small", "--retry-unfinished"]) == 0
    assert "3 of 6 cells are not in" in capsys.readouterr().out
    assert pd.read_csv(tables / "unfinished.csv").empty
    assert set(pd.read_csv(tables / "scores.csv.gz")["method"]) == {"mlknn", "relm"}


@pytest.mark.slow
def test_the_gate_recomputes_cells_within_the_limits_of_their_study(study, tmp_path, monkeypatch, capsys):  # noqa: F811
    own, slow = add_with_a_slow_method(study, tmp_path, monkeypatch)
    monkeypatch.setattr(running, "run_cell", lambda c, store: (refuse if c.key in slow else own)(c, store))
    capsys.readouterr()
    assert main(["gate", "--study", "small", "--sample", "9"]) == 0
    assert "gate passed: 3 cells of small recomputed" in capsys.readouterr().out, "unfinished cells are left out"
    monkeypatch.setattr(running, "run_cell", spin)  # a committed cell that takes too long today is a difference
    assert main(["gate", "--study", "small", "--sample", "9"]) == 1
    printed = capsys.readouterr().out
    assert "GATE: mlknn on scenario1, split 0 failed: more than 1 s of processor time" in printed
    assert "GATE: mlknn on scenario1, split 1 failed: not run: on split 0 more than 1 s of" in printed


def test_members_of_a_stack_have_the_settings_of_the_study_where_it_says_so():
    mapping = {
        "datasets": ["scenario1"],
        "methods": ["mlknn", "mlwse_l1"],
        "protocol": {"kfold": 2, "stratify": 1, "seed": 0},
        "settings": [
            {"methods": ["mlwse_l1"], "set": {"base_scores": ["mlknn", "relm"]}},
            {"methods": ["mlknn"], "set": {"k": 3}},
        ],
    }
    for own in (False, True):
        columns = {c.method.name: c for c in all_cells(study_from("mine", mapping | {"settings_for_members": own}))}
        neighbours = next(read for read in columns["mlwse_l1"].reads if read.kind == "train")
        assert neighbours.method.params["k"] == (3 if own else load_method("mlknn").params["k"])
        assert (neighbours.key == columns["mlknn"].key) == own


def test_a_study_like_another_has_what_it_leaves_out_from_there():
    costs, arena = load_study("arena-costs"), load_study("arena")
    assert (costs.methods, costs.settings, costs.limits) == (arena.methods, arena.settings, arena.limits)
    assert (costs.measure, arena.measure) == ("alone", "shared")
    assert len(costs.datasets) == 5


def test_a_study_may_be_like_one_that_is_like_another():
    stacks, costs = load_study("arena-stacks"), load_study("arena-stack-costs")
    assert (costs.methods, costs.limits, costs.protocol) == (stacks.methods, stacks.limits, stacks.protocol)
    assert costs.datasets == load_study("arena-costs").datasets
    for dataset in costs.datasets:
        assert costs.method("stack", dataset) == stacks.method("stack", dataset)
    assert {name for block in costs.settings for name in block.datasets or ()} == set(costs.datasets)


def test_studies_that_are_like_each_other_are_refused(tmp_path, monkeypatch):
    (tmp_path / "study").mkdir()
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / "study" / f"{name}.yaml").write_text(f"like: {other}\n")
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path))
    with pytest.raises(ExperimentError, match="a -> b -> c -> a is a circle"):
        load_study("a")
