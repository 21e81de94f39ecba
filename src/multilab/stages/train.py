"""Fit and score one method over the datasets and splits of a study, or run a method by hand through Hydra."""

from __future__ import annotations

import sys

from multilab.experiments.errors import ExperimentError
from multilab.ground import json_digest, write_atomically
from multilab.ground.messages import unknown_name
from multilab.stages.common import Progress, StageLine, print_warnings, results_dir, study_of


def exit_code(failed: dict[str, str]) -> int:
    """Print the cells that failed; return 1 if there are any."""
    for label, reason in failed.items():
        print(f"failed: {label}: {reason}", file=sys.stderr)
    return int(bool(failed))


def main(argv: list[str]) -> int:
    """`multilab train study=NAME method=NAME` (a DVC stage), or `multilab train [-m] dataset=... method=...`."""
    if not any(word.startswith("study=") for word in argv):
        from multilab.stages.adhoc import train
        from multilab.stages.results import print_sweep

        try:
            return train(argv)
        finally:
            print_sweep()
    from multilab.experiments.arguments import check_method
    from multilab.experiments.cells import study_cells
    from multilab.experiments.results import manifest
    from multilab.experiments.store import Store
    from multilab.experiments.workers import run_cells

    study, rest = study_of(argv, "method")
    name = rest.get("method")
    if name not in study.all_methods:
        raise ExperimentError(f"study {study.name}: {unknown_name('method', name or '', study.all_methods)}")
    line, progress = StageLine(f"train {name}"), Progress(f"{study.name}: {name}")
    store, cells = Store(), study_cells(study, name)
    missing = [cell for cell in cells if not store.has(cell.key)]
    for method in {json_digest(cell.method.identity()): cell.method for cell in missing}.values():
        check_method(method, study.tune_of(name) is not None)
    failed = run_cells(cells, store, progress=progress)
    if not failed:
        write_atomically(results_dir(study.name) / "train" / f"{name}.json", manifest(cells, store) + "\n")
    line.print_cells(cells, progress.total, len(failed))
    print_warnings(cells, store)
    return exit_code(failed)
