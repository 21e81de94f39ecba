"""Kernel canonical correlation analysis by least squares."""

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.reduction.label_problem import label_directions, rowwise_product
from multilab.methods.reduction.ls_kernel_mddm import LSKernelMDDM

__all__ = ["KLSCCA"]


class KLSCCA(LSKernelMDDM):
    """Kernel CCA of instances and labels by least squares: K P = Q (Q^T Q)^{-1/2} with the centred labels Q.

    Parameters, attributes and solvers are those of `LSKernelMDDM`.

    Notes
    -----
    The targets are B V^T, those of LSkMDDM times an orthogonal matrix. So with all dimensions and the same eta both
    embeddings have the same distances between rows, and ML-kNN predicts the same labels from them except for ties.

    **Missing labels**: as in `LSKernelMDDM`.

    There is one column per label, and the columns have no order, because all canonical correlations are 1 if K is
    definite: a smaller ``n_components`` keeps the columns of the first labels. A pseudo-inverse replaces the inverse
    root if labels are constant or copies of others.

    References
    ----------
    L. Sun, S. Ji, J. Ye. Canonical correlation analysis for multilabel classification: a least-squares formulation,
    extensions, and analysis. IEEE TPAMI 33(1), 2011.

    Examples
    --------
    >>> from multilab.methods import KLSCCA
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = KLSCCA(n_components=2).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    def _targets(self, Q: np.ndarray) -> np.ndarray:
        """Return Q (Q^T Q)^{-1/2}, its first ``n_components`` columns, shape (n, r)."""
        directions = label_directions(Q, None)
        self.eigenvalues_ = directions.eigenvalues
        if self.n_components is not None and self.n_components < 1:
            raise MethodError(f"n_components={self.n_components}: there must be at least one dimension")
        root = (directions.V / np.sqrt(directions.eigenvalues)) @ directions.V.T  # (c, c), of rank r
        return rowwise_product(Q, root[:, : self.n_components])
