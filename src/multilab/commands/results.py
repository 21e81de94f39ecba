"""The table of a sweep."""

from collections.abc import Sequence

from multilab.commands.train import Run
from multilab.experiments.store import Store
from multilab.experiments.stored import Inventory
from multilab.experiments.summaries import result_rows
from multilab.reports.tables.results import as_text, print_table, result_table
from multilab.statistics.result_row import ResultRow


def sweep_table(rows: Sequence[ResultRow], metrics: Sequence[str]) -> str:
    """Return the table of a sweep as plain text: methods x metrics, the best marked, seconds and warnings."""
    return as_text(result_table(rows, metrics))


def print_sweep(runs: Sequence[Run]) -> None:
    """Print the table of the finished runs of a sweep."""
    inventory, rows = Inventory(Store()), []
    for conventions in dict.fromkeys(run.settings["conventions"] for run in runs):
        keys = [cell.key for run in runs if run.settings["conventions"] == conventions for cell in run.cells]
        rows += result_rows(inventory, map(inventory.read, dict.fromkeys(keys)), conventions)
    if rows:
        print()
        print_table(rows, runs[0].metrics)
