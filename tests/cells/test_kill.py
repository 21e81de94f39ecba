"""Killed at any moment, by SIGKILL to everything at once, the next run finishes as if nothing had happened."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from helpers.laboratory import CHECKOUT, Laboratory
from multilab.cells.store import Store
from multilab.core import json_digest, read_sealed

KILLS = 20
LEAST_IN_TRAIN = 12

CELLS = """
import pathlib
import sys
import time

quick = pathlib.Path.write_bytes
pathlib.Path.write_bytes = lambda path, data: (time.sleep(0.01), quick(path, data))[1]  # so that kills hit writes

from multilab.experiments.plan import study_cells
from multilab.cells.execute import run_cells
from multilab.experiments.study import study_from
from multilab.cells.store import Store

study = study_from("killed", {"datasets": ["digit-segments"], "methods": ["mlknn", "mlkelm"], "protocol": "kfold10"})
cells = [cell for method in study.methods for cell in study_cells(study, method)]
sys.exit(bool(run_cells(cells, Store(sys.argv[1]), n_jobs=int(sys.argv[2]))))
"""

TREES = """
_target_: multilab.methods.transformation.{target}
estimator: {{_target_: sklearn.ensemble.ExtraTreesClassifier, n_estimators: 360}}
calibration: null
random_state: null
title: trees
"""


def arrays(root: Path) -> dict[str, str]:
    """Return the digest of the arrays of every finished cell of a store."""
    store = Store(root)
    return {key: hashlib.sha256((store.path(key) / "arrays.npz").read_bytes()).hexdigest() for key in store.finished()}


def written(root: Path) -> dict[str, int]:
    """Return the complete cells and when each was finished."""
    store = Store(root)
    return {key: (store.path(key) / "DONE").stat().st_mtime_ns for key in store.finished() if store.has(key)}


def rest(root: Path) -> list[str]:
    """Return what half-written cells are left in a store."""
    return [path.name for path in root.glob(".part-*")]


def group(pgid: int) -> list[psutil.Process]:
    """Return the living processes of a process group."""
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == pgid and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
    return members


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return those of the processes that are still at work."""
    alive = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def strike(pgid: int, seconds: float = 10.0) -> list[psutil.Process]:
    """Kill a process group and all its children wherever they are grouped; return what outlived the first blow."""
    family = {process.pid: process for process in group(pgid)}
    for process in list(family.values()):
        with contextlib.suppress(psutil.Error):
            family.update({child.pid: child for child in process.children(recursive=True)})
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pgid, signal.SIGKILL)
    psutil.wait_procs([p for p in family.values() if p.pid != pgid], timeout=1.0)
    left = [process for process in living(list(family.values())) if process.pid != pgid]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=seconds)
    return left


class Runner:
    """Runs :data:`CELLS` in separate processes, on one store."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def start(self, jobs: int) -> subprocess.Popen:
        """Start a run in its own process group."""
        command = [sys.executable, "-c", CELLS, str(self.root), str(jobs)]
        return subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)

    def finish(self, jobs: int) -> None:
        """Run to the end."""
        run = self.start(jobs)
        try:
            assert run.wait(timeout=120) == 0
        finally:
            strike(run.pid)

    def wait_for(self, count: int, run: subprocess.Popen) -> None:
        """Wait until ``count`` cells are finished while a run is at work."""
        deadline = time.monotonic() + 120
        while sum(1 for _ in self.root.glob("[0-9a-f]*/DONE")) < count:
            assert run.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline, "the run does nothing"
            time.sleep(0.002)

    def stop_amid_a_write(self, run: subprocess.Popen) -> None:
        """Stop a run at a moment when a cell is written in part."""
        deadline = time.monotonic() + 120
        while True:
            if rest(self.root):
                os.killpg(run.pid, signal.SIGSTOP)
                time.sleep(0.02)
                if rest(self.root):
                    return
                os.killpg(run.pid, signal.SIGCONT)
            assert run.poll() is None, "the run ended before it could be stopped"
            assert time.monotonic() < deadline, "the run writes nothing"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The digests of a run that nobody disturbed."""
    runner = Runner(tmp_path_factory.mktemp("uninterrupted"))
    runner.finish(jobs=1)
    results = arrays(runner.root)
    assert len(results) == 20
    return results


