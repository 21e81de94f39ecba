"""`multilab compare`: a portfolio on one dataset, inside a budget."""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from multilab.cells.cell import Cell, scores_cell, split_refs
from multilab.cells.method import InnerFolds, load_method
from multilab.cells.store import Store
from multilab.cli import main
from multilab.comparison import portfolio
from multilab.comparison.curve import curve_remark
from multilab.datasets import load
from multilab.decision import TunedThresholdClassifier
from multilab.metrics import hamming_loss, macro_f1, micro_f1, over_assigned
from multilab.model_selection import splits

RUN = ["compare", "--dataset", "scenario1", "--method", "mlknn,relm", "--cv", "2", "--budget", "10m"]
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


@pytest.mark.slow
def test_each_method_is_a_run_in_mlflow_if_wanted(work, tmp_path):
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path}/runs.db"
    assert main([*RUN, "--output", str(tmp_path / "published"), "--publish", "--tracking-uri", uri]) == 0
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("runs")
    runs = client.search_runs([experiment.experiment_id], "tags.superseded = 'false'")
    board = json.loads((work / "leaderboard.json").read_text())
    means = {m["name"]: np.mean(list(m["values"]["macro_f1"].values())) for m in board["methods"]}
    shown = {run.data.tags["method"].split()[0]: run.data.metrics["macro_f1"] for run in runs}
    assert shown == pytest.approx(means)


@pytest.mark.slow
def test_runs_that_mlflow_did_not_get_are_published_later(work, tmp_path, capsys):
    nowhere = "http://127.0.0.1:9"
    assert main([*RUN, "--output", str(tmp_path / "report"), "--publish", "--tracking-uri", nowhere]) == 0
    assert "publish later: multilab study publish --runs" in capsys.readouterr().err
    assert main(["study", "publish", "--runs", "--tracking-uri", f"sqlite:///{tmp_path}/runs.db"]) == 0
    assert "MLflow experiment runs: 3 created" in capsys.readouterr().out


@pytest.mark.slow
def test_a_second_run_fits_nothing_and_has_the_same_numbers(work, capsys):
    before = {path.name: path.stat().st_mtime_ns for path in (work.parents[2] / "cells").glob("[0-9a-f]*")}
    scores = (work / "scores.csv").read_bytes()
    assert main([*RUN, "--output", "again"]) == 0
    after = {path.name: path.stat().st_mtime_ns for path in (work.parents[2] / "cells").glob("[0-9a-f]*")}
    assert after == before
    assert (work.parents[2] / "again" / "scores.csv").read_bytes() == scores
    assert "stored" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--dataset'"),
        (["--dataset", "scenrio1"], "did you mean 'scenario1'?"),
        (["--dataset", "scenario1,scenario2"], "multilab train -m dataset=scenario1,scenario2"),
        (["--dataset", "scenario1", "--method", "mlkn"], "did you mean 'mlknn'?"),
        (["--dataset", "scenario1", "--method", ""], "--method is empty"),
        (["--dataset", "scenario1", "--metric", "f1"], "no metric is called 'f1'"),
        (["--dataset", "scenario1", "--cv", "1"], "'--cv': 1 is not in the range x>=2"),
        (
            ["--dataset", "scenario1", "--budget", "soon"],
            "must be a time such as 90s, 10m or 2h, not 'soon'",
        ),
        (["--dataset", "scenario1", "--budget", "0s"], "'--budget': must be a time"),
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
    settings = ["--method", "mldf", "--cv", "2", "--budget", "0.5s", "--output", "late"]
    assert main(["compare", "--dataset", "scenario1", *settings]) == 1
    printed = capsys.readouterr()
    assert re.search(r"mldf +[\d.]+ (s|min), \d+ MB \(beyond the budget\)", printed.out)
    board = json.loads((tmp_path / "late" / "leaderboard.json").read_text())
    outcome = {method["name"]: method for method in board["methods"]}["mldf"]
    assert outcome["status"] == "left out"
    assert "needs about" in outcome["note"]
    assert board["recommendation"]["method"] is None
    (command,) = board["recommendation"]["commands"]  # which ends with a model
    assert command.startswith("multilab fit --dataset scenario1 --budget 0.5s --metric macro_f1")


def test_cells_of_a_comparison_are_those_of_the_protocol(work):
    refs = split_refs("scenario1", PROTOCOL)
    keys = {row.key for row in pd.read_csv(work / "scores.csv").itertuples()}
    assert len(keys) == 3 * len(refs)


@pytest.mark.slow
def test_a_killed_run_continues_and_has_the_same_numbers(work, tmp_path):
    command = [sys.executable, "-m", "multilab", *RUN]
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


