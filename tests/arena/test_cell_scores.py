"""Score files: the metrics of a study from float32 scores, exactly; policies; what rounding alone would change."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from multilab.arena import ArenaError, read_cell_scores, rounded_in_order
from multilab.arena.score_files.policies import check_policy, decisions_by
from multilab.cli import main
from multilab.datasets import load
from multilab.experiments.cells import all_cells
from multilab.experiments.evaluation import evaluate
from multilab.experiments.fitting import indices
from multilab.experiments.store import Store
from multilab.experiments.study import load_study
from multilab.metrics import METRICS, score_all

pytest.importorskip("hydra")

STUDY = """
title: Tiny
description: A test.
datasets: [genes-toy, digit-segments]
methods: [mlknn, br_logistic, mlkelm]
protocol: {kfold: 2, stratify: 1, seed: 0}
conventions: uniform
metrics: [ranking_loss]
headline: ranking_loss
"""
GENES = "reports/tiny/cell-scores/genes-toy.npz"


def saturated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return probabilities of which many are so near 0 and 1 that float32 makes them equal."""
    return expit(12 * rng.normal(size=shape))


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study in a folder of its own whose cells hold invented scores."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    (tmp_path / "conf" / "study").mkdir(parents=True)
    (tmp_path / "conf" / "study" / "tiny.yaml").write_text(STUDY)
    study, rng, store = load_study("tiny"), np.random.default_rng(0), Store()
    for cell in all_cells(study):
        shape = len(indices(cell.split_ref)[1]), load(cell.split_ref.dataset).Y.shape[1]
        scores = saturated(rng, shape) if cell.method.name != "mlkelm" else rng.normal(size=shape)
        arrays = {"scores": scores, "decisions": (rng.random(shape) < 0.3).astype(np.uint8)}
        if cell.method.name == "br_logistic":  # a method that predicts for single metrics
            arrays |= {"scores.macro_f1": saturated(rng, shape), "decisions.macro_f1": 1 - arrays["decisions"]}
        store.write(cell.key, arrays, {"alone": False}, "")
    return study


def test_rounding_keeps_order_ties_and_the_sides_of_one_half():
    rng = np.random.default_rng(1)
    samples = [rng.random(50), rng.normal(size=(40, 3)), 1 - rng.random(3000) * 1e-9, rng.random(3000) * 1e-300]
    samples += [0.5 - rng.random(500) * 1e-12, np.array([0, 0.5, 1, -1e300, 1e300, 3e301, 1e-320, -1e-320, -0.0])]
    samples += [saturated(rng, (200, 20)), np.repeat(rng.random(5), 4)]
    for values in samples:
        rounded = rounded_in_order(values)
        assert rounded.dtype == np.float32
        assert rounded.shape == values.shape
        order, again = (np.unique(array, return_inverse=True)[1] for array in (values + 0.0, rounded))
        assert np.array_equal(order, again)
        for anchor in (0, 0.5, 1):
            assert np.array_equal(values >= anchor, rounded >= np.float32(anchor))
            assert np.array_equal(values == anchor, rounded == np.float32(anchor))
    with pytest.raises(ArenaError, match="not a finite number"):
        rounded_in_order([0.1, np.nan])


def test_all_metrics_are_those_of_the_study_to_the_last_bit(study, capsys):
    assert main(["arena", "scores", "study=tiny"]) == 0
    assert "6 of 6 cells" in capsys.readouterr().out
    files = [read_cell_scores(f"reports/tiny/cell-scores/{name}.npz") for name in study.datasets]
    computed = pd.concat([file.metrics(conventions="uniform") for file in files], ignore_index=True)
    cells = all_cells(study)
    assert set(computed["metric"]) == set(METRICS)
    expected = evaluate(study, cells, Store())
    both = expected.merge(computed, on=["dataset", "split", "method", "metric"], suffixes=("", "_file"))
    assert len(both) == len(computed) == len(cells) * len(METRICS)
    pd.testing.assert_series_equal(both["value"], both["value_file"], check_names=False, check_exact=True)
    assert sorted(key for file in files for key in file.cells["key"]) == sorted(cell.key for cell in cells)


def test_what_rounding_alone_would_change(study):
    """Ties by rounding move ranking metrics by far more than a step of float32: why the files keep the order."""
    main(["arena", "scores", "study=tiny"])
    moved = dict.fromkeys(METRICS, 0.0)
    for cell in all_cells(study):
        if cell.method.name != "mlknn":
            continue
        file = read_cell_scores(f"reports/tiny/cell-scores/{cell.split_ref.dataset}.npz")
        Y, _ = file.labels(cell.split_ref.split)
        scores = Store().arrays(cell.key)["scores"]
        exact, rounded = (score_all(Y, array, Y) for array in (scores, scores.astype(np.float32).astype(float)))
        moved = {metric: max(change, abs(exact[metric] - rounded[metric])) for metric, change in moved.items()}
        kept = file.scores("mlknn", cell.split_ref.split)
        assert np.abs(kept - scores).max() <= file.cells["shift"].max() < 1e-4
    assert max(moved.values()) > 1e-4
    ranking = {"ranking_loss", "average_precision", "one_error", "macro_auc", "micro_auc"}
    ranking |= {
        "coverage",
        "coverage_1based",
        "coverage_normalised",
        "macro_average_precision",
        "micro_average_precision",
    }
    assert {metric for metric, change in moved.items() if change > 1e-9} <= ranking


