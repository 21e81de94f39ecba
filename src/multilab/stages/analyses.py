"""Compute what a paper measures in addition to scores: the data of its figures and of its tables on simulated data."""

from multilab.commands.arguments import study_of
from multilab.commands.progress import ProgressBar, StageLine, exit_code, print_warnings
from multilab.commands.receipts import write_receipt
from multilab.experiments.analysis_units import units_of
from multilab.experiments.store import Store
from multilab.papers import analyses_of


def main(argv: list[str]) -> int:
    """`multilab analyses study=NAME`: writes ``<table>.csv`` next to ``scores.csv``."""
    study, _ = study_of(argv)
    line, progress = StageLine("analyses"), ProgressBar(f"{study.name}: analyses")
    store, units = Store(), units_of(study, analyses_of(study))
    failed = {}
    if units:
        from multilab.commands.tables import write_analyses  # they need the libraries of the estimators
        from multilab.experiments.analysing import run_units

        failed = run_units(units, store, progress=progress)
        if not failed:
            write_analyses(study, units, store)
    if not failed:
        write_receipt(study, "analyses")
    line.print_cells(units, progress.total, len(failed))
    print_warnings(units, store)
    return exit_code(failed)
