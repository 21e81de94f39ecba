"""Show a study in MLflow: a view rebuilt from the result files."""

from __future__ import annotations

from typing import Any

from multilab.experiments.settings import Study
from multilab.ground import canonical_json
from multilab.stages.common import Progress, report_dir, results_dir, study_of


def main(argv: list[str]) -> int:
    """`multilab publish study=NAME`."""
    from multilab.experiments.receipts import tracking, write_receipt
    from multilab.experiments.tracking import Tracker

    study, _ = study_of(argv)
    where = tracking()
    found = records(study)
    tracker = Tracker(where["uri"], where["artifacts"])
    counts = tracker.publish(study.name, list(Progress("publishing to MLflow")(found, len(found))))
    content = canonical_json({"study": study.name, "runs": sorted(record.key for record in found)})
    write_receipt(results_dir(study.name) / "published.json", content + "\n", where["uri"])
    print(f"MLflow experiment {study.name}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    return 0


def records(study: Study) -> list[Any]:
    """Return one run per column and dataset of a study, from ``scores.csv`` and the cell store."""
    import pandas as pd

    from multilab.experiments.cells import study_cells
    from multilab.experiments.environment import environment
    from multilab.experiments.store import Store
    from multilab.stages.view import run_record

    scores = pd.read_csv(report_dir(study.name) / "scores.csv", float_precision="round_trip")
    store, about, found = Store(), environment(), []
    values = dict(list(scores.groupby(["method", "dataset"], sort=False)))
    for method in study.all_methods:
        cells = study_cells(study, method)
        for dataset in study.datasets_of(method):
            chosen = [cell for cell in cells if cell.part.dataset == dataset]
            found.append(run_record(study.name, chosen, values[method, dataset], store, about))
    return found