def test_equal_content_is_equal_bytes_and_cells_of_other_machines_are_kept(study, tmp_path):
    path = tmp_path / GENES
    main(["arena", "scores", "study=tiny", "dataset=genes-toy"])
    first = path.read_bytes()
    assert not path.with_name("digit-segments.npz").exists()
    removed = [cell.key for cell in all_cells(study) if cell.split_ref.dataset == "genes-toy"][:3]
    for key in removed:
        shutil.rmtree(tmp_path / "cells" / key)
    main(["arena", "scores", "study=tiny", "dataset=genes-toy"])
    assert path.read_bytes() == first
    path.unlink()
    main(["arena", "scores", "study=tiny", "dataset=genes-toy"])
    assert len(read_cell_scores(path).cells) == 3
    assert not set(read_cell_scores(path).cells["key"]) & set(removed)


def test_a_file_that_is_damaged_or_of_other_data_is_refused(study, tmp_path):
    main(["arena", "scores", "study=tiny", "dataset=genes-toy"])
    path = tmp_path / GENES
    with np.load(path) as stored:
        arrays = dict(stored)
    index = json.loads(arrays["index"].tobytes())
    np.savez(path, **arrays | {"index": np.frombuffer(json.dumps({**index, "data": "0" * 64}).encode(), np.uint8)})
    with pytest.raises(ArenaError, match="other data or other splits"):
        read_cell_scores(path).metrics(["macro_f1"])
    np.savez(path, **arrays | {"index": np.frombuffer(json.dumps({**index, "format": 9}).encode(), np.uint8)})
    with pytest.raises(ArenaError, match="format 9, this version reads 1"):
        read_cell_scores(path)
    path.write_bytes(b"PK nothing")
    with pytest.raises(ArenaError, match="no file of scores"):
        read_cell_scores(path)
    with pytest.raises(ArenaError, match="dvc pull"):
        read_cell_scores(path.with_name("yeast.npz"))


def test_policies(study, capsys):
    main(["arena", "scores", "study=tiny", "dataset=genes-toy"])
    file = read_cell_scores(GENES)
    train, test = indices(all_cells(study)[0].split_ref)
    labels = load("genes-toy").Y
    Y, cardinality = labels[test], labels[train].sum(axis=1).mean()
    assert abs(cardinality - Y.sum(axis=1).mean()) > 1e-3
    assert np.array_equal(file.labels(0)[0], Y)
    assert file.labels(0)[1] == pytest.approx(cardinality, rel=1e-12)
    scores = file.scores("mlknn", 0).astype(float)
    by = {policy: decisions_by(policy, scores, cardinality) for policy in ("0.5", "cardinality", "top_k", "top_3")}
    assert np.array_equal(by["0.5"], scores >= 0.5)
    assert abs(by["cardinality"].sum() - cardinality * len(Y)) <= 0.5
    assert set(by["top_k"].sum(axis=1)) == {round(cardinality)}
    assert set(by["top_3"].sum(axis=1)) == {3}
    for policy, decisions in by.items():
        values = file.metrics(["hamming_loss"], policy).query("method == 'mlknn' and split == 0")["value"]
        assert values.item() == score_all(Y, scores, decisions)["hamming_loss"], policy
    assert file.metrics(["hamming_loss"], "0.5").query("method == 'mlkelm'")["value"].isna().all()  # margins
    counts = file.metrics(["log_loss"]).groupby("method")["value"].count().to_dict()
    assert counts == {"br_logistic": 2, "mlkelm": 0, "mlknn": 2}
    capsys.readouterr()
    assert main(["arena", "metrics", "study=tiny", "metric=macro_f1,coverage", "policy=top_k", "out=x.csv"]) == 0
    assert "decisions: top_k" in capsys.readouterr().out
    assert len(pd.read_csv("x.csv")) == 12


