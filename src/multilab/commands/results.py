"""Results in the store of cells as tables, one per dataset and protocol, and the table of a sweep."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from multilab.commands.train import Run
from multilab.core import MultilabError, conf_dir
from multilab.core.messages import unknown_name
from multilab.experiments.conf import plain
from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store
from multilab.experiments.stored import Inventory, protocol_text
from multilab.experiments.summaries import result_rows
from multilab.metrics import METRICS
from multilab.reports.tables.results import as_latex, as_text, print_table, result_table
from multilab.statistics.result_row import ResultRow


def shown_metrics(text: str | None) -> list[str]:
    """Return the metrics to show: those named, else those that ``train`` prints."""
    if text is None:
        from omegaconf import OmegaConf

        return list(plain(OmegaConf.load(conf_dir() / "config.yaml").metrics))
    for name in text.split(","):
        if name not in METRICS:
            raise ExperimentError(unknown_name("metric", name, METRICS))
    return text.split(",")


def stored_rows(store: Any, filters: dict[str, str]) -> tuple[list[ResultRow], dict[str, int]]:
    """Return the rows of the stored train cells that match, and how many cells were left out for which reason."""
    inventory = Inventory(store)
    cells, left_out = [], Counter[str]()
    for cell in inventory.cells(filters.get("dataset", "*"), filters.get("method", "*"), "done"):
        if cell.kind != "train" or cell.inner or filters.get("protocol") not in (None, protocol_text(cell.protocol)):
            continue
        reason = inventory.outdated(cell)
        if reason:
            left_out[reason] += 1
        else:
            cells.append(cell)
    cells.sort(key=lambda cell: (cell.dataset, protocol_text(cell.protocol), cell.method))
    rows = []
    for name in dict.fromkeys(cell.dataset for cell in cells):
        group = [cell for cell in cells if cell.dataset == name]
        try:
            rows += result_rows(inventory, group, filters.get("conventions", "default"))
        except MultilabError as error:  # e.g. the data are not on this machine
            left_out[str(error)] += len(group)
    return rows, dict(left_out)


def print_tables(rows: list[ResultRow], metrics: list[str], latex: bool) -> None:
    """Print a table per dataset and protocol, and one over the datasets of each protocol."""
    groups: dict[tuple[str, str], list[ResultRow]] = {}
    for row in rows:
        groups.setdefault((row.protocol, row.dataset), []).append(row)
    tables = list(groups.values())
    for protocol in dict.fromkeys(row.protocol for row in rows):
        datasets = [dataset for name, dataset in groups if name == protocol]
        if len(datasets) > 1:
            tables.append(_everywhere([row for row in rows if row.protocol == protocol], len(datasets)))
    for index, table in enumerate(table for table in tables if table):
        if index:
            print()
        if latex:
            print(as_latex(result_table(table, metrics)))
        else:
            print_table(table, metrics)


def _everywhere(rows: list[ResultRow], n_datasets: int) -> list[ResultRow]:
    """Return the rows of the methods and settings that are complete on all datasets."""
    seen: dict[tuple[Any, ...], list[ResultRow]] = {}
    for row in rows:
        if row.complete:
            seen.setdefault((row.method, row.settings), []).append(row)
    return [row for group in seen.values() if len(group) == n_datasets for row in group]


def print_left_out(rows: list[ResultRow], left_out: dict[str, int]) -> None:
    """Print to stderr how many results are not in the tables, and why."""
    if not rows:
        print("no results; multilab train dataset=emotions method=mlknn makes some")
    for reason, count in left_out.items():
        print(f"left out: {count} results ({reason})", file=sys.stderr)


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
