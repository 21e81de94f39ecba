"""Cells of a label matrix whose label is probably wrong, by out-of-fold probabilities of one or several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.messages import pip_install
from multilab.statistics.errors import StatisticsError

__all__ = ["RANKINGS", "label_doubts"]

RANKINGS = ("methods", "cleanlab")
_COLUMNS = ["row", "label", "given", "probability", "methods", "doubted"]


def label_doubts(
    Y: Any,
    scores: Any,
    *,
    label_names: Sequence[str] | None = None,
    ranking: str = "methods",
    every_cell: bool = False,
) -> pd.DataFrame:
    """Rank the cells of a label matrix by how likely their label is wrong.

    Parameters
    ----------
    Y : array-like of shape (n, q)
        Given labels, 0/1; NaN, or -1 in int8, where a label was not observed. Such cells are left out.
    scores : array-like of shape (n, q), or mapping of str to such
        Probabilities of each row by a model that was not fitted to it, of one method or of several by name.
    label_names : sequence of str, optional
        Names of the labels. By default the columns of a data frame ``Y``, otherwise the numbers of the labels.
    ranking : {"methods", "cleanlab"}, default="methods"
        "methods": cells that more methods doubt come first, among them those whose given label has the smallest mean
        probability. "cleanlab": the issues that cleanlab finds in the mean probabilities come first, ordered by its
        score (the optional package ``cleanlab``).
    every_cell : bool, default=False
        Whether to return every observed cell, not only those that a method doubts or cleanlab finds.

    Returns
    -------
    DataFrame
        A row per cell, the most doubtful first. ``row`` is the position in ``Y``, ``label`` a name, ``given`` the label
        (0 or 1), ``probability`` the mean probability that it is 1, ``methods`` the number of methods that doubt it,
        and ``doubted`` whether all methods do ("cleanlab": whether it is an issue).

    Raises
    ------
    StatisticsError
        If shapes differ, a label is not 0 or 1, a score is not a probability, or cleanlab is not installed.

    Notes
    -----
    A method doubts a cell if it finds the other value more probable, with at least the mean probability that it gives
    to that value in the cells where it is given. These are the off-diagonal cells of the confident joint (Northcutt,
    Jiang and Chuang, Confident learning, JAIR 70, 2021), one label at a time. A label that the method predicts well
    therefore needs a more certain probability. A label that no row, or every row, has is never doubted.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import label_doubts
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0]])
    >>> P = np.array([[0.9, 0.2], [0.8, 0.1], [0.1, 0.7], [0.2, 0.9], [0.95, 0.4]])
    >>> label_doubts(Y, P, label_names=["rain", "fog"])
       row label  given  probability  methods  doubted
    0    4  rain      0         0.95        1     True
    """
    if ranking not in RANKINGS:
        raise StatisticsError(f"ranking must be one of {', '.join(RANKINGS)}, got {ranking!r}")
    given, observed = _labels(Y)
    names = [
        str(name) for name in (getattr(Y, "columns", range(given.shape[1])) if label_names is None else label_names)
    ]
    if len(names) != given.shape[1]:
        raise StatisticsError(f"label_names has {len(names)} names, Y has {given.shape[1]} labels")
    named = dict(scores) if isinstance(scores, Mapping) else {"scores": scores}
    if not named:
        raise StatisticsError("there are no scores")
    probabilities = [_probabilities(each, given.shape, str(name)) for name, each in named.items()]
    votes = np.sum([_doubts(given, observed, each) for each in probabilities], axis=0)
    mean = np.mean(probabilities, axis=0)
    doubted = votes == len(probabilities) if ranking == "methods" else _issues(given, observed, mean)
    rows, labels = np.nonzero(observed & (every_cell | doubted | (votes > 0)))
    cells = rows, labels
    of_given = np.where(given == 1, mean, 1 - mean)[cells]
    order = np.lexsort((of_given, -votes[cells] if ranking == "methods" else ~doubted[cells]))
    table = pd.DataFrame(
        {
            "row": rows,
            "label": np.array(names, dtype=object)[labels],
            "given": given[cells].astype(int),
            "probability": mean[cells],
            "methods": votes[cells],
            "doubted": doubted[cells],
        },
        columns=_COLUMNS,
    )
    return table.iloc[order].reset_index(drop=True)


def _labels(Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels, 0 where none was observed, and which were observed."""
    values = np.asarray(Y.toarray() if hasattr(Y, "toarray") else Y)
    if values.ndim != 2:
        raise StatisticsError(f"Y must have two dimensions, got {values.ndim}")
    observed = values != -1 if values.dtype == np.int8 else ~pd.isna(values)
    given = np.where(observed, values, 0)
    if not np.isin(given, (0, 1)).all():
        raise StatisticsError("Y must hold 0 and 1, NaN (-1 in int8) where a label was not observed")
    return given.astype(np.uint8), observed


def _probabilities(scores: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    p = np.asarray(scores, dtype=float)
    if p.shape != shape:
        raise StatisticsError(f"{name}: the scores have the shape {p.shape}, Y has {shape}")
    if not ((p >= 0) & (p <= 1)).all():
        raise StatisticsError(f"{name}: a score is not in [0, 1]; turn margins into probabilities first")
    return p


def _doubts(given: np.ndarray, observed: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the cells that a method doubts."""
    found = np.zeros(given.shape, dtype=bool)
    for label in range(given.shape[1]):
        yes, no = (observed[:, label] & (given[:, label] == value) for value in (1, 0))
        if not yes.any() or not no.any():
            continue
        least = np.where(yes, 1 - p[no, label].mean(), p[yes, label].mean())
        other = np.where(yes, 1 - p[:, label], p[:, label])
        found[:, label] = observed[:, label] & (other > 0.5) & (other >= least)
    return found


def _issues(given: np.ndarray, observed: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the issues that cleanlab finds with its default filter, label by label as it does for several labels."""
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        raise StatisticsError(f"this ranking needs cleanlab: {pip_install('cleanlab')}") from None
    found = np.zeros(given.shape, dtype=bool)
    for label in range(given.shape[1]):
        rows = np.flatnonzero(observed[:, label])
        if np.unique(given[rows, label]).size == 2:
            both = np.column_stack([1 - p[rows, label], p[rows, label]])
            found[rows, label] = find_label_issues(given[rows, label].astype(int), both, n_jobs=1)
    return found
