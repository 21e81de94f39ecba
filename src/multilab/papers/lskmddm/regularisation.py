"""Step limit of LSQR and ridge as regularisers of LSkMDDM, all from one eigendecomposition of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells import running
from multilab.methods.kernels import kernel_matrix
from multilab.methods.reduction.equations import KernelSpectrum, lsqr_iterates
from multilab.methods.reduction.kernel_reducer import equal_rows, training_kernel
from multilab.methods.reduction.label_problem import centred_labels, group_means, label_directions
from multilab.metrics import score_all
from multilab.papers.lskmddm.reducers import reducer_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "regularisation"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return metrics of LSkMDDM with ML-kNN for LSQR stopped after ``steps`` steps and for ridges ``etas``.

    ``kind`` is lsqr, l2 (the paper's penalty), rkhs (kernel ridge regression) or exact, ``strength`` the number of
    steps or eta, ``residual`` is |K P - B| / |B| of the training rows. In the eigenbasis of K a step of LSQR is a
    product with a diagonal matrix.
    """
    assert unit.cell is not None
    reducer, classifier = reducer_of(unit)
    inputs, settings = running.scaled_rows(unit.cell, store), unit.settings
    K, gamma = training_kernel(inputs.X_train, reducer.gamma, reducer.gamma_factor)
    groups = equal_rows(inputs.X_train)
    B = label_directions(group_means(centred_labels(inputs.Y_train), groups)[groups], reducer.n_components).B
    spectrum = KernelSpectrum(K)
    across = kernel_matrix(inputs.X_test, inputs.X_train, gamma=gamma) @ spectrum.U
    turned = spectrum.U.T @ B
    rows: dict[str, list[Any]] = {"kind": [], "strength": [], "residual": [], "metric": [], "value": []}
    for kind, strength, P in _solutions(spectrum, turned, settings["steps"], settings["etas"]):
        reached = spectrum.w[:, None] * P
        Z = B if kind == "exact" else spectrum.U @ reached
        scores, decisions = classifier.fit(Z, inputs.Y_train).predict_with_scores(across @ P)
        values = score_all(inputs.Y_test, scores, decisions)
        residual = float(np.linalg.norm(reached - turned) / np.linalg.norm(turned))
        for metric in settings["metrics"]:
            for name, entry in zip(rows, (kind, float(strength), residual, metric, values[metric]), strict=True):
                rows[name].append(entry)
    return rows


def _solutions(
    spectrum: KernelSpectrum, turned: np.ndarray, steps: list[int], etas: list[float]
) -> Iterator[tuple[str, float, np.ndarray]]:
    """Yield kind, strength and coefficients in the eigenbasis."""
    w = spectrum.w[:, None]
    for step, (P, _) in enumerate(lsqr_iterates(lambda V: w * V, turned), 1):
        if step in steps:
            yield "lsqr", step, P
        if step >= max(steps):
            break
    for eta in etas:
        yield "l2", eta, w / (w**2 + eta) * turned
        yield "rkhs", eta, turned / (w + eta)
    yield "exact", 0.0, spectrum.solve_turned(turned)


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the splits."""
    by = ["dataset", "kind", "strength", "metric"]
    return rows.groupby(by, sort=False)[["residual", "value"]].mean().reset_index()
