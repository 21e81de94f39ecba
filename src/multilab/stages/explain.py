"""Explain a model of `multilab fit`: which columns of the table its predictions need.

With labels in the file: permutation importance, the loss of a metric when the values of one column are permuted (all
0/1 columns of a text column together). Of linear models and trees, label by label, also coefficients or importances.
"""

import argparse


def main(argv: list[str]) -> int:
    """`multilab explain MODEL new.csv [--label L]`."""
    parser = argparse.ArgumentParser(prog="multilab explain", description=__doc__)
    parser.add_argument("model", help="models:/mine@champion, models:/m-..., or a folder of `multilab fit --output`")
    parser.add_argument("rows", help="CSV, TSV or Parquet file, with label columns for permutation importance")
    parser.add_argument("--label", metavar="L", help="one label (default: all together)")
    parser.add_argument("--metric", metavar="NAME", help="default macro_auc")
    parser.add_argument("--repeats", type=int, default=10, metavar="N", help="permutations per column (10)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file of the table: .csv, .tsv, .json, .jsonl, .parquet")
    parser.add_argument("--tracking-uri", metavar="URI", help="MLflow store (default: as for `multilab train`)")
    given = parser.parse_args(argv)
    from multilab.commands.predictions import explain  # takes seconds

    options = {"metric": given.metric, "n_repeats": given.repeats, "output": given.output}
    return explain(given.model, given.rows, given.label, tracking_uri=given.tracking_uri, **options)
