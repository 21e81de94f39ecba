"""What a stage prints: its progress, the line it ends with, warnings and failures of its cells."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from multilab.core.shell import command


class StageLine:
    """The one line that a stage prints when it has finished: its name, what was done, and the seconds it took.

    Parameters
    ----------
    name : str
        The stage, and of ``train`` the method: ``train mlknn``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.began = time.perf_counter()

    def print(self, *counts: str) -> None:
        """Print the line: ``train mlknn              9 cells, 9 reused, 0.4 s``."""
        seconds = f"{time.perf_counter() - self.began:.1f} s"
        print(f"{self.name:<25} {', '.join([*counts, seconds])}", flush=True)

    def print_cells(self, cells: Sequence[Any], computed: int, failed: int) -> None:
        """Print the line of a stage that ran cells: how many there are, and how many of them were in the store."""
        total = len({cell.key for cell in cells})
        counts = [f"{total} {'cell' if total == 1 else 'cells'}", f"{total - computed} reused"]
        self.print(*counts, *([f"{failed} failed"] if failed else []))


def exit_code(failed: dict[str, str]) -> int:
    """Print the cells that failed; return 1 if there are any."""
    for label, reason in failed.items():
        print(f"failed: {label}: {reason}", file=sys.stderr)
    return int(bool(failed))


def print_warnings(work: Iterable[Any], store: Any) -> None:
    """Print how many warnings cells (or units of analyses) recorded, and where to read them; nothing without any."""
    from multilab.experiments.warning_counts import warning_summary  # it needs NumPy, which the stage `keys` does not

    keys = [item.key for unit in work for item in (*getattr(unit, "reads", ()), unit)]
    line = warning_summary(keys, store, command("multilab"))
    if line:
        print(line)


class ProgressBar:
    """A progress bar over an iterable: drawn on a terminal and removed at its end, elsewhere a line every 10 seconds.

    Parameters
    ----------
    title : str
        What is going on.

    Attributes
    ----------
    total : int
        Number of items of the last iterable; 0 before the first.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.total = 0

    def __call__(self, stream: Iterable[Any], total: int) -> Iterator[Any]:
        """Yield from ``stream`` and show how far it is."""
        self.total = total
        return self._shown(stream, total) if total else iter(stream)

    def _shown(self, stream: Iterable[Any], total: int) -> Iterator[Any]:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            times = (TimeElapsedColumn(), TimeRemainingColumn())
            with Bar(*columns, *times, console=Console(stderr=True), transient=True) as bar:
                yield from bar.track(stream, total=total, description=self.title)
            return
        shown = time.monotonic()
        for count, item in enumerate(stream, 1):
            if time.monotonic() - shown >= 10:
                shown = time.monotonic()
                print(f"{self.title}: {count} of {total}", file=sys.stderr, flush=True)
            yield item
