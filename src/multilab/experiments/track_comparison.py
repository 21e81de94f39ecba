"""The runs of `multilab compare` in MLflow. A file of its own, so that `train` does not import comparisons."""

from multilab.cells.cell_metrics import cell_metrics
from multilab.cells.method import METHOD_KEYS
from multilab.comparison.plan import DEFAULT_FOLDS
from multilab.comparison.results import Results
from multilab.comparison.run import value_text
from multilab.experiments.train import Run, track
from multilab.metrics import METRICS
from multilab.models.mlflow_store import tracking

__all__ = ["track_comparison"]


def track_comparison(results: Results, tracking_uri: str | None = None) -> None:
    """Publish each finished method to MLflow as the run that `multilab train` creates with these settings."""
    request, store, where = results.request, results.scores.store, tracking(tracking_uri)
    metrics = [metric for metric in results.scores.metrics if metric in METRICS]
    protocol = [] if request.cv == DEFAULT_FOLDS else [f"protocol=kfold{request.cv}"]
    runs = []
    for entry in results.entries:
        if entry.name not in results.board.failures:
            changes = [f"method.{name}={value_text(value)}" for name, value in entry.member.changes.items()]
            method = entry.member.method
            settings = {
                "dataset": request.dataset,
                "method": entry.name,
                "mapping": {"_target_": method.target, **method.params, **{k: getattr(method, k) for k in METHOD_KEYS}},
                "protocol": request.protocol,
                "seed": 0,
                "tune": None,
                "conventions": "default",
                "publish": True,
                "changed": sorted([*changes, *protocol]),
            }
            scores = [cell_metrics(cell, store) for cell in entry.cells]
            runs.append(Run(settings, entry.cells, scores, metrics, where))
            runs[-1].leave_note(store)
    track(runs)
