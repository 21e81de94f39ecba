"""Check a published multi-label table by arithmetic: misprints, conventions, ranks, repeated columns."""

import argparse
import json
import shutil
from pathlib import Path

from multilab.audit import as_json, audit_table, report_lines, summary_line
from multilab.commands.audit import audited_table

_EPILOG = """Long form: columns dataset, method, metric, mean and, if there, std, rank, table, direction (min or max),
kind (mean, average_rank, friedman_chi2, iman_davenport, f_critical, nemenyi_cd, bonferroni_dunn_cd,
critical_difference, share_best; recognised in names such as Average and CD), sources (tables). Wide form: datasets x
methods, with --metric. Exit code 1 if there is a fault."""


def main(argv: list[str]) -> int:
    """`multilab audit table.csv [--dataset NAME] [--n ROWS] [--q LABELS] [--json] ...`."""
    parser = argparse.ArgumentParser(prog="multilab audit", description=__doc__, epilog=_EPILOG)
    parser.add_argument("table", type=Path, help="CSV file, long or wide")
    parser.add_argument("--metric", default="", help="the metric of a wide table")
    parser.add_argument("--dataset", default="", help="the dataset that --n ... --runs are about; default: all")
    parser.add_argument("--n", help="rows of the test set")
    parser.add_argument("--q", help="labels; default for --dataset: those of its card")
    parser.add_argument("--cardinality", help="labels per row")
    parser.add_argument("--unlabelled", help="test rows without a label")
    parser.add_argument("--runs", help="results behind a mean: folds, splits or seeds")
    parser.add_argument("--sizes", type=Path, help="CSV file: dataset, n, q, cardinality, unlabelled, runs")
    parser.add_argument(
        "--cards", action="store_true", help="labels and cardinality of known datasets from their cards"
    )
    parser.add_argument("--names", type=Path, help="names.yaml with `derived`; default: the one next to the table")
    parser.add_argument("--faults", action="store_true", help="faults only, no notes")
    parser.add_argument("--json", action="store_true", help="findings as JSON")
    given = parser.parse_args(argv)
    size = {name: getattr(given, name) for name in ("n", "q", "cardinality", "unlabelled", "runs")}
    table = audited_table(
        given.table,
        metric=given.metric,
        names=given.names,
        sizes=given.sizes,
        dataset=given.dataset,
        size=size,
        cards=given.cards,
    )
    findings = [f for f in audit_table(table) if f.severity == "fault" or not given.faults]
    if given.json:
        print(json.dumps(as_json(findings, table), indent=1, ensure_ascii=False))
    else:
        lines = report_lines(findings, max(100, shutil.get_terminal_size((140, 24)).columns))
        print("\n".join([*lines, *([""] if lines else []), summary_line(findings, table)]))
    return int(any(finding.severity == "fault" for finding in findings))
