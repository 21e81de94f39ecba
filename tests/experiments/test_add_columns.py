"""`multilab store add`: new columns join the committed results of a study, and nothing else is fitted."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from multilab.cells.rows import indices
from multilab.cells.store import Store
from multilab.cli import main
from multilab.datasets import load
from multilab.experiments.plan import all_cells
from multilab.experiments.study import load_study
from multilab.statistics.result_files import read_keys

STUDY = """
title: Small
datasets: [scenario1]
methods: [{method}]
protocol: {protocol}
metrics: [hamming_loss, ranking_loss]
headline: hamming_loss
paper: imldf
variants: {variants}
"""
ONE = "{five: {settings: [set: {k: 5}]}}"
RENAMED = "{few: {settings: [set: {k: 5}]}, seven: {settings: [set: {k: 7}]}}"


@pytest.fixture
def study(tmp_path, monkeypatch, checkout):
    """Return a function that writes conf/study/small.yaml and returns the study."""
    shutil.copytree(checkout / "conf", tmp_path / "conf")
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.chdir(tmp_path)

    def write(variants, protocol="kfold3", method="mlknn"):
        text = STUDY.format(protocol=protocol, variants=variants, method=method)
        (tmp_path / "conf" / "study" / "small.yaml").write_text(text)
        return load_study("small")

    return write


def run(*stages):
    for stage in stages:
        assert main([*stage.split(), "--study", "small"]) == 0


def stored():
    return {path.name for path in Store().root.iterdir() if Store().has(path.name)}


def test_only_new_columns_are_fitted_and_the_tables_are_those_of_a_full_run(study, tmp_path, capsys):
    study(ONE)
    run("study train", "study evaluate")
    tables = tmp_path / "reports" / "small"
    before = pd.read_csv(tables / "scores.csv.gz")
    shutil.rmtree(Store().root)
    described = study(RENAMED)
    run("store add")
    assert "3 of 9 cells are not in" in capsys.readouterr().out
    assert len(stored()) == 3
    added = {name: (tables / name).read_bytes() for name in ("scores.csv.gz", "keys.csv")}
    scores = pd.read_csv(tables / "scores.csv.gz")
    assert list(dict.fromkeys(scores["method"])) == list(described.all_methods)
    old = before[before["method"] == "mlknn-five"]["value"].to_numpy()
    assert np.array_equal(scores[scores["method"] == "mlknn-few"]["value"].to_numpy(), old, equal_nan=True)
    run("study train", "study evaluate")
    assert {name: (tables / name).read_bytes() for name in added} == added
    run("store add")
    assert {name: (tables / name).read_bytes() for name in added} == added


def test_quantities_that_no_published_cell_is_compared_with_are_left_out(study, tmp_path):
    described = study("{}", "{holdout: {train_size: 0.7}, repeats: 1}", "rakel_d")
    run("study train", "study evaluate")
    tables = tmp_path / "reports" / "small"
    complete = {name: (tables / name).read_bytes() for name in ("scores.csv.gz", "sampling.csv")}
    for name, value in (("scores.csv.gz", "value"), ("sampling.csv", "error")):
        rows = pd.read_csv(tables / name)
        stale = rows[rows["metric"] == "one_error.lamda"].assign(metric="one_error.matlab", **{value: 0.5})
        assert len(stale) == len(described.all_methods)
        pd.concat([rows, stale]).to_csv(tables / name, index=False)
    run("store add")
    assert {name: (tables / name).read_bytes() for name in complete} == complete


def test_columns_of_one_key_keep_their_own_quantities(study, tmp_path):
    """The fair column comes first and is compared with nothing; the one as printed is compared by conventions."""
    study("{as_printed: {kind: as_printed, settings: [set: {vigilance: 0.9}]}}", "kfold3", "mlaram")
    run("study train", "study evaluate")
    file = tmp_path / "reports" / "small" / "scores.csv.gz"
    complete = file.read_bytes()
    scores, keys = pd.read_csv(file), read_keys(file.parent)
    assert keys["key"].nunique() == 3
    assert set(scores.loc[scores["metric"].str.contains(".", regex=False), "method"]) == {"mlaram-as_printed"}
    run("store add")
    assert file.read_bytes() == complete
    scores[~scores["metric"].isin(["one_error.lamda"])].to_csv(file, index=False)
    assert main(["store", "add", "--study", "small"]) == 2


def test_what_a_search_chose_stays_as_it_is(study, tmp_path):
    search = "{tuned: {methods: [elm], tune: {n_trials: 1, folds: 2, metric: hamming_loss}}}"
    study(search)
    run("study train", "study evaluate")
    file = tmp_path / "reports" / "small" / "tuned.csv"
    lines = file.read_text().splitlines()
    lines[1] = lines[1].replace(
        lines[1].split(",")[4], "null", 1
    )  # as a search over an argument that may be None writes
    file.write_text("\n".join(lines) + "\n")
    study(search.replace("{tuned", "{five: {settings: [set: {k: 5}]}, tuned"))
    run("store add")
    assert file.read_text().splitlines() == lines


def test_a_single_test_part_has_the_sampling_error_of_its_rows(study, tmp_path):
    described = study("{}", "{holdout: {train_size: 0.7}, repeats: 1}", "rakel_d")
    run("study train", "study evaluate")
    errors = pd.read_csv(tmp_path / "reports" / "small" / "sampling.csv")
    assert set(errors["metric"]) >= {"hamming_loss.lamda", "one_error.lamda", "average_precision.lamda"}
    (cell,) = all_cells(described)
    _, test = indices(cell.split_ref)
    wrong = (load("scenario1").Y[test] != Store().arrays(cell.key)["decisions"]).mean(axis=1)
    expected = wrong.std() / np.sqrt(len(wrong))
    (error,) = errors.loc[errors["metric"] == "hamming_loss.lamda", "error"]
    assert abs(error / expected - 1) < 0.25  # 200 draws: the relative error of a standard deviation is .05, 5 sigma


def test_the_study_must_be_named(capsys):
    assert main(["store", "add"]) != 0
    assert "Missing option '--study'" in capsys.readouterr().err


def test_what_was_measured_is_rewritten_by_command_only(study, tmp_path):
    study("{}")
    run("study train", "study evaluate", "study stats")
    tables = tmp_path / "reports" / "small"
    known = {"machine": "another one", "commit": "0123456789ab"}
    (tables / "environment.json").write_text(json.dumps(known))
    measured = (tables / "measured.csv").read_bytes()
    shutil.rmtree(Store().root)
    run("study train", "study costs")  # from the packs, which do not say it
    assert (tables / "measured.csv").read_bytes() == measured
    shutil.rmtree(Store().root)
    shutil.rmtree(tmp_path / "results")
    run("study train", "study evaluate", "study stats")
    assert json.loads((tables / "environment.json").read_text()) == known
    assert (tables / "measured.csv").read_bytes() == measured
    run("study costs")
    assert json.loads((tables / "environment.json").read_text())["machine"] != "another one"
    assert (tables / "measured.csv").read_bytes() != measured
