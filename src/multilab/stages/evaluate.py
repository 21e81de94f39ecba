"""Compute the metrics of a study from its stored scores."""

from __future__ import annotations

import sys

from multilab.ground import write_atomically
from multilab.stages.common import report_dir, study_of


def main(argv: list[str]) -> int:
    """`multilab evaluate study=NAME`: writes ``scores.csv`` (bit-stable) and ``measured.csv`` (times, memory)."""
    from multilab.experiments import results
    from multilab.experiments.cells import study_cells
    from multilab.experiments.store import Store

    study, _ = study_of(argv)
    store, folder = Store(), report_dir(study.name)
    cells = [cell for method in study.methods for cell in study_cells(study, method)]
    missing = [cell.label for cell in cells if not store.has(cell.key)]
    if missing:
        print(f"{len(missing)} cells are not in {store.root}, the first: {missing[0]}; run dvc repro", file=sys.stderr)
        return 1
    scores = results.evaluate(study, cells, store).to_csv(index=False, lineterminator="\n")
    measured = results.measured(cells, store).to_csv(index=False, lineterminator="\n")
    write_atomically(folder / "measured.csv", measured)
    write_atomically(folder / "scores.csv", scores)
    return 0