@pytest.mark.xdist_group("kill")
@pytest.mark.slow
def test_a_run_killed_three_times_amid_a_write_gives_the_same_cells(uninterrupted, tmp_path):
    runner = Runner(tmp_path / "cells")
    for jobs, count in ((1, 4), (2, 9), (1, 14)):
        before = written(runner.root)
        run = runner.start(jobs)
        runner.wait_for(count, run)
        runner.stop_amid_a_write(run)
        assert not strike(run.pid), "a worker left the process group and outlived the kill"
        assert run.wait() == -signal.SIGKILL
        assert rest(runner.root)
        now = written(runner.root)
        assert count <= len(now) < len(uninterrupted), "the kill was to fall in the middle"
        assert {key: now[key] for key in before} == before
    runner.finish(jobs=1)
    assert arrays(runner.root) == uninterrupted
    assert {key: written(runner.root)[key] for key in now} == now, "a finished cell was written again"
    assert not rest(runner.root)


@pytest.mark.xdist_group("kill")
@pytest.mark.slow
def test_workers_of_a_killed_parent_go_with_it(uninterrupted, tmp_path):
    """The parent alone is killed, as the memory killer does; its workers end, and the next run finishes the work."""
    runner = Runner(tmp_path / "cells")
    run = runner.start(jobs=2)
    try:
        runner.wait_for(4, run)
        orphans = [process for process in group(run.pid) if process.pid != run.pid]
        assert len(orphans) == 2, "the workers share the group of their parent"
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        assert not psutil.wait_procs(orphans, timeout=30)[1]
    finally:
        strike(run.pid)
    before = written(runner.root)
    assert len(before) < len(uninterrupted), "the kill was to fall in the middle"
    runner.finish(jobs=1)  # removes what a worker left as it ended amid a write
    assert arrays(runner.root) == uninterrupted
    assert {key: written(runner.root)[key] for key in before} == before
    assert not rest(runner.root)


@pytest.mark.xdist_group("kill")
@pytest.mark.slow
def test_a_killed_worker_is_reported_in_one_line_and_loses_nothing(uninterrupted, tmp_path):
    runner = Runner(tmp_path / "cells")
    command = [sys.executable, "-c", CELLS, str(runner.root), "2"]
    run = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        runner.wait_for(4, run)
        worker = next(process for process in group(run.pid) if process.pid != run.pid)
        worker.kill()
        assert "a worker process was killed" in run.communicate(timeout=60)[1].splitlines()[-1]
    finally:
        strike(run.pid)
    runner.finish(jobs=1)
    assert arrays(runner.root) == uninterrupted


# The pipeline under DVC, killed at moments uniform over its duration.


@dataclass
class Kill:
    """One kill: when, what it hit, and what the run after it needed."""

    number: int
    jobs: int
    share: float
    moment: float = 0.0
    hit: str = "finished"
    processes: int = 0
    survivors: int = 0
    done: int = 0
    half: int = 0
    again: int = 0
    stages: int = 0
    seconds: float = 0.0
    fixed: str = ""

    HEAD = " no  jobs  moment  share  hit                processes  outlived  DONE  half  resumed: cells stages seconds"

    def __str__(self) -> str:
        """Return the line of the table."""
        return (
            f"{self.number:>3}  {self.jobs:>4}  {self.moment:>5.1f}s  {self.share:>5.2f}  {self.hit:<17}  "
            f"{self.processes:>9}  {self.survivors:>8}  {self.done:>4}  {self.half:>4}  "
            f"{self.again:>14} {self.stages:>6} {self.seconds:>6.1f}s  {self.fixed}"
        )


