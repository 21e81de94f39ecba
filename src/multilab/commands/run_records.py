"""Records of cells for MLflow: shared by `publish` and by ad-hoc runs."""

import io
import json
import math
from typing import Any

import numpy as np

from multilab.datasets import card
from multilab.experiments.cells import Cell
from multilab.experiments.evaluation import MEASURED, dataset_facts, learned
from multilab.experiments.measuring import RECALL
from multilab.experiments.method import Method
from multilab.experiments.store import Store
from multilab.experiments.tracking import RunRecord
from multilab.metrics import METRICS
from multilab.reports.figures import heatmap
from multilab.reports.figures.style import new_axes, png_bytes, styled


def run_record(study: str, cells: list[Cell], scores: Any, store: Store, about: dict[str, Any]) -> RunRecord:
    """Return the run of one method on one dataset.

    Parameters
    ----------
    study : str
        Experiment name.
    cells : list of Cell
        Its cells, in split order.
    scores : DataFrame
        Rows (split, metric, value) of these cells.
    store : Store
    about : dict
        The environment.
    """
    first = cells[0]
    values = {
        str(metric): {int(s): float(v) for s, v in zip(rows["split"], rows["value"], strict=True)}
        for metric, rows in scores.groupby("metric", sort=False)
    }
    counts = {name: split_counts for name, split_counts in values.items() if name.startswith("n_skipped_")}
    skipped = {name: split_counts for name, split_counts in counts.items() if any(split_counts.values())}
    distinct = {cell.key: store.record(cell.key) for cell in cells}
    measured = (*MEASURED, *([RECALL] if any(RECALL in record for record in distinct.values()) else []))
    return RunRecord(
        study=study,
        method=first.method.name,
        dataset=first.split_ref.dataset,
        title=first.method.title,
        params={
            **flat_params(first.method),
            **_observed(first),
            "protocol": first.split_ref.protocol,
            **_tuned(cells, distinct),
        },
        metrics={name: split_values for name, split_values in values.items() if name not in counts},
        measured={name: {c.split_ref.split: _measured(distinct[c.key], name) for c in cells} for name in measured},
        facts=dataset_facts(first.split_ref.dataset),
        cells=[cell.key for cell in cells],
        source=dataset_source(first.split_ref.dataset),
        started=min((r["started"] for r in distinct.values() if "started" in r), default=None),
        seconds=sum(_seconds(record) for record in distinct.values()),
        tags={**run_tags(about, first.seed), "study": study},
        artifacts=lambda: {**_artifacts(first, store), **_skipped(skipped)},
    )


def tuning_record(cell: Cell, plan: Any, best: dict[str, Any], trials: list[float], about: dict[str, Any]) -> RunRecord:
    """Return the run of a search: the value of each trial as a step, the best value, and the best arguments."""
    finite = [value for value in trials if math.isfinite(value)]
    value = min(finite) if METRICS[plan.metric].direction == "min" else max(finite)
    return RunRecord(
        study="tuning",
        method=f"{cell.method.name} {plan.metric} {plan.n_trials} {plan.sampler}",
        dataset=cell.split_ref.dataset,
        title=cell.method.title,
        params={
            **flat_params(cell.method),
            **_observed(cell),
            **best,
            **{f"tune.{k}": v for k, v in vars(plan).items()},
        },
        metrics={},
        measured={},
        facts=dataset_facts(cell.split_ref.dataset),
        cells=[cell.key],
        source=dataset_source(cell.split_ref.dataset),
        curves={f"trial.{plan.metric}": trials, f"best.{plan.metric}": [value]},
        tags=run_tags(about, cell.seed),
    )


def run_tags(about: dict[str, Any], seed: int) -> dict[str, str]:
    """Return the tags of a run: commit, seed, Python version."""
    commit = about["commit"]
    git = {"mlflow.source.git.commit": commit.rstrip("+")} if commit else {}
    return {"commit": str(commit), "seed": str(seed), "python": str(about["python"]), **git}


def _observed(cell: Cell) -> dict[str, Any]:
    """Return the setting ``observed`` as a parameter, if it is set."""
    return {"observed": str(cell.observed)} if cell.observed else {}


