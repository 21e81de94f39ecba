"""Run cells until a deadline: a process per cell, killed when the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from multilab.experiments.cell_processes import CellProcess
from multilab.experiments.cells import Cell
from multilab.experiments.store import Store
from multilab.experiments.workers import jobs

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
    running: dict[Any, CellProcess] = {}
    waiting = list({cell.key: cell for cell in cells if not store.has(cell.key)}.values())
    try:
        while waiting or running:
            left = seconds - (time.monotonic() - began)
            if left <= 0:
                outcome.stopped = True
                break
            while waiting and len(running) < (n_jobs or jobs()):
                process = CellProcess(waiting.pop(0), store)
                running[process.sentinel] = process
            for sentinel in wait(list(running), timeout=min(_TICK, left)):
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
