"""Output of a stage: progress, final line, warnings and failures of its cells.

A warning inside a cell is not printed: cells run in parallel and are reused. Their records keep the messages; programs
end with a line that counts them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from multilab.cells.errors import ExperimentError
from multilab.cells.store import Store
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
    """Print the number of warnings of cells (or units of analyses), if any, and where to read them."""
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

    def __call__(self, stream: Iterable[Any], total: int, size: Callable[[Any], int] = lambda item: 1) -> Iterator[Any]:
        """Yield from ``stream`` and show how far it is; the sizes of its items, by default 1, add up to ``total``."""
        self.total = total
        return self._shown(stream, total, size) if total else iter(stream)

    def _shown(self, stream: Iterable[Any], total: int, size: Callable[[Any], int]) -> Iterator[Any]:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            times = (TimeElapsedColumn(), TimeRemainingColumn())
            with Bar(*columns, *times, console=Console(stderr=True), transient=True) as bar:
                task = bar.add_task(self.title, total=total)
                for item in stream:
                    yield item
                    bar.advance(task, size(item))
            return
        shown, count = time.monotonic(), 0
        for item in stream:
            count += size(item)
            if time.monotonic() - shown >= 10:
                shown = time.monotonic()
                print(f"{self.title}: {count} of {total}", file=sys.stderr, flush=True)
            yield item


def recorded_warnings(caught: Iterable[warnings.WarningMessage]) -> dict[str, list[str]]:
    """Return what a record holds of the warnings of a computation: the first 20 texts, and the category of each."""
    distinct = sorted({(w.category.__name__, str(w.message)) for w in caught})[:20]
    return {
        "warnings": [f"{category}: {message}" for category, message in distinct],
        "warning_categories": [category for category, _ in distinct],
    }


def count_warnings(keys: Iterable[str], store: Store) -> tuple[Counter[str], list[str]]:
    """Return how many warnings of each category the cells recorded, and the keys of the cells that have any.

    A message that one cell repeated counts once; cells that are not in the store are passed over.
    """
    counts: Counter[str] = Counter()
    warned: list[str] = []
    for key in dict.fromkeys(keys):
        try:
            record = store.record(key)
        except ExperimentError:
            continue
        if messages := record.get("warnings"):
            counts.update(record.get("warning_categories", ["Warning"] * len(messages)))  # older records have none
            warned.append(key)
    return counts, warned


def warning_summary(keys: Iterable[str], store: Store, program: str = "multilab") -> str | None:
    """Return one line with the number of warnings by category and the command that shows them.

    Parameters
    ----------
    keys : iterable of str
        Cells, or units of analyses.
    store : Store
    program : str, default "multilab"
        How the program is called.

    Returns
    -------
    str or None
        ``3 warnings (ConvergenceWarning 3): multilab store show 0198b1c24ad7``; ``None`` without any warning.
    """
    counts, warned = count_warnings(keys, store)
    if not warned:
        return None
    total = sum(counts.values())
    categories = ", ".join(f"{category} {count}" for category, count in counts.most_common())
    more = len(warned) - 1
    others = f" (and {more} more cell{'s' if more > 1 else ''})" if more else ""
    noun = "warning" if total == 1 else "warnings"
    return f"{total} {noun} ({categories}): {program} store show {warned[0][:12]}{others}"
