"""What MLflow shows of results: numbers, times, variants, two publications at once, a server that does not answer."""

from __future__ import annotations

import dataclasses
import http.server
import importlib.util
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pandas as pd
import pytest

mlflow = pytest.importorskip("mlflow")

from multilab.cells.cell import Cell, SplitRef  # noqa: E402
from multilab.cells.errors import ExperimentError, TrackingError  # noqa: E402
from multilab.cells.method import Method  # noqa: E402
from multilab.cells.store import Store  # noqa: E402
from multilab.experiments import publish as view  # noqa: E402
from multilab.experiments.comparisons import dataset_ranks, study_ranks  # noqa: E402
from multilab.experiments.track import RunRecord, Tracker  # noqa: E402
from multilab.models import mlflow_store  # noqa: E402
from multilab.models.mlflow_store import tracking  # noqa: E402

pytestmark = pytest.mark.xdist_group("tracking")

ABOUT = {"commit": "0123456789ab+", "python": "3.11.7"}


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory):
    """An MLflow database without experiments; creating one takes seconds."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    Tracker(f"sqlite:///{path}", str(path.parent / "artifacts"))
    return path


@pytest.fixture
def store(empty_database, tmp_path):
    """The address of a fresh store, and its artifact folder."""
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path / 'mlflow.db'}", str(tmp_path / "artifacts")


def record(method="a", dataset="d", loss=(0.1, 0.3, 0.2), params=None, **more):
    return RunRecord(
        study="s",
        method=method,
        dataset=dataset,
        title=method.upper(),
        params=params or {"k": 1},
        metrics={"hamming_loss": dict(enumerate(loss))},
        measured={"peak_mb": {0: 1.0, 1: float("nan"), 2: 3.0}, "seconds": {0: 2.0, 1: 2.0, 2: 5.0}},
        facts={"digest": "e" * 64},
        cells=[f"{method}{dataset}{split}{loss}{params}" for split in range(len(loss))],
        headline=("hamming_loss",),
        started=1_700_000_000.0,
        seconds=9.0,
        **more,
    )


def runs(store, experiment="s"):
    """Return the active runs by name."""
    client = mlflow.MlflowClient(tracking_uri=store[0])
    entry = client.get_experiment_by_name(experiment)
    return sorted(client.search_runs([entry.experiment_id]), key=lambda run: run.info.run_name)


def child(store, name="A on d"):
    """Return the current run of a name."""
    current = (run for run in runs(store) if run.data.tags.get("superseded") == "false")
    return next(run for run in current if run.info.run_name == name)


def history(store, run, name):
    client = mlflow.MlflowClient(tracking_uri=store[0])
    return {m.step: m.value for m in client.get_metric_history(run.info.run_id, name)}


def table(store, run):
    """Return the artifact with all numbers of a run."""
    path = mlflow.MlflowClient(tracking_uri=store[0]).download_artifacts(run.info.run_id, "metrics.csv")
    return pd.read_csv(path, index_col="metric")


def test_the_plain_name_of_a_metric_is_the_mean_over_the_splits(store):
    better_at_the_end = record("b", loss=(0.9, 0.9, 0.0))
    Tracker(*store).publish("s", [record(), better_at_the_end])
    run = child(store)
    assert run.data.metrics["hamming_loss"] == pytest.approx(0.2)
    assert run.data.metrics["seconds"] == 3.0
    assert history(store, run, "split/hamming_loss") == {0: 0.1, 1: 0.3, 2: 0.2}
    assert history(store, run, "hamming_loss") == {0: pytest.approx(0.2)}
    client = mlflow.MlflowClient(tracking_uri=store[0])
    ordered = client.search_runs([run.info.experiment_id], "tags.dataset = 'd'", order_by=["metrics.hamming_loss"])
    assert [run.info.run_name for run in ordered] == ["A on d", "B on d"]


def test_a_split_without_a_value_leaves_the_mean_out(store):
    Tracker(*store).publish("s", [record(loss=(0.1, float("nan"), 0.2))])
    run = child(store)
    assert "hamming_loss" not in run.data.metrics
    assert history(store, run, "split/hamming_loss") == {0: 0.1, 2: 0.2}
    assert run.data.metrics["peak_mb"] == 3.0, "the largest peak is known"
    assert table(store, run).loc["peak_mb", ["split 0", "split 2"]].tolist() == [1.0, 3.0]
    assert table(store, run).loc["peak_mb", ["mean", "split 1"]].isna().all()


def test_a_runs_table_has_at_most_thirty_columns_of_numbers_and_an_artifact_all(store):
    names = ["hamming_loss", "macro_f1", "coverage", *(f"other{i}" for i in range(40))]
    values = {name: {0: 0.1, 1: 0.3} for name in [*names, "ranking_loss.mulan", "n_skipped_macro_auc"]}
    wide = dataclasses.replace(record(rank=1.0), metrics=values, headline=("coverage", "hamming_loss", "macro_f1"))
    Tracker(*store).publish("s", [wide])
    shown = child(store).data.metrics
    assert len(shown) <= 30
    assert {"rank", "seconds", "coverage", "hamming_loss", "macro_f1"} <= set(shown)
    steps = [name for name in shown if name.startswith("split/")]
    assert sorted(steps) == ["split/coverage", "split/hamming_loss", "split/macro_f1"]
    numbers = table(store, child(store))
    assert set(numbers.index) == {*values, "seconds", "peak_mb"}
    assert numbers.loc["other39", ["mean", "split 0", "split 1"]].tolist() == [pytest.approx(0.2), 0.1, 0.3]
    assert numbers.loc["other39", "std"] == pytest.approx(0.1 * 2**0.5)


def test_repetitions_of_one_cell_have_no_spread(store):
    Tracker(*store).publish("s", [dataclasses.replace(record(), cells=["one", "one", "one"])])
    assert table(store, child(store))["std"].isna().all()


def test_start_and_duration_are_those_of_the_computation(store):
    Tracker(*store).publish("s", [record(), record(dataset="e")])
    times = {run.info.run_name: (run.info.start_time, run.info.end_time - run.info.start_time) for run in runs(store)}
    assert times == dict.fromkeys(("A on d", "A on e"), (1700000000000, 9000))


def test_a_rank_that_changes_is_shown_in_the_run_that_stays(store):
    tracker = Tracker(*store)
    tracker.publish("s", [record(rank=1.0, tags={"ranked": "among 2 methods by hamming_loss"})])
    first = child(store)
    counts = tracker.publish("s", [record(rank=2.5, tags={"ranked": "among 3 methods by hamming_loss"})])
    again = child(store)
    assert (counts["kept"], again.info.run_id) == (1, first.info.run_id)
    assert again.data.metrics["rank"] == 2.5
    assert again.data.tags["ranked"] == "among 3 methods by hamming_loss"
    tracker.publish("s", [record()])
    assert "rank" not in child(store).data.metrics, "a method that is ranked no longer shows no rank"


def test_runs_of_an_older_view_are_superseded(store, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr("multilab.experiments.track.VIEW", "2")
        Tracker(*store).publish("s", [record(), record("b")])
    counts = Tracker(*store).publish("s", [record()])
    assert counts == {"created": 1, "kept": 0, "superseded": 2, "deleted": 0}
    assert [run.info.run_name for run in runs(store) if run.data.tags["superseded"] == "false"] == ["A on d"]
    assert len(runs(store)) == 3


def test_publishing_twice_keeps_every_run(store):
    counts = Tracker(*store).publish("s", [record()])
    before = [run.info.run_id for run in runs(store)]
    again = Tracker(*store).publish("s", [record()])
    assert (counts["created"], again) == (1, {"created": 0, "kept": 1, "superseded": 0, "deleted": 0})
    assert [run.info.run_id for run in runs(store)] == before


def test_a_dvc_experiment_is_added_next_to_the_runs_that_stay_current(store):
    tracker, other = Tracker(*store), record(loss=(0.5, 0.5, 0.6), params={"k": 2}, rank=1.0)
    tracker.publish("s", [record(), record("b")])

    def current():
        return {run.info.run_name for run in runs(store) if run.data.tags["superseded"] == "false"}

    before = current()
    assert tracker.publish("s", [other, record("b")], copy="odd-name")["created"] == 1
    assert current() == before | {"A (odd-name) on d"}
    assert tracker.publish("s", [other, record("b")], copy="odd-name")["created"] == 0
    assert "rank" not in child(store, "A (odd-name) on d").data.metrics, "it is among the methods of another folder"
    assert tracker.publish("s", [record(), record("b")])["superseded"] == 0
    assert current() == before | {"A (odd-name) on d"}


def test_a_variant_leaves_its_baseline_superseded(store):
    baseline, variant = record(), record(loss=(0.5, 0.5, 0.6), params={"k": 2})
    Tracker(*store).publish("s", [baseline])
    first = child(store).info.run_id
    counts = Tracker(*store).publish("s", [variant])
    assert (counts["created"], counts["superseded"]) == (1, 1)
    state = {run.data.params["k"]: run.data.tags["superseded"] for run in runs(store) if run.data.params}
    assert state == {"1": "true", "2": "false"}
    Tracker(*store).publish("s", [baseline])
    state = {run.data.params["k"]: run.data.tags["superseded"] for run in runs(store) if run.data.params}
    assert state == {"1": "false", "2": "true"}
    assert first in {run.info.run_id for run in runs(store)}


def test_new_numbers_of_the_same_settings_supersede_the_old(store):
    Tracker(*store).publish("s", [record()])
    Tracker(*store).publish("s", [record(loss=(0.4, 0.4, 0.4))])
    shown = {run.data.tags["superseded"]: run.data.metrics["hamming_loss"] for run in runs(store)}
    assert shown == {"true": pytest.approx(0.2), "false": pytest.approx(0.4)}


def test_what_left_the_study_is_superseded_and_returns(store):
    Tracker(*store).publish("s", [record(), record("b")])
    Tracker(*store).publish("s", [record()])
    assert {run.info.run_name: run.data.tags["superseded"] for run in runs(store)} == {
        "A on d": "false",
        "B on d": "true",
    }
    counts = Tracker(*store).publish("s", [record(), record("b")])
    assert counts["created"] == 0
    assert {run.data.tags["superseded"] for run in runs(store)} == {"false"}


WRITER = """
import sys, time
sys.path.insert(0, sys.argv[3])
from test_tracking import record
from multilab.experiments.track import Tracker
while time.time() < float(sys.argv[4]):
    time.sleep(0.001)
