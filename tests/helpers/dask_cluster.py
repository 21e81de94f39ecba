"""A Dask scheduler and workers on loopback, with certificates, to be killed; and a study whose cells they compute."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from multilab.cells.store import Store

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPTS = CHECKOUT / "scripts" / "dask"

METHODS = '''
import os, signal, time
import numpy as np
from sklearn.linear_model import LogisticRegression
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.neighbours.mlknn import MLkNN


class Slow(BinaryRelevance):
    """Binary relevance that takes its time."""

    def __init__(self, seconds=0.0, C=1.0, n_jobs=None):
        super().__init__(LogisticRegression(C=C), n_jobs=n_jobs)
        self.seconds, self.C = seconds, C

    def fit(self, X, y, sample_weight=None):
        time.sleep(self.seconds)
        return super().fit(X, y)


class Hungry(MLkNN):
    """Takes all memory there is."""

    def fit(self, X, y):
        self.kept = [np.ones(2**25) for _ in range(1000)]
        return super().fit(X, y)


class Deadly(MLkNN):
    """Kills its process, as the kernel does for want of memory."""

    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)


class Busy(MLkNN):
    """Never ends."""

    def fit(self, X, y):
        while True:
            pass
'''

SLOW = """
_target_: engine_methods.Slow
title: Slow {number}
family: own
preprocessing: standard
seconds: {seconds}
C: {C}
"""
MLKNN = """
_target_: {target}
title: {name}
family: own
preprocessing: none
k: {k}
s: 1.0
"""
STACK = """
_target_: multilab.methods.stacking.mlwse.MLWSE
title: Stack {number}
family: own
penalty: l1
alpha: {alpha}
beta: 1.0e-3
eta: 0.1
algorithm: admm
tol: 1.0e-6
max_iter: 5000
base_scores: [slow_0, slow_1]
inner_cv: {{folds: 3, order: 1}}
"""
STUDY = """
title: Engine
description: A test.
datasets: [genes-toy]
methods: [{methods}]
protocol: {{kfold: {folds}, stratify: 1, seed: 0}}
metrics: [ranking_loss, hamming_loss]
headline: hamming_loss
{limits}
"""


def write_study(
    folder: Path, seconds: float, folds: int, stacks: int, neighbours: int, bad: bool, limits: str = ""
) -> None:
    """Write a study ``engine`` into a folder: two slow base learners, stacks on their scores, neighbours, bad ones."""
    for name in ("method", "study"):
        (folder / "conf" / name).mkdir(parents=True, exist_ok=True)
    methods = {f"slow_{i}": SLOW.format(number=i, seconds=seconds, C=1 + i) for i in range(2)}
    methods |= {f"stack_{i}": STACK.format(number=i, alpha=10.0 ** (i - 4)) for i in range(stacks)}
    target = "multilab.methods.neighbours.mlknn.MLkNN"
    methods |= {f"near_{k}": MLKNN.format(target=target, name=f"Near {k}", k=k + 1) for k in range(neighbours)}
    if bad:
        methods["failing"] = MLKNN.format(target=target, name="Failing", k=100000)
        methods["hungry"] = MLKNN.format(target="engine_methods.Hungry", name="Hungry", k=3)
        methods["deadly"] = MLKNN.format(target="engine_methods.Deadly", name="Deadly", k=3)
    listed = ", ".join(methods)
    methods["busy"] = MLKNN.format(target="engine_methods.Busy", name="Busy", k=3)
    for name, text in methods.items():
        (folder / "conf" / "method" / f"{name}.yaml").write_text(text)
    text = STUDY.format(methods=listed, folds=folds, limits=f"limits: {limits}" if limits else "")
    (folder / "conf" / "study" / "engine.yaml").write_text(text)
    (folder / "engine_methods.py").write_text(METHODS)


def digests(folder: Path) -> dict[str, str]:
    """Return the digests of the arrays of the cells in a store."""
    store = Store(folder)
    return {key: (store.digests(key) or {})["arrays.npz"] for key in store.finished()}


def failures(folder: Path) -> dict[str, str]:
    """Return the reasons of the failed cells in a store by label.

    Whether a cell was tried, or left out because another split of its method passed the limit, depends on the order.
    """
    store = Store(folder)
    records = [store.failure(path.name) for path in folder.iterdir() if not path.name.startswith(".")]
    return {record["label"]: record.get("first_split", record["reason"]) for record in records if record}


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def certificates(folder: Path) -> Path:
    """Make certificates with the script that people use."""
    subprocess.run(["bash", SCRIPTS / "certificates.sh", folder], check=True, capture_output=True)
    return folder


def _end_with_parent() -> None:
    """Let the system terminate this process when the tests are killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Cluster:
    """A scheduler and workers with TLS on loopback, in a folder; every process ends with :meth:`close`.

    Parameters
    ----------
    folder : Path
        Where ``conf`` and methods of one's own are, and where workers and the launching process run.
    tls : Path
        The folder of certificates.
    """

    def __init__(self, folder: Path, tls: Path) -> None:
        self.folder, self.tls = folder, tls
        self.port = free_port()
        self.address = f"tls://127.0.0.1:{self.port}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MULTILAB_ENGINE", "MULTILAB_CONF", "PYTEST"))}
        source = str(CHECKOUT / "src")
        self.env = {
            **kept,
            "PYTHONPATH": os.pathsep.join([str(folder), source]),
            "PYTHON": sys.executable,
            "MULTILAB_CACHE": str(folder / "cache"),
            "MULTILAB_CELLS": str(folder / "cells"),
            "MULTILAB_ENGINE_CA": str(tls / "ca.pem"),
            "MULTILAB_ENGINE_CERT": str(tls / "cert.pem"),
            "MULTILAB_ENGINE_KEY": str(tls / "key.pem"),
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler: subprocess.Popen[bytes] | None = None

    def start(self, script: str, *argv: str, **env: str) -> subprocess.Popen[bytes]:
        """Start a script of ``scripts/dask`` in a process group of its own."""
        command = ["bash", str(SCRIPTS / script), str(self.tls), *argv]
        with (self.folder / f"{script}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**self.env, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        self.processes.append(process)
        return process

    def start_scheduler(self) -> None:
        """Start the scheduler and wait until it listens."""
        self.scheduler = self.start("scheduler.sh", "127.0.0.1", str(self.port), "--dashboard-address", "127.0.0.1:0")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.2)
        raise TimeoutError("the scheduler does not listen")

    def start_worker(self, threads: int = 1) -> subprocess.Popen[bytes]:
        """Start a worker that is started again when it ends."""
        folder = str(self.folder / f"worker-{len(self.processes)}")
        options = ["--host", "127.0.0.1", "--nthreads", str(threads), "--local-directory", folder]
        return self.start("worker.sh", self.address, *options)

    def command(self, *argv: str, address: str | None = None, cells: str | None = None, **env: str) -> Any:
        """Start ``multilab`` on this engine."""
        named = {"MULTILAB_ENGINE_ADDRESS": address or self.address, "MULTILAB_ENGINE": "dask"}
        folder = str(self.folder / cells) if cells else self.env["MULTILAB_CELLS"]
        return subprocess.Popen(
            [sys.executable, "-m", "multilab", *argv],
            cwd=self.folder,
            env={**self.env, **named, "MULTILAB_CELLS": folder, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *argv: str, code: int = 0, **named: Any) -> str:
        """Run ``multilab`` on this engine to its end; return what it printed."""
        process = self.command(*argv, **named)
        out, err = process.communicate(timeout=600)
        assert process.returncode == code, f"{argv} exited {process.returncode}:\n{out}{err}"
        return str(out + err)

    def close(self) -> None:
        """Kill the processes that were started, by the number of each, and wait for them."""
        for process in self.processes:
            kill_tree(process.pid)
            process.wait()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def kill_tree(pid: int) -> None:
    """Kill a process and all it has started."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        one = psutil.Process(pid)
        for process in (one, *one.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def worker_process(script: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Return the process numbers of the nanny and of the worker that a script has started."""
    import psutil

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(psutil.NoSuchProcess):
            for nanny in psutil.Process(script.pid).children():
                for child in nanny.children():
                    if "spawn_main" in " ".join(child.cmdline()):
                        return nanny.pid, child.pid
        time.sleep(0.1)
    raise TimeoutError("no worker")


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to one process, and to nothing that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)


class Proxy:
    """A port of loopback that leads to another one, until :meth:`cut` ends what is connected."""

    def __init__(self, port: int) -> None:
        self._target, self._pairs = port, list[tuple[socket.socket, socket.socket]]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._ended:
            with contextlib.suppress(OSError):
                ours, _ = self._listener.accept()
                theirs = socket.create_connection(("127.0.0.1", self._target))
                self._pairs.append((ours, theirs))
                threading.Thread(target=self._copy, args=(ours, theirs), daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket) -> None:
        to = {one: other, other: one}
        with contextlib.suppress(OSError, ValueError):
            while True:
                for ready in select.select([one, other], [], [])[0]:
                    if not (data := ready.recv(65536)):
                        raise OSError
                    to[ready].sendall(data)
        for end in to:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self) -> None:
        """End all connections; new ones are accepted."""
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def close(self) -> None:
        """Accept no more."""
        self._ended = True
        self._listener.close()
        self.cut()


