"""Run a cell within the limits of its study."""

from __future__ import annotations

import json
import re
import signal
import time
from dataclasses import asdict, replace
from typing import Any

from multilab.experiments.cell_processes import CellProcess
from multilab.experiments.cells import Cell, split_refs
from multilab.experiments.limits import CellLimits
from multilab.experiments.running import give_up
from multilab.experiments.store import Store

__all__ = ["run_cell_within"]

_WALL = 20  # a process that computes nothing is killed after this multiple of its processor time

_NO_MEMORY = re.compile(r"\bMemoryError\b|bad_alloc|bad_malloc|bad allocation", re.IGNORECASE)
"""In the reason of a failed allocation: Python's error, also behind the name of a cell that was read, and C++'s."""


def run_cell_within(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Run one cell in a separate process; return ``None``, or why it has no result.

    A cell that passed these limits, or wider ones, before is not tried again, and neither is a split of a data set
    whose first split did. The missing cells that it reads are run first, each within its own limits; where one has no
    result, this cell has none.
    """
    if store.has(cell.key):
        return None
    if failed := _failed_read(cell, store, limits):
        return give_up(cell, store, failed)
    if known := _passed(cell, store, limits):
        return known
    if (first := _first_split(cell)) is not None and (known := _passed(first, store, limits)):
        return _unfinished(cell, store, limits, f"not run: on split 0 {known}", 0.0)
    began = time.monotonic()
    process = CellProcess(cell, store, limits.seconds_of(cell), limits.gigabytes)
    try:
        ended = process.join(_WALL * limits.seconds_of(cell))
        reason = process.reason() if ended else f"no result after {time.monotonic() - began:.0f} s"
    finally:
        if process.exit_code is None:
            process.kill()
    seconds = time.monotonic() - began
    if process.exit_code == -signal.SIGXCPU:
        reason = f"more than {limits.seconds_of(cell):g} s of processor time"
    elif reason is not None and _NO_MEMORY.search(reason):
        reason = f"more than {limits.gigabytes:g} GiB of memory"
    elif reason is None or ended:
        return reason
    return _unfinished(cell, store, limits, reason, seconds)


def _failed_read(cell: Cell, store: Store, limits: CellLimits) -> str | None:
    """Return which of the cells that a cell reads has no result, and why; run those that are missing."""
    for reason_of in (_passed, run_cell_within):  # nothing is run if one is known to pass a limit
        for read in cell.reads:
            if (reason := reason_of(read, store, limits)) is not None:
                return f"{read.label} failed: {reason}"
    return None


def _first_split(cell: Cell) -> Cell | None:
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


def _unfinished(cell: Cell, store: Store, limits: CellLimits, reason: str, seconds: float) -> str:
    return give_up(cell, store, reason, limits=asdict(limits), seconds=seconds)
