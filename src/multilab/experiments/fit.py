"""`multilab fit`: compose the settings, cross-validate, fit on all rows, save, log and register."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from multilab.cells.arguments import check_method
from multilab.cells.cell import Cell
from multilab.cells.environment import code_version
from multilab.cells.execute import run_cells
from multilab.cells.method import Method
from multilab.cells.progress import ProgressBar, print_warnings
from multilab.cells.store import Store
from multilab.core.messages import printable
from multilab.core.shell import command
from multilab.experiments.compose import metric_names, run_jobs, settings_of
from multilab.experiments.publish import dataset_source, flat_params, run_tags
from multilab.metrics import METRICS
from multilab.metrics.registry import unknown_standard
from multilab.models.champions import challenge, settings_cells
from multilab.models.errors import DeploymentError
from multilab.models.final_fit import evaluated, fitted_model
from multilab.models.mlflow_store import tracking
from multilab.models.model_limits import over_assigned_labels, over_assigned_text
from multilab.models.registry import LoggedModel, log_model
from multilab.models.saved_model import SavedModel


@dataclass(frozen=True)
class FitOptions:
    """Arguments of `multilab fit` that are not settings of a run.

    Attributes
    ----------
    decision, calibration : str or None
    cost : dict or None
        See :func:`multilab.models.final_fit.decided`.
    chars : bool
        Whether texts have character n-grams in addition to words.
    register : str or None
        Name in the registry.
    metric : str or None
        Metric that decides which model is the champion.
    level : float
        Significance level of the test.
    output : str or None
        Folder to write the model into.
    found : object or None
        A model that a search fitted with these settings, whose ``saved`` returns it with its metadata. If None, the
        method is scored and fitted.
    """

    decision: str | None = None
    calibration: str | None = None
    cost: dict[str, float] | None = None
    chars: bool = False
    register: str | None = None
    metric: str | None = None
    level: float = 0.05
    output: str | None = None
    found: Any = None


def fit_and_log(settings: Sequence[str], options: FitOptions) -> int:
    """Score and fit the method of some settings ``name=value``, log the model and register it; return an exit code."""
    run_jobs(functools.partial(_fit_job, options=options), settings, "multilab fit").raise_failure()
    return 0


def _fit_job(cfg: Any, options: FitOptions) -> None:
    settings = settings_of(cfg) | {"objective": options.decision, "calibration": options.calibration}
    if options.cost is not None:
        settings["cost"] = options.cost
    if options.chars:
        settings["chars"] = True
    if options.metric is not None and options.metric not in METRICS:
        raise DeploymentError(f"metric: {unknown_standard(options.metric)}")
    _check_output(options)
    check_method(Method.from_mapping(settings["method"], settings["mapping"]), bool(settings["tune"]))
    cells, store = settings_cells(settings), Store()
    method, dataset = cells[0].method, settings["dataset"]
    model = options.found.saved(settings) if options.found else _scored_and_fitted(cells, store, settings)
    wanted = list(dict.fromkeys([*metric_names(cfg), *filter(None, [options.decision, options.metric])]))
    _print_scores(model, wanted)
    if not options.found:
        print_warnings(cells, store)
    shown = flat_params(method) | {"protocol": cells[0].split_ref.protocol, **model.metadata.tuning.get("best", {})}
    tags = run_tags(code_version(), cfg.seed) | {"dataset": dataset, "method": method.name}
    logged = _save_and_log(model, cfg, options, shown, dataset_source(dataset), tags)
    address = logged.uri
    if options.register:
        where = tracking(cfg.tracking.uri, cfg.tracking.artifacts)
        outcome = challenge(logged, model, options.register, where, store, options.metric, options.level)
        print(outcome.message)
        address = f"models:/{options.register}@{outcome.alias}"
    _print_address(address)


def _scored_and_fitted(cells: list[Cell], store: Store, settings: dict[str, Any]) -> SavedModel:
    """Run the cells of a method, and fit it on all rows."""
    method, dataset = cells[0].method, settings["dataset"]
    failed = run_cells(cells, store, progress=ProgressBar(f"{method.name} on {dataset}"))
    if failed:
        label, reason = next(iter(failed.items()))
        raise DeploymentError(f"{len(failed)} of {len(cells)} cells failed, the first ({label}) with: {reason}")
    scored = evaluated(cells, store, settings["conventions"])
    trials = ProgressBar(f"tuning {method.name} on all rows of {dataset}")
    return fitted_model(cells[0], scored, store, settings=settings, progress=trials)


def fit_large_and_log(path: str, reader: Mapping[str, Any], settings: Sequence[str], options: FitOptions) -> int:
    """Fit the method of some settings to a table that is read in batches, log the model; return an exit code."""
    task = functools.partial(_fit_large_job, path=path, reader=reader, options=options)
    run_jobs(task, settings, "multilab fit").raise_failure()
    return 0


def _fit_large_job(cfg: Any, path: str, reader: Mapping[str, Any], options: FitOptions) -> None:
    from multilab.models.fit_large import check_streamed, large_table, large_table_model, options_of, source_of

    settings = settings_of(cfg)
    method = Method.from_mapping(settings["method"], settings["mapping"])
    check_method(method, False)
    check_streamed(method)
    _check_output(options)
    table = large_table(path, reader)
    width = len(table.names) + len(table.label_names)
    print(f"{path}: {table.n_rows:,} rows x {width:,} columns, so it is read in batches of rows", flush=True)
    changed = [*settings["changed"], *options_of(reader)]
    settings = {"dataset": path, "method": method.name, "changed": changed, "reader": dict(reader)} | {
        name: settings[name] for name in ("seed", "conventions")
    }
    model = large_table_model(table, method, settings)
    _print_scores(model, metric_names(cfg))
    tags = run_tags(code_version(), cfg.seed) | {"dataset": model.metadata.dataset["name"], "method": method.name}
    shown = flat_params(method) | {"protocol": json.dumps(model.metadata.evaluation["protocol"])}
    logged = _save_and_log(model, cfg, options, shown, source_of(table.path), tags)
    _print_address(logged.uri)


def _check_output(options: FitOptions) -> None:
    if options.output and os.path.exists(options.output) and not os.path.isdir(options.output):
        raise DeploymentError(f"--output {options.output} is a file: name a folder")
    try:  # not after hours of work
        if options.output:
            os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
    except OSError as error:
        raise DeploymentError(f"--output {options.output} cannot be written: {error.strerror}") from None


def _save_and_log(
    model: Any, cfg: Any, options: FitOptions, params: dict[str, Any], source: tuple[str, str], tags: dict[str, str]
) -> LoggedModel:
    if options.output:
        print(f"saved in {model.save(options.output)}")
    where = tracking(cfg.tracking.uri, cfg.tracking.artifacts)
    logged = log_model(model, where, params=params, source=source, tags=tags)
    print(f"logged as {logged.uri} in MLflow experiment models")
    return logged


def _print_address(address: str) -> None:
    print(f"predict with it: {command('multilab')} predict {address} new.csv -o out.csv")


def _print_scores(model: Any, wanted: Sequence[str]) -> None:
    """Print labels that the decisions are of no use for, the cross-validated metrics with intervals, and the fit."""
    about = model.metadata
    if often := over_assigned_text(over_assigned_labels(about)):
        objective = about.decision.get("objective")
        remedy = f" Without --decision {objective} the method keeps its own decisions." if objective else ""
        print(printable(f"warning: {often}{remedy}"))
    evaluation, data = about.evaluation, about.dataset
    if batches := evaluation.get("batches"):
        print(f"{about.method['title']} on {data['name']}, {batches['held_out_rows']} rows held out")
    else:
        print(f"{about.method['title']} on {data['name']}, {evaluation['splits']} splits, mean and 95 % interval")
    for name in wanted:
        row = about.metrics[name]
        mean = "undefined" if row["mean"] is None else f"{row['mean']:.4f}"
        spread = "" if row["low"] is None else f"  [{row['low']:.4f}, {row['high']:.4f}]"
        print(f"  {name:<20} {mean}{spread}")
    limits = [limit for limit in about.thresholds.values() if limit is not None]
    shown = f", thresholds {min(limits):.3g} to {max(limits):.3g}" if limits else ""
    best = ", ".join(f"{name}={value}" for name, value in about.tuning.get("best", {}).items())
    which = "" if evaluation.get("batches") else "all "
    if about.score_kind != "probability":
        print("its scores are not probabilities; fit with --calibration sigmoid to get them")
    print(
        f"fitted on {which}{data['instances']} rows, {data['labels']} labels{shown}{f'; tuned: {best}' if best else ''}"
    )
