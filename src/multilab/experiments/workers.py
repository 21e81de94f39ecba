"""Run cells in parallel: one failed cell does not stop the others, and a killed run continues where it was."""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

from multilab.datasets import prepared_meta
from multilab.experiments.cell_processes import begin_worker
from multilab.experiments.cells import Cell
from multilab.experiments.errors import ExperimentError
from multilab.experiments.limited import run_cell_within
from multilab.experiments.limits import CellLimits
from multilab.experiments.running import run_cell
from multilab.experiments.store import Store

if TYPE_CHECKING:  # imported where it is needed: most stages of a second `dvc repro` have nothing to run
    from concurrent.futures import Future, ProcessPoolExecutor

__all__ = ["expected_effort", "jobs", "parallel_map", "run_cells", "side_by_side", "worker_pool"]

T = TypeVar("T")
R = TypeVar("R")


def jobs() -> int:
    """Return how many cells run at once: ``MULTILAB_JOBS``, else the cores this process may use."""
    named = os.environ.get("MULTILAB_JOBS")
    if named and not named.isdecimal():
        raise ExperimentError(f"MULTILAB_JOBS must be a whole number, not {named!r}")
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
    With ``limits`` first splits run first: where one passes a limit, the others of its data set are not tried.
    """
    store.sweep()
    missing = list({cell.key: cell for cell in cells if not store.has(cell.key)}.values())
    # The longest first, so that no worker is left alone with one at the end.
    missing.sort(key=lambda cell: expected_effort(cell.split_ref.dataset), reverse=True)
    if limits:
        missing.sort(key=lambda cell: (cell.kind != "scores", cell.split_ref.split))
    show = progress or (lambda stream, _: stream)
    alone = [cell for cell in missing if cell.alone]
    shared = [cell for cell in missing if not cell.alone]
    parallel = side_by_side(functools.partial(_outcome, store=store, limits=limits), shared, n_jobs or jobs())
    done = show(itertools.chain(parallel, _one_by_one(alone, store, limits)), len(missing))
    return {label: reason for label, reason in done if reason is not None}


@functools.cache
def expected_effort(dataset: str) -> int:
    """Return roughly how long cells of a dataset take: most methods are quadratic in rows and linear in labels."""
    meta = prepared_meta(dataset) or {}
    return meta.get("instances", 0) ** 2 * meta.get("labels", 0)


def _outcome(cell: Cell, store: Store, limits: CellLimits | None) -> tuple[str, str | None]:
    return cell.label, run_cell_within(cell, store, limits) if limits else run_cell(cell, store)


def side_by_side(work: Callable[[T], R], items: Sequence[T], n_jobs: int) -> Iterator[R]:
    """Return what ``work`` makes of the items, in the order they are finished; the workers start at once.

    At once, and not with the first result, because a progress bar that starts in between has a thread, and processes
    with threads are better not forked.
    """
    workers = min(n_jobs, len(items))
    if workers <= 1:
        return map(work, items)

    pool = worker_pool(workers)
    return _finished(pool, [pool.submit(work, item) for item in items])


def worker_pool(n_workers: int, fork: bool = True, fresh: bool = False) -> ProcessPoolExecutor:
    """Return a pool of processes that end with this one; with ``fresh`` each item gets a new Python.

    A forked worker is there in milliseconds, where a new Python takes half a second, but only Linux can do it, and only
    safely in a process without threads.
    """
    context = get_context("fork" if fork and not fresh and sys.platform == "linux" else "spawn")
    return ProcessPoolExecutor(n_workers, context, begin_worker, max_tasks_per_child=1 if fresh else None)


def parallel_map(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return what ``work`` makes of the items, in their order; made in parallel, each worker its share of them."""
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
    try:
        yield from (future.result() for future in as_completed(futures))
    except BrokenProcessPool:
        raise ExperimentError(
            "a worker process was killed, perhaps for want of memory; what is finished is kept: run again, with "
            "MULTILAB_JOBS=1 if it happens again"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _one_by_one(cells: list[Cell], store: Store, limits: CellLimits | None) -> Iterator[tuple[str, str | None]]:
    if cells:
        with worker_pool(1, fresh=True) as pool:
            yield from (pool.submit(_outcome, cell, store, limits).result() for cell in cells)
