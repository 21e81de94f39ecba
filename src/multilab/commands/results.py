"""The table of a sweep."""

from collections.abc import Sequence

from multilab.experiments.cells import Cell
from multilab.experiments.store import Store
from multilab.experiments.stored import Inventory
from multilab.experiments.summaries import result_rows
from multilab.reports.tables.results import as_text, print_table, result_table
from multilab.statistics.result_row import ResultRow


def sweep_table(rows: Sequence[ResultRow], metrics: Sequence[str]) -> str:
    """Return the table of a sweep as plain text: methods x metrics, the best marked, seconds and warnings."""
    return as_text(result_table(rows, metrics))


def print_sweep(runs: Sequence[tuple[str, Sequence[Cell]]], metrics: Sequence[str]) -> None:
    """Print the table of the finished runs of a sweep: of each its conventions and its cells."""
    inventory, rows = Inventory(Store()), []
    for conventions in dict.fromkeys(name for name, _ in runs):
        keys = [cell.key for name, cells in runs if name == conventions for cell in cells]
        rows += result_rows(inventory, map(inventory.read, dict.fromkeys(keys)), conventions)
    print()
    print_table(rows, metrics)
