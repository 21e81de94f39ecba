"""Ad-hoc runs in MLflow: the store named on the command line, and publication later."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

mlflow = pytest.importorskip("mlflow")

from helpers.keys import raise_version  # noqa: E402
from multilab.cells.store import Store  # noqa: E402
from multilab.cli import main  # noqa: E402
from multilab.core import read_sealed, versions, write_sealed  # noqa: E402
from multilab.experiments import publish  # noqa: E402
from multilab.experiments.tune import read_searches  # noqa: E402
from multilab.metrics import METRICS  # noqa: E402

pytestmark = pytest.mark.xdist_group("tracking")

RUN = ["dataset=scenario1", "method=mlknn", "protocol={kfold: 2, stratify: 1, seed: 0}"]


def multilab(folder, *argv):
    """Run a command in a folder with the settings of the checkout."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MULTILAB_", "MLFLOW_TRACKING"))}
    command = [sys.executable, "-m", "multilab", *argv]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300
    )


def names(database, experiment="runs"):
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{database}")
    entry = client.get_experiment_by_name(experiment)
    return sorted(run.info.run_name for run in client.search_runs([entry.experiment_id])) if entry else None


@pytest.fixture(scope="module")
def unreachable(tmp_path_factory):
    """A folder in which a run was made while its server was down, and what the command printed."""
    folder = tmp_path_factory.mktemp("adhoc")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{closed.getsockname()[1]}"
    return folder, multilab(folder, "train", *RUN, f"tracking.uri={uri}"), uri


@pytest.mark.slow
def test_a_server_that_is_down_costs_one_line_and_no_result(unreachable):
    folder, done, uri = unreachable
    assert done.returncode == 0, done.stderr
    assert "hamming_loss" in done.stdout
    lines = [line for line in done.stderr.splitlines() if "MLflow" in line]
    assert len(lines) == 1
    assert uri in lines[0]
    assert "publish later: multilab study publish --runs" in lines[0]
    assert not (folder / "mlflow.db").exists(), "tracking.uri was ignored"


@pytest.mark.slow
def test_a_run_that_is_published_twice_stays(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["train", *RUN, "metrics=[macro_f1]", f"tracking.uri=sqlite:///{tmp_path}/m.db"]) == 0
    assert "1 created" in capsys.readouterr().out
    assert main(["study", "publish", "--runs", "--tracking-uri", f"sqlite:///{tmp_path}/m.db"]) == 0
    assert "0 created, 1 kept, 0 superseded, 0 deleted" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_are_published_later_and_only_once(unreachable, monkeypatch, capsys):
    folder, *_ = unreachable
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MULTILAB_CELLS", raising=False)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    assert main(["study", "publish", "--runs", "--tracking-uri", f"sqlite:///{folder / 'later.db'}"]) == 0
    assert "1 created" in capsys.readouterr().out
    title = "ML-kNN protocol={kfold: 2, stratify: 1, seed: 0}"
    assert names(folder / "later.db") == [f"{title} on scenario1"]
    assert main(["study", "publish", "--runs", "--tracking-uri", f"sqlite:///{folder / 'later.db'}"]) == 0
    assert "0 created, 1 kept" in capsys.readouterr().out


def test_a_run_whose_cells_are_gone_and_a_damaged_note_are_left_out(unreachable, monkeypatch, capsys):
    folder, *_ = unreachable
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MULTILAB_CACHE", str(folder / "data"))
    monkeypatch.delenv("MULTILAB_CELLS", raising=False)
    (note,) = (folder / ".cells" / ".runs").glob("run-*.json")
    other, damaged = (note.with_name(f"run-{name}.json") for name in ("other", "damaged"))
    content = read_sealed(note)
    content["settings"]["seed"] = 5
    write_sealed(other, content)
    damaged.write_bytes(note.read_bytes()[:50])
    try:
        assert main(["study", "publish", "--runs", "--tracking-uri", f"sqlite:///{folder / 'some.db'}"]) == 0
    finally:
        other.unlink()
        damaged.unlink()
    printed = capsys.readouterr().out
    assert "2 of 3 runs left out" in printed
    assert "1 created" in printed


def test_a_study_is_published_to_the_store_of_the_command_line(monkeypatch):
    where = {}
    monkeypatch.setattr(publish, "publish_study", lambda study, store: where.update({study.name: store["uri"]}))
    assert main(["study", "publish", "--tracking-uri", "sqlite:///own.db"]) == 0
    assert where == {"quick": "sqlite:///own.db"}


def test_a_study_can_be_published_when_the_server_is_back(unreachable, capsys):
    assert main(["study", "publish", "--tracking-uri", unreachable[2]]) == 2
    error = capsys.readouterr().err
    assert "publish later: multilab study publish --study quick" in error
    assert error.count("\n") == 1


def test_nothing_to_publish_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["study", "publish", "--runs"]) == 0
    assert "nothing to publish" in capsys.readouterr().out
    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.slow
def test_a_search_is_published_from_its_note_until_the_version_of_its_metric_is_raised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    argv = ["dataset=scenario1", "method=mlknn", "protocol={kfold: 2, stratify: 1, seed: 0}", "tracking.artifacts=a"]
    argv += ["tune.n_trials=3", "tune.metric=hamming_loss", f"tracking.uri=sqlite:///{tmp_path}/m.db"]
    assert main(["tune", *argv]) == 0
    (found,), _ = read_searches(Store(), {})
    trials = [float(line.rpartition(",")[2]) for line in found.trials.splitlines()[1:]]
    where = ["--tracking-uri", f"sqlite:///{tmp_path}/later.db", "--tracking-artifacts", "b"]
    assert main(["study", "publish", "--runs", *where]) == 0
    for name in ("m.db", "later.db"):
        client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / name}")
        experiment = client.get_experiment_by_name("tuning").experiment_id
        (run,) = client.search_runs([experiment], f"params.k = '{found.best['k']}'")
        assert run.data.metrics["best.hamming_loss"] == min(trials)
        steps = {m.step: m.value for m in client.get_metric_history(run.info.run_id, "trial.hamming_loss")}
        assert steps == dict(enumerate(trials))
        assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["trials.csv"]
    raise_version(monkeypatch, METRICS["hamming_loss"].formula)
    assert read_searches(Store(), {}) == ([], 1)
    versions._versions.cache_clear()