records = [record(method, dataset) for method in "abc" for dataset in "de"]
Tracker(sys.argv[1], sys.argv[2]).publish("s", records)
"""


@pytest.mark.slow
def test_two_publications_at_once_write_each_run_once(tmp_path):
    """Into a store that does not exist yet, which makes them compete for its creation too."""
    from pathlib import Path

    argv = [f"sqlite:///{tmp_path / 'new.db'}", str(tmp_path / "artifacts"), str(Path(__file__).parent)]
    start = str(time.time() + 4)
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, *argv, start], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        errors = [process.communicate(timeout=600)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], errors
    assert not [text for text in errors if "Traceback" in text]
    names = [run.info.run_name for run in runs(argv[:2])]
    expected = [name for m in "ABC" for name in (f"{m} on d", f"{m} on e")]
    assert names == sorted(expected)
    assert {run.info.status for run in runs(argv[:2])} == {"FINISHED"}


@pytest.fixture
def silent_server():
    """A port that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_is_silent_or_absent_costs_at_most_three_seconds_and_one_line(silent_server, monkeypatch):
    assert mlflow_store.PROBE_SECONDS <= 3
    monkeypatch.setattr(mlflow_store, "PROBE_SECONDS", 0.3)  # so that a busy machine does not decide the test
    for uri in (silent_server, "http://127.0.0.1:9", "postgresql://somebody:secret@127.0.0.1:9/mlflow"):
        with pytest.raises(ExperimentError) as caught:
            Tracker(uri, "artifacts")
        message = str(caught.value)
        assert "does not answer" in message
        assert "\n" not in message
        assert "secret" not in message


