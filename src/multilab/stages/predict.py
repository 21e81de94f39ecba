"""Predict the rows of a CSV, TSV, Parquet or ARFF file with a model of `multilab fit`.

The file has the columns of the training file, in any order; label columns and columns that the card drops may be in it
and are ignored. The result has per label its decision and its probability.
"""

import argparse


def main(argv: list[str]) -> int:
    """`multilab predict MODEL new.csv [-o out.csv]`."""
    parser = argparse.ArgumentParser(prog="multilab predict", description=__doc__)
    parser.add_argument("model", help="models:/mine@champion, models:/m-..., or a folder of `multilab fit --output`")
    parser.add_argument("rows", help="CSV, TSV, Parquet or ARFF file")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write: .csv, .tsv, .json, .jsonl, .parquet (default: CSV to the terminal)",
    )
    parser.add_argument("--tracking-uri", metavar="URI", help="MLflow store (default: as for `multilab train`)")
    arguments = parser.parse_args(argv)
    from multilab.commands.predictions import predict  # takes seconds

    return predict(arguments.model, arguments.rows, arguments.output, arguments.tracking_uri)
