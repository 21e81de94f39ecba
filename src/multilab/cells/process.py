"""A process for one cell, with the limits of time and memory of a study; pools of processes."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

from multilab.cells.cell import Cell, split_refs
from multilab.cells.settings import CellLimits
from multilab.cells.store import Store
from multilab.datasets import prepared_meta

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

__all__ = ["CellProcess", "expected_effort", "first_split", "reason_not_to_try", "run_cell_within", "worker_pool"]

_WALL = 20
"""A process that computes nothing is killed after this multiple of its processor time."""

_NO_MEMORY = re.compile(r"\bMemoryError\b|bad_alloc|bad_malloc|bad allocation", re.IGNORECASE)
"""Texts by which a failed allocation is recognised, from Python and C++.

Libraries turn the C++ exception into a RuntimeError or an error of their own: only its text says what it was.
"""


def run_cell_within(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Run one cell in a separate process; return ``None``, or why it has no result.

    A cell that exceeded these limits, or wider ones, before is not tried again, nor is a split of a data set
    whose first split did. The missing cells that it reads are run first, each within its own limits; where one has no
    result, this cell has none.
    """
    from multilab.cells.running import give_up

    if store.has(cell.key):
        return None
    if failed := _failed_read(cell, store, limits):
        return give_up(cell, store, failed)
    if reason := reason_not_to_try(cell, store, limits):
        return reason
    used = functools.partial(give_up, cell, store, limits=asdict(limits))
    began, most = time.monotonic(), limits.seconds_of(cell)
    process = CellProcess(cell, store, most, limits.gigabytes)
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
    # `run_cell` records failures. A process killed by something else leaves no record: its cell is tried again.
    elif reason is None or ended:
        return reason
    return used(reason, seconds=time.monotonic() - began)


def reason_not_to_try(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Return why a cell is not tried within limits: it, or the first split of its data set, exceeded them before."""
    if reason := _exceeded(cell, store, limits):
        return reason
    # The splits of a data set cost about the same: where the first one exceeds the limits the others would too, and a
    # study would spend most of its time on cells without a result.
    if (first := first_split(cell)) is not None and (reason := _exceeded(first, store, limits)):
        from multilab.cells.running import give_up

        record = {"limits": asdict(limits), "seconds": 0.0, "first_split": reason}
        return give_up(cell, store, f"not run: on split 0 {reason}", **record)
    return None


def _failed_read(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Return which of the cells that a cell reads has no result, and why; run those that are missing."""
    for reason_of in (_exceeded, run_cell_within):  # nothing is run if one is known to exceed a limit
        for read in cell.reads:
            if (reason := reason_of(read, store, limits)) is not None:
                return f"{read.label} failed: {reason}"
    return None


def first_split(cell: Cell) -> Cell | None:
    """Return the cell of the first split, None for the first split itself and for inner folds."""
    ref = cell.split_ref
    if ref.split < 1 or ref.repetition or ref.inner is not None:
        return None
    return replace(cell, split_ref=split_refs(ref.dataset, json.loads(ref.protocol))[0])


def _exceeded(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Return why a cell did not finish within these limits or wider ones, None if that is not known."""
    record: dict[str, Any] = store.failure(cell.key) or {}
    tried = record.get("limits")
    # one that failed within narrower limits may finish within these
    if not tried or tried["seconds"] < limits.seconds or tried["gigabytes"] < limits.gigabytes:
        return None
    return str(record["reason"])


class CellProcess:
    """A process that runs one cell; it starts at once.

    Parameters
    ----------
    cell : Cell
    store : Store
    seconds, gigabytes : float, optional
        Processor time and memory after which the system stops it (POSIX only).
    work : callable, optional
        See `multilab.cells.execute.run_units_within`; by default `run_cell`.
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
        # A new Python with its imports would take half a second for each cell (decision 10).
        context = get_context("fork" if sys.platform == "linux" else "spawn")
        self._connection, theirs = context.Pipe(duplex=False)
        arguments = (cell, store, theirs, seconds, gigabytes, work)
        self._process: Any = context.Process(target=_work, args=arguments)  # type: ignore[attr-defined]
        self._process.start()
        # If this end stayed open here, `reason` would wait forever for a child that was killed.
        theirs.close()
        self.sentinel: Any = self._process.sentinel

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process, or minus the number of the signal that killed it; None while it runs."""
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
            return f"its process was killed (exit code {self._process.exitcode}), perhaps out of memory"
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
    from multilab.cells.running import run_cell

    begin_worker()
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
        # SIGXCPU, at the first number, tells the parent why it died; the second kills what ignores the signal.
        resource.setrlimit(resource.RLIMIT_CPU, (full_seconds, full_seconds + 5))
    if gigabytes is not None:
        # A forked process starts with its parent's memory, which does not count as the cell's.
        most = _data_bytes() + int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data_bytes() -> int:
    """Return the size of this process's own writable memory, 0 where the system has no such figure."""
    try:
        with open("/proc/self/status") as stream:
            return next(int(line.split()[1]) * 1024 for line in stream if line.startswith("VmData:"))
    except (OSError, StopIteration):
        return 0


def worker_pool(n_workers: int, fork: bool = True, fresh: bool = False) -> ProcessPoolExecutor:
    """Return a pool of processes that end with this one; with ``fresh`` each item gets a new Python.

    A forked worker is there in milliseconds, where a new Python takes half a second, but only Linux can do it, and only
    safely in a process without threads.
    """
    from concurrent.futures import ProcessPoolExecutor

    context = get_context("fork" if fork and not fresh and sys.platform == "linux" else "spawn")
    return ProcessPoolExecutor(n_workers, context, begin_worker, max_tasks_per_child=1 if fresh else None)


def begin_worker() -> None:
    """End the worker when it is interrupted or its parent dies; otherwise it would wait for work forever."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        # `sys.exit` would end this thread only.
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@functools.cache
def expected_effort(dataset: str) -> int:
    """Return the rough effort of a dataset's cells: most methods are quadratic in rows and linear in labels."""
    meta = prepared_meta(dataset) or {}
    return meta.get("instances", 0) ** 2 * meta.get("labels", 0)
