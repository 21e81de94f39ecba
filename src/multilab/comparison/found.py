"""The model that `multilab fit` finds for a dataset within a budget of time: the search of `AutoMultiLabel`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from multilab.cells.cell import split_refs
from multilab.cells.execute import jobs
from multilab.cells.rows import indices
from multilab.comparison.auto import AutoMultiLabel, Search, validated
from multilab.comparison.decisions import objective_of
from multilab.comparison.errors import ComparisonError
from multilab.comparison.portfolio import load_portfolio
from multilab.comparison.training_set import TrainingSet
from multilab.datasets import load
from multilab.datasets.table_encoder import encoder_with_rows
from multilab.models.final_fit import DECISIONS, dataset_description, described_model, method_facts
from multilab.models.saved_model import SavedModel

__all__ = ["FoundModel", "find_model"]


@dataclass(frozen=True)
class FoundModel:
    """The best method of the portfolio on a dataset, fitted on all rows.

    Attributes
    ----------
    dataset : str
    model : AutoMultiLabel
        The fitted model, with the leaderboard and the recommendation of the search.
    """

    dataset: str
    model: AutoMultiLabel

    @property
    def options(self) -> dict[str, Any]:
        """The options of `multilab fit` that name the method: method, set, decision, chars."""
        member = self.model._member
        return {
            "method": member.base,
            "set": [f"{name}={_word(value)}" for name, value in member.changes.items()],
            "decision": objective_of(self.model.metric) if self.model._tuned else None,
            "chars": member.chars,
        }

    def text(self) -> str:
        """Return the leaderboard, why the other methods have no score, and the recommendation."""
        board = self.model.leaderboard_
        scored = board[board["score"].notna()]
        lines = [f"{name:<36}{row.score:.4f}{row.seconds:>10.1f} s" for name, row in scored.iterrows()]
        others = [f"{name}: {row.state}: {row.reason}" for name, row in board[board["score"].isna()].iterrows()]
        return "\n".join(
            [f"{'method':<36}{self.model.metric}", *lines, *others, "", str(self.model.recommendation_), ""]
        )

    def saved(self, settings: Mapping[str, Any]) -> SavedModel:
        """Return the model with its encoder and metadata; ``settings`` are those of its cells."""
        model, data = self.model, load(self.dataset)
        member, tuned = model._member, model._tuned
        encoder, raw = encoder_with_rows(self.dataset, chars=member.chars)
        objective = objective_of(model.metric) if tuned else None
        return described_model(
            model.estimator_,
            encoder,
            raw.X,
            data.Y,
            [str(label) for label in data.label_names],
            validated(model, _dense(data.Y), settings["conventions"]),
            dataset=dataset_description(self.dataset) | {"columns": encoder.width},
            method=method_facts(member.method),
            evaluation={
                "protocol": settings["protocol"],
                "conventions": settings["conventions"],
                "seed": settings["seed"],
                "cells": [],
                "settings": dict(settings),
            },
            decision={"objective": objective, "policy": DECISIONS[objective], "calibration": None} if objective else {},
            tuning={},
        )


def find_model(dataset: str, budget: float, metric: str, folds: int, seed: int = 0) -> FoundModel:
    """Find a model within some seconds, with the folds that `multilab compare` and `multilab fit` have.

    Parameters
    ----------
    dataset : str
    budget : float
        Seconds.
    metric : str
        Metric to choose by, for which decisions are tuned.
    folds : int
    seed : int, default=0

    Raises
    ------
    ComparisonError
        If there was no time for any fit.
    """
    began, data = time.monotonic(), load(dataset)
    refs = split_refs(dataset, {"kfold": folds, "stratify": 1, "seed": 0})
    model = AutoMultiLabel(budget, metric, n_jobs=jobs(), random_state=seed)
    model._tags_column, model._dropped, model._embeddings = "", [], {}
    names = [str(label) for label in data.label_names]
    metrics = tuple(dict.fromkeys([metric, *load_portfolio().metrics]))
    with tempfile.TemporaryDirectory(prefix="multilab-") as folder:
        kinds = {name: str(kind) for name, kind in (data.kinds or {}).items()}
        rows = TrainingSet(data.X, _dense(data.Y), names, kinds, metrics, seed, Path(folder), groups=data.groups)
        rows.folds = [indices(ref) for ref in refs]
        search = Search(model, rows, began, stacks=False)
        try:
            search.run()
        finally:
            search.say("")
        model._folds = rows.parts
    if model._member is None or not model._member.in_conf:
        raise ComparisonError(f"{dataset}: no method but the baseline {model.best_} could be fitted in time")
    return FoundModel(dataset, model)


def _dense(Y: Any) -> np.ndarray:
    return Y.toarray() if issparse(Y) else np.asarray(Y)


def _word(value: object) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
