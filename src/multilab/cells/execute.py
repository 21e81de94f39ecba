"""Execution of cells: in parallel, within limits of time and memory, until a deadline.

:func:`run_cells` runs what is missing on the engine of the command (:mod:`multilab.cells.engines`): on the
workers of a cluster, or here in a pool of processes. A cell that has limits, or a deadline, gets a process of its own,
because a worker of a pool cannot be stopped alone. Workers end with the process that started them: a killed run leaves
nothing behind, and the next one continues where it was.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from multilab.cells.cell import Cell, with_reads
from multilab.cells.checks import check_met
from multilab.cells.engines import current
from multilab.cells.errors import ExperimentError
from multilab.cells.process import CellProcess, expected_effort, run_cell_within, worker_pool
from multilab.cells.settings import CellLimits
from multilab.cells.store import Store

if TYPE_CHECKING:  # imported where they are needed: most stages of a second `dvc repro` have nothing to run
    from concurrent.futures import Future, ProcessPoolExecutor

__all__ = [
    "Outcome",
    "Results",
    "Unit",
    "compute_within",
    "jobs",
    "parallel_map",
    "run_cells",
    "run_cells_within",
    "run_units_within",
    "side_by_side",
    "slots",
]


class Unit(Protocol):
    """A piece of work with a result of its own: a cell, a unit of an analysis, or a fit of `AutoMultiLabel`."""

    @property
    def key(self) -> str:
        """Name of its result."""

    @property
    def label(self) -> str:
        """Name in messages."""


class Results(Protocol):
    """Where the results of units are: the store of cells, or the folder of one call."""

    def has(self, key: str) -> bool:
        """Return whether the result of a unit is there."""


T = TypeVar("T")
R = TypeVar("R")


def slots() -> int:
    """Return how many cells run at once: :func:`jobs`, or the capacity of the engine's workers."""
    if (engine := current()).is_local:
        return jobs()
    from multilab.cells.dask_engine import slots

    return slots(engine)


def jobs() -> int:
    """Return how many cells run at once: ``MULTILAB_JOBS``, else the cores this process may use."""
    named = os.environ.get("MULTILAB_JOBS")
    if named and not named.isdecimal():
        raise ExperimentError(f"MULTILAB_JOBS must be a whole number, not {named!r}")
    # Not the number of cores of the machine: `taskset` or a batch system may allow fewer.
    return max(1, int(named)) if named else len(os.sched_getaffinity(0))


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    n_jobs: int | None = None,
    progress: Callable[[Iterable[Any], int], Iterable[Any]] | None = None,
    limits: CellLimits | None = None,
) -> dict[str, str]:
    """Run the cells that are missing and return the reasons of those that failed, by label.

    One failed cell does not stop the others. Cells marked ``alone`` run one after another, each in a fresh process.
    With ``limits``, first splits run first: if one exceeds a limit, the others of its data set are not tried.
    """
    store.sweep()
    check_met(with_reads(cells), store, compute_within)
    missing = _missing(cells, store)
    # The longest first, so that no worker is left alone with one at the end.
    missing.sort(key=lambda cell: expected_effort(cell.split_ref.dataset), reverse=True)
    if limits:
        # Base scores first, because others read them. The sort is stable: within a group the longest stay first.
        missing.sort(key=lambda cell: (cell.kind != "scores", cell.split_ref.split))
    work = functools.partial(run_cell_within, limits=limits) if limits else _run_cell
    if missing and not (engine := current()).is_local:
        from multilab.cells.dask_engine import finished

        done = finished(missing, store, engine, work, limits)
    else:
        alone = [cell for cell in missing if cell.alone]
        shared = [cell for cell in missing if not cell.alone]
        run = functools.partial(_labelled, store=store, work=work)
        # Called before `progress`, whose bar starts a thread: processes with threads are better not forked.
        done = itertools.chain(side_by_side(run, shared, n_jobs or jobs()), _one_by_one(run, alone))
    shown = progress(done, len(missing)) if progress else done
    return {label: reason for label, reason in shown if reason is not None}


@dataclass
class Outcome:
    """Outcome of cells that had a deadline.

    Attributes
    ----------
    computed : int
        Cells that were fitted now; the others were stored, failed or were stopped.
    failures : dict of str to str
        Reason by label of the cell.
    stopped : bool
        Whether the deadline came first.
    seconds : float
        Wall time.
    """

    computed: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    seconds: float = 0.0


