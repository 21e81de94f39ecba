"""The plain mean of the scores of several classifiers, a baseline for stacks that learn their weights."""

from typing import Any

import numpy as np

from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.stacking.objective import classifier_rows

__all__ = ["MeanOfScores"]


class MeanOfScores(MLWSE):
    """Mean of base scores: MLWSE with weights that are given instead of learned.

    Every classifier has the weight 1/m for the label that it scores, and 0 for the others. A control of studies, no
    estimator to use: it takes the arguments of `MLWSE` so that a study can put it in MLWSE's place, and looks at
    ``threshold`` only.

    Attributes
    ----------
    W_ : ndarray of shape (mq, q)
    intercept_ : ndarray of shape (q,)
        Zero.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods.stacking._mean_of_scores import MeanOfScores
    >>> S = np.array([[0.9, 0.2, 0.7, 0.2], [0.1, 0.6, 0.3, 0.8]])  # two classifiers, two labels
    >>> model = MeanOfScores().fit(S, [[1, 0], [0, 1]])
    >>> model.decision_function(S).round(2)
    array([[0.8, 0.2],
           [0.2, 0.7]])
    """

    def _fit(self, S: Any, Y: Any, rows: np.ndarray | None) -> None:
        self._check_arguments()
        q = self.n_labels_
        members = len(classifier_rows(S.shape[1], q, self.groups))
        self.W_ = np.vstack([np.eye(q)] * members) / members
        self.intercept_ = np.zeros(q)
        self.n_iter_ = 0
