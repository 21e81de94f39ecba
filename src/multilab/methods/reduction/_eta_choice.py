# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Choice of the strength of the penalty by cross-validation inside the training set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from multilab.methods._observed import check_learns_from_missing, is_partial
from multilab.methods.base import MethodError
from multilab.methods.reduction._regression import Regression, regressions


@dataclass(frozen=True)
class Fold:
    """One fold of the training rows.

    Attributes
    ----------
    kept, out : boolean ndarray of shape (n,)
        Rows for fitting, and rows held out.
    inside : ndarray of shape (k, k)
        Kernel matrix of the k rows for fitting.
    across : ndarray of shape (n - k, k)
        Kernel matrix of the rows held out and those for fitting.
    """

    kept: np.ndarray
    out: np.ndarray
    inside: np.ndarray
    across: np.ndarray


Loss = Callable[[Fold, np.ndarray], float]
"""Loss on the rows held out of a fold, given the coefficients P of the rows for fitting, shape (k, r)."""


def squared_error(B: np.ndarray) -> Loss:
    """Return the loss |K P - B|^2 for the targets B of all training rows, shape (n, r).

    Targets depend on the labels alone and are not recomputed per fold.
    """
    return lambda fold, P: float(np.sum((fold.across @ P - B[fold.out]) ** 2))


def micro_f1_loss(Y: np.ndarray, classifier: Any) -> Loss:
    """Return the loss 1 - micro F1 of a clone of the classifier fitted to the embedding; Y has shape (n, q).

    Labels that are not observed (-1) do not count.
    """
    if is_partial(Y):
        check_learns_from_missing(classifier)

    def loss(fold: Fold, P: np.ndarray) -> float:
        predicted = clone(classifier).fit(fold.inside @ P, Y[fold.kept]).predict(fold.across @ P)
        true = Y[fold.out]
        if is_partial(Y):
            true, predicted = np.where(true < 0, 0, true), np.where(true < 0, 0, predicted)
        positive = float(true.sum()) + float(predicted.sum())
        return 1.0 - (2.0 * float(np.sum(true * predicted)) / positive if positive else 0.0)

    return loss


def chosen_eta(how: Regression, K: np.ndarray, B: np.ndarray, etas: Sequence[float], folds: int, loss: Loss) -> float:
    """Return the eta with the least sum of losses over the folds; row i is in fold i modulo ``folds``.

    Parameters
    ----------
    how : Regression
    K : ndarray of shape (n, n)
    B : ndarray of shape (n, r)
    etas : sequence of float
        The first of equally good ones is taken.
    folds : int
    loss : Loss

    Raises
    ------
    MethodError
        If ``folds`` is not between 2 and n.
    """
    n = len(K)
    if not 2 <= folds <= n:
        raise MethodError(f"cv={folds}: between 2 and {n} folds are possible")
    losses = np.zeros(len(etas))
    for index in range(folds):
        out = np.arange(n) % folds == index
        fold = Fold(~out, out, K[np.ix_(~out, ~out)], K[np.ix_(out, ~out)])
        for i, (P, _) in enumerate(regressions(how, fold.inside, B[~out], etas)):
            losses[i] += loss(fold, P)
    return float(etas[int(losses.argmin())])
