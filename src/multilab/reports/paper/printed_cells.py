"""Published cells on a page: names, numbers as text, verdict and its sign; rectangles of cells."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from multilab.claims.paper import Paper
from multilab.claims.verdicts import VERDICTS
from multilab.reports.data import ReportData, metric_title

MARKS = {
    "match": "=",
    "within": "≈",
    "better": "▲",
    "worse": "▼",
    "differs": "≠",
    "not comparable": "×",
    "not read": "?",
    "not printed": "+",
    "not run": "○",
}
"""The sign of each verdict, so that a table can be read without colours."""


@dataclass(frozen=True)
class PaperCell:
    """One published cell: its number and ours as texts, the verdict, and why.

    ``keys`` are dataset, method and metric, ``names`` the same as in the paper, ``command`` fits our cells again,
    ``layers`` is how many layers a cascade keeps on the first split (0: no cascade).
    """

    keys: tuple[str, str, str]
    names: tuple[str, str, str]
    printed: str
    ours: str
    verdict: str
    reason: str
    errata: tuple[str, ...] = ()
    command: str = ""
    layers: int = 0

    @property
    def mark(self) -> str:
        """The sign of the verdict."""
        return MARKS.get(self.verdict, "?")


@dataclass(frozen=True)
class Block:
    """One rectangle of a published table.

    ``agreeing`` is, per column, how many of the cells that could be compared agree; ``quantities`` are pairs of our
    quantity and the published cells it is compared with.
    """

    title: str
    corner: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PaperCell | None, ...]], ...]
    agreeing: tuple[str, ...]
    quantities: tuple[tuple[str, str], ...]


def tally(values: Iterable[str], order: Sequence[str] = VERDICTS) -> tuple[tuple[str, int, str], ...]:
    """Count values, those of ``order`` first: (value, count, share in percent) of each that occurs."""
    counts = Counter(values)
    names = (*order, *sorted(set(counts) - set(order)))
    return tuple((name, counts[name], f"{100 * counts[name] / counts.total():.1f} %") for name in names if counts[name])


Names = Callable[[str, str], str]
"""Return the name of a dataset, method or metric; the first argument says which of the three."""


def names_on_page(report: ReportData, paper: Paper | None) -> Names:
    """Return names as printed in a study's paper, else the display names of the study."""
    printed = paper.printed_names if paper is not None else {}

    def name_of(key: str, name: str) -> str:
        if key == "metric":
            return metric_title(re.sub(r"\[(.*)\]", r" of \1", name))
        return str(printed.get(key, {}).get(name) or report.titles.get(name, name))

    return name_of
