"""Results of a method on a dataset in one row: metrics over the splits, seconds and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from multilab.experiments.stored import Inventory, StoredCell, protocol_text
from multilab.statistics.result_row import ResultRow

__all__ = ["result_rows"]

_SECONDS = ("fit_seconds", "input_seconds", "tune_seconds", "predict_seconds")


def result_rows(inventory: Inventory, cells: Iterable[StoredCell], conventions: str = "default") -> list[ResultRow]:
    """Return a row per dataset, protocol, method and settings, in the order in which they first occur.

    Of two results for one split the one that was computed last counts.
    """
    groups: dict[tuple[Any, ...], dict[str, StoredCell]] = {}
    for cell in cells:
        settings = (*inventory.settings(cell), *([] if conventions == "default" else [f"conventions={conventions}"]))
        group = groups.setdefault((cell.dataset, protocol_text(cell.protocol), cell.method, settings), {})
        other = group.get(cell.parts["split"])
        if other is None or other.record.get("started", 0) < cell.record.get("started", 0):
            group[cell.parts["split"]] = cell
    return [_row(ResultRow(*names), list(group.values()), inventory, conventions) for names, group in groups.items()]


def _row(row: ResultRow, cells: list[StoredCell], inventory: Inventory, conventions: str) -> ResultRow:
    cells = sorted(cells, key=lambda cell: cell.split)
    values = [inventory.metrics(cell, conventions) for cell in cells]
    return replace(
        row,
        splits=len(cells),
        expected=inventory.n_splits(cells[0]),
        metrics={name: tuple(scores[name] for scores in values) for name in values[0]},
        seconds=sum(float(cell.record.get(name) or 0.0) for cell in cells for name in _SECONDS),
        warnings=sum(_count(cell.record.get("warnings")) for cell in cells),
    )


def _count(warnings: Any) -> int:
    """Return how many warnings a record holds: a list of texts, or counts by category."""
    if isinstance(warnings, dict):
        return sum(int(count) for count in warnings.values())
    return len(warnings or ())
