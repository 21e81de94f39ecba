"""Cells run: in parallel, within limits of time and memory, until a deadline.

:func:`run_cells` runs what is missing on the engine of the command (:mod:`multilab.experiments.engines`): on the
workers of a cluster, or here in a pool of processes. A cell that has limits, or a deadline, gets a process of its own,
because a worker of a pool cannot be stopped alone. Workers end with the process that started them: a killed run leaves
nothing behind, and the next one continues where it was.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any, TypeVar

from multilab.datasets import prepared_meta
from multilab.experiments.cells import Cell, split_refs
from multilab.experiments.engines import current
from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store
from multilab.experiments.study import CellLimits

if TYPE_CHECKING:  # imported where they are needed: most stages of a second `dvc repro` have nothing to run
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.connection import Connection

__all__ = [
    "Outcome",
    "expected_effort",
    "first_split",
    "jobs",
    "known_to_pass",
    "parallel_map",
    "run_cell_within",
    "run_cells",
    "run_cells_within",
    "side_by_side",
    "slots",
    "worker_pool",
]

T = TypeVar("T")
R = TypeVar("R")


def slots() -> int:
    """Return how many cells run at once: :func:`jobs`, or what the workers of the engine take."""
    if (engine := current()).is_local:
        return jobs()
    from multilab.experiments import dask_engine

    return dask_engine.slots(engine)


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
    missing = _missing(cells, store)
    if missing and not (engine := current()).is_local:
        from multilab.experiments import dask_engine

        return dask_engine.run_cells(missing, store, engine, progress, limits)
    # The longest first, so that no worker is left alone with one at the end.
    missing.sort(key=lambda cell: expected_effort(cell.split_ref.dataset), reverse=True)
    if limits:
        missing.sort(key=lambda cell: (cell.kind != "scores", cell.split_ref.split))
    alone = [cell for cell in missing if cell.alone]
    shared = [cell for cell in missing if not cell.alone]
    run = functools.partial(_run_one, store=store, limits=limits)
    done = itertools.chain(side_by_side(run, shared, n_jobs or jobs()), _one_by_one(run, alone))
    shown = progress(done, len(missing)) if progress else done
    return {label: reason for label, reason in shown if reason is not None}


@dataclass
class Outcome:
    """What became of cells that had a deadline.

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
    cells: Sequence[Any],
    store: Any,
    seconds: float,
    n_jobs: int | None = None,
    tick: Callable[[], object] | None = None,
    work: Callable[[Any, Any], str | None] | None = None,
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
    work : callable, optional
        What a process does with a cell and the store, and that returns why it failed: `run_cell` by default. Other work
        may have units and a store of its own; the units need ``key`` and ``label``, the store ``has`` and ``sweep``.
    """
    from multiprocessing.connection import wait

    store.sweep()
    if not (engine := current()).is_local:
        from multilab.experiments import dask_engine

        return dask_engine.run_cells_within(_missing(cells, store), store, engine, seconds, tick)
    began, outcome = time.monotonic(), Outcome()
    running: dict[Any, _CellProcess] = {}
    waiting = _missing(cells, store)
    try:
        while waiting or running:
            left = seconds - (time.monotonic() - began)
            if left <= 0:
                outcome.stopped = True
                break
            while waiting and len(running) < (n_jobs or jobs()):
                process = _CellProcess(waiting.pop(0), store, work=work)
                running[process.sentinel] = process
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


def _missing(cells: Iterable[Any], store: Any) -> list[Any]:
    """Return the cells that are not in the store, each once."""
    missing = list({cell.key: cell for cell in cells if not store.has(cell.key)}.values())
    if missing:
        import multilab.experiments.running  # noqa: F401  before workers are forked, or each would import it again
    return missing


@functools.cache
def expected_effort(dataset: str) -> int:
    """Return roughly how long cells of a dataset take: most methods are quadratic in rows and linear in labels."""
    meta = prepared_meta(dataset) or {}
    return meta.get("instances", 0) ** 2 * meta.get("labels", 0)


def _run_one(cell: Cell, store: Store, limits: CellLimits | None) -> tuple[str, str | None]:
    from multilab.experiments.running import run_cell

    return cell.label, run_cell_within(cell, store, limits) if limits else run_cell(cell, store)


def _one_by_one(run: Callable[[Cell], R], cells: Sequence[Cell]) -> Iterator[R]:
    if cells:
        with worker_pool(1, fresh=True) as pool:
            yield from (pool.submit(run, cell).result() for cell in cells)


# Pools of workers


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
    from concurrent.futures import ProcessPoolExecutor

    context = get_context("fork" if fork and not fresh and sys.platform == "linux" else "spawn")
    return ProcessPoolExecutor(n_workers, context, _begin_worker, max_tasks_per_child=1 if fresh else None)


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
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool

    try:
        yield from (future.result() for future in as_completed(futures))
    except BrokenProcessPool:
        raise ExperimentError(
            "a worker process was killed, perhaps for want of memory; what is finished is kept: run again, with "
            "MULTILAB_JOBS=1 if it happens again"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Die at once when interrupted, and with the parent: a worker of a killed parent would wait for work for ever."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


# A process of one cell, and the limits of a study

_WALL = 20
"""A process that computes nothing is killed after this multiple of its processor time."""

_NO_MEMORY = re.compile(r"\bMemoryError\b|bad_alloc|bad_malloc|bad allocation", re.IGNORECASE)
"""In the reason of a failed allocation: Python's error, also behind the name of a cell that was read, and C++'s."""


def run_cell_within(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Run one cell in a separate process; return ``None``, or why it has no result.

    A cell that passed these limits, or wider ones, before is not tried again, and neither is a split of a data set
    whose first split did. The missing cells that it reads are run first, each within its own limits; where one has no
    result, this cell has none.
    """
    from multilab.experiments.running import give_up

    if store.has(cell.key):
        return None
    if failed := _failed_read(cell, store, limits):
        return give_up(cell, store, failed)
    if known := known_to_pass(cell, store, limits):
        return known
    used = functools.partial(give_up, cell, store, limits=asdict(limits))
    began, most = time.monotonic(), limits.seconds_of(cell)
    process = _CellProcess(cell, store, most, limits.gigabytes)
    try:
        ended = process.join(_WALL * most)
        reason = process.reason() if ended else f"no result after {time.monotonic() - began:.0f} s"
    finally:
        if process.exit_code is None:
            process.kill()
    if process.exit_code == -signal.SIGXCPU:
        reason = f"more than {most:g} s of processor time"
    elif reason is not None and _NO_MEMORY.search(reason):
        reason = f"more than {limits.gigabytes:g} GiB of memory"
    elif reason is None or ended:
        return reason
    return used(reason, seconds=time.monotonic() - began)