def curve(means, spread=0.002):
    """Return a learning curve of macro F1 at 80, 160, 320 and 640 of 800 rows."""
    sizes = list(zip((0.1, 0.2, 0.4, 0.8), (3, 3, 3, 5), strict=True))[-len(means) :]
    rows = [
        (share, 800 * share, split, "macro_f1", mean + spread * (split - (n - 1) / 2))
        for (share, n), mean in zip(sizes, means, strict=True)
        for split in range(n)
    ]
    return pd.DataFrame(rows, columns=["share", "rows", "split", "metric", "value"])


def test_a_trend_needs_two_steps_of_the_curve_and_an_interval_without_zero():
    rising = curve_remark(curve([0.40, 0.45, 0.50, 0.55]), "macro_f1")
    assert rising.startswith("More rows would probably still help: Macro F1 got better with each of the last two steps")
    assert "by 0.0500 from 320 to 640 training rows" in rising
    for means, spread, reason in (
        ([0.50, 0.548, 0.520, 0.544], 0.002, "the last two steps of the curve have different signs"),
        ([0.40, 0.45, 0.50, 0.55], 0.05, "the gain in Macro F1 from 320 to 640 rows may be chance"),
        ([0.60, 0.55, 0.50, 0.45], 0.002, "Macro F1 did not get better with each of the last two steps"),
    ):
        remark = curve_remark(curve(means, spread), "macro_f1")
        assert remark.startswith(f"The curve does not show whether more rows would help: {reason}")
    assert "too few rows" in curve_remark(curve([0.5, 0.6]), "macro_f1")
    losses = curve([0.6, 0.55, 0.5, 0.45]).assign(metric="hamming_loss")
    assert curve_remark(losses, "hamming_loss").startswith("More rows would probably still help: Hamming loss")