def until(condition: Any, what: str, process: Any = None, seconds: float = 300) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        if process is not None and process.poll() is not None:
            out, err = process.communicate()
            raise AssertionError(f"ended before {what} ({process.returncode}):\n{out}{err}")
        time.sleep(0.05)


def disturbed_run(cluster: Cluster, expected: dict[str, str], cells: str, shared: bool) -> Iterator[str]:
    """Compute the study ``engine`` while processes are killed and connections cut; yield what happened.

    The cells in the end must be those of ``expected``; the cluster has no process before, and none after.
    """
    store = cluster.folder / cells
    shutil.rmtree(cluster.folder / "results")  # from whose packs the stages would take everything
    where = {"MULTILAB_ENGINE_STORE": str(store)} if shared else {}

    def finished() -> int:
        return len(Store(store).finished()) if store.is_dir() else 0

    def launch(address: str | None = None) -> Any:
        return cluster.command("study", "train", "--study", "engine", address=address, cells=cells, **where)

    def share(part: float) -> Any:
        return lambda: finished() >= part * len(expected)

    def end_of(process: Any) -> str:
        """Return the one line of a command that has lost its scheduler."""
        out, err = process.communicate(timeout=120)
        lines = [line for line in err.splitlines() if line.startswith("Error")]
        assert process.returncode == 2, (process.returncode, out, err)
        assert len(lines) == 1, err
        assert "Traceback" not in err, err
        return lines[0]

    cluster.start_scheduler()
    first, second = cluster.start_worker(), cluster.start_worker()
    proxy = Proxy(cluster.port)
    try:
        process = launch(f"tls://127.0.0.1:{proxy.port}")
        until(share(0.1), "a tenth of the cells", process)
        kill(worker_process(first)[1])
        yield f"a worker killed at {finished()} cells"
        until(share(0.3), "three tenths", process)
        for pid in worker_process(second):
            kill(pid)
        yield f"the other one with its nanny killed at {finished()} cells"
        until(share(0.45), "nine twentieths", process)
        proxy.cut()
        yield f"the connection cut at {finished()} cells: {end_of(process)}"
        process = launch()
        until(share(0.65), "thirteen twentieths", process)
        assert cluster.scheduler is not None
        kill(cluster.scheduler.pid)
        yield f"the scheduler killed at {finished()} cells: {end_of(process)}"
        cluster.scheduler.wait()
        cluster.start_scheduler()
        process = launch()
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, out + err
        yield out.splitlines()[0]
    finally:
        proxy.close()
        cluster.close()
    assert digests(store) == expected
    cluster.processes.clear()
