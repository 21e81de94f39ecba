"""The baseline that assigns no label."""

from typing import Any

import numpy as np

from multilab.methods.base import MultiLabelClassifier

__all__ = ["NoLabels"]


class NoLabels(MultiLabelClassifier):
    """Baseline that assigns no label to any row; all scores are 0.

    Its Hamming loss is the label density, which many methods fail to beat on sparse label matrices.

    Attributes
    ----------
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Examples
    --------
    >>> from multilab.methods import NoLabels
    >>> NoLabels().fit([[0.0], [1.0]], [[1, 0], [1, 1]]).predict([[0.5]])
    array([[0, 0]])
    """

    def _fit(self, X: Any, Y: Any) -> None:
        """Learn the numbers of features and labels, which the base class has set."""

    def _scores(self, X: Any) -> np.ndarray:
        return np.zeros((X.shape[0], self.n_labels_))
