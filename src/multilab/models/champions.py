"""Champion and challenger: which version of a registered model has the alias ``@champion``."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multilab.cells.cell import Cell, split_refs
from multilab.cells.execute import run_cells
from multilab.cells.method import Method
from multilab.cells.rows import ref_with_grams
from multilab.cells.settings import Tuning, with_optuna_names
from multilab.cells.store import Store
from multilab.core import MultilabError
from multilab.datasets import load
from multilab.datasets.table_encoder import texts_of
from multilab.metrics import METRICS
from multilab.models.errors import DeploymentError
from multilab.models.final_fit import decided, evaluated
from multilab.models.foreign_settings import trusted_settings
from multilab.models.loading import model_folder
from multilab.models.metadata import ModelMetadata
from multilab.models.model_card import model_card, score_text
from multilab.models.registry import CHALLENGER, CHAMPION, LoggedModel, register, version_of
from multilab.models.saved_model import SavedModel
from multilab.statistics import corrected_resampled_p

__all__ = ["Registration", "challenge", "settings_cells"]

_DEFAULT_METRIC = "macro_f1"


@dataclass(frozen=True)
class Registration:
    """Result of a registration: the version, the alias it got, and the line that explains it."""

    version: int
    alias: str
    message: str


def settings_cells(settings: Mapping[str, Any], dataset: str | None = None, protocol: Any = None) -> list[Cell]:
    """Return the train cells of a model's settings, on another dataset or protocol if given.

    Parameters
    ----------
    settings : mapping
        ``dataset``, ``method``, ``mapping`` (content of the method's YAML), ``protocol``, ``seed``, ``tune``,
        ``objective``, ``calibration``; ``cost`` of decisions by costs; ``chars`` if texts have character n-grams in
        addition to words.
    dataset, protocol : optional
        Dataset and protocol to use instead of those of the settings.
    """
    method = Method.from_mapping(settings["method"], settings["mapping"])
    method = decided(method, *(settings.get(name) for name in ("objective", "calibration", "cost")))
    tuning = Tuning.from_mapping(with_optuna_names(settings["tune"])) if settings["tune"] else None
    # a registered model may come from anywhere: the database that it names is not opened
    if tuning and tuning.storage is not None:
        tuning = replace(tuning, storage=None)
    refs = split_refs(dataset or settings["dataset"], protocol or settings["protocol"])
    if settings.get("chars"):
        if not texts_of(load(refs[0].dataset).kinds or {}):
            raise DeploymentError(f"--chars: {refs[0].dataset} has no column of words")
        refs = [ref_with_grams(ref) for ref in refs]
    return [Cell("train", ref, method, settings["seed"], tuning) for ref in refs]


def challenge(
    logged: LoggedModel,
    model: SavedModel,
    name: str,
    where: Mapping[str, str],
    store: Store,
    metric: str | None = None,
    level: float = 0.05,
) -> Registration:
    """Register a model; it becomes the champion if it is the first, or significantly better than the current one.

    The settings of the champion are evaluated as cells on the splits of the new model, also if the data or the protocol
    changed since: both are then compared on the same rows. Cells that the store has are not computed again.
    Nothing is locked during the comparison: if another model becomes the champion meanwhile, the new model is compared
    with that one.

    Parameters
    ----------
    logged : LoggedModel
    model : SavedModel
    name : str
        Name in the registry.
    where : mapping
        The MLflow store.
    store : Store
    metric : str, optional
        Metric to compare by; default: the metric of the champion's own registration, otherwise the objective of the
        decisions, otherwise macro F1.
    level : float
        Significance level of the two-sided corrected resampled t test.
    """
    while True:
        outcome = _challenge_once(logged, model, name, where, store, metric, level)
        if outcome is not None:
            return outcome


def _challenge_once(
    logged: LoggedModel,
    model: SavedModel,
    name: str,
    where: Mapping[str, str],
    store: Store,
    metric: str | None,
    level: float,
) -> Registration | None:
    """Compare a model with the current champion and register it; None if another became the champion meanwhile."""
    champion = version_of(name, CHAMPION, where)
    champion_metric = champion.tags.get("multilab.metric") if champion else None
    chosen = metric or champion_metric or model.metadata.decision.get("objective") or _DEFAULT_METRIC
    if chosen not in METRICS:
        raise DeploymentError(f"{name}: the champion was compared by {chosen!r}, which is not a metric; give metric=")
    tags = {
        chosen: score_text(model.metadata.metrics[chosen]),
        "multilab.metric": chosen,
        "multilab.dataset_digest": str(model.metadata.dataset["digest"]),
    }
    card = model_card(model.metadata)
    if champion is None:
        version = register(logged, name, where, tags, CHAMPION, None, card)
        if version is None:
            return None
        return Registration(version, CHAMPION, f"registered as {name} version {version}: the first one, so @{CHAMPION}")
    verdict, better = _verdict(model, name, int(champion.version), where, store, chosen, level)
    alias = CHAMPION if better else CHALLENGER
    version = register(logged, name, where, tags, alias, int(champion.version), card)
    if version is None:
        return None
    stays = "" if better else f"; version {champion.version} stays @{CHAMPION}"
    return Registration(version, alias, f"registered as {name} version {version}, @{alias}{stays}\n{verdict}")


def _verdict(
    model: SavedModel, name: str, version: int, where: Mapping[str, str], store: Store, metric: str, level: float
) -> tuple[str, bool]:
    """Return the numbers of the comparison in one line, and whether the new model is better."""
    with tempfile.TemporaryDirectory() as scratch:
        about = ModelMetadata.load(model_folder(f"models:/{name}/{version}", scratch, where["uri"]))
    new = model.metadata
    settings = new.evaluation["settings"]
    foreign = trusted_settings(about.evaluation.get("settings"), settings, f"the champion (version {version})")
    try:
        cells = settings_cells(foreign, settings["dataset"], settings["protocol"])
        failed = run_cells(cells, store)
    except MultilabError as error:
        raise DeploymentError(
            f"the champion (version {version}) cannot be evaluated on these splits: {error}"
        ) from None
    if failed:
        label, reason = next(iter(failed.items()))
        raise DeploymentError(
            f"the champion (version {version}) cannot be evaluated on these splits: {label}: {reason}"
        )
    old = [row[metric] for row in evaluated(cells, store, settings["conventions"]).scores]
    values = [np.nan if value is None else value for value in new.metrics[metric]["values"]]
    if len(values) != len(old):
        raise DeploymentError(
            f"{name}: the new model was scored on one holdout, too little to compare it with version {version}; fit it "
            "with a larger --budget, or name a --method"
        )
    gains = np.array(values) - np.array(old)
    gains = -gains if METRICS[metric].direction == "min" else gains
    if not np.isfinite(gains).all() or len(gains) < 2:
        raise DeploymentError(
            f"{metric} is undefined on a split, or there is only one split; choose another metric or protocol"
        )
    p = corrected_resampled_p(gains, new.evaluation["test_to_train"])
    better = bool(gains.mean() > 0 and p < level)
    other = "" if about.dataset["digest"] == new.dataset["digest"] else " (its settings, fitted to the changed data)"
    return (
        f"  {metric} over {len(gains)} splits: version {version}{other} {np.mean(old):.4f}, this model "
        f"{np.mean(values):.4f}, p = {p:.4g} (corrected resampled t test, two-sided), "
        f"{'below' if p < level else 'not below'} the level {level:g}"
    ), better
