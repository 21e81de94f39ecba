"""The files behind `dvc metrics`, `dvc plots` and `dvc params` of a study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from multilab.cells.conf import names
from multilab.experiments.comparisons import headline_metrics, study_ranks
from multilab.experiments.dvc_files import METRICS_FILE, PLOT_TABLES, write_plots
from multilab.experiments.study import load_study, study_from
from multilab.statistics import rounded_means

REPORTS = Path(__file__).resolve().parents[2] / "reports"
STUDIES = [name for name in names("study") if (REPORTS / name / "scores.csv.gz").is_file() and name != "quick"]


def table(values):
    rows = [
        (dataset, split, method, "hamming_loss", value)
        for (dataset, method), splits in values.items()
        for split, value in enumerate(splits)
    ]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])


def test_means_over_splits_then_datasets():
    scores = table({("d", "a"): [0.1, 0.2, 0.3], ("e", "a"): [0.5, 0.5], ("d", "b"): [0.3] * 3, ("e", "b"): [0.0, 0.1]})
    assert rounded_means(scores, "hamming_loss", ["d", "e"], ["a", "b"]) == {"a": 0.35, "b": 0.175}


def test_a_rounding_error_does_not_change_the_digits():
    exact, lower = table({("d", "a"): [0.12345]}), table({("d", "a"): [0.12345 - 1e-13]})
    assert round(0.12345, 4) != round(0.12345 - 1e-13, 4)
    arguments = "hamming_loss", ["d"], ["a"]
    assert rounded_means(exact, *arguments) == rounded_means(lower, *arguments)


def test_an_unfinished_method_has_no_mean_and_an_undefined_dataset_no_part():
    nan = float("nan")
    scores = table({("d", "a"): [0.1], ("d", "b"): [nan], ("e", "a"): [nan], ("e", "b"): [nan]})
    assert rounded_means(scores, "hamming_loss", ["d", "e"], ["a", "b"]) == {"a": 0.1}
    assert rounded_means(scores, "hamming_loss", ["e"], ["a", "b"]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_committed_files_are_those_of_the_committed_scores(name, tmp_path, monkeypatch):
    scores, study = pd.read_csv(REPORTS / name / "scores.csv.gz"), load_study(name)
    means = headline_metrics(study, scores)
    assert json.loads((REPORTS / name / "metrics.json").read_text()) == means
    monkeypatch.chdir(tmp_path)
    ranks = study_ranks(replace(study, metrics=(study.headline,)), scores)
    write_plots(study, scores, means[study.headline], ranks)
    for file in (METRICS_FILE, *PLOT_TABLES):
        assert (tmp_path / "reports" / name / file).read_bytes() == (REPORTS / name / file).read_bytes()


def test_folds_have_the_defined_splits_of_the_headline_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores = table({("scene", "mlknn"): [0.12347, float("nan")], ("scene", "mlkelm"): [0.5, 0.25]})
    others = scores.assign(metric="macro_f1")
    study = study_from("test", {"datasets": ["scene"], "methods": ["mlknn", "mlkelm"], "headline": "hamming_loss"})
    ranks = {"mlknn": {"hamming_loss": 1.23456}, "mlkelm": {}}
    write_plots(study, pd.concat([scores, others]), {"mlkelm": 0.375}, ranks)
    folder = tmp_path / "reports" / "test"
    rows = ["dataset,split,method,value", "scene,0,mlkelm,0.5", "scene,0,mlknn,0.1235", "scene,1,mlkelm,0.25"]
    assert (folder / "folds.csv").read_text().splitlines() == rows
    assert (folder / "ranks.csv").read_text() == "method,rank\nmlknn,1.2346\n"
    assert (folder / "headline.csv").read_text() == "method,mean\nmlkelm,0.375\n"
    expected = {"metric": "hamming_loss", "methods": 1, "best": "mlkelm", "value": 0.375, "mean": 0.375}
    assert json.loads((folder / "headline.json").read_text()) == expected


@pytest.mark.parametrize(("metric", "order"), [("hamming_loss", ["b", "c", "a"]), ("macro_f1", ["a", "c", "b"])])
def test_the_best_method_comes_first(metric, order, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {"a": 0.3, "b": 0.1, "c": 0.2}
    scores = table({(dataset, method): [values[method]] for dataset in ("e", "d") for method in "abc"})
    study = study_from("test", {"datasets": ["d", "e"], "methods": list("abc"), "headline": metric})
    ranks = {method: {metric: 1.0 + order.index(method)} for method in "abc"}
    write_plots(study, scores.assign(metric=metric), values, ranks)
    folder = tmp_path / "reports" / "test"
    assert list(pd.read_csv(folder / "headline.csv")["method"]) == order
    assert list(pd.read_csv(folder / "ranks.csv")["method"]) == order
    folds = pd.read_csv(folder / "folds.csv")
    assert list(folds["dataset"]) == ["d"] * 3 + ["e"] * 3
    assert list(folds["method"]) == order * 2
    shown = json.loads((folder / "headline.json").read_text())
    assert shown == {"metric": metric, "methods": 3, "best": order[0], "value": values[order[0]], "mean": 0.2}
