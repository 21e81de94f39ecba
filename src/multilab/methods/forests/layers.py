"""One layer of a cascade: several forests, each fitted once per fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from multilab.methods.forests.compact import CompactForest
from multilab.methods.forests.growing import Kind, grow_forest, seed_at

__all__ = ["Layer", "Settings", "grow_layer", "held_out"]


@dataclass(frozen=True)
class Settings:
    """What the forests of a layer are, the same in every layer.

    Half of the forests are random forests, the other half extremely randomised (of an odd number one less).
    """

    n_forests: int
    trees: dict[str, Any]
    seed: int
    n_jobs: int | None

    def kind(self, forest: int) -> Kind:
        """Return the kind of a forest of the layer."""
        return "random" if 2 * forest < self.n_forests else "extra"


@dataclass(frozen=True, eq=False)
class Layer:
    """The forests of a layer, ``forests[k][f]`` being forest f without the rows of fold k."""

    forests: tuple[tuple[CompactForest, ...], ...]

    def predict(self, inputs: Sequence[np.ndarray], n_jobs: int | None) -> np.ndarray:
        """Return the mean over the folds of each forest's scores, shape (forests, n, q).

        ``inputs`` has the features for the forests of each fold.
        """
        asked = ((forest, X) for row, X in zip(self.forests, inputs, strict=True) for forest in row)
        found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(forest.predict)(X) for forest, X in asked)
        K = len(self.forests)
        by_fold = np.stack(found).reshape(K, -1, *found[0].shape)
        return by_fold.sum(axis=0) / K


def held_out(n: int, n_folds: int, seed: int) -> list[np.ndarray]:
    """Return the rows of each of ``n_folds`` shuffled folds, ascending."""
    order = np.random.default_rng(seed_at(seed)).permutation(n)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def grow_layer(
    inputs: Sequence[np.ndarray], Y: np.ndarray, folds: Sequence[np.ndarray], settings: Settings, layer: int
) -> tuple[Layer, np.ndarray, np.ndarray]:
    """Fit the forests of a layer.

    Parameters
    ----------
    inputs : sequence of ndarray of shape (n, d_k), float32
        The features of all rows, for the forests of each fold.
    Y : ndarray of shape (n, q), 0/1
    folds : sequence of ndarray of int
        The rows that are held out.
    settings : Settings
    layer : int
        Its number: part of the seeds.

    Returns
    -------
    layer : Layer
        On disk.
    scores : ndarray of shape (forests, n, q)
        Of each row by forests that were not fitted on it.
    importances : ndarray of shape (folds, forests, d)
        Of the features (of the widest fold, 0 beyond a fold's own).
    """

    def grow(k: int, forest: int) -> tuple[CompactForest, np.ndarray, np.ndarray]:
        seed = seed_at(settings.seed, layer, k, forest)
        grown, importances = grow_forest(settings.kind(forest), seen[k][0], seen[k][1], seed, **settings.trees)
        return grown.on_disk(), grown.predict(inputs[k][folds[k]]), importances

    seen = []
    for X, out in zip(inputs, folds, strict=True):
        rest = np.delete(np.arange(len(Y)), out)
        seen.append((X[rest], Y[rest]))
    places = [(k, forest) for k in range(len(folds)) for forest in range(settings.n_forests)]
    found = Parallel(n_jobs=settings.n_jobs, prefer="threads")(delayed(grow)(*place) for place in places)
    scores = np.empty((settings.n_forests, *Y.shape))
    importances = np.zeros((len(folds), settings.n_forests, max(X.shape[1] for X in inputs)))
    for (k, forest), (_, out_of_fold, weights) in zip(places, found, strict=True):
        scores[forest, folds[k]] = out_of_fold
        importances[k, forest, : len(weights)] = weights
    grown = [one for one, _, _ in found]
    rows = [tuple(grown[i : i + settings.n_forests]) for i in range(0, len(grown), settings.n_forests)]
    return Layer(tuple(rows)), scores, importances
