"""The loop of a worker: a pool, and a lease for each cell in it.

The process of the loop computes nothing itself. It renews the leases, which a thread next to the computation could not
do: SciPy's LAPACK lets no other thread run, for minutes if the matrix is large.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from multilab.experiments.cells import Cell
from multilab.experiments.leases import Lease, Leases
from multilab.experiments.limited import run_cell_within
from multilab.experiments.limits import CellLimits
from multilab.experiments.running import give_up, run_cell
from multilab.experiments.shared_cells import SharedCells, WorkerReport
from multilab.experiments.workers import worker_pool

__all__ = ["Worker"]

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


@contextmanager
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
