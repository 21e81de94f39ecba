"""Ad hoc runs, `multilab train`, through Hydra."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hydra.core.hydra_config import HydraConfig

from multilab.commands.composition import cells_at_once, cells_of, compose_and_run, metric_names, settings_of
from multilab.commands.progress import ProgressBar, print_warnings
from multilab.core import canonical_json, json_digest, write_atomically
from multilab.experiments.cells import Cell
from multilab.experiments.errors import ExperimentError
from multilab.experiments.evaluation import evaluate_cell
from multilab.experiments.store import Store
from multilab.experiments.workers import run_cells


def run_job(cfg: Any) -> float:
    """Run the cells of one Hydra job, print their metrics and leave a note for the publication at the end."""
    settings = settings_of(cfg)
    cells, store, n_jobs = cells_of(settings), Store(), cells_at_once(HydraConfig.get().launcher)
    failed = run_cells(cells, store, n_jobs, ProgressBar(f"{settings['method']} on {settings['dataset']}"))
    if failed:
        label, reason = next(iter(failed.items()))
        raise ExperimentError(f"{len(failed)} of {len(cells)} cells failed, the first ({label}) with: {reason}")
    scores = [evaluate_cell(cell, store, cfg.conventions) for cell in cells]
    metrics = metric_names(cfg)
    _print_metrics(settings, scores, metrics)
    print_warnings(cells, store)
    note = Path(HydraConfig.get().runtime.output_dir) / f"job-{json_digest(settings)[:16]}.json"
    write_atomically(note, canonical_json(settings))
    return sum(row[metrics[0]] for row in scores) / len(scores)


def _print_metrics(settings: dict[str, Any], scores: list[dict[str, float]], metrics: list[str]) -> None:
    """Print mean and standard deviation over the splits."""
    title = f"{settings['method']} on {settings['dataset']}, {len(scores)} splits"
    print("  ".join([title, *settings["changed"]]))
    for metric in metrics:
        values = [row[metric] for row in scores]
        spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
        print(f"  {metric:<20} {np.mean(values):.4f}{spread}")


def sweep_cells(argv: list[str], program: str) -> list[Cell]:
    """Return the cells of all runs of a sweep; none is computed."""
    cells: list[Cell] = []

    def collect(cfg: Any) -> None:
        cells.extend(cells_of(settings_of(cfg)))

    if any(argument.startswith("hydra/launcher=") for argument in argv):
        raise ExperimentError("hydra/launcher is for `multilab train -m`; a worker needs none")
    with TemporaryDirectory() as folder:
        logging = ["hydra/hydra_logging=none", "hydra/job_logging=none"]
        compose_and_run(collect, ["-m", *argv, "hydra/launcher=basic", *logging, f"hydra.sweep.dir={folder}"], program)
    return cells


def train(argv: list[str]) -> int:
    """`multilab train [-m] dataset=... method=...`."""
    return compose_and_run(run_job, argv, "multilab train")
