"""Fits of a comparison: cheap methods first, each with a limit, inside the budget."""

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from multilab.cells.cell import with_reads
from multilab.cells.checks import check_met
from multilab.cells.engines import current
from multilab.cells.execute import Outcome, Results, compute_within, run_cells_within, run_units_within
from multilab.comparison.plan import MethodRun, duration, refused_for_memory

__all__ = ["run_methods"]

_TOLERANCE = 4.0
"""A method is stopped after this many times its estimate, so that one wrong estimate does not take the budget."""
_LEAST_SHARE = 0.05
"""No limit is below this share of the budget."""
_TIMED = 0.5
"""Methods with a shorter estimate say nothing about the speed of the machine."""


class Watcher(Protocol):
    """Receiver of the progress of methods."""

    def refresh(self) -> object:
        """Handle the passing of time."""

    def finished(self, entry: MethodRun) -> object:
        """Handle the end of a method."""


def run_methods(
    entries: Sequence[MethodRun],
    store: Any,
    budget: float,
    deadline: float,
    n_jobs: int,
    display: Watcher,
    work: Callable[[Any, Any], str | None] | None = None,
    ratios: Sequence[float] = (),
) -> None:
    """Run the methods in order and set the status of each.

    The first fits of a method, as many as run at the same time, correct its estimate; if the other fits then do not
    seem to fit into the time that is left, the method is stopped. After all others, a stopped method continues if the
    rest seems to fit, judged by its time so far.

    The estimates are scaled by the ratio of measured to estimated time of the methods so far, because the cost curves
    were measured on another machine.

    Parameters
    ----------
    entries : sequence of MethodRun
    store : Results
    budget : float
        Seconds of which no method gets less than a twentieth.
    deadline : float
        By ``time.monotonic``.
    n_jobs : int
    display : Watcher
    work : callable, optional
        What is done for other units than cells, see :func:`multilab.cells.execute.run_units_within`.
    ratios : sequence of float, optional
        Seconds that earlier fits took, divided by their estimates.
    """
    run: Callable[..., Outcome] = run_cells_within
    if work is not None:
        run = functools.partial(run_units_within, work=work)
    else:
        check_met([cell for entry in entries for cell in with_reads(entry.cells)], store, compute_within, budget / 10)
    logs = [math.log(ratio) for ratio in ratios]
    for entry in entries:
        if entry.status == "left out":  # by the plan
            display.finished(entry)
            continue
        wall = entry.wall(n_jobs) * math.exp(float(np.median(logs)) if logs else 0.0)
        left = deadline - time.monotonic()
        missing = [cell for cell in entry.cells if not store.has(cell.key)]
        if missing:
            here = current().is_local  # of the memory of other machines nothing is known
            refusal = (here and refused_for_memory(entry, n_jobs)) or _refused_for_time(entry, wall, left)
            if refusal:
                entry.status, entry.note = "left out", refusal
                display.finished(entry)
                continue
        limit = left if entry.seconds is None else min(left, max(_TOLERANCE * wall, _LEAST_SHARE * budget))
        _run(entry, store, limit, deadline, wall, n_jobs, display, run)
        if entry.status in ("done", "stopped") and entry.spent and entry.wall(n_jobs) >= _TIMED:
            there = sum(store.has(cell.key) for cell in missing)
            logs.append(math.log(entry.spent * len(missing) / max(there, 1) / entry.wall(n_jobs)))
    for entry in entries:
        left = deadline - time.monotonic()
        if entry.status == "stopped" and _rest_of(entry, store) < left:
            _run(entry, store, left, deadline, entry.wall(n_jobs), n_jobs, display, run)


def _rest_of(entry: MethodRun, store: Results) -> float:
    """Return the seconds that a stopped method still needs, judged by its time so far."""
    there = sum(store.has(cell.key) for cell in entry.cells)
    return entry.spent * (len(entry.cells) - there) / max(there, 1)


def _refused_for_time(entry: MethodRun, wall: float, left: float) -> str:
    """Return why a method does not fit into the time that is left, empty if it does."""
    if left > 0 and wall <= left:
        return ""
    if entry.seconds is None:
        return "the budget is used up"
    return f"needs about {duration(wall)}, but only {duration(max(left, 0))} of the budget are left for fits"


def _run(
    entry: MethodRun,
    store: Results,
    limit: float,
    deadline: float,
    wall: float,
    n_jobs: int,
    display: Watcher,
    run: Callable[..., Outcome],
) -> None:
    """Run the missing cells of a method and set its status: the first ones for at most some seconds, then the others
    if they fit before the deadline by the time of the first.
    """
    entry.status, entry.note = "running", ""
    display.refresh()
    missing = [cell for cell in entry.cells if not store.has(cell.key)]
    first, others = missing[:n_jobs], missing[n_jobs:]
    outcome = run(first, store, limit, n_jobs, display.refresh)
    entry.spent += outcome.seconds
    if others and not outcome.failures and not outcome.stopped:
        left = deadline - time.monotonic()
        if outcome.seconds * len(others) / len(first) <= left:
            outcome = run(others, store, left, n_jobs, display.refresh)
            entry.spent += outcome.seconds
        else:
            outcome.stopped = True
    if outcome.failures:
        entry.status, (label, reason) = "failed", next(iter(outcome.failures.items()))
        entry.note = f"{label}: {reason}"
    elif outcome.stopped:
        stored = sum(store.has(cell.key) for cell in entry.cells)
        expected = f" (estimated {duration(wall)})" if entry.seconds is not None else ""
        entry.status = "stopped"
        entry.note = (
            f"after {duration(entry.spent)}{expected} with {stored} of {len(entry.cells)} splits; "
            "a run with a larger budget continues"
        )
    else:
        entry.status = "done"
    display.finished(entry)
