"""Workers on one store: every cell once, failures kept, dead workers replaced, results those of a serial run."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import numpy as np
import pytest

from helpers.laboratory import Laboratory
from multilab.cli import main
from multilab.experiments.cells import with_reads
from multilab.experiments.execute import run_cells
from multilab.experiments.plan import all_cells, base_score_cells
from multilab.experiments.running import give_up
from multilab.experiments.sharing import DEATHS, Leases, run_shared
from multilab.experiments.store import Store
from multilab.experiments.study import study_from


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


def study_cells_of(*methods):
    return all_cells(study_from("shared", {"datasets": ["genes-toy"], "methods": list(methods), "protocol": "kfold3"}))


def digests(store):
    return {key: store.digests(key)["arrays.npz"] for key in store.finished()}


def test_a_worker_computes_what_a_serial_run_computes(store, tmp_path):
    serial = Store(tmp_path / "serial")
    cells = study_cells_of("mlknn", "mlkelm")
    assert run_cells(cells, serial, n_jobs=1) == {}
    report = run_shared(cells, store, n_jobs=2)
    assert (report.total, report.here, report.elsewhere, report.failed) == (6, 6, 0, {})
    assert digests(store) == digests(serial)
    assert list((store.root / ".leases").iterdir()) == []
    assert run_shared(cells, store, n_jobs=2).here == 0


def test_cells_that_others_read_come_first():
    cells = study_cells_of("mlwse_l1")
    ordered = with_reads(cells)
    position = {cell.key: index for index, cell in enumerate(ordered)}
    assert all(position[read.key] < position[cell.key] for cell in cells for read in cell.reads)
    study = study_from("shared", {"datasets": ["genes-toy"], "methods": ["mlwse_l1"], "protocol": "kfold3"})
    assert {c.key for c in ordered} == {c.key for c in [*base_score_cells(study), *cells]}


def test_a_cell_in_work_elsewhere_is_left_or_waited_for(store):
    cells = study_cells_of("mlknn")
    leases = Leases(store, 60.0)
    lease = leases.acquire(cells[1].key)
    report = run_shared(cells, store, n_jobs=1, wait_for_others=False)
    assert (report.here, report.left) == (2, 1)
    seen = []

    def finish(n_cells):  # as the other worker would
        seen.append(n_cells)
        run_cells(cells, store, n_jobs=1)
        leases.release(lease)

    report = run_shared(cells, store, n_jobs=1, idle=finish)
    assert (report.here, report.elsewhere, report.left, seen) == (0, 1, 0, [1])


def test_the_cell_of_a_dead_worker_is_taken_over(store):
    cells = study_cells_of("mlknn")
    lease = Leases(store, 1.0).acquire(cells[1].key)
    then = lease.path.stat().st_mtime - 2
    os.utime(lease.path, (then, then))
    assert run_shared(cells, store, n_jobs=2, wait_for_others=False).here == 3
    assert list((store.root / ".leases").iterdir()) == []


def test_a_failed_cell_is_tried_once_until_a_retry_is_requested(store):
    (first, *_) = cells = study_cells_of("mlknn")
    give_up(first, store, "no memory")
    report = run_shared(cells, store, n_jobs=1)
    assert report.here == 2
    assert report.failed == {first.label: "no memory"}
    assert run_shared(cells, store, n_jobs=1, retry_failed=True).failed == {}
    assert store.has(first.key)


def test_a_failure_is_recorded_with_its_reason(store):
    from dataclasses import replace

    cells = [replace(cell, method=cell.method.with_params({"k": 100000})) for cell in study_cells_of("mlknn")]
    report = run_shared(cells, store, n_jobs=1, retry_failed=True)
    assert (report.here, len(report.failed)) == (0, 3)
    record = store.failure(cells[0].key)
    assert "k=100000 neighbours need" in record["reason"]
    assert "Traceback" in record["traceback"]
    assert len(run_shared(cells, store, n_jobs=1).failed) == 3
    assert store.failure(cells[0].key) == record, "it was computed again"


def test_what_reads_a_failed_cell_fails_without_being_tried(store):
    cells = study_cells_of("mlwse_l1")
    for cell in with_reads(cells):
        if cell.kind == "scores":
            give_up(cell, store, "boom")
        elif not cell.reads:
            store.write(cell.key, {"scores": np.ones((2, 3))}, {"status": "done"}, "a: 1\n")
    report = run_shared(cells, store, n_jobs=1)
    assert report.here == 0
    assert all("base scores of br on genes-toy" in report.failed[cell.label] for cell in cells)
    assert all(report.failed[cell.label].endswith("failed: boom") for cell in cells)


def test_a_cell_with_which_workers_died_is_given_up(store):
    (first, *_) = cells = study_cells_of("mlknn")
    leases = Leases(store, 1.0)
    for _ in range(DEATHS):
        lease = leases.acquire(first.key)
        then = lease.path.stat().st_mtime - 2
        os.utime(lease.path, (then, then))
    report = run_shared(cells, store, n_jobs=1)
    assert report.failed == {first.label: f"{DEATHS} workers died while they computed it"}
    assert report.here == 2
    assert list((store.root / ".leases").iterdir()) == []


DEADLY = '''
import os, signal
from multilab.methods.neighbours.mlknn import MLkNN

class Deadly(MLkNN):
    """Kills its process on fit, as the memory killer of the kernel does."""

    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)
'''


@pytest.mark.slow
def test_a_cell_that_kills_its_process_twice_fails_and_the_others_are_computed(store, tmp_path, monkeypatch):
    from dataclasses import replace

    (tmp_path / "deadly_method.py").write_text(DEADLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    cells = study_cells_of("mlknn")
    deadly = replace(cells[0], method=replace(cells[0].method, target="deadly_method.Deadly"))
    report = run_shared([deadly, *cells], store, n_jobs=2)
    assert report.here == 3
    assert list(report.failed.values()) == ["its process was killed twice, perhaps for want of memory"]
    assert list((store.root / ".leases").iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "Give --study NAME, or the settings of a sweep"),
        (["--study", "quik"], "did you mean 'quick'"),
        (["--study", "quick", "method=mlknn"], "Give --study NAME, or the settings of a sweep"),
        (["--study", "quick", "--lease"], "'--lease' requires an argument"),
        (["--study", "quick", "--lease", "soon"], "'--lease': must be a time such as 90s"),
        (["--study", "quick", "--lease=0.5"], "must be at least 1s"),
        (["--study", "quick", "--forever"], "No such option '--forever'"),
        (["dataset=genes-toy", "method=mlknn", "hydra/launcher=joblib"], "a worker needs none"),
    ],
)
def test_a_wrong_argument_is_one_line(argv, message, capsys):
    assert main(["study", "worker", *argv]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    assert message in error


def start(lab, *argv):
    """Start a worker in a process group."""
    command = ["multilab", "study", "worker", *argv, "--lease", "2s"]
    return subprocess.Popen(command, cwd=lab.root, env=lab.env, start_new_session=True, stdin=subprocess.DEVNULL)


@pytest.mark.slow
@pytest.mark.xdist_group("kill")
def test_workers_killed_at_random_moments_leave_a_complete_store(tmp_path):
    lab = Laboratory(tmp_path / "lab")
    lab.edit("conf/study/quick.yaml", "kfold: 2", "kfold: 6")
    slow = "{_target_: sklearn.ensemble.ExtraTreesClassifier, n_estimators: 150}"
    path = lab.root / "conf" / "method" / "br.yaml"
    path.write_text(path.read_text().replace("{_target_: sklearn.linear_model.LogisticRegression, C: 1.0}", slow))
    serial = str(tmp_path / "serial")
    for stage in ("preprocess", "base-scores", "train"):
        lab.run("multilab", "study", stage, "--study", "quick", MULTILAB_CELLS=serial)
    expected, store, rng = digests(Store(serial)), Store(lab.root / ".cells"), np.random.default_rng(0)
    kills, workers = 0, [start(lab, "--study", "quick") for _ in range(3)]
    try:
        deadline = time.monotonic() + 400
        while len(store.finished()) < len(expected) and time.monotonic() < deadline:
            time.sleep(rng.uniform(0.5, 3.0))
            victim = int(rng.integers(3))
            if kills < 12 and store.root.is_dir() and any((store.root / ".leases").glob("*-[0-9]")):
                os.killpg(workers[victim].pid, signal.SIGKILL)
                kills += workers[victim].wait() == -signal.SIGKILL
                workers[victim] = start(lab, "--study", "quick")
        assert [worker.wait(timeout=200) for worker in workers] == [0, 0, 0]
    finally:
        for worker in workers:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
    assert kills >= 3, "the kills were to fall into the work"
    assert digests(store) == expected
    printed = lab.run("multilab", "study", "worker", "--study", "quick")
    assert f"{len(expected)} cells, {len(expected)} reused, 0 computed here" in printed
    assert list((store.root / ".leases").iterdir()) == []


@pytest.mark.slow
@pytest.mark.xdist_group("kill")
def test_a_terminated_worker_gives_its_leases_back(tmp_path):
    lab = Laboratory(tmp_path / "lab")
    lab.run("multilab", "study", "preprocess", "--study", "quick")
    worker = start(lab, "dataset=scenario1", "method=mlknn,mlwse_l1")
    leases = lab.root / ".cells" / ".leases"
    try:
        deadline = time.monotonic() + 120
        while not (leases.is_dir() and any(leases.iterdir())) and time.monotonic() < deadline:
            assert worker.poll() is None
            time.sleep(0.005)
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(timeout=60) == -signal.SIGTERM
    finally:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    assert list(leases.iterdir()) == []