def laboratory(root: Path) -> Laboratory:
    """Return a laboratory that never ran, with its data prepared, in which training takes most of the time."""
    lab = Laboratory(root)
    shutil.copy(CHECKOUT / ".dvcignore", root / ".dvcignore")
    for name, target in (
        ("trees_br", "binary_relevance.BinaryRelevance"),
        ("trees_cc", "classifier_chain.ClassifierChain"),
    ):
        (root / "conf" / "method" / f"{name}.yaml").write_text(TREES.format(target=target))
    lab.study("quick", "digit-segments, scenario1, scenario3", "mlknn, trees_br, mlkelm, trees_cc, mlwse_l1")
    lab.edit("conf/study/quick.yaml", "kfold: 2", "kfold: 4")
    lab.edit("conf/study/quick.yaml", "[ranking_loss, hamming_loss, macro_auc]", "[hamming_loss]")
    lab.edit("conf/method/mlwse_l1.yaml", "base_scores: [br, cc, lp]", "base_scores: [br]")
    lab.run("multilab", "study", "new", "quick")
    lab.run("dvc", "repro", "-q", "data/dvc.yaml")
    return lab


def clone(lab: Laboratory, root: Path) -> Laboratory:
    """Return a copy of a laboratory in another folder."""
    shutil.copytree(lab.root, root, symlinks=True)
    other = Laboratory.__new__(Laboratory)
    other.root, other.env = root, {k: v.replace(str(lab.root), str(root)) for k, v in lab.env.items()}
    return other


def outcome(lab: Laboratory) -> dict[str, str]:
    """Return digests of all that a run must leave the same."""
    files = [lab.root / "reports" / "quick" / "scores.csv.gz", lab.root / "dvc.lock"]
    return {**arrays(lab.root / ".cells"), **{p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}}


def published(lab: Laboratory) -> list[tuple[str, str]]:
    """Return name and status of the runs in MLflow (deleted ones keep the status they had when they were killed)."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{lab.root / 'mlflow.db'}")
    numbers = [entry.experiment_id for entry in client.search_experiments()]
    return sorted((run.info.run_name, run.info.status) for run in client.search_runs(numbers, max_results=5000))


def stage_of(processes: list[psutil.Process]) -> str:
    """Return the stage that is at work in a process group."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            argv = process.cmdline()
            if "study" in argv:
                return argv[argv.index("study") + 1]
    return "dvc itself"


