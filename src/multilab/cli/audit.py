"""The command ``audit``: check a published table by arithmetic."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from multilab.cli.options import DATASET, FILE, METRIC

if TYPE_CHECKING:
    from multilab.audit import AuditTable, TestSize


@click.command()
@click.argument("table", type=FILE)
@click.option("--metric", type=METRIC, default="", help="The metric of a table of datasets and methods.")
@click.option("--dataset", type=DATASET, default="", help="The dataset that --n ... --runs describe (default: all).")
@click.option("--n", metavar="N", help="Rows of the test set.")
@click.option("--q", metavar="N", help="Labels (default, with --dataset: those of its card).")
@click.option("--cardinality", metavar="NUMBER", help="Labels per row.")
@click.option("--unlabelled", metavar="N", help="Test rows without a label.")
@click.option("--runs", metavar="N", help="Number of results in a mean: folds, splits or seeds.")
@click.option("--sizes", type=FILE, help="CSV file: dataset, n, q, cardinality, unlabelled, runs.")
@click.option("--cards", is_flag=True, help="Labels and cardinality of known datasets from their cards.")
@click.option("--faults", is_flag=True, help="Print faults only, no notes.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def audit(
    table: Path,
    metric: str,
    dataset: str,
    sizes: Path | None,
    cards: bool,
    faults: bool,
    as_json: bool,
    **size: str | None,
) -> int:
    """Check a published table by arithmetic.

    The checks find misprints, mixed conventions, wrong ranks and repeated columns.

    \b
    multilab audit table.csv --n 917 --q 14

    The long form has the columns dataset, method, metric and mean, and optionally std, rank, table, direction (min or
    max), kind (mean, average_rank, friedman_chi2, iman_davenport, f_critical, nemenyi_cd, bonferroni_dunn_cd,
    critical_difference, share_best; recognised in names such as Average and CD) and sources (tables). The wide forms
    are datasets x methods (with --metric), and metrics x methods or methods x metrics on one dataset. The exit code is
    1 if there is a fault.
    """
    from multilab.audit import as_json as json_of
    from multilab.audit import audit_table, report_lines, summary_line
    from multilab.core.messages import did_you_mean
    from multilab.metrics import METRICS

    audited = audited_table(table, metric=metric, sizes=sizes, dataset=dataset, size=size, cards=cards)
    if unknown := unknown_metrics(audited):
        near = did_you_mean(unknown[0], METRICS) if len(unknown) == 1 else ""
        print(f"checked without the rules of their metric: {', '.join(map(repr, unknown))}{near}", file=sys.stderr)
    findings = [f for f in audit_table(audited) if f.severity == "fault" or not faults]
    if as_json:
        print(json.dumps(json_of(findings, audited), indent=1, ensure_ascii=False))
    else:
        lines = report_lines(findings, max(100, shutil.get_terminal_size((140, 24)).columns))
        print("\n".join([*lines, *([""] if lines else []), summary_line(findings, audited)]))
    return int(any(finding.severity == "fault" for finding in findings))


def unknown_metrics(audited: AuditTable) -> list[str]:
    """Return the metrics of the table that multilab does not know, in the order of the table."""
    return list(dict.fromkeys(cell.metric for cell in audited.cells if not cell.kind and cell.quantity is None))


def audited_table(
    path: Path,
    *,
    metric: str = "",
    sizes: Path | None = None,
    dataset: str = "",
    size: Mapping[str, object] | None = None,
    cards: bool = False,
) -> AuditTable:
    """Read a table for the audit, with the sizes of its test sets.

    Parameters
    ----------
    path : Path
        The CSV file.
    metric : str
        The metric of a table in the wide form.
    sizes : Path, optional
        CSV file of sizes, see :func:`multilab.audit.read_sizes`.
    dataset : str
        The dataset that ``size`` is about; all if empty.
    size : mapping, optional
        ``n``, ``q``, ``cardinality``, ``unlabelled``, ``runs``.
    cards : bool
        Take numbers of labels and cardinalities of known datasets from their cards.

    Raises
    ------
    AuditError
        If the table or the sizes cannot be read, or a dataset is not in the table.
    """
    from multilab.audit import AuditError, AuditTable, read_audit_cells, read_sizes, size_from, unused_sizes
    from multilab.core.messages import unknown_name

    cells = read_audit_cells(path, metric, dataset=dataset)
    datasets = list(dict.fromkeys(cell.dataset for cell in cells))
    test_sizes = {name: _card_size(name) for name in datasets} if cards else {}
    test_sizes = {name: card for name, card in test_sizes.items() if card}
    for name, size_in_file in (read_sizes(sizes) if sizes else {}).items():
        test_sizes[name] = _merged(test_sizes.get(name), size_in_file)
    unknown = next(iter(unused_sizes([dataset] if dataset else [], cells)), "")
    if unknown:
        raise AuditError(f"{path}: {unknown_name('dataset', unknown, datasets)}")
    size_in_arguments = size_from(size or {}, "arguments")
    for name in [dataset] if dataset else [*test_sizes, "*"]:
        known_size = test_sizes.get(name)
        if dataset and not known_size:
            known_size = _card_size(name)
        test_sizes[name] = _merged(known_size, size_in_arguments)
    return AuditTable.of(cells, test_sizes)


def _merged(known: TestSize | None, given: TestSize) -> TestSize:
    """Return a known size, completed and overridden by the given values."""
    from multilab.audit import TestSize

    values = {key: value for key, value in vars(given).items() if value}
    return replace(known or TestSize(), **values)


def _card_size(name: str) -> TestSize | None:
    """Return the number of labels and the cardinality from the card of a dataset, ``None`` without such a card."""
    from multilab.audit import TestSize
    from multilab.core.settings import parse_yaml
    from multilab.datasets.catalogue import card_folders

    for folder in card_folders():
        path = folder / f"{name}.yaml"
        if Path(name).name == name and path.is_file():
            expected = (parse_yaml(path.read_text(encoding="utf-8")) or {}).get("expected") or {}
            if "labels" in expected:
                return TestSize(q=expected["labels"], cardinality=expected.get("cardinality"))
    return None
