"""Run cells until a deadline: a process per cell, killed when the time is over."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from multilab.experiments.cells import Cell
from multilab.experiments.running import run_cell
from multilab.experiments.store import Store
from multilab.experiments.workers import begin_worker, jobs

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

__all__ = ["Outcome", "run_cells_within"]

_TICK = 0.5


@dataclass
class Outcome:
    """What became of some cells.

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
        Cells at the same time; default :func:`multilab.experiments.workers.jobs`.
    tick : callable, optional
        Called after every cell, and at least every half second.

    Returns
    -------
    Outcome
    """
    store.sweep()
    began, outcome = time.monotonic(), Outcome()
    running: dict[Any, tuple[Cell, BaseProcess, Connection]] = {}
    waiting = list({cell.key: cell for cell in cells if not store.has(cell.key)}.values())
    try:
        while waiting or running:
            left = seconds - (time.monotonic() - began)
            if left <= 0:
                outcome.stopped = True
                break
            while waiting and len(running) < (n_jobs or jobs()):
                cell = waiting.pop(0)
                process, connection = _start(cell, store)
                running[process.sentinel] = (cell, process, connection)
            for sentinel in wait(list(running), timeout=min(_TICK, left)):
                cell, process, connection = running.pop(sentinel)
                reason = _reason(process, connection)
                if reason is None:
                    outcome.computed += 1
                else:
                    outcome.failures[cell.label] = reason
            if tick:
                tick()
    finally:
        for _, process, _ in running.values():
            process.kill()
        for _, process, connection in running.values():
            process.join()
            connection.close()
    outcome.seconds = time.monotonic() - began
    return outcome


def _start(cell: Cell, store: Store) -> tuple[BaseProcess, Connection]:
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process: Any = context.Process(target=_work, args=(cell, store, theirs))  # type: ignore[attr-defined]
    process.start()
    theirs.close()
    return process, ours


def _work(cell: Cell, store: Store, connection: Connection) -> None:
    begin_worker()
    try:
        connection.send(run_cell(cell, store))
    except OSError as error:  # a full disk
        connection.send(error)


def _reason(process: BaseProcess, connection: Connection) -> str | None:
    """Return why a finished process has no result, None if it has one; raise a failure of the store."""
    process.join()
    try:
        result = connection.recv()
    except EOFError:
        return f"its process was killed (exit code {process.exitcode}), perhaps for want of memory"
    finally:
        connection.close()
    if isinstance(result, OSError):
        raise result
    return result
