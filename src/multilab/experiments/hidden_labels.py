"""Training labels that the setting `observed` hides, and what a method sees instead.

What is hidden is drawn from the
seed and the data alone: it is the same for all methods, for a method and the base learners whose scores it reads, and
for a training set and the inner folds of it; what is observed at a smaller share is observed at a larger one too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from multilab.experiments.seeds import seed_for

if TYPE_CHECKING:  # they import this module
    from multilab.experiments.cells import Cell
    from multilab.experiments.fitting import CellInputs

__all__ = ["hide", "observed_labels"]


def observed_labels(rows: np.ndarray, n_labels: int, share: float, seed: int, dataset_digest: str) -> np.ndarray:
    """Return which labels of some rows of a dataset are observed.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Numbers of the rows in the complete dataset.
    n_labels : int
    share : float
        Expected share of observed labels.
    seed : int
        Root of the seeds.
    dataset_digest : str

    Returns
    -------
    ndarray of shape (n, n_labels), bool
    """
    rng = np.random.default_rng(seed_for(seed, dataset_digest, "observed labels"))
    return rng.random((int(rows.max(initial=-1)) + 1, n_labels))[rows] < share


def hide(inputs: CellInputs, train: np.ndarray, test: np.ndarray, cell: Cell) -> CellInputs:
    """Return the inputs of a cell with hidden training labels; test labels are hidden in inner folds only.

    Parameters
    ----------
    inputs : CellInputs
    train, test : ndarray of int
        Rows of the cell in the complete dataset.
    cell : Cell
        A cell with the setting ``observed``.
    """
    setting, ref = cell.observed, cell.split_ref
    assert setting is not None

    def hidden(Y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        observed = observed_labels(rows, Y.shape[1], setting.share, cell.seed, ref.dataset_digest)
        if setting.hidden == "absent":
            return np.where(observed, Y, 0).astype(Y.dtype)
        return np.where(observed, Y, -1).astype(np.int8)

    # the validation labels of a search are training labels too
    Y_test = inputs.Y_test if ref.inner_fold is None else hidden(inputs.Y_test, test)
    return replace(inputs, Y_train=hidden(inputs.Y_train, train), Y_test=Y_test)
