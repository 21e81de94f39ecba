"""`multilab study worker`: one of several workers on one store, on this machine and on others, with leases on cells.

Cells, pool and store are those of :mod:`multilab.experiments.execute`; what is added is the lease that a worker holds
on each cell it computes.

A lease is a file ``.leases/<key>-<n>`` in the store, created in one step (``O_EXCL``) by the worker that computes the
cell, and renewed by touching it. When it was not renewed for as long as it promises, its worker counts as dead, and
another one creates the file with the next number; only one can. The number counts the workers that died with the cell.
Times are those of the file system: the age of a lease is the time of a file created now minus the time of the lease,
both set by the server of a network disk, so the clocks of the machines do not matter. A lease spares work, it does not
protect results: two workers with one cell give equal results, and the store keeps one.

The process of the loop computes nothing itself. It renews the leases, which a thread next to the computation could not
do: SciPy's LAPACK lets no other thread run, for minutes if the matrix is large.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from multilab.core import parse_json, read_json
from multilab.experiments.arguments import check_study
from multilab.experiments.cells import Cell, with_reads
from multilab.experiments.execute import expected_effort, jobs, run_cell_within, worker_pool
from multilab.experiments.locks import owner
from multilab.experiments.plan import all_cells
from multilab.experiments.progress import ProgressBar, StageLine, exit_code, print_warnings
from multilab.experiments.running import give_up, run_cell
from multilab.experiments.store import Store
from multilab.experiments.study import CellLimits, load_study
from multilab.experiments.train import sweep_cells

__all__ = ["DEATHS", "Leases", "WorkerReport", "run_shared"]

DEATHS = 5
"""A cell is recorded as failed when this number of workers died while they computed it."""
_DAY = 24 * 60 * 60.0


def run_shared(
    cells: Iterable[Cell],
    store: Store,
    seconds: float = 600.0,
    n_jobs: int | None = None,
    wait_for_others: bool = True,
    retry_failed: bool = False,
    progress: Callable[[Iterable[Any], int], Iterable[Any]] | None = None,
    idle: Callable[[int], None] | None = None,
    limits: CellLimits | None = None,
) -> WorkerReport:
    """Compute the cells that are missing and that no other worker computes, until all are done.

    Failed cells stay failed: every cell is tried once, whatever the number of workers.

    Parameters
    ----------
    cells : iterable of Cell
        The cells they read are computed too.
    store : Store
    seconds : float
        Duration of a lease: a worker that did not renew its lease for this time counts as dead.
    n_jobs : int, optional
        Processes of this worker; default as in :func:`multilab.experiments.execute.jobs`.
    wait_for_others : bool
        Wait for the cells that other workers compute, and take over those of workers that die.
    retry_failed : bool
        Try the cells that failed before this worker started once more.
    progress : callable, optional
        Called with a stream of settled cells and their number.
    idle : callable, optional
        Called with the number of missing cells when all that can be computed are in work elsewhere.
    limits : CellLimits, optional
        What a cell may use; one that passes a limit is a failed cell.
    """
    store.sweep()
    leases, ordered = Leases(store, seconds), with_reads(cells)
    leases.sweep(store)
    shared = SharedCells(ordered, store, leases, retry_failed)
    report, missing = WorkerReport(total=len(ordered)), shared.missing
    # Cells measured alone come last, one after another, each in a fresh process.
    groups = ([c for c in missing if not c.alone], n_jobs or jobs(), False), ([c for c in missing if c.alone], 1, True)
    workers = [Worker(group, shared, report, n, fresh, limits) for group, n, fresh in groups]
    stream = itertools.chain.from_iterable(worker.run(wait_for_others, idle) for worker in workers)
    show = progress or (lambda stream, _: stream)
    for _ in show(stream, len(missing)):
        pass
    return report


@dataclass
class WorkerReport:
    """What became of the cells.

    Attributes
    ----------
    total : int
        Number of distinct cells, those that others read included.
    here, elsewhere : int
        Cells computed by this worker, and by others while it ran.
    left : int
        Cells that other workers compute still, for a worker that does not wait for them.
    failed : dict
        Reasons of the failed cells, by label.
    """

    total: int = 0
    here: int = 0
    elsewhere: int = 0
    left: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class SharedCells:
    """The cells of a sweep in a shared store: which are missing, finished, failed, and in work.

    Parameters
    ----------
    cells : sequence of Cell
        A cell before those that read it.
    store : Store
    leases : Leases
    retry_failed : bool
        Take cells that have failed already for missing.

    Attributes
    ----------
    missing : list of Cell
        The cells to compute, in the order in which workers try them.
    outcomes : dict
        ``None`` for a finished cell, the reason for a failed one, by key.
    """

    def __init__(self, cells: Sequence[Cell], store: Store, leases: Leases, retry_failed: bool) -> None:
        self.store, self.leases = store, leases
        self.outcomes: dict[str, str | None] = {}
        names = set(os.listdir(store.root))
        self._retried = {c.key: store.failure(c.key) for c in cells if c.key in names} if retry_failed else {}
        self.missing = [cell for cell in cells if not (cell.key in names and self._is_finished(cell))]
        depths: dict[str, int] = {}
        for cell in cells:
            depths[cell.key] = 1 + max((depths[read.key] for read in cell.reads), default=0)
        # What others read first; then the longest, so that no worker is left alone with one at the end.
        self.missing.sort(key=lambda cell: (depths[cell.key], -expected_effort(cell.split_ref.dataset)))

    def acquire(self, pending: dict[str, Cell], settle: Callable[[Cell], None]) -> Iterator[tuple[Cell, Lease]]:
        """Yield the cells of ``pending`` that can be computed, with their lease; ``settle`` gets those with an outcome.

        One pass: the caller may stop for hours between two cells.
        """
        names = set(os.listdir(self.store.root))
        for key, cell in list(pending.items()):
            failed = next((read for read in cell.reads if self.outcomes.get(read.key)), None)
            if failed:
                self.outcomes[key] = give_up(cell, self.store, f"{failed.label} failed: {self.outcomes[failed.key]}")
            if failed or (key in names and self._is_settled(cell)):
                settle(cell)
                continue
            if not all(read.key in self.outcomes for read in cell.reads):
                continue
            lease = self.leases.acquire(key)
            if lease is None:
                continue
            if not self._is_settled(cell) and lease.deaths < DEATHS:
                yield cell, lease
                continue
            if key not in self.outcomes:
                self.outcomes[key] = give_up(cell, self.store, f"{lease.deaths} workers died while they computed it")
            self.leases.release(lease)
            settle(cell)

    def _is_finished(self, cell: Cell) -> bool:
        if self.store.has(cell.key):
            self.outcomes[cell.key] = None
        return cell.key in self.outcomes

    def _is_settled(self, cell: Cell) -> bool:
        """Return whether a cell is finished or failed, and remember how."""
        if not self._is_finished(cell):
            failure = self.store.failure(cell.key)
            if failure and failure != self._retried.get(cell.key):
                self.outcomes[cell.key] = str(failure.get("reason") or "failed")
        return cell.key in self.outcomes


@dataclass(frozen=True)
class Lease:
    """The right to compute a cell.

    Attributes
    ----------
    path : Path
        Its file.
    owner : str
        Name of the worker's lease, never used twice.
    deaths : int
        How many workers died with this cell.
    """

    path: Path
    owner: str
    deaths: int


class Leases:
    """The leases of a store.

    Parameters
    ----------
    store : Store
    seconds : float
        How long a new lease lasts without being renewed.
    """

    def __init__(self, store: Store, seconds: float) -> None:
        self.folder, self.seconds = store.root / ".leases", seconds
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held: dict[str, Lease] = {}

    def acquire(self, key: str) -> Lease | None:
        """Return the lease of a cell, ``None`` if a living worker has it."""
        number = 0
        while True:
            lease = Lease(self.folder / f"{key}-{number}", owner(), number)
            self._held[lease.owner] = lease  # before it is created: the process may be terminated in between
            if self._create(lease):
                return lease
            del self._held[lease.owner]
            if not self._is_stale(lease.path):
                return None
            number += 1

    def renew(self) -> None:
        """Touch the leases that are held; a file that another worker removed stays removed."""
        for lease in list(self._held.values()):
            with contextlib.suppress(FileNotFoundError):
                os.utime(lease.path)  # without a time, so that the server of a network disk takes its own

    def release(self, lease: Lease) -> None:
        """Remove the file of a lease, and those of the workers that died before; nothing that another worker holds."""
        with contextlib.suppress(OSError, ValueError):
            if read_json(lease.path)["owner"] == lease.owner:
                lease.path.unlink()
        for number in range(lease.deaths):
            lease.path.with_name(f"{lease.path.name.rpartition('-')[0]}-{number}").unlink(missing_ok=True)
        self._held.pop(lease.owner, None)

    def release_all(self) -> None:
        """Release what is held: this worker ends."""
        for lease in list(self._held.values()):
            self.release(lease)

    def sweep(self, store: Store) -> None:
        """Remove the leases of finished cells, and those of workers that died days ago."""
        for path in list(self.folder.iterdir()):
            with contextlib.suppress(OSError):
                if store.has(path.name.partition("-")[0]) or self._now() - path.stat().st_mtime > _DAY:
                    path.unlink()

    def _create(self, lease: Lease) -> bool:
        content = {"owner": lease.owner, "host": socket.gethostname(), "pid": os.getpid(), "seconds": self.seconds}
        try:
            handle = os.open(lease.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w") as stream:
            json.dump(content | {"started": time.time()}, stream)
        return True

    def _is_stale(self, path: Path) -> bool:
        """Return whether a lease was not renewed in time; one that was released since is not stale."""
        try:
            with path.open() as stream:  # opened, so that a network disk requests the time of the file from its server
                touched, text = os.fstat(stream.fileno()).st_mtime, stream.read()
        except FileNotFoundError:
            return False
        try:
            seconds = float(parse_json(text)["seconds"])
        except (ValueError, KeyError, TypeError):  # its worker is about to write it, or died before it did
            seconds = self.seconds
        return self._now() - touched > seconds

    def _now(self) -> float:
        """Return the time on the clock of the file system."""
        path = self.folder / f"clock-{owner()}"
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            return os.fstat(handle).st_mtime
        finally:
            os.close(handle)
            path.unlink()


_PAUSE = 0.2


class Worker:
    """Computes the missing cells that it gets a lease of.

    Parameters
    ----------
    cells : sequence of Cell
        The missing cells.
    shared : SharedCells
    report : WorkerReport
        Counts what is settled.
    n_jobs : int
        Number of processes; they start at once, unless there is nothing to do.
    fresh : bool
        Compute each cell in a new Python.
    limits : CellLimits, optional
        What a cell may use.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        shared: SharedCells,
        report: WorkerReport,
        n_jobs: int,
        fresh: bool,
        limits: CellLimits | None = None,
    ) -> None:
        self._run_cell: Any = partial(run_cell_within, limits=limits) if limits else run_cell
        self._shared, self._report, self._n_jobs, self._fresh = shared, report, n_jobs, fresh
        self._pending = {cell.key: cell for cell in cells}
        self._running: dict[Future[Any], tuple[Cell, Lease]] = {}
        self._suspects: deque[tuple[Cell, Lease]] = deque()  # a process died with them: nothing is run next to them
        self._settled: list[str] = []
        self._beat = shared.leases.seconds / 4
        self._next_beat = self._next_pass = 0.0
        self._begin_pass()
        if cells:
            self._pool = worker_pool(n_jobs, fresh=fresh)
            self._pool.submit(os.getpid).result()  # forked now: a progress bar has a thread

    def run(self, wait_for_others: bool, idle: Callable[[int], None] | None) -> Iterator[str]:
        """Yield the labels of the cells as they are settled."""
        if not self._pending:
            return
        try:
            with _releasing_when_terminated(self._shared.leases):
                while self._pending or self._running or self._suspects:
                    is_idle = self._start_cells()
                    if self._running:
                        self._collect()
                    elif is_idle and self._pending:
                        if not wait_for_others:
                            self._report.left += len(self._pending)
                            self._pending.clear()
                        elif idle:
                            idle(len(self._pending))
                    if not self._running and self._pending:
                        time.sleep(max(0.0, self._next_pass - time.monotonic()))
                    self._renew()
                    yield from self._settled
                    self._settled.clear()
        finally:
            self._shared.leases.release_all()
            self._pool.shutdown(cancel_futures=True)

    def _begin_pass(self) -> None:
        self._pass = self._shared.acquire(self._pending, self._settle)
        self._in_work = len(self._running)  # and what this pass starts

    def _start_cells(self) -> bool:
        """Start cells in the free processes; return whether a complete pass started none while none was running."""
        if self._suspects and not self._running:
            self._submit(*self._suspects.popleft())
        while len(self._running) < self._n_jobs and not self._suspects and time.monotonic() >= self._next_pass:
            if any(lease.deaths for _, lease in self._running.values()):
                break
            began = time.monotonic()
            cell, lease = next(self._pass, (None, None))
            if cell is None or lease is None:
                is_idle, now = not self._in_work, time.monotonic()
                self._next_pass = now + max(_PAUSE, 10 * (now - began)) if is_idle or self._running else now
                self._begin_pass()
                return is_idle
            self._in_work += 1
            del self._pending[cell.key]
            if lease.deaths and self._running:
                self._suspects.append((cell, lease))
            else:
                self._submit(cell, lease)
        return False

    def _submit(self, cell: Cell, lease: Lease) -> None:
        self._running[self._pool.submit(self._run_cell, cell, self._shared.store)] = cell, lease

    def _collect(self) -> None:
        """Wait a moment for cells to finish, and settle them."""
        moment = min(self._beat, _PAUSE) if self._pending and len(self._running) < self._n_jobs else self._beat
        done, _ = wait(self._running, timeout=moment, return_when=FIRST_COMPLETED)
        killed = []
        for future in done:
            cell, lease = self._running[future]
            try:
                self._shared.outcomes[cell.key] = future.result()
            except BrokenProcessPool:
                killed.append(future)
                continue
            del self._running[future]
            self._shared.leases.release(lease)
            self._finish(cell, here=True)
        if killed:
            self._restart()

    def _restart(self) -> None:
        """Start another pool for one of which a process was killed, and run what was in it one at a time."""
        self._pool.shutdown()
        lost, self._running = list(self._running.values()), {}
        self._pool = worker_pool(self._n_jobs, fork=False, fresh=self._fresh)
        for cell, lease in lost:
            if lease.deaths and len(lost) == 1:
                reason = "its process was killed twice, perhaps for want of memory"
                self._shared.outcomes[cell.key] = give_up(cell, self._shared.store, reason)
                self._shared.leases.release(lease)
                self._finish(cell, here=True)
            else:
                self._suspects.append((cell, replace(lease, deaths=lease.deaths + 1)))

    def _settle(self, cell: Cell) -> None:
        """Take note of a cell that another worker finished, or that cannot be computed."""
        del self._pending[cell.key]
        self._finish(cell, here=False)
        self._renew()  # thousands of cells may be settled at once

    def _finish(self, cell: Cell, here: bool) -> None:
        reason = self._shared.outcomes[cell.key]
        if reason is not None:
            self._report.failed[cell.label] = reason
        elif here:
            self._report.here += 1
        else:
            self._report.elsewhere += 1
        self._settled.append(cell.label)

    def _renew(self) -> None:
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + self._beat
            self._shared.leases.renew()