def run_cells_within(
    cells: Sequence[Cell],
    store: Store,
    seconds: float,
    n_jobs: int | None = None,
    tick: Callable[[], object] | None = None,
) -> Outcome:
    """Run the cells that are missing in the store, in their order, for at most some seconds.

    Parameters
    ----------
    cells : sequence of Cell
    store : Store
        A cell that finishes is kept, also when later ones are stopped.
    seconds : float
        Wall time for all of them together; processes still running then are killed.
    n_jobs : int, optional
        Cells at the same time; default :func:`jobs`.
    tick : callable, optional
        Called after every cell, and at least every half second.
    """
    store.sweep()
    began = time.monotonic()
    check_met(with_reads(cells), store, compute_within, seconds / 10)
    missing, left = _missing(cells, store), seconds - (time.monotonic() - began)
    if (engine := current()).is_local or not missing or left <= 0:
        return run_units_within(missing, store, left, n_jobs, tick, _run_cell)
    from multilab.cells.dask_engine import finished

    outcome, began = Outcome(), time.monotonic()
    for label, reason in finished(missing, store, engine, _run_cell, seconds=left, tick=tick):
        if reason is None:
            outcome.computed += 1
        else:
            outcome.failures[label] = reason
    outcome.stopped = outcome.computed + len(outcome.failures) < len(missing)
    outcome.seconds = time.monotonic() - began
    return outcome


def run_units_within(
    units: Sequence[Unit],
    results: Results,
    seconds: float,
    n_jobs: int | None,
    tick: Callable[[], object] | None,
    work: Callable[[Any, Any], str | None],
) -> Outcome:
    """Run the units that have no result, on this machine, each in a process of its own, for at most some seconds.

    Parameters
    ----------
    units : sequence of Unit
    results : Results
    seconds, n_jobs, tick
        See :func:`run_cells_within`.
    work : callable
        Called in the process with a unit and the results; returns why the unit failed, or ``None``.
    """
    from multiprocessing.connection import wait

    waiting = _missing(units, results)
    began, outcome = time.monotonic(), Outcome()
    running: dict[Any, CellProcess] = {}
    try:
        while waiting or running:
            left = seconds - (time.monotonic() - began)
            if left <= 0:
                outcome.stopped = True
                break
            while waiting and len(running) < (n_jobs or jobs()):
                process = CellProcess(waiting.pop(0), results, work=work)
                running[process.sentinel] = process
            # At most half a second, so that `tick` is called as often as promised.
            for sentinel in wait(list(running), timeout=min(0.5, left)):
                process = running.pop(sentinel)
                reason = process.reason()
                if reason is None:
                    outcome.computed += 1
                else:
                    outcome.failures[process.cell.label] = reason
            if tick:
                tick()
    finally:
        for process in running.values():
            process.kill()
    outcome.seconds = time.monotonic() - began
    return outcome


def compute_within(cells: Sequence[Cell], store: Store, seconds: float) -> None:
    """Compute cells on this machine for at most some seconds; what fails or is stopped is not in the store."""
    store.sweep()
    run_units_within(cells, store, seconds, None, None, _run_cell)


def _run_cell(cell: Cell, store: Store) -> str | None:
    from multilab.cells.running import run_cell

    return run_cell(cell, store)


def _missing(units: Iterable[Any], results: Results) -> list[Any]:
    """Return what has no result, each once; import what computes it before workers are forked, and all import it."""
    missing = list({unit.key: unit for unit in units if not results.has(unit.key)}.values())
    if missing:
        import multilab.cells.running  # noqa: F401

    return missing


def _labelled(cell: Cell, store: Store, work: Callable[[Cell, Store], str | None]) -> tuple[str, str | None]:
    return cell.label, work(cell, store)


def _one_by_one(run: Callable[[Cell], R], cells: Sequence[Cell]) -> Iterator[R]:
    if cells:
        with worker_pool(1, fresh=True) as pool:
            yield from (pool.submit(run, cell).result() for cell in cells)


# Pools of workers


def side_by_side(work: Callable[[T], R], items: Sequence[T], n_jobs: int) -> Iterator[R]:
    """Return the results of ``work`` for the items, in the order they finish; the workers start at once.

    At once, and not with the first result, because a progress bar that starts in between has a thread, and processes
    with threads are better not forked.
    """
    workers = min(n_jobs, len(items))
    if workers <= 1:
        return map(work, items)

    pool = worker_pool(workers)
    return _finished(pool, [pool.submit(work, item) for item in items])


def parallel_map(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the results of ``work`` for the items, in their order; each worker computes a share of them."""
    n_jobs = min(jobs(), len(items)) or 1
    shares = [(first, items[first::n_jobs]) for first in range(n_jobs)]  # `work` is sent once to a worker
    results: list[Any] = [None] * len(items)
    for first, made in side_by_side(functools.partial(_share, work), shares, n_jobs):
        results[first::n_jobs] = made
    return results


def _share(work: Callable[[T], R], share: tuple[int, Sequence[T]]) -> tuple[int, list[R]]:
    first, items = share
    return first, [work(item) for item in items]


def _finished(pool: ProcessPoolExecutor, futures: list[Future[R]]) -> Iterator[R]:
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool

    try:
        yield from (future.result() for future in as_completed(futures))
    except BrokenProcessPool:
        raise ExperimentError(
            "a worker process was killed, perhaps out of memory; finished cells are stored: run again, with "
            "MULTILAB_JOBS=1 if it happens again"
        ) from None
    finally:
        # Otherwise an error or Ctrl-C would wait until the whole queue is computed.
        pool.shutdown(cancel_futures=True)
