"""Run the missing cells of a store together with other workers, on this machine and on others.

Cells, pool and store are those of :mod:`multilab.experiments.workers`; what is added is the lease that a worker holds
on each cell it computes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from multilab.experiments.cells import Cell
from multilab.experiments.leases import Leases
from multilab.experiments.limits import CellLimits
from multilab.experiments.shared_cells import SharedCells, WorkerReport, with_reads
from multilab.experiments.store import Store
from multilab.experiments.worker_loop import Worker
from multilab.experiments.workers import jobs

__all__ = ["run_shared"]


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
        Processes of this worker; default as in :func:`multilab.experiments.workers.jobs`.
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
