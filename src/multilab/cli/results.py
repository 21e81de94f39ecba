"""The command ``results``: the stored results as tables, one per dataset and protocol."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from multilab.cells.errors import ExperimentError
from multilab.cli.files import named_dataset, reader_options
from multilab.cli.options import CONVENTIONS, DATASET, METHOD, METRIC, PROTOCOL
from multilab.core import MultilabError, conf_dir

if TYPE_CHECKING:
    from multilab.cells.inventory import ResultRow


@click.command()
@click.option("--dataset", type=DATASET, metavar="NAME,...", help="Datasets, patterns such as 'yahoo-*', a data file.")
@click.option("--method", type=METHOD, metavar="NAME,...", help="Methods; patterns such as 'mlwse_*' too.")
@click.option("--protocol", type=PROTOCOL, help="Only this protocol.")
@click.option("--metric", type=METRIC, metavar="NAME,...", help="Metrics to show instead of the default ones.")
@click.option("--conventions", type=CONVENTIONS, default="default", help="Preset of the metrics.")
@click.option("--curves", is_flag=True, help="Also show the learning curves of `multilab compare`.")
@click.option("--csv", "as_csv", is_flag=True, help="Print unrounded CSV, with standard deviations.")
@click.option("--latex", is_flag=True, help="Print a LaTeX tabular (booktabs), the best in bold.")
@reader_options(shown=())
def results(
    dataset: str | None,
    method: str | None,
    protocol: str | None,
    metric: str | None,
    conventions: str,
    curves: bool,
    as_csv: bool,
    latex: bool,
    reader: dict[str, Any],
) -> None:
    """Print the stored results as tables.

    \b
    multilab results                                              everything
    multilab results --dataset emotions,scene                     some datasets
    multilab results --method 'mlwse_*' --protocol kfold5         some methods, one protocol
    multilab results --dataset emotions --csv > emotions.csv

    There is a table per dataset and protocol. A row is a method with the settings that differ from its YAML. If several
    datasets have results under one protocol, a last table shows the methods over all of these datasets, with average
    ranks. Results of outdated code or data are omitted.
    """
    from multilab.cells.store import Store
    from multilab.reports.tables.results import as_csv as csv_of

    if as_csv and latex:
        raise click.UsageError("--csv and --latex exclude each other.")
    _check_metrics(metric)
    named = named_dataset(dataset or "*", reader)
    rows, left_out = _stored_rows(Store(), named, method or "*", protocol, conventions, curves)
    metrics = metric.split(",") if metric else _default_metrics(rows)
    if as_csv:
        print(csv_of(rows, metrics), end="")
        return
    _print_tables(rows, metrics, latex=latex, every=metric is not None)
    if rows and not latex:
        print("seconds: the sum over all splits, including base scores; MLflow shows the mean per split")
    if not rows:
        print("no results yet; run `multilab train dataset=emotions method=mlknn`")
    for reason, count in left_out.items():
        print(f"left out: {count} results ({reason})", file=sys.stderr)


def _check_metrics(text: str | None) -> None:
    from multilab.metrics.registry import METRICS, unknown_standard

    for name in text.split(",") if text else ():
        if name not in METRICS:
            raise ExperimentError(unknown_standard(name))


def _default_metrics(rows: list[ResultRow]) -> list[str]:
    """Return the metrics that ``train`` prints, those of searches first, then those that rank methods elsewhere."""
    from omegaconf import OmegaConf

    from multilab.cells.conf import plain

    printed = plain(OmegaConf.load(conf_dir() / "config.yaml").metrics)
    searched = [row.searched for row in rows if row.searched]
    return list(dict.fromkeys([*searched, *(name for name in _HEADLINES if name in printed), *printed]))


_HEADLINES = ("hamming_loss", "macro_f1")


def _stored_rows(
    store: Any, dataset: str, method: str, protocol: str | None, conventions: str, curves: bool
) -> tuple[list[ResultRow], dict[str, int]]:
    """Return the rows of the stored train cells that match, and how many cells were left out for which reason."""
    from multilab.cells.checks import changed_cells, note
    from multilab.cells.inventory import Inventory, note_earlier, protocol_text, result_rows
    from multilab.comparison.curve import is_of_curve

    inventory = Inventory(store)
    cells, left_out = [], Counter[str]()
    for cell in inventory.cells(dataset, method, "done"):
        if cell.kind != "train" or cell.inner_fold is not None or protocol not in (None, protocol_text(cell.protocol)):
            continue
        if not (curves or protocol) and is_of_curve(cell.protocol):
            left_out["learning curves of `multilab compare`; --curves shows them"] += 1
            continue
        reason = inventory.outdated(cell)
        if reason:
            left_out[reason] += 1
        else:
            cells.append(cell)
    note_earlier(store)
    note(changed_cells(cells, inventory))
    cells.sort(key=lambda cell: (cell.dataset, protocol_text(cell.protocol), cell.method))
    rows = []
    for name in dict.fromkeys(cell.dataset for cell in cells):
        group = [cell for cell in cells if cell.dataset == name]
        try:
            rows += result_rows(inventory, group, conventions)
        except MultilabError as error:  # e.g. the data are not on this machine
            left_out[str(error)] += len(group)
    return rows, dict(left_out)


def _print_tables(rows: list[ResultRow], metrics: list[str], latex: bool, every: bool) -> None:
    """Print a table per dataset and protocol, and one over the datasets of each protocol."""
    from multilab.reports.tables.results import as_latex, print_table, result_table

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
            print_table(table, metrics, every)


def _everywhere(rows: list[ResultRow], n_datasets: int) -> list[ResultRow]:
    """Return the rows of the methods and settings that are complete on all datasets."""
    seen: dict[tuple[Any, ...], list[ResultRow]] = {}
    for row in rows:
        if row.complete:
            seen.setdefault((row.method, row.settings), []).append(row)
    return [row for group in seen.values() if len(group) == n_datasets for row in group]
