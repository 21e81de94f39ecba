"""Cells on the workers of a Dask scheduler, with TLS on loopback: results and failures are those of a local run."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from itertools import compress

import numpy as np
import pandas as pd
import pytest
import yaml

pytest.importorskip("distributed", reason="the engine dask: pip install distributed")

from helpers.dask_cluster import (
    SCRIPTS,
    Cluster,
    certificates,
    digests,
    disturbed_run,
    failures,
    kill,
    until,
    worker_process,
    write_study,
)
from multilab.cells import dask_data, dask_engine, execute
from multilab.cells.engines import Engine, using
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells, run_cells_within
from multilab.cells.method import load_method
from multilab.cells.running import run_cell
from multilab.cells.settings import CellLimits
from multilab.cells.store import Store
from multilab.cli import main
from multilab.experiments.analyses import Unit, run_units
from multilab.experiments.plan import all_cells
from multilab.experiments.study import load_study

pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Return a scheduler and a worker of two threads."""
    folder = tmp_path_factory.mktemp("engine")
    write_study(folder, seconds=0.0, folds=3, stacks=1, neighbours=1, bad=True)
    with Cluster(folder, certificates(folder / "tls")) as cluster:
        cluster.start_scheduler()
        folder = str(cluster.folder / "worker")
        options = ["--host", "127.0.0.1", "--local-directory", folder]
        slurm = {"SLURM_CPUS_PER_TASK": "2", "SLURM_SUBMIT_DIR": str(cluster.folder)}
        slurm["MULTILAB_SCRIPTS"] = str(SCRIPTS)
        cluster.start("slurm.sh", cluster.address, *options, **slurm)  # the worker of the job script for SLURM
        yield cluster


@pytest.fixture
def engine(cluster, monkeypatch):
    """Return the engine; the test runs where its settings are."""
    monkeypatch.chdir(cluster.folder)
    monkeypatch.syspath_prepend(str(cluster.folder))
    files = {name: str(cluster.tls / f"{name}.pem") for name in ("ca", "cert", "key")}
    return Engine("dask", cluster.address, tls=files, patience=30)


def cells_of(*methods):
    cells = all_cells(load_study("engine"))
    return [cell for cell in cells if cell.method.name in methods]


@pytest.mark.slow
def test_cells_that_read_others_are_those_of_a_serial_run(engine, tmp_path):
    serial, store = Store(tmp_path / "serial"), Store(tmp_path / "store")
    cells, shown = cells_of("stack_0", "near_0"), []

    def progress(stream, total):
        for one in stream:
            shown.append((one[0], total))
            yield one

    assert run_cells(cells, serial, n_jobs=1) == {}
    with using(engine):
        assert run_cells(cells, store, progress=progress) == {}
        assert run_cells(cells, store) == {}
        assert execute.slots() == 2
    assert digests(store.root) == digests(serial.root)
    assert sorted(shown) == sorted((cell.label, 6) for cell in cells)
    assert len(digests(store.root)) == 3 * (2 + 4), "with the cells that they read"


@pytest.mark.slow
def test_stored_cells_that_others_read_are_sent(engine, tmp_path):
    store = Store(tmp_path)
    (cell, *_) = cells_of("stack_0")
    assert run_cells(cell.reads, store, n_jobs=1) == {}
    before = {key: store.path(key).stat().st_mtime_ns for key in store.finished()}
    with using(engine):
        assert run_cells([cell], store) == {}
    assert {key: store.path(key).stat().st_mtime_ns for key in before} == before
    assert len(store.finished()) == len(before) + 1


@pytest.mark.slow
def test_a_store_that_workers_share_is_filled_by_them(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path))
    with using(Engine("dask", engine.address, tls=engine.tls, store=str(tmp_path))):
        assert run_cells(cells_of("stack_0"), Store()) == {}
    assert len(Store().finished()) == 3 * 5


@pytest.mark.slow
def test_failures_come_back_with_their_records(engine, tmp_path):
    store, cells = Store(tmp_path), [*cells_of("failing", "near_0"), cells_of("deadly")[0]]
    with using(engine):
        failed = run_cells(cells, store)
        assert run_cells(cells, store) == failed, "known in this command"
    by_method = {label.split()[0]: reason for label, reason in failed.items()}
    assert "k=100000 neighbours need" in by_method["failing"]
    assert "killed" in by_method["deadly"]
    assert len(failed) == 4
    assert len(store.finished()) == 3
    record = store.failure(cells_of("failing")[0].key)
    assert "Traceback" in record["traceback"]
    assert len(failures(store.root)) == 4


