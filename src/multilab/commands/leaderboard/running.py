"""Fits of a comparison: cheap methods first, each with a limit, inside the budget."""

import math
import time
from collections.abc import Sequence

import numpy as np

from multilab.commands.leaderboard.display import Display
from multilab.commands.leaderboard.plan import Contestant, duration, refused_for_memory
from multilab.experiments.deadlines import run_cells_within
from multilab.experiments.store import Store

__all__ = ["run_entries"]

_TOLERANCE = 4.0
"""A method is stopped after this many times its estimate, so that one wrong estimate does not take the budget."""
_LEAST_SHARE = 0.1
"""No limit is below this share of the budget."""


def run_entries(
    entries: Sequence[Contestant], store: Store, budget: float, deadline: float, n_jobs: int, display: Display
) -> None:
    """Run the methods in order and set the status of each.

    The estimates are scaled by what the methods so far took compared with theirs: the curves were measured on another
    machine.
    """
    ratios: list[float] = []
    for entry in entries:
        missing = [cell for cell in entry.cells if not store.has(cell.key)]
        scale = math.exp(float(np.median(ratios))) if ratios else 1.0
        left, wall = deadline - time.monotonic(), scale * entry.wall(n_jobs)
        refusal = refused_for_memory(entry, n_jobs) if missing else ""
        if missing and (refusal or left <= 0 or wall > left):
            entry.status = "left out"
            entry.note = (
                refusal or f"needs about {duration(wall)}, {duration(max(left, 0))} of the budget left for fits"
            )
            if entry.seconds is None and not refusal:
                entry.note = "the budget is used up"
            display.finished(entry)
            continue
        entry.status = "running"
        display.refresh()
        limit = left if entry.seconds is None else min(left, max(_TOLERANCE * wall, _LEAST_SHARE * budget))
        outcome = run_cells_within(missing, store, limit, n_jobs, display.refresh)
        entry.spent = outcome.seconds
        stored = len(entry.cells) - len(missing) + outcome.computed
        if outcome.failures:
            entry.status, (label, reason) = "failed", next(iter(outcome.failures.items()))
            entry.note = f"{label}: {reason}"
        elif outcome.stopped:
            entry.status = "stopped"
            entry.note = (
                f"after {duration(outcome.seconds)} with {stored} of {len(entry.cells)} splits"
                f" (estimated {duration(wall)}); a run with more budget continues"
            )
        else:
            entry.status = "done"
            if outcome.computed and entry.seconds and entry.wall(n_jobs) >= 0.5:
                ratios.append(math.log(max(outcome.seconds, 0.01) / entry.wall(n_jobs)))
        display.finished(entry)
