# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Layer of a cascade: several forests, each fitted once per fold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from multilab.methods.forests._compact import CompactForest
from multilab.methods.forests._growing import Kind, grow_forest, seed_at


@dataclass(frozen=True)
class Settings:
    """Settings of the forests, the same in every layer.

    Attributes
    ----------
    n_forests : int
        Forests per layer: the first ``ceil(n_forests / 2)`` are random forests, the others extremely randomised.
    trees : dict
        Arguments of the scikit-learn forests.
    seed : int
        Root seed of the cascade.
    n_jobs : int or None
        Number of forests grown in parallel.
    """

    n_forests: int
    trees: dict[str, Any]
    seed: int
    n_jobs: int | None

    def kind(self, forest: int) -> Kind:
        """Return the kind of the forest with this number, counted from 0."""
        return "random" if 2 * forest < self.n_forests else "extra"


@dataclass(frozen=True, eq=False)
class Layer:
    """Forests of a layer: ``forests[k][f]`` is forest f fitted without the rows of fold k."""

    forests: tuple[tuple[CompactForest, ...], ...]

    def predict(self, inputs: Sequence[np.ndarray], n_jobs: int | None) -> np.ndarray:
        """Return the scores of each forest, averaged over the folds, shape (n_forests, n, q).

        Parameters
        ----------
        inputs : sequence of ndarray of shape (n, d_k), float32
            Features of the rows for the forests of each fold.
        n_jobs : int or None
            Number of forests that predict in parallel; does not change the result.
        """
        tasks = ((forest, X) for row, X in zip(self.forests, inputs, strict=True) for forest in row)
        results = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(forest.predict)(X) for forest, X in tasks)
        K = len(self.forests)
        by_fold = np.stack(results).reshape(K, -1, *results[0].shape)  # (K, n_forests, n, q)
        return by_fold.sum(axis=0) / K


def held_out(n: int, n_folds: int, seed: int) -> list[np.ndarray]:
    """Return the row numbers of each of ``n_folds`` shuffled folds, ascending within a fold."""
    order = np.random.default_rng(seed_at(seed)).permutation(n)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def grow_layer(
    inputs: Sequence[np.ndarray], Y: np.ndarray, folds: Sequence[np.ndarray], settings: Settings, layer: int
) -> tuple[Layer, np.ndarray, np.ndarray]:
    """Fit the forests of a layer.

    Parameters
    ----------
    inputs : sequence of ndarray of shape (n, d_k), float32
        Features of all rows for the forests of each fold.
    Y : ndarray of shape (n, q), 0/1
    folds : sequence of ndarray of int
        Held-out rows of each fold.
    settings : Settings
    layer : int
        Number of the layer, which enters the seeds.

    Returns
    -------
    layer : Layer
        Its forests are memory-mapped.
    scores : ndarray of shape (n_forests, n, q)
        Out-of-fold scores.
    importances : ndarray of shape (n_folds, n_forests, max d_k)
        Importances of the features; 0 for the columns that a fold does not have.
    """

    def grow(k: int, forest: int) -> tuple[CompactForest, np.ndarray, np.ndarray]:
        seed = seed_at(settings.seed, layer, k, forest)
        # trees grow with one job: the tasks below already use all
        grown, importances = grow_forest(settings.kind(forest), seen[k][0], seen[k][1], seed, **settings.trees)
        return grown.on_disk(), grown.predict(inputs[k][folds[k]]), importances

    seen = []
    for X, out in zip(inputs, folds, strict=True):
        rest = np.delete(np.arange(len(Y)), out)
        seen.append((X[rest], Y[rest]))
    tasks = [(k, forest) for k in range(len(folds)) for forest in range(settings.n_forests)]
    results = Parallel(n_jobs=settings.n_jobs, prefer="threads")(delayed(grow)(*task) for task in tasks)
    scores = np.empty((settings.n_forests, *Y.shape))
    importances = np.zeros((len(folds), settings.n_forests, max(X.shape[1] for X in inputs)))
    for (k, forest), (_, out_of_fold, weights) in zip(tasks, results, strict=True):
        scores[forest, folds[k]] = out_of_fold
        importances[k, forest, : len(weights)] = weights
    grown = [one for one, _, _ in results]
    rows = [tuple(grown[i : i + settings.n_forests]) for i in range(0, len(grown), settings.n_forests)]
    return Layer(tuple(rows)), scores, importances
