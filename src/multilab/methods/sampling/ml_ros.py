"""ML-ROS: random over-sampling of the rows with rare labels."""

from typing import Any

import numpy as np

from multilab.datasets.imbalance import mean_ir
from multilab.methods.sampling._sampler import LabelSampler, check_ratio, minority_labels

__all__ = ["MLROS"]


class MLROS(LabelSampler):
    """Random over-sampling by label: rows with minority labels are repeated.

    Minority labels are those whose imbalance ratio IRLbl is above its mean, MeanIR. In turn, each of them gets a copy
    of a random row that has it, until its ratio is no longer above MeanIR or there are enough copies.

    Parameters
    ----------
    ratio : float, default=0.1
        Largest number of copies, as a share of the rows.
    random_state : int or RandomState, optional
        Seed of the draws.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (m,)
        Row numbers of the result: all rows in order, then the copies.
    n_features_in_ : int

    Notes
    -----
    Use it inside folds only: `ResampledClassifier` resamples in ``fit`` and leaves test rows alone. Copies in training
    and test set at the same time make scores too good.

    MeanIR is that of the given rows; the ratios of the labels follow the copies, which are drawn from the given rows.
    A row with a rare label also repeats its frequent ones (`multilab.datasets.scumble` measures how much).

    References
    ----------
    F. Charte, A. J. Rivera, M. J. del Jesus, F. Herrera. Addressing imbalance in multilabel classification: measures
    and random resampling algorithms. Neurocomputing 163, 2015.

    Examples
    --------
    >>> from multilab.methods import MLROS
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [[1, 0], [1, 0], [1, 0], [1, 0], [0, 1]]
    >>> new_X, new_y = MLROS(ratio=0.4, random_state=0).fit_resample(X, y)
    >>> new_X.ravel()
    array([0., 1., 2., 3., 4., 4.])
    """

    def __init__(self, ratio: float = 0.1, random_state: Any = None) -> None:
        self.ratio = ratio
        self.random_state = random_state

    def _check_arguments(self) -> None:
        check_ratio(self.ratio, np.inf)

    def _resample(self, X: Any, Y: np.ndarray, rng: np.random.RandomState) -> tuple[Any, np.ndarray]:
        counts, limit, budget = Y.sum(axis=0, dtype=np.int64), mean_ir(Y), int(self.ratio * len(Y))
        bags = {label: np.flatnonzero(Y[:, label]) for label in minority_labels(Y)}
        copies: list[int] = []
        while bags and len(copies) < budget:
            for label in list(bags)[: budget - len(copies)]:
                row = int(bags[label][rng.randint(len(bags[label]))])
                copies.append(row)
                counts += Y[row]
                if counts.max() <= limit * counts[label]:
                    del bags[label]
        self.sample_indices_ = np.concatenate([np.arange(len(Y)), np.array(copies, dtype=np.intp)])
        return X[self.sample_indices_], Y[self.sample_indices_]
