"""Kernel canonical correlation analysis by least squares."""

from __future__ import annotations

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.reduction.label_problem import label_directions, rowwise_product
from multilab.methods.reduction.ls_kernel_mddm import LSKernelMDDM

__all__ = ["KLSCCA"]


class KLSCCA(LSKernelMDDM):
    """Kernel CCA of instances and labels in its least squares form: K P = Q (Q^T Q)^{-1/2}, Q the centred labels.

    Arguments, attributes and solvers are those of `LSKernelMDDM`.

    Notes
    -----
    The targets are those of LSkMDDM times an orthogonal matrix, B V^T: with all dimensions and the same eta the two
    embeddings have the same distances between rows, and ML-kNN after them the same output, ties aside.

    There is one column per label and no order among them (where K is definite all canonical correlations are 1): with
    fewer ``n_components`` it keeps those of the first labels. A pseudo-inverse stands for the inverse root where labels
    are constant or copies.

    References
    ----------
    L. Sun, S. Ji, J. Ye. Canonical correlation analysis for multilabel classification: a least-squares formulation,
    extensions, and analysis. IEEE TPAMI 33(1), 2011.
    """

    def _targets(self, Q: np.ndarray) -> np.ndarray:
        directions = label_directions(Q, None)
        self.eigenvalues_ = directions.eigenvalues
        if self.n_components is not None and self.n_components < 1:
            raise MethodError(f"n_components={self.n_components}: there must be at least one dimension")
        root = (directions.V / np.sqrt(directions.eigenvalues)) @ directions.V.T
        return rowwise_product(Q, root[:, : self.n_components])
