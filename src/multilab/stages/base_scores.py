"""Make the out-of-fold base scores that the methods of a study read."""

from __future__ import annotations

from multilab.ground import write_atomically
from multilab.stages.common import Progress, StageLine, print_warnings, results_dir, study_of
from multilab.stages.train import exit_code


def main(argv: list[str]) -> int:
    """`multilab base_scores study=NAME`."""
    from multilab.experiments.cells import base_score_cells
    from multilab.experiments.results import manifest
    from multilab.experiments.store import Store
    from multilab.experiments.workers import run_cells

    study, _ = study_of(argv)
    line, progress = StageLine("base_scores"), Progress(f"{study.name}: base scores")
    store, cells = Store(), base_score_cells(study)
    failed = run_cells(cells, store, progress=progress)
    if not failed:
        write_atomically(results_dir(study.name) / "base_scores.json", manifest(cells, store) + "\n")
    line.print_cells(cells, progress.total, len(failed))
    print_warnings(cells, store)
    return exit_code(failed)
