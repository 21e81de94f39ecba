"""Committed results get new keys after a pure change of code, and after nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from multilab.cli import main
from multilab.core import changed_files
from multilab.experiments import add_columns, evaluate, rekeying
from multilab.experiments import cells as cells_module
from multilab.experiments import rekeying as rekeying_module
from multilab.experiments.errors import ExperimentError
from multilab.experiments.plan import all_cells
from multilab.experiments.running import ensure
from multilab.experiments.store import Store
from multilab.experiments.study import Override, Study
from multilab.reports.study import described
from multilab.statistics.result_files import read_scores, read_table, write_results, write_table

STUDY = Study(
    "toy",
    ("scenario1", "scenario3"),
    ("mlknn", "mlwse_l1"),
    {"kfold": 2, "stratify": 1, "seed": 0},
    metrics=("hamming_loss",),
    headline="hamming_loss",
)


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """The results of a small study: its report folder and its store."""
    root = tmp_path_factory.mktemp("committed")
    store, folder, cells = Store(root / "cells"), root / "reports" / "toy", all_cells(STUDY)
    for cell in cells:
        ensure(cell, store)
    measured, tuned = evaluate.measurements(cells, store), evaluate.tuned(cells, store)
    folder.mkdir(parents=True)
    write_results(folder, evaluate.evaluate(STUDY, cells, store), measured, tuned)
    (folder / "study.json").write_text(json.dumps(described(STUDY)))
    digests = {cell.split_ref.dataset: cell.split_ref.dataset_digest for cell in cells}
    (folder / "datasets.json").write_text(json.dumps([{"name": n, "digest": d} for n, d in digests.items()]))
    return root


@pytest.fixture
def rekey(committed, tmp_path, monkeypatch):
    """A function that moves all keys (or not) and rekeys a copy of the study; returns exit code and lines."""
    shutil.copytree(committed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_JOBS", "1")

    def run(study=STUDY, schema=99, **arguments):
        monkeypatch.setattr(cells_module, "SCHEMA", schema)
        monkeypatch.setattr(rekeying, "load_study", lambda name: study)
        return rekeying.rekey(Store(tmp_path / "cells"), "toy", **arguments)

    return run


def keys():
    return read_table("reports/toy/keys.csv")["key"].tolist()


def test_after_a_pure_change_of_code_keys_and_stored_cells_move(rekey, tmp_path, capsys):
    before, scores, store = keys(), read_scores("reports/toy"), Store(tmp_path / "cells")
    assert rekey() == 0
    printed = capsys.readouterr().out
    assert "8 of 8 results have another key now" in printed
    assert "recomputed 4 cells of 2 methods" in printed
    assert "all equal bit for bit" in printed
    assert not set(keys()) & set(before)
    assert keys() == [cell.key for cell in all_cells(STUDY)]
    assert not changed_files(Path("reports/toy"))
    assert read_scores("reports/toy").drop(columns="key").equals(scores.drop(columns="key"))
    for cell in all_cells(STUDY):
        assert store.has(cell.key)
        assert all(store.has(read.key) for read in cell.reads)
        assert store.record(cell.key)["parts"] == json.loads(json.dumps(cell.identity))
    assert rekey() == 0
    assert "0 of 8 results" in capsys.readouterr().out


@pytest.mark.parametrize(("sample", "recomputed"), [(1, 2), (3, 6), (10, 8)])
def test_the_number_of_recomputed_cells_per_method_can_be_chosen(rekey, tmp_path, capsys, sample, recomputed):
    shutil.rmtree(tmp_path / "cells")
    assert rekey(sample=sample) == 0
    assert f"recomputed {recomputed} cells of 2 methods" in capsys.readouterr().out


@pytest.mark.parametrize("sample", ["0", "-1", "two"])
def test_a_sample_that_is_no_number_of_cells_is_refused(sample, capsys):
    assert main(["store", "rekey", "--study", "quick", "--sample", sample]) == 2
    assert "Invalid value for '--sample'" in capsys.readouterr().err


def test_methods_whose_numbers_changed_keep_their_keys_and_are_fitted_again(rekey, tmp_path, monkeypatch, capsys):
    before, right = read_table("reports/toy/keys.csv"), read_scores("reports/toy")["value"].tolist()
    table = read_table("reports/toy/scores.csv.gz")
    table["value"] += 0.01 * (table["method"] == "mlknn")
    write_table("reports/toy/scores.csv.gz", table)
    assert rekey() == 1
    assert keys() == before["key"].tolist()
    assert rekey(recompute="mlknn") == 0
    moved = [a != b for a, b in zip(keys(), before["key"], strict=True)]
    assert moved == (before["method"] != "mlknn").tolist()
    assert "store add --study toy fits them again" in capsys.readouterr().out
    monkeypatch.setattr(add_columns, "load_study", lambda name: STUDY)
    assert add_columns.add(Store(tmp_path / "cells"), "toy") == 0
    assert "toy: 4 of 8 cells are not in" in capsys.readouterr().out
    assert keys() == [cell.key for cell in all_cells(STUDY)]
    np.testing.assert_array_equal(read_scores("reports/toy")["value"], right)
    with pytest.raises(ExperimentError, match="no method is called 'mlkn'; did you mean 'mlknn'"):
        rekey(schema=100, recompute="mlkn")


def test_without_a_store_the_committed_files_are_enough(rekey, tmp_path):
    shutil.rmtree(tmp_path / "cells")
    assert rekey() == 0
    assert keys() == [cell.key for cell in all_cells(STUDY)]


@pytest.mark.parametrize(
    ("change", "reason", "passed"), [(1e-9, "", False), (1e-9, "BLAS", True), (1e-4, "BLAS", False)]
)
def test_recomputed_numbers_must_be_the_committed_ones(rekey, capsys, change, reason, passed):
    before = keys()
    table = read_table("reports/toy/scores.csv.gz")
    table["value"] += change
    write_table("reports/toy/scores.csv.gz", table)
    assert rekey(reason=reason) == int(not passed)
    assert (keys() == before) != passed
    printed = capsys.readouterr().out
    assert "the reference says" in printed
    assert ("REFUSED" in printed) != passed


def test_stored_scores_that_are_no_longer_computed_are_refused(rekey, monkeypatch, capsys):
    before, arrays = keys(), Store.arrays
    halved = {before[0]}  # the same order and decisions could give the same metrics; other cells read the scores

    def read(store, key):
        return {name: value / (2 if key in halved else 1) for name, value in arrays(store, key).items()}

    monkeypatch.setattr(Store, "arrays", read)
    monkeypatch.setattr(rekeying_module, "sample_cells", lambda matches, *_: [match.cell for match in matches][:1])
    assert rekey() == 1
    assert "mlknn on scenario1, split 0: scores differ from the stored ones by up to" in capsys.readouterr().out
    assert keys() == before


def test_one_of_the_cells_that_would_be_copied_is_recomputed(rekey, tmp_path):
    store = Store(tmp_path / "cells")
    matches = rekeying_module.match_cells(STUDY, Path("reports/toy"))
    cheap = rekeying_module.sample_cells(matches, Path("reports/toy"), 0, per_method=1)
    last = [match for match in matches if match.cell not in cheap][-1:]
    only = type("Only", (), {"has": lambda self, key: key == last[0].key and store.has(key)})()
    assert last[0].cell in rekeying_module.sample_cells(matches, Path("reports/toy"), 0, only, per_method=1)


def test_other_settings_are_refused_unless_they_are_accepted(rekey, capsys):
    before = keys()
    written = replace(STUDY, settings=(Override({"s": 1}, ("mlknn",), ("scenario3",)),))  # 1.0 in the YAML
    assert rekey(written, schema=3) == 1
    printed = capsys.readouterr().out
    assert "2 of 8 results have another key now" in printed
    assert "REFUSED: mlknn on scenario3: s was 1.0, is 1" in printed
    assert keys() == before
    assert rekey(written, schema=3, accept="mlknn") == 0
    assert sum(a != b for a, b in zip(keys(), before, strict=True)) == 2


def test_accepted_settings_that_change_the_numbers_are_refused(rekey, capsys):
    other = replace(STUDY, settings=(Override({"k": 3}, ("mlknn",)),))
    assert rekey(other, accept="mlknn", reason="none") == 1
    assert "the reference says" in capsys.readouterr().out


def test_a_study_with_other_cells_is_refused(rekey):
    with pytest.raises(ExperimentError, match="4 cells are not in the study, the first: scenario1, 0, mlwse_l1"):
        rekey(replace(STUDY, methods=("mlknn",)))
    with pytest.raises(ExperimentError, match=r"4 cells are not in keys\.csv"):
        rekey(replace(STUDY, protocol={**STUDY.protocol, "kfold": 3}, methods=("mlknn", "mlwse_l1")))


def test_the_command_names_what_it_needs(capsys):
    assert main(["store", "rekey"]) == 2
    assert "Missing option '--study'" in capsys.readouterr().err