def test_a_database_that_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "mlflow.db").write_text("this is no database")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "mlflow.db", tmp_path / "file" / "mlflow.db"):
        with pytest.raises(ExperimentError) as caught:
            Tracker(f"sqlite:///{path}", str(tmp_path / "artifacts"))
        assert len(str(caught.value).splitlines()) == 1


def test_the_command_line_precedes_the_environment_and_the_file(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///other.db")
    assert tracking()["uri"] == "sqlite:///other.db"
    assert tracking("http://127.0.0.1:9")["uri"] == "http://127.0.0.1:9"
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert tracking()["uri"] == "sqlite:///mlflow.db"  # the environment is read each time


def test_relative_paths_of_a_dvc_experiment_are_those_of_the_repository(tmp_path, monkeypatch):
    copy = tmp_path / ".dvc/tmp/exps/standalone/tmpabc"
    (copy / ".dvc").mkdir(parents=True)
    monkeypatch.chdir(copy)
    for name in ("MLFLOW_TRACKING_URI", "MULTILAB_CELLS"):
        monkeypatch.delenv(name, raising=False)
    assert tracking() == {"uri": f"sqlite:///{tmp_path}/mlflow.db", "artifacts": f"{tmp_path}/mlartifacts"}
    assert Store().root == tmp_path / ".cells"
    assert tracking(f"sqlite:///{tmp_path}/x/absolute.db")["uri"] == f"sqlite:///{tmp_path}/x/absolute.db"
    assert tracking("http://127.0.0.1:9")["uri"] == "http://127.0.0.1:9"
    monkeypatch.setenv("MULTILAB_CELLS", "cells")
    assert Store().root == tmp_path / "cells"
    assert Store("here").root == copy / "here"


def pipeline(k=5):
    steps = [
        ["select", {"_target_": "sklearn.feature_selection.SelectKBest", "k": k}],
        ["classify", {"_target_": "x.BR", "estimator": {"_target_": "sklearn.svm.SVC", "C": 2.0}}],
    ]
    return Method.from_mapping("p", {"_target_": "sklearn.pipeline.Pipeline", "steps": steps, "base_scores": ["mlknn"]})


def test_parameters_of_a_pipeline_are_flat(store):
    flat = view.flat_params(pipeline())
    assert flat == {
        "_target_": "sklearn.pipeline.Pipeline",
        "select": "sklearn.feature_selection.SelectKBest",
        "select__k": 5,
        "classify": "x.BR",
        "classify__estimator": "sklearn.svm.SVC",
        "classify__estimator__C": 2.0,
        "preprocessing": "none",
        "base_scores": "mlknn",
        "inner_cv__folds": 5,
        "inner_cv__order": 1,
        "base__mlknn": "multilab.methods.neighbours.mlknn.MLkNN",
        "base__mlknn__k": 10,
        "base__mlknn__s": 1.0,
        "base__mlknn__preprocessing": "none",
    }
    Tracker(*store).publish("s", [record(params=flat)])
    experiment = child(store).info.experiment_id
    client = mlflow.MlflowClient(tracking_uri=store[0])
    assert len(client.search_runs([experiment], "params.select__k = '5'")) == 1


def test_a_change_of_a_base_method_supersedes_the_run_and_shows_as_a_parameter(store):
    for k, loss in ((10, 0.3), (4, 0.1)):
        method = dataclasses.replace(pipeline(), member_params={"mlknn": {"k": k}})
        Tracker(*store).publish("s", [record(loss=(loss,) * 3, params=view.flat_params(method))])
    first, second = sorted(runs(store), key=lambda run: run.data.tags["superseded"], reverse=True)
    assert [run.data.tags["superseded"] for run in (first, second)] == ["true", "false"]
    differ = {name for name, value in first.data.params.items() if second.data.params[name] != value}
    assert differ == {"base__mlknn__k"}
    assert [run.data.params["base__mlknn__k"] for run in (first, second)] == ["10", "4"]


class Cells:
    """A cell store that knows records only."""

    def __init__(self, *records):
        self.records = dict(zip(("one", "two"), records, strict=True))

    def record(self, key):
        return self.records[key]

    def arrays(self, key):
        return {}


def cell(key, split):
    part = SplitRef("digit-segments", "f" * 64, '{"kfold":2}', split, "0" * 64)
    made = Cell("train", part, pipeline())
    made.__dict__["key"] = key
    return made


def test_the_record_of_a_run(store, monkeypatch):
    fit = {"fit_seconds": 2.0, "input_seconds": 7.0, "predict_seconds": 1.0, "cell_seconds": 50.0, "model_bytes": 10}
    cells = Cells(
        {**fit, "split": 0, "started": 2000.0, "peak_mb": 0.0, "tuned": {"select__k": 3}},
        {**fit, "split": 1, "started": 1000.0, "peak_mb": 4.0, "tuned": {"select__k": 7}},
    )
    monkeypatch.setattr(view, "Store", lambda: cells)
    values = {"hamming_loss": {0: 0.1, 1: 0.2}, "n_skipped_macro_auc": {0: 0, 1: 2}, "n_skipped_coverage": {0: 0, 1: 0}}
    run = view.run_record("s", [cell("one", 0), cell("two", 1)], values, ABOUT, ["hamming_loss"])
    assert run.metrics == {"hamming_loss": {0: 0.1, 1: 0.2}, "n_skipped_macro_auc": {0: 0, 1: 2}}
    assert (run.started, run.seconds) == (1000.0, 20.0)
    assert run.params["tuned.select__k"] == "3, 7"
    assert run.tags["mlflow.source.git.commit"] == "0123456789ab"
    Tracker(*store).publish("s", [dataclasses.replace(run, artifacts=dict)])
    shown = child(store, "p on digit-segments")
    assert shown.data.metrics["seconds"] == 10.0, "with the base scores that it reads"
    assert shown.data.metrics["peak_mb"] == 4.0
    assert table(store, shown).loc["peak_mb", "split 1"] == 4.0
    assert not [name for name in shown.data.metrics if "n_skipped" in name]
    assert table(store, shown).loc["n_skipped_macro_auc", ["split 0", "split 1"]].tolist() == [0.0, 2.0]
    dataset = shown.inputs.dataset_inputs[0].dataset
    assert json.loads(dataset.source)["tags"]["name"] == "digit-segments"
    assert mlflow.data.get_source(dataset)._get_source_type() == "code"  # MLflow can read it


def test_costs_of_results_from_a_pack_are_the_committed_ones(monkeypatch, tmp_path):
    cells = Cells({"split": 0}, {"split": 1, "fit_seconds": 1.0})
    monkeypatch.setattr(view, "Store", lambda: cells)
    monkeypatch.setattr(view, "report_dir", lambda name: tmp_path)
    (tmp_path / "measured.csv").write_text(
        "dataset,split,method,fit_seconds,input_seconds,predict_seconds,peak_mb,model_bytes,alone\n"
        "digit-segments,0,p,2.0,7.0,1.0,12.5,10,True\n"
        "digit-segments,1,p,50.0,,0.5,0.0,10,True\n"
    )
    about = {"commit": "0123456789ab", "python": "3.12.1", "created": "2026-11-30 19:24 UTC"}
    (tmp_path / "environment.json").write_text(json.dumps(about))
    study = SimpleNamespace(name="s")
    run = view.run_record(
        "s",
        [cell("one", 0), cell("two", 1)],
        {"hamming_loss": {0: 0.1, 1: 0.2}},
        view._committed_environment(study),
        ["hamming_loss"],
        view._committed_costs(study),
    )
    assert run.measured["seconds"] == {0: 10.0, 1: 1.5}, "what the record has precedes"
    assert run.measured["peak_mb"][0] == 12.5
    assert run.started == 1796066640.0
    assert (run.tags["commit"], run.tags["python"]) == ("0123456789ab", "3.12.1")


def test_a_run_says_how_it_is_made_and_a_description_of_its_experiment_stays(store):
    tracker = Tracker(*store)
    tracker.publish("s", [record(command="multilab train dataset=d method=a")], note="first")
    run = child(store)
    assert run.data.tags["command"] == "multilab train dataset=d method=a"
    assert run.data.tags["command"] in run.data.tags["mlflow.note.content"]
    assert tracker.client.get_experiment(tracker.number).tags["mlflow.note.content"] == "first"
    tracker.publish("s", [record()], note="second")
    assert tracker.client.get_experiment(tracker.number).tags["mlflow.note.content"] == "first"


def test_the_command_of_a_run_is_one_that_a_shell_reads():
    settings = {"dataset": "./my data.csv", "method": "mlknn", "changed": ["method.k=4", "protocol={kfold: 2}"]}
    line = view.command_line("train", settings)
    assert shlex.split(line) == ["multilab", "train", "dataset=./my data.csv", "method=mlknn", *settings["changed"]]


def test_a_server_that_wants_a_user_is_told_so(monkeypatch):
    class Guarded(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/health" else 401)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(TrackingError, match="MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"):
            mlflow_store.open_client(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def test_the_source_of_a_dataset_is_its_public_address_file_or_generator(tmp_path, monkeypatch):
    kind, text = view.dataset_source("emotions")
    assert kind == "http"
    assert json.loads(text)["url"].startswith(
        "https://github.com/tsoumakas/mulan/raw/43f6389095ad71984264db4387a8074b22"
    )
    assert view.dataset_source("scenario1")[0] == "code"


def test_only_the_studys_own_methods_are_ranked():
    variant = SimpleNamespace(columns={"a-x": "a", "b-x": "b"}, datasets=("d",))
    study = SimpleNamespace(
        methods=("a", "b"),
        datasets=("d", "e"),
        metrics=("hamming_loss", "macro_f1"),
        variants={"x": variant},
        all_methods=("a", "b", "a-x", "b-x"),
        alpha=0.05,
    )
    values = {"a": (0.1, 0.2), "b": (0.3, 0.1), "a-x": (0.5, None), "b-x": (0.4, None)}
    rows = [
        (dataset, split, method, metric, value)
        for method, pair in values.items()
        for dataset, value in zip("de", pair, strict=True)
        for split in (0, 1)
        for metric in study.metrics
        if value is not None
    ]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    ranks = study_ranks(study, scores)
    assert ranks == {
        "a": {"hamming_loss": 1.5, "macro_f1": 1.5},
        "b": {"hamming_loss": 1.5, "macro_f1": 1.5},
    }
    study.headline = "hamming_loss"
    assert dataset_ranks(study, scores) == (
        {("a", "d"): 1.0, ("b", "d"): 2.0, ("a", "e"): 2.0, ("b", "e"): 1.0},
        "among 2 methods by hamming_loss",
    )
    study.methods = ("a", "b", "c")
    partly = pd.DataFrame([("d", split, "c", "hamming_loss", 0.0) for split in (0, 1)], columns=scores.columns)
    ranks, among = dataset_ranks(study, pd.concat([scores, partly]))
    assert among == "among 2 methods by hamming_loss", "a method without a result on a data set is not ranked"
    assert set(ranks) == {("a", "d"), ("b", "d"), ("a", "e"), ("b", "e")}


def unfinished(store, writer):
    client = mlflow.MlflowClient(tracking_uri=store[0])
    experiment = client.get_experiment_by_name("s").experiment_id
    tags = {"method": "a", "dataset": "x", "multilab.view": "3", "multilab.writer": writer}
    return client.create_run(experiment, run_name="unfinished", tags=tags)


@pytest.mark.slow
def test_make_clean_keeps_registered_models_and_make_clean_mlflow_needs_a_yes(store, tmp_path, checkout):
    client = mlflow.MlflowClient(tracking_uri=store[0])
    client.create_registered_model("patients")
    Tracker(*store).publish("quick", [record()])
    Tracker(*store).publish("runs", [record()])
    for name in ("Makefile", "scripts/clean_mlflow.py", "conf/study/quick.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout / name, tmp_path / name)
    for name in ("results/quick/stats.json", "reports/quick/index.html", "data/prepared/x/X.npy", "mlartifacts/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    def make(target, answer=""):
        command = ["make", "-s", target, f"PYTHON={sys.executable}"]
        done = subprocess.run(command, cwd=tmp_path, input=answer, capture_output=True, text=True)
        return done.returncode, done.stdout

    def kept():
        models = [model.name for model in client.search_registered_models()]
        return models == ["patients"] and len(runs(store, "runs")) == 1 and (tmp_path / "mlartifacts/x").exists()

    assert make("clean")[0] == 0
    assert not any((tmp_path / name).exists() for name in ("results", "data/prepared", "reports/quick/index.html"))
    assert kept(), "make clean deleted what nothing makes again"
    for answer in ("", "n\n"):
        code, printed = make("clean-mlflow", answer)
        assert code != 0
        assert kept()
    assert "1 registered models: patients" in printed
    assert "1 runs of the experiment runs\n" in printed
    assert "1 runs of the experiment quick, which `multilab study publish --study quick` makes again" in printed
    assert make("clean-mlflow", "y\n")[0] == 0
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(("mlflow.db", "mlartifacts"))]


def test_what_a_killed_publication_left_is_deleted(store):
    Tracker(*store).publish("s", [record()])
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    unfinished(store, f"{socket.gethostname()} {gone.pid} {time.time():.0f}")
    assert Tracker(*store).publish("s", [record()])["deleted"] == 1
    assert "unfinished" not in {run.info.run_name for run in runs(store)}


def test_the_unfinished_run_of_another_publisher_stays_for_an_hour_on_another_machine_and_here_while_it_lives(store):
    Tracker(*store).publish("s", [record()])
    unfinished(store, f"elsewhere 1 {time.time():.0f}")
    unfinished(store, f"elsewhere 1 {time.time() - 4000:.0f}")
    unfinished(store, f"{socket.gethostname()} {os.getppid()} {time.time() - 4000:.0f}")
    assert Tracker(*store).publish("s", [record()])["deleted"] == 1
    assert len([run for run in runs(store) if run.info.run_name == "unfinished"]) == 2


def test_what_two_publishers_write_at_once_is_one_run(store, monkeypatch):
    tracker, other = Tracker(*store), Tracker(*store)
    tracker.publish("s", [record("b")])
    create = tracker._create
    monkeypatch.setattr(tracker, "_create", lambda one: (other.publish("s", [one], prune=False), create(one)))
    assert tracker.publish("s", [record()], prune=False)["deleted"] == 1
    assert sorted(run.info.run_name for run in runs(store)) == ["A on d", "B on d"]


def test_a_postgresql_address_without_its_driver_says_which_to_write():
    if importlib.util.find_spec("psycopg") is not None:
        pytest.skip("psycopg 3 is installed, which SQLAlchemy 2.1 takes for postgresql://")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        uri = f"postgresql://me:secret@127.0.0.1:{listening.getsockname()[1]}/mlflow"
        with pytest.raises(TrackingError) as caught:
            mlflow_store.open_client(uri)
    assert "begin the address with postgresql+psycopg2://" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_dataset_that_another_publisher_entered_a_moment_ago_is_linked(store, monkeypatch):
    tracker = Tracker(*store)
    log_inputs, failures = tracker.client.log_inputs, iter([True])

    def conflict_once(*arguments, **named):
        if next(failures, False):
            raise mlflow.MlflowException("UniqueViolation: dataset_pk")
        return log_inputs(*arguments, **named)

    monkeypatch.setattr(tracker.client, "log_inputs", conflict_once)
    assert tracker.publish("s", [record()])["created"] == 1
    (child,) = [run for run in runs(store) if run.inputs.dataset_inputs]
    assert child.inputs.dataset_inputs[0].dataset.name == "d"


@pytest.mark.slow
@pytest.mark.parametrize(("own", "used"), [(None, "2"), ("5", "5")])
def test_a_server_is_asked_again_twice_unless_the_environment_says_otherwise(tmp_path, monkeypatch, own, used):
    """MLflow's own 7 times, each time longer, are minutes."""
    name = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
    monkeypatch.setenv(name, own or "")  # so that it is restored
    if own is None:
        monkeypatch.delenv(name)
    mlflow_store.open_client(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert os.environ[name] == used
