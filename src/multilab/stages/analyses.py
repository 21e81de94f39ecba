"""Compute what a study analyses beyond scores: the data of its figures, and of its table on simulated data."""

from __future__ import annotations

import hashlib
import json

from multilab.ground import write_atomically
from multilab.stages.common import Progress, StageLine, print_warnings, report_dir, results_dir, study_of
from multilab.stages.train import exit_code


def main(argv: list[str]) -> int:
    """`multilab analyses study=NAME`: writes ``<table>.csv`` beside ``scores.csv``."""
    from multilab.experiments.analyses.running import run_units, tables
    from multilab.experiments.analyses.unit import units_of
    from multilab.experiments.store import Store

    study, _ = study_of(argv)
    line, progress = StageLine("analyses"), Progress(f"{study.name}: analyses")
    store, units = Store(), units_of(study)
    failed = run_units(units, store, progress=progress)
    line.print_cells(units, progress.total, len(failed))
    print_warnings(units, store)
    if failed:
        return exit_code(failed)
    digests = {}
    for name, table in tables(units, store).items():
        if name.startswith("scores-"):
            table = table.assign(study=study.name)[["study", *table.columns]]
        text = table.to_csv(index=False, lineterminator="\n")
        write_atomically(report_dir(study.name) / f"{name}.csv", text)
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
    write_atomically(results_dir(study.name) / "analyses.json", json.dumps(digests, indent=1) + "\n")
    return 0