def known_to_pass(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Return why a cell is not tried within limits: it passed them, or the first split of its data set did."""
    if known := _passed(cell, store, limits):
        return known
    if (first := first_split(cell)) is not None and (known := _passed(first, store, limits)):
        from multilab.experiments.running import give_up

        reason = f"not run: on split 0 {known}"
        return give_up(cell, store, reason, limits=asdict(limits), seconds=0.0)
    return None


def _failed_read(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Return which of the cells that a cell reads has no result, and why; run those that are missing."""
    for reason_of in (_passed, run_cell_within):  # nothing is run if one is known to pass a limit
        for read in cell.reads:
            if (reason := reason_of(read, store, limits)) is not None:
                return f"{read.label} failed: {reason}"
    return None


def first_split(cell: Cell) -> Cell | None:
    """Return the cell of the first split, None for that one itself and for inner folds."""
    ref = cell.split_ref
    if ref.split < 1 or ref.repetition or ref.inner is not None:
        return None
    return replace(cell, split_ref=split_refs(ref.dataset, json.loads(ref.protocol))[0])


def _passed(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Return why a cell did not finish within these limits or wider ones."""
    record: dict[str, Any] = store.failure(cell.key) or {}
    passed = record.get("limits")
    if not passed or passed["seconds"] < limits.seconds or passed["gigabytes"] < limits.gigabytes:
        return None
    return str(record["reason"])


class _CellProcess:
    """A process that runs one cell; it starts at once.

    Parameters
    ----------
    cell : Cell
    store : Store
    seconds, gigabytes : float, optional
        Processor time and memory after which the system stops it (POSIX only).
    work : callable, optional
        See :func:`run_cells_within`.
    """

    def __init__(
        self,
        cell: Any,
        store: Any,
        seconds: float | None = None,
        gigabytes: float | None = None,
        work: Callable[[Any, Any], str | None] | None = None,
    ) -> None:
        self.cell = cell
        context = get_context("fork" if sys.platform == "linux" else "spawn")
        self._connection, theirs = context.Pipe(duplex=False)
        arguments = (cell, store, theirs, seconds, gigabytes, work)
        self._process: Any = context.Process(target=_work, args=arguments)  # type: ignore[attr-defined]
        self._process.start()
        theirs.close()
        self.sentinel: Any = self._process.sentinel

    @property
    def exit_code(self) -> int | None:
        """How the process ended, minus the number of the signal that killed it; None while it runs."""
        return self._process.exitcode

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the process to end; return whether it has ended."""
        self._process.join(timeout)
        return self._process.exitcode is not None

    def reason(self) -> str | None:
        """Return why the finished process has no result, None if it has one.

        Raises
        ------
        OSError
            If the store could not be written to.
        """
        self._process.join()
        try:
            result = self._connection.recv()
        except EOFError:
            return f"its process was killed (exit code {self._process.exitcode}), perhaps for want of memory"
        finally:
            self._connection.close()
        if isinstance(result, OSError):
            raise result
        return result

    def kill(self) -> None:
        """Stop the process at once."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _work(
    cell: Any,
    store: Any,
    connection: Connection,
    seconds: float | None,
    gigabytes: float | None,
    work: Callable[[Any, Any], str | None] | None,
) -> None:
    from multilab.experiments.running import run_cell

    _begin_worker()
    if sys.platform != "win32":
        _limit(seconds, gigabytes)
    try:
        connection.send((work or run_cell)(cell, store))
    except OSError as error:  # a full disk
        connection.send(error)


def _limit(seconds: float | None, gigabytes: float | None) -> None:
    """Let the system stop this process when it has used more."""
    import resource

    if seconds is not None:
        full_seconds = math.ceil(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (full_seconds, full_seconds + 5))
    if gigabytes is not None:
        most = _data_bytes() + int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data_bytes() -> int:
    """Return the size of this process's own writable memory, 0 where the system has no such figure."""
    try:
        with open("/proc/self/status") as stream:
            return next(int(line.split()[1]) * 1024 for line in stream if line.startswith("VmData:"))
    except (OSError, StopIteration):
        return 0
