"""`multilab compare`: a portfolio on one dataset, inside a budget."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from multilab.cli import main
from multilab.datasets import load
from multilab.decision import TunedThresholdClassifier
from multilab.experiments.cells import split_refs
from multilab.metrics import macro_f1
from multilab.model_selection import splits

RUN = ["compare", "dataset=scenario1", "methods=mlknn,relm", "cv=2", "budget=10m"]
PROTOCOL = {"kfold": 2, "stratify": 1, "seed": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Run the command once and return its folder."""
    root = tmp_path_factory.mktemp("compare")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MULTILAB_CELLS", str(root / "cells"))
        assert main(RUN) == 0
    return root


@pytest.fixture
def work(folder, monkeypatch):
    """Work in the folder of the run."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MULTILAB_CELLS", str(folder / "cells"))
    return folder / "reports" / "compare" / "scenario1"


def test_the_files_hold_the_values_of_the_same_folds(work):
    board = json.loads((work / "leaderboard.json").read_text())
    folds = splits("scenario1", PROTOCOL)
    assert [split["digest"] for split in board["splits"]] == [fold.digest for fold in folds]
    assert board["methods"][0]["name"] == "label_frequencies"
    assert {method["status"] for method in board["methods"]} == {"done"}
    scores = pd.read_csv(work / "scores.csv")
    assert set(scores["split_digest"]) == {fold.digest for fold in folds}
    values = {method["name"]: method["values"]["macro_f1"] for method in board["methods"]}
    rows = scores[(scores["method"] == "mlknn") & (scores["metric"] == "macro_f1")]
    assert rows["value"].tolist() == [values["mlknn"]["0"], values["mlknn"]["1"]]
    for row, fold in zip(rows.itertuples(), folds, strict=True):
        with np.load(work.parents[2] / "cells" / row.key / "arrays.npz") as arrays:
            assert macro_f1(load("scenario1").Y[fold.test], arrays["decisions"]) == row.value


def test_a_second_run_fits_nothing_and_has_the_same_numbers(work, capsys):
    before = {path.name: path.stat().st_mtime_ns for path in (work.parents[2] / "cells").glob("[0-9a-f]*")}
    scores = (work / "scores.csv").read_bytes()
    assert main([*RUN, "out=again"]) == 0
    after = {path.name: path.stat().st_mtime_ns for path in (work.parents[2] / "cells").glob("[0-9a-f]*")}
    assert after == before
    assert (work.parents[2] / "again" / "scores.csv").read_bytes() == scores
    assert "stored" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a dataset"),
        (["dataset=scenrio1"], "did you mean 'scenario1'?"),
        (["dataset=scenario1", "methods=mlkn"], "did you mean 'mlknn'?"),
        (["dataset=scenario1", "methods="], "methods= is empty"),
        (["dataset=scenario1", "metric=f1"], "no metric is called 'f1'"),
        (["dataset=scenario1", "cv=1"], "cv must be a number of folds, at least 2, not '1'"),
        (["dataset=scenario1", "budget=soon"], "budget must be a time such as 90s, 10m or 2h, not 'soon'"),
        (["dataset=scenario1", "budget=0s"], "budget must be a time"),
        (["dataset=scenario1", "method=mlknn"], "is not an argument here; expected dataset=..., methods=..."),
    ],
)
def test_wrong_uses_get_one_line(arguments, message, capsys):
    assert main(["compare", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_page_is_self_contained_and_says_what_was_measured(work):
    page = (work / "index.html").read_text()
    board = json.loads((work / "leaderboard.json").read_text())
    assert "<script" not in page
    assert not [link for link in re.findall(r'(?:src|href)="([^"]+)"', page) if link.startswith(("http", "//"))]
    assert set(re.findall(r'href="([^"#]+)"', page)) <= {path.name for path in work.iterdir()}
    for section in ("leaderboard", "tests", "seconds", "decisions", "labels", "curve", "methods", "reproduce"):
        assert f'<section id="{section}">' in page
    assert f'<p class="finding">{board["recommendation"]["text"][0]}</p>' in html.unescape(page)
    means = {method["name"]: method["means"]["macro_f1"] for method in board["methods"]}
    assert all(f"{mean:.4f}" in page for mean in means.values())


def test_thresholds_are_tuned_on_the_training_rows_alone(work):
    rows = pd.read_csv(work / "thresholds.csv")
    assert set(rows["method"]) == {"label_frequencies", "mlknn", "relm"}
    fold = splits("scenario1", PROTOCOL)[0]
    Y = load("scenario1").Y
    constant = np.tile(Y[fold.train].mean(axis=0), (len(fold.test), 1))
    tuned = TunedThresholdClassifier("precomputed").fit(np.zeros((len(fold.train), Y.shape[1])), Y[fold.train])
    expected = macro_f1(Y[fold.test], np.ones_like(constant))  # of uninformative scores all rows are assigned
    assert macro_f1(Y[fold.test], tuned.predict(np.zeros_like(constant))) == expected
    own = rows.query("method == 'label_frequencies' and decision == 'tuned' and metric == 'macro_f1' and split == 0")
    assert abs(own["value"].item() - expected) < 0.2  # frequencies differ a little between the inner folds


def test_the_labels_are_those_of_all_held_out_rows(work):
    data, labels = load("scenario1"), pd.read_csv(work / "labels.csv")
    assert labels["label"].tolist() == list(data.label_names)
    assert labels["count"].tolist() == data.Y.sum(axis=0).tolist()
    assert set(labels["observed"]) == {len(data.Y)}


def test_what_does_not_fit_is_named_with_its_estimate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["compare", "dataset=scenario1", "methods=mldf", "cv=2", "budget=0.5s", "out=late"]) == 1
    printed = capsys.readouterr()
    assert re.search(r"mldf +[\d.]+ (s|min), \d+ MB \(beyond the budget\)", printed.out)
    board = json.loads((tmp_path / "late" / "leaderboard.json").read_text())
    outcome = {method["name"]: method for method in board["methods"]}["mldf"]
    assert outcome["status"] == "left out"
    assert "needs about" in outcome["note"]
    assert board["recommendation"]["method"] is None


def test_cells_of_a_comparison_are_those_of_the_protocol(work):
    refs = split_refs("scenario1", PROTOCOL)
    keys = {row.key for row in pd.read_csv(work / "scores.csv").itertuples()}
    assert len(keys) == 3 * len(refs)


@pytest.mark.slow
def test_a_killed_run_continues_and_has_the_same_numbers(work, tmp_path):
    command = [sys.executable, "-m", "multilab.cli", *RUN]
    env = {**os.environ, "MULTILAB_CELLS": str(tmp_path / "cells"), "MULTILAB_JOBS": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list((tmp_path / "cells").glob("*/DONE")):
        time.sleep(0.05)
    process.kill()
    process.wait()
    first = {path.parent.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").glob("*/DONE")}
    assert first
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    after = {path.parent.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").glob("*/DONE")}
    assert {key: after[key] for key in first} == first
    again = pd.read_csv(tmp_path / "reports" / "compare" / "scenario1" / "scores.csv")
    before = pd.read_csv(work / "scores.csv")
    timed = ["fit_seconds", "predict_seconds"]
    pd.testing.assert_frame_equal(again[~again["metric"].isin(timed)], before[~before["metric"].isin(timed)])