@contextlib.contextmanager
def _releasing_when_terminated(leases: Leases) -> Iterator[None]:
    """Release all leases at SIGTERM, which batch systems send before they kill; then end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: Any) -> None:
        leases.release_all()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_worker(study: str | None, settings: list[str], lease: float, idle_exit: bool, retry_failed: bool) -> int:
    """Compute the missing cells of a study, or of a sweep, together with other workers; return an exit code."""
    name, cells, limits = _cells(study, settings)
    store, line, progress = Store(), StageLine(f"worker {name}"), ProgressBar(f"worker {name}")
    waiting: list[int] = []

    def wait(n_cells: int) -> None:
        if not waiting:
            print(f"waiting for {n_cells} cells that other workers compute, or that depend on these", file=sys.stderr)
        waiting.append(n_cells)

    report = run_shared(cells, store, lease, None, not idle_exit, retry_failed, progress, wait, limits)
    others = {"elsewhere": report.elsewhere, "left to other workers": report.left, "failed": len(report.failed)}
    reused = report.total - report.here - sum(others.values())
    counts = [f"{report.total} cells", f"{reused} reused", f"{report.here} computed here"]
    line.print(*counts, *(f"{number} {what}" for what, number in others.items() if number))
    print_warnings(cells, store)
    code = 0 if limits else exit_code(report.failed)  # under limits such a cell is a row of unfinished.csv
    if code:
        print("failed cells are not tried again; --retry-failed tries each once more", file=sys.stderr)
    return code


def _cells(study: str | None, settings: list[str]) -> tuple[str, list[Cell], CellLimits | None]:
    """Return the name, the cells and the limits of what the arguments describe."""
    if study is None:
        return "sweep", sweep_cells(settings, "multilab study worker"), None
    described = load_study(study)
    check_study(described)
    return described.name, all_cells(described), described.limits