def flat_params(method: Method) -> dict[str, Any]:
    """Return the settings of a method under flat names, so that MLflow can filter by each of them.

    An argument of a nested estimator is called as in ``set_params``: ``estimator__C``, and of a pipeline's step
    ``classify__k``.
    """
    own: dict[str, Any] = {"preprocessing": method.preprocessing}
    if method.base_scores:
        own |= {"base_scores": ", ".join(method.base_scores), "inner_cv": method.inner_cv}
    flat: dict[str, Any] = {"_target_": method.target}
    for name, value in {**method.params, **own}.items():
        flat |= _flat(name, value)
    return flat


def _flat(name: str, value: Any) -> dict[str, Any]:
    """Return one argument, or those of the estimator or the named steps in it."""
    if isinstance(value, dict):
        flat = {name: value["_target_"]} if "_target_" in value else {}
        for key, item in value.items():
            flat |= {} if key == "_target_" else _flat(f"{name}__{key}", item)
        return flat
    steps = isinstance(value, list | tuple) and value
    if steps and all(isinstance(v, list | tuple) and len(v) == 2 and isinstance(v[0], str) for v in value):
        prefix = name.rpartition("__")[0]
        flat = {}
        for step, item in value:
            flat |= _flat(f"{prefix}__{step}" if prefix else step, item)
        return flat
    return {name: value}


def _tuned(cells: list[Cell], records: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return what the searches of tuned cells chose: per argument the values in split order."""
    chosen = [records[cell.key].get("tuned", {}) for cell in cells]
    names = dict.fromkeys(name for best in chosen for name in best)
    return {f"tuned.{name}": ", ".join(str(best.get(name, "")) for best in chosen) for name in names}


def _measured(record: dict[str, Any], name: str) -> float:
    """Return what was measured of a cell, NaN if it was not; a rise in memory of 0 is below what can be measured."""
    value = float(record.get(name, math.nan))
    return math.nan if name == "peak_mb" and value == 0 else value


def _seconds(record: dict[str, Any]) -> float:
    """Return the seconds of search, fit and prediction; ``cell_seconds`` would add imports and reading."""
    return sum(float(record.get(name, 0.0)) for name in ("tune_seconds", "fit_seconds", "predict_seconds"))


def dataset_source(name: str) -> tuple[str, str]:
    """Return where a dataset comes from as MLflow's type and JSON: a public address, a file, or the generator."""
    entry = card(name)
    files = [file for file in entry.files if not file.is_variant]
    for file in files:
        if file.url is not None:
            return "http", json.dumps({"url": file.url})
        if file.repository is not None:
            return "http", json.dumps({"url": f"{file.repository}/raw/{file.commit}/{file.source}"})
    if files:
        return "local", json.dumps({"uri": str(entry.location.parent / files[0].path)})
    generator = {k: str(v) for k, v in (entry.generator or {"name": name}).items()}
    return "code", json.dumps({"tags": {"mlflow.source.name": "multilab.datasets", **generator}})


def _skipped(counts: dict[str, dict[int, float]]) -> dict[str, bytes]:
    """Return how many rows or labels a metric left out of its mean, by split; nothing if none did."""
    return {"skipped.json": json.dumps(counts, indent=1).encode()} if counts else {}


def _artifacts(cell: Cell, store: Store) -> dict[str, bytes]:
    """Return the learned arrays of the first split and a figure of each matrix among them."""
    arrays = learned(cell, store)
    if not arrays:
        return {}
    buffer = io.BytesIO()
    content: dict[str, Any] = dict(arrays)
    np.savez_compressed(buffer, **content)
    figures = {f"{n}.png": _matrix_png(a, n) for n, a in arrays.items() if a.ndim == 2 and min(a.shape) > 1}
    return {"learned.npz": buffer.getvalue(), **figures}


def _matrix_png(matrix: np.ndarray, name: str) -> bytes:
    with styled():
        canvas, axes = new_axes(5, 5, layout=None)
        canvas.colorbar(heatmap(matrix, axes[0, 0], title=name), ax=axes[0, 0], shrink=0.8)
        return png_bytes(canvas, dpi=110)
