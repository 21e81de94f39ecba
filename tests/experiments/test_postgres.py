"""MLflow's store in PostgreSQL, written by several processes at once, directly and through a tracking server."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from helpers.laboratory import CHECKOUT
from multilab.core import json_digest

mlflow = pytest.importorskip("mlflow")
pytest.importorskip("psycopg2", reason="the extra `postgres` is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]

SCRIPT = str(CHECKOUT / "scripts" / "postgres.sh")
WRITERS, DATASETS, SPLITS, METRICS = 4, 3, 5, 4

WRITER = f"""
import json, sys
from multilab.experiments.track import RunRecord, Tracker

uri, artifacts, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
splits = range({SPLITS})
records = [
    RunRecord(
        study="shared", method=f"m{{number}}", dataset=f"d{{d}}", title=f"M{{number}}", params={{"k": number}},
        metrics={{f"metric{{m}}": {{s: (number + 1) / (d + s + m + 2) for s in splits}} for m in range({METRICS})}},
        measured={{}}, facts={{"digest": "e" * 64}}, cells=[f"{{number}} {{d}} {{s}}" for s in splits],
        started=1_700_000_000.0, seconds=1.0, headline=("metric0", "metric1"),
    )
    for d in range({DATASETS})
]
tracker = Tracker(uri, artifacts)
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps(tracker.publish("shared", records, prune=False)))
"""


@pytest.fixture(scope="module")
def database():
    """Yield the address of a PostgreSQL server in a folder that an unprivileged user may enter."""
    folder = tempfile.mkdtemp(prefix="multilab-postgres-")
    os.chmod(folder, 0o755)
    done = subprocess.run([SCRIPT, "start", f"{folder}/server"], capture_output=True, text=True)
    if done.returncode == 77:
        shutil.rmtree(folder)
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    yield done.stdout.splitlines()[-1]
    subprocess.run([SCRIPT, "stop", f"{folder}/server"], check=True, capture_output=True)
    shutil.rmtree(folder)


@contextmanager
def tracking_server(backend: str, folder: Path):
    """Yield the address of an MLflow server on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", backend, "--workers", "2"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--artifacts-destination", str(folder / "artifacts")]
    with (folder / "server.log").open("w") as log:
        env = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=env, start_new_session=True)
        try:
            for _ in range(1200):
                assert server.poll() is None, (folder / "server.log").read_text()
                try:
                    if requests.get(f"http://127.0.0.1:{port}/health", timeout=5).ok:
                        break
                except requests.ConnectionError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(60)


def write_at_once(uri: str, folder: Path, together: bool = True) -> None:
    """Publish from several processes."""
    processes = []
    folder.mkdir(exist_ok=True)
    for number in range(WRITERS):
        command = [sys.executable, "-c", WRITER, uri, str(folder / "artifacts"), str(number)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
        )
        processes.append(process)
        if not together:
            _finish([process])
    if together:
        for process in processes:
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        _finish(processes)


def _finish(processes):
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert json.loads(out.splitlines()[-1])["created"] == DATASETS, out


def content(uri: str) -> list[tuple]:
    """Return every metric of every active run, with what identifies the run."""
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("shared")
    return sorted(
        (run.data.tags["multilab.key"], run.data.params["k"], metric.key, metric.step, metric.value)
        for run in client.search_runs([experiment.experiment_id], "attributes.status = 'FINISHED'")
        for name in run.data.metrics
        for metric in client.get_metric_history(run.info.run_id, name)
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The metrics that one writer after the other leaves in an SQLite store."""
    folder = tmp_path_factory.mktemp("serial")
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    write_at_once(uri, folder, together=False)
    return content(uri)


def test_several_processes_leave_complete_metrics(database, expected, tmp_path):
    write_at_once(database, tmp_path)
    rows = content(database)
    assert len(rows) == WRITERS * DATASETS * (METRICS + 2 * SPLITS)  # the means, and the splits of two metrics
    assert json_digest(rows) == json_digest(expected)
    assert not (tmp_path / "mlruns").exists()


def test_a_tracking_server_on_postgresql_is_written_by_several_processes(database, expected, tmp_path):
    backend = database.rpartition("/")[0] + "/served"
    _create_database(database, "served")
    with tracking_server(backend, tmp_path) as uri:
        write_at_once(uri, tmp_path / "writers")
        client = mlflow.MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name("shared")
        assert experiment.artifact_location.startswith("mlflow-artifacts:")
        runs = client.search_runs([experiment.experiment_id], max_results=1000)
        datasets = {run.inputs.dataset_inputs[0].dataset.name for run in runs if run.inputs.dataset_inputs}
    assert datasets == {f"d{number}" for number in range(DATASETS)}
    assert json_digest(content(backend)) == json_digest(expected)
    assert not (tmp_path / "mlruns").exists()


def _create_database(uri: str, name: str) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    engine.dispose()
