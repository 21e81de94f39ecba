"""Compute the metrics of a study from its stored scores."""

from __future__ import annotations

import sys

from multilab.ground import write_atomically
from multilab.ground.shell import command
from multilab.stages.common import StageLine, print_warnings, report_dir, study_of


def main(argv: list[str]) -> int:
    """`multilab evaluate study=NAME`.

    Writes ``scores.csv`` (bit-stable), ``measured.csv`` (times, memory) and, for tuned cells, ``tuned.csv`` (what the
    searches chose).
    """
    from multilab.experiments import results
    from multilab.experiments.cells import study_cells
    from multilab.experiments.store import Store

    study, _ = study_of(argv)
    line = StageLine("evaluate")
    store, folder = Store(), report_dir(study.name)
    cells = [cell for method in study.all_methods for cell in study_cells(study, method)]
    missing = [cell.label for cell in cells if not store.has(cell.key)]
    if missing:
        print(
            f"{len(missing)} cells are not in {store.root}, the first: {missing[0]}; run {command('dvc')} repro",
            file=sys.stderr,
        )
        return 1
    tables = {"measured": results.measured(cells, store), "tuned": results.tuned(cells, store)}
    tables["scores"] = results.evaluate(study, cells, store)  # the last: DVC waits for it
    for name, table in tables.items():
        if name == "tuned" and table.empty:
            (folder / "tuned.csv").unlink(missing_ok=True)
        else:
            write_atomically(folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
    line.print(f"{len(cells)} cells", f"{len(study.metrics)} metrics")
    print_warnings(cells, store)
    return 0
