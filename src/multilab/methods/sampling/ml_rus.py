"""ML-RUS: random under-sampling of the rows without rare labels."""

from typing import Any

import numpy as np

from multilab.methods.sampling._sampler import LabelSampler, check_ratio, minority_labels

__all__ = ["MLRUS"]


class MLRUS(LabelSampler):
    """Random under-sampling by label: rows without a minority label are removed.

    Minority labels are those whose imbalance ratio IRLbl is above its mean, MeanIR.

    Parameters
    ----------
    ratio : float, default=0.1
        Largest number of removed rows, as a share of all.
    random_state : int or RandomState, optional
        Seed of the draw.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (m,)
        Row numbers of the result, ascending.
    n_features_in_ : int

    Notes
    -----
    Use it inside folds only, by `ResampledClassifier`. The rows are drawn as in the package mldr.resampling of the
    authors, from all rows without a minority label; one row is always kept. Where all labels are equally frequent
    there is no minority, and nothing is removed.

    References
    ----------
    F. Charte, A. J. Rivera, M. J. del Jesus, F. Herrera. Addressing imbalance in multilabel classification: measures
    and random resampling algorithms. Neurocomputing 163, 2015.

    Examples
    --------
    >>> from multilab.methods import MLRUS
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [[1, 0], [1, 0], [1, 0], [1, 0], [0, 1]]
    >>> new_X, new_y = MLRUS(ratio=0.4, random_state=0).fit_resample(X, y)
    >>> new_X.shape, int(new_y[:, 1].sum())
    ((3, 1), 1)
    """

    def __init__(self, ratio: float = 0.1, random_state: Any = None) -> None:
        self.ratio = ratio
        self.random_state = random_state

    def _check_arguments(self) -> None:
        check_ratio(self.ratio, 1.0)

    def _resample(self, X: Any, Y: np.ndarray, rng: np.random.RandomState) -> tuple[Any, np.ndarray]:
        minority, rows = minority_labels(Y), np.arange(len(Y))
        if len(minority):
            candidates = np.flatnonzero(~Y[:, minority].any(axis=1))
            count = min(int(self.ratio * len(Y)), len(candidates), len(Y) - 1)
            rows = np.delete(rows, rng.choice(candidates, size=count, replace=False))
        self.sample_indices_ = rows
        return X[rows], Y[rows]
