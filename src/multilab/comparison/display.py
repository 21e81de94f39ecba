"""Progress of a comparison: a table on a terminal, a line per method elsewhere."""

import sys
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from multilab.comparison.plan import MethodRun, duration
from multilab.comparison.scores import CellScores
from multilab.metrics.registry import defined

__all__ = ["Display"]


class Display:
    """Live leaderboard of a comparison on standard error.

    Without a terminal it prints a line when a method ends. Nothing runs in a thread: workers are forked in between.

    Parameters
    ----------
    entries : list of MethodRun
    scores : CellScores
    title : str
    deadline : float
        Of the budget, by ``time.monotonic``.
    n_jobs : int
        Fits at the same time.
    """

    def __init__(
        self, entries: Sequence[MethodRun], scores: CellScores, title: str, deadline: float, n_jobs: int
    ) -> None:
        self.entries, self.scores, self.title, self.deadline, self.n_jobs = entries, scores, title, deadline, n_jobs
        self._live: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._live = Live(self._table(), console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def refresh(self) -> None:
        """Draw the table again, on a terminal."""
        if self._live:
            self._live.update(self._table(), refresh=True)

    def finished(self, entry: MethodRun) -> None:
        """Show that a method has ended; those that were left out are listed at the end."""
        self.refresh()
        if not self._live and entry.status != "left out":
            mean = self._mean(entry)
            complete = mean is not None and entry.status == "done"
            value = f"  {self.scores.metrics[0]} {mean:.4f}" if complete else ""
            spent = f"  {duration(entry.spent)}" if entry.spent else ""
            note = f"  {entry.note}" if entry.note else ""
            print(f"{entry.name:<20} {entry.status}{value}{spent}{note}", file=sys.stderr, flush=True)

    def message(self, text: str) -> None:
        """Show a message about work other than the methods."""
        self.title = text
        self.refresh()
        if not self._live:
            print(text, file=sys.stderr, flush=True)

    def _mean(self, entry: MethodRun) -> float | None:
        values = [self.scores.values(cell) for cell in entry.cells]
        scored = [value[self.scores.metrics[0]] for value in values if value]
        return sum(scored) / len(scored) if scored else None

    def _table(self) -> Any:
        metric = self.scores.metrics[0]
        table = Table(title=f"{self.title}, {duration(max(self.deadline - time.monotonic(), 0))} left")
        for name in ("method", "estimate", "splits", metric, "seconds", ""):
            table.add_column(name, justify="left" if name in ("method", "") else "right")
        means = {entry.name: self._mean(entry) for entry in self.entries}
        sign = 1 if defined(metric).direction == "min" else -1
        for entry in sorted(self.entries, key=lambda e: (means[e.name] is None, sign * (means[e.name] or 0.0))):
            mean, stored = means[entry.name], sum(self.scores.values(cell) is not None for cell in entry.cells)
            style = {"running": "bold", "failed": "red", "stopped": "yellow", "left out": "dim"}.get(entry.status, "")
            shown = ["" if mean is None else f"{mean:.4f}", f"{entry.spent:.1f}" if entry.spent else ""]
            status = f"{entry.status} {entry.note}".strip()
            table.add_row(
                entry.name,
                entry.expected(self.n_jobs),
                f"{stored}/{len(entry.cells)}",
                *shown,
                status[:60],
                style=style,
            )
        return table
