"""The table that is audited: printed cells, the sizes of the test sets, and what follows from other cells."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from multilab.audit.numbers import PrintedNumber
from multilab.audit.quantities import Quantity, quantity_of

DERIVED_KINDS = (
    "mean",
    "average_rank",
    "friedman_chi2",
    "iman_davenport",
    "f_critical",
    "nemenyi_cd",
    "bonferroni_dunn_cd",
    "critical_difference",
    "share_best",
)
"""What a cell can be that follows from other cells."""

_RECOGNISED = [
    (r"critical\s+value", "f_critical"),
    (r"\b(average|avg\.?|mean)[\s_]+rank|^avg_?rank", "average_rank"),
    (r"\bnemenyi\b", "nemenyi_cd"),
    (r"\bbonferroni|\bdunn\b", "bonferroni_dunn_cd"),
    (r"\bcritical\s+difference\b|^cd$", "critical_difference"),
    (r"\biman|\bF_?F\b", "iman_davenport"),
    (r"\bfriedman|\bchi2?\b", "friedman_chi2"),
    (r"^\W*(average|avg\.?|mean)\b", "mean"),
]


@dataclass(frozen=True, slots=True)
class AuditCell:
    """One cell of a published table.

    Attributes
    ----------
    table, dataset, method, metric : str
        Its names; ``table`` may be empty.
    mean, std : PrintedNumber or None
        Value and standard deviation.
    rank : PrintedNumber or None
        Rank of the method that is printed with the value.
    direction : {"min", "max", ""}
        Empty if neither the table nor the metric says which values are good.
    kind : str
        Empty for a result; one of ``DERIVED_KINDS`` for a cell that follows from others.
    sources : tuple of str
        Tables that a derived cell follows from; empty = its own, or all if its own has no results.
    """

    table: str
    dataset: str
    method: str
    metric: str
    mean: PrintedNumber | None
    std: PrintedNumber | None = None
    rank: PrintedNumber | None = None
    direction: str = ""
    kind: str = ""
    sources: tuple[str, ...] = ()

    @property
    def quantity(self) -> Quantity | None:
        """The metric, if it is a known one."""
        return quantity_of(self.metric)


@dataclass(frozen=True)
class TestSize:
    """What is known of the test set of a dataset.

    Attributes
    ----------
    n, q : int or None
        Rows of the test set, and labels.
    cardinality : float or None
        Mean number of labels per row.
    unlabelled : int
        Test rows without a label, which some conventions leave out.
    runs : int or None
        Results behind a mean: folds, splits or seeds. Without standard deviations one is assumed.
    """

    __test__ = False  # not a class of tests
    n: int | None = None
    q: int | None = None
    cardinality: float | None = None
    unlabelled: int = 0
    runs: int | None = None


def derived_kind(dataset: str, method: str = "") -> str:
    """Return the kind of a derived cell by its names (``Average``, ``avg. rank``, ``CD``, ``F_F``), else ``""``.

    A method may be called ``mean``; an average is recognised by the name that is where the dataset's would be.
    """
    for name in (dataset, method):
        for pattern, kind in _RECOGNISED:
            if (kind != "mean" or name is dataset) and re.search(pattern, name, re.IGNORECASE):
                return kind
    return ""


Grid = dict[str, dict[str, AuditCell]]
"""Cells of one metric: by dataset, then by method."""


@dataclass(frozen=True)
class AuditTable:
    """Published cells, and the sizes of the test sets.

    Attributes
    ----------
    cells : tuple of AuditCell
        All cells.
    sizes : mapping of str to TestSize
        By dataset; ``"*"`` for those that are not named.
    percent : frozenset
        The (table, metric) pairs that are printed in percent.
    """

    cells: tuple[AuditCell, ...]
    sizes: Mapping[str, TestSize] = field(default_factory=dict)
    percent: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, cells: Iterable[AuditCell], sizes: Mapping[str, TestSize] | None = None) -> AuditTable:
        """Return the table of some cells: percentages become shares, known metrics get their direction."""
        cells = list(cells)
        percent = _percent_groups(cells)
        plain = []
        for cell in cells:
            quantity = cell.quantity
            if quantity and not cell.direction:
                cell = replace(cell, direction=quantity.direction)
            if (cell.table, cell.metric) in percent and cell.kind in ("", "mean"):
                numbers = {key: value.scaled(2) for key in ("mean", "std") if (value := getattr(cell, key))}
                cell = replace(cell, **numbers)
            plain.append(cell)
        return cls(tuple(plain), dict(sizes or {}), frozenset(percent))

    @cached_property
    def results(self) -> tuple[AuditCell, ...]:
        """The cells with a number that follow from no other."""
        return tuple(cell for cell in self.cells if not cell.kind and cell.mean)

    @cached_property
    def groups(self) -> dict[tuple[str, str], list[AuditCell]]:
        """The results by table and metric."""
        return _grouped(self.results, lambda cell: (cell.table, cell.metric))

    @cached_property
    def pages(self) -> dict[tuple[str, str], dict[str, AuditCell]]:
        """The results of a method on a dataset, by known metric, over all tables; the first cell of a metric counts."""
        pages: dict[tuple[str, str], dict[str, AuditCell]] = defaultdict(dict)
        for cell in self.results:
            if quantity := cell.quantity:
                pages[cell.dataset, cell.method].setdefault(quantity.name, cell)
        return dict(pages)

    def grid(self, metric: str, tables: Iterable[str] = ()) -> Grid:
        """Return the results of a metric in some tables (default: all) by dataset and method."""
        allowed = set(tables)
        grid: Grid = {}
        for cell in self.cells:
            if not cell.kind and cell.metric == metric and (not allowed or cell.table in allowed):
                grid.setdefault(cell.dataset, {})[cell.method] = cell
        return grid

    def sources_of(self, cell: AuditCell, metric: str | None = None) -> Grid:
        """Return the results that a derived cell follows from."""
        name = metric or cell.metric
        if cell.sources:
            return self.grid(name, cell.sources)
        return self.grid(name, [cell.table]) or ({} if cell.kind == "mean" else self.grid(name))

    def derived(self, *kinds: str) -> list[AuditCell]:
        """Return the derived cells of some kinds."""
        return [cell for cell in self.cells if cell.kind in kinds and cell.mean]

    def size_of(self, dataset: str) -> TestSize:
        """Return what is known of the test set of a dataset."""
        return self.sizes.get(dataset) or self.sizes.get("*") or TestSize()

    @cached_property
    def complements(self) -> frozenset[tuple[str, str]]:
        """The (table, method) pairs whose "accuracy" is 1 - Hamming loss: the two sum to 1 in most of their rows."""
        rows = defaultdict(list)
        for (_, method), page in self.pages.items():
            accuracy, loss = page.get("accuracy") or page.get("jaccard"), page.get("hamming_loss")
            if accuracy and loss:
                rows[method].append((accuracy.table, sums_to_one(accuracy, loss)))
        chosen = set()
        for method, sums in rows.items():
            if sum(right for _, right in sums) >= max(2, 0.5 * len(sums)):
                chosen |= {(table, method) for table, _ in sums}
        return frozenset(chosen)


def sums_to_one(accuracy: AuditCell, loss: AuditCell) -> bool:
    """Return whether two printed numbers can sum to 1."""
    if not (accuracy.mean and loss.mean):
        return False
    return abs(accuracy.mean.value + loss.mean.value - 1) <= accuracy.mean.half + loss.mean.half + 1e-9


def _grouped(cells: Iterable[AuditCell], key: Callable[[AuditCell], Any]) -> dict[Any, list[AuditCell]]:
    groups = defaultdict(list)
    for cell in cells:
        groups[key(cell)].append(cell)
    return dict(groups)


def _percent_groups(cells: Iterable[AuditCell]) -> set[tuple[str, str]]:
    """Return the (table, metric) pairs of a metric in [0, 1] whose values are mostly between 1 and 100."""
    values = defaultdict(list)
    for cell in cells:
        quantity = cell.quantity
        if quantity and quantity.high == 1 and cell.mean and not cell.kind:
            values[cell.table, cell.metric].append(cell.mean.value)
    return {
        key for key, group in values.items() if sum(1 < v <= 100 for v in group) > 0.5 * len(group) and max(group) > 2
    }
