# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Labels and the rows that observe them."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from multilab.methods.base import MethodError


def is_partial(Y: np.ndarray) -> bool:
    """Return whether a validated label matrix has unobserved labels (-1): its type says so."""
    return Y.dtype == np.int8


def has_unobserved(Y: Any) -> bool:
    """Return whether a validated label matrix, dense or sparse, holds a label that is not observed."""
    return bool(is_partial(Y) and (Y < 0).sum())


def learns_from_missing(estimator: Any) -> bool:
    """Return whether a classifier, or each step of a pipeline that sees labels, can learn from unobserved ones."""
    if isinstance(estimator, Pipeline):
        supervised = [step for _, step in estimator.steps if hasattr(step, "_accepts_missing_labels")]
        return estimator.steps[-1][1] in supervised and all(map(learns_from_missing, supervised))
    return bool(getattr(estimator, "_accepts_missing_labels", False))


def check_learns_from_missing(estimator: Any) -> None:
    """Raise a `MethodError` if a classifier cannot learn from unobserved labels."""
    if not learns_from_missing(estimator):
        raise MethodError(
            f"{type(estimator).__name__} cannot learn from partially observed labels; the guide on missing labels "
            "lists the methods that can"
        )


def observed_groups(Y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the labels that are observed in the same rows, and these rows.

    What is solved for several labels at once is solved once per group then, each on its rows alone.

    Parameters
    ----------
    Y : ndarray of shape (n, q)
        0/1, or int8 with -1 for unobserved labels.

    Returns
    -------
    list of (labels, rows)
        Numbers, both ascending; every label is in one group.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods._observed import observed_groups
    >>> Y = np.array([[1, -1, 0], [0, 1, 1]], dtype=np.int8)
    >>> [(labels.tolist(), rows.tolist()) for labels, rows in observed_groups(Y)]
    [([0, 2], [0, 1]), ([1], [1])]
    """
    observed = Y >= 0
    groups: dict[bytes, list[int]] = {}
    for label, pattern in enumerate(np.packbits(observed, axis=0).T):
        groups.setdefault(pattern.tobytes(), []).append(label)
    return [(np.array(labels), np.flatnonzero(observed[:, labels[0]])) for labels in groups.values()]


def centred(Y: np.ndarray) -> np.ndarray:
    """Return the labels minus their means, shape (n, q); mean and residuals of a label are those of its observed rows.

    The residual of an unobserved label is 0: a covariance with it is that of the rows that observe the label, and
    columns sum to 0.
    """
    if not is_partial(Y):
        return Y - Y.mean(axis=0)
    observed = Y >= 0
    means = np.where(observed, Y, 0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    return np.where(observed, Y - means, 0.0)
