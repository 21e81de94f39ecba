"""Test new rows for drift from the training rows of a model; made for CI.

  multilab monitor models:/mine@champion new.csv
  multilab monitor model new.csv --alpha 0.01 --min-effect 0.05 --json drift.json

Each feature has a test of its values and, with holes, of their share; each label one of its predicted prevalence.
Where the file has label columns, the true prevalence and the calibration are tested too. Without any drift the
probability that anything is reported is at most alpha. Effects below --min-effect are never reported: a share of
rows, about 0.1 between 50 % and 60 %, and between 1 % and 4 %.

exit code: 0 no drift, 1 drift, 2 wrong arguments, file or columns
"""

import argparse

from multilab.commands.monitoring import monitor_file


def main(argv: list[str]) -> int:
    """`multilab monitor MODEL new.csv [--alpha .05] [--min-effect .1] [--all] [--json out.json]`."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("multilab monitor", description=__doc__, formatter_class=raw, allow_abbrev=False)
    parser.add_argument("model", help="models:/mine@champion, models:/m-..., or a folder of `multilab fit --output`")
    parser.add_argument("rows", help="file of new rows, with or without label columns")
    parser.add_argument("--alpha", type=float, default=0.05, help="family-wise level of all tests (default: 0.05)")
    parser.add_argument("--min-effect", type=float, default=0.1, help="smallest effect to report (default: 0.1)")
    parser.add_argument("--all", action="store_true", help="print all tests, not only those that report drift")
    parser.add_argument("--json", metavar="FILE", help="write all tests as JSON")
    parser.add_argument("--tracking-uri", metavar="URI", help="MLflow store (default: as for `multilab train`)")
    a = parser.parse_args(argv)
    return monitor_file(a.model, a.rows, a.alpha, a.min_effect, a.json, a.all, a.tracking_uri)
