"""What a worker knows of the cells of a store to which other workers write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from multilab.experiments.cells import Cell
from multilab.experiments.leases import Lease, Leases
from multilab.experiments.running import give_up
from multilab.experiments.store import Store
from multilab.experiments.workers import expected_effort

__all__ = ["DEATHS", "SharedCells", "WorkerReport", "with_reads"]

DEATHS = 5
"""A cell is recorded as failed when this number of workers died while they computed it."""


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


def with_reads(cells: Iterable[Cell]) -> list[Cell]:
    """Return cells and those they read, each once, a cell before those that read it."""
    ordered: dict[str, Cell] = {}

    def add(cell: Cell) -> None:
        if cell.key not in ordered:
            for read in cell.reads:
                add(read)
            ordered[cell.key] = cell

    for cell in cells:
        add(cell)
    return list(ordered.values())


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
