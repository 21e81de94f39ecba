"""What the kernel machine loses by a Nystroem approximation, by the number of landmarks; not a figure of the paper."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from multilab.cells import running
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build
from multilab.cells.seeds import seed_for
from multilab.methods.elm.kernel_elm import KernelELM
from multilab.methods.elm.nystroem_kernel_elm import NystroemKernelELM
from multilab.metrics import score_all

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "nystroem"
_FIRST = ("train_rows", "held_out", "landmarks", "draw", "exact", "difference")


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return how far scores and metrics are from those of the exact machine, fitted on more rows than the split has.

    All rows of the dataset, whatever the split, are the training rows once, for the scores of the same rows; and four
    fifths are, drawn at random, for scores and metrics of the other rows. ``difference`` is the root mean square of
    the difference of the scores, divided by that of the exact scores. Settings: ``landmarks``, a list, ``draws`` of
    them, and ``metrics``. The method is `KernelELM` with the kernel rbf, and gives gamma and C.
    """
    assert unit.cell is not None
    exact = build(unit.cell.method)
    if not isinstance(exact, KernelELM) or exact.kernel != "rbf":
        raise ExperimentError(f"{unit.label}: expected the kernel machine with the kernel rbf")
    inputs, settings = running.scaled_rows(unit.cell, store), unit.settings
    X, Y = _stacked(inputs.X_train, inputs.X_test), np.vstack([inputs.Y_train, inputs.Y_test])
    seed = seed_for(unit.seed, unit.cell.split_ref.dataset_digest, "nystroem")
    order = np.random.default_rng(seed).permutation(len(Y))
    every, cut = np.arange(len(Y)), len(Y) * 4 // 5
    metrics = settings["metrics"]
    rows: list[tuple[Any, ...]] = []
    for fit, ask, held_out in ((every, every, False), (np.sort(order[:cut]), np.sort(order[cut:]), True)):
        machines: list[tuple[int, int, Any]] = [(len(fit), 0, exact)]
        for count, draw in itertools.product(settings["landmarks"], range(settings["draws"])):
            near = NystroemKernelELM(count, exact.gamma, exact.C, random_state=seed + draw)
            machines.append((count, draw, near))
        for count, draw, machine in machines:
            machine.fit(X[fit], Y[fit])
            scores, decisions = machine.decision_function(X[ask]), machine.predict(X[ask])
            if machine is exact:
                right = scores
            difference = float(np.linalg.norm(scores - right) / np.linalg.norm(right))
            values = score_all(Y[ask], scores, decisions) if held_out else dict.fromkeys(metrics, float("nan"))
            measured = [values[name] for name in metrics]
            rows.append((len(fit), held_out, count, draw, machine is exact, difference, *measured))
    return {name: list(values) for name, values in zip((*_FIRST, *metrics), zip(*rows, strict=True), strict=True)}


def _stacked(top: Any, bottom: Any) -> Any:

    return sp.vstack([top, bottom], format="csr") if sp.issparse(top) else np.vstack([top, bottom])


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order, the metrics last; one split only, and it is not used."""
    first = ["method", "dataset", *_FIRST]
    return rows[[*first, *(name for name in rows.columns if name not in (*first, "split"))]]