def test_decisions_of_a_policy_by_example():
    scores = np.array([[0.9, 0.4, 0.1], [0.2, 0.3, 0.5]])
    decisions = {
        ("0.4", 1.0): [[1, 1, 0], [0, 0, 1]],  # reached
        ("cardinality", 1.0): [[1, 0, 0], [0, 0, 1]],
        ("cardinality", 1.5): [[1, 1, 0], [0, 0, 1]],
        ("cardinality", 0.0): [[0, 0, 0], [0, 0, 0]],
        ("top_k", 1.6): [[1, 1, 0], [0, 1, 1]],
        ("top_k", 1.4): [[1, 0, 0], [0, 0, 1]],
        ("top_k", 0.2): [[1, 0, 0], [0, 0, 1]],  # at least one
        ("top_2", 0.2): [[1, 1, 0], [0, 1, 1]],
    }
    for (policy, cardinality), expected in decisions.items():
        assert decisions_by(policy, scores, cardinality).tolist() == expected, (policy, cardinality)


@pytest.mark.parametrize("policy", ["nan", "inf", "-inf", "-1", "-0.1", "1.01", "1e3", "1_0", "0_1", "0.1_5", "٠.٥"])
def test_a_threshold_is_a_plain_number_from_0_to_1(policy):
    with pytest.raises(ArenaError, match=r"a threshold must be >= 0 and <= 1") as refused:
        check_policy(policy)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("policy", ["0", "1", "0.4", ".5", "1e-3"])
def test_a_threshold_from_0_to_1_is_a_policy(policy):
    assert float(check_policy(policy)) == float(policy)


def test_metrics_are_in_the_conventions_of_the_study_and_columns_that_lack_a_split_are_last(study, capsys):
    cells, store = all_cells(study), Store()
    for cell in cells:
        if cell.method.name == "mlknn":  # equal scores of all labels: under `default` its one-error is small
            arrays = store.arrays(cell.key)
            shutil.rmtree(store.path(cell.key))
            store.write(cell.key, {**arrays, "scores": np.full_like(arrays["scores"], 0.5)}, {"alone": False}, "")
    last = next(cell for cell in cells if cell.method.name == "br_logistic" and cell.split_ref.dataset == "genes-toy")
    shutil.rmtree(store.path(last.key))
    main(["arena", "scores", "study=tiny"])
    capsys.readouterr()
    assert main(["arena", "metrics", "study=tiny", "metric=one_error", "out=x.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "means over 2 data sets, decisions: stored, conventions: uniform"
    assert lines[5].split() == ["br_logistic", "-"]
    values = pd.read_csv("x.csv").set_index(["method", "dataset", "split"])["value"]
    assert values.groupby("method").count().to_dict() == {"br_logistic": 3, "mlkelm": 4, "mlknn": 4}
    Y, _ = read_cell_scores(GENES).labels(0)
    equal = np.full(Y.shape, 0.5)
    by = {name: score_all(Y, equal, Y, conventions=name)["one_error"] for name in ("default", "uniform")}
    assert values["mlknn", "genes-toy", 0] == by["uniform"] > by["default"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["metric=macro_f1", "policy=per_label"], "thresholds are chosen on out-of-fold scores"),
        (["metric=macro_f1", "policy=best"], "no policy 'best'; there are stored"),
        (["metric=macro_f1", "policy=nan"], "policy=nan: a threshold must be >= 0 and <= 1"),
        (["metric=macro_f2"], "did you mean 'macro_f1'"),
        ([], "which metric"),
        (["metric=macro_f1"], "dvc pull"),
    ],
)
def test_wrong_arguments_get_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["arena", "metrics", "study=tiny", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_dvc_carries_the_files_to_another_clone(study, tmp_path, monkeypatch):
    def run(folder: Path, *argv: str) -> str:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(tmp_path, "git", "init", "-q")
    dvc = [sys.executable, "-m", "dvc"]
    run(tmp_path, *dvc, "init", "-q")
    run(tmp_path, *dvc, "remote", "add", "-d", "shared", str(tmp_path / "remote"))
    assert main(["arena", "scores", "study=tiny", "dataset=genes-toy"]) == 0
    assert run(tmp_path, "git", "status", "--porcelain", "--untracked-files=all", "reports").splitlines() == [
        "?? reports/tiny/cell-scores/.gitignore",
        "?? reports/tiny/cell-scores/genes-toy.npz.dvc",
    ]
    run(tmp_path, *dvc, "push", "-q")
    run(tmp_path, "git", "add", ".dvc", "reports")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    run(tmp_path, "git", *identity, "commit", "-qm", "scores")
    run(tmp_path, "git", "clone", "-q", str(tmp_path), str(tmp_path / "clone"))
    assert not (tmp_path / "clone" / GENES).exists()
    run(tmp_path / "clone", *dvc, "pull", "-q", f"{GENES}.dvc")
    assert (tmp_path / "clone" / GENES).read_bytes() == (tmp_path / GENES).read_bytes()
    monkeypatch.chdir(tmp_path / "clone")
    assert len(read_cell_scores(GENES).metrics(["macro_f1"])) == 6
