"""Fit and score one method over the datasets and splits of a study, or run a method by hand through Hydra."""

from __future__ import annotations

import sys

from multilab.experiments.errors import ExperimentError
from multilab.ground import write_atomically
from multilab.stages.common import Progress, results_dir, study_of


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
    from multilab.experiments.cells import study_cells
    from multilab.experiments.results import manifest
    from multilab.experiments.store import Store
    from multilab.experiments.workers import run_cells

    study, rest = study_of(argv, "method")
    name = rest.get("method")
    if name not in study.all_methods:
        raise ExperimentError(f"study {study.name} has no method {name!r}; it has {', '.join(study.all_methods)}")
    store, cells = Store(), study_cells(study, name)
    failed = run_cells(cells, store, progress=Progress(f"{study.name}: {name}"))
    if not failed:
        write_atomically(results_dir(study.name) / "train" / f"{name}.json", manifest(cells, store) + "\n")
    return exit_code(failed)
