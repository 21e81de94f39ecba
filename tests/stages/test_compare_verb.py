"""`multilab compare`: a portfolio on one dataset, inside a budget."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from multilab.cli import main
from multilab.datasets import load
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


def test_cells_of_a_comparison_are_those_of_the_protocol(work):
    refs = split_refs("scenario1", PROTOCOL)
    keys = {row.key for row in pd.read_csv(work / "scores.csv").itertuples()}
    assert len(keys) == 3 * len(refs)