@pytest.mark.slow
def test_what_reads_a_failed_cell_fails_with_its_reason(engine, tmp_path):
    store = Store(tmp_path)
    (cell, *_) = cells_of("stack_0")
    read = replace(cell.reads[1], method=cell.reads[1].method.with_params({"C": -1.0}))
    reader = replace(cell)
    reader.__dict__["reads"] = (cell.reads[0], read, *cell.reads[2:])
    reader.__dict__.update(key=cell.key, identity=cell.identity)
    with using(engine):
        (reason,) = run_cells([reader], store).values()
    assert reason.startswith(f"{read.label} failed: ")
    assert "must be a float in the range" in reason


@pytest.mark.slow
def test_limits_hold_for_each_cell(engine, tmp_path):
    cells = cells_of("hungry", "near_0")
    with using(engine):
        failed = run_cells(cells, Store(tmp_path), limits=CellLimits(60, 0.5))
    limit = "more than 0.5 GiB of memory"
    assert [failed[cell.label] for cell in cells_of("hungry")] == [limit, *[f"not run: on split 0 {limit}"] * 2]
    engine.failed.clear()
    with using(engine):
        assert run_cells(cells, Store(tmp_path), limits=CellLimits(60, 0.5)) == failed, "not tried again"
    assert len(Store(tmp_path).finished()) == 3
    (busy,) = (replace(cell, method=load_method("busy")) for cell in cells_of("near_0")[:1])
    with using(engine):
        assert run_cells([busy], Store(tmp_path), limits=CellLimits(1, 1)) == {
            busy.label: "more than 1 s of processor time"
        }


@pytest.mark.slow
def test_a_deadline_stops_what_runs(engine, tmp_path):
    slow = [replace(c, method=c.method.with_params({"seconds": 600.0})) for c in cells_of("slow_0")]
    with using(engine):
        outcome = run_cells_within(slow, Store(tmp_path), 3.0)
        assert (outcome.computed, outcome.stopped) == (0, True)
        outcome = run_cells_within(cells_of("near_0"), Store(tmp_path), 120.0)
        assert (outcome.computed, outcome.stopped, outcome.failures) == (3, False, {})


@pytest.mark.slow
def test_a_worker_with_other_settings_refuses(engine, tmp_path):
    (cell, *_) = cells_of("near_0")
    other = replace(cell)
    other.__dict__.update(key="0" * 64, identity={**cell.identity, "seed": 7})
    with using(engine), pytest.raises(ExperimentError, match="has another seed of near_0 on genes-toy"):
        run_cells([other], Store(tmp_path))


