"""What the penalty of the ML-EKELM paper does: weights that are zero, and values on training and on test rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells import running
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build
from multilab.methods.elm.elastic_net_kernel_elm import ElasticNetKernelELM
from multilab.methods.kernels import kernel_matrix
from multilab.methods.ties import merge_ties
from multilab.metrics import score_all

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "penalty"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return metrics on both sets of rows with the penalty and without it, and the shares of zeros with it.

    Without the penalty the weights are the smallest of those that minimise the squared error, the limit of a vanishing
    ridge. ``zero_weights`` and ``zero_features`` are the shares of single weights, and of kernel features without any
    weight, over the ``labels`` that some training row has and some has not. Settings: ``metrics`` and ``conventions``.
    """
    assert unit.cell is not None
    model = build(unit.cell.method)
    if not isinstance(model, ElasticNetKernelELM) or model.fit_intercept:
        raise ExperimentError(f"{unit.label}: expected the elastic-net kernel machine without an intercept")
    inputs, settings = running.scaled_rows(unit.cell, store), unit.settings
    model.fit(inputs.X_train, inputs.Y_train)
    parts = {"train": (inputs.X_train, inputs.Y_train), "test": (inputs.X_test, inputs.Y_test)}
    free = _without_penalty(inputs.X_train, inputs.Y_train, model.gamma_)
    rows: list[tuple[str, str, str, float]] = []
    for part, (X, Y) in parts.items():
        kernel = kernel_matrix(X, inputs.X_train, gamma=model.gamma_)
        for penalty, weights in (("with", model.coef_[:, model.column_]), ("without", free)):
            scores = merge_ties(kernel @ weights)
            values = score_all(
                Y,
                scores,
                (scores > 0).astype(int),
                metrics=settings["metrics"],
                conventions=settings["conventions"],
            )
            rows += [(penalty, part, name, float(values[name])) for name in settings["metrics"]]
    varies = inputs.Y_train.min(axis=0) < inputs.Y_train.max(axis=0)
    zero = model.coef_[:, model.column_[varies]] == 0
    shares = {"labels": varies.sum(), "zero_weights": zero.mean(), "zero_features": zero.all(axis=1).mean()}
    rows += [("with", "train", name, float(value)) for name, value in shares.items()]
    return dict(zip(("penalty", "rows", "metric", "value"), map(list, zip(*rows, strict=True)), strict=True))


def _without_penalty(X: Any, Y: np.ndarray, gamma: float) -> np.ndarray:
    distinct, column = np.unique(Y, axis=1, return_inverse=True)
    values, vectors = np.linalg.eigh(kernel_matrix(X, gamma=gamma))
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    weights = vectors[:, kept] @ ((vectors[:, kept].T @ (2.0 * distinct - 1.0)) / values[kept, None])
    return np.asarray(weights[:, column])


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one split only."""
    return rows[["method", "dataset", "penalty", "rows", "metric", "value"]]
