"""The reproducibility gate: recompute without caches, compare with the committed numbers, fail by name."""

import argparse
import tempfile

from multilab.commands.gate import recompute_sample, recompute_study
from multilab.experiments.study import load_study


def main(argv: list[str]) -> int:
    """`multilab gate [--methods A,B] [--accept] [--verbose]`, or `multilab gate --study NAME --sample N [--seed S]`."""
    parser = argparse.ArgumentParser(prog="multilab gate", description=__doc__)
    parser.add_argument("--study", default="quick", help="default: quick")
    parser.add_argument("--methods", help="only these methods of the study, comma-separated")
    parser.add_argument("--sample", type=int, help="recompute N random cells of the study's committed scores.csv")
    parser.add_argument("--seed", type=int, default=None, help="which random cells (default: others every time)")
    parser.add_argument("--store", help="folder for the cells (default: a temporary one, removed afterwards)")
    parser.add_argument("--accept", metavar="FOLDER", help="write the reference numbers there: tests/references")
    parser.add_argument("--verbose", action="store_true", help="by how much each method beats the constant predictor")
    arguments = parser.parse_args(argv)
    if arguments.accept and (arguments.methods or arguments.sample):
        parser.error("--accept writes the reference of all methods; leave out --methods and --sample")
    study = load_study(arguments.study)
    with tempfile.TemporaryDirectory(prefix="multilab-gate-") as folder:
        recompute = recompute_sample if arguments.sample else recompute_study
        return recompute(study, arguments, arguments.store or folder)
