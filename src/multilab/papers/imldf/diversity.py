"""How diverse what a second layer reads is: label probabilities (MLDF) or interactions (iMLDF) of the same forests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells.errors import ExperimentError
from multilab.cells.running import scaled_rows
from multilab.methods.forests.compact_forest import CompactForest, Kind, grow_forest, seed_at, single_precision
from multilab.methods.forests.interactions import Found, LayerPaths, Trees, chosen_regions, layer_sets, ranked

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "diversity"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return how the columns of both representations of the test rows are correlated, and how many interactions recur.

    The layer is that of iMLDF with the settings of the unit's method, grown on all training rows as Algorithm 1 has it,
    without folds: half random forests, half extremely randomised. ``probabilities`` are those of its forests,
    ``interactions`` the confidences and label shares of its regions.

    For each representation: ``columns`` that vary, ``between_columns`` (mean absolute correlation of two columns),
    ``with_labels`` (mean over the columns of the largest absolute correlation with a label), ``effective_share``
    (participation ratio of the eigenvalues of the correlation matrix, divided by the number of columns). For
    interactions also the distinct sets of two signs or more: ``sets`` in nodes of any level but the roots,
    ``sets_last_level`` in nodes of the last, and ``sets_twice`` in two samples of rows or more.
    """
    if unit.cell is None:
        raise ExperimentError("the analysis diversity is of a method: name imldf")
    inputs, args = scaled_rows(unit.cell, store), unit.cell.method.params
    X, rows = single_precision(inputs.X_train), single_precision(inputs.X_test)
    Y, labels = np.asarray(inputs.Y_train), np.asarray(inputs.Y_test, dtype=float)
    forests = [_forest(args, X, Y, seed_at(unit.seed, unit.split, index), index) for index in range(args["n_forests"])]
    paths, seeds = LayerPaths.of(forests), [seed_at(unit.seed, unit.split, b, 1) for b in range(args["n_subsamples"])]

    def sets(seed: int, depth: int) -> list[Found]:
        # levels are drawn one after the other: the sets of a shallower tree with this seed are the first of a deeper
        return layer_sets(paths, X, Trees(args["n_interaction_trees"], depth, args["threshold_rule"]), seed)

    found = {seed: sets(seed, args["depth"]) for seed in seeds}
    by_stability = ranked(list(found.values()), np.random.default_rng(seed_at(unit.seed, unit.split)))
    regions = chosen_regions(by_stability, X, Y, args["n_interactions"])
    below, last = set[tuple[int, ...]](), set[tuple[int, ...]]()
    for seed in seeds:
        signs = [signs for signs, _ in found[seed]]
        below.update(signs[len(sets(seed, 1)) :])
        last.update(signs[len(sets(seed, args["depth"] - 1)) :])
    counts = {
        "sets": len(below),
        "sets_last_level": len(last),
        "sets_twice": sum(stability > 1.5 / len(seeds) for _, _, stability in by_stability),
        "regions": len(regions),
    }
    table = {
        "probabilities": _correlations(np.hstack([forest.predict(rows) for forest in forests]), labels),
        "interactions": counts | _correlations(regions.represent(rows, args["confidence"], args["label_repr"]), labels),
    }
    cells = [(name, quantity, float(value)) for name, values in table.items() for quantity, value in values.items()]
    representations, quantities, values = (list(column) for column in zip(*cells, strict=True))
    return {"representation": representations, "quantity": quantities, "value": values}


def _forest(args: dict[str, Any], X: np.ndarray, Y: np.ndarray, seed: int, index: int) -> CompactForest:
    kind: Kind = "random" if 2 * index < args["n_forests"] else "extra"
    return grow_forest(kind, X, Y, seed, n_estimators=args["n_trees"])[0]


def _correlations(columns: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the quantities of `compute` of one representation, shape (n, columns), and labels, shape (n, q)."""
    columns, labels = (_standardised(values) for values in (columns.astype(float), labels))
    count = columns.shape[1]
    if count < 2:
        return {"columns": float(count)}
    between = columns.T @ columns
    apart = np.abs(between[np.triu_indices(count, 1)])
    with_labels = np.abs(columns.T @ labels).max(axis=1, initial=0.0)
    # sum of the eigenvalues is the number of columns, sum of their squares that of the squared correlations
    effective = count**2 / float((between**2).sum())
    return {
        "columns": float(count),
        "between_columns": float(apart.mean()),
        "with_labels": float(with_labels.mean()),
        "effective_share": effective / count,
    }


def _standardised(values: np.ndarray) -> np.ndarray:
    """Return the columns that vary, centred and of length 1."""
    centred = values - values.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    varied = lengths > 1e-9
    return np.asarray(centred[:, varied] / lengths[varied])


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order."""
    return rows[["dataset", "split", "representation", "quantity", "value"]]