def noise_label(n=300):
    """Return a table with two labels that follow the features and a rare one that nothing predicts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).round(3)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    return table.assign(f_hot=(X[:, 0] > 1) * 1, f_wet=(X[:, 1] > 1.2) * 1, f_noise=(rng.random(n) < 0.03) * 1)


def patients(n=400):
    """Return invented patients; asthma has nothing to do with the features, the rest is worth thresholds."""
    rng = np.random.default_rng(6)
    age, bmi, pressure = rng.normal(55, 14, n).round(), rng.normal(27, 4, n).round(1), rng.normal(130, 16, n).round()
    table = pd.DataFrame({"age": age, "bmi": bmi, "pressure": pressure})
    risks = {
        "dx_hypertension": (pressure - 138) / 6,
        "dx_obesity": (bmi - 34) / 3,
        "dx_copd": (age - 80) / 9,
        "dx_asthma": np.full(n, -1.7),
    }
    return table.assign(**{name: (risk + rng.logistic(size=n) > 0) * 1 for name, risk in risks.items()})


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((noise_label, "f_", "noise"), id="rare"),
        pytest.param((patients, "dx_", "asthma"), id="common", marks=pytest.mark.slow),  # all tests of it once more
    ],
)
def unlearnable(request, tmp_path_factory):
    """Compare on a table with a label that cannot be learned; return its folder, name, label and what was printed."""
    make, prefix, label = request.param
    root, name = tmp_path_factory.mktemp(label), f"table_of_{label}"  # a process keeps the data of a name
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.chdir(root)
        patch.setenv("MULTILAB_CELLS", str(root / "cells"))
        make().to_csv(f"{name}.csv", index=False)
        assert main(["datasets", "add", f"{name}.csv", "--label-prefix", prefix]) == 0
        assert main(["compare", "--dataset", name, "--method", "br_logistic", "--cv", "3", "--budget", "10m"]) == 0
    return root, name, prefix + label, printed.getvalue()


@pytest.mark.slow
def test_guarded_thresholds_assign_an_unlearnable_label_as_often_as_it_occurs(unlearnable, monkeypatch):
    root, name, label, printed = unlearnable
    monkeypatch.chdir(root)
    monkeypatch.setenv("MULTILAB_CELLS", str(root / "cells"))
    advice = json.loads((root / f"reports/compare/{name}/leaderboard.json").read_text())["recommendation"]
    gains = label == "dx_asthma"  # of the other table three splits do not show it
    assert advice["method"] == ("br_logistic + thresholds" if gains else "br_logistic")
    assert advice["over_assigned"] == {}
    decision = " --decision macro_f1" if gains else ""
    command = f"multilab fit --dataset {name} --method br_logistic{decision} --cv 3 --register {name}"
    assert advice["commands"] == [command]
    assert f"next: {command}" in printed
    lines, kind = printed.splitlines(), "+ thresholds" if gains else "with its own decisions"
    first = next(k for k, line in enumerate(lines) if line.startswith("Use br_logistic ") and kind in line)
    if not gains:
        assert lines[first + 1].startswith("Highest mean: br_logistic + thresholds")
        thresholds = f"multilab fit --dataset {name} --method br_logistic --decision macro_f1 --cv 3 --register {name}"
        assert lines[first + 1].endswith(thresholds)
    page = (root / f"reports/compare/{name}/index.html").read_text()
    assert html.escape(lines[first + 1]) in page

    data, store = load(name), Store()
    cells = [Cell("train", r, load_method("br_logistic")) for r in split_refs(name, {**PROTOCOL, "kfold": 3})]
    folds = splits(name, {**PROTOCOL, "kfold": 3})
    values = {"own": [], "thresholds": []}
    assigned = 0
    for cell, fold in zip(cells, folds, strict=True):
        own, held = (store.arrays(one.key) for one in (cell, scores_cell(cell, InnerFolds(folds=5, order=1))))
        rule = TunedThresholdClassifier("precomputed", guard=True).fit(held["scores"], data.Y[fold.train])
        tuned = rule.predict(own["scores"])
        assigned += tuned[:, list(data.label_names).index(label)].sum()
        for kind, decisions in (("own", own["decisions"]), ("thresholds", tuned)):
            values[kind].append([f(data.Y[fold.test], decisions) for f in (macro_f1, micro_f1, hamming_loss)])
    for at, metric in enumerate(("macro_f1", "micro_f1", "hamming_loss")):
        own, tuned = (float(np.mean(values[kind], axis=0)[at]) for kind in ("own", "thresholds"))
        assert advice["paid"][metric] == pytest.approx({"own": own, "thresholds": tuned, "change": tuned - own})
        assert f"{own:.4f} " in printed
        assert f"{tuned - own:+.4f}" in printed
        assert f">{tuned - own:+.4f}</span>" in page
    everything = [macro_f1(data.Y[fold.test], np.ones_like(data.Y[fold.test])) for fold in folds]
    tuned_baseline = (
        f"The best baseline, label_frequencies + thresholds, which reads no features, has {np.mean(everything):.4f}"
    )
    assert tuned_baseline in printed
    assert advice["paid"]["micro_f1"]["change"] > 0  # -0.1 and more without the guard
    frequency = data.Y[:, list(data.label_names).index(label)].mean()
    assert not over_assigned([label], [assigned / len(data.Y)], [frequency])


@pytest.mark.slow
def test_fit_has_the_guard_in_the_folds_and_in_the_model(unlearnable, monkeypatch, capsys):
    root, name, label, _ = unlearnable
    monkeypatch.chdir(root)
    monkeypatch.setenv("MULTILAB_CELLS", str(root / "cells"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root / 'mlflow.db'}")
    command = ["fit", "--dataset", name, "--method", "br_logistic", "--cv", "3"]
    assert main([*command, "--decision", "macro_f1", "--output", "tuned"]) == 0
    assert "warning" not in capsys.readouterr().out
    assert main(["predict", "tuned", f"{name}.csv", "-o", "out.csv"]) == 0
    frequency = pd.read_csv(f"{name}.csv")[label].mean()
    assert 0 < pd.read_csv("out.csv")[label].mean() <= frequency + 0.2
    assert capsys.readouterr().err == ""
    held = {row["label"]: row for row in json.loads((root / "tuned/metadata.json").read_text())["per_label"]}[label]
    assert not over_assigned([label], [held["predicted"] / held["observed"]], [held["prevalence"]])
    assert main([*command, "--output", "own"]) == 0
    assert "warning" not in capsys.readouterr().out
    assert main(["predict", "own", f"{name}.csv", "-o", "out.csv"]) == 0
    assert capsys.readouterr().err == ""


def test_fit_without_a_method_finds_one_and_never_label_frequencies(unlearnable, monkeypatch, capsys):
    root, name, _, _ = unlearnable
    monkeypatch.chdir(root)
    monkeypatch.setenv("MULTILAB_CELLS", str(root / "cells"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root / 'found.db'}")
    found = portfolio.load_portfolio()
    members = {one: found.members[one] for one in (found.baseline, "br_logistic")}
    monkeypatch.setattr(portfolio, "load_portfolio", lambda: replace(found, members=members))
    assert main(["fit", "--dataset", name, "--cv", "3", "--output", "found"]) == 0
    about = json.loads((root / "found/metadata.json").read_text())
    assert about["method"]["name"] == "br_logistic"
    assert {found.baseline, "br_logistic"} <= set(capsys.readouterr().out.split())
