"""What the stage programs share: their arguments and their progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.experiments.settings import Study, load_study

__all__ = ["Progress", "arguments", "print_warnings", "report_dir", "results_dir", "study_of"]


def arguments(argv: list[str], *known: str) -> dict[str, str]:
    """Return the ``name=value`` words of a command line; unknown names are refused."""
    found = {}
    for word in argv:
        name, equals, value = word.lstrip("-").partition("=")
        if not equals or name not in known:
            expected = ", ".join(f"{name}=..." for name in known)
            raise ExperimentError(f"{word!r} is not an argument here; expected {expected}")
        found[name] = value
    return found


def study_of(argv: list[str], *known: str) -> tuple[Study, dict[str, str]]:
    """Return the study named by ``study=`` (default ``quick``) and the other arguments."""
    found = arguments(argv, "study", *known)
    return load_study(found.pop("study", "quick")), found


def results_dir(study: str) -> Path:
    """Return the folder of a study's stage results (git-ignored)."""
    return Path("results") / study


def report_dir(study: str) -> Path:
    """Return the folder of a study's report (committed, but for ``quick``)."""
    return Path("reports") / study


def print_warnings(work: Iterable[Any], store: Any) -> None:
    """Print how many warnings cells (or units of analyses) recorded, and where to read them; nothing without any."""
    from multilab.experiments.warning_counts import warning_summary
    from multilab.ground.shell import command

    keys = [item.key for unit in work for item in (*getattr(unit, "reads", ()), unit)]
    line = warning_summary(keys, store, command("multilab"))
    if line:
        print(line)


class Progress:
    """A progress bar over an iterable: drawn on a terminal, a line now and then elsewhere.

    Parameters
    ----------
    title : str
        What is going on.
    """

    def __init__(self, title: str) -> None:
        self.title = title

    def __call__(self, stream: Iterable[Any], total: int) -> Iterator[Any]:
        """Yield from ``stream`` and show how far it is."""
        if not total:
            yield from stream
            return
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            with Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
                yield from bar.track(stream, total=total, description=self.title)
            return
        for count, item in enumerate(stream, 1):
            if count == total or count % -(-total // 4) == 0:
                print(f"{self.title}: {count} of {total}", file=sys.stderr, flush=True)
            yield item
