"""Fit on all rows: cross-validated cells first, then the method on every row of the dataset."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from scipy.sparse import issparse

from multilab import datasets
from multilab.cells import MemberScores, MethodPipeline
from multilab.cells.cell import Cell, base_methods, scores_cell
from multilab.cells.cell_metrics import cell_metrics
from multilab.cells.environment import environment
from multilab.cells.fitting import fit_on_rows
from multilab.cells.method import Method
from multilab.cells.rows import base_score_rows, has_grams, indices, out_of_fold_seed
from multilab.cells.running import ensure, estimator_of_cell, gather, inner_rows
from multilab.cells.settings import search_module
from multilab.cells.store import Store
from multilab.core.digests import sha256_digest
from multilab.core.messages import unknown_name
from multilab.datasets.prepared import dataset_facts
from multilab.datasets.table_encoder import TableEncoder, encoder_with_rows
from multilab.decision.thresholds import LOWEST, expected_cost_thresholds
from multilab.models.errors import DeploymentError
from multilab.models.metadata import ModelMetadata
from multilab.models.saved_model import SavedModel
from multilab.models.summaries import (
    calibration_bins,
    feature_summaries,
    label_summaries,
    metric_summaries,
    per_label_rows,
)

__all__ = [
    "DECISIONS",
    "INNER_FOLDS",
    "CrossValidated",
    "dataset_description",
    "decided",
    "described_model",
    "evaluated",
    "fit_on_all_rows",
    "fitted_model",
    "method_facts",
]

DECISIONS = {
    "macro_f1": "per_label",
    "micro_f1": "per_label",
    "hamming_loss": "per_label",
    "example_f1": "global",
    "subset_accuracy": "global",
}
"""Objectives of the decisions, and the policy for each, see `multilab.decision.TunedThresholdClassifier`."""

INNER_FOLDS = 5
"""Folds of the out-of-fold scores on which decisions are tuned."""

CALIBRATIONS = ("sigmoid", "isotonic", "beta", "temperature")
_TUNED = "multilab.decision.TunedThresholdClassifier"
_PACKAGES = (
    "multilab",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "joblib",
    "pyyaml",
    "skops",
    "mlflow",
    "hydra-core",
)


def decided(
    method: Method, objective: str | None, calibration: str | None = None, cost: Mapping[str, float] | None = None
) -> Method:
    """Return a method whose decisions are tuned for an objective, or costs, on out-of-fold scores of its training rows.

    Parameters
    ----------
    method : Method
    objective : {"macro_f1", "micro_f1", "hamming_loss", "example_f1", "subset_accuracy"} or None
    calibration : {"sigmoid", "isotonic", "beta", "temperature"} or None
        Calibrate the scores on the same out-of-fold scores.
    cost : mapping, optional
        Costs of the outcomes instead of an objective, see `multilab.decision.expected_cost_thresholds`.

    Returns
    -------
    Method
        The method with ``TunedThresholdClassifier`` and its guard around the estimator, so that every cell of a
        cross-validation tunes inside its own training set. The search space of the method moves under ``estimator__``.

    Raises
    ------
    DeploymentError
        If the objective or the calibration is unknown, both an objective and costs are given, or the method tunes its
        decisions itself.
    MethodError
        If the costs are wrong.
    """
    if objective is None and calibration is None and cost is None:
        return method
    if objective is not None and cost is not None:
        raise DeploymentError("--decision and --cost exclude each other: give one of them")
    if cost is not None:
        expected_cost_thresholds(cost, 1)  # refuses wrong costs before any work
    if objective is not None and objective not in DECISIONS:
        raise DeploymentError(f"decision: {unknown_name('objective', objective, DECISIONS)}")
    if calibration is not None and calibration not in CALIBRATIONS:
        raise DeploymentError(f"calibration: {unknown_name('calibration', calibration, CALIBRATIONS)}")
    if method.target.startswith("multilab.decision.") and method.target.endswith(".TunedThresholdClassifier"):
        raise DeploymentError(f"method {method.name} tunes its decisions itself: leave out --decision, --calibration")
    top_level = {name: value for name, value in method.params.items() if "__" not in name}
    nested = {f"estimator__{name}": value for name, value in method.params.items() if "__" in name}
    params = {
        "estimator": {"_target_": method.target, **top_level},
        "objective": objective or "macro_f1",
        "policy": _policy(objective, cost),
        "guard": objective is not None,
        "calibration": calibration,
        "cv": INNER_FOLDS,
        **({} if cost is None else {"cost": dict(cost)}),
        **nested,
    }
    search_space = {n if n == "preprocessing" else f"estimator__{n}": space for n, space in method.search.items()}
    suffix = "-".join(filter(None, (objective, "cost" if cost else None, calibration)))
    return replace(
        method,
        name=f"{method.name}-{suffix}",
        target=_TUNED,
        params=params,
        search=search_space,
        save_attributes=(),
        check_params={},
        seed_name=f"{method.seed_name} decided",
        title=f"{method.title}, {suffix.replace('_', ' ').replace('-', ', ')}",
    )


def _policy(objective: str | None, cost: Mapping[str, float] | None) -> str:
    return DECISIONS[objective] if objective else "expected_cost" if cost else "fixed"


@dataclass(frozen=True)
class CrossValidated:
    """Cross-validated scores of a method.

    Attributes
    ----------
    cells : list of Cell
    scores : list of dict
        All metrics of each split.
    test_to_train : float
        Number of test rows divided by the number of training rows, mean over the splits.
    Y, held_scores, held_decisions : ndarray of shape (n, q)
        Labels, scores and decisions of the test rows of all splits, in split order.
    """

    cells: list[Cell]
    scores: list[dict[str, float]]
    test_to_train: float
    Y: np.ndarray
    held_scores: np.ndarray
    held_decisions: np.ndarray


def evaluated(cells: Sequence[Cell], store: Store, conventions: str) -> CrossValidated:
    """Return the cross-validated scores of finished cells of one method on one dataset."""
    Y = datasets.load(cells[0].split_ref.dataset).Y
    Y = Y.toarray() if issparse(Y) else Y
    rows = [indices(cell.split_ref) for cell in cells]
    arrays = [store.arrays(cell.key) for cell in cells]
    return CrossValidated(
        list(cells),
        [cell_metrics(cell, store, conventions) for cell in cells],
        float(np.mean([len(test) / len(train) for train, test in rows])),
        np.concatenate([Y[test] for _, test in rows]),
        np.concatenate([array["scores"] for array in arrays]),
        np.concatenate([array["decisions"] for array in arrays]),
    )


def fit_on_all_rows(cell: Cell, store: Store, progress: Callable[..., Iterable[Any]] | None = None) -> FinalFit:
    """Fit the method of a cell on all rows of its dataset, after a search on all rows where the cell is tuned.

    Parameters
    ----------
    cell : Cell
        Any cell of the method on the dataset; its split does not matter.
    store : Store
        For out-of-fold scores of base methods and the journal of the search.
    progress : callable, optional
        Wraps the trials of the search.
    """
    every_row = replace(cell.split_ref, split=-1, digest="all rows", inner=None, repetition=0)
    every = replace(cell, split_ref=every_row, alone=False)
    method, best = every.method, {}
    if every.tune:
        plan, untuned = every.tune, replace(every, tune=None)
        name = search_module().search_name(untuned, plan)
        best = plan.search(untuned, inner_rows(untuned, plan, store), store.journal(name), progress, name).best
        method = method.with_params(best)
    return FinalFit(_fitted(replace(every, method=method, tune=None), store), method, best)


@dataclass(frozen=True)
class FinalFit:
    """Estimator that is fitted on all rows, the method with its tuned arguments, and these alone."""

    model: MethodPipeline
    method: Method
    best: dict[str, Any]


def _fitted(cell: Cell, store: Store) -> MethodPipeline:
    """Fit one method. Its base methods come first; the second level learns from their stored out-of-fold scores."""
    method = cell.method
    if method.base_scores:
        held = [scores_cell(replace(cell, method=member), method.inner_cv) for member in base_methods(method)]
        for read in held:
            ensure(read, store)
        scores = [store.arrays(read.key)["scores"] for read in held]
        # the function reads pairs of training and test scores; a fit on all rows has no test rows
        rows = base_score_rows(cell, [part for member_scores in scores for part in (member_scores, member_scores[:0])])
    else:
        rows = gather(cell, store)
    model = fit_on_rows(
        estimator_of_cell(cell, encoder=rows.encoder), rows.X_train, rows.Y_train, groups=rows.groups
    ).model
    if not method.base_scores:
        return model
    members = [_fitted(replace(cell, method=member), store) for member in base_methods(method)]
    folds, seed = method.inner_cv, out_of_fold_seed(cell)
    step = MemberScores.of_fitted(members, folds=folds["folds"], order=folds["order"], random_state=seed)
    return MethodPipeline.of_fitted([("members", step), *model.steps_], model.n_labels_)


def fitted_model(
    cell: Cell,
    validated: CrossValidated,
    store: Store,
    *,
    settings: Mapping[str, Any],
    progress: Callable[..., Iterable[Any]] | None = None,
) -> SavedModel:
    """Fit a method on all rows and return it with its encoder and metadata.

    Parameters
    ----------
    cell : Cell
        One of the method's cells.
    validated : CrossValidated
        The scores of its cells.
    store : Store
    settings : mapping
        What the cells were made from, see :func:`multilab.models.champions.settings_cells`; with ``conventions``.
    progress : callable, optional
    """
    name, conventions = cell.split_ref.dataset, settings["conventions"]
    objective, calibration, cost = (settings.get(key) for key in ("objective", "calibration", "cost"))
    data = datasets.load(name)
    encoder, raw = encoder_with_rows(name, chars=has_grams(cell.split_ref))
    if data.kinds is None and encoder.width != data.X.shape[1]:
        raise DeploymentError(f"{name}: the encoder makes {encoder.width} columns, but the data have {data.X.shape[1]}")
    result = fit_on_all_rows(cell, store, progress)
    evaluation = {
        "protocol": json.loads(cell.split_ref.protocol),
        "conventions": conventions,
        "seed": cell.seed,
        "cells": [scored_cell.key for scored_cell in validated.cells],
        "settings": dict(settings),
    }
    decision = {"objective": objective, "policy": _policy(objective, cost), "calibration": calibration}
    if cost:
        decision["cost"] = cost
    return described_model(
        result.model,
        encoder,
        raw.X,
        data.Y,
        [str(label) for label in data.label_names],
        validated,
        dataset=dataset_description(name) | {"columns": encoder.width},
        method=method_facts(result.method),
        evaluation=evaluation,
        decision=decision if objective or calibration or cost else {},
        tuning={**cell.tune.identity(), "best": result.best} if cell.tune else {},
    )


def described_model(
    model: MethodPipeline,
    encoder: TableEncoder,
    X: Any,
    Y: np.ndarray,
    names: list[str],
    validated: CrossValidated,
    *,
    dataset: dict[str, Any],
    method: dict[str, Any],
    evaluation: dict[str, Any],
    decision: dict[str, Any],
    tuning: dict[str, Any],
) -> SavedModel:
    """Return a fitted method with its encoder and its metadata.

    Parameters
    ----------
    model : MethodPipeline
        Fitted.
    encoder : TableEncoder
    X : DataFrame of shape (n, m), ndarray or CSR of shape (n, d)
        Training rows, see `feature_summaries`.
    Y : ndarray of shape (n, q)
    names : list of str
        Of the labels.
    validated : CrossValidated
    dataset, method, evaluation, decision, tuning : dict
        See `ModelMetadata`; ``evaluation`` needs ``protocol``, ``conventions``, ``seed``, ``cells`` and ``settings``.
    """
    kind = "probability" if hasattr(model, "predict_proba") else "score"
    thresholds, conventions = model.thresholds_, evaluation["conventions"]
    lowest = 0.0 if kind == "probability" else LOWEST
    limits = [] if thresholds is None else [max(float(t), lowest) if np.isfinite(t) else None for t in thresholds]
    about = environment()
    metadata = ModelMetadata(
        dataset=dataset,
        method=method,
        label_names=names,
        score_kind=kind,
        thresholds=dict(zip(names, limits, strict=True)) if limits else {},
        features=feature_summaries(X, encoder, evaluation["seed"]),
        labels=label_summaries(Y, names),
        metrics=metric_summaries(validated.scores, validated.test_to_train),
        per_label=per_label_rows(validated.Y, validated.held_scores, validated.held_decisions, names, conventions),
        calibration=calibration_bins(
            validated.Y, validated.held_scores, validated.held_decisions, names, kind == "probability"
        ),
        evaluation={
            "splits": len(validated.scores),
            "test_rows": len(validated.Y),
            "test_to_train": validated.test_to_train,
            **evaluation,
        },
        versions={"python": platform.python_version(), **package_versions()},
        created=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        decision=decision,
        tuning=tuning,
        commit=about["commit"],
    )
    return SavedModel(model, encoder, metadata)


def package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that a model needs."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def dataset_description(name: str) -> dict[str, Any]:
    """Return the facts about a dataset for a model's metadata."""
    entry, facts = datasets.card(name), dataset_facts(name)
    wanted = ("digest", "instances", "features", "columns", "labels", "cardinality", "density", "missing_values")
    return {
        "name": name,
        "title": entry.title,
        "card_digest": sha256_digest(entry.location.read_bytes()),
        **{key: facts.get(key) for key in wanted},
        "licence": entry.licence,
        "citation": entry.citation,
        "notes": entry.notes,
        "reader": entry.reader.given(),
    }


def method_facts(method: Method) -> dict[str, Any]:
    """Return the facts about the method for a model's metadata."""
    return {
        "name": method.name,
        "title": method.title,
        "target": method.target,
        "params": method.params,
        "preprocessing": method.preprocessing,
        "base_scores": list(method.base_scores),
        "reference": method.reference,
        "notes": method.notes,
    }