def kill(lab: Laboratory, planned: Kill) -> dict[str, int]:
    """Start ``dvc repro``, kill it at the planned moment, note what was hit, and return the complete cells."""
    with (lab.root.parent / f"{lab.root.name}.log").open("w") as log:
        run = subprocess.Popen(
            ["dvc", "repro"],
            cwd=lab.root,
            env={**lab.env, "MULTILAB_JOBS": str(planned.jobs)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(timeout=planned.moment)
        if run.poll() is None:
            processes = group(run.pid)
            planned.hit, planned.processes = stage_of(processes), len(processes)
            planned.survivors = len(strike(run.pid))
            run.wait()
    done = written(lab.root / ".cells")
    planned.done, planned.half = len(done), len(rest(lab.root / ".cells"))
    return done


def resume(lab: Laboratory, planned: Kill) -> None:
    """Run ``dvc repro`` as a user would after the kill."""
    lock = lab.root / "dvc.lock"
    if lock.is_file() and lab.lock_is_damaged():  # DVC does not write it in one step
        lock.unlink()
        planned.fixed = "dvc.lock was damaged, removed"
    start = time.monotonic()
    output = lab.run("dvc", "repro", MULTILAB_JOBS=str(planned.jobs))
    planned.seconds = time.monotonic() - start
    planned.stages = output.count("Running stage '") - 1
    planned.again = len(written(lab.root / ".cells")) - planned.done


def check(lab: Laboratory, done: dict[str, int], expected: dict[str, str], runs: list[tuple[str, str]]) -> None:
    """Assert that a resumed laboratory is the uninterrupted one."""
    assert outcome(lab) == expected
    now = written(lab.root / ".cells")
    assert {key: now[key] for key in done} == done, "a finished cell was written again"
    assert not rest(lab.root / ".cells")
    assert published(lab) == runs
    assert lab.repro() == []


@pytest.mark.slow
@pytest.mark.xdist_group("kill")
def test_dvc_repro_killed_at_twenty_moments_resumes_to_the_same_result(tmp_path, capsys):
    fresh = laboratory(tmp_path / "fresh")
    durations: dict[int, float] = {}
    expected: dict[str, str] = {}
    runs: list[tuple[str, str]] = []
    for jobs in (1, 2):
        lab = clone(fresh, tmp_path / f"uninterrupted-{jobs}")
        start = time.monotonic()
        lab.run("dvc", "repro", MULTILAB_JOBS=str(jobs))
        durations[jobs] = time.monotonic() - start
        assert not expected or outcome(lab) == expected, "the number of jobs changes the result"
        expected, runs = outcome(lab), published(lab)
    assert {status for _, status in runs} == {"FINISHED"}
    rng = np.random.default_rng(0)
    # Each moment is uniform over the duration, and no twentieth of it is left out.
    shares = (rng.permutation(KILLS) + rng.uniform(size=KILLS)) / KILLS
    kills = [Kill(number, 1 + (number % 3 == 2), share) for number, share in enumerate(shares)]
    summary = f"{len(expected) - 2} cells, uninterrupted {durations[1]:.1f} s, two jobs {durations[2]:.1f} s"
    with capsys.disabled():
        print(f"\n{summary}\n{Kill.HEAD}", flush=True)
    for planned in kills:
        while planned.hit == "finished":  # a machine now faster than when it was measured: measure, and strike again
            lab = clone(fresh, tmp_path / f"kill-{planned.number}")
            planned.moment = planned.share * durations[planned.jobs]
            start = time.monotonic()
            done = kill(lab, planned)
            if planned.hit == "finished":
                durations[planned.jobs] = time.monotonic() - start
                shutil.rmtree(lab.root)
        resume(lab, planned)
        with capsys.disabled():
            print(planned, flush=True)
        check(lab, done, expected, runs)
        shutil.rmtree(lab.root)
    assert sum(planned.hit.startswith("train") for planned in kills) >= LEAST_IN_TRAIN
    assert not sum(planned.survivors for planned in kills), (
        "a process left the group of dvc repro and outlived the kill"
    )


@pytest.mark.slow
def test_a_damaged_lock_is_named_by_dvc_and_can_be_removed(tmp_path):
    """What DVC leaves when it is killed while it writes dvc.lock, which it does not do in one step."""
    lab = Laboratory(tmp_path)
    for text in ("", "schema: '2.", "schema: '2.0'\nstages:\n  keys:\n"):
        (lab.root / "dvc.lock").write_text(text)
        assert lab.lock_is_damaged()
    (lab.root / "dvc.lock").unlink()
    assert not lab.lock_is_damaged()


@pytest.mark.xdist_group("kill")
@pytest.mark.slow
def test_the_mlflow_database_is_complete_or_absent(tmp_path):
    """MLflow refuses for ever a half-made database, so its file may appear only when it is complete."""
    from multilab.experiments.track import Tracker

    path = tmp_path / "mlflow.db"
    argv = [f"sqlite:///{path}", str(tmp_path / "mlartifacts")]
    code = "import sys; from multilab.experiments.track import Tracker; Tracker(*sys.argv[1:])"
    run = subprocess.Popen([sys.executable, "-c", code, *argv], start_new_session=True)
    while not path.exists():
        assert run.poll() is None, "no database was made"
        time.sleep(0.001)
    strike(run.pid)
    run.wait()
    complete = path.read_bytes()
    assert Tracker(*argv).client.search_experiments()[0].name == "Default"
    assert path.read_bytes() == complete, "the database was half-made when it appeared"


# The commands of a person under kills: 200 kills in all (``-m nightly``).

COMMANDS = {
    "run": (60, ("multilab", "study", "run", "--study", "quick")),
    "repro": (20, ("dvc", "repro", "-q")),
    "tune": (60, ("multilab", "tune", "dataset=digit-segments", "method=mlknn", "tune.n_trials=12")),
    "fit": (
        60,
        ("multilab", "fit", "--dataset", "digit-segments", "--method", "mlknn", "--tune", "4", "--output", "model"),
    ),
}
KILLS_IN_A_ROW = 4
"""How often a command is killed before it runs to its end: resumed runs are killed as well."""


def left_by(command: str, lab: Laboratory) -> dict[str, object]:
    """Return what a finished command must leave the same, however often it was killed before."""
    if command in ("run", "repro"):
        assert {status for _, status in published(lab)} == {"FINISHED"}
        scores = hashlib.sha256((lab.root / "reports/quick/scores.csv.gz").read_bytes()).hexdigest()
        return {**arrays(lab.root / ".cells"), "scores.csv.gz": scores, "runs": published(lab)}
    if command == "tune":
        notes = [read_sealed(path) for path in lab.root.glob(".cells/.runs/search-*.json")]
        assert notes, "no note of the search"
        (trials,) = {note["trials"] for note in notes}
        return {"trials": trials, "runs": published(lab)}
    return {**arrays(lab.root / ".cells"), **{path.name: model_file(path) for path in lab.root.glob("model/*")}}


def model_file(path: Path) -> str:
    """Return the digest of a file of a saved model, without its date and the addresses by which skops names objects."""
    if path.name == "metadata.json":
        return json_digest(json.loads(path.read_text()) | {"created": ""})
    if path.suffix != ".skops":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            content = archive.read(entry)
            digest.update(re.sub(rb"\d{12,}", b"", content) if entry.filename == "schema.json" else content)
    return digest.hexdigest()


def small_laboratory(root: Path) -> Laboratory:
    """Return a laboratory that never ran and whose commands take seconds, with its data prepared."""
    lab = Laboratory(root)
    shutil.copy(CHECKOUT / ".dvcignore", root / ".dvcignore")
    lab.study("quick", "scenario1, scenario2", "mlknn, mlkelm, br, mlwse_l1")
    lab.edit("conf/method/mlwse_l1.yaml", "base_scores: [br, cc, lp]", "base_scores: [br]")
    lab.run("multilab", "study", "new", "quick")
    lab.run("dvc", "repro", "-q", "data/dvc.yaml")
    lab.run("multilab", "datasets", "show", "digit-segments")
    return lab


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_killed_again_and_again_loses_nothing(command, tmp_path, capsys):
    """Its process group is killed at seeded moments, up to four times in a row; then it runs to its end."""
    kills, argv = COMMANDS[command]
    fresh = small_laboratory(tmp_path / "fresh")
    lab = clone(fresh, tmp_path / "undisturbed")
    start = time.monotonic()
    lab.run(*argv)
    seconds = time.monotonic() - start
    expected = left_by(command, lab)
    rng = np.random.default_rng(list(COMMANDS).index(command))
    done, row, rows = 0, 0, 0
    lab = clone(fresh, tmp_path / "killed-0")
    while done < kills or row:
        before = written(lab.root / ".cells")
        start = time.monotonic()
        run = subprocess.Popen(
            argv,
            cwd=lab.root,
            env=lab.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        last = row == KILLS_IN_A_ROW or done == kills
        try:
            errors = run.communicate(timeout=None if last else rng.uniform(0.1, 1) * seconds)[1]
        except subprocess.TimeoutExpired:
            assert not strike(run.pid), "a process left the group and outlived the kill"
            run.communicate()
            if (lab.root / "dvc.lock").is_file() and lab.lock_is_damaged():  # DVC does not write it in one step
                (lab.root / "dvc.lock").unlink()
        now = written(lab.root / ".cells")
        assert {key: now.get(key) for key in before} == before, "a finished cell is gone or was written again"
        if run.returncode == -signal.SIGKILL:
            done, row = done + 1, row + 1
            continue
        assert run.returncode == 0, errors
        assert left_by(command, lab) == expected
        assert not rest(lab.root / ".cells")
        if not row:  # nothing was killed: the machine is faster than it was
            seconds = time.monotonic() - start
        shutil.rmtree(lab.root)
        row, rows = 0, rows + 1
        lab = clone(fresh, tmp_path / f"killed-{rows}")
    with capsys.disabled():
        print(f"\n{command}: {done} kills, {rows} finished runs compared, 0 lost", flush=True)