@pytest.mark.slow
def test_workers_of_another_version_are_refused(engine, cluster, tmp_path):
    folder = tmp_path / "numpy-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n")
    with Cluster(cluster.folder, cluster.tls) as other:
        other.start_scheduler()
        other.env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), other.env["PYTHONPATH"]])
        other.start_worker()
        own = Engine("dask", other.address, tls=engine.tls)
        with pytest.raises(ExperimentError, match=r"has numpy 1\.0 \(here ") as raised:
            until(lambda: dask_engine.slots(own) > 1, "the worker")
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_full_disk_of_a_worker_is_named_with_its_host(engine, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    (cell, *_) = cells_of("near_0")
    shared = Engine("dask", engine.address, tls=engine.tls, store=str(file / "cells"))
    monkeypatch.setenv("MULTILAB_CELLS", str(file / "cells"))
    with pytest.raises(ExperimentError, match=rf"{socket.gethostname()}: \[Errno \d+\]"):
        list(dask_engine.finished([cell], Store(), shared, run_cell))


@pytest.mark.slow
def test_a_sweep_and_a_search_run_on_the_engine(engine, cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    for name, path in (("ADDRESS", engine.address), *((name.upper(), path) for name, path in engine.tls.items())):
        monkeypatch.setenv(f"MULTILAB_ENGINE_{name}", path)
    sweep = ["-m", "dataset=genes-toy", "method=mlknn", "method.k=5,100000", "protocol=kfold3", "publish=false"]
    assert main(["train", *sweep, "engine=dask"]) == 2
    printed = capsys.readouterr()
    assert "1 of 2 jobs of the sweep failed: method.k=100000: 3 of 3 cells failed" in printed.err
    assert len(digests(tmp_path / "cells")) == 3
    search = ["dataset=genes-toy", "method=mlknn", "publish=false"]
    assert main(["tune", *search, "tune.n_trials=2", "engine=dask"]) == 0
    assert "2 trials (2 complete; 2 run now)" in capsys.readouterr().out
    assert main(["tune", *search, "tune.n_trials=3"]) == 0
    assert "3 trials (3 complete; 1 run now)" in capsys.readouterr().out, "the journal came back"
    assert main(["tune", *search, "tune.n_trials=2", "engine=dask"]) == 0
    assert "3 trials (3 complete; 0 run now)" in capsys.readouterr().out, "a shorter search takes no trials away"


@pytest.mark.slow
def test_a_killed_search_stops_no_other(engine, cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    for name, path in (("ADDRESS", engine.address), *((name.upper(), path) for name, path in engine.tls.items())):
        monkeypatch.setenv(f"MULTILAB_ENGINE_{name}", path)
    file = cluster.folder / "conf" / "method" / "deadly_tuned.yaml"
    file.write_text((file.parent / "deadly.yaml").read_text() + "search: {k: {type: int, low: 2, high: 5}}\n")
    search = ["dataset=genes-toy", "method=deadly_tuned,mlknn", "seed=1", "publish=false"]
    try:
        assert main(["tune", "-m", *search, "tune.n_trials=1", "engine=dask"]) == 2
    finally:
        file.unlink()
    printed = capsys.readouterr()
    assert "1 of 2 jobs of the sweep failed: method=deadly_tuned: its process was killed" in printed.err
    assert "ML-kNN on genes-toy: best ranking_loss" in printed.out


@pytest.mark.slow
def test_an_analysis_runs_on_the_engine(engine, tmp_path):
    (cell, *_) = cells_of("near_0")
    cell = replace(cell, method=load_method("lwmf"))
    unit = Unit("multilab.papers.lwmf.margins", "genes-toy", 0, cell)
    serial, store = Store(tmp_path / "serial"), Store(tmp_path / "store")
    assert run_units([unit], serial) == {}
    with using(engine):
        assert run_units([unit], store) == {}
    assert digests(store.root) == digests(serial.root)
    assert len(digests(store.root)) == 1


def test_the_files_of_slurm_and_kubernetes_are_readable():
    """Neither is here: the scripts are parsed by the shell, the resources by YAML."""
    for script in sorted(SCRIPTS.glob("*.sh")):
        subprocess.run(["bash", "-n", script], check=True)
    lines = (SCRIPTS / "slurm.sh").read_text().splitlines()
    options = dict(line.removeprefix("#SBATCH --").split("=", 1) for line in lines if line.startswith("#SBATCH"))
    assert {"array", "cpus-per-task", "time"} <= set(options)
    (resource,) = yaml.safe_load_all((SCRIPTS / "kubernetes.yaml").read_text())
    assert (resource["apiVersion"], resource["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    for part in ("scheduler", "worker"):
        (container,) = resource["spec"][part]["spec"]["containers"]
        assert container["name"] == part
        mounted = [mount["name"] for mount in container["volumeMounts"]]
        assert mounted == [volume["name"] for volume in resource["spec"][part]["spec"]["volumes"]]
        folder = container["volumeMounts"][0]["mountPath"]
        assert [f"{folder}/ca.pem", f"{folder}/cert.pem", f"{folder}/key.pem"] == [
            word for word in container["args"] if word.endswith(".pem")
        ]
    service = resource["spec"]["scheduler"]["service"]
    assert {port["port"] for port in service["ports"]} == {8786, 8787}
    name = f"{resource['metadata']['name']}-scheduler"
    assert f"tls://{name}:8786" in resource["spec"]["worker"]["spec"]["containers"][0]["args"]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["other", "none", "missing"])
def test_a_wrong_or_missing_certificate_is_refused(which, engine, tmp_path):
    tls = {} if which == "none" else {name: str(tmp_path / "tls" / f"{name}.pem") for name in engine.tls}
    if which == "other":
        certificates(tmp_path / "tls")
    wrong = Engine("dask", engine.address, tls=tls, patience=2)
    with using(wrong), pytest.raises(ExperimentError, match="no answer of a scheduler") as raised:
        run_cells(cells_of("near_0"), Store(tmp_path / "cells"))
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_command_without_certificates_prints_one_line(engine):
    command = "from multilab.cells.engines import Engine; from multilab.cells.dask_engine import slots; "
    command += f"slots(Engine('dask', {engine.address!r}, patience=2))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=60)
    assert "no answer of a scheduler" in done.stderr.splitlines()[-1]
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
def test_a_client_that_closes_while_cells_are_sent_is_one_line(engine, tmp_path, monkeypatch):
    """As it does when the scheduler was killed and has not answered for a while."""
    import distributed

    submit = distributed.Client.submit

    def late(client, *arguments, **named):
        client.close()
        return submit(client, *arguments, **named)

    monkeypatch.setattr(distributed.Client, "submit", late)
    with using(engine), pytest.raises(ExperimentError, match=r"no answer of a scheduler .*the same command continues"):
        run_cells(cells_of("near_0"), Store(tmp_path))


@pytest.mark.slow
def test_a_connected_scheduler_that_does_not_answer_ends_the_command(engine, cluster, tmp_path):
    with Cluster(cluster.folder, cluster.tls) as silent:  # it has no worker
        silent.start_scheduler()
        own = Engine("dask", silent.address, tls=engine.tls, patience=2)
        done = dask_engine.finished(
            cells_of("near_0"), Store(tmp_path), own, run_cell, tick=lambda: kill(silent.scheduler.pid, signal.SIGSTOP)
        )
        with pytest.raises(ExperimentError, match="no answer of a scheduler") as raised:
            next(done)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_two_commands_fill_one_store_that_the_workers_share(engine, cluster, tmp_path):
    serial = Store(tmp_path / "serial")
    assert run_cells(cells_of("stack_0", "slow_0", "slow_1", "near_0"), serial, n_jobs=1) == {}
    folder = tmp_path / "store"
    study = cluster.folder / "conf" / "study" / "good.yaml"
    text = (study.parent / "engine.yaml").read_text()
    study.write_text(re.sub(r"methods: .*", "methods: [stack_0, slow_0, slow_1, near_0]", text))
    where = {"cells": str(folder), "MULTILAB_ENGINE_STORE": str(folder)}
    commands = [cluster.command("study", "train", "--study", "good", **where) for _ in range(2)]
    for command in commands:
        out, err = command.communicate(timeout=120)
        assert command.returncode == 0, out + err
    assert digests(folder) == digests(serial.root)


class Listener:
    """A client that keeps what it is to send."""

    def __init__(self):
        self.scheduler, self.plugins = "first", []

    def scheduler_info(self, n_workers):
        return {"id": self.scheduler}

    def register_plugin(self, plugin):
        self.plugins.append(plugin)


def test_a_table_is_sent_again_to_another_scheduler_and_when_it_has_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dask_data, "_sent", set())
    client, table = Listener(), "a,b,tags\n1,2,x\n3,4,y\n5,6,x\n"
    for number, text in enumerate((table, table + "7,8,y\n")):
        (tmp_path / "mine.csv").write_text(text)
        assert main(["datasets", "add", "mine.csv", "--tags", "tags", "--force"]) == 0
        for client.scheduler in ("first", "second", "first"):
            dask_data.send(client, [("genes-toy", "0"), ("mine", str(number))])
    assert [plugin.files["mine.csv"].count(b"\n") for plugin in client.plugins] == [4, 4, 5, 5]
    assert len({plugin.name for plugin in client.plugins}) == 1, "a new worker would get the old table too"


def test_a_worker_keeps_files_in_its_own_folder_and_writes_over_none(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_data, "_sent", set())
    (tmp_path / "mirror" / "deep").mkdir(parents=True)
    (tmp_path / "mirror" / "deep" / "mine.csv.xz").write_bytes(lzma.compress(b"a,y\n1,0\n2,1\n"))
    own = tmp_path / "here" / "data" / "own"
    own.mkdir(parents=True)
    card = "title: Mine\nfiles: [{role: full, path: deep/mine.csv}]\nreader: {label_columns: names.txt}\n"
    (own / "mine.yaml").write_text(card)
    (own / "names.txt").write_text("y\n")
    monkeypatch.setenv("MULTILAB_DATA", str(tmp_path / "mirror"))
    monkeypatch.chdir(tmp_path / "here")
    dask_data.send(client := Listener(), [("mine", "0")])
    (worker := tmp_path / "worker" / "data" / "own").mkdir(parents=True)
    (worker / "mine.yaml").write_text("another")
    monkeypatch.chdir(tmp_path / "worker")
    client.plugins[0].setup(None)
    assert list(client.plugins[0].files) == ["deep/mine.csv.xz", "names.txt", "mine.yaml"], "the card comes last"
    assert (worker / "deep" / "mine.csv.xz").is_file()
    assert (worker / "mine.yaml").read_text() == "another"
    (worker / "names.txt").unlink()
    shutil.rmtree(worker / "deep")
    (worker / "deep").write_text("a file")
    with pytest.raises(ExperimentError, match=r"deep/mine.csv.xz cannot be written: "):
        client.plugins[0].setup(None)


@pytest.mark.slow
def test_commands_end_to_end(tmp_path):
    """A table that only the launching folder has is compared; a study is computed, completed and checked."""
    write_study(tmp_path, seconds=0.0, folds=3, stacks=1, neighbours=1, bad=False)
    here = tmp_path / "here"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    tags = ["|".join(compress(("war", "love", "science"), row)) for row in X + 0.4 * rng.normal(size=X.shape) > 0.4]
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(tags=tags).to_csv(tmp_path / "films.csv", index=False)
    shutil.copytree(tmp_path / "conf", here / "conf")
    with Cluster(tmp_path, certificates(tmp_path / "tls")) as cluster:
        cluster.start_scheduler()
        cluster.start_worker(threads=2)
        cluster.folder = here  # the worker was started above
        cluster.run("datasets", "add", "../films.csv", "--tags", "tags")
        compared = cluster.run("compare", "--dataset", "films", "--budget", "90s")
        assert re.search(r"mlknn +done +macro_f1 0\.", compared), compared
        assert "next: multilab fit --dataset films" in compared
        assert "dashboard of tls://127.0.0.1" in compared
        assert (tmp_path / "data" / "own" / "films.csv").is_file(), "it was sent"
        cluster.folder = tmp_path
        cluster.run("study", "run", "--study", "engine")
        shutil.rmtree(tmp_path / "cells")
        (tmp_path / "conf" / "method" / "near_1.yaml").write_text(
            (tmp_path / "conf" / "method" / "near_0.yaml").read_text().replace("k: 1", "k: 2")
        )
        study = tmp_path / "conf" / "study" / "engine.yaml"
        study.write_text(study.read_text().replace("near_0]", "near_0, near_1]"))
        assert "3 of 15 cells are not in reports/engine" in cluster.run("store", "add", "--study", "engine")
        cluster.run("gate", "--study", "engine", "--accept", "tests/references")
        checked = cluster.run("gate", "--study", "engine")
        assert "gate passed: 15 cells of engine recomputed" in checked


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(engine, cluster, tmp_path):
    """The last test of this cluster: its worker is another process afterwards."""
    store, cells = Store(tmp_path), cells_of("near_0", "slow_1")
    worker = worker_process(cluster.processes[1])[1]

    def progress(stream, total):
        for number, one in enumerate(stream):
            if number == 0:
                kill(worker)
            yield one

    with using(engine):
        assert run_cells(cells, store, progress=progress) == {}
    assert len(store.finished()) == 6


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_killed_workers_a_killed_scheduler_and_a_lost_connection_lose_nothing(shared, tmp_path):
    write_study(tmp_path, 0.2, 10, 4, 6, bad=True, limits="{seconds: 60, gigabytes: 1}")
    cluster = Cluster(tmp_path, certificates(tmp_path / "tls"))
    for stage in ("base-scores", "train"):
        cluster.run("study", stage, "--study", "engine", cells="serial", MULTILAB_ENGINE="local")
    expected = digests(tmp_path / "serial")
    happened = list(disturbed_run(cluster, expected, "cells", shared))
    assert len(happened) == 5
    assert failures(tmp_path / "cells") == failures(tmp_path / "serial")
